//! What a run found: the one report model. It knows no output format; gsan-cli does.

pub use gsan_device::layout::{Access, Order, RaceClass, RaceKind, Scope};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Every launch came to its end.
    Completed,
    /// A `trap`, a failed device assertion or an illegal instruction.
    Trap,
    /// An access outside mapped memory, misaligned, or otherwise invalid.
    Fault,
    /// Nothing can run any more.
    Deadlock,
    /// The step budget (simulator) or the watchdog's time (GPU) ran out.
    Budget,
    /// The driver refused something.
    Error,
}

/// Everything that is known after a run, or after several runs of one program with different schedules.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it ended; the worst of several.
    pub outcome: Outcome,
    /// What ended it, in words: address, kernel, line, who waits for what.
    pub message: Option<String>,
    /// The simulator's schedule seed (of the first run); `None` on a GPU.
    pub seed: Option<u64>,
    /// How many runs are merged in here.
    pub schedules: u32,
    /// Where it ran.
    pub device: DeviceInfo,
    /// Launches, by id.
    pub launches: Vec<LaunchInfo>,
    /// Findings, most frequent class of evidence first: in the order of first occurrence.
    pub races: Vec<Race>,
    /// Findings of classes that are switched off ([`Report::hide`]).
    pub hidden: Vec<Race>,
    /// Accesses behind a buffer's end that no fault showed.
    pub past_end: Vec<PastEnd>,
    /// Tallies.
    pub stats: Stats,
    /// Memory instructions that are not checked, with the reason.
    pub unsupported: Vec<UnsupportedInstruction>,
}

/// The device that ran the kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// True for the simulated GPU.
    pub simulated: bool,
    /// The driver's name for it.
    pub name: String,
    /// Multiprocessors.
    pub sms: u32,
}

/// One kernel launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchInfo {
    /// Counts from 0.
    pub id: u32,
    /// Kernel name, as in the PTX.
    pub kernel: String,
    /// Module's file name or given name.
    pub module: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Stream's name; `None` for the default stream.
    pub stream: Option<String>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Race {
    /// RAW, WAR or WAW; which of RAW and WAR it is can depend on the schedule.
    pub kind: RaceKind,
    /// What is missing.
    pub class: RaceClass,
    /// How often it was found.
    pub count: u64,
    /// In how many of the merged runs.
    pub schedules: u32,
    /// First byte.
    pub address: u64,
    /// Name of the buffer that holds it.
    pub buffer: Option<String>,
    /// Bytes from the buffer's start.
    pub offset: Option<u64>,
    /// Bytes.
    pub size: u32,
    /// The access that found the race.
    pub current: Side,
    /// The earlier one, as far as it is known.
    pub prior: Side,
    /// Where half of a release/acquire pattern was there: the access that is the other half, but for its order.
    pub flag: Option<Flag>,
}

/// An access to a flag that lacks its order: the relaxed read of what was released ([`RaceClass::MissingAcquire`]), or the
/// relaxed write of what was acquired ([`RaceClass::MissingRelease`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// First byte.
    pub address: u64,
    /// Name of the buffer that holds it.
    pub buffer: Option<String>,
    /// Bytes from the buffer's start.
    pub offset: Option<u64>,
    /// Who did what, and where.
    pub access: Side,
}

/// One side of a race. Unknown things are `None`, never guessed.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// [`LaunchInfo::id`].
    pub launch: Option<u32>,
    /// Kernel name, or what the host did ([`Side::host_operation`]).
    pub kernel: Option<String>,
    /// Block index.
    pub block: Option<[u32; 3]>,
    /// Thread index in the block.
    pub thread: Option<[u32; 3]>,
    /// What it did.
    pub access: Option<Access>,
    /// With which ordering.
    pub order: Option<Order>,
    /// At which scope; `None` for plain accesses.
    pub scope: Option<Scope>,
    /// Where in the source.
    pub site: Option<Site>,
}

impl Side {
    /// What the host did, if it was the host and no kernel: `memset`, `copy`, `read back` or `write`. Such a side has that
    /// word as its kernel, and neither launch nor site.
    pub fn host_operation(&self) -> Option<&str> {
        match (&self.kernel, self.launch, &self.site) {
            (Some(what), None, None) => Some(what),
            _ => None,
        }
    }
}

/// Accesses of one place in the program behind the end of a buffer, where its mapping goes on: they hit nobody's memory, or,
/// without gsan, somebody else's.
#[derive(Debug, Clone, PartialEq)]
pub struct PastEnd {
    /// The buffer.
    pub buffer: String,
    /// Bytes from its end to the first such word.
    pub past: u64,
    /// How many words were touched, of those that were looked at.
    pub words: u64,
    /// The access, as far as the cell format keeps it.
    pub access: Side,
}

