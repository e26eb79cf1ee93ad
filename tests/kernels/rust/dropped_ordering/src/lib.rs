//! A ticket chain whose source is right and whose PTX is not: rustc 1.96 (LLVM 22) drops the ordering of
//! `fetch_*` and `swap` on nvptx64. `fetch_add(1, AcqRel)` comes out as `atom.add`, which is relaxed.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering, fence};
use support::{block, blocks, thread};

/// Every block writes its result, takes a ticket, and the holder of the last ticket finds the largest.
/// By Rust's rules there is no race here: the tickets' read-modify-writes release and acquire.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn maximum_racy(
    values: *const u32,
    results: *mut u32,
    tickets: *mut u32,
    best: *mut u32,
) {
    if thread() != 0 {
        return;
    }
    unsafe {
        let tickets = AtomicU32::from_ptr(tickets);
        *results.add(block()) = *values.add(block()) ^ 0x5a;
        let ticket = tickets.fetch_add(1, Ordering::AcqRel);
        if ticket as usize == blocks() - 1 {
            let mut largest = 0;
            for b in 0..blocks() {
                let result = *results.add(b);
                largest = if result > largest { result } else { largest };
            }
            *best = largest;
        }
    }
}

/// Fences do come out as written, and order the same accesses around a relaxed ticket.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn maximum_fixed(
    values: *const u32,
    results: *mut u32,
    tickets: *mut u32,
    best: *mut u32,
) {
    if thread() != 0 {
        return;
    }
    unsafe {
        let tickets = AtomicU32::from_ptr(tickets);
        *results.add(block()) = *values.add(block()) ^ 0x5a;
        fence(Ordering::Release);
        let ticket = tickets.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Acquire);
        if ticket as usize == blocks() - 1 {
            let mut largest = 0;
            for b in 0..blocks() {
                let result = *results.add(b);
                largest = if result > largest { result } else { largest };
            }
            *best = largest;
        }
    }
}
