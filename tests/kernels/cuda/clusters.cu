// Blocks of a cluster that hand global memory to each other: through the cluster's barrier, and through flags and
// mbarriers in each other's shared memory.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Each block fills its part; after the barrier it reads its neighbour's in the same cluster.
extern "C" __global__ void neighbours(int *part, int *out) {
    cg::cluster_group cluster = cg::this_cluster();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    part[i] = i;
    cluster.sync();
    unsigned other = blockIdx.x ^ 1;
    out[i] = part[other * blockDim.x + threadIdx.x];
}

// The same without memory ordering: a relaxed arrival orders nothing.
extern "C" __global__ void neighbours_relaxed(int *part, int *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    part[i] = i;
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;");
    unsigned other = blockIdx.x ^ 1;
    out[i] = part[other * blockDim.x + threadIdx.x];
}

// The neighbour is in the next cluster: the barrier does not reach it.
extern "C" __global__ void neighbours_next_cluster(int *part, int *out) {
    cg::cluster_group cluster = cg::this_cluster();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    part[i] = i;
    cluster.sync();
    unsigned other = (blockIdx.x + 2) % gridDim.x;
    out[i] = part[other * blockDim.x + threadIdx.x];
}

// Many phases: the blocks of a cluster pass a row of numbers to and fro.
extern "C" __global__ void phases(int *row, int rounds) {
    cg::cluster_group cluster = cg::this_cluster();
    unsigned first = blockIdx.x & ~1u;
    unsigned i = first * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; round++) {
        if ((round & 1) == (blockIdx.x & 1)) row[i] += 1;
        cluster.sync();
    }
}

__device__ __forceinline__ unsigned in_block(const void *shared, unsigned block) {
    unsigned here = (unsigned)__cvta_generic_to_shared(shared), there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(block));
    return there;
}

// The first block of each cluster stores a word and raises a flag in the second's shared memory.
template <bool RELEASES>
__device__ void flag_of_neighbour(int *data, int *out) {
    __shared__ unsigned flag;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), pair = blockIdx.x / 2;
    if (threadIdx.x == 0) flag = 0;
    cluster.sync();
    if (threadIdx.x == 0 && rank == 0) {
        data[pair] = 7;
        if (RELEASES) {
            asm volatile("st.release.cluster.shared::cluster.u32 [%0], 1;" :: "r"(in_block(&flag, 1)) : "memory");
        } else {
            asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], 1;" :: "r"(in_block(&flag, 1)) : "memory");
        }
    }
    if (threadIdx.x == 0 && rank == 1) {
        unsigned seen;
        do {
            asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"((unsigned)__cvta_generic_to_shared(&flag)) : "memory");
        } while (seen == 0);
        out[pair] = data[pair];
    }
    cluster.sync();
}

extern "C" __global__ void shared_flag(int *data, int *out) { flag_of_neighbour<true>(data, out); }
extern "C" __global__ void shared_flag_relaxed(int *data, int *out) { flag_of_neighbour<false>(data, out); }

// All blocks of the cluster arrive at an mbarrier of its first block, which then sums up what they stored.
template <bool WAITS>
__device__ void arrive_at_first(int *part, int *sum) {
    __shared__ alignas(8) unsigned long long barrier;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), blocks = cluster.num_blocks();
    unsigned here = (unsigned)__cvta_generic_to_shared(&barrier);
    if (rank == 0 && threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(here), "r"(blocks * blockDim.x) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster.sync();
    part[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(in_block(&barrier, 0)) : "memory");
    if (rank == 0) {
        if (WAITS) {
            unsigned done;
            do {
                asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                             : "=r"(done) : "r"(here) : "memory");
            } while (!done);
        }
        int all = 0;
        for (unsigned block = 0; block < blocks; block++) all += part[(blockIdx.x + block) * blockDim.x + threadIdx.x];
        sum[blockIdx.x / blocks * blockDim.x + threadIdx.x] = all;
    }
    cluster.sync();
}

extern "C" __global__ void mbarrier_of_first(int *part, int *sum) { arrive_at_first<true>(part, sum); }
extern "C" __global__ void mbarrier_never_waited(int *part, int *sum) { arrive_at_first<false>(part, sum); }
