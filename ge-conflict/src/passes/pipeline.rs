//! The passes in the order in which they run.

use super::{addr, atomic, hccl, small, subgraph};
use crate::ctx::{Ctx, PassError};
use crate::{inplace, layout, lint, rw};

/// A pass, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Stage {
    Hccl,
    HcclContinuous,
    Subgraph,
    InplaceSupport,
    Atomic,
    Addr,
    MarkSameAddr,
    Offset,
    Rw,
    Layout,
    Inplace,
    Lint,
    All,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Stage; 13] = [
        Stage::Hccl,
        Stage::HcclContinuous,
        Stage::Subgraph,
        Stage::InplaceSupport,
        Stage::Atomic,
        Stage::Addr,
        Stage::MarkSameAddr,
        Stage::Offset,
        Stage::Rw,
        Stage::Layout,
        Stage::Inplace,
        Stage::Lint,
        Stage::All,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Hccl => hccl::PASS,
            Stage::HcclContinuous => hccl::CONTINUOUS,
            Stage::Subgraph => subgraph::PASS,
            Stage::InplaceSupport => small::INPLACE_SUPPORT,
            Stage::Atomic => atomic::PASS,
            Stage::Addr => addr::PASS,
            Stage::MarkSameAddr => small::MARK_SAME_ADDR,
            Stage::Offset => small::OFFSET,
            Stage::Rw => rw::PASS,
            Stage::Layout => layout::PASS,
            Stage::Inplace => inplace::PASS,
            Stage::Lint => lint::PASS,
            Stage::All => "all",
        }
    }

    /// What it does, in one line.
    pub fn words(self) -> &'static str {
        match self {
            Stage::Hccl => "finds collectives that would overwrite an input that others still need",
            Stage::HcclContinuous => {
                "finds inputs that have to lie in a row, or in memory that other devices reach, and can't"
            }
            Stage::Subgraph => {
                "finds memory that subgraphs (branches, loops) share with the graph around them, or a loop's rounds with each other"
            }
            Stage::InplaceSupport => "marks inputs over which an output may be written",
            Stage::Atomic => "finds memory to which operators add and which nobody sets to zero",
            Stage::Addr => "finds buffers of the caller whose address an operator can't follow",
            Stage::MarkSameAddr => {
                "marks outputs whose address must not change (runs only if it is asked for)"
            }
            Stage::Offset => "notes where inputs and results lie in the caller's buffers",
            Stage::Rw => {
                "finds operators that would overwrite memory that others use, and copies that nobody needs"
            }
            Stage::Layout => {
                "finds memory that its users need in different places or kinds: rows, special memory, buffers of the caller, constants"
            }
            Stage::Inplace => {
                "marks outputs that can be written over an input that nobody needs any more"
            }
            Stage::Lint => {
                "warns if an operator writes memory in place and another uses it, and no edge says which runs first"
            }
            Stage::All => "all of them, in GE's order",
        }
    }

    /// From the name on the command line.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// Runs a stage; what it did and found is in the context's report.
pub fn run(ctx: &mut Ctx<'_>, stage: Stage) {
    if stage == Stage::All {
        pipeline(ctx);
    } else if let Err(e) = one(ctx, stage) {
        ctx.fail(&e);
    }
}

fn one(ctx: &mut Ctx<'_>, stage: Stage) -> Result<(), PassError> {
    match stage {
        Stage::Hccl => hccl::run(ctx),
        Stage::HcclContinuous => hccl::run_continuous(ctx),
        Stage::Subgraph => subgraph::run(ctx),
        Stage::InplaceSupport => small::inplace_support(ctx),
        Stage::Atomic => atomic::run(ctx),
        Stage::Addr => addr::run(ctx),
        Stage::MarkSameAddr => small::mark_same_addr(ctx),
        Stage::Offset => small::offset(ctx),
        Stage::Rw => rw::run(ctx),
        Stage::Layout => layout::run(ctx),
        Stage::Inplace => inplace::run(ctx),
        Stage::Lint => lint::run(ctx),
        Stage::All => Ok(()),
    }
}

/// The pipeline, again and again until it inserts nothing: the read-write pass takes out copies that earlier passes of the
/// same run saw as isolation, and what they then would have done must not be left to the user's next run.
fn pipeline(ctx: &mut Ctx<'_>) {
    const MAX_ROUNDS: usize = 8;
    let changes =
        |c: &Ctx<'_>| c.report.inserted.len() + c.report.removed.len() + c.report.relinked.len();
    for round in 0..MAX_ROUNDS {
        let before = changes(ctx);
        once(ctx, round == 0);
        if changes(ctx) == before || !ctx.report.errors.is_empty() {
            break;
        }
    }
    if ctx.report.errors.is_empty() {
        lint::note_repair(ctx);
    }
}

/// The observed order. `mark-same-addr` is in no pipeline; the in-place support check only runs for host execution.
fn once(ctx: &mut Ctx<'_>, first: bool) {
    let host = ctx.module.options.host_exec;
    let order = [
        first.then_some(Stage::Lint),
        Some(Stage::Hccl),
        Some(Stage::Hccl),
        Some(Stage::HcclContinuous),
        host.then_some(Stage::InplaceSupport),
        Some(Stage::Atomic),
        Some(Stage::Subgraph),
        Some(Stage::Addr),
        Some(Stage::Rw),
        Some(Stage::Layout),
        Some(Stage::Inplace),
        Some(Stage::Offset),
    ];
    for stage in order.into_iter().flatten() {
        let sorted = resort(ctx);
        // Lint's verdict does not end the build; its warnings stand in the report.
        let failed = sorted
            .and_then(|()| one(ctx, stage))
            .err()
            .filter(|_| stage != Stage::Lint);
        let Some(e) = failed else { continue };
        if stage == Stage::Rw {
            // The read-write stage's failure is only a warning; the layout stage's ends the build.
            let graph = ctx.top().unwrap_or(crate::ir::GraphId(0));
            let reason = crate::report::Reason::new(
                crate::report::ConflictKind::ReadWrite,
                "the read-write pass gave up",
                (String::new(), String::new()),
                e.to_string(),
            );
            ctx.warn("RW_FAILED", graph, Vec::new(), None, &reason);
            continue;
        }
        ctx.fail(&e);
        return;
    }
}

/// New nodes get their ids, so that the next pass can compare them.
fn resort(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    let top = ctx.top()?;
    let fresh = |g: &crate::ir::GraphId| ctx.module.graph(*g).iter().any(|(_, n)| n.id.is_none());
    if ctx.module.family(top).iter().any(fresh) {
        ctx.module.sort(top)?;
    }
    Ok(())
}
