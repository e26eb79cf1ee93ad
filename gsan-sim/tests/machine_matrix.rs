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

/// What `wmma` loads, multiplies and stores in every shape and layout is the product.
#[test]
fn tiles_of_wmma_multiply() {
    let value = |i: i32, j: i32| (i * 7 + j * 3) % 11 - 5;
    let shapes = [
        ("m16n16k16", 16, 16, 16, "f16", 8, 8, "f32"),
        ("m8n32k16", 8, 32, 16, "f16", 8, 8, "f32"),
        ("m32n8k16", 32, 8, 16, "bf16", 8, 2, "f32"),
        ("m16n16k8", 16, 16, 8, "tf32", 4, 4, "f32"),
        ("m16n16k16", 16, 16, 16, "s8", 2, 2, "s32"),
    ];
    for (shape, m, n, k, ty, ra, rb, sum) in shapes {
        for (la, lb, lc) in [("row", "col", "row"), ("col", "row", "col")] {
            let list = |name: &str, count| {
                (0..count)
                    .map(|i| format!("%{name}{i}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (a, b, c) = (list("a", ra), list("b", rb), list("c", 8));
            let types = match ty {
                "f16" => "f32.f32".to_string(),
                _ => format!("{sum}.{ty}.{ty}.{sum}"),
            };
            let typed = if ty == "tf32" { "tf32" } else { ty };
            let stride = |rows: i32, columns: i32, layout: &str| {
                if layout == "row" {
                    columns + 16
                } else {
                    rows + 16
                }
            };
            let (sa, sb, sc) = (stride(m, k, la), stride(k, n, lb), stride(m, n, lc));
            let mut bench = Bench::new(&format!(
                ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d) {{
                   .reg .b64 %d<4>; .reg .b32 %a<8>, %b<8>; .reg .{sum} %c<8>;
                   ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [d];
                   wmma.load.a.sync.aligned.{la}.{shape}.global.{typed} {{{a}}}, [%d1], {sa};
                   wmma.load.b.sync.aligned.{lb}.{shape}.global.{typed} {{{b}}}, [%d2], {sb};
                   wmma.load.c.sync.aligned.{lc}.{shape}.{sum} {{{c}}}, [%d3], {sc};
                   wmma.mma.sync.aligned.{la}.{lb}.{shape}.{types} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
                   wmma.store.d.sync.aligned.{lc}.{shape}.{sum} [%d3], {{{c}}}, {sc}; ret; }}"
            ));
            assert_eq!(bench.machine.unsupported(bench.module), []);
            let encode = |v: i32| -> Vec<u8> {
                match ty {
                    "f16" => half(v).to_le_bytes().to_vec(),
                    "bf16" => ((v as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
                    "tf32" => (v as f32).to_le_bytes().to_vec(),
                    _ => vec![v as i8 as u8],
                }
            };
            let mut matrix = |rows: i32,
                              columns: i32,
                              layout: &str,
                              stride: i32,
                              size: usize,
                              f: &dyn Fn(i32, i32) -> Vec<u8>| {
                let lines = if layout == "row" { rows } else { columns };
                let mut bytes = vec![0; (lines * stride) as usize * size];
                for i in 0..rows {
                    for j in 0..columns {
                        let at = if layout == "row" {
                            i * stride + j
                        } else {
                            j * stride + i
                        };
                        bytes[at as usize * size..][..size].copy_from_slice(&f(i, j));
                    }
                }
                bench.buffer(&bytes)
            };
            let size = encode(0).len();
            let va = matrix(m, k, la, sa, size, &|i, j| encode(value(i, j)));
            let vb = matrix(k, n, lb, sb, size, &|i, j| encode(value(j, i)));
            let start = |i: i32, j: i32| -> i32 { i - 2 * j };
            let vc = matrix(m, n, lc, sc, 4, &|i, j| match sum {
                "f32" => (start(i, j) as f32).to_le_bytes().to_vec(),
                _ => start(i, j).to_le_bytes().to_vec(),
            });
            bench.run("k", 1, 32, &[va, vb, vc]);
            let lines = if lc == "row" { m } else { n };
            let found = bench.read(vc, (lines * sc) as usize);
            for i in 0..m {
                for j in 0..n {
                    let at = if lc == "row" { i * sc + j } else { j * sc + i };
                    let e: i32 =
                        start(i, j) + (0..k).map(|x| value(i, x) * value(j, x)).sum::<i32>();
                    let bits = if sum == "f32" {
                        (e as f32).to_bits()
                    } else {
                        e as u32
                    };
                    assert_eq!(
                        found[at as usize], bits,
                        "{shape}.{ty} {la} {lb}: ({i}, {j})"
                    );
                }
            }
        }
    }
}

/// Small integers in every width that `mma` has, and doubles.
#[test]
fn whole_numbers_of_every_width_multiply() {
    // Element (row, column) of A is 1 where the column is row + 1, and B's (k, n) is a small number: D picks B's rows.
    for (shape, ty, k, bits, ra, rb) in [
        ("m16n8k16", "s8", 16u32, 8u32, 2u32, 1u32),
        ("m16n8k32", "u8", 32, 8, 4, 2),
        ("m16n8k32", "s4", 32, 4, 2, 1),
        ("m16n8k64", "u4", 64, 4, 4, 2),
        ("m8n8k16", "u8", 16, 8, 1, 1),
        ("m8n8k32", "s4", 32, 4, 1, 1),
    ] {
        let rows = if shape.starts_with("m16") { 16 } else { 8 };
        let per = 32 / bits;
        let number = |x: u32, n: u32| (x * 3 + n) % 8;
        // The fragments, as the manual's figures have them.
        let mut words = Vec::new();
        for lane in 0..32u32 {
            let (g, t) = (lane / 4, lane % 4);
            for r in 0..ra {
                let row = if rows == 16 { g + 8 * (r % 2) } else { g };
                let first = per * t + 4 * per * if rows == 16 { r / 2 } else { r };
                words.push(
                    (0..per)
                        .map(|i| u32::from(first + i == row % k + 1) << (bits * i))
                        .sum::<u32>(),
                );
            }
            for r in 0..rb {
                let first = per * t + 4 * per * r;
                words.push(
                    (0..per)
                        .map(|i| number(first + i, g) << (bits * i))
                        .sum::<u32>(),
                );
            }
        }
        let list = |name: &str, count: u32| {
            (0..count)
                .map(|i| format!("%{name}{i}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let rc = rows / 4;
        let loads: String = (0..ra)
            .map(|i| format!("ld.global.b32 %a{i}, [%d3+{}];", 4 * i))
            .chain((0..rb).map(|i| format!("ld.global.b32 %b{i}, [%d3+{}];", 4 * (ra + i))))
            .collect();
        let stores: String = (0..rc)
            .map(|i| format!("st.global.b32 [%d4+{}], %c{i};", 4 * i))
            .collect();
        let sets: String = (0..rc)
            .map(|i| format!("mov.b32 %c{i}, {};", 100 + i))
            .collect();
        let mut b = Bench::new(&format!(
            ".visible .entry k(.param .u64 in, .param .u64 out) {{ .reg .b64 %d<6>; .reg .b32 %r<3>, %a<4>, %b<4>, %c<4>;
              ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %laneid;
              mad.wide.u32 %d3, %r1, {}, %d1; mad.wide.u32 %d4, %r1, {}, %d2; {loads} {sets}
              mma.sync.aligned.{shape}.row.col.s32.{ty}.{ty}.s32 {{{}}}, {{{}}}, {{{}}}, {{{}}}; {stores} ret; }}",
            4 * (ra + rb),
            4 * rc,
            list("c", rc),
            list("a", ra),
            list("b", rb),
            list("c", rc),
        ));
        assert_eq!(b.machine.unsupported(b.module), []);
        let input = b.words(&words);
        let out = b.words(&vec![0; 32 * rc as usize]);
        b.run("k", 1, 32, &[input, out]);
        for (i, found) in b.read(out, 32 * rc as usize).into_iter().enumerate() {
            let (lane, r) = (i as u32 / rc, i as u32 % rc);
            let (row, column) = (lane / 4 + r / 2 * 8, 2 * (lane % 4) + r % 2);
            let n = number(row % k + 1, column);
            let n = match (ty, row % k + 1 < k) {
                (_, false) => 0,
                ("s4", _) if n > 7 => n as i32 - 16,
                _ => n as i32,
            };
            assert_eq!(
                found as i32,
                n + 100 + r as i32,
                "{shape}.{ty} ({row}, {column})"
            );
        }
    }
}

#[test]
fn bits_and_doubles_multiply() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 out) { .reg .b64 %d<6>; .reg .b32 %r<20>; .reg .f64 %f<8>;
          ld.param.u64 %d1, [out]; mov.u32 %r1, %laneid; mov.u32 %r2, 0xff00ff01; mov.u32 %r3, 0x0ff00003; mov.u32 %r4, 5;
          mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r10, %r11, %r12, %r13}, {%r2, %r2, %r2, %r2}, {%r3, %r3}, {%r4, %r4, %r4, %r4};
          mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r14, %r15}, {%r2}, {%r3}, {%r4, %r4};
          mad.wide.u32 %d2, %r1, 32, %d1; st.global.v4.u32 [%d2], {%r10, %r13, %r14, %r15};
          shr.u32 %r5, %r1, 2; cvt.rn.f64.u32 %f1, %r5; and.b32 %r6, %r1, 3; cvt.rn.f64.u32 %f2, %r6; mov.f64 %f3, 0d3FE0000000000000;
          mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%f4, %f5}, {%f1}, {%f2}, {%f3, %f3};
          st.global.v2.f64 [%d2+16], {%f4, %f5}; ret; }",
    );
    assert_eq!(b.machine.unsupported(b.module), []);
    let out = b.words(&[0; 256]);
    b.run("k", 1, 32, &[out]);
    let and = (0xff00_ff01u32 & 0x0ff0_0003).count_ones();
    let xor = (0xff00_ff01u32 ^ 0x0ff0_0003).count_ones();
    for (lane, r) in b.read64(out, 128).chunks(4).enumerate() {
        let pair = |x: u32| u64::from(x) | u64::from(x) << 32;
        assert_eq!(r[0], pair(8 * and + 5));
        assert_eq!(r[1], pair(4 * xor + 5));
        // Row g of A is g four times; column n of B is 0, 1, 2, 3.
        let expected = (lane / 4) as f64 * 6.0 + 0.5;
        assert_eq!([r[2], r[3]].map(f64::from_bits), [expected; 2]);
    }
}

