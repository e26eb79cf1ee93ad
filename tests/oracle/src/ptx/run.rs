//! Runs programs the whole way, on the simulator, and says what happened in the oracle's terms.

use super::emit::{self, Module};
use crate::interpreter::{Run, Schedule};
use crate::program::{HostStep, Op, Program, Space};
use crate::random::Random;
use crate::semantics;
use crate::setup::{Format, MEMORY};
use crate::trace::{Finding, Item, Prior, Trace};
use gsan_device::layout::Counters;
use gsan_host::report::{Outcome, Race};
use gsan_host::{
    Arg, Buffer, CellFormat, EventId, LaunchSpec, MemoryKind, Session, StreamFlags, StreamId, Wait,
};
use gsan_sim::machine::{GridId, TraceStep};
use std::collections::{BTreeMap, VecDeque};
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

type Result<T> = std::result::Result<T, Error>;

/// What the detector is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detector {
    /// The cells.
    pub format: Format,
    /// Whether it follows the order of `fence.sc`s.
    pub sc_order: bool,
}

/// Streams of a program, at most.
const STREAMS: usize = 3;

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
    config.sms = 4;
    config.step_budget = 20_000_000;
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
        let mut follower = Follower::new(n, program, &module);
        stack.issue(n, program, &mut follower)?;
        followed.push(follower);
    }
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
        let mine = |race: &&Race| {
            let kernel = race.current.kernel.as_deref().and_then(emit::kernel_of);
            kernel.is_some_and(|(program, _)| program == n)
        };
        let findings = (report.races.iter().filter(mine))
            .map(|race| finding(race, &module, &trace, &sites))
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

