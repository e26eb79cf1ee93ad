//! Barriers of a block, of a cluster and of a warp. Threads arrive one by one; those that have exited do not count.

use super::{End, Exec, Failed, Flow, Halt, set_predicate, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{Barrier, BarrierKind, CONSTANT, NONE, Op, Program, Src};
use crate::machine::state::{BARRIERS, BarrierState, Block, Group, State, Warp};
use crate::machine::stop::FaultKind;

impl Exec<'_> {
    pub(super) fn barrier(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        b: &Barrier,
    ) -> Result<Flow, Failed> {
        let lane = mask.trailing_zeros();
        let frame = warp.groups[warp.current].frame;
        self.of_one_barrier(warp, mask, b)?;
        let id = self.row(warp, frame, b.id)[lane as usize];
        let count = if b.count == NONE {
            0
        } else {
            self.row(warp, frame, b.count)[lane as usize]
        };
        let threads = u64::from(self.grid.threads());
        if id >= BARRIERS as u64 {
            return Err((misuse(format!("barrier {id}: there are {BARRIERS}")), lane));
        }
        if b.count != NONE
            && (count == 0 || count % 32 != 0 || count > threads.next_multiple_of(32))
        {
            return Err((
                misuse(format!(
                    "barrier {id} with a count of {count} in a block of {threads} threads"
                )),
                lane,
            ));
        }
        self.isolate(warp, mask);
        if warp.groups.len() > 1 {
            let stays = b.kind != BarrierKind::Arrive;
            self.meets(warp, [b.aligned, stays], Some(id as usize))?;
            warp.parted_at_barrier |= self.notices_passing(b.aligned && stays);
        }
        let p = super::predicate(warp, frame, b.p) & mask;
        let reduction = match b.kind {
            BarrierKind::Sync | BarrierKind::Arrive => None,
            kind => Some(kind),
        };
        let state = &mut self.block.barriers[id as usize];
        if state.arrived == 0 {
            *state = BarrierState {
                count: count as u32,
                all: true,
                reduction,
                ..BarrierState::default()
            };
        } else if state.count != count as u32 {
            let expected = state.count;
            return Err((
                misuse(format!(
                    "barrier {id} with a count of {count} and of {expected} at once"
                )),
                lane,
            ));
        } else if state.reduction != reduction {
            return Err((
                misuse(format!(
                    "barrier {id}: threads come to it by barrier.red, and others by another reduction, barrier.sync or barrier.arrive, \
                     before it is complete; use one kind, or two barriers"
                )),
                lane,
            ));
        }
        // With a count, a warp arrives as a whole, lanes that have exited or never were included: they come with the last
        // of the others. One that arrived first and has exited since has been counted.
        let counted = &mut warp.counted[id as usize];
        let lanes = if count != 0 && (*counted | mask) & warp.live == warp.live {
            !*counted | mask
        } else {
            mask
        };
        if *counted == 0 {
            warp.came_by[id as usize] = warp.groups[warp.current].pc;
        }
        *counted |= lanes;
        state.arrived += lanes.count_ones();
        state.popc += p.count_ones();
        state.all &= p == mask;
        state.any |= p != 0;
        let complete = state.is_complete(self.block.live);
        let group = &mut warp.groups[warp.current];
        if b.kind == BarrierKind::Arrive {
            group.pc += 1;
        } else {
            group.state = State::Barrier(id as u8);
        }
        Ok(if complete {
            Flow::End(End::Barrier)
        } else {
            Flow::Moved
        })
    }

    /// A warp comes to one barrier with one thread count: it waits for its own lanes first. (An H200 ends with 715 where it does
    /// not, with `.aligned` or without.)
    fn of_one_barrier(&self, warp: &Warp, mask: u32, b: &Barrier) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let first = mask.trailing_zeros() as usize & 31;
        let mut others = 0;
        for s in [b.id, b.count] {
            if s != NONE && s & CONSTANT == 0 {
                let row = self.row(warp, frame, s);
                lanes!(mask, l, others |= u32::from(row[l] != row[first]) << l);
            }
        }
        if others == 0 {
            return Ok(());
        }
        let detail = format!(
            "lanes {others:#x} of warp {} name another barrier or thread count than the others: {ONE_BARRIER}",
            warp.index
        );
        Err((misuse(detail), others.trailing_zeros()))
    }

    pub(super) fn cluster_barrier(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        [arrive, wait, aligned]: [bool; 3],
    ) -> Result<Flow, Failed> {
        let (again, early) = (warp.cluster_arrived & mask, mask & !warp.cluster_arrived);
        if arrive && again != 0 {
            let detail = "a thread arrives at the cluster's barrier again without having waited for the last phase: put \
                          barrier.cluster.wait between";
            return Err((misuse(detail.to_string()), again.trailing_zeros()));
        }
        if wait && !arrive && early != 0 {
            let detail = "a thread waits at the cluster's barrier without having arrived: barrier.cluster.arrive comes first";
            return Err((misuse(detail.to_string()), early.trailing_zeros()));
        }
        self.isolate(warp, mask);
        if warp.groups.len() > 1
            && wait
            && self.cluster.phase == warp.groups[warp.current].cluster_phase
        {
            self.meets(warp, [aligned, true], None)?;
            warp.parted_at_barrier |= self.notices_passing(aligned);
        }
        if wait {
            warp.cluster_arrived &= !mask;
        } else {
            warp.cluster_arrived |= mask;
        }
        let group = &mut warp.groups[warp.current];
        let mut complete = false;
        if arrive {
            group.cluster_phase = self.cluster.phase;
            self.cluster.arrived += mask.count_ones();
            complete = self.cluster.arrived >= self.cluster.live;
        }
        if wait && (complete || self.cluster.phase == group.cluster_phase) {
            group.state = State::Cluster(group.cluster_phase + 1);
        } else {
            group.pc += 1;
        }
        Ok(if complete {
            Flow::End(End::Cluster)
        } else {
            Flow::Moved
        })
    }

    pub(super) fn grid_wait(&mut self, warp: &mut Warp, mask: u32) -> Flow {
        if self.grid.prerequisite.is_none() {
            return Flow::Next;
        }
        self.isolate(warp, mask);
        warp.groups[warp.current].state = State::GridWait;
        Flow::End(End::GridWait)
    }

    pub(super) fn launch_dependents(&mut self, warp: &mut Warp, mask: u32) -> Flow {
        if std::mem::replace(&mut self.block.triggered, true) {
            return Flow::Next;
        }
        self.isolate(warp, mask);
        warp.groups[warp.current].pc += 1;
        Flow::End(End::Triggered)
    }

    /// `bar.warp.sync`: the lanes of the mask may stand at different instructions of that kind.
    pub(super) fn warp_sync(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        masks: Src,
    ) -> Result<Flow, Failed> {
        self.split_by_mask(warp, mask, masks, false, |exec, warp, g, named| {
            let wanted = named & warp.live;
            if wanted & warp.groups[g].mask == 0 {
                // Undefined by the manual, harmless on the hardware: who is not in the mask does not wait.
                warp.groups[g].pc += 1;
                return;
            }
            warp.groups[g].state = State::WarpSync;
            let waits = |g: &Group| g.state == State::WarpSync && g.mask & wanted == g.mask;
            let there = warp
                .groups
                .iter()
                .filter(|g| waits(g))
                .fold(0, |m, g| m | g.mask);
            if there != wanted {
                return;
            }
            for group in warp.groups.iter_mut().filter(|g| waits(g)) {
                group.state = State::Ready;
                group.pc += 1;
                group.last = *exec.steps;
            }
        })
    }
}

