//! Tensor maps: `cp.async.bulk.tensor` names a box by coordinates, and where its elements lie only the map says, 128 bytes of
//! the driver's that nobody else can read. The host keeps what it had them made from in a table on the device
//! ([`TensorMap`]); a map is looked up there by its bits. Elements outside the tensor are not accessed.

use crate::clock::State;
use crate::copies::coordinate;
use crate::layout::{GlobalState, TensorMap};
use crate::machine::{Machine, field};
use core::mem::size_of;

/// In a hook's `shape`: four rows, gathered or scattered.
pub const ROWS: u32 = 1 << 8;

/// The table's entry for the map at `map`.
pub fn find<M: Machine>(me: State<M>, map: u64) -> Option<u64> {
    let m = me.m;
    let table = m.load64(field!(me.global, GlobalState, tensor_maps));
    if table == 0 {
        return None;
    }
    let mask = m.load32(field!(me.global, GlobalState, tensor_mask));
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

/// Bytes of an element.
pub fn element<M: Machine>(me: State<M>, entry: u64) -> u32 {
    me.m.load32(field!(entry, TensorMap, element))
}

/// Calls `f` with the address and the bytes of each row of the box at `corner`, as far as it lies in the tensor.
pub fn each_row<M: Machine>(
    me: State<M>,
    entry: u64,
    corner: [i32; 5],
    mut f: impl FnMut(u64, u64),
) {
    let m = me.m;
    let element = element(me, entry) as u64;
    let extent = |d: u32| m.load64(field!(entry, TensorMap, extents).wrapping_add(8 * d as u64));
    let side = |d: u32| {
        let at = field!(entry, TensorMap, boxes).wrapping_add(4 * d as u64);
        m.load32(at) as i64
    };
    let rank = m.load32(field!(entry, TensorMap, rank));
    let from = coordinate(&corner, 0) as i64;
    let to = from.wrapping_add(side(0)).min(extent(0) as i64);
    let from = from.max(0);
    if from >= to {
        return;
    }
    let start = m
        .load64(field!(entry, TensorMap, address))
        .wrapping_add((from as u64).wrapping_mul(element));
    let bytes = (to.wrapping_sub(from) as u64).wrapping_mul(element);
    // Elements of the box in each further dimension, and how many rows that makes.
    let count = |d: u32| {
        let at = field!(entry, TensorMap, steps).wrapping_add(4 * d as u64);
        let step = m.load32(at).max(1) as u64;
        let side = (side(d) as u64).wrapping_add(step).wrapping_sub(1);
        (side.checked_div(step).unwrap_or(1).max(1), step)
    };
    let mut rows = 1u64;
    let mut d = 1;
    while d < rank {
        rows = rows.saturating_mul(count(d).0);
        d += 1;
    }
    let mut row = 0;
    while row < rows {
        let mut rest = row;
        let mut address = start;
        let mut inside = true;
        let mut d = 1;
        while d < rank {
            let (n, step) = count(d);
            let index = rest.checked_rem(n).unwrap_or(0);
            rest = rest.checked_div(n).unwrap_or(0);
            let at = (coordinate(&corner, d) as i64).wrapping_add(index.wrapping_mul(step) as i64);
            inside = inside && at >= 0 && (at as u64) < extent(d);
            let stride =
                m.load64(field!(entry, TensorMap, strides).wrapping_add(8 * (d as u64 - 1)));
            address = address.wrapping_add((at as u64).wrapping_mul(stride));
            d += 1;
        }
        if inside {
            f(address, bytes);
        }
        row += 1;
    }
}
