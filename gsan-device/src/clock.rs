//! Vector clocks of logical threads: what a block knows, and what it publishes.
//!
//! A logical thread is a residency slot; its tenant (a block) knows the clock row that its launch inherited until it
//! acquires something, then its own copy. Own epochs are `[start_epoch, epoch]`; earlier tenants of the slot are known
//! only through the row, like anybody else. Entries only grow, so reading needs no lock, and whatever is read late can
//! only add order, never lose it. The warps of one block are `warps`' affair.

use crate::cell::Prior;
use crate::layout::{
    Counters, Epoch, GlobalState, Op, PartialClock, RaceClass, ScalarClock, Scope, Snapshot,
    ThreadState, WORD,
};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use crate::row::Row;
use crate::warps::ANY_WARP;

/// A logical thread's state in memory.
#[derive(Clone, Copy)]
pub struct State<M> {
    /// The machine.
    pub m: M,
    /// Address of the [`ThreadState`].
    pub addr: u64,
    /// [`ThreadState::who`].
    who: u64,
}

/// What a thread knows at a moment.
#[derive(Clone, Copy)]
pub struct View<M> {
    me: State<M>,
    start: Epoch,
    row: Row,
}

/// A published clock found by its token.
#[derive(Clone, Copy)]
pub struct Published<M> {
    m: M,
    addr: u64,
    /// Thread that published it.
    pub thread: u32,
    /// Its absolute token.
    pub token: u32,
}

/// What became of a token.
#[derive(Clone, Copy)]
pub enum Lookup<M> {
    /// The snapshot is there.
    Found(Published<M>),
    /// The ring went round since.
    Overwritten {
        /// The writer.
        thread: u32,
        /// The absolute token.
        token: u32,
    },
}

impl<M: Machine> Published<M> {
    /// Epoch of the recorded write; 0 when there was none.
    #[inline]
    pub fn epoch(self) -> Epoch {
        self.m.load32(field!(self.addr, Snapshot, epoch))
    }

    /// Thread and scope of the recorded write.
    #[inline]
    pub fn event(self) -> ScalarClock {
        ScalarClock(self.m.load32(field!(self.addr, Snapshot, event)))
    }

    /// 0: the publisher's own clock; 1: joined with earlier releases of the location; 2: with attempts as well.
    #[inline]
    pub fn joined(self) -> u32 {
        self.m.load32(field!(self.addr, Snapshot, joined))
    }

    /// The clock.
    #[inline]
    fn row(self) -> Row {
        Row::of_snapshot(self.addr)
    }

    /// The clock's entry for a thread.
    #[inline]
    pub fn entry(self, thread: u32) -> Epoch {
        self.row().entry(self.m, thread)
    }

    /// The clock's `i`-th entry for a single warp.
    #[inline]
    pub fn partial(self, i: u32) -> PartialClock {
        self.row().partial(self.m, i)
    }

    /// Whether it says that what `thread`'s `warp` did at `epoch` comes before.
    pub fn covers(self, me: State<M>, thread: u32, epoch: Epoch, warp: u32) -> bool {
        self.entry(thread) >= epoch || me.knows_partly(self.row(), thread, epoch, warp)
    }

    /// Whether the snapshot is still the one that was found: what was read from it before this call is then whole.
    #[inline]
    pub fn intact(self) -> bool {
        self.m.fence(Scope::Gpu);
        self.m.load32(field!(self.addr, Snapshot, token)) == self.token
    }

    /// Makes a compare-and-swap's attempt the recorded write, once it is known to have succeeded.
    #[inline]
    pub fn commit(self, epoch: Epoch, event: ScalarClock) {
        self.m.store32(field!(self.addr, Snapshot, event), event.0);
        self.m.store32(field!(self.addr, Snapshot, epoch), epoch);
    }
}

/// A snapshot's contents before it is written.
#[derive(Clone, Copy)]
pub struct Publication<M> {
    /// The own clock up to this epoch; `None`: only what `join` holds (a relaxed write that continues a release sequence).
    pub own: Option<Epoch>,
    /// An earlier release of the location whose clock is joined in.
    pub join: Option<Lookup<M>>,
    /// Epoch of the write to record.
    pub epoch: Epoch,
    /// Thread and scope of the write to record.
    pub event: ScalarClock,
    /// True for a compare-and-swap that may yet fail.
    pub attempt: bool,
}

