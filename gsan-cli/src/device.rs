//! Which driver runs the kernels, and the shape of the simulated one.

use crate::args::{DeviceArgs, DeviceChoice};
use crate::failure::{Failure, Result};
use crate::scenario::model::DeviceShape;
use cuda_lazy::{Backend, Choice};
use gsan_sim::{ExitedWarps, MemoryModel, Schedule};

/// Step budget of the simulator where nothing else is asked for: some seconds' worth, so that a kernel that never ends is
/// reported while the user still watches.
pub const DEFAULT_BUDGET: u64 = 100_000_000;

/// The device that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// Whether it is simulated.
    pub simulated: bool,
    /// The driver's number of the first device.
    pub first: u32,
    /// The simulator's memory; `None`: as the scenario says.
    pub memory: Option<MemoryModel>,
    /// The simulator's schedules; `None`: as the scenario says.
    pub schedule: Option<Schedule>,
    /// What warps that have exited mean to the simulator's barriers; `None`: as the scenario says.
    pub exited_warps: Option<ExitedWarps>,
}

impl Chosen {
    /// The driver's numbers of the devices for a scenario that wants `count` of them.
    pub fn devices(self, count: u32) -> Vec<u32> {
        (self.first..self.first.saturating_add(count)).collect()
    }
}

/// Decides; must come before the first CUDA call.
pub fn choose(args: &DeviceArgs) -> Result<Chosen> {
    let wanted = match args.device {
        DeviceChoice::Auto => from_environment()?,
        given => given,
    };
    let (choice, first) = match wanted {
        DeviceChoice::Auto => (Choice::Auto, 0),
        DeviceChoice::Sim => (Choice::Sim, 0),
        DeviceChoice::Cuda(n) => (Choice::Cuda, n),
    };
    // A device that is not there is a wrong request: nothing ran.
    cuda_lazy::select(choice).map_err(Failure::input)?;
    match cuda_lazy::backend() {
        Backend::Unavailable { reason } => Err(Failure::input(format_args!(
            "no GPU can be used: {reason}; --device sim needs none"
        ))),
        backend => Ok(Chosen {
            simulated: backend == Backend::Simulated,
            first,
            memory: args.memory.map(Into::into),
            schedule: args.schedule.map(Into::into),
            exited_warps: args.exited_warps.map(Into::into),
        }),
    }
}

/// `GSAN_DEVICE` says what `--device auto` means.
fn from_environment() -> Result<DeviceChoice> {
    match std::env::var("GSAN_DEVICE") {
        Ok(value) if !value.is_empty() => value
            .to_lowercase()
            .parse()
            .map_err(|e| Failure::input(format_args!("GSAN_DEVICE={value}: {e}"))),
        _ => Ok(DeviceChoice::Auto),
    }
}

/// A fresh simulated device for the next session. Does nothing that a GPU would notice.
pub fn reset_simulator(chosen: Chosen, shape: DeviceShape, seed: u64, budget: Option<u64>) {
    let mut config = gsan_sim::driver::default_config();
    config.seed = seed;
    config.sms = shape.sms.unwrap_or(config.sms);
    config.devices = shape.devices.unwrap_or(config.devices);
    config.memory = chosen.memory.or(shape.memory).unwrap_or(config.memory);
    config.schedule = chosen
        .schedule
        .or(shape.schedule)
        .unwrap_or(config.schedule);
    config.exited_warps = chosen
        .exited_warps
        .or(shape.exited_warps)
        .unwrap_or(config.exited_warps);
    config.blocks_per_sm = shape.blocks_per_sm.unwrap_or(config.blocks_per_sm);
    if config.step_budget == gsan_sim::Config::default().step_budget {
        config.step_budget = DEFAULT_BUDGET;
    }
    config.step_budget = budget.unwrap_or(config.step_budget);
    gsan_sim::driver::reset();
    gsan_sim::driver::configure(config);
}
