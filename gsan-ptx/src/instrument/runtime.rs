//! What of the runtime stands in front of a user's module, and what behind it.

use super::parts::Parts;
use super::{InstrumentError, Options};
use crate::hook::{Hooks, names};
use std::collections::HashSet;

/// What is taken from the runtime.
pub(super) struct Runtime {
    /// `.version`.
    pub(super) version: (u32, u32),
    /// The number of the oldest target that can take it, 70 for `sm_70`.
    pub(super) target: u32,
    /// Declarations of the hooks that are called, on one line: PTX wants them before the first call.
    pub(super) prototypes: String,
    /// What the calls need, without header, files, lines and debugging sections.
    pub(super) text: String,
}

impl Runtime {
    /// Of the options' runtime, what a text needs that calls these functions. `taken` are the names of the user's module: the
    /// runtime's own helpers make way for them. In a part of a program what other modules see is weak: it may be defined in them
    /// as well.
    pub(super) fn prepare(
        options: &Options<'_>,
        taken: &HashSet<&str>,
        calls: Hooks,
    ) -> Result<Runtime, InstrumentError> {
        let parts = Parts::of(options.runtime).map_err(InstrumentError::RuntimeSyntax)?;
        // A runtime is complete or of no use, whatever this one module calls.
        let mut wanted = names::FUNCTIONS.to_vec();
        if options.block_hooks() {
            wanted.extend(names::INTRA_BLOCK);
        }
        if options.cluster_hooks() {
            wanted.extend(names::CLUSTER);
        }
        if options.copy_hooks() {
            wanted.extend(names::COPIES);
        }
        wanted.extend(calls.names());
        if let Some(name) = wanted.iter().find(|name| !parts.defines(name)) {
            return Err(lacks(name));
        }
        let prototypes = parts.prototypes(calls);
        let text = match options.apart {
            true => String::new(),
            false => parts.needed(calls, taken),
        };
        let linkage = |text: String| match (options.apart, options.part) {
            (true, _) => text.replace(VISIBLE, ".extern"),
            (false, true) => text.replace(VISIBLE, ".weak"),
            (false, false) => text,
        };
        Ok(Runtime {
            version: parts.version,
            target: parts.target,
            prototypes: linkage(prototypes),
            text: linkage(text),
        })
    }
}

/// What the runtime's functions and variables are to others.
const VISIBLE: &str = ".visible";

/// What some modules need of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeNeeds {
    /// The functions that they call.
    pub calls: Hooks,
    /// The highest of their versions of PTX.
    pub version: (u32, u32),
    /// The target of one of them, `sm_90a`; empty if there are none.
    pub target: String,
    /// The registers for which each of their kernels with hooks has room; `None` if there is no such kernel.
    room: Option<u64>,
}

impl RuntimeNeeds {
    /// Adds those of another module.
    pub fn add(&mut self, other: &RuntimeNeeds) {
        self.calls.add(other.calls);
        self.version = self.version.max(other.version);
        self.room(other.room);
        if self.target.is_empty() {
            self.target.clone_from(&other.target);
        }
    }

    pub(super) fn room(&mut self, room: Option<u64>) {
        self.room = self.room.into_iter().chain(room).min();
    }

    /// How many registers the runtime's functions may use where it is linked: more run faster, but a kernel has at least as many as what it
    /// calls, so that a large block may find no place, and a linker refuses a kernel that bounds its own below that. A kernel that
    /// says how many threads its blocks have (`.reqntid`, `.maxntid`) gets what these leave, one that does not what 1024 do.
    pub fn registers(&self) -> u32 {
        const ANY_BLOCK: u32 = 64;
        // The ABI needs 24.
        let room = |room: u64| room.clamp(24, 255) as u32;
        self.room.map_or(ANY_BLOCK, room)
    }

    /// The part of the runtime that they need as a module of its own, to be linked with modules that were instrumented with
    /// [`Options::apart`]. Its target is theirs: a linker need not mix targets.
    ///
    /// # Errors
    /// Where the runtime is no PTX, or lacks one of the functions.
    pub fn module(&self, runtime: &str) -> Result<String, InstrumentError> {
        let parts = Parts::of(runtime).map_err(InstrumentError::RuntimeSyntax)?;
        if let Some(name) = self.calls.names().find(|name| !parts.defines(name)) {
            return Err(lacks(name));
        }
        let (major, minor) = parts.version.max(self.version);
        let own = format!("sm_{}", parts.target);
        let target = match &*self.target {
            "" => &own,
            theirs => theirs,
        };
        let head = format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n");
        Ok(head + &parts.needed(self.calls, &HashSet::new()))
    }
}

fn lacks(function: &str) -> InstrumentError {
    InstrumentError::Runtime(format!("it does not define `{function}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    const STUB: &str = include_str!("../../tests/data/stub_runtime.ptx");

    fn prepared(runtime: &str, calls: Hooks) -> Result<Runtime, InstrumentError> {
        Runtime::prepare(&Options::new(runtime, ""), &HashSet::new(), calls)
    }

    #[test]
    fn what_calls_everything_gets_everything_and_declarations_of_it() {
        let text = format!("{STUB}\n.section .debug_str {{\n$L__x:\n.b8 1\n}}\n");
        let runtime = prepared(&text, Hooks::all()).unwrap();
        let whole = format!(
            ".version 6.4\n.target sm_70\n.address_size 64\n{}",
            runtime.text
        );
        assert_eq!(
            parse(&whole).unwrap().items.len(),
            parse(STUB).unwrap().items.len()
        );
        assert_eq!((runtime.version, runtime.target), ((6, 4), 70));
        assert_eq!(
            runtime.prototypes.matches(".func").count(),
            names::ALL.len()
        );
        assert!(!runtime.prototypes.contains('\n'));
    }

    #[test]
    fn a_runtime_without_a_hook_is_refused() {
        let text = STUB.replace("__gsan_fence", "other");
        let error = prepared(&text, Hooks::default()).err().unwrap();
        assert!(error.to_string().contains("__gsan_fence"), "{error}");
        // One that it need not have, where it is called.
        let text = STUB.replace("__gsan_grid_wait", "other");
        assert!(prepared(&text, Hooks::default()).is_ok());
        let error = prepared(&text, Hooks::all()).err().unwrap();
        assert!(error.to_string().contains("__gsan_grid_wait"), "{error}");
    }
}
