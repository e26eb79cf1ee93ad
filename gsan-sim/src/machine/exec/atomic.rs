//! `atom` and `red`: one lane after the other, each in one step.

use super::data::Place;
use super::{Exec, Failed, Halt, NONE, write};
use crate::machine::alu::round::{FTZ, canonical, flush};
use crate::machine::alu::{half, lanes};
use crate::machine::ir::{Atomic, AtomicOp};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;
use crate::machine::ty::Ty;

impl Exec<'_> {
    pub(super) fn atomic(&mut self, warp: &mut Warp, mask: u32, op: &Atomic) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let addresses = self.addresses(warp, frame, op.addr);
        let bytes = op.ty.bytes();
        let total = u64::from(bytes) * op.b.len() as u64;
        let mut results = vec![[0u64; 32]; op.b.len() * if bytes == 16 { 2 } else { 1 }];
        lanes!(mask, l, {
            let at = |h: Halt| (h, l as u32);
            if !addresses[l].is_multiple_of(total.next_power_of_two()) {
                return Err(at(Halt::fault(FaultKind::Misaligned, addresses[l])));
            }
            if bytes == 16 {
                let [low, high] = self.wide(warp, op, addresses[l], l).map_err(at)?;
                results[0][l] = low;
                results[1][l] = high;
            } else {
                for (i, &b) in op.b.iter().enumerate() {
                    let address = addresses[l].wrapping_add(u64::from(bytes) * i as u64);
                    let b = self.row(warp, frame, b)[l];
                    let c = if op.c == NONE {
                        0
                    } else {
                        self.row(warp, frame, op.c)[l]
                    };
                    let old = self
                        .load_lane(warp, op.space, address, bytes as u8, l)
                        .map_err(at)?;
                    let (b, c) = (b & op.ty.mask(), c & op.ty.mask());
                    // Global memory's adder knows no subnormal f32.
                    let flushes = (op.op, op.ty) == (AtomicOp::Add, Ty::F32)
                        && matches!(
                            self.locate(op.space, address, u64::from(bytes))
                                .map_err(at)?,
                            Place::Global(_)
                        );
                    let new = if flushes {
                        add_flushed(old, b)
                    } else {
                        apply(op.op, op.ty, old, b, c)
                    };
                    // A failed CAS writes what was there: the right to write is needed all the same.
                    if op.op == AtomicOp::Cas && old != b {
                        self.only_reads();
                    }
                    self.store_lane(warp, op.space, address, bytes as u8, new, l)
                        .map_err(at)?;
                    results[i][l] = old;
                }
            }
        });
        if bytes == 16 {
            if op.d[0] != NONE {
                write(warp, frame, op.d[0], &results[0], mask);
                write(warp, frame, op.d[0] + 1, &results[1], mask);
            }
            return Ok(());
        }
        for (d, row) in op.d.iter().zip(&results) {
            write(warp, frame, *d, row, mask);
        }
        Ok(())
    }

    /// `exch` and `cas` of 16 bytes: operands and results are two slots each.
    fn wide(
        &mut self,
        warp: &mut Warp,
        op: &Atomic,
        address: u64,
        l: usize,
    ) -> Result<[u64; 2], Halt> {
        let frame = warp.groups[warp.current].frame;
        let mut old = [0; 2];
        for (i, word) in old.iter_mut().enumerate() {
            *word = self.load_lane(warp, op.space, address + 8 * i as u64, 8, l)?;
        }
        let pair =
            |exec: &Self, s: u32| [exec.row(warp, frame, s)[l], exec.row(warp, frame, s + 1)[l]];
        let b = pair(self, op.b[0]);
        let new = match op.op {
            AtomicOp::Exch => b,
            AtomicOp::Cas if old == b => pair(self, op.c),
            AtomicOp::Cas => {
                self.only_reads();
                old
            }
            _ => return Err(Halt::Unsupported("128-bit atomic".to_string())),
        };
        for (i, word) in new.iter().enumerate() {
            self.store_lane(warp, op.space, address + 8 * i as u64, 8, *word, l)?;
        }
        Ok(old)
    }
}

