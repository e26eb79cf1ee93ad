//! Shapes of synchronisation between any threads.

use super::{Generator, RETRIES, Who};
use crate::program::{Condition, Kind, Op, Place, Until};
use gsan_device::layout::{Order, Scope};

impl Generator {
    pub(super) fn message(&mut self) {
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

    pub(super) fn lock(&mut self) {
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

    pub(super) fn counter(&mut self) {
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

    pub(super) fn last_block(&mut self) {
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

    pub(super) fn sequence(&mut self) {
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

    pub(super) fn chain(&mut self) {
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
    pub(super) fn handoff(&mut self) {
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
    pub(super) fn own_release_sequence(&mut self) {
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

    pub(super) fn noise(&mut self) {
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

    pub(super) fn any_strong(&mut self, who: Who) {
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
