//! The hooks that instrumented PTX calls (ARCHITECTURE.md lists them): names and parameters, nothing else. The work is
//! gsan-device's.
#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]

use gsan_device::clock::State;
use gsan_device::layout::{NO_SITE, Op};
use gsan_device::machine::Machine;
use gsan_device::nvptx::{Format, Nvptx};
use gsan_device::{block, cluster, copies, dependent, detector, multicast};

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
    detector::access::<Format, _>(State::at(Nvptx, state), addr, Op(op), site);
}

/// Before a strong access; the result goes to [`__gsan_sync_after`].
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_sync_before(state: u64, addr: u64, op: u32, site: u32) -> u64 {
    detector::strong_before::<Format, _>(State::at(Nvptx, state), addr, Op(op), site)
}

/// After a strong load or atomic.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_sync_after(
    state: u64,
    addr: u64,
    op: u32,
    site: u32,
    context: u64,
    success: u32,
) {
    detector::strong_after::<Format, _>(
        State::at(Nvptx, state),
        addr,
        Op(op),
        site,
        context,
        success != 0,
    );
}

/// Before a fence.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_fence(state: u64, op: u32) {
    detector::fence::<Format, _>(State::at(Nvptx, state), Op(op));
}

// The reference cell does not keep warps: where these three are missing, nothing calls them and no launch asks for them.

/// Before a barrier of the block, whether it waits there or only arrives.
#[cfg(not(feature = "reference"))]
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_barrier_before(state: u64, id: u32, count: u32) {
    detector::barrier_before(State::at(Nvptx, state), id, count);
}

/// After a barrier of the block that waits.
#[cfg(not(feature = "reference"))]
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_barrier_after(state: u64, id: u32, count: u32) {
    detector::barrier_after(State::at(Nvptx, state), id, count);
}

/// After any other way to synchronise with the block's threads.
#[cfg(not(feature = "reference"))]
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_block_sync(state: u64) {
    detector::block_sync(State::at(Nvptx, state), true);
}

/// Before a warp arrives at its cluster's barrier.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_cluster_arrive(state: u64) {
    cluster::arrive::<Format, _>(State::at(Nvptx, state));
}

/// Before a strong write to shared memory that other blocks of the cluster may read.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_cluster_release(state: u64) {
    cluster::release::<Format, _>(State::at(Nvptx, state));
}

/// After waiting at the cluster's barrier, and after a strong read of shared memory that other blocks may have written.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_cluster_acquire(state: u64) {
    cluster::acquire::<Format, _>(State::at(Nvptx, state));
}

/// After `griddepcontrol.wait`.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_grid_wait(state: u64) {
    block::grid_wait(State::at(Nvptx, state));
}

/// Before `griddepcontrol.launch_dependents`.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_launch_dependents(state: u64) {
    dependent::launch_dependents(State::at(Nvptx, state));
}

/// Before a bulk copy of `bytes` bytes; `addr` is its address in global memory, `op` what it does there.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_copy(state: u64, addr: u64, op: u32, site: u32, bytes: u32, barrier: u32) {
    copies::issue::<Format, _>(State::at(Nvptx, state), addr, bytes, Op(op), site, barrier);
}

/// Before a copy through the tensor map at `map`.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn __gsan_copy_tensor(
    state: u64,
    map: u64,
    op: u32,
    site: u32,
    shape: u32,
    barrier: u32,
    c0: u32,
    c1: u32,
    c2: u32,
    c3: u32,
    c4: u32,
) {
    let me = State::at(Nvptx, state);
    let corner = [c0 as i32, c1 as i32, c2 as i32, c3 as i32, c4 as i32];
    copies::issue_box::<Format, _>(me, map, shape, corner, Op(op), site, barrier);
}

