//! Bulk copies (`cp.async.bulk`, `cp.reduce.async.bulk`, with `.tensor` and without): carried out some time between their
//! issue and the moment when somebody knows of their end.
//!
//! A copy is an access of the thread that issues it. Whoever races with it comes neither before its issue nor after its end,
//! so it is checked and recorded twice: when it is issued, and when its end is known. For those that write that is when its
//! thread has waited for its bulk group, for reads when any thread has waited for their mbarrier (of the own block, in launches
//! whose waits all have hooks; else the issue is all), and for all when their thread leaves. Who reads a flag that was raised in
//! between knows the first record and not the second. Twice recorded is never too much: who is ordered after the end is
//! ordered after the issue.
//!
//! What is under way is kept in the block's state ([`PendingCopy`]). Where that is full an older one gives way: of that the issue
//! is all that is recorded, and [`Counters::early_copies`] says so. Ending an entry too early is never wrong; too late would
//! be a false report, so whatever may end one does.
//!
//! A copy is described in memory from the start, and little of it is held in registers: ptxas adds up those that a chain of calls
//! keeps, and what a hook needs a kernel needs.
//!
//! Not found: an access by a thread whose own order the issuing thread learns of between issue and wait.
//!
//! **`cp.async`** reads a few bytes for each of many threads, too many to keep. Its read is recorded when it is issued, some
//! epochs ahead of its time: a release before the wait does not cover it. A wait (or the thread's end) raises the block's epoch to
//! that, so that whatever comes then does. Where more epochs close in between it is covered too early, and any wait counts for all
//! of the block's.

use crate::block;
use crate::cell::Cell;
use crate::clock::State;
use crate::detector;
use crate::layout::{
    Access, Counters, Epoch, GlobalState, LaunchRecord, Op, PendingCopy, Scope, TensorMap,
    ThreadState,
};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::tensor;
use crate::warps;
use core::mem::{offset_of, size_of};

/// Bytes that are checked at a time.
const PIECE: u64 = 16;

/// A bit for each byte of a piece.
const MASK: u32 = 0xffff;

/// How many epochs ahead of its time a `cp.async` is recorded: as many may close before the wait. A block's warps close one each at a
/// barrier, and 2^32 are enough for 67 million waits of a slot.
const AHEAD: u32 = 64;

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
    let at = take(me);
    range(me, at, addr, bytes);
    begun::<C, M>(me, at, op, site, barrier);
}

/// One to global memory, of which only the bytes are copied that have a bit in `mask`: of every 16, one bit each.
pub fn issue_masked<C: Cell, M: Machine>(
    me: State<M>,
    addr: u64,
    bytes: u32,
    op: Op,
    site: u32,
    mask: u32,
) {
    let mask = mask & MASK;
    if bytes == 0 || mask == 0 {
        return;
    }
    let at = take(me);
    range(me, at, addr, bytes);
    if mask != MASK {
        me.m.store64(field!(at, PendingCopy, offsets), mask as u64);
    }
    begun::<C, M>(me, at, op, site, 0);
}

/// Describes a range.
fn range<M: Machine>(me: State<M>, at: u64, addr: u64, bytes: u32) {
    let bytes = bytes.min(PendingCopy::WINDOWS - 1);
    me.m.store64(field!(at, PendingCopy, address), addr);
    me.m.store32(field!(at, PendingCopy, bytes), bytes);
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
    let rows = shape & tensor::ROWS != 0;
    let what = if rows { PendingCopy::ROWS } else { 0 };
    through_map::<C, M>(me, map, what, 0, corner, op, site, barrier);
}

