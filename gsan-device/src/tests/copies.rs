//! Bulk copies: what is under way is neither forgotten nor taken as done.

use super::*;
use crate::copies;
use crate::layout::{LaunchRecord, PendingCopy, TensorMap, ThreadState};
use crate::machine::Machine;

const STORE: Op = Op::new(Access::Store, 16, Order::Weak, Scope::None);
const LOAD: Op = Op::new(Access::Load, 16, Order::Weak, Scope::None);
const ADD: Op = Op::new(Access::Rmw, 4, Order::Relaxed, Scope::Gpu);
const FLAG: u64 = 200;

impl Block<'_> {
    fn copy(self, op: Op, offset: u64, bytes: u32) {
        let addr = self.device.real() + offset;
        copies::issue::<Format, _>(self.state(), addr, bytes, op, 7, 0);
    }

    fn commit(self) {
        copies::commit(self.state());
    }

    fn wait(self, groups: u32) {
        copies::wait::<Format, _>(self.state(), groups);
    }

    /// A copy to shared memory that completes on an mbarrier.
    fn fetch(self, offset: u64, bytes: u32, phase: u32) {
        let addr = self.device.real() + offset;
        copies::issue::<Format, _>(self.state(), addr, bytes, LOAD, 7, phase);
    }

    fn waited(self, phase: u32) {
        copies::waited::<Format, _>(self.state(), phase);
        detector::block_sync(self.state(), true);
    }

    /// As the runtime's hook has it.
    fn leaves(self) {
        copies::leave::<Format, _>(self.state());
        self.exit();
    }
}

/// One block copies and raises a flag, another reads, and both leave.
fn handoff(op: Op, waits: bool) -> usize {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].copy(op, 0, 64);
    b[0].commit();
    if waits {
        b[0].wait(0);
    }
    b[0].release(FLAG);
    b[1].acquire(FLAG);
    b[1].load(32);
    b[0].leaves();
    b[1].leaves();
    d.races().len()
}

#[test]
fn a_store_that_was_waited_for_is_ordered() {
    assert_eq!(handoff(STORE, true), 0);
    assert_eq!(handoff(ADD, true), 0);
}

#[test]
fn a_store_that_nobody_waited_for_is_not() {
    assert_eq!(handoff(STORE, false), 1);
    // The reference cell knows no second look at a reduction.
    assert_eq!(handoff(ADD, false), usize::from(!REFERENCE));
}

/// Two groups, of which the older is waited for.
fn older_group(offset: u64) -> usize {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    for at in [0, 64] {
        b[0].copy(STORE, at, 32);
        b[0].commit();
    }
    b[0].wait(1);
    b[0].release(FLAG);
    b[1].acquire(FLAG);
    b[1].load(offset);
    b[0].leaves();
    d.races().len()
}

#[test]
fn a_wait_for_older_groups_leaves_the_younger() {
    assert_eq!(older_group(16), 0);
    assert_eq!(older_group(80), 1);
}

#[test]
fn what_is_not_committed_is_not_waited_for() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].copy(STORE, 0, 16);
    b[0].wait(0);
    b[0].release(FLAG);
    b[1].acquire(FLAG);
    b[1].load(0);
    b[0].leaves();
    only(&d, RaceKind::War, RaceClass::Race);
}

#[test]
fn every_byte_is_checked_and_no_other() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[1].load(12);
    b[1].load(80);
    b[0].copy(STORE, 16, 64);
    assert_silent(&d);
    for offset in (16..80).step_by(4) {
        b[1].load(offset);
    }
    assert_eq!(d.races().len(), 1);
    assert_eq!(d.races()[0].count, 16);
}

#[test]
fn a_load_is_a_read_when_it_is_issued() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].copy(LOAD, 0, 32);
    b[1].load(0);
    assert_silent(&d);
    b[1].store(16);
    only(&d, RaceKind::War, RaceClass::Race);
}

