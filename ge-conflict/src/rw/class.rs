//! Classes of outputs and inputs, and the matrix.

use crate::ir::{GraphId, InRef, Kind, Module, NodeId, OutRef, names};
use rustc_hash::FxHashMap;
use std::fmt;

/// What may happen to an output's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutClass {
    /// A constant.
    Const,
    /// Several consumers read it.
    ReadOnly,
    /// One consumer: what it does with it is its own affair.
    SoftRead,
    /// Memory that is meant to be written: a variable, a graph's input, an operator's updated input.
    Writeable,
    /// Can't be told.
    Invalid,
}

/// What an operator does to an input's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InClass {
    /// Reads.
    ReadOnly,
    /// Writes, and others are meant to see it.
    Writeable,
    /// Writes for its own use.
    ScopeWrite,
    /// Both kinds of writing at once.
    Invalid,
}

/// What a pair asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing.
    Nothing,
    /// A copy.
    Insert,
    /// The graph makes no sense.
    WrongGraph,
}

impl fmt::Display for OutClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutClass::Const => "a constant",
            OutClass::ReadOnly => "an output that several operators take in",
            OutClass::SoftRead => "an output that only one operator takes in (directly)",
            OutClass::Writeable => "memory that operators may update in place (a variable, an input of the whole graph, or an output that is its operator's input)",
            OutClass::Invalid => "memory whose owner can't be told",
        })
    }
}

impl fmt::Display for InClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InClass::ReadOnly => "only reads it",
            InClass::Writeable => "updates it in place",
            InClass::ScopeWrite => "overwrites it for its own use",
            InClass::Invalid => "both updates it in place and overwrites it for its own use",
        })
    }
}

/// The decision matrix.
pub fn verdict(out: OutClass, input: InClass) -> Verdict {
    use {InClass as I, OutClass as O};
    match (out, input) {
        (O::Invalid, _) | (_, I::Invalid) => Verdict::WrongGraph,
        (_, I::ReadOnly) | (O::SoftRead, _) => Verdict::Nothing,
        (O::Const, _) => Verdict::Insert,
        (O::ReadOnly | O::Writeable, I::Writeable) => Verdict::Nothing,
        (O::ReadOnly | O::Writeable, I::ScopeWrite) => Verdict::Insert,
    }
}

impl InClass {
    /// What two consumers of one subgraph input amount to.
    pub fn merge(self, other: InClass) -> InClass {
        use InClass as I;
        match (self, other) {
            (a, b) if a == b => a,
            (I::ReadOnly, x) | (x, I::ReadOnly) => x,
            _ => I::Invalid,
        }
    }
}

/// Classes of a family of graphs. Subgraphs' inputs are settled once, from the innermost graph outwards; the rest is worked
/// out when asked, from the graph as it is then.
#[derive(Debug, Default)]
pub struct Classes {
    /// By subgraph and parent's input.
    inner: FxHashMap<(GraphId, i64), InClass>,
}

impl Classes {
    /// For a family of graphs; [`Classes::settle`] comes next, innermost graph first.
    pub fn new(_module: &Module, _family: &[GraphId]) -> Classes {
        Classes::default()
    }

    /// Settles a subgraph's inputs.
    pub fn settle(&mut self, module: &Module, g: GraphId) {
        let graph = module.graph(g);
        let Some((_, parent)) = module.parent_node(g) else {
            return;
        };
        if parent.kind == Kind::While {
            return;
        }
        for (_, n) in graph.iter().filter(|(_, n)| n.kind.is_data()) {
            let Some(index) = n.parent_index() else {
                continue;
            };
            let mut class = InClass::ReadOnly;
            for c in n.outputs.iter().flat_map(|o| &o.to) {
                class = class.merge(self.input(module, g, *c));
            }
            let entry = self.inner.entry((g, index)).or_insert(class);
            *entry = entry.merge(class);
        }
    }

    /// What an operator does to its input.
    pub fn input(&self, module: &Module, g: GraphId, at: InRef) -> InClass {
        let node = module.graph(g).node(at.node);
        let index = at.index as usize;
        if node.kind == Kind::While || overwrites(node, index) {
            return InClass::ScopeWrite;
        }
        if matches!(node.kind, Kind::PhonyConcat | Kind::PhonySplit) {
            return InClass::ReadOnly;
        }
        if !node.subgraphs.is_empty() {
            let inner = |s: GraphId| {
                self.inner
                    .get(&(s, i64::from(at.index)))
                    .copied()
                    .unwrap_or(InClass::ReadOnly)
            };
            return node
                .subgraphs
                .iter()
                .flatten()
                .fold(InClass::ReadOnly, |c, s| c.merge(inner(*s)));
        }
        if node.ref_output_of(index).is_some() || (node.kind == Kind::RefSwitch && index == 0) {
            return InClass::Writeable;
        }
        InClass::ReadOnly
    }

