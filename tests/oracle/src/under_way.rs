//! What a run's threads have under way: asynchronous copies and their groups, mbarriers, the clusters' barriers.
//!
//! This says when who may go on, wherever the program runs; what follows from it for the order of accesses is the oracle's
//! affair.

use crate::program::{Arrival, AsyncCopy, Mbarrier, Mechanism, Op, Place, Program, Transfer};
use crate::semantics::threads_of;
use crate::setup::MEMORY;
use crate::trace::{Access, CopyInfo, Item, ThreadInfo, mbarrier_number};

/// The state of a run's asynchronous part.
pub struct UnderWay<'a> {
    program: &'a Program,
    threads: Vec<ThreadInfo>,
    copies: Vec<Issued>,
    /// Of each thread: groups that it has committed, of small copies and of bulk copies.
    committed: Vec<[usize; 2]>,
    /// By [`mbarrier_number`].
    mbarriers: Vec<Phases>,
    /// Arrivals that wait for small copies.
    followers: Vec<Follower>,
    /// How often each thread has arrived at its cluster's barrier.
    arrivals: Vec<u32>,
    /// How often each cluster's barrier has opened.
    opened: Vec<u32>,
}

/// `cp.async.mbarrier.arrive`
struct Follower {
    thread: usize,
    mbarrier: usize,
    copies: Vec<usize>,
}

/// A copy that has been issued.
struct Issued {
    info: CopyInfo,
    /// The number of its group among its thread's, once that is committed.
    group: Option<usize>,
    done: bool,
}

/// An mbarrier.
#[derive(Clone, Copy, Default)]
struct Phases {
    expected: u32,
    pending: u32,
    /// Bytes announced and not yet there.
    bytes: i64,
    /// Phases that are over.
    over: u32,
}

impl Phases {
    /// Ends the phase if nothing is missing.
    fn advance(&mut self) -> bool {
        let ends = self.expected > 0 && self.pending == 0 && self.bytes == 0;
        if ends {
            self.pending = self.expected;
            self.over += 1;
        }
        ends
    }
}

