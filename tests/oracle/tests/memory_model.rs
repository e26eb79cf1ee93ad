//! The oracle on traces written by hand: shapes whose answer the memory model's text gives.

use gsan_device::layout::Order::{AcqRel, Acquire, Relaxed, Release, Sc, Weak};
use gsan_device::layout::Scope::{Cta, Gpu, None as Plain};
use gsan_device::layout::{Order, Scope};
use gsan_oracle::oracle::{Model, Oracle};
use gsan_oracle::program::{Place, Space};
use gsan_oracle::trace::{Access, Item, ThreadInfo, Trace};

#[derive(Clone)]
struct Run(Trace);

impl Run {
    /// One thread for each entry, in that block.
    fn new(blocks: &[usize]) -> Run {
        let threads = blocks.iter().enumerate().map(|(i, &b)| ThreadInfo {
            kernel: 0,
            block: b,
            global_block: b,
            cluster: b,
            clustered: false,
            fenced: false,
            thread: i,
            linear: 32 * i as u32,
        });
        Run(Trace {
            threads: threads.collect(),
            ..Trace::default()
        })
    }

    fn access(
        mut self,
        thread: usize,
        offset: u32,
        rw: (bool, bool),
        order: Order,
        scope: Scope,
    ) -> Run {
        let id = self.0.items.len();
        let access = Access {
            thread,
            index: id,
            copy: None,
            place: Place {
                space: Space::Checked,
                offset,
                size: 4,
            },
            reads: rw.0,
            writes: rw.1,
            reduction: false,
            attempt: false,
            order,
            scope,
        };
        self.0.items.push(Item::Access(id, access));
        self
    }

    fn st(self, thread: usize, offset: u32, order: Order, scope: Scope) -> Run {
        self.access(thread, offset, (false, true), order, scope)
    }

    fn ld(self, thread: usize, offset: u32, order: Order, scope: Scope) -> Run {
        self.access(thread, offset, (true, false), order, scope)
    }

    fn atom(self, thread: usize, offset: u32, order: Order) -> Run {
        self.access(thread, offset, (true, true), order, Gpu)
    }

    fn weak_st(self, thread: usize, offset: u32) -> Run {
        self.st(thread, offset, Weak, Plain)
    }

    fn weak_ld(self, thread: usize, offset: u32) -> Run {
        self.ld(thread, offset, Weak, Plain)
    }

    fn fence(mut self, thread: usize, order: Order) -> Run {
        self.0.items.push(Item::Fence(thread, order, Gpu));
        self
    }

    fn barrier(mut self, threads: &[usize]) -> Run {
        for &t in threads {
            self.0.items.push(Item::Arrive(t, 0));
        }
        self.complete(0, threads)
    }

    fn arrive(mut self, thread: usize, id: u32) -> Run {
        self.0.items.push(Item::Arrive(thread, id));
        self
    }

    fn complete(mut self, id: u32, waiters: &[usize]) -> Run {
        self.0.items.push(Item::Barrier {
            block: 0,
            id,
            waiters: waiters.to_vec(),
        });
        self
    }

    fn races(&self) -> usize {
        Oracle::new(&self.0, Model::PTX).pairs().len()
    }
}

#[test]
fn message_passing() {
    let mp = |release, acquire, scope| {
        Run::new(&[0, 1])
            .weak_st(0, 0)
            .st(0, 8, release, scope)
            .ld(1, 8, acquire, scope)
            .weak_ld(1, 0)
            .races()
    };
    assert_eq!(mp(Release, Acquire, Gpu), 0);
    assert_eq!(mp(Relaxed, Acquire, Gpu), 1);
    assert_eq!(mp(Release, Relaxed, Gpu), 1);
    // The flag itself races, and orders nothing.
    assert_eq!(mp(Release, Acquire, Cta), 2);
}

#[test]
fn fences_around_relaxed_accesses() {
    let mp = |release, acquire| {
        Run::new(&[0, 1])
            .weak_st(0, 0)
            .fence(0, release)
            .st(0, 8, Relaxed, Gpu)
            .ld(1, 8, Relaxed, Gpu)
            .fence(1, acquire)
            .weak_ld(1, 0)
            .races()
    };
    assert_eq!(mp(Release, Acquire), 0);
    assert_eq!(mp(AcqRel, AcqRel), 0);
    assert_eq!(mp(Acquire, Acquire), 1);
    assert_eq!(mp(Release, Release), 1);
}

