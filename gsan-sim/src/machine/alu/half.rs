//! f16 and bf16 arithmetic, packed pairs too.

use super::round::{ABS, BF16, F16, FTZ, Format, NAN, RELU, SAT, to_odd, two_sum};
use super::{Alu, Func, Mods, one, three, two};
use crate::machine::ty::Ty;

/// Flag: the format is bf16.
const BRAIN: u32 = 1 << 16;
/// Flag: two values in one register.
const PAIR: u32 = 1 << 17;

/// The half-precision instruction of that name, if there is one.
pub fn find(opcode: &str, mods: &Mods<'_>, operands: usize) -> Option<Alu> {
    let ty = mods.ty()?;
    let extra = match ty {
        Ty::F16 => 0,
        Ty::F16x2 => PAIR,
        Ty::Bf16 => BRAIN,
        Ty::Bf16x2 => BRAIN | PAIR,
        _ => return None,
    };
    if mods.types.len() > 1 {
        return None;
    }
    let func: Func = match opcode {
        "add" => two!(|f, a: u32, b: u32| map2(f, a, b, |x, y, _| exact_sum(x, y))),
        "sub" => two!(|f, a: u32, b: u32| map2(f, a, b, |x, y, _| exact_sum(x, -y))),
        "mul" => two!(|f, a: u32, b: u32| map2(f, a, b, |x, y, _| x * y)),
        "fma" => three!(|f, a: u32, b: u32, c: u32| fma(f, a, b, c)),
        "neg" => one!(|f, a: u32| each(f, a, |x| x ^ 0x8000)),
        "abs" => one!(|f, a: u32| each(f, a, |x| x & 0x7fff)),
        "min" if operands == 2 => {
            two!(|f, a: u32, b: u32| map2(f, a, b, |x, y, f| pick(x, y, f, true)))
        }
        "max" if operands == 2 => {
            two!(|f, a: u32, b: u32| map2(f, a, b, |x, y, f| pick(x, y, f, false)))
        }
        "ex2" => one!(|f, a: u32| map2(f, a, 0, |x, _, _| x.exp2())),
        "tanh" => one!(|f, a: u32| map2(f, a, 0, |x, _, _| x.tanh())),
        _ => return None,
    };
    Some(Alu::same(func, mods.float_flags() | extra, ty))
}

fn format(flags: u32) -> Format {
    if flags & BRAIN != 0 { BF16 } else { F16 }
}

/// Something with the sign of each value; a NaN has none and becomes the canonical one.
fn each(flags: u32, a: u32, f: impl Fn(u32) -> u32) -> u32 {
    let infinity = if flags & BRAIN != 0 { 0x7f80 } else { 0x7c00 };
    let one = |x: u32| {
        if x & 0x7fff > infinity { 0x7fff } else { f(x) }
    };
    if flags & PAIR == 0 {
        return one(a & 0xffff);
    }
    one(a & 0xffff) | one(a >> 16) << 16
}

fn exact_sum(x: f64, y: f64) -> f64 {
    let (s, e) = two_sum(x, y);
    to_odd(s, e)
}

fn load(bits: u32, flags: u32) -> f64 {
    let format = format(flags);
    let bits = bits & 0xffff;
    // The subnormals of f16; bf16 has no `.ftz`.
    if flags & FTZ != 0 && bits & 0x7c00 == 0 && flags & BRAIN == 0 {
        return if bits & 0x8000 != 0 { -0.0 } else { 0.0 };
    }
    format.decode(bits)
}

fn store(x: f64, flags: u32) -> u32 {
    let x = if flags & SAT != 0 {
        if x > 0.0 { x.min(1.0) } else { 0.0 }
    } else {
        x
    };
    let bits = format(flags).encode(x, flags & (7 | RELU));
    // What counts is the size with all bits of a normal number: see `round::finish_exact`.
    let least = f64::powi(2.0, -14);
    let tiny =
        x.abs() < least && F16.encode(x.abs() * 256.0, flags & 7) < F16.encode(least * 256.0, 0);
    if flags & FTZ != 0 && flags & BRAIN == 0 && tiny {
        bits & 0x8000
    } else {
        bits
    }
}

fn map2(flags: u32, a: u32, b: u32, f: impl Fn(f64, f64, u32) -> f64) -> u32 {
    let low = store(f(load(a, flags), load(b, flags), flags), flags);
    if flags & PAIR == 0 {
        return low;
    }
    low | store(f(load(a >> 16, flags), load(b >> 16, flags), flags), flags) << 16
}

fn fma(flags: u32, a: u32, b: u32, c: u32) -> u32 {
    let one = |shift: u32| {
        let p = load(a >> shift, flags) * load(b >> shift, flags);
        store(exact_sum(p, load(c >> shift, flags)), flags) << shift
    };
    if flags & PAIR == 0 {
        one(0)
    } else {
        one(0) | one(16)
    }
}

fn pick(x: f64, y: f64, flags: u32, smaller: bool) -> f64 {
    let negative = x.is_sign_negative() != y.is_sign_negative();
    let (x, y) = if flags & ABS != 0 {
        (x.abs(), y.abs())
    } else {
        (x, y)
    };
    let r = match (x.is_nan(), y.is_nan()) {
        (true, true) => f64::NAN,
        (true, false) | (false, true) if flags & NAN != 0 => f64::NAN,
        (true, false) => y,
        (false, true) => x,
        (false, false) => {
            let first = if x == y {
                x.is_sign_negative() == smaller
            } else {
                (x < y) == smaller
            };
            if first { x } else { y }
        }
    };
    if flags & ABS != 0 && !r.is_nan() {
        r.copysign(if negative { -1.0 } else { 1.0 })
    } else {
        r
    }
}

/// Adds two values of a half format (for `atom.add`).
pub fn add(ty: Ty, a: u32, b: u32) -> u32 {
    let flags = match ty {
        Ty::F16x2 => PAIR,
        Ty::Bf16 => BRAIN,
        Ty::Bf16x2 => BRAIN | PAIR,
        _ => 0,
    };
    map2(flags, a, b, |x, y, _| exact_sum(x, y))
}

/// The smaller (or larger) of two values of a half format (for `atom.min`, `red.max`).
pub fn extreme(ty: Ty, a: u32, b: u32, smaller: bool) -> u32 {
    let flags = match ty {
        Ty::F16x2 => PAIR,
        Ty::Bf16 => BRAIN,
        Ty::Bf16x2 => BRAIN | PAIR,
        _ => 0,
    };
    map2(flags, a, b, |x, y, f| pick(x, y, f, smaller))
}
