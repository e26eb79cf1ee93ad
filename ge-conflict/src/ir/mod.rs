//! The graph: a module of graphs, each an arena of nodes in an order.
//!
//! Nodes live in their graph's arena and are named by [`NodeId`], which stays valid and is never reused. Their order is a
//! linked list through the arena, so that putting a node before another one costs nothing. Edges are kept at both ends:
//! an input knows its producer, an output its consumers in order. Only [`Graph`]'s own methods change edges.

pub mod attr;
pub mod desc;
mod edit;
pub mod kind;
mod sort;
mod validate;

pub use attr::{Attr, Attrs, names};
pub use desc::{Desc, MemType};
pub use edit::{ControlMove, Template};
pub use kind::Kind;
pub use sort::Cycle;
pub use validate::{Defect, DefectCode};

use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A graph of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphId(pub u32);

/// A node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A node of a module.
pub type Place = (GraphId, NodeId);

/// An output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutRef {
    /// The node.
    pub node: NodeId,
    /// Which output.
    pub index: u32,
}

/// An input of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InRef {
    /// The node.
    pub node: NodeId,
    /// Which input.
    pub index: u32,
}

/// What the user asks of the compiler, as far as memory conflicts depend on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The feature map's addresses can be refreshed.
    pub feature_base_refreshable: bool,
    /// Static memory policy; 4: physical memory is mapped anew.
    pub static_memory_policy: i64,
    /// One operator is compiled on its own.
    pub single_op: bool,
    /// Compiled for later use.
    pub offline: bool,
    /// Host and device differ in their processor.
    pub heterogeneous: bool,
    /// Some operators run on the host.
    pub host_exec: bool,
    /// 1: the operators' own tasks clear atomic memory.
    pub atomic_clean_policy: i64,
    /// Which outputs the user lets share with which inputs: `in,out|in,out`.
    pub output_reuse_pairs: String,
    /// Unknown keys of the file, kept for writing.
    pub extra: Extra,
}

/// Keys of a file that mean nothing here; written back as they were.
pub type Extra = Vec<(String, serde_json::Value)>;

/// Which library an operator's kernel comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelLib {
    /// Collective communication.
    Hccl,
    /// A user's own.
    Custom,
    /// Any other, by name.
    Named(String),
}

/// An input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// The name; empty: the default.
    pub name: String,
    /// The producer.
    pub from: Option<OutRef>,
    /// The tensor.
    pub desc: Desc,
    /// Unknown keys.
    pub extra: Extra,
}

/// An output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The name; empty: the default.
    pub name: String,
    /// The consumers, in order.
    pub to: Vec<InRef>,
    /// The tensor.
    pub desc: Desc,
    /// Unknown keys.
    pub extra: Extra,
}

/// An operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in its graph.
    pub name: String,
    /// The type's name.
    pub ty: String,
    /// The type, if passes know it.
    pub kind: Kind,
    /// Place in the topological order; new nodes have none until the next sort.
    pub id: Option<i64>,
    /// The stream, -1: none.
    pub stream: i64,
    /// Where the kernel comes from.
    pub kernel_lib: Option<KernelLib>,
    /// Whether its addresses can be refreshed, where the file says so.
    pub refreshable: Option<bool>,
    /// Attributes.
    pub attrs: Attrs,
    /// Inputs.
    pub inputs: Vec<Input>,
    /// Outputs.
    pub outputs: Vec<Output>,
    /// Nodes that must run before.
    pub control_in: Vec<NodeId>,
    /// Nodes that must run after.
    pub control_out: Vec<NodeId>,
    /// Its subgraphs by index.
    pub subgraphs: Vec<Option<GraphId>>,
    /// Unknown keys.
    pub extra: Extra,
    prev: u32,
    next: u32,
}

/// Where a subgraph hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The graph of the node.
    pub graph: GraphId,
    /// The node.
    pub node: NodeId,
    /// Which of its subgraphs.
    pub index: u32,
}

/// One graph.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Unique in its module.
    pub name: String,
    /// The node it belongs to; `None` for the root.
    pub parent: Option<Parent>,
    /// Its shapes are only known at run time.
    pub unknown_shape: bool,
    /// Attributes.
    pub attrs: Attrs,
    /// Unknown keys.
    pub extra: Extra,
    nodes: Vec<Option<Box<Node>>>,
    by_name: FxHashMap<String, NodeId>,
    /// The next number to try when a name is taken.
    suffixes: FxHashMap<String, u32>,
    head: u32,
    tail: u32,
    live: usize,
}

/// Several graphs, the first of which is the root.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Options.
    pub options: Options,
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// Unknown keys.
    pub extra: Extra,
    /// Model attributes (text dumps have them).
    pub attrs: Attrs,
}

const NONE: u32 = u32::MAX;

impl Node {
    /// A node without edges.
    pub fn new(name: impl Into<String>, ty: impl Into<String>) -> Node {
        let ty = ty.into();
        Node {
            name: name.into(),
            kind: Kind::of(&ty),
            ty,
            id: None,
            stream: 0,
            kernel_lib: None,
            refreshable: None,
            attrs: Attrs::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            control_in: Vec::new(),
            control_out: Vec::new(),
            subgraphs: Vec::new(),
            extra: Extra::new(),
            prev: NONE,
            next: NONE,
        }
    }

