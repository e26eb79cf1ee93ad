//! The host instance of [`Machine`]: the detector over ordinary memory, for tests, benches and tools.
//!
//! [`Device`] lays out a device's runtime state as the host crate does on a GPU; [`Host`] is one thread of it. Under
//! `cfg(loom)` the words are loom's, so that a model check explores the interleavings.

use crate::layout::{
    BlockEntry, BlockState, Counters, Epoch, GlobalState, Handover, LaunchRecord, ModuleState,
    Multicast, RaceKey, RaceRecord, Range, Scope, ShadowCell, SmSlots, TensorMap, ThreadState,
    WideCell,
};
use crate::machine::Machine;
use core::mem::size_of;
use std::boxed::Box;
use std::vec::Vec;

#[cfg(not(loom))]
mod memory;
#[cfg(loom)]
#[path = "host/loom_memory.rs"]
mod memory;

pub use memory::Memory;

/// What a device has.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Multiprocessors.
    pub num_sms: u32,
    /// Logical threads per multiprocessor.
    pub slots_per_sm: u32,
    /// Bytes of a shadow cell.
    pub cell: u64,
    /// Snapshots per ring.
    pub clock_buffer_size: u32,
    /// Bytes of user memory.
    pub real_size: u64,
    /// Findings that can be kept; a power of two.
    pub race_capacity: u32,
    /// Launches that can be made.
    pub launches: u32,
    /// Clock rows.
    pub rows: u32,
    /// [`GlobalState::SC_ORDER`].
    pub sc_order: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            num_sms: 4,
            slots_per_sm: 2,
            cell: size_of::<WideCell>() as u64,
            clock_buffer_size: 8,
            real_size: 256,
            race_capacity: 16,
            launches: 8,
            rows: 8,
            sc_order: false,
        }
    }
}

/// A device's memory, laid out.
pub struct Device {
    memory: &'static Memory,
    shape: Shape,
    global: u64,
    module: u64,
    launches: u64,
    rows: u64,
    real: u64,
    range: (u64, u64),
    blocks: u64,
    races: u64,
    keys: u64,
    counters: u64,
    initial: GlobalState,
}

/// One simulated thread of a [`Device`].
#[derive(Clone, Copy)]
pub struct Host {
    memory: &'static Memory,
    module: u64,
    /// Where the block's shared memory ends.
    shared: u64,
    /// The multiprocessor.
    pub sm: u32,
    /// `%ctaid.x`
    pub block: u32,
    /// `%tid.x`
    pub thread: u32,
    /// `%ntid.x`
    pub block_threads: u32,
    /// `%gridid`
    pub grid: u64,
    /// Whether shared memory has room for the block state.
    pub room: bool,
}

/// Block states in "shared memory" that a [`Device`] has room for.
const BLOCKS: u32 = if cfg!(loom) { 4 } else { 64 };
/// Hashed sync clocks.
const SYNC_CELLS: u32 = if cfg!(loom) { 1 } else { 16 };
/// Entries of the block table.
const TABLE: u32 = if cfg!(loom) { 1 } else { 64 };
/// Bytes of the module variable.
const VARIABLE: u64 = if cfg!(loom) { 4 } else { 64 };
/// Entries of the table of tensor maps.
const TENSOR_MAPS: u32 = if cfg!(loom) { 1 } else { 4 };
/// Bindings of multicast memory.
const MULTICASTS: u32 = if cfg!(loom) { 0 } else { 4 };
/// Alignment of the parts. Under loom every word costs, so there is no padding.
const ALIGN: u64 = if cfg!(loom) { 8 } else { 128 };

