//! Shadow cells, in both formats, and the clocks in them.

use super::{Access, Epoch, Op, Scope};
use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;

/// Who accessed a word, and when: one 4-byte clock of the `reference` format.
///
/// | bits | field |
/// |---|---|
/// | 0–15 | epoch, or with the release bit the low half of a token (index of a snapshot in the writer's ring) |
/// | 16–27 | logical thread |
/// | 28–29 | scope: 0 not atomic, 1 cta, 2 gpu, 3 sys |
/// | 30 | release; in a reader's slot [`ScalarClock::HAS_OBSERVED`] |
/// | 31 | in a reader's slot: the reader has observed the word's last write ([`ScalarClock::OBSERVED`]) |
///
/// The all-zero word means "no access".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct ScalarClock(pub u32);

impl ScalarClock {
    /// Nobody.
    pub const EMPTY: ScalarClock = ScalarClock(0);
    /// Epochs from here on can't be told apart: such a clock counts as ordered (class `saturated`).
    pub const SATURATED: Epoch = 0xffff;
    /// Logical threads that the format can name.
    pub const MAX_THREADS: u32 = 1 << 12;

    /// An access at `epoch` (saturating) by `thread`.
    pub const fn access(epoch: Epoch, thread: u32, scope: Scope) -> ScalarClock {
        let epoch = if epoch < Self::SATURATED {
            epoch
        } else {
            Self::SATURATED
        };
        ScalarClock(epoch | (thread & 0xfff) << 16 | Self::scope_bits(scope) << 28)
    }

    /// A release write whose snapshot has the absolute index `token` (the low 16 bits are kept).
    pub const fn release(token: u32, thread: u32, scope: Scope) -> ScalarClock {
        ScalarClock(
            token & 0xffff | (thread & 0xfff) << 16 | Self::scope_bits(scope) << 28 | 1 << 30,
        )
    }

    /// Set in a reader's slot by a strong read, cleared by the next write: what was observed is ordered before the reader
    /// as far as this word is concerned (PTX's causality order begins with observation), without any acquire.
    pub const OBSERVED: u32 = 1 << 31;

    /// Set with [`ScalarClock::OBSERVED`], and left by later writes. (A reader's slot has no token.)
    pub const HAS_OBSERVED: u32 = 1 << 30;

    /// Whether [`ScalarClock::OBSERVED`] is set.
    pub const fn is_observed(self) -> bool {
        self.0 & Self::OBSERVED != 0
    }

    /// A reader's clock without [`ScalarClock::OBSERVED`] and [`ScalarClock::HAS_OBSERVED`].
    pub const fn plain(self) -> ScalarClock {
        ScalarClock(self.0 & !(Self::OBSERVED | Self::HAS_OBSERVED))
    }

    /// Two bits: the cluster, which has none of its own, counts as the device.
    const fn scope_bits(scope: Scope) -> u32 {
        let scope = scope as u32;
        let bits = scope - (scope > Scope::Cluster as u32) as u32;
        debug_assert!(bits == [0, 1, 2, 2, 3][scope as usize]);
        bits
    }

    /// Whether no access is recorded.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The epoch, or the token's low half.
    pub const fn epoch(self) -> Epoch {
        self.0 & 0xffff
    }

    /// The logical thread.
    pub const fn thread(self) -> u32 {
        self.0 >> 16 & 0xfff
    }

    /// The scope; `None` for a plain access.
    pub const fn scope(self) -> Scope {
        match self.0 >> 28 & 3 {
            0 => Scope::None,
            1 => Scope::Cta,
            2 => Scope::Gpu,
            _ => Scope::Sys,
        }
    }

    /// Whether the epoch is a token.
    pub const fn is_release(self) -> bool {
        self.0 & 1 << 30 != 0
    }
}

/// The `reference` shadow cell: what is known of one 4-byte word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct ShadowCell {
    /// A sample of the readers.
    pub reads: [ScalarClock; ShadowCell::READS],
    /// The last writer.
    pub write: ScalarClock,
    /// Number of reads so far, saturating.
    pub num_reads: u16,
    /// Bit 0: a thread works on the cell. Bit 1: the sampling dropped a reader that may have observed a write.
    pub lock: u16,
}