/// A bit for the word at `addr`.
#[inline]
fn place(addr: u64) -> u32 {
    1 << ((addr / WORD).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59)
}

impl<M: Machine> View<M> {
    /// The last epoch of `thread` that is known. For the own slot: of earlier tenants.
    #[inline]
    pub fn known(self, thread: u32) -> Epoch {
        if without(Edge::BaseRow) && !self.row.has_partials() {
            return 0;
        }
        self.row.entry(self.me.m, thread)
    }

    /// Whether an access of `thread`'s `warp` at `epoch`, of which thread everything up to `known` is known, happens before
    /// whatever this thread does now.
    #[inline]
    pub fn is_before(self, known: Epoch, thread: u32, epoch: Epoch, warp: u32) -> bool {
        if thread == self.me.thread_id() && epoch >= self.start {
            return self.me.knows_warp(warp, epoch);
        }
        known >= epoch || self.me.knows_partly(self.row, thread, epoch, warp)
    }
}

/// Logical threads of one device.
fn per_device<M: Machine>(m: M, global: u64) -> u32 {
    m.load32(field!(global, GlobalState, num_sms))
        .wrapping_mul(m.load32(field!(global, GlobalState, slots_per_sm)))
}

/// Where a logical thread's state lies.
fn address<M: Machine>(m: M, global: u64, thread: u32) -> u64 {
    let per_device = per_device(m, global);
    let device = thread.checked_div(per_device).unwrap_or(0);
    let local = thread.wrapping_sub(device.wrapping_mul(per_device));
    let of_device = m
        .load64(field!(global, GlobalState, device_stride))
        .wrapping_mul(device as u64);
    let of_thread = m
        .load64(field!(global, GlobalState, thread_stride))
        .wrapping_mul(local as u64);
    m.load64(field!(global, GlobalState, threads))
        .wrapping_add(of_device)
        .wrapping_add(of_thread)
}

impl<M: Machine> State<M> {
    /// The state at `addr`.
    #[inline]
    pub fn at(m: M, addr: u64) -> Self {
        let who = m.load64(field!(addr, ThreadState, who));
        State { m, addr, who }
    }

    /// The state of logical thread `thread` of the devices of `global`.
    pub fn of_device(m: M, global: u64, thread: u32) -> Self {
        let num_threads = m.load32(field!(global, GlobalState, num_threads));
        State {
            m,
            addr: address(m, global, thread),
            who: ThreadState::identity(thread, num_threads),
        }
    }

    /// Address of the device's [`GlobalState`].
    #[inline]
    pub fn global(self) -> u64 {
        self.m.load64(field!(self.addr, ThreadState, global))
    }

    /// Length of a clock row.
    #[inline]
    pub fn num_threads(self) -> u32 {
        (self.who >> 32) as u32
    }

    /// The state of another logical thread.
    #[inline]
    pub fn of(self, thread: u32) -> Self {
        State {
            m: self.m,
            addr: address(self.m, self.global(), thread),
            who: ThreadState::identity(thread, self.num_threads()),
        }
    }

    /// The first logical thread of this one's device.
    #[inline]
    pub fn first_of_device(self) -> Self {
        let per_device = per_device(self.m, self.global());
        self.of(self.device_of(self.thread_id()).wrapping_mul(per_device))
    }

    /// Which device a logical thread belongs to.
    #[inline]
    pub fn device_of(self, thread: u32) -> u32 {
        let per_device = per_device(self.m, self.global());
        thread.checked_div(per_device).unwrap_or(0)
    }

    /// Index of this thread in a clock row.
    #[inline]
    pub fn thread_id(self) -> u32 {
        self.who as u32
    }

    /// The current epoch.
    #[inline]
    pub fn epoch(self) -> Epoch {
        self.m.load32(field!(self.addr, ThreadState, epoch))
    }

