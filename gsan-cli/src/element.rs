//! Buffer elements: their types, how they are written, initialised, encoded and shown.

use std::fmt;
use std::str::FromStr;

/// The type of a buffer's elements, or of a scalar kernel argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ElementType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl ElementType {
    /// Every type with its name.
    pub const ALL: [(&'static str, ElementType); 10] = [
        ("u8", ElementType::U8),
        ("u16", ElementType::U16),
        ("u32", ElementType::U32),
        ("u64", ElementType::U64),
        ("i8", ElementType::I8),
        ("i16", ElementType::I16),
        ("i32", ElementType::I32),
        ("i64", ElementType::I64),
        ("f32", ElementType::F32),
        ("f64", ElementType::F64),
    ];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            ElementType::U8 | ElementType::I8 => 1,
            ElementType::U16 | ElementType::I16 => 2,
            ElementType::U32 | ElementType::I32 | ElementType::F32 => 4,
            ElementType::U64 | ElementType::I64 | ElementType::F64 => 8,
        }
    }

    /// The bytes of a number, or why it does not fit.
    pub fn encode(self, number: Number) -> Result<Vec<u8>, String> {
        let misfit = || format!("{number} does not fit a {self}");
        let integer = match number {
            Number::Int(i) => Some(i),
            Number::Float(_) => None,
        };
        macro_rules! int {
            ($t:ty) => {
                <$t>::try_from(integer.ok_or_else(misfit)?)
                    .map_err(|_| misfit())?
                    .to_le_bytes()
                    .to_vec()
            };
        }
        Ok(match self {
            ElementType::U8 => int!(u8),
            ElementType::U16 => int!(u16),
            ElementType::U32 => int!(u32),
            ElementType::U64 => int!(u64),
            ElementType::I8 => int!(i8),
            ElementType::I16 => int!(i16),
            ElementType::I32 => int!(i32),
            ElementType::I64 => int!(i64),
            ElementType::F32 => (number.as_f64() as f32).to_le_bytes().to_vec(),
            ElementType::F64 => number.as_f64().to_le_bytes().to_vec(),
        })
    }

    /// The number in an element's bytes; `bytes` has the type's size.
    pub fn decode(self, bytes: &[u8]) -> Number {
        let mut wide = [0u8; 8];
        let n = bytes.len().min(self.size());
        wide[..n].copy_from_slice(&bytes[..n]);
        let bits = u64::from_le_bytes(wide);
        match self {
            ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
                Number::Int(i128::from(bits))
            }
            ElementType::I8 => Number::Int(i128::from(bits as i8)),
            ElementType::I16 => Number::Int(i128::from(bits as i16)),
            ElementType::I32 => Number::Int(i128::from(bits as i32)),
            ElementType::I64 => Number::Int(i128::from(bits as i64)),
            ElementType::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
            ElementType::F64 => Number::Float(f64::from_bits(bits)),
        }
    }

    /// A number as text, with the digits that its type has.
    pub fn show(self, number: Number) -> String {
        match (self, number) {
            (ElementType::F32, n) => format!("{:?}", n.as_f64() as f32),
            (_, n) => n.to_string(),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ElementType::ALL
            .iter()
            .find(|(_, t)| t == self)
            .map_or("?", |(n, _)| n);
        f.write_str(name)
    }
}

impl FromStr for ElementType {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        ElementType::ALL
            .iter()
            .find(|(n, _)| *n == s)
            .map(|(_, t)| *t)
            .ok_or_else(|| {
                format!(
                    "`{s}` is not an element type; there are u8 u16 u32 u64 i8 i16 i32 i64 f32 f64"
                )
            })
    }
}

/// A number as it was written or read back.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// An integer of any of the types.
    Int(i128),
    /// A float of either type.
    Float(f64),
}

impl Number {
    /// The nearest double.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }
    }
}

impl PartialEq for Number {
    /// Numeric equality, in which a NaN equals a NaN: an expected value is met or it is not.
    fn eq(&self, other: &Number) -> bool {
        match (*self, *other) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (a, b) => {
                let (a, b) = (a.as_f64(), b.as_f64());
                a == b || (a.is_nan() && b.is_nan())
            }
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(i) => write!(f, "{i}"),
            Number::Float(x) => write!(f, "{x:?}"),
        }
    }
}

impl FromStr for Number {
    type Err = String;

