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

use crate::cell::{Cell, Conflict, Current, Prior, Release, class_of, covers, kind_of};
use crate::clock::{Lookup, Publication, State};
use crate::layout::{
    Access, Epoch, GlobalState, Op, Order, RaceClass, RaceKind, ScalarClock, Scope, SyncClock,
    ThreadState, WideCell, WideRecord,
};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::sampling;
use crate::warps::WARP;
use core::mem::size_of;

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

    #[inline]
    fn weak<M: Machine>(self, me: State<M>, access: Current) -> Option<Conflict> {
        let record = record(me, access, me.epoch_of(access.op));
        if self.has_same(me, record) {
            return None;
        }
        self.weak_recorded(me, access, record)
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
        let mut state = self.lock(me.m);
        let mut context = 0;
        let mut conflict;
        match op.access() {
            Access::Cas => {
                // Until it is known to write it is a read, and its release an offer.
                let read = record(me, read_part(access), epoch);
                conflict = self.check(me, read_part(access), read);
                let attempt = record(me, attempt_part(access), epoch);
                state = self.insert(me, attempt, state);
                me.read_recorded(epoch);
                // Who observes from here on may observe what it writes; who has so far can't.
                self.written(me, attempt, false, false);
                // Nor is it checked later as what it then is: others may have come after it, ordered by what they saw.
                let writes = record(me, access, epoch);
                if !may_acquire || conflict.is_none() {
                    context = self.check(me, access, writes).map_or(0, deferred_bits);
                }
                if release.is_some() && !without(Edge::CasOffer) {
                    context |= OFFERED;
                    self.publish(me, op.scope(), release);
                }
            }
            Access::Load => {
                let record = record(me, access, epoch);
                conflict = self.check(me, access, record);
                state = self.insert(me, record, state);
                me.read_recorded(epoch);
            }
            _ => {
                let record = record(me, access, epoch);
                conflict = self.check(me, access, record);
                let rmw = op.access() == Access::Rmw;
                self.publish(me, op.scope(), release);
                state = self.insert(me, record, state);
                me.recorded(record.epoch());
                self.written(me, record, rmw, false);
            }
        }
        self.unlock(me.m, state);
        if may_acquire && !without(Edge::AcquiringAccess) {
            context |= conflict.map_or(0, |c| deferred_bits(c) | SURE);
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
            self.deferred(me, context, access)
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
        let mut state = self.lock(me.m);
        let mut conflict = None;
        if state & WideCell::DROPPED == 0 && !self.observed_by_another(me) {
            let record = record(me, access, me.epoch());
            conflict = self.check(me, access, record);
            state = self.insert(me, record, state);
            me.recorded(record.epoch());
        }
        self.unlock(me.m, state);
        conflict
    }

    #[inline]
    fn join_contexts(first: u64, other: u64) -> u64 {
        if outlasts(other, first) {
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
        let state = self.insert(me, nothing, state);
        me.read_recorded(nothing.epoch());
        self.unlock(me.m, state);
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

    /// Looks without the lock: a write that is here stays in its place until the cell says that it was replaced (`Wide::insert`).
    fn written_by_own_block<M: Machine>(self, me: State<M>) -> bool {
        let mut found = false;
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.load(me.m, slot);
            found |= self.is_own_block(me, record)
                && (record.writes() || record.op().is_attempt())
                && record.op().scope() != Scope::None
                && warp_of(record) != me.warp();
            slot += 1;
        }
        let state = me.m.load32(self.addr.wrapping_add(WideCell::STATE_WORD));
        found || state & (WideCell::DROPPED | WideCell::REPLACED) != 0
    }

    fn unreleased<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Prior> {
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.load(me.m, slot);
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
    fn word(self, slot: u32, word: u32) -> u64 {
        self.addr
            .wrapping_add((size_of::<WideRecord>() as u32 * slot + 4 * word) as u64)
    }

    #[inline]
    fn load<M: Machine>(self, m: M, slot: u32) -> WideRecord {
        WideRecord([
            m.load32(self.word(slot, 0)),
            m.load32(self.word(slot, 1)),
            m.load32(self.word(slot, 2)),
        ])
    }

    #[inline]
    fn store<M: Machine>(self, m: M, slot: u32, record: WideRecord) {
        m.store32(self.word(slot, 0), record.0[0]);
        m.store32(self.word(slot, 1), record.0[1]);
        m.store32(self.word(slot, 2), record.0[2]);
    }

    #[inline]
    fn sync<M: Machine>(self, m: M) -> SyncClock {
        SyncClock(m.load64_acquire(self.addr.wrapping_add(WideCell::SYNC)))
    }

    /// Takes the cell's lock; returns the state word without it.
    #[inline]
    fn lock<M: Machine>(self, m: M) -> u32 {
        let addr = self.addr.wrapping_add(WideCell::STATE_WORD);
        loop {
            let seen = m.load32(addr) & !WideCell::LOCKED;
            if m.cas32_acquire(addr, seen, seen | WideCell::LOCKED) == seen {
                return seen;
            }
            m.pause();
        }
    }

    #[inline]
    fn unlock<M: Machine>(self, m: M, state: u32) {
        m.store32_release(self.addr.wrapping_add(WideCell::STATE_WORD), state);
    }

    #[inline(never)]
    fn weak_recorded<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        record: WideRecord,
    ) -> Option<Conflict> {
        let state = self.lock(me.m);
        let conflict = self.check(me, access, record);
        if record.writes() {
            // Nobody can acquire a plain store; what happens before it can't be found any more.
            self.end_release_sequence(me);
        }
        let state = self.insert(me, record, state);
        me.recorded(if access.op.is_asynchronous() {
            me.epoch()
        } else {
            record.epoch()
        });
        if record.writes() {
            self.written(me, record, false, false);
        }
        self.unlock(me.m, state);
        conflict
    }

    /// Whether this warp has already made the same weak access at the same place in this epoch. Read without the lock: a torn record can only hide a check, and only while another thread replaces that very record.
    #[inline]
    fn has_same<M: Machine>(self, me: State<M>, new: WideRecord) -> bool {
        let m = me.m;
        let mut slot = 0;
        while slot < RECORDS {
            if m.load32(self.word(slot, 0)) == new.epoch() {
                let old = self.load(m, slot);
                if old.thread() == new.thread()
                    && old.mask() & new.mask() == new.mask()
                    && old.access() == new.access()
                    && old.op().scope() == Scope::None
                    && old.site() == new.site()
                    && (warp_of(old) == warp_of(new) || !me.tells_warps_apart())
                {
                    return true;
                }
            }
            slot += 1;
        }
        false
    }

    /// A record that the access conflicts with: the first, or of an access that acquires the one that is least likely to be
    /// ordered by what it acquires.
    fn check<M: Machine>(self, me: State<M>, access: Current, new: WideRecord) -> Option<Conflict> {
        let mut found: Option<Conflict> = None;
        let mut slot = 0;
        while slot < RECORDS {
            let old = self.load(me.m, slot);
            if old.mask() & new.mask() != 0
                && !old.is_empty()
                && !without(if old.writes() {
                    Edge::CheckWrite
                } else {
                    Edge::CheckReads
                })
                && (old.writes() || new.writes())
                && let Some(conflict) = self.conflict(me, old, access, new)
                && found.is_none_or(|kept| outlasts(deferred_bits(conflict), deferred_bits(kept)))
            {
                found = Some(conflict);
                if !access.op.order().acquires() {
                    return found;
                }
            }
            slot += 1;
        }
        found
    }

    fn conflict<M: Machine>(
        self,
        me: State<M>,
        old: WideRecord,
        access: Current,
        new: WideRecord,
    ) -> Option<Conflict> {
        let prior = prior_of(old);
        if self.is_before(me, old) {
            return self.stale(me, prior, access, old.mask() & new.mask());
        }
        let class = match class_of(me, prior, access.op.scope()) {
            Some(class) => class,
            // Strong, and the scopes reach: PTX still calls it a race unless the two overlap completely, element by element.
            None if old.op().size() != new.op().size() => RaceClass::MixedWidth,
            None => return None,
        };
        if self.forgives(me, old) {
            return None;
        }
        Some(Conflict {
            kind: kind_of(prior.op, access.op),
            class,
            prior,
            byte: (old.mask() & new.mask()).trailing_zeros(),
        })
    }

    /// A non-coherent load of what was written earlier in its own launch: the cache that it reads may hold the old value,
    /// whatever orders the two.
    fn stale<M: Machine>(
        self,
        me: State<M>,
        prior: Prior,
        access: Current,
        bytes: u32,
    ) -> Option<Conflict> {
        if !access.op.is_non_coherent()
            || prior.op.access() == Access::Load
            || !me.since_launch(prior.thread, prior.epoch)
        {
            return None;
        }
        Some(Conflict {
            kind: RaceKind::Raw,
            class: RaceClass::StaleNc,
            prior,
            byte: bytes.trailing_zeros(),
        })
    }

    /// Whether the strong access that another one conflicts with has been observed by this thread, or by one whose read
    /// happens before what it does now. (What one thread of a block has seen of other blocks counts for all of it.) Where records were dropped, nobody can tell any more.
    fn forgives<M: Machine>(self, me: State<M>, old: WideRecord) -> bool {
        if without(Edge::Observed) {
            return false;
        }
        // Block scope reaches observers in the same block only.
        let reaches = covers(me, old.op().scope(), old.thread());
        let m = me.m;
        let state = m.load32(self.addr.wrapping_add(WideCell::STATE_WORD));
        if reaches && state & WideCell::DROPPED != 0 {
            return true;
        }
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.load(m, slot);
            let observed = record.is_observed() || (old.was_observed() && record.was_observed());
            if observed
                && (reaches
                    || old.writes()
                        && old.op().scope() != Scope::None
                        && record.thread() == old.thread())
                && (record.thread() != old.thread()
                    || warp_of(record) != warp_of(old)
                    || self.is_mine(me, record))
                && (self.is_before(me, record)
                    || self.is_own_block(me, record) && !self.is_own_block(me, old))
            {
                return true;
            }
            slot += 1;
        }
        false
    }

    fn observed_by_another<M: Machine>(self, me: State<M>) -> bool {
        let mut found = false;
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.load(me.m, slot);
            found |= record.observation() != 0 && !self.is_mine(me, record);
            slot += 1;
        }
        found
    }

    /// Marks this thread's record as having observed the last write, if there is one.
    fn mark_observed<M: Machine>(self, me: State<M>) -> bool {
        let m = me.m;
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.load(m, slot);
            if self.is_mine(me, record) && record.op().scope() != Scope::None {
                if !record.is_observed() {
                    let addr = self.word(slot, 2);
                    // A record that has just been replaced stays as it is.
                    m.cas32_acquire(addr, record.0[2], record.0[2] | WideRecord::OBSERVED);
                }
                return true;
            }
            slot += 1;
        }
        false
    }

    /// Whether this warp made it.
    #[inline]
    fn is_mine<M: Machine>(self, me: State<M>, record: WideRecord) -> bool {
        self.is_own_block(me, record) && (warp_of(record) == me.warp() || !me.tells_warps_apart())
    }

    #[inline]
    fn is_own_block<M: Machine>(self, me: State<M>, record: WideRecord) -> bool {
        !record.is_empty()
            && record.thread() == me.thread_id()
            && record.epoch() >= me.start_epoch()
    }

    /// Whether what this thread does now comes after it.
    #[inline]
    fn is_before<M: Machine>(self, me: State<M>, record: WideRecord) -> bool {
        me.happened_before(record.thread(), record.epoch(), warp_of(record))
    }

    /// Adds a record: in place of those that it implies, or in a free place, or in one that the sampling picks. Returns the
    /// new state word.
    ///
    /// Of the plain reads of one block's warps two are enough: whoever races with an older one races with one of the two.
    ///
    /// Others may look for their block's writes meanwhile, without the lock: a write of this warp takes the place of its own,
    /// and before another's record goes the cell says that it was replaced.
    fn insert<M: Machine>(self, me: State<M>, new: WideRecord, state: u32) -> u32 {
        let m = me.m;
        let before = state;
        let mut place = RECORDS;
        let mut own_place = false;
        let mut implied = 0u32;
        let mut observed = 0;
        let mut siblings = 0;
        let mut oldest = WideRecord::default();
        let mut oldest_slot = RECORDS;
        let mut overtaken = RECORDS;
        let mut state = state;
        let mut slot = 0;
        while slot < RECORDS {
            let old = self.load(m, slot);
            if old.is_empty() {
                if place == RECORDS {
                    place = slot;
                }
            } else if self.reads_from(me, new, old) {
                overtaken = slot;
            }
            if !old.is_empty()
                && implies(new, old)
                && (new.writes() || new.op().scope() != Scope::None || old.observation() == 0)
            {
                if self.is_before(me, old)
                    || (old.writes() && new.op().scope() == Scope::None && self.forgives(me, old))
                {
                    if self.is_own_block(me, old) {
                        observed |= old.observation();
                    }
                    if old.writes() && old.op().scope() != Scope::None && !self.is_mine(me, old) {
                        // Its own block's warps may look for it, this one among them.
                        state |= WideCell::REPLACED;
                    }
                    implied |= 1 << slot;
                    let own = self.is_mine(me, old) && (old.writes() || old.op().is_attempt());
                    if implied.is_power_of_two() || own && !own_place {
                        place = slot;
                        own_place |= own;
                    }
                } else if !new.writes()
                    && new.op().scope() == Scope::None
                    && self.is_own_block(me, old)
                {
                    siblings += 1;
                    if oldest.is_empty() || old.epoch() < oldest.epoch() {
                        (oldest, oldest_slot) = (old, slot);
                    }
                }
            }
            slot += 1;
        }
        if siblings >= 2 {
            implied |= 1 << oldest_slot;
            if place == RECORDS {
                place = oldest_slot;
            }
        }
        if !new.writes() && state & 0xffff < 0xffff {
            state += 1;
        }
        if place == RECORDS {
            // Whoever comes after the new one comes after this one, too: nothing is lost but whose block wrote.
            place = overtaken;
            if place < RECORDS {
                state |= WideCell::REPLACED;
            }
        }
        if place == RECORDS {
            place = self.victim(me, new, state & 0xffff);
            let lost = if place < RECORDS {
                self.load(m, place)
            } else {
                new
            };
            if lost.op().scope() != Scope::None || lost.observation() | observed != 0 {
                state |= WideCell::DROPPED;
            }
        }
        if state & !before & (WideCell::DROPPED | WideCell::REPLACED) != 0 {
            let word = self.addr.wrapping_add(WideCell::STATE_WORD);
            m.store32(word, state | WideCell::LOCKED);
            m.fence(Scope::Gpu);
        }
        if place < RECORDS {
            self.store(m, place, new.with_observation(observed));
        }
        slot = 0;
        while slot < RECORDS {
            if implied & 1 << slot != 0 && slot != place {
                self.store(m, slot, WideRecord::default());
            }
            slot += 1;
        }
        state
    }

    /// Whether the new access is an atomic that has observed the old write: PTX's causality order has the old one before the
    /// new one then, whatever their own orders are.
    #[inline]
    fn reads_from<M: Machine>(self, me: State<M>, new: WideRecord, old: WideRecord) -> bool {
        let (n, o) = (new.op(), old.op());
        new.writes()
            && matches!(n.access(), Access::Rmw | Access::Cas)
            && old.writes()
            && o.scope() != Scope::None
            && (n.size(), new.mask()) == (o.size(), old.mask())
            && covers(me, n.scope(), old.thread())
            && covers(me, o.scope(), old.thread())
    }

    /// Which record makes room. Writers stay: a reader takes a reader's place as reservoir sampling has it, or none.
    fn victim<M: Machine>(self, me: State<M>, new: WideRecord, num_reads: u32) -> u32 {
        let m = me.m;
        let counter = m.add32(field!(me.addr, ThreadState, num_reads), 1);
        let seed = m.load32(field!(me.global, GlobalState, seed));
        let mut readers = 0;
        let mut slot = 0;
        while slot < RECORDS {
            readers += !self.load(m, slot).writes() as u32;
            slot += 1;
        }
        let range = if new.writes() {
            readers.max(1)
        } else {
            num_reads.max(1)
        };
        let pick = sampling::below(range, counter, me.thread_id(), seed);
        let mut nth = 0;
        let mut slot = 0;
        while slot < RECORDS {
            let is_reader = !self.load(m, slot).writes();
            if is_reader || (new.writes() && readers == 0) {
                if nth == pick {
                    return slot;
                }
                nth += 1;
            }
            slot += 1;
        }
        RECORDS
    }

    /// After a write: nobody else has observed it; the writer has all that it had before, and has observed what came
    /// before if it read in the same step. What somebody had observed stays marked, and so does who had. After the
    /// instruction (`late`) whoever has observed may have observed this very write.
    fn written<M: Machine>(self, me: State<M>, write: WideRecord, reads: bool, late: bool) {
        let m = me.m;
        let mut any = false;
        let mut by_another = false;
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.load(m, slot);
            any |= record.is_observed();
            by_another |= record.is_observed() && !self.is_mine(me, record);
            slot += 1;
        }
        slot = 0;
        while slot < RECORDS {
            let record = self.load(m, slot);
            let mut bits = record.observation();
            if self.is_mine(me, record) {
                if reads && record.op().scope() != Scope::None {
                    bits |= WideRecord::OBSERVED;
                }
                if by_another && record.writes() && record.with_observation(0) != write {
                    bits |= WideRecord::WAS_OBSERVED;
                }
            } else {
                if any && (record.is_observed() || record.writes()) {
                    bits |= WideRecord::WAS_OBSERVED;
                }
                if !late {
                    bits &= !WideRecord::OBSERVED;
                }
            }
            let new = record.with_observation(bits);
            if !record.is_empty() && new != record {
                m.store32(self.word(slot, 2), new.0[2]);
            }
            slot += 1;
        }
    }

    /// What a strong write publishes: its own release joined with the one that it overwrites; without a release the earlier
    /// one stays as it is. (A store ends others' release sequences, but a reader may have found the value before, and look
    /// for its token only now.)
    fn publish<M: Machine>(self, me: State<M>, scope: Scope, release: &mut Option<Release>) {
        let m = me.m;
        let old = self.sync(m);
        let addr = self.addr.wrapping_add(WideCell::SYNC);
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
    fn end_release_sequence<M: Machine>(self, me: State<M>) {
        let old = self.sync(me.m);
        if !old.is_empty()
            && let Lookup::Found(p) = me.lookup(old.thread(), old.token())
        {
            let epoch = p.epoch();
            if p.intact() && me.inherited(old.thread(), epoch) {
                me.m.store64_release(self.addr.wrapping_add(WideCell::SYNC), 0);
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

    /// The conflict that [`deferred_bits`] names.
    fn deferred<M: Machine>(self, me: State<M>, context: u64, access: Current) -> Option<Conflict> {
        let epoch = context as u32;
        if epoch == 0 {
            return None;
        }
        let thread = (context >> 32) as u32 & 0xffff;
        let linear = (context >> 48) as u32 & 0x3ff;
        let class = match context >> CLASS & 7 {
            1 => RaceClass::ScopeTooNarrow,
            2 => RaceClass::MissingAcquire,
            3 => RaceClass::MissingRelease,
            4 => RaceClass::MixedWidth,
            6 => RaceClass::IntraBlock,
            _ => RaceClass::Race,
        };
        let did = if context & WROTE != 0 {
            Access::Store
        } else {
            Access::Load
        };
        let mut prior = Prior {
            thread,
            epoch,
            op: Op::new(did, 0, Order::Weak, Scope::None),
            site: None,
            linear: Some(linear),
        };
        // Its record has more, if it is still there.
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.load(me.m, slot);
            if (record.thread(), record.epoch(), record.linear()) == (thread, epoch, linear)
                && record.mask() & access.mask != 0
                && record.writes() == (did == Access::Store)
            {
                prior = prior_of(record);
            }
            slot += 1;
        }
        Some(Conflict {
            kind: kind_of(prior.op, access.op),
            class,
            prior,
            byte: access.mask.trailing_zeros() & 3,
        })
    }

    /// A compare-and-swap has written.
    #[inline(never)]
    fn committed<M: Machine>(self, me: State<M>, access: Current, context: u64) {
        let mut state = self.lock(me.m);
        // Whoever came between the two hooks was checked against the read that the first one recorded.
        let epoch = if context & OFFERED == 0 {
            me.epoch()
        } else {
            self.published_epoch(me)
        };
        let record = record(me, access, epoch);
        state = self.insert(me, record, state);
        me.recorded(epoch);
        self.written(me, record, true, true);
        self.unlock(me.m, state);
    }
}

/// Set in a compare-and-swap's context when it has offered a release.
const OFFERED: u64 = 1 << 63;
/// The deferred conflict is one whether or not a compare-and-swap writes.
const SURE: u64 = 1 << 62;
/// What the deferred conflict is with is a write.
const WROTE: u64 = 1 << 61;
/// Where the deferred conflict's class stands.
const CLASS: u32 = 58;

/// Whether the first context's conflict is the better one to keep until the access has acquired: it is one for certain, with
/// another block (whose own warps a strong read orders at once), or with what the same thread did later.
fn outlasts(one: u64, other: u64) -> bool {
    let intra = |context: u64| context >> CLASS & 7 == RaceClass::IntraBlock as u64;
    let thread = |context: u64| context >> 32 & 0xffff;
    if one as u32 == 0 || other as u32 == 0 {
        other as u32 == 0
    } else if (one ^ other) & SURE != 0 {
        one & SURE != 0
    } else if intra(one) != intra(other) {
        intra(other)
    } else {
        thread(one) == thread(other) && one as u32 > other as u32
    }
}

/// A race that an access may turn out to have: the other side's epoch (bits 0–31), thread (32–47) and linear index (48–57),
/// between the two hooks.
fn deferred_bits(conflict: Conflict) -> u64 {
    let wrote = if conflict.prior.op.access() == Access::Load {
        0
    } else {
        WROTE
    };
    wrote
        | (conflict.class as u64 & 7) << CLASS
        | (conflict.prior.linear.unwrap_or(0) as u64 & 0x3ff) << 48
        | (conflict.prior.thread as u64 & 0xffff) << 32
        | conflict.prior.epoch as u64
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
