//! Memory, copies and mappings of the simulated driver, through the trampolines.

mod common;

use common::{Simulated, code};
use cust::error::CudaError;
use cust::memory::{CopyDestination, DeviceBuffer, LockedBuffer, UnifiedBuffer};
use cust::stream::{Stream, StreamFlags};
use cust_raw::*;
use std::ptr::{null, null_mut};

#[test]
fn copies_go_there_and_back() {
    let _sim = Simulated::new();
    let numbers: Vec<u32> = (0..1000).collect();
    let buffer = DeviceBuffer::from_slice(&numbers).unwrap();
    let mut back = vec![0; 1000];
    buffer.copy_to(&mut back).unwrap();
    assert_eq!(back, numbers);

    let mut other = DeviceBuffer::<u32>::zeroed(1000).unwrap();
    other.copy_from(&buffer).unwrap();
    assert_eq!(other.as_host_vec().unwrap(), numbers);
}

#[test]
fn fills_have_three_widths_and_rows() {
    let _sim = Simulated::new();
    // SAFETY: every pointer is to a local or to memory of the size that is named.
    unsafe {
        let mut memory = 0;
        let mut pitch = 0;
        assert_eq!(
            code(cuMemAllocPitch_v2(&mut memory, &mut pitch, 24, 4, 4)),
            0
        );
        assert!(pitch >= 24);
        let mut bytes = vec![0u8; pitch * 4];
        assert_eq!(code(cuMemsetD8_v2(memory, 0xff, pitch * 4)), 0);
        assert_eq!(code(cuMemsetD2D16_v2(memory, pitch, 0x1234, 12, 2)), 0);
        assert_eq!(
            code(cuMemsetD32Async(
                memory + 2 * pitch as u64,
                0xdead_beef,
                6,
                null_mut()
            )),
            0
        );
        assert_eq!(
            code(cuMemcpyDtoH_v2(
                bytes.as_mut_ptr().cast(),
                memory,
                bytes.len()
            )),
            0
        );
        assert_eq!(bytes[..4], [0x34, 0x12, 0x34, 0x12]);
        assert_eq!(bytes[24], 0xff);
        assert_eq!(bytes[pitch..pitch + 2], [0x34, 0x12]);
        assert_eq!(
            bytes[2 * pitch..2 * pitch + 5],
            [0xef, 0xbe, 0xad, 0xde, 0xef]
        );
        assert_eq!(bytes[3 * pitch], 0xff);
        assert_eq!(code(cuMemsetD32_v2(memory + 2, 0, 1)), 1, "misaligned");
        assert_eq!(
            code(cuMemsetD8_v2(memory, 0, pitch * 4 + 1)),
            1,
            "past the end"
        );

        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: null(),
            srcDevice: memory,
            srcArray: null_mut(),
            srcPitch: pitch,
            dstXInBytes: 2,
            dstY: 1,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: bytes.as_mut_ptr().cast(),
            dstDevice: 0,
            dstArray: null_mut(),
            dstPitch: 10,
            WidthInBytes: 4,
            Height: 2,
        };
        bytes.fill(0);
        assert_eq!(code(cuMemcpy2D_v2(&copy)), 0);
        assert_eq!(bytes[10..17], [0, 0, 0x34, 0x12, 0x34, 0x12, 0]);
        assert_eq!(bytes[20..24], [0, 0, 0x34, 0x12]);
    }
}

#[test]
fn wrong_frees_and_copies_are_answers() {
    let _sim = Simulated::new();
    // SAFETY: the driver looks addresses up; none of these is read.
    unsafe {
        let mut memory = 0;
        assert_eq!(code(cuMemAlloc_v2(&mut memory, 0)), 1);
        assert_eq!(code(cuMemAlloc_v2(null_mut(), 16)), 1);
        assert_eq!(code(cuMemAlloc_v2(&mut memory, 16)), 0);
        assert_eq!(code(cuMemcpyDtoH_v2(null_mut(), memory, 4)), 1);
        let mut word = 0u32;
        let to = (&raw mut word).cast();
        assert_eq!(code(cuMemcpyDtoH_v2(to, memory + 13, 4)), 1, "past the end");
        assert_eq!(code(cuMemFree_v2(memory + 4)), 1, "not its start");
        assert_eq!(code(cuMemFreeHost(memory as *mut _)), 1, "not pinned");
        assert_eq!(code(cuMemFree_v2(memory)), 0);
        assert_eq!(code(cuMemFree_v2(memory)), 1, "twice");
        assert_eq!(code(cuMemFreeAsync(memory, null_mut())), 1);
        assert_eq!(code(cuMemcpyDtoH_v2(to, memory, 4)), 1, "freed");
        assert_eq!(code(cuMemFree_v2(0)), 0);
        assert_eq!(code(cuMemFree_v2(0xdead_0000)), 1);
    }
}

