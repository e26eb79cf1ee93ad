//! `tcgen05`: tensor memory, and products that one thread starts.
//!
//! A block's tensor memory has 128 lanes of 512 columns of 32 bits; an address is lane × 65,536 + column. Row m of a product
//! of 128 rows lies in lane m, of one of 64 rows in lane 32 × (m / 16) + m % 16. Everything is done when it is issued.
//! (Blocks on one multiprocessor do not compete for columns, as they do on the hardware: each has all of them.)

use super::descriptor::Descriptor;
use super::{Exec, Failed, Halt, predicate, write};
use crate::machine::alu::round::E4M3;
use crate::machine::alu::{lanes, packed};
use crate::machine::element::{Element, Product};
use crate::machine::ir::{Space, Tcgen, TensorShape};
use crate::machine::state::Warp;

/// Lanes and columns.
const LANES: u32 = 128;
const COLUMNS: u32 = 512;
/// Columns are allocated by that many.
pub(super) const GRAIN: u32 = 32;

fn illegal<T>(what: String) -> Result<T, Halt> {
    Err(Halt::illegal(what))
}

impl Exec<'_> {
    pub(super) fn tcgen05(&mut self, warp: &mut Warp, mask: u32, op: &Tcgen) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let first = (mask.trailing_zeros() & 31) as usize;
        let at = |h: Halt| (h, first as u32);
        match op {
            Tcgen::GiveUp => self.block.tensor_given_up = true,
            Tcgen::Allocate { .. } if self.block.tensor_given_up => {
                let what = "tcgen05.alloc after the block's tcgen05.relinquish_alloc_permit: allocate everything before it";
                return Err(at(Halt::illegal(what)));
            }
            Tcgen::Allocate { to, columns } => {
                let n = self.row(warp, frame, *columns)[first] as u32;
                let address = self.addresses(warp, frame, to.1)[first];
                let start = self.allocate_columns(n).map_err(at)?;
                self.store_lane(warp, to.0, address, 4, u64::from(start), first)
                    .map_err(at)?;
            }
            Tcgen::Free { address, columns } => {
                let n = self.row(warp, frame, *columns)[first] as u32;
                let start = self.row(warp, frame, *address)[first] as u32 & 0xffff;
                self.free_columns(start, n).map_err(at)?;
            }
            Tcgen::Load {
                shape,
                d,
                addr,
                split,
                pack,
            } => {
                let addresses = self.addresses(warp, frame, *addr);
                for (i, &d) in d.iter().enumerate() {
                    let mut out = [0; 32];
                    lanes!(mask, l, {
                        let at = |h: Halt| (h, l as u32);
                        let base = addresses[l] as u32;
                        let read = |i: usize| {
                            let cell = self.cell(warp, base, *shape, *split, i, l)?;
                            Ok(u64::from(self.block.tensor[cell]))
                        };
                        out[l] = if *pack {
                            let (low, high) =
                                (read(2 * i).map_err(at)?, read(2 * i + 1).map_err(at)?);
                            low & 0xffff | (high & 0xffff) << 16
                        } else {
                            read(i).map_err(at)?
                        };
                    });
                    write(warp, frame, d, &out, mask);
                }
            }
            Tcgen::Store {
                shape,
                a,
                addr,
                split,
                unpack,
            } => {
                let addresses = self.addresses(warp, frame, *addr);
                for (i, &a) in a.iter().enumerate() {
                    let values = *self.row(warp, frame, a);
                    lanes!(mask, l, {
                        let at = |h: Halt| (h, l as u32);
                        let base = addresses[l] as u32;
                        let put = |exec: &mut Self, i: usize, value: u32| {
                            let cell = exec.cell(warp, base, *shape, *split, i, l)?;
                            exec.block.tensor[cell] = value;
                            Ok(())
                        };
                        let value = values[l] as u32;
                        if *unpack {
                            put(self, 2 * i, value & 0xffff).map_err(at)?;
                            put(self, 2 * i + 1, value >> 16).map_err(at)?;
                        } else {
                            put(self, i, value).map_err(at)?;
                        }
                    });
                }
            }
            Tcgen::Multiply { .. } => {
                lanes!(mask, l, {
                    self.tensor_product(warp, op, l)
                        .map_err(|h| (h, l as u32))?;
                });
            }
            Tcgen::Commit { addr, blocks } => {
                // Shared addresses come with or without the window in their upper half.
                let addresses = self.addresses(warp, frame, *addr);
                lanes!(mask, l, {
                    let at = |h: Halt| (h, l as u32);
                    let blocks = self.blocks(warp, *blocks, l);
                    for barrier in self.targets(addresses[l] & 0xffff_ffff, blocks) {
                        self.arrive_once(warp, Space::SharedCluster, barrier, l)
                            .map_err(at)?;
                    }
                });
            }
        }
        Ok(())
    }

    fn allocate_columns(&mut self, n: u32) -> Result<u32, Halt> {
        if !n.is_power_of_two() || !(GRAIN..=COLUMNS).contains(&n) {
            return illegal(format!("allocation of {n} columns of tensor memory"));
        }
        if self.block.tensor.is_empty() {
            self.block.tensor = vec![0; (LANES * COLUMNS) as usize];
        }
        let grains = n / GRAIN;
        let ones = (1u32 << grains) - 1;
        let free = (0..=COLUMNS / GRAIN - grains)
            .find(|start| self.block.tensor_columns & ones << start == 0);
        match free {
            Some(start) => {
                self.block.tensor_columns |= ones << start;
                Ok(start * GRAIN)
            }
            None => illegal(format!(
                "{n} columns of tensor memory are not free, and nobody else will free them"
            )),
        }
    }

    fn free_columns(&mut self, start: u32, n: u32) -> Result<(), Halt> {
        let grains = n.div_ceil(GRAIN);
        if !start.is_multiple_of(GRAIN) || start + n > COLUMNS || n == 0 {
            return illegal(format!(
                "{n} columns from {start} are not what was allocated"
            ));
        }
        let ones = ((1u32 << grains) - 1) << (start / GRAIN);
        if self.block.tensor_columns & ones != ones {
            return illegal(format!(
                "{n} columns from {start} are not what was allocated"
            ));
        }
        self.block.tensor_columns &= !ones;
        Ok(())
    }

    /// Index of a lane and a column, which must be allocated.
    fn place(&self, lane: u32, column: u32) -> Result<usize, Halt> {
        if lane >= LANES
            || column >= COLUMNS
            || self.block.tensor_columns >> (column / GRAIN) & 1 == 0
        {
            return illegal(format!(
                "column {column} of lane {lane} of tensor memory is not allocated"
            ));
        }
        Ok((lane * COLUMNS + column) as usize)
    }

    /// Where register `i` of a lane's load or store lies.
    fn cell(
        &self,
        warp: &Warp,
        base: u32,
        shape: TensorShape,
        split: u32,
        i: usize,
        l: usize,
    ) -> Result<usize, Halt> {
        let (i, l) = (i as u32, l as u32);
        let (lane, column) = shape.place(i, l, split);
        let (first, lane) = (base >> 16, (base >> 16) + lane);
        if first / 32 != warp.index % 4 || lane / 32 != warp.index % 4 {
            return illegal(format!(
                "lane {lane} of tensor memory is not among the 32 of warp {}",
                warp.index
            ));
        }
        self.place(lane, (base & 0xffff) + column)
    }

    fn tensor_product(&mut self, warp: &Warp, op: &Tcgen, l: usize) -> Result<(), Halt> {
        let Tcgen::Multiply {
            kind,
            d,
            a,
            a_in_tensor_memory,
            b,
            instruction,
            accumulate,
            masked,
            scale,
            blocks,
        } = op
        else {
            return Ok(());
        };
        let frame = warp.groups[warp.current].frame;
        let masks: Vec<u64> = masked
            .iter()
            .map(|&m| self.row(warp, frame, m)[l])
            .collect();
        let value = |s: u32| self.row(warp, frame, s)[l];
        let word = value(*instruction) as u32;
        let i = InstructionDescriptor::new(word, *kind, blocks.is_some())?;
        let p = i.product;
        let d = self.addresses(warp, frame, *d)[l] as u32;
        let b = Descriptor::tcgen05(value(*b))?;
        let a_word = value(*a);
        let accumulate = predicate(warp, frame, *accumulate) >> l & 1 == 1;
        let mut b = self.described(b, p.b, 0, p.columns, p.depth, i.transposed[1], i.negate[1])?;
        let lane_of = |m: usize| match p.rows {
            64 => (32 * (m / 16) + m % 16) as u32,
            _ => m as u32,
        };
        let mut a = if *a_in_tensor_memory {
            if p.a.narrow() < 8 {
                return Err(Halt::Unsupported(
                    "elements of four or six bits in tensor memory".to_string(),
                ));
            }
            let base = a_word as u32;
            let per = p.a.per_register();
            let mut out = Vec::with_capacity(p.rows * p.depth);
            for m in 0..p.rows {
                for k in 0..p.depth {
                    let lane = (base >> 16) + lane_of(m);
                    let cell = self.place(lane, (base & 0xffff) + (k / per) as u32)?;
                    let word = u64::from(self.block.tensor[cell]);
                    let bits = word >> (p.a.bits() as usize * (k % per)) & p.a.mask();
                    let x = p.a.decode(bits);
                    out.push(if i.negate[0] { -x } else { x });
                }
            }
            out
        } else {
            let a = Descriptor::tcgen05(a_word)?;
            self.described(a, p.a, 0, p.rows, p.depth, i.transposed[0], i.negate[0])?
        };
        if let Some(blocks) = blocks {
            for (values, addr, id) in [
                (&mut a, blocks.a, i.factors[0]),
                (&mut b, blocks.b, i.factors[1]),
            ] {
                let base = self.addresses(warp, frame, addr)[l] as u32;
                self.scale_blocks(values, p.depth, base, id, blocks.count, i.powers)?;
            }
        }
        let at = |m: usize, n: usize| (d >> 16, (d & 0xffff) + n as u32, lane_of(m));
        // All of D must be there before anything is written.
        let mut cells = Vec::with_capacity(p.rows * p.columns);
        for m in 0..p.rows {
            for n in 0..p.columns {
                let (first, column, lane) = at(m, n);
                cells.push(self.place(first + lane, column)?);
            }
        }
        let before: Vec<u32> = cells.iter().map(|&c| self.block.tensor[c]).collect();
        let tensor = &mut self.block.tensor;
        p.compute(
            &a,
            &b,
            |m, n| {
                if accumulate {
                    let bits = u64::from(before[m * p.columns + n]);
                    p.d.decode(bits & p.d.mask()) / f64::from(1u32 << scale)
                } else {
                    0.0
                }
            },
            |m, n, bits| {
                let lane = lane_of(m);
                let mask = masks.get(lane as usize / 32).copied().unwrap_or(0);
                if mask >> (lane % 32) & 1 == 0 {
                    tensor[cells[m * p.columns + n]] = bits as u32;
                }
            },
        );
        Ok(())
    }
}

