//! Graphs and stream capture on the simulated driver.

mod common;

use common::{Simulated, code, seeded};
use cust::module::Module;
use cust_raw::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// `step` appends a digit to a number: in which order steps ran can be read off it.
const PTX: &str = "
.version 7.8
.target sm_90
.address_size 64

.visible .entry step(.param .u64 p, .param .u32 digit)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [digit];
    ld.global.u32 %r2, [%rd1];
    mad.lo.u32 %r3, %r2, 10, %r1;
    st.global.u32 [%rd1], %r3;
    ret;
}
";

/// A driver, the kernel, and four words of device memory, all zero.
struct Setup {
    words: CUdeviceptr,
    module: Module,
    _sim: Simulated,
}

impl Setup {
    fn new(seed: u64) -> Setup {
        let sim = Simulated::with(seeded(seed));
        let module = Module::from_ptx(PTX, &[]).expect("the module loads");
        let mut words = 0;
        // SAFETY: the result is a local; the memory is there.
        unsafe {
            ok(cuMemAlloc_v2(&mut words, 16));
            ok(cuMemsetD8_v2(words, 0, 16));
            ok(cuCtxSynchronize());
        }
        Setup {
            words,
            module,
            _sim: sim,
        }
    }

    fn step_function(&self) -> CUfunction {
        self.module.get_function("step").unwrap().to_raw()
    }

    /// Appends a digit to a word.
    fn step(&self, word: u64, digit: u32, stream: CUstream) -> CUresult {
        let at = self.words + 4 * word;
        let mut values = [
            (&raw const at) as *mut c_void,
            (&raw const digit) as *mut c_void,
        ];
        // SAFETY: the kernel takes an address and a number.
        unsafe {
            cuLaunchKernel(
                self.step_function(),
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                values.as_mut_ptr(),
                null_mut(),
            )
        }
    }

    /// The same as a graph's node.
    fn node(&self, graph: CUgraph, word: u64, digit: u32, after: &[CUgraphNode]) -> CUgraphNode {
        let at = self.words + 4 * word;
        let mut values = [
            (&raw const at) as *mut c_void,
            (&raw const digit) as *mut c_void,
        ];
        let params = step_params(self.step_function(), &mut values);
        let mut node = null_mut();
        // SAFETY: as above; the values are copied by the call.
        ok(unsafe { cuGraphAddKernelNode(&mut node, graph, after.as_ptr(), after.len(), &params) });
        node
    }

    fn read(&self) -> [u32; 4] {
        let mut words = [0u32; 4];
        // SAFETY: room for 16 bytes.
        unsafe {
            ok(cuCtxSynchronize());
            ok(cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), self.words, 16));
        }
        words
    }
}

fn step_params(function: CUfunction, values: &mut [*mut c_void; 2]) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: values.as_mut_ptr(),
        extra: null_mut(),
    }
}

#[track_caller]
fn ok(result: CUresult) {
    assert_eq!(code(result), 0, "{:?}", cuda_lazy::diagnosis());
}

fn stream(flags: u32) -> CUstream {
    let mut stream = null_mut();
    // SAFETY: the result is a local.
    ok(unsafe { cuStreamCreate(&mut stream, flags) });
    stream
}

fn event() -> CUevent {
    let mut event = null_mut();
    // SAFETY: the result is a local.
    ok(unsafe { cuEventCreate(&mut event, 2) });
    event
}

fn graph() -> CUgraph {
    let mut graph = null_mut();
    // SAFETY: the result is a local.
    ok(unsafe { cuGraphCreate(&mut graph, 0) });
    graph
}

fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    // SAFETY: the result is a local.
    ok(unsafe { cuGraphInstantiateWithFlags(&mut exec, graph, 0) });
    exec
}

fn begin(stream: CUstream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: the stream lives.
    ok(unsafe { cuStreamBeginCapture_v2(stream, mode) });
}

fn end(stream: CUstream) -> (i32, CUgraph) {
    let mut graph = null_mut();
    // SAFETY: the result is a local.
    let answer = code(unsafe { cuStreamEndCapture(stream, &mut graph) });
    (answer, graph)
}

