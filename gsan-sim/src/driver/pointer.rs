//! What the driver knows of a pointer.

use super::api::{In, Out, driver_api};
use super::codes::{Answer, Code};
use super::state::{AllocationKind, Driver};

/// `CU_POINTER_ATTRIBUTE_*`.
mod attribute {
    pub(super) const CONTEXT: u32 = 1;
    pub(super) const MEMORY_TYPE: u32 = 2;
    pub(super) const DEVICE_POINTER: u32 = 3;
    pub(super) const HOST_POINTER: u32 = 4;
    pub(super) const SYNC_MEMOPS: u32 = 6;
    pub(super) const BUFFER_ID: u32 = 7;
    pub(super) const IS_MANAGED: u32 = 8;
    pub(super) const DEVICE_ORDINAL: u32 = 9;
    pub(super) const LEGACY_IPC: u32 = 10;
    pub(super) const RANGE_START: u32 = 11;
    pub(super) const RANGE_SIZE: u32 = 12;
    pub(super) const MAPPED: u32 = 13;
    pub(super) const HANDLE_TYPES: u32 = 14;
    pub(super) const RDMA: u32 = 15;
    pub(super) const ACCESS_FLAGS: u32 = 16;
    pub(super) const POOL: u32 = 17;
}

/// `CU_MEMORYTYPE_*`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// An attribute's value, and the width that it is stored with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Bool(bool),
    Int(u32),
    Long(u64),
}

impl Value {
    fn store(self, to: u64) -> Answer {
        match self {
            Value::Bool(value) => Out::from_address(to).set(u8::from(value)),
            Value::Int(value) => Out::from_address(to).set(value),
            Value::Long(value) => Out::from_address(to).set(value),
        }
    }
}

/// The memory behind a pointer.
struct Memory {
    start: u64,
    len: u64,
    device: u32,
    context: u64,
    id: u64,
    /// None: mapped memory.
    kind: Option<AllocationKind>,
}

fn memory_at(driver: &Driver, pointer: u64) -> Option<Memory> {
    if let Some((start, allocation)) = driver.allocation_at(pointer) {
        return Some(Memory {
            start,
            len: allocation.len,
            device: allocation.device,
            context: allocation.context,
            id: allocation.id,
            kind: Some(allocation.kind),
        });
    }
    if let Some((device, start, len)) = driver.virtual_memory.mapping_at(pointer) {
        return Some(Memory {
            start,
            len,
            device,
            context: 0,
            id: start,
            kind: None,
        });
    }
    // A module's variable.
    let region = driver.machine.memory().region(pointer)?;
    let (start, len, device) = (region.start, region.len, region.device);
    Some(Memory {
        start,
        len,
        device,
        context: 0,
        id: start,
        kind: Some(AllocationKind::Device),
    })
}

/// The value of an attribute that exists.
fn value(memory: &Memory, which: u32, pointer: u64) -> Answer<Value> {
    let on_host = matches!(
        memory.kind,
        Some(AllocationKind::Pinned(_) | AllocationKind::Registered(_))
    );
    let managed = memory.kind == Some(AllocationKind::Managed);
    Ok(match which {
        attribute::CONTEXT => Value::Long(memory.context),
        attribute::MEMORY_TYPE => Value::Int(if on_host { HOST } else { DEVICE }),
        attribute::DEVICE_POINTER => Value::Long(pointer),
        attribute::HOST_POINTER if on_host || managed => Value::Long(pointer),
        attribute::HOST_POINTER => return Err(Code::INVALID_VALUE),
        attribute::SYNC_MEMOPS => Value::Bool(false),
        attribute::BUFFER_ID => Value::Long(memory.id),
        attribute::IS_MANAGED => Value::Bool(managed),
        attribute::DEVICE_ORDINAL => Value::Int(memory.device),
        attribute::LEGACY_IPC | attribute::RDMA => Value::Bool(false),
        attribute::RANGE_START => Value::Long(memory.start),
        attribute::RANGE_SIZE => Value::Long(memory.len),
        attribute::MAPPED => Value::Bool(true),
        attribute::HANDLE_TYPES => Value::Long(memory.kind.is_none().into()),
        attribute::ACCESS_FLAGS => Value::Int(3),
        attribute::POOL => Value::Long(0),
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// What a pointer that is nobody's has.
fn nothing(which: u32) -> Answer<Value> {
    Ok(match which {
        attribute::MEMORY_TYPE | attribute::ACCESS_FLAGS => Value::Int(0),
        // -2: no device.
        attribute::DEVICE_ORDINAL => Value::Int(-2i32 as u32),
        attribute::SYNC_MEMOPS
        | attribute::IS_MANAGED
        | attribute::LEGACY_IPC
        | attribute::MAPPED
        | attribute::RDMA => Value::Bool(false),
        attribute::CONTEXT..=attribute::POOL => Value::Long(0),
        _ => return Err(Code::INVALID_VALUE),
    })
}

driver_api! {
    fn cuPointerGetAttribute(s, data: u64, which: u32, pointer: u64) {
        let (driver, _) = s.healthy()?;
        let memory = memory_at(driver, pointer).ok_or(Code::INVALID_VALUE)?;
        value(&memory, which, pointer)?.store(data)
    }
    fn cuPointerGetAttributes(s, count: u32, which: In<u32>, data: In<u64>, pointer: u64) {
        let (driver, _) = s.healthy()?;
        let memory = memory_at(driver, pointer);
        for index in 0..count as usize {
            let (which, to) = (which.at(index)?, data.at(index)?);
            let value = match &memory {
                Some(memory) => value(memory, which, pointer).or_else(|_| nothing(which)),
                None => nothing(which),
            };
            value?.store(to)?;
        }
        Ok(())
    }
    fn cuPointerSetAttribute(s, _value: u64, which: u32, pointer: u64) {
        let (driver, _) = s.healthy()?;
        match memory_at(driver, pointer) {
            Some(_) if which == attribute::SYNC_MEMOPS => Ok(()),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}
