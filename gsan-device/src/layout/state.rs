//! Runtime state: devices, logical threads, launches, blocks, modules.

use super::{Epoch, Op, PartialClock, PendingCopy, ScalarClock};
use bytemuck::{Pod, Zeroable};
use core::mem::size_of;

/// What all of a device's runtime knows; one per device, constant while kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct GlobalState {
    /// [`LAYOUT_VERSION`](super::LAYOUT_VERSION).
    pub version: u32,
    /// This device's rank among `num_devices`.
    pub device: u32,
    /// First byte of user memory in the reservation.
    pub real_base: u64,
    /// Bytes of user memory in the reservation.
    pub real_size: u64,
    /// The cell of `real_base`.
    pub shadow_base: u64,
    /// The [`ThreadState`] of thread 0; the others follow at `thread_stride`, device by device at `device_stride`.
    pub threads: u64,
    /// Bytes from one thread state to the next of the same device.
    pub thread_stride: u64,
    /// Bytes from the first thread state of a device to that of the next.
    pub device_stride: u64,
    /// Multiprocessors per device.
    pub num_sms: u32,
    /// Logical threads (residency slots) per multiprocessor.
    pub slots_per_sm: u32,
    /// Devices.
    pub num_devices: u32,
    /// `num_devices * num_sms * slots_per_sm`: the length of a clock row.
    pub num_threads: u32,
    /// Snapshots in a thread's ring.
    pub clock_buffer_size: u32,
    /// Seed of the readers' sampling.
    pub seed: u32,
    /// [`SmSlots`] of this device, one per multiprocessor.
    pub sm_slots: u64,
    /// [`Range`]s of module variables, sorted by address.
    pub ranges: u64,
    /// Number of ranges.
    pub num_ranges: u32,
    /// Sync clocks minus one (a power of two minus one).
    pub sync_mask: u32,
    /// [`ShadowCell`](super::ShadowCell)s for strong accesses outside all shadowed memory, hashed by address.
    pub sync_cells: u64,
    /// [`BlockEntry`]s of blocks without room in shared memory, hashed by grid and block.
    pub block_table: u64,
    /// Entries of that table minus one.
    pub block_mask: u32,
    /// Entries of the race table and of the record buffer (a power of two).
    pub race_capacity: u32,
    /// [`RaceKey`](super::RaceKey)s in device memory.
    pub race_keys: u64,
    /// [`RaceRecord`](super::RaceRecord)s in mapped host memory; same index as `race_keys`.
    pub race_records: u64,
    /// [`Counters`](super::Counters).
    pub counters: u64,
    /// [`GlobalState::COUNT_ACCESSES`] and later switches.
    pub flags: u32,
    /// Entries of the table of tensor maps minus one (a power of two minus one).
    pub tensor_mask: u32,
    /// [`TensorMap`](super::TensorMap)s, hashed by their bits; 0: there are none.
    pub tensor_maps: u64,
    /// [`Multicast`]s: what `multimem` instructions access.
    pub multicasts: u64,
    /// Number of those.
    pub num_multicasts: u32,
    /// Zero.
    pub reserved: u32,
}

impl GlobalState {
    /// Count checked and unchecked accesses.
    pub const COUNT_ACCESSES: u32 = 1;
    /// Several devices share the shadow: the host has widened the runtime's own atomics and fences to system scope.
    pub const SHARED_SHADOW: u32 = 2;
    /// Each `fence.sc` synchronises with the next, as PTX has it. Without it two of them synchronise as C++'s do: only
    /// through a value that one side wrote and the other read.
    pub const SC_ORDER: u32 = 4;
}

/// A module variable's memory and its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// The cell of the word that holds `start`.
    pub shadow: u64,
}

/// Memory of one device that is bound to a range of multicast addresses. A range has one of these for each device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Multicast {
    /// First multicast address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// The memory's own address.
    pub memory: u64,
}

/// Which slots of a multiprocessor are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct SmSlots {
    /// One bit per slot.
    pub used: u32,
    /// Rotates the search, so that identities are reused as late as possible.
    pub next: u32,
}

