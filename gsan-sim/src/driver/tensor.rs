//! Tensor maps, checked as the documentation of `cuTensorMapEncodeTiled` has it. Their layout is the machine's.

use super::api::{In, Out, driver_api};
use super::codes::{Answer, Code};
use crate::machine::tensor_map::{BYTES, DIMENSIONS, TensorMap, TensorType};

fn require(holds: bool) -> Answer {
    if holds {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// The first `rank` elements; the others are 1.
fn elements(list: &In<u32>, rank: usize, most: u32) -> Answer<[u32; DIMENSIONS]> {
    let mut out = [1; DIMENSIONS];
    for (i, x) in out.iter_mut().take(rank).enumerate() {
        *x = list.at(i)?;
        require((1..=most).contains(x))?;
    }
    Ok(out)
}

driver_api! {
    fn cuTensorMapEncodeTiled(
        _s, map: Out<[u8; BYTES]>, ty: u32, rank: u32, address: u64, extents: In<u64>, strides: In<u64>,
        boxes: In<u32>, steps: In<u32>, interleave: u32, swizzle: u32, promotion: u32, fill: u32
    ) {
        map.require()?;
        let rank = rank as usize;
        require((1..=DIMENSIONS).contains(&rank) && promotion <= 3 && fill <= 1)?;
        let ty = TensorType::of_driver(ty).ok_or(Code::INVALID_VALUE)?;
        // Interleaved tensors and swizzles by larger atoms are not simulated.
        if interleave != 0 || swizzle > 3 {
            return Err(Code::NOT_SUPPORTED);
        }
        let boxes = elements(&boxes, rank, 256)?;
        let steps = elements(&steps, rank, 8)?;
        let mut sizes = [1; DIMENSIONS];
        for (i, size) in sizes.iter_mut().take(rank).enumerate() {
            let extent = extents.at(i)?;
            require((1..=1 << 32).contains(&extent))?;
            // 2^32 elements: coordinates end below.
            *size = u32::try_from(extent).unwrap_or(u32::MAX);
        }
        let mut bytes = [0; DIMENSIONS - 1];
        for (i, stride) in bytes.iter_mut().take(rank - 1).enumerate() {
            *stride = strides.at(i)?;
            require(stride.is_multiple_of(16) && *stride < 1 << 40)?;
        }
        let line = 16 << swizzle;
        let inner = u64::from(boxes[0]) * ty.bytes();
        require(address.is_multiple_of(16) && inner.is_multiple_of(16) && (line == 16 || inner <= line))?;
        require(fill == 0 || ty.is_float())?;
        map.set(
            TensorMap {
                address,
                rank,
                ty,
                line,
                nan: fill == 1,
                extents: sizes,
                box_extents: boxes,
                steps,
                strides: bytes,
            }
            .encode(),
        )
    }
    fn cuTensorMapReplaceAddress(_s, map: Out<[u8; BYTES]>, address: u64) {
        map.require()?;
        require(address.is_multiple_of(16))?;
        // The address is the map's first word.
        map.cast::<u64>().set(address)
    }
}
