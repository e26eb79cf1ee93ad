//! Memory instructions: loads, stores, atomics, address conversion, asynchronous copies, mbarriers.

use gsan_ptx::ast::{Instruction, Operand};

use super::function::{Decoded, Decoder, Register};
use super::opcode::mem;
use super::operand::{Place, invalid, unsupported};
use crate::machine::alu::Mods;
use crate::machine::ir::{
    Addr, Atomic, AtomicOp, Base, Mbarrier, MbarrierOp, NONE, Op, Space, Window,
};
use crate::machine::ty::Ty;

/// The state space among the modifiers, from `from` on.
pub fn space(words: &[&str]) -> Option<Space> {
    words.iter().find_map(|w| {
        Some(match *w {
            // Kernel parameters have addresses of global memory here, and so have constants.
            "global" | "param" | "param::entry" => Space::Global,
            "const" => Space::Const,
            "shared" | "shared::cta" => Space::Shared,
            "shared::cluster" => Space::SharedCluster,
            "local" | "param::func" => Space::Local,
            _ => return None,
        })
    })
}

/// Whether it is about parameters.
fn is_param(mods: &Mods<'_>) -> bool {
    mods.has("param") || mods.has("param::entry")
}

/// The operation among an atomic's or a reduction's modifiers.
pub fn atomic_op(words: &[&str]) -> Option<AtomicOp> {
    words.iter().find_map(|w| {
        Some(match *w {
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            "xor" => AtomicOp::Xor,
            "exch" => AtomicOp::Exch,
            "add" => AtomicOp::Add,
            "inc" => AtomicOp::Inc,
            "dec" => AtomicOp::Dec,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            "cas" => AtomicOp::Cas,
            _ => return None,
        })
    })
}

