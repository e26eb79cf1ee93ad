//! Order that comes neither from accesses nor from a block's barriers: between kernels, and from mbarriers, clusters' barriers
//! and waits for copies.
//!
//! * **Host**: streams, events, host synchronisation; a graph's node comes after the nodes that its edges say, its first ones
//!   after what the stream had and after the graph's launch before, and the stream goes on after all of them. A dependent launch
//!   right behind another kernel comes after what that kernel began with, and after the kernel before that one if a block had waited for it before it
//!   executed `griddepcontrol.launch_dependents` (its first) or ended; what `griddepcontrol.wait` lets through comes after all of that kernel,
//!   and what comes next in the stream after both. (`griddepcontrol.launch_dependents` orders nothing that the kernel itself has done.)
//! * **Copies**: "executed as if by another thread". Issued by a thread, a copy comes after all that the thread has done; a wait
//!   for its group (not `.read`, which is about the source in shared memory) or for the mbarrier on which it completes comes after it, and so does
//!   the end of its kernel. Fences between proxies are left out: they order nothing between threads.
//! * **Mbarriers**: an arrival is a release (or, relaxed, one together with an earlier fence), a copy's completion there one of cluster
//!   scope by the copy; who has waited for a phase has acquired from those of that phase and of earlier ones, where scopes include each other.
//!   The arrival of `cp.async.mbarrier.arrive` releases what the copies are that it waits for, and what came before their issue.
//! * **Clusters' barriers**: whoever has waited has acquired from all that arrived, at cluster scope.

