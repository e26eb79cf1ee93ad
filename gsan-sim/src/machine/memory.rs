//! The unified 64-bit address space: device memory of all devices, mapped (VMM) memory, and the host's pinned memory at
//! its own addresses.
//!
//! Everything is a *region*: a byte range with a pointer to host memory behind it and the devices' rights. Plain
//! allocations are regions of exactly their size, with at least a guard gap behind them, so that a kernel that runs off
//! its buffer faults. Reservations are numbers only. Device addresses lie above 2^48, where no host pointer can be.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;

use rustc_hash::FxHashMap;

mod multicast;

pub use multicast::Binding;

use super::texture::Texture;

use super::stop::FaultKind;

/// Granularity of mapped memory.
pub const GRANULARITY: u64 = 2 << 20;
/// Plain allocations live from here on.
pub const ALLOCATIONS: u64 = 1 << 48;
/// Reservations (VMM) live from here on.
pub const RESERVATIONS: u64 = (1 << 48) + (1 << 46);
/// The end of device addresses.
pub const DEVICE_END: u64 = 1 << 49;
/// The largest reservation, as on an H200 (which refuses 128 TiB).
pub const LARGEST_RESERVATION: u64 = 64 << 40;
/// Alignment of plain allocations.
pub const ALLOCATION_ALIGN: u64 = 512;

/// Host memory behind device memory: zeroed, committed by the host when it is touched.
#[derive(Debug)]
pub struct Backing {
    ptr: NonNull<u8>,
    layout: Layout,
}

// SAFETY: `Backing` owns its memory; all access goes through raw pointers under the machine's `&self`/`&mut self`.
unsafe impl Send for Backing {}
// SAFETY: as above; `Backing` itself hands out nothing but the pointer.
unsafe impl Sync for Backing {}

impl Backing {
    /// `None`: the host has not that much memory.
    pub fn new(len: u64) -> Option<Arc<Backing>> {
        // Alignment 16 makes the standard allocator use `calloc`, which leaves fresh pages uncommitted.
        let layout = Layout::from_size_align(usize::try_from(len).ok()?.max(16), 16).ok()?;
        // SAFETY: the layout's size is not zero.
        let ptr = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Arc::new(Backing { ptr, layout }))
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.layout.size() as u64
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The first byte's host address.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.ptr.as_ptr(), self.layout) }
    }
}

/// Which devices may read and write a region: one bit per device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Bit d: device d may read.
    pub read: u64,
    /// Bit d: device d may write.
    pub write: u64,
}

impl Access {
    /// Nobody.
    pub const NONE: Access = Access { read: 0, write: 0 };
    /// Every device.
    pub const ALL: Access = Access {
        read: u64::MAX,
        write: u64::MAX,
    };

    /// One device, reading and writing.
    pub const fn device(device: u32) -> Access {
        Access {
            read: 1 << (device & 63),
            write: 1 << (device & 63),
        }
    }
}

/// What a region is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionKind {
    /// [`Memory::allocate`].
    Allocation,
    /// [`Memory::map`].
    Mapping,
    /// [`Memory::map_multicast`].
    Multicast,
    /// [`Memory::register_host`].
    Host,
    /// A module's variables, a kernel's parameters: the machine's own.
    Internal,
}

impl RegionKind {
    fn is_mapped(self) -> bool {
        matches!(self, RegionKind::Mapping | RegionKind::Multicast)
    }
}

/// What is known of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionInfo {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// What it is.
    pub kind: RegionKind,
    /// The device it was made for (0 for host memory).
    pub device: u32,
    /// The rights.
    pub access: Access,
}

/// A wrong access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at {address:#x}")]
pub struct MemoryFault {
    /// What was wrong.
    pub kind: FaultKind,
    /// The first address that was wrong.
    pub address: u64,
}

/// Why a mapping was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// Something is mapped there already.
    #[error("the range overlaps memory that is mapped already: unmap it first")]
    Overlap,
    /// Not a multiple of [`GRANULARITY`], empty, or beyond the backing's end.
    #[error(
        "address, offset and length must be multiples of 2 MiB inside a reservation and its memory"
    )]
    Range,
    /// Nothing to unmap there.
    #[error("no mapping starts and ends there: unmap what was mapped")]
    NotMapped,
}

#[derive(Debug, Clone)]
struct Region {
    end: u64,
    host: *mut u8,
    access: Access,
    kind: RegionKind,
    device: u32,
    _backing: Option<Arc<Backing>>,
}

