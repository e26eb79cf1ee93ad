//! Clusters and mbarriers: barriers of a cluster, arrivals at another block's mbarrier, phases inside a block.

use super::{Generator, RETRIES, Who};
use crate::program::{Arrival, Condition, Kind, MBARRIERS, Mbarrier, Op, Until};
use gsan_device::layout::{Order, Scope};

impl Generator {
    /// A cluster's threads write their words, meet (or, 15 in 100, do something like it), and read each other's.
    pub(super) fn cluster_barrier(&mut self) {
        let Some(blocks) = self.some_cluster() else {
            return self.local_phases();
        };
        let all = self.threads_of(&blocks);
        let data = self.chunk(all.len() as u32);
        let broken = match self.random.below(100) {
            n @ 0..=2 => n,
            _ => 3,
        };
        let rounds = 1 + self.random.below(2);
        for round in 0..rounds {
            let relaxed = broken == 0 || self.random.chance(12);
            for (i, &who) in all.iter().enumerate() {
                if broken != 1 {
                    self.plain(who, Kind::Store(round as u32 + 1), Self::word(data, i));
                }
                if relaxed && broken != 0 {
                    let order = self.fence_order(Order::Release);
                    let scope = self.random.pick(&[Scope::Cluster, Scope::Gpu]);
                    self.push(who, Op::Fence { order, scope });
                }
                if broken != 2 {
                    self.push(who, Op::ClusterArrive { relaxed });
                }
                if broken == 1 {
                    self.plain(who, Kind::Store(round as u32 + 1), Self::word(data, i));
                }
            }
            for &who in &all {
                if broken != 2 {
                    self.push(who, Op::ClusterWait);
                }
                let from = self.random.below(all.len());
                self.plain(who, Kind::Load, Self::word(data, from));
            }
            if round + 1 < rounds {
                self.meet(&all);
            }
        }
    }

    /// All threads of a cluster meet.
    fn meet(&mut self, all: &[Who]) {
        for &who in all {
            self.push(who, Op::ClusterArrive { relaxed: false });
        }
        for &who in all {
            self.push(who, Op::ClusterWait);
        }
    }

    /// A message at cluster scope, mostly inside a cluster.
    pub(super) fn cluster_message(&mut self) {
        let Some(blocks) = self.some_cluster() else {
            return self.message();
        };
        let (data, flag) = (self.chunk(4), self.flag());
        let inside = self.random.chance(85);
        let from = self.one_of(blocks[0]);
        let to = if inside {
            self.one_of(blocks[1])
        } else {
            self.anyone()
        };
        self.plain(from, Kind::Store(7), Self::word(data, 0));
        let scope = Scope::Cluster;
        let until = Some(Until {
            condition: Condition::AtLeast(1),
            retries: RETRIES,
        });
        let fences = self.random.chance(40);
        let broken = self.random.chance(10);
        if fences && !broken {
            let order = self.fence_order(Order::Release);
            self.push(from, Op::Fence { order, scope });
        }
        let release = if fences || broken {
            Order::Relaxed
        } else {
            Order::Release
        };
        let kind = self.random.pick(&[Kind::Store(1), Kind::Add(1)]);
        self.strong(from, kind, release, scope, flag, None);
        let acquire = if fences {
            Order::Relaxed
        } else {
            Order::Acquire
        };
        self.strong(to, Kind::Load, acquire, scope, flag, until);
        if fences {
            let order = self.fence_order(Order::Acquire);
            self.push(to, Op::Fence { order, scope });
        }
        self.read_or_write(to, Self::word(data, 0));
    }

    pub(super) fn one_of(&mut self, block: usize) -> Who {
        let threads = self.blocks()[block].threads.len();
        (block, self.random.below(threads))
    }

    /// An mbarrier of a block that nobody uses yet, for so many arrivals.
    pub(super) fn mbarrier(&mut self, block: usize, arrivals: usize) -> Option<usize> {
        let kernel = self.program.kernels.last_mut()?;
        let all = &mut kernel.blocks[block].mbarriers;
        if all.len() == MBARRIERS {
            return None;
        }
        all.push(arrivals as u32);
        Some(all.len() - 1)
    }

