//! The PTX machine: address space, modules, grids, warps and the scheduler that interleaves them.
//!
//! Top-down: [`Machine`] is what the driver sees; `load` turns PTX into `ir`; `sched` picks warps; `exec` runs one
//! instruction for a group of lanes; `memory` is the address space.

mod alu;
mod dependent;
mod element;
mod exec;
mod ir;
mod launch;
mod load;
pub mod memory;
mod places;
mod priority;
mod report;
mod sched;
mod state;
pub mod stop;
pub(crate) mod tensor_map;
pub(crate) mod texture;
mod trace;
mod ty;
mod weak;

pub use memory::{Access, Backing, MapError, Memory, MemoryFault, RegionInfo, RegionKind};
pub use stop::{FaultKind, Site, Stop};
pub use trace::TraceStep;

use std::collections::VecDeque;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Config, MemoryModel, Schedule};

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
    /// How many of them, from the start, the user's code may access, where gsan's runtime has the others; `None`: all.
    pub user_dynamic: Option<u32>,
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
    #[error(
        "a cooperative grid of {blocks} blocks needs all of them resident, and the device holds {room}"
    )]
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
    modules: Vec<Option<load::LoadedModule>>,
    /// Module and index among its kernels, by [`FunctionId`].
    functions: Vec<(ModuleId, u32)>,
    grids: Vec<Option<state::Grid>>,
    /// Slots of grids that have blocks to place, in launch order, by device.
    queues: Vec<VecDeque<usize>>,
    blocks: Vec<Option<Box<state::Block>>>,
    /// Shared memory, by block slot.
    shared: Vec<Vec<u8>>,
    clusters: Vec<Option<state::Cluster>>,
    sms: Vec<Vec<sched::Sm>>,
    /// Warps that can go on: block slot and number in the block.
    ready: Vec<(u32, u32)>,
    /// Grids that have released their dependents since [`Machine::take_released`].
    released: Vec<GridId>,
    events: VecDeque<RunEvent>,
    rng: Xoshiro256PlusPlus,
    next_grid: u64,
    steps: u64,
    thread_steps: u64,
    budget_start: u64,
    until_preempt: u32,
    until_switch: u32,
    output: Vec<u8>,
    heap: exec::Heap,
    flights: exec::Flights,
    trace: Vec<TraceStep>,
    weak: Option<Box<weak::Weak>>,
    priorities: Option<priority::Priorities>,
}

impl Machine {
    /// Machines of the configured shape.
    pub fn new(config: Config) -> Machine {
        let devices = config.devices as usize;
        let sms = vec![sched::Sm::default(); config.sms as usize];
        Machine {
            memory: Memory::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            grids: Vec::new(),
            queues: vec![VecDeque::new(); devices],
            blocks: Vec::new(),
            shared: Vec::new(),
            clusters: Vec::new(),
            released: Vec::new(),
            sms: vec![sms; devices],
            ready: Vec::new(),
            events: VecDeque::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(config.seed),
            next_grid: 1,
            steps: 0,
            thread_steps: 0,
            budget_start: 0,
            until_preempt: 0,
            until_switch: 0,
            output: Vec::new(),
            heap: exec::Heap::default(),
            flights: exec::Flights::default(),
            trace: Vec::new(),
            weak: (config.memory == MemoryModel::Weak)
                .then(|| Box::new(weak::Weak::new(config.seed))),
            priorities: (config.schedule == Schedule::Priority)
                .then(|| priority::Priorities::new(config.seed)),
            config,
        }
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
        self.settle();
        &mut self.memory
    }

    /// With weak memory: all that is written is seen by all.
    fn settle(&mut self) {
        if let Some(weak) = &mut self.weak {
            weak.settle();
        }
    }

    /// Parses a module, lays out its variables on `device` and decodes its kernels.
    ///
    /// # Errors
    /// Text that is no PTX, or PTX that a driver would refuse. An instruction that the machine merely lacks is no
    /// error here: see [`Machine::unsupported`].
    pub fn load_module(&mut self, device: u32, ptx: &str) -> Result<ModuleId, LoadError> {
        let id = ModuleId(self.modules.len() as u32);
        let module = load::load(ptx, device, id, &mut self.memory, &self.config)?;
        for index in 0..module.kernels.len() {
            self.functions.push((id, index as u32));
        }
        self.modules.push(Some(module));
        Ok(id)
    }

    /// Frees a module and its variables; false if there is none, or if one of its kernels runs.
    pub fn unload_module(&mut self, module: ModuleId) -> bool {
        let busy = |g: &state::Grid| {
            self.functions
                .get(g.function_id.0 as usize)
                .is_some_and(|f| f.0 == module)
        };
        if self.grids.iter().flatten().any(busy) {
            return false;
        }
        match self
            .modules
            .get_mut(module.0 as usize)
            .and_then(Option::take)
        {
            Some(loaded) => {
                loaded.free(&mut self.memory);
                true
            }
            None => false,
        }
    }

    fn module(&self, id: ModuleId) -> Option<&load::LoadedModule> {
        self.modules.get(id.0 as usize)?.as_ref()
    }

    /// The kernel of that name.
    pub fn function(&self, module: ModuleId, name: &str) -> Option<FunctionId> {
        self.functions(module)
            .into_iter()
            .find(|&f| self.function_info(f).is_some_and(|i| i.name == name))
    }

    /// What is known of a kernel.
    pub fn function_info(&self, function: FunctionId) -> Option<&FunctionInfo> {
        let &(module, index) = self.functions.get(function.0 as usize)?;
        self.module(module)?
            .kernels
            .get(index as usize)
            .map(|(_, info)| info)
    }

    /// The kernels of a module, in the order of the text.
    pub fn functions(&self, module: ModuleId) -> Vec<FunctionId> {
        // A module's kernels have consecutive numbers.
        let first = self.functions.partition_point(|f| f.0 < module);
        let end = self.functions.partition_point(|f| f.0 <= module);
        if self.module(module).is_none() {
            return Vec::new();
        }
        (first..end).map(|i| FunctionId(i as u32)).collect()
    }

    /// Address and size of a `.global` or `.const` variable.
    pub fn global(&self, module: ModuleId, name: &str) -> Option<(u64, u64)> {
        self.module(module)?.globals.get(name).copied()
    }

    /// PTX line and text of each instruction that the machine lacks: executing one stops the run.
    pub fn unsupported(&self, module: ModuleId) -> Vec<(u32, String)> {
        self.module(module)
            .map(|m| m.program.unsupported.clone())
            .unwrap_or_default()
    }

    /// Whether a grid has been launched and has not ended.
    pub fn is_running(&self, grid: GridId) -> bool {
        self.grids.iter().flatten().any(|g| g.id == grid)
    }

    /// Starts counting [`Config::step_budget`] anew: the host begins to wait. A grid that completes does so too.
    pub fn reset_budget(&mut self) {
        self.budget_start = self.steps;
    }

    /// What kernels have printed since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Records what the driver does to memory: see [`TraceStep::Operation`].
    pub(crate) fn note_operation(&mut self, read: Option<u64>, write: Option<u64>, fill: bool) {
        if self.config.trace {
            self.trace.push(TraceStep::Operation { read, write, fill });
        }
    }

    /// With [`Config::trace`]: what kernels have done since the last call.
    pub fn take_trace(&mut self) -> Vec<TraceStep> {
        std::mem::take(&mut self.trace)
    }

    /// Warp instructions executed so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Thread instructions executed so far.
    pub fn thread_steps(&self) -> u64 {
        self.thread_steps
    }
}
