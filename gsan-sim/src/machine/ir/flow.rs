//! Where control can go from an instruction: whether a thread has gone past a barrier that others of its warp wait at.

use std::sync::Mutex;

use rustc_hash::FxHashMap;

use super::{Op, PredSrc, Program};

/// Answers that have been found, by barrier and instruction.
#[derive(Debug, Default)]
pub struct Passed(Mutex<FxHashMap<(u32, u32), bool>>);

impl Program {
    /// Whether who is at `at` cannot come to `barrier` any more in this call, and who is at `barrier` must come to `at`: the
    /// paths of both have met again, on one of them without the barrier.
    pub fn has_passed(&self, barrier: u32, at: u32) -> bool {
        let known = |p: &Passed| p.0.lock().ok()?.get(&(barrier, at)).copied();
        if let Some(answer) = known(&self.passed) {
            return answer;
        }
        let answer = self.find_passed(barrier, at);
        if let Ok(mut found) = self.passed.0.lock() {
            found.insert((barrier, at), answer);
        }
        answer
    }

    fn find_passed(&self, barrier: u32, at: u32) -> bool {
        let Some(function) = self.function_at(barrier) else {
            return false;
        };
        let (start, end) = (function.start, function.end);
        if at == barrier || !(start..end).contains(&at) {
            return false;
        }
        // Walks from an instruction on, not through `wall`: whether it meets `wanted`, or with `None` the function's end.
        let walk = |from: u32, wall: u32, wanted: Option<u32>| {
            let mut seen = vec![false; (end - start) as usize];
            let mut open = vec![from];
            while let Some(pc) = open.pop() {
                let (next, ends) = self.after(pc, end);
                if ends && wanted.is_none() {
                    return true;
                }
                for to in next {
                    if Some(to) == wanted {
                        return true;
                    }
                    let inside = (start..end).contains(&to) && to != wall;
                    if inside && !std::mem::replace(&mut seen[(to - start) as usize], true) {
                        open.push(to);
                    }
                }
            }
            false
        };
        !walk(at, at, Some(barrier)) && !walk(barrier, at, None)
    }

    /// The instructions that may come next within the function, and whether it may end. (A trap leads nowhere.)
    fn after(&self, pc: u32, end: u32) -> (Vec<u32>, bool) {
        let inst = &self.code[pc as usize];
        let always = inst.guard == PredSrc::TRUE;
        let (mut next, mut ends) = match &inst.op {
            Op::Branch { target } => (vec![*target], false),
            Op::BranchIndexed { targets, .. } => (targets.to_vec(), false),
            Op::Return | Op::Exit => (Vec::new(), true),
            Op::Trap => (Vec::new(), false),
            _ => (vec![pc + 1], false),
        };
        if !always {
            next.push(pc + 1);
        }
        if next.contains(&end) {
            ends = true;
        }
        (next, ends)
    }
}