impl<'a> UnderWay<'a> {
    /// Nothing is.
    pub fn new(program: &'a Program) -> UnderWay<'a> {
        let threads = threads_of(program);
        let blocks = threads.last().map_or(0, |t| t.global_block + 1);
        let mut mbarriers = vec![Phases::default(); mbarrier_number(blocks, 0)];
        let all = program.kernels.iter().flat_map(|k| &k.blocks);
        for (b, block) in all.enumerate() {
            for (i, &expected) in block.mbarriers.iter().enumerate() {
                if let Some(phases) = mbarriers.get_mut(mbarrier_number(b, i)) {
                    *phases = Phases {
                        expected,
                        pending: expected,
                        ..Phases::default()
                    };
                }
            }
        }
        UnderWay {
            program,
            copies: Vec::new(),
            committed: vec![[0; 2]; threads.len()],
            mbarriers,
            followers: Vec::new(),
            arrivals: vec![0; threads.len()],
            opened: vec![0; threads.last().map_or(0, |t| t.cluster + 1)],
            threads,
        }
    }

    /// The number of an mbarrier that a thread names, and its block's; none if there is no such block or mbarrier.
    fn find(&self, thread: usize, at: Mbarrier) -> Option<usize> {
        let info = self.threads[thread];
        let cluster = self.program.kernels[info.kernel].cluster.max(1);
        let block = match at.rank {
            None => info.block,
            Some(rank) => info.block / cluster * cluster + rank,
        };
        let blocks = &self.program.kernels[info.kernel].blocks;
        let exists = blocks.get(block)?.mbarriers.len() > at.index;
        exists.then(|| mbarrier_number(info.global_block - info.block + block, at.index))
    }

    /// Copies that are to be carried out, of all kernels.
    pub fn to_do(&self) -> impl Iterator<Item = usize> {
        let all = self.copies.iter().enumerate();
        all.filter(|(_, c)| !c.done).map(|(n, _)| n)
    }

    /// Whether all copies of a kernel have been carried out.
    pub fn is_done(&self, kernel: usize) -> bool {
        self.to_do()
            .all(|c| self.threads[self.copies[c].info.thread].kernel != kernel)
    }

    /// The copies so far.
    pub fn copies(&self) -> Vec<CopyInfo> {
        self.copies.iter().map(|c| c.info).collect()
    }

    /// Who has issued a copy.
    pub fn issuer(&self, copy: usize) -> usize {
        self.copies[copy].info.thread
    }

    /// The phase of an mbarrier of the thread's block that is not over.
    pub fn present_phase(&self, thread: usize, index: usize) -> u32 {
        let own = Mbarrier { rank: None, index };
        let number = self.find(thread, own);
        number.map_or(0, |m| self.mbarriers[m].over)
    }

    /// Whether the thread needs not wait at its next instruction.
    pub fn is_ready(&self, thread: usize, op: &Op) -> bool {
        match *op {
            Op::WaitGroup { of, but, read } => {
                read || self.over(thread, of, but).all(|c| self.copies[c].done)
            }
            Op::Await {
                mbarrier, phase, ..
            } => {
                let own = Mbarrier {
                    rank: None,
                    index: mbarrier,
                };
                let number = self.find(thread, own);
                number.is_none_or(|m| self.mbarriers[m].over > phase)
            }
            Op::ClusterWait => self.opened[self.threads[thread].cluster] >= self.arrivals[thread],
            _ => true,
        }
    }

    /// The thread's copies in all but its `but` youngest groups.
    fn over(&self, thread: usize, of: Mechanism, but: usize) -> impl Iterator<Item = usize> {
        let end = self.committed[thread][of as usize].saturating_sub(but);
        let all = self.copies.iter().enumerate();
        let mine = all.filter(move |(_, c)| {
            c.info.thread == thread
                && c.info.copy.what.mechanism() == Some(of)
                && c.group.is_some_and(|g| g < end)
        });
        mine.map(|(n, _)| n)
    }

    /// Does a thread's instruction, which is neither an access nor a fence nor a block's barrier.
    pub fn step(&mut self, thread: usize, index: usize, op: &Op, items: &mut Vec<Item>) {
        match *op {
            Op::Copy(copy) => {
                items.push(Item::Issue(self.copies.len()));
                self.copies.push(Issued {
                    info: CopyInfo {
                        thread,
                        index,
                        copy,
                    },
                    group: None,
                    done: false,
                });
            }
            Op::Commit(of) => {
                let group = self.committed[thread][of as usize];
                self.committed[thread][of as usize] += 1;
                let open = self.copies.iter_mut().filter(|c| {
                    c.info.thread == thread
                        && c.info.copy.what.mechanism() == Some(of)
                        && c.group.is_none()
                });
                open.for_each(|c| c.group = Some(group));
                items.push(Item::Commit(thread));
            }
            Op::WaitGroup { of, but, read } => {
                let over = match read {
                    true => Vec::new(),
                    false => self.over(thread, of, but).collect(),
                };
                items.push(Item::GroupWait { thread, of, over });
            }
            Op::Arrive(Arrival {
                at,
                bytes,
                relaxed,
                scope,
            }) => {
                let Some(mbarrier) = self.find(thread, at) else {
                    // The step is one all the same.
                    items.push(Item::Commit(thread));
                    return;
                };
                items.push(Item::MbarrierArrive {
                    thread,
                    mbarrier,
                    relaxed,
                    scope,
                });
                let phases = &mut self.mbarriers[mbarrier];
                phases.bytes += i64::from(bytes);
                phases.pending = phases.pending.saturating_sub(1);
                if phases.advance() {
                    items.push(Item::MbarrierPhase(mbarrier));
                }
            }
            Op::Await {
                mbarrier, scope, ..
            } => items.push(Item::MbarrierWait {
                thread,
                mbarrier: mbarrier_number(self.threads[thread].global_block, mbarrier),
                scope,
            }),
            Op::ClusterArrive { relaxed } => {
                self.arrivals[thread] += 1;
                items.push(Item::ClusterArrive(thread, relaxed));
            }
            Op::ClusterWait => items.push(Item::ClusterWait(thread)),
            Op::ArriveBehindCopies { mbarrier, counted } => {
                items.push(Item::Follow(thread));
                let own = Mbarrier {
                    rank: None,
                    index: mbarrier,
                };
                let Some(mbarrier) = self.find(thread, own) else {
                    return;
                };
                self.mbarriers[mbarrier].pending += u32::from(!counted);
                let all = self.copies.iter().enumerate();
                let small = |c: &Issued| c.info.copy.what == Transfer::Small;
                let mine = all.filter(|(_, c)| c.info.thread == thread && small(c));
                let copies = mine.map(|(n, _)| n).collect();
                self.followers.push(Follower {
                    thread,
                    mbarrier,
                    copies,
                });
                self.arrive_behind_copies(items);
            }
            Op::LaunchDependents => items.push(Item::LaunchDependents(thread)),
            Op::GridWait => items.push(Item::GridWait(thread)),
            Op::Access(_) | Op::Fence { .. } | Op::Barrier(_) => {}
        }
    }

    /// The arrivals that waited for copies which are done now.
    fn arrive_behind_copies(&mut self, items: &mut Vec<Item>) {
        let over = |f: &Follower| f.copies.iter().all(|&c| self.copies[c].done);
        let (over, left) = std::mem::take(&mut self.followers)
            .into_iter()
            .partition(over);
        self.followers = left;
        let over: Vec<Follower> = over;
        for Follower {
            thread,
            mbarrier,
            copies,
        } in over
        {
            items.push(Item::Followed {
                thread,
                mbarrier,
                copies,
            });
            let phases = &mut self.mbarriers[mbarrier];
            phases.pending = phases.pending.saturating_sub(1);
            if phases.advance() {
                items.push(Item::MbarrierPhase(mbarrier));
            }
        }
    }

    /// Opens the clusters' barriers where all have arrived that are not `gone`.
    pub fn open_clusters(&mut self, gone: impl Fn(usize) -> bool) {
        for cluster in 0..self.opened.len() {
            let of = |t: &usize| self.threads[*t].cluster == cluster;
            let live = (0..self.threads.len()).filter(|t| of(t) && !gone(*t));
            let least = live.map(|t| self.arrivals[t]).min();
            if let Some(least) = least {
                self.opened[cluster] = self.opened[cluster].max(least);
            }
        }
    }

    /// Carries a copy out. Its accesses get the numbers from `id` on: one, or of a reduction one for each word.
    pub fn carry_out(
        &mut self,
        copy: usize,
        id: usize,
        memory: &mut [u8; MEMORY],
        items: &mut Vec<Item>,
    ) {
        let CopyInfo {
            thread,
            index,
            copy: what,
        } = self.copies[copy].info;
        self.copies[copy].done = true;
        for piece in what.pieces() {
            let start = piece.start() as usize;
            let bytes = &mut memory[start..start + piece.size as usize];
            for word in bytes.chunks_exact_mut(4) {
                let old = word.try_into().map_or(0, u32::from_le_bytes);
                let new = match what.what {
                    Transfer::Put(v) => v,
                    Transfer::Reduce(v) => old.wrapping_add(v),
                    Transfer::Small | Transfer::Fetch(_) | Transfer::Multicast { .. } => old,
                };
                word.copy_from_slice(&new.to_le_bytes());
            }
        }
        for (n, place) in what.accesses().into_iter().enumerate() {
            let access = Access {
                thread,
                index,
                copy: Some(copy),
                ..access_of(&what, place)
            };
            items.push(Item::Access(id + n, access));
        }
        for at in self.completes_on(thread, what.what) {
            items.push(Item::Completes(copy, at));
            let phases = &mut self.mbarriers[at];
            phases.bytes -= i64::from(what.bytes());
            if phases.advance() {
                items.push(Item::MbarrierPhase(at));
            }
        }
        self.arrive_behind_copies(items);
    }

    /// The mbarriers that learn of a copy's end.
    fn completes_on(&self, thread: usize, what: Transfer) -> Vec<usize> {
        match what {
            Transfer::Fetch(at) => self.find(thread, at).into_iter().collect(),
            Transfer::Multicast { index, blocks } => {
                let ranks = (0..16).filter(|rank| blocks & 1 << rank != 0);
                let of = |rank| Mbarrier {
                    rank: Some(rank),
                    index,
                };
                ranks.filter_map(|r| self.find(thread, of(r))).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// How many accesses a copy is.
pub fn accesses_of(copy: &AsyncCopy) -> usize {
    copy.accesses().len()
}

/// A copy's access at a place, as nobody's.
fn access_of(copy: &AsyncCopy, place: Place) -> Access {
    let reduction = matches!(copy.what, Transfer::Reduce(_));
    let writes = reduction || matches!(copy.what, Transfer::Put(_));
    let (order, scope) = copy.strength();
    Access {
        thread: 0,
        index: 0,
        copy: None,
        place,
        reads: reduction || !writes,
        writes,
        reduction,
        attempt: false,
        order,
        scope,
    }
}
