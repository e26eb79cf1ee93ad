//! `clusterlaunchcontrol`: a cluster takes over what one that has not started yet was to do.
//!
//! The answer's 128 bits are `x`, `y`, `z` of the first block, 32 bits each, and 1 in the last 32 if there was one: see `exec::cancel`.

use gsan_ptx::ast::Instruction;

use super::function::{Decoded, Decoder};
use super::operand::unsupported;
use crate::machine::alu::Mods;
use crate::machine::ir::{Op, Reg, TryCancel};
use crate::machine::ty::Ty;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn launch_control(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if mods.has("try_cancel") {
            let op = TryCancel {
                to: self.memory_operand(i, 0)?,
                barrier: self.memory_operand(i, 1)?,
                all: mods.has("multicast::cluster::all"),
            };
            self.emit(Op::TryCancel(Box::new(op)));
            return Ok(());
        }
        if !mods.has("query_cancel") {
            return unsupported("");
        }
        let answer = self.target_for(self.operand(i, 1)?, Ty::B128)?.slot;
        let words: [Reg; 4] = std::array::from_fn(|_| self.fresh());
        for (half, parts) in words.chunks(2).enumerate() {
            self.emit(Op::Unpack {
                a: answer + half as u32,
                bytes: 4,
                parts: parts.into(),
            });
        }
        if mods.has("is_canceled") {
            let d = self.predicate_target(self.operand(i, 0)?)?;
            self.emit(Op::Test { a: words[3], d });
            return Ok(());
        }
        let one = |name| mods.has(name);
        let first = match () {
            () if one("get_first_ctaid") => 0,
            () if one("get_first_ctaid::x") => 0,
            () if one("get_first_ctaid::y") => 1,
            () if one("get_first_ctaid::z") => 2,
            () => return unsupported(""),
        };
        // Of `.v4` the last element means nothing.
        let targets = self.targets(self.operand(i, 0)?, Ty::B32)?;
        for (d, word) in targets.into_iter().zip(&words[first..]) {
            self.copy(d.slot, *word);
        }
        Ok(())
    }
}
