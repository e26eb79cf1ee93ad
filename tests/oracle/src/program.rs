//! Small parallel programs: what the threads of a few kernels do to a few words of memory, and what the host does.
//!
//! There are no branches but one: an operation may wait for what it reads ([`Until`]), and a thread that waits in vain
//! gives up: it takes part in its remaining barriers and does nothing else. Memory starts as zeros.

use crate::boxes::Corner;
use gsan_device::layout::{Order, Scope};
use std::fmt;

/// Kernels, and the host's steps that start them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Each is launched at most once.
    pub kernels: Vec<Kernel>,
    /// Graphs of kernels.
    pub graphs: Vec<Graph>,
    /// What the host does, in order.
    pub host: Vec<HostStep>,
}

/// Kernels with edges between them, launched as one, once or several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The nodes; each comes after earlier ones only.
    pub nodes: Vec<Node>,
}

/// A kernel of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Index in [`Program::kernels`], one for each time that the graph is launched. Nobody else launches them, and they are
    /// the same.
    pub kernels: Vec<usize>,
    /// The nodes that it comes after.
    pub after: Vec<usize>,
}

/// A grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Blocks per cluster, at least 1.
    pub cluster: usize,
    /// The blocks.
    pub blocks: Vec<Block>,
    /// What it is to the host.
    pub work: Work,
    /// Launched with the attribute of programmatic dependent launches: it may begin when the kernel right before it in its stream lets
    /// it.
    pub dependent: bool,
}

impl Kernel {
    /// Threads per block of the grid.
    pub fn block_threads(&self) -> u32 {
        let warps = self.blocks.iter().map(Block::warps).max();
        (WARP * warps.unwrap_or(1).max(1)) as u32
    }

    /// Whether a fence somewhere in it reaches beyond the block: what is relaxed in it counts as a release then.
    pub fn may_fence(&self) -> bool {
        let ops = self.blocks.iter().flat_map(|b| &b.threads).flatten();
        let mut fences = ops.filter_map(|op| match op {
            Op::Fence { scope, .. } => Some(*scope),
            _ => None,
        });
        fences.any(|scope| scope > Scope::Cta)
    }
}

/// What the host asks for: a launch, or an operation, which is written as a kernel of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// A launch.
    #[default]
    Grid,
    /// `cuMemsetD8Async` to zero.
    Memset,
    /// `cuMemcpyDtoDAsync`
    Copy,
    /// `cuMemcpyDtoHAsync`
    ReadBack,
    /// `cuMemcpyHtoD`: the host waits.
    Write,
    /// `cuMemcpyDtoH`: the host waits.
    Read,
}

/// The legacy default stream, in which the operations are that the host waits for. The others have no order with it.
pub const LEGACY: usize = 3;

/// A block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// What each thread does.
    pub threads: Vec<Vec<Op>>,
    /// How many of a warp's lanes there are: 1 (also for 0) or more. The others do nothing at all.
    pub lanes: usize,
    /// The block's mbarriers, at most [`MBARRIERS`]: how many arrivals a phase of each waits for.
    pub mbarriers: Vec<u32>,
}

/// Mbarriers of a block, at most.
pub const MBARRIERS: usize = 4;

impl Block {
    /// The lanes of a warp that there are.
    pub fn lanes(&self) -> usize {
        self.lanes.clamp(1, 32)
    }

    /// The linear index of a thread in its block.
    pub fn linear(&self, thread: usize) -> u32 {
        (thread / self.lanes() * WARP + thread % self.lanes()) as u32
    }

    /// Warps with anybody in them.
    pub fn warps(&self) -> usize {
        self.threads.len().div_ceil(self.lanes())
    }
}

/// Threads of a warp.
pub const WARP: usize = 32;

/// One step of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostStep {
    /// Enqueues a kernel.
    Launch {
        /// Index in [`Program::kernels`].
        kernel: usize,
        /// The stream.
        stream: usize,
    },
    /// Enqueues the recording of an event.
    Record {
        /// The event.
        event: usize,
        /// The stream.
        stream: usize,
    },
    /// Makes a stream wait for the event's last recording that the host has enqueued.
    Wait {
        /// The event.
        event: usize,
        /// The stream.
        stream: usize,
    },
    /// Waits for a stream.
    Synchronize {
        /// The stream.
        stream: usize,
    },
    /// Enqueues a graph.
    Graph {
        /// Index in [`Program::graphs`].
        graph: usize,
        /// For the how-manieth time, from 0.
        run: usize,
        /// The stream.
        stream: usize,
    },
}

