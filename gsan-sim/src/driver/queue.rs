//! Work that streams hold, and the engine that runs it.
//!
//! Each operation names those that it comes after; together they are a graph, and a stream is nothing but its last
//! operation. Nothing runs until the host waits, queries or reads. Then, step by step, the seeded generator picks between
//! starting one of the operations that are ready and letting the machine run a slice of the kernels that have started.

use super::Diagnosis;
use super::api::Session;
use super::capture::{NO_OP, node_work};
use super::codes::{Answer, Code};
use super::copy;
use super::launch::Launch;
use super::state::{Driver, Handle, PER_THREAD_STREAM, Record, Stream, Tail};
use super::{event, memory};
use crate::machine::{GridId, LaunchDesc, LaunchError, MemoryFault, RunEvent, Stop};
use rand_core::RngCore;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_void};
use std::io::Write;

/// An operation's number; they count up in the order of issue.
pub(super) type OpId = u64;

/// A function of the host's that a stream calls.
#[derive(Clone, Copy)]
pub(super) enum HostFunction {
    /// `cuLaunchHostFunc`.
    Plain(extern "C" fn(*mut c_void)),
    /// `cuStreamAddCallback`: also told the stream and how it fares.
    Callback(extern "C" fn(*mut c_void, c_int, *mut c_void), Handle),
}

/// What an operation does.
#[derive(Clone)]
pub(super) enum Work {
    Launch(LaunchDesc),
    /// A launch that may start once the kernel of that operation has released its dependents.
    Dependent(LaunchDesc, OpId),
    Copy(copy::Copy),
    /// Writes bytes that were taken from pageable host memory when the call was made.
    Write {
        to: u64,
        bytes: Vec<u8>,
    },
    Fill(copy::Fill),
    Record {
        event: Handle,
    },
    /// Nothing: a stream waits for an event, or joins others.
    Join,
    /// Stream-ordered free.
    Free {
        address: u64,
    },
    Host {
        function: HostFunction,
        data: usize,
    },
    /// Waits until a word of memory compares.
    WaitValue(copy::WaitValue),
}

struct Op {
    context: Handle,
    work: Work,
    /// The higher, the longer it is likely to stay behind others once it is ready.
    laziness: u32,
    /// Operations before it that are not done.
    waits_for: usize,
    /// Operations that wait for it.
    dependents: Vec<OpId>,
    /// Launches, and records of events, that wait for its kernel to release them.
    early: Vec<OpId>,
}

/// All operations that are not done.
#[derive(Default)]
pub(super) struct Queue {
    ops: BTreeMap<OpId, Op>,
    /// Those that wait for nothing and have not started.
    ready: Vec<OpId>,
    /// Kernels that have started.
    grids: BTreeMap<GridId, OpId>,
    /// How many operations each context has.
    pending: HashMap<Handle, usize>,
    /// Host functions that run right now, in some thread.
    host_functions: usize,
    last: OpId,
}

impl Queue {
    /// Whether an operation has come to its end (or was thrown away).
    pub(super) fn is_done(&self, op: OpId) -> bool {
        !self.ops.contains_key(&op)
    }

    fn is_context_idle(&self, context: Handle) -> bool {
        !self.pending.contains_key(&context)
    }

    fn laziness(&self, place: usize) -> u32 {
        let op = self.ready.get(place).and_then(|id| self.ops.get(id));
        op.map_or(0, |op| op.laziness)
    }

    fn context_of(&self, op: OpId) -> Option<Handle> {
        self.ops.get(&op).map(|op| op.context)
    }

    /// Adds an operation that comes after others, and after the kernel of `beside` has let go.
    pub(super) fn submit(
        &mut self,
        context: Handle,
        work: Work,
        laziness: u32,
        after: impl IntoIterator<Item = OpId>,
        beside: Option<OpId>,
    ) -> OpId {
        self.last += 1;
        let id = self.last;
        let mut waits_for = 0;
        if let Some(beside) = beside
            && let Some(op) = self.ops.get_mut(&beside)
        {
            op.early.push(id);
            waits_for += 1;
        }
        for before in after {
            if let Some(op) = self.ops.get_mut(&before) {
                // The same operation may be named twice, as the stream's last and as an event's: it counts twice.
                op.dependents.push(id);
                waits_for += 1;
            }
        }
        self.ops.insert(
            id,
            Op {
                context,
                work,
                laziness,
                waits_for,
                dependents: Vec::new(),
                early: Vec::new(),
            },
        );
        *self.pending.entry(context).or_insert(0) += 1;
        if waits_for == 0 {
            self.ready.push(id);
        }
        id
    }

