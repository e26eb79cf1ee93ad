//! Every arithmetic instruction against a plain Rust formula, over values at the edges of its type.

mod common;

use common::Bench;

/// Values that find mistakes: zero, ones, signs, edges of each width, and some noise.
fn values() -> Vec<u64> {
    let mut v = vec![
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        127,
        128,
        255,
        256,
        0x7fff,
        0x8000,
        0xffff,
        0x1_0000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0000,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
        u64::MAX - 1,
        0xffff_ffff_8000_0000,
    ];
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..33 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        v.push(x);
    }
    v
}

/// Floats as bits: zeros, ones, subnormals, infinities, NaN, noise.
fn floats() -> Vec<u64> {
    let mut v: Vec<f32> = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        0.1,
        1e-3,
        1e10,
        -1e10,
        1e30,
        1e-30,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::from_bits(0x8000_0001),
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        16_777_217.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        4_294_967_296.0,
        65_504.0,
        65_520.0,
        0.333_333_34,
        255.5,
        -0.5,
    ];
    let mut x = 0x1234_5678u32;
    for _ in 0..32 {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        v.push((x as f32 / 1e9 - 2.0) * if x & 1 == 0 { 1.0 } else { 1e-5 });
    }
    v.iter().map(|f| u64::from(f.to_bits())).collect()
}

fn doubles() -> Vec<u64> {
    floats()
        .iter()
        .map(|&b| f64::from(f32::from_bits(b as u32)).to_bits())
        .collect()
}

/// Runs `op d, a, b, c;` for all triples that the lists give when they are walked at different speeds; `kinds` are the
/// register types of d, a, b, c (`h` 16, `r` 32, `d` 64 bits, `p` a predicate result).
fn run(op: &str, kinds: &str, a: &[u64], b: &[u64], c: &[u64]) -> Vec<(u64, u64, u64, u64)> {
    let count = 4096usize;
    let pick = |n: usize| {
        (
            a[n % a.len()],
            b[(n / a.len() * 7 + n) % b.len()],
            c[(n * 5 + n / 3) % c.len()],
        )
    };
    let kinds: Vec<char> = kinds.chars().collect();
    let mut load = String::new();
    let mut names = Vec::new();
    for (i, k) in kinds.iter().enumerate().skip(1) {
        let (ty, name) = match k {
            'h' => ("u16", format!("%h{i}")),
            'r' => ("u32", format!("%r{i}")),
            _ => ("u64", format!("%d{i}")),
        };
        load += &format!("ld.global.{ty} {name}, [%x+{}];\n", 8 * (i - 1));
        names.push(name);
    }
    let (result, store) = match kinds[0] {
        'h' => ("%h0".to_string(), "cvt.u64.u16 %d0, %h0;"),
        'r' => ("%r0".to_string(), "cvt.u64.u32 %d0, %r0;"),
        'p' => ("%p0".to_string(), "selp.u64 %d0, 1, 0, %p0;"),
        _ => ("%d0".to_string(), ""),
    };
    let code = format!(
        ".visible .entry k(.param .u64 in, .param .u64 out) {{
         .reg .b16 %h<5>; .reg .b32 %r<5>; .reg .b64 %d<5>; .reg .b64 %x, %y, %i; .reg .b32 %t, %n, %b; .reg .pred %p<3>;
         ld.param.u64 %x, [in]; ld.param.u64 %y, [out];
         mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %t, %b, %n, %t;
         mad.wide.u32 %x, %t, 24, %x; mad.wide.u32 %y, %t, 8, %y;
         {load}
         {op} {result}, {};
         {store}
         st.global.u64 [%y], %d0; ret; }}",
        names.join(", ")
    );
    let mut bench = Bench::new(&code);
    assert!(
        bench.machine.unsupported(bench.module).is_empty(),
        "{op} is not supported"
    );
    let mut input = Vec::new();
    for n in 0..count {
        let (x, y, z) = pick(n);
        for v in [x, y, z] {
            input.extend(v.to_le_bytes());
        }
    }
    let input = bench.buffer(&input);
    let output = bench.buffer(&vec![0; 8 * count]);
    bench.run("k", (count / 128) as u32, 128, &[input, output]);
    let results = bench.read64(output, count);
    results
        .into_iter()
        .enumerate()
        .map(|(n, r)| {
            let (x, y, z) = pick(n);
            (r, x, y, z)
        })
        .collect()
}