    /// The tenant's first epoch.
    #[inline]
    pub fn start_epoch(self) -> Epoch {
        self.m.load32(field!(self.addr, ThreadState, start_epoch))
    }

    /// Closes the current epoch and returns it.
    #[inline]
    pub fn close_epoch(self) -> Epoch {
        if without(Edge::EpochClose) {
            return self.epoch();
        }
        self.m.add32(field!(self.addr, ThreadState, epoch), 1)
    }

    #[inline]
    fn own_clock(self) -> Row {
        Row::new(
            self.addr.wrapping_add(ThreadState::CLOCK),
            field!(self.addr, ThreadState, partials),
        )
    }

    #[inline]
    fn pending_clock(self) -> Row {
        Row::new(
            self.addr
                .wrapping_add(ThreadState::pending_offset(self.num_threads())),
            field!(self.addr, ThreadState, pending_partials),
        )
    }

    #[inline]
    fn unreleased_clock(self) -> Row {
        Row::plain(
            self.addr
                .wrapping_add(ThreadState::unreleased_offset(self.num_threads())),
        )
    }

    /// The clock row that holds what this thread knows of the others.
    #[inline]
    fn row(self) -> Row {
        if self
            .m
            .load32_acquire(field!(self.addr, ThreadState, clock_mode))
            == 2
        {
            self.own_clock()
        } else {
            self.base_row()
        }
    }

    #[inline]
    fn base_row(self) -> Row {
        Row::plain(self.m.load64(field!(self.addr, ThreadState, base_row)))
    }

    /// The last epoch of `thread` that is known here. For the own slot: of earlier tenants.
    #[inline]
    pub fn known(self, thread: u32) -> Epoch {
        self.view().known(thread)
    }

    /// Whether an access of `thread`'s `warp` at `epoch` happens before whatever this thread does now.
    #[inline]
    pub fn happened_before(self, thread: u32, epoch: Epoch, warp: u32) -> bool {
        let view = self.view();
        view.is_before(view.known(thread), thread, epoch, warp)
    }

    /// What this thread knows, for several questions at a time.
    #[inline]
    pub fn view(self) -> View<M> {
        let start = if without(Edge::StartEpoch) {
            0
        } else {
            self.start_epoch()
        };
        let row = self.row();
        View {
            me: self,
            start,
            row,
        }
    }

    /// Whether an access of `thread` at `epoch` was made since this launch began, as far as its blocks can know.
    pub fn since_launch(self, thread: u32, epoch: Epoch) -> bool {
        self.m.load32(field!(self.addr, ThreadState, users)) == 1 && !self.inherited(thread, epoch)
    }

    /// Whether an access of `thread` at `epoch` was over before a launch began that is still running here.
    #[inline]
    pub fn inherited(self, thread: u32, epoch: Epoch) -> bool {
        self.base_row().entry(self.m, thread) >= epoch
    }

    /// Finds the snapshot behind a release clock.
    #[inline]
    pub fn find(self, clock: ScalarClock) -> Lookup<M> {
        let m = self.m;
        let thread = clock.thread();
        let writer = self.of(thread);
        let head = m.load32(field!(writer.addr, ThreadState, ring_head));
        // The cell keeps the token's low half: the newest token with that half is at least as new as the one meant,
        // and what it holds includes it.
        let token = head.wrapping_sub(head.wrapping_sub(clock.epoch()) & 0xffff);
        self.lookup(thread, token)
    }

    /// Finds a thread's snapshot by its absolute token.
    #[inline]
    pub fn lookup(self, thread: u32, token: u32) -> Lookup<M> {
        let m = self.m;
        let addr = self.of(thread).snapshot(token);
        if m.load32_acquire(field!(addr, Snapshot, token)) == token {
            Lookup::Found(Published {
                m,
                addr,
                thread,
                token,
            })
        } else {
            Lookup::Overwritten { thread, token }
        }
    }

