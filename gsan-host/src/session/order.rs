//! Streams, events and the host's waiting.

use super::{EventSlot, Session, StreamSlot};
use crate::driver::{Event, Stream};
use crate::error::{Error, Result};
use crate::request::{EventId, StreamFlags, StreamId, Wait};
use std::collections::VecDeque;

impl Session {
    /// A stream. Every call with `LegacyDefault` or `PerThreadDefault` gives the device's one stream of that kind.
    pub fn stream(&mut self, name: &str, flags: StreamFlags, device: u32) -> Result<StreamId> {
        self.named_stream(Some(name), flags, device)
    }

    /// The device's legacy default stream; reports give it no name, unless [`Session::stream`] gave it one.
    pub fn default_stream(&mut self, device: u32) -> Result<StreamId> {
        self.named_stream(None, StreamFlags::LegacyDefault, device)
    }

    /// The same, for operations that are ordered with it.
    pub(super) fn legacy(&mut self, device: u32) -> Result<StreamId> {
        self.default_stream(device)
    }

    /// The driver's handle of a stream, for code that calls the driver itself or [`crate::forget::gsan_forget`]. It is valid
    /// while the session lives; what is put into the stream in that way is not checked.
    pub fn raw_stream(&self, stream: StreamId) -> Result<*mut std::ffi::c_void> {
        Ok(self.slot(stream)?.stream.raw().cast())
    }

    fn named_stream(
        &mut self,
        name: Option<&str>,
        flags: StreamFlags,
        device: u32,
    ) -> Result<StreamId> {
        let _armed = self.begin()?;
        if matches!(
            flags,
            StreamFlags::LegacyDefault | StreamFlags::PerThreadDefault
        ) {
            let same = |s: &StreamSlot| s.flags == flags && s.device == device;
            if let Some(i) = self.streams.iter().position(same) {
                let slot = &mut self.streams[i];
                slot.name = slot.name.take().or(name.map(str::to_string));
                return Ok(StreamId(i as u32));
            }
        }
        let owner = self.device(device)?.clone();
        let result =
            Stream::new(&owner, flags).and_then(|stream| Ok((stream, Event::new(&owner)?)));
        let (stream, mark) = self.noted(result)?;
        self.streams.push(StreamSlot {
            in_flight: VecDeque::new(),
            stream,
            mark,
            name: name.map(str::to_string),
            flags,
            device,
            cleared: vec![0; self.devices.len()],
        });
        self.clocks.add_stream(flags, device);
        Ok(StreamId(self.streams.len() as u32 - 1))
    }

    /// A new event on a device. `name` is for the caller's own use.
    pub fn event(&mut self, name: &str, device: u32) -> Result<EventId> {
        let _ = name;
        let _armed = self.begin()?;
        let owner = self.device(device)?.clone();
        let result = Event::timed(&owner);
        let event = self.noted(result)?;
        self.events.push(EventSlot { event });
        self.clocks.add_event();
        Ok(EventId(self.events.len() as u32 - 1))
    }

    fn event_slot(&self, event: EventId) -> Result<&EventSlot> {
        self.events
            .get(event.0 as usize)
            .ok_or(Error::UnknownEvent(event))
    }

    /// Records the stream's work so far in the event.
    pub fn record(&mut self, event: EventId, stream: StreamId) -> Result<()> {
        let _armed = self.begin()?;
        let result = self
            .event_slot(event)?
            .event
            .record(&self.slot(stream)?.stream);
        self.noted(result)?;
        self.clocks.record(event.0 as usize, stream.0 as usize);
        Ok(())
    }

    /// The device's milliseconds from one recorded event to another, both of which the host has waited for. The simulator
    /// counts simulated ones.
    pub fn elapsed_ms(&mut self, from: EventId, to: EventId) -> Result<f32> {
        let _armed = self.begin()?;
        let start = &self.event_slot(from)?.event;
        let result = self.event_slot(to)?.event.milliseconds_since(start);
        self.noted(result)
    }

