//! Kernels on the simulated driver, launched through cust and through the raw calls.

mod common;

use common::{Simulated, code, seeded};
use cuda_lazy::StopKind;
use cuda_lazy::ext::{self, CUlaunchAttribute, CUlaunchConfig};
use cust::error::CudaError;
use cust::event::{Event, EventFlags};
use cust::function::{Function, FunctionAttribute};
use cust::launch;
use cust::memory::{CopyDestination, DeviceBuffer, DeviceCopy, LockedBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use cust_raw::*;
use std::ffi::c_void;
use std::ptr::null_mut;

const PTX: &str = include_str!("kernels.ptx");

fn module() -> Module {
    Module::from_ptx(PTX, &[]).expect("the module loads")
}

fn raw_stream() -> CUstream {
    let mut stream = null_mut();
    // SAFETY: the result is a local.
    let created = unsafe { cuStreamCreateWithPriority(&mut stream, 1, 0) };
    assert_eq!(code(created), 0);
    stream
}

/// Launches a kernel with one parameter.
fn start<T: DeviceCopy>(
    function: &Function,
    shape: (u32, u32),
    shared: u32,
    stream: CUstream,
    argument: T,
) -> i32 {
    let mut arguments = [(&raw const argument) as *mut c_void];
    // SAFETY: every kernel that is launched with this takes one parameter of this size, or none.
    code(unsafe {
        cuLaunchKernel(
            function.to_raw(),
            shape.0,
            1,
            1,
            shape.1,
            1,
            1,
            shared,
            stream,
            arguments.as_mut_ptr(),
            null_mut(),
        )
    })
}

fn synchronize() -> i32 {
    // SAFETY: no pointers.
    code(unsafe { cuCtxSynchronize() })
}

#[test]
fn a_kernel_adds() {
    let _sim = Simulated::new();
    let module = module();
    let add = module.get_function("add").unwrap();
    let stream = Stream::new(StreamFlags::DEFAULT, None).unwrap();
    let n = 1000u32;
    let a = DeviceBuffer::from_slice(&(0..n).collect::<Vec<_>>()).unwrap();
    let b = DeviceBuffer::from_slice(&(0..n).map(|i| i * 10).collect::<Vec<_>>()).unwrap();
    let c = DeviceBuffer::<u32>::zeroed(n as usize).unwrap();
    let (start, end) = (
        Event::new(EventFlags::DEFAULT).unwrap(),
        Event::new(EventFlags::DEFAULT).unwrap(),
    );
    start.record(&stream).unwrap();
    // SAFETY: the kernel's parameters are these.
    unsafe {
        launch!(add<<<n.div_ceil(128), 128, 0, stream>>>(a.as_device_ptr(), b.as_device_ptr(), c.as_device_ptr(), n))
            .unwrap();
    }
    end.record(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(
        c.as_host_vec().unwrap(),
        (0..n).map(|i| i * 11).collect::<Vec<_>>()
    );
    assert!(end.elapsed_time_f32(&start).unwrap() > 0.0);
    assert_eq!(cuda_lazy::diagnosis(), None);
}

#[test]
fn parameters_may_come_in_one_buffer() {
    let _sim = Simulated::new();
    let module = module();
    let count = module.get_function("count").unwrap();
    let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
    let buffer = [word.as_device_ptr().as_raw()];
    let size = 8usize;
    let mut extra = [
        std::ptr::without_provenance_mut(1),
        buffer.as_ptr() as *mut c_void,
        std::ptr::without_provenance_mut(2),
        (&raw const size) as *mut c_void,
        null_mut(),
    ];
    // SAFETY: keys and values as `extra` wants them.
    unsafe {
        let raw = count.to_raw();
        let launched = cuLaunchKernel(
            raw,
            3,
            1,
            1,
            33,
            1,
            1,
            0,
            null_mut(),
            null_mut(),
            extra.as_mut_ptr(),
        );
        assert_eq!(code(launched), 0);
        let launched = cuLaunchKernel(
            raw,
            3,
            1,
            1,
            33,
            1,
            1,
            0,
            null_mut(),
            null_mut(),
            null_mut(),
        );
        assert_eq!(code(launched), 1, "no parameters");
    }
    assert_eq!(word.as_host_vec().unwrap(), [99]);
}

#[test]
fn functions_have_attributes_and_occupancy() {
    let _sim = Simulated::new();
    let module = module();
    assert_eq!(
        module.get_function("no_such").err(),
        Some(CudaError::NotFound)
    );
    let count = module.get_function("count").unwrap();
    assert_eq!(
        count
            .get_attribute(FunctionAttribute::MaxThreadsPerBlock)
            .unwrap(),
        1024
    );
    assert!(
        (1..=255).contains(
            &count
                .get_attribute(FunctionAttribute::NumRegisters)
                .unwrap()
        )
    );
    assert_eq!(
        count
            .get_attribute(FunctionAttribute::SharedMemorySizeBytes)
            .unwrap(),
        0
    );
    assert_eq!(
        count.get_attribute(FunctionAttribute::PtxVersion).unwrap(),
        70
    );
    let small = module.get_function("small").unwrap();
    assert_eq!(
        small
            .get_attribute(FunctionAttribute::MaxThreadsPerBlock)
            .unwrap(),
        64
    );
    assert_eq!(start(&small, (1, 65), 0, null_mut(), 0u64), 1);
    assert_eq!(start(&count, (1, 1025), 0, null_mut(), 0u64), 1);
    assert_eq!(start(&count, (0, 1), 0, null_mut(), 0u64), 1);

    let held = count
        .max_active_blocks_per_multiprocessor(256.into(), 0)
        .unwrap();
    assert_eq!(held, 8, "as many as the configuration holds");
    let held = count
        .max_active_blocks_per_multiprocessor(1024.into(), 0)
        .unwrap();
    assert_eq!(held, 2, "2048 threads");
    let (blocks, threads) = count.suggested_launch_configuration(0, 0.into()).unwrap();
    assert!(blocks >= 4 && threads >= 256, "{blocks} × {threads}");
    let room = count
        .available_dynamic_shared_memory_per_block(1.into(), 32.into())
        .unwrap();
    assert!(room > 200 << 10, "{room}");
    // SAFETY: results are locals.
    unsafe {
        let (mut offset, mut size) = (0, 0);
        let add = module.get_function("add").unwrap();
        assert_eq!(
            ext::cuFuncGetParamInfo(add.to_raw(), 3, &mut offset, &mut size).result(),
            Ok(())
        );
        assert_eq!((offset, size), (24, 4));
        assert_eq!(
            ext::cuFuncGetParamInfo(add.to_raw(), 4, &mut offset, &mut size).result(),
            Err(1)
        );
        let mut name = std::ptr::null();
        assert_eq!(ext::cuFuncGetName(&mut name, add.to_raw()).result(), Ok(()));
        assert_eq!(std::ffi::CStr::from_ptr(name), c"add");
        let mut kernels = 0;
        assert_eq!(
            ext::cuModuleGetFunctionCount(&mut kernels, raw_module(&module)).result(),
            Ok(())
        );
        assert_eq!(kernels, 10);
    }
}

/// cust keeps the handle to itself; it is the struct's only field.
fn raw_module(module: &Module) -> CUmodule {
    const { assert!(size_of::<Module>() == size_of::<CUmodule>()) };
    // SAFETY: see above.
    unsafe { std::mem::transmute_copy(module) }
}

#[test]
fn variables_are_found_by_name() {
    let _sim = Simulated::new();
    let module = module();
    let mut value = 0u32;
    module
        .get_global::<u32>(c"counter")
        .unwrap()
        .copy_to(&mut value)
        .unwrap();
    assert_eq!(value, 5);
    assert_eq!(
        module.get_global::<u32>(c"dynamic").err(),
        Some(CudaError::NotFound)
    );
}

#[test]
fn much_shared_memory_must_be_asked_for() {
    let _sim = Simulated::new();
    let module = module();
    let kernel = module.get_function("dynamic_size").unwrap();
    let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
    let at = word.as_device_ptr().as_raw();
    let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    assert_eq!(start(&kernel, (1, 1), 48 << 10, null_mut(), at), 0);
    assert_eq!(word.as_host_vec().unwrap(), [48 << 10]);
    assert_eq!(start(&kernel, (1, 1), (48 << 10) + 4, null_mut(), at), 1);
    // SAFETY: no pointers.
    unsafe {
        assert_eq!(code(cuFuncSetAttribute(kernel.to_raw(), most, 232_449)), 1);
        assert_eq!(code(cuFuncSetAttribute(kernel.to_raw(), most, 232_448)), 0);
    }
    assert_eq!(start(&kernel, (1, 1), 232_448, null_mut(), at), 0);
    assert_eq!(word.as_host_vec().unwrap(), [232_448]);
}

#[test]
fn kernels_of_two_streams_run_side_by_side() {
    for seed in 0..16 {
        let _sim = Simulated::with(seeded(seed));
        let module = module();
        let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
        let at = word.as_device_ptr().as_raw();
        let (a, b) = (raw_stream(), raw_stream());
        assert_eq!(
            start(
                &module.get_function("wait_for_one").unwrap(),
                (1, 1),
                0,
                a,
                at
            ),
            0
        );
        assert_eq!(
            start(&module.get_function("set_one").unwrap(), (1, 1), 0, b, at),
            0
        );
        assert_eq!(synchronize(), 0);
        assert_eq!(word.as_host_vec().unwrap(), [2]);
    }
}

#[test]
fn the_host_can_release_a_kernel_through_pinned_memory() {
    let _sim = Simulated::new();
    let module = module();
    let mut word = LockedBuffer::new(&0u32, 1).unwrap();
    let stream = raw_stream();
    assert_eq!(
        start(
            &module.get_function("wait_for_one").unwrap(),
            (1, 1),
            0,
            stream,
            word.as_ptr() as u64
        ),
        0
    );
    // SAFETY: no pointers.
    let query = || code(unsafe { cuStreamQuery(stream) });
    assert_eq!((query(), query()), (600, 600));
    word[0] = 1;
    // SAFETY: as above.
    assert_eq!(code(unsafe { cuStreamSynchronize(stream) }), 0);
    assert_eq!(word[0], 2);
    assert_eq!(query(), 0);
}

#[test]
fn one_stream_is_in_order_and_seeds_change_the_rest() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..24 {
        let _sim = Simulated::with(seeded(seed));
        let module = module();
        let count = module.get_function("count").unwrap();
        let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
        let at = word.as_device_ptr().as_raw();
        let pinned = LockedBuffer::new(&0u32, 1).unwrap();
        let (a, b) = (raw_stream(), raw_stream());
        for _ in 0..4 {
            assert_eq!(start(&count, (1, 32), 0, a, at), 0);
        }
        // SAFETY: the buffer outlives the wait.
        unsafe {
            assert_eq!(
                code(cuMemcpyDtoHAsync_v2(
                    pinned.as_ptr() as *mut c_void,
                    at,
                    4,
                    b
                )),
                0
            );
        }
        assert_eq!(synchronize(), 0);
        assert_eq!(word.as_host_vec().unwrap(), [128]);
        seen.insert(pinned[0]);
    }
    assert!(
        seen.len() > 2,
        "the copy falls between the kernels now here, now there: {seen:?}"
    );
}

#[test]
fn extended_launches_have_attributes() {
    let _sim = Simulated::new();
    let module = module();
    let count = module.get_function("count").unwrap();
    let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
    let at = word.as_device_ptr().as_raw();
    let launch = |grid: u32, attributes: &mut [CUlaunchAttribute]| {
        let config = CUlaunchConfig {
            gridDimX: grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 64,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: null_mut(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let mut arguments = [(&raw const at) as *mut c_void];
        // SAFETY: the kernel takes one pointer.
        unsafe {
            ext::cuLaunchKernelEx(&config, count.to_raw(), arguments.as_mut_ptr(), null_mut())
        }
        .result()
    };
    assert_eq!(launch(2, &mut []), Ok(()));
    assert_eq!(
        launch(4, &mut [CUlaunchAttribute::cluster(2, 1, 1)]),
        Ok(())
    );
    assert_eq!(
        launch(3, &mut [CUlaunchAttribute::cluster(2, 1, 1)]),
        Err(912)
    );
    assert_eq!(
        launch(32, &mut [CUlaunchAttribute::cluster(32, 1, 1)]),
        Err(912)
    );
    assert_eq!(
        launch(
            1,
            &mut [CUlaunchAttribute::programmatic_stream_serialization()]
        ),
        Ok(())
    );
    assert_eq!(
        launch(1, &mut [CUlaunchAttribute::user_dynamic_shared(0)]),
        Ok(())
    );
    // Four multiprocessors with eight blocks each.
    assert_eq!(launch(32, &mut [CUlaunchAttribute::cooperative()]), Ok(()));
    assert_eq!(
        launch(33, &mut [CUlaunchAttribute::cooperative()]),
        Err(720)
    );
    assert_eq!(word.as_host_vec().unwrap(), [(2 + 4 + 1 + 1 + 32) * 64]);
    let mut arguments = [(&raw const at) as *mut c_void];
    // SAFETY: as above.
    let launched = unsafe {
        cuLaunchCooperativeKernel(
            count.to_raw(),
            33,
            1,
            1,
            64,
            1,
            1,
            0,
            null_mut(),
            arguments.as_mut_ptr(),
        )
    };
    assert_eq!(code(launched), 720);
}

/// Launches what fails; then every answer is that error, until the context is reset.
fn fails(kernel: &str, argument: u64, expected: i32, kind: StopKind, part: &str) {
    let mut config = seeded(3);
    config.step_budget = 100_000;
    let _sim = Simulated::with(config);
    let module = module();
    let function = module.get_function(kernel).unwrap();
    let pinned = LockedBuffer::new(&42u32, 1).unwrap();
    assert_eq!(
        start(&function, (2, 64), 0, null_mut(), argument),
        0,
        "errors come later"
    );
    assert_eq!(synchronize(), expected, "{kernel}");
    assert_eq!(synchronize(), expected, "it stays");
    assert_eq!(start(&function, (1, 1), 0, null_mut(), argument), expected);
    assert_eq!(
        DeviceBuffer::<u32>::zeroed(1)
            .map(|_| ())
            .map_err(|error| error as i32),
        Err(expected)
    );
    let diagnosis = cuda_lazy::diagnosis().expect("the simulator knows why");
    assert_eq!(diagnosis.kind, kind);
    assert!(diagnosis.message.contains(kernel), "{}", diagnosis.message);
    assert!(diagnosis.message.contains(part), "{}", diagnosis.message);
    assert_eq!(pinned[0], 42, "pinned memory can still be read");
    std::mem::forget((module, pinned));
    // SAFETY: no pointers.
    assert_eq!(code(unsafe { cuDevicePrimaryCtxReset_v2(0) }), 0);
    assert_eq!(synchronize(), 0, "as new");
    let module = self::module();
    let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
    let count = module.get_function("count").unwrap();
    assert_eq!(
        start(
            &count,
            (2, 64),
            0,
            null_mut(),
            word.as_device_ptr().as_raw()
        ),
        0
    );
    assert_eq!(word.as_host_vec().unwrap(), [128]);
}

#[test]
fn a_trap_is_a_launch_failure() {
    fails("traps", 0, 719, StopKind::Trap, "line");
}

#[test]
fn a_wild_store_is_an_illegal_address() {
    fails("stores", 0x10_0000, 700, StopKind::Fault, "0x100000");
    fails("stores", 0, 700, StopKind::Fault, "0x0");
}

#[test]
fn an_odd_address_is_misaligned() {
    fails("stores", (1 << 48) + 1, 716, StopKind::Fault, "misaligned");
}

#[test]
fn an_endless_loop_times_out() {
    fails("loops_for_ever", 0, 702, StopKind::Budget, "");
}

#[test]
fn a_barrier_that_nobody_completes_times_out() {
    fails("waits_for_ever", 0, 702, StopKind::Deadlock, "");
}

#[test]
fn memory_freed_under_a_kernel_of_another_stream_faults() {
    let mut codes = std::collections::BTreeSet::new();
    for seed in 0..24 {
        let _sim = Simulated::with(seeded(seed));
        let module = module();
        let (a, b) = (raw_stream(), raw_stream());
        let mut word = 0;
        // SAFETY: results are locals; device addresses are looked up.
        unsafe {
            assert_eq!(code(cuMemAllocAsync(&mut word, 4, a)), 0);
            assert_eq!(code(cuStreamSynchronize(a)), 0);
            assert_eq!(
                start(&module.get_function("count").unwrap(), (8, 32), 0, a, word),
                0
            );
            assert_eq!(code(cuMemFreeAsync(word, b)), 0);
        }
        codes.insert(synchronize());
        std::mem::forget(module);
    }
    assert_eq!(codes, [0, 700].into(), "sometimes the kernel is first");
}

#[test]
fn a_module_that_does_not_parse_says_where() {
    let _sim = Simulated::new();
    let text = std::ffi::CString::new(PTX.replace(
        "atom.global.add.u32 %r1, [%rd1], 1;",
        "atom.global.add.u32 %r1, [[;",
    ))
    .unwrap();
    let mut log = [b'x'; 200];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), 200 as *mut c_void];
    let mut module = null_mut();
    // SAFETY: options and values as cuModuleLoadDataEx wants them.
    let loaded = unsafe {
        cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    assert_eq!(code(loaded), 218);
    let length = values[1] as usize;
    let log = std::str::from_utf8(&log[..length]).unwrap();
    let line = 1 + PTX[..PTX.find("atom.global").unwrap()]
        .matches('\n')
        .count();
    assert!(log.contains(&format!("line {line}")), "{log}");
}

#[test]
fn libraries_and_the_linker_make_modules() {
    let _sim = Simulated::new();
    let text = std::ffi::CString::new(PTX).unwrap();
    let (mut library, mut kernel, mut function) = (null_mut(), null_mut(), null_mut());
    let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
    // SAFETY: results are locals, texts end with a NUL.
    unsafe {
        let none = (null_mut(), null_mut(), 0, null_mut(), null_mut(), 0);
        let loaded = ext::cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            none.0,
            none.1,
            none.2,
            none.3,
            none.4,
            none.5,
        );
        assert_eq!(loaded.result(), Ok(()));
        assert_eq!(
            ext::cuLibraryGetKernel(&mut kernel, library, c"count".as_ptr()).result(),
            Ok(())
        );
        assert_eq!(
            ext::cuKernelGetFunction(&mut function, kernel).result(),
            Ok(())
        );
        let at = word.as_device_ptr().as_raw();
        let mut arguments = [(&raw const at) as *mut c_void];
        let launched = cuLaunchKernel(
            function,
            1,
            1,
            1,
            5,
            1,
            1,
            0,
            null_mut(),
            arguments.as_mut_ptr(),
            null_mut(),
        );
        assert_eq!(code(launched), 0);
        assert_eq!(word.as_host_vec().unwrap(), [5]);
        assert_eq!(ext::cuLibraryUnload(library).result(), Ok(()));
    }
    let mut linker = cust::link::Linker::new().unwrap();
    linker.add_ptx(PTX).unwrap();
    let image = linker.complete().unwrap();
    Module::from_cubin(image, &[])
        .unwrap()
        .get_function("count")
        .unwrap();
}

#[test]
fn peers_read_each_others_memory_when_allowed() {
    let mut config = seeded(1);
    config.devices = 2;
    let _sim = Simulated::with(config);
    let on_first = DeviceBuffer::from_slice(&[0u32]).unwrap();
    let at = on_first.as_device_ptr().as_raw();
    // SAFETY: results are locals, handles the driver's own.
    unsafe {
        let (mut first, mut can) = (null_mut(), 0);
        cuCtxGetCurrent(&mut first);
        assert_eq!(code(cuDeviceCanAccessPeer(&mut can, 1, 0)), 0);
        assert_eq!(can, 1);
        let mut second = null_mut();
        assert_eq!(code(cuDevicePrimaryCtxRetain(&mut second, 1)), 0);
        assert_eq!(code(cuCtxSetCurrent(second)), 0);
        let module = std::mem::ManuallyDrop::new(module());
        let count = module.get_function("count").unwrap();
        assert_eq!(code(cuCtxEnablePeerAccess(first, 0)), 0);
        assert_eq!(code(cuCtxEnablePeerAccess(first, 0)), 704);
        assert_eq!(start(&count, (1, 7), 0, null_mut(), at), 0);
        assert_eq!(synchronize(), 0);
        assert_eq!(on_first.as_host_vec().unwrap(), [7]);
        assert_eq!(code(cuCtxDisablePeerAccess(first)), 0);
        assert_eq!(code(cuCtxDisablePeerAccess(first)), 705);
        assert_eq!(start(&count, (1, 7), 0, null_mut(), at), 0);
        assert_eq!(synchronize(), 700);
        // The first device's context is none the worse.
        assert_eq!(code(cuCtxSetCurrent(first)), 0);
        assert_eq!(on_first.as_host_vec().unwrap(), [7]);
        assert_eq!(code(cuDevicePrimaryCtxRelease_v2(1)), 0);
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let _sim = Simulated::with(seeded(seed));
        let module = module();
        let count = module.get_function("count").unwrap();
        let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
        let pinned = LockedBuffer::new(&0u32, 16).unwrap();
        let (a, b) = (raw_stream(), raw_stream());
        for index in 0..16 {
            assert_eq!(
                start(&count, (3, 40), 0, a, word.as_device_ptr().as_raw()),
                0
            );
            let to = (pinned.as_ptr() as u64 + 4 * index) as *mut c_void;
            // SAFETY: the buffer outlives the wait.
            let copied = unsafe { cuMemcpyDtoHAsync_v2(to, word.as_device_ptr().as_raw(), 4, b) };
            assert_eq!(code(copied), 0);
        }
        assert_eq!(synchronize(), 0);
        pinned.to_vec()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn many_launches_cost_little_each() {
    const LAUNCHES: u32 = 20_000;
    let _sim = Simulated::new();
    let module = module();
    let count = module.get_function("count").unwrap();
    let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
    let at = word.as_device_ptr().as_raw();
    let streams = [raw_stream(), raw_stream()];
    let before = std::time::Instant::now();
    for index in 0..LAUNCHES {
        let stream = streams[index as usize % 2];
        assert_eq!(start(&count, (1, 1), 0, stream, at), 0);
    }
    assert_eq!(synchronize(), 0);
    assert_eq!(word.as_host_vec().unwrap(), [LAUNCHES]);
    // Far above what it takes (a tenth of a second); what grew with the square would take minutes.
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}

#[test]
fn threads_share_the_driver() {
    let sim = Simulated::new();
    let context = sim.context.as_ref().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            scope.spawn(move || {
                cust::context::CurrentContext::set_current(context).unwrap();
                let module = module();
                let count = module.get_function("count").unwrap();
                // Each thread's own default stream.
                let stream = 2usize as CUstream;
                for round in 1..=20 {
                    let word = DeviceBuffer::from_slice(&[thread]).unwrap();
                    let at = word.as_device_ptr().as_raw();
                    assert_eq!(start(&count, (round, 16), 0, stream, at), 0);
                    assert_eq!(word.as_host_vec().unwrap(), [thread + round * 16]);
                }
            });
        }
    });
}

#[test]
fn another_thread_can_queue_what_a_waiting_one_waits_for() {
    let sim = Simulated::new();
    let context = sim.context.as_ref().unwrap();
    let module = module();
    let word = DeviceBuffer::from_slice(&[0u32]).unwrap();
    let at = word.as_device_ptr().as_raw();
    assert_eq!(
        start(
            &module.get_function("wait_for_one").unwrap(),
            (1, 1),
            0,
            raw_stream(),
            at
        ),
        0
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Long enough for the other thread to be in its wait.
            std::thread::sleep(std::time::Duration::from_millis(50));
            cust::context::CurrentContext::set_current(context).unwrap();
            // SAFETY: the address is the buffer's.
            let queued = unsafe { cuMemsetD32Async(at, 1, 1, raw_stream()) };
            assert_eq!(code(queued), 0);
        });
        assert_eq!(synchronize(), 0);
    });
    assert_eq!(word.as_host_vec().unwrap(), [2]);
}
