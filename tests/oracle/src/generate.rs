//! Random programs, biased towards the shapes of real synchronisation: each with its halves in place most of the time,
//! and one of them missing, too weak or too narrow often enough.

use crate::interpreter::MAX_STEPS;
use crate::program::{
    Access, Block, Condition, HostStep, Kernel, Kind, Op, Place, Program, Space, Until,
};
use crate::random::Random;
use gsan_device::layout::{Order, Scope};

/// How wide accesses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// 4 to 16 bytes, aligned: what the reference cell can tell apart.
    Words,
    /// 1 to 16 bytes.
    Any,
}

const RETRIES: u32 = 8;

struct Generator {
    random: Random,
    widths: Widths,
    program: Program,
    /// The next flag that nobody uses yet.
    flags: u32,
}

/// A block and a thread of the kernel under construction.
type Who = (usize, usize);

/// A random program.
pub fn program(seed: u64, widths: Widths) -> Program {
    let mut g = Generator {
        random: Random::new(seed),
        widths,
        program: Program::default(),
        flags: 0,
    };
    let kernels = g.random.pick(&[1, 1, 1, 2, 2, 3]);
    for _ in 0..kernels {
        g.kernel();
    }
    g.host();
    g.program
}

impl Generator {
    fn kernel(&mut self) {
        let blocks = if self.program.kernels.is_empty() {
            2 + self.random.below(3)
        } else {
            1 + self.random.below(3)
        };
        let many_threads = self.random.chance(40);
        let blocks: Vec<Block> = (0..blocks)
            .map(|_| Block {
                threads: vec![
                    Vec::new();
                    if many_threads {
                        1 + self.random.below(3)
                    } else {
                        1
                    }
                ],
            })
            .collect();
        let cluster = if self.random.chance(10) { 2 } else { 1 };
        self.program.kernels.push(Kernel { cluster, blocks });
        for _ in 0..1 + self.random.below(3) {
            match self.random.below(14) {
                0..=2 => self.message(),
                3 | 4 => self.lock(),
                5 => self.counter(),
                6 | 7 => self.last_block(),
                8 => self.sequence(),
                9 => self.chain(),
                10 => self.handoff(),
                11 => self.barrier(),
                12 => self.own_release_sequence(),
                _ => self.noise(),
            }
        }
        if self.random.chance(30) {
            self.noise();
        }
    }

    fn host(&mut self) {
        let streams = 1 + self.random.below(3);
        let mut event = 0;
        for kernel in 0..self.program.kernels.len() {
            let stream = self.random.below(streams);
            self.program.host.push(HostStep::Launch { kernel, stream });
            if self.random.chance(30) {
                self.program.host.push(HostStep::Record { event, stream });
                let other = self.random.below(streams);
                self.program.host.push(HostStep::Wait {
                    event,
                    stream: other,
                });
                event += 1;
            }
            if self.random.chance(10) {
                self.program.host.push(HostStep::Synchronize { stream });
            }
            if self.random.chance(5) {
                let stream = self.random.below(streams);
                self.program.host.push(HostStep::Wait { event, stream });
            }
        }
        self.program.host.truncate(MAX_STEPS);
    }

    fn blocks(&self) -> &[Block] {
        self.program.kernels.last().map_or(&[], |k| &k.blocks)
    }

    /// Some thread of some block.
    fn anyone(&mut self) -> Who {
        let block = self.random.below(self.blocks().len());
        let threads = self.blocks()[block].threads.len();
        (block, self.random.below(threads))
    }

    /// Threads of different blocks, as far as there are enough.
    fn cast(&mut self, n: usize) -> Vec<Who> {
        let count = self.blocks().len();
        let first = self.random.below(count);
        (0..n)
            .map(|i| {
                let block = (first + i) % count;
                let threads = self.blocks()[block].threads.len();
                (block, self.random.below(threads))
            })
            .collect()
    }

    fn push(&mut self, (block, thread): Who, op: Op) {
        if let Some(kernel) = self.program.kernels.last_mut() {
            kernel.blocks[block].threads[thread].push(op);
        }
    }

    fn scope(&mut self) -> Scope {
        match self.random.below(40) {
            0 => Scope::Cta,
            1 => Scope::Cluster,
            2..=14 => Scope::Sys,
            _ => Scope::Gpu,
        }
    }

    fn space(&mut self) -> Space {
        match self.random.below(20) {
            0 => Space::Foreign,
            1 | 2 => Space::Variable,
            _ => Space::Checked,
        }
    }

