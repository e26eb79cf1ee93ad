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
    let mut attributes = [CUlaunchAttribute::programmatic_stream_serialization()];
    let config = CUlaunchConfig {
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 64,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: u32::from(dependent),
    };
    let mut arguments = [(&raw const at) as *mut c_void];
    // SAFETY: every kernel takes one pointer.
    let status = unsafe {
        ext::cuLaunchKernelEx(
            &config,
            function.to_raw(),
            arguments.as_mut_ptr(),
            null_mut(),
        )
    };
    assert_eq!(status.result(), Ok(()));
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
