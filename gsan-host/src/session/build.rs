//! Building a session.

use super::launch::LaunchRing;
use super::memory::Service;
use super::{Checked, Session, reporting};
use crate::catalogue::Catalogue;
use crate::cell_format::{CellFormat, for_several_devices};
use crate::clocks::Clocks;
use crate::driver::{Device, device_count};
use crate::error::{Error, Result};
use crate::records::RecordView;
use crate::report::{DeviceInfo, RaceClass, Report};
use crate::reservation::Reservation;
use crate::rows::RowPool;
use crate::runtime_state::{Common, RuntimeState, Shape, ShapeRequest, blocks_per_sm};
use crate::watchdog::Watchdog;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Called by the watchdog with what was found so far, from its own thread; it is expected to print and end the process,
/// because the waiting thread cannot be woken.
pub type OnExpiry = Box<dyn FnOnce(Report) + Send>;

/// The devices that there are, in the driver's order.
pub fn list_devices() -> Result<Vec<DeviceInfo>> {
    let simulated = cuda_lazy::backend() == cuda_lazy::Backend::Simulated;
    let open = |i| {
        Device::open(i).map(|d| DeviceInfo {
            simulated,
            name: d.name.clone(),
            sms: d.sms,
        })
    };
    (0..device_count()?).map(open).collect()
}