    /// Whether an earlier release adds nothing to one of the own clock up to `epoch`: it was acquired, and held nothing but its
    /// publisher's. (Another of the block's threads may have closed a later epoch, and been here first.)
    #[inline]
    pub fn includes(self, release: Lookup<M>, epoch: Epoch) -> bool {
        match release {
            Lookup::Found(p) => {
                let (released, warp) = p.own();
                // Of a whole block's release it is not enough to know one warp.
                let known = if p.thread == self.thread_id() {
                    released <= epoch && self.happened_before(p.thread, released, warp)
                } else if warp == ANY_WARP {
                    self.known(p.thread) >= released
                } else {
                    self.happened_before(p.thread, released, warp)
                };
                p.joined() == 0 && known && p.intact()
            }
            Lookup::Overwritten { .. } => false,
        }
    }

    /// Whether the own ring still holds the snapshot of a token, and it covers the own accesses up to `epoch`.
    #[inline]
    pub fn holds(self, token: u32, epoch: Epoch) -> bool {
        let m = self.m;
        let addr = self.snapshot(token);
        if token == 0 || m.load32_acquire(field!(addr, Snapshot, token)) != token {
            return false;
        }
        let published = Published {
            m,
            addr,
            thread: self.thread_id(),
            token,
        };
        let (prefix, own) = self.own_part(epoch);
        let (upto, warp) = published.own();
        published.joined() == 0
            && upto >= epoch
            && (own.is_empty() || own.warp() == warp)
            && published.entry(published.thread) >= prefix
            && published.intact()
    }

    #[inline]
    fn snapshot(self, token: u32) -> u64 {
        let size = self
            .m
            .load32(field!(self.global(), GlobalState, clock_buffer_size));
        let slot = token.checked_rem(size).unwrap_or(0);
        self.addr
            .wrapping_add(ThreadState::ring_offset(self.num_threads()))
            .wrapping_add(Snapshot::stride(self.num_threads()).wrapping_mul(slot as u64))
    }

    /// Writes a snapshot into the own ring and returns its token.
    #[inline(never)]
    pub fn publish(self, p: Publication<M>) -> u32 {
        let m = self.m;
        let token = m
            .add32(field!(self.addr, ThreadState, ring_head), 1)
            .wrapping_add(1);
        let addr = self.snapshot(token);
        m.store32(field!(addr, Snapshot, token), 0);
        m.fence(Scope::Gpu);
        let row = self.row();
        let id = self.thread_id();
        let mut joined = match p.join {
            Some(Lookup::Found(old)) => old.joined().max(1),
            Some(Lookup::Overwritten { .. }) => 2,
            None => 0,
        };
        if p.attempt {
            joined = 2;
        }
        let snapshot = Row::of_snapshot(addr);
        let own = p.own.map(|epoch| self.own_part(epoch));
        let n = self.num_threads();
        let mut join = p.join;
        loop {
            let mine = |i: u32, epoch: Epoch| match own {
                Some((prefix, _)) if i == id => prefix,
                Some(_) => epoch,
                None => 0,
            };
            match join {
                Some(Lookup::Found(old)) => old.row().each_pair(row, m, n, |i, old, epoch| {
                    m.store32(snapshot.entry_addr(i), mine(i, epoch).max(old));
                }),
                Some(gone) => row.each(m, n, |i, epoch| {
                    let epoch = mine(i, epoch).max(self.entry_of(gone, i));
                    m.store32(snapshot.entry_addr(i), epoch);
                }),
                None => row.each(m, n, |i, epoch| {
                    m.store32(snapshot.entry_addr(i), mine(i, epoch));
                }),
            }
            snapshot.clear_partials(m);
            let mut used = 0;
            if let Some((_, partial)) = own {
                m.store64(snapshot.partial_addr(0), partial.0);
                used = 1;
                if !partial.is_empty() {
                    used = self.add_pairs(snapshot, partial.epoch(), used);
                }
                used = self.copy_partials(snapshot, row, used);
            }
            if let Some(Lookup::Found(old)) = join {
                self.copy_partials(snapshot, old.row(), used);
            }
            let settled = join.map(Self::settled);
            if settled.map(Self::is_found) == join.map(Self::is_found) {
                break;
            }
            join = settled;
            joined = 2;
        }
        m.store32(field!(addr, Snapshot, epoch), p.epoch);
        m.store32(field!(addr, Snapshot, event), p.event.0);
        m.store32(field!(addr, Snapshot, joined), joined);
        m.store32_release(field!(addr, Snapshot, token), token);
        token
    }

