//! Tensor maps: the driver makes 128 opaque bytes, and the detector is told what they were made from.

use crate::driver::check_code;
use crate::error::{Error, Result};
use cuda_lazy::ext::{CUtensorMap, cuTensorMapEncodeIm2col, cuTensorMapEncodeTiled};
use gsan_device::layout::TensorMap;
use std::ffi::c_void;
use std::ptr;

/// Most dimensions of a tensor.
pub const DIMENSIONS: usize = 5;

/// What a tensor's elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TensorType {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
    Bf16,
}

impl TensorType {
    /// `CUtensorMapDataType`, and bytes.
    fn facts(self) -> (i32, u32) {
        match self {
            TensorType::U8 => (0, 1),
            TensorType::U16 => (1, 2),
            TensorType::U32 => (2, 4),
            TensorType::I32 => (3, 4),
            TensorType::U64 => (4, 8),
            TensorType::I64 => (5, 8),
            TensorType::F16 => (6, 2),
            TensorType::F32 => (7, 4),
            TensorType::F64 => (8, 8),
            TensorType::Bf16 => (9, 2),
        }
    }
}

/// What `cuTensorMapEncodeTiled` makes a map from; with [`TensorSpec::windows`] `cuTensorMapEncodeIm2col`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Of the elements.
    pub ty: TensorType,
    /// Elements in each dimension, the fastest first; one to five.
    pub extents: Vec<u64>,
    /// Bytes from one element to the next in each dimension but the first.
    pub strides: Vec<u64>,
    /// A box's elements in each dimension; with windows the channels of a pixel and the number of pixels.
    pub boxes: Vec<u32>,
    /// Every how many elements of each dimension a box takes; empty: all.
    pub steps: Vec<u32>,
    /// Bytes after which the permutation in shared memory repeats: 32, 64, 128; 0: none.
    pub swizzle: u32,
    /// NaN, not zero, stands for what lies outside.
    pub fill_nan: bool,
    /// For copies of a convolution's windows (`.im2col`).
    pub windows: Option<Windows>,
}

/// Where the pixels of windows lie, in the dimensions between the first and the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// The first pixel's place.
    pub lower: Vec<i32>,
    /// The last one's, from the tensor's last element.
    pub upper: Vec<i32>,
}

impl TensorSpec {
    /// The driver's map of the tensor at `address`, and what the detector must know of it.
    pub(crate) fn encode(&self, address: u64) -> Result<(CUtensorMap, TensorMap)> {
        let rank = self.extents.len();
        let swizzle = [0, 32, 64, 128].iter().position(|s| *s == self.swizzle);
        let (Some(swizzle), true) = (swizzle, self.lengths_agree()) else {
            return Err(Error::Configuration(format!(
                "a tensor map has one to {DIMENSIONS} extents, as many box extents, as many steps or none, one stride less, and \
                 a swizzle of 0, 32, 64 or 128 bytes; one for windows three or more extents, channels and pixels, and two corners \
                 with two numbers less than extents"
            )));
        };
        let steps = if self.steps.is_empty() {
            vec![1; rank]
        } else {
            self.steps.clone()
        };
        let (ty, element) = self.ty.facts();
        let mut map = CUtensorMap { opaque: [0; 16] };
        let fill = i32::from(self.fill_nan);
        let call = match &self.windows {
            None => "cuTensorMapEncodeTiled",
            Some(_) => "cuTensorMapEncodeIm2col",
        };
        // SAFETY: the lists are as long as the rank says (strides one less, corners two), and the driver reads nothing else; the
        // address is only put into the map.
        let status = unsafe {
            match &self.windows {
                None => cuTensorMapEncodeTiled(
                    ptr::from_mut(&mut map),
                    ty,
                    rank as u32,
                    address as *mut c_void,
                    self.extents.as_ptr(),
                    self.strides.as_ptr(),
                    self.boxes.as_ptr(),
                    steps.as_ptr(),
                    0,
                    swizzle as i32,
                    0,
                    fill,
                ),
                Some(windows) => cuTensorMapEncodeIm2col(
                    ptr::from_mut(&mut map),
                    ty,
                    rank as u32,
                    address as *mut c_void,
                    self.extents.as_ptr(),
                    self.strides.as_ptr(),
                    windows.lower.as_ptr(),
                    windows.upper.as_ptr(),
                    self.boxes[0],
                    self.boxes[1],
                    steps.as_ptr(),
                    0,
                    swizzle as i32,
                    0,
                    fill,
                ),
            }
        };
        check_code(call, status.0 as u32)?;
        Ok((map, self.known(map.opaque, address, &steps, element)))
    }

    /// What the detector must know of a map with these bits, if the lists fit together.
    pub(crate) fn of_bits(&self, bits: [u64; 16], address: u64) -> Option<TensorMap> {
        let steps = match self.steps.is_empty() {
            true => vec![1; self.extents.len()],
            false => self.steps.clone(),
        };
        let element = self.ty.facts().1;
        self.lengths_agree()
            .then(|| self.known(bits, address, &steps, element))
    }

