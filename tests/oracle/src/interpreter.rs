//! Runs a program on the detector's host instance under a seeded schedule.
//!
//! Each memory instruction takes up to three steps, as in instrumented code: the hook before it, the instruction, the
//! hook after it. Other threads' steps come between. The order of the steps is recorded, so that the same instructions can be
//! run again in the same order on another device, or with their hooks right beside them.

use crate::program::{Access, Barrier, HostStep, Kind, Op, Place, Program, Space, WARP};
use crate::random::Random;
use crate::semantics::{event, perform, threads_of};
use crate::setup::{FOREIGN_BASE, Format, MEMORY, Setup};
use crate::trace::{Finding, Item, Prior, ThreadInfo, Trace};
use gsan_device::block;
use gsan_device::clock::State;
use gsan_device::detector;
use gsan_device::host::Host;
use gsan_device::layout::{
    self, Counters, LaunchRecord, Op as Word, Order, RaceClass, RaceKind, RaceRecord, RaceSide,
    Scope,
};
use gsan_device::reference::ReferenceCell;
use gsan_device::wide::Wide;

/// How the steps of a run follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The host takes its next step.
    Host,
    /// The first task of a stream begins or happens.
    Task(usize),
    /// A block's first thread takes a slot.
    Enter(usize),
    /// A thread's hook before its next instruction.
    Before(usize),
    /// A thread's instruction.
    Instruction(usize),
    /// A thread's hook after its instruction.
    After(usize),
    /// A thread leaves.
    Leave(usize),
}

/// The recorded order of a run's steps.
#[derive(Clone, Debug, Default)]
pub struct Schedule(Vec<Step>);

impl Schedule {
    /// The order of a trace's instructions, for [`replay`] with hooks right beside them.
    pub fn of(program: &Program, trace: &Trace) -> Schedule {
        let mut steps = Vec::new();
        let of_kernel = |step: usize| match program.host.get(step) {
            Some(HostStep::Launch { kernel, stream }) => Some((*kernel, *stream)),
            _ => None,
        };
        let threads = || trace.threads.iter().enumerate();
        for item in &trace.items {
            match item {
                Item::Host(..) => steps.push(Step::Host),
                Item::Task(step) => match program.host.get(*step) {
                    Some(HostStep::Launch { kernel, stream }) => {
                        steps.push(Step::Task(*stream));
                        let firsts =
                            threads().filter(|(_, t)| t.kernel == *kernel && t.thread == 0);
                        steps.extend(firsts.map(|(_, t)| Step::Enter(t.global_block)));
                    }
                    Some(
                        HostStep::Record { stream, .. }
                        | HostStep::Wait { stream, .. }
                        | HostStep::Synchronize { stream },
                    ) => steps.push(Step::Task(*stream)),
                    None => {}
                },
                Item::KernelEnd(step) => {
                    if let Some((kernel, _)) = of_kernel(*step) {
                        let all = threads().filter(|(_, t)| t.kernel == kernel);
                        steps.extend(all.map(|(i, _)| Step::Leave(i)));
                    }
                }
                Item::Access(_, access) => steps.push(Step::Instruction(access.thread)),
                Item::ScHook(..) => {}
                Item::Fence(thread, ..) | Item::Arrive(thread, _) => {
                    steps.push(Step::Instruction(*thread));
                }
                Item::Barrier { waiters, .. } => {
                    steps.extend(waiters.iter().map(|&t| Step::After(t)));
                }
            }
        }
        Schedule(steps)
    }
}

/// What came of a run.
pub struct Run {
    /// What happened.
    pub trace: Trace,
    /// In what order.
    pub schedule: Schedule,
    /// What the detector found.
    pub findings: Vec<Finding>,
    /// What it tallied.
    pub counters: Counters,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Its block has not begun.
    Waiting,
    Before,
    Instruction,
    After,
    /// At a barrier.
    Barrier(u32),
    Leaving,
    Gone,
}

struct Thread {
    info: ThreadInfo,
    phase: Phase,
    index: usize,
    retries: u32,
    host: Option<Host>,
    context: u64,
    read: u128,
    success: bool,
    /// The number of the access that is under way.
    id: usize,
    /// It has waited in vain and lets others go first.
    patient: bool,
    /// It has waited in vain too often: only its barriers are left.
    given_up: bool,
}