impl HostStep {
    /// The stream that it concerns.
    pub fn stream(self) -> usize {
        match self {
            HostStep::Launch { stream, .. }
            | HostStep::Record { stream, .. }
            | HostStep::Wait { stream, .. }
            | HostStep::Synchronize { stream }
            | HostStep::Graph { stream, .. } => stream,
        }
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Reads or writes memory.
    Access(Access),
    /// A fence.
    Fence {
        /// Acquire, release, both, or sequentially consistent.
        order: Order,
        /// Its scope.
        scope: Scope,
    },
    /// `bar.sync` or `bar.arrive`.
    Barrier(Barrier),
    /// Issues a copy that is carried out some time later.
    Copy(AsyncCopy),
    /// `cp.async.commit_group`, `cp.async.bulk.commit_group`
    Commit(Mechanism),
    /// `cp.async.wait_group`, `cp.async.bulk.wait_group`
    WaitGroup {
        /// Whose groups.
        of: Mechanism,
        /// How many of the youngest need not be done.
        but: usize,
        /// `.read`: of bulk copies only their source has been read.
        read: bool,
    },
    /// `mbarrier.arrive`, with or without `expect_tx`
    Arrive(Arrival),
    /// Waits until this phase (from 0) of an mbarrier of the own block is over: `mbarrier.try_wait.parity` in a loop.
    Await {
        /// The block's mbarrier.
        mbarrier: usize,
        /// The phase.
        phase: u32,
        /// The scope of its acquire.
        scope: Scope,
    },
    /// `barrier.cluster.arrive`
    ClusterArrive {
        /// It releases nothing by itself.
        relaxed: bool,
    },
    /// `barrier.cluster.wait`
    ClusterWait,
    /// `cp.async.mbarrier.arrive`: an arrival at an mbarrier of the own block once all earlier `cp.async`s of the thread are done.
    ArriveBehindCopies {
        /// The block's mbarrier.
        mbarrier: usize,
        /// `.noinc`: it is one of those that the phase waits for; else it is one more.
        counted: bool,
    },
    /// `griddepcontrol.launch_dependents`
    LaunchDependents,
    /// `griddepcontrol.wait`
    GridWait,
}

/// What groups are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `cp.async`
    Small,
    /// `cp.async.bulk`
    Bulk,
}

/// An asynchronous copy between global and shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AsyncCopy {
    /// What it does to global memory.
    pub what: Transfer,
    /// Where in global memory; of a box, the first row that there is.
    pub place: Place,
    /// It is a box of the program's tensor, named by coordinates.
    pub corner: Option<Corner>,
}

/// What an asynchronous copy does to global memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transfer {
    /// `cp.async`: reads 4 to 16 bytes.
    Small,
    /// `cp.async.bulk` to shared memory, of the block whose mbarrier it completes on.
    Fetch(Mbarrier),
    /// The same with `.multicast::cluster`, to shared memory of several blocks of the cluster and on that mbarrier of each.
    Multicast {
        /// Which mbarrier of each block.
        index: usize,
        /// A bit for each block's rank in the cluster.
        blocks: u16,
    },
    /// `cp.async.bulk` from shared memory: stores the value in each word.
    Put(u32),
    /// `cp.reduce.async.bulk`: adds the value to each word.
    Reduce(u32),
}

impl Transfer {
    /// What it is awaited with, if it is with groups.
    pub fn mechanism(self) -> Option<Mechanism> {
        match self {
            Transfer::Small => Some(Mechanism::Small),
            Transfer::Fetch(_) | Transfer::Multicast { .. } => None,
            Transfer::Put(_) | Transfer::Reduce(_) => Some(Mechanism::Bulk),
        }
    }
}

/// An mbarrier of a block of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mbarrier {
    /// The block's rank in the cluster; `None`: the own block.
    pub rank: Option<usize>,
    /// Which.
    pub index: usize,
}

/// An arrival at an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The mbarrier.
    pub at: Mbarrier,
    /// Bytes that it announces.
    pub bytes: u32,
    /// It releases nothing by itself.
    pub relaxed: bool,
    /// Its scope.
    pub scope: Scope,
}

/// A barrier of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Which, below 16.
    pub id: u32,
    /// Threads that it waits for, whole warps; 0: all of the block that have not left.
    pub count: u32,
    /// `bar.arrive`: does not wait.
    pub arrive: bool,
}

