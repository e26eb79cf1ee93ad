//! Rounding: directed modes, flushing, saturation, and the small float formats, all by way of an exact or round-to-odd
//! double. A result that was rounded to odd in 53 bits rounds correctly to any format of at most 51.

/// Flags: bits 0–2 are a [`Rounding`].
pub const FTZ: u32 = 1 << 3;
/// Clamp to [0, 1].
pub const SAT: u32 = 1 << 4;
/// Overflow gives the largest finite value.
pub const SATFINITE: u32 = 1 << 5;
/// Negative results become zero.
pub const RELU: u32 = 1 << 6;
/// NaN operands win (`min`, `max`).
pub const NAN: u32 = 1 << 7;
/// `.xorsign.abs`.
pub const ABS: u32 = 1 << 8;

/// A rounding mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Rounding {
    /// To nearest, ties to even.
    Nearest = 0,
    /// Towards zero.
    Zero = 1,
    /// Towards −∞.
    Down = 2,
    /// Towards +∞.
    Up = 3,
    /// To nearest, ties away from zero (`.rna`).
    Away = 4,
}

impl Rounding {
    /// The mode among an instruction's modifiers, for floats and for integers (`.rni`, …).
    pub fn parse(words: &[&str]) -> Option<Rounding> {
        words.iter().find_map(|w| {
            Some(match *w {
                "rn" | "rni" => Rounding::Nearest,
                "rz" | "rzi" => Rounding::Zero,
                "rm" | "rmi" => Rounding::Down,
                "rp" | "rpi" => Rounding::Up,
                "rna" => Rounding::Away,
                _ => return None,
            })
        })
    }

    /// The mode in a flags word.
    pub fn of(flags: u32) -> Rounding {
        match flags & 7 {
            1 => Rounding::Zero,
            2 => Rounding::Down,
            3 => Rounding::Up,
            4 => Rounding::Away,
            _ => Rounding::Nearest,
        }
    }
}

/// `a + b` as a double and the exact error.
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// The double that `s + e` rounds to when inexact results get an odd last bit. Needs |e| ≤ ulp(s)/2.
pub fn to_odd(s: f64, e: f64) -> f64 {
    if e == 0.0 || !s.is_finite() || !e.is_finite() || s.to_bits() & 1 == 1 {
        return s;
    }
    let away = (e > 0.0) == (s > 0.0);
    f64::from_bits(if away {
        s.to_bits() + 1
    } else {
        s.to_bits() - 1
    })
}

/// Rounds a double to an f32 in any mode.
pub fn to_f32(v: f64, mode: Rounding) -> f32 {
    let near = v as f32;
    if v.is_nan() || v.is_infinite() || f64::from(near) == v {
        return near;
    }
    let above = f64::from(near) > v;
    match mode {
        Rounding::Nearest | Rounding::Away => near,
        Rounding::Zero if (v > 0.0) == above => step_f32(near, !above),
        Rounding::Down if above => step_f32(near, false),
        Rounding::Up if !above => step_f32(near, true),
        _ => near,
    }
}

/// The next f32 up or down, with the sign of zero kept on the side it came from.
fn step_f32(x: f32, up: bool) -> f32 {
    let next = if up { x.next_up() } else { x.next_down() };
    // `near` may be a zero of the value's sign: stepping away from zero gives the smallest subnormal, which is right.
    next
}

/// Rounds `s + e` (exact) to a double in any mode; `s` is the nearest double.
pub fn direct_f64(s: f64, e: f64, mode: Rounding) -> f64 {
    if e == 0.0 || e.is_nan() || s.is_nan() {
        return s;
    }
    match mode {
        Rounding::Zero if (e > 0.0) != (s > 0.0) => {
            if s > 0.0 {
                s.next_down()
            } else {
                s.next_up()
            }
        }
        Rounding::Down if e < 0.0 => s.next_down(),
        Rounding::Up if e > 0.0 => s.next_up(),
        _ => s,
    }
}

/// Flushes a subnormal f32 to a zero of its sign.
#[inline(always)]
pub fn flush(x: f32, flags: u32) -> f32 {
    if flags & FTZ != 0 && x.is_subnormal() {
        0f32.copysign(x)
    } else {
        x
    }
}

/// Flushes, saturates and makes NaNs canonical.
#[inline(always)]
pub fn finish(x: f32, flags: u32) -> f32 {
    let x = flush(x, flags);
    if flags & SAT != 0 {
        return if x > 0.0 { x.min(1.0) } else { 0.0 };
    }
    canonical(x)
}

