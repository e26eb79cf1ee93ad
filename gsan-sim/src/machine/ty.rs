//! Scalar types of PTX and how their values sit in a 64-bit register row.

/// One register of a warp: a 64-bit word per lane. Narrower values are zero-extended, always.
pub type Row = [u64; 32];

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Ty {
    Pred,
    B8,
    U8,
    S8,
    B16,
    U16,
    S16,
    B32,
    U32,
    S32,
    B64,
    U64,
    S64,
    B128,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    Tf32,
    F64,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    U16x2,
    S16x2,
    F32x2,
    E2m1x2,
    E2m3x2,
    E3m2x2,
    Ue8m0x2,
}

/// All of them, by number.
const ALL: [Ty; 32] = [
    Ty::Pred,
    Ty::B8,
    Ty::U8,
    Ty::S8,
    Ty::B16,
    Ty::U16,
    Ty::S16,
    Ty::B32,
    Ty::U32,
    Ty::S32,
    Ty::B64,
    Ty::U64,
    Ty::S64,
    Ty::B128,
    Ty::F16,
    Ty::F16x2,
    Ty::Bf16,
    Ty::Bf16x2,
    Ty::F32,
    Ty::Tf32,
    Ty::F64,
    Ty::E4m3,
    Ty::E5m2,
    Ty::E4m3x2,
    Ty::E5m2x2,
    Ty::U16x2,
    Ty::S16x2,
    Ty::F32x2,
    Ty::E2m1x2,
    Ty::E2m3x2,
    Ty::E3m2x2,
    Ty::Ue8m0x2,
];

impl Ty {
    /// The type of that name (without the dot).
    pub fn parse(name: &str) -> Option<Ty> {
        Some(match name {
            "pred" => Ty::Pred,
            "b8" => Ty::B8,
            "u8" => Ty::U8,
            "s8" => Ty::S8,
            "b16" => Ty::B16,
            "u16" => Ty::U16,
            "s16" => Ty::S16,
            "b32" => Ty::B32,
            "u32" => Ty::U32,
            "s32" => Ty::S32,
            "b64" => Ty::B64,
            "u64" => Ty::U64,
            "s64" => Ty::S64,
            "b128" => Ty::B128,
            "f16" => Ty::F16,
            "f16x2" => Ty::F16x2,
            "bf16" => Ty::Bf16,
            "bf16x2" => Ty::Bf16x2,
            "f32" => Ty::F32,
            "tf32" => Ty::Tf32,
            "f64" => Ty::F64,
            "e4m3" => Ty::E4m3,
            "e5m2" => Ty::E5m2,
            "e4m3x2" => Ty::E4m3x2,
            "e5m2x2" => Ty::E5m2x2,
            "u16x2" => Ty::U16x2,
            "s16x2" => Ty::S16x2,
            "f32x2" => Ty::F32x2,
            "e2m1x2" => Ty::E2m1x2,
            "e2m3x2" => Ty::E2m3x2,
            "e3m2x2" => Ty::E3m2x2,
            "ue8m0x2" => Ty::Ue8m0x2,
            _ => return None,
        })
    }

    /// The type with that number (`ty as u8`).
    pub fn from_number(n: u32) -> Ty {
        ALL.get(n as usize).copied().unwrap_or(Ty::B64)
    }

    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Ty::Pred | Ty::B8 | Ty::U8 | Ty::S8 | Ty::E4m3 | Ty::E5m2 | Ty::E2m1x2 => 1,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 => 2,
            Ty::E4m3x2 | Ty::E5m2x2 | Ty::E2m3x2 | Ty::E3m2x2 | Ty::Ue8m0x2 => 2,
            Ty::B32
            | Ty::U32
            | Ty::S32
            | Ty::F32
            | Ty::Tf32
            | Ty::F16x2
            | Ty::Bf16x2
            | Ty::U16x2
            | Ty::S16x2 => 4,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 | Ty::F32x2 => 8,
            Ty::B128 => 16,
        }
    }

    /// Whether widening extends the sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    /// Whether it is an integer type (`.b` types too).
    pub fn is_int(self) -> bool {
        matches!(
            self,
            Ty::B8
                | Ty::U8
                | Ty::S8
                | Ty::B16
                | Ty::U16
                | Ty::S16
                | Ty::B32
                | Ty::U32
                | Ty::S32
                | Ty::B64
                | Ty::U64
                | Ty::S64
        )
    }

    /// All bits of a value of this type.
    pub fn mask(self) -> u64 {
        match self.bytes() {
            1 => 0xff,
            2 => 0xffff,
            4 => 0xffff_ffff,
            _ => u64::MAX,
        }
    }

    /// The type of twice the width with the same sign (`mul.wide`).
    pub fn widened(self) -> Option<Ty> {
        Some(match self {
            Ty::U16 => Ty::U32,
            Ty::S16 => Ty::S32,
            Ty::U32 => Ty::U64,
            Ty::S32 => Ty::S64,
            _ => return None,
        })
    }
}

/// A Rust type that stands for a PTX value.
pub trait Value: Copy {
    /// Reads the low bits of a register.
    fn of(bits: u64) -> Self;
    /// Zero-extends to a register.
    fn bits(self) -> u64;
}

macro_rules! values {
    ($($t:ty as $u:ty),*) => { $(
        impl Value for $t {
            #[inline(always)]
            fn of(bits: u64) -> $t { bits as $t }
            #[inline(always)]
            fn bits(self) -> u64 { self as $u as u64 }
        }
    )* };
}
values!(
    u8 as u8, i8 as u8, u16 as u16, i16 as u16, u32 as u32, i32 as u32, u64 as u64, i64 as u64
);

impl Value for f32 {
    #[inline(always)]
    fn of(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Value for f64 {
    #[inline(always)]
    fn of(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Value for bool {
    #[inline(always)]
    fn of(bits: u64) -> bool {
        bits != 0
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

/// Sign-extends the low `bytes` of a value, then keeps the low `to` bytes.
#[inline]
pub fn extend(value: u64, bytes: u32, signed: bool, to: u32) -> u64 {
    let unused = 64 - 8 * bytes.min(8);
    let wide = if signed {
        ((value << unused) as i64 >> unused) as u64
    } else {
        value << unused >> unused
    };
    let drop = 64 - 8 * to.min(8);
    wide << drop >> drop
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_types_agree() {
        for (i, &t) in ALL.iter().enumerate() {
            assert_eq!(t as usize, i);
            assert_eq!(Ty::from_number(i as u32), t);
        }
    }

    #[test]
    fn extension_follows_the_sign() {
        assert_eq!(extend(0x80, 1, true, 4), 0xffff_ff80);
        assert_eq!(extend(0x80, 1, false, 4), 0x80);
        assert_eq!(extend(0xffff_ffff, 4, true, 8), u64::MAX);
        assert_eq!(extend(u64::MAX, 8, true, 2), 0xffff);
    }
}
