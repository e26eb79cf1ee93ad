//! The schedule by priorities: few preemptions, at chosen points.
//!
//! After "A randomized scheduler with probabilistic guarantees of finding bugs" (PCT): every warp gets a random priority, the
//! ready warp with the highest one runs until it cannot go on, and at a few *change points*, memory operations chosen
//! beforehand, the running warp drops below all others. A bug that needs one warp to stand still at one place while others
//! run on, however long, needs one change point there.
//!
//! How long a program is is not known beforehand: a run first chooses how far apart its change points are, all orders of
//! magnitude being as likely, then where they are.
//!
//! Who waits in a loop must not keep the others from what it waits for: a warp drops when it sleeps, when a turn of a loop has
//! read what the turn before had read and has written nothing, and after a long time in any case.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Change points are at most so far apart, in powers of two.
const FARTHEST: u32 = 12;
/// Change points of a run.
const DEPTH: u32 = 24;
/// Instructions after which a warp drops in any case.
const LONGEST: u32 = 50_000;
/// Depth of calls to which loops are watched.
const CALLS: usize = 4;

/// The schedule's choices.
#[derive(Debug)]
pub struct Priorities {
    rng: Xoshiro256PlusPlus,
    /// Below all priorities that are taken.
    lowest: i64,
    /// Change points that are left, their mean distance as a power of two, and operations until the next.
    left: u32,
    distance: u32,
    until: u32,
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
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x70_6374);
        let distance = 1 + rng.next_u32() % FARTHEST;
        let mut new = Priorities {
            rng,
            lowest: 0,
            left: DEPTH,
            distance,
            until: 0,
        };
        new.until = new.next();
        new
    }

    fn next(&mut self) -> u32 {
        self.rng.next_u32() & ((1 << self.distance) - 1)
    }

    /// Of a new warp: above all that have dropped.
    pub fn rank(&mut self) -> Rank {
        Rank {
            priority: i64::from(self.rng.next_u32()),
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
        let changes = (0..1 << 20).filter(|_| p.is_change()).count();
        assert_eq!(changes, DEPTH as usize);
    }
}
