//! The checked memory: one large range of addresses, half of whose parts is user memory and the rest its shadow.
//!
//! ```text
//! real_base                      shadow_base = real_base + real_size
//! | user memory, real_size bytes | cells, 16 (`wide`) or 6 (`reference`) times as much |
//! ```
//!
//! The cell of an address is found by arithmetic alone:
//! `shadow_base + (address - real_base) / WORD * cell_bytes`. Physical memory for both is created, mapped
//! and made accessible together, and cells are zero whenever a buffer is handed out.
//!
//! A mapping is at least one granule of the driver (2 MiB) and seventeen times that with shadow, so small buffers share
//! granules ("chunks").

use crate::buddy::Buddy;
use crate::cell_format::CellFormat;
use crate::driver::{Device, OUT_OF_MEMORY, Physical, VirtualRange, code_of};
use crate::error::{Error, Result};
use crate::forget::Known;
use gsan_device::layout::WORD;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The user part that is asked for first: with its shadow it is what fits below 64 TiB.
const LARGEST_REAL: u64 = 2 << 40;
/// Less than this is not worth having.
const SMALLEST_REAL: u64 = 1 << 28;
/// Nobody's memory behind each small buffer, so that the first element past its end is not the next one's.
const GUARD: u64 = 16;
/// Where small buffers start: as `cuMemAlloc` aligns.
const SMALL_ALIGNMENT: u64 = 256;

/// Addresses of the parts, for arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) real_base: u64,
    pub(crate) real_size: u64,
    pub(crate) shadow_base: u64,
    pub(crate) format: CellFormat,
}

impl Layout {
    /// The cell of the word that holds `address`; `None` outside the user part.
    pub(crate) fn cell(&self, address: u64) -> Option<u64> {
        let offset = address
            .checked_sub(self.real_base)
            .filter(|&o| o < self.real_size)?;
        Some(self.shadow_base + offset / WORD * self.format.cell_bytes())
    }

    /// The word whose cell lies at `address`; `None` outside the shadow part.
    pub(crate) fn word_of_cell(&self, address: u64) -> Option<u64> {
        let offset = address
            .checked_sub(self.shadow_base)
            .filter(|&o| o < self.real_size * self.format.factor())?;
        Some(self.real_base + offset / self.format.cell_bytes() * WORD)
    }
}

/// A part of the shadow that must be zeroed before the next kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToClear {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// The reservation with its live buffers.
///
/// Dropping it unmaps and releases all memory, then frees the range; kernels that use it must have ended.
pub(crate) struct Reservation {
    layout: Layout,
    tree: Buddy,
    granule: u64,
    mapped: BTreeMap<u64, Mapping>,
    chunks: Vec<Chunk>,
    users: Vec<Rc<Device>>,
    // Last: mappings hold a reference to it as well.
    range: Rc<VirtualRange>,
}

/// Real and shadow memory of one node of the tree.
struct Mapping {
    // First: nothing is forgotten in it once it is being unmapped.
    _known: Known,
    // Held for their mappings.
    _real: Physical,
    _shadow: Physical,
}

/// A mapped granule that small buffers share.
struct Chunk {
    device: u32,
    tree: Buddy,
}

impl Chunk {
    fn holds(&self, address: u64) -> bool {
        self.tree.base() <= address && address - self.tree.base() < self.tree.size()
    }
}

impl Reservation {
    /// Reserves as much as can be had, for use by all of `devices`.
    pub(crate) fn new(devices: &[Rc<Device>], format: CellFormat) -> Result<Reservation> {
        let Some(first) = devices.first() else {
            return Err(Error::Configuration("a session needs a device".into()));
        };
        let mut granule = 1;
        for device in devices {
            granule = Physical::granularity(device)?.max(granule);
        }
        let mut real_size = LARGEST_REAL;
        let range = loop {
            match VirtualRange::new(first, real_size * (1 + format.factor()), granule) {
                Ok(range) => break range,
                Err(e) if real_size <= SMALLEST_REAL => return Err(e),
                Err(_) => real_size /= 2,
            }
        };
        let layout = Layout {
            real_base: range.address,
            real_size,
            shadow_base: range.address + real_size,
            format,
        };
        Ok(Reservation {
            layout,
            tree: Buddy::new(layout.real_base, real_size, granule.min(real_size)),
            granule,
            mapped: BTreeMap::new(),
            chunks: Vec::new(),
            users: devices.to_vec(),
            range: Rc::new(range),
        })
    }

    /// Where the parts are.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Memory for a buffer on `device`, and the part of the shadow that the caller must zero before a kernel uses it.
    pub(crate) fn take(&mut self, device: u32, bytes: u64) -> Result<(u64, ToClear)> {
        if bytes == 0 {
            return Err(Error::EmptyBuffer);
        }
        if bytes <= self.granule / 4 {
            return self.take_small(device, bytes);
        }
        self.take_apart(device, bytes, bytes)
    }

    /// The same with a mapping of its own, of at least `mapped` bytes, a power of two's multiple of which is its address if that
    /// is a multiple of the granule.
    pub(crate) fn take_apart(
        &mut self,
        device: u32,
        bytes: u64,
        mapped: u64,
    ) -> Result<(u64, ToClear)> {
        let mapped = mapped
            .checked_next_multiple_of(self.granule)
            .unwrap_or(u64::MAX);
        let address = self.take_mapped(device, bytes, mapped)?;
        Ok((address, self.to_clear(address, mapped)))
    }

    /// Bytes from a live buffer's address on that are mapped for it alone, and whose cells were cleared with its own.
    pub(crate) fn mapped_for(&self, address: u64, bytes: u64) -> u64 {
        let chunk = self.chunks.iter().find(|c| c.holds(address));
        chunk
            .and_then(|c| c.tree.range(bytes + GUARD))
            .unwrap_or_else(|| bytes.next_multiple_of(self.granule))
    }