    /// An input's name: as given, or what such an operator's input is called.
    pub fn input_name(&self, index: usize) -> Cow<'_, str> {
        match self.inputs.get(index) {
            Some(i) if !i.name.is_empty() => Cow::Borrowed(&i.name),
            _ if self.kind == Kind::Assign => {
                Cow::Borrowed(if index == 0 { "ref" } else { "value" })
            }
            _ => Cow::Owned(format!("x{index}")),
        }
    }

    /// An output's name.
    pub fn output_name(&self, index: usize) -> Cow<'_, str> {
        match self.outputs.get(index) {
            Some(o) if !o.name.is_empty() => Cow::Borrowed(&o.name),
            _ if self.kind == Kind::Assign && index == 0 => Cow::Borrowed("ref"),
            _ => Cow::Owned(format!("y{index}")),
        }
    }

    /// The input that has the same name as output `index`: the operator updates it in place.
    pub fn ref_input_of(&self, index: usize) -> Option<usize> {
        if self.refers_by_place() {
            return (index < self.inputs.len() && index < self.outputs.len()).then_some(index);
        }
        let name = self.reference_name(
            self.outputs.get(index).map(|o| o.name.as_str())?,
            index == 0,
        )?;
        (0..self.inputs.len())
            .find(|i| self.reference_name(&self.inputs[*i].name, *i == 0) == Some(name))
    }

    /// The output that has the same name as input `index`.
    pub fn ref_output_of(&self, index: usize) -> Option<usize> {
        if self.refers_by_place() {
            return (index < self.inputs.len() && index < self.outputs.len()).then_some(index);
        }
        let name =
            self.reference_name(self.inputs.get(index).map(|i| i.name.as_str())?, index == 0)?;
        (0..self.outputs.len())
            .find(|o| self.reference_name(&self.outputs[*o].name, *o == 0) == Some(name))
    }

    /// A node that is marked as referring to its inputs, but whose anchors have no names: output k is input k.
    fn refers_by_place(&self) -> bool {
        self.kind != Kind::Assign
            && self.attrs.flag(names::REFERENCE)
            && self.inputs.iter().all(|i| i.name.is_empty())
            && self.outputs.iter().all(|o| o.name.is_empty())
    }

    /// The name under which references are found: default names of inputs and outputs never meet, except an Assign's.
    fn reference_name<'a>(&self, given: &'a str, first: bool) -> Option<&'a str> {
        match given {
            "" if self.kind == Kind::Assign && first => Some("ref"),
            "" => None,
            name => Some(name),
        }
    }

    /// Whether it comes from the collective communication library.
    pub fn is_hccl(&self) -> bool {
        self.kernel_lib == Some(KernelLib::Hccl)
    }

    /// Memory of an input: the node's list of special types has precedence over the tensor.
    pub fn input_mem(&self, index: usize) -> MemType {
        self.mem(
            names::IN_MEM_TYPE,
            index,
            self.inputs.get(index).map(|i| i.desc.mem_type),
        )
    }

    /// Memory of an output.
    pub fn output_mem(&self, index: usize) -> MemType {
        self.mem(
            names::OUT_MEM_TYPE,
            index,
            self.outputs.get(index).map(|o| o.desc.mem_type),
        )
    }

    fn mem(&self, list: &str, index: usize, tensor: Option<MemType>) -> MemType {
        match self.attrs.get(list) {
            None => tensor.unwrap_or(MemType::DEFAULT),
            Some(_) => {
                let listed = self.attrs.ints(list).and_then(|l| l.get(index).copied());
                match listed.and_then(|m| u32::try_from(m).ok()) {
                    Some(m) => MemType(m),
                    None => tensor.unwrap_or(MemType::DEFAULT),
                }
            }
        }
    }

    /// Consumers of all outputs together.
    pub fn consumers(&self) -> usize {
        self.outputs.iter().map(|o| o.to.len()).sum()
    }

    /// The parent's input that a subgraph's Data stands for.
    pub fn parent_index(&self) -> Option<i64> {
        self.attrs.int(names::PARENT_INDEX)
    }

    /// The parent's output that input `index` of a subgraph's NetOutput stands for.
    pub fn parent_output(&self, index: usize) -> i64 {
        self.inputs
            .get(index)
            .and_then(|i| i.desc.attrs.int(names::PARENT_INDEX))
            .unwrap_or(index as i64)
    }
}

impl Graph {
    /// A graph without nodes.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph {
            name: name.into(),
            parent: None,
            unknown_shape: false,
            attrs: Attrs::default(),
            extra: Extra::new(),
            nodes: Vec::new(),
            by_name: FxHashMap::default(),
            suffixes: FxHashMap::default(),
            head: NONE,
            tail: NONE,
            live: 0,
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Length of the arena: one more than the largest id that was ever given out.
    pub fn capacity(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes in order.
    pub fn ids(&self) -> Ids<'_> {
        Ids {
            graph: self,
            at: self.head,
        }
    }

