//! Kernels: their attributes, and how many blocks of them a multiprocessor holds.

use super::api::{Out, Session, driver_api};
use super::codes::{Answer, Code};
use super::launch::Config as LaunchConfig;
use super::state::{Driver, Handle};
use crate::machine::FunctionInfo;
use std::ffi::{c_char, c_int};

/// `CU_FUNC_ATTRIBUTE_*`.
mod attribute {
    pub(super) const MAX_THREADS: u32 = 0;
    pub(super) const SHARED: u32 = 1;
    pub(super) const CONST: u32 = 2;
    pub(super) const LOCAL: u32 = 3;
    pub(super) const REGISTERS: u32 = 4;
    pub(super) const PTX_VERSION: u32 = 5;
    pub(super) const BINARY_VERSION: u32 = 6;
    pub(super) const CACHE_MODE_CA: u32 = 7;
    pub(super) const MAX_DYNAMIC_SHARED: u32 = 8;
    pub(super) const CARVEOUT: u32 = 9;
    pub(super) const CLUSTER_MUST_BE_SET: u32 = 10;
    pub(super) const CLUSTER_WIDTH: u32 = 11;
    pub(super) const CLUSTER_DEPTH: u32 = 13;
    pub(super) const NON_PORTABLE_CLUSTER: u32 = 14;
    pub(super) const CLUSTER_POLICY: u32 = 15;
}

impl Driver {
    pub(super) fn info(&self, function: Handle) -> Answer<&FunctionInfo> {
        self.machine
            .function_info(self.function(function)?.id)
            .ok_or(Code::INVALID_HANDLE)
    }

    /// The dynamic shared memory that a launch may ask for.
    pub(super) fn max_dynamic(&self, function: Handle) -> Answer<u32> {
        let fixed = self.info(function)?.static_shared;
        let unasked = self
            .machine
            .config()
            .default_shared_per_block
            .saturating_sub(fixed);
        Ok(self.function(function)?.max_dynamic.unwrap_or(unasked))
    }

    pub(super) fn blocks_per_sm(
        &self,
        function: Handle,
        threads: u32,
        dynamic: u32,
    ) -> Answer<u32> {
        if threads == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if threads > 1024 {
            return Ok(0);
        }
        let id = self.function(function)?.id;
        if dynamic > self.max_dynamic(function)? {
            return Ok(0);
        }
        Ok(self.machine.blocks_per_sm(id, threads, dynamic))
    }
}

