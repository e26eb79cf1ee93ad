//! Registers as they were when an instruction was put off, for when it is executed.

use super::Exec;
use crate::machine::alu::lanes;
use crate::machine::ir::{CONSTANT, Reg, Src};
use crate::machine::state::{Frame, Warp};
use crate::machine::ty::Row;

/// Registers of one frame, each once.
#[derive(Debug, Clone)]
pub struct Held(Vec<(Reg, Row)>);

impl Held {
    /// Exchanges the lanes of `mask` with what the registers hold now, but for those that `not` names.
    pub(super) fn swap(&mut self, warp: &mut Warp, frame: Frame, mask: u32, not: &[Reg]) {
        for (r, row) in self.0.iter_mut().filter(|(r, _)| !not.contains(r)) {
            let now = &mut warp.regs[(frame.regs + *r) as usize];
            lanes!(mask, l, std::mem::swap(&mut now[l], &mut row[l]));
        }
    }
}

impl Exec<'_> {
    /// What the registers among the sources hold. (`NONE` counts as a constant.)
    pub(super) fn hold(
        &self,
        warp: &Warp,
        frame: Frame,
        sources: impl IntoIterator<Item = Src>,
    ) -> Held {
        let mut held: Vec<(Reg, Row)> = Vec::new();
        for s in sources {
            if s & CONSTANT == 0 && held.iter().all(|&(r, _)| r != s) {
                held.push((s, *self.row(warp, frame, s)));
            }
        }
        Held(held)
    }
}
