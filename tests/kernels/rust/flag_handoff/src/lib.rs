//! Block 0 fills a buffer and raises a flag; block 1 waits for the flag and sums the buffer up.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering};
use support::{block, block_size, sync_threads, thread};

unsafe fn produce(data: *mut u32, flag: &AtomicU32) {
    unsafe {
        *data.add(thread()) = thread() as u32 + 1;
    }
    sync_threads();
    if thread() == 0 {
        flag.store(1, Ordering::Release);
    }
}

/// The consumer sees the flag, but nothing says that it sees the data: its load of the flag is relaxed.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn handoff_racy(data: *mut u32, flag: *mut u32, sum: *mut u32) {
    let flag = unsafe { AtomicU32::from_ptr(flag) };
    if block() == 0 {
        unsafe { produce(data, flag) };
    } else if thread() == 0 {
        while flag.load(Ordering::Relaxed) == 0 {}
        let mut total = 0;
        for i in 0..block_size() {
            total += unsafe { *data.add(i) };
        }
        unsafe { *sum = total };
    }
}

/// The load that sees the flag acquires what the producer released.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn handoff_fixed(data: *mut u32, flag: *mut u32, sum: *mut u32) {
    let flag = unsafe { AtomicU32::from_ptr(flag) };
    if block() == 0 {
        unsafe { produce(data, flag) };
    } else if thread() == 0 {
        while flag.load(Ordering::Acquire) == 0 {}
        let mut total = 0;
        for i in 0..block_size() {
            total += unsafe { *data.add(i) };
        }
        unsafe { *sum = total };
    }
}
