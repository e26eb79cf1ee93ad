//! Bulk copies (`cp.async.bulk`, `cp.reduce.async.bulk`, with `.tensor` and without): carried out some time between their
//! issue and the moment when somebody knows of their end.
//!
//! A copy is an access of the thread that issues it. Whoever races with it comes neither before its issue nor after its end,
//! so it is checked and recorded twice: when it is issued, and, for those that write, when its thread has waited for
//! its bulk group or leaves. What reads a flag that was raised in between knows the first record and not the second. Twice
//! recorded is never too much: who is ordered after the end is ordered after the issue.
//!
//! What is under way is kept in the block's state ([`PendingCopy`]). Where that is full, only the issue is recorded, and
//! [`Counters::early_copies`] says so. Ending an entry too early is what the issue does anyway; too late would be
//! a false report, so whatever may end one does.
//!
//! Not found: an access by a thread whose own order the issuing thread learns of between issue and wait.

use crate::cell::Cell;
use crate::clock::State;
use crate::detector;
use crate::layout::{Access, Counters, GlobalState, Op, PendingCopy, Scope, ThreadState};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::tensor;
use core::mem::{offset_of, size_of};

/// Bytes that are checked at a time.
const PIECE: u32 = 16;

/// What a copy does to global memory.
#[derive(Clone, Copy)]
struct Copy {
    op: Op,
    site: u32,
    /// The first byte, or the [`crate::layout::TensorMap`].
    address: u64,
    /// As in [`PendingCopy`].
    bytes: u32,
    corner: [i32; 5],
}

/// A copy of `bytes` bytes at `addr` is issued. `barrier`: as in [`PendingCopy`].
pub fn issue<C: Cell, M: Machine>(
    me: State<M>,
    addr: u64,
    bytes: u32,
    op: Op,
    site: u32,
    barrier: u32,
) {
    if bytes == 0 {
        return;
    }
    let copy = Copy {
        op,
        site,
        address: addr,
        bytes: bytes.min(PendingCopy::ROWS - 1),
        corner: [0; 5],
    };
    begun::<C, M>(me, copy, barrier);
}

/// A copy of a box at `corner` of the tensor whose map lies at `map`; with [`tensor::ROWS`] in `shape` of four rows, whose numbers
/// follow the first coordinate.
pub fn issue_box<C: Cell, M: Machine>(
    me: State<M>,
    map: u64,
    shape: u32,
    corner: [i32; 5],
    op: Op,
    site: u32,
    barrier: u32,
) {
    let Some(known) = tensor::find(me, map) else {
        me.tally(offset_of!(Counters, unknown_maps));
        return;
    };
    let rows = shape & tensor::ROWS != 0;
    let copy = Copy {
        op,
        site,
        address: known,
        bytes: if rows { PendingCopy::ROWS } else { 0 },
        corner,
    };
    begun::<C, M>(me, copy, barrier);
}

#[inline(never)]
fn begun<C: Cell, M: Machine>(me: State<M>, copy: Copy, barrier: u32) {
    touch::<C, M>(me, copy, false);
    if copy.op.access() != Access::Load {
        keep(me, copy, barrier);
    }
}

/// After `cp.async.bulk.commit_group`.
pub fn commit<M: Machine>(me: State<M>) {
    own(me, |at, state| {
        let next = if state & PendingCopy::COMMITTED == 0 {
            state | PendingCopy::COMMITTED
        } else if PendingCopy::younger_groups(state) < PendingCopy::GROUPS {
            state.wrapping_add(PendingCopy::GROUP)
        } else {
            state
        };
        me.m.cas32_acquire(field!(at, PendingCopy, state), state, next);
    });
}

/// This thread has waited for all of its bulk groups but the youngest `groups`.
pub fn wait<C: Cell, M: Machine>(me: State<M>, groups: u32) {
    if without(Edge::CopyWait) {
        return;
    }
    own(me, |at, state| {
        let young = PendingCopy::younger_groups(state) < groups && !without(Edge::CopyGroups);
        if state & PendingCopy::COMMITTED != 0 && !young {
            finish::<C, M>(me, at, state);
        }
    });
}

/// A thread leaves: nothing that it does later could say that its copies are carried out.
#[inline]
pub fn leave<C: Cell, M: Machine>(me: State<M>) {
    if without(Edge::CopyExit) {
        return;
    }
    own(me, |at, state| finish::<C, M>(me, at, state));
}

/// A tenant begins: nothing is under way. The slot's lock is held.
pub(crate) fn begin<M: Machine>(me: State<M>) {
    let used = field!(me.addr, ThreadState, copies);
    let mut i = me.m.load32(used);
    while i > 0 {
        i -= 1;
        me.m.store32(field!(entry(me, i), PendingCopy, state), 0);
    }
    me.m.store32(used, 0);
}

/// Calls `f` with each entry of this thread, and its state.
#[inline]
fn own<M: Machine>(me: State<M>, mut f: impl FnMut(u64, u32)) {
    let used = me.m.load32(field!(me.addr, ThreadState, copies));
    let mut i = 0;
    while i < used {
        let at = entry(me, i);
        let state = me.m.load32_acquire(field!(at, PendingCopy, state));
        if state & (PendingCopy::BUSY | PendingCopy::OWNER) == owner(me.m) {
            f(at, state);
        }
        i += 1;
    }
}

