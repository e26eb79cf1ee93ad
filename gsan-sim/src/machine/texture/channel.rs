//! Elements of texels: what a register has of them.

use crate::machine::alu::round::{F16, Rounding};

/// Elements of a texel's channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl Channel {
    /// By `CUarray_format`.
    pub fn of_driver(number: u32) -> Option<Channel> {
        Some(match number {
            1 => Channel::U8,
            2 => Channel::U16,
            3 => Channel::U32,
            8 => Channel::S8,
            9 => Channel::S16,
            10 => Channel::S32,
            0x10 => Channel::F16,
            0x20 => Channel::F32,
            _ => return None,
        })
    }

    /// Bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Channel::U8 | Channel::S8 => 1,
            Channel::U16 | Channel::S16 | Channel::F16 => 2,
            _ => 4,
        }
    }

    /// A border's value where the channel stands for a fraction: no more than it can say.
    pub(super) fn border(self, x: f32) -> f32 {
        match self {
            Channel::U8 | Channel::U16 => x.clamp(0.0, 1.0),
            Channel::S8 | Channel::S16 => x.clamp(-1.0, 1.0),
            _ => x,
        }
    }

    /// Whether it is an integer with a sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Channel::S8 | Channel::S16 | Channel::S32)
    }

    /// A register's word as the channel has it: integers stop at their ends, floats are cut.
    pub fn narrow(self, word: u32) -> u64 {
        let signed = word as i32;
        match self {
            Channel::U8 => u64::from(word.min(0xff)),
            Channel::U16 => u64::from(word.min(0xffff)),
            Channel::S8 => u64::from(signed.clamp(-0x80, 0x7f) as u8),
            Channel::S16 => u64::from(signed.clamp(-0x8000, 0x7fff) as u16),
            // The upper bits stay, of what is no number too.
            Channel::F16 if f32::from_bits(word).is_nan() => {
                u64::from(word >> 16 & 0x8000 | 0x7e00 | word >> 13 & 0x1ff)
            }
            Channel::F16 => {
                let x = f64::from(f32::from_bits(word));
                u64::from(F16.encode(x, Rounding::Zero as u32))
            }
            Channel::U32 | Channel::S32 | Channel::F32 => word.into(),
        }
    }

    /// Its bits as a register has them; `normalized`: 8 and 16 bits stand for 0 to 1, or −1 to 1.
    pub(super) fn widen(self, bits: u64, normalized: bool) -> u32 {
        let bits = bits as u32;
        let float = |x: f32| if normalized { Some(x.to_bits()) } else { None };
        let scaled = |n: i16, most: f32| float((f32::from(n) / most).max(-1.0));
        match self {
            Channel::U8 => float(bits as f32 / 255.0).unwrap_or(bits),
            Channel::U16 => float(bits as f32 / 65535.0).unwrap_or(bits),
            Channel::S8 => scaled(i16::from(bits as i8), 127.0).unwrap_or(bits as i8 as u32),
            Channel::S16 => scaled(bits as i16, 32767.0).unwrap_or(bits as i16 as u32),
            Channel::F16 => (F16.decode(bits & 0xffff) as f32).to_bits(),
            Channel::U32 | Channel::S32 | Channel::F32 => bits,
        }
    }
}
