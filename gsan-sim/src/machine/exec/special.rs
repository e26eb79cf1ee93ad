//! Special registers.

use super::Exec;
use crate::machine::ir::Special;
use crate::machine::state::Warp;
use crate::machine::ty::Row;

/// `%globaltimer` at the first step, in nanoseconds; a step takes one.
const EPOCH: u64 = 1_700_000_000_000_000_000;

impl Exec<'_> {
    pub(super) fn special(&self, warp: &Warp, s: Special) -> Row {
        let all = |x: u64| [x; 32];
        let grid = self.grid;
        let at = |v: [u32; 3], d: u8| u64::from(v[usize::from(d.min(2))]);
        let clusters = |d: u8| at(grid.grid, d) / at(grid.cluster, d).max(1);
        let lanes = |f: fn(u32) -> u32| {
            let mut row = [0; 32];
            for (l, x) in row.iter_mut().enumerate() {
                *x = u64::from(f(l as u32));
            }
            row
        };
        match s {
            Special::Tid(d) => {
                let mut row = [0; 32];
                for (l, x) in row.iter_mut().enumerate() {
                    *x = u64::from(
                        thread_index(warp.index * 32 + l as u32, grid.block)[usize::from(d)],
                    );
                }
                row
            }
            Special::Ntid(d) => all(at(grid.block, d)),
            Special::Ctaid(d) => all(at(self.block.index, d)),
            Special::Nctaid(d) => all(at(grid.grid, d)),
            Special::LaneId => lanes(|l| l),
            Special::WarpId => all(u64::from(warp.index)),
            Special::NwarpId => all(u64::from(self.config.threads_per_sm / 32)),
            Special::SmId => all(u64::from(self.block.sm)),
            Special::NsmId => all(u64::from(self.config.sms)),
            Special::GridId => all(grid.id.0),
            Special::LanemaskEq => lanes(|l| 1 << l),
            Special::LanemaskLt => lanes(|l| (1 << l) - 1),
            Special::LanemaskLe => lanes(|l| (1 << l) | ((1 << l) - 1)),
            Special::LanemaskGt => lanes(|l| !((1 << l) | ((1 << l) - 1))),
            Special::LanemaskGe => lanes(|l| !((1 << l) - 1)),
            Special::Clock => all(*self.steps & 0xffff_ffff),
            Special::ClockHi => all(*self.steps >> 32),
            Special::Clock64 => all(*self.steps),
            Special::GlobalTimer => all(EPOCH + *self.steps),
            Special::GlobalTimerLo => all((EPOCH + *self.steps) & 0xffff_ffff),
            Special::GlobalTimerHi => all((EPOCH + *self.steps) >> 32),
            Special::DynamicSharedSize => all(u64::from(grid.dynamic_shared)),
            Special::TotalSharedSize => all(u64::from(grid.shared_bytes().next_multiple_of(128))),
            Special::AggregateSharedSize => {
                all(u64::from(grid.shared_bytes() + self.config.reserved_shared))
            }
            Special::ReservedSharedEnd => all(u64::from(self.config.reserved_shared)),
            Special::ReservedSharedBegin => all(0),
            // What the system keeps where is its own affair; cooperative groups ask for the second place.
            Special::ReservedSharedOffset(n) => {
                all(u64::from(self.config.reserved_shared) / 2 * u64::from(n))
            }
            Special::ClusterId(d) => all(at(self.block.index, d) / at(grid.cluster, d).max(1)),
            Special::NclusterId(d) => all(clusters(d)),
            Special::ClusterCtaId(d) => all(at(self.block.index, d) % at(grid.cluster, d).max(1)),
            Special::ClusterNctaId(d) => all(at(grid.cluster, d).max(1)),
            Special::ClusterCtaRank => all(u64::from(self.block.rank)),
            Special::ClusterNctaRank => all(u64::from(grid.cluster_size())),
            Special::IsExplicitCluster => all(u64::from(grid.cluster_size() > 1)),
            // Cooperative groups find their grid's workspace here: the upper half in 1, the lower in 2.
            Special::EnvReg(1) => all(grid.workspace >> 32),
            Special::EnvReg(2) => all(grid.workspace & 0xffff_ffff),
            Special::EnvReg(_) | Special::Pm(_) => all(0),
        }
    }
}

/// `%tid` of a thread by its number in the block.
pub fn thread_index(n: u32, block: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = block.map(|d| d.max(1));
    [n % x, n / x % y, n / x / y]
}
