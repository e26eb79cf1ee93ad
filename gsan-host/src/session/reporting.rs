//! The report: what was found, what ended the run.

use super::Session;
use crate::catalogue::Catalogue;
use crate::driver::Device;
use crate::error::{Error, Result};
use crate::merge;
use crate::prepare;
use crate::records::{RecordView, add_counters, findings};
use crate::report::{
    DeviceInfo, LaunchInfo, Outcome, Race, RaceClass, RaceKind, Report, Side, Stats,
};
use crate::reservation::Layout;
use cuda_lazy::{Backend, StopKind};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// How a run ended, if an error means that it has ended.
pub(super) fn fatal_outcome(error: &Error) -> Option<Outcome> {
    let Error::Driver { code, .. } = error else {
        return None;
    };
    let by_code = outcome_of(*code)?;
    let by_simulator = cuda_lazy::diagnosis().map(|d| match d.kind {
        StopKind::Trap => Outcome::Trap,
        StopKind::Fault => Outcome::Fault,
        StopKind::Deadlock => Outcome::Deadlock,
        StopKind::Budget => Outcome::Budget,
        _ => Outcome::Error,
    });
    Some(by_simulator.unwrap_or(by_code))
}

/// The `CUresult`s after which a context is dead.
fn outcome_of(code: u32) -> Option<Outcome> {
    match code {
        // Launch failed (a trap), device-side assertion, illegal instruction.
        719 | 710 | 715 => Some(Outcome::Trap),
        // Illegal address, hardware stack error, misaligned address, invalid address space, invalid program counter.
        700 | 714 | 716 | 717 | 718 => Some(Outcome::Fault),
        // Launch timeout.
        702 => Some(Outcome::Budget),
        // Context destroyed, ECC error, NVLink error, device unavailable, contained and uncontained hardware errors.
        709 | 214 | 220 | 46 | 721 | 722 => Some(Outcome::Error),
        _ => None,
    }
}

/// What such an end means for the rest of the process on a GPU: the driver keeps answering with the same error.
pub(super) const DEVICE_LOST: &str = "this process can do nothing more on that GPU: what was found until then is reported, \
     start the program again for another run; the simulated GPU (--device sim) names the access that failed";

/// A fault, as far as the driver tells: the simulator does.
#[derive(Debug, Clone, Copy)]
pub(super) struct FaultAt {
    address: u64,
    /// It happened while the user's instruction was being checked.
    in_hook: bool,
}

impl FaultAt {
    /// The last one.
    pub(super) fn last() -> Option<FaultAt> {
        let diagnosis = cuda_lazy::diagnosis()?;
        Some(FaultAt {
            address: diagnosis.address?,
            in_hook: diagnosis.site.is_some_and(|s| s.hook.is_some()),
        })
    }
}

/// Memory whose end is further away than this says nothing about an address.
const FAR: u64 = 1 << 20;

/// The error in words. A hook touches the shadow before the user's instruction touches its memory, so an address where
/// nothing is mapped shows there first: then the user's address is named, and not its shadow's.
pub(super) fn message(
    error: &Error,
    fault: Option<FaultAt>,
    layout: Option<Layout>,
    names: &Catalogue,
) -> String {
    let mut text = match error {
        Error::Driver {
            detail: Some(detail),
            ..
        } => detail.clone(),
        other => other.to_string(),
    };
    let (Some(fault), Some(layout)) = (fault, layout) else {
        return text;
    };
    let mut address = fault.address;
    if fault.in_hook
        && let Some(word) = layout.word_of_cell(address)
    {
        text = text.replacen(&format!("{address:#x}"), &format!("{word:#x}"), 1);
        address = word;
    }
    if layout.cell(address).is_none() {
        return text;
    }
    if let Some(name) = names.live_around(address) {
        text.push_str(&format!("; in `{name}`"));
    } else if let Some((name, past)) = names.before(address)
        && past <= FAR
    {
        text.push_str(&format!("; {past} bytes past the end of `{name}`"));
    }
    text
}

/// An error while a session is built: where an earlier one has lost the device, that is what it comes from.
pub(super) fn at_build(error: Error, backend: &Backend) -> Error {
    match (&error, backend) {
        (Error::Driver { code, name, .. }, Backend::Real { .. })
            if outcome_of(*code).is_some_and(|o| o != Outcome::Error) =>
        {
            Error::DeviceLost { name: name.clone() }
        }
        _ => error,
    }
}

