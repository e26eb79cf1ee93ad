//! Devices, contexts, streams and events of the simulated driver, through the trampolines.

mod common;

use common::{Simulated, code};
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::event::{Event, EventFlags, EventStatus};
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};
use cust_raw::*;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

#[test]
fn the_device_says_what_it_is() {
    let mut config = gsan_sim::Config::default();
    config.sms = 7;
    config.devices = 3;
    let _sim = Simulated::with(config);
    assert_eq!(Device::num_devices().unwrap(), 3);
    assert!(Device::get_device(3).is_err());
    let device = Device::get_device(2).unwrap();
    assert_eq!(device.name().unwrap(), "gsan simulated GPU (sm_90)");
    assert_eq!(
        device
            .get_attribute(DeviceAttribute::MultiprocessorCount)
            .unwrap(),
        7
    );
    assert_eq!(
        device
            .get_attribute(DeviceAttribute::ComputeCapabilityMajor)
            .unwrap(),
        9
    );
    assert_eq!(device.get_attribute(DeviceAttribute::WarpSize).unwrap(), 32);
    assert_eq!(
        device.total_memory().unwrap() as u64,
        gsan_sim::Config::default().memory_bytes
    );
    assert_eq!(cust::CudaApiVersion::get().unwrap().major(), 13);
    let mut value = 0;
    // SAFETY: the result is a local.
    unsafe {
        for (attribute, expected) in [
            (97, 232_448),
            (111, 1024),
            (102, 1),
            (103, 1),
            (95, 1),
            (120, 1),
        ] {
            let attribute = std::mem::transmute::<u32, CUdevice_attribute>(attribute);
            assert_eq!(code(cuDeviceGetAttribute(&mut value, attribute, 0)), 0);
            assert_eq!(value, expected, "{attribute:?}");
        }
        assert_eq!(
            code(cuDeviceGetAttribute(
                null_mut(),
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE,
                0
            )),
            1
        );
        assert_eq!(
            code(cuDeviceGetAttribute(
                &mut value,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE,
                9
            )),
            101
        );
    }
}

#[test]
fn errors_have_names_and_texts() {
    let _sim = Simulated::new();
    let mut text = null();
    // SAFETY: the driver's texts are static.
    unsafe {
        assert_eq!(
            code(cuGetErrorName(
                CUresult::CUDA_ERROR_LAUNCH_FAILED,
                &mut text
            )),
            0
        );
        assert_eq!(CStr::from_ptr(text), c"CUDA_ERROR_LAUNCH_FAILED");
        assert_eq!(
            code(cuGetErrorString(
                CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
                &mut text
            )),
            0
        );
        assert_eq!(
            CStr::from_ptr(text),
            c"an illegal memory access was encountered"
        );
        assert_eq!(
            code(cuGetErrorString(CUresult::CUDA_SUCCESS, null_mut())),
            1
        );
    }
}

#[test]
fn what_the_simulator_lacks_is_an_answer() {
    let _sim = Simulated::new();
    // SAFETY: the simulator does not have these; nothing is read.
    unsafe {
        assert_eq!(code(cuTexRefDestroy(null_mut())), 801);
        assert_eq!(code(cuGraphicsUnregisterResource(null_mut())), 801);
    }
}

#[test]
fn bad_handles_are_answers() {
    let _sim = Simulated::new();
    let wild = 0x1234_5678usize;
    // SAFETY: the simulated driver looks handles up and follows none.
    unsafe {
        assert_eq!(code(cuStreamSynchronize(wild as CUstream)), 400);
        assert_eq!(code(cuStreamDestroy_v2(wild as CUstream)), 400);
        assert_eq!(code(cuEventQuery(wild as CUevent)), 400);
        assert_eq!(code(cuEventRecord(null_mut(), null_mut())), 400);
        assert_eq!(code(cuModuleUnload(wild as CUmodule)), 400);
        assert_eq!(code(cuCtxSetCurrent(wild as CUcontext)), 201);
        assert_eq!(code(cuCtxDestroy_v2(null_mut())), 201);
        let launched = cuLaunchKernel(
            null_mut(),
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null_mut(),
            null_mut(),
            null_mut(),
        );
        assert_eq!(code(launched), 400);
        let mut module = null_mut();
        assert_eq!(code(cuModuleLoadData(&mut module, null())), 1);
        assert_eq!(
            code(cuModuleLoadData(&mut module, c"".as_ptr().cast())),
            200
        );
        assert_eq!(
            code(cuModuleLoadData(
                &mut module,
                c"\x7fELF\x02".as_ptr().cast()
            )),
            209
        );
        assert_eq!(
            code(cuModuleLoad(&mut module, c"/no/such/file".as_ptr())),
            301
        );
        assert_eq!(code(cuStreamCreate(null_mut(), 0)), 1);
        assert_eq!(code(cuLaunchHostFunc(null_mut(), None, null_mut())), 1);
    }
}

