//! From an instruction to what executes it: arithmetic here, memory in `data`, control flow in `control`.

use gsan_ptx::ast::{Instruction, Operand};

use super::function::{Decoded, Decoder};
use super::operand::{invalid, unsupported};
use crate::machine::alu::compare::{Combine, find as find_compare, find_test};
use crate::machine::alu::video::Video;
use crate::machine::alu::{self, Alu, Func, Mods, integer};
use crate::machine::ir::{CarryOp, Logic, Mem, NONE, Op, PredSrc, Reg, Src};
use crate::machine::ty::Ty;

/// Decodes one instruction.
pub fn decode<'a>(d: &mut Decoder<'_, 'a>, i: &Instruction<'a>) -> Decoded<()> {
    let mods = Mods::new(&i.modifiers);
    match i.opcode {
        "ld" | "ldu" | "st" | "atom" | "red" | "cvta" | "isspacep" | "cp" | "mbarrier"
        | "fence" | "membar" | "prefetch" | "prefetchu" | "discard" | "applypriority"
        | "createpolicy" | "mapa" | "getctarank" | "tensormap" => d.data(i, &mods),
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "bar" | "barrier" | "shfl"
        | "vote" | "match" | "redux" | "activemask" | "elect" | "nanosleep" | "setmaxnreg"
        | "griddepcontrol" | "pmevent" | "alloca" | "stacksave" | "stackrestore" => {
            d.control(i, &mods)
        }
        "ldmatrix" | "stmatrix" | "movmatrix" | "mma" | "wmma" | "wgmma" => d.matrix(i, &mods),
        "tcgen05" => d.tcgen05(i, &mods),
        "clusterlaunchcontrol" => d.launch_control(i, &mods),
        "multimem" => d.multimem(i, &mods),
        "tex" | "tld4" | "txq" | "suld" | "sust" | "sured" | "suq" | "istypep" => {
            d.texture(i, &mods)
        }
        "mov" => d.mov(i, &mods),
        "setp" => d.setp(i, &mods),
        "set" => d.set(i, &mods),
        "testp" => d.testp(i, &mods),
        "selp" => d.selp(i, &mods),
        "slct" => d.slct(i, &mods),
        "lop3" => d.lop3(i, &mods),
        "and" | "or" | "xor" | "not" if mods.ty() == Some(Ty::Pred) => d.logic(i),
        _ => d.arithmetic(i, &mods),
    }
}

