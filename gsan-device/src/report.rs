//! The cold end: a race becomes a record in mapped host memory, once; repeats are counted.

use crate::block;
use crate::cell::{Conflict, Prior};
use crate::clock::State;
use crate::layout::{
    Counters, Epoch, GlobalState, LaunchRecord, NO_SITE, Op, RaceClass, RaceKey, RaceRecord,
    RaceSide, Scope, Tenant, ThreadState,
};
use crate::machine::{Machine, field};
use core::mem::{offset_of, size_of};

/// Marks a site that is a line and column of a hand-linked module instead of an index.
pub const LINKED_SITE: u32 = 1 << 31;

/// Probes of the table of findings before a finding is dropped (and counted as such).
const PROBES: u32 = 64;

/// Reports the conflict of an access at `addr`.
#[cold]
#[inline(never)]
pub fn race<M: Machine>(me: State<M>, conflict: Conflict, addr: u64, op: Op, site: u32) {
    let m = me.m;
    let launch = block::launch(m);
    let module = m.load32(field!(launch, LaunchRecord, module_id));
    let mask = m
        .load32(field!(me.global(), GlobalState, race_capacity))
        .wrapping_sub(1);
    let keys = m.load64(field!(me.global(), GlobalState, race_keys));
    let records = m.load64(field!(me.global(), GlobalState, race_records));
    let key = identity(conflict, module, site);
    let mut i = (key >> 32) as u32 & mask;
    let mut probe = 0;
    while probe < PROBES {
        let entry = keys.wrapping_add(size_of::<RaceKey>() as u64 * i as u64);
        let record = records.wrapping_add(size_of::<RaceRecord>() as u64 * i as u64);
        let found = m.cas64(field!(entry, RaceKey, key), 0, key);
        if found == 0 || found == key {
            let count = m.add32(field!(entry, RaceKey, count), 1).wrapping_add(1);
            if found == 0 {
                write(me, record, conflict, addr, op, launch, module, site);
            } else if count & count.wrapping_sub(1) == 0 {
                // The host's copy is exact at powers of two; after the launch the host reads the key's.
                m.store32(field!(record, RaceRecord, count), count);
            }
            return;
        }
        i = i.wrapping_add(1) & mask;
        probe += 1;
    }
    me.tally(offset_of!(Counters, dropped));
}

