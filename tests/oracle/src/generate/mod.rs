//! Random programs, biased towards the shapes of real synchronisation: each with its halves in place most of the time,
//! and one of them missing, too weak or too narrow often enough.

mod clusters;
mod copies;
mod grown;
mod shapes;
mod team;
pub mod wide;

use crate::program::{
    Access, Block, Condition, HostStep, Kernel, Kind, Op, Place, Program, Space, Until,
};
use crate::random::Random;
use crate::setup::MAX_STEPS;
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
    /// Per block of the kernel under construction: barriers that nobody uses yet.
    barriers: Vec<u32>,
    /// Of the wider kind: bytes that copies use so far.
    chunks: u32,
    /// Of the wider kind: with dependent launches, boxes of the tensor, multicasts and arrivals behind copies.
    grown: bool,
}

/// A block and a thread of the kernel under construction.
type Who = (usize, usize);

/// A random program.
pub fn program(seed: u64, widths: Widths) -> Program {
    let mut g = Generator::new(seed, widths);
    let kernels = g.random.pick(&[1, 1, 1, 2, 2, 3]);
    for _ in 0..kernels {
        g.kernel();
    }
    g.host();
    g.program
}

impl Generator {
    fn new(seed: u64, widths: Widths) -> Generator {
        Generator {
            random: Random::new(seed),
            widths,
            program: Program::default(),
            flags: 0,
            barriers: Vec::new(),
            chunks: 0,
            grown: false,
        }
    }

    fn kernel(&mut self) {
        let blocks = if self.program.kernels.is_empty() {
            2 + self.random.below(3)
        } else {
            1 + self.random.below(3)
        };
        let many_threads = self.random.chance(55);
        let blocks: Vec<Block> = (0..blocks).map(|_| self.block(many_threads)).collect();
        self.barriers = vec![1; blocks.len()];
        let cluster = if self.random.chance(10) { 2 } else { 1 };
        self.program.kernels.push(Kernel {
            cluster,
            blocks,
            ..Kernel::default()
        });
        for _ in 0..1 + self.random.below(3) {
            match self.random.below(if many_threads { 20 } else { 14 }) {
                0..=2 => self.message(),
                3 | 4 => self.lock(),
                5 => self.counter(),
                6 | 7 => self.last_block(),
                8 => self.sequence(),
                9 => self.chain(),
                10 => self.handoff(),
                11 => self.barrier(),
                12 => self.own_release_sequence(),
                13 => self.noise(),
                14 | 15 => self.team(),
                16 => self.block_message(),
                17 | 18 => self.team_release(),
                _ => self.producer_consumer(),
            }
        }
        if self.random.chance(30) {
            self.noise();
        }
    }

    fn block(&mut self, many_threads: bool) -> Block {
        let mut block = Block {
            threads: vec![Vec::new()],
            lanes: 1,
            mbarriers: Vec::new(),
        };
        if many_threads {
            let threads = 1 + self.random.below(4);
            block.threads.resize(threads, Vec::new());
            // Two lanes of a warp that go separate ways.
            if threads > 1 && self.random.chance(12) {
                block.lanes = 2;
            }
        }
        block
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
        if self.random.chance(20)
            && let Some(block) = self.busy_block()
        {
            let threads = self.blocks()[block].threads.len();
            let first = self.random.below(threads);
            return (0..n).map(|i| (block, (first + i) % threads)).collect();
        }
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

    /// A block with several threads.
    fn busy_block(&mut self) -> Option<usize> {
        let busy: Vec<usize> = (0..self.blocks().len())
            .filter(|&b| self.blocks()[b].threads.len() > 1)
            .collect();
        (!busy.is_empty()).then(|| self.random.pick(&busy))
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
        self.push(who, Self::plainly(kind, place));
    }

    fn plainly(kind: Kind, place: Place) -> Op {
        Op::Access(Access {
            kind,
            order: Order::Weak,
            scope: Scope::None,
            volatile: false,
            place,
            until: None,
        })
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
        let kind = match self.random.below(11) {
            0 | 1 => Kind::Exchange(value),
            2 | 3 => Kind::Add(value),
            4 | 5 => Kind::Reduce(value),
            6 => Kind::Cas {
                expect: 0,
                new: value,
            },
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
                (false, Kind::Exchange(_) | Kind::Add(_) | Kind::Cas { .. })
                    if self.random.chance(50) =>
                {
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
}
