//! The `reference` cell: what is known of one 4-byte word, in 24 bytes, as the classic GSan keeps it.
//!
//! Four sampled readers and the last writer, each a scalar clock; a release write's clock is a token for a whole
//! snapshot in the writer's ring. The cell can tell neither the bytes of a word nor the warps of a block apart, and
//! keeps no source line of an earlier access.
//!
//! Deviations from the classic tool, each of which only adds precision or order:
//! * A release clock names its write by epoch *and* its knowledge by snapshot. So a compare-and-swap can offer its
//!   release before it is known to succeed without counting as a write (an *attempt*).
//! * An access whose clock stands in the cell already is not checked again: nobody can have come between unseen,
//!   because whoever did was checked against that clock.
//! * Nothing aborts: a saturated epoch and an overwritten snapshot count as ordered, and are tallied.

use crate::cell::{
    Cell, Conflict, Current, Prior, Release, class_of, covers, implied_order, kind_of,
};
use crate::clock::{Lookup, Publication, State};
use crate::cluster::reach;
use crate::layout::{
    Access, Counters, Epoch, GlobalState, Op, RaceClass, RaceKind, ScalarClock, Scope, ShadowCell,
    ThreadState,
};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::sampling;
use crate::warps::ANY_WARP;
use core::mem::{offset_of, size_of};

/// A `reference` cell in memory.
#[derive(Clone, Copy)]
pub struct ReferenceCell {
    addr: u64,
}

impl Cell for ReferenceCell {
    const STRIDE: u64 = size_of::<ShadowCell>() as u64;

    #[inline]
    fn at(addr: u64) -> Self {
        ReferenceCell { addr }
    }

    #[inline]
    fn weak<M: Machine>(self, me: State<M>, access: Current) -> Option<Conflict> {
        if access.op.access() == Access::Load {
            self.weak_load(me)
        } else {
            self.weak_store(me)
        }
    }

