//! Fences around relaxed operations: both halves, both sides, scopes.

use super::*;
use Access::{Load, Rmw, Store};

/// Message passing with optional fences; whether it is silent.
fn message(release: Option<(Order, Scope)>, acquire: Option<(Order, Scope)>, flag: Scope) -> bool {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    if let Some((order, scope)) = release {
        b[0].fence(order, scope);
    }
    b[0].strong(Store, Order::Relaxed, flag, 64);
    b[1].strong(Load, Order::Relaxed, flag, 64);
    if let Some((order, scope)) = acquire {
        b[1].fence(order, scope);
    }
    b[1].load(0);
    d.races().is_empty()
}

#[test]
fn both_fences_order_and_each_missing_one_is_a_race() {
    for scope in [Scope::Gpu, Scope::Sys] {
        for (release, acquire) in [
            (Order::Release, Order::Acquire),
            (Order::AcqRel, Order::AcqRel),
            (Order::Sc, Order::Sc),
        ] {
            assert!(message(
                Some((release, scope)),
                Some((acquire, scope)),
                Scope::Sys
            ));
            assert!(!message(None, Some((acquire, scope)), Scope::Sys));
            assert!(!message(Some((release, scope)), None, Scope::Sys));
        }
    }
    assert!(!message(None, None, Scope::Gpu));
}

/// The class of the finding when the flag is written without a release, and polled before it is written; `acquire`: the
/// fence behind the poll, if there is one.
fn class_without_release(acquire: Option<(Order, Scope)>) -> u32 {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[1].relaxed_load(64);
    b[0].relaxed_store(64);
    b[1].relaxed_load(64);
    if let Some((order, scope)) = acquire {
        b[1].fence(order, scope);
    }
    b[1].load(0);
    let races = d.races();
    assert_eq!(races.len(), 1);
    assert_eq!(
        races[0].flag.known != 0,
        races[0].class == RaceClass::MissingRelease as u32
    );
    races[0].class
}

#[test]
fn a_flag_without_a_release_is_said_where_a_fence_acquires() {
    let missing = RaceClass::MissingRelease as u32;
    let race = RaceClass::Race as u32;
    assert_eq!(
        class_without_release(Some((Order::AcqRel, Scope::Gpu))),
        missing
    );
    assert_eq!(
        class_without_release(Some((Order::Acquire, Scope::Sys))),
        missing
    );
    assert_eq!(
        class_without_release(Some((Order::Release, Scope::Gpu))),
        race
    );
    assert_eq!(
        class_without_release(Some((Order::AcqRel, Scope::Cta))),
        race
    );
    assert_eq!(class_without_release(None), race);
}

/// A fence, a store, and a flag written relaxed, with a second fence or without; the class of what is found, if anything.
fn store_behind_the_fence(second_fence: bool, store_first: bool) -> Option<u32> {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].load(32);
    b[0].fence(Order::AcqRel, Scope::Gpu);
    if store_first {
        b[0].store(0);
        if second_fence {
            b[0].fence(Order::AcqRel, Scope::Gpu);
        }
    }
    b[0].relaxed_store(64);
    if !store_first {
        b[0].store(0);
    }
    b[1].strong(Load, Order::Acquire, Scope::Gpu, 64);
    b[1].load(0);
    let races = d.races();
    races.first().map(|race| {
        let named = race.class == RaceClass::MissingRelease as u32;
        assert_eq!(race.flag.known != 0, named);
        if named {
            assert_eq!(race.flag_address, d.real() + 64);
        }
        race.class
    })
}

#[test]
fn a_fence_before_the_store_releases_it_not() {
    assert_eq!(store_behind_the_fence(true, true), None);
    assert_eq!(
        store_behind_the_fence(false, true),
        Some(RaceClass::MissingRelease as u32)
    );
    // Here the flag is written too early, and no order of it would help.
    assert_eq!(
        store_behind_the_fence(false, false),
        Some(RaceClass::Race as u32)
    );
}

#[test]
fn what_an_earlier_tenant_read_is_not_said_of_a_later_one() {
    let d = new_device(Shape {
        num_sms: 2,
        slots_per_sm: 1,
        ..Shape::default()
    });
    let first = grid(&d, 0, 0, 1, 2);
    first[0].relaxed_store(64);
    first[1].relaxed_load(64);
    first.iter().for_each(|b| b.exit());
    let second = grid(&d, 0, 1, 1, 2);
    second[0].store(0);
    second[1].fence(Order::AcqRel, Scope::Gpu);
    second[1].load(0);
    only(&d, RaceKind::Raw, RaceClass::Race);
}

