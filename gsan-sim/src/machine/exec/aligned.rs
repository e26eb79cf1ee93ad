//! Barriers that all threads of a warp must execute together (`bar`, `barrier` and `barrier.cluster` with `.aligned`), and warps
//! that do not.
//!
//! Lanes that come to one such instruction one after the other are no fault: the hardware's would have met before. It is one
//! where lanes of a warp wait at different barriers, or where some of them are where the paths of all have met again and
//! others wait at a barrier before that. Lanes that have exited are missed by nobody.
//!
//! An H200 counts the whole warp when the first of its lanes comes to an aligned barrier: nothing hangs, and those of them that
//! come later, or not at all, are not waited for.

use super::barrier::{ONE_BARRIER, misuse};
use super::{Exec, Failed, Halt};
use crate::ExitedWarps;
use crate::machine::ir::{MultimemKind, Op, Space};
use crate::machine::state::{Group, State, Warp};
use crate::machine::stop::FaultKind;

impl Exec<'_> {
    /// A group of a warp that has parted has come to a barrier, the block's of that number or the cluster's, and waits there
    /// unless it only arrives. (Who only arrives may do so after others of its warp that are ahead, and wait already.)
    pub(super) fn meets(
        &self,
        warp: &Warp,
        [aligned, stays]: [bool; 2],
        id: Option<usize>,
    ) -> Result<(), Failed> {
        let here = &warp.groups[warp.current];
        let (pc, mask) = (here.pc, here.mask);
        let mut waiting = warp.groups.iter().filter(|g| stays && waits(g));
        let elsewhere = |g: &&Group| matches!((g.state, id), (State::Barrier(other), Some(id)) if usize::from(other) != id);
        if let Some(other) = waiting.clone().find(elsewhere) {
            let detail = format!(
                "lanes {mask:#x} of warp {} come to this barrier while lanes {:#x} wait at another one, {}: {ONE_BARRIER}",
                warp.index,
                other.mask,
                self.line(other.pc)
            );
            return Err((misuse(detail), mask.trailing_zeros()));
        }
        let other = waiting.find(|g| g.pc != pc).map(|g| (g.pc, g.mask));
        // Of those that have only arrived there is the instruction.
        let other = other.or_else(|| {
            let (came, at) = (warp.counted[id?] & warp.live, warp.came_by[id?]);
            (came != 0 && came & mask == 0 && at != pc).then_some((at, came))
        });
        let Some((at, lanes)) = other else {
            return Ok(());
        };
        if !aligned && !self.is_aligned(at) {
            return Ok(());
        }
        let detail = format!(
            "lanes {mask:#x} of warp {} come to this barrier and lanes {lanes:#x} to the one {}: {ADVICE}",
            warp.index,
            self.line(at)
        );
        Err((parted(detail), mask.trailing_zeros()))
    }

    /// Whether it is a fault that lanes go past a barrier at which others of their warp wait.
    pub(super) fn notices_passing(&self, aligned: bool) -> bool {
        aligned && self.config.exited_warps == ExitedWarps::Fault
    }

    /// The current group is about to do something that others may see: a fault if it has gone past an aligned barrier at
    /// which other lanes of its warp wait. The fault's place is that barrier.
    #[cold]
    pub(super) fn goes_past(&self, warp: &mut Warp) -> Result<(), Failed> {
        let here = &warp.groups[warp.current];
        let function = self.program.functions.get(here.frame.function as usize);
        if function.is_some_and(|f| f.runtime) {
            return Ok(());
        }
        let wait = |g: &Group| waits(g) && self.is_aligned(g.pc);
        let mut waiting = (0..warp.groups.len())
            .filter(|&g| wait(&warp.groups[g]))
            .peekable();
        if waiting.peek().is_none() {
            warp.parted_at_barrier = false;
            return Ok(());
        }
        let passed = waiting.find_map(|g| {
            let (barrier, at) = in_common(&warp.groups[g], here)?;
            self.program.has_passed(barrier, at).then_some((g, at))
        });
        let Some((g, at)) = passed else {
            return Ok(());
        };
        let (lanes, gone) = (warp.groups[g].mask, here.mask);
        let detail = format!(
            "lanes {lanes:#x} of warp {} wait here, and lanes {gone:#x} have gone past without it, {}: {ADVICE}; or let the warp \
             count as arrived, as NVIDIA's GPUs do, with --exited-warps arrive or GSAN_SIM_EXITED_WARPS=arrive",
            warp.index,
            self.line(at)
        );
        warp.current = g;
        Err((parted(detail), lanes.trailing_zeros()))
    }

    fn is_aligned(&self, pc: u32) -> bool {
        match self.program.code.get(pc as usize).map(|i| &i.op) {
            Some(Op::Barrier(b)) => b.aligned,
            Some(Op::ClusterBarrier { aligned, .. }) => *aligned,
            _ => false,
        }
    }

    /// An instruction's place, in words.
    fn line(&self, pc: u32) -> String {
        let line = self.program.lines.get(pc as usize).copied();
        let line = line.unwrap_or_default();
        match self.program.files.get(&line.file) {
            Some(file) if line.line > 0 => {
                format!("at PTX line {} ({file}:{})", line.ptx, line.line)
            }
            _ => format!("at PTX line {}", line.ptx),
        }
    }
}

fn waits(group: &Group) -> bool {
    matches!(group.state, State::Barrier(_) | State::Cluster(_))
}

/// Whether others may see that it was done.
pub fn is_seen(op: &Op) -> bool {
    match op {
        Op::Store { space, .. } | Op::StoreVector { space, .. } => *space != Space::Local,
        Op::Atomic(op) => op.space != Space::Local,
        Op::Multimem(op) => op.kind != MultimemKind::LoadReduce,
        Op::Copy(_) | Op::Fill { .. } | Op::Tensor(_) | Op::Mbarrier(_) => true,
        _ => false,
    }
}

const ADVICE: &str = "all threads of a warp that have not exited must come to the same bar.sync (barrier.aligned); move it out of the \
     branch, or use barrier.sync (barrier.cluster) without .aligned, or bar.warp.sync";

fn parted(detail: String) -> Halt {
    Halt::of(FaultKind::DivergentBarrier, 0, detail)
}

/// Where both are in the innermost call that they have in common.
fn in_common(a: &Group, b: &Group) -> Option<(u32, u32)> {
    let frames = |g: &Group| -> Vec<_> { g.stack.iter().chain([&g.frame]).copied().collect() };
    let (x, y) = (frames(a), frames(b));
    let depth = x
        .iter()
        .zip(&y)
        .take_while(|(x, y)| x == y)
        .count()
        .checked_sub(1)?;
    let at = |frames: &[crate::machine::state::Frame], pc: u32| match frames.get(depth + 1) {
        Some(callee) => callee.ret.saturating_sub(1),
        None => pc,
    };
    Some((at(&x, a.pc), at(&y, b.pc)))
}