/// A module's text for a GPU that has the instructions on bytes.
fn for_sm_100(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_100a\n.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) {{ .reg .b64 %d<4>; .reg .b32 %r<20>; .shared .align 16 .b8 s[1024];
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; mov.u32 %r1, %laneid; mov.u32 %r2, s;
  mad.wide.u32 %d2, %r1, 16, %d2; mad.lo.u32 %r3, %r1, 16, %r2; mad.wide.u32 %d3, %r1, 16, %d1;
  ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d2]; st.shared.v4.b32 [%r3], {{%r4, %r5, %r6, %r7}}; bar.warp.sync -1;
  {body} ret; }}\n"
    )
}

/// What is loaded transposed, with rows in the order that `stmatrix` has and the bytes exchanged as CUTLASS does it between the two,
/// is stored where it was.
#[test]
fn squares_of_bytes_are_stored_as_they_were_loaded() {
    let text = for_sm_100(
        "and.b32 %r8, %r1, 1; shr.u32 %r9, %r1, 1; and.b32 %r9, %r9, 1; mad.lo.u32 %r8, %r9, 8, %r8;
         shr.u32 %r9, %r1, 2; and.b32 %r9, %r9, 3; mad.lo.u32 %r8, %r9, 2, %r8; and.b32 %r9, %r1, 16; add.u32 %r8, %r8, %r9;
         mad.lo.u32 %r8, %r8, 16, %r2;
         ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r10, %r11, %r12, %r13}, [%r8];
         prmt.b32 %r14, %r10, %r11, 0x5410; prmt.b32 %r15, %r10, %r11, 0x7632;
         prmt.b32 %r16, %r12, %r13, 0x5410; prmt.b32 %r17, %r12, %r13, 0x7632;
         stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%r3+512], {%r14, %r15, %r16, %r17}; bar.warp.sync -1;
         ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3+512]; st.global.v4.b32 [%d3], {%r4, %r5, %r6, %r7};",
    );
    let mut b = Bench::new(&text);
    let bytes: Vec<u8> = (0..512u32).map(|i| (i * 7 + i / 256) as u8).collect();
    let (out, input) = (b.words(&[0; 128]), b.buffer(&bytes));
    b.run("k", 1, 32, &[out, input]);
    let back: Vec<u8> = b
        .read(out, 128)
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    assert_eq!(back, bytes);
}

