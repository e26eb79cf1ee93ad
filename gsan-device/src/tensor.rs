//! Tensor maps: `cp.async.bulk.tensor` names a box by coordinates, and where its elements lie only the map says, 128 bytes of
//! the driver's that nobody else can read. The host keeps what it had them made from in a table on the device
//! ([`TensorMap`]); a map is looked up there by its bits. Elements outside the tensor are not accessed.

use crate::clock::State;
use crate::layout::{GlobalState, PendingCopy, TensorMap};
use crate::machine::{Machine, field};
use core::mem::size_of;

/// In a hook's `shape`: four rows, gathered or scattered.
pub const ROWS: u32 = 1 << 8;

/// The table's entry for the map at `map`.
pub fn find<M: Machine>(me: State<M>, map: u64) -> Option<u64> {
    let m = me.m;
    let table = m.load64(field!(me.global(), GlobalState, tensor_maps));
    if table == 0 {
        return None;
    }
    let mask = m.load32(field!(me.global(), GlobalState, tensor_mask));
    let mut hash = 0;
    let mut i = 0;
    while i < 16 {
        hash = TensorMap::mix(hash, m.load64_of_map(map.wrapping_add(8 * i)));
        i += 1;
    }
    let first = (hash >> 32) as u32;
    let mut probe = 0;
    while probe <= mask {
        let entry = table.wrapping_add(
            (first.wrapping_add(probe) & mask) as u64 * size_of::<TensorMap>() as u64,
        );
        if m.load32(field!(entry, TensorMap, rank)) == 0 {
            return None;
        }
        let mut same = true;
        let mut i = 0;
        while i < 16 && same {
            let at = 8 * i;
            same = m.load64(entry.wrapping_add(at)) == m.load64_of_map(map.wrapping_add(at));
            i += 1;
        }
        if same {
            return Some(entry);
        }
        probe = probe.wrapping_add(1);
    }
    None
}

/// Whether the copy is one of a range, by its bytes.
const fn is_range(bytes: u32) -> bool {
    bytes != 0 && bytes < PendingCopy::WINDOWS
}

/// Which bytes of every 16 the copy touches whose entry ([`PendingCopy`]) lies at `at`, a bit each.
pub fn mask<M: Machine>(m: M, at: u64) -> u32 {
    if is_range(m.load32(field!(at, PendingCopy, bytes))) {
        let mask = m.load64(field!(at, PendingCopy, offsets)) as u32;
        if mask != 0 {
            return mask;
        }
    }
    u32::MAX
}

/// Rows of the copy; a range has one, windows one for each pixel.
pub fn rows<M: Machine>(m: M, at: u64) -> u32 {
    let bytes = m.load32(field!(at, PendingCopy, bytes));
    if is_range(bytes) {
        return 1;
    }
    let map = m.load64(field!(at, PendingCopy, address));
    if bytes == PendingCopy::WINDOWS {
        return m.load32(field!(map, TensorMap, boxes).wrapping_add(4));
    }
    let rank = m.load32(field!(map, TensorMap, rank));
    let mut rows = if bytes == 0 { 1 } else { 4 };
    let mut d = 1;
    while d < rank {
        rows = count(m, map, d).saturating_mul(rows);
        d += 1;
    }
    rows
}

