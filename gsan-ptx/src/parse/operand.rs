//! Operands and addresses.

use super::expression::{Literal, literal};
use super::{MAX_NESTING, Parser, Result};
use crate::ast::{Address, Operand};
use crate::tokens::Kind;

impl<'a> Parser<'a> {
    /// One operand; `call` says that `(…)` is a list and not a constant expression.
    pub(super) fn operand(&mut self, call: bool, depth: usize) -> Result<Operand<'a>> {
        if depth >= MAX_NESTING {
            return Err(self.error("operands are nested too deeply"));
        }
        let from = self.at;
        if let Some(operand) = self.known_operand(call, depth)? {
            if self.at_operand_end() {
                return Ok(operand);
            }
            if self.peek().is_some() && !self.on_same_line() {
                // Most likely the semicolon was lost; taking the next line as part of this operand would hide it.
                return Err(
                    self.error_at(self.last_end(), "expected `;` or `,` after this operand")
                );
            }
        }
        self.at = from;
        self.raw_operand()
    }

    fn at_operand_end(&self) -> bool {
        matches!(
            self.peek(),
            Some(Kind::Comma | Kind::Semicolon | Kind::RBrace | Kind::RBracket | Kind::RParen)
        )
    }

    fn known_operand(&mut self, call: bool, depth: usize) -> Result<Option<Operand<'a>>> {
        let Some(first) = self.simple_operand(call, depth)? else {
            return Ok(None);
        };
        if self.peek() == Some(Kind::Pipe) && matches!(first, Operand::Name(_) | Operand::Sink) {
            self.bump();
            return Ok(self
                .simple_operand(call, depth)?
                .map(|second| Operand::Pair(Box::new(first), Box::new(second))));
        }
        Ok(Some(first))
    }

    fn simple_operand(&mut self, call: bool, depth: usize) -> Result<Option<Operand<'a>>> {
        match self.peek() {
            Some(Kind::Ident) => {
                let name = self.name();
                if name == "_" {
                    return Ok(Some(Operand::Sink));
                }
                if matches!(self.peek(), Some(Kind::Plus | Kind::Minus)) {
                    let offset = self.constant().and_then(|v| i64::try_from(v).ok());
                    return Ok(offset.map(|offset| Operand::NameOffset(name, offset)));
                }
                if self.peek() == Some(Kind::LBracket)
                    && let Some(element) = self.element(name)
                {
                    return Ok(Some(element));
                }
                Ok(Some(Operand::Name(name)))
            }
            Some(Kind::LBracket) => self.address(depth).map(Some),
            Some(Kind::LBrace) => {
                self.bump();
                self.operand_list(call, depth, Kind::RBrace, "`}`")
                    .map(|v| Some(Operand::Vector(v)))
            }
            Some(Kind::LParen) if call => {
                self.bump();
                self.operand_list(call, depth, Kind::RParen, "`)`")
                    .map(|v| Some(Operand::List(v)))
            }
            Some(Kind::Bang) if self.peek_at(1) == Some(Kind::Ident) => {
                self.bump();
                let name = self.name();
                Ok(Some(Operand::Not(Box::new(Operand::Name(name)))))
            }
            Some(Kind::Minus)
                if self.peek_at(1) == Some(Kind::Ident) && self.text_at(1) != "WARP_SZ" =>
            {
                self.bump();
                let name = self.name();
                Ok(Some(Operand::Neg(Box::new(Operand::Name(name)))))
            }
            Some(Kind::Number | Kind::Minus | Kind::Plus) if self.float_ahead().is_some() => {
                Ok(self.take_float())
            }
            Some(
                Kind::Number | Kind::Minus | Kind::Plus | Kind::LParen | Kind::Tilde | Kind::Bang,
            ) => Ok(self.constant().map(Operand::Int)),
            // `.5` is a float in C's spelling.
            Some(Kind::DotWord) => {
                let value = self.word().parse::<f64>().ok();
                self.bump();
                Ok(value.map(|f| Operand::F64(f.to_bits())))
            }
            _ => Ok(None),
        }
    }

    /// `name[n]`, an element of an array: its address. The cursor at the bracket; where it is something else, the caller
    /// goes back to the operand's beginning.
    fn element(&mut self, name: &'a str) -> Option<Operand<'a>> {
        let from = self.start() - name.len();
        let size = (*self.arrays.get(name)?)?;
        self.bump();
        let index = i64::try_from(self.constant()?).ok()?;
        if !self.eat(Kind::RBracket) {
            return None;
        }
        let offset = index.checked_mul(size)?;
        Some(if self.memory {
            Operand::Address(Address {
                base: Some(name),
                offset,
                text: &self.text[from..self.last_end()],
            })
        } else {
            Operand::NameOffset(name, offset)
        })
    }

    /// A name with the dotted words that touch it: `%tid.x`, `%v.y`.
    fn name(&mut self) -> &'a str {
        let start = self.start();
        self.bump();
        while self.peek() == Some(Kind::DotWord) && self.touches_last() {
            self.bump();
        }
        &self.text[start..self.last_end()]
    }

    /// A float literal with at most one sign before it.
    fn float_ahead(&self) -> Option<(Literal, bool)> {
        let signed = matches!(self.peek(), Some(Kind::Minus | Kind::Plus));
        let at = usize::from(signed);
        if self.peek_at(at) != Some(Kind::Number) {
            return None;
        }
        match literal(self.text_at(at))? {
            Literal::Int(_) => None,
            float => Some((float, self.peek() == Some(Kind::Minus))),
        }
    }

    fn take_float(&mut self) -> Option<Operand<'a>> {
        let (value, negative) = self.float_ahead()?;
        if self.peek() != Some(Kind::Number) {
            self.bump();
        }
        self.bump();
        Some(match value {
            Literal::F32(bits) => Operand::F32(bits ^ (u32::from(negative) << 31)),
            Literal::F64(bits) => Operand::F64(bits ^ (u64::from(negative) << 63)),
            Literal::Int(value) => Operand::Int(value),
        })
    }

    /// Operands up to the closing token, which is passed over.
    fn operand_list(
        &mut self,
        call: bool,
        depth: usize,
        close: Kind,
        what: &str,
    ) -> Result<Vec<Operand<'a>>> {
        let mut list = Vec::new();
        if self.eat(close) {
            return Ok(list);
        }
        loop {
            list.push(self.operand(call, depth + 1)?);
            if self.eat(Kind::Comma) {
                continue;
            }
            self.expect(close, what)?;
            return Ok(list);
        }
    }

    fn address(&mut self, depth: usize) -> Result<Operand<'a>> {
        let open = self.start();
        let from = self.at;
        self.bump();
        if let Some((base, offset)) = self.simple_address()
            && self.peek() == Some(Kind::RBracket)
        {
            let text = self.text[open + 1..self.start()].trim();
            self.bump();
            // `[a].unified`, of a variable in unified memory: an address like any other.
            if self.memory && self.peek() == Some(Kind::DotWord) && self.word() == ".unified" {
                self.bump();
            }
            return Ok(Operand::Address(Address { base, offset, text }));
        }
        self.at = from + 1;
        let list = self.operand_list(false, depth, Kind::RBracket, "`]`")?;
        // One part that is no plain sum (`[tab[3]]`): kept as text, so that nobody takes it for something it is not.
        if list.len() == 1 {
            return Ok(Operand::Raw(&self.text[open..self.last_end()]));
        }
        Ok(Operand::Tensor(list))
    }

    /// `base`, `base+offset`, `offset`.
    fn simple_address(&mut self) -> Option<(Option<&'a str>, i64)> {
        if self.peek() == Some(Kind::Ident) && self.word() != "WARP_SZ" {
            let base = self.name();
            let offset = match self.peek() {
                Some(Kind::Plus | Kind::Minus) => i64::try_from(self.constant()?).ok()?,
                _ => 0,
            };
            return Some((Some(base), offset));
        }
        let value = self.constant()?;
        // Addresses above i64::MAX are written as unsigned numbers.
        let offset = i64::try_from(value)
            .ok()
            .or_else(|| u64::try_from(value).ok().map(|v| v as i64))?;
        Some((None, offset))
    }

    /// What no rule fits, up to the operand's end.
    fn raw_operand(&mut self) -> Result<Operand<'a>> {
        let start = self.start();
        while !self.at_operand_end() {
            match self.peek() {
                Some(Kind::LBrace | Kind::LParen | Kind::LBracket) => self.skip_group()?,
                None | Some(Kind::UnclosedComment | Kind::UnclosedString) => {
                    return Err(self.expected("`;`"));
                }
                Some(_) => self.bump(),
            }
        }
        if self.start() == start {
            return Err(self.expected("an operand"));
        }
        Ok(Operand::Raw(&self.text[start..self.last_end()]))
    }
}
