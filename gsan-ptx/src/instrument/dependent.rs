//! Programmatic dependent launch: `griddepcontrol`.

use super::function::Walker;
use crate::ast::Instruction;
use crate::hook::names;

/// The hooks that the runtime has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DependentHooks {
    /// After `griddepcontrol.wait`.
    pub(super) wait: bool,
    /// Before `griddepcontrol.launch_dependents`.
    pub(super) trigger: bool,
}

const NEITHER: &str = "griddepcontrol is seen, not followed: a kernel that may start before its predecessor in the stream has ended \
                       is taken to start after it, so that races between the two can be missed";
const NO_TRIGGER: &str = "griddepcontrol.launch_dependents is seen, not followed: a kernel that this one lets start before it has waited \
                          itself is taken to start after what it waits for, so that races with that can be missed";

impl<'m> Walker<'m, '_> {
    /// The hook of a `griddepcontrol`.
    pub(super) fn dependent(&mut self, instruction: &Instruction<'m>) {
        let span = instruction.span.clone();
        let hooks = self.dependents;
        let waits = instruction.has("wait");
        if !hooks.wait {
            return self.note(span, NEITHER);
        }
        if !waits && !hooks.trigger {
            return self.note(span, NO_TRIGGER);
        }
        let from = self.emit.mark();
        let (at, hook) = if waits {
            self.emit.edits.pieces.push(' ');
            // What it orders concerns what comes after the kernel, too.
            self.checks();
            (span.end, names::GRID_WAIT)
        } else {
            (span.start, names::LAUNCH_DEPENDENTS)
        };
        self.emit
            .guarded(instruction.guard, |emit| emit.with_state(hook));
        self.emit.edits.insert_since(at, from);
    }
}
