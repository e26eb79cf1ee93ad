//! The schedule by priorities: few preemptions, at chosen points.
//!
//! After "A randomized scheduler with probabilistic guarantees of finding bugs" (PCT): every warp gets a random priority, the
//! ready warp with the highest one runs until it cannot go on, and at a few *change points*, memory operations chosen
//! beforehand, the running warp drops below all others. A bug that needs one warp to stand still at one place while others
//! run on, however long, needs one change point there.
//!
//! A place is an instruction of the kernel, or of a function that it calls, that touches memory or calls; the hook before an
//! access and the access are one place. A run has one change point in each grid: a place of its kernel, when a warp comes
//! to it for the first time or, if a loop leads there again, for a later one. Seeds in a row go through the places evenly,
//! and each pair of seeds with opposite priorities. So a window between two instructions is tried within as many pairs as the
//! kernel has places, however often what comes before is repeated; PCT, which counts instructions, would need to know how
//! many there are. Priorities follow the order of the blocks the first time that seeds in a row go through the places, are random
//! the next time, and so on: three or more warps that must come one after the other mostly do so in their own order, or in the
//! reverse one, so that a kernel of up to 24 places has each such window tried within 64 seeds.
//!
//! One pair in four has many change points, close together, wherever they fall.
//!
//! Who waits in a loop must not keep the others from what it waits for: a warp drops when it sleeps, when a turn of a loop has
//! read what the turn before had read and has written nothing (hooks of gsan's runtime in the loop not counted: what they read
//! and write changes all the time), and after a long time in any case, which gets shorter each time.
//! Where its lanes have parted, one may wait for a lock that another lane of the warp holds: it then drops a little later,
//! at any instruction, or whoever else wants the lock would only ever see it taken.

use std::ops::Range;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Change points of a run that has many, and their largest distance as a power of two.
const MANY: u32 = 24;
const CLOSE: u32 = 6;
/// Instructions after which a warp drops in any case: the first time, and after many.
const LONGEST: u32 = 1 << 21;
const SHORTEST: u32 = 50_000;
/// So often in a run a warp keeps its turn after that time, since it has written in it: who writes does not just wait.
const PATIENCE: u32 = 12;
/// Instructions within which a warp whose lanes have parted drops for having waited.
const GRACE: u32 = 512;
/// Later times at which a warp comes to a place: at most so many times, as a power of two.
const LATER: u32 = 10;
/// Depth of calls to which loops are watched, and how many of them, one inside the other.
const CALLS: usize = 4;
const NESTED: usize = 2;

/// The schedule's choices.
#[derive(Debug)]
pub struct Priorities {
    rng: Xoshiro256PlusPlus,
    /// Two seeds share all choices; one of them has the priorities reversed.
    pair: u64,
    reversed: bool,
    /// Whether priorities follow the order in which warps begin, and how many have.
    in_order: bool,
    warps: i64,
    grids: u64,
    /// Below all priorities that are taken.
    lowest: i64,
    patience: u32,
    /// Change points at places.
    targets: Vec<Target>,
    /// Of a run with many: how many are left, the largest distance of those behind the next, and places until that.
    left: u32,
    distance: u64,
    until: u64,
}

/// A change point: when a grid's warps have come to an instruction so many times.
#[derive(Debug)]
struct Target {
    grid: u64,
    pc: u32,
    before: u64,
}

/// A place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub pc: u32,
    /// Whether a loop leads there again.
    pub repeats: bool,
}

