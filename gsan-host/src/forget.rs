//! Forgetting for code that knows no session: caching allocators, in C too (`include/gsan.h`).
//!
//! An allocator that keeps freed blocks and hands them out again would otherwise have the new user's accesses compared with the
//! old one's. All mapped memory of all sessions is known here, with its cells, so that the call needs nothing but an address.

use crate::driver::Device;
use crate::session::edges::{Edge, without};
use cust::sys;
use gsan_device::layout::WORD;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The memory starts clean.
pub const FORGOTTEN: c_int = 0;
/// It is not in a buffer that gsan checks: there is nothing to forget.
pub const NOT_CHECKED: c_int = 1;
/// The driver has refused, as it does after a fatal error.
pub const FAILED: c_int = 2;

/// Mapped memory, by its first byte.
static MAPPED: Mutex<BTreeMap<u64, Mapped>> = Mutex::new(BTreeMap::new());

struct Mapped {
    bytes: u64,
    /// The cell of its first word.
    cells: u64,
    /// Bytes of shadow per byte.
    factor: u64,
    /// The driver's handle of a context that may write the cells.
    context: usize,
}

fn mapped() -> MutexGuard<'static, BTreeMap<u64, Mapped>> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this lives, its memory is known here; it is gone before the memory is unmapped.
pub(crate) struct Known {
    address: u64,
}

impl Known {
    /// Makes memory known whose cells start at `cells`.
    pub(crate) fn new(address: u64, bytes: u64, cells: u64, factor: u64, device: &Device) -> Known {
        // Without a current context nothing can be forgotten, and the driver says so then.
        let context = device.raw_context().unwrap_or(0);
        let known = Mapped {
            bytes,
            cells,
            factor,
            context,
        };
        mapped().insert(address, known);
        Known { address }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        mapped().remove(&self.address);
    }
}

/// Forgets what was done with memory, so that it starts clean, in the order of a stream of the driver's (null is the legacy
/// default stream): what comes later in that stream, or after it, is not compared with what came before. For allocators that hand
/// out memory again which they have not given back. Where there is a session at hand, [`crate::Session::forget`] does the same.
///
/// Returns [`FORGOTTEN`], [`NOT_CHECKED`] or [`FAILED`]. The caller's current context stays.
///
/// # Safety
/// `stream` is null or a stream that lives, as for any call of the driver's.
// SAFETY: no other function of this program has the name; it is what gsan.h declares.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsan_forget(
    address: *mut c_void,
    bytes: usize,
    stream: *mut c_void,
) -> c_int {
    let (address, bytes) = (address as u64, bytes as u64);
    // Held until the work is in the stream: the memory stays mapped until then.
    let mapped = mapped();
    let Some((&start, known)) = mapped.range(..=address).next_back() else {
        return NOT_CHECKED;
    };
    let offset = address - start;
    if offset >= known.bytes || bytes > known.bytes - offset {
        return NOT_CHECKED;
    }
    if bytes == 0 || without(Edge::Forget) {
        return FORGOTTEN;
    }
    let first = offset - offset % WORD;
    let end = (offset + bytes).next_multiple_of(WORD);
    let cells = known.cells + first * known.factor;
    let len = (end - first) * known.factor;
    // SAFETY: the context is retained by the session that mapped the memory; `Known` is dropped before it lets go of it.
    let pushed = unsafe { sys::cuCtxPushCurrent_v2(known.context as sys::CUcontext) };
    if pushed != sys::CUresult::CUDA_SUCCESS {
        return FAILED;
    }
    // SAFETY: mapped shadow, as the lock is held; the caller vouches for the stream.
    let cleared = unsafe { sys::cuMemsetD8Async(cells, 0, len as usize, stream.cast()) };
    let mut popped = std::ptr::null_mut();
    // SAFETY: pops what was pushed; the result is a local.
    let _ = unsafe { sys::cuCtxPopCurrent_v2(&mut popped) };
    if cleared == sys::CUresult::CUDA_SUCCESS {
        FORGOTTEN
    } else {
        FAILED
    }
}
