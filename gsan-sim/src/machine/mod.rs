//! The PTX machine: address space, modules, grids, warps and the scheduler that interleaves them.
//!
//! Top-down: [`Machine`] is what the driver sees; `load` turns PTX into `ir`; `sched` picks warps; `exec` runs one
//! instruction for a group of lanes; `memory` is the address space.

pub mod memory;
pub mod stop;

pub use memory::{Access, Backing, MapError, Memory, MemoryFault, RegionInfo, RegionKind};
pub use stop::{FaultKind, Site, Stop};

use crate::Config;

/// A loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// A kernel of a loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// A launched grid; `%gridid` is the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GridId(pub u64);

/// Why a module was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct LoadError {
    /// What is wrong.
    pub message: String,
    /// Line of the PTX text, from 1; 0: the whole module.
    pub line: u32,
    /// Column, from 1; 0: unknown.
    pub column: u32,
}

/// What the driver API can say about a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Its name in the PTX.
    pub name: String,
    /// The module.
    pub module: ModuleId,
    /// Bytes of static shared memory.
    pub static_shared: u32,
    /// Alignment of its shared memory.
    pub shared_align: u32,
    /// Bytes of local memory per thread, as far as it is static.
    pub local_bytes: u32,
    /// Bytes of the module's constant memory.
    pub const_bytes: u32,
    /// Registers per thread: an estimate, at most 255.
    pub registers: u32,
    /// The largest block: `.maxntid`, `.reqntid` or 1024.
    pub max_threads: u32,
    /// `.reqntid`.
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub required_cluster: Option<[u32; 3]>,
    /// Offset and size of each parameter.
    pub params: Vec<(u32, u32)>,
    /// Bytes of all parameters.
    pub param_bytes: u32,
    /// `.version` as 10 × major + minor.
    pub ptx_version: u32,
    /// Number in `.target sm_NN`.
    pub target: u32,
}

/// A kernel launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchDesc {
    /// On which device.
    pub device: u32,
    /// Which kernel.
    pub function: FunctionId,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster; `[1, 1, 1]` without.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameter buffer, laid out as [`FunctionInfo::params`] says.
    pub params: Vec<u8>,
    /// Whether all blocks must be resident at once (grid barriers).
    pub cooperative: bool,
}

/// Why a launch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No such device or function.
    #[error("no such device or function")]
    NoSuchFunction,
    /// Grid, block or cluster sizes that no GPU takes, or that `.maxntid`/`.reqntid` rule out.
    #[error("invalid launch configuration: {0}")]
    InvalidConfiguration(String),
    /// More threads, registers or shared memory than a multiprocessor has.
    #[error("out of resources: {0}")]
    OutOfResources(String),
    /// Not all blocks of a cooperative grid fit at once.
    #[error("a cooperative grid of {blocks} blocks needs all of them resident, and the device holds {room}")]
    CooperativeTooLarge {
        /// Blocks asked for.
        blocks: u64,
        /// Blocks that fit.
        room: u64,
    },
    /// The parameter buffer has the wrong size.
    #[error("the kernel takes {expected} bytes of parameters, not {given}")]
    Params {
        /// What it takes.
        expected: u32,
        /// What was given.
        given: u32,
    },
    /// The host has no memory left.
    #[error("out of memory")]
    OutOfMemory,
}

/// What [`Machine::run`] came back for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// All blocks of a grid have ended.
    Completed(GridId),
    /// Nothing is running.
    Idle,
    /// `max_steps` are used up and work is left.
    Yield,
    /// The run ended; no grid is left running. Memory stays as it is.
    Stopped(Stop),
}

/// The simulated GPUs.
pub struct Machine {
    config: Config,
    memory: Memory,
}

// Interface; bodies follow.
#[allow(unused_variables)]
impl Machine {
    /// Machines of the configured shape.
    pub fn new(config: Config) -> Machine {
        Machine { config, memory: Memory::new() }
    }

    /// The shape.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The address space.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The address space, to change it.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Parses a module, lays out its variables on `device` and decodes its kernels.
    pub fn load_module(&mut self, device: u32, ptx: &str) -> Result<ModuleId, LoadError> {
        Err(LoadError { message: "not written yet".into(), line: 0, column: 0 })
    }

    /// Frees a module and its variables; false if there is none. Its grids must have ended.
    pub fn unload_module(&mut self, module: ModuleId) -> bool {
        false
    }

    /// The kernel of that name.
    pub fn function(&self, module: ModuleId, name: &str) -> Option<FunctionId> {
        None
    }

    /// What is known of a kernel.
    pub fn function_info(&self, function: FunctionId) -> Option<&FunctionInfo> {
        None
    }

    /// The kernels of a module, in the order of the text.
    pub fn functions(&self, module: ModuleId) -> Vec<FunctionId> {
        Vec::new()
    }

    /// Address and size of a `.global` or `.const` variable.
    pub fn global(&self, module: ModuleId, name: &str) -> Option<(u64, u64)> {
        None
    }

    /// Blocks of a kernel that one multiprocessor holds at once.
    pub fn blocks_per_sm(&self, function: FunctionId, threads: u32, dynamic_shared: u32) -> u32 {
        0
    }

    /// Starts a grid: its blocks run from the next [`Machine::run`] on, beside those of all grids that run already.
    pub fn launch(&mut self, launch: LaunchDesc) -> Result<GridId, LaunchError> {
        Err(LaunchError::NoSuchFunction)
    }

    /// Runs for at most `max_steps` warp instructions, or until a grid completes or something stops the run.
    pub fn run(&mut self, max_steps: u64) -> RunEvent {
        RunEvent::Idle
    }

    /// Whether a grid has been launched and has not ended.
    pub fn is_running(&self, grid: GridId) -> bool {
        false
    }

    /// Starts counting [`Config::step_budget`] anew: the host begins to wait. A grid that completes does so too.
    pub fn reset_budget(&mut self) {}

    /// Ends all grids where they are.
    pub fn abort(&mut self) {}

    /// What kernels have printed since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Warp instructions executed so far.
    pub fn steps(&self) -> u64 {
        0
    }

    /// Thread instructions executed so far.
    pub fn thread_steps(&self) -> u64 {
        0
    }
}