impl Region {
    /// Refuses an access to multicast memory at `address`.
    fn has_memory(&self, address: u64) -> Result<(), MemoryFault> {
        if self.kind == RegionKind::Multicast {
            let kind = FaultKind::Multicast;
            return Err(MemoryFault { kind, address });
        }
        Ok(())
    }
}

/// A cached region: the fast way from an address to the host's memory.
#[derive(Debug, Clone, Copy)]
struct Cached {
    start: u64,
    end: u64,
    host: *mut u8,
    access: Access,
    kind: RegionKind,
}

impl Cached {
    fn is_constant(&self) -> bool {
        self.kind == RegionKind::Internal && self.access.write == 0
    }
}

const CACHE: usize = 64;
const NOT_CACHED: Cached = Cached {
    start: 1,
    end: 0,
    host: std::ptr::null_mut(),
    access: Access::NONE,
    kind: RegionKind::Internal,
};

/// The address space.
///
/// It does not count who has how much: the driver does, against [`crate::Config::memory_bytes`].
#[derive(Debug)]
pub struct Memory {
    regions: BTreeMap<u64, Region>,
    reservations: BTreeMap<u64, u64>,
    multicasts: BTreeMap<u64, multicast::Multicast>,
    cursor: u64,
    cache: [Cached; CACHE],
    /// Texture and surface objects by handle.
    pub(crate) textures: FxHashMap<u64, Arc<Texture>>,
}

// SAFETY: the raw pointers point into `Backing`s that the regions own, or to registered host memory, whose owner has
// promised (`register_host`) that it may be accessed from any thread that holds the machine.
unsafe impl Send for Memory {}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

impl Memory {
    /// An empty address space.
    pub fn new() -> Memory {
        Memory {
            regions: BTreeMap::new(),
            reservations: BTreeMap::new(),
            multicasts: BTreeMap::new(),
            cursor: ALLOCATIONS,
            cache: [NOT_CACHED; CACHE],
            textures: FxHashMap::default(),
        }
    }

    /// Sets `size` bytes of addresses aside (rounded up to 2 MiB). `None`: no such gap is left.
    pub fn reserve(&mut self, size: u64, align: u64) -> Option<u64> {
        let size = size
            .checked_next_multiple_of(GRANULARITY)
            .filter(|&s| s > 0 && s <= LARGEST_RESERVATION)?;
        let align = align.max(GRANULARITY).checked_next_power_of_two()?;
        let mut at = RESERVATIONS.checked_next_multiple_of(align)?;
        for (&start, &len) in &self.reservations {
            if at.checked_add(size)? <= start {
                break;
            }
            at = at.max(start + len).checked_next_multiple_of(align)?;
        }
        if at.checked_add(size)? > DEVICE_END {
            return None;
        }
        self.reservations.insert(at, size);
        Some(at)
    }

    /// Gives a reservation back; false if none starts there.
    pub fn release(&mut self, va: u64) -> bool {
        self.reservations.remove(&va).is_some()
    }

    /// The reservation (start, bytes) that holds an address.
    pub fn reservation(&self, va: u64) -> Option<(u64, u64)> {
        let (&start, &len) = self.reservations.range(..=va).next_back()?;
        (va - start < len).then_some((start, len))
    }

    /// Plain device memory (`cuMemAlloc`), zeroed, exactly `len` bytes long: the byte after it faults.
    /// All devices may access it; the driver narrows that with [`Memory::set_access`].
    pub fn allocate(&mut self, device: u32, len: u64) -> Option<u64> {
        self.place(device, len, RegionKind::Allocation)
    }

    /// The machine's own memory.
    pub(crate) fn allocate_internal(&mut self, device: u32, len: u64) -> Option<u64> {
        self.place(device, len, RegionKind::Internal)
    }

    fn place(&mut self, device: u32, len: u64, kind: RegionKind) -> Option<u64> {
        let len = len.max(1);
        let start = self.find_gap(len)?;
        let backing = Backing::new(len)?;
        let host = backing.as_ptr();
        let end = start + len;
        self.insert(
            start,
            Region {
                end,
                host,
                access: Access::ALL,
                kind,
                device,
                _backing: Some(backing),
            },
        );
        Some(start)
    }

