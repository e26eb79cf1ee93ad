//! The oracle on traces written by hand: copies, mbarriers, clusters' barriers and graphs.

use gsan_device::layout::{Order, Scope};
use gsan_oracle::oracle::{Model, Oracle};
use gsan_oracle::program::{
    AsyncCopy, Graph, HostStep, Mbarrier, Mechanism, Node, Place, Space, Transfer,
};
use gsan_oracle::trace::{Access, CopyInfo, Item, ThreadInfo, Trace};

const DATA: Place = Place {
    space: Space::Checked,
    offset: 64,
    size: 16,
};
const PUT: Transfer = Transfer::Put(1);
const FETCH: Transfer = Transfer::Fetch(Mbarrier {
    rank: None,
    index: 0,
});
const ADD: Transfer = Transfer::Reduce(1);

#[derive(Clone)]
struct Run(Trace);

impl Run {
    /// One thread for each entry, in that block; two blocks are a cluster.
    fn new(blocks: &[usize]) -> Run {
        let threads = blocks.iter().enumerate().map(|(i, &b)| ThreadInfo {
            kernel: 0,
            block: b,
            global_block: b,
            cluster: b / 2,
            clustered: true,
            fenced: false,
            thread: i,
            linear: 32 * i as u32,
        });
        Run(Trace {
            threads: threads.collect(),
            ..Trace::default()
        })
    }

    fn item(mut self, item: Item) -> Run {
        self.0.items.push(item);
        self
    }

    fn access(self, thread: usize, place: Place, writes: bool, order: Order) -> Run {
        let id = self.0.items.len();
        let strong = order != Order::Weak;
        let access = Access {
            thread,
            index: id,
            copy: None,
            place,
            reads: !writes,
            writes,
            reduction: false,
            attempt: false,
            order,
            scope: if strong { Scope::Gpu } else { Scope::None },
        };
        self.item(Item::Access(id, access))
    }

    fn word() -> Place {
        Place { size: 4, ..DATA }
    }

    fn st(self, thread: usize) -> Run {
        self.access(thread, Self::word(), true, Order::Weak)
    }

    fn ld(self, thread: usize) -> Run {
        self.access(thread, Self::word(), false, Order::Weak)
    }

    /// A flag that one thread raises and the other has seen.
    fn message(self, from: usize, to: usize) -> Run {
        let flag = Place {
            offset: 4 * self.0.items.len() as u32,
            ..Self::word()
        };
        self.access(from, flag, true, Order::Release)
            .access(to, flag, false, Order::Acquire)
    }

    fn issue(self, thread: usize, what: Transfer) -> Run {
        let copy = AsyncCopy {
            what,
            place: DATA,
            corner: None,
        };
        self.issue_copy(thread, copy)
    }

    fn issue_copy(mut self, thread: usize, copy: AsyncCopy) -> Run {
        let number = self.0.copies.len();
        let index = self.0.items.len();
        self.0.copies.push(CopyInfo {
            thread,
            index,
            copy,
        });
        self.item(Item::Issue(number))
    }

    fn carried_out(self, copy: usize) -> Run {
        let id = self.0.items.len();
        let CopyInfo {
            thread,
            index,
            copy: what,
        } = self.0.copies[copy];
        let reduces = matches!(what.what, Transfer::Reduce(_));
        let writes = reduces || matches!(what.what, Transfer::Put(_));
        let access = Access {
            thread,
            index,
            copy: Some(copy),
            // A reduction is an access of each word.
            place: if reduces { Self::word() } else { DATA },
            reads: !writes || reduces,
            writes,
            reduction: reduces,
            attempt: false,
            order: if reduces { Order::Relaxed } else { Order::Weak },
            scope: if reduces { Scope::Gpu } else { Scope::None },
        };
        self.item(Item::Access(id, access))
    }

