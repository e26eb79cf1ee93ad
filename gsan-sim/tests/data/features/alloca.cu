#include "c.h"
#include <alloca.h>
__device__ __noinline__ unsigned sum(const unsigned *p, unsigned n) { unsigned s = 0; for (unsigned i = 0; i < n; i++) s += p[i]; return s; }
__device__ __noinline__ unsigned with(unsigned n, const unsigned *in) {
  unsigned *p = (unsigned *)alloca(n * 4);
  for (unsigned i = 0; i < n; i++) p[i] = in[i] * 2;
  return sum(p, n);
}
__device__ __noinline__ unsigned rec(unsigned n, const unsigned *in) {
  if (n == 0) return 0;
  unsigned *p = (unsigned *)alloca(n * 4);
  for (unsigned i = 0; i < n; i++) p[i] = in[i];
  unsigned inner = rec(n - 1, in);
  return inner + sum(p, n);
}
K(k) { unsigned t = threadIdx.x; CHECK(1, with(t, in) == t * (t - 1)); unsigned e = 0; for (unsigned n = 1; n <= t % 8; n++) e += n * (n - 1) / 2; CHECK(2, rec(t % 8, in) == e); }
