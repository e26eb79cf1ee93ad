//! Instructions on matrices: those of warps, of groups of warps, and on tensor memory.

use super::{Addr, PredSrc, Reg, Space, Src};
use crate::machine::element::{Element, Product};

/// Which operand of a product a fragment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Role {
    A,
    B,
    /// C and D.
    Sum,
}

/// Instructions on matrices that a whole warp holds together.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum MatrixOp {
    /// `ldmatrix`: 8×8 matrices of 16-bit elements, one per register.
    Load {
        d: Box<[Reg]>,
        space: Space,
        addr: Addr,
        transposed: bool,
    },
    /// `stmatrix`.
    Store {
        a: Box<[Src]>,
        space: Space,
        addr: Addr,
        transposed: bool,
    },
    /// `ldmatrix` of bytes: `square` matrices of 16 × 16, transposed, or 8 × 16; elements of 4 or 6 bits become bytes.
    LoadBytes {
        d: Box<[Reg]>,
        space: Space,
        addr: Addr,
        square: bool,
        bits: u32,
    },
    /// `stmatrix` of bytes, 16 × 8, transposed.
    StoreBytes {
        a: Box<[Src]>,
        space: Space,
        addr: Addr,
    },
    /// `mma.m8n8k4` on halves.
    FourProducts {
        product: Product,
        /// Whether A is given by rows, and B by columns.
        along: [bool; 2],
        d: Box<[Reg]>,
        a: Box<[Src]>,
        b: Box<[Src]>,
        c: Box<[Src]>,
    },
    /// `movmatrix`: a matrix of 16-bit elements is transposed.
    Transpose { d: Reg, a: Src },
    /// `mma.sync` and `wmma.mma`, which differ in where the elements lie.
    Multiply {
        product: Product,
        wmma: bool,
        d: Box<[Reg]>,
        a: Box<[Src]>,
        b: Box<[Src]>,
        c: Box<[Src]>,
        /// Of `mma.sp`: where A's elements lie, and which lanes know.
        metadata: Option<(Src, u32)>,
        scales: Option<Box<Scales>>,
    },
    /// `wmma.load` and `wmma.store`.
    Tile {
        store: bool,
        rows: usize,
        columns: usize,
        element: Element,
        /// Whether a column's elements are neighbours in memory.
        by_column: bool,
        space: Space,
        addr: Addr,
        /// Elements from one row (or column) to the next.
        stride: Src,
        registers: Box<[Reg]>,
    },
    /// `wgmma.mma_async`: the warp's 16 rows of the product.
    Group(GroupProduct),
    /// `wgmma.commit_group`.
    GroupCommit,
    /// `wgmma.wait_group`: at most that many groups may be pending.
    GroupWait(u32),
}

/// Factors of the blocks of a row of A and of a column of B (`.block_scale`).
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Scales {
    /// Blocks in a row or column.
    pub blocks: usize,
    /// A power of two, or else a float of eight bits.
    pub powers: bool,
    /// Of A and of B: where they lie, the byte of the first block's, and which lanes of four have them.
    pub a: [Src; 3],
    pub b: [Src; 3],
}

/// `wgmma.mma_async`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct GroupProduct {
    /// Of one warp: 16 rows.
    pub product: Product,
    pub d: Box<[Reg]>,
    /// Four registers, or one with a descriptor.
    pub a: Box<[Src]>,
    pub b: Src,
    /// Whether D starts from what it holds.
    pub accumulate: PredSrc,
    /// Of `.sp`: where A's elements lie, and which lanes know.
    pub metadata: Option<(Src, u32)>,
    /// Whether A and B are negated.
    pub negate: [bool; 2],
    /// Whether A and B are stored with M or N, not K, as the leading dimension.
    pub transposed: [bool; 2],
}

/// How a warp's registers and tensor memory correspond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorShape {
    /// `.32x32b`
    Rows32,
    /// `.16x32bx2`
    Rows16Twice,
    /// `.16x64b`
    Bits64,
    /// `.16x128b`
    Bits128,
    /// `.16x256b`
    Bits256,
}

/// `.block_scale` of `tcgen05.mma`: where the factors of A's rows and of B's columns lie in tensor memory.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct TensorScales {
    /// Factors of a row or column.
    pub count: usize,
    pub a: Addr,
    pub b: Addr,
}

/// `tcgen05`, done at issue.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Tcgen {
    /// `relinquish_alloc_permit`
    GiveUp,
    Allocate {
        to: (Space, Addr),
        columns: Src,
    },
    Free {
        address: Src,
        columns: Src,
    },
    Load {
        shape: TensorShape,
        d: Box<[Reg]>,
        addr: Addr,
        /// Columns between the two halves.
        split: u32,
        pack: bool,
    },
    Store {
        shape: TensorShape,
        a: Box<[Src]>,
        addr: Addr,
        split: u32,
        unpack: bool,
    },
    Multiply {
        /// `F16` stands for `.kind::f16`, `E4m3` for `.kind::f8f6f4` and `.kind::mxf8f6f4`, `S8` for `.kind::i8`, `E2m1` for
        /// `.kind::mxf4` and `.kind::mxf4nvf4`.
        kind: Element,
        d: Addr,
        a: Src,
        a_in_tensor_memory: bool,
        b: Src,
        instruction: Src,
        accumulate: PredSrc,
        /// Lanes of D that are left alone, 32 to a word; empty: none is.
        masked: Box<[Src]>,
        /// D is divided by two so many times before it is added.
        scale: u32,
        blocks: Option<TensorScales>,
    },
    /// An arrival at an mbarrier, in each of the blocks (as in [`CopyOp`]).
    Commit {
        addr: Addr,
        blocks: Src,
    },
}