fn check(op: &str, kinds: &str, formula: impl Fn(u64, u64, u64) -> u64) {
    let v = values();
    for (r, a, b, c) in run(op, kinds, &v, &v, &v) {
        let expected = formula(a, b, c);
        assert_eq!(
            r, expected,
            "{op} of {a:#x}, {b:#x}, {c:#x}: {r:#x}, not {expected:#x}"
        );
    }
}

fn check_f32(op: &str, kinds: &str, formula: impl Fn(f32, f32, f32) -> f32) {
    let v = floats();
    for (r, a, b, c) in run(op, kinds, &v, &v, &v) {
        let [x, y, z] = [a, b, c].map(|b| f32::from_bits(b as u32));
        let e = formula(x, y, z);
        // By its bits: a NaN that the compiler folds has another sign than one that the processor makes, and `is_nan` of
        // `sqrt` was seen folded to false.
        let bits = e.to_bits();
        let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
        let expected = if is_nan { 0x7fff_ffff } else { bits };
        assert_eq!(
            r as u32,
            expected,
            "{op} of {x:e}, {y:e}, {z:e}: {:e}, not {e:e}",
            f32::from_bits(r as u32)
        );
    }
}

fn check_f64(op: &str, kinds: &str, formula: impl Fn(f64, f64, f64) -> f64) {
    let v = doubles();
    for (r, a, b, c) in run(op, kinds, &v, &v, &v) {
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let (r, e) = (f64::from_bits(r), formula(x, y, z));
        assert!(
            r.to_bits() == e.to_bits() || (r.is_nan() && e.is_nan()),
            "{op} of {x:e}, {y:e}, {z:e}: {r:e}, not {e:e}"
        );
    }
}

const U32: fn(u64) -> u64 = |x| x & 0xffff_ffff;
const U16: fn(u64) -> u64 = |x| x & 0xffff;

