//! `ldmatrix`, `stmatrix`, and `mma.sync` of the shapes with m = 16 and n = 8.

use gsan_ptx::ast::Instruction;

use super::data::space;
use super::function::{Decoded, Decoder};
use super::operand::unsupported;
use crate::machine::alu::Mods;
use crate::machine::ir::{MatrixOp, Op, Space};
use crate::machine::ty::Ty;

impl<'a> Decoder<'_, 'a> {
    /// Decodes a matrix instruction.
    pub fn matrix(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if i.opcode == "mma" {
            return self.multiply(i, mods);
        }
        if !mods.has("m8n8") || mods.ty() != Some(Ty::B16) {
            return unsupported("");
        }
        let count = ["x1", "x2", "x4"]
            .iter()
            .position(|w| mods.has(w))
            .map(|n| 1usize << n);
        let transposed = mods.has("trans");
        let space = space(mods.words).unwrap_or(Space::Generic);
        let op = if i.opcode == "ldmatrix" {
            let d: Box<[_]> = self
                .targets(self.operand(i, 0)?, Ty::B32)?
                .iter()
                .map(|r| r.slot)
                .collect();
            if Some(d.len()) != count {
                return unsupported("number of registers");
            }
            MatrixOp::Load {
                d,
                space,
                addr: self.memory_operand(i, 1)?,
                transposed,
            }
        } else {
            let a = self.sources(self.operand(i, 1)?, Ty::B32)?;
            if Some(a.len()) != count {
                return unsupported("number of registers");
            }
            MatrixOp::Store {
                a: a.into(),
                space,
                addr: self.memory_operand(i, 0)?,
                transposed,
            }
        };
        self.emit(Op::Matrix(Box::new(op)));
        Ok(())
    }

    fn multiply(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let known = [
            "sync",
            "aligned",
            "row",
            "col",
            "satfinite",
            "m16n8k4",
            "m16n8k8",
            "m16n8k16",
            "m16n8k32",
        ];
        let [dt, at, bt, ct] = mods.types[..] else {
            return unsupported("");
        };
        let k = known[5..]
            .iter()
            .find(|w| mods.has(w))
            .and_then(|w| w[6..].parse::<u32>().ok());
        let element = at.bytes();
        let small = matches!(
            at,
            Ty::F16 | Ty::Bf16 | Ty::Tf32 | Ty::S8 | Ty::U8 | Ty::E4m3 | Ty::E5m2
        );
        let (Some(k), true, true) = (k, mods.only(&known), small && bt.bytes() == element) else {
            return unsupported("");
        };
        if !matches!(
            (dt, ct),
            (Ty::F32, Ty::F32) | (Ty::F16, Ty::F16) | (Ty::S32, Ty::S32)
        ) {
            return unsupported("");
        }
        let d: Box<[_]> = self
            .targets(self.operand(i, 0)?, Ty::B32)?
            .iter()
            .map(|r| r.slot)
            .collect();
        let a = self.sources(self.operand(i, 1)?, Ty::B32)?;
        let b = self.sources(self.operand(i, 2)?, Ty::B32)?;
        let c = self.sources(self.operand(i, 3)?, ct)?;
        let accumulators = (dt.bytes()) as usize;
        let expected = ((k * element / 8) as usize, (k * element / 16) as usize);
        if (a.len(), b.len()) != expected || d.len() != accumulators || c.len() != accumulators {
            return unsupported("number of registers");
        }
        let op = MatrixOp::Multiply {
            k,
            types: [dt, at, bt, ct],
            saturate: mods.has("satfinite"),
            d,
            a: a.into(),
            b: b.into(),
            c: c.into(),
        };
        self.emit(Op::Matrix(Box::new(op)));
        Ok(())
    }
}
