//! `mma.sync` and `wmma`: fragments and products of matrices that the registers of a warp hold.

use super::{Exec, Failed, Halt, sparse, write};
use crate::machine::alu::packed;
use crate::machine::alu::round::E4M3;
use crate::machine::element::Element;
use crate::machine::ir::{MatrixOp, Role, Scales, Src};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;
use crate::machine::ty::Row;

/// Where an element lies: register of the fragment, lane, first bit.
type Place = (usize, usize, u32);

/// `mma`: as the PTX manual's figures have it. Lane = 4 × row + column / (elements per register), for 8 rows and four
/// registers' worth of columns at a time; B is stored as A transposed is.
fn mma_place(role: Role, rows: usize, element: Element, row: usize, column: usize) -> Place {
    if role == Role::Sum {
        let (lane, index) = (4 * (row % 8) + column / 2, 2 * (row / 8) + column % 2);
        return if element == Element::F16 {
            (index / 2, lane, 16 * (index as u32 % 2))
        } else {
            (index, lane, 0)
        };
    }
    let per = element.per_register();
    // Along K, and along M or N.
    let (x, y) = if role == Role::A {
        (column, row)
    } else {
        (row, column)
    };
    let (half, t, i) = (x / (4 * per), x % (4 * per) / per, x % per);
    let register = if role == Role::A && rows == 16 {
        2 * half + y / 8
    } else {
        half
    };
    (register, 4 * (y % 8) + t, element.bits() * i as u32)
}

/// `wmma`: the manual leaves it open. Here a lane holds neighbours of a row. (A fragment of f16 has registers for twice as
/// many elements: the upper ones stay zero.)
fn wmma_place(element: Element, rows: usize, columns: usize, row: usize, column: usize) -> Place {
    let each = (rows * columns / 32).max(1);
    let at = row * columns + column;
    let (lane, slot) = (at / each, at % each);
    let per = element.per_register();
    (slot / per, lane, element.bits() * (slot % per) as u32)
}

/// A's values, row by row, from `mma`'s fragment of 16 rows.
pub fn left(registers: &[Row], element: Element, depth: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(16 * depth);
    for m in 0..16 {
        out.extend((0..depth).map(|k| {
            let (register, lane, shift) = mma_place(Role::A, 16, element, m, k);
            element.decode(registers[register][lane] >> shift & element.mask())
        }));
    }
    out
}

