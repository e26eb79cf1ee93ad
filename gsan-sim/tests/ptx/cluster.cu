// nvcc -ptx -std=c++17 -arch=compute_90 cluster.cu
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Every block sees what all blocks wrote before the grid's barrier, twice.
extern "C" __global__ void grid_sum(const unsigned* in, unsigned* part, unsigned* out, unsigned n) {
    cg::grid_group grid = cg::this_grid();
    unsigned v = 0;
    for (unsigned i = grid.thread_rank(); i < n; i += grid.size()) v += in[i];
    atomicAdd(&part[blockIdx.x], v);
    grid.sync();
    if (threadIdx.x == 0) {
        unsigned s = 0;
        for (unsigned i = 0; i < gridDim.x; i++) s += part[i];
        out[blockIdx.x] = s;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        unsigned same = 1;
        for (unsigned i = 0; i < gridDim.x; i++) same &= out[i] == out[0];
        out[gridDim.x] = same;
    }
}

// Each block of a cluster reads its neighbour's shared memory.
extern "C" __global__ void ring(unsigned* out) {
    __shared__ unsigned mine[32];
    cg::cluster_group cluster = cg::this_cluster();
    mine[threadIdx.x] = cluster.block_rank() * 100 + threadIdx.x;
    cluster.sync();
    unsigned* next = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % cluster.num_blocks());
    out[blockIdx.x * 32 + threadIdx.x] = next[31 - threadIdx.x];
    cluster.sync();
}

// A tile of the warp adds up.
extern "C" __global__ void tiles(unsigned* out) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    unsigned v = threadIdx.x;
    for (unsigned k = 4; k > 0; k >>= 1) v += tile.shfl_down(v, k);
    if (tile.thread_rank() == 0) out[threadIdx.x / 8] = v;
    auto active = cg::coalesced_threads();
    if (threadIdx.x % 3 == 0) {
        auto some = cg::coalesced_threads();
        out[16 + threadIdx.x] = some.size() * 100 + some.thread_rank();
    }
}
