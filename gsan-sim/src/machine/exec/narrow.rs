//! `ldmatrix` and `stmatrix` on matrices of bytes, and of elements of four and six bits that become bytes (sm_100).
//!
//! Rows of 16 elements in 16 bytes, each at the address of a lane. `m8n16`: a lane's register has four neighbours of a row.
//! `m16n16` is transposed: a register has four rows' elements of a column. `m16n8` (stores) is transposed as `mma` leaves its sums: two rows
//! of two columns.

use super::matrix::aligned;
use super::{Exec, Failed, Halt, write};
use crate::machine::ir::{MatrixOp, Space};
use crate::machine::state::Warp;
use crate::machine::ty::Row;

impl Exec<'_> {
    pub(super) fn load_bytes(&mut self, warp: &mut Warp, op: &MatrixOp) -> Result<(), Failed> {
        let MatrixOp::LoadBytes {
            d,
            space,
            addr,
            square,
            bits,
        } = op
        else {
            return Ok(());
        };
        let frame = warp.groups[warp.current].frame;
        let addresses = self.addresses(warp, frame, *addr);
        let (rows, each) = if *square { (16, 2) } else { (8, 1) };
        for (m, registers) in d.chunks(each).enumerate() {
            let mut matrix = [[0u8; 16]; 16];
            for (row, elements) in matrix[..rows].iter_mut().enumerate() {
                let lane = rows * m + row;
                let whole = self.load_16(warp, *space, addresses[lane], lane)?;
                for (column, x) in (0..).zip(elements) {
                    *x = (whole >> (column * bits)) as u8 & (u8::MAX >> (8 - bits));
                }
            }
            for (r, &d) in registers.iter().enumerate() {
                let mut out: Row = [0; 32];
                for (lane, x) in out.iter_mut().enumerate() {
                    let bytes = [0, 1, 2, 3].map(|j| match square {
                        true => matrix[4 * (lane % 4) + j][lane / 4 + 8 * r],
                        false => matrix[lane / 4][4 * (lane % 4) + j],
                    });
                    *x = u64::from(u32::from_le_bytes(bytes));
                }
                write(warp, frame, d, &out, u32::MAX);
            }
        }
        Ok(())
    }

    pub(super) fn store_bytes(&mut self, warp: &mut Warp, op: &MatrixOp) -> Result<(), Failed> {
        let MatrixOp::StoreBytes { a, space, addr } = op else {
            return Ok(());
        };
        let frame = warp.groups[warp.current].frame;
        let addresses = self.addresses(warp, frame, *addr);
        for (m, &a) in a.iter().enumerate() {
            let values = *self.row(warp, frame, a);
            for row in 0..8 {
                let lane = 8 * m + row;
                let at = |h: Halt| (h, lane as u32);
                aligned(addresses[lane]).map_err(at)?;
                for half in 0..2usize {
                    let word = (0..8).rev().fold(0, |word, column| {
                        let from = values[4 * column + row / 2];
                        word << 8 | from >> (8 * (row % 2 + 2 * half)) & 0xff
                    });
                    let address = addresses[lane].wrapping_add(8 * half as u64);
                    self.store_lane(warp, *space, address, 8, word, lane)
                        .map_err(at)?;
                }
            }
        }
        Ok(())
    }

    /// 16 bytes.
    fn load_16(
        &mut self,
        warp: &Warp,
        space: Space,
        address: u64,
        lane: usize,
    ) -> Result<u128, Failed> {
        let at = |h: Halt| (h, lane as u32);
        aligned(address).map_err(at)?;
        let low = self.load_lane(warp, space, address, 8, lane).map_err(at)?;
        let next = address.wrapping_add(8);
        let high = self.load_lane(warp, space, next, 8, lane).map_err(at)?;
        Ok(u128::from(high) << 64 | u128::from(low))
    }
}