fn get_attribute(driver: &Driver, which: u32, function: Handle) -> Answer<i32> {
    let info = driver.info(function)?;
    let state = driver.function(function)?;
    let value = match which {
        attribute::MAX_THREADS => info.max_threads,
        attribute::SHARED => info.static_shared,
        attribute::CONST => info.const_bytes,
        attribute::LOCAL => info.local_bytes,
        attribute::REGISTERS => info.registers,
        attribute::PTX_VERSION => info.ptx_version,
        attribute::BINARY_VERSION => {
            let (major, minor) = super::device::CAPABILITY;
            (10 * major + minor) as u32
        }
        attribute::CACHE_MODE_CA => 0,
        attribute::MAX_DYNAMIC_SHARED => driver.max_dynamic(function)?,
        attribute::CARVEOUT => return Ok(state.carveout),
        attribute::CLUSTER_MUST_BE_SET => info.required_cluster.is_some().into(),
        attribute::CLUSTER_WIDTH..=attribute::CLUSTER_DEPTH => {
            info.required_cluster.map_or(0, |shape| {
                shape[(which - attribute::CLUSTER_WIDTH) as usize]
            })
        }
        attribute::NON_PORTABLE_CLUSTER => state.non_portable_cluster.into(),
        attribute::CLUSTER_POLICY => 0,
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(value as i32)
}

fn set_attribute(driver: &mut Driver, which: u32, function: Handle, value: i32) -> Answer {
    let most = driver.machine.config().max_shared_per_block;
    let room = most.saturating_sub(driver.info(function)?.static_shared);
    let state = driver
        .functions
        .get_mut(&function)
        .ok_or(Code::INVALID_HANDLE)?;
    match which {
        attribute::MAX_DYNAMIC_SHARED => {
            let value = u32::try_from(value).ok().filter(|&value| value <= room);
            state.max_dynamic = Some(value.ok_or(Code::INVALID_VALUE)?);
        }
        attribute::CARVEOUT if (-1..=100).contains(&value) => state.carveout = value,
        attribute::NON_PORTABLE_CLUSTER if (0..=1).contains(&value) => {
            state.non_portable_cluster = value == 1
        }
        attribute::CLUSTER_POLICY => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

/// The dynamic shared memory that a block of a size asks for; the caller's function, if there is one, says it.
type SharedOf = Option<extern "C" fn(c_int) -> usize>;

fn best_block(
    session: &mut Session,
    blocks: &Out<i32>,
    threads: &Out<i32>,
    function: Handle,
    shared_of: SharedOf,
    dynamic: usize,
    limit: i32,
) -> Answer {
    blocks.require()?;
    threads.require()?;
    let (driver, _) = session.healthy()?;
    let sms = driver.machine.config().sms;
    let max_threads = driver.info(function)?.max_threads;
    let limit = match u32::try_from(limit).map_err(|_| Code::INVALID_VALUE)? {
        0 => max_threads,
        limit => limit.min(max_threads),
    };
    let mut best = (0, 0, 0);
    for size in (1..=limit.div_ceil(32))
        .rev()
        .map(|warps| (warps * 32).min(limit))
    {
        let dynamic = match shared_of {
            Some(shared_of) => {
                let mut bytes = 0;
                session.unlocked(|| bytes = shared_of(size as c_int));
                bytes
            }
            None => dynamic,
        };
        let dynamic = u32::try_from(dynamic).unwrap_or(u32::MAX);
        let held = session.driver()?.blocks_per_sm(function, size, dynamic)?;
        if held * size > best.0 {
            best = (held * size, size, held);
        }
    }
    let (_, size, held) = best;
    threads.set(size as i32)?;
    blocks.set((held * sms) as i32)
}

fn active_blocks(
    session: &mut Session,
    blocks: &Out<i32>,
    function: Handle,
    threads: i32,
    dynamic: usize,
) -> Answer {
    let (driver, _) = session.healthy()?;
    let threads = u32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
    let dynamic = u32::try_from(dynamic).unwrap_or(u32::MAX);
    blocks.set(driver.blocks_per_sm(function, threads, dynamic)? as i32)
}

driver_api! {
    fn cuFuncGetAttribute(s, value: Out<i32>, which: u32, function: Handle) {
        let (driver, _) = s.healthy()?;
        value.set(get_attribute(driver, which, function)?)
    }
    fn cuFuncSetAttribute(s, function: Handle, which: u32, value: i32) {
        let (driver, _) = s.healthy()?;
        set_attribute(driver, which, function, value)
    }
    fn cuFuncSetCacheConfig(s, function: Handle, config: u32) {
        let (driver, _) = s.healthy()?;
        driver.function(function)?;
        if config > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }
    fn cuFuncSetSharedMemConfig(s, function: Handle, config: u32) {
        let (driver, _) = s.healthy()?;
        driver.function(function)?;
        if config > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }
    fn cuFuncGetModule(s, module: Out<Handle>, function: Handle) {
        let (driver, _) = s.healthy()?;
        module.set(driver.function(function)?.module)
    }
    fn cuFuncGetName(s, name: Out<*const c_char>, function: Handle) {
        let (driver, _) = s.healthy()?;
        // Stays until the module is unloaded: the string's bytes do not move with the map's entries.
        name.set(driver.function(function)?.name.as_ptr())
    }
    fn cuFuncGetParamInfo(s, function: Handle, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        let (driver, _) = s.healthy()?;
        let &(at, len) = driver.info(function)?.params.get(index).ok_or(Code::INVALID_VALUE)?;
        offset.set(at as usize)?;
        bytes.set_if_wanted(len as usize);
        Ok(())
    }
    fn cuFuncIsLoaded(s, state: Out<u32>, function: Handle) {
        let (driver, _) = s.healthy()?;
        driver.function(function)?;
        state.set(1)
    }
    fn cuFuncLoad(s, function: Handle) {
        let (driver, _) = s.healthy()?;
        driver.function(function).map(|_| ())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(s, blocks: Out<i32>, function: Handle, threads: i32, dynamic: usize) {
        active_blocks(s, &blocks, function, threads, dynamic)
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        s, blocks: Out<i32>, function: Handle, threads: i32, dynamic: usize, _flags: u32
    ) {
        active_blocks(s, &blocks, function, threads, dynamic)
    }
    fn cuOccupancyMaxPotentialBlockSize(
        s, blocks: Out<i32>, threads: Out<i32>, function: Handle, shared_of: SharedOf, dynamic: usize, limit: i32
    ) {
        best_block(s, &blocks, &threads, function, shared_of, dynamic, limit)
    }
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        s, blocks: Out<i32>, threads: Out<i32>, function: Handle, shared_of: SharedOf, dynamic: usize, limit: i32,
        _flags: u32
    ) {
        best_block(s, &blocks, &threads, function, shared_of, dynamic, limit)
    }
    fn cuOccupancyAvailableDynamicSMemPerBlock(s, bytes: Out<usize>, function: Handle, blocks: i32, threads: i32) {
        bytes.require()?;
        let (driver, _) = s.healthy()?;
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks > 0).ok_or(Code::INVALID_VALUE)?;
        let threads = u32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
        let id = driver.function(function)?.id;
        driver.blocks_per_sm(function, threads, 0)?;
        // The answer only falls with the size: halve the interval. The limit is the device's, not the function's.
        let fixed = driver.info(function)?.static_shared;
        let (mut low, mut high) = (0, driver.machine.config().max_shared_per_block.saturating_sub(fixed) + 1);
        if driver.machine.blocks_per_sm(id, threads, 0) < blocks {
            return Err(Code::INVALID_VALUE);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if driver.machine.blocks_per_sm(id, threads, middle) >= blocks {
                low = middle;
            } else {
                high = middle;
            }
        }
        bytes.set(low as usize)
    }
    fn cuOccupancyMaxActiveClusters(s, clusters: Out<i32>, function: Handle, config: super::api::In<LaunchConfig>) {
        let (driver, _) = s.healthy()?;
        let shape = config.get()?.shape()?;
        let threads = shape.block.iter().try_fold(1u32, |all, &n| all.checked_mul(n)).ok_or(Code::INVALID_VALUE)?;
        let held = driver.blocks_per_sm(function, threads, shape.dynamic)?;
        let cluster = shape.cluster.iter().product::<u32>().max(1);
        clusters.set((held * driver.machine.config().sms / cluster) as i32)
    }
    fn cuOccupancyMaxPotentialClusterSize(s, size: Out<i32>, function: Handle, _config: u64) {
        let (driver, _) = s.healthy()?;
        size.set(if driver.function(function)?.non_portable_cluster { 16 } else { 8 })
    }
}
