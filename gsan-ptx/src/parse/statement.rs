//! Statements of a body.

use super::declaration::space_of;
use super::{MAX_NESTING, Parser, Result};
use crate::ast::{Guard, Instruction, Loc, Space, Statement};
use crate::tokens::Kind;

impl<'a> Parser<'a> {
    /// Statements up to the closing brace, which is passed over: the list and that brace's offset.
    pub(super) fn statements(
        &mut self,
        of: &str,
        open: usize,
        depth: usize,
    ) -> Result<(Vec<Statement<'a>>, usize)> {
        if depth >= MAX_NESTING {
            return Err(self.error_at(
                open,
                format!("scopes are nested more than {MAX_NESTING} deep"),
            ));
        }
        let mut list = Vec::new();
        loop {
            let start = self.start();
            match self.peek() {
                Some(Kind::RBrace) => {
                    self.bump();
                    return Ok((list, start));
                }
                Some(Kind::Semicolon) => self.bump(),
                Some(Kind::LBrace) => {
                    self.bump();
                    let inner = self.last_end();
                    let (statements, end) = self.statements(of, start, depth + 1)?;
                    list.push(Statement::Block {
                        start: inner,
                        end,
                        statements,
                    });
                }
                Some(Kind::DotWord) => self.directive(&mut list)?,
                Some(Kind::Ident) if self.peek_at(1) == Some(Kind::Colon) => {
                    let name = self.word();
                    self.bump();
                    self.bump();
                    list.push(self.after_label(name, start)?);
                }
                Some(Kind::Ident | Kind::At) => {
                    let instruction = self.instruction()?;
                    list.push(Statement::Instruction(Box::new(instruction)));
                }
                None => {
                    let line = crate::ast::ParseError::at(self.text, open, "").line;
                    return Err(self.error(format!(
                        "the file ends inside {of}: the `}}` for the `{{` of line {line} is missing (is the file truncated?)"
                    )));
                }
                Some(_) => return Err(self.expected("a statement")),
            }
        }
    }

    fn after_label(&mut self, name: &'a str, start: usize) -> Result<Statement<'a>> {
        match (self.peek(), self.word()) {
            (Some(Kind::DotWord), ".branchtargets" | ".calltargets") => {
                self.bump();
                let mut targets = Vec::new();
                loop {
                    targets.push(self.ident("a label")?);
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                }
                self.expect(Kind::Semicolon, "`;` after this list")?;
                Ok(Statement::Targets {
                    name,
                    targets,
                    span: start..self.last_end(),
                })
            }
            (Some(Kind::DotWord), ".callprototype") => {
                self.bump();
                let mut returns = Vec::new();
                if self.peek() == Some(Kind::LParen) {
                    returns = self.parameters()?.0;
                }
                self.ident("`_`")?;
                let mut params = Vec::new();
                if self.peek() == Some(Kind::LParen) {
                    params = self.parameters()?.0;
                }
                while self.peek() == Some(Kind::DotWord) {
                    self.attribute()?;
                }
                self.expect(Kind::Semicolon, "`;` after this prototype")?;
                Ok(Statement::CallPrototype {
                    name,
                    returns,
                    params,
                    span: start..self.last_end(),
                })
            }
            _ => Ok(Statement::Label {
                name,
                span: start..self.last_end(),
            }),
        }
    }

    fn directive(&mut self, list: &mut Vec<Statement<'a>>) -> Result<()> {
        let start = self.start();
        match self.word() {
            ".loc" => list.push(Statement::Loc(self.loc()?)),
            ".file" => self.file()?,
            ".reg" => list.push(self.registers()?),
            ".pragma" => {
                self.bump();
                let Some(text) = self.quoted() else {
                    return Err(self.expected("a quoted pragma"));
                };
                while self.eat(Kind::Comma) {
                    self.quoted();
                }
                self.expect(Kind::Semicolon, "`;` after this pragma")?;
                list.push(Statement::Pragma {
                    text,
                    span: start..self.last_end(),
                });
            }
            ".extern" | ".visible" | ".weak" | ".common" if space_of(self.text_at(1)).is_some() => {
                let linkage = &self.word()[1..];
                self.bump();
                self.variables(Some(linkage), start, |v| {
                    list.push(Statement::Variable(Box::new(v)))
                })?;
            }
            word if space_of(word).is_some_and(|s| s != Space::Reg) => {
                self.variables(None, start, |v| list.push(Statement::Variable(Box::new(v))))?;
            }
            _ => {
                self.bump();
                loop {
                    match self.peek() {
                        Some(Kind::Semicolon) => {
                            self.bump();
                            break;
                        }
                        Some(Kind::LBrace | Kind::LParen | Kind::LBracket) => self.skip_group()?,
                        None
                        | Some(Kind::RBrace | Kind::UnclosedComment | Kind::UnclosedString) => {
                            return Err(self.expected("`;`"));
                        }
                        Some(_) => self.bump(),
                    }
                }
                list.push(Statement::Unknown {
                    span: start..self.last_end(),
                });
            }
        }
        Ok(())
    }

    /// `.loc FILE LINE [COLUMN][, function_name LABEL[+N], inlined_at FILE LINE COLUMN]`
    pub(super) fn loc(&mut self) -> Result<Loc<'a>> {
        let start = self.start();
        self.bump();
        let file = self.small_number("a file number")?;
        let line = self.small_number("a line number")?;
        // No statement begins with a number: on the next line it belongs here, too.
        let column = if self.peek() == Some(Kind::Number) {
            self.small_number("a column")?
        } else {
            0
        };
        let (mut function_name, mut inlined_at) = (None, None);
        while self.peek() == Some(Kind::Comma) {
            self.bump();
            match self.ident("`function_name` or `inlined_at`")? {
                "function_name" => {
                    let label = self.ident("a label")?;
                    let mut offset = 0;
                    if self.eat(Kind::Plus) {
                        offset = self.small_number("an offset")?;
                    }
                    function_name = Some((label, u64::from(offset)));
                }
                "inlined_at" => {
                    let file = self.small_number("a file number")?;
                    let line = self.small_number("a line number")?;
                    inlined_at = Some((file, line, self.small_number("a column")?));
                }
                // Attributes of later versions: a word and its values.
                _ => {
                    while matches!(self.peek(), Some(Kind::Number | Kind::Ident))
                        && self.on_same_line()
                    {
                        self.bump();
                    }
                }
            }
        }
        Ok(Loc {
            file,
            line,
            column,
            function_name,
            inlined_at,
            span: start..self.last_end(),
        })
    }

