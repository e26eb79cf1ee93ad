//! `wgmma` against the definition of the product, with matrices laid out in shared memory as CUTLASS has its atoms.

mod common;

use common::{Bench, seeded};

/// How a matrix lies in shared memory, in CUTLASS's words: lines of `line` bytes (16: no swizzle), along K or along M/N.
#[derive(Clone, Copy)]
struct Layout {
    line: u64,
    transposed: bool,
    leading: u64,
    stride: u64,
}

impl Layout {
    /// Where the byte of element (i, k) lies; `size` bytes each. Written from the canonical layouts in units of 16 bytes:
    /// along K `((8,n),2):((line,SBO),1 or LBO)`, across it `((line,n),(8,k))`, then `Swizzle<b,4,3>`.
    fn place(&self, i: u64, k: u64, size: u64) -> u64 {
        let units = self.line / 16;
        let per = 16 / size;
        let offset = if self.transposed {
            let (unit, within) = (i / per, i % per);
            let (inner, outer) = (unit % units, unit / units);
            let (line, block) = (k % 8, k / 8);
            let (m, n) = if units == 1 {
                (self.stride, self.leading)
            } else {
                (self.leading, self.stride)
            };
            16 * (inner + units * line) + outer * m + block * n + within * size
        } else {
            let (unit, within) = (k / per, k % per);
            let step = if units == 1 { self.leading } else { 16 };
            16 * units * (i % 8) + i / 8 * self.stride + unit * step + within * size
        };
        let bits = units.trailing_zeros();
        let chosen = offset >> 7 & ((1 << bits) - 1);
        offset ^ chosen << 4
    }

    fn descriptor(&self) -> u64 {
        let mode = match self.line {
            16 => 0,
            128 => 1,
            64 => 2,
            _ => 3u64,
        };
        self.leading >> 4 << 16 | self.stride >> 4 << 32 | mode << 62
    }
}

struct Case {
    /// `f32.f16.f16` and so on.
    types: &'static str,
    n: u64,
    k: u64,
    /// Bytes of an element.
    size: u64,
    a: Layout,
    b: Layout,
    /// Signs and transpositions, as the instruction has them.
    tail: &'static str,
    encode: fn(i64) -> u64,
    /// Registers of D per lane and whether they are floats.
    registers: u64,
    signs: i64,
}

fn half(n: i64) -> u64 {
    if n == 0 {
        return 0;
    }
    let a = n.unsigned_abs();
    let e = 63 - u64::from(a.leading_zeros());
    u64::from(n < 0) << 15 | (e + 15) << 10 | (a << (10 - e) & 0x3ff)
}

fn value_a(m: u64, k: u64) -> i64 {
    (m * 5 + k * 3) as i64 % 7 - 3
}

fn value_b(k: u64, n: u64) -> i64 {
    (n * 3 + k * 5) as i64 % 5 - 2
}

fn kernel(c: &Case) -> String {
    let list = |from: u64| {
        (0..c.registers)
            .map(|r| format!("%r{}", from + r))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut store = String::new();
    for r in 0..c.registers {
        store += &format!("st.global.b32 [%d5+{}], %r{};\n", 4 * r, 20 + r);
    }
    let float = c.types.starts_with("f32");
    let ty = if float { ".f32 %r" } else { ".b32 %r" };
    format!(
        ".visible .entry k(.param .u64 image, .param .u64 out, .param .u64 da, .param .u64 db) {{
           .reg .b64 %d<9>; .reg .b32 %i<9>; .reg {ty}<200>; .reg .pred %p<3>; .shared .align 1024 .b8 s[65536];
           ld.param.u64 %d1, [image]; ld.param.u64 %d2, [out]; ld.param.u64 %d3, [da]; ld.param.u64 %d4, [db];
           mov.u32 %i1, %tid.x; mov.u32 %i2, s; mul.lo.u32 %i3, %i1, 4; cvt.u64.u32 %d6, %i3; add.u64 %d1, %d1, %d6;
           add.u32 %i4, %i2, %i3; mov.u32 %i5, 0;
        L: ld.global.b32 %i6, [%d1]; st.shared.b32 [%i4], %i6; add.u64 %d1, %d1, 512; add.u32 %i4, %i4, 512;
           add.u32 %i5, %i5, 512; setp.lt.u32 %p1, %i5, 65536; @%p1 bra L;
           fence.proxy.async.shared::cta; bar.sync 0;
           shr.u32 %i2, %i2, 4; cvt.u64.u32 %d6, %i2; add.u64 %d3, %d3, %d6; add.u64 %d4, %d4, %d6;
           setp.ne.u32 %p2, 0, 0;
           wgmma.fence.sync.aligned;
           wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} {{{d}}}, %d3, %d4, %p2{tail};
           setp.eq.u32 %p2, 0, 0;
           wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} {{{d}}}, %d3, %d4, %p2{tail};
           wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
           mul.lo.u32 %i3, %i1, {bytes}; cvt.u64.u32 %d5, %i3; add.u64 %d5, %d2, %d5;
           {store} ret; }}",
        n = c.n,
        k = c.k,
        types = c.types,
        d = list(20),
        tail = c.tail,
        bytes = 4 * c.registers,
    )
}

/// B's image starts here.
const B: u64 = 32 << 10;