#[test]
fn sums_and_products() {
    check("add.s32", "rrr", |a, b, _| U32(a.wrapping_add(b)));
    check("add.u64", "ddd", |a, b, _| a.wrapping_add(b));
    check("add.s16", "hhh", |a, b, _| U16(a.wrapping_add(b)));
    check("sub.u32", "rrr", |a, b, _| U32(a.wrapping_sub(b)));
    check("sub.s64", "ddd", |a, b, _| a.wrapping_sub(b));
    check("add.sat.s32", "rrr", |a, b, _| {
        u64::from((a as i32).saturating_add(b as i32) as u32)
    });
    check("sub.sat.s32", "rrr", |a, b, _| {
        u64::from((a as i32).saturating_sub(b as i32) as u32)
    });
    check("mul.lo.s32", "rrr", |a, b, _| U32(a.wrapping_mul(b)));
    check("mul.lo.u64", "ddd", |a, b, _| a.wrapping_mul(b));
    check("mul.lo.u16", "hhh", |a, b, _| U16(a.wrapping_mul(b)));
    check("mul.hi.u32", "rrr", |a, b, _| (U32(a) * U32(b)) >> 32);
    check("mul.hi.s32", "rrr", |a, b, _| {
        U32(((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u64)
    });
    check("mul.hi.u64", "ddd", |a, b, _| {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    });
    check("mul.hi.s64", "ddd", |a, b, _| {
        ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
    });
    check("mul.wide.u16", "rhh", |a, b, _| U16(a) * U16(b));
    check("mul.wide.s16", "rhh", |a, b, _| {
        U32((i64::from(a as i16) * i64::from(b as i16)) as u64)
    });
    check("mul.wide.s32", "drr", |a, b, _| {
        (i64::from(a as i32) * i64::from(b as i32)) as u64
    });
    check("mul.wide.u32", "drr", |a, b, _| U32(a) * U32(b));
    check("mad.lo.s32", "rrrr", |a, b, c| {
        U32(a.wrapping_mul(b).wrapping_add(c))
    });
    check("mad.lo.u64", "dddd", |a, b, c| {
        a.wrapping_mul(b).wrapping_add(c)
    });
    check("mad.hi.u32", "rrrr", |a, b, c| {
        U32(((U32(a) * U32(b)) >> 32).wrapping_add(c))
    });
    check("mad.wide.s32", "drrd", |a, b, c| {
        ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)
    });
    check("mad.wide.u16", "rhhr", |a, b, c| {
        U32((U16(a) * U16(b)).wrapping_add(c))
    });
    check("mul24.lo.u32", "rrr", |a, b, _| {
        U32((a & 0xff_ffff) * (b & 0xff_ffff))
    });
    check("mad24.lo.s32", "rrrr", |a, b, c| {
        let s = |x: u64| i64::from(((x as u32) << 8) as i32 >> 8);
        U32((s(a) * s(b)) as u64).wrapping_add(c) & 0xffff_ffff
    });
}

#[test]
fn saturated_integers_are_packed() {
    let clamp = |x: u64, bits: u32, signed: bool| {
        let x = i64::from(x as u32 as i32);
        let (least, most) = match signed {
            true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            false => (0, (1i64 << bits) - 1),
        };
        x.max(least).min(most) as u64 & ((1 << bits) - 1)
    };
    for (name, bits, signed) in [("u16", 16, false), ("s16", 16, true)] {
        check(&format!("cvt.pack.sat.{name}.s32"), "rrr", |a, b, _| {
            clamp(a, bits, signed) << bits | clamp(b, bits, signed)
        });
    }
    let narrow = [
        ("u8", 8, false),
        ("s8", 8, true),
        ("u4", 4, false),
        ("s4", 4, true),
        ("u2", 2, false),
        ("s2", 2, true),
    ];
    for (name, bits, signed) in narrow {
        check(
            &format!("cvt.pack.sat.{name}.s32.b32"),
            "rrrr",
            |a, b, c| {
                let pair = clamp(a, bits, signed) << bits | clamp(b, bits, signed);
                (c << (2 * bits) | pair) & 0xffff_ffff
            },
        );
    }
}

#[test]
fn quotients_and_comparisons_of_integers() {
    check("div.u32", "rrr", |a, b, _| {
        if U32(b) == 0 {
            0xffff_ffff
        } else {
            U32(a) / U32(b)
        }
    });
    check("div.s32", "rrr", |a, b, _| match b as i32 {
        0 => 0xffff_ffff,
        d => u64::from((a as i32).wrapping_div(d) as u32),
    });
    check("rem.s64", "ddd", |a, b, _| match b as i64 {
        0 => u64::MAX,
        d => (a as i64).wrapping_rem(d) as u64,
    });
    check("rem.u32", "rrr", |a, b, _| {
        if U32(b) == 0 {
            0xffff_ffff
        } else {
            U32(a) % U32(b)
        }
    });
    check("div.u16", "hhh", |a, b, _| {
        if U16(b) == 0 { 0xffff } else { U16(a) / U16(b) }
    });
    check("min.s32", "rrr", |a, b, _| {
        u64::from((a as i32).min(b as i32) as u32)
    });
    check("max.u32", "rrr", |a, b, _| U32(a).max(U32(b)));
    check("max.s64", "ddd", |a, b, _| (a as i64).max(b as i64) as u64);
    check("min.u16", "hhh", |a, b, _| U16(a).min(U16(b)));
    check("abs.s32", "rr", |a, _, _| {
        u64::from((a as i32).wrapping_abs() as u32)
    });
    check("neg.s64", "dd", |a, _, _| a.wrapping_neg());
    check("neg.s16", "hh", |a, _, _| U16(a.wrapping_neg()));
    check("sad.u32", "rrrr", |a, b, c| {
        U32(U32(a).abs_diff(U32(b)).wrapping_add(c))
    });
    check("sad.s32", "rrrr", |a, b, c| {
        U32(u64::from((a as i32).abs_diff(b as i32)).wrapping_add(c))
    });
    check("setp.lt.s32", "prr", |a, b, _| {
        u64::from((a as i32) < (b as i32))
    });
    check("setp.lo.u32", "prr", |a, b, _| u64::from(U32(a) < U32(b)));
    check("setp.ge.u64", "pdd", |a, b, _| u64::from(a >= b));
    check("setp.ne.s16", "phh", |a, b, _| u64::from(U16(a) != U16(b)));
    check("setp.gt.s16", "phh", |a, b, _| {
        u64::from(a as i16 > b as i16)
    });
    check("setp.eq.b64", "pdd", |a, b, _| u64::from(a == b));
    check("set.le.u32.s32", "rrr", |a, b, _| {
        if a as i32 <= b as i32 { 0xffff_ffff } else { 0 }
    });
    check("set.gt.f32.u32", "rrr", |a, b, _| {
        if U32(a) > U32(b) { 0x3f80_0000 } else { 0 }
    });
    check("slct.u32.s32", "rrrr", |a, b, c| {
        if c as i32 >= 0 { U32(a) } else { U32(b) }
    });
    check("dp4a.s32.s32", "rrrr", |a, b, c| {
        let s: i32 = (0..4)
            .map(|i| i32::from((a >> (8 * i)) as i8) * i32::from((b >> (8 * i)) as i8))
            .sum();
        u64::from((c as i32).wrapping_add(s) as u32)
    });
    check("dp4a.u32.u32", "rrrr", |a, b, c| {
        let s: u32 = (0..4)
            .map(|i| u32::from((a >> (8 * i)) as u8) * u32::from((b >> (8 * i)) as u8))
            .sum();
        u64::from((c as u32).wrapping_add(s))
    });
    check("dp2a.lo.u32.s32", "rrrr", |a, b, c| {
        let s: i32 = (0..2)
            .map(|i| i32::from((a >> (16 * i)) as u16) * i32::from((b >> (8 * i)) as i8))
            .sum();
        u64::from((c as i32).wrapping_add(s) as u32)
    });
}

#[test]
fn logic_shifts_and_fields() {
    check("and.b32", "rrr", |a, b, _| U32(a & b));
    check("or.b64", "ddd", |a, b, _| a | b);
    check("xor.b16", "hhh", |a, b, _| U16(a ^ b));
    check("not.b32", "rr", |a, _, _| U32(!a));
    check("not.b16", "hh", |a, _, _| U16(!a));
    check("cnot.b32", "rr", |a, _, _| u64::from(U32(a) == 0));
    check("shl.b32", "rrr", |a, b, _| {
        if U32(b) > 31 { 0 } else { U32(a << U32(b)) }
    });
    check(
        "shl.b64",
        "ddr",
        |a, b, _| if U32(b) > 63 { 0 } else { a << U32(b) },
    );
    check("shl.b16", "hhr", |a, b, _| {
        if U32(b) > 15 { 0 } else { U16(a << U32(b)) }
    });
    check("shr.u32", "rrr", |a, b, _| {
        if U32(b) > 31 { 0 } else { U32(a) >> U32(b) }
    });
    check("shr.s32", "rrr", |a, b, _| {
        u64::from((a as i32 >> U32(b).min(31)) as u32)
    });
    check("shr.s64", "ddr", |a, b, _| {
        (a as i64 >> U32(b).min(63)) as u64
    });
    check("shr.s16", "hhr", |a, b, _| {
        U16((i64::from(a as i16) >> U32(b).min(15)) as u64)
    });
    check("shf.l.wrap.b32", "rrrr", |a, b, c| {
        U32(((U32(b) << 32 | U32(a)) << (c & 31)) >> 32)
    });
    check("shf.r.wrap.b32", "rrrr", |a, b, c| {
        U32((U32(b) << 32 | U32(a)) >> (c & 31))
    });
    check("shf.l.clamp.b32", "rrrr", |a, b, c| {
        if U32(c) >= 32 {
            U32(a)
        } else {
            U32(((U32(b) << 32 | U32(a)) << c) >> 32)
        }
    });
    check("shf.r.clamp.b32", "rrrr", |a, b, c| {
        U32((U32(b) << 32 | U32(a)) >> U32(c).min(32))
    });
    check("popc.b32", "rr", |a, _, _| {
        u64::from((a as u32).count_ones())
    });
    check("popc.b64", "rd", |a, _, _| u64::from(a.count_ones()));
    check("clz.b32", "rr", |a, _, _| {
        u64::from((a as u32).leading_zeros())
    });
    check("clz.b64", "rd", |a, _, _| u64::from(a.leading_zeros()));
    check("brev.b32", "rr", |a, _, _| {
        u64::from((a as u32).reverse_bits())
    });
    check("brev.b64", "dd", |a, _, _| a.reverse_bits());
    check("bfind.u32", "rr", |a, _, _| {
        (0..32)
            .rev()
            .find(|i| a >> i & 1 == 1)
            .map_or(0xffff_ffff, |i| i)
    });
    check("bfind.s32", "rr", |a, _, _| {
        let sign = a >> 31 & 1;
        (0..31)
            .rev()
            .find(|i| a >> i & 1 != sign)
            .map_or(0xffff_ffff, |i| i)
    });
    check("bfind.shiftamt.u64", "rd", |a, _, _| {
        (0..64)
            .rev()
            .find(|i| a >> i & 1 == 1)
            .map_or(0xffff_ffff, |i| 63 - i)
    });
    let field = |bits: u64, width: u64, signed: bool, a: u64, b: u64, c: u64| {
        // Bit by bit, as the manual has it.
        let (pos, len) = (b & 0xff, c & 0xff);
        let sign = signed && len > 0 && a >> (pos + len - 1).min(width - 1) & 1 == 1;
        let out = (0..width).fold(0, |r, i| {
            let bit = if i < len && pos + i < width {
                a >> (pos + i) & 1
            } else {
                u64::from(sign)
            };
            r | bit << i
        });
        out & bits
    };
    check("bfe.u32", "rrrr", |a, b, c| {
        field(0xffff_ffff, 32, false, a, b, c)
    });
    check("bfe.s32", "rrrr", |a, b, c| {
        field(0xffff_ffff, 32, true, a, b, c)
    });
    check("bfe.u64", "ddrr", |a, b, c| {
        field(u64::MAX, 64, false, a, b, c)
    });
    check("bfe.s64", "ddrr", |a, b, c| {
        field(u64::MAX, 64, true, a, b, c)
    });
    check("prmt.b32", "rrrr", |a, b, c| {
        let bytes = U32(b) << 32 | U32(a);
        (0..4).fold(0, |r, i| {
            let s = c >> (4 * i) & 15;
            let byte = bytes >> (8 * (s & 7)) & 0xff;
            let byte = if s & 8 == 0 {
                byte
            } else if byte & 0x80 != 0 {
                0xff
            } else {
                0
            };
            r | byte << (8 * i)
        })
    });
}

/// Instructions whose operands are no plain list: the whole text, with %r1 %r2 %r3 (or %d…) in and %r0 (or %d0) out.
fn check_text(text: &str, formula: impl Fn(u32, u32, u32) -> u32) {
    let v = values();
    // The result operand of the harness's instruction is a copy of what the text leaves in %r0.
    let op = format!("{text} mov.b32");
    for (r, a, b, c) in run_last(&op, &v) {
        let (a, b, c) = (a as u32, b as u32, c as u32);
        assert_eq!(
            r as u32,
            formula(a, b, c),
            "{text} of {a:#x}, {b:#x}, {c:#x}"
        );
    }
}

fn run_last(op: &str, v: &[u64]) -> Vec<(u64, u64, u64, u64)> {
    let op = format!(
        "{op} %r0, %r0; mov.b32 %r4, %r1; and.b32 %r4, %r4, %r2; and.b32 %r4, %r4, %r3; //"
    );
    run(&op, "rrrr", v, v, v)
}

#[test]
fn instructions_with_other_operands() {
    for table in [0x00, 0x96, 0xe8, 0xca, 0x3c, 0xff] {
        check_text(
            &format!("lop3.b32 %r0, %r1, %r2, %r3, {table};\n"),
            |a, b, c| {
                (0..32).fold(0, |r, i| {
                    let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
                    r | (table >> index & 1) << i
                })
            },
        );
    }
    check_text("bfi.b32 %r0, %r1, %r2, %r3, 9;\n", |a, b, c| {
        let pos = c & 0xff;
        (0..9).fold(b, |r, i| {
            if pos + i < 32 {
                r & !(1 << (pos + i)) | (a >> i & 1) << (pos + i)
            } else {
                r
            }
        })
    });
    check_text(
        "add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;\n",
        |a, b, c| c.wrapping_add(u32::from(a.checked_add(b).is_none())),
    );
    check_text(
        "sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0;\n",
        |a, b, c| c.wrapping_sub(u32::from(a < b)),
    );
    // The flag behind a subtraction says that nothing was borrowed.
    check_text(
        "sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;\n",
        |a, b, c| c.wrapping_add(u32::from(a >= b)),
    );
    check_text(
        "mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0;\n",
        |a, b, c| ((u64::from(a) * u64::from(b) + u64::from(c)) >> 32) as u32,
    );
    check_text(
        "setp.lt.and.u32 %p1|%p2, %r1, %r2, 1; selp.u32 %r0, 1, 2, %p1; @%p2 add.u32 %r0, %r0, 4;\n",
        |a, b, _| {
            if a < b { 1 } else { 6 }
        },
    );
    check_text(
        "mov.b64 %d1, {%r1, %r2}; mov.b64 {%r3, %r0}, %d1; xor.b32 %r0, %r0, %r3;\n",
        |a, b, _| a ^ b,
    );
    check_text(
        "mov.b32 {%h1, %h2}, %r1; mov.b32 %r0, {%h2, %h1};\n",
        |a, _, _| a.rotate_left(16),
    );
    check_text(
        "vote.sync.any.pred %p1, 1, -1; @%p1 mov.u32 %r0, 5;\n",
        |_, _, _| 5,
    );
    check_text("szext.wrap.u32 %r0, %r1, 5;\n", |a, _, _| a & 31);
    check_text("bmsk.clamp.b32 %r0, 4, 8;\n", |_, _, _| 0xff0);
}

#[test]
fn float_arithmetic() {
    check_f32("add.f32", "rrr", |a, b, _| a + b);
    check_f32("sub.rn.f32", "rrr", |a, b, _| a - b);
    check_f32("mul.f32", "rrr", |a, b, _| a * b);
    check_f32("fma.rn.f32", "rrrr", |a, b, c| a.mul_add(b, c));
    check_f32("div.rn.f32", "rrr", |a, b, _| a / b);
    check_f32("rcp.rn.f32", "rr", |a, _, _| 1.0 / a);
    check_f32("sqrt.rn.f32", "rr", |a, _, _| a.sqrt());
    let flush = |x: f32| {
        if x.is_subnormal() {
            0f32.copysign(x)
        } else {
            x
        }
    };
    check_f32("add.ftz.f32", "rrr", |a, b, _| flush(flush(a) + flush(b)));
    check_f32("mul.ftz.f32", "rrr", |a, b, _| flush(flush(a) * flush(b)));
    let sat = |x: f32| if x > 0.0 { x.min(1.0) } else { 0.0 };
    check_f32("add.sat.f32", "rrr", |a, b, _| sat(a + b));
    check_f32("fma.rn.sat.f32", "rrrr", |a, b, c| sat(a.mul_add(b, c)));
    check_f32("min.f32", "rrr", |a, b, _| {
        if a == b && a == 0.0 {
            f32::from_bits(a.to_bits() | b.to_bits())
        } else {
            a.min(b)
        }
    });
    check_f32("max.f32", "rrr", |a, b, _| {
        if a == b && a == 0.0 {
            f32::from_bits(a.to_bits() & b.to_bits())
        } else {
            a.max(b)
        }
    });
    check_f32("max.NaN.f32", "rrr", |a, b, _| {
        if a.is_nan() || b.is_nan() {
            f32::NAN
        } else if a == b {
            f32::from_bits(a.to_bits() & b.to_bits())
        } else {
            a.max(b)
        }
    });
    check_f32("ex2.approx.f32", "rr", |a, _, _| f64::from(a).exp2() as f32);
    check_f32("rsqrt.approx.f32", "rr", |a, _, _| {
        if a == 0.0 {
            f32::INFINITY.copysign(a)
        } else {
            (1.0 / f64::from(a).sqrt()) as f32
        }
    });
    for (r, a, _, _) in run("neg.f32", "rr", &floats(), &[0], &[0]) {
        // A NaN becomes the canonical one.
        let is_nan = f32::from_bits(a as u32).is_nan();
        assert_eq!(r, if is_nan { 0x7fff_ffff } else { a ^ 0x8000_0000 });
    }
    check_f64("add.rn.f64", "ddd", |a, b, _| a + b);
    check_f64("mul.f64", "ddd", |a, b, _| a * b);
    check_f64("fma.rn.f64", "dddd", |a, b, c| a.mul_add(b, c));
    check_f64("div.rn.f64", "ddd", |a, b, _| a / b);
    check_f64("sqrt.rn.f64", "dd", |a, _, _| a.sqrt());
    check_f64("min.f64", "ddd", |a, b, _| {
        if a == b && a == 0.0 {
            f64::from_bits(a.to_bits() | b.to_bits())
        } else {
            a.min(b)
        }
    });
}

/// A directed result is the nearest value on its side: checked by exact comparison in double precision.
#[test]
fn directed_rounding_brackets_the_exact_result() {
    let v: Vec<u64> = floats()
        .into_iter()
        .filter(|&b| f32::from_bits(b as u32).is_finite())
        .collect();
    for (op, exact) in [
        ("mul", (|a: f64, b: f64| a * b) as fn(f64, f64) -> f64),
        ("add", |a, b| a + b),
    ] {
        let down = run(&format!("{op}.rm.f32"), "rrr", &v, &v, &v);
        let up = run(&format!("{op}.rp.f32"), "rrr", &v, &v, &v);
        let zero = run(&format!("{op}.rz.f32"), "rrr", &v, &v, &v);
        for ((d, u), z) in down.iter().zip(&up).zip(&zero) {
            let [a, b] = [d.1, d.2].map(|b| f64::from(f32::from_bits(b as u32)));
            let e = exact(a, b);
            let [lo, hi, to_zero] = [d.0, u.0, z.0].map(|b| f32::from_bits(b as u32));
            assert!(
                f64::from(lo) <= e && e <= f64::from(hi),
                "{op} {a:e} {b:e}: {lo:e} {e:e} {hi:e}"
            );
            assert!(
                lo == hi || lo.next_up() == hi,
                "{op} {a:e} {b:e}: {lo:e} {hi:e}"
            );
            assert_eq!(to_zero.abs(), lo.abs().min(hi.abs()), "{op} {a:e} {b:e}");
        }
    }
}

#[test]
fn float_comparisons_know_nan() {
    type Relation = fn(f32, f32) -> bool;
    let cases: [(&str, Relation); 8] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a.partial_cmp(&b).is_some_and(|o| o.is_ne())),
        ("neu", |a, b| a != b),
        ("ltu", |a, b| a < b || a.is_nan() || b.is_nan()),
        ("ge", |a, b| a >= b),
        ("num", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan", |a, b| a.is_nan() || b.is_nan()),
        ("equ", |a, b| a == b || a.is_nan() || b.is_nan()),
    ];
    for (name, f) in cases {
        let v = floats();
        for (r, a, b, _) in run(&format!("setp.{name}.f32"), "prr", &v, &v, &v) {
            let [x, y] = [a, b].map(|b| f32::from_bits(b as u32));
            assert_eq!(r == 1, f(x, y), "{name} {x:e} {y:e}");
        }
    }
}

