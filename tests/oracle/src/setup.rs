//! The devices that the interpreter runs programs on.

use crate::program::Space;
use gsan_device::cell::Cell;
use gsan_device::host::{Device, Shape};
use gsan_device::layout;
use gsan_device::reference::ReferenceCell;
use gsan_device::wide::Wide;

/// Address of [`Space::Foreign`]: no memory of the device's.
pub const FOREIGN_BASE: u64 = 1 << 40;

/// A device to run on, and how blocks are placed.
pub struct Setup {
    pub(crate) device: Device,
    /// What it has.
    pub shape: Shape,
    /// Epochs that the slots have seen already.
    pub age: u32,
    /// Each block has a slot of its own.
    pub roomy: bool,
    /// The cells.
    pub format: Format,
}

/// A cell format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// 24 bytes per word, the classic tool's.
    Reference,
    /// 64 bytes per word.
    Wide,
}

/// Blocks of all kernels of a program, at most.
pub const MAX_BLOCKS: usize = 12;
/// Bytes of all spaces.
pub const MEMORY: usize = 3 * Space::SIZE as usize;
/// Host steps of a program, at most.
pub const MAX_STEPS: usize = 12;

impl Setup {
    /// The same for a detector that follows the order of `fence.sc`s.
    pub fn with_sc_order(self) -> Setup {
        let shape = Shape {
            sc_order: true,
            ..self.shape
        };
        Setup {
            device: Device::new(shape),
            shape,
            ..self
        }
    }

    fn with(format: Format, num_sms: u32, slots_per_sm: u32, ring: u32, age: u32) -> Setup {
        let shape = Shape {
            num_sms,
            slots_per_sm,
            clock_buffer_size: ring,
            real_size: u64::from(Space::SIZE),
            race_capacity: 512,
            launches: MAX_STEPS as u32,
            sc_order: false,
            rows: 3 * MAX_STEPS as u32 + 4,
            cell: match format {
                Format::Reference => ReferenceCell::STRIDE,
                Format::Wide => Wide::STRIDE,
            },
        };
        Setup {
            device: Device::new(shape),
            shape,
            age,
            roomy: num_sms as usize >= MAX_BLOCKS,
            format,
        }
    }

    /// A slot per block, a ring that never goes round.
    pub fn roomy(format: Format) -> Setup {
        Setup::with(format, MAX_BLOCKS as u32, 1, 512, 0)
    }

    /// A slot per block, a tiny ring.
    pub fn small_ring(format: Format) -> Setup {
        Setup::with(format, MAX_BLOCKS as u32, 1, 3, 0)
    }

    /// Two slots per multiprocessor, which are reused.
    pub fn reused(format: Format) -> Setup {
        Setup::with(format, 2, 2, 64, 0)
    }

    /// One slot for everybody on a multiprocessor, a tiny ring.
    pub fn crowded(format: Format) -> Setup {
        Setup::with(format, 2, 1, 4, 0)
    }

    /// Epochs beyond the reference format's end.
    pub fn old(format: Format) -> Setup {
        Setup::with(
            format,
            MAX_BLOCKS as u32,
            1,
            64,
            layout::ScalarClock::SATURATED + 1000,
        )
    }

    /// Epochs at the reference format's end.
    pub fn aged(format: Format) -> Setup {
        Setup::with(
            format,
            MAX_BLOCKS as u32,
            1,
            64,
            layout::ScalarClock::SATURATED - 4,
        )
    }
}