#[test]
fn a_release_sequence_goes_through_read_modify_writes_and_own_writes_only() {
    let sequence = |by: usize, rmw: bool| {
        let run = Run::new(&[0, 1, 2]).weak_st(0, 0).st(0, 8, Release, Gpu);
        let run = if rmw {
            run.atom(by, 8, Relaxed)
        } else {
            run.st(by, 8, Relaxed, Gpu)
        };
        run.ld(2, 8, Acquire, Gpu).weak_ld(2, 0).races()
    };
    assert_eq!(sequence(1, true), 0);
    assert_eq!(sequence(1, false), 1);
    assert_eq!(sequence(0, true), 0);
    assert_eq!(sequence(0, false), 0);
}

#[test]
fn observation_orders_its_location_also_for_whoever_comes_after_the_observer() {
    let run = || {
        Run::new(&[0, 1, 2])
            .weak_st(0, 0)
            .st(0, 8, Relaxed, Gpu)
            .ld(1, 8, Relaxed, Gpu)
    };
    assert_eq!(run().weak_st(1, 8).races(), 0);
    assert_eq!(run().weak_ld(1, 0).races(), 1);
    let handed_on = run().st(1, 12, Release, Gpu).ld(2, 12, Acquire, Gpu);
    assert_eq!(handed_on.weak_st(2, 8).races(), 0);
    // Against the store, and against the load.
    assert_eq!(run().weak_st(2, 8).races(), 2);
}

#[test]
fn a_barrier_orders_a_blocks_threads_and_what_follows_from_them() {
    let run = |barrier: bool| {
        let run = Run::new(&[0, 0, 1]).weak_st(0, 0);
        let run = if barrier { run.barrier(&[0, 1]) } else { run };
        run.st(1, 8, Release, Gpu)
            .ld(2, 8, Acquire, Gpu)
            .weak_ld(2, 0)
            .races()
    };
    assert_eq!(run(true), 0);
    assert_eq!(run(false), 1);
}

#[test]
fn who_arrives_without_waiting_publishes_and_learns_nothing() {
    // Thread 0 arrives, thread 1 waits.
    let handed = |early: bool| {
        let run = Run::new(&[0, 0]);
        let run = if early { run.weak_st(0, 0) } else { run };
        let run = run.arrive(0, 3);
        let run = if early { run } else { run.weak_st(0, 0) };
        run.arrive(1, 3).complete(3, &[1]).weak_ld(1, 0).races()
    };
    assert_eq!(handed(true), 0);
    assert_eq!(handed(false), 1);
    let back = Run::new(&[0, 0])
        .weak_st(1, 0)
        .arrive(1, 3)
        .arrive(0, 3)
        .complete(3, &[1])
        .weak_ld(0, 0);
    assert_eq!(back.races(), 1);
}

#[test]
fn barriers_of_other_numbers_order_nothing() {
    let run = Run::new(&[0, 0, 0])
        .weak_st(0, 0)
        .arrive(0, 1)
        .arrive(1, 2)
        .arrive(2, 2)
        .complete(2, &[1, 2]);
    assert_eq!(run.weak_ld(1, 0).races(), 1);
}

#[test]
fn a_blocks_warps_synchronise_at_block_scope() {
    let run = |scope, barrier: bool| {
        let run = Run::new(&[0, 0, 1]).weak_st(0, 0).st(0, 8, Release, Cta);
        let run = run.ld(1, 8, Acquire, Cta);
        assert_eq!(run.clone().weak_ld(1, 0).races(), 0);
        // What the block's scope has ordered is published further.
        let run = if barrier { run.barrier(&[0, 1]) } else { run };
        run.st(1, 12, Release, scope)
            .ld(2, 12, Acquire, scope)
            .weak_ld(2, 0)
            .races()
    };
    assert_eq!(run(Gpu, false), 0);
    assert_eq!(run(Gpu, true), 0);
    // The flag itself races, too.
    assert_eq!(run(Cta, true), 2);
}

#[test]
fn sc_fences_synchronise_in_their_order() {
    let run = Run::new(&[0, 1])
        .weak_st(0, 0)
        .fence(0, Sc)
        .fence(1, Sc)
        .weak_ld(1, 0);
    assert_eq!(run.races(), 0);
    let model = Model {
        sc_fences: false,
        ..Model::PTX
    };
    assert_eq!(Oracle::new(&run.0, model).pairs().len(), 1);
}
