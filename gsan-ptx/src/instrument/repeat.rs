//! Checks that need not be made again.
//!
//! Between two points where a thread may synchronise, everything that it does has one place in the happens-before order.
//! A race with its second read of an address is a race with the first one too, so the second needs no check, and the
//! same goes for a write behind a write and a read behind a write. A write behind a read does need its own: readers
//! don't race with each other.
//!
//! "The same address" means: the same base register, not written in between, and bytes inside of those that one earlier
//! check covered, made by at least the same threads (no guard, or the same guard with its predicate unchanged).
//! Everything that might synchronise, or that control might enter or leave by, forgets all; so does every instruction
//! that [`is_quiet`] does not know.

use crate::ast::{Guard, Instruction, Operand};
use crate::hook::Access;
use crate::memory_op::{Effect, MemoryOp, Piece};

/// The checks made since the last point where a thread may have synchronised.
#[derive(Default)]
pub(super) struct Checked<'a> {
    list: Vec<Check<'a>>,
    /// The registers in `list`, and perhaps some that were: most instructions write none of them, and most addresses are new.
    registers: Filter,
}

/// A set of names that says "no" or "perhaps".
#[derive(Default)]
struct Filter([u64; 8]);

impl Filter {
    /// A name's place: its end tells registers apart.
    fn place(name: &str) -> (usize, u64) {
        let end = name.as_bytes().iter().rev().take(8);
        let word = end.fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        let hash = (word ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55;
        (hash as usize / 64, 1 << (hash % 64))
    }

    fn add(&mut self, name: &str) {
        let (word, bit) = Filter::place(root(name));
        self.0[word] |= bit;
    }

    fn may_have(&self, name: &str) -> bool {
        let (word, bit) = Filter::place(root(name));
        self.0[word] & bit != 0
    }
}

/// `%v.x` is a part of `%v`.
fn root(register: &str) -> &str {
    let end = register.bytes().position(|b| b == b'.');
    &register[..end.unwrap_or(register.len())]
}

struct Check<'a> {
    base: Option<&'a str>,
    from: i64,
    to: i64,
    write: bool,
    generic: bool,
    non_coherent: bool,
    guard: Option<Guard<'a>>,
}

/// As many are remembered: unrolled loops have some dozens, and every access looks at all of them.
const MOST: usize = 64;

impl<'a> Checked<'a> {
    pub(super) fn forget(&mut self) {
        self.list.clear();
        self.registers = Filter::default();
    }

    /// Whether everything that a hook for `op` would check has been checked.
    pub(super) fn covers(&self, op: &MemoryOp<'_, 'a>, guard: Option<Guard<'a>>) -> bool {
        let new = |base| !self.registers.may_have(base);
        if self.list.is_empty() || op.is_empty() || op.address.base.is_some_and(new) {
            return false;
        }
        let known = |new: Check<'a>| {
            self.list.iter().rev().any(|old| {
                old.from <= new.from
                    && old.to >= new.to
                    && old.base == new.base
                    && old.write >= new.write
                    && old.generic == new.generic
                    // A stale read through the non-coherent cache is a finding of its own, also of the thread's own write.
                    && old.non_coherent == new.non_coherent
                    && (old.guard.is_none() || old.guard == new.guard)
            })
        };
        let mut pieces = op.pieces();
        pieces.all(|piece| check(op, &piece, guard).is_some_and(known))
    }

    /// A hook for `op` has been inserted.
    pub(super) fn note(&mut self, op: &MemoryOp<'_, 'a>, guard: Option<Guard<'a>>) {
        for piece in op.pieces() {
            let Some(check) = check(op, &piece, guard) else {
                return;
            };
            if self.list.len() == MOST {
                self.list.drain(..MOST / 2);
                let rest = std::mem::take(&mut self.list);
                self.registers = Filter::default();
                rest.into_iter().for_each(|old| self.push(old));
            }
            self.push(check);
        }
    }

    fn push(&mut self, check: Check<'a>) {
        let guard = check.guard.map(|g| g.register);
        for name in check.base.into_iter().chain(guard) {
            self.registers.add(name);
        }
        self.list.push(check);
    }

    /// The instruction is behind us: what it writes has another value now, and it may have synchronised.
    pub(super) fn pass(&mut self, instruction: &Instruction<'a>, effect: &Effect<'_, 'a>) {
        if self.list.is_empty() {
            return;
        }
        if !is_quiet(instruction, effect) {
            return self.forget();
        }
        if let Some(written) = instruction.operands.first() {
            self.overwritten(written);
        }
    }

    fn overwritten(&mut self, operand: &Operand<'a>) {
        match operand {
            Operand::Name(name) if !self.registers.may_have(name) => {}
            Operand::Name(name) => {
                let register = root(name);
                let other = |used: &str| root(used) != register;
                self.list.retain(|check| {
                    check.base.is_none_or(other) && check.guard.is_none_or(|g| other(g.register))
                });
            }
            Operand::Vector(list) | Operand::List(list) => {
                list.iter().for_each(|o| self.overwritten(o));
            }
            Operand::Pair(a, b) => {
                self.overwritten(a);
                self.overwritten(b);
            }
            Operand::Address(_)
            | Operand::Tensor(_)
            | Operand::Sink
            | Operand::Int(_)
            | Operand::F32(_)
            | Operand::F64(_)
            | Operand::NameOffset(..) => {}
            // Whatever this names may be what is written.
            Operand::Not(_) | Operand::Neg(_) | Operand::Raw(_) => self.forget(),
        }
    }
}

