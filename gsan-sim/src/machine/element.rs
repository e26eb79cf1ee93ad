//! Elements of matrices: the types that matrix instructions name, down to one bit, and products of matrices of them.
//!
//! Every element is decoded to a double. Integers (at most 8 bits wide, sums far below 2^53) stay exact that way; so do the
//! products of floats of at most 11 bits of mantissa, whose sum is rounded once, at the end. Tensor cores align and cut
//! the terms before they add them, so a sum of floats may differ from theirs in the last bits.

use super::alu::round::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16};
use super::ty::extend;

/// Type of a matrix element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    F64,
    F32,
    Tf32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    S32,
    S8,
    U8,
    S4,
    U4,
    B1,
    /// Of four bits.
    E2m1,
    /// The same in the middle of eight.
    E2m1Wide,
    /// Of six bits, at the low end of eight.
    E2m3,
    E3m2,
}

impl Element {
    /// The type of that name (without the dot).
    pub fn parse(name: &str) -> Option<Element> {
        Some(match name {
            "f64" => Element::F64,
            "f32" => Element::F32,
            "tf32" => Element::Tf32,
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "e4m3" => Element::E4m3,
            "e5m2" => Element::E5m2,
            "s32" => Element::S32,
            "s8" => Element::S8,
            "u8" => Element::U8,
            "s4" => Element::S4,
            "u4" => Element::U4,
            "b1" => Element::B1,
            "e2m1" => Element::E2m1,
            "e2m3" => Element::E2m3,
            "e3m2" => Element::E3m2,
            _ => return None,
        })
    }

    /// Width.
    pub fn bits(self) -> u32 {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Tf32 | Element::S32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8 => 8,
            Element::E2m1Wide | Element::E2m3 | Element::E3m2 => 8,
            Element::S4 | Element::U4 | Element::E2m1 => 4,
            Element::B1 => 1,
        }
    }

    /// Width where elements lie close together: those of four and six bits are read into eight.
    pub fn narrow(self) -> u32 {
        match self {
            Element::E2m1Wide => 4,
            Element::E2m3 | Element::E3m2 => 6,
            _ => self.bits(),
        }
    }

    /// Elements in a register.
    pub fn per_register(self) -> usize {
        (32 / self.bits() as usize).max(1)
    }

    /// Its bits, at the low end of a word.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The value of its bits.
    pub fn decode(self, bits: u64) -> f64 {
        let low = bits as u32;
        match self {
            Element::F64 => f64::from_bits(bits),
            Element::F32 => f64::from(f32::from_bits(low)),
            // The lower 13 bits of a tf32 are not looked at.
            Element::Tf32 => f64::from(f32::from_bits(low & !0x1fff)),
            Element::F16 => F16.decode(low & 0xffff),
            Element::Bf16 => BF16.decode(low & 0xffff),
            Element::E4m3 => E4M3.decode(low & 0xff),
            Element::E5m2 => E5M2.decode(low & 0xff),
            Element::S32 => f64::from(low as i32),
            Element::S8 => f64::from(low as i8),
            Element::U8 => f64::from(low as u8),
            Element::S4 => extend(bits << 4 & 0xf0, 1, true, 8) as i64 as f64 / 16.0,
            Element::U4 => f64::from(low & 15),
            Element::B1 => f64::from(low & 1),
            Element::E2m1 => E2M1.decode(low & 15),
            Element::E2m1Wide => E2M1.decode(low >> 2 & 15),
            Element::E2m3 => E2M3.decode(low & 63),
            Element::E3m2 => E3M2.decode(low & 63),
        }
    }

    /// The bits of a sum, as an accumulator of this type holds it.
    fn encode(self, sum: f64, saturate: bool) -> u64 {
        match self {
            Element::F64 => sum.to_bits(),
            Element::F16 => u64::from(F16.encode(sum, 0)),
            Element::S32 if saturate => u64::from(sum as i32 as u32),
            Element::S32 => u64::from(sum as i64 as u32),
            _ if sum.is_nan() => 0x7fff_ffff,
            _ => u64::from((sum as f32).to_bits()),
        }
    }
}

/// What is computed: D = A × B + C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Product {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: Element,
    pub b: Element,
    /// Of C.
    pub c: Element,
    pub d: Element,
    /// Integers stop at their ends.
    pub saturate: bool,
    /// Bits are combined with exclusive or, not and.
    pub xor: bool,
}

impl Product {
    /// `a` holds the values of A row by row, `b` those of B column by column; `c` tells C's values, `d` takes D's bits.
    pub fn compute(
        &self,
        a: &[f64],
        b: &[f64],
        c: impl Fn(usize, usize) -> f64,
        mut d: impl FnMut(usize, usize, u64),
    ) {
        for m in 0..self.rows {
            let row = &a[m * self.depth..][..self.depth];
            for n in 0..self.columns {
                let column = &b[n * self.depth..][..self.depth];
                let start = c(m, n);
                let sum = if self.d == Element::F64 {
                    row.iter()
                        .zip(column)
                        .fold(start, |sum, (x, y)| x.mul_add(*y, sum))
                } else if self.xor {
                    start
                        + row
                            .iter()
                            .zip(column)
                            .map(|(x, y)| (x - y).abs())
                            .sum::<f64>()
                } else {
                    start + dot(row, column)
                };
                d(m, n, self.d.encode(sum, self.saturate));
            }
        }
    }
}

/// The sum of products, in four lanes that a compiler may keep in vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (fours, rest) = (a.chunks_exact(4), a.len() / 4 * 4);
    for (x, y) in fours.zip(b.chunks_exact(4)) {
        for (l, (x, y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *l += x * y;
        }
    }
    for (x, y) in a[rest..].iter().zip(&b[rest..]) {
        lanes[0] += x * y;
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_elements_have_their_values() {
        assert_eq!(
            [0, 7, 8, 15].map(|n| Element::S4.decode(n)),
            [0.0, 7.0, -8.0, -1.0]
        );
        assert_eq!(
            [0, 15, 0x1f].map(|n| Element::U4.decode(n)),
            [0.0, 15.0, 15.0]
        );
        assert_eq!([0, 1, 2].map(|n| Element::B1.decode(n)), [0.0, 1.0, 0.0]);
        assert_eq!(Element::E4m3.decode(0x38), 1.0);
        assert_eq!(Element::E5m2.decode(0xbc), -1.0);
        assert_eq!(Element::Tf32.decode(0x3f80_1fff), 1.0);
    }

    #[test]
    fn integer_sums_wrap_or_stop() {
        let mut p = Product {
            rows: 1,
            columns: 1,
            depth: 2,
            a: Element::U8,
            b: Element::U8,
            c: Element::S32,
            d: Element::S32,
            saturate: false,
            xor: false,
        };
        let run = |p: &Product| {
            let mut out = 0;
            p.compute(
                &[255.0, 1.0],
                &[255.0, 0.0],
                |_, _| f64::from(i32::MAX),
                |_, _, d| out = d as u32,
            );
            out as i32
        };
        assert_eq!(run(&p), i32::MAX.wrapping_add(255 * 255));
        p.saturate = true;
        assert_eq!(run(&p), i32::MAX);
    }
}
