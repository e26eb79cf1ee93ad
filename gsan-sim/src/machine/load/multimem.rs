//! `multimem.ld_reduce`, `multimem.st`, `multimem.red`.

use gsan_ptx::ast::Instruction;

use super::data::atomic_op;
use super::function::{Decoded, Decoder};
use super::operand::{invalid, unsupported};
use crate::machine::alu::Mods;
use crate::machine::ir::{AtomicOp, Multimem, MultimemKind, Op, Sum};
use crate::machine::ty::Ty;

/// Types of one value per register.
const INTEGERS: [(&str, Ty); 6] = [
    ("b32", Ty::B32),
    ("b64", Ty::B64),
    ("u32", Ty::U32),
    ("u64", Ty::U64),
    ("s32", Ty::S32),
    ("s64", Ty::S64),
];
const FLOATS: [(&str, Ty); 6] = [
    ("f16", Ty::F16),
    ("f16x2", Ty::F16x2),
    ("bf16", Ty::Bf16),
    ("bf16x2", Ty::Bf16x2),
    ("f32", Ty::F32),
    ("f64", Ty::F64),
];
/// Elements of eight bits: a register's type.
const SMALL: [(&str, Ty); 6] = [
    ("e4m3", Ty::B8),
    ("e4m3x2", Ty::B16),
    ("e4m3x4", Ty::B32),
    ("e5m2", Ty::B8),
    ("e5m2x2", Ty::B16),
    ("e5m2x4", Ty::B32),
];

impl<'a> Decoder<'_, 'a> {
    pub(super) fn multimem(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let kind = if mods.has("ld_reduce") {
            MultimemKind::LoadReduce
        } else if mods.has("red") {
            MultimemKind::Reduce
        } else if mods.has("st") {
            MultimemKind::Store
        } else {
            return unsupported("multimem copies");
        };
        let named = |list: &'static [(&'static str, Ty); 6]| {
            list.iter()
                .find(|(name, _)| i.modifiers.last() == Some(name))
                .copied()
        };
        let op = match kind {
            MultimemKind::Store => AtomicOp::Exch,
            _ => match atomic_op(mods.words) {
                Some(op) => op,
                None => return invalid("`multimem` without an operation"),
            },
        };
        let (ty, sum, operations): (Ty, Sum, &[AtomicOp]) =
            if let Some((name, ty)) = named(&INTEGERS) {
                let operations: &[AtomicOp] = if name.starts_with('b') {
                    &[AtomicOp::And, AtomicOp::Or, AtomicOp::Xor]
                } else {
                    &[AtomicOp::Add, AtomicOp::Min, AtomicOp::Max]
                };
                (ty, Sum::Whole(ty), operations)
            } else if let Some((name, ty)) = named(&FLOATS) {
                let half = !matches!(ty, Ty::F32 | Ty::F64);
                let sum = if half && mods.has("acc::f32") {
                    let brain = name.starts_with('b');
                    Sum::Wide { brain }
                } else {
                    Sum::Whole(ty)
                };
                let operations: &[AtomicOp] = if half && kind == MultimemKind::LoadReduce {
                    &[AtomicOp::Add, AtomicOp::Min, AtomicOp::Max]
                } else {
                    &[AtomicOp::Add]
                };
                (ty, sum, operations)
            } else if let Some((name, ty)) = named(&SMALL) {
                let sum = Sum::Small {
                    wide_range: name.starts_with("e5m2"),
                    half: mods.has("acc::f16"),
                };
                let operations: &[AtomicOp] = if kind == MultimemKind::Reduce {
                    &[]
                } else {
                    &[AtomicOp::Add, AtomicOp::Min, AtomicOp::Max]
                };
                (ty, sum, operations)
            } else {
                return invalid("`multimem` with a type that it does not have");
            };
        if kind != MultimemKind::Store && !operations.contains(&op) {
            return invalid("`multimem` with an operation that its type does not have");
        }
        let load = kind == MultimemKind::LoadReduce;
        let addr = self.memory_operand(i, usize::from(load))?;
        let value = self.operand(i, usize::from(!load))?;
        let registers: Vec<u32> = if load {
            let targets = self.targets(value, ty)?;
            targets.iter().map(|r| r.slot).collect()
        } else {
            self.sources(value, ty)?
        };
        let total = registers.len() as u32 * ty.bytes();
        if !matches!(total, 4 | 8 | 16) {
            return invalid("`multimem` of other than 32, 64 or 128 bits");
        }
        self.emit(Op::Multimem(Box::new(Multimem {
            kind,
            op,
            sum,
            bytes: ty.bytes(),
            addr,
            registers: registers.into(),
        })));
        Ok(())
    }
}
