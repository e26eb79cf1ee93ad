// The queue of kernel.cu: the racy push takes its place without an atomic.

__device__ unsigned queue_values[8];
__device__ unsigned queue_end[1];

__device__ void push_racy(unsigned value)
{
    unsigned place = queue_end[0];
    queue_end[0] = place + 1;
    queue_values[place % 8] = value;
}

__device__ void push_fixed(unsigned value)
{
    unsigned place = atomicAdd(queue_end, 1);
    queue_values[place % 8] = value;
}
