//! Runs programs the whole way, on the simulator, and says what happened in the oracle's terms.

use super::emit::{self, Module};
use super::follow::{Follower, Site};
use crate::boxes;
use crate::interpreter::{Run, Schedule};
use crate::program::{HostStep, Kernel, Kind, LEGACY, Op, Program, Space, Work};
use crate::random::Random;
use crate::setup::{Format, MEMORY};
use crate::trace::{Finding, Item, Prior, Trace};
use gsan_device::layout::{Counters, RaceClass};
use gsan_host::report::{Outcome, Race};
use gsan_host::{
    Arg, Buffer, CellFormat, EventId, Graph, GraphId, LaunchSpec, MemoryKind, NodeId, NodeWork,
    ReadId, Session, StreamFlags, StreamId, TensorSpec, TensorType, Wait,
};
use std::collections::BTreeMap;
use std::fmt;

/// Why programs could not be run, or not be followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The session refused something, or a kernel died.
    Session(String),
    /// What the machine recorded does not fit the program.
    Trace(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Session(text) => write!(f, "the run failed: {text}"),
            Error::Trace(text) => {
                write!(f, "the machine's record does not fit the program: {text}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<gsan_host::Error> for Error {
    fn from(error: gsan_host::Error) -> Error {
        let why = gsan_sim::driver::diagnosis().map(|d| format!(" ({d:?})"));
        Error::Session(format!("{error}{}", why.unwrap_or_default()))
    }
}

pub(super) type Result<T> = std::result::Result<T, Error>;

/// What the detector is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detector {
    /// The cells.
    pub format: Format,
    /// Whether it follows the order of `fence.sc`s.
    pub sc_order: bool,
}

/// Streams of a program, at most.
pub(super) const STREAMS: usize = 3;

/// Chooses the simulator. The first call of the process decides.
pub fn use_simulator() -> Result<()> {
    // A second call comes too late and changes nothing.
    let _ = cuda_lazy::select(cuda_lazy::Choice::Sim);
    match cuda_lazy::backend() {
        cuda_lazy::Backend::Simulated => Ok(()),
        other => Err(Error::Session(format!("not the simulator: {other:?}"))),
    }
}

/// Runs [launchable](emit::launchable) programs, one after the other, in one session.
pub fn run(programs: &[Program], detector: Detector, seed: u64) -> Result<Vec<Run>> {
    use_simulator()?;
    let mut random = Random::new(seed);
    let mut config = gsan_sim::Config::default();
    config.seed = random.seed();
    config.trace = true;
    // What the interpreter's barriers do.
    config.exited_warps = gsan_sim::ExitedWarps::Arrive;
    config.sms = 4;
    config.step_budget = 2_000_000;
    config.preempt.at_memory =
        random.pick(&[65_536, 65_536 / 4, 65_536 / 8, 65_536 / 32, 65_536 / 128]);
    config.preempt.turn = random.pick(&[20, 100, 400]);
    gsan_sim::driver::reset();
    gsan_sim::driver::configure(config);
    let mut module = Module::new(programs.len(), None);
    programs.iter().for_each(|p| module.add(p));
    let mut stack = Stack::new(&module, programs.len(), detector, seed)?;
    let mut followed = Vec::new();
    for (n, program) in programs.iter().enumerate() {
        let data = stack.data.address + u64::from(Space::SIZE) * n as u64;
        let mut follower = Follower::new(n, data, program, &module, detector.format);
        stack.issue(n, program, &mut follower)?;
        followed.push(follower);
    }
    let data = stack.data.address;
    let contents = stack.contents()?;
    let report = stack.session.finish()?;
    if report.outcome != Outcome::Completed {
        let message = report.message.unwrap_or_default();
        return Err(Error::Session(format!("{:?}: {message}", report.outcome)));
    }
    let ring_wrap = report.stats.misses.map_or(0, |m| m.ring_wrap);
    let mut runs = Vec::new();
    for (n, follower) in followed.into_iter().enumerate() {
        let program = follower.program;
        let (trace, sites) = follower.finish(&contents[n])?;
        let data = data + u64::from(Space::SIZE) * n as u64;
        let offset = |race: &Race| {
            let offset = race.address.checked_sub(data)?;
            (offset < u64::from(Space::SIZE)).then_some(offset as u32)
        };
        let mine = |race: &&Race| {
            let kernel = race.current.kernel.as_deref().and_then(emit::kernel_of);
            // An operation of the host's has no kernel.
            kernel.map_or(offset(race).is_some(), |(program, _)| program == n)
        };
        let never_waited: Vec<usize> = (report.races.iter().filter(mine))
            .filter(|race| race.class == RaceClass::MissingWait)
            .filter_map(|race| Some(emit::kernel_of(race.current.kernel.as_deref()?)?.1))
            .collect();
        check_waits(program, &trace, &never_waited)?;
        let race = |race: &&Race| race.class != RaceClass::MissingWait;
        let findings = (report.races.iter().filter(mine).filter(race))
            .map(|race| match (&race.current.site, offset(race)) {
                (None, Some(offset)) => operation_finding(race, program, &trace, offset),
                _ => finding(race, program, &module, &trace, &sites),
            })
            .collect::<Result<_>>()?;
        runs.push(Run {
            schedule: Schedule::of(program, &trace),
            trace,
            findings,
            counters: Counters {
                ring_wrap,
                ..Counters::default()
            },
        });
    }
    Ok(runs)
}

/// Whether these kernels are the dependent launches that never wait for the kernel before them.
fn check_waits(program: &Program, trace: &Trace, reported: &[usize]) -> Result<()> {
    for (kernel, k) in program.kernels.iter().enumerate() {
        let waits = trace
            .items
            .iter()
            .any(|item| matches!(*item, Item::GridWait(t) if trace.threads[t].kernel == kernel));
        let right_behind = (0..program.host.len())
            .find(|&step| program.kernel_of(step) == Some(kernel))
            .and_then(|step| step.checked_sub(1).map(|before| (before, step)))
            .is_some_and(|(before, step)| {
                let stream = |s: usize| program.host[s].stream();
                program.grid_of(before).is_some() && stream(before) == stream(step)
            });
        let is_reported = reported.contains(&kernel);
        if is_reported && (waits || !k.dependent) {
            return Err(Error::Trace(format!(
                "kernel {kernel} is said never to wait for the one before it"
            )));
        }
        if !is_reported && !waits && k.dependent && right_behind {
            return Err(Error::Trace(format!(
                "nobody says that kernel {kernel} never waits for the one before it"
            )));
        }
    }
    Ok(())
}

/// A session with the programs' memory.
struct Stack {
    session: Session,
    module: gsan_host::ModuleId,
    data: Buffer,
    foreign: Buffer,
    variable: u64,
    /// The map of the programs' tensors.
    map: Arg,
    programs: usize,
    streams: Vec<StreamId>,
}

impl Stack {
    fn new(module: &Module, programs: usize, detector: Detector, seed: u64) -> Result<Stack> {
        let cell = match detector.format {
            Format::Reference => CellFormat::Reference,
            Format::Wide => CellFormat::Wide,
        };
        let mut session = Session::builder()
            .cell(cell)
            .sc_order(detector.sc_order)
            .seed(seed as u32)
            .schedule_seed(Some(seed))
            .build()?;
        let bytes = u64::from(Space::SIZE) * programs.max(1) as u64;
        let data = session.alloc("data", bytes, MemoryKind::Device, 0)?;
        let foreign = session.alloc("foreign", bytes, MemoryKind::Foreign, 0)?;
        session.initialise(&foreign, &vec![0; bytes as usize])?;
        let loaded = session.load_module("programs.ptx", &module.text)?;
        let variable = session.variable(loaded, emit::VARIABLE, 0)?;
        let streams = (0..STREAMS)
            .map(|s| session.stream(&format!("s{s}"), StreamFlags::NonBlocking, 0))
            .collect::<gsan_host::Result<_>>()?;
        let map = session.tensor_map(data.address + u64::from(boxes::AT), &tensors(programs))?;
        session.synchronize(Wait::Device)?;
        gsan_sim::driver::take_trace();
        Ok(Stack {
            session,
            map,
            module: loaded,
            data,
            foreign,
            variable: variable.map_or(0, |v| v.0),
            programs,
            streams,
        })
    }

    /// Takes the host's steps of a program, and waits for all that it has started.
    fn issue(&mut self, n: usize, program: &Program, follower: &mut Follower) -> Result<()> {
        let mut events: BTreeMap<usize, EventId> = BTreeMap::new();
        let mut graphs: Vec<GraphId> = Vec::new();
        let mut reads = Vec::new();
        for graph in &program.graphs {
            let mut made = Graph::new();
            let mut ids = Vec::new();
            for node in &graph.nodes {
                let after: Vec<NodeId> = node.after.iter().map(|&a| ids[a]).collect();
                let kernel = node.kernels.first().copied().unwrap_or(0);
                let work = NodeWork::Launch(self.launch(n, program, kernel, 0));
                ids.push(made.add(work, &after)?);
            }
            graphs.push(self.session.graph(&format!("p{n}"), made, 0)?);
        }
        for (index, &step) in program.host.iter().enumerate() {
            let spec = match step {
                HostStep::Launch { kernel, stream } if program.grid_of(index).is_some() => {
                    Some(self.launch(n, program, kernel, stream))
                }
                _ => None,
            };
            let session = &mut self.session;
            match step {
                HostStep::Launch { kernel, stream } if spec.is_none() => {
                    follower.host(index, step)?;
                    reads.extend(self.operation(n, &program.kernels[kernel], stream)?);
                }
                // The host has waited already.
                HostStep::Synchronize { stream: LEGACY } => follower.host(index, step)?,
                HostStep::Launch { .. } => {
                    follower.host(index, step)?;
                    if let Some(spec) = spec {
                        session.launch(&spec)?;
                    }
                }
                HostStep::Record { event, stream } => {
                    follower.host(index, step)?;
                    let id = event_of(session, &mut events, event)?;
                    session.record(id, self.streams[stream % STREAMS])?;
                }
                HostStep::Wait { event, stream } => {
                    follower.host(index, step)?;
                    let id = event_of(session, &mut events, event)?;
                    session.wait(self.streams[stream % STREAMS], id)?;
                }
                HostStep::Synchronize { stream } => {
                    session.synchronize(Wait::Stream(self.streams[stream % STREAMS]))?;
                    follower.take()?;
                    follower.host(index, step)?;
                }
                HostStep::Graph { graph, stream, .. } => {
                    follower.host(index, step)?;
                    session.launch_graph(graphs[graph], self.streams[stream % STREAMS])?;
                }
            }
            follower.take()?;
        }
        self.session.synchronize(Wait::Device)?;
        follower.take()?;
        for read in reads {
            self.session.take_read(read)?;
        }
        Ok(())
    }

    /// An operation of the host's; a read that is under way.
    fn operation(&mut self, n: usize, kernel: &Kernel, stream: usize) -> Result<Option<ReadId>> {
        let data = self.data.address + u64::from(Space::SIZE) * n as u64;
        let threads = || kernel.blocks.iter().flat_map(|b| &b.threads);
        let accesses = || {
            threads().flatten().filter_map(|op| match op {
                Op::Access(access) => Some(access),
                _ => None,
            })
        };
        let address = |writes: bool| {
            let place = accesses().find(|a| a.kind.writes() == writes);
            data + place.map_or(0, |a| u64::from(a.place.offset))
        };
        let bytes = accesses().next().map_or(0, |a| u64::from(a.place.size));
        let value = accesses().find_map(|a| match a.kind {
            Kind::Store(value) => Some(u128::from(value).to_le_bytes()),
            _ => None,
        });
        let (session, stream) = (&mut self.session, self.streams[stream % STREAMS]);
        match kernel.work {
            Work::Grid => {}
            Work::Memset => session.memset(address(true), 0, bytes, stream)?,
            Work::Copy => session.copy(address(true), address(false), bytes, stream)?,
            Work::ReadBack => {
                return Ok(Some(session.read_async(address(false), bytes, stream)?));
            }
            Work::Write => session.write(address(true), &value.unwrap_or_default())?,
            Work::Read => drop(session.read(address(false), bytes)?),
        }
        Ok(None)
    }

    /// A kernel's launch.
    fn launch(&self, n: usize, program: &Program, kernel: usize, stream: usize) -> LaunchSpec {
        let offset = u64::from(Space::SIZE) * n as u64;
        let k = &program.kernels[kernel];
        let name = emit::kernel_name(n, kernel);
        let grid = [k.blocks.len() as u32, 1, 1];
        let block = [k.block_threads(), 1, 1];
        let stream = self.streams[stream % STREAMS];
        let mut spec = LaunchSpec::new(self.module, &name, grid, block, stream)
            .arg(Arg::Pointer(self.data.address + offset))
            .arg(Arg::Pointer(self.foreign.address + offset))
            .arg(self.map.clone());
        spec.pdl = k.dependent;
        if k.cluster > 1 {
            spec.cluster = Some([k.cluster as u32, 1, 1]);
        }
        spec
    }

    /// What each program has left in its memory, all spaces one after the other.
    fn contents(&mut self) -> Result<Vec<[u8; MEMORY]>> {
        let bytes = u64::from(Space::SIZE) * self.programs as u64;
        let mut all = vec![[0; MEMORY]; self.programs];
        let places = [
            (Space::Checked, self.data.address),
            (Space::Foreign, self.foreign.address),
            (Space::Variable, self.variable),
        ];
        for (space, address) in places {
            // The session knows of no variable's bytes.
            let bytes = match space {
                Space::Variable => continue,
                _ => self.session.contents(address, bytes)?,
            };
            let size = Space::SIZE as usize;
            for (memory, part) in all.iter_mut().zip(bytes.chunks_exact(size)) {
                let at = space as usize * size;
                memory[at..at + size].copy_from_slice(part);
            }
        }
        Ok(all)
    }
}

/// The tensors of so many programs as one: a program is a third coordinate.
fn tensors(programs: usize) -> TensorSpec {
    let [words, rows] = boxes::EXTENTS.map(u64::from);
    let [width, height] = boxes::BOX;
    TensorSpec {
        ty: TensorType::U32,
        extents: vec![words, rows, programs.max(1) as u64],
        strides: vec![boxes::STRIDE.into(), Space::SIZE.into()],
        boxes: vec![width, height, 1],
        steps: Vec::new(),
        swizzle: 0,
        fill_nan: false,
        windows: None,
    }
}

fn event_of(
    session: &mut Session,
    events: &mut BTreeMap<usize, EventId>,
    event: usize,
) -> Result<EventId> {
    Ok(match events.get(&event) {
        Some(&id) => id,
        None => {
            let id = session.event(&format!("e{event}"), 0)?;
            events.insert(event, id);
            id
        }
    })
}

fn finding(
    race: &Race,
    program: &Program,
    module: &Module,
    trace: &Trace,
    sites: &[Site],
) -> Result<Finding> {
    let site = race.current.site.as_ref();
    let at = site.and_then(|s| module.at(s.ptx_line));
    let Some(at) = at else {
        return Err(Error::Trace(format!(
            "a race at no access of the programs: {race:?}"
        )));
    };
    let current: Vec<usize> = (sites.iter().enumerate())
        .filter(|(_, s)| (s.thread, s.op) == (at.thread, at.op))
        .map(|(id, _)| id)
        .collect();
    if current.is_empty() {
        return Err(Error::Trace(format!(
            "a race at an access that was never made: {race:?}"
        )));
    }
    let info = trace.threads[at.thread];
    let side = &race.current;
    // A copy's end is the access of whoever has waited for it.
    let copy = current.iter().any(|&id| sites[id].copy);
    if side.block.is_some_and(|b| b[0] as usize != info.block)
        || !copy && side.thread.is_some_and(|t| t[0] != info.linear)
    {
        return Err(Error::Trace(format!(
            "a race whose thread is not its line's: {race:?}"
        )));
    }
    Ok(Finding {
        kind: race.kind,
        class: race.class,
        current,
        prior: prior(race, program),
    })
}

fn prior(race: &Race, program: &Program) -> Prior {
    let name = race.prior.kernel.as_deref();
    let kernel = name.and_then(emit::kernel_of);
    // Which of a graph's launches it was nobody says.
    let kernel = kernel.filter(|(_, k)| program.node_of(*k).is_none());
    let operation = match operations(program, name)[..] {
        [one] => Some(one),
        _ => None,
    };
    Prior {
        kernel: kernel.map(|(_, k)| k).or(operation),
        block: race.prior.block.map(|b| b[0] as usize),
        linear: race.prior.thread.map(|t| t[0]),
    }
}

/// The operations of the host's that reports call so.
fn operations(program: &Program, name: Option<&str>) -> Vec<usize> {
    let is_called = |work: Work| match work {
        Work::Grid => false,
        Work::Memset => name == Some("memset"),
        Work::Copy => name == Some("copy"),
        Work::ReadBack | Work::Read => name == Some("read back"),
        Work::Write => name == Some("write"),
    };
    let kernels = program.kernels.iter().enumerate();
    let called = kernels.filter(|(_, k)| is_called(k.work));
    called.map(|(n, _)| n).collect()
}

/// A finding at an operation of the host's, which has no line.
fn operation_finding(
    race: &Race,
    program: &Program,
    trace: &Trace,
    offset: u32,
) -> Result<Finding> {
    let kernels = operations(program, race.current.kernel.as_deref());
    let current = trace.items.iter().filter_map(|item| match item {
        Item::Access(id, access)
            if kernels.contains(&trace.threads[access.thread].kernel)
                && (access.place.offset..access.place.offset + access.place.size)
                    .contains(&offset) =>
        {
            Some(*id)
        }
        _ => None,
    });
    let current: Vec<usize> = current.collect();
    if current.is_empty() {
        return Err(Error::Trace(format!(
            "a race at an operation that is none of the program's: {race:?}"
        )));
    }
    Ok(Finding {
        kind: race.kind,
        class: race.class,
        current,
        prior: prior(race, program),
    })
}