    /// A word that most programs use for data: few, so that they meet.
    fn data(&mut self) -> Place {
        let space = if self.random.chance(5) {
            Space::Variable
        } else {
            Space::Checked
        };
        let size = match (self.widths, self.random.below(20)) {
            (_, 0) => 16,
            (_, 1 | 2) => 8,
            (Widths::Any, 3..=6) => 1,
            (Widths::Any, 7 | 8) => 2,
            _ => 4,
        };
        let offset = self.random.below((24 / size).max(1) as usize) as u32 * size;
        Place {
            space,
            offset,
            size,
        }
    }

    /// A flag of its own, or (rarely) one that is in use.
    fn flag(&mut self) -> Place {
        let space = self.space();
        if !self.random.chance(12) {
            self.flags += 1;
        }
        let slot = self.flags % 8;
        let size = match self.random.below(30) {
            0 if slot.is_multiple_of(2) => 8,
            1 if self.widths == Widths::Any => 2,
            _ => 4,
        };
        Place {
            space,
            offset: 32 + 4 * slot,
            size,
        }
    }

    fn plain(&mut self, who: Who, kind: Kind, place: Place) {
        self.push(
            who,
            Op::Access(Access {
                kind,
                order: Order::Weak,
                scope: Scope::None,
                volatile: false,
                place,
                until: None,
            }),
        );
    }

    fn strong(
        &mut self,
        who: Who,
        kind: Kind,
        order: Order,
        scope: Scope,
        place: Place,
        until: Option<Until>,
    ) {
        self.push(
            who,
            Op::Access(Access {
                kind,
                order,
                scope,
                volatile: false,
                place,
                until,
            }),
        );
    }

    fn read_or_write(&mut self, who: Who, place: Place) {
        let value = self.random.below(9) as u32;
        let kind = if self.random.chance(65) {
            Kind::Load
        } else {
            Kind::Store(value)
        };
        self.plain(who, kind, place);
    }

    fn fence_order(&mut self, want: Order) -> Order {
        match self.random.below(6) {
            0 | 1 => want,
            2 => Order::Sc,
            _ => Order::AcqRel,
        }
    }

    /// Sets a flag so that what came before is published, or (15 in 100) so that something is missing.
    fn signal(&mut self, who: Who, flag: Place, value: u32) {
        let broken = self.random.chance(15);
        let scope = self.scope();
        let kind = match self.random.below(5) {
            0 => Kind::Exchange(value),
            1 => Kind::Add(value),
            2 => Kind::Reduce(value),
            _ => Kind::Store(value),
        };
        if self.random.chance(50) {
            if !broken {
                let order = self.fence_order(Order::Release);
                let scope = self.scope();
                self.push(who, Op::Fence { order, scope });
            }
            if kind == Kind::Store(value) && self.random.chance(30) {
                let access = Access {
                    kind,
                    order: Order::Relaxed,
                    scope: Scope::Sys,
                    volatile: true,
                    place: flag,
                    until: None,
                };
                self.push(who, Op::Access(access));
            } else {
                self.strong(who, kind, Order::Relaxed, scope, flag, None);
            }
        } else {
            let order = match (broken, kind) {
                (true, _) => Order::Relaxed,
                (false, Kind::Exchange(_) | Kind::Add(_)) if self.random.chance(50) => {
                    Order::AcqRel
                }
                _ => Order::Release,
            };
            self.strong(who, kind, order, scope, flag, None);
        }
    }

    /// Waits for a flag so that what its setter published is acquired, or (15 in 100) not.
    fn wait(&mut self, who: Who, flag: Place, at_least: u32) {
        let broken = self.random.chance(15);
        let scope = self.scope();
        let retries = if self.random.chance(90) { RETRIES } else { 0 };
        let until = Some(Until {
            condition: Condition::AtLeast(at_least),
            retries,
        });
        let until = if self.random.chance(95) { until } else { None };
        let kind = if self.random.chance(20) {
            Kind::Add(0)
        } else {
            Kind::Load
        };
        if self.random.chance(50) {
            self.strong(who, kind, Order::Relaxed, scope, flag, until);
            if !broken {
                let order = self.fence_order(Order::Acquire);
                let scope = self.scope();
                self.push(who, Op::Fence { order, scope });
            }
        } else {
            let order = if broken {
                Order::Relaxed
            } else {
                Order::Acquire
            };
            self.strong(who, kind, order, scope, flag, until);
        }
    }

