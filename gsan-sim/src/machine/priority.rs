//! The schedule by priorities: few preemptions, at chosen points.
//!
//! After "A randomized scheduler with probabilistic guarantees of finding bugs" (PCT): every warp gets a random priority, the
//! ready warp with the highest one runs until it cannot go on, and at a few *change points*, memory operations chosen
//! beforehand, the running warp drops below all others. A bug that needs one warp to stand still at one place while others
//! run on, however long, needs one change point there.
//!
//! How long a program is is not known beforehand; what is known is how many places its kernel has. Three quarters of the runs
//! have their change point among the first so many places that are passed, the others later, farther being rarer. Seeds in a row
//! spread it evenly, each place twice, with opposite priorities: a short program's places are all tried within few dozen
//! seeds. One run in four has many change points, close together.
//!
//! Who waits in a loop must not keep the others from what it waits for: a warp drops when it sleeps, when a turn of a loop has
//! read what the turn before had read and has written nothing, and after a long time in any case.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Change points of a run that has many, and their largest distance as a power of two.
const MANY: u32 = 24;
const CLOSE: u32 = 6;
/// Instructions after which a warp drops in any case.
const LONGEST: u32 = 50_000;
/// Depth of calls to which loops are watched.
const CALLS: usize = 4;

/// The schedule's choices.
#[derive(Debug)]
pub struct Priorities {
    rng: Xoshiro256PlusPlus,
    /// Two seeds share all choices; one of them has the priorities reversed.
    pair: u64,
    reversed: bool,
    grids: u64,
    /// Below all priorities that are taken.
    lowest: i64,
    /// Change points that are left, the largest distance of those behind the next, and places until that.
    left: u32,
    distance: u64,
    until: u64,
}

/// What the schedule knows of a warp.
#[derive(Debug, Clone, Default)]
pub struct Rank {
    pub priority: i64,
    /// Instructions since it dropped last.
    pub ran: u32,
    /// By depth of calls.
    loops: [Watch; CALLS],
}

/// A loop that may be one that waits.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    /// Where it begins.
    start: u32,
    /// What this turn has read so far, and what the last one read.
    read: u64,
    before: u64,
    wrote: bool,
}

impl Priorities {
    pub fn new(seed: u64) -> Priorities {
        let pair = seed >> 1;
        Priorities {
            rng: Xoshiro256PlusPlus::seed_from_u64(pair ^ 0x70_6374),
            pair,
            reversed: seed & 1 == 1,
            grids: 0,
            lowest: 0,
            left: 0,
            distance: 1,
            until: 0,
        }
    }

    /// A grid is launched whose kernel has so many places: it gets change points.
    pub fn launch(&mut self, places: u64) {
        let places = places.max(1);
        // The fractions of the golden ratio's multiples lie evenly.
        let number = (self.pair >> 2) * 3 + (self.pair & 3) + 101 * self.grids;
        let fraction = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.grids += 1;
        if self.pair & 3 == 3 {
            self.left = MANY;
            self.distance = 2 << (self.rng.next_u32() % CLOSE);
            self.until = self.next();
            return;
        }
        self.left = 1;
        let (mut from, mut len, mut rest) = (0, places, fraction);
        // The first stretch has three quarters of the odds, each later one, twice as long, half of what is left.
        let mut share: u64 = 3 << 30;
        while rest >= share && len < 1 << 24 {
            rest -= share;
            (from, len) = (from + len, 2 * len);
            share = if share == 3 << 30 { 1 << 29 } else { share / 2 };
            if share == 0 {
                break;
            }
        }
        self.until = from + rest.min(share) * len / share.max(1);
    }

    fn next(&mut self) -> u64 {
        u64::from(self.rng.next_u32()) % self.distance
    }

    /// Of a new warp: above all that have dropped.
    pub fn rank(&mut self) -> Rank {
        let priority = self.rng.next_u32();
        Rank {
            priority: i64::from(if self.reversed { !priority } else { priority }),
            ..Rank::default()
        }
    }

    /// The warp drops below all others.
    pub fn drop(&mut self, rank: &mut Rank) {
        self.lowest -= 1;
        rank.priority = self.lowest;
        rank.ran = 0;
        rank.loops = Default::default();
    }

    /// A memory operation or a call comes next: whether this is a change point.
    pub fn is_change(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        if self.until > 0 {
            self.until -= 1;
            return false;
        }
        self.left -= 1;
        self.until = self.next();
        true
    }
}

impl Rank {
    /// A value was read at that depth of calls.
    pub fn read(&mut self, depth: usize, value: u64) {
        if let Some(watch) = self.loops.get_mut(depth) {
            watch.read = (watch.read.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    /// Something was written.
    pub fn wrote(&mut self, depth: usize) {
        if let Some(watch) = self.loops.get_mut(depth) {
            watch.wrote = true;
        }
    }

    /// A function is entered: its loops begin anew.
    pub fn entered(&mut self, depth: usize) {
        if let Some(watch) = self.loops.get_mut(depth) {
            *watch = Watch::default();
        }
    }

    /// A jump back to `start`: whether this turn of the loop was as the last one.
    pub fn jumped(&mut self, depth: usize, start: u32) -> bool {
        let Some(watch) = self.loops.get_mut(depth) else {
            return false;
        };
        let again = watch.start == start && watch.read == watch.before && !watch.wrote;
        *watch = Watch {
            start,
            read: 0,
            before: watch.read,
            wrote: false,
        };
        again
    }

    /// Whether it has had its time.
    pub fn is_long(&self) -> bool {
        self.ran >= LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_waits_is_told_from_one_that_works() {
        let mut rank = Rank::default();
        let mut turn = |value: u64, wrote: bool| {
            rank.read(0, value);
            if wrote {
                rank.wrote(0);
            }
            rank.jumped(0, 7)
        };
        assert!(!turn(0, false));
        assert!(turn(0, false));
        assert!(!turn(1, false));
        assert!(!turn(1, true));
        assert!(!turn(2, false) && turn(2, false));
    }

    #[test]
    fn who_drops_is_below_all_others() {
        let mut p = Priorities::new(3);
        let (mut a, mut b, c) = (p.rank(), p.rank(), p.rank());
        p.drop(&mut a);
        p.drop(&mut b);
        assert!(b.priority < a.priority && a.priority < c.priority);
    }

    #[test]
    fn seeds_in_a_row_try_every_place_of_a_short_program() {
        let place = |seed| {
            let mut p = Priorities::new(seed);
            p.launch(20);
            (0..1 << 20).find(|_| p.is_change())
        };
        for wanted in 0..20u32 {
            let near = |seed: &u64| place(*seed).is_some_and(|p: u32| p.abs_diff(wanted) < 2);
            assert!((0..64).filter(|s| s % 2 == 0).any(|s| near(&s)), "{wanted}");
        }
        let far = (0..256).filter(|&seed| place(seed) > Some(20)).count();
        assert!((16..128).contains(&far), "{far}");
    }
}
