// Two kernels on two streams talk through a mailbox in pinned host memory; the data itself is in device memory.

extern "C" __global__ void sender_racy(int *data, volatile int *mailbox, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        data[i] = i * 7;
    __syncthreads();
    if (threadIdx.x == 0)
        *mailbox = n;
}

extern "C" __global__ void receiver_racy(const int *data, volatile int *mailbox, int *sum)
{
    if (threadIdx.x != 0)
        return;
    while (*mailbox == 0) {
    }
    int total = 0;
    for (int i = 0; i < *mailbox; i++)
        total += data[i];
    *sum = total;
}

extern "C" __global__ void sender_fixed(int *data, volatile int *mailbox, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        data[i] = i * 7;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        *mailbox = n;
}

extern "C" __global__ void receiver_fixed(const int *data, volatile int *mailbox, int *sum)
{
    if (threadIdx.x != 0)
        return;
    while (*mailbox == 0) {
    }
    __threadfence_system();
    int total = 0;
    for (int i = 0; i < *mailbox; i++)
        total += data[i];
    *sum = total;
}
