//! What kernels computed, as a text file.
//!
//! ```text
//! device NVIDIA H200, driver 580.95
//! kernel triton softmax (triton/softmax.sm90.loc)
//! end 0
//! print "x = 5\n"
//! buffer 0 4096 8 0123456789abcdef
//! values 0000803f…
//! ```
//!
//! (Behind an `end` that is an error of the simulator's: `why` and what it says.)
//! `end` is the driver's answer, or `timeout`. A buffer has its number among the kernel's, its length, the length of a
//! sampled piece, and a digest of all of it (FNV-1a). Its values are the whole of it, or pieces of that length at equal
//! distances, or nothing where the kernel leaves the buffer as it was.

use crate::data::{Rule, from_hex, to_hex};
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// Pieces of a buffer that is compared bit by bit, and of one that is compared as floats; a shorter one is kept whole.
const SAMPLES: usize = 32;
const FLOATS: usize = 768;

/// Everything.
#[derive(Debug, Default, PartialEq)]
pub struct Results {
    /// Whose results they are.
    pub device: String,
    /// In the order in which they ran.
    pub kernels: Vec<Outcome>,
}

/// What one kernel did.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// `0`, an error's number, or `timeout`.
    pub end: String,
    /// Why it ended badly, if the simulator said so.
    pub why: String,
    /// What it printed.
    pub print: String,
    /// Its buffers, without those that are not compared.
    pub buffers: Vec<Contents>,
}

/// A buffer afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// Number among the kernel's buffers.
    pub number: usize,
    /// Bytes.
    pub len: usize,
    /// Bytes of a piece.
    pub piece: usize,
    /// Of all bytes.
    pub digest: u64,
    /// The pieces.
    pub values: Vec<u8>,
}

impl Contents {
    /// Of a buffer that is compared by that rule; all of it with `whole`.
    pub fn of(number: usize, bytes: &[u8], rule: Rule, whole: bool) -> Contents {
        let (piece, most) = match rule {
            Rule::Close { float, .. } => (float.bytes(), FLOATS),
            _ => (8, SAMPLES),
        };
        let mut contents = Contents {
            number,
            len: bytes.len(),
            piece,
            digest: digest(bytes),
            values: Vec::new(),
        };
        if whole || bytes.len() <= most * piece {
            contents.values = bytes.to_vec();
        } else {
            let count = bytes.len() / piece;
            let step = count.div_ceil(most);
            for i in (0..count).step_by(step) {
                contents.values.extend(&bytes[i * piece..][..piece]);
            }
        }
        contents
    }

    /// Where the piece with that number lies.
    pub fn offset(&self, piece: usize) -> usize {
        if self.values.len() == self.len {
            return piece * self.piece;
        }
        let taken = (self.values.len() / self.piece).max(1);
        let step = (self.len / self.piece).div_ceil(taken);
        piece * step * self.piece
    }
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The file's text.
pub fn write(results: &Results) -> String {
    let mut out = format!("device {}\n", results.device);
    for kernel in &results.kernels {
        out.push('\n');
        write_one(kernel, &mut out);
    }
    out
}

/// One kernel's lines.
pub fn write_one(kernel: &Outcome, out: &mut String) {
    let _ = writeln!(out, "kernel {}\nend {}", kernel.name, kernel.end);
    if !kernel.why.is_empty() {
        let _ = writeln!(out, "why {:?}", kernel.why);
    }
    if !kernel.print.is_empty() {
        let _ = writeln!(out, "print {:?}", kernel.print);
    }
    for b in &kernel.buffers {
        let _ = writeln!(
            out,
            "buffer {} {} {} {:016x}\nvalues {}",
            b.number,
            b.len,
            b.piece,
            b.digest,
            to_hex(&b.values)
        );
    }
}

/// Reads the file's text.
pub fn read(text: &str) -> Result<Results> {
    let mut results = Results::default();
    for (n, line) in text.lines().enumerate() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let at = || format!("line {}", n + 1);
        let last = results.kernels.last_mut();
        match (word, last) {
            ("", _) => {}
            ("device", _) => results.device = rest.to_string(),
            ("kernel", _) => results.kernels.push(Outcome {
                name: rest.to_string(),
                ..Outcome::default()
            }),
            ("end", Some(kernel)) => kernel.end = rest.to_string(),
            ("why", Some(kernel)) => kernel.why = unquote(rest),
            ("print", Some(kernel)) => kernel.print = unquote(rest),
            ("buffer", Some(kernel)) => {
                let parts: Vec<&str> = rest.split(' ').collect();
                let [number, len, piece, digest] = parts[..] else {
                    bail!("{}: four numbers are expected", at());
                };
                kernel.buffers.push(Contents {
                    number: number.parse().with_context(at)?,
                    len: len.parse().with_context(at)?,
                    piece: piece.parse().with_context(at)?,
                    digest: u64::from_str_radix(digest, 16).with_context(at)?,
                    values: Vec::new(),
                });
            }
            ("values", Some(kernel)) => {
                let buffer = kernel.buffers.last_mut().with_context(at)?;
                buffer.values = from_hex(rest).with_context(at)?;
            }
            _ => bail!("{}: `{word}`", at()),
        }
    }
    Ok(results)
}

/// Takes Rust's quoting of a string back, as far as kernels print such things.
fn unquote(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.trim_matches('"').chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Float;

    #[test]
    fn results_survive_their_text() {
        let bytes: Vec<u8> = (0..5000u32).flat_map(u32::to_le_bytes).collect();
        let rule = Rule::Close {
            float: Float::F32,
            relative: 0.0,
            absolute: 0.0,
        };
        let results = Results {
            device: "one".to_string(),
            kernels: vec![Outcome {
                name: "a kernel (x)".to_string(),
                end: "719".to_string(),
                why: "no \"memory\" there".to_string(),
                print: "say \"hi\"\n".to_string(),
                buffers: vec![
                    Contents::of(0, &bytes, rule, false),
                    Contents::of(2, &bytes[..16], Rule::Exact, false),
                ],
            }],
        };
        assert_eq!(read(&write(&results)).unwrap(), results);
        let sampled = &results.kernels[0].buffers[0];
        let third = &sampled.values[8..12];
        assert_eq!(&bytes[sampled.offset(2)..][..4], third);
    }
}
