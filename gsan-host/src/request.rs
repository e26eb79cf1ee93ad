//! What a caller asks a session for: identities, kinds of memory and streams, kernel launches.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Its number, from 0 in order of creation.
            pub fn number(self) -> u32 {
                self.0
            }
        }
    };
}

id!(
    /// A module that the session loaded.
    ModuleId
);
id!(
    /// A stream of the session.
    StreamId
);
id!(
    /// An event of the session.
    EventId
);
id!(
    /// A graph that the session can launch.
    GraphId
);
id!(
    /// A launch; the same number as [`crate::report::LaunchInfo::id`].
    LaunchId
);
id!(
    /// An asynchronous read that was issued.
    ReadId
);

/// Where a buffer's memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemoryKind {
    /// Device memory of the reservation: checked.
    #[default]
    Device,
    /// Page-locked host memory that kernels see through its own address: plain accesses are not checked.
    Pinned,
    /// Managed memory (`cuMemAllocManaged`): plain accesses are not checked.
    Managed,
    /// Device memory from `cuMemAlloc`, outside the reservation: plain accesses are not checked.
    Foreign,
}

/// How a stream orders itself with the legacy default stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StreamFlags {
    /// Ordered with the legacy default stream, both ways.
    #[default]
    Blocking,
    /// Ordered with nothing.
    NonBlocking,
    /// The device's legacy default stream itself.
    LegacyDefault,
    /// The per-thread default stream: a blocking stream that is always there.
    PerThreadDefault,
}

/// A buffer: plain numbers, valid until it is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Address, as kernels see it.
    pub address: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Where it comes from.
    pub kind: MemoryKind,
    /// Index in the session's list of devices.
    pub device: u32,
}

/// One kernel argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// A scalar's bytes, little-endian: exactly as many as the parameter has.
    Scalar(Vec<u8>),
    /// An address; the parameter must have eight bytes.
    Pointer(u64),
}

impl Arg {
    /// A 32-bit scalar.
    pub fn u32(value: u32) -> Arg {
        Arg::Scalar(value.to_le_bytes().to_vec())
    }

    /// A 64-bit scalar.
    pub fn u64(value: u64) -> Arg {
        Arg::Scalar(value.to_le_bytes().to_vec())
    }

    /// The bytes that the parameter gets.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Arg::Scalar(bytes) => bytes.clone(),
            Arg::Pointer(address) => address.to_le_bytes().to_vec(),
        }
    }
}

/// A kernel launch.
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// The module.
    pub module: ModuleId,
    /// The kernel's name in the PTX.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory, bytes.
    pub dynamic_shared: u32,
    /// All blocks must be resident at once (grid-wide barriers).
    pub cooperative: bool,
    /// May start before its predecessor in the stream ends (programmatic dependent launch).
    pub pdl: bool,
    /// The stream.
    pub stream: StreamId,
    /// One per kernel parameter, the hidden one not counted.
    pub args: Vec<Arg>,
}

impl LaunchSpec {
    /// A launch without any extras.
    pub fn new(
        module: ModuleId,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        stream: StreamId,
    ) -> LaunchSpec {
        LaunchSpec {
            module,
            kernel: kernel.to_string(),
            grid,
            block,
            cluster: None,
            dynamic_shared: 0,
            cooperative: false,
            pdl: false,
            stream,
            args: Vec::new(),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: Arg) -> LaunchSpec {
        self.args.push(arg);
        self
    }
}

/// What the host waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Everything issued to the stream.
    Stream(StreamId),
    /// What the event recorded.
    Event(EventId),
    /// Everything on every device of the session.
    Device,
}

/// A kernel of a module, as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// Its parameters, the hidden one not counted.
    pub params: Vec<ParamInfo>,
}

/// A kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name in the PTX.
    pub name: String,
    /// Its type in the PTX, without the dot: `u64`, `f32`, `b8` for an array of bytes.
    pub ty: String,
    /// Bytes.
    pub size: u32,
    /// Alignment in the parameter list.
    pub align: u32,
}

impl fmt::Display for KernelInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (i, p) in self.params.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}.{} {} bytes", p.ty, p.size)?;
        }
        f.write_str(")")
    }
}
