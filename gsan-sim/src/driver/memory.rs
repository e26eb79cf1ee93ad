//! Plain, pinned, managed and registered memory.
//!
//! Pinned and managed memory is the host's, and has the same address on the device. Frees without a stream wait for the
//! context's work first, as on a GPU; stream-ordered ones happen in their stream, so a kernel of another stream that still
//! uses the memory faults.

use super::api::{Out, Session, driver_api};
use super::codes::{Answer, Code};
use super::queue::Work;
use super::state::{Allocation, AllocationKind, Driver, Handle};
use crate::machine::{Access, Backing, MapError};

/// Device memory is handed out in multiples of this, as far as counting goes.
const COUNTED: u64 = 512;
/// Pinned memory starts at a page.
const PAGE: u64 = 4096;
/// `CU_MEMHOSTALLOC_*`: portable, device map, write-combined.
const HOST_FLAGS: u32 = 0b111;
/// `CU_MEMHOSTREGISTER_*`: portable, device map, I/O memory, read-only.
const REGISTER_FLAGS: u32 = 0b1111;

fn counted(len: u64) -> u64 {
    len.checked_next_multiple_of(COUNTED).unwrap_or(u64::MAX)
}

impl Driver {
    fn remember(&mut self, at: u64, allocation: Allocation) {
        self.allocations.insert(at, allocation);
    }

    /// Device memory that belongs to a context.
    pub(super) fn allocate_device(&mut self, context: Handle, len: usize) -> Answer<u64> {
        let len = len as u64;
        if len == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = self.context(context)?.device;
        self.charge(device, counted(len))?;
        let Some(at) = self.machine.memory_mut().allocate(device, len) else {
            self.refund(device, counted(len));
            return Err(Code::OUT_OF_MEMORY);
        };
        let id = self.new_handle();
        self.remember(
            at,
            Allocation {
                len,
                kind: AllocationKind::Device,
                context,
                device,
                _backing: None,
                freeing: false,
                id,
            },
        );
        self.grant(at);
        Ok(at)
    }

    /// Gives the rights of plain device memory to its own device, and to the devices whose contexts have peer access.
    fn grant(&mut self, at: u64) {
        let Some(allocation) = self.allocations.get(&at) else {
            return;
        };
        let own = 1u64 << (allocation.device & 63);
        let peers = self
            .contexts
            .values()
            .filter(|context| context.peers & own != 0)
            .fold(0, |bits, context| bits | 1 << (context.device & 63));
        let access = Access {
            read: own | peers,
            write: own | peers,
        };
        let len = allocation.len;
        // The allocation is there, so this can't fail.
        let _ = self.machine.memory_mut().set_access(at, len, access);
    }

    /// After peer access was switched on or off.
    pub(super) fn grant_all(&mut self) {
        let device_memory = |allocation: &Allocation| allocation.kind == AllocationKind::Device;
        let starts: Vec<u64> = self
            .allocations
            .iter()
            .filter(|(_, a)| device_memory(a))
            .map(|(&at, _)| at)
            .collect();
        for at in starts {
            self.grant(at);
        }
    }

    /// Memory of the host's at one address for all.
    fn allocate_host(&mut self, context: Handle, len: usize, kind: AllocationKind) -> Answer<u64> {
        let len = len as u64;
        if len == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = self.context(context)?.device;
        let room = len.checked_add(PAGE).ok_or(Code::OUT_OF_MEMORY)?;
        let backing = Backing::new(room).ok_or(Code::OUT_OF_MEMORY)?;
        let at = (backing.as_ptr() as u64).next_multiple_of(PAGE);
        // SAFETY: the backing is a page longer than `len` and lives in `allocations` until it is unregistered.
        let registered = unsafe { self.machine.memory_mut().register_host(at as *mut u8, len) };
        registered.map_err(|_| Code::OUT_OF_MEMORY)?;
        let id = self.new_handle();
        let _backing = Some(backing);
        self.remember(
            at,
            Allocation {
                len,
                kind,
                context,
                device,
                _backing,
                freeing: false,
                id,
            },
        );
        Ok(at)
    }

    /// Gives an allocation back, whoever uses it.
    fn release(&mut self, at: u64) {
        let Some(allocation) = self.allocations.get(&at) else {
            return;
        };
        match allocation.kind {
            AllocationKind::Device => {
                let (device, len) = (allocation.device, allocation.len);
                self.machine.memory_mut().free(at);
                self.refund(device, counted(len));
            }
            AllocationKind::Pinned(_) | AllocationKind::Managed | AllocationKind::Registered(_) => {
                self.machine.memory_mut().unregister_host(at as *mut u8);
            }
        }
        // The machine no longer knows the memory; now it may go.
        self.allocations.remove(&at);
    }

