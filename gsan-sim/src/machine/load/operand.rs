//! Operands: registers, constants, special registers, addresses.

use gsan_ptx::ast::{self, Instruction, Operand};

use super::function::{Decoded, Decoder, Problem, Register};
use super::{FUNCTION_BASE, Symbol};
use crate::machine::ir::{Addr, Base, NONE, Op, PredSrc, Reg, Special, Src};
use crate::machine::ty::Ty;

/// An instruction that is wrong.
pub fn invalid<T>(message: impl Into<String>) -> Decoded<T> {
    Err(Problem::Invalid(message.into()))
}

/// An instruction that the machine lacks.
pub fn unsupported<T>(why: impl Into<String>) -> Decoded<T> {
    Err(Problem::Unsupported(why.into()))
}

impl<'a> Decoder<'_, 'a> {
    /// The operand with that number.
    pub fn operand<'i>(&self, i: &'i Instruction<'a>, n: usize) -> Decoded<&'i Operand<'a>> {
        match i.operands.get(n) {
            Some(o) => Ok(o),
            None => invalid(format!("`{}` needs more operands", i.full_name())),
        }
    }

    /// A value of that type.
    pub fn source(&mut self, operand: &Operand<'a>, ty: Ty) -> Decoded<Src> {
        if ty == Ty::B128 {
            return Ok(self.wide_register(operand)?.slot);
        }
        match operand {
            Operand::Name(name) => self.named(name, 0),
            Operand::NameOffset(name, offset) => self.named(name, *offset),
            Operand::Int(n) => Ok(match ty {
                Ty::F32 if !(0..=0xffff_ffff).contains(n) => {
                    self.constant(u64::from((*n as f32).to_bits()))
                }
                _ => self.constant(*n as u64 & ty.mask()),
            }),
            Operand::F32(bits) => Ok(match ty {
                Ty::F64 => self.constant(f64::from(f32::from_bits(*bits)).to_bits()),
                _ => self.constant(u64::from(*bits)),
            }),
            Operand::F64(bits) => Ok(match ty {
                Ty::F32 => self.constant(u64::from((f64::from_bits(*bits) as f32).to_bits())),
                _ => self.constant(*bits),
            }),
            Operand::Neg(inner) => {
                let a = self.source(inner, ty)?;
                let mods = ["neg", ty_name(ty)];
                let alu = crate::machine::alu::find(
                    "neg",
                    &crate::machine::alu::Mods::new(&mods[1..]),
                    1,
                );
                let d = self.fresh();
                match alu {
                    Some(crate::machine::alu::Alu {
                        func: crate::machine::alu::Func::One(f),
                        flags,
                        ..
                    }) => {
                        self.emit_always(Op::Alu1 { f, flags, d, a });
                        Ok(d)
                    }
                    _ => unsupported("negated operand"),
                }
            }
            Operand::Vector(list) if list.len() == 1 => self.source(&list[0], ty),
            Operand::Sink => Ok(self.constant(0)),
            _ => unsupported("operand"),
        }
    }

    fn named(&mut self, name: &'a str, offset: i64) -> Decoded<Src> {
        if let Some(r) = self.register(name) {
            if r.ty == Ty::Pred {
                return invalid(format!("`{name}` is a predicate; a value is needed here"));
            }
            if offset == 0 {
                return Ok(r.slot);
            }
            return unsupported("register plus offset");
        }
        if name == "WARP_SZ" {
            return Ok(self.constant((32 + offset) as u64));
        }
        if let Some(s) = special(name) {
            if matches!(
                s,
                Special::ReservedSharedBegin | Special::ReservedSharedOffset(_)
            ) {
                self.take_reserved_shared();
            }
            let d = self.fresh();
            self.emit_always(Op::Special { d, s });
            return Ok(d);
        }
        let Some(symbol) = self.symbol(name) else {
            if name.starts_with('%') {
                return unsupported(format!(
                    "`{name}` is neither a declared register nor a special one"
                ));
            }
            return invalid(format!("`{name}` is not declared"));
        };
        let d = match symbol {
            Symbol::Memory(address) => {
                return Ok(self.constant(address.wrapping_add_signed(offset)));
            }
            Symbol::Shared(address) => {
                return Ok(self.constant(u64::from(address).wrapping_add_signed(offset)));
            }
            Symbol::Function(index) => {
                return Ok(self.constant(FUNCTION_BASE + 16 * u64::from(index)));
            }
            Symbol::Builtin(_) => return unsupported("address of a function of the system"),
            Symbol::Undefined => {
                return invalid(format!(
                    "`{name}` is declared but not defined in this module"
                ));
            }
            Symbol::DynamicShared(align) => {
                let d = self.fresh();
                self.emit_always(Op::AddressOf {
                    d,
                    addr: Addr {
                        base: Base::Dynamic(align),
                        offset,
                    },
                });
                d
            }
            Symbol::Frame(at, _) => {
                let d = self.fresh();
                let addr = Addr {
                    base: Base::Frame,
                    offset: i64::from(at) + offset,
                };
                self.emit_always(Op::AddressOf { d, addr });
                d
            }
            Symbol::Param(at, _) => {
                self.take_param_address();
                return Ok(self.constant((i64::from(at) + offset) as u64));
            }
        };
        Ok(d)
    }

    /// Where a result goes; a register that nobody reads for `_`.
    pub fn target(&mut self, operand: &Operand<'a>) -> Decoded<Register> {
        match operand {
            Operand::Name(name) => match self.register(name) {
                Some(r) if r.ty != Ty::Pred => Ok(r),
                Some(_) => invalid(format!(
                    "`{name}` is a predicate; a register is needed here"
                )),
                None => invalid(format!("`{name}` is not declared")),
            },
            Operand::Sink => Ok(Register {
                slot: self.fresh(),
                ty: Ty::B64,
            }),
            Operand::Vector(list) if list.len() == 1 => self.target(&list[0]),
            _ => unsupported("result operand"),
        }
    }

    /// A predicate result, [`NONE`] for `_`.
    pub fn predicate_target(&mut self, operand: &Operand<'a>) -> Decoded<u32> {
        match operand {
            Operand::Name(name) => self.predicate(name),
            Operand::Sink => Ok(NONE),
            _ => unsupported("predicate operand"),
        }
    }

    /// A predicate to read.
    pub fn predicate_source(&mut self, operand: &Operand<'a>) -> Decoded<PredSrc> {
        match operand {
            Operand::Name(name @ "%is_explicit_cluster") => {
                let value = self.named(name, 0)?;
                let p = self.fresh_predicate();
                self.emit(Op::Test { a: value, d: p });
                Ok(PredSrc::slot(p, false))
            }
            Operand::Name(name) => Ok(PredSrc::slot(self.predicate(name)?, false)),
            Operand::Not(inner) => Ok(self.predicate_source(inner)?.not()),
            Operand::Int(0) => Ok(PredSrc::FALSE),
            Operand::Int(_) => Ok(PredSrc::TRUE),
            _ => unsupported("predicate operand"),
        }
    }

    /// `[base+offset]`, and the parameter it lies in if it is a kernel's.
    pub fn address(&mut self, operand: &Operand<'a>) -> Decoded<Place> {
        let address = match operand {
            Operand::Address(a) => a,
            _ => return unsupported("address operand"),
        };
        self.address_of(address)
    }

    /// The same of a parsed address.
    pub fn address_of(&mut self, address: &ast::Address<'a>) -> Decoded<Place> {
        let offset = address.offset;
        let Some(name) = address.base else {
            let zero = self.constant(0);
            return Ok(Place::Memory(Addr {
                base: Base::Value(zero),
                offset,
            }));
        };
        if let Some(r) = self.register(name) {
            if r.ty == Ty::Pred {
                return invalid(format!(
                    "`{name}` is a predicate; an address is needed here"
                ));
            }
            return Ok(Place::Memory(Addr {
                base: Base::Value(r.slot),
                offset,
            }));
        }
        let base = match self.symbol(name) {
            Some(Symbol::Memory(address)) => Base::Value(self.constant(address)),
            Some(Symbol::Shared(address)) => Base::Value(self.constant(u64::from(address))),
            Some(Symbol::DynamicShared(align)) => Base::Dynamic(align),
            Some(Symbol::Frame(at, _)) => {
                return Ok(Place::Memory(Addr {
                    base: Base::Frame,
                    offset: offset + i64::from(at),
                }));
            }
            Some(Symbol::Param(at, _)) => return Ok(Place::Param(i64::from(at) + offset)),
            Some(Symbol::Undefined) => {
                return invalid(format!(
                    "`{name}` is declared but not defined in this module"
                ));
            }
            Some(Symbol::Function(_) | Symbol::Builtin(_)) => {
                return unsupported("access to a function's code");
            }
            None => return invalid(format!("`{name}` is not declared")),
        };
        Ok(Place::Memory(Addr { base, offset }))
    }

    /// A 128-bit register: two slots, of which this is the first.
    fn wide_register(&mut self, operand: &Operand<'a>) -> Decoded<Register> {
        match operand {
            Operand::Name(name) => match self.register(name) {
                Some(r) if r.ty == Ty::B128 => Ok(r),
                _ => unsupported(format!("`{name}` is no 128-bit register")),
            },
            Operand::Vector(list) if list.len() == 1 => self.wide_register(&list[0]),
            _ => unsupported("128-bit operand"),
        }
    }

    /// Where a result of that type goes.
    pub fn target_for(&mut self, operand: &Operand<'a>, ty: Ty) -> Decoded<Register> {
        if ty == Ty::B128 {
            self.wide_register(operand)
        } else {
            self.target(operand)
        }
    }

    /// The registers of `{a, b, …}` or of one name, for values of that type.
    pub fn targets(&mut self, operand: &Operand<'a>, ty: Ty) -> Decoded<Vec<Register>> {
        match operand {
            Operand::Vector(list) => list.iter().map(|o| self.target_for(o, ty)).collect(),
            _ => Ok(vec![self.target_for(operand, ty)?]),
        }
    }

    /// The values of `{a, b, …}` or of one operand.
    pub fn sources(&mut self, operand: &Operand<'a>, ty: Ty) -> Decoded<Vec<Src>> {
        match operand {
            Operand::Vector(list) => list.iter().map(|o| self.source(o, ty)).collect(),
            _ => Ok(vec![self.source(operand, ty)?]),
        }
    }

    /// A copy from one register to another.
    pub fn copy(&mut self, d: Reg, a: Src) {
        self.emit(Op::Mov { d, a });
    }
}

