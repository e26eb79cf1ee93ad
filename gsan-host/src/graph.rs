//! Graphs of work, as `cuGraph…` has them: nodes that only their edges order, launched any number of times.
//!
//! A graph is built node by node, or captured from what is issued to streams ([`Capture`]).

use crate::error::{Error, Result};
use crate::request::{EventId, LaunchSpec, StreamId};
use std::collections::{BTreeMap, BTreeSet};

/// A node's number in its graph, from 0 in the order in which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// What a node does.
#[derive(Debug, Clone)]
pub enum NodeWork {
    /// A kernel. Its stream says nothing; [`LaunchSpec::pdl`] makes its one edge, from another kernel, a programmatic one.
    Launch(LaunchSpec),
    /// Sets bytes.
    Memset {
        /// First byte.
        address: u64,
        /// What they become.
        value: u8,
        /// How many.
        bytes: u64,
    },
    /// Copies between buffers.
    Copy {
        /// First byte of the target.
        to: u64,
        /// First byte of the source.
        from: u64,
        /// How many.
        bytes: u64,
    },
    /// Nothing: a place where edges meet.
    Empty,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) work: NodeWork,
    /// Nodes before it, each once.
    pub(crate) after: Vec<usize>,
}

/// Nodes and edges. An edge goes from an earlier node to a later one, so there are no cycles.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
}

impl Graph {
    /// Without nodes.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a node that runs after those.
    pub fn add(&mut self, work: NodeWork, after: &[NodeId]) -> Result<NodeId> {
        let after: BTreeSet<usize> = after.iter().map(|n| n.0 as usize).collect();
        if after.last().is_some_and(|&last| last >= self.nodes.len()) {
            return Err(wrong(
                "a node can only run after nodes that were added before it",
            ));
        }
        if let NodeWork::Launch(LaunchSpec { pdl: true, .. }) = work {
            let is_kernel = |&n: &usize| matches!(self.nodes[n].work, NodeWork::Launch(_));
            if after.len() != 1 || !after.iter().all(is_kernel) {
                return Err(wrong(
                    "a programmatic dependent launch in a graph runs after one node, and that is a kernel",
                ));
            }
        }
        self.nodes.push(Node {
            work,
            after: after.into_iter().collect(),
        });
        Ok(NodeId(self.nodes.len() as u32 - 1))
    }

    /// Adds another graph's nodes, all after those; what comes after the node that it returns comes after all of them.
    pub fn add_child(&mut self, child: &Graph, after: &[NodeId]) -> Result<NodeId> {
        let first = self.add(NodeWork::Empty, after)?;
        let base = self.nodes.len();
        for node in &child.nodes {
            let mut edges: Vec<usize> = node.after.iter().map(|n| base + n).collect();
            if edges.is_empty() {
                edges.push(first.0 as usize);
            }
            let work = node.work.clone();
            self.nodes.push(Node { work, after: edges });
        }
        let all: Vec<NodeId> = (first.0..self.nodes.len() as u32).map(NodeId).collect();
        self.add(NodeWork::Empty, &all)
    }

    /// How many nodes it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many nodes run after each one.
    pub(crate) fn dependents(&self) -> Vec<usize> {
        let mut dependents = vec![0; self.nodes.len()];
        for &before in self.nodes.iter().flat_map(|n| &n.after) {
            dependents[before] += 1;
        }
        dependents
    }
}

/// A graph in the making from what is issued to streams, as stream capture does it: the stream that it began with, and those
/// that wait for an event which was recorded in it, do not run what they are given; it becomes a node.
#[derive(Debug)]
pub struct Capture {
    graph: Graph,
    origin: StreamId,
    /// The nodes that a captured stream's next one comes after.
    ends: BTreeMap<StreamId, Vec<NodeId>>,
    events: BTreeMap<EventId, Vec<NodeId>>,
}

impl Capture {
    /// Begins with a stream.
    pub fn begin(origin: StreamId) -> Capture {
        Capture {
            graph: Graph::new(),
            origin,
            ends: BTreeMap::from([(origin, Vec::new())]),
            events: BTreeMap::new(),
        }
    }

    /// Whether what is issued to the stream becomes a node.
    pub fn takes(&self, stream: StreamId) -> bool {
        self.ends.contains_key(&stream)
    }

    /// Work is issued to a captured stream.
    pub fn issue(&mut self, stream: StreamId, work: NodeWork) -> Result<NodeId> {
        let Some(after) = self.ends.get(&stream) else {
            return Err(wrong("the stream is not being captured"));
        };
        let mut work = work;
        if let NodeWork::Launch(spec) = &mut work {
            let kernel =
                |n: &NodeId| matches!(self.graph.nodes[n.0 as usize].work, NodeWork::Launch(_));
            // Elsewhere the attribute permits what it cannot have.
            spec.pdl &= after.len() == 1 && after.iter().all(kernel);
        }
        let node = self.graph.add(work, after)?;
        self.ends.insert(stream, vec![node]);
        Ok(node)
    }

