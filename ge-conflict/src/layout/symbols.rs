//! Which anchors share memory: a graph and everything inside it, its anchors numbered densely, and their classes.

use crate::ir::{GraphId, InRef, Kind, Module, Node, NodeId, OutRef, Place, names};
use rustc_hash::FxHashMap;

/// An input or output, by its dense number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnchorId(pub u32);

/// Where an anchor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Anchor {
    /// The graph.
    pub graph: GraphId,
    /// The node.
    pub node: NodeId,
    /// Which input or output.
    pub index: u32,
    /// Whether it is an input.
    pub input: bool,
}

/// The anchors of a graph and everything inside it.
#[derive(Debug)]
pub struct Space {
    /// The graphs, the outermost first.
    pub graphs: Vec<GraphId>,
    anchors: Vec<Anchor>,
    /// By graph: by node: its first input; its outputs follow its inputs.
    first: Vec<Vec<u32>>,
}

const ABSENT: u32 = u32::MAX;

impl Space {
    /// Numbers the anchors.
    pub fn new(module: &Module, top: GraphId) -> Space {
        let graphs = module.family(top);
        let mut anchors = Vec::new();
        let mut first = vec![Vec::new(); module.graphs.len()];
        for g in &graphs {
            let graph = module.graph(*g);
            let mut table = vec![ABSENT; graph.capacity()];
            for (id, n) in graph.iter() {
                table[id.0 as usize] = anchors.len() as u32;
                let make = |index, input| Anchor {
                    graph: *g,
                    node: id,
                    index,
                    input,
                };
                anchors.extend((0..n.inputs.len() as u32).map(|i| make(i, true)));
                anchors.extend((0..n.outputs.len() as u32).map(|o| make(o, false)));
            }
            first[g.0 as usize] = table;
        }
        Space {
            graphs,
            anchors,
            first,
        }
    }

    /// Number of anchors.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// All of them.
    pub fn ids(&self) -> impl Iterator<Item = AnchorId> + use<> {
        (0..self.anchors.len() as u32).map(AnchorId)
    }

    /// Where an anchor is.
    pub fn at(&self, id: AnchorId) -> Anchor {
        self.anchors[id.0 as usize]
    }

    fn first(&self, g: GraphId, node: NodeId) -> Option<u32> {
        self.first
            .get(g.0 as usize)?
            .get(node.0 as usize)
            .copied()
            .filter(|f| *f != ABSENT)
    }

    /// The number of an input that exists.
    pub fn input(&self, g: GraphId, at: InRef) -> Option<AnchorId> {
        let id = self.first(g, at.node)? + at.index;
        let a = self.anchors.get(id as usize)?;
        (a.node == at.node && a.input && a.graph == g).then_some(AnchorId(id))
    }

    /// The number of an output that exists.
    pub fn output(&self, module: &Module, g: GraphId, at: OutRef) -> Option<AnchorId> {
        let id =
            self.first(g, at.node)? + module.graph(g).node(at.node).inputs.len() as u32 + at.index;
        let a = self.anchors.get(id as usize)?;
        (a.node == at.node && !a.input && a.graph == g).then_some(AnchorId(id))
    }

    /// An anchor's name as messages have it.
    pub fn name(&self, module: &Module, id: AnchorId) -> String {
        let a = self.at(id);
        if a.input {
            module.in_name(a.graph, a.in_ref())
        } else {
            module.out_name(a.graph, a.out_ref())
        }
    }

    /// GE's own name for an anchor: `<node>_in_<i>` or `<node>_out_<i>`.
    pub fn key(&self, module: &Module, id: AnchorId) -> String {
        let a = self.at(id);
        let side = if a.input { "in" } else { "out" };
        format!("{}_{side}_{}", module.node((a.graph, a.node)).name, a.index)
    }
}

impl Anchor {
    /// The node.
    pub fn place(self) -> Place {
        (self.graph, self.node)
    }

    /// As an input.
    pub fn in_ref(self) -> InRef {
        InRef {
            node: self.node,
            index: self.index,
        }
    }

    /// As an output.
    pub fn out_ref(self) -> OutRef {
        OutRef {
            node: self.node,
            index: self.index,
        }
    }
}

/// The input whose memory output `out` of this operator shares.
pub fn alias_input(node: &Node, out: usize) -> Option<usize> {
    let has = |i: usize| (i < node.inputs.len()).then_some(i);
    if node.kind == Kind::Reshape && out == 0 {
        return has(0);
    }
    if node.attrs.flag(names::REFERENCE)
        && let Some(i) = node.ref_input_of(out)
    {
        return Some(i);
    }
    if let Some(i) = node.outputs.get(out).and_then(|o| o.desc.reuse_input) {
        return has(i as usize);
    }
    reuses_without_padding(node).then(|| has(0)).flatten()
}

/// Joins its outputs to its first input without a gap: a concatenation or split that copies nothing.
fn reuses_without_padding(node: &Node) -> bool {
    if !node.attrs.flag(names::NPCI) && !node.attrs.flag(names::NPCO) {
        return false;
    }
    match node.attrs.get(names::OUTPUT_REUSE_INPUT) {
        Some(a) => a.is_true(),
        None => matches!(node.kind, Kind::PhonyConcat | Kind::PhonySplit),
    }
}

/// Classes of anchors that share memory.
#[derive(Debug)]
pub struct Symbols {
    class: Vec<u32>,
    /// Members by class, in the order of their numbers.
    members: Vec<Vec<AnchorId>>,
}

struct Joined(Vec<u32>);

