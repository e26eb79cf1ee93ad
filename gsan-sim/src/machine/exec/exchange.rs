//! `shfl`, `vote`, `match`, `redux`, `elect`: lanes wait until all lanes of the mask have come to the instruction.

use super::{Exec, Failed, Flow, Halt, predicate, set_predicate, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{NONE, WarpKind, WarpOp};
use crate::machine::state::{State, Warp};
use crate::machine::ty::{Row, Ty};

/// What the lanes bring along.
struct Inputs {
    a: Row,
    b: Row,
    c: Row,
    vote: u32,
    /// The lanes that take part.
    lanes: u32,
    /// The mask that the instruction names.
    named: u32,
}

impl Exec<'_> {
    pub(super) fn exchange(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &WarpOp,
    ) -> Result<Flow, Failed> {
        let frame = warp.groups[warp.current].frame;
        let lane = mask.trailing_zeros();
        if op.mask == NONE {
            return Ok(self.finish(warp, mask, op, &[warp.current], mask, mask));
        }
        let named = self.row(warp, frame, op.mask)[lane as usize] as u32;
        if named & mask != mask {
            return Err((
                Halt::illegal(format!(
                    "lanes {mask:#x} are not all in the mask {named:#x}"
                )),
                lane,
            ));
        }
        let wanted = named & warp.live;
        self.isolate(warp, mask);
        if wanted == mask {
            let current = warp.current;
            return Ok(self.finish(warp, mask, op, &[current], mask, named));
        }
        let current = warp.current;
        warp.groups[current].state = State::Collective;
        let pc = warp.groups[current].pc;
        let there: Vec<usize> = (0..warp.groups.len())
            .filter(|&i| {
                let g = &warp.groups[i];
                g.state == State::Collective && g.pc == pc && g.mask & wanted == g.mask
            })
            .collect();
        let arrived = there.iter().fold(0, |m, &i| m | warp.groups[i].mask);
        if arrived != wanted {
            return Ok(Flow::Moved);
        }
        for &i in &there {
            warp.groups[i].state = State::Ready;
            warp.groups[i].last = *self.steps;
        }
        Ok(self.finish(warp, mask, op, &there, arrived, named))
    }

    /// Gathers the operands of all groups that take part, computes, and hands the results out.
    fn finish(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &WarpOp,
        groups: &[usize],
        lanes: u32,
        named: u32,
    ) -> Flow {
        let mut inputs = Inputs {
            a: [0; 32],
            b: [0; 32],
            c: [0; 32],
            vote: 0,
            lanes,
            named,
        };
        let share = |g: usize, warp: &Warp| {
            if groups.len() == 1 {
                mask
            } else {
                warp.groups[g].mask
            }
        };
        for &g in groups {
            let frame = warp.groups[g].frame;
            let mine = share(g, warp);
            let (a, b, c) = (
                self.row(warp, frame, op.a),
                self.row(warp, frame, op.b),
                self.row(warp, frame, op.c),
            );
            let vote = predicate(warp, frame, op.vote);
            lanes!(mine, l, {
                inputs.a[l] = a[l];
                inputs.b[l] = b[l];
                inputs.c[l] = c[l];
            });
            inputs.vote |= vote & mine;
        }
        let (row, p) = compute(op.kind, op.ty, &inputs);
        for &g in groups {
            let frame = warp.groups[g].frame;
            let mine = share(g, warp);
            write(warp, frame, op.d, &row, mine);
            set_predicate(warp, frame, op.p, p, mine);
            warp.groups[g].pc += 1;
        }
        Flow::Moved
    }
}

fn compute(kind: WarpKind, ty: Ty, i: &Inputs) -> (Row, u32) {
    let all = |value: bool| if value { u32::MAX } else { 0 };
    match kind {
        WarpKind::ShflUp | WarpKind::ShflDown | WarpKind::ShflBfly | WarpKind::ShflIdx => {
            shuffle(kind, i)
        }
        WarpKind::VoteAll => ([0; 32], all(i.vote == i.lanes)),
        WarpKind::VoteAny => ([0; 32], all(i.vote != 0)),
        WarpKind::VoteUni => ([0; 32], all(i.vote == 0 || i.vote == i.lanes)),
        WarpKind::VoteBallot => ([u64::from(i.vote); 32], 0),
        WarpKind::MatchAny => {
            let mut row = [0; 32];
            lanes!(i.lanes, l, {
                let mut same = 0;
                lanes!(i.lanes, k, same |= u64::from(i.a[k] == i.a[l]) << k);
                row[l] = same;
            });
            (row, 0)
        }
        WarpKind::MatchAll => {
            let first = i.a[(i.lanes.trailing_zeros() & 31) as usize];
            let mut same = true;
            lanes!(i.lanes, l, same &= i.a[l] == first);
            ([if same { u64::from(i.named) } else { 0 }; 32], all(same))
        }
        WarpKind::Elect => {
            let leader = i.lanes.trailing_zeros() & 31;
            ([u64::from(leader); 32], 1 << leader)
        }
        _ => {
            let mut values = Vec::with_capacity(32);
            lanes!(i.lanes, l, values.push(i.a[l] as u32));
            let reduce = |f: fn(u32, u32) -> u32| values.iter().copied().reduce(f).unwrap_or(0);
            let signed = ty == Ty::S32;
            let value = match kind {
                WarpKind::ReduxAdd => reduce(u32::wrapping_add),
                WarpKind::ReduxMin if signed => reduce(|a, b| (a as i32).min(b as i32) as u32),
                WarpKind::ReduxMax if signed => reduce(|a, b| (a as i32).max(b as i32) as u32),
                WarpKind::ReduxMin => reduce(u32::min),
                WarpKind::ReduxMax => reduce(u32::max),
                WarpKind::ReduxAnd => reduce(|a, b| a & b),
                WarpKind::ReduxOr => reduce(|a, b| a | b),
                _ => reduce(|a, b| a ^ b),
            };
            ([u64::from(value); 32], 0)
        }
    }
}

/// As the PTX manual has it: `c` holds the clamp in bits 0–4 and the segment mask in bits 8–12.
fn shuffle(kind: WarpKind, i: &Inputs) -> (Row, u32) {
    let mut row = [0; 32];
    let mut valid = 0;
    lanes!(i.lanes, l, {
        let (lane, b, c) = (l as u32, i.b[l] as u32 & 31, i.c[l] as u32);
        let segment = c >> 8 & 31;
        let clamp = c & 31;
        let max = (lane & segment) | (clamp & !segment);
        let min = lane & segment;
        let (source, inside) = match kind {
            WarpKind::ShflUp => (lane.wrapping_sub(b), lane as i32 - b as i32 >= max as i32),
            WarpKind::ShflDown => (lane + b, lane + b <= max),
            WarpKind::ShflBfly => (lane ^ b, (lane ^ b) <= max),
            _ => {
                let source = min | (b & !segment);
                (source, source <= max)
            }
        };
        let source = if inside { source & 31 } else { lane };
        valid |= u32::from(inside) << l;
        // A lane that does not take part has no value to give: the reader keeps its own, as good as any.
        row[l] = if i.lanes >> source & 1 == 1 {
            i.a[source as usize]
        } else {
            i.a[l]
        };
    });
    (row, valid)
}
