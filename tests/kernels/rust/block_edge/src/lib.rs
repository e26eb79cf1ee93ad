//! Differences of neighbours of a smoothed signal: `out[i] = smooth[i + 1] - smooth[i]`.

#![no_std]
#![feature(abi_ptx)]

use support::{global_thread, sync_threads};

/// Both steps in one kernel, with a barrier between them. The barrier is the block's: the last thread of a block
/// reads what the first thread of the next block writes.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn differences_racy(
    signal: *const u32,
    smooth: *mut u32,
    out: *mut u32,
    n: u32,
) {
    let n = n as usize;
    let i = global_thread();
    unsafe {
        if i < n {
            *smooth.add(i) = *signal.add(i) * 2;
        }
        sync_threads();
        if i + 1 < n {
            let here = *smooth.add(i);
            let next = *smooth.add(i + 1);
            *out.add(i) = next - here;
        }
    }
}

/// The first step, as a kernel of its own.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn smooth_fixed(signal: *const u32, smooth: *mut u32, n: u32) {
    let i = global_thread();
    unsafe {
        if i < n as usize {
            *smooth.add(i) = *signal.add(i) * 2;
        }
    }
}

/// The second step: the launch boundary orders it after the first.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn differences_fixed(smooth: *const u32, out: *mut u32, n: u32) {
    let i = global_thread();
    unsafe {
        if i + 1 < n as usize {
            let here = *smooth.add(i);
            let next = *smooth.add(i + 1);
            *out.add(i) = next - here;
        }
    }
}
