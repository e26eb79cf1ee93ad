//! The shape of the simulated GPU and of its schedules.

/// What the simulated GPUs look like and how they schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Seed of the scheduler: the same seed gives the same run, bit for bit.
    pub seed: u64,
    /// Number of devices.
    pub devices: u32,
    /// Multiprocessors per device.
    pub sms: u32,
    /// Blocks that a multiprocessor holds at once (shared memory and threads may allow fewer).
    pub blocks_per_sm: u32,
    /// Threads that a multiprocessor holds at once.
    pub threads_per_sm: u32,
    /// Memory per device, in bytes. The host commits it page by page, when it is touched.
    pub memory_bytes: u64,
    /// Warp instructions that one wait of the host may take, counted from the last kernel that completed.
    pub step_budget: u64,
    /// Shared memory that a block can ask for when it opts in.
    pub max_shared_per_block: u32,
    /// Shared memory that a block can have without opting in.
    pub default_shared_per_block: u32,
    /// Shared memory of a multiprocessor, `reserved_shared` of each block included.
    pub shared_per_sm: u32,
    /// Shared memory at the start of each block's window that belongs to the system.
    pub reserved_shared: u32,
    /// Local memory (stack) that a thread can have.
    pub max_local_per_thread: u32,
    /// Bytes of the heap behind the device's `malloc`.
    pub heap_bytes: u64,
    /// Which warp has the next turn.
    pub schedule: Schedule,
    /// How often the scheduler switches between warps.
    pub preempt: Preempt,
    /// What threads see of each other's stores, and when.
    pub memory: MemoryModel,
    /// What warps that have exited mean to a barrier of their block.
    pub exited_warps: ExitedWarps,
    /// Whether the machine records what kernels do: see [`TraceStep`](crate::machine::TraceStep).
    pub trace: bool,
}

/// What threads see of each other's stores, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemoryModel {
    /// Everybody sees every store at once.
    #[default]
    Sequential,
    /// Stores become visible late and loads are satisfied early, within what PTX allows.
    Weak,
}

/// What happens at a barrier for the whole block (`__syncthreads()`, `bar.sync` without a count) that some warps cannot reach,
/// because all their threads have exited. (Of a warp that is there, single threads may have exited in either case.) And at an aligned
/// barrier at which some lanes of a warp wait while others have skipped it and go on: see `docs/undefined.md`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExitedWarps {
    /// It is a fault: to PTX such a barrier waits for all threads of the block, and all threads of a warp come to it.
    #[default]
    Fault,
    /// They count as arrived, as on NVIDIA's GPUs since Volta.
    Arrive,
}

/// Which warp has the next turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Any, with equal odds; turns are short: see [`Preempt`].
    #[default]
    Random,
    /// The one with the highest priority; priorities change at few points. Finds what needs one warp to stand still while
    /// others go on for long.
    Priority,
}

/// How often the scheduler switches between warps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preempt {
    /// Chance, out of 65,536, that the running warp loses its turn before a memory operation. 65,536: at each one.
    pub at_memory: u32,
    /// Chance, out of 65,536, that a diverged warp goes on with another of its groups before a memory operation.
    pub group_at_memory: u32,
    /// Longest turn of a warp, in instructions.
    pub turn: u32,
}

impl Default for Preempt {
    fn default() -> Self {
        Preempt {
            at_memory: 65_536 / 8,
            group_at_memory: 65_536 / 32,
            turn: 400,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            seed: 0,
            devices: 1,
            sms: 4,
            blocks_per_sm: 8,
            threads_per_sm: 2048,
            memory_bytes: 16 << 30,
            step_budget: 2_000_000_000,
            max_shared_per_block: 232_448,
            default_shared_per_block: 49_152,
            shared_per_sm: 233_472,
            reserved_shared: 1024,
            max_local_per_thread: 512 << 10,
            heap_bytes: 8 << 20,
            schedule: Schedule::Random,
            preempt: Preempt::default(),
            memory: MemoryModel::Sequential,
            exited_warps: ExitedWarps::Fault,
            trace: false,
        }
    }
}
