//! A block's life: it takes a residency slot, its threads find the slot's state, the last one to leave publishes.

use crate::clock::State;
use crate::copies;
use crate::dependent;
use crate::layout::{
    BlockEntry, BlockState, Counters, GlobalState, LaunchRecord, ModuleState, Scope, SmSlots,
    Tenant, ThreadState,
};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::warps::{self, WARP};
use core::mem::{offset_of, size_of};

/// The block's first thread, before the block's first barrier: takes a slot and leaves the block state where
/// [`find`] looks for it.
pub fn enter<M: Machine>(m: M, launch: u64) {
    let global = m.load64(field!(launch, LaunchRecord, global));
    let (slot, fresh) = claim(m, global);
    let per_device = m
        .load32(field!(global, GlobalState, num_sms))
        .wrapping_mul(m.load32(field!(global, GlobalState, slots_per_sm)));
    let thread = m
        .load32(field!(global, GlobalState, device))
        .wrapping_mul(per_device)
        .wrapping_add(slot);
    let state = State::of_device(m, global, thread);
    lock(state);
    move_in(state, launch, fresh);
    unlock(state);
    let block = place(m, global);
    m.store64(field!(block, BlockState, thread), state.addr);
    m.store64(field!(block, BlockState, launch), launch);
    m.store32(field!(block, BlockState, triggered), 0);
    m.store32_release(field!(block, BlockState, exited), 0);
}

/// The block state's address.
#[inline]
pub fn find<M: Machine>(m: M) -> u64 {
    let module = m.module();
    if m.dynamic_shared() & 1 != 0 {
        let reserved = m.load32(field!(module, ModuleState, reserved_shared));
        return m.shared_address(
            reserved
                .wrapping_add(m.total_shared())
                .wrapping_sub(BlockState::ROOM),
        );
    }
    find_in_table(m, m.load64(field!(module, ModuleState, global)))
}

/// The state of the block's logical thread.
#[inline]
pub fn state<M: Machine>(m: M) -> u64 {
    m.load64(field!(find(m), BlockState, thread))
}

/// The block's launch record.
pub fn launch<M: Machine>(m: M) -> u64 {
    m.load64(field!(find(m), BlockState, launch))
}

/// Dynamic shared memory that the user asked for.
pub fn dynamic_shared<M: Machine>(m: M) -> u32 {
    m.load32(field!(launch(m), LaunchRecord, dynamic_shared))
}

/// After `griddepcontrol.wait`: the launches before have ended, and what they did is known.
pub fn grid_wait<M: Machine>(me: State<M>) {
    let m = me.m;
    let launch = launch(m);
    let word = m.load64(field!(launch, LaunchRecord, waited));
    if word != 0 {
        m.store32(word, 1);
    }
    let row = m.load64(field!(launch, LaunchRecord, wait_row));
    if row == 0 || without(Edge::GridWait) {
        return;
    }
    let waited = field!(me.addr, ThreadState, waited);
    let epoch = me.start_epoch();
    // That launch ran beside this one, and what it has acquired from this block it hands back to all of its warps.
    if m.load32(row.wrapping_add(4 * me.thread_id() as u64)) >= epoch {
        warps::block_sync(me, true);
    }
    let alone = m.load32(field!(me.addr, ThreadState, users)) == 1;
    if !alone || m.load32_acquire(waited) != epoch {
        dependent::note_wait(me, launch);
        me.import_row(row);
        // The clock is the block's own by now: what is left of the base row is what counts as stale.
        m.store64(field!(me.addr, ThreadState, base_row), row);
        if alone {
            m.fence(Scope::Cta);
            m.store32_release(waited, epoch);
        }
    }
}

/// A thread leaves. The last one publishes what the block did and knows, and gives the slot back.
pub fn exit<M: Machine>(m: M) {
    let block = find(m);
    let left = m
        .add32(field!(block, BlockState, exited), 1)
        .wrapping_add(1);
    if left < m.block_threads() {
        return;
    }
    let state = State::at(m, m.load64(field!(block, BlockState, thread)));
    let launch = m.load64(field!(block, BlockState, launch));
    // The other threads' clocks were raised with relaxed operations.
    m.fence(Scope::Gpu);
    dependent::leave(state, launch, block);
    state.publish_row(m.load64(field!(launch, LaunchRecord, out_row)));
    if m.dynamic_shared() & 1 == 0 {
        m.store64(block.wrapping_sub(offset_of!(BlockEntry, state) as u64), 0);
    }
    lock(state);
    let users = m
        .load32(field!(state.addr, ThreadState, users))
        .wrapping_sub(1);
    m.store32(field!(state.addr, ThreadState, users), users);
    if users == 0 {
        release_slot(state);
    }
    unlock(state);
}

