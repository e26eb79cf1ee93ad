//! Synchronisation inside a cluster: its barrier, and whatever its blocks exchange through each other's shared memory.
//!
//! A cluster has one place where its blocks release and acquire: one of the hashed sync cells, under a key that no other
//! resident cluster has. Whoever acquires there knows all that was released there before, whatever the two had in common:
//! the barrier's phases, and the flags and mbarriers in shared memory, are not told apart. That can hide a race, never
//! make one up.

use crate::cell::{Cell, Release};
use crate::clock::State;
use crate::detector::for_sync_cells;
use crate::layout::{LaunchRecord, Scope, WORD};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::{block, warps};

/// A warp arrives at the cluster's barrier. One lane speaks for those with it: the barrier opens for nobody before that lane
/// has arrived.
pub fn arrive<C: Cell, M: Machine>(me: State<M>) {
    if me.m.leads(me.m.group()) {
        release::<C, M>(me);
    }
}

/// A release by a strong write to shared memory that another block of the cluster may read (a flag, an mbarrier).
pub fn release<C: Cell, M: Machine>(me: State<M>) {
    let Some(place) = place(me.m) else {
        return;
    };
    if without(Edge::ClusterRelease) {
        return;
    }
    let mut release = Some(Release {
        // Phases without accesses between them use no epochs.
        epoch: me.closed_epoch(),
        token: 0,
        by_fence: false,
    });
    for_sync_cells(me, place, WORD as u32, |cell: C| {
        cell.sync_before(me, Scope::Gpu, &mut release)
    });
    // What follows may be a relaxed write after the user's own fence.
    me.m.fence(Scope::Gpu);
}

/// After the cluster's barrier, or a strong read of shared memory that another block may have written. What the own block
/// released is known, too: [`warps::block_sync`] is part of it.
pub fn acquire<C: Cell, M: Machine>(me: State<M>) {
    warps::block_sync(me, true);
    let Some(place) = place(me.m) else {
        return;
    };
    if without(Edge::ClusterAcquire) {
        return;
    }
    for_sync_cells(me, place, WORD as u32, |cell: C| {
        if let Some(found) = cell.acquirable(me, Scope::Gpu) {
            me.acquire(found);
        }
    });
}

/// A scope as this launch has it: without clusters a block is a cluster of its own.
#[inline]
pub fn reach<M: Machine>(m: M, scope: Scope) -> Scope {
    if scope == Scope::Cluster && shape(m) == [1, 1, 1] {
        Scope::Cta
    } else {
        scope
    }
}

/// Blocks per cluster along each axis.
fn shape<M: Machine>(m: M) -> [u32; 3] {
    LaunchRecord::cluster_of(m.load32(field!(block::launch(m), LaunchRecord, flags)))
}

/// The key of the block's cluster, as the address of a word that nobody has; `None` where each block is a cluster.
fn place<M: Machine>(m: M) -> Option<u64> {
    let shape = shape(m);
    if shape == [1, 1, 1] {
        return None;
    }
    let (block, grid) = (m.block(), m.grid());
    let index = |i: usize| block[i].checked_div(shape[i]).unwrap_or(0);
    let count = |i: usize| grid[i].checked_div(shape[i]).unwrap_or(0);
    let linear = index(0).wrapping_add(
        count(0).wrapping_mul(index(1).wrapping_add(count(1).wrapping_mul(index(2)))),
    );
    Some((m.grid_id() << 32 | linear as u64).wrapping_mul(WORD))
}