/// A graph's edges as places in its list of nodes.
fn edges(graph: CUgraph) -> Vec<(usize, usize)> {
    // SAFETY: results are locals, with as much room as is said.
    unsafe {
        let (mut nodes, mut count) = ([null_mut(); 16], 16);
        ok(cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
        let nodes = &nodes[..count];
        let (mut from, mut to, mut count) = ([null_mut(); 16], [null_mut(); 16], 16);
        ok(cuGraphGetEdges(
            graph,
            from.as_mut_ptr(),
            to.as_mut_ptr(),
            &mut count,
        ));
        let place = |node: &CUgraphNode| nodes.iter().position(|n| n == node).unwrap();
        let ends = from[..count].iter().zip(&to[..count]);
        let mut edges: Vec<_> = ends.map(|(from, to)| (place(from), place(to))).collect();
        edges.sort_unstable();
        edges
    }
}

#[test]
fn nodes_run_in_the_order_of_their_edges_whenever_the_graph_is_launched() {
    for seed in 0..16 {
        let s = Setup::new(seed);
        let g = graph();
        // Added against their order: an edge that is added later turns it round.
        let last = s.node(g, 0, 3, &[]);
        let first = s.node(g, 0, 1, &[]);
        let middle = s.node(g, 0, 2, &[first]);
        // SAFETY: the nodes are the graph's.
        ok(unsafe { cuGraphAddDependencies(g, &middle, &last, 1) });
        assert_eq!(edges(g), [(1, 2), (2, 0)]);
        let path = std::env::temp_dir().join(format!("gsan-graph-{}.dot", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the name ends with a NUL.
        ok(unsafe { cuGraphDebugDotPrint(g, name.as_ptr(), 0) });
        let dot = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            (dot.matches("kernel").count(), dot.matches("->").count()),
            (3, 2)
        );
        let exec = instantiate(g);
        // An instance knows nothing of what happens to its graph.
        // SAFETY: the graph lives.
        ok(unsafe { cuGraphDestroy(g) });
        let streams = [stream(1), stream(0)];
        for stream in [streams[0], streams[1], streams[0]] {
            // SAFETY: both live.
            ok(unsafe { cuGraphLaunch(exec, stream) });
        }
        // Launches of one graph do not overlap, in whatever streams.
        assert_eq!(s.read()[0], 123_123_123, "seed {seed}");
        // SAFETY: the instance lives; the second time it does not.
        unsafe {
            ok(cuGraphExecDestroy(exec));
            assert_eq!(code(cuGraphLaunch(exec, streams[0])), 1);
        }
    }
}

#[test]
fn nothing_else_orders_nodes() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let s = Setup::new(seed);
        let g = graph();
        s.node(g, 0, 1, &[]);
        s.node(g, 0, 2, &[]);
        // SAFETY: both live.
        ok(unsafe { cuGraphLaunch(instantiate(g), null_mut()) });
        seen.insert(s.read()[0]);
    }
    assert!(seen.contains(&12) && seen.contains(&21), "{seen:?}");
}

#[test]
fn a_launch_comes_after_what_its_stream_had_and_before_what_it_gets() {
    for seed in 0..16 {
        let s = Setup::new(seed);
        let (g, t) = (graph(), stream(1));
        s.node(g, 0, 5, &[]);
        let exec = instantiate(g);
        ok(s.step(0, 1, t));
        // SAFETY: both live.
        ok(unsafe { cuGraphLaunch(exec, t) });
        ok(s.step(0, 2, t));
        assert_eq!(s.read()[0], 152, "seed {seed}");
    }
}

