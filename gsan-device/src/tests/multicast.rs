//! `multimem` as accesses of all memory that is bound.

use super::*;
use crate::multicast;

/// A multicast address that nothing else has.
const AT: u64 = 1 << 40;

/// A device that has the words at 0 and at 128 bound there.
fn bound() -> Device {
    let d = device();
    d.bind_multicast(AT, 64, 0);
    d.bind_multicast(AT, 64, 128);
    d
}

impl Block<'_> {
    fn multimem(self, access: Access, order: Order, at: u64) {
        let scope = if order == Order::Weak {
            Scope::None
        } else {
            Scope::Sys
        };
        let op = Op::new(access, 4, order, scope);
        let context = multicast::before::<Format, _>(self.state(), at, op, 5);
        if access == Access::Load && order != Order::Weak {
            multicast::after::<Format, _>(self.state(), at, op, 5, context);
        }
    }
}

#[test]
fn a_store_is_one_of_every_memory() {
    for other in [0, 128] {
        let d = bound();
        let b = grid(&d, 0, 0, 1, 2);
        b[0].multimem(Access::Store, Order::Weak, AT);
        b[1].load(other);
        assert_eq!(
            only(&d, RaceKind::Raw, RaceClass::Race).address,
            d.real() + other
        );
        b.into_iter().for_each(Block::exit);
    }
    let d = bound();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].multimem(Access::Store, Order::Weak, AT);
    // Neighbours.
    [4, 124, 132].into_iter().for_each(|other| b[1].load(other));
    assert_silent(&d);
}

#[test]
fn a_weak_read_sees_what_lies_in_every_memory() {
    for other in [0, 128] {
        let d = bound();
        let b = grid(&d, 0, 0, 1, 2);
        b[0].store(other + 8);
        b[1].multimem(Access::Load, Order::Weak, AT + 8);
        only(&d, RaceKind::Raw, RaceClass::Race);
    }
}

#[test]
fn a_reduction_releases_in_every_memory() {
    for (order, races) in [(Order::Release, 0), (Order::Relaxed, 1)] {
        for other in [0, 128] {
            let d = bound();
            let b = grid(&d, 0, 0, 1, 2);
            b[0].store(200);
            b[0].multimem(Access::Rmw, order, AT);
            b[1].strong(Access::Load, Order::Acquire, Scope::Sys, other);
            b[1].load(200);
            assert_eq!(d.races().len(), races, "{order:?} {other}");
        }
    }
}

#[test]
fn a_read_acquires_from_every_memory() {
    for (order, races) in [(Order::Acquire, 0), (Order::Relaxed, 1)] {
        for other in [0, 128] {
            let d = bound();
            let b = grid(&d, 0, 0, 1, 2);
            b[0].store(200);
            b[0].strong(Access::Store, Order::Release, Scope::Sys, other);
            b[1].multimem(Access::Load, order, AT);
            b[1].load(200);
            assert_eq!(d.races().len(), races, "{order:?} {other}");
        }
    }
}

#[test]
fn reductions_by_both_ways_do_not_race() {
    let d = bound();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].multimem(Access::Rmw, Order::Relaxed, AT);
    b[1].strong(Access::Rmw, Order::Relaxed, Scope::Sys, 128);
    b[1].multimem(Access::Rmw, Order::Relaxed, AT);
    assert_silent(&d);
    b[0].plain(Access::Load, 128, 4, 1);
    assert_eq!(d.races().len(), 1);
}

#[test]
fn what_nothing_is_known_of_is_counted_and_its_order_followed() {
    let d = bound();
    let b = grid(&d, 0, 0, 1, 2);
    // Half of it is bound.
    b[0].multimem(Access::Store, Order::Weak, AT + 62);
    b[0].store(200);
    b[0].multimem(Access::Rmw, Order::Release, AT + 64);
    b[1].multimem(Access::Load, Order::Acquire, AT + 64);
    b[1].load(200);
    assert_eq!(d.counters().unknown_multicasts, 3);
    assert_silent(&d);
}

#[cfg(feature = "mutants")]
#[test]
fn a_missing_edge_is_noticed() {
    use crate::mutants::Edge;
    let found = || {
        let d = bound();
        let b = grid(&d, 0, 0, 1, 2);
        b[0].multimem(Access::Store, Order::Weak, AT);
        b[1].load(128);
        d.races().len()
    };
    assert_eq!(found(), 1);
    assert_eq!(without_edge(Edge::Multicast, found), 0);
}
