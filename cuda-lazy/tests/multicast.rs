//! Multicast objects of the simulated driver, through the trampolines.

mod common;

use common::{Simulated, code};
use cuda_lazy::ext::{
    CUmulticastObjectProp, cuMulticastAddDevice, cuMulticastBindAddr, cuMulticastBindMem,
    cuMulticastCreate, cuMulticastGetGranularity, cuMulticastUnbind,
};
use cust::launch;
use cust_raw::*;

const GRANULE: usize = 2 << 20;

const KERNEL: &std::ffi::CStr = c".version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 m) {
  .reg .b64 %d<2>; .reg .b32 %r<3>;
  ld.param.u64 %d1, [m];
  multimem.ld_reduce.global.add.u32 %r1, [%d1];
  multimem.red.global.add.u32 [%d1+4], %r1;
  ret;
}";

fn on(device: i32) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device,
    }
}

/// Memory of a device, and the address where it is mapped.
///
/// # Safety
/// `at` is a reserved address with room for a granule.
unsafe fn memory(device: i32, at: u64) -> CUmemGenericAllocationHandle {
    // SAFETY: a C struct of integers and pointers, for which zero is a value (enumerations are set below).
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE;
    properties.location = on(device);
    let mut handle = 0;
    // SAFETY: pointers to locals, and a device address that the driver looks up.
    unsafe {
        assert_eq!(code(cuMemCreate(&mut handle, GRANULE, &properties, 0)), 0);
        assert_eq!(code(cuMemMap(at, GRANULE, 0, handle, 0)), 0);
        allow(at);
    }
    handle
}

/// # Safety
/// A granule is mapped at `at`.
unsafe fn allow(at: u64) {
    let access = [0, 1].map(|device| CUmemAccessDesc {
        location: on(device),
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    });
    // SAFETY: the list is alive and two long.
    let set = unsafe { cuMemSetAccess(at, GRANULE, access.as_ptr(), 2) };
    assert_eq!(code(set), 0);
}

#[test]
fn an_object_binds_memory_of_its_devices() {
    let mut config = gsan_sim::Config::default();
    config.devices = 2;
    let _sim = Simulated::with(config);
    let before = cust::memory::mem_get_info().unwrap().0;
    // SAFETY: pointers to locals, and handles and device addresses that the driver looks up.
    unsafe {
        let mut granularity = 0;
        let properties = CUmulticastObjectProp {
            numDevices: 2,
            size: GRANULE,
            ..Default::default()
        };
        assert_eq!(
            cuMulticastGetGranularity(&mut granularity, &properties, 0).0,
            0
        );
        assert_eq!(granularity, GRANULE);
        let mut object = 0;
        for wrong in [
            CUmulticastObjectProp {
                numDevices: 3,
                ..properties
            },
            CUmulticastObjectProp {
                numDevices: 0,
                ..properties
            },
            CUmulticastObjectProp {
                size: GRANULE + 1,
                ..properties
            },
        ] {
            assert_eq!(cuMulticastCreate(&mut object, &wrong).0, 1);
        }
        assert_eq!(cuMulticastCreate(&mut object, &properties).0, 0);

        let mut start = 0;
        assert_eq!(
            code(cuMemAddressReserve(&mut start, 3 * GRANULE, 0, 0, 0)),
            0
        );
        let own = [start, start + GRANULE as u64];
        let (shared, granule) = (start + 2 * GRANULE as u64, GRANULE);
        let handles = [memory(0, own[0]), memory(1, own[1])];
        assert_eq!(cuMulticastAddDevice(object, 0).0, 0);
        assert_eq!(cuMulticastAddDevice(object, 0).0, 1, "added already");
        let early = cuMulticastBindMem(object, 0, handles[0], 0, granule, 0);
        assert_eq!(early.0, 401, "before all devices are there");
        assert_eq!(code(cuMemMap(shared, granule, 0, object, 0)), 401);
        assert_eq!(cuMulticastAddDevice(object, 1).0, 0);
        assert_eq!(cuMulticastAddDevice(object, 1).0, 1, "it is complete");

        assert_eq!(code(cuMemMap(shared, 2 * granule, 0, object, 0)), 1);
        assert_eq!(code(cuMemMap(shared, granule, 0, object, 0)), 0);
        allow(shared);
        let mut flags = 0;
        assert_eq!(code(cuMemGetAccess(&mut flags, &on(1), shared)), 0);
        assert_eq!(flags, 3);
        let bind = |at| cuMulticastBindMem(object, at, handles[0], 0, granule, 0).0;
        assert_eq!(bind(4), 1);
        assert_eq!(bind(granule), 1);
        assert_eq!(bind(0), 0);
        assert_eq!(bind(0), 1, "bound already");
        assert_eq!(cuMulticastBindAddr(object, 0, own[1] + 4, granule, 0).0, 1);
        assert_eq!(cuMulticastBindAddr(object, 0, own[1], granule, 0).0, 0);
        // What is bound and mapped needs no handles.
        for handle in handles.into_iter().chain([object]) {
            assert_eq!(code(cuMemRelease(handle)), 0);
        }
        assert_eq!(cuMulticastUnbind(object, 0, 0, granule).0, 1, "released");

        let mut again = 0;
        let pointer = shared as *mut std::ffi::c_void;
        assert_eq!(code(cuMemRetainAllocationHandle(&mut again, pointer)), 0);
        assert_eq!(again, object);

        for (at, value) in own.into_iter().zip([7, 9]) {
            assert_eq!(code(cuMemsetD32_v2(at, value, 2)), 0);
        }
        assert_eq!(code(cuMemsetD32_v2(shared, 1, 1)), 1, "no memory itself");
        let module = cust::module::Module::from_ptx_cstr(KERNEL, &[]).unwrap();
        let stream = cust::stream::Stream::new(cust::stream::StreamFlags::DEFAULT, None).unwrap();
        launch!(module.k<<<1, 1, 0, stream>>>(shared)).unwrap();
        stream.synchronize().unwrap();
        let word = |at: u64| {
            let mut word = 0u32;
            let to = (&raw mut word).cast();
            assert_eq!(code(cuMemcpyDtoH_v2(to, at, 4)), 0);
            word
        };
        assert_eq!(own.map(|at| word(at + 4)), [23, 25]);

        // After this only device 1 is left.
        assert_eq!(cuMulticastUnbind(object, 0, 0, granule).0, 0);
        assert_eq!(cuMulticastUnbind(object, 0, 0, granule).0, 1);
        launch!(module.k<<<1, 1, 0, stream>>>(shared)).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(own.map(|at| word(at + 4)), [23, 34]);

        for at in own.into_iter().chain([shared]) {
            assert_eq!(code(cuMemUnmap(at, granule)), 0);
        }
        let held = before - cust::memory::mem_get_info().unwrap().0;
        assert!(held <= GRANULE, "the object's handle keeps one device's");
        assert_eq!(code(cuMemRelease(object)), 0);
        assert_eq!(code(cuMemRelease(object)), 1);
        assert_eq!(code(cuMemAddressFree(start, 3 * granule)), 0);
    }
}