    pub(super) fn arrive(&mut self, who: Who, at: Mbarrier, bytes: u32, scope: Scope) {
        let arrival = Arrival {
            at,
            bytes,
            relaxed: false,
            scope,
        };
        self.push(who, Op::Arrive(arrival));
    }

    pub(super) fn await_phase(&mut self, who: Who, mbarrier: usize, phase: u32) {
        let cluster = self.program.kernels.last().is_some_and(|k| k.cluster > 1);
        let scope = if cluster { Scope::Cluster } else { Scope::Cta };
        self.push(
            who,
            Op::Await {
                mbarrier,
                phase,
                scope,
            },
        );
    }

    /// Threads of a cluster write, and arrive at an mbarrier of one of its blocks, which waits there.
    pub(super) fn remote_arrivals(&mut self) {
        let Some(blocks) = self.some_cluster() else {
            return self.local_phases();
        };
        let home = self.random.below(blocks.len());
        let mut writers: Vec<Who> = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let block = if self.random.chance(80) {
                1 - home
            } else {
                home
            };
            let who = self.one_of(blocks[block]);
            if !writers.contains(&who) {
                writers.push(who);
            }
        }
        let Some(index) = self.mbarrier(blocks[home], writers.len()) else {
            return self.cluster_barrier();
        };
        let data = self.chunk(4);
        let rank = |block: usize| (block != blocks[home]).then_some(home);
        let broken = self.random.below(25);
        let readers = self.threads_of(&[blocks[home]]);
        for (i, &who) in writers.iter().enumerate() {
            if broken != 0 {
                self.plain(who, Kind::Store(3), Self::word(data, i));
            }
            let relaxed = broken == 1 || self.random.chance(10);
            if relaxed && broken != 1 {
                let order = self.fence_order(Order::Release);
                let scope = Scope::Cluster;
                self.push(who, Op::Fence { order, scope });
            }
            let arrival = Arrival {
                at: Mbarrier {
                    rank: rank(who.0),
                    index,
                },
                bytes: 0,
                relaxed,
                scope: Scope::Cluster,
            };
            self.push(who, Op::Arrive(arrival));
            if broken == 0 {
                self.plain(who, Kind::Store(3), Self::word(data, i));
            }
        }
        for &who in &readers {
            if who != readers[0] && self.random.chance(30) {
                continue;
            }
            if broken != 2 {
                self.await_phase(who, index, 0);
            }
            let from = self.random.below(writers.len());
            self.plain(who, Kind::Load, Self::word(data, from));
        }
    }

    /// Some of a block's threads produce, the others consume, one or two rounds through two mbarriers.
    pub(super) fn local_phases(&mut self) {
        let Some(block) = self.busy_block() else {
            return self.message();
        };
        let threads = self.threads_of(&[block]);
        let (producers, consumers) = threads.split_at(threads.len() / 2);
        let (Some(full), Some(empty)) = (
            self.mbarrier(block, producers.len()),
            self.mbarrier(block, consumers.len()),
        ) else {
            return self.team();
        };
        let data = self.chunk(4);
        let rounds = 1 + self.random.below(3) as u32;
        let broken = self.random.below(20);
        for round in 0..rounds {
            for (i, &who) in producers.iter().enumerate() {
                let store = Kind::Store(round + 1);
                let too_early = round > 0 && broken == 0;
                if too_early {
                    self.plain(who, store, Self::word(data, i));
                }
                if round > 0 {
                    self.await_phase(who, empty, round - 1);
                }
                if !too_early {
                    self.plain(who, store, Self::word(data, i));
                }
                let at = Mbarrier {
                    rank: None,
                    index: full,
                };
                self.arrive(who, at, 0, Scope::Cta);
            }
            for &who in consumers {
                self.await_phase(who, full, round);
                let from = self.random.below(producers.len());
                self.plain(who, Kind::Load, Self::word(data, from));
                let at = Mbarrier {
                    rank: None,
                    index: empty,
                };
                self.arrive(who, at, 0, Scope::Cta);
            }
        }
    }
}
