//! Blocks and launches: slots, tenants, rows, sharing, the block table.

use super::*;

fn shape(slots: u32) -> Shape {
    Shape {
        num_sms: 1,
        slots_per_sm: slots,
        ..Shape::default()
    }
}

#[test]
fn a_later_launch_on_the_stream_is_ordered_after_an_earlier_one() {
    let d = device();
    let first = grid(&d, 0, 0, 1, 4);
    first
        .iter()
        .for_each(|b| b.store(4 * u64::from(b.host.block)));
    first.iter().for_each(|b| b.exit());
    let second = grid(&d, 1, 1, 2, 4);
    second
        .iter()
        .for_each(|b| b.load(4 * u64::from(3 - b.host.block)));
    second
        .iter()
        .for_each(|b| b.store(4 * u64::from(3 - b.host.block)));
    assert_silent(&d);
}

#[test]
fn a_launch_on_another_stream_is_not() {
    let d = device();
    let first = grid(&d, 0, 0, 1, 1)[0];
    first.store(0);
    first.exit();
    grid(&d, 1, 2, 3, 2)[1].load(0);
    let race = only(&d, RaceKind::Raw, RaceClass::Race);
    assert_eq!((race.prior.launch_id, race.current.launch_id), (0, 1));
}

#[test]
fn what_a_block_acquired_reaches_the_next_launch() {
    // Stream A's block releases to stream B's; a later launch on B is ordered after A's store through it.
    let d = device();
    let a = grid(&d, 0, 0, 1, 1)[0];
    a.store(0);
    a.release(64);
    let b = grid(&d, 1, 2, 3, 2);
    b[1].acquire(64);
    b.iter().for_each(|b| b.exit());
    grid(&d, 2, 3, 4, 3)[2].load(0);
    assert_silent(&d);
}

#[test]
fn two_blocks_of_one_multiprocessor_have_their_own_slots() {
    let d = new_device(shape(2));
    let record = d.launch(0, 0, 1);
    let a = Block::enter(&d, record, 0, 0, 0);
    let b = Block::enter(&d, record, 0, 0, 1);
    a.store(0);
    b.load(0);
    only(&d, RaceKind::Raw, RaceClass::Race);
}

#[test]
fn a_slots_next_tenant_does_not_inherit_the_last_ones_epochs() {
    let d = new_device(shape(1));
    let record = d.launch(0, 0, 1);
    let a = Block::enter(&d, record, 0, 0, 0);
    a.store(0);
    a.exit();
    let b = Block::enter(&d, record, 0, 0, 1);
    assert_eq!(a.state().addr, b.state().addr);
    b.load(0);
    let race = only(&d, RaceKind::Raw, RaceClass::Race);
    assert_eq!((race.prior.block[0], race.current.block[0]), (0, 1));
}

#[test]
fn a_tenant_acquires_an_earlier_tenant_of_its_slot() {
    let d = new_device(shape(1));
    let record = d.launch(0, 0, 1);
    let a = Block::enter(&d, record, 0, 0, 0);
    a.store(0);
    a.release(64);
    a.exit();
    let b = Block::enter(&d, record, 0, 0, 1);
    b.acquire(64);
    b.load(0);
    assert_silent(&d);
}

#[test]
fn blocks_beyond_the_slots_share_one_and_lose_no_order() {
    let d = new_device(shape(1));
    let first = d.launch(0, 0, 1);
    let other = Block::enter(&d, first, 0, 0, 0);
    other.store(0);
    other.exit();
    // A block of an unrelated launch holds the slot; one that inherits row 1 joins it.
    let unrelated = d.launch(1, 2, 3);
    let holder = Block::enter(&d, unrelated, 1, 0, 0);
    let second = d.launch(2, 1, 4);
    let joined = Block::enter(&d, second, 2, 0, 0);
    joined.load(0);
    assert_silent(&d);
    assert_eq!(d.counters().shared_slot, 1);
    holder.exit();
    joined.exit();
    assert_eq!(d.thread_state(0).users, 0);
    // What the sharing blocks did is published in both launches' rows.
    assert!(d.row(3)[0] >= 2 && d.row(4)[0] >= 3);
}

