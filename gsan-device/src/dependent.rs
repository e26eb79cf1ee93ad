//! What a dependent launch begins with: programmatic dependent launch, where several follow each other.
//!
//! A dependent launch begins when each block of the one before it has executed `griddepcontrol.launch_dependents` or has ended.
//! From then on it knows what that one began with, and, if a block of that one had waited (or acquired from one
//! that had) before it let others begin, what that one waited for. What it has done itself is known after `griddepcontrol.wait` only.
//!
//! Whether the blocks waited first is seen when they run, so it is left behind the launch's out row: a [`Handover`]. The next
//! launch's blocks look there when they enter ([`LaunchRecord::CHAINED`]); what they find, they leave for the one after.

use crate::block::find;
use crate::clock::State;
use crate::layout::{BlockState, Handover, LaunchRecord, Scope};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};

/// Before `griddepcontrol.launch_dependents`: only the block's first one counts. Threads that get here together all do the work, since
/// the first to go on lets the next launch begin.
pub fn launch_dependents<M: Machine>(me: State<M>) {
    let m = me.m;
    let block = find(m);
    let launch = m.load64(field!(block, BlockState, launch));
    if m.load64(field!(launch, LaunchRecord, wait_row)) == 0 {
        return;
    }
    let triggered = field!(block, BlockState, triggered);
    if m.load32_acquire(triggered) == 0 {
        hand_over(me, launch);
        m.store32_release(triggered, 1);
    }
}

/// The block's last thread leaves, which lets dependent launches begin if nothing has before.
pub(crate) fn leave<M: Machine>(me: State<M>, launch: u64, block: u64) {
    let m = me.m;
    if m.load64(field!(launch, LaunchRecord, wait_row)) == 0 {
        return;
    }
    // The out row is not a copy of the base row, as other launches' are.
    me.own();
    if m.load32(field!(block, BlockState, triggered)) == 0 {
        hand_over(me, launch);
    }
}

/// A thread has come past `griddepcontrol.wait`: the row that this adds doesn't change any more.
pub(crate) fn note_wait<M: Machine>(me: State<M>, launch: u64) {
    let own = handover(
        me.m,
        field!(launch, LaunchRecord, out_row),
        me.num_threads(),
    );
    me.m.store32_release(field!(own, Handover, waited), 1);
}

/// The row that a launch's blocks know on entry.
pub(crate) fn begins_with<M: Machine>(m: M, launch: u64, num_threads: u32) -> u64 {
    let base = m.load64(field!(launch, LaunchRecord, base_row));
    let flags = m.load32(field!(launch, LaunchRecord, flags));
    if flags & LaunchRecord::CHAINED == 0 || without(Edge::Handover) {
        return base;
    }
    let before = handover(m, field!(launch, LaunchRecord, wait_row), num_threads);
    let row = m.load64_acquire(field!(before, Handover, row));
    if row == 0 {
        return base;
    }
    // A block of this launch may have more to hand over by now.
    let own = handover(m, field!(launch, LaunchRecord, out_row), num_threads);
    m.cas64(field!(own, Handover, row), 0, row);
    // A launch that this one lets begin may look for it at once.
    m.fence(Scope::Gpu);
    row
}

/// If the block knows the whole launch before, so will the next one from the start.
fn hand_over<M: Machine>(me: State<M>, launch: u64) {
    let m = me.m;
    let own = handover(m, field!(launch, LaunchRecord, out_row), me.num_threads());
    let row = m.load64(field!(launch, LaunchRecord, wait_row));
    // Before that launch is over its row is not complete, and to know it says nothing.
    let knows = m.load32_acquire(field!(own, Handover, waited)) != 0 && me.covers_row(row);
    if knows || without(Edge::EarlyTrigger) {
        m.store64_release(field!(own, Handover, row), row);
        // The next launch may begin before this one's stores are flushed.
        m.fence(Scope::Gpu);
    }
}

/// The [`Handover`] behind the row whose address is at `field`.
fn handover<M: Machine>(m: M, field: u64, num_threads: u32) -> u64 {
    m.load64(field).wrapping_add(Handover::offset(num_threads))
}
