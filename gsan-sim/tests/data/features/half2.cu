#include "c.h"
#include <cuda_fp16.h>
#include <cuda_bf16.h>
K(k) {
  float one = in[1];
  __half2 a = __floats2half2_rn(one, 2 * one), b = __floats2half2_rn(3 * one, -4 * one);
  float2 r = __half22float2(__hfma2(a, b, a)); CHECK(1, r.x == 4 && r.y == -6);
  r = __half22float2(__hadd2_sat(a, b)); CHECK(2, r.x == 1 && r.y == 0);
  r = __half22float2(__hmul2(a, b)); CHECK(3, r.x == 3 && r.y == -8);
  r = __half22float2(__hmax2(a, b)); CHECK(4, r.x == 3 && r.y == 2);
  r = __half22float2(__hmin2_nan(a, b)); CHECK(5, r.x == 1 && r.y == -4);
  r = __half22float2(__hfma2_relu(a, b, a)); CHECK(6, r.x == 4 && r.y == 0);
  r = __half22float2(h2exp2(a)); CHECK(7, r.x == 2 && r.y == 4);
  r = __half22float2(h2rcp(a)); CHECK(8, r.x == 1 && r.y == 0.5f);
  r = __half22float2(h2sqrt(__floats2half2_rn(4 * one, 9 * one))); CHECK(9, r.x == 2 && r.y == 3);
  CHECK(10, __hgt2_mask(a, b) == 0xffff0000u); CHECK(11, __hbgt2(b, a) == 0);
  r = __half22float2(__heq2(a, a)); CHECK(12, r.x == 1 && r.y == 1);
  r = __half22float2(h2tanh_approx(__floats2half2_rn(0 * one, 10 * one))); CHECK(13, r.x == 0 && r.y == 1);
  r = __half22float2(h2floor(__floats2half2_rn(1.5f * one, -1.5f * one))); CHECK(14, r.x == 1 && r.y == -2);
  r = __half22float2(h2rint(__floats2half2_rn(2.5f * one, -1.5f * one))); CHECK(15, r.x == 2 && r.y == -2);
  CHECK(16, __half2int_rz(__float2half(-2.7f * one)) == -2); CHECK(17, __half2ushort_ru(__float2half(2.2f * one)) == 3);
  CHECK(18, __half2float(__ull2half_rn(in[5])) == 5); CHECK(19, __half_as_ushort(__habs(__float2half(-one))) == 0x3c00);
  CHECK(20, __half2float(hlog2(__float2half(8 * one))) == 3); CHECK(21, fabsf(__half2float(hsin(__float2half(one))) - 0.8415f) < 1e-3f);
  __nv_bfloat162 x = __floats2bfloat162_rn(one, 2 * one), y = __floats2bfloat162_rn(3 * one, -4 * one);
  float2 s = __bfloat1622float2(__hfma2(x, y, x)); CHECK(22, s.x == 4 && s.y == -6);
  s = __bfloat1622float2(__hmax2(x, y)); CHECK(23, s.x == 3 && s.y == 2);
  s = __bfloat1622float2(h2exp2(x)); CHECK(24, s.x == 2 && s.y == 4);
  s = __bfloat1622float2(__hsub2(x, y)); CHECK(25, s.x == -2 && s.y == 6);
  CHECK(26, __hge(x.x, y.y)); CHECK(27, __bfloat162int_rd(__float2bfloat16(-1.5f * one)) == -2);
  s = __bfloat1622float2(__hcmadd(x, y, x)); CHECK(28, s.x == 3 + 8 + 1 && s.y == -4 + 6 + 2);
  __shared__ __half2 sh; __shared__ __nv_bfloat162 sb; if (threadIdx.x == 0) { sh = __floats2half2_rn(0, 0); sb = __floats2bfloat162_rn(0, 0); } __syncthreads();
  atomicAdd(&sh, a); atomicAdd(&sb, x); __syncthreads();
  r = __half22float2(sh); CHECK(29, r.x == 64 && r.y == 128); s = __bfloat1622float2(sb); CHECK(30, s.x == 64 && s.y == 128);
  CHECK(31, __half2float(__shfl_xor_sync(~0u, __float2half((float)(threadIdx.x % 32)), 1)) == (threadIdx.x % 32 ^ 1));
  CHECK(32, __half2float(__ldcg((const __half *)in + 2)) == __half2float(__ushort_as_half(1)));
}
