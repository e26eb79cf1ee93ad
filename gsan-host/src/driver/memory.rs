//! Memory: ordinary, managed, page-locked, and the driver's virtual memory management.

use super::{Device, Stream, check};
use crate::error::Result;
use cust::sys;
use std::ffi::c_void;
use std::rc::Rc;

/// Memory from `cuMemAlloc`.
pub(crate) struct DeviceMemory {
    device: Rc<Device>,
    /// First byte.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

impl DeviceMemory {
    /// At least one byte, contents undefined.
    pub(crate) fn new(device: &Rc<Device>, bytes: u64) -> Result<DeviceMemory> {
        device.enter()?;
        let mut address = 0;
        // SAFETY: `address` is a valid place for the answer.
        check("cuMemAlloc", unsafe {
            sys::cuMemAlloc_v2(&mut address, bytes.max(1) as usize)
        })?;
        Ok(DeviceMemory {
            device: device.clone(),
            address,
            bytes,
        })
    }

    /// All zero; the host waits for it.
    pub(crate) fn zeroed(device: &Rc<Device>, bytes: u64) -> Result<DeviceMemory> {
        let memory = DeviceMemory::new(device, bytes)?;
        fill(device, memory.address, 0, memory.bytes)?;
        Ok(memory)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: allocated by `cuMemAlloc` and freed once.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// Memory from `cuMemAllocManaged`.
pub(crate) struct ManagedMemory(DeviceMemory);

impl ManagedMemory {
    pub(crate) fn new(device: &Rc<Device>, bytes: u64) -> Result<ManagedMemory> {
        const ATTACH_GLOBAL: u32 = 1;
        device.enter()?;
        let mut address = 0;
        // SAFETY: `address` is a valid place for the answer.
        check("cuMemAllocManaged", unsafe {
            sys::cuMemAllocManaged(&mut address, bytes.max(1) as usize, ATTACH_GLOBAL)
        })?;
        // `cuMemFree` frees both kinds.
        Ok(ManagedMemory(DeviceMemory {
            device: device.clone(),
            address,
            bytes,
        }))
    }

    pub(crate) fn address(&self) -> u64 {
        self.0.address
    }
}

/// Page-locked host memory that devices see.
pub(crate) struct PinnedMemory {
    device: Rc<Device>,
    host: *mut u8,
    /// Its address for kernels.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

impl PinnedMemory {
    /// All zero.
    pub(crate) fn new(device: &Rc<Device>, bytes: u64) -> Result<PinnedMemory> {
        device.enter()?;
        let mut host: *mut c_void = std::ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: `host` is a valid place for the answer.
        check("cuMemHostAlloc", unsafe {
            sys::cuMemHostAlloc(&mut host, bytes.max(1) as usize, flags)
        })?;
        let mut memory = PinnedMemory {
            device: device.clone(),
            host: host.cast(),
            address: 0,
            bytes,
        };
        // SAFETY: the driver gave `bytes` bytes, and no device knows them yet.
        unsafe { std::ptr::write_bytes(memory.host, 0, bytes as usize) };
        // SAFETY: `host` is what the driver gave, and `address` a valid place for the answer.
        check("cuMemHostGetDevicePointer", unsafe {
            sys::cuMemHostGetDevicePointer_v2(&mut memory.address, host, 0)
        })?;
        Ok(memory)
    }

    /// Its address in the host: valid, and writable by devices at any time, as long as this object lives.
    pub(crate) fn host(&self) -> *mut u8 {
        self.host
    }

    /// Writes a value where no device looks at it now.
    pub(crate) fn store<T: bytemuck::Pod>(&self, offset: u64, value: &T) {
        let bytes = bytemuck::bytes_of(value);
        if offset
            .checked_add(bytes.len() as u64)
            .is_some_and(|end| end <= self.bytes)
        {
            // SAFETY: in bounds, as just checked.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    self.host.add(offset as usize),
                    bytes.len(),
                )
            };
        }
    }

    /// Copies `bytes` bytes out.
    pub(crate) fn load(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let mut data = vec![0; bytes as usize];
        if offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.bytes)
        {
            // SAFETY: in bounds, as just checked.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.host.add(offset as usize),
                    data.as_mut_ptr(),
                    data.len(),
                )
            };
        }
        data
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: allocated by `cuMemHostAlloc` and freed once.
            let _ = unsafe { sys::cuMemFreeHost(self.host.cast()) };
        }
    }
}

fn properties(device: &Device) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(device),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: Default::default(),
    }
}

fn location(device: &Device) -> sys::CUmemLocation {
    sys::CUmemLocation {
        type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device.ordinal as i32,
    }
}

/// A reserved range of addresses, nothing mapped. Mappings must be gone before it is dropped.
pub(crate) struct VirtualRange {
    device: Rc<Device>,
    /// First byte.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

impl VirtualRange {
    pub(crate) fn new(device: &Rc<Device>, bytes: u64, alignment: u64) -> Result<VirtualRange> {
        device.enter()?;
        let mut address = 0;
        // SAFETY: `address` is a valid place for the answer.
        check("cuMemAddressReserve", unsafe {
            sys::cuMemAddressReserve(&mut address, bytes as usize, alignment as usize, 0, 0)
        })?;
        Ok(VirtualRange {
            device: device.clone(),
            address,
            bytes,
        })
    }
}

impl Drop for VirtualRange {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: reserved by us and freed once.
            let _ = unsafe { sys::cuMemAddressFree(self.address, self.bytes as usize) };
        }
    }
}

