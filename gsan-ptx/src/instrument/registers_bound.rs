//! Kernels that bound their registers and change them (`setmaxnreg`): what decides whether ptxas assembles calls in them.

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

/// The registers per thread that a kernel's directives make ptxas keep to.
pub(super) fn bound(function: &Function<'_>) -> Option<u64> {
    let directive = |name| function.attributes.iter().find(|a| a.name == name);
    let product =
        |name| directive(name).map(|a| a.values.iter().fold(1u64, |n, &d| n.saturating_mul(d)));
    let stated = directive("maxnreg").map(|a| a.values.first().copied().unwrap_or(0));
    // Blocks per multiprocessor mean nothing without the number of their threads.
    let threads = product("maxntid").or(product("reqntid"));
    let shared = product("minnctapersm")
        .zip(threads)
        .map(|(blocks, threads)| {
            let all = blocks.max(1).saturating_mul(threads).max(1);
            REGISTERS / all / 8 * 8
        });
    match (stated, shared) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