    fn complete(&mut self, id: OpId) {
        let Some(op) = self.ops.remove(&id) else {
            return;
        };
        if let Entry::Occupied(mut pending) = self.pending.entry(op.context) {
            *pending.get_mut() -= 1;
            if *pending.get() == 0 {
                pending.remove();
            }
        }
        self.one_less(op.dependents);
        self.one_less(op.early);
    }

    /// Each of these operations has one less to wait for.
    fn one_less(&mut self, ops: Vec<OpId>) {
        for next in ops {
            if let Some(op) = self.ops.get_mut(&next) {
                op.waits_for -= 1;
                if op.waits_for == 0 {
                    self.ready.push(next);
                }
            }
        }
    }

    /// The running kernel of an operation.
    fn grid_of(&self, op: OpId) -> Option<GridId> {
        let mut grids = self.grids.iter();
        grids.find(|(_, of)| **of == op).map(|(&grid, _)| grid)
    }

    /// Whether launches wait for the operation's kernel to release them.
    fn has_early(&self, op: OpId) -> bool {
        self.ops.get(&op).is_some_and(|op| !op.early.is_empty())
    }

    /// A kernel has released those that may run beside it.
    fn release(&mut self, grid: GridId) {
        let op = self.grids.get(&grid).and_then(|op| self.ops.get_mut(op));
        if let Some(op) = op {
            let early = std::mem::take(&mut op.early);
            self.one_less(early);
        }
    }

    /// Throws away what a context has not done yet. What other contexts have waiting for it goes on.
    fn discard(&mut self, context: Handle) {
        let gone: Vec<OpId> = self
            .ops
            .iter()
            .filter(|(_, op)| op.context == context)
            .map(|(&id, _)| id)
            .collect();
        for id in gone {
            self.complete(id);
        }
        // Operations of the context may have become ready while others were thrown away.
        let ops = &self.ops;
        self.ready.retain(|id| ops.contains_key(id));
        self.grids.retain(|_, id| ops.contains_key(id));
    }
}

/// What a step of the engine came to.
enum Step {
    /// Something has happened; the machine ran at most so many instructions.
    Ran(u64),
    /// A host function is due. It must run without the lock.
    Host(OpId, HostFunction, usize, c_int),
    /// A host function that runs in another thread has to return first.
    Elsewhere,
    /// Nothing is left that could run.
    Nothing,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// What was waited for is done.
    Done,
    /// The steps that were granted are used up.
    NotYet,
    /// Nothing can run, and it is not done.
    Stuck,
}

