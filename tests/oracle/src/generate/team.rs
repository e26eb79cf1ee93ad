//! What the threads of one block do together: barriers, and what they order.

use super::{Generator, RETRIES};
use crate::program::{Barrier, Condition, Kind, Op, Place, Until, WARP};
use gsan_device::layout::{Order, Scope};

impl Generator {
    pub(super) fn barrier(&mut self) {
        let block = self.random.below(self.blocks().len());
        let threads = self.blocks()[block].threads.len();
        let data = self.data();
        let flag = self.flag();
        let other = self.anyone();
        for t in 0..threads {
            let place = Place {
                size: 4,
                offset: (data.offset / 4 * 4 + 4 * t as u32) % 32,
                ..data
            };
            self.plain((block, t), Kind::Store(1), place);
        }
        if !self.random.chance(15) {
            self.barrier_of_all(block);
        }
        let signaller = self.random.below(threads);
        self.signal((block, signaller), flag, 1);
        if other.0 != block {
            self.wait(other, flag, 1);
            let place = Place {
                size: 4,
                offset: data.offset / 4 * 4 % 32,
                ..data
            };
            self.read_or_write(other, place);
        }
    }

    /// `bar.sync` of the whole block, mostly number 0.
    pub(super) fn barrier_of_all(&mut self, block: usize) {
        let id = if self.random.chance(80) {
            0
        } else {
            self.fresh_barrier(block).unwrap_or(0)
        };
        let barrier = Barrier { id, ..Barrier::ALL };
        for t in 0..self.blocks()[block].threads.len() {
            self.push((block, t), Op::Barrier(barrier));
        }
    }

    /// The number of a barrier that the block has not used. Each is used by one set of threads, in the same roles, so
    /// that no thread ever waits for one that does not come.
    pub(super) fn fresh_barrier(&mut self, block: usize) -> Option<u32> {
        let next = self.barriers.get_mut(block)?;
        let id = *next;
        *next += 1;
        (id < 16).then_some(id)
    }

    /// `bar.sync` of these threads of a block, and `bar.arrive` of those; whole warps only.
    pub(super) fn named_barrier(
        &mut self,
        block: usize,
        wait: &[usize],
        arrive: &[usize],
        phases: usize,
    ) {
        let count = (WARP * (wait.len() + arrive.len())) as u32;
        let id = match self.fresh_barrier(block) {
            Some(id) if self.blocks()[block].lanes() == 1 => id,
            _ => return self.barrier_of_all(block),
        };
        for _ in 0..phases {
            for (threads, arrive) in [(wait, false), (arrive, true)] {
                for &t in threads {
                    self.push((block, t), Op::Barrier(Barrier { id, count, arrive }));
                }
            }
        }
    }

    /// A word of its own for each thread of a block.
    pub(super) fn part(data: Place, thread: usize) -> Place {
        Place {
            size: 4,
            offset: (data.offset / 4 * 4 + 4 * thread as u32) % 32,
            ..data
        }
    }

    /// A block's threads write their parts, meet (or, 20 in 100, don't), and read each other's.
    pub(super) fn team(&mut self) {
        let Some(block) = self.busy_block() else {
            return self.message();
        };
        let threads = self.blocks()[block].threads.len();
        let data = self.data();
        let rounds = 1 + self.random.below(2);
        for round in 0..rounds {
            for t in 0..threads {
                self.plain(
                    (block, t),
                    Kind::Store(1 + round as u32),
                    Self::part(data, t),
                );
            }
            if !self.random.chance(20) {
                self.barrier_of_all(block);
            }
            for t in 0..threads {
                let other = self.random.below(threads);
                self.read_or_write((block, t), Self::part(data, other));
            }
            if round + 1 < rounds && !self.random.chance(20) {
                self.barrier_of_all(block);
            }
        }
    }

    /// A message between two threads of one block, at any scope.
    pub(super) fn block_message(&mut self) {
        let Some(block) = self.busy_block() else {
            return self.message();
        };
        let threads = self.blocks()[block].threads.len();
        let first = self.random.below(threads);
        let [from, to] = [first, (first + 1) % threads].map(|t| (block, t));
        let (data, flag) = (self.data(), self.flag());
        let scope = self
            .random
            .pick(&[Scope::Cta, Scope::Cta, Scope::Gpu, Scope::Sys]);
        self.plain(from, Kind::Store(7), data);
        let (release, acquire) = match self.random.below(8) {
            0 => (Order::Relaxed, Order::Acquire),
            1 => (Order::Release, Order::Relaxed),
            _ => (Order::Release, Order::Acquire),
        };
        self.strong(from, Kind::Store(1), release, scope, flag, None);
        let until = Some(Until {
            condition: Condition::AtLeast(1),
            retries: RETRIES,
        });
        self.strong(to, Kind::Load, acquire, scope, flag, until);
        self.read_or_write(to, data);
    }

    /// A block's threads write their parts, and one of them publishes them all: after a barrier, or (25 in 100) too
    /// early. Another block takes them.
    pub(super) fn team_release(&mut self) {
        let Some(block) = self.busy_block() else {
            return self.message();
        };
        let threads = self.blocks()[block].threads.len();
        let (data, flag) = (self.data(), self.flag());
        for t in 0..threads {
            self.plain((block, t), Kind::Store(5), Self::part(data, t));
        }
        let publisher = self.random.below(threads);
        match self.random.below(8) {
            0 | 1 => {}
            2..=5 => self.barrier_of_all(block),
            _ => {
                let others: Vec<usize> = (0..threads).filter(|&t| t != publisher).collect();
                self.named_barrier(block, &[publisher], &others, 1);
            }
        }
        self.signal((block, publisher), flag, 1);
        let reader = self.anyone();
        if reader.0 == block {
            return;
        }
        self.wait(reader, flag, 1);
        let spread = self.blocks()[reader.0].threads.len();
        if spread > 1 && self.random.chance(50) {
            // What one of them has acquired, the barrier hands on.
            if !self.random.chance(15) {
                self.barrier_of_all(reader.0);
            }
            for t in 0..spread {
                self.read_or_write((reader.0, t), Self::part(data, t % threads));
            }
        } else {
            for t in 0..threads {
                self.plain(reader, Kind::Load, Self::part(data, t));
            }
        }
    }

    /// Some threads of a block write and arrive, others wait and read; the roles may change for a second round.
    pub(super) fn producer_consumer(&mut self) {
        let Some(block) = self.busy_block() else {
            return self.message();
        };
        let threads = self.blocks()[block].threads.len();
        let data = self.data();
        let producers: Vec<usize> = (0..threads / 2).collect();
        let consumers: Vec<usize> = (threads / 2..threads).collect();
        let broken = self.random.chance(15);
        for &t in &producers {
            self.plain((block, t), Kind::Store(2), Self::part(data, t));
        }
        match (broken, self.random.below(3)) {
            (true, _) => {}
            (_, 0) => {
                let everybody: Vec<usize> = (0..threads).collect();
                let phases = 1 + self.random.below(2);
                self.named_barrier(block, &everybody, &[], phases);
            }
            _ => self.named_barrier(block, &consumers, &producers, 1),
        }
        for &t in &consumers {
            let from = self.random.below(producers.len());
            self.plain((block, t), Kind::Load, Self::part(data, from));
        }
        if self.random.chance(40) {
            // The buffer is free again, or is taken for free.
            if !self.random.chance(25) {
                self.named_barrier(block, &producers, &consumers, 1);
            }
            for &t in &producers {
                self.plain((block, t), Kind::Store(3), Self::part(data, t));
            }
        }
    }
}
