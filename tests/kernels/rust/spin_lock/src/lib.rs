//! A bank account behind a spin lock, and one customer per block.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering};
use support::{block, thread};

pub struct Lock(AtomicU32);

impl Lock {
    fn acquire(&self) {
        while self
            .0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {}
    }

    /// Opens the lock, but does not publish what was written under it.
    fn open_racy(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn open_fixed(&self) {
        self.0.store(0, Ordering::Release);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn deposit_racy(lock: *const Lock, balance: *mut u32) {
    if thread() == 0 {
        let lock = unsafe { &*lock };
        lock.acquire();
        unsafe { *balance += block() as u32 + 1 };
        lock.open_racy();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn deposit_fixed(lock: *const Lock, balance: *mut u32) {
    if thread() == 0 {
        let lock = unsafe { &*lock };
        lock.acquire();
        unsafe { *balance += block() as u32 + 1 };
        lock.open_fixed();
    }
}
