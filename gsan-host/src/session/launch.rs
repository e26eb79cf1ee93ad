//! Launches.

use super::edges::{Edge, without};
use super::{InFlight, Session};
use crate::driver::{Device, DeviceMemory, Function, PinnedMemory};
use crate::error::{Error, Result};
use crate::launch_plan::{
    DeviceLimits, SHARED_WITHOUT_OPT_IN, SharedPlan, arguments, check_cooperative, check_registers,
    check_required_threads, check_shape, plan_shared, threads,
};
use crate::prepare::Kernel;
use crate::report::LaunchInfo;
use crate::request::{LaunchId, LaunchSpec, StreamId};
use crate::rows::{LaunchRows, rows_for_dependent, rows_for_launch};
use cuda_lazy::ext::{CUlaunchAttribute, CUlaunchConfig};
use cust::sys::CUdevice_attribute as Attribute;
use gsan_device::layout::LaunchRecord;
use std::collections::VecDeque;
use std::rc::Rc;

/// Launch records of launches that may still run. The hidden parameter of a kernel is the address of its place here.
pub(super) struct LaunchRing {
    memory: DeviceMemory,
    staging: PinnedMemory,
    /// For each place a word that says whether a dependent launch has waited.
    waited: PinnedMemory,
    free: VecDeque<u32>,
}

impl LaunchRing {
    /// Launches under way per device; the driver's own queue is about as long.
    const PLACES: u32 = 1024;
    /// Bytes from one record to the next.
    const STRIDE: u64 = 64;

    pub(super) fn new(device: &Rc<Device>) -> Result<LaunchRing> {
        let bytes = u64::from(Self::PLACES) * Self::STRIDE;
        Ok(LaunchRing {
            memory: DeviceMemory::new(device, bytes)?,
            staging: PinnedMemory::new(device, bytes)?,
            waited: PinnedMemory::new(device, 4 * u64::from(Self::PLACES))?,
            free: (0..Self::PLACES).collect(),
        })
    }

    /// Whether a dependent launch, which is over, has waited for the one before it.
    pub(super) fn has_waited(&self, place: u32) -> bool {
        self.waited.load(4 * u64::from(place), 4) != [0; 4]
    }

    /// The launch is over.
    pub(super) fn give_back(&mut self, place: u32) {
        self.free.push_back(place);
    }
}

const _: () = assert!(size_of::<LaunchRecord>() as u64 <= LaunchRing::STRIDE);

impl DeviceLimits {
    pub(super) fn of(device: &Device) -> Result<DeviceLimits> {
        let opt_in = device
            .number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
            .unwrap_or(0);
        Ok(DeviceLimits {
            threads_per_block: device
                .number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            shared_per_block: match opt_in {
                0 => device.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
                bytes => bytes,
            },
            registers_per_block: device
                .number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            sms: device.sms,
        })
    }
}

/// What a launch record says of its launch.
pub(super) struct Recorded {
    pub(super) launch_id: u32,
    pub(super) module_id: u32,
    /// What the user asked for.
    pub(super) dynamic_shared: u32,
    /// [`LaunchRecord::flags`]
    pub(super) flags: u32,
    /// It may start before the launch before it in the stream has ended.
    pub(super) dependent: bool,
    /// It stands for an operation of the host.
    pub(super) operation: bool,
}

/// What the launch record's flags say of a launch.
fn launch_flags(spec: &LaunchSpec, kernel: &Kernel) -> u32 {
    let warps = if kernel.intra_block {
        LaunchRecord::INTRA_BLOCK
    } else {
        0
    };
    warps | LaunchRecord::cluster_flags(cluster_shape(spec, kernel))
}

/// Blocks per cluster along each axis.
fn cluster_shape(spec: &LaunchSpec, kernel: &Kernel) -> [u32; 3] {
    let shape = spec.cluster.or(kernel.required_cluster);
    shape.unwrap_or([1, 1, 1])
}

/// A launch that passed the checks.
struct Planned {
    kernel: Rc<Kernel>,
    function: Function,
    params: Vec<Vec<u8>>,
    shared: SharedPlan,
}

impl Session {
    /// Issues a kernel.
    pub fn launch(&mut self, spec: &LaunchSpec) -> Result<LaunchId> {
        let _armed = self.begin()?;
        let planned = self.plan(spec);
        let planned = self.noted(planned)?;
        // Known before it is issued: a device reports as soon as it runs.
        let id = self.announce(spec)?;
        let issued = self.issue(spec, id, planned);
        if issued.is_err() {
            self.names().launches.pop();
        }
        self.noted(issued)?;
        Ok(id)
    }