    /// Addresses are not reused before the zone has been walked through, so that a stale pointer faults.
    fn find_gap(&mut self, len: u64) -> Option<u64> {
        const GUARD: u64 = 64 << 10;
        let room = len
            .checked_next_multiple_of(ALLOCATION_ALIGN)?
            .checked_add(GUARD)?;
        if self.cursor.checked_add(room)? <= RESERVATIONS && self.is_free(self.cursor, room) {
            let start = self.cursor;
            self.cursor += room;
            return Some(start);
        }
        let mut at = ALLOCATIONS;
        for (&start, region) in self.regions.range(ALLOCATIONS..RESERVATIONS) {
            if at + room <= start {
                break;
            }
            at = (region.end + GUARD).next_multiple_of(ALLOCATION_ALIGN);
        }
        if at.checked_add(room)? > RESERVATIONS {
            return None;
        }
        self.cursor = at + room;
        Some(at)
    }

    fn is_free(&self, start: u64, len: u64) -> bool {
        self.regions
            .range(..start + len)
            .next_back()
            .is_none_or(|(_, r)| r.end <= start)
    }

    fn insert(&mut self, start: u64, region: Region) {
        self.regions.insert(start, region);
        self.flush();
    }

    fn flush(&mut self) {
        self.cache = [NOT_CACHED; CACHE];
    }

    /// Frees plain memory; `None` if no allocation starts there, else its size.
    pub fn free(&mut self, va: u64) -> Option<u64> {
        match self.regions.get(&va) {
            Some(r) if r.kind == RegionKind::Allocation => self.remove(va),
            _ => None,
        }
    }

    pub(crate) fn free_internal(&mut self, va: u64) -> Option<u64> {
        match self.regions.get(&va) {
            Some(r) if r.kind == RegionKind::Internal => self.remove(va),
            _ => None,
        }
    }

    fn remove(&mut self, va: u64) -> Option<u64> {
        let region = self.regions.remove(&va)?;
        self.flush();
        Some(region.end - va)
    }

    /// Maps `len` bytes of `backing` from `offset` on at `va`, without rights; all multiples of 2 MiB, inside one
    /// reservation.
    pub fn map(
        &mut self,
        device: u32,
        va: u64,
        backing: &Arc<Backing>,
        offset: u64,
        len: u64,
    ) -> Result<(), MapError> {
        let in_backing = offset
            .checked_add(len)
            .is_some_and(|end| end <= backing.len());
        if !offset.is_multiple_of(GRANULARITY) || !in_backing {
            return Err(MapError::Range);
        }
        self.may_be_mapped(va, len)?;
        // SAFETY: `offset + len` is within the backing, checked above.
        let host = unsafe { backing.as_ptr().add(offset as usize) };
        let region = Region {
            end: va + len,
            host,
            access: Access::NONE,
            kind: RegionKind::Mapping,
            device,
            _backing: Some(backing.clone()),
        };
        self.insert(va, region);
        Ok(())
    }

    /// Whether the range may become a mapping: of whole granules, in one reservation, with nothing there yet.
    fn may_be_mapped(&self, va: u64, len: u64) -> Result<(), MapError> {
        let aligned = [va, len].iter().all(|x| x % GRANULARITY == 0) && len > 0;
        let in_reservation = self
            .reservation(va)
            .is_some_and(|(start, size)| len <= size && va - start <= size - len);
        if !aligned || !in_reservation {
            return Err(MapError::Range);
        }
        if !self.is_free(va, len) {
            return Err(MapError::Overlap);
        }
        Ok(())
    }

    /// Takes away all mappings of a range that consists of whole mappings.
    pub fn unmap(&mut self, va: u64, len: u64) -> Result<(), MapError> {
        for start in self.mappings(va, len)? {
            self.forget_multicast(start);
            self.regions.remove(&start);
        }
        self.flush();
        Ok(())
    }

    /// Sets the rights of a range that consists of whole mappings, or of one plain allocation.
    pub fn set_access(&mut self, va: u64, len: u64, access: Access) -> Result<(), MapError> {
        if let Some(r) = self.regions.get_mut(&va).filter(|r| !r.kind.is_mapped()) {
            r.access = access;
        } else {
            for start in self.mappings(va, len)? {
                if let Some(r) = self.regions.get_mut(&start) {
                    r.access = access;
                }
            }
        }
        self.flush();
        Ok(())
    }

