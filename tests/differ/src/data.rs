//! Words for arguments.
//!
//! | word | is |
//! |---|---|
//! | `u32=5`, `i32=-1`, `u64=…`, `f32=0.5`, `f64=…` | a scalar |
//! | `bytes=00ff…` | an argument by value, in hex |
//! | `map=0`, `mapptr=0`, `mapdata=0` | the first tensor map by value, by address, its tensor's address |
//! | `KIND[N]` | a buffer of N elements |
//! | `symbol(NAME+OFFSET)[N]` | a buffer of N bytes, the address of the module's variable NAME plus OFFSET first; not compared |
//!
//! Kinds: `zero`, `fill` (bytes 0, 0xa5), `u8`, `u16`, `u32`, `u64` (any bits), `below` (`below.7[N]`: u32 below 7), `iota`, `f32` (0 to 1),
//! `sf32` (−1 to 1), `f16` (0.5 to 1), `f64`; small whole numbers whose sums are exact in any order: `whole`, `whole64`,
//! `whole16`, `wholeb16`, `whole8` (e5m2), `pos` (f32, 1 to 8), `signed`; and `edge…` (`edgef32`, `edgeu64`): the ends of the
//! type's range among random bits. `words(0*64,99,1)`: those u32.
//!
//! How a buffer is compared stands behind it: nothing: bit by bit. `?`: not at all. `~f32:1e-5:1e-6`: as floats, with that
//! relative and that absolute difference allowed.

use anyhow::{Context, Result, bail};

/// How a buffer is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Bit by bit.
    Exact,
    /// Not at all.
    Ignored,
    /// As floats of that many bytes (2: f16, 3: bf16, 4, 8).
    Close {
        /// The type.
        float: Float,
        /// Of the expected value.
        relative: f64,
        /// Whatever the expected value.
        absolute: f64,
    },
}

/// A type of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Float {
    F16,
    Bf16,
    F32,
    F64,
}

impl Float {
    /// Bytes.
    pub fn bytes(self) -> usize {
        match self {
            Float::F16 | Float::Bf16 => 2,
            Float::F32 => 4,
            Float::F64 => 8,
        }
    }

    /// The value of its bytes.
    pub fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Float::F16, &[a, b]) => {
                let bits = u16::from_le_bytes([a, b]);
                let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
                let (e, m) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
                sign * match e {
                    0 => m * 2f64.powi(-24),
                    31 if m == 0.0 => f64::INFINITY,
                    31 => f64::NAN,
                    _ => (1024.0 + m) * 2f64.powi(e - 25),
                }
            }
            (Float::Bf16, &[a, b]) => f64::from(f32::from_le_bytes([0, 0, a, b])),
            (Float::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Float::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => f64::NAN,
        }
    }
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// By value.
    Value(Vec<u8>),
    /// A buffer's address.
    Buffer(Vec<u8>, Rule),
    /// Zeroed bytes behind the address of a variable of the module's.
    Symbol {
        /// The variable.
        name: String,
        /// What is added to its address.
        offset: u64,
        /// Bytes in all.
        len: usize,
    },
    /// A tensor map, by value.
    Map(usize),
    /// A tensor map's address.
    MapAddress(usize),
    /// The address of a tensor map's tensor.
    MapData(usize),
}

/// Reads a word.
pub fn parse(word: &str) -> Result<Argument> {
    let bad = || format!("`{word}`");
    if let Some((ty, value)) = word.split_once('=') {
        return Ok(match ty {
            "u32" => Argument::Value(value.parse::<u32>().with_context(bad)?.to_le_bytes().into()),
            "i32" => Argument::Value(value.parse::<i32>().with_context(bad)?.to_le_bytes().into()),
            "u64" => Argument::Value(value.parse::<u64>().with_context(bad)?.to_le_bytes().into()),
            "f32" => Argument::Value(value.parse::<f32>().with_context(bad)?.to_le_bytes().into()),
            "f64" => Argument::Value(value.parse::<f64>().with_context(bad)?.to_le_bytes().into()),
            "bytes" => Argument::Value(from_hex(value).with_context(bad)?),
            "map" => Argument::Map(value.parse().with_context(bad)?),
            "mapptr" => Argument::MapAddress(value.parse().with_context(bad)?),
            "mapdata" => Argument::MapData(value.parse().with_context(bad)?),
            _ => bail!("`{word}`: no such type"),
        });
    }
    if let Some(rest) = word.strip_prefix("symbol(") {
        let parts = rest.strip_suffix(']').and_then(|r| r.split_once(")["));
        let (place, len) = parts.with_context(bad)?;
        let (name, offset) = place.split_once('+').unwrap_or((place, "0"));
        return Ok(Argument::Symbol {
            name: name.to_string(),
            offset: offset.parse().with_context(bad)?,
            len: len.parse().with_context(bad)?,
        });
    }
    let (contents, rule) = match (word.strip_suffix('?'), word.split_once('~')) {
        (Some(contents), _) => (contents, Rule::Ignored),
        (_, Some((contents, rule))) => (contents, close(rule).with_context(bad)?),
        _ => (word, Rule::Exact),
    };
    Ok(Argument::Buffer(buffer(contents).with_context(bad)?, rule))
}

