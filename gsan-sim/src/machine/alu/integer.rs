//! Integer arithmetic.

use super::{Alu, Func, Mods, by_int, one, three, two};
use crate::machine::ty::{Ty, Value};

/// Which part of a product an instruction wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Low,
    High,
    Wide,
}

/// The integer instruction of that name, if there is one.
pub fn find(opcode: &str, mods: &Mods<'_>) -> Option<Alu> {
    let ty = mods.ty()?;
    if matches!(ty, Ty::U16x2 | Ty::S16x2) {
        return packed(opcode, mods, ty);
    }
    if !ty.is_int() {
        return None;
    }
    let same = |func: Option<Func>| func.map(|f| Alu::same(f, 0, ty));
    let part = if mods.has("hi") {
        Part::High
    } else if mods.has("wide") {
        Part::Wide
    } else {
        Part::Low
    };
    match opcode {
        "add" if mods.has("sat") => {
            same((ty == Ty::S32).then(|| two!(|_, a: i32, b: i32| a.saturating_add(b))))
        }
        "sub" if mods.has("sat") => {
            same((ty == Ty::S32).then(|| two!(|_, a: i32, b: i32| a.saturating_sub(b))))
        }
        "add" if mods.only(&[]) => same(by_int!(ty, two, |a, b| a.wrapping_add(b))),
        "sub" if mods.only(&[]) => same(by_int!(ty, two, |a, b| a.wrapping_sub(b))),
        "mul" => product(ty, part),
        "mad" => multiply_add(ty, part, mods.has("sat")),
        "mul24" | "mad24" => product24(opcode, ty, part, mods.has("sat")),
        // By zero both are all ones on an H200.
        "div" => same(by_int!(ty, two, |a, b| if b == 0 {
            !0
        } else {
            a.wrapping_div(b)
        })),
        "rem" => same(by_int!(ty, two, |a, b| if b == 0 {
            !0
        } else {
            a.wrapping_rem(b)
        })),
        "abs" => same(match ty {
            Ty::S16 => Some(one!(|_, a: i16| a.wrapping_abs())),
            Ty::S32 => Some(one!(|_, a: i32| a.wrapping_abs())),
            Ty::S64 => Some(one!(|_, a: i64| a.wrapping_abs())),
            _ => None,
        }),
        "neg" => same(by_int!(ty, one, |a| a.wrapping_neg())),
        "min" if mods.has("relu") => {
            same((ty == Ty::S32).then(|| two!(|_, a: i32, b: i32| a.min(b).max(0))))
        }
        "max" if mods.has("relu") => {
            same((ty == Ty::S32).then(|| two!(|_, a: i32, b: i32| a.max(b).max(0))))
        }
        "min" => same(by_int!(ty, two, |a, b| a.min(b))),
        "max" => same(by_int!(ty, two, |a, b| a.max(b))),
        "sad" => same(by_int!(ty, three, |a, b, c| c.wrapping_add(if a < b {
            b.wrapping_sub(a)
        } else {
            a.wrapping_sub(b)
        }))),
        "dp4a" => dot(mods, true),
        "dp2a" => dot(mods, false),
        _ => None,
    }
}

