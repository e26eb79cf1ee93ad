//! Matrices that a warp holds together. Element (row, column) of a fragment lies where the PTX manual's figures have it:
//! lane = 4 × row + column / (elements per register), for 8 rows at a time.

use super::{Exec, Failed, Flow, Halt, write};
use crate::machine::alu::round::{BF16, E4M3, E5M2, F16};
use crate::machine::ir::{MatrixOp, Src};
use crate::machine::state::{State, Warp};
use crate::machine::stop::FaultKind;
use crate::machine::ty::{Row, Ty, extend};

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
            MatrixOp::Multiply { .. } => self.multiply(warp, op),
        }
        warp.groups[current].pc += 1;
        Ok(Flow::Moved)
    }

    fn multiply(&mut self, warp: &mut Warp, op: &MatrixOp) {
        let MatrixOp::Multiply {
            k,
            types,
            saturate,
            d,
            a,
            b,
            c,
        } = op
        else {
            return;
        };
        let [dt, at, bt, _] = *types;
        let frame = warp.groups[warp.current].frame;
        let k = *k as usize;
        let rows = |list: &[Src]| {
            list.iter()
                .map(|&s| *self.row(warp, frame, s))
                .collect::<Vec<Row>>()
        };
        let (ra, rb, rc) = (rows(a), rows(b), rows(c));
        let per = 4 / at.bytes() as usize;
        let bits = 8 * at.bytes();
        let keep = u64::MAX >> (64 - bits);
        // Element (m, x) of A and (x, n) of B.
        let element = |row: &Row, lane: usize, i: usize| row[lane] >> (bits as usize * i) & keep;
        let split = |x: usize| (x / (4 * per), x % (4 * per) / per, x % per);
        let of_a = |m: usize, x: usize| {
            let (half, t, i) = split(x);
            element(&ra[2 * half + m / 8], 4 * (m % 8) + t, i)
        };
        let of_b = |x: usize, n: usize| {
            let (half, t, i) = split(x);
            element(&rb[half], 4 * n + t, i)
        };
        let mut out = vec![[0u64; 32]; d.len()];
        for m in 0..16 {
            for n in 0..8 {
                let lane = 4 * (m % 8) + n / 2;
                let index = 2 * (m / 8) + n % 2;
                // Two f16 accumulators share a register.
                let (register, shift) = if dt == Ty::F16 {
                    (index / 2, 16 * (index % 2))
                } else {
                    (index, 0)
                };
                let start = rc[register][lane] >> shift;
                let value = if dt == Ty::S32 {
                    let sum = (0..k).fold(i64::from(start as i32), |s, x| {
                        s + integer(at, of_a(m, x)) * integer(bt, of_b(x, n))
                    });
                    let low = i64::from(i32::MIN);
                    let sum = if *saturate {
                        sum.clamp(low, i64::from(i32::MAX))
                    } else {
                        sum
                    };
                    u64::from(sum as u32)
                } else {
                    let start = if dt == Ty::F16 {
                        F16.decode(start as u32 & 0xffff)
                    } else {
                        f64::from(f32::from_bits(start as u32))
                    };
                    let sum = (0..k).fold(start, |s, x| {
                        s + float(at, of_a(m, x)) * float(bt, of_b(x, n))
                    });
                    if dt == Ty::F16 {
                        u64::from(F16.encode(sum, 0))
                    } else {
                        u64::from((sum as f32).to_bits())
                    }
                };
                out[register][lane] |= value << shift;
            }
        }
        for (&d, row) in d.iter().zip(&out) {
            write(warp, frame, d, row, u32::MAX);
        }
    }
}

fn aligned(address: u64) -> Result<(), Halt> {
    if address.is_multiple_of(16) {
        Ok(())
    } else {
        Err(Halt::fault(FaultKind::Misaligned, address))
    }
}

fn integer(ty: Ty, bits: u64) -> i64 {
    extend(bits, 1, ty == Ty::S8, 8) as i64
}

fn float(ty: Ty, bits: u64) -> f64 {
    let bits = bits as u32;
    match ty {
        Ty::F16 => F16.decode(bits),
        Ty::Bf16 => BF16.decode(bits),
        Ty::E4m3 => E4M3.decode(bits),
        Ty::E5m2 => E5M2.decode(bits),
        // The lower 13 bits of a tf32 are not looked at.
        _ => f64::from(f32::from_bits(bits & !0x1fff)),
    }
}
