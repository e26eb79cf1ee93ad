//! Buffers: allocation, clearing of their shadow, copies. Copies and fills are accesses, checked like a kernel's, except
//! those by which a new buffer gets its content and those by which the caller looks at results.

use super::Session;
use super::edges::{Edge, without};
use crate::catalogue::HostOperation;
use crate::driver::{
    Device, DeviceMemory, Event, ManagedMemory, OUT_OF_MEMORY, PinnedMemory, Stream, code_of,
    copy_async, copy_from_host, copy_to_host, fill_async,
};
use crate::error::{Error, Result};
use crate::request::{Buffer, MemoryKind, ReadId, StreamFlags, StreamId};
use crate::reservation::ToClear;
use gsan_device::layout::Access;
use std::rc::Rc;

/// A live buffer.
pub(super) struct Live {
    bytes: u64,
    device: u32,
    holder: Holder,
}

/// What keeps a buffer's memory.
pub(super) enum Holder {
    Reservation,
    // Held, never looked at.
    Owned {
        _memory: Box<dyn std::any::Any>,
    },
    /// A module's variable: gone with the module.
    Variable,
}

/// Clears shadow memory in a stream of its own, so that neither the host nor the user's streams wait for each other
/// because of it. Streams wait for its event before their next kernel.
pub(super) struct Service {
    stream: Stream,
    event: Event,
    /// How many clearings were issued.
    issued: u64,
}

impl Service {
    pub(super) fn new(device: &Rc<Device>) -> Result<Service> {
        let stream = Stream::new(device, StreamFlags::NonBlocking)?;
        Ok(Service {
            stream,
            event: Event::new(device)?,
            issued: 0,
        })
    }

    fn clear(&mut self, what: ToClear) -> Result<()> {
        if !without(Edge::Fresh) {
            fill_async(what.address, 0, what.bytes, &self.stream)?;
        }
        self.event.record(&self.stream)?;
        self.issued += 1;
        Ok(())
    }

    /// Orders the stream's later work after all clearings; `seen` is how many it is ordered after already.
    pub(super) fn order(&self, stream: &Stream, seen: &mut u64) -> Result<()> {
        if *seen < self.issued {
            stream.wait(&self.event)?;
            *seen = self.issued;
        }
        Ok(())
    }
}

impl Service {
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The host waits for all clearings, so that nothing need be put into the user's stream.
    pub(super) fn wait(&self, seen: &mut u64) -> Result<()> {
        if *seen < self.issued {
            self.stream.synchronize()?;
            *seen = self.issued;
        }
        Ok(())
    }

    /// Copies to the device; the host waits for that and for all that was issued before it.
    pub(super) fn write(
        &self,
        to: u64,
        from: &PinnedMemory,
        offset: u64,
        bytes: u64,
    ) -> Result<()> {
        self.stream.copy_from_pinned(to, from, offset, bytes)?;
        self.stream.synchronize()
    }
}

/// An asynchronous read on its way.
pub(super) struct PendingRead {
    stream: StreamId,
    staging: PinnedMemory,
    bytes: u64,
}

impl Session {
    /// Allocates a buffer, called `name` in reports. Its contents are undefined on a GPU.
    pub fn alloc(
        &mut self,
        name: &str,
        bytes: u64,
        kind: MemoryKind,
        device: u32,
    ) -> Result<Buffer> {
        let _armed = self.begin()?;
        if bytes == 0 {
            return Err(Error::EmptyBuffer);
        }
        let result = self.allocate(bytes, kind, device);
        let (address, holder) = self.noted(result)?;
        self.keep(name, address, bytes, device, holder);
        Ok(Buffer {
            address,
            bytes,
            kind,
            device,
        })
    }

    /// A new buffer.
    pub(super) fn keep(
        &mut self,
        name: &str,
        address: u64,
        bytes: u64,
        device: u32,
        holder: Holder,
    ) {
        let live = Live {
            bytes,
            device,
            holder,
        };
        self.live.insert(address, live);
        self.names().add_memory(name, address, bytes);
    }

