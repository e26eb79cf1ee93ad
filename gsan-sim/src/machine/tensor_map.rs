//! Tensor maps: what the 128 bytes hold that `cuTensorMapEncodeTiled` fills in and `cp.async.bulk.tensor` reads.
//!
//! The hardware's layout is not public; this one is the simulated driver's own. All zero is a map of rank 1 without
//! extent, from which `tensormap.replace` builds the rest.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | global address |
//! | 8 | rank − 1 |
//! | 9 | element type, as `tensormap.replace` numbers it |
//! | 10 | interleave |
//! | 11 | swizzle: 0, 32, 64, 128 bytes |
//! | 12 | fill: 0 zeros, 1 NaN |
//! | 13 | 0 boxes, 1 windows (`.im2col`: the box's first two fields are channels and pixels) |
//! | 14 | how much the swizzle leaves together: 0: 16 bytes, 1: 32 (lines of 128 bytes) |
//! | 16–35 | extents, 5 × u32 |
//! | 36–55 | box, 5 × u32 |
//! | 56–75 | element strides, 5 × u32 (0 counts as 1) |
//! | 80–111 | strides in bytes of dimensions 1 to 4, 4 × u64 |
//! | 112–123 | windows: lower and upper corners, 3 × i16 each |

use super::alu::round::{Rounding, TF32};
use super::ir::AtomicOp;
use super::ty::Ty;

/// Bytes of a tensor map.
pub const BYTES: usize = 128;
/// Most dimensions.
pub const DIMENSIONS: usize = 5;

/// Where a field lies and how many bytes it has.
pub fn field(name: &str, index: u32) -> Option<(i64, u8)> {
    let index = i64::from(index);
    let (at, bytes, count) = match name {
        "global_address" => (0, 8, 1),
        "rank" => (8, 1, 1),
        "elemtype" => (9, 1, 1),
        "interleave_layout" => (10, 1, 1),
        "swizzle_mode" => (11, 1, 1),
        "fill_mode" => (12, 1, 1),
        "swizzle_atomicity" => (14, 1, 1),
        "global_dim" => (16, 4, 5),
        "box_dim" => (36, 4, 5),
        "element_stride" => (56, 4, 5),
        "global_stride" => (80, 8, 4),
        // The program has no names for these.
        "#windows" => (13, 1, 1),
        "#corner" => (112, 2, 6),
        _ => return None,
    };
    (index < count).then_some((at + index * i64::from(bytes), bytes))
}

/// The elements of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum TensorType {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F32Ftz = 8,
    F64 = 9,
    Bf16 = 10,
    Tf32 = 11,
    Tf32Ftz = 12,
}

impl TensorType {
    const ALL: [TensorType; 13] = [
        TensorType::U8,
        TensorType::U16,
        TensorType::U32,
        TensorType::S32,
        TensorType::U64,
        TensorType::S64,
        TensorType::F16,
        TensorType::F32,
        TensorType::F32Ftz,
        TensorType::F64,
        TensorType::Bf16,
        TensorType::Tf32,
        TensorType::Tf32Ftz,
    ];

    /// By `CUtensorMapDataType`, which counts `f64` and `bf16` before the flushed floats.
    pub fn of_driver(number: u32) -> Option<TensorType> {
        Some(match number {
            8 => TensorType::F64,
            9 => TensorType::Bf16,
            10 => TensorType::F32Ftz,
            n => *TensorType::ALL.get(n as usize)?,
        })
    }

    /// Bytes.
    pub fn bytes(self) -> u64 {
        match self {
            TensorType::U8 => 1,
            TensorType::U16 | TensorType::F16 | TensorType::Bf16 => 2,
            TensorType::U64 | TensorType::S64 | TensorType::F64 => 8,
            _ => 4,
        }
    }

    /// Whether NaN can fill what lies outside.
    pub fn is_float(self) -> bool {
        self as u8 >= TensorType::F16 as u8
    }

    /// What fills the elements outside: as many halves of that pattern as fit.
    fn nan(self) -> u64 {
        0x7ff7_7ff7_7ff7_7ff7 >> (64 - 8 * self.bytes())
    }

    /// What a load makes of an element's bits: a tf32 is rounded to the bits that it has (subnormals keep theirs, every NaN
    /// becomes one). The types that the driver calls flushed load as the others do: an H200 flushes nothing here, only in
    /// `.add` reductions.
    pub fn loaded(self, bits: u64) -> u64 {
        match self {
            TensorType::Tf32 | TensorType::Tf32Ftz => {
                let x = f32::from_bits(bits as u32);
                if x.is_nan() {
                    return 0x7fff_e000;
                }
                u64::from(TF32.encode(f64::from(x), Rounding::Nearest as u32)) << 13
            }
            _ => bits,
        }
    }

