//! Graphs: only their edges order nodes, and each launch comes after what its stream had before.

use crate::support::{BLOCKS, Host, THREADS, Turn, WORDS, simulator};
use gsan_host::report::Race;
use gsan_host::{
    Arg, Buffer, Capture, Error, Graph, GraphId, LaunchSpec, NodeId, NodeWork, StreamFlags,
    StreamId,
};

impl Host {
    fn free(&mut self, name: &str) -> StreamId {
        self.session
            .stream(name, StreamFlags::NonBlocking, 0)
            .unwrap()
    }

    fn node_put(&self, to: Buffer, value: u32) -> NodeWork {
        let spec = self.spec("put", self.default).arg(Arg::Pointer(to.address));
        NodeWork::Launch(spec.arg(Arg::u32(value)))
    }

    fn node_get(&self, from: Buffer, to: Buffer) -> NodeWork {
        let spec = self
            .spec("get", self.default)
            .arg(Arg::Pointer(from.address));
        NodeWork::Launch(spec.arg(Arg::Pointer(to.address)).arg(Arg::u32(WORDS)))
    }
}

/// A host, two buffers, and two streams that only events order.
fn setting(seed: u64) -> (Turn, Host, [Buffer; 2], [StreamId; 2]) {
    let turn = simulator(|c| c.seed = seed);
    let mut h = Host::new();
    let buffers = ["data", "out"].map(|name| h.buffer(name));
    let streams = ["s", "t"].map(|name| h.free(name));
    (turn, h, buffers, streams)
}

fn about(races: &[Race], buffer: &str) -> bool {
    !races.is_empty() && races.iter().all(|r| r.buffer.as_deref() == Some(buffer))
}

/// Two producers, a consumer of each, one node after both; `edges` says which consumers have their edge.
fn diamond(h: &mut Host, edges: [bool; 2]) -> GraphId {
    let names = ["a", "b", "c", "d"];
    let [a, b, c, d] = names.map(|n| h.buffer(n));
    let mut graph = Graph::new();
    let root = graph.add(NodeWork::Empty, &[]).unwrap();
    let mut ends = Vec::new();
    for (i, (from, to)) in [(a, c), (b, d)].into_iter().enumerate() {
        let put = graph.add(h.node_put(from, 7), &[root]).unwrap();
        let after: Vec<NodeId> = edges[i].then_some(put).into_iter().collect();
        ends.push(put);
        ends.push(graph.add(h.node_get(from, to), &after).unwrap());
    }
    graph.add(h.node_get(c, a), &ends).unwrap();
    h.session.graph("g", graph, 0).unwrap()
}

#[test]
fn edges_order_nodes_and_nothing_else_does() {
    for seed in 0..8 {
        for (edges, racy) in [
            ([true, true], None),
            ([false, true], Some("a")),
            ([true, false], Some("b")),
        ] {
            let _turn = simulator(|c| c.seed = seed);
            let mut h = Host::new();
            let s = h.free("s");
            let g = diamond(&mut h, edges);
            h.session.launch_graph(g, s).unwrap();
            let races = h.races();
            match racy {
                None => assert_eq!(races, vec![]),
                Some(buffer) => assert!(about(&races, buffer), "{races:?}"),
            }
        }
    }
}

#[test]
fn launches_follow_each_other_in_one_stream_and_in_two() {
    for seed in 0..8 {
        let _turn = simulator(|c| c.seed = seed);
        let mut h = Host::new();
        let (s, t) = (h.free("s"), h.free("t"));
        let g = diamond(&mut h, [true, true]);
        for i in 0..6 {
            h.session
                .launch_graph(g, if i % 2 == 0 { s } else { t })
                .unwrap();
        }
        assert_eq!(h.races(), vec![]);
    }
}

