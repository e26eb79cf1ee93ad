//! Reverses an array in two phases, with a home-made barrier of the whole grid between them. All blocks must fit
//! on the device at once.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering, fence};
use support::{blocks, global_thread, sync_threads, thread};

/// Everybody waits, but nobody's writes are ordered by it: all operations are relaxed.
fn grid_barrier_racy(arrived: &AtomicU32) {
    sync_threads();
    if thread() == 0 {
        arrived.fetch_add(1, Ordering::Relaxed);
        while arrived.load(Ordering::Relaxed) < blocks() as u32 {}
    }
    sync_threads();
}

/// Each block releases what it has written before it arrives, and acquires what the others wrote once all are there.
fn grid_barrier_fixed(arrived: &AtomicU32) {
    sync_threads();
    if thread() == 0 {
        fence(Ordering::Release);
        arrived.fetch_add(1, Ordering::Relaxed);
        while arrived.load(Ordering::Relaxed) < blocks() as u32 {}
        fence(Ordering::Acquire);
    }
    sync_threads();
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn reverse_racy(
    squares: *mut u32,
    out: *mut u32,
    n: u32,
    arrived: *mut u32,
) {
    let i = global_thread();
    unsafe {
        *squares.add(i) = (i * i) as u32;
        grid_barrier_racy(AtomicU32::from_ptr(arrived));
        let mirrored = *squares.add(n as usize - 1 - i);
        *out.add(i) = mirrored;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn reverse_fixed(
    squares: *mut u32,
    out: *mut u32,
    n: u32,
    arrived: *mut u32,
) {
    let i = global_thread();
    unsafe {
        *squares.add(i) = (i * i) as u32;
        grid_barrier_fixed(AtomicU32::from_ptr(arrived));
        let mirrored = *squares.add(n as usize - 1 - i);
        *out.add(i) = mirrored;
    }
}
