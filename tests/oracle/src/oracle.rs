//! The oracle: who happens before whom under the PTX memory model, slowly and in full.
//!
//! Written from the ISA's chapter "Memory consistency model"; nothing here is shared with the detector. A trace fixes
//! what the model leaves to run time: which write each read reads from, and the order of the `fence.sc`s.
//!
//! * **Base causality** is program order, barriers (whoever has arrived before whoever waited), mbarriers and clusters' barriers likewise, kernel boundaries, events, graphs' edges, host synchronisation, the order of
//!   `fence.sc`s whose scopes include each other, and release patterns synchronising with acquire patterns, closed
//!   transitively: a vector clock per thread, with a component per thread.
//! * A **release pattern** is a release operation, or an earlier release operation on the same location or an earlier
//!   release fence followed by a strong write. An **acquire pattern** is an acquire operation, or a strong read followed
//!   by an acquire operation on the same location or by an acquire fence. They synchronise if the write precedes the read in
//!   observation order, and the first operation of the one and the last of the other are morally strong.
//! * An **asynchronous copy** is an agent of its own. What its thread has done before it issues it, it comes after; it comes before
//!   what a thread does that has waited for its end (see the module `order`).
//! * **Observation**: a read observes a write that it reads from if the two are morally strong, and, through a
//!   read-modify-write that it observes, whatever that observed.
//! * **Causality** of two overlapping accesses: base causality, or the earlier one is observed by something that precedes
//!   the later one in base causality. (Not by a `red`, whose result nobody sees: it only continues a release sequence.)
//! * **Morally strong**: the same thread, or both strong with scopes that include each other; memory operations have to
//!   overlap completely.
//! * A **race**: two overlapping accesses of different threads, at least one a write, not both morally strong, not in
//!   causality order.
//!
//! [`Model`] can weaken each rule to what the detector is documented to approximate: that is how misses are explained.

mod order;

use crate::program::{Place, Space};
use crate::trace::{Access, Item, Trace};
use gsan_device::layout::{Order, Scope};
use order::Orders;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Which rules hold. [`Model::PTX`] is the memory model; every other setting adds order or removes conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// `fence.sc`s synchronise with each other in their order.
    pub sc_fences: bool,
    /// Cluster scope reaches the whole device where a launch has clusters.
    pub cluster_is_device: bool,
    /// A block's threads are one thread.
    pub blocks: bool,
    /// Widths don't matter: strong accesses that share a word overlap "completely".
    pub any_width: bool,
    /// A release sequence goes on through any read-modify-write, for the widest scope in it.
    pub any_chain: bool,
    /// A strong store carries the release that it overwrites on.
    pub kept_release: bool,
    /// With [`Model::kept_release`], so does a weak store.
    pub weak_keeps: bool,
    /// A compare-and-swap that fails publishes what it would have released.
    pub failed_cas: bool,
    /// A strong write after a release fence counts as part of what the fence publishes, and so does what was acquired since.
    pub fence_epoch: bool,
    /// An acquire operation acquires all that its thread has read, wherever.
    pub any_pending: bool,
    /// A strong read of a word orders all earlier strong accesses to it before the reader's block, not only the writes that it
    /// observed.
    pub observed_word: bool,
    /// With [`Model::observed_word`], whether or not there was a write to observe.
    pub any_read_observes: bool,
    /// Synchronisation through words that are themselves raced on doesn't count: see [`Oracle::without_raced`].
    pub distrust: bool,
    /// In memory without shadow, a location is a clock that only grows, shared by whoever hashes to it.
    pub hashed_foreign: bool,
    /// A cluster's barrier, flags and mbarriers in shared memory are one place that its blocks release and acquire at.
    pub cluster_place: bool,
    /// A bulk copy is two accesses of who issues it and of who first knows of its end, when each of them does.
    pub copy_ends: bool,
    /// With [`Model::copy_ends`], of those that read and that nobody's wait is followed of, it is the issue alone: those that complete
    /// on another block's mbarrier.
    pub early_copies: bool,
    /// The same of all that read.
    pub early_reads: bool,
    /// The same of reductions.
    pub early_reductions: bool,
    /// A wait for a block's small copies by whomever, in whatever group, ends all of the block's.
    pub any_small_wait: bool,
    /// A reduction by the copy engine publishes what a release fence of its issuer did.
    pub copy_fences: bool,
}