/// Where a row lies and how many bytes it has, as far as it is in the tensor.
#[inline(never)]
pub fn row<M: Machine>(m: M, at: u64, row: u32) -> (u64, u64) {
    let bytes = m.load32(field!(at, PendingCopy, bytes));
    let address = m.load64(field!(at, PendingCopy, address));
    if is_range(bytes) {
        return (address, bytes as u64);
    }
    let gathered = bytes == PendingCopy::ROWS;
    let windows = bytes == PendingCopy::WINDOWS;
    let map = address;
    let coordinate = |d: u32| {
        let to = field!(at, PendingCopy, corner).wrapping_add(4 * d as u64);
        m.load32(to) as i32 as i64
    };
    let element = m.load32(field!(map, TensorMap, element)) as u64;
    let side = m.load32(field!(map, TensorMap, boxes)) as i64;
    let first = coordinate(0);
    let last = first.wrapping_add(side).min(extent(m, map, 0) as i64);
    let first = first.max(0);
    if first >= last {
        return (0, 0);
    }
    let mut address = m
        .load64(field!(map, TensorMap, address))
        .wrapping_add((first as u64).wrapping_mul(element));
    let rank = m.load32(field!(map, TensorMap, rank));
    let mut rest = row;
    let mut d = 1;
    while d < rank {
        if windows {
            let last = d == rank - 1;
            let (place, next) = pixel(m, map, d, coordinate(d), rest, last);
            rest = next;
            let offset = m.load64(field!(at, PendingCopy, offsets)) >> (16 * (d - 1)) & 0xffff;
            let place = if last {
                place
            } else {
                place.wrapping_add(offset as i64)
            };
            let Some(there) = along(m, map, d, address, place) else {
                return (0, 0);
            };
            address = there;
            d += 1;
            continue;
        }
        let n = count(m, map, d);
        let index = rest.checked_rem(n).unwrap_or(0);
        rest = rest.checked_div(n).unwrap_or(0);
        // Of four rows each is a box of its own, and their numbers follow the first coordinate.
        let corner = match gathered {
            true if d == 1 => coordinate(1 + (rest & 3)),
            true => 0,
            false => coordinate(d),
        };
        let place = corner.wrapping_add(index as i64 * step(m, map, d) as i64);
        let Some(there) = along(m, map, d, address, place) else {
            return (0, 0);
        };
        address = there;
        d += 1;
    }
    (
        address,
        (last.wrapping_sub(first) as u64).wrapping_mul(element),
    )
}

/// The address of the element at `place` of the dimension; `None`: outside.
fn along<M: Machine>(m: M, map: u64, d: u32, address: u64, place: i64) -> Option<u64> {
    if place < 0 || place as u64 >= extent(m, map, d) {
        return None;
    }
    let stride = field!(map, TensorMap, strides).wrapping_add(8 * (d as u64 - 1));
    Some(address.wrapping_add((place as u64).wrapping_mul(m.load64(stride))))
}

/// Where the first pixel of windows is in dimension `d` after `steps` steps from `first` on, and how many steps the next
/// dimension has made by then. Pixels go along a dimension as far as the map's upper corner, then begin again at the lower one; in
/// the last dimension, from image to image, they only go on.
fn pixel<M: Machine>(m: M, map: u64, d: u32, first: i64, steps: u32, last: bool) -> (i64, u32) {
    if last {
        return (first.wrapping_add(steps as i64), 0);
    }
    let corner = |from: u64| m.load32(from.wrapping_add(4 * (d as u64 - 1))) as i32 as i64;
    let lower = corner(field!(map, TensorMap, lower));
    let end = (extent(m, map, d) as i64)
        .wrapping_sub(1)
        .wrapping_add(corner(field!(map, TensorMap, upper)));
    let step = step(m, map, d) as i64;
    // As many pixels lie from a place on.
    let from = |place: i64| {
        let room = end.wrapping_sub(place).max(0);
        room.checked_div(step).unwrap_or(0).wrapping_add(1)
    };
    let steps = steps as i64;
    let at_first = from(first);
    if steps < at_first {
        return (first.wrapping_add(steps.wrapping_mul(step)), 0);
    }
    let beyond = steps.wrapping_sub(at_first);
    let whole = from(lower).max(1);
    let index = beyond.checked_rem(whole).unwrap_or(0);
    let times = beyond.checked_div(whole).unwrap_or(0).wrapping_add(1);
    (lower.wrapping_add(index.wrapping_mul(step)), times as u32)
}

fn extent<M: Machine>(m: M, map: u64, d: u32) -> u64 {
    m.load64(field!(map, TensorMap, extents).wrapping_add(8 * d as u64))
}

/// Every how many elements of a dimension are taken.
fn step<M: Machine>(m: M, map: u64, d: u32) -> u32 {
    m.load32(field!(map, TensorMap, steps).wrapping_add(4 * d as u64))
        .max(1)
}

/// Elements of a box in a dimension but the first.
fn count<M: Machine>(m: M, map: u64, d: u32) -> u32 {
    let side = m.load32(field!(map, TensorMap, boxes).wrapping_add(4 * d as u64));
    let step = step(m, map, d);
    side.saturating_add(step - 1)
        .checked_div(step)
        .unwrap_or(1)
        .max(1)
}