    /// Memory of the reservation; `mapped` bytes for it alone, if that is asked for. [`Error::Ended`] in a session that has none.
    pub(super) fn take_reserved(
        &mut self,
        index: u32,
        bytes: u64,
        mapped: Option<u64>,
    ) -> Result<(u64, Holder)> {
        let checked = self.checked.as_mut().ok_or(Error::Ended)?;
        let (address, to_clear) = match mapped {
            Some(mapped) => checked.reservation.take_apart(index, bytes, mapped)?,
            None => checked.reservation.take(index, bytes)?,
        };
        if let Err(e) = checked.services[index as usize].clear(to_clear) {
            checked.reservation.give_back(address);
            return Err(e);
        }
        Ok((address, Holder::Reservation))
    }

    fn allocate(&mut self, bytes: u64, kind: MemoryKind, index: u32) -> Result<(u64, Holder)> {
        let device = self.device(index)?.clone();
        if kind == MemoryKind::Device && self.checked.is_some() {
            return self.take_reserved(index, bytes, None);
        }
        let (address, memory): (u64, Box<dyn std::any::Any>) = match kind {
            MemoryKind::Device | MemoryKind::Foreign => {
                let memory = DeviceMemory::new(&device, bytes)
                    .map_err(|e| out_of_memory(e, &device, bytes))?;
                (memory.address, Box::new(memory))
            }
            MemoryKind::Pinned => {
                let memory = PinnedMemory::new(&device, bytes)
                    .map_err(|e| out_of_memory(e, &device, bytes))?;
                (memory.address, Box::new(memory))
            }
            MemoryKind::Managed => {
                // The driver would promise more than there is, and a GPU can hang over it.
                let (free, _) = device.memory()?;
                if bytes > free {
                    return Err(Error::OutOfMemory { bytes, free });
                }
                let memory = ManagedMemory::new(&device, bytes)
                    .map_err(|e| out_of_memory(e, &device, bytes))?;
                (memory.address(), Box::new(memory))
            }
        };
        Ok((address, Holder::Owned { _memory: memory }))
    }

    /// Frees a buffer after all work issued to `stream`; with no stream, after all work of its device, for which the host
    /// waits.
    pub fn free(&mut self, address: u64, stream: Option<StreamId>) -> Result<()> {
        let _armed = self.begin()?;
        if let Some(freed) = self.free_multicast(address, stream) {
            return freed;
        }
        let device = match self.live.get(&address) {
            Some(live) if let Some(at) = self.multicast_with(address, live.bytes) => {
                return Err(Error::Configuration(format!(
                    "the buffer at 0x{address:x} is a part of the multicast memory at 0x{at:x}, which must be freed instead"
                )));
            }
            Some(Live {
                holder: Holder::Variable,
                ..
            })
            | None => {
                let inside = self.names().live_around(address).map(str::to_string);
                return Err(Error::NotABuffer { address, inside });
            }
            Some(live) => live.device,
        };
        let waited = match stream {
            // The program does not wait here, so this orders nothing; but it stands between the stream's kernels.
            Some(stream) => self.wait_for_stream(stream).map(|()| {
                self.clocks.issue(stream.0 as usize);
            }),
            None => self
                .wait_for_device(device)
                .map(|()| self.clocks.host_waited_for_device(device)),
        };
        self.noted(waited)?;
        if let Some(Live {
            holder: Holder::Reservation,
            ..
        }) = self.live.remove(&address)
            && let Some(checked) = &mut self.checked
        {
            // It may have been cleared just now and never used by any kernel.
            let cleared = checked.services[device as usize].stream.synchronize();
            checked.reservation.give_back(address);
            self.noted(cleared)?;
        }
        self.names().remove_memory(address);
        Ok(())
    }

    /// Forgets what was done with a part of a buffer, as if it had just been allocated: for allocators that hand out memory
    /// again which they have not given back. In the stream's order: what comes later in it starts clean.
    pub fn forget(&mut self, address: u64, bytes: u64, stream: StreamId) -> Result<()> {
        let _armed = self.begin()?;
        self.bounds(address, bytes)?;
        self.slot(stream)?;
        let around = self.live.range(..=address).next_back();
        let reserved = around.is_some_and(|(_, live)| matches!(live.holder, Holder::Reservation));
        let Some(checked) = self.checked.as_ref().filter(|_| reserved && bytes > 0) else {
            return Ok(());
        };
        let cells = checked.reservation.cells_of(address, bytes);
        self.clocks.issue(stream.0 as usize);
        if without(Edge::Forget) {
            return Ok(());
        }
        let cleared = fill_async(cells.address, 0, cells.bytes, &self.slot(stream)?.stream);
        self.noted(cleared)
    }

