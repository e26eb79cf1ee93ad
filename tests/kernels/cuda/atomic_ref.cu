// A ring buffer of one slot between two blocks, with libcu++'s atomic_ref.

#include <cuda/atomic>

// The scope is the block's; the two sides are different blocks.
extern "C" __global__ void slot_racy(int *slot, unsigned *turn, int *sum, int rounds)
{
    if (threadIdx.x != 0)
        return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> state(*turn);
    int total = 0;
    for (int i = 0; i < rounds; i++) {
        if (blockIdx.x == 0) {
            while (state.load(cuda::memory_order_acquire) != 2 * i) {
            }
            *slot = i + 1;
            state.store(2 * i + 1, cuda::memory_order_release);
        } else {
            while (state.load(cuda::memory_order_acquire) != 2 * i + 1) {
            }
            total += *slot;
            state.store(2 * i + 2, cuda::memory_order_release);
        }
    }
    if (blockIdx.x == 1)
        *sum = total;
}

extern "C" __global__ void slot_fixed(int *slot, unsigned *turn, int *sum, int rounds)
{
    if (threadIdx.x != 0)
        return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> state(*turn);
    int total = 0;
    for (int i = 0; i < rounds; i++) {
        if (blockIdx.x == 0) {
            while (state.load(cuda::memory_order_acquire) != 2 * i) {
            }
            *slot = i + 1;
            state.store(2 * i + 1, cuda::memory_order_release);
        } else {
            while (state.load(cuda::memory_order_acquire) != 2 * i + 1) {
            }
            total += *slot;
            state.store(2 * i + 2, cuda::memory_order_release);
        }
    }
    if (blockIdx.x == 1)
        *sum = total;
}
