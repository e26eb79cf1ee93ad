//! Matrices that a warp holds together. Element (row, column) of a fragment lies where the PTX manual's figures have it:
//! lane = 4 × row + column / (elements per register), for 8 rows at a time.

use super::{End, Exec, Failed, Flow, Halt, write};
use crate::machine::ir::MatrixOp;
use crate::machine::state::{State, Warp};
use crate::machine::stop::FaultKind;
use crate::machine::ty::Row;

impl Exec<'_> {
    /// All lanes of the warp must come to the instruction.
    pub(super) fn matrix(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &MatrixOp,
    ) -> Result<Flow, Failed> {
        let current = warp.current;
        if mask != warp.live {
            self.isolate(warp, mask);
            warp.groups[current].state = State::Collective;
            let (pc, frame) = (warp.groups[current].pc, warp.groups[current].frame);
            let waits = |g: &crate::machine::state::Group| {
                g.state == State::Collective && g.pc == pc && g.frame == frame
            };
            let there = warp
                .groups
                .iter()
                .filter(|g| waits(g))
                .fold(0, |m, g| m | g.mask);
            if there == warp.live {
                // They join, and the instruction is executed again by all.
                for group in warp.groups.iter_mut().filter(|g| waits(g)) {
                    group.state = State::Ready;
                    group.last = *self.steps;
                }
            }
            return Ok(Flow::Moved);
        }
        if mask != u32::MAX {
            return Err((
                Halt::illegal("a matrix instruction in a warp that is not whole"),
                mask.trailing_zeros(),
            ));
        }
        match op {
            MatrixOp::Load {
                d,
                space,
                addr,
                transposed,
            } => {
                let addresses = self.addresses(warp, warp.groups[current].frame, *addr);
                let mut elements = vec![[[0u64; 8]; 8]; d.len()];
                for (m, matrix) in elements.iter_mut().enumerate() {
                    for (row, to) in matrix.iter_mut().enumerate() {
                        let lane = 8 * m + row;
                        let at = |h: Halt| (h, lane as u32);
                        aligned(addresses[lane]).map_err(at)?;
                        for (column, x) in to.iter_mut().enumerate() {
                            let address = addresses[lane].wrapping_add(2 * column as u64);
                            *x = self.load_lane(warp, *space, address, 2, lane).map_err(at)?;
                        }
                    }
                }
                let frame = warp.groups[current].frame;
                for (matrix, &d) in elements.iter().zip(d.iter()) {
                    let mut out: Row = [0; 32];
                    for (lane, x) in out.iter_mut().enumerate() {
                        let (row, column) = (lane / 4, 2 * (lane % 4));
                        let (low, high) = if *transposed {
                            (matrix[column][row], matrix[column + 1][row])
                        } else {
                            (matrix[row][column], matrix[row][column + 1])
                        };
                        *x = low | high << 16;
                    }
                    write(warp, frame, d, &out, mask);
                }
            }
            MatrixOp::Store {
                a,
                space,
                addr,
                transposed,
            } => {
                let frame = warp.groups[current].frame;
                let addresses = self.addresses(warp, frame, *addr);
                for (m, &a) in a.iter().enumerate() {
                    let values = *self.row(warp, frame, a);
                    for row in 0..8 {
                        let lane = 8 * m + row;
                        let at = |h: Halt| (h, lane as u32);
                        aligned(addresses[lane]).map_err(at)?;
                        for column in 0..8 {
                            let (r, c) = if *transposed {
                                (column, row)
                            } else {
                                (row, column)
                            };
                            let value = values[4 * r + c / 2] >> (16 * (c % 2)) & 0xffff;
                            let address = addresses[lane].wrapping_add(2 * column as u64);
                            self.store_lane(warp, *space, address, 2, value, lane)
                                .map_err(at)?;
                        }
                    }
                }
            }
            MatrixOp::Transpose { d, a } => {
                let frame = warp.groups[current].frame;
                let from = *self.row(warp, frame, *a);
                let element = |row: usize, column: usize| {
                    from[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff
                };
                let mut out: Row = [0; 32];
                for (lane, x) in out.iter_mut().enumerate() {
                    let (row, column) = (lane / 4, 2 * (lane % 4));
                    *x = element(column, row) | element(column + 1, row) << 16;
                }
                write(warp, frame, *d, &out, mask);
            }
            MatrixOp::LoadBytes { .. } => self.load_bytes(warp, op)?,
            MatrixOp::StoreBytes { .. } => self.store_bytes(warp, op)?,
            MatrixOp::FourProducts { .. } => self.four_products(warp, op),
            MatrixOp::Multiply { .. } => self.multiply(warp, op),
            MatrixOp::Tile { .. } => self.tile(warp, op)?,
            MatrixOp::Group(op) => self.group_product(warp, op)?,
            MatrixOp::GroupCommit => warp.groups_committed += 1,
            MatrixOp::GroupWait(pending) => {
                if !self.group_is_done(warp, *pending) {
                    // The other warps of the warpgroup come first; then the instruction is tried again.
                    return Ok(Flow::End(End::Preempted));
                }
            }
        }
        warp.groups[current].pc += 1;
        Ok(Flow::Moved)
    }
}

pub(super) fn aligned(address: u64) -> Result<(), Halt> {
    if address.is_multiple_of(16) {
        Ok(())
    } else {
        Err(Halt::fault(FaultKind::Misaligned, address))
    }
}
