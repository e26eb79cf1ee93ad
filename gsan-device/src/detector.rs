//! The detector: happens-before with vector clocks, over shadow memory.
//!
//! The algorithm is the classic GSan's (Triton; its semantics are restated in this project's docs), under the PTX memory
//! model. Two accesses to one word race when at least one writes, they are not both strong with scopes that reach each
//! other, and neither happens before the other: order comes from kernel boundaries (clock rows), from release and
//! acquire operations (tokens in shadow cells), and from fences around relaxed ones.
//!
//! What it can miss: readers beyond the sample, accesses inside one block (a block is one logical thread), and the
//! classes that [`crate::layout::Counters`] tallies. Whatever is approximated only adds order, so it never reports what is
//! synchronised, with one exception that the reference cell can't avoid: neighbouring bytes of one word.
//!
//! No lock spans a user instruction. Before a release (or any strong write) the hook leaves its token in the shadow; an
//! acquire looks for the token in a second hook, after the load.

use crate::clock::State;
use crate::layout::{
    Access, Counters, GlobalState, Op, RaceClass, RaceKind, Range, ScalarClock, Scope, ThreadState,
    WORD,
};
use crate::machine::{Machine, field};
use crate::reference::{Cell, Conflict, Release};
use crate::report;
use core::mem::{offset_of, size_of};

/// Cells of an access that lies in shadowed memory.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    count: u32,
    /// First byte of the first word.
    word: u64,
}

impl Span {
    #[inline]
    fn cell(self, i: u32) -> Cell {
        Cell::at(self.first.wrapping_add(Cell::STRIDE.wrapping_mul(i as u64)))
    }

    /// Where in memory the `i`-th word's conflict lies: in the first word, the access's own first byte.
    #[inline]
    fn address(self, i: u32, addr: u64) -> u64 {
        if i == 0 {
            addr
        } else {
            self.word.wrapping_add(WORD.wrapping_mul(i as u64))
        }
    }
}

/// A weak load or store of `op.size()` bytes at `addr`, about to happen.
#[inline]
pub fn access<M: Machine>(me: State<M>, addr: u64, op: Op, site: u32) {
    let Some(span) = shadow(me, addr, op.size()) else {
        if me.m.is_global(addr) {
            count(me, offset_of!(Counters, unchecked));
        }
        return;
    };
    count(me, offset_of!(Counters, checked));
    let mut found = None;
    let mut i = 0;
    while i < span.count {
        let cell = span.cell(i);
        let conflict = if op.access() == Access::Load {
            cell.plain_read(me)
        } else {
            cell.plain_write(me)
        };
        if found.is_none() {
            found = conflict.map(|c| (c, span.address(i, addr)));
        }
        i += 1;
    }
    if let Some((conflict, at)) = found {
        report::race(me, conflict, at, op, site);
    }
}

/// A strong access, about to happen. The result goes to [`strong_after`].
pub fn strong_before<M: Machine>(me: State<M>, addr: u64, op: Op, site: u32) -> u64 {
    let writes = op.access() != Access::Load;
    let span = shadow(me, addr, op.size());
    if span.is_none() && !me.m.is_global(addr) {
        return 0;
    }
    let mut release = if writes { release_of(me, op) } else { None };
    let by_fence = release.is_some() && !op.order().releases();
    let had_token = release.map_or(0, |r| r.token);
    let mut context = 0;
    match span {
        Some(span) => {
            count(me, offset_of!(Counters, checked));
            let mut found = None;
            let mut deferred = None;
            let mut i = 0;
            while i < span.count {
                let before = span.cell(i).strong_before(me, op, &mut release);
                if i == 0 {
                    context = before.attempt.0 as u64;
                }
                if found.is_none() {
                    found = before.conflict.map(|c| (c, span.address(i, addr)));
                }
                if deferred.is_none() {
                    deferred = before.deferred;
                }
                i += 1;
            }
            if let Some((conflict, at)) = found {
                report::race(me, conflict, at, op, site);
            } else if let Some(conflict) = deferred {
                context |= deferred_bits(conflict);
            }
        }
        None => {
            for_sync_cells(me, addr, op.size(), |cell| {
                cell.sync_before(me, op.scope(), &mut release)
            });
        }
    }
    if by_fence {
        if let Some(r) = release
            && r.token != 0
            && r.token != had_token
        {
            me.m.store32(field!(me.addr, ThreadState, fence_token), r.token);
        }
        // The token must be visible no later than the flag: the user's own fence came before the token.
        me.m.fence(op.scope());
    }
    context
}

