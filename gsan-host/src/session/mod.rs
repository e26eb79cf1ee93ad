//! The session: everything between "these devices" and the report.
//!
//! What it does is spread over the files of this folder: modules, memory, order (streams, events, waiting), launches,
//! the report, inspection.

mod build;
pub(crate) mod edges;
#[cfg(test)]
mod edges_tests;
mod graph;
mod inspect;
mod launch;
mod memory;
mod modules;
mod multicast;
mod order;
mod past_end;
mod reporting;
mod tensor;
mod touch;

pub use build::{Builder, OnExpiry, list_devices};
pub use inspect::{CellState, ThreadClock};
pub use multicast::MulticastBuffer;

use crate::catalogue::Catalogue;
use crate::clocks::Clocks;
use crate::driver::{Device, Event, Module, Stream};
use crate::error::{Error, Result};
use crate::report::{Outcome, RaceClass};
use crate::request::{StreamFlags, StreamId};
use crate::reservation::Reservation;
use crate::rows::{LaunchRows, RowPool, Storage};
use crate::runtime_state::RuntimeState;
use crate::watchdog::{Armed, Watchdog};
use cuda_lazy::Backend;
use launch::LaunchRing;
use memory::{Live, PendingRead, Service};
use modules::LoadedModule;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Devices with their memory, modules and streams, and what was found so far.
///
/// # Dropping
/// `drop` first waits for the devices, since kernels use what is about to go (a dead context answers at once). Then the
/// fields go in the order in which they stand: the watchdog, which reads the race records; what refers to launches;
/// streams and events; modules; rows, runtime state and reservation; buffers outside of it. Contexts go last, when the
/// last object that was made in them has gone.
pub struct Session {
    watchdog: Option<Watchdog>,
    reads: Vec<Option<PendingRead>>,
    streams: Vec<StreamSlot>,
    events: Vec<EventSlot>,
    clocks: Clocks<Storage>,
    graphs: Vec<graph::Instance>,
    modules: Vec<LoadedModule>,
    multicasts: Vec<multicast::Bound>,
    checked: Option<Checked>,
    live: BTreeMap<u64, Live>,
    devices: Vec<Rc<Device>>,
    catalogue: Arc<Mutex<Catalogue>>,
    /// Launches that might start before the one before them had ended, and never waited for it.
    hasty: Vec<u32>,
    /// What ended the run, once something did.
    failure: Option<(Outcome, String)>,
    schedule_seed: Option<u64>,
    /// Report classes that are switched off.
    classes_off: Vec<RaceClass>,
    /// What is appended to modules.
    runtime: Cow<'static, str>,
}

/// What only an instrumented session has. Fields go in order: rows and runtime state before the reservation.
struct Checked {
    /// The runtime on its own, per device, loaded where no other module has its kernels.
    own: Vec<Option<Module>>,
    pools: Vec<Rc<RowPool>>,
    rings: Vec<LaunchRing>,
    services: Vec<Service>,
    runtime: RuntimeState,
    reservation: Reservation,
}

struct StreamSlot {
    // Before the stream: launches that may still run, oldest first.
    in_flight: VecDeque<InFlight>,
    stream: Stream,
    /// For the host to wait for what was issued so far.
    mark: Event,
    name: Option<String>,
    flags: StreamFlags,
    device: u32,
    /// Which clearing of each device's shadow its work is ordered after.
    cleared: Vec<u64>,
}

/// A launch that may still run: keeps its rows, and says which place of the ring is its.
struct InFlight {
    _rows: LaunchRows,
    place: u32,
    /// The launch's number, if it must wait for the one before it.
    must_wait: Option<u32>,
}

struct EventSlot {
    event: Event,
}

impl Session {
    /// Starts a builder.
    pub fn builder() -> Builder {
        Builder::new()
    }

    fn names(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn device(&self, index: u32) -> Result<&Rc<Device>> {
        let count = self.devices.len() as u32;
        self.devices.get(index as usize).ok_or(Error::NoSuchDevice {
            wanted: index,
            count,
        })
    }

    fn slot(&self, stream: StreamId) -> Result<&StreamSlot> {
        self.streams
            .get(stream.0 as usize)
            .ok_or(Error::UnknownStream(stream))
    }

    /// Begins an operation that may wait: nothing is left to do after a fatal error, and the watchdog looks on.
    fn begin(&self) -> Result<Option<Armed>> {
        if self.failure.is_some() {
            return Err(Error::Ended);
        }
        Ok(self.watchdog.as_ref().map(Watchdog::arm))
    }

    /// The same for what keeps the driver's compiler busy, which a limit made for kernels must not end.
    fn begin_compiling(&self) -> Result<Option<Armed>> {
        const COMPILER: Duration = Duration::from_secs(180);
        if self.failure.is_some() {
            return Err(Error::Ended);
        }
        Ok(self.watchdog.as_ref().map(|w| w.arm_for(COMPILER)))
    }

    /// Keeps an error that ends the run for the report.
    fn noted<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && self.failure.is_none()
            && let Some(outcome) = reporting::fatal_outcome(error)
        {
            let mut message = reporting::message(
                error,
                reporting::FaultAt::last(),
                self.checked.as_ref().map(|c| c.reservation.layout()),
                &self.names(),
            );
            if matches!(cuda_lazy::backend(), Backend::Real { .. }) {
                message = format!("{message}\n{}", reporting::DEVICE_LOST);
            }
            self.failure = Some((outcome, message));
        }
        result
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _armed = self.watchdog.as_ref().map(Watchdog::arm);
        for device in &self.devices {
            // A dead context answers at once; nothing else to do about an error here.
            let _ = device.synchronize();
        }
    }
}
