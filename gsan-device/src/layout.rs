//! The words and structs that the device, the host and the graph side share.
//!
//! Everything here is plain data at fixed offsets: the runtime (compiled to PTX) reads it through raw addresses, the host
//! writes it with `bytemuck`. Addresses are 64-bit device addresses, sizes are bytes, epochs start at 1 (0 = never).

mod cell;
mod op;
mod partial;
mod race;
mod state;
mod transfer;

pub use cell::{ScalarClock, ShadowCell, SyncClock, WideCell, WideRecord};
pub use op::{Access, NO_SITE, Op, Order, Scope};
pub use partial::PartialClock;
pub use race::{Counters, RaceClass, RaceKey, RaceKind, RaceRecord, RaceSide};
pub use state::{
    BlockEntry, BlockState, GlobalState, HalfSync, Handover, LaunchRecord, ModuleState, Multicast,
    Range, SmSlots, Snapshot, Tenant, ThreadState,
};
pub use transfer::{PendingCopy, TensorMap};

use core::mem::{align_of, offset_of, size_of};

/// A thread's epoch as the detector computes with it. Cells may keep fewer bits.
pub type Epoch = u32;

/// Bumped whenever a struct of this file changes; the host writes it, the runtime's module exports it.
pub const LAYOUT_VERSION: u32 = 15;

/// Bytes of user memory that one shadow cell covers.
pub const WORD: u64 = 4;