    /// Appends one row's entries for single warps to those of a snapshot that nobody reads yet, from the `used`-th place on.
    /// What finds no place is known of the whole block.
    fn copy_partials(self, snapshot: Row, from: Row, used: u32) -> u32 {
        let m = self.m;
        let mut used = used;
        let mut i = 0;
        while i < PartialClock::PER_ROW as u32 {
            let partial = from.partial(m, i);
            let at = snapshot.entry_addr(partial.thread());
            if !partial.is_empty()
                && partial.thread() < self.num_threads()
                && partial.epoch() > m.load32(at)
            {
                if used < PartialClock::PER_ROW as u32 {
                    m.store64(snapshot.partial_addr(used), partial.0);
                    used += 1;
                } else {
                    m.store32(at, partial.epoch());
                }
            }
            i += 1;
        }
        used
    }

    /// What a release knew of `thread`; for an overwritten one, at least that (class `ring-wrap`).
    #[inline(never)]
    fn entry_of(self, from: Lookup<M>, thread: u32) -> Epoch {
        match from {
            Lookup::Found(p) => p.entry(thread),
            // The snapshot may have held releases that its writer joined and never acquired, or its writer is gone:
            // everything up to now is the only safe answer.
            Lookup::Overwritten { .. } if without(Edge::RingWrap) => 0,
            Lookup::Overwritten { .. } => self.of(thread).epoch(),
        }
    }

    /// `from`, or what it has become: the ring may have gone round while it was read.
    #[inline]
    fn settled(from: Lookup<M>) -> Lookup<M> {
        match from {
            Lookup::Found(p) if !p.intact() => Lookup::Overwritten {
                thread: p.thread,
                token: p.token,
            },
            other => other,
        }
    }

    /// Imports a published clock: everything it knows happens before what this thread does from now on.
    #[inline(never)]
    pub fn acquire(self, from: Lookup<M>) {
        if without(Edge::AcquireMerge) {
            return;
        }
        self.learn_own_block(from, true);
        let key = Self::key(from);
        if self
            .m
            .load64_acquire(field!(self.addr, ThreadState, last_acquired))
            == key
        {
            return;
        }
        self.own();
        self.merge(self.own_clock(), from);
        self.m
            .store64_release(field!(self.addr, ThreadState, last_acquired), key);
        self.count_wrap(from);
    }

    /// Remembers a published clock that a relaxed read saw: an acquire fence imports it.
    #[inline(never)]
    pub fn pend(self, from: Lookup<M>, addr: u64, op: Op, site: u32) {
        let m = self.m;
        self.learn_own_block(from, false);
        if let Lookup::Found(p) = from
            && p.thread == self.thread_id()
            && p.joined() == 0
            && p.epoch() >= self.start_epoch()
            && p.intact()
        {
            // The block's own: there is nothing about others in it that is not known.
            return;
        }
        self.pend_at(addr);
        let key = Self::key(from);
        if m.load64_acquire(field!(self.addr, ThreadState, last_pending)) == key {
            return;
        }
        self.clear_once(
            field!(self.addr, ThreadState, pending_mode),
            self.pending_clock(),
        );
        self.merge(self.pending_clock(), from);
        self.keep_relaxed_read(key, addr, op, site);
        m.add32(field!(self.addr, ThreadState, pending_version), 1);
        m.store64_release(field!(self.addr, ThreadState, last_pending), key);
        self.count_wrap(from);
    }

    /// Remembers where a relaxed read was.
    #[inline]
    pub fn pend_at(self, addr: u64) {
        let places = field!(self.addr, ThreadState, pending_places);
        if self.m.load32(places) & place(addr) == 0 {
            self.m.or32(places, place(addr));
        }
    }

    /// Whether a relaxed read at `addr` (or at an address with the same hash) may have made a clock pending.
    #[inline]
    pub fn pends_from(self, addr: u64) -> bool {
        self.m
            .load32(field!(self.addr, ThreadState, pending_places))
            & place(addr)
            != 0
    }

