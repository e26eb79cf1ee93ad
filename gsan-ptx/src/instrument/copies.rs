//! Hooks of bulk copies and of their groups.

use super::emit::{Base, OFFSETS, scalar_text};
use super::function::Walker;
use crate::ast::{Address, Instruction, Operand};
use crate::hook::Access;
use crate::hook::names;
use crate::memory_op::{BulkCopy, BulkGroup, Remote};

/// Stands for the mbarrier's phase until that is written.
const PHASE: &str = "?";

/// Coordinates that the hook takes.
const DIMENSIONS: usize = 5;

/// The phase of an mbarrier that a wait was for.
pub(super) struct WaitedPhase<'o, 'm> {
    /// `None` if that is not understood: it may be any.
    pub(super) barrier: Option<(Base<'m>, &'o Address<'m>)>,
    /// The address is generic.
    pub(super) generic: bool,
    /// A register or a number; without one the phase has none that is known.
    pub(super) parity: Option<String>,
}

impl<'m> Walker<'m, '_> {
    /// The hook before a bulk copy.
    pub(super) fn copy(&mut self, instruction: &Instruction<'m>, copy: &BulkCopy<'_, 'm>) {
        let arguments = match (self.copy_hooks, self.copy_arguments(copy)) {
            (false, _) => Err("bulk copies are not checked"),
            (_, None) => Err("what this copy reads or writes is not understood"),
            (_, Some(arguments)) => Ok(arguments),
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(why) => {
                self.out.stats.unsupported += 1;
                return self.list(instruction.span.clone(), why, false);
            }
        };
        let word = copy.op_word();
        self.count(instruction, copy.access, copy.access == Access::Rmw, false);
        let site = self.site(instruction, word);
        let base = match copy.remote {
            Remote::Range(address, _) => Some((self.base(address), address)),
            Remote::Box { .. } | Remote::Windows { .. } => None,
        };
        let offsets = match copy.remote {
            Remote::Windows { offsets, .. } => offsets,
            _ => &[],
        };
        // Who waits for another block's mbarrier, or without a hook, is not seen.
        let barrier = copy.barrier.filter(|_| self.block.on && !copy.multicast);
        let barrier = barrier.map(|address| (self.base(address), address));
        let from = self.emit.mark();
        self.emit.guarded(instruction.guard, |emit| {
            let phase = match barrier {
                Some((base, address)) => emit.phase_of(base, address, copy.cluster),
                None => "0",
            };
            let arguments = arguments.replace(PHASE, phase);
            match base {
                Some((base, address)) => {
                    let address = emit.address(base, address, false);
                    match copy.mask.and_then(scalar_text) {
                        Some(mask) => {
                            let mask = emit.widen_mask(&mask);
                            let arguments = format!("{arguments}, {mask}");
                            emit.copy(names::COPY_MASKED, address, word, site, &arguments);
                        }
                        None => emit.copy(names::COPY, address, word, site, &arguments),
                    }
                }
                None => {
                    let (map, rest) = arguments.split_once(", ").unwrap_or_default();
                    let mut hook = names::COPY_TENSOR;
                    if let Remote::Windows { .. } = copy.remote {
                        emit.pack_offsets(offsets);
                        hook = names::COPY_WINDOWS;
                    }
                    emit.copy(hook, map, word, site, rest);
                }
            }
        });
        self.emit.edits.insert_since(instruction.span.start, from);
    }

    /// What names the phase that a successful wait was for, where reads by the copy engine may have completed there.
    pub(super) fn waited_phase<'o>(
        &self,
        instruction: &'o Instruction<'m>,
    ) -> Option<WaitedPhase<'o, 'm>> {
        if !self.copies_end || instruction.opcode != "mbarrier" {
            return None;
        }
        let parity = instruction.operands.get(2);
        Some(WaitedPhase {
            barrier: match instruction.operands.get(1) {
                Some(Operand::Address(address)) => Some((self.base(address), address)),
                _ => None,
            },
            generic: !instruction.has("shared") && !instruction.has("shared::cta"),
            parity: parity
                .filter(|_| instruction.has("parity"))
                .and_then(scalar_text),
        })
    }

    /// The hooks' arguments behind the site; of a box, the map goes before them.
    fn copy_arguments(&self, copy: &BulkCopy<'_, 'm>) -> Option<String> {
        let word = |operand: &Operand<'m>| match operand {
            Operand::Name(name) if self.registers.bytes(name) == Some(4) => Some(name.to_string()),
            Operand::Int(n) if (-0x8000_0000..=0xffff_ffff).contains(n) => scalar_text(operand),
            _ => None,
        };
        let half = |operand: &Operand<'m>| matches!(operand, Operand::Name(name) if self.registers.bytes(name) == Some(2));
        match copy.remote {
            Remote::Range(_, bytes) => match copy.mask {
                Some(mask) if half(mask) || matches!(mask, Operand::Int(0..=0xffff)) => word(bytes),
                Some(_) => None,
                None => Some(format!("{}, {PHASE}", word(bytes)?)),
            },
            Remote::Box { map, corner, .. } | Remote::Windows { map, corner, .. } => {
                let map = match map {
                    Operand::Name(name) if self.registers.bytes(name) == Some(8) => *name,
                    _ => return None,
                };
                let shape = match copy.remote {
                    Remote::Box { rows: true, .. } => names::COPY_ROWS.to_string(),
                    Remote::Windows { offsets, .. } if !offsets.iter().all(half) => return None,
                    Remote::Windows { .. } => OFFSETS.to_string(),
                    _ => "0".to_string(),
                };
                let mut text = format!("{map}, {shape}, {PHASE}");
                for i in 0..DIMENSIONS {
                    let coordinate = match corner.get(i) {
                        Some(operand) => word(operand)?,
                        None => "0".to_string(),
                    };
                    text.push_str(", ");
                    text.push_str(&coordinate);
                }
                Some(text)
            }
        }
    }

    /// Before an instruction, small copies count as done.
    pub(super) fn landed_before(&mut self, instruction: &Instruction<'m>) {
        if !self.copy_hooks {
            return;
        }
        let from = self.emit.mark();
        self.emit.guarded(instruction.guard, |emit| {
            emit.with_state(names::COPY_LANDED);
        });
        self.emit.edits.insert_since(instruction.span.start, from);
    }

    /// The hook behind `cp.async.bulk.commit_group`, and behind waits.
    pub(super) fn copy_group(&mut self, instruction: &Instruction<'m>, group: BulkGroup) {
        if !self.copy_hooks {
            return;
        }
        let from = self.emit.mark();
        self.emit.edits.pieces.push(' ');
        self.emit.guarded(instruction.guard, |emit| match group {
            BulkGroup::Commit => emit.with_state(names::COPY_COMMIT),
            BulkGroup::Wait(groups) => emit.copy_wait(groups),
            BulkGroup::Landed => emit.with_state(names::COPY_LANDED),
        });
        self.emit.edits.insert_since(instruction.span.end, from);
    }
}
