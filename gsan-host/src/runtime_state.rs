//! What the runtime needs on each device: its global state, thread states, slots, tables and counters in device memory,
//! and the race records, which alone live in page-locked host memory, so that they outlast a dead context.

use crate::driver::{
    Device, DeviceMemory, Physical, PinnedMemory, VirtualRange, copy_from_host, copy_to_host,
};
use crate::error::{Error, Result};
use crate::reservation::Layout;
use crate::tensor::TensorTable;
use bytemuck::{Pod, Zeroable};
use cust::sys::CUdevice_attribute as Attribute;
use gsan_device::layout::{
    BlockEntry, Counters, GlobalState, LAYOUT_VERSION, Multicast, RaceKey, RaceRecord, Range,
    ScalarClock, SmSlots, TensorMap, ThreadState,
};
use std::rc::Rc;

/// Findings that a device can tell apart in one run.
const RACE_CAPACITY: u32 = 4096;
/// Cells for synchronisation outside the shadowed memory.
const SYNC_CELLS: u32 = 1 << 14;
/// Thread states may take this much of a device.
const THREADS_BYTES: u64 = 3 << 29;
/// Rings are not made shorter than this by default.
const SHORTEST_RING: u32 = 16;
/// Default length of a ring.
const DEFAULT_RING: u32 = 64;
/// Slots that `SmSlots::used` has bits for.
const MOST_SLOTS: u32 = u32::BITS;

/// How many logical threads there are, and how large their rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) num_devices: u32,
    pub(crate) num_sms: u32,
    pub(crate) slots_per_sm: u32,
    pub(crate) clock_buffer_size: u32,
}

/// What the shape depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShapeRequest {
    pub(crate) num_devices: u32,
    pub(crate) num_sms: u32,
    /// Blocks that a multiprocessor can hold.
    pub(crate) blocks_per_sm: u32,
    /// Free bytes of the device that has the fewest.
    pub(crate) free: u64,
    pub(crate) slots_per_sm: Option<u32>,
    pub(crate) clock_buffer_size: Option<u32>,
}

impl Shape {
    /// Chooses what was not asked for: as many slots as blocks can be resident, rings of 64; where that is too much
    /// memory, shorter rings first, then fewer slots.
    pub(crate) fn choose(r: ShapeRequest) -> Result<Shape> {
        let sms = r.num_sms.max(1).saturating_mul(r.num_devices.max(1));
        let most = (ScalarClock::MAX_THREADS / sms).min(MOST_SLOTS);
        if most == 0 {
            return Err(Error::Configuration(format!(
                "{} devices with {} multiprocessors each are more than the {} logical threads of the format; use fewer devices",
                r.num_devices,
                r.num_sms,
                ScalarClock::MAX_THREADS
            )));
        }
        if r.slots_per_sm.is_some_and(|s| s == 0 || s > most) {
            return Err(Error::Configuration(format!(
                "slots_per_sm must be 1 to {most} on this device ({sms} multiprocessors, {} logical threads in all)",
                ScalarClock::MAX_THREADS
            )));
        }
        if r.clock_buffer_size.is_some_and(|c| c == 0 || c > 0xffff) {
            return Err(Error::Configuration(
                "clock_buffer_size must be 1 to 65535".into(),
            ));
        }
        let mut shape = Shape {
            num_devices: r.num_devices,
            num_sms: r.num_sms.max(1),
            slots_per_sm: r.slots_per_sm.unwrap_or(r.blocks_per_sm.clamp(1, most)),
            clock_buffer_size: r.clock_buffer_size.unwrap_or(DEFAULT_RING),
        };
        let limit = THREADS_BYTES.min(r.free / 4);
        let fits = |s: &Shape| s.device_bytes() <= limit;
        if r.clock_buffer_size.is_none() {
            // Rings that were not asked for give way first; below the shortest only if the slots are fixed.
            let shortest = if r.slots_per_sm.is_some() {
                1
            } else {
                SHORTEST_RING
            };
            while !fits(&shape) && shape.clock_buffer_size > shortest {
                shape.clock_buffer_size = (shape.clock_buffer_size / 2).max(shortest);
            }
        }
        while r.slots_per_sm.is_none() && !fits(&shape) && shape.slots_per_sm > 1 {
            shape.slots_per_sm -= 1;
        }
        // What was asked for in full may exceed the usual limit, not the device.
        if shape.device_bytes() > r.free / 2 {
            return Err(Error::Configuration(format!(
                "thread states for slots_per_sm = {} and clock_buffer_size = {} need {} bytes and {} are free; ask for less",
                shape.slots_per_sm,
                shape.clock_buffer_size,
                shape.device_bytes(),
                r.free
            )));
        }
        Ok(shape)
    }