    /// Imports what is pending: an acquire fence. When it returns, all that was pending before is known, whichever of the
    /// block's threads has done the work.
    #[inline(never)]
    pub fn acquire_pending(self) {
        let m = self.m;
        self.know_pending_block();
        let imported = field!(self.addr, ThreadState, imported_version);
        let version = m.load32_acquire(field!(self.addr, ThreadState, pending_version));
        if m.load32_acquire(imported) >= version {
            return;
        }
        self.own();
        self.raise_all(self.own_clock(), self.pending_clock());
        self.add_partials(self.own_clock(), self.pending_clock());
        m.fence(Scope::Cta);
        m.max32(imported, version);
    }

    /// Remembers that a strong read saw a strong write that carried no release: if the two threads race, that is why.
    pub fn note_unreleased(self, write: Prior, addr: u64) {
        let m = self.m;
        let (thread, epoch) = (write.thread, write.epoch);
        let row = self.unreleased_clock();
        self.clear_once(field!(self.addr, ThreadState, unreleased_mode), row);
        if row.entry(m, thread) < epoch {
            m.max32(row.entry_addr(thread), epoch);
        }
        self.keep_relaxed_write(write, addr);
    }

    /// What is missing between an access of `thread` at `epoch` and this thread, as far as the halves of a pattern that
    /// were there say.
    #[inline(never)]
    pub fn missing(self, thread: u32, epoch: Epoch, warp: u32) -> RaceClass {
        let m = self.m;
        let holds = |mode: u64, row: Row| {
            m.load32_acquire(mode) == VALID
                && (row.entry(m, thread) >= epoch || self.knows_partly(row, thread, epoch, warp))
        };
        if (thread == self.thread_id() && epoch >= self.start_epoch())
            || self.knows_partly(self.row(), thread, epoch, ANY_WARP)
            || self.released_early(self.row(), thread, epoch, warp)
        {
            // Another warp of the own block; or of one whose release is known, but came from another of its warps, with no
            // barrier in between.
            RaceClass::IntraBlock
        } else if holds(
            field!(self.addr, ThreadState, pending_mode),
            self.pending_clock(),
        ) {
            RaceClass::MissingAcquire
        } else if holds(
            field!(self.addr, ThreadState, unreleased_mode),
            self.unreleased_clock(),
        ) {
            RaceClass::MissingRelease
        } else if self.late_write_of(thread, epoch).is_some() {
            // Its flag carried no more than the release of a fence before the access.
            RaceClass::MissingRelease
        } else {
            RaceClass::Race
        }
    }

    /// Imports a clock row: what a launch inherits, for a block that joins a slot in use.
    #[inline(never)]
    pub fn import_row(self, row: u64) {
        if without(Edge::SharedSlotRow) {
            return;
        }
        self.own();
        self.raise_all(self.own_clock(), Row::plain(row));
    }

    /// Whether all that is in a row is known here.
    #[inline(never)]
    pub fn covers_row(self, row: u64) -> bool {
        let (own, start) = (self.thread_id(), self.start_epoch());
        let mut covered = true;
        Row::plain(row).each_pair(self.row(), self.m, self.num_threads(), |i, epoch, known| {
            covered &= known >= epoch || i == own && epoch >= start;
        });
        covered
    }

    /// Raises `out` to everything this thread knows and did.
    #[inline(never)]
    pub fn publish_row(self, out: u64) {
        if without(Edge::ExitPublish) {
            return;
        }
        let m = self.m;
        let n = self.num_threads();
        let out = Row::plain(out);
        if m.load32_acquire(field!(self.addr, ThreadState, clock_mode)) == VALID {
            let own = self.own_clock();
            own.each_pair(out, m, n, |i, epoch, before| {
                if epoch > before {
                    m.max32(out.entry_addr(i), epoch);
                }
            });
            let mut i = 0;
            while i < PartialClock::PER_ROW as u32 {
                // A row that launches inherit has no place for single warps.
                let partial = own.partial(m, i);
                if partial.thread() < n {
                    m.max32(out.entry_addr(partial.thread()), partial.epoch());
                }
                i += 1;
            }
        }
        m.max32(out.entry_addr(self.thread_id()), self.epoch());
    }