#[test]
fn a_graph_comes_after_what_its_stream_had_and_before_what_it_gets() {
    for seed in 0..8 {
        for other in [false, true] {
            let (_turn, mut h, [data, out], [s, t]) = setting(seed);
            let mut graph = Graph::new();
            graph.add(h.node_get(data, out), &[]).unwrap();
            let g = h.session.graph("g", graph, 0).unwrap();
            h.put(data, 3, s);
            h.session
                .launch_graph(g, if other { t } else { s })
                .unwrap();
            h.put(out, 3, if other { t } else { s });
            assert_eq!(about(&h.races(), "data"), other);
        }
    }
}

#[test]
fn the_end_of_a_graph_is_before_what_follows_it() {
    for seed in 0..8 {
        for other in [false, true] {
            let (_turn, mut h, [data, out], [s, t]) = setting(seed);
            let mut graph = Graph::new();
            graph.add(h.node_put(data, 5), &[]).unwrap();
            let fill = NodeWork::Memset {
                address: out.address,
                value: 1,
                bytes: out.bytes,
            };
            graph.add(fill, &[]).unwrap();
            let g = h.session.graph("g", graph, 0).unwrap();
            h.session.launch_graph(g, s).unwrap();
            h.get(data, out, if other { t } else { s });
            let races = h.races();
            assert_eq!(races.is_empty(), !other, "{races:?}");
        }
    }
}

#[test]
fn copies_and_fills_are_nodes_too() {
    for joined in [true, false] {
        let (_turn, mut h, [data, out], [s, _]) = setting(5);
        let mut graph = Graph::new();
        let fill = NodeWork::Memset {
            address: data.address,
            value: 2,
            bytes: data.bytes,
        };
        let fill = graph.add(fill, &[]).unwrap();
        let after: Vec<NodeId> = joined.then_some(fill).into_iter().collect();
        let copy = NodeWork::Copy {
            to: out.address,
            from: data.address,
            bytes: data.bytes,
        };
        graph.add(copy, &after).unwrap();
        let g = h.session.graph("g", graph, 0).unwrap();
        for _ in 0..3 {
            h.session.launch_graph(g, s).unwrap();
        }
        if joined {
            assert_eq!(h.words(out), vec![0x0202_0202; WORDS as usize]);
        }
        assert_eq!(h.races().is_empty(), joined);
    }
}

#[test]
fn a_capture_makes_the_same_graph() {
    for joined in [true, false] {
        let (_turn, mut h, [data, out], [s, t]) = setting(2);
        let (fork, join) = (
            h.session.event("f", 0).unwrap(),
            h.session.event("j", 0).unwrap(),
        );
        let mut capture = Capture::begin(s);
        if joined {
            capture.issue(s, h.node_put(data, 1)).unwrap();
        }
        capture.record(fork, s).unwrap();
        capture.wait(t, fork).unwrap();
        if !joined {
            capture.issue(s, h.node_put(data, 1)).unwrap();
        }
        capture.issue(t, h.node_get(data, out)).unwrap();
        capture.record(join, t).unwrap();
        capture.wait(s, join).unwrap();
        let g = h.session.graph("g", capture.end().unwrap(), 0).unwrap();
        // Nothing has run.
        assert_eq!(h.words(out), vec![0; WORDS as usize]);
        for stream in [s, t, t, s, s, t] {
            h.session.launch_graph(g, stream).unwrap();
        }
        assert_eq!(h.races().is_empty(), joined);
    }
}

#[test]
fn graphs_of_other_sessions_are_refused() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let graph = h.session.graph("empty", Graph::new(), 0).unwrap();
    h.session.launch_graph(graph, h.default).unwrap();
    let mut other = Host::new();
    let error = other
        .session
        .launch_graph(graph, other.default)
        .unwrap_err();
    assert!(matches!(error, Error::UnknownGraph(_)));
    let bad = LaunchSpec::new(h.module, "put", [BLOCKS, 1, 1], [THREADS, 1, 1], h.default);
    let mut graph = Graph::new();
    graph.add(NodeWork::Launch(bad), &[]).unwrap();
    let g = h.session.graph("bad", graph, 0).unwrap();
    assert!(h.session.launch_graph(g, h.default).is_err());
    // The graph is still there, and the session goes on.
    assert!(h.session.launch_graph(g, h.default).is_err());
    assert_eq!(h.races(), vec![]);
}