impl Barrier {
    /// `bar.sync 0`.
    pub const ALL: Barrier = Barrier {
        id: 0,
        count: 0,
        arrive: false,
    };
}

/// A memory instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// What it does.
    pub kind: Kind,
    /// Its ordering.
    pub order: Order,
    /// Its scope; `None` for a weak one.
    pub scope: Scope,
    /// Written as `volatile`: relaxed at system scope.
    pub volatile: bool,
    /// Where.
    pub place: Place,
    /// What it waits for.
    pub until: Option<Until>,
}

/// What a memory instruction does; the values are stored in as many bytes as it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `ld`
    Load,
    /// `st`
    Store(u32),
    /// `atom.add`
    Add(u32),
    /// `atom.exch`
    Exchange(u32),
    /// `atom.cas`
    Cas {
        /// Writes if this is there.
        expect: u32,
        /// What it writes.
        new: u32,
    },
    /// `red.add`
    Reduce(u32),
    /// Stores what the thread has read last: of a copy between buffers.
    Paste,
}

impl Kind {
    /// Whether it can write.
    pub fn writes(self) -> bool {
        self != Kind::Load
    }

    /// Whether it reads and writes in one step.
    pub fn is_rmw(self) -> bool {
        !matches!(self, Kind::Load | Kind::Store(_) | Kind::Paste)
    }
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which memory.
    pub space: Space,
    /// First byte, aligned to the size.
    pub offset: u32,
    /// Number of bytes.
    pub size: u32,
}

impl Place {
    /// A number for the first byte that no other space's bytes share.
    pub fn start(self) -> u32 {
        self.space as u32 * Space::SIZE + self.offset
    }

    /// Whether a byte is common to both.
    pub fn overlaps(self, other: Place) -> bool {
        self.start() < other.start() + other.size && other.start() < self.start() + self.size
    }

    /// Whether a 4-byte word is common to both.
    pub fn shares_word(self, other: Place) -> bool {
        let words = |p: Place| (p.start() / 4, (p.start() + p.size - 1) / 4);
        let ((a, b), (c, d)) = (words(self), words(other));
        a <= d && c <= b
    }
}

/// Kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// The reservation.
    Checked = 0,
    /// A module's variable, found through the range table.
    Variable = 1,
    /// Memory without shadow: only synchronisation counts there.
    Foreign = 2,
}

impl Space {
    /// Bytes of each.
    pub const SIZE: u32 = 256;
    /// All of them.
    pub const ALL: [Space; 3] = [Space::Checked, Space::Variable, Space::Foreign];
}

/// What a thread waits for; when it has tried often enough it gives up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// The condition on the value that was read.
    pub condition: Condition,
    /// How often it tries again.
    pub retries: u32,
}

/// A condition on the value that an access read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// Unsigned comparison.
    AtLeast(u32),
    /// Equality (for a compare-and-swap with its `expect`: it succeeded).
    Equals(u32),
}

impl Condition {
    /// Whether it holds.
    pub fn holds(self, value: u128) -> bool {
        match self {
            Condition::AtLeast(v) => value >= u128::from(v),
            Condition::Equals(v) => value == u128::from(v),
        }
    }
}

impl Program {
    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.threads().map(|(_, _, _, ops)| ops.len()).sum()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kernel that a step of the host launches by itself.
    pub fn kernel_of(&self, step: usize) -> Option<usize> {
        match self.host.get(step) {
            Some(HostStep::Launch { kernel, .. }) => Some(*kernel),
            _ => None,
        }
    }

    /// The same if it is no operation of the host's.
    pub fn grid_of(&self, step: usize) -> Option<usize> {
        let kernel = self.kernel_of(step)?;
        (self.kernels[kernel].work == Work::Grid).then_some(kernel)
    }

    /// The nodes of the graph that a step of the host launches.
    pub fn nodes(&self, step: usize) -> &[Node] {
        match self.host.get(step) {
            Some(HostStep::Graph { graph, .. }) => {
                self.graphs.get(*graph).map_or(&[], |g| &g.nodes)
            }
            _ => &[],
        }
    }

    /// The kernel of a node of the graph that a step of the host launches.
    pub fn kernel_of_node(&self, step: usize, node: usize) -> Option<usize> {
        match self.host.get(step) {
            Some(HostStep::Graph { run, .. }) => {
                self.nodes(step).get(node)?.kernels.get(*run).copied()
            }
            _ => None,
        }
    }

