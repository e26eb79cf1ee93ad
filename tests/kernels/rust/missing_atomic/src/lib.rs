//! Counting matches: every thread that finds one adds it to a counter of the whole grid.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering};
use support::global_thread;

/// The counter is read and written in two steps.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn count_matches_racy(
    values: *const u32,
    n: u32,
    wanted: u32,
    count: *mut u32,
) {
    let i = global_thread();
    if i >= n as usize {
        return;
    }
    unsafe {
        if *values.add(i) == wanted {
            *count += 1;
        }
    }
}

/// The counter is atomic. Nothing else depends on it, so relaxed ordering is enough.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn count_matches_fixed(
    values: *const u32,
    n: u32,
    wanted: u32,
    count: *mut u32,
) {
    let i = global_thread();
    if i >= n as usize {
        return;
    }
    unsafe {
        if *values.add(i) == wanted {
            AtomicU32::from_ptr(count).fetch_add(1, Ordering::Relaxed);
        }
    }
}