/// A thread of the block that is another warp's.
fn other_warp(b: Block<'_>) -> Block<'_> {
    let mut other = b;
    other.host.thread = 40;
    other
}

/// A launch of two blocks of two warps.
fn two_warps(d: &Device, flags: u32) -> Vec<Block<'_>> {
    let record = d.launch(0, 0, 1);
    d.set_launch_flags(record, flags);
    (0..2)
        .map(|b| {
            let host = d.thread(0, b, b, 0, 64);
            block::enter(host, record);
            Block { device: d, host }
        })
        .collect()
}

const PHASE_0: u32 = 0x40 | PendingCopy::PHASE;
const PHASE_1: u32 = PHASE_0 | 1;

/// One warp issues a read, another waits for it; `early`: the first one raises the flag, not the second.
fn fetched(early: bool, issued: u32, waited: u32) -> usize {
    let d = device();
    let b = two_warps(&d, LaunchRecord::INTRA_BLOCK);
    let consumer = other_warp(b[0]);
    b[0].fetch(0, 64, issued);
    if early {
        b[0].release(FLAG);
    }
    consumer.waited(waited);
    if !early {
        consumer.release(FLAG);
    }
    b[1].acquire(FLAG);
    b[1].store(32);
    copies::leave::<Format, _>(b[0].state());
    d.races().len()
}

#[test]
fn a_source_may_be_overwritten_when_somebody_has_waited() {
    assert_eq!(fetched(false, PHASE_0, PHASE_0), 0);
    assert_eq!(
        fetched(false, PHASE_1, PHASE_0 | PendingCopy::ANY_PARITY),
        0
    );
    assert_eq!(fetched(false, PHASE_1, 0), 0);
}

#[test]
fn a_source_is_not_free_when_the_copy_is_issued() {
    assert_eq!(fetched(true, PHASE_0, PHASE_0), 1);
    // Where the phase is not known, the issue is all.
    assert_eq!(fetched(true, 0, PHASE_0), 0);
}

#[test]
fn a_wait_for_another_phase_says_nothing() {
    assert_eq!(fetched(false, PHASE_1, PHASE_0), 1);
    assert_eq!(fetched(false, PHASE_0 + 8, PHASE_0), 1);
}

#[test]
fn a_launch_whose_waits_have_no_hooks_has_the_issue_alone() {
    let d = device();
    let b = two_warps(&d, 0);
    b[0].fetch(0, 64, PHASE_0);
    b[0].release(FLAG);
    b[1].acquire(FLAG);
    b[1].store(32);
    b[0].leaves();
    assert_silent(&d);
}

#[test]
fn bulk_groups_do_not_end_reads() {
    let d = device();
    let b = two_warps(&d, LaunchRecord::INTRA_BLOCK);
    b[0].fetch(0, 16, PHASE_0);
    b[0].commit();
    b[0].wait(0);
    b[0].release(FLAG);
    b[1].acquire(FLAG);
    b[1].store(0);
    b[0].waited(PHASE_0);
    assert_eq!(kinds(&d), [RaceKind::Raw]);
}

/// Whoever has waited must not go on, and tell others, before the read is on record that another thread is about to record.
#[test]
fn a_waiter_stays_until_the_read_is_on_record() {
    use core::sync::atomic::{AtomicBool, Ordering};
    let d = device();
    let b = two_warps(&d, LaunchRecord::INTRA_BLOCK);
    b[0].fetch(0, 16, PHASE_0);
    let (host, me) = (b[0].host, b[0].state());
    let ring = Shape::default().clock_buffer_size;
    let state = me.addr + ThreadState::copies_offset(me.num_threads(), ring);
    assert_eq!(host.load32(state), 1);
    host.store32(state, 1 | PendingCopy::BUSY);
    let gone = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other_warp(b[0]).waited(PHASE_1);
            other_warp(b[0]).waited(PHASE_0);
            gone.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(core::time::Duration::from_millis(30));
        assert!(!gone.load(Ordering::SeqCst));
        host.store32(state, 0);
    });
    assert!(gone.load(Ordering::SeqCst));
}

