//! Comparisons (`setp`, `set`): a row function that gives the lanes for which the relation holds.

use super::round::{BF16, F16, FTZ, flush};
use super::{FnCmp, Mods, lanes};
use crate::machine::ty::{Row, Ty, Value};

/// A comparison with the type of its operands.
#[derive(Debug, Clone, Copy)]
pub struct Compare {
    /// The function.
    pub func: FnCmp,
    /// Its flags.
    pub flags: u32,
    /// Type of the operands.
    pub ty: Ty,
}

/// How the result is combined with a further predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Combine {
    None,
    And,
    Or,
    Xor,
}

impl Combine {
    /// The combination among an instruction's modifiers.
    pub fn parse(mods: &Mods<'_>) -> Combine {
        if mods.has("and") {
            Combine::And
        } else if mods.has("or") {
            Combine::Or
        } else if mods.has("xor") {
            Combine::Xor
        } else {
            Combine::None
        }
    }

    /// `x` combined with `c`, lane by lane.
    pub fn apply(self, x: u32, c: u32) -> u32 {
        match self {
            Combine::None => x,
            Combine::And => x & c,
            Combine::Or => x | c,
            Combine::Xor => x ^ c,
        }
    }
}

macro_rules! cmp {
    (|$f:tt, $a:ident, $b:ident : $T:ty| $e:expr) => {{
        fn row($f: u32, ra: &Row, rb: &Row, mask: u32) -> u32 {
            let mut out = 0;
            lanes!(mask, l, {
                let $a = <$T as Value>::of(ra[l]);
                let $b = <$T as Value>::of(rb[l]);
                out |= u32::from($e) << l;
            });
            out
        }
        row as FnCmp
    }};
}

macro_rules! by_width {
    ($ty:expr, $signed:expr, |$a:ident, $b:ident| $e:expr) => {
        match ($ty.bytes(), $signed) {
            (2, false) => cmp!(|_, $a, $b: u16| $e),
            (2, true) => cmp!(|_, $a, $b: i16| $e),
            (4, false) => cmp!(|_, $a, $b: u32| $e),
            (4, true) => cmp!(|_, $a, $b: i32| $e),
            (8, false) => cmp!(|_, $a, $b: u64| $e),
            (8, true) => cmp!(|_, $a, $b: i64| $e),
            _ => return None,
        }
    };
}

macro_rules! by_float {
    ($ty:expr, |$a:ident, $b:ident| $e:expr) => {
        match $ty {
            Ty::F32 => cmp!(|f, a, b: f32| {
                let ($a, $b) = (f64::from(flush(a, f)), f64::from(flush(b, f)));
                $e
            }),
            Ty::F64 => cmp!(|_, $a, $b: f64| $e),
            Ty::F16 => cmp!(|_, a, b: u16| {
                let ($a, $b) = (F16.decode(a.into()), F16.decode(b.into()));
                $e
            }),
            Ty::Bf16 => cmp!(|_, a, b: u16| {
                let ($a, $b) = (BF16.decode(a.into()), BF16.decode(b.into()));
                $e
            }),
            _ => return None,
        }
    };
}

#[inline(always)]
fn ordered(a: f64, b: f64) -> bool {
    !a.is_nan() && !b.is_nan()
}

/// The comparison of a `setp` or `set` (whose compared type is the last one).
pub fn find(mods: &Mods<'_>) -> Option<Compare> {
    let ty = *mods.types.last()?;
    let word = mods.words.iter().find(|w| {
        matches!(
            **w,
            "eq" | "ne"
                | "lt"
                | "le"
                | "gt"
                | "ge"
                | "lo"
                | "ls"
                | "hi"
                | "hs"
                | "equ"
                | "neu"
                | "ltu"
                | "leu"
                | "gtu"
                | "geu"
                | "num"
                | "nan"
        )
    })?;
    let signed = ty.is_signed();
    let func = if ty.is_int() {
        match *word {
            "eq" => by_width!(ty, false, |a, b| a == b),
            "ne" => by_width!(ty, false, |a, b| a != b),
            "lt" => by_width!(ty, signed, |a, b| a < b),
            "le" => by_width!(ty, signed, |a, b| a <= b),
            "gt" => by_width!(ty, signed, |a, b| a > b),
            "ge" => by_width!(ty, signed, |a, b| a >= b),
            "lo" => by_width!(ty, false, |a, b| a < b),
            "ls" => by_width!(ty, false, |a, b| a <= b),
            "hi" => by_width!(ty, false, |a, b| a > b),
            "hs" => by_width!(ty, false, |a, b| a >= b),
            _ => return None,
        }
    } else {
        match *word {
            "eq" => by_float!(ty, |a, b| a == b),
            "ne" => by_float!(ty, |a, b| a != b && ordered(a, b)),
            "lt" => by_float!(ty, |a, b| a < b),
            "le" => by_float!(ty, |a, b| a <= b),
            "gt" => by_float!(ty, |a, b| a > b),
            "ge" => by_float!(ty, |a, b| a >= b),
            "equ" => by_float!(ty, |a, b| a == b || !ordered(a, b)),
            "neu" => by_float!(ty, |a, b| a != b),
            "ltu" => by_float!(ty, |a, b| a < b || !ordered(a, b)),
            "leu" => by_float!(ty, |a, b| a <= b || !ordered(a, b)),
            "gtu" => by_float!(ty, |a, b| a > b || !ordered(a, b)),
            "geu" => by_float!(ty, |a, b| a >= b || !ordered(a, b)),
            "num" => by_float!(ty, |a, b| ordered(a, b)),
            "nan" => by_float!(ty, |a, b| !ordered(a, b)),
            _ => return None,
        }
    };
    Some(Compare {
        func,
        flags: if mods.has("ftz") { FTZ } else { 0 },
        ty,
    })
}

/// `testp.{finite,infinite,number,notanumber,normal,subnormal}`, as a comparison of the operand with itself.
pub fn find_test(mods: &Mods<'_>) -> Option<Compare> {
    let ty = mods.ty()?;
    macro_rules! test {
        (|$a:ident| $e:expr) => {
            match ty {
                Ty::F32 => cmp!(|_, $a, _b: f32| $e),
                Ty::F64 => cmp!(|_, $a, _b: f64| $e),
                _ => return None,
            }
        };
    }
    let func = match *mods.words.iter().find(|w| Ty::parse(w).is_none())? {
        "finite" => test!(|a| a.is_finite()),
        "infinite" => test!(|a| a.is_infinite()),
        "number" => test!(|a| !a.is_nan()),
        "notanumber" => test!(|a| a.is_nan()),
        // Zeros count as normal numbers.
        "normal" => test!(|a| a.is_normal() || a == 0.0),
        "subnormal" => test!(|a| a.is_subnormal()),
        _ => return None,
    };
    Some(Compare { func, flags: 0, ty })
}