/// A strong load or atomic that has happened; `success` is whether a compare-and-swap wrote (else true).
pub fn strong_after<M: Machine>(
    me: State<M>,
    addr: u64,
    op: Op,
    site: u32,
    context: u64,
    success: bool,
) {
    let span = shadow(me, addr, op.size());
    if span.is_none() && !me.m.is_global(addr) {
        return;
    }
    if op.access() == Access::Cas
        && success
        && let Some(span) = span
    {
        cas_committed(me, span, addr, op, site, context);
    }
    if op.access() == Access::Store {
        return;
    }
    let acquires = op.order().acquires();
    if op.scope() <= Scope::Cta {
        // The block is one logical thread: it knows all that it could acquire.
        return;
    }
    if !acquires {
        // The flag's value and its token were written in this order by the releaser; read them in the other.
        me.m.fence(op.scope());
    }
    let take = |cell: Cell| {
        if let Some(found) = cell.acquirable(me, op.scope()) {
            if acquires {
                me.acquire(found);
            } else {
                me.pend(found);
            }
        }
    };
    match span {
        Some(span) => {
            let mut i = 0;
            while i < span.count {
                take(span.cell(i));
                if op.access() == Access::Load {
                    span.cell(i).observe(me);
                }
                i += 1;
            }
        }
        None => for_sync_cells(me, addr, op.size(), take),
    }
}

/// A fence. At block scope it orders nothing that a logical thread does not order by itself.
pub fn fence<M: Machine>(me: State<M>, op: Op) {
    if op.scope() <= Scope::Cta {
        return;
    }
    if op.order().acquires() {
        me.acquire_pending();
    }
    if op.order().releases() {
        let epoch = me.close_epoch();
        // The block's threads fence concurrently: the later epoch wins, whoever stores last.
        me.m.max32(field!(me.addr, ThreadState, fence_gpu), epoch);
        if op.scope() == Scope::Sys {
            me.m.max32(field!(me.addr, ThreadState, fence_sys), epoch);
        }
    }
}

/// What a strong write publishes: its own release, or that of an earlier fence.
fn release_of<M: Machine>(me: State<M>, op: Op) -> Option<Release> {
    if op.scope() <= Scope::Cta {
        // Nobody else can acquire it: the block's threads share the clock.
        return None;
    }
    if op.order().releases() {
        return Some(Release {
            epoch: me.close_epoch(),
            token: 0,
        });
    }
    let devices = me.m.load32(field!(me.global, GlobalState, num_devices));
    let epoch = if op.scope() == Scope::Sys && devices > 1 {
        me.m.load32(field!(me.addr, ThreadState, fence_sys))
    } else {
        me.m.load32(field!(me.addr, ThreadState, fence_gpu))
    };
    if epoch == 0 {
        return None;
    }
    let token = me.m.load32(field!(me.addr, ThreadState, fence_token));
    Some(Release {
        epoch,
        token: if me.holds(token, epoch) { token } else { 0 },
    })
}

fn cas_committed<M: Machine>(me: State<M>, span: Span, addr: u64, op: Op, site: u32, context: u64) {
    let mut found = deferred_conflict(context).map(|c| (c, addr));
    let mut i = 0;
    while i < span.count {
        let conflict = span.cell(i).cas_after(me, op, ScalarClock(context as u32));
        if found.is_none() {
            found = conflict.map(|c| (c, span.address(i, addr)));
        }
        i += 1;
    }
    if let Some((conflict, at)) = found {
        report::race(me, conflict, at, op, site);
    }
}

