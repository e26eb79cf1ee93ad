//! The snapshot ring: overwritten tokens only ever add order.

use super::*;

#[test]
fn an_overwritten_token_imports_the_writers_clock_and_is_counted() {
    let d = new_device(Shape {
        clock_buffer_size: 4,
        ..Shape::default()
    });
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    b[0].release(64);
    (0..10).for_each(|i| b[0].release(68 + 4 * (i % 4)));
    b[1].acquire(64);
    b[1].load(0);
    assert_silent(&d);
    // By the acquire; where the write's clock is the token, by the check of the flag itself as well.
    assert_eq!(d.counters().ring_wrap, if REFERENCE { 2 } else { 1 });
}

#[test]
fn an_overwritten_token_of_an_earlier_tenant_imports_everything() {
    let d = new_device(Shape {
        num_sms: 2,
        slots_per_sm: 1,
        clock_buffer_size: 2,
        ..Shape::default()
    });
    // The earlier tenant knew the store of a launch that the next tenant knows nothing of.
    let first = d.launch(0, 0, 1);
    let writer = Block::enter(&d, first, 0, 1, 0);
    writer.store(0);
    writer.exit();
    let second = d.launch(1, 1, 2);
    let early = Block::enter(&d, second, 1, 0, 0);
    early.release(64);
    early.exit();
    let third = d.launch(2, 3, 4);
    let late = Block::enter(&d, third, 2, 0, 0);
    (0..4).for_each(|i| late.release(68 + 4 * i));
    let reader = Block::enter(&d, third, 2, 1, 1);
    reader.acquire(64);
    reader.load(0);
    assert_silent(&d);
}

#[test]
fn tokens_beyond_sixteen_bits_are_found() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    for _ in 0..66_000 {
        b[0].release(68);
    }
    b[0].store(0);
    b[0].release(64);
    b[1].acquire(64);
    assert_eq!(d.counters().ring_wrap, 0);
    b[1].load(0);
    assert_silent(&d);
}

#[test]
fn a_spin_loop_merges_a_token_once() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].release(64);
    let head = d.thread_state(b[0].state().thread_id()).ring_head;
    let epoch = b[1].state().epoch();
    for _ in 0..1000 {
        b[1].acquire(64);
        b[1].relaxed_load(64);
    }
    assert_eq!(d.thread_state(b[0].state().thread_id()).ring_head, head);
    assert_eq!(b[1].state().epoch(), epoch);
}