    /// An event is recorded in a captured stream: others can join by waiting for it.
    pub fn record(&mut self, event: EventId, stream: StreamId) -> Result<()> {
        let Some(end) = self.ends.get(&stream) else {
            return Err(wrong("the stream is not being captured"));
        };
        self.events.insert(event, end.clone());
        Ok(())
    }

    /// A stream waits for an event: whether that was one of the capture. If so the stream is captured from now on.
    pub fn wait(&mut self, stream: StreamId, event: EventId) -> Result<bool> {
        match self.events.get(&event) {
            Some(nodes) => {
                let end = self.ends.entry(stream).or_default();
                for &node in nodes {
                    if !end.contains(&node) {
                        end.push(node);
                    }
                }
                Ok(true)
            }
            None if self.takes(stream) => Err(wrong(
                "a stream that is being captured waits for an event that was not recorded in the capture",
            )),
            None => Ok(false),
        }
    }

    /// Ends it. All streams must have come back to the first.
    pub fn end(self) -> Result<Graph> {
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let end = self.ends.get(&self.origin);
        let mut left: Vec<usize> = end
            .iter()
            .flat_map(|e| e.iter())
            .map(|n| n.0 as usize)
            .collect();
        while let Some(node) = left.pop() {
            if seen.insert(node) {
                left.extend(&self.graph.nodes[node].after);
            }
        }
        if seen.len() < self.graph.len() {
            return Err(wrong(
                "a stream that joined the capture has not come back: record an event in it and let the first stream wait for that",
            ));
        }
        Ok(self.graph)
    }
}

fn wrong(what: &str) -> Error {
    Error::Graph(what.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(graph: &Graph) -> Vec<Vec<usize>> {
        graph.nodes.iter().map(|n| n.after.clone()).collect()
    }

    #[test]
    fn a_node_comes_after_earlier_ones_only() {
        let mut graph = Graph::new();
        let a = graph.add(NodeWork::Empty, &[]).unwrap();
        graph.add(NodeWork::Empty, &[a, a]).unwrap();
        assert_eq!(edges(&graph), [vec![], vec![0]]);
        assert!(graph.add(NodeWork::Empty, &[NodeId(2)]).is_err());
        assert_eq!(graph.dependents(), [1, 0]);
    }

    #[test]
    fn a_programmatic_edge_is_between_two_kernels() {
        let mut graph = Graph::new();
        let spec = |pdl| {
            let stream = StreamId(0);
            let module = crate::request::ModuleId(0);
            let mut spec = LaunchSpec::new(module, "k", [1; 3], [1; 3], stream);
            spec.pdl = pdl;
            NodeWork::Launch(spec)
        };
        let empty = graph.add(NodeWork::Empty, &[]).unwrap();
        let kernel = graph.add(spec(false), &[]).unwrap();
        assert!(graph.add(spec(true), &[]).is_err());
        assert!(graph.add(spec(true), &[empty]).is_err());
        assert!(graph.add(spec(true), &[empty, kernel]).is_err());
        assert!(graph.add(spec(true), &[kernel]).is_ok());
    }

    #[test]
    fn a_child_runs_as_one_node() {
        let mut child = Graph::new();
        child.add(NodeWork::Empty, &[]).unwrap();
        child.add(NodeWork::Empty, &[]).unwrap();
        let mut graph = Graph::new();
        let a = graph.add(NodeWork::Empty, &[]).unwrap();
        let b = graph.add_child(&child, &[a]).unwrap();
        graph.add(NodeWork::Empty, &[b]).unwrap();
        let expected = [vec![], vec![0], vec![1], vec![1], vec![1, 2, 3], vec![4]];
        assert_eq!(edges(&graph), expected);
    }

    #[test]
    fn a_capture_follows_streams_and_events() {
        let (a, b, c) = (StreamId(0), StreamId(1), StreamId(2));
        let (fork, join, other) = (EventId(0), EventId(1), EventId(2));
        let mut capture = Capture::begin(a);
        capture.issue(a, NodeWork::Empty).unwrap();
        assert!(!capture.takes(b) && !capture.wait(b, other).unwrap());
        assert!(capture.issue(b, NodeWork::Empty).is_err());
        capture.record(fork, a).unwrap();
        assert!(capture.wait(b, fork).unwrap() && capture.takes(b) && !capture.takes(c));
        capture.issue(a, NodeWork::Empty).unwrap();
        capture.issue(b, NodeWork::Empty).unwrap();
        assert!(capture.wait(a, other).is_err());
        capture.record(join, b).unwrap();
        capture.wait(a, join).unwrap();
        capture.issue(a, NodeWork::Empty).unwrap();
        assert_eq!(
            edges(&capture.end().unwrap()),
            [vec![], vec![0], vec![0], vec![1, 2]]
        );
    }

    #[test]
    fn a_stream_that_does_not_come_back_is_an_error() {
        let mut capture = Capture::begin(StreamId(0));
        capture.record(EventId(0), StreamId(0)).unwrap();
        capture.wait(StreamId(1), EventId(0)).unwrap();
        capture.issue(StreamId(1), NodeWork::Empty).unwrap();
        assert!(capture.end().is_err());
    }
}
