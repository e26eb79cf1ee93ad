//! Protobuf's text form, without a schema: a tree of fields, each with its place in the file.

use super::ReadError;
use std::borrow::Cow;

/// How deep messages may nest: deeper input is an error, not a stack overflow.
pub const MAX_DEPTH: usize = 128;

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: Value<'a>,
    /// Where it begins, in bytes.
    pub at: usize,
}

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Quoted text, unescaped; may be any bytes.
    Text(Cow<'a, [u8]>),
    /// A number, a truth value or an enumerator, as written.
    Word(&'a str),
    /// A message.
    Message(Vec<Field<'a>>),
}

impl<'a> Value<'a> {
    /// Text or word as a string; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Text(b) => Some(String::from_utf8_lossy(b)),
            Value::Word(w) => Some(Cow::Borrowed(w)),
            Value::Message(_) => None,
        }
    }

    /// A whole number.
    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Word("true") => Some(1),
            Value::Word("false") => Some(0),
            Value::Word(w) => parse_int(w),
            _ => None,
        }
    }

    /// A number.
    pub fn float(&self) -> Option<f64> {
        match self {
            Value::Word(w) => w.trim_end_matches(['f', 'F']).parse().ok().or(match *w {
                "inf" | "infinity" => Some(f64::INFINITY),
                "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
                "nan" => Some(f64::NAN),
                _ => None,
            }),
            _ => None,
        }
    }

    /// A truth value.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Value::Word("true" | "True" | "t" | "1") => Some(true),
            Value::Word("false" | "False" | "f" | "0") => Some(false),
            _ => None,
        }
    }

    /// A message's fields.
    pub fn fields(&self) -> Option<&[Field<'a>]> {
        match self {
            Value::Message(f) => Some(f),
            _ => None,
        }
    }

    /// As JSON, for what is kept without being understood.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Text(b) => String::from_utf8_lossy(b).into_owned().into(),
            Value::Word(_)
                if self.int().is_some() && !matches!(self, Value::Word("true" | "false")) =>
            {
                self.int().unwrap_or(0).into()
            }
            Value::Word(w) => match self.bool() {
                Some(b) => b.into(),
                None => (*w).into(),
            },
            Value::Message(fields) => {
                let mut map = serde_json::Map::new();
                for f in fields {
                    let v = f.value.to_json();
                    match map.get_mut(f.name) {
                        None => drop(map.insert(f.name.to_owned(), v)),
                        Some(serde_json::Value::Array(a)) => a.push(v),
                        Some(old) => *old = serde_json::Value::Array(vec![old.take(), v]),
                    }
                }
                map.into()
            }
        }
    }
}

fn parse_int(w: &str) -> Option<i64> {
    let (sign, digits) = match w.strip_prefix('-') {
        Some(d) => (-1i64, d),
        None => (1, w),
    };
    if let Some(hex) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        return i64::from_str_radix(hex, 16).ok().map(|v| sign * v);
    }
    w.parse()
        .ok()
        .or_else(|| w.parse::<u64>().ok().map(|v| v as i64))
}

/// Reads a whole file.
pub fn parse<'a>(file: &str, content: &'a [u8]) -> Result<Vec<Field<'a>>, ReadError> {
    let text = match std::str::from_utf8(content) {
        Ok(t) => t,
        Err(e) => {
            let (line, column) = place(content, e.valid_up_to());
            let what = "expected text in UTF-8, found other bytes: is this a text dump?".to_owned();
            return Err(ReadError {
                file: file.to_owned(),
                line,
                column,
                what,
            });
        }
    };
    let mut p = Parser { text, at: 0 };
    p.message(0, None)
        .map_err(|(at, what)| error(file, content, at, what))
}

/// An error at a byte of the file.
pub fn error(file: &str, content: &[u8], at: usize, what: String) -> ReadError {
    let (line, column) = place(content, at);
    ReadError {
        file: file.to_owned(),
        line,
        column,
        what,
    }
}