impl Driver {
    /// The stream that a handle means in a context; none for the legacy default stream.
    pub(super) fn stream(&mut self, context: Handle, stream: Handle) -> Answer<Option<Handle>> {
        match stream {
            0 | super::state::LEGACY_STREAM => Ok(None),
            PER_THREAD_STREAM => {
                let thread = std::thread::current().id();
                if let Some(&stream) = self.context(context)?.per_thread.get(&thread) {
                    return Ok(Some(stream));
                }
                let stream = self.new_handle();
                self.streams.insert(
                    stream,
                    Stream {
                        context,
                        flags: 0,
                        priority: 0,
                        tail: Tail::default(),
                    },
                );
                self.context_mut(context)?.per_thread.insert(thread, stream);
                Ok(Some(stream))
            }
            stream if self.streams.contains_key(&stream) => Ok(Some(stream)),
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    /// Puts work at the end of a stream; `after` are operations that it waits for besides. In a captured stream it becomes a
    /// node, and there is nothing to wait for.
    pub(super) fn submit(
        &mut self,
        context: Handle,
        stream: Handle,
        work: Work,
        after: &[OpId],
    ) -> Answer<OpId> {
        let own = self.stream(context, stream)?;
        match (self.capture_of(own), own) {
            (Some(capture), Some(own)) => {
                self.capture_work(capture, own, node_work(work))?;
                return Ok(NO_OP);
            }
            (_, None) => self.refuse_legacy(context)?,
            _ => {}
        }
        self.submit_beside(context, stream, work, after, None)
    }

    fn submit_beside(
        &mut self,
        context: Handle,
        stream: Handle,
        work: Work,
        after: &[OpId],
        beside: Option<OpId>,
    ) -> Answer<OpId> {
        let stream = self.stream(context, stream)?;
        // The stream says whose work it is: it may be used while another context is current.
        let context = match stream {
            Some(stream) => {
                self.streams
                    .get(&stream)
                    .ok_or(Code::INVALID_HANDLE)?
                    .context
            }
            None => context,
        };
        self.health(context)?;
        let mut before = after.to_vec();
        match stream {
            Some(handle) => {
                let stream = self.streams.get(&handle).ok_or(Code::INVALID_HANDLE)?;
                before.extend(stream.tail.last);
                if stream.is_blocking() {
                    before.extend(self.context(context)?.legacy.last);
                }
            }
            None => {
                let queue = &self.queue;
                let blocking = self
                    .streams
                    .values()
                    .filter(|s| s.context == context && s.is_blocking());
                before.extend(
                    blocking
                        .filter_map(|s| s.tail.last)
                        .filter(|&op| !queue.is_done(op)),
                );
                let context = self.context_mut(context)?;
                before.append(&mut context.orphans);
                before.extend(context.legacy.last);
            }
        }
        let laziness = self.rng.next_u32() % 5;
        let op = self.queue.submit(context, work, laziness, before, beside);
        let last = Some(op);
        *self.tail_mut(context, stream)? = Tail {
            last,
            ..Tail::default()
        };
        Ok(op)
    }

    /// Puts a kernel at the end of a stream. A programmatic dependent launch right behind another kernel waits only until
    /// that one lets it start, and so does one right behind the wait for such a kernel's event. `events` are recorded when
    /// this kernel lets its own dependents start: the first is a programmatic one.
    pub(super) fn submit_launch(
        &mut self,
        context: Handle,
        stream: Handle,
        launch: Launch,
        programmatic: bool,
        events: [Option<Handle>; 2],
    ) -> Answer {
        let own = self.stream(context, stream)?;
        if let Some((capture, own)) = self.capture_of(own).zip(own) {
            let events: Vec<Handle> = events.into_iter().flatten().collect();
            return self.capture_launch(capture, own, launch, programmatic, &events);
        }
        if own.is_none() {
            self.refuse_legacy(context)?;
        }
        let desc = launch.desc;
        let tail = *self.tail_mut(context, own)?;
        let running = |op: &OpId| !self.queue.is_done(*op);
        let on = tail.trigger.filter(running);
        let before = tail.kernel.filter(|op| programmatic && running(op));
        let kernel = match on.or(before) {
            Some(on) => {
                if tail.trigger.is_none() {
                    // The stream's end moves back before the kernel; what comes after the new one waits for both.
                    *self.tail_mut(context, own)? = Tail::default();
                }
                let work = Work::Dependent(desc, on);
                let op = self.submit_beside(context, stream, work, &[], Some(on))?;
                if let Some(grid) = self.queue.grid_of(on)
                    && self.machine.watch_release(grid)
                {
                    self.queue.release(grid);
                }
                if tail.trigger.is_none() {
                    self.submit(context, stream, Work::Join, tail.last.as_slice())?;
                }
                op
            }
            None => self.submit(context, stream, Work::Launch(desc), &[])?,
        };
        let of = match own {
            Some(own) => self.streams.get(&own).map_or(context, |s| s.context),
            None => context,
        };
        for (place, event) in events.into_iter().enumerate() {
            let Some(event) = event else { continue };
            let laziness = self.rng.next_u32() % 5;
            let work = Work::Record { event };
            let op = self.queue.submit(of, work, laziness, [], Some(kernel));
            let event = self.event(event)?;
            event.captured = None;
            event.record = Some(Record {
                op,
                time: None,
                kernel: (place == 0).then_some(kernel),
            });
        }
        let tail = self.tail_mut(context, own)?;
        (tail.kernel, tail.trigger) = (Some(kernel), None);
        Ok(())
    }

    /// The end of a stream of a context.
    pub(super) fn tail_mut(
        &mut self,
        context: Handle,
        stream: Option<Handle>,
    ) -> Answer<&mut Tail> {
        Ok(match stream {
            Some(stream) => {
                let stream = self.streams.get_mut(&stream);
                &mut stream.ok_or(Code::INVALID_HANDLE)?.tail
            }
            None => &mut self.context_mut(context)?.legacy,
        })
    }

    /// The operations that a stream's completion means.
    pub(super) fn tail(&mut self, context: Handle, stream: Handle) -> Answer<Vec<OpId>> {
        let stream = self.stream(context, stream)?;
        self.refuse_captured(context, stream)?;
        Ok(match stream {
            Some(stream) => self
                .streams
                .get(&stream)
                .and_then(|s| s.tail.last)
                .into_iter()
                .collect(),
            // Waiting for the legacy stream waits for what it would have waited for.
            None => {
                let blocking = self
                    .streams
                    .values()
                    .filter(|s| s.context == context && s.is_blocking());
                let mut ops: Vec<OpId> = blocking.filter_map(|s| s.tail.last).collect();
                let context = self.context(context)?;
                ops.extend(&context.orphans);
                ops.extend(context.legacy.last);
                ops
            }
        })
    }

    /// Simulated nanoseconds: one per warp instruction.
    pub(super) fn now(&self) -> u64 {
        self.machine.steps()
    }

    /// Throws away a context's work.
    pub(super) fn discard(&mut self, context: Handle) {
        self.queue.discard(context);
    }

    fn step(&mut self, most: u64) -> Step {
        match (self.pick(), self.queue.grids.is_empty()) {
            (Some(place), _) => self.start_one(place, most),
            (None, false) => self.run_slice(most),
            (None, true) if self.queue.host_functions > 0 => Step::Elsewhere,
            (None, true) => Step::Nothing,
        }
    }

    /// The place in `ready` of the operation to start now; none if kernels shall run on.
    ///
    /// A lazy operation is passed over often, so that over many seeds it falls early, late and in the middle of what other
    /// streams do. Something is always picked while no kernel runs.
    fn pick(&mut self) -> Option<usize> {
        let kernels_run = !self.queue.grids.is_empty();
        let ready = self.queue.ready.len();
        if ready == 0 || kernels_run && self.rng.next_u32() & 1 == 0 {
            return None;
        }
        let tries = if ready == 1 && !kernels_run {
            1
        } else {
            4 * ready
        };
        let mut place = 0;
        for _ in 0..tries {
            place = self.rng.next_u32() as usize % ready;
            let laziness = self.queue.laziness(place);
            if self.rng.next_u32().is_multiple_of(1 << laziness) {
                return Some(place);
            }
            if kernels_run {
                return None;
            }
        }
        Some(place)
    }

    fn run_slice(&mut self, most: u64) -> Step {
        // Long slices are cheap, short ones move the starts of later operations into the middle of kernels: all lengths
        // from 16 to 64 Ki instructions are as likely.
        let slice = if self.queue.ready.is_empty() {
            1 << 20
        } else {
            16u64 << (self.rng.next_u32() % 13)
        };
        let slice = slice.min(most.max(1));
        let before = self.machine.steps();
        match self.machine.run(slice) {
            RunEvent::Completed(grid) => {
                if let Some(op) = self.queue.grids.remove(&grid) {
                    self.queue.complete(op);
                }
            }
            RunEvent::Yield => {
                for grid in self.machine.take_released() {
                    self.queue.release(grid);
                }
            }
            RunEvent::Idle => {
                // Nothing runs any more, so every kernel is done.
                for (_, op) in std::mem::take(&mut self.queue.grids) {
                    self.queue.complete(op);
                }
            }
            RunEvent::Stopped(stop) => self.stopped(&stop),
        }
        self.flush_output();
        Step::Ran(self.machine.steps().saturating_sub(before).max(1))
    }

    /// Starts one of the operations that are ready.
    fn start_one(&mut self, place: usize, most: u64) -> Step {
        let id = self.queue.ready.swap_remove(place);
        let Some(op) = self.queue.ops.get_mut(&id) else {
            return Step::Ran(1);
        };
        let context = op.context;
        let work = std::mem::replace(&mut op.work, Work::Join);
        let done = match work {
            Work::Launch(launch) => {
                let started = self.machine.launch(launch);
                return self.started(id, context, started);
            }
            Work::Dependent(launch, on) => {
                let started = match self.queue.grid_of(on) {
                    Some(grid) => self.machine.launch_dependent(launch, grid),
                    None => self.machine.launch(launch),
                };
                return self.started(id, context, started);
            }
            Work::Host { function, data } => {
                let status = self.health(context).err().map_or(0, |code| code.0);
                self.queue.host_functions += 1;
                return Step::Host(id, function, data, status);
            }
            Work::WaitValue(wait) => match copy::compares(self.machine.memory(), &wait) {
                Ok(true) => Ok(()),
                Ok(false) => return self.wait_more(id, wait, most),
                Err(fault) => Err(fault),
            },
            Work::Copy(what) => {
                let (from, to) = (what.from.address, what.to.address);
                self.machine.note_operation(Some(from), Some(to), false);
                copy::run(self.machine.memory_mut(), &what)
            }
            Work::Write { to, bytes } => {
                self.machine.note_operation(None, Some(to), false);
                self.machine.memory_mut().write(to, &bytes)
            }
            Work::Fill(fill) => {
                self.machine.note_operation(None, Some(fill.to), true);
                copy::fill(self.machine.memory_mut(), &fill)
            }
            Work::Record { event } => {
                event::recorded(self, event, id);
                Ok(())
            }
            Work::Free { address } => {
                memory::free_now(self, address);
                Ok(())
            }
            Work::Join => Ok(()),
        };
        match done {
            Ok(()) => self.queue.complete(id),
            Err(fault) => self.copy_failed(context, fault),
        }
        Step::Ran(1)
    }

    /// A kernel has started, or was refused.
    fn started(&mut self, id: OpId, context: Handle, started: Result<GridId, LaunchError>) -> Step {
        match started {
            Ok(grid) => {
                self.queue.grids.insert(grid, id);
                if self.queue.has_early(id) && self.machine.watch_release(grid) {
                    self.queue.release(grid);
                }
            }
            Err(error) => self.fail(
                context,
                launch_code(&error),
                Diagnosis::error(error.to_string()),
            ),
        }
        Step::Ran(1)
    }

    /// Puts a wait that does not hold yet back, behind whatever else can run.
    fn wait_more(&mut self, id: OpId, wait: copy::WaitValue, most: u64) -> Step {
        if let Some(op) = self.queue.ops.get_mut(&id) {
            op.work = Work::WaitValue(wait);
        }
        self.queue.ready.push(id);
        if !self.queue.grids.is_empty() {
            return self.run_slice(most);
        }
        let memory = self.machine.memory();
        let hopeless = self.queue.ready.iter().filter_map(|id| self.queue.ops.get(id)).all(|op| {
            matches!(&op.work, Work::WaitValue(wait) if matches!(copy::compares(memory, wait), Ok(false)))
        });
        match (hopeless, self.queue.host_functions) {
            (true, 0) => Step::Nothing,
            (true, _) => Step::Elsewhere,
            (false, _) => Step::Ran(1),
        }
    }

    fn copy_failed(&mut self, context: Handle, fault: MemoryFault) {
        let message =
            format!("a copy or fill in a stream touched freed or unmapped memory: {fault}");
        self.fail(context, Code::ILLEGAL_ADDRESS, Diagnosis::fault(message));
    }

    /// The machine has ended all kernels: every context that had one running is lost.
    fn stopped(&mut self, stop: &Stop) {
        let code = super::diagnosis::code_of(stop);
        self.fail_all(Vec::new(), code, Diagnosis::of_stop(stop));
    }

    /// From now on the context answers `code`.
    fn fail(&mut self, context: Handle, code: Code, diagnosis: Diagnosis) {
        if self
            .queue
            .grids
            .values()
            .any(|&op| self.queue.context_of(op) == Some(context))
        {
            // Kernels of it that still run must not go on once their operations are gone. The machine can only end all
            // of them, so the contexts of the others share this one's fate: better an error than a kernel cut short.
            self.machine.abort();
            self.fail_all(vec![context], code, diagnosis);
        } else {
            self.give_up(context, code);
            self.diagnosis = Some(diagnosis);
        }
    }

    /// Gives up the contexts of all kernels that were running, and these.
    fn fail_all(&mut self, mut contexts: Vec<Handle>, code: Code, diagnosis: Diagnosis) {
        for op in std::mem::take(&mut self.queue.grids).into_values() {
            contexts.extend(self.queue.context_of(op));
        }
        for context in contexts {
            self.give_up(context, code);
        }
        self.diagnosis = Some(diagnosis);
    }

    fn give_up(&mut self, context: Handle, code: Code) {
        self.queue.discard(context);
        if let Some(context) = self.contexts.get_mut(&context) {
            context.error.get_or_insert(code);
        }
    }

    /// What kernels have printed goes to standard output.
    fn flush_output(&mut self) {
        let output = self.machine.take_output();
        if !output.is_empty() {
            // There is nobody to tell that standard output is closed.
            let _ = std::io::stdout().write_all(&output);
        }
    }
}

fn launch_code(error: &LaunchError) -> Code {
    match error {
        LaunchError::NoSuchFunction => Code::INVALID_HANDLE,
        LaunchError::OutOfResources(_) => Code::LAUNCH_OUT_OF_RESOURCES,
        LaunchError::CooperativeTooLarge { .. } => Code::COOPERATIVE_LAUNCH_TOO_LARGE,
        LaunchError::OutOfMemory => Code::OUT_OF_MEMORY,
        _ => Code::INVALID_VALUE,
    }
}

impl Session {
    /// Runs pending work of all streams until `done` says so, at most `most` instructions.
    fn drive(&mut self, most: u64, done: impl Fn(&Driver) -> bool) -> Answer<Waited> {
        /// Instructions between two looks at whether other threads wait: some milliseconds.
        const BETWEEN_OTHERS: u64 = 100_000;
        let generation = self.state().generation;
        let mut left = most;
        let mut since_others = 0;
        loop {
            let state = self.state();
            if state.generation != generation {
                return Err(Code::CONTEXT_IS_DESTROYED);
            }
            let driver = state.driver.as_mut().ok_or(Code::DEINITIALIZED)?;
            if done(driver) {
                return Ok(Waited::Done);
            }
            if left == 0 {
                return Ok(Waited::NotYet);
            }
            let step = driver.step(left);
            if let Some(diagnosis) = driver.diagnosis.take() {
                state.diagnosis = Some(diagnosis);
            }
            match step {
                Step::Ran(steps) => {
                    left = left.saturating_sub(steps);
                    since_others += steps;
                    if since_others >= BETWEEN_OTHERS {
                        since_others = 0;
                        self.let_others_in();
                    }
                }
                Step::Host(op, function, data, status) => {
                    self.call_host(generation, op, function, data, status)
                }
                Step::Elsewhere => self.wait_for_host_function(),
                Step::Nothing => return Ok(Waited::Stuck),
            }
        }
    }

    fn call_host(
        &mut self,
        generation: u64,
        op: OpId,
        function: HostFunction,
        data: usize,
        status: c_int,
    ) {
        self.unlocked(|| match function {
            HostFunction::Plain(function) => function(data as *mut c_void),
            HostFunction::Callback(function, stream) => {
                function(stream as *mut c_void, status, data as *mut c_void);
            }
        });
        let state = self.state();
        if state.generation == generation
            && let Some(driver) = &mut state.driver
        {
            driver.queue.host_functions = driver.queue.host_functions.saturating_sub(1);
            driver.queue.complete(op);
        }
    }

    /// Waits for operations, then says how the context fares.
    pub(super) fn wait(&mut self, context: Handle, ops: &[OpId]) -> Answer {
        self.wait_until(context, |driver| {
            ops.iter().all(|&op| driver.queue.is_done(op))
        })
    }

    /// Waits for everything that a context has queued.
    pub(super) fn wait_for_all(&mut self, context: Handle) -> Answer {
        self.wait_until(context, |driver| driver.queue.is_context_idle(context))
    }

    fn wait_until(&mut self, context: Handle, done: impl Fn(&Driver) -> bool) -> Answer {
        self.driver()?.machine.reset_budget();
        let waited = self.drive(u64::MAX, done)?;
        let state = self.state();
        let driver = state.driver.as_mut().ok_or(Code::DEINITIALIZED)?;
        if waited == Waited::Stuck {
            let message = "streams wait for memory values that nothing is left to write".to_owned();
            driver.fail(context, Code::LAUNCH_TIMEOUT, Diagnosis::deadlock(message));
            state.diagnosis = driver.diagnosis.take();
        }
        driver.health(context)
    }

    /// What a query does: some work, then whether the operations are done.
    pub(super) fn poll(&mut self, context: Handle, ops: &[OpId]) -> Answer<bool> {
        /// Instructions that a query pays for: enough to make progress, few enough that polling is seen to poll.
        const PER_QUERY: u64 = 20_000;
        self.drive(PER_QUERY, |driver| {
            ops.iter().all(|&op| driver.queue.is_done(op))
        })?;
        let driver = self.driver()?;
        driver.health(context)?;
        Ok(ops.iter().all(|&op| driver.queue.is_done(op)))
    }
}