    fn message(&mut self) {
        let cast = self.cast(2);
        let (data, flag) = (self.data(), self.flag());
        self.plain(cast[0], Kind::Store(7), data);
        self.signal(cast[0], flag, 1);
        if self.random.chance(10) {
            self.plain(cast[0], Kind::Store(8), data);
        }
        self.wait(cast[1], flag, 1);
        self.read_or_write(cast[1], data);
        if self.random.chance(30) {
            let third = self.anyone();
            self.wait(third, flag, 1);
            self.read_or_write(third, data);
        }
    }

    fn lock(&mut self) {
        let (data, lock) = (self.data(), self.flag());
        let count = 2 + self.random.below(2);
        for who in self.cast(count) {
            let scope = self.scope();
            let (mut take, mut give) = (Order::Acquire, Order::Release);
            match self.random.below(16) {
                0 => take = Order::Relaxed,
                1 => give = Order::Relaxed,
                2 => take = Order::AcqRel,
                _ => {}
            }
            let until = Some(Until {
                condition: Condition::Equals(0),
                retries: RETRIES,
            });
            if self.random.chance(15) {
                self.strong(who, Kind::Load, Order::Relaxed, scope, lock, until);
            }
            let free = if self.random.chance(20) {
                Kind::Exchange(1)
            } else {
                Kind::Cas { expect: 0, new: 1 }
            };
            let fences = self.random.chance(25);
            self.strong(
                who,
                free,
                if fences { Order::Relaxed } else { take },
                scope,
                lock,
                until,
            );
            if fences {
                self.push(
                    who,
                    Op::Fence {
                        order: Order::AcqRel,
                        scope: Scope::Gpu,
                    },
                );
            }
            self.read_or_write(who, data);
            self.plain(who, Kind::Store(3), data);
            if fences {
                self.push(
                    who,
                    Op::Fence {
                        order: Order::AcqRel,
                        scope: Scope::Gpu,
                    },
                );
                give = Order::Relaxed;
            }
            let unlock = if self.random.chance(40) {
                Kind::Exchange(0)
            } else {
                Kind::Store(0)
            };
            self.strong(who, unlock, give, scope, lock, None);
        }
    }

    fn counter(&mut self) {
        let counter = self.flag();
        let count = 2 + self.random.below(4);
        for who in self.cast(count) {
            let scope = self.scope();
            let kind = if self.random.chance(50) {
                Kind::Add(1)
            } else {
                Kind::Reduce(1)
            };
            self.strong(who, kind, Order::Relaxed, scope, counter, None);
        }
        let who = self.anyone();
        if self.random.chance(50) {
            self.read_or_write(who, counter);
        } else {
            self.wait(who, counter, count as u32);
            self.read_or_write(who, counter);
        }
    }

    fn last_block(&mut self) {
        let (data, counter) = (self.data(), self.flag());
        let data = Place {
            size: 4,
            offset: data.offset / 4 * 4,
            ..data
        };
        let broken = self.random.chance(25);
        let n = self.blocks().len().min(4);
        let order = self
            .random
            .pick(&[Order::AcqRel, Order::AcqRel, Order::Relaxed]);
        let fences = order == Order::Relaxed;
        let fence = Op::Fence {
            order: self.fence_order(Order::AcqRel),
            scope: Scope::Gpu,
        };
        let reset = self.random.chance(50);
        let who_resets = self.random.chance(80);
        let part = |i: usize| Place {
            offset: (data.offset + 4 * i as u32) % 32,
            ..data
        };
        for (i, who) in self.cast(n).into_iter().enumerate() {
            self.plain(who, Kind::Store(5), part(i));
            if fences {
                self.push(who, fence);
            }
            let until = Some(Until {
                condition: Condition::Equals(n as u32 - 1),
                retries: 0,
            });
            self.strong(who, Kind::Add(1), order, Scope::Gpu, counter, until);
            if fences && !broken {
                self.push(who, fence);
            }
            for j in 0..n {
                self.plain(who, Kind::Load, part(j));
            }
            if reset && who_resets {
                self.plain(who, Kind::Store(0), counter);
            }
        }
    }

    fn sequence(&mut self) {
        let cast = self.cast(3);
        let (data, flag) = (self.data(), self.flag());
        self.plain(cast[0], Kind::Store(7), data);
        self.signal(cast[0], flag, 1);
        let wait = self.random.chance(70);
        if wait {
            let until = Some(Until {
                condition: Condition::AtLeast(1),
                retries: RETRIES,
            });
            self.strong(cast[1], Kind::Load, Order::Relaxed, Scope::Gpu, flag, until);
        }
        let scope = self.scope();
        let kind = match self.random.below(5) {
            0 => Kind::Store(2),
            1 => Kind::Cas { expect: 1, new: 2 },
            2 => Kind::Reduce(1),
            _ => Kind::Add(1),
        };
        let order = self
            .random
            .pick(&[Order::Relaxed, Order::Relaxed, Order::Release]);
        self.strong(cast[1], kind, order, scope, flag, None);
        self.wait(cast[2], flag, 2);
        self.read_or_write(cast[2], data);
    }