    fn waited(self, thread: usize, over: &[usize]) -> Run {
        self.item(Item::GroupWait {
            thread,
            of: Mechanism::Bulk,
            over: over.to_vec(),
        })
    }

    fn arrives(self, thread: usize, mbarrier: usize, scope: Scope) -> Run {
        self.item(Item::MbarrierArrive {
            thread,
            mbarrier,
            relaxed: false,
            scope,
        })
    }

    fn waits(self, thread: usize, mbarrier: usize, scope: Scope) -> Run {
        self.item(Item::MbarrierWait {
            thread,
            mbarrier,
            scope,
        })
    }

    /// An mbarrier follows these copies of the thread, and they are done.
    fn followed(self, thread: usize, mbarrier: usize, copies: &[usize]) -> Run {
        self.item(Item::Follow(thread)).item(Item::Followed {
            thread,
            mbarrier,
            copies: copies.to_vec(),
        })
    }

    fn races(&self) -> usize {
        Oracle::new(&self.0, Model::PTX).pairs().len()
    }
}

#[test]
fn a_copy_comes_after_its_issue_and_before_who_has_waited() {
    let run = |over: &[usize]| {
        Run::new(&[0, 1])
            .ld(1)
            .message(1, 0)
            .issue(0, PUT)
            .carried_out(0)
            .waited(0, over)
            .message(0, 1)
            .ld(1)
            .races()
    };
    assert_eq!(run(&[0]), 0);
    // A wait for other groups, or for the source alone.
    assert_eq!(run(&[]), 1);
}

#[test]
fn what_its_thread_did_before_the_issue_does_not_cover_it() {
    let run = Run::new(&[0, 1]).issue(0, PUT).message(0, 1).ld(1);
    assert_eq!(run.carried_out(0).races(), 1);
}

#[test]
fn a_copy_is_not_its_thread() {
    let run = || Run::new(&[0]).st(0).issue(0, PUT);
    assert_eq!(run().carried_out(0).ld(0).races(), 1);
    assert_eq!(run().carried_out(0).waited(0, &[0]).ld(0).races(), 0);
}

#[test]
fn reductions_are_relaxed_at_device_scope() {
    let run = || {
        Run::new(&[0, 1])
            .issue(0, ADD)
            .issue(1, ADD)
            .carried_out(1)
            .carried_out(0)
    };
    assert_eq!(run().races(), 0);
    assert_eq!(run().ld(0).races(), 2);
    assert_eq!(run().waited(0, &[0]).ld(0).races(), 1);
}

#[test]
fn who_waits_for_its_mbarrier_knows_that_a_source_was_read() {
    let run = |over: bool| {
        let run = Run::new(&[0, 0, 1])
            .st(0)
            .arrives(0, 0, Scope::Cta)
            .issue(0, FETCH)
            .carried_out(0)
            .item(Item::Completes(0, 0));
        let run = if over {
            run.item(Item::MbarrierPhase(0))
        } else {
            run
        };
        run.waits(1, 0, Scope::Cta).message(1, 2).st(2).races()
    };
    assert_eq!(run(true), 0);
    // Against the copy and against the first store.
    assert_eq!(run(false), 2);
}

#[test]
fn arrivals_reach_as_far_as_their_scope() {
    let run = |blocks: [usize; 2], scope, wait| {
        Run::new(&blocks)
            .st(0)
            .arrives(0, 4, scope)
            .item(Item::MbarrierPhase(4))
            .waits(1, 4, wait)
            .ld(1)
            .races()
    };
    assert_eq!(run([1, 1], Scope::Cta, Scope::Cta), 0);
    assert_eq!(run([0, 1], Scope::Cluster, Scope::Cluster), 0);
    assert_eq!(run([0, 1], Scope::Cta, Scope::Cluster), 1);
    assert_eq!(run([0, 1], Scope::Cluster, Scope::Cta), 1);
    // Another cluster.
    assert_eq!(run([2, 1], Scope::Cluster, Scope::Cluster), 1);
}

