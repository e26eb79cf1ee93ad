//! What orders launches, each way removed in turn from a whole session on the simulator: the program that needs it is silent with
//! it, and races without.

#[path = "../../tests/simulator/support.rs"]
#[allow(dead_code)]
mod support;

use super::edges::{self, Edge as Step};
use crate::clocks::{self, Edge};
use crate::graph_plan::{self, Edge as GraphEdge};
use crate::mutant::removing;
use crate::{Arg, Buffer, Graph, LaunchSpec, NodeWork, StreamFlags, StreamId, Wait};
use std::ffi::c_void;
use support::{Host, WORDS, simulator};

/// A host, three buffers, and two streams that nothing orders.
struct Setting {
    h: Host,
    data: Buffer,
    out: Buffer,
    more: Buffer,
    s: StreamId,
    t: StreamId,
}

impl Setting {
    fn new() -> Setting {
        let mut h = Host::new();
        let [data, out, more] = ["data", "out", "more"].map(|name| h.buffer(name));
        let free = StreamFlags::NonBlocking;
        let [s, t] = ["s", "t"].map(|name| h.session.stream(name, free, 0).unwrap());
        Setting {
            h,
            data,
            out,
            more,
            s,
            t,
        }
    }

    fn put(&mut self, stream: StreamId) {
        self.h.put(self.data, 7, stream);
    }

    fn get(&mut self, stream: StreamId) {
        self.h.get(self.data, self.out, stream);
    }

    fn wait_until_yes(&mut self, what: Wait) {
        while !self.h.session.query(what).unwrap() {}
    }
}

fn one_stream(s: &mut Setting) {
    s.put(s.s);
    s.get(s.s);
}

fn an_event(s: &mut Setting) {
    let e = s.h.session.event("e", 0).unwrap();
    s.put(s.s);
    s.h.session.record(e, s.s).unwrap();
    s.h.session.wait(s.t, e).unwrap();
    s.get(s.t);
}

fn the_legacy_default_stream(s: &mut Setting) {
    let blocking = s.h.stream("blocking");
    s.put(s.h.default);
    s.get(blocking);
}

fn waiting_for_a_stream(s: &mut Setting) {
    s.put(s.s);
    s.h.session.synchronize(Wait::Stream(s.s)).unwrap();
    s.get(s.t);
}

fn waiting_for_an_event(s: &mut Setting) {
    let e = s.h.session.event("e", 0).unwrap();
    s.put(s.s);
    s.h.session.record(e, s.s).unwrap();
    s.h.session.synchronize(Wait::Event(e)).unwrap();
    s.get(s.t);
}

fn waiting_for_the_device(s: &mut Setting) {
    s.put(s.s);
    s.h.session.synchronize(Wait::Device).unwrap();
    s.get(s.t);
}

fn asking_about_a_stream(s: &mut Setting) {
    s.put(s.s);
    s.wait_until_yes(Wait::Stream(s.s));
    s.get(s.t);
}

fn asking_about_an_event(s: &mut Setting) {
    let e = s.h.session.event("e", 0).unwrap();
    s.put(s.s);
    s.h.session.record(e, s.s).unwrap();
    s.wait_until_yes(Wait::Event(e));
    s.get(s.t);
}

fn asking_about_the_device(s: &mut Setting) {
    s.put(s.s);
    s.wait_until_yes(Wait::Device);
    s.get(s.t);
}

/// `between()` waits, then lets the next kernel begin; `peek(p)` reads a word, then waits.
const DEPENDENT: &str = "
.version 7.8
.target sm_90
.address_size 64
.visible .entry between()
{
    griddepcontrol.wait;
    griddepcontrol.launch_dependents;
    ret;
}
.visible .entry peek(.param .u64 p)
{
    .reg .b64 %p;
    .reg .b32 %v;
    ld.param.u64 %p, [p];
    ld.global.u32 %v, [%p];
    griddepcontrol.wait;
    ret;
}
";

