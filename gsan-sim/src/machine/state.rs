//! What runs: grids, blocks, warps, and groups of lanes with one program counter.

use std::cell::Cell;
use std::sync::Arc;

use super::exec::{Copies, Deferred};
use super::ir::{BarrierKind, Function, Program};
use super::priority::Rank;
use super::ty::Row;
use super::{FunctionId, GridId};

/// A launched grid.
pub struct Grid {
    pub id: GridId,
    pub function_id: FunctionId,
    pub program: Arc<Program>,
    /// Index of the kernel in the program.
    pub function: u32,
    pub device: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub dynamic_shared: u32,
    pub static_shared: u32,
    /// End of the shared memory that is not only for gsan's runtime: at most [`shared_bytes`](Self::shared_bytes).
    pub user_shared: u32,
    pub params: Vec<u8>,
    /// Where the parameters have an address (0: nowhere).
    pub param_address: u64,
    /// The cooperative groups' workspace (0: none).
    pub workspace: u64,
    /// Blocks that have been placed, or never will be.
    pub placed: Cell<u64>,
    /// Blocks that never will be, because others have taken their work over.
    pub cancelled: Cell<u64>,
    /// Blocks that have ended.
    pub done: u64,
    /// The grid that `griddepcontrol.wait` waits for.
    pub prerequisite: Option<GridId>,
    /// Blocks that have let dependent grids start, or have ended.
    pub triggered: u64,
    /// Somebody wants to know when all have.
    pub watched: bool,
}

impl Grid {
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    pub fn cluster_size(&self) -> u32 {
        self.cluster.iter().product::<u32>().max(1)
    }

    /// Bytes that each block has after the reserved ones.
    pub fn shared_bytes(&self) -> u32 {
        self.static_shared + self.dynamic_shared
    }

    pub fn kernel(&self) -> &Function {
        &self.program.functions[self.function as usize]
    }

    /// Takes the next cluster out of the launch: the index of its first block, unless all have been placed.
    pub fn cancel(&self) -> Option<[u32; 3]> {
        let (first, size) = (self.placed.get(), u64::from(self.cluster_size()));
        if first + size > self.blocks() {
            return None;
        }
        self.placed.set(first + size);
        self.cancelled.set(self.cancelled.get() + size);
        Some(self.block_index(first))
    }

    /// Whether no block will run, or runs, any more.
    pub fn is_over(&self) -> bool {
        self.done + self.cancelled.get() == self.blocks()
    }

    /// Whether every block has let dependent grids start, or has ended, or never will run.
    pub fn all_triggered(&self) -> bool {
        self.triggered + self.cancelled.get() == self.blocks()
    }

    /// `%ctaid` of a block in launch order: cluster by cluster, x first.
    pub fn block_index(&self, n: u64) -> [u32; 3] {
        let size = u64::from(self.cluster_size());
        let (cluster, rank) = (n / size, n % size);
        let [cx, cy, _] = self.cluster.map(|c| u64::from(c.max(1)));
        let clusters = [0, 1].map(|i| u64::from(self.grid[i]) / u64::from(self.cluster[i].max(1)));
        let outer = [
            cluster % clusters[0],
            cluster / clusters[0] % clusters[1],
            cluster / clusters[0] / clusters[1],
        ];
        let inner = [rank % cx, rank / cx % cy, rank / cx / cy];
        [0, 1, 2].map(|i| (outer[i] * u64::from(self.cluster[i].max(1)) + inner[i]) as u32)
    }
}

/// Barriers that a block has.
pub const BARRIERS: usize = 16;

/// One block barrier in its current phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct BarrierState {
    /// Threads that have arrived.
    pub arrived: u32,
    /// Threads that it waits for; 0: the whole block.
    pub count: u32,
    pub popc: u32,
    pub all: bool,
    pub any: bool,
    /// Which one `barrier.red` is about.
    pub reduction: Option<BarrierKind>,
}

impl BarrierState {
    /// Whether the phase is over, with `live` threads in the block.
    pub fn is_complete(&self, live: u32) -> bool {
        self.arrived > 0 && self.arrived >= if self.count == 0 { live } else { self.count }
    }
}