    /// Logical threads of one device.
    pub(crate) fn threads_per_device(&self) -> u32 {
        self.num_sms * self.slots_per_sm
    }

    /// Logical threads.
    pub(crate) fn num_threads(&self) -> u32 {
        self.num_devices * self.threads_per_device()
    }

    /// Bytes of one thread's state.
    pub(crate) fn stride(&self) -> u64 {
        ThreadState::stride(self.num_threads(), self.clock_buffer_size)
    }

    /// Bytes of one device's thread states.
    pub(crate) fn device_bytes(&self) -> u64 {
        u64::from(self.threads_per_device()) * self.stride()
    }
}

/// One device's part.
pub(crate) struct DeviceState {
    device: Rc<Device>,
    state: GlobalState,
    global: DeviceMemory,
    // Held for their addresses, which the global state has.
    _sm_slots: DeviceMemory,
    _sync_cells: DeviceMemory,
    _block_table: DeviceMemory,
    // Old range tables stay: a kernel may be looking at them.
    ranges: Vec<DeviceMemory>,
    multicasts: Option<DeviceMemory>,
    race_keys: DeviceMemory,
    counters: DeviceMemory,
    /// Shared with the watchdog.
    pub(crate) records: PinnedMemory,
    tensor_table: TensorTable,
    // The table as the device sees it, the last one; kernels may still look at those before.
    tensor_maps: Vec<PinnedMemory>,
}

/// The state of all devices.
///
/// Fields are dropped in order, the mappings of the thread states before their range; kernels must have ended.
pub(crate) struct RuntimeState {
    pub(crate) shape: Shape,
    pub(crate) devices: Vec<DeviceState>,
    threads_base: u64,
    device_stride: u64,
    _threads: Vec<Physical>,
    _threads_range: Rc<VirtualRange>,
}

/// What every device's state has in common.
pub(crate) struct Common {
    pub(crate) layout: Layout,
    pub(crate) seed: u32,
    /// Whether each `fence.sc` synchronises with the next.
    pub(crate) sc_order: bool,
}

/// Blocks that a multiprocessor of the device can hold, by its attributes.
pub(crate) fn blocks_per_sm(device: &Device) -> Result<u32> {
    let blocks = device.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?;
    Ok(if blocks == 0 { MOST_SLOTS } else { blocks })
}

impl RuntimeState {
    /// Allocates and initialises everything; waits for it.
    pub(crate) fn new(
        devices: &[Rc<Device>],
        shape: Shape,
        common: &Common,
    ) -> Result<RuntimeState> {
        let Some(first) = devices.first() else {
            return Err(Error::Configuration("a session needs a device".into()));
        };
        let mut granule = 1;
        for device in devices {
            granule = Physical::granularity(device)?.max(granule);
        }
        let device_stride = shape.device_bytes().next_multiple_of(granule);
        let range = Rc::new(VirtualRange::new(
            first,
            device_stride * devices.len() as u64,
            granule,
        )?);
        let mut threads = Vec::new();
        let mut states = Vec::new();
        for (rank, device) in devices.iter().enumerate() {
            let address = range.address + rank as u64 * device_stride;
            threads.push(Physical::map(
                &range,
                device,
                devices,
                address,
                device_stride,
            )?);
            crate::driver::fill(device, address, 0, device_stride)?;
        }
        for (rank, device) in devices.iter().enumerate() {
            let threads_at = (range.address, device_stride);
            states.push(DeviceState::new(
                device,
                rank as u32,
                shape,
                common,
                threads_at,
            )?);
        }
        let state = RuntimeState {
            shape,
            devices: states,
            threads_base: range.address,
            device_stride,
            _threads: threads,
            _threads_range: range,
        };
        for (rank, part) in state.devices.iter().enumerate() {
            for i in 0..shape.threads_per_device() {
                let thread_id = rank as u32 * shape.threads_per_device() + i;
                let header = ThreadState {
                    global: part.address(),
                    who: ThreadState::identity(thread_id, shape.num_threads()),
                    ..Zeroable::zeroed()
                };
                copy_from_host(
                    &part.device,
                    state.thread_address(thread_id),
                    bytemuck::bytes_of(&header),
                )?;
            }
            // Fills are asynchronous to the host; streams that know nothing of the default stream come later.
            part.device.synchronize()?;
        }
        Ok(state)
    }

    /// Where a logical thread's state is.
    pub(crate) fn thread_address(&self, id: u32) -> u64 {
        let per_device = self.shape.threads_per_device().max(1);
        let (rank, index) = (u64::from(id / per_device), u64::from(id % per_device));
        self.threads_base + rank * self.device_stride + index * self.shape.stride()
    }
}

