//! Tensor maps, checked as the documentation of the driver's functions has it. Their layout is the machine's.

use super::api::{In, Out, driver_api};
use super::codes::{Answer, Code};
use crate::machine::tensor_map::{BYTES, DIMENSIONS, TensorMap, TensorType, Windows};

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

/// Elements of the dimensions.
fn sizes(list: &In<u64>, rank: usize) -> Answer<[u32; DIMENSIONS]> {
    let mut out = [1; DIMENSIONS];
    for (i, size) in out.iter_mut().take(rank).enumerate() {
        let extent = list.at(i)?;
        require((1..=1 << 32).contains(&extent))?;
        // 2^32 elements: coordinates end below.
        *size = u32::try_from(extent).unwrap_or(u32::MAX);
    }
    Ok(out)
}

/// Bytes between elements of the dimensions but the first.
fn distances(list: &In<u64>, rank: usize) -> Answer<[u64; DIMENSIONS - 1]> {
    let mut out = [0; DIMENSIONS - 1];
    for (i, stride) in out.iter_mut().take(rank - 1).enumerate() {
        *stride = list.at(i)?;
        require(stride.is_multiple_of(16) && *stride < 1 << 40)?;
    }
    Ok(out)
}

/// What both kinds of map ask of the address, of a row's elements and of the fill; the bytes of a line.
fn line(address: u64, row: u32, ty: TensorType, swizzle: u32, fill: u32) -> Answer<u64> {
    let line = 16 << swizzle;
    let inner = u64::from(row) * ty.bytes();
    require(
        address.is_multiple_of(16) && inner.is_multiple_of(16) && (line == 16 || inner <= line),
    )?;
    require(fill == 0 || ty.is_float())?;
    Ok(line)
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
        // Lines of 128 bytes in pieces of 32. Interleaved tensors, pieces of 64 bytes and exchanged ones of 8 are not simulated.
        let (swizzle, piece) = if swizzle == 4 { (3, 32) } else { (swizzle, 16) };
        if interleave != 0 || swizzle > 3 {
            return Err(Code::NOT_SUPPORTED);
        }
        let boxes = elements(&boxes, rank, 256)?;
        let steps = elements(&steps, rank, 8)?;
        let line = line(address, boxes[0], ty, swizzle, fill)?;
        map.set(
            TensorMap {
                address,
                rank,
                ty,
                line,
                piece,
                nan: fill == 1,
                extents: sizes(&extents, rank)?,
                box_extents: boxes,
                steps,
                strides: distances(&strides, rank)?,
                windows: None,
            }
            .encode(),
        )
    }
    fn cuTensorMapEncodeIm2col(
        _s, map: Out<[u8; BYTES]>, ty: u32, rank: u32, address: u64, extents: In<u64>, strides: In<u64>,
        lower: In<i32>, upper: In<i32>, channels: u32, pixels: u32, steps: In<u32>, interleave: u32, swizzle: u32,
        promotion: u32, fill: u32
    ) {
        map.require()?;
        let rank = rank as usize;
        require((3..=DIMENSIONS).contains(&rank) && promotion <= 3 && fill <= 1)?;
        let ty = TensorType::of_driver(ty).ok_or(Code::INVALID_VALUE)?;
        if interleave != 0 || swizzle > 3 {
            return Err(Code::NOT_SUPPORTED);
        }
        require((1..=256).contains(&channels) && (1..=1024).contains(&pixels))?;
        // Fewer bits for a corner's place the more of them there are.
        let most = [1 << 15, 1 << 7, 1 << 4][rank - 3];
        let corner = |list: &In<i32>| {
            let mut out = [0; 3];
            for (i, place) in out.iter_mut().take(rank - 2).enumerate() {
                let at = list.at(i)?;
                require((-most..most).contains(&at))?;
                *place = at as i16;
            }
            Ok(out)
        };
        map.set(
            TensorMap {
                address,
                rank,
                ty,
                line: line(address, channels, ty, swizzle, fill)?,
                piece: 16,
                nan: fill == 1,
                extents: sizes(&extents, rank)?,
                box_extents: [channels, pixels, 1, 1, 1],
                steps: elements(&steps, rank, 8)?,
                strides: distances(&strides, rank)?,
                windows: Some(Windows { lower: corner(&lower)?, upper: corner(&upper)? }),
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
