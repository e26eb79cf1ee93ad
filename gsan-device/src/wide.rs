//! The `wide` cell: what is known of one 4-byte word, in 64 bytes: four accesses with their bytes, thread and line, and
//! the release that a strong read would acquire.
//!
//! After TSan's shadow, which keeps a few accesses of any kind and lets a newer one take the place of an older one that it
//! implies. An access implies an earlier one when whoever races with the earlier also races with it: it comes after it
//! (same thread, or ordered), touches at least its bytes, writes if it wrote, and is no more strong.
//!
//! Against the `reference` cell: bytes are told apart, epochs have 32 bits, both sides of a report have their line, and a
//! release is kept apart from the accesses, so that a compare-and-swap that fails leaves nothing but its read. What it
//! forgets when more than four accesses matter: a reader that the sampling drops, or a writer of single bytes.

mod contents;
mod deferred;
mod plain;

use crate::cell::{Cell, Conflict, Current, Prior, Release, covers};
use crate::clock::{Lookup, Publication, State};
use crate::layout::{
    Access, Epoch, Op, Order, ScalarClock, Scope, SyncClock, WideCell, WideRecord,
};
use crate::machine::Machine;
use crate::mutants::{Edge, without};
use crate::warps::WARP;
use contents::Contents;
use core::mem::size_of;
use deferred::{OFFERED, SURE};

const RECORDS: u32 = WideCell::RECORDS as u32;

/// A `wide` cell in memory.
#[derive(Clone, Copy)]
pub struct Wide {
    addr: u64,
}

impl Cell for Wide {
    const STRIDE: u64 = size_of::<WideCell>() as u64;

    #[inline]
    fn at(addr: u64) -> Self {
        Wide { addr }
    }

    #[inline(always)]
    fn weak<M: Machine>(self, me: State<M>, access: Current) -> Option<Conflict> {
        self.plain(me, access)
    }

