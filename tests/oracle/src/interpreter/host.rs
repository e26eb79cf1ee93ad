//! The host's side of a run: streams, events, graphs, and the clock rows of their kernels.

use super::{Machine, Phase, Step, block};
use crate::program::{HostStep, Program, Work};
use crate::removed::{Part, without};
use crate::setup::Format;
use crate::trace::Item;
use gsan_device::layout::LaunchRecord;

/// What the host and its streams have come to.
pub(super) struct HostSide {
    next_step: usize,
    /// Per stream: tasks not yet begun, in order; the launches or the graph that run; and what began last.
    queues: Vec<Vec<usize>>,
    running: Vec<Vec<usize>>,
    last: Vec<Option<usize>>,
    /// Per kernel.
    kernels: Vec<Grid>,
    rows: u32,
    /// What is known after each stream's tasks: several rows after dependent launches.
    stream_rows: Vec<Vec<u32>>,
    pub(super) host_row: u32,
    inherited: Vec<u32>,
    waits_for: Vec<Option<usize>>,
    event_row: Vec<Option<u32>>,
    /// Per step: the row in which a graph's launch begins, and the one in which it has ended.
    graph_rows: Vec<(u32, Option<u32>)>,
}

/// A kernel's launch.
#[derive(Clone, Copy, Default)]
struct Grid {
    record: u64,
    base: u32,
    out: u32,
    /// Of a dependent launch.
    before: Option<usize>,
    /// The row that the host knew when it was issued.
    inherited: u32,
    /// So were the kernels before it that it may overtake, each with the same row.
    alike: bool,
    state: GridState,
    /// Tells it from the grids that run at the same time.
    id: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum GridState {
    #[default]
    Waiting,
    Running,
    Ended,
}

impl HostSide {
    pub(super) fn new(program: &Program) -> HostSide {
        let streams = 1 + program.host.iter().map(|s| s.stream()).max().unwrap_or(0);
        let steps = program.host.len();
        HostSide {
            next_step: 0,
            queues: vec![Vec::new(); streams],
            running: vec![Vec::new(); streams],
            last: vec![None; streams],
            kernels: vec![Grid::default(); program.kernels.len()],
            rows: 0,
            stream_rows: vec![vec![0]; streams],
            host_row: 0,
            inherited: vec![0; steps],
            waits_for: vec![None; steps],
            event_row: vec![None; steps],
            graph_rows: vec![(0, None); steps],
        }
    }
}

impl Machine<'_> {
    /// A fresh row that joins others.
    pub(super) fn new_row(&mut self, from: &[u32]) -> u32 {
        let row = self.host.rows;
        self.host.rows += 1;
        for &f in from {
            self.setup.device.join_row(row, f, false);
        }
        row
    }

    /// What the host, its streams and graphs, and blocks that have not begun can do.
    pub(super) fn possible_for_host(&self, steps: &mut Vec<Step>) {
        let host = &self.host;
        if let Some(step) = self.program.host.get(host.next_step) {
            let ready = match *step {
                HostStep::Synchronize { stream } => {
                    host.queues[stream].is_empty() && host.running[stream].is_empty()
                }
                _ => true,
            };
            if ready {
                steps.push(Step::Host);
            }
        }
        for (s, queue) in host.queues.iter().enumerate() {
            if let Some(&task) = queue.first()
                && (host.running[s].is_empty() || self.may_begin_early(s, task))
            {
                let ready = host.waits_for[task].is_none_or(|w| host.event_row[w].is_some());
                let before = self.program.run_before(task);
                if ready && before.is_none_or(|b| host.graph_rows[b].1.is_some()) {
                    steps.push(Step::Task(s));
                }
            }
        }
        for &step in host.running.iter().flatten() {
            for (n, node) in self.program.nodes(step).iter().enumerate() {
                let state = |n| {
                    let kernel = self.program.kernel_of_node(step, n);
                    kernel.map_or(GridState::Ended, |k| host.kernels[k].state)
                };
                if state(n) == GridState::Waiting
                    && node.after.iter().all(|&a| state(a) == GridState::Ended)
                {
                    steps.push(Step::Node(step, n));
                }
            }
        }
        for (b, &(first, _)) in self.blocks.iter().enumerate() {
            let kernel = self.threads[first].info.kernel;
            if !self.entered[b] && host.kernels[kernel].state == GridState::Running {
                steps.push(Step::Enter(b));
            }
        }
    }