impl ShadowCell {
    /// Sampled readers per cell.
    pub const READS: usize = 4;
    /// Offset of the word that holds `num_reads` (low half) and `lock` (high half).
    pub const LOCK_WORD: u64 = offset_of!(ShadowCell, num_reads) as u64;
    /// The lock's bit in that word.
    pub const LOCKED: u32 = 1 << 16;
    /// That of dropped readers.
    pub const DROPPED: u32 = 1 << 17;
    /// Offset of `write`.
    pub const WRITE: u64 = offset_of!(ShadowCell, write) as u64;
}

/// One access in a `wide` cell, in three words.
///
/// | word | bits | field |
/// |---|---|---|
/// | 0 | 0–31 | epoch; 0: no record |
/// | 1 | 0–15 | logical thread |
/// | 1 | 16–25 | linear thread index in the block |
/// | 1 | 26–29 | bytes of the word that were touched |
/// | 1 | 30–31 | [`Access`]: load, store, read-modify-write, compare-and-swap |
/// | 2 | 0–19 | site |
/// | 2 | 20–22 | [`Scope`] |
/// | 2 | 23–25 | [`Order`](super::Order) |
/// | 2 | 26–28 | log2 of the size of the access's elements in bytes |
/// | 2 | 29 | the site is unknown: an operation of the host, or one that the 20 bits can't name |
/// | 2 | 30 | weak: non-coherent; strong: observed before the last write ([`WideRecord::was_observed`]) |
/// | 2 | 31 | the accessing thread has observed the word's last write ([`ScalarClock::OBSERVED`]) |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct WideRecord(pub [u32; 3]);

impl WideRecord {
    /// Bit of word 2: see the table.
    pub const OBSERVED: u32 = 1 << 31;
    /// Bit of word 2: see the table.
    pub const WAS_OBSERVED: u32 = 1 << 30;
    /// Bit of word 2: see the table.
    pub const NO_SITE: u32 = 1 << 29;
    /// Sites that a record can name.
    pub const MAX_SITES: u32 = 1 << 20;
    /// Logical threads that a record can name.
    pub const MAX_THREADS: u32 = 1 << 16;

    /// Builds a record. `mask` has a bit for each byte of the word.
    pub const fn new(
        epoch: Epoch,
        thread: u32,
        linear: u32,
        mask: u32,
        op: Op,
        site: u32,
    ) -> WideRecord {
        let w1 = thread & 0xffff
            | (linear & 0x3ff) << 16
            | (mask & 15) << 26
            | (op.access() as u32 & 3) << 30;
        let known = site < Self::MAX_SITES;
        let w2 = if known { site } else { Self::NO_SITE }
            | (op.scope() as u32) << 20
            | (op.order() as u32) << 23
            | Self::log_size(op) << 26
            | (op.is_non_coherent() as u32) << 30;
        WideRecord([epoch, w1, w2])
    }

    const fn log_size(op: Op) -> u32 {
        let size = op.element_size();
        if size == 0 {
            0
        } else {
            (31 - size.leading_zeros()) & 7
        }
    }

    /// Whether there is no access.
    pub const fn is_empty(self) -> bool {
        self.0[0] == 0
    }

    /// The epoch.
    pub const fn epoch(self) -> Epoch {
        self.0[0]
    }

    /// The logical thread.
    pub const fn thread(self) -> u32 {
        self.0[1] & 0xffff
    }

    /// The thread's linear index in its block.
    pub const fn linear(self) -> u32 {
        self.0[1] >> 16 & 0x3ff
    }

    /// Which bytes of the word.
    pub const fn mask(self) -> u32 {
        self.0[1] >> 26 & 15
    }

    /// What it did.
    pub const fn access(self) -> Access {
        match self.0[1] >> 30 {
            0 => Access::Load,
            1 => Access::Store,
            2 => Access::Rmw,
            _ => Access::Cas,
        }
    }

    /// Whether it wrote.
    pub const fn writes(self) -> bool {
        self.0[1] >> 30 != 0
    }

    /// Its site, if it is known.
    pub const fn site(self) -> Option<u32> {
        if self.0[2] & Self::NO_SITE == 0 {
            Some(self.0[2] & 0xfffff)
        } else {
            None
        }
    }

