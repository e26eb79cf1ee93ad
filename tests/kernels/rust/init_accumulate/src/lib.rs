//! Dot product: one thread clears the result, all blocks add to it.

#![no_std]
#![feature(abi_ptx, asm_experimental_arch)]

use core::arch::asm;
use support::{block, global_thread, sync_threads, thread};

/// `core` has no atomic float: this is the addition that the hardware has.
macro_rules! atomic_add_f32 {
    ($address:expr, $value:expr) => {
        asm!("red.relaxed.gpu.global.add.f32 [{}], {};", in(reg64) $address, in(reg32) $value)
    };
}

/// The barrier orders the clearing before the additions of block 0, not before those of the other blocks.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn dot_racy(x: *const f32, y: *const f32, n: u32, result: *mut f32) {
    let i = global_thread();
    unsafe {
        if block() == 0 && thread() == 0 {
            *result = 0.0;
        }
        sync_threads();
        if i < n as usize {
            let product = *x.add(i) * *y.add(i);
            atomic_add_f32!(result, product);
        }
    }
}

/// The clearing, as a kernel of its own.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn clear_fixed(result: *mut f32) {
    if global_thread() == 0 {
        unsafe { *result = 0.0 };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn dot_fixed(
    x: *const f32,
    y: *const f32,
    n: u32,
    result: *mut f32,
) {
    let i = global_thread();
    unsafe {
        if i < n as usize {
            let product = *x.add(i) * *y.add(i);
            atomic_add_f32!(result, product);
        }
    }
}
