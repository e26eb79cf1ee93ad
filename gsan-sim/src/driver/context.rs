//! Contexts: created ones, and each device's primary one; the calling thread's stack of them; peer access.

use super::api::{In, Out, Session, driver_api};
use super::codes::{Answer, Code};
use super::state::{Context, Driver, Handle, Tail};
use std::collections::HashMap;

/// `CU_CTX_*` flags of CUDA 11.4 to 13.
const FLAGS: u32 = 0xff;

impl Driver {
    fn new_context(&mut self, device: u32, flags: u32, primary: bool) -> Handle {
        let handle = self.new_handle();
        self.contexts.insert(
            handle,
            Context {
                device,
                flags,
                primary,
                error: None,
                legacy: Tail::default(),
                orphans: Vec::new(),
                per_thread: HashMap::new(),
                peers: 0,
                limits: [None; 16],
                cache_config: 0,
                shared_config: 0,
            },
        );
        handle
    }

    /// Gives back everything that a context has; the context stays, as if new.
    fn empty_context(&mut self, context: Handle) {
        self.discard(context);
        let modules: Vec<Handle> = self
            .modules
            .iter()
            .filter(|(_, module)| module.context == context)
            .map(|(&handle, _)| handle)
            .collect();
        for module in modules {
            self.unload(module);
        }
        self.streams.retain(|_, stream| stream.context != context);
        self.events.retain(|_, event| event.context != context);
        self.drop_orphaned_captures();
        self.forget_library_modules(context);
        self.release_memory_of(context);
        if let Some(context) = self.contexts.get_mut(&context) {
            context.error = None;
            context.legacy = Tail::default();
            context.orphans.clear();
            context.per_thread.clear();
            context.peers = 0;
        }
    }

    fn destroy_context(&mut self, context: Handle) {
        self.empty_context(context);
        self.contexts.remove(&context);
    }
}

/// Finishes a context's work: errors of it no longer matter to anybody.
fn finish(session: &mut Session, context: Handle) {
    let _ = session.wait_for_all(context);
}

fn create(session: &mut Session, out: &Out<Handle>, flags: u32, device: i32) -> Answer {
    out.require()?;
    let driver = session.driver()?;
    let device = driver.device(device)?;
    if flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let context = driver.new_context(device, flags, false);
    session.stack(|stack| stack.push(context));
    out.set(context)
}

fn release_primary(session: &mut Session, device: i32) -> Answer {
    let driver = session.driver()?;
    let ordinal = driver.device(device)? as usize;
    let Some(primary) = driver.devices[ordinal].primary else {
        return Err(Code::INVALID_CONTEXT);
    };
    driver.devices[ordinal].primary_references -= 1;
    if driver.devices[ordinal].primary_references == 0 {
        driver.devices[ordinal].primary = None;
        finish(session, primary);
        session.driver()?.destroy_context(primary);
    }
    Ok(())
}

fn peer_access(session: &mut Session, peer: Handle, on: bool, flags: u32) -> Answer {
    let (driver, context) = session.healthy()?;
    let (own, other) = (
        driver.context(context)?.device,
        driver.context(peer)?.device,
    );
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if own == other {
        return Err(if context == peer {
            Code::INVALID_CONTEXT
        } else {
            Code::PEER_ACCESS_UNSUPPORTED
        });
    }
    let bit = 1u64 << (other & 63);
    let peers = &mut driver.context_mut(context)?.peers;
    if (*peers & bit != 0) == on {
        return Err(if on {
            Code::PEER_ACCESS_ALREADY_ENABLED
        } else {
            Code::PEER_ACCESS_NOT_ENABLED
        });
    }
    *peers ^= bit;
    driver.grant_all();
    Ok(())
}

/// What a limit is until it is set: stack, printf buffer, heap, nesting, pending launches, L2 fetch, persisting L2, and two
/// that only other kinds of contexts have.
const LIMITS: [usize; 9] = [1024, 7 << 20, 8 << 20, 2, 2048, 128, 0, 0, 0];

fn limit(session: &mut Session, which: u32) -> Answer<usize> {
    let (driver, context) = session.healthy()?;
    let default = match which {
        2 => driver.machine.config().heap_bytes as usize,
        _ => *LIMITS.get(which as usize).ok_or(Code::INVALID_VALUE)?,
    };
    Ok(driver.context(context)?.limits[which as usize].unwrap_or(default))
}

