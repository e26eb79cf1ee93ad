//! What a `wide` cell holds, read in one go and worked on in registers: whom an access conflicts with, and what is kept of
//! it. Nothing here touches the cell's memory but [`Contents::load`] and [`Contents::store`].

use super::{RECORDS, implies, is_before, is_mine, is_own_block, prior_of, warp_of};
use crate::cell::{Conflict, Current, Prior, class_of, covers, kind_of};
use crate::clock::State;
use crate::layout::{Access, RaceClass, RaceKind, Scope, ThreadState, WideCell, WideRecord};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::sampling;
use crate::warps::WARP;
use core::mem::size_of;

/// A cell's records and its state word.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    records: [WideRecord; WideCell::RECORDS],
    /// The state word without the lock.
    pub state: u32,
    /// The record to store before others go.
    first: u32,
}

impl Contents {
    /// The records of the cell at `addr`, whose state word is `state`.
    #[inline(always)]
    pub fn load<M: Machine>(m: M, addr: u64, state: u32) -> Contents {
        let a = m.load32x4(addr);
        let b = m.load32x4(addr.wrapping_add(16));
        let c = m.load32x4(addr.wrapping_add(32));
        Contents {
            records: [
                WideRecord([a[0], a[1], a[2]]),
                WideRecord([a[3], b[0], b[1]]),
                WideRecord([b[2], b[3], c[0]]),
                WideRecord([c[1], c[2], c[3]]),
            ],
            state,
            first: 0,
        }
    }

    /// Stores what has changed since it was `before`; the cell is locked.
    ///
    /// Others may look for their block's writes meanwhile, without the lock: the new record is there before others go, and
    /// before another block's goes the cell says that it was replaced.
    #[inline]
    pub fn store<M: Machine>(&self, m: M, addr: u64, before: &Contents) {
        if self.state & !before.state & (WideCell::DROPPED | WideCell::REPLACED) != 0 {
            let word = addr.wrapping_add(WideCell::STATE_WORD);
            m.store32(word, self.state | WideCell::LOCKED);
            m.fence(Scope::Gpu);
        }
        let mut turn = 0;
        while turn < RECORDS {
            let slot = self.first.wrapping_add(turn) & (RECORDS - 1);
            let (new, old) = (self.record(slot).0, before.record(slot).0);
            let at = addr.wrapping_add((size_of::<WideRecord>() as u32 * slot) as u64);
            if new[0] != old[0] {
                m.store32(at, new[0]);
            }
            if new[1] != old[1] {
                m.store32(at.wrapping_add(4), new[1]);
            }
            if new[2] != old[2] {
                m.store32(at.wrapping_add(8), new[2]);
            }
            turn += 1;
        }
    }

    #[inline(always)]
    pub fn record(&self, slot: u32) -> WideRecord {
        // (An index that is always in bounds: there is no panic on a GPU.)
        self.records[(slot & (RECORDS - 1)) as usize]
    }

    /// Which of the records in the mask `ask` come before what this thread does now ([`is_before`] of each, all asked for at once).
    #[inline(always)]
    pub fn before<M: Machine>(&self, me: State<M>, ask: u32) -> u32 {
        if ask == 0 {
            return 0;
        }
        let mut known = [0; RECORDS as usize];
        let view = me.view();
        macro_rules! each {
            ($step:ident) => {
                $step!(0);
                $step!(1);
                $step!(2);
                $step!(3);
            };
        }
        macro_rules! fetch {
            ($slot:literal) => {
                if ask & 1 << $slot != 0 {
                    known[$slot] = view.known(self.record($slot).thread());
                }
            };
        }
        each!(fetch);
        let mut before = 0;
        macro_rules! judge {
            ($slot:literal) => {
                let old = self.record($slot);
                if ask & 1 << $slot != 0
                    && view.is_before(known[$slot], old.thread(), old.epoch(), warp_of(old))
                {
                    before |= 1 << $slot;
                }
            };
        }
        each!(judge);
        before
    }

    #[inline]
    pub fn set(&mut self, slot: u32, record: WideRecord) {
        self.records[(slot & (RECORDS - 1)) as usize] = record;
    }

    /// Whether this warp has already made the same weak access at the same place in this epoch. Of contents that were read without the lock: a torn record can only hide a check, and only while another thread replaces that very record.
    #[inline(always)]
    pub fn has_same<M: Machine>(&self, me: State<M>, new: WideRecord) -> bool {
        let same = |old: WideRecord| {
            old.epoch() == new.epoch()
                && old.thread() == new.thread()
                && old.mask() & new.mask() == new.mask()
                && old.access() == new.access()
                && old.op().scope() == Scope::None
                && old.site() == new.site()
                && (warp_of(old) == warp_of(new) || !me.tells_warps_apart())
        };
        same(self.record(0)) || same(self.record(1)) || same(self.record(2)) || same(self.record(3))
    }

