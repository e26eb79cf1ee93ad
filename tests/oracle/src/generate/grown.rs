//! What the wider kind has grown by: dependent launches, boxes of the program's tensor, copies to several blocks of a cluster, and
//! arrivals behind small copies.

use super::{Generator, Who};
use crate::boxes::Corner;
use crate::program::{
    Block, HostStep, Kernel, Kind, LEGACY, MBARRIERS, Mbarrier, Op, Place, Space, Transfer, Work,
};
use crate::setup::MAX_STEPS;
use gsan_device::layout::Scope;

impl Generator {
    pub(super) fn grown_shape(&mut self) {
        match self.random.below(6) {
            0 | 1 => self.small_behind_mbarrier(),
            2 | 3 => self.multicast(),
            4 => self.put(),
            _ => self.fetch(),
        }
    }

    /// A box with that place in it, where programs have some and there is one.
    pub(super) fn some_box(&mut self, what: Transfer, place: Place) -> Option<Corner> {
        if !self.grown || !self.random.chance(33) {
            return None;
        }
        let mut corner = Corner::at(place)?;
        // Stores have no negative coordinates.
        let reads = what.mechanism().is_none();
        if corner.y == 0 && reads || corner.y > 0 && self.random.chance(30) {
            // The place is in the second row; above the tensor there is nothing.
            corner.y -= 1;
        } else {
            // The next row is not for others.
            self.chunks += 32;
        }
        Some(corner)
    }

    /// Some of a block's threads read with small copies, and who waits for the mbarrier that follows them gives the source away.
    fn small_behind_mbarrier(&mut self) {
        let block = self.random.below(self.blocks().len());
        let all = self.threads_of(&[block]);
        let data = self.chunk(8);
        let plain = self.random.chance(40);
        // Where the arrivals behind the copies are not counted, each thread arrives by itself as well.
        let Some(index) = self.mbarrier(block, all.len()) else {
            return self.small_of_a_block();
        };
        let own = Mbarrier { rank: None, index };
        let behind = Op::ArriveBehindCopies {
            mbarrier: index,
            counted: !plain,
        };
        let rounds = 1 + self.random.below(2) as u32;
        let waiter = self.random.pick(&all);
        let broken = self.random.below(14);
        for round in 0..rounds {
            let last = round + 1 == rounds;
            for (i, &who) in all.iter().enumerate() {
                let place = Self::word(data, i);
                if broken == 0 {
                    self.push(who, behind);
                }
                self.push_small(who, place);
                if broken != 0 {
                    self.push(who, behind);
                }
                if plain {
                    self.arrive(who, own, 0, Scope::Cta);
                }
                if who == waiter && broken == 1 && last {
                    continue;
                }
                if who == waiter || !last || self.random.chance(30) {
                    self.await_phase(who, index, round);
                }
            }
        }
        let first = self.random.below(all.len());
        if self.random.chance(50) {
            self.plain(waiter, Kind::Store(1), Self::word(data, first));
            return;
        }
        let (flag, owner) = (self.flag(), self.anyone());
        self.signal(waiter, flag, 1);
        self.wait(owner, flag, 1);
        self.plain(owner, Kind::Store(1), Self::word(data, first));
    }

    fn push_small(&mut self, who: Who, place: Place) {
        let copy = self.some_copy(Transfer::Small, place);
        self.push(who, Op::Copy(copy));
    }

    /// An mbarrier of the same number in each of these blocks, for one arrival each.
    fn mbarriers(&mut self, blocks: &[usize]) -> Option<usize> {
        let count = |b: &usize| self.blocks()[*b].mbarriers.len();
        let index = blocks.iter().map(count).max()?;
        if index >= MBARRIERS {
            return None;
        }
        for &block in blocks {
            while self.mbarrier(block, 1)? < index {}
        }
        Some(index)
    }