    /// Lets the stream's later work wait for what the event recorded.
    pub fn wait(&mut self, stream: StreamId, event: EventId) -> Result<()> {
        let _armed = self.begin()?;
        let result = self
            .slot(stream)?
            .stream
            .wait(&self.event_slot(event)?.event);
        self.noted(result)?;
        self.clocks.wait(stream.0 as usize, event.0 as usize);
        Ok(())
    }

    /// Blocks the host; what it waited for is ordered before everything that it issues afterwards.
    pub fn synchronize(&mut self, what: Wait) -> Result<()> {
        let _armed = self.begin()?;
        match what {
            Wait::Stream(stream) => {
                let waited = self.wait_for_stream(stream);
                self.noted(waited)?;
                self.clocks.host_waited_for_stream(stream.0 as usize);
            }
            Wait::Event(event) => {
                let waited = self.event_slot(event)?.event.synchronize();
                self.noted(waited)?;
                self.clocks.host_waited_for_event(event.0 as usize);
            }
            Wait::Device => {
                for device in 0..self.devices.len() as u32 {
                    let waited = self.wait_for_device(device);
                    self.noted(waited)?;
                }
                // All have been waited for before anything is called ordered.
                for device in 0..self.devices.len() as u32 {
                    self.clocks.host_waited_for_device(device);
                }
            }
        }
        Ok(())
    }

    /// Asks, without waiting, whether what was issued has ended; a yes orders as [`Session::synchronize`] does.
    pub fn query(&mut self, what: Wait) -> Result<bool> {
        let _armed = self.begin()?;
        match what {
            Wait::Stream(stream) => {
                // Of the stream itself, and of what an operation on it would be ordered after.
                let ended = self.slot(stream)?.stream.has_ended();
                if !self.noted(ended)? {
                    return Ok(false);
                }
                self.retire(stream.0 as usize);
                if self.clocks.is_yes_waiting() {
                    self.clocks.host_waited_for_stream(stream.0 as usize);
                }
            }
            Wait::Event(event) => {
                let ended = self.event_slot(event)?.event.has_ended();
                if !self.noted(ended)? {
                    return Ok(false);
                }
                if self.clocks.is_yes_waiting() {
                    self.clocks.host_waited_for_event(event.0 as usize);
                }
            }
            Wait::Device => {
                for stream in 0..self.streams.len() {
                    let ended = self.streams[stream].stream.has_ended();
                    if !self.noted(ended)? {
                        return Ok(false);
                    }
                }
                if self.clocks.is_yes_waiting() {
                    self.synchronize(what)?;
                }
            }
        }
        Ok(true)
    }

    /// Waits for all that was issued to the stream, and for what an operation on it would be ordered after: an event is
    /// recorded for the purpose, which is such an operation. So what the clocks call ordered has really ended.
    pub(super) fn wait_for_stream(&mut self, stream: StreamId) -> Result<()> {
        let slot = self.slot(stream)?;
        slot.mark.record(&slot.stream)?;
        slot.mark.synchronize()?;
        self.retire(stream.0 as usize);
        Ok(())
    }

    pub(super) fn wait_for_device(&mut self, device: u32) -> Result<()> {
        self.device(device)?.synchronize()?;
        for i in 0..self.streams.len() {
            if self.streams[i].device == device {
                self.retire(i);
            }
        }
        Ok(())
    }

    /// The stream's launches are over: their rows and launch records are free.
    pub(super) fn retire(&mut self, stream: usize) {
        let Some(slot) = self.streams.get_mut(stream) else {
            return;
        };
        let device = slot.device as usize;
        let ended = std::mem::take(&mut slot.in_flight);
        if let Some(checked) = &mut self.checked {
            for launch in ended {
                let ring = &mut checked.rings[device];
                let hasty = launch.must_wait.filter(|_| !ring.has_waited(launch.place));
                self.hasty.extend(hasty);
                ring.give_back(launch.place);
            }
        }
    }
}