#[test]
fn copies_fills_host_functions_events_and_graphs_are_nodes() {
    extern "C" fn count(at: *mut c_void) {
        // SAFETY: the test hands in its counter.
        unsafe { *at.cast::<u32>() += 1 };
    }
    for seed in 0..8 {
        let s = Setup::new(seed);
        let (g, child) = (graph(), graph());
        let (recorded, t) = (event(), stream(1));
        let mut host = [0u32; 2];
        let mut calls = 0u32;
        let a = s.node(child, 0, 1, &[]);
        s.node(child, 0, 2, &[a]);
        // SAFETY: results are locals; host memory outlives the launches.
        unsafe {
            let fill = CUDA_MEMSET_NODE_PARAMS {
                dst: s.words,
                pitch: 0,
                value: 7,
                elementSize: 4,
                width: 1,
                height: 1,
            };
            let (mut filled, mut inner, mut copied) = (null_mut(), null_mut(), null_mut());
            let (mut called, mut rec, mut empty) = (null_mut(), null_mut(), null_mut());
            let mut context = null_mut();
            ok(cuCtxGetCurrent(&mut context));
            ok(cuGraphAddMemsetNode(
                &mut filled,
                g,
                null_mut(),
                0,
                &fill,
                context,
            ));
            ok(cuGraphAddChildGraphNode(&mut inner, g, &filled, 1, child));
            ok(cuGraphDestroy(child));
            let copy = CUDA_MEMCPY3D {
                srcXInBytes: 0,
                srcY: 0,
                srcZ: 0,
                srcLOD: 0,
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcHost: null_mut(),
                srcDevice: s.words,
                srcArray: null_mut(),
                reserved0: null_mut(),
                srcPitch: 0,
                srcHeight: 0,
                dstXInBytes: 0,
                dstY: 0,
                dstZ: 0,
                dstLOD: 0,
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                dstHost: host.as_mut_ptr().cast(),
                dstDevice: 0,
                dstArray: null_mut(),
                reserved1: null_mut(),
                dstPitch: 0,
                dstHeight: 0,
                WidthInBytes: 4,
                Height: 1,
                Depth: 1,
            };
            ok(cuGraphAddMemcpyNode(
                &mut copied,
                g,
                &inner,
                1,
                &copy,
                context,
            ));
            let function = CUDA_HOST_NODE_PARAMS {
                fn_: Some(count),
                userData: (&raw mut calls).cast(),
            };
            ok(cuGraphAddHostNode(&mut called, g, &copied, 1, &function));
            ok(cuGraphAddEventRecordNode(&mut rec, g, &called, 1, recorded));
            ok(cuGraphAddEmptyNode(&mut empty, g, &rec, 1));
            let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
            for (node, expected) in [
                (filled, 2),
                (inner, 4),
                (copied, 1),
                (called, 3),
                (rec, 7),
                (empty, 5),
            ] {
                ok(cuGraphNodeGetType(node, &mut kind));
                assert_eq!(kind as u32, expected);
            }
            let exec = instantiate(g);
            for launches in 1..4 {
                host[0] = 0;
                ok(cuGraphLaunch(exec, t));
                // The event is the node's, and waiting for it waits for the node.
                ok(cuEventSynchronize(recorded));
                assert_eq!((host[0], calls), (712, launches), "seed {seed}");
            }
        }
    }
}

#[test]
fn an_instance_can_be_changed() {
    let s = Setup::new(3);
    let (g, t) = (graph(), stream(1));
    let a = s.node(g, 0, 1, &[]);
    let b = s.node(g, 0, 2, &[a]);
    let exec = instantiate(g);
    let (at, digit) = (s.words + 4, 9u32);
    let mut values = [
        (&raw const at) as *mut c_void,
        (&raw const digit) as *mut c_void,
    ];
    let params = step_params(s.step_function(), &mut values);
    // SAFETY: results are locals, the rest lives.
    unsafe {
        ok(cuGraphExecKernelNodeSetParams(exec, b, &params));
        ok(cuGraphLaunch(exec, t));
        assert_eq!(s.read()[..2], [1, 9]);
        // The graph is as it was: what it says of the node can be handed in again.
        let mut known: CUDA_KERNEL_NODE_PARAMS = std::mem::zeroed();
        ok(cuGraphKernelNodeGetParams(b, &mut known));
        ok(cuGraphKernelNodeSetParams(a, &known));
        let (mut wrong, mut result) = (
            null_mut(),
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR,
        );
        ok(cuGraphExecUpdate(exec, g, &mut wrong, &mut result));
        ok(cuGraphLaunch(exec, t));
        assert_eq!(s.read()[..2], [122, 9]);
        ok(cuGraphDestroyNode(b));
        assert_eq!(
            code(cuGraphExecUpdate(exec, g, &mut wrong, &mut result)),
            910
        );
        assert_eq!(result as u32, 2);
    }
}

#[test]
fn wrong_graphs_are_refused() {
    let s = Setup::new(0);
    let (g, other) = (graph(), graph());
    let a = s.node(g, 0, 1, &[]);
    let b = s.node(g, 0, 2, &[a]);
    let c = s.node(other, 0, 3, &[]);
    let (mut node, mut exec) = (null_mut(), null_mut());
    // SAFETY: results are locals; wrong handles are looked up, never followed.
    unsafe {
        assert_eq!(code(cuGraphAddEmptyNode(&mut node, g, &c, 1)), 1);
        assert_eq!(
            code(cuGraphAddDependencies(g, &a, &b, 1)),
            1,
            "there already"
        );
        assert_eq!(code(cuGraphAddDependencies(g, &a, &a, 1)), 1);
        assert_eq!(code(cuGraphAddDependencies(g, &c, &a, 1)), 1);
        assert_eq!(code(cuGraphRemoveDependencies(g, &b, &a, 1)), 1);
        // A circle.
        ok(cuGraphAddDependencies(g, &b, &a, 1));
        assert_eq!(code(cuGraphInstantiateWithFlags(&mut exec, g, 0)), 1);
        ok(cuGraphRemoveDependencies(g, &b, &a, 1));
        ok(cuGraphInstantiateWithFlags(&mut exec, g, 0));
        let gone = other;
        ok(cuGraphDestroy(other));
        assert_eq!(code(cuGraphDestroy(gone)), 1);
        assert_eq!(code(cuGraphDestroyNode(c)), 1);
        assert_eq!(code(cuGraphInstantiateWithFlags(&mut exec, gone, 0)), 1);
        assert_eq!(code(cuGraphLaunch(null_mut(), null_mut())), 1);
    }
}

