//! What a driver answers to right and wrong calls while streams are captured, one line each; see `answers.rs`.
//!
//! `cargo run -p cuda-lazy --example answers captures` prints them; `tests/captures.h200.txt` is what an H200 said.

use cust_raw::*;
use std::fmt::Write;
use std::ptr::null_mut;

const GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// Two streams that do not wait for the legacy one, one that does, events, and memory.
struct Captures {
    lines: String,
    a: CUstream,
    b: CUstream,
    blocking: CUstream,
    outside: CUevent,
    own: CUevent,
    memory: CUdeviceptr,
}

impl Captures {
    fn new() -> Captures {
        let mut it = Captures {
            lines: String::new(),
            a: null_mut(),
            b: null_mut(),
            blocking: null_mut(),
            outside: null_mut(),
            own: null_mut(),
            memory: 0,
        };
        let mut context = null_mut();
        // SAFETY: results are locals.
        let made = unsafe {
            [
                cuDevicePrimaryCtxRetain(&mut context, 0),
                cuCtxSetCurrent(context),
                cuStreamCreate(&mut it.a, 1),
                cuStreamCreate(&mut it.b, 1),
                cuStreamCreate(&mut it.blocking, 0),
                cuEventCreate(&mut it.outside, 2),
                cuEventCreate(&mut it.own, 2),
                cuMemAlloc_v2(&mut it.memory, 64),
            ]
        };
        assert_eq!(made, [CUresult::CUDA_SUCCESS; 8]);
        it
    }

    fn say(&mut self, what: &str, answer: CUresult) {
        let _ = writeln!(self.lines, "{what}: {}", answer as i32);
    }

    fn begin(&self, stream: CUstream) {
        // SAFETY: the stream lives.
        let begun = unsafe { cuStreamBeginCapture_v2(stream, GLOBAL) };
        assert_eq!(begun, CUresult::CUDA_SUCCESS);
    }

    fn end(&mut self, stream: CUstream, what: &str) -> CUgraph {
        let mut graph = null_mut();
        // SAFETY: the result is a local.
        let answer = unsafe { cuStreamEndCapture(stream, &mut graph) } as i32;
        let there = if graph.is_null() { "no graph" } else { "graph" };
        let _ = writeln!(self.lines, "{what}: {answer}, {there}");
        graph
    }

    /// Work for a stream.
    fn fill(&self, stream: CUstream) -> CUresult {
        // SAFETY: the memory is the context's.
        unsafe { cuMemsetD32Async(self.memory, 1, 4, stream) }
    }

    fn record(&self, event: CUevent, stream: CUstream) -> CUresult {
        // SAFETY: both live.
        unsafe { cuEventRecord(event, stream) }
    }

    fn wait(&self, stream: CUstream, event: CUevent) -> CUresult {
        // SAFETY: both live.
        unsafe { cuStreamWaitEvent(stream, event, 0) }
    }

    fn query(&self, event: CUevent) -> CUresult {
        // SAFETY: the event lives.
        unsafe { cuEventQuery(event) }
    }

    fn synchronize(&self, event: CUevent) -> CUresult {
        // SAFETY: the event lives.
        unsafe { cuEventSynchronize(event) }
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        // SAFETY: no pointers.
        unsafe {
            cuDevicePrimaryCtxRelease_v2(0);
            cuCtxSetCurrent(null_mut());
        }
    }
}

/// All of it.
pub fn captures() -> String {
    let mut it = Captures::new();
    one_stream(&mut it);
    events(&mut it);
    several_streams(&mut it);
    graphs(&mut it);
    its_own_event(&mut it);
    std::mem::take(&mut it.lines)
}

fn one_stream(it: &mut Captures) {
    let a = it.a;
    let mut graph = null_mut();
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let mut more = 0;
    // SAFETY: results are locals, streams and memory live.
    unsafe {
        it.say(
            "begin on the legacy stream",
            cuStreamBeginCapture_v2(null_mut(), GLOBAL),
        );
        it.say("end without begin", cuStreamEndCapture(a, &mut graph));
        it.say("begin", cuStreamBeginCapture_v2(a, GLOBAL));
        it.say("begin again", cuStreamBeginCapture_v2(a, GLOBAL));
        it.say("memset", it.fill(a));
        it.say("query the stream", cuStreamQuery(a));
        it.say("memset after that", it.fill(a));
        it.say("is capturing", cuStreamIsCapturing(a, &mut status));
        let _ = writeln!(it.lines, "status: {}", status as i32);
        it.end(a, "end");
        it.begin(a);
        it.say("synchronize the stream", cuStreamSynchronize(a));
        it.end(a, "end");
        it.begin(a);
        it.say("synchronize the context", cuCtxSynchronize());
        it.end(a, "end");
        it.begin(a);
        it.say("allocate", cuMemAlloc_v2(&mut more, 64));
        it.end(a, "end");
        let _ = cuStreamBeginCapture_v2(a, RELAXED);
        it.say("allocate, relaxed", cuMemAlloc_v2(&mut more, 64));
        it.end(a, "end");
        it.begin(a);
        it.say("free", cuMemFree_v2(more));
        it.end(a, "end");
    }
}