    #[inline(never)]
    fn strong_before<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        release: &mut Option<Release>,
    ) -> (Option<Conflict>, u64) {
        let m = me.m;
        let op = access.op;
        let scope = reach(m, op.scope());
        let reads = op.access() != Access::Store;
        // An access that carries a release belongs to the epoch that it publishes: whoever acquires it is ordered after
        // the access itself, too.
        let epoch = release.map_or(me.epoch(), |r| r.epoch);
        let mut num_reads = self.lock(m);
        let old = self.write(m);
        let mut conflict = None;
        let mut context = 0;
        me.recorded(epoch);
        if reads {
            conflict = self.check_write(me, old, scope, RaceKind::Raw);
            num_reads = self.record_read(
                me,
                ScalarClock::access(epoch, me.thread_id(), scope),
                num_reads,
            );
        }
        match op.access() {
            Access::Store | Access::Rmw => {
                let war = self.check_reads(me, scope);
                conflict = conflict.or(war);
                if !reads {
                    conflict = conflict.or_else(|| self.check_write(me, old, scope, RaceKind::Waw));
                }
                // A store ends others' release sequences, but a reader may have found the value before, and look for its
                // token only now.
                let keep =
                    old.is_release() && (release.is_some() || !without(Edge::RelaxedRmwRepublish));
                let new = next_write(me, old, keep, epoch, scope, release);
                self.record_write(me, new, reads, false);
            }
            Access::Cas if release.is_some() && !without(Edge::CasOffer) => {
                let deferred = self.check_reads(me, scope);
                let attempt = offer(me, old, scope, release);
                m.store32_release(self.write_addr(), attempt.0);
                context = attempt.0 as u64 | deferred.map_or(0, deferred_bits);
            }
            _ => {}
        }
        self.unlock(m, num_reads);
        // What it conflicts with may be ordered before it by what it acquires.
        if op.order().acquires()
            && op.access() != Access::Store
            && !without(Edge::AcquiringAccess)
            && let Some(found) = conflict
        {
            context = context & ATTEMPT | deferred_bits(found);
            conflict = None;
        }
        (conflict, context)
    }

    #[inline(never)]
    fn settle<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        context: u64,
        success: bool,
    ) -> Option<Conflict> {
        let swaps = access.op.access() == Access::Cas;
        let mut conflict = None;
        if success || !swaps || context & WROTE != 0 {
            conflict = deferred_conflict(me, context, access.op);
        }
        if !swaps || !success {
            return conflict;
        }
        let m = me.m;
        let scope = reach(m, access.op.scope());
        let attempt = ScalarClock((context & ATTEMPT) as u32);
        let num_reads = self.lock(m);
        let old = self.write(m);
        if attempt.is_empty() {
            // Nothing was published, so nobody can be ordered after this write yet: checking now is exact.
            conflict = conflict
                .or_else(|| self.check_reads(me, scope))
                .or_else(|| self.check_write(me, old, scope, RaceKind::Waw));
            let new = next_write(me, old, old.is_release(), me.epoch(), scope, &mut None);
            self.record_write(me, new, true, true);
            me.recorded(me.epoch());
        } else if is_attempt(me, old, attempt)
            && let Lookup::Found(published) = me.find(old)
        {
            let epoch = published.entry(me.thread_id());
            published.commit(epoch, ScalarClock::access(0, me.thread_id(), scope));
            self.record_write(me, old, true, true);
        }
        // Otherwise somebody has written since. Either that write is ordered after this one, or its author was checked
        // against the read that was recorded before the instruction.
        self.unlock(m, num_reads);
        conflict
    }

    /// The offer is the same one in all words; a deferred race may be in any of them.
    #[inline]
    fn join_contexts(first: u64, other: u64) -> u64 {
        if first & DEFERRED == 0 || first & WROTE == 0 && other & WROTE != 0 {
            let attempt = if first & ATTEMPT != 0 { first } else { other };
            attempt & ATTEMPT | other & !ATTEMPT
        } else {
            first
        }
    }

    fn observe<M: Machine>(self, me: State<M>) {
        let m = me.m;
        let write = self.write(m);
        let id = me.thread_id();
        // What was read may be the value of a compare-and-swap whose second hook is still to come.
        if !write.is_empty() && is_own(me, write) && !may_be_anothers(me, write) {
            return;
        }
        let mut slot = 0;
        while slot < ShadowCell::READS as u32 {
            let addr = self.read_addr(slot);
            let read = ScalarClock(m.load32(addr));
            if !read.is_empty() && read.thread() == id {
                if !read.is_observed() {
                    // A clock that has just been replaced stays as it is.
                    let bits = ScalarClock::OBSERVED | ScalarClock::HAS_OBSERVED;
                    m.cas32_acquire(addr, read.0, read.0 | bits);
                }
                return;
            }
            slot += 1;
        }
    }

    #[inline]
    fn acquirable<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Lookup<M>> {
        let clock = self.write(me.m);
        if clock.is_release()
            && covers(me, clock.scope(), clock.thread())
            && covers(me, scope, clock.thread())
        {
            Some(me.find(clock))
        } else {
            None
        }
    }

    /// The format does not keep warps: a block is one thread.
    fn written_by_own_block<M: Machine>(self, _: State<M>) -> bool {
        false
    }

    fn unreleased<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Prior> {
        let clock = self.write(me.m);
        let other = !clock.is_empty() && !clock.is_release() && clock.thread() != me.thread_id();
        if other && covers(me, clock.scope(), clock.thread()) && covers(me, scope, clock.thread()) {
            Some(prior_of(clock, clock.epoch(), Access::Store))
        } else {
            None
        }
    }

    #[inline(never)]
    fn sync_before<M: Machine>(self, me: State<M>, scope: Scope, release: &mut Option<Release>) {
        if release.is_none() || without(Edge::SyncCells) {
            return;
        }
        let m = me.m;
        let num_reads = self.lock(m);
        let old = self.write(m);
        let scope = if old.is_release() && old.scope() > scope {
            old.scope()
        } else {
            scope
        };
        let epoch = release.map_or(me.epoch(), |r| r.epoch);
        let new = next_write(me, old, old.is_release(), epoch, scope, release);
        m.store32_release(self.write_addr(), new.0);
        self.unlock(m, num_reads);
    }
}