    /// Lets a module's variable be read and written like a buffer.
    pub(super) fn add_variable(&mut self, name: &str, address: u64, bytes: u64, device: u32) {
        self.keep(name, address, bytes, device, Holder::Variable);
    }

    /// The device of the live buffer that holds all of the range.
    pub(super) fn bounds(&self, address: u64, bytes: u64) -> Result<u32> {
        let around = self.live.range(..=address).next_back();
        match around {
            Some((&start, live))
                if bytes <= live.bytes && address - start <= live.bytes - bytes =>
            {
                Ok(live.device)
            }
            _ => Err(Error::OutOfBounds { address, bytes }),
        }
    }

    /// Address and bytes of each live buffer of the reservation.
    pub(super) fn reserved(&self) -> impl Iterator<Item = (u64, u64)> {
        let reserved = self.live.iter();
        reserved
            .filter(|(_, live)| matches!(live.holder, Holder::Reservation))
            .map(|(&address, live)| (address, live.bytes))
    }

    /// Whether a kernel of `device` finds shadow for the live buffer that holds `address`.
    pub(super) fn has_shadow(&self, address: u64, device: u32) -> bool {
        let around = self.live.range(..=address).next_back();
        around.is_some_and(|(_, live)| match live.holder {
            Holder::Reservation => true,
            // Each device knows its own variables.
            Holder::Variable => live.device == device,
            Holder::Owned { .. } => false,
        })
    }

    /// Sets `bytes` bytes to `value`, in the stream.
    pub fn memset(&mut self, address: u64, value: u8, bytes: u64, stream: StreamId) -> Result<()> {
        let _armed = self.begin()?;
        self.bounds(address, bytes)?;
        self.slot(stream)?;
        let touched = self.touch(stream, HostOperation::Memset, Access::Store, address, bytes);
        self.noted(touched)?;
        self.clocks.issue(stream.0 as usize);
        let result = fill_async(address, value, bytes, &self.slot(stream)?.stream);
        self.noted(result)
    }

    /// Gives a new buffer its content: `data` at its start, then zeros. The host waits, so that this comes before whatever
    /// is issued afterwards, and nothing is checked, since nobody else knows the buffer yet.
    pub fn initialise(&mut self, buffer: &Buffer, data: &[u8]) -> Result<()> {
        self.initialise_part(buffer.address, data)?;
        let done = data.len() as u64;
        let Some(rest) = buffer.bytes.checked_sub(done).filter(|&rest| rest > 0) else {
            return Ok(());
        };
        let _armed = self.begin()?;
        let device = self.bounds(buffer.address, buffer.bytes)?;
        let legacy = self.legacy(device)?;
        self.clocks.issue(legacy.0 as usize);
        let filled = fill_async(buffer.address + done, 0, rest, &self.slot(legacy)?.stream)
            .and_then(|()| self.wait_for_stream(legacy));
        self.noted(filled)?;
        self.clocks.host_waited_for_stream(legacy.0 as usize);
        Ok(())
    }

    /// The same for a part of it that starts at `address`, and nothing else.
    pub fn initialise_part(&mut self, address: u64, data: &[u8]) -> Result<()> {
        let _armed = self.begin()?;
        if data.is_empty() {
            return Ok(());
        }
        let device = self.bounds(address, data.len() as u64)?;
        let legacy = self.legacy(device)?;
        self.copy_in(device, legacy, address, data)
    }

    fn copy_in(&mut self, device: u32, legacy: StreamId, address: u64, data: &[u8]) -> Result<()> {
        self.clocks.issue(legacy.0 as usize);
        let result = copy_from_host(self.device(device)?, address, data);
        self.noted(result)?;
        self.clocks.host_waited_for_stream(legacy.0 as usize);
        Ok(())
    }

