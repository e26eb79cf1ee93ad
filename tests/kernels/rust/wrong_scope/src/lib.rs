//! A token goes round the grid: each block waits for its turn, adds to a running total, and passes the turn on.
//! Rust's atomics are always of system scope; who wants a narrower one writes the instruction.

#![no_std]
#![feature(abi_ptx, asm_experimental_arch)]

use core::arch::asm;
use support::{block, thread};

/// `.cta` orders the threads of one block; the turn passes between blocks.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn turns_racy(turn: *mut u32, total: *mut u32) {
    if thread() != 0 {
        return;
    }
    let me = block() as u32;
    let mut now: u32;
    unsafe {
        loop {
            asm!("ld.acquire.cta.global.u32 {}, [{}];", out(reg32) now, in(reg64) turn);
            if now == me {
                break;
            }
        }
        *total = *total * 3 + me;
        asm!("st.release.cta.global.u32 [{}], {};", in(reg64) turn, in(reg32) me + 1);
    }
}

/// `.gpu` covers all blocks of the device.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn turns_fixed(turn: *mut u32, total: *mut u32) {
    if thread() != 0 {
        return;
    }
    let me = block() as u32;
    let mut now: u32;
    unsafe {
        loop {
            asm!("ld.acquire.gpu.global.u32 {}, [{}];", out(reg32) now, in(reg64) turn);
            if now == me {
                break;
            }
        }
        *total = *total * 3 + me;
        asm!("st.release.gpu.global.u32 [{}], {};", in(reg64) turn, in(reg32) me + 1);
    }
}
