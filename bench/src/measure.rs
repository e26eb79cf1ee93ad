//! Times the workloads through gsan-host: one session without instrumentation, one with.

use crate::workload::{Arg, MODULE, Sizes, Workload, all};
use gsan_host::report::{DeviceInfo, Outcome, Report};
use gsan_host::{Buffer, LaunchSpec, MemoryKind, ModuleId, Session, StreamId, Wait};
use std::time::{Duration, Instant};

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The sizes are impossible.
    #[error("{0}")]
    Sizes(String),
    /// The session failed.
    #[error(transparent)]
    Host(#[from] gsan_host::Error),
    /// A kernel ended badly.
    #[error("the run ended badly: {0}")]
    Run(String),
    /// The kernels do not race: this is an error of the detector.
    #[error("{0} races were reported in kernels that have none; the first: {1}")]
    FalseAlarm(usize, String),
}

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The driver's number of the device.
    pub device: u32,
    /// How large.
    pub sizes: Sizes,
    /// Timed launches per kernel; one more before them warms up.
    pub runs: u32,
}

/// One kernel's times.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The kernel.
    pub kernel: &'static str,
    /// Bytes that its accesses ask for.
    pub bytes: u64,
    /// Median of the device's time, un-instrumented.
    pub plain: Times,
    /// The same, instrumented.
    pub checked: Times,
}

/// Medians.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// Between two events, milliseconds of the device.
    pub device_ms: f64,
    /// Between issuing and having waited, on the host.
    pub host: Duration,
}

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Where.
    pub device: DeviceInfo,
    /// Accesses that the instrumented launches checked.
    pub checked_accesses: Option<u64>,
    /// One per kernel.
    pub rows: Vec<Row>,
}

/// Measures all kernels.
pub fn measure(plan: &Plan) -> Result<Measured, MeasureError> {
    plan.sizes.check().map_err(MeasureError::Sizes)?;
    let workloads = all(&plan.sizes);
    let (plain, _) = session(plan, &workloads, false)?;
    let (checked, report) = session(plan, &workloads, true)?;
    if let Some(race) = report.races.first() {
        return Err(MeasureError::FalseAlarm(
            report.races.len(),
            format!("{race:?}"),
        ));
    }
    let rows = workloads
        .iter()
        .zip(plain.into_iter().zip(checked))
        .map(|(w, (plain, checked))| Row {
            kernel: w.kernel,
            bytes: w.bytes,
            plain,
            checked,
        })
        .collect();
    Ok(Measured {
        device: report.device,
        checked_accesses: report.stats.checked_accesses,
        rows,
    })
}

fn session(
    plan: &Plan,
    workloads: &[Workload],
    instrument: bool,
) -> Result<(Vec<Times>, Report), MeasureError> {
    let session = Session::builder()
        .devices(&[plan.device])
        .instrument(instrument)
        .build()?;
    let mut bench = Bench::new(session, plan)?;
    let mut times = Vec::new();
    for workload in workloads {
        times.push(bench.time(workload, plan.runs)?);
    }
    let report = bench.session.finish()?;
    if report.outcome != Outcome::Completed {
        return Err(MeasureError::Run(report.message.unwrap_or_default()));
    }
    Ok((times, report))
}

/// A session with the module loaded and the buffers filled.
pub struct Bench {
    /// The session.
    pub session: Session,
    module: ModuleId,
    stream: StreamId,
    input: Buffer,
    output: Buffer,
}

impl Bench {
    /// Loads and allocates.
    pub fn new(mut session: Session, plan: &Plan) -> Result<Bench, gsan_host::Error> {
        let module = session.load_module("throughput.ptx", MODULE)?;
        let bytes = 4 * plan.sizes.words;
        let input = session.alloc("in", bytes, MemoryKind::Device, 0)?;
        let output = session.alloc("out", bytes, MemoryKind::Device, 0)?;
        let stream = session.default_stream(0)?;
        session.memset(input.address, 1, bytes, stream)?;
        session.memset(output.address, 0, bytes, stream)?;
        session.synchronize(Wait::Device)?;
        Ok(Bench {
            session,
            module,
            stream,
            input,
            output,
        })
    }

    /// Issues one launch.
    pub fn launch(&mut self, workload: &Workload) -> Result<(), gsan_host::Error> {
        let mut spec = LaunchSpec::new(
            self.module,
            workload.kernel,
            workload.grid,
            workload.block,
            self.stream,
        );
        for arg in &workload.args {
            spec = spec.arg(match *arg {
                Arg::Input(word) => gsan_host::Arg::Pointer(self.input.address + 4 * word),
                Arg::Output => gsan_host::Arg::Pointer(self.output.address),
                Arg::U32(n) => gsan_host::Arg::u32(n),
                Arg::U64(n) => gsan_host::Arg::u64(n),
            });
        }
        self.session.launch(&spec)?;
        Ok(())
    }

    /// Waits for what was issued.
    pub fn wait(&mut self) -> Result<(), gsan_host::Error> {
        self.session.synchronize(Wait::Stream(self.stream))
    }

    fn time(&mut self, workload: &Workload, runs: u32) -> Result<Times, gsan_host::Error> {
        let start = self.session.event("start", 0)?;
        let end = self.session.event("end", 0)?;
        self.launch(workload)?;
        self.wait()?;
        let mut device = Vec::new();
        let mut host = Vec::new();
        for _ in 0..runs.max(1) {
            let began = Instant::now();
            self.session.record(start, self.stream)?;
            self.launch(workload)?;
            self.session.record(end, self.stream)?;
            self.session.synchronize(Wait::Event(end))?;
            host.push(began.elapsed());
            device.push(f64::from(self.session.elapsed_ms(start, end)?));
        }
        device.sort_by(f64::total_cmp);
        host.sort();
        Ok(Times {
            device_ms: device[device.len() / 2],
            host: host[host.len() / 2],
        })
    }
}
