// nvcc -ptx -std=c++17 -arch=compute_90 pipeline.cu
#include <cuda/barrier>
#include <cuda/std/utility>
using barrier = cuda::barrier<cuda::thread_scope_block>;

// Half of the block fills a buffer, the other half empties it; two mbarriers hand it over.
extern "C" __global__ void handoff(const int* in, int* out, int rounds) {
    __shared__ int box[32];
    __shared__ barrier full, empty;
    if (threadIdx.x == 0) { init(&full, 64); init(&empty, 64); }
    __syncthreads();
    bool producer = threadIdx.x < 32;
    int lane = threadIdx.x & 31, sum = 0;
    for (int r = 0; r < rounds; r++) {
        if (producer) {
            if (r > 0) empty.arrive_and_wait();
            box[lane] = in[r * 32 + lane];
            (void)full.arrive();
        } else {
            if (r > 0) (void)empty.arrive();
            full.arrive_and_wait();
            sum += box[31 - lane];
        }
    }
    if (!producer) out[lane] = sum;
}

// A bulk copy into shared memory that an mbarrier's transaction count announces.
extern "C" __global__ void bulk(const int* in, int* out) {
    __shared__ alignas(16) int box[256];
    __shared__ barrier ready;
    if (threadIdx.x == 0) { init(&ready, blockDim.x); cuda::device::experimental::fence_proxy_async_shared_cta(); }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::experimental::cp_async_bulk_global_to_shared(box, in, sizeof(box), ready);
        token = cuda::device::barrier_arrive_tx(ready, 1, sizeof(box));
    } else {
        token = ready.arrive();
    }
    ready.wait(cuda::std::move(token));
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = box[255 - i];
}
