//! `wgmma`: four warps multiply 64 rows, each its own 16. Each warp's part is computed when that warp issues it, which is a
//! legal execution; a wait lasts until all four have issued what it waits for.

use super::descriptor::Descriptor;
use super::{Exec, Failed, predicate, product, sparse, write};
use crate::machine::element::Element;
use crate::machine::ir::GroupProduct;
use crate::machine::state::Warp;
use crate::machine::ty::Row;

impl Exec<'_> {
    pub(super) fn group_product(
        &mut self,
        warp: &mut Warp,
        op: &GroupProduct,
    ) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let p = &op.product;
        let [negate_a, negate_b] = op.negate;
        let at = |h| (h, 0);
        let b = Descriptor::wgmma(self.row(warp, frame, op.b)[0]);
        let b = self
            .described(b, p.b, 0, p.columns, p.depth, op.transposed[1], negate_b)
            .map_err(at)?;
        let there = if op.metadata.is_some() {
            p.depth / 2
        } else {
            p.depth
        };
        let mut a = match op.a[..] {
            [descriptor] => {
                let a = Descriptor::wgmma(self.row(warp, frame, descriptor)[0]);
                let first = 16 * (warp.index as usize % 4);
                self.described(a, p.a, first, 16, there, op.transposed[0], negate_a)
                    .map_err(at)?
            }
            _ => {
                let rows = self.rows(warp, frame, &op.a);
                let mut a = product::left(&rows, p.a, there);
                if negate_a {
                    a.iter_mut().for_each(|x| *x = -*x);
                }
                a
            }
        };
        if let Some((metadata, selector)) = op.metadata {
            let metadata = self.row(warp, frame, metadata);
            a = sparse::spread(p, &a, metadata, selector as usize);
        }
        let accumulate = predicate(warp, frame, op.accumulate) & 1 == 1;
        let before: Vec<Row> = op.d.iter().map(|&d| *self.row(warp, frame, d)).collect();
        let mut out = vec![[0u64; 32]; op.d.len()];
        // Eight columns after the other lie as `mma` has them.
        let place = |m: usize, n: usize| {
            let (lane, index) = (4 * (m % 8) + n % 8 / 2, 2 * (m / 8) + n % 2);
            if p.d == Element::F16 {
                (n / 8 * 2 + index / 2, lane, 16 * (index as u32 % 2))
            } else {
                (n / 8 * 4 + index, lane, 0)
            }
        };
        p.compute(
            &a,
            &b,
            |m, n| {
                let (register, lane, shift) = place(m, n);
                if accumulate {
                    p.d.decode(before[register][lane] >> shift & p.d.mask())
                } else {
                    0.0
                }
            },
            |m, n, bits| {
                let (register, lane, shift) = place(m, n);
                out[register][lane] |= bits << shift;
            },
        );
        for (&d, row) in op.d.iter().zip(&out) {
            write(warp, frame, d, row, u32::MAX);
        }
        Ok(())
    }

    /// Whether all but the last `pending` groups of this warp are complete: the warpgroup's others have issued them too.
    pub(super) fn group_is_done(&self, warp: &Warp, pending: u32) -> bool {
        let wanted = warp.groups_committed.saturating_sub(pending);
        let first = warp.index & !3;
        self.block
            .warps
            .iter()
            .filter(|w| w.index & !3 == first && w.index != warp.index && w.live != 0)
            .all(|w| w.groups_committed >= wanted)
    }
}