/// A kernel writes; one follows, a dependent launch or not, and a dependent launch behind that reads at once.
fn behind(s: &mut Setting, dependent: bool) {
    let module = s.h.session.load_module("dependent.ptx", DEPENDENT).unwrap();
    let spec = |kernel, pdl| {
        let mut spec = LaunchSpec::new(module, kernel, [1; 3], [1; 3], s.s);
        spec.pdl = pdl;
        spec
    };
    let between = spec("between", dependent);
    let peek = spec("peek", true).arg(Arg::Pointer(s.data.address));
    s.put(s.s);
    s.h.session.launch(&between).unwrap();
    s.h.session.launch(&peek).unwrap();
}

fn a_dependent_launch(s: &mut Setting) {
    behind(s, false);
}

fn a_chain(s: &mut Setting) {
    behind(s, true);
}

/// One node writes, two read, in two streams of the graph; it is launched in two streams, between launches of their own.
fn a_graph(s: &mut Setting) {
    let put = s.h.spec("put", s.s).arg(Arg::Pointer(s.data.address));
    let mut graph = Graph::new();
    let first = graph
        .add(NodeWork::Launch(put.arg(Arg::u32(1))), &[])
        .unwrap();
    for to in [s.out, s.more] {
        let get = s.h.spec("get", s.s).arg(Arg::Pointer(s.data.address));
        let get = get.arg(Arg::Pointer(to.address)).arg(Arg::u32(WORDS));
        graph.add(NodeWork::Launch(get), &[first]).unwrap();
    }
    let g = s.h.session.graph("g", graph, 0).unwrap();
    s.put(s.s);
    s.h.session.launch_graph(g, s.s).unwrap();
    s.h.session.launch_graph(g, s.t).unwrap();
    s.h.put(s.more, 3, s.t);
}

/// Memory that is freed, and handed out again to somebody whom nothing orders after its last owner.
fn memory_that_comes_back(s: &mut Setting) {
    let first = s.h.buffer("first");
    s.h.put(first, 1, s.s);
    s.h.session.free(first.address, Some(s.s)).unwrap();
    let second = s.h.buffer("second");
    assert_eq!(second.address, first.address);
    s.h.put(second, 2, s.t);
}

/// The allocator knows that the work in a stream has ended, from where gsan does not see it.
fn ended(s: &Setting, stream: StreamId) {
    let raw = s.h.session.raw_stream(stream).unwrap();
    // SAFETY: the stream lives, and the session's context is current in this thread.
    let waited = unsafe { cust::sys::cuStreamSynchronize(raw.cast()) };
    assert_eq!(waited as u32, 0);
}

fn forgetting(s: &mut Setting) {
    s.put(s.s);
    ended(s, s.s);
    s.h.session
        .forget(s.data.address, s.data.bytes, s.t)
        .unwrap();
    s.put(s.t);
}

fn forgetting_by_the_hook(s: &mut Setting) {
    s.put(s.s);
    ended(s, s.s);
    let stream = s.h.session.raw_stream(s.t).unwrap();
    let (address, bytes) = (s.data.address as *mut c_void, s.data.bytes as usize);
    // SAFETY: the stream lives.
    let result = unsafe { crate::forget::gsan_forget(address, bytes, stream.cast()) };
    assert_eq!(result, crate::forget::FORGOTTEN);
    s.put(s.t);
}

/// Between two kernels the host sets memory in their stream.
fn an_operation(s: &mut Setting) {
    s.put(s.s);
    let bytes = u64::from(4 * WORDS);
    s.h.session.memset(s.data.address, 0, bytes, s.s).unwrap();
    s.get(s.s);
}

/// It sets it in another stream.
fn an_operation_aside(s: &mut Setting) {
    s.put(s.s);
    let bytes = u64::from(4 * WORDS);
    s.h.session.memset(s.data.address, 0, bytes, s.t).unwrap();
}