    /// The starts of the mappings that tile the range exactly.
    fn mappings(&self, va: u64, len: u64) -> Result<Vec<u64>, MapError> {
        let end = va.checked_add(len).ok_or(MapError::Range)?;
        let mut at = va;
        let mut starts = Vec::new();
        for (&start, region) in self.regions.range(va..end) {
            if start != at || !region.kind.is_mapped() {
                break;
            }
            starts.push(start);
            at = region.end;
        }
        if at == end && !starts.is_empty() {
            Ok(starts)
        } else {
            Err(MapError::NotMapped)
        }
    }

    /// Makes host memory accessible at its own address (`cuMemHostRegister`, pinned and managed memory).
    ///
    /// # Safety
    /// `ptr` must be valid for reads and writes of `len` bytes, from any thread, until [`Memory::unregister_host`].
    pub unsafe fn register_host(&mut self, ptr: *mut u8, len: u64) -> Result<(), MapError> {
        let start = ptr as u64;
        let end = start
            .checked_add(len)
            .filter(|&e| len > 0 && start > 0 && e <= ALLOCATIONS)
            .ok_or(MapError::Range)?;
        if !self.is_free(start, len) {
            return Err(MapError::Overlap);
        }
        let region = Region {
            end,
            host: ptr,
            access: Access::ALL,
            kind: RegionKind::Host,
            device: 0,
            _backing: None,
        };
        self.insert(start, region);
        Ok(())
    }

    /// The reverse of [`Memory::register_host`]; the size, or `None` if nothing was registered there.
    pub fn unregister_host(&mut self, ptr: *mut u8) -> Option<u64> {
        match self.regions.get(&(ptr as u64)) {
            Some(r) if r.kind == RegionKind::Host => self.remove(ptr as u64),
            _ => None,
        }
    }

    /// The region that holds an address.
    pub fn region(&self, va: u64) -> Option<RegionInfo> {
        let (&start, r) = self.regions.range(..=va).next_back()?;
        (va < r.end).then_some(RegionInfo {
            start,
            len: r.end - start,
            kind: r.kind,
            device: r.device,
            access: r.access,
        })
    }

    /// Whether every byte of the range has memory.
    pub fn check(&self, va: u64, len: u64) -> Result<(), MemoryFault> {
        self.pieces(va, len, |_, _| ())
    }

    /// The host address of a range that lies within one region.
    pub fn translate(&self, va: u64, len: u64) -> Result<*mut u8, MemoryFault> {
        let fault = |address| MemoryFault {
            kind: FaultKind::OutOfBounds,
            address,
        };
        let (&start, r) = self.regions.range(..=va).next_back().ok_or(fault(va))?;
        if va >= r.end {
            return Err(fault(va));
        }
        if len > r.end - va {
            return Err(fault(r.end));
        }
        r.has_memory(va)?;
        // SAFETY: `va - start` is less than the region's length, and the region's memory is that long.
        Ok(unsafe { r.host.add((va - start) as usize) })
    }

    /// Calls `f` with the host memory of each piece of the range, in order; checks the whole range first.
    fn pieces(
        &self,
        va: u64,
        len: u64,
        mut f: impl FnMut(*mut u8, usize),
    ) -> Result<(), MemoryFault> {
        let end = va.checked_add(len).ok_or(MemoryFault {
            kind: FaultKind::OutOfBounds,
            address: va,
        })?;
        let mut found = Vec::new();
        let mut at = va;
        while at < end {
            let fault = MemoryFault {
                kind: FaultKind::OutOfBounds,
                address: at,
            };
            let (&start, r) = self.regions.range(..=at).next_back().ok_or(fault)?;
            if at >= r.end {
                return Err(fault);
            }
            r.has_memory(at)?;
            let n = r.end.min(end) - at;
            // SAFETY: `at` lies in the region and so does `at + n`.
            found.push((unsafe { r.host.add((at - start) as usize) }, n as usize));
            at += n;
        }
        for (ptr, n) in found {
            f(ptr, n);
        }
        Ok(())
    }

