#include "c.h"
#include <cuda_runtime.h>
extern "C" __global__ void k(unsigned *out, cudaTextureObject_t linear, cudaTextureObject_t point, cudaTextureObject_t mixed, cudaTextureObject_t bytes, cudaTextureObject_t layers, cudaTextureObject_t cube, cudaSurfaceObject_t surface) {
  unsigned t = threadIdx.x, x = t % 8, y = t / 8;
  float4 v = tex1Dfetch<float4>(linear, t); CHECK(1, v.y == (t < 16 ? 4 * t + 1 : 0) && v.w == (t < 16 ? 4 * t + 3 : 0));
  CHECK(2, tex2D<float>(point, x + 0.5f, y + 0.5f) == 10 * y + x); CHECK(3, tex2D<float>(point, -5, 1.5f) == 10 && tex2D<float>(point, 99, 99) == 37); CHECK(4, tex2D<float>(point, x + 0.99f, y + 0.01f) == 10 * y + x);
  CHECK(5, tex2D<float>(mixed, 1, 0.5f) == 0.5f && tex2D<float>(mixed, 2.75f, 1.5f) == 12.25f && tex2D<float>(mixed, 1, 1) == 5.5f); CHECK(6, tex2DLod<float>(mixed, 1, 0.5f, 0) == 0.5f);
  float b = tex2D<float>(bytes, (t % 4 + 0.5f) / 4 + 1, 0.5f); CHECK(7, b == (t % 4 == 3 ? 1.f : 51 * (t % 4) / 255.f));
  CHECK(8, tex2DLayered<float>(layers, 1.5f, 0.5f, 2) == 201 && tex2DLayered<float>(layers, 0, 1.5f, 9) == 210); CHECK(9, tex3D<float>(cube, 1.5f, 1.5f, 1.5f) == 111 && tex3D<float>(cube, 0.5f, 1.5f, 2.5f) == 210);
  float4 g = tex2Dgather<float4>(point, 1, 1, 0); CHECK(10, g.x == 10 && g.y == 11 && g.z == 1 && g.w == 0);
  unsigned w; surf2Dread(&w, surface, x * 4, y); CHECK(11, w == 100 + t); __syncthreads(); surf2Dwrite(w * 2, surface, x * 4, y); __syncthreads(); uint2 p; surf2Dread(&p, surface, x / 2 * 8, y); CHECK(12, p.x == 2 * (100 + y * 8 + x / 2 * 2) && p.y == p.x + 2);
  surf2Dread(&w, surface, 4 * 99, y, cudaBoundaryModeZero); CHECK(13, w == 0); surf2Dread(&w, surface, 4 * 99, y, cudaBoundaryModeClamp); CHECK(14, w == 2 * (100 + y * 8 + 7)); asm("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(point)); CHECK(15, w == 8);
}
extern "C" __global__ void outside(cudaSurfaceObject_t surface) { surf2Dwrite(1u, surface, 4 * 8, 0); }