    fn take_small(&mut self, device: u32, bytes: u64) -> Result<(u64, ToClear)> {
        let bytes = bytes + GUARD;
        let found = self
            .chunks
            .iter_mut()
            .filter(|c| c.device == device)
            .find_map(|c| {
                c.tree
                    .take(bytes)
                    .map(|a| (a, c.tree.range(bytes).unwrap_or(bytes)))
            });
        let (address, range) = match found {
            Some(found) => found,
            None => {
                let base = self.take_mapped(device, bytes, self.granule)?;
                let mut tree = Buddy::new(base, self.granule, SMALL_ALIGNMENT.min(self.granule));
                let Some(address) = tree.take(bytes) else {
                    return Err(self.full(bytes));
                };
                let range = tree.range(bytes).unwrap_or(bytes);
                self.chunks.push(Chunk { device, tree });
                (address, range)
            }
        };
        Ok((address, self.to_clear(address, range)))
    }

    /// The cells of a part of a live buffer, those of words that it only touches included.
    pub(crate) fn cells_of(&self, address: u64, bytes: u64) -> ToClear {
        let first = address - address % WORD;
        let end = (address + bytes).next_multiple_of(WORD);
        self.to_clear(first, end - first)
    }

    fn to_clear(&self, address: u64, bytes: u64) -> ToClear {
        let offset = address - self.layout.real_base;
        ToClear {
            address: self.layout.shadow_base + offset * self.layout.format.factor(),
            bytes: bytes * self.layout.format.factor(),
        }
    }

    fn full(&self, bytes: u64) -> Error {
        Error::ReservationFull {
            bytes,
            largest: self.tree.largest_free(),
        }
    }

    /// Takes a node of the tree and maps `mapped` bytes of it with their shadow.
    fn take_mapped(&mut self, device: u32, bytes: u64, mapped: u64) -> Result<u64> {
        let Some(owner) = self.users.get(device as usize).cloned() else {
            return Err(Error::NoSuchDevice {
                wanted: device,
                count: self.users.len() as u32,
            });
        };
        let needed = mapped.saturating_mul(1 + self.layout.format.factor());
        let (free, _) = owner.memory()?;
        if needed > free {
            return Err(Error::BufferTooLarge {
                bytes,
                factor: self.layout.format.factor(),
                needed,
                free,
            });
        }
        let Some(address) = self.tree.take(mapped) else {
            return Err(self.full(bytes));
        };
        match self.map(&owner, address, mapped) {
            Ok(mapping) => {
                self.mapped.insert(address, mapping);
                Ok(address)
            }
            Err(e) => {
                self.tree.give_back(address);
                if code_of(&e) == Some(OUT_OF_MEMORY) {
                    return Err(Error::BufferTooLarge {
                        bytes,
                        factor: self.layout.format.factor(),
                        needed,
                        free,
                    });
                }
                Err(e)
            }
        }
    }

    fn map(&self, owner: &Rc<Device>, address: u64, bytes: u64) -> Result<Mapping> {
        let shadow = self.to_clear(address, bytes);
        let (real, cells) = (
            Physical::map(&self.range, owner, &self.users, address, bytes)?,
            Physical::map(
                &self.range,
                owner,
                &self.users,
                shadow.address,
                shadow.bytes,
            )?,
        );
        let factor = self.layout.format.factor();
        Ok(Mapping {
            _known: Known::new(address, bytes, shadow.address, factor, owner),
            _real: real,
            _shadow: cells,
        })
    }

    /// Gives a buffer's memory back; work that uses it must have ended. False, and nothing changed, if `address` is not
    /// what [`Reservation::take`] returned, or was given back before.
    pub(crate) fn give_back(&mut self, address: u64) -> bool {
        if let Some(i) = self.chunks.iter().position(|c| c.holds(address)) {
            let chunk = &mut self.chunks[i];
            if !chunk.tree.give_back(address) {
                return false;
            }
            if chunk.tree.is_empty() {
                let base = chunk.tree.base();
                self.chunks.remove(i);
                self.unmap(base);
            }
            return true;
        }
        self.unmap(address)
    }

    fn unmap(&mut self, address: u64) -> bool {
        self.mapped.remove(&address).is_some() && self.tree.give_back(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_words_have_adjacent_cells_in_the_whole_range() {
        for format in [CellFormat::Wide, CellFormat::Reference] {
            adjacent_cells(format);
        }
    }

    fn adjacent_cells(format: CellFormat) {
        let layout = Layout {
            real_base: 7 << 30,
            real_size: 1 << 30,
            shadow_base: 8 << 30,
            format,
        };
        let last = layout.real_base + layout.real_size - WORD;
        for address in [layout.real_base, layout.real_base + 4096, last - WORD] {
            let (a, b) = (
                layout.cell(address).unwrap(),
                layout.cell(address + WORD).unwrap(),
            );
            assert_eq!(b - a, format.cell_bytes());
            assert_eq!(layout.cell(address + 3), Some(a));
            assert_eq!(layout.word_of_cell(a + 23), Some(address));
        }
        assert_eq!(layout.cell(layout.real_base), Some(layout.shadow_base));
        let end = layout.shadow_base + layout.real_size * format.factor();
        assert_eq!(layout.cell(last), Some(end - format.cell_bytes()));
        assert_eq!(layout.cell(layout.real_base - 1), None);
        assert_eq!(layout.cell(layout.real_base + layout.real_size), None);
        assert_eq!(layout.word_of_cell(end), None);
    }
}
