//! Multicast objects: memory of several devices, bound together, to be mapped at one address.

use super::api::{In, Out, driver_api};
use super::codes::{Answer, Code};
use super::state::{Driver, Handle};
use super::vmm::POSIX_FD;
use crate::machine::memory::{Binding, GRANULARITY};

/// `CUmulticastObjectProp`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Properties {
    devices: u32,
    size: usize,
    handle_types: u64,
    flags: u64,
}

const _: () = assert!(size_of::<Properties>() == 32);

/// A multicast object.
pub(super) struct Multicast {
    /// How many devices it was made for.
    team: u32,
    /// Those that were added.
    devices: Vec<u32>,
    pub(super) size: u64,
    /// What is bound, and the memory's handle.
    bound: Vec<(Handle, Binding)>,
    /// Handles that were not released yet.
    pub(super) references: u32,
    pub(super) mappings: u32,
}

impl Multicast {
    /// Refuses what needs all of its devices.
    pub(super) fn complete(&self) -> Answer {
        if self.devices.len() == self.team as usize {
            Ok(())
        } else {
            Err(Code::ILLEGAL_STATE)
        }
    }

    pub(super) fn bindings(&self) -> Vec<Binding> {
        self.bound.iter().map(|(_, bound)| bound.clone()).collect()
    }
}

impl Driver {
    pub(super) fn multicast(&mut self, handle: Handle) -> Answer<&mut Multicast> {
        match self.virtual_memory.multicasts.get_mut(&handle) {
            Some(multicast) if multicast.references > 0 => Ok(multicast),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// It goes when neither handle nor mapping is left, and lets go of the memory.
    pub(super) fn drop_multicast(&mut self, handle: Handle) {
        let objects = &mut self.virtual_memory.multicasts;
        let used = |m: &Multicast| m.references > 0 || m.mappings > 0;
        if objects.get(&handle).is_none_or(used) {
            return;
        }
        if let Some(gone) = objects.remove(&handle) {
            gone.bound
                .iter()
                .for_each(|(memory, _)| self.unbound(*memory));
        }
    }

    fn unbound(&mut self, memory: Handle) {
        if let Some(physical) = self.virtual_memory.physical.get_mut(&memory) {
            physical.mappings -= 1;
        }
        self.drop_physical(memory);
    }

    /// Binds `len` bytes of memory from `offset` on to an object from `at` on.
    fn bind(&mut self, object: Handle, at: u64, memory: Handle, offset: u64, len: u64) -> Answer {
        let granules = [at, offset, len];
        if len == 0 || !granules.iter().all(|n| n.is_multiple_of(GRANULARITY)) {
            return Err(Code::INVALID_VALUE);
        }
        let physical = self.virtual_memory.physical.get_mut(&memory);
        let physical = physical.ok_or(Code::INVALID_VALUE)?;
        let (device, backing, whole) = (physical.device, physical.backing.clone(), physical.len);
        let within = |of: u64, from: u64| from.checked_add(len).is_some_and(|end| end <= of);
        let multicast = self.multicast(object)?;
        multicast.complete()?;
        let taken = multicast.bound.iter().any(|(_, other)| {
            other.device == device && at < other.at + other.len && other.at < at + len
        });
        if !multicast.devices.contains(&device)
            || !within(multicast.size, at)
            || !within(whole, offset)
            || taken
        {
            return Err(Code::INVALID_VALUE);
        }
        let binding = Binding {
            device,
            at,
            len,
            backing,
            offset,
        };
        multicast.bound.push((memory, binding));
        if let Some(physical) = self.virtual_memory.physical.get_mut(&memory) {
            physical.mappings += 1;
        }
        self.show(object)
    }

    /// Mappings of the object show what is bound now.
    fn show(&mut self, object: Handle) -> Answer {
        let bindings = self.multicast(object)?.bindings();
        for place in self.virtual_memory.places_of(object) {
            self.machine.memory_mut().bind_multicast(place, &bindings);
        }
        Ok(())
    }
}

/// How many devices an object is for, and its size.
fn check(driver: &Driver, properties: Properties) -> Answer<(u32, u64)> {
    let size = properties.size as u64;
    if properties.devices == 0
        || properties.devices > driver.machine.config().devices
        || size == 0
        || properties.flags != 0
    {
        return Err(Code::INVALID_VALUE);
    }
    if properties.handle_types & !u64::from(POSIX_FD) != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok((properties.devices, size))
}

driver_api! {
    fn cuMulticastCreate(s, handle: Out<Handle>, properties: In<Properties>) {
        handle.require()?;
        let driver = s.driver()?;
        let (team, size) = check(driver, properties.get()?)?;
        if !size.is_multiple_of(GRANULARITY) {
            return Err(Code::INVALID_VALUE);
        }
        let new = driver.new_handle();
        let multicast = Multicast {
            team, devices: Vec::new(), size, bound: Vec::new(), references: 1, mappings: 0,
        };
        driver.virtual_memory.multicasts.insert(new, multicast);
        handle.set(new)
    }
    fn cuMulticastAddDevice(s, handle: Handle, device: i32) {
        let driver = s.driver()?;
        let device = driver.device(device)?;
        let multicast = driver.multicast(handle)?;
        if multicast.complete().is_ok() || multicast.devices.contains(&device) {
            return Err(Code::INVALID_VALUE);
        }
        multicast.devices.push(device);
        Ok(())
    }
    fn cuMulticastBindMem(s, object: Handle, at: usize, memory: Handle, offset: usize, len: usize, flags: u64) {
        let driver = s.driver()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver.physical(memory)?;
        driver.bind(object, at as u64, memory, offset as u64, len as u64)
    }
    fn cuMulticastBindAddr(s, object: Handle, at: usize, address: u64, len: usize, flags: u64) {
        let driver = s.driver()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let found = driver.virtual_memory.memory_at(address, len as u64);
        let (memory, offset) = found.ok_or(Code::INVALID_VALUE)?;
        // Its handle may be released by now; the mapping keeps it.
        driver.bind(object, at as u64, memory, offset, len as u64)
    }
    fn cuMulticastUnbind(s, object: Handle, device: i32, at: usize, len: usize) {
        let driver = s.driver()?;
        let device = driver.device(device)?;
        let multicast = driver.multicast(object)?;
        let same = |(_, bound): &(Handle, Binding)| {
            (bound.device, bound.at, bound.len) == (device, at as u64, len as u64)
        };
        let place = multicast.bound.iter().position(same).ok_or(Code::INVALID_VALUE)?;
        let (memory, _) = multicast.bound.remove(place);
        driver.show(object)?;
        driver.unbound(memory);
        Ok(())
    }
    fn cuMulticastGetGranularity(s, granularity: Out<usize>, properties: In<Properties>, option: u32) {
        let driver = s.driver()?;
        check(driver, properties.get()?)?;
        if option > 1 {
            return Err(Code::INVALID_VALUE);
        }
        granularity.set(GRANULARITY as usize)
    }
}