#[test]
fn contexts_stack_and_die() {
    let mut sim = Simulated::new();
    // SAFETY: pointers to locals, handles of the driver's own.
    unsafe {
        let (mut first, mut second, mut current) = (null_mut(), null_mut(), null_mut());
        cuCtxGetCurrent(&mut first);
        assert!(!first.is_null());
        assert_eq!(code(cuCtxCreate_v2(&mut second, 0, 0)), 0);
        cuCtxGetCurrent(&mut current);
        assert_eq!(current, second);
        let mut memory = 0;
        assert_eq!(code(cuMemAlloc_v2(&mut memory, 64)), 0);
        assert_eq!(code(cuCtxDestroy_v2(second)), 0);
        cuCtxGetCurrent(&mut current);
        assert_eq!(current, first);
        assert_eq!(code(cuMemFree_v2(memory)), 1, "went with its context");
        assert_eq!(code(cuCtxDestroy_v2(first)), 201, "primary");
        sim.context = None;
        assert_eq!(code(cuCtxSynchronize()), 709, "released while current");
        // Another thread has none.
        let other = std::thread::spawn(|| code(cuCtxSynchronize()))
            .join()
            .unwrap();
        assert_eq!(other, 201);
    }
    let again = Context::new(Device::get_device(0).unwrap()).unwrap();
    CurrentContext::synchronize().unwrap();
    drop(again);
}

#[test]
fn reset_kills_all_handles() {
    let sim = Simulated::new();
    let stream = Stream::new(StreamFlags::DEFAULT, None).unwrap();
    gsan_sim::driver::reset();
    // SAFETY: no pointers but to locals.
    unsafe {
        let mut count = 0;
        assert_eq!(code(cuDeviceGetCount(&mut count)), 3, "not initialised");
        cust::init(cust::CudaFlags::empty()).unwrap();
        assert_eq!(code(cuCtxSynchronize()), 201, "no context is current");
    }
    let context = Context::new(Device::get_device(0).unwrap()).unwrap();
    assert!(stream.synchronize().is_err());
    drop((stream, context, sim));
}

extern "C" fn note(data: *mut c_void) {
    // SAFETY: `data` is the leaked pair of `later`.
    let (list, what) = unsafe { *Box::from_raw(data.cast::<(Arc<Mutex<Vec<u32>>>, u32)>()) };
    list.lock().unwrap().push(what);
}

/// Queues a note in a stream.
fn later(list: &Arc<Mutex<Vec<u32>>>, stream: CUstream, what: u32) {
    let data = Box::into_raw(Box::new((list.clone(), what)));
    // SAFETY: `note` takes the box back.
    let queued = unsafe { cuLaunchHostFunc(stream, Some(note), data.cast()) };
    assert_eq!(code(queued), 0);
}

fn raw_stream(flags: u32) -> CUstream {
    let mut stream = null_mut();
    // SAFETY: the result is a local.
    let created = unsafe { cuStreamCreateWithPriority(&mut stream, flags, -9) };
    assert_eq!(code(created), 0);
    stream
}

/// The orders in which three notes come, over many seeds.
fn orders(flags: u32, middle: Option<u32>) -> std::collections::BTreeSet<Vec<u32>> {
    (0..40)
        .map(|seed| {
            let _sim = Simulated::with(common::seeded(seed));
            let list = Arc::new(Mutex::new(Vec::new()));
            let (a, b) = (raw_stream(flags), raw_stream(flags));
            later(&list, a, 1);
            match middle {
                None => later(&list, null_mut(), 2),
                Some(flags) => later(&list, raw_stream(flags), 2),
            }
            later(&list, b, 3);
            CurrentContext::synchronize().unwrap();
            let list = list.lock().unwrap().clone();
            assert_eq!(list.len(), 3);
            list
        })
        .collect()
}

#[test]
fn the_legacy_stream_orders_blocking_streams_only() {
    assert_eq!(orders(0, None), [vec![1, 2, 3]].into());
    assert_eq!(
        orders(1, None).len(),
        6,
        "non-blocking streams know no order"
    );
    assert_eq!(orders(0, Some(0)).len(), 6, "nor do three blocking streams");
}

#[test]
fn the_per_thread_stream_waits_for_the_legacy_stream() {
    for seed in 0..20 {
        let _sim = Simulated::with(common::seeded(seed));
        let list = Arc::new(Mutex::new(Vec::new()));
        let per_thread = 2usize as CUstream;
        later(&list, per_thread, 1);
        later(&list, null_mut(), 2);
        later(&list, per_thread, 3);
        CurrentContext::synchronize().unwrap();
        assert_eq!(*list.lock().unwrap(), [1, 2, 3]);
    }
}

#[test]
fn a_destroyed_stream_still_finishes_before_the_legacy_stream_goes_on() {
    for seed in 0..20 {
        let _sim = Simulated::with(common::seeded(seed));
        let list = Arc::new(Mutex::new(Vec::new()));
        let stream = raw_stream(0);
        later(&list, stream, 1);
        // SAFETY: the handle is the stream's.
        assert_eq!(code(unsafe { cuStreamDestroy_v2(stream) }), 0);
        later(&list, null_mut(), 2);
        // SAFETY: no pointers.
        assert_eq!(code(unsafe { cuStreamSynchronize(null_mut()) }), 0);
        assert_eq!(*list.lock().unwrap(), [1, 2]);
    }
}

