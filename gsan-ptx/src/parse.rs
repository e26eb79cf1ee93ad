//! The parser: tokens to the tree of [`crate::ast`], in one pass, linear in the text.
//!
//! It is strict about structure (braces, semicolons, declarations), because positions for insertions depend on it, and
//! lenient about content: an operand, directive or opcode that it does not know is kept as it stands.

mod declaration;
mod expression;
mod function;
mod operand;
mod statement;

pub(crate) use expression::integer;

use crate::ast::{FileEntry, Function, Item, Module, ParseError};
use crate::excerpt::excerpt;
use crate::site::DebugTexts;
use crate::tokens::{BYTE_ORDER_MARK, Kind, token};
use std::collections::HashMap;

/// Braces, brackets and parentheses may nest this deep. Compilers stay below ten; the limit keeps hostile input from
/// exhausting the stack here and in everything that walks the tree.
pub const MAX_NESTING: usize = 128;

/// Parses a PTX module.
///
/// # Errors
/// The first place that is no PTX, a missing `}` (a truncated file), or a missing `.version`.
pub fn parse(text: &str) -> Result<Module<'_>, ParseError> {
    Parser::new(text)?.module(|_, _| {})
}

/// A module that is read function by function. Of a large one only a function's statements are in memory at a time, and
/// those mostly in the cache.
pub(crate) struct Stream<'a>(Parser<'a>);

/// See [`Stream::tables`].
pub(crate) struct Tables<'a> {
    /// The words of `.target`.
    pub(crate) targets: Vec<&'a str>,
    pub(crate) files: Vec<FileEntry<'a>>,
    pub(crate) texts: DebugTexts<'a>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Stream<'a>> {
        Parser::new(text).map(Stream)
    }

    /// What is needed before the functions are read, though it may stand behind them: the module's targets, the files that
    /// `.loc` names, and the sections with the names of inlined functions. Errors are left to [`Stream::functions`].
    pub(crate) fn tables(&mut self) -> Tables<'a> {
        let parser = &mut self.0;
        let mut module = Module::default();
        while let Some(kind) = parser.peek() {
            let result = match (kind, parser.word()) {
                (Kind::DotWord, ".file") => parser.file(),
                (Kind::DotWord, ".section") => parser.section(&mut module),
                (Kind::DotWord, ".target") => parser.target(&mut module),
                _ => {
                    parser.bump();
                    Ok(())
                }
            };
            if result.is_err() {
                break;
            }
        }
        parser.at = 0;
        let mut texts = DebugTexts::default();
        for item in module.items {
            let Item::Section { name, span } = item else {
                continue;
            };
            match name.trim_start_matches('.') {
                "debug_str" => texts.strings.push(&parser.text[span]),
                "debug_info" => texts.info.push(&parser.text[span]),
                "debug_abbrev" => texts.abbreviations.push(&parser.text[span]),
                _ => {}
            }
        }
        Tables {
            targets: module.target,
            files: std::mem::take(&mut parser.files),
            texts,
        }
    }

    /// Reads the module and hands each function to `visit`, with the items that stand before it. In the result the bodies have
    /// no statements.
    ///
    /// # Errors
    /// As [`parse`].
    pub(crate) fn functions(
        mut self,
        mut visit: impl FnMut(&[Item<'a>], &Function<'a>),
    ) -> Result<Module<'a>> {
        self.0.module(|before, function| {
            visit(before, function);
            if let Some(body) = &mut function.body {
                body.statements = Vec::new();
            }
        })
    }
}

/// Parses a PTX module from bytes.
///
/// # Errors
/// As [`parse`]; also for bytes that are not UTF-8, with the line of the first one.
pub fn parse_bytes(bytes: &[u8]) -> Result<Module<'_>, ParseError> {
    parse(text_of(bytes)?)
}

/// The text of a PTX file's bytes. A trailing NUL, as drivers want it, is dropped, and so is a byte order mark at the beginning,
/// which no driver takes.
///
/// # Errors
/// Bytes that are not UTF-8, with the line of the first one.
pub fn text_of(bytes: &[u8]) -> Result<&str, ParseError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let bytes = match bytes.iter().rposition(|&b| b != 0) {
        Some(last) => &bytes[..=last],
        None => &[],
    };
    std::str::from_utf8(bytes).map_err(|e| {
        let offset = e.valid_up_to();
        let before = &bytes[..offset];
        let message = if bytes.starts_with(b"\x7fELF") {
            "this is an ELF file (a cubin?), not PTX text: extract the PTX with `cuobjdump -ptx`"
                .to_string()
        } else {
            format!(
                "byte {offset} (0x{:02x}) is not UTF-8 text: this is a binary file, not PTX",
                bytes[offset]
            )
        };
        ParseError::at_bytes(before, offset, message)
    })
}

