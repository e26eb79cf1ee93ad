#include "c.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
K(k) {
  unsigned t = threadIdx.x, l = t % 32; auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<32>(block); auto small = cg::tiled_partition<8>(block);
  CHECK(1, cg::reduce(tile, l, cg::plus<unsigned>()) == 496); CHECK(2, cg::reduce(small, l % 8, cg::plus<unsigned>()) == 28);
  CHECK(3, cg::reduce(tile, l, cg::greater<unsigned>()) == 31); CHECK(4, cg::reduce(tile, (int)l - 5, cg::less<int>()) == -5);
  CHECK(5, cg::reduce(tile, 1u << l, cg::bit_or<unsigned>()) == ~0u); CHECK(6, cg::reduce(tile, (float)l, cg::plus<float>()) == 496.f);
  CHECK(7, cg::inclusive_scan(tile, l) == l * (l + 1) / 2); CHECK(8, cg::exclusive_scan(small, 2u) == 2 * (l % 8));
  auto lab = cg::labeled_partition(tile, l % 3); CHECK(9, lab.size() == (l % 3 < 2 ? 11 : 10)); CHECK(10, cg::reduce(lab, 1u, cg::plus<unsigned>()) == lab.size());
  auto bin = cg::binary_partition(tile, l % 4 == 0); CHECK(11, bin.size() == (l % 4 ? 24 : 8)); CHECK(12, bin.shfl(l, 0) == (l % 4 ? 1 : 0));
  if (l % 2) { auto co = cg::coalesced_threads(); CHECK(13, co.size() == 16); CHECK(14, co.thread_rank() == l / 2); CHECK(15, cg::reduce(co, l, cg::plus<unsigned>()) == 256); CHECK(16, co.shfl_up(l, 1) == (l == 1 ? 1 : l - 2)); CHECK(17, co.any(l == 3)); CHECK(18, co.match_any(l / 8) == (0xfu << (l / 8 * 4))); }
  CHECK(19, __match_any_sync(~0u, l / 4) == 0xfu << (l / 4 * 4)); int p; unsigned m = __match_all_sync(~0u, 7ull * in[1], &p); CHECK(20, m == ~0u && p); m = __match_all_sync(~0u, l, &p); CHECK(21, m == 0 && !p);
  CHECK(22, __reduce_add_sync(~0u, l) == 496); CHECK(23, __reduce_min_sync(~0u, (int)l - 7) == -7); CHECK(24, __reduce_xor_sync(~0u, l) == 0); CHECK(25, __reduce_max_sync(~0u, l) == 31);
  CHECK(26, __ballot_sync(~0u, l & 1) == 0xaaaaaaaa); CHECK(27, __activemask() == ~0u); CHECK(28, __shfl_down_sync(~0u, (double)l, 3, 16) == (l % 16 + 3 < 16 ? l + 3 : l)); CHECK(29, __fns(0xf0f0, 0, 3) == 6);
  auto meta = cg::tiled_partition<4>(small); CHECK(30, meta.meta_group_size() == 2 && meta.meta_group_rank() == l / 4 % 2);
  __shared__ cg::block_tile_memory<128> mem; auto b2 = cg::this_thread_block(mem); auto big = cg::tiled_partition<64>(b2); CHECK(31, cg::reduce(big, 1u, cg::plus<unsigned>()) == 64); CHECK(32, big.any(t == 63)); 
  cg::invoke_one(tile, [&] { atomicAdd(out + 8, 1u); }); block.sync(); CHECK(33, out[8] == blockDim.x / 32);
  CHECK(34, cg::reduce(tile, make_uint2(l, 1).x * 1ull, cg::plus<unsigned long long>()) == 496); CHECK(35, __reduce_or_sync(0xffffu << (l / 16 * 16), 1u << l) == 0xffffu << (l / 16 * 16));
}