/// The sum of two f32 where subnormal ones count as zero, in and out.
pub fn add_flushed(a: u64, b: u64) -> u64 {
    flushed(apply(AtomicOp::Add, Ty::F32, flushed(a), flushed(b), 0))
}

/// An f32's bits without a subnormal value.
fn flushed(bits: u64) -> u64 {
    u64::from(flush(f32::from_bits(bits as u32), FTZ).to_bits())
}

/// The new value.
pub fn apply(op: AtomicOp, ty: Ty, old: u64, b: u64, c: u64) -> u64 {
    let mask = ty.mask();
    let new = match op {
        AtomicOp::And => old & b,
        AtomicOp::Or => old | b,
        AtomicOp::Xor => old ^ b,
        AtomicOp::Exch => b,
        AtomicOp::Cas => {
            if old == b {
                c
            } else {
                old
            }
        }
        AtomicOp::Inc => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Dec => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        AtomicOp::Add => add(ty, old, b),
        AtomicOp::Min | AtomicOp::Max => {
            let smaller = op == AtomicOp::Min;
            match ty {
                Ty::S32 => pick((old as i32).cmp(&(b as i32)), smaller, old, b),
                Ty::S64 => pick((old as i64).cmp(&(b as i64)), smaller, old, b),
                Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 => {
                    u64::from(half::extreme(ty, old as u32, b as u32, smaller))
                }
                Ty::F32 => {
                    let (x, y) = (f32::from_bits(old as u32), f32::from_bits(b as u32));
                    u64::from((if smaller { x.min(y) } else { x.max(y) }).to_bits())
                }
                _ => pick(old.cmp(&b), smaller, old, b),
            }
        }
    };
    new & mask
}

fn pick(order: std::cmp::Ordering, smaller: bool, old: u64, b: u64) -> u64 {
    if (order == std::cmp::Ordering::Less) == smaller {
        old
    } else {
        b
    }
}

fn add(ty: Ty, old: u64, b: u64) -> u64 {
    match ty {
        Ty::F32 => {
            let sum = f32::from_bits(old as u32) + f32::from_bits(b as u32);
            u64::from(canonical(sum).to_bits())
        }
        Ty::F64 => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 => {
            u64::from(half::add(ty, old as u32, b as u32))
        }
        _ => old.wrapping_add(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_operations_wrap_at_their_width() {
        assert_eq!(apply(AtomicOp::Add, Ty::U32, 0xffff_ffff, 2, 0), 1);
        assert_eq!(apply(AtomicOp::Inc, Ty::U32, 5, 5, 0), 0);
        assert_eq!(apply(AtomicOp::Inc, Ty::U32, 4, 5, 0), 5);
        assert_eq!(apply(AtomicOp::Dec, Ty::U32, 0, 5, 0), 5);
        assert_eq!(apply(AtomicOp::Dec, Ty::U32, 9, 5, 0), 5);
        assert_eq!(apply(AtomicOp::Dec, Ty::U32, 3, 5, 0), 2);
        assert_eq!(
            apply(AtomicOp::Min, Ty::S32, 0xffff_ffff, 1, 0),
            0xffff_ffff
        );
        assert_eq!(apply(AtomicOp::Min, Ty::U32, 0xffff_ffff, 1, 0), 1);
        assert_eq!(apply(AtomicOp::Max, Ty::S64, u64::MAX, 0, 0), 0);
        assert_eq!(apply(AtomicOp::Cas, Ty::B16, 7, 7, 9), 9);
        assert_eq!(apply(AtomicOp::Cas, Ty::B16, 7, 8, 9), 7);
    }

    #[test]
    fn float_sums_are_those_of_the_type() {
        assert_eq!(
            apply(
                AtomicOp::Add,
                Ty::F32,
                u64::from(1.5f32.to_bits()),
                u64::from(2.25f32.to_bits()),
                0
            ),
            u64::from(3.75f32.to_bits())
        );
        assert_eq!(
            apply(AtomicOp::Add, Ty::F16x2, 0x3c00_4000, 0x3c00_3c00, 0),
            0x4000_4200
        );
    }
}
