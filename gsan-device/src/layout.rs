//! The words and structs that the device, the host and the graph side share.
//!
//! Everything here is plain data at fixed offsets: the runtime (compiled to PTX) reads it through raw addresses, the host
//! writes it with `bytemuck`. Addresses are 64-bit device addresses, sizes are bytes, epochs start at 1 (0 = never).

use bytemuck::{Pod, Zeroable};
use core::mem::{align_of, offset_of, size_of};

/// A thread's epoch as the detector computes with it. Cells may keep fewer bits.
pub type Epoch = u32;

/// Bumped whenever a struct of this file changes; the host writes it, the runtime's module exports it.
pub const LAYOUT_VERSION: u32 = 2;

/// Bytes of user memory that one shadow cell covers.
pub const WORD: u64 = 4;

/// The site of an access that stands in no module: an operation of the host.
pub const NO_SITE: u32 = 0x7fff_ffff;

/// Who an operation synchronises with. The numbers are part of [`Op`] and of the hooks' interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// Not a synchronising operation.
    None = 0,
    /// The block.
    Cta = 1,
    /// The cluster. The reference cell, which has two bits for the scope, keeps it as `Gpu`.
    Cluster = 2,
    /// The device.
    Gpu = 3,
    /// All devices and the host.
    Sys = 4,
}

/// The ordering of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Order {
    /// Plain: a race with any conflicting access that is not ordered.
    Weak = 0,
    /// Atomic without ordering (also `volatile`, which is relaxed at system scope).
    Relaxed = 1,
    /// Acquire.
    Acquire = 2,
    /// Release.
    Release = 3,
    /// Both.
    AcqRel = 4,
    /// Sequentially consistent.
    Sc = 5,
}

impl Order {
    /// Whether what follows is ordered after it.
    pub const fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::Sc)
    }

    /// Whether what precedes is ordered before it.
    pub const fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::Sc)
    }
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// Reads.
    Load = 0,
    /// Writes.
    Store = 1,
    /// Reads and writes in one step (`atom`, `red`, exchange).
    Rmw = 2,
    /// Reads, and writes if the comparison holds.
    Cas = 3,
    /// No access: a fence.
    Fence = 4,
}

/// The second argument of every hook: what the instruction is, in one word.
///
/// | bits | field |
/// |---|---|
/// | 0–9 | size in bytes |
/// | 10–12 | [`Access`] |
/// | 13–15 | [`Order`] |
/// | 16–18 | [`Scope`] |
/// | 19 | `volatile` |
/// | 20 | non-coherent (`ld.global.nc`) |
/// | 21 | the address is generic: it may lie outside global memory |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Op(pub u32);

impl Op {
    /// Builds the word; `size` below 1024.
    pub const fn new(access: Access, size: u32, order: Order, scope: Scope) -> Op {
        Op((size & 0x3ff) | (access as u32) << 10 | (order as u32) << 13 | (scope as u32) << 16)
    }

    /// The same operation on another number of bytes.
    pub const fn with_size(self, size: u32) -> Op {
        Op(self.0 & !0x3ff | size & 0x3ff)
    }

    /// Sets the `volatile` bit.
    pub const fn volatile(self) -> Op {
        Op(self.0 | 1 << 19)
    }

    /// Sets the non-coherent bit.
    pub const fn non_coherent(self) -> Op {
        Op(self.0 | 1 << 20)
    }

    /// Sets the generic-address bit.
    pub const fn generic(self) -> Op {
        Op(self.0 | 1 << 21)
    }

    /// Size in bytes.
    pub const fn size(self) -> u32 {
        self.0 & 0x3ff
    }

    /// What it does.
    pub const fn access(self) -> Access {
        match (self.0 >> 10) & 7 {
            0 => Access::Load,
            1 => Access::Store,
            2 => Access::Rmw,
            3 => Access::Cas,
            _ => Access::Fence,
        }
    }

    /// Its ordering.
    pub const fn order(self) -> Order {
        match (self.0 >> 13) & 7 {
            0 => Order::Weak,
            1 => Order::Relaxed,
            2 => Order::Acquire,
            3 => Order::Release,
            4 => Order::AcqRel,
            _ => Order::Sc,
        }
    }

