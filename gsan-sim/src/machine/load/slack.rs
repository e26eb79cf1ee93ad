//! How far an access may be put off: for weak memory, where later accesses may be performed before it.
//!
//! Only over instructions that do not touch its results, in straight line, up to the first one that orders it. So what
//! depends on the value, by address, by data or by control, comes after it. What it reads from registers it takes along.

use crate::machine::ir::{Addr, Base, Function, NONE, Op, Program, Reg, Space, Src};
use crate::machine::weak::{Order, Strength};

/// Longest stretch that is looked at.
const LONGEST: usize = 24;

/// For each instruction: how many of those behind it may be executed before it; 0 where it is no access, or no write follows
/// (that reads are satisfied early is the same as that they read what was there).
pub fn all(program: &Program) -> Vec<u8> {
    let of = |f: &Function| {
        let end = f.end as usize;
        (f.start as usize..end).map(move |pc| one(program, pc, end))
    };
    // The functions lie one behind the other.
    program.functions.iter().flat_map(of).collect()
}

fn one(program: &Program, pc: usize, end: usize) -> u8 {
    let op = &program.code[pc].op;
    let results: &[Reg] = match op {
        Op::Load { d, .. } => std::slice::from_ref(d),
        Op::LoadVector { d, .. } => d,
        Op::Atomic(op) => &op.d,
        _ => &[],
    };
    if access(op).is_none() || !may_wait(program.strengths[pc]) {
        return 0;
    }
    let (mut most, mut writes) = (0, false);
    for at in pc + 1..end.min(pc + 1 + LONGEST) {
        let op = &program.code[at].op;
        if !may_pass(program.strengths[at]) || !is_free(op, results) {
            break;
        }
        writes |= matches!(access(op), Some((_, true)));
        most = (at - pc) as u8;
    }
    if writes { most } else { 0 }
}

/// The address of an access to memory that others see, and whether it writes, if it is one that may be put off.
pub fn access(op: &Op) -> Option<(Addr, bool)> {
    let (space, addr, writes) = match op {
        Op::Load { space, addr, .. } | Op::LoadVector { space, addr, .. } => (*space, *addr, false),
        Op::Store { space, addr, .. } | Op::StoreVector { space, addr, .. } => {
            (*space, *addr, true)
        }
        Op::Atomic(op) => (op.space, op.addr, true),
        _ => return None,
    };
    (space != Space::Local).then_some((addr, writes))
}

/// The registers that such an access reads, besides that of its address.
pub fn sources(op: &Op) -> (&[Src], Src) {
    match op {
        Op::Store { a, .. } => (std::slice::from_ref(a), NONE),
        Op::StoreVector { a, .. } => (a, NONE),
        Op::Atomic(op) => (&op.b, op.c),
        _ => (&[], NONE),
    }
}

/// Weak and relaxed accesses, and releases, behind which nothing needs to stay.
fn may_wait(strength: Strength) -> bool {
    matches!(strength.order, Order::Relaxed | Order::Release) && !strength.whole
}

/// Weak and relaxed accesses, acquires, before which nothing needs to stay, and what is no access.
fn may_pass(strength: Strength) -> bool {
    matches!(strength.order, Order::Relaxed | Order::Acquire) && !strength.whole
}

/// Whether an instruction neither reads nor writes any of the registers, and may come before an earlier access.
fn is_free(op: &Op, results: &[Reg]) -> bool {
    results.iter().all(|&r| !uses(op, r)) && !uses(op, NONE)
}

/// Whether an instruction reads or writes the register, or may do something that does not come before an earlier access.
fn uses(op: &Op, r: u32) -> bool {
    let is = |x: u32| x == r && r != NONE;
    let among = |all: &[u32]| all.iter().any(|&x| is(x));
    let in_address = |a: &Addr| r != NONE && a.base == Base::Value(r);
    match op {
        Op::Nop => false,
        Op::Alu1 { d, a, .. } | Op::Mov { d, a } | Op::Convert { d, a, .. } => among(&[*d, *a]),
        Op::Alu2 { d, a, b, .. } | Op::Select { d, a, b, .. } => among(&[*d, *a, *b]),
        Op::Alu3 { d, a, b, c, .. } => among(&[*d, *a, *b, *c]),
        Op::Alu4 { d, a, b, c, e, .. } => among(&[*d, *a, *b, *c, *e]),
        Op::Compare { a, b, .. } => among(&[*a, *b]),
        Op::PredLogic { .. } => false,
        Op::Pack { d, parts, .. } => is(*d) || among(parts),
        Op::Unpack { a, parts, .. } => is(*a) || among(parts),
        Op::Special { d, .. } | Op::ParamAddress { d, .. } => is(*d),
        Op::LoadParam { d, .. } => among(d),
        Op::AddressOf { d, addr } => is(*d) || in_address(addr),
        Op::Load { d, addr, .. } => is(*d) || in_address(addr),
        Op::LoadVector { d, addr, .. } => among(d) || in_address(addr),
        Op::Store { a, addr, .. } => is(*a) || in_address(addr),
        Op::StoreVector { a, addr, .. } => among(a) || in_address(addr),
        Op::Atomic(op) => among(&op.d) || among(&op.b) || is(op.c) || in_address(&op.addr),
        _ => true,
    }
}