    #[inline(never)]
    fn strong_before<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        release: &mut Option<Release>,
    ) -> (Option<Conflict>, u64) {
        let op = access.op;
        // An access that carries a release belongs to the epoch that it publishes: whoever acquires it is ordered after
        // the access itself, too.
        let epoch = release.map_or(me.epoch(), |r| r.epoch);
        // What it conflicts with may be ordered before it by what it acquires.
        let may_acquire = op.order().acquires() && op.access() != Access::Store;
        let writes = op.access() != Access::Load;
        let state = self.lock(me.m);
        let mut context = 0;
        if writes && (op.access() != Access::Cas || release.is_some() && !without(Edge::CasOffer)) {
            self.publish(me, op.scope(), release);
            context = OFFERED;
        }
        let before = Contents::load(me.m, self.addr, state);
        let mut now = before;
        let mut conflict;
        if op.access() == Access::Cas {
            // Until it is known to write it is a read, and its release an offer.
            let read = record(me, read_part(access), epoch);
            conflict = now.check(me, read_part(access), read);
            let attempt = record(me, attempt_part(access), epoch);
            now.insert(me, attempt, self.addr);
            me.read_recorded(epoch);
            // Who observes from here on may observe what it writes; who has so far can't.
            now.written(me, attempt, false, false);
            // Nor is it checked later as what it then is: others may have come after it, ordered by what they saw.
            if !may_acquire || conflict.is_none() {
                let writes = record(me, access, epoch);
                context |= now.check(me, access, writes).map_or(0, deferred::bits);
            }
        } else {
            context = 0;
            let record = record(me, access, epoch);
            conflict = now.check(me, access, record);
            now.insert(me, record, self.addr);
            if writes {
                me.recorded(record.epoch());
                now.written(me, record, op.access() == Access::Rmw, false);
            } else {
                me.read_recorded(epoch);
            }
        }
        now.store(me.m, self.addr, &before);
        self.unlock(me.m, now.state);
        if may_acquire && !without(Edge::AcquiringAccess) {
            context |= conflict.map_or(0, |c| deferred::bits(c) | SURE);
            conflict = None;
        }
        (conflict, context)
    }

    #[inline]
    fn settle<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        context: u64,
        success: bool,
    ) -> Option<Conflict> {
        let wrote = success && access.op.access() == Access::Cas;
        let conflict = if wrote || context & SURE != 0 {
            deferred::conflict(&Contents::load(me.m, self.addr, 0), context, access)
        } else {
            None
        };
        if wrote {
            self.committed(me, access, context);
        }
        conflict
    }

    #[inline(never)]
    fn reduced<M: Machine>(self, me: State<M>, access: Current) -> Option<Conflict> {
        let state = self.lock(me.m);
        let before = Contents::load(me.m, self.addr, state);
        let mut now = before;
        let mut conflict = None;
        if state & WideCell::DROPPED == 0 && !now.observed_by_another(me) {
            let record = record(me, access, me.epoch());
            conflict = now.check(me, access, record);
            now.insert(me, record, self.addr);
            me.recorded(record.epoch());
        }
        now.store(me.m, self.addr, &before);
        self.unlock(me.m, now.state);
        conflict
    }

    #[inline]
    fn join_contexts(first: u64, other: u64) -> u64 {
        if deferred::outlasts(other, first) {
            first & OFFERED | other
        } else {
            first | other & OFFERED
        }
    }

    fn observe<M: Machine>(self, me: State<M>) {
        if self.mark_observed(me) {
            return;
        }
        // Somebody's write has taken the place of this thread's record since the hook before the instruction: a record of no
        // bytes, which conflicts with nobody, remembers who has observed.
        let op = Op::new(Access::Load, 4, Order::Relaxed, Scope::Sys);
        let nothing = WideRecord::new(
            me.epoch(),
            me.thread_id(),
            me.m.linear_thread(),
            0,
            op,
            u32::MAX,
        );
        let state = self.lock(me.m);
        let before = Contents::load(me.m, self.addr, state);
        let mut now = before;
        now.insert(me, nothing, self.addr);
        me.read_recorded(nothing.epoch());
        now.store(me.m, self.addr, &before);
        self.unlock(me.m, now.state);
        self.mark_observed(me);
    }

    #[inline]
    fn acquirable<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Lookup<M>> {
        let sync = self.sync(me.m);
        if !sync.is_empty()
            && covers(me, sync.scope(), sync.thread())
            && covers(me, scope, sync.thread())
        {
            Some(me.lookup(sync.thread(), sync.token()))
        } else {
            None
        }
    }

    /// Looks without the lock: a write that is here stays in its place until the cell says that it was replaced (`Contents::store`).
    fn written_by_own_block<M: Machine>(self, me: State<M>) -> bool {
        let cell = Contents::load(me.m, self.addr, 0);
        let mut found = false;
        let mut slot = 0;
        while slot < RECORDS {
            let record = cell.record(slot);
            found |= is_own_block(me, record)
                && (record.writes() || record.op().is_attempt())
                && record.op().scope() != Scope::None
                && warp_of(record) != me.warp();
            slot += 1;
        }
        let state = me.m.load32(self.state_word());
        found || state & (WideCell::DROPPED | WideCell::REPLACED) != 0
    }

    fn unreleased<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Prior> {
        let cell = Contents::load(me.m, self.addr, 0);
        let mut slot = 0;
        while slot < RECORDS {
            let record = cell.record(slot);
            let strong = record.op().scope();
            if record.writes()
                && record.thread() != me.thread_id()
                && covers(me, strong, record.thread())
                && covers(me, scope, record.thread())
            {
                return Some(prior_of(record));
            }
            slot += 1;
        }
        None
    }

    #[inline(never)]
    fn sync_before<M: Machine>(self, me: State<M>, scope: Scope, release: &mut Option<Release>) {
        if release.is_none() || without(Edge::SyncCells) {
            return;
        }
        let state = self.lock(me.m);
        self.publish(me, scope, release);
        self.unlock(me.m, state);
    }
}