    /// Its scope.
    pub const fn scope(self) -> Scope {
        match (self.0 >> 16) & 7 {
            0 => Scope::None,
            1 => Scope::Cta,
            2 => Scope::Cluster,
            3 => Scope::Gpu,
            _ => Scope::Sys,
        }
    }

    /// Whether it was written as `volatile`.
    pub const fn is_volatile(self) -> bool {
        self.0 & 1 << 19 != 0
    }

    /// Whether it reads through the non-coherent path.
    pub const fn is_non_coherent(self) -> bool {
        self.0 & 1 << 20 != 0
    }

    /// Whether its address is generic.
    pub const fn is_generic(self) -> bool {
        self.0 & 1 << 21 != 0
    }
}

/// Who accessed a word, and when: one 4-byte clock of the `reference` format.
///
/// | bits | field |
/// |---|---|
/// | 0–15 | epoch, or with the release bit the low half of a token (index of a snapshot in the writer's ring) |
/// | 16–27 | logical thread |
/// | 28–29 | scope: 0 not atomic, 1 cta, 2 gpu, 3 sys |
/// | 30 | release |
/// | 31 | in a reader's slot: the reader has observed the word's last write ([`ScalarClock::OBSERVED`]) |
///
/// The all-zero word means "no access".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct ScalarClock(pub u32);

impl ScalarClock {
    /// Nobody.
    pub const EMPTY: ScalarClock = ScalarClock(0);
    /// Epochs from here on can't be told apart: such a clock counts as ordered (class `saturated`).
    pub const SATURATED: Epoch = 0xffff;
    /// Logical threads that the format can name.
    pub const MAX_THREADS: u32 = 1 << 12;

    /// An access at `epoch` (saturating) by `thread`.
    pub const fn access(epoch: Epoch, thread: u32, scope: Scope) -> ScalarClock {
        let epoch = if epoch < Self::SATURATED {
            epoch
        } else {
            Self::SATURATED
        };
        ScalarClock(epoch | (thread & 0xfff) << 16 | Self::scope_bits(scope) << 28)
    }

    /// A release write whose snapshot has the absolute index `token` (the low 16 bits are kept).
    pub const fn release(token: u32, thread: u32, scope: Scope) -> ScalarClock {
        ScalarClock(
            token & 0xffff | (thread & 0xfff) << 16 | Self::scope_bits(scope) << 28 | 1 << 30,
        )
    }

    /// Set in a reader's slot by a strong read, cleared by the next write: what was observed is ordered before the reader
    /// as far as this word is concerned (PTX's causality order begins with observation), without any acquire.
    pub const OBSERVED: u32 = 1 << 31;

    /// Whether [`ScalarClock::OBSERVED`] is set.
    pub const fn is_observed(self) -> bool {
        self.0 & Self::OBSERVED != 0
    }

    /// The clock without [`ScalarClock::OBSERVED`].
    pub const fn plain(self) -> ScalarClock {
        ScalarClock(self.0 & !Self::OBSERVED)
    }

    /// Two bits: the cluster, which has none of its own, counts as the device.
    const fn scope_bits(scope: Scope) -> u32 {
        let scope = scope as u32;
        let bits = scope - (scope > Scope::Cluster as u32) as u32;
        debug_assert!(bits == [0, 1, 2, 2, 3][scope as usize]);
        bits
    }

    /// Whether no access is recorded.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The epoch, or the token's low half.
    pub const fn epoch(self) -> Epoch {
        self.0 & 0xffff
    }

    /// The logical thread.
    pub const fn thread(self) -> u32 {
        self.0 >> 16 & 0xfff
    }

    /// The scope; `None` for a plain access.
    pub const fn scope(self) -> Scope {
        match self.0 >> 28 & 3 {
            0 => Scope::None,
            1 => Scope::Cta,
            2 => Scope::Gpu,
            _ => Scope::Sys,
        }
    }

    /// Whether the epoch is a token.
    pub const fn is_release(self) -> bool {
        self.0 & 1 << 30 != 0
    }
}

/// The `reference` shadow cell: what is known of one 4-byte word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct ShadowCell {
    /// A sample of the readers.
    pub reads: [ScalarClock; ShadowCell::READS],
    /// The last writer.
    pub write: ScalarClock,
    /// Number of reads so far, saturating.
    pub num_reads: u16,
    /// 1 while a thread works on the cell.
    pub lock: u16,
}

