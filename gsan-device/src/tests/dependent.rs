//! Dependent launches behind dependent launches: what the second one knows before it has waited.

use super::*;
use crate::dependent;

/// What a block of the launch in the middle does.
#[derive(Clone, Copy)]
enum Step {
    Trigger,
    Wait,
    Exit,
    Release,
    Acquire,
}
use Step::{Acquire, Exit, Release, Trigger, Wait};

/// Launch 0 stores; the two blocks of launch 1, which started at once, take their steps, and launch 0 has ended when the first of them
/// has come past its wait. Then launch 2 begins, which loads before it waits.
fn middle(steps: &[(usize, Step)]) -> usize {
    let d = device();
    let first = grid(&d, 0, 0, 1, 1)[0];
    first.store(0);
    let record = d.launch(1, 0, 2);
    d.set_wait_row(record, 1);
    let blocks = [1, 2].map(|i| Block::enter(&d, record, 1, i, i - 1));
    let mut ended = false;
    for &(block, step) in steps {
        let block = blocks[block];
        match step {
            Trigger => dependent::launch_dependents(block.state()),
            Wait => {
                if !ended {
                    first.exit();
                }
                ended = true;
                block::grid_wait(block.state());
            }
            Exit => block.exit(),
            Release => block.release(8),
            Acquire => block.acquire(8),
        }
    }
    let record = d.launch(2, 0, 3);
    d.chain(record, 2);
    Block::enter(&d, record, 2, 3, 0).load(0);
    d.races().len()
}

#[test]
fn who_has_waited_before_the_next_launch_may_begin_tells_it() {
    assert_eq!(
        middle(&[(0, Wait), (0, Trigger), (1, Wait), (1, Trigger)]),
        0
    );
    assert_eq!(middle(&[(0, Wait), (1, Wait), (1, Exit), (0, Trigger)]), 0);
    // To end is as good.
    assert_eq!(middle(&[(0, Wait), (0, Exit), (1, Wait), (1, Exit)]), 0);
}

#[test]
fn who_lets_it_begin_first_does_not() {
    assert_eq!(
        middle(&[(0, Trigger), (1, Trigger), (0, Wait), (1, Wait)]),
        1
    );
    assert_eq!(
        middle(&[(0, Trigger), (0, Wait), (1, Trigger), (1, Wait)]),
        1
    );
    // Only the block's first one counts.
    let again = [(0, Trigger), (0, Wait), (0, Trigger), (1, Trigger)];
    assert_eq!(middle(&again), 1);
    assert_eq!(middle(&[(0, Trigger), (1, Exit), (0, Wait), (0, Exit)]), 1);
}

#[test]
fn one_block_that_has_waited_holds_the_next_launch_back() {
    assert_eq!(
        middle(&[(0, Trigger), (1, Wait), (1, Trigger), (0, Wait)]),
        0
    );
    assert_eq!(middle(&[(0, Exit), (1, Wait), (1, Exit)]), 0);
}

#[test]
fn so_does_one_that_has_acquired_from_one_that_has() {
    let steps = [
        (0, Trigger),
        (0, Wait),
        (0, Release),
        (1, Acquire),
        (1, Trigger),
    ];
    assert_eq!(middle(&steps), 0);
    let steps = [
        (0, Trigger),
        (0, Release),
        (0, Wait),
        (1, Acquire),
        (1, Trigger),
    ];
    assert_eq!(middle(&steps), 1);
}

/// Launches 0 to 3, one block each. Launches 1 and 2 wait before they let the next one begin, or after; launch 3 loads, before it
/// waits, what launch 0 has stored, and what launch 1 has.
fn four(second_waits_first: bool, third_waits_first: bool) -> [bool; 2] {
    let load = |offset: u64| {
        let d = device();
        let mut before = grid(&d, 0, 0, 1, 1)[0];
        before.store(0);
        for (launch, waits_first) in [(1, second_waits_first), (2, third_waits_first)] {
            let record = d.launch(launch, 0, launch + 1);
            if launch == 1 {
                d.set_wait_row(record, launch);
            } else {
                d.chain(record, launch);
            }
            let block = Block::enter(&d, record, u64::from(launch), launch, 0);
            if waits_first {
                before.exit();
                block::grid_wait(block.state());
            }
            dependent::launch_dependents(block.state());
            if !waits_first {
                before.exit();
                block::grid_wait(block.state());
            }
            if launch == 1 {
                block.store(4);
            }
            before = block;
        }
        let record = d.launch(3, 0, 4);
        d.chain(record, 3);
        Block::enter(&d, record, 3, 3, 0).load(offset);
        d.races().is_empty()
    };
    [load(0), load(4)]
}

#[test]
fn what_a_launch_began_with_it_hands_on() {
    assert_eq!(four(true, true), [true, true]);
    assert_eq!(four(true, false), [true, false]);
    assert_eq!(four(false, true), [true, true]);
    assert_eq!(four(false, false), [false, false]);
}

#[test]
fn a_launch_that_never_waits_keeps_what_it_began_with() {
    let d = device();
    let older = grid(&d, 0, 0, 1, 1)[0];
    older.store(0);
    older.exit();
    // Launch 1 begins after that one, publishes in a row of its own, and never waits for what is beside it.
    let record = d.launch(1, 1, 2);
    d.join_row(2, 0, true);
    d.set_wait_row(record, 3);
    Block::enter(&d, record, 1, 1, 0).exit();
    grid(&d, 2, 2, 4, 1)[0].load(0);
    assert_silent(&d);
}

#[cfg(feature = "mutants")]
#[test]
fn a_missing_edge_is_noticed() {
    use crate::mutants::Edge;
    let steps = [(0, Wait), (0, Trigger), (1, Wait), (1, Trigger)];
    assert_ne!(without_edge(Edge::Handover, || middle(&steps)), 0);
    let steps = [(0, Trigger), (1, Trigger), (0, Wait), (1, Wait)];
    assert_eq!(without_edge(Edge::EarlyTrigger, || middle(&steps)), 0);
}
