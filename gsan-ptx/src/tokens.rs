//! Lossless tokens: every byte of the text belongs to exactly one token, and no text is refused.
//!
//! Tokens are a struct of arrays over the text (kinds and start offsets), so a 10 MB file costs two allocations and no
//! string is copied. What is no PTX becomes [`Kind::Unknown`]; saying so is the parser's business.
//!
//! Two choices keep PTX's odd spellings apart. A dotted word (`.2d`, `.cta_group::1`, `.L2::256B`) takes its `::` parts
//! but never a further dot, and a number (`0f3F800000`, `1.5e-3`, `12U`) takes every letter that touches it, so neither
//! can swallow the other.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Kind {
    /// Blanks and line ends.
    Space,
    /// `// …` up to the line's end (not included).
    LineComment,
    /// `/* … */`
    BlockComment,
    /// A preprocessor line, `# 1 "x.cu"`.
    HashLine,
    /// `ld`, `%rd1`, `$L__BB0_1`, `_ZN1A1fEi`
    Ident,
    /// `.global`, `.2d`, `.shared::cta`
    DotWord,
    /// Integers and floats of all bases, suffixes included.
    Number,
    /// `"…"` with its quotes.
    String,
    Comma,
    Semicolon,
    Colon,
    LBrace,
    RBrace,
    LParen,
    RParen,
    LBracket,
    RBracket,
    Lt,
    Gt,
    At,
    Bang,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Equal,
    Pipe,
    Amp,
    Caret,
    Tilde,
    Question,
    /// `/*` that is never closed: the rest of the text.
    UnclosedComment,
    /// `"` that is not closed on its line.
    UnclosedString,
    /// Bytes that begin no token of PTX.
    Unknown,
}

impl Kind {
    /// Whether the parser passes over it.
    pub const fn is_trivia(self) -> bool {
        (self as u8) <= (Kind::HashLine as u8)
    }
}

/// The tokens of a text.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    text: &'a str,
    kinds: Vec<Kind>,
    starts: Vec<u32>,
}

impl<'a> Tokens<'a> {
    /// Splits `text`. What lies beyond 4 GiB becomes part of the last token.
    pub fn new(text: &'a str) -> Tokens<'a> {
        let expected = text.len() / 4 + 16;
        let mut tokens = Tokens {
            text,
            kinds: Vec::with_capacity(expected),
            starts: Vec::with_capacity(expected),
        };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let Ok(start) = u32::try_from(at) else { break };
            let (kind, end) = token(bytes, at);
            debug_assert!(end > at && text.is_char_boundary(end));
            tokens.kinds.push(kind);
            tokens.starts.push(start);
            at = end;
        }
        tokens
    }

    /// The whole text.
    pub fn source(&self) -> &'a str {
        self.text
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kind of token `i`.
    pub fn kind(&self, i: usize) -> Kind {
        self.kinds[i]
    }

    /// First byte of token `i`.
    pub fn start(&self, i: usize) -> usize {
        self.starts[i] as usize
    }

    /// The byte after token `i`.
    pub fn end(&self, i: usize) -> usize {
        self.starts
            .get(i + 1)
            .map_or(self.text.len(), |&s| s as usize)
    }

    /// Bytes of token `i`.
    pub fn span(&self, i: usize) -> Range<usize> {
        self.start(i)..self.end(i)
    }

    /// The text of token `i`.
    pub fn text(&self, i: usize) -> &'a str {
        &self.text[self.span(i)]
    }
}

/// The text on one line: comments go, blanks and line ends become one blank.
pub fn one_line(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut blank) = (0, false);
    while at < bytes.len() {
        let (kind, end) = token(bytes, at);
        if kind.is_trivia() {
            blank = !out.is_empty();
        } else {
            if blank {
                out.push(' ');
            }
            blank = false;
            out.push_str(&text[at..end]);
        }
        at = end;
    }
    out
}

/// U+FEFF in UTF-8. Some editors begin a file with it; here it is blank space.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Character classes, one table look-up per byte.
const SPACE: u8 = 1;
const IDENT_START: u8 = 2;
const IDENT: u8 = 4;
const DIGIT: u8 = 8;

const CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut c = 0usize;
    while c < 256 {
        let b = c as u8;
        let mut class = 0;
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) {
            class |= SPACE;
        }
        if b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'%') {
            class |= IDENT_START;
        }
        if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') {
            class |= IDENT;
        }
        if b.is_ascii_digit() {
            class |= DIGIT;
        }
        table[c] = class;
        c += 1;
    }
    table
};

fn is(bytes: &[u8], at: usize, class: u8) -> bool {
    bytes
        .get(at)
        .is_some_and(|&b| CLASS[b as usize] & class != 0)
}