/// Builds a [`Session`].
pub struct Builder {
    devices: Vec<u32>,
    slots_per_sm: Option<u32>,
    clock_buffer_size: Option<u32>,
    seed: u32,
    schedule_seed: Option<u64>,
    instrument: bool,
    cell: CellFormat,
    sc_order: bool,
    classes_off: Vec<RaceClass>,
    watchdog: Option<(Duration, OnExpiry)>,
    interrupt: Option<&'static AtomicBool>,
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder {
            devices: vec![0],
            slots_per_sm: None,
            clock_buffer_size: None,
            seed: 0,
            schedule_seed: None,
            instrument: true,
            cell: CellFormat::default(),
            sc_order: false,
            classes_off: Vec::new(),
            watchdog: None,
            interrupt: None,
        }
    }

    /// The driver's numbers of the devices to use, default `[0]`. Their place in this list is the device index everywhere
    /// else.
    pub fn devices(mut self, devices: &[u32]) -> Builder {
        self.devices = devices.to_vec();
        self
    }

    /// Logical threads per multiprocessor; default: as many as blocks can be resident, within the format's limits.
    pub fn slots_per_sm(mut self, slots: Option<u32>) -> Builder {
        self.slots_per_sm = slots;
        self
    }

    /// Snapshots in a logical thread's ring; default: 64, fewer where memory is short.
    pub fn clock_buffer_size(mut self, snapshots: Option<u32>) -> Builder {
        self.clock_buffer_size = snapshots;
        self
    }

    /// Seed of the readers' sampling, default 0.
    pub fn seed(mut self, seed: u32) -> Builder {
        self.seed = seed;
        self
    }

    /// The simulator's schedule seed, for the report only (the simulator itself is told by its own configuration).
    pub fn schedule_seed(mut self, seed: Option<u64>) -> Builder {
        self.schedule_seed = seed;
        self
    }

    /// False: run modules as they are, check nothing. Default true.
    pub fn instrument(mut self, on: bool) -> Builder {
        self.instrument = on;
        self
    }

    /// The shadow cells' format, default [`CellFormat::Wide`].
    pub fn cell(mut self, format: CellFormat) -> Builder {
        self.cell = format;
        self
    }

    /// True: each `fence.sc` synchronises with the next, as PTX has it. False (default): two of them synchronise as C++'s
    /// do, only through a value that one side wrote and the other read.
    pub fn sc_order(mut self, on: bool) -> Builder {
        self.sc_order = on;
        self
    }

    /// Switches report classes off: their findings are kept apart ([`Report::hidden`]). Without [`RaceClass::IntraBlock`]
    /// barriers are not instrumented either, so that there is nothing to find.
    pub fn classes_off(mut self, classes: &[RaceClass]) -> Builder {
        self.classes_off = classes.to_vec();
        self
    }

    /// Calls `on_expiry` when one wait of the host takes longer than `limit`.
    pub fn watchdog(
        mut self,
        limit: Duration,
        on_expiry: impl FnOnce(Report) + Send + 'static,
    ) -> Builder {
        self.watchdog = Some((limit, Box::new(on_expiry)));
        self
    }

    /// Lets the watchdog call too when `flag` is set, as a handler of Ctrl-C may do. Without a watchdog it does nothing.
    pub fn interrupt(mut self, flag: &'static AtomicBool) -> Builder {
        self.interrupt = Some(flag);
        self
    }

    /// Opens the devices, makes the reservation and the runtime's state.
    pub fn build(self) -> Result<Session> {
        self.open()
            .map_err(|e| reporting::at_build(e, &cuda_lazy::backend()))
    }

    fn open(self) -> Result<Session> {
        if self.devices.is_empty() {
            return Err(Error::Configuration(
                "a session needs at least one device".into(),
            ));
        }
        let mut devices = Vec::new();
        for (i, &ordinal) in self.devices.iter().enumerate() {
            if self.devices[..i].contains(&ordinal) {
                return Err(Error::Configuration(format!(
                    "device {ordinal} is listed twice"
                )));
            }
            devices.push(Device::open(ordinal)?);
        }
        for a in &devices {
            for b in devices.iter().filter(|b| !Rc::ptr_eq(a, b)) {
                a.enable_peer(b)?;
            }
        }
        let mut runtime = self.cell.runtime()?;
        if devices.len() > 1 {
            runtime = for_several_devices(&runtime).into();
        }
        let checked = if self.instrument {
            Some(self.checked(&devices)?)
        } else {
            None
        };
        let catalogue = Arc::new(Mutex::new(Catalogue::default()));
        let mut session = Session {
            watchdog: None,
            reads: Vec::new(),
            streams: Vec::new(),
            events: Vec::new(),
            clocks: Clocks::new(),
            modules: Vec::new(),
            checked,
            multicasts: Vec::new(),
            live: BTreeMap::new(),
            devices,
            catalogue,
            graphs: Vec::new(),
            hasty: Vec::new(),
            failure: None,
            schedule_seed: self.schedule_seed,
            classes_off: self.classes_off,
            runtime,
        };
        if let Some((limit, on_expiry)) = self.watchdog {
            session.watchdog = Some(start_watchdog(&session, limit, self.interrupt, on_expiry)?);
        }
        Ok(session)
    }

    fn checked(&self, devices: &[Rc<Device>]) -> Result<Checked> {
        let mut request = ShapeRequest {
            num_devices: devices.len() as u32,
            num_sms: 1,
            blocks_per_sm: 1,
            free: u64::MAX,
            slots_per_sm: self.slots_per_sm,
            clock_buffer_size: self.clock_buffer_size,
        };
        for device in devices {
            request.num_sms = request.num_sms.max(device.sms);
            request.blocks_per_sm = request.blocks_per_sm.max(blocks_per_sm(device)?);
            device.room_for_hooks()?;
            request.free = request.free.min(device.memory()?.0);
        }
        let shape = Shape::choose(request)?;
        let reservation = Reservation::new(devices, self.cell)?;
        let common = Common {
            layout: reservation.layout(),
            seed: self.seed,
            sc_order: self.sc_order,
        };
        let runtime = RuntimeState::new(devices, shape, &common)?;
        let mut pools = Vec::new();
        let mut rings = Vec::new();
        let mut services = Vec::new();
        for device in devices {
            pools.push(RowPool::new(device, shape.num_threads())?);
            rings.push(LaunchRing::new(device)?);
            services.push(Service::new(device)?);
            // Fills are asynchronous to the host, and non-blocking streams don't wait for them.
            device.synchronize()?;
        }
        let own = devices.iter().map(|_| None).collect();
        Ok(Checked {
            own,
            pools,
            rings,
            services,
            runtime,
            reservation,
        })
    }
}

fn start_watchdog(
    session: &Session,
    limit: Duration,
    interrupt: Option<&'static AtomicBool>,
    on_expiry: OnExpiry,
) -> Result<Watchdog> {
    let catalogue = session.catalogue.clone();
    let views: Vec<RecordView> = session
        .checked
        .iter()
        .flat_map(|c| &c.runtime.devices)
        // SAFETY: the session's first field is the watchdog, whose drop waits for its thread, which owns the views.
        .map(|d| unsafe { RecordView::new(&d.records) })
        .collect();
    let device = reporting::device_info(session);
    let seed = session.schedule_seed;
    let classes_off = session.classes_off.clone();
    let expired = move || {
        let message = if interrupt.is_some_and(|i| i.load(Ordering::Relaxed)) {
            "interrupted".to_string()
        } else {
            format!(
                "the host has waited for more than {} s: a kernel may never end",
                limit.as_secs_f64()
            )
        };
        let mut report = reporting::from_views(&views, &catalogue, device, seed, message);
        report.hide(&classes_off);
        on_expiry(report);
    };
    Watchdog::start(limit, interrupt, expired).map_err(|e| {
        Error::Configuration(format!("the watchdog's thread could not be started: {e}"))
    })
}