#[test]
fn memory_ends() {
    let mut config = gsan_sim::Config::default();
    config.memory_bytes = 1 << 20;
    let _sim = Simulated::with(config);
    let half = DeviceBuffer::<u8>::zeroed(600 << 10).unwrap();
    assert_eq!(
        DeviceBuffer::<u8>::zeroed(600 << 10).err(),
        Some(CudaError::OutOfMemory)
    );
    assert_eq!(
        cust::memory::mem_get_info().unwrap(),
        ((1 << 20) - (600 << 10), 1 << 20)
    );
    drop(half);
    DeviceBuffer::<u8>::zeroed(600 << 10).unwrap();
    // SAFETY: nothing is written to the pointer on failure.
    unsafe {
        let mut memory = 0;
        assert_eq!(code(cuMemAlloc_v2(&mut memory, usize::MAX)), 2);
    }
}

#[test]
fn pinned_and_managed_memory_has_one_address() {
    let _sim = Simulated::new();
    let pinned = LockedBuffer::new(&7u64, 100).unwrap();
    let address = pinned.as_ptr() as u64;
    // SAFETY: the results are locals.
    unsafe {
        let mut device = 0;
        assert_eq!(
            code(cuMemHostGetDevicePointer_v2(
                &mut device,
                address as *mut _,
                0
            )),
            0
        );
        assert_eq!(device, address);
        let mut kind = 0u32;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        assert_eq!(
            code(cuPointerGetAttribute(
                (&raw mut kind).cast(),
                attribute,
                address + 8
            )),
            0
        );
        assert_eq!(kind, 1);
        let mut flags = 0;
        assert_eq!(code(cuMemHostGetFlags(&mut flags, address as *mut _)), 0);
        assert_eq!(flags & 2, 2);
        let local = 0u64;
        let unknown = &raw const local as u64;
        assert_eq!(
            code(cuPointerGetAttribute(
                (&raw mut kind).cast(),
                attribute,
                unknown
            )),
            1
        );
        // Fills reach it, and the call has waited.
        assert_eq!(code(cuMemsetD8_v2(address, 1, 8)), 0);
    }
    assert_eq!(pinned[0], 0x0101_0101_0101_0101);
    assert_eq!(pinned[1], 7);

    let mut managed = UnifiedBuffer::new(&5u32, 8).unwrap();
    managed[3] = 9;
    let device = DeviceBuffer::from_slice(&managed).unwrap();
    assert_eq!(device.as_host_vec().unwrap(), [5, 5, 5, 9, 5, 5, 5, 5]);
}

#[test]
fn host_memory_registers_once() {
    let _sim = Simulated::new();
    let mut memory = vec![1u8; 8192];
    let at = memory.as_mut_ptr();
    // SAFETY: the vector outlives its registration.
    unsafe {
        assert_eq!(code(cuMemHostRegister_v2(at.cast(), 8192, 0)), 0);
        assert_eq!(code(cuMemHostRegister_v2(at.add(100).cast(), 100, 0)), 712);
        assert_eq!(code(cuMemsetD8_v2(at as u64 + 8, 3, 8)), 0);
        assert_eq!(code(cuMemHostUnregister(at.cast())), 0);
        assert_eq!(code(cuMemHostUnregister(at.cast())), 713);
    }
    assert_eq!(memory[7..17], [1, 3, 3, 3, 3, 3, 3, 3, 3, 1]);
}

#[test]
fn asynchronous_copies_keep_the_stream_order() {
    let _sim = Simulated::new();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let mut pinned = LockedBuffer::new(&1u32, 64).unwrap();
    // SAFETY: the buffers outlive the wait below.
    unsafe {
        let mut memory = 0;
        assert_eq!(
            code(cuMemAllocAsync(&mut memory, 256, stream.as_inner())),
            0
        );
        // Pageable: the bytes are taken at once.
        let mut pageable = vec![2u32; 64];
        assert_eq!(
            code(cuMemcpyHtoDAsync_v2(
                memory,
                pageable.as_ptr().cast(),
                256,
                stream.as_inner()
            )),
            0
        );
        pageable.fill(77);
        assert_eq!(
            code(cuMemcpyDtoHAsync_v2(
                pinned.as_mut_ptr().cast(),
                memory,
                256,
                stream.as_inner()
            )),
            0
        );
        assert_eq!(code(cuMemsetD32Async(memory, 3, 64, stream.as_inner())), 0);
        assert_eq!(pinned[0], 1, "nothing runs before the host waits");
        assert_eq!(code(cuMemFreeAsync(memory, stream.as_inner())), 0);
        assert_eq!(code(cuMemFreeAsync(memory, stream.as_inner())), 1, "twice");
        stream.synchronize().unwrap();
        assert_eq!(pinned[0], 2);
        assert_eq!(code(cuMemFree_v2(memory)), 1, "gone");
    }
}