#[inline]
fn owner<M: Machine>(m: M) -> u32 {
    m.linear_thread().wrapping_add(1) & PendingCopy::OWNER
}

fn entry<M: Machine>(me: State<M>, i: u32) -> u64 {
    let ring =
        me.m.load32(field!(me.global, GlobalState, clock_buffer_size));
    me.addr
        .wrapping_add(ThreadState::copies_offset(me.num_threads, ring))
        .wrapping_add(size_of::<PendingCopy>() as u64 * i as u64)
}

/// Remembers a copy until it is known to be carried out.
fn keep<M: Machine>(me: State<M>, copy: Copy, barrier: u32) {
    let m = me.m;
    let mut i = 0;
    while i < ThreadState::COPIES {
        let at = entry(me, i);
        let state = field!(at, PendingCopy, state);
        if m.load32(state) == 0 && m.cas32_acquire(state, 0, PendingCopy::BUSY) == 0 {
            m.store32(field!(at, PendingCopy, site), copy.site);
            m.store32(field!(at, PendingCopy, op), copy.op.0);
            m.store32(field!(at, PendingCopy, bytes), copy.bytes);
            m.store64(field!(at, PendingCopy, address), copy.address);
            m.store32(field!(at, PendingCopy, barrier), barrier);
            let corner = field!(at, PendingCopy, corner);
            let mut d = 0;
            while d < 5 {
                let to = corner.wrapping_add(4 * d as u64);
                m.store32(to, coordinate(&copy.corner, d) as u32);
                d += 1;
            }
            m.max32(field!(me.addr, ThreadState, copies), i + 1);
            m.store32_release(state, owner(m));
            // Whoever learns of the copy's end finds the entry.
            m.fence(Scope::Gpu);
            return;
        }
        i += 1;
    }
    me.tally(offset_of!(Counters, early_copies));
}

/// The copy of the entry at `at` is carried out.
fn finish<C: Cell, M: Machine>(me: State<M>, at: u64, state: u32) {
    let m = me.m;
    let word = field!(at, PendingCopy, state);
    if m.cas32_acquire(word, state, state | PendingCopy::BUSY) != state {
        return;
    }
    let corner = field!(at, PendingCopy, corner);
    let part = |d: u64| m.load32(corner.wrapping_add(4 * d)) as i32;
    let copy = Copy {
        op: Op(m.load32(field!(at, PendingCopy, op))),
        site: m.load32(field!(at, PendingCopy, site)),
        address: m.load64(field!(at, PendingCopy, address)),
        bytes: m.load32(field!(at, PendingCopy, bytes)),
        corner: [part(0), part(1), part(2), part(3), part(4)],
    };
    touch::<C, M>(me, copy, true);
    m.store32_release(word, 0);
}

/// Checks and records all that a copy touches; `done`: not for the first time.
#[inline(never)]
fn touch<C: Cell, M: Machine>(me: State<M>, copy: Copy, done: bool) {
    let mut op = copy.op;
    let mut boxes = 1;
    if copy.bytes == PendingCopy::ROWS {
        boxes = 4;
    } else if copy.bytes != 0 {
        return row::<C, M>(me, copy.address, copy.bytes as u64, op, copy.site, done);
    }
    if op.access() != Access::Load && op.access() != Access::Store {
        op = op.with_size(tensor::element(me, copy.address));
    }
    let mut i = 0;
    while i < boxes {
        let mut corner = copy.corner;
        if boxes > 1 {
            corner = [
                coordinate(&copy.corner, 0),
                coordinate(&copy.corner, i + 1),
                0,
                0,
                0,
            ];
        }
        tensor::each_row(me, copy.address, corner, |addr, bytes| {
            row::<C, M>(me, addr, bytes, op, copy.site, done);
        });
        i += 1;
    }
}

/// `corner[d]`, of which the compiler need not prove anything.
#[inline]
pub(crate) fn coordinate(corner: &[i32; 5], d: u32) -> i32 {
    match corner.get(d as usize) {
        Some(c) => *c,
        None => 0,
    }
}

/// Bytes side by side. Of a reduction `op` has the size of an element.
#[inline(never)]
fn row<C: Cell, M: Machine>(me: State<M>, addr: u64, bytes: u64, op: Op, site: u32, done: bool) {
    let strong = op.access() == Access::Rmw;
    let element = op.size().max(1);
    let mut at = 0;
    while at < bytes {
        let addr = addr.wrapping_add(at);
        let left = bytes.wrapping_sub(at).min(PIECE as u64) as u32;
        let step;
        if strong {
            // A whole piece, or what is left, element by element.
            let elements = if left == PIECE {
                PIECE.checked_div(element).unwrap_or(1).max(1)
            } else {
                1
            };
            step = elements.wrapping_mul(element);
            let op = op.with_size(step).elements(elements);
            if done {
                detector::reduced::<C, M>(me, addr, op, site);
            } else {
                detector::strong_before::<C, M>(me, addr, op, site);
            }
        } else {
            step = left;
            detector::access::<C, M>(me, addr, op.with_size(left), site);
        }
        at = at.wrapping_add(step as u64);
    }
}
