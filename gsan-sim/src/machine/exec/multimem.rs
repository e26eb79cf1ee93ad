//! `multimem`: one instruction, the memory of several devices.
//!
//! The order in which `ld_reduce` adds is not specified; here it is that in which the memory was bound.

use super::atomic::{add_flushed, apply};
use super::{Exec, Failed, Halt, write};
use crate::machine::alu::lanes;
use crate::machine::alu::round::{BF16, E4M3, E5M2, F16, Format};
use crate::machine::ir::{AtomicOp, Multimem, MultimemKind, Space, Sum};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;
use crate::machine::ty::Ty;

impl Exec<'_> {
    pub(super) fn multimem(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &Multimem,
    ) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let addresses = self.addresses(warp, frame, op.addr);
        let bytes = op.bytes;
        let elements = op.registers.len();
        let total = u64::from(bytes) * elements as u64;
        let writes = op.kind != MultimemKind::LoadReduce;
        let mut results = vec![[0u64; 32]; elements];
        lanes!(mask, l, {
            let at = |h: Halt| (h, l as u32);
            if !addresses[l].is_multiple_of(total) {
                return Err(at(Halt::fault(FaultKind::Misaligned, addresses[l])));
            }
            let device = self.block.device;
            let aliases = self
                .memory
                .multicast(device, addresses[l], total, writes)
                .map_err(|f| at(f.into()))?;
            for (i, &register) in op.registers.iter().enumerate() {
                let mut parts = Vec::with_capacity(aliases.len());
                for alias in &aliases {
                    let place = alias + u64::from(bytes) * i as u64;
                    if op.kind != MultimemKind::Store {
                        let old = self
                            .load_lane(warp, Space::Global, place, bytes as u8, l)
                            .map_err(at)?;
                        parts.push(old);
                    }
                    if op.kind == MultimemKind::LoadReduce {
                        continue;
                    }
                    let value = self.row(warp, frame, register)[l];
                    let new = match parts.last() {
                        Some(&old) => op.sum.pair(op.op, old, value),
                        None => value,
                    };
                    self.store_lane(warp, Space::Global, place, bytes as u8, new, l)
                        .map_err(at)?;
                }
                if op.kind == MultimemKind::LoadReduce {
                    results[i][l] = op.sum.all(op.op, &parts);
                }
            }
        });
        if op.kind == MultimemKind::LoadReduce {
            for (d, row) in op.registers.iter().zip(&results) {
                write(warp, frame, *d, row, mask);
            }
        }
        Ok(())
    }
}

impl Sum {
    /// What `red` leaves.
    fn pair(self, op: AtomicOp, old: u64, value: u64) -> u64 {
        match self {
            Sum::Whole(ty) => {
                let (old, value) = (old & ty.mask(), value & ty.mask());
                // As an `atom` there.
                if (op, ty) == (AtomicOp::Add, Ty::F32) {
                    add_flushed(old, value)
                } else {
                    apply(op, ty, old, value, 0)
                }
            }
            _ => self.all(op, &[old, value]),
        }
    }

    /// What `ld_reduce` answers.
    fn all(self, op: AtomicOp, parts: &[u64]) -> u64 {
        let Some((&first, rest)) = parts.split_first() else {
            return 0;
        };
        let (format, width, precise) = match self {
            Sum::Whole(ty) => {
                let mask = ty.mask();
                let step = |sum: u64, x: &u64| apply(op, ty, sum, x & mask, 0);
                return rest.iter().fold(first & mask, step);
            }
            Sum::Wide { brain } => (if brain { BF16 } else { F16 }, 16, Precise::F32),
            Sum::Small { wide_range, half } => {
                let format = if wide_range { E5M2 } else { E4M3 };
                (format, 8, if half { Precise::F16 } else { Precise::No })
            }
        };
        let mut out = 0;
        for shift in (0..32).step_by(width) {
            let value = |x: u64| format.decode((x >> shift) as u32 & ((1 << width) - 1));
            let step = |sum: f64, x: &u64| precise.step(op, format, sum, value(*x));
            let sum = rest.iter().fold(value(first), step);
            out |= u64::from(format.encode(sum, 0)) << shift;
        }
        out
    }
}

/// What a sum under way is kept in.
#[derive(Clone, Copy)]
enum Precise {
    /// The elements' own format.
    No,
    F16,
    F32,
}

impl Precise {
    fn step(self, op: AtomicOp, format: Format, a: f64, b: f64) -> f64 {
        match op {
            AtomicOp::Min => return a.min(b),
            AtomicOp::Max => return a.max(b),
            _ => {}
        }
        let sum = a + b;
        match self {
            Precise::No => format.decode(format.encode(sum, 0)),
            Precise::F16 => F16.decode(F16.encode(sum, 0)),
            Precise::F32 => f64::from(sum as f32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_as_precise_as_the_instruction_says() {
        let f16 = |x: f64| u64::from(F16.encode(x, 0));
        // 2048 + 1 is no f16, 2048 + 2 is one.
        let parts = [f16(2048.0), f16(1.0), f16(1.0)];
        let plain = Sum::Whole(Ty::F16x2).all(AtomicOp::Add, &parts);
        assert_eq!(F16.decode(plain as u32 & 0xffff), 2048.0);
        let precise = Sum::Wide { brain: false }.all(AtomicOp::Add, &parts);
        assert_eq!(F16.decode(precise as u32 & 0xffff), 2050.0);
        let e5m2 = |x: f64| u64::from(E5M2.encode(x, 0)) << 24;
        let parts = [e5m2(8.0), e5m2(1.0), e5m2(1.0)];
        for (half, sum) in [(false, 8.0), (true, 10.0)] {
            let small = Sum::Small {
                wide_range: true,
                half,
            };
            let found = small.all(AtomicOp::Add, &parts);
            assert_eq!(E5M2.decode((found >> 24) as u32), sum);
            let least = small.all(AtomicOp::Min, &parts);
            assert_eq!(least, parts[1]);
        }
        let signed = Sum::Whole(Ty::S32).all(AtomicOp::Max, &[0xffff_ffff, 0, 0x8000_0000]);
        assert_eq!(signed, 0);
        let wrapped = Sum::Whole(Ty::U64).pair(AtomicOp::Add, u64::MAX, 2);
        assert_eq!(wrapped, 1);
    }
}