    /// Gives back all memory of a context.
    pub(super) fn release_memory_of(&mut self, context: Handle) {
        let starts: Vec<u64> = self
            .allocations
            .iter()
            .filter(|(_, a)| a.context == context)
            .map(|(&at, _)| at)
            .collect();
        for at in starts {
            self.release(at);
        }
    }
}

/// A stream has come to a stream-ordered free.
pub(super) fn free_now(driver: &mut Driver, address: u64) {
    driver.release(address);
}

/// Waits for the work of the memory's context and gives the memory back, if its kind is right.
fn free(
    session: &mut Session,
    address: u64,
    wrong: Code,
    right: impl Fn(AllocationKind) -> bool,
) -> Answer {
    let (driver, _) = session.healthy()?;
    let context = match driver.allocations.get(&address) {
        Some(allocation) if right(allocation.kind) && !allocation.freeing => allocation.context,
        _ => return Err(wrong),
    };
    session.wait_for_all(context)?;
    let driver = session.driver()?;
    // Another thread may have freed it during the wait.
    if driver
        .allocations
        .get(&address)
        .is_none_or(|allocation| allocation.freeing)
    {
        return Err(wrong);
    }
    driver.release(address);
    Ok(())
}

fn pinned(session: &mut Session, pointer: &Out<u64>, len: usize, flags: u32) -> Answer {
    pointer.require()?;
    if flags & !HOST_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (driver, context) = session.healthy()?;
    if len == 0 {
        // Unlike device memory: success, and nothing.
        return pointer.set(0);
    }
    pointer.set(driver.allocate_host(context, len, AllocationKind::Pinned(flags))?)
}

/// Frees in the order of a stream.
fn free_in_stream(session: &mut Session, address: u64, stream: Handle) -> Answer {
    let (driver, context) = session.healthy()?;
    driver.stream(context, stream)?;
    if address == 0 {
        return Ok(());
    }
    let captured = driver.is_captured(context, stream)?;
    match driver.allocations.get_mut(&address) {
        Some(allocation) if allocation.kind == AllocationKind::Device && !allocation.freeing => {
            // What a graph frees stays for its next launch.
            allocation.freeing = !captured;
        }
        _ => return Err(Code::INVALID_VALUE),
    }
    driver
        .submit(context, stream, Work::Free { address }, &[])
        .map(|_| ())
}

fn alloc_in_stream(
    session: &mut Session,
    pointer: &Out<u64>,
    len: usize,
    stream: Handle,
) -> Answer {
    pointer.require()?;
    let (driver, context) = session.healthy()?;
    driver.stream(context, stream)?;
    pointer.set(driver.allocate_device(context, len)?)?;
    driver.submit(context, stream, Work::Join, &[]).map(|_| ())
}

/// The handle of each device's one memory pool.
fn pool_of(device: u32) -> u64 {
    0x4750_0000_0000 + u64::from(device) * 64
}

