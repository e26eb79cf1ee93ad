// A list that all blocks push to, behind a lock of atomicCAS and atomicExch. Nodes are indices; -1 ends the list.

__device__ void lock(int *mutex)
{
    while (atomicCAS(mutex, 0, 1) != 0) {
    }
}

// Neither end of the critical section has a fence: both atomics are relaxed.
extern "C" __global__ void push_racy(int *mutex, int *head, int *next)
{
    if (threadIdx.x != 0)
        return;
    int node = blockIdx.x;
    lock(mutex);
    int first = *head;
    next[node] = first;
    *head = node;
    atomicExch(mutex, 0);
}

extern "C" __global__ void push_fixed(int *mutex, int *head, int *next)
{
    if (threadIdx.x != 0)
        return;
    int node = blockIdx.x;
    lock(mutex);
    __threadfence();
    int first = *head;
    next[node] = first;
    *head = node;
    __threadfence();
    atomicExch(mutex, 0);
}

// What became of the list: its length and the sum of its nodes.
extern "C" __global__ void walk(const int *head, const int *next, int *found)
{
    int length = 0, sum = 0;
    for (int node = *head; node >= 0; node = next[node]) {
        length++;
        sum += node;
    }
    found[0] = length;
    found[1] = sum;
}
