//! The CUDA driver API in front of the machine.
//!
//! [`symbol`] answers the C functions by the names that cust_raw links; cuda-lazy jumps to them. [`configure`] and
//! [`reset`] let one process run many schedules, each with a fresh machine; [`diagnosis`] says in words why the last run
//! stopped.
//!
//! Work that is queued runs only when the host waits, queries or reads; all streams' work then, interleaved by the seed.
//! One lock holds everything together, and handles are numbers that are looked up: a wrong one is an error code.
//!
//! | file | what |
//! |---|---|
//! | `api` | the macro that C functions are written with, callers' pointers, the lock |
//! | `codes`, `diagnosis` | error codes and texts; stops in words |
//! | `state`, `queue` | what the driver knows; what streams hold, and the engine that runs it |
//! | `entry`, `device`, `context`, `stream`, `event`, `module`, `library`, `function`, `launch` | the API of that name |
//! | `memory`, `vmm`, `pointer`, `transfer`, `copy` | memory, mappings, pointers' attributes, copies and fills |
//! | `tensor` | tensor maps |
//! | `texture` | arrays, textures, surfaces |
//! | `graph`, `graph_node`, `graph_exec`, `capture` | graphs: their edges, their nodes, launching them, making them of what streams are given |

mod api;
mod capture;
mod codes;
mod context;
mod copy;
mod device;
mod diagnosis;
mod entry;
mod event;
mod function;
mod graph;
mod graph_exec;
mod graph_node;
mod launch;
mod library;
mod memory;
mod module;
mod multicast;
mod pointer;
mod queue;
mod state;
mod stream;
mod tensor;
mod texture;
mod transfer;
mod vmm;

pub use diagnosis::{Diagnosis, StopKind};
pub use launch::USER_SHARED;

use crate::{Config, ExitedWarps, MemoryModel, Schedule};
use api::Session;

/// The C function of that name, exactly as it is linked (`cuMemAlloc_v2`); `None` if the simulated driver lacks it.
pub fn symbol(name: &str) -> Option<*const ()> {
    [
        entry::symbol,
        device::symbol,
        context::symbol,
        stream::symbol,
        tensor::symbol,
        texture::symbol,
        event::symbol,
        graph::symbol,
        graph_node::symbol,
        graph_exec::symbol,
        capture::symbol,
        module::symbol,
        library::symbol,
        function::symbol,
        launch::symbol,
        memory::symbol,
        vmm::symbol,
        multicast::symbol,
        pointer::symbol,
        transfer::symbol,
    ]
    .iter()
    .find_map(|symbol| symbol(name))
}

/// Sets the shape of the simulated GPUs for the next initialisation: before the first `cuInit`, or before the one after
/// [`reset`].
pub fn configure(config: Config) {
    Session::lock().state().config = Some(config);
}

/// Throws the simulated GPUs away: memory, contexts, streams, everything. All handles and device pointers die, pinned and
/// managed memory of the host's too. The next `cuInit` starts afresh.
pub fn reset() {
    Session::lock().state().reset();
}

/// Why the machine stopped last, since the last [`reset`]; `None` while all goes well.
pub fn diagnosis() -> Option<Diagnosis> {
    Session::lock().state().diagnosis.clone()
}

/// What kernels have done since the last call, if the simulated GPUs are [configured](Config::trace) to record it.
pub fn take_trace() -> Vec<crate::machine::TraceStep> {
    let mut session = Session::lock();
    let driver = session.state().driver.as_mut();
    driver.map_or_else(Vec::new, |driver| driver.machine.take_trace())
}

/// Instructions of threads that the machine has run since it was started or [`reset`].
pub fn thread_steps() -> u64 {
    Session::lock()
        .state()
        .driver
        .as_ref()
        .map_or(0, |driver| driver.machine.thread_steps())
}

/// [`Config::default`] with what the environment says: `GSAN_SIM_SEED`, `GSAN_SIM_DEVICES`, `GSAN_SIM_SMS`,
/// `GSAN_SIM_BLOCKS_PER_SM`, `GSAN_SIM_MEMORY` (bytes), `GSAN_SIM_STEP_BUDGET`, `GSAN_SIM_MEMORY_MODEL` (`weak`),
/// `GSAN_SIM_SCHEDULE` (`priority`), `GSAN_SIM_EXITED_WARPS` (`arrive`). Used when [`configure`] was not called.
/// What is no number, or zero where there must be one, counts as unset.
pub fn default_config() -> Config {
    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok()?.trim().parse().ok()
    }
    fn small(name: &str, most: u32) -> Option<u32> {
        number(name)
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| (1..=most).contains(n))
    }
    let mut config = Config::default();
    config.seed = number("GSAN_SIM_SEED").unwrap_or(config.seed);
    // Rights to memory are kept in 64 bits.
    config.devices = small("GSAN_SIM_DEVICES", 64).unwrap_or(config.devices);
    config.sms = small("GSAN_SIM_SMS", 4096).unwrap_or(config.sms);
    config.blocks_per_sm = small("GSAN_SIM_BLOCKS_PER_SM", 64).unwrap_or(config.blocks_per_sm);
    config.memory_bytes = number("GSAN_SIM_MEMORY")
        .filter(|&n| n > 0)
        .unwrap_or(config.memory_bytes);
    config.step_budget = number("GSAN_SIM_STEP_BUDGET")
        .filter(|&n| n > 0)
        .unwrap_or(config.step_budget);
    let says = |name: &str, word: &str| std::env::var(name).is_ok_and(|v| v.trim() == word);
    if says("GSAN_SIM_MEMORY_MODEL", "weak") {
        config.memory = MemoryModel::Weak;
    }
    if says("GSAN_SIM_SCHEDULE", "priority") {
        config.schedule = Schedule::Priority;
    }
    if says("GSAN_SIM_EXITED_WARPS", "arrive") {
        config.exited_warps = ExitedWarps::Arrive;
    }
    config
}
