//! Launching graphs.
//!
//! A node is issued to a stream of the graph's own, with events for its edges, every time that the graph is launched. So each
//! launch has clock rows of its own, and what orders nodes is what orders streams. A graph that the driver runs would need
//! its nodes' launch records, rows and joins fixed when it is made; the order of nodes is the same. As with the driver's, a
//! graph's launches never overlap.

use super::Session;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeWork};
use crate::graph_plan::{Issue, Lane, Plan};
use crate::request::{EventId, GraphId, LaunchSpec, StreamFlags, StreamId};

/// A graph, ready to be launched.
pub(super) struct Instance {
    graph: Graph,
    device: u32,
    plan: Plan,
    /// The plan's streams and events.
    lanes: Vec<StreamId>,
    events: Vec<EventId>,
}

impl Session {
    /// Makes a graph ready to be launched on a device. Reports say `graph NAME` where they would name a stream.
    pub fn graph(&mut self, name: &str, graph: Graph, device: u32) -> Result<GraphId> {
        let plan = Plan::new(&graph);
        let label = format!("graph {name}");
        let lanes = (0..plan.lanes).map(|_| self.stream(&label, StreamFlags::NonBlocking, device));
        let lanes = lanes.collect::<Result<_>>()?;
        let events = (0..plan.events).map(|_| self.event(name, device));
        let events = events.collect::<Result<_>>()?;
        self.graphs.push(Instance {
            graph,
            device,
            plan,
            lanes,
            events,
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
            plan: Plan::default(),
            lanes: Vec::new(),
            events: Vec::new(),
        };
        let instance = std::mem::replace(&mut self.graphs[index], empty);
        let result = self.issue_graph(&instance, stream);
        self.graphs[index] = instance;
        result
    }

    fn issue_graph(&mut self, instance: &Instance, stream: StreamId) -> Result<()> {
        let lane = |lane| match lane {
            Lane::Outside => stream,
            Lane::Own(lane) => instance.lanes[lane],
        };
        for step in &instance.plan.steps {
            match *step {
                Issue::Wait(of, event) => self.wait(lane(of), instance.events[event])?,
                Issue::Record(event, of) => self.record(instance.events[event], lane(of))?,
                Issue::Node(node, of) => {
                    self.issue_node(&instance.graph.nodes[node].work, lane(of))?;
                }
            }
        }
        Ok(())
    }

    fn issue_node(&mut self, work: &NodeWork, stream: StreamId) -> Result<()> {
        match work {
            NodeWork::Launch(spec) => {
                let spec = spec.clone();
                self.launch(&LaunchSpec { stream, ..spec }).map(|_| ())
            }
            NodeWork::Memset {
                address,
                value,
                bytes,
            } => self.memset(*address, *value, *bytes, stream),
            NodeWork::Copy { to, from, bytes } => self.copy(*to, *from, *bytes, stream),
            NodeWork::Empty => Ok(()),
        }
    }
}