#[test]
fn conversions() {
    check("cvt.u64.u32", "dr", |a, _, _| U32(a));
    check("cvt.s64.s32", "dr", |a, _, _| i64::from(a as i32) as u64);
    check("cvt.u32.u64", "rd", |a, _, _| U32(a));
    check("cvt.s32.s8", "rr", |a, _, _| {
        u64::from(i32::from(a as i8) as u32)
    });
    check("cvt.u16.u32", "hr", |a, _, _| U16(a));
    check("cvt.s16.s8", "hh", |a, _, _| U16(i64::from(a as i8) as u64));
    check("cvt.sat.u8.s32", "rr", |a, _, _| {
        (a as i32).clamp(0, 255) as u64
    });
    check("cvt.sat.s16.s32", "rr", |a, _, _| {
        u64::from((a as i32).clamp(-32768, 32767) as u32)
    });
    check("cvt.rn.f32.s32", "rr", |a, _, _| {
        u64::from((a as i32 as f32).to_bits())
    });
    check("cvt.rn.f32.u64", "rd", |a, _, _| {
        u64::from((a as f32).to_bits())
    });
    check("cvt.rn.f32.s64", "rd", |a, _, _| {
        u64::from((a as i64 as f32).to_bits())
    });
    check("cvt.rn.f64.u64", "dd", |a, _, _| (a as f64).to_bits());
    check("cvt.rn.f64.s64", "dd", |a, _, _| {
        (a as i64 as f64).to_bits()
    });
    let v = floats();
    let of = |b: u64| f32::from_bits(b as u32);
    for (r, a, _, _) in run("cvt.rzi.s32.f32", "rr", &v, &[0], &[0]) {
        assert_eq!(r as u32, of(a) as i32 as u32, "{:e}", of(a));
    }
    for (r, a, _, _) in run("cvt.rzi.u32.f32", "rr", &v, &[0], &[0]) {
        assert_eq!(r as u32, of(a) as u32, "{:e}", of(a));
    }
    for (r, a, _, _) in run("cvt.rni.s32.f32", "rr", &v, &[0], &[0]) {
        assert_eq!(
            r as u32,
            of(a).round_ties_even() as i32 as u32,
            "{:e}",
            of(a)
        );
    }
    for (r, a, _, _) in run("cvt.rmi.f32.f32", "rr", &v, &[0], &[0]) {
        let e = of(a).floor();
        assert!(r as u32 == e.to_bits() || e.is_nan(), "{:e}", of(a));
    }
    for (r, a, _, _) in run("cvt.f64.f32", "dr", &v, &[0], &[0]) {
        let e = f64::from(of(a));
        assert!(r == e.to_bits() || e.is_nan(), "{:e}", of(a));
    }
    for (r, a, _, _) in run("cvt.rn.f32.f64", "rd", &doubles(), &[0], &[0]) {
        let e = f64::from_bits(a) as f32;
        assert!(r as u32 == e.to_bits() || e.is_nan());
    }
    // Halves go there and back.
    let halves: Vec<u64> = (0..4096).map(|i| i * 16 + i % 7).collect();
    for (r, a, _, _) in run("cvt.f32.f16", "rh", &halves, &[0], &[0]) {
        let (sign, e, m) = (a >> 15 & 1, (a >> 10 & 31) as i32, (a & 1023) as f64);
        let x = match e {
            0 => m * 2f64.powi(-24),
            31 if m == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1024.0 + m) * 2f64.powi(e - 25),
        };
        let x = if sign == 1 { -x } else { x };
        assert!(f64::from(of(r)) == x || x.is_nan(), "{a:#x}");
    }
    for (r, a, _, _) in run("cvt.rn.bf16.f32", "hr", &v, &[0], &[0]) {
        if !of(a).is_nan() {
            let bits = a as u32;
            assert_eq!(
                r as u32,
                bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16,
                "{:e}",
                of(a)
            );
        }
    }
    for (r, a, b, _) in run("cvt.rn.f16x2.f32", "rrr", &v, &v, &[0]) {
        let low = run_half(b);
        assert!(r & 0xffff == low || of(b).is_nan());
        assert!(r >> 16 == run_half(a) || of(a).is_nan());
    }
}

