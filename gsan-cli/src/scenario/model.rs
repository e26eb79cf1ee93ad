//! A scenario as the rest of the program sees it: names resolved, numbers in range, places kept for messages.

use crate::element::{ElementType, Init, Number};
use gsan_host::report::{Outcome, RaceClass, RaceKind};
use gsan_host::{CellFormat, TensorSpec};
use std::path::PathBuf;

/// Steps over modules, buffers and streams, and what must come out.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// A title.
    pub name: String,
    /// The file that it came from, for messages; the PTX file in the one-kernel form.
    pub file: PathBuf,
    /// Shape of the simulated device.
    pub device: DeviceShape,
    /// Report classes that are switched off.
    pub classes_off: Vec<RaceClass>,
    /// Seconds that the host waits at most for a GPU; the simulator has its step budget.
    pub timeout: Option<u32>,
    /// PTX modules.
    pub modules: Vec<Module>,
    /// Buffers, allocated in this order before the first step.
    pub buffers: Vec<Buffer>,
    /// Every stream that a step names, in the order of first use after those declared.
    pub streams: Vec<Stream>,
    /// Events that a step records.
    pub events: Vec<String>,
    /// Graphs, written out or captured by steps.
    pub graphs: Vec<Graph>,
    /// In the order in which the host issues them.
    pub steps: Vec<Step>,
    /// What must come out.
    pub expect: Option<Expect>,
}

impl Scenario {
    /// Whether a run of it can tell anything: it accesses memory, or is about a refusal that comes before any access.
    pub fn does_something(&self) -> bool {
        let accesses = |step: &Step| {
            matches!(
                step.action,
                Action::Launch(_)
                    | Action::Memset { .. }
                    | Action::Copy { .. }
                    | Action::ReadBack { .. }
                    | Action::LaunchGraph { .. }
            )
        };
        let refusal = |e: &Expect| e.outcome != Outcome::Completed;
        self.steps.iter().any(accesses) || self.expect.as_ref().is_some_and(refusal)
    }
}

/// `[device]`; `None` means the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceShape {
    /// Multiprocessors.
    pub sms: Option<u32>,
    /// Devices.
    pub devices: Option<u32>,
    /// Blocks that a multiprocessor holds at once.
    pub blocks_per_sm: Option<u32>,
    /// Logical threads per multiprocessor.
    pub slots_per_sm: Option<u32>,
    /// Snapshots per logical thread.
    pub clock_buffer_size: Option<u32>,
    /// The shadow cells' format.
    pub cell: Option<CellFormat>,
    /// Each `fence.sc` synchronises with the next.
    pub sc_order: bool,
    /// What the simulator's threads see of each other's stores.
    pub memory: Option<gsan_sim::MemoryModel>,
    /// How the simulator schedules.
    pub schedule: Option<gsan_sim::Schedule>,
    /// What warps that have exited mean to the simulator's barriers.
    pub exited_warps: Option<gsan_sim::ExitedWarps>,
}

/// `[[module]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name in the scenario.
    pub name: String,
    /// Where the PTX is.
    pub source: ModuleSource,
    /// Files of PTX that are linked with it into one program.
    pub link: Vec<PathBuf>,
    /// Line of the scenario.
    pub line: u32,
    /// The scenario's line that is the first of an inline text; 0 where the text is another file's or not written as it is.
    pub text_line: u32,
}

/// Where a module's text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleSource {
    /// A file, its path ready to open.
    File(PathBuf),
    /// In the scenario itself.
    Inline(String),
}

/// `[[buffer]]`
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub ty: ElementType,
    /// Elements.
    pub len: u64,
    /// Content at first.
    pub init: Init,
    /// Device that it lives on.
    pub device: u32,
    /// Kind of memory.
    pub memory: Memory,
    /// Of a multicast buffer: the devices of its parts, which are the next buffers.
    pub devices: Vec<u32>,
    /// Line of the scenario; 0 in the one-kernel form.
    pub line: u32,
}

impl Buffer {
    /// Bytes; checked against overflow when it was parsed.
    pub fn bytes(&self) -> u64 {
        self.len * self.ty.size() as u64
    }
}

/// Where a buffer lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// From gsan's allocator, with shadow.
    #[default]
    Device,
    /// Page-locked host memory.
    Pinned,
    /// Managed memory.
    Managed,
    /// Device memory that is not from gsan's allocator.
    Foreign,
    /// An address that stands for a buffer on each of several devices.
    Multicast,
    /// One of those buffers.
    #[serde(skip)]
    Part,
}

