//! Streams and events.

use super::{Device, PinnedMemory, check};
use crate::error::Result;
use crate::request::StreamFlags;
use cust::sys;
use std::rc::Rc;

/// A stream; the two default streams are not owned.
pub(crate) struct Stream {
    device: Rc<Device>,
    raw: sys::CUstream,
    owned: bool,
}

impl Stream {
    pub(crate) fn new(device: &Rc<Device>, flags: StreamFlags) -> Result<Stream> {
        // The driver's special handles CU_STREAM_LEGACY and CU_STREAM_PER_THREAD.
        const LEGACY: usize = 1;
        const PER_THREAD: usize = 2;
        device.enter()?;
        let mut raw: sys::CUstream = std::ptr::null_mut();
        let create = match flags {
            StreamFlags::LegacyDefault => {
                raw = LEGACY as sys::CUstream;
                None
            }
            StreamFlags::PerThreadDefault => {
                raw = PER_THREAD as sys::CUstream;
                None
            }
            StreamFlags::Blocking => Some(0),
            StreamFlags::NonBlocking => Some(1),
        };
        if let Some(flags) = create {
            // SAFETY: `raw` is a valid place for the answer.
            check("cuStreamCreate", unsafe {
                sys::cuStreamCreate(&mut raw, flags)
            })?;
        }
        Ok(Stream {
            device: device.clone(),
            raw,
            owned: create.is_some(),
        })
    }

    /// The driver's handle, valid while this object lives and its context is current.
    pub(crate) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Makes the stream's context current.
    pub(crate) fn enter(&self) -> Result<()> {
        self.device.enter()
    }

    /// The host waits for all work issued so far.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the stream lives.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.raw)
        })
    }

    /// Whether all work issued so far has ended.
    pub(crate) fn has_ended(&self) -> Result<bool> {
        self.enter()?;
        // SAFETY: the stream lives.
        ended("cuStreamQuery", unsafe { sys::cuStreamQuery(self.raw) })
    }

    /// Later work waits for the event.
    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        self.enter()?;
        // SAFETY: both live.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.raw, event.raw, 0)
        })
    }

    /// Copies from page-locked memory to the device, in the stream.
    ///
    /// The bytes must stay as they are until the copy is done.
    pub(crate) fn copy_from_pinned(
        &self,
        to: u64,
        from: &PinnedMemory,
        offset: u64,
        bytes: u64,
    ) -> Result<()> {
        self.enter()?;
        debug_assert!(offset + bytes <= from.bytes);
        // SAFETY: inside the pinned allocation, which the caller keeps until the stream has been waited for.
        let host = unsafe { from.host().add(offset as usize) };
        // SAFETY: as above; the device address is checked by the driver.
        check("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, host.cast(), bytes as usize, self.raw)
        })
    }

    /// Copies from the device to page-locked memory, in the stream.
    pub(crate) fn copy_to_pinned(&self, to: &PinnedMemory, from: u64, bytes: u64) -> Result<()> {
        self.enter()?;
        debug_assert!(bytes <= to.bytes);
        // SAFETY: inside the pinned allocation, which the caller keeps until the stream has been waited for.
        check("cuMemcpyDtoHAsync", unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.host().cast(), from, bytes as usize, self.raw)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned && self.device.enter().is_ok() {
            // SAFETY: created by us and destroyed once.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// What a query says.
fn ended(call: &'static str, answer: sys::CUresult) -> Result<bool> {
    const NOT_READY: u32 = 600;
    if answer as u32 == NOT_READY {
        return Ok(false);
    }
    check(call, answer).map(|()| true)
}

/// An event.
pub(crate) struct Event {
    device: Rc<Device>,
    raw: sys::CUevent,
}

impl Event {
    /// One that orders only.
    pub(crate) fn new(device: &Rc<Device>) -> Result<Event> {
        const DISABLE_TIMING: u32 = 2;
        Event::with_flags(device, DISABLE_TIMING)
    }

    /// One that also keeps the time.
    pub(crate) fn timed(device: &Rc<Device>) -> Result<Event> {
        Event::with_flags(device, 0)
    }

    fn with_flags(device: &Rc<Device>, flags: u32) -> Result<Event> {
        device.enter()?;
        let mut raw: sys::CUevent = std::ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&mut raw, flags)
        })?;
        Ok(Event {
            device: device.clone(),
            raw,
        })
    }

    /// Captures the stream's work so far.
    pub(crate) fn record(&self, stream: &Stream) -> Result<()> {
        stream.enter()?;
        // SAFETY: both live.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(self.raw, stream.raw)
        })
    }

    /// Milliseconds from `start`, also timed, to this event; both have been reached.
    pub(crate) fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        self.device.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both live, and `milliseconds` is a valid place for the answer.
        check("cuEventElapsedTime", unsafe {
            sys::cuEventElapsedTime(&mut milliseconds, start.raw, self.raw)
        })?;
        Ok(milliseconds)
    }

    /// Whether what was captured has ended.
    pub(crate) fn has_ended(&self) -> Result<bool> {
        self.device.enter()?;
        // SAFETY: the event lives.
        ended("cuEventQuery", unsafe { sys::cuEventQuery(self.raw) })
    }

    /// The host waits for what was captured.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.device.enter()?;
        // SAFETY: the event lives.
        check("cuEventSynchronize", unsafe {
            sys::cuEventSynchronize(self.raw)
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: created by us and destroyed once.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