fn close(rule: &str) -> Result<Rule> {
    let parts: Vec<&str> = rule.split(':').collect();
    let [ty, relative, absolute] = parts[..] else {
        bail!("a tolerance is TYPE:RELATIVE:ABSOLUTE");
    };
    let float = match ty {
        "f16" => Float::F16,
        "bf16" => Float::Bf16,
        "f32" => Float::F32,
        "f64" => Float::F64,
        _ => bail!("no such float"),
    };
    Ok(Rule::Close {
        float,
        relative: relative.parse()?,
        absolute: absolute.parse()?,
    })
}

fn buffer(contents: &str) -> Result<Vec<u8>> {
    if let Some(list) = contents
        .strip_prefix("words(")
        .and_then(|c| c.strip_suffix(')'))
    {
        let mut bytes = Vec::new();
        for item in list.split(',') {
            let (value, count) = item.trim().split_once('*').unwrap_or((item.trim(), "1"));
            let value = value.parse::<i64>()? as u32;
            (0..count.parse::<usize>()?).for_each(|_| bytes.extend(value.to_le_bytes()));
        }
        return Ok(bytes);
    }
    let (kind, n) = contents
        .strip_suffix(']')
        .and_then(|c| c.split_once('['))
        .context("neither TYPE=VALUE nor KIND[N]")?;
    let n: usize = n.parse()?;
    let (kind, limit) = kind.split_once('.').unwrap_or((kind, "1"));
    let limit: u32 = limit.parse()?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (n as u64) << 8 ^ kind.len() as u64);
    let mut bytes = Vec::new();
    for i in 0..n {
        element(kind, limit, i, &mut random, &mut bytes)?;
    }
    Ok(bytes)
}

fn element(kind: &str, limit: u32, i: usize, random: &mut Random, to: &mut Vec<u8>) -> Result<()> {
    let unit = |random: &mut Random| (random.next() >> 8) as f32 / (1 << 24) as f32;
    // −3 to 3.
    let small = |random: &mut Random| (random.next() % 7) as i32 - 3;
    match kind {
        "zero" => to.push(0),
        "fill" => to.push(0xa5),
        "u8" => to.push(random.next() as u8),
        "u16" => to.extend((random.next() as u16).to_le_bytes()),
        "u32" => to.extend(random.next().to_le_bytes()),
        "u64" => to.extend(random.wide().to_le_bytes()),
        "below" => to.extend((random.next() % limit.max(1)).to_le_bytes()),
        "iota" => to.extend((i as u32).to_le_bytes()),
        "f32" => to.extend(unit(random).to_le_bytes()),
        "sf32" => to.extend((2.0 * unit(random) - 1.0).to_le_bytes()),
        "f64" => to.extend(f64::from(unit(random)).to_le_bytes()),
        "f16" => to.extend((0x3800 | random.next() as u16 & 0x3ff).to_le_bytes()),
        "whole" | "signed" => to.extend((small(random) as f32).to_le_bytes()),
        "pos" => to.extend(((1 + random.next() % 8) as f32).to_le_bytes()),
        "whole64" => to.extend(f64::from(small(random)).to_le_bytes()),
        "whole16" => to.extend(half(small(random)).to_le_bytes()),
        "wholeb16" => to.extend(&(small(random) as f32).to_le_bytes()[2..]),
        "whole8" => to.push((half(small(random)) >> 8) as u8),
        _ => match kind.strip_prefix("edge") {
            Some(ty) => edge(ty, i, random, to)?,
            None => bail!("no such kind of data"),
        },
    }
    Ok(())
}