impl ShadowCell {
    /// Sampled readers per cell.
    pub const READS: usize = 4;
    /// Offset of the word that holds `num_reads` (low half) and `lock` (high half).
    pub const LOCK_WORD: u64 = offset_of!(ShadowCell, num_reads) as u64;
    /// The lock's bit in that word.
    pub const LOCKED: u32 = 1 << 16;
    /// Offset of `write`.
    pub const WRITE: u64 = offset_of!(ShadowCell, write) as u64;
}

/// One access in a `wide` cell, in three words.
///
/// | word | bits | field |
/// |---|---|---|
/// | 0 | 0–31 | epoch; 0: no record |
/// | 1 | 0–15 | logical thread |
/// | 1 | 16–25 | linear thread index in the block |
/// | 1 | 26–29 | bytes of the word that were touched |
/// | 1 | 30–31 | [`Access`]: load, store, read-modify-write, compare-and-swap |
/// | 2 | 0–19 | site |
/// | 2 | 20–22 | [`Scope`] |
/// | 2 | 23–25 | [`Order`] |
/// | 2 | 26–28 | log2 of the access's size in bytes |
/// | 2 | 29 | the site is unknown: an operation of the host, or one that the 20 bits can't name |
/// | 2 | 30 | non-coherent |
/// | 2 | 31 | the accessing thread has observed the word's last write ([`ScalarClock::OBSERVED`]) |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct WideRecord(pub [u32; 3]);

impl WideRecord {
    /// Bit of word 2: see the table.
    pub const OBSERVED: u32 = 1 << 31;
    /// Bit of word 2: see the table.
    pub const NO_SITE: u32 = 1 << 29;
    /// Sites that a record can name.
    pub const MAX_SITES: u32 = 1 << 20;
    /// Logical threads that a record can name.
    pub const MAX_THREADS: u32 = 1 << 16;

    /// Builds a record. `mask` has a bit for each byte of the word.
    pub const fn new(
        epoch: Epoch,
        thread: u32,
        linear: u32,
        mask: u32,
        op: Op,
        site: u32,
    ) -> WideRecord {
        let w1 = thread & 0xffff
            | (linear & 0x3ff) << 16
            | (mask & 15) << 26
            | (op.access() as u32 & 3) << 30;
        let known = site < Self::MAX_SITES;
        let w2 = if known { site } else { Self::NO_SITE }
            | (op.scope() as u32) << 20
            | (op.order() as u32) << 23
            | Self::log_size(op) << 26
            | (op.is_non_coherent() as u32) << 30;
        WideRecord([epoch, w1, w2])
    }

    const fn log_size(op: Op) -> u32 {
        let size = op.size();
        if size == 0 {
            0
        } else {
            31 - size.leading_zeros() & 7
        }
    }

    /// Whether there is no access.
    pub const fn is_empty(self) -> bool {
        self.0[0] == 0
    }

    /// The epoch.
    pub const fn epoch(self) -> Epoch {
        self.0[0]
    }

    /// The logical thread.
    pub const fn thread(self) -> u32 {
        self.0[1] & 0xffff
    }

    /// The thread's linear index in its block.
    pub const fn linear(self) -> u32 {
        self.0[1] >> 16 & 0x3ff
    }

    /// Which bytes of the word.
    pub const fn mask(self) -> u32 {
        self.0[1] >> 26 & 15
    }

    /// What it did.
    pub const fn access(self) -> Access {
        match self.0[1] >> 30 {
            0 => Access::Load,
            1 => Access::Store,
            2 => Access::Rmw,
            _ => Access::Cas,
        }
    }

    /// Whether it wrote.
    pub const fn writes(self) -> bool {
        self.0[1] >> 30 != 0
    }

    /// Its site, if it is known.
    pub const fn site(self) -> Option<u32> {
        if self.0[2] & Self::NO_SITE == 0 {
            Some(self.0[2] & 0xfffff)
        } else {
            None
        }
    }

