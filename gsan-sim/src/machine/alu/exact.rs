//! f64 arithmetic in the directed rounding modes, by way of the exact result: 128 bits, an exponent, and whether anything
//! was cut off below.

use super::round::Rounding;

/// A number other than zero: `mantissa · 2^exponent`, and with `more` a bit beyond it.
struct Exact {
    negative: bool,
    mantissa: u128,
    exponent: i32,
    more: bool,
}

/// Exponent of the last bit of the smallest doubles.
const LAST: i32 = -1074;

impl Exact {
    /// A finite double other than zero.
    fn of(x: f64) -> Exact {
        let bits = x.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let mantissa = if field == 0 {
            fraction
        } else {
            fraction | 1 << 52
        };
        Exact {
            negative: x.is_sign_negative(),
            mantissa: u128::from(mantissa),
            exponent: LAST + (field - 1).max(0),
            more: false,
        }
    }

    /// The same number with its highest bit at that place.
    fn with_top_at(mut self, place: i32) -> Exact {
        let shift = place - (127 - self.mantissa.leading_zeros() as i32);
        if shift >= 0 {
            self.mantissa <<= shift;
        } else {
            self.more |= self.mantissa & ((1 << -shift) - 1) != 0;
            self.mantissa >>= -shift;
        }
        self.exponent -= shift;
        self
    }

    fn round(self, mode: Rounding) -> f64 {
        let bits = 128 - self.mantissa.leading_zeros() as i32;
        // As many bits as a double has, or fewer: none lies below the last bit of the smallest ones.
        let drop = (bits - 53).max(LAST - self.exponent);
        let (kept, rest) = match drop {
            ..=0 => (self.mantissa << -drop, 0),
            128.. => (0, self.mantissa),
            _ => (self.mantissa >> drop, self.mantissa & ((1 << drop) - 1)),
        };
        let inexact = rest != 0 || self.more;
        let up = match mode {
            Rounding::Zero => false,
            Rounding::Down => inexact && self.negative,
            Rounding::Up => inexact && !self.negative,
            Rounding::Nearest | Rounding::Away => {
                let half = if (1..=128).contains(&drop) {
                    1u128 << (drop - 1)
                } else {
                    u128::MAX
                };
                rest > half || rest == half && (self.more || kept & 1 == 1)
            }
        };
        let kept = kept as u64 + u64::from(up);
        let sign = u64::from(self.negative) << 63;
        // The exponent's field, less the one that the mantissa's hidden bit adds to it.
        let field = self.exponent + drop - LAST;
        let magnitude = (field.max(0) as u64) << 52;
        let magnitude = magnitude.saturating_add(kept);
        if magnitude >= 0x7ff << 52 {
            let towards_zero = match mode {
                Rounding::Zero => true,
                Rounding::Down => !self.negative,
                Rounding::Up => self.negative,
                Rounding::Nearest | Rounding::Away => false,
            };
            let infinity = 0x7ffu64 << 52;
            return f64::from_bits(sign | (infinity - u64::from(towards_zero)));
        }
        f64::from_bits(sign | magnitude)
    }
}

/// Whether both are finite and not zero; what else there is comes out of the host's arithmetic exactly.
fn usual(a: f64, b: f64) -> bool {
    a.is_finite() && b.is_finite() && a != 0.0 && b != 0.0
}

/// `a · b`
pub fn product(a: f64, b: f64, mode: Rounding) -> f64 {
    if !usual(a, b) {
        return a * b;
    }
    multiply(a, b).round(mode)
}

fn multiply(a: f64, b: f64) -> Exact {
    let (a, b) = (Exact::of(a), Exact::of(b));
    Exact {
        negative: a.negative != b.negative,
        mantissa: a.mantissa * b.mantissa,
        exponent: a.exponent + b.exponent,
        more: false,
    }
}

/// `a / b`
pub fn quotient(a: f64, b: f64, mode: Rounding) -> f64 {
    if !usual(a, b) {
        return a / b;
    }
    let (a, b) = (Exact::of(a).with_top_at(126), Exact::of(b).with_top_at(52));
    Exact {
        negative: a.negative != b.negative,
        mantissa: a.mantissa / b.mantissa,
        exponent: a.exponent - b.exponent,
        more: a.mantissa % b.mantissa != 0,
    }
    .round(mode)
}

/// `√a`
pub fn root(a: f64, mode: Rounding) -> f64 {
    if !usual(a, 1.0) || a < 0.0 {
        return a.sqrt();
    }
    let mut a = Exact::of(a).with_top_at(126);
    if a.exponent % 2 != 0 {
        a.mantissa >>= 1;
        a.exponent += 1;
    }
    let root = a.mantissa.isqrt();
    Exact {
        negative: false,
        mantissa: root,
        exponent: a.exponent / 2,
        more: root * root != a.mantissa,
    }
    .round(mode)
}