/// Physical memory, mapped at an address of a [`VirtualRange`] until it is dropped.
pub(crate) struct Physical {
    device: Rc<Device>,
    handle: sys::CUmemGenericAllocationHandle,
    address: u64,
    bytes: u64,
    mapped: bool,
    // Keeps the range until the mapping is gone.
    _range: Rc<VirtualRange>,
}

impl Physical {
    /// What sizes and addresses of mappings are multiples of.
    pub(crate) fn granularity(device: &Device) -> Result<u64> {
        device.enter()?;
        let mut granularity = 0;
        let option = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: both pointers are to live values.
        check("cuMemGetAllocationGranularity", unsafe {
            sys::cuMemGetAllocationGranularity(&mut granularity, &properties(device), option)
        })?;
        Ok((granularity as u64).max(1).next_power_of_two())
    }

    /// Creates memory on `device`, maps it at `address` and lets all of `users` read and write it.
    pub(crate) fn map(
        range: &Rc<VirtualRange>,
        device: &Rc<Device>,
        users: &[Rc<Device>],
        address: u64,
        bytes: u64,
    ) -> Result<Physical> {
        device.enter()?;
        let mut handle = 0;
        // SAFETY: both pointers are to live values.
        check("cuMemCreate", unsafe {
            sys::cuMemCreate(&mut handle, bytes as usize, &properties(device), 0)
        })?;
        let mut physical = Physical {
            device: device.clone(),
            handle,
            address,
            bytes,
            mapped: false,
            _range: range.clone(),
        };
        // SAFETY: plain numbers; the driver checks them.
        check("cuMemMap", unsafe {
            sys::cuMemMap(address, bytes as usize, 0, handle, 0)
        })?;
        physical.mapped = true;
        allow(address, bytes, users)?;
        Ok(physical)
    }
}

/// Lets all of `users` read and write what is mapped there.
pub(super) fn allow(address: u64, bytes: u64, users: &[Rc<Device>]) -> Result<()> {
    let access: Vec<sys::CUmemAccessDesc> = users
        .iter()
        .map(|user| sys::CUmemAccessDesc {
            location: location(user),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        })
        .collect();
    // SAFETY: the list is alive and has the length that is passed.
    check("cuMemSetAccess", unsafe {
        sys::cuMemSetAccess(address, bytes as usize, access.as_ptr(), access.len())
    })
}

impl Drop for Physical {
    fn drop(&mut self) {
        if self.device.enter().is_err() {
            return;
        }
        if self.mapped {
            // SAFETY: mapped by us and unmapped once.
            let _ = unsafe { sys::cuMemUnmap(self.address, self.bytes as usize) };
        }
        // SAFETY: created by us and released once.
        let _ = unsafe { sys::cuMemRelease(self.handle) };
    }
}

/// Fills device memory; the host waits.
pub(crate) fn fill(device: &Device, address: u64, value: u8, bytes: u64) -> Result<()> {
    device.enter()?;
    // SAFETY: plain numbers; the driver checks them.
    check("cuMemsetD8", unsafe {
        sys::cuMemsetD8_v2(address, value, bytes as usize)
    })
}

/// Fills device memory in a stream.
pub(crate) fn fill_async(address: u64, value: u8, bytes: u64, stream: &Stream) -> Result<()> {
    stream.enter()?;
    // SAFETY: plain numbers; the driver checks them; the stream lives.
    check("cuMemsetD8Async", unsafe {
        sys::cuMemsetD8Async(address, value, bytes as usize, stream.raw())
    })
}

/// Copies between device addresses in a stream.
pub(crate) fn copy_async(to: u64, from: u64, bytes: u64, stream: &Stream) -> Result<()> {
    stream.enter()?;
    // SAFETY: plain numbers; the driver checks them; the stream lives.
    check("cuMemcpyDtoDAsync", unsafe {
        sys::cuMemcpyDtoDAsync_v2(to, from, bytes as usize, stream.raw())
    })
}

/// Copies host bytes to a device address; the host waits.
pub(crate) fn copy_from_host(device: &Device, to: u64, data: &[u8]) -> Result<()> {
    device.enter()?;
    // SAFETY: the slice is alive until the call, which is synchronous, returns.
    check("cuMemcpyHtoD", unsafe {
        sys::cuMemcpyHtoD_v2(to, data.as_ptr().cast(), data.len())
    })
}

/// Copies from a device address to the host; the host waits.
pub(crate) fn copy_to_host(device: &Device, data: &mut [u8], from: u64) -> Result<()> {
    device.enter()?;
    // SAFETY: the slice is alive until the call, which is synchronous, returns.
    check("cuMemcpyDtoH", unsafe {
        sys::cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), from, data.len())
    })
}