#[test]
fn a_clusters_barrier_orders_its_threads() {
    let run = |blocks: [usize; 2], relaxed: bool, fence: Option<Scope>| {
        let run = Run::new(&blocks).st(0);
        let run = match fence {
            Some(scope) => run.item(Item::Fence(0, Order::AcqRel, scope)),
            None => run,
        };
        run.item(Item::ClusterArrive(0, relaxed))
            .item(Item::ClusterArrive(1, false))
            .item(Item::ClusterWait(1))
            .ld(1)
            .races()
    };
    assert_eq!(run([0, 1], false, None), 0);
    assert_eq!(run([0, 1], true, None), 1);
    assert_eq!(run([0, 1], true, Some(Scope::Cluster)), 0);
    assert_eq!(run([0, 1], true, Some(Scope::Cta)), 1);
    assert_eq!(run([0, 2], false, None), 1);
}

#[test]
fn phases_of_a_clusters_barrier_are_told_apart() {
    // Thread 0 arrives a second time before thread 1 has gone on from the first.
    let run = Run::new(&[0, 1])
        .item(Item::ClusterArrive(0, false))
        .item(Item::ClusterArrive(1, false))
        .item(Item::ClusterWait(0))
        .st(0)
        .item(Item::ClusterArrive(0, false))
        .item(Item::ClusterWait(1));
    assert_eq!(run.clone().ld(1).races(), 1);
    let run = run
        .item(Item::ClusterArrive(1, false))
        .item(Item::ClusterWait(1));
    assert_eq!(run.ld(1).races(), 0);
}

/// Two kernels as nodes of a graph, each of a thread that writes the same word; the second comes after the first, or not.
fn graph(edge: bool, runs: usize) -> usize {
    let mut trace = Trace::default();
    for kernel in 0..2 * runs {
        trace.threads.push(ThreadInfo {
            kernel,
            block: 0,
            global_block: kernel,
            cluster: kernel,
            clustered: false,
            fenced: false,
            thread: 0,
            linear: 0,
        });
    }
    let node = |first: usize, after: Vec<usize>| Node {
        kernels: (0..runs).map(|run| 2 * run + first).collect(),
        after,
    };
    let after = if edge { vec![0] } else { Vec::new() };
    trace.graphs.push(Graph {
        nodes: vec![node(0, Vec::new()), node(1, after)],
    });
    let mut run = Run(trace);
    for step in 0..runs {
        let host = HostStep::Graph {
            graph: 0,
            run: step,
            stream: step,
        };
        run = run.item(Item::Host(step, host)).item(Item::Task(step));
        for node in 0..2 {
            run = run.item(Item::Node(step, node)).st(2 * step + node);
            run = run.item(Item::NodeEnd(step, node));
        }
        run = run.item(Item::GraphEnd(step));
    }
    run.races()
}

#[test]
fn a_graphs_edges_order_its_nodes() {
    assert_eq!(graph(true, 1), 0);
    assert_eq!(graph(false, 1), 1);
}

#[test]
fn launches_of_one_graph_come_one_after_the_other() {
    assert_eq!(graph(true, 2), 0);
    // Each launch has its own race.
    assert_eq!(graph(false, 2), 2);
}

#[test]
fn an_mbarrier_that_follows_small_copies_says_that_they_are_done() {
    let run = |follows: bool| {
        let run = Run::new(&[0, 0, 1])
            .issue(0, Transfer::Small)
            .carried_out(0);
        let run = run.followed(0, 0, if follows { &[0] } else { &[] });
        let run = run.item(Item::MbarrierPhase(0)).waits(1, 0, Scope::Cta);
        run.message(1, 2).st(2).races()
    };
    assert_eq!(run(true), 0);
    assert_eq!(run(false), 1);
}

