//! f32 and f64 arithmetic with every rounding mode.
//!
//! NaN results of f32 are 0x7fffffff, as on the hardware, also those of `neg` and `abs`; f64 keeps a NaN's bits. The `.approx` forms are computed exactly rounded: within the
//! documented error of the hardware's, not equal to them.

use super::round::{
    ABS, FTZ, NAN, RELU, Rounding, canonical, finish, finish_exact, flush, to_f32, to_odd, two_sum,
};
use super::{Alu, Func, Mods, exact, one, three, two};
use crate::machine::ty::Ty;

const ARITHMETIC: &[&str] = &["rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full"];

/// The f32 or f64 instruction of that name, if there is one.
pub fn find(opcode: &str, mods: &Mods<'_>, operands: usize) -> Option<Alu> {
    let ty = mods.ty()?;
    if mods.types.len() > 1 && mods.types.iter().any(|&t| t != ty) {
        return None;
    }
    let flags = mods.float_flags();
    let func = match ty {
        Ty::F32 => f32_op(opcode, mods, flags, operands)?,
        Ty::F64 => f64_op(opcode, mods, flags, operands)?,
        Ty::F32x2 => pair_op(opcode)?,
        _ => return None,
    };
    Some(Alu::same(func, flags, ty))
}

fn f32_op(opcode: &str, mods: &Mods<'_>, flags: u32, operands: usize) -> Option<Func> {
    let plain = flags == 0;
    Some(match opcode {
        "add" | "sub" | "mul" | "fma" | "mad" | "div" | "rcp" | "sqrt"
            if !mods.only(ARITHMETIC) =>
        {
            return None;
        }
        "add" if plain => two!(|_, a: f32, b: f32| canonical(a + b)),
        "sub" if plain => two!(|_, a: f32, b: f32| canonical(a - b)),
        "mul" if plain => two!(|_, a: f32, b: f32| canonical(a * b)),
        "fma" | "mad" if plain => three!(|_, a: f32, b: f32, c: f32| canonical(fused(a, b, c))),
        "add" => two!(|f, a: f32, b: f32| sum(a, b, f)),
        "sub" => two!(|f, a: f32, b: f32| sum(a, -b, f)),
        "mul" => two!(|f, a: f32, b: f32| product(a, b, f)),
        "fma" | "mad" => three!(|f, a: f32, b: f32, c: f32| multiply_add(a, b, c, f)),
        "div" if mods.has("approx") => two!(|f, a: f32, b: f32| divide_roughly(a, b, f)),
        "div" => two!(|f, a: f32, b: f32| divide(a, b, f)),
        "rcp" => one!(|f, a: f32| divide(1.0, a, f)),
        "sqrt" => one!(|f, a: f32| root(a, f)),
        "rsqrt" => one!(|f, a: f32| finish(inverse_root(flush(a, f)), f)),
        "neg" => one!(|f, a: f32| canonical(-flush(a, f))),
        "abs" => one!(|f, a: f32| canonical(flush(a, f).abs())),
        "min" if operands == 3 => {
            three!(|f, a: f32, b: f32, c: f32| minimum(minimum(a, b, f), c, f))
        }
        "max" if operands == 3 => {
            three!(|f, a: f32, b: f32, c: f32| maximum(maximum(a, b, f), c, f))
        }
        "min" => two!(|f, a: f32, b: f32| minimum(a, b, f)),
        "max" => two!(|f, a: f32, b: f32| maximum(a, b, f)),
        "copysign" => two!(|_, a: f32, b: f32| b.copysign(a)),
        _ => return None,
    })
}

/// `.f32x2`: two f32 in 64 bits.
fn pair_op(opcode: &str) -> Option<Func> {
    #[inline(always)]
    fn halves(a: u64, b: u64, c: u64, f: impl Fn(f32, f32, f32) -> f32) -> u64 {
        let one = |shift: u32| {
            let [x, y, z] = [a, b, c].map(|v| f32::from_bits((v >> shift) as u32));
            u64::from(f(x, y, z).to_bits()) << shift
        };
        one(0) | one(32)
    }
    Some(match opcode {
        "add" => two!(|f, a: u64, b: u64| halves(a, b, 0, |x, y, _| sum(x, y, f))),
        "sub" => two!(|f, a: u64, b: u64| halves(a, b, 0, |x, y, _| sum(x, -y, f))),
        "mul" => two!(|f, a: u64, b: u64| halves(a, b, 0, |x, y, _| product(x, y, f))),
        "fma" => {
            three!(|f, a: u64, b: u64, c: u64| halves(a, b, c, |x, y, z| multiply_add(x, y, z, f)))
        }
        _ => return None,
    })
}