impl<'a> Decoder<'_, 'a> {
    /// Decodes a memory instruction.
    pub fn data(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        match i.opcode {
            "ld" | "ldu" => self.load(i, mods),
            "st" => self.store(i, mods),
            "atom" => self.atomic(i, mods, true),
            "red" => self.atomic(i, mods, false),
            "cvta" => self.convert_address(i, mods),
            "isspacep" => self.is_space(i, mods),
            "cp" => self.copy_async(i, mods),
            "tensormap" => self.tensor_map(i, mods),
            "mbarrier" => self.mbarrier(i, mods),
            "fence" | "membar" => {
                self.emit(Op::Fence);
                Ok(())
            }
            "mapa" => self.map_shared(i, mods),
            "getctarank" => {
                let d = self.target(self.operand(i, 0)?)?.slot;
                let a = self.source(self.operand(i, 1)?, Ty::B64)?;
                self.emit(Op::SharedRank { d, a });
                Ok(())
            }
            // A cache policy is a number that nobody looks into.
            "createpolicy" => {
                let d = self.target(self.operand(i, 0)?)?.slot;
                let zero = self.constant(0);
                self.copy(d, zero);
                Ok(())
            }
            // Hints. (`discard` may also do nothing.)
            "prefetch" | "prefetchu" | "discard" | "applypriority" => {
                self.emit(Op::Nop);
                Ok(())
            }
            _ => unsupported(""),
        }
    }

    fn space_of(&self, mods: &Mods<'_>, place: Place) -> Space {
        match (space(mods.words), place) {
            // Parameters of a `.func`, and those of a call, live in the frame.
            (
                Some(Space::Global),
                Place::Memory(Addr {
                    base: Base::Frame, ..
                }),
            ) => Space::Local,
            (Some(Space::Global), _) if mods.has("param") && !self.in_kernel() => Space::Local,
            (Some(s), _) => s,
            (None, _) => Space::Generic,
        }
    }

    fn load(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let Some(ty) = mods.ty() else {
            return invalid("`ld` without a type");
        };
        let place = self.address(self.operand(i, 1)?)?;
        let mut targets = self.targets(self.operand(i, 0)?, ty)?;
        if ty == Ty::B128 {
            targets = targets
                .iter()
                .flat_map(|r| {
                    [0, 1].map(|n| Register {
                        slot: r.slot + n,
                        ty: Ty::B64,
                    })
                })
                .collect();
        }
        let ty = if ty == Ty::B128 { Ty::B64 } else { ty };
        let Some(first) = targets.first() else {
            return invalid("`ld` into nothing");
        };
        let mem = mem(ty, first.ty);
        let slots: Vec<u32> = targets.iter().map(|r| r.slot).collect();
        match place {
            Place::Param(offset) => {
                let Ok(offset) = u32::try_from(offset) else {
                    return invalid("parameter offset out of range");
                };
                self.emit(Op::LoadParam {
                    mem,
                    offset,
                    d: slots.into(),
                });
            }
            Place::Memory(mut addr) => {
                let space = self.space_of(mods, place);
                if is_param(mods) && self.in_kernel() {
                    addr = self.in_parameters(addr);
                }
                match slots[..] {
                    [d] => self.emit(Op::Load {
                        space,
                        mem,
                        d,
                        addr,
                    }),
                    _ => self.emit(Op::LoadVector {
                        space,
                        mem,
                        addr,
                        d: slots.into(),
                    }),
                }
            }
        }
        Ok(())
    }

    /// The generic address of a place in a kernel's parameters that a register names.
    fn in_parameters(&mut self, addr: Addr) -> Addr {
        let Base::Value(a) = addr.base else {
            return addr;
        };
        self.take_param_address();
        let d = self.fresh();
        self.emit_always(Op::ParamAddress { d, a, to: false });
        Addr {
            base: Base::Value(d),
            offset: addr.offset,
        }
    }

    fn store(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if mods.has("bulk") {
            let addr = self.memory_operand(i, 0)?;
            let size = self.source(self.operand(i, 1)?, Ty::U64)?;
            let space = space(mods.words).unwrap_or(Space::Generic);
            self.emit(Op::Fill { space, addr, size });
            return Ok(());
        }
        let Some(ty) = mods.ty() else {
            return invalid("`st` without a type");
        };
        let place = self.address(self.operand(i, 0)?)?;
        let Place::Memory(addr) = place else {
            return invalid("store to a kernel's parameter");
        };
        let mut values = self.sources(self.operand(i, 1)?, ty)?;
        if ty == Ty::B128 {
            values = values.iter().flat_map(|&s| [s, s + 1]).collect();
        }
        let ty = if ty == Ty::B128 { Ty::B64 } else { ty };
        let mem = mem(ty, ty);
        let bytes = values.len() as u64 * u64::from(mem.bytes);
        let space = self.space_of(mods, place);
        match values[..] {
            [a] => self.emit(Op::Store {
                space,
                mem,
                addr,
                a,
            }),
            _ => self.emit(Op::StoreVector {
                space,
                mem,
                addr,
                a: values.into(),
            }),
        }
        if mods.has("async") {
            self.complete(i, mods, 2, bytes)?;
        }
        Ok(())
    }

    /// What an asynchronous store or reduction, done at issue, tells its mbarrier.
    fn complete(
        &mut self,
        i: &Instruction<'a>,
        mods: &Mods<'_>,
        operand: usize,
        bytes: u64,
    ) -> Decoded<()> {
        if !mods.has("mbarrier::complete_tx::bytes") {
            return Ok(());
        }
        let addr = self.memory_operand(i, operand)?;
        let (a, tx) = (self.constant(1), self.constant(bytes));
        self.emit(Op::Mbarrier(Box::new(Mbarrier {
            op: MbarrierOp::CompleteTx,
            space: Space::SharedCluster,
            addr,
            d: NONE,
            p: NONE,
            a,
            tx,
        })));
        Ok(())
    }

    fn atomic(&mut self, i: &Instruction<'a>, mods: &Mods<'_>, result: bool) -> Decoded<()> {
        let Some(ty) = mods.ty() else {
            return invalid("an atomic without a type");
        };
        let Some(op) = atomic_op(mods.words) else {
            return unsupported("");
        };
        let at = usize::from(result);
        let place = self.address(self.operand(i, at)?)?;
        let Place::Memory(addr) = place else {
            return invalid("an atomic on a kernel's parameter");
        };
        let b = self.sources(self.operand(i, at + 1)?, ty)?;
        let c = if op == AtomicOp::Cas {
            self.source(self.operand(i, at + 2)?, ty)?
        } else {
            NONE
        };
        let d = match (result, i.operands.first()) {
            (true, Some(Operand::Sink)) | (false, _) => vec![NONE; b.len()],
            (true, Some(o)) => self.targets(o, ty)?.iter().map(|r| r.slot).collect(),
            (true, None) => return invalid("operands are missing"),
        };
        if d.len() != b.len() {
            return invalid("as many results as operands are needed");
        }
        let space = self.space_of(mods, place);
        self.emit(Op::Atomic(Box::new(Atomic {
            op,
            ty,
            space,
            addr,
            d: d.into(),
            b: b.into(),
            c,
        })));
        if mods.has("async") {
            self.complete(i, mods, 2, u64::from(ty.bytes()))?;
        }
        Ok(())
    }

    fn convert_address(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let d = self.target(self.operand(i, 0)?)?.slot;
        let a = self.source(self.operand(i, 1)?, Ty::B64)?;
        if is_param(mods) && self.in_kernel() {
            self.take_param_address();
            let to = mods.has("to");
            self.emit(Op::ParamAddress { d, a, to });
            return Ok(());
        }
        // A `.func`'s parameters live in its frame, which is local memory.
        let found = match space(mods.words) {
            Some(Space::Global) if mods.has("param") && !self.in_kernel() => Some(Space::Local),
            other => other,
        };
        match found {
            Some(s @ (Space::Shared | Space::SharedCluster | Space::Local)) => {
                self.emit(Op::Convert {
                    d,
                    a,
                    space: s,
                    to: mods.has("to"),
                });
            }
            Some(_) => self.copy(d, a),
            None => return invalid("`cvta` without a space"),
        }
        Ok(())
    }

    fn is_space(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let space = mods.words.iter().find_map(|w| {
            Some(match *w {
                "global" => Window::Global,
                "shared" | "shared::cta" => Window::Shared,
                "shared::cluster" => Window::SharedCluster,
                "local" => Window::Local,
                "const" => Window::Const,
                "param" | "param::entry" => Window::Param,
                _ => return None,
            })
        });
        let Some(space) = space else {
            return unsupported("");
        };
        let d = self.predicate_target(self.operand(i, 0)?)?;
        let a = self.source(self.operand(i, 1)?, Ty::B64)?;
        self.emit(Op::IsSpace { d, a, space });
        Ok(())
    }

    fn map_shared(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let d = self.target(self.operand(i, 0)?)?.slot;
        let a = self.source(self.operand(i, 1)?, Ty::B64)?;
        let rank = self.source(self.operand(i, 2)?, Ty::U32)?;
        self.emit(Op::MapShared {
            d,
            a,
            rank,
            generic: space(mods.words).is_none(),
        });
        Ok(())
    }

    pub(super) fn memory_operand(&mut self, i: &Instruction<'a>, n: usize) -> Decoded<Addr> {
        match self.address(self.operand(i, n)?)? {
            Place::Memory(addr) => Ok(addr),
            Place::Param(_) => unsupported("kernel parameter as a memory operand"),
        }
    }

    fn mbarrier(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let has = |w: &str| mods.has(w);
        let space = space(mods.words).unwrap_or(Space::Generic);
        let (zero, one) = (self.constant(0), self.constant(1));
        let mut m = Mbarrier {
            op: MbarrierOp::Init,
            space,
            addr: Addr {
                base: Base::Frame,
                offset: 0,
            },
            d: NONE,
            p: NONE,
            a: one,
            tx: zero,
        };
        if has("init") {
            m.addr = self.memory_operand(i, 0)?;
            m.a = self.source(self.operand(i, 1)?, Ty::U32)?;
        } else if has("inval") {
            m.op = MbarrierOp::Inval;
            m.addr = self.memory_operand(i, 0)?;
        } else if has("arrive") || has("arrive_drop") {
            let expect = has("expect_tx");
            m.op = MbarrierOp::Arrive {
                expect,
                drop: has("arrive_drop"),
                complete: !has("noComplete"),
            };
            // The state operand may be missing (remote barriers).
            let at = usize::from(!matches!(self.operand(i, 0)?, Operand::Address(_)));
            if at == 1 && !matches!(i.operands[0], Operand::Sink) {
                m.d = self.target(&i.operands[0])?.slot;
            }
            m.addr = self.memory_operand(i, at)?;
            if i.operands.len() > at + 1 {
                let n = self.source(self.operand(i, at + 1)?, Ty::U32)?;
                if expect {
                    m.tx = n;
                } else {
                    m.a = n;
                }
            }
        } else if has("expect_tx") || has("complete_tx") {
            m.op = if has("expect_tx") {
                MbarrierOp::ExpectTx
            } else {
                MbarrierOp::CompleteTx
            };
            m.addr = self.memory_operand(i, 0)?;
            m.tx = self.source(self.operand(i, 1)?, Ty::U32)?;
        } else if has("test_wait") || has("try_wait") {
            m.op = MbarrierOp::Test {
                parity: has("parity"),
                wait: has("try_wait"),
            };
            m.p = self.predicate_target(self.operand(i, 0)?)?;
            m.addr = self.memory_operand(i, 1)?;
            m.a = self.source(self.operand(i, 2)?, Ty::B64)?;
        } else if has("pending_count") {
            m.op = MbarrierOp::PendingCount;
            m.d = self.target(self.operand(i, 0)?)?.slot;
            m.a = self.source(self.operand(i, 1)?, Ty::B64)?;
        } else {
            return unsupported("");
        }
        self.emit(Op::Mbarrier(Box::new(m)));
        Ok(())
    }
}
