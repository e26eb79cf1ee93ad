//! Executing with care, one instruction at a time: for weak memory, where accesses may be put off, and for priorities, where
//! warps that wait in a loop must be noticed.

use std::ops::Range;

use super::held::Held;
use super::{End, Exec, Failed, Flow, Halt, data, predicate};
use crate::machine::alu::lanes;
use crate::machine::ir::{Base, MultimemKind, NONE, Op, Reg, Space};
use crate::machine::load::slack;
use crate::machine::state::{Frame, Warp};
use crate::machine::stop::FaultKind;
use crate::machine::ty::Row;
use crate::machine::weak::{Access, Strength};

/// An access that has been put off: its instruction is executed later, with the registers as they were.
#[derive(Debug)]
pub struct Deferred {
    /// Where it stands, and the instruction before which it is performed at the latest.
    pc: u32,
    until: u32,
    mask: u32,
    addresses: Row,
    /// What it reads.
    registers: Held,
    /// Whether others have had a turn before it.
    waited: bool,
}

/// An access is put off in one of so many cases.
const DEFER: u32 = 4;

impl Exec<'_> {
    /// Runs a warp for at most `turn` instructions.
    pub fn careful_turn(&mut self, warp: &mut Warp, turn: u32) -> End {
        for n in 0..turn {
            if !self.choose(warp) {
                return End::Blocked;
            }
            let program = self.program;
            let group = &warp.groups[warp.current];
            let (pc, frame) = (group.pc, group.frame);
            let (lanes, depth) = (group.mask, group.stack.len());
            let calls = match self.priorities {
                Some(_) => self.affected(warp),
                None => 0..0,
            };
            let inst = &program.code[pc as usize];
            let mask = lanes & predicate(warp, frame, inst.guard);
            if !warp.deferred.is_empty() {
                match self.due(warp, pc, mask) {
                    Ok(true) => return End::Preempted,
                    Ok(false) => {}
                    Err((halt, lane)) => return End::Halt(halt, lane),
                }
            }
            if let Some(priorities) = self.priorities.as_deref_mut() {
                let counts = depth == 0 && (touches(&inst.op) || matches!(inst.op, Op::Call(_)));
                let change = priorities.is_change(self.grid.id.0, pc, counts);
                warp.rank.ran += 1;
                if change || warp.rank.waited() || priorities.is_long(&mut warp.rank) {
                    priorities.drop(&mut warp.rank);
                    return End::Preempted;
                }
            } else if n > 0 && mask != 0 && touches(&inst.op) {
                match self.preempted(warp) {
                    Some(Flow::End(end)) => return end,
                    Some(_) => continue,
                    None => {}
                }
            }
            if mask != 0 && self.weak.is_some() && self.weak_before(warp, pc, mask) {
                *self.steps += 1;
                *self.thread_steps += u64::from(mask.count_ones());
                warp.groups[warp.current].pc += 1;
                continue;
            }
            match self.turn(warp, 1) {
                End::Preempted if !matches!(inst.op, Op::Sleep | Op::Mbarrier(_)) => {}
                end => {
                    if let (End::Preempted, Some(priorities)) =
                        (&end, self.priorities.as_deref_mut())
                    {
                        let parted = warp.groups.len() > 1;
                        priorities.wait(&mut warp.rank, parted);
                    }
                    return end;
                }
            }
            if self.priorities.is_some() && self.waits(warp, pc, mask, lanes, calls) {
                return End::Preempted;
            }
        }
        End::Preempted
    }

    /// The depths of calls for whose loops it matters what the current group reads: its own and those around it. What a hook
    /// of gsan's runtime reads is nothing to the user's loops.
    fn affected(&self, warp: &Warp) -> Range<usize> {
        let group = &warp.groups[warp.current];
        let runtime = |f: &Frame| {
            let function = self.program.functions.get(f.function as usize);
            function.is_some_and(|f| f.runtime)
        };
        let depth = group.stack.len();
        let first = match runtime(&group.frame) {
            true => group.stack.iter().position(runtime).unwrap_or(depth),
            false => 0,
        };
        first..depth + 1
    }

    /// Notes what an instruction did; true: it ended one more turn of a loop that waits, and the warp has dropped.
    fn waits(
        &mut self,
        warp: &mut Warp,
        pc: u32,
        mask: u32,
        lanes: u32,
        calls: Range<usize>,
    ) -> bool {
        let depth = calls.end - 1;
        let op = &self.program.code[pc as usize].op;
        let Some(group) = warp.groups.iter().find(|g| g.mask & lanes != 0) else {
            return false;
        };
        let (next, frame) = (group.pc, group.frame);
        // What was read, and where: a loop that walks through zeros is none that waits.
        let (results, addr): (&[Reg], _) = match op {
            _ if !touches(op) => (&[], None),
            Op::Load { d, addr, .. } => (std::slice::from_ref(d), Some(*addr)),
            Op::LoadVector { d, addr, .. } => (d, Some(*addr)),
            Op::Atomic(op) => (&op.d, Some(op.addr)),
            Op::Multimem(op) if op.kind == MultimemKind::LoadReduce => {
                (&op.registers, Some(op.addr))
            }
            _ => (&[], None),
        };
        if let Some(addr) = addr {
            let row = self.addresses(warp, frame, addr);
            lanes!(mask, l, warp.rank.read(calls.clone(), row[l]));
        }
        for &d in results.iter().filter(|&&d| d != NONE) {
            let row = warp.regs[(frame.regs + d) as usize];
            lanes!(mask, l, warp.rank.read(calls.clone(), row[l]));
        }
        match op {
            Op::Store { .. } | Op::StoreVector { .. } | Op::Copy(_) | Op::Tensor(_)
                if touches(op) =>
            {
                warp.rank.wrote(&calls);
            }
            Op::Atomic(op) if op.d.iter().all(|&d| d == NONE) => warp.rank.wrote(&calls),
            Op::Multimem(op) if op.kind != MultimemKind::LoadReduce => warp.rank.wrote(&calls),
            Op::Call(_) => warp.rank.entered(depth + 1),
            Op::Return => {}
            _ if next <= pc && warp.rank.jumped(depth, next) => {
                let parted = warp.groups.len() > 1;
                return self
                    .priorities
                    .as_deref_mut()
                    .is_some_and(|p| p.wait(&mut warp.rank, parted));
            }
            _ => {}
        }
        false
    }

    /// What the memory model does before an instruction. True: it is an access that has been put off.
    fn weak_before(&mut self, warp: &mut Warp, pc: u32, mask: u32) -> bool {
        let program = self.program;
        let frame = warp.groups[warp.current].frame;
        self.function = frame.function;
        let (now, at) = (*self.steps, (self.block_slot, warp.index));
        let strength = program.strengths[pc as usize];
        let op = &program.code[pc as usize].op;
        let barrier = match op {
            Op::Barrier(b) => self.row(warp, frame, b.id)[mask.trailing_zeros() as usize],
            _ => 0,
        };
        let Some(weak) = self.weak.as_deref_mut() else {
            return false;
        };
        match op {
            Op::Fence => {
                weak.begin(now, strength);
                weak.fence(at);
            }
            Op::Barrier(_) => {
                weak.begin(now, strength);
                weak.arrive(at, barrier as usize);
            }
            Op::Return if !warp.groups[warp.current].stack.is_empty() => {}
            Op::LaunchDependents | Op::Exit | Op::Return => {
                weak.begin(now, strength);
                weak.hand_over(at);
            }
            Op::ClusterBarrier { arrive, .. } => {
                weak.begin(now, strength);
                let cluster = self.block.cluster;
                if *arrive {
                    weak.arrive_cluster(at, cluster);
                } else if self.cluster.phase != warp.groups[warp.current].cluster_phase {
                    weak.leave_cluster(at, cluster);
                }
            }
            _ if slack::access(op).is_some() => {
                self.begin(pc);
                return self.put_off(warp, pc, mask);
            }
            Op::Copy(_) | Op::Tensor(_) | Op::TryCancel(_) => weak.begin(now, Strength::COPY),
            _ if touches(op) => weak.begin(now, strength),
            _ => {}
        }
        false
    }

    /// Tells the memory model which load, store or atomic comes.
    fn begin(&mut self, pc: u32) {
        let program = self.program;
        let Some(weak) = self.weak.as_deref_mut() else {
            return;
        };
        weak.begin(*self.steps, program.strengths[pc as usize]);
        match &program.code[pc as usize].op {
            Op::LoadVector { mem, d: all, .. } | Op::StoreVector { mem, a: all, .. } => {
                weak.be_vector(usize::from(mem.bytes) * all.len());
            }
            _ => {}
        }
    }

    /// Maybe puts an access off; whether it did.
    fn put_off(&mut self, warp: &mut Warp, pc: u32, mask: u32) -> bool {
        let program = self.program;
        let slack = program.slack.get(pc as usize).copied().unwrap_or(0);
        let op = &program.code[pc as usize].op;
        let (Some((addr, writes)), Some(weak)) = (slack::access(op), self.weak.as_deref_mut())
        else {
            return false;
        };
        if slack == 0 || weak.random(DEFER) != 0 {
            return false;
        }
        let until = pc + 2 + weak.random(u32::from(slack));
        let frame = warp.groups[warp.current].frame;
        let addresses = self.addresses(warp, frame, addr);
        let (space, bytes) = match op {
            Op::Load { space, mem, .. } | Op::Store { space, mem, .. } => {
                (*space, u64::from(mem.bytes))
            }
            Op::LoadVector {
                space, mem, d: all, ..
            }
            | Op::StoreVector {
                space, mem, a: all, ..
            } => (*space, u64::from(mem.bytes) * all.len() as u64),
            Op::Atomic(op) => (op.space, u64::from(op.ty.bytes()) * op.b.len() as u64),
            _ => return false,
        };
        if !self.is_good(space, &addresses, bytes, writes, mask) {
            return false;
        }
        let (sources, last) = slack::sources(op);
        let base = match addr.base {
            Base::Value(s) => s,
            _ => NONE,
        };
        let sources = sources.iter().copied().chain([last, base]);
        let registers = self.hold(warp, frame, sources);
        warp.deferred.push(Deferred {
            pc,
            until,
            mask,
            addresses,
            registers,
            waited: false,
        });
        true
    }

    /// Whether an access to all these addresses works: one that fails must fail where it stands.
    fn is_good(
        &mut self,
        space: Space,
        addresses: &Row,
        bytes: u64,
        writes: bool,
        mask: u32,
    ) -> bool {
        let device = self.block.device;
        (0..32).filter(|l| mask >> l & 1 == 1).all(|l| {
            let a = addresses[l];
            a.is_multiple_of(bytes.max(1).next_power_of_two())
                && match self.locate(space, a, bytes) {
                    Ok(data::Place::Global(a)) => {
                        self.memory.access(device, a, bytes, writes).is_ok()
                    }
                    Ok(data::Place::Shared(..)) => true,
                    _ => false,
                }
        })
    }

    /// Performs what was put off and must not be any longer, now that the instruction at `pc` comes next. True: others come
    /// first.
    fn due(&mut self, warp: &mut Warp, pc: u32, mask: u32) -> Result<bool, Failed> {
        let group = &warp.groups[warp.current];
        let (lanes, frame) = (group.mask, group.frame);
        let next = slack::access(&self.program.code[pc as usize].op)
            .map(|(addr, _)| self.addresses(warp, frame, addr));
        let mut i = 0;
        while i < warp.deferred.len() {
            let d = &mut warp.deferred[i];
            if d.mask & lanes == 0 {
                i += 1;
                continue;
            }
            let passed = pc <= d.pc || pc >= d.until;
            // Accesses to the same memory stay in order. (An offset may be of another space: then this is one too many.)
            let near = |a: u64, b: u64| (a & 0xff_ffff).abs_diff(b & 0xff_ffff) < 32;
            let meets = next.as_ref().is_some_and(|next| {
                (0..32).any(|l| {
                    mask >> l & 1 == 1
                        && (0..32).any(|k| d.mask >> k & 1 == 1 && near(next[l], d.addresses[k]))
                })
            });
            if !passed && !meets {
                i += 1;
                continue;
            }
            if !d.waited {
                d.waited = true;
                return Ok(true);
            }
            let d = warp.deferred.remove(i);
            self.perform(warp, d)?;
        }
        Ok(false)
    }

    /// Executes an instruction that was put off: for that, the registers that it reads are again as they were.
    fn perform(&mut self, warp: &mut Warp, mut d: Deferred) -> Result<(), Failed> {
        self.begin(d.pc);
        let frame = warp.groups[warp.current].frame;
        let results: &[Reg] = match &self.program.code[d.pc as usize].op {
            Op::Load { d, .. } => std::slice::from_ref(d),
            Op::LoadVector { d, .. } => d,
            Op::Atomic(op) => &op.d,
            _ => &[],
        };
        d.registers.swap(warp, frame, d.mask, &[]);
        let done = self.other(warp, d.pc, d.mask, true);
        d.registers.swap(warp, frame, d.mask, results);
        // It was checked, but another block may have exited since: the fault is this access's, not the next instruction's.
        if done.is_err() {
            warp.groups[warp.current].pc = d.pc;
        }
        done.map(|_| ())
    }

    /// Reads a row from weak memory.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn weak_row(
        &mut self,
        warp: &Warp,
        space: Space,
        addresses: &Row,
        bytes: u8,
        align: u64,
        mask: u32,
        out: &mut Row,
    ) -> Result<(), Failed> {
        lanes!(mask, l, {
            let address = addresses[l];
            let at = |h: Halt| (h, l as u32);
            if !address.is_multiple_of(align.max(1).next_power_of_two()) {
                return Err(at(Halt::fault(FaultKind::Misaligned, address)));
            }
            out[l] = self.load_lane(warp, space, address, bytes, l).map_err(at)?;
        });
        Ok(())
    }

    /// The compare-and-swap that is being executed has failed.
    pub(super) fn only_reads(&mut self) {
        if let Some(weak) = self.weak.as_deref_mut() {
            weak.only_reads();
        }
    }

    /// Reads one lane's value from weak memory; `None`: it is local.
    pub(super) fn weak_load(
        &mut self,
        warp: u32,
        place: data::Place,
        bytes: u8,
    ) -> Result<Option<u64>, Halt> {
        let mut value = 0;
        for (shift, n) in pieces(place, bytes) {
            let Some((word, offset, ptr)) = self.weak_place(place, shift, n, false)? else {
                return Ok(None);
            };
            // SAFETY: `weak_place` grants that many bytes.
            let memory = unsafe { read_bytes(ptr, n) } << (8 * offset);
            let Some(weak) = self.weak.as_deref_mut() else {
                return Ok(None);
            };
            let bytes = (((1u16 << n) - 1) << offset) as u8;
            let access = Access {
                word: weak.unit(word, bytes),
                bytes,
                memory,
            };
            let read = weak.load((self.block_slot, warp), access) >> (8 * offset);
            let keep = u64::MAX >> (64 - 8 * u32::from(n));
            value |= (read & keep) << (8 * shift);
        }
        Ok(Some(value))
    }

    /// Writes one lane's value to weak memory; false: it is local.
    pub(super) fn weak_store(
        &mut self,
        warp: u32,
        place: data::Place,
        bytes: u8,
        value: u64,
        lane: usize,
    ) -> Result<bool, Halt> {
        for (shift, n) in pieces(place, bytes) {
            let Some((word, offset, ptr)) = self.weak_place(place, shift, n, true)? else {
                return Ok(false);
            };
            // SAFETY: `weak_place` grants that many bytes.
            let memory = unsafe { read_bytes(ptr, n) } << (8 * offset);
            let Some(weak) = self.weak.as_deref_mut() else {
                return Ok(false);
            };
            let bytes = (((1u16 << n) - 1) << offset) as u8;
            let access = Access {
                word: weak.unit(word, bytes),
                bytes,
                memory,
            };
            let value = value >> (8 * shift);
            let at = (self.block_slot, warp);
            if weak.store(at, lane as u32, access, value << (8 * offset)) {
                // SAFETY: as above, and `weak_place` has checked the right to write.
                unsafe { write_bytes(ptr, n, value) };
            }
        }
        Ok(true)
    }

    /// The word of a piece of an access, the piece's offset in it, and where the machine keeps it.
    fn weak_place(
        &mut self,
        place: data::Place,
        shift: u8,
        bytes: u8,
        writes: bool,
    ) -> Result<Option<(u64, u8, *mut u8)>, Halt> {
        let (shift, bytes) = (u64::from(shift), u64::from(bytes));
        Ok(match place {
            data::Place::Global(a) => {
                let device = self.block.device;
                let ptr = self
                    .memory
                    .access(device, a + shift, bytes, writes)
                    .map_err(data::no_global)?;
                // By the host's address: memory that is mapped twice is one.
                Some((ptr as u64 & !7, (ptr as u64 & 7) as u8, ptr))
            }
            data::Place::Shared(slot, a) => {
                let a = a + shift;
                let word = self.weak.as_deref().map_or(0, |w| w.shared_word(slot, a));
                let to = self.shared[slot].get_mut(a as usize..(a + bytes) as usize);
                to.map(|to| (word, (a & 7) as u8, to.as_mut_ptr()))
            }
            data::Place::Local(_) => None,
        })
    }
}