impl DeviceState {
    fn new(
        device: &Rc<Device>,
        rank: u32,
        shape: Shape,
        common: &Common,
        (threads, device_stride): (u64, u64),
    ) -> Result<DeviceState> {
        let bytes_of = |count: u32, size: usize| u64::from(count) * size as u64;
        let resident = shape.num_sms.saturating_mul(blocks_per_sm(device)?);
        let blocks = resident
            .saturating_mul(4)
            .clamp(256, 1 << 20)
            .next_power_of_two();
        let global = DeviceMemory::zeroed(device, size_of::<GlobalState>() as u64)?;
        let sm_slots = DeviceMemory::zeroed(device, bytes_of(shape.num_sms, size_of::<SmSlots>()))?;
        let sync_cells = DeviceMemory::zeroed(
            device,
            u64::from(SYNC_CELLS) * common.layout.format.cell_bytes(),
        )?;
        let block_table = DeviceMemory::zeroed(device, bytes_of(blocks, size_of::<BlockEntry>()))?;
        let race_keys =
            DeviceMemory::zeroed(device, bytes_of(RACE_CAPACITY, size_of::<RaceKey>()))?;
        let counters = DeviceMemory::zeroed(device, size_of::<Counters>() as u64)?;
        let records = PinnedMemory::new(device, bytes_of(RACE_CAPACITY, size_of::<RaceRecord>()))?;
        let sc_order = if common.sc_order {
            GlobalState::SC_ORDER
        } else {
            0
        };
        let shared = if shape.num_devices > 1 {
            GlobalState::SHARED_SHADOW
        } else {
            0
        };
        let state = GlobalState {
            version: LAYOUT_VERSION,
            device: rank,
            real_base: common.layout.real_base,
            real_size: common.layout.real_size,
            shadow_base: common.layout.shadow_base,
            threads,
            thread_stride: shape.stride(),
            device_stride,
            num_sms: shape.num_sms,
            slots_per_sm: shape.slots_per_sm,
            num_devices: shape.num_devices,
            num_threads: shape.num_threads(),
            clock_buffer_size: shape.clock_buffer_size,
            seed: common.seed,
            sm_slots: sm_slots.address,
            ranges: 0,
            num_ranges: 0,
            sync_mask: SYNC_CELLS - 1,
            sync_cells: sync_cells.address,
            block_table: block_table.address,
            block_mask: blocks - 1,
            race_capacity: RACE_CAPACITY,
            race_keys: race_keys.address,
            race_records: records.address,
            counters: counters.address,
            flags: GlobalState::COUNT_ACCESSES | shared | sc_order,
            tensor_mask: 0,
            tensor_maps: 0,
            multicasts: 0,
            num_multicasts: 0,
            reserved: 0,
        };
        copy_from_host(device, global.address, bytemuck::bytes_of(&state))?;
        Ok(DeviceState {
            device: device.clone(),
            state,
            global,
            _sm_slots: sm_slots,
            _sync_cells: sync_cells,
            _block_table: block_table,
            ranges: Vec::new(),
            multicasts: None,
            race_keys,
            counters,
            records,
            tensor_table: TensorTable::default(),
            tensor_maps: Vec::new(),
        })
    }

    /// Address of the device's [`GlobalState`].
    pub(crate) fn address(&self) -> u64 {
        self.global.address
    }

    /// Replaces the table of module variables. Kernels that were issued before must have ended.
    pub(crate) fn set_ranges(&mut self, sorted: &[Range]) -> Result<()> {
        debug_assert!(sorted.is_sorted_by_key(|r| r.start));
        let table = DeviceMemory::new(&self.device, size_of_val(sorted) as u64)?;
        copy_from_host(&self.device, table.address, bytemuck::cast_slice(sorted))?;
        self.state.ranges = table.address;
        self.state.num_ranges = sorted.len() as u32;
        self.ranges.push(table);
        copy_from_host(
            &self.device,
            self.global.address,
            bytemuck::bytes_of(&self.state),
        )
    }

    /// Replaces the table of what multicast addresses stand for. Kernels that were issued before must have ended.
    pub(crate) fn set_multicasts(&mut self, all: &[Multicast]) -> Result<()> {
        let table = DeviceMemory::new(&self.device, size_of_val(all) as u64)?;
        copy_from_host(&self.device, table.address, bytemuck::cast_slice(all))?;
        self.state.multicasts = table.address;
        self.state.num_multicasts = all.len() as u32;
        self.multicasts = Some(table);
        copy_from_host(
            &self.device,
            self.global.address,
            bytemuck::bytes_of(&self.state),
        )
    }