    /// Decimal or `0x`/`0o`/`0b` integers, `_` between digits, decimal floats, `inf`, `nan`.
    fn from_str(s: &str) -> Result<Self, String> {
        let plain = s.trim().replace('_', "");
        let (negative, digits) = match plain.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
        };
        let (radix, body) = match digits.get(..2) {
            Some("0x" | "0X") => (16, &digits[2..]),
            Some("0o") => (8, &digits[2..]),
            Some("0b") => (2, &digits[2..]),
            _ => (10, digits),
        };
        // `from_str_radix` would take a second sign.
        if body.starts_with(|c: char| c.is_ascii_alphanumeric())
            && let Ok(value) = i128::from_str_radix(body, radix)
        {
            return Ok(Number::Int(if negative { -value } else { value }));
        }
        plain
            .parse::<f64>()
            .map(Number::Float)
            .map_err(|_| format!("`{s}` is not a number"))
    }
}

/// What a buffer holds at first.
#[derive(Debug, Clone, PartialEq)]
pub enum Init {
    /// All bytes zero.
    Zero,
    /// 0, 1, 2, … (wrapping at the type's end).
    Iota,
    /// Every element this number.
    Fill(Number),
    /// Random numbers from a seed: integers over their whole range, floats in [0, 1).
    Rand(u64),
    /// The bytes of a file; the rest zero.
    File(std::path::PathBuf),
}

impl FromStr for Init {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if let Some(v) = s.strip_prefix("fill:") {
            return Ok(Init::Fill(v.parse()?));
        }
        if let Some(v) = s.strip_prefix("rand:") {
            return match v.parse()? {
                Number::Int(seed) => u64::try_from(seed).map(Init::Rand),
                Number::Float(_) => u64::try_from(-1).map(Init::Rand),
            }
            .map_err(|_| format!("`{v}` is not a seed (an integer from 0 to 2^64-1)"));
        }
        match s {
            "zero" => Ok(Init::Zero),
            "iota" => Ok(Init::Iota),
            "fill" | "rand" => Err(format!("`{s}` needs a value: `{s}:V`")),
            _ => match s.strip_prefix('@') {
                Some("") => Err("`@` needs a file name".into()),
                Some(path) => Ok(Init::File(path.into())),
                None => Err(format!(
                    "`{s}` is not an initial content; there are zero, iota, fill:V, rand:SEED and @FILE"
                )),
            },
        }
    }
}