fn half(n: i32) -> u16 {
    let sign = if n < 0 { 0x8000 } else { 0 };
    match n.unsigned_abs() {
        0 => 0,
        1 => sign | 0x3c00,
        2 => sign | 0x4000,
        3 => sign | 0x4200,
        _ => sign | 0x4400,
    }
}

/// The first 24 elements are the ends of the range and what lies around them, in an order that differs from buffer to
/// buffer (the random bits that follow do too).
fn edge(ty: &str, i: usize, random: &mut Random, to: &mut Vec<u8>) -> Result<()> {
    const F32: [u32; 24] = [
        0,
        0x8000_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc1_2345,
        0x7f7f_ffff,
        0xff7f_ffff,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x3f00_0000,
        0x3fc0_0000,
        0x4b00_0001,
        0x4f00_0000,
        0xcf00_0000,
        0x4f80_0000,
        0x5f00_0000,
        0x3f7f_ffff,
        0x477f_e000,
        0x4780_0000,
    ];
    const F64: [u64; 24] = [
        0,
        1 << 63,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0000,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
        0xfff8_1234_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0xffef_ffff_ffff_ffff,
        1,
        0x8000_0000_0000_0001,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x3fe0_0000_0000_0000,
        0x3ff8_0000_0000_0000,
        0x41e0_0000_0000_0000,
        0xc1e0_0000_0000_0000,
        0x41ef_ffff_ffe0_0000,
        0x43e0_0000_0000_0000,
        0xc3e0_0000_0000_0000,
        0x3fef_ffff_ffff_ffff,
        0x47ef_ffff_f000_0000,
        0x36a0_0000_0000_0000,
    ];
    const F16: [u16; 24] = [
        0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x7bff, 0xfbff, 1, 0x8001,
        0x3ff, 0x400, 0x3800, 0x3e00, 0x6400, 0x6801, 0x7800, 0xf800, 0x5800, 0x3bff, 0x4900,
        0x2000,
    ];
    const INT: [i64; 12] = [0, 1, -1, 2, -2, 31, 32, 33, 63, 64, 5, -32];
    // Every second float is of moderate size: random bits are mostly huge or tiny.
    let moderate = i.is_multiple_of(2);
    let at = (random.next() as usize).wrapping_add(i) % 24;
    let pick = i < 96;
    match ty {
        "f32" => {
            let bits = match (pick, moderate) {
                (true, _) => F32[at],
                (_, true) => random.next() & 0x83ff_ffff | 0x3c00_0000,
                _ => random.next(),
            };
            to.extend(bits.to_le_bytes());
        }
        "f64" => {
            let bits = match (pick, moderate) {
                (true, _) => F64[at],
                (_, true) => random.wide() & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000,
                _ => random.wide(),
            };
            to.extend(bits.to_le_bytes());
        }
        "f16" | "bf16" => {
            let bits = match (pick, ty) {
                (true, "f16") => F16[at],
                (true, _) => (F32[at] >> 16) as u16,
                _ => random.next() as u16,
            };
            to.extend(bits.to_le_bytes());
        }
        "u8" => to.push(if i < 64 {
            INT[at % 12] as u8
        } else {
            random.next() as u8
        }),
        "u16" | "u32" | "u64" => {
            let bytes = match ty {
                "u16" => 2,
                "u32" => 4,
                _ => 8,
            };
            let top = 1i64 << (8 * bytes - 1);
            let value = match (pick, at) {
                (true, 0..12) => INT[at],
                (true, 12..16) => top,
                (true, 16..20) => top.wrapping_sub(1),
                (true, _) => top >> 1,
                _ => random.wide() as i64,
            };
            to.extend(&value.to_le_bytes()[..bytes as usize]);
        }
        _ => bail!("no such kind of data"),
    }
    Ok(())
}

/// xorshift64*, the upper half.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        (self.wide() >> 32) as u32
    }

    fn wide(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Two digits per byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The reverse of [`to_hex`].
pub fn from_hex(text: &str) -> Result<Vec<u8>> {
    (0..text.len())
        .step_by(2)
        .map(|i| {
            let digits = text.get(i..i + 2).context("half a byte")?;
            u8::from_str_radix(digits, 16).context("no hex digits")
        })
        .collect()
}