    /// Copies between buffers, in the stream.
    pub fn copy(&mut self, to: u64, from: u64, bytes: u64, stream: StreamId) -> Result<()> {
        let _armed = self.begin()?;
        self.bounds(to, bytes)?;
        self.bounds(from, bytes)?;
        self.slot(stream)?;
        let touched = self
            .touch(stream, HostOperation::Copy, Access::Load, from, bytes)
            .and_then(|()| self.touch(stream, HostOperation::Copy, Access::Store, to, bytes));
        self.noted(touched)?;
        self.clocks.issue(stream.0 as usize);
        let result = copy_async(to, from, bytes, &self.slot(stream)?.stream);
        self.noted(result)
    }

    /// Copies host bytes to a buffer, as `cuMemcpyHtoD` does: ordered with the legacy default stream, the host waits.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<()> {
        let _armed = self.begin()?;
        let device = self.bounds(address, data.len() as u64)?;
        let legacy = self.legacy(device)?;
        let bytes = data.len() as u64;
        let touched = self.touch(legacy, HostOperation::Write, Access::Store, address, bytes);
        self.noted(touched)?;
        self.copy_in(device, legacy, address, data)
    }

    /// Copies a buffer's bytes to the host, as `cuMemcpyDtoH` does: ordered with the legacy default stream, the host waits.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>> {
        let _armed = self.begin()?;
        let device = self.bounds(address, bytes)?;
        let legacy = self.legacy(device)?;
        let touched = self.touch(
            legacy,
            HostOperation::ReadBack,
            Access::Load,
            address,
            bytes,
        );
        self.noted(touched)?;
        self.clocks.issue(legacy.0 as usize);
        let mut data = vec![0; bytes as usize];
        let result = copy_to_host(self.device(device)?, &mut data, address);
        self.noted(result)?;
        self.retire(legacy.0 as usize);
        self.clocks.host_waited_for_stream(legacy.0 as usize);
        Ok(data)
    }

    /// Issues a copy to the host in the stream; [`Session::take_read`] gets the bytes.
    pub fn read_async(&mut self, address: u64, bytes: u64, stream: StreamId) -> Result<ReadId> {
        let _armed = self.begin()?;
        self.bounds(address, bytes)?;
        let device = self.device(self.slot(stream)?.device)?.clone();
        let touched = self.touch(
            stream,
            HostOperation::ReadBack,
            Access::Load,
            address,
            bytes,
        );
        self.noted(touched)?;
        self.clocks.issue(stream.0 as usize);
        let issue = || {
            let staging = PinnedMemory::new(&device, bytes)?;
            self.slot(stream)?
                .stream
                .copy_to_pinned(&staging, address, bytes)?;
            Ok(staging)
        };
        let result = issue();
        let staging = self.noted(result)?;
        self.reads.push(Some(PendingRead {
            stream,
            staging,
            bytes,
        }));
        Ok(ReadId(self.reads.len() as u32 - 1))
    }

    /// Waits for an asynchronous read's stream and returns the bytes.
    pub fn take_read(&mut self, read: ReadId) -> Result<Vec<u8>> {
        let _armed = self.begin()?;
        let Some(Some(pending)) = self.reads.get(read.0 as usize) else {
            return Err(Error::UnknownRead);
        };
        let stream = pending.stream;
        let waited = self.wait_for_stream(stream);
        self.noted(waited)?;
        self.clocks.host_waited_for_stream(stream.0 as usize);
        // Only now: had the wait failed, the copy might still be under way.
        match self.reads.get_mut(read.0 as usize).and_then(Option::take) {
            Some(pending) => Ok(pending.staging.load(0, pending.bytes)),
            None => Err(Error::UnknownRead),
        }
    }
}

fn out_of_memory(error: Error, device: &Device, bytes: u64) -> Error {
    if code_of(&error) != Some(OUT_OF_MEMORY) {
        return error;
    }
    Error::OutOfMemory {
        bytes,
        free: device.memory().map(|m| m.0).unwrap_or(0),
    }
}