impl ParseError {
    fn at_bytes(before: &[u8], offset: usize, message: String) -> ParseError {
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let line_start = before
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |n| n + 1);
        ParseError {
            message,
            offset,
            line,
            column: before.len() - line_start + 1,
        }
    }

    /// An error at a byte offset of `text`.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> ParseError {
        let offset = offset.min(text.len());
        ParseError::at_bytes(&text.as_bytes()[..offset], offset, message.into())
    }

    /// The error as a compiler prints it: place, line and caret. `text` is what was parsed, `file` its name.
    pub fn render(&self, file: &str, text: &str) -> String {
        format!(
            "error: {}\n --> {file}:{}:{}\n{}",
            self.message,
            self.line,
            self.column,
            excerpt(text, self.line, self.column)
        )
    }
}

type Result<T, E = ParseError> = std::result::Result<T, E>;

/// A cursor over the tokens that are not trivia.
struct Parser<'a> {
    text: &'a str,
    kinds: Vec<Kind>,
    spans: Vec<(u32, u32)>,
    at: usize,
    files: Vec<FileEntry<'a>>,
    /// The modifiers of the instruction in progress.
    words: Vec<&'a str>,
    /// The instruction in progress is one that follows addresses.
    memory: bool,
    /// The bytes of an element of each one-dimensional array, where that is known.
    arrays: HashMap<&'a str, Option<i64>>,
    /// How many `x<4>` there were.
    numbered_declarations: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>> {
        if u32::try_from(text.len()).is_err() {
            return Err(ParseError::at(text, 0, "the file is larger than 4 GiB"));
        }
        // The lexer's own arrays would hold the trivia too, which nothing here looks at.
        let bytes = text.as_bytes();
        let mut kinds = Vec::with_capacity(text.len() / 8 + 8);
        let mut spans = Vec::with_capacity(text.len() / 8 + 8);
        let mut at = 0;
        while at < bytes.len() {
            let (kind, end) = token(bytes, at);
            if !kind.is_trivia() {
                kinds.push(kind);
                spans.push((at as u32, end as u32));
            }
            at = end;
        }
        Ok(Parser {
            text,
            kinds,
            spans,
            at: 0,
            files: Vec::new(),
            words: Vec::new(),
            memory: false,
            arrays: HashMap::new(),
            numbered_declarations: 0,
        })
    }

    // ---- the cursor ----

    /// The kind of the token `n` places on; `None` at the end.
    fn peek_at(&self, n: usize) -> Option<Kind> {
        self.kinds.get(self.at + n).copied()
    }

    fn peek(&self) -> Option<Kind> {
        self.peek_at(0)
    }

    fn text_at(&self, n: usize) -> &'a str {
        self.spans
            .get(self.at + n)
            .map_or("", |&(s, e)| &self.text[s as usize..e as usize])
    }

    /// The current token's text, empty at the end.
    fn word(&self) -> &'a str {
        self.text_at(0)
    }

    /// Where the current token begins; the text's end at the end.
    fn start(&self) -> usize {
        self.spans
            .get(self.at)
            .map_or(self.text.len(), |&(s, _)| s as usize)
    }

    /// Where the token before the current one ends.
    fn last_end(&self) -> usize {
        self.at
            .checked_sub(1)
            .and_then(|i| self.spans.get(i))
            .map_or(0, |&(_, e)| e as usize)
    }

    fn bump(&mut self) {
        self.at += 1;
    }

    /// Passes over the current token if it is of this kind.
    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.peek() == Some(kind);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Result<()> {
        if self.eat(kind) {
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }

    /// Whether the current token touches the one before it.
    fn touches_last(&self) -> bool {
        self.start() == self.last_end()
    }

    /// Whether the current token is on the same line as the one before it.
    fn on_same_line(&self) -> bool {
        !self.text.as_bytes()[self.last_end()..self.start()].contains(&b'\n')
    }

    // ---- errors ----

    fn error_at(&self, offset: usize, message: impl Into<String>) -> ParseError {
        ParseError::at(self.text, offset, message)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        self.error_at(self.start(), message)
    }

    /// "Expected X, found Y", with a word on truncation at the end of the file.
    fn expected(&self, what: &str) -> ParseError {
        match self.peek() {
            None => self.error(format!(
                "expected {what}, but the file ends here: is it truncated?"
            )),
            Some(Kind::UnclosedComment) => self.error("this comment is never closed"),
            Some(Kind::UnclosedString) => self.error("this string is not closed on its line"),
            Some(_) => {
                let word: String = self.word().chars().take(40).collect();
                self.error(format!("expected {what}, found `{}`", word.escape_debug()))
            }
        }
    }

    // ---- common pieces ----

    fn ident(&mut self, what: &str) -> Result<&'a str> {
        if self.peek() != Some(Kind::Ident) {
            return Err(self.expected(what));
        }
        let word = self.word();
        self.bump();
        Ok(word)
    }

    /// A number as an integer that fits `u32`; larger ones (and floats) are errors.
    fn small_number(&mut self, what: &str) -> Result<u32> {
        let value = (self.peek() == Some(Kind::Number))
            .then(|| expression::integer(self.word()))
            .flatten();
        match value.and_then(|v| u32::try_from(v).ok()) {
            Some(v) => {
                self.bump();
                Ok(v)
            }
            None => Err(self.expected(what)),
        }
    }

    fn quoted(&mut self) -> Option<&'a str> {
        if self.peek() != Some(Kind::String) {
            return None;
        }
        let word = self.word();
        self.bump();
        Some(&word[1..word.len() - 1])
    }

    /// Passes over one bracketed group, the current token being its opening one. Iterative: depth does not matter.
    fn skip_group(&mut self) -> Result<()> {
        let start = self.start();
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(Kind::LBrace | Kind::LParen | Kind::LBracket) => depth += 1,
                Some(Kind::RBrace | Kind::RParen | Kind::RBracket) => {
                    depth = depth.saturating_sub(1)
                }
                Some(_) => {}
                None => {
                    let line = ParseError::at(self.text, start, "").line;
                    return Err(self.error(format!(
                        "the file ends inside what line {line} opens: its closing bracket is missing (is the file truncated?)"
                    )));
                }
            }
            self.bump();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    // ---- module level ----

    fn module(
        &mut self,
        mut each: impl FnMut(&[Item<'a>], &mut Function<'a>),
    ) -> Result<Module<'a>> {
        let mut module = Module {
            address_size: 64,
            ..Module::default()
        };
        while self.peek().is_some() {
            let seen = module.items.len();
            self.item(&mut module)?;
            // An item may be several variables, but is one function at most.
            let (before, new) = module.items.split_at_mut(seen);
            if let Some(Item::Function(function)) = new.last_mut() {
                each(before, function);
            }
        }
        if self.kinds.is_empty() {
            return Err(self.error_at(0, "the file is empty: this is not PTX"));
        }
        if module.version.is_none() {
            return Err(self.error_at(0, "no `.version` directive: this is not a PTX file"));
        }
        // What stands behind it is a comment too, and that goes for what is appended.
        if self.kinds.last() == Some(&Kind::UnclosedComment) {
            let start = self.spans.last().map_or(0, |&(start, _)| start as usize);
            return Err(self.error_at(start, "this comment is never closed"));
        }
        module.files = std::mem::take(&mut self.files);
        Ok(module)
    }

    fn item(&mut self, module: &mut Module<'a>) -> Result<()> {
        let start = self.start();
        match self.peek() {
            Some(Kind::Semicolon) => {
                self.bump();
                return Ok(());
            }
            Some(Kind::DotWord) => {}
            // A label outside any function: rustc's debugging data has one.
            Some(Kind::Ident) if self.peek_at(1) == Some(Kind::Colon) => {
                let name = self.word();
                self.bump();
                self.bump();
                module.items.push(Item::Other {
                    name,
                    span: start..self.last_end(),
                });
                return Ok(());
            }
            // `@@DWARF …` of old compilers.
            Some(Kind::At) if self.peek_at(1) == Some(Kind::At) => {
                self.bump();
                while self.peek().is_some() && self.on_same_line() {
                    self.bump();
                }
                module.items.push(Item::Other {
                    name: "@@",
                    span: start..self.last_end(),
                });
                return Ok(());
            }
            Some(Kind::RBrace) => return Err(self.error("this `}` closes nothing")),
            _ if module.version.is_none() => {
                return Err(self.error("expected the `.version` directive that begins a PTX file"));
            }
            _ => return Err(self.expected("a directive")),
        }
        match self.word() {
            ".version" => {
                self.bump();
                let number = self.word();
                let span = self.start()..self.start() + number.len();
                let parts = number
                    .split_once('.')
                    .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                module.version =
                    Some(parts.ok_or_else(|| self.expected("a version number such as 8.7"))?);
                module.version_span = span;
                self.bump();
            }
            ".target" => self.target(module)?,
            ".address_size" => {
                self.bump();
                module.address_size = self.small_number("32 or 64")?;
            }
            ".file" => self.file()?,
            ".section" => self.section(module)?,
            ".entry" | ".func" => {
                let function = self.function(None, start)?;
                module.items.push(Item::Function(function));
            }
            ".visible" | ".extern" | ".weak" | ".common" => {
                let linkage = &self.word()[1..];
                self.bump();
                if matches!(self.word(), ".entry" | ".func") {
                    let function = self.function(Some(linkage), start)?;
                    module.items.push(Item::Function(function));
                } else if declaration::space_of(self.word()).is_some() {
                    self.variables(Some(linkage), start, |v| {
                        module.items.push(Item::Variable(v))
                    })?;
                } else {
                    return Err(self.expected("`.entry`, `.func` or a state space"));
                }
            }
            word if declaration::space_of(word).is_some_and(|s| s != crate::ast::Space::Reg) => {
                self.variables(None, start, |v| module.items.push(Item::Variable(v)))?;
            }
            ".loc" => {
                self.loc()?;
            }
            name => {
                // Unknown: up to its semicolon, or to the end of the line where it has none.
                self.bump();
                loop {
                    match self.peek() {
                        None => break,
                        Some(Kind::Semicolon) => {
                            self.bump();
                            break;
                        }
                        Some(Kind::LBrace | Kind::LParen | Kind::LBracket) => self.skip_group()?,
                        Some(Kind::RBrace) => break,
                        Some(Kind::DotWord) if !self.on_same_line() => break,
                        Some(_) => self.bump(),
                    }
                }
                module.items.push(Item::Other {
                    name,
                    span: start..self.last_end(),
                });
            }
        }
        Ok(())
    }

    /// `.target sm_90a, debug`
    fn target(&mut self, module: &mut Module<'a>) -> Result<()> {
        self.bump();
        loop {
            module.target.push(self.ident("a target such as sm_90a")?);
            if !self.eat(Kind::Comma) {
                return Ok(());
            }
        }
    }

    /// `.file INDEX ["DIRECTORY"] "NAME"[, TIMESTAMP, SIZE]`, at module level or in a body.
    fn file(&mut self) -> Result<()> {
        let start = self.start();
        self.bump();
        let index = self.small_number("a file number")?;
        let Some(first) = self.quoted() else {
            return Err(self.expected("a quoted file name"));
        };
        let second = if self.on_same_line() {
            self.quoted()
        } else {
            None
        };
        while self.peek() == Some(Kind::Comma) && self.on_same_line() {
            self.bump();
            self.bump();
        }
        let (directory, name) = second.map_or((None, first), |name| (Some(first), name));
        self.files.push(FileEntry {
            index,
            directory,
            name,
            span: start..self.last_end(),
        });
        Ok(())
    }

    /// `.section NAME { … }`. What stands inside is data for debuggers, and not all of it is well-formed.
    fn section(&mut self, module: &mut Module<'a>) -> Result<()> {
        let start = self.start();
        self.bump();
        if !matches!(self.peek(), Some(Kind::DotWord | Kind::Ident)) {
            return Err(self.expected("a section name"));
        }
        let name = self.word();
        self.bump();
        if self.eat(Kind::Comma) {
            self.bump();
        }
        if self.peek() == Some(Kind::LBrace) {
            self.skip_group()?;
        }
        module.items.push(Item::Section {
            name,
            span: start..self.last_end(),
        });
        Ok(())
    }
}
