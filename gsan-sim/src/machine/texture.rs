//! Textures and surfaces: images in memory, and what a kernel reads of them.
//!
//! As the CUDA programming guide has it: a point's texel is the floor of its coordinate, a filtered one is mixed from its
//! neighbours with weights of eight bits. `cuda-lazy/tests/images.rs` compares with what an H200 finds.

mod channel;
mod cube;
mod detail;
mod mix;

pub use channel::Channel;
pub use detail::Detail;

/// What a coordinate outside becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Edge {
    Wrap,
    Clamp,
    Mirror,
    Border,
}

/// An image: how many texels there are in each direction, and where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// First texel.
    pub address: u64,
    /// Texels in a row, rows, slices or layers (0 where there is no such dimension).
    pub extents: [u64; 3],
    /// Whether the last extent counts layers.
    pub layered: bool,
    /// Whether it counts a cube's faces, six for each layer.
    pub cube: bool,
    /// Bytes from row to row and from slice to slice.
    pub pitch: u64,
    /// The same.
    pub slice: u64,
    /// Of a texel.
    pub channel: Channel,
    /// 1, 2 or 4.
    pub channels: u64,
}

impl Image {
    /// Bytes of a texel.
    pub fn texel(&self) -> u64 {
        self.channel.bytes() * self.channels
    }

    /// Where a texel lies, if it is there.
    pub fn at(&self, [x, y, z]: [i64; 3]) -> Option<u64> {
        let inside = |i: i64, n: u64| (0..n.max(1) as i64).contains(&i);
        let [w, h, d] = self.extents;
        (inside(x, w) && inside(y, h) && inside(z, d))
            .then(|| self.byte(x as u64 * self.texel(), y, z))
    }

    /// How many dimensions have coordinates of their own.
    pub fn dimensions(&self) -> usize {
        let [_, h, d] = self.extents;
        match (h, d) {
            (0, _) => 1,
            (_, 0) => 2,
            _ if self.layered || self.cube => 2,
            _ => 3,
        }
    }

    /// Where a byte of a row lies.
    pub fn byte(&self, x: u64, y: i64, z: i64) -> u64 {
        self.address
            .wrapping_add(x)
            .wrapping_add((y as u64).wrapping_mul(self.pitch))
            .wrapping_add((z as u64).wrapping_mul(self.slice))
    }
}

/// An image, or a mipmap of several, and how it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Texture {
    /// What is read, the largest first: at least one.
    pub levels: Vec<Image>,
    /// Which of them.
    pub detail: Detail,
    /// Of each dimension.
    pub edges: [Edge; 3],
    /// Neighbours are mixed.
    pub linear: bool,
    /// A cube's faces are mixed where they meet.
    pub seamless: bool,
    /// Coordinates go from 0 to 1.
    pub normalized: bool,
    /// Narrow integers are read as such, not as fractions.
    pub integers: bool,
    /// Bytes are sRGB.
    pub srgb: bool,
    /// More than one sample along the longer step is asked for.
    pub anisotropic: bool,
    /// What lies outside.
    pub border: [f32; 4],
    /// It is linear memory, or may be written: no coordinates but whole numbers.
    pub plain: bool,
}

/// Which texels make up a result, and their weights, of 256: nowhere is the border.
pub type Mix = Vec<(Option<u64>, u32)>;

/// Where a read is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// Coordinates, or a direction.
    pub at: [f64; 3],
    /// Of layers.
    pub layer: f64,
    /// It is a direction.
    pub cube: bool,
    /// Texels further on.
    pub offset: [i64; 3],
}

/// The level of detail of a read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Level {
    /// That of no derivative.
    Base,
    /// As the instruction says.
    Given(f64),
    /// How the coordinates change from one point to two others.
    Steps([[f64; 3]; 2]),
}

impl Texture {
    /// The largest image.
    pub fn image(&self) -> &Image {
        &self.levels[0]
    }