driver_api! {
    fn cuCtxCreate_v2(s, context: Out<Handle>, flags: u32, device: i32) { create(s, &context, flags, device) }
    fn cuCtxCreate_v3(s, context: Out<Handle>, _affinity: u64, affinities: i32, flags: u32, device: i32) {
        if affinities != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        create(s, &context, flags, device)
    }
    fn cuCtxDestroy_v2(s, context: Handle) {
        let driver = s.driver()?;
        let what = driver.contexts.get(&context).ok_or(Code::INVALID_CONTEXT)?;
        if what.primary {
            return Err(Code::INVALID_CONTEXT);
        }
        finish(s, context);
        s.driver()?.destroy_context(context);
        s.stack(|stack| {
            if stack.last() == Some(&context) {
                stack.pop();
            }
        });
        Ok(())
    }
    fn cuCtxPushCurrent_v2(s, context: Handle) {
        s.driver()?.context(context)?;
        s.stack(|stack| stack.push(context));
        Ok(())
    }
    fn cuCtxPopCurrent_v2(s, context: Out<Handle>) {
        s.driver()?;
        let top = s.stack(Vec::pop).ok_or(Code::INVALID_CONTEXT)?;
        context.set_if_wanted(top);
        Ok(())
    }
    fn cuCtxSetCurrent(s, context: Handle) {
        let driver = s.driver()?;
        if context != 0 {
            driver.context(context)?;
        }
        s.stack(|stack| {
            stack.pop();
            if context != 0 {
                stack.push(context);
            }
        });
        Ok(())
    }
    fn cuCtxGetCurrent(s, context: Out<Handle>) {
        s.driver()?;
        let top = s.stack(|stack| stack.last().copied());
        context.set(top.unwrap_or(0))
    }
    fn cuCtxGetDevice(s, device: Out<i32>) {
        let (driver, context) = s.current()?;
        device.set(driver.context(context)?.device as i32)
    }
    fn cuCtxGetDevice_v2(s, device: Out<i32>, context: Handle) {
        let context = if context == 0 { s.current()?.1 } else { context };
        device.set(s.driver()?.context(context)?.device as i32)
    }
    fn cuCtxGetFlags(s, flags: Out<u32>) {
        let (driver, context) = s.current()?;
        flags.set(driver.context(context)?.flags)
    }
    fn cuCtxGetId(s, context: Handle, id: Out<u64>) {
        let context = if context == 0 { s.current()?.1 } else { context };
        s.driver()?.context(context)?;
        id.set(context)
    }
    fn cuCtxGetApiVersion(s, context: Handle, version: Out<u32>) {
        if context != 0 {
            s.driver()?.context(context)?;
        } else {
            s.current()?;
        }
        version.set(3020)
    }
    fn cuCtxSynchronize(s) {
        let (driver, context) = s.healthy()?;
        driver.refuse_context(context)?;
        s.wait_for_all(context)
    }
    fn cuCtxSetLimit(s, which: u32, value: usize) {
        limit(s, which)?;
        let (driver, context) = s.healthy()?;
        driver.context_mut(context)?.limits[which as usize] = Some(value);
        Ok(())
    }
    fn cuCtxGetLimit(s, value: Out<usize>, which: u32) { value.set(limit(s, which)?) }
    fn cuCtxGetCacheConfig(s, config: Out<i32>) {
        let (driver, context) = s.healthy()?;
        config.set(driver.context(context)?.cache_config)
    }
    fn cuCtxSetCacheConfig(s, config: i32) {
        let (driver, context) = s.healthy()?;
        if !(0..=3).contains(&config) {
            return Err(Code::INVALID_VALUE);
        }
        driver.context_mut(context)?.cache_config = config;
        Ok(())
    }
    fn cuCtxGetSharedMemConfig(s, config: Out<i32>) {
        let (driver, context) = s.healthy()?;
        config.set(driver.context(context)?.shared_config)
    }
    fn cuCtxSetSharedMemConfig(s, config: i32) {
        let (driver, context) = s.healthy()?;
        if !(0..=2).contains(&config) {
            return Err(Code::INVALID_VALUE);
        }
        driver.context_mut(context)?.shared_config = config;
        Ok(())
    }
    fn cuCtxResetPersistingL2Cache(s) { s.healthy().map(|_| ()) }

    fn cuDevicePrimaryCtxRetain(s, context: Out<Handle>, device: i32) {
        context.require()?;
        let driver = s.driver()?;
        let device = driver.device(device)?;
        let known = &mut driver.devices[device as usize];
        known.primary_references += 1;
        let flags = known.primary_flags;
        let primary = match known.primary {
            Some(primary) => primary,
            None => {
                let primary = driver.new_context(device, flags, true);
                driver.devices[device as usize].primary = Some(primary);
                primary
            }
        };
        context.set(primary)
    }
    fn cuDevicePrimaryCtxRelease_v2(s, device: i32) { release_primary(s, device) }
    fn cuDevicePrimaryCtxSetFlags_v2(s, device: i32, flags: u32) {
        let driver = s.driver()?;
        let device = driver.device(device)?;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = &mut driver.devices[device as usize];
        device.primary_flags = flags;
        if let Some(primary) = device.primary
            && let Some(context) = driver.contexts.get_mut(&primary)
        {
            context.flags = flags;
        }
        Ok(())
    }
    fn cuDevicePrimaryCtxGetState(s, device: i32, flags: Out<u32>, active: Out<i32>) {
        let driver = s.driver()?;
        let device = driver.device(device)?;
        let device = &driver.devices[device as usize];
        flags.set(device.primary_flags)?;
        active.set(device.primary.is_some().into())
    }
    fn cuDevicePrimaryCtxReset_v2(s, device: i32) {
        let driver = s.driver()?;
        let device = driver.device(device)?;
        if let Some(primary) = driver.devices[device as usize].primary {
            finish(s, primary);
            s.driver()?.empty_context(primary);
        }
        Ok(())
    }

    fn cuDeviceCanAccessPeer(s, can: Out<i32>, device: i32, peer: i32) {
        let driver = s.driver()?;
        let (device, peer) = (driver.device(device)?, driver.device(peer)?);
        can.set((device != peer).into())
    }
    fn cuCtxEnablePeerAccess(s, peer: Handle, flags: u32) { peer_access(s, peer, true, flags) }
    fn cuCtxDisablePeerAccess(s, peer: Handle) { peer_access(s, peer, false, 0) }
    fn cuDeviceGetP2PAttribute(s, value: Out<i32>, attribute: u32, source: i32, target: i32) {
        let driver = s.driver()?;
        let (source, target) = (driver.device(source)?, driver.device(target)?);
        if source == target {
            return Err(Code::INVALID_DEVICE);
        }
        match attribute {
            // Performance rank, access, native atomics, array access.
            1 => value.set(0),
            2 | 3 => value.set(1),
            4 => value.set(0),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn cuCtxGetExecAffinity(s, _out: u64, _kind: u32) { s.current()?; Err(Code::NOT_SUPPORTED) }
    fn cuCtxAttach(s, context: Out<Handle>, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (_, current) = s.current()?;
        context.set(current)
    }
    fn cuDeviceGetExecAffinitySupport(s, supported: Out<i32>, _kind: u32, device: i32) {
        s.driver()?.device(device)?;
        supported.set(0)
    }
    fn cuCtxSetFlags(s, flags: u32) {
        let (driver, context) = s.current()?;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver.context_mut(context)?.flags = flags;
        Ok(())
    }
    fn cuProfilerStart(s) { s.current().map(|_| ()) }
    fn cuProfilerStop(s) { s.current().map(|_| ()) }
    fn cuFlushGPUDirectRDMAWrites(s, _target: u32, _scope: u32) { s.healthy().map(|_| ()) }
    fn cuIpcCloseMemHandle(s, _address: u64) { s.healthy()?; Err(Code::INVALID_VALUE) }
    fn cuCtxDetach(s, context: Handle) {
        let (_, current) = s.current()?;
        if context == current { Ok(()) } else { Err(Code::INVALID_CONTEXT) }
    }
    fn cuProfilerInitialize(s, _config: In<u8>, _output: In<u8>, _mode: u32) { s.driver().map(|_| ()) }
}
