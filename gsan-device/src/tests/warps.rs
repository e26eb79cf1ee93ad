//! Inside one block: its warps are threads of their own to each other, and a release speaks for the warp that made it.
//!
//! Each program is a function of its own, so that `a_missing_edge_is_noticed` can run it on a detector without an edge.

use super::*;
use crate::layout::LaunchRecord;

/// Threads 0, 32, 64, … of a block.
fn warps(d: &Device, record: u64, grid: u64, sm: u32, block: u32, n: u32) -> Vec<Block<'_>> {
    let all: Vec<_> = (0..n)
        .map(|w| Block {
            device: d,
            host: d.thread(grid, sm, block, 32 * w, 32 * n),
        })
        .collect();
    block::enter(all[0].host, record);
    all
}

fn barrier(all: &[Block<'_>]) {
    barrier_of(all, 0, 0);
}

/// A barrier of these warps only.
fn named_barrier(all: &[Block<'_>], id: u32) {
    barrier_of(all, id, 32 * all.len() as u32);
}

fn barrier_of(all: &[Block<'_>], id: u32, count: u32) {
    for w in all {
        detector::barrier_before(w.state(), id, count);
    }
    for w in all {
        detector::barrier_after(w.state(), id, count);
    }
}

fn block_exit(all: &[Block<'_>]) {
    for w in all {
        for _ in 0..32 {
            w.exit();
        }
    }
}

/// What a program's findings are.
type Found = Vec<(u32, u32)>;

fn found(d: &Device) -> Found {
    d.races().iter().map(|r| (r.kind, r.class)).collect()
}

const RAW: u32 = RaceKind::Raw as u32;
const WAR: u32 = RaceKind::War as u32;
const INTRA: u32 = RaceClass::IntraBlock as u32;

fn store_and_load(with_barrier: bool) -> Found {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    if with_barrier {
        barrier(&w);
    }
    w[1].load(0);
    found(&d)
}

/// Thread 0 releases a flag, then another warp stores what another block reads behind it. `barrier_behind`: the two warps
/// meet between the release and the store.
fn released_early(barrier_behind: bool, same_warp: bool) -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = warps(&d, record, 0, 1, 1, 1);
    w[0].strong(Access::Rmw, Order::Release, Scope::Gpu, 64);
    if barrier_behind {
        barrier(&w);
    }
    w[if same_warp { 0 } else { 1 }].store(0);
    other[0].strong(Access::Load, Order::Acquire, Scope::Gpu, 64);
    other[0].load(0);
    found(&d)
}

#[test]
fn a_store_behind_another_warps_release_lacks_a_barrier() {
    let race = RaceClass::Race as u32;
    assert_eq!(released_early(false, false), [(RAW, INTRA)]);
    assert_eq!(released_early(true, false), [(RAW, race)]);
    assert_eq!(released_early(false, true), [(RAW, race)]);
}

#[test]
fn a_barrier_orders_warps() {
    assert_eq!(store_and_load(true), []);
}

#[test]
fn without_a_barrier_warps_race() {
    assert_eq!(store_and_load(false), [(RAW, INTRA)]);
}

#[test]
fn lanes_of_one_warp_do_not_race() {
    let d = device();
    let a = Block {
        device: &d,
        host: d.thread(0, 0, 0, 3, 64),
    };
    let b = Block {
        device: &d,
        host: d.thread(0, 0, 0, 31, 64),
    };
    block::enter(a.host, d.launch(0, 0, 1));
    a.store(0);
    b.load(0);
    b.store(0);
    assert_silent(&d);
}

#[test]
fn what_comes_after_the_barrier_races() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].load(0);
    barrier(&w);
    w[0].store(0);
    w[1].load(0);
    assert_eq!(found(&d), [(RAW, INTRA)]);
}

fn own_barriers() -> Found {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 4);
    w[0].store(0);
    w[2].store(4);
    named_barrier(&w[..2], 1);
    named_barrier(&w[2..], 2);
    w[1].load(0);
    w[3].load(4);
    assert_silent(&d);
    w[3].load(0);
    found(&d)
}

#[test]
fn each_barrier_orders_for_itself() {
    assert_eq!(own_barriers(), [(RAW, INTRA)]);
}

