//! Plain accesses: nearly all that a program makes, so what nearly all of them need is done in registers, with few visits to
//! the cell. Whatever is not simple ([`Simple`]) goes the general way, by [`Contents`].

use super::contents::{self, Contents};
use super::{RECORDS, Wide, implies, is_own_block, record};
use crate::cell::{Conflict, Current};
use crate::clock::State;
use crate::layout::{Epoch, Scope, ThreadState, WideCell, WideRecord};
use crate::machine::{Machine, field};
use core::mem::size_of;

impl Wide {
    /// A plain load or store: checked, then recorded.
    #[inline(always)]
    pub fn plain<M: Machine>(self, me: State<M>, access: Current) -> Option<Conflict> {
        let m = me.m;
        let new = record(me, access, me.epoch_of(access.op));
        let mut waits = false;
        loop {
            let state = m.load32(self.state_word());
            if waits && state & WideCell::LOCKED != 0 {
                m.pause();
                continue;
            }
            let seen = Contents::load(m, self.addr, state);
            if seen.has_same(me, new) {
                return None;
            }
            if seen.passes(me, new, self.addr) {
                let after = contents::passed(me, self.addr, state);
                if after != state {
                    m.cas32(self.state_word(), state, after);
                }
                return None;
            }
            // A lane beside this one may be about to record the very same: looked at again where the lock is not to be had.
            if state & WideCell::LOCKED == 0
                && m.cas32_acquire(self.state_word(), state, state | WideCell::LOCKED) == state
            {
                return self.plain_locked(me, access, new, state);
            }
            waits = true;
        }
    }

    #[inline(always)]
    fn plain_locked<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        new: WideRecord,
        state: u32,
    ) -> Option<Conflict> {
        let m = me.m;
        let last_record = field!(me.addr, ThreadState, last_record);
        let recorded = m.load32(last_record);
        if new.writes() && m.load64(self.sync_word()) != 0 {
            // Nobody can acquire a plain store; what happens before it can't be found any more.
            self.end_release_sequence(me);
        }
        let cell = Contents::load(m, self.addr, state);
        let Some(simple) = cell.simple(me, new, self.addr) else {
            return self.plain_in_general(me, access, new, state);
        };
        if simple.place < RECORDS {
            self.put(m, simple.place, new);
        }
        if simple.gone != 0 {
            self.clear(m, simple.gone);
        }
        let epoch = recorded_in(me, access, new);
        if recorded < epoch {
            m.max32(last_record, epoch);
        }
        let state = if new.writes() {
            state
        } else {
            contents::counted(state)
        };
        self.unlock(m, state);
        None
    }

    /// The cell is locked.
    #[inline(never)]
    fn plain_in_general<M: Machine>(
        self,
        me: State<M>,
        access: Current,
        new: WideRecord,
        state: u32,
    ) -> Option<Conflict> {
        let before = Contents::load(me.m, self.addr, state);
        let mut now = before;
        let conflict = now.check(me, access, new);
        now.insert(me, new, self.addr);
        me.recorded(recorded_in(me, access, new));
        if new.writes() {
            now.written(me, new, false, false);
        }
        now.store(me.m, self.addr, &before);
        self.unlock(me.m, now.state);
        conflict
    }

    #[inline(always)]
    fn put<M: Machine>(self, m: M, slot: u32, record: WideRecord) {
        let at = self
            .addr
            .wrapping_add((size_of::<WideRecord>() as u32).wrapping_mul(slot) as u64);
        m.store32(at, record.0[0]);
        m.store32(at.wrapping_add(4), record.0[1]);
        m.store32(at.wrapping_add(8), record.0[2]);
    }

    #[inline(never)]
    fn clear<M: Machine>(self, m: M, slots: u32) {
        let mut slot = 0;
        while slot < RECORDS {
            if slots & 1 << slot != 0 {
                self.put(m, slot, WideRecord::default());
            }
            slot += 1;
        }
    }
}

/// The epoch that the block has something on record in. (A `cp.async` is recorded ahead of its time.)
#[inline(always)]
fn recorded_in<M: Machine>(me: State<M>, access: Current, new: WideRecord) -> Epoch {
    if access.op.is_asynchronous() {
        me.epoch()
    } else {
        new.epoch()
    }
}

