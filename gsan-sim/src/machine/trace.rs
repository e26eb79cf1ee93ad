//! What kernels did, in order, for tests that judge a run by the memory model.
//!
//! Recorded with [`Config::trace`](crate::Config::trace) only: the memory operations, fences and barriers of kernels' own
//! bodies, not those of the functions that they call. The machine executes them one after the other, so their order says
//! which write each read has read.

use super::GridId;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceStep {
    /// A grid has begun: none of its instructions has run.
    Begin {
        /// The grid.
        grid: GridId,
        /// Its kernel.
        kernel: String,
    },
    /// All blocks of a grid have ended.
    End {
        /// The grid.
        grid: GridId,
    },
    /// Lanes of a warp have executed a memory operation or fence, have arrived at a barrier, wait for the grid before, or have
    /// let dependents start.
    Instruction {
        /// The grid.
        grid: GridId,
        /// `%ctaid`.
        block: [u32; 3],
        /// Number of the warp in the block.
        warp: u32,
        /// The lanes.
        lanes: u32,
        /// Line of the PTX text.
        line: u32,
    },
    /// The driver has filled or copied memory, in whatever order with kernels its streams leave: the first byte that it read, and the
    /// first that it wrote.
    Operation {
        /// Where it read from, if it did.
        read: Option<u64>,
        /// Where it wrote to.
        write: Option<u64>,
        /// Whether it filled memory: what it did not read came with it otherwise.
        fill: bool,
    },
    /// A barrier of a block is complete: those who wait at it go on.
    Barrier {
        /// The grid.
        grid: GridId,
        /// `%ctaid`.
        block: [u32; 3],
        /// The barrier.
        id: u32,
    },
}