    /// Whether a task need not wait until what runs in its stream has ended: a dependent launch, once all blocks of the
    /// kernel before it have let it begin or are gone.
    fn may_begin_early(&self, stream: usize, task: usize) -> bool {
        let kernel = |step| self.program.grid_of(step);
        let (Some(next), Some(before)) = (kernel(task), self.host.last[stream].and_then(kernel))
        else {
            return false;
        };
        let gone = |first: usize, count: usize| {
            let mut threads = self.threads[first..first + count].iter();
            threads.all(|t| t.phase == Phase::Gone)
        };
        let mut blocks = self.blocks.iter().enumerate();
        self.program.kernels[next].dependent
            && blocks.all(|(b, &(first, count))| {
                self.threads[first].info.kernel != before || self.triggered[b] || gone(first, count)
            })
    }

    /// Whether the kernel that a dependent launch may have overtaken has ended.
    pub(super) fn grid_before_has_ended(&self, kernel: usize) -> bool {
        let before = self.host.kernels[kernel].before;
        before.is_none_or(|b| self.host.kernels[b].state == GridState::Ended)
    }

    pub(super) fn host_step(&mut self) {
        let index = self.host.next_step;
        self.host.next_step += 1;
        let step = self.program.host[index];
        match step {
            HostStep::Launch { stream, .. }
            | HostStep::Record { stream, .. }
            | HostStep::Graph { stream, .. } => self.host.queues[stream].push(index),
            HostStep::Wait { stream, event } => {
                self.host.waits_for[index] = self.program.host[..index]
                    .iter()
                    .rposition(|s| matches!(*s, HostStep::Record { event: e, .. } if e == event));
                self.host.queues[stream].push(index);
            }
            HostStep::Synchronize { stream } => {
                let mut rows = self.host.stream_rows[stream].clone();
                rows.push(self.host.host_row);
                self.host.host_row = self.new_row(&rows);
            }
        }
        self.host.inherited[index] = self.host.host_row;
        self.out.trace.items.push(Item::Host(index, step));
    }

    pub(super) fn task(&mut self, stream: usize) {
        let index = self.host.queues[stream].remove(0);
        self.out.trace.items.push(Item::Task(index));
        let mut from = self.host.stream_rows[stream].clone();
        from.push(self.host.inherited[index]);
        let before = self.host.last[stream].replace(index);
        match self.program.host[index] {
            HostStep::Launch { kernel, .. } => {
                let dependent = self.program.kernels[kernel].dependent;
                let before = before.filter(|_| dependent);
                let before = before.and_then(|b| self.program.grid_of(b));
                let mut known = Vec::new();
                if let Some(before) = before {
                    from = vec![self.host.inherited[index]];
                    if !without(Part::DependentBase) {
                        from.push(self.host.kernels[before].base);
                    }
                    from.extend(self.handed_over(before, self.host.inherited[index]));
                    if !without(Part::DependentJoin) {
                        known.clone_from(&self.host.stream_rows[stream]);
                    }
                }
                let operation = self.program.kernels[kernel].work != Work::Grid;
                if operation && without(Part::OperationBase) {
                    from.clear();
                }
                let base = self.new_row(&from);
                self.host.running[stream].push(index);
                let out = self.begin(kernel, base, stream as u64);
                self.host.kernels[kernel].inherited = self.host.inherited[index];
                self.host.kernels[kernel].alike = true;
                if operation && without(Part::OperationRow) {
                    known.clone_from(&self.host.stream_rows[stream]);
                } else {
                    known.push(out);
                }
                if let Some(before) = before {
                    self.follow(kernel, before);
                }
                self.host.stream_rows[stream] = known;
                self.end_kernel_if_done(kernel);
            }
            HostStep::Record { .. } => {
                let row = self.new_row(&from);
                self.host.event_row[index] = Some(row);
                self.host.stream_rows[stream] = vec![row];
            }
            HostStep::Wait { .. } => {
                from.extend(self.host.waits_for[index].and_then(|w| self.host.event_row[w]));
                self.host.stream_rows[stream] = vec![self.new_row(&from)];
            }
            HostStep::Graph { .. } => {
                let before = self.program.run_before(index);
                from.extend(before.and_then(|b| self.host.graph_rows[b].1));
                self.host.graph_rows[index].0 = self.new_row(&from);
                self.host.running[stream].push(index);
                self.end_graph_if_done(index);
            }
            HostStep::Synchronize { .. } => {}
        }
    }

    /// What the kernel before a dependent launch hands over, if the launch's blocks won't look for it: that row alone would lack what
    /// the host has come to know since.
    fn handed_over(&self, before: usize, inherited: u32) -> Option<u32> {
        let grid = &self.host.kernels[before];
        let chained = grid.before.is_some() && !without(Part::DependentHandover);
        let joined = chained && !(grid.alike && grid.inherited == inherited);
        self.setup.device.handed_over(grid.out).filter(|_| joined)
    }