/// What becomes of the cell where a plain access conflicts with nothing and meets only plain ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Simple {
    /// Where its record goes; [`RECORDS`]: nowhere, the sampling has left it out.
    pub place: u32,
    /// A bit for each other record that it implies.
    pub gone: u32,
}

impl Contents {
    /// The outcome for a plain access, if it is simple: it is what `check`, `insert` and `written` come to. Each of the
    /// four records is asked once whether it comes before.
    #[inline(always)]
    pub fn simple<M: Machine>(&self, me: State<M>, new: WideRecord, addr: u64) -> Option<Simple> {
        let (mut empty, mut overlap, mut writes, mut strong, mut observed, mut implied) =
            (0u32, 0u32, 0u32, 0u32, 0u32, 0u32);
        macro_rules! look {
            ($($slot:literal)*) => {$(
                let old = self.record($slot);
                let bit = 1 << $slot;
                if old.is_empty() {
                    empty |= bit;
                } else {
                    overlap |= if old.mask() & new.mask() != 0 { bit } else { 0 };
                    writes |= if old.writes() { bit } else { 0 };
                    strong |= if old.op().scope() != Scope::None { bit } else { 0 };
                    observed |= if old.observation() != 0 { bit } else { 0 };
                    implied |= if implies(new, old) { bit } else { 0 };
                }
            )*};
        }
        look!(0 1 2 3);
        let conflicting = overlap & if new.writes() { !0 } else { writes };
        if new.op().is_non_coherent() && conflicting != 0 || new.writes() && observed != 0 {
            return None;
        }
        implied &= !observed;
        let before = self.before(me, conflicting | implied);
        let mut siblings = 0;
        macro_rules! count {
            ($($slot:literal)*) => {$(
                let other = (conflicting | implied) & !before & 1 << $slot;
                siblings += (other != 0 && is_own_block(me, self.record($slot))) as u32;
            )*};
        }
        count!(0 1 2 3);
        let mut gone = implied & before;
        if conflicting & !before != 0 || gone & strong != 0 || siblings >= 2 {
            return None;
        }
        // (A place among those that are implied, if there are any.)
        let free = if gone != 0 { gone } else { empty };
        let place = if free != 0 {
            free.trailing_zeros()
        } else if new.writes() {
            return None;
        } else {
            let mut readers = !writes & 15;
            let mut skip = self.pick(me, addr);
            while skip != 0 && readers != 0 {
                readers &= readers.wrapping_sub(1);
                skip = skip.wrapping_sub(1);
            }
            if readers & readers.wrapping_neg() & (strong | observed) != 0 {
                return None;
            }
            readers.trailing_zeros().min(RECORDS)
        };
        gone &= !(1 << place);
        Some(Simple { place, gone })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::block;
    use crate::detector;
    use crate::host::{Device, Host, Shape};
    use crate::layout::{Access, Op, Order};
    use std::vec::Vec;

    /// Small random numbers (Marsaglia's xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % n
        }
    }

    fn sorted(contents: &Contents) -> Vec<[u32; 3]> {
        let mut records: Vec<_> = (0..RECORDS).map(|slot| contents.record(slot).0).collect();
        records.sort_unstable();
        records
    }

    /// What a simple outcome makes of the cell.
    fn applied(before: &Contents, new: WideRecord, simple: Simple) -> Contents {
        let mut after = *before;
        if simple.place < RECORDS {
            after.set(simple.place, new);
        }
        for slot in (0..RECORDS).filter(|slot| simple.gone & 1 << slot != 0) {
            after.set(slot, WideRecord::default());
        }
        if !new.writes() {
            after.state = contents::counted(after.state);
        }
        after
    }

    /// What was seen of the ways an access can go.
    #[derive(Default)]
    struct Seen {
        passed: u32,
        placed: u32,
        cleared: u32,
        left_out: u32,
        general: u32,
    }

    fn compare(me: State<Host>, device: &Device, op: Op, offset: u64, seen: &mut Seen) {
        let cell = Wide {
            addr: device.cell_at(0),
        };
        let access = Current {
            op,
            site: 1,
            mask: ((1 << op.size()) - 1) << offset,
        };
        let new = record(me, access, me.epoch());
        let state = me.m.load32(cell.state_word());
        let before = Contents::load(me.m, cell.addr, state);
        let mut general = before;
        let conflict = general.check(me, access, new);
        general.insert(me, new, cell.addr);
        if new.writes() {
            general.written(me, new, false, false);
        }
        if !before.has_same(me, new) && before.passes(me, new, cell.addr) {
            seen.passed += 1;
            assert_eq!(conflict, None, "{before:x?} {new:x?}");
            // Of two of the block's warps in this epoch the general way takes the newer one.
            let epochs = |c: &Contents| {
                let mut epochs: Vec<_> = (0..RECORDS)
                    .map(|slot| (c.record(slot).thread(), c.record(slot).epoch()))
                    .collect();
                epochs.sort_unstable();
                epochs
            };
            assert_eq!(epochs(&general), epochs(&before), "{before:x?} {new:x?}");
        }
        let Some(simple) = before.simple(me, new, cell.addr) else {
            seen.general += 1;
            return;
        };
        seen.placed += u32::from(simple.place < RECORDS);
        seen.left_out += u32::from(simple.place == RECORDS);
        seen.cleared += u32::from(simple.gone != 0);
        let after = applied(&before, new, simple);
        assert_eq!(conflict, None, "{before:x?} {new:x?}");
        assert_eq!(sorted(&after), sorted(&general), "{before:x?} {new:x?}");
        assert_eq!(after.state, general.state, "{before:x?} {new:x?}");
    }

    /// Random programs on one word: wherever the short way is taken, it comes to what the general one does.
    #[test]
    fn the_short_way_comes_to_what_the_general_one_does() {
        let mut seen = Seen::default();
        for seed in 1..400 {
            let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
            let device = Device::new(Shape {
                num_sms: 8,
                slots_per_sm: 1,
                cell: size_of::<WideCell>() as u64,
                ..Shape::default()
            });
            for launch in 0..3 {
                let record = device.launch(launch, 0, 1);
                let blocks = 1 + random.below(8) as u32;
                let warps: Vec<[Host; 3]> = (0..blocks)
                    .map(|b| {
                        let warps = [0, 32, 64]
                            .map(|thread| device.thread(u64::from(launch), b, b, thread, 96));
                        block::enter(warps[0], record);
                        warps
                    })
                    .collect();
                for _ in 0..60 {
                    let block = random.below(u64::from(blocks)) as usize;
                    let host = warps[block][random.below(3) as usize];
                    let me = State::at(host, block::state(host));
                    step(&mut random, &device, me, &warps[block], &mut seen);
                }
                for host in warps.iter().flatten() {
                    for _ in 0..32 {
                        block::exit(*host);
                    }
                }
                device.join_row(0, 1, false);
            }
        }
        assert!(seen.passed > 100, "{}", seen.passed);
        assert!(seen.placed > 1000 && seen.cleared > 100 && seen.left_out > 100);
        assert!(seen.general > 1000);
    }

    fn step(
        random: &mut Random,
        device: &Device,
        me: State<Host>,
        block: &[Host; 3],
        seen: &mut Seen,
    ) {
        let size = 1 << random.below(3);
        let offset = random.below(u64::from(4 / size)) * u64::from(size);
        match random.below(16) {
            0 => {
                for host in block {
                    let me = State::at(*host, block::state(*host));
                    detector::barrier_before(me, 0, 0);
                    detector::barrier_after(me, 0, 0);
                }
            }
            1 => {
                let order = [
                    Order::Relaxed,
                    Order::Acquire,
                    Order::Release,
                    Order::AcqRel,
                ][random.below(4) as usize];
                let access = [Access::Load, Access::Store, Access::Rmw][random.below(3) as usize];
                let op = Op::new(access, 4, order, Scope::Gpu);
                let context = detector::strong_before::<Wide, _>(me, device.real(), op, 2);
                if access != Access::Store {
                    detector::strong_after::<Wide, _>(me, device.real(), op, 2, context, true);
                }
            }
            n => {
                let access = if n < 5 { Access::Store } else { Access::Load };
                // Most read the whole word, so that readers crowd.
                let (size, offset) = if random.below(3) == 0 {
                    (size, offset)
                } else {
                    (4, 0)
                };
                let mut op = Op::new(access, size, Order::Weak, Scope::None);
                if n == 15 && access == Access::Load {
                    op = op.non_coherent();
                }
                compare(me, device, op, offset, seen);
                detector::access::<Wide, _>(me, device.real() + offset, op, 1);
            }
        }
    }
}
