//! Operations of the host as accesses: before a memset or a copy, a kernel of the runtime goes over its bytes in the same
//! stream, as a launch of its own, and checks and records them as a kernel's accesses are.

use super::Session;
use super::edges::{Edge, without};
use super::launch::Recorded;
use crate::catalogue::HostOperation;
use crate::driver::{Function, Module};
use crate::error::{Error, Result};
use crate::launch_plan::{DeviceLimits, plan_shared};
use crate::prepare::Input;
use crate::request::StreamId;
use cuda_lazy::ext::CUlaunchConfig;
use gsan_device::layout::{Access, Op, Order, Scope};

/// Threads of a touching block, and how many blocks there are at most.
const THREADS: u32 = 256;
const BLOCKS: u32 = 64;
/// Bytes that a thread checks at a time.
const SPAN: u32 = 16;

impl Session {
    /// Issues the accesses of `what` to the stream, where the bytes have shadow. The operation itself comes next.
    pub(super) fn touch(
        &mut self,
        stream: StreamId,
        what: HostOperation,
        access: Access,
        address: u64,
        bytes: u64,
    ) -> Result<()> {
        let device = self.slot(stream)?.device;
        if bytes == 0 || self.checked.is_none() || !self.has_shadow(address, device) {
            return Ok(());
        }
        if without(Edge::Operation) {
            return Ok(());
        }
        let function = self.own_kernel(device, "__gsan_touch")?;
        let limits = DeviceLimits::of(self.device(device)?)?;
        let shared = plan_shared(0, 0, limits.shared_per_block, false);
        let launch_id = what.id(self.names().launches.len() as u32);
        let record = self.prepare_record(
            stream,
            Recorded {
                launch_id,
                // It has no sites.
                module_id: 0,
                dynamic_shared: 0,
                flags: 0,
                dependent: false,
                operation: true,
            },
        )?;
        let op = Op::new(access, SPAN, Order::Weak, Scope::None);
        let mut params = [
            address.to_le_bytes().to_vec(),
            bytes.to_le_bytes().to_vec(),
            op.0.to_le_bytes().to_vec(),
            record.to_le_bytes().to_vec(),
        ];
        let slot = self.slot(stream)?;
        slot.stream.enter()?;
        let blocks = bytes.div_ceil(u64::from(THREADS * SPAN));
        let config = CUlaunchConfig {
            gridDimX: blocks.min(u64::from(BLOCKS)) as u32,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: THREADS,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared.dynamic,
            hStream: slot.stream.raw(),
            attrs: std::ptr::null_mut(),
            numAttrs: 0,
        };
        // SAFETY: the function is the runtime's `__gsan_touch(addr, bytes, op, launch)`, whose parameters are these, of a
        // module that stays loaded as long as the session; the stream is one of its device, whose context was just entered;
        // shared memory is grown as for any kernel, and the record is this launch's.
        unsafe { function.launch(config, &mut [], &mut params) }
    }

    /// A kernel of the runtime on a device: in any instrumented module, or in the runtime loaded on its own.
    pub(super) fn own_kernel(&mut self, device: u32, name: &str) -> Result<Function> {
        let found = self
            .modules
            .iter()
            .find_map(|m| m.own_function(device, name));
        if let Some(function) = found {
            return Ok(function);
        }
        let owner = self.device(device)?.clone();
        let runtime = self.runtime.clone();
        if let Some(checked) = &mut self.checked {
            let place = &mut checked.own[device as usize];
            let module = match place.take() {
                Some(module) => module,
                None => {
                    let module = Module::load(
                        &owner,
                        "gsan's runtime",
                        &[Input::new("runtime.ptx", runtime)],
                        false,
                    )?;
                    let global = checked.runtime.devices[device as usize].address();
                    let format = checked.reservation.layout().format;
                    super::modules::tell_module(&owner, &module, global, true, format)?;
                    // Streams that know nothing of the default stream come next.
                    owner.synchronize()?;
                    module
                }
            };
            let function = module.function(name);
            *place = Some(module);
            if let Some(function) = function? {
                return Ok(function);
            }
        }
        Err(Error::Configuration(format!(
            "gsan's runtime has no kernel {name}: run `cargo xtask ptx` and build again"
        )))
    }
}
