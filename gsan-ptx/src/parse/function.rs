//! `.entry` and `.func`.

use super::{Parser, Result};
use crate::ast::{Attribute, Body, Function, Variable};
use crate::tokens::Kind;

impl<'a> Parser<'a> {
    /// The cursor at `.entry` or `.func`; `start` is where its linkage word begins.
    pub(super) fn function(
        &mut self,
        linkage: Option<&'a str>,
        start: usize,
    ) -> Result<Function<'a>> {
        let entry = self.word() == ".entry";
        self.bump();
        let mut attributes = Vec::new();
        while self.peek() == Some(Kind::DotWord) {
            attributes.push(self.attribute()?);
        }
        let mut returns = Vec::new();
        if self.peek() == Some(Kind::LParen) {
            returns = self.parameters()?.0;
        }
        let name = self.ident("the function's name")?;
        let name_end = self.last_end();
        let (mut params, mut params_end) = (Vec::new(), None);
        if self.peek() == Some(Kind::LParen) {
            let (list, end) = self.parameters()?;
            params = list;
            params_end = Some(end);
        }
        while self.peek() == Some(Kind::DotWord) {
            attributes.push(self.attribute()?);
        }
        let body = match self.peek() {
            Some(Kind::Semicolon) => {
                self.bump();
                None
            }
            Some(Kind::LBrace) => Some(self.body(name)?),
            _ => return Err(self.expected("the function's body, `{`")),
        };
        Ok(Function {
            entry,
            linkage,
            name,
            returns,
            params,
            params_end,
            name_end,
            attributes,
            body,
            span: start..self.last_end(),
        })
    }

    /// `( … )`: the parameters, and the offset of the closing parenthesis.
    pub(super) fn parameters(&mut self) -> Result<(Vec<Variable<'a>>, usize)> {
        self.expect(Kind::LParen, "`(`")?;
        let mut list = Vec::new();
        // A comma must be followed by a parameter: further ones are inserted behind the last.
        while list.is_empty() && self.peek() != Some(Kind::RParen)
            || !list.is_empty() && self.eat(Kind::Comma)
        {
            list.push(self.parameter()?);
        }
        if self.peek() != Some(Kind::RParen) {
            return Err(self.expected("`,` or `)` in this parameter list"));
        }
        let end = self.start();
        self.bump();
        Ok((list, end))
    }

    /// `.maxntid 256, 1, 1`, `.noreturn`, `.pragma "nounroll";`, `.attribute(…)`
    pub(super) fn attribute(&mut self) -> Result<Attribute<'a>> {
        let start = self.start();
        let name = &self.word()[1..];
        self.bump();
        if self.peek() == Some(Kind::LParen) {
            self.skip_group()?;
        }
        let mut values = Vec::new();
        let mut strings = 0;
        while let Some(Kind::Number | Kind::String | Kind::Ident) = self.peek() {
            strings += usize::from(self.peek() == Some(Kind::String));
            if self.peek() == Some(Kind::Number) {
                let value =
                    super::expression::integer(self.word()).and_then(|v| u64::try_from(v).ok());
                values.push(value.ok_or_else(|| self.expected("a number"))?);
            }
            self.bump();
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        // The semicolon after a pragma's string is its own; after a bare `.noreturn` it ends the declaration.
        if strings > 0 {
            self.eat(Kind::Semicolon);
        }
        Ok(Attribute {
            name,
            values,
            span: start..self.last_end(),
        })
    }

    fn body(&mut self, name: &str) -> Result<Body<'a>> {
        let open = self.start();
        self.bump();
        let start = self.last_end();
        let (statements, end) = self.statements(&format!("`{name}`"), open, 0)?;
        Ok(Body {
            start,
            end,
            statements,
        })
    }
}