    /// Adds a tensor map to the device's table. It lies in host memory: nothing that runs has to be waited for. Where it has to
    /// grow the old one stays, for what looks at it.
    pub(crate) fn keep_tensor_map(&mut self, map: &TensorMap) -> Result<()> {
        let Some((at, grown)) = self.tensor_table.add(map) else {
            return Ok(());
        };
        let bytes = size_of::<TensorMap>() as u64;
        if !grown {
            if let Some(table) = self.tensor_maps.last() {
                table.store(bytes * at as u64, map);
            }
            return Ok(());
        }
        let entries = self.tensor_table.entries();
        let table = PinnedMemory::new(&self.device, bytes * entries.len() as u64)?;
        for (i, entry) in entries.iter().enumerate() {
            table.store(bytes * i as u64, entry);
        }
        self.state.tensor_maps = table.address;
        self.state.tensor_mask = entries.len() as u32 - 1;
        self.tensor_maps.push(table);
        copy_from_host(
            &self.device,
            self.global.address,
            bytemuck::bytes_of(&self.state),
        )
    }

    /// The tallies.
    pub(crate) fn counters(&self) -> Result<Counters> {
        read(&self.device, self.counters.address)
    }

    /// How often each finding was made, by the record's index.
    pub(crate) fn race_counts(&self) -> Result<Vec<RaceKey>> {
        let mut keys = vec![RaceKey::zeroed(); RACE_CAPACITY as usize];
        copy_to_host(
            &self.device,
            bytemuck::cast_slice_mut(&mut keys),
            self.race_keys.address,
        )?;
        Ok(keys)
    }

    /// The global state as the device has it.
    pub(crate) fn global_state(&self) -> Result<GlobalState> {
        read(&self.device, self.global.address)
    }
}

/// Reads a value from device memory.
pub(crate) fn read<T: Pod>(device: &Device, address: u64) -> Result<T> {
    let mut value = T::zeroed();
    copy_to_host(device, bytemuck::bytes_of_mut(&mut value), address)?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: ShapeRequest = ShapeRequest {
        num_devices: 1,
        num_sms: 132,
        blocks_per_sm: 32,
        free: 139 << 30,
        slots_per_sm: None,
        clock_buffer_size: None,
    };

    #[test]
    fn a_large_gpu_gets_all_the_formats_threads_and_shorter_rings() {
        let shape = Shape::choose(H200).unwrap();
        assert_eq!(shape.slots_per_sm, 31);
        assert_eq!(shape.clock_buffer_size, 16);
        assert!(
            shape.device_bytes() <= THREADS_BYTES,
            "{}",
            shape.device_bytes()
        );
    }

    #[test]
    fn a_small_simulator_gets_what_it_can_hold() {
        let shape = Shape::choose(ShapeRequest {
            num_sms: 4,
            blocks_per_sm: 8,
            free: 16 << 30,
            ..H200
        })
        .unwrap();
        assert_eq!(
            (
                shape.slots_per_sm,
                shape.clock_buffer_size,
                shape.num_threads()
            ),
            (8, 64, 32)
        );
    }

    #[test]
    fn several_devices_share_the_threads() {
        let shape = Shape::choose(ShapeRequest {
            num_devices: 8,
            ..H200
        })
        .unwrap();
        assert_eq!(shape.slots_per_sm, 3);
        assert!(shape.num_threads() <= ScalarClock::MAX_THREADS);
    }

    #[test]
    fn what_was_asked_for_stays_or_is_refused_with_the_numbers() {
        let asked = ShapeRequest {
            slots_per_sm: Some(1),
            clock_buffer_size: Some(1024),
            ..H200
        };
        let shape = Shape::choose(asked).unwrap();
        assert_eq!((shape.slots_per_sm, shape.clock_buffer_size), (1, 1024));
        for bad in [
            ShapeRequest {
                slots_per_sm: Some(0),
                ..H200
            },
            ShapeRequest {
                slots_per_sm: Some(32),
                ..H200
            },
            ShapeRequest {
                clock_buffer_size: Some(0),
                ..H200
            },
            ShapeRequest {
                clock_buffer_size: Some(65536),
                ..H200
            },
            ShapeRequest {
                num_sms: 5000,
                ..H200
            },
            ShapeRequest {
                slots_per_sm: Some(31),
                clock_buffer_size: Some(65535),
                ..H200
            },
        ] {
            assert!(
                matches!(Shape::choose(bad), Err(Error::Configuration(_))),
                "{bad:?}"
            );
        }
        let fixed = Shape::choose(ShapeRequest {
            slots_per_sm: Some(31),
            free: 2 << 30,
            ..H200
        })
        .unwrap();
        assert_eq!(fixed.slots_per_sm, 31);
        assert!(fixed.clock_buffer_size < SHORTEST_RING);
    }

    #[test]
    fn little_memory_means_fewer_slots() {
        let shape = Shape::choose(ShapeRequest {
            free: 1 << 30,
            ..H200
        })
        .unwrap();
        assert!(shape.slots_per_sm < 31 && shape.slots_per_sm >= 1);
        assert!(shape.device_bytes() <= (1 << 30) / 4);
    }
}
