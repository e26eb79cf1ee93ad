//! The detector: happens-before with vector clocks, over shadow memory.
//!
//! The algorithm is the classic GSan's (Triton; its semantics are restated in this project's docs), under the PTX memory
//! model. Two accesses to one word race when at least one writes, they are not both strong with scopes that reach each
//! other, and neither happens before the other: order comes from kernel boundaries (clock rows), from release and
//! acquire operations (tokens in shadow cells), and from fences around relaxed ones.
//!
//! What it can miss: readers beyond the sample, order that the warps of one block share (`warps`), and the classes that
//! [`crate::layout::Counters`] tallies. Whatever is approximated only adds order, so it never reports what is
//! synchronised, with one exception that the reference cell can't avoid: neighbouring bytes of one word.
//!
//! No lock spans a user instruction. Before a release (or any strong write) the hook leaves its token in the shadow; an
//! acquire looks for the token in a second hook, after the load.

use crate::cell::{Cell, Conflict, Current, Release};
use crate::clock::{Lookup, Publication, State};
use crate::cluster::reach;
use crate::layout::{
    Access, Counters, Epoch, GlobalState, Op, Order, RaceClass, Range, ScalarClock, Scope,
    SyncClock, ThreadState, WORD,
};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::report;
pub use crate::warps::{barrier_after, barrier_before, block_sync};
use core::marker::PhantomData;
use core::mem::{offset_of, size_of};

/// Cells of an access that lies in shadowed memory.
#[derive(Clone, Copy)]
struct Span<C> {
    first: u64,
    count: u32,
    addr: u64,
    size: u32,
    cells: PhantomData<C>,
}

impl<C: Cell> Span<C> {
    /// The cells of `size` bytes at `addr`, whose word's cell is `first`; `offset` is the address modulo the word.
    #[inline]
    fn new(first: u64, addr: u64, size: u32) -> Self {
        let offset = addr & (WORD - 1);
        let count = (offset.wrapping_add(size.max(1) as u64 + WORD - 1) / WORD) as u32;
        Span {
            first,
            count,
            addr,
            size,
            cells: PhantomData,
        }
    }

    #[inline]
    fn cell(self, i: u32) -> C {
        C::at(self.first.wrapping_add(C::STRIDE.wrapping_mul(i as u64)))
    }

    /// The access as the `i`-th word sees it.
    #[inline]
    fn current(self, i: u32, op: Op, site: u32) -> Current {
        let offset = (self.addr & (WORD - 1)) as u32;
        // Bits of the access's bytes, counted from the first word's first byte.
        let from = offset.saturating_sub(WORD as u32 * i);
        let to = offset
            .wrapping_add(self.size)
            .saturating_sub(WORD as u32 * i)
            .min(WORD as u32);
        let mask = (1u32 << to).wrapping_sub(1u32 << from) & 15;
        debug_assert!(
            mask == (0..4).fold(0, |m, byte| {
                let at = WORD as u32 * i + byte;
                m | u32::from(at >= offset && at < offset + self.size) << byte
            })
        );
        Current { op, site, mask }
    }

    /// Where in memory the `i`-th word's conflict lies: from `byte` of that word on, within the access.
    #[inline]
    fn address(self, i: u32, byte: u32) -> u64 {
        let word = (self.addr & !(WORD - 1)).wrapping_add(WORD.wrapping_mul(i as u64));
        word.wrapping_add(byte as u64).max(self.addr)
    }
}

/// Does a step for each word of an access, and reports the first conflict that it finds.
macro_rules! each_word {
    ($me:ident, $addr:ident, $op:ident, $site:ident, $step:ident) => {
        let Some(span) = shadow::<C, M>($me, $addr, $op.size()) else {
            if $me.m.is_global($addr) {
                count($me, offset_of!(Counters, unchecked));
            }
            return;
        };
        count($me, offset_of!(Counters, checked));
        let mut reported = false;
        let mut i = 0;
        while i < span.count {
            if let Some(conflict) = span.cell(i).$step($me, span.current(i, $op, $site))
                && !reported
            {
                report::race($me, conflict, span.address(i, conflict.byte), $op, $site);
                reported = true;
            }
            i += 1;
        }
    };
}

/// A weak load or store of `op.size()` bytes at `addr`, about to happen.
#[inline(never)]
pub fn access<C: Cell, M: Machine>(me: State<M>, addr: u64, op: Op, site: u32) {
    each_word!(me, addr, op, site, weak);
}

/// An element of an asynchronous reduction, which [`strong_before`] has seen when it was issued, is known to be carried out.
pub fn reduced<C: Cell, M: Machine>(me: State<M>, addr: u64, op: Op, site: u32) {
    each_word!(me, addr, op, site, reduced);
}

