//! Bulk copies that are under way, and what the host knows of tensor maps.

use super::Op;
use bytemuck::{Pod, Zeroable};

/// A bulk copy that has been issued and that nobody knows yet to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PendingCopy {
    /// 0: free. Else whose it is and how far: see the constants.
    pub state: u32,
    /// Where it stands.
    pub site: u32,
    /// What it does to global memory.
    pub op: Op,
    /// Bytes of a range; 0: a box of a tensor, [`PendingCopy::ROWS`]: four rows of one, [`PendingCopy::WINDOWS`]: pixels of windows.
    pub bytes: u32,
    /// The first byte of a range, or the [`TensorMap`].
    pub address: u64,
    /// Of a read: the phase of an mbarrier on which it completes, as [`PendingCopy::PHASE`] says. 0: it completes with its thread's
    /// bulk group.
    pub barrier: u32,
    /// Of a box or of windows.
    pub corner: [i32; 5],
    /// Of windows: the places of their pixels in them, 16 bits each. Of a range: which bytes of every 16 are copied, a bit each; 0: all.
    pub offsets: u64,
}

impl PendingCopy {
    /// The thread's linear index in its block, plus one.
    pub const OWNER: u32 = 0x7ff;
    /// Its bulk group is committed.
    pub const COMMITTED: u32 = 1 << 11;
    /// One group that was committed after its own.
    pub const GROUP: u32 = 1 << 12;
    /// As many of those are told apart.
    pub const GROUPS: u32 = 0x3_ffff;
    /// Somebody is writing the entry, or is done with it.
    pub const BUSY: u32 = 1 << 31;
    /// In the place of a box's bytes.
    pub const ROWS: u32 = u32::MAX;
    /// In the place of the bytes of windows.
    pub const WINDOWS: u32 = u32::MAX - 1;

    /// Set in the name of an mbarrier's phase, beside the barrier's shared address (a multiple of 8, below 2^24) and the phase's parity
    /// in bit 0.
    pub const PHASE: u32 = 2;
    /// In a waiter's name of a phase: of either parity.
    pub const ANY_PARITY: u32 = 4;

    /// Whether who waited for `waited` (0: some phase of some mbarrier) knows the end of a copy that completes on `barrier`.
    pub const fn completes_on(barrier: u32, waited: u32) -> bool {
        let parity = if waited & Self::ANY_PARITY != 0 {
            Self::ANY_PARITY | 1
        } else {
            0
        };
        barrier != 0 && (waited == 0 || barrier & !parity == waited & !parity)
    }

    /// Groups that were committed after its own.
    pub const fn younger_groups(state: u32) -> u32 {
        (state & !Self::BUSY) / Self::GROUP
    }
}

/// A tensor map, as the host had it made: the driver's bits and what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct TensorMap {
    /// The driver's 128 bytes.
    pub bits: [u64; 16],
    /// The first element's address.
    pub address: u64,
    /// Elements in each dimension, the fastest first.
    pub extents: [u64; 5],
    /// Bytes from one element to the next in each dimension but the first.
    pub strides: [u64; 4],
    /// A box's extents, before the steps thin them out; of a map for windows the channels of a pixel and the number of pixels.
    pub boxes: [u32; 5],
    /// Of each dimension but the first: every how many elements are taken.
    pub steps: [u32; 5],
    /// Dimensions; 0: the entry is free.
    pub rank: u32,
    /// Bytes of an element.
    pub element: u32,
    /// Of a map for windows (`.im2col`), in width, height and depth: where the first pixel lies.
    pub lower: [i32; 3],
    /// Where the last one lies, from the tensor's last element.
    pub upper: [i32; 3],
    /// Nonzero: it is for windows.
    pub windows: u32,
    /// Zero.
    pub reserved: u32,
}

impl TensorMap {
    /// Where the search for a map begins in the table, before its mask.
    pub const fn hash(bits: &[u64; 16]) -> u32 {
        let mut h = 0u64;
        let mut i = 0;
        while i < 16 {
            h = Self::mix(h, bits[i]);
            i += 1;
        }
        (h >> 32) as u32
    }

    /// One step of [`TensorMap::hash`].
    pub const fn mix(h: u64, word: u64) -> u64 {
        let h = (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^ h >> 29
    }
}