/// Takes a free slot of this multiprocessor, or picks one to share. Returns the slot's index on the device.
fn claim<M: Machine>(m: M, global: u64) -> (u32, bool) {
    let slots = m.load32(field!(global, GlobalState, slots_per_sm));
    let num_sms = m.load32(field!(global, GlobalState, num_sms));
    let sm = m.sm().checked_rem(num_sms).unwrap_or(0);
    let entry = m
        .load64(field!(global, GlobalState, sm_slots))
        .wrapping_add(size_of::<SmSlots>() as u64 * sm as u64);
    // Starting after the slot that was taken last lets an identity rest as long as possible.
    let first = m.add32(field!(entry, SmSlots, next), 1);
    let mut i = 0;
    while i < slots {
        let slot = first.wrapping_add(i).checked_rem(slots).unwrap_or(0);
        let bit = 1u32 << (slot & 31);
        if m.load32(field!(entry, SmSlots, used)) & bit == 0
            && m.or32(field!(entry, SmSlots, used), bit) & bit == 0
        {
            return (sm.wrapping_mul(slots).wrapping_add(slot), true);
        }
        i += 1;
    }
    let slot = first.checked_rem(slots).unwrap_or(0);
    (sm.wrapping_mul(slots).wrapping_add(slot), false)
}

fn slot_bit<M: Machine>(state: State<M>) -> (u64, u32) {
    let m = state.m;
    let slots = m.load32(field!(state.global(), GlobalState, slots_per_sm));
    let num_sms = m.load32(field!(state.global(), GlobalState, num_sms));
    let index = state
        .thread_id()
        .checked_rem(slots.wrapping_mul(num_sms))
        .unwrap_or(0);
    let sm = index.checked_div(slots).unwrap_or(0);
    let entry = m
        .load64(field!(state.global(), GlobalState, sm_slots))
        .wrapping_add(size_of::<SmSlots>() as u64 * sm as u64);
    (
        field!(entry, SmSlots, used),
        1 << (index.wrapping_sub(sm.wrapping_mul(slots)) & 31),
    )
}

fn release_slot<M: Machine>(state: State<M>) {
    let (used, bit) = slot_bit(state);
    state.m.and32(used, !bit);
}

/// Makes the block a tenant of the slot. Its lock is held.
fn move_in<M: Machine>(state: State<M>, launch: u64, claimed: bool) {
    let m = state.m;
    let base_row = dependent::begins_with(m, launch, state.num_threads());
    let users = m.load32(field!(state.addr, ThreadState, users));
    let start = state.epoch().wrapping_add(1);
    m.store32(field!(state.addr, ThreadState, epoch), start);
    if users == 0 {
        if !claimed {
            // The tenant that this block meant to join has just left.
            let (used, bit) = slot_bit(state);
            m.or32(used, bit);
        }
        m.store32(field!(state.addr, ThreadState, start_epoch), start);
        m.store64(field!(state.addr, ThreadState, base_row), base_row);
        copy_constants(state);
        m.store32(field!(state.addr, ThreadState, pending_mode), 0);
        m.store32(field!(state.addr, ThreadState, pending_version), 0);
        m.store32(field!(state.addr, ThreadState, unreleased_mode), 0);
        m.store32(field!(state.addr, ThreadState, unreleased_reads), 0);
        m.store32(field!(state.addr, ThreadState, imported_version), 0);
        m.store32(field!(state.addr, ThreadState, fence_gpu), 0);
        m.store32(field!(state.addr, ThreadState, fence_sys), 0);
        m.store64(field!(state.addr, ThreadState, last_acquired), u64::MAX);
        m.store64(field!(state.addr, ThreadState, last_pending), u64::MAX);
        m.store32(field!(state.addr, ThreadState, pending_places), 0);
        copies::begin(state);
        let flags = m.load32(field!(launch, LaunchRecord, flags));
        let apart = flags & LaunchRecord::INTRA_BLOCK != 0 && m.block_threads() > WARP;
        m.store32(field!(state.addr, ThreadState, intra_block), apart as u32);
        let head = m.load32(field!(state.addr, ThreadState, ring_head));
        m.store32(field!(state.addr, ThreadState, first_token), head);
        m.store32_release(field!(state.addr, ThreadState, clock_mode), 0);
        remember(state, launch, start, false);
    } else {
        // Whose warp it was can't be told any more, nor for which block's launch was waited.
        m.store32(field!(state.addr, ThreadState, intra_block), 0);
        m.store32(field!(state.addr, ThreadState, waited), 0);
        state.import_row(base_row);
        state.tally(offset_of!(Counters, shared_slot));
        remember(state, launch, start, true);
    }
    m.store32(
        field!(state.addr, ThreadState, users),
        users.wrapping_add(1),
    );
}

