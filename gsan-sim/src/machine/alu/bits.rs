//! Logic, shifts and bit fields.

use super::{Alu, Fn4, Func, Mods, by_int, lanes, one, three, two};
use crate::machine::ty::{Row, Ty};

/// The bit instruction of that name, if there is one.
pub fn find(opcode: &str, mods: &Mods<'_>) -> Option<Alu> {
    let ty = mods.ty()?;
    if !ty.is_int() {
        return None;
    }
    let same = |func: Option<Func>| func.map(|f| Alu::same(f, 0, ty));
    let wide = ty.bytes() == 8;
    match opcode {
        "and" => same(by_int!(ty, two, |a, b| a & b)),
        "or" => same(by_int!(ty, two, |a, b| a | b)),
        "xor" => same(by_int!(ty, two, |a, b| a ^ b)),
        "not" => same(by_int!(ty, one, |a| !a)),
        "cnot" => same(by_int!(ty, one, |a| if a == 0 { 1 } else { 0 })),
        "shl" | "shr" => shift(opcode, ty),
        "shf" => funnel(mods),
        "popc" => counted(
            ty,
            if wide {
                one!(|_, a: u64| a.count_ones())
            } else {
                one!(|_, a: u32| a.count_ones())
            },
        ),
        "clz" => counted(
            ty,
            if wide {
                one!(|_, a: u64| a.leading_zeros())
            } else {
                one!(|_, a: u32| a.leading_zeros())
            },
        ),
        "bfind" => find_leading(ty, mods.has("shiftamt")),
        "brev" => same(Some(if wide {
            one!(|_, a: u64| a.reverse_bits())
        } else {
            one!(|_, a: u32| a.reverse_bits())
        })),
        "bfe" => {
            let func = match ty {
                Ty::U32 => three!(|_, a: u32, pos: u32, len: u32| extract(
                    u64::from(a),
                    pos,
                    len,
                    32,
                    false
                ) as u32),
                Ty::S32 => {
                    three!(
                        |_, a: u32, pos: u32, len: u32| extract(u64::from(a), pos, len, 32, true)
                            as u32
                    )
                }
                Ty::U64 => three!(|_, a: u64, pos: u32, len: u32| extract(a, pos, len, 64, false)),
                Ty::S64 => three!(|_, a: u64, pos: u32, len: u32| extract(a, pos, len, 64, true)),
                _ => return None,
            };
            Some(Alu {
                func,
                flags: 0,
                dst: ty,
                src: [ty, Ty::U32, Ty::U32, Ty::U32],
            })
        }
        "bfi" => {
            fn narrow(_: u32, a: &Row, b: &Row, pos: &Row, len: &Row, out: &mut Row, mask: u32) {
                lanes!(
                    mask,
                    l,
                    out[l] = insert(a[l], b[l], pos[l] as u32, len[l] as u32, 32)
                );
            }
            fn full(_: u32, a: &Row, b: &Row, pos: &Row, len: &Row, out: &mut Row, mask: u32) {
                lanes!(
                    mask,
                    l,
                    out[l] = insert(a[l], b[l], pos[l] as u32, len[l] as u32, 64)
                );
            }
            let func = Func::Four(if wide { full as Fn4 } else { narrow as Fn4 });
            Some(Alu {
                func,
                flags: 0,
                dst: ty,
                src: [ty, ty, Ty::U32, Ty::U32],
            })
        }
        "bmsk" => Some(Alu {
            func: two!(|f, a: u32, b: u32| mask_of(f, a, b)),
            flags: u32::from(mods.has("wrap")),
            dst: ty,
            src: [Ty::U32; 4],
        }),
        "szext" => Some(Alu {
            func: two!(|f, a: u32, n: u32| size_extend(f, a, n)),
            flags: u32::from(mods.has("wrap")) | u32::from(ty.is_signed()) << 1,
            dst: ty,
            src: [ty, Ty::U32, Ty::U32, Ty::U32],
        }),
        "prmt" => {
            let mode = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]
                .iter()
                .position(|m| mods.has(m));
            let func = three!(|f, a: u32, b: u32, c: u32| permute(f, a, b, c));
            Some(Alu::same(func, mode.map_or(0, |m| m as u32 + 1), Ty::B32))
        }
        "fns" => Some(Alu {
            func: three!(|_, m: u32, base: u32, offset: i32| nth_set(m, base, offset)),
            flags: 0,
            dst: Ty::B32,
            src: [Ty::B32, Ty::B32, Ty::S32, Ty::S32],
        }),
        _ => None,
    }
}