impl Exec<'_> {
    pub(super) fn multiply(&mut self, warp: &mut Warp, op: &MatrixOp) {
        let MatrixOp::Multiply {
            product: p,
            wmma,
            d,
            a,
            b,
            c,
            metadata,
            scales,
        } = op
        else {
            return;
        };
        let frame = warp.groups[warp.current].frame;
        let [a, b, c] = [a, b, c].map(|list| self.rows(warp, frame, list));
        let place = |role: Role, element: Element, row: usize, column: usize| {
            if !*wmma {
                return mma_place(role, p.rows, element, row, column);
            }
            let (rows, columns) = match role {
                Role::A => (p.rows, p.depth),
                Role::B => (p.depth, p.columns),
                Role::Sum => (p.rows, p.columns),
            };
            wmma_place(element, rows, columns, row, column)
        };
        let value = |registers: &[Row], role, element: Element, row, column| {
            let (register, lane, shift) = place(role, element, row, column);
            element.decode(registers[register][lane] >> shift & element.mask())
        };
        let there = if metadata.is_some() {
            p.depth / 2
        } else {
            p.depth
        };
        let mut left: Vec<f64> = (0..p.rows * there)
            .map(|i| value(&a, Role::A, p.a, i / there, i % there))
            .collect();
        if let Some((metadata, selector)) = metadata {
            let metadata = self.row(warp, frame, *metadata);
            left = sparse::spread(p, &left, metadata, *selector as usize);
        }
        let mut right = Vec::with_capacity(p.columns * p.depth);
        for n in 0..p.columns {
            right.extend((0..p.depth).map(|k| value(&b, Role::B, p.b, k, n)));
        }
        if let Some(scales) = scales {
            // Two lanes of four have the factors of rows r and r + 8, one has those of a column.
            self.scale(warp, scales, scales.a, &mut left, p.depth, |row, lanes| {
                4 * (row % 8) + 2 * (lanes & 1) + row / 8
            });
            self.scale(
                warp,
                scales,
                scales.b,
                &mut right,
                p.depth,
                |column, lane| 4 * column + (lane & 3),
            );
        }
        let mut out = vec![[0u64; 32]; d.len()];
        p.compute(
            &left,
            &right,
            |m, n| value(&c, Role::Sum, p.c, m, n),
            |m, n, bits| {
                let (register, lane, shift) = place(Role::Sum, p.d, m, n);
                out[register][lane] |= bits << shift;
            },
        );
        for (&d, row) in d.iter().zip(&out) {
            write(warp, frame, d, row, u32::MAX);
        }
    }

    /// Multiplies the blocks of each row (of a column) by their factors.
    fn scale(
        &self,
        warp: &Warp,
        scales: &Scales,
        [data, byte, lanes]: [Src; 3],
        values: &mut [f64],
        depth: usize,
        lane_of: impl Fn(usize, usize) -> usize,
    ) {
        let frame = warp.groups[warp.current].frame;
        let [data, byte, lanes] = [data, byte, lanes].map(|s| self.row(warp, frame, s));
        let block = depth.div_ceil(scales.blocks.max(1));
        for (at, x) in values.iter_mut().enumerate() {
            let lane = lane_of(at / depth, lanes[0] as usize);
            let n = byte[0] as usize + at % depth / block;
            let bits = (data[lane % 32] >> (8 * (n % 4)) & 0xff) as u32;
            *x *= if scales.powers {
                packed::power(bits)
            } else {
                E4M3.decode(bits & 0x7f)
            };
        }
    }

    /// `wmma.load` and `wmma.store`: the first lane's address counts, as all must have the same.
    pub(super) fn tile(&mut self, warp: &mut Warp, op: &MatrixOp) -> Result<(), Failed> {
        let MatrixOp::Tile {
            store,
            rows,
            columns,
            element,
            by_column,
            space,
            addr,
            stride,
            registers,
        } = op
        else {
            return Ok(());
        };
        let frame = warp.groups[warp.current].frame;
        let base = self.addresses(warp, frame, *addr)[0];
        let stride = self.row(warp, frame, *stride)[0] & 0xffff_ffff;
        let bits = u64::from(element.bits());
        let at = |h: Halt| (h, 0);
        // Rows must start at multiples of 16 bytes.
        if !base.is_multiple_of(16) {
            return Err(at(Halt::fault(FaultKind::Misaligned, base)));
        }
        let address = |row: usize, column: usize| {
            let (outer, inner) = if *by_column {
                (column, row)
            } else {
                (row, column)
            };
            let bit = (outer as u64 * stride + inner as u64) * bits;
            (base.wrapping_add(bit / 8), bit as u32 % 8)
        };
        let bytes = (bits / 8).max(1) as u8;
        if *store {
            let values: Vec<Row> = registers
                .iter()
                .map(|&r| *self.row(warp, frame, r))
                .collect();
            for row in 0..*rows {
                for column in 0..*columns {
                    let (register, lane, shift) =
                        wmma_place(*element, *rows, *columns, row, column);
                    let value = values[register][lane] >> shift & element.mask();
                    self.store_lane(warp, *space, address(row, column).0, bytes, value, lane)
                        .map_err(at)?;
                }
            }
            return Ok(());
        }
        let mut out = vec![[0u64; 32]; registers.len()];
        for row in 0..*rows {
            for column in 0..*columns {
                let (register, lane, shift) = wmma_place(*element, *rows, *columns, row, column);
                let (address, bit) = address(row, column);
                let value = self
                    .load_lane(warp, *space, address, bytes, lane)
                    .map_err(at)?;
                out[register][lane] |= (value >> bit & element.mask()) << shift;
            }
        }
        for (&d, row) in registers.iter().zip(&out) {
            write(warp, frame, d, row, u32::MAX);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Every element has a place of its own, and they fill the registers.
    #[test]
    fn fragments_are_filled_without_gaps() {
        let mma = [
            (16, 8, Element::F16),
            (16, 16, Element::Bf16),
            (16, 8, Element::Tf32),
            (16, 32, Element::S8),
            (16, 64, Element::U4),
            (16, 256, Element::B1),
            (8, 4, Element::F64),
            (8, 128, Element::B1),
        ];
        for (rows, depth, element) in mma {
            for role in [Role::A, Role::B] {
                let (r, c) = if role == Role::A {
                    (rows, depth)
                } else {
                    (depth, 8)
                };
                let places: HashSet<Place> = (0..r * c)
                    .map(|i| mma_place(role, rows, element, i / c, i % c))
                    .collect();
                assert_eq!(places.len(), r * c);
                let registers = places.iter().map(|p| p.0).max().unwrap() + 1;
                assert_eq!(registers * 32 * element.per_register(), r * c);
            }
        }
        for (rows, columns, element) in [
            (16, 16, Element::F16),
            (8, 32, Element::S8),
            (8, 8, Element::F64),
        ] {
            let places: HashSet<Place> = (0..rows * columns)
                .map(|i| wmma_place(element, rows, columns, i / columns, i % columns))
                .collect();
            assert_eq!(places.len(), rows * columns);
            assert!(places.iter().all(|p| p.1 < 32 && p.2 < 64));
        }
    }
}