/// Before a copy through the tensor map at `map` of pixels of windows (`.im2col`), whose places in them are `offsets`.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn __gsan_copy_windows(
    state: u64,
    map: u64,
    op: u32,
    site: u32,
    offsets: u64,
    barrier: u32,
    c0: u32,
    c1: u32,
    c2: u32,
    c3: u32,
    c4: u32,
) {
    let me = State::at(Nvptx, state);
    let corner = [c0 as i32, c1 as i32, c2 as i32, c3 as i32, c4 as i32];
    copies::issue_windows::<Format, _>(me, map, offsets, corner, Op(op), site, barrier);
}

/// Before a bulk copy to global memory of the bytes that have a bit in `mask`.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_copy_masked(
    state: u64,
    addr: u64,
    op: u32,
    site: u32,
    bytes: u32,
    mask: u32,
) {
    copies::issue_masked::<Format, _>(State::at(Nvptx, state), addr, bytes, Op(op), site, mask);
}

/// After `cp.async.bulk.commit_group`.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_copy_commit(state: u64) {
    copies::commit(State::at(Nvptx, state));
}

/// After `cp.async.bulk.wait_group`: all groups of this thread but the youngest `groups` are carried out.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_copy_wait(state: u64, groups: u32) {
    copies::wait::<Format, _>(State::at(Nvptx, state), groups);
}

/// After a wait for a phase of an mbarrier, before what else that means.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_copy_waited(state: u64, phase: u32) {
    copies::waited::<Format, _>(State::at(Nvptx, state), phase);
}

/// After a wait for `cp.async`s, and before a thread leaves a kernel that may have issued some.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_copy_landed(state: u64) {
    copies::landed(State::at(Nvptx, state));
}

/// Before a thread leaves a kernel that may have issued bulk copies, and before [`__gsan_exit`].
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_copy_leave(state: u64) {
    copies::leave::<Format, _>(State::at(Nvptx, state));
}

/// Before an access of multicast memory; the result goes to [`__gsan_multimem_after`].
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_multimem(state: u64, addr: u64, op: u32, site: u32) -> u64 {
    multicast::before::<Format, _>(State::at(Nvptx, state), addr, Op(op), site)
}

/// After a strong read of multicast memory.
#[unsafe(no_mangle)]
pub extern "C" fn __gsan_multimem_after(state: u64, addr: u64, op: u32, site: u32, context: u64) {
    multicast::after::<Format, _>(State::at(Nvptx, state), addr, Op(op), site, context);
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
    let mut i = m.block()[0]
        .wrapping_mul(threads)
        .wrapping_add(m.thread()[0]);
    while i < n {
        m.max32(
            dst.wrapping_add(4 * i as u64),
            m.load32(src.wrapping_add(4 * i as u64)),
        );
        i = i.wrapping_add(threads.wrapping_mul(m.grid()[0]));
    }
}

/// An operation of the host (memset, copy) as accesses of a logical thread of its own: launched in the operation's stream,
/// before it. Any grid; checks `bytes` bytes at `addr` as `op` says, 16 at a time.
///
/// # Safety
/// `launch` is a [`gsan_device::layout::LaunchRecord`] of this launch, and shared memory was grown as for any kernel.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn __gsan_touch(addr: u64, bytes: u64, op: u32, launch: u64) {
    let m = Nvptx;
    let thread = m.thread()[0];
    if thread == 0 {
        block::enter(m, launch);
    }
    // SAFETY: every thread of the block comes here.
    unsafe { core::arch::nvptx::_syncthreads() };
    let me = State::at(m, block::state(m));
    let threads = m.block_threads();
    let mut at = 16 * m.block()[0].wrapping_mul(threads).wrapping_add(thread) as u64;
    while at < bytes {
        let size = (bytes - at).min(16) as u32;
        detector::access::<Format, _>(me, addr.wrapping_add(at), Op(op).with_size(size), NO_SITE);
        at = at.wrapping_add(16 * threads.wrapping_mul(m.grid()[0]) as u64);
    }
    block::exit(m);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