/// A ring of phases: nothing is left behind, and no epoch is used that nobody needs.
#[test]
fn phases_use_no_epochs() {
    let d = device();
    let b = two_warps(&d, LaunchRecord::INTRA_BLOCK);
    let before = b[0].state().epoch();
    for i in 0..65_536 {
        b[0].waited(PHASE_0 | i & 1);
    }
    assert_eq!(b[0].state().epoch(), before);
}

#[test]
fn blocks_add_to_the_same_words() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 3);
    for b in &b {
        b.copy(ADD, 0, 32);
        b.commit();
    }
    for b in &b {
        b.wait(0);
        b.leaves();
    }
    assert_silent(&d);
}

#[test]
fn a_sum_that_was_observed_before_the_wait_may_be_overwritten() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].copy(ADD, 0, 16);
    b[0].commit();
    // It has read the sum in a loop, and starts the next one.
    b[1].relaxed_load(0);
    b[1].store(0);
    b[0].wait(0);
    b[0].leaves();
    if !REFERENCE {
        assert_silent(&d);
    }
}

#[test]
fn where_there_is_no_room_the_issue_counts() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    for _ in 0..=ThreadState::COPIES {
        b[0].copy(STORE, 0, 16);
    }
    assert_eq!(d.counters().early_copies, 1);
    b[0].commit();
    b[0].wait(0);
    b[0].copy(STORE, 0, 16);
    assert_eq!(d.counters().early_copies, 1);
    b[0].leaves();
    assert_silent(&d);
}

#[test]
fn the_next_tenant_has_nothing_under_way() {
    let d = device();
    let first = grid(&d, 0, 0, 1, 1)[0];
    first.copy(STORE, 0, 16);
    // It ends without its hook.
    first.exit();
    let second = grid(&d, 1, 1, 2, 1)[0];
    second.commit();
    second.wait(0);
    second.leaves();
    assert_silent(&d);
}

#[test]
fn more_groups_than_are_told_apart_are_old() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 1)[0];
    b.copy(STORE, 0, 16);
    for _ in 0..PendingCopy::GROUPS + 3 {
        b.commit();
    }
    b.wait(PendingCopy::GROUPS);
    b.copy(STORE, 64, 16);
    b.leaves();
    assert_silent(&d);
}

/// 10 × 6 words at byte 0, 40 bytes a row; boxes of 4 × 2.
fn tensor(d: &Device) -> u64 {
    let mut map = TensorMap {
        address: d.real(),
        extents: [10, 6, 1, 1, 1],
        strides: [40, 0, 0, 0],
        boxes: [4, 2, 1, 1, 1],
        steps: [1, 1, 1, 1, 1],
        rank: 2,
        element: 4,
        ..TensorMap::default()
    };
    map.bits[3] = 99;
    d.add_tensor_map(&map)
}

/// The words that a copy has read: whose overwriting is reported.
fn words_read(shape: u32, corner: [i32; 5]) -> Vec<u64> {
    (0..60)
        .filter(|word| {
            let d = device();
            let b = grid(&d, 0, 0, 1, 2);
            let map = tensor(&d);
            copies::issue_box::<Format, _>(b[0].state(), map, shape, corner, LOAD, 7, 0);
            b[1].store(4 * word);
            !d.races().is_empty()
        })
        .collect()
}

#[test]
fn a_box_has_the_tensors_rows() {
    assert_eq!(
        words_read(0, [3, 2, 0, 0, 0]),
        [23, 24, 25, 26, 33, 34, 35, 36]
    );
}

#[test]
fn what_lies_outside_the_tensor_is_not_touched() {
    assert_eq!(words_read(0, [-2, -1, 0, 0, 0]), [0, 1]);
    assert_eq!(words_read(0, [8, 5, 0, 0, 0]), [58, 59]);
    assert_eq!(words_read(0, [10, 0, 0, 0, 0]), Vec::<u64>::new());
    assert_eq!(words_read(0, [i32::MIN; 5]), Vec::<u64>::new());
    assert_eq!(words_read(0, [i32::MAX; 5]), Vec::<u64>::new());
}

