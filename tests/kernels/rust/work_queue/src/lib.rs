//! A queue with one producing block and several consuming ones: the producer appends jobs and moves `tail` on;
//! consumers take tickets at `head` and wait until their ticket is below `tail`.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering};
use support::{block, thread};

#[repr(C)]
pub struct Queue {
    head: AtomicU32,
    tail: AtomicU32,
}

/// Takes jobs until none is left to come, and writes each job's result.
unsafe fn consume(queue: &Queue, jobs: *const u32, total: u32, results: *mut u32) {
    loop {
        let ticket = queue.head.fetch_add(1, Ordering::Relaxed);
        if ticket >= total {
            return;
        }
        while queue.tail.load(Ordering::Acquire) <= ticket {}
        unsafe {
            let job = *jobs.add(ticket as usize);
            *results.add(ticket as usize) = job * job;
        }
    }
}

/// The tail moves on by a relaxed store: it may be seen before the job is.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn queue_racy(
    queue: *const Queue,
    jobs: *mut u32,
    total: u32,
    results: *mut u32,
) {
    if thread() != 0 {
        return;
    }
    let queue = unsafe { &*queue };
    if block() > 0 {
        unsafe { consume(queue, jobs, total, results) };
        return;
    }
    for i in 0..total {
        unsafe { *jobs.add(i as usize) = i + 10 };
        queue.tail.store(i + 1, Ordering::Relaxed);
    }
}

/// The store of the tail releases the job.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn queue_fixed(
    queue: *const Queue,
    jobs: *mut u32,
    total: u32,
    results: *mut u32,
) {
    if thread() != 0 {
        return;
    }
    let queue = unsafe { &*queue };
    if block() > 0 {
        unsafe { consume(queue, jobs, total, results) };
        return;
    }
    for i in 0..total {
        unsafe { *jobs.add(i as usize) = i + 10 };
        queue.tail.store(i + 1, Ordering::Release);
    }
}
