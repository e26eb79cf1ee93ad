#include "c.h"
#include <cuda_fp4.h>
#include <cuda_fp6.h>
K(k) {
  float one = in[1];
  __nv_fp4_e2m1 a(one), b(6 * one), c(100 * one), d(-0.5f * one); CHECK(1, (a.__x & 15) == 2); CHECK(2, (b.__x & 15) == 7); CHECK(3, (c.__x & 15) == 7); CHECK(4, (d.__x & 15) == 9);
  CHECK(5, (float)b == 6.f); CHECK(6, (float)d == -0.5f);
  __nv_fp4x2_e2m1 p(make_float2(1.5f * one, -3 * one)); float2 q = (float2)p; CHECK(7, q.x == 1.5f && q.y == -3.f); CHECK(8, p.__x == 0xd3);
  __nv_fp6_e3m2 e(one), f(28 * one), g(100 * one); CHECK(9, (e.__x & 63) == 12); CHECK(10, (f.__x & 63) == 31); CHECK(11, (g.__x & 63) == 31); CHECK(12, (float)f == 28.f);
  __nv_fp6_e2m3 h(one), i(7.5f * one), j(0.125f * one); CHECK(13, (h.__x & 63) == 8); CHECK(14, (i.__x & 63) == 31); CHECK(15, (j.__x & 63) == 1); CHECK(16, (float)i == 7.5f); CHECK(17, (float)j == 0.125f);
  __nv_fp6x2_e3m2 r(make_float2(one, -2 * one)); float2 s = (float2)r; CHECK(18, s.x == 1 && s.y == -2);
  __nv_fp6x2_e2m3 t(make_float2(one, -2 * one)); float2 u = (float2)t; CHECK(19, u.x == 1 && u.y == -2);
  __nv_fp4x4_e2m1 v(make_float4(one, 2 * one, 3 * one, 4 * one)); float4 w = (float4)v; CHECK(20, w.x == 1 && w.y == 2 && w.z == 3 && w.w == 4);
}
