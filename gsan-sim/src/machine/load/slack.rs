//! How far a load may be put off: for weak memory, where a later store may be seen before an earlier load is performed.
//!
//! Only over instructions that do not touch the load's register, in straight line, up to the first one that orders memory.
//! So what depends on the value, by address, by data or by control, comes after it.

use crate::machine::ir::{Addr, Base, Function, Op, Program, Space};
use crate::machine::weak::{Order, Strength};

/// Longest stretch that is looked at.
const LONGEST: usize = 24;

/// For each instruction: how many of those behind it may be executed before it; 0 where it is no load, or no store follows.
pub fn all(program: &Program) -> Vec<u8> {
    let of = |f: &Function| {
        let end = f.end as usize;
        (f.start as usize..end).map(move |pc| one(program, pc, end))
    };
    // The functions lie one behind the other.
    program.functions.iter().flat_map(of).collect()
}

fn one(program: &Program, pc: usize, end: usize) -> u8 {
    let Op::Load { space, d, .. } = &program.code[pc].op else {
        return 0;
    };
    if *space == Space::Local || !is_plain(program.strengths[pc]) {
        return 0;
    }
    let (mut most, mut stores) = (0, false);
    for at in pc + 1..end.min(pc + 1 + LONGEST) {
        let op = &program.code[at].op;
        if !is_plain(program.strengths[at]) || uses(op, *d) {
            break;
        }
        stores |= matches!(op, Op::Store { space, .. } | Op::StoreVector { space, .. } if *space != Space::Local);
        most = (at - pc) as u8;
    }
    if stores { most } else { 0 }
}

/// Weak and relaxed accesses, and what is no access.
fn is_plain(strength: Strength) -> bool {
    strength.order == Order::Relaxed && !strength.rmw && !strength.whole
}

/// Whether an instruction reads or writes the register, or may do something that does not come before an earlier load.
fn uses(op: &Op, r: u32) -> bool {
    let in_address = |a: &Addr| a.base == Base::Value(r);
    match op {
        Op::Nop => false,
        Op::Alu1 { d, a, .. } | Op::Mov { d, a } | Op::Convert { d, a, .. } => {
            [*d, *a].contains(&r)
        }
        Op::Alu2 { d, a, b, .. } | Op::Select { d, a, b, .. } => [*d, *a, *b].contains(&r),
        Op::Alu3 { d, a, b, c, .. } => [*d, *a, *b, *c].contains(&r),
        Op::Alu4 { d, a, b, c, e, .. } => [*d, *a, *b, *c, *e].contains(&r),
        Op::Compare { a, b, .. } => [*a, *b].contains(&r),
        Op::PredLogic { .. } => false,
        Op::Pack { d, parts, .. } => *d == r || parts.contains(&r),
        Op::Unpack { a, parts, .. } => *a == r || parts.contains(&r),
        Op::Special { d, .. } | Op::ParamAddress { d, .. } => *d == r,
        Op::LoadParam { d, .. } => d.contains(&r),
        Op::AddressOf { d, addr } => *d == r || in_address(addr),
        Op::Load { d, addr, .. } => *d == r || in_address(addr),
        Op::LoadVector { d, addr, .. } => d.contains(&r) || in_address(addr),
        Op::Store { a, addr, .. } => *a == r || in_address(addr),
        Op::StoreVector { a, addr, .. } => a.contains(&r) || in_address(addr),
        _ => true,
    }
}