const _: () = {
    assert!(size_of::<ScalarClock>() == 4 && align_of::<ScalarClock>() == 4);
    assert!(size_of::<ShadowCell>() == 24 && align_of::<ShadowCell>() == 8);
    assert!(ShadowCell::WRITE == 16 && ShadowCell::LOCK_WORD == 20);
    assert!(offset_of!(ShadowCell, lock) as u64 == ShadowCell::LOCK_WORD + 2);
    assert!(
        size_of::<WideRecord>() == 12 && size_of::<WideCell>() == 64 && align_of::<WideCell>() == 8
    );
    assert!(WideCell::SYNC == 48 && WideCell::STATE_WORD == 56);
    let all = Op::new(Access::Cas, 128, Order::Sc, Scope::Sys);
    let r = WideRecord::new(u32::MAX, 0xffff, 0x3ff, 15, all, 0xfffff);
    assert!(r.0[1] == u32::MAX && r.site().is_some());
    assert!(r.epoch() == u32::MAX && r.thread() == 0xffff && r.linear() == 0x3ff && r.mask() == 15);
    assert!(r.op().0 == all.0 && r.writes() && r.observation() == 0);
    let seen = r.with_observation(u32::MAX);
    assert!(seen.op().0 == all.0 && seen.is_observed() && seen.was_observed());
    let nc = Op::new(Access::Load, 4, Order::Weak, Scope::None).non_coherent();
    let nc = WideRecord::new(1, 0, 0, 15, nc, 0).with_observation(u32::MAX);
    assert!(nc.op().is_non_coherent() && nc.is_observed() && !nc.was_observed());
    let none = WideRecord::new(
        1,
        0,
        0,
        0,
        Op::new(Access::Load, 1, Order::Weak, Scope::None),
        u32::MAX,
    );
    assert!(none.0[1] == 0 && none.0[2] == WideRecord::NO_SITE && none.site().is_none());
    let sync = SyncClock::new(u32::MAX, 0xffff, Scope::Sys);
    assert!(
        sync.token() == u32::MAX
            && sync.thread() == 0xffff
            && sync.scope() as u8 == Scope::Sys as u8
    );
    assert!(size_of::<Op>() == 4);
    assert!(size_of::<GlobalState>() == 184 && align_of::<GlobalState>() == 8);
    assert!(align_of::<ThreadState>() == 8 && align_of::<Snapshot>() == 8);
    // Model checks have smaller ones.
    assert!(
        cfg!(loom)
            || (size_of::<ThreadState>()
                == 576 + 16 + 64 + 40 + 2048 + 4 * 128 + 256 + 4096 + 12 * 32 + 16
                && size_of::<Snapshot>() == 144)
    );
    assert!(size_of::<Tenant>() == 28);
    let p = PartialClock::new(0xffff, 31, u32::MAX);
    assert!(p.thread() == 0xffff && p.warp() == 31 && p.epoch() == u32::MAX && !p.is_empty());
    assert!(p.same_warp(PartialClock::new(0xffff, 31, 1)));
    assert!(!p.same_warp(PartialClock::new(0xfffe, 31, 1)));
    assert!(!PartialClock::new(0, 0, 0).is_empty());
    assert!(size_of::<LaunchRecord>() == 56 && align_of::<LaunchRecord>() == 8);
    assert!(size_of::<BlockState>() == 32 && size_of::<BlockState>() as u32 <= BlockState::ROOM);
    assert!(size_of::<BlockEntry>() == 48);
    assert!(size_of::<Handover>() == 16 && align_of::<Handover>() == 8);
    assert!(size_of::<ModuleState>() == 24);
    assert!(
        size_of::<RaceKey>() == 16 && size_of::<RaceSide>() == 52 && size_of::<RaceRecord>() == 192
    );
    assert!(size_of::<Counters>() == 80);
    assert!(size_of::<PendingCopy>() == 56 && size_of::<TensorMap>() == 288);
    // Each field of a clock lands in its own bits.
    let c = ScalarClock::release(0xffff, 0xfff, Scope::Sys);
    assert!(c.0 == 0x7fff_ffff);
    assert!(ScalarClock::release(0, 0, Scope::None).0 == 1 << 30);
    assert!(ScalarClock::access(0, 0xfff, Scope::None).0 == 0xfff << 16);
    assert!(ScalarClock::access(0, 0, Scope::Sys).0 == 3 << 28);
    assert!(ScalarClock::access(u32::MAX, 0, Scope::None).0 == 0xffff);
    let op = Op::new(Access::Cas, 16, Order::Sc, Scope::Sys)
        .volatile()
        .non_coherent()
        .generic();
    assert!(op.size() == 16 && op.is_volatile() && op.is_non_coherent() && op.is_generic());
    assert!(op.asynchronous().is_asynchronous() && !op.is_asynchronous());
    assert!(op.access() as u8 == Access::Cas as u8 && op.order() as u8 == Order::Sc as u8);
    assert!(op.scope() as u8 == Scope::Sys as u8);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_field_round_trips() {
        for epoch in [0, 1, 0x1234, 0xfffe] {
            for thread in [0, 1, 77, 4095] {
                for scope in [Scope::None, Scope::Cta, Scope::Gpu, Scope::Sys] {
                    let c = ScalarClock::access(epoch, thread, scope);
                    assert_eq!(
                        (c.epoch(), c.thread(), c.scope(), c.is_release()),
                        (epoch, thread, scope, false)
                    );
                    let r = ScalarClock::release(epoch, thread, scope);
                    assert_eq!(
                        (r.epoch(), r.thread(), r.scope(), r.is_release()),
                        (epoch, thread, scope, true)
                    );
                }
            }
        }
    }

    #[test]
    fn every_op_field_round_trips() {
        for access in [
            Access::Load,
            Access::Store,
            Access::Rmw,
            Access::Cas,
            Access::Fence,
        ] {
            for order in [
                Order::Weak,
                Order::Relaxed,
                Order::Acquire,
                Order::Release,
                Order::AcqRel,
                Order::Sc,
            ] {
                for scope in [
                    Scope::None,
                    Scope::Cta,
                    Scope::Cluster,
                    Scope::Gpu,
                    Scope::Sys,
                ] {
                    for size in [1, 2, 4, 8, 16, 32] {
                        let op = Op::new(access, size, order, scope);
                        assert_eq!(
                            (op.access(), op.order(), op.scope(), op.size()),
                            (access, order, scope, size)
                        );
                        assert!(!op.is_volatile() && !op.is_generic() && !op.is_non_coherent());
                    }
                }
            }
        }
    }

    #[test]
    fn a_thread_states_parts_do_not_overlap() {
        for threads in [1, 2, 3, 64, 4096] {
            for ring in [1, 2, 64, 1024] {
                let pending = ThreadState::pending_offset(threads);
                assert_eq!(pending, ThreadState::CLOCK + 4 * u64::from(threads));
                let ring_at = ThreadState::ring_offset(threads);
                assert!(ring_at >= pending + 8 * u64::from(threads));
                let history = ThreadState::history_offset(threads, ring);
                assert!(
                    history
                        >= ring_at
                            + u64::from(ring)
                                * (size_of::<Snapshot>() as u64 + 4 * u64::from(threads))
                );
                let stride = ThreadState::stride(threads, ring);
                assert!(
                    stride
                        >= history
                            + u64::from(ThreadState::HISTORY) * 28
                            + u64::from(ThreadState::COPIES) * 48
                        && stride.is_multiple_of(128)
                );
                let copies = ThreadState::copies_offset(threads, ring);
                assert!(copies >= history + u64::from(ThreadState::HISTORY) * 28);
                assert!(ring_at.is_multiple_of(8) && history.is_multiple_of(4));
                assert!(copies.is_multiple_of(8));
            }
        }
    }
}