/// A compare-and-swap's deferred race, carried from one hook to the next in the context's upper half: the reader's clock
/// with the top bit set, and the class in the otherwise unused release bit.
fn deferred_bits(conflict: Conflict) -> u64 {
    let clock = ScalarClock::access(
        conflict.prior_epoch,
        conflict.prior.thread(),
        conflict.prior.scope(),
    );
    let narrow = if conflict.class == RaceClass::ScopeTooNarrow {
        1 << 30
    } else {
        0
    };
    ((clock.0 | 1 << 31 | narrow) as u64) << 32
}

fn deferred_conflict(context: u64) -> Option<Conflict> {
    let word = (context >> 32) as u32;
    if word & 1 << 31 == 0 {
        return None;
    }
    let prior = ScalarClock(word & !(3 << 30));
    let class = if word & 1 << 30 != 0 {
        RaceClass::ScopeTooNarrow
    } else {
        RaceClass::Race
    };
    Some(Conflict {
        kind: RaceKind::War,
        class,
        prior,
        prior_epoch: prior.epoch(),
        prior_access: Access::Load,
    })
}

/// The cells of `size` bytes at `addr`, if that memory has shadow: the reservation, or a module's variable.
#[inline]
fn shadow<M: Machine>(me: State<M>, addr: u64, size: u32) -> Option<Span> {
    let m = me.m;
    let base = m.load64(field!(me.global, GlobalState, real_base));
    let offset = addr.wrapping_sub(base);
    if offset < m.load64(field!(me.global, GlobalState, real_size)) {
        let first = m.load64(field!(me.global, GlobalState, shadow_base));
        return Some(span_at(first, offset, addr, size));
    }
    shadow_of_variable(me, addr, size)
}

#[inline]
fn span_at(first: u64, offset: u64, addr: u64, size: u32) -> Span {
    let word = offset / WORD;
    let last = offset.wrapping_add(size.max(1) as u64 - 1) / WORD;
    Span {
        first: first.wrapping_add(word.wrapping_mul(Cell::STRIDE)),
        count: last.wrapping_sub(word) as u32 + 1,
        word: addr.wrapping_sub(offset % WORD),
    }
}

/// Module variables: a binary search in a small sorted table.
fn shadow_of_variable<M: Machine>(me: State<M>, addr: u64, size: u32) -> Option<Span> {
    let m = me.m;
    let table = m.load64(field!(me.global, GlobalState, ranges));
    let mut low = 0;
    let mut high = m.load32(field!(me.global, GlobalState, num_ranges));
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
            return Some(span_at(
                m.load64(field!(range, Range, shadow)),
                offset,
                addr,
                size,
            ));
        }
    }
    None
}

/// Calls `f` with the hashed sync cell of each word.
#[inline]
fn for_sync_cells<M: Machine>(me: State<M>, addr: u64, size: u32, mut f: impl FnMut(Cell)) {
    let table = me.m.load64(field!(me.global, GlobalState, sync_cells));
    let mask = me.m.load32(field!(me.global, GlobalState, sync_mask));
    let mut word = addr / WORD;
    let last = addr.wrapping_add(size.max(1) as u64 - 1) / WORD;
    loop {
        let hash = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 & mask;
        f(Cell::at(
            table.wrapping_add(Cell::STRIDE.wrapping_mul(hash as u64)),
        ));
        if word >= last {
            return;
        }
        word = word.wrapping_add(1);
    }
}

#[inline]
fn count<M: Machine>(me: State<M>, offset: usize) {
    if me.m.load32(field!(me.global, GlobalState, flags)) & GlobalState::COUNT_ACCESSES != 0 {
        me.tally(offset);
    }
}