impl Init {
    /// Whether `number` fits; called once, so that [`Init::write`] cannot fail.
    pub fn check(&self, ty: ElementType) -> Result<(), String> {
        match self {
            Init::Fill(n) => ty.encode(*n).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Writes the elements from number `first` on into `bytes`, a whole number of elements. Files are not handled here.
    pub fn write(&self, ty: ElementType, first: u64, bytes: &mut [u8]) {
        let size = ty.size();
        match self {
            Init::Zero | Init::File(_) => bytes.fill(0),
            Init::Fill(n) => {
                let one = ty.encode(*n).unwrap_or_else(|_| vec![0; size]);
                bytes
                    .chunks_exact_mut(size)
                    .for_each(|c| c.copy_from_slice(&one));
            }
            Init::Iota => {
                for (i, chunk) in (first..).zip(bytes.chunks_exact_mut(size)) {
                    match ty {
                        ElementType::F32 => chunk.copy_from_slice(&(i as f32).to_le_bytes()),
                        ElementType::F64 => chunk.copy_from_slice(&(i as f64).to_le_bytes()),
                        _ => chunk.copy_from_slice(&i.to_le_bytes()[..size]),
                    }
                }
            }
            Init::Rand(seed) => {
                for (i, chunk) in (first..).zip(bytes.chunks_exact_mut(size)) {
                    let bits = mix(seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
                    match ty {
                        ElementType::F32 => {
                            chunk.copy_from_slice(
                                &((bits >> 40) as f32 / (1u32 << 24) as f32).to_le_bytes(),
                            );
                        }
                        ElementType::F64 => {
                            chunk.copy_from_slice(
                                &((bits >> 11) as f64 / (1u64 << 53) as f64).to_le_bytes(),
                            );
                        }
                        _ => chunk.copy_from_slice(&bits.to_le_bytes()[..size]),
                    }
                }
            }
        }
    }
}

/// SplitMix64's finaliser: element `i` of a random buffer does not depend on how the buffer is cut into pieces.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_every_notation() {
        for (text, value) in [
            ("5", 5),
            ("-1", -1),
            ("+7", 7),
            ("0x10", 16),
            ("-0x10", -16),
            ("1_000", 1000),
            ("0b101", 5),
            ("0o17", 15),
        ] {
            assert_eq!(text.parse(), Ok(Number::Int(value)), "{text}");
        }
        assert_eq!("1.5".parse(), Ok(Number::Float(1.5)));
        assert_eq!("-2e3".parse(), Ok(Number::Float(-2000.0)));
        for bad in ["", "-", "--1", "0x", "0x-1", "abc", "1 2", "0b2", "٣"] {
            assert!(bad.parse::<Number>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_type_round_trips_its_extremes() {
        for (name, ty) in ElementType::ALL {
            assert_eq!(name.parse(), Ok(ty));
            assert_eq!(ty.to_string(), name);
            let numbers: &[i128] = match ty {
                ElementType::U8 => &[0, 255],
                ElementType::U16 => &[0, 65535],
                ElementType::U32 => &[0, u32::MAX as i128],
                ElementType::U64 => &[0, u64::MAX as i128],
                ElementType::I8 => &[-128, 127],
                ElementType::I16 => &[-32768, 32767],
                ElementType::I32 => &[i32::MIN as i128, i32::MAX as i128],
                ElementType::I64 => &[i64::MIN as i128, i64::MAX as i128],
                ElementType::F32 | ElementType::F64 => &[-3, 0, 1 << 20],
            };
            for &n in numbers {
                let bytes = ty.encode(Number::Int(n)).unwrap();
                assert_eq!(bytes.len(), ty.size());
                assert_eq!(ty.decode(&bytes), Number::Int(n), "{name} {n}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(ElementType::U8.encode(Number::Int(256)).is_err());
        assert!(ElementType::U32.encode(Number::Int(-1)).is_err());
        assert!(ElementType::I8.encode(Number::Int(-129)).is_err());
        assert_eq!(
            ElementType::U32.encode(Number::Float(1.5)),
            Err("1.5 does not fit a u32".into())
        );
        assert!(ElementType::F32.encode(Number::Float(0.1)).is_ok());
    }

    #[test]
    fn pieces_of_a_buffer_are_the_buffer() {
        for (_, ty) in ElementType::ALL {
            for init in [
                Init::Zero,
                Init::Iota,
                Init::Fill(Number::Int(7)),
                Init::Rand(3),
            ] {
                let mut whole = vec![0xaa; 100 * ty.size()];
                init.write(ty, 0, &mut whole);
                let mut parts = vec![0xbb; 100 * ty.size()];
                let (a, b) = parts.split_at_mut(37 * ty.size());
                init.write(ty, 0, a);
                init.write(ty, 37, b);
                assert_eq!(whole, parts, "{ty} {init:?}");
            }
        }
    }

    #[test]
    fn random_floats_lie_in_the_unit_interval_and_differ() {
        let mut bytes = vec![0; 4000];
        Init::Rand(1).write(ElementType::F32, 0, &mut bytes);
        let values: Vec<f64> = bytes
            .chunks_exact(4)
            .map(|c| ElementType::F32.decode(c).as_f64())
            .collect();
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((0.4..0.6).contains(&mean), "{mean}");
    }

    #[test]
    fn initial_contents_are_parsed() {
        assert_eq!("zero".parse(), Ok(Init::Zero));
        assert_eq!("fill:-3".parse(), Ok(Init::Fill(Number::Int(-3))));
        assert_eq!(
            "rand:18446744073709551615".parse(),
            Ok(Init::Rand(u64::MAX))
        );
        assert_eq!("@a/b.bin".parse(), Ok(Init::File("a/b.bin".into())));
        for bad in [
            "", "fill", "fill:", "rand:", "rand:-1", "rand:1.5", "@", "ones",
        ] {
            assert!(bad.parse::<Init>().is_err(), "{bad}");
        }
    }

    #[test]
    fn floats_show_their_own_digits() {
        let bytes = ElementType::F32.encode(Number::Float(0.1)).unwrap();
        assert_eq!(
            ElementType::F32.show(ElementType::F32.decode(&bytes)),
            "0.1"
        );
        assert_eq!(ElementType::F64.show(Number::Float(2.0)), "2.0");
        assert_eq!(ElementType::I32.show(Number::Int(-4)), "-4");
    }
}
