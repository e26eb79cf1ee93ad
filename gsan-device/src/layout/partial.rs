//! What is known of one warp of a block beyond what is known of the whole block.

use super::Epoch;
use bytemuck::{Pod, Zeroable};

/// An entry beside a clock row: of a logical thread's warp everything up to an epoch is known, of its other warps only
/// what the row says. A warp that releases knows its own accesses; those of its block's other warps it knows up to the
/// last barrier.
///
/// Bits 0–31 epoch, 32–47 logical thread, 48–52 warp of the block, 63 set; the all-zero word is a free place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct PartialClock(pub u64);

impl PartialClock {
    /// Entries beside a row. What finds no place is known of the whole block instead. (Model checks pay for every word.)
    pub const PER_ROW: usize = if cfg!(loom) { 1 } else { 16 };

    /// Of `warp` of `thread`, everything up to `epoch`.
    pub const fn new(thread: u32, warp: u32, epoch: Epoch) -> PartialClock {
        PartialClock(
            1 << 63 | (warp as u64 & 31) << 48 | (thread as u64 & 0xffff) << 32 | epoch as u64,
        )
    }

    /// Whether it says nothing.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The epoch.
    pub const fn epoch(self) -> Epoch {
        self.0 as u32
    }

    /// The logical thread.
    pub const fn thread(self) -> u32 {
        (self.0 >> 32) as u32 & 0xffff
    }

    /// The warp in its block.
    pub const fn warp(self) -> u32 {
        (self.0 >> 48) as u32 & 31
    }

    /// Whether both speak of the same warp.
    pub const fn same_warp(self, other: PartialClock) -> bool {
        (self.0 ^ other.0) >> 32 == 0
    }
}
