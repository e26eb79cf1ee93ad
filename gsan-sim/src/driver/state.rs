//! What the driver knows: every handle is a number that is looked up here, never a pointer that is followed.

use super::Diagnosis;
use super::codes::{Answer, Code};
use super::queue::{OpId, Queue};
use super::vmm::VirtualMemory;
use crate::Config;
use crate::machine::{Backing, FunctionId, Machine, ModuleId};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::Arc;
use std::thread::ThreadId;

/// The value of a `CUcontext`, `CUstream`, `CUevent`, `CUmodule`, `CUfunction`, …
pub(super) type Handle = u64;

/// `CU_STREAM_LEGACY`; the null stream is the same.
pub(super) const LEGACY_STREAM: Handle = 1;
/// `CU_STREAM_PER_THREAD`.
pub(super) const PER_THREAD_STREAM: Handle = 2;

/// Everything behind the lock.
pub(super) struct State {
    /// Counts the resets.
    pub(super) generation: u64,
    /// For the next `cuInit`.
    pub(super) config: Option<Config>,
    /// After `cuInit`.
    pub(super) driver: Option<Driver>,
    /// Where the next driver goes on counting handles, so that stale ones are never valid again.
    pub(super) next_handle: Handle,
    /// The last stop.
    pub(super) diagnosis: Option<Diagnosis>,
}

impl State {
    pub(super) fn new() -> State {
        State {
            generation: 1,
            config: None,
            driver: None,
            // Far from anything that is mapped, and never null.
            next_handle: 0x4753_0000_0000,
            diagnosis: None,
        }
    }

    /// Throws the driver away, and with it the machine and all memory.
    pub(super) fn reset(&mut self) {
        if let Some(driver) = self.driver.take() {
            self.next_handle = driver.next_handle;
        }
        self.generation += 1;
        self.diagnosis = None;
    }
}

/// An initialised driver.
pub(super) struct Driver {
    pub(super) machine: Machine,
    /// Interleaves the streams.
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) devices: Vec<Device>,
    pub(super) contexts: BTreeMap<Handle, Context>,
    pub(super) streams: BTreeMap<Handle, Stream>,
    pub(super) events: HashMap<Handle, Event>,
    pub(super) modules: BTreeMap<Handle, Module>,
    pub(super) functions: HashMap<Handle, Function>,
    pub(super) libraries: HashMap<Handle, super::library::Library>,
    pub(super) links: HashMap<Handle, super::library::Link>,
    pub(super) graphs: super::graph::Graphs,
    pub(super) images: super::texture::Images,
    /// Plain, pinned, managed and registered memory, by its first byte.
    pub(super) allocations: BTreeMap<u64, Allocation>,
    pub(super) virtual_memory: VirtualMemory,
    pub(super) queue: Queue,
    pub(super) next_handle: Handle,
    /// Set when a stop has happened and nobody has taken it over into [`State::diagnosis`] yet.
    pub(super) diagnosis: Option<Diagnosis>,
}

#[derive(Default)]
pub(super) struct Device {
    /// Bytes that are allocated.
    pub(super) used: u64,
    /// The primary context, while it is retained.
    pub(super) primary: Option<Handle>,
    /// How often it is retained.
    pub(super) primary_references: u32,
    /// Flags for it.
    pub(super) primary_flags: u32,
}

pub(super) struct Context {
    pub(super) device: u32,
    pub(super) flags: u32,
    pub(super) primary: bool,
    /// What it answers from now on, after a kernel has failed.
    pub(super) error: Option<Code>,
    /// The legacy default stream.
    pub(super) legacy: Tail,
    /// Last operations of blocking streams that are gone: the legacy stream still waits for them.
    pub(super) orphans: Vec<OpId>,
    /// Per-thread default streams, made on first use.
    pub(super) per_thread: HashMap<ThreadId, Handle>,
    /// Devices whose memory this context's kernels may access (`cuCtxEnablePeerAccess`).
    pub(super) peers: u64,
    /// `cuCtxSetLimit`.
    pub(super) limits: [Option<usize>; 16],
    pub(super) cache_config: i32,
    pub(super) shared_config: i32,
}

pub(super) struct Stream {
    pub(super) context: Handle,
    pub(super) flags: u32,
    pub(super) priority: i32,
    pub(super) tail: Tail,
}

/// Where a stream has come to.
#[derive(Clone, Copy, Default)]
pub(super) struct Tail {
    /// Its last operation.
    pub(super) last: Option<OpId>,
    /// The kernel that was the last thing to be put there.
    pub(super) kernel: Option<OpId>,
    /// The kernel whose programmatic event was the last thing that it was told to wait for.
    pub(super) trigger: Option<OpId>,
}

impl Stream {
    /// Whether it and the legacy default stream wait for each other.
    pub(super) fn is_blocking(&self) -> bool {
        self.flags & 1 == 0
    }
}