/// What to do about lanes at different barriers.
pub(super) const ONE_BARRIER: &str = "all lanes of a warp must come to the same barrier, with the same thread count; let whole warps take \
     each branch, or use bar.warp.sync";

pub(super) fn misuse(detail: String) -> Halt {
    Halt::of(FaultKind::Barrier, 0, detail)
}

/// Ends a barrier's phase: its waiters go on, with the result of a reduction.
pub fn release(block: &mut Block, program: &Program, id: usize, now: u64) {
    let done = std::mem::take(&mut block.barriers[id]);
    for warp in &mut block.warps {
        warp.counted[id] = 0;
        for g in 0..warp.groups.len() {
            if warp.groups[g].state != State::Barrier(id as u8) {
                continue;
            }
            let group = &mut warp.groups[g];
            group.state = State::Ready;
            group.last = now;
            let (pc, mask, frame) = (group.pc, group.mask, group.frame);
            group.pc += 1;
            if let Some(Op::Barrier(b)) = program.code.get(pc as usize).map(|i| &i.op) {
                match b.kind {
                    BarrierKind::Popc => write(warp, frame, b.d, &[u64::from(done.popc); 32], mask),
                    BarrierKind::And => {
                        set_predicate(warp, frame, b.d, if done.all { u32::MAX } else { 0 }, mask)
                    }
                    BarrierKind::Or => {
                        set_predicate(warp, frame, b.d, if done.any { u32::MAX } else { 0 }, mask)
                    }
                    BarrierKind::Sync | BarrierKind::Arrive => {}
                }
            }
        }
    }
}