#[test]
fn arrive_orders_one_way() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    detector::barrier_before(w[0].state(), 3, 64);
    detector::barrier_before(w[1].state(), 3, 64);
    detector::barrier_after(w[1].state(), 3, 64);
    w[1].load(0);
    assert_silent(&d);
    // Whoever only arrives knows nothing of those who wait.
    w[1].store(4);
    w[0].load(4);
    assert_eq!(found(&d), [(RAW, INTRA)]);
}

/// Three warps, two barriers of two: what the middle one knows goes on.
fn named_chain() -> Found {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 3);
    w[0].store(0);
    named_barrier(&w[..2], 1);
    named_barrier(&w[1..], 2);
    w[2].load(0);
    found(&d)
}

#[test]
fn barriers_of_parts_are_a_chain() {
    assert_eq!(named_chain(), []);
}

#[test]
fn a_flag_then_a_barrier_of_a_part_are_a_chain() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 3);
    w[0].store(0);
    w[0].strong(Access::Store, Order::Release, Scope::Cta, 8);
    w[1].strong(Access::Load, Order::Acquire, Scope::Cta, 8);
    named_barrier(&w[1..], 2);
    w[2].load(0);
    assert_silent(&d);
}

#[test]
fn what_follows_an_arrival_is_not_known() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    detector::barrier_before(w[0].state(), 3, 64);
    w[0].store(0);
    detector::barrier_before(w[1].state(), 3, 64);
    detector::barrier_after(w[1].state(), 3, 64);
    w[1].load(0);
    assert_eq!(found(&d), [(RAW, INTRA)]);
}

#[test]
fn a_barrier_with_and_without_a_count() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    w[1].store(4);
    detector::barrier_before(w[0].state(), 0, 0);
    detector::barrier_before(w[1].state(), 0, 64);
    detector::barrier_after(w[0].state(), 0, 0);
    detector::barrier_after(w[1].state(), 0, 64);
    w[1].load(0);
    w[0].load(4);
    assert_silent(&d);
}

#[test]
fn what_follows_a_flag_is_not_known() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    w[0].strong(Access::Store, Order::Release, Scope::Cta, 8);
    w[1].strong(Access::Load, Order::Acquire, Scope::Cta, 8);
    w[0].store(4);
    w[1].load(0);
    assert_silent(&d);
    w[1].load(4);
    assert_eq!(found(&d), [(RAW, INTRA)]);
}

#[test]
fn polls_inside_a_block_do_not_use_up_epochs() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].strong(Access::Store, Order::Release, Scope::Cta, 8);
    let poll = || w[1].strong(Access::Load, Order::Acquire, Scope::Cta, 8);
    poll();
    let epoch = w[1].state().epoch();
    (0..1000).for_each(|_| poll());
    assert_eq!(w[1].state().epoch(), epoch);
}

/// Two of three warps meet, one releases: what another block then finds at what `writer` wrote before, and whether it
/// learned of it through a third block.
fn release_after_part_of_a_barrier(writer: usize, relayed: bool) -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 3);
    let between = Block::enter(&d, record, 0, 1, 1);
    let other = Block::enter(&d, record, 0, 2, 2);
    w[writer].store(0);
    named_barrier(&w[..2], 1);
    w[0].release(8);
    if relayed {
        between.acquire(8);
        between.release(16);
    }
    other.acquire(if relayed { 16 } else { 8 });
    other.load(0);
    found(&d)
}

#[test]
fn a_release_speaks_for_those_who_met_at_part_of_a_barrier() {
    for relayed in [false, true] {
        for writer in [0, 1] {
            assert_eq!(release_after_part_of_a_barrier(writer, relayed), []);
        }
        let absent = release_after_part_of_a_barrier(2, relayed);
        assert_eq!(absent, [(RAW, INTRA)]);
    }
}

/// A warp stores, and then synchronises with another one of its block by a fence of block scope and an atomic: what that one's
/// own atomic releases to another block.
fn released_by_another_warp(fence: bool) -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = Block::enter(&d, record, 0, 1, 1);
    w[0].store(0);
    if fence {
        w[0].fence(Order::AcqRel, Scope::Cta);
        w[0].strong(Access::Rmw, Order::Relaxed, Scope::Sys, 8);
    }
    w[1].strong(Access::Rmw, Order::AcqRel, Scope::Gpu, 8);
    other.acquire(8);
    other.load(0);
    found(&d)
}

