//! The warps of a block: what each knows of the others, and what another block knows of one of them.
//!
//! A block is one logical thread with one row of clocks; its warps share what is known of other blocks. Among
//! themselves they have the block's epoch: each warp knows the others' accesses up to an epoch, which barriers raise
//! (the arriving warp closes an epoch, the leaving one knows all that was closed), and strong reads of what the block
//! itself wrote. A release by one warp speaks for the others only as far as it knows them: a [`PartialClock`].
//!
//! A warp is one thread here: its lanes run converged, or meet at a `bar.warp.sync`.

use crate::clock::{Lookup, Published, Row, State};
use crate::layout::{Epoch, PartialClock, ThreadState};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};

/// Threads of a warp.
pub const WARP: u32 = 32;
/// Where it is not known which warp it was: what is known of one is known of all.
pub const ANY_WARP: u32 = u32::MAX;

impl<M: Machine> State<M> {
    /// The warp of the acting thread.
    #[inline]
    pub fn warp(self) -> u32 {
        (self.m.linear_thread() / WARP) & (ThreadState::WARPS as u32 - 1)
    }

    /// Whether the block's warps are told apart.
    #[inline]
    pub fn tells_warps_apart(self) -> bool {
        self.m.load32(field!(self.addr, ThreadState, intra_block)) != 0
    }

    /// Whether an access of this block's `warp` at `epoch` happens before what this thread does now.
    #[inline]
    pub fn knows_warp(self, warp: u32, epoch: Epoch) -> bool {
        warp == self.warp()
            || warp == ANY_WARP
            || epoch <= self.block_prefix()
            || !self.tells_warps_apart()
    }

    /// Up to which epoch this warp knows the others of its block.
    #[inline]
    pub fn block_prefix(self) -> Epoch {
        self.m.load32(self.prefix_addr())
    }

    /// From now on this warp knows the others of its block up to `epoch`.
    #[inline]
    pub fn raise_block_prefix(self, epoch: Epoch) {
        if self.block_prefix() < epoch {
            self.m.max32(self.prefix_addr(), epoch);
        }
    }

    #[inline]
    fn prefix_addr(self) -> u64 {
        field!(self.addr, ThreadState, warps).wrapping_add(4 * self.warp() as u64)
    }

    #[inline]
    fn barrier_addr(self, id: u32) -> u64 {
        let id = id & (ThreadState::BARRIERS as u32 - 1);
        field!(self.addr, ThreadState, barriers).wrapping_add(4 * id as u64)
    }

    /// This warp's threads arrive at a barrier: what they did is in epochs that are closed.
    #[inline]
    pub fn arrive(self, id: u32) {
        let group = self.m.group();
        if self.m.leads(group) && !without(Edge::BarrierArrive) {
            let epoch = self.close_epoch();
            self.m.max32(self.barrier_addr(id), epoch);
        }
    }

    /// This warp's threads leave a barrier. A warp that arrived again in between may have raised the epoch further.
    #[inline]
    pub fn leave(self, id: u32) {
        if !without(Edge::BarrierLeave) {
            let epoch = self.m.load32(self.barrier_addr(id));
            self.raise_block_prefix(epoch);
        }
    }

    /// Takes what a release knows of this block's own warps, whoever published it.
    pub fn learn_own_block(self, from: Lookup<M>) {
        if !self.tells_warps_apart() || without(Edge::OwnBlock) {
            return;
        }
        let own = self.thread_id();
        let mut epoch = self.epoch();
        if let Lookup::Found(p) = from {
            let mut known = p.entry(own);
            let mut i = 0;
            while i < PartialClock::PER_ROW as u32 {
                let partial = p.partial(i);
                if partial.thread() == own {
                    known = known.max(partial.epoch());
                }
                i += 1;
            }
            if p.intact() {
                epoch = known.min(epoch);
            }
        }
        self.raise_block_prefix(epoch);
    }