    /// What may happen to an output's memory.
    ///
    /// A subgraph's Data and a called graph's result stand for another output: the walk follows them to the one that owns
    /// the memory. On the way, more than one consumer makes an unwritten value shared.
    pub fn output(&self, module: &Module, g: GraphId, out: OutRef) -> OutClass {
        let (mut g, mut out) = (g, out);
        let mut shared = false;
        // Each step goes to an earlier node or outwards; the bound only covers broken input.
        for _ in 0..=4096 {
            let graph = module.graph(g);
            let node = graph.node(out.node);
            let many = graph.consumers(out).len() > 1;
            match step(module, g, node, out) {
                Step::Class(class) => return settle_class(class, shared, many),
                Step::At(next_g, next, calls) => {
                    shared |= calls && many;
                    (g, out) = (next_g, next);
                }
            }
        }
        OutClass::SoftRead
    }
}

enum Step {
    /// Known; `None` if it depends on the number of consumers.
    Class(Option<OutClass>),
    /// The same memory as that output; true if a call lies between.
    At(GraphId, OutRef, bool),
}

fn settle_class(class: Option<OutClass>, shared: bool, many: bool) -> OutClass {
    match class {
        Some(OutClass::SoftRead) if shared => OutClass::ReadOnly,
        Some(c) => c,
        None if many || shared => OutClass::ReadOnly,
        None => OutClass::SoftRead,
    }
}

fn step(module: &Module, g: GraphId, node: &crate::ir::Node, out: OutRef) -> Step {
    let class = |c| Step::Class(Some(c));
    match node.kind {
        Kind::While => return class(OutClass::SoftRead),
        k if k.is_var_like() => return class(OutClass::Writeable),
        k if k.is_data() => {
            let Some((p, parent)) = module.parent_node(g) else {
                return class(OutClass::Writeable);
            };
            let source = node
                .parent_index()
                .and_then(|i| usize::try_from(i).ok())
                .and_then(|i| parent.inputs.get(i))
                .and_then(|i| i.from);
            return source.map_or(class(OutClass::Invalid), |from| {
                Step::At(p.graph, from, false)
            });
        }
        Kind::RefSwitch => return class(OutClass::Writeable),
        k if k.is_const() => return class(OutClass::Const),
        _ => {}
    }
    if !node.subgraphs.is_empty() {
        let mut graphs = node.subgraphs.iter().flatten();
        if let (Some(only), None) = (graphs.next(), graphs.next())
            && let Some(from) = result(module, *only, out.index)
        {
            return Step::At(*only, from, true);
        }
        return Step::Class(None);
    }
    if node.ref_input_of(out.index as usize).is_some() {
        return class(OutClass::Writeable);
    }
    // A view without a copy (a reshape, a concatenation in place) is its input's memory.
    let view = crate::layout::symbols::alias_input(node, out.index as usize);
    if let Some(from) = view.and_then(|i| node.inputs[i].from) {
        return Step::At(g, from, true);
    }
    Step::Class(None)
}

/// What a subgraph hands out as its parent's output `index`.
pub(crate) fn result(module: &Module, g: GraphId, index: u32) -> Option<OutRef> {
    let graph = module.graph(g);
    let out: NodeId = graph.first_of(Kind::NetOutput)?;
    let node = graph.node(out);
    let k = (0..node.inputs.len()).find(|k| node.parent_output(*k) == i64::from(index))?;
    node.inputs[k].from
}

/// Whether an operator uses an input as scratch space.
pub(crate) fn overwrites(node: &crate::ir::Node, index: usize) -> bool {
    is_special(node, index) || node.attrs.flag(names::INPUT_MUTABLE)
}

fn is_special(node: &crate::ir::Node, index: usize) -> bool {
    let own = node
        .inputs
        .get(index)
        .and_then(|i| i.desc.attrs.int(names::SPECIAL_INPUT));
    own.or_else(|| node.attrs.int(names::SPECIAL_INPUT))
        .is_some_and(|s| s > 0)
}