    /// One block of a cluster fetches for several; each waits for its own mbarrier, and one of them then owns the source.
    fn multicast(&mut self) {
        let Some(cluster) = self.some_cluster() else {
            return self.small_behind_mbarrier();
        };
        let all = self.random.chance(80);
        let ranks: Vec<usize> = match all {
            true => (0..cluster.len()).collect(),
            false => vec![self.random.below(cluster.len())],
        };
        let blocks: Vec<usize> = ranks.iter().map(|&r| cluster[r]).collect();
        let Some(index) = self.mbarriers(&blocks) else {
            return self.fetch();
        };
        let data = self.chunk(4);
        let issuer = {
            let block = self.random.pick(&cluster);
            self.one_of(block)
        };
        let mask = ranks.iter().fold(0, |mask, rank| mask | 1 << rank);
        let what = Transfer::Multicast {
            index,
            blocks: mask,
        };
        let copy = self.some_copy(what, data);
        let own = Mbarrier { rank: None, index };
        let mut waiters = Vec::new();
        for &block in &blocks {
            let waiter = self.one_of(block);
            self.arrive(waiter, own, copy.bytes(), Scope::Cta);
            waiters.push(waiter);
        }
        if self.random.chance(30) {
            self.plain(issuer, Kind::Store(1), Self::word(data, 0));
        }
        self.push(issuer, Op::Copy(copy));
        let broken = self.random.below(10);
        for &waiter in &waiters {
            if broken != 0 {
                self.await_phase(waiter, index, 0);
            }
        }
        let owner = self.random.pick(&waiters);
        if self.random.chance(60) {
            return self.plain(owner, Kind::Store(2), Self::word(data, 1));
        }
        let (flag, next) = (self.flag(), self.anyone());
        self.signal(owner, flag, 1);
        self.wait(next, flag, 1);
        self.plain(next, Kind::Store(2), Self::word(data, 1));
    }

    /// Some kernels become dependent launches of the kernels before them, with `griddepcontrol.wait` in place most of the time.
    pub(super) fn dependent_launches(&mut self) {
        for next in 1..self.program.kernels.len() {
            if !self.random.chance(55) {
                continue;
            }
            self.follow_at_once(next);
            self.program.kernels[next].dependent = true;
            self.hand_over(next);
            self.let_begin(next - 1);
            self.wait_for_grid(next);
            if next > 1 && self.program.kernels[next - 1].dependent {
                self.hand_further(next);
            }
        }
    }

    /// Has a kernel launched right behind the one before it, in the same stream.
    fn follow_at_once(&mut self, next: usize) {
        let launches = |wanted: usize| move |s: &HostStep| matches!(*s, HostStep::Launch { kernel, .. } if kernel == wanted);
        let host = &mut self.program.host;
        let Some(at) = host.iter().position(launches(next)) else {
            return;
        };
        host.remove(at);
        if let Some(before) = host.iter().position(launches(next - 1)) {
            let stream = host[before].stream();
            let launch = HostStep::Launch {
                kernel: next,
                stream,
            };
            host.insert(before + 1, launch);
        }
    }

    /// Something that the kernel before writes and a dependent one reads or writes.
    fn hand_over(&mut self, next: usize) {
        let data = self.chunk(4);
        let (from, to) = (self.thread_of(next - 1), self.thread_of(next));
        let early = self.random.chance(50);
        let ops = self.ops(next - 1, from);
        let store = Self::plainly(Kind::Store(6), Self::word(data, 1));
        if early {
            ops.insert(0, store);
        } else {
            ops.push(store);
        }
        let kind = if self.random.chance(60) {
            Kind::Load
        } else {
            Kind::Store(7)
        };
        let (load, front) = (
            Self::plainly(kind, Self::word(data, 1)),
            self.random.chance(50),
        );
        let ops = self.ops(next, to);
        if front {
            ops.insert(0, load);
        } else {
            ops.push(load);
        }
    }

    /// Something that the kernel before the kernel before writes or reads, and a dependent one writes or reads, mostly before it waits. The
    /// one in between often lets it begin at once.
    fn hand_further(&mut self, next: usize) {
        if !self.random.chance(70) {
            return;
        }
        let data = self.chunk(4);
        let (from, to) = (self.thread_of(next - 2), self.thread_of(next));
        let stores = self.random.chance(50);
        let (first, second) = match stores {
            true => (Kind::Store(8), Kind::Load),
            false => (Kind::Load, Kind::Store(9)),
        };
        self.ops(next - 2, from)
            .push(Self::plainly(first, Self::word(data, 1)));
        let room = self.ops(next, to).len().min(2) + 1;
        let at = self.random.below(room);
        self.ops(next, to)
            .insert(at, Self::plainly(second, Self::word(data, 1)));
        if self.random.chance(40) {
            for block in 0..self.program.kernels[next - 1].blocks.len() {
                for thread in &mut self.program.kernels[next - 1].blocks[block].threads {
                    let at = thread.iter().position(|op| *op == Op::LaunchDependents);
                    if let Some(at) = at {
                        let op = thread.remove(at);
                        thread.insert(0, op);
                    }
                }
            }
        }
    }

    fn thread_of(&mut self, kernel: usize) -> Who {
        let blocks = self.program.kernels[kernel].blocks.len();
        let block = self.random.below(blocks);
        let threads = self.program.kernels[kernel].blocks[block].threads.len();
        (block, self.random.below(threads))
    }

