//! Launching: checks, and placing blocks on multiprocessors.

use std::cell::Cell;

use super::exec::draw;
use super::ir::NONE;
use super::memory::Access;
use super::sched::Sm;
use super::state::{BARRIERS, BarrierState, Block, Cluster, Frame, Grid, Group, State, Warp};
use super::{
    FunctionId, FunctionInfo, GridId, LaunchDesc, LaunchError, Machine, TraceStep, places,
};

impl Machine {
    /// Blocks of a kernel that one multiprocessor holds at once.
    pub fn blocks_per_sm(&self, function: FunctionId, threads: u32, dynamic_shared: u32) -> u32 {
        let Some(info) = self.function_info(function) else {
            return 0;
        };
        let shared = info.static_shared.saturating_add(dynamic_shared);
        if threads == 0 || threads > info.max_threads || shared > self.config.max_shared_per_block {
            return 0;
        }
        self.room(threads, shared)
    }

    fn room(&self, threads: u32, shared: u32) -> u32 {
        let by_threads = self.config.threads_per_sm / threads.next_multiple_of(32).max(1);
        let by_shared = self.config.shared_per_sm / (shared + self.config.reserved_shared).max(1);
        self.config.blocks_per_sm.min(by_threads).min(by_shared)
    }

    /// Starts a grid: its blocks run from the next [`Machine::run`] on, beside those of all grids that run already.
    ///
    /// # Errors
    /// What a driver would refuse.
    pub fn launch(&mut self, launch: LaunchDesc) -> Result<GridId, LaunchError> {
        let info = self
            .function_info(launch.function)
            .ok_or(LaunchError::NoSuchFunction)?;
        if launch.device >= self.config.devices {
            return Err(LaunchError::NoSuchFunction);
        }
        self.check(&launch, info)?;
        let &(module, index) = self
            .functions
            .get(launch.function.0 as usize)
            .ok_or(LaunchError::NoSuchFunction)?;
        let loaded = self.module(module).ok_or(LaunchError::NoSuchFunction)?;
        let (function, static_shared) = (loaded.kernels[index as usize].0, info.static_shared);
        let program = loaded.program.clone();
        let mut param_address = 0;
        if program.functions[function as usize].takes_param_address {
            let va = self
                .memory
                .allocate_internal(launch.device, launch.params.len() as u64);
            param_address = va.ok_or(LaunchError::OutOfMemory)?;
            let rights = Access {
                read: u64::MAX,
                write: 0,
            };
            let len = launch.params.len().max(1) as u64;
            if self.memory.write(param_address, &launch.params).is_err()
                || self.memory.set_access(param_address, len, rights).is_err()
            {
                return Err(LaunchError::OutOfMemory);
            }
        }
        let mut workspace = 0;
        if launch.cooperative {
            // wsSize and the barrier word.
            workspace = self
                .memory
                .allocate_internal(launch.device, 64)
                .ok_or(LaunchError::OutOfMemory)?;
            self.memory
                .write(workspace, &64u32.to_le_bytes())
                .map_err(|_| LaunchError::OutOfMemory)?;
        }
        let id = GridId(self.next_grid);
        self.next_grid += 1;
        if self.config.trace {
            let kernel = program.functions[function as usize].name.clone();
            self.trace.push(TraceStep::Begin { grid: id, kernel });
        }
        let grid = Grid {
            id,
            function_id: launch.function,
            program,
            function,
            device: launch.device,
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_shared: launch.dynamic_shared,
            static_shared,
            user_shared: static_shared
                + launch.user_dynamic.map_or(launch.dynamic_shared, |user| {
                    user.min(launch.dynamic_shared)
                }),
            params: launch.params,
            param_address,
            workspace,
            placed: Cell::new(0),
            cancelled: Cell::new(0),
            done: 0,
            prerequisite: None,
            triggered: 0,
            watched: false,
        };
        if let Some(priorities) = &mut self.priorities {
            priorities.launch(id.0, &places::of(&grid.program, function));
        }
        let slot = free_slot(&mut self.grids);
        self.grids[slot] = Some(grid);
        self.queues[launch.device as usize].push_back(slot);
        if self.until_preempt == 0 && self.steps == 0 {
            self.until_preempt = draw(&mut self.rng, self.config.preempt.at_memory);
            self.until_switch = draw(&mut self.rng, self.config.preempt.group_at_memory);
        }
        Ok(id)
    }

