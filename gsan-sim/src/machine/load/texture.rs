//! `tex`, `tld4`, `suld`, `sust`, `txq`, `suq` by object.

use gsan_ptx::ast::{Instruction, Operand};

use super::function::{Decoded, Decoder};
use super::operand::unsupported;
use crate::machine::alu::Mods;
use crate::machine::ir::{Geometry, Op, Outside, Src, TextureKind, TextureOp};
use crate::machine::ty::Ty;

impl<'a> Decoder<'_, 'a> {
    /// Decodes an instruction on a texture or a surface.
    pub(super) fn texture(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if matches!(i.opcode, "txq" | "suq") {
            return self.texture_query(i, mods);
        }
        let store = i.opcode == "sust";
        let (list, place) = if store { (1, 0) } else { (0, 1) };
        let Operand::Tensor(parts) = self.operand(i, place)? else {
            return unsupported("");
        };
        let [object, coordinates] = &parts[..] else {
            return unsupported("a texture with a sampler of its own");
        };
        let Some((geometry, wanted)) = mods.words.iter().find_map(|w| {
            Some(match *w {
                "1d" => (Geometry::One, 1),
                "2d" => (Geometry::Two, 2),
                "3d" => (Geometry::Three, 3),
                "a1d" => (Geometry::LayersOfOne, 2),
                "a2d" => (Geometry::LayersOfTwo, 3),
                _ => return None,
            })
        }) else {
            return unsupported("cube maps and textures of several samples");
        };
        let object = self.source(object, Ty::B64)?;
        let at = self.sources(coordinates, Ty::B32)?;
        if at.len() < wanted {
            return unsupported("number of coordinates");
        }
        let at: Box<[Src]> = at[..wanted].into();
        let kind = match i.opcode {
            "suld" | "sust" => self.surface(mods)?,
            _ => {
                let [result, coordinate] = mods.types[..] else {
                    return unsupported("");
                };
                if !mods.has("v4")
                    || !matches!(result, Ty::F32 | Ty::S32 | Ty::U32)
                    || !matches!(coordinate, Ty::F32 | Ty::S32)
                {
                    return unsupported("");
                }
                let given = if mods.has("level") {
                    3
                } else if mods.has("grad") {
                    4
                } else {
                    2
                };
                if i.operands.len() > given {
                    return unsupported("an offset or a depth to compare with");
                }
                if i.opcode == "tld4" {
                    let channel = ["r", "g", "b", "a"].iter().position(|w| mods.has(w));
                    TextureKind::Gather(channel.unwrap_or(0))
                } else {
                    TextureKind::Sample {
                        whole: coordinate == Ty::S32,
                    }
                }
            }
        };
        let ty = match kind {
            TextureKind::Surface { bytes: 8, .. } => Ty::B64,
            _ => Ty::B32,
        };
        let values: Box<[u32]> = if store {
            self.sources(self.operand(i, list)?, ty)?.into()
        } else {
            self.targets(self.operand(i, list)?, ty)?
                .iter()
                .map(|r| r.slot)
                .collect()
        };
        let elements = match kind {
            TextureKind::Surface { .. } if mods.has("v2") => 2,
            TextureKind::Surface { .. } if !mods.has("v4") => 1,
            _ => 4,
        };
        if values.len() != elements {
            return unsupported("number of registers");
        }
        self.emit(Op::Texture(Box::new(TextureOp {
            kind,
            geometry,
            object,
            at,
            store,
            values,
        })));
        Ok(())
    }

    fn surface(&mut self, mods: &Mods<'_>) -> Decoded<TextureKind> {
        let outside = mods.words.iter().find_map(|w| {
            Some(match *w {
                "trap" => Outside::Trap,
                "clamp" => Outside::Clamp,
                "zero" => Outside::Zero,
                _ => return None,
            })
        });
        match (mods.ty(), mods.has("b"), outside) {
            (Some(ty @ (Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64)), true, Some(outside)) => {
                Ok(TextureKind::Surface {
                    bytes: ty.bytes() as u8,
                    outside,
                })
            }
            _ => unsupported("formatted stores to surfaces"),
        }
    }

    fn texture_query(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let dimension = match mods
            .words
            .iter()
            .find(|w| matches!(**w, "width" | "height" | "depth" | "array_size"))
        {
            Some(&"width") => 0,
            Some(&"height") => 1,
            Some(_) => 2,
            None => return unsupported(""),
        };
        let d = self.target(self.operand(i, 0)?)?.slot;
        let Operand::Address(address) = self.operand(i, 1)? else {
            return unsupported("");
        };
        let Some(name) = address.base else {
            return unsupported("");
        };
        let object = self.source(&Operand::Name(name), Ty::B64)?;
        self.emit(Op::Texture(Box::new(TextureOp {
            kind: TextureKind::Extent(dimension),
            geometry: Geometry::One,
            object,
            at: Box::default(),
            store: false,
            values: Box::new([d]),
        })));
        Ok(())
    }
}
