//! Executes instructions for one warp, until its turn ends.

mod aligned;
mod atomic;
mod barrier;
mod builtin;
mod call;
mod cancel;
mod copy;
mod data;
mod descriptor;
mod exchange;
mod group;
mod held;
mod late;
mod matrix;
mod multimem;
mod narrow;
mod printf;
mod product;
pub mod sparse;
mod special;
mod surface;
mod tcgen05;
mod tensor;
mod texture;
mod volta;
mod weak;

pub use barrier::release as barrier_release;
pub use late::{Copies, Flights};
pub use special::thread_index;
pub use weak::{Deferred, touches};

use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::TraceStep;
use super::alu::lanes;
use super::ir::{CARRY, CONSTANT, Logic, MbarrierOp, NONE, Op, PredSrc, Program, Reg, Space, Src};
use super::memory::Memory;
use super::priority::Priorities;
use super::state::{Block, Cluster, Frame, Grid, Group, State, Warp};
use super::stop::FaultKind;
use super::ty::Row;
use super::weak::Weak;
use crate::Config;

/// Generic addresses of shared memory: this plus, in bits 24 up, the rank in the cluster plus one (0: the own block).
pub const SHARED_WINDOW: u64 = 0x0003_0000_0000_0000;
/// Generic addresses of local memory.
pub const LOCAL_WINDOW: u64 = 0x0003_0001_0000_0000;
/// Size of either.
pub const WINDOW: u64 = 1 << 32;

/// Why the run must end, without the place.
#[derive(Debug)]
pub enum Halt {
    Trap,
    Assert(String),
    Fault {
        kind: FaultKind,
        address: u64,
        detail: String,
    },
    Unsupported(String),
}

impl Halt {
    pub fn fault(kind: FaultKind, address: u64) -> Halt {
        Halt::Fault {
            kind,
            address,
            detail: String::new(),
        }
    }

    pub fn illegal(detail: impl Into<String>) -> Halt {
        Halt::of(FaultKind::IllegalInstruction, 0, detail)
    }

    /// A fault, with more to say.
    pub fn of(kind: FaultKind, address: u64, detail: impl Into<String>) -> Halt {
        Halt::Fault {
            kind,
            address,
            detail: detail.into(),
        }
    }
}

/// Why a turn ended.
#[derive(Debug)]
pub enum End {
    /// The scheduler takes the turn away.
    Preempted,
    /// No group of the warp can go on, or none is left.
    Blocked,
    /// A block barrier may be complete.
    Barrier,
    /// The cluster barrier may be complete.
    Cluster,
    /// Threads wait for the grid before.
    GridWait,
    /// A thread of the block is the first to let dependent grids start.
    Triggered,
    /// The run ends. The lane that caused it; the group is the current one.
    Halt(Halt, u32),
}

/// A failed lane and why.
pub type Failed = (Halt, u32);

/// What the executor works on besides the warp.
pub struct Exec<'m> {
    pub memory: &'m mut Memory,
    pub config: &'m Config,
    pub program: &'m Program,
    pub grid: &'m Grid,
    pub block: &'m mut Block,
    /// Shared memory by block slot.
    pub shared: &'m mut [Vec<u8>],
    pub block_slot: usize,
    /// The function whose access it is.
    pub function: u32,
    pub cluster: &'m mut Cluster,
    pub rng: &'m mut Xoshiro256PlusPlus,
    pub output: &'m mut Vec<u8>,
    pub heap: &'m mut Heap,
    pub trace: &'m mut Vec<TraceStep>,
    pub steps: &'m mut u64,
    pub thread_steps: &'m mut u64,
    /// Memory operations until the next preemption.
    pub until_preempt: &'m mut u32,
    /// Memory operations until a diverged warp changes groups at random.
    pub until_switch: &'m mut u32,
    /// Asynchronous copies that have not landed.
    pub flights: &'m mut Flights,
    /// With weak memory: what everybody may see.
    pub weak: Option<&'m mut Weak>,
    /// With a schedule by priorities.
    pub priorities: Option<&'m mut Priorities>,
}