#[test]
fn fences_of_sharing_blocks_do_not_undo_each_other() {
    // The second block's fence has the later epoch; the first block's must not put the older one back.
    let d = new_device(Shape {
        num_sms: 2,
        slots_per_sm: 1,
        ..Shape::default()
    });
    let record = d.launch(0, 0, 1);
    let a = Block::enter(&d, record, 0, 0, 0);
    let b = Block::enter(&d, record, 0, 0, 1);
    let reader = Block::enter(&d, record, 0, 1, 2);
    let stale = a.state().close_epoch();
    b.store(0);
    b.fence(Order::AcqRel, Scope::Gpu);
    let fence_gpu =
        a.state().addr + core::mem::offset_of!(crate::layout::ThreadState, fence_gpu) as u64;
    crate::machine::Machine::max32(a.host, fence_gpu, stale);
    b.relaxed_store(64);
    reader.acquire(64);
    reader.load(0);
    assert_silent(&d);
}

#[test]
fn shared_slots_name_no_block() {
    let d = new_device(Shape {
        num_sms: 2,
        slots_per_sm: 1,
        ..Shape::default()
    });
    let record = d.launch(0, 0, 1);
    let a = Block::enter(&d, record, 0, 0, 0);
    let _b = Block::enter(&d, record, 0, 0, 1);
    a.store(0);
    let c = Block::enter(&d, record, 0, 1, 2);
    c.load(0);
    let known = only(&d, RaceKind::Raw, RaceClass::Race).prior.known;
    assert_eq!(known & !crate::layout::RaceSide::OP, 0);
}

#[test]
fn the_last_thread_gives_the_slot_back() {
    let d = device();
    let record = d.launch(0, 0, 1);
    let threads: Vec<Host> = (0..8).map(|t| d.thread(0, 0, 0, t, 8)).collect();
    block::enter(threads[0], record);
    let id = State::at(threads[0], block::state(threads[0])).thread_id();
    for &thread in &threads {
        assert_eq!(d.thread_state(id).users, 1);
        block::exit(thread);
    }
    assert_eq!(d.thread_state(id).users, 0);
    assert_ne!(d.row(1)[id as usize], 0);
}

#[test]
fn a_block_without_room_in_shared_memory_keeps_its_state_in_the_table() {
    let d = device();
    let record = d.launch(0, 0, 1);
    let enter = |block: u32| {
        let mut host = d.thread(0, block % 4, block, 0, 1);
        host.room = false;
        block::enter(host, record);
        Block { device: &d, host }
    };
    // More blocks than the table's hash has distinct starting places, in and out.
    for round in 0..40 {
        let blocks: Vec<Block> = (0..8).map(|i| enter(8 * round + i)).collect();
        let states: Vec<u64> = blocks.iter().map(|b| block::state(b.host)).collect();
        let mut distinct = states.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 8);
        blocks.iter().for_each(|b| b.exit());
    }
    assert_silent(&d);
}

#[test]
fn epochs_at_the_formats_end_saturate_without_a_false_alarm() {
    let d = new_device(shape(2));
    let record = d.launch(0, 0, 1);
    let a = Block::enter(&d, record, 0, 0, 0);
    let b = Block::enter(&d, record, 0, 0, 1);
    for _ in 0..70_000 {
        a.release(64);
    }
    a.store(0);
    b.load(0);
    if !REFERENCE {
        // 32 bits go on.
        only(&d, RaceKind::Raw, RaceClass::Race);
        return;
    }
    assert_silent(&d);
    assert!(d.counters().saturated > 0);
    a.release(64);
    b.acquire(64);
    b.load(0);
    assert_silent(&d);
}