fn product(ty: Ty, part: Part) -> Option<Alu> {
    let func = match part {
        Part::Low => by_int!(ty, two, |a, b| a.wrapping_mul(b))?,
        Part::High => match ty {
            Ty::U16 => two!(|_, a: u16, b: u16| ((u32::from(a) * u32::from(b)) >> 16) as u16),
            Ty::S16 => two!(|_, a: i16, b: i16| ((i32::from(a) * i32::from(b)) >> 16) as i16),
            Ty::U32 => two!(|_, a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
            Ty::S32 => two!(|_, a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32),
            Ty::U64 => two!(|_, a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64),
            Ty::S64 => two!(|_, a: i64, b: i64| ((i128::from(a) * i128::from(b)) >> 64) as i64),
            _ => return None,
        },
        Part::Wide => match ty {
            Ty::U16 => two!(|_, a: u16, b: u16| u32::from(a) * u32::from(b)),
            Ty::S16 => two!(|_, a: i16, b: i16| i32::from(a) * i32::from(b)),
            Ty::U32 => two!(|_, a: u32, b: u32| u64::from(a) * u64::from(b)),
            Ty::S32 => two!(|_, a: i32, b: i32| i64::from(a) * i64::from(b)),
            _ => return None,
        },
    };
    let dst = if part == Part::Wide {
        ty.widened()?
    } else {
        ty
    };
    Some(Alu {
        func,
        flags: 0,
        dst,
        src: [ty; 4],
    })
}

fn multiply_add(ty: Ty, part: Part, saturate: bool) -> Option<Alu> {
    let func = match part {
        Part::Low => by_int!(ty, three, |a, b, c| a.wrapping_mul(b).wrapping_add(c))?,
        Part::High if saturate => match ty {
            Ty::S32 => three!(
                |_, a: i32, b: i32, c: i32| (((i64::from(a) * i64::from(b)) >> 32) as i32)
                    .saturating_add(c)
            ),
            _ => return None,
        },
        Part::High => match ty {
            Ty::U16 => three!(
                |_, a: u16, b: u16, c: u16| (((u32::from(a) * u32::from(b)) >> 16) as u16)
                    .wrapping_add(c)
            ),
            Ty::S16 => three!(
                |_, a: i16, b: i16, c: i16| (((i32::from(a) * i32::from(b)) >> 16) as i16)
                    .wrapping_add(c)
            ),
            Ty::U32 => three!(
                |_, a: u32, b: u32, c: u32| (((u64::from(a) * u64::from(b)) >> 32) as u32)
                    .wrapping_add(c)
            ),
            Ty::S32 => three!(
                |_, a: i32, b: i32, c: i32| (((i64::from(a) * i64::from(b)) >> 32) as i32)
                    .wrapping_add(c)
            ),
            Ty::U64 => three!(
                |_, a: u64, b: u64, c: u64| (((u128::from(a) * u128::from(b)) >> 64) as u64)
                    .wrapping_add(c)
            ),
            Ty::S64 => three!(
                |_, a: i64, b: i64, c: i64| (((i128::from(a) * i128::from(b)) >> 64) as i64)
                    .wrapping_add(c)
            ),
            _ => return None,
        },
        Part::Wide => match ty {
            Ty::U16 => {
                three!(|_, a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c))
            }
            Ty::S16 => {
                three!(|_, a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c))
            }
            Ty::U32 => {
                three!(|_, a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
            }
            Ty::S32 => {
                three!(|_, a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c))
            }
            _ => return None,
        },
    };
    let dst = if part == Part::Wide {
        ty.widened()?
    } else {
        ty
    };
    Some(Alu {
        func,
        flags: 0,
        dst,
        src: [ty, ty, dst, dst],
    })
}