impl Exec<'_> {
    /// Multiplies the blocks of each row (of a column) by their factors: those of 32 rows are the bytes of a column of tensor memory,
    /// from `first` on.
    fn scale_blocks(
        &self,
        values: &mut [f64],
        depth: usize,
        base: u32,
        first: u32,
        count: usize,
        powers: bool,
    ) -> Result<(), Halt> {
        if first as usize + count > 4 {
            return illegal(format!("{count} factors from byte {first} of four"));
        }
        for (row, values) in (0..).zip(values.chunks_mut(depth)) {
            let cell = self.place((base >> 16) + row % 32, (base & 0xffff) + row / 32)?;
            let word = self.block.tensor[cell];
            for (block, values) in (0..).zip(values.chunks_mut(depth / count)) {
                let bits = word >> (8 * (first + block)) & 0xff;
                let factor = match powers {
                    true => packed::power(bits),
                    false => E4M3.decode(bits & 0x7f),
                };
                values.iter_mut().for_each(|x| *x *= factor);
            }
        }
        Ok(())
    }
}

/// What the 32-bit instruction descriptor says.
struct InstructionDescriptor {
    product: Product,
    negate: [bool; 2],
    transposed: [bool; 2],
    /// With factors: the byte of A's and B's first ones, and whether they are powers of two.
    factors: [u32; 2],
    powers: bool,
}