impl Model {
    /// The memory model.
    pub const PTX: Model = Model {
        sc_fences: true,
        cluster_is_device: false,
        blocks: false,
        any_width: false,
        any_chain: false,
        kept_release: false,
        weak_keeps: false,
        failed_cas: false,
        fence_epoch: false,
        any_pending: false,
        observed_word: false,
        any_read_observes: false,
        distrust: false,
        hashed_foreign: false,
        cluster_place: false,
        copy_ends: false,
        early_copies: false,
        early_reads: false,
        early_reductions: false,
        any_small_wait: false,
        copy_fences: false,
    };
}

/// What one thread (or agent) knows of each.
type Clock = Vec<u32>;

fn join(into: &mut Clock, from: &Clock) {
    for (a, b) in into.iter_mut().zip(from) {
        *a = (*a).max(*b);
    }
}

/// The first operation of a release pattern.
#[derive(Clone, Debug)]
struct Pattern {
    thread: usize,
    scope: Scope,
    /// `None` for a fence.
    place: Option<Place>,
    /// All that precedes it, itself included.
    clock: Rc<Clock>,
}

/// An access with what the oracle knows of it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The number in the trace.
    pub id: usize,
    /// The access.
    pub access: Access,
    agent: usize,
    /// Its number among the agent's events.
    seq: u32,
    /// The number that others have to know (smaller under [`Model::fence_epoch`]).
    known_as: u32,
    /// What precedes it, its own acquisitions included.
    clock: Rc<Clock>,
    /// What precedes it without its own acquisitions: as if it had run when its hook did.
    before: Rc<Clock>,
    /// Writes that it observes.
    observes: Vec<usize>,
    /// What acquires it acquires.
    patterns: Vec<Pattern>,
    /// Its own scope, or the widest in its release sequence.
    reach: Scope,
    /// For [`Model::observed_word`]: it may touch what its word's strong accesses left.
    has_observed: bool,
    /// The same for reads, and for writes that have been overwritten.
    has_observed_reads: bool,
    /// The blocks of who has observed the word before, in a thread that happens before: their writes at block scope count, too.
    observer_blocks: Vec<usize>,
}

/// For [`Model::observed_word`]: a reader of a word.
struct Observer {
    agent: usize,
    thread: usize,
    /// Its last read.
    seq: u32,
    /// It has observed the last write.
    last: bool,
    /// It has observed some write.
    some: bool,
}

struct Agent {
    clock: Clock,
    fences: Vec<Pattern>,
    releases: Vec<Pattern>,
    /// Read, but not yet acquired: where, and how far the read reaches.
    pending: Vec<(Place, Pattern)>,
}

/// The oracle's view of a trace.
pub struct Oracle {
    model: Model,
    agents_of: Vec<usize>,
    blocks_of: Vec<usize>,
    clusters_of: Vec<usize>,
    clustered: Vec<bool>,
    agents: Vec<Agent>,
    /// Every access, in the trace's order.
    pub events: Vec<Event>,
    /// Last writer per byte (per word under [`Model::any_width`]).
    writer: BTreeMap<u32, usize>,
    /// For [`Model::observed_word`]: per word, who has observed it and when they read it last.
    observers: BTreeMap<u32, Vec<Observer>>,
    foreign: BTreeMap<u32, Vec<Pattern>>,
    sc_fences: Vec<Pattern>,
    /// Threads between a `fence.sc` and its hook.
    hooked: BTreeSet<usize>,
    /// What those who have arrived at a barrier know, until it is complete.
    barriers: BTreeMap<(usize, u32), Clock>,
    raced: Vec<u32>,
    order: Orders,
}

