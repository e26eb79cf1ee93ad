//! Virtual memory management: addresses, memory and the mapping of one to the other, each on its own.

use super::api::{In, Out, Session, driver_api};
use super::codes::{Answer, Code};
use super::multicast::Multicast;
use super::state::{Driver, Handle};
use crate::machine::memory::GRANULARITY;
use crate::machine::{Access, Backing, MapError};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::PipeWriter;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, the only kind there is.
const PINNED: u32 = 1;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
pub(super) const POSIX_FD: u32 = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const ON_DEVICE: u32 = 1;

/// `CUmemLocation`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Location {
    kind: u32,
    id: i32,
}

/// `CUmemAllocationProp`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Properties {
    kind: u32,
    handle_types: u32,
    location: Location,
    windows: u64,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[derive(Clone, Copy)]
#[repr(C)]
struct AccessOf {
    location: Location,
    flags: u32,
}

const _: () = assert!(size_of::<Properties>() == 32 && size_of::<AccessOf>() == 12);

/// Memory without an address.
pub(super) struct Physical {
    pub(super) backing: Arc<Backing>,
    pub(super) device: u32,
    pub(super) len: u64,
    handle_types: u32,
    /// Handles that were not released yet.
    references: u32,
    /// Mappings, and multicast objects that it is bound to.
    pub(super) mappings: u32,
}

struct Mapping {
    len: u64,
    /// Memory, or a multicast object.
    physical: Handle,
    /// Its first byte of that.
    offset: u64,
}

/// A file descriptor that stands for memory. It is the read end of a pipe: a descriptor costs nothing more, and its inode
/// says which memory is meant however often the caller duplicates it.
struct Exported {
    physical: Handle,
    /// Keeps the pipe, so that its inode number can't come up again for another.
    _keep: PipeWriter,
}

/// What of the driver's state belongs to this file.
#[derive(Default)]
pub(super) struct VirtualMemory {
    pub(super) physical: HashMap<Handle, Physical>,
    pub(super) multicasts: HashMap<Handle, Multicast>,
    mappings: BTreeMap<u64, Mapping>,
    /// By device and inode number.
    exported: HashMap<(u64, u64), Exported>,
}

impl VirtualMemory {
    /// The device and mapping that hold an address: device, first byte, bytes.
    pub(super) fn mapping_at(&self, address: u64) -> Option<(u32, u64, u64)> {
        let (&start, mapping) = self.mappings.range(..=address).next_back()?;
        let physical = self.physical.get(&mapping.physical)?;
        (address - start < mapping.len).then_some((physical.device, start, mapping.len))
    }

    /// The memory that is mapped at `len` bytes from an address on, and the first one's place in it.
    pub(super) fn memory_at(&self, address: u64, len: u64) -> Option<(Handle, u64)> {
        let (&start, mapping) = self.mappings.range(..=address).next_back()?;
        let at = address - start;
        let within = at < mapping.len && len <= mapping.len - at;
        within.then_some((mapping.physical, mapping.offset + at))
    }

    /// Where that memory or multicast object is mapped.
    pub(super) fn places_of(&self, object: Handle) -> Vec<u64> {
        let mappings = self.mappings.iter();
        mappings
            .filter(|(_, mapping)| mapping.physical == object)
            .map(|(&start, _)| start)
            .collect()
    }
}

