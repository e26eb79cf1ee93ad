//! A row of clocks in memory.

use crate::layout::{Epoch, PartialClock, Snapshot};
use crate::machine::{Machine, field};
use core::mem::size_of;

/// A row of clocks in memory and the entries for single warps beside it (address 0: none).
#[derive(Clone, Copy)]
pub struct Row {
    entries: u64,
    partials: u64,
}

/// Entries that are read before the first of them is used: one by one, each would wait for memory.
const STEP: u32 = if cfg!(loom) { 2 } else { 8 };

impl Row {
    /// `num_threads` epochs at `entries`, [`PartialClock::PER_ROW`] entries for single warps at `partials`.
    #[inline]
    pub fn new(entries: u64, partials: u64) -> Row {
        Row { entries, partials }
    }

    /// Epochs alone.
    #[inline]
    pub fn plain(entries: u64) -> Row {
        Row::new(entries, 0)
    }

    /// The clock of the snapshot at `snapshot`.
    #[inline]
    pub fn of_snapshot(snapshot: u64) -> Row {
        Row::new(
            snapshot.wrapping_add(size_of::<Snapshot>() as u64),
            field!(snapshot, Snapshot, partials),
        )
    }

    /// Whether there are entries for single warps.
    #[inline]
    pub fn has_partials(self) -> bool {
        self.partials != 0
    }

    /// Calls `f` with the index and the value of each of the `n` entries.
    #[inline]
    pub fn each<M: Machine>(self, m: M, n: u32, mut f: impl FnMut(u32, Epoch)) {
        let whole = n.wrapping_sub(n % STEP);
        let step = |from: u32| self.step(m, from, whole);
        // Some steps are under way while one is worked on.
        let (mut first, mut second) = (step(0), step(STEP));
        let (mut third, mut fourth) = (step(2 * STEP), step(3 * STEP));
        let mut i = 0;
        while i < whole {
            let values = first;
            (first, second, third) = (second, third, fourth);
            fourth = step(i.wrapping_add(4 * STEP));
            let mut j = 0;
            while j < STEP {
                f(i.wrapping_add(j), values[j as usize]);
                j += 1;
            }
            i = i.wrapping_add(STEP);
        }
        while i < n {
            f(i, self.entry(m, i));
            i += 1;
        }
    }

    /// The same with two rows' entries.
    #[inline]
    pub fn each_pair<M: Machine>(
        self,
        other: Row,
        m: M,
        n: u32,
        mut f: impl FnMut(u32, Epoch, Epoch),
    ) {
        let whole = n.wrapping_sub(n % STEP);
        let step = |from: u32| (self.step(m, from, whole), other.step(m, from, whole));
        let (mut first, mut second) = (step(0), step(STEP));
        let mut i = 0;
        while i < whole {
            let (own, others) = first;
            first = second;
            second = step(i.wrapping_add(2 * STEP));
            let mut j = 0;
            while j < STEP {
                f(i.wrapping_add(j), own[j as usize], others[j as usize]);
                j += 1;
            }
            i = i.wrapping_add(STEP);
        }
        while i < n {
            f(i, self.entry(m, i), other.entry(m, i));
            i += 1;
        }
    }

    /// The entries of a step, if it lies below `end`.
    #[inline]
    fn step<M: Machine>(self, m: M, from: u32, end: u32) -> [Epoch; STEP as usize] {
        let mut values = [0; STEP as usize];
        if from < end {
            let mut j = 0;
            while j < STEP {
                values[j as usize] = self.entry(m, from.wrapping_add(j));
                j += 1;
            }
        }
        values
    }

    /// The entry for a thread.
    #[inline]
    pub fn entry<M: Machine>(self, m: M, thread: u32) -> Epoch {
        m.load32(self.entry_addr(thread))
    }

    /// Where that is.
    #[inline]
    pub fn entry_addr(self, thread: u32) -> u64 {
        self.entries.wrapping_add(4 * thread as u64)
    }

    /// The `i`-th entry for a single warp.
    #[inline]
    pub fn partial<M: Machine>(self, m: M, i: u32) -> PartialClock {
        if self.partials == 0 {
            return PartialClock::default();
        }
        PartialClock(m.load64(self.partial_addr(i)))
    }

    /// Where that is.
    #[inline]
    pub fn partial_addr(self, i: u32) -> u64 {
        self.partials.wrapping_add(8 * i as u64)
    }

    /// Forgets them.
    pub fn clear_partials<M: Machine>(self, m: M) {
        let mut i = 0;
        while self.partials != 0 && i < PartialClock::PER_ROW as u32 {
            m.store64(self.partial_addr(i), 0);
            i += 1;
        }
    }
}
