//! `shfl`, `vote`, `match`, `redux`, `elect`: lanes wait until all lanes of the mask have come to the instruction.

use super::{Exec, Failed, Flow, Halt, predicate, set_predicate, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{NONE, Src, WarpKind, WarpOp};
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
        if op.mask == NONE {
            self.isolate(warp, mask);
            let current = warp.current;
            self.finish(warp, op, &[current], mask, mask);
            return Ok(Flow::Moved);
        }
        self.split_by_mask(warp, mask, op.mask, true, |exec, warp, g, named| {
            exec.arrive(warp, g, op, named);
        })
    }

    /// Lanes may bring different masks along (parts of a warp that each work on their own): every part is a group of
    /// its own then, and `arrive` is called for each. `strict`: a lane outside its own mask is an error.
    pub(super) fn split_by_mask(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        masks: Src,
        strict: bool,
        mut arrive: impl FnMut(&mut Self, &mut Warp, usize, u32),
    ) -> Result<Flow, Failed> {
        self.isolate(warp, mask);
        let current = warp.current;
        let row = *self.row(warp, warp.groups[current].frame, masks);
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let named = row[lane as usize] as u32;
            let mut lanes = 0;
            lanes!(rest, l, lanes |= u32::from(row[l] as u32 == named) << l);
            if strict {
                rest &= !lanes;
            } else {
                // Members and others apart.
                lanes &= if named >> lane & 1 == 1 {
                    named
                } else {
                    !named
                };
                rest &= !lanes;
            }
            if strict && named & lanes != lanes {
                let what = format!(
                    "lanes {lanes:#x} are not all in the mask {named:#x}: a thread that executes the instruction must be in its own mask"
                );
                return Err((Halt::illegal(what), lane));
            }
            let g = if rest == 0 {
                current
            } else {
                let mut part = warp.groups[current].clone();
                part.mask = lanes;
                part.last = *self.steps;
                warp.groups[current].mask = rest;
                warp.groups.push(part);
                warp.groups.len() - 1
            };
            arrive(self, warp, g, named);
        }
        Ok(Flow::Moved)
    }

    /// A group has come to the instruction: it goes on if it completes the mask, else it waits.
    fn arrive(&mut self, warp: &mut Warp, g: usize, op: &WarpOp, named: u32) {
        let wanted = named & warp.live;
        let mask = warp.groups[g].mask;
        if wanted == mask {
            return self.finish(warp, op, &[g], mask, named);
        }
        warp.groups[g].state = State::Collective;
        let pc = warp.groups[g].pc;
        let there: Vec<usize> = (0..warp.groups.len())
            .filter(|&i| {
                let g = &warp.groups[i];
                g.state == State::Collective && g.pc == pc && g.mask & wanted == g.mask
            })
            .collect();
        let arrived = there.iter().fold(0, |m, &i| m | warp.groups[i].mask);
        if arrived != wanted {
            return;
        }
        for &i in &there {
            warp.groups[i].state = State::Ready;
            warp.groups[i].last = *self.steps;
        }
        self.finish(warp, op, &there, arrived, named);
    }

    /// Gathers the operands of all groups that take part, computes, and hands the results out.
    fn finish(&mut self, warp: &mut Warp, op: &WarpOp, groups: &[usize], lanes: u32, named: u32) {
        let mut inputs = Inputs {
            a: [0; 32],
            b: [0; 32],
            c: [0; 32],
            vote: 0,
            lanes,
            named,
        };
        for &g in groups {
            let frame = warp.groups[g].frame;
            let mine = warp.groups[g].mask;
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
        let (row, p) = if op.ty == Ty::F32 && op.kind == WarpKind::ReduxMin {
            (extreme(op, &inputs, f32::min), 0)
        } else if op.ty == Ty::F32 && op.kind == WarpKind::ReduxMax {
            (extreme(op, &inputs, f32::max), 0)
        } else {
            compute(op.kind, op.ty, &inputs)
        };
        for &g in groups {
            let frame = warp.groups[g].frame;
            let mine = warp.groups[g].mask;
            write(warp, frame, op.d, &row, mine);
            set_predicate(warp, frame, op.p, p, mine);
            warp.groups[g].pc += 1;
        }
    }
}

/// `redux` of floats: NaN counts only with `.NaN`; −0 is less than 0.
fn extreme(op: &WarpOp, i: &Inputs, pick: fn(f32, f32) -> f32) -> Row {
    const NAN: u32 = 0x7fff_ffff;
    let mut found: Option<f32> = None;
    let mut any_nan = false;
    lanes!(i.lanes, l, {
        let x = f32::from_bits(i.a[l] as u32);
        let x = if op.abs { x.abs() } else { x };
        if x.is_nan() {
            any_nan = true;
        } else {
            found = Some(match found {
                None => x,
                // Of two zeros `min` and `max` may give either.
                Some(y) if x == y => {
                    let negative = pick(-1.0, 1.0) < 0.0;
                    if x.is_sign_negative() == negative {
                        x
                    } else {
                        y
                    }
                }
                Some(y) => pick(x, y),
            });
        }
    });
    let bits = match found {
        Some(x) if !(op.nan && any_nan) => x.to_bits(),
        _ => NAN,
    };
    [u64::from(bits); 32]
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
