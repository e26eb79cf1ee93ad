//! `cvt` between all types; pairs of floats in `packed`.

use super::round::{
    BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, FTZ, Format, RELU, Rounding, SAT, TF32, canonical,
    flush, to_f32,
};
use super::{Alu, Mods, one, packed};
use crate::machine::ty::{Ty, extend};

/// The types travel in the flags: source from bit 16, destination from bit 24.
fn with_types(flags: u32, dst: Ty, src: Ty) -> u32 {
    flags | (src as u32) << 16 | (dst as u32) << 24
}

/// The conversion, if the instruction is one.
pub fn find(opcode: &str, mods: &Mods<'_>) -> Option<Alu> {
    if opcode != "cvt" {
        return None;
    }
    let [dst, src] = mods.types[..] else {
        return None;
    };
    if dst == Ty::Pred
        || src == Ty::Pred
        || dst == Ty::B128
        || src == Ty::B128
        || mods.has("rs")
        || mods.has("scaled")
        || mods.has("pack")
    {
        return None;
    }
    let integral = mods
        .words
        .iter()
        .any(|w| matches!(*w, "rni" | "rzi" | "rmi" | "rpi"));
    let base = mods.float_flags() | if integral { 0 } else { KEEP };
    let flags = with_types(base, dst, src);
    if let Some(func) = packed::find(dst, src) {
        return Some(Alu {
            func,
            flags,
            dst,
            src: [src; 4],
        });
    }
    let func = match (dst, src) {
        _ if dst.is_int() && src.is_int() => {
            if base & SAT != 0 {
                one!(|f, a: u64| saturate(f, a))
            } else {
                match (
                    src.bytes().min(dst.bytes()),
                    src.is_signed() && dst.bytes() > src.bytes(),
                    dst.bytes(),
                ) {
                    (1, false, _) => one!(|_, a: u8| a),
                    (2, false, _) => one!(|_, a: u16| a),
                    (4, false, _) => one!(|_, a: u32| a),
                    (8, false, _) => one!(|_, a: u64| a),
                    (4, true, 8) => one!(|_, a: i32| i64::from(a)),
                    (2, true, 4) => one!(|_, a: i16| i32::from(a)),
                    _ => one!(|f, a: u64| {
                        let (dst, src) = types(f);
                        extend(a, src.bytes(), src.is_signed(), dst.bytes())
                    }),
                }
            }
        }
        (Ty::F32, Ty::F32 | Ty::F64) | (Ty::F64, Ty::F32 | Ty::F64) => {
            one!(|f, a: u64| float_to_float(f, a))
        }
        _ if dst.is_int() => one!(|f, a: u64| float_to_int(f, a)),
        _ if src.is_int() => one!(|f, a: u64| int_to_float(f, a)),
        _ if small(dst).is_some() || small(src).is_some() => one!(|f, a: u64| float_to_float(f, a)),
        _ => return None,
    };
    Some(Alu {
        func,
        flags,
        dst,
        src: [src; 4],
    })
}

pub(super) fn types(flags: u32) -> (Ty, Ty) {
    (
        Ty::from_number(flags >> 24),
        Ty::from_number(flags >> 16 & 0xff),
    )
}

fn small(ty: Ty) -> Option<Format> {
    Some(match ty {
        Ty::F16 | Ty::F16x2 => F16,
        Ty::Bf16 | Ty::Bf16x2 => BF16,
        Ty::Tf32 => TF32,
        Ty::E4m3 | Ty::E4m3x2 => E4M3,
        Ty::E5m2 | Ty::E5m2x2 => E5M2,
        Ty::E2m1x2 => E2M1,
        Ty::E2m3x2 => E2M3,
        Ty::E3m2x2 => E3M2,
        _ => return None,
    })
}

/// The value of a float register as a double (exact).
pub(super) fn load(ty: Ty, bits: u64, flags: u32) -> f64 {
    match ty {
        Ty::F32 => f64::from(flush(f32::from_bits(bits as u32), flags)),
        Ty::F64 => f64::from_bits(bits),
        Ty::Tf32 => f64::from(f32::from_bits(bits as u32)),
        _ => small(ty).map_or(0.0, |f| f.decode(bits as u32)),
    }
}

/// Rounds a double to a float register.
pub(super) fn store(ty: Ty, x: f64, flags: u32) -> u64 {
    let x = if flags & SAT != 0 {
        if x > 0.0 { x.min(1.0) } else { 0.0 }
    } else {
        x
    };
    match ty {
        Ty::F32 => u64::from(canonical(flush(to_f32(x, Rounding::of(flags)), flags)).to_bits()),
        Ty::F64 => x.to_bits(),
        Ty::Tf32 => u64::from(TF32.encode(x, flags)) << 13,
        _ => u64::from(small(ty).map_or(0, |f| f.encode(x, flags))),
    }
}

