//! `clusterlaunchcontrol.try_cancel`: the grid's next cluster is not placed any more; its first block goes to who asked.

use super::{Exec, Failed, Halt};
use crate::machine::alu::lanes;
use crate::machine::ir::{Space, TryCancel};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;

/// Bytes of an answer.
const ANSWER: u64 = 16;

impl Exec<'_> {
    pub(super) fn try_cancel(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &TryCancel,
    ) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let to = self.addresses(warp, frame, op.to);
        let barriers = self.addresses(warp, frame, op.barrier);
        // To every block of the cluster, or to the own one.
        let blocks = op.all.then(|| (1u64 << self.grid.cluster_size()) - 1);
        lanes!(mask, l, {
            let at = |h: Halt| (h, l as u32);
            if !to[l].is_multiple_of(ANSWER) {
                return Err(at(Halt::fault(FaultKind::Misaligned, to[l])));
            }
            let words = match self.grid.cancel() {
                Some([x, y, z]) => [u64::from(x) | u64::from(y) << 32, u64::from(z) | 1 << 32],
                None => [0, 0],
            };
            for to in self.targets(to[l], blocks) {
                for (i, word) in words.into_iter().enumerate() {
                    let to = to + 8 * i as u64;
                    self.store_lane(warp, Space::SharedCluster, to, 8, word, l)
                        .map_err(at)?;
                }
            }
            for barrier in self.targets(barriers[l], blocks) {
                self.transact(warp, Space::SharedCluster, barrier, -(ANSWER as i64), l)
                    .map_err(at)?;
            }
        });
        Ok(())
    }
}