    /// Size, order and scope as an operation's word.
    pub const fn op(self) -> Op {
        let order_scope = (self.0[2] >> 23 & 7) << 13 | (self.0[2] >> 20 & 7) << 16;
        let op = Op(1 << (self.0[2] >> 26 & 7) | (self.0[1] >> 30) << 10 | order_scope);
        if self.0[2] & 1 << 30 != 0 {
            op.non_coherent()
        } else {
            op
        }
    }

    /// Whether [`WideRecord::OBSERVED`] is set.
    pub const fn is_observed(self) -> bool {
        self.0[2] & Self::OBSERVED != 0
    }
}

/// The release that a strong read of a word would acquire, in the `wide` cell: thread, token and scope in one word.
///
/// Bits 0–31 token (0: none), 32–47 thread, 48–50 [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct SyncClock(pub u64);

impl SyncClock {
    /// Nothing to acquire.
    pub const EMPTY: SyncClock = SyncClock(0);

    /// A published clock.
    pub const fn new(token: u32, thread: u32, scope: Scope) -> SyncClock {
        SyncClock(token as u64 | (thread as u64 & 0xffff) << 32 | (scope as u64) << 48)
    }

    /// Whether there is nothing to acquire.
    pub const fn is_empty(self) -> bool {
        self.0 as u32 == 0
    }

    /// The token.
    pub const fn token(self) -> u32 {
        self.0 as u32
    }

    /// The publisher.
    pub const fn thread(self) -> u32 {
        (self.0 >> 32) as u32 & 0xffff
    }

    /// The scope.
    pub const fn scope(self) -> Scope {
        match (self.0 >> 48) & 7 {
            0 => Scope::None,
            1 => Scope::Cta,
            2 => Scope::Cluster,
            3 => Scope::Gpu,
            _ => Scope::Sys,
        }
    }
}

/// The `wide` shadow cell: what is known of one 4-byte word, byte by byte and with both sides' lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct WideCell {
    /// Accesses, reads and writes alike.
    pub records: [WideRecord; WideCell::RECORDS],
    /// The release to acquire.
    pub sync: SyncClock,
    /// Number of reads so far, saturating.
    pub num_reads: u16,
    /// Bit 0: a thread works on the cell. Bit 1: a record was dropped since the word was last written whole.
    pub state: u16,
    /// Zero.
    pub reserved: u32,
}

impl WideCell {
    /// Accesses per cell.
    pub const RECORDS: usize = 4;
    /// Offset of `sync`.
    pub const SYNC: u64 = offset_of!(WideCell, sync) as u64;
    /// Offset of the word that holds `num_reads` (low half) and `state` (high half).
    pub const STATE_WORD: u64 = offset_of!(WideCell, num_reads) as u64;
    /// The lock in that word.
    pub const LOCKED: u32 = 1 << 16;
    /// A record was dropped.
    pub const DROPPED: u32 = 1 << 17;
}

/// What all of a device's runtime knows; one per device, constant while kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct GlobalState {
    /// [`LAYOUT_VERSION`].
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
    /// [`ShadowCell`]s for strong accesses outside all shadowed memory, hashed by address.
    pub sync_cells: u64,
    /// [`BlockEntry`]s of blocks without room in shared memory, hashed by grid and block.
    pub block_table: u64,
    /// Entries of that table minus one.
    pub block_mask: u32,
    /// Entries of the race table and of the record buffer (a power of two).
    pub race_capacity: u32,
    /// [`RaceKey`]s in device memory.
    pub race_keys: u64,
    /// [`RaceRecord`]s in mapped host memory; same index as `race_keys`.
    pub race_records: u64,
    /// [`Counters`].
    pub counters: u64,
    /// [`GlobalState::COUNT_ACCESSES`] and later switches.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