/// A strong access, about to happen. The result goes to [`strong_after`].
pub fn strong_before<C: Cell, M: Machine>(me: State<M>, addr: u64, op: Op, site: u32) -> u64 {
    let writes = op.access() != Access::Load;
    let span = shadow::<C, M>(me, addr, op.size());
    if span.is_none() && !me.m.is_global(addr) {
        return 0;
    }
    if writes
        && op.access() != Access::Store
        && op.order().acquires()
        && op.order().releases()
        && me.tells_warps_apart()
    {
        // What it acquires of its own block goes into its release. (Of other blocks: the releases that it joins.)
        own_block_seen(me, span, addr, true);
    }
    let mut release = if writes { release_of(me, op) } else { None };
    let by_fence = release.is_some() && !op.order().releases();
    let had_token = release.map_or(0, |r| r.token);
    if let Some(r) = release
        && by_fence
        && me.recorded_since(r.epoch)
    {
        me.keep_late_write(r.epoch, addr, op, site);
    }
    let mut context = 0;
    match span {
        Some(span) => {
            count(me, offset_of!(Counters, checked));
            let mut found = None;
            let mut i = 0;
            while i < span.count {
                let current = span.current(i, op, site);
                let (conflict, of_word) = span.cell(i).strong_before(me, current, &mut release);
                context = C::join_contexts(context, of_word);
                if found.is_none() {
                    found = conflict.map(|c| (c, span.address(i, c.byte)));
                }
                i += 1;
            }
            if let Some((conflict, at)) = found {
                report::race(me, conflict, at, op, site);
            }
        }
        None => {
            for_sync_cells(me, addr, op.size(), |cell: C| {
                cell.sync_before(me, reach(me.m, op.scope()), &mut release)
            });
        }
    }
    if by_fence {
        if let Some(r) = release
            && r.token != 0
            && r.token != had_token
        {
            me.m.store32(me.fence_token(), r.token);
        }
        // The token must be visible no later than the flag: the user's own fence came before the token.
        me.m.fence(op.scope());
    }
    context
}

/// A strong load or atomic that has happened; `success` is whether a compare-and-swap wrote (else true).
pub fn strong_after<C: Cell, M: Machine>(
    me: State<M>,
    addr: u64,
    op: Op,
    site: u32,
    context: u64,
    success: bool,
) {
    let span = shadow::<C, M>(me, addr, op.size());
    if span.is_none() && !me.m.is_global(addr) {
        block_sync(me, op.order().acquires());
        return;
    }
    if op.access() == Access::Store {
        return;
    }
    let conflict = span.and_then(|span| settle(me, span, op, site, context, success));
    let synchronises = conflict.is_some_and(|(c, _)| may_be_acquired(me, span, op, c));
    acquire_after(me, span, addr, op, site);
    if let Some((conflict, at)) = conflict {
        let prior = conflict.prior;
        let ordered = synchronises
            && !without(Edge::AcquiringAccess)
            && me.happened_before(prior.thread, prior.epoch, prior.warp());
        if !ordered {
            report::race(me, conflict, at, op, site);
        }
    }
}

/// Whether what this access conflicts with can be ordered before it by what it acquires. By PTX's letter what was released
/// with a write of another width is not acquired, but a later release by the same thread is.
fn may_be_acquired<C: Cell, M: Machine>(
    me: State<M>,
    span: Option<Span<C>>,
    op: Op,
    conflict: Conflict,
) -> bool {
    let prior = conflict.prior;
    if !op.order().acquires() {
        return false;
    }
    if conflict.class != RaceClass::MixedWidth || prior.op.access() == Access::Load {
        return true;
    }
    let Some(span) = span else {
        return false;
    };
    let mut later = false;
    let mut i = 0;
    while i < span.count {
        if let Some(Lookup::Found(p)) = span.cell(i).acquirable(me, op.scope()) {
            later |= p.thread == prior.thread && p.epoch() > prior.epoch;
        }
        i += 1;
    }
    later
}