impl ReferenceCell {
    #[inline]
    fn read_addr(self, slot: u32) -> u64 {
        self.addr.wrapping_add(4 * slot as u64)
    }

    #[inline]
    fn write_addr(self) -> u64 {
        self.addr.wrapping_add(ShadowCell::WRITE)
    }

    #[inline]
    fn write<M: Machine>(self, m: M) -> ScalarClock {
        ScalarClock(m.load32_acquire(self.write_addr()))
    }

    /// Takes the cell's lock; returns the number of reads and [`ShadowCell::DROPPED`].
    #[inline]
    fn lock<M: Machine>(self, m: M) -> u32 {
        let addr = self.addr.wrapping_add(ShadowCell::LOCK_WORD);
        loop {
            let seen = m.load32(addr) & !ShadowCell::LOCKED;
            if m.cas32_acquire(addr, seen, seen | ShadowCell::LOCKED) == seen {
                return seen;
            }
            m.pause();
        }
    }

    #[inline]
    fn unlock<M: Machine>(self, m: M, num_reads: u32) {
        m.store32_release(self.addr.wrapping_add(ShadowCell::LOCK_WORD), num_reads);
    }

    /// A weak load: RAW check, then the read is recorded.
    #[inline]
    fn weak_load<M: Machine>(self, me: State<M>) -> Option<Conflict> {
        let m = me.m;
        let clock = ScalarClock::access(me.epoch(), me.thread_id(), Scope::None);
        if self.holds_read(m, clock)
            && self
                .check_write(me, self.write(m), Scope::None, RaceKind::Raw)
                .is_none()
        {
            return None;
        }
        let num_reads = self.lock(m);
        let conflict = self.check_write(me, self.write(m), Scope::None, RaceKind::Raw);
        let num_reads = self.record_read(me, clock, num_reads);
        me.recorded(me.epoch());
        self.unlock(m, num_reads);
        conflict
    }

    /// A weak store: WAR and WAW checks, then the write is recorded.
    #[inline]
    fn weak_store<M: Machine>(self, me: State<M>) -> Option<Conflict> {
        let m = me.m;
        let clock = ScalarClock::access(me.epoch(), me.thread_id(), Scope::None);
        if self.write(m) == clock && clock.epoch() != ScalarClock::SATURATED {
            return None;
        }
        let num_reads = self.lock(m);
        let conflict = self
            .check_reads(me, Scope::None)
            .or_else(|| self.check_write(me, self.write(m), Scope::None, RaceKind::Waw));
        self.record_write(me, clock, false, false);
        me.recorded(me.epoch());
        self.unlock(m, num_reads);
        conflict
    }

    /// Stores the new last write. Readers have not observed it, except the writer itself if it read in the same step. After
    /// the instruction (`late`) whoever has observed may have observed this very write.
    fn record_write<M: Machine>(self, me: State<M>, new: ScalarClock, reads: bool, late: bool) {
        let m = me.m;
        let id = me.thread_id();
        let mut slot = 0;
        while slot < ShadowCell::READS as u32 {
            let read = ScalarClock(m.load32(self.read_addr(slot)));
            let own = read.thread() == id && is_of_tenancy(me, read.epoch());
            let new = if read.is_empty() {
                0
            } else if own && reads {
                read.0 | ScalarClock::OBSERVED | ScalarClock::HAS_OBSERVED
            } else if late {
                read.0
            } else {
                read.0 & !ScalarClock::OBSERVED
            };
            if new != read.0 {
                m.store32(self.read_addr(slot), new);
            }
            slot += 1;
        }
        m.store32_release(self.write_addr(), new.0);
    }

    /// Whether this thread, or one whose read happens before what it does now, has observed what `bit` says. Where such a
    /// reader was dropped, nobody can tell any more.
    fn has_observed<M: Machine>(self, me: State<M>, bit: u32) -> bool {
        let state = me.m.load32(self.addr.wrapping_add(ShadowCell::LOCK_WORD));
        if state & ShadowCell::DROPPED != 0 {
            return true;
        }
        let mut slot = 0;
        while slot < ShadowCell::READS as u32 {
            let read = ScalarClock(me.m.load32(self.read_addr(slot)));
            if read.0 & bit != 0 && ordered_epoch(me, read.thread(), read.epoch()) {
                return true;
            }
            slot += 1;
        }
        false
    }