    /// Copies out of device (or registered host) memory.
    pub fn read(&self, va: u64, to: &mut [u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        self.pieces(va, to.len() as u64, |ptr, n| {
            // SAFETY: `ptr` is valid for `n` bytes (`pieces`), `to` has them left; `copy` allows overlap with
            // registered host memory.
            unsafe { std::ptr::copy(ptr, to[done..].as_mut_ptr(), n) };
            done += n;
        })
    }

    /// Copies into device (or registered host) memory.
    pub fn write(&mut self, va: u64, from: &[u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        self.pieces(va, from.len() as u64, |ptr, n| {
            // SAFETY: as in `read`.
            unsafe { std::ptr::copy(from[done..].as_ptr(), ptr, n) };
            done += n;
        })
    }

    /// Copies within the address space; the ranges may overlap.
    pub fn copy(&mut self, to: u64, from: u64, len: u64) -> Result<(), MemoryFault> {
        self.check(to, len)?;
        self.check(from, len)?;
        const CHUNK: u64 = 1 << 20;
        let mut buffer = vec![0; CHUNK.min(len) as usize];
        let chunks = len.div_ceil(CHUNK);
        for i in 0..chunks {
            // Backwards when the target lies above, so that overlapping bytes are read before they are written.
            let i = if to > from { chunks - 1 - i } else { i };
            let n = CHUNK.min(len - i * CHUNK) as usize;
            self.read(from + i * CHUNK, &mut buffer[..n])?;
            self.write(to + i * CHUNK, &buffer[..n])?;
        }
        Ok(())
    }

    /// Writes `count` copies of `pattern`.
    pub fn fill(&mut self, va: u64, pattern: &[u8], count: u64) -> Result<(), MemoryFault> {
        let overflow = MemoryFault {
            kind: FaultKind::OutOfBounds,
            address: va,
        };
        let len = count.checked_mul(pattern.len() as u64).ok_or(overflow)?;
        let width = pattern.len().max(1);
        let mut phase = 0;
        self.pieces(va, len, |ptr, n| {
            if pattern.iter().all(|&b| b == pattern[0]) {
                // SAFETY: `ptr` is valid for `n` bytes.
                unsafe { ptr.write_bytes(pattern[0], n) };
            } else {
                for i in 0..n {
                    // SAFETY: `i < n`.
                    unsafe { ptr.add(i).write(pattern[(phase + i) % width]) };
                }
            }
            phase += n;
        })
    }

    /// The executor's way in: the host address of an access by a kernel on `device` that lies within one region.
    #[inline]
    pub(crate) fn access(
        &mut self,
        device: u32,
        va: u64,
        len: u64,
        write: bool,
    ) -> Result<*mut u8, MemoryFault> {
        let slot = (va >> 16) as usize % CACHE;
        let cached = self.cache[slot];
        let bit = 1u64 << (device & 63);
        let right = if write {
            cached.access.write
        } else {
            cached.access.read
        };
        if va >= cached.start && va < cached.end && len <= cached.end - va && right & bit != 0 {
            // SAFETY: the address lies in a live region (the cache is flushed whenever regions change).
            return Ok(unsafe { cached.host.add((va - cached.start) as usize) });
        }
        self.access_slow(device, va, len, write, slot)
    }

    /// Whether the address is in memory of the machine's own that nobody may write.
    pub(crate) fn is_constant(&self, va: u64) -> bool {
        let cached = &self.cache[(va >> 16) as usize % CACHE];
        if va >= cached.start && va < cached.end {
            return cached.is_constant();
        }
        self.region(va)
            .is_some_and(|r| r.kind == RegionKind::Internal && r.access.write == 0)
    }

    #[cold]
    fn access_slow(
        &mut self,
        device: u32,
        va: u64,
        len: u64,
        write: bool,
        slot: usize,
    ) -> Result<*mut u8, MemoryFault> {
        let host = self.translate(va, len)?;
        if let Some((&start, r)) = self.regions.range(..=va).next_back() {
            let bit = 1u64 << (device & 63);
            if (if write { r.access.write } else { r.access.read }) & bit == 0 {
                let kind = if write && r.access.read & bit != 0 {
                    FaultKind::ReadOnly
                } else {
                    FaultKind::NoAccess
                };
                return Err(MemoryFault { kind, address: va });
            }
            self.cache[slot] = Cached {
                start,
                end: r.end,
                host: r.host,
                access: r.access,
                kind: r.kind,
            };
        }
        Ok(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffers_first_byte_past_the_end_faults() {
        let mut m = Memory::new();
        for len in [1, 3, 512, 513, 100_000] {
            let va = m.allocate(0, len).unwrap();
            assert!(m.check(va, len).is_ok());
            assert_eq!(m.check(va, len + 1).unwrap_err().address, va + len);
            assert!(m.access(0, va + len - 1, 1, true).is_ok());
            assert!(m.access(0, va + len - 1, 2, true).is_err());
            assert!(m.access(0, va.wrapping_sub(1), 1, false).is_err());
        }
        assert!(m.check(0, 1).is_err());
        assert!(m.check(u64::MAX, 2).is_err());
    }

    #[test]
    fn freed_memory_faults_and_its_address_is_not_reused_soon() {
        let mut m = Memory::new();
        let a = m.allocate(0, 64).unwrap();
        assert!(m.access(0, a, 4, true).is_ok());
        assert_eq!(m.free(a), Some(64));
        assert_eq!(m.free(a), None);
        assert!(m.access(0, a, 4, true).is_err());
        assert_ne!(m.allocate(0, 64).unwrap(), a);
    }

    #[test]
    fn reservations_are_numbers_only() {
        let mut m = Memory::new();
        let big = m.reserve(64 << 40, 64 << 40).unwrap();
        assert_eq!(big % (64 << 40), 0);
        assert!(m.reserve(128 << 40, 0).is_none());
        let small = m.reserve(1, 0).unwrap();
        assert!(small < big || small >= big + (64 << 40));
        assert!(m.check(big, 1).is_err());
        assert!(m.release(big) && !m.release(big));
        assert!(m.reserve(u64::MAX, 0).is_none());
        assert!(m.reserve(1, u64::MAX).is_none());
    }

    #[test]
    fn mappings_alias_and_have_rights() {
        let mut m = Memory::new();
        let va = m.reserve(8 << 20, 0).unwrap();
        let b = Backing::new(4 << 20).unwrap();
        m.map(0, va, &b, 0, 4 << 20).unwrap();
        m.map(0, va + (4 << 20), &b, 2 << 20, 2 << 20).unwrap();
        assert_eq!(m.map(0, va, &b, 0, 2 << 20), Err(MapError::Overlap));
        assert_eq!(m.map(0, va + 1, &b, 0, 2 << 20), Err(MapError::Range));
        assert_eq!(
            m.map(0, va + (6 << 20), &b, 0, 4 << 20),
            Err(MapError::Range)
        );
        assert_eq!(
            m.access(0, va, 4, false).unwrap_err().kind,
            FaultKind::NoAccess
        );
        m.set_access(va, 6 << 20, Access { read: 3, write: 1 })
            .unwrap();
        assert!(m.access(0, va, 4, true).is_ok());
        assert!(m.access(1, va, 4, false).is_ok());
        assert_eq!(
            m.access(1, va, 4, true).unwrap_err().kind,
            FaultKind::ReadOnly
        );
        m.write(va + (2 << 20), b"hello").unwrap();
        let mut out = [0; 5];
        m.read(va + (4 << 20), &mut out).unwrap();
        assert_eq!(&out, b"hello");
        // Across the two mappings.
        m.fill(va + (4 << 20) - 3, &[1, 2, 3], 2).unwrap();
        m.read(va + (4 << 20), &mut out).unwrap();
        assert_eq!(&out[..3], &[1, 2, 3]);
        assert_eq!(m.unmap(va, 2 << 20), Err(MapError::NotMapped));
        m.unmap(va, 6 << 20).unwrap();
        assert!(m.check(va, 1).is_err());
    }

    #[test]
    fn host_memory_is_at_its_own_address() {
        let mut m = Memory::new();
        let mut data = vec![7u8; 32];
        let ptr = data.as_mut_ptr();
        // SAFETY: `data` outlives the registration.
        unsafe { m.register_host(ptr, 32) }.unwrap();
        let mut out = [0; 2];
        m.read(ptr as u64 + 30, &mut out).unwrap();
        assert_eq!(out, [7, 7]);
        assert!(m.read(ptr as u64 + 31, &mut out).is_err());
        assert_eq!(m.unregister_host(ptr), Some(32));
        assert!(m.check(ptr as u64, 1).is_err());
    }

    #[test]
    fn overlapping_copies_move_bytes() {
        let mut m = Memory::new();
        let va = m.allocate(0, 3 << 20).unwrap();
        let bytes: Vec<u8> = (0..(2 << 20) + 5).map(|i: u32| (i % 251) as u8).collect();
        m.write(va, &bytes).unwrap();
        m.copy(va + 7, va, bytes.len() as u64).unwrap();
        let mut out = vec![0; bytes.len()];
        m.read(va + 7, &mut out).unwrap();
        assert!(out == bytes);
        m.copy(va, va + 7, bytes.len() as u64).unwrap();
        m.read(va, &mut out).unwrap();
        assert!(out == bytes);
    }
}
