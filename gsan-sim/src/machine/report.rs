//! In words: where a thread was, who waits for what, what still runs.

use std::collections::BTreeMap;

use super::exec::{Halt, thread_index};
use super::state::{Block, Grid, Group, State, Warp};
use super::{FaultKind, Machine, Site, Stop};

/// Entries that a description lists.
const LISTED: usize = 12;

impl Machine {
    /// The stop for an instruction of the warp's current group.
    pub(super) fn halted(&self, halt: Halt, lane: u32, block: &Block, warp: &Warp) -> Stop {
        let site = match (&self.grids[block.grid], warp.groups.get(warp.current)) {
            (Some(grid), Some(group)) => Box::new(site(grid, block, warp, group, lane)),
            _ => Box::default(),
        };
        match halt {
            Halt::Trap => Stop::Trap { site },
            Halt::Assert(message) => Stop::Assert { site, message },
            Halt::Fault {
                kind,
                address,
                detail,
            } => Stop::Fault {
                site,
                kind,
                address,
                detail,
            },
            Halt::Unsupported(what) => Stop::Unsupported { site, what },
        }
    }

    /// The stop for a barrier that warps which have exited cannot reach: at a thread that waits there.
    pub(super) fn exited_at_barrier(&self, slot: usize, id: usize) -> Stop {
        let Some(block) = &self.blocks[slot] else {
            return self.deadlock();
        };
        let waits = |g: &&Group| g.state == State::Barrier(id as u8);
        let at = block
            .warps
            .iter()
            .find_map(|w| Some((w, w.groups.iter().find(waits)?)));
        let site = match (&self.grids[block.grid], at) {
            (Some(grid), Some((warp, group))) => {
                let lane = group.mask.trailing_zeros();
                Box::new(site(grid, block, warp, group, lane))
            }
            _ => Box::default(),
        };
        let gone: Vec<u32> = block
            .exited_warps()
            .filter(|w| w.counted[id] == 0)
            .map(|w| w.index)
            .collect();
        let detail = format!(
            "barrier {id} is for the whole block, {}: let all warps return behind its last barrier; or let those that have exited count \
             as arrived, as NVIDIA's GPUs do, with --exited-warps arrive or GSAN_SIM_EXITED_WARPS=arrive",
            exited(&gone, block.warps.len())
        );
        let (kind, address) = (FaultKind::ExitedWarps, 0);
        Stop::Fault {
            site,
            kind,
            address,
            detail,
        }
    }

    /// Nobody can go on: who waits where.
    pub(super) fn deadlock(&self) -> Stop {
        let device = self
            .blocks
            .iter()
            .flatten()
            .map(|b| b.device)
            .next()
            .unwrap_or(0);
        let description = self.describe("wait");
        let description = if description.is_empty() {
            "blocks wait to be placed, and nothing makes room for them".to_string()
        } else {
            description
        };
        Stop::Deadlock {
            device,
            description,
        }
    }

    pub(super) fn out_of_budget(&self) -> Stop {
        let description = format!(
            "{} warp instructions without a kernel coming to its end; {}",
            self.config.step_budget,
            self.describe("are")
        );
        Stop::Budget { description }
    }

    /// Every place where threads are, as the kernel's own text has it: for a thread inside a call, the place of the
    /// call in the kernel.
    fn describe(&self, verb: &str) -> String {
        // By kernel, place and state: threads, blocks, and an example.
        let mut found: BTreeMap<(String, String, String), (u32, u32, String)> = BTreeMap::new();
        for block in self.blocks.iter().flatten() {
            let Some(grid) = &self.grids[block.grid] else {
                continue;
            };
            let mut here: BTreeMap<(String, String, String), u32> = BTreeMap::new();
            for group in block.warps.iter().flat_map(|w| &w.groups) {
                let what = waits_for(group, block);
                let key = (grid.kernel().name.clone(), place(grid, group), what);
                *here.entry(key).or_default() += group.mask.count_ones();
            }
            for (key, threads) in here {
                let [x, y, z] = block.index;
                let example = format!("block ({x},{y},{z})");
                let entry = found.entry(key).or_insert((0, 0, example));
                entry.0 += threads;
                entry.1 += 1;
            }
        }
        let mut parts: Vec<String> = found
            .iter()
            .take(LISTED)
            .map(|((kernel, place, what), (threads, blocks, example))| {
                let others = match blocks - 1 {
                    0 => String::new(),
                    n => format!(" and {n} more"),
                };
                format!(
                    "kernel {kernel}: {threads} threads of {example}{others} {verb} {what}, {place}"
                )
            })
            .collect();
        if found.len() > LISTED {
            parts.push(format!("and {} more places", found.len() - LISTED));
        }
        parts.join("; ")
    }
}