    fn ops(&mut self, kernel: usize, (block, thread): Who) -> &mut Vec<Op> {
        &mut self.program.kernels[kernel].blocks[block].threads[thread]
    }

    /// `griddepcontrol.launch_dependents` somewhere in all or some blocks.
    fn let_begin(&mut self, kernel: usize) {
        let percent = self.random.pick(&[0, 60, 100, 100, 100]);
        for block in 0..self.program.kernels[kernel].blocks.len() {
            let threads = self.program.kernels[kernel].blocks[block].threads.len();
            let who = (block, self.random.below(threads));
            if self.random.chance(percent) {
                let room = self.ops(kernel, who).len() + 1;
                let at = self.random.below(room);
                self.ops(kernel, who).insert(at, Op::LaunchDependents);
            }
        }
    }

    /// `griddepcontrol.wait` at the start of all threads, or (25 in 100) later, in some or in none.
    fn wait_for_grid(&mut self, kernel: usize) {
        let (late, percent) = match self.random.below(100) {
            0..=9 => (true, 100),
            10..=19 => (false, 60),
            20..=24 => (false, 0),
            _ => (false, 100),
        };
        for block in 0..self.program.kernels[kernel].blocks.len() {
            for thread in 0..self.program.kernels[kernel].blocks[block].threads.len() {
                let room = self.ops(kernel, (block, thread)).len() + 1;
                let at = if late { self.random.below(room) } else { 0 };
                if self.random.chance(percent) {
                    self.ops(kernel, (block, thread)).insert(at, Op::GridWait);
                }
            }
        }
    }

    /// Some programs set, copy or read memory that kernels use, in a stream or as the host.
    pub(super) fn host_operations(&mut self) {
        if !self.random.chance(35) {
            return;
        }
        // As many grids can be told apart at a time.
        let room = 4usize.saturating_sub(self.program.kernels.len());
        for _ in 0..room.min(1 + self.random.below(2)) {
            self.host_operation();
        }
    }

    fn host_operation(&mut self) {
        let works = [
            Work::Memset,
            Work::Memset,
            Work::Copy,
            Work::ReadBack,
            Work::Write,
            Work::Read,
        ];
        let work = self.random.pick(&works);
        let (to, from) = (self.used_chunk(), self.used_chunk());
        let load = Self::plainly(Kind::Load, from);
        let ops = match work {
            Work::Grid | Work::Memset => vec![Self::plainly(Kind::Store(0), to)],
            Work::Write => vec![Self::plainly(Kind::Store(5), to)],
            Work::Copy => vec![load, Self::plainly(Kind::Paste, to)],
            Work::ReadBack | Work::Read => vec![load],
        };
        let waits = matches!(work, Work::Write | Work::Read);
        let used = self.program.host.iter().map(|s| s.stream());
        let streams: Vec<usize> = used.filter(|&s| s != LEGACY).collect();
        if streams.is_empty() {
            return;
        }
        let stream = if waits {
            LEGACY
        } else {
            self.random.pick(&streams)
        };
        let kernel = self.program.kernels.len();
        let mut steps = vec![HostStep::Launch { kernel, stream }];
        if waits {
            // The host may have waited for what comes before, and waits for the operation.
            if self.random.chance(50) {
                let stream = self.random.pick(&streams);
                steps.insert(0, HostStep::Synchronize { stream });
            }
            steps.push(HostStep::Synchronize { stream });
        }
        if self.program.host.len() + steps.len() > MAX_STEPS {
            return;
        }
        self.program.kernels.push(Kernel {
            cluster: 1,
            blocks: vec![Block {
                threads: vec![ops],
                ..Block::default()
            }],
            work,
            dependent: false,
        });
        let mut at = self.random.below(self.program.host.len() + 1);
        let host = &mut self.program.host;
        if at > 0 && host[at - 1].stream() == LEGACY {
            // Not before the wait for another.
            at = host.len();
        }
        host.splice(at..at, steps);
    }

    /// A piece of memory that some kernel touches, or perhaps none.
    fn used_chunk(&mut self) -> Place {
        let ops = self.program.threads().flat_map(|(.., ops)| ops);
        let places = ops.filter_map(|op| match op {
            Op::Access(access) => Some(access.place),
            Op::Copy(copy) => Some(copy.place),
            _ => None,
        });
        // The words below are flags.
        let suits = |p: &Place| p.space == Space::Checked && p.offset >= 64;
        let places: Vec<Place> = places.filter(suits).collect();
        let offset = match places.is_empty() || self.random.chance(10) {
            true => 64 + 16 * self.random.below(12) as u32,
            false => self.random.pick(&places).offset / 16 * 16,
        };
        Place {
            space: Space::Checked,
            offset,
            size: 16,
        }
    }
}
