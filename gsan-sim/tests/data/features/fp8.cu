#include "c.h"
#include <cuda_fp8.h>
#include <cuda_fp16.h>
K(k) {
  float one = in[1], x = in[17] * 0.0625f; // 1.0625
  __nv_fp8_e4m3 a(one), b(x), c(in[500] * 1.0f), d(-0.001953125f * one);
  CHECK(1, a.__x == 0x38); CHECK(2, b.__x == 0x38); CHECK(3, c.__x == 0x7e); CHECK(4, d.__x == 0x81);
  __nv_fp8_e5m2 e(one), f(x), g(in[500] * 1000.0f);
  CHECK(5, e.__x == 0x3c); CHECK(6, f.__x == 0x3c); CHECK(7, g.__x == 0x7b);
  CHECK(8, (float)c == 448.f); CHECK(9, (float)g == 57344.f); CHECK(10, (float)d == -0.001953125f);
  __nv_fp8x2_e4m3 p(make_float2(one, 2 * one)); float2 q = (float2)p; CHECK(11, q.x == 1 && q.y == 2);
  __nv_fp8x4_e5m2 r(make_float4(one, 2 * one, 3 * one, 4 * one)); float4 s = (float4)r; CHECK(12, s.x == 1 && s.y == 2 && s.z == 3 && s.w == 4);
  __half h = __float2half(one * 1.5f); __nv_fp8_e4m3 i(h); CHECK(13, i.__x == 0x3c);
  __nv_fp8_storage_t n = __nv_cvt_float_to_fp8(one * 1e9f, __NV_NOSAT, __NV_E5M2); CHECK(14, n == 0x7c);
  __nv_fp8_storage_t m = __nv_cvt_float_to_fp8(one * 1e9f, __NV_NOSAT, __NV_E4M3); CHECK(15, m == 0x7f);
  __half2_raw hr = __nv_cvt_fp8x2_to_halfraw2(0x383c, __NV_E4M3); CHECK(16, hr.x == 0x3e00 && hr.y == 0x3c00);
  __nv_fp8_e8m0 z(one * 4.f); CHECK(17, z.__x == 129); CHECK(18, (float)z == 4.f);
  __nv_fp8_e4m3 nan(__int_as_float(0x7fc00000 + in[0])); CHECK(19, nan.__x == 0x7f);
  __nv_bfloat16 bb = __float2bfloat16(one * 3.f); __nv_fp8_e5m2 j(bb); CHECK(20, j.__x == 0x42);
}