/// `lop3`: the look-up table is the flags word.
pub fn lop3(table: u32) -> Alu {
    Alu::same(
        three!(|t, a: u32, b: u32, c: u32| lookup(t, a, b, c)),
        table,
        Ty::B32,
    )
}

#[inline(always)]
fn lookup(table: u32, a: u32, b: u32, c: u32) -> u32 {
    let mut r = 0;
    for i in 0..8 {
        if table >> i & 1 == 1 {
            let x = if i & 4 != 0 { a } else { !a };
            let y = if i & 2 != 0 { b } else { !b };
            let z = if i & 1 != 0 { c } else { !c };
            r |= x & y & z;
        }
    }
    r
}

fn shift(opcode: &str, ty: Ty) -> Option<Alu> {
    let func = match (opcode, ty) {
        ("shl", _) => match ty.bytes() {
            2 => two!(|_, a: u16, n: u32| a.checked_shl(n).unwrap_or(0)),
            4 => two!(|_, a: u32, n: u32| a.checked_shl(n).unwrap_or(0)),
            8 => two!(|_, a: u64, n: u32| a.checked_shl(n).unwrap_or(0)),
            _ => return None,
        },
        (_, Ty::S16) => two!(|_, a: i16, n: u32| a >> n.min(15)),
        (_, Ty::S32) => two!(|_, a: i32, n: u32| a >> n.min(31)),
        (_, Ty::S64) => two!(|_, a: i64, n: u32| a >> n.min(63)),
        (_, Ty::B16 | Ty::U16) => two!(|_, a: u16, n: u32| a.checked_shr(n).unwrap_or(0)),
        (_, Ty::B32 | Ty::U32) => two!(|_, a: u32, n: u32| a.checked_shr(n).unwrap_or(0)),
        (_, Ty::B64 | Ty::U64) => two!(|_, a: u64, n: u32| a.checked_shr(n).unwrap_or(0)),
        _ => return None,
    };
    Some(Alu {
        func,
        flags: 0,
        dst: ty,
        src: [ty, Ty::U32, Ty::U32, Ty::U32],
    })
}

/// `shf.{l,r}.{clamp,wrap}.b32 d, a, b, c`: b:a shifted, one half kept.
fn funnel(mods: &Mods<'_>) -> Option<Alu> {
    let flags = u32::from(mods.has("wrap"));
    let func = if mods.has("l") {
        three!(|f, a: u32, b: u32, n: u32| {
            let n = if f & 1 != 0 { n & 31 } else { n.min(32) };
            ((((u64::from(b) << 32) | u64::from(a)) << n) >> 32) as u32
        })
    } else if mods.has("r") {
        three!(|f, a: u32, b: u32, n: u32| {
            let n = if f & 1 != 0 { n & 31 } else { n.min(32) };
            (((u64::from(b) << 32) | u64::from(a)) >> n) as u32
        })
    } else {
        return None;
    };
    Some(Alu::same(func, flags, Ty::B32))
}

fn counted(ty: Ty, func: Func) -> Option<Alu> {
    Some(Alu {
        func,
        flags: 0,
        dst: Ty::U32,
        src: [ty; 4],
    })
}