/// "warps 1, 4-7 of 8 have exited".
fn exited(gone: &[u32], of: usize) -> String {
    let runs: Vec<String> = gone
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run[0].to_string(),
        })
        .collect();
    match gone {
        [one] => format!("warp {one} of {of} has exited"),
        _ => format!("warps {} of {of} have exited", runs.join(", ")),
    }
}

fn waits_for(group: &Group, block: &Block) -> String {
    match group.state {
        State::Ready => "running".to_string(),
        State::Barrier(id) => {
            let b = block.barriers[usize::from(id)];
            let of = if b.count == 0 { block.live } else { b.count };
            let gone: Vec<u32> = block.exited_warps().map(|w| w.index).collect();
            let gone = match gone[..] {
                [] => String::new(),
                _ => format!("; {}", exited(&gone, block.warps.len())),
            };
            format!(
                "at barrier {id} ({} of {of} threads have arrived{gone})",
                b.arrived
            )
        }
        State::Collective => "for other lanes of the warp".to_string(),
        State::WarpSync => "at bar.warp.sync for other lanes of the warp".to_string(),
        State::Cluster(_) => "at the cluster barrier".to_string(),
        State::GridWait => "at griddepcontrol.wait for the kernel before".to_string(),
    }
}

/// Where a group is in the kernel's own text.
fn place(grid: &Grid, group: &Group) -> String {
    let outermost = match group.stack.len() {
        0 => None,
        1 => Some(group.frame),
        _ => Some(group.stack[1]),
    };
    let pc = outermost.map_or(group.pc, |callee| callee.ret.saturating_sub(1));
    let line = grid
        .program
        .lines
        .get(pc as usize)
        .copied()
        .unwrap_or_default();
    match grid.program.files.get(&line.file) {
        Some(file) if line.line > 0 => format!("PTX line {} ({file}:{})", line.ptx, line.line),
        _ => format!("PTX line {}", line.ptx),
    }
}

/// The outermost hook of gsan's runtime that the group is in: its name, and the place of the call.
fn hook(grid: &Grid, group: &Group) -> Option<(String, u32)> {
    let frames = group.stack.iter().chain([&group.frame]);
    // The first frame is the kernel, which nobody called.
    frames.skip(1).find_map(|frame| {
        let function = grid.program.functions.get(frame.function as usize)?;
        let is_hook = function.name.starts_with(gsan_ptx::hook::names::PREFIX);
        is_hook.then(|| (function.name.clone(), frame.ret.saturating_sub(1)))
    })
}

/// Where a lane is; inside a hook: for which instruction of the user.
fn site(grid: &Grid, block: &Block, warp: &Warp, group: &Group, lane: u32) -> Site {
    let (hook, pc) = match hook(grid, group) {
        Some((name, pc)) => (Some(name), pc),
        None => (None, group.pc),
    };
    let line = grid
        .program
        .lines
        .get(pc as usize)
        .copied()
        .unwrap_or_default();
    let source = grid
        .program
        .files
        .get(&line.file)
        .filter(|_| line.line > 0)
        .map(|f| (f.clone(), line.line));
    Site {
        kernel: grid.kernel().name.clone(),
        function: grid
            .program
            .function_at(pc)
            .map(|f| f.name.clone())
            .unwrap_or_default(),
        ptx_line: line.ptx,
        source,
        hook,
        block: block.index,
        thread: thread_index(warp.index * 32 + lane, grid.block),
    }
}