    /// The texel of a read at whole coordinates of a level; nothing where there is no such level.
    pub fn fetch(&self, at: [i64; 3], level: i64) -> Option<Mix> {
        let image = self.levels.get(usize::try_from(level).ok()?)?;
        if self.plain {
            return Some(vec![(image.at(at), mix::WHOLE)]);
        }
        let mut place = [0; 3];
        for (i, p) in place.iter_mut().enumerate() {
            match self.wrap(image, at[i], i) {
                Some(x) => *p = x,
                None => return Some(vec![(None, mix::WHOLE)]),
            }
        }
        Some(vec![(image.at(place), mix::WHOLE)])
    }

    /// The texels of a read at a point.
    pub fn sample(&self, point: &Point, level: Level) -> Mix {
        let level = match level {
            Level::Base => None,
            Level::Given(level) => Some(level),
            Level::Steps(steps) => Some(detail::of_steps(steps.map(|step| self.in_texels(step)))),
        };
        let mut out = Vec::new();
        for (n, share) in self.detail.levels(level, self.levels.len()) {
            if share > 0 {
                self.of_image(&self.levels[n], point, share, &mut out);
            }
        }
        out
    }

    /// A step in texels of the largest image.
    fn in_texels(&self, step: [f64; 3]) -> [f64; 3] {
        let image = self.image();
        let dimensions = image.dimensions();
        [0, 1, 2].map(|i| match i < dimensions {
            true if self.normalized => step[i] * image.extents[i].max(1) as f64,
            true => step[i],
            false => 0.0,
        })
    }

    /// The texels of one level, whose weights sum up to `whole`.
    fn of_image(&self, image: &Image, point: &Point, whole: u32, out: &mut Mix) {
        let (face, scaled) = self.scaled(image, point);
        if !self.linear {
            let texel = [0, 1, 2].map(|i| floor(scaled[i]) + point.offset[i]);
            out.push((self.texel(image, point, face, texel), whole));
            return;
        }
        // Corners of the cell between texels' centres.
        let dimensions = image.dimensions();
        let cell = scaled.map(mix::neighbours);
        let shares = cell.map(|(_, share)| share);
        let mut weights = mix::weights(whole, &shares[..dimensions]);
        let place = |corner: usize| {
            [0, 1, 2].map(|i| cell[i].0 + (corner >> i & 1) as i64 + point.offset[i])
        };
        if self.seamless && point.cube {
            self.close_corner(image, face, &mut weights, place);
        }
        for (corner, weight) in weights.into_iter().enumerate() {
            out.push((self.texel(image, point, face, place(corner)), weight));
        }
    }

    /// Where three faces meet there is no fourth texel: the others share its weight.
    fn close_corner(
        &self,
        image: &Image,
        face: usize,
        weights: &mut [u32],
        place: impl Fn(usize) -> [i64; 3],
    ) {
        let n = image.extents[0] as i64;
        let missing = (0..weights.len()).find(|&corner| {
            let [x, y, _] = place(corner);
            cube::neighbour(face, [x, y], n).is_none()
        });
        if let Some(missing) = missing {
            let weight = std::mem::take(&mut weights[missing]);
            for (corner, w) in weights.iter_mut().enumerate() {
                *w += match corner ^ missing {
                    0 => 0,
                    // The face's own one is across.
                    3 => weight - 2 * (weight / 3),
                    _ => weight / 3,
                };
            }
        }
    }

    /// The four texels around a point, in `tld4`'s order. Where three faces meet the fourth is a mix of the others.
    pub fn gather(&self, point: &Point) -> [Mix; 4] {
        let image = self.image();
        let (face, scaled) = self.scaled(image, point);
        let base = [0, 1].map(|i| floor(scaled[i] - 0.5) + point.offset[i]);
        let place = |corner: usize| [0, 1].map(|i| base[i] + (corner >> i & 1) as i64);
        let texel = |corner: usize| {
            let [x, y] = place(corner);
            self.texel(image, point, face, [x, y, 0])
        };
        let n = image.extents[0] as i64;
        let is_there = |corner: usize| {
            !self.seamless || !point.cube || cube::neighbour(face, place(corner), n).is_some()
        };
        [2, 3, 1, 0].map(|corner: usize| match is_there(corner) {
            true => vec![(texel(corner), mix::WHOLE)],
            false => [(3, 86), (1, 85), (2, 85)]
                .map(|(other, weight)| (texel(corner ^ other), weight))
                .into(),
        })
    }