fn find_leading(ty: Ty, shift_amount: bool) -> Option<Alu> {
    let func = match ty {
        Ty::U32 => one!(|f, a: u32| leading(u64::from(a), 32, f)),
        // A negative number's leading bit is its first zero.
        Ty::S32 => one!(|f, a: i32| leading(u64::from((if a < 0 { !a } else { a }) as u32), 32, f)),
        Ty::U64 => one!(|f, a: u64| leading(a, 64, f)),
        Ty::S64 => one!(|f, a: i64| leading((if a < 0 { !a } else { a }) as u64, 64, f)),
        _ => return None,
    };
    Some(Alu {
        func,
        flags: u32::from(shift_amount),
        dst: Ty::U32,
        src: [ty; 4],
    })
}

#[inline(always)]
fn leading(a: u64, width: u32, shift_amount: u32) -> u32 {
    if a == 0 {
        return u32::MAX;
    }
    let position = 63 - a.leading_zeros();
    if shift_amount != 0 {
        width - 1 - position
    } else {
        position
    }
}

#[inline(always)]
fn extract(a: u64, pos: u32, len: u32, width: u32, signed: bool) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    let sign = if !signed || len == 0 {
        false
    } else {
        a >> (pos + len - 1).min(width - 1) & 1 == 1
    };
    let field = if pos >= width { 0 } else { a >> pos };
    let have = len.min(width.saturating_sub(pos));
    let low = if have >= 64 {
        u64::MAX
    } else {
        (1u64 << have) - 1
    };
    let value = field & low;
    let value = if sign { value | !low } else { value };
    if width == 32 {
        value & 0xffff_ffff
    } else {
        value
    }
}

#[inline(always)]
fn insert(a: u64, b: u64, pos: u32, len: u32, width: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    if pos >= width || len == 0 {
        return b;
    }
    let len = len.min(width - pos);
    let field = if len >= 64 {
        u64::MAX
    } else {
        (1u64 << len) - 1
    } << pos;
    (b & !field) | (a << pos & field)
}

fn mask_of(wrap: u32, a: u32, b: u32) -> u32 {
    let (a, b) = if wrap != 0 {
        (a & 31, b & 31)
    } else {
        (a.min(32), b.min(32))
    };
    let up_to = |n: u32| {
        if n >= 32 {
            u64::from(u32::MAX)
        } else {
            (1u64 << n) - 1
        }
    };
    (up_to((a + b).min(32)) & !up_to(a)) as u32
}

fn size_extend(flags: u32, a: u32, n: u32) -> u32 {
    let n = if flags & 1 != 0 { n & 31 } else { n.min(32) };
    if n == 0 {
        return 0;
    }
    if flags & 2 != 0 {
        ((a << (32 - n)) as i32 >> (32 - n)) as u32
    } else {
        a << (32 - n) >> (32 - n)
    }
}

/// `prmt.b32`: mode 0 is the general one, then f4e, b4e, rc8, ecl, ecr, rc16.
fn permute(mode: u32, a: u32, b: u32, c: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let s = c & 3;
    (0..4).fold(0, |r, i| {
        let (selector, sign) = match mode {
            0 => (c >> (4 * i) & 7, c >> (4 * i) & 8 != 0),
            1 => (s + i, false),
            2 => (s.wrapping_sub(i) & 7, false),
            3 => (s, false),
            4 => (i.max(s), false),
            5 => (i.min(s), false),
            _ => ((s & 1) * 2 + (i & 1), false),
        };
        let byte = (bytes >> (8 * (selector & 7))) as u8;
        let byte = if sign {
            ((byte as i8) >> 7) as u8
        } else {
            byte
        };
        r | u32::from(byte) << (8 * i)
    })
}

fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    // Its negation overflows, on the hardware too.
    if offset == i32::MIN {
        return 0;
    }
    let mut count = 0;
    let order: Vec<u32> = if offset >= 0 {
        (base..32).collect()
    } else {
        (0..=base).rev().collect()
    };
    if offset == 0 {
        return if mask >> base & 1 == 1 {
            base
        } else {
            u32::MAX
        };
    }
    for i in order {
        if mask >> i & 1 == 1 {
            count += 1;
            if count == offset.unsigned_abs() {
                return i;
            }
        }
    }
    u32::MAX
}