/// Two accesses that race, by index in [`Oracle::events`], the earlier first.
pub type Pair = (usize, usize);

impl Oracle {
    /// Goes through a trace.
    pub fn new(trace: &Trace, model: Model) -> Oracle {
        Self::with(trace, model, Vec::new())
    }

    /// The memory model, but for what is ordered by way of words on which there is a race: once a flag is raced on, its
    /// cell may have lost the release.
    pub fn without_raced(&self, trace: &Trace, sc_fences: bool) -> Oracle {
        let words = self.pairs().into_iter().flat_map(|(x, y)| {
            [x, y].into_iter().flat_map(|e| {
                let p = self.events[e].access.place;
                p.start() / 4..=(p.start() + p.size - 1) / 4
            })
        });
        let model = Model {
            sc_fences,
            distrust: true,
            ..self.model
        };
        Self::with(trace, model, words.collect())
    }

    fn with(trace: &Trace, model: Model, raced: Vec<u32>) -> Oracle {
        let agents_of: Vec<usize> = (trace.threads.iter().enumerate())
            .map(|(i, t)| if model.blocks { t.global_block } else { i })
            .collect();
        let first_copy = agents_of.iter().max().map_or(0, |&m| m + 1);
        let count = first_copy + trace.copies.len();
        let zero = || vec![0; count];
        let mut oracle = Oracle {
            model,
            agents_of,
            blocks_of: trace.threads.iter().map(|t| t.global_block).collect(),
            clusters_of: trace.threads.iter().map(|t| t.cluster).collect(),
            clustered: trace.threads.iter().map(|t| t.clustered).collect(),
            agents: (0..count)
                .map(|_| Agent {
                    clock: zero(),
                    fences: Vec::new(),
                    releases: Vec::new(),
                    pending: Vec::new(),
                })
                .collect(),
            events: Vec::new(),
            writer: BTreeMap::new(),
            observers: BTreeMap::new(),
            foreign: BTreeMap::new(),
            sc_fences: Vec::new(),
            hooked: BTreeSet::new(),
            barriers: BTreeMap::new(),
            raced,
            order: Orders::new(trace, first_copy, count),
        };
        for item in &trace.items {
            oracle.step(trace, item);
        }
        oracle
    }

    fn step(&mut self, trace: &Trace, item: &Item) {
        match item {
            Item::Access(id, access) => self.access(*id, *access),
            Item::ScHook(thread, scope) => {
                self.hooked.insert(*thread);
                self.fence(*thread, Order::Sc, *scope);
            }
            Item::Fence(thread, order, scope) => {
                // Its hook has done it; where threads count as one, others may have done something since.
                if !self.hooked.remove(thread) || self.model.blocks {
                    self.fence(*thread, *order, *scope);
                }
            }
            Item::Arrive(thread, id) => {
                let clock = &self.agents[self.agents_of[*thread]].clock;
                let block = self.blocks_of[*thread];
                let all = self.barriers.entry((block, *id));
                join(all.or_insert_with(|| vec![0; clock.len()]), clock);
            }
            Item::Barrier { block, id, waiters } => {
                let all = self.barriers.remove(&(*block, *id)).unwrap_or_default();
                for &t in waiters {
                    let agent = self.agents_of[t];
                    join(&mut self.agents[agent].clock, &all);
                }
            }
            _ => self.other_step(trace, item),
        }
    }

    /// The next number of the thread's agent.
    fn tick(&mut self, thread: usize) -> (usize, u32) {
        let agent = self.agents_of[thread];
        (agent, self.tick_agent(agent))
    }

    fn tick_agent(&mut self, agent: usize) -> u32 {
        let clock = &mut self.agents[agent].clock;
        clock[agent] += 1;
        clock[agent]
    }

