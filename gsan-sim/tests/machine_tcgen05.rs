//! Tensor memory and `tcgen05.mma`: Triton's kernels for sm_100 against the definition of the product, and wrong uses.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::Stop;

const TF32: &str =
    include_str!("../../gsan-ptx/tests/data/corpus/triton_matmul_tf32.sm100.noloc.ptx");
const PERSISTENT: &str = include_str!("data/triton/persistent_matmul.sm100.noloc.ptx");

fn a(i: usize, k: usize) -> i32 {
    (i * 7 + k * 3) as i32 % 5 - 2
}

fn b(k: usize, j: usize) -> i32 {
    (k * 5 + j * 2) as i32 % 7 - 3
}

fn product(m: usize, n: usize, k: usize) -> Vec<i32> {
    (0..m * n)
        .map(|x| (0..k).map(|i| a(x / n, i) * b(i, x % n)).sum())
        .collect()
}

fn half(n: i32) -> u16 {
    let sign = if n < 0 { 0x8000 } else { 0 };
    match n.unsigned_abs() {
        0 => 0,
        a => {
            let e = 31 - a.leading_zeros();
            sign | ((e + 15) << 10) as u16 | ((a << (10 - e)) & 0x3ff) as u16
        }
    }
}

#[test]
fn tf32_through_tensor_memory() {
    // M = 64 lies in the first 16 lanes of each warp.
    for (seed, (m, n, k)) in [(64, 64, 32), (128, 192, 96)].into_iter().enumerate() {
        let mut bench = Bench::with(seeded(seed as u64), TF32);
        assert_eq!(bench.machine.unsupported(bench.module), []);
        let float = |x: i32| (x as f32).to_bits();
        let left: Vec<u32> = (0..m * k).map(|x| float(a(x / k, x % k))).collect();
        let right: Vec<u32> = (0..k * n).map(|x| float(b(x / n, x % n))).collect();
        let (left, right) = (bench.words(&left), bench.words(&right));
        let out = bench.words(&vec![0; m * n]);
        let scratch = bench.words(&[0; 2]);
        let [m64, n64, k64] = [m, n, k].map(|x| x as u64);
        let blocks = (m.div_ceil(64) * n.div_ceil(64)) as u32;
        let args = [
            left, right, out, m64, n64, k64, k64, n64, n64, scratch, scratch,
        ];
        bench.start("matmul", [blocks, 1, 1], [128, 1, 1], 65536, &args);
        bench.finish().unwrap();
        let expected: Vec<u32> = product(m, n, k).into_iter().map(float).collect();
        assert!(bench.read(out, m * n) == expected, "{m} × {n} × {k}");
    }
}

#[test]
fn halves_through_tensor_memory() {
    let (m, n, k) = (128, 128, 128);
    let mut bench = Bench::new(PERSISTENT);
    assert_eq!(bench.machine.unsupported(bench.module), []);
    let bytes = |values: Vec<i32>| -> Vec<u8> {
        values
            .into_iter()
            .flat_map(|x| half(x).to_le_bytes())
            .collect()
    };
    let left = bytes((0..m * k).map(|x| a(x / k, x % k)).collect());
    let right = bytes((0..k * n).map(|x| b(x / n, x % n)).collect());
    let (left, right) = (bench.buffer(&left), bench.buffer(&right));
    let out = bench.words(&vec![0; m * n / 2]);
    let scratch = bench.words(&[0; 2]);
    let [m64, n64, k64] = [m, n, k].map(|x| x as u64);
    let args = [
        left, right, out, m64, n64, k64, k64, n64, n64, scratch, scratch,
    ];
    bench.start("persistent_matmul", [1, 1, 1], [256, 1, 1], 200_704, &args);
    bench.finish().unwrap();
    let expected = bytes(product(m, n, k));
    let mut found = vec![0; 2 * m * n];
    bench.machine.memory().read(out, &mut found).unwrap();
    assert!(found == expected);
}

