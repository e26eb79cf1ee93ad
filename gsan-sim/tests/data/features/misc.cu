#include "c.h"
#include <stdio.h>
#include <assert.h>
typedef unsigned __int128 u128;
struct Base { unsigned v; __device__ Base(unsigned v) : v(v) {} virtual __device__ unsigned f(unsigned x) { return x + v; } virtual __device__ ~Base() {} };
struct Derived : Base { __device__ Derived(unsigned v) : Base(v) {} __device__ unsigned f(unsigned x) override { return x * v; } };
__device__ __noinline__ unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ unsigned add1(unsigned x) { return x + 1; } __device__ unsigned add2(unsigned x) { return x + 2; }
__device__ unsigned (*table[2])(unsigned) = {add1, add2};
__constant__ unsigned cs[4] = {3, 1, 4, 1};
__device__ unsigned global_counter = 5;
__managed__ int man = 9;
K(__launch_bounds__(128, 2) k) {
  unsigned t = threadIdx.x;
  u128 a = ((u128)in[1] << 100) + in[7], b = a * 3 + (u128)1; CHECK(1, (unsigned long long)(b >> 100) == 3); CHECK(2, (unsigned long long)b == 22); CHECK(3, (unsigned)(b / 7 % 1000) == (unsigned)((((u128)3 << 100) + 22) / 7 % 1000));
  Derived d(3); Base c(4); Base *p = t & 1 ? (Base *)&d : &c; CHECK(4, p->f(10) == (t & 1 ? 30 : 14));
  Base *h = new Derived(in[6]); CHECK(5, h->f(2) == 12); delete h;
  CHECK(6, fib(t % 10) == (unsigned[]){0, 1, 1, 2, 3, 5, 8, 13, 21, 34}[t % 10]); CHECK(7, table[t % 2](t) == t + 1 + t % 2); CHECK(8, cs[t % 4] == (t % 4 == 0 ? 3 : t % 4 == 2 ? 4 : 1));
  long long t0 = clock64(); __nanosleep(100); CHECK(9, clock64() > t0); unsigned c0 = clock(); CHECK(10, (unsigned)clock() - c0 < 1000000); // clock_t has 64 bits, c0 the lower 32
  if (t == 0) { printf("%d %u %lld %5.2f %e %s %c %x %% %p\n", -1, 2u, 3ll << 40, 1.5, 2.5, "text", 'q', 255, (void *)0); printf("no args\n"); assert(in[0] == 0); CHECK(11, atomicAdd(&global_counter, 1) == 5); }
  void *m = malloc(16 + t); CHECK(12, m != 0); free(m);
  double dd = in[2]; CHECK(13, sqrt(dd) * sqrt(dd) - 2 < 1e-15); CHECK(14, fma(dd, dd, 1.0) == 5); CHECK(15, __drcp_rn(dd) == 0.5); CHECK(16, __double2int_rz(-dd * 1.3) == -2); CHECK(17, fabs(sin(dd) - 0.9092974268256817) < 1e-15); CHECK(18, fabs(exp(dd) - 7.38905609893065) < 1e-14); CHECK(19, fabs(pow(dd, 0.5) - 1.4142135623730951) < 1e-15); CHECK(20, fabs(lgamma(dd * 2.5) - 3.178053830347946) < 1e-14); CHECK(21, __dadd_ru(dd, 1e-30) > 2); CHECK(22, isnan(log(-dd)));
  float f = in[2]; CHECK(23, fabsf(__sinf(f) - 0.9093f) < 1e-4f); CHECK(24, fabsf(sinf(f * 1e6f) - -0.655146f) < 1e-2f || true); CHECK(25, rsqrtf(f * 2) == 0.5f); CHECK(26, __fdividef(f, 4.f) == 0.5f); CHECK(27, __fadd_rz(f, 1e-10f) == 2); CHECK(28, __fmaf_rd(f, f, -1e-10f) < 4); CHECK(29, fabsf(erff(f) - 0.995322f) < 1e-5f); CHECK(30, ldexpf(f, 3) == 16); int e; CHECK(31, frexpf(f, &e) == 0.5f && e == 2); CHECK(32, __float2uint_ru(f + 0.1f) == 3); CHECK(33, __saturatef(f) == 1.f); CHECK(34, nextafterf(f, 3.f) > 2); CHECK(35, fmodf(7.5f, f) == 1.5f); CHECK(36, cbrtf(f * 4) == 2.f); CHECK(37, __float_as_int(copysignf(f, -1.f)) == (int)0xc0000000);
  double da; { __shared__ double sd; if (t == 0) sd = 0; __syncthreads(); atomicAdd(&sd, dd); __syncthreads(); da = sd; } CHECK(38, da == 2.0 * blockDim.x); CHECK(39, man == 9);
  CHECK(40, __isGlobal(out) && !__isShared(out) && __isLocal(&t)); CHECK(41, __ldg(in + 9) == 9 && __ldcs(in + 8) == 8 && __ldlu(in + 3) == 3 && __ldcv(in + 4) == 4); __stwt(out + 9, 5); __threadfence(); __prof_trigger(1); CHECK(42, __syncthreads_count(t & 1) == blockDim.x / 2); CHECK(43, __syncthreads_and(1) && !__syncthreads_or(0));
}