    /// Whose access it is: a copy is nobody else's.
    fn agent_of(&self, access: &Access) -> usize {
        match access.copy {
            Some(copy) => self.order.agent_of(copy),
            None => self.agents_of[access.thread],
        }
    }

    fn includes(&self, scope: Scope, of: usize, thread: usize) -> bool {
        match scope {
            Scope::None => false,
            Scope::Cta => self.blocks_of[of] == self.blocks_of[thread],
            Scope::Cluster => {
                self.clusters_of[of] == self.clusters_of[thread]
                    || self.model.cluster_is_device
                        && (self.clustered[of] || self.clustered[thread])
            }
            Scope::Gpu | Scope::Sys => true,
        }
    }

    fn scopes_agree(&self, a: (usize, Scope), b: (usize, Scope)) -> bool {
        self.includes(a.1, a.0, b.0) && self.includes(b.1, b.0, a.0)
    }

    fn same_place(&self, a: Place, b: Place) -> bool {
        a == b || self.model.any_width && a.shares_word(b)
    }

    /// Whether two memory operations are morally strong.
    fn morally_strong(&self, a: &Access, b: &Access) -> bool {
        self.same_place(a.place, b.place)
            && (self.agent_of(a) == self.agent_of(b)
                || self.scopes_agree((a.thread, a.scope), (b.thread, b.scope)))
    }

    /// Whether a release pattern's first operation and an acquire pattern's last one are morally strong.
    fn meet(&self, first: &Pattern, last: (usize, Scope, Option<Place>)) -> bool {
        if let (Some(a), Some(b)) = (first.place, last.2)
            && !self.same_place(a, b)
        {
            return false;
        }
        if self.model.any_chain {
            // The width of the chain's scopes has been looked at on the way.
            return first.scope > Scope::Cta && last.1 > Scope::Cta
                || self.agents_of[first.thread] == self.agents_of[last.0];
        }
        self.agents_of[first.thread] == self.agents_of[last.0]
            || self.scopes_agree((first.thread, first.scope), (last.0, last.1))
    }

    fn keys(&self, place: Place) -> impl Iterator<Item = u32> + use<> {
        let step = if self.model.any_width { 4 } else { 1 };
        let first = place.start() / step;
        first..=(place.start() + place.size - 1) / step
    }

    /// Whether a fence reaches beyond its block. (Of cluster scope: where there are clusters.)
    fn leaves_the_block(&self, fence: &Pattern) -> bool {
        fence.scope > Scope::Cluster
            || fence.scope == Scope::Cluster && self.clustered[fence.thread]
    }

    fn last_fence(&self, agent: usize) -> Option<&Pattern> {
        let fences = &self.agents[agent].fences;
        fences.iter().rfind(|f| self.leaves_the_block(f))
    }

    fn access(&mut self, id: usize, access: Access) {
        let agent = self.agent_of(&access);
        let before = Rc::new(self.agents[agent].clock.clone());
        let seq = self.tick_agent(agent);
        let index = self.events.len();
        let words = access.place.start() / 4..=(access.place.start() + access.place.size - 1) / 4;
        let trusted = !self.model.distrust || !self.raced.iter().any(|w| words.contains(w));
        let mut sources: Vec<usize> = self
            .keys(access.place)
            .filter_map(|k| self.writer.get(&k).copied())
            .collect();
        sources.sort_unstable();
        sources.dedup();
        let mut event = Event {
            id,
            access,
            agent,
            seq,
            known_as: seq,
            clock: Rc::clone(&before),
            before,
            observes: Vec::new(),
            patterns: Vec::new(),
            reach: access.scope,
            has_observed: false,
            has_observed_reads: false,
            observer_blocks: Vec::new(),
        };
        let foreign = self.model.hashed_foreign && access.place.space == Space::Foreign;
        if !trusted {
            // It neither observes nor carries anything.
        } else if access.reads && access.is_strong() {
            let found = self.observe(&mut event, &sources);
            let found = if foreign {
                self.in_foreign(access.place)
            } else {
                found
            };
            self.acquire(&event, found);
        } else if access.reads {
            // A weak read observes writes of its own thread only.
            self.observe(&mut event, &sources);
        }
        if access.writes || self.model.failed_cas && access.attempt {
            self.publish(&mut event, &sources);
            if foreign {
                for word in hashed(access.place) {
                    let kept = self.foreign.entry(word).or_default();
                    kept.extend(event.patterns.iter().cloned());
                }
            }
            for key in self.keys(access.place) {
                self.writer.insert(key, index);
            }
        }
        self.note_observation(&mut event, &sources);
        event.clock = Rc::new(self.agents[agent].clock.clone());
        self.events.push(event);
    }