    /// Whether a plain read changes nothing in the cell at `addr` but its count: no record is of a write to its bytes, none
    /// makes room, and the sampling does not pick it. Of contents that were read without the lock, like [`Contents::has_same`].
    #[inline(always)]
    pub fn passes<M: Machine>(&self, me: State<M>, new: WideRecord, addr: u64) -> bool {
        if new.writes() || self.state & WideCell::LOCKED != 0 {
            return false;
        }
        let mut readers = 0;
        let mut implied = 0;
        macro_rules! look {
            ($($slot:literal)*) => {$(
                let old = self.record($slot);
                if old.is_empty() || (old.writes() && old.mask() & new.mask() != 0) {
                    return false;
                }
                readers += !old.writes() as u32;
                if implies(new, old) && old.observation() == 0 {
                    implied |= 1 << $slot;
                }
            )*};
        }
        look!(0 1 2 3);
        if self.before(me, implied) != 0 {
            return false;
        }
        let (mut siblings, mut equal) = (0, 0);
        macro_rules! look {
            ($($slot:literal)*) => {$(
                let old = self.record($slot);
                if implied & 1 << $slot != 0 && is_own_block(me, old) {
                    siblings += 1;
                    equal += (old.epoch() == new.epoch() && old.mask() == new.mask()) as u32;
                }
            )*};
        }
        look!(0 1 2 3);
        if siblings >= 2 {
            // Two of the block's warps in the same epoch are as good as any other two.
            return equal >= 2;
        }
        self.pick(me, addr) >= readers
    }

    /// Which reader's place the next read takes, if there are so many.
    #[inline(always)]
    pub fn pick<M: Machine>(&self, me: State<M>, addr: u64) -> u32 {
        let reads = counted(self.state) & READS;
        draw(me, addr, reads).checked_rem(reads).unwrap_or(0)
    }