fn events(it: &mut Captures) {
    let (a, b, outside, own) = (it.a, it.b, it.outside, it.own);
    let _ = it.record(outside, b);
    it.begin(a);
    it.say("query an event from outside", it.query(outside));
    it.end(a, "end");
    it.begin(a);
    it.say("wait for an event from outside", it.wait(a, outside));
    it.end(a, "end");
    it.begin(a);
    it.say("record", it.record(own, a));
    it.say("synchronize a captured event", it.synchronize(own));
    it.say("query a captured event", it.query(own));
    it.end(a, "end");
    it.say("query it after the end", it.query(own));
    it.say("wait for it after the end", it.wait(b, own));
}

fn several_streams(it: &mut Captures) {
    let (a, b, k, own) = (it.a, it.b, it.blocking, it.own);
    let (mut graph, legacy) = (null_mut(), null_mut());
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    it.begin(k);
    it.say("legacy stream beside a blocking capture", it.fill(legacy));
    it.end(k, "end");
    it.begin(a);
    it.say(
        "legacy stream beside a non-blocking capture",
        it.fill(legacy),
    );
    it.end(a, "end");
    it.begin(k);
    // SAFETY: the result is a local.
    let answer = unsafe { cuStreamIsCapturing(legacy, &mut status) };
    it.say("is the legacy stream capturing", answer);
    it.end(k, "end");
    it.begin(a);
    it.begin(b);
    let _ = it.record(own, b);
    it.say("wait for another capture's event", it.wait(a, own));
    it.end(a, "end a");
    it.end(b, "end b");
    let fork = |it: &Captures| {
        it.begin(a);
        let _ = it.record(own, a);
        let _ = it.wait(b, own);
    };
    fork(it);
    let _ = it.fill(b);
    // SAFETY: the result is a local.
    let answer = unsafe { cuStreamEndCapture(b, &mut graph) };
    it.say("end of the joined stream", answer);
    it.end(a, "end");
    fork(it);
    let _ = it.fill(b);
    it.end(a, "end unjoined");
    fork(it);
    it.end(a, "end, a joined stream with nothing of its own");
}

fn graphs(it: &mut Captures) {
    let a = it.a;
    it.begin(a);
    let mut graph = it.end(a, "end of an empty capture");
    let (mut exec, mut nodes, mut count) = (null_mut(), [null_mut(); 2], 0);
    // SAFETY: results are locals, graphs, nodes and streams live.
    unsafe {
        it.say(
            "instantiate it",
            cuGraphInstantiateWithFlags(&mut exec, graph, 0),
        );
        it.say("launch it", cuGraphLaunch(exec, a));
        it.say("synchronize", cuStreamSynchronize(a));
        let _ = cuGraphCreate(&mut graph, 0);
        let _ = cuGraphAddEmptyNode(&mut nodes[0], graph, null_mut(), 0);
        let _ = cuGraphAddEmptyNode(&mut nodes[1], graph, &nodes[0], 1);
        let mut edge = |what: &str, from: usize, to: usize| {
            let answer = cuGraphAddDependencies(graph, &nodes[from], &nodes[to], 1);
            it.say(what, answer);
        };
        edge("the same edge again", 0, 1);
        edge("an edge to itself", 0, 0);
        edge("an edge back", 1, 0);
        it.say(
            "instantiate the circle",
            cuGraphInstantiateWithFlags(&mut exec, graph, 0),
        );
        it.say(
            "remove an edge that is not there",
            cuGraphRemoveDependencies(graph, &nodes[0], &nodes[0], 1),
        );
        it.say(
            "count edges",
            cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count),
        );
        let _ = writeln!(it.lines, "edges: {count}");
        it.say("after all that", cuCtxSynchronize());
        it.say("destroy", cuGraphDestroy(graph));
    }
}

/// What may be done with an event that was recorded in a capture, call by call.
fn its_own_event(it: &mut Captures) {
    let (a, b, own) = (it.a, it.b, it.own);
    let recorded = |it: &Captures| {
        it.begin(a);
        let _ = it.fill(a);
        let _ = it.record(own, a);
    };
    let afterwards = |it: &mut Captures| {
        it.say("  wait for it afterwards", it.wait(b, own));
        it.say("  synchronize it afterwards", it.synchronize(own));
        it.say("  query it afterwards", it.query(own));
        it.say("  record it outside", it.record(own, b));
        it.say("  synchronize it", it.synchronize(own));
        it.say("  query it", it.query(own));
    };
    recorded(it);
    it.say("query a captured event", it.query(own));
    it.say("  and more work", it.fill(a));
    it.end(a, "  end");
    afterwards(it);
    recorded(it);
    it.say("synchronize a captured event", it.synchronize(own));
    it.say("  and more work", it.fill(a));
    it.end(a, "  end");
    afterwards(it);
    recorded(it);
    it.say("wait for it in its stream", it.wait(a, own));
    it.end(a, "  end");
    afterwards(it);
    recorded(it);
    // SAFETY: the stream lives.
    let spoils = unsafe { cuStreamQuery(a) };
    it.say("spoil its capture", spoils);
    it.say("  query it", it.query(own));
    it.say("  synchronize it", it.synchronize(own));
    it.say("  wait for it elsewhere", it.wait(b, own));
    it.end(a, "  end");
    afterwards(it);
    recorded(it);
    // SAFETY: both live.
    let destroyed = unsafe { cuEventDestroy_v2(own) };
    it.say("destroy it in its capture", destroyed);
    it.end(a, "  end");
    // SAFETY: the result is ours.
    let another = unsafe { cuEventCreate(&mut it.own, 2) };
    it.say("another one", another);
    it.say("  at the end", it.query(it.own));
}
