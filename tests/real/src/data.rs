//! Arguments: `u32=5`, `f32=0.5`, or a buffer `KIND[N]` of N elements with repeatable contents.

use anyhow::{Context, Result, bail};

/// A buffer's contents.
pub struct Data(Vec<u8>);

impl Data {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of a scalar; `None` if the word names a buffer.
    pub fn scalar(word: &str) -> Result<Option<Vec<u8>>> {
        let Some((ty, value)) = word.split_once('=') else {
            return Ok(None);
        };
        let bad = || format!("`{word}`");
        Ok(Some(match ty {
            "u32" => value
                .parse::<u32>()
                .with_context(bad)?
                .to_le_bytes()
                .to_vec(),
            "u64" => value
                .parse::<u64>()
                .with_context(bad)?
                .to_le_bytes()
                .to_vec(),
            "f32" => value
                .parse::<f32>()
                .with_context(bad)?
                .to_le_bytes()
                .to_vec(),
            _ => bail!("`{word}`: a scalar is u32, u64 or f32"),
        }))
    }

    /// `zero[N]` bytes; `f32[N]` in 0..1, `f16[N]` in 0.5..1, `u8[N]`, `i32[N]` below 2^20, `whole[N]` small whole numbers
    /// as f32, whose sums are exact in any order.
    pub fn parse(word: &str) -> Result<Data> {
        let (kind, n) = word
            .strip_suffix(']')
            .and_then(|w| w.split_once('['))
            .with_context(|| format!("`{word}` is neither TYPE=VALUE nor KIND[N]"))?;
        let n: usize = n.parse().with_context(|| format!("`{word}`"))?;
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ n as u64);
        let mut bytes = Vec::new();
        for _ in 0..n {
            match kind {
                "zero" => bytes.push(0),
                "u8" => bytes.push(random.next() as u8),
                "f32" => {
                    let value = (random.next() >> 8) as f32 / (1 << 24) as f32;
                    bytes.extend(value.to_le_bytes());
                }
                "f16" => bytes.extend((0x3800 | random.next() as u16 & 0x3ff).to_le_bytes()),
                "i32" => bytes.extend((random.next() & 0xf_ffff).to_le_bytes()),
                "whole" => bytes.extend(((random.next() & 7) as f32).to_le_bytes()),
                _ => bail!("`{word}`: the kinds are zero, u8, f32, f16, i32, whole"),
            }
        }
        Ok(Data(bytes))
    }
}

/// xorshift64*, the upper half.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}
