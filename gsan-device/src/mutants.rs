//! Switches that break the detector, one edge at a time: what a test of the detector must notice.
//!
//! Without the feature `mutants`, [`without`] is `false` at compile time and no code is left of it.

/// An edge that a mutant lacks, or a check that it skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Edge {
    /// An acquire operation imports the clock that it found.
    AcquireMerge = 1,
    /// A release operation publishes.
    ReleasePublish,
    /// A release fence lets later relaxed writes publish.
    FenceRelease,
    /// An acquire fence imports what is pending.
    FenceAcquire,
    /// A release joins earlier releases of its location.
    JoinedRelease,
    /// A relaxed write over a release carries that on.
    RelaxedRmwRepublish,
    /// A compare-and-swap offers its release before it is known to succeed.
    CasOffer,
    /// A launch's blocks inherit the base row.
    BaseRow,
    /// The first acquire copies the base row into the own clock.
    OwnCopy,
    /// The last exiting block publishes what it did and knows.
    ExitPublish,
    /// A block that joins a slot in use imports its launch's row.
    SharedSlotRow,
    /// Strong accesses that were observed are forgiven.
    Observed,
    /// Strong accesses whose scopes reach each other don't race.
    StrongPair,
    /// Strong accesses outside all shadow synchronise.
    SyncCells,
    /// An overwritten snapshot counts as its writer's current clock.
    RingWrap,
    /// A saturated epoch counts as ordered.
    Saturated,
    /// A release closes the epoch: what follows it is not published.
    EpochClose,
    /// A new tenant doesn't know the epochs of earlier tenants.
    StartEpoch,
    /// An acquiring access is checked again after it has acquired.
    AcquiringAccess,
    /// A store is checked against readers.
    CheckReads,
    /// Every access is checked against the last write.
    CheckWrite,
    /// Narrow scopes don't reach other blocks.
    NarrowScope,
    /// A relaxed read's clock waits for a fence.
    PendingOnly,
    /// A warp that arrives at a barrier closes the epoch and leaves it there.
    BarrierArrive,
    /// A warp that leaves a barrier knows what the others closed there.
    BarrierLeave,
    /// A release tells a block's warp what it knows of that block's other warps.
    OwnBlock,
    /// A release says what its own warp did.
    OwnPart,
    /// An acquire takes what is known of single warps.
    PartialMerge,
    /// Synchronisation that is not followed in detail orders a block's warps.
    BlockSync,
    /// Each `fence.sc` synchronises with the next.
    ScOrder,
    /// A cluster's barriers and flags release.
    ClusterRelease,
    /// A cluster's barriers and flags acquire.
    ClusterAcquire,
    /// A launch that waits for the one before knows what that one did.
    GridWait,
    /// A launch that lets the next one begin after it has waited tells it what it has waited for.
    Handover,
    /// One that lets it begin before it has waited does not.
    EarlyTrigger,
    /// A wait for its thread's bulk groups records the copies that it knows to be carried out.
    CopyWait,
    /// Waits for bulk groups leave the younger groups alone.
    CopyGroups,
    /// What no wait was for is recorded when its thread leaves.
    CopyExit,
    /// A wait for an mbarrier records the reads that completed there.
    CopyBarrier,
    /// A `cp.async` is not covered by what is released before the wait for it.
    CopyAhead,
    /// A wait for `cp.async`s lets what follows cover them.
    CopyLanded,
    /// A multicast address stands for the memory that is bound there.
    Multicast,
}

impl Edge {
    /// All of them.
    pub const ALL: [Edge; 42] = [
        Edge::AcquireMerge,
        Edge::ReleasePublish,
        Edge::FenceRelease,
        Edge::FenceAcquire,
        Edge::JoinedRelease,
        Edge::RelaxedRmwRepublish,
        Edge::CasOffer,
        Edge::BaseRow,
        Edge::OwnCopy,
        Edge::ExitPublish,
        Edge::SharedSlotRow,
        Edge::Observed,
        Edge::StrongPair,
        Edge::SyncCells,
        Edge::RingWrap,
        Edge::Saturated,
        Edge::EpochClose,
        Edge::StartEpoch,
        Edge::AcquiringAccess,
        Edge::CheckReads,
        Edge::CheckWrite,
        Edge::NarrowScope,
        Edge::PendingOnly,
        Edge::BarrierArrive,
        Edge::BarrierLeave,
        Edge::OwnBlock,
        Edge::OwnPart,
        Edge::PartialMerge,
        Edge::BlockSync,
        Edge::ScOrder,
        Edge::ClusterRelease,
        Edge::ClusterAcquire,
        Edge::GridWait,
        Edge::Handover,
        Edge::EarlyTrigger,
        Edge::CopyWait,
        Edge::CopyGroups,
        Edge::CopyExit,
        Edge::CopyBarrier,
        Edge::CopyAhead,
        Edge::CopyLanded,
        Edge::Multicast,
    ];
}

/// Whether the detector of this thread is to do without an edge.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn without(_: Edge) -> bool {
    false
}

#[cfg(feature = "mutants")]
pub use switch::{remove, without};

#[cfg(feature = "mutants")]
mod switch {
    use super::Edge;
    use core::cell::Cell;

    std::thread_local! {
        static REMOVED: Cell<Option<Edge>> = const { Cell::new(None) };
    }

    /// Removes an edge from this thread's detector, or none.
    pub fn remove(edge: Option<Edge>) {
        REMOVED.set(edge);
    }

    /// Whether the detector of this thread is to do without an edge.
    #[inline]
    pub fn without(edge: Edge) -> bool {
        REMOVED.get() == Some(edge)
    }
}
