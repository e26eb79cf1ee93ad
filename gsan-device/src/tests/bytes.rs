//! What the wide cell knows and the reference cell does not: bytes, widths, both sides' places.

use super::*;

#[test]
fn neighbouring_bytes_and_halves_are_no_conflict() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 4);
    for i in 0..4u64 {
        b[i as usize].plain(Access::Store, i, 1, 1);
        b[i as usize].plain(Access::Load, i, 1, 1);
    }
    b[0].plain(Access::Store, 4, 2, 1);
    b[1].plain(Access::Store, 6, 2, 1);
    assert_silent(&d);
    b[1].plain(Access::Store, 5, 2, 2);
    assert_eq!(
        only(&d, RaceKind::Waw, RaceClass::Race).address,
        d.real() + 5
    );
}

#[test]
fn the_address_is_the_first_common_byte() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].plain(Access::Store, 2, 1, 1);
    b[1].plain(Access::Load, 0, 4, 2);
    assert_eq!(
        only(&d, RaceKind::Raw, RaceClass::Race).address,
        d.real() + 2
    );
}

#[test]
fn both_sides_have_site_thread_and_size() {
    let d = device();
    let record = d.launch(3, 0, 1);
    let threads: Vec<Host> = (0..8).map(|t| d.thread(3, 0, 5, t, 8)).collect();
    block::enter(threads[0], record);
    let writer = Block {
        device: &d,
        host: threads[6],
    };
    writer.plain(Access::Store, 0, 8, 77);
    let reader = Block::enter(&d, record, 3, 1, 6);
    reader.plain(Access::Load, 4, 4, 88);
    let race = only(&d, RaceKind::Raw, RaceClass::Race);
    assert_eq!((race.prior.site, race.current.site), (77, 88));
    assert_eq!(
        (
            race.prior.thread[0],
            race.prior.block[0],
            race.prior.launch_id
        ),
        (6, 5, 3)
    );
    assert_eq!(
        (race.prior.op.size(), race.prior.op.access()),
        (8, Access::Store)
    );
    use crate::layout::RaceSide;
    let all = RaceSide::LAUNCH
        | RaceSide::BLOCK
        | RaceSide::LINEAR_THREAD
        | RaceSide::SITE
        | RaceSide::OP;
    assert_eq!(race.prior.known, all);
}

#[test]
fn atomics_of_different_width_on_one_word_are_mixed_width() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].strong_at(d.real(), Access::Rmw, Order::Relaxed, Scope::Gpu, 8, true);
    b[1].strong_at(
        d.real() + 4,
        Access::Load,
        Order::Relaxed,
        Scope::Gpu,
        4,
        true,
    );
    only(&d, RaceKind::Raw, RaceClass::MixedWidth);
}

#[test]
fn the_missing_half_is_named() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[0].release(64);
    b[1].relaxed_load(64);
    b[1].load(0);
    only(&d, RaceKind::Raw, RaceClass::MissingAcquire);

    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[0].relaxed_store(64);
    b[1].acquire(64);
    b[1].load(0);
    only(&d, RaceKind::Raw, RaceClass::MissingRelease);
}

/// The flag in the only finding: address from the buffer's start, block, order.
fn flag(d: &Device) -> (u64, u32, Order) {
    let races = d.races();
    let [race] = &races[..] else {
        panic!("{races:?}");
    };
    assert_ne!(race.flag.known, 0, "{race:?}");
    (
        race.flag_address - d.real(),
        race.flag.block[0],
        race.flag.op.order(),
    )
}

#[test]
fn the_access_that_lacks_its_order_is_named_among_several_flags() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 3);
    b[0].store(0);
    b[0].release(64);
    b[2].release(72);
    b[1].relaxed_load(64);
    b[1].relaxed_load(72);
    b[1].load(0);
    assert_eq!(flag(&d), (64, 1, Order::Relaxed));

    let d = device();
    let b = grid(&d, 0, 0, 1, 3);
    b[0].store(0);
    b[0].relaxed_store(64);
    b[2].relaxed_store(72);
    b[1].acquire(64);
    b[1].acquire(72);
    b[1].load(0);
    assert_eq!(flag(&d), (64, 0, Order::Relaxed));
}

#[test]
fn a_finding_without_half_a_pattern_names_no_flag() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[1].load(0);
    assert_eq!(d.races()[0].flag.known, 0);
}

/// A write of eight bytes, then a release, which the other block acquires with four.
fn release_after_a_wider_write(released_at: u64, size: u32) -> Vec<RaceRecord> {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    let store = |order, size| {
        let addr = d.real() + released_at;
        b[0].strong_at(addr, Access::Store, order, Scope::Gpu, size, true);
    };
    b[0].strong_at(d.real(), Access::Store, Order::Release, Scope::Gpu, 8, true);
    store(Order::Release, size);
    b[1].acquire(0);
    d.races()
}

#[test]
fn an_earlier_write_of_another_width_is_released_by_a_later_one() {
    assert_eq!(release_after_a_wider_write(0, 4), []);
    let same_width = release_after_a_wider_write(0, 8);
    assert_eq!(same_width.len(), 1);
    assert_eq!(same_width[0].class, RaceClass::MixedWidth as u32);
    // Elsewhere: not what is acquired here.
    assert_eq!(release_after_a_wider_write(64, 4).len(), 1);
}

#[test]
fn a_reader_in_a_crowd_does_not_push_out_the_writer() {
    let d = new_device(Shape {
        num_sms: 16,
        ..Shape::default()
    });
    let b = grid(&d, 0, 0, 1, 16);
    b[0].store(0);
    (1..16).for_each(|i| b[i].load(0));
    // Every reader has found the one write.
    assert_eq!(only(&d, RaceKind::Raw, RaceClass::Race).count, 15);
}

#[test]
fn a_failed_compare_and_swap_leaves_only_its_read() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].strong_at(d.real(), Access::Cas, Order::AcqRel, Scope::Gpu, 4, false);
    let cell = d.wide_cell(0);
    assert!(cell.records.iter().all(|r| !r.writes()));
    b[1].load(0);
    assert_silent(&d);
}

#[test]
fn elements_of_vectors_and_packed_types_are_scalar_accesses() {
    // v2.u32 against u32, and f16x2 against f16: element by element they overlap completely.
    for (wide, elements, narrow, offset) in [(8, 2, 4, 4), (4, 2, 2, 2)] {
        let d = device();
        let b = grid(&d, 0, 0, 1, 2);
        let vector = Op::new(Access::Store, wide, Order::Relaxed, Scope::Gpu).elements(elements);
        detector::strong_before::<Format, _>(b[0].state(), d.real(), vector, 1);
        let addr = d.real() + offset;
        b[1].strong_at(addr, Access::Load, Order::Relaxed, Scope::Gpu, narrow, true);
        assert_silent(&d);
    }
}