impl InstructionDescriptor {
    fn new(bits: u32, kind: Element, scaled: bool) -> Result<InstructionDescriptor, Halt> {
        let field = |from: u32, width: u32| bits >> from & ((1 << width) - 1);
        let operand = |n: u32| {
            Some(match (kind, n) {
                (Element::Tf32, 2) => Element::Tf32,
                (Element::F16, 0) => Element::F16,
                (Element::F16, 1) => Element::Bf16,
                (Element::E4m3, 0) => Element::E4m3,
                (Element::E4m3, 1) => Element::E5m2,
                (Element::E4m3, 3) => Element::E2m3,
                (Element::E4m3, 4) => Element::E3m2,
                (Element::E4m3, 5) => Element::E2m1Wide,
                (Element::E2m1, 1) => Element::E2m1,
                (Element::S8, 0) => Element::U8,
                (Element::S8, 1) => Element::S8,
                _ => return None,
            })
        };
        let sum = match field(4, 2) {
            _ if scaled => Some(Element::F32),
            0 => Some(Element::F16),
            1 => Some(Element::F32),
            2 => Some(Element::S32),
            _ => None,
        };
        let (rows, columns) = (16 * field(24, 5) as usize, 8 * field(17, 6) as usize);
        let (Some(a), Some(b), Some(d), true) = (
            operand(field(7, 3)),
            operand(field(10, 3)),
            sum,
            (rows == 128 || rows == 64 && !scaled)
                && (8..=256).contains(&columns)
                && field(2, 1) == 0
                && !(scaled && field(31, 1) == 1),
        ) else {
            return Err(Halt::Unsupported(format!(
                "tcgen05.mma with the instruction descriptor {bits:#x}"
            )));
        };
        Ok(InstructionDescriptor {
            product: Product {
                rows,
                columns,
                depth: 256 / a.bits() as usize,
                a,
                b,
                c: d,
                d,
                saturate: !scaled && field(3, 1) == 1,
                xor: false,
            },
            negate: [field(13, 1) == 1, field(14, 1) == 1],
            transposed: [field(15, 1) == 1, field(16, 1) == 1],
            factors: [field(29, 2), field(4, 2)],
            powers: field(23, 1) == 1,
        })
    }
}

