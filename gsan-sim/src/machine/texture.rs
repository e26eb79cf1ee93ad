//! Textures and surfaces: images in memory, and what a kernel reads of them.
//!
//! As the CUDA programming guide has it: a point's texel is the floor of its coordinate, a filtered one is mixed from its
//! neighbours with weights of eight bits. Cube maps, mipmaps and sRGB are not there; a level of detail changes nothing.

use super::alu::round::F16;

/// Elements of a texel's channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl Channel {
    /// By `CUarray_format`.
    pub fn of_driver(number: u32) -> Option<Channel> {
        Some(match number {
            1 => Channel::U8,
            2 => Channel::U16,
            3 => Channel::U32,
            8 => Channel::S8,
            9 => Channel::S16,
            10 => Channel::S32,
            0x10 => Channel::F16,
            0x20 => Channel::F32,
            _ => return None,
        })
    }

    /// Bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Channel::U8 | Channel::S8 => 1,
            Channel::U16 | Channel::S16 | Channel::F16 => 2,
            _ => 4,
        }
    }

    /// Its bits as a register has them; `normalized`: 8 and 16 bits stand for 0 to 1, or −1 to 1.
    fn widen(self, bits: u64, normalized: bool) -> u32 {
        let bits = bits as u32;
        let float = |x: f32| if normalized { Some(x.to_bits()) } else { None };
        let scaled = |n: i16, most: f32| float((f32::from(n) / most).max(-1.0));
        match self {
            Channel::U8 => float(bits as f32 / 255.0).unwrap_or(bits),
            Channel::U16 => float(bits as f32 / 65535.0).unwrap_or(bits),
            Channel::S8 => scaled(i16::from(bits as i8), 127.0).unwrap_or(bits as i8 as u32),
            Channel::S16 => scaled(bits as i16, 32767.0).unwrap_or(bits as i16 as u32),
            Channel::F16 => (F16.decode(bits & 0xffff) as f32).to_bits(),
            Channel::U32 | Channel::S32 | Channel::F32 => bits,
        }
    }
}

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

    /// Where a byte of a row lies.
    pub fn byte(&self, x: u64, y: i64, z: i64) -> u64 {
        self.address
            .wrapping_add(x)
            .wrapping_add((y as u64).wrapping_mul(self.pitch))
            .wrapping_add((z as u64).wrapping_mul(self.slice))
    }
}

/// An image and how it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Texture {
    /// What is read.
    pub image: Image,
    /// Of each dimension.
    pub edges: [Edge; 3],
    /// Neighbours are mixed.
    pub linear: bool,
    /// Coordinates go from 0 to 1.
    pub normalized: bool,
    /// Narrow integers are read as such, not as fractions.
    pub integers: bool,
    /// What lies outside.
    pub border: [f32; 4],
    /// It is linear memory, or may be written: no coordinates but whole numbers.
    pub plain: bool,
}

/// Which texels make up a result, and their weights: nowhere is the border.
pub type Mix = Vec<(Option<u64>, f64)>;

impl Texture {
    /// The texels of a read at whole coordinates.
    pub fn fetch(&self, at: [i64; 3]) -> Mix {
        if self.plain {
            return vec![(self.image.at(at), 1.0)];
        }
        let mut place = [0; 3];
        for (i, p) in place.iter_mut().enumerate() {
            match self.wrap(at[i], i) {
                Some(x) => *p = x,
                None => return vec![(None, 1.0)],
            }
        }
        vec![(self.image.at(place), 1.0)]
    }

    /// The texels of a read at a point. With layers, the last coordinate is one's number.
    pub fn sample(&self, at: [f64; 3]) -> Mix {
        let dimensions = self.dimensions();
        let scaled: Vec<f64> = (0..dimensions).map(|i| self.scale(at[i], i)).collect();
        let layer = self.layer(at[2]);
        let mut out = Vec::new();
        if !self.linear {
            let place = |i: usize| scaled.get(i).map_or(0, |x| floor(*x));
            return vec![(self.place([place(0), place(1), place(2)], layer), 1.0)];
        }
        // Corners of the cell between texels' centres, and weights of eight bits behind the point.
        let base: Vec<i64> = scaled.iter().map(|x| floor(x - 0.5)).collect();
        let weight: Vec<f64> = scaled
            .iter()
            .zip(&base)
            .map(|(x, b)| ((x - 0.5 - *b as f64) * 256.0).round_ties_even() / 256.0)
            .collect();
        for corner in 0..1usize << dimensions {
            let mut place = [0; 3];
            let mut share = 1.0;
            for i in 0..dimensions {
                let upper = corner >> i & 1 == 1;
                place[i] = base[i] + i64::from(upper);
                share *= if upper { weight[i] } else { 1.0 - weight[i] };
            }
            out.push((self.place(place, layer), share));
        }
        out
    }

