// Blocks write squares into managed memory of the module; the last one, found by a managed counter, adds them up.

constexpr int BLOCKS = 8;

__managed__ unsigned done;
__managed__ unsigned squares[BLOCKS];

extern "C" __global__ void sum_racy(unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    squares[blockIdx.x] = blockIdx.x * blockIdx.x;
    if (atomicAdd(&done, 1) == gridDim.x - 1) {
        unsigned sum = 0;
        for (int b = 0; b < gridDim.x; b++)
            sum += squares[b];
        *out = sum;
        atomicExch(&done, 0);
    }
}

extern "C" __global__ void sum_fixed(unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    squares[blockIdx.x] = blockIdx.x * blockIdx.x;
    __threadfence();
    if (atomicAdd(&done, 1) == gridDim.x - 1) {
        __threadfence();
        unsigned sum = 0;
        for (int b = 0; b < gridDim.x; b++)
            sum += squares[b];
        *out = sum;
        atomicExch(&done, 0);
    }
}