    /// A mix of values of a channel, as a register has it. Texels come as the bits that lie there.
    pub fn channel(&self, mix: &[(Option<u64>, u32)], n: usize) -> u32 {
        let (channel, integer) = (self.image().channel, self.is_integer());
        let is_light = self.srgb && n < 3 && channel == Channel::U8 && !integer;
        let one = |texel: &Option<u64>| match texel {
            // What a texel has no channel for is zero, in the border too.
            _ if n as u64 >= self.image().channels => 0,
            None if integer => self.border[n] as i64 as u32,
            None => channel.border(self.border[n]).to_bits(),
            Some(bits) => {
                let value = channel.widen(*bits, !self.integers);
                match is_light {
                    true => mix::light(f32::from_bits(value)).to_bits(),
                    false => value,
                }
            }
        };
        if let [(texel, _)] = mix {
            return one(texel);
        }
        let values = mix.iter().map(|(texel, weight)| (one(texel), *weight));
        if integer {
            let signed = channel.is_signed();
            let wide = |x: u32| {
                if signed {
                    i64::from(x as i32)
                } else {
                    x.into()
                }
            };
            return mix::integer(channel, values.map(|(x, weight)| (wide(x), weight)));
        }
        let values = values.map(|(x, weight)| (f32::from_bits(x), weight));
        mix::float(channel, is_light, values).to_bits()
    }

    /// Whether a read gives integers.
    pub fn is_integer(&self) -> bool {
        match self.image().channel {
            Channel::F16 | Channel::F32 => false,
            Channel::U32 | Channel::S32 => true,
            _ => self.integers,
        }
    }

    /// A face, and coordinates in texels.
    fn scaled(&self, image: &Image, point: &Point) -> (usize, [f64; 3]) {
        if point.cube {
            let spot = cube::spot(point.at);
            let [s, t] = [0, 1].map(|i| spot.place[i] * image.extents[i].max(1) as f64);
            return (spot.face, [s, t, 0.0]);
        }
        let scaled = |i: usize| self.scale(image, point.at[i], i);
        let dimensions = image.dimensions();
        (
            0,
            [0, 1, 2].map(|i| if i < dimensions { scaled(i) } else { 0.0 }),
        )
    }

    fn scale(&self, image: &Image, x: f64, i: usize) -> f64 {
        if !self.normalized {
            return x;
        }
        let n = image.extents[i].max(1) as f64;
        match self.edges[i] {
            Edge::Wrap => (x - x.floor()) * n,
            Edge::Mirror if x.floor() % 2.0 == 0.0 => (x - x.floor()) * n,
            Edge::Mirror => (1.0 - (x - x.floor())) * n,
            _ => x * n,
        }
    }

    fn wrap(&self, image: &Image, x: i64, i: usize) -> Option<i64> {
        let n = image.extents[i].max(1) as i64;
        match self.edges[i] {
            Edge::Border => (0..n).contains(&x).then_some(x),
            Edge::Wrap if self.normalized => Some(x.rem_euclid(n)),
            _ => Some(x.clamp(0, n - 1)),
        }
    }