    /// The type of a reduction with this operation.
    pub fn reduction(self, op: AtomicOp) -> Ty {
        let bits = matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
        match self {
            TensorType::U8 => Ty::U8,
            TensorType::U16 => Ty::U16,
            TensorType::U32 => Ty::U32,
            TensorType::S32 if !bits => Ty::S32,
            TensorType::S64 if !bits => Ty::S64,
            TensorType::U64 => Ty::U64,
            TensorType::F16 => Ty::F16,
            TensorType::Bf16 => Ty::Bf16,
            TensorType::F64 => Ty::F64,
            TensorType::S32 => Ty::B32,
            TensorType::S64 => Ty::B64,
            _ => Ty::F32,
        }
    }
}

/// A decoded tensor map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// First element.
    pub address: u64,
    /// Dimensions that count.
    pub rank: usize,
    /// Of the elements.
    pub ty: TensorType,
    /// Bytes after which the permutation of pieces in shared memory repeats; 16: none.
    pub line: u64,
    /// Bytes of a piece: 16, or with lines of 128 bytes 32.
    pub piece: u64,
    /// Whether NaN, not zero, stands for what lies outside.
    pub nan: bool,
    /// Elements of each dimension.
    pub extents: [u32; DIMENSIONS],
    /// Elements of a box, before the strides thin them out.
    pub box_extents: [u32; DIMENSIONS],
    /// Every how many elements are taken.
    pub steps: [u32; DIMENSIONS],
    /// Bytes from one element to the next in each dimension but the first.
    pub strides: [u64; DIMENSIONS - 1],
    /// Windows instead of boxes.
    pub windows: Option<Windows>,
}

/// Where the pixels of `.im2col` copies lie, in width, height and depth. The box's first two extents are the channels of a
/// pixel and the number of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The first pixel's place.
    pub lower: [i16; 3],
    /// The last one's, from the tensor's last element.
    pub upper: [i16; 3],
}

impl TensorMap {
    /// The map's bytes.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        let mut put = |name: &str, index: usize, value: u64| {
            if let Some((at, bytes)) = field(name, index as u32) {
                let (at, bytes) = (at as usize, usize::from(bytes));
                out[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
        };
        put("global_address", 0, self.address);
        put("rank", 0, self.rank.saturating_sub(1) as u64);
        put("elemtype", 0, self.ty as u64);
        put(
            "swizzle_mode",
            0,
            u64::from((self.line / 16).trailing_zeros()),
        );
        put("swizzle_atomicity", 0, u64::from(self.piece > 16));
        put("fill_mode", 0, u64::from(self.nan));
        for i in 0..self.rank.min(DIMENSIONS) {
            put("global_dim", i, u64::from(self.extents[i]));
            put("box_dim", i, u64::from(self.box_extents[i]));
            put("element_stride", i, u64::from(self.steps[i]));
            if let Some(&stride) = self.strides[..self.rank.clamp(1, DIMENSIONS) - 1].get(i) {
                put("global_stride", i, stride);
            }
        }
        if let Some(windows) = self.windows {
            put("#windows", 0, 1);
            for (i, corner) in windows.lower.iter().chain(&windows.upper).enumerate() {
                put("#corner", i, u64::from(*corner as u16));
            }
        }
        out
    }

