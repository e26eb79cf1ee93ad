//! Programmatic dependent launches on the simulated driver.

mod common;

use common::{Simulated, code, seeded};
use cuda_lazy::ext::{self, CUlaunchAttribute, CUlaunchConfig};
use cust::function::Function;
use cust::memory::DeviceBuffer;
use cust::module::Module;
use cust_raw::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// `first` lets the next kernel start, waits until that has set word 1, then sets word 0. `second` sets word 1, waits for the
/// kernel before and copies word 0 to word 2; `hasty` sets word 1 and never waits. `quiet` sets word 0 and lets nobody start
/// early. `third` copies word 0 to word 3.
const PTX: &str = "
.version 7.8
.target sm_90
.address_size 64

.visible .entry first(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    griddepcontrol.launch_dependents;
$again:
    ld.volatile.global.u32 %r1, [%rd1+4];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $again;
    st.global.u32 [%rd1], 7;
    ret;
}

.visible .entry second(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    st.volatile.global.u32 [%rd1+4], 1;
    griddepcontrol.launch_dependents;
    griddepcontrol.wait;
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd1+8], %r1;
    ret;
}

.visible .entry hasty(.param .u64 p)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    st.volatile.global.u32 [%rd1+4], 1;
    ret;
}

.visible .entry quiet(.param .u64 p)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    st.global.u32 [%rd1], 7;
    ret;
}

.visible .entry third(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd1+12], %r1;
    ret;
}
";

fn stream() -> CUstream {
    let mut stream = null_mut();
    // SAFETY: the result is a local.
    assert_eq!(code(unsafe { cuStreamCreate(&mut stream, 1) }), 0);
    stream
}

fn launch(function: &Function, blocks: u32, stream: CUstream, at: u64, dependent: bool) {
    let attribute = CUlaunchAttribute::programmatic_stream_serialization();
    let attributes = if dependent { &[attribute][..] } else { &[] };
    let status = launch_with(function, blocks, stream, at, attributes);
    assert_eq!(status.result(), Ok(()));
}

fn launch_with(
    function: &Function,
    blocks: u32,
    stream: CUstream,
    at: u64,
    attributes: &[CUlaunchAttribute],
) -> ext::Status {
    let config = CUlaunchConfig {
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 64,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: attributes.as_ptr().cast_mut(),
        numAttrs: attributes.len() as u32,
    };
    let mut arguments = [(&raw const at) as *mut c_void];
    // SAFETY: every kernel takes one pointer.
    unsafe {
        ext::cuLaunchKernelEx(
            &config,
            function.to_raw(),
            arguments.as_mut_ptr(),
            null_mut(),
        )
    }
}

fn event(flags: u32) -> CUevent {
    let mut event = null_mut();
    // SAFETY: the result is a local.
    assert_eq!(code(unsafe { cuEventCreate(&mut event, flags) }), 0);
    event
}

/// Launches `first` with a programmatic event, which another stream waits for before its `second`; that stream's `third` comes
/// last.
fn by_event(module: &Module, at: u64, first: CUstream, other: CUstream) {
    let without_time = event(2);
    let attribute = CUlaunchAttribute::programmatic_event(without_time);
    let function = |name| module.get_function(name).unwrap();
    let status = launch_with(&function("first"), 3, first, at, &[attribute]);
    assert_eq!(status.result(), Ok(()));
    // SAFETY: both live.
    let waits = code(unsafe { cuStreamWaitEvent(other, without_time, 0) });
    assert_eq!(waits, 0);
    launch(&function("second"), 2, other, at, false);
    launch(&function("third"), 1, other, at, false);
}

/// Runs kernels in one stream, all but the first as dependent launches where it says so; returns the four words.
fn run(seed: u64, stream: CUstream, kernels: &[(&str, u32, bool)]) -> Vec<u32> {
    let module = Module::from_ptx(PTX, &[]).expect("the module loads");
    let words = DeviceBuffer::from_slice(&[0u32; 4]).unwrap();
    let at = words.as_device_ptr().as_raw();
    for (name, blocks, dependent) in kernels {
        let function = module.get_function(name).unwrap();
        launch(&function, *blocks, stream, at, *dependent);
    }
    // SAFETY: the stream lives.
    let waited = code(unsafe { cuStreamSynchronize(stream) });
    assert_eq!(waited, 0, "seed {seed}: {:?}", cuda_lazy::diagnosis());
    words.as_host_vec().unwrap()
}

/// Only as a dependent launch does it end at all: each side waits for the other.
#[test]
fn a_dependent_kernel_runs_beside_the_one_before_and_can_wait_for_it() {
    for seed in 0..24 {
        let _sim = Simulated::with(seeded(seed));
        let words = run(
            seed,
            stream(),
            &[
                ("first", 3, false),
                ("second", 2, true),
                ("third", 1, false),
            ],
        );
        assert_eq!(words, [7, 1, 7, 7], "seed {seed}");
    }
}

#[test]
fn the_default_stream_has_dependent_launches_too() {
    let _sim = Simulated::with(seeded(3));
    let words = run(3, null_mut(), &[("first", 3, false), ("second", 2, true)]);
    assert_eq!(words, [7, 1, 7, 0]);
}

