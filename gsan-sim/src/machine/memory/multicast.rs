//! Multicast memory: a range of addresses that stands for memory of several devices at once. Only `multimem` instructions
//! may use it.
//!
//! Such a range is a region without memory of its own. Each piece of memory that is bound to it has one more mapping,
//! its *alias*, at an address that no program knows; a `multimem` instruction becomes accesses of the aliases.

use super::{Access, Backing, GRANULARITY, MapError, Memory, MemoryFault, Region, RegionKind};
use crate::machine::stop::FaultKind;
use std::sync::Arc;

/// Where the aliases begin: above everything that a program can name.
const ALIASES: u64 = 1 << 52;

/// Memory that is bound to a multicast object.
#[derive(Debug, Clone)]
pub struct Binding {
    /// The memory's device.
    pub device: u32,
    /// The first byte in the object.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// The memory.
    pub backing: Arc<Backing>,
    /// The first byte in the memory.
    pub offset: u64,
}

/// What a multicast range stands for.
#[derive(Debug, Default)]
pub(super) struct Multicast {
    /// The first byte in its object.
    at: u64,
    aliases: Vec<Alias>,
}

/// A piece of a binding that a range shows.
#[derive(Debug)]
struct Alias {
    /// In the object.
    at: u64,
    len: u64,
    address: u64,
}

impl Memory {
    /// Maps `len` bytes of a multicast object, from its byte `at` on, at `va`, without rights.
    pub fn map_multicast(
        &mut self,
        va: u64,
        at: u64,
        len: u64,
        bindings: &[Binding],
    ) -> Result<(), MapError> {
        self.may_be_mapped(va, len)?;
        if !at.is_multiple_of(GRANULARITY) {
            return Err(MapError::Range);
        }
        let region = Region {
            end: va + len,
            host: std::ptr::null_mut(),
            access: Access::NONE,
            kind: RegionKind::Multicast,
            device: 0,
            _backing: None,
        };
        self.insert(va, region);
        let aliases = Vec::new();
        self.multicasts.insert(va, Multicast { at, aliases });
        self.bind_multicast(va, bindings);
        Ok(())
    }

    /// What the object of the range that is mapped at `va` consists of now.
    pub fn bind_multicast(&mut self, va: u64, bindings: &[Binding]) {
        self.forget_aliases(va);
        let Some(len) = self.regions.get(&va).map(|r| r.end - va) else {
            return;
        };
        let Some(mut multicast) = self.multicasts.remove(&va) else {
            return;
        };
        for binding in bindings {
            let from = binding.at.max(multicast.at);
            let end = (binding.at + binding.len).min(multicast.at + len);
            if from >= end {
                continue;
            }
            let last = self.regions.last_key_value().map_or(0, |(_, r)| r.end);
            let address = last.max(ALIASES).next_multiple_of(GRANULARITY) + GRANULARITY;
            let offset = binding.offset + (from - binding.at);
            // SAFETY: whoever binds memory binds no more than there is (`offset + len` of the binding is within it).
            let host = unsafe { binding.backing.as_ptr().add(offset as usize) };
            let region = Region {
                end: address + (end - from),
                host,
                access: Access::ALL,
                kind: RegionKind::Internal,
                device: binding.device,
                _backing: Some(binding.backing.clone()),
            };
            self.insert(address, region);
            multicast.aliases.push(Alias {
                at: from,
                len: end - from,
                address,
            });
        }
        self.multicasts.insert(va, multicast);
    }

    /// The range at `va` goes.
    pub(super) fn forget_multicast(&mut self, va: u64) {
        self.forget_aliases(va);
        self.multicasts.remove(&va);
    }

    fn forget_aliases(&mut self, va: u64) {
        let gone = self.multicasts.get_mut(&va).map(|m| m.aliases.split_off(0));
        for alias in gone.into_iter().flatten() {
            self.remove(alias.address);
        }
    }

