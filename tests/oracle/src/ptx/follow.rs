//! Turns the machine's record of a program into a trace.

use super::emit::{self, At, Module};
use super::run::{Error, Result};
use crate::program::{AsyncCopy, HostStep, LEGACY, Mbarrier, Op, Program, Space, Transfer, Work};
use crate::semantics::{self, operations_of};
use crate::setup::{Format, MEMORY};
use crate::trace::{Item, Trace};
use crate::under_way::{UnderWay, accesses_of};
use gsan_sim::machine::{GridId, TraceStep};
use std::collections::{BTreeMap, VecDeque};

/// Where an access stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The thread whose line it is: of a graph's kernel, the first launch's.
    pub(super) thread: usize,
    /// Its operation.
    pub(super) op: usize,
    /// Whether it is an asynchronous copy.
    pub(super) copy: bool,
}

/// A grid of the program's.
#[derive(Clone, Copy)]
struct Grid {
    step: usize,
    /// The node, if it is a graph's.
    node: Option<usize>,
    kernel: usize,
    /// What to add to the number of the thread whose line it is.
    threads: usize,
}

/// Streams, and the host's own.
const QUEUES: usize = LEGACY + 1;

/// Follows a program.
pub(super) struct Follower<'a> {
    number: usize,
    /// Where its checked memory begins.
    data: u64,
    /// The program.
    pub(super) program: &'a Program,
    module: &'a Module,
    trace: Trace,
    memory: [u8; MEMORY],
    under_way: UnderWay<'a>,
    /// Threads that wait at their cluster's barrier or for the grid before theirs, or have waited and done nothing since.
    waits_at: Vec<Option<Op>>,
    left: Vec<bool>,
    /// Whether the hook of a copy asks its mbarrier for the phase, on the copy's line.
    asks: bool,
    /// Threads whose copy has been asked for.
    asked: Vec<bool>,
    sites: Vec<Site>,
    grids: BTreeMap<GridId, Grid>,
    /// Kernels that have begun and ended.
    begun: Vec<bool>,
    ended: Vec<bool>,
    /// Per stream: steps that have not happened, the kernels or the graph that run, and what began last.
    queues: [VecDeque<usize>; QUEUES],
    running: [Vec<usize>; QUEUES],
    last: [Option<usize>; QUEUES],
    /// Per wait: the recording that it is for.
    waits_for: BTreeMap<usize, usize>,
    recorded: Vec<usize>,
    /// Who waits at which barrier of which block.
    waiting: BTreeMap<(usize, u32), Vec<usize>>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        number: usize,
        data: u64,
        program: &'a Program,
        module: &'a Module,
        format: Format,
    ) -> Follower<'a> {
        let threads = semantics::threads_of(program);
        Follower {
            number,
            data,
            program,
            module,
            memory: [0; MEMORY],
            under_way: UnderWay::new(program),
            waits_at: vec![None; threads.len()],
            left: vec![false; threads.len()],
            asks: format == Format::Wide,
            asked: vec![false; threads.len()],
            trace: Trace {
                threads,
                graphs: program.graphs.clone(),
                dependent: program.kernels.iter().map(|k| k.dependent).collect(),
                operations: operations_of(program),
                copies: Vec::new(),
                items: Vec::new(),
            },
            sites: Vec::new(),
            grids: BTreeMap::new(),
            begun: vec![false; program.kernels.len()],
            ended: vec![false; program.kernels.len()],
            queues: Default::default(),
            running: Default::default(),
            last: Default::default(),
            waits_for: BTreeMap::new(),
            recorded: Vec::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// The host has taken a step.
    pub(super) fn host(&mut self, index: usize, step: HostStep) -> Result<()> {
        self.trace.items.push(Item::Host(index, step));
        match step {
            HostStep::Wait { event, .. } => {
                let of = self.program.host[..index]
                    .iter()
                    .rposition(|s| matches!(*s, HostStep::Record { event: e, .. } if e == event));
                if let Some(of) = of {
                    self.waits_for.insert(index, of);
                }
            }
            HostStep::Synchronize { .. } => return Ok(()),
            HostStep::Launch { .. } | HostStep::Record { .. } | HostStep::Graph { .. } => {}
        }
        self.queues[step.stream() % QUEUES].push_back(index);
        self.settle();
        Ok(())
    }

    /// Lets recordings and waits happen that can. When they do makes no difference: what they pass on is fixed.
    fn settle(&mut self) {
        loop {
            let possible = (0..QUEUES).find_map(|s| {
                let &step = self.queues[s].front()?;
                let ready = match self.program.host[step] {
                    HostStep::Record { .. } => true,
                    HostStep::Wait { .. } => {
                        let of = self.waits_for.get(&step);
                        of.is_none_or(|of| self.recorded.contains(of))
                    }
                    _ => false,
                };
                (ready && self.running[s].is_empty()).then_some((s, step))
            });
            let Some((stream, step)) = possible else {
                return;
            };
            self.queues[stream].pop_front();
            self.last[stream] = Some(step);
            if matches!(self.program.host[step], HostStep::Record { .. }) {
                self.recorded.push(step);
            }
            self.trace.items.push(Item::Task(step));
        }
    }

    /// Takes what the machine has recorded since the last call.
    pub(super) fn take(&mut self) -> Result<()> {
        for step in gsan_sim::driver::take_trace() {
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: TraceStep) -> Result<()> {
        match step {
            TraceStep::Begin { grid, kernel } => match emit::kernel_of(&kernel) {
                Some((program, kernel)) if program == self.number => self.begin(grid, kernel),
                Some(_) => Err(Error::Trace(format!("{kernel} is another program's"))),
                // The host's own kernels.
                None => Ok(()),
            },
            TraceStep::End { grid } => {
                if let Some(&grid) = self.grids.get(&grid) {
                    self.end(grid);
                }
                Ok(())
            }
            TraceStep::Instruction {
                grid,
                lanes,
                line,
                block,
                warp,
                ..
            } => match (self.grids.get(&grid), self.module.at(line)) {
                (Some(&grid), Some(at)) => {
                    self.executed(grid, at, block[0] as usize, (warp, lanes))
                }
                _ => Ok(()),
            },
            TraceStep::Barrier { grid, block, id } => {
                if let Some(&grid) = self.grids.get(&grid) {
                    self.complete(grid.kernel, block[0] as usize, id);
                }
                Ok(())
            }
            TraceStep::Operation { read, write, fill } => self.operation([read, write], fill),
            _ => Ok(()),
        }
    }

    /// The driver has filled or copied memory.
    fn operation(&mut self, addresses: [Option<u64>; 2], fill: bool) -> Result<()> {
        let mine = |address: Option<u64>| {
            let offset = address?.checked_sub(self.data)?;
            (offset < u64::from(Space::SIZE)).then_some(offset as u32)
        };
        let offsets = addresses.map(mine);
        if offsets == [None, None] {
            return Ok(());
        }
        self.settle();
        let is_it = |&step: &usize| {
            let kernel = self.program.kernel_of(step)?;
            let work = self.program.kernels[kernel].work;
            if work == Work::Grid || fill != (work == Work::Memset) {
                return None;
            }
            let thread = self.trace.threads.iter().position(|t| t.kernel == kernel)?;
            let place = |write: bool| {
                self.operations(thread).iter().find_map(|op| match op {
                    Op::Access(a) if a.kind.writes() == write => Some(a.place.offset),
                    _ => None,
                })
            };
            (offsets == [place(false), place(true)]).then_some((step, kernel, thread))
        };
        let found = self.queues.iter().filter_map(|q| q.front()).find_map(is_it);
        let Some((step, kernel, thread)) = found else {
            return Err(Error::Trace(format!(
                "an operation of the host at {offsets:?} that is none of the program's"
            )));
        };
        let stream = self.program.host[step].stream() % QUEUES;
        self.queues[stream].pop_front();
        self.last[stream] = Some(step);
        self.trace.items.push(Item::Task(step));
        self.begun[kernel] = true;
        let mut held = 0;
        for (op, what) in self.operations(thread).iter().enumerate() {
            let Op::Access(access) = what else { continue };
            let (read, wrote) = semantics::perform(&mut self.memory, *access, held);
            held = read;
            let event = semantics::event(thread, op, access, wrote);
            self.trace.items.push(Item::Access(self.sites.len(), event));
            self.sites.push(Site {
                thread,
                op,
                copy: false,
            });
        }
        self.leave(thread);
        self.ended[kernel] = true;
        self.trace.items.push(Item::KernelEnd(step));
        self.settle();
        Ok(())
    }

    /// Lanes of a warp have executed an operation.
    fn executed(&mut self, grid: Grid, at: At, block: usize, who: (u32, u32)) -> Result<()> {
        let (warp, lanes) = who;
        let thread = at.thread + grid.threads;
        let info = self.trace.threads[thread];
        let mine = 1 << (info.linear % 32);
        // All lanes of the warp come to these.
        let common = matches!(
            self.operations(thread).get(at.op),
            Some(
                Op::Barrier(_)
                    | Op::ClusterArrive { .. }
                    | Op::ClusterWait
                    | Op::LaunchDependents
                    | Op::GridWait
            )
        );
        if common && lanes & mine == 0 {
            // The thread's warp comes in parts.
            return Ok(());
        }
        if (lanes != mine && !common) || warp != info.linear / 32 || block != info.block {
            return Err(Error::Trace(format!(
                "an operation of {info:?} was executed by lanes {lanes:#x} of warp {warp} of block {block}"
            )));
        }
        self.instruction(thread, at)
    }

    fn begin(&mut self, id: GridId, kernel: usize) -> Result<()> {
        let Some((step, node, kernel)) = self.launched(kernel) else {
            return Err(Error::Trace(format!("kernel {kernel} is not launched")));
        };
        self.settle();
        let stream = self.program.host[step].stream() % QUEUES;
        let goes_on = node.is_some() && !self.running[stream].is_empty();
        if !goes_on {
            let behind_a_kernel =
                self.last[stream].is_some_and(|s| self.program.grid_of(s).is_some());
            let may_overtake = self.program.kernels[kernel].dependent && behind_a_kernel;
            let early = !self.running[stream].is_empty() && !may_overtake;
            if early || self.queues[stream].front() != Some(&step) {
                return Err(Error::Trace(format!(
                    "kernel {kernel} begins before what its stream has before it"
                )));
            }
            self.queues[stream].pop_front();
            self.running[stream].push(step);
            self.last[stream] = Some(step);
            self.trace.items.push(Item::Task(step));
        }
        if let Some(node) = node {
            let before = self.program.nodes(step)[node].after.iter();
            let mut kernels = before.filter_map(|&n| self.program.kernel_of_node(step, n));
            if !kernels.all(|k| self.ended[k]) {
                return Err(Error::Trace(format!(
                    "node {node} begins before what it comes after has ended"
                )));
            }
            self.trace.items.push(Item::Node(step, node));
        }
        self.begun[kernel] = true;
        let first = |kernel: usize| {
            let mut threads = self.trace.threads.iter();
            threads.position(|t| t.kernel == kernel).unwrap_or(0)
        };
        let text = match self.program.node_of(kernel) {
            Some((g, n, _)) => self.program.graphs[g].nodes[n].kernels[0],
            None => kernel,
        };
        let threads = first(kernel) - first(text);
        let grid = Grid {
            step,
            node,
            kernel,
            threads,
        };
        self.grids.insert(id, grid);
        for thread in 0..self.trace.threads.len() {
            if self.trace.threads[thread].kernel == kernel && self.operations(thread).is_empty() {
                self.leave(thread);
            }
        }
        Ok(())
    }

    /// Who launches the kernel of that name next: the step, the node, and the kernel for that launch.
    fn launched(&self, kernel: usize) -> Option<(usize, Option<usize>, usize)> {
        let mut steps = self.program.host.iter();
        let Some((graph, node, _)) = self.program.node_of(kernel) else {
            let is = |s: &HostStep| matches!(*s, HostStep::Launch { kernel: k, .. } if k == kernel);
            return Some((steps.position(is)?, None, kernel));
        };
        let kernels = &self.program.graphs[graph].nodes[node].kernels;
        let mut steps = steps.enumerate().filter_map(|(i, step)| match *step {
            HostStep::Graph { graph: g, run, .. } if g == graph => Some((i, *kernels.get(run)?)),
            _ => None,
        });
        let (step, kernel) = steps.find(|(_, k)| !self.begun[*k])?;
        Some((step, Some(node), kernel))
    }

    fn end(&mut self, grid: Grid) {
        for thread in 0..self.trace.threads.len() {
            if self.trace.threads[thread].kernel == grid.kernel {
                self.flush(thread);
                self.leave(thread);
            }
        }
        self.ended[grid.kernel] = true;
        let step = grid.step;
        let over = match grid.node {
            None => {
                self.trace.items.push(Item::KernelEnd(step));
                true
            }
            Some(node) => {
                self.trace.items.push(Item::NodeEnd(step, node));
                let nodes = 0..self.program.nodes(step).len();
                let mut kernels = nodes.filter_map(|n| self.program.kernel_of_node(step, n));
                let over = kernels.all(|k| self.ended[k]);
                if over {
                    self.trace.items.push(Item::GraphEnd(step));
                }
                over
            }
        };
        if over {
            self.running[self.program.host[step].stream() % QUEUES].retain(|&s| s != step);
        }
        self.settle();
    }

    /// A thread leaves. When is not recorded: after its last instruction, if that is none that it waits at.
    fn leave(&mut self, thread: usize) {
        if !std::mem::replace(&mut self.left[thread], true) {
            self.trace.items.push(Item::Leave(thread));
        }
    }

    /// A thread that has waited at its cluster's barrier, or for a grid, goes on.
    fn flush(&mut self, thread: usize) {
        if let Some(op) = self.waits_at[thread].take() {
            let items = &mut self.trace.items;
            self.under_way.step(thread, 0, &op, items);
        }
    }

    fn operations(&self, thread: usize) -> &'a [Op] {
        let info = self.trace.threads[thread];
        &self.program.kernels[info.kernel].blocks[info.block].threads[info.thread]
    }

    fn instruction(&mut self, thread: usize, at: At) -> Result<()> {
        self.flush(thread);
        let info = self.trace.threads[thread];
        let operations = self.operations(thread);
        let Some(op) = operations.get(at.op) else {
            return Err(Error::Trace(format!(
                "thread {thread} has no operation {}",
                at.op
            )));
        };
        if let Op::Copy(AsyncCopy {
            what: Transfer::Fetch(Mbarrier { rank: None, .. }),
            ..
        }) = op
            && self.asks
        {
            self.asked[thread] = !self.asked[thread];
            if self.asked[thread] {
                return Ok(());
            }
        }
        let mut waits = false;
        match op {
            Op::Access(access) => {
                let (_, wrote) = semantics::perform(&mut self.memory, *access, 0);
                let event = semantics::event(thread, at.op, access, wrote);
                self.trace.items.push(Item::Access(self.sites.len(), event));
                self.site(at, false);
                waits = access.until.is_some();
            }
            Op::Fence { order, scope } => {
                self.trace.items.push(Item::Fence(thread, *order, *scope));
            }
            Op::Barrier(barrier) => {
                self.trace.items.push(Item::Arrive(thread, barrier.id));
                let key = (info.global_block, barrier.id);
                let waiting = self.waiting.entry(key).or_default();
                if !barrier.arrive {
                    waiting.push(thread);
                }
                waits = true;
            }
            Op::ClusterWait | Op::GridWait => {
                self.waits_at[thread] = Some(*op);
                waits = true;
            }
            // One of many tries.
            Op::Await { .. } if !self.under_way.is_ready(thread, op) => waits = true,
            _ => {
                let items = &mut self.trace.items;
                self.under_way.step(thread, at.op, op, items);
                if let Op::Copy(copy) = op {
                    // The machine carries copies out when they are issued.
                    let number = self.under_way.copies().len() - 1;
                    let (id, memory) = (self.sites.len(), &mut self.memory);
                    self.under_way.carry_out(number, id, memory, items);
                    (0..accesses_of(copy)).for_each(|_| self.site(at, true));
                }
            }
        }
        if at.op + 1 == operations.len() && !waits {
            self.leave(thread);
        }
        Ok(())
    }

    fn site(&mut self, at: At, copy: bool) {
        self.sites.push(Site {
            thread: at.thread,
            op: at.op,
            copy,
        });
    }

    fn complete(&mut self, kernel: usize, block: usize, id: u32) {
        let mut threads = self.trace.threads.iter();
        let Some(info) = threads.find(|t| t.kernel == kernel && t.block == block) else {
            return;
        };
        let block = info.global_block;
        // The runtime's own barrier comes before any of the program's.
        if let Some(waiters) = self.waiting.remove(&(block, id)) {
            self.trace.items.push(Item::Barrier { block, id, waiters });
        }
    }

    /// The trace, and where each access stands.
    pub(super) fn finish(mut self, contents: &[u8; MEMORY]) -> Result<(Trace, Vec<Site>)> {
        self.trace.copies = self.under_way.copies();
        let size = Space::SIZE as usize;
        for space in [Space::Checked, Space::Foreign] {
            let at = space as usize * size;
            let (mine, its) = (&self.memory[at..at + size], &contents[at..at + size]);
            if mine != its {
                return Err(Error::Trace(format!(
                    "the trace leaves {mine:?} in {space:?} memory, the machine {its:?}"
                )));
            }
        }
        Ok((self.trace, self.sites))
    }
}
