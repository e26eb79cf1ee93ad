//! Video instructions: operands with parts, `a.h1`.

use gsan_ptx::ast::{Instruction, Operand};

use super::function::{Decoded, Decoder};
use super::operand::unsupported;
use crate::machine::alu::Func;
use crate::machine::alu::video::{Choice, Part, Video};
use crate::machine::ir::{Op, Src};
use crate::machine::ty::Ty;

/// A value to read, the name of its part, and whether it is negated.
type Value<'a> = (Src, Option<&'a str>, bool);

impl<'a> Decoder<'_, 'a> {
    pub fn video(&mut self, i: &Instruction<'a>, video: Video) -> Decoded<()> {
        let (d, part) = self.part(self.operand(i, 0)?);
        let d = self.target(&d)?.slot;
        let (a, part_a, not_a) = self.value(self.operand(i, 1)?)?;
        let (b, part_b, not_b) = self.value(self.operand(i, 2)?)?;
        let (c, not_c) = match i.operands.len() {
            4 => match self.value(self.operand(i, 3)?)? {
                (c, None, negated) => (c, negated),
                _ => return unsupported("a part of the third operand"),
            },
            3 if !video.needs_three() && part.is_none() => (self.constant(0), false),
            _ => return unsupported("number of operands"),
        };
        let (alu, word) = if video.lanes == 1 {
            let parts = [
                scalar_part(part)?,
                scalar_part(part_a)?,
                scalar_part(part_b)?,
            ];
            video.scalar(parts, [not_a, not_b, not_c])
        } else {
            let lanes = video.lanes as usize;
            let mask = match part {
                None => 15,
                Some(name) => digits(name, lanes)?.iter().fold(0, |m, lane| m | 1 << lane),
            };
            video.packed(mask, [choice(part_a, lanes, 0)?, choice(part_b, lanes, 1)?])
        };
        let Func::Four(f) = alu.func else {
            return unsupported("");
        };
        let e = self.constant(word);
        let flags = alu.flags;
        self.emit(Op::Alu4 {
            f,
            flags,
            d,
            a,
            b,
            c,
            e,
        });
        Ok(())
    }

    /// An operand without the name of its part.
    fn part(&mut self, operand: &Operand<'a>) -> (Operand<'a>, Option<&'a str>) {
        if let Operand::Name(name) = operand
            && self.register(name).is_none()
            && let Some((base, part)) = name.rsplit_once('.')
            && self.register(base).is_some()
        {
            return (Operand::Name(base), Some(part));
        }
        (operand.clone(), None)
    }

    fn value(&mut self, operand: &Operand<'a>) -> Decoded<Value<'a>> {
        let (inner, negated) = match operand {
            Operand::Neg(inner) => (&**inner, true),
            other => (other, false),
        };
        let (base, part) = self.part(inner);
        Ok((self.source(&base, Ty::B32)?, part, negated))
    }
}

fn scalar_part(name: Option<&str>) -> Decoded<Part> {
    match name.map(Part::parse) {
        None => Ok(Part::WHOLE),
        Some(Some(part)) => Ok(part),
        Some(None) => unsupported("that part"),
    }
}

/// `b7415` and `h32` of packed instructions: numbers, from the highest.
fn digits(name: &str, lanes: usize) -> Decoded<Vec<u8>> {
    let kind = if lanes == 4 { 'b' } else { 'h' };
    let numbers = name.strip_prefix(kind).unwrap_or_default();
    let numbers: Vec<u8> = numbers
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(2 * lanes as u32))
        .map(|n| n as u8)
        .collect();
    if numbers.is_empty() || numbers.len() + 1 != name.len() {
        return unsupported(format!("part `{name}`"));
    }
    Ok(numbers)
}

/// The lanes' parts of both operands together; without a name those of one operand, in order.
fn choice(name: Option<&str>, lanes: usize, operand: u8) -> Decoded<Choice> {
    let Some(name) = name else {
        return Ok([0, 1, 2, 3].map(|k| k + operand * lanes as u8));
    };
    let numbers = digits(name, lanes)?;
    if numbers.len() != lanes {
        return unsupported(format!("part `{name}`"));
    }
    let mut out = [0; 4];
    out[..lanes].copy_from_slice(&numbers);
    Ok(out)
}
