#include "c.h"
K(k) { unsigned t = threadIdx.x; float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(0x0c0c0c0c), "r"(0x08080808)); CHECK(1, d[0] == 32);
  asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(0x08080808), "r"(0x38383838)); CHECK(2, d[0] == 64);
  float e[4] = {0, 0, 0, 0}; unsigned short z = 0;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3}, %5, {%6,%6}, %7, {%6,%6};" : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3]) : "r"(0x38383838), "r"(0x80808080), "h"(z), "r"(0x7f7f7f7f)); CHECK(3, e[0] == 64);
  float f[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3}, %5, {%6,%6}, %7, {%6,%6};" : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(0x22222222), "r"(0x80808080), "h"(z), "r"(0x7f7f7f7f)); CHECK(4, f[0] == 128);
  float g[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3}, %5, {%6,%6}, %7, {%6,%6};" : "+f"(g[0]), "+f"(g[1]), "+f"(g[2]), "+f"(g[3]) : "r"(0x22222222), "r"(0x40404040), "h"(z), "r"(0x38383838)); CHECK(5, g[0] == 128);
  for (int way = 0; way < 3; way++) {
    unsigned l = t % 4, sa = way == 0 ? 0x7f7f7f7f + l % 2 : way == 1 ? 0x7f7f7f7f + l / 2 : 0x7f7f807f, sb = way == 2 ? 0x7f7f7f7f + (l == 3) : 0x7f7f7f7f; float h[4] = {0, 0, 0, 0};
#define SCALED(ba, ta, bb, tb) asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3}, %6, {" ba ", " ta "}, %7, {" bb ", " tb "};" : "+f"(h[0]), "+f"(h[1]), "+f"(h[2]), "+f"(h[3]) : "r"(0x38383838), "r"(0x08080808), "r"(sa), "r"(sb))
    if (way == 0) { SCALED("0", "0", "0", "0"); CHECK(6, h[0] == 32 && h[1] == 32 && h[2] == 64 && h[3] == 64); }
    if (way == 1) { SCALED("0", "1", "0", "0"); CHECK(7, h[0] == 64 && h[2] == 64); }
    if (way == 2) { SCALED("1", "0", "0", "3"); CHECK(8, h[0] == 128 && h[3] == 128); }
  }
}