    #[inline]
    fn holds_read<M: Machine>(self, m: M, clock: ScalarClock) -> bool {
        let mut slot = 0;
        while slot < ShadowCell::READS as u32 {
            if ScalarClock(m.load32(self.read_addr(slot))).plain() == clock {
                return clock.epoch() != ScalarClock::SATURATED;
            }
            slot += 1;
        }
        false
    }

    #[inline(never)]
    fn check_reads<M: Machine>(self, me: State<M>, scope: Scope) -> Option<Conflict> {
        let mut slot = 0;
        while slot < ShadowCell::READS as u32 {
            let read = ScalarClock(me.m.load32(self.read_addr(slot)));
            if !read.is_empty()
                && !without(Edge::CheckReads)
                && !ordered_epoch(me, read.thread(), read.epoch())
                && let Some(conflict) = conflict(
                    me,
                    read.plain(),
                    read.epoch(),
                    Access::Load,
                    scope,
                    RaceKind::War,
                )
                && !self.forgives(me, conflict)
            {
                return Some(conflict);
            }
            slot += 1;
        }
        None
    }

    /// The conflict of an access at `scope` with the recorded write, if the two are not ordered.
    #[inline]
    fn check_write<M: Machine>(
        self,
        me: State<M>,
        write: ScalarClock,
        scope: Scope,
        kind: RaceKind,
    ) -> Option<Conflict> {
        if write.is_empty() || without(Edge::CheckWrite) {
            return None;
        }
        let found = if write.is_release() {
            check_release(me, write, scope, kind)
        } else if ordered_epoch(me, write.thread(), write.epoch()) {
            None
        } else {
            conflict(me, write, write.epoch(), Access::Store, scope, kind)
        };
        found.filter(|&conflict| !self.forgives(me, conflict))
    }

    /// Whether the strong access that another one conflicts with has been observed by this thread, or by one that
    /// happens before it. (A reader's clock may be a read-modify-write's, which later writes leave observed.)
    #[inline]
    fn forgives<M: Machine>(self, me: State<M>, conflict: Conflict) -> bool {
        let prior = conflict.prior;
        let bit = if prior.op.access() == Access::Load {
            ScalarClock::HAS_OBSERVED
        } else {
            ScalarClock::OBSERVED
        };
        !without(Edge::Observed)
            && covers(me, prior.op.scope(), prior.thread)
            && self.has_observed(me, bit)
    }

    /// Records a read: in the slot of the same thread or an empty one, else in one that the sampling picks.
    fn record_read<M: Machine>(self, me: State<M>, clock: ScalarClock, num_reads: u32) -> u32 {
        let m = me.m;
        let counted = if num_reads & 0xffff < 0xffff {
            num_reads + 1
        } else {
            num_reads
        };
        let mut slot = 0;
        while slot < ShadowCell::READS as u32 {
            let read = ScalarClock(m.load32(self.read_addr(slot)));
            if read.is_empty() || read.thread() == clock.thread() {
                let own = !read.is_empty() && is_of_tenancy(me, read.epoch());
                let observed = if own {
                    read.0 & (ScalarClock::OBSERVED | ScalarClock::HAS_OBSERVED)
                } else {
                    0
                };
                m.store32(self.read_addr(slot), clock.0 | observed);
                return counted;
            }
            slot += 1;
        }
        let counter = m.add32(field!(me.addr, ThreadState, num_reads), 1);
        let seed = m.load32(field!(me.global(), GlobalState, seed));
        let reads = num_reads & 0xffff;
        let mut lost = clock;
        if let Some(slot) = sampling::replaced_slot(counter, clock.thread(), seed, reads) {
            lost = ScalarClock(m.load32(self.read_addr(slot)));
            m.store32(self.read_addr(slot), clock.0);
        }
        if lost.scope() == Scope::None && lost == lost.plain() {
            counted
        } else {
            counted | ShadowCell::DROPPED
        }
    }
}

