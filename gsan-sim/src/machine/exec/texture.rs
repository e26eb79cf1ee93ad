//! Reads of textures; surfaces are in `surface`.

use super::{Exec, Failed, Halt, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{DetailOp, Geometry, Space, TextureKind, TextureOp};
use crate::machine::state::Warp;
use crate::machine::texture::{Level, Mix, Point, Texture};
use crate::machine::ty::Row;
use std::sync::Arc;

/// Column, row, slice or layer: a coordinate list begins with the layer.
pub(super) fn order(geometry: Geometry, at: &[i64]) -> [i64; 3] {
    let get = |i: usize| at.get(i).copied().unwrap_or_default();
    match geometry {
        Geometry::LayersOfOne => [get(1), 0, get(0)],
        Geometry::LayersOfTwo => [get(1), get(2), get(0)],
        _ => [get(0), get(1), get(2)],
    }
}

/// The rows of an instruction's operands behind the coordinates.
struct Behind {
    level: Option<Row>,
    steps: [Vec<Row>; 2],
    offset: Vec<Row>,
}

fn float(word: u64) -> f64 {
    f64::from(f32::from_bits(word as u32))
}

fn three<T: Copy + Default>(rows: &[Row], l: usize, value: impl Fn(u64) -> T) -> [T; 3] {
    [0, 1, 2].map(|i| rows.get(i).map_or_else(T::default, |row| value(row[l])))
}

impl Exec<'_> {
    pub(super) fn texture(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &TextureOp,
    ) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let rows = |exec: &Self, list: &[u32]| -> Vec<Row> {
            list.iter().map(|&s| *exec.row(warp, frame, s)).collect()
        };
        let objects = *self.row(warp, frame, op.object);
        let at = rows(self, &op.at);
        let mut behind = Behind {
            level: None,
            steps: Default::default(),
            offset: rows(self, &op.offset),
        };
        match &op.detail {
            DetailOp::Base => {}
            DetailOp::Level(level) => behind.level = Some(*self.row(warp, frame, *level)),
            DetailOp::Steps(steps) => behind.steps = [0, 1].map(|n| rows(self, &steps[n])),
        }
        let count = op.values.len();
        let mut out = match op.store {
            true => rows(self, &op.values),
            false => vec![[0u64; 32]; count],
        };
        lanes!(mask, l, {
            let failed = |h: Halt| (h, l as u32);
            let values = match op.kind {
                TextureKind::Extent(n) => {
                    let level = behind.level.map_or(0, |row| row[l] as u32 as usize);
                    vec![self.extent(n, objects[l], level).map_err(failed)?]
                }
                TextureKind::Sample { .. } | TextureKind::Gather(_) => {
                    let texture = self.object(objects[l]).map_err(failed)?;
                    self.texels(warp, op, &texture, &at, &behind, l)
                        .map_err(failed)?
                }
                _ => {
                    let words: Vec<i64> = at.iter().map(|row| i64::from(row[l] as i32)).collect();
                    let values: Vec<u64> = out.iter().map(|row| row[l]).collect();
                    let texture = self.object(objects[l]).map_err(failed)?;
                    self.surface(warp, op, texture.image(), &words, l, values)
                        .map_err(failed)?
                }
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

    fn extent(&self, n: usize, handle: u64, level: usize) -> Result<u64, Halt> {
        let texture = self.object(handle)?;
        Ok(match texture.levels.get(level) {
            // Faces are no depth.
            Some(image) if n == 2 && image.cube => match image.layered {
                true => image.extents[2] / 6,
                false => 0,
            },
            Some(image) => image.extents[n],
            // A level that there is not has no extent.
            None => 0,
        })
    }

    fn texels(
        &mut self,
        warp: &Warp,
        op: &TextureOp,
        texture: &Texture,
        at: &[Row],
        behind: &Behind,
        l: usize,
    ) -> Result<Vec<u64>, Halt> {
        // A layer's number is an integer in any case.
        let (layer, coordinates) = match op.geometry.is_layered() {
            true => (f64::from(at[0][l] as i32), &at[1..]),
            false => (0.0, at),
        };
        let offset = three(&behind.offset, l, |word| i64::from(word as i32));
        let point = Point {
            at: three(coordinates, l, float),
            layer,
            cube: op.geometry.is_cube(),
            offset,
        };
        if point.cube != texture.image().cube {
            return Err(Halt::illegal(
                "a cube is read by directions, and nothing else is",
            ));
        }
        let mix = match op.kind {
            TextureKind::Gather(channel) => {
                let mut out = Vec::new();
                for mix in texture.gather(&point) {
                    out.push(self.mixed(warp, texture, &mix, channel, l)?);
                }
                return Ok(out);
            }
            TextureKind::Sample { whole: true } => {
                let words: Vec<i64> = at.iter().map(|row| i64::from(row[l] as i32)).collect();
                let [x, y, z] = order(op.geometry, &words);
                let level = behind.level.map_or(0, |row| i64::from(row[l] as i32));
                let at = [x + offset[0], y + offset[1], z + offset[2]];
                match texture.fetch(at, level) {
                    Some(mix) => mix,
                    None => return Ok(vec![0; 4]),
                }
            }
            _ => {
                let level = match (&op.detail, behind.level) {
                    (DetailOp::Steps(_), _) if texture.anisotropic => {
                        return Err(Halt::Unsupported("anisotropic filtering".to_string()));
                    }
                    (DetailOp::Steps(_), _) => {
                        Level::Steps([0, 1].map(|n| three(&behind.steps[n], l, float)))
                    }
                    (_, Some(row)) => Level::Given(float(row[l])),
                    _ => Level::Base,
                };
                texture.sample(&point, level)
            }
        };
        let mut out = Vec::new();
        for n in 0..4 {
            out.push(self.mixed(warp, texture, &mix, n, l)?);
        }
        Ok(out)
    }

    /// A channel of a mix of texels.
    fn mixed(
        &mut self,
        warp: &Warp,
        texture: &Texture,
        mix: &Mix,
        n: usize,
        l: usize,
    ) -> Result<u64, Halt> {
        let mut values = Vec::with_capacity(mix.len());
        for &(texel, weight) in mix {
            values.push((self.texel(warp, texture, texel, n, l)?, weight));
        }
        Ok(texture.channel(&values, n).into())
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
        let (image, Some(address)) = (texture.image(), texel) else {
            return Ok(None);
        };
        if n as u64 >= image.channels {
            return Ok(Some(0));
        }
        let bytes = image.channel.bytes();
        let address = address.wrapping_add(n as u64 * bytes);
        let bits = self.load_lane(warp, Space::Global, address, bytes as u8, l)?;
        Ok(Some(bits))
    }
}