impl Thread {
    fn new(info: ThreadInfo) -> Thread {
        Thread {
            info,
            phase: Phase::Waiting,
            index: 0,
            retries: 0,
            host: None,
            context: 0,
            read: 0,
            success: true,
            id: 0,
            patient: false,
            given_up: false,
        }
    }
}

/// A barrier in its current phase.
#[derive(Clone, Default)]
struct Gathering {
    /// Who has arrived, and who of them waits.
    arrived: Vec<usize>,
    waiters: Vec<usize>,
    count: u32,
}

/// Barriers that a block has.
const BARRIERS: usize = 16;

struct Machine<'a> {
    program: &'a Program,
    setup: &'a Setup,
    threads: Vec<Thread>,
    /// First thread and number of threads of each global block.
    blocks: Vec<(usize, usize)>,
    barriers: Vec<[Gathering; BARRIERS]>,
    sm_of_block: Vec<u32>,
    entered: Vec<bool>,
    /// Per stream: tasks not yet begun, in order; and the launch that runs.
    queues: Vec<Vec<usize>>,
    running: Vec<Option<usize>>,
    records_of_step: Vec<u64>,
    next_step: usize,
    memory: [u8; MEMORY],
    rows: u32,
    polite: bool,
    stream_row: Vec<u32>,
    host_row: u32,
    inherited: Vec<u32>,
    waits_for: Vec<Option<usize>>,
    event_row: Vec<Option<u32>>,
    accesses: usize,
    out: Run,
}

/// Runs the program under the schedule of a seed.
pub fn run(program: &Program, setup: &Setup, seed: u64) -> Run {
    run_as(program, setup, seed, true)
}

/// The same; if not `polite`, a thread that has waited in vain does not let others go first, so that it gives up more often, or
/// finds what it has itself left.
pub fn run_as(program: &Program, setup: &Setup, seed: u64, polite: bool) -> Run {
    let mut machine = Machine::new(program, setup);
    machine.polite = polite;
    let mut random = Random::new(seed);
    for sm in &mut machine.sm_of_block {
        if !setup.roomy {
            *sm = random.below(setup.shape.num_sms as usize) as u32;
        }
    }
    // How often a thread goes on where it could be interrupted.
    let steadiness = random.pick(&[0, 50, 80, 95]);
    let mut last = None;
    loop {
        let steps = machine.possible();
        if steps.is_empty() {
            break;
        }
        let keep = last.and_then(|t| steps.iter().find(|s| machine.thread_of(**s) == Some(t)));
        let step = match keep {
            Some(&step) if random.chance(steadiness) => step,
            _ => random.pick(&steps),
        };
        last = machine.thread_of(step);
        machine.take(step, true);
    }
    machine.finish()
}

