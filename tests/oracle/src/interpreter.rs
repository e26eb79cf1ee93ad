//! Runs a program on the detector's host instance under a seeded schedule.
//!
//! Each memory instruction takes up to three steps, as in instrumented code: the hook before it, the instruction, the
//! hook after it. Other threads' steps come between. The order of the steps is recorded, so that the same instructions can be
//! run again in the same order on another device, or with their hooks right beside them.

mod hooks;
mod host;

use crate::program::{
    Access, Barrier, HostStep, Kind, Mbarrier, Mechanism, Op, Place, Program, Space, Transfer, WARP,
};
use crate::random::Random;
use crate::removed::{Part, without};
use crate::semantics::{event, operations_of, perform, threads_of};
use crate::setup::{FOREIGN_BASE, MEMORY, Setup};
use crate::trace::{Finding, Item, Prior, ThreadInfo, Trace};
use crate::under_way::{UnderWay, accesses_of};
use gsan_device::clock::State;
use gsan_device::host::Host;
use gsan_device::layout::{Counters, Order, RaceClass, RaceKind, RaceRecord, RaceSide, Scope};
use gsan_device::{block, copies, dependent, detector};
use hooks::{Hooks, phase_name, tensor_map};
use host::HostSide;

/// How the steps of a run follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The host takes its next step.
    Host,
    /// The first task of a stream begins or happens.
    Task(usize),
    /// A node of the graph that a step launches begins.
    Node(usize, usize),
    /// A copy is carried out.
    Copy(usize),
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
        let threads = || trace.threads.iter().enumerate();
        let enter = |steps: &mut Vec<Step>, kernel: usize| {
            let firsts = threads().filter(|(_, t)| t.kernel == kernel && t.thread == 0);
            steps.extend(firsts.map(|(_, t)| Step::Enter(t.global_block)));
        };
        for item in &trace.items {
            match item {
                Item::Host(..) => steps.push(Step::Host),
                Item::Task(step) => {
                    let Some(host) = program.host.get(*step) else {
                        continue;
                    };
                    steps.push(Step::Task(host.stream()));
                    if let HostStep::Launch { kernel, .. } = host {
                        enter(&mut steps, *kernel);
                    }
                }
                Item::Node(step, node) => {
                    steps.push(Step::Node(*step, *node));
                    if let Some(kernel) = program.kernel_of_node(*step, *node) {
                        enter(&mut steps, kernel);
                    }
                }
                Item::Leave(thread) => steps.push(Step::Leave(*thread)),
                Item::Access(_, access) => match access.copy {
                    None => steps.push(Step::Instruction(access.thread)),
                    // Of a reduction, all accesses are one step.
                    Some(copy) if steps.last() == Some(&Step::Copy(copy)) => {}
                    Some(copy) => steps.push(Step::Copy(copy)),
                },
                Item::Issue(copy) => {
                    let issuer = trace.copies.get(*copy).map(|c| c.thread);
                    steps.extend(issuer.map(Step::Instruction));
                }
                Item::ScHook(..)
                | Item::KernelEnd(_)
                | Item::NodeEnd(..)
                | Item::GraphEnd(_)
                | Item::Completes(..)
                | Item::Followed { .. }
                | Item::MbarrierPhase(_) => {}
                Item::Fence(thread, ..)
                | Item::Arrive(thread, _)
                | Item::Commit(thread)
                | Item::GroupWait { thread, .. }
                | Item::MbarrierArrive { thread, .. }
                | Item::MbarrierWait { thread, .. }
                | Item::ClusterArrive(thread, _)
                | Item::ClusterWait(thread)
                | Item::Follow(thread)
                | Item::LaunchDependents(thread)
                | Item::GridWait(thread) => {
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
    /// Blocks in which somebody has let dependent launches begin.
    triggered: Vec<bool>,
    host: HostSide,
    under_way: UnderWay<'a>,
    /// Per copy: the number of its first access.
    copy_ids: Vec<usize>,
    memory: [u8; MEMORY],
    /// Where the bits of the map of the program's tensor lie.
    map: u64,
    polite: bool,
    hooks: Hooks,
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
        let mut machine = Machine {
            program,
            setup,
            sm_of_block: (0..blocks.len())
                .map(|b| b as u32 % setup.shape.num_sms)
                .collect(),
            entered: vec![false; blocks.len()],
            triggered: vec![false; blocks.len()],
            barriers: vec![Default::default(); blocks.len()],
            blocks,
            host: HostSide::new(program),
            under_way: UnderWay::new(program),
            copy_ids: Vec::new(),
            polite: true,
            hooks: Hooks(setup.format),
            memory: [0; MEMORY],
            map: setup
                .device
                .add_tensor_map(&tensor_map(setup.device.real())),
            accesses: 0,
            out: Run {
                trace: Trace {
                    threads: threads.iter().map(|t| t.info).collect(),
                    graphs: program.graphs.clone(),
                    dependent: program.kernels.iter().map(|k| k.dependent).collect(),
                    operations: operations_of(program),
                    copies: Vec::new(),
                    items: Vec::new(),
                },
                schedule: Schedule::default(),
                findings: Vec::new(),
                counters: Counters::default(),
            },
            threads,
        };
        machine.host.host_row = machine.new_row(&[]);
        machine
    }

    fn finish(mut self) -> Run {
        self.out.trace.copies = self.under_way.copies();
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
        let kernel = prior.launch_id as usize;
        let site = record.current.site as usize;
        let copy = self.copy_ids.iter().position(|&first| first == site);
        let accesses = copy.map_or(1, |c| accesses_of(&self.out.trace.copies[c].copy));
        Some(Finding {
            kind: kind.into_iter().find(|&k| k as u32 == record.kind)?,
            class: classes().find(|&c| c as u32 == record.class)?,
            current: (site..site + accesses).collect(),
            prior: Prior {
                kernel: known(RaceSide::LAUNCH).then_some(kernel),
                block: known(RaceSide::BLOCK).then_some(prior.block[0] as usize),
                linear: known(RaceSide::THREAD | RaceSide::LINEAR_THREAD)
                    .then_some(prior.thread[0]),
            },
        })
    }

    fn thread_of(&self, step: Step) -> Option<usize> {
        match step {
            Step::Before(t) | Step::Instruction(t) | Step::After(t) | Step::Leave(t) => Some(t),
            _ => None,
        }
    }

    fn possible(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        self.possible_for_host(&mut steps);
        let of = |t: usize, thread: &Thread| match thread.phase {
            Phase::Before => Some(Step::Before(t)),
            Phase::Instruction => self.is_ready(t).then_some(Step::Instruction(t)),
            Phase::After => Some(Step::After(t)),
            Phase::Leaving => Some(Step::Leave(t)),
            Phase::Waiting | Phase::Barrier(_) | Phase::Gone => None,
        };
        steps.extend(self.under_way.to_do().map(Step::Copy));
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

    /// Whether the thread's instruction needs not wait for others.
    fn is_ready(&self, t: usize) -> bool {
        match self.op(t) {
            Some(Op::GridWait) => self.grid_before_has_ended(self.threads[t].info.kernel),
            op => op.is_none_or(|op| self.under_way.is_ready(t, &op)),
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
            Step::After(t) => self.after(t),
            Step::Node(step, node) => self.node(step, node),
            Step::Copy(copy) => {
                // A replay may do without it.
                let Some(&id) = self.copy_ids.get(copy) else {
                    return;
                };
                let items = &mut self.out.trace.items;
                self.under_way.carry_out(copy, id, &mut self.memory, items);
                let issuer = self.under_way.issuer(copy);
                self.end_kernel_if_done(self.threads[issuer].info.kernel);
            }
            Step::Leave(t) => self.leave(t),
        }
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
                self.open_clusters();
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
                let context = self.hooks.before(state, addr, &access, id as u32);
                let thread = &mut self.threads[t];
                (thread.id, thread.context) = (id, context);
            }
            Some(Op::Fence { order, scope }) => {
                self.hooks.fence(state, order, scope);
                if order == Order::Sc {
                    self.out.trace.items.push(Item::ScHook(t, scope));
                }
            }
            Some(Op::Barrier(barrier)) => {
                detector::barrier_before(state, barrier.id, barrier.count);
            }
            Some(Op::Copy(copy)) => {
                let id = self.accesses;
                self.accesses += accesses_of(&copy);
                let addr = match copy.corner {
                    Some(_) => self.map,
                    None => self.address(copy.place),
                };
                let phase = match copy.what {
                    Transfer::Fetch(Mbarrier { rank: None, index }) => {
                        phase_name(index, self.under_way.present_phase(t, index))
                    }
                    _ => 0,
                };
                self.hooks.copy(state, addr, &copy, id as u32, phase);
                self.threads[t].id = id;
            }
            Some(Op::Arrive(arrival)) => {
                let far = arrival.at.rank.is_some() || arrival.scope > Scope::Cta;
                if far && (!arrival.relaxed || self.threads[t].info.fenced) {
                    self.hooks.cluster_release(state);
                }
            }
            Some(Op::LaunchDependents) if without(Part::Trigger) => {}
            Some(Op::LaunchDependents) => dependent::launch_dependents(state),
            Some(Op::ArriveBehindCopies { .. }) if without(Part::ArriveBehindCopies) => {}
            Some(Op::ArriveBehindCopies { .. }) => copies::landed(state),
            Some(Op::ClusterArrive { relaxed }) => {
                if !relaxed || self.threads[t].info.fenced {
                    self.hooks.cluster_arrive(state);
                }
            }
            Some(
                Op::Commit(_)
                | Op::WaitGroup { .. }
                | Op::Await { .. }
                | Op::ClusterWait
                | Op::GridWait,
            )
            | None => {}
        }
        self.threads[t].phase = Phase::Instruction;
    }

    fn instruction(&mut self, t: usize) {
        match self.op(t) {
            Some(Op::Access(access)) => {
                let (read, wrote) = perform(&mut self.memory, access, self.threads[t].read);
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
            Some(op) => {
                if let Op::Copy(_) = op {
                    self.copy_ids.push(self.threads[t].id);
                }
                let index = self.threads[t].index;
                let items = &mut self.out.trace.items;
                self.under_way.step(t, index, &op, items);
                match op {
                    Op::ClusterArrive { .. } => self.open_clusters(),
                    Op::LaunchDependents => {
                        self.triggered[self.threads[t].info.global_block] = true;
                    }
                    _ => {}
                }
                self.threads[t].phase = Phase::After;
            }
            None => {}
        }
    }

    /// The hook after a thread's instruction.
    fn after(&mut self, t: usize) {
        let (Some(op), Some(state)) = (self.op(t), self.state(t)) else {
            return;
        };
        match op {
            Op::Access(access) => {
                let (addr, thread) = (self.address(access.place), &self.threads[t]);
                let (id, context, success) = (thread.id as u32, thread.context, thread.success);
                self.hooks.after(state, addr, &access, id, context, success);
                return self.advance(t, access);
            }
            Op::Barrier(barrier) => detector::barrier_after(state, barrier.id, barrier.count),
            Op::Commit(Mechanism::Bulk) => copies::commit(state),
            Op::WaitGroup {
                of: Mechanism::Bulk,
                but,
                read: false,
            } => self.hooks.copy_wait(state, but as u32),
            Op::WaitGroup {
                of: Mechanism::Small,
                ..
            } => copies::landed(state),
            Op::GridWait => block::grid_wait(state),
            Op::Await {
                mbarrier, phase, ..
            } => self.hooks.waited(state, phase_name(mbarrier, phase)),
            Op::ClusterWait => self.hooks.cluster_acquire(state),
            _ => {}
        }
        self.threads[t].index += 1;
        self.skip_to_work(t);
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

    fn open_clusters(&mut self) {
        let gone = |t: usize| matches!(self.threads[t].phase, Phase::Leaving | Phase::Gone);
        self.under_way.open_clusters(gone);
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
            self.hooks.leave(host);
        }
        self.out.trace.items.push(Item::Leave(t));
        self.threads[t].phase = Phase::Gone;
        self.open_barriers(self.threads[t].info.global_block);
        self.end_kernel_if_done(self.threads[t].info.kernel);
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
