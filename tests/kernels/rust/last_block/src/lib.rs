//! Sum of an array in one launch: each block leaves a partial sum, and the block that is done last adds them up.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering};
use support::{block, blocks, thread};

unsafe fn partial_sum(values: *const u32, n: usize) -> u32 {
    let chunk = n / blocks();
    let start = block() * chunk;
    let mut sum = 0;
    for i in start..start + chunk {
        sum += unsafe { *values.add(i) };
    }
    sum
}

/// Counts the block as done; says whether it was the last. Relaxed: whoever comes last knows that the others have
/// counted themselves, not that their partial sums have arrived.
fn is_last_racy(done: &AtomicU32) -> bool {
    done.fetch_add(1, Ordering::Relaxed) + 1 == blocks() as u32
}

/// The same, releasing the own partial sum and acquiring those of the others.
fn is_last_fixed(done: &AtomicU32) -> bool {
    let mut seen = done.load(Ordering::Relaxed);
    loop {
        match done.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return seen + 1 == blocks() as u32,
            Err(now) => seen = now,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn sum_racy(
    values: *const u32,
    n: u32,
    partial: *mut u32,
    done: *mut u32,
    sum: *mut u32,
) {
    if thread() != 0 {
        return;
    }
    unsafe {
        *partial.add(block()) = partial_sum(values, n as usize);
        if is_last_racy(AtomicU32::from_ptr(done)) {
            let mut total = 0;
            for b in 0..blocks() {
                total += *partial.add(b);
            }
            *sum = total;
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn sum_fixed(
    values: *const u32,
    n: u32,
    partial: *mut u32,
    done: *mut u32,
    sum: *mut u32,
) {
    if thread() != 0 {
        return;
    }
    unsafe {
        *partial.add(block()) = partial_sum(values, n as usize);
        if is_last_fixed(AtomicU32::from_ptr(done)) {
            let mut total = 0;
            for b in 0..blocks() {
                total += *partial.add(b);
            }
            *sum = total;
        }
    }
}