    /// Where a texel lies, in the layer or face that the point says.
    fn texel(&self, image: &Image, point: &Point, face: usize, at: [i64; 3]) -> Option<u64> {
        let faces = if point.cube { 6 } else { 1 };
        let last = (image.extents[2].max(1) / faces).max(1) as i64 - 1;
        let layer = floor(point.layer).clamp(0, last);
        if point.cube {
            let (face, [x, y]) = self.on_faces(image, face, [at[0], at[1]]);
            return image.at([x, y, 6 * layer + face as i64]);
        }
        let mut place = [0; 3];
        for i in 0..image.dimensions() {
            place[i] = self.wrap(image, at[i], i)?;
        }
        if image.layered {
            place[2] = layer;
        }
        image.at(place)
    }

    /// A texel of a cube that may lie beyond its face.
    fn on_faces(&self, image: &Image, face: usize, at: [i64; 2]) -> (usize, [i64; 2]) {
        let n = image.extents[0] as i64;
        let clamped = || (face, at.map(|x| x.clamp(0, n - 1)));
        match self.seamless {
            true => cube::neighbour(face, at, n).unwrap_or_else(clamped),
            false => clamped(),
        }
    }
}

/// The next whole number below; nonsense is far outside.
fn floor(x: f64) -> i64 {
    if x.is_nan() {
        0
    } else {
        x.floor().clamp(-1e9, 1e9) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texture() -> Texture {
        Texture {
            levels: vec![Image {
                address: 0x1000,
                extents: [4, 2, 0],
                layered: false,
                cube: false,
                pitch: 64,
                slice: 128,
                channel: Channel::F32,
                channels: 1,
            }],
            detail: Detail::NONE,
            seamless: false,
            srgb: false,
            anisotropic: false,
            edges: [Edge::Clamp; 3],
            linear: false,
            normalized: false,
            integers: false,
            border: [9.0; 4],
            plain: false,
        }
    }

    fn sample(t: &Texture, at: [f64; 3]) -> Mix {
        let point = Point {
            at,
            ..Point::default()
        };
        t.sample(&point, Level::Base)
    }

    #[test]
    fn points_are_texels_floors() {
        let mut t = texture();
        assert_eq!(sample(&t, [1.9, 1.2, 0.0]), [(Some(0x1000 + 4 + 64), 256)]);
        assert_eq!(sample(&t, [-3.0, 7.0, 0.0]), [(Some(0x1000 + 64), 256)]);
        t.edges = [Edge::Border; 3];
        assert_eq!(sample(&t, [-3.0, 0.0, 0.0]), [(None, 256)]);
        assert_eq!(f32::from_bits(t.channel(&[(None, 256)], 0)), 9.0);
        t.edges = [Edge::Wrap; 3];
        t.normalized = true;
        assert_eq!(sample(&t, [1.3, 0.0, 0.0]), [(Some(0x1000 + 4), 256)]);
        t.edges = [Edge::Mirror; 3];
        assert_eq!(sample(&t, [1.3, 0.0, 0.0]), [(Some(0x1000 + 8), 256)]);
    }

    #[test]
    fn filters_mix_neighbours() {
        let mut t = texture();
        t.linear = true;
        let mix = sample(&t, [1.75, 0.5, 0.0]);
        let shares: Vec<u32> = mix.iter().map(|m| m.1).collect();
        assert_eq!(shares, [192, 64, 0, 0]);
        assert_eq!(mix[1].0, Some(0x1008));
        let values: Mix = mix
            .iter()
            .zip([2f32, 6.0, 0.0, 0.0])
            .map(|(m, x)| (Some(u64::from(x.to_bits())), m.1))
            .collect();
        assert_eq!(f32::from_bits(t.channel(&values, 0)), 3.0);
    }

    #[test]
    fn narrow_integers_are_fractions_or_themselves() {
        let fraction = |c: Channel, bits| f32::from_bits(c.widen(bits, true));
        assert_eq!(fraction(Channel::U8, 255), 1.0);
        assert_eq!(fraction(Channel::S8, 0x80), -1.0);
        assert_eq!(Channel::S8.widen(0x80, false) as i32, -128);
        assert_eq!(fraction(Channel::F16, 0x3c00), 1.0);
        assert_eq!(Channel::F32.widen(7, true), 7);
    }
}
