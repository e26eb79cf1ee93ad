//! The scheduler: which warp has the next turn, and what happens when a turn ends.
//!
//! All choices come from one seeded generator and from nothing that differs between runs (no addresses, no time).

use rand_core::RngCore;

use super::exec::{End, Exec, barrier_release};
use super::ir::NONE;
use super::state::{BARRIERS, Block, State, Warp};
use super::{Machine, RunEvent, Stop, TraceStep};
use crate::ExitedWarps;

/// What a multiprocessor holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sm {
    pub blocks: u32,
    pub threads: u32,
    pub shared: u32,
}

impl Machine {
    /// Runs for at most `max_steps` warp instructions, or until a grid completes or something stops the run.
    pub fn run(&mut self, max_steps: u64) -> RunEvent {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        self.place();
        let until = self.steps.saturating_add(max_steps.max(1));
        loop {
            if self.ready.is_empty() {
                if self.grids.iter().all(Option::is_none) {
                    return RunEvent::Idle;
                }
                return self.stop(self.deadlock());
            }
            if self.steps >= until {
                return RunEvent::Yield;
            }
            if self.steps - self.budget_start >= self.config.step_budget {
                return self.stop(self.out_of_budget());
            }
            while let Some((block, warp, number)) = self.flights.next(self.steps) {
                if let Err(stop) = self.land(block, warp as usize, number) {
                    return self.stop(stop);
                }
            }
            let pick = match self.priorities {
                None => ((u64::from(self.rng.next_u32()) * self.ready.len() as u64) >> 32) as usize,
                Some(_) => self.highest(),
            };
            let (block, warp) = self.ready[pick];
            if let Err(stop) = self.turn(block as usize, warp as usize) {
                return self.stop(stop);
            }
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            if !self.released.is_empty() {
                return RunEvent::Yield;
            }
        }
    }

    /// The place of the ready warp with the highest priority.
    fn highest(&self) -> usize {
        let priority = |&(block, warp): &(u32, u32)| {
            let block = self.blocks[block as usize].as_ref();
            block.map_or(i64::MIN, |b| b.warps[warp as usize].rank.priority)
        };
        (0..self.ready.len())
            .max_by_key(|&i| (priority(&self.ready[i]), std::cmp::Reverse(self.ready[i])))
            .unwrap_or(0)
    }

    /// Gives one warp a turn.
    fn turn(&mut self, slot: usize, index: usize) -> Result<(), Stop> {
        let longest = self.config.preempt.turn.max(1);
        let turn = 1 + self.rng.next_u32() % longest;
        let careful = self.weak.is_some() || self.priorities.is_some();
        let end = self.with_warp(slot, index, |exec, warp| {
            if careful {
                exec.careful_turn(warp, turn)
            } else {
                exec.turn(warp, turn)
            }
        })?;
        let ended = self.blocks[slot]
            .as_ref()
            .is_some_and(|b| b.warps[index].groups.is_empty());
        match end {
            End::Barrier => self.release(slot)?,
            End::Cluster => self.release_cluster(slot),
            End::GridWait => self.pass_grid_wait(slot),
            End::Triggered => self.block_triggered(slot),
            _ => {}
        }
        self.update_ready(slot, index);
        if ended && self.blocks[slot].as_ref().is_some_and(|b| b.live == 0) {
            self.finish_block(slot);
        }
        Ok(())
    }

    /// A warp's copy lands, if it has not.
    fn land(&mut self, slot: usize, index: usize, number: u64) -> Result<(), Stop> {
        let is_there = |block: &Block| {
            let warp = block.warps.get(index);
            warp.is_some_and(|w| w.copies.is_some())
        };
        if !self
            .blocks
            .get(slot)
            .and_then(Option::as_deref)
            .is_some_and(is_there)
        {
            return Ok(());
        }
        self.with_warp(slot, index, |exec, warp| {
            match exec.land_number(warp, number) {
                Ok(()) => End::Preempted,
                Err((halt, lane)) => End::Halt(halt, lane),
            }
        })?;
        Ok(())
    }