fn product(a: f32, b: f32, flags: u32) -> f32 {
    finish_exact(
        f64::from(flush(a, flags)) * f64::from(flush(b, flags)),
        flags,
    )
}

/// x86-64 without FMA calls a slow library routine; two double operations and rounding to odd do the same.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let (s, e) = two_sum(f64::from(a) * f64::from(b), f64::from(c));
    if e == 0.0 || e.is_nan() {
        s as f32
    } else {
        to_odd(s, e) as f32
    }
}

fn sum(a: f32, b: f32, flags: u32) -> f32 {
    let (a, b) = (f64::from(flush(a, flags)), f64::from(flush(b, flags)));
    let (s, e) = two_sum(a, b);
    finish_exact(zero_sign(to_odd(s, e), a, b, flags), flags)
}

/// An exact zero sum of two unlike zeros or opposites is −0 when rounding down.
fn zero_sign(s: f64, a: f64, b: f64, flags: u32) -> f64 {
    let opposite = a.is_sign_negative() != b.is_sign_negative();
    if s == 0.0 && opposite && Rounding::of(flags) == Rounding::Down {
        -0.0
    } else {
        s
    }
}

fn multiply_add(a: f32, b: f32, c: f32, flags: u32) -> f32 {
    let p = f64::from(flush(a, flags)) * f64::from(flush(b, flags));
    let c = f64::from(flush(c, flags));
    let (s, e) = two_sum(p, c);
    let relu = |x: f32| if flags & RELU != 0 && x < 0.0 { 0.0 } else { x };
    relu(finish_exact(zero_sign(to_odd(s, e), p, c, flags), flags))
}

fn divide(a: f32, b: f32, flags: u32) -> f32 {
    let (a, b) = (f64::from(flush(a, flags)), f64::from(flush(b, flags)));
    let q = a / b;
    // The remainder is exact: a quotient of two 24-bit numbers times 24 bits fits into a fused operation.
    let r = (-q).mul_add(b, a);
    let e = if r == 0.0 || !q.is_finite() {
        0.0
    } else {
        r.signum() * b.signum() * f64::MIN_POSITIVE
    };
    finish_exact(to_odd(q, e), flags)
}

/// `div.approx`, the product with the reciprocal: that of a very large divisor is zero.
fn divide_roughly(a: f32, b: f32, flags: u32) -> f32 {
    if b.is_finite() && b.abs() > 2f32.powi(126) {
        return finish(flush(a, flags) * 0f32.copysign(b), flags);
    }
    divide(a, b, flags)
}

fn root(a: f32, flags: u32) -> f32 {
    let a = f64::from(flush(a, flags));
    let s = a.sqrt();
    let r = (-s).mul_add(s, a);
    let e = if r == 0.0 || !s.is_finite() {
        0.0
    } else {
        r.signum() * f64::MIN_POSITIVE
    };
    finish(to_f32(to_odd(s, e), Rounding::of(flags)), flags)
}

fn inverse_root(a: f32) -> f32 {
    if a == 0.0 {
        f32::INFINITY.copysign(a)
    } else {
        (1.0 / f64::from(a).sqrt()) as f32
    }
}

#[inline(always)]
fn minimum(a: f32, b: f32, flags: u32) -> f32 {
    pick(a, b, flags, true)
}

#[inline(always)]
fn maximum(a: f32, b: f32, flags: u32) -> f32 {
    pick(a, b, flags, false)
}

/// A NaN loses, unless `.NaN`; −0 is less than +0; `.xorsign.abs` takes magnitudes and the product's sign.
#[inline(always)]
fn pick(a: f32, b: f32, flags: u32, smaller: bool) -> f32 {
    let (mut x, mut y) = (flush(a, flags & FTZ), flush(b, flags & FTZ));
    let sign = x.is_sign_negative() != y.is_sign_negative();
    if flags & ABS != 0 {
        (x, y) = (x.abs(), y.abs());
    }
    let r = if x.is_nan() || y.is_nan() {
        if flags & NAN != 0 || (x.is_nan() && y.is_nan()) {
            return f32::from_bits(0x7fff_ffff);
        }
        if x.is_nan() { y } else { x }
    } else {
        let first = if x == y {
            x.is_sign_negative() == smaller
        } else {
            (x < y) == smaller
        };
        if first { x } else { y }
    };
    if flags & ABS != 0 {
        r.abs().copysign(if sign { -1.0 } else { 1.0 })
    } else {
        r
    }
}