    /// Notes what the access observes; returns the release patterns on the way.
    fn observe(&self, event: &mut Event, sources: &[usize]) -> Vec<Pattern> {
        let mut found = Vec::new();
        for &w in sources {
            let write = &self.events[w];
            let reached = if self.model.any_chain {
                self.same_place(write.access.place, event.access.place)
                    && (write.agent == event.agent
                        || self.scopes_agree(
                            (write.access.thread, write.reach),
                            (event.access.thread, event.access.scope),
                        ))
            } else {
                self.morally_strong(&write.access, &event.access)
            };
            let writes = event.access.writes || self.model.failed_cas && event.access.attempt;
            let continues = self.model.any_chain && event.access.reads && writes;
            if reached || continues {
                event.patterns.extend(write.patterns.iter().cloned());
            }
            if reached {
                found.extend(write.patterns.iter().cloned());
                event.observes.push(w);
                if write.access.reads {
                    event.observes.extend(&write.observes);
                }
            }
        }
        event.observes.sort_unstable();
        event.observes.dedup();
        found
    }

    fn in_foreign(&self, place: Place) -> Vec<Pattern> {
        hashed(place)
            .filter_map(|w| self.foreign.get(&w))
            .flatten()
            .cloned()
            .collect()
    }

    fn acquire(&mut self, event: &Event, found: Vec<Pattern>) {
        let access = event.access;
        if access.reduction {
            return;
        }
        let agent = event.agent;
        if access.order.acquires() {
            let last = (access.thread, access.scope, Some(access.place));
            let mut usable: Vec<Rc<Clock>> = Vec::new();
            for pattern in &found {
                if self.meet(pattern, last) {
                    usable.push(Rc::clone(&pattern.clock));
                }
            }
            // A strong read of the location, then this.
            for (place, pattern) in &self.agents[agent].pending {
                let here = self.same_place(*place, access.place) && self.meet(pattern, last);
                let fence = (access.thread, access.scope, None);
                if here || self.model.any_pending && self.meet(pattern, fence) {
                    usable.push(Rc::clone(&pattern.clock));
                }
            }
            for clock in usable {
                join(&mut self.agents[agent].clock, &clock);
            }
        }
        let pending = &mut self.agents[agent].pending;
        for pattern in found {
            let known = pending.iter().any(|(p, q)| {
                *p == access.place
                    && Rc::ptr_eq(&q.clock, &pattern.clock)
                    && q.scope == pattern.scope
            });
            if !known {
                pending.push((access.place, pattern));
            }
        }
    }

