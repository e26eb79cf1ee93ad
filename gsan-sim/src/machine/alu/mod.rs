//! Arithmetic: from an opcode with its type and modifiers to a function over whole register rows.
//!
//! Each function works on a row of 32 lanes at once and computes the lanes of `mask` only. What varies without being
//! worth code of its own (rounding, saturation, look-up tables) travels in one `flags` word.

pub mod bits;
pub mod compare;
pub mod convert;
pub mod exact;
pub mod float;
pub mod half;
pub mod integer;
pub mod pack;
pub mod packed;
pub mod round;
pub mod transcendental;
pub mod video;

use super::ty::{Row, Ty};

/// One operand.
pub type Fn1 = fn(u32, &Row, &mut Row, u32);
/// Two operands.
pub type Fn2 = fn(u32, &Row, &Row, &mut Row, u32);
/// Three operands.
pub type Fn3 = fn(u32, &Row, &Row, &Row, &mut Row, u32);
/// Four operands.
pub type Fn4 = fn(u32, &Row, &Row, &Row, &Row, &mut Row, u32);
/// A comparison: the lanes for which it holds.
pub type FnCmp = fn(u32, &Row, &Row, u32) -> u32;

/// A row function by its number of operands.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Func {
    One(Fn1),
    Two(Fn2),
    Three(Fn3),
    Four(Fn4),
}

/// What to compute, and the types of what goes in and comes out.
#[derive(Debug, Clone, Copy)]
pub struct Alu {
    /// The function.
    pub func: Func,
    /// Its flags.
    pub flags: u32,
    /// Type of the result.
    pub dst: Ty,
    /// Types of the operands.
    pub src: [Ty; 4],
}

impl Alu {
    /// All operands of one type.
    pub fn same(func: Func, flags: u32, ty: Ty) -> Alu {
        Alu {
            func,
            flags,
            dst: ty,
            src: [ty; 4],
        }
    }
}

/// Runs a loop over the lanes of a mask, vectorisable when all take part.
macro_rules! lanes {
    ($mask:expr, $l:ident, $body:expr) => {
        if $mask == u32::MAX {
            for $l in 0..32 {
                $body
            }
        } else {
            let mut rest = $mask;
            while rest != 0 {
                let $l = (rest.trailing_zeros() & 31) as usize;
                rest &= rest - 1;
                $body
            }
        }
    };
}
pub(crate) use lanes;