    fn chain(&mut self) {
        let cast = self.cast(3);
        let (data, first, second) = (self.data(), self.flag(), self.flag());
        self.plain(cast[0], Kind::Store(7), data);
        self.signal(cast[0], first, 1);
        self.wait(cast[1], first, 1);
        self.signal(cast[1], second, 1);
        self.wait(cast[2], second, 1);
        self.read_or_write(cast[2], data);
        if self.random.chance(30) {
            // The flag itself is touched by whoever comes last.
            self.read_or_write(cast[2], first);
        }
    }

    /// Whoever has seen a flag goes on with it, plainly.
    fn handoff(&mut self) {
        let cast = self.cast(2);
        let flag = self.flag();
        let scope = self.scope();
        let kind = self
            .random
            .pick(&[Kind::Store(1), Kind::Add(1), Kind::Exchange(1)]);
        self.strong(cast[0], kind, Order::Relaxed, scope, flag, None);
        let until = Some(Until {
            condition: Condition::AtLeast(1),
            retries: RETRIES,
        });
        let kind = self.random.pick(&[Kind::Load, Kind::Add(1)]);
        self.strong(cast[1], kind, Order::Relaxed, scope, flag, until);
        self.read_or_write(cast[1], flag);
        self.plain(cast[1], Kind::Store(0), flag);
    }

    /// A strong write after a release of the same thread, to the same place.
    fn own_release_sequence(&mut self) {
        let cast = self.cast(2);
        let (data, flag) = (self.data(), self.flag());
        self.plain(cast[0], Kind::Store(7), data);
        self.strong(
            cast[0],
            Kind::Store(1),
            Order::Release,
            Scope::Gpu,
            flag,
            None,
        );
        if self.random.chance(20) {
            self.plain(cast[0], Kind::Store(8), data);
        }
        let kind = self.random.pick(&[Kind::Store(2), Kind::Exchange(2)]);
        self.strong(cast[0], kind, Order::Relaxed, Scope::Gpu, flag, None);
        self.wait(cast[1], flag, 2);
        self.read_or_write(cast[1], data);
    }

    fn barrier(&mut self) {
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
            (0..threads).for_each(|t| self.push((block, t), Op::Barrier));
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

    fn noise(&mut self) {
        for _ in 0..1 + self.random.below(3) {
            let who = self.anyone();
            match self.random.below(6) {
                0 => {
                    let order = self.random.pick(&[
                        Order::Acquire,
                        Order::Release,
                        Order::AcqRel,
                        Order::Sc,
                    ]);
                    let scope =
                        self.random
                            .pick(&[Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys]);
                    self.push(who, Op::Fence { order, scope });
                }
                1..=3 => {
                    let place = self.data();
                    self.read_or_write(who, place);
                }
                _ => self.any_strong(who),
            }
        }
    }

    fn any_strong(&mut self, who: Who) {
        let place = if self.random.chance(50) {
            self.flag()
        } else {
            self.data()
        };
        let value = self.random.below(4) as u32;
        let kind = match self.random.below(6) {
            0 => Kind::Store(value),
            1 => Kind::Load,
            2 => Kind::Exchange(value),
            3 => Kind::Cas {
                expect: value,
                new: value + 1,
            },
            4 => Kind::Reduce(1),
            _ => Kind::Add(1),
        };
        let orders: &[Order] = match kind {
            Kind::Load => &[Order::Relaxed, Order::Acquire],
            Kind::Store(_) | Kind::Reduce(_) => &[Order::Relaxed, Order::Release],
            _ => &[
                Order::Relaxed,
                Order::Acquire,
                Order::Release,
                Order::AcqRel,
            ],
        };
        // Atomics have 2 bytes at least, 4 where they add.
        let size = if kind.is_rmw() {
            place.size.clamp(4, 8)
        } else {
            place.size.min(8)
        };
        let place = Place {
            size,
            offset: place.offset / size * size,
            ..place
        };
        let order = self.random.pick(orders);
        let scope = self.scope();
        self.strong(who, kind, order, scope, place, None);
    }
}