    /// What a write offers to whoever observes it. Its `patterns` hold what it continues, if it is a read-modify-write.
    fn publish(&mut self, event: &mut Event, sources: &[usize]) {
        let access = event.access;
        if !access.reads {
            event.patterns.clear();
        }
        if !access.is_strong() {
            if self.model.kept_release && self.model.weak_keeps {
                for write in sources.iter().map(|&s| &self.events[s]) {
                    event.patterns.extend(write.patterns.iter().cloned());
                    event.reach = event.reach.max(write.reach);
                }
            }
            return;
        }
        let sources: Vec<&Event> = sources.iter().map(|&s| &self.events[s]).collect();
        if self.model.any_chain && access.reads {
            for write in &sources {
                if !write.patterns.is_empty() {
                    event.reach = event.reach.max(write.reach);
                }
            }
        }
        if self.model.kept_release && !access.reads {
            for write in &sources {
                if !write.patterns.is_empty() {
                    event.patterns.extend(write.patterns.iter().cloned());
                    event.reach = event.reach.max(write.reach);
                }
            }
        }
        if self.model.any_chain && access.scope <= Scope::Cta {
            return;
        }
        let agent = &self.agents[event.agent];
        if self.model.fence_epoch
            && !access.order.releases()
            && access.copy.is_none()
            && let Some(fence) = self.last_fence(event.agent)
        {
            event.known_as = fence.clock[event.agent];
        }
        for fence in &agent.fences {
            let mut pattern = fence.clone();
            if self.model.fence_epoch {
                let mut clock = agent.clock.clone();
                let fencing = self.agents_of[fence.thread];
                clock[fencing] = fence.clock[fencing];
                pattern.clock = Rc::new(clock);
            }
            event.patterns.push(pattern);
        }
        event.patterns.extend(
            agent
                .releases
                .iter()
                .filter(|r| r.place == Some(access.place))
                .cloned(),
        );
        if access.order.releases() {
            let pattern = Pattern {
                thread: access.thread,
                scope: access.scope,
                place: Some(access.place),
                clock: Rc::new(agent.clock.clone()),
            };
            event.patterns.push(pattern.clone());
            let releases = &mut self.agents[event.agent].releases;
            releases.retain(|r| r.place != pattern.place || r.scope != pattern.scope);
            releases.push(pattern);
        }
    }

    fn fence(&mut self, thread: usize, order: Order, scope: Scope) {
        let (agent, _) = self.tick(thread);
        if order.acquires() {
            let usable: Vec<Rc<Clock>> = (self.agents[agent].pending.iter())
                .filter(|(_, p)| self.meet(p, (thread, scope, None)))
                .map(|(_, p)| Rc::clone(&p.clock))
                .collect();
            for clock in usable {
                join(&mut self.agents[agent].clock, &clock);
            }
        }
        if order == Order::Sc && self.model.sc_fences {
            let earlier: Vec<Rc<Clock>> = (self.sc_fences.iter())
                .filter(|f| self.scopes_agree((f.thread, f.scope), (thread, scope)))
                .map(|f| Rc::clone(&f.clock))
                .collect();
            for clock in earlier {
                join(&mut self.agents[agent].clock, &clock);
            }
        }
        let pattern = Pattern {
            thread,
            scope,
            place: None,
            clock: Rc::new(self.agents[agent].clock.clone()),
        };
        if order == Order::Sc {
            self.sc_fences.push(pattern.clone());
        }
        if order.releases() {
            // A later fence of that scope publishes all that an earlier one did.
            let fences = &mut self.agents[agent].fences;
            fences.retain(|f| f.scope != scope);
            fences.push(pattern);
        }
    }

    /// [`Model::observed_word`]: what a cell can remember of who has observed its word.
    fn note_observation(&mut self, event: &mut Event, sources: &[usize]) {
        if !self.model.observed_word {
            return;
        }
        let access = event.access;
        let (first, last) = (
            access.place.start() / 4,
            (access.place.start() + access.place.size - 1) / 4,
        );
        let (agent, seq) = self.observer(event);
        let others_wrote = (sources.iter()).any(|&w| self.observer(&self.events[w]).0 != agent);
        let clock = self.agents[event.agent].clock.clone();
        let mut known = (first..=last)
            .filter_map(|w| self.observers.get(&w))
            .flatten()
            .filter(|o| clock[o.agent] >= o.seq);
        event.observer_blocks = (known.clone())
            .filter(|o| o.last || o.some)
            .map(|o| self.blocks_of[o.thread])
            .collect();
        event.has_observed = known.clone().any(|o| o.last);
        event.has_observed_reads = known.any(|o| o.some);
        for word in first..=last {
            let list = self.observers.entry(word).or_default();
            if access.reads || self.model.any_read_observes {
                match list.iter_mut().find(|o| o.thread == access.thread) {
                    Some(o) => o.seq = seq,
                    None => list.push(Observer {
                        agent,
                        thread: access.thread,
                        seq,
                        last: false,
                        some: false,
                    }),
                }
            }
            let own = |o: &Observer| o.agent == agent;
            if access.writes {
                // Where somebody had observed something, its writer stays marked as well.
                let any = self.model.any_read_observes && list.iter().any(|o| o.last || o.some);
                for o in list {
                    o.last = own(o) && access.reads;
                    o.some |= o.last || any;
                }
            } else if access.is_strong() && (others_wrote || self.model.any_read_observes) {
                for o in list.iter_mut().filter(|o| own(o)) {
                    (o.last, o.some) = (true, true);
                }
            }
        }
    }