/// A session with the programs' memory.
struct Stack {
    session: Session,
    module: gsan_host::ModuleId,
    data: Buffer,
    foreign: Buffer,
    variable: u64,
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
        session.synchronize(Wait::Device)?;
        gsan_sim::driver::take_trace();
        Ok(Stack {
            session,
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
        let offset = u64::from(Space::SIZE) * n as u64;
        for (index, &step) in program.host.iter().enumerate() {
            let session = &mut self.session;
            match step {
                HostStep::Launch { kernel, stream } => {
                    follower.host(index, step)?;
                    let k = &program.kernels[kernel];
                    let name = emit::kernel_name(n, kernel);
                    let grid = [k.blocks.len() as u32, 1, 1];
                    let block = [k.block_threads(), 1, 1];
                    let mut spec = LaunchSpec::new(
                        self.module,
                        &name,
                        grid,
                        block,
                        self.streams[stream % STREAMS],
                    )
                    .arg(Arg::Pointer(self.data.address + offset))
                    .arg(Arg::Pointer(self.foreign.address + offset));
                    if k.cluster > 1 {
                        spec.cluster = Some([k.cluster as u32, 1, 1]);
                    }
                    session.launch(&spec)?;
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
                HostStep::Graph { .. } => {}
            }
            follower.take()?;
        }
        self.session.synchronize(Wait::Device)?;
        follower.take()
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

/// Turns the machine's record of a program into a trace.
struct Follower<'a> {
    number: usize,
    program: &'a Program,
    module: &'a Module,
    trace: Trace,
    memory: [u8; MEMORY],
    accesses: usize,
    /// Thread and operation of each access.
    sites: Vec<(usize, usize)>,
    /// The program's grids, and their launch's step.
    grids: BTreeMap<GridId, usize>,
    /// Per stream: steps that have not happened, and whether its kernel runs.
    queues: [VecDeque<usize>; STREAMS],
    running: [bool; STREAMS],
    /// Per wait: the recording that it is for.
    waits_for: BTreeMap<usize, usize>,
    recorded: Vec<usize>,
    /// Who waits at which barrier of which block.
    waiting: BTreeMap<(usize, u32), Vec<usize>>,
}

impl<'a> Follower<'a> {
    fn new(number: usize, program: &'a Program, module: &'a Module) -> Follower<'a> {
        Follower {
            number,
            program,
            module,
            trace: Trace {
                threads: semantics::threads_of(program),
                graphs: program.graphs.clone(),
                copies: Vec::new(),
                items: Vec::new(),
            },
            memory: [0; MEMORY],
            accesses: 0,
            sites: Vec::new(),
            grids: BTreeMap::new(),
            queues: Default::default(),
            running: Default::default(),
            waits_for: BTreeMap::new(),
            recorded: Vec::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// The host has taken a step.
    fn host(&mut self, index: usize, step: HostStep) -> Result<()> {
        self.trace.items.push(Item::Host(index, step));
        let stream = match step {
            HostStep::Launch { stream, .. } | HostStep::Record { stream, .. } => stream,
            HostStep::Wait { event, stream } => {
                let of = self.program.host[..index]
                    .iter()
                    .rposition(|s| matches!(*s, HostStep::Record { event: e, .. } if e == event));
                if let Some(of) = of {
                    self.waits_for.insert(index, of);
                }
                stream
            }
            HostStep::Synchronize { .. } => return Ok(()),
            HostStep::Graph { stream, .. } => stream,
        };
        self.queues[stream % STREAMS].push_back(index);
        self.settle();
        Ok(())
    }

    /// Lets recordings and waits happen that can. When they do makes no difference: what they pass on is fixed.
    fn settle(&mut self) {
        loop {
            let possible = (0..STREAMS).find_map(|s| {
                let &step = self.queues[s].front()?;
                let ready = match self.program.host[step] {
                    HostStep::Record { .. } => true,
                    HostStep::Wait { .. } => {
                        let of = self.waits_for.get(&step);
                        of.is_none_or(|of| self.recorded.contains(of))
                    }
                    _ => false,
                };
                (ready && !self.running[s]).then_some((s, step))
            });
            let Some((stream, step)) = possible else {
                return;
            };
            self.queues[stream].pop_front();
            if matches!(self.program.host[step], HostStep::Record { .. }) {
                self.recorded.push(step);
            }
            self.trace.items.push(Item::Task(step));
        }
    }

    /// Takes what the machine has recorded since the last call.
    fn take(&mut self) -> Result<()> {
        for step in gsan_sim::driver::take_trace() {
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: TraceStep) -> Result<()> {
        match step {
            TraceStep::Begin { grid, kernel } => match emit::kernel_of(&kernel) {
                Some((program, kernel)) if program == self.number => self.begin(grid, kernel),
                Some(_) => Err(Error::Trace(format!("{kernel} is another program's"))),
                // The host's own kernels.
                None => Ok(()),
            },
            TraceStep::End { grid } => {
                if let Some(&step) = self.grids.get(&grid) {
                    self.leave(self.program.kernel_of(step));
                    self.trace.items.push(Item::KernelEnd(step));
                    if let HostStep::Launch { stream, .. } = self.program.host[step] {
                        self.running[stream % STREAMS] = false;
                    }
                    self.settle();
                }
                Ok(())
            }
            TraceStep::Instruction {
                grid,
                lanes,
                line,
                block,
                warp,
                ..
            } => match (self.grids.get(&grid), self.module.at(line)) {
                (Some(_), Some(at)) => {
                    let info = self.trace.threads[at.thread];
                    let ops = self.operations(at.thread);
                    let mine = 1 << (info.linear % 32);
                    let barrier = matches!(ops.get(at.op), Some(Op::Barrier(_)));
                    if barrier && lanes & mine == 0 {
                        // The thread's warp comes in parts.
                        return Ok(());
                    }
                    if (lanes != mine && !barrier)
                        || warp != info.linear / 32
                        || block[0] as usize != info.block
                    {
                        return Err(Error::Trace(format!(
                            "line {line} belongs to {info:?}, lanes {lanes:#x} of warp {warp} of block {block:?} were there"
                        )));
                    }
                    self.instruction(at.thread, at.op)
                }
                _ => Ok(()),
            },
            TraceStep::Barrier { grid, block, id } => {
                if let Some(&step) = self.grids.get(&grid) {
                    self.complete(step, block[0] as usize, id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A kernel's threads have left. When is not recorded: each after its last instruction.
    fn leave(&mut self, kernel: Option<usize>) {
        for (thread, info) in self.trace.threads.iter().enumerate() {
            if Some(info.kernel) == kernel {
                self.trace.items.push(Item::Leave(thread));
            }
        }
    }

    fn begin(&mut self, grid: GridId, kernel: usize) -> Result<()> {
        let is = |s: &HostStep| matches!(*s, HostStep::Launch { kernel: k, .. } if k == kernel);
        let Some(step) = self.program.host.iter().position(is) else {
            return Err(Error::Trace(format!("kernel {kernel} is not launched")));
        };
        let HostStep::Launch { stream, .. } = self.program.host[step] else {
            return Ok(());
        };
        self.settle();
        let stream = stream % STREAMS;
        if self.running[stream] || self.queues[stream].front() != Some(&step) {
            return Err(Error::Trace(format!(
                "kernel {kernel} begins before what its stream has before it"
            )));
        }
        self.queues[stream].pop_front();
        self.running[stream] = true;
        self.grids.insert(grid, step);
        self.trace.items.push(Item::Task(step));
        Ok(())
    }

    fn operations(&self, thread: usize) -> &'a [Op] {
        let info = self.trace.threads[thread];
        &self.program.kernels[info.kernel].blocks[info.block].threads[info.thread]
    }

    fn instruction(&mut self, thread: usize, op: usize) -> Result<()> {
        let info = self.trace.threads[thread];
        match self.operations(thread).get(op) {
            Some(Op::Access(access)) => {
                let (_, wrote) = semantics::perform(&mut self.memory, *access);
                let event = semantics::event(thread, op, access, wrote);
                self.trace.items.push(Item::Access(self.accesses, event));
                self.accesses += 1;
                self.sites.push((thread, op));
            }
            Some(Op::Fence { order, scope }) => {
                self.trace.items.push(Item::Fence(thread, *order, *scope));
            }
            Some(Op::Barrier(barrier)) => {
                self.trace.items.push(Item::Arrive(thread, barrier.id));
                let key = (info.global_block, barrier.id);
                let waiting = self.waiting.entry(key).or_default();
                if !barrier.arrive {
                    waiting.push(thread);
                }
            }
            Some(_) => {}
            None => {
                return Err(Error::Trace(format!(
                    "thread {thread} has no operation {op}"
                )));
            }
        }
        Ok(())
    }

    fn complete(&mut self, launch: usize, block: usize, id: u32) {
        let kernel = match self.program.host[launch] {
            HostStep::Launch { kernel, .. } => kernel,
            _ => return,
        };
        let mut threads = self.trace.threads.iter();
        let Some(info) = threads.find(|t| t.kernel == kernel && t.block == block) else {
            return;
        };
        let block = info.global_block;
        // The runtime's own barrier comes before any of the program's.
        if let Some(waiters) = self.waiting.remove(&(block, id)) {
            self.trace.items.push(Item::Barrier { block, id, waiters });
        }
    }

    /// The trace, and thread and operation of each access.
    fn finish(self, contents: &[u8; MEMORY]) -> Result<(Trace, Vec<(usize, usize)>)> {
        let size = Space::SIZE as usize;
        for space in [Space::Checked, Space::Foreign] {
            let at = space as usize * size;
            let (mine, its) = (&self.memory[at..at + size], &contents[at..at + size]);
            if mine != its {
                return Err(Error::Trace(format!(
                    "the trace leaves {mine:?} in {space:?} memory, the machine {its:?}"
                )));
            }
        }
        Ok((self.trace, self.sites))
    }
}

fn finding(
    race: &Race,
    module: &Module,
    trace: &Trace,
    sites: &[(usize, usize)],
) -> Result<Finding> {
    let site = race.current.site.as_ref();
    let at = site.and_then(|s| module.at(s.ptx_line));
    let Some(at) = at else {
        return Err(Error::Trace(format!(
            "a race at no access of the programs: {race:?}"
        )));
    };
    let current: Vec<usize> = (sites.iter().enumerate())
        .filter(|(_, s)| **s == (at.thread, at.op))
        .map(|(id, _)| id)
        .collect();
    if current.is_empty() {
        return Err(Error::Trace(format!(
            "a race at an access that was never made: {race:?}"
        )));
    }
    let info = trace.threads[at.thread];
    let side = &race.current;
    if side.block.is_some_and(|b| b[0] as usize != info.block)
        || side.thread.is_some_and(|t| t[0] != info.linear)
    {
        return Err(Error::Trace(format!(
            "a race whose thread is not its line's: {race:?}"
        )));
    }
    let kernel = race.prior.kernel.as_deref().and_then(emit::kernel_of);
    Ok(Finding {
        kind: race.kind,
        class: race.class,
        current,
        prior: Prior {
            kernel: kernel.map(|(_, k)| k),
            block: race.prior.block.map(|b| b[0] as usize),
            linear: race.prior.thread.map(|t| t[0]),
        },
    })
}