/// Runs the same instructions in the same order; with `glued`, hooks run right before and after their instruction.
pub fn replay(program: &Program, setup: &Setup, schedule: &Schedule, glued: bool) -> Run {
    let mut machine = Machine::new(program, setup);
    for &step in &schedule.0 {
        match step {
            Step::Before(_) if glued => {}
            Step::After(t) if glued => {
                // Whoever waits at a barrier goes on later than it arrived.
                if let (Phase::After, Some(Op::Barrier(_))) =
                    (machine.threads[t].phase, machine.op(t))
                {
                    machine.take(step, true);
                }
            }
            Step::Instruction(t) if glued => {
                machine.take(Step::Before(t), true);
                machine.take(Step::Instruction(t), true);
                if machine.threads[t].phase == Phase::After {
                    machine.take(Step::After(t), true);
                }
            }
            _ => machine.take(step, true),
        }
    }
    machine.finish()
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, setup: &'a Setup) -> Machine<'a> {
        setup.device.reset();
        if setup.age > 0 {
            setup.device.set_epochs(setup.age);
        }
        let infos = threads_of(program);
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        for (i, info) in infos.iter().enumerate() {
            if blocks.len() <= info.global_block {
                blocks.push((i, 0));
            }
            blocks[info.global_block].1 += 1;
        }
        let threads: Vec<Thread> = infos.iter().map(|&info| Thread::new(info)).collect();
        let streams = 1
            + (program.host.iter())
                .map(|s| match *s {
                    HostStep::Launch { stream, .. }
                    | HostStep::Record { stream, .. }
                    | HostStep::Wait { stream, .. }
                    | HostStep::Synchronize { stream } => stream,
                })
                .max()
                .unwrap_or(0);
        let steps = program.host.len();
        let mut machine = Machine {
            program,
            setup,
            sm_of_block: (0..blocks.len())
                .map(|b| b as u32 % setup.shape.num_sms)
                .collect(),
            entered: vec![false; blocks.len()],
            barriers: vec![Default::default(); blocks.len()],
            blocks,
            queues: vec![Vec::new(); streams],
            running: vec![None; streams],
            records_of_step: vec![0; steps],
            next_step: 0,
            polite: true,
            memory: [0; MEMORY],
            rows: 0,
            stream_row: Vec::new(),
            host_row: 0,
            inherited: vec![0; steps],
            waits_for: vec![None; steps],
            event_row: vec![None; steps],
            accesses: 0,
            out: Run {
                trace: Trace {
                    threads: threads.iter().map(|t| t.info).collect(),
                    items: Vec::new(),
                },
                schedule: Schedule::default(),
                findings: Vec::new(),
                counters: Counters::default(),
            },
            threads,
        };
        machine.host_row = machine.new_row(&[]);
        machine.stream_row = (0..streams).map(|_| 0).collect();
        machine
    }

    fn finish(mut self) -> Run {
        let races = self.setup.device.races();
        self.out.findings = races.iter().filter_map(|r| self.finding(r)).collect();
        self.out.counters = self.setup.device.counters();
        self.out
    }

    /// A record in terms of the trace: a site is an access's number, a launch number the host's step.
    fn finding(&self, record: &RaceRecord) -> Option<Finding> {
        let kind = [RaceKind::Raw, RaceKind::War, RaceKind::Waw];
        let prior = &record.prior;
        let known = |bits: u32| prior.known & bits != 0;
        let kernel = self.kernel_of(prior.launch_id as usize);
        Some(Finding {
            kind: kind.into_iter().find(|&k| k as u32 == record.kind)?,
            class: classes().find(|&c| c as u32 == record.class)?,
            current: vec![record.current.site as usize],
            prior: Prior {
                kernel: kernel.filter(|_| known(RaceSide::LAUNCH)),
                block: known(RaceSide::BLOCK).then_some(prior.block[0] as usize),
                linear: known(RaceSide::THREAD | RaceSide::LINEAR_THREAD)
                    .then_some(prior.thread[0]),
            },
        })
    }

    /// A fresh row that joins others.
    fn new_row(&mut self, from: &[u32]) -> u32 {
        let row = self.rows;
        self.rows += 1;
        for &f in from {
            self.setup.device.join_row(row, f, false);
        }
        row
    }

    fn thread_of(&self, step: Step) -> Option<usize> {
        match step {
            Step::Before(t) | Step::Instruction(t) | Step::After(t) | Step::Leave(t) => Some(t),
            _ => None,
        }
    }

    fn possible(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(step) = self.program.host.get(self.next_step) {
            let ready = match *step {
                HostStep::Synchronize { stream } => {
                    self.queues[stream].is_empty() && self.running[stream].is_none()
                }
                _ => true,
            };
            if ready {
                steps.push(Step::Host);
            }
        }
        for (s, queue) in self.queues.iter().enumerate() {
            if let (Some(&task), None) = (queue.first(), self.running[s]) {
                let ready = self.waits_for[task].is_none_or(|w| self.event_row[w].is_some());
                if ready {
                    steps.push(Step::Task(s));
                }
            }
        }
        for (b, &(first, _)) in self.blocks.iter().enumerate() {
            let kernel = self.threads[first].info.kernel;
            if !self.entered[b]
                && self
                    .running
                    .iter()
                    .flatten()
                    .any(|&r| self.kernel_of(r) == Some(kernel))
            {
                steps.push(Step::Enter(b));
            }
        }
        let of = |t: usize, thread: &Thread| match thread.phase {
            Phase::Before => Some(Step::Before(t)),
            Phase::Instruction => Some(Step::Instruction(t)),
            Phase::After => Some(Step::After(t)),
            Phase::Leaving => Some(Step::Leave(t)),
            Phase::Waiting | Phase::Barrier(_) | Phase::Gone => None,
        };
        let all = || self.threads.iter().enumerate();
        steps.extend(
            all()
                .filter(|(_, t)| !t.patient)
                .filter_map(|(i, t)| of(i, t)),
        );
        if steps.is_empty() {
            steps.extend(all().filter_map(|(i, t)| of(i, t)));
        }
        steps
    }

    fn kernel_of(&self, step: usize) -> Option<usize> {
        match self.program.host.get(step) {
            Some(HostStep::Launch { kernel, .. }) => Some(*kernel),
            _ => None,
        }
    }

    fn take(&mut self, step: Step, record: bool) {
        if record {
            self.out.schedule.0.push(step);
        }
        match step {
            Step::Host => self.host_step(),
            Step::Task(stream) => self.task(stream),
            Step::Enter(block) => self.enter(block),
            Step::Before(t) => self.before(t),
            Step::Instruction(t) => {
                self.threads.iter_mut().for_each(|t| t.patient = false);
                self.instruction(t);
            }
            Step::After(t) => {
                if let Some(Op::Barrier(barrier)) = self.op(t) {
                    self.after_barrier(t, barrier);
                } else if let Some(Op::Access(access)) = self.op(t) {
                    let thread = &self.threads[t];
                    if let Some(state) = self.state(t) {
                        let addr = self.address(access.place);
                        let (op, site) = (word(&access), thread.id as u32);
                        let after = match self.setup.format {
                            Format::Reference => detector::strong_after::<ReferenceCell, Host>,
                            Format::Wide => detector::strong_after::<Wide, Host>,
                        };
                        after(state, addr, op, site, thread.context, thread.success);
                    }
                    self.advance(t, access);
                }
            }
            Step::Leave(t) => self.leave(t),
        }
    }

    fn host_step(&mut self) {
        let index = self.next_step;
        self.next_step += 1;
        let step = self.program.host[index];
        match step {
            HostStep::Launch { stream, .. } | HostStep::Record { stream, .. } => {
                self.queues[stream].push(index)
            }
            HostStep::Wait { stream, event } => {
                self.waits_for[index] = self.program.host[..index]
                    .iter()
                    .rposition(|s| matches!(*s, HostStep::Record { event: e, .. } if e == event));
                self.queues[stream].push(index);
            }
            HostStep::Synchronize { stream } => {
                self.host_row = self.new_row(&[self.host_row, self.stream_row[stream]]);
            }
        }
        self.inherited[index] = self.host_row;
        self.out.trace.items.push(Item::Host(index, step));
    }

    fn task(&mut self, stream: usize) {
        let index = self.queues[stream].remove(0);
        self.out.trace.items.push(Item::Task(index));
        let mut from = vec![self.stream_row[stream], self.inherited[index]];
        match self.program.host[index] {
            HostStep::Launch { kernel, .. } => {
                let base = self.new_row(&from);
                let out = self.new_row(&[]);
                let record = self.setup.device.launch(index as u32, base, out);
                let warps = match self.setup.format {
                    // Its cell knows no warps, and its runtime has no hooks for them.
                    Format::Reference => 0,
                    Format::Wide => LaunchRecord::INTRA_BLOCK,
                };
                let shape = [self.program.kernels[kernel].cluster.max(1) as u32, 1, 1];
                let flags = warps | LaunchRecord::cluster_flags(shape);
                self.setup.device.set_launch_flags(record, flags);
                self.records_of_step[index] = record;
                self.stream_row[stream] = out;
                self.running[stream] = Some(index);
                self.end_kernel_if_done(kernel);
            }
            HostStep::Record { .. } => {
                let row = self.new_row(&from);
                self.event_row[index] = Some(row);
                self.stream_row[stream] = row;
            }
            HostStep::Wait { .. } => {
                from.extend(self.waits_for[index].and_then(|w| self.event_row[w]));
                self.stream_row[stream] = self.new_row(&from);
            }
            HostStep::Synchronize { .. } => {}
        }
    }

    fn enter(&mut self, block: usize) {
        let (first, count) = self.blocks[block];
        let info = self.threads[first].info;
        let running = self
            .running
            .iter()
            .position(|r| r.is_some_and(|r| self.kernel_of(r) == Some(info.kernel)));
        let Some(stream) = running else { return };
        let Some(step) = self.running[stream] else {
            return;
        };
        self.entered[block] = true;
        let all = self.program.kernels[info.kernel].block_threads();
        let sm = self.sm_of_block[block];
        // One grid of a stream runs at a time: that tells grids apart.
        let host = |linear| {
            let device = &self.setup.device;
            device.thread(stream as u64, sm, info.block as u32, linear, all)
        };
        block::enter(host(0), self.records_of_step[step]);
        let threads = first..first + count;
        // The lanes that do nothing leave at once.
        let idle = (0..all).filter(|l| !threads.clone().any(|t| self.threads[t].info.linear == *l));
        idle.for_each(|linear| block::exit(host(linear)));
        for t in threads.clone() {
            self.threads[t].host = Some(host(self.threads[t].info.linear));
            self.threads[t].phase = Phase::Before;
        }
        threads.for_each(|t| self.skip_to_work(t));
    }

    fn op(&self, t: usize) -> Option<Op> {
        let info = self.threads[t].info;
        let ops = &self.program.kernels[info.kernel].blocks[info.block].threads[info.thread];
        ops.get(self.threads[t].index).copied()
    }

    fn state(&self, t: usize) -> Option<State<Host>> {
        self.threads[t].host.map(|h| State::at(h, block::state(h)))
    }

    fn address(&self, place: Place) -> u64 {
        let base = match place.space {
            Space::Checked => self.setup.device.real(),
            Space::Variable => self.setup.device.variable().0,
            Space::Foreign => FOREIGN_BASE,
        };
        base + u64::from(place.offset)
    }

    /// Sets the phase for the thread's next instruction.
    fn skip_to_work(&mut self, t: usize) {
        while self.threads[t].given_up
            && matches!(self.op(t), Some(Op::Access(_) | Op::Fence { .. }))
        {
            self.threads[t].index += 1;
        }
        match self.op(t) {
            None => {
                self.threads[t].phase = Phase::Leaving;
                self.open_barriers(self.threads[t].info.global_block);
            }
            Some(_) => self.threads[t].phase = Phase::Before,
        }
    }

    fn before(&mut self, t: usize) {
        let Some(state) = self.state(t) else { return };
        match self.op(t) {
            Some(Op::Access(access)) => {
                let id = self.accesses;
                self.accesses += 1;
                let addr = self.address(access.place);
                let (op, site) = (word(&access), id as u32);
                let context = match (access.scope, self.setup.format) {
                    (Scope::None, Format::Reference) => {
                        detector::access::<ReferenceCell, Host>(state, addr, op, site);
                        0
                    }
                    (Scope::None, Format::Wide) => {
                        detector::access::<Wide, Host>(state, addr, op, site);
                        0
                    }
                    (_, Format::Reference) => {
                        detector::strong_before::<ReferenceCell, Host>(state, addr, op, site)
                    }
                    (_, Format::Wide) => {
                        detector::strong_before::<Wide, Host>(state, addr, op, site)
                    }
                };
                let thread = &mut self.threads[t];
                (thread.id, thread.context) = (id, context);
            }
            Some(Op::Fence { order, scope }) => {
                detector::fence(state, Word::new(layout::Access::Fence, 0, order, scope));
                if order == Order::Sc {
                    self.out.trace.items.push(Item::ScHook(t, scope));
                }
            }
            Some(Op::Barrier(barrier)) => {
                detector::barrier_before(state, barrier.id, barrier.count);
            }
            None => {}
        }
        self.threads[t].phase = Phase::Instruction;
    }

    fn instruction(&mut self, t: usize) {
        match self.op(t) {
            Some(Op::Access(access)) => {
                let (read, wrote) = perform(&mut self.memory, access);
                let thread = &mut self.threads[t];
                (thread.read, thread.success) =
                    (read, wrote || !matches!(access.kind, Kind::Cas { .. }));
                let event = event(t, thread.index, &access, wrote);
                self.out.trace.items.push(Item::Access(thread.id, event));
                let strong = access.scope != Scope::None;
                if strong && !matches!(access.kind, Kind::Store(_) | Kind::Reduce(_)) {
                    thread.phase = Phase::After;
                } else {
                    self.advance(t, access);
                }
            }
            Some(Op::Fence { order, scope }) => {
                self.out.trace.items.push(Item::Fence(t, order, scope));
                self.threads[t].index += 1;
                self.skip_to_work(t);
            }
            Some(Op::Barrier(barrier)) => self.arrive(t, barrier),
            None => {}
        }
    }

    /// Goes on after an access, or tries again, or gives up.
    fn advance(&mut self, t: usize, access: Access) {
        let thread = &mut self.threads[t];
        match access.until {
            Some(until) if !until.condition.holds(thread.read) => {
                if thread.retries < until.retries {
                    thread.retries += 1;
                    thread.patient = self.polite;
                    thread.phase = Phase::Before;
                } else {
                    thread.given_up = true;
                    self.skip_to_work(t);
                }
            }
            _ => {
                thread.retries = 0;
                thread.index += 1;
                self.skip_to_work(t);
            }
        }
    }

    fn arrive(&mut self, t: usize, barrier: Barrier) {
        let block = self.threads[t].info.global_block;
        self.out.trace.items.push(Item::Arrive(t, barrier.id));
        let gathering = &mut self.barriers[block][barrier.id as usize % BARRIERS];
        gathering.count = barrier.count;
        gathering.arrived.push(t);
        if barrier.arrive {
            self.threads[t].index += 1;
            self.skip_to_work(t);
        } else {
            gathering.waiters.push(t);
            self.threads[t].phase = Phase::Barrier(barrier.id);
        }
        self.open_barriers(block);
    }

    /// The hook behind a barrier that the thread has waited for.
    fn after_barrier(&mut self, t: usize, barrier: Barrier) {
        if let Some(state) = self.state(t) {
            detector::barrier_after(state, barrier.id, barrier.count);
        }
        self.threads[t].index += 1;
        self.skip_to_work(t);
    }

    /// Lets those who wait at a block's barriers go on where enough have arrived.
    fn open_barriers(&mut self, block: usize) {
        let (first, count) = self.blocks[block];
        let gone = |t: &usize| matches!(self.threads[*t].phase, Phase::Leaving | Phase::Gone);
        let live = (first..first + count).filter(|t| !gone(t)).count();
        let info = self.threads[first].info;
        let lanes = self.program.kernels[info.kernel].blocks[info.block].lanes();
        for id in 0..BARRIERS {
            let gathering = &self.barriers[block][id];
            let arrived = gathering.arrived.len();
            let complete = match gathering.count {
                0 => arrived >= live,
                count => arrived * (WARP / lanes) >= count as usize,
            };
            if arrived == 0 || !complete {
                continue;
            }
            let waiters = std::mem::take(&mut self.barriers[block][id]).waiters;
            for &t in &waiters {
                self.threads[t].phase = Phase::After;
            }
            self.out.trace.items.push(Item::Barrier {
                block,
                id: id as u32,
                waiters,
            });
        }
    }

    fn leave(&mut self, t: usize) {
        if let Some(host) = self.threads[t].host {
            block::exit(host);
        }
        self.threads[t].phase = Phase::Gone;
        self.open_barriers(self.threads[t].info.global_block);
        self.end_kernel_if_done(self.threads[t].info.kernel);
    }

    fn end_kernel_if_done(&mut self, kernel: usize) {
        let done = self
            .threads
            .iter()
            .all(|t| t.info.kernel != kernel || t.phase == Phase::Gone);
        if !done {
            return;
        }
        for running in &mut self.running {
            if let Some(step) = *running
                && matches!(self.program.host[step], HostStep::Launch { kernel: k, .. } if k == kernel)
            {
                *running = None;
                self.out.trace.items.push(Item::KernelEnd(step));
            }
        }
    }
}

fn classes() -> impl Iterator<Item = RaceClass> {
    use RaceClass::*;
    [
        Race,
        ScopeTooNarrow,
        MissingAcquire,
        MissingRelease,
        MixedWidth,
        StaleNc,
        IntraBlock,
    ]
    .into_iter()
}

/// The hooks' word for an access.
fn word(access: &Access) -> Word {
    let kind = match access.kind {
        Kind::Load => layout::Access::Load,
        Kind::Store(_) => layout::Access::Store,
        Kind::Cas { .. } => layout::Access::Cas,
        Kind::Add(_) | Kind::Exchange(_) | Kind::Reduce(_) => layout::Access::Rmw,
    };
    let word = Word::new(kind, access.place.size, access.order, access.scope);
    if access.volatile {
        word.volatile()
    } else {
        word
    }
}