    /// A dependent launch gets the rows of the one before.
    fn follow(&mut self, kernel: usize, before: usize) {
        let grids = &mut self.host.kernels;
        grids[kernel].before = Some(before);
        grids[kernel].alike =
            grids[before].alike && grids[before].inherited == grids[kernel].inherited;
        if without(Part::DependentRow) {
            return;
        }
        let chained = grids[before].before.is_some() && grids[kernel].alike;
        let (record, out) = (grids[kernel].record, grids[before].out);
        if chained && !without(Part::DependentHandover) {
            self.setup.device.chain(record, out);
        } else {
            self.setup.device.set_wait_row(record, out);
        }
    }

    /// A node of a graph begins.
    pub(super) fn node(&mut self, step: usize, node: usize) {
        let Some(kernel) = self.program.kernel_of_node(step, node) else {
            return;
        };
        self.out.trace.items.push(Item::Node(step, node));
        let mut from = vec![self.host.graph_rows[step].0];
        let nodes = self.program.nodes(step);
        let after = nodes[node].after.iter();
        let before = after.filter_map(|&a| self.program.kernel_of_node(step, a));
        from.extend(before.map(|k| self.host.kernels[k].out));
        let base = self.new_row(&from);
        self.begin(kernel, base, 0);
        self.end_kernel_if_done(kernel);
    }

    /// Launches a kernel with what its blocks know, under this number if no other grid has it; returns the row of what is known
    /// after it.
    fn begin(&mut self, kernel: usize, base: u32, number: u64) -> u32 {
        let out = self.new_row(&[]);
        let record = self.setup.device.launch(kernel as u32, base, out);
        let warps = match self.setup.format {
            // Its cell knows no warps, and its runtime has no hooks for them.
            Format::Reference => 0,
            Format::Wide if self.program.kernels[kernel].work != Work::Grid => 0,
            Format::Wide => LaunchRecord::INTRA_BLOCK,
        };
        let shape = [self.program.kernels[kernel].cluster.max(1) as u32, 1, 1];
        let flags = warps | LaunchRecord::cluster_flags(shape);
        self.setup.device.set_launch_flags(record, flags);
        let others = self
            .host
            .kernels
            .iter()
            .filter(|k| k.state == GridState::Running);
        let mut numbers = std::iter::once(number).chain(0..);
        let id = numbers.find(|&id| others.clone().all(|k| k.id != id));
        self.host.kernels[kernel] = Grid {
            record,
            base,
            out,
            before: None,
            inherited: 0,
            alike: false,
            state: GridState::Running,
            id: id.unwrap_or(number),
        };
        out
    }

    pub(super) fn enter(&mut self, block: usize) {
        let (first, count) = self.blocks[block];
        let info = self.threads[first].info;
        let grid = self.host.kernels[info.kernel];
        if grid.state != GridState::Running {
            return;
        }
        self.entered[block] = true;
        let all = self.program.kernels[info.kernel].block_threads();
        let sm = self.sm_of_block[block];
        let host = |linear| {
            let device = &self.setup.device;
            device.thread(grid.id, sm, info.block as u32, linear, all)
        };
        block::enter(host(0), grid.record);
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

    pub(super) fn end_kernel_if_done(&mut self, kernel: usize) {
        let left = |t: &super::Thread| t.info.kernel != kernel || t.phase == Phase::Gone;
        let done = self.threads.iter().all(left) && self.under_way.is_done(kernel);
        if !done || self.host.kernels[kernel].state != GridState::Running {
            return;
        }
        self.host.kernels[kernel].state = GridState::Ended;
        let running = self.host.running.iter().flatten().copied();
        for step in running.collect::<Vec<_>>() {
            if self.program.kernel_of(step) == Some(kernel) {
                self.host.running[self.program.host[step].stream()].retain(|&s| s != step);
                self.out.trace.items.push(Item::KernelEnd(step));
            }
            let nodes = 0..self.program.nodes(step).len();
            for node in nodes {
                if self.program.kernel_of_node(step, node) == Some(kernel) {
                    self.out.trace.items.push(Item::NodeEnd(step, node));
                    self.end_graph_if_done(step);
                }
            }
        }
    }

    /// A graph has ended when all of its nodes have: what they did its stream knows.
    fn end_graph_if_done(&mut self, step: usize) {
        let kernels: Vec<Grid> = (0..self.program.nodes(step).len())
            .filter_map(|n| self.program.kernel_of_node(step, n))
            .map(|k| self.host.kernels[k])
            .collect();
        if kernels.iter().any(|k| k.state != GridState::Ended) {
            return;
        }
        let mut from: Vec<u32> = kernels.iter().map(|k| k.out).collect();
        from.push(self.host.graph_rows[step].0);
        let row = self.new_row(&from);
        let stream = self.program.host[step].stream();
        self.host.graph_rows[step].1 = Some(row);
        self.host.stream_rows[stream] = vec![row];
        self.host.running[stream].clear();
        self.out.trace.items.push(Item::GraphEnd(step));
    }
}