fn run(bytes: &[u8], mut at: usize, class: u8) -> usize {
    while is(bytes, at, class) {
        at += 1;
    }
    at
}

/// The end of the line that holds `at`, without its line feed.
fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|&b| b == b'\n')
        .map_or(bytes.len(), |n| at + n)
}

/// The token that begins at `at`, and its end. `at` must lie inside of `bytes`.
pub(crate) fn token(bytes: &[u8], at: usize) -> (Kind, usize) {
    let b = bytes[at];
    let class = CLASS[b as usize];
    if class & SPACE != 0 {
        return (Kind::Space, run(bytes, at, SPACE));
    }
    if class & DIGIT != 0 {
        return (Kind::Number, number_end(bytes, at));
    }
    if class & IDENT_START != 0 {
        let end = run(bytes, at + 1, IDENT);
        // A lone `%` is the remainder operator of a constant expression.
        return (
            if b == b'%' && end == at + 1 {
                Kind::Percent
            } else {
                Kind::Ident
            },
            end,
        );
    }
    let single = |kind| (kind, at + 1);
    match b {
        0xef if at == 0 && bytes.starts_with(BYTE_ORDER_MARK) => {
            (Kind::Space, run(bytes, BYTE_ORDER_MARK.len(), SPACE))
        }
        b'.' => {
            let mut end = run(bytes, at + 1, IDENT);
            if end == at + 1 {
                return (Kind::Unknown, end);
            }
            while bytes.get(end..end + 2) == Some(b"::") && is(bytes, end + 2, IDENT) {
                end = run(bytes, end + 2, IDENT);
            }
            (Kind::DotWord, end)
        }
        b'/' if bytes.get(at + 1) == Some(&b'/') => (Kind::LineComment, line_end(bytes, at)),
        b'/' if bytes.get(at + 1) == Some(&b'*') => {
            match bytes[at + 2..].windows(2).position(|w| w == b"*/") {
                Some(n) => (Kind::BlockComment, at + n + 4),
                None => (Kind::UnclosedComment, bytes.len()),
            }
        }
        b'#' => (Kind::HashLine, line_end(bytes, at)),
        b'"' => string(bytes, at),
        b',' => single(Kind::Comma),
        b';' => single(Kind::Semicolon),
        b':' => single(Kind::Colon),
        b'{' => single(Kind::LBrace),
        b'}' => single(Kind::RBrace),
        b'(' => single(Kind::LParen),
        b')' => single(Kind::RParen),
        b'[' => single(Kind::LBracket),
        b']' => single(Kind::RBracket),
        b'<' => single(Kind::Lt),
        b'>' => single(Kind::Gt),
        b'@' => single(Kind::At),
        b'!' => single(Kind::Bang),
        b'+' => single(Kind::Plus),
        b'-' => single(Kind::Minus),
        b'*' => single(Kind::Star),
        b'/' => single(Kind::Slash),
        b'=' => single(Kind::Equal),
        b'|' => single(Kind::Pipe),
        b'&' => single(Kind::Amp),
        b'^' => single(Kind::Caret),
        b'~' => single(Kind::Tilde),
        b'?' => single(Kind::Question),
        // The whole character, so that offsets stay on character boundaries.
        _ => {
            let mut end = at + 1;
            while bytes.get(end).is_some_and(|&b| b & 0xc0 == 0x80) {
                end += 1;
            }
            (Kind::Unknown, end)
        }
    }
}

fn number_end(bytes: &[u8], at: usize) -> usize {
    let mut end = run(bytes, at, IDENT);
    let based = bytes[at] == b'0'
        && matches!(
            bytes.get(at + 1),
            Some(b'x' | b'X' | b'f' | b'F' | b'd' | b'D' | b'b' | b'B')
        );
    if based {
        return end;
    }
    if bytes.get(end) == Some(&b'.') && (is(bytes, end + 1, DIGIT) || !is(bytes, end + 1, IDENT)) {
        end = run(bytes, end + 1, IDENT);
    }
    if matches!(bytes[end - 1], b'e' | b'E')
        && matches!(bytes.get(end), Some(b'+' | b'-'))
        && is(bytes, end + 1, DIGIT)
    {
        end = run(bytes, end + 1, IDENT);
    }
    end
}

fn string(bytes: &[u8], at: usize) -> (Kind, usize) {
    let mut end = at + 1;
    while let Some(&b) = bytes.get(end) {
        match b {
            b'"' => return (Kind::String, end + 1),
            b'\n' => break,
            // The escaped byte may be the first of a longer character: its continuation bytes are ordinary ones.
            b'\\' if !matches!(bytes.get(end + 1), None | Some(b'\n')) => end += 2,
            _ => end += 1,
        }
    }
    (Kind::UnclosedString, end)
}