impl<'a> Decoder<'_, 'a> {
    fn arithmetic(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if let Some(carry) = integer::find_carry(i.opcode, mods) {
            return self.carry(i, carry);
        }
        if let Some(video) = Video::parse(i.opcode, mods) {
            return self.video(i, video);
        }
        if let ("add" | "sub" | "fma", [Ty::F32, narrow @ (Ty::F16 | Ty::Bf16)]) =
            (i.opcode, &mods.types[..])
        {
            return self.mixed(i, mods, *narrow);
        }
        let Some(alu) = alu::find(i.opcode, mods, i.operands.len().saturating_sub(1)) else {
            return unsupported("");
        };
        let target = self.target(self.operand(i, 0)?)?;
        self.apply(alu, target.slot, &i.operands[1..])?;
        // A signed result extends into a wider register.
        if i.opcode == "cvt" && alu.dst.is_signed() && target.ty.bytes() > alu.dst.bytes() {
            let words = [signed_name(target.ty.bytes()), signed_name(alu.dst.bytes())];
            if let Some(Alu {
                func: Func::One(f),
                flags,
                ..
            }) = alu::find("cvt", &Mods::new(&words), 1)
            {
                self.emit(Op::Alu1 {
                    f,
                    flags,
                    d: target.slot,
                    a: target.slot,
                });
            }
        }
        Ok(())
    }

    /// A sum or product of narrow floats with a wide one: all but the last operand are widened first, which is exact.
    fn mixed(&mut self, i: &Instruction<'a>, mods: &Mods<'_>, narrow: Ty) -> Decoded<()> {
        let name = if narrow == Ty::F16 { "f16" } else { "bf16" };
        let words: Vec<&str> = mods.words.iter().copied().filter(|w| *w != name).collect();
        let operands = i.operands.len().saturating_sub(1);
        let op = alu::find(i.opcode, &Mods::new(&words), operands);
        let widen = alu::find("cvt", &Mods::new(&["f32", name]), 1);
        let (Some(op), Some(widen)) = (op, widen) else {
            return unsupported("");
        };
        let mut values = Vec::new();
        for n in 1..operands {
            let wide = self.fresh();
            self.apply(widen, wide, &i.operands[n..=n])?;
            values.push(wide);
        }
        values.push(self.source(self.operand(i, operands)?, Ty::F32)?);
        let d = self.target(self.operand(i, 0)?)?.slot;
        let flags = op.flags;
        self.emit(match (op.func, &values[..]) {
            (Func::Two(f), &[a, b]) => Op::Alu2 { f, flags, d, a, b },
            (Func::Three(f), &[a, b, c]) => Op::Alu3 {
                f,
                flags,
                d,
                a,
                b,
                c,
            },
            _ => return unsupported("number of operands"),
        });
        Ok(())
    }

    fn apply(&mut self, alu: Alu, d: Reg, operands: &[Operand<'a>]) -> Decoded<()> {
        let wanted = match alu.func {
            Func::One(_) => 1,
            Func::Two(_) => 2,
            Func::Three(_) => 3,
            Func::Four(_) => 4,
        };
        if operands.len() < wanted {
            return invalid("operands are missing");
        }
        if operands.len() > wanted {
            return unsupported("more operands than expected");
        }
        let mut s: [Src; 4] = [0; 4];
        for (n, o) in operands.iter().enumerate() {
            s[n] = self.source(o, alu.src[n])?;
        }
        let flags = alu.flags;
        let [a, b, c, e] = s;
        self.emit(match alu.func {
            Func::One(f) => Op::Alu1 { f, flags, d, a },
            Func::Two(f) => Op::Alu2 { f, flags, d, a, b },
            Func::Three(f) => Op::Alu3 {
                f,
                flags,
                d,
                a,
                b,
                c,
            },
            Func::Four(f) => Op::Alu4 {
                f,
                flags,
                d,
                a,
                b,
                c,
                e,
            },
        });
        Ok(())
    }

    fn carry(&mut self, i: &Instruction<'a>, carry: integer::Carry) -> Decoded<()> {
        let d = self.target(self.operand(i, 0)?)?.slot;
        let a = self.source(self.operand(i, 1)?, carry.ty)?;
        let b = self.source(self.operand(i, 2)?, carry.ty)?;
        let c = if carry.operands == 3 {
            self.source(self.operand(i, 3)?, carry.ty)?
        } else {
            a
        };
        let integer::Carry {
            func,
            carry_in,
            carry_out,
            ..
        } = carry;
        self.emit(Op::Carry(Box::new(CarryOp {
            f: func,
            carry_in,
            carry_out,
            d,
            a,
            b,
            c,
        })));
        Ok(())
    }

    fn mov(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let ty = match mods.ty() {
            Some(ty) => ty,
            None => return invalid("`mov` without a type"),
        };
        let (to, from) = (self.operand(i, 0)?, self.operand(i, 1)?);
        if ty == Ty::Pred {
            let d = self.predicate_target(to)?;
            let a = self.predicate_source(from)?;
            self.emit(Op::PredLogic {
                logic: Logic::And,
                d,
                a,
                b: PredSrc::TRUE,
            });
            return Ok(());
        }
        match (to, from) {
            (Operand::Vector(parts), _) => {
                let bytes = part_bytes(ty, parts.len())?;
                let a = self.source(from, ty)?;
                let targets = self.targets(to, Ty::B64)?;
                if ty == Ty::B128 {
                    if let [low, high] = targets[..] {
                        // A source register of 128 bits is two slots.
                        let (low, high) = (low.slot, high.slot);
                        let keep = self.fresh();
                        self.emit(Op::Mov { d: keep, a: a + 1 });
                        self.copy(low, a);
                        self.copy(high, keep);
                        return Ok(());
                    }
                    return unsupported("");
                }
                let parts = targets.iter().map(|r| r.slot).collect();
                self.emit(Op::Unpack { a, bytes, parts });
            }
            (_, Operand::Vector(parts)) => {
                let bytes = part_bytes(ty, parts.len())?;
                let d = self.target_for(to, ty)?.slot;
                let element = match bytes {
                    1 => Ty::B8,
                    2 => Ty::B16,
                    4 => Ty::B32,
                    _ => Ty::B64,
                };
                let parts = self.sources(from, element)?;
                if ty == Ty::B128 {
                    if let [low, high] = parts[..] {
                        let keep = self.fresh();
                        self.emit(Op::Mov { d: keep, a: high });
                        self.copy(d, low);
                        self.copy(d + 1, keep);
                        return Ok(());
                    }
                    return unsupported("");
                }
                self.emit(Op::Pack {
                    d,
                    bytes,
                    parts: parts.into(),
                });
            }
            _ => {
                let d = self.target_for(to, ty)?.slot;
                let a = self.source(from, ty)?;
                self.copy(d, a);
                if ty == Ty::B128 {
                    self.copy(d + 1, a + 1);
                }
            }
        }
        Ok(())
    }

    fn setp(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if let Some(half) = half_of(mods.ty()) {
            let (d, q) = match self.operand(i, 0)? {
                Operand::Pair(d, q) => (self.predicate_target(d)?, self.predicate_target(q)?),
                one => (self.predicate_target(one)?, NONE),
            };
            return self.compare_halves(i, mods, half, [d, q]);
        }
        let Some(compare) = find_compare(mods) else {
            return unsupported("");
        };
        let (d, q) = match self.operand(i, 0)? {
            Operand::Pair(d, q) => (self.predicate_target(d)?, self.predicate_target(q)?),
            one => (self.predicate_target(one)?, NONE),
        };
        let a = self.source(self.operand(i, 1)?, compare.ty)?;
        let b = self.source(self.operand(i, 2)?, compare.ty)?;
        let combine = Combine::parse(mods);
        let c = if combine == Combine::None {
            PredSrc::TRUE
        } else {
            self.predicate_source(self.operand(i, 3)?)?
        };
        self.emit(Op::Compare {
            f: compare.func,
            flags: compare.flags,
            a,
            b,
            combine,
            c,
            d,
            q,
        });
        Ok(())
    }

    /// `set.CmpOp.dtype.stype`: all ones (or 1.0) where the comparison holds.
    fn set(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if let Some(half) = half_of(mods.types.get(1).copied()) {
            return self.set_halves(i, mods, half);
        }
        let Some(compare) = find_compare(mods) else {
            return unsupported("");
        };
        let Some(result) = mods.ty().filter(|_| mods.types.len() == 2) else {
            return unsupported("");
        };
        let d = self.target(self.operand(i, 0)?)?.slot;
        let a = self.source(self.operand(i, 1)?, compare.ty)?;
        let b = self.source(self.operand(i, 2)?, compare.ty)?;
        let combine = Combine::parse(mods);
        let c = if combine == Combine::None {
            PredSrc::TRUE
        } else {
            self.predicate_source(self.operand(i, 3)?)?
        };
        let p = self.fresh_predicate();
        self.emit(Op::Compare {
            f: compare.func,
            flags: compare.flags,
            a,
            b,
            combine,
            c,
            d: p,
            q: NONE,
        });
        let yes = self.constant(match result {
            Ty::F32 => 0x3f80_0000,
            Ty::F16 => 0x3c00,
            Ty::Bf16 => 0x3f80,
            _ => result.mask(),
        });
        let no = self.constant(0);
        self.emit(Op::Select {
            d,
            a: yes,
            b: no,
            p: PredSrc::slot(p, false),
        });
        Ok(())
    }

    /// Two predicates, for the lower and the upper half of the operands.
    fn compare_halves(
        &mut self,
        i: &Instruction<'a>,
        mods: &Mods<'_>,
        half: &str,
        d: [u32; 2],
    ) -> Decoded<()> {
        let mut words: Vec<&str> = mods.words.to_vec();
        words.retain(|w| Ty::parse(w).is_none());
        words.push(half);
        let Some(compare) = find_compare(&Mods::new(&words)) else {
            return unsupported("");
        };
        let combine = Combine::parse(mods);
        let c = if combine == Combine::None {
            PredSrc::TRUE
        } else {
            self.predicate_source(self.operand(i, 3)?)?
        };
        let mut parts = Vec::new();
        for n in [1, 2] {
            let a = self.source(self.operand(i, n)?, Ty::B32)?;
            let halves = [self.fresh(), self.fresh()];
            let to = halves.into();
            self.emit(Op::Unpack {
                a,
                bytes: 2,
                parts: to,
            });
            parts.push(halves);
        }
        for (n, d) in d.into_iter().enumerate().filter(|(_, d)| *d != NONE) {
            self.emit(Op::Compare {
                f: compare.func,
                flags: compare.flags,
                a: parts[0][n],
                b: parts[1][n],
                combine,
                c,
                d,
                q: NONE,
            });
        }
        Ok(())
    }

    /// `set` on pairs of halves: 1.0 or all ones in each half where the comparison holds.
    fn set_halves(&mut self, i: &Instruction<'a>, mods: &Mods<'_>, half: &str) -> Decoded<()> {
        let d = self.target(self.operand(i, 0)?)?.slot;
        let predicates = [self.fresh_predicate(), self.fresh_predicate()];
        self.compare_halves(i, mods, half, predicates)?;
        let yes = match mods.ty() {
            Some(Ty::F16x2) => 0x3c00,
            Some(Ty::Bf16x2) => 0x3f80,
            _ => 0xffff,
        };
        let (yes, no) = (self.constant(yes), self.constant(0));
        let mut parts = Vec::new();
        for p in predicates {
            let d = self.fresh();
            let p = PredSrc::slot(p, false);
            self.emit(Op::Select {
                d,
                a: yes,
                b: no,
                p,
            });
            parts.push(d);
        }
        self.emit(Op::Pack {
            d,
            bytes: 2,
            parts: parts.into(),
        });
        Ok(())
    }

    fn testp(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let Some(test) = find_test(mods) else {
            return unsupported("");
        };
        let d = self.predicate_target(self.operand(i, 0)?)?;
        let a = self.source(self.operand(i, 1)?, test.ty)?;
        self.emit(Op::Compare {
            f: test.func,
            flags: 0,
            a,
            b: a,
            combine: Combine::None,
            c: PredSrc::TRUE,
            d,
            q: NONE,
        });
        Ok(())
    }

    fn selp(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let ty = mods.ty().unwrap_or(Ty::B64);
        let p = self.predicate_source(self.operand(i, 3)?)?;
        let d = self.target(self.operand(i, 0)?)?.slot;
        let a = self.source(self.operand(i, 1)?, ty)?;
        let b = self.source(self.operand(i, 2)?, ty)?;
        self.emit(Op::Select { d, a, b, p });
        Ok(())
    }

    /// `slct.dtype.{s32,f32} d, a, b, c`: a where c ≥ 0.
    fn slct(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let [ty, by] = mods.types[..] else {
            return unsupported("");
        };
        let words: &[&str] = if by == Ty::F32 {
            &["ge", "f32"]
        } else {
            &["ge", "s32"]
        };
        let Some(compare) = find_compare(&Mods::new(words)) else {
            return unsupported("");
        };
        let d = self.target(self.operand(i, 0)?)?.slot;
        let a = self.source(self.operand(i, 1)?, ty)?;
        let b = self.source(self.operand(i, 2)?, ty)?;
        let c = self.source(self.operand(i, 3)?, by)?;
        let zero = self.constant(0);
        let p = self.fresh_predicate();
        self.emit(Op::Compare {
            f: compare.func,
            flags: if mods.has("ftz") { alu::round::FTZ } else { 0 },
            a: c,
            b: zero,
            combine: Combine::None,
            c: PredSrc::TRUE,
            d: p,
            q: NONE,
        });
        self.emit(Op::Select {
            d,
            a,
            b,
            p: PredSrc::slot(p, false),
        });
        Ok(())
    }

    fn lop3(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let (to, p) = match self.operand(i, 0)? {
            Operand::Pair(d, p) => (&**d, Some(self.predicate_target(p)?)),
            one => (one, None),
        };
        let table = match self.operand(i, 4)? {
            Operand::Int(n) => *n as u32 & 0xff,
            _ => return unsupported("look-up table that is no constant"),
        };
        let d = self.target(to)?.slot;
        self.apply(alu::bits::lop3(table), d, &i.operands[1..4])?;
        if let Some(p) = p {
            let q = self.predicate_source(self.operand(i, 5)?)?;
            let Some(compare) = find_compare(&Mods::new(&["ne", "b32"])) else {
                return unsupported("");
            };
            let zero = self.constant(0);
            let combine = if mods.has("and") {
                Combine::And
            } else {
                Combine::Or
            };
            self.emit(Op::Compare {
                f: compare.func,
                flags: 0,
                a: d,
                b: zero,
                combine,
                c: q,
                d: p,
                q: NONE,
            });
        }
        Ok(())
    }

    fn logic(&mut self, i: &Instruction<'a>) -> Decoded<()> {
        let d = self.predicate_target(self.operand(i, 0)?)?;
        let a = self.predicate_source(self.operand(i, 1)?)?;
        let (logic, a, b) = match i.opcode {
            "not" => (Logic::And, a.not(), PredSrc::TRUE),
            "and" => (Logic::And, a, self.predicate_source(self.operand(i, 2)?)?),
            "or" => (Logic::Or, a, self.predicate_source(self.operand(i, 2)?)?),
            _ => (Logic::Xor, a, self.predicate_source(self.operand(i, 2)?)?),
        };
        self.emit(Op::PredLogic { logic, d, a, b });
        Ok(())
    }
}

/// The type of each half of a pair.
fn half_of(ty: Option<Ty>) -> Option<&'static str> {
    match ty? {
        Ty::F16x2 => Some("f16"),
        Ty::Bf16x2 => Some("bf16"),
        _ => None,
    }
}

/// Bytes of each part of a packed register.
fn part_bytes(ty: Ty, parts: usize) -> Decoded<u32> {
    let parts = parts as u32;
    if parts == 0 || !ty.bytes().is_multiple_of(parts) {
        return invalid("the parts do not fill the register");
    }
    Ok(ty.bytes() / parts)
}

fn signed_name(bytes: u32) -> &'static str {
    match bytes {
        1 => "s8",
        2 => "s16",
        4 => "s32",
        _ => "s64",
    }
}

/// How a value of a type sits in memory and in a register of another.
pub fn mem(ty: Ty, register: Ty) -> Mem {
    Mem {
        bytes: ty.bytes().min(8) as u8,
        signed: ty.is_signed(),
        register: register.bytes().min(8) as u8,
    }
}