/// A nonzero number that equal findings share: same kind and class, same place in the program.
fn identity(conflict: Conflict, module: u32, site: u32) -> u64 {
    let mut h = (conflict.kind as u64)
        | (conflict.class as u64) << 8
        | (conflict.prior.op.access() as u64) << 16;
    h = (h ^ module as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ h >> 29 ^ site as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let prior = conflict.prior.site.map_or(0, |site| site as u64 + 1);
    h = (h ^ h >> 31 ^ prior).wrapping_mul(0x94d0_49bb_1331_11eb);
    (h ^ h >> 32) | 1
}

#[allow(clippy::too_many_arguments)]
fn write<M: Machine>(
    me: State<M>,
    record: u64,
    conflict: Conflict,
    addr: u64,
    op: Op,
    launch: u64,
    module: u32,
    site: u32,
) {
    let m = me.m;
    m.store32(field!(record, RaceRecord, state), 1);
    m.store32(field!(record, RaceRecord, kind), conflict.kind as u32);
    m.store32(field!(record, RaceRecord, count), 1);
    m.store32(field!(record, RaceRecord, class), conflict.class as u32);
    m.store64(field!(record, RaceRecord, address), addr);

    let side = field!(record, RaceRecord, current);
    let what = if site == NO_SITE {
        // A host operation: which of the touching kernel's threads it was means nothing.
        RaceSide::LAUNCH | RaceSide::OP
    } else {
        RaceSide::KERNEL_SIDE
    };
    own_side(me, side, op, site, me.epoch(), launch, module, what);
    store3(m, field!(side, RaceSide, thread), m.thread());
    let prior = conflict.prior;
    other_side(me, field!(record, RaceRecord, prior), prior);

    let flag = field!(record, RaceRecord, flag);
    m.store32(field!(flag, RaceSide, known), 0);
    let half = match conflict.class {
        RaceClass::MissingAcquire => me.relaxed_read_of(prior.thread, prior.epoch, prior.warp()),
        RaceClass::MissingRelease => me
            .relaxed_write_of(prior.thread, prior.epoch)
            .or_else(|| me.late_write_of(prior.thread, prior.epoch)),
        _ => None,
    };
    if let Some(half) = half {
        m.store64(field!(record, RaceRecord, flag_address), half.address);
        if conflict.class == RaceClass::MissingAcquire {
            let what = RaceSide::KERNEL_SIDE & !RaceSide::THREAD | RaceSide::LINEAR_THREAD;
            let (op, site, epoch) = (half.op, half.site, half.epoch);
            own_side(me, flag, op, site, epoch, launch, module, what);
            store3(m, field!(flag, RaceSide, thread), [half.linear, 0, 0]);
        } else {
            let write = Prior {
                thread: (half.source >> 32) as u32,
                epoch: half.source as Epoch,
                op: half.op,
                site: known(half.site, NO_SITE),
                linear: known(half.linear, u32::MAX),
            };
            other_side(me, flag, write);
        }
    }
    m.fence(Scope::Sys);
    m.store32_release(field!(record, RaceRecord, state), 2);
    m.fence(Scope::Sys);
}

#[inline]
fn known(value: u32, unknown: u32) -> Option<u32> {
    if value == unknown { None } else { Some(value) }
}

/// A side that is an access of this block, of which `known` is true; the thread is left out.
#[allow(clippy::too_many_arguments)]
fn own_side<M: Machine>(
    me: State<M>,
    side: u64,
    op: Op,
    site: u32,
    epoch: Epoch,
    launch: u64,
    module: u32,
    known: u32,
) {
    let m = me.m;
    m.store32(
        field!(side, RaceSide, launch_id),
        m.load32(field!(launch, LaunchRecord, launch_id)),
    );
    store3(m, field!(side, RaceSide, block), m.block());
    let known = if known & RaceSide::SITE != 0 && site & LINKED_SITE != 0 {
        known | RaceSide::LINKED_SITE
    } else {
        known
    };
    m.store32(field!(side, RaceSide, site), site & !LINKED_SITE);
    m.store32(field!(side, RaceSide, module_id), module);
    m.store32(field!(side, RaceSide, op), op.0);
    m.store32(field!(side, RaceSide, known), known);
    m.store32(field!(side, RaceSide, slot), me.thread_id());
    m.store32(field!(side, RaceSide, epoch), epoch);
}

/// A side that is known from a cell.
fn other_side<M: Machine>(me: State<M>, side: u64, prior: Prior) {
    let m = me.m;
    let mut known = if prior.op.size() != 0 {
        RaceSide::OP
    } else {
        0
    };
    m.store32(field!(side, RaceSide, op), prior.op.0);
    m.store32(field!(side, RaceSide, slot), prior.thread);
    m.store32(field!(side, RaceSide, epoch), prior.epoch);
    if let Some(tenant) = tenant_at(me.of(prior.thread), prior.epoch) {
        known |= RaceSide::LAUNCH;
        m.store32(
            field!(side, RaceSide, launch_id),
            m.load32(field!(tenant, Tenant, launch_id)),
        );
        if prior.op.size() == 0 || prior.site.is_some() {
            known |= RaceSide::BLOCK;
        }
        let at = field!(tenant, Tenant, block);
        store3(
            m,
            field!(side, RaceSide, block),
            [
                m.load32(at),
                m.load32(at.wrapping_add(4)),
                m.load32(at.wrapping_add(8)),
            ],
        );
        if let Some(site) = prior.site {
            known |= RaceSide::SITE;
            m.store32(field!(side, RaceSide, site), site);
            m.store32(
                field!(side, RaceSide, module_id),
                m.load32(field!(tenant, Tenant, module_id)),
            );
            if let Some(linear) = prior.linear {
                known |= RaceSide::LINEAR_THREAD;
                store3(m, field!(side, RaceSide, thread), [linear, 0, 0]);
            }
        }
    }
    m.store32(field!(side, RaceSide, known), known);
}

/// The tenant whose epoch it was, if the history goes back far enough and it was alone.
fn tenant_at<M: Machine>(slot: State<M>, epoch: Epoch) -> Option<u64> {
    let m = slot.m;
    let tenants = m.load32(field!(slot.addr, ThreadState, tenants));
    let mut i = 1;
    while i <= ThreadState::HISTORY && i <= tenants {
        let entry = block::tenant(slot, tenants.wrapping_sub(i));
        let start = m.load32_acquire(field!(entry, Tenant, start_epoch));
        if start != 0 && start <= epoch {
            return if m.load32(field!(entry, Tenant, shared)) == 0 {
                Some(entry)
            } else {
                None
            };
        }
        i += 1;
    }
    None
}

fn store3<M: Machine>(m: M, addr: u64, values: [u32; 3]) {
    m.store32(addr, values[0]);
    m.store32(addr.wrapping_add(4), values[1]);
    m.store32(addr.wrapping_add(8), values[2]);
}