    fn known(&self, bits: [u64; 16], address: u64, steps: &[u32], element: u32) -> TensorMap {
        let rank = self.extents.len();
        let corner = |of: fn(&Windows) -> &Vec<i32>| {
            let list = self.windows.as_ref().map(of);
            padded(list.map_or(&[][..], Vec::as_slice), 0)
        };
        TensorMap {
            bits,
            address,
            extents: padded(&self.extents, 1),
            strides: padded(&self.strides, 0),
            boxes: padded(&self.boxes, 1),
            steps: padded(steps, 1),
            rank: rank as u32,
            element,
            lower: corner(|w| &w.lower),
            upper: corner(|w| &w.upper),
            windows: u32::from(self.windows.is_some()),
            reserved: 0,
        }
    }

    fn lengths_agree(&self) -> bool {
        let rank = self.extents.len();
        let boxes = match &self.windows {
            None => rank,
            Some(w) if rank >= 3 && w.lower.len() == rank - 2 && w.upper.len() == rank - 2 => 2,
            Some(_) => return false,
        };
        (1..=DIMENSIONS).contains(&rank)
            && self.boxes.len() == boxes
            && self.strides.len() == rank - 1
            && (self.steps.is_empty() || self.steps.len() == rank)
    }
}

fn padded<T: Copy, const N: usize>(list: &[T], rest: T) -> [T; N] {
    std::array::from_fn(|i| list.get(i).copied().unwrap_or(rest))
}

/// The table as the host keeps it: open addressing, never more than half full.
#[derive(Default)]
pub(crate) struct TensorTable {
    entries: Vec<TensorMap>,
    used: usize,
}

impl TensorTable {
    /// Adds a map; `None` if it is there. Otherwise where it is now, and whether the table has grown.
    pub(crate) fn add(&mut self, map: &TensorMap) -> Option<(usize, bool)> {
        if self
            .place(&map.bits)
            .is_some_and(|at| self.entries[at].rank != 0)
        {
            return None;
        }
        let grown = 2 * (self.used + 1) > self.entries.len();
        if grown {
            let larger = vec![TensorMap::default(); (2 * self.entries.len()).max(64)];
            for old in std::mem::replace(&mut self.entries, larger) {
                if let (true, Some(at)) = (old.rank != 0, self.place(&old.bits)) {
                    self.entries[at] = old;
                }
            }
        }
        let at = self.place(&map.bits)?;
        self.entries[at] = *map;
        self.used += 1;
        Some((at, grown))
    }

    /// The entry of these bits, or the free one where they go.
    fn place(&self, bits: &[u64; 16]) -> Option<usize> {
        let mask = self.entries.len().checked_sub(1)?;
        let first = TensorMap::hash(bits) as usize;
        (0..=mask)
            .map(|i| (first + i) & mask)
            .find(|&at| self.entries[at].rank == 0 || self.entries[at].bits == *bits)
    }

    pub(crate) fn entries(&self) -> &[TensorMap] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(n: u64) -> TensorMap {
        let mut map = TensorMap {
            rank: 1,
            address: n,
            ..TensorMap::default()
        };
        map.bits[5] = n;
        map
    }

    #[test]
    fn a_table_keeps_each_map_once() {
        let mut table = TensorTable::default();
        let mut growths = 0;
        for n in 0..500 {
            let (at, grown) = table.add(&map(n)).unwrap();
            assert_eq!(table.entries()[at].address, n);
            growths += u32::from(grown);
            assert_eq!(table.add(&map(n)), None);
        }
        assert_eq!((growths, table.entries().len()), (5, 1024));
        for n in 0..500 {
            assert!(
                table
                    .place(&map(n).bits)
                    .is_some_and(|at| table.entries()[at] == map(n))
            );
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let good = TensorSpec {
            ty: TensorType::F32,
            extents: vec![8, 8],
            strides: vec![32],
            boxes: vec![4, 4],
            steps: vec![],
            swizzle: 0,
            fill_nan: false,
            windows: None,
        };
        assert!(good.lengths_agree());
        let windows = |corner: Vec<i32>| TensorSpec {
            extents: vec![8, 8, 8],
            strides: vec![32, 256],
            boxes: vec![8, 4],
            windows: Some(Windows {
                lower: vec![0],
                upper: corner,
            }),
            ..good.clone()
        };
        assert!(windows(vec![-1]).lengths_agree());
        for bad in [
            windows(vec![0, 0]),
            TensorSpec {
                boxes: vec![8, 4, 1],
                ..windows(vec![0])
            },
            TensorSpec {
                windows: windows(vec![0]).windows,
                ..good.clone()
            },
            TensorSpec {
                extents: vec![],
                ..good.clone()
            },
            TensorSpec {
                extents: vec![1; 6],
                ..good.clone()
            },
            TensorSpec {
                strides: vec![],
                ..good.clone()
            },
            TensorSpec {
                boxes: vec![1; 3],
                ..good.clone()
            },
            TensorSpec {
                steps: vec![1],
                ..good.clone()
            },
            TensorSpec {
                swizzle: 16,
                ..good.clone()
            },
        ] {
            assert!(matches!(bad.encode(0), Err(Error::Configuration(_))));
        }
    }
}
