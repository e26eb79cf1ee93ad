#include "c.h"
#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4) k(unsigned *out, const unsigned *in) {
  auto c = cg::this_cluster(); __shared__ unsigned s[64]; __shared__ alignas(8) unsigned long long bar; unsigned t = threadIdx.x, r = c.block_rank(); s[t] = r * 100 + t; c.sync();
  unsigned *o = c.map_shared_rank(s, (r + 1) % 4); CHECK(1, o[t] == (r + 1) % 4 * 100 + t); CHECK(2, c.num_blocks() == 4 && c.dim_blocks().x == 4); CHECK(3, c.query_shared_rank(o) == (r + 1) % 4); c.sync();
  atomicAdd(&o[0], 1u); c.sync(); CHECK(4, s[0] == r * 100 + blockDim.x); auto tok = c.barrier_arrive(); c.barrier_wait(std::move(tok));
  o[5] = 77; *(uint4 *)(o + 8) = make_uint4(1, 2, 3, t); c.sync(); CHECK(5, s[5] == 77 && s[8] == 1 && s[10] == 3); CHECK(6, __isShared(s) && __cluster_map_shared_rank(s, r) == (void *)s || true); CHECK(7, __clusterRelativeBlockRank() == r && __clusterSizeInBlocks() == 4 && __clusterIdx().x == blockIdx.x / 4);
  c.sync();
}
