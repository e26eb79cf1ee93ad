//! `cp.async.bulk.tensor`: boxes of a tensor in global memory, to and from shared memory. When: `late.rs`.
//!
//! What an H200 does not take, and answers with an illegal instruction: a first coordinate that is no multiple of 16 bytes,
//! and a negative coordinate of a store.

use super::{Exec, Failed, Halt, atomic};
use crate::machine::alu::lanes;
use crate::machine::ir::{AtomicOp, NONE, Space, TensorKind, TensorOp};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;
use crate::machine::tensor_map::{BYTES, DIMENSIONS, TensorMap, TensorType};

/// Alignment of a box in shared memory.
const SHARED_ALIGN: u64 = 128;
/// Alignment of a tensor map.
const MAP_ALIGN: u64 = 64;

impl Exec<'_> {
    pub(super) fn tensor_copy(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &TensorOp,
    ) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let maps = *self.row(warp, frame, op.map);
        let shared = self.addresses(warp, frame, op.shared.1);
        let barriers = op.barrier.map(|addr| self.addresses(warp, frame, addr));
        lanes!(mask, l, {
            let at = |h: Halt| (h, l as u32);
            let map = self.tensor_map(warp, maps[l], l).map_err(at)?;
            let coordinates: Vec<i32> = op
                .coordinates
                .iter()
                .map(|&c| self.row(warp, frame, c)[l] as i32)
                .collect();
            let boxes = boxes(&map, &coordinates, op).map_err(at)?;
            let targets = self.targets(shared[l], self.blocks(warp, op.blocks, l));
            for &target in &targets {
                if !target.is_multiple_of(SHARED_ALIGN) {
                    return Err(at(Halt::fault(FaultKind::Misaligned, target)));
                }
            }
            let offsets: Vec<u16> = op
                .offsets
                .iter()
                .map(|&o| self.row(warp, frame, o)[l] as u16)
                .collect();
            let bytes = map.box_bytes();
            let mut first = 0;
            for corner in &boxes {
                check_corner(&map, corner, op.kind).map_err(at)?;
                let rows = map.rows(corner, &offsets);
                match op.kind {
                    TensorKind::Load => self.load_box(warp, &map, &rows, &targets, first, l),
                    _ => self.store_box(warp, &map, &rows, targets[0], first, op.kind, l),
                }
                .map_err(at)?;
                first += map.pitch() * rows.len() as u64;
            }
            if let Some(barriers) = &barriers {
                let done = (bytes * boxes.len() as u64) as i64;
                for barrier in self.targets(barriers[l], self.blocks(warp, op.blocks, l)) {
                    self.transact(warp, Space::SharedCluster, barrier, -done, l)
                        .map_err(at)?;
                }
            }
        });
        Ok(())
    }

    /// The blocks that a multicast names; `None`: there is no multicast.
    pub(super) fn blocks(&self, warp: &Warp, blocks: u32, l: usize) -> Option<u64> {
        let frame = warp.groups[warp.current].frame;
        (blocks != NONE).then(|| self.row(warp, frame, blocks)[l] & 0xffff)
    }

    /// The same offset in each of the blocks.
    pub(super) fn targets(&self, address: u64, blocks: Option<u64>) -> Vec<u64> {
        match blocks {
            None => vec![address],
            Some(blocks) => (0..16)
                .filter(|rank| blocks >> rank & 1 == 1)
                .map(|rank| address & 0xff_ffff | (rank + 1) << 24)
                .collect(),
        }
    }

    fn tensor_map(&mut self, warp: &Warp, address: u64, l: usize) -> Result<TensorMap, Halt> {
        if !address.is_multiple_of(MAP_ALIGN) {
            return Err(Halt::fault(FaultKind::Misaligned, address));
        }
        let mut bytes = [0; BYTES];
        for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
            let at = address.wrapping_add(8 * i as u64);
            let value = self.load_lane(warp, Space::Generic, at, 8, l)?;
            word.copy_from_slice(&value.to_le_bytes());
        }
        TensorMap::decode(&bytes).map_err(|detail| Halt::Fault {
            kind: FaultKind::IllegalInstruction,
            address,
            detail,
        })
    }

    fn load_box(
        &mut self,
        warp: &mut Warp,
        map: &TensorMap,
        rows: &[[i64; DIMENSIONS]],
        targets: &[u64],
        first: u64,
        l: usize,
    ) -> Result<(), Halt> {
        let size = map.ty.bytes();
        for (n, row) in rows.iter().enumerate() {
            let line = first + map.pitch() * n as u64;
            for i in 0..map.counts()[0] {
                let mut at = *row;
                at[0] += i as i64;
                let value = match map.element(at) {
                    Some(address) => {
                        let bits = self.load_lane(warp, Space::Global, address, size as u8, l)?;
                        map.ty.loaded(bits)
                    }
                    None => map.outside(),
                };
                for &target in targets {
                    let to = map.shared(target + line, i * size);
                    self.store_lane(warp, Space::SharedCluster, to, size as u8, value, l)?;
                }
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn store_box(
        &mut self,
        warp: &mut Warp,
        map: &TensorMap,
        rows: &[[i64; DIMENSIONS]],
        from: u64,
        first: u64,
        kind: TensorKind,
        l: usize,
    ) -> Result<(), Halt> {
        let size = map.ty.bytes();
        for (n, row) in rows.iter().enumerate() {
            let line = first + map.pitch() * n as u64;
            for i in 0..map.counts()[0] {
                let mut at = *row;
                at[0] += i as i64;
                let Some(address) = map.element(at) else {
                    continue;
                };
                let at = map.shared(from + line, i * size);
                let mut value = self.load_lane(warp, Space::SharedCluster, at, size as u8, l)?;
                if let TensorKind::Reduce(op) = kind {
                    let old = self.load_lane(warp, Space::Global, address, size as u8, l)?;
                    value = match (op, map.ty) {
                        (AtomicOp::Add, TensorType::F32Ftz) => atomic::add_flushed(old, value),
                        _ => atomic::apply(op, map.ty.reduction(op), old, value, 0),
                    };
                }
                self.store_lane(warp, Space::Global, address, size as u8, value, l)?;
            }
        }
        Ok(())
    }
}

/// What the hardware asks of a corner.
fn check_corner(map: &TensorMap, corner: &[i32; DIMENSIONS], kind: TensorKind) -> Result<(), Halt> {
    let bytes = i64::from(corner[0]) * map.ty.bytes() as i64;
    if bytes % 16 != 0 {
        return Err(Halt::illegal(format!(
            "first coordinate {}, {bytes} bytes, which is no multiple of 16",
            corner[0]
        )));
    }
    match corner[..map.rank].iter().find(|&&c| c < 0) {
        Some(c) if kind != TensorKind::Load => Err(Halt::illegal(format!(
            "coordinate {c} of a store: it cannot be negative"
        ))),
        _ => Ok(()),
    }
}

/// The corners of the boxes: one, or with `rows` one for each of four rows.
fn boxes(
    map: &TensorMap,
    coordinates: &[i32],
    op: &TensorOp,
) -> Result<Vec<[i32; DIMENSIONS]>, Halt> {
    let rows = op.rows;
    if op.windows != map.windows.is_some() {
        return Err(Halt::illegal(
            "an `.im2col` copy by a map for boxes, or the reverse",
        ));
    }
    let dimensions = if rows { 2 } else { coordinates.len() };
    if map.rank != dimensions {
        return Err(Halt::illegal(format!(
            "{dimensions} coordinates for a tensor map of {} dimensions",
            map.rank
        )));
    }
    let mut corner = [0; DIMENSIONS];
    if !rows {
        corner[..dimensions].copy_from_slice(coordinates);
        return Ok(vec![corner]);
    }
    corner[0] = coordinates[0];
    Ok(coordinates[1..]
        .iter()
        .map(|&row| {
            corner[1] = row;
            corner
        })
        .collect())
}