fn check(c: &Case, seed: u64) {
    let mut image = vec![0u8; 64 << 10];
    let mut put = |at: u64, value: i64| {
        let bytes = (c.encode)(value).to_le_bytes();
        image[at as usize..][..c.size as usize].copy_from_slice(&bytes[..c.size as usize]);
    };
    for k in 0..c.k {
        (0..64).for_each(|m| put(c.a.place(m, k, c.size), value_a(m, k)));
        (0..c.n).for_each(|n| put(B + c.b.place(n, k, c.size), value_b(k, n)));
    }
    let mut bench = Bench::with(seeded(seed), &kernel(c));
    assert_eq!(bench.machine.unsupported(bench.module), []);
    let image = bench.buffer(&image);
    let words = (128 * c.registers) as usize;
    let out = bench.words(&vec![0; words]);
    let (da, db) = (c.a.descriptor(), c.b.descriptor() + (B >> 4));
    bench.run("k", 1, 128, &[image, out, da, db]);
    let r = bench.read(out, words);
    for m in 0..64u64 {
        for n in 0..c.n {
            // Twice: without and with what was there.
            let sum: i64 = (0..c.k).map(|k| value_a(m, k) * value_b(k, n)).sum();
            let sum = 2 * c.signs * sum;
            let thread = 32 * (m / 16) + 4 * (m % 8) + n % 8 / 2;
            let index = n / 8 * 4 + m % 16 / 8 * 2 + n % 2;
            let found = if c.types.starts_with("f16") {
                u64::from(r[(thread * c.registers + index / 2) as usize]) >> (16 * (index % 2))
                    & 0xffff
            } else {
                u64::from(r[(thread * c.registers + index) as usize])
            };
            let expected = match &c.types[..3] {
                "f32" => u64::from((sum as f32).to_bits()),
                "f16" => half(sum),
                _ => u64::from(sum as i32 as u32),
            };
            assert_eq!(found, expected, "{} line {} ({m}, {n})", c.types, c.a.line);
        }
    }
}

fn along_k(line: u64) -> Layout {
    // Without swizzle: two core matrices side by side, then the next eight rows.
    Layout {
        line,
        transposed: false,
        leading: if line == 16 { 128 } else { 16 },
        stride: if line == 16 { 256 } else { 8 * line },
    }
}

/// 16-bit elements across K, for `extent` elements of M or N.
fn across_k(line: u64, extent: u64) -> Layout {
    let blocks = (2 * extent).div_ceil(line);
    let (leading, stride) = if line == 16 {
        (128 * blocks, 128)
    } else {
        (8 * line, 8 * line * blocks)
    };
    Layout {
        line,
        transposed: true,
        leading,
        stride,
    }
}

#[test]
fn halves_in_every_layout() {
    for (seed, line) in [16, 32, 64, 128].into_iter().enumerate() {
        for (a_across, b_across, tail) in [
            (false, false, ", 1, 1, 0, 0"),
            (true, false, ", 1, 1, 1, 0"),
            (false, true, ", -1, 1, 0, 1"),
            (true, true, ", -1, -1, 1, 1"),
        ] {
            let layout = |across, extent| {
                if across {
                    across_k(line, extent)
                } else {
                    along_k(line)
                }
            };
            check(
                &Case {
                    types: "f32.f16.f16",
                    n: 64,
                    k: 16,
                    size: 2,
                    a: layout(a_across, 64),
                    b: layout(b_across, 64),
                    tail,
                    encode: half,
                    registers: 32,
                    signs: if tail.starts_with(", -1, 1") { -1 } else { 1 },
                },
                seed as u64,
            );
        }
    }
}

#[test]
fn every_type_multiplies() {
    let bf16 = |n: i64| u64::from((n as f32).to_bits() >> 16);
    let tf32 = |n: i64| u64::from((n as f32).to_bits());
    let e5m2 = |n: i64| half(n) >> 8;
    // Exact for |n| ≤ 15: three bits of mantissa, bias 7.
    let e4m3 = |n: i64| {
        let h = half(n);
        if n == 0 {
            0
        } else {
            h >> 15 << 7 | ((h >> 10 & 31) - 8) << 3 | h >> 7 & 7
        }
    };
    let byte = |n: i64| n as u8 as u64;
    let case = |types, k, size, encode: fn(i64) -> u64, registers, tail| Case {
        types,
        n: 8 * registers / if registers == 2 { 2 } else { 4 },
        k,
        size,
        a: along_k(128),
        b: along_k(32),
        tail,
        encode,
        registers,
        signs: 1,
    };
    check(&case("f32.bf16.bf16", 16, 2, bf16, 48, ", 1, 1, 0, 0"), 1);
    check(&case("f32.tf32.tf32", 8, 4, tf32, 20, ", 1, 1"), 2);
    check(&case("f32.e5m2.e5m2", 32, 1, e5m2, 128, ", 1, 1"), 3);
    check(&case("f32.e4m3.e4m3", 32, 1, e4m3, 4, ", 1, 1"), 5);
    check(&case("f16.f16.f16", 16, 2, half, 2, ", 1, 1, 0, 0"), 6);
    check(&case("s32.s8.s8", 32, 1, byte, 8, ""), 7);
}
