//! Asynchronous copies, each with its wait in place most of the time.

use super::{Generator, RETRIES, Who};
use crate::program::{AsyncCopy, Condition, Kind, Mbarrier, Mechanism, Op, Place, Transfer, Until};
use gsan_device::layout::{Order, Scope};

impl Generator {
    fn copy(&mut self, who: Who, what: Transfer, place: Place) {
        let copy = self.some_copy(what, place);
        self.push(who, Op::Copy(copy));
    }

    /// A copy of that place, perhaps as part of a box.
    pub(super) fn some_copy(&mut self, what: Transfer, place: Place) -> AsyncCopy {
        let corner = match what {
            Transfer::Small => None,
            _ => self.some_box(what, place),
        };
        AsyncCopy {
            what,
            place: corner.and_then(|c| c.rows().next()).unwrap_or(place),
            corner,
        }
    }

    fn commit(&mut self, who: Who, of: Mechanism) {
        self.push(who, Op::Commit(of));
    }

    fn wait_group(&mut self, who: Who, of: Mechanism, but: usize) {
        let read = false;
        self.push(who, Op::WaitGroup { of, but, read });
    }

    /// A copy or reduction to global memory.
    fn some_put(&mut self) -> Transfer {
        if self.random.chance(25) {
            Transfer::Reduce(1)
        } else {
            Transfer::Put(4)
        }
    }

    /// Issues it, and waits (or, 20 in 100, does something like it).
    fn put_and_wait(&mut self, who: Who, what: Transfer, place: Place) {
        let broken = self.random.below(20);
        self.copy(who, what, place);
        if broken != 0 {
            self.commit(who, Mechanism::Bulk);
        }
        let wait = Op::WaitGroup {
            of: Mechanism::Bulk,
            but: usize::from(broken == 1),
            read: broken == 2,
        };
        if broken != 3 {
            self.push(who, wait);
        }
    }

    /// Nobody waits but the kernel's end.
    pub(super) fn put_and_leave(&mut self, who: Who, place: Place) {
        let what = self.some_put();
        self.copy(who, what, place);
        if self.random.chance(80) {
            self.commit(who, Mechanism::Bulk);
        }
    }

    pub(super) fn small_and_leave(&mut self, who: Who, place: Place) {
        self.copy(who, Transfer::Small, Self::word(place, 1));
        if self.random.chance(60) {
            self.commit(who, Mechanism::Small);
            self.wait_group(who, Mechanism::Small, 0);
        }
    }

    /// A block's result goes to global memory, and a flag says so.
    pub(super) fn put(&mut self) {
        let cast = self.cast(3);
        let (data, ready, flag) = (self.chunk(4), self.flag(), self.flag());
        let before = self.random.chance(40);
        if before {
            // Somebody else is done with the place.
            self.read_or_write(cast[2], Self::word(data, 2));
            self.signal(cast[2], ready, 1);
            self.wait(cast[0], ready, 1);
        }
        let what = self.some_put();
        self.put_and_wait(cast[0], what, data);
        self.signal(cast[0], flag, 1);
        self.wait(cast[1], flag, 1);
        self.read_or_write(cast[1], Self::word(data, 1));
    }

    /// Two results in groups of their own: one may be used before the other.
    pub(super) fn put_groups(&mut self) {
        let cast = self.cast(2);
        let (first, second, flag) = (self.chunk(4), self.chunk(4), self.flag());
        for place in [first, second] {
            self.copy(cast[0], Transfer::Put(5), place);
            self.commit(cast[0], Mechanism::Bulk);
        }
        self.wait_group(cast[0], Mechanism::Bulk, 1);
        self.signal(cast[0], flag, 1);
        self.wait(cast[1], flag, 1);
        let early = self.random.chance(20);
        let place = if early { second } else { first };
        self.read_or_write(cast[1], Self::word(place, 0));
        if self.random.chance(50) {
            let flag = self.flag();
            self.wait_group(cast[0], Mechanism::Bulk, 0);
            self.signal(cast[0], flag, 1);
            self.wait(cast[1], flag, 1);
            self.read_or_write(cast[1], Self::word(second, 3));
        }
    }

