//! `tex`, `tld4`, `suld`, `sust`, `sured`, `txq`, `suq`, `istypep` by object.

use gsan_ptx::ast::{Instruction, Operand};

use super::function::{Decoded, Decoder};
use super::operand::unsupported;
use crate::machine::alu::Mods;
use crate::machine::ir::{AtomicOp, DetailOp, Geometry, Op, Outside, Src, TextureKind, TextureOp};
use crate::machine::ty::Ty;

impl<'a> Decoder<'_, 'a> {
    /// Decodes an instruction on a texture or a surface.
    pub(super) fn texture(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        match i.opcode {
            "txq" | "suq" => return self.texture_query(i, mods),
            "istypep" => return self.texture_type(i),
            _ => {}
        }
        let store = matches!(i.opcode, "sust" | "sured");
        let (list, place) = if store { (1, 0) } else { (0, 1) };
        let Operand::Tensor(parts) = self.operand(i, place)? else {
            return unsupported("");
        };
        let [object, coordinates] = &parts[..] else {
            return unsupported("a texture with a sampler of its own");
        };
        let Some(geometry) = geometry(mods) else {
            return unsupported("textures of several samples");
        };
        let kind = match i.opcode {
            "suld" | "sust" => surface(mods, store)?,
            "sured" => reduction(mods)?,
            _ => reading(i, mods)?,
        };
        if matches!(
            kind,
            TextureKind::Surface { .. } | TextureKind::Formatted(_) | TextureKind::Reduce { .. }
        ) && geometry.is_cube()
        {
            return unsupported("");
        }
        let object = self.source(object, Ty::B64)?;
        let at = self.sources(coordinates, Ty::B32)?;
        if at.len() < geometry.words() {
            return unsupported("number of coordinates");
        }
        let at: Box<[Src]> = at[..geometry.words()].into();
        let ty = match kind {
            TextureKind::Surface { bytes: 8, .. } => Ty::B64,
            TextureKind::Reduce { ty, .. } => ty,
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
            TextureKind::Reduce { .. } => 1,
            TextureKind::Surface { .. } | TextureKind::Formatted(_) if mods.has("v2") => 2,
            TextureKind::Surface { .. } | TextureKind::Formatted(_) if !mods.has("v4") => 1,
            _ => 4,
        };
        if values.len() != elements {
            return unsupported("number of registers");
        }
        let (detail, offset) = match store {
            true => (DetailOp::Base, Box::default()),
            false => self.detail(i, mods, geometry)?,
        };
        self.emit(Op::Texture(Box::new(TextureOp {
            kind,
            geometry,
            object,
            at,
            detail,
            offset,
            store,
            values,
        })));
        Ok(())
    }

    /// What stands behind the coordinates: the level of detail, and how many texels further on.
    fn detail(
        &mut self,
        i: &Instruction<'a>,
        mods: &Mods<'_>,
        geometry: Geometry,
    ) -> Decoded<(DetailOp, Box<[Src]>)> {
        let (detail, next) = if mods.has("level") {
            let level = self.source(self.operand(i, 2)?, Ty::B32)?;
            (DetailOp::Level(level), 3)
        } else if mods.has("grad") {
            // An H200's driver calls a function of its own, which no formula here comes near.
            if geometry.is_cube() {
                return unsupported("derivatives of a direction");
            }
            let wanted = geometry.words() - usize::from(geometry.is_layered());
            let mut steps = [Box::default(), Box::default()];
            for (n, step) in steps.iter_mut().enumerate() {
                let words = self.sources(self.operand(i, 2 + n)?, Ty::B32)?;
                if words.len() < wanted {
                    return unsupported("number of derivatives");
                }
                *step = words[..wanted].into();
            }
            (DetailOp::Steps(steps), 4)
        } else {
            (DetailOp::Base, 2)
        };
        let offset: Box<[Src]> = match &i.operands[next.min(i.operands.len())..] {
            [] => Box::default(),
            [offset] if !geometry.is_cube() => {
                let offset = self.sources(offset, Ty::B32)?;
                let wanted = geometry.words() - usize::from(geometry.is_layered());
                // One word alone may as well be the depth.
                if offset.len() < wanted || offset.len() == 1 && wanted > 1 {
                    return unsupported("a depth to compare with");
                }
                offset[..wanted].into()
            }
            _ => return unsupported("a depth to compare with"),
        };
        Ok((detail, offset))
    }

    fn texture_query(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        // An H200's driver refuses to compile the other questions.
        let dimension = mods.words.iter().find_map(|w| {
            Some(match *w {
                "width" => 0,
                "height" => 1,
                "depth" => 2,
                _ => return None,
            })
        });
        let Some(dimension) = dimension else {
            return unsupported("this question about a texture or surface");
        };
        let d = self.target(self.operand(i, 0)?)?.slot;
        let Operand::Address(address) = self.operand(i, 1)? else {
            return unsupported("");
        };
        let Some(name) = address.base else {
            return unsupported("");
        };
        let object = self.source(&Operand::Name(name), Ty::B64)?;
        let detail = match mods.has("level") {
            true => DetailOp::Level(self.source(self.operand(i, 2)?, Ty::B32)?),
            false => DetailOp::Base,
        };
        self.emit(Op::Texture(Box::new(TextureOp {
            kind: TextureKind::Extent(dimension),
            geometry: Geometry::One,
            object,
            at: Box::default(),
            detail,
            offset: Box::default(),
            store: false,
            values: Box::new([d]),
        })));
        Ok(())
    }

    /// `istypep`: handles of objects are no addresses of variables, says an H200.
    fn texture_type(&mut self, i: &Instruction<'a>) -> Decoded<()> {
        let d = self.predicate_target(self.operand(i, 0)?)?;
        let a = self.constant(0);
        self.emit(Op::Test { a, d });
        Ok(())
    }
}