/// A column's elements of four rows in a register; elements of four bits at the low end of bytes.
#[test]
fn narrow_elements_become_bytes() {
    for (form, bits, square) in [
        ("m16n16.x1.trans.shared.b8", 8, true),
        ("m16n16.x1.trans.shared.b8x16.b4x16_p64", 4, true),
        ("m16n16.x1.trans.shared.b8x16.b6x16_p32", 6, true),
        ("m8n16.x2.shared.b8x16.b6x16_p32", 6, false),
        ("m8n16.x2.shared.b8x16.b4x16_p64", 4, false),
    ] {
        let mut b = Bench::new(&for_sm_100(&format!(
            "ldmatrix.sync.aligned.{form} {{%r10, %r11}}, [%r3]; st.global.v2.b32 [%d3], {{%r10, %r11}};"
        )));
        let bytes: Vec<u8> = (0..512u32).map(|i| (i * 11 + i / 64) as u8).collect();
        let (out, input) = (b.words(&[0; 128]), b.buffer(&bytes));
        b.run("k", 1, 32, &[out, input]);
        let found = b.read(out, 128);
        let element = |row: usize, column: usize| {
            let bit = column * bits;
            let at = |n: usize| u32::from(bytes[16 * row + (bit / 8 + n).min(15)]);
            (at(0) | at(1) << 8) >> (bit % 8) & ((1 << bits) - 1)
        };
        for lane in 0..32 {
            for register in 0..2 {
                let expected = (0..4).rev().fold(0, |word, j| {
                    word << 8
                        | match square {
                            true => element(4 * (lane % 4) + j, lane / 4 + 8 * register),
                            false => element(8 * register + lane / 4, 4 * (lane % 4) + j),
                        }
                });
                assert_eq!(found[4 * lane + register], expected, "{form}, lane {lane}");
            }
        }
    }
}