    fn check(&self, launch: &LaunchDesc, info: &FunctionInfo) -> Result<(), LaunchError> {
        let bad = |what: String| Err(LaunchError::InvalidConfiguration(what));
        let [gx, gy, gz] = launch.grid;
        let [bx, by, bz] = launch.block;
        if gx == 0 || gy == 0 || gz == 0 || gx > i32::MAX as u32 || gy > 65_535 || gz > 65_535 {
            return bad(format!("a grid of {gx}×{gy}×{gz} blocks"));
        }
        let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
        if threads == 0 || bx > 1024 || by > 1024 || bz > 64 || threads > 1024 {
            return bad(format!("a block of {bx}×{by}×{bz} threads"));
        }
        if threads > u64::from(info.max_threads) {
            return bad(format!(
                "{threads} threads in a block of a kernel that takes {}",
                info.max_threads
            ));
        }
        if info.required_block.is_some_and(|r| r != launch.block) {
            return bad(format!(
                "the kernel requires blocks of {:?}",
                info.required_block.unwrap_or_default()
            ));
        }
        let cluster = launch.cluster.map(|c| c.max(1));
        let size = cluster.iter().fold(1u32, |p, &c| p.saturating_mul(c));
        if size > 16 || (0..3).any(|i| !launch.grid[i].is_multiple_of(cluster[i])) {
            return bad(format!(
                "clusters of {cluster:?} blocks in a grid of {:?}",
                launch.grid
            ));
        }
        let shared = info.static_shared.saturating_add(launch.dynamic_shared);
        if shared > self.config.max_shared_per_block {
            return Err(LaunchError::OutOfResources(format!(
                "{shared} bytes of shared memory; a block can have {}",
                self.config.max_shared_per_block
            )));
        }
        if info.local_bytes > self.config.max_local_per_thread {
            return Err(LaunchError::OutOfResources(format!(
                "{} bytes of local memory; a thread can have {}",
                info.local_bytes, self.config.max_local_per_thread
            )));
        }
        let per_sm = self.room(threads as u32, shared);
        let room = u64::from(per_sm) * u64::from(self.config.sms);
        if room < u64::from(size) {
            return Err(LaunchError::OutOfResources(format!(
                "a multiprocessor cannot hold a block of {threads} threads and {shared} bytes of shared memory"
            )));
        }
        let blocks = u64::from(gx) * u64::from(gy) * u64::from(gz);
        if launch.cooperative && blocks > room {
            return Err(LaunchError::CooperativeTooLarge { blocks, room });
        }
        let given = launch.params.len() as u32;
        if given != info.param_bytes {
            return Err(LaunchError::Params {
                expected: info.param_bytes,
                given,
            });
        }
        Ok(())
    }

    /// Places blocks of waiting grids wherever there is room: grids in launch order, blocks in order, each on the
    /// multiprocessor that holds the fewest.
    pub(super) fn place(&mut self) {
        for device in 0..self.queues.len() {
            while let Some(&slot) = self.queues[device].front() {
                let Some(grid) = &self.grids[slot] else {
                    self.queues[device].pop_front();
                    continue;
                };
                if grid.placed.get() == grid.blocks() {
                    self.queues[device].pop_front();
                    continue;
                }
                if !self.place_cluster(device, slot) {
                    break;
                }
            }
        }
    }