/// Where the session runs.
pub(super) fn device_info(session: &Session) -> DeviceInfo {
    let first: Option<&Rc<Device>> = session.devices.first();
    DeviceInfo {
        simulated: cuda_lazy::backend() == Backend::Simulated,
        name: first.map(|d| d.name.clone()).unwrap_or_default(),
        sms: first.map(|d| d.sms).unwrap_or(0),
    }
}

/// Orders findings: by the launch that found them, then by place. The device keeps them in a hash table.
fn in_order(mut races: Vec<Race>) -> Vec<Race> {
    races.sort_by_cached_key(|r| {
        let line = r.current.site.as_ref().map(|s| (s.ptx_line, s.line));
        (
            r.current.launch,
            line,
            r.kind as u8,
            r.class as u8,
            r.address,
        )
    });
    merge::fold(races)
}

fn assemble(
    (outcome, message): (Outcome, Option<String>),
    seed: Option<u64>,
    device: DeviceInfo,
    races: Vec<Race>,
    stats: Stats,
    names: &Catalogue,
) -> Report {
    Report {
        outcome,
        message,
        seed,
        schedules: 1,
        device,
        launches: names.launches.clone(),
        races: in_order(races),
        hidden: Vec::new(),
        past_end: Vec::new(),
        stats: Stats {
            instrumented_sites: names.modules.iter().map(|m| m.instrumented_sites).sum(),
            instrumentation: names
                .modules
                .iter()
                .map(|m| m.instrumentation)
                .fold(None, prepare::sum),
            ..stats
        },
        unsupported: names
            .modules
            .iter()
            .flat_map(|m| m.unsupported.iter().cloned())
            .collect(),
    }
}

/// What the watchdog can say: from the records alone.
pub(super) fn from_views(
    views: &[RecordView],
    catalogue: &Mutex<Catalogue>,
    device: DeviceInfo,
    seed: Option<u64>,
    message: String,
) -> Report {
    let names = catalogue.lock().unwrap_or_else(PoisonError::into_inner);
    let races = views
        .iter()
        .flat_map(|v| findings(&v.complete(), None, &names))
        .collect();
    assemble(
        (Outcome::Budget, Some(message)),
        seed,
        device,
        races,
        Stats::default(),
        &names,
    )
}

impl Session {
    fn views(&self) -> Vec<RecordView> {
        let devices = self.checked.iter().flat_map(|c| &c.runtime.devices);
        // SAFETY: callers use the views while they borrow the session, which keeps the records.
        devices
            .map(|d| unsafe { RecordView::new(&d.records) })
            .collect()
    }

    /// What was found so far, without waiting for anything: counts are lower bounds, tallies are missing.
    pub fn report_so_far(&self) -> Report {
        let device = device_info(self);
        let mut report = from_views(
            &self.views(),
            &self.catalogue,
            device,
            self.schedule_seed,
            String::new(),
        );
        (report.outcome, report.message) = self.ending();
        report.hide(&self.classes_off);
        report
    }

    /// Dependent launches that never waited for the one before them, as findings about no memory in particular.
    fn hasty_launches(&self) -> Vec<Race> {
        let names = self.names();
        let side = |launch: &LaunchInfo| Side {
            launch: Some(launch.id),
            kernel: Some(launch.kernel.clone()),
            block: None,
            thread: None,
            access: None,
            order: None,
            scope: None,
            site: None,
        };
        let module = |launch: &LaunchInfo| self.modules.iter().find(|m| m.name() == launch.module);
        let hasty = self.hasty.iter();
        hasty
            .filter_map(|&id| {
                let launch = names.launches.get(id as usize)?;
                let earlier = names.launches.get(..id as usize)?.iter().rev();
                let before = earlier.clone().find(|l| l.stream == launch.stream)?;
                Some(Race {
                    kind: RaceKind::Raw,
                    class: RaceClass::MissingWait,
                    count: 1,
                    schedules: 1,
                    address: 0,
                    buffer: None,
                    offset: None,
                    size: 0,
                    current: Side {
                        site: module(launch).and_then(|m| m.beginning(&launch.kernel)),
                        ..side(launch)
                    },
                    prior: side(before),
                    flag: None,
                })
            })
            .collect()
    }

    fn ending(&self) -> (Outcome, Option<String>) {
        match &self.failure {
            Some((outcome, message)) => (*outcome, Some(message.clone())),
            None => (Outcome::Completed, None),
        }
    }

