//! Numbers and constant expressions.

use super::{MAX_NESTING, Parser};
use crate::tokens::Kind;

/// A literal's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Literal {
    Int(i128),
    F32(u32),
    F64(u64),
}

/// The value of a [`Kind::Number`] token; `None` if it is none.
pub(super) fn literal(word: &str) -> Option<Literal> {
    let bytes = word.as_bytes();
    if bytes.len() > 2 && bytes[0] == b'0' {
        let digits = &word[2..];
        match bytes[1] {
            b'f' | b'F' if digits.len() == 8 => {
                return u32::from_str_radix(digits, 16).ok().map(Literal::F32);
            }
            b'd' | b'D' if digits.len() == 16 => {
                return u64::from_str_radix(digits, 16).ok().map(Literal::F64);
            }
            _ => {}
        }
    }
    if let Some(value) = integer(word) {
        return Some(Literal::Int(value));
    }
    // Only decimal floats from here: `str::parse` would also take "inf", but a number begins with a digit.
    word.parse::<f64>().ok().map(|f| Literal::F64(f.to_bits()))
}

/// The value of an integer literal.
pub(crate) fn integer(word: &str) -> Option<i128> {
    let word = word.strip_suffix(['U', 'u']).unwrap_or(word);
    let bytes = word.as_bytes();
    let (digits, radix) = match bytes {
        [b'0', b'x' | b'X', ..] => (&word[2..], 16),
        [b'0', b'b' | b'B', ..] => (&word[2..], 2),
        [b'0', _, ..] => (&word[1..], 8),
        _ => (word, 10),
    };
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    i128::from_str_radix(digits, radix).ok()
}

impl Parser<'_> {
    /// A constant integer expression with C's operators; `None`, the cursor anywhere, where there is none.
    pub(super) fn constant(&mut self) -> Option<i128> {
        self.ternary(0)
    }

    fn ternary(&mut self, depth: usize) -> Option<i128> {
        let condition = self.binary(0, depth)?;
        if self.peek() != Some(Kind::Question) {
            return Some(condition);
        }
        if depth >= MAX_NESTING {
            return None;
        }
        self.bump();
        let yes = self.ternary(depth + 1)?;
        if !self.eat(Kind::Colon) {
            return None;
        }
        let no = self.ternary(depth + 1)?;
        Some(if condition != 0 { yes } else { no })
    }

    /// Precedence climbing; `level` is the weakest operator that may be taken.
    fn binary(&mut self, level: u8, depth: usize) -> Option<i128> {
        if depth >= MAX_NESTING {
            return None;
        }
        let mut left = self.unary(depth)?;
        while let Some((operator, strength, tokens)) = self.operator() {
            if strength < level {
                break;
            }
            for _ in 0..tokens {
                self.bump();
            }
            let right = self.binary(strength + 1, depth + 1)?;
            left = apply(operator, left, right)?;
        }
        Some(left)
    }

    fn unary(&mut self, depth: usize) -> Option<i128> {
        // Signs are counted, not recursed into: `- - - … 1` may be as long as the file.
        let mut prefixes = Vec::new();
        loop {
            match self.peek()? {
                Kind::Minus | Kind::Tilde | Kind::Bang => prefixes.push(self.peek()?),
                Kind::Plus => {}
                _ => break,
            }
            self.bump();
        }
        let mut value = match self.peek()? {
            Kind::Number => {
                let value = integer(self.word())?;
                self.bump();
                value
            }
            Kind::Ident if self.word() == "WARP_SZ" => {
                self.bump();
                32
            }
            Kind::LParen => {
                self.bump();
                // A cast, `(.u64)` or `(.s64)`, changes nothing here: values are wider than either.
                if self.peek() == Some(Kind::DotWord) {
                    self.bump();
                    if !self.eat(Kind::RParen) || depth >= MAX_NESTING {
                        return None;
                    }
                    self.unary(depth + 1)?
                } else {
                    let value = self.ternary(depth + 1)?;
                    if !self.eat(Kind::RParen) {
                        return None;
                    }
                    value
                }
            }
            _ => return None,
        };
        for prefix in prefixes.into_iter().rev() {
            value = match prefix {
                Kind::Minus => value.checked_neg()?,
                Kind::Tilde => !value,
                _ => i128::from(value == 0),
            };
        }
        Some(value)
    }

    /// The binary operator at the cursor: its spelling, its strength and how many tokens it has.
    fn operator(&self) -> Option<(&'static str, u8, usize)> {
        // Two tokens that touch: `<<`, `&&`, …
        let twice = |kind| {
            self.peek_at(1) == Some(kind) && self.spans[self.at].1 == self.spans[self.at + 1].0
        };
        Some(match self.peek()? {
            Kind::Pipe if twice(Kind::Pipe) => ("||", 1, 2),
            Kind::Amp if twice(Kind::Amp) => ("&&", 2, 2),
            Kind::Pipe => ("|", 3, 1),
            Kind::Caret => ("^", 4, 1),
            Kind::Amp => ("&", 5, 1),
            Kind::Equal if twice(Kind::Equal) => ("==", 6, 2),
            Kind::Bang if twice(Kind::Equal) => ("!=", 6, 2),
            Kind::Lt if twice(Kind::Lt) => ("<<", 8, 2),
            Kind::Gt if twice(Kind::Gt) => (">>", 8, 2),
            Kind::Lt if twice(Kind::Equal) => ("<=", 7, 2),
            Kind::Gt if twice(Kind::Equal) => (">=", 7, 2),
            Kind::Lt => ("<", 7, 1),
            Kind::Gt => (">", 7, 1),
            Kind::Plus => ("+", 9, 1),
            Kind::Minus => ("-", 9, 1),
            Kind::Star => ("*", 10, 1),
            Kind::Slash => ("/", 10, 1),
            Kind::Percent => ("%", 10, 1),
            _ => return None,
        })
    }
}

fn apply(operator: &str, a: i128, b: i128) -> Option<i128> {
    let shift = || u32::try_from(b).ok().filter(|&n| n < 64);
    match operator {
        "||" => Some(i128::from(a != 0 || b != 0)),
        "&&" => Some(i128::from(a != 0 && b != 0)),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "&" => Some(a & b),
        "==" => Some(i128::from(a == b)),
        "!=" => Some(i128::from(a != b)),
        "<=" => Some(i128::from(a <= b)),
        ">=" => Some(i128::from(a >= b)),
        "<" => Some(i128::from(a < b)),
        ">" => Some(i128::from(a > b)),
        "<<" => a.checked_mul(1i128 << shift()?),
        ">>" => Some(a >> shift()?),
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        _ => a.checked_rem(b),
    }
}