/// Small numbers, and the bytes that stand for them.
const E4M3: [(f32, u8); 8] = [
    (0.0, 0),
    (1.0, 0x38),
    (-1.0, 0xb8),
    (2.0, 0x40),
    (-2.0, 0xc0),
    (3.0, 0x44),
    (0.5, 0x30),
    (1.5, 0x3c),
];
const E5M2: [(f32, u8); 8] = [
    (0.0, 0),
    (1.0, 0x3c),
    (-1.0, 0xbc),
    (2.0, 0x40),
    (-2.0, 0xc0),
    (3.0, 0x42),
    (0.5, 0x38),
    (1.5, 0x3e),
];
const E2M1: [(f32, u8); 8] = [
    (0.0, 8),
    (0.5, 1),
    (-1.0, 10),
    (1.5, 3),
    (-2.0, 12),
    (3.0, 5),
    (4.0, 6),
    (-6.0, 15),
];

/// Triton's `dot_scaled`: a factor for 32 elements of a row of A and of a column of B, fp8 and fp4, alone and together.
#[test]
fn blocks_have_factors() {
    for (text, k, types, shared) in [
        (
            include_str!("data/triton/dot_scaled_fp8.sm100.noloc.ptx"),
            64,
            [E5M2, E4M3],
            16_384,
        ),
        (
            include_str!("data/triton/dot_scaled_fp4.sm100.noloc.ptx"),
            128,
            [E2M1, E2M1],
            16_384,
        ),
        (
            include_str!("data/triton/dot_scaled_mixed.sm100.noloc.ptx"),
            128,
            [E2M1, E4M3],
            20_992,
        ),
    ] {
        let (m, n) = (128, 32);
        let mut bench = Bench::new(text);
        assert_eq!(bench.machine.unsupported(bench.module), []);
        let element = |side: usize, line: usize, i: usize| {
            types[side][(line * 5 + i * 3 + i / 8 + 7 * side) % 8]
        };
        let power = |side: usize, line: usize, block: usize| (line * 3 + block * 5 + side) % 7;
        let mut arguments = Vec::new();
        for (side, lines) in [m, n].into_iter().enumerate() {
            let all = (0..lines * k).map(|x| element(side, x / k, x % k).1);
            let all: Vec<u8> = all.collect();
            // Two of four bits in a byte, the first one below.
            let bytes = match types[side] == E2M1 {
                true => all.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect(),
                false => all,
            };
            arguments.push(bench.buffer(&bytes));
            let blocks = k / 32;
            let factors: Vec<u8> = (0..lines * blocks)
                .map(|x| 124 + power(side, x / blocks, x % blocks) as u8)
                .collect();
            arguments.push(bench.buffer(&factors));
        }
        let out = bench.words(&vec![0; m * n]);
        let scratch = bench.words(&[0; 2]);
        arguments.extend([out, scratch, scratch]);
        bench.start("dot_scaled", [1; 3], [128, 1, 1], shared, &arguments);
        bench.finish().unwrap();
        for (at, found) in bench.read(out, m * n).into_iter().enumerate() {
            let (row, column) = (at / n, at % n);
            let value = |side: usize, line: usize, i: usize| {
                let factor = 2f32.powi(power(side, line, i / 32) as i32 - 3);
                element(side, line, i).0 * factor
            };
            let expected: f32 = (0..k).map(|i| value(0, row, i) * value(1, column, i)).sum();
            assert_eq!(f32::from_bits(found), expected, "({row}, {column}) of {k}");
        }
    }
}

const HEADER: &str = ".version 8.6\n.target sm_100a\n.address_size 64\n";