/// The state of one logical thread (a block's residency slot): this header, then, each `num_threads` epochs long, the
/// own clock, the pending clock and the unreleased clock (strong writes that were acquired and carried no release), then `clock_buffer_size` snapshots, then [`Tenant`]s, then [`PendingCopy`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct ThreadState {
    /// The device's [`GlobalState`].
    pub global: u64,
    /// Which thread this is ([`ThreadState::who`]).
    pub who: u64,
    /// [`GlobalState::real_base`]. Here, like the next three, what every access asks for lies in one place; each tenant copies it.
    pub real_base: u64,
    /// [`GlobalState::real_size`].
    pub real_size: u64,
    /// [`GlobalState::shadow_base`].
    pub shadow_base: u64,
    /// [`GlobalState::counters`], or 0 where accesses are not counted.
    pub access_counters: u64,
    /// The clock row that the tenant inherited; read-only.
    pub base_row: u64,
    /// 0: the tenant's clock is `base_row`; 1: being copied; 2: it is the own clock behind this header.
    pub clock_mode: u32,
    /// The tenant's current epoch.
    pub epoch: Epoch,
    /// The tenant's first epoch: `[start_epoch, epoch]` are its own.
    pub start_epoch: Epoch,
    /// [`GlobalState::seed`].
    pub seed: u32,
    /// Tenants at the moment (more than one: a shared slot).
    pub users: u32,
    /// Taken on entry and exit only.
    pub lock: u32,
    /// Snapshots taken so far: the next token.
    pub ring_head: u32,
    /// State of the pending clock's memory: 0 stale, 1 being cleared, 2 valid.
    pub pending_mode: u32,
    /// Epoch closed by the last release fence that covers the device (0: none).
    pub fence_gpu: Epoch,
    /// The same for system scope.
    pub fence_sys: Epoch,
    /// Thread and token acquired last (`thread << 32 | token`), so that a spin loop merges it once.
    pub last_acquired: u64,
    /// Thread and token that became pending last.
    pub last_pending: u64,
    /// Reads so far, for the sampling.
    pub num_reads: u32,
    /// Tenants so far, for the history.
    pub tenants: u32,
    /// `ring_head` when the tenant came: later tokens are its own.
    pub first_token: u32,
    /// How many clocks have become pending in this tenancy.
    pub pending_version: u32,
    /// How many of those are in the own clock, all threads' imports being complete.
    pub imported_version: u32,
    /// State of the unreleased clock's memory: 0 stale, 1 being cleared, 2 valid.
    pub unreleased_mode: u32,
    /// Nonzero: the block's warps are told apart.
    pub intra_block: u32,
    /// Where relaxed reads made clocks pending, a bit for each hash of an address.
    pub pending_places: u32,
    /// Epoch closed by the block's last `fence.sc`.
    pub sc_block: Epoch,
    /// Epoch of the last plain access or write that a cell recorded.
    pub last_record: Epoch,
    /// `start_epoch` of the tenant that has imported its launch's `wait_row`.
    pub waited: Epoch,
    /// How many of the [`PendingCopy`]s the tenant has used so far, from the first on.
    pub copies: u32,
    /// The last epoch that a `cp.async` was recorded in, ahead of its time.
    pub ahead: Epoch,
    /// A bit for each warp whose [`ThreadState::unreleased_places`] holds.
    pub unreleased_reads: u32,
    /// Epoch of the last strong read that a cell recorded.
    pub last_read: Epoch,
    /// How many [`ThreadState::late_writes`] there were.
    pub num_late_writes: u32,
    /// The release of the device's last `fence.sc` ([`SyncClock`](super::SyncClock)); of a device's first thread only.
    pub sc_device: u64,
    /// The same for system scope; of the very first thread only.
    pub sc_system: u64,
    /// Of each barrier: the epoch that the last arrival closed. Like all epochs it only grows, so that what earlier
    /// tenants left says nothing.
    pub barriers: [Epoch; ThreadState::BARRIERS],
    /// The same of arrivals without a thread count, which are the whole block's.
    pub whole_barriers: [Epoch; ThreadState::BARRIERS],
    /// Of each barrier: what those who arrived there with a thread count knew of each warp, themselves included.
    pub barrier_rows: [[Epoch; ThreadState::WARPS]; ThreadState::BARRIERS],
    /// Of each warp: up to which epoch it knows all of the block's other warps.
    pub warps: [Epoch; ThreadState::WARPS],
    /// The same, once an acquire fence follows: from relaxed reads.
    pub pending_warps: [Epoch; ThreadState::WARPS],
    /// Of each warp: up to which epoch it knows some of the block's other warps.
    pub reach: [Epoch; ThreadState::WARPS],
    /// Of each warp: the epoch of its last strong read that a cell recorded.
    pub last_reads: [Epoch; ThreadState::WARPS],
    /// Of each warp: the token that carries the last release fence (0: none yet).
    pub fence_tokens: [u32; ThreadState::WARPS],
    /// Of each warp: where its last relaxed read found no release (8-byte addresses).
    pub unreleased_places: [u64; ThreadState::WARPS],
    /// Of each warp: up to which epoch it knows each of the others, through barriers of a part of the block.
    pub pairs: [[Epoch; ThreadState::WARPS]; ThreadState::WARPS],
    /// What the own clock knows of single warps of other blocks.
    pub partials: [PartialClock; PartialClock::PER_ROW],
    /// The same for the pending clock.
    pub pending_partials: [PartialClock; PartialClock::PER_ROW],
    /// The last relaxed reads that saw a release, in turn.
    pub relaxed_reads: [HalfSync; ThreadState::HALVES],
    /// The last strong writes without a release that an acquire operation saw, in turn.
    pub relaxed_writes: [HalfSync; ThreadState::HALVES],
    /// The block's last strong writes behind a release fence that came after other accesses behind it, in turn: of `source` the
    /// lower half is the fence's epoch.
    pub late_writes: [HalfSync; ThreadState::HALVES],
    /// How many relaxed reads there were.
    pub num_relaxed_reads: u32,
    /// How many such writes.
    pub num_relaxed_writes: u32,
}

