//! Hooks of bulk copies and of their groups.

use super::emit::scalar_text;
use super::function::Walker;
use crate::ast::{Instruction, Operand};
use crate::hook::Access;
use crate::hook::names;
use crate::memory_op::{BulkCopy, BulkGroup, Remote};

/// Coordinates that the hook takes.
const DIMENSIONS: usize = 5;

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
            Remote::Box { .. } => None,
        };
        let from = self.emit.mark();
        self.emit
            .guarded(instruction.guard, |emit| match (base, copy.remote) {
                (Some((base, address)), _) => {
                    let address = emit.address(base, address, false);
                    emit.copy(names::COPY, address, word, site, &arguments);
                }
                (None, _) => {
                    let (map, rest) = arguments.split_once(", ").unwrap_or_default();
                    emit.copy(names::COPY_TENSOR, map, word, site, rest);
                }
            });
        self.emit.edits.insert_since(instruction.span.start, from);
    }

    /// The hooks' arguments behind the site; of a box, the map goes before them.
    fn copy_arguments(&self, copy: &BulkCopy<'_, 'm>) -> Option<String> {
        let word = |operand: &Operand<'m>| match operand {
            Operand::Name(name) if self.registers.bytes(name) == Some(4) => Some(name.to_string()),
            Operand::Int(n) if (-0x8000_0000..=0xffff_ffff).contains(n) => scalar_text(operand),
            _ => None,
        };
        match copy.remote {
            Remote::Range(_, bytes) => Some(format!("{}, 0", word(bytes)?)),
            Remote::Box { map, corner, rows } => {
                let map = match map {
                    Operand::Name(name) if self.registers.bytes(name) == Some(8) => *name,
                    _ => return None,
                };
                let shape = if rows { names::COPY_ROWS } else { 0 };
                let mut text = format!("{map}, {shape}, 0");
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

    /// The hook behind `cp.async.bulk.commit_group` and `wait_group`.
    pub(super) fn copy_group(&mut self, instruction: &Instruction<'m>, group: BulkGroup) {
        if !self.copy_hooks {
            return;
        }
        let from = self.emit.mark();
        self.emit.edits.pieces.push(' ');
        self.emit.guarded(instruction.guard, |emit| match group {
            BulkGroup::Commit => emit.with_state(names::COPY_COMMIT),
            BulkGroup::Wait(groups) => emit.copy_wait(groups),
        });
        self.emit.edits.insert_since(instruction.span.end, from);
    }
}