impl Wide {
    #[inline]
    fn state_word(self) -> u64 {
        self.addr.wrapping_add(WideCell::STATE_WORD)
    }

    #[inline]
    fn sync_word(self) -> u64 {
        self.addr.wrapping_add(WideCell::SYNC)
    }

    #[inline]
    fn sync<M: Machine>(self, m: M) -> SyncClock {
        SyncClock(m.load64_acquire(self.sync_word()))
    }

    /// Takes the cell's lock; returns the state word without it.
    #[inline]
    fn lock<M: Machine>(self, m: M) -> u32 {
        let addr = self.state_word();
        let mut state = m.load32(addr) & !WideCell::LOCKED;
        loop {
            let now = m.cas32_acquire(addr, state, state | WideCell::LOCKED);
            if now == state {
                return state;
            }
            if now & WideCell::LOCKED != 0 {
                m.pause();
            }
            state = now & !WideCell::LOCKED;
        }
    }

    #[inline]
    fn unlock<M: Machine>(self, m: M, state: u32) {
        m.store32_release(self.state_word(), state);
    }

    /// Marks this thread's record as having observed the last write, if there is one.
    fn mark_observed<M: Machine>(self, me: State<M>) -> bool {
        let m = me.m;
        let cell = Contents::load(m, self.addr, 0);
        let mut slot = 0;
        while slot < RECORDS {
            let record = cell.record(slot);
            if is_mine(me, record) && record.op().scope() != Scope::None {
                if !record.is_observed() {
                    let word = (size_of::<WideRecord>() as u32 * slot + 8) as u64;
                    // A record that has just been replaced stays as it is.
                    m.cas32_acquire(
                        self.addr.wrapping_add(word),
                        record.0[2],
                        record.0[2] | WideRecord::OBSERVED,
                    );
                }
                return true;
            }
            slot += 1;
        }
        false
    }

    /// What a strong write publishes: its own release joined with the one that it overwrites; without a release the earlier
    /// one stays as it is. (A store ends others' release sequences, but a reader may have found the value before, and look
    /// for its token only now.)
    fn publish<M: Machine>(self, me: State<M>, scope: Scope, release: &mut Option<Release>) {
        let m = me.m;
        let old = self.sync(m);
        let addr = self.sync_word();
        // A store ends others' release sequences, but a reader may have found the value before, and look for its token only
        // now: what a strong write overwrites goes on, whether it reads or not.
        let Some(r) = *release else {
            if without(Edge::RelaxedRmwRepublish) {
                m.store64_release(addr, 0);
            }
            return;
        };
        let mut join = None;
        let mut published_scope = scope;
        if !old.is_empty() && !without(Edge::JoinedRelease) {
            let found = me.lookup(old.thread(), old.token());
            // The wider scope, so that neither release loses a reader.
            published_scope = old.scope().max(scope);
            let repeated = r.token != 0 && (old.token(), old.thread()) == (r.token, me.thread_id());
            if !repeated && (r.by_fence || !me.includes(found, r.epoch)) {
                join = Some(found);
            }
        }
        let token = if join.is_none() && r.token != 0 {
            r.token
        } else {
            me.publish(Publication {
                own: Some(r.epoch),
                join,
                epoch: r.epoch,
                event: ScalarClock::access(0, me.thread_id(), scope),
                attempt: false,
            })
        };
        if join.is_none() {
            *release = Some(Release { token, ..r });
        }
        m.store64_release(
            addr,
            SyncClock::new(token, me.thread_id(), published_scope).0,
        );
    }

