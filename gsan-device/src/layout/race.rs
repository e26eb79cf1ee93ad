//! Findings and tallies.

use super::{Epoch, Op};
use bytemuck::{Pod, Zeroable};

/// The identity of a finding, in device memory: equal findings are counted, not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct RaceKey {
    /// Mixed from kind, module and sites; 0 = free.
    pub key: u64,
    /// How often it was found.
    pub count: u32,
    /// Zero.
    pub reserved: u32,
}

/// Read after write, write after read, write after write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RaceKind {
    /// The current access reads what an unordered write wrote.
    Raw = 1,
    /// The current access writes what an unordered read read.
    War = 2,
    /// Both write.
    Waw = 3,
}

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct RaceSide {
    /// [`LaunchRecord::launch_id`](super::LaunchRecord::launch_id); meaningful with [`RaceSide::LAUNCH`].
    pub launch_id: u32,
    /// `%ctaid`; with [`RaceSide::BLOCK`].
    pub block: [u32; 3],
    /// `%tid`; with [`RaceSide::THREAD`].
    pub thread: [u32; 3],
    /// Index in the module's site table; with [`RaceSide::SITE`].
    pub site: u32,
    /// The module of `site`.
    pub module_id: u32,
    /// What it did; with [`RaceSide::OP`] exact, else only access, order and scope as far as the cell keeps them.
    pub op: Op,
    /// Which fields are known.
    pub known: u32,
    /// Logical thread.
    pub slot: u32,
    /// Epoch of the access.
    pub epoch: Epoch,
}

impl RaceSide {
    /// `launch_id` is known.
    pub const LAUNCH: u32 = 1;
    /// `block` is known.
    pub const BLOCK: u32 = 2;
    /// `thread` is known.
    pub const THREAD: u32 = 4;
    /// `site` and `module_id` are known.
    pub const SITE: u32 = 8;
    /// `op` is exact.
    pub const OP: u32 = 16;
    /// Instead of [`RaceSide::THREAD`]: `thread[0]` is the thread's linear index in its block.
    pub const LINEAR_THREAD: u32 = 64;
    /// All that a kernel's own access knows of itself.
    pub const KERNEL_SIDE: u32 = Self::LAUNCH | Self::BLOCK | Self::THREAD | Self::SITE | Self::OP;
    /// `site` is a line and column (`line << 10 | column`) of a hand-linked module's source, not an index.
    pub const LINKED_SITE: u32 = 32;
}

/// One finding, in mapped host memory, so that it survives whatever becomes of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct RaceRecord {
    /// 0: empty; 1: being written; 2: complete. Written last, at system scope.
    pub state: u32,
    /// [`RaceKind`].
    pub kind: u32,
    /// How often, as far as the device has told the host (exact once the launch is over: see [`RaceKey::count`]).
    pub count: u32,
    /// [`RaceClass`].
    pub class: u32,
    /// First byte of the conflicting word, or of the access inside it.
    pub address: u64,
    /// The access that found the race.
    pub current: RaceSide,
    /// The one found in the shadow.
    pub prior: RaceSide,
    /// With [`RaceClass::MissingAcquire`] the relaxed read of the flag, with [`RaceClass::MissingRelease`] the write to it,
    /// if that is known (`known != 0`).
    pub flag: RaceSide,
    /// Zero.
    pub reserved: u32,
    /// First byte of the flag.
    pub flag_address: u64,
}

/// What kind of missing order a race is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RaceClass {
    /// No synchronisation orders the two.
    Race = 0,
    /// Both are synchronising operations, but a scope does not cover the pair.
    ScopeTooNarrow = 1,
    /// The other half of a release/acquire pattern was there: the acquire is missing.
    MissingAcquire = 2,
    /// The release is missing.
    MissingRelease = 3,
    /// Atomics of different width on one word.
    MixedWidth = 4,
    /// A non-coherent load of memory written during the launch.
    StaleNc = 5,
    /// Two warps of one block.
    IntraBlock = 6,
    /// A launch that may start before its predecessor has ended, and never waits for it. Found by the host.
    MissingWait = 7,
}

/// Tallies that the runtime keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Counters {
    /// Accesses checked against shadow memory.
    pub checked: u64,
    /// Plain global accesses to memory without shadow.
    pub unchecked: u64,
    /// Blocks that had to share a slot.
    pub shared_slot: u64,
    /// Imports of a slot's scalar that cover tenants which the publisher did not know.
    pub slot_reuse: u64,
    /// Acquires of an overwritten token.
    pub ring_wrap: u64,
    /// Checks against a saturated epoch.
    pub saturated: u64,
    /// Findings for which no record was free.
    pub dropped: u64,
    /// Bulk copies that were recorded when they were issued and not again when they were carried out, because too many were
    /// under way.
    pub early_copies: u64,
    /// Copies through a tensor map that the host does not know: not checked.
    pub unknown_maps: u64,
    /// Accesses to multicast memory (`multimem`) of which the host does not know what it stands for: not checked.
    pub unknown_multicasts: u64,
}