    /// Lets a warp do something.
    fn with_warp(
        &mut self,
        slot: usize,
        index: usize,
        act: impl FnOnce(&mut Exec<'_>, &mut Warp) -> End,
    ) -> Result<End, Stop> {
        let Some(mut block) = self.blocks[slot].take() else {
            return Ok(End::Preempted);
        };
        let mut warp = std::mem::take(&mut block.warps[index]);
        let (Some(grid), Some(cluster)) =
            (&self.grids[block.grid], &mut self.clusters[block.cluster])
        else {
            block.warps[index] = warp;
            self.blocks[slot] = Some(block);
            return Ok(End::Preempted);
        };
        let mut exec = Exec {
            memory: &mut self.memory,
            config: &self.config,
            program: &grid.program,
            grid,
            block: &mut block,
            shared: &mut self.shared,
            block_slot: slot,
            function: grid.function,
            cluster,
            rng: &mut self.rng,
            output: &mut self.output,
            heap: &mut self.heap,
            trace: &mut self.trace,
            steps: &mut self.steps,
            thread_steps: &mut self.thread_steps,
            until_preempt: &mut self.until_preempt,
            until_switch: &mut self.until_switch,
            flights: &mut self.flights,
            weak: self.weak.as_deref_mut(),
            priorities: self.priorities.as_mut(),
        };
        let end = act(&mut exec, &mut warp);
        if let End::Halt(halt, lane) = end {
            let stop = self.halted(halt, lane, &block, &warp);
            block.warps[index] = warp;
            self.blocks[slot] = Some(block);
            return Err(stop);
        }
        block.warps[index] = warp;
        self.blocks[slot] = Some(block);
        Ok(end)
    }

    /// Ends the phases of a block's barriers that are complete.
    fn release(&mut self, slot: usize) -> Result<(), Stop> {
        let Some(block) = &mut self.blocks[slot] else {
            return Ok(());
        };
        if self.config.exited_warps == ExitedWarps::Fault
            && let Some(id) = (0..BARRIERS).find(|&id| block.lacks_warps(id))
        {
            return Err(self.exited_at_barrier(slot, id));
        }
        let live = block.live;
        let mut any = false;
        for id in 0..BARRIERS {
            if block.barriers[id].is_complete(live)
                && let Some(grid) = &self.grids[block.grid]
            {
                if self.config.trace {
                    self.trace.push(TraceStep::Barrier {
                        grid: grid.id,
                        block: block.index,
                        id: id as u32,
                    });
                }
                if let Some(weak) = &mut self.weak {
                    weak.leave(slot, block, id);
                }
                barrier_release(block, &grid.program, id, self.steps);
                any = true;
            }
        }
        if any {
            for warp in 0..block.warps.len() {
                self.update_ready(slot, warp);
            }
        }
        // An exit may also have been what a cluster barrier waited for.
        self.release_cluster(slot);
        Ok(())
    }

    fn release_cluster(&mut self, slot: usize) {
        let Some(number) = self.blocks[slot].as_ref().map(|b| b.cluster) else {
            return;
        };
        let Some(cluster) = self.clusters[number].as_mut() else {
            return;
        };
        if cluster.arrived == 0 || cluster.arrived < cluster.live {
            return;
        }
        cluster.arrived = 0;
        cluster.phase += 1;
        let phase = cluster.phase;
        if let Some(weak) = &mut self.weak {
            weak.complete_cluster(number);
        }
        for other in cluster.blocks.clone().into_iter().flatten() {
            let Some(block) = &mut self.blocks[other] else {
                continue;
            };
            for index in 0..block.warps.len() {
                let Some(block) = &mut self.blocks[other] else {
                    continue;
                };
                for group in &mut block.warps[index].groups {
                    if matches!(group.state, State::Cluster(until) if until <= phase) {
                        group.state = State::Ready;
                        group.pc += 1;
                        group.last = self.steps;
                        if let Some(weak) = &mut self.weak {
                            weak.leave_cluster((other, index as u32), number);
                        }
                    }
                }
                self.update_ready(other, index);
            }
        }
    }

    /// Enters a warp into the list of ready warps, or takes it out.
    pub(super) fn update_ready(&mut self, slot: usize, index: usize) {
        let Some(block) = &mut self.blocks[slot] else {
            return;
        };
        let warp: &mut Warp = &mut block.warps[index];
        let (is, was) = (warp.has_ready(), warp.ready_at != NONE);
        if is && !was {
            warp.ready_at = self.ready.len() as u32;
            self.ready.push((slot as u32, index as u32));
        } else if !is && was {
            let at = warp.ready_at as usize;
            warp.ready_at = NONE;
            self.ready.swap_remove(at);
            if let Some(&(block, warp)) = self.ready.get(at)
                && let Some(block) = &mut self.blocks[block as usize]
            {
                block.warps[warp as usize].ready_at = at as u32;
            }
        }
    }

    fn finish_block(&mut self, slot: usize) {
        let Some(block) = self.blocks[slot].take() else {
            return;
        };
        if let Some(cluster) = &mut self.clusters[block.cluster] {
            cluster.resident -= 1;
            if let Some(place) = cluster.blocks.get_mut(block.rank as usize) {
                *place = None;
            }
            if cluster.resident == 0 {
                self.clusters[block.cluster] = None;
            }
        }
        let Some(grid) = &mut self.grids[block.grid] else {
            return;
        };
        let sm = &mut self.sms[block.device as usize][block.sm as usize];
        sm.blocks -= 1;
        sm.threads -= grid.threads().next_multiple_of(32);
        sm.shared -= grid.shared_bytes() + self.config.reserved_shared;
        grid.done += 1;
        if !block.triggered {
            grid.triggered += 1;
            if grid.watched && grid.all_triggered() && !grid.is_over() {
                self.released.push(grid.id);
            }
        }
        if grid.is_over() {
            let id = grid.id;
            if let Some(priorities) = &mut self.priorities {
                priorities.forget(id.0);
            }
            self.settle();
            self.drop_grid(block.grid);
            self.prerequisite_ended(id);
            self.budget_start = self.steps;
            if self.config.trace {
                self.trace.push(TraceStep::End { grid: id });
            }
            self.events.push_back(RunEvent::Completed(id));
        }
        self.place();
    }

    fn drop_grid(&mut self, slot: usize) {
        if let Some(grid) = self.grids[slot].take() {
            for va in [grid.param_address, grid.workspace] {
                if va != 0 {
                    self.memory.free_internal(va);
                }
            }
        }
    }

    fn stop(&mut self, stop: Stop) -> RunEvent {
        self.abort();
        self.budget_start = self.steps;
        RunEvent::Stopped(stop)
    }

    /// Ends all grids where they are.
    pub fn abort(&mut self) {
        self.settle();
        for slot in 0..self.grids.len() {
            self.drop_grid(slot);
        }
        self.blocks.clear();
        self.shared.clear();
        self.clusters.clear();
        self.ready.clear();
        self.released.clear();
        self.flights.clear();
        self.queues.iter_mut().for_each(|q| q.clear());
        self.sms
            .iter_mut()
            .flatten()
            .for_each(|sm| *sm = Sm::default());
    }
}
