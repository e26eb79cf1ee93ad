//! `cvt.pack`: two saturated integers side by side, and above narrow ones what was packed before.

use super::{Alu, Func, Mods, three, two};
use crate::machine::ty::Ty;

/// The types that are packed, and their bits. Those of 16 fill a register and take no third operand.
const NARROW: [(&str, u32, bool); 8] = [
    ("u2", 2, false),
    ("s2", 2, true),
    ("u4", 4, false),
    ("s4", 4, true),
    ("u8", 8, false),
    ("s8", 8, true),
    ("u16", 16, false),
    ("s16", 16, true),
];
const SIGNED: u32 = 1 << 8;

/// The instruction, if it is one.
pub fn find(opcode: &str, mods: &Mods<'_>) -> Option<Alu> {
    if opcode != "cvt" || !mods.has("pack") || !mods.has("sat") || !mods.has("s32") {
        return None;
    }
    let (_, bits, signed) = NARROW.into_iter().find(|(name, ..)| mods.has(name))?;
    let flags = bits | if signed { SIGNED } else { 0 };
    let func: Func = match bits {
        16 => two!(|f, a: i32, b: i32| pair(f, a, b)),
        _ => three!(|f, a: i32, b: i32, c: u32| pair(f, a, b) | c << (2 * (f & 0xff))),
    };
    Some(Alu {
        func,
        flags,
        dst: Ty::B32,
        src: [Ty::S32, Ty::S32, Ty::B32, Ty::B32],
    })
}

/// The second operand lies below the first.
fn pair(flags: u32, a: i32, b: i32) -> u32 {
    saturated(flags, a) << (flags & 0xff) | saturated(flags, b)
}

fn saturated(flags: u32, x: i32) -> u32 {
    let bits = flags & 0xff;
    let (least, most) = match flags & SIGNED {
        0 => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    };
    x.clamp(least, most) as u32 & ((1 << bits) - 1)
}
