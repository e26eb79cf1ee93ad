//! What the warps of a block know of each other, from the words of its [`ThreadState`].

use gsan_device::layout::{Epoch, ThreadState};

/// The warps of a slot's latest tenant, and its barriers. What earlier tenants left in the words is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockView {
    /// Those that know something of others, or have fenced a release.
    pub warps: Vec<WarpView>,
    /// Those at which somebody arrived.
    pub barriers: Vec<BarrierView>,
}

/// One warp. `None`: nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarpView {
    /// Its number in the block.
    pub warp: u32,
    /// It knows all of the block's others up to this epoch.
    pub all: Option<Epoch>,
    /// It will know them up to this one when an acquire fence follows.
    pub after_fence: Option<Epoch>,
    /// It knows some of them up to this one.
    pub reach: Option<Epoch>,
    /// It knows these warps up to these epochs, through barriers of a part of the block.
    pub pairs: Vec<(u32, Epoch)>,
    /// The token that carries its last release fence.
    pub fence_token: Option<u32>,
}

/// One barrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarrierView {
    /// Its number.
    pub id: u32,
    /// The epoch that the last arrival closed.
    pub closed: Option<Epoch>,
    /// The same of arrivals without a thread count.
    pub whole_block: Option<Epoch>,
    /// What those who arrived with a thread count knew of each warp.
    pub knew: Vec<(u32, Epoch)>,
}

/// Decodes the state; `None` where the tenant's warps are not told apart.
pub fn in_block(state: &ThreadState) -> Option<BlockView> {
    if state.intra_block == 0 {
        return None;
    }
    let own = |epoch: Epoch| Some(epoch).filter(|e| *e != 0 && *e >= state.start_epoch);
    let row = |epochs: &[Epoch]| -> Vec<(u32, Epoch)> {
        let all = (0..).zip(epochs);
        all.filter_map(|(i, e)| Some((i, own(*e)?))).collect()
    };
    let warp = |i: usize| WarpView {
        warp: i as u32,
        all: own(state.warps[i]),
        after_fence: own(state.pending_warps[i]),
        reach: own(state.reach[i]),
        pairs: row(&state.pairs[i]),
        // A token from before the tenant came is another's.
        fence_token: Some(state.fence_tokens[i]).filter(|t| *t != 0 && *t >= state.first_token),
    };
    let barrier = |i: usize| BarrierView {
        id: i as u32,
        closed: own(state.barriers[i]),
        whole_block: own(state.whole_barriers[i]),
        knew: row(&state.barrier_rows[i]),
    };
    let warps = (0..ThreadState::WARPS).map(warp).filter(|w| !w.is_empty());
    let barriers = (0..ThreadState::BARRIERS)
        .map(barrier)
        .filter(|b| !b.is_empty());
    Some(BlockView {
        warps: warps.collect(),
        barriers: barriers.collect(),
    })
}

impl WarpView {
    fn is_empty(&self) -> bool {
        let epochs = self.all.or(self.after_fence).or(self.reach);
        epochs.or(self.fence_token).is_none() && self.pairs.is_empty()
    }
}

impl BarrierView {
    fn is_empty(&self) -> bool {
        self.closed.or(self.whole_block).is_none() && self.knew.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_tenant_left_is_not_shown() {
        let mut state = ThreadState {
            intra_block: 1,
            start_epoch: 7,
            epoch: 12,
            first_token: 3,
            ..Default::default()
        };
        state.warps[0] = 6;
        state.pairs[1][0] = 6;
        state.barriers[2] = 6;
        state.barrier_rows[2][1] = 1;
        state.fence_tokens[4] = 2;
        let nothing = BlockView {
            warps: vec![],
            barriers: vec![],
        };
        assert_eq!(in_block(&state), Some(nothing));

        state.warps[0] = 7;
        state.pending_warps[1] = 8;
        state.reach[1] = 9;
        state.pairs[1][0] = 10;
        state.fence_tokens[4] = 3;
        state.barriers[2] = 11;
        state.whole_barriers[2] = 10;
        state.barrier_rows[2][1] = 12;
        let block = in_block(&state).unwrap();
        let warp = |warp| WarpView {
            warp,
            all: None,
            after_fence: None,
            reach: None,
            pairs: vec![],
            fence_token: None,
        };
        assert_eq!(
            block.warps,
            [
                WarpView {
                    all: Some(7),
                    ..warp(0)
                },
                WarpView {
                    after_fence: Some(8),
                    reach: Some(9),
                    pairs: vec![(0, 10)],
                    ..warp(1)
                },
                WarpView {
                    fence_token: Some(3),
                    ..warp(4)
                },
            ]
        );
        let barrier = BarrierView {
            id: 2,
            closed: Some(11),
            whole_block: Some(10),
            knew: vec![(1, 12)],
        };
        assert_eq!(block.barriers, [barrier]);
        state.intra_block = 0;
        assert_eq!(in_block(&state), None);
    }
}
