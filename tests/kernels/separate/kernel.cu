// Separately compiled, with queue.cu: kernels that fill a queue which the other file defines.

extern __device__ void push_racy(unsigned value);
extern __device__ void push_fixed(unsigned value);
extern __device__ unsigned queue_values[8];

extern "C" __global__ void fill_racy(unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    push_racy(blockIdx.x + 1);
    out[blockIdx.x] = 1;
}

extern "C" __global__ void fill_fixed(unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    push_fixed(blockIdx.x + 1);
    out[blockIdx.x] = 1;
}

extern "C" __global__ void sum(unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    unsigned all = 0;
    for (int i = 0; i < 8; i++)
        all += queue_values[i];
    *out = all;
}