/// f32 to f16, to nearest even, by search among all halves.
fn run_half(bits: u64) -> u64 {
    let x = f64::from(f32::from_bits(bits as u32));
    // 0x7c00 counts as 65,536 here: half-way to it rounds to infinity.
    let value = |h: u64| {
        let (e, m) = ((h >> 10 & 31) as i32, (h & 1023) as f64);
        if e == 0 {
            m * 2f64.powi(-24)
        } else {
            (1024.0 + m) * 2f64.powi(e - 25)
        }
    };
    let (mut low, mut high) = (0, 0x7c00);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if value(middle) <= x.abs() {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (down, up) = (x.abs() - value(low), value(high) - x.abs());
    let best = if down < up || (down == up && low % 2 == 0) {
        low
    } else {
        high
    };
    best | if x.is_sign_negative() { 0x8000 } else { 0 }
}

#[test]
fn halves_compute() {
    let v: Vec<u64> = vec![
        0x0000, 0x8000, 0x3c00, 0xbc00, 0x4000, 0x3555, 0x7bff, 0x0001, 0x7c00, 0x2e66, 0xc500,
    ];
    let value = |h: u64| {
        let (s, e, m) = (h >> 15 & 1, (h >> 10 & 31) as i32, (h & 1023) as f64);
        let x = match e {
            0 => m * 2f64.powi(-24),
            31 if m == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1024.0 + m) * 2f64.powi(e - 25),
        };
        if s == 1 { -x } else { x }
    };
    for (op, f) in [
        ("add.f16", (|a, b| a + b) as fn(f64, f64) -> f64),
        ("mul.rn.f16", |a, b| a * b),
        ("sub.f16", |a, b| a - b),
    ] {
        for (r, a, b, _) in run(op, "hhh", &v, &v, &v) {
            let e = f(value(a), value(b));
            let bits = u64::from((e as f32).to_bits());
            assert!(
                e.is_nan() && value(r).is_nan() || r == run_half(bits),
                "{op} {a:#x} {b:#x}: {r:#x}"
            );
        }
    }
    for (r, a, b, c) in run(
        "fma.rn.f16x2",
        "rrrr",
        &[0x3c00_4000],
        &[0x4000_4200],
        &[0x3c00_bc00],
    ) {
        assert_eq!(r, 0x4200_4500, "{a:#x} {b:#x} {c:#x}");
    }
    for (r, ..) in run("min.bf16x2", "rrr", &[0x3f80_c000], &[0x4000_3f80], &[0]) {
        assert_eq!(r, 0x3f80_c000);
    }
}