/// Where an address points.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// A kernel's parameter, at that offset of the parameter buffer.
    Param(i64),
    /// Anything else.
    Memory(Addr),
}

fn ty_name(ty: Ty) -> &'static str {
    match ty {
        Ty::F32 => "f32",
        Ty::F64 => "f64",
        Ty::F16 => "f16",
        Ty::Bf16 => "bf16",
        _ => match ty.bytes() {
            2 => "s16",
            4 => "s32",
            _ => "s64",
        },
    }
}

/// A special register by name.
pub fn special(name: &str) -> Option<Special> {
    let (stem, dimension) = match name.rsplit_once('.') {
        Some((stem, "x")) => (stem, 0),
        Some((stem, "y")) => (stem, 1),
        Some((stem, "z")) => (stem, 2),
        Some((_, "w")) => return None,
        _ => (name, 0),
    };
    Some(match stem {
        "%tid" => Special::Tid(dimension),
        "%ntid" => Special::Ntid(dimension),
        "%ctaid" => Special::Ctaid(dimension),
        "%nctaid" => Special::Nctaid(dimension),
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::NwarpId,
        "%smid" => Special::SmId,
        "%nsmid" => Special::NsmId,
        "%gridid" => Special::GridId,
        "%lanemask_eq" => Special::LanemaskEq,
        "%lanemask_le" => Special::LanemaskLe,
        "%lanemask_lt" => Special::LanemaskLt,
        "%lanemask_ge" => Special::LanemaskGe,
        "%lanemask_gt" => Special::LanemaskGt,
        "%clock" => Special::Clock,
        "%clock_hi" => Special::ClockHi,
        "%clock64" => Special::Clock64,
        "%globaltimer" => Special::GlobalTimer,
        "%globaltimer_lo" => Special::GlobalTimerLo,
        "%globaltimer_hi" => Special::GlobalTimerHi,
        "%dynamic_smem_size" => Special::DynamicSharedSize,
        "%total_smem_size" => Special::TotalSharedSize,
        "%aggr_smem_size" => Special::AggregateSharedSize,
        "%reserved_smem_offset_begin" => Special::ReservedSharedBegin,
        "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => Special::ReservedSharedEnd,
        "%reserved_smem_offset_0" => Special::ReservedSharedOffset(0),
        "%reserved_smem_offset_1" => Special::ReservedSharedOffset(1),
        // No kernel is launched from another one here: the register reads as zero where there is no such graph.
        "%current_graph_exec" => Special::Pm(0),
        "%clusterid" => Special::ClusterId(dimension),
        "%nclusterid" => Special::NclusterId(dimension),
        "%cluster_ctaid" => Special::ClusterCtaId(dimension),
        "%cluster_nctaid" => Special::ClusterNctaId(dimension),
        "%cluster_ctarank" => Special::ClusterCtaRank,
        "%cluster_nctarank" => Special::ClusterNctaRank,
        "%is_explicit_cluster" => Special::IsExplicitCluster,
        _ => {
            if let Some(n) = stem.strip_prefix("%envreg") {
                Special::EnvReg(n.parse().ok().filter(|&n: &u8| n < 32)?)
            } else if let Some(n) = stem.strip_prefix("%pm") {
                Special::Pm(n.trim_end_matches("_64").parse().ok()?)
            } else {
                return None;
            }
        }
    })
}
