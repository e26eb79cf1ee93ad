//! Runs every topological order of a small flat graph on real buffers.

use ge_conflict::ir::{Graph, InRef, NodeId, names};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A node's input (`true`) or output.
pub type Anchor = (NodeId, bool, u32);

/// Orders tried per graph.
const MAX_ORDERS: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    Empty,
    /// What an operator's output wrote.
    Value(NodeId, u32),
    /// What a collective left in its input.
    Garbage(NodeId),
}

/// Classes of anchors that share memory in one flat graph: a plain closure over edges and references.
pub fn buffers(g: &Graph) -> HashMap<Anchor, usize> {
    let mut of: BTreeMap<Anchor, usize> = BTreeMap::new();
    for (id, n) in g.iter() {
        for i in 0..n.inputs.len() as u32 {
            of.insert((id, true, i), of.len());
        }
        for o in 0..n.outputs.len() as u32 {
            of.insert((id, false, o), of.len());
        }
    }
    let mut links = Vec::new();
    for (id, n) in g.iter() {
        for (i, x) in n.inputs.iter().enumerate() {
            if let Some(f) = x.from {
                links.push(((f.node, false, f.index), (id, true, i as u32)));
            }
        }
        for (o, out) in n.outputs.iter().enumerate() {
            for (i, input) in n.inputs.iter().enumerate() {
                let named = !out.name.is_empty()
                    && out.name == input.name
                    && n.attrs.flag(names::REFERENCE);
                let view = n.ty == "Reshape" && o == 0 && i == 0;
                let reuse = out.desc.reuse_input == Some(i as u32);
                let gapless = n.attrs.flag("_output_reuse_input") && i == 0;
                if named || view || reuse || gapless {
                    links.push(((id, true, i as u32), (id, false, o as u32)));
                }
            }
        }
    }
    loop {
        let mut changed = false;
        for (a, b) in &links {
            let low = of[a].min(of[b]);
            for k in [a, b] {
                if of[k] != low {
                    of.insert(*k, low);
                    changed = true;
                }
            }
        }
        if !changed {
            return of.into_iter().collect();
        }
    }
}

pub struct Run<'a> {
    g: &'a Graph,
    buffer: HashMap<Anchor, usize>,
    nodes: Vec<NodeId>,
    after: HashMap<NodeId, BTreeSet<NodeId>>,
    /// Everything that certainly runs before, a bit each.
    before: HashMap<NodeId, Vec<u64>>,
    pub orders: usize,
    pub reads: usize,
    pub wrong: Option<String>,
    /// The rule of the specification by which a wrong read is none of the pipeline's business, if there is one.
    excuse: Option<Excuse<'a>>,
    /// How often each rule excused a read.
    pub excused: BTreeMap<&'static str, usize>,
}

pub type Excuse<'a> = &'a dyn Fn(&Wrong) -> Option<&'static str>;

/// A read that finds a wrong value.
#[derive(Debug)]
pub struct Wrong {
    /// The names of the reader, of what should be there, and of who left what is there.
    pub reader: String,
    pub input: u32,
    pub expected: String,
    pub culprit: Option<String>,
    /// Whether the culprit wrote it for its own use.
    pub scratch: bool,
}

