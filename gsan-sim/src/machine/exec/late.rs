//! Asynchronous copies in flight: about half of them are carried out some time after they are issued, at the latest where
//! their thread waits for them, arrives "when they have arrived", or exits. Until then the target holds what it held before, and
//! the source is read as it is when the copy is carried out.
//!
//! A copy that lands is its instruction, executed with the registers as they were.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::held::Held;
use super::{Exec, Failed, predicate};
use crate::machine::alu::lanes;
use crate::machine::ir::{Addr, Base, CopyEnd, NONE, Op, PredSrc, Src, TensorKind, Wait};
use crate::machine::state::{Frame, Group, State, Warp};
use crate::machine::weak::Strength;

/// A copy lands after less than 2^this steps, all orders of magnitude being as likely.
const LONGEST: u64 = 11;
/// The group of a copy that no `commit_group` has closed.
const OPEN: u32 = u32::MAX;

/// Copies in flight, of all warps: when each lands at the latest.
#[derive(Debug, Default)]
pub struct Flights {
    /// Step, block slot, warp, number.
    due: BinaryHeap<Reverse<(u64, usize, u32, u64)>>,
    numbers: u64,
}

impl Flights {
    /// A copy that must land now: block slot, warp and number. (It may have landed before.)
    #[inline]
    pub fn next(&mut self, now: u64) -> Option<(usize, u32, u64)> {
        let &Reverse((at, slot, warp, number)) = self.due.peek()?;
        (at <= now).then(|| {
            self.due.pop();
            (slot, warp, number)
        })
    }

    /// None of them will land.
    pub fn clear(&mut self) {
        self.due.clear();
    }
}

/// One copy instruction's lanes that have not landed.
#[derive(Debug)]
struct Flight {
    number: u64,
    pc: u32,
    frame: Frame,
    mask: u32,
    end: CopyEnd,
    /// By lane, the group that it belongs to, counted from the thread's first.
    groups: [u32; 32],
    registers: Held,
    /// The predicate of `.ignore-src`.
    ignore: u32,
}

/// A warp's copies.
#[derive(Debug, Default)]
pub struct Copies {
    flights: Vec<Flight>,
    /// By kind of group and lane: how many have been closed.
    closed: [[u32; 32]; 2],
}

fn kind(end: CopyEnd) -> Option<usize> {
    match end {
        CopyEnd::Group => Some(0),
        CopyEnd::BulkGroup => Some(1),
        CopyEnd::Barrier | CopyEnd::Issue => None,
    }
}

