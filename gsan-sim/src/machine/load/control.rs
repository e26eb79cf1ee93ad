//! Control flow, calls, barriers, and instructions that exchange values within a warp.

use gsan_ptx::ast::{Instruction, Operand};

use super::Symbol;
use super::function::{Decoded, Decoder};
use super::operand::{invalid, unsupported};
use crate::machine::alu::Mods;
use crate::machine::ir::{
    Addr, Barrier, BarrierKind, Base, BuiltinCall, Call, Mem, NONE, Op, PredSrc, Reg, Space,
    Target, WarpKind, WarpOp,
};
use crate::machine::ty::Ty;

impl<'a> Decoder<'_, 'a> {
    /// Decodes a control instruction.
    pub fn control(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        match i.opcode {
            "bra" => {
                let Operand::Name(label) = self.operand(i, 0)? else {
                    return unsupported("");
                };
                let target = self.label(label)?;
                self.emit(Op::Branch { target });
            }
            "brx" => {
                let index = self.source(self.operand(i, 0)?, Ty::U32)?;
                let Operand::Name(list) = self.operand(i, 1)? else {
                    return unsupported("");
                };
                let targets = self.branch_targets(list)?;
                let targets = targets
                    .iter()
                    .map(|t| self.label(t))
                    .collect::<Result<Vec<_>, _>>()?;
                self.emit(Op::BranchIndexed {
                    index,
                    targets: targets.into(),
                });
            }
            "call" => return self.call(i),
            "ret" => self.emit_return(),
            "exit" => self.emit(Op::Exit),
            "trap" | "brkpt" => self.emit(Op::Trap),
            "bar" | "barrier" => return self.barrier(i, mods),
            "activemask" => {
                let d = self.target(self.operand(i, 0)?)?.slot;
                self.emit(Op::ActiveMask { d });
            }
            "nanosleep" => self.emit(Op::Sleep),
            "alloca" => {
                let d = self.target(self.operand(i, 0)?)?.slot;
                let size = self.source(self.operand(i, 1)?, Ty::U64)?;
                let align = match i.operands.get(2) {
                    None => 8,
                    Some(Operand::Int(n)) => match u32::try_from(*n) {
                        Ok(n) if n.is_power_of_two() && n <= 1 << 20 => n,
                        _ => return invalid("no power of two, or too large an alignment"),
                    },
                    Some(_) => return unsupported("the alignment is no constant"),
                };
                self.emit(Op::Alloca { d, size, align });
            }
            "stacksave" => {
                let d = self.target(self.operand(i, 0)?)?.slot;
                self.emit(Op::StackSave { d });
            }
            "stackrestore" => {
                let a = self.source(self.operand(i, 0)?, Ty::U64)?;
                self.emit(Op::StackRestore { a });
            }
            "griddepcontrol" if mods.has("wait") => self.emit(Op::GridWait),
            "griddepcontrol" => self.emit(Op::LaunchDependents),
            // Register counts are not modelled.
            "setmaxnreg" | "pmevent" => self.emit(Op::Nop),
            _ => return self.exchange(i, mods),
        }
        Ok(())
    }

    fn call(&mut self, i: &Instruction<'a>) -> Decoded<()> {
        let mut operands = i.operands.iter();
        let mut first = operands.next();
        let mut rets: &[Operand<'a>] = &[];
        if let Some(Operand::List(list)) = first {
            rets = list;
            first = operands.next();
        }
        let Some(Operand::Name(callee)) = first else {
            return unsupported("");
        };
        let args: &[Operand<'a>] = match operands.next() {
            Some(Operand::List(list)) => list,
            _ => &[],
        };
        let args = args
            .iter()
            .map(|o| self.argument(o))
            .collect::<Result<Vec<_>, _>>()?;
        let mut results = Vec::new();
        let mut loads = Vec::new();
        for o in rets {
            let (place, register) = self.result(o)?;
            results.push(place);
            loads.extend(register.map(|r| (r, place)));
        }
        let (args, rets) = (args.into(), results.into());
        if let Some(r) = self.register(callee) {
            self.emit(Op::Call(Box::new(Call {
                target: Target::Indirect(r.slot),
                args,
                rets,
            })));
        } else {
            match self.symbol(callee) {
                Some(Symbol::Function(index)) => {
                    self.emit(Op::Call(Box::new(Call {
                        target: Target::Direct(index),
                        args,
                        rets,
                    })));
                }
                Some(Symbol::Builtin(which)) => {
                    self.emit(Op::Builtin(Box::new(BuiltinCall { which, args, rets })))
                }
                _ => {
                    return invalid(format!(
                        "function `{callee}` is called but not defined in this module"
                    ));
                }
            }
        }
        for (d, (offset, size)) in loads {
            let mem = value_mem(size);
            self.emit(Op::Load {
                space: Space::Local,
                mem,
                d,
                addr: frame(offset),
            });
        }
        Ok(())
    }

    /// An argument's place in the frame; values are stored there first.
    fn argument(&mut self, o: &Operand<'a>) -> Decoded<(u32, u32)> {
        if let Operand::Name(name) = o {
            if let Some(Symbol::Frame(offset, size)) = self.symbol(name) {
                return Ok((offset, size));
            }
            if let Some(r) = self.register(name) {
                let size = r.ty.bytes().min(8);
                let offset = self.frame_bytes(size, 8);
                self.emit(Op::Store {
                    space: Space::Local,
                    mem: value_mem(size),
                    addr: frame(offset),
                    a: r.slot,
                });
                return Ok((offset, size));
            }
        }
        let ty = if matches!(o, Operand::F32(_)) {
            Ty::F32
        } else {
            Ty::B64
        };
        let a = self.source(o, ty)?;
        let offset = self.frame_bytes(8, 8);
        self.emit(Op::Store {
            space: Space::Local,
            mem: value_mem(8),
            addr: frame(offset),
            a,
        });
        Ok((offset, 8))
    }

    /// A result's place in the frame, and the register that it goes to afterwards.
    fn result(&mut self, o: &Operand<'a>) -> Decoded<((u32, u32), Option<Reg>)> {
        match o {
            Operand::Name(name) => {
                if let Some(Symbol::Frame(offset, size)) = self.symbol(name) {
                    return Ok(((offset, size), None));
                }
                let r = self.target(o)?;
                let size = r.ty.bytes().min(8);
                Ok(((self.frame_bytes(size, 8), size), Some(r.slot)))
            }
            Operand::Sink => Ok(((self.frame_bytes(8, 8), 0), None)),
            _ => unsupported("result of a call"),
        }
    }

    fn barrier(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let has = |w: &str| mods.has(w);
        if has("warp") {
            let mask = self.source(self.operand(i, 0)?, Ty::B32)?;
            self.emit(Op::WarpSync { mask });
            return Ok(());
        }
        if has("cluster") {
            self.emit(Op::ClusterBarrier {
                arrive: has("arrive"),
                wait: has("wait"),
                aligned: has("aligned"),
            });
            return Ok(());
        }
        let count_of = |d: &mut Self, n: usize| match i.operands.get(n) {
            Some(o) => d.source(o, Ty::U32),
            None => Ok(NONE),
        };
        let aligned = i.opcode == "bar" || has("aligned");
        if !has("red") {
            let kind = if has("arrive") {
                BarrierKind::Arrive
            } else {
                BarrierKind::Sync
            };
            let id = self.source(self.operand(i, 0)?, Ty::U32)?;
            let count = count_of(self, 1)?;
            if kind == BarrierKind::Arrive && count == NONE {
                return invalid("`bar.arrive` needs a thread count");
            }
            self.emit(Op::Barrier(Box::new(Barrier {
                kind,
                aligned,
                id,
                count,
                p: PredSrc::TRUE,
                d: NONE,
            })));
            return Ok(());
        }
        let (kind, d) = if has("popc") {
            (BarrierKind::Popc, self.target(self.operand(i, 0)?)?.slot)
        } else {
            let d = self.predicate_target(self.operand(i, 0)?)?;
            (
                if has("and") {
                    BarrierKind::And
                } else {
                    BarrierKind::Or
                },
                d,
            )
        };
        let id = self.source(self.operand(i, 1)?, Ty::U32)?;
        let last = i.operands.len() - 1;
        let count = if last == 3 { count_of(self, 2)? } else { NONE };
        let p = self.predicate_source(self.operand(i, last)?)?;
        self.emit(Op::Barrier(Box::new(Barrier {
            kind,
            aligned,
            id,
            count,
            p,
            d,
        })));
        Ok(())
    }

    fn exchange(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let has = |w: &str| mods.has(w);
        let sync = has("sync");
        let ty = mods.ty().unwrap_or(Ty::B32);
        let (to, second) = match self.operand(i, 0)? {
            Operand::Pair(d, p) => (&**d, Some(&**p)),
            one => (one, None),
        };
        let p = match second {
            Some(o) => self.predicate_target(o)?,
            None => NONE,
        };
        let mut op = WarpOp {
            kind: WarpKind::Elect,
            ty,
            d: NONE,
            p,
            a: 0,
            b: 0,
            c: 0,
            vote: PredSrc::TRUE,
            mask: NONE,
            abs: has("abs"),
            nan: has("NaN"),
        };
        let pick = |list: &[(&str, WarpKind)]| list.iter().find(|(w, _)| has(w)).map(|(_, k)| *k);
        match i.opcode {
            "shfl" => {
                let kinds = [
                    ("up", WarpKind::ShflUp),
                    ("down", WarpKind::ShflDown),
                    ("bfly", WarpKind::ShflBfly),
                    ("idx", WarpKind::ShflIdx),
                ];
                let Some(kind) = pick(&kinds) else {
                    return unsupported("");
                };
                op.kind = kind;
                op.d = self.target(to)?.slot;
                op.a = self.source(self.operand(i, 1)?, Ty::B32)?;
                op.b = self.source(self.operand(i, 2)?, Ty::B32)?;
                op.c = self.source(self.operand(i, 3)?, Ty::B32)?;
                if sync {
                    op.mask = self.source(self.operand(i, 4)?, Ty::B32)?;
                }
            }
            "vote" => {
                let kinds = [
                    ("all", WarpKind::VoteAll),
                    ("any", WarpKind::VoteAny),
                    ("uni", WarpKind::VoteUni),
                    ("ballot", WarpKind::VoteBallot),
                ];
                let Some(kind) = pick(&kinds) else {
                    return unsupported("");
                };
                op.kind = kind;
                if kind == WarpKind::VoteBallot {
                    op.d = self.target(to)?.slot;
                } else {
                    op.p = self.predicate_target(to)?;
                }
                op.vote = self.predicate_source(self.operand(i, 1)?)?;
                if sync {
                    op.mask = self.source(self.operand(i, 2)?, Ty::B32)?;
                }
            }
            "match" => {
                op.kind = if has("all") {
                    WarpKind::MatchAll
                } else {
                    WarpKind::MatchAny
                };
                op.d = self.target(to)?.slot;
                op.a = self.source(self.operand(i, 1)?, ty)?;
                op.mask = self.source(self.operand(i, 2)?, Ty::B32)?;
            }
            "redux" => {
                let kinds = [
                    ("add", WarpKind::ReduxAdd),
                    ("min", WarpKind::ReduxMin),
                    ("max", WarpKind::ReduxMax),
                    ("and", WarpKind::ReduxAnd),
                    ("or", WarpKind::ReduxOr),
                    ("xor", WarpKind::ReduxXor),
                ];
                let float = |kind| matches!(kind, WarpKind::ReduxMin | WarpKind::ReduxMax);
                let fits = |kind: &WarpKind| ty.is_int() || ty == Ty::F32 && float(*kind);
                let Some(kind) = pick(&kinds).filter(fits) else {
                    return unsupported("");
                };
                op.kind = kind;
                op.d = self.target(to)?.slot;
                op.a = self.source(self.operand(i, 1)?, ty)?;
                op.mask = self.source(self.operand(i, 2)?, Ty::B32)?;
            }
            "elect" => {
                op.d = match to {
                    Operand::Sink => NONE,
                    o => self.target(o)?.slot,
                };
                op.mask = self.source(self.operand(i, 1)?, Ty::B32)?;
            }
            _ => return unsupported(""),
        }
        self.emit(Op::Warp(Box::new(op)));
        Ok(())
    }
}

fn frame(offset: u32) -> Addr {
    Addr {
        base: Base::Frame,
        offset: i64::from(offset),
    }
}

fn value_mem(bytes: u32) -> Mem {
    Mem {
        bytes: bytes as u8,
        signed: false,
        register: bytes as u8,
    }
}