/// Rounds a result and finishes it. With `.ftz` it counts as subnormal when it would be one with 24 bits, wherever they lie:
/// a value that only the fewer bits of a subnormal round up to the least normal number is flushed, one that 24 bits do is not.
pub fn finish_exact(v: f64, flags: u32) -> f32 {
    let x = to_f32(v, Rounding::of(flags));
    let least = f64::from(f32::MIN_POSITIVE);
    if flags & FTZ != 0 && x.abs() == f32::MIN_POSITIVE && v.abs() < least {
        let scale = power_of_two(64);
        if f64::from(to_f32(v * scale, Rounding::of(flags)).abs()) < least * scale {
            return finish(0f32.copysign(x), flags);
        }
    }
    finish(x, flags)
}

/// NaNs of f32 arithmetic are all 0x7fffffff.
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    if x.is_nan() {
        f32::from_bits(0x7fff_ffff)
    } else {
        x
    }
}

/// A format of at most 32 bits: sign, exponent, mantissa.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Exponent bits.
    pub exponent: u32,
    /// Mantissa bits.
    pub mantissa: u32,
    /// What the largest exponent means.
    pub specials: Specials,
}

/// Values of a format that are no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// The all-ones exponent means infinity and NaN.
    Ieee,
    /// All ones are NaN; there is no infinity.
    OneNan,
    /// There are none: what is too large, and NaN, becomes the largest number.
    None,
}

