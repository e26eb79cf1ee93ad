//! How a graph's launch is issued to streams: which node goes into which stream, and what waits for what.
//!
//! A node goes on in the stream of one that it follows, if it is the first to do so, and else has a stream of its own; its other
//! edges are events. So exactly what the edges order is ordered: two nodes share a stream only if one comes after the other.

use crate::graph::Graph;

/// A stream of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The one that the graph is launched in.
    Outside,
    /// One of the graph's own.
    Own(usize),
}

/// An event of a graph; all are its own.
pub(crate) type Event = usize;

/// The launch has begun: what the stream had before has come to its end.
const BEGIN: Event = 0;
/// The launch has ended.
const END: Event = 1;

/// What is issued, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Issue {
    Wait(Lane, Event),
    Record(Event, Lane),
    /// A node's work.
    Node(usize, Lane),
}

/// What orders nodes; the tests take each away and see that it is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// A launch comes after the one before of the same graph.
    Launches,
    /// It comes after what its stream had.
    Begin,
    /// Edges between nodes in different streams.
    Between,
    /// What its stream gets comes after all nodes.
    End,
}

#[cfg(test)]
impl Edge {
    pub(crate) const ALL: [Edge; 4] = [Edge::Launches, Edge::Begin, Edge::Between, Edge::End];
}

#[cfg(not(test))]
const fn without(_: Edge) -> bool {
    false
}

#[cfg(test)]
fn without(edge: Edge) -> bool {
    crate::mutant::is_removed(OF, edge as u32)
}

/// For [`crate::mutant`].
#[cfg(test)]
pub(crate) const OF: &str = "graph";

/// A graph's launch.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// How many streams of its own it needs, and how many events.
    pub(crate) lanes: usize,
    pub(crate) events: usize,
    pub(crate) steps: Vec<Issue>,
}

impl Plan {
    pub(crate) fn new(graph: &Graph) -> Plan {
        let lanes = lanes(graph);
        let dependents = graph.dependents();
        let mut plan = Plan {
            lanes: lanes.iter().map(|lane| lane + 1).max().unwrap_or(0),
            events: END + 1,
            steps: Vec::new(),
        };
        // What nodes in other streams, or the end, wait for.
        let mut done: Vec<Option<Event>> = vec![None; lanes.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            let elsewhere = node.after.iter().filter(|&&n| lanes[n] != lanes[index]);
            let last = (dependents[index] == 0).then_some(&index);
            for &before in elsewhere.chain(last) {
                if done[before].is_none() {
                    done[before] = Some(plan.events);
                    plan.events += 1;
                }
            }
        }
        plan.wait(Edge::Launches, Lane::Outside, END);
        plan.steps.push(Issue::Record(BEGIN, Lane::Outside));
        for (index, node) in graph.nodes.iter().enumerate() {
            let lane = Lane::Own(lanes[index]);
            if node.after.is_empty() {
                plan.wait(Edge::Begin, lane, BEGIN);
            }
            for &before in &node.after {
                if lanes[before] != lanes[index]
                    && let Some(event) = done[before]
                {
                    plan.wait(Edge::Between, lane, event);
                }
            }
            plan.steps.push(Issue::Node(index, lane));
            plan.steps
                .extend(done[index].map(|event| Issue::Record(event, lane)));
        }
        for (index, event) in done.into_iter().enumerate() {
            if dependents[index] == 0
                && let Some(event) = event
            {
                plan.wait(Edge::End, Lane::Outside, event);
            }
        }
        plan.steps.push(Issue::Record(END, Lane::Outside));
        plan
    }

    fn wait(&mut self, why: Edge, lane: Lane, event: Event) {
        if !without(why) {
            self.steps.push(Issue::Wait(lane, event));
        }
    }
}