    fn announce(&mut self, spec: &LaunchSpec) -> Result<LaunchId> {
        let stream = self.slot(spec.stream)?.name.clone();
        let module = self
            .modules
            .get(spec.module.0 as usize)
            .map(|m| m.name().to_string())
            .unwrap_or_default();
        let mut names = self.names();
        let id = names.launches.len() as u32;
        let kernel = spec.kernel.clone();
        names.launches.push(LaunchInfo {
            id,
            kernel,
            module,
            grid: spec.grid,
            block: spec.block,
            stream,
        });
        Ok(LaunchId(id))
    }

    /// Checks the launch and finds out what it needs.
    fn plan(&mut self, spec: &LaunchSpec) -> Result<Planned> {
        let index = self.slot(spec.stream)?.device;
        let device = self.device(index)?.clone();
        device.enter()?;
        let limits = DeviceLimits::of(&device)?;
        let checked = self.checked.is_some();
        let module = self
            .modules
            .get_mut(spec.module.0 as usize)
            .ok_or(Error::UnknownModule(spec.module))?;
        let kernel = module.kernel(&spec.kernel)?;
        let params = arguments(&kernel.info, &spec.args)?;
        let facts = module.function(index, &spec.kernel)?.facts;
        check_shape(spec, &limits, facts.static_shared)?;
        check_required_threads(spec, kernel.required_threads)?;
        check_registers(spec, &limits, facts, || {
            Some(
                module
                    .plain(&device, index, &spec.kernel)
                    .filter(|_| checked)?
                    .1,
            )
        })?;
        let shared = if kernel.hidden_parameter {
            plan_shared(
                facts.static_shared,
                spec.dynamic_shared,
                limits.shared_per_block,
                cluster_shape(spec, &kernel) != [1, 1, 1],
            )
        } else {
            SharedPlan {
                dynamic: spec.dynamic_shared,
                grown: false,
            }
        };
        let loaded = module.function(index, &spec.kernel)?;
        let total = u64::from(facts.static_shared) + u64::from(shared.dynamic);
        if total > u64::from(SHARED_WITHOUT_OPT_IN) && loaded.allowed < shared.dynamic {
            loaded.function.allow_dynamic_shared(shared.dynamic)?;
            loaded.allowed = shared.dynamic;
        }
        let function = loaded.function;
        if spec.cooperative {
            let per_block = threads(spec) as u32;
            let per_sm = function.blocks_per_sm(per_block, shared.dynamic)?;
            check_cooperative(spec, &limits, per_sm, || {
                let (plain, facts) = module
                    .plain(&device, index, &spec.kernel)
                    .filter(|_| checked)?;
                if facts.static_shared.saturating_add(spec.dynamic_shared) > SHARED_WITHOUT_OPT_IN {
                    plain.allow_dynamic_shared(spec.dynamic_shared).ok()?;
                }
                plain.blocks_per_sm(per_block, spec.dynamic_shared).ok()
            })?;
        }
        Ok(Planned {
            kernel,
            function,
            params,
            shared,
        })
    }

    fn issue(&mut self, spec: &LaunchSpec, id: LaunchId, mut planned: Planned) -> Result<()> {
        let stream = spec.stream.0 as usize;
        if planned.kernel.hidden_parameter {
            let recorded = Recorded {
                launch_id: id.0,
                module_id: spec.module.0,
                dynamic_shared: spec.dynamic_shared,
                flags: launch_flags(spec, &planned.kernel),
                dependent: spec.pdl && planned.kernel.follows_grid_wait,
                operation: false,
            };
            let record = self.prepare_record(spec.stream, recorded)?;
            planned.params.push(record.to_le_bytes().to_vec());
        } else {
            self.clocks.issue(stream);
        }
        let slot = self.slot(spec.stream)?;
        slot.stream.enter()?;
        let mut attributes = Vec::new();
        if spec.cooperative {
            attributes.push(CUlaunchAttribute::cooperative());
        }
        if let Some([x, y, z]) = spec.cluster {
            attributes.push(CUlaunchAttribute::cluster(x, y, z));
        }
        if spec.pdl {
            attributes.push(CUlaunchAttribute::programmatic_stream_serialization());
        }
        if planned.kernel.hidden_parameter
            && !planned.kernel.linked_by_hand
            && cuda_lazy::backend() == cuda_lazy::Backend::Simulated
        {
            attributes.push(CUlaunchAttribute::user_dynamic_shared(spec.dynamic_shared));
        }
        let config = CUlaunchConfig {
            gridDimX: spec.grid[0],
            gridDimY: spec.grid[1],
            gridDimZ: spec.grid[2],
            blockDimX: spec.block[0],
            blockDimY: spec.block[1],
            blockDimZ: spec.block[2],
            sharedMemBytes: planned.shared.dynamic,
            hStream: slot.stream.raw(),
            attrs: std::ptr::null_mut(),
            numAttrs: 0,
        };
        // SAFETY: the module stays loaded as long as the session, the stream is one of its device, whose context was just
        // entered, and the parameters were checked one by one against the kernel's, the hidden one added where it is
        // declared.
        unsafe {
            planned
                .function
                .launch(config, &mut attributes, &mut planned.params)
        }
    }

