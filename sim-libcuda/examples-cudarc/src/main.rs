//! A program for cudarc that knows nothing of gsan: loads a module, copies, launches, waits, checks; then the same as a graph
//! that is captured once and launched three times. Nothing CUDA is needed to build it; `libcuda.so.1` is looked for when it runs.

use cudarc::driver::sys::{CUgraphInstantiate_flags_enum, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 by, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .f32 %f<3>;
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2; ld.param.u32 %r4, [n];
    setp.ge.u32 %p, %r3, %r4; @%p ret;
    ld.param.u64 %d0, [data]; mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %d0, %d1;
    ld.global.f32 %f0, [%d2]; ld.param.f32 %f1, [by]; mul.f32 %f2, %f0, %f1; st.global.f32 [%d2], %f2;
    ret;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let module = context.load_module(Ptx::from_src(PTX))?;
    let scale = module.load_function("scale")?;

    let host: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let mut data = stream.memcpy_stod(&host)?;
    let (by, n) = (2.5f32, host.len() as u32);
    let mut launch = stream.launch_builder(&scale);
    launch.arg(&mut data).arg(&by).arg(&n);
    // SAFETY: the kernel takes these arguments, and stays within the first n elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }?;
    let scaled = stream.memcpy_dtov(&data)?;
    stream.synchronize()?;
    for (i, (before, after)) in host.iter().zip(&scaled).enumerate() {
        if before * by != *after {
            return Err(format!("element {i} is {after}").into());
        }
    }

    // SAFETY: one stream at a time uses the data; without cudarc's events, which are from outside the capture, that is for us
    // to see to.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream()?;
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    let half = 0.5f32;
    let mut launch = stream.launch_builder(&scale);
    launch.arg(&mut data).arg(&half).arg(&n);
    // SAFETY: as above.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }?;
    let flags = CUgraphInstantiate_flags_enum::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags)?.ok_or("nothing was captured")?;
    for _ in 0..3 {
        graph.launch()?;
    }
    let halved = stream.memcpy_dtov(&data)?;
    stream.synchronize()?;
    if host
        .iter()
        .zip(&halved)
        .any(|(before, after)| before * by / 8.0 != *after)
    {
        return Err("the graph's launches came to something else".into());
    }
    println!("{n} elements scaled by {by:.1} on {}", context.name()?);
    Ok(())
}
