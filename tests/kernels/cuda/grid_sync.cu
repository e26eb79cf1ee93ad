// Normalises a vector: all blocks sum it up, then all divide by the sum. Between the two everybody has to wait.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ float block_sum(const float *x, int n)
{
    float sum = 0.0f;
    int chunk = n / gridDim.x;
    for (int i = blockIdx.x * chunk; i < (blockIdx.x + 1) * chunk; i++)
        sum += x[i];
    return sum;
}

// `this_thread_block` is the group that waits; the sums of the other blocks may be missing.
extern "C" __global__ void normalise_racy(const float *x, float *sums, float *y, int n)
{
    cg::thread_block group = cg::this_thread_block();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = block_sum(x, n);
    group.sync();
    float total = 0.0f;
    for (int b = 0; b < gridDim.x; b++)
        total += sums[b];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] / total;
}

extern "C" __global__ void normalise_fixed(const float *x, float *sums, float *y, int n)
{
    cg::grid_group group = cg::this_grid();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = block_sum(x, n);
    group.sync();
    float total = 0.0f;
    for (int b = 0; b < gridDim.x; b++)
        total += sums[b];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] / total;
}
