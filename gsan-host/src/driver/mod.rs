//! The driver API as owned objects: each keeps its device's context alive and gives back what it holds when it is
//! dropped, so objects may be dropped in any order.
//!
//! Errors of a drop are ignored: after a trap every call of the context fails, and there is nothing left to give back.

mod device;
mod memory;
mod module;
mod multicast;
mod stream;

pub(crate) use device::{Device, device_count};
pub(crate) use memory::{
    DeviceMemory, ManagedMemory, Physical, PinnedMemory, VirtualRange, copy_async, copy_from_host,
    copy_to_host, fill, fill_async,
};
pub(crate) use module::{Function, Module};
pub(crate) use multicast::MulticastMemory;
pub(crate) use stream::{Event, Stream};

use crate::error::{Error, Result};
use cust::sys;
use std::ffi::{CStr, c_char};

/// `CUDA_SUCCESS`.
const SUCCESS: u32 = 0;
pub(crate) const OUT_OF_MEMORY: u32 = 2;

/// Turns a result into ours. The enum of cust_raw may lack a newer driver's code, so only its number is looked at.
pub(crate) fn check(call: &'static str, result: sys::CUresult) -> Result<()> {
    check_code(call, result as u32)
}

/// The same for a bare number.
pub(crate) fn check_code(call: &'static str, code: u32) -> Result<()> {
    if code == SUCCESS {
        return Ok(());
    }
    Err(failure(call, code))
}

/// The error of a code that is none of success.
fn failure(call: &'static str, code: u32) -> Error {
    Error::Driver {
        call,
        code,
        name: error_name(code),
        description: error_description(code),
        detail: cuda_lazy::diagnosis().map(|d| d.message),
    }
}

/// The driver's number in an error of [`check`].
pub(crate) fn code_of(error: &Error) -> Option<u32> {
    match error {
        Error::Driver { code, .. } => Some(*code),
        _ => None,
    }
}

/// The lookups as they are called here: with a number, since the code may not be one of cust_raw's enum.
type Lookup = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;

/// `CUDA_ERROR_…`
pub(crate) fn error_name(code: u32) -> String {
    // SAFETY: the same C function with its enum and its result seen as the unsigned numbers that they are in C.
    let lookup = unsafe {
        std::mem::transmute::<
            unsafe extern "C" fn(sys::CUresult, *mut *const c_char) -> sys::CUresult,
            Lookup,
        >(sys::cuGetErrorName)
    };
    look_up(lookup, code).unwrap_or_else(|| format!("error {code}"))
}

fn error_description(code: u32) -> String {
    // SAFETY: as above.
    let lookup = unsafe {
        std::mem::transmute::<
            unsafe extern "C" fn(sys::CUresult, *mut *const c_char) -> sys::CUresult,
            Lookup,
        >(sys::cuGetErrorString)
    };
    look_up(lookup, code).unwrap_or_else(|| "an error that the driver has no words for".to_string())
}

fn look_up(lookup: Lookup, code: u32) -> Option<String> {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: `text` is a valid place for the answer.
    let result = unsafe { lookup(code, &mut text) };
    if result != SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: on success the driver answers a NUL-terminated string that lives as long as the process.
    Some(
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    )
}
