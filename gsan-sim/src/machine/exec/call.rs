//! Calls, returns, exits and indexed branches.

use super::data::{grow_local, read_local, write_local};
use super::{End, Exec, Failed, Flow, Halt, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{Call, Op, Reg, Src, Target};
use crate::machine::load::FUNCTION_BASE;
use crate::machine::state::{Frame, Group, State, Warp};
use crate::machine::stop::FaultKind;

impl Exec<'_> {
    /// Lanes of `mask` by the value of a register: (lanes, value) for each value, in order of the first lane.
    fn by_value(&self, warp: &Warp, frame: Frame, s: Src, mask: u32) -> Vec<(u32, u64)> {
        let row = self.row(warp, frame, s);
        let mut rest = mask;
        let mut out = Vec::new();
        while rest != 0 {
            let value = row[rest.trailing_zeros() as usize];
            let mut same = 0;
            lanes!(rest, l, same |= u32::from(row[l] == value) << l);
            same &= rest;
            rest &= !same;
            out.push((same, value));
        }
        out
    }

    pub(super) fn branch_indexed(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        index: Src,
        targets: &[u32],
    ) -> Result<Flow, Failed> {
        let frame = warp.groups[warp.current].frame;
        let ways = self.by_value(warp, frame, index, mask);
        for (lanes, value) in &ways {
            if *value >= targets.len() as u64 {
                let detail = format!("index {value} of {} branch targets", targets.len());
                let halt = Halt::Fault {
                    kind: FaultKind::BadTarget,
                    address: *value,
                    detail,
                };
                return Err((halt, lanes.trailing_zeros()));
            }
        }
        if let [(lanes, value)] = ways[..] {
            return Ok(Flow::Jump {
                mask: lanes,
                target: targets[value as usize],
            });
        }
        self.isolate(warp, mask);
        let g = warp.current;
        let last = *self.steps;
        for &(lanes, value) in &ways[1..] {
            let mut group: Group = warp.groups[g].clone();
            group.mask = lanes;
            group.pc = targets[value as usize];
            group.last = last;
            warp.groups.push(group);
        }
        warp.groups[g].mask = ways[0].0;
        warp.groups[g].pc = targets[ways[0].1 as usize];
        Ok(Flow::Moved)
    }

    pub(super) fn call(&mut self, warp: &mut Warp, mask: u32, call: &Call) -> Result<Flow, Failed> {
        let frame = warp.groups[warp.current].frame;
        let (lanes, function) = match call.target {
            Target::Direct(function) => (mask, function),
            Target::Indirect(s) => {
                // Lanes that call something else stay before the call and come back to it.
                let (lanes, value) = self.by_value(warp, frame, s, mask)[0];
                let index = value.wrapping_sub(FUNCTION_BASE) / 16;
                let known = value >= FUNCTION_BASE
                    && value % 16 == 0
                    && self
                        .program
                        .functions
                        .get(index as usize)
                        .is_some_and(|f| !f.entry);
                if !known {
                    return Err((
                        Halt::fault(FaultKind::BadTarget, value),
                        lanes.trailing_zeros(),
                    ));
                }
                (lanes, index as u32)
            }
        };
        self.isolate_call(warp, mask, lanes);
        self.enter(warp, lanes, function, call)?;
        Ok(Flow::Moved)
    }

    /// Splits the current group into the lanes that call now, those that call later (same place), and those that don't.
    fn isolate_call(&mut self, warp: &mut Warp, mask: u32, lanes: u32) {
        self.isolate(warp, mask);
        if lanes != mask {
            let mut later = warp.groups[warp.current].clone();
            later.mask = mask & !lanes;
            later.last = *self.steps;
            warp.groups[warp.current].mask = lanes;
            warp.groups.push(later);
        }
    }

    fn enter(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        function: u32,
        call: &Call,
    ) -> Result<(), Failed> {
        let lane = mask.trailing_zeros();
        let group = &warp.groups[warp.current];
        let frame = group.frame;
        let caller = &self.program.functions[frame.function as usize];
        let callee = &self.program.functions[function as usize];
        // Return address and half of the registers would be on the stack.
        let saved = (16 + 4 * caller.regs).next_multiple_of(16);
        let local = self.stack_top(warp) + saved.min(1 << 10);
        let stack_end = local.checked_add(callee.frame);
        if stack_end.is_none_or(|end| end > self.config.max_local_per_thread) {
            return Err((
                Halt::fault(FaultKind::StackOverflow, u64::from(local)),
                lane,
            ));
        }
        let new = Frame {
            function,
            regs: frame.regs + caller.regs,
            preds: frame.preds + caller.preds,
            local,
            extra: 0,
            ret: group.pc + 1,
        };
        make_room(warp, new, callee.regs, callee.preds, callee.frame);
        for (&(from, size), &(to, room)) in call.args.iter().zip(&callee.params) {
            copy_local(
                warp,
                frame.local + from,
                new.local + to,
                size.min(room),
                mask,
            );
        }
        let group = &mut warp.groups[warp.current];
        group.stack.push(frame);
        group.frame = new;
        group.pc = callee.start;
        Ok(())
    }

    /// Where the current frame ends in local memory.
    pub(super) fn stack_top(&self, warp: &Warp) -> u32 {
        let frame = warp.groups[warp.current].frame;
        let fixed = self.program.functions[frame.function as usize].frame;
        (frame.local + fixed).next_multiple_of(16) + frame.extra
    }

    /// Memory in the frame, at one place for all lanes: the most that one of them asks for.
    pub(super) fn alloca(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        d: Reg,
        size: Src,
        align: u32,
    ) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let sizes = self.row(warp, frame, size);
        let (mut most, mut lane) = (0, mask.trailing_zeros());
        for l in 0..32 {
            if mask >> l & 1 == 1 && sizes[l as usize] > most {
                (most, lane) = (sizes[l as usize], l);
            }
        }
        let top = self.stack_top(warp);
        let at = u64::from(top).next_multiple_of(u64::from(align));
        let end = at.saturating_add(most).checked_next_multiple_of(16);
        let Some(end) = end.filter(|&end| end <= u64::from(self.config.max_local_per_thread))
        else {
            return Err((Halt::fault(FaultKind::StackOverflow, at), lane));
        };
        warp.groups[warp.current].frame.extra += end as u32 - top;
        write(warp, frame, d, &[at; 32], mask);
        Ok(())
    }

    /// Gives back what was allocated since a `stacksave`. Lanes that saved at different places keep the most.
    pub(super) fn stack_restore(&mut self, warp: &mut Warp, mask: u32, a: Src) {
        let frame = warp.groups[warp.current].frame;
        let row = self.row(warp, frame, a);
        let mut top = 0;
        lanes!(mask, l, top = row[l].max(top));
        let bottom = u64::from(self.stack_top(warp) - frame.extra);
        let extra = top.saturating_sub(bottom).min(u64::from(frame.extra));
        warp.groups[warp.current].frame.extra = extra as u32;
    }

    pub(super) fn ret(&mut self, warp: &mut Warp, mask: u32) -> Result<Flow, Failed> {
        if warp.groups[warp.current].stack.is_empty() {
            return self.exit(warp, mask);
        }
        self.isolate(warp, mask);
        let group = &mut warp.groups[warp.current];
        let callee = group.frame;
        let Some(caller) = group.stack.pop() else {
            return Ok(Flow::Moved);
        };
        group.frame = caller;
        group.pc = callee.ret;
        let program = self.program;
        if let Some(Op::Call(call)) = program.code.get(callee.ret as usize - 1).map(|i| &i.op) {
            let function = &program.functions[callee.function as usize];
            for (&(to, room), &(from, size)) in call.rets.iter().zip(&function.returns) {
                copy_local(
                    warp,
                    callee.local + from,
                    caller.local + to,
                    size.min(room),
                    mask,
                );
            }
        }
        Ok(Flow::Moved)
    }

    /// Threads end. Others of the warp may have waited for just that.
    pub(super) fn exit(&mut self, warp: &mut Warp, mask: u32) -> Result<Flow, Failed> {
        if self.block.tensor_columns != 0 && self.block.live == mask.count_ones() {
            let halt = Halt::illegal(format!(
                "the block ends and has {} columns of tensor memory allocated: tcgen05.dealloc comes before the last thread's exit",
                super::tcgen05::GRAIN * self.block.tensor_columns.count_ones()
            ));
            return Err((halt, mask.trailing_zeros()));
        }
        self.land_all(warp, mask)?;
        self.isolate(warp, mask);
        let g = warp.current;
        warp.groups.swap_remove(g);
        warp.live &= !mask;
        let n = mask.count_ones();
        self.block.live -= n;
        self.cluster.live -= n;
        for group in &mut warp.groups {
            if matches!(group.state, State::Collective | State::WarpSync) {
                group.state = State::Ready;
                group.last = *self.steps;
            }
        }
        Ok(Flow::End(End::Barrier))
    }
}

