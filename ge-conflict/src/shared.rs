//! The words that the detector's device side, its host side and this crate must read alike.
//!
//! The run-time half records which stream used a block and when in the detector's own words: a stream is a logical thread,
//! a use an access at an epoch. Nothing is declared a second time here; what this crate relies on is asserted, so that a change
//! of the layout on any side does not compile.

pub use gsan_device::layout::{Epoch, Order, ScalarClock, Scope, ShadowCell};

use core::mem::{align_of, offset_of, size_of};

const _: () = {
    assert!(size_of::<Epoch>() == 4);
    assert!(size_of::<ScalarClock>() == 4 && align_of::<ScalarClock>() == 4);
    assert!(size_of::<ShadowCell>() == 24 && align_of::<ShadowCell>() == 8);
    assert!(offset_of!(ShadowCell, reads) == 0 && offset_of!(ShadowCell, write) == 16);
    assert!(offset_of!(ShadowCell, num_reads) == 20 && offset_of!(ShadowCell, lock) == 22);
    // epoch: bits 0-15, thread: 16-27, scope: 28-29, release: 30.
    assert!(ScalarClock::access(1, 0, Scope::None).0 == 1);
    assert!(ScalarClock::access(0, 1, Scope::None).0 == 1 << 16);
    assert!(ScalarClock::access(0, 0, Scope::Cta).0 == 1 << 28);
    assert!(ScalarClock::access(0, 0, Scope::Gpu).0 == 2 << 28);
    assert!(ScalarClock::access(0, 0, Scope::Sys).0 == 3 << 28);
    assert!(ScalarClock::release(0, 0, Scope::None).0 == 1 << 30);
    assert!(ScalarClock::MAX_THREADS == 1 << 12);
    assert!(Scope::None as u8 == 0 && Scope::Cta as u8 == 1 && Scope::Cluster as u8 == 2);
    assert!(Scope::Gpu as u8 == 3 && Scope::Sys as u8 == 4);
};

/// A use of a block by a stream, as the detector writes it: streams of one device synchronise at device scope.
pub const fn stream_use(stream: u32, epoch: Epoch) -> ScalarClock {
    ScalarClock::access(epoch, stream, Scope::Gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streams_use_keeps_its_parts() {
        for (stream, epoch) in [(0, 1), (5, 77), (63, 0xfffe)] {
            let c = stream_use(stream, epoch);
            assert_eq!(
                (c.thread(), c.epoch(), c.scope(), c.is_release()),
                (stream, epoch, Scope::Gpu, false)
            );
        }
    }
}