#[test]
fn a_map_that_nobody_told_of_is_counted() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 1)[0];
    // Any memory will do for a map of other bits.
    copies::issue_box::<Format, _>(b.state(), d.real(), 0, [0; 5], STORE, 7, 0);
    tensor(&d);
    copies::issue_box::<Format, _>(b.state(), d.real(), 0, [0; 5], STORE, 7, 0);
    assert_eq!(d.counters().unknown_maps, 2);
    b.leaves();
    assert_silent(&d);
}

/// A `cp.async` of four bytes, a flag before or behind the wait for it, and another block that writes.
fn small_copy(early: bool) -> usize {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    let op = Op::new(Access::Load, 4, Order::Weak, Scope::None).asynchronous();
    detector::access::<Format, _>(b[0].state(), d.real(), op, 7);
    if early {
        b[0].release(FLAG);
    }
    copies::landed(b[0].state());
    if !early {
        b[0].release(FLAG);
    }
    b[1].acquire(FLAG);
    b[1].store(0);
    d.races().len()
}

#[test]
fn a_small_copy_is_over_when_it_was_waited_for() {
    assert_eq!(small_copy(false), 0);
    // The reference cell has no epochs to spare.
    assert_eq!(small_copy(true), usize::from(!REFERENCE));
}

/// The thread leaves without a wait; the next launch, on the same slot or another, writes.
#[test]
fn a_small_copy_is_over_when_its_kernel_is() {
    for sm in [0, 1] {
        let d = device();
        let first = grid(&d, 0, 0, 1, 1)[0];
        let op = Op::new(Access::Load, 4, Order::Weak, Scope::None).asynchronous();
        detector::access::<Format, _>(first.state(), d.real(), op, 7);
        copies::landed(first.state());
        first.exit();
        let record = d.launch(1, 1, 2);
        let second = Block::enter(&d, record, 1, sm, 0);
        second.store(0);
        assert_silent(&d);
    }
}

/// The warps of a block: what one has waited for, the others may overwrite once they have met at a barrier (or in a way that is
/// not followed in detail, as at an mbarrier), and not before.
#[test]
fn a_small_copy_and_a_barrier() {
    for (waits, at_mbarrier) in [(true, false), (false, false), (true, true), (false, true)] {
        let d = device();
        let b = two_warps(&d, LaunchRecord::INTRA_BLOCK);
        let other = other_warp(b[0]);
        let op = Op::new(Access::Load, 4, Order::Weak, Scope::None).asynchronous();
        detector::access::<Format, _>(b[0].state(), d.real(), op, 7);
        if waits {
            copies::landed(b[0].state());
        }
        if at_mbarrier {
            detector::block_sync(other.state(), true);
        } else {
            for b in [b[0], other] {
                detector::barrier_before(b.state(), 0, 0);
            }
            detector::barrier_after(other.state(), 0, 0);
        }
        other.store(0);
        assert_eq!(d.races().len(), usize::from(!waits && !REFERENCE));
    }
}

#[test]
fn waits_for_small_copies_use_no_epochs() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 1)[0];
    let before = b.state().epoch();
    for _ in 0..1000 {
        copies::landed(b.state());
    }
    assert_eq!(b.state().epoch(), before);
}

#[cfg(feature = "mutants")]
#[test]
fn a_missing_edge_is_noticed() {
    use crate::mutants::Edge;
    assert_ne!(without_edge(Edge::CopyWait, || handoff(STORE, true)), 0);
    assert_eq!(without_edge(Edge::CopyExit, || handoff(STORE, false)), 0);
    assert_eq!(without_edge(Edge::CopyGroups, || older_group(80)), 0);
    let waits = || fetched(false, PHASE_0, PHASE_0);
    assert_ne!(without_edge(Edge::CopyBarrier, waits), 0);
    if !REFERENCE {
        assert_ne!(without_edge(Edge::CopyLanded, || small_copy(false)), 0);
        assert_eq!(without_edge(Edge::CopyAhead, || small_copy(true)), 0);
    }
}