/// Makes room for a frame.
pub fn make_room(warp: &mut Warp, frame: Frame, regs: u32, preds: u32, local: u32) {
    let rows = (frame.regs + regs) as usize;
    if warp.regs.len() < rows {
        warp.regs.resize(rows, [0; 32]);
    }
    let preds = (frame.preds + preds) as usize;
    if warp.preds.len() < preds {
        warp.preds.resize(preds, 0);
    }
    if local > 0 {
        grow_local(warp, u64::from(frame.local + local));
    }
}

/// Copies bytes of local memory within each lane.
fn copy_local(warp: &mut Warp, from: u32, to: u32, size: u32, mask: u32) {
    if from.is_multiple_of(8) && to.is_multiple_of(8) {
        grow_local(warp, u64::from(to + size).next_multiple_of(8));
        for word in 0..size.div_ceil(8) as usize {
            let row = warp
                .local
                .get(from as usize / 8 + word)
                .copied()
                .unwrap_or([0; 32]);
            let target = &mut warp.local[to as usize / 8 + word];
            lanes!(mask, l, target[l] = row[l]);
        }
        return;
    }
    for l in 0..32 {
        if mask >> l & 1 == 1 {
            for i in 0..u64::from(size) {
                let byte = read_local(warp, u64::from(from) + i, 1, l);
                write_local(warp, u64::from(to) + i, 1, byte, l);
            }
        }
    }
}