/// A place in the source and in the PTX.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Site {
    /// Source file, as the compiler recorded it; the PTX file where there is no line information.
    pub file: String,
    /// Line, from 1: of the source, or of the PTX where there is no line information.
    pub line: u32,
    /// Column, from 1.
    pub column: Option<u32>,
    /// Line in the PTX.
    pub ptx_line: u32,
    /// The function that holds the instruction.
    pub function: String,
    /// The call chain that was inlined here, innermost first: file, line, column.
    pub inlined_at: Vec<(String, u32, u32)>,
    /// Of a library's function that was not inlined (`nvcc -G`): the places that call it, if there are several. One of them it
    /// was; where there is only one, that is `file` and `line`.
    pub called_from: Vec<(String, u32, u32)>,
    /// Where `file` is a library's and nothing says who called it: the user's lines before and behind it in the PTX. The call is there or close by.
    pub near: Vec<(String, u32, u32)>,
}

/// Tallies of a run; `None` where they could not be read (a dead context).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Places in the PTX that were instrumented.
    pub instrumented_sites: u64,
    /// What else instrumentation did; `None` where the modules ran as they are, or an older report does not say.
    pub instrumentation: Option<Instrumentation>,
    /// Accesses checked.
    pub checked_accesses: Option<u64>,
    /// Plain accesses to memory without shadow.
    pub unchecked_accesses: Option<u64>,
    /// Named miss classes.
    pub misses: Option<Misses>,
    /// Findings for which no record was free.
    pub dropped_records: Option<u64>,
}

/// What instrumentation did besides [`Stats::instrumented_sites`], and what it left out because it cannot race: places in the PTX.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Instrumentation {
    /// Barriers of blocks, hooked or not.
    pub barriers: u64,
    /// Those with hooks.
    pub barrier_hooks: u64,
    /// Other synchronisation inside blocks, with hooks.
    pub block_syncs: u64,
    /// Arrivals and releases that other blocks of a cluster may see, with hooks.
    pub cluster_syncs: u64,
    /// Accesses to shared memory.
    pub shared: u64,
    /// Accesses to local memory.
    pub local: u64,
    /// Accesses to parameters.
    pub param: u64,
    /// Accesses to constant memory.
    pub constant: u64,
    /// Generic accesses that are provably to the thread's stack or the block's shared memory.
    pub private_generic: u64,
    /// Plain accesses to what the same straight-line code has checked before.
    pub repeated: u64,
    /// Non-coherent loads, where they are not to be checked.
    pub non_coherent: u64,
}

impl Instrumentation {
    /// That of several modules.
    pub fn plus(self, other: Instrumentation) -> Instrumentation {
        Instrumentation {
            barriers: self.barriers + other.barriers,
            barrier_hooks: self.barrier_hooks + other.barrier_hooks,
            block_syncs: self.block_syncs + other.block_syncs,
            cluster_syncs: self.cluster_syncs + other.cluster_syncs,
            shared: self.shared + other.shared,
            local: self.local + other.local,
            param: self.param + other.param,
            constant: self.constant + other.constant,
            private_generic: self.private_generic + other.private_generic,
            repeated: self.repeated + other.repeated,
            non_coherent: self.non_coherent + other.non_coherent,
        }
    }
}

impl From<&gsan_ptx::instrument::Stats> for Instrumentation {
    fn from(s: &gsan_ptx::instrument::Stats) -> Instrumentation {
        Instrumentation {
            barriers: s.barriers,
            barrier_hooks: s.barrier_hooks,
            block_syncs: s.block_syncs,
            cluster_syncs: s.cluster_syncs,
            shared: s.shared,
            local: s.local,
            param: s.param,
            constant: s.constant,
            private_generic: s.private_generic,
            repeated: s.repeated,
            non_coherent: s.non_coherent,
        }
    }
}

/// How often an approximation may have hidden a race, by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Misses {
    pub shared_slot: u64,
    pub slot_reuse: u64,
    pub ring_wrap: u64,
    pub saturated: u64,
    /// Bulk copies that were recorded when they were issued and not when they were carried out: too many were under way.
    pub early_copy: u64,
    /// Copies through a tensor map that [`crate::Session::tensor_map`] did not make: not checked.
    pub unknown_map: u64,
    /// Accesses through a multicast address of which the session does not know what it stands for: not checked.
    pub unknown_multicast: u64,
}

/// An instruction that is not checked, or only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedInstruction {
    /// Module's file name or given name.
    pub module: String,
    /// Line in the PTX.
    pub ptx_line: u32,
    /// The instruction.
    pub text: String,
    /// What is not done, and why.
    pub why: String,
    /// It is checked or followed, and something about it is approximated.
    pub partly: bool,
}

impl Report {
    /// Adds another run of the same program, under a different schedule: equal findings become one, with counts added.
    pub fn merge(&mut self, other: Report) {
        crate::merge::merge(self, other);
    }

    /// Switches classes off: their findings go from [`Report::races`] to [`Report::hidden`].
    pub fn hide(&mut self, classes: &[RaceClass]) {
        let hidden = self.races.extract_if(.., |r| classes.contains(&r.class));
        self.hidden.extend(hidden);
    }
}