    /// The node of a graph whose kernel it is: graph, node, and for which of the graph's launches.
    pub fn node_of(&self, kernel: usize) -> Option<(usize, usize, usize)> {
        self.graphs.iter().enumerate().find_map(|(g, graph)| {
            graph.nodes.iter().enumerate().find_map(|(n, node)| {
                let run = node.kernels.iter().position(|&k| k == kernel)?;
                Some((g, n, run))
            })
        })
    }

    /// Whether it is the same as an earlier one, for a graph's next launch.
    pub fn is_repeated(&self, kernel: usize) -> bool {
        self.node_of(kernel).is_some_and(|(_, _, run)| run > 0)
    }

    /// The step that launched a step's graph the time before.
    pub fn run_before(&self, step: usize) -> Option<usize> {
        let graph_of = |step: &HostStep| match *step {
            HostStep::Graph { graph, .. } => Some(graph),
            _ => None,
        };
        let graph = graph_of(self.host.get(step)?)?;
        (self.host[..step].iter()).rposition(|s| graph_of(s) == Some(graph))
    }

    /// All threads: kernel, block, index in the block, instructions.
    pub fn threads(&self) -> impl Iterator<Item = (usize, usize, usize, &Vec<Op>)> {
        self.kernels.iter().enumerate().flat_map(|(k, kernel)| {
            kernel
                .blocks
                .iter()
                .enumerate()
                .flat_map(move |(b, block)| {
                    block
                        .threads
                        .iter()
                        .enumerate()
                        .map(move |(t, ops)| (k, b, t, ops))
                })
        })
    }
}

fn suffix(order: Order) -> &'static str {
    match order {
        Order::Weak => "weak",
        Order::Relaxed => "relaxed",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::Sc => "sc",
    }
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::None => "",
        Scope::Cta => ".cta",
        Scope::Cluster => ".cluster",
        Scope::Gpu => ".gpu",
        Scope::Sys => ".sys",
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = match self.space {
            Space::Checked => "m",
            Space::Variable => "var",
            Space::Foreign => "foreign",
        };
        write!(f, "[{name}+{}]", self.offset)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = match self.kind {
            Kind::Load => "ld",
            Kind::Store(_) | Kind::Paste => "st",
            Kind::Reduce(_) => "red",
            _ => "atom",
        };
        if self.volatile {
            write!(f, "{name}.volatile")?;
        } else {
            write!(f, "{name}.{}{}", suffix(self.order), scope_name(self.scope))?;
        }
        let bits = 8 * self.place.size;
        match self.kind {
            Kind::Load => write!(f, ".b{bits} {}", self.place)?,
            Kind::Store(v) => write!(f, ".b{bits} {}, {v}", self.place)?,
            Kind::Paste => write!(f, ".b{bits} {}, what was read", self.place)?,
            Kind::Add(v) | Kind::Reduce(v) => write!(f, ".add.u{bits} {}, {v}", self.place)?,
            Kind::Exchange(v) => write!(f, ".exch.b{bits} {}, {v}", self.place)?,
            Kind::Cas { expect, new } => write!(f, ".cas.b{bits} {}, {expect}, {new}", self.place)?,
        }
        match self.until {
            None => Ok(()),
            Some(Until { condition, retries }) => match condition {
                Condition::AtLeast(v) => {
                    write!(f, "   until >= {v} (else give up; {retries} retries)")
                }
                Condition::Equals(v) => {
                    write!(f, "   until == {v} (else give up; {retries} retries)")
                }
            },
        }
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = if self.arrive { "arrive" } else { "sync" };
        write!(f, "bar.{name} {}", self.id)?;
        if self.count > 0 {
            write!(f, ", {}", self.count)?;
        }
        Ok(())
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Op::Access(a) => a.fmt(f),
            Op::Fence { order, scope } => {
                write!(f, "fence.{}{}", suffix(*order), scope_name(*scope))
            }
            Op::Barrier(barrier) => barrier.fmt(f),
            Op::Copy(copy) => copy.fmt(f),
            Op::Commit(Mechanism::Small) => write!(f, "cp.async.commit_group"),
            Op::Commit(Mechanism::Bulk) => write!(f, "cp.async.bulk.commit_group"),
            Op::WaitGroup { of, but, read } => {
                let bulk = if *of == Mechanism::Bulk { ".bulk" } else { "" };
                let read = if *read { ".read" } else { "" };
                write!(f, "cp.async{bulk}.wait_group{read} {but}")
            }
            Op::Arrive(arrival) => {
                let order = if arrival.relaxed {
                    "relaxed"
                } else {
                    "release"
                };
                let scope = scope_name(arrival.scope);
                write!(f, "mbarrier.arrive.{order}{scope} {}", arrival.at)?;
                if arrival.bytes > 0 {
                    write!(f, ", expect {}", arrival.bytes)?;
                }
                Ok(())
            }
            Op::Await {
                mbarrier,
                phase,
                scope,
            } => {
                let scope = scope_name(*scope);
                write!(f, "mbarrier.wait.acquire{scope} {mbarrier}, phase {phase}")
            }
            Op::ClusterArrive { relaxed: true } => write!(f, "barrier.cluster.arrive.relaxed"),
            Op::ClusterArrive { relaxed: false } => write!(f, "barrier.cluster.arrive"),
            Op::ClusterWait => write!(f, "barrier.cluster.wait"),
            Op::ArriveBehindCopies { mbarrier, counted } => {
                let counted = if *counted { ".noinc" } else { "" };
                write!(f, "cp.async.mbarrier.arrive{counted} {mbarrier}")
            }
            Op::LaunchDependents => write!(f, "griddepcontrol.launch_dependents"),
            Op::GridWait => write!(f, "griddepcontrol.wait"),
        }
    }
}

