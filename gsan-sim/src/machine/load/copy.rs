//! Asynchronous copies: `cp.async`, `cp.async.bulk`, `cp.async.bulk.tensor`, their reductions, and tensor maps.

use gsan_ptx::ast::{Instruction, Operand};

use super::data::{atomic_op, space};
use super::function::{Decoded, Decoder};
use super::operand::unsupported;
use crate::machine::alu::Mods;
use crate::machine::ir::{
    Addr, CopyEnd, CopyOp, Mbarrier, MbarrierOp, Mem, NONE, Op, PredSrc, Space, TensorKind,
    TensorOp, Wait,
};
use crate::machine::tensor_map;
use crate::machine::ty::Ty;

impl<'a> Decoder<'_, 'a> {
    /// Everything whose opcode is `cp`.
    pub(super) fn copy_async(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let has = |w: &str| mods.has(w);
        if !has("async") {
            return unsupported("");
        }
        if has("prefetch") {
            self.emit(Op::Fence);
            return Ok(());
        }
        let wait = match i.operands.first() {
            _ if has("commit_group") => Some(Wait::Commit),
            _ if has("wait_all") => Some(Wait::All),
            Some(Operand::Int(n)) if has("wait_group") => {
                Some(Wait::Pending(u32::try_from(*n).unwrap_or(u32::MAX)))
            }
            _ if has("wait_group") => return unsupported("operand"),
            _ => None,
        };
        if let Some(wait) = wait {
            let end = match has("bulk") {
                true => CopyEnd::BulkGroup,
                false => CopyEnd::Group,
            };
            self.emit(Op::CopyGroup {
                end,
                wait,
                part: false,
            });
            return Ok(());
        }
        if has("tensor") {
            return self.tensor_copy(i, mods);
        }
        if has("mbarrier") && has("arrive") {
            return self.arrive_when_copied(i, mods);
        }
        let spaces: Vec<Space> = mods.words.iter().filter_map(|w| space(&[*w])).collect();
        let [to, from, ..] = spaces[..] else {
            return unsupported("");
        };
        let bulk = has("bulk");
        let mut copy = CopyOp {
            to: (to, self.memory_operand(i, 0)?),
            from: (from, self.memory_operand(i, 1)?),
            size: self.source(self.operand(i, 2)?, Ty::U32)?,
            source_size: NONE,
            ignore: PredSrc::FALSE,
            barrier: None,
            bulk,
            reduce: None,
            blocks: NONE,
            bytes: NONE,
            end: match bulk {
                true => CopyEnd::BulkGroup,
                false => CopyEnd::Group,
            },
        };
        if bulk {
            self.bulk_operands(i, mods, &mut copy)?;
        } else {
            let rest = i
                .operands
                .len()
                .saturating_sub(3 + usize::from(has("L2::cache_hint")));
            if rest > 0 {
                self.small_operand(i, &mut copy)?;
            }
        }
        self.emit(Op::Copy(Box::new(copy)));
        Ok(())
    }

    /// What follows the size: mbarrier, blocks, cache policy, bytes, in that order.
    fn bulk_operands(
        &mut self,
        i: &Instruction<'a>,
        mods: &Mods<'_>,
        copy: &mut CopyOp,
    ) -> Decoded<()> {
        if mods.has("reduce") {
            let (Some(op), Some(ty)) = (atomic_op(mods.words), mods.ty()) else {
                return unsupported("");
            };
            copy.reduce = Some((op, ty));
        }
        let mut next = 3;
        if mods.has("mbarrier::complete_tx::bytes") {
            copy.barrier = Some((Space::SharedCluster, self.memory_operand(i, next)?));
            copy.end = CopyEnd::Barrier;
            next += 1;
        }
        if mods.has("multicast::cluster") {
            copy.blocks = self.source(self.operand(i, next)?, Ty::U16)?;
            next += 1;
        }
        next += usize::from(mods.has("L2::cache_hint"));
        if mods.has("cp_mask") {
            copy.bytes = self.source(self.operand(i, next)?, Ty::U16)?;
            next += 1;
        }
        if i.operands.len() != next {
            return unsupported("number of operands");
        }
        Ok(())
    }

    /// `cp.async`'s fourth operand: how many bytes are read, or a predicate that says none.
    fn small_operand(&mut self, i: &Instruction<'a>, copy: &mut CopyOp) -> Decoded<()> {
        let o = self.operand(i, 3)?;
        let predicate = match o {
            Operand::Name(name) => self.register(name).is_some_and(|r| r.ty == Ty::Pred),
            Operand::Not(_) => true,
            _ => false,
        };
        if predicate {
            copy.ignore = self.predicate_source(o)?;
        } else {
            copy.source_size = self.source(o, Ty::U32)?;
        }
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`. Without `.noinc` the arrival is one that the instruction itself adds: nothing changes.
    fn arrive_when_copied(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        // It may arrive late, too: this is as early as can be.
        let (end, wait) = (CopyEnd::Group, Wait::All);
        self.emit(Op::CopyGroup {
            end,
            wait,
            part: true,
        });
        let addr = self.memory_operand(i, 0)?;
        let (a, tx) = (self.constant(1), self.constant(0));
        let op = if mods.has("noinc") {
            MbarrierOp::Arrive {
                expect: false,
                drop: false,
                complete: true,
            }
        } else {
            self.emit(Op::Fence);
            MbarrierOp::ArriveForCopies
        };
        let space = space(mods.words).unwrap_or(Space::Generic);
        self.emit(Op::Mbarrier(Box::new(Mbarrier {
            op,
            space,
            addr,
            d: NONE,
            p: NONE,
            a,
            tx,
        })));
        Ok(())
    }

    /// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
    fn tensor_copy(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let dimensions = mods.words.iter().find_map(|w| {
            let n = w.strip_suffix('d')?.parse::<usize>().ok()?;
            (1..=tensor_map::DIMENSIONS).contains(&n).then_some(n)
        });
        let rows = mods.has("tile::gather4") || mods.has("tile::scatter4");
        let windows = mods.has("im2col") || mods.has("im2col_no_offs");
        let other = |w: &&str| w.starts_with("im2col::") || w.starts_with("cta_group");
        let Some(dimensions) = dimensions else {
            return unsupported("");
        };
        if mods.words.iter().any(other) {
            return unsupported("");
        }
        // The state space that is named first is where the copy goes.
        let load = mods
            .words
            .iter()
            .find_map(|w| space(&[*w]))
            .is_some_and(|s| s != Space::Global);
        let kind = match (load, mods.has("reduce")) {
            (true, false) => TensorKind::Load,
            (false, false) => TensorKind::Store,
            (false, true) => match atomic_op(mods.words) {
                Some(op) => TensorKind::Reduce(op),
                None => return unsupported(""),
            },
            _ => return unsupported(""),
        };
        let (shared, tensor) = if load { (0, 1) } else { (1, 0) };
        let Operand::Tensor(parts) = self.operand(i, tensor)? else {
            return unsupported("operand");
        };
        let [map, Operand::Vector(coordinates)] = &parts[..] else {
            return unsupported("operand");
        };
        if coordinates.len() != if rows { 5 } else { dimensions } {
            return unsupported("number of coordinates");
        }
        let map = self.source(map, Ty::B64)?;
        let coordinates = coordinates
            .iter()
            .map(|o| self.source(o, Ty::S32))
            .collect::<Result<Vec<_>, _>>()?;
        let mut op = TensorOp {
            kind,
            map,
            coordinates: coordinates.into(),
            rows,
            windows,
            offsets: Box::default(),
            shared: (Space::SharedCluster, self.memory_operand(i, shared)?),
            barrier: None,
            blocks: NONE,
        };
        let mut next = 2;
        if load {
            op.barrier = Some(self.memory_operand(i, next)?);
            next += 1;
            if windows {
                let Operand::Vector(offsets) = self.operand(i, next)? else {
                    return unsupported("operand");
                };
                if offsets.len() + 2 != dimensions {
                    return unsupported("number of offsets");
                }
                op.offsets = offsets
                    .iter()
                    .map(|o| self.source(o, Ty::U16))
                    .collect::<Result<_, _>>()?;
                next += 1;
            }
            if mods.has("multicast::cluster") {
                op.blocks = self.source(self.operand(i, next)?, Ty::U16)?;
                next += 1;
            }
        }
        if i.operands.len() != next + usize::from(mods.has("L2::cache_hint")) {
            return unsupported("number of operands");
        }
        self.emit(Op::Tensor(Box::new(op)));
        Ok(())
    }

    /// `tensormap.replace`, a store into the map, and `tensormap.cp_fenceproxy`, a copy of it.
    pub(super) fn tensor_map(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let space = space(mods.words).unwrap_or(Space::Generic);
        if mods.has("cp_fenceproxy") {
            let from = self.memory_operand(i, 1)?;
            let copy = CopyOp {
                to: (Space::Global, self.memory_operand(i, 0)?),
                from: (Space::Shared, from),
                size: self.constant(tensor_map::BYTES as u64),
                source_size: NONE,
                ignore: PredSrc::FALSE,
                barrier: None,
                bulk: true,
                reduce: None,
                blocks: NONE,
                bytes: NONE,
                end: CopyEnd::Issue,
            };
            self.emit(Op::Copy(Box::new(copy)));
            return Ok(());
        }
        let (index, value) = match i.operands.len() {
            2 => (0, 1),
            _ => match self.operand(i, 1)? {
                Operand::Int(n) => (u32::try_from(*n).unwrap_or(u32::MAX), 2),
                _ => return unsupported("an index that is no constant"),
            },
        };
        let found = mods.words.iter().find_map(|w| tensor_map::field(w, index));
        let (true, Some((offset, bytes))) = (mods.has("replace"), found) else {
            return unsupported("");
        };
        let Addr { base, offset: at } = self.memory_operand(i, 0)?;
        let a = self.source(self.operand(i, value)?, Ty::B64)?;
        self.emit(Op::Store {
            space,
            mem: Mem {
                bytes,
                signed: false,
                register: bytes,
            },
            addr: Addr {
                base,
                offset: at + offset,
            },
            a,
        });
        Ok(())
    }
}
