//! `tcgen05`: tensor memory and products that one thread starts.

use gsan_ptx::ast::{Instruction, Operand};

use super::data::space;
use super::function::{Decoded, Decoder};
use super::operand::unsupported;
use crate::machine::alu::Mods;
use crate::machine::element::Element;
use crate::machine::ir::{NONE, Op, Space, Src, Tcgen, TensorScales, TensorShape};
use crate::machine::ty::Ty;

/// The shape among the modifiers, and how many registers it has times one.
fn shape(words: &[&str]) -> Option<(TensorShape, usize)> {
    words.iter().find_map(|w| {
        Some(match *w {
            "32x32b" => (TensorShape::Rows32, 1),
            "16x32bx2" => (TensorShape::Rows16Twice, 1),
            "16x64b" => (TensorShape::Bits64, 1),
            "16x128b" => (TensorShape::Bits128, 2),
            "16x256b" => (TensorShape::Bits256, 4),
            _ => return None,
        })
    })
}

impl<'a> Decoder<'_, 'a> {
    /// Decodes a `tcgen05` instruction.
    pub(super) fn tcgen05(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let has = |w: &str| mods.has(w);
        if has("cta_group::2") {
            return unsupported("pairs of blocks");
        }
        let op = match mods.words.first().copied().unwrap_or_default() {
            "alloc" => Tcgen::Allocate {
                to: (
                    space(mods.words).unwrap_or(Space::Generic),
                    self.memory_operand(i, 0)?,
                ),
                columns: self.source(self.operand(i, 1)?, Ty::U32)?,
            },
            "dealloc" => Tcgen::Free {
                address: self.source(self.operand(i, 0)?, Ty::B32)?,
                columns: self.source(self.operand(i, 1)?, Ty::U32)?,
            },
            "ld" | "st" => self.tensor_access(i, mods)?,
            "mma" => self.tensor_product(i, mods)?,
            "commit" => Tcgen::Commit {
                addr: self.memory_operand(i, 0)?,
                blocks: if has("multicast::cluster") {
                    self.source(self.operand(i, 1)?, Ty::U16)?
                } else {
                    NONE
                },
            },
            "relinquish_alloc_permit" => Tcgen::GiveUp,
            // Everything is done when it is issued.
            "wait::ld" | "wait::st" | "fence::before_thread_sync" | "fence::after_thread_sync" => {
                self.emit(Op::Nop);
                return Ok(());
            }
            _ => return unsupported(""),
        };
        self.emit(Op::Tcgen(Box::new(op)));
        Ok(())
    }

    fn tensor_access(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<Tcgen> {
        let load = mods.has("ld");
        let count = mods
            .words
            .iter()
            .find_map(|w| w.strip_prefix('x')?.parse::<usize>().ok());
        let (Some((shape, each)), Some(count), false) = (shape(mods.words), count, mods.has("red"))
        else {
            return unsupported("");
        };
        let (list, address) = if load { (0, 1) } else { (1, 0) };
        let mut split = 0;
        let mut list_at = list;
        if shape == TensorShape::Rows16Twice {
            let at = if load { 2 } else { 1 };
            let Operand::Int(n) = self.operand(i, at)? else {
                return unsupported("an offset that is no constant");
            };
            split = u32::try_from(*n).unwrap_or(u32::MAX);
            list_at = if load { 0 } else { 2 };
        }
        let addr = self.memory_operand(i, address)?;
        let wanted = count * each;
        // Two neighbouring columns for a register: in these shapes no lane has both.
        let halves = mods.has("pack::16b") || mods.has("unpack::16b");
        if halves && matches!(shape, TensorShape::Bits64 | TensorShape::Bits128) {
            return unsupported("halves in this shape");
        }
        if load {
            let d: Box<[u32]> = self
                .targets(self.operand(i, list_at)?, Ty::B32)?
                .iter()
                .map(|r| r.slot)
                .collect();
            let pack = mods.has("pack::16b");
            if d.len() != wanted {
                return unsupported("number of registers");
            }
            return Ok(Tcgen::Load {
                shape,
                d,
                addr,
                split,
                pack,
            });
        }
        let a = self.sources(self.operand(i, list_at)?, Ty::B32)?;
        let unpack = mods.has("unpack::16b");
        if a.len() != wanted {
            return unsupported("number of registers");
        }
        Ok(Tcgen::Store {
            shape,
            a: a.into(),
            addr,
            split,
            unpack,
        })
    }

    /// `[d], a, b, instruction descriptor, whether D is added`.
    fn tensor_product(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<Tcgen> {
        let kind = mods.words.iter().find_map(|w| {
            Some(match *w {
                "kind::tf32" => Element::Tf32,
                "kind::f16" => Element::F16,
                "kind::f8f6f4" | "kind::mxf8f6f4" => Element::E4m3,
                "kind::mxf4" | "kind::mxf4nvf4" => Element::E2m1,
                "kind::i8" => Element::S8,
                _ => return None,
            })
        });
        // The collector's buffer is a hint.
        let plain = mods.words.iter().all(|w| {
            w.starts_with("kind::")
                || w.starts_with("collector::a")
                || w.starts_with("scale_vec::")
                || matches!(
                    *w,
                    "mma"
                        | "cta_group::1"
                        | "block_scale"
                        | "block16"
                        | "block32"
                        | "fill"
                        | "use"
                        | "lastuse"
                        | "discard"
                )
        });
        let (Some(kind), true) = (kind, plain) else {
            return unsupported("");
        };
        if mods.has("block_scale") != mods.words.iter().any(|w| w.starts_with("kind::mx")) {
            return unsupported("");
        }
        if mods.has("block_scale") {
            return self.scaled_product(i, mods, kind);
        }
        // A list of masks may stand before the predicate, a scale of D behind it.
        let masks = matches!(i.operands.get(4), Some(Operand::Vector(_)));
        let masked = if masks {
            self.sources(self.operand(i, 4)?, Ty::B32)?
        } else {
            Vec::new()
        };
        let at = if masks { 5 } else { 4 };
        let scale = match i.operands.get(at + 1) {
            None => 0,
            Some(Operand::Int(n @ 0..=15)) => *n as u32,
            Some(_) => return unsupported("a scale that is none of 0 to 15"),
        };
        if i.operands.len() > at + 2 || !matches!(masked.len(), 0 | 4) {
            return unsupported("number of operands");
        }
        let d = self.memory_operand(i, 0)?;
        let (a, a_in_tensor_memory) = self.left_operand(i)?;
        Ok(Tcgen::Multiply {
            kind,
            d,
            a,
            a_in_tensor_memory,
            b: self.source(self.operand(i, 2)?, Ty::B64)?,
            instruction: self.source(self.operand(i, 3)?, Ty::B32)?,
            accumulate: self.predicate_source(self.operand(i, at)?)?,
            masked: masked.into(),
            scale,
            blocks: None,
        })
    }

    /// A descriptor, or an address in tensor memory.
    fn left_operand(&mut self, i: &Instruction<'a>) -> Decoded<(Src, bool)> {
        match self.operand(i, 1)? {
            Operand::Address(_) => {
                let addr = self.memory_operand(i, 1)?;
                let slot = self.fresh();
                self.emit(Op::AddressOf { d: slot, addr });
                Ok((slot, true))
            }
            o => Ok((self.source(o, Ty::B64)?, false)),
        }
    }

    /// `[d], a, b, instruction descriptor, [A's factors], [B's], whether D is added`.
    fn scaled_product(
        &mut self,
        i: &Instruction<'a>,
        mods: &Mods<'_>,
        kind: Element,
    ) -> Decoded<Tcgen> {
        let said = mods.words.iter().find_map(|w| match *w {
            "scale_vec::1X" => Some(1),
            "scale_vec::2X" => Some(2),
            "scale_vec::4X" | "block16" => Some(4),
            "block32" => Some(if kind == Element::E2m1 { 2 } else { 1 }),
            _ => None,
        });
        let nvf4 = mods.has("kind::mxf4nvf4");
        let count = match (kind, said) {
            (Element::E4m3, None | Some(1)) => 1,
            (Element::E2m1, None) if !nvf4 => 2,
            (Element::E2m1, Some(2)) => 2,
            (Element::E2m1, Some(4)) if nvf4 => 4,
            _ => return unsupported("factors for blocks of that size"),
        };
        if i.operands.len() != 7 {
            return unsupported("number of operands");
        }
        let d = self.memory_operand(i, 0)?;
        let (a, a_in_tensor_memory) = self.left_operand(i)?;
        Ok(Tcgen::Multiply {
            kind,
            d,
            a,
            a_in_tensor_memory,
            b: self.source(self.operand(i, 2)?, Ty::B64)?,
            instruction: self.source(self.operand(i, 3)?, Ty::B32)?,
            accumulate: self.predicate_source(self.operand(i, 6)?)?,
            masked: Box::default(),
            scale: 0,
            blocks: Some(TensorScales {
                count,
                a: self.memory_operand(i, 4)?,
                b: self.memory_operand(i, 5)?,
            }),
        })
    }
}
