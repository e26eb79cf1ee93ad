//! Topological order.
//!
//! Stable: among nodes that are ready, the one that stood first goes first, so that an order that is already right stays
//! as it is. Ids count through the whole module, a node's subgraphs right after it, so that nodes of different graphs can
//! be compared. Back edges of old-style loops (NextIteration's outputs) are no dependencies.

use super::{Graph, GraphId, Kind, Module, NodeId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The graph.
    pub graph: String,
    /// One cycle's nodes in order.
    pub nodes: Vec<String>,
}

impl Graph {
    /// Nodes that must run before `id`: producers, then control; duplicates possible.
    pub fn predecessors(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let n = self.node(id);
        n.inputs
            .iter()
            .filter_map(|i| i.from.map(|f| f.node))
            .chain(n.control_in.iter().copied())
    }

    /// Nodes that must run after `id`: consumers, then control; duplicates possible.
    pub fn successors(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let n = self.node(id);
        n.outputs
            .iter()
            .flat_map(|o| o.to.iter().map(|c| c.node))
            .chain(n.control_out.iter().copied())
    }

    fn is_back_edge(&self, from: NodeId) -> bool {
        self.node(from).kind == Kind::NextIteration
    }

    /// The order that [`Graph::sort`] would set.
    pub fn topological(&self) -> Result<Vec<NodeId>, Cycle> {
        let mut rank = vec![0u32; self.capacity()];
        let mut waits = vec![0u32; self.capacity()];
        let mut list = Vec::with_capacity(self.len());
        for (i, id) in self.ids().enumerate() {
            rank[id.0 as usize] = i as u32;
            list.push(id);
        }
        let mut ready = BinaryHeap::new();
        for id in &list {
            let n = self
                .predecessors(*id)
                .filter(|p| !self.is_back_edge(*p))
                .count();
            waits[id.0 as usize] = n as u32;
            if n == 0 {
                ready.push(Reverse(rank[id.0 as usize]));
            }
        }
        let mut order = Vec::with_capacity(list.len());
        while let Some(Reverse(r)) = ready.pop() {
            let id = list[r as usize];
            order.push(id);
            if self.is_back_edge(id) {
                continue;
            }
            for s in self.successors(id) {
                let w = &mut waits[s.0 as usize];
                *w -= 1;
                if *w == 0 {
                    ready.push(Reverse(rank[s.0 as usize]));
                }
            }
        }
        if order.len() == list.len() {
            Ok(order)
        } else {
            Err(self.some_cycle(&list, &waits))
        }
    }

    /// Walks back from a node that never became ready until one repeats.
    fn some_cycle(&self, list: &[NodeId], waits: &[u32]) -> Cycle {
        let stuck = |id: NodeId| waits[id.0 as usize] > 0;
        let mut nodes = Vec::new();
        let mut seen = vec![usize::MAX; self.capacity()];
        let mut at = list.iter().copied().find(|id| stuck(*id));
        while let Some(id) = at {
            if seen[id.0 as usize] != usize::MAX {
                nodes.drain(..seen[id.0 as usize]);
                break;
            }
            seen[id.0 as usize] = nodes.len();
            nodes.push(self.node(id).name.clone());
            at = self
                .predecessors(id)
                .find(|p| stuck(*p) && !self.is_back_edge(*p));
        }
        nodes.reverse();
        Cycle {
            graph: self.name.clone(),
            nodes,
        }
    }

    /// Whether every edge goes from a smaller to a larger id.
    pub fn ids_are_topological(&self) -> bool {
        self.iter().all(|(id, n)| {
            n.id.is_some()
                && self
                    .predecessors(id)
                    .all(|p| self.is_back_edge(p) || self.node(p).id < n.id)
        })
    }

    /// Sorts the nodes and numbers them from 0.
    pub fn sort(&mut self) -> Result<(), Cycle> {
        let order = self.topological()?;
        self.set_order(&order);
        for (i, id) in order.iter().enumerate() {
            if let Some(n) = self.get_mut(*id) {
                n.id = Some(i as i64);
            }
        }
        Ok(())
    }
}

impl Cycle {
    /// The whole cycle, back to where it began.
    pub fn path(&self) -> String {
        let back = self.nodes.first();
        let nodes: Vec<&str> = self.nodes.iter().chain(back).map(String::as_str).collect();
        nodes.join(" -> ")
    }
}

impl Module {
    /// Sorts `top` and everything inside it; ids count through all of it, a node's subgraphs right after it.
    pub fn sort(&mut self, top: GraphId) -> Result<(), Cycle> {
        for g in self.family(top) {
            let order = self.graph(g).topological()?;
            self.graph_mut(g).set_order(&order);
        }
        let mut next = 0;
        let mut todo: Vec<(GraphId, NodeId)> = self.graph(top).ids().map(|n| (top, n)).collect();
        todo.reverse();
        while let Some((g, id)) = todo.pop() {
            if let Some(n) = self.graph_mut(g).get_mut(id) {
                n.id = Some(next);
                next += 1;
            }
            let below: Vec<GraphId> = self
                .graph(g)
                .node(id)
                .subgraphs
                .iter()
                .flatten()
                .copied()
                .collect();
            for s in below.into_iter().rev() {
                let mut inner: Vec<_> = self.graph(s).ids().map(|n| (s, n)).collect();
                inner.reverse();
                todo.extend(inner);
            }
        }
        Ok(())
    }
}