/// Half of a release/acquire pattern whose other half was there: a report on what it leaves unordered names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct HalfSync {
    /// Of a relaxed read: thread and token of the release that it saw (`thread << 32 | token`). Of a write: its thread and
    /// epoch. 0 while it is being written.
    pub source: u64,
    /// Where.
    pub address: u64,
    /// The reading thread's epoch.
    pub epoch: Epoch,
    /// What it did.
    pub op: Op,
    /// Its site, [`NO_SITE`](super::NO_SITE) if that is not known.
    pub site: u32,
    /// Linear index of its thread in its block.
    pub linear: u32,
}

impl ThreadState {
    /// [`ThreadState::who`]: the index in a clock row (bits 0–31) and the length of a row (bits 32–63).
    pub const fn identity(thread: u32, num_threads: u32) -> u64 {
        thread as u64 | (num_threads as u64) << 32
    }

    /// Index in a clock row.
    pub const fn thread_id(&self) -> u32 {
        self.who as u32
    }

    /// Tenants that the history keeps; a power of two. (Model checks pay for every word.)
    pub const HISTORY: u32 = if cfg!(loom) { 2 } else { 64 };

    /// Named barriers of a block.
    pub const BARRIERS: usize = if cfg!(loom) { 2 } else { 16 };

    /// Warps of a block.
    pub const WARPS: usize = if cfg!(loom) { 2 } else { 32 };

    /// [`HalfSync`]s of a kind that are kept.
    pub const HALVES: usize = if cfg!(loom) { 1 } else { 4 };

    /// Bulk copies of a block that can be under way at a time.
    pub const COPIES: u32 = if cfg!(loom) { 1 } else { 64 };

    /// Offset of the own clock.
    pub const CLOCK: u64 = size_of::<ThreadState>() as u64;

    /// Offset of the pending clock.
    pub const fn pending_offset(num_threads: u32) -> u64 {
        Self::CLOCK + 4 * num_threads as u64
    }

    /// Offset of the unreleased clock.
    pub const fn unreleased_offset(num_threads: u32) -> u64 {
        Self::CLOCK + 8 * num_threads as u64
    }

    /// Offset of the snapshot ring.
    pub const fn ring_offset(num_threads: u32) -> u64 {
        (Self::CLOCK + 12 * num_threads as u64).next_multiple_of(8)
    }

    /// Offset of the tenants' history.
    pub const fn history_offset(num_threads: u32, clock_buffer_size: u32) -> u64 {
        Self::ring_offset(num_threads) + Snapshot::stride(num_threads) * clock_buffer_size as u64
    }

    /// Offset of the copies that are under way.
    pub const fn copies_offset(num_threads: u32, clock_buffer_size: u32) -> u64 {
        let history = Self::HISTORY as u64 * size_of::<Tenant>() as u64;
        (Self::history_offset(num_threads, clock_buffer_size) + history).next_multiple_of(8)
    }

    /// Bytes from one state to the next, a multiple of 128.
    pub const fn stride(num_threads: u32, clock_buffer_size: u32) -> u64 {
        let end = Self::copies_offset(num_threads, clock_buffer_size)
            + Self::COPIES as u64 * size_of::<PendingCopy>() as u64;
        end.next_multiple_of(128)
    }
}

/// A published clock: this header, then `num_threads` epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Snapshot {
    /// The absolute index, written last; another value: overwritten or not yet written.
    pub token: u32,
    /// Epoch of the write that the cell records (the publisher's own, or an earlier writer's while a compare-and-swap
    /// has not yet succeeded); 0: no write.
    pub epoch: Epoch,
    /// Thread and scope of that write, as a [`ScalarClock`] without an epoch.
    pub event: ScalarClock,
    /// Nonzero when clocks of other releases were joined in that the publisher had not acquired itself.
    pub joined: u32,
    /// What is known of single warps; the first one is the publisher's own (empty: the entries say all).
    pub partials: [PartialClock; PartialClock::PER_ROW],
}

impl Snapshot {
    /// Bytes from one snapshot to the next.
    pub const fn stride(num_threads: u32) -> u64 {
        size_of::<Snapshot>() as u64 + 4 * (num_threads as u64).next_multiple_of(4)
    }
}