/// Two streams fork and join by events.
fn captured(s: &Setup, first: CUstream, second: CUstream, joined: bool) -> (i32, CUgraph) {
    let (fork, join) = (event(), event());
    begin(first);
    ok(s.step(0, 1, first));
    // SAFETY: all live.
    unsafe {
        ok(cuEventRecord(fork, first));
        ok(cuStreamWaitEvent(second, fork, 0));
        ok(s.step(1, 2, second));
        ok(s.step(0, 3, first));
        ok(cuMemsetD32Async(s.words + 8, 4, 1, second));
        ok(cuEventRecord(join, second));
        if joined {
            ok(cuStreamWaitEvent(first, join, 0));
        }
    }
    ok(s.step(0, 5, first));
    end(first)
}

#[test]
fn a_capture_makes_nodes_of_what_its_streams_are_given() {
    for seed in 0..16 {
        let s = Setup::new(seed);
        let (first, second) = (stream(1), stream(1));
        let (answer, g) = captured(&s, first, second, true);
        assert_eq!(answer, 0);
        assert_eq!(edges(g), [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)]);
        // Nothing has run, and the streams are themselves again.
        assert_eq!(s.read(), [0; 4]);
        ok(s.step(3, 8, second));
        let exec = instantiate(g);
        for _ in 0..3 {
            // SAFETY: both live.
            ok(unsafe { cuGraphLaunch(exec, first) });
        }
        assert_eq!(s.read(), [135_135_135, 222, 4, 8], "seed {seed}");
    }
}

#[test]
fn a_graph_launched_in_a_capture_is_a_node() {
    for seed in 0..8 {
        let s = Setup::new(seed);
        let (g, t) = (graph(), stream(1));
        let a = s.node(g, 0, 1, &[]);
        s.node(g, 0, 2, &[a]);
        let inner = instantiate(g);
        begin(t);
        ok(s.step(0, 7, t));
        // SAFETY: both live.
        ok(unsafe { cuGraphLaunch(inner, t) });
        ok(s.step(0, 8, t));
        let (answer, outer) = end(t);
        assert_eq!((answer, edges(outer)), (0, vec![(0, 1), (1, 2)]));
        // SAFETY: both live.
        ok(unsafe { cuGraphLaunch(instantiate(outer), t) });
        assert_eq!(s.read()[0], 7128, "seed {seed}");
    }
}

#[test]
fn a_copy_from_the_host_is_made_when_the_graph_runs() {
    let s = Setup::new(1);
    let t = stream(1);
    let mut host = 5u32;
    begin(t);
    // SAFETY: the host's word lives until the launches have ended.
    ok(unsafe { cuMemcpyHtoDAsync_v2(s.words, (&raw const host).cast(), 4, t) });
    let exec = instantiate(end(t).1);
    for value in [6, 7] {
        // SAFETY: a local, which the simulated copy reads through the pointer from above.
        unsafe { (&raw mut host).write_volatile(value) };
        // SAFETY: both live.
        ok(unsafe { cuGraphLaunch(exec, t) });
        assert_eq!(s.read()[0], value);
    }
}

