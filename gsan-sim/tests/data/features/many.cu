#include "c.h"
#include <cuda/std/complex>
#include <cuda/std/array>
#include <cuda/std/span>
#include <cuda/std/bit>
#include <cuda/std/tuple>
#include <cuda/std/variant>
#include <cuda/std/optional>
#include <cub/cub.cuh>
K(__launch_bounds__(128) k) {
  unsigned t = threadIdx.x; typedef cub::BlockReduce<unsigned, 128> R; typedef cub::BlockScan<unsigned, 128> S; typedef cub::BlockRadixSort<unsigned, 128, 4> Q; typedef cub::BlockLoad<unsigned, 128, 4, cub::BLOCK_LOAD_TRANSPOSE> L; typedef cub::BlockHistogram<unsigned char, 128, 4, 16> H; typedef cub::WarpMergeSort<unsigned, 2> WM; typedef cub::BlockExchange<unsigned, 128, 4> X; typedef cub::BlockDiscontinuity<unsigned, 128> D;
  __shared__ union { R::TempStorage r; S::TempStorage s; Q::TempStorage q; L::TempStorage l; H::TempStorage h; WM::TempStorage w[4]; X::TempStorage x; D::TempStorage d; } u; __shared__ unsigned hist[16];
  unsigned sum = R(u.r).Sum(in[t]); if (t == 0) CHECK(1, sum == 127 * 64); __syncthreads(); unsigned e; S(u.s).ExclusiveSum(1u, e); CHECK(2, e == t); __syncthreads();
  unsigned v[4]; L(u.l).Load(in, v); CHECK(3, v[2] == 4 * t + 2); __syncthreads(); for (auto &x : v) x = x * 2654435761u % 512u; unsigned w[4] = {v[0], v[1], v[2], v[3]}; Q(u.q).Sort(v); CHECK(4, v[0] <= v[1] && v[1] <= v[2] && v[2] <= v[3]); __syncthreads(); __shared__ unsigned first[129]; first[t] = v[0]; __syncthreads(); if (t < 127) CHECK(5, v[3] <= first[t + 1]); 
  unsigned char c[4]; for (int i = 0; i < 4; i++) c[i] = w[i] % 16; __syncthreads(); H(u.h).Histogram(c, hist); __syncthreads(); if (t == 0) { unsigned s = 0; for (auto x : hist) s += x; CHECK(6, s == 512); }
  unsigned m[2] = {(t * 7919u) % 64, (t * 104729u) % 64}; __syncthreads(); WM(u.w[t / 32]).Sort(m, [](unsigned a, unsigned b) { return a < b; }); CHECK(7, m[0] <= m[1] && __shfl_down_sync(~0u, m[0], 1) >= (t % 32 < 31 ? m[1] : 0)); __syncthreads(); X(u.x).BlockedToStriped(w); __syncthreads(); bool f[1]; unsigned dd[1] = {t / 5}; D(u.d).FlagHeads(f, dd, cuda::std::not_equal_to<>{}); CHECK(8, f[0] == (t % 5 == 0));
  cuda::std::complex<float> z(1, in[2]); z *= z; CHECK(9, z.real() == -3 && z.imag() == 4); CHECK(10, abs(cuda::std::complex<double>(3, 4)) == 5); CHECK(11, cuda::std::popcount(in[255]) == 8 && cuda::std::countl_zero(in[1]) == 31 && cuda::std::bit_ceil(in[5]) == 8); cuda::std::optional<unsigned> o; if (in[1]) o = 4; CHECK(12, o.value_or(3) == 4); cuda::std::variant<int, float> vv = 1.5f * in[2]; CHECK(13, cuda::std::get<1>(vv) == 3.f);
  typedef cub::WarpReduce<double> WR; __shared__ WR::TempStorage wr[4]; double ws = WR(wr[t / 32]).Reduce((double)t, [](double a, double b) { return a > b ? a : b; }); if (t % 32 == 0) CHECK(14, ws == t + 31); CHECK(15, cub::ShuffleIndex<32>(t, 3, ~0u) == t / 32 * 32 + 3);
}