fn product24(opcode: &str, ty: Ty, part: Part, saturate: bool) -> Option<Alu> {
    #[inline(always)]
    fn full_unsigned(a: u32, b: u32) -> u64 {
        u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)
    }
    #[inline(always)]
    fn full_signed(a: i32, b: i32) -> i64 {
        i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)
    }
    let func = match (opcode, ty, part) {
        ("mul24", Ty::U32, Part::Low) => two!(|_, a: u32, b: u32| full_unsigned(a, b) as u32),
        ("mul24", Ty::U32, Part::High) => {
            two!(|_, a: u32, b: u32| (full_unsigned(a, b) >> 16) as u32)
        }
        ("mul24", Ty::S32, Part::Low) => two!(|_, a: i32, b: i32| full_signed(a, b) as i32),
        ("mul24", Ty::S32, Part::High) => {
            two!(|_, a: i32, b: i32| (full_signed(a, b) >> 16) as i32)
        }
        ("mad24", Ty::U32, Part::Low) => {
            three!(|_, a: u32, b: u32, c: u32| (full_unsigned(a, b) as u32).wrapping_add(c))
        }
        ("mad24", Ty::U32, Part::High) => {
            three!(|_, a: u32, b: u32, c: u32| ((full_unsigned(a, b) >> 16) as u32).wrapping_add(c))
        }
        ("mad24", Ty::S32, Part::Low) => {
            three!(|_, a: i32, b: i32, c: i32| (full_signed(a, b) as i32).wrapping_add(c))
        }
        ("mad24", Ty::S32, Part::High) if saturate => {
            three!(|_, a: i32, b: i32, c: i32| ((full_signed(a, b) >> 16) as i32).saturating_add(c))
        }
        ("mad24", Ty::S32, Part::High) => {
            three!(|_, a: i32, b: i32, c: i32| ((full_signed(a, b) >> 16) as i32).wrapping_add(c))
        }
        _ => return None,
    };
    Some(Alu::same(func, 0, ty))
}

/// `dp4a.atype.btype`, `dp2a.{lo,hi}.atype.btype`: bit 0 of the flags: a is signed; bit 1: b is signed; bit 2: `.hi`.
fn dot(mods: &Mods<'_>, four: bool) -> Option<Alu> {
    let [a, b] = mods.types[..] else { return None };
    let flags =
        u32::from(a.is_signed()) | u32::from(b.is_signed()) << 1 | u32::from(mods.has("hi")) << 2;
    let func = if four {
        three!(|f, a: u32, b: u32, c: u32| dp4a(f, a, b, c))
    } else {
        three!(|f, a: u32, b: u32, c: u32| dp2a(f, a, b, c))
    };
    let dst = if a.is_signed() || b.is_signed() {
        Ty::S32
    } else {
        Ty::U32
    };
    Some(Alu {
        func,
        flags,
        dst,
        src: [a, b, dst, dst],
    })
}

fn dp4a(flags: u32, a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(c, |sum, i| {
        let x = part(a >> (8 * i), 8, flags & 1 != 0);
        let y = part(b >> (8 * i), 8, flags & 2 != 0);
        sum.wrapping_add(x.wrapping_mul(y) as u32)
    })
}

fn dp2a(flags: u32, a: u32, b: u32, c: u32) -> u32 {
    let b = if flags & 4 != 0 { b >> 16 } else { b };
    (0..2).fold(c, |sum, i| {
        let x = part(a >> (16 * i), 16, flags & 1 != 0);
        let y = part(b >> (8 * i), 8, flags & 2 != 0);
        sum.wrapping_add(x.wrapping_mul(y) as u32)
    })
}

fn part(bits: u32, width: u32, signed: bool) -> i32 {
    let up = bits << (32 - width);
    if signed {
        up as i32 >> (32 - width)
    } else {
        (up >> (32 - width)) as i32
    }
}

fn packed(opcode: &str, mods: &Mods<'_>, ty: Ty) -> Option<Alu> {
    #[inline(always)]
    fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
        u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
    }
    let signed = ty == Ty::S16x2;
    let func = match opcode {
        "add" => two!(|_, a: u32, b: u32| halves(a, b, |x, y| x.wrapping_add(y))),
        "sub" => two!(|_, a: u32, b: u32| halves(a, b, |x, y| x.wrapping_sub(y))),
        "min" if mods.has("relu") => {
            two!(|_, a: u32, b: u32| halves(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16))
        }
        "max" if mods.has("relu") => {
            two!(|_, a: u32, b: u32| halves(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16))
        }
        "min" if signed => {
            two!(|_, a: u32, b: u32| halves(a, b, |x, y| (x as i16).min(y as i16) as u16))
        }
        "max" if signed => {
            two!(|_, a: u32, b: u32| halves(a, b, |x, y| (x as i16).max(y as i16) as u16))
        }
        "min" => two!(|_, a: u32, b: u32| halves(a, b, |x, y| x.min(y))),
        "max" => two!(|_, a: u32, b: u32| halves(a, b, |x, y| x.max(y))),
        "neg" if signed => one!(|_, a: u32| halves(a, 0, |x, _| x.wrapping_neg())),
        _ => return None,
    };
    Some(Alu::same(func, 0, ty))
}

