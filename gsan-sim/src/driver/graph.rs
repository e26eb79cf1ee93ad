//! Graphs of work: nodes, which only their edges order. `graph_node` makes nodes, `graph_exec` runs graphs, `capture` makes
//! graphs of what streams are given.
//!
//! What a node does is what an operation of a stream does ([`Work`]), kept until the graph is launched; each launch puts a copy
//! of it into the queue.

use super::api::{In, Out, Text, driver_api};
use super::capture::Capture;
use super::codes::{Answer, Code};
use super::graph_exec::Exec;
use super::launch::Launch;
use super::queue::Work;
use super::state::{Driver, Handle};
use std::collections::{BTreeMap, HashMap};

/// All graphs of the process.
#[derive(Default)]
pub(super) struct Graphs {
    pub(super) graphs: HashMap<Handle, Graph>,
    /// Which graph a node is in.
    pub(super) owners: HashMap<Handle, Handle>,
    /// Those that can be launched.
    pub(super) execs: HashMap<Handle, Exec>,
    /// Graphs in the making from what streams are given, in the order in which that began.
    pub(super) captures: BTreeMap<Handle, Capture>,
}

/// A graph: its nodes, in the order in which they were added.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// It is another graph's node, and goes with that.
    embedded: bool,
}

/// A node.
pub(super) struct Node {
    pub(super) handle: Handle,
    /// Whose work it is.
    pub(super) context: Handle,
    pub(super) work: NodeWork,
    /// The nodes before it.
    pub(super) after: Vec<Edge>,
}

/// What a node does.
#[derive(Clone)]
pub(super) enum NodeWork {
    Kernel(Launch),
    /// A copy, a fill, a host function, a write to or a wait for a word; joining nothing is doing nothing.
    Work(Work),
    Record(Handle),
    Wait(Handle),
    /// Another graph, which is this node's own.
    Child(Handle),
}

/// An edge, from where it comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: Handle,
    pub(super) data: EdgeData,
}

impl Edge {
    /// The node before has ended.
    pub(super) fn full(from: Handle) -> Edge {
        Edge {
            from,
            data: EdgeData::default(),
        }
    }

    /// The kernel before has let its dependents start.
    pub(super) fn programmatic(from: Handle) -> Edge {
        let data = EdgeData {
            from_port: EdgeData::PROGRAMMATIC,
            to_port: 0,
            kind: EdgeData::PROGRAMMATIC,
            reserved: [0; 5],
        };
        Edge { from, data }
    }
}

/// `CUgraphEdgeData`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct EdgeData {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

const _: () = assert!(size_of::<EdgeData>() == 8);

impl EdgeData {
    /// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC` and `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
    const PROGRAMMATIC: u8 = 1;
    /// `CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER`: the kernel before has started.
    const LAUNCH_ORDER: u8 = 2;

    pub(super) fn is_programmatic(self) -> bool {
        self.from_port != 0
    }

    fn is_known(self) -> bool {
        self.from_port <= Self::LAUNCH_ORDER
            && self.to_port == 0
            && self.kind <= Self::PROGRAMMATIC
            && self.reserved == [0; 5]
    }
}

impl NodeWork {
    /// `CUgraphNodeType`.
    pub(super) fn kind(&self) -> u32 {
        match self {
            NodeWork::Kernel(_) => 0,
            NodeWork::Work(Work::Copy(_)) => 1,
            NodeWork::Work(Work::Fill(_)) => 2,
            NodeWork::Work(Work::Host { .. }) => 3,
            NodeWork::Child(_) => 4,
            NodeWork::Wait(_) => 6,
            NodeWork::Record(_) => 7,
            NodeWork::Work(Work::Write { .. } | Work::WaitValue(_)) => 12,
            NodeWork::Work(_) => 5,
        }
    }
}

impl Graph {
    pub(super) fn node(&self, node: Handle) -> Option<&Node> {
        self.nodes.iter().find(|n| n.handle == node)
    }

    /// Every node's place by its handle.
    pub(super) fn places(&self) -> HashMap<Handle, usize> {
        let numbered = self.nodes.iter().enumerate();
        numbered.map(|(place, node)| (node.handle, place)).collect()
    }
}

impl Driver {
    pub(super) fn graph(&self, graph: Handle) -> Answer<&Graph> {
        self.graphs.graphs.get(&graph).ok_or(Code::INVALID_VALUE)
    }

    fn graph_mut(&mut self, graph: Handle) -> Answer<&mut Graph> {
        self.graphs
            .graphs
            .get_mut(&graph)
            .ok_or(Code::INVALID_VALUE)
    }