/// `one!(|flags, a: T| -> R expr)`: a [`Func::One`].
macro_rules! one {
    (|$f:tt, $a:ident : $T:ty| $e:expr) => {{
        fn row(
            $f: u32,
            ra: &$crate::machine::ty::Row,
            out: &mut $crate::machine::ty::Row,
            mask: u32,
        ) {
            $crate::machine::alu::lanes!(mask, l, {
                let $a = <$T as $crate::machine::ty::Value>::of(ra[l]);
                out[l] = $crate::machine::ty::Value::bits($e);
            });
        }
        $crate::machine::alu::Func::One(row)
    }};
}
/// `two!(|flags, a: T, b: U| expr)`: a [`Func::Two`].
macro_rules! two {
    (|$f:tt, $a:ident : $A:ty, $b:ident : $B:ty| $e:expr) => {{
        fn row(
            $f: u32,
            ra: &$crate::machine::ty::Row,
            rb: &$crate::machine::ty::Row,
            out: &mut $crate::machine::ty::Row,
            mask: u32,
        ) {
            $crate::machine::alu::lanes!(mask, l, {
                let $a = <$A as $crate::machine::ty::Value>::of(ra[l]);
                let $b = <$B as $crate::machine::ty::Value>::of(rb[l]);
                out[l] = $crate::machine::ty::Value::bits($e);
            });
        }
        $crate::machine::alu::Func::Two(row)
    }};
}
/// `three!(|flags, a: T, b: U, c: V| expr)`: a [`Func::Three`].
macro_rules! three {
    (|$f:tt, $a:ident : $A:ty, $b:ident : $B:ty, $c:ident : $C:ty| $e:expr) => {{
        fn row(
            $f: u32,
            ra: &$crate::machine::ty::Row,
            rb: &$crate::machine::ty::Row,
            rc: &$crate::machine::ty::Row,
            out: &mut $crate::machine::ty::Row,
            mask: u32,
        ) {
            $crate::machine::alu::lanes!(mask, l, {
                let $a = <$A as $crate::machine::ty::Value>::of(ra[l]);
                let $b = <$B as $crate::machine::ty::Value>::of(rb[l]);
                let $c = <$C as $crate::machine::ty::Value>::of(rc[l]);
                out[l] = $crate::machine::ty::Value::bits($e);
            });
        }
        $crate::machine::alu::Func::Three(row)
    }};
}
/// `three_and_word!(|w, a, b, c| expr)`: a [`Func::Four`] of three words whose fourth operand is the instruction itself.
macro_rules! three_and_word {
    (|$w:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {{
        fn row(
            _: u32,
            ra: &$crate::machine::ty::Row,
            rb: &$crate::machine::ty::Row,
            rc: &$crate::machine::ty::Row,
            rw: &$crate::machine::ty::Row,
            out: &mut $crate::machine::ty::Row,
            mask: u32,
        ) {
            $crate::machine::alu::lanes!(mask, l, {
                let ($w, $a, $b, $c) = (rw[l], ra[l] as u32, rb[l] as u32, rc[l] as u32);
                out[l] = u64::from($e);
            });
        }
        $crate::machine::alu::Func::Four(row)
    }};
}
/// `by_int!(ty, one!/two!/three!, …)`: the same closure for each integer width and sign; evaluates to an `Option`.
macro_rules! by_int {
    ($ty:expr, one, |$a:ident| $e:expr) => {
        match $ty {
            Ty::B16 | Ty::U16 => Some(one!(|_, $a: u16| $e)),
            Ty::S16 => Some(one!(|_, $a: i16| $e)),
            Ty::B32 | Ty::U32 => Some(one!(|_, $a: u32| $e)),
            Ty::S32 => Some(one!(|_, $a: i32| $e)),
            Ty::B64 | Ty::U64 => Some(one!(|_, $a: u64| $e)),
            Ty::S64 => Some(one!(|_, $a: i64| $e)),
            _ => None,
        }
    };
    ($ty:expr, two, |$a:ident, $b:ident| $e:expr) => {
        match $ty {
            Ty::B16 | Ty::U16 => Some(two!(|_, $a: u16, $b: u16| $e)),
            Ty::S16 => Some(two!(|_, $a: i16, $b: i16| $e)),
            Ty::B32 | Ty::U32 => Some(two!(|_, $a: u32, $b: u32| $e)),
            Ty::S32 => Some(two!(|_, $a: i32, $b: i32| $e)),
            Ty::B64 | Ty::U64 => Some(two!(|_, $a: u64, $b: u64| $e)),
            Ty::S64 => Some(two!(|_, $a: i64, $b: i64| $e)),
            _ => None,
        }
    };
    ($ty:expr, three, |$a:ident, $b:ident, $c:ident| $e:expr) => {
        match $ty {
            Ty::B16 | Ty::U16 => Some(three!(|_, $a: u16, $b: u16, $c: u16| $e)),
            Ty::S16 => Some(three!(|_, $a: i16, $b: i16, $c: i16| $e)),
            Ty::B32 | Ty::U32 => Some(three!(|_, $a: u32, $b: u32, $c: u32| $e)),
            Ty::S32 => Some(three!(|_, $a: i32, $b: i32, $c: i32| $e)),
            Ty::B64 | Ty::U64 => Some(three!(|_, $a: u64, $b: u64, $c: u64| $e)),
            Ty::S64 => Some(three!(|_, $a: i64, $b: i64, $c: i64| $e)),
            _ => None,
        }
    };
}
pub(crate) use by_int;
pub(crate) use one;
pub(crate) use three;
pub(crate) use three_and_word;
pub(crate) use two;

/// The modifiers of an instruction, sorted: types in order, all else by name.
#[derive(Debug, Clone)]
pub struct Mods<'a> {
    /// Type modifiers, in the order of the text.
    pub types: Vec<Ty>,
    /// Every modifier.
    pub words: &'a [&'a str],
}

impl<'a> Mods<'a> {
    /// Sorts an instruction's modifiers.
    pub fn new(words: &'a [&'a str]) -> Mods<'a> {
        Mods {
            types: words.iter().filter_map(|w| Ty::parse(w)).collect(),
            words,
        }
    }

    /// Whether a modifier is there.
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// The first type.
    pub fn ty(&self) -> Option<Ty> {
        self.types.first().copied()
    }

    /// Whether every modifier that is no type is among `known`.
    pub fn only(&self, known: &[&str]) -> bool {
        self.words
            .iter()
            .all(|w| Ty::parse(w).is_some() || known.contains(w))
    }

    /// Rounding, flush-to-zero and saturation as a flags word.
    pub fn float_flags(&self) -> u32 {
        let mut flags =
            round::Rounding::parse(self.words).unwrap_or(round::Rounding::Nearest) as u32;
        for (word, bit) in [
            ("ftz", round::FTZ),
            ("sat", round::SAT),
            ("satfinite", round::SATFINITE),
            ("relu", round::RELU),
            ("NaN", round::NAN),
            ("abs", round::ABS),
        ] {
            if self.has(word) {
                flags |= bit;
            }
        }
        flags
    }
}

/// The arithmetic instruction of that name and those modifiers; `None` if there is none (or it is no arithmetic).
/// `operands` is the number of source operands (`min` takes two or three).
pub fn find(opcode: &str, mods: &Mods<'_>, operands: usize) -> Option<Alu> {
    integer::find(opcode, mods)
        .or_else(|| bits::find(opcode, mods))
        .or_else(|| float::find(opcode, mods, operands))
        .or_else(|| half::find(opcode, mods, operands))
        .or_else(|| transcendental::find(opcode, mods))
        .or_else(|| pack::find(opcode, mods))
        .or_else(|| convert::find(opcode, mods))
}