/// The device's `malloc`.
#[derive(Debug, Default)]
pub struct Heap {
    pub used: u64,
    pub blocks: std::collections::BTreeMap<u64, u64>,
}

/// Steps after which a waiting group gets its turn in any case, and how long it keeps it.
const FAIR: u64 = 192;
const FAIR_TURN: u32 = 128;

impl Exec<'_> {
    /// Runs a warp for at most `turn` instructions.
    pub fn turn(&mut self, warp: &mut Warp, turn: u32) -> End {
        if !self.choose(warp) {
            return End::Blocked;
        }
        let mut out: Row = [0; 32];
        for n in 0..turn {
            let g = warp.current;
            let group = &warp.groups[g];
            let (pc, frame) = (group.pc, group.frame);
            let inst = &self.program.code[pc as usize];
            let mask = group.mask & predicate(warp, frame, inst.guard);
            *self.steps += 1;
            *self.thread_steps += u64::from(mask.count_ones());
            let mut next = Ok(Flow::Next);
            if mask != 0 {
                match &inst.op {
                    Op::Alu1 { f, flags, d, a } => {
                        f(*flags, self.row(warp, frame, *a), &mut out, mask);
                        write(warp, frame, *d, &out, mask);
                    }
                    Op::Alu2 { f, flags, d, a, b } => {
                        f(
                            *flags,
                            self.row(warp, frame, *a),
                            self.row(warp, frame, *b),
                            &mut out,
                            mask,
                        );
                        write(warp, frame, *d, &out, mask);
                    }
                    Op::Alu3 {
                        f,
                        flags,
                        d,
                        a,
                        b,
                        c,
                    } => {
                        let (a, b, c) = (
                            self.row(warp, frame, *a),
                            self.row(warp, frame, *b),
                            self.row(warp, frame, *c),
                        );
                        f(*flags, a, b, c, &mut out, mask);
                        write(warp, frame, *d, &out, mask);
                    }
                    Op::Alu4 {
                        f,
                        flags,
                        d,
                        a,
                        b,
                        c,
                        e,
                    } => {
                        let (a, b) = (self.row(warp, frame, *a), self.row(warp, frame, *b));
                        let (c, e) = (self.row(warp, frame, *c), self.row(warp, frame, *e));
                        f(*flags, a, b, c, e, &mut out, mask);
                        write(warp, frame, *d, &out, mask);
                    }
                    Op::Mov { d, a } => mov(warp, self.program, frame, *d, *a, mask),
                    Op::Select { d, a, b, p } => {
                        let p = predicate(warp, frame, *p);
                        let (a, b) = (self.row(warp, frame, *a), self.row(warp, frame, *b));
                        for (l, o) in out.iter_mut().enumerate() {
                            *o = if p >> l & 1 == 1 { a[l] } else { b[l] };
                        }
                        write(warp, frame, *d, &out, mask);
                    }
                    Op::Compare {
                        f,
                        flags,
                        a,
                        b,
                        combine,
                        c,
                        d,
                        q,
                    } => {
                        let holds = f(
                            *flags,
                            self.row(warp, frame, *a),
                            self.row(warp, frame, *b),
                            mask,
                        );
                        let c = predicate(warp, frame, *c);
                        let (yes, no) = (combine.apply(holds, c), combine.apply(!holds, c));
                        set_predicate(warp, frame, *d, yes, mask);
                        set_predicate(warp, frame, *q, no, mask);
                    }
                    Op::PredLogic { logic, d, a, b } => {
                        let (a, b) = (predicate(warp, frame, *a), predicate(warp, frame, *b));
                        let value = match logic {
                            Logic::And => a & b,
                            Logic::Or => a | b,
                            Logic::Xor => a ^ b,
                        };
                        set_predicate(warp, frame, *d, value, mask);
                    }
                    Op::Branch { target } => {
                        next = Ok(Flow::Jump {
                            mask,
                            target: *target,
                        })
                    }
                    Op::Nop => {}
                    Op::Fence => self.note(warp, frame, pc, mask),
                    _ => next = self.other(warp, pc, mask, n == 0),
                }
            }
            match next {
                Ok(Flow::Next) => warp.groups[g].pc = pc + 1,
                Ok(Flow::Jump { mask, target }) => self.jump(warp, mask, target),
                Ok(Flow::Moved) => {}
                Ok(Flow::End(end)) => return end,
                Err((halt, lane)) => return End::Halt(halt, lane),
            }
            if warp.groups.len() != 1 || warp.groups[0].state != State::Ready {
                warp.sticky = warp.sticky.saturating_sub(1);
                if !self.choose(warp) {
                    return End::Blocked;
                }
            }
        }
        End::Preempted
    }

    /// The instructions that are not arithmetic on rows.
    fn other(&mut self, warp: &mut Warp, pc: u32, mask: u32, fresh: bool) -> Result<Flow, Failed> {
        let program = self.program;
        let frame = warp.groups[warp.current].frame;
        self.function = frame.function;
        if warp.parted_at_barrier && aligned::is_seen(&program.code[pc as usize].op) {
            self.goes_past(warp)?;
        }
        match &program.code[pc as usize].op {
            Op::Carry(op) => {
                let carry = warp.preds[(frame.preds + CARRY) as usize];
                let (a, b, c) = (
                    self.row(warp, frame, op.a),
                    self.row(warp, frame, op.b),
                    self.row(warp, frame, op.c),
                );
                let mut out = [0; 32];
                let mut carries = 0;
                lanes!(mask, l, {
                    let (value, flag) =
                        (op.f)(a[l], b[l], c[l], op.carry_in && carry >> l & 1 == 1);
                    out[l] = value;
                    carries |= u32::from(flag) << l;
                });
                write(warp, frame, op.d, &out, mask);
                if op.carry_out {
                    set_predicate(warp, frame, CARRY, carries, mask);
                }
            }
            Op::Pack { d, bytes, parts } => {
                let mut out = [0; 32];
                for (i, part) in parts.iter().enumerate() {
                    let row = self.row(warp, frame, *part);
                    let (shift, keep) = (
                        8 * *bytes * i as u32,
                        u64::MAX >> (64 - 8 * (*bytes).clamp(1, 8)),
                    );
                    for l in 0..32 {
                        out[l] |= (row[l] & keep) << (shift & 63);
                    }
                }
                write(warp, frame, *d, &out, mask);
            }
            Op::Unpack { a, bytes, parts } => {
                let from = *self.row(warp, frame, *a);
                for (i, part) in parts.iter().enumerate() {
                    let (shift, keep) = (
                        8 * *bytes * i as u32,
                        u64::MAX >> (64 - 8 * (*bytes).clamp(1, 8)),
                    );
                    let out = from.map(|x| x >> (shift & 63) & keep);
                    write(warp, frame, *part, &out, mask);
                }
            }
            Op::Special { d, s } => {
                let out = self.special(warp, *s);
                write(warp, frame, *d, &out, mask);
            }
            Op::Load { .. }
            | Op::LoadVector { .. }
            | Op::LoadParam { .. }
            | Op::Store { .. }
            | Op::StoreVector { .. }
            | Op::Atomic(_)
            | Op::Multimem(_)
            | Op::Copy(_)
            | Op::Fill { .. }
            | Op::Tensor(_)
            | Op::Mbarrier(_)
            | Op::TryCancel(_)
            | Op::AddressOf { .. }
            | Op::ParamAddress { .. }
            | Op::Convert { .. }
            | Op::IsSpace { .. }
            | Op::MapShared { .. }
            | Op::SharedRank { .. } => {
                let done = self.data(warp, pc, mask, fresh);
                let touches = match &program.code[pc as usize].op {
                    Op::Load { space, .. }
                    | Op::LoadVector { space, .. }
                    | Op::Store { space, .. }
                    | Op::StoreVector { space, .. } => *space != Space::Local,
                    Op::Atomic(op) => op.space != Space::Local,
                    Op::Copy(_) | Op::Fill { .. } | Op::Tensor(_) | Op::TryCancel(_) => true,
                    Op::Multimem(_) => true,
                    // A fence before it stands for the instruction.
                    Op::Mbarrier(op) => op.op != MbarrierOp::ArriveForCopies,
                    _ => false,
                };
                if touches && matches!(done, Ok(Flow::Next)) {
                    self.note(warp, frame, pc, mask);
                }
                return done;
            }
            Op::BranchIndexed { index, targets } => {
                return self.branch_indexed(warp, mask, *index, targets);
            }
            Op::Call(call) => return self.call(warp, mask, call),
            Op::Builtin(call) => {
                self.builtin(warp, mask, call)?;
            }
            Op::Return => return self.ret(warp, mask),
            Op::Exit => return self.exit(warp, mask),
            Op::Trap => return Err((Halt::Trap, mask.trailing_zeros())),
            Op::Barrier(b) => {
                self.note(warp, frame, pc, mask);
                return self.barrier(warp, mask, b);
            }
            Op::ClusterBarrier {
                arrive,
                wait,
                aligned,
            } => {
                self.note(warp, frame, pc, mask);
                return self.cluster_barrier(warp, mask, [*arrive, *wait, *aligned]);
            }
            Op::CopyGroup { end, wait, part } => {
                if !part {
                    self.note(warp, frame, pc, mask);
                }
                self.copy_group(warp, mask, *end, *wait)?;
            }
            Op::GridWait => {
                self.note(warp, frame, pc, mask);
                return Ok(self.grid_wait(warp, mask));
            }
            Op::LaunchDependents => {
                self.note(warp, frame, pc, mask);
                return Ok(self.launch_dependents(warp, mask));
            }
            Op::WarpSync { mask: lanes } => return self.warp_sync(warp, mask, *lanes),
            Op::Warp(op) => return self.exchange(warp, mask, op),
            Op::Matrix(op) => return self.matrix(warp, mask, op),
            Op::Tcgen(op) => self.tcgen05(warp, mask, op)?,
            Op::ActiveMask { d } => write(warp, frame, *d, &[u64::from(mask); 32], mask),
            Op::Sleep => return Ok(self.yield_turn(warp)),
            Op::Texture(op) => self.texture(warp, mask, op)?,
            Op::Test { a, d } => {
                let row = self.row(warp, frame, *a);
                let holds = (0..32).fold(0, |p, l| p | u32::from(row[l] != 0) << l);
                set_predicate(warp, frame, *d, holds, mask);
            }
            Op::Alloca { d, size, align } => self.alloca(warp, mask, *d, *size, *align)?,
            Op::StackSave { d } => {
                let top = self.stack_top(warp);
                write(warp, frame, *d, &[u64::from(top); 32], mask);
            }
            Op::StackRestore { a } => self.stack_restore(warp, mask, *a),
            Op::Unsupported(what) => {
                return Err((Halt::Unsupported(what.to_string()), mask.trailing_zeros()));
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// Records a step of a kernel's own body: see [`TraceStep`].
    #[inline]
    fn note(&mut self, warp: &Warp, frame: Frame, pc: u32, mask: u32) {
        if self.config.trace && frame.function == self.grid.function {
            self.trace.push(TraceStep::Instruction {
                grid: self.grid.id,
                block: self.block.index,
                warp: warp.index,
                lanes: mask,
                line: self.program.lines[pc as usize].ptx,
            });
        }
    }

    /// The group goes on after its instruction, but others come first.
    fn yield_turn(&mut self, warp: &mut Warp) -> Flow {
        let g = warp.current;
        warp.groups[g].pc += 1;
        // As if it had just run while the others had waited.
        let others = warp
            .groups
            .iter()
            .enumerate()
            .filter(|&(i, o)| i != g && o.state == State::Ready)
            .map(|(i, _)| i);
        if let Some(other) = others.min_by_key(|&i| warp.groups[i].last) {
            warp.groups[g].last = *self.steps;
            warp.current = other;
            warp.sticky = FAIR_TURN;
        }
        Flow::End(End::Preempted)
    }

    /// A row of a register or constant.
    #[inline(always)]
    pub fn row<'r>(&'r self, warp: &'r Warp, frame: Frame, s: Src) -> &'r Row {
        if s & CONSTANT != 0 {
            &self.program.constants[(s & !CONSTANT) as usize]
        } else {
            &warp.regs[(frame.regs + s) as usize]
        }
    }

    /// Several operands' rows.
    fn rows(&self, warp: &Warp, frame: Frame, list: &[Src]) -> Vec<Row> {
        list.iter().map(|&s| *self.row(warp, frame, s)).collect()
    }

    /// Picks the group that goes on: joins groups that have met, then the deepest call with the lowest program counter,
    /// unless another has waited too long. False: none can.
    fn choose(&mut self, warp: &mut Warp) -> bool {
        if warp.groups.len() == 1 {
            warp.current = 0;
            return warp.groups[0].state == State::Ready;
        }
        if warp.groups.is_empty() {
            return false;
        }
        let mut current = warp.current.min(warp.groups.len() - 1);
        // Join what has met the group that just ran.
        if warp.groups[current].state == State::Ready {
            let mut other = 0;
            while other < warp.groups.len() {
                if other != current && warp.groups[current].joins(&warp.groups[other]) {
                    let gone = warp.groups.swap_remove(other);
                    if current == warp.groups.len() {
                        current = other;
                    }
                    let group = &mut warp.groups[current];
                    group.mask |= gone.mask;
                    group.frame.extra = group.frame.extra.max(gone.frame.extra);
                } else {
                    other += 1;
                }
            }
            let now = *self.steps;
            warp.groups[current].last = now;
            if warp.sticky > 0 {
                warp.current = current;
                return true;
            }
        }
        let mut best: Option<usize> = None;
        let mut oldest: Option<usize> = None;
        for (i, g) in warp.groups.iter().enumerate() {
            if g.state != State::Ready {
                continue;
            }
            let better = |b: usize| {
                let b = &warp.groups[b];
                (g.stack.len(), std::cmp::Reverse(g.pc)) > (b.stack.len(), std::cmp::Reverse(b.pc))
            };
            if best.is_none_or(better) {
                best = Some(i);
            }
            if oldest.is_none_or(|o| g.last < warp.groups[o].last) {
                oldest = Some(i);
            }
        }
        let (Some(best), Some(oldest)) = (best, oldest) else {
            return false;
        };
        if *self.steps - warp.groups[oldest].last > FAIR {
            warp.groups[oldest].last = *self.steps;
            warp.current = oldest;
            warp.sticky = FAIR_TURN;
        } else {
            warp.current = best;
        }
        true
    }

    /// Moves the lanes of `mask` to `target`, and the group's other lanes to the next instruction.
    fn jump(&mut self, warp: &mut Warp, mask: u32, target: u32) {
        let g = warp.current;
        let group = &mut warp.groups[g];
        if mask == group.mask {
            group.pc = target;
            return;
        }
        let mut taken = group.clone();
        group.mask &= !mask;
        group.pc += 1;
        taken.mask = mask;
        taken.pc = target;
        taken.last = *self.steps;
        warp.groups.push(taken);
    }

    /// Splits the lanes of `mask` off, so that they are a group of their own and the current one; the others go on
    /// behind the instruction.
    fn isolate(&mut self, warp: &mut Warp, mask: u32) {
        let g = warp.current;
        if warp.groups[g].mask != mask {
            let mut rest: Group = warp.groups[g].clone();
            rest.mask &= !mask;
            rest.pc += 1;
            rest.last = *self.steps;
            warp.groups[g].mask = mask;
            warp.groups.push(rest);
        }
    }

    /// Whether the turn ends before a memory operation, or the warp's groups change turns.
    fn preempted(&mut self, warp: &mut Warp) -> Option<Flow> {
        if warp.groups.len() > 1 {
            if *self.until_switch == 0 {
                *self.until_switch = draw(self.rng, self.config.preempt.group_at_memory);
                let ready: Vec<usize> = (0..warp.groups.len())
                    .filter(|&i| warp.groups[i].state == State::Ready)
                    .collect();
                let pick = ready[self.rng.next_u32() as usize % ready.len()];
                if pick != warp.current {
                    warp.groups[pick].last = *self.steps;
                    warp.current = pick;
                    warp.sticky = 1 + self.rng.next_u32() % 16;
                    return Some(Flow::Moved);
                }
            }
            *self.until_switch = self.until_switch.saturating_sub(1);
        }
        if *self.until_preempt == 0 {
            *self.until_preempt = draw(self.rng, self.config.preempt.at_memory);
            return Some(Flow::End(End::Preempted));
        }
        *self.until_preempt -= 1;
        None
    }
}

/// How the program counter goes on.
#[derive(Debug)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To `target` for the lanes of `mask`.
    Jump { mask: u32, target: u32 },
    /// It has been set.
    Moved,
    /// It has been set, and the turn ends.
    End(End),
}

/// Operations until an event of that chance (out of 65,536) happens.
pub fn draw(rng: &mut Xoshiro256PlusPlus, chance: u32) -> u32 {
    if chance == 0 {
        return u32::MAX;
    }
    let mean = 65_536 / chance.min(65_536) - 1;
    if mean == 0 {
        0
    } else {
        rng.next_u32() % (2 * mean + 1)
    }
}

#[inline(always)]
fn mov(warp: &mut Warp, program: &Program, frame: Frame, d: Reg, a: Src, mask: u32) {
    if a & CONSTANT != 0 {
        write(
            warp,
            frame,
            d,
            &program.constants[(a & !CONSTANT) as usize],
            mask,
        );
        return;
    }
    let (from, to) = ((frame.regs + a) as usize, (frame.regs + d) as usize);
    if mask == u32::MAX {
        warp.regs.copy_within(from..=from, to);
    } else {
        lanes!(mask, l, warp.regs[to][l] = warp.regs[from][l]);
    }
}

/// The lanes for which a predicate holds.
#[inline(always)]
pub fn predicate(warp: &Warp, frame: Frame, p: PredSrc) -> u32 {
    match p {
        PredSrc::TRUE => u32::MAX,
        PredSrc::FALSE => 0,
        PredSrc(n) => {
            let value = warp.preds[(frame.preds + (n >> 1)) as usize];
            if n & 1 == 1 { !value } else { value }
        }
    }
}

/// Sets a predicate for the lanes of `mask`.
#[inline(always)]
pub fn set_predicate(warp: &mut Warp, frame: Frame, p: u32, value: u32, mask: u32) {
    if p != NONE {
        let slot = &mut warp.preds[(frame.preds + p) as usize];
        *slot = (*slot & !mask) | (value & mask);
    }
}

/// Writes the lanes of `mask`.
#[inline(always)]
pub fn write(warp: &mut Warp, frame: Frame, d: Reg, row: &Row, mask: u32) {
    if d == NONE {
        return;
    }
    let to = &mut warp.regs[(frame.regs + d) as usize];
    if mask == u32::MAX {
        *to = *row;
    } else {
        let mut rest = mask;
        while rest != 0 {
            let l = (rest.trailing_zeros() & 31) as usize;
            rest &= rest - 1;
            to[l] = row[l];
        }
    }
}