    /// Whether `row` says that of `warp` of `thread` everything up to `epoch` is known.
    pub fn knows_partly(self, row: Row, thread: u32, epoch: Epoch, warp: u32) -> bool {
        let mut i = 0;
        while i < PartialClock::PER_ROW as u32 {
            let partial = row.partial(self.m, i);
            if partial.thread() == thread
                && partial.epoch() >= epoch
                && (partial.warp() == warp || warp == ANY_WARP)
            {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Merges an entry into a row that the block's threads share. Without a free place the whole block counts as known.
    pub fn add_partial(self, row: Row, partial: PartialClock) {
        let m = self.m;
        if without(Edge::PartialMerge) {
            return;
        }
        if partial.thread() >= self.num_threads {
            return;
        }
        if partial.thread() == self.thread_id() {
            // Of its own warps a block keeps the epochs themselves; what remains is about earlier tenants.
            self.raise(row, partial.thread(), partial.epoch());
            return;
        }
        if row.entry(m, partial.thread()) >= partial.epoch() {
            return;
        }
        let mut i = 0;
        while i < PartialClock::PER_ROW as u32 {
            let at = row.partial_addr(i);
            let mut seen = PartialClock(m.load64(at));
            while seen.is_empty() || seen.same_warp(partial) {
                if seen.epoch() >= partial.epoch() {
                    return;
                }
                let found = PartialClock(m.cas64(at, seen.0, partial.0));
                if found == seen {
                    return;
                }
                seen = found;
            }
            i += 1;
        }
        self.raise(row, partial.thread(), partial.epoch());
    }

    /// Merges all of one row's entries into another.
    pub fn add_partials(self, into: Row, from: Row) {
        let mut i = 0;
        while i < PartialClock::PER_ROW as u32 {
            let partial = from.partial(self.m, i);
            if !partial.is_empty() {
                self.add_partial(into, partial);
            }
            i += 1;
        }
    }

    /// What this warp's release up to `epoch` says of its own block: the entry for all warps, and that for this one
    /// (empty where the first says all).
    #[inline]
    pub fn own_part(self, epoch: Epoch) -> (Epoch, PartialClock) {
        if !self.tells_warps_apart() {
            return (epoch, PartialClock::default());
        }
        let id = self.thread_id();
        let prefix = self.block_prefix().min(epoch).max(self.known(id));
        if without(Edge::OwnPart) {
            return (prefix, PartialClock::default());
        }
        (prefix, PartialClock::new(id, self.warp(), epoch))
    }
}

impl<M: Machine> Published<M> {
    /// What the publisher's own accesses are covered up to, and of which warp of its block.
    #[inline]
    pub fn own(self) -> (Epoch, u32) {
        let partial = self.partial(0);
        if partial.is_empty() || partial.thread() != self.thread {
            (self.entry(self.thread), ANY_WARP)
        } else {
            (partial.epoch(), partial.warp())
        }
    }
}

/// Before a barrier: `bar.sync`, `bar.red`, `bar.arrive` and their longer spellings.
#[inline]
pub fn barrier_before<M: Machine>(me: State<M>, id: u32) {
    if me.tells_warps_apart() {
        me.arrive(id);
        // An arrival that does not wait orders what came before it, too.
        me.m.fence(crate::layout::Scope::Cta);
    }
}

/// After a barrier that waits.
#[inline]
pub fn barrier_after<M: Machine>(me: State<M>, id: u32) {
    if me.tells_warps_apart() {
        me.leave(id);
    }
}

/// This thread has synchronised with others of its block in a way that is not followed in detail (a strong access to
/// shared memory, an mbarrier, a cluster barrier): its warp knows all that the block has done.
#[inline]
pub fn block_sync<M: Machine>(me: State<M>) {
    if me.tells_warps_apart() && !without(Edge::BlockSync) {
        me.raise_block_prefix(me.epoch());
    }
}
