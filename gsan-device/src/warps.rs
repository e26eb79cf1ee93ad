//! The warps of a block: what each knows of the others, and what another block knows of one of them.
//!
//! A block is one logical thread with one row of clocks; its warps share what is known of other blocks. Among
//! themselves they have the block's epoch: each warp knows the others' accesses up to an epoch, which barriers raise
//! (the arriving warp closes an epoch, the leaving one knows all that was closed; where a part of the block meets, what
//! those who arrived knew of each warp), and strong reads of what the block itself wrote. A release by one warp speaks for the others only as far as it knows them: a [`PartialClock`].
//!
//! A warp is one thread here: its lanes run converged, or meet at a `bar.warp.sync`.

use crate::clock::{Lookup, Published, State};
use crate::layout::{Epoch, PartialClock, Scope, ThreadState};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::row::Row;
use core::mem::offset_of;

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
            || epoch <= self.m.load32(self.of_warp(offset_of!(ThreadState, warps)))
            || !self.tells_warps_apart()
            || epoch <= self.m.load32(self.pair(warp))
    }

    /// From now on this warp knows the others of its block up to `epoch`; with `acquires` off, after its next acquire fence.
    #[inline]
    pub fn know_block(self, epoch: Epoch, acquires: bool) {
        let field = if acquires {
            offset_of!(ThreadState, warps)
        } else {
            offset_of!(ThreadState, pending_warps)
        };
        self.raise_word(self.of_warp(field), epoch);
    }

    /// An acquire fence by this warp, of any scope.
    #[inline]
    pub fn know_pending_block(self) {
        let pending = self.of_warp(offset_of!(ThreadState, pending_warps));
        self.know_block(self.m.load32(pending), true);
    }

    #[inline]
    fn raise_word(self, addr: u64, epoch: Epoch) {
        if self.m.load32(addr) < epoch {
            self.m.max32(addr, epoch);
        }
    }

    /// This warp's word of the array at `offset`.
    #[inline]
    fn of_warp(self, offset: usize) -> u64 {
        self.word_of(offset, self.warp())
    }

    #[inline]
    fn word_of(self, offset: usize, warp: u32) -> u64 {
        self.addr.wrapping_add(offset as u64 + 4 * warp as u64)
    }

    /// What this warp knows of `warp`.
    #[inline]
    fn pair(self, warp: u32) -> u64 {
        self.pair_of(self.warp(), warp)
    }

    #[inline]
    fn pair_of(self, knows: u32, warp: u32) -> u64 {
        const WARPS: u32 = ThreadState::WARPS as u32;
        let index = knows.wrapping_mul(WARPS).wrapping_add(warp & (WARPS - 1));
        field!(self.addr, ThreadState, pairs).wrapping_add(4 * index as u64)
    }

    /// A barrier's word of the array at `offset`.
    #[inline]
    fn of_barrier(self, offset: usize, id: u32) -> u64 {
        let id = id & (ThreadState::BARRIERS as u32 - 1);
        self.addr.wrapping_add(offset as u64 + 4 * id as u64)
    }

    /// What those who arrived at a barrier with a count knew of `warp`.
    #[inline]
    fn row_of_barrier(self, id: u32, warp: u32) -> u64 {
        const WARPS: u32 = ThreadState::WARPS as u32;
        let id = id & (ThreadState::BARRIERS as u32 - 1);
        let index = id.wrapping_mul(WARPS).wrapping_add(warp & (WARPS - 1));
        field!(self.addr, ThreadState, barrier_rows).wrapping_add(4 * index as u64)
    }

    #[inline]
    fn warps_of_block(self) -> u32 {
        (self.m.block_threads().wrapping_add(WARP - 1) / WARP).min(ThreadState::WARPS as u32)
    }

    /// This warp's threads arrive at a barrier: what they did is in epochs that are closed.
    fn arrive(self, id: u32, whole: bool) {
        let group = self.m.group();
        if !self.m.leads(group) || without(Edge::BarrierArrive) {
            return;
        }
        let m = self.m;
        let epoch = self.close_epoch();
        m.max32(
            self.of_barrier(offset_of!(ThreadState, barriers), id),
            epoch,
        );
        if whole {
            m.max32(
                self.of_barrier(offset_of!(ThreadState, whole_barriers), id),
                epoch,
            );
            return;
        }
        let own = self.warp();
        let of_all = m.load32(self.of_warp(offset_of!(ThreadState, warps)));
        let mut warp = 0;
        while warp < self.warps_of_block() {
            let known = if warp == own {
                epoch
            } else {
                of_all.max(m.load32(self.pair(warp)))
            };
            self.raise_word(self.row_of_barrier(id, warp), known);
            warp += 1;
        }
    }

    /// This warp's threads leave a barrier. Who arrived again in between may have raised the epochs further.
    fn leave(self, id: u32, whole: bool) {
        if without(Edge::BarrierLeave) {
            return;
        }
        let m = self.m;
        if whole {
            let epoch = m.load32(self.of_barrier(offset_of!(ThreadState, barriers), id));
            self.know_block(epoch, true);
            return;
        }
        // Where the same barrier is met with and without a count.
        let all = m.load32(self.of_barrier(offset_of!(ThreadState, whole_barriers), id));
        self.know_block(all, true);
        let mut most = 0;
        let mut warp = 0;
        while warp < self.warps_of_block() {
            let epoch = m.load32(self.row_of_barrier(id, warp));
            self.raise_word(self.pair(warp), epoch);
            most = most.max(epoch);
            warp += 1;
        }
        self.raise_word(self.of_warp(offset_of!(ThreadState, reach)), most);
    }

    /// A plain access or a write is on record in that epoch. (One that is ahead of its time says the current one.)
    #[inline]
    pub fn recorded(self, epoch: Epoch) {
        self.raise_word(field!(self.addr, ThreadState, last_record), epoch);
    }

    /// A strong read is.
    #[inline]
    pub fn read_recorded(self, epoch: Epoch) {
        self.raise_word(field!(self.addr, ThreadState, last_read), epoch);
        self.raise_word(self.of_warp(offset_of!(ThreadState, last_reads)), epoch);
    }

    /// Whether anything is on record in the current `epoch` that this warp may have to know of.
    fn others_may_ask(self, epoch: Epoch) -> bool {
        let m = self.m;
        if m.load32(field!(self.addr, ThreadState, last_record)) >= epoch {
            return true;
        }
        let mut found = false;
        let mut warp = 0;
        if m.load32(field!(self.addr, ThreadState, last_read)) >= epoch {
            while warp < self.warps_of_block() {
                let read = m.load32(self.word_of(offset_of!(ThreadState, last_reads), warp));
                found |= warp != self.warp() && read >= epoch;
                warp += 1;
            }
        }
        found
    }

    /// An epoch that is closed and holds all that is on record: the current one is closed for that only if something is in it.
    pub fn closed_epoch(self) -> Epoch {
        let m = self.m;
        let epoch = self.epoch();
        let used = m.load32(field!(self.addr, ThreadState, last_record)) >= epoch
            || m.load32(field!(self.addr, ThreadState, last_read)) >= epoch;
        if used || epoch <= self.start_epoch() {
            return self.close_epoch();
        }
        epoch.wrapping_sub(1)
    }

    /// Whether the block's last recorded access came after `epoch`.
    #[inline]
    pub fn recorded_since(self, epoch: Epoch) -> bool {
        self.m.load32(field!(self.addr, ThreadState, last_record)) > epoch
    }

    /// Takes the place after the block's last `fence.sc` in their order.
    pub fn sc_fence(self) {
        let last = field!(self.addr, ThreadState, sc_block);
        self.know_block(self.m.load32(last), true);
        self.m.max32(last, self.close_epoch());
    }

    /// Where this warp keeps the token that carries its last release fence.
    #[inline]
    pub fn fence_token(self) -> u64 {
        self.of_warp(offset_of!(ThreadState, fence_tokens))
    }

    /// Takes what a release knows of this block's own warps, whoever published it.
    pub fn learn_own_block(self, from: Lookup<M>, acquires: bool) {
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
                // What this warp released itself says nothing of the others.
                if partial.thread() == own && partial.warp() != self.warp() {
                    known = known.max(partial.epoch());
                }
                i += 1;
            }
            if p.intact() {
                epoch = known.min(epoch);
            }
        }
        self.know_block(epoch, acquires);
    }

    /// Whether `row` says that of `warp` of `thread` everything up to `epoch` is known.
    #[inline]
    pub fn knows_partly(self, row: Row, thread: u32, epoch: Epoch, warp: u32) -> bool {
        row.has_partials() && self.knows_a_warp(row, thread, epoch, warp)
    }

    #[inline(never)]
    fn knows_a_warp(self, row: Row, thread: u32, epoch: Epoch, warp: u32) -> bool {
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

    /// Whether `row` has a release by another warp of the block that `warp` of `thread` belonged to at `epoch`, and the two
    /// have not met since: nothing made the release wait for that warp. Known only while that block has its slot.
    pub fn released_early(self, row: Row, thread: u32, epoch: Epoch, warp: u32) -> bool {
        let block = self.of(thread);
        let start = block.start_epoch();
        if warp == ANY_WARP || epoch < start {
            return false;
        }
        let warps = offset_of!(ThreadState, warps);
        let of_all = self.m.load32(block.word_of(warps, warp));
        let mut i = 0;
        while i < PartialClock::PER_ROW as u32 {
            let partial = row.partial(self.m, i);
            let released = partial.epoch();
            if partial.thread() == thread
                && partial.warp() != warp
                && (start..epoch).contains(&released)
                && released > of_all
                && released > self.m.load32(block.pair_of(warp, partial.warp()))
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
        if partial.thread() >= self.num_threads() {
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
    /// (empty where the first says all). [`Self::add_pairs`] has what barriers of a part of the block add.
    #[inline]
    pub fn own_part(self, epoch: Epoch) -> (Epoch, PartialClock) {
        if !self.tells_warps_apart() {
            return (epoch, PartialClock::default());
        }
        let id = self.thread_id();
        let known = self.m.load32(self.of_warp(offset_of!(ThreadState, warps)));
        let prefix = known.min(epoch).max(self.known(id));
        if without(Edge::OwnPart) {
            return (prefix, PartialClock::default());
        }
        (prefix, PartialClock::new(id, self.warp(), epoch))
    }

    /// Adds to this warp's release up to `epoch`, in a snapshot that nobody reads yet, what it knows of single warps of its
    /// block through barriers of a part of it: from the `used`-th place on, of which the new count is returned. What finds no
    /// place is known of the whole block.
    pub fn add_pairs(self, snapshot: Row, epoch: Epoch, used: u32) -> u32 {
        let m = self.m;
        let id = self.thread_id();
        let mut used = used;
        let at = snapshot.entry_addr(id);
        if m.load32(self.of_warp(offset_of!(ThreadState, reach))) <= m.load32(at) {
            return used;
        }
        let mut warp = 0;
        while warp < self.warps_of_block() {
            let known = m.load32(self.pair(warp)).min(epoch);
            if warp != self.warp() && known > m.load32(at) {
                if used < PartialClock::PER_ROW as u32 {
                    m.store64(
                        snapshot.partial_addr(used),
                        PartialClock::new(id, warp, known).0,
                    );
                    used += 1;
                } else {
                    m.store32(at, known);
                }
            }
            warp += 1;
        }
        used
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

/// Before a barrier: `bar.sync`, `bar.red`, `bar.arrive` and their longer spellings. `count` threads take part; 0: the form
/// without a count, which is the whole block's and waits.
#[inline]
pub fn barrier_before<M: Machine>(me: State<M>, id: u32, count: u32) {
    if me.tells_warps_apart() {
        me.arrive(id, count == 0);
        // An arrival that does not wait orders what came before it, too.
        me.m.fence(Scope::Cta);
    }
}

/// After a barrier that waits.
#[inline]
pub fn barrier_after<M: Machine>(me: State<M>, id: u32, count: u32) {
    if me.tells_warps_apart() {
        me.leave(id, count == 0);
    }
}

/// This thread has synchronised with others of its block in a way that is not followed in detail (a strong access to
/// shared memory, an mbarrier, a cluster barrier): its warp knows all that the block has done; if it has yet to
/// acquire, after its next fence.
#[inline]
pub fn block_sync<M: Machine>(me: State<M>, acquires: bool) {
    if me.tells_warps_apart() && !without(Edge::BlockSync) {
        // What the others do from now on is not known. (Polls leave nothing behind that would use up epochs.)
        let mut epoch = me.epoch();
        if me.others_may_ask(epoch) {
            epoch = me.close_epoch();
        } else {
            epoch = epoch.wrapping_sub(1);
        }
        me.know_block(epoch, acquires);
    }
}
