//! Matrix instructions against the definition of the product.

mod common;

use common::{Bench, seeded};

/// Small integers as f16.
fn half(n: i32) -> u16 {
    let sign = if n < 0 { 0x8000 } else { 0 };
    let a = n.unsigned_abs();
    if a == 0 {
        return sign;
    }
    let e = 31 - a.leading_zeros();
    sign | ((e + 15) << 10) as u16 | ((a << (10 - e)) & 0x3ff) as u16
}

fn bytes(h: &[u16]) -> Vec<u8> {
    h.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn a_tile_loaded_with_ldmatrix_multiplies() {
    for seed in 0..3 {
        let mut b = Bench::with(seeded(seed), include_str!("ptx/matrix.ptx"));
        assert!(b.machine.unsupported(b.module).is_empty());
        let av = |m: i32, k: i32| (m * 7 + k * 3) % 11 - 5;
        let bv = |k: i32, n: i32| (k * 5 + n * 2) % 9 - 4;
        let cv = |m: i32, n: i32| m - n;
        let a: Vec<u16> = (0..256).map(|i| half(av(i / 16, i % 16))).collect();
        let bm: Vec<u16> = (0..128).map(|i| half(bv(i % 16, i / 16))).collect();
        let c: Vec<u32> = (0..128)
            .map(|i| (cv(i / 8, i % 8) as f32).to_bits())
            .collect();
        let (a, bm) = (b.buffer(&bytes(&a)), b.buffer(&bytes(&bm)));
        let (c, d) = (b.words(&c), b.words(&[0; 128]));
        b.run("tile", 1, 32, &[a, bm, c, d, 0]);
        for (i, r) in b.read(d, 128).into_iter().enumerate() {
            let (m, n) = (i as i32 / 8, i as i32 % 8);
            let e: i32 = (0..16).map(|k| av(m, k) * bv(k, n)).sum::<i32>() + cv(m, n);
            assert_eq!(f32::from_bits(r), e as f32, "({m}, {n})");
        }
    }
}

#[test]
fn transposed_loads_undo_transposed_stores() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 out) { .reg .b64 %d<4>; .reg .b32 %r<9>; .shared .align 16 .b8 s[128];
          ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; and.b32 %r3, %r1, 7; mad.lo.u32 %r3, %r3, 16, %r2;
          mul.lo.u32 %r4, %r1, 0x20002; add.u32 %r4, %r4, 0x10000;
          stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r3], {%r4};
          bar.warp.sync -1;
          ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r5}, [%r3]; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r3];
          mad.wide.u32 %d1, %r1, 8, %d1; st.global.v2.u32 [%d1], {%r5, %r6}; ret; }",
    );
    let out = b.words(&[0; 64]);
    b.run("k", 1, 32, &[out]);
    let r = b.read(out, 64);
    for l in 0..32u32 {
        assert_eq!(r[2 * l as usize], l * 0x20002 + 0x10000);
        // Element (row, column) of the register matrix counts its elements row by row: 8 × row + column.
        let (row, column) = (l / 4, 2 * (l % 4));
        let e = |r: u32, c: u32| 8 * c + r;
        assert_eq!(
            r[2 * l as usize + 1],
            e(row, column) | e(row, column + 1) << 16
        );
    }
}

#[test]
fn bytes_multiply_into_integers() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 out) { .reg .b64 %d<4>; .reg .b32 %r<20>;
          ld.param.u64 %d1, [out]; mov.u32 %r1, %laneid; mov.u32 %r2, 0x01010101; mov.u32 %r3, 0xffffffff;
          mov.u32 %r4, 0; mov.u32 %r5, 100;
          mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%r10, %r11, %r12, %r13}, {%r3, %r2, %r3, %r4}, {%r2, %r2}, {%r4, %r5, %r4, %r4};
          mad.wide.u32 %d1, %r1, 16, %d1; st.global.v4.u32 [%d1], {%r10, %r11, %r12, %r13}; ret; }",
    );
    let out = b.words(&[0; 128]);
    b.run("k", 1, 32, &[out]);
    // Rows 0–7: 32 times −1 × 1; rows 8–15: 16 times 1 × 1.
    for lane in b.read(out, 128).chunks(4) {
        assert_eq!(lane, [-32i32 as u32, 68, 16, 16]);
    }
}