    /// The nodes in order, collected: for loops that change the graph.
    pub fn id_list(&self) -> Vec<NodeId> {
        self.ids().collect()
    }

    /// Nodes with their ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.ids().map(|id| (id, self.node(id)))
    }

    /// A node. Ids come from this graph, so the node is there unless it was removed; then an empty one stands in.
    pub fn node(&self, id: NodeId) -> &Node {
        match self.nodes.get(id.0 as usize) {
            Some(Some(n)) => n,
            _ => removed(),
        }
    }

    /// A node, if it is still there.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)?.as_deref()
    }

    /// A node, to change its attributes or tensors (edges only through the graph's methods).
    pub fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The producer of an input.
    pub fn producer(&self, at: InRef) -> Option<OutRef> {
        self.get(at.node)?.inputs.get(at.index as usize)?.from
    }

    /// The consumers of an output.
    pub fn consumers(&self, at: OutRef) -> &[InRef] {
        self.get(at.node)
            .and_then(|n| n.outputs.get(at.index as usize))
            .map_or(&[], |o| &o.to)
    }

    /// The first node of a kind.
    pub fn first_of(&self, kind: Kind) -> Option<NodeId> {
        self.iter().find(|(_, n)| n.kind == kind).map(|(id, _)| id)
    }

    /// Whether its shapes are only known at run time.
    pub fn is_unknown(&self) -> bool {
        self.unknown_shape
            || self.attrs.flag(names::IS_UNKNOWN_SHAPE)
            || self.attrs.flag("_graph_unknown_flag")
    }

    /// Whether its memory is planned at run time.
    pub fn is_dynamic(&self) -> bool {
        self.is_unknown() || self.attrs.flag(names::DYNAMIC_PARTITIONED)
    }
}

/// Stands in for a removed node.
fn removed() -> &'static Node {
    use std::sync::OnceLock;
    static GONE: OnceLock<Node> = OnceLock::new();
    GONE.get_or_init(|| Node::new("", ""))
}

/// Iterator over a graph's nodes in order.
pub struct Ids<'a> {
    graph: &'a Graph,
    at: u32,
}

impl Iterator for Ids<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let id = NodeId(self.at);
        self.at = self.graph.get(id)?.next;
        Some(id)
    }
}

impl Module {
    /// A graph of this module.
    pub fn graph(&self, id: GraphId) -> &Graph {
        &self.graphs[id.0 as usize]
    }

    /// A graph of this module, to be changed.
    pub fn graph_mut(&mut self, id: GraphId) -> &mut Graph {
        &mut self.graphs[id.0 as usize]
    }

    /// The root.
    pub fn root(&self) -> Option<GraphId> {
        if self.graphs.is_empty() {
            None
        } else {
            Some(GraphId(0))
        }
    }

    /// The graph of that name.
    pub fn find_graph(&self, name: &str) -> Option<GraphId> {
        self.graphs
            .iter()
            .position(|g| g.name == name)
            .map(|i| GraphId(i as u32))
    }

    /// All graphs, in the file's order.
    pub fn graph_ids(&self) -> impl Iterator<Item = GraphId> + use<> {
        (0..self.graphs.len() as u32).map(GraphId)
    }

    /// A node.
    pub fn node(&self, at: Place) -> &Node {
        self.graph(at.0).node(at.1)
    }

    /// The node that a graph belongs to.
    pub fn parent_node(&self, graph: GraphId) -> Option<(Parent, &Node)> {
        let p = self.graph(graph).parent?;
        Some((p, self.graph(p.graph).get(p.node)?))
    }

    /// A graph and everything inside it, depth first: each graph before those of its nodes.
    pub fn family(&self, top: GraphId) -> Vec<GraphId> {
        let mut out = Vec::new();
        let mut todo = vec![top];
        let mut seen = vec![false; self.graphs.len()];
        while let Some(g) = todo.pop() {
            if std::mem::replace(&mut seen[g.0 as usize], true) {
                continue;
            }
            out.push(g);
            let mut below: Vec<GraphId> = self
                .graph(g)
                .iter()
                .flat_map(|(_, n)| n.subgraphs.iter().flatten().copied())
                .collect();
            below.reverse();
            todo.extend(below);
        }
        out
    }

    /// The Data of `graph` that stands for its parent's input `index`.
    pub fn data_of_input(&self, graph: GraphId, index: u32) -> impl Iterator<Item = NodeId> + '_ {
        self.graph(graph)
            .iter()
            .filter(move |(_, n)| n.kind.is_data() && n.parent_index() == Some(i64::from(index)))
            .map(|(id, _)| id)
    }

    /// What an anchor is called in messages: `node.in.0`.
    pub fn in_name(&self, graph: GraphId, at: InRef) -> String {
        format!("{}.in.{}", self.graph(graph).node(at.node).name, at.index)
    }

    /// What an anchor is called in messages: `node.out.0`.
    pub fn out_name(&self, graph: GraphId, at: OutRef) -> String {
        format!("{}.out.{}", self.graph(graph).node(at.node).name, at.index)
    }
}