    /// Access, order, scope and the elements' size as an operation's word.
    pub const fn op(self) -> Op {
        let order_scope = (self.0[2] >> 23 & 7) << 13 | (self.0[2] >> 20 & 7) << 16;
        let op = Op(1 << (self.0[2] >> 26 & 7) | (self.0[1] >> 30) << 10 | order_scope);
        if self.0[2] & 1 << 30 != 0 && matches!(op.scope(), Scope::None) {
            op.non_coherent()
        } else {
            op
        }
    }

    /// Of a strong access: whether, before the last write, it had observed a write or (a write) been observed by a reader
    /// that the cell knew.
    pub const fn was_observed(self) -> bool {
        self.0[2] & Self::WAS_OBSERVED != 0 && !matches!(self.op().scope(), Scope::None)
    }

    /// [`WideRecord::OBSERVED`] and [`WideRecord::WAS_OBSERVED`].
    pub const fn observation(self) -> u32 {
        let was = if self.was_observed() {
            Self::WAS_OBSERVED
        } else {
            0
        };
        self.0[2] & Self::OBSERVED | was
    }

    /// The record with those bits; a weak access has no place for the second.
    pub const fn with_observation(self, bits: u32) -> WideRecord {
        let [epoch, who, what] = self.0;
        let places = if matches!(self.op().scope(), Scope::None) {
            Self::OBSERVED
        } else {
            Self::OBSERVED | Self::WAS_OBSERVED
        };
        WideRecord([epoch, who, what & !places | bits & places])
    }

    /// Whether [`WideRecord::OBSERVED`] is set.
    pub const fn is_observed(self) -> bool {
        self.0[2] & Self::OBSERVED != 0
    }
}

/// The release that a strong read of a word would acquire, in the `wide` cell: thread, token and scope in one word.
///
/// Bits 0–31 token (0: none), 32–47 thread, 48–50 [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct SyncClock(pub u64);

impl SyncClock {
    /// Nothing to acquire.
    pub const EMPTY: SyncClock = SyncClock(0);

    /// A published clock.
    pub const fn new(token: u32, thread: u32, scope: Scope) -> SyncClock {
        SyncClock(token as u64 | (thread as u64 & 0xffff) << 32 | (scope as u64) << 48)
    }

    /// Whether there is nothing to acquire.
    pub const fn is_empty(self) -> bool {
        self.0 as u32 == 0
    }

    /// The token.
    pub const fn token(self) -> u32 {
        self.0 as u32
    }

    /// The publisher.
    pub const fn thread(self) -> u32 {
        (self.0 >> 32) as u32 & 0xffff
    }

    /// The scope.
    pub const fn scope(self) -> Scope {
        match (self.0 >> 48) & 7 {
            0 => Scope::None,
            1 => Scope::Cta,
            2 => Scope::Cluster,
            3 => Scope::Gpu,
            _ => Scope::Sys,
        }
    }
}

/// The `wide` shadow cell: what is known of one 4-byte word, byte by byte and with both sides' lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct WideCell {
    /// Accesses, reads and writes alike.
    pub records: [WideRecord; WideCell::RECORDS],
    /// The release to acquire.
    pub sync: SyncClock,
    /// Number of reads so far, saturating.
    pub num_reads: u16,
    /// Bit 0: a thread works on the cell. Bit 1: a record was dropped since the word was last written whole.
    pub state: u16,
    /// Zero.
    pub reserved: u32,
}

impl WideCell {
    /// Accesses per cell.
    pub const RECORDS: usize = 4;
    /// Offset of `sync`.
    pub const SYNC: u64 = offset_of!(WideCell, sync) as u64;
    /// Offset of the word that holds `num_reads` (low half) and `state` (high half).
    pub const STATE_WORD: u64 = offset_of!(WideCell, num_reads) as u64;
    /// The lock in that word.
    pub const LOCKED: u32 = 1 << 16;
    /// A record was dropped.
    pub const DROPPED: u32 = 1 << 17;
    /// Bit of that word: another block's strong write has taken the place of one. Who reads there may have read the older one, if
    /// only before the newer came.
    pub const REPLACED: u32 = 1 << 18;
}