    /// A weak store: drops the release of a launch that was over before this one began. A younger one stays, though whoever
    /// acquires it comes before this store or races with it: an atomic that has read it already may look for it only now.
    #[inline(never)]
    fn end_release_sequence<M: Machine>(self, me: State<M>) {
        // The cell is locked: what its last holder stored is seen.
        let old = SyncClock(me.m.load64(self.sync_word()));
        if !old.is_empty()
            && let Lookup::Found(p) = me.lookup(old.thread(), old.token())
        {
            let epoch = p.epoch();
            if p.intact() && me.inherited(old.thread(), epoch) {
                me.m.store64_release(self.sync_word(), 0);
            }
        }
    }

    /// The epoch that the offer of this thread's compare-and-swap published; the current one if the offer is gone.
    fn published_epoch<M: Machine>(self, me: State<M>) -> Epoch {
        let sync = self.sync(me.m);
        if sync.thread() == me.thread_id()
            && let Lookup::Found(p) = me.lookup(sync.thread(), sync.token())
        {
            let epoch = p.epoch();
            if p.intact() && epoch >= me.start_epoch() {
                return epoch;
            }
        }
        me.epoch()
    }

    /// A compare-and-swap has written.
    #[inline(never)]
    fn committed<M: Machine>(self, me: State<M>, access: Current, context: u64) {
        let state = self.lock(me.m);
        let before = Contents::load(me.m, self.addr, state);
        let mut now = before;
        // Whoever came between the two hooks was checked against the read that the first one recorded.
        let epoch = if context & OFFERED == 0 {
            me.epoch()
        } else {
            self.published_epoch(me)
        };
        let record = record(me, access, epoch);
        now.insert(me, record, self.addr);
        me.recorded(epoch);
        now.written(me, record, true, true);
        now.store(me.m, self.addr, &before);
        self.unlock(me.m, now.state);
    }
}

/// Whether this warp made it.
#[inline]
fn is_mine<M: Machine>(me: State<M>, record: WideRecord) -> bool {
    is_own_block(me, record) && (warp_of(record) == me.warp() || !me.tells_warps_apart())
}

#[inline]
fn is_own_block<M: Machine>(me: State<M>, record: WideRecord) -> bool {
    !record.is_empty() && record.thread() == me.thread_id() && record.epoch() >= me.start_epoch()
}

/// Whether what this thread does now comes after it.
#[inline]
fn is_before<M: Machine>(me: State<M>, record: WideRecord) -> bool {
    me.happened_before(record.thread(), record.epoch(), warp_of(record))
}

#[inline]
fn record<M: Machine>(me: State<M>, access: Current, epoch: Epoch) -> WideRecord {
    WideRecord::new(
        epoch,
        me.thread_id(),
        me.m.linear_thread(),
        access.mask,
        access.op,
        access.site,
    )
}

/// The same, to be told from a load until it is known whether it writes.
#[inline]
fn attempt_part(access: Current) -> Current {
    Current {
        op: access.op.attempt(),
        ..access
    }
}

/// The read that a compare-and-swap is in any case.
#[inline]
fn read_part(access: Current) -> Current {
    let op = access.op;
    Current {
        op: op.as_access(Access::Load),
        ..access
    }
}

/// The warp that did it.
#[inline]
fn warp_of(record: WideRecord) -> u32 {
    record.linear() / WARP
}

#[inline]
fn prior_of(record: WideRecord) -> Prior {
    Prior {
        thread: record.thread(),
        epoch: record.epoch(),
        op: record.op(),
        site: record.site(),
        linear: Some(record.linear()),
    }
}

/// Whether whoever races with `old` also races with `new`, which comes after it.
#[inline]
fn implies(new: WideRecord, old: WideRecord) -> bool {
    let (n, o) = (new.op(), old.op());
    old.mask() & !new.mask() == 0
        && (new.writes() || !old.writes())
        && (n.scope() == Scope::None
            || (o.scope() != Scope::None && n.scope() <= o.scope() && n.size() == o.size()))
}