/// Who used a slot from an epoch on: lets a report name the other side's launch and block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Tenant {
    /// The tenancy's first epoch.
    pub start_epoch: Epoch,
    /// [`LaunchRecord::launch_id`].
    pub launch_id: u32,
    /// `%ctaid`.
    pub block: [u32; 3],
    /// [`LaunchRecord::module_id`].
    pub module_id: u32,
    /// Nonzero when several blocks shared the slot then: launch and block are not known.
    pub shared: u32,
}

/// What a launch inherits and where its blocks publish: the hidden kernel parameter points to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct LaunchRecord {
    /// The device's [`GlobalState`].
    pub global: u64,
    /// `num_threads` epochs: what every block knows on entry. Read-only during the launch.
    pub base_row: u64,
    /// `num_threads` epochs, a copy of `base_row` at first: exiting blocks raise it.
    pub out_row: u64,
    /// `num_threads` epochs: what a `griddepcontrol.wait` adds, the row in which the launch before publishes. 0: nothing,
    /// the launch started after that one.
    pub wait_row: u64,
    /// Number of the launch.
    pub launch_id: u32,
    /// Number of the module; a site index alone means nothing without it.
    pub module_id: u32,
    /// Dynamic shared memory that the user asked for (the launch itself asks for more), bytes.
    pub dynamic_shared: u32,
    /// [`LaunchRecord::INTRA_BLOCK`], [`LaunchRecord::CHAINED`], [`LaunchRecord::cluster_flags`].
    pub flags: u32,
    /// A word in page-locked host memory that becomes 1 once a thread has waited (`griddepcontrol.wait`). 0: none.
    pub waited: u64,
}

impl LaunchRecord {
    /// The kernel's barriers call their hooks, and the block's warps are to be told apart.
    pub const INTRA_BLOCK: u32 = 1;
    /// Behind `wait_row` is a [`Handover`], which says what the blocks know from the start: the launch before is a dependent one, too.
    pub const CHAINED: u32 = 2;

    /// The flags that say the launch's cluster shape, in blocks. (A cluster has at most 16.)
    pub fn cluster_flags(shape: [u32; 3]) -> u32 {
        let side = |n: u32| n.wrapping_sub(1) & 15;
        side(shape[0]) << 4 | side(shape[1]) << 8 | side(shape[2]) << 12
    }

    /// The cluster shape that `flags` say, in blocks.
    pub fn cluster_of(flags: u32) -> [u32; 3] {
        let side = |at: u32| (flags >> at & 15) + 1;
        [side(4), side(8), side(12)]
    }
}

/// Behind the epochs of a dependent launch's out row: what a dependent launch right behind it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Handover {
    /// The row that a block of the launch knew in whole when it let the next one begin; 0: what the host says.
    pub row: u64,
    /// Nonzero once a thread has waited for the launch before: the row that this adds is complete.
    pub waited: u32,
    /// Zero.
    pub reserved: u32,
}

impl Handover {
    /// Where it lies behind the row's first byte.
    pub const fn offset(num_threads: u32) -> u64 {
        (4 * num_threads as u64).next_multiple_of(8)
    }

    /// Bytes of a row with it. (Model checks, which have no dependent launches, pay for every word.)
    pub const fn row_bytes(num_threads: u32) -> u64 {
        let room = if cfg!(loom) { 0 } else { size_of::<Handover>() };
        Self::offset(num_threads) + room as u64
    }
}

/// What a block's threads share: at the end of its shared memory, or in the device's block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct BlockState {
    /// The block's [`ThreadState`].
    pub thread: u64,
    /// The launch's [`LaunchRecord`].
    pub launch: u64,
    /// Threads that have left.
    pub exited: u32,
    /// Nonzero once a thread has let dependent launches begin (`griddepcontrol.launch_dependents`).
    pub triggered: u32,
    /// Zero.
    pub reserved: [u32; 2],
}

impl BlockState {
    /// Bytes at the end of shared memory that belong to the block state, padding included.
    pub const ROOM: u32 = 128;
}

/// A block state in the device's block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct BlockEntry {
    /// Hash key: grid and block, 0 = free.
    pub key: u64,
    /// Zero.
    pub reserved: u64,
    /// The state.
    pub state: BlockState,
}

/// What the host tells a loaded module: the runtime's `.global` variable `__gsan_module`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct ModuleState {
    /// The device's [`GlobalState`].
    pub global: u64,
    /// Shared memory per block that the system keeps for itself, below the user's.
    pub reserved_shared: u32,
    /// [`LAYOUT_VERSION`](super::LAYOUT_VERSION), to be compared by the host before it writes.
    pub version: u32,
    /// Bytes of a shadow cell of the format that the runtime was built for; likewise.
    pub cell: u32,
    /// Zero.
    pub reserved: u32,
}