/// An operation with the carry flag: (a, b, c, carry in) → (result, carry out).
pub type CarryFn = fn(u64, u64, u64, bool) -> (u64, bool);

/// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`: the function, whether it reads and writes the flag, its type and
/// number of operands.
#[derive(Debug, Clone, Copy)]
pub struct Carry {
    /// The function.
    pub func: CarryFn,
    /// Whether the flag goes in.
    pub carry_in: bool,
    /// Whether the flag comes out (`.cc`).
    pub carry_out: bool,
    /// The type.
    pub ty: Ty,
    /// Source operands.
    pub operands: usize,
}

/// The carry form of that name, if the instruction is one.
pub fn find_carry(opcode: &str, mods: &Mods<'_>) -> Option<Carry> {
    let ty = mods.ty()?;
    let carry_in = matches!(opcode, "addc" | "subc" | "madc");
    let carry_out = mods.has("cc");
    if !(carry_in || carry_out && matches!(opcode, "add" | "sub" | "mad")) {
        return None;
    }
    let high = mods.has("hi");
    let narrow = ty.bytes() == 4;
    let func: CarryFn = match (&opcode[..3], narrow, high) {
        ("add", true, _) => |a, b, _, c| add::<u32>(a, b, c),
        ("add", false, _) => |a, b, _, c| add::<u64>(a, b, c),
        ("sub", true, _) if carry_in => |a, b, _, c| sub::<u32>(a, b, c),
        ("sub", false, _) if carry_in => |a, b, _, c| sub::<u64>(a, b, c),
        ("sub", true, _) => |a, b, _, _| sub::<u32>(a, b, true),
        ("sub", false, _) => |a, b, _, _| sub::<u64>(a, b, true),
        ("mad", true, false) => |a, b, x, c| add::<u32>(a.wrapping_mul(b) & 0xffff_ffff, x, c),
        ("mad", false, false) => |a, b, x, c| add::<u64>(a.wrapping_mul(b), x, c),
        ("mad", true, true) if ty.is_signed() => |a, b, x, c| {
            add::<u32>(
                u64::from(((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
                x,
                c,
            )
        },
        ("mad", true, true) => |a, b, x, c| add::<u32>((a * b) >> 32, x, c),
        ("mad", false, true) if ty.is_signed() => |a, b, x, c| {
            add::<u64>(
                ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64,
                x,
                c,
            )
        },
        ("mad", false, true) => {
            |a, b, x, c| add::<u64>(((u128::from(a) * u128::from(b)) >> 64) as u64, x, c)
        }
        _ => return None,
    };
    let operands = if opcode.starts_with("mad") { 3 } else { 2 };
    Some(Carry {
        func,
        carry_in,
        carry_out,
        ty,
        operands,
    })
}

fn add<T: Value + Into<u128>>(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let width = 8 * size_of::<T>();
    let sum = T::of(a).into() + T::of(b).into() + u128::from(carry);
    ((T::of(sum as u64)).bits(), sum >> width != 0)
}

/// As `a + !b + carry`: the flag says that nothing is borrowed. The manual speaks of a borrow, but nvcc's own division of
/// 128-bit integers asks with an `addc` behind a `subc.cc` whether there was none.
fn sub<T: Value + Into<u128>>(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (x, y): (u128, u128) = (T::of(a).into(), T::of(b).into());
    let y = y + u128::from(!carry);
    (T::of(x.wrapping_sub(y) as u64).bits(), x >= y)
}
