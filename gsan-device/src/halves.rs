//! Halves of release/acquire patterns whose other half was there: a finding names the access that lacks its order.
//!
//! A few of each kind are kept, the newest in place of the oldest: what is no longer here is a sentence less in a report.

use crate::cell::Prior;
use crate::clock::{Lookup, State};
use crate::layout::{Epoch, HalfSync, NO_SITE, Op, Scope, ThreadState};
use crate::machine::{Machine, field};
use crate::warps::WARP;
use core::mem::size_of;

const HALVES: u32 = ThreadState::HALVES as u32;

impl<M: Machine> State<M> {
    /// A relaxed read at `addr` has seen this release.
    pub fn keep_relaxed_read(self, release: u64, addr: u64, op: Op, site: u32) {
        let turn = field!(self.addr, ThreadState, num_relaxed_reads);
        let at = half(
            field!(self.addr, ThreadState, relaxed_reads),
            self.m.add32(turn, 1),
        );
        let read = HalfSync {
            source: release,
            address: addr,
            epoch: self.epoch(),
            op,
            site,
            linear: self.m.linear_thread(),
        };
        store(self.m, at, read);
    }

    /// An acquire operation at `addr` has seen a strong write that carried no release.
    pub fn keep_relaxed_write(self, write: Prior, addr: u64) {
        let source = (write.thread as u64) << 32 | write.epoch as u64;
        let turn = field!(self.addr, ThreadState, num_relaxed_writes);
        let writes = field!(self.addr, ThreadState, relaxed_writes);
        let newest = half(writes, self.m.load32(turn).wrapping_sub(1));
        if self.m.load64(field!(newest, HalfSync, source)) == source
            && self.m.load64(field!(newest, HalfSync, address)) == addr
        {
            // A poll.
            return;
        }
        let at = half(writes, self.m.add32(turn, 1));
        let write = HalfSync {
            source,
            address: addr,
            epoch: self.epoch(),
            op: write.op,
            site: write.site.unwrap_or(NO_SITE),
            linear: write.linear.unwrap_or(u32::MAX),
        };
        store(self.m, at, write);
    }

    /// A strong write, which carries the release of an earlier fence only: what came in between it does not release.
    pub fn keep_late_write(self, fence: Epoch, addr: u64, op: Op, site: u32) {
        let turn = field!(self.addr, ThreadState, num_late_writes);
        let at = half(
            field!(self.addr, ThreadState, late_writes),
            self.m.add32(turn, 1),
        );
        let write = HalfSync {
            source: (self.thread_id() as u64) << 32 | fence as u64,
            address: addr,
            epoch: self.epoch(),
            op,
            site,
            linear: self.m.linear_thread(),
        };
        store(self.m, at, write);
    }

    /// The last write by `thread` at `epoch` or later with the release of a fence before that, which is known here.
    pub fn late_write_of(self, thread: u32, epoch: Epoch) -> Option<HalfSync> {
        let block = self.of(thread);
        let turn = field!(block.addr, ThreadState, num_late_writes);
        let writes = field!(block.addr, ThreadState, late_writes);
        let write = block.last(turn, writes, |write| {
            let fence = write.source as Epoch;
            write.epoch >= epoch
                && fence < epoch
                && self.happened_before(thread, fence, write.linear / WARP)
        })?;
        Some(HalfSync {
            source: (thread as u64) << 32 | write.epoch as u64,
            ..write
        })
    }

    /// A relaxed read by this warp at `addr` found no release: the write that it read may lack one, if a fence follows.
    #[inline]
    pub fn keep_unreleased_place(self, addr: u64) {
        self.m.store64(self.unreleased_place(), addr);
        let bits = field!(self.addr, ThreadState, unreleased_reads);
        if self.m.load32(bits) & 1 << self.warp() == 0 {
            self.m.or32(bits, 1 << self.warp());
        }
    }

    /// Where this warp's last relaxed read without a release was, once.
    #[inline]
    pub fn take_unreleased_place(self) -> Option<u64> {
        let bits = field!(self.addr, ThreadState, unreleased_reads);
        if self.m.load32(bits) & 1 << self.warp() == 0 {
            return None;
        }
        self.m.and32(bits, !(1 << self.warp()));
        Some(self.m.load64(self.unreleased_place()))
    }

    #[inline]
    fn unreleased_place(self) -> u64 {
        field!(self.addr, ThreadState, unreleased_places).wrapping_add(8 * self.warp() as u64)
    }

    /// The last relaxed read that saw a release of what `thread`'s `warp` did at `epoch`.
    pub fn relaxed_read_of(self, thread: u32, epoch: Epoch, warp: u32) -> Option<HalfSync> {
        let turn = field!(self.addr, ThreadState, num_relaxed_reads);
        let reads = field!(self.addr, ThreadState, relaxed_reads);
        self.last(turn, reads, |read| {
            self.is_of_tenant(read)
                && match self.lookup((read.source >> 32) as u32, read.source as u32) {
                    Lookup::Found(p) => p.covers(self, thread, epoch, warp) && p.intact(),
                    Lookup::Overwritten { .. } => false,
                }
        })
    }

    /// The last write without a release by `thread`, at `epoch` or later.
    pub fn relaxed_write_of(self, thread: u32, epoch: Epoch) -> Option<HalfSync> {
        let turn = field!(self.addr, ThreadState, num_relaxed_writes);
        let writes = field!(self.addr, ThreadState, relaxed_writes);
        self.last(turn, writes, |write| {
            self.is_of_tenant(write)
                && (write.source >> 32) as u32 == thread
                && write.source as u32 >= epoch
        })
    }

    fn is_of_tenant(self, half: HalfSync) -> bool {
        half.epoch >= self.start_epoch()
    }

    /// The newest that fits.
    fn last(self, turn: u64, base: u64, fits: impl Fn(HalfSync) -> bool) -> Option<HalfSync> {
        let newest = self.m.load32(turn);
        let mut back = 1;
        while back <= HALVES {
            if let Some(found) = load(self.m, half(base, newest.wrapping_sub(back)))
                && fits(found)
            {
                return Some(found);
            }
            back += 1;
        }
        None
    }
}

#[inline]
fn half(base: u64, turn: u32) -> u64 {
    base.wrapping_add(size_of::<HalfSync>() as u64 * (turn % HALVES) as u64)
}

fn store<M: Machine>(m: M, at: u64, new: HalfSync) {
    m.store64_release(field!(at, HalfSync, source), 0);
    m.fence(Scope::Cta);
    m.store64(field!(at, HalfSync, address), new.address);
    m.store32(field!(at, HalfSync, epoch), new.epoch);
    m.store32(field!(at, HalfSync, op), new.op.0);
    m.store32(field!(at, HalfSync, site), new.site);
    m.store32(field!(at, HalfSync, linear), new.linear);
    m.store64_release(field!(at, HalfSync, source), new.source);
}

/// `None` while somebody writes there.
fn load<M: Machine>(m: M, at: u64) -> Option<HalfSync> {
    let source = m.load64_acquire(field!(at, HalfSync, source));
    let found = HalfSync {
        source,
        address: m.load64(field!(at, HalfSync, address)),
        epoch: m.load32(field!(at, HalfSync, epoch)),
        op: Op(m.load32(field!(at, HalfSync, op))),
        site: m.load32(field!(at, HalfSync, site)),
        linear: m.load32(field!(at, HalfSync, linear)),
    };
    m.fence(Scope::Cta);
    (source != 0 && m.load64(field!(at, HalfSync, source)) == source).then_some(found)
}
