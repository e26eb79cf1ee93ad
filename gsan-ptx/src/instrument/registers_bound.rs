//! How many registers a kernel has: for the functions of a runtime that is linked with it, and, where it changes them (`setmaxnreg`),
//! whether ptxas assembles calls in it.

use crate::ast::{Function, Instruction, Operand, Statement};

/// Registers of a multiprocessor, which the threads of its blocks share.
const REGISTERS: u64 = 65536;

/// What the `setmaxnreg` of a body do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// There is one.
    pub(super) any: bool,
    /// One gives registers away.
    pub(super) below: bool,
    /// The largest number that one asks for.
    pub(super) most: u64,
}

impl Change {
    /// `text` is the body's.
    pub(super) fn of(function: &Function<'_>, text: &str) -> Change {
        let mut change = Change::default();
        if let Some(body) = function
            .body
            .as_ref()
            .filter(|_| text.contains("setmaxnreg"))
        {
            change.statements(&body.statements);
        }
        change
    }

    /// Recursion is bounded by [`crate::parse::MAX_NESTING`].
    fn statements(&mut self, statements: &[Statement<'_>]) {
        for statement in statements {
            match statement {
                Statement::Instruction(i) if i.opcode == "setmaxnreg" => self.see(i),
                Statement::Block { statements, .. } => self.statements(statements),
                _ => {}
            }
        }
    }

    fn see(&mut self, instruction: &Instruction<'_>) {
        self.any = true;
        match instruction.operands.first() {
            Some(Operand::Int(number)) if instruction.has("inc") => {
                self.most = self.most.max(u64::try_from(*number).unwrap_or(u64::MAX));
            }
            _ => self.below = true,
        }
    }

    /// Whether some warp has fewer registers at one place than at another, or than the bound, so that there may be no calls.
    pub(super) fn leaves(self, bound: u64) -> bool {
        self.below || self.most > bound
    }
}

/// The most registers of a thread.
const MOST: u64 = 255;

/// As many leave a block of 1024 threads, the largest, its place.
const ANY_BLOCK: u64 = 64;

/// The most registers that a function may use without making the kernel's largest block too large for a multiprocessor.
pub(super) fn room(function: &Function<'_>) -> u64 {
    let of_a_block = |threads: u64| {
        let whole_warps = threads.clamp(1, 1024).next_multiple_of(32);
        REGISTERS / whole_warps / 8 * 8
    };
    let block = threads(function).map_or(ANY_BLOCK, of_a_block);
    bound(function).unwrap_or(MOST).min(block).min(MOST)
}

/// The threads of a kernel's largest block, where it says so.
fn threads(function: &Function<'_>) -> Option<u64> {
    product(function, "maxntid").or_else(|| product(function, "reqntid"))
}

fn product(function: &Function<'_>, name: &str) -> Option<u64> {
    let directive = function.attributes.iter().find(|a| a.name == name)?;
    let values = directive.values.iter();
    Some(values.fold(1u64, |n, &d| n.saturating_mul(d)))
}

/// The registers per thread that a kernel's directives make ptxas keep to.
pub(super) fn bound(function: &Function<'_>) -> Option<u64> {
    let mut directives = function.attributes.iter();
    let stated = directives.find(|a| a.name == "maxnreg");
    let stated = stated.map(|a| a.values.first().copied().unwrap_or(0));
    // Blocks per multiprocessor mean nothing without the number of their threads.
    let shared = product(function, "minnctapersm")
        .zip(threads(function))
        .map(|(blocks, threads)| {
            let all = blocks.max(1).saturating_mul(threads).max(1);
            REGISTERS / all / 8 * 8
        });
    match (stated, shared) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::Item;
    use crate::parse::parse;

    #[test]
    fn blocks_and_bounds_leave_so_many_registers() {
        let room = |directives: &str| {
            let text = format!(".version 8.0\n.target sm_90\n.entry k() {directives} {{ ret; }}");
            let module = parse(&text).unwrap();
            let Some(Item::Function(function)) = module.items.first() else {
                panic!("{text}");
            };
            room(function)
        };
        for (directives, registers) in [
            ("", 64),
            (".maxntid 1024", 64),
            (".reqntid 1000, 1", 64),
            (".reqntid 16, 24", 168),
            (".maxntid 512", 128),
            (".maxntid 128, 1, 1", 255),
            (".reqntid 0", 255),
            (".maxntid 4294967295, 4294967295, 4294967295", 64),
            (".maxnreg 40", 40),
            (".maxnreg 168", 64),
            (".maxntid 128 .maxnreg 168", 168),
            (".maxntid 256, 1, 1 .minnctapersm 4", 64),
            (".maxntid 1024, 1, 1 .minnctapersm 2", 32),
            (".minnctapersm 2", 64),
        ] {
            assert_eq!(room(directives), registers, "{directives}");
        }
    }
}