fn geometry(mods: &Mods<'_>) -> Option<Geometry> {
    mods.words.iter().find_map(|w| {
        Some(match *w {
            "1d" => Geometry::One,
            "2d" => Geometry::Two,
            "3d" => Geometry::Three,
            "a1d" => Geometry::LayersOfOne,
            "a2d" => Geometry::LayersOfTwo,
            "cube" => Geometry::Cube,
            "acube" => Geometry::LayersOfCube,
            _ => return None,
        })
    })
}

/// `tex` and `tld4`.
fn reading(i: &Instruction<'_>, mods: &Mods<'_>) -> Decoded<TextureKind> {
    let [result, coordinate] = mods.types[..] else {
        return unsupported("");
    };
    if !mods.has("v4")
        || !matches!(result, Ty::F32 | Ty::S32 | Ty::U32)
        || !matches!(coordinate, Ty::F32 | Ty::S32)
    {
        return unsupported("");
    }
    if i.opcode == "tld4" {
        let channel = ["r", "g", "b", "a"].iter().position(|w| mods.has(w));
        return Ok(TextureKind::Gather(channel.unwrap_or(0)));
    }
    Ok(TextureKind::Sample {
        whole: coordinate == Ty::S32,
    })
}

fn outside(mods: &Mods<'_>) -> Option<Outside> {
    mods.words.iter().find_map(|w| {
        Some(match *w {
            "trap" => Outside::Trap,
            "clamp" => Outside::Clamp,
            "zero" => Outside::Zero,
            _ => return None,
        })
    })
}

/// `suld.b`, `sust.b`, `sust.p`.
fn surface(mods: &Mods<'_>, store: bool) -> Decoded<TextureKind> {
    match (mods.ty(), outside(mods)) {
        (Some(Ty::B32), Some(outside)) if store && mods.has("p") => {
            Ok(TextureKind::Formatted(outside))
        }
        (Some(ty @ (Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64)), Some(outside)) if mods.has("b") => {
            Ok(TextureKind::Surface {
                bytes: ty.bytes() as u8,
                outside,
            })
        }
        _ => unsupported("formatted accesses to surfaces"),
    }
}

/// `sured`.
fn reduction(mods: &Mods<'_>) -> Decoded<TextureKind> {
    let op = mods.words.iter().find_map(|w| {
        Some(match *w {
            "add" => AtomicOp::Add,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            _ => return None,
        })
    });
    let formatted = mods.has("p");
    match (op, mods.ty(), outside(mods)) {
        (
            Some(op),
            Some(ty @ (Ty::U32 | Ty::S32 | Ty::B32 | Ty::U64 | Ty::S64 | Ty::B64)),
            Some(outside),
        ) if formatted || mods.has("b") => Ok(TextureKind::Reduce {
            op,
            ty,
            formatted,
            outside,
        }),
        _ => unsupported(""),
    }
}