#[inline]
fn ordered_epoch<M: Machine>(me: State<M>, thread: u32, epoch: Epoch) -> bool {
    if epoch >= ScalarClock::SATURATED && !without(Edge::Saturated) {
        me.tally(offset_of!(Counters, saturated));
        return true;
    }
    me.happened_before(thread, epoch, ANY_WARP)
}

#[cold]
#[inline(never)]
fn check_release<M: Machine>(
    me: State<M>,
    write: ScalarClock,
    scope: Scope,
    kind: RaceKind,
) -> Option<Conflict> {
    let Lookup::Found(published) = me.find(write) else {
        me.tally(offset_of!(Counters, ring_wrap));
        return None;
    };
    let (mut epoch, mut event) = (published.epoch(), published.event());
    let mut ordered = epoch == 0 || me.happened_before(event.thread(), epoch, ANY_WARP);
    if ordered && published.joined() == 1 && event.thread() != me.thread_id() {
        // Earlier releases of the sequence were writes too: the whole of what they knew must be known here. What isn't is
        // named as the other side: it is one of them, or something that one of them knew.
        let mut i = 0;
        while i < me.num_threads() && ordered {
            let entry = published.entry(i);
            ordered = entry == 0 || me.happened_before(i, entry, ANY_WARP);
            if !ordered {
                epoch = entry;
                event = ScalarClock::access(0, i, event.scope());
            }
            i += 1;
        }
    }
    if ordered || !published.intact() {
        return None;
    }
    conflict(me, event, epoch, Access::Store, scope, kind)
}

/// Whether an epoch of the own slot is this tenant's, as far as the format can tell.
#[inline]
fn is_of_tenancy<M: Machine>(me: State<M>, epoch: Epoch) -> bool {
    epoch >= me.start_epoch() || epoch >= ScalarClock::SATURATED
}

/// Whether the word's value may yet be another thread's: the recorded write is the offer of a compare-and-swap, or joined with
/// a release whose instruction may come after it.
fn may_be_anothers<M: Machine>(me: State<M>, write: ScalarClock) -> bool {
    write.is_release() && matches!(me.find(write), Lookup::Found(p) if p.joined() != 0)
}

/// Whether a recorded write is this tenant's.
#[inline]
fn is_own<M: Machine>(me: State<M>, write: ScalarClock) -> bool {
    if write.thread() != me.thread_id() {
        return false;
    }
    if !write.is_release() {
        return is_of_tenancy(me, write.epoch());
    }
    let first = me.m.load32(field!(me.addr, ThreadState, first_token));
    match me.find(write) {
        Lookup::Found(p) => p.token.wrapping_sub(first) as i32 > 0,
        Lookup::Overwritten { token, .. } => token.wrapping_sub(first) as i32 > 0,
    }
}

/// The conflict with an earlier access that is not ordered before this one at `scope`.
#[inline]
fn conflict<M: Machine>(
    me: State<M>,
    prior: ScalarClock,
    epoch: Epoch,
    access: Access,
    scope: Scope,
    kind: RaceKind,
) -> Option<Conflict> {
    let prior = prior_of(prior, epoch, access);
    let class = class_of(me, prior, scope)?;
    Some(Conflict {
        kind,
        class,
        prior,
        byte: 0,
    })
}

/// What a scalar clock says of an access: no size, no site, no thread within the block.
fn prior_of(clock: ScalarClock, epoch: Epoch, access: Access) -> Prior {
    let scope = clock.scope();
    Prior {
        thread: clock.thread(),
        epoch,
        op: Op::new(access, 0, implied_order(scope), scope),
        site: None,
        linear: None,
    }
}

/// In a context: the clock of a compare-and-swap's offer.
const ATTEMPT: u64 = (1 << 31) - 1;
/// In a context: what the deferred race is with is a write.
const WROTE: u64 = 1 << 31;
/// In a context: there is a deferred race.
const DEFERRED: u64 = 1 << 63;
/// In a context: its scopes are too narrow.
const NARROW: u64 = 1 << 62;

