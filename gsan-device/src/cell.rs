//! What a shadow cell does, whatever its format: the detector knows no more of it than this.

use crate::clock::{Lookup, State};
use crate::cluster::reach;
use crate::layout::{Access, Epoch, Op, Order, RaceClass, RaceKind, Scope};
use crate::machine::Machine;
use crate::mutants::{Edge, without};
use crate::warps::{ANY_WARP, WARP};

/// A word's cell. Each method is one step of an access; the conflict that it returns is to be reported.
pub trait Cell: Copy {
    /// Bytes from one word's cell to the next.
    const STRIDE: u64;

    /// The cell at `addr`.
    fn at(addr: u64) -> Self;

    /// A weak load or store of the word's bytes in `mask`: checked, then recorded.
    fn weak<M: Machine>(self, me: State<M>, access: Current) -> Option<Conflict>;

    /// What a strong access does before the instruction. `release` is what it publishes; a token that was made for it
    /// is left there for the access's other words. The second result goes to [`Cell::settle`].
    fn strong_before<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        release: &mut Option<Release>,
    ) -> (Option<Conflict>, u64);

    /// What a strong load or atomic does after the instruction, `success` being whether a compare-and-swap wrote. A
    /// conflict stands unless what the access acquires orders the two.
    fn settle<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        context: u64,
        success: bool,
    ) -> Option<Conflict>;

    /// A word of an asynchronous reduction is known to be carried out: checked and recorded again, at the present. Where
    /// somebody has observed the word since, nothing is done: what was observed may have been this.
    fn reduced<M: Machine>(self, _: State<M>, _: Current) -> Option<Conflict> {
        None
    }

    /// One context for the words of a compare-and-swap: what is found in any of them is to be reported.
    fn join_contexts(first: u64, other: u64) -> u64;

    /// A strong load has read the word: it has observed the last write.
    fn observe<M: Machine>(self, me: State<M>);

    /// The release that a strong read with this scope acquires, if there is one.
    fn acquirable<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Lookup<M>>;

    /// Whether another warp of the own block may have written the word with a strong access.
    fn written_by_own_block<M: Machine>(self, me: State<M>) -> bool;

    /// The word's last strong write by another thread, if nothing was released with it.
    fn unreleased<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Prior>;

    /// A strong write to memory without shadow of its own: the cell is one of a hashed table and carries releases only.
    /// Others may share it, so nothing is ever dropped from it.
    fn sync_before<M: Machine>(self, me: State<M>, scope: Scope, release: &mut Option<Release>);
}

/// The access that a cell is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Current {
    /// What it is.
    pub op: Op,
    /// Where it stands.
    pub site: u32,
    /// Which bytes of this word.
    pub mask: u32,
}

/// An earlier access, as far as the cell keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prior {
    /// Logical thread.
    pub thread: u32,
    /// Epoch.
    pub epoch: Epoch,
    /// What it did: access, order and scope; the size where it is known, else 0.
    pub op: Op,
    /// Its site.
    pub site: Option<u32>,
    /// Linear index of the thread in its block.
    pub linear: Option<u32>,
}

impl Prior {
    /// The warp that did it, if the cell keeps that.
    #[inline]
    pub fn warp(self) -> u32 {
        self.linear.map_or(ANY_WARP, |linear| linear / WARP)
    }
}

/// What a check found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// RAW, WAR or WAW.
    pub kind: RaceKind,
    /// What is missing.
    pub class: RaceClass,
    /// The other side.
    pub prior: Prior,
    /// First byte of the word that both touch.
    pub byte: u32,
}

/// How a strong access publishes: the own clock up to `epoch`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    /// Accesses up to this epoch are published.
    pub epoch: Epoch,
    /// A snapshot that holds it already (0: none).
    pub token: u32,
    /// By an earlier fence: publications of one fence share its epoch, and later ones may hold more.
    pub by_fence: bool,
}

/// Whether `scope`, seen from this thread, reaches `thread`.
#[inline]
pub fn covers<M: Machine>(me: State<M>, scope: Scope, thread: u32) -> bool {
    match reach(me.m, scope) {
        Scope::None => false,
        Scope::Cta => thread == me.thread_id() || without(Edge::NarrowScope),
        // Which cluster another block was in is not kept.
        Scope::Cluster | Scope::Gpu => me.device_of(thread) == me.device_of(me.thread_id()),
        Scope::Sys => true,
    }
}

/// What an access at `scope` and an earlier strong or weak one that it is not ordered with are to each other.
/// `None`: two strong accesses whose scopes reach each other don't race, whatever their order.
#[inline]
pub fn class_of<M: Machine>(me: State<M>, prior: Prior, scope: Scope) -> Option<RaceClass> {
    if covers(me, prior.op.scope(), prior.thread)
        && covers(me, scope, prior.thread)
        && !without(Edge::StrongPair)
    {
        return None;
    }
    if prior.op.scope() != Scope::None && scope != Scope::None {
        return Some(RaceClass::ScopeTooNarrow);
    }
    Some(me.missing(prior.thread, prior.epoch, prior.warp()))
}

/// RAW, WAR or WAW.
#[inline]
pub fn kind_of(prior: Op, current: Op) -> RaceKind {
    if prior.access() == Access::Load {
        RaceKind::War
    } else if current.access() == Access::Store {
        RaceKind::Waw
    } else {
        RaceKind::Raw
    }
}

/// The order that a record without one implies.
#[inline]
pub fn implied_order(scope: Scope) -> Order {
    if scope == Scope::None {
        Order::Weak
    } else {
        Order::Relaxed
    }
}
