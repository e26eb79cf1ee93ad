//! One step of heat flow along a rod: each cell becomes the mean of itself and its neighbours.

#![no_std]
#![feature(abi_ptx)]

use support::{global_thread, sync_threads};

/// In place. The barrier keeps a block's threads from overwriting cells that others of the block still need; the
/// cells at the block's edges belong to the neighbours.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn heat_racy(rod: *mut u32, n: u32) {
    let i = global_thread();
    let inner = i > 0 && i + 1 < n as usize;
    unsafe {
        let mut mean = 0;
        if inner {
            mean = (*rod.add(i - 1) + *rod.add(i) + *rod.add(i + 1)) / 3;
        }
        sync_threads();
        if inner {
            *rod.add(i) = mean;
        }
    }
}

/// From one buffer into another.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn heat_fixed(old: *const u32, new: *mut u32, n: u32) {
    let i = global_thread();
    unsafe {
        if i > 0 && i + 1 < n as usize {
            *new.add(i) = (*old.add(i - 1) + *old.add(i) + *old.add(i + 1)) / 3;
        } else if i < n as usize {
            *new.add(i) = *old.add(i);
        }
    }
}