/// `None` for what is never left out and leaves nothing else out.
fn check<'a>(op: &MemoryOp<'_, 'a>, piece: &Piece, guard: Option<Guard<'a>>) -> Option<Check<'a>> {
    if op.is_strong() || op.copy.is_some() || op.multicast {
        return None;
    }
    let from = op.address.offset.checked_add(piece.offset.into())?;
    Some(Check {
        base: op.address.base,
        from,
        to: from.checked_add(piece.size.into())?,
        write: op.access != Access::Load,
        generic: op.generic,
        non_coherent: op.non_coherent,
        guard,
    })
}

/// Instructions that neither synchronise nor transfer control and write nothing but their first operand.
fn is_quiet(instruction: &Instruction<'_>, effect: &Effect<'_, '_>) -> bool {
    match effect {
        Effect::Access(op) => !op.is_strong(),
        // A weak access to the block's own memory is none that others could wait for.
        Effect::Private(_) => {
            let strong = |m: &&str| {
                matches!(
                    *m,
                    "volatile" | "mmio" | "relaxed" | "acquire" | "release" | "async" | "bulk"
                )
            };
            matches!(
                instruction.opcode,
                "ld" | "st" | "ldu" | "ldmatrix" | "stmatrix"
            ) && !instruction.modifiers.iter().any(strong)
        }
        Effect::None => matches!(
            instruction.opcode,
            "abs"
                | "add"
                | "addc"
                | "and"
                | "bfe"
                | "bfi"
                | "bfind"
                | "bmsk"
                | "brev"
                | "clz"
                | "cnot"
                | "copysign"
                | "cos"
                | "createpolicy"
                | "cvt"
                | "cvta"
                | "div"
                | "dp2a"
                | "dp4a"
                | "ex2"
                | "fma"
                | "fns"
                | "getctarank"
                | "isspacep"
                | "lg2"
                | "lop3"
                | "mad"
                | "mad24"
                | "madc"
                | "mapa"
                | "max"
                | "min"
                | "mov"
                | "mul"
                | "mul24"
                | "neg"
                | "not"
                | "or"
                | "popc"
                | "prefetch"
                | "prefetchu"
                | "prmt"
                | "rcp"
                | "rem"
                | "rsqrt"
                | "sad"
                | "selp"
                | "set"
                | "setp"
                | "shf"
                | "shl"
                | "shr"
                | "sin"
                | "slct"
                | "sqrt"
                | "sub"
                | "subc"
                | "szext"
                | "tanh"
                | "testp"
                | "vset"
                | "xor"
        ),
        Effect::Fence(..)
        | Effect::Barrier
        | Effect::Copy(_)
        | Effect::CopyGroup(_)
        | Effect::Unsupported(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_knows_every_name_that_it_was_given_and_few_others() {
        let names: Vec<String> = (0..48).map(|n| format!("%rd{}", n * 77)).collect();
        let mut filter = Filter::default();
        names.iter().for_each(|name| filter.add(name));
        assert!(names.iter().all(|name| filter.may_have(name)));
        filter.add("%vector.x");
        assert!(filter.may_have("%vector") && filter.may_have("%vector.y"));
        let others = (0..1000).map(|n| format!("%r{n}"));
        let taken_for_one = others.filter(|name| filter.may_have(name)).count();
        assert!(taken_for_one < 250, "{taken_for_one} of 1000");
        assert!(!Filter::default().may_have(""));
    }
}