impl Device {
    /// Lays out a device. The memory is leaked: it lives as long as the process (or the loom iteration).
    pub fn new(shape: Shape) -> Device {
        let num_threads = shape.num_sms * shape.slots_per_sm;
        let stride = ThreadState::stride(num_threads, shape.clock_buffer_size);
        let mut end = 0u64;
        let mut take = |bytes: u64| {
            let at = end;
            end += bytes.next_multiple_of(ALIGN);
            at
        };
        let cell = shape.cell;
        let global = take(size_of::<GlobalState>() as u64);
        let module = take(size_of::<ModuleState>() as u64);
        let counters = take(size_of::<Counters>() as u64);
        let launches = take(size_of::<LaunchRecord>() as u64 * u64::from(shape.launches));
        let rows = take(Handover::row_bytes(num_threads) * u64::from(shape.rows));
        let sm_slots = take(size_of::<SmSlots>() as u64 * u64::from(shape.num_sms));
        let real = take(shape.real_size);
        let shadow = take(shape.real_size / 4 * cell);
        let variable = take(VARIABLE);
        let variable_shadow = take(VARIABLE / 4 * cell);
        let ranges = take(size_of::<Range>() as u64);
        let sync = take(cell * u64::from(SYNC_CELLS));
        let table = take(size_of::<BlockEntry>() as u64 * u64::from(TABLE));
        let blocks = take(size_of::<BlockState>() as u64 * u64::from(BLOCKS));
        let keys = take(size_of::<RaceKey>() as u64 * u64::from(shape.race_capacity));
        let races = take(size_of::<RaceRecord>() as u64 * u64::from(shape.race_capacity));
        let tensor_maps = take(size_of::<TensorMap>() as u64 * u64::from(TENSOR_MAPS));
        let multicasts = take(size_of::<Multicast>() as u64 * u64::from(MULTICASTS));
        let threads = take(stride * u64::from(num_threads));
        let memory: &'static Memory = Box::leak(Box::new(Memory::new(end)));
        let base = memory.base();
        let sc_order = if shape.sc_order {
            GlobalState::SC_ORDER
        } else {
            0
        };
        let state = GlobalState {
            version: crate::layout::LAYOUT_VERSION,
            device: 0,
            real_base: base + real,
            real_size: shape.real_size,
            shadow_base: base + shadow,
            threads: base + threads,
            thread_stride: stride,
            device_stride: stride * u64::from(num_threads),
            num_sms: shape.num_sms,
            slots_per_sm: shape.slots_per_sm,
            num_devices: 1,
            num_threads,
            clock_buffer_size: shape.clock_buffer_size,
            seed: 1,
            sm_slots: base + sm_slots,
            ranges: base + ranges,
            num_ranges: 1,
            sync_mask: SYNC_CELLS - 1,
            sync_cells: base + sync,
            block_table: base + table,
            block_mask: TABLE - 1,
            race_capacity: shape.race_capacity,
            race_keys: base + keys,
            race_records: base + races,
            counters: base + counters,
            flags: GlobalState::COUNT_ACCESSES | sc_order,
            tensor_mask: TENSOR_MAPS - 1,
            tensor_maps: base + tensor_maps,
            multicasts: base + multicasts,
            num_multicasts: 0,
            reserved: 0,
        };
        let device = Device {
            memory,
            shape,
            global: base + global,
            module: base + module,
            launches: base + launches,
            rows: base + rows,
            real: base + real,
            range: (base + variable, base + variable_shadow),
            blocks: base + blocks,
            races: base + races,
            keys: base + keys,
            counters: base + counters,
            initial: state,
        };
        device.fill();
        device
    }

    /// Makes it a fresh device again; no other thread is at it.
    #[cfg(not(loom))]
    pub fn reset(&self) {
        self.memory.clear();
        self.fill();
    }

    /// Writes what is not zero at first.
    fn fill(&self) {
        let (state, (variable, shadow)) = (self.initial, self.range);
        self.memory.write(self.global, &state);
        let range = Range {
            start: variable,
            size: VARIABLE,
            shadow,
        };
        self.memory.write(state.ranges, &range);
        let module = ModuleState {
            global: self.global,
            reserved_shared: 1024,
            version: state.version,
            cell: self.shape.cell as u32,
            reserved: 0,
        };
        self.memory.write(self.module, &module);
        for i in 0..state.num_threads {
            let header = ThreadState {
                global: self.global,
                who: ThreadState::identity(i, state.num_threads),
                ..ThreadState::default()
            };
            self.memory
                .write(state.threads + state.thread_stride * u64::from(i), &header);
        }
    }

    /// Makes all threads as old as that: nobody has been a tenant yet.
    pub fn set_epochs(&self, epoch: Epoch) {
        for i in 0..self.initial.num_threads {
            let at = self.initial.threads + self.initial.thread_stride * u64::from(i);
            let header = ThreadState {
                epoch,
                ..self.memory.read(at)
            };
            self.memory.write(at, &header);
        }
    }

    /// User memory's first byte.
    pub fn real(&self) -> u64 {
        self.real
    }

    /// A module variable's first byte and size.
    pub fn variable(&self) -> (u64, u64) {
        (self.range.0, VARIABLE)
    }

    /// The `reference` cell of a word of user memory.
    pub fn cell(&self, offset: u64) -> ShadowCell {
        self.memory.read(self.cell_at(offset))
    }

    /// The `wide` cell of a word of user memory.
    pub fn wide_cell(&self, offset: u64) -> WideCell {
        self.memory.read(self.cell_at(offset))
    }

    pub(crate) fn cell_at(&self, offset: u64) -> u64 {
        let global: GlobalState = self.memory.read(self.global);
        global.shadow_base + offset / 4 * self.shape.cell
    }