    /// The four texels around a point, in `tld4`'s order.
    pub fn gather(&self, at: [f64; 3]) -> [Option<u64>; 4] {
        let base = [0, 1].map(|i| floor(self.scale(at[i], i) - 0.5));
        let layer = self.layer(at[2]);
        [[0, 1], [1, 1], [1, 0], [0, 0]]
            .map(|[x, y]| self.place([base[0] + x, base[1] + y, 0], layer))
    }

    /// A mix of values of a channel, as a register has it. Texels come as the bits that lie there.
    pub fn channel(&self, mix: &[(Option<u64>, f64)], n: usize) -> u32 {
        let channel = self.image.channel;
        let one = |texel: &Option<u64>| match texel {
            None if self.is_integer() => self.border[n] as i64 as u32,
            None => self.border[n].to_bits(),
            // What a texel has no channel for: zero, and one for the last.
            Some(_) if n as u64 >= self.image.channels => match (n, self.is_integer()) {
                (3, true) => 1,
                (3, false) => 1f32.to_bits(),
                _ => 0,
            },
            Some(bits) => channel.widen(*bits, !self.integers),
        };
        match mix {
            [(texel, _)] => one(texel),
            _ => {
                let sum: f64 = mix
                    .iter()
                    .map(|(texel, share)| f64::from(f32::from_bits(one(texel))) * share)
                    .sum();
                (sum as f32).to_bits()
            }
        }
    }

    /// Whether a read gives integers.
    pub fn is_integer(&self) -> bool {
        match self.image.channel {
            Channel::F16 | Channel::F32 => false,
            Channel::U32 | Channel::S32 => true,
            _ => self.integers,
        }
    }

    /// Dimensions that have coordinates.
    pub fn dimensions(&self) -> usize {
        let [_, h, d] = self.image.extents;
        match (h, d) {
            (0, _) => 1,
            (_, 0) => 2,
            _ if self.image.layered => 2,
            _ => 3,
        }
    }

    fn layer(&self, at: f64) -> Option<i64> {
        let last = self.image.extents[2].max(1) as i64 - 1;
        self.image.layered.then(|| floor(at).clamp(0, last))
    }

    fn scale(&self, x: f64, i: usize) -> f64 {
        if !self.normalized {
            return x;
        }
        let n = self.image.extents[i].max(1) as f64;
        match self.edges[i] {
            Edge::Wrap => (x - x.floor()) * n,
            Edge::Mirror if x.floor() % 2.0 == 0.0 => (x - x.floor()) * n,
            Edge::Mirror => (1.0 - (x - x.floor())) * n,
            _ => x * n,
        }
    }

    fn wrap(&self, x: i64, i: usize) -> Option<i64> {
        let n = self.image.extents[i].max(1) as i64;
        match self.edges[i] {
            Edge::Border => (0..n).contains(&x).then_some(x),
            Edge::Wrap if self.normalized => Some(x.rem_euclid(n)),
            _ => Some(x.clamp(0, n - 1)),
        }
    }

    fn place(&self, at: [i64; 3], layer: Option<i64>) -> Option<u64> {
        let mut place = [0; 3];
        for i in 0..self.dimensions() {
            place[i] = self.wrap(at[i], i)?;
        }
        if let Some(layer) = layer {
            place[2] = layer;
        }
        self.image.at(place)
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
            image: Image {
                address: 0x1000,
                extents: [4, 2, 0],
                layered: false,
                pitch: 64,
                slice: 128,
                channel: Channel::F32,
                channels: 1,
            },
            edges: [Edge::Clamp; 3],
            linear: false,
            normalized: false,
            integers: false,
            border: [9.0; 4],
            plain: false,
        }
    }

    #[test]
    fn points_are_texels_floors() {
        let mut t = texture();
        assert_eq!(t.sample([1.9, 1.2, 0.0]), [(Some(0x1000 + 4 + 64), 1.0)]);
        assert_eq!(t.sample([-3.0, 7.0, 0.0]), [(Some(0x1000 + 64), 1.0)]);
        t.edges = [Edge::Border; 3];
        assert_eq!(t.sample([-3.0, 0.0, 0.0]), [(None, 1.0)]);
        assert_eq!(f32::from_bits(t.channel(&[(None, 1.0)], 0)), 9.0);
        t.edges = [Edge::Wrap; 3];
        t.normalized = true;
        assert_eq!(t.sample([1.3, 0.0, 0.0]), [(Some(0x1000 + 4), 1.0)]);
        t.edges = [Edge::Mirror; 3];
        assert_eq!(t.sample([1.3, 0.0, 0.0]), [(Some(0x1000 + 8), 1.0)]);
    }

    #[test]
    fn filters_mix_neighbours() {
        let mut t = texture();
        t.linear = true;
        let mix = t.sample([1.75, 0.5, 0.0]);
        let shares: Vec<f64> = mix.iter().map(|m| m.1).collect();
        assert_eq!(shares, [0.75, 0.25, 0.0, 0.0]);
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