fn float_to_float(flags: u32, a: u64) -> u64 {
    let (dst, src) = types(flags);
    let x = load(src, a, flags);
    if x.is_nan()
        && flags & SAT == 0
        && let Some(bits) = not_a_number(dst, src, a, flags)
    {
        return bits;
    }
    let x = if flags & RELU != 0 && x < 0.0 { 0.0 } else { x };
    if dst == Ty::F64 && src == Ty::F64 && x.is_nan() && flags & SAT == 0 {
        return a | 1 << 51;
    }
    store(
        dst,
        if dst == src { to_integral(x, flags) } else { x },
        flags,
    )
}

/// NaNs whose sign and upper bits the hardware keeps; all others become the canonical one.
fn not_a_number(dst: Ty, src: Ty, a: u64, flags: u32) -> Option<u64> {
    // Sign bit, the lowest bit of the exponent, bits of the mantissa.
    let layout = |ty| {
        Some(match ty {
            Ty::F64 => (63, 52),
            Ty::F32 | Ty::Tf32 => (31, 23),
            Ty::F16 => (15, 10),
            Ty::Bf16 => (15, 7),
            _ => return None,
        })
    };
    let kept = matches!(
        (dst, src),
        (Ty::F64, Ty::F16 | Ty::Bf16)
            | (Ty::F32, Ty::Bf16 | Ty::F64)
            | (Ty::F16, Ty::F64)
            | (Ty::Tf32, Ty::F32)
    );
    if (dst, src) == (Ty::F64, Ty::F32) && flags & FTZ != 0 {
        return Some(0x7fff_ffff_e000_0000);
    }
    let ((to_sign, to), (from_sign, from)) = (layout(dst)?, layout(src)?);
    if !kept {
        return None;
    }
    let mantissa = a & ((1 << from) - 1);
    let mantissa = if to >= from {
        mantissa << (to - from)
    } else {
        mantissa >> (from - to)
    };
    let ones = (1u64 << to_sign) - (1 << to);
    let bits = (a >> from_sign & 1) << to_sign | ones | mantissa;
    // A register of 32 bits holds 19 bits of it; signalling ones stay that, there and where bits are only moved.
    Some(match (dst, src) {
        (Ty::Tf32, _) => bits & !0x1fff,
        (Ty::F32, Ty::Bf16) => bits,
        _ => bits | 1 << (to - 1),
    })
}

/// `cvt.rni.f32.f32` and the like round to an integral value (the modes are shared with `.rn`; of one type to itself only
/// the integral forms change anything).
fn to_integral(x: f64, flags: u32) -> f64 {
    match Rounding::of(flags) {
        _ if flags & KEEP != 0 => x,
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
        Rounding::Away => x.round(),
    }
}

/// Flag: a conversion of a type to itself without an integer rounding.
const KEEP: u32 = 1 << 9;

fn range(ty: Ty) -> (i128, i128) {
    let bits = 8 * ty.bytes();
    if ty.is_signed() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

fn as_integer(ty: Ty, bits: u64) -> i128 {
    let wide = extend(bits, ty.bytes(), ty.is_signed(), 8);
    if ty.is_signed() {
        i128::from(wide as i64)
    } else {
        i128::from(wide)
    }
}

fn saturate(flags: u32, a: u64) -> u64 {
    let (dst, src) = types(flags);
    let (low, high) = range(dst);
    extend(
        as_integer(src, a).clamp(low, high) as u64,
        dst.bytes(),
        false,
        8,
    )
}

/// Out of range: clamped. NaN: zero, but the top bit alone where the source is f64 or the result has 64 bits.
fn float_to_int(flags: u32, a: u64) -> u64 {
    let (dst, src) = types(flags);
    let x = load(src, a, flags);
    if x.is_nan() {
        return if dst.bytes() == 8 || src == Ty::F64 {
            1 << (8 * dst.bytes() - 1)
        } else {
            0
        };
    }
    let (low, high) = range(dst);
    let rounded = to_integral(x, flags & !KEEP);
    extend(
        (rounded as i128).clamp(low, high) as u64,
        dst.bytes(),
        false,
        8,
    )
}

fn int_to_float(flags: u32, a: u64) -> u64 {
    let (dst, src) = types(flags);
    let n = as_integer(src, a);
    let near = n as f64;
    // An i64 may not fit into a double: round to odd by hand, or in the asked direction for f64 itself.
    let error = (n - near as i128) as f64;
    if dst == Ty::F64 {
        return super::round::direct_f64(near, error, Rounding::of(flags)).to_bits();
    }
    store(dst, super::round::to_odd(near, error), flags)
}