#[test]
fn events_order_streams_and_tell_the_time() {
    for seed in 0..20 {
        let _sim = Simulated::with(common::seeded(seed));
        let list = Arc::new(Mutex::new(Vec::new()));
        let (a, b) = (
            raw_stream(1),
            Stream::new(StreamFlags::DEFAULT, None).unwrap(),
        );
        let event = Event::new(EventFlags::DEFAULT).unwrap();
        assert_eq!(event.query().unwrap(), EventStatus::Ready, "never recorded");
        later(&list, a, 1);
        let start = Event::new(EventFlags::DEFAULT).unwrap();
        assert!(start.elapsed_time_f32(&event).is_err());
        start.record(&b).unwrap();
        later(&list, b.as_inner(), 2);
        event.record(&b).unwrap();
        // SAFETY: handles of the driver's own; an event's is its only field.
        unsafe {
            let handle: CUevent = std::mem::transmute_copy(&event);
            assert_eq!(code(cuStreamWaitEvent(a, handle, 0)), 0);
            // A record after the wait does not count for it.
            later(&list, b.as_inner(), 4);
            assert_eq!(code(cuEventRecord(handle, b.as_inner())), 0);
            later(&list, a, 3);
            assert_eq!(code(cuStreamSynchronize(a)), 0);
        }
        let seen = list.lock().unwrap().clone();
        let place = |what| seen.iter().position(|&seen| seen == what).unwrap();
        assert!(place(1) < place(3) && place(2) < place(3), "{seen:?}");
        event.synchronize().unwrap();
        assert!(list.lock().unwrap().contains(&4));
        assert!(event.elapsed_time_f32(&start).unwrap() >= 0.0);
        b.wait_event(
            Event::new(EventFlags::DISABLE_TIMING).unwrap(),
            StreamWaitEventFlags::DEFAULT,
        )
        .unwrap();
    }
}

#[test]
fn host_functions_may_not_call_the_driver_and_may_panic() {
    let _sim = Simulated::new();
    let stream = Stream::new(StreamFlags::DEFAULT, None).unwrap();
    let answer = Arc::new(Mutex::new(0));
    let inner = answer.clone();
    // SAFETY: no pointers.
    stream
        .add_callback(Box::new(move || {
            // SAFETY: no pointers.
            let answer = unsafe { cuCtxSynchronize() };
            *inner.lock().unwrap() = code(answer);
        }))
        .unwrap();
    stream
        .add_callback(Box::new(|| panic!("on purpose")))
        .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(*answer.lock().unwrap(), 800);
}

#[test]
fn streams_wait_for_values_in_memory() {
    let _sim = Simulated::new();
    let (a, b) = (raw_stream(1), raw_stream(1));
    let list = Arc::new(Mutex::new(Vec::new()));
    // SAFETY: device addresses that the driver looks up.
    unsafe {
        let mut word = 0;
        assert_eq!(code(cuMemAlloc_v2(&mut word, 8)), 0);
        assert_eq!(code(cuMemsetD32_v2(word, 0, 2)), 0);
        assert_eq!(code(cuStreamWaitValue32(a, word, 5, 1)), 0);
        later(&list, a, 2);
        later(&list, b, 1);
        assert_eq!(code(cuStreamWriteValue32(b, word, 5, 0)), 0);
        assert_eq!(code(cuStreamSynchronize(a)), 0);
        assert_eq!(*list.lock().unwrap(), [1, 2]);
        // Nobody will ever write this one.
        assert_eq!(code(cuStreamWaitValue32(a, word, 6, 1)), 0);
        assert_eq!(code(cuStreamQuery(a)), 600);
        assert_eq!(code(cuStreamSynchronize(a)), 702);
        let diagnosis = cuda_lazy::diagnosis().unwrap();
        assert_eq!(diagnosis.kind, cuda_lazy::StopKind::Deadlock);
        assert_eq!(code(cuCtxSynchronize()), 702, "the error stays");
        assert_eq!(code(cuMemFree_v2(word)), 702);
        assert_eq!(code(cuDevicePrimaryCtxReset_v2(0)), 0);
        assert_eq!(code(cuCtxSynchronize()), 0);
    }
}

#[test]
fn functions_are_found_by_plain_name() {
    let _sim = Simulated::new();
    let (mut plain, mut second) = (null_mut(), null_mut());
    // SAFETY: names and results are locals.
    unsafe {
        assert_eq!(
            code(cuGetProcAddress(
                c"cuMemAlloc".as_ptr(),
                &mut plain,
                12_000,
                0
            )),
            0
        );
        assert!(!plain.is_null());
        let status = cuda_lazy::ext::cuGetProcAddress_v2(
            c"cuMemAlloc_v2".as_ptr(),
            &mut second,
            12_000,
            0,
            null_mut(),
        );
        assert_eq!(status.result(), Ok(()));
        assert_eq!(plain, second);
        assert_eq!(
            code(cuGetProcAddress(
                c"cuNoSuch".as_ptr(),
                &mut plain,
                12_000,
                0
            )),
            500
        );
    }
}
