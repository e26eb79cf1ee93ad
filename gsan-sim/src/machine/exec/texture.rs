//! Reads of textures, reads and writes of surfaces.

use super::{Exec, Failed, Halt, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{Geometry, Outside, Space, TextureKind, TextureOp};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;
use crate::machine::texture::{Image, Texture};
use std::sync::Arc;

/// Column, row, slice or layer: a coordinate list begins with the layer.
fn order<T: Copy + Default>(geometry: Geometry, at: &[T]) -> [T; 3] {
    let get = |i: usize| at.get(i).copied().unwrap_or_default();
    match geometry {
        Geometry::LayersOfOne => [get(1), T::default(), get(0)],
        Geometry::LayersOfTwo => [get(1), get(2), get(0)],
        _ => [get(0), get(1), get(2)],
    }
}

impl Exec<'_> {
    pub(super) fn texture(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &TextureOp,
    ) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let objects = *self.row(warp, frame, op.object);
        let at: Vec<_> = op.at.iter().map(|&s| *self.row(warp, frame, s)).collect();
        let count = op.values.len();
        let mut out = vec![[0u64; 32]; count];
        if op.store {
            for (row, &s) in out.iter_mut().zip(&op.values) {
                *row = *self.row(warp, frame, s);
            }
        }
        lanes!(mask, l, {
            let failed = |h: Halt| (h, l as u32);
            let texture = self.object(objects[l]).map_err(failed)?;
            let words: Vec<u32> = at.iter().map(|row| row[l] as u32).collect();
            let values = match op.kind {
                TextureKind::Extent(n) => vec![texture.image.extents[n]],
                TextureKind::Surface { .. } => {
                    let values: Vec<u64> = out.iter().map(|row| row[l]).collect();
                    self.surface(warp, op, &texture.image, &words, l, values)
                        .map_err(failed)?
                }
                _ => self.texels(warp, op, &texture, &words, l).map_err(failed)?,
            };
            for (row, value) in out.iter_mut().zip(values) {
                row[l] = value;
            }
        });
        if !op.store {
            for (row, &d) in out.iter().zip(&op.values) {
                write(warp, frame, d, row, mask);
            }
        }
        Ok(())
    }

    fn object(&self, handle: u64) -> Result<Arc<Texture>, Halt> {
        let found = self.memory.textures.get(&handle).cloned();
        found.ok_or_else(|| Halt::illegal(format!("{handle:#x} is no texture or surface object")))
    }

    fn texels(
        &mut self,
        warp: &Warp,
        op: &TextureOp,
        texture: &Texture,
        words: &[u32],
        l: usize,
    ) -> Result<Vec<u64>, Halt> {
        let point = || {
            // A layer's number is an integer in any case.
            let layered = matches!(op.geometry, Geometry::LayersOfOne | Geometry::LayersOfTwo);
            let floats: Vec<f64> = words
                .iter()
                .enumerate()
                .map(|(i, &w)| match (layered, i) {
                    (true, 0) => f64::from(w as i32),
                    _ => f64::from(f32::from_bits(w)),
                })
                .collect();
            order(op.geometry, &floats)
        };
        let mix = match op.kind {
            TextureKind::Gather(channel) => {
                let mut out = Vec::new();
                for texel in texture.gather(point()) {
                    let bits = self.texel(warp, texture, texel, channel, l)?;
                    out.push(u64::from(texture.channel(&[(bits, 1.0)], channel)));
                }
                return Ok(out);
            }
            TextureKind::Sample { whole: true } => {
                let places: Vec<i64> = words.iter().map(|&w| i64::from(w as i32)).collect();
                texture.fetch(order(op.geometry, &places))
            }
            _ if texture.linear && texture.is_integer() => {
                return Err(Halt::illegal("a filtered read of integers has no value"));
            }
            _ => texture.sample(point()),
        };
        let mut out = Vec::new();
        for n in 0..4 {
            let mut values = Vec::with_capacity(mix.len());
            for &(texel, share) in &mix {
                values.push((self.texel(warp, texture, texel, n, l)?, share));
            }
            out.push(u64::from(texture.channel(&values, n)));
        }
        Ok(out)
    }

    /// A channel of a texel, as it lies there (nothing where the texel has no such channel).
    fn texel(
        &mut self,
        warp: &Warp,
        texture: &Texture,
        texel: Option<u64>,
        n: usize,
        l: usize,
    ) -> Result<Option<u64>, Halt> {
        let (channel, Some(address)) = (texture.image.channel, texel) else {
            return Ok(None);
        };
        if n as u64 >= texture.image.channels {
            return Ok(Some(0));
        }
        let address = address.wrapping_add(n as u64 * channel.bytes());
        let bits = self.load_lane(warp, Space::Global, address, channel.bytes() as u8, l)?;
        Ok(Some(bits))
    }

    /// The elements at a place of a surface; `values` are those to store.
    fn surface(
        &mut self,
        warp: &mut Warp,
        op: &TextureOp,
        image: &Image,
        words: &[u32],
        l: usize,
        mut values: Vec<u64>,
    ) -> Result<Vec<u64>, Halt> {
        let TextureKind::Surface { bytes, outside } = op.kind else {
            return Ok(values);
        };
        let each = u64::from(bytes);
        let places: Vec<i64> = words.iter().map(|&w| i64::from(w as i32)).collect();
        let [mut x, mut y, mut z] = order(op.geometry, &places);
        let all = each as i64 * values.len() as i64;
        let [w, h, d] = image.extents;
        let ends = [
            (w * image.texel()) as i64 - all,
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
                Outside::Zero => return Ok(vec![0; values.len()]),
                Outside::Clamp => {
                    x = x.clamp(0, ends[0].max(0));
                    y = y.clamp(0, ends[1]);
                    z = z.clamp(0, ends[2]);
                }
            }
        }
        if x % all != 0 {
            return Err(Halt::fault(
                FaultKind::Misaligned,
                image.address.wrapping_add(x as u64),
            ));
        }
        let start = image.byte(x as u64, y, z);
        for (n, value) in values.iter_mut().enumerate() {
            let address = start.wrapping_add(n as u64 * each);
            if op.store {
                let word = *value & u64::MAX >> (64 - 8 * each);
                self.store_lane(warp, Space::Global, address, bytes, word, l)?;
            } else {
                *value = self.load_lane(warp, Space::Global, address, bytes, l)?;
            }
        }
        Ok(values)
    }
}