    /// One of a block's threads puts, and the others read behind a barrier.
    pub(super) fn put_to_block(&mut self) {
        let Some(block) = self.busy_block() else {
            return self.put();
        };
        let all = self.threads_of(&[block]);
        let (data, issuer) = (self.chunk(4), self.random.pick(&all));
        let what = self.some_put();
        self.put_and_wait(issuer, what, data);
        if !self.random.chance(8) {
            self.barrier_of_all(block);
        }
        for who in all {
            let i = self.random.below(4);
            self.plain(who, Kind::Load, Self::word(data, i));
        }
    }

    /// A source is written elsewhere, fetched, and given back when the copy has arrived.
    pub(super) fn fetch(&mut self) {
        let cast = self.cast(3);
        let (writer, issuer, owner) = (cast[0], cast[1], cast[2]);
        let (data, ready, free) = (self.chunk(4), self.flag(), self.flag());
        let Some(index) = self.mbarrier(issuer.0, 1) else {
            return self.put();
        };
        self.plain(writer, Kind::Store(2), Self::word(data, 1));
        self.signal(writer, ready, 1);
        self.wait(issuer, ready, 1);
        let at = Mbarrier { rank: None, index };
        self.issue_fetch(issuer, at, data);
        let early = self.random.chance(10);
        if early {
            self.signal(issuer, free, 1);
        }
        let waiter = self.one_of(issuer.0);
        if !self.random.chance(6) {
            self.await_phase(waiter, index, 0);
        }
        if !early {
            self.signal(waiter, free, 1);
        }
        self.wait(owner, free, 1);
        self.plain(owner, Kind::Store(3), Self::word(data, 2));
    }

    /// Announces the bytes and fetches them, or the other way round.
    fn issue_fetch(&mut self, who: Who, at: Mbarrier, data: Place) {
        let cluster = self.program.kernels.last().is_some_and(|k| k.cluster > 1);
        let scope = if cluster && self.random.chance(50) {
            Scope::Cluster
        } else {
            Scope::Cta
        };
        let announced_first = !self.random.chance(10);
        let copy = self.some_copy(Transfer::Fetch(at), data);
        if announced_first {
            self.arrive(who, at, copy.bytes(), scope);
        }
        self.push(who, Op::Copy(copy));
        if !announced_first {
            self.arrive(who, at, copy.bytes(), scope);
        }
    }

    /// A block fetches what it or its cluster has written, in one or two phases, and writes it again.
    pub(super) fn fetch_into_block(&mut self) {
        let block = self.random.below(self.blocks().len());
        let all = self.threads_of(&[block]);
        let issuer = self.random.pick(&all);
        let (waiter, owner) = (self.random.pick(&all), self.random.pick(&all));
        let far = self.some_cluster().filter(|_| self.random.chance(25));
        let data = self.chunk(4);
        // Who has written it: the block, behind a barrier, or one thread, behind one with the issuer alone.
        self.plain(owner, Kind::Store(1), Self::word(data, 1));
        match (owner == issuer, self.random.below(3)) {
            (true, _) => {}
            (_, 0) => {
                self.named_barrier(block, &[issuer.1], &[owner.1], 1);
            }
            _ => self.barrier_of_all(block),
        }
        if let Some(cluster) = far
            && let Some(rank) = cluster.iter().position(|&b| b != block)
            && cluster.contains(&block)
        {
            return self.fetch_to(issuer, cluster[rank], rank, data);
        }
        let Some(index) = self.mbarrier(block, 1) else {
            return self.team();
        };
        let at = Mbarrier { rank: None, index };
        let phases = 1 + self.random.below(2) as u32;
        let mut broken = false;
        for phase in 0..phases {
            self.issue_fetch(issuer, at, data);
            // Who issues the next phase has to wait for this one: an arrival too many is undefined.
            let goes_on = waiter == issuer && phase + 1 < phases;
            // Who has not waited for a phase takes its parity for the next one's.
            broken |= self.random.chance(8) && !goes_on;
            if !broken {
                self.await_phase(waiter, index, phase);
            }
            if waiter != issuer {
                // The next phase must not begin before this one is over.
                self.await_phase(issuer, index, phase);
            }
            // A phase is waited for before the next one begins: mbarriers know its parity only.
            let too_early = owner != waiter && self.random.chance(8);
            if too_early {
                self.plain(owner, Kind::Store(2), Self::word(data, 2));
            }
            if owner != waiter {
                self.barrier_of_two(block, waiter.1, owner.1);
            }
            if !too_early {
                self.plain(owner, Kind::Store(2), Self::word(data, 2));
            }
            if owner != issuer {
                self.barrier_of_two(block, issuer.1, owner.1);
            }
        }
    }

