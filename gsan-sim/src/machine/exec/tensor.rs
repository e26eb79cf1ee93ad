//! `cp.async.bulk.tensor`: boxes of a tensor in global memory, to and from shared memory. Done at issue, as all copies are.

use super::{Exec, Failed, Halt};
use crate::machine::alu::lanes;
use crate::machine::ir::{NONE, Space, TensorKind, TensorOp};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;
use crate::machine::tensor_map::{BYTES, DIMENSIONS, TensorMap};

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
            let boxes = boxes(&map, &coordinates, op.rows).map_err(at)?;
            let targets = self.targets(shared[l], self.blocks(warp, op.blocks, l));
            for &target in &targets {
                if !target.is_multiple_of(SHARED_ALIGN) {
                    return Err(at(Halt::fault(FaultKind::Misaligned, target)));
                }
            }
            let bytes = map.box_bytes();
            for (n, corner) in boxes.iter().enumerate() {
                let first = bytes * n as u64;
                match op.kind {
                    TensorKind::Load => self.load_box(warp, &map, corner, &targets, first, l),
                    _ => self.store_box(warp, &map, corner, targets[0], first, op.kind, l),
                }
                .map_err(at)?;
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
        corner: &[i32; DIMENSIONS],
        targets: &[u64],
        first: u64,
        l: usize,
    ) -> Result<(), Halt> {
        let size = map.ty.bytes();
        let per = (16 / size) as usize;
        let mut piece = [0u8; 16];
        let mut offset = first;
        let counts = map.counts();
        for row in rows(counts) {
            // Sixteen bytes of a row at a time: they stay together in shared memory.
            for start in (0..counts[0]).step_by(per) {
                let n = (counts[0] - start).min(per as u64);
                for i in 0..n {
                    let mut index = row;
                    index[0] = start + i;
                    let value = match map.element(corner, index) {
                        Some(address) => {
                            self.load_lane(warp, Space::Global, address, size as u8, l)?
                        }
                        None => map.outside(),
                    };
                    let at = (i * size) as usize;
                    piece[at..at + size as usize]
                        .copy_from_slice(&value.to_le_bytes()[..size as usize]);
                }
                for &target in targets {
                    for i in (0..n * size).step_by(size as usize) {
                        let mut word = [0; 8];
                        word[..size as usize]
                            .copy_from_slice(&piece[i as usize..][..size as usize]);
                        let to = map.shared(target, offset + i);
                        let value = u64::from_le_bytes(word);
                        self.store_lane(warp, Space::SharedCluster, to, size as u8, value, l)?;
                    }
                }
                offset += n * size;
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn store_box(
        &mut self,
        warp: &mut Warp,
        map: &TensorMap,
        corner: &[i32; DIMENSIONS],
        from: u64,
        first: u64,
        kind: TensorKind,
        l: usize,
    ) -> Result<(), Halt> {
        let size = map.ty.bytes();
        let mut offset = first;
        let counts = map.counts();
        for row in rows(counts) {
            for i in 0..counts[0] {
                let mut index = row;
                index[0] = i;
                if let Some(address) = map.element(corner, index) {
                    let at = map.shared(from, offset);
                    let mut value =
                        self.load_lane(warp, Space::SharedCluster, at, size as u8, l)?;
                    if let TensorKind::Reduce(op) = kind {
                        let old = self.load_lane(warp, Space::Global, address, size as u8, l)?;
                        let ty = map.ty.reduction(op);
                        value = super::atomic::apply(op, ty, old, value, 0);
                    }
                    self.store_lane(warp, Space::Global, address, size as u8, value, l)?;
                }
                offset += size;
            }
        }
        Ok(())
    }
}

/// The corners of the boxes: one, or with `rows` one for each of four rows.
fn boxes(map: &TensorMap, coordinates: &[i32], rows: bool) -> Result<Vec<[i32; DIMENSIONS]>, Halt> {
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

/// The index of each row's first element.
fn rows(counts: [u64; DIMENSIONS]) -> impl Iterator<Item = [u64; DIMENSIONS]> {
    let [_, a, b, c, d] = counts;
    (0..a * b * c * d).map(move |i| [0, i % a, i / a % b, i / a / b % c, i / a / b / c])
}
