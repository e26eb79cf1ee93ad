//! Functions that are called and whose body is not in the module: what they do to memory is not seen.

use super::Unsupported;
use super::function::Walker;
use crate::ast::Instruction;
use std::collections::HashSet;

/// The callees without a body so far.
#[derive(Default)]
pub(super) struct Externs<'m> {
    /// Other modules will be linked: theirs are instrumented as well.
    pub(super) part: bool,
    seen: HashSet<&'m str>,
    /// The first call of each.
    calls: Vec<(&'m str, Unsupported)>,
}

/// Why a call of a function of the driver is listed; `Some(None)` for those that touch no global memory that others write.
pub(super) fn of_the_driver(name: &str) -> Option<Option<&'static str>> {
    Some(match name {
        "malloc" | "free" => {
            Some("memory of the device's heap has no shadow: accesses to it are not checked")
        }
        "vprintf" => Some("what the driver's printf reads (the format, strings) is not checked"),
        _ if name.starts_with("__cudaCDP") || name.starts_with("cudaGetParameterBuffer") => Some(
            "it belongs to launches and copies that kernels start, which gsan does not support: start them from the host",
        ),
        // They end the kernel, and read texts that nobody writes.
        "__assertfail" | "__assert_fail" => None,
        _ => return None,
    })
}

impl<'m> Walker<'m, '_> {
    /// A call of a function by its name.
    pub(super) fn callee(&mut self, name: &'m str, instruction: &Instruction<'m>) {
        if !self.externs.seen.insert(name) {
            return;
        }
        let why = match of_the_driver(name) {
            Some(None) => return,
            Some(Some(why)) => why,
            None if self.externs.part => return,
            None => {
                "the function is not in this module, so that what it does to memory is not checked: link the module that \
                 defines it"
            }
        };
        let entry = self.unsupported(instruction.span.clone(), why, false);
        self.externs.calls.push((name, entry));
    }

    /// Lists those that have no body anywhere in the module; `aliases` are other names of some that have.
    pub(super) fn list_externs(&mut self, aliases: &HashSet<&str>) {
        let calls = std::mem::take(&mut self.externs.calls);
        if calls.is_empty() {
            return;
        }
        let defined: HashSet<&str> = self.nodes.iter().map(|n| n.name).collect();
        let missing = calls
            .into_iter()
            .filter(|(name, _)| !defined.contains(name) && !aliases.contains(name));
        self.out.unsupported.extend(missing.map(|(_, entry)| entry));
    }
}
