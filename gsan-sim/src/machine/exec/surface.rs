//! Reads, writes and reductions of surfaces.

use super::atomic::apply;
use super::texture::order;
use super::{Exec, Halt};
use crate::machine::ir::{Outside, Space, TextureKind, TextureOp};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;
use crate::machine::texture::Image;
use crate::machine::ty::Ty;

impl Exec<'_> {
    /// The elements at a place; `values` are those to store.
    pub(super) fn surface(
        &mut self,
        warp: &mut Warp,
        op: &TextureOp,
        image: &Image,
        words: &[i64],
        l: usize,
        mut values: Vec<u64>,
    ) -> Result<Vec<u64>, Halt> {
        // Bytes of an element and of all of them, whether columns are texels, and what happens outside.
        let (each, all, texels, outside) = match op.kind {
            TextureKind::Surface { bytes, outside } => {
                let each = u64::from(bytes);
                (each, each * values.len() as u64, false, outside)
            }
            TextureKind::Formatted(outside) => {
                (image.channel.bytes(), image.texel(), true, outside)
            }
            TextureKind::Reduce {
                ty,
                formatted,
                outside,
                ..
            } => {
                let bytes = u64::from(ty.bytes());
                (bytes, bytes, formatted, outside)
            }
            _ => return Ok(values),
        };
        let mut at = order(op.geometry, words);
        if texels {
            at[0] = at[0].saturating_mul(image.texel() as i64);
        }
        let Some(start) = place(image, at, all, outside)? else {
            return Ok(vec![0; values.len()]);
        };
        if let TextureKind::Reduce {
            op, ty, formatted, ..
        } = op.kind
        {
            let ty = match (formatted && image.channel.is_signed(), ty.bytes()) {
                (true, 4) => Ty::S32,
                (true, _) => Ty::S64,
                _ => ty,
            };
            let old = self.load_lane(warp, Space::Global, start, each as u8, l)?;
            let new = apply(op, ty, old, values[0] & ty.mask(), 0);
            self.store_lane(warp, Space::Global, start, each as u8, new, l)?;
            return Ok(values);
        }
        if texels {
            // What the instruction has no register for is zero.
            values.resize(image.channels as usize, 0);
        }
        for (n, value) in values.iter_mut().enumerate() {
            let address = start.wrapping_add(n as u64 * each);
            if op.store {
                let word = match texels {
                    true => image.channel.narrow(*value as u32),
                    false => *value & u64::MAX >> (64 - 8 * each),
                };
                self.store_lane(warp, Space::Global, address, each as u8, word, l)?;
            } else {
                *value = self.load_lane(warp, Space::Global, address, each as u8, l)?;
            }
        }
        Ok(values)
    }
}

/// Where `bytes` bytes lie from a byte of a row on, a row and a slice; nowhere if what is outside is zero.
fn place(
    image: &Image,
    [mut x, mut y, mut z]: [i64; 3],
    bytes: u64,
    outside: Outside,
) -> Result<Option<u64>, Halt> {
    let [w, h, d] = image.extents;
    let ends = [
        (w * image.texel()) as i64 - bytes as i64,
        h.max(1) as i64 - 1,
        d.max(1) as i64 - 1,
    ];
    let inside = |i: i64, end: i64| (0..=end).contains(&i);
    if !(inside(x, ends[0]) && inside(y, ends[1]) && inside(z, ends[2])) {
        match outside {
            Outside::Trap => {
                let detail = format!(
                    "({x}, {y}, {z}) is outside of the surface of {} × {h} × {d} (bytes, rows, slices)",
                    w * image.texel()
                );
                return Err(Halt::of(FaultKind::OutOfBounds, image.address, detail));
            }
            Outside::Zero => return Ok(None),
            Outside::Clamp => {
                x = x.clamp(0, ends[0].max(0));
                y = y.clamp(0, ends[1]);
                z = z.clamp(0, ends[2]);
            }
        }
    }
    if !(x as u64).is_multiple_of(bytes) {
        return Err(Halt::fault(
            FaultKind::Misaligned,
            image.address.wrapping_add(x as u64),
        ));
    }
    Ok(Some(image.byte(x as u64, y, z)))
}