    /// Gives the thread a clock of its own, a copy of its base row, if it has none yet.
    #[inline(never)]
    pub fn own(self) {
        let m = self.m;
        let mode = field!(self.addr, ThreadState, clock_mode);
        if m.load32_acquire(mode) == VALID {
            return;
        }
        if m.cas32_acquire(mode, 0, COPYING) == 0 {
            let base = self.base_row();
            self.own_clock().clear_partials(m);
            base.each(m, self.num_threads(), |i, epoch| {
                let epoch = if without(Edge::OwnCopy) { 0 } else { epoch };
                m.store32(self.own_clock().entry_addr(i), epoch);
            });
            m.store32_release(mode, VALID);
        } else {
            self.wait_past(mode, COPYING);
        }
    }

    /// Zeroes a row on its first use in a tenancy.
    fn clear_once(self, mode: u64, row: Row) {
        let m = self.m;
        if m.load32_acquire(mode) == VALID {
            return;
        }
        if m.cas32_acquire(mode, 0, COPYING) == 0 {
            row.clear_partials(m);
            let mut i = 0;
            while i < self.num_threads() {
                m.store32(row.entry_addr(i), 0);
                i += 1;
            }
            m.store32_release(mode, VALID);
        } else {
            self.wait_past(mode, COPYING);
        }
    }

    fn wait_past(self, addr: u64, value: u32) {
        while self.m.load32_acquire(addr) == value {
            self.m.pause();
        }
    }

    #[inline(never)]
    fn merge(self, into: Row, from: Lookup<M>) {
        let mut from = from;
        loop {
            match from {
                Lookup::Found(p) => {
                    self.raise_all(into, p.row());
                    self.add_partials(into, p.row());
                }
                Lookup::Overwritten { .. } => {
                    let mut i = 0;
                    while i < self.num_threads() {
                        self.raise(into, i, self.entry_of(from, i));
                        i += 1;
                    }
                }
            }
            let settled = Self::settled(from);
            if Self::is_found(settled) == Self::is_found(from) {
                return;
            }
            from = settled;
        }
    }

    #[inline]
    fn is_found(lookup: Lookup<M>) -> bool {
        matches!(lookup, Lookup::Found(_))
    }

    /// Raises every entry.
    fn raise_all(self, into: Row, from: Row) {
        from.each_pair(into, self.m, self.num_threads(), |i, epoch, before| {
            if epoch > before {
                self.raise(into, i, epoch);
            }
        });
    }

    /// Raises one entry. For the own slot the entry speaks of earlier tenants only; a publisher that knew this tenant's
    /// own epochs may have known less of those, but its scalar can't say so (class `slot-reuse`).
    #[inline]
    pub fn raise(self, row: Row, thread: u32, epoch: Epoch) {
        let m = self.m;
        let addr = row.entry_addr(thread);
        let before = m.load32(addr);
        let mut epoch = epoch;
        if thread == self.thread_id() {
            let last = self.start_epoch().wrapping_sub(1);
            if epoch > last {
                epoch = last;
                if before < last {
                    self.tally(core::mem::offset_of!(Counters, slot_reuse));
                }
            }
        }
        if epoch > before {
            m.max32(addr, epoch);
        }
    }

    fn count_wrap(self, from: Lookup<M>) {
        if let Lookup::Overwritten { .. } = from {
            self.tally(core::mem::offset_of!(Counters, ring_wrap));
        }
    }

    #[inline]
    fn key(from: Lookup<M>) -> u64 {
        let (thread, token) = match from {
            Lookup::Found(p) => (p.thread, p.token),
            Lookup::Overwritten { thread, token } => (thread, token),
        };
        (thread as u64) << 32 | token as u64
    }

    /// Counts one in the field of [`Counters`] at `offset`.
    #[inline]
    pub fn tally(self, offset: usize) {
        let counters = self.m.load64(field!(self.global(), GlobalState, counters));
        self.m.tally64(counters.wrapping_add(offset as u64), 1);
    }
}

const COPYING: u32 = 1;
const VALID: u32 = 2;