/// One kernel adds through a multicast address, one stores to what is bound there.
fn multicast_memory(s: &mut Setting) {
    const ADD: &str = "
.version 8.1
.target sm_90
.address_size 64
.visible .entry add(.param .u64 at)
{
    .reg .b64 %at;
    ld.param.u64 %at, [at];
    multimem.red.global.add.u32 [%at], 1;
    ret;
}
";
    let bytes = u64::from(4 * WORDS);
    let all = s.h.session.alloc_multicast("all", bytes, &[0]).unwrap();
    let module = s.h.session.load_module("add.ptx", ADD).unwrap();
    let add = LaunchSpec::new(module, "add", [1; 3], [1; 3], s.s);
    let add = add.arg(Arg::Pointer(all.address));
    s.h.session.launch(&add).unwrap();
    s.h.put(all.parts[0], 3, s.t);
}

fn is_silent(program: fn(&mut Setting)) -> bool {
    let _turn = simulator(|c| c.seed = 1);
    let mut setting = Setting::new();
    program(&mut setting);
    setting.h.races().is_empty()
}

/// Row by row the table in ARCHITECTURE.md.
#[test]
fn without_an_edge_its_program_races() {
    type Program = (&'static str, fn(&mut Setting), &'static [Edge]);
    let programs: [Program; 11] = [
        ("stream", one_stream, &[Edge::Stream]),
        ("event", an_event, &[Edge::EventRecord, Edge::EventWait]),
        ("legacy", the_legacy_default_stream, &[Edge::LegacyDefault]),
        (
            "synchronize stream",
            waiting_for_a_stream,
            &[Edge::HostStream, Edge::Host],
        ),
        (
            "synchronize event",
            waiting_for_an_event,
            &[Edge::HostEvent, Edge::Host],
        ),
        (
            "synchronize device",
            waiting_for_the_device,
            &[Edge::HostDevice, Edge::Host],
        ),
        (
            "query stream",
            asking_about_a_stream,
            &[Edge::Query, Edge::HostStream, Edge::Host],
        ),
        (
            "query event",
            asking_about_an_event,
            &[Edge::Query, Edge::HostEvent, Edge::Host],
        ),
        (
            "query device",
            asking_about_the_device,
            &[Edge::Query, Edge::HostDevice, Edge::Host],
        ),
        (
            "dependent launch",
            a_dependent_launch,
            &[Edge::DependentBase],
        ),
        ("chain", a_chain, &[Edge::DependentHandover]),
    ];
    for (name, program, edges) in programs {
        assert!(is_silent(program), "{name}");
        for &edge in edges {
            let silent = removing(clocks::OF, edge as u32, || is_silent(program));
            assert!(!silent, "{name}: nobody noticed that {edge:?} was missing");
        }
    }
    assert!(is_silent(a_graph));
    for edge in GraphEdge::ALL {
        let silent = removing(graph_plan::OF, edge as u32, || is_silent(a_graph));
        assert!(!silent, "graph: nobody noticed that {edge:?} was missing");
    }
}

/// What is seen to besides: programs that are silent with it and race without, and the other way round.
#[test]
fn what_a_session_does_besides_is_noticed() {
    type Program = (bool, fn(&mut Setting), &'static [Step]);
    let programs: [Program; 6] = [
        (true, memory_that_comes_back, &[Step::Fresh]),
        (true, forgetting, &[Step::Forget]),
        (true, forgetting_by_the_hook, &[Step::Forget]),
        (
            true,
            an_operation,
            &[Step::OperationBase, Step::OperationRow],
        ),
        (false, an_operation_aside, &[Step::Operation]),
        (false, multicast_memory, &[Step::Multicast]),
    ];
    for (silent, program, edges) in programs {
        assert_eq!(is_silent(program), silent, "{edges:?}");
        for &edge in edges {
            let without = removing(edges::OF, edge as u32, || is_silent(program));
            assert_ne!(without, silent, "nobody noticed that {edge:?} was missing");
        }
    }
}
