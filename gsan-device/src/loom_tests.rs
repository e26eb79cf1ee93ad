//! Model checks: every interleaving (with a bounded number of preemptions) of the protocols that several threads share.
//!
//! `cargo xtask test` runs these with `--cfg loom`.

use crate::block;
use crate::clock::{Publication, State};
use crate::detector;
use crate::host::{Device, Host, Shape};
use crate::layout::{Access, Op, Order, ScalarClock, Scope, WideCell};
use crate::wide::Wide as Format;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const SMALL: Shape = Shape {
    num_sms: 2,
    slots_per_sm: 1,
    cell: size_of::<WideCell>() as u64,
    clock_buffer_size: 2,
    real_size: 16,
    race_capacity: 2,
    launches: 2,
    rows: 4,
    sc_order: false,
};

fn check(f: impl Fn() + Sync + Send + 'static) {
    check_bounded(2, f);
}

fn check_bounded(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model.check(f);
}

fn state(host: Host) -> State<Host> {
    State::at(host, block::state(host))
}

fn plain(host: Host, access: Access, addr: u64) {
    detector::access::<Format, _>(
        state(host),
        addr,
        Op::new(access, 4, Order::Weak, Scope::None),
        access as u32,
    );
}

fn strong(host: Host, access: Access, order: Order, addr: u64, user: impl FnOnce()) {
    let op = Op::new(access, 4, order, Scope::Gpu);
    let context = detector::strong_before::<Format, _>(state(host), addr, op, 9);
    user();
    if access != Access::Store {
        detector::strong_after::<Format, _>(state(host), addr, op, 9, context, true);
    }
}

#[test]
fn two_unordered_stores_are_found_by_exactly_one_side() {
    check(|| {
        let d = Device::new(SMALL);
        let record = d.launch(0, 0, 1);
        let hosts = [d.thread(0, 0, 0, 0, 1), d.thread(0, 1, 1, 0, 1)];
        hosts.iter().for_each(|&h| block::enter(h, record));
        let real = d.real();
        let other = thread::spawn(move || plain(hosts[1], Access::Store, real));
        plain(hosts[0], Access::Store, real);
        other.join().unwrap();
        let races = d.races();
        assert_eq!(races.len(), 1);
        assert_eq!(races[0].count, 1);
    });
}

/// The flag itself is the user's memory: the hooks stand around it as in instrumented code.
fn message(fences: bool) {
    check(move || {
        let d = Device::new(SMALL);
        let record = d.launch(0, 0, 1);
        let (writer, reader) = (d.thread(0, 0, 0, 0, 1), d.thread(0, 1, 1, 0, 1));
        block::enter(writer, record);
        block::enter(reader, record);
        let (data, flag_addr) = (d.real(), d.real() + 8);
        let flag = Arc::new(AtomicU32::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || {
            plain(writer, Access::Store, data);
            if fences {
                detector::fence::<Format, _>(
                    state(writer),
                    Op::new(Access::Fence, 0, Order::AcqRel, Scope::Gpu),
                );
                loom::sync::atomic::fence(Ordering::AcqRel);
                strong(writer, Access::Store, Order::Relaxed, flag_addr, || {
                    theirs.store(1, Ordering::Relaxed)
                });
            } else {
                strong(writer, Access::Store, Order::Release, flag_addr, || {
                    theirs.store(1, Ordering::Release)
                });
            }
        });
        let mut seen = 0;
        if fences {
            strong(reader, Access::Load, Order::Relaxed, flag_addr, || {
                seen = flag.load(Ordering::Relaxed)
            });
            detector::fence::<Format, _>(
                state(reader),
                Op::new(Access::Fence, 0, Order::AcqRel, Scope::Gpu),
            );
            loom::sync::atomic::fence(Ordering::AcqRel);
        } else {
            strong(reader, Access::Load, Order::Acquire, flag_addr, || {
                seen = flag.load(Ordering::Acquire)
            });
        }
        if seen == 1 {
            plain(reader, Access::Load, data);
        }
        other.join().unwrap();
        assert!(d.races().is_empty(), "{:?}", d.races());
    });
}