fn f64_op(opcode: &str, mods: &Mods<'_>, flags: u32, operands: usize) -> Option<Func> {
    let plain = flags == 0;
    Some(match opcode {
        "add" | "sub" | "mul" | "fma" | "mad" | "div" | "rcp" | "sqrt"
            if !mods.only(ARITHMETIC) =>
        {
            return None;
        }
        "add" if plain => two!(|_, a: f64, b: f64| a + b),
        "sub" if plain => two!(|_, a: f64, b: f64| a - b),
        "mul" if plain => two!(|_, a: f64, b: f64| a * b),
        "fma" | "mad" if plain => three!(|_, a: f64, b: f64, c: f64| a.mul_add(b, c)),
        "add" => two!(|f, a: f64, b: f64| exact::sum(a, b, Rounding::of(f))),
        "sub" => two!(|f, a: f64, b: f64| exact::sum(a, opposite(b), Rounding::of(f))),
        "mul" => two!(|f, a: f64, b: f64| exact::product(a, b, Rounding::of(f))),
        "fma" | "mad" => {
            three!(|f, a: f64, b: f64, c: f64| exact::fused(a, b, c, Rounding::of(f)))
        }
        "div" => two!(|f, a: f64, b: f64| exact::quotient(a, b, Rounding::of(f))),
        "rcp" if mods.has("approx") => one!(|_, a: f64| upper_half(1.0 / flush64(a))),
        "rcp" => one!(|f, a: f64| exact::quotient(1.0, a, Rounding::of(f))),
        "sqrt" => one!(|f, a: f64| exact::root(a, Rounding::of(f))),
        "rsqrt" if flags & FTZ != 0 => {
            one!(|_, a: f64| upper_half(inverse_root64(flush64(a))))
        }
        // Only `.ftz` is an approximation: ptxas makes a sequence of the other, with an error of the last bit.
        "rsqrt" => one!(|_, a: f64| inverse_root64(a)),
        "neg" => one!(|_, a: f64| opposite(a)),
        "abs" => one!(|_, a: f64| if a.is_nan() { quiet(a) } else { a.abs() }),
        "min" if operands == 2 => two!(|_, a: f64, b: f64| pick64(a, b, true)),
        "max" if operands == 2 => two!(|_, a: f64, b: f64| pick64(a, b, false)),
        "copysign" => two!(|_, a: f64, b: f64| b.copysign(a)),
        _ => return None,
    })
}

/// A NaN has no sign that could be changed; it becomes quiet.
fn opposite(x: f64) -> f64 {
    if x.is_nan() { quiet(x) } else { -x }
}

fn quiet(x: f64) -> f64 {
    f64::from_bits(x.to_bits() | 1 << 51)
}

/// The double-precision approximations with `.ftz` keep the upper 32 bits only, and flush small results.
fn upper_half(x: f64) -> f64 {
    if x.is_nan() {
        return f64::from_bits(0x7fff_ffff << 32);
    }
    f64::from_bits(flush64(x).to_bits() & !0xffff_ffff)
}

fn flush64(x: f64) -> f64 {
    if x.is_subnormal() {
        0f64.copysign(x)
    } else {
        x
    }
}

fn inverse_root64(a: f64) -> f64 {
    if a.is_nan() {
        quiet(a)
    } else if a == 0.0 {
        f64::INFINITY.copysign(a)
    } else if a < 0.0 {
        f64::from_bits(0xfff8 << 48)
    } else if a.is_infinite() {
        0.0
    } else {
        // Both steps round; what is missing in the product with the square is known exactly enough to make up for it.
        let y = 1.0 / a.sqrt();
        let high = a * y;
        let low = a.mul_add(y, -high);
        let missing = high.mul_add(-y, 1.0) - low * y;
        (0.5 * y).mul_add(missing, y)
    }
}

fn pick64(a: f64, b: f64, smaller: bool) -> f64 {
    if a.is_nan() {
        return b;
    }
    if b.is_nan() {
        return a;
    }
    let first = if a == b {
        a.is_sign_negative() == smaller
    } else {
        (a < b) == smaller
    };
    if first { a } else { b }
}