/// What the schedule knows of a warp.
#[derive(Debug, Clone, Default)]
pub struct Rank {
    pub priority: i64,
    /// Instructions since it dropped last, and how often it has dropped for having had its time.
    pub ran: u32,
    overran: u32,
    /// Instructions until it drops for having waited; 0: it has not.
    grace: u32,
    /// Whether the user's code has written since `ran` began.
    works: bool,
    /// By depth of calls.
    loops: [[Watch; NESTED]; CALLS],
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
            in_order: false,
            warps: 0,
            grids: 0,
            lowest: 0,
            patience: PATIENCE,
            targets: Vec::new(),
            left: 0,
            distance: 1,
            until: 0,
        }
    }

    /// A grid is launched whose kernel has those places: it gets its change points.
    pub fn launch(&mut self, grid: u64, places: &[Place]) {
        let grids = self.grids;
        self.grids += 1;
        if self.pair & 3 == 3 {
            self.left = MANY;
            self.distance = 2 << (self.rng.next_u32() % CLOSE);
            self.until = self.next();
            return;
        }
        let count = places.len() as u64;
        if count == 0 {
            return;
        }
        let number = (self.pair >> 2) * 3 + (self.pair & 3) + 101 * grids;
        let (round, turn) = (number / count, number % count);
        // Neighbours are not tried one after the other.
        let index = turn * stride(count) % count;
        let place = places[index as usize];
        if grids == 0 {
            self.in_order = round & 1 == 0;
        }
        let mut before = 0;
        if place.repeats && round & 2 != 0 {
            let most = 2u32 << (self.rng.next_u32() % LATER);
            before = u64::from(self.rng.next_u32() % most);
        }
        self.targets.push(Target {
            grid,
            pc: place.pc,
            before,
        });
    }

    /// A grid has ended.
    pub fn forget(&mut self, grid: u64) {
        self.targets.retain(|t| t.grid != grid);
    }

    fn next(&mut self) -> u64 {
        u64::from(self.rng.next_u32()) % self.distance
    }

    /// Of a new warp: above all that have dropped.
    pub fn rank(&mut self) -> Rank {
        self.warps += 1;
        let random = self.rng.next_u32();
        let priority = match (self.in_order, self.reversed) {
            (true, false) => (1 << 40) - self.warps,
            (true, true) => self.warps,
            (false, false) => i64::from(random),
            (false, true) => i64::from(!random),
        };
        Rank {
            priority,
            ..Rank::default()
        }
    }

    /// The warp waits: it drops now, or later where its lanes have parted. Whether it has.
    pub fn wait(&mut self, rank: &mut Rank, parted: bool) -> bool {
        if parted {
            if rank.grace == 0 {
                rank.grace = 1 + self.rng.next_u32() % GRACE;
            }
            return false;
        }
        self.drop(rank);
        true
    }

    /// Whether the warp has had its time. The next one is shorter.
    pub fn is_long(&mut self, rank: &mut Rank) -> bool {
        if rank.ran < (LONGEST >> rank.overran.min(31)).max(SHORTEST) {
            return false;
        }
        if rank.overran == 0 && rank.works && self.patience > 0 {
            self.patience -= 1;
            rank.ran = 0;
            rank.works = false;
            return false;
        }
        rank.overran += 1;
        true
    }

    /// The warp drops below all others.
    pub fn drop(&mut self, rank: &mut Rank) {
        self.lowest -= 1;
        rank.grace = 0;
        rank.priority = self.lowest;
        rank.ran = 0;
        rank.works = false;
        rank.loops = Default::default();
    }

    /// That instruction comes next: whether this is a change point. `counts`: it is a memory operation or a call of the
    /// kernel itself.
    pub fn is_change(&mut self, grid: u64, pc: u32, counts: bool) -> bool {
        let at = |t: &Target| t.pc == pc && t.grid == grid;
        if let Some(found) = self.targets.iter().position(at) {
            let target = &mut self.targets[found];
            if target.before > 0 {
                target.before -= 1;
                return false;
            }
            self.targets.swap_remove(found);
            return true;
        }
        if self.left == 0 || !counts {
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
    /// A value was read, in the innermost of these depths of calls: the loops around the calls read it too.
    pub fn read(&mut self, calls: Range<usize>, value: u64) {
        let calls = calls.start.min(CALLS)..calls.end.min(CALLS);
        for watch in self.loops[calls].iter_mut().flatten() {
            watch.read = (watch.read.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    /// Something was written, in the innermost of these depths of calls. What functions write does not count for the loops around
    /// them: hooks do it all the time.
    pub fn wrote(&mut self, calls: &Range<usize>) {
        self.works |= calls.start == 0;
        let depth = calls.end.saturating_sub(1);
        for watch in self.loops.get_mut(depth).into_iter().flatten() {
            watch.wrote = true;
        }
    }

    /// A function is entered: its loops begin anew.
    pub fn entered(&mut self, depth: usize) {
        if let Some(watches) = self.loops.get_mut(depth) {
            *watches = Default::default();
        }
    }

    /// A jump back to `start`: whether this turn of the loop was as the last one. Who reads nothing waits for nothing.
    pub fn jumped(&mut self, depth: usize, start: u32) -> bool {
        let Some(watches) = self.loops.get_mut(depth) else {
            return false;
        };
        let Some(watch) = watches.iter_mut().find(|w| w.start == start) else {
            watches.rotate_right(1);
            watches[0] = Watch {
                start,
                ..Watch::default()
            };
            return false;
        };
        let again = watch.read == watch.before && watch.read != 0 && !watch.wrote;
        *watch = Watch {
            start,
            read: 0,
            before: watch.read,
            wrote: false,
        };
        again
    }

    /// One more instruction: whether it was the last one before it drops for having waited.
    pub fn waited(&mut self) -> bool {
        let last = self.grace == 1;
        self.grace = self.grace.saturating_sub(1);
        last
    }
}

/// A step that goes through all numbers below `count`, and far from one to the next: the golden section's, or the next
/// that has no divisor in common with `count`.
fn stride(count: u64) -> u64 {
    let golden = (count * 618 / 1000).max(1);
    (golden..).find(|&s| divisor(s, count) == 1).unwrap_or(1)
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_waits_is_told_from_one_that_works() {
        let mut rank = Rank::default();
        let mut turn = |value: u64, wrote: bool| {
            rank.read(0..1, value);
            if wrote {
                rank.wrote(&(0..1));
            }
            rank.jumped(0, 7)
        };
        assert!(!turn(3, false) && !turn(3, false));
        assert!(turn(3, false));
        assert!(!turn(1, false));
        assert!(!turn(1, true));
        assert!(!turn(2, false) && turn(2, false));
    }

    #[test]
    fn a_loop_that_only_computes_waits_for_nothing_but_the_one_around_it_may() {
        let mut rank = Rank::default();
        (0..9).for_each(|_| assert!(!rank.jumped(0, 7)));
        let mut turn = |value: u64| {
            rank.read(0..1, value);
            (0..5).for_each(|_| assert!(!rank.jumped(0, 7)));
            rank.jumped(0, 3)
        };
        assert!(!turn(4) && !turn(4) && turn(4) && !turn(5) && turn(5));
    }

    #[test]
    fn who_drops_is_below_all_others() {
        let mut p = Priorities::new(3);
        let (mut a, mut b, c) = (p.rank(), p.rank(), p.rank());
        p.drop(&mut a);
        p.drop(&mut b);
        assert!(b.priority < a.priority && a.priority < c.priority);
    }

    fn places(count: u32) -> Vec<Place> {
        (0..count)
            .map(|pc| Place {
                pc,
                repeats: pc % 2 == 1,
            })
            .collect()
    }

    /// Where a seed's change point is, if it has a single one, and after how many times.
    fn target(seed: u64, count: u32) -> Option<(u32, u64, bool)> {
        let mut p = Priorities::new(seed);
        p.launch(1, &places(count));
        p.targets.first().map(|t| (t.pc, t.before, p.in_order))
    }

    #[test]
    fn seeds_in_a_row_try_every_place_in_both_orders() {
        for count in [1, 2, 5, 7, 12] {
            for wanted in 0..count {
                for in_order in [false, true] {
                    let pair = |seed: u64| target(seed, count) == Some((wanted, 0, in_order));
                    let found = (0..64).filter(|&s| pair(s)).count();
                    assert!(found >= 2 && found % 2 == 0, "{wanted} of {count}");
                }
            }
        }
        for count in [13, 20, 24] {
            for wanted in 0..count {
                let found = (0..64).filter(|&s| target(s, count) == Some((wanted, 0, true)));
                assert!(found.count() >= 2, "{wanted} of {count}");
            }
        }
        let far = (0..256).filter(|&s| target(s, 2).is_some_and(|(_, before, _)| before > 0));
        assert!(far.count() >= 32);
        assert_eq!((0..64).filter(|&s| target(s, 9).is_none()).count(), 16);
    }

    #[test]
    fn a_change_point_is_met_once() {
        let mut p = Priorities::new(0);
        p.launch(7, &places(1));
        assert!(!p.is_change(8, 0, true));
        assert!(!p.is_change(7, 1, true));
        assert!(p.is_change(7, 0, true));
        assert!(!p.is_change(7, 0, true));
        p.launch(9, &places(1));
        p.forget(9);
        assert!(!p.is_change(9, 0, true));
    }

    #[test]
    fn orders_are_opposite_in_a_pair() {
        for pair in 0..32 {
            let ranks = |seed| {
                let mut p = Priorities::new(seed);
                p.launch(1, &places(4));
                [0; 3].map(|_| p.rank().priority)
            };
            let ([a, b, c], [x, y, z]) = (ranks(2 * pair), ranks(2 * pair + 1));
            assert_eq!((a < b, b < c, a < c), (x > y, y > z, x > z), "{pair}");
        }
    }

    #[test]
    fn lanes_that_have_parted_drop_later() {
        let mut p = Priorities::new(3);
        let (mut whole, mut parted) = (p.rank(), p.rank());
        assert!(p.wait(&mut whole, false) && whole.priority < parted.priority);
        assert!(!p.wait(&mut parted, true) && parted.priority > 0);
        let until = (1..=GRACE).find(|_| parted.waited());
        assert!(until.is_some() && !parted.waited());
    }

    #[test]
    fn times_get_shorter() {
        let mut p = Priorities::new(1);
        let mut rank = Rank::default();
        let mut is_long = |ran: u32| {
            rank.ran = ran;
            p.is_long(&mut rank)
        };
        assert!(is_long(LONGEST) && is_long(LONGEST / 2));
        (0..40).for_each(|_| assert!(!is_long(SHORTEST - 1)));
        (0..8).for_each(|_| assert!(is_long(LONGEST)));
        assert!(is_long(SHORTEST));
    }

    #[test]
    fn who_writes_keeps_its_turn_but_not_for_ever() {
        let mut p = Priorities::new(1);
        let mut rank = Rank::default();
        let mut is_long = |writes: bool, depth: usize| {
            if writes {
                rank.wrote(&(depth..depth + 1));
            }
            rank.ran = LONGEST;
            let long = p.is_long(&mut rank);
            assert!(long || rank.ran == 0);
            long
        };
        (0..PATIENCE).for_each(|_| assert!(!is_long(true, 0)));
        assert!(is_long(true, 0));
        let mut p = Priorities::new(1);
        let mut rank = Rank {
            ran: LONGEST,
            ..Rank::default()
        };
        // What hooks write does not count.
        rank.wrote(&(1..3));
        assert!(p.is_long(&mut rank));
    }
}
