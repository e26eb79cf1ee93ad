//! Launching graphs.
//!
//! A node is issued to a stream of the graph's own, with events for its edges, every time that the graph is launched. So each
//! launch has clock rows of its own, and what orders nodes is what orders streams. A graph that the driver runs would need
//! its nodes' launch records, rows and joins fixed when it is made; the order of nodes is the same. As with the driver's, a
//! graph's launches never overlap.

use super::Session;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeWork};
use crate::request::{EventId, GraphId, LaunchSpec, StreamFlags, StreamId};

/// A graph, ready to be launched.
pub(super) struct Instance {
    graph: Graph,
    device: u32,
    /// Per node: its stream.
    lanes: Vec<StreamId>,
    /// Per node: what others wait for, if any in other streams do.
    done: Vec<Option<EventId>>,
    /// Where it begins, and where it has ended.
    begin: EventId,
    end: EventId,
}

impl Session {
    /// Makes a graph ready to be launched on a device. Reports say `graph NAME` where they would name a stream.
    pub fn graph(&mut self, name: &str, graph: Graph, device: u32) -> Result<GraphId> {
        let dependents = graph.dependents();
        let mut lanes: Vec<StreamId> = Vec::new();
        // The last node of each stream so far.
        let mut last: Vec<(StreamId, usize)> = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            // A node goes on in the stream of one that it follows and that is the end of its stream: of the one that it can be
            // a dependent launch of, if there is one.
            let place = last.iter().position(|(_, n)| node.after.contains(n));
            let lane = match place {
                Some(place) => last[place].0,
                None => {
                    let label = format!("graph {name}");
                    self.stream(&label, StreamFlags::NonBlocking, device)?
                }
            };
            match place {
                Some(place) => last[place].1 = index,
                None => last.push((lane, index)),
            }
            lanes.push(lane);
        }
        let mut done = vec![None; graph.nodes.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            for &before in &node.after {
                if lanes[before] != lanes[index] && done[before].is_none() {
                    done[before] = Some(self.event(name, device)?);
                }
            }
            if dependents[index] == 0 && done[index].is_none() {
                done[index] = Some(self.event(name, device)?);
            }
        }
        let (begin, end) = (self.event(name, device)?, self.event(name, device)?);
        self.graphs.push(Instance {
            graph,
            device,
            lanes,
            done,
            begin,
            end,
        });
        Ok(GraphId(self.graphs.len() as u32 - 1))
    }

    /// Launches a graph in a stream: after all that is in the stream, and after the graph's own launch before.
    pub fn launch_graph(&mut self, graph: GraphId, stream: StreamId) -> Result<()> {
        let index = graph.0 as usize;
        if index >= self.graphs.len() {
            return Err(Error::UnknownGraph(graph));
        }
        if self.slot(stream)?.device != self.graphs[index].device {
            return Err(Error::Graph(
                "it was made for another device than the stream's".into(),
            ));
        }
        // Taken out while it is issued; that touches no other graph.
        let empty = Instance {
            graph: Graph::new(),
            device: 0,
            lanes: Vec::new(),
            done: Vec::new(),
            ..self.graphs[index]
        };
        let instance = std::mem::replace(&mut self.graphs[index], empty);
        let result = self.issue_graph(&instance, stream);
        self.graphs[index] = instance;
        result
    }

    fn issue_graph(&mut self, instance: &Instance, stream: StreamId) -> Result<()> {
        self.wait(stream, instance.end)?;
        self.record(instance.begin, stream)?;
        for (index, node) in instance.graph.nodes.iter().enumerate() {
            let lane = instance.lanes[index];
            if node.after.is_empty() {
                self.wait(lane, instance.begin)?;
            }
            for &before in &node.after {
                if instance.lanes[before] != lane
                    && let Some(event) = instance.done[before]
                {
                    self.wait(lane, event)?;
                }
            }
            match &node.work {
                NodeWork::Launch(spec) => {
                    let spec = LaunchSpec {
                        stream: lane,
                        ..spec.clone()
                    };
                    self.launch(&spec)?;
                }
                NodeWork::Memset {
                    address,
                    value,
                    bytes,
                } => self.memset(*address, *value, *bytes, lane)?,
                NodeWork::Copy { to, from, bytes } => self.copy(*to, *from, *bytes, lane)?,
                NodeWork::Empty => {}
            }
            if let Some(event) = instance.done[index] {
                self.record(event, lane)?;
            }
        }
        let dependents = instance.graph.dependents();
        for (event, _) in instance
            .done
            .iter()
            .zip(&dependents)
            .filter(|(_, n)| **n == 0)
        {
            if let Some(event) = event {
                self.wait(stream, *event)?;
            }
        }
        self.record(instance.end, stream)
    }
}