    /// Whether the two accesses (the earlier first) are in causality order.
    pub fn ordered(&self, earlier: usize, later: usize) -> bool {
        let (x, y) = (&self.events[earlier], &self.events[later]);
        self.ordered_by(x, earlier, y, &y.clock)
    }

    /// The same, had the later one run before it acquired anything itself.
    pub fn ordered_before_acquiring(&self, earlier: usize, later: usize) -> bool {
        let (x, y) = (&self.events[earlier], &self.events[later]);
        self.ordered_by(x, earlier, y, &y.before)
    }

    fn ordered_by(&self, x: &Event, earlier: usize, y: &Event, clock: &Clock) -> bool {
        if x.agent == y.agent || clock[x.agent] >= x.known_as {
            return true;
        }
        if self.model.copy_ends && self.ordered_by_ends(x, y) {
            return true;
        }
        if self.model.observed_word
            && (y.has_observed || y.has_observed_reads)
            && x.access.is_strong()
            && self.includes(x.access.scope, x.access.thread, y.access.thread)
        {
            return true;
        }
        if self.model.observed_word
            && x.access.writes
            && x.access.is_strong()
            && y.observer_blocks.contains(&self.blocks_of[x.access.thread])
        {
            return true;
        }
        if self.model.observed_word && self.observed_since_issue(x, earlier, y) {
            return true;
        }
        x.access.writes
            && self.events.iter().any(|z| {
                !z.access.reduction
                    && z.observes.binary_search(&earlier).is_ok()
                    && z.known_as_before(y, clock)
            })
    }

    /// Whether the two accesses conflict and are not both morally strong.
    pub fn conflict(&self, earlier: usize, later: usize) -> bool {
        let (x, y) = (&self.events[earlier].access, &self.events[later].access);
        x.place.overlaps(y.place)
            && (x.writes || y.writes)
            && self.agent_of(x) != self.agent_of(y)
            && !self.morally_strong(x, y)
    }

    /// Whether the two accesses race.
    pub fn races(&self, earlier: usize, later: usize) -> bool {
        self.conflict(earlier, later) && !self.ordered(earlier, later)
    }

    /// All pairs that race.
    pub fn pairs(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for later in 0..self.events.len() {
            for earlier in 0..later {
                if self.races(earlier, later) {
                    pairs.push((earlier, later));
                }
            }
        }
        pairs
    }
}

impl Event {
    fn known_as_before(&self, later: &Event, clock: &Clock) -> bool {
        if self.agent == later.agent {
            self.seq < later.seq
        } else {
            clock[self.agent] >= self.seq
        }
    }
}

/// Clocks of the hashed table.
const HASHED: u32 = 16;

/// The clocks of the hashed table that a place without shadow uses.
fn hashed(place: Place) -> impl Iterator<Item = u32> {
    let (first, last) = (place.offset / 4, (place.offset + place.size - 1) / 4);
    (first..=last).map(|w| {
        let word = crate::setup::FOREIGN_BASE / 4 + u64::from(w);
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 & (HASHED - 1)
    })
}
