//! What happened in one run, in the order of the instructions: sequentially consistent, so that reads-from is known.

use crate::program::{HostStep, Place};
use gsan_device::layout::{Order, Scope};

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
    /// Index in the block.
    pub thread: usize,
}

/// A run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The program's threads, numbered through.
    pub threads: Vec<ThreadInfo>,
    /// What happened.
    pub items: Vec<Item>,
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
    /// A fence.
    Fence(usize, Order, Scope),
    /// `bar.sync` of these threads is complete.
    Barrier(Vec<usize>),
}

/// A memory instruction that was executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// The thread.
    pub thread: usize,
    /// Which instruction of the thread.
    pub index: usize,
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
