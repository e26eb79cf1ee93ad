#include "c.h"
#include <cuda/ptx>
#include <cuda/barrier>
#include <cooperative_groups.h>
namespace p = cuda::ptx; namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2) k(unsigned *out, const unsigned *in) {
  __shared__ alignas(128) unsigned s[256]; __shared__ alignas(8) uint64_t bar; unsigned t = threadIdx.x; auto c = cg::this_cluster(); unsigned r = c.block_rank();
  if (t == 0) { p::mbarrier_init(&bar, 1); p::fence_mbarrier_init(p::sem_release, p::scope_cluster); } c.sync();
  if (t == 0) { p::cp_async_bulk(p::space_cluster, p::space_global, s, in + 64 * r, 256, &bar); auto tok = p::mbarrier_arrive_expect_tx(p::sem_release, p::scope_cta, p::space_shared, &bar, 256); (void)tok; } while (!p::mbarrier_try_wait_parity(&bar, 0)); CHECK(1, s[t] == 64 * r + t); c.sync();
  unsigned *o = c.map_shared_rank(s, r ^ 1); uint64_t *ob = c.map_shared_rank(&bar, r ^ 1);
  if (t == 0) { p::mbarrier_arrive_expect_tx(p::sem_release, p::scope_cta, p::space_shared, &bar, 4 + 16 + 4); p::st_async(o + 64, 5u, ob); unsigned q[4] = {6, 7, 8, 9}; p::st_async(o + 68, q, ob); p::red_async(p::op_add, o + 0, 100u, ob); } while (!p::mbarrier_try_wait_parity(&bar, 1)); CHECK(2, s[64] == 5 && s[68] == 6 && s[71] == 9); CHECK(3, s[0] == 64 * r + 100); c.sync();
  s[128 + t] = r; __syncthreads(); p::fence_proxy_async(p::space_shared);
  if (t == 0) { p::cp_async_bulk(p::space_global, p::space_shared, out + 256 + 64 * r, s + 128, 256); p::cp_async_bulk_commit_group(); p::cp_async_bulk_wait_group(p::n32_t<0>{}); p::cp_reduce_async_bulk(p::space_global, p::space_shared, p::op_add, out + 256 + 64 * r, s + 128, 256); p::cp_async_bulk_commit_group(); p::cp_async_bulk_wait_group_read(p::n32_t<0>{}); p::cp_async_bulk_wait_group(p::n32_t<0>{}); } __syncthreads(); CHECK(4, out[256 + 64 * r + t] == 2 * r);
  if (t == 0) { p::mbarrier_arrive_expect_tx(p::sem_release, p::scope_cta, p::space_shared, &bar, 128); p::cp_async_bulk(p::space_cluster, p::space_shared, o + 192, s + 128, 128, ob); } while (!p::mbarrier_try_wait_parity(&bar, 0)); if (t < 32) CHECK(5, s[192 + t] == (r ^ 1)); c.sync();
  CHECK(6, p::get_sreg_cluster_ctarank() == r && p::get_sreg_nclusterid_x() == 1 && p::get_sreg_is_explicit_cluster()); CHECK(7, p::getctarank(p::space_cluster, o) == (r ^ 1)); asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory"); 
}
