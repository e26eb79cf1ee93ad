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
            return Err(InstrumentError::Runtime(format!(
                "it does not define `{name}`"
            )));
        }
        Ok(Runtime {
            version: parts.version,
            target: parts.target,
            prototypes: linkage(parts.prototypes(calls), options.part),
            text: linkage(parts.needed(calls, taken), options.part),
        })
    }
}

fn linkage(text: String, weak: bool) -> String {
    if weak {
        text.replace(".visible", ".weak")
    } else {
        text
    }
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