#[test]
fn whoever_reads_the_flag_finds_the_token() {
    message(false);
}

#[test]
fn whoever_reads_a_relaxed_flag_and_fences_finds_the_token() {
    message(true);
}

#[test]
fn two_threads_of_a_block_make_its_own_clock_once() {
    own_clock_once(1);
}

#[test]
fn two_threads_of_a_block_take_what_is_known_of_one_warp() {
    own_clock_once(64);
}

/// The release comes from a block of that many threads.
fn own_clock_once(threads: u32) {
    check_bounded(1, move || {
        let d = Device::new(SMALL);
        let record = d.launch(0, 0, 1);
        let writer = d.thread(0, 0, 0, 0, threads);
        block::enter(writer, record);
        let published = state(writer);
        let epoch = published.close_epoch();
        let token = published.publish(Publication {
            own: Some(epoch),
            join: None,
            epoch,
            event: ScalarClock::EMPTY,
            attempt: false,
        });
        let id = published.thread_id();
        let threads = [d.thread(0, 1, 1, 0, 2), d.thread(0, 1, 1, 1, 2)];
        block::enter(threads[0], record);
        // Whichever thread does the work: once its acquire is over, each knows.
        let both = move |host: Host| {
            let me = state(host);
            me.acquire(me.lookup(id, token));
            assert!(me.happened_before(id, epoch, 0));
        };
        let other = thread::spawn(move || both(threads[1]));
        both(threads[0]);
        other.join().unwrap();
    });
}

#[test]
fn two_threads_of_a_block_import_what_is_pending() {
    check_bounded(1, || {
        let d = Device::new(SMALL);
        let record = d.launch(0, 0, 1);
        let writer = d.thread(0, 0, 0, 0, 1);
        block::enter(writer, record);
        plain(writer, Access::Store, d.real());
        strong(writer, Access::Store, Order::Release, d.real() + 8, || {});
        let threads = [d.thread(0, 1, 1, 0, 2), d.thread(0, 1, 1, 1, 2)];
        block::enter(threads[0], record);
        let (data, flag) = (d.real(), d.real() + 8);
        strong(threads[0], Access::Load, Order::Relaxed, flag, || {});
        let both = move |host: Host| {
            detector::fence::<Format, _>(
                state(host),
                Op::new(Access::Fence, 0, Order::Acquire, Scope::Gpu),
            );
            plain(host, Access::Load, data);
        };
        let other = thread::spawn(move || both(threads[1]));
        both(threads[0]);
        other.join().unwrap();
        assert!(d.races().is_empty());
    });
}

#[test]
fn entering_and_leaving_blocks_never_lose_a_slot() {
    check(|| {
        let d = Device::new(Shape {
            num_sms: 1,
            ..SMALL
        });
        let record = d.launch(0, 0, 1);
        let (a, b) = (d.thread(0, 0, 0, 0, 1), d.thread(0, 0, 1, 0, 1));
        let live = move |host: Host| {
            block::enter(host, record);
            block::exit(host);
        };
        let other = thread::spawn(move || live(b));
        live(a);
        other.join().unwrap();
        assert_eq!(d.thread_state(0).users, 0);
        assert_eq!(d.row(1)[0], d.thread_state(0).epoch);
        // The slot can be taken again, alone.
        let c = d.thread(0, 0, 2, 0, 1);
        block::enter(c, record);
        assert_eq!(d.thread_state(0).users, 1);
        assert!(d.counters().shared_slot <= 1);
    });
}

#[test]
fn the_last_of_two_threads_publishes() {
    check(|| {
        let d = Device::new(SMALL);
        let record = d.launch(0, 0, 1);
        let threads = [d.thread(0, 0, 0, 0, 2), d.thread(0, 0, 0, 1, 2)];
        block::enter(threads[0], record);
        let other = thread::spawn(move || block::exit(threads[1]));
        block::exit(threads[0]);
        other.join().unwrap();
        assert_eq!((d.thread_state(0).users, d.row(1)[0]), (0, 1));
    });
}
