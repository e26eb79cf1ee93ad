//! A ticket lock around a small record of two words, with the detector linked in by hand.

#![no_std]
#![feature(abi_ptx)]

use gsan_device::link::{
    Launch, Order, Scope, atomic_add, atomic_load, atomic_store, enter, load, store,
};
use support::{block, thread};

/// Takes a ticket and waits until it is called.
unsafe fn lock(next_ticket: *mut u32, now_serving: *mut u32) -> u32 {
    unsafe {
        let ticket = atomic_add(next_ticket, 1, Order::Relaxed, Scope::Gpu);
        while atomic_load(now_serving, Order::Acquire, Scope::Gpu) != ticket {}
        ticket
    }
}

/// Sum and number of all samples: the two have to fit together.
unsafe fn add_sample(record: *mut u32, sample: u32) {
    unsafe {
        let sum = load(record);
        store(record, sum + sample);
        let count = load(record.add(1));
        store(record.add(1), count + 1);
    }
}

/// The next ticket is called by a relaxed store: its holder need not see the record.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn samples_racy(
    next_ticket: *mut u32,
    now_serving: *mut u32,
    record: *mut u32,
    gsan: Launch,
) {
    let _block = unsafe { enter(gsan) };
    if thread() == 0 {
        unsafe {
            let ticket = lock(next_ticket, now_serving);
            add_sample(record, block() as u32 * 10);
            atomic_store(now_serving, ticket + 1, Order::Relaxed, Scope::Gpu);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn samples_fixed(
    next_ticket: *mut u32,
    now_serving: *mut u32,
    record: *mut u32,
    gsan: Launch,
) {
    let _block = unsafe { enter(gsan) };
    if thread() == 0 {
        unsafe {
            let ticket = lock(next_ticket, now_serving);
            add_sample(record, block() as u32 * 10);
            atomic_store(now_serving, ticket + 1, Order::Release, Scope::Gpu);
        }
    }
}