/// What a strong read takes with it of what was released where it read.
fn acquire_after<C: Cell, M: Machine>(
    me: State<M>,
    span: Option<Span<C>>,
    addr: u64,
    op: Op,
    site: u32,
) {
    let acquires = op.order().acquires();
    if me.tells_warps_apart() {
        own_block_seen(me, span, addr, acquires);
    }
    if reach(me.m, op.scope()) <= Scope::Cta {
        if let Some(span) = span
            && me.tells_warps_apart()
        {
            let mut i = 0;
            while i < span.count {
                span.cell(i).observe(me);
                i += 1;
            }
        }
        // Of other blocks the whole block knows the same.
        return;
    }
    if !acquires {
        // The flag's value and its token were written in this order by the releaser; read them in the other.
        me.m.fence(op.scope());
    }
    let take = |cell: C| match cell.acquirable(me, op.scope()) {
        Some(found) if acquires => me.acquire(found),
        Some(found) if without(Edge::PendingOnly) => me.acquire(found),
        Some(found) => me.pend(found, addr, op, site),
        None if acquires => {
            if let Some(write) = cell.unreleased(me, op.scope()) {
                me.note_unreleased(write, addr);
            }
        }
        None => me.keep_unreleased_place(addr),
    };
    match span {
        Some(span) => {
            let mut i = 0;
            while i < span.count {
                take(span.cell(i));
                // A read-modify-write has observed whoever came between its hook and itself.
                span.cell(i).observe(me);
                i += 1;
            }
        }
        None => for_sync_cells(me, addr, op.size(), take),
    }
    if acquires && me.pends_from(addr) {
        // A strong read and an acquire operation after it on the same location are an acquire pattern of their own.
        me.acquire_pending();
    }
}

/// A strong read may have seen what another warp of the block wrote. Where the block did not write, or its write was
/// acquired with its release, there is nothing to add.
fn own_block_seen<C: Cell, M: Machine>(
    me: State<M>,
    span: Option<Span<C>>,
    addr: u64,
    acquires: bool,
) {
    let mut seen = span.is_none();
    if let Some(span) = span {
        let mut i = 0;
        while i < span.count && !seen {
            seen = span.cell(i).written_by_own_block(me);
            i += 1;
        }
    }
    if seen {
        block_sync(me, acquires);
    }
    if !acquires {
        me.pend_at(addr);
    } else if me.pends_from(addr) {
        me.know_pending_block();
    }
}

/// A fence. At block scope it orders the block's warps only.
pub fn fence<C: Cell, M: Machine>(me: State<M>, op: Op) {
    let flags = me.m.load32(field!(me.global(), GlobalState, flags));
    let in_order =
        op.order() == Order::Sc && flags & GlobalState::SC_ORDER != 0 && !without(Edge::ScOrder);
    if me.tells_warps_apart() {
        if op.order().acquires() {
            me.know_pending_block();
        }
        if in_order {
            me.sc_fence();
        }
    }
    if reach(me.m, op.scope()) <= Scope::Cta {
        return;
    }
    if op.order().acquires() && !without(Edge::FenceAcquire) {
        me.acquire_pending();
        if let Some(addr) = me.take_unreleased_place() {
            unreleased_before::<C, M>(me, addr, op.scope());
        }
    }
    if op.order().releases() && !without(Edge::FenceRelease) {
        let epoch = me.close_epoch();
        if in_order {
            sc_order(me, op.scope(), epoch);
        }
        // The block's threads fence concurrently: the later epoch wins, whoever stores last.
        me.m.max32(field!(me.addr, ThreadState, fence_gpu), epoch);
        if op.scope() == Scope::Sys {
            me.m.max32(field!(me.addr, ThreadState, fence_sys), epoch);
        }
    }
}

/// An acquire fence after a relaxed read at `addr`, which found no release: the write that it may have read lacks one.
fn unreleased_before<C: Cell, M: Machine>(me: State<M>, addr: u64, scope: Scope) {
    if let Some(span) = shadow::<C, M>(me, addr, 1) {
        let cell = span.cell(0);
        if cell.acquirable(me, scope).is_none()
            && let Some(write) = cell.unreleased(me, scope)
        {
            me.note_unreleased(write, addr);
        }
    }
}

/// `fence.sc`: PTX puts all that are morally strong in one order, and each synchronises with those after it. The order is
/// that in which they come here. Only on demand: it orders, in the run at hand, much that no other run orders, and hides
/// the missing second fence of a last-block reduction more often than not. Under C++'s rules those are races.
fn sc_order<M: Machine>(me: State<M>, scope: Scope, epoch: Epoch) {
    let devices = me.m.load32(field!(me.global(), GlobalState, num_devices));
    let first = me.first_of_device();
    sc_step(me, field!(first.addr, ThreadState, sc_device), scope, epoch);
    if scope == Scope::Sys && devices > 1 {
        sc_step(
            me,
            field!(me.of(0).addr, ThreadState, sc_system),
            scope,
            epoch,
        );
    }
}

/// Takes the place after the last fence at `at`: knows what it knew, and leaves the own clock for the next.
fn sc_step<M: Machine>(me: State<M>, at: u64, scope: Scope, epoch: Epoch) {
    let mut last = me.m.load64_acquire(at);
    loop {
        let found = SyncClock(last);
        if !found.is_empty() {
            me.acquire(me.lookup(found.thread(), found.token()));
        }
        let token = me.publish(Publication {
            own: Some(epoch),
            join: None,
            epoch,
            event: ScalarClock::access(0, me.thread_id(), scope),
            attempt: false,
        });
        let now =
            me.m.cas64(at, last, SyncClock::new(token, me.thread_id(), scope).0);
        if now == last {
            return;
        }
        last = now;
    }
}