    /// The state of a logical thread.
    pub fn thread_state(&self, id: u32) -> ThreadState {
        let g: GlobalState = self.memory.read(self.global);
        self.memory
            .read(g.threads + g.thread_stride * u64::from(id))
    }

    fn row_at(&self, index: u32) -> u64 {
        let n = self.shape.num_sms * self.shape.slots_per_sm;
        self.rows + Handover::row_bytes(n) * u64::from(index)
    }

    /// The row that the launch which publishes in row `out` hands over to a dependent one behind it; `None`: what it began with.
    pub fn handed_over(&self, out: u32) -> Option<u32> {
        let n = self.shape.num_sms * self.shape.slots_per_sm;
        let handover: Handover = self.memory.read(self.row_at(out) + Handover::offset(n));
        let row = handover.row.checked_sub(self.rows)?;
        Some((row / Handover::row_bytes(n)) as u32)
    }

    /// A clock row.
    pub fn row(&self, index: u32) -> Vec<u32> {
        let n = self.shape.num_sms * self.shape.slots_per_sm;
        let at = self.row_at(index);
        (0..n)
            .map(|i| self.memory.read(at + 4 * u64::from(i)))
            .collect()
    }

    /// Copies a row, or joins one into another: what the host does between launches.
    pub fn join_row(&self, into: u32, from: u32, replace: bool) {
        let n = u64::from(self.shape.num_sms * self.shape.slots_per_sm);
        for i in 0..n {
            let to = self.row_at(into) + 4 * i;
            let value: u32 = self.memory.read(self.row_at(from) + 4 * i);
            let old: u32 = if replace { 0 } else { self.memory.read(to) };
            self.memory.write(to, &old.max(value));
        }
    }

    /// Writes launch `id`: it inherits row `base` and publishes in row `out`, which starts as a copy of it.
    pub fn launch(&self, id: u32, base: u32, out: u32) -> u64 {
        self.join_row(out, base, true);
        let record = LaunchRecord {
            global: self.global,
            base_row: self.row_at(base),
            out_row: self.row_at(out),
            wait_row: 0,
            waited: 0,
            launch_id: id,
            module_id: 0,
            dynamic_shared: 0,
            flags: LaunchRecord::INTRA_BLOCK,
        };
        let at = self.launches + size_of::<LaunchRecord>() as u64 * u64::from(id);
        self.memory.write(at, &record);
        at
    }

    /// Changes a launch's flags.
    pub fn set_launch_flags(&self, launch: u64, flags: u32) {
        let record = LaunchRecord {
            flags,
            ..self.memory.read(launch)
        };
        self.memory.write(launch, &record);
    }

    /// Gives a launch the row that its waiting for the launch before adds.
    pub fn set_wait_row(&self, launch: u64, row: u32) {
        let record = LaunchRecord {
            wait_row: self.row_at(row),
            ..self.memory.read(launch)
        };
        self.memory.write(launch, &record);
    }

    /// The same behind a dependent launch: what that one hands over is what the launch begins with.
    pub fn chain(&self, launch: u64, row: u32) {
        self.set_wait_row(launch, row);
        let record: LaunchRecord = self.memory.read(launch);
        self.set_launch_flags(launch, record.flags | LaunchRecord::CHAINED);
    }

    /// A thread of block `block` of grid `grid`, on multiprocessor `sm`.
    pub fn thread(&self, grid: u64, sm: u32, block: u32, thread: u32, block_threads: u32) -> Host {
        let slot = (grid * 16 + u64::from(block)) % u64::from(BLOCKS);
        let shared = self.blocks + size_of::<BlockState>() as u64 * slot;
        Host {
            memory: self.memory,
            module: self.module,
            shared,
            sm,
            block,
            thread,
            block_threads,
            grid,
            room: true,
        }
    }

    /// Adds a tensor map to the table, and returns an address at which its bits lie.
    pub fn add_tensor_map(&self, map: &TensorMap) -> u64 {
        let mut i = TensorMap::hash(&map.bits);
        for _ in 0..TENSOR_MAPS {
            let at = self.initial.tensor_maps
                + size_of::<TensorMap>() as u64 * u64::from(i & (TENSOR_MAPS - 1));
            if self.memory.read::<TensorMap>(at).rank == 0 {
                self.memory.write(at, map);
                return at;
            }
            i = i.wrapping_add(1);
        }
        0
    }