    /// Waits for all work, whatever became of it, and reports. What ended the run is in the report's outcome and message.
    pub fn finish(mut self) -> Result<Report> {
        if self.failure.is_none() {
            let _armed = self.begin()?;
            for device in 0..self.devices.len() as u32 {
                let waited = self.wait_for_device(device);
                if let Err(e) = self.noted(waited)
                    && self.failure.is_none()
                {
                    self.failure = Some((Outcome::Error, e.to_string()));
                }
            }
        }
        let alive = self.failure.is_none();
        let mut races = Vec::new();
        let mut stats = Stats::default();
        if let Some(checked) = &self.checked {
            let names = self.names();
            for (i, (state, view)) in checked.runtime.devices.iter().zip(self.views()).enumerate() {
                // A dead context has no counts and tallies to give.
                let counts = if alive {
                    state.race_counts().ok()
                } else {
                    None
                };
                let counters = if alive { state.counters().ok() } else { None };
                races.extend(findings(&view.complete(), counts.as_deref(), &names));
                add_counters(&mut stats, counters.as_ref(), i == 0);
            }
        }
        races.extend(self.hasty_launches());
        let device = device_info(&self);
        let mut report = assemble(
            self.ending(),
            self.schedule_seed,
            device,
            races,
            stats,
            &self.names(),
        );
        report.hide(&self.classes_off);
        if let Some(checked) = self.checked.as_ref().filter(|_| alive) {
            report.past_end = self.past_ends(checked);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_format::CellFormat;

    #[test]
    fn a_fault_in_a_hook_names_the_users_address() {
        let layout = Layout {
            real_base: 0x1000_0000,
            real_size: 0x100_0000,
            shadow_base: 0x1100_0000,
            format: CellFormat::Reference,
        };
        let mut names = Catalogue::default();
        names.add_memory("data", 0x1000_0000, 64);
        let fault = |names: &Catalogue, address: u64, in_hook: bool, layout| {
            let error = Error::Driver {
                call: "cuCtxSynchronize",
                code: 700,
                name: "CUDA_ERROR_ILLEGAL_ADDRESS".into(),
                description: "an illegal memory access".into(),
                detail: Some(format!("fault at address {address:#x}: no memory there")),
            };
            message(&error, Some(FaultAt { address, in_hook }), layout, names)
        };
        let some = Some(layout);
        assert_eq!(
            fault(&names, 0x1100_0000 + 24 * 1000 + 16, true, some),
            "fault at address 0x10000fa0: no memory there; 3936 bytes past the end of `data`"
        );
        assert_eq!(
            fault(&names, 0x1000_0044, false, some),
            "fault at address 0x10000044: no memory there; 4 bytes past the end of `data`"
        );
        // In a buffer: a misaligned address, say. Far from the next one, and just not.
        names.add_memory("far", 0x1080_0000, 64);
        for (address, end) in [
            (0x1000_0002, "; in `data`"),
            (0x1080_0001, "; in `far`"),
            (0x1010_0040, "; 1048576 bytes past the end of `data`"),
            (0x1010_0041, ""),
        ] {
            assert_eq!(
                fault(&names, address, false, some),
                format!("fault at address {address:#x}: no memory there{end}")
            );
        }
        // The user's own address happens to lie where the shadow is; and one that is in no part.
        for (address, in_hook, layout) in [
            (0x1100_0000, false, some),
            (0, false, some),
            (0, true, some),
            (0x1100_0000, true, None),
        ] {
            assert_eq!(
                fault(&names, address, in_hook, layout),
                format!("fault at address {address:#x}: no memory there")
            );
        }
    }

    #[test]
    fn a_device_that_an_earlier_session_lost_is_told_from_one_that_refuses() {
        let error = |code| Error::Driver {
            call: "cuCtxSetCurrent",
            code,
            name: "CUDA_ERROR_X".into(),
            description: "x".into(),
            detail: None,
        };
        let real = Backend::Real {
            path: "libcuda.so.1".into(),
            version: 13000,
        };
        for (code, backend, lost) in [
            (700, &real, true),
            (719, &real, true),
            (2, &real, false),
            (700, &Backend::Simulated, false),
        ] {
            let built = at_build(error(code), backend);
            assert_eq!(matches!(built, Error::DeviceLost { .. }), lost, "{code}");
        }
        let text = at_build(error(700), &real).to_string();
        assert!(text.contains("start the program again"), "{text}");
    }

    #[test]
    fn dead_contexts_are_told_from_refused_calls() {
        for (code, outcome) in [
            (719, Outcome::Trap),
            (700, Outcome::Fault),
            (702, Outcome::Budget),
            (214, Outcome::Error),
        ] {
            assert_eq!(outcome_of(code), Some(outcome));
        }
        for code in [1, 2, 201, 400, 701, 801] {
            assert_eq!(outcome_of(code), None);
        }
    }
}
