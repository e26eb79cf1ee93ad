//! Clusters, and launches that wait for the one before.

use super::*;
use crate::cluster;
use crate::layout::LaunchRecord;

/// A launch of two clusters of two blocks each.
fn clusters(d: &Device) -> Vec<Block<'_>> {
    let record = d.launch(0, 0, 1);
    d.set_launch_flags(record, LaunchRecord::cluster_flags([2, 1, 1]));
    (0..4)
        .map(|b| {
            let host = d.thread(0, b, b, 0, 1);
            block::enter(host, record);
            Block { device: d, host }
        })
        .collect()
}

fn barrier(blocks: &[Block<'_>]) {
    for b in blocks {
        cluster::arrive::<Format, _>(b.state());
    }
    for b in blocks {
        cluster::acquire::<Format, _>(b.state());
    }
}

fn through_the_barrier() -> usize {
    let d = device();
    let b = clusters(&d);
    b[0].store(0);
    barrier(&b[..2]);
    b[1].load(0);
    b[1].store(4);
    barrier(&b[..2]);
    b[0].load(4);
    d.races().len()
}

#[test]
fn a_clusters_barrier_orders_its_blocks() {
    assert_eq!(through_the_barrier(), 0);
}

#[test]
fn it_orders_no_other_cluster() {
    let d = device();
    let b = clusters(&d);
    b[0].store(0);
    barrier(&b[..2]);
    barrier(&b[2..]);
    b[2].load(0);
    only(&d, RaceKind::Raw, RaceClass::Race);
}

#[test]
fn an_arrival_orders_nothing_after_it() {
    let d = device();
    let b = clusters(&d);
    cluster::arrive::<Format, _>(b[0].state());
    b[0].store(0);
    cluster::arrive::<Format, _>(b[1].state());
    cluster::acquire::<Format, _>(b[1].state());
    b[1].load(0);
    assert_eq!(kinds(&d), [RaceKind::Raw]);
}

#[test]
fn flags_in_shared_memory_carry_what_was_acquired() {
    let d = device();
    let b = clusters(&d);
    b[2].store(0);
    b[2].release(8);
    b[0].acquire(8);
    cluster::release::<Format, _>(b[0].state());
    cluster::acquire::<Format, _>(b[1].state());
    b[1].load(0);
    assert_silent(&d);
}

#[test]
fn without_clusters_nothing_is_ordered() {
    let d = device();
    let b = grid(&d, 0, 0, 1, 2);
    b[0].store(0);
    barrier(&b);
    b[1].load(0);
    only(&d, RaceKind::Raw, RaceClass::Race);
}

fn message(b: &[Block<'_>]) {
    b[0].store(0);
    b[0].strong(Access::Store, Order::Release, Scope::Cluster, 8);
    b[1].strong(Access::Load, Order::Acquire, Scope::Cluster, 8);
    b[1].load(0);
}

#[test]
fn cluster_scope_reaches_the_cluster() {
    let d = device();
    message(&clusters(&d));
    assert_silent(&d);
}

#[test]
fn without_clusters_cluster_scope_is_the_blocks() {
    let d = device();
    message(&grid(&d, 0, 0, 1, 2));
    let classes: Vec<u32> = d.races().iter().map(|r| r.class).collect();
    assert!(
        classes.contains(&(RaceClass::ScopeTooNarrow as u32)),
        "{classes:?}"
    );
}

/// Launch 1 started while launch 0 ran; it waits for it if `waits`.
fn dependent(waits: bool) -> usize {
    let d = device();
    let first = grid(&d, 0, 0, 1, 1)[0];
    let record = d.launch(1, 2, 3);
    d.set_wait_row(record, 1);
    let second = Block::enter(&d, record, 1, 1, 0);
    first.store(0);
    first.exit();
    if waits {
        block::grid_wait(second.state());
    }
    second.load(0);
    d.races().len()
}

#[test]
fn a_dependent_launch_that_waits_is_ordered() {
    assert_eq!(dependent(true), 0);
}

#[test]
fn a_dependent_launch_that_never_waits_races() {
    assert_eq!(dependent(false), 1);
}

#[cfg(feature = "mutants")]
#[test]
fn a_missing_edge_is_noticed() {
    use crate::mutants::Edge;
    assert_ne!(without_edge(Edge::ClusterRelease, through_the_barrier), 0);
    assert_ne!(without_edge(Edge::ClusterAcquire, through_the_barrier), 0);
    assert_ne!(without_edge(Edge::GridWait, || dependent(true)), 0);
}

#[test]
fn phases_without_accesses_use_no_epochs() {
    let d = device();
    let b = clusters(&d);
    b[0].store(0);
    cluster::release::<Format, _>(b[0].state());
    let epoch = b[0].state().epoch();
    for _ in 0..100 {
        cluster::release::<Format, _>(b[0].state());
        cluster::acquire::<Format, _>(b[1].state());
    }
    assert_eq!(b[0].state().epoch(), epoch);
    // What was done before is released with the last of them, and what comes after is not.
    b[1].load(0);
    assert_silent(&d);
    b[0].store(4);
    b[1].load(4);
    assert_eq!(kinds(&d), [RaceKind::Raw]);
}

#[test]
fn each_kind_of_access_is_in_an_epoch_that_a_phase_closes() {
    type Step = fn(Block<'_>);
    let before: [Step; 4] = [
        |b| b.load(0),
        |b| b.store(0),
        |b| b.relaxed_load(0),
        |b| b.strong(Access::Cas, Order::Relaxed, Scope::Gpu, 0),
    ];
    for step in before {
        let d = device();
        let b = clusters(&d);
        // A phase before it: nothing is in the epoch that follows.
        cluster::release::<Format, _>(b[0].state());
        cluster::release::<Format, _>(b[0].state());
        step(b[0]);
        cluster::release::<Format, _>(b[0].state());
        cluster::acquire::<Format, _>(b[1].state());
        b[1].store(0);
        assert_silent(&d);
    }
}