#[test]
fn the_arrival_behind_copies_is_not_its_threads() {
    // What the thread does after the issue is not released by it.
    let run = |store_first: bool| {
        let run = Run::new(&[0, 0]);
        let run = if store_first { run.st(0) } else { run };
        let run = run.issue(0, Transfer::Small).carried_out(0);
        let run = if store_first { run } else { run.st(0) };
        let run = run.followed(0, 0, &[0]).item(Item::MbarrierPhase(0));
        run.waits(1, 0, Scope::Cta).ld(1).races()
    };
    assert_eq!(run(true), 0);
    // And the store races with the copy.
    assert_eq!(run(false), 2);
}

#[test]
fn a_multicast_tells_the_mbarriers_of_several_blocks() {
    let run = |completes: &[usize]| {
        let what = Transfer::Multicast {
            index: 0,
            blocks: 0b11,
        };
        let mut run = Run::new(&[0, 1]).issue(0, what).carried_out(0);
        for &mbarrier in completes {
            run = run.item(Item::Completes(0, mbarrier));
            run = run.item(Item::MbarrierPhase(mbarrier));
        }
        run.waits(1, 4, Scope::Cluster).st(1).races()
    };
    assert_eq!(run(&[0, 4]), 0);
    assert_eq!(run(&[0]), 1);
}

/// Three kernels of one thread each, which have done nothing yet.
fn three_kernels() -> Trace {
    let mut trace = Trace::default();
    for kernel in 0..3 {
        trace.threads.push(ThreadInfo {
            kernel,
            block: 0,
            global_block: kernel,
            cluster: kernel,
            clustered: false,
            fenced: false,
            thread: 0,
            linear: 0,
        });
    }
    trace
}

/// Two kernels in a stream, a thread each; the second is a dependent launch and waits before or after it reads, or not at all. A
/// third one, an ordinary launch, reads as well.
fn dependent(waits: Option<bool>, ended: bool) -> usize {
    let mut trace = three_kernels();
    trace.dependent = vec![false, true, false];
    let mut run = Run(trace);
    for kernel in 0..3 {
        let stream = 0;
        let host = HostStep::Launch { kernel, stream };
        run = run.item(Item::Host(kernel, host));
    }
    run = run
        .item(Item::Task(0))
        .st(0)
        .item(Item::LaunchDependents(0));
    if ended {
        run = run.item(Item::KernelEnd(0));
    }
    run = run.item(Item::Task(1));
    if waits == Some(false) {
        run = run.ld(1);
    }
    if !ended {
        run = run.item(Item::KernelEnd(0));
    }
    if waits.is_some() {
        run = run.item(Item::GridWait(1));
    }
    if waits != Some(false) {
        run = run.ld(1);
    }
    run = run.item(Item::KernelEnd(1)).item(Item::Task(2));
    run.ld(2).races()
}

#[test]
fn a_dependent_launch_knows_the_kernel_before_it_when_it_has_waited() {
    for ended in [false, true] {
        assert_eq!(dependent(Some(true), ended), 0);
        assert_eq!(dependent(Some(false), ended), 1);
        assert_eq!(dependent(None, ended), 1);
    }
}

/// Between a kernel and a dependent launch the host sets memory in their stream: it is an ordinary launch then.
#[test]
fn an_operation_of_the_host_is_no_kernel_to_overtake() {
    let run = |operations: Vec<usize>| {
        let mut trace = three_kernels();
        trace.dependent = vec![false, false, true];
        trace.operations = operations;
        let mut run = Run(trace);
        for kernel in 0..3 {
            let stream = 0;
            let host = HostStep::Launch { kernel, stream };
            run = run
                .item(Item::Host(kernel, host))
                .item(Item::Task(kernel))
                .st(kernel)
                .item(Item::KernelEnd(kernel));
        }
        run.races()
    };
    assert_eq!(run(vec![1]), 0);
    assert_eq!(run(Vec::new()), 1);
}
