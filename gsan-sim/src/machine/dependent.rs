//! Programmatic dependent launch: a grid that may start before the one before it has ended.
//!
//! A grid *releases* its dependents once each of its blocks has executed `griddepcontrol.launch_dependents` or has ended.
//! `griddepcontrol.wait` holds a thread until the grid that its own depends on (its *prerequisite*) has ended.

use super::state::State;
use super::{GridId, LaunchDesc, LaunchError, Machine};

impl Machine {
    /// Starts a grid that may run beside its prerequisite. A prerequisite that has ended is none.
    ///
    /// # Errors
    /// As [`Machine::launch`].
    pub fn launch_dependent(
        &mut self,
        launch: LaunchDesc,
        prerequisite: GridId,
    ) -> Result<GridId, LaunchError> {
        let id = self.launch(launch)?;
        if let Some(grid) = self.grids.iter_mut().flatten().find(|g| g.id == id) {
            grid.prerequisite = Some(prerequisite);
        }
        Ok(id)
    }

    /// Whether a running grid has released its dependents. If not, [`Machine::take_released`] will name it once it has.
    pub fn watch_release(&mut self, grid: GridId) -> bool {
        let grid = self.grids.iter_mut().flatten().find(|g| g.id == grid);
        grid.is_none_or(|grid| {
            grid.watched = true;
            grid.all_triggered()
        })
    }

    /// Watched grids that have come to release their dependents since the last call. Those that end without do not show
    /// up here.
    pub fn take_released(&mut self) -> Vec<GridId> {
        std::mem::take(&mut self.released)
    }

    /// A thread of the block was the first to execute `griddepcontrol.launch_dependents`.
    pub(super) fn block_triggered(&mut self, slot: usize) {
        let Some(grid) = self.blocks[slot].as_ref().map(|b| b.grid) else {
            return;
        };
        if let Some(grid) = &mut self.grids[grid] {
            grid.triggered += 1;
            if grid.watched && grid.all_triggered() {
                self.released.push(grid.id);
            }
        }
    }

    /// Lets the block's threads pass `griddepcontrol.wait` if nothing is left to wait for.
    pub(super) fn pass_grid_wait(&mut self, slot: usize) {
        let Some(block) = &self.blocks[slot] else {
            return;
        };
        let prerequisite = self.grids[block.grid].as_ref().and_then(|g| g.prerequisite);
        if prerequisite.is_some_and(|p| self.grids.iter().flatten().any(|g| g.id == p)) {
            return;
        }
        let Some(block) = &mut self.blocks[slot] else {
            return;
        };
        for index in 0..block.warps.len() {
            let Some(block) = &mut self.blocks[slot] else {
                return;
            };
            let groups = block.warps[index].groups.iter_mut();
            for group in groups.filter(|g| g.state == State::GridWait) {
                group.state = State::Ready;
                group.pc += 1;
                group.last = self.steps;
            }
            self.update_ready(slot, index);
        }
    }

    /// A grid has ended: those that wait for it go on.
    pub(super) fn prerequisite_ended(&mut self, ended: GridId) {
        let waits = |grid: usize| {
            let grid = self.grids[grid].as_ref();
            grid.is_some_and(|g| g.prerequisite == Some(ended))
        };
        let blocks = self.blocks.iter().enumerate();
        let slots: Vec<usize> = blocks
            .filter(|(_, b)| b.as_ref().is_some_and(|b| waits(b.grid)))
            .map(|(slot, _)| slot)
            .collect();
        for slot in slots {
            self.pass_grid_wait(slot);
        }
    }
}