impl fmt::Display for Mbarrier {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.rank {
            None => write!(f, "{}", self.index),
            Some(rank) => write!(f, "{} of block {rank} of the cluster", self.index),
        }
    }
}

impl fmt::Display for AsyncCopy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (place, bytes) = (self.place, self.bytes());
        if let Some(Corner { x, y }) = self.corner {
            write!(f, "box ({x}, {y}): ")?;
        }
        match self.what {
            Transfer::Small => write!(f, "cp.async [shared], {place}, {bytes}"),
            Transfer::Fetch(at) => {
                write!(f, "cp.async.bulk [shared], {place}, {bytes}, mbarrier {at}")
            }
            Transfer::Multicast { index, blocks } => {
                write!(
                    f,
                    "cp.async.bulk.multicast [shared], {place}, {bytes}, mbarrier {index} of blocks {blocks:#b}"
                )
            }
            Transfer::Put(v) => write!(f, "cp.async.bulk {place}, [shared: {v}], {bytes}"),
            Transfer::Reduce(v) => {
                write!(
                    f,
                    "cp.reduce.async.bulk.add.u32 {place}, [shared: {v}], {bytes}"
                )
            }
        }
    }
}

impl fmt::Display for HostStep {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            HostStep::Launch { kernel, stream } => {
                write!(f, "launch kernel {kernel} on stream {stream}")
            }
            HostStep::Record { event, stream } => {
                write!(f, "record event {event} on stream {stream}")
            }
            HostStep::Wait { event, stream } => {
                write!(f, "stream {stream} waits for event {event}")
            }
            HostStep::Synchronize { stream } => write!(f, "synchronize stream {stream}"),
            HostStep::Graph { graph, run, stream } => {
                write!(f, "launch graph {graph} on stream {stream} (run {run})")
            }
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for step in &self.host {
            writeln!(f, "host: {step}")?;
        }
        for (g, graph) in self.graphs.iter().enumerate() {
            for (n, node) in graph.nodes.iter().enumerate() {
                let (kernels, after) = (&node.kernels, &node.after);
                writeln!(f, "graph {g} node {n}: kernels {kernels:?} after {after:?}")?;
            }
        }
        for (k, kernel) in self.kernels.iter().enumerate() {
            if kernel.cluster > 1 {
                writeln!(f, "kernel {k}: clusters of {}", kernel.cluster)?;
            }
            if kernel.work != Work::Grid {
                writeln!(f, "kernel {k}: {:?}", kernel.work)?;
            }
            if kernel.dependent {
                writeln!(f, "kernel {k}: a dependent launch")?;
            }
            for (b, block) in kernel.blocks.iter().enumerate() {
                if !block.mbarriers.is_empty() {
                    let counts = &block.mbarriers;
                    writeln!(f, "kernel {k} block {b}: mbarriers for {counts:?} arrivals")?;
                }
                for (t, ops) in block.threads.iter().enumerate() {
                    let linear = block.linear(t) as usize;
                    let (warp, lane) = (linear / WARP, linear % WARP);
                    writeln!(
                        f,
                        "kernel {k} block {b} thread {t} (warp {warp} lane {lane}):"
                    )?;
                    for op in ops {
                        writeln!(f, "    {op}")?;
                    }
                }
            }
        }
        Ok(())
    }
}