/// Whether an instruction reads or writes memory that others see.
pub fn touches(op: &Op) -> bool {
    match op {
        Op::Load { space, .. }
        | Op::LoadVector { space, .. }
        | Op::Store { space, .. }
        | Op::StoreVector { space, .. } => *space != Space::Local,
        Op::Atomic(op) => op.space != Space::Local,
        Op::Copy(_) | Op::Tensor(_) | Op::Mbarrier(_) | Op::Matrix(_) | Op::Builtin(_) => true,
        Op::TryCancel(_) => true,
        Op::Texture(_) | Op::Multimem(_) => true,
        _ => false,
    }
}

/// Offset and length of the parts of an access that lie in one word each.
fn pieces(place: data::Place, bytes: u8) -> impl Iterator<Item = (u8, u8)> {
    let offset = match place {
        data::Place::Global(a) | data::Place::Shared(_, a) | data::Place::Local(a) => (a & 7) as u8,
    };
    let first = bytes.min(8 - offset);
    [(0, first), (first, bytes - first)]
        .into_iter()
        .filter(|&(_, n)| n > 0)
}

/// # Safety
/// `ptr` must be valid for reads of `n` bytes, at most 8.
unsafe fn read_bytes(ptr: *const u8, n: u8) -> u64 {
    let mut word = [0; 8];
    // SAFETY: the caller's promise, and `n` is at most 8.
    unsafe { std::ptr::copy(ptr, word.as_mut_ptr(), usize::from(n.min(8))) };
    u64::from_le_bytes(word)
}

/// # Safety
/// `ptr` must be valid for writes of `n` bytes, at most 8.
unsafe fn write_bytes(ptr: *mut u8, n: u8, value: u64) {
    let word = value.to_le_bytes();
    // SAFETY: the caller's promise, and `n` is at most 8.
    unsafe { std::ptr::copy(word.as_ptr(), ptr, usize::from(n.min(8))) };
}