/// Puts what every access asks for beside the tenant's own words.
fn copy_constants<M: Machine>(state: State<M>) {
    let m = state.m;
    let global = state.global();
    let copy = |from: u64, to: u64| m.store64(to, m.load64(from));
    copy(
        field!(global, GlobalState, real_base),
        field!(state.addr, ThreadState, real_base),
    );
    copy(
        field!(global, GlobalState, real_size),
        field!(state.addr, ThreadState, real_size),
    );
    copy(
        field!(global, GlobalState, shadow_base),
        field!(state.addr, ThreadState, shadow_base),
    );
    let seed = m.load32(field!(global, GlobalState, seed));
    m.store32(field!(state.addr, ThreadState, seed), seed);
    let counts = m.load32(field!(global, GlobalState, flags)) & GlobalState::COUNT_ACCESSES != 0;
    let counters = m.load64(field!(global, GlobalState, counters));
    m.store64(
        field!(state.addr, ThreadState, access_counters),
        if counts { counters } else { 0 },
    );
}

/// Adds a tenant to the history. Where slots are shared, nobody can say whose an epoch was.
fn remember<M: Machine>(state: State<M>, launch: u64, start: u32, shared: bool) {
    let m = state.m;
    let tenants = m.load32(field!(state.addr, ThreadState, tenants));
    if shared {
        m.store32(
            field!(tenant(state, tenants.wrapping_sub(1)), Tenant, shared),
            1,
        );
    }
    let entry = tenant(state, tenants);
    let block = m.block();
    m.store32(field!(entry, Tenant, start_epoch), 0);
    m.store32(
        field!(entry, Tenant, launch_id),
        m.load32(field!(launch, LaunchRecord, launch_id)),
    );
    m.store32(
        field!(entry, Tenant, module_id),
        m.load32(field!(launch, LaunchRecord, module_id)),
    );
    let at = field!(entry, Tenant, block);
    m.store32(at, block[0]);
    m.store32(at.wrapping_add(4), block[1]);
    m.store32(at.wrapping_add(8), block[2]);
    m.store32(field!(entry, Tenant, shared), shared as u32);
    m.store32_release(field!(entry, Tenant, start_epoch), start);
    m.store32(
        field!(state.addr, ThreadState, tenants),
        tenants.wrapping_add(1),
    );
}

/// The history's entry for the `n`-th tenant.
pub fn tenant<M: Machine>(state: State<M>, n: u32) -> u64 {
    let ring = state
        .m
        .load32(field!(state.global(), GlobalState, clock_buffer_size));
    let slot = n & (ThreadState::HISTORY - 1);
    state
        .addr
        .wrapping_add(ThreadState::history_offset(state.num_threads(), ring))
        .wrapping_add(size_of::<Tenant>() as u64 * slot as u64)
}

/// Where the entering block's state goes.
fn place<M: Machine>(m: M, global: u64) -> u64 {
    if m.dynamic_shared() & 1 != 0 {
        return find(m);
    }
    let (table, mask, key) = table_of(m, global);
    let mut i = hash(key) & mask;
    loop {
        let entry = table.wrapping_add(size_of::<BlockEntry>() as u64 * i as u64);
        if m.load64(entry) == 0 && m.cas64(entry, 0, key) == 0 {
            return field!(entry, BlockEntry, state);
        }
        i = i.wrapping_add(1) & mask;
        m.pause();
    }
}

/// Finds a state that is in the table for certain: it was put there on entry.
fn find_in_table<M: Machine>(m: M, global: u64) -> u64 {
    let (table, mask, key) = table_of(m, global);
    let mut i = hash(key) & mask;
    loop {
        let entry = table.wrapping_add(size_of::<BlockEntry>() as u64 * i as u64);
        if m.load64(entry) == key {
            return field!(entry, BlockEntry, state);
        }
        i = i.wrapping_add(1) & mask;
    }
}

fn table_of<M: Machine>(m: M, global: u64) -> (u64, u32, u64) {
    let table = m.load64(field!(global, GlobalState, block_table));
    let mask = m.load32(field!(global, GlobalState, block_mask));
    let (block, grid) = (m.block(), m.grid());
    let linear = block[0]
        .wrapping_add(grid[0].wrapping_mul(block[1].wrapping_add(grid[1].wrapping_mul(block[2]))));
    // Blocks that are resident at the same time differ in this: grids in their id, blocks of a grid in their index.
    let key = m.grid_id() << 32 | linear as u64;
    (table, mask, key.wrapping_add(1))
}

fn hash(key: u64) -> u32 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

fn lock<M: Machine>(state: State<M>) {
    while state
        .m
        .cas32_acquire(field!(state.addr, ThreadState, lock), 0, 1)
        != 0
    {
        state.m.pause();
    }
}

fn unlock<M: Machine>(state: State<M>) {
    state
        .m
        .store32_release(field!(state.addr, ThreadState, lock), 0);
}