    /// Takes a map's bytes apart.
    ///
    /// # Errors
    /// What is no map, or one that the machine lacks, in words.
    pub fn decode(bytes: &[u8; BYTES]) -> Result<TensorMap, String> {
        let get = |name: &str, index: usize| {
            field(name, index as u32).map_or(0, |(at, n)| {
                let mut word = [0; 8];
                let n = usize::from(n);
                word[..n].copy_from_slice(&bytes[at as usize..][..n]);
                u64::from_le_bytes(word)
            })
        };
        let rank = get("rank", 0) as usize + 1;
        let ty = TensorType::ALL.get(get("elemtype", 0) as usize);
        let (Some(&ty), 1..=DIMENSIONS) = (ty, rank) else {
            return Err("no tensor map lies there".to_string());
        };
        let swizzle = get("swizzle_mode", 0);
        if swizzle > 3 || get("interleave_layout", 0) != 0 {
            return Err(format!(
                "tensor map with swizzle mode {swizzle}, interleave {}",
                get("interleave_layout", 0)
            ));
        }
        let atomicity = get("swizzle_atomicity", 0);
        if atomicity > 1 || atomicity == 1 && swizzle != 3 {
            return Err(format!(
                "tensor map with swizzle mode {swizzle}, swizzle atomicity {atomicity}"
            ));
        }
        let each = |name: &str, least: u32| {
            std::array::from_fn(|i| {
                if i < rank {
                    (get(name, i) as u32).max(least)
                } else {
                    1
                }
            })
        };
        let corner = |first: usize| std::array::from_fn(|i| get("#corner", first + i) as i16);
        let windows = (get("#windows", 0) == 1).then(|| Windows {
            lower: corner(0),
            upper: corner(3),
        });
        Ok(TensorMap {
            windows,
            address: get("global_address", 0),
            rank,
            ty,
            line: 16 << swizzle,
            piece: 16 << atomicity,
            nan: get("fill_mode", 0) != 0,
            extents: each("global_dim", 0),
            box_extents: each("box_dim", 1),
            steps: each("element_stride", 1),
            strides: std::array::from_fn(|i| get("global_stride", i)),
        })
    }

    /// Elements of a box in each dimension; of windows channels and pixels.
    pub fn counts(&self) -> [u64; DIMENSIONS] {
        std::array::from_fn(|i| {
            // The first dimension's step is ignored, as the hardware does, and windows step from pixel to pixel.
            let step = match i {
                0 => 1,
                _ if self.windows.is_some() => 1,
                i => self.steps[i],
            };
            u64::from(self.box_extents[i].div_ceil(step))
        })
    }

    /// Bytes of a box.
    pub fn box_bytes(&self) -> u64 {
        self.counts().iter().product::<u64>() * self.ty.bytes()
    }

    /// Bytes from one row of a box to the next in shared memory: short ones are permuted as parts of whole lines.
    pub fn pitch(&self) -> u64 {
        let row = self.counts()[0] * self.ty.bytes();
        if self.line > 16 {
            row.max(self.line)
        } else {
            row
        }
    }

    /// The first element of each row of a box at that corner, in the tensor's coordinates; of each pixel of windows, whose
    /// places in the window are `offsets`.
    pub fn rows(&self, corner: &[i32; DIMENSIONS], offsets: &[u16]) -> Vec<[i64; DIMENSIONS]> {
        let corner = corner.map(i64::from);
        let Some(windows) = &self.windows else {
            let [_, a, b, c, d] = self.counts();
            let row = |i: u64| {
                let index = [0, i % a, i / a % b, i / a / b % c, i / a / b / c];
                std::array::from_fn(|k| corner[k] + (index[k] * u64::from(self.steps[k])) as i64)
            };
            return (0..a * b * c * d).map(row).collect();
        };
        let spatial = self.rank.saturating_sub(2).min(3);
        let mut at = corner;
        let pixel = |_| {
            let mut row = at;
            for (k, offset) in offsets.iter().enumerate().take(spatial) {
                row[1 + k] += i64::from(*offset);
            }
            // The next pixel: along the first dimension, then to the next row, plane, image.
            for k in 0..=spatial {
                if k == spatial {
                    at[1 + k] += 1;
                    break;
                }
                at[1 + k] += i64::from(self.steps[1 + k]);
                let last = i64::from(self.extents[1 + k]) - 1 + i64::from(windows.upper[k]);
                if at[1 + k] <= last {
                    break;
                }
                at[1 + k] = i64::from(windows.lower[k]);
            }
            row
        };
        (0..self.counts()[1]).map(pixel).collect()
    }

    /// The address of an element; `None`: outside the tensor.
    pub fn element(&self, at: [i64; DIMENSIONS]) -> Option<u64> {
        let mut address = self.address;
        for (i, &at) in at.iter().enumerate().take(self.rank) {
            if !(0..i64::from(self.extents[i])).contains(&at) {
                return None;
            }
            let stride = match i {
                0 => self.ty.bytes(),
                i => self.strides[i - 1],
            };
            address = address.wrapping_add((at as u64).wrapping_mul(stride));
        }
        Some(address)
    }

    /// Where byte `offset` of a row lies whose first byte, were it not permuted, is at shared address `start`.
    pub fn shared(&self, start: u64, offset: u64) -> u64 {
        let at = start.wrapping_add(offset);
        let piece = at >> 7 & (self.line / self.piece).saturating_sub(1);
        at ^ (piece * self.piece)
    }

