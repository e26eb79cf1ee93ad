//! Weak accesses: the three kinds, spans of every size and alignment, sampling, repeats.

use super::*;

#[test]
fn a_store_then_another_blocks_load_is_a_raw_with_both_sides() {
    let d = device();
    let b = grid(&d, 7, 0, 1, 2);
    b[0].store(8);
    b[1].load(8);
    let race = only(&d, RaceKind::Raw, RaceClass::Race);
    assert_eq!(race.address, d.real() + 8);
    assert_eq!(
        (
            race.current.block[0],
            race.current.site,
            race.current.launch_id
        ),
        (1, 1, 7)
    );
    assert_eq!((race.prior.block[0], race.prior.launch_id), (0, 7));
    assert_eq!(race.prior.op.access(), Access::Store);
}

#[test]
fn a_load_then_another_blocks_store_is_a_war() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].load(0);
    b[1].store(0);
    assert_eq!(
        only(&d, RaceKind::War, RaceClass::Race).prior.op.access(),
        Access::Load
    );
}

#[test]
fn two_blocks_stores_are_a_waw() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[1].store(0);
    only(&d, RaceKind::Waw, RaceClass::Race);
}

#[test]
fn reads_alone_and_other_words_are_silent() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].load(0);
    b[1].load(0);
    b[0].store(4);
    b[1].store(8);
    b[0].load(4);
    assert_silent(&d);
}

#[test]
fn a_block_does_not_race_with_itself() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 1);
    b[0].store(0);
    b[0].load(0);
    b[0].store(0);
    b[0].add(Order::Relaxed, 0);
    b[0].load(0);
    assert_silent(&d);
}

/// Every size and offset within a 32-byte window against every other: they conflict exactly when they share a word
/// (`reference`) or a byte (`wide`).
#[test]
fn spans_conflict_exactly_when_they_share_a_word_or_a_byte() {
    for first_size in [1u32, 2, 4, 8, 16] {
        for first in 0..8u64 {
            for size in [1u32, 2, 4, 8, 16] {
                for offset in 0..24u64 {
                    let d = new_device(Shape {
                        race_capacity: 4,
                        launches: 1,
                        rows: 2,
                        ..Shape::default()
                    });
                    let b = grid(&d, 0, 0, 1, 2);
                    b[0].plain(Access::Store, first, first_size, 1);
                    b[1].plain(Access::Store, offset, size, 2);
                    let unit = if REFERENCE { 4 } else { 1 };
                    let words = |at: u64, n: u32| at / unit..=(at + u64::from(n) - 1) / unit;
                    let (a, c) = (words(first, first_size), words(offset, size));
                    let share = a.start() <= c.end() && c.start() <= a.end();
                    assert_eq!(
                        !d.races().is_empty(),
                        share,
                        "{first}+{first_size} against {offset}+{size}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_address_is_the_first_conflicting_words() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(12);
    b[1].plain(Access::Store, 0, 16, 2);
    assert_eq!(
        only(&d, RaceKind::Waw, RaceClass::Race).address,
        d.real() + 12
    );
}

#[test]
fn repeats_are_counted_once_per_place() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    for i in 0..10 {
        b[0].store(4 * i);
        b[1].load(4 * i);
    }
    assert_eq!(only(&d, RaceKind::Raw, RaceClass::Race).count, 10);
    b[1].plain(Access::Load, 0, 4, 99);
    // The word is known to be racy; another site is another finding only if its own check fails.
    assert_eq!(d.races().len(), 2);
}

#[test]
fn a_full_table_of_findings_drops_and_counts() {
    let d = new_device(Shape {
        race_capacity: 4,
        ..Shape::default()
    });
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    for site in 0..20 {
        b[1].plain(Access::Load, 0, 4, site);
    }
    assert_eq!(d.races().len(), 4);
    assert_eq!(d.counters().dropped, 16);
}

#[test]
fn the_first_four_readers_are_all_remembered() {
    for reader in 0..4 {
        let d = new_device(Shape {
            num_sms: 8,
            ..Shape::default()
        });
        let b = grid(&d, 0, 0, 1, 5);
        (0..4).for_each(|r| b[r].load(0));
        // The writer is ordered after the other three.
        for r in 0..4 {
            if r != reader {
                b[r].release(64 + 4 * r as u64);
                b[4].acquire(64 + 4 * r as u64);
            }
        }
        b[4].store(0);
        assert_eq!(
            only(&d, RaceKind::War, RaceClass::Race).prior.block[0],
            reader as u32
        );
    }
}

#[test]
fn accesses_outside_all_shadow_are_counted_not_checked() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].plain(Access::Store, 1 << 40, 4, 1);
    b[1].plain(Access::Store, 1 << 40, 4, 1);
    assert_silent(&d);
    assert_eq!((d.counters().unchecked, d.counters().checked), (2, 0));
}

#[test]
fn module_variables_have_shadow() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    let (start, size) = d.variable();
    let op = Op::new(Access::Store, 4, Order::Weak, Scope::None);
    detector::access::<Format, _>(b[0].state(), start + size - 4, op, 1);
    detector::access::<Format, _>(b[1].state(), start, op, 1);
    assert_silent(&d);
    detector::access::<Format, _>(b[1].state(), start + size - 4, op, 1);
    assert_eq!(
        only(&d, RaceKind::Waw, RaceClass::Race).address,
        start + size - 4
    );
}