    /// Places the blocks of one cluster (one block, mostly); false if there is no room.
    fn place_cluster(&mut self, device: usize, slot: usize) -> bool {
        let Some(grid) = &self.grids[slot] else {
            return false;
        };
        let size = grid.cluster_size();
        let threads = grid.threads();
        let padded = threads.next_multiple_of(32);
        let shared = grid.shared_bytes();
        let mut chosen = Vec::new();
        let mut sms = self.sms[device].clone();
        for _ in 0..size {
            let fits = |sm: &Sm| {
                sm.blocks < self.config.blocks_per_sm
                    && sm.threads + padded <= self.config.threads_per_sm
                    && sm.shared + shared + self.config.reserved_shared <= self.config.shared_per_sm
            };
            let Some(best) = (0..sms.len())
                .filter(|&i| fits(&sms[i]))
                .min_by_key(|&i| (sms[i].blocks, i))
            else {
                return false;
            };
            sms[best].blocks += 1;
            sms[best].threads += padded;
            sms[best].shared += shared + self.config.reserved_shared;
            chosen.push(best as u32);
        }
        self.sms[device] = sms;
        let cluster = free_slot(&mut self.clusters);
        let number = self.weak.as_mut().map_or(0, |w| w.cluster(cluster, size));
        let mut blocks = Vec::new();
        let first = grid.placed.get();
        for (rank, &sm) in chosen.iter().enumerate() {
            let block = free_slot(&mut self.blocks);
            let Some(grid) = &self.grids[slot] else {
                return false;
            };
            if let Some(weak) = &mut self.weak {
                let warps = threads.div_ceil(32) as usize;
                let own = number.wrapping_add(rank as u32);
                weak.enter(block, grid.device, [number, own], warps);
                if grid.prerequisite.is_some() {
                    weak.take_over(block);
                }
            }
            let new = new_block(grid, slot, sm, first + rank as u64, rank as u32, cluster);
            for warp in 0..new.warps.len() {
                self.ready.push((block as u32, warp as u32));
            }
            let from = self.ready.len() - new.warps.len();
            let mut new = Box::new(new);
            for (i, warp) in new.warps.iter_mut().enumerate() {
                if let Some(priorities) = &mut self.priorities {
                    warp.rank = priorities.rank();
                }
                warp.ready_at = (from + i) as u32;
            }
            self.blocks[block] = Some(new);
            if self.shared.len() <= block {
                self.shared.resize(block + 1, Vec::new());
            }
            self.shared[block].clear();
            let system = if grid.program.reserved_shared {
                self.config.reserved_shared
            } else {
                0
            };
            self.shared[block].resize((shared + system) as usize, 0);
            blocks.push(Some(block));
        }
        self.clusters[cluster] = Some(Cluster {
            blocks,
            live: threads * size,
            arrived: 0,
            phase: 0,
            resident: size,
        });
        if let Some(grid) = &mut self.grids[slot] {
            grid.placed.set(first + u64::from(size));
        }
        true
    }
}

/// A slot for one more element.
pub fn free_slot<T>(slots: &mut Vec<Option<T>>) -> usize {
    match slots.iter().position(Option::is_none) {
        Some(i) => i,
        None => {
            slots.push(None);
            slots.len() - 1
        }
    }
}

fn new_block(grid: &Grid, slot: usize, sm: u32, number: u64, rank: u32, cluster: usize) -> Block {
    let kernel = grid.kernel();
    let threads = grid.threads();
    let frame = Frame {
        function: grid.function,
        regs: 0,
        preds: 0,
        local: 0,
        extra: 0,
        ret: 0,
    };
    let warps = (0..threads.div_ceil(32)).map(|index| {
        let lanes = (threads - index * 32).min(32);
        let mask = if lanes == 32 {
            u32::MAX
        } else {
            (1 << lanes) - 1
        };
        let group = Group {
            mask,
            pc: kernel.start,
            frame,
            stack: Vec::new(),
            state: State::Ready,
            last: 0,
            cluster_phase: 0,
        };
        Warp {
            regs: vec![[0; 32]; kernel.regs as usize],
            preds: vec![0; kernel.preds as usize],
            local: vec![[0; 32]; kernel.frame.div_ceil(8) as usize],
            groups: vec![group],
            live: mask,
            index,
            ready_at: NONE,
            ..Warp::default()
        }
    });
    Block {
        grid: slot,
        device: grid.device,
        sm,
        index: grid.block_index(number),
        rank,
        cluster,
        warps: warps.collect(),
        live: threads,
        barriers: [BarrierState::default(); BARRIERS],
        tensor: Vec::new(),
        tensor_columns: 0,
        tensor_given_up: false,
        triggered: false,
    }
}