/// 8 channels of 4 bytes, 4 × 3 pixels, 2 images; windows from column −1 to the last one, rows −1 to the last but two; every
/// second column.
fn windows(d: &Device) -> u64 {
    let mut map = TensorMap {
        address: d.real(),
        extents: [8, 4, 3, 2, 1],
        strides: [32, 128, 384, 0],
        boxes: [8, 7, 1, 1, 1],
        steps: [1, 2, 1, 1, 1],
        rank: 4,
        element: 4,
        lower: [-1, -1, 0],
        upper: [0, -2, 0],
        windows: 1,
        ..TensorMap::default()
    };
    map.bits[3] = 77;
    d.add_tensor_map(&map)
}

#[test]
fn windows_walk_through_the_images() {
    // As `gsan-sim`'s test of the same map: (2,2,0), (4,2,0), (0,1,1), (2,1,1), (4,1,1), (0,2,1), (2,2,1). Column 4 is outside.
    let pixels = [(2, 2, 0), (0, 1, 1), (2, 1, 1), (0, 2, 1), (2, 2, 1)];
    let mut wanted: Vec<u64> = pixels
        .iter()
        .flat_map(|(w, h, n)| (0..8).map(move |c| n * 96 + h * 32 + w * 8 + c))
        .collect();
    wanted.sort_unstable();
    let found: Vec<u64> = (0..192)
        .filter(|word| {
            let d = new_device(Shape {
                real_size: 768,
                ..Shape::default()
            });
            let b = grid(&d, 0, 0, 1, 2);
            let map = windows(&d);
            let offsets = 1 | 2 << 16;
            copies::issue_windows::<Format, _>(
                b[0].state(),
                map,
                offsets,
                [0, 1, 0, 0, 0],
                LOAD,
                7,
                0,
            );
            b[1].store(4 * word);
            !d.races().is_empty()
        })
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_map_of_the_other_kind_is_none() {
    let d = new_device(Shape {
        real_size: 768,
        ..Shape::default()
    });
    let b = grid(&d, 0, 0, 1, 1)[0];
    let (boxes, of_windows) = (tensor(&d), windows(&d));
    copies::issue_windows::<Format, _>(b.state(), boxes, 0, [0; 5], STORE, 7, 0);
    copies::issue_box::<Format, _>(b.state(), of_windows, 0, [0; 5], STORE, 7, 0);
    assert_eq!(d.counters().unknown_maps, 2);
}

#[test]
fn a_mask_leaves_bytes_out() {
    // Of every 16 bytes the first word, and the last two bytes.
    for mask in [0xc00f, 0, 0xffff] {
        let found: Vec<u64> = (0..8)
            .filter(|word| {
                let d = device();
                let b = grid(&d, 0, 0, 1, 2);
                copies::issue_masked::<Format, _>(b[0].state(), d.real(), 32, STORE, 7, mask);
                b[1].load(4 * word);
                !d.races().is_empty()
            })
            .collect();
        let wanted: &[u64] = match mask {
            0 => &[],
            0xffff => &[0, 1, 2, 3, 4, 5, 6, 7],
            _ => &[0, 3, 4, 7],
        };
        assert_eq!(found, wanted);
    }
    if !REFERENCE {
        let d = device();
        let b = grid(&d, 0, 0, 1, 2);
        copies::issue_masked::<Format, _>(b[0].state(), d.real(), 32, STORE, 7, 0xc00f);
        b[1].plain(Access::Load, 12, 2, 1);
        assert_silent(&d);
        b[1].plain(Access::Load, 14, 1, 1);
        assert_eq!(d.races().len(), 1);
    }
}