/// A resident block.
pub struct Block {
    /// Slot of the grid.
    pub grid: usize,
    pub device: u32,
    pub sm: u32,
    pub index: [u32; 3],
    /// Rank in its cluster, and the cluster's slot.
    pub rank: u32,
    pub cluster: usize,
    pub warps: Vec<Warp>,
    /// Threads that have not exited.
    pub live: u32,
    pub barriers: [BarrierState; BARRIERS],
    /// Tensor memory, lane by lane; empty before the first allocation.
    pub tensor: Vec<u32>,
    /// Allocated columns, a bit for each 32.
    pub tensor_columns: u32,
    /// It has promised to allocate no more.
    pub tensor_given_up: bool,
    /// It has let dependent grids start.
    pub triggered: bool,
}

impl Block {
    /// Warps of which no thread is left.
    pub fn exited_warps(&self) -> impl Iterator<Item = &Warp> {
        self.warps.iter().filter(|w| w.live == 0)
    }

    /// Whether a barrier for the whole block is complete, but only because warps that had not arrived have exited.
    pub fn lacks_warps(&self, id: usize) -> bool {
        let state = &self.barriers[id];
        state.count == 0
            && state.is_complete(self.live)
            && self.exited_warps().any(|w| w.counted[id] == 0)
    }
}

/// A cluster of resident blocks.
pub struct Cluster {
    /// Slots of the blocks, by rank; `None`: the block has exited, and its slot may be another's.
    pub blocks: Vec<Option<usize>>,
    /// Threads of all blocks that have not exited.
    pub live: u32,
    pub arrived: u32,
    /// Completed phases of the cluster barrier.
    pub phase: u64,
    /// Blocks that have not ended.
    pub resident: u32,
}

/// The frame of a call.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub function: u32,
    /// First register row, predicate, and byte of local memory.
    pub regs: u32,
    pub preds: u32,
    pub local: u32,
    /// Bytes of local memory that `alloca` has added to it.
    pub extra: u32,
    /// Where it returns to.
    pub ret: u32,
}

/// The same call, whatever has been added.
impl PartialEq for Frame {
    fn eq(&self, other: &Frame) -> bool {
        let place = |f: &Frame| (f.function, f.regs, f.preds, f.local, f.ret);
        place(self) == place(other)
    }
}

/// Why a group does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    /// At a block barrier.
    Barrier(u8),
    /// At a warp-wide exchange, for other lanes of the warp.
    Collective,
    /// At `bar.warp.sync`.
    WarpSync,
    /// At `barrier.cluster.wait`, until that many phases are complete.
    Cluster(u64),
    /// At `griddepcontrol.wait`, until the grid before has ended.
    GridWait,
}

/// Lanes with one program counter and one call stack.
#[derive(Debug, Clone)]
pub struct Group {
    pub mask: u32,
    pub pc: u32,
    pub frame: Frame,
    pub stack: Vec<Frame>,
    pub state: State,
    /// When it last had a turn.
    pub last: u64,
    /// The phase of the cluster barrier at which it arrived last.
    pub cluster_phase: u64,
}

impl Group {
    pub fn joins(&self, other: &Group) -> bool {
        self.pc == other.pc
            && self.frame == other.frame
            && self.state == other.state
            && self.stack == other.stack
    }
}

/// A warp.
#[derive(Default)]
pub struct Warp {
    pub regs: Vec<Row>,
    pub preds: Vec<u32>,
    /// Local memory in 8-byte words, a row per word.
    pub local: Vec<Row>,
    pub groups: Vec<Group>,
    /// Lanes that have not exited.
    pub live: u32,
    /// Number in the block.
    pub index: u32,
    /// The group that has the turn.
    pub current: usize,
    /// Instructions for which the current group keeps the turn whatever its program counter.
    pub sticky: u32,
    /// Lanes that a barrier's current phase has counted, by barrier.
    pub counted: [u32; BARRIERS],
    /// The instruction with which the first of them came.
    pub came_by: [u32; BARRIERS],
    /// Lanes that have arrived at the cluster's barrier and not waited there since.
    pub cluster_arrived: u32,
    /// Whether some of its lanes may stand at an aligned barrier while others are elsewhere.
    pub parted_at_barrier: bool,
    /// `wgmma.commit_group`s so far.
    pub groups_committed: u32,
    /// With weak memory: accesses that are performed later.
    pub deferred: Vec<Deferred>,
    /// Asynchronous copies, once there is one that does not land at once.
    pub copies: Option<Box<Copies>>,
    /// With a schedule by priorities.
    pub rank: Rank,
    /// Position in the list of ready warps; `u32::MAX`: not in it.
    pub ready_at: u32,
}

impl Warp {
    pub fn has_ready(&self) -> bool {
        self.groups.iter().any(|g| g.state == State::Ready)
    }
}
