// Split-K matrix product: the blocks of one tile's column each multiply a slice of K, and the block that comes last
// adds the slices up (as in cutlass and in the threadFenceReduction sample).

constexpr int TILE = 8;

__device__ void slice_product(const float *a, const float *b, float *slice, int k, int slice_k)
{
    int row = threadIdx.y, column = threadIdx.x;
    int first = blockIdx.x * slice_k;
    float sum = 0.0f;
    for (int i = first; i < first + slice_k; i++)
        sum += a[row * k + i] * b[i * TILE + column];
    slice[row * TILE + column] = sum;
}

// The counter is atomic, but the slice may arrive after it: there is no fence between the two.
extern "C" __global__ void split_k_racy(const float *a, const float *b, float *slices, unsigned *done, float *c, int k)
{
    __shared__ bool last;
    int cell = threadIdx.y * TILE + threadIdx.x;
    slice_product(a, b, slices + blockIdx.x * TILE * TILE, k, k / gridDim.x);
    __syncthreads();
    if (cell == 0)
        last = atomicAdd(done, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        float sum = 0.0f;
        for (int s = 0; s < gridDim.x; s++)
            sum += slices[s * TILE * TILE + cell];
        c[cell] = sum;
    }
}

extern "C" __global__ void split_k_fixed(const float *a, const float *b, float *slices, unsigned *done, float *c, int k)
{
    __shared__ bool last;
    int cell = threadIdx.y * TILE + threadIdx.x;
    slice_product(a, b, slices + blockIdx.x * TILE * TILE, k, k / gridDim.x);
    __threadfence();
    __syncthreads();
    if (cell == 0) {
        last = atomicAdd(done, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) {
        float sum = 0.0f;
        for (int s = 0; s < gridDim.x; s++)
            sum += slices[s * TILE * TILE + cell];
        c[cell] = sum;
    }
}