/// Four products of their own, in each layout, against the definition.
#[test]
fn voltas_products_are_four() {
    for (la, lb) in [
        ("row", "row"),
        ("row", "col"),
        ("col", "row"),
        ("col", "col"),
    ] {
        for half_sums in [false, true] {
            let (ty, count) = if half_sums { ("f16", 4) } else { ("f32", 8) };
            let list = |first: usize| {
                let names: Vec<String> = (first..first + count).map(|n| format!("%e{n}")).collect();
                names.join(", ")
            };
            let store: String = (0..count)
                .map(|n| format!("st.global.b32 [%d1+{}], %e{n};", 4 * n))
                .collect();
            let mut b = Bench::new(&format!(
                ".visible .entry k(.param .u64 out, .param .u64 in) {{ .reg .b64 %d<4>; .reg .b32 %r<9>; .reg .b32 %e<16>;
                  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; mov.u32 %r1, %laneid; mad.wide.u32 %d1, %r1, 32, %d1;
                  mad.wide.u32 %d2, %r1, 16, %d2; ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%d2];
                  mma.sync.aligned.m8n8k4.{la}.{lb}.{ty}.f16.f16.{ty} {{{}}}, {{%r2, %r3}}, {{%r4, %r5}}, {{{}}};
                  {store} ret; }}",
                list(0),
                list(8),
            ));
            let small = |i: usize| (i * 5 % 7) as i32 - 3;
            let a = |q: usize, m: usize, k: usize| small(100 * q + 4 * m + k);
            let right = |q: usize, k: usize, n: usize| small(50 * q + 31 * k + 3 * n);
            let mut input = Vec::new();
            for lane in 0..32 {
                let (q, upper) = (lane % 16 / 4, lane / 16 * 4);
                for i in 0..4 {
                    input.push(half(match la {
                        "row" => a(q, lane % 4 + upper, i),
                        _ => a(q, i + upper, lane % 4),
                    }));
                }
                for i in 0..4 {
                    input.push(half(match lb {
                        "row" => right(q, lane % 4, i + upper),
                        _ => right(q, i, lane % 4 + upper),
                    }));
                }
            }
            let (out, input) = (b.words(&[0; 256]), b.buffer(&bytes(&input)));
            b.run("k", 1, 32, &[out, input]);
            let found = b.read(out, 256);
            for lane in 0..32 {
                let (q, upper) = (lane % 16 / 4, lane / 16 * 4);
                for i in 0..8 {
                    let (m, n) = match half_sums {
                        true => (lane % 4, i),
                        false => ((lane & 1) + (i & 2), (i & 4) + (lane & 2) + (i & 1)),
                    };
                    let m = m + upper;
                    let sum: i32 = (0..4).map(|k| a(q, m, k) * right(q, k, n)).sum();
                    let (word, expected) = match half_sums {
                        true => (
                            found[8 * lane + i / 2] >> (16 * (i % 2)) & 0xffff,
                            u32::from(half(sum)),
                        ),
                        false => (found[8 * lane + i], (sum as f32).to_bits()),
                    };
                    assert_eq!(word, expected, "{la} {lb} {ty}: lane {lane}, element {i}");
                }
            }
        }
    }
}