    /// Lets `size` bytes at the multicast address `start` stand for (also) the user memory from `offset` on.
    pub fn bind_multicast(&self, start: u64, size: u64, offset: u64) {
        let mut global: GlobalState = self.memory.read(self.global);
        if global.num_multicasts >= MULTICASTS {
            return;
        }
        let at =
            global.multicasts + size_of::<Multicast>() as u64 * u64::from(global.num_multicasts);
        let memory = self.real + offset;
        let bound = Multicast {
            start,
            size,
            memory,
        };
        self.memory.write(at, &bound);
        global.num_multicasts += 1;
        self.memory.write(self.global, &global);
    }

    /// The findings so far.
    pub fn races(&self) -> Vec<RaceRecord> {
        (0..u64::from(self.shape.race_capacity))
            .filter_map(|i| {
                let mut record: RaceRecord = self
                    .memory
                    .read(self.races + size_of::<RaceRecord>() as u64 * i);
                let key: RaceKey = self
                    .memory
                    .read(self.keys + size_of::<RaceKey>() as u64 * i);
                record.count = key.count;
                (record.state == 2).then_some(record)
            })
            .collect()
    }

    /// The tallies so far.
    pub fn counters(&self) -> Counters {
        self.memory.read(self.counters)
    }
}

impl Machine for Host {
    fn load32(self, addr: u64) -> u32 {
        self.memory.load32(addr, false)
    }
    fn store32(self, addr: u64, value: u32) {
        self.memory.store32(addr, value, false);
    }
    fn load64(self, addr: u64) -> u64 {
        self.memory.load64(addr, false)
    }
    fn load32x4(self, addr: u64) -> [u32; 4] {
        core::array::from_fn(|i| self.load32(addr + 4 * i as u64))
    }
    fn load64x2(self, addr: u64) -> [u64; 2] {
        [self.load64(addr), self.load64(addr + 8)]
    }
    fn store64(self, addr: u64, value: u64) {
        self.memory.store64(addr, value, false);
    }
    fn load64_acquire(self, addr: u64) -> u64 {
        self.memory.load64(addr, true)
    }
    fn store64_release(self, addr: u64, value: u64) {
        self.memory.store64(addr, value, true);
    }
    fn load32_acquire(self, addr: u64) -> u32 {
        self.memory.load32(addr, true)
    }
    fn store32_release(self, addr: u64, value: u32) {
        self.memory.store32(addr, value, true);
    }
    fn cas32_acquire(self, addr: u64, expected: u32, new: u32) -> u32 {
        self.memory
            .update32(addr, |old| if old == expected { Some(new) } else { None })
    }
    fn cas32(self, addr: u64, expected: u32, new: u32) -> u32 {
        self.cas32_acquire(addr, expected, new)
    }
    fn cas64(self, addr: u64, expected: u64, new: u64) -> u64 {
        self.memory
            .update64(addr, |old| if old == expected { Some(new) } else { None })
    }
    fn add32(self, addr: u64, value: u32) -> u32 {
        self.memory
            .update32(addr, |old| Some(old.wrapping_add(value)))
    }
    fn tally64(self, addr: u64, value: u64) {
        self.memory
            .update64(addr, |old| Some(old.wrapping_add(value)));
    }
    fn max32(self, addr: u64, value: u32) {
        self.memory.update32(addr, |old| Some(old.max(value)));
    }
    fn or32(self, addr: u64, bits: u32) -> u32 {
        self.memory.update32(addr, |old| Some(old | bits))
    }
    fn and32(self, addr: u64, bits: u32) {
        self.memory.update32(addr, |old| Some(old & bits));
    }
    fn fence(self, _: Scope) {
        memory::fence();
    }
    fn pause(self) {
        memory::pause();
    }
    fn sm(self) -> u32 {
        self.sm
    }
    fn block(self) -> [u32; 3] {
        [self.block, 0, 0]
    }
    fn grid(self) -> [u32; 3] {
        [u32::MAX, 1, 1]
    }
    fn thread(self) -> [u32; 3] {
        [self.thread, 0, 0]
    }
    fn linear_thread(self) -> u32 {
        self.thread
    }
    fn group(self) -> u32 {
        1
    }
    fn leads(self, _: u32) -> bool {
        true
    }
    fn block_threads(self) -> u32 {
        self.block_threads
    }
    fn grid_id(self) -> u64 {
        self.grid
    }
    fn dynamic_shared(self) -> u32 {
        if self.room { 127 } else { 0 }
    }
    fn total_shared(self) -> u32 {
        128
    }
    fn shared_address(self, offset: u32) -> u64 {
        debug_assert_eq!(
            offset, 1024,
            "the block state lies at the end of shared memory"
        );
        self.shared
    }
    fn is_global(self, _: u64) -> bool {
        true
    }
    fn module(self) -> u64 {
        self.module
    }
}