    /// The graph that a node is in.
    pub(super) fn graph_of(&self, node: Handle) -> Answer<Handle> {
        self.graphs
            .owners
            .get(&node)
            .copied()
            .ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn node(&self, node: Handle) -> Answer<&Node> {
        self.graph(self.graph_of(node)?)?
            .node(node)
            .ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn node_mut(&mut self, node: Handle) -> Answer<&mut Node> {
        let graph = self.graph_of(node)?;
        let mut nodes = self.graph_mut(graph)?.nodes.iter_mut();
        nodes.find(|n| n.handle == node).ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn new_graph(&mut self) -> Handle {
        let graph = self.new_handle();
        self.graphs.graphs.insert(graph, Graph::default());
        graph
    }

    /// Adds a node after others of the graph.
    pub(super) fn add_node(
        &mut self,
        graph: Handle,
        context: Handle,
        work: NodeWork,
        after: Vec<Edge>,
    ) -> Answer<Handle> {
        let known = self.graph(graph)?;
        let mut edges: Vec<Edge> = Vec::with_capacity(after.len());
        for edge in after {
            let from = known.node(edge.from).ok_or(Code::INVALID_VALUE)?;
            check_edge(&from.work, &work, edge.data)?;
            if edges.iter().any(|e| e.from == edge.from) {
                return Err(Code::INVALID_VALUE);
            }
            edges.push(edge);
        }
        let handle = self.new_handle();
        self.graph_mut(graph)?.nodes.push(Node {
            handle,
            context,
            work,
            after: edges,
        });
        self.graphs.owners.insert(handle, graph);
        Ok(handle)
    }

    /// A copy of a graph, with nodes of its own in the same order.
    pub(super) fn clone_graph(&mut self, graph: Handle) -> Answer<Handle> {
        let clone = self.new_graph();
        let mut nodes = Vec::new();
        for node in &self.graph(graph)?.nodes {
            nodes.push((node.context, node.work.clone(), node.after.clone()));
        }
        let places = self.graph(graph)?.places();
        let handles: Vec<Handle> = nodes.iter().map(|_| self.new_handle()).collect();
        for ((context, work, after), &handle) in nodes.into_iter().zip(&handles) {
            let work = match work {
                NodeWork::Child(child) => NodeWork::Child(self.embed(child)?),
                work => work,
            };
            let edge = |edge: Edge| Edge {
                from: handles[places[&edge.from]],
                ..edge
            };
            let after = after.into_iter().map(edge).collect();
            self.graphs.owners.insert(handle, clone);
            self.graph_mut(clone)?.nodes.push(Node {
                handle,
                context,
                work,
                after,
            });
        }
        Ok(clone)
    }

    /// A copy that is a node of another graph.
    pub(super) fn embed(&mut self, graph: Handle) -> Answer<Handle> {
        let child = self.clone_graph(graph)?;
        self.graph_mut(child)?.embedded = true;
        Ok(child)
    }

    /// Throws a graph away, and those that are its nodes.
    pub(super) fn drop_graph(&mut self, graph: Handle) {
        for node in self
            .graphs
            .graphs
            .remove(&graph)
            .into_iter()
            .flat_map(|g| g.nodes)
        {
            self.drop_node(&node);
        }
    }

    fn drop_node(&mut self, node: &Node) {
        self.graphs.owners.remove(&node.handle);
        if let NodeWork::Child(child) = node.work {
            self.drop_graph(child);
        }
    }

    fn destroy_node(&mut self, node: Handle) -> Answer {
        let graph = self.graph_of(node)?;
        let nodes = &mut self.graph_mut(graph)?.nodes;
        let place = nodes.iter().position(|n| n.handle == node);
        let gone = nodes.remove(place.ok_or(Code::INVALID_VALUE)?);
        for other in nodes {
            other.after.retain(|edge| edge.from != node);
        }
        self.drop_node(&gone);
        Ok(())
    }

    fn connect(&mut self, graph: Handle, to: Handle, edge: Edge) -> Answer {
        let known = self.graph(graph)?;
        let (from, target) = (known.node(edge.from), known.node(to));
        let (from, target) = from.zip(target).ok_or(Code::INVALID_VALUE)?;
        check_edge(&from.work, &target.work, edge.data)?;
        if edge.from == to || target.after.iter().any(|e| e.from == edge.from) {
            return Err(Code::INVALID_VALUE);
        }
        self.node_mut(to)?.after.push(edge);
        Ok(())
    }

    fn disconnect(&mut self, graph: Handle, to: Handle, edge: Edge) -> Answer {
        if self.graph_of(to)? != graph {
            return Err(Code::INVALID_VALUE);
        }
        let after = &mut self.node_mut(to)?.after;
        let place = after.iter().position(|&e| e == edge);
        after.remove(place.ok_or(Code::INVALID_VALUE)?);
        Ok(())
    }
}

/// Only kernels have other ends than their last.
fn check_edge(from: &NodeWork, to: &NodeWork, data: EdgeData) -> Answer {
    let kernels = matches!((from, to), (NodeWork::Kernel(_), NodeWork::Kernel(_)));
    if data.is_known() && (data == EdgeData::default() || kernels) {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// Edges as callers hand them in: nodes, and what the edges are if they say.
pub(super) fn edges(from: &In<Handle>, data: &In<EdgeData>, count: usize) -> Answer<Vec<Edge>> {
    let edge = |index| {
        let data = if data.is_null() {
            EdgeData::default()
        } else {
            data.at(index)?
        };
        Ok(Edge {
            from: from.at(index)?,
            data,
        })
    };
    (0..count).map(edge).collect()
}

/// Writes as many results as the caller has room for, and how many there are. Without room only that is asked.
pub(super) fn listed<T: Copy + Default>(all: &[T], out: &Out<T>, count: &Out<usize>) -> Answer {
    count.require()?;
    if !out.is_null() {
        let room = In::<usize>::from_address(count.address()).get()?;
        for place in 0..room {
            // What is left over is null.
            out.at(place)
                .set(all.get(place).copied().unwrap_or_default())?;
        }
        return count.set(all.len().min(room));
    }
    count.set(all.len())
}

/// Edges of a graph: from, to, and what they are.
fn all_edges(graph: &Graph) -> Vec<(Handle, Handle, EdgeData)> {
    let of = |node: &Node| {
        let to = node.handle;
        let edge = move |edge: &Edge| (edge.from, to, edge.data);
        node.after.iter().map(edge).collect::<Vec<_>>()
    };
    graph.nodes.iter().flat_map(of).collect()
}

fn list_edges(
    driver: &Driver,
    graph: Handle,
    from: &Out<Handle>,
    to: &Out<Handle>,
    data: &Out<EdgeData>,
    count: &Out<usize>,
) -> Answer {
    count.require()?;
    if from.is_null() != to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let edges = all_edges(driver.graph(graph)?);
    let column = |which: fn(&(Handle, Handle, EdgeData)) -> Handle| {
        edges.iter().map(which).collect::<Vec<_>>()
    };
    let room = In::<usize>::from_address(count.address()).get()?;
    for (column, out) in [(column(|e| e.0), from), (column(|e| e.1), to)] {
        count.set(room)?;
        listed(&column, out, count)?;
    }
    if !data.is_null() {
        let kinds: Vec<EdgeData> = edges.iter().map(|e| e.2).collect();
        count.set(room)?;
        listed(&kinds, data, count)?;
    }
    Ok(())
}

/// The nodes before a node, or after it.
fn list_neighbours(
    driver: &Driver,
    node: Handle,
    before: bool,
    out: &Out<Handle>,
    data: &Out<EdgeData>,
    count: &Out<usize>,
) -> Answer {
    count.require()?;
    let graph = driver.graph(driver.graph_of(node)?)?;
    let (nodes, kinds): (Vec<Handle>, Vec<EdgeData>) = all_edges(graph)
        .into_iter()
        .filter_map(|(from, to, data)| match before {
            true if to == node => Some((from, data)),
            false if from == node => Some((to, data)),
            _ => None,
        })
        .unzip();
    let room = In::<usize>::from_address(count.address()).get()?;
    if !data.is_null() {
        listed(&kinds, data, count)?;
        count.set(room)?;
    }
    listed(&nodes, out, count)
}

fn change_edges(
    driver: &mut Driver,
    graph: Handle,
    ends: (&In<Handle>, &In<Handle>),
    data: &In<EdgeData>,
    count: usize,
    change: fn(&mut Driver, Handle, Handle, Edge) -> Answer,
) -> Answer {
    driver.graph(graph)?;
    for (index, edge) in edges(ends.0, data, count)?.into_iter().enumerate() {
        change(driver, graph, ends.1.at(index)?, edge)?;
    }
    Ok(())
}

/// A graph in the language of Graphviz.
fn dot(graph: &Graph) -> String {
    let mut text = "digraph {\n".to_owned();
    for node in &graph.nodes {
        let label = match node.work.kind() {
            0 => "kernel",
            1 => "memcpy",
            2 => "memset",
            3 => "host",
            4 => "graph",
            6 => "event wait",
            7 => "event record",
            12 => "memory operation",
            _ => "empty",
        };
        text += &format!("\"{:#x}\" [label=\"{label}\"];\n", node.handle);
    }
    for (from, to, data) in all_edges(graph) {
        let style = if data.is_programmatic() {
            " [style=dashed]"
        } else {
            ""
        };
        text += &format!("\"{from:#x}\" -> \"{to:#x}\"{style};\n");
    }
    text + "}\n"
}

/// For the forms of functions that know nothing of edges' kinds.
fn none<T>() -> In<T> {
    In::from_address(0)
}

driver_api! {
    fn cuGraphCreate(s, graph: Out<Handle>, flags: u32) {
        graph.require()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        graph.set(s.driver()?.new_graph())
    }
    fn cuGraphDestroy(s, graph: Handle) {
        let driver = s.driver()?;
        if driver.graph(graph)?.embedded || driver.captures_into(graph) {
            return Err(Code::INVALID_VALUE);
        }
        driver.drop_graph(graph);
        Ok(())
    }
    fn cuGraphDestroyNode(s, node: Handle) { s.driver()?.destroy_node(node) }
    fn cuGraphClone(s, clone: Out<Handle>, graph: Handle) {
        clone.require()?;
        clone.set(s.driver()?.clone_graph(graph)?)
    }
    fn cuGraphAddDependencies(s, graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        change_edges(s.driver()?, graph, (&from, &to), &none(), count, Driver::connect)
    }
    fn cuGraphAddDependencies_v2(s, graph: Handle, from: In<Handle>, to: In<Handle>, data: In<EdgeData>, count: usize) {
        change_edges(s.driver()?, graph, (&from, &to), &data, count, Driver::connect)
    }
    fn cuGraphRemoveDependencies(s, graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        change_edges(s.driver()?, graph, (&from, &to), &none(), count, Driver::disconnect)
    }
    fn cuGraphRemoveDependencies_v2(s, graph: Handle, from: In<Handle>, to: In<Handle>, data: In<EdgeData>, count: usize) {
        change_edges(s.driver()?, graph, (&from, &to), &data, count, Driver::disconnect)
    }
    fn cuGraphGetNodes(s, graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let all: Vec<Handle> = s.driver()?.graph(graph)?.nodes.iter().map(|n| n.handle).collect();
        listed(&all, &nodes, &count)
    }
    fn cuGraphGetRootNodes(s, graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let all = s.driver()?.graph(graph)?.nodes.iter();
        let roots: Vec<Handle> = all.filter(|n| n.after.is_empty()).map(|n| n.handle).collect();
        listed(&roots, &nodes, &count)
    }
    fn cuGraphGetEdges(s, graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) {
        list_edges(s.driver()?, graph, &from, &to, &Out::from_address(0), &count)
    }
    fn cuGraphGetEdges_v2(
        s, graph: Handle, from: Out<Handle>, to: Out<Handle>, data: Out<EdgeData>, count: Out<usize>
    ) {
        list_edges(s.driver()?, graph, &from, &to, &data, &count)
    }
    fn cuGraphNodeGetDependencies(s, node: Handle, nodes: Out<Handle>, count: Out<usize>) {
        list_neighbours(s.driver()?, node, true, &nodes, &Out::from_address(0), &count)
    }
    fn cuGraphNodeGetDependencies_v2(s, node: Handle, nodes: Out<Handle>, data: Out<EdgeData>, count: Out<usize>) {
        list_neighbours(s.driver()?, node, true, &nodes, &data, &count)
    }
    fn cuGraphNodeGetDependentNodes(s, node: Handle, nodes: Out<Handle>, count: Out<usize>) {
        list_neighbours(s.driver()?, node, false, &nodes, &Out::from_address(0), &count)
    }
    fn cuGraphDebugDotPrint(s, graph: Handle, path: Text, _flags: u32) {
        let text = dot(s.driver()?.graph(graph)?);
        std::fs::write(path.utf8()?, text).map_err(|_| Code::OPERATING_SYSTEM)
    }
    fn cuGraphNodeGetDependentNodes_v2(s, node: Handle, nodes: Out<Handle>, data: Out<EdgeData>, count: Out<usize>) {
        list_neighbours(s.driver()?, node, false, &nodes, &data, &count)
    }
}