#[test]
fn an_atomic_releases_what_it_acquires_of_its_own_block() {
    assert_eq!(released_by_another_warp(true), []);
    assert_eq!(released_by_another_warp(false), [(RAW, INTRA)]);
}

/// A lock among the warps of a block, by relaxed atomics of device scope and fences of block scope, after a wider fence whose epoch
/// all of them know.
fn lock_after_a_wider_fence(fences: bool) -> Found {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 3);
    for warp in &w {
        warp.fence(Order::AcqRel, Scope::Gpu);
    }
    barrier(&w);
    for warp in &w {
        let exchange = || warp.strong(Access::Rmw, Order::Relaxed, Scope::Gpu, 8);
        let fence = || {
            if fences {
                warp.fence(Order::AcqRel, Scope::Cta);
            }
        };
        exchange();
        fence();
        warp.load(0);
        warp.store(0);
        fence();
        exchange();
    }
    found(&d)
}

#[test]
fn a_lock_by_block_fences_orders_warps_after_a_wider_fence() {
    assert_eq!(lock_after_a_wider_fence(true), []);
    assert_ne!(lock_after_a_wider_fence(false), []);
}

fn many_readers(with_barrier: bool) -> Found {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 8);
    for reader in &w {
        reader.load(0);
    }
    if with_barrier {
        barrier(&w);
    }
    w[7].store(0);
    found(&d)
}

#[test]
fn a_write_races_with_other_warps_reads() {
    assert_eq!(many_readers(false), [(WAR, INTRA)]);
    assert_eq!(many_readers(true), []);
}

#[test]
fn many_warps_reads_leave_room_for_another_blocks() {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 8);
    let other = Block::enter(&d, record, 0, 1, 1);
    other.load(0);
    for reader in &w {
        reader.load(0);
    }
    barrier(&w);
    w[0].store(0);
    assert_eq!(found(&d), [(WAR, RaceClass::Race as u32)]);
}

/// Both warps store, the first releases (after a barrier or not), another block acquires and reads `offset`.
fn release(with_barrier: bool, offset: u64) -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = Block::enter(&d, record, 0, 1, 1);
    w[0].store(0);
    w[1].store(4);
    if with_barrier {
        barrier(&w);
    }
    w[0].release(8);
    other.acquire(8);
    other.load(offset);
    found(&d)
}

#[test]
fn a_release_covers_its_own_warp() {
    assert_eq!(release(false, 0), []);
    assert_eq!(release(true, 0), []);
}

#[test]
fn a_release_covers_other_warps_after_a_barrier() {
    assert_eq!(release(true, 4), []);
    assert_eq!(release(false, 4), [(RAW, INTRA)]);
}

/// The same with a fence, and the barrier before or after it.
fn fence_release(barrier_first: bool, fence_by_all: bool) -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = Block::enter(&d, record, 0, 1, 1);
    w[0].store(0);
    w[1].store(4);
    if barrier_first {
        barrier(&w);
        w[0].fence(Order::AcqRel, Scope::Gpu);
    } else {
        w[0].fence(Order::AcqRel, Scope::Gpu);
        if fence_by_all {
            w[1].fence(Order::AcqRel, Scope::Gpu);
        }
        barrier(&w);
    }
    w[0].relaxed_store(8);
    other.relaxed_load(8);
    other.fence(Order::AcqRel, Scope::Gpu);
    other.load(0);
    other.load(4);
    found(&d)
}

#[test]
fn a_fence_before_or_after_the_barrier() {
    assert_eq!(fence_release(true, false), []);
    assert_eq!(fence_release(false, true), []);
}

/// A releases to B, B to C: what C may read of A's two warps.
fn chain(offset: u64) -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let a = warps(&d, record, 0, 0, 0, 2);
    let b = Block::enter(&d, record, 0, 1, 1);
    let c = Block::enter(&d, record, 0, 2, 2);
    a[0].store(0);
    a[1].store(4);
    a[0].release(8);
    b.acquire(8);
    b.release(12);
    c.acquire(12);
    c.load(offset);
    found(&d)
}