    fn barrier_of_two(&mut self, block: usize, one: usize, other: usize) {
        if self.random.chance(50) {
            self.named_barrier(block, &[one, other], &[], 1);
        } else {
            self.barrier_of_all(block);
        }
    }

    /// A fetch into another block of the cluster, which waits for it and then owns the source.
    fn fetch_to(&mut self, issuer: Who, block: usize, rank: usize, data: Place) {
        let Some(index) = self.mbarrier(block, 1) else {
            return;
        };
        let waiter = self.one_of(block);
        let own = Mbarrier { rank: None, index };
        let at = Mbarrier {
            rank: Some(rank),
            index,
        };
        let copy = self.some_copy(Transfer::Fetch(at), data);
        self.arrive(waiter, own, copy.bytes(), Scope::Cta);
        self.push(issuer, Op::Copy(copy));
        if !self.random.chance(10) {
            self.await_phase(waiter, index, 0);
        }
        self.plain(waiter, Kind::Store(4), Self::word(data, 0));
    }

    /// Small copies in one or two groups, and a flag that gives their source away.
    pub(super) fn small(&mut self) {
        let cast = self.cast(2);
        let (data, flag) = (self.chunk(8), self.flag());
        let groups = 1 + self.random.below(2);
        for i in 0..groups {
            self.copy(cast[0], Transfer::Small, Self::word(data, i));
            if !self.random.chance(6) {
                self.commit(cast[0], Mechanism::Small);
            }
        }
        let but = if groups == 2 && self.random.chance(30) {
            1
        } else {
            0
        };
        if !self.random.chance(10) {
            self.wait_group(cast[0], Mechanism::Small, but);
        }
        self.signal(cast[0], flag, 1);
        self.wait(cast[1], flag, 1);
        self.plain(cast[1], Kind::Store(1), Self::word(data, 0));
    }

    /// All of a block's threads copy, wait and meet; then the source is theirs.
    pub(super) fn small_of_a_block(&mut self) {
        let block = self.random.below(self.blocks().len());
        let all = self.threads_of(&[block]);
        let data = self.chunk(8);
        let rounds = 1 + self.random.below(2);
        for _ in 0..rounds {
            for (i, &who) in all.iter().enumerate() {
                self.copy(who, Transfer::Small, Self::word(data, i));
                self.commit(who, Mechanism::Small);
            }
            let broken = self.random.below(16);
            for &who in &all {
                if broken != 0 {
                    self.wait_group(who, Mechanism::Small, 0);
                }
            }
            if broken != 1 {
                self.barrier_of_all(block);
            }
            for &who in &all {
                let i = self.random.below(all.len());
                if self.random.chance(20) {
                    self.plain(who, Kind::Store(1), Self::word(data, i));
                    self.barrier_of_all(block);
                    break;
                }
            }
        }
    }

    /// Several blocks add to one place by the copy engine, one with ordinary atomics, and the last one reads the sums.
    pub(super) fn reduce(&mut self) {
        let count = 2 + self.random.below(2);
        let cast = self.cast(count);
        let (sums, counter) = (self.chunk(4), self.flag());
        for (i, &who) in cast.iter().enumerate() {
            if i == 1 && self.random.chance(30) {
                let kind = Kind::Reduce(1);
                let place = Self::word(sums, 1);
                self.strong(who, kind, Order::Relaxed, Scope::Gpu, place, None);
            } else {
                self.put_and_wait(who, Transfer::Reduce(1), sums);
            }
            let scope = self.scope();
            let order = self.random.pick(&[Order::Release, Order::AcqRel]);
            self.strong(who, Kind::Add(1), order, scope, counter, None);
        }
        let reader = self.anyone();
        let until = Some(Until {
            condition: Condition::AtLeast(count as u32),
            retries: RETRIES,
        });
        let scope = Scope::Gpu;
        self.strong(reader, Kind::Load, Order::Acquire, scope, counter, until);
        self.read_or_write(reader, Self::word(sums, 1));
    }
}