impl Joined {
    fn find(&mut self, mut a: u32) -> u32 {
        while self.0[a as usize] != a {
            self.0[a as usize] = self.0[self.0[a as usize] as usize];
            a = self.0[a as usize];
        }
        a
    }

    fn join(&mut self, a: Option<AnchorId>, b: Option<AnchorId>) {
        let (Some(a), Some(b)) = (a, b) else { return };
        let (a, b) = (self.find(a.0), self.find(b.0));
        // The smaller number wins: the classes do not depend on the order of the joins.
        self.0[a.max(b) as usize] = a.min(b);
    }
}

impl Symbols {
    /// Joins what shares memory.
    pub fn new(module: &Module, space: &Space) -> Symbols {
        let mut j = Joined((0..space.len() as u32).collect());
        let ref_data = ref_data_by_name(module, space);
        for g in &space.graphs {
            let graph = module.graph(*g);
            for (id, n) in graph.iter() {
                let input = |i: usize| {
                    space.input(
                        *g,
                        InRef {
                            node: id,
                            index: i as u32,
                        },
                    )
                };
                let output = |o: usize| {
                    space.output(
                        module,
                        *g,
                        OutRef {
                            node: id,
                            index: o as u32,
                        },
                    )
                };
                for (i, x) in n.inputs.iter().enumerate() {
                    if let Some(from) = x.from {
                        j.join(space.output(module, *g, from), input(i));
                    }
                }
                for (o, x) in n.outputs.iter().enumerate() {
                    if matches!(n.kind, Kind::NetOutput | Kind::While) {
                        j.join(input(o), output(o));
                    } else if let Some(i) = alias_input(n, o) {
                        j.join(input(i), output(o));
                    }
                    if let Some(var) = x.desc.attrs.str(names::REF_VAR) {
                        j.join(ref_data.get(var).copied(), output(o));
                    }
                }
                if matches!(n.kind, Kind::Merge | Kind::StreamMerge) {
                    for i in 0..n.inputs.len() {
                        j.join(input(i), output(0));
                        j.join(input(i), input(0));
                    }
                }
                join_with_parent(module, space, *g, id, n, &mut j);
            }
        }
        Symbols::collect(j)
    }

    fn collect(mut j: Joined) -> Symbols {
        let mut class = vec![0; j.0.len()];
        let mut number = vec![ABSENT; j.0.len()];
        let mut members: Vec<Vec<AnchorId>> = Vec::new();
        for a in 0..j.0.len() as u32 {
            let root = j.find(a) as usize;
            if number[root] == ABSENT {
                number[root] = members.len() as u32;
                members.push(Vec::new());
            }
            class[a as usize] = number[root];
            members[number[root] as usize].push(AnchorId(a));
        }
        Symbols { class, members }
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The class of an anchor.
    pub fn of(&self, id: AnchorId) -> u32 {
        self.class[id.0 as usize]
    }

    /// Whether two anchors share memory.
    pub fn same(&self, a: AnchorId, b: AnchorId) -> bool {
        self.of(a) == self.of(b)
    }

    /// A class's anchors.
    pub fn members(&self, class: u32) -> &[AnchorId] {
        &self.members[class as usize]
    }

    /// Makes two classes one; returns the one that stays.
    pub fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        // The larger list stays, of equal ones the second.
        let (keep, go) = if self.members[a as usize].len() > self.members[b as usize].len() {
            (a, b)
        } else {
            (b, a)
        };
        let gone = std::mem::take(&mut self.members[go as usize]);
        for m in &gone {
            self.class[m.0 as usize] = keep;
        }
        self.members[keep as usize].extend(gone);
        keep
    }

    /// The classes that have anchors.
    pub fn classes(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.members.len() as u32).filter(|c| !self.members[*c as usize].is_empty())
    }
}

/// The updated inputs by name; the outermost graph's come first.
fn ref_data_by_name<'m>(module: &'m Module, space: &Space) -> FxHashMap<&'m str, AnchorId> {
    let mut map = FxHashMap::default();
    for g in &space.graphs {
        for (id, n) in module
            .graph(*g)
            .iter()
            .filter(|(_, n)| n.kind == Kind::RefData)
        {
            if let Some(a) = space.output(module, *g, OutRef { node: id, index: 0 }) {
                map.entry(n.name.as_str()).or_insert(a);
            }
        }
    }
    map
}

/// A subgraph's inputs are its parent's inputs, its results its parent's outputs.
fn join_with_parent(
    module: &Module,
    space: &Space,
    g: GraphId,
    id: NodeId,
    n: &Node,
    j: &mut Joined,
) {
    if g == space.graphs[0] {
        return;
    }
    let Some((p, parent)) = module.parent_node(g) else {
        return;
    };
    if n.kind.is_data() {
        if let Some(i) = n.parent_index().and_then(|i| u32::try_from(i).ok()) {
            let outer = space.input(
                p.graph,
                InRef {
                    node: p.node,
                    index: i,
                },
            );
            for o in 0..n.outputs.len() as u32 {
                j.join(
                    outer,
                    space.output(module, g, OutRef { node: id, index: o }),
                );
            }
        }
    } else if n.kind == Kind::NetOutput && !(parent.kind == Kind::While && p.index == 0) {
        for k in 0..n.inputs.len() {
            let Ok(o) = u32::try_from(n.parent_output(k)) else {
                continue;
            };
            let outer = space.output(
                module,
                p.graph,
                OutRef {
                    node: p.node,
                    index: o,
                },
            );
            j.join(
                outer,
                space.input(
                    g,
                    InRef {
                        node: id,
                        index: k as u32,
                    },
                ),
            );
        }
    }
}
