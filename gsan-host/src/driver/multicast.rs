//! Multicast objects: memory of several devices at one address, for `multimem` instructions.

use super::memory::{Physical, VirtualRange, allow};
use super::{Device, check, check_code};
use crate::error::Result;
use cuda_lazy::ext::{
    CUmulticastObjectProp, cuMulticastAddDevice, cuMulticastBindAddr, cuMulticastCreate,
    cuMulticastGetGranularity, cuMulticastUnbind,
};
use cust::sys;
use std::rc::Rc;

/// A multicast object, mapped at an address of its own until it is dropped.
pub(crate) struct MulticastMemory {
    team: Vec<Rc<Device>>,
    handle: sys::CUmemGenericAllocationHandle,
    /// How many of the team's memories are bound.
    bound: usize,
    mapped: bool,
    range: VirtualRange,
}

impl MulticastMemory {
    /// What sizes and addresses of memory must be multiples of.
    pub(crate) fn granularity(team: &[Rc<Device>]) -> Result<u64> {
        let mut granularity = 0;
        // SAFETY: both pointers are to live values.
        let status =
            unsafe { cuMulticastGetGranularity(&mut granularity, &properties(team, 1), 0) };
        check_code("cuMulticastGetGranularity", status.0 as u32)?;
        let mut most = (granularity as u64).max(1).next_power_of_two();
        for device in team {
            most = most.max(Physical::granularity(device)?);
        }
        Ok(most)
    }

    /// Binds `bytes` bytes at each of `memories`, one for each device of the team, in its order. Each is the start of a mapping.
    pub(crate) fn new(
        team: &[Rc<Device>],
        memories: &[u64],
        bytes: u64,
        granularity: u64,
    ) -> Result<MulticastMemory> {
        let Some(first) = team.first() else {
            return Err(crate::error::Error::EmptyBuffer);
        };
        let range = VirtualRange::new(first, bytes, granularity)?;
        first.enter()?;
        let mut handle = 0;
        // SAFETY: both pointers are to live values.
        let status = unsafe { cuMulticastCreate(&mut handle, &properties(team, bytes)) };
        check_code("cuMulticastCreate", status.0 as u32)?;
        let mut object = MulticastMemory {
            team: team.to_vec(),
            handle,
            bound: 0,
            mapped: false,
            range,
        };
        for device in team {
            // SAFETY: the object was just made; the driver checks the device.
            let status = unsafe { cuMulticastAddDevice(handle, device.ordinal as i32) };
            check_code("cuMulticastAddDevice", status.0 as u32)?;
        }
        for memory in memories {
            // SAFETY: plain numbers; the driver checks them.
            let status = unsafe { cuMulticastBindAddr(handle, 0, *memory, bytes as usize, 0) };
            check_code("cuMulticastBindAddr", status.0 as u32)?;
            object.bound += 1;
        }
        // SAFETY: plain numbers; the driver checks them.
        check("cuMemMap", unsafe {
            sys::cuMemMap(object.address(), bytes as usize, 0, handle, 0)
        })?;
        object.mapped = true;
        allow(object.address(), bytes, team)?;
        Ok(object)
    }

    pub(crate) fn address(&self) -> u64 {
        self.range.address
    }
}

impl Drop for MulticastMemory {
    fn drop(&mut self) {
        if self.team.first().is_none_or(|d| d.enter().is_err()) {
            return;
        }
        let bytes = self.range.bytes as usize;
        if self.mapped {
            // SAFETY: mapped by us and unmapped once.
            let _ = unsafe { sys::cuMemUnmap(self.range.address, bytes) };
        }
        for device in &self.team[..self.bound] {
            // SAFETY: bound by us and unbound once.
            let _ = unsafe { cuMulticastUnbind(self.handle, device.ordinal as i32, 0, bytes) };
        }
        // SAFETY: created by us and released once.
        let _ = unsafe { sys::cuMemRelease(self.handle) };
    }
}

fn properties(team: &[Rc<Device>], bytes: u64) -> CUmulticastObjectProp {
    CUmulticastObjectProp {
        numDevices: team.len() as u32,
        size: bytes as usize,
        handleTypes: 0,
        flags: 0,
    }
}