impl Exec<'_> {
    /// Maybe leaves a copy in flight; whether it did.
    pub(super) fn takes_off(&mut self, warp: &mut Warp, pc: u32, mask: u32) -> bool {
        let op = &self.program.code[pc as usize].op;
        let Some(end) = end(op).filter(|&end| end != CopyEnd::Issue && !self.config.trace) else {
            return false;
        };
        let random = self.chance(warp, pc);
        if random & 1 == 0 {
            return false;
        }
        let frame = warp.groups[warp.current].frame;
        let registers = self.hold(warp, frame, sources(op));
        let ignore = match op {
            Op::Copy(op) => predicate(warp, frame, op.ignore),
            _ => 0,
        };
        let delay = random >> 16 & ((1 << ((random >> 1 & 0x7fff) % LONGEST)) - 1);
        let number = self.flights.numbers;
        self.flights.numbers += 1;
        let at = *self.steps + 1 + delay;
        let due = (at, self.block_slot, warp.index, number);
        self.flights.due.push(Reverse(due));
        let copies = warp.copies.get_or_insert_default();
        copies.flights.push(Flight {
            number,
            pc,
            frame,
            mask,
            end,
            groups: [OPEN; 32],
            registers,
            ignore,
        });
        true
    }

    /// A number that depends on the seed and on what is executed when, and changes nothing of the schedule.
    fn chance(&self, warp: &Warp, pc: u32) -> u64 {
        let mut x = self.config.seed ^ 0x6c61_7465;
        let [a, b, c] = self.block.index;
        for part in [a, b, c, warp.index, pc, *self.steps as u32] {
            // As splitmix64 does.
            x = (x ^ u64::from(part)).wrapping_add(0x9e37_79b9_7f4a_7c15);
            x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^= x >> 31;
        }
        x
    }

    /// `commit_group` and `wait_group` of either kind.
    pub(super) fn copy_group(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        end: CopyEnd,
        wait: Wait,
    ) -> Result<(), Failed> {
        // Groups that were closed before the first flight are complete, and need no number.
        let (Some(kind), Some(copies)) = (kind(end), warp.copies.as_deref_mut()) else {
            return Ok(());
        };
        let closed = copies.closed[kind];
        match wait {
            Wait::Commit => {
                for flight in copies.flights.iter_mut().filter(|f| f.end == end) {
                    lanes!(mask & flight.mask, l, {
                        if flight.groups[l] == OPEN {
                            flight.groups[l] = closed[l];
                        }
                    });
                }
                lanes!(mask, l, {
                    copies.closed[kind][l] = closed[l].wrapping_add(1);
                });
                Ok(())
            }
            Wait::Pending(most) => self.land(warp, |f| {
                let mut lanes = 0;
                if f.end == end {
                    lanes!(mask & f.mask, l, {
                        let open = f.groups[l] == OPEN;
                        let late = closed[l].wrapping_sub(f.groups[l]) > most;
                        lanes |= u32::from(!open && late) << l;
                    });
                }
                lanes
            }),
            Wait::All => self.land(warp, |f| if f.end == end { mask } else { 0 }),
        }
    }

    /// The lanes of `mask` have exited, or will have: what they have issued is carried out.
    pub(super) fn land_all(&mut self, warp: &mut Warp, mask: u32) -> Result<(), Failed> {
        self.land(warp, |_| mask)
    }

    /// The flight of that number lands, if it has not.
    pub fn land_number(&mut self, warp: &mut Warp, number: u64) -> Result<(), Failed> {
        self.land(warp, |f| if f.number == number { u32::MAX } else { 0 })
    }

    /// Carries out what is in flight of the lanes that `which` names, in the order of issue.
    fn land(&mut self, warp: &mut Warp, which: impl Fn(&Flight) -> u32) -> Result<(), Failed> {
        let mut i = 0;
        while let Some(copies) = warp.copies.as_deref_mut()
            && let Some(flight) = copies.flights.get_mut(i)
        {
            let mask = which(flight) & flight.mask;
            if mask == 0 {
                i += 1;
                continue;
            }
            if mask != flight.mask {
                flight.mask &= !mask;
                let part = Flight {
                    mask,
                    registers: flight.registers.clone(),
                    ..*flight
                };
                i += 1;
                self.carry_out(warp, part)?;
                continue;
            }
            let flight = copies.flights.remove(i);
            self.carry_out(warp, flight)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, warp: &mut Warp, mut flight: Flight) -> Result<(), Failed> {
        if let Some(weak) = self.weak.as_deref_mut() {
            weak.begin(*self.steps, Strength::COPY);
        }
        let (current, function) = (warp.current, self.function);
        let (mask, frame) = (flight.mask, flight.frame);
        self.function = frame.function;
        warp.current = warp.groups.len();
        warp.groups.push(Group {
            mask,
            pc: flight.pc,
            frame,
            stack: Vec::new(),
            state: State::Ready,
            last: *self.steps,
            cluster_phase: 0,
        });
        let program = self.program;
        let op = &program.code[flight.pc as usize].op;
        let ignore = match op {
            Op::Copy(op) => Some(op.ignore),
            _ => None,
        };
        // Predicates of constant value have no place.
        let place = ignore
            .filter(|&p| p != PredSrc::TRUE && p != PredSrc::FALSE)
            .map(|PredSrc(n)| ((frame.preds + (n >> 1)) as usize, n & 1 == 1));
        let mut held = 0;
        if let Some((at, negated)) = place {
            held = warp.preds[at];
            let value = if negated {
                !flight.ignore
            } else {
                flight.ignore
            };
            warp.preds[at] = held & !mask | value & mask;
        }
        flight.registers.swap(warp, frame, mask, &[]);
        let done = match op {
            Op::Copy(op) => self.copy(warp, mask, op),
            Op::Tensor(op) => self.tensor_copy(warp, mask, op),
            _ => Ok(()),
        };
        flight.registers.swap(warp, frame, mask, &[]);
        if let Some((at, _)) = place {
            warp.preds[at] = held;
        }
        self.function = function;
        // Where it fails, the run ends there: at the copy.
        done?;
        warp.groups.pop();
        warp.current = current;
        Ok(())
    }
}

/// How the end of a copy is known; `None`: it is none.
fn end(op: &Op) -> Option<CopyEnd> {
    match op {
        Op::Copy(op) => Some(op.end),
        Op::Tensor(op) if op.kind == TensorKind::Load => Some(CopyEnd::Barrier),
        Op::Tensor(_) => Some(CopyEnd::BulkGroup),
        _ => None,
    }
}

/// The registers that it reads.
fn sources(op: &Op) -> Vec<Src> {
    let base = |a: &Addr| match a.base {
        Base::Value(s) => s,
        _ => NONE,
    };
    match op {
        Op::Copy(op) => {
            let barrier = op.barrier.as_ref().map_or(NONE, |(_, a)| base(a));
            let (to, from) = (base(&op.to.1), base(&op.from.1));
            vec![
                to,
                from,
                op.size,
                op.source_size,
                barrier,
                op.blocks,
                op.bytes,
            ]
        }
        Op::Tensor(op) => {
            let barrier = op.barrier.as_ref().map_or(NONE, base);
            let own = [op.map, base(&op.shared.1), barrier, op.blocks];
            let rest = op.coordinates.iter().chain(&op.offsets);
            own.iter().chain(rest).copied().collect()
        }
        _ => Vec::new(),
    }
}
