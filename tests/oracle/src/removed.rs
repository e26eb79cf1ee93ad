//! What the interpreter does for the detector in the place of the host and of instrumented code, and can leave out: a mutant of theirs
//! must not pass.

use std::cell::Cell;

/// Something to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A dependent launch begins with what the kernel before it began with.
    DependentBase,
    /// The stream knows a dependent launch's row beside those that it knew.
    DependentJoin,
    /// A dependent launch is told the row that its wait adds.
    DependentRow,
    /// A dependent launch behind another one is told where that one hands over.
    DependentHandover,
    /// The hook before `griddepcontrol.launch_dependents`.
    Trigger,
    /// An operation of the host begins with what its stream knew.
    OperationBase,
    /// The stream knows what an operation of the host did.
    OperationRow,
    /// The hook before `cp.async.mbarrier.arrive`.
    ArriveBehindCopies,
    /// The hook at a multicast that says that its end releases at an mbarrier of the cluster.
    MulticastRelease,
    /// A box has several rows.
    BoxRows,
    /// A box ends where the tensor does.
    BoxClip,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 11] = [
        Part::DependentBase,
        Part::DependentJoin,
        Part::DependentRow,
        Part::DependentHandover,
        Part::Trigger,
        Part::OperationBase,
        Part::OperationRow,
        Part::ArriveBehindCopies,
        Part::MulticastRelease,
        Part::BoxRows,
        Part::BoxClip,
    ];
}

thread_local! {
    static REMOVED: Cell<Option<Part>> = const { Cell::new(None) };
}

/// Leaves it out in this thread from now on; with `None` nothing.
pub fn remove(part: Option<Part>) {
    REMOVED.with(|r| r.set(part));
}

/// Whether it is left out.
pub(crate) fn without(part: Part) -> bool {
    REMOVED.with(Cell::get) == Some(part)
}