#[test]
fn single_warps_are_known_along_a_chain() {
    assert_eq!(chain(0), []);
    assert_eq!(chain(4), [(RAW, INTRA)]);
}

#[test]
fn a_pending_release_brings_its_warp() {
    let d = device();
    let record = d.launch(0, 0, 1);
    let a = warps(&d, record, 0, 0, 0, 2);
    let b = Block::enter(&d, record, 0, 1, 1);
    a[0].store(0);
    a[1].store(4);
    a[0].release(8);
    b.relaxed_load(8);
    b.fence(Order::Acquire, Scope::Gpu);
    b.load(0);
    assert_silent(&d);
    b.load(4);
    assert_eq!(found(&d), [(RAW, INTRA)]);
}

fn flag_inside(order: Order, scope: Scope) -> Found {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    w[0].strong(Access::Store, order, scope, 8);
    w[1].strong(Access::Load, Order::Acquire, scope, 8);
    w[1].load(0);
    found(&d)
}

#[test]
fn a_flag_orders_the_warps_of_a_block() {
    assert_eq!(flag_inside(Order::Release, Scope::Gpu), []);
    assert_eq!(flag_inside(Order::Release, Scope::Cta), []);
}

#[test]
fn a_relaxed_flag_orders_the_warps_of_a_block_with_a_fence() {
    let run = |fence: bool, scope: Scope| {
        let d = device();
        let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
        w[0].store(0);
        w[0].strong(Access::Store, Order::Release, scope, 8);
        w[1].strong(Access::Load, Order::Relaxed, scope, 8);
        if fence {
            w[1].fence(Order::Acquire, scope);
        }
        w[1].load(0);
        found(&d)
    };
    for scope in [Scope::Cta, Scope::Gpu] {
        assert_eq!(run(true, scope), []);
        assert_eq!(run(false, scope), [(RAW, INTRA)]);
    }
}

#[test]
fn a_strong_read_and_an_acquire_after_it_are_a_pattern() {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = Block::enter(&d, record, 0, 1, 1);
    w[0].store(0);
    w[0].strong(Access::Store, Order::Release, Scope::Gpu, 8);
    for reader in [w[1], other] {
        reader.relaxed_load(8);
        reader.acquire(8);
        reader.load(0);
    }
    assert_silent(&d);
}

/// One warp releases to another block, which releases to the other warp.
fn through_another_block() -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = Block::enter(&d, record, 0, 1, 1);
    w[0].store(0);
    w[0].release(8);
    other.acquire(8);
    other.release(12);
    w[1].acquire(12);
    w[1].load(0);
    found(&d)
}

#[test]
fn order_may_lead_through_another_block() {
    assert_eq!(through_another_block(), []);
}

#[test]
fn a_strong_read_of_anothers_flag_orders_no_warps() {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = Block::enter(&d, record, 0, 1, 1);
    other.release(8);
    w[0].store(0);
    w[1].acquire(8);
    w[1].load(0);
    assert_eq!(found(&d), [(RAW, INTRA)]);
}

#[test]
fn other_synchronisation_orders_warps() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    detector::block_sync(w[1].state(), true);
    w[1].load(0);
    assert_silent(&d);
}

#[test]
fn more_single_warps_than_places_add_order() {
    let d = new_device(Shape {
        num_sms: 40,
        ..Shape::default()
    });
    let record = d.launch(0, 0, 1);
    let reader = Block::enter(&d, record, 0, 0, 0);
    for i in 1..30u32 {
        let w = warps(&d, record, 0, i, i, 2);
        w[0].store(u64::from(4 * i));
        w[1].store(u64::from(4 * i + 120));
        w[0].add(Order::Release, 0);
    }
    reader.acquire(0);
    for i in 1..30u64 {
        reader.load(4 * i);
    }
    assert_silent(&d);
    let mut races = 0;
    for i in 1..30u64 {
        reader.plain(Access::Load, 4 * i + 120, 4, 100 + i as u32);
        races = d.races().len();
    }
    assert!(races > 4, "most of the places hold: {races}");
}