/// A race that an access may turn out to have, carried from one hook to the next: the other side's clock in the
/// context's upper half.
fn deferred_bits(conflict: Conflict) -> u64 {
    let prior = conflict.prior;
    let clock = ScalarClock::access(prior.epoch, prior.thread, prior.op.scope());
    let mut bits = DEFERRED | (clock.0 as u64) << 32;
    if conflict.class == RaceClass::ScopeTooNarrow {
        bits |= NARROW;
    }
    if prior.op.access() != Access::Load {
        bits |= WROTE;
    }
    bits
}

fn deferred_conflict<M: Machine>(me: State<M>, context: u64, op: Op) -> Option<Conflict> {
    if context & DEFERRED == 0 {
        return None;
    }
    let clock = ScalarClock(((context & !(DEFERRED | NARROW)) >> 32) as u32);
    let did = if context & WROTE != 0 {
        Access::Store
    } else {
        Access::Load
    };
    let prior = prior_of(clock, clock.epoch(), did);
    let class = if context & NARROW != 0 {
        RaceClass::ScopeTooNarrow
    } else {
        me.missing(prior.thread, prior.epoch, ANY_WARP)
    };
    Some(Conflict {
        kind: kind_of(prior.op, op),
        class,
        prior,
        byte: 0,
    })
}

/// The clock that a strong write leaves behind.
#[inline(never)]
fn next_write<M: Machine>(
    me: State<M>,
    old: ScalarClock,
    keep: bool,
    epoch: Epoch,
    scope: Scope,
    release: &mut Option<Release>,
) -> ScalarClock {
    let id = me.thread_id();
    if !keep && release.is_none() {
        return ScalarClock::access(epoch, id, scope);
    }
    let mut published_scope = scope;
    let mut join = None;
    let repeated =
        release.is_some_and(|r| r.token != 0 && old == ScalarClock::release(r.token, id, scope));
    if keep && !repeated && (release.is_none() || !without(Edge::JoinedRelease)) {
        let found = me.find(old);
        // The wider scope, so that neither release loses a reader.
        published_scope = old.scope().max(scope);
        let known = release.is_some_and(|r| !r.by_fence && me.includes(found, r.epoch));
        if !known {
            join = Some(found);
        }
    }
    if let (Some(r), None) = (*release, join)
        && r.token != 0
    {
        return ScalarClock::release(r.token, id, published_scope);
    }
    let token = me.publish(Publication {
        own: release.map(|r| r.epoch),
        join,
        epoch,
        event: ScalarClock::access(0, id, scope),
        attempt: false,
    });
    if join.is_none()
        && let Some(r) = release
    {
        r.token = token;
    }
    ScalarClock::release(token, id, published_scope)
}

/// The clock of a compare-and-swap that offers its release and may yet fail: the recorded write stays the old one.
#[inline(never)]
fn offer<M: Machine>(
    me: State<M>,
    old: ScalarClock,
    scope: Scope,
    release: &Option<Release>,
) -> ScalarClock {
    let mut epoch = old.epoch();
    let mut event = old;
    let mut join = None;
    let mut published_scope = scope;
    if old.is_release() {
        let found = me.find(old);
        published_scope = old.scope().max(scope);
        join = Some(found);
        match found {
            Lookup::Found(p) => (epoch, event) = (p.epoch(), p.event()),
            Lookup::Overwritten { .. } => epoch = 0,
        }
    } else if epoch >= ScalarClock::SATURATED {
        // Ordered, as far as anybody can tell.
        epoch = 0;
    }
    let token = me.publish(Publication {
        own: release.map(|r| r.epoch),
        join,
        epoch,
        event: ScalarClock::access(0, event.thread(), event.scope()),
        attempt: true,
    });
    ScalarClock::release(token, me.thread_id(), published_scope)
}

/// Whether a cell's clock is the attempt of the compare-and-swap whose first word got `first`: attempts of an access's
/// words follow one another in the ring.
#[inline]
fn is_attempt<M: Machine>(me: State<M>, clock: ScalarClock, first: ScalarClock) -> bool {
    clock.is_release()
        && clock.thread() == me.thread_id()
        && clock.epoch().wrapping_sub(first.epoch()) & 0xffff < MAX_ATTEMPTS
}

/// Words of one access, with room for what the block's other threads publish in between.
const MAX_ATTEMPTS: u32 = 64;