use super::{Clock, Event, HASHED, Observer, Oracle, Pattern, join};
use crate::program::{HostStep, Mbarrier, Mechanism, Place, Transfer};
use crate::trace::{Access, Item, Trace};
use gsan_device::layout::{Order, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What the rules of this module remember.
pub(super) struct Orders {
    agents: usize,
    first_copy: usize,
    copies: Vec<CopyState>,
    streams: BTreeMap<usize, Clock>,
    host: Clock,
    tasks: BTreeMap<usize, Task>,
    recorded: BTreeMap<usize, Clock>,
    last_record: BTreeMap<usize, usize>,
    /// Per step that launches a graph: what its first nodes know, what is known after it, and after each of its nodes.
    graphs: BTreeMap<usize, GraphRun>,
    /// The step that began last in each stream.
    last: BTreeMap<usize, usize>,
    /// Per kernel: what it began with, what is known after its end, and for a dependent launch the kernel before it.
    begun: BTreeMap<usize, Clock>,
    ended: BTreeMap<usize, Clock>,
    before: BTreeMap<usize, usize>,
    /// Per kernel: who has waited for the one before, and when.
    waited: BTreeMap<usize, Vec<(usize, u32)>>,
    /// Per kernel: what a dependent launch behind it begins with besides.
    handed: BTreeMap<usize, Clock>,
    /// Blocks that have let dependent launches begin, and threads that have left.
    let_begin: BTreeSet<usize>,
    left: BTreeSet<usize>,
    mbarriers: BTreeMap<usize, Arrivals>,
    /// Per cluster and phase of its barrier: what those who have arrived published.
    clusters: BTreeMap<(usize, u32), Vec<Pattern>>,
    /// Of each thread: whether what is relaxed counts as a release, for the same.
    fenced: Vec<bool>,
    /// How often each thread has arrived.
    arrived: BTreeMap<usize, u32>,
    /// For [`Model::cluster_place`](super::Model): what a cluster's blocks have released to each other.
    places: BTreeMap<usize, Clock>,
}

struct Task {
    step: HostStep,
    /// What the host knew.
    inherits: Clock,
    /// For a wait: the step that recorded the event.
    waits_for: Option<usize>,
}

#[derive(Default)]
struct GraphRun {
    base: Clock,
    nodes: BTreeMap<usize, Clock>,
    end: Clock,
}

/// Releases at an mbarrier.
#[derive(Default)]
struct Arrivals {
    /// Of the phase that is not over.
    present: Vec<Pattern>,
    /// Of those that are.
    over: Vec<Pattern>,
    /// Copies that complete in the present phase, and in earlier ones.
    copies: [Vec<usize>; 2],
}

/// A copy, and where the detector looks at it.
struct CopyState {
    thread: usize,
    pieces: Vec<Place>,
    /// It completes with its group of small copies.
    small: bool,
    /// Nothing but its issue is followed.
    early: Early,
    issue: Option<Point>,
    /// How many accesses there were then.
    issued_at: usize,
    end: Option<Point>,
    ended_at: usize,
    /// Others had observed it by then, and its end says nothing more.
    end_unseen: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Early {
    No,
    Read,
    FarRead,
    Reduction,
}

/// A place in an agent's order, with what it comes after.
struct Point {
    agent: usize,
    seq: u32,
    clock: Rc<Clock>,
}

impl Orders {
    pub(super) fn new(trace: &Trace, first_copy: usize, agents: usize) -> Orders {
        let copies = trace.copies.iter().map(|info| CopyState {
            thread: info.thread,
            pieces: info.copy.pieces(),
            small: info.copy.what == Transfer::Small,
            early: match info.copy.what {
                Transfer::Fetch(Mbarrier { rank: Some(_), .. }) | Transfer::Multicast { .. } => {
                    Early::FarRead
                }
                Transfer::Fetch(_) | Transfer::Small => Early::Read,
                Transfer::Reduce(_) => Early::Reduction,
                Transfer::Put(_) => Early::No,
            },
            issue: None,
            issued_at: 0,
            end: None,
            ended_at: 0,
            end_unseen: false,
        });
        Orders {
            agents,
            first_copy,
            copies: copies.collect(),
            streams: BTreeMap::new(),
            host: vec![0; agents],
            tasks: BTreeMap::new(),
            recorded: BTreeMap::new(),
            last_record: BTreeMap::new(),
            graphs: BTreeMap::new(),
            last: BTreeMap::new(),
            begun: BTreeMap::new(),
            ended: BTreeMap::new(),
            before: BTreeMap::new(),
            waited: BTreeMap::new(),
            handed: BTreeMap::new(),
            let_begin: BTreeSet::new(),
            left: BTreeSet::new(),
            mbarriers: BTreeMap::new(),
            clusters: BTreeMap::new(),
            fenced: trace.threads.iter().map(|t| t.fenced).collect(),
            arrived: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    /// The agent that a copy is.
    pub(super) fn agent_of(&self, copy: usize) -> usize {
        self.first_copy + copy
    }

    fn stream(&mut self, stream: usize) -> &mut Clock {
        let n = self.agents;
        self.streams.entry(stream).or_insert_with(|| vec![0; n])
    }
}

impl Oracle {
    /// A step that this module has the rules for.
    pub(super) fn other_step(&mut self, trace: &Trace, item: &Item) {
        match item {
            Item::Host(step, host) => self.host_step(*step, *host),
            Item::Task(step) => self.task(trace, *step),
            Item::KernelEnd(step) => {
                if let Some(Task {
                    step: HostStep::Launch { kernel, stream },
                    ..
                }) = self.order.tasks.get(step)
                {
                    let (kernel, stream) = (*kernel, *stream);
                    let clock = self.end_of_kernel(trace, kernel);
                    join(self.order.stream(stream), &clock);
                    self.order.ended.insert(kernel, clock);
                }
            }
            Item::Node(step, node) => self.node(trace, *step, *node),
            Item::NodeEnd(step, node) => {
                let Some(kernel) = self.kernel_of_node(trace, *step, *node) else {
                    return;
                };
                let clock = self.end_of_kernel(trace, kernel);
                let run = self.order.graphs.entry(*step).or_default();
                join(&mut run.end, &clock);
                run.nodes.insert(*node, clock);
            }
            Item::GraphEnd(step) => {
                if let (Some(task), Some(run)) =
                    (self.order.tasks.get(step), self.order.graphs.get(step))
                {
                    let (stream, end) = (task.step.stream(), run.end.clone());
                    join(self.order.stream(stream), &end);
                }
            }
            Item::Leave(thread) => {
                self.leave(*thread);
                self.order.left.insert(*thread);
                let block = trace.threads[*thread].global_block;
                let all = trace.threads.iter().enumerate();
                let all = all.filter(|(_, t)| t.global_block == block);
                let all: Vec<usize> = all.map(|(i, _)| i).collect();
                if all.iter().all(|t| self.order.left.contains(t)) {
                    self.let_begin(trace, &all);
                }
            }
            Item::LaunchDependents(thread) => self.let_begin(trace, &[*thread]),
            Item::Issue(copy) => self.issue(*copy),
            Item::Completes(copy, mbarrier) => self.completes(*copy, *mbarrier),
            Item::GroupWait { thread, of, over } => self.group_wait(*thread, *of, over),
            Item::MbarrierArrive {
                thread,
                mbarrier,
                relaxed,
                scope,
            } => {
                let patterns = self.released(*thread, *relaxed, *scope);
                let arrivals = self.order.mbarriers.entry(*mbarrier).or_default();
                arrivals.present.extend(patterns);
                self.release_to_cluster(*thread, *relaxed);
            }
            Item::MbarrierPhase(mbarrier) => {
                let arrivals = self.order.mbarriers.entry(*mbarrier).or_default();
                let present = std::mem::take(&mut arrivals.present);
                arrivals.over.extend(present);
                let copies = std::mem::take(&mut arrivals.copies[0]);
                arrivals.copies[1].extend(copies);
            }
            Item::MbarrierWait {
                thread,
                mbarrier,
                scope,
            } => self.mbarrier_wait(*thread, *mbarrier, *scope),
            Item::ClusterArrive(thread, relaxed) => {
                let phase = self.order.arrived.entry(*thread).or_default();
                *phase += 1;
                let key = (self.clusters_of[*thread], *phase);
                let patterns = self.released(*thread, *relaxed, Scope::Cluster);
                let arrived = self.order.clusters.entry(key).or_default();
                arrived.extend(patterns);
                self.release_to_cluster(*thread, *relaxed);
            }
            Item::ClusterWait(thread) => {
                let phase = self.order.arrived.get(thread).copied().unwrap_or(0);
                let key = (self.clusters_of[*thread], phase);
                let all = self.order.clusters.get(&key).cloned().unwrap_or_default();
                self.acquire_from(*thread, Scope::Cluster, &all);
                self.acquire_from_cluster(*thread);
            }
            Item::Follow(thread) if self.model.any_small_wait => self.any_small_wait(*thread),
            Item::Followed {
                thread,
                mbarrier,
                copies,
            } => {
                let agents = copies.iter().map(|&c| self.order.agent_of(c));
                let patterns = agents.map(|agent| Pattern {
                    thread: *thread,
                    scope: Scope::Cta,
                    place: None,
                    clock: Rc::new(self.agents[agent].clock.clone()),
                });
                let patterns: Vec<Pattern> = patterns.collect();
                let arrivals = self.order.mbarriers.entry(*mbarrier).or_default();
                arrivals.present.extend(patterns);
            }
            Item::GridWait(thread) => {
                let kernel = trace.threads[*thread].kernel;
                let before = self.order.before.get(&kernel);
                if let Some(clock) = before.and_then(|b| self.order.ended.get(b)) {
                    join(&mut self.agents[self.agents_of[*thread]].clock, clock);
                    let when = self.tick(*thread);
                    self.order.waited.entry(kernel).or_default().push(when);
                }
            }
            _ => {}
        }
    }

    /// A block lets dependent launches begin, by the doing of these threads, if it has not before.
    fn let_begin(&mut self, trace: &Trace, threads: &[usize]) {
        let info = trace.threads[threads[0]];
        if !self.order.let_begin.insert(info.global_block) {
            return;
        }
        let waits = self.order.waited.get(&info.kernel);
        let mut waits = waits.into_iter().flatten();
        let knows = |&(agent, seq): &(usize, u32)| {
            let mut clocks = threads
                .iter()
                .map(|&t| &self.agents[self.agents_of[t]].clock);
            clocks.any(|clock| clock[agent] >= seq)
        };
        let before = self.order.before.get(&info.kernel);
        if let (true, Some(clock)) = (
            waits.any(knows),
            before.and_then(|b| self.order.ended.get(b)).cloned(),
        ) {
            let n = self.order.agents;
            let handed = self.order.handed.entry(info.kernel);
            join(handed.or_insert_with(|| vec![0; n]), &clock);
        }
    }

    fn host_step(&mut self, index: usize, step: HostStep) {
        let mut waits_for = None;
        let order = &mut self.order;
        match step {
            HostStep::Record { event, .. } => {
                order.last_record.insert(event, index);
            }
            HostStep::Wait { event, .. } => waits_for = order.last_record.get(&event).copied(),
            HostStep::Synchronize { stream } => {
                let clock = order.stream(stream).clone();
                join(&mut order.host, &clock);
            }
            HostStep::Launch { .. } | HostStep::Graph { .. } => {}
        }
        let inherits = order.host.clone();
        order.tasks.insert(
            index,
            Task {
                step,
                inherits,
                waits_for,
            },
        );
    }

    fn task(&mut self, trace: &Trace, index: usize) {
        let Some(task) = self.order.tasks.get(&index) else {
            return;
        };
        let (step, inherits, waits_for) = (task.step, task.inherits.clone(), task.waits_for);
        if let HostStep::Synchronize { .. } = step {
            return;
        }
        let before = self.order.last.insert(step.stream(), index);
        let before = before.and_then(|b| match self.order.tasks.get(&b)?.step {
            HostStep::Launch { kernel, .. } if !trace.operations.contains(&kernel) => Some(kernel),
            _ => None,
        });
        let stream = self.order.stream(step.stream());
        join(stream, &inherits);
        let mut base = stream.clone();
        match step {
            HostStep::Launch { kernel, .. } => {
                if let (Some(before), Some(true)) = (before, trace.dependent.get(kernel)) {
                    base = inherits;
                    let (begun, handed) = (&self.order.begun, &self.order.handed);
                    for clock in [begun.get(&before), handed.get(&before)]
                        .into_iter()
                        .flatten()
                    {
                        join(&mut base, clock);
                    }
                    self.order.before.insert(kernel, before);
                }
                self.order.begun.insert(kernel, base.clone());
                self.begin_kernel(trace, kernel, &base);
            }
            HostStep::Record { .. } => {
                self.order.recorded.insert(index, base);
            }
            HostStep::Wait { stream, .. } => {
                let recorded = waits_for.and_then(|w| self.order.recorded.get(&w));
                if let Some(clock) = recorded.cloned() {
                    join(self.order.stream(stream), &clock);
                }
            }
            HostStep::Graph { graph, .. } => {
                // Launches of one graph come one after the other.
                for (earlier, run) in self.order.graphs.range(..index) {
                    let other = self.order.tasks.get(earlier).map(|t| t.step);
                    if matches!(other, Some(HostStep::Graph { graph: g, .. }) if g == graph) {
                        join(&mut base, &run.end);
                    }
                }
                let run = GraphRun {
                    end: base.clone(),
                    base,
                    nodes: BTreeMap::new(),
                };
                self.order.graphs.insert(index, run);
            }
            HostStep::Synchronize { .. } => {}
        }
    }

    fn kernel_of_node(&self, trace: &Trace, step: usize, node: usize) -> Option<usize> {
        match self.order.tasks.get(&step)?.step {
            HostStep::Graph { graph, run, .. } => {
                let node = trace.graphs.get(graph)?.nodes.get(node)?;
                node.kernels.get(run).copied()
            }
            _ => None,
        }
    }

    fn node(&mut self, trace: &Trace, step: usize, node: usize) {
        let graph = match self.order.tasks.get(&step).map(|t| t.step) {
            Some(HostStep::Graph { graph, .. }) => trace.graphs.get(graph),
            _ => None,
        };
        let (Some(graph), Some(kernel)) = (graph, self.kernel_of_node(trace, step, node)) else {
            return;
        };
        let run = self.order.graphs.entry(step).or_default();
        let mut base = run.base.clone();
        for before in &graph.nodes[node].after {
            if let Some(clock) = run.nodes.get(before) {
                join(&mut base, clock);
            }
        }
        self.begin_kernel(trace, kernel, &base);
    }

    fn begin_kernel(&mut self, trace: &Trace, kernel: usize, base: &Clock) {
        for (i, thread) in trace.threads.iter().enumerate() {
            if thread.kernel == kernel {
                join(&mut self.agents[self.agents_of[i]].clock, base);
            }
        }
    }

    /// All that a kernel's threads and copies have done and known.
    fn end_of_kernel(&mut self, trace: &Trace, kernel: usize) -> Clock {
        let mut all = vec![0; self.order.agents];
        for (i, thread) in trace.threads.iter().enumerate() {
            if thread.kernel == kernel {
                join(&mut all, &self.agents[self.agents_of[i]].clock);
            }
        }
        for copy in 0..self.order.copies.len() {
            let thread = self.order.copies[copy].thread;
            if trace.threads[thread].kernel == kernel {
                join(&mut all, &self.agents[self.order.agent_of(copy)].clock);
            }
        }
        all
    }

    /// Nothing to the memory model; the detector takes the thread's copies as done.
    fn leave(&mut self, thread: usize) {
        for copy in 0..self.order.copies.len() {
            let state = &self.order.copies[copy];
            if state.thread == thread && state.issue.is_some() {
                self.note_end(copy, thread);
            }
        }
        if self.model.any_small_wait {
            self.any_small_wait(thread);
        }
    }

    /// Who observes with an access, and when, for [`Model::observed_word`](super::Model): a copy's is its issuer.
    pub(super) fn observer(&self, event: &Event) -> (usize, u32) {
        let issue = event
            .access
            .copy
            .and_then(|c| self.order.copies[c].issue.as_ref());
        issue.map_or((event.agent, event.known_as), |p| (p.agent, p.seq))
    }

    /// What an arrival publishes.
    fn released(&mut self, thread: usize, relaxed: bool, scope: Scope) -> Vec<Pattern> {
        let (agent, _) = self.tick(thread);
        let mut patterns = self.agents[agent].fences.clone();
        if !relaxed {
            patterns.push(Pattern {
                thread,
                scope,
                place: None,
                clock: Rc::new(self.agents[agent].clock.clone()),
            });
        }
        patterns
    }

    fn acquire_from(&mut self, thread: usize, scope: Scope, patterns: &[Pattern]) {
        let agent = self.agents_of[thread];
        for pattern in patterns {
            if self.agents_of[pattern.thread] == agent
                || self.scopes_agree((pattern.thread, pattern.scope), (thread, scope))
            {
                join(&mut self.agents[agent].clock, &pattern.clock);
            }
        }
    }

    fn issue(&mut self, copy: usize) {
        let thread = self.order.copies[copy].thread;
        let (agent, mut seq) = self.tick(thread);
        let clock = self.agents[agent].clock.clone();
        if self.model.fence_epoch
            && self.order.copies[copy].early == Early::Reduction
            && let Some(fence) = self.last_fence(agent)
        {
            // As a strong write it belongs to what the fence publishes.
            seq = fence.clock[agent];
        }
        let own = self.order.agent_of(copy);
        join(&mut self.agents[own].clock, &clock);
        if self.model.copy_fences {
            self.agents[own].fences = self.agents[agent].fences.clone();
        }
        self.order.copies[copy].issue = Some(Point {
            agent,
            seq,
            clock: Rc::new(clock),
        });
        self.order.copies[copy].issued_at = self.events.len();
        self.reduction_observes(copy);
        if self.order.copies[copy].early == Early::Read
            || self.order.copies[copy].early == Early::FarRead
        {
            self.release_to_cluster(thread, false);
        }
    }

    /// [`Model::observed_word`](super::Model): what a reduction's words hold counts as observed when it is issued.
    fn reduction_observes(&mut self, copy: usize) {
        let state = &self.order.copies[copy];
        let (Some(issue), true) = (&state.issue, state.early == Early::Reduction) else {
            return;
        };
        let (clock, seq, thread) = (Rc::clone(&issue.clock), issue.seq, state.thread);
        for place in state.pieces.clone() {
            self.piece_observes(copy, place, &clock, (thread, seq));
        }
    }

    fn piece_observes(
        &mut self,
        copy: usize,
        place: Place,
        clock: &Rc<Clock>,
        (thread, seq): (usize, u32),
    ) {
        let mut event = Event {
            id: 0,
            access: Access {
                thread,
                index: 0,
                copy: Some(copy),
                place,
                reads: true,
                writes: true,
                reduction: true,
                attempt: false,
                order: Order::Relaxed,
                scope: Scope::Gpu,
            },
            agent: self.order.agent_of(copy),
            seq,
            known_as: seq,
            clock: Rc::clone(clock),
            before: Rc::clone(clock),
            observes: Vec::new(),
            patterns: Vec::new(),
            reach: Scope::Gpu,
            has_observed: false,
            has_observed_reads: false,
            observer_blocks: Vec::new(),
        };
        self.note_observation(&mut event, &[]);
    }

    /// [`Model::observed_word`](super::Model), where the reduction that counts as observed was issued before and carried out later.
    pub(super) fn observed_since_issue(&self, x: &Event, index: usize, y: &Event) -> bool {
        let issued = y.access.copy.map(|c| self.order.copies[c].issued_at);
        (x.has_observed || x.has_observed_reads)
            && y.access.is_strong()
            && issued.is_some_and(|at| at <= index)
    }

    fn completes(&mut self, copy: usize, mbarrier: usize) {
        let clock = Rc::new(self.agents[self.order.agent_of(copy)].clock.clone());
        let arrivals = self.order.mbarriers.entry(mbarrier).or_default();
        arrivals.copies[0].push(copy);
        arrivals.present.push(Pattern {
            thread: self.order.copies[copy].thread,
            scope: Scope::Cluster,
            place: None,
            clock,
        });
    }

    fn group_wait(&mut self, thread: usize, of: Mechanism, over: &[usize]) {
        let agent = self.agents_of[thread];
        for &copy in over {
            let clock = self.agents[self.order.agent_of(copy)].clock.clone();
            join(&mut self.agents[agent].clock, &clock);
            self.note_end(copy, thread);
        }
        if of == Mechanism::Small && self.model.any_small_wait {
            self.any_small_wait(thread);
        }
    }

    /// [`Model::any_small_wait`](super::Model): whoever has issued a small copy of the thread's block knows that it is over.
    fn any_small_wait(&mut self, thread: usize) {
        for copy in 0..self.order.copies.len() {
            let state = &self.order.copies[copy];
            let issuer = state.thread;
            if state.small
                && state.issue.is_some()
                && self.blocks_of[issuer] == self.blocks_of[thread]
            {
                // Whether or not it is carried out yet.
                let agent = self.agents_of[issuer];
                let own = self.order.agent_of(copy);
                self.agents[agent].clock[own] = u32::MAX;
            }
        }
    }

    fn mbarrier_wait(&mut self, thread: usize, mbarrier: usize, scope: Scope) {
        let Some(arrivals) = self.order.mbarriers.get(&mbarrier) else {
            return;
        };
        let (over, copies) = (arrivals.over.clone(), arrivals.copies[1].clone());
        self.acquire_from(thread, scope, &over);
        self.acquire_from_cluster(thread);
        for copy in copies {
            self.note_end(copy, thread);
        }
    }

    /// The first that the detector learns of a copy's end.
    fn note_end(&mut self, copy: usize, thread: usize) {
        if self.order.copies[copy].end.is_some() {
            return;
        }
        let (agent, seq) = self.tick(thread);
        let clock = Rc::new(self.agents[agent].clock.clone());
        let state = &self.order.copies[copy];
        let words = |p: &Place| p.start() / 4..(p.start() + p.size) / 4;
        let mut words = state.pieces.iter().flat_map(words);
        let others = |o: &Observer| {
            (o.last || o.some) && self.blocks_of[o.thread] != self.blocks_of[state.thread]
        };
        let unseen = state.early == Early::Reduction
            && words.any(|w| {
                self.observers
                    .get(&w)
                    .is_some_and(|list| list.iter().any(others))
            });
        self.order.copies[copy].end_unseen = unseen;
        self.order.copies[copy].ended_at = self.events.len();
        self.order.copies[copy].end = Some(Point { agent, seq, clock });
    }

    /// [`Model::cluster_place`](super::Model): what arrives somewhere in the cluster.
    fn release_to_cluster(&mut self, thread: usize, relaxed: bool) {
        if !self.model.cluster_place || !self.clustered[thread] {
            return;
        }
        let agent = self.agents_of[thread];
        if relaxed && !self.order.fenced[thread] {
            return;
        }
        let clock = self.agents[agent].clock.clone();
        if self.model.hashed_foreign {
            let pattern = Pattern {
                thread,
                scope: Scope::Sys,
                place: None,
                clock: Rc::new(clock.clone()),
            };
            for cell in 0..HASHED {
                self.foreign.entry(cell).or_default().push(pattern.clone());
            }
        }
        let n = self.order.agents;
        let place = self.order.places.entry(self.clusters_of[thread]);
        join(place.or_insert_with(|| vec![0; n]), &clock);
    }

    fn acquire_from_cluster(&mut self, thread: usize) {
        if self.model.cluster_place && self.model.hashed_foreign && self.clustered[thread] {
            for pattern in self.foreign.values().flatten() {
                join(
                    &mut self.agents[self.agents_of[thread]].clock,
                    &pattern.clock,
                );
            }
        }
        if self.model.cluster_place
            && let Some(clock) = self.order.places.get(&self.clusters_of[thread])
        {
            join(&mut self.agents[self.agents_of[thread]].clock, clock);
        }
    }

    /// [`Model::copy_ends`](super::Model): whether two accesses are in order, whichever comes first, where a bulk copy is two.
    pub(super) fn ordered_by_ends(&self, x: &Event, y: &Event) -> bool {
        if x.access.copy.is_none() && y.access.copy.is_none() {
            return false;
        }
        let (a, b) = (self.points(x), self.points(y));
        let ordered = |p: &(usize, u32, &Clock), q: &(usize, u32, &Clock)| {
            p.0 == q.0 || q.2[p.0] >= p.1 || p.2[q.0] >= q.1
        };
        !a.is_empty() && !b.is_empty() && a.iter().all(|p| b.iter().all(|q| ordered(p, q)))
    }

    /// When the detector looks at an access, first and last, in terms of the accesses of which each has two units: a copy is looked at
    /// between accesses.
    pub fn looked_at(&self, event: usize) -> (usize, usize) {
        let own = 2 * event + 1;
        match self.events[event]
            .access
            .copy
            .map(|c| &self.order.copies[c])
        {
            Some(copy) => {
                let end = copy.end.as_ref().map_or(own, |_| 2 * copy.ended_at);
                (2 * copy.issued_at, end)
            }
            None => (own, own),
        }
    }

    /// Where the detector looks at an access: agent, number, what comes before.
    fn points<'a>(&'a self, event: &'a Event) -> Vec<(usize, u32, &'a Clock)> {
        let own = (event.agent, event.known_as, &*event.clock);
        let Some(copy) = event.access.copy else {
            return vec![own];
        };
        let state = &self.order.copies[copy];
        let early = match state.early {
            Early::No => false,
            Early::Read => self.model.early_reads,
            Early::FarRead => self.model.early_copies,
            Early::Reduction => self.model.early_reductions,
        };
        let points = match (&state.issue, &state.end) {
            (Some(issue), _) if early => vec![issue],
            // It is recorded once, and is over when somebody knows.
            _ if state.small => return vec![own],
            (Some(issue), Some(end)) => vec![issue, end],
            // Nobody has waited, and its thread hangs.
            (Some(issue), None) => vec![issue],
            (None, _) => return Vec::new(),
        };
        let seen = points.into_iter().enumerate();
        // Its issue is there in any case.
        let points = seen.filter_map(|(i, p)| (i == 0 || !state.end_unseen).then_some(p));
        let point = |p: &'a Point| (p.agent, p.seq, &*p.clock);
        points.map(point).collect()
    }
}