/// `.f16`
pub const F16: Format = Format {
    exponent: 5,
    mantissa: 10,
    specials: Specials::Ieee,
};
/// `.bf16`
pub const BF16: Format = Format {
    exponent: 8,
    mantissa: 7,
    specials: Specials::Ieee,
};
/// `.tf32`, in its 19 bits; a register holds it in the upper bits of 32.
pub const TF32: Format = Format {
    exponent: 8,
    mantissa: 10,
    specials: Specials::Ieee,
};
/// `.e4m3`
pub const E4M3: Format = Format {
    exponent: 4,
    mantissa: 3,
    specials: Specials::OneNan,
};
/// `.e5m2`
pub const E5M2: Format = Format {
    exponent: 5,
    mantissa: 2,
    specials: Specials::Ieee,
};
/// `.e2m1`
pub const E2M1: Format = Format {
    exponent: 2,
    mantissa: 1,
    specials: Specials::None,
};
/// `.e2m3`
pub const E2M3: Format = Format {
    exponent: 2,
    mantissa: 3,
    specials: Specials::None,
};
/// `.e3m2`
pub const E3M2: Format = Format {
    exponent: 3,
    mantissa: 2,
    specials: Specials::None,
};

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn max_finite(self) -> u32 {
        match self.specials {
            Specials::Ieee => self.ones() - (1 << self.mantissa),
            Specials::OneNan => self.ones() - 1,
            Specials::None => self.ones(),
        }
    }

    /// All bits but the sign: NaN, where there is one.
    fn ones(self) -> u32 {
        (1u32 << (self.exponent + self.mantissa)) - 1
    }

    /// The value of the bits.
    pub fn decode(self, bits: u32) -> f64 {
        let sign = if bits >> (self.exponent + self.mantissa) & 1 == 1 {
            -1.0
        } else {
            1.0
        };
        let magnitude = bits & self.ones();
        let exponent = (magnitude >> self.mantissa) as i32;
        let mantissa = magnitude & ((1 << self.mantissa) - 1);
        let all_ones = exponent == (1 << self.exponent) - 1;
        if all_ones && self.specials == Specials::Ieee {
            return if mantissa == 0 {
                sign * f64::INFINITY
            } else {
                f64::NAN.copysign(sign)
            };
        }
        if magnitude == self.ones() && self.specials != Specials::None {
            return f64::NAN.copysign(sign);
        }
        let (significand, power) = if exponent == 0 {
            (mantissa, 1 - self.bias() - self.mantissa as i32)
        } else {
            (
                mantissa | 1 << self.mantissa,
                exponent - self.bias() - self.mantissa as i32,
            )
        };
        sign * f64::from(significand) * power_of_two(power)
    }

    /// Rounds a double; `flags` may hold a rounding mode, `SATFINITE` and `RELU`.
    pub fn encode(self, x: f64, flags: u32) -> u32 {
        let sign_bit = 1u32 << (self.exponent + self.mantissa);
        if x.is_nan() {
            return self.ones();
        }
        if flags & RELU != 0 && x <= 0.0 {
            return 0;
        }
        let negative = x.is_sign_negative();
        let sign = if negative { sign_bit } else { 0 };
        let saturate = flags & SATFINITE != 0;
        let overflow = if saturate {
            self.max_finite()
        } else if self.specials == Specials::Ieee {
            self.ones() & !((1 << self.mantissa) - 1)
        } else {
            self.ones()
        };
        let a = x.abs();
        if a.is_infinite() {
            return sign | overflow;
        }
        if a == 0.0 {
            return sign;
        }
        // The unit in the last place at this magnitude, never below that of the subnormals.
        let exponent = (((a.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(1 - self.bias());
        let scaled = a * power_of_two(self.mantissa as i32 - exponent);
        let floor = scaled.floor();
        let rest = scaled - floor;
        let up = match Rounding::of(flags) {
            Rounding::Nearest => rest > 0.5 || (rest == 0.5 && floor % 2.0 == 1.0),
            Rounding::Away => rest >= 0.5,
            Rounding::Zero => false,
            Rounding::Down => rest > 0.0 && negative,
            Rounding::Up => rest > 0.0 && !negative,
        };
        let n = floor as u64 + u64::from(up);
        let hidden = 1u64 << self.mantissa;
        // A carry into the next binade, and from the subnormals into the normals, falls out of the addition.
        let magnitude = if n < hidden {
            n
        } else {
            n - hidden + (((exponent + self.bias()) as u64) << self.mantissa)
        };
        if magnitude > u64::from(self.max_finite()) {
            let towards_zero = match Rounding::of(flags) {
                Rounding::Zero => true,
                Rounding::Down => !negative,
                Rounding::Up => negative,
                _ => false,
            };
            return sign
                | if towards_zero {
                    self.max_finite()
                } else {
                    overflow
                };
        }
        sign | magnitude as u32
    }
}

/// 2^n, also where that is subnormal as a double or needs two factors.
fn power_of_two(n: i32) -> f64 {
    2f64.powi(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_value_round_trips() {
        for format in [F16, BF16, TF32, E4M3, E5M2, E2M1, E2M3, E3M2] {
            let bits = format.exponent + format.mantissa + 1;
            for b in 0..1u32 << bits {
                let x = format.decode(b);
                if !x.is_nan() {
                    assert_eq!(format.encode(x, 0), b, "{format:?} {b:#x}");
                }
            }
        }
    }

    #[test]
    fn bf16_nearest_agrees_with_the_bit_trick() {
        for i in 0..200_000u32 {
            let bits = i.wrapping_mul(2_654_435_761);
            let x = f32::from_bits(bits);
            if x.is_nan() {
                continue;
            }
            let trick = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
            assert_eq!(BF16.encode(f64::from(x), 0), trick, "{x}");
        }
    }

    #[test]
    fn f16_halfway_cases_go_to_even_and_overflow_to_infinity() {
        assert_eq!(F16.encode(1.0, 0), 0x3c00);
        assert_eq!(F16.encode(1.0 + 1.0 / 2048.0, 0), 0x3c00);
        assert_eq!(F16.encode(1.0 + 3.0 / 2048.0, 0), 0x3c02);
        assert_eq!(F16.encode(65_519.0, 0), 0x7bff);
        assert_eq!(F16.encode(65_520.0, 0), 0x7c00);
        assert_eq!(F16.encode(65_520.0, Rounding::Zero as u32), 0x7bff);
        assert_eq!(E4M3.encode(1e9, SATFINITE), 0x7e);
        assert_eq!(E4M3.encode(-448.0, 0), 0xfe);
        for (format, largest) in [(E2M1, 6.0), (E2M3, 7.5), (E3M2, 28.0)] {
            let ones = format.ones();
            assert_eq!(format.decode(ones), largest);
            for x in [1e9, f64::INFINITY, f64::NAN] {
                assert_eq!(format.encode(x, SATFINITE), ones);
            }
        }
    }

    #[test]
    fn directed_f32_sums_bracket_the_exact_value() {
        for i in 1..10_000u32 {
            let a = f32::from_bits(0x3f80_0000 + i.wrapping_mul(977) % 0x100_0000);
            let b = f32::from_bits(0x3300_0000 + i.wrapping_mul(7919) % 0x200_0000);
            let (s, e) = two_sum(f64::from(a), f64::from(b));
            let v = to_odd(s, e);
            let (down, up) = (to_f32(v, Rounding::Down), to_f32(v, Rounding::Up));
            assert!(f64::from(down) <= v && v <= f64::from(up));
            assert_eq!(to_f32(v, Rounding::Nearest), a + b);
            assert_eq!(to_f32(v, Rounding::Zero), down);
            assert_eq!(to_f32(-v, Rounding::Zero), -down);
        }
        assert_eq!(to_f32(1e300, Rounding::Zero), f32::MAX);
        assert_eq!(to_f32(1e-300, Rounding::Up), f32::from_bits(1));
    }
}