#[test]
fn what_is_stored_is_loaded() {
    // Each warp fills its 32 lanes and reads them back in another shape: 16 lanes and 8 columns.
    let mut bench = Bench::new(&format!(
        "{HEADER}.visible .entry k(.param .u64 out) {{
           .reg .b64 %d<4>; .reg .b32 %r<30>; .reg .pred %p<2>; .shared .align 8 .b8 s[8];
           ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, s; setp.eq.u32 %p1, %r2, 0;
           @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], 32; bar.sync 0; ld.shared.b32 %r4, [%r3];
           shl.b32 %r5, %r2, 21; add.u32 %r6, %r4, %r5; mul.lo.u32 %r10, %r1, 100;
           add.u32 %r11, %r10, 1; add.u32 %r12, %r10, 2; add.u32 %r13, %r10, 3; add.u32 %r14, %r10, 4; add.u32 %r15, %r10, 5;
           add.u32 %r16, %r10, 6; add.u32 %r17, %r10, 7;
           tcgen05.st.sync.aligned.32x32b.x8.b32 [%r6], {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}};
           tcgen05.wait::st.sync.aligned;
           tcgen05.ld.sync.aligned.16x256b.x1.b32 {{%r20, %r21, %r22, %r23}}, [%r6];
           tcgen05.ld.sync.aligned.16x128b.x1.b32 {{%r24, %r25}}, [%r6+4]; tcgen05.wait::ld.sync.aligned;
           mad.wide.u32 %d1, %r1, 24, %d1; st.global.v2.b32 [%d1], {{%r20, %r21}}; st.global.v2.b32 [%d1+8], {{%r22, %r23}};
           st.global.v2.b32 [%d1+16], {{%r24, %r25}}; bar.sync 0;
           @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32; ret; }}"
    ));
    assert_eq!(bench.machine.unsupported(bench.module), []);
    let out = bench.words(&[0; 128 * 6]);
    bench.run("k", 1, 128, &[out]);
    let found = bench.read(out, 128 * 6);
    for (thread, r) in found.chunks(6).enumerate() {
        let (warp, row, t) = (thread / 32, thread % 32 / 4, thread % 4);
        let value = |lane: usize, column: usize| ((32 * warp + lane) * 100 + column) as u32;
        let expected = [
            value(row, 2 * t),
            value(row, 2 * t + 1),
            value(row + 8, 2 * t),
            value(row + 8, 2 * t + 1),
            value(row, 4 + t),
            value(row + 8, 4 + t),
        ];
        assert_eq!(r, expected, "thread {thread}");
    }
}

#[test]
fn wrong_uses_of_tensor_memory_are_faults() {
    for (body, word) in [
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 48;",
            "48 columns",
        ),
        (
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r3];",
            "not allocated",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
            "nobody else",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32; mov.u32 %r3, 0x200000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r3];",
            "of warp 0",
        ),
        (
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;",
            "not what was allocated",
        ),
    ] {
        let mut bench = Bench::new(&format!(
            "{HEADER}.visible .entry k() {{ .reg .b32 %r<9>; .shared .align 8 .b8 s[8]; mov.u32 %r1, s; mov.u32 %r3, 0; {body} ret; }}"
        ));
        let stop = bench.try_run("k", 1, 32, &[]).unwrap_err();
        assert!(matches!(stop, Stop::Fault { .. }), "{stop}");
        assert!(stop.to_string().contains(word), "{stop}");
    }
}

/// As CUTLASS writes it: with a list of lanes that are left alone, and a hint for the collector.
#[test]
fn lanes_of_a_product_are_masked() {
    let (m, n, k) = (64, 64, 32);
    for (mask, first) in [(0u32, 64), (0xffff_ffff, 16)] {
        let text = TF32.replace("kind::tf32 [ ", "kind::tf32.collector::a::lastuse [ ");
        let text: Vec<String> = text
            .lines()
            .map(
                |line| match (line.contains("tcgen05.mma"), line.rsplit_once(", ")) {
                    // Lanes of the second warp and of those behind it.
                    (true, Some((before, predicate))) => {
                        format!("{before}, {{0, {mask}, {mask}, {mask}}}, {predicate}")
                    }
                    _ => line.to_string(),
                },
            )
            .collect();
        let mut bench = Bench::new(&text.join("\n"));
        assert_eq!(bench.machine.unsupported(bench.module), []);
        let float = |x: i32| (x as f32).to_bits();
        let left: Vec<u32> = (0..m * k).map(|x| float(a(x / k, x % k))).collect();
        let right: Vec<u32> = (0..k * n).map(|x| float(b(x / n, x % n))).collect();
        let (left, right) = (bench.words(&left), bench.words(&right));
        let out = bench.words(&vec![0; m * n]);
        let scratch = bench.words(&[0; 2]);
        let [m64, n64, k64] = [m, n, k].map(|x| x as u64);
        let args = [
            left, right, out, m64, n64, k64, k64, n64, n64, scratch, scratch,
        ];
        bench.start("matmul", [1, 1, 1], [128, 1, 1], 65536, &args);
        bench.finish().unwrap();
        let expected: Vec<u32> = product(m, n, k).into_iter().map(float).collect();
        let found = bench.read(out, m * n);
        assert!(found[..first * n] == expected[..first * n], "{mask:x}");
        assert!(first == m || found[first * n..] != expected[first * n..]);
    }
}