#[test]
fn block_fences_order_nothing_between_blocks() {
    assert!(!message(
        Some((Order::AcqRel, Scope::Cta)),
        Some((Order::AcqRel, Scope::Gpu)),
        Scope::Gpu
    ));
    assert!(!message(
        Some((Order::AcqRel, Scope::Gpu)),
        Some((Order::AcqRel, Scope::Cta)),
        Scope::Gpu
    ));
}

#[test]
fn a_fence_of_the_wrong_kind_is_no_fence() {
    assert!(!message(
        Some((Order::Acquire, Scope::Gpu)),
        Some((Order::Acquire, Scope::Gpu)),
        Scope::Gpu
    ));
    assert!(!message(
        Some((Order::Release, Scope::Gpu)),
        Some((Order::Release, Scope::Gpu)),
        Scope::Gpu
    ));
}

#[test]
fn a_fence_covers_what_came_before_it_only() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].fence(Order::AcqRel, Scope::Gpu);
    b[0].store(0);
    b[0].relaxed_store(64);
    b[1].acquire(64);
    b[1].load(0);
    only(&d, RaceKind::Raw, RaceClass::MissingRelease);
}

#[test]
fn an_acquire_fence_before_the_read_imports_nothing() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[0].release(64);
    b[1].fence(Order::AcqRel, Scope::Gpu);
    b[1].relaxed_load(64);
    b[1].load(0);
    only(&d, RaceKind::Raw, RaceClass::MissingAcquire);
}

#[test]
fn fences_pair_with_releases_and_acquires() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[0].fence(Order::AcqRel, Scope::Gpu);
    b[0].relaxed_store(64);
    b[1].acquire(64);
    b[1].load(0);
    b[1].store(4);
    b[1].release(68);
    b[0].relaxed_load(68);
    b[0].fence(Order::AcqRel, Scope::Gpu);
    b[0].load(4);
    assert_silent(&d);
}

#[test]
fn several_flags_read_then_one_fence() {
    let d = new_device(Shape {
        num_sms: 8,
        ..Shape::default()
    });
    let b = grid(&d, 0, 0, 1, 5);
    for i in 0..4u64 {
        b[i as usize].store(4 * i);
        b[i as usize].fence(Order::AcqRel, Scope::Gpu);
        b[i as usize].relaxed_store(64 + 4 * i);
    }
    (0..4).for_each(|i| b[4].relaxed_load(64 + 4 * i));
    b[4].fence(Order::AcqRel, Scope::Gpu);
    (0..4).for_each(|i| b[4].load(4 * i));
    assert_silent(&d);
    // What becomes pending later needs a fence of its own.
    b[0].store(16);
    b[0].fence(Order::AcqRel, Scope::Gpu);
    b[0].relaxed_store(80);
    b[4].relaxed_load(80);
    b[4].load(16);
    only(&d, RaceKind::Raw, RaceClass::MissingAcquire);
}

/// threadfence reduction: store, fence, relaxed add; the last block reads all and resets the counter.
#[test]
fn last_block_reduction_with_fences() {
    for acquire_fence in [true, false] {
        let d = new_device(Shape {
            num_sms: 8,
            ..Shape::default()
        });
        let b = grid(&d, 0, 0, 1, 6);
        for i in 0..6 {
            b[i].store(4 * i as u64);
            b[i].fence(Order::Sc, Scope::Gpu);
            b[i].strong(Rmw, Order::Relaxed, Scope::Gpu, 64);
        }
        if acquire_fence {
            b[5].fence(Order::Sc, Scope::Gpu);
        }
        (0..6).for_each(|i| b[5].load(4 * i));
        b[5].store(64);
        assert_eq!(d.races().is_empty(), acquire_fence);
    }
}

#[test]
fn many_relaxed_writes_after_one_fence_use_one_snapshot() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 1);
    b[0].fence(Order::AcqRel, Scope::Gpu);
    let before = d.thread_state(b[0].state().thread_id()).ring_head;
    (0..16).for_each(|i| b[0].strong(Rmw, Order::Relaxed, Scope::Gpu, 64 + 4 * i));
    assert_eq!(
        d.thread_state(b[0].state().thread_id()).ring_head,
        before + 1
    );
}