impl Driver {
    pub(super) fn physical(&mut self, handle: Handle) -> Answer<&mut Physical> {
        match self.virtual_memory.physical.get_mut(&handle) {
            Some(physical) if physical.references > 0 => Ok(physical),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// One handle of some memory, or of a multicast object, is given back.
    fn release_memory(&mut self, handle: Handle) -> Answer {
        if self.virtual_memory.multicasts.contains_key(&handle) {
            self.multicast(handle)?.references -= 1;
            self.drop_multicast(handle);
        } else {
            self.physical(handle)?.references -= 1;
            self.drop_physical(handle);
        }
        Ok(())
    }

    fn map(&mut self, address: u64, len: u64, offset: u64, handle: Handle) -> Answer {
        let beyond = |whole: u64| offset.checked_add(len).is_none_or(|end| end > whole);
        let (mapped, beyond) = if self.virtual_memory.multicasts.contains_key(&handle) {
            let multicast = self.multicast(handle)?;
            multicast.complete()?;
            let (whole, bindings) = (multicast.size, multicast.bindings());
            if beyond(whole) {
                return Err(Code::INVALID_VALUE);
            }
            let memory = self.machine.memory_mut();
            (memory.map_multicast(address, offset, len, &bindings), false)
        } else {
            let physical = self.physical(handle)?;
            let (backing, device, whole) =
                (physical.backing.clone(), physical.device, physical.len);
            let memory = self.machine.memory_mut();
            (
                memory.map(device, address, &backing, offset, len),
                beyond(whole),
            )
        };
        match mapped {
            Ok(()) => {}
            Err(MapError::Range) if beyond => return Err(Code::NOT_SUPPORTED),
            Err(_) => return Err(Code::INVALID_VALUE),
        }
        if let Ok(physical) = self.physical(handle) {
            physical.mappings += 1;
        } else {
            self.multicast(handle)?.mappings += 1;
        }
        let mapping = Mapping {
            len,
            physical: handle,
            offset,
        };
        self.virtual_memory.mappings.insert(address, mapping);
        Ok(())
    }

    /// The mapping that starts there is gone.
    fn forget_mapping(&mut self, start: u64) {
        let Some(mapping) = self.virtual_memory.mappings.remove(&start) else {
            return;
        };
        let object = mapping.physical;
        if let Some(physical) = self.virtual_memory.physical.get_mut(&object) {
            physical.mappings -= 1;
            self.drop_physical(object);
        } else if let Some(multicast) = self.virtual_memory.multicasts.get_mut(&object) {
            multicast.mappings -= 1;
            self.drop_multicast(object);
        }
    }

    /// Memory goes when neither handle nor mapping is left.
    pub(super) fn drop_physical(&mut self, handle: Handle) {
        let Some(physical) = self.virtual_memory.physical.get(&handle) else {
            return;
        };
        if physical.references == 0 && physical.mappings == 0 {
            let (device, len) = (physical.device, physical.len);
            self.virtual_memory.physical.remove(&handle);
            self.virtual_memory
                .exported
                .retain(|_, exported| exported.physical != handle);
            self.refund(device, len);
        }
    }

    /// Whether a range lies in one reservation and nothing is mapped there.
    fn is_reserved_and_empty(&self, address: u64, len: usize) -> bool {
        let Some((start, reserved)) = self.machine.memory().reservation(address) else {
            return false;
        };
        let end = address
            .checked_add(len as u64)
            .filter(|end| end - start <= reserved);
        // A mapping does not start before a reservation, so the last one before the end says it all.
        len > 0
            && end.is_some_and(|end| {
                let last = self.virtual_memory.mappings.range(start..end).next_back();
                last.is_none_or(|(&at, mapping)| at + mapping.len <= address)
            })
    }

    /// The mappings that tile a range exactly.
    fn tiles(&self, address: u64, len: usize) -> Answer<Vec<(u64, u64)>> {
        let end = address.checked_add(len as u64).ok_or(Code::INVALID_VALUE)?;
        let mut at = address;
        let mut tiles = Vec::new();
        for (&start, mapping) in self.virtual_memory.mappings.range(address..end) {
            if start != at {
                break;
            }
            tiles.push((start, mapping.len));
            at = start + mapping.len;
        }
        if at == end && len > 0 {
            Ok(tiles)
        } else {
            Err(Code::INVALID_VALUE)
        }
    }
}

fn device_of(driver: &Driver, location: Location) -> Answer<u32> {
    if location.kind != ON_DEVICE {
        return Err(Code::INVALID_VALUE);
    }
    driver.device(location.id)
}

fn check_properties(driver: &Driver, properties: &Properties) -> Answer<u32> {
    if properties.kind != PINNED {
        return Err(Code::INVALID_VALUE);
    }
    if properties.handle_types & !POSIX_FD != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    device_of(driver, properties.location)
}

fn set_access(
    session: &mut Session,
    address: u64,
    len: usize,
    of: &In<AccessOf>,
    count: usize,
) -> Answer {
    let driver = session.driver()?;
    let tiles = driver.tiles(address, len)?;
    if count == 0 {
        return Err(Code::INVALID_VALUE);
    }
    // Read and check everything first: an error changes nothing.
    let mut changes = Vec::new();
    for index in 0..count {
        let AccessOf { location, flags } = of.at(index)?;
        let device = device_of(driver, location)?;
        if !matches!(flags, 0 | 1 | 3) {
            return Err(Code::INVALID_VALUE);
        }
        changes.push((1u64 << (device & 63), flags));
    }
    for (start, len) in tiles {
        let memory = driver.machine.memory_mut();
        let mut access = memory
            .region(start)
            .map_or(Access::NONE, |region| region.access);
        for &(bit, flags) in &changes {
            access.read = if flags & 1 != 0 {
                access.read | bit
            } else {
                access.read & !bit
            };
            access.write = if flags & 2 != 0 {
                access.write | bit
            } else {
                access.write & !bit
            };
        }
        memory
            .set_access(start, len, access)
            .map_err(|_| Code::INVALID_VALUE)?;
    }
    Ok(())
}

fn export(session: &mut Session, out: &Out<i32>, handle: Handle, kind: u32, flags: u64) -> Answer {
    out.require()?;
    let driver = session.driver()?;
    let physical = driver.physical(handle)?;
    if kind != POSIX_FD || flags != 0 || physical.handle_types & kind == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (reader, writer) = std::io::pipe().map_err(|_| Code::OPERATING_SYSTEM)?;
    let fd = reader.into_raw_fd();
    let identity = identity_of(fd).ok_or(Code::OPERATING_SYSTEM)?;
    driver.virtual_memory.exported.insert(
        identity,
        Exported {
            physical: handle,
            _keep: writer,
        },
    );
    out.set(fd)
}

/// What tells an open file from all others.
fn identity_of(fd: i32) -> Option<(u64, u64)> {
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor stays the caller's: it is not closed here, and `fstat` answers an error if it is not open.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let metadata = file.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

driver_api! {
    fn cuMemAddressReserve(s, pointer: Out<u64>, len: usize, align: usize, _hint: u64, flags: u64) {
        pointer.require()?;
        let driver = s.driver()?;
        let aligned = align == 0 || align.is_power_of_two();
        if len == 0 || !(len as u64).is_multiple_of(GRANULARITY) || !aligned || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let at = driver.machine.memory_mut().reserve(len as u64, align as u64).ok_or(Code::OUT_OF_MEMORY)?;
        pointer.set(at)
    }
    fn cuMemAddressFree(s, address: u64, len: usize) {
        let driver = s.driver()?;
        let memory = driver.machine.memory_mut();
        if memory.reservation(address) != Some((address, len as u64)) {
            return Err(Code::INVALID_VALUE);
        }
        let end = address + len as u64;
        if driver.virtual_memory.mappings.range(address..end).next().is_some() {
            return Err(Code::INVALID_VALUE);
        }
        driver.machine.memory_mut().release(address);
        Ok(())
    }
    fn cuMemCreate(s, handle: Out<Handle>, len: usize, properties: In<Properties>, flags: u64) {
        handle.require()?;
        let driver = s.driver()?;
        let properties = properties.get()?;
        let device = check_properties(driver, &properties)?;
        let len = len as u64;
        if len == 0 || !len.is_multiple_of(GRANULARITY) || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver.charge(device, len)?;
        let Some(backing) = Backing::new(len) else {
            driver.refund(device, len);
            return Err(Code::OUT_OF_MEMORY);
        };
        let new = driver.new_handle();
        let handle_types = properties.handle_types;
        let physical = Physical { backing, device, len, handle_types, references: 1, mappings: 0 };
        driver.virtual_memory.physical.insert(new, physical);
        handle.set(new)
    }
    fn cuMemRelease(s, handle: Handle) {
        s.driver()?.release_memory(handle)
    }
    fn cuMemMap(s, address: u64, len: usize, offset: usize, handle: Handle, flags: u64) {
        let driver = s.driver()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver.map(address, len as u64, offset as u64, handle)
    }
    fn cuMemUnmap(s, address: u64, len: usize) {
        let driver = s.driver()?;
        if driver.is_reserved_and_empty(address, len) {
            return Ok(());
        }
        let tiles = driver.tiles(address, len)?;
        driver.machine.memory_mut().unmap(address, len as u64).map_err(|_| Code::INVALID_VALUE)?;
        for (start, _) in tiles {
            driver.forget_mapping(start);
        }
        Ok(())
    }
    fn cuMemSetAccess(s, address: u64, len: usize, of: In<AccessOf>, count: usize) {
        set_access(s, address, len, &of, count)
    }
    fn cuMemGetAccess(s, flags: Out<u64>, location: In<Location>, address: u64) {
        let driver = s.driver()?;
        let device = device_of(driver, location.get()?)?;
        driver.virtual_memory.memory_at(address, 1).ok_or(Code::INVALID_VALUE)?;
        let access = driver.machine.memory().region(address).ok_or(Code::INVALID_VALUE)?.access;
        let bit = 1u64 << (device & 63);
        flags.set(u64::from(access.read & bit != 0) | u64::from(access.write & bit != 0) << 1)
    }
    fn cuMemGetAllocationGranularity(s, granularity: Out<usize>, properties: In<Properties>, option: u32) {
        let driver = s.driver()?;
        check_properties(driver, &properties.get()?)?;
        if option > 1 {
            return Err(Code::INVALID_VALUE);
        }
        granularity.set(GRANULARITY as usize)
    }
    fn cuMemGetAllocationPropertiesFromHandle(s, properties: Out<Properties>, handle: Handle) {
        let driver = s.driver()?;
        let physical = driver.physical(handle)?;
        let location = Location { kind: ON_DEVICE, id: physical.device as i32 };
        let handle_types = physical.handle_types;
        properties.set(Properties { kind: PINNED, handle_types, location, windows: 0, flags: [0; 8] })
    }
    fn cuMemRetainAllocationHandle(s, handle: Out<Handle>, address: u64) {
        handle.require()?;
        let driver = s.driver()?;
        let memory = &mut driver.virtual_memory;
        let (&start, mapping) = memory.mappings.range(..=address).next_back().ok_or(Code::INVALID_VALUE)?;
        if address - start >= mapping.len {
            return Err(Code::INVALID_VALUE);
        }
        match memory.multicasts.get_mut(&mapping.physical) {
            Some(multicast) => multicast.references += 1,
            None => {
                let physical = memory.physical.get_mut(&mapping.physical);
                physical.ok_or(Code::INVALID_VALUE)?.references += 1;
            }
        }
        handle.set(mapping.physical)
    }
    fn cuMemExportToShareableHandle(s, out: Out<i32>, handle: Handle, kind: u32, flags: u64) {
        export(s, &out, handle, kind, flags)
    }
    fn cuMemImportFromShareableHandle(s, handle: Out<Handle>, os_handle: u64, kind: u32) {
        handle.require()?;
        let driver = s.driver()?;
        if kind != POSIX_FD {
            return Err(Code::INVALID_VALUE);
        }
        // The descriptor itself is passed in the pointer's place.
        let identity = identity_of(os_handle as i32).ok_or(Code::INVALID_VALUE)?;
        let exported = driver.virtual_memory.exported.get(&identity).ok_or(Code::INVALID_VALUE)?;
        let physical = exported.physical;
        // Unlike on a GPU, a descriptor alone does not keep memory alive: nobody is told when it is closed.
        driver.virtual_memory.physical.get_mut(&physical).ok_or(Code::INVALID_VALUE)?.references += 1;
        handle.set(physical)
    }
}
