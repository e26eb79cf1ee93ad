//! Multicast memory: buffers of several devices that `multimem` instructions access together, at one more address.
//!
//! The detector looks up what such an address stands for in a table of each device, which lies there as long as the memory
//! is bound. Only the simulator is asked for multicast objects: on a GPU nothing of this has been tried, and one that is
//! shared with others can be put out of service by it. A program that has bound memory of the session itself says so
//! ([`Session::note_multicast`]).

use super::Session;
use super::edges::{Edge, without};
use super::memory::Holder;
use crate::driver::{MulticastMemory, Physical, VirtualRange};
use crate::error::{Error, Result};
use crate::request::{Buffer, MemoryKind, StreamId};
use cuda_lazy::Backend;
use gsan_device::layout::Multicast;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Memory of several devices at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MulticastBuffer {
    /// The address for `multimem` instructions, and nothing else.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Each device's own memory, in the order in which they were asked for: buffers like any other.
    pub parts: Vec<Buffer>,
}

/// What the session knows to be bound.
pub(super) struct Bound {
    address: u64,
    bytes: u64,
    parts: Vec<u64>,
    /// If the session has made it.
    memory: Option<MulticastMemory>,
}

impl Session {
    /// Allocates a buffer on each of `devices` and binds them to one multicast address. Reports call the address `name` and
    /// the buffers `name.0`, `name.1`, … by their devices. [`Session::free`] of the address frees all.
    ///
    /// # Errors
    /// Anything else than the simulated driver; no device, or one twice.
    pub fn alloc_multicast(
        &mut self,
        name: &str,
        bytes: u64,
        devices: &[u32],
    ) -> Result<MulticastBuffer> {
        let _armed = self.begin()?;
        if bytes == 0 {
            return Err(Error::EmptyBuffer);
        }
        if cuda_lazy::backend() != Backend::Simulated {
            return Err(Error::Configuration(
                "multicast memory is made on the simulator only (--device sim)".into(),
            ));
        }
        let different: BTreeSet<&u32> = devices.iter().collect();
        if devices.is_empty() || different.len() < devices.len() {
            return Err(Error::Configuration(
                "multicast memory needs one device or several, each once".into(),
            ));
        }
        let mut team = Vec::new();
        for device in devices {
            team.push(self.device(*device)?.clone());
        }
        let granularity = MulticastMemory::granularity(&team)?;
        let mapped = bytes
            .checked_next_multiple_of(granularity)
            .ok_or(Error::EmptyBuffer)?;
        let mut parts = Vec::new();
        let result = self.bind(name, bytes, devices, mapped, &mut parts, |parts| {
            MulticastMemory::new(&team, parts, mapped, granularity)
        });
        let memory = match result {
            Ok(memory) => memory,
            Err(error) => {
                for part in parts {
                    let _ = self.free(part.address, None);
                }
                return self.noted(Err(error));
            }
        };
        let address = memory.address();
        self.names().add_memory(name, address, bytes);
        self.multicasts.push(Bound {
            address,
            bytes,
            parts: parts.iter().map(|part| part.address).collect(),
            memory: Some(memory),
        });
        let published = self.publish_multicasts();
        self.noted(published)?;
        Ok(MulticastBuffer {
            address,
            bytes,
            parts,
        })
    }

    /// The parts, which go to `parts` as they come, then what `object` makes of them.
    fn bind(
        &mut self,
        name: &str,
        bytes: u64,
        devices: &[u32],
        mapped: u64,
        parts: &mut Vec<Buffer>,
        object: impl FnOnce(&[u64]) -> Result<MulticastMemory>,
    ) -> Result<MulticastMemory> {
        for device in devices {
            let (address, holder) = self.take_apart(bytes, mapped, *device)?;
            self.keep(&format!("{name}.{device}"), address, bytes, *device, holder);
            parts.push(Buffer {
                address,
                bytes,
                kind: MemoryKind::Device,
                device: *device,
            });
        }
        let addresses: Vec<u64> = parts.iter().map(|part| part.address).collect();
        object(&addresses)
    }

    /// Memory that shares its mapping with nothing else.
    fn take_apart(&mut self, bytes: u64, mapped: u64, index: u32) -> Result<(u64, Holder)> {
        let device = self.device(index)?.clone();
        if self.checked.is_some() {
            return self.take_reserved(index, bytes, Some(mapped));
        }
        let range = Rc::new(VirtualRange::new(&device, mapped, 0)?);
        let memory = Physical::map(&range, &device, &self.devices, range.address, mapped)?;
        let _memory = Box::new(memory);
        Ok((range.address, Holder::Owned { _memory }))
    }

    /// Tells the session that the program has bound memory to a multicast object and mapped it: `bytes` bytes from `address` on
    /// stand for as many at each of `parts`, which lie in the session's buffers. Accesses through a multicast address that the
    /// session does not know are counted, not checked ([`crate::report::Misses::unknown_multicast`]).
    /// [`Session::free`] of the address makes it forget that; it comes before the buffers go.
    ///
    /// # Errors
    /// Parts that do not lie in buffers.
    pub fn note_multicast(&mut self, address: u64, bytes: u64, parts: &[u64]) -> Result<()> {
        let _armed = self.begin()?;
        for part in parts {
            self.bounds(*part, bytes)?;
        }
        self.multicasts.push(Bound {
            address,
            bytes,
            parts: parts.to_vec(),
            memory: None,
        });
        let published = self.publish_multicasts();
        self.noted(published)
    }

    /// The number of the multicast buffer of which the buffer at `address` is a part.
    pub(super) fn multicast_with(&self, address: u64, bytes: u64) -> Option<u64> {
        let within = |part: &u64| *part >= address && *part - address < bytes;
        let found = self.multicasts.iter().find(|m| m.parts.iter().any(within));
        found.map(|m| m.address)
    }

    /// Frees what is at the multicast address; `None` if nothing is known there.
    pub(super) fn free_multicast(
        &mut self,
        address: u64,
        stream: Option<StreamId>,
    ) -> Option<Result<()>> {
        let place = self.multicasts.iter().position(|m| m.address == address)?;
        let gone = self.multicasts.remove(place);
        let result = self.publish_multicasts();
        if let Err(error) = self.noted(result) {
            return Some(Err(error));
        }
        // No kernel uses it any more: the table's change has waited for all of them.
        let Some(memory) = gone.memory else {
            return Some(Ok(()));
        };
        drop(memory);
        self.names().remove_memory(address);
        for part in gone.parts {
            if let Err(error) = self.free(part, stream) {
                return Some(Err(error));
            }
        }
        Some(Ok(()))
    }

    /// Gives every device the table of what is bound. The host waits: nothing that runs may look at a table that changes.
    fn publish_multicasts(&mut self) -> Result<()> {
        let bound = self.multicasts.iter().flat_map(|m| {
            m.parts.iter().map(|part| Multicast {
                start: m.address,
                size: m.bytes,
                memory: *part,
            })
        });
        let table: Vec<Multicast> = bound.filter(|_| !without(Edge::Multicast)).collect();
        for index in 0..self.devices.len() as u32 {
            self.wait_for_device(index)?;
            if let Some(checked) = &mut self.checked {
                checked.runtime.devices[index as usize].set_multicasts(&table)?;
            }
            self.wait_for_device(index)?;
        }
        Ok(())
    }
}