impl<'a> Run<'a> {
    pub fn new(g: &'a Graph) -> Run<'a> {
        Run::with(g, buffers(g))
    }

    /// With memory that was worked out elsewhere.
    pub fn with(g: &'a Graph, buffer: HashMap<Anchor, usize>) -> Run<'a> {
        let nodes: Vec<NodeId> = g.ids().collect();
        let mut after: HashMap<NodeId, BTreeSet<NodeId>> = HashMap::new();
        for (id, n) in g.iter() {
            let set = after.entry(id).or_default();
            set.extend(n.inputs.iter().filter_map(|i| i.from.map(|f| f.node)));
            set.extend(n.control_in.iter().copied());
            // The order of ids on a stream, where a pass relies on it.
            for (i, x) in n.inputs.iter().enumerate() {
                let by_id = n.attrs.flag(names::SKIP_RW)
                    || n.outputs
                        .iter()
                        .any(|o| o.desc.reuse_input == Some(i as u32));
                if let (true, Some(from)) = (by_id, x.from) {
                    let mine = buffer[&(from.node, false, from.index)];
                    let users = buffer
                        .iter()
                        .filter(|(k, b)| k.1 && **b == mine)
                        .map(|(k, _)| k.0);
                    set.extend(users.filter(|c| g.node(*c).id < n.id));
                }
            }
        }
        let words = g.capacity().div_ceil(64);
        let mut before: HashMap<NodeId, Vec<u64>> = HashMap::new();
        for id in &nodes {
            let mut all = vec![0; words];
            for p in &after[id] {
                all[p.0 as usize / 64] |= 1 << (p.0 % 64);
                for (a, b) in all.iter_mut().zip(before.get(p).into_iter().flatten()) {
                    *a |= b;
                }
            }
            before.insert(*id, all);
        }
        Run {
            g,
            buffer,
            nodes,
            after,
            before,
            orders: 0,
            reads: 0,
            wrong: None,
            excuse: None,
            excused: BTreeMap::new(),
        }
    }

    /// Wrong reads that a rule of the specification explains are only counted.
    pub fn excusing(mut self, excuse: Excuse<'a>) -> Run<'a> {
        self.excuse = Some(excuse);
        self
    }

    /// Runs random orders: for graphs that have too many to run them all.
    pub fn sample(&mut self, rng: &mut super::Rng, orders: usize) {
        let mut next: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for (n, before) in &self.after {
            for p in before {
                next.entry(*p).or_default().push(*n);
            }
        }
        for _ in 0..orders {
            let mut memory = BTreeMap::new();
            let mut waits: HashMap<NodeId, usize> =
                self.after.iter().map(|(n, b)| (*n, b.len())).collect();
            let free = |n: &&NodeId| self.after[*n].is_empty();
            let mut ready: BTreeSet<NodeId> = self.nodes.iter().filter(free).copied().collect();
            let mut ran = 0;
            while self.wrong.is_none()
                && let Some(id) = ready.iter().nth(rng.below(ready.len())).copied()
            {
                ready.remove(&id);
                self.step(id, &mut memory);
                ran += 1;
                for n in next.get(&id).into_iter().flatten() {
                    if let Some(w) = waits.get_mut(n) {
                        *w -= 1;
                        if *w == 0 {
                            ready.insert(*n);
                        }
                    }
                }
            }
            assert!(
                ran == self.nodes.len() || self.wrong.is_some(),
                "the order by ids and edges has a cycle"
            );
            self.orders += 1;
        }
    }

    fn ready(&self, done: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let ready: Vec<NodeId> = self
            .nodes
            .iter()
            .copied()
            .filter(|n| !done.contains(n) && self.after[n].iter().all(|p| done.contains(p)))
            .collect();
        assert!(!ready.is_empty(), "the order by ids and edges has a cycle");
        ready
    }

    fn ordered(&self, a: NodeId, b: NodeId) -> bool {
        self.before[&b][a.0 as usize / 64] & 1 << (a.0 % 64) != 0
    }

    fn writes_in_place(&self, id: NodeId, index: usize) -> bool {
        let n = self.g.node(id);
        !n.inputs[index].name.is_empty() && n.outputs.iter().any(|o| o.name == n.inputs[index].name)
    }

    fn writes_for_itself(&self, id: NodeId) -> bool {
        let n = self.g.node(id);
        n.attrs.flag(names::INPUT_MUTABLE)
            || n.attrs.int("_special_input_size").is_some_and(|s| s > 0)
    }

    /// Operators that write a buffer after its producer.
    fn writers(&self, buffer: usize) -> Vec<NodeId> {
        let writes = |id: &NodeId| {
            let n = self.g.node(*id);
            (0..n.inputs.len()).any(|i| {
                self.buffer[&(*id, true, i as u32)] == buffer
                    && (self.writes_in_place(*id, i)
                        || self.writes_for_itself(*id)
                        || n.outputs
                            .iter()
                            .any(|o| o.desc.reuse_input == Some(i as u32)))
            })
        };
        self.nodes.iter().copied().filter(writes).collect()
    }

    fn check_read(&mut self, id: NodeId, index: u32, found: Content) {
        let Some(mut from) = self.g.producer(InRef { node: id, index }) else {
            return;
        };
        self.reads += 1;
        // A view hands on what it got.
        while let n = self.g.node(from.node)
            && (n.ty == "Reshape" || n.attrs.flag("_output_reuse_input"))
            && self.buffer[&(from.node, true, 0)] == self.buffer[&(from.node, false, from.index)]
            && let Some(up) = n.inputs[0].from
        {
            from = up;
        }
        let buffer = self.buffer[&(id, true, index)];
        let fine = match found {
            Content::Value(n, o) if (n, o) == (from.node, from.index) => true,
            // Views hand on what they got.
            Content::Value(w, o) => {
                let n = self.g.node(w);
                let view = n.ty == "Reshape" || n.attrs.flag("_output_reuse_input");
                let in_place = n.outputs.get(o as usize).is_some_and(|x| {
                    n.inputs
                        .iter()
                        .any(|i| !x.name.is_empty() && i.name == x.name)
                });
                view || (in_place && self.ordered(w, id)) || self.ordered(id, w) || from.node == w
            }
            _ => false,
        };
        if fine {
            return;
        }
        // A pair without an order may see anything.
        let unordered = self
            .writers(buffer)
            .into_iter()
            .any(|w| w != id && w != from.node && !self.ordered(w, id) && !self.ordered(id, w));
        if !unordered && self.wrong.is_none() {
            let name = |n: NodeId| self.g.node(n).name.clone();
            let (culprit, who) = match found {
                Content::Empty => (None, "nothing".to_owned()),
                Content::Value(n, o) => (Some(n), format!("what {}:{o} wrote", name(n))),
                Content::Garbage(n) => (Some(n), format!("what {} left there", name(n))),
            };
            let wrong = Wrong {
                reader: name(id),
                input: index,
                expected: format!("{}:{}", name(from.node), from.index),
                culprit: culprit.map(name),
                scratch: matches!(found, Content::Garbage(_)),
            };
            if let Some(rule) = self.excuse.and_then(|e| e(&wrong)) {
                *self.excused.entry(rule).or_default() += 1;
                return;
            }
            self.wrong = Some(format!(
                "{}.in.{index} reads {} but finds {who}",
                wrong.reader, wrong.expected
            ));
        }
    }

    pub fn explore(&mut self, done: &mut BTreeSet<NodeId>, memory: &mut BTreeMap<usize, Content>) {
        if self.orders >= MAX_ORDERS || self.wrong.is_some() {
            return;
        }
        if done.len() == self.nodes.len() {
            self.orders += 1;
            return;
        }
        for id in self.ready(done) {
            let saved = memory.clone();
            self.step(id, memory);
            done.insert(id);
            self.explore(done, memory);
            done.remove(&id);
            *memory = saved;
        }
    }

    /// Runs one operator.
    fn step(&mut self, id: NodeId, memory: &mut BTreeMap<usize, Content>) {
        let n = self.g.node(id);
        let (ins, outs) = (n.inputs.len() as u32, n.outputs.len() as u32);
        // A view reads nothing itself: who reads the view does.
        let view = n.ty == "Reshape" || n.attrs.flag("_output_reuse_input");
        for i in (0..ins).filter(|i| !view || *i > 0) {
            let content = memory
                .get(&self.buffer[&(id, true, i)])
                .copied()
                .unwrap_or(Content::Empty);
            self.check_read(id, i, content);
        }
        if self.writes_for_itself(id) {
            for i in 0..ins {
                memory.insert(self.buffer[&(id, true, i)], Content::Garbage(id));
            }
        }
        for o in 0..outs {
            let b = self.buffer[&(id, false, o)];
            // A view writes nothing.
            if !(view && (0..ins).any(|i| self.buffer[&(id, true, i)] == b)) {
                memory.insert(b, Content::Value(id, o));
            }
        }
    }
}