#[test]
fn the_next_launch_knows_the_whole_block() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    w[1].store(4);
    block_exit(&w);
    let w = warps(&d, d.launch(1, 1, 2), 1, 0, 0, 2);
    w[0].load(4);
    w[1].load(0);
    assert_silent(&d);
}

#[test]
fn a_new_tenants_warps_do_not_know_each_other() {
    let d = new_device(Shape {
        num_sms: 1,
        slots_per_sm: 1,
        ..Shape::default()
    });
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    barrier(&w);
    block_exit(&w);
    let w = warps(&d, d.launch(1, 1, 2), 1, 0, 0, 2);
    w[0].store(0);
    w[1].load(0);
    assert_eq!(found(&d), [(RAW, INTRA)]);
}

#[test]
fn nobody_tells_warps_apart_in_a_shared_slot_or_without_the_flag() {
    let d = new_device(Shape {
        num_sms: 1,
        slots_per_sm: 1,
        ..Shape::default()
    });
    let record = d.launch(0, 0, 1);
    let a = warps(&d, record, 0, 0, 0, 2);
    let b = warps(&d, record, 0, 0, 1, 2);
    a[0].store(0);
    a[1].load(0);
    b[0].store(4);
    b[1].load(4);
    assert_silent(&d);

    let d = device();
    let record = d.launch(0, 0, 1);
    d.set_launch_flags(record, 0);
    let w = warps(&d, record, 0, 0, 0, 2);
    w[0].store(0);
    w[1].load(0);
    w[0].release(8);
    assert_silent(&d);
    d.set_launch_flags(record, LaunchRecord::INTRA_BLOCK);
}

#[test]
fn a_compare_and_swap_that_wrote_races_inside_the_block() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].plain(Access::Load, 0, 4, 1);
    w[1].strong(Access::Cas, Order::AcqRel, Scope::Gpu, 0);
    let race = only(&d, RaceKind::War, RaceClass::IntraBlock);
    assert_eq!(race.prior.thread[0], 0);
}

#[test]
fn the_record_names_both_warps() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 3);
    w[2].store(0);
    w[1].load(0);
    let race = only(&d, RaceKind::Raw, RaceClass::IntraBlock);
    assert_eq!((race.prior.thread[0], race.current.thread[0]), (64, 32));
}

#[test]
fn a_non_coherent_load_of_what_the_launch_wrote_is_stale() {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    let load = Op::new(Access::Load, 4, Order::Weak, Scope::None).non_coherent();
    w[0].store(0);
    barrier(&w);
    w[1].load(0);
    assert_silent(&d);
    detector::access::<Format, _>(w[1].state(), d.real(), load, 9);
    only(&d, RaceKind::Raw, RaceClass::StaleNc);
    block_exit(&w);

    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    w[0].store(0);
    block_exit(&w);
    let w = warps(&d, d.launch(1, 1, 2), 1, 0, 0, 2);
    detector::access::<Format, _>(w[1].state(), d.real(), load, 9);
    assert_silent(&d);
}

/// Two blocks whose only order is that of their `fence.sc`.
fn sc_fences(sc_order: bool) -> Found {
    let d = new_device(Shape {
        sc_order,
        ..Shape::default()
    });
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[0].fence(Order::Sc, Scope::Gpu);
    b[1].fence(Order::Sc, Scope::Gpu);
    b[1].load(0);
    found(&d)
}

#[test]
fn the_order_of_sc_fences_counts_on_demand() {
    assert_eq!(sc_fences(true), []);
    assert_eq!(sc_fences(false), [(RAW, RaceClass::Race as u32)]);
}

#[test]
fn sc_fences_order_the_warps_of_a_block() {
    let run = |sc_order: bool, order: Order| {
        let d = new_device(Shape {
            sc_order,
            ..Shape::default()
        });
        let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
        w[0].store(0);
        w[0].fence(order, Scope::Cta);
        w[1].fence(Order::Sc, Scope::Cta);
        w[1].load(0);
        found(&d)
    };
    assert_eq!(run(true, Order::Sc), []);
    assert_eq!(run(true, Order::AcqRel), [(RAW, INTRA)]);
    assert_eq!(run(false, Order::Sc), [(RAW, INTRA)]);
}