driver_api! {
    fn cuMemGetInfo_v2(s, free: Out<usize>, total: Out<usize>) {
        let (driver, context) = s.healthy()?;
        let device = driver.context(context)?.device;
        let used = driver.devices.get(device as usize).map_or(0, |device| device.used);
        let all = driver.machine.config().memory_bytes;
        free.set(all.saturating_sub(used) as usize)?;
        total.set(all as usize)
    }
    fn cuMemAlloc_v2(s, pointer: Out<u64>, len: usize) {
        pointer.require()?;
        let (driver, context) = s.healthy()?;
        driver.refuse_unsafe()?;
        pointer.set(driver.allocate_device(context, len)?)
    }
    fn cuMemAllocPitch_v2(s, pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32) {
        pointer.require()?;
        pitch.require()?;
        let (driver, context) = s.healthy()?;
        driver.refuse_unsafe()?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(512).ok_or(Code::INVALID_VALUE)?;
        let len = row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?;
        pointer.set(driver.allocate_device(context, len)?)?;
        pitch.set(row)
    }
    fn cuMemFree_v2(s, address: u64) {
        if address == 0 {
            return s.healthy().map(|_| ());
        }
        s.healthy()?.0.refuse_unsafe()?;
        free(s, address, Code::INVALID_VALUE, |kind| {
            matches!(kind, AllocationKind::Device | AllocationKind::Managed)
        })
    }
    fn cuMemAllocAsync(s, pointer: Out<u64>, len: usize, stream: Handle) {
        alloc_in_stream(s, &pointer, len, stream)
    }
    fn cuMemAllocFromPoolAsync(s, pointer: Out<u64>, len: usize, pool: Handle, stream: Handle) {
        let devices = s.driver()?.machine.config().devices;
        if !(0..devices).any(|device| pool_of(device) == pool) {
            return Err(Code::INVALID_VALUE);
        }
        alloc_in_stream(s, &pointer, len, stream)
    }
    fn cuMemFreeAsync(s, address: u64, stream: Handle) { free_in_stream(s, address, stream) }
    fn cuMemAllocHost_v2(s, pointer: Out<u64>, len: usize) { pinned(s, &pointer, len, 0) }
    fn cuMemHostAlloc(s, pointer: Out<u64>, len: usize, flags: u32) { pinned(s, &pointer, len, flags) }
    fn cuMemFreeHost(s, address: u64) {
        free(s, address, Code::INVALID_VALUE, |kind| matches!(kind, AllocationKind::Pinned(_)))
    }
    fn cuMemHostGetDevicePointer_v2(s, pointer: Out<u64>, host: u64, flags: u32) {
        pointer.require()?;
        let (driver, _) = s.healthy()?;
        match driver.allocation_at(host) {
            Some((_, allocation)) if flags == 0 && allocation.kind != AllocationKind::Device => pointer.set(host),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn cuMemHostGetFlags(s, flags: Out<u32>, host: u64) {
        let (driver, _) = s.healthy()?;
        match driver.allocation_at(host) {
            // Memory is always mapped.
            Some((_, Allocation { kind: AllocationKind::Pinned(given), .. })) => flags.set(given | 2),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn cuMemHostRegister_v2(s, host: u64, len: usize, flags: u32) {
        let (driver, context) = s.healthy()?;
        if host == 0 || len == 0 || flags & !REGISTER_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = driver.context(context)?.device;
        let len = len as u64;
        // SAFETY: the caller vouches for its memory until cuMemHostUnregister; that is the function's contract.
        match unsafe { driver.machine.memory_mut().register_host(host as *mut u8, len) } {
            Ok(()) => {}
            Err(MapError::Overlap) => return Err(Code::HOST_MEMORY_ALREADY_REGISTERED),
            Err(_) => return Err(Code::INVALID_VALUE),
        }
        let id = driver.new_handle();
        let kind = AllocationKind::Registered(flags);
        driver.remember(host, Allocation { len, kind, context, device, _backing: None, freeing: false, id });
        Ok(())
    }
    fn cuMemHostUnregister(s, host: u64) {
        free(s, host, Code::HOST_MEMORY_NOT_REGISTERED, |kind| matches!(kind, AllocationKind::Registered(_)))
    }
    fn cuMemAllocManaged(s, pointer: Out<u64>, len: usize, flags: u32) {
        pointer.require()?;
        let (driver, context) = s.healthy()?;
        if !matches!(flags, 1 | 2) {
            return Err(Code::INVALID_VALUE);
        }
        pointer.set(driver.allocate_host(context, len, AllocationKind::Managed)?)
    }
    fn cuMemGetAddressRange_v2(s, base: Out<u64>, len: Out<usize>, address: u64) {
        let (driver, _) = s.healthy()?;
        let (start, bytes) = match driver.allocation_at(address) {
            Some((start, allocation)) => (start, allocation.len),
            None => {
                let region = driver.machine.memory().region(address).ok_or(Code::NOT_FOUND)?;
                (region.start, region.len)
            }
        };
        base.set_if_wanted(start);
        len.set_if_wanted(bytes as usize);
        Ok(())
    }
    fn cuStreamAttachMemAsync(s, stream: Handle, _address: u64, _len: usize, _flags: u32) {
        let (driver, context) = s.healthy()?;
        driver.stream(context, stream).map(|_| ())
    }

    // Every device has one pool, which keeps nothing: what is freed is gone.
    fn cuDeviceGetDefaultMemPool(s, pool: Out<u64>, device: i32) {
        let device = s.driver()?.device(device)?;
        pool.set(pool_of(device))
    }
    fn cuDeviceGetMemPool(s, pool: Out<u64>, device: i32) {
        let device = s.driver()?.device(device)?;
        pool.set(pool_of(device))
    }
    fn cuMemPoolTrimTo(s, _pool: u64, _keep: usize) { s.driver().map(|_| ()) }
    fn cuMemPoolSetAttribute(s, _pool: u64, _attribute: u32, _value: u64) { s.driver().map(|_| ()) }
}
