//! A pipeline of two stages whose progress counter is a static of the module: it lies in the module's own memory,
//! not in any buffer of the host's.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering, fence};
use support::{block, sync_threads, thread};

/// Chunks that stage one has finished.
#[unsafe(no_mangle)]
static CHUNKS_DONE: AtomicU32 = AtomicU32::new(0);

unsafe fn stage_one(chunk: *mut u32, number: u32) {
    unsafe { *chunk.add(thread()) = number * 100 + thread() as u32 };
}

/// Block 0 is stage one, block 1 is stage two. The counter is atomic, and orders nothing.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn pipeline_racy(
    chunks: *mut u32,
    out: *mut u32,
    count: u32,
    size: u32,
) {
    for number in 0..count {
        let chunk = unsafe { chunks.add((number * size) as usize) };
        if block() == 0 {
            unsafe { stage_one(chunk, number) };
            sync_threads();
            if thread() == 0 {
                CHUNKS_DONE.store(number + 1, Ordering::Relaxed);
            }
        } else {
            while CHUNKS_DONE.load(Ordering::Relaxed) <= number {}
            unsafe {
                let value = *chunk.add(thread());
                *out.add((number * size) as usize + thread()) = value + 1;
            }
        }
    }
}

/// Fences on both sides of the counter.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn pipeline_fixed(
    chunks: *mut u32,
    out: *mut u32,
    count: u32,
    size: u32,
) {
    for number in 0..count {
        let chunk = unsafe { chunks.add((number * size) as usize) };
        if block() == 0 {
            unsafe { stage_one(chunk, number) };
            sync_threads();
            if thread() == 0 {
                fence(Ordering::Release);
                CHUNKS_DONE.store(number + 1, Ordering::Relaxed);
            }
        } else {
            while CHUNKS_DONE.load(Ordering::Relaxed) <= number {}
            fence(Ordering::Acquire);
            unsafe {
                let value = *chunk.add(thread());
                *out.add((number * size) as usize + thread()) = value + 1;
            }
        }
    }
}