    /// A record that the access conflicts with: the first, or of an access that acquires the one that is least likely to be
    /// ordered by what it acquires.
    pub fn check<M: Machine>(
        &self,
        me: State<M>,
        access: Current,
        new: WideRecord,
    ) -> Option<Conflict> {
        let mut found: Option<Conflict> = None;
        let mut slot = 0;
        while slot < RECORDS {
            let old = self.record(slot);
            if old.mask() & new.mask() != 0
                && !old.is_empty()
                && !without(if old.writes() {
                    Edge::CheckWrite
                } else {
                    Edge::CheckReads
                })
                && (old.writes() || new.writes())
                && let Some(conflict) = self.conflict(me, old, access, new)
                && found.is_none_or(|kept| {
                    super::deferred::outlasts(
                        super::deferred::bits(conflict),
                        super::deferred::bits(kept),
                    )
                })
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
        &self,
        me: State<M>,
        old: WideRecord,
        access: Current,
        new: WideRecord,
    ) -> Option<Conflict> {
        let prior = prior_of(old);
        if is_before(me, old) {
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
        &self,
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
    fn forgives<M: Machine>(&self, me: State<M>, old: WideRecord) -> bool {
        if without(Edge::Observed) {
            return false;
        }
        // Block scope reaches observers in the same block only.
        let reaches = covers(me, old.op().scope(), old.thread());
        if reaches && self.state & WideCell::DROPPED != 0 {
            return true;
        }
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.record(slot);
            let observed = record.is_observed() || (old.was_observed() && record.was_observed());
            if observed
                && (reaches
                    || old.writes()
                        && old.op().scope() != Scope::None
                        && record.thread() == old.thread())
                && (record.thread() != old.thread()
                    || warp_of(record) != warp_of(old)
                    || is_mine(me, record))
                && (is_before(me, record) || is_own_block(me, record) && !is_own_block(me, old))
            {
                return true;
            }
            slot += 1;
        }
        false
    }

    pub fn observed_by_another<M: Machine>(&self, me: State<M>) -> bool {
        let mut found = false;
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.record(slot);
            found |= record.observation() != 0 && !is_mine(me, record);
            slot += 1;
        }
        found
    }

    /// Adds a record: in place of those that it implies, or in a free place, or in one that the sampling picks. `addr` is the cell's.
    ///
    /// Of the plain reads of one block's warps two are enough: whoever races with an older one races with one of the two.
    ///
    /// Others may look for their block's writes without the lock ([`Contents::store`]): a write of this warp takes the place
    /// of its own.
    pub fn insert<M: Machine>(&mut self, me: State<M>, new: WideRecord, addr: u64) {
        let mut place = RECORDS;
        let mut own_place = false;
        let mut implied = 0u32;
        let mut observed = 0;
        let mut siblings = 0;
        let mut oldest = WideRecord::default();
        let mut oldest_slot = RECORDS;
        let mut overtaken = RECORDS;
        let mut state = self.state;
        let mut slot = 0;
        while slot < RECORDS {
            let old = self.record(slot);
            if old.is_empty() {
                if place == RECORDS {
                    place = slot;
                }
            } else if reads_from(me, new, old) {
                overtaken = slot;
            }
            if !old.is_empty()
                && implies(new, old)
                && (new.writes() || new.op().scope() != Scope::None || old.observation() == 0)
            {
                if is_before(me, old)
                    || (old.writes() && new.op().scope() == Scope::None && self.forgives(me, old))
                {
                    if is_own_block(me, old) {
                        observed |= old.observation();
                    }
                    if old.writes() && old.op().scope() != Scope::None && !is_mine(me, old) {
                        // Its own block's warps may look for it, this one among them.
                        state |= WideCell::REPLACED;
                    }
                    implied |= 1 << slot;
                    let own = is_mine(me, old) && (old.writes() || old.op().is_attempt());
                    if implied.is_power_of_two() || own && !own_place {
                        place = slot;
                        own_place |= own;
                    }
                } else if !new.writes() && new.op().scope() == Scope::None && is_own_block(me, old)
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
        if !new.writes() {
            state = counted(state);
        }
        if place == RECORDS {
            // Whoever comes after the new one comes after this one, too: nothing is lost but whose block wrote.
            place = overtaken;
            if place < RECORDS {
                state |= WideCell::REPLACED;
            }
        }
        if place == RECORDS {
            place = self.victim(me, new, addr, state & READS);
            let lost = if place < RECORDS {
                self.record(place)
            } else {
                new
            };
            if lost.op().scope() != Scope::None || lost.observation() | observed != 0 {
                state |= WideCell::DROPPED;
            }
        }
        self.state = state;
        if place < RECORDS {
            self.first = place;
            self.set(place, new.with_observation(observed));
        }
        slot = 0;
        while slot < RECORDS {
            if implied & 1 << slot != 0 && slot != place {
                self.set(slot, WideRecord::default());
            }
            slot += 1;
        }
    }

    /// Which record makes room. Writers stay: a reader takes a reader's place as reservoir sampling has it, or none.
    fn victim<M: Machine>(&self, me: State<M>, new: WideRecord, addr: u64, reads: u32) -> u32 {
        let mut readers = 0;
        let mut slot = 0;
        while slot < RECORDS {
            readers += !self.record(slot).writes() as u32;
            slot += 1;
        }
        let range = if new.writes() { readers.max(1) } else { reads };
        let pick = draw(me, addr, reads).checked_rem(range).unwrap_or(0);
        let mut nth = 0;
        let mut slot = 0;
        while slot < RECORDS {
            let is_reader = !self.record(slot).writes();
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
    pub fn written<M: Machine>(
        &mut self,
        me: State<M>,
        write: WideRecord,
        reads: bool,
        late: bool,
    ) {
        let mut any = false;
        let mut by_another = false;
        let mut slot = 0;
        while slot < RECORDS {
            let record = self.record(slot);
            any |= record.is_observed();
            by_another |= record.is_observed() && !is_mine(me, record);
            slot += 1;
        }
        slot = 0;
        while slot < RECORDS {
            let record = self.record(slot);
            let mut bits = record.observation();
            if is_mine(me, record) {
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
                self.set(slot, new);
            }
            slot += 1;
        }
    }
}

/// Bits of the state word that count reads.
const READS: u32 = 0xffff;

/// The state word after one more read.
#[inline]
pub fn counted(state: u32) -> u32 {
    if state & READS < READS {
        state.wrapping_add(1)
    } else {
        state
    }
}

/// What the state word becomes when a read passes by ([`Contents::passes`]). Of many reads one in sixteen counts for all.
#[inline]
pub fn passed<M: Machine>(me: State<M>, addr: u64, state: u32) -> u32 {
    let reads = state & READS;
    if reads < EXACT {
        state.wrapping_add(1)
    } else if reads < READS - 16 && draw(me, addr, !reads) >> 28 == 0 {
        state.wrapping_add(16)
    } else {
        state
    }
}

/// Up to so many reads each is counted.
const EXACT: u32 = 16;

/// A number for the sampling: another one for each warp and each count of reads, the same whenever it is asked for. Words
/// beside each other share it, so that a warp's lanes go the same way.
#[inline]
fn draw<M: Machine>(me: State<M>, addr: u64, reads: u32) -> u32 {
    let seed = me.m.load32(field!(me.addr, ThreadState, seed));
    let reader = me.thread_id() ^ me.warp() << 16;
    let cells = (addr / (WARP as u64 * size_of::<WideCell>() as u64)) as u32;
    sampling::draw(cells ^ reads << 16, reader, seed)
}

/// Whether the new access is an atomic that has observed the old write: PTX's causality order has the old one before the
/// new one then, whatever their own orders are.
#[inline]
fn reads_from<M: Machine>(me: State<M>, new: WideRecord, old: WideRecord) -> bool {
    let (n, o) = (new.op(), old.op());
    new.writes()
        && matches!(n.access(), Access::Rmw | Access::Cas)
        && old.writes()
        && o.scope() != Scope::None
        && (n.size(), new.mask()) == (o.size(), old.mask())
        && covers(me, n.scope(), old.thread())
        && covers(me, o.scope(), old.thread())
}