/// `[[stream]]`, or a stream that a step named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// What it is.
    pub flags: StreamFlags,
    /// Device that it belongs to.
    pub device: u32,
}

/// What kind of stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamFlags {
    /// Waits for the legacy default stream and is waited for.
    #[default]
    Blocking,
    /// Does not.
    NonBlocking,
    /// The legacy default stream.
    LegacyDefault,
    /// The default stream of the calling thread.
    PerThreadDefault,
}

/// `[[graph]]`, or a graph that steps capture.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// What it consists of; none where it is captured.
    pub nodes: Vec<Node>,
    /// Steps make it.
    pub captured: bool,
    /// Line of the scenario.
    pub line: u32,
}

/// `[[graph.node]]`
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name; `#` and its number where it has none.
    pub name: String,
    /// Indices of nodes of the same graph that come before it.
    pub after: Vec<usize>,
    /// A launch, a memset, a copy, another graph, or nothing.
    pub action: Action,
    /// Line of the scenario.
    pub line: u32,
}

/// One thing that the host does.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Line of the scenario; 0 in the one-kernel form.
    pub line: u32,
    /// Index into [`Scenario::streams`]; `None`: the default stream, or a synchronous call.
    pub stream: Option<usize>,
    /// What.
    pub action: Action,
}

/// What a step does. Indices point into the scenario's tables.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Action {
    Launch(Launch),
    Record {
        event: usize,
    },
    Wait {
        event: usize,
    },
    Synchronize(SyncTarget),
    Memset {
        buffer: usize,
        value: u8,
    },
    Copy {
        from: BufferRef,
        to: BufferRef,
        bytes: u64,
    },
    ReadBack {
        buffer: usize,
    },
    Free {
        buffer: usize,
    },
    Allocate {
        buffer: usize,
    },
    /// The host asks until the answer is yes.
    Query(SyncTarget),
    Forget {
        at: BufferRef,
        bytes: u64,
    },
    LaunchGraph {
        graph: usize,
    },
    Capture {
        graph: usize,
    },
    EndCapture {
        graph: usize,
    },
    /// Only in a graph.
    Empty,
}

/// What the host waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SyncTarget {
    Stream(usize),
    Event(usize),
    Device,
}

/// A place in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferRef {
    /// Index into [`Scenario::buffers`].
    pub buffer: usize,
    /// Bytes.
    pub offset: u64,
}

/// A kernel launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The kernel.
    pub kernel: String,
    /// Index into [`Scenario::modules`].
    pub module: usize,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    /// All blocks resident at once.
    pub cooperative: bool,
    /// Programmatic dependent launch on its predecessor in the stream.
    pub pdl: bool,
    /// One per parameter.
    pub args: Vec<Arg>,
}

/// A kernel argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A buffer's address.
    Buffer(BufferRef),
    /// A number.
    Scalar {
        /// Its type.
        ty: ElementType,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A tensor map.
    Tensor(Tensor),
}

/// A tensor in a buffer, for a map of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// The first element.
    pub at: BufferRef,
    /// How the map is made.
    pub spec: TensorSpec,
}

impl Arg {
    /// Bytes that it takes in the parameter list.
    pub fn size(&self) -> usize {
        match self {
            Arg::Buffer(_) => 8,
            Arg::Scalar { bytes, .. } => bytes.len(),
            Arg::Tensor(_) => 128,
        }
    }
}

/// `[expect]`
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// Schedules to try.
    pub schedules: Option<u32>,
    /// How it must end.
    pub outcome: Outcome,
    /// Part of the message of that end.
    pub message: Option<String>,
    /// The races.
    pub races: Vec<ExpectedRace>,
    /// Buffer contents.
    pub values: Vec<ExpectedValue>,
}

/// `[[expect.race]]`: what is `None` matches anything.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)]
pub struct ExpectedRace {
    pub kinds: Option<Vec<RaceKind>>,
    pub classes: Option<Vec<RaceClass>>,
    pub buffer: Option<String>,
    pub offset: Option<u64>,
    pub kernel: Option<String>,
    /// One of these.
    pub source_lines: Option<Vec<u32>>,
    pub prior_line: Option<u32>,
    /// In how many schedules it must show.
    pub min_schedules: u32,
    /// Line of the scenario.
    pub line: u32,
}

/// `[[expect.value]]`
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedValue {
    /// Index into [`Scenario::buffers`].
    pub buffer: usize,
    /// A prefix of its elements.
    pub values: Vec<Number>,
    /// Line of the scenario.
    pub line: u32,
}
