// The last block writes the largest of all blocks' values; the count of finished blocks and the blocks' values are
// variables of the module.

constexpr int BLOCKS = 8;

__device__ unsigned finished;
__device__ unsigned block_values[BLOCKS];

extern "C" __global__ void largest_racy(const unsigned *in, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    block_values[blockIdx.x] = in[blockIdx.x] * 5 % 11;
    if (atomicAdd(&finished, 1) == gridDim.x - 1) {
        unsigned largest = 0;
        for (int b = 0; b < gridDim.x; b++)
            largest = max(largest, block_values[b]);
        *out = largest;
        atomicExch(&finished, 0);
    }
}

extern "C" __global__ void largest_fixed(const unsigned *in, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    block_values[blockIdx.x] = in[blockIdx.x] * 5 % 11;
    __threadfence();
    if (atomicAdd(&finished, 1) == gridDim.x - 1) {
        __threadfence();
        unsigned largest = 0;
        for (int b = 0; b < gridDim.x; b++)
            largest = max(largest, block_values[b]);
        *out = largest;
        atomicExch(&finished, 0);
    }
}