#[test]
fn what_would_wait_for_a_capture_spoils_it() {
    type Wrong = fn(&Setup, CUstream, CUstream) -> i32;
    let ways: [(&str, i32, i32, Wrong); 10] = [
        ("wait for its stream", 900, 901, |_, t, _| {
            // SAFETY: the stream lives.
            code(unsafe { cuStreamSynchronize(t) })
        }),
        ("ask about its stream", 900, 901, |_, t, _| {
            // SAFETY: the stream lives.
            code(unsafe { cuStreamQuery(t) })
        }),
        ("wait for the context", 900, 901, |_, _, _| {
            // SAFETY: no pointers.
            code(unsafe { cuCtxSynchronize() })
        }),
        ("allocate", 900, 901, |_, _, _| {
            // SAFETY: the result is a temporary.
            code(unsafe { cuMemAlloc_v2(&mut 0, 4) })
        }),
        ("the legacy stream", 906, 901, |s, _, _| {
            code(s.step(0, 1, null_mut()))
        }),
        ("an event from outside", 905, 901, |_, t, other| {
            let outside = event();
            // SAFETY: all live.
            unsafe {
                ok(cuEventRecord(outside, other));
                code(cuStreamWaitEvent(t, outside, 0))
            }
        }),
        ("another capture's event", 902, 901, |_, t, other| {
            begin(other);
            let theirs = event();
            // SAFETY: all live.
            let answer = unsafe {
                ok(cuEventRecord(theirs, other));
                code(cuStreamWaitEvent(t, theirs, 0))
            };
            assert_eq!(end(other).0, 901);
            answer
        }),
        ("wait for an event of its own", 907, 901, |_, t, _| {
            let own = event();
            // SAFETY: all live.
            unsafe {
                ok(cuEventRecord(own, t));
                code(cuEventSynchronize(own))
            }
        }),
        ("ask about an event of its own", 907, 901, |_, t, _| {
            let own = event();
            // SAFETY: all live.
            unsafe {
                ok(cuEventRecord(own, t));
                code(cuEventQuery(own))
            }
        }),
        // This harms nobody.
        ("an event that was never recorded", 0, 0, |_, t, _| {
            // SAFETY: all live.
            code(unsafe { cuStreamWaitEvent(t, event(), 0) })
        }),
    ];
    for (what, answer, at_end, wrong) in ways {
        let s = Setup::new(0);
        let (t, other) = (stream(0), stream(1));
        begin(t);
        ok(s.step(0, 1, t));
        assert_eq!(wrong(&s, t, other), answer, "{what}");
        if at_end != 0 {
            assert_eq!(code(s.step(0, 1, t)), 901, "{what}: more work");
        }
        let (ended, graph) = end(t);
        assert_eq!((ended, graph.is_null()), (at_end, at_end != 0), "{what}");
        // And then all is well again.
        ok(s.step(0, 2, t));
        assert_eq!(s.read()[0], 2, "{what}");
    }
}

#[test]
fn a_capture_ends_where_it_began_with_all_streams_back() {
    let s = Setup::new(0);
    let (first, second) = (stream(1), stream(1));
    assert_eq!(captured(&s, first, second, false), (904, null_mut()));
    let fork = event();
    begin(first);
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: all live; results are locals.
    unsafe {
        assert_eq!(code(cuStreamBeginCapture_v2(first, mode)), 401);
        assert_eq!(code(cuStreamBeginCapture_v2(null_mut(), mode)), 900);
        ok(cuEventRecord(fork, first));
        ok(cuStreamWaitEvent(second, fork, 0));
        ok(cuStreamIsCapturing(second, &mut status));
        assert_eq!(status as u32, 1);
    }
    assert_eq!(end(second), (903, null_mut()));
    // SAFETY: as above.
    ok(unsafe { cuStreamIsCapturing(second, &mut status) });
    assert_eq!(status as u32, 2);
    assert_eq!(end(first), (901, null_mut()));
    assert_eq!(end(first).0, 401);
}

#[test]
fn relaxed_captures_allow_what_others_forbid() {
    let s = Setup::new(0);
    let t = stream(1);
    // SAFETY: results are locals, the stream lives.
    unsafe {
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        ok(cuStreamBeginCapture_v2(t, relaxed));
        let mut more = 0;
        ok(cuMemAlloc_v2(&mut more, 4));
        assert_eq!(end(t).0, 0);
        // A thread can say of itself that it knows what it does.
        begin(t);
        let mut mode = relaxed;
        ok(cuThreadExchangeStreamCaptureMode(&mut mode));
        assert_eq!(mode as u32, 0);
        ok(cuMemAlloc_v2(&mut more, 4));
        ok(cuThreadExchangeStreamCaptureMode(&mut mode));
        assert_eq!(end(t).0, 0);
    }
    assert_eq!(s.read(), [0; 4]);
}

#[test]
fn a_stream_that_is_destroyed_takes_its_capture_along() {
    let s = Setup::new(0);
    let (first, second, fork) = (stream(1), stream(1), event());
    begin(first);
    // SAFETY: all live until they are destroyed.
    unsafe {
        ok(cuEventRecord(fork, first));
        ok(cuStreamWaitEvent(second, fork, 0));
        ok(cuStreamDestroy_v2(first));
    }
    ok(s.step(0, 1, second));
    assert_eq!(s.read()[0], 1);
}