    fn registers(&mut self) -> Result<Statement<'a>> {
        let start = self.start();
        self.bump();
        let (mut ty, mut vector) = ("", 1);
        while self.peek() == Some(Kind::DotWord) {
            match self.word() {
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                ".v8" => vector = 8,
                ".align" => {
                    self.bump();
                }
                word => ty = &word[1..],
            }
            self.bump();
        }
        if ty.is_empty() {
            return Err(self.expected("a type such as `.b32`"));
        }
        let mut names = Vec::new();
        loop {
            let name = self.ident("a register")?;
            let mut count = None;
            if self.eat(Kind::Lt) {
                count = Some(self.small_number("how many registers")?);
                self.expect(Kind::Gt, "`>`")?;
            }
            names.push((name, count));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semicolon, "`;` after this declaration")?;
        Ok(Statement::Registers {
            ty,
            vector,
            names,
            span: start..self.last_end(),
        })
    }

    /// How many operands the instruction at the cursor has, or a little more: an estimate of what to reserve.
    fn operand_count(&self) -> usize {
        let (mut count, mut depth) = (1, 0i32);
        for kind in self.kinds[self.at..].iter().take(64) {
            match kind {
                Kind::LBrace | Kind::LBracket | Kind::LParen => depth += 1,
                Kind::RBrace | Kind::RBracket | Kind::RParen => depth -= 1,
                Kind::Comma if depth == 0 => count += 1,
                Kind::Semicolon => break,
                _ => {}
            }
        }
        count
    }

    fn instruction(&mut self) -> Result<Instruction<'a>> {
        let start = self.start();
        let mut guard = None;
        if self.eat(Kind::At) {
            let negated = self.eat(Kind::Bang);
            guard = Some(Guard {
                negated,
                register: self.ident("a predicate")?,
            });
        }
        let opcode = self.ident("an instruction")?;
        self.memory = matches!(opcode, "ld" | "ldu" | "st");
        // Both lists are gathered aside and copied at their exact size: most of a large module's memory is here.
        self.words.clear();
        while self.peek() == Some(Kind::DotWord)
            && (self.touches_last() || self.word().parse::<f64>().is_err())
        {
            let word = &self.word()[1..];
            self.words.push(word);
            self.bump();
        }
        let modifiers = self.words.clone();
        let mut operands = Vec::new();
        if self.peek() != Some(Kind::Semicolon) {
            operands.reserve_exact(self.operand_count());
            let call = opcode == "call";
            loop {
                operands.push(self.operand(call, 0)?);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        self.expect(Kind::Semicolon, "`;` after this instruction")?;
        Ok(Instruction {
            span: start..self.last_end(),
            guard,
            opcode,
            modifiers,
            operands,
        })
    }
}
