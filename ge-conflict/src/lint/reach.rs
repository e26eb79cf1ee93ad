//! Reachability for many pairs at once.

use crate::ir::{Graph, NodeId};

/// A topological order with its edges in compact form.
pub(super) struct Order {
    rank: Vec<u32>,
    /// Successors' ranks by rank.
    first: Vec<u32>,
    edges: Vec<u32>,
}

/// Lanes of one sweep.
const LANES: usize = 64;

impl Order {
    /// `None` if the graph has a cycle.
    pub(super) fn new(graph: &Graph) -> Option<Order> {
        let order = graph.topological().ok()?;
        let mut rank = vec![0; graph.capacity()];
        for (r, id) in order.iter().enumerate() {
            rank[id.0 as usize] = r as u32;
        }
        let (mut first, mut edges) = (Vec::with_capacity(order.len() + 1), Vec::new());
        for (r, id) in order.iter().enumerate() {
            first.push(edges.len() as u32);
            // Back edges of old-style loops go to smaller ranks: they say nothing about order.
            edges.extend(
                graph
                    .successors(*id)
                    .map(|s| rank[s.0 as usize])
                    .filter(|s| *s > r as u32),
            );
        }
        first.push(edges.len() as u32);
        Some(Order { rank, first, edges })
    }

    pub(super) fn rank(&self, id: NodeId) -> u32 {
        self.rank[id.0 as usize]
    }

    fn next(&self, r: u32) -> &[u32] {
        &self.edges[self.first[r as usize] as usize..self.first[r as usize + 1] as usize]
    }

    /// For each pair whether its second can be reached from its first.
    pub(super) fn all(&self, graph: &Graph, pairs: &[(NodeId, NodeId)]) -> Vec<bool> {
        let mut answer = vec![false; pairs.len()];
        let mut open: Vec<(u32, u32, usize)> = Vec::new();
        for (i, (from, to)) in pairs.iter().enumerate() {
            let (f, t) = (self.rank(*from), self.rank(*to));
            if f == t || self.is_direct(graph, *from, *to) {
                answer[i] = true;
            } else if f < t {
                open.push((f, t, i));
            }
        }
        open.sort_unstable();
        self.sweep(&open, &mut answer);
        answer
    }

    fn is_direct(&self, graph: &Graph, from: NodeId, to: NodeId) -> bool {
        let (n, f) = (graph.node(to), graph.node(from));
        let ordered = if n.control_in.len() < f.control_out.len() {
            n.control_in.contains(&from)
        } else {
            f.control_out.contains(&to)
        };
        ordered
            || n.inputs
                .iter()
                .any(|i| i.from.is_some_and(|f| f.node == from))
    }

    /// Sources in ascending order, 64 distinct ones at a time; marks run forward from the first source to the last target.
    fn sweep(&self, open: &[(u32, u32, usize)], answer: &mut [bool]) {
        let mut marks = vec![0u64; self.first.len()];
        let mut start = 0;
        while start < open.len() {
            let mut sources: Vec<u32> = Vec::with_capacity(LANES);
            let mut end = start;
            while end < open.len() {
                let f = open[end].0;
                if sources.last() != Some(&f) {
                    if sources.len() == LANES {
                        break;
                    }
                    sources.push(f);
                }
                end += 1;
            }
            let batch = &open[start..end];
            let (low, high) = (sources[0], batch.iter().map(|q| q.1).max().unwrap_or(0));
            for (lane, f) in sources.iter().enumerate() {
                marks[*f as usize] |= 1 << lane;
            }
            for r in low..high {
                let m = marks[r as usize];
                if m != 0 {
                    for s in self.next(r).iter().filter(|s| **s <= high) {
                        marks[*s as usize] |= m;
                    }
                }
            }
            let mut lane = 0;
            for (f, t, i) in batch {
                if sources[lane] != *f {
                    lane += 1;
                }
                answer[*i] = marks[*t as usize] & 1 << lane != 0;
            }
            marks[low as usize..=high as usize].fill(0);
            start = end;
        }
    }
}
