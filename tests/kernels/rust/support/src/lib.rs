//! What the kernels share. Nothing in here touches global memory, so that every access has its line in the kernel.

#![no_std]
#![feature(stdarch_nvptx)]

use core::arch::nvptx;

/// Index of the thread in its block.
#[inline(always)]
pub fn thread() -> usize {
    // SAFETY: reads a special register.
    unsafe { nvptx::_thread_idx_x() as usize }
}

/// Index of the block in the grid.
#[inline(always)]
pub fn block() -> usize {
    // SAFETY: reads a special register.
    unsafe { nvptx::_block_idx_x() as usize }
}

/// Threads per block.
#[inline(always)]
pub fn block_size() -> usize {
    // SAFETY: reads a special register.
    unsafe { nvptx::_block_dim_x() as usize }
}

/// Blocks in the grid.
#[inline(always)]
pub fn blocks() -> usize {
    // SAFETY: reads a special register.
    unsafe { nvptx::_grid_dim_x() as usize }
}

/// Index of the thread in the grid.
#[inline(always)]
pub fn global_thread() -> usize {
    block() * block_size() + thread()
}

/// Waits for all threads of the block.
#[inline(always)]
pub fn sync_threads() {
    // SAFETY: the kernels call it where all threads of the block come by.
    unsafe { nvptx::_syncthreads() }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: ends the kernel.
    unsafe { nvptx::trap() }
}
