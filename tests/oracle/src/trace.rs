//! What happened in one run, in the order of the instructions: sequentially consistent, so that reads-from is known.

use crate::program::{AsyncCopy, Graph, HostStep, MBARRIERS, Mechanism, Place, WARP};
use gsan_device::layout::{Order, RaceClass, RaceKind, Scope};

/// A thread's place in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// The kernel.
    pub kernel: usize,
    /// The block in the kernel.
    pub block: usize,
    /// Blocks of all kernels, numbered through.
    pub global_block: usize,
    /// The cluster: clusters of all kernels, numbered through.
    pub cluster: usize,
    /// Whether its launch has clusters of more than one block.
    pub clustered: bool,
    /// [`Kernel::may_fence`](crate::program::Kernel::may_fence).
    pub fenced: bool,
    /// Index in the program's block.
    pub thread: usize,
    /// Linear index in the block on a device, where warps have [`WARP`] threads.
    pub linear: u32,
}

impl ThreadInfo {
    /// The warp in the block.
    pub fn warp(&self) -> usize {
        self.linear as usize / WARP
    }
}

/// A run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The program's threads, numbered through.
    pub threads: Vec<ThreadInfo>,
    /// The program's graphs.
    pub graphs: Vec<Graph>,
    /// Of each kernel, whether it is launched as a dependent one.
    pub dependent: Vec<bool>,
    /// The kernels that are operations of the host.
    pub operations: Vec<usize>,
    /// The copies that were issued.
    pub copies: Vec<CopyInfo>,
    /// What happened.
    pub items: Vec<Item>,
}

/// An asynchronous copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyInfo {
    /// Who has issued it.
    pub thread: usize,
    /// Which of the thread's instructions it is.
    pub index: usize,
    /// The copy.
    pub copy: AsyncCopy,
}

/// What the detector has found, in terms of a trace.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which of the two wrote.
    pub kind: RaceKind,
    /// The class that the detector gave it.
    pub class: RaceClass,
    /// Numbers of the accesses that may have found it: one, or the several times that its instruction was executed.
    pub current: Vec<usize>,
    /// The other side, as far as it is known.
    pub prior: Prior,
}

/// The earlier side of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prior {
    /// The kernel.
    pub kernel: Option<usize>,
    /// The block in it.
    pub block: Option<usize>,
    /// Linear index of the thread in the block.
    pub linear: Option<u32>,
}

/// A step of a run.
#[derive(Clone, Debug)]
pub enum Item {
    /// The host has taken the step of this index: it is enqueued, or the synchronisation has returned.
    Host(usize, HostStep),
    /// A stream's task begins (a launch) or happens (record, wait): index of the step.
    Task(usize),
    /// All threads of the launch of this step have left.
    KernelEnd(usize),
    /// A memory instruction; the number names it in findings.
    Access(usize, Access),
    /// The hook before a `fence.sc`, whose thread does nothing until the fence itself. The order of these hooks is as good
    /// an order of the fences as their own: what comes before a fence precedes its hook.
    ScHook(usize, Scope),
    /// A fence.
    Fence(usize, Order, Scope),
    /// A thread has arrived at a barrier of its block.
    Arrive(usize, u32),
    /// A barrier is complete: these threads, which waited, go on.
    Barrier {
        /// The block, in the numbers of [`ThreadInfo::global_block`].
        block: usize,
        /// The barrier.
        id: u32,
        /// Who waited.
        waiters: Vec<usize>,
    },
    /// A node of the graph that a step launches begins.
    Node(usize, usize),
    /// All threads of the node have left.
    NodeEnd(usize, usize),
    /// All nodes of the graph that a step launches have ended.
    GraphEnd(usize),
    /// A thread leaves its kernel.
    Leave(usize),
    /// A copy, by its number, is issued.
    Issue(usize),
    /// A copy is carried out, which an mbarrier (by its number, see [`mbarrier_number`]) learns of.
    Completes(usize, usize),
    /// A thread commits a group.
    Commit(usize),
    /// A thread has waited for groups.
    GroupWait {
        /// The thread.
        thread: usize,
        /// What of.
        of: Mechanism,
        /// The copies that are over, as far as this wait says.
        over: Vec<usize>,
    },
    /// A thread arrives at an mbarrier.
    MbarrierArrive {
        /// The thread.
        thread: usize,
        /// The mbarrier.
        mbarrier: usize,
        /// It releases nothing by itself.
        relaxed: bool,
        /// Its scope.
        scope: Scope,
    },
    /// A phase of an mbarrier is over.
    MbarrierPhase(usize),
    /// A thread has waited for an mbarrier.
    MbarrierWait {
        /// The thread.
        thread: usize,
        /// The mbarrier.
        mbarrier: usize,
        /// The scope of its acquire.
        scope: Scope,
    },
    /// A thread arrives at its cluster's barrier; whether relaxed.
    ClusterArrive(usize, bool),
    /// A thread has waited for its cluster's barrier: all have arrived as often as it has.
    ClusterWait(usize),
    /// A thread has an mbarrier follow its small copies.
    Follow(usize),
    /// These copies of the thread are done, and the mbarrier that follows them learns of it.
    Followed {
        /// The thread.
        thread: usize,
        /// The mbarrier.
        mbarrier: usize,
        /// The copies.
        copies: Vec<usize>,
    },
    /// A thread lets dependent launches begin.
    LaunchDependents(usize),
    /// A thread has waited for the kernel before its own.
    GridWait(usize),
}

/// The number of a block's mbarrier.
pub fn mbarrier_number(global_block: usize, index: usize) -> usize {
    global_block * MBARRIERS + index
}

/// A memory instruction that was executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// The thread.
    pub thread: usize,
    /// Which instruction of the thread.
    pub index: usize,
    /// The copy that it belongs to, which the thread has issued.
    pub copy: Option<usize>,
    /// Where.
    pub place: Place,
    /// Whether it read.
    pub reads: bool,
    /// Whether it wrote.
    pub writes: bool,
    /// `red`: what it reads reaches nobody.
    pub reduction: bool,
    /// A compare-and-swap, whether it wrote or not.
    pub attempt: bool,
    /// Its ordering.
    pub order: Order,
    /// Its scope; `None`: weak.
    pub scope: Scope,
}

impl Access {
    /// Whether it synchronises, in whatever scope.
    pub fn is_strong(&self) -> bool {
        self.scope != Scope::None
    }
}
