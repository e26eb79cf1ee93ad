//! Histogram of the values' remainders: each thread owns a bin, counts it in the block's part of the values, and adds
//! what it has to the grid's bins.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering};
use support::{block, block_size, blocks, thread};

unsafe fn count_bin(values: *const u32, n: usize, bin: u32) -> u32 {
    let chunk = n / blocks();
    let mut found = 0;
    for i in block() * chunk..(block() + 1) * chunk {
        let value = unsafe { *values.add(i) };
        if value % block_size() as u32 == bin {
            found += 1;
        }
    }
    found
}

/// Within a block no two threads share a bin, so a plain addition looks right; but all blocks share all bins.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn histogram_racy(values: *const u32, n: u32, bins: *mut u32) {
    unsafe {
        let found = count_bin(values, n as usize, thread() as u32);
        *bins.add(thread()) += found;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn histogram_fixed(values: *const u32, n: u32, bins: *mut u32) {
    unsafe {
        let found = count_bin(values, n as usize, thread() as u32);
        AtomicU32::from_ptr(bins.add(thread())).fetch_add(found, Ordering::Relaxed);
    }
}
