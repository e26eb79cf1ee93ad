//! Copies and fills as the streams run them: between any two addresses, device's or host's, in one to three dimensions.

use crate::machine::memory::ALLOCATIONS;
use crate::machine::{FaultKind, Memory, MemoryFault, RegionKind};

/// A copy of `depth` slices of `height` rows of `width` bytes.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    pub(super) to: Side,
    pub(super) from: Side,
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) depth: u64,
}

/// One end of a copy: its first byte, and how far apart rows and slices are.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) address: u64,
    pub(super) pitch: u64,
    pub(super) slice: u64,
}

impl Copy {
    /// `len` bytes in a row.
    pub(super) fn linear(to: u64, from: u64, len: u64) -> Copy {
        let side = |address| Side {
            address,
            pitch: 0,
            slice: 0,
        };
        Copy {
            to: side(to),
            from: side(from),
            width: len,
            height: 1,
            depth: 1,
        }
    }

    /// The rows' first bytes, target and source.
    fn rows(&self) -> impl Iterator<Item = (u64, u64)> {
        let row = |side: &Side, y: u64, z: u64| {
            side.address
                .wrapping_add(side.pitch.wrapping_mul(y))
                .wrapping_add(side.slice.wrapping_mul(z))
        };
        (0..self.depth).flat_map(move |z| {
            (0..self.height).map(move |y| (row(&self.to, y, z), row(&self.from, y, z)))
        })
    }

    /// Whether both sides are there and may be used, all rows of them.
    pub(super) fn is_possible(&self, memory: &Memory) -> bool {
        self.rows().all(|(to, from)| {
            locate(memory, to, self.width).is_ok()
                && locate(memory, from, self.width).is_ok()
                && permitted(memory, to, self.width, true)
                && permitted(memory, from, self.width, false)
        })
    }
}

/// `count` elements in each of `height` rows.
#[derive(Debug, Clone)]
pub(super) struct Fill {
    pub(super) to: u64,
    pub(super) pattern: Vec<u8>,
    pub(super) count: u64,
    pub(super) pitch: u64,
    pub(super) height: u64,
}

/// A stream waits until `flags` holds of a word and `value`.
#[derive(Debug, Clone)]
pub(super) struct WaitValue {
    pub(super) address: u64,
    pub(super) value: u64,
    /// 4 or 8.
    pub(super) bytes: usize,
    pub(super) flags: u32,
}

/// Whose memory an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Known to the machine: device memory, or pinned, managed and registered memory of the host's.
    Machine,
    /// Any other memory of the host's.
    Host,
}

/// Whether a range is free of mapped memory that no device may use so. Plain memory is open to all copies.
pub(super) fn permitted(memory: &Memory, address: u64, len: u64, write: bool) -> bool {
    let end = address.saturating_add(len);
    let mut at = address;
    while at < end {
        let Some(region) = memory.region(at) else {
            return true;
        };
        let rights = if write {
            region.access.write
        } else {
            region.access.read
        };
        if region.kind == RegionKind::Mapping && rights == 0 {
            return false;
        }
        at = region.start + region.len;
    }
    true
}

/// Whose memory a range is. What is neither on the device nor where a host pointer can be is a fault.
pub(super) fn locate(memory: &Memory, address: u64, len: u64) -> Result<Place, MemoryFault> {
    if memory.region(address).is_some() {
        return memory.check(address, len).map(|()| Place::Machine);
    }
    if address == 0 || address.checked_add(len).is_none_or(|end| end > ALLOCATIONS) {
        return Err(MemoryFault {
            kind: FaultKind::OutOfBounds,
            address,
        });
    }
    Ok(Place::Host)
}

/// Does a copy.
pub(super) fn run(memory: &mut Memory, copy: &Copy) -> Result<(), MemoryFault> {
    if copy.width == 0 {
        return Ok(());
    }
    copy.rows()
        .try_for_each(|(to, from)| row(memory, to, from, copy.width))
}

fn row(memory: &mut Memory, to: u64, from: u64, len: u64) -> Result<(), MemoryFault> {
    let too_long = MemoryFault {
        kind: FaultKind::OutOfBounds,
        address: from,
    };
    let bytes = usize::try_from(len).map_err(|_| too_long)?;
    match (locate(memory, to, len)?, locate(memory, from, len)?) {
        (Place::Machine, Place::Machine) => memory.copy(to, from, len),
        (Place::Machine, Place::Host) => {
            // SAFETY: the caller of the copy vouches for its host memory until the copy is done; not null (`locate`).
            let from = unsafe { std::slice::from_raw_parts(from as *const u8, bytes) };
            memory.write(to, from)
        }
        (Place::Host, Place::Machine) => {
            // SAFETY: as above, for writing.
            let to = unsafe { std::slice::from_raw_parts_mut(to as *mut u8, bytes) };
            memory.read(from, to)
        }
        (Place::Host, Place::Host) => {
            // SAFETY: as above, for both; `copy` allows overlap.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
            Ok(())
        }
    }
}

/// Does a fill.
pub(super) fn fill(memory: &mut Memory, fill: &Fill) -> Result<(), MemoryFault> {
    (0..fill.height).try_for_each(|y| {
        memory.fill(
            fill.to.wrapping_add(fill.pitch.wrapping_mul(y)),
            &fill.pattern,
            fill.count,
        )
    })
}

/// Whether a wait holds.
pub(super) fn compares(memory: &Memory, wait: &WaitValue) -> Result<bool, MemoryFault> {
    let mut word = [0; 8];
    memory.read(wait.address, &mut word[..wait.bytes])?;
    let word = u64::from_le_bytes(word);
    Ok(match (wait.flags & 3, wait.bytes) {
        // Greater or equal, in cyclic order.
        (0, 4) => (word as u32).wrapping_sub(wait.value as u32) as i32 >= 0,
        (0, _) => word.wrapping_sub(wait.value) as i64 >= 0,
        (1, _) => word == wait.value,
        (2, _) => word & wait.value != 0,
        (_, 4) => !(word | wait.value) as u32 != 0,
        (_, _) => !(word | wait.value) != 0,
    })
}
