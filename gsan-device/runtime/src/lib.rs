//! The hooks that instrumented PTX calls (ARCHITECTURE.md lists them): names and parameters, nothing else. The work is
//! gsan-device's.
#![no_std]
#![feature(abi_ptx)]

use gsan_device::clock::State;
use gsan_device::layout::Op;
use gsan_device::machine::Machine;
use gsan_device::nvptx::Nvptx;
use gsan_device::{block, detector};

/// By the block's first thread, before the first barrier.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_block_enter(launch: u64) {
    block::enter(Nvptx, launch);
}

/// The state that the other hooks take.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_state() -> u64 {
    block::state(Nvptx)
}

/// Before a weak load or store.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_access(state: u64, addr: u64, op: u32, site: u32) {
    detector::access(State::at(Nvptx, state), addr, Op(op), site);
}

/// Before a strong access; the result goes to [`__gsan_sync_after`].
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_sync_before(state: u64, addr: u64, op: u32, site: u32) -> u64 {
    detector::strong_before(State::at(Nvptx, state), addr, Op(op), site)
}

/// After a strong load or atomic.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_sync_after(state: u64, addr: u64, op: u32, site: u32, context: u64, success: u32) {
    detector::strong_after(State::at(Nvptx, state), addr, Op(op), site, context, success != 0);
}

/// Before a fence.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_fence(state: u64, op: u32) {
    detector::fence(State::at(Nvptx, state), Op(op));
}

/// Before a thread leaves the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_exit() {
    block::exit(Nvptx);
}

/// What the user's kernel should see in `%dynamic_smem_size`.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_dynamic_size() -> u32 {
    block::dynamic_shared(Nvptx)
}

/// Raises the clock row `dst` to at least `src`, entry by entry. Launched by the host where streams join; any grid.
///
/// # Safety
/// Both rows are `n` epochs long, and the stream orders this kernel after whoever wrote them.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn __gsan_join_rows(dst: u64, src: u64, n: u32) {
    let m = Nvptx;
    let threads = m.block_threads();
    let mut i = m.block()[0].wrapping_mul(threads).wrapping_add(m.thread()[0]);
    while i < n {
        m.max32(dst.wrapping_add(4 * i as u64), m.load32(src.wrapping_add(4 * i as u64)));
        i = i.wrapping_add(threads.wrapping_mul(m.grid()[0]));
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