#[test]
fn the_later_sc_fence_orders_nothing_for_the_earlier() {
    let d = new_device(Shape {
        sc_order: true,
        ..Shape::default()
    });
    let b = grid(&d, 0, 0, 1, 3);
    b[1].fence(Order::Sc, Scope::Gpu);
    b[0].store(0);
    b[0].fence(Order::Sc, Scope::Sys);
    b[2].fence(Order::AcqRel, Scope::Gpu);
    b[1].load(0);
    assert_eq!(found(&d), [(RAW, RaceClass::Race as u32)]);
    b[2].plain(Access::Load, 0, 4, 9);
    assert_eq!(found(&d).len(), 2, "a fence of another kind takes no part");
}

#[cfg(feature = "mutants")]
#[test]
fn a_missing_edge_is_noticed() {
    use crate::mutants::Edge;
    assert_ne!(
        without_edge(Edge::BarrierArrive, || store_and_load(true)),
        []
    );
    assert_ne!(
        without_edge(Edge::BarrierLeave, || store_and_load(true)),
        []
    );
    assert_ne!(without_edge(Edge::BarrierArrive, named_chain), []);
    assert_ne!(without_edge(Edge::BarrierLeave, named_chain), []);
    assert_ne!(without_edge(Edge::OwnPart, || release(false, 0)), []);
    assert_ne!(without_edge(Edge::PartialMerge, || release(false, 0)), []);
    assert_ne!(without_edge(Edge::OwnBlock, through_another_block), []);
    let inside = || flag_inside(Order::Release, Scope::Cta);
    assert_ne!(without_edge(Edge::BlockSync, inside), []);
    assert_ne!(without_edge(Edge::ScOrder, || sc_fences(true)), []);
}

/// A block fence after a wider one: what came between the two is released at block scope only. The other block's store
/// comes after the load, but its hook comes before the load's second one.
fn block_fence_after_a_wider_one(other_block_overwrites: bool) -> Found {
    let d = device();
    let record = d.launch(0, 0, 1);
    let w = warps(&d, record, 0, 0, 0, 2);
    let other = warps(&d, record, 0, 1, 1, 2);
    let relaxed = |b: Block<'_>, access, offset| {
        b.strong(access, Order::Relaxed, Scope::Sys, offset);
    };
    w[0].fence(Order::AcqRel, Scope::Gpu);
    relaxed(w[0], Access::Rmw, 4);
    w[0].store(0);
    w[0].fence(Order::AcqRel, Scope::Cta);
    relaxed(w[0], Access::Cas, 8);
    let load = Op::new(Access::Load, 4, Order::Relaxed, Scope::Sys);
    let context = detector::strong_before::<Format, _>(w[1].state(), d.real() + 8, load, 3);
    if other_block_overwrites {
        relaxed(other[0], Access::Load, 4);
        other[0].fence(Order::AcqRel, Scope::Sys);
        relaxed(other[1], Access::Store, 8);
    }
    detector::strong_after::<Format, _>(w[1].state(), d.real() + 8, load, 3, context, true);
    w[1].fence(Order::Acquire, Scope::Sys);
    w[1].store(0);
    found(&d)
}

#[test]
fn a_block_fence_releases_what_came_after_a_wider_one() {
    assert_eq!(block_fence_after_a_wider_one(false), []);
    assert_eq!(block_fence_after_a_wider_one(true), []);
}

/// Two warps meet in a way that is not followed in detail (an mbarrier, a flag in shared memory), then one stores what the
/// other loads. `before`: the storing warp has done something before they met.
fn met_and_stored(before: bool, meet_again: bool) -> Found {
    let d = device();
    let w = warps(&d, d.launch(0, 0, 1), 0, 0, 0, 2);
    if before {
        w[0].store(32);
    }
    w.iter().for_each(|w| detector::block_sync(w.state(), true));
    w[0].store(0);
    if meet_again {
        w.iter().for_each(|w| detector::block_sync(w.state(), true));
    }
    w[1].load(0);
    w[1].load(32);
    found(&d)
}

#[test]
fn what_follows_a_meeting_of_warps_is_not_known() {
    for before in [false, true] {
        assert_eq!(met_and_stored(before, false), [(RAW, INTRA)]);
        assert_eq!(met_and_stored(before, true), []);
    }
}