const GRANULE: usize = 2 << 20;

fn properties() -> CUmemAllocationProp {
    // SAFETY: a C struct of integers and pointers, for which zero is a value (enumerations are set below).
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes =
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties
}

#[test]
fn mapped_memory_reserves_maps_exports_and_goes() {
    let _sim = Simulated::new();
    let properties = properties();
    // SAFETY: pointers to locals, and device addresses that the driver looks up.
    unsafe {
        let mut granularity = 0;
        let minimum = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        assert_eq!(
            code(cuMemGetAllocationGranularity(
                &mut granularity,
                &properties,
                minimum
            )),
            0
        );
        assert_eq!(granularity, GRANULE);

        let (mut at, mut memory) = (0, 0);
        let huge = 16 << 40;
        assert_eq!(code(cuMemAddressReserve(&mut at, huge, 0, 0, 0)), 0);
        assert_eq!(at % GRANULE as u64, 0);
        assert_eq!(
            code(cuMemCreate(&mut memory, 2 * GRANULE, &properties, 0)),
            0
        );
        assert_eq!(code(cuMemCreate(&mut memory, 100, &properties, 0)), 1);
        let place = at + (1 << 40);
        assert_eq!(code(cuMemMap(place, 2 * GRANULE, 0, memory, 0)), 0);
        assert_eq!(
            code(cuMemMap(place, 2 * GRANULE, 0, memory, 0)),
            1,
            "mapped already"
        );
        assert_eq!(code(cuMemMap(at + 3, GRANULE, 0, memory, 0)), 1);
        let access = CUmemAccessDesc {
            location: properties.location,
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        assert_eq!(
            code(cuMemSetAccess(place, GRANULE, &access, 1)),
            1,
            "half a mapping"
        );
        assert_eq!(code(cuMemSetAccess(place, 2 * GRANULE, &access, 1)), 0);
        let mut flags = 0;
        assert_eq!(
            code(cuMemGetAccess(&mut flags, &properties.location, place)),
            0
        );
        assert_eq!(flags, 3);
        assert_eq!(code(cuMemsetD32_v2(place, 0x5a5a_5a5a, 16)), 0);

        // The same memory at a second place, through a file descriptor.
        let (mut fd, mut second) = (-1i32, 0);
        let posix = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        assert_eq!(
            code(cuMemExportToShareableHandle(
                (&raw mut fd).cast(),
                memory,
                posix,
                0
            )),
            0
        );
        assert!(fd >= 0);
        let os_handle = fd as usize as *mut std::ffi::c_void;
        assert_eq!(
            code(cuMemImportFromShareableHandle(
                &mut second,
                os_handle,
                posix
            )),
            0
        );
        let not_exported = null_mut();
        assert_eq!(
            code(cuMemImportFromShareableHandle(
                &mut second,
                not_exported,
                posix
            )),
            1
        );
        drop(<std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(fd));
        let twin = place + (1 << 40);
        assert_eq!(code(cuMemMap(twin, 2 * GRANULE, 0, second, 0)), 0);
        let mut word = 0u32;
        let to = (&raw mut word).cast::<std::ffi::c_void>();
        assert_eq!(code(cuMemcpyDtoH_v2(to, twin + 60, 4)), 1, "no right to it");
        assert_eq!(code(cuMemSetAccess(twin, 2 * GRANULE, &access, 1)), 0);
        assert_eq!(code(cuMemcpyDtoH_v2(to, twin + 60, 4)), 0);
        assert_eq!(word, 0x5a5a_5a5a);

        // Handles may go before the mappings.
        let before = cust::memory::mem_get_info().unwrap().0;
        assert_eq!(code(cuMemRelease(memory)), 0);
        assert_eq!(code(cuMemRelease(second)), 0);
        assert_eq!(code(cuMemRelease(second)), 1, "released already");
        assert_eq!(code(cuMemAddressFree(at, huge)), 1, "still mapped");
        assert_eq!(code(cuMemUnmap(place, 2 * GRANULE)), 0);
        assert_eq!(
            code(cuMemUnmap(place, 2 * GRANULE)),
            0,
            "nothing is left to do"
        );
        assert_eq!(cust::memory::mem_get_info().unwrap().0, before);
        assert_eq!(code(cuMemUnmap(twin, 2 * GRANULE)), 0);
        assert_eq!(
            cust::memory::mem_get_info().unwrap().0,
            before + 2 * GRANULE
        );
        assert_eq!(code(cuMemAddressFree(at, GRANULE)), 1, "not all of it");
        assert_eq!(code(cuMemAddressFree(at, huge)), 0);
    }
}