    /// The aliases of `len` bytes at `va` for a kernel on `device`: one for each device that has memory there.
    pub(crate) fn multicast(
        &self,
        device: u32,
        va: u64,
        len: u64,
        write: bool,
    ) -> Result<Vec<u64>, MemoryFault> {
        let fault = |kind| MemoryFault { kind, address: va };
        let found = self.multicasts.range(..=va).next_back();
        let region = found.and_then(|(start, _)| self.regions.get(start));
        let (Some((&start, multicast)), Some(region)) = (found, region) else {
            return Err(fault(FaultKind::Multicast));
        };
        if va >= region.end || len > region.end - va {
            return Err(fault(FaultKind::Multicast));
        }
        let right = if write {
            region.access.write
        } else {
            region.access.read
        };
        if right & 1 << (device & 63) == 0 {
            return Err(fault(FaultKind::NoAccess));
        }
        let at = multicast.at + (va - start);
        let holds = |a: &&Alias| a.at <= at && at - a.at < a.len && len <= a.len - (at - a.at);
        let aliases = multicast.aliases.iter().filter(holds);
        let addresses: Vec<u64> = aliases.map(|a| a.address + (at - a.at)).collect();
        if addresses.is_empty() {
            return Err(fault(FaultKind::OutOfBounds));
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_stands_for_all_that_is_bound_to_it() {
        let mut m = Memory::new();
        let two = 2 * GRANULARITY;
        let va = m.reserve(2 * two, 0).unwrap();
        let plain = va + two;
        let memory = [Backing::new(two).unwrap(), Backing::new(two).unwrap()];
        let bind = |device: u32, at, len, offset| Binding {
            device,
            at,
            len,
            backing: memory[device as usize].clone(),
            offset,
        };
        m.map_multicast(va, 0, two, &[]).unwrap();
        m.map(0, plain, &memory[0], 0, two).unwrap();
        assert_eq!(m.map(0, va, &memory[0], 0, two), Err(MapError::Overlap));
        assert_eq!(m.map_multicast(plain, 0, two, &[]), Err(MapError::Overlap));
        m.set_access(va, two, Access::device(1)).unwrap();
        let kind =
            |m: &Memory, device, at, len| m.multicast(device, at, len, true).unwrap_err().kind;
        assert_eq!(kind(&m, 1, va, 4), FaultKind::OutOfBounds);
        let half = GRANULARITY;
        m.bind_multicast(va, &[bind(0, 0, two, 0), bind(1, half, half, 0)]);
        assert_eq!(kind(&m, 0, va, 4), FaultKind::NoAccess);
        assert_eq!(kind(&m, 1, plain, 4), FaultKind::Multicast);
        assert_eq!(kind(&m, 1, va + two - 4, 8), FaultKind::Multicast);
        assert_eq!(m.multicast(1, va + 8, 8, true).unwrap().len(), 1);
        let aliases = m.multicast(1, va + half + 8, 8, true).unwrap();
        assert_eq!(aliases.len(), 2);
        for (alias, value) in aliases.iter().zip([3u8, 5]) {
            m.write(*alias, &[value]).unwrap();
        }
        let mut byte = [0];
        m.read(plain + half + 8, &mut byte).unwrap();
        assert_eq!(byte, [3]);
        // No other instruction gets in.
        let other = m.access(1, va + 8, 4, false).unwrap_err().kind;
        assert_eq!(other, FaultKind::Multicast);
        assert_eq!(m.check(va, 4).unwrap_err().kind, FaultKind::Multicast);
        m.bind_multicast(va, &[bind(1, 0, two, 0)]);
        assert_eq!(m.multicast(1, va + half, 4, false).unwrap().len(), 1);
        m.unmap(va, two).unwrap();
        assert_eq!(kind(&m, 1, va, 4), FaultKind::Multicast);
        assert!(m.regions.last_key_value().unwrap().1.end < ALIASES);
    }
}
