//! Variables, parameters and initialisers.

use super::expression::{Literal, literal};
use super::{MAX_NESTING, Parser, Result};
use crate::ast::{Init, Space, Variable};
use crate::tokens::Kind;

/// The space that a declaration's first word names.
pub(super) fn space_of(word: &str) -> Option<Space> {
    Some(match word {
        ".global" => Space::Global,
        ".shared" | ".shared::cta" => Space::Shared,
        ".local" => Space::Local,
        ".const" => Space::Const,
        ".param" => Space::Param,
        ".reg" => Space::Reg,
        // Opaque handles of old modules: they live in global memory, and nothing reads them as data.
        ".tex" => Space::Global,
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    /// `.space … name[dims] = init, name2;`, the cursor at the space. Each name is handed to `found`.
    pub(super) fn variables(
        &mut self,
        linkage: Option<&'a str>,
        start: usize,
        mut found: impl FnMut(Variable<'a>),
    ) -> Result<()> {
        let head = self.variable_head(linkage, start)?;
        loop {
            let mut variable = head.clone();
            let count = self.declarator(&mut variable)?;
            if self.eat(Kind::Equal) {
                variable.init = Some(self.initializer(&variable.dims)?);
            }
            let more = self.peek() == Some(Kind::Comma);
            if more {
                variable.span.end = self.last_end();
                self.bump();
            } else {
                self.expect(Kind::Semicolon, "`;` after this declaration")?;
                variable.span.end = self.last_end();
            }
            match count {
                None => {
                    self.remember_array(&variable);
                    found(variable);
                }
                Some(count) => {
                    for name in self.numbered(variable.name, count)? {
                        found(Variable {
                            name,
                            ..variable.clone()
                        });
                    }
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// One parameter of a list.
    pub(super) fn parameter(&mut self) -> Result<Variable<'a>> {
        let start = self.start();
        if !matches!(self.word(), ".param" | ".reg") {
            return Err(self.expected("a `.param` declaration"));
        }
        let mut variable = self.variable_head(None, start)?;
        if self.declarator(&mut variable)?.is_some() {
            return Err(self.error("a parameter has one name"));
        }
        variable.span.end = self.last_end();
        Ok(variable)
    }

    /// Everything before the name, in whatever order the producer has it.
    fn variable_head(&mut self, linkage: Option<&'a str>, start: usize) -> Result<Variable<'a>> {
        let Some(space) = space_of(self.word()) else {
            return Err(self.expected("a state space"));
        };
        self.bump();
        // An old constant bank, `.const[3]`.
        if self.peek() == Some(Kind::LBracket) {
            self.skip_group()?;
        }
        let mut variable = Variable {
            space,
            linkage,
            align: None,
            ty: "",
            vector: 1,
            name: "",
            dims: Vec::new(),
            init: None,
            managed: false,
            ptr: None,
            span: start..start,
        };
        while self.peek() == Some(Kind::DotWord) {
            let word = self.word();
            match word {
                ".align" => {
                    self.bump();
                    let align = self.small_number("an alignment")?;
                    match &mut variable.ptr {
                        Some((_, pointee)) => *pointee = Some(align),
                        None => variable.align = Some(align),
                    }
                    continue;
                }
                ".attribute" => {
                    self.bump();
                    let from = self.start();
                    if self.peek() != Some(Kind::LParen) {
                        return Err(self.expected("`(`"));
                    }
                    self.skip_group()?;
                    variable.managed |= self.text[from..self.last_end()].contains(".managed");
                    continue;
                }
                ".ptr" => variable.ptr = Some((None, None)),
                ".v2" => variable.vector = 2,
                ".v4" => variable.vector = 4,
                ".v8" => variable.vector = 8,
                _ => match (&mut variable.ptr, space_of(word)) {
                    (Some((pointee, _)), Some(space)) => *pointee = Some(space),
                    _ => variable.ty = &word[1..],
                },
            }
            self.bump();
        }
        if variable.ty.is_empty() {
            return Err(self.expected("a type such as `.b32`"));
        }
        Ok(variable)
    }

    /// The name and what belongs to it; `Some(n)` for `x<n>`.
    fn declarator(&mut self, variable: &mut Variable<'a>) -> Result<Option<u32>> {
        variable.name = self.ident("a name")?;
        let mut count = None;
        if self.eat(Kind::Lt) {
            count = Some(self.small_number("how many variables")?);
            self.expect(Kind::Gt, "`>`")?;
        }
        while self.eat(Kind::LBracket) {
            if self.eat(Kind::RBracket) {
                variable.dims.push(None);
                continue;
            }
            let at = self.start();
            let size = self.constant().and_then(|v| u64::try_from(v).ok());
            let Some(size) = size else {
                return Err(self.error_at(at, "expected an array size"));
            };
            self.expect(Kind::RBracket, "`]`")?;
            variable.dims.push(Some(size));
        }
        Ok(count)
    }

    /// The names of `x<n>` that occur in the module: what nobody names needs no variable. (A name is a piece of the text,
    /// and `x0` stands only where it is used.)
    fn numbered(&mut self, prefix: &'a str, count: u32) -> Result<Vec<&'a str>> {
        // Each looks at the whole module.
        const MOST: u32 = 64;
        self.numbered_declarations += 1;
        if self.numbered_declarations > MOST {
            return Err(self.error(format!(
                "more than {MOST} declarations of numbered variables (`x<4>`): write the names out"
            )));
        }
        let mut names: Vec<(u32, &'a str)> = Vec::new();
        for (kind, &(start, end)) in self.kinds.iter().zip(&self.spans) {
            if *kind != Kind::Ident {
                continue;
            }
            let word = &self.text[start as usize..end as usize];
            let Some(digits) = word.strip_prefix(prefix) else {
                continue;
            };
            if digits.is_empty()
                || !digits.bytes().all(|b| b.is_ascii_digit())
                || digits.len() > 1 && digits.starts_with('0')
            {
                continue;
            }
            if let Some(number) = digits.parse().ok().filter(|n| *n < count) {
                names.push((number, word));
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }

    /// For `x[3]` as an address: how far apart the elements are. Two arrays of one name are looked at by no one.
    fn remember_array(&mut self, variable: &Variable<'a>) {
        if variable.dims.len() != 1 {
            return;
        }
        let element = crate::memory_op::type_size(variable.ty)
            .map(|bytes| i64::from(bytes) * i64::from(variable.vector));
        self.arrays
            .entry(variable.name)
            .and_modify(|known| *known = known.filter(|k| Some(*k) == element))
            .or_insert(element);
    }

    fn initializer(&mut self, dims: &[Option<u64>]) -> Result<Vec<Init<'a>>> {
        if self.peek() == Some(Kind::LBrace) {
            return self.initializer_list(dims.get(1..).unwrap_or(&[]), 0);
        }
        Ok(vec![self.init_element()?])
    }

    /// `{ … }`. `inner` are the dimensions of one element: a row that fills them is merged into the list.
    fn initializer_list(&mut self, inner: &[Option<u64>], depth: usize) -> Result<Vec<Init<'a>>> {
        if depth >= MAX_NESTING {
            return Err(self.error("initialisers are nested too deeply"));
        }
        self.bump();
        let full = inner.iter().try_fold(1u64, |n, d| n.checked_mul((*d)?));
        let mut list = Vec::new();
        loop {
            if self.eat(Kind::RBrace) {
                return Ok(list);
            }
            if self.peek() == Some(Kind::LBrace) {
                let row = self.initializer_list(inner.get(1..).unwrap_or(&[]), depth + 1)?;
                let flat = !row.iter().any(|e| matches!(e, Init::Nested(_)));
                if !inner.is_empty() && flat && full == Some(row.len() as u64) {
                    list.extend(row);
                } else {
                    list.push(Init::Nested(row));
                }
            } else {
                list.push(self.init_element()?);
            }
            if !self.eat(Kind::Comma) && self.peek() != Some(Kind::RBrace) {
                return Err(self.expected("`,` or `}` in this initialiser"));
            }
        }
    }

    fn init_element(&mut self) -> Result<Init<'a>> {
        let at = self.start();
        // `generic(sym)+n`, `sym+n`
        if self.peek() == Some(Kind::Ident) && self.word() != "WARP_SZ" {
            let mut name = self.word();
            self.bump();
            let mut generic = false;
            if self.peek() == Some(Kind::LParen) {
                if name != "generic" {
                    return Err(
                        self.error_at(at, format!("`{name}(…)` is unknown in an initialiser"))
                    );
                }
                self.bump();
                generic = true;
                name = self.ident("a symbol")?;
                let inner = self.symbol_offset()?;
                self.expect(Kind::RParen, "`)`")?;
                let offset = inner.wrapping_add(self.symbol_offset()?);
                return Ok(Init::Symbol {
                    name,
                    offset,
                    generic,
                    mask: None,
                });
            }
            let offset = self.symbol_offset()?;
            return Ok(Init::Symbol {
                name,
                offset,
                generic,
                mask: None,
            });
        }
        if self.peek() == Some(Kind::Number) && self.peek_at(1) == Some(Kind::LParen) {
            return self.masked_symbol();
        }
        // A float, perhaps with a sign.
        let sign = usize::from(matches!(self.peek(), Some(Kind::Minus | Kind::Plus)));
        if self.peek_at(sign) == Some(Kind::Number) {
            let negative = self.peek() == Some(Kind::Minus);
            let word = self.text_at(sign);
            let value = match literal(word) {
                Some(Literal::F32(bits)) => {
                    Some(Init::Int(i128::from(bits ^ (u32::from(negative) << 31))))
                }
                Some(Literal::F64(bits)) => {
                    let bits = bits ^ (u64::from(negative) << 63);
                    let exact = word.starts_with("0d") || word.starts_with("0D");
                    Some(if exact {
                        Init::Int(i128::from(bits))
                    } else {
                        Init::Float(f64::from_bits(bits))
                    })
                }
                _ => None,
            };
            if let Some(value) = value {
                self.at += sign + 1;
                return Ok(value);
            }
        }
        if let Some(value) = self.constant() {
            return Ok(Init::Int(value));
        }
        Err(self.error_at(at, "expected a number or a symbol in this initialiser"))
    }

    /// `0xFF00(sym+n)` or `0xFF(generic(sym)+n)`.
    fn masked_symbol(&mut self) -> Result<Init<'a>> {
        let at = self.start();
        let mask = super::expression::integer(self.word()).and_then(|v| u64::try_from(v).ok());
        self.bump();
        self.bump();
        let symbol = self.init_element()?;
        self.expect(Kind::RParen, "`)`")?;
        match symbol {
            Init::Symbol {
                name,
                offset,
                generic,
                mask: None,
            } if mask.is_some() => Ok(Init::Symbol {
                name,
                offset,
                generic,
                mask,
            }),
            _ => Err(self.error_at(at, "expected a mask and a symbol, such as `0xFF00(sym)`")),
        }
    }

    fn symbol_offset(&mut self) -> Result<i64> {
        if !matches!(self.peek(), Some(Kind::Plus | Kind::Minus)) {
            return Ok(0);
        }
        let at = self.start();
        let value = self.constant().and_then(|v| i64::try_from(v).ok());
        value.ok_or_else(|| self.error_at(at, "expected a number after the symbol"))
    }
}