    /// Writes the launch record, in the stream, and returns its address. From here on the stream knows the launch's out
    /// row.
    pub(super) fn prepare_record(&mut self, on: StreamId, launch: Recorded) -> Result<u64> {
        let stream = on.0 as usize;
        let device = self.slot(on)?.device as usize;
        let place = self.free_place(device)?;
        let dependent = if launch.dependent {
            self.dependent_rows(stream, device)?
        } else {
            None
        };
        let aside = dependent.is_some();
        let rows = match dependent {
            Some(rows) => rows,
            None => self.rows_in_stream(stream, device)?,
        };
        let Some(checked) = &mut self.checked else {
            return Ok(0);
        };
        let slot = &mut self.streams[stream];
        let ring = &mut checked.rings[device];
        let waited = 4 * u64::from(place);
        let chained = if rows.chained {
            LaunchRecord::CHAINED
        } else {
            0
        };
        ring.waited.store(waited, &0u32);
        let record = LaunchRecord {
            global: checked.runtime.devices[device].address(),
            base_row: match launch.operation && without(Edge::OperationBase) {
                true => checked.pools[device].beginning(),
                false => rows.base,
            },
            out_row: match launch.operation && without(Edge::OperationRow) {
                true => rows.base,
                false => rows.out,
            },
            wait_row: rows.wait,
            waited: if aside {
                ring.waited.address + waited
            } else {
                0
            },
            launch_id: launch.launch_id,
            module_id: launch.module_id,
            dynamic_shared: launch.dynamic_shared,
            flags: launch.flags | chained,
        };
        let offset = u64::from(place) * LaunchRing::STRIDE;
        ring.staging.store(offset, &record);
        slot.in_flight.push_back(InFlight {
            _rows: rows,
            place,
            must_wait: aside.then_some(launch.launch_id),
        });
        let to = ring.memory.address + offset;
        let bytes = size_of::<LaunchRecord>() as u64;
        if aside {
            // Nothing may come between the two launches in their stream.
            let service = &checked.services[device];
            service.write(to, &ring.staging, offset, bytes)?;
        } else {
            let stream = &slot.stream;
            stream.copy_from_pinned(to, &ring.staging, offset, bytes)?;
        }
        Ok(to)
    }

    /// The rows of an ordinary launch, made in its stream.
    fn rows_in_stream(&mut self, stream: usize, device: usize) -> Result<LaunchRows> {
        // Only streams that meet need the join kernel.
        let joiner = match self.clocks.issue(stream).rows().len() {
            0 | 1 => None,
            _ => Some(self.own_kernel(device as u32, "__gsan_join_rows")?),
        };
        let Some(checked) = &mut self.checked else {
            return Err(Error::Ended);
        };
        let slot = &mut self.streams[stream];
        for (service, seen) in checked.services.iter().zip(&mut slot.cleared) {
            service.order(&slot.stream, seen)?;
        }
        let num_threads = checked.runtime.shape.num_threads();
        rows_for_launch(
            &mut self.clocks,
            &checked.pools[device],
            stream,
            &slot.stream,
            num_threads,
            joiner,
        )
    }

    /// The rows of a launch that may start before the one before it has ended; `None` if it can't.
    fn dependent_rows(&mut self, stream: usize, device: usize) -> Result<Option<LaunchRows>> {
        let Some(checked) = &mut self.checked else {
            return Ok(None);
        };
        let num_threads = checked.runtime.shape.num_threads();
        let rows = rows_for_dependent(
            &mut self.clocks,
            &checked.pools[device],
            stream,
            checked.services[device].stream(),
            num_threads,
        )?;
        if rows.is_some() {
            let seen = &mut self.streams[stream].cleared;
            for (service, seen) in checked.services.iter().zip(seen) {
                service.wait(seen)?;
            }
        }
        Ok(rows)
    }

    /// A place in the device's ring; waits for launches to end where all are taken, as the driver does when its queue is
    /// full. That orders nothing: the program did not ask for it.
    fn free_place(&mut self, device: usize) -> Result<u32> {
        for _ in 0..2 {
            let Some(checked) = &mut self.checked else {
                break;
            };
            if let Some(place) = checked.rings[device].free.pop_front() {
                return Ok(place);
            }
            self.wait_for_device(device as u32)?;
        }
        Err(Error::Configuration(
            "more launches are under way than the launch ring holds; synchronize in between".into(),
        ))
    }
}