    /// The bits of an element outside.
    pub fn outside(&self) -> u64 {
        if self.nan && self.ty.is_float() {
            self.ty.nan()
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x1000,
            rank: 3,
            ty: TensorType::F32,
            line: 64,
            piece: 16,
            nan: true,
            extents: [10, 5, 3, 1, 1],
            box_extents: [16, 4, 3, 1, 1],
            steps: [1, 2, 1, 1, 1],
            strides: [48, 240, 0, 0],
            windows: None,
        }
    }

    #[test]
    fn maps_survive_their_bytes() {
        assert_eq!(TensorMap::decode(&map().encode()), Ok(map()));
        let mut bytes = [0; BYTES];
        assert_eq!(TensorMap::decode(&bytes).unwrap().rank, 1);
        bytes[8] = 5;
        assert!(TensorMap::decode(&bytes).is_err());
    }

    #[test]
    fn elements_outside_have_no_address() {
        let m = map();
        assert_eq!(m.counts(), [16, 2, 3, 1, 1]);
        assert_eq!(m.box_bytes(), 16 * 2 * 3 * 4);
        let rows = m.rows(&[-1, 3, 1, 0, 0], &[]);
        assert_eq!(rows.len(), 6);
        assert_eq!(rows[3], [-1, 5, 2, 0, 0]);
        assert_eq!(m.element(rows[2]), None);
        let [_, y, z, ..] = rows[2];
        assert_eq!(
            m.element([1, y, z, 0, 0]),
            Some(0x1000 + 4 + 3 * 48 + 2 * 240)
        );
        assert_eq!(m.element([1, 5, 2, 0, 0]), None);
        assert_eq!(m.outside(), 0x7ff7_7ff7);
    }

    #[test]
    fn windows_walk_through_the_images() {
        let m = TensorMap {
            rank: 4,
            extents: [8, 4, 3, 2, 1],
            box_extents: [8, 7, 1, 1, 1],
            steps: [1, 2, 1, 1, 1],
            strides: [32, 128, 384, 0],
            windows: Some(Windows {
                lower: [-1, -1, 0],
                upper: [0, -2, 0],
            }),
            ..map()
        };
        assert_eq!(TensorMap::decode(&m.encode()), Ok(m.clone()));
        assert_eq!(m.box_bytes(), 7 * 32);
        // Columns −1, 1, 3; rows −1, 0.
        let places: Vec<[i64; 3]> = m
            .rows(&[0, 1, 0, 0, 0], &[1, 2])
            .iter()
            .map(|r| [r[1], r[2], r[3]])
            .collect();
        assert_eq!(
            places,
            [
                [2, 2, 0],
                [4, 2, 0],
                [0, 1, 1],
                [2, 1, 1],
                [4, 1, 1],
                [0, 2, 1],
                [2, 2, 1],
            ]
        );
    }

    #[test]
    fn short_rows_take_whole_lines() {
        let mut m = map();
        m.box_extents[0] = 4;
        assert_eq!((m.pitch(), m.box_bytes()), (64, 4 * 6 * 4));
        m.line = 16;
        assert_eq!(m.pitch(), 16);
    }

    #[test]
    fn lines_are_permuted_by_the_address() {
        let m = map();
        assert_eq!(m.shared(0x400, 0), 0x400);
        assert_eq!(m.shared(0x400, 128), 0x400 + 128 + 16);
        assert_eq!(m.shared(0x400, 3 * 128 + 16), 0x400 + 3 * 128 + 32);
        // Pieces of 32 bytes: as CUTLASS's `Swizzle<2, 5, 2>`.
        let m = TensorMap {
            line: 128,
            piece: 32,
            ..map()
        };
        assert_eq!(TensorMap::decode(&m.encode()), Ok(m.clone()));
        assert_eq!(m.shared(0x400, 128 + 48), 0x400 + 128 + 16);
        assert_eq!(m.shared(0x400, 6 * 128), 0x400 + 6 * 128 + 64);
        let mut bytes = m.encode();
        for (mode, atomicity) in [(2, 1), (3, 2), (3, 3)] {
            (bytes[11], bytes[14]) = (mode, atomicity);
            let why = TensorMap::decode(&bytes).unwrap_err();
            assert!(why.contains("swizzle atomicity"), "{why}");
        }
    }
}