/// `a · b + c`
pub fn fused(a: f64, b: f64, c: f64, mode: Rounding) -> f64 {
    if !usual(a, b) || !c.is_finite() {
        let sum = a.mul_add(b, c);
        return signed_zero(
            sum,
            (a * b).is_sign_negative() != c.is_sign_negative(),
            mode,
        );
    }
    if c == 0.0 {
        return product(a, b, mode);
    }
    // The larger one with its highest bit at 125: what the other one has below bit 0 then does not meet a difference that
    // loses more than a bit.
    let (mut large, mut small) = (
        multiply(a, b).with_top_at(125),
        Exact::of(c).with_top_at(125),
    );
    if (small.exponent, small.mantissa) > (large.exponent, large.mantissa) {
        std::mem::swap(&mut large, &mut small);
    }
    let down = (large.exponent - small.exponent).min(127);
    small.more = small.mantissa & ((1 << down) - 1) != 0;
    small.mantissa >>= down;
    large.more = small.more;
    if large.negative == small.negative {
        large.mantissa += small.mantissa;
    } else {
        // What was cut off of the subtrahend is missing from the difference.
        large.mantissa -= small.mantissa + u128::from(small.more);
    }
    if large.mantissa == 0 && !large.more {
        return signed_zero(0.0, true, mode);
    }
    large.round(mode)
}

/// `a + b`
pub fn sum(a: f64, b: f64, mode: Rounding) -> f64 {
    if a.is_nan() || b.is_nan() {
        return a + b;
    }
    fused(a, 1.0, b, mode)
}

/// The sum of a zero and its opposite is −0 when rounding down.
fn signed_zero(sum: f64, opposite: bool, mode: Rounding) -> f64 {
    if sum == 0.0 && opposite && mode == Rounding::Down {
        -0.0
    } else {
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Vec<f64> {
        let mut out = vec![
            1.0,
            -1.5,
            f64::MAX,
            f64::MIN_POSITIVE,
            f64::from_bits(1),
            -f64::from_bits(3),
            f64::from_bits(0x000f_ffff_ffff_ffff),
            0.0,
            -0.0,
            f64::INFINITY,
            1.0 - f64::EPSILON / 2.0,
            2f64.powi(-540),
            -3.0 * 2f64.powi(500),
        ];
        let mut state = 1u64;
        for _ in 0..200 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let x = f64::from_bits(state ^ state >> 29);
            if x.is_finite() {
                out.push(x);
                // Of moderate size, so that sums do not drown.
                out.push(f64::from_bits(
                    x.to_bits() & 0x801f_ffff_ffff_ffff | 0x3fe0_0000_0000_0000,
                ));
            }
        }
        out
    }

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    /// The host rounds to nearest.
    #[test]
    fn nearest_is_what_the_host_computes() {
        let near = Rounding::Nearest;
        let numbers = numbers();
        for (i, &a) in numbers.iter().enumerate() {
            assert!(same(root(a, near), a.sqrt()), "√{a:e}");
            for (j, &b) in numbers.iter().enumerate() {
                assert!(same(product(a, b, near), a * b), "{a:e} · {b:e}");
                assert!(same(quotient(a, b, near), a / b), "{a:e} / {b:e}");
                assert!(same(sum(a, b, near), a + b), "{a:e} + {b:e}");
                let c = numbers[(i * 7 + j * 3) % numbers.len()];
                assert!(
                    same(fused(a, b, c, near), a.mul_add(b, c)),
                    "{a:e} · {b:e} + {c:e}"
                );
            }
        }
    }

    /// Down and up are neighbours or the same, nearest is one of them, and zero is the one on its side.
    #[test]
    fn directed_results_enclose_the_nearest() {
        let numbers = numbers();
        let all = |f: &dyn Fn(Rounding) -> f64| {
            [
                Rounding::Down,
                Rounding::Up,
                Rounding::Nearest,
                Rounding::Zero,
            ]
            .map(f)
        };
        let check = |[down, up, near, zero]: [f64; 4]| {
            if near.is_nan() {
                return;
            }
            assert!(down <= near && near <= up, "{down:e} {near:e} {up:e}");
            assert!(down == up || down.next_up() == up, "{down:e} {up:e}");
            let inner = if down.abs() < up.abs() { down } else { up };
            assert_eq!(zero, inner);
        };
        for &a in &numbers {
            check(all(&|m| root(a, m)));
            for &b in &numbers {
                check(all(&|m| product(a, b, m)));
                check(all(&|m| quotient(a, b, m)));
                check(all(&|m| sum(a, b, m)));
                check(all(&|m| fused(a, b, -b, m)));
            }
        }
    }

    /// As an H200 has them.
    #[test]
    fn results_next_to_zero_and_to_the_largest() {
        let bits = f64::from_bits;
        let cases = [
            (
                product(bits(0x3fef_ffff_ffff_ffff), bits(1), Rounding::Zero),
                0,
            ),
            (
                product(bits(0x36a0 << 48), bits(0x10 << 48), Rounding::Up),
                1,
            ),
            (
                quotient(bits(0x43e0 << 48), bits(1), Rounding::Down),
                0x7fef_ffff_ffff_ffff,
            ),
            (
                root(bits(0x000f_ffff_ffff_ffff), Rounding::Zero),
                0x1fff_ffff_ffff_fffe,
            ),
            (
                fused(
                    bits(0x8000_0000_0000_0001),
                    bits(1),
                    bits(1),
                    Rounding::Zero,
                ),
                0,
            ),
            (fused(1.0, 1.0, -1.0, Rounding::Down), 1 << 63),
        ];
        for (found, expected) in cases {
            assert_eq!(found.to_bits(), expected, "{expected:x}");
        }
    }
}
