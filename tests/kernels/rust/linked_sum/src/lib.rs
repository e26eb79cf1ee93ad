//! A sum by the last block, with the detector linked in by hand. Its atomics keep the ordering that `core`'s
//! `fetch_add` loses on this target (see `dropped_ordering`).

#![no_std]
#![feature(abi_ptx)]

use gsan_device::link::{Launch, Order, Scope, atomic_add, enter, load, store};
use support::{block, blocks, thread};

unsafe fn sum_of_own_part(values: *const u32, n: usize, partial: *mut u32) {
    let chunk = n / blocks();
    let mut sum = 0;
    for i in block() * chunk..(block() + 1) * chunk {
        sum += unsafe { load(values.add(i)) };
    }
    unsafe { store(partial.add(block()), sum) };
}

unsafe fn sum_of_all_parts(partial: *const u32) -> u32 {
    let mut total = 0;
    for b in 0..blocks() {
        total += unsafe { load(partial.add(b)) };
    }
    total
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn linked_sum_racy(
    values: *const u32,
    n: u32,
    partial: *mut u32,
    done: *mut u32,
    sum: *mut u32,
    gsan: Launch,
) {
    let _block = unsafe { enter(gsan) };
    if thread() != 0 {
        return;
    }
    unsafe {
        sum_of_own_part(values, n as usize, partial);
        let before = atomic_add(done, 1, Order::Relaxed, Scope::Gpu);
        if before as usize == blocks() - 1 {
            store(sum, sum_of_all_parts(partial));
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn linked_sum_fixed(
    values: *const u32,
    n: u32,
    partial: *mut u32,
    done: *mut u32,
    sum: *mut u32,
    gsan: Launch,
) {
    let _block = unsafe { enter(gsan) };
    if thread() != 0 {
        return;
    }
    unsafe {
        sum_of_own_part(values, n as usize, partial);
        let before = atomic_add(done, 1, Order::AcqRel, Scope::Gpu);
        if before as usize == blocks() - 1 {
            store(sum, sum_of_all_parts(partial));
        }
    }
}