#[test]
fn what_comes_after_a_kernel_that_never_waits_waits_for_both() {
    for seed in 0..24 {
        let _sim = Simulated::with(seeded(seed));
        let words = run(
            seed,
            stream(),
            &[("first", 1, false), ("hasty", 2, true), ("third", 1, false)],
        );
        assert_eq!(words, [7, 1, 0, 7], "seed {seed}");
    }
}

#[test]
fn a_kernel_that_lets_nobody_start_is_waited_for() {
    for seed in 0..24 {
        let _sim = Simulated::with(seeded(seed));
        let words = run(seed, stream(), &[("quiet", 9, false), ("third", 1, true)]);
        assert_eq!(words, [7, 0, 0, 7], "seed {seed}");
    }
}

#[test]
fn several_in_a_row_each_start_beside_the_one_before() {
    for seed in 0..24 {
        let _sim = Simulated::with(seeded(seed));
        let words = run(
            seed,
            stream(),
            &[
                ("first", 3, false),
                ("second", 2, true),
                ("second", 2, true),
                ("third", 1, false),
            ],
        );
        assert_eq!(words, [7, 1, 7, 7], "seed {seed}");
    }
}

/// Without the attribute the first kernel waits for one that does not start.
#[test]
fn an_ordinary_launch_does_not_start_early() {
    let mut config = seeded(1);
    config.step_budget = 100_000;
    let _sim = Simulated::with(config);
    let module = Module::from_ptx(PTX, &[]).expect("the module loads");
    let words = DeviceBuffer::from_slice(&[0u32; 4]).unwrap();
    let at = words.as_device_ptr().as_raw();
    let stream = stream();
    for name in ["first", "second"] {
        launch(&module.get_function(name).unwrap(), 1, stream, at, false);
    }
    // SAFETY: the stream lives.
    assert_eq!(code(unsafe { cuStreamSynchronize(stream) }), 702);
    std::mem::forget((module, words));
}

/// As above, each side waits for the other: the event is recorded before its kernel has ended, and `griddepcontrol.wait` waits
/// for that kernel.
#[test]
fn a_programmatic_event_lets_another_streams_kernel_start_early() {
    for seed in 0..24 {
        let _sim = Simulated::with(seeded(seed));
        let module = Module::from_ptx(PTX, &[]).expect("the module loads");
        let words = DeviceBuffer::from_slice(&[0u32; 4]).unwrap();
        let (first, other) = (stream(), stream());
        by_event(&module, words.as_device_ptr().as_raw(), first, other);
        // SAFETY: the stream lives.
        let waited = code(unsafe { cuStreamSynchronize(other) });
        assert_eq!(waited, 0, "seed {seed}: {:?}", cuda_lazy::diagnosis());
        assert_eq!(words.as_host_vec().unwrap(), [7, 1, 7, 7], "seed {seed}");
    }
}

#[test]
fn a_programmatic_event_has_no_time() {
    let _sim = Simulated::with(seeded(0));
    let module = Module::from_ptx(PTX, &[]).expect("the module loads");
    let words = DeviceBuffer::from_slice(&[0u32; 4]).unwrap();
    let at = words.as_device_ptr().as_raw();
    let function = module.get_function("quiet").unwrap();
    for (event, answer) in [
        (event(0), Err(1)),
        (null_mut(), Err(400)),
        (event(2), Ok(())),
    ] {
        let attribute = CUlaunchAttribute::programmatic_event(event);
        let status = launch_with(&function, 1, null_mut(), at, &[attribute]);
        assert_eq!(status.result(), answer);
    }
}

/// Captured, both ways of starting early are edges of the graph, which each launch of it follows.
#[test]
fn captured_dependent_launches_start_early_in_the_graph() {
    for seed in 0..24 {
        for events in [false, true] {
            let _sim = Simulated::with(seeded(seed));
            let module = Module::from_ptx(PTX, &[]).expect("the module loads");
            let words = DeviceBuffer::from_slice(&[0u32; 4]).unwrap();
            let at = words.as_device_ptr().as_raw();
            let (first, other, join) = (stream(), stream(), event(2));
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
            let (mut graph, mut exec) = (null_mut(), null_mut());
            // SAFETY: results are locals, the rest lives.
            unsafe {
                assert_eq!(code(cuStreamBeginCapture_v2(first, mode)), 0);
                // Every launch of the graph begins with zeros.
                assert_eq!(code(cuMemsetD32Async(at, 0, 4, first)), 0);
                if events {
                    by_event(&module, at, first, other);
                    assert_eq!(code(cuEventRecord(join, other)), 0);
                    assert_eq!(code(cuStreamWaitEvent(first, join, 0)), 0);
                } else {
                    let function = |name| module.get_function(name).unwrap();
                    launch(&function("first"), 3, first, at, false);
                    launch(&function("second"), 2, first, at, true);
                    launch(&function("third"), 1, first, at, false);
                }
                assert_eq!(code(cuStreamEndCapture(first, &mut graph)), 0);
                assert_eq!(code(cuGraphInstantiateWithFlags(&mut exec, graph, 0)), 0);
                for _ in 0..3 {
                    assert_eq!(code(cuGraphLaunch(exec, other)), 0);
                }
                let waited = code(cuStreamSynchronize(other));
                assert_eq!(waited, 0, "seed {seed}: {:?}", cuda_lazy::diagnosis());
            }
            assert_eq!(words.as_host_vec().unwrap(), [7, 1, 7, 7], "seed {seed}");
        }
    }
}