/// What a strong write publishes: its own release, or that of an earlier fence.
fn release_of<M: Machine>(me: State<M>, op: Op) -> Option<Release> {
    if reach(me.m, op.scope()) <= Scope::Cta {
        // Nobody else can acquire it: the block's threads share the clock.
        return None;
    }
    if op.order().releases() && !without(Edge::ReleasePublish) {
        return Some(Release {
            epoch: me.close_epoch(),
            token: 0,
            by_fence: false,
        });
    }
    let devices = me.m.load32(field!(me.global(), GlobalState, num_devices));
    let epoch = if op.scope() == Scope::Sys && devices > 1 {
        me.m.load32(field!(me.addr, ThreadState, fence_sys))
    } else {
        me.m.load32(field!(me.addr, ThreadState, fence_gpu))
    };
    if epoch == 0 {
        return None;
    }
    let token = me.m.load32(me.fence_token());
    Some(Release {
        epoch,
        token: if me.holds(token, epoch) { token } else { 0 },
        by_fence: true,
    })
}

fn settle<C: Cell, M: Machine>(
    me: State<M>,
    span: Span<C>,
    op: Op,
    site: u32,
    context: u64,
    success: bool,
) -> Option<(Conflict, u64)> {
    if context == 0 && !(success && op.access() == Access::Cas) {
        return None;
    }
    let mut found = None;
    let mut i = 0;
    while i < span.count {
        let conflict = span
            .cell(i)
            .settle(me, span.current(i, op, site), context, success);
        if found.is_none() {
            found = conflict.map(|c| (c, span.address(i, c.byte)));
        }
        i += 1;
    }
    found
}

/// The cells of `size` bytes at `addr`, if that memory has shadow: the reservation, or a module's variable.
#[inline]
fn shadow<C: Cell, M: Machine>(me: State<M>, addr: u64, size: u32) -> Option<Span<C>> {
    let m = me.m;
    let [base, size_of_real] = m.load64x2(field!(me.addr, ThreadState, real_base));
    let offset = addr.wrapping_sub(base);
    if offset < size_of_real {
        let first = m.load64(field!(me.addr, ThreadState, shadow_base));
        return Some(Span::new(cell_at::<C>(first, offset), addr, size));
    }
    shadow_of_variable(me, addr, size)
}

#[inline]
fn cell_at<C: Cell>(first: u64, offset: u64) -> u64 {
    first.wrapping_add((offset / WORD).wrapping_mul(C::STRIDE))
}

/// Module variables: a binary search in a small sorted table.
fn shadow_of_variable<C: Cell, M: Machine>(me: State<M>, addr: u64, size: u32) -> Option<Span<C>> {
    let m = me.m;
    let table = m.load64(field!(me.global(), GlobalState, ranges));
    let mut low = 0;
    let mut high = m.load32(field!(me.global(), GlobalState, num_ranges));
    while low < high {
        let middle = low + (high - low) / 2;
        let range = table.wrapping_add(size_of::<Range>() as u64 * middle as u64);
        let start = m.load64(field!(range, Range, start));
        if addr < start {
            high = middle;
        } else if addr.wrapping_sub(start) >= m.load64(field!(range, Range, size)) {
            low = middle + 1;
        } else {
            // The table's cells start at the word that holds `start`.
            let offset = addr.wrapping_sub(start & !(WORD - 1));
            let first = m.load64(field!(range, Range, shadow));
            return Some(Span::new(cell_at::<C>(first, offset), addr, size));
        }
    }
    None
}

/// Calls `f` with the hashed sync cell of each word.
#[inline]
pub fn for_sync_cells<C: Cell, M: Machine>(
    me: State<M>,
    addr: u64,
    size: u32,
    mut f: impl FnMut(C),
) {
    let table = me.m.load64(field!(me.global(), GlobalState, sync_cells));
    let mask = me.m.load32(field!(me.global(), GlobalState, sync_mask));
    let mut word = addr / WORD;
    let last = addr.wrapping_add(size.max(1) as u64 - 1) / WORD;
    loop {
        let hash = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 & mask;
        f(C::at(
            table.wrapping_add(C::STRIDE.wrapping_mul(hash as u64)),
        ));
        if word >= last {
            return;
        }
        word = word.wrapping_add(1);
    }
}

#[inline]
fn count<M: Machine>(me: State<M>, offset: usize) {
    let counters = me.m.load64(field!(me.addr, ThreadState, access_counters));
    let group = me.m.group();
    if counters != 0 && me.m.leads(group) {
        me.m.tally64(
            counters.wrapping_add(offset as u64),
            group.count_ones() as u64,
        );
    }
}
