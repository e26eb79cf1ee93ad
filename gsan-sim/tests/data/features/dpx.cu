#include "c.h"
// Two operands are written so that ptxas 13.0 (V13.0.88) assembles them rightly for sm_90a; the simulator keeps to the PTX.
// With `b = -(int)in[7]` it leaves the negation out where it makes one VIMNMX3 of two `max.s32` or two `min.s32` (sm_100a too; not at -O0), so that checks 3
// and 4 compare 5, +7 and 3. With a constant first operand of `__vibmin_s16x2` it exchanges VIMNMX.S16x2's operands, but not what
// is made of the predicates that say which one was taken (check 8). This is read from the SASS; what an H200 said fits: three checks failed in each thread, the first was 3.
K(k) {
  int a = in[5], b = ~(int)in[6], c = in[3]; bool p, q;
  CHECK(1, __viaddmax_s32(a, b, c) == 3); CHECK(2, __viaddmin_s32_relu(a, b, c) == 0); CHECK(3, __vimax3_s32(a, b, c) == 5); CHECK(4, __vimin3_s32_relu(a, b, c) == 0); CHECK(5, __vibmax_s32(a, b, &p) == 5 && p);
  CHECK(6, __viaddmax_s16x2(0x00050005, 0xfff90001, 0x00030003) == 0x00030006); CHECK(7, __vimax3_u16x2(0x00010002, 0x00030001, 0x00020005) == 0x00030005); CHECK(8, __vibmin_s16x2(0x0001ffff + in[0], 0xffff0001 + in[0], &p, &q) == 0xffffffff && !p && q);
  CHECK(9, __viaddmax_u32(5u, 0xfffffffcu, 3u) == 3); CHECK(10, __vimax_s32_relu(b, -c) == 0); CHECK(11, __viaddmin_u16x2(0xffff0001, 0x00020002, 0x00050005) == 0x00010003);
  CHECK(12, __vadd4(0x01020304, 0x01010101) == 0x02030405); CHECK(13, __vabsdiffu4(0x01050109, 0x02010901) == 0x01040808); CHECK(14, __vsads4(0x0105ff09, 0x02010101) == 1 + 4 + 2 + 8); CHECK(15, __vmaxs2(0x0001ffff, 0xffff0001) == 0x00010001); CHECK(16, __vaddus4(0xff01ff01, 0x01010101) == 0xff02ff02); CHECK(17, __vcmpgtu4(0x01020304, 0x02010304) == 0x00ff0000); CHECK(18, __vhaddu4(0x02040608, 0x02020202) == 0x02030405); CHECK(19, __vavgs2(0x00010003, 0x00020003) == 0x00020003);
  CHECK(20, __dp4a(0x01020304, 0x01010101, 5) == 15); CHECK(21, __dp2a_lo(0x00020003, 0x00000504, 1) == 1 + 3 * 4 + 2 * 5); CHECK(22, __dp4a(0xffu, 0xffu, 0u) == 255 * 255); CHECK(23, __byte_perm(0x33221100 + in[0], 0x77665544, 0x7531) == 0x77553311);
  CHECK(24, __funnelshift_l(0x80000000 + in[0], 1, 1) == 3); CHECK(25, __funnelshift_rc(in[1], in[2], 40) == in[2]); CHECK(26, __brev(in[1]) == 0x80000000u); CHECK(27, __clzll(in[1]) == 63); CHECK(28, __ffsll((long long)in[8] << 32) == 36); CHECK(29, __popcll(0xff00ff00ff00ff00ull + in[0]) == 32); CHECK(30, __mul24(in[100], in[200]) == 20000); CHECK(31, __umulhi(0x80000000u + in[0], 6) == 3); CHECK(32, __mul64hi(-1ll - in[0], 5) == -1); CHECK(33, __sad(-3 + (int)in[0], 4, 10u) == 17); CHECK(34, __rhadd((int)in[3], (int)in[4]) == 4); CHECK(35, __uhadd(in[3], in[4]) == 3); CHECK(36, __brevll(in[1]) == 1ull << 63);
}
