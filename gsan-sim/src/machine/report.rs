//! In words: where a thread was, who waits for what, what still runs.

use std::collections::BTreeMap;

use super::exec::{Halt, thread_index};
use super::state::{Block, Grid, State, Warp};
use super::{Machine, Site, Stop};

/// Entries that a description lists.
const LISTED: usize = 12;

impl Machine {
    /// The stop for an instruction of the warp's current group.
    pub(super) fn halted(&self, halt: Halt, lane: u32, block: &Block, warp: &Warp) -> Stop {
        let pc = warp.groups.get(warp.current).map_or(0, |g| g.pc);
        let site = match &self.grids[block.grid] {
            Some(grid) => Box::new(site(grid, block, warp, pc, lane)),
            None => Box::default(),
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

    fn describe(&self, verb: &str) -> String {
        // By kernel, place and state: threads, blocks, and an example.
        let mut found: BTreeMap<(String, u32, String), (u32, u32, String)> = BTreeMap::new();
        for block in self.blocks.iter().flatten() {
            let Some(grid) = &self.grids[block.grid] else {
                continue;
            };
            let mut here: BTreeMap<(String, u32, String), u32> = BTreeMap::new();
            for warp in &block.warps {
                for group in &warp.groups {
                    let line = grid
                        .program
                        .lines
                        .get(group.pc as usize)
                        .copied()
                        .unwrap_or_default();
                    let what = match group.state {
                        State::Ready => "running".to_string(),
                        State::Barrier(id) => {
                            let b = block.barriers[usize::from(id)];
                            let of = if b.count == 0 { block.live } else { b.count };
                            format!(
                                "at barrier {id} ({} of {of} threads have arrived)",
                                b.arrived
                            )
                        }
                        State::Collective => "for other lanes of the warp".to_string(),
                        State::WarpSync => {
                            "at bar.warp.sync for other lanes of the warp".to_string()
                        }
                        State::Cluster(_) => "at the cluster barrier".to_string(),
                    };
                    let key = (grid.kernel().name.clone(), line.ptx, what);
                    *here.entry(key).or_default() += group.mask.count_ones();
                }
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
            .map(|((kernel, line, what), (threads, blocks, example))| {
                let others = match blocks - 1 {
                    0 => String::new(),
                    n => format!(" and {n} more"),
                };
                format!("kernel {kernel}: {threads} threads of {example}{others} {verb} {what}, PTX line {line}")
            })
            .collect();
        if found.len() > LISTED {
            parts.push(format!("and {} more places", found.len() - LISTED));
        }
        parts.join("; ")
    }
}

/// Where a lane is.
fn site(grid: &Grid, block: &Block, warp: &Warp, pc: u32, lane: u32) -> Site {
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
        block: block.index,
        thread: thread_index(warp.index * 32 + lane, grid.block),
    }
}