/// A copy of pixels of windows (`.im2col`): `offsets` are their places in them, 16 bits each.
#[allow(clippy::too_many_arguments)]
pub fn issue_windows<C: Cell, M: Machine>(
    me: State<M>,
    map: u64,
    offsets: u64,
    corner: [i32; 5],
    op: Op,
    site: u32,
    barrier: u32,
) {
    let what = PendingCopy::WINDOWS;
    through_map::<C, M>(me, map, what, offsets, corner, op, site, barrier);
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn through_map<C: Cell, M: Machine>(
    me: State<M>,
    map: u64,
    what: u32,
    offsets: u64,
    corner: [i32; 5],
    op: Op,
    site: u32,
    barrier: u32,
) {
    let m = me.m;
    // One of the other kind is no map for this copy: a GPU stops there.
    let windows = what == PendingCopy::WINDOWS;
    let fits = |known: &u64| (m.load32(field!(*known, TensorMap, windows)) != 0) == windows;
    let Some(known) = tensor::find(me, map).filter(fits) else {
        me.tally(offset_of!(Counters, unknown_maps));
        return;
    };
    let at = take(me);
    m.store64(field!(at, PendingCopy, address), known);
    m.store32(field!(at, PendingCopy, bytes), what);
    m.store64(field!(at, PendingCopy, offsets), offsets);
    let [a, b, c, d, e] = corner;
    let to = field!(at, PendingCopy, corner);
    m.store32(to, a as u32);
    m.store32(to.wrapping_add(4), b as u32);
    m.store32(to.wrapping_add(8), c as u32);
    m.store32(to.wrapping_add(12), d as u32);
    m.store32(to.wrapping_add(16), e as u32);
    let op = if op.access() == Access::Rmw {
        op.with_size(m.load32(field!(known, TensorMap, element)))
    } else {
        op
    };
    begun::<C, M>(me, at, op, site, barrier);
}

/// The copy whose place is described at `at` is issued.
#[inline]
fn begun<C: Cell, M: Machine>(me: State<M>, at: u64, op: Op, site: u32, barrier: u32) {
    let m = me.m;
    m.store32(field!(at, PendingCopy, op), op.0);
    m.store32(field!(at, PendingCopy, site), site);
    m.store32(field!(at, PendingCopy, barrier), barrier);
    described::<C, M>(m, me.addr, at);
}

/// All of the copy at `at` is described.
#[inline(never)]
fn described<C: Cell, M: Machine>(m: M, me: u64, at: u64) {
    touch::<C, M>(m, me, at, false);
    let reads = Op(m.load32(field!(at, PendingCopy, op))).access() == Access::Load;
    let state = if reads && (is_of_group(m, at) || !waits_have_hooks(m)) {
        0
    } else {
        owner(m)
    };
    m.store32_release(field!(at, PendingCopy, state), state);
    // Whoever learns of the copy's end finds the entry.
    m.fence(Scope::Gpu);
}

/// Whether no wait for an mbarrier goes unnoticed.
fn waits_have_hooks<M: Machine>(m: M) -> bool {
    m.load32(field!(block::launch(m), LaunchRecord, flags)) & LaunchRecord::INTRA_BLOCK != 0
}

/// After `cp.async.bulk.commit_group`.
pub fn commit<M: Machine>(me: State<M>) {
    own(me, |at, state| {
        if !is_of_group(me.m, at) {
            return;
        }
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
        if state & PendingCopy::COMMITTED != 0 && !young && is_of_group(me.m, at) {
            finish::<C, M>(me.m, me.addr, at, state);
        }
    });
}

/// This thread has waited for the phase `waited` of an mbarrier. Whichever of the block's threads that did so comes here first
/// ends the reads that completed there; none leaves before that is done, since each may tell others.
pub fn waited<C: Cell, M: Machine>(me: State<M>, waited: u32) {
    if without(Edge::CopyBarrier) {
        return;
    }
    let m = me.m;
    let used = m.load32_acquire(field!(me.addr, ThreadState, copies));
    let mut synchronised = false;
    let mut i = 0;
    while i < used {
        let at = entry(me, i);
        loop {
            let state = m.load32_acquire(field!(at, PendingCopy, state));
            let barrier = m.load32(field!(at, PendingCopy, barrier));
            if state == 0 || !PendingCopy::completes_on(barrier, waited) {
                break;
            }
            if state & PendingCopy::BUSY == 0 {
                if !synchronised {
                    // The read goes on record as this warp's: it has to know what the issuer's knew.
                    warps::block_sync(me, true);
                    synchronised = true;
                }
                finish::<C, M>(m, me.addr, at, state);
            } else {
                m.pause();
            }
        }
        i += 1;
    }
}

/// A thread leaves: nothing that it does later could say that its copies are carried out.
#[inline]
pub fn leave<C: Cell, M: Machine>(me: State<M>) {
    if without(Edge::CopyExit) {
        return;
    }
    own(me, |at, state| finish::<C, M>(me.m, me.addr, at, state));
}

/// This thread has waited for `cp.async`s, or leaves: the reads are over.
#[inline]
pub fn landed<M: Machine>(me: State<M>) {
    let ahead = me.m.load32(field!(me.addr, ThreadState, ahead));
    if ahead > me.epoch() && !without(Edge::CopyLanded) {
        me.m.max32(field!(me.addr, ThreadState, epoch), ahead);
        me.recorded(ahead);
    }
}

impl<M: Machine> State<M> {
    /// The epoch that an access belongs to.
    #[inline]
    pub fn epoch_of(self, op: Op) -> Epoch {
        let epoch = self.epoch();
        if !op.is_asynchronous() || without(Edge::CopyAhead) {
            return epoch;
        }
        let ahead = epoch.wrapping_add(AHEAD);
        let word = field!(self.addr, ThreadState, ahead);
        if self.m.load32(word) < ahead {
            self.m.max32(word, ahead);
        }
        ahead
    }
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
fn is_of_group<M: Machine>(m: M, at: u64) -> bool {
    m.load32(field!(at, PendingCopy, barrier)) == 0
}

#[inline]
fn owner<M: Machine>(m: M) -> u32 {
    m.linear_thread().wrapping_add(1) & PendingCopy::OWNER
}

fn entry<M: Machine>(me: State<M>, i: u32) -> u64 {
    let ring =
        me.m.load32(field!(me.global(), GlobalState, clock_buffer_size));
    me.addr
        .wrapping_add(ThreadState::copies_offset(me.num_threads(), ring))
        .wrapping_add(size_of::<PendingCopy>() as u64 * i as u64)
}

/// A free entry, or that of a copy that nobody is at, made busy.
#[inline(never)]
fn take<M: Machine>(me: State<M>) -> u64 {
    let m = me.m;
    let mut i = 0;
    loop {
        let at = entry(me, i & (ThreadState::COPIES - 1));
        let state = field!(at, PendingCopy, state);
        let seen = m.load32(state);
        let full = i >= ThreadState::COPIES;
        if (seen == 0 || full && seen & PendingCopy::BUSY == 0)
            && m.cas32_acquire(state, seen, PendingCopy::BUSY) == seen
        {
            m.store32(field!(at, PendingCopy, barrier), 0);
            m.store64(field!(at, PendingCopy, offsets), 0);
            if seen != 0 {
                me.tally(offset_of!(Counters, early_copies));
            }
            m.max32(
                field!(me.addr, ThreadState, copies),
                (i & (ThreadState::COPIES - 1)) + 1,
            );
            return at;
        }
        if full {
            m.pause();
        }
        i = i.wrapping_add(1).max(i);
    }
}

/// The copy of the entry at `at` is carried out.
#[inline(never)]
fn finish<C: Cell, M: Machine>(m: M, me: u64, at: u64, state: u32) {
    let word = field!(at, PendingCopy, state);
    if m.cas32_acquire(word, state, state | PendingCopy::BUSY) == state {
        touch::<C, M>(m, me, at, true);
        m.store32_release(word, 0);
    }
}

/// Checks and records all that the copy at `at` touches; `done`: not for the first time.
#[inline(never)]
fn touch<C: Cell, M: Machine>(m: M, me: u64, at: u64, done: bool) {
    let mut row = 0;
    while row < tensor::rows(m, at) {
        let mut from = 0;
        loop {
            let (addr, bytes) = tensor::row(m, at, row);
            if from >= bytes {
                break;
            }
            let left = bytes.wrapping_sub(from).min(PIECE) as u32;
            let step = piece::<C, M>(m, me, at, addr.wrapping_add(from), left, done);
            from = from.wrapping_add(step as u64);
        }
        row += 1;
    }
}

/// A piece of the copy; returns how much of the `left` bytes it was: of a reduction, whose operation has the size of an
/// element, a whole piece or one element.
fn piece<C: Cell, M: Machine>(m: M, me: u64, at: u64, addr: u64, left: u32, done: bool) -> u32 {
    let op = Op(m.load32(field!(at, PendingCopy, op)));
    let site = m.load32(field!(at, PendingCopy, site));
    if op.access() != Access::Rmw {
        let mask = tensor::mask(m, at);
        let mut i = 0;
        while i < left {
            let first = i;
            while i < left && mask >> i & 1 != 0 {
                i += 1;
            }
            if i > first {
                let from = addr.wrapping_add(first as u64);
                weak::<C, M>(m, me, from, op.with_size(i - first), site);
            }
            i += 1;
        }
        return left;
    }
    let element = op.size().max(1);
    let elements = if left == PIECE as u32 {
        left.checked_div(element).unwrap_or(1).max(1)
    } else {
        1
    };
    let step = elements.wrapping_mul(element);
    let op = op.with_size(step).elements(elements);
    if done {
        reduced::<C, M>(m, me, addr, op, site);
    } else {
        strong::<C, M>(m, me, addr, op, site);
    }
    step
}

/// A plain access, out of line: copies of the detector cost registers.
#[inline(never)]
pub(crate) fn weak<C: Cell, M: Machine>(m: M, me: u64, addr: u64, op: Op, site: u32) {
    detector::access::<C, M>(State::at(m, me), addr, op, site);
}

/// A strong one.
#[inline(never)]
pub(crate) fn strong<C: Cell, M: Machine>(m: M, me: u64, addr: u64, op: Op, site: u32) -> u64 {
    detector::strong_before::<C, M>(State::at(m, me), addr, op, site)
}

#[inline(never)]
fn reduced<C: Cell, M: Machine>(m: M, me: u64, addr: u64, op: Op, site: u32) {
    detector::reduced::<C, M>(State::at(m, me), addr, op, site);
}