/// Per node: its stream.
fn lanes(graph: &Graph) -> Vec<usize> {
    let mut lanes: Vec<usize> = Vec::with_capacity(graph.nodes.len());
    // The last node of each stream so far.
    let mut last: Vec<usize> = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        // The node that it can be a dependent launch of, if there is one, is the only one that it follows.
        let lane = match last.iter().position(|n| node.after.contains(n)) {
            Some(lane) => {
                last[lane] = index;
                lane
            }
            None => {
                last.push(index);
                last.len() - 1
            }
        };
        lanes.push(lane);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::tests::{Host, Truth};
    use crate::graph::{Capture, NodeWork};
    use crate::mutant::removing;
    use crate::request::{EventId, StreamFlags, StreamId};
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    /// The property fails for plans that lack the edge.
    #[test]
    fn every_removed_edge_is_noticed() {
        for edge in Edge::ALL {
            let quiet = Config {
                failure_persistence: None,
                max_shrink_iters: 0,
                ..Config::default()
            };
            let run = || TestRunner::new(quiet).run(&program(), check);
            let noticed = removing(OF, edge as u32, run).is_err();
            assert!(noticed, "nobody noticed that {edge:?} was missing");
        }
    }

    /// What streams are given during a capture.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Work(usize),
        Record(usize, usize),
        Wait(usize, usize),
    }

    const STREAMS: usize = 4;
    const EVENTS: usize = 4;

    fn program() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..STREAMS).prop_map(Step::Work),
            2 => (0..EVENTS, 0..STREAMS).prop_map(|(e, s)| Step::Record(e, s)),
            2 => (0..STREAMS, 0..EVENTS).prop_map(|(s, e)| Step::Wait(s, e)),
        ];
        prop::collection::vec(step, 0..60)
    }

    /// Captures a program from the first stream; what would be an error is left out, and in the end all streams come back.
    /// Returns the graph and, per node, the nodes that the streams and events put before it.
    fn capture(program: &[Step]) -> (Graph, Vec<Truth>) {
        let mut capture = Capture::begin(StreamId(0));
        let mut streams: Vec<Option<Truth>> = vec![None; STREAMS];
        streams[0] = Some(Truth::new());
        let mut events: Vec<Option<Truth>> = vec![None; EVENTS];
        let mut before = Vec::new();
        let (stream, event) = (|s| StreamId(s as u32), |e| EventId(e as u32));
        for step in program {
            match *step {
                Step::Work(s) => {
                    assert_eq!(capture.takes(stream(s)), streams[s].is_some());
                    if let Some(known) = &mut streams[s] {
                        capture.issue(stream(s), NodeWork::Empty).unwrap();
                        let node = before.len() as u32;
                        before.push(known.clone());
                        known.insert(node);
                    }
                }
                Step::Record(e, s) => {
                    if let Some(known) = &streams[s] {
                        capture.record(event(e), stream(s)).unwrap();
                        events[e] = Some(known.clone());
                    }
                }
                Step::Wait(s, e) => {
                    if let Some(recorded) = &events[e] {
                        assert!(capture.wait(stream(s), event(e)).unwrap());
                        streams[s].get_or_insert_default().extend(recorded);
                    }
                }
            }
        }
        for (s, known) in streams.iter().enumerate().skip(1) {
            if known.is_some() {
                capture.record(event(0), stream(s)).unwrap();
                capture.wait(stream(0), event(0)).unwrap();
            }
        }
        (capture.end().unwrap(), before)
    }

    /// Launches a captured graph some times, in two streams, with a kernel of the streams' own before and after each.
    fn check(program: Vec<Step>) -> Result<(), TestCaseError> {
        let (graph, before) = capture(&program);
        let plan = Plan::new(&graph);
        let mut h = Host::new(&vec![StreamFlags::NonBlocking; 2 + plan.lanes]);
        for _ in 0..plan.events {
            h.event();
        }
        let mut outside = [Truth::new(), Truth::new()];
        let mut last_launch = Truth::new();
        for launch in 0..4 {
            let own = launch % 2;
            let lane = |lane| match lane {
                Lane::Outside => own,
                Lane::Own(n) => 2 + n,
            };
            // A kernel of the stream's own.
            let kernel = h.launches();
            prop_assert_eq!(h.launch(own), outside[own].clone());
            outside[own].insert(kernel);
            let outer: Truth = &outside[own] | &last_launch;
            let first = h.launches();
            for step in &plan.steps {
                match *step {
                    Issue::Wait(stream, event) => h.wait(lane(stream), event),
                    Issue::Record(event, stream) => h.record(event, lane(stream)),
                    Issue::Node(node, stream) => {
                        let inside = before[node].iter().map(|n| first + n);
                        let expected: Truth = outer.iter().copied().chain(inside).collect();
                        prop_assert_eq!(h.launch(lane(stream)), expected, "node {}", node);
                    }
                }
            }
            outside[own] = outer;
            outside[own].extend(first..h.launches());
            last_launch = outside[own].clone();
        }
        for (stream, known) in outside.into_iter().enumerate() {
            prop_assert_eq!(h.launch(stream), known);
        }
        Ok(())
    }

    proptest! {
        /// Nodes of a captured graph are ordered exactly as the streams and events of the capture said, in each launch; a launch
        /// comes after what its stream had and the graph's launch before, and before what its stream gets.
        #[test]
        fn captured_graphs_order_what_their_streams_ordered(program in program()) {
            check(program)?;
        }
    }
}
