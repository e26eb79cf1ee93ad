#include "c.h"
typedef unsigned __int128 u128;
K(k) {
  u128 a = ((u128)in[1] << 100) + in[7], b = a * 3 + (u128)1, q = b / 7, r = q % 1000, d = (u128)in[3] << 70;
  CHECK(1, (unsigned)q == 3067833786u && (unsigned)(q >> 32) == 1840700269u && (unsigned)(q >> 64) == 3681400539u && (unsigned)(q >> 96) == 6);
  CHECK(2, r == 450); CHECK(3, b / d == 1u << 30); CHECK(4, b % d == 22); CHECK(5, (__int128)(-(__int128)b) / 7 == -(__int128)q); CHECK(6, b >> (in[90] & 127) == (u128)3 << 10);
}
