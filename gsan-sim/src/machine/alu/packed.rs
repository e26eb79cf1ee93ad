//! `cvt` from and to pairs of small floats: halves, fp8, fp6, fp4, and the powers of two that scale them.

use super::convert::{load, store, types};
use super::round::{FTZ, Rounding, SATFINITE, flush};
use super::{Func, one, two};
use crate::machine::ty::Ty;

/// How far apart the two are; `None`: the type is no such pair.
fn distance(ty: Ty) -> Option<u32> {
    Some(match ty {
        Ty::F16x2 | Ty::Bf16x2 => 16,
        Ty::E4m3x2 | Ty::E5m2x2 | Ty::E2m3x2 | Ty::E3m2x2 | Ty::Ue8m0x2 => 8,
        Ty::E2m1x2 => 4,
        _ => return None,
    })
}

/// The conversion between these types, if one is a pair: of two floats (the first one becomes the upper half), or of a pair.
pub fn find(dst: Ty, src: Ty) -> Option<Func> {
    distance(dst)?;
    let halves = |ty| matches!(ty, Ty::F16x2 | Ty::Bf16x2);
    match src {
        Ty::F32 => Some(two!(|f, a: u32, b: u32| pack(f, a, b))),
        _ if halves(dst) == halves(src) => None,
        _ => distance(src).map(|_| one!(|f, a: u32| repack(f, a))),
    }
}

fn pack(flags: u32, a: u32, b: u32) -> u32 {
    let (dst, _) = types(flags);
    let one = |x: u32| match dst {
        Ty::Ue8m0x2 => scale(x, flags),
        _ => {
            let x = flush(f32::from_bits(x), flags);
            store(dst, f64::from(x), flags & !FTZ) as u32
        }
    };
    one(a) << distance(dst).unwrap_or(0) | one(b)
}

fn repack(flags: u32, a: u32) -> u32 {
    let (dst, src) = types(flags);
    let (to, from) = (distance(dst).unwrap_or(0), distance(src).unwrap_or(0));
    // Halves hold what they are made of, and saturate only by their own range.
    let flags = if to == 16 {
        flags & !(FTZ | SATFINITE)
    } else {
        flags
    };
    let one = |bits: u32| {
        let bits = bits & ((1 << from) - 1);
        match (dst, src) {
            // The upper half of a float.
            (Ty::Ue8m0x2, Ty::Bf16x2) => scale(bits << 16, flags),
            (Ty::Ue8m0x2, _) => scale((load(src, bits.into(), 0) as f32).to_bits(), flags),
            (_, Ty::Ue8m0x2) => store(dst, power(bits), flags) as u32,
            _ => store(dst, load(src, bits.into(), 0), flags) as u32,
        }
    };
    one(a) | one(a >> from) << to
}

/// The exponent of a float's magnitude: `.rz` cuts, `.rp` takes the next power of two above.
fn scale(bits: u32, flags: u32) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    let exponent = magnitude >> 23;
    let above = Rounding::of(flags) == Rounding::Up
        && magnitude & 0x7f_ffff != 0
        && magnitude > 0x40_0000
        && exponent < 0xff;
    let n = exponent + u32::from(above);
    if n == 0xff && magnitude <= 0x7f80_0000 && flags & SATFINITE != 0 {
        0xfe
    } else {
        n
    }
}

/// The power of two that a scale stands for.
pub fn power(bits: u32) -> f64 {
    if bits == 0xff {
        f64::NAN
    } else {
        2f64.powi(bits as i32 - 127)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_exponents() {
        let (cut, up) = (Rounding::Zero as u32, Rounding::Up as u32);
        for (x, rz, rp) in [
            (1.0, 127, 127),
            (-1.5, 127, 128),
            (4.0, 129, 129),
            (0.0, 0, 0),
            (2f32.powi(-127), 0, 0),
            (1.5 * 2f32.powi(-127), 0, 1),
            (f32::MAX, 254, 255),
            (f32::INFINITY, 255, 255),
            (f32::NAN, 255, 255),
        ] {
            assert_eq!((scale(x.to_bits(), cut), scale(x.to_bits(), up)), (rz, rp));
        }
        for x in [f32::MAX, f32::INFINITY] {
            assert_eq!(scale(x.to_bits(), up | SATFINITE), 254);
        }
        assert_eq!(scale(f32::NAN.to_bits(), up | SATFINITE), 255);
        assert_eq!((power(127), power(0)), (1.0, 2f64.powi(-127)));
    }
}