fn place(content: &[u8], at: usize) -> (usize, usize) {
    let before = &content[..at.min(content.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |p| p + 1);
    // Characters, not bytes: what an editor counts.
    let column = before[start..]
        .iter()
        .filter(|b| **b & 0xc0 != 0x80)
        .count()
        + 1;
    (line, column)
}

type Fail = (usize, String);

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(b) = bytes.get(self.at) {
            match b {
                b'#' => {
                    while bytes.get(self.at).is_some_and(|b| *b != b'\n') {
                        self.at += 1;
                    }
                }
                b if b.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
    }

    fn eat(&mut self, b: u8) -> bool {
        self.skip_blank();
        let there = self.peek() == Some(b);
        self.at += usize::from(there);
        there
    }

    fn found(&self) -> String {
        match self.text[self.at..].chars().next() {
            Some(c) => format!("found {c:?}"),
            None => "found the end of the file".to_owned(),
        }
    }

    /// Fields up to the closing bracket (`None`: up to the end of the file).
    fn message(&mut self, depth: usize, close: Option<u8>) -> Result<Vec<Field<'a>>, Fail> {
        let mut fields = Vec::new();
        loop {
            self.skip_blank();
            match (self.peek(), close) {
                (None, None) => return Ok(fields),
                (Some(b), Some(c)) if b == c => {
                    self.at += 1;
                    return Ok(fields);
                }
                (Some(b';' | b','), _) => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let at = self.at;
            let name = self.name(close)?;
            if self.eat(b':') {
                self.skip_blank();
                match self.peek() {
                    Some(b'{' | b'<') => self.nested(name, at, depth, &mut fields)?,
                    Some(b'[') => self.list(name, at, depth, &mut fields)?,
                    _ => {
                        let value = self.scalar()?;
                        fields.push(Field { name, value, at });
                    }
                }
            } else {
                self.skip_blank();
                match self.peek() {
                    Some(b'{' | b'<') => self.nested(name, at, depth, &mut fields)?,
                    _ => {
                        return Err((
                            self.at,
                            format!("expected ':' or '{{' after {name:?}, {}", self.found()),
                        ));
                    }
                }
            }
        }
    }

    fn nested(
        &mut self,
        name: &'a str,
        at: usize,
        depth: usize,
        out: &mut Vec<Field<'a>>,
    ) -> Result<(), Fail> {
        if depth >= MAX_DEPTH {
            return Err((
                self.at,
                format!("messages nest deeper than {MAX_DEPTH} levels"),
            ));
        }
        let close = if self.peek() == Some(b'<') {
            b'>'
        } else {
            b'}'
        };
        self.at += 1;
        let fields = self.message(depth + 1, Some(close))?;
        out.push(Field {
            name,
            value: Value::Message(fields),
            at,
        });
        Ok(())
    }

    /// `name: [a, b]` is the same as `name: a name: b`.
    fn list(
        &mut self,
        name: &'a str,
        at: usize,
        depth: usize,
        out: &mut Vec<Field<'a>>,
    ) -> Result<(), Fail> {
        self.at += 1;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            self.skip_blank();
            match self.peek() {
                Some(b'{' | b'<') => self.nested(name, at, depth, out)?,
                _ => {
                    let value = self.scalar()?;
                    out.push(Field { name, value, at });
                }
            }
            if self.eat(b']') {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err((
                    self.at,
                    format!("expected ',' or ']' in a list, {}", self.found()),
                ));
            }
        }
    }

    fn word(&mut self, extra: &[u8]) -> &'a str {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while bytes
            .get(self.at)
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || extra.contains(b))
        {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn name(&mut self, close: Option<u8>) -> Result<&'a str, Fail> {
        // `[package.extension]` names an extension.
        if self.peek() == Some(b'[') {
            let start = self.at + 1;
            self.at = start;
            let name = self.word(b"./");
            if name.is_empty() || self.peek() != Some(b']') {
                return Err((
                    self.at,
                    format!("expected an extension's name in brackets, {}", self.found()),
                ));
            }
            self.at += 1;
            return Ok(name);
        }
        let name = self.word(b".");
        if name.is_empty() {
            let or = close.map_or(String::new(), |c| format!(" or '{}'", c as char));
            return Err((
                self.at,
                format!("expected a field's name{or}, {}", self.found()),
            ));
        }
        Ok(name)
    }

    fn scalar(&mut self) -> Result<Value<'a>, Fail> {
        match self.peek() {
            Some(b'"' | b'\'') => {
                let mut text = self.string()?;
                loop {
                    // Adjacent strings are one.
                    self.skip_blank();
                    if !matches!(self.peek(), Some(b'"' | b'\'')) {
                        return Ok(Value::Text(text));
                    }
                    let more = self.string()?;
                    text.to_mut().extend_from_slice(&more);
                }
            }
            _ => {
                let w = self.word(b"+-.");
                if w.is_empty() {
                    return Err((self.at, format!("expected a value, {}", self.found())));
                }
                Ok(Value::Word(w))
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, [u8]>, Fail> {
        let bytes = self.text.as_bytes();
        let open = self.at;
        let quote = bytes[self.at];
        self.at += 1;
        let start = self.at;
        let mut owned: Option<Vec<u8>> = None;
        loop {
            match bytes.get(self.at) {
                None | Some(b'\n') => {
                    return Err((
                        open,
                        "expected the end of this text on the same line".to_owned(),
                    ));
                }
                Some(b) if *b == quote => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(match owned {
                        Some(o) => Cow::Owned(o),
                        None => Cow::Borrowed(&bytes[start..end]),
                    });
                }
                Some(b'\\') => {
                    let out = owned.get_or_insert_with(|| bytes[start..self.at].to_vec());
                    self.at += 1;
                    let Some(c) = bytes.get(self.at) else {
                        return Err((
                            open,
                            "expected the end of this text on the same line".to_owned(),
                        ));
                    };
                    self.at += 1;
                    match c {
                        b'n' => out.push(b'\n'),
                        b't' => out.push(b'\t'),
                        b'r' => out.push(b'\r'),
                        b'a' => out.push(7),
                        b'b' => out.push(8),
                        b'f' => out.push(12),
                        b'v' => out.push(11),
                        b'0'..=b'7' => {
                            let mut v = u32::from(c - b'0');
                            for _ in 0..2 {
                                match bytes.get(self.at) {
                                    Some(d @ b'0'..=b'7') => v = v * 8 + u32::from(d - b'0'),
                                    _ => break,
                                }
                                self.at += 1;
                            }
                            out.push(v as u8);
                        }
                        b'x' => {
                            let mut v = 0u32;
                            for _ in 0..2 {
                                match bytes.get(self.at).and_then(|d| (*d as char).to_digit(16)) {
                                    Some(d) => v = v * 16 + d,
                                    None => break,
                                }
                                self.at += 1;
                            }
                            out.push(v as u8);
                        }
                        other => out.push(*other),
                    }
                }
                Some(b) => {
                    if let Some(o) = &mut owned {
                        o.push(*b);
                    }
                    self.at += 1;
                }
            }
        }
    }
}