impl TensorShape {
    /// Lane and column, from the address on, of register `i` of a thread.
    pub fn place(self, i: u32, thread: u32, split: u32) -> (u32, u32) {
        let (row, t) = (thread / 4, thread % 4);
        match self {
            TensorShape::Rows32 => (thread, i),
            TensorShape::Rows16Twice => (thread % 16, i + thread / 16 * split),
            // Two, four and eight columns at a time.
            TensorShape::Bits64 => (row + t / 2 * 8, 2 * i + t % 2),
            TensorShape::Bits128 => (row + i % 2 * 8, i / 2 * 4 + t),
            TensorShape::Bits256 => (row + i % 4 / 2 * 8, i / 4 * 8 + 2 * t + i % 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_shape_covers_its_cells_once() {
        for (shape, registers, rows, columns) in [
            (TensorShape::Rows32, 8, 32, 8),
            (TensorShape::Rows16Twice, 8, 16, 16),
            (TensorShape::Bits64, 4, 16, 8),
            (TensorShape::Bits128, 4, 16, 8),
            (TensorShape::Bits256, 8, 16, 16),
        ] {
            let places: HashSet<_> = (0..registers)
                .flat_map(|i| (0..32).map(move |t| shape.place(i, t, 8)))
                .collect();
            assert_eq!(places.len(), 32 * registers as usize);
            assert!(places.iter().all(|&(l, c)| l < rows && c < columns));
        }
    }

    #[test]
    fn tritons_descriptor_is_understood() {
        let i = InstructionDescriptor::new(68_159_760, Element::Tf32, false).unwrap();
        let p = i.product;
        assert_eq!((p.rows, p.columns, p.depth), (64, 64, 8));
        assert_eq!(
            (p.a, p.b, p.d),
            (Element::Tf32, Element::Tf32, Element::F32)
        );
        assert!(InstructionDescriptor::new(0, Element::F16, false).is_err());
    }
}
