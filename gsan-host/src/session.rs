//! The session: everything between "these devices" and the report.

use crate::error::{Error, Result};
use crate::report::Report;
use crate::request::{
    Arg, Buffer, EventId, KernelInfo, LaunchId, LaunchSpec, MemoryKind, ModuleId, ReadId,
    StreamFlags, StreamId, Wait,
};
use std::time::Duration;

/// Called by the watchdog with what was found so far, from its own thread; it is expected to print and end the process,
/// because the waiting thread cannot be woken.
pub type OnExpiry = Box<dyn FnOnce(Report) + Send>;

/// Builds a [`Session`].
pub struct Builder {
    devices: Vec<u32>,
    slots_per_sm: Option<u32>,
    clock_buffer_size: Option<u32>,
    seed: u32,
    schedule_seed: Option<u64>,
    instrument: bool,
    watchdog: Option<(Duration, OnExpiry)>,
}

impl Builder {
    /// The driver's numbers of the devices to use, default `[0]`. Their place in this list is the device index everywhere else.
    pub fn devices(mut self, devices: &[u32]) -> Builder {
        self.devices = devices.to_vec();
        self
    }

    /// Logical threads per multiprocessor; default: as many as blocks can be resident, within the format's limits.
    pub fn slots_per_sm(mut self, slots: Option<u32>) -> Builder {
        self.slots_per_sm = slots;
        self
    }

    /// Snapshots in a logical thread's ring; default: 64, fewer where memory is short.
    pub fn clock_buffer_size(mut self, snapshots: Option<u32>) -> Builder {
        self.clock_buffer_size = snapshots;
        self
    }

    /// Seed of the readers' sampling, default 0.
    pub fn seed(mut self, seed: u32) -> Builder {
        self.seed = seed;
        self
    }

    /// The simulator's schedule seed, for the report only (the simulator itself is told by its own configuration).
    pub fn schedule_seed(mut self, seed: Option<u64>) -> Builder {
        self.schedule_seed = seed;
        self
    }

    /// False: run modules as they are, check nothing. Default true.
    pub fn instrument(mut self, on: bool) -> Builder {
        self.instrument = on;
        self
    }

    /// Calls `on_expiry` when one wait of the host takes longer than `limit`.
    pub fn watchdog(
        mut self,
        limit: Duration,
        on_expiry: impl FnOnce(Report) + Send + 'static,
    ) -> Builder {
        self.watchdog = Some((limit, Box::new(on_expiry)));
        self
    }

    /// Opens the devices, makes the reservation and the runtime's state.
    pub fn build(self) -> Result<Session> {
        Err(Error::Ended)
    }
}

/// Devices with their memory, modules and streams, and what was found so far.
pub struct Session {}

impl Session {
    /// Starts a builder.
    pub fn builder() -> Builder {
        Builder {
            devices: vec![0],
            slots_per_sm: None,
            clock_buffer_size: None,
            seed: 0,
            schedule_seed: None,
            instrument: true,
            watchdog: None,
        }
    }

    /// Instruments a PTX module (unless the session does not) and loads it on every device. `name` (its file name) is what
    /// reports call it.
    pub fn load_module(&mut self, name: &str, ptx: &str) -> Result<ModuleId> {
        let _ = (name, ptx);
        Err(Error::Ended)
    }

    /// The module's kernels with their parameters.
    pub fn kernels(&self, module: ModuleId) -> Result<&[KernelInfo]> {
        Err(Error::UnknownModule(module))
    }

    /// Allocates a buffer, called `name` in reports. Its contents are undefined on a GPU.
    pub fn alloc(
        &mut self,
        name: &str,
        bytes: u64,
        kind: MemoryKind,
        device: u32,
    ) -> Result<Buffer> {
        let _ = (name, bytes, kind, device);
        Err(Error::Ended)
    }

    /// Frees a buffer after all work issued to `stream`; with no stream, after all work of its device, for which the host
    /// waits.
    pub fn free(&mut self, address: u64, stream: Option<StreamId>) -> Result<()> {
        let _ = (address, stream);
        Err(Error::Ended)
    }

    /// A stream. Every call with `LegacyDefault` or `PerThreadDefault` gives the device's one stream of that kind.
    pub fn stream(&mut self, name: &str, flags: StreamFlags, device: u32) -> Result<StreamId> {
        let _ = (name, flags, device);
        Err(Error::Ended)
    }

    /// The device's legacy default stream; reports give it no name.
    pub fn default_stream(&mut self, device: u32) -> Result<StreamId> {
        let _ = device;
        Err(Error::Ended)
    }

    /// A new event on a device.
    pub fn event(&mut self, name: &str, device: u32) -> Result<EventId> {
        let _ = (name, device);
        Err(Error::Ended)
    }

    /// Issues a kernel.
    pub fn launch(&mut self, spec: &LaunchSpec) -> Result<LaunchId> {
        let _ = spec;
        Err(Error::Ended)
    }

    /// Records the stream's work so far in the event.
    pub fn record(&mut self, event: EventId, stream: StreamId) -> Result<()> {
        let _ = (event, stream);
        Err(Error::Ended)
    }

    /// Lets the stream's later work wait for what the event recorded.
    pub fn wait(&mut self, stream: StreamId, event: EventId) -> Result<()> {
        let _ = (event, stream);
        Err(Error::Ended)
    }

    /// Blocks the host; what it waited for is ordered before everything that it issues afterwards.
    pub fn synchronize(&mut self, what: Wait) -> Result<()> {
        let _ = what;
        Err(Error::Ended)
    }

    /// Sets `bytes` bytes to `value`, in the stream.
    pub fn memset(&mut self, address: u64, value: u8, bytes: u64, stream: StreamId) -> Result<()> {
        let _ = (address, value, bytes, stream);
        Err(Error::Ended)
    }

    /// Copies between buffers, in the stream.
    pub fn copy(&mut self, to: u64, from: u64, bytes: u64, stream: StreamId) -> Result<()> {
        let _ = (to, from, bytes, stream);
        Err(Error::Ended)
    }

    /// Copies host bytes to a buffer, as `cuMemcpyHtoD` does: the host waits.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<()> {
        let _ = (address, data);
        Err(Error::Ended)
    }

    /// Copies a buffer's bytes to the host, as `cuMemcpyDtoH` does: ordered with the legacy default stream, the host waits.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>> {
        let _ = (address, bytes);
        Err(Error::Ended)
    }

    /// Issues a copy to the host in the stream; [`Session::take_read`] gets the bytes.
    pub fn read_async(&mut self, address: u64, bytes: u64, stream: StreamId) -> Result<ReadId> {
        let _ = (address, bytes, stream);
        Err(Error::Ended)
    }

    /// Waits for an asynchronous read's stream and returns the bytes.
    pub fn take_read(&mut self, read: ReadId) -> Result<Vec<u8>> {
        let _ = read;
        Err(Error::Ended)
    }

    /// What was found so far, without waiting for anything.
    pub fn report_so_far(&self) -> Option<Report> {
        let _ = Arg::u32(0);
        None
    }

    /// Waits for all work, whatever became of it, and reports. Errors of the run are in the report's outcome and message.
    pub fn finish(self) -> Result<Report> {
        Err(Error::Ended)
    }
}
