//! Devices and their primary contexts.

use super::{check, check_code};
use crate::error::{Error, Result};
use cust::context::{Context, CurrentContext};
use cust::sys::{self, CUdevice_attribute as Attribute};
use std::ffi::CStr;
use std::rc::Rc;

/// An open device: its primary context is retained until the last object made from it is gone.
pub(crate) struct Device {
    context: Context,
    raw: sys::CUdevice,
    /// The driver's number.
    pub(crate) ordinal: u32,
    /// The driver's name.
    pub(crate) name: String,
    /// Multiprocessors.
    pub(crate) sms: u32,
}

/// How many devices the driver has; starts it on the first call.
pub(crate) fn device_count() -> Result<u32> {
    if let Err(e) = cust::init(cust::CudaFlags::empty()) {
        check_code("cuInit", e as u32)?;
    }
    let mut count = 0;
    // SAFETY: `count` is a valid place for the answer.
    check("cuDeviceGetCount", unsafe {
        sys::cuDeviceGetCount(&mut count)
    })?;
    Ok(u32::try_from(count).unwrap_or(0))
}

impl Device {
    /// Opens device `ordinal` and makes its context current.
    pub(crate) fn open(ordinal: u32) -> Result<Rc<Device>> {
        let count = device_count()?;
        if ordinal >= count {
            return Err(Error::NoSuchDevice {
                wanted: ordinal,
                count,
            });
        }
        let device = match cust::device::Device::get_device(ordinal) {
            Ok(device) => device,
            Err(e) => {
                check_code("cuDeviceGet", e as u32)?;
                return Err(Error::NoSuchDevice {
                    wanted: ordinal,
                    count,
                });
            }
        };
        let context = match Context::new(device) {
            Ok(context) => context,
            Err(e) => {
                check_code("cuDevicePrimaryCtxRetain", e as u32)?;
                return Err(Error::NoSuchDevice {
                    wanted: ordinal,
                    count,
                });
            }
        };
        let raw = device.as_raw();
        let mut name = [0u8; 256];
        // SAFETY: the buffer has the length that is passed.
        check("cuDeviceGetName", unsafe {
            sys::cuDeviceGetName(name.as_mut_ptr().cast(), 255, raw)
        })?;
        let name = CStr::from_bytes_until_nul(&name)
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut device = Device {
            context,
            raw,
            ordinal,
            name,
            sms: 0,
        };
        device.sms = device
            .number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?
            .max(1);
        Ok(Rc::new(device))
    }

    /// Makes room for the hooks on each thread's stack. The driver knows by itself what a kernel needs, but not where kernels
    /// recurse, call through pointers or allocate on the stack: there the limit holds, by default 1 KiB, and hooks need as much.
    pub(crate) fn room_for_hooks(&self) -> Result<()> {
        const WITH_HOOKS: usize = 3 << 10;
        self.enter()?;
        let which = sys::CUlimit::CU_LIMIT_STACK_SIZE;
        let mut now = 0;
        // SAFETY: the context is current, and `now` is a valid place for the answer.
        check("cuCtxGetLimit", unsafe {
            sys::cuCtxGetLimit(&mut now, which)
        })?;
        if now < WITH_HOOKS {
            // SAFETY: the context is current.
            check("cuCtxSetLimit", unsafe {
                sys::cuCtxSetLimit(which, WITH_HOOKS)
            })?;
        }
        Ok(())
    }

    /// Makes the context current in this thread.
    pub(crate) fn enter(&self) -> Result<()> {
        match CurrentContext::set_current(&self.context) {
            Ok(()) => Ok(()),
            Err(e) => check_code("cuCtxSetCurrent", e as u32),
        }
    }

    /// The driver's handle of the context, as a number.
    pub(crate) fn raw_context(&self) -> Result<usize> {
        self.enter()?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the result is a local.
        check("cuCtxGetCurrent", unsafe {
            sys::cuCtxGetCurrent(&mut context)
        })?;
        Ok(context as usize)
    }

    /// An attribute as a count; negative ones become 0.
    pub(crate) fn number(&self, attribute: Attribute) -> Result<u32> {
        let mut value = 0;
        // SAFETY: `value` is a valid place for the answer.
        check("cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(&mut value, attribute, self.raw)
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Free and total memory in bytes.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are valid places for the answer.
        check("cuMemGetInfo", unsafe {
            sys::cuMemGetInfo_v2(&mut free, &mut total)
        })?;
        Ok((free as u64, total as u64))
    }

    /// Lets this device's kernels and copies use the other's ordinary memory. Not an error if they already can.
    pub(crate) fn enable_peer(&self, other: &Device) -> Result<()> {
        const ALREADY_ENABLED: u32 = 704;
        self.enter()?;
        // SAFETY: the other's context is retained by `other`.
        let code = unsafe { sys::cuCtxEnablePeerAccess(other.context.as_raw(), 0) } as u32;
        if code == ALREADY_ENABLED {
            Ok(())
        } else {
            check_code("cuCtxEnablePeerAccess", code)
        }
    }

    /// Waits for everything on the device.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: no pointers.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }
}