impl GlobalState {
    /// Count checked and unchecked accesses.
    pub const COUNT_ACCESSES: u32 = 1;
    /// Several devices share the shadow: the runtime's own atomics use system scope.
    pub const SHARED_SHADOW: u32 = 2;
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
/// own clock, the pending clock and the unreleased clock (strong writes that were acquired and carried no release), then `clock_buffer_size` snapshots, then [`Tenant`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct ThreadState {
    /// The device's [`GlobalState`].
    pub global: u64,
    /// The clock row that the tenant inherited; read-only.
    pub base_row: u64,
    /// 0: the tenant's clock is `base_row`; 1: being copied; 2: it is the own clock behind this header.
    pub clock_mode: u32,
    /// The tenant's current epoch.
    pub epoch: Epoch,
    /// The tenant's first epoch: `[start_epoch, epoch]` are its own.
    pub start_epoch: Epoch,
    /// Index in a clock row.
    pub thread_id: u32,
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
    /// The token that carries the last release fence (0: none yet).
    pub fence_token: u32,
    /// How many clocks have become pending in this tenancy.
    pub pending_version: u32,
    /// How many of those are in the own clock, all threads' imports being complete.
    pub imported_version: u32,
    /// State of the unreleased clock's memory: 0 stale, 1 being cleared, 2 valid.
    pub unreleased_mode: u32,
    /// Zero.
    pub reserved: u32,
}

impl ThreadState {
    /// Tenants that the history keeps; a power of two. (Model checks pay for every word.)
    pub const HISTORY: u32 = if cfg!(loom) { 2 } else { 64 };

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
        Self::CLOCK + 12 * num_threads as u64
    }

    /// Offset of the tenants' history.
    pub const fn history_offset(num_threads: u32, clock_buffer_size: u32) -> u64 {
        Self::ring_offset(num_threads) + Snapshot::stride(num_threads) * clock_buffer_size as u64
    }

    /// Bytes from one state to the next, a multiple of 128.
    pub const fn stride(num_threads: u32, clock_buffer_size: u32) -> u64 {
        let end = Self::history_offset(num_threads, clock_buffer_size)
            + Self::HISTORY as u64 * size_of::<Tenant>() as u64;
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
    /// Number of the launch.
    pub launch_id: u32,
    /// Number of the module; a site index alone means nothing without it.
    pub module_id: u32,
    /// Dynamic shared memory that the user asked for (the launch itself asks for more), bytes.
    pub dynamic_shared: u32,
    /// Zero.
    pub flags: u32,
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
    /// Zero.
    pub reserved: [u32; 3],
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
    /// [`LAYOUT_VERSION`], to be compared by the host before it writes.
    pub version: u32,
    /// Bytes of a shadow cell of the format that the runtime was built for; likewise.
    pub cell: u32,
    /// Zero.
    pub reserved: u32,
}

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
    /// [`LaunchRecord::launch_id`]; meaningful with [`RaceSide::LAUNCH`].
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
    /// `thread[0]` is the thread's linear index in its block, the others are not known.
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
    /// Zero.
    pub reserved: u64,
}