pub(super) struct Event {
    pub(super) context: Handle,
    pub(super) flags: u32,
    /// The last record: its operation, and when that was done.
    pub(super) record: Option<Record>,
    /// If that was in a stream that was being captured: in which capture, and the nodes that it comes after.
    pub(super) captured: Option<(Handle, Vec<super::graph::Edge>)>,
}

#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) op: OpId,
    /// In simulated nanoseconds.
    pub(super) time: Option<u64>,
    /// The kernel whose letting go this is, rather than the end of a stream.
    pub(super) kernel: Option<OpId>,
}

pub(super) struct Module {
    pub(super) context: Handle,
    pub(super) id: ModuleId,
}

pub(super) struct Function {
    pub(super) module: Handle,
    pub(super) id: FunctionId,
    pub(super) name: CString,
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`, once it has been set.
    pub(super) max_dynamic: Option<u32>,
    pub(super) carveout: i32,
    pub(super) non_portable_cluster: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllocationKind {
    Device,
    /// Of the host's, from `cuMemHostAlloc`, with its flags.
    Pinned(u32),
    Managed,
    /// The caller's own, from `cuMemHostRegister`, with its flags.
    Registered(u32),
}

pub(super) struct Allocation {
    pub(super) len: u64,
    pub(super) kind: AllocationKind,
    pub(super) context: Handle,
    pub(super) device: u32,
    /// Holds pinned and managed memory.
    pub(super) _backing: Option<Arc<Backing>>,
    /// A stream-ordered free is under way.
    pub(super) freeing: bool,
    /// Unique in the process.
    pub(super) id: u64,
}

impl Driver {
    pub(super) fn new(config: Config, next_handle: Handle) -> Driver {
        // The scheduler's seed with other bits set, so that the two do not draw the same numbers.
        let rng = Xoshiro256PlusPlus::seed_from_u64(config.seed ^ 0x5354_5245_414d_5321);
        let devices = (0..config.devices).map(|_| Device::default()).collect();
        Driver {
            machine: Machine::new(config),
            rng,
            devices,
            contexts: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: HashMap::new(),
            modules: BTreeMap::new(),
            functions: HashMap::new(),
            libraries: HashMap::new(),
            links: HashMap::new(),
            graphs: super::graph::Graphs::default(),
            images: super::texture::Images::default(),
            allocations: BTreeMap::new(),
            virtual_memory: VirtualMemory::default(),
            queue: Queue::default(),
            next_handle,
            diagnosis: None,
        }
    }

    pub(super) fn new_handle(&mut self) -> Handle {
        self.next_handle += 64;
        self.next_handle
    }

    pub(super) fn device(&self, ordinal: i32) -> Answer<u32> {
        u32::try_from(ordinal)
            .ok()
            .filter(|&device| device < self.machine.config().devices)
            .ok_or(Code::INVALID_DEVICE)
    }

    pub(super) fn context(&self, context: Handle) -> Answer<&Context> {
        self.contexts.get(&context).ok_or(Code::INVALID_CONTEXT)
    }

    pub(super) fn context_mut(&mut self, context: Handle) -> Answer<&mut Context> {
        self.contexts.get_mut(&context).ok_or(Code::INVALID_CONTEXT)
    }

    /// The error that a context has been left with.
    pub(super) fn health(&self, context: Handle) -> Answer {
        self.context(context)?.error.map_or(Ok(()), Err)
    }

    pub(super) fn event(&mut self, event: Handle) -> Answer<&mut Event> {
        self.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)
    }

    pub(super) fn function(&self, function: Handle) -> Answer<&Function> {
        self.functions.get(&function).ok_or(Code::INVALID_HANDLE)
    }

    pub(super) fn module(&self, module: Handle) -> Answer<&Module> {
        self.modules.get(&module).ok_or(Code::INVALID_HANDLE)
    }

    /// The allocation that holds an address, with its first byte.
    pub(super) fn allocation_at(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (&start, allocation) = self.allocations.range(..=address).next_back()?;
        (address - start < allocation.len).then_some((start, allocation))
    }

    /// Takes `bytes` of a device's memory, or says that there is not that much.
    pub(super) fn charge(&mut self, device: u32, bytes: u64) -> Answer {
        let total = self.machine.config().memory_bytes;
        let device = self
            .devices
            .get_mut(device as usize)
            .ok_or(Code::INVALID_DEVICE)?;
        match device.used.checked_add(bytes) {
            Some(used) if used <= total => {
                device.used = used;
                Ok(())
            }
            _ => Err(Code::OUT_OF_MEMORY),
        }
    }

    pub(super) fn refund(&mut self, device: u32, bytes: u64) {
        if let Some(device) = self.devices.get_mut(device as usize) {
            device.used = device.used.saturating_sub(bytes);
        }
    }
}