const _: () = {
    assert!(size_of::<ScalarClock>() == 4 && align_of::<ScalarClock>() == 4);
    assert!(size_of::<ShadowCell>() == 24 && align_of::<ShadowCell>() == 8);
    assert!(ShadowCell::WRITE == 16 && ShadowCell::LOCK_WORD == 20);
    assert!(offset_of!(ShadowCell, lock) as u64 == ShadowCell::LOCK_WORD + 2);
    assert!(
        size_of::<WideRecord>() == 12 && size_of::<WideCell>() == 64 && align_of::<WideCell>() == 8
    );
    assert!(WideCell::SYNC == 48 && WideCell::STATE_WORD == 56);
    let all = Op::new(Access::Cas, 128, Order::Sc, Scope::Sys).non_coherent();
    let r = WideRecord::new(u32::MAX, 0xffff, 0x3ff, 15, all, 0xfffff);
    assert!(r.0[1] == u32::MAX && r.site().is_some());
    assert!(r.epoch() == u32::MAX && r.thread() == 0xffff && r.linear() == 0x3ff && r.mask() == 15);
    assert!(r.op().0 == all.0 && r.writes() && !r.is_observed());
    let none = WideRecord::new(
        1,
        0,
        0,
        0,
        Op::new(Access::Load, 1, Order::Weak, Scope::None),
        u32::MAX,
    );
    assert!(none.0[1] == 0 && none.0[2] == WideRecord::NO_SITE && none.site().is_none());
    let sync = SyncClock::new(u32::MAX, 0xffff, Scope::Sys);
    assert!(
        sync.token() == u32::MAX
            && sync.thread() == 0xffff
            && sync.scope() as u8 == Scope::Sys as u8
    );
    assert!(size_of::<Op>() == 4);
    assert!(size_of::<GlobalState>() == 160 && align_of::<GlobalState>() == 8);
    assert!(size_of::<ThreadState>() == 104 && align_of::<ThreadState>() == 8);
    assert!(size_of::<Snapshot>() == 16 && size_of::<Tenant>() == 28);
    assert!(size_of::<LaunchRecord>() == 40 && align_of::<LaunchRecord>() == 8);
    assert!(size_of::<BlockState>() == 32 && size_of::<BlockState>() as u32 <= BlockState::ROOM);
    assert!(size_of::<BlockEntry>() == 48);
    assert!(size_of::<ModuleState>() == 24);
    assert!(
        size_of::<RaceKey>() == 16 && size_of::<RaceSide>() == 52 && size_of::<RaceRecord>() == 128
    );
    assert!(size_of::<Counters>() == 64);
    // Each field of a clock lands in its own bits.
    let c = ScalarClock::release(0xffff, 0xfff, Scope::Sys);
    assert!(c.0 == 0x7fff_ffff);
    assert!(ScalarClock::release(0, 0, Scope::None).0 == 1 << 30);
    assert!(ScalarClock::access(0, 0xfff, Scope::None).0 == 0xfff << 16);
    assert!(ScalarClock::access(0, 0, Scope::Sys).0 == 3 << 28);
    assert!(ScalarClock::access(u32::MAX, 0, Scope::None).0 == 0xffff);
    let op = Op::new(Access::Cas, 16, Order::Sc, Scope::Sys)
        .volatile()
        .non_coherent()
        .generic();
    assert!(op.size() == 16 && op.is_volatile() && op.is_non_coherent() && op.is_generic());
    assert!(op.access() as u8 == Access::Cas as u8 && op.order() as u8 == Order::Sc as u8);
    assert!(op.scope() as u8 == Scope::Sys as u8);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_field_round_trips() {
        for epoch in [0, 1, 0x1234, 0xfffe] {
            for thread in [0, 1, 77, 4095] {
                for scope in [Scope::None, Scope::Cta, Scope::Gpu, Scope::Sys] {
                    let c = ScalarClock::access(epoch, thread, scope);
                    assert_eq!(
                        (c.epoch(), c.thread(), c.scope(), c.is_release()),
                        (epoch, thread, scope, false)
                    );
                    let r = ScalarClock::release(epoch, thread, scope);
                    assert_eq!(
                        (r.epoch(), r.thread(), r.scope(), r.is_release()),
                        (epoch, thread, scope, true)
                    );
                }
            }
        }
    }

    #[test]
    fn every_op_field_round_trips() {
        for access in [
            Access::Load,
            Access::Store,
            Access::Rmw,
            Access::Cas,
            Access::Fence,
        ] {
            for order in [
                Order::Weak,
                Order::Relaxed,
                Order::Acquire,
                Order::Release,
                Order::AcqRel,
                Order::Sc,
            ] {
                for scope in [
                    Scope::None,
                    Scope::Cta,
                    Scope::Cluster,
                    Scope::Gpu,
                    Scope::Sys,
                ] {
                    for size in [1, 2, 4, 8, 16, 32] {
                        let op = Op::new(access, size, order, scope);
                        assert_eq!(
                            (op.access(), op.order(), op.scope(), op.size()),
                            (access, order, scope, size)
                        );
                        assert!(!op.is_volatile() && !op.is_generic() && !op.is_non_coherent());
                    }
                }
            }
        }
    }

    #[test]
    fn a_thread_states_parts_do_not_overlap() {
        for threads in [1, 2, 3, 64, 4096] {
            for ring in [1, 2, 64, 1024] {
                let pending = ThreadState::pending_offset(threads);
                assert_eq!(pending, ThreadState::CLOCK + 4 * u64::from(threads));
                let ring_at = ThreadState::ring_offset(threads);
                assert!(ring_at >= pending + 8 * u64::from(threads));
                let history = ThreadState::history_offset(threads, ring);
                assert!(history >= ring_at + u64::from(ring) * (16 + 4 * u64::from(threads)));
                let stride = ThreadState::stride(threads, ring);
                assert!(
                    stride >= history + u64::from(ThreadState::HISTORY) * 28 && stride % 128 == 0
                );
                assert!(ring_at % 4 == 0 && history % 4 == 0);
            }
        }
    }
}
