//! One conversion of `printf`, as C has it.

/// One conversion of a format string.
#[derive(Default)]
pub(super) struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    pub(super) width: i32,
    pub(super) precision: Option<usize>,
    pub(super) star_width: bool,
    pub(super) star_precision: bool,
    pub(super) long: bool,
    /// `h`s.
    short: u8,
    pub(super) conversion: u8,
}

impl Spec {
    pub(super) fn parse<'f>(&mut self, mut rest: &'f [u8]) -> &'f [u8] {
        let mut in_precision = false;
        while let Some((&b, tail)) = rest.split_first() {
            rest = tail;
            match b {
                b'-' => self.left = true,
                b'+' => self.plus = true,
                b' ' => self.space = true,
                b'#' => self.alternate = true,
                b'0' if !in_precision && self.width == 0 => self.zero = true,
                b'.' => {
                    in_precision = true;
                    self.precision = Some(0);
                }
                b'*' if in_precision => self.star_precision = true,
                b'*' => self.star_width = true,
                b'0'..=b'9' if in_precision => {
                    let p = self.precision.unwrap_or(0) * 10 + usize::from(b - b'0');
                    self.precision = Some(p.min(4096));
                }
                b'0'..=b'9' => self.width = (self.width * 10 + i32::from(b - b'0')).min(4096),
                b'l' | b'j' | b'z' | b't' => self.long = true,
                b'h' => self.short = self.short.saturating_add(1),
                b'L' => {}
                _ => {
                    self.conversion = b;
                    break;
                }
            }
        }
        rest
    }

    fn sign(&self, text: String) -> String {
        if text.starts_with('-') {
            text
        } else if self.plus {
            format!("+{text}")
        } else if self.space {
            format!(" {text}")
        } else {
            text
        }
    }

    /// Bits of an integer argument.
    fn bits(&self) -> u32 {
        match self.short {
            _ if self.long => 64,
            0 => 32,
            1 => 16,
            _ => 8,
        }
    }

    pub(super) fn signed(&self, raw: u64) -> String {
        let unused = 64 - self.bits();
        let n = (raw << unused) as i64 >> unused;
        let digits = self.digits(n.unsigned_abs().to_string());
        self.sign(format!("{}{digits}", if n < 0 { "-" } else { "" }))
    }

    pub(super) fn unsigned(&self, raw: u64) -> String {
        let n = raw & u64::MAX >> (64 - self.bits());
        let prefixed = self.alternate && n != 0;
        match self.conversion {
            b'x' if prefixed => format!("0x{}", self.digits(format!("{n:x}"))),
            b'X' if prefixed => format!("0X{}", self.digits(format!("{n:X}"))),
            b'x' => self.digits(format!("{n:x}")),
            b'X' => self.digits(format!("{n:X}")),
            b'o' => {
                let digits = self.digits(format!("{n:o}"));
                let zero = self.alternate && !digits.starts_with('0');
                format!("{}{digits}", if zero { "0" } else { "" })
            }
            _ => self.digits(n.to_string()),
        }
    }

    /// An integer's precision is the least number of digits; no digits are needed for 0.
    fn digits(&self, digits: String) -> String {
        match self.precision {
            Some(0) if digits == "0" => String::new(),
            Some(least) => format!("{digits:0>least$}"),
            None => digits,
        }
    }

    pub(super) fn float(&self, x: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let positive = x.abs();
        let text = match self.conversion.to_ascii_lowercase() {
            _ if x.is_nan() => "nan".to_string(),
            _ if x.is_infinite() => "inf".to_string(),
            b'e' => self.point(exponent(positive, precision)),
            b'g' => self.point(general(positive, precision.max(1), self.alternate)),
            b'a' => self.point(hexadecimal(positive, self.precision)),
            _ => self.point(format!("{positive:.precision$}")),
        };
        let negative = x.is_sign_negative() && !x.is_nan();
        let text = self.sign(format!("{}{text}", if negative { "-" } else { "" }));
        if self.conversion.is_ascii_uppercase() {
            text.to_uppercase()
        } else {
            text
        }
    }

    /// With `#`, a float has a point even where no digit follows.
    fn point(&self, text: String) -> String {
        if !self.alternate || text.contains('.') {
            return text;
        }
        let end = if text.starts_with("0x") { 'p' } else { 'e' };
        let at = text.find(end).unwrap_or(text.len());
        format!("{}.{}", &text[..at], &text[at..])
    }

    pub(super) fn pad(&self, text: &str, out: &mut Vec<u8>) {
        let width = self.width.unsigned_abs() as usize;
        let missing = width.saturating_sub(text.chars().count());
        if self.left || self.width < 0 {
            out.extend_from_slice(text.as_bytes());
            out.resize(out.len() + missing, b' ');
        } else if self.zero && self.takes_zeros(text) {
            let sign = usize::from(text.starts_with(['-', '+', ' ']));
            let prefixed = text[sign..].starts_with("0x") || text[sign..].starts_with("0X");
            let (sign, digits) = text.split_at(sign + if prefixed { 2 } else { 0 });
            out.extend_from_slice(sign.as_bytes());
            out.resize(out.len() + missing, b'0');
            out.extend_from_slice(digits.as_bytes());
        } else {
            out.resize(out.len() + missing, b' ');
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Whether the flag `0` counts: for numbers, and not beside an integer's precision.
    fn takes_zeros(&self, text: &str) -> bool {
        match self.conversion {
            b'd' | b'i' | b'u' | b'x' | b'X' | b'o' => self.precision.is_none(),
            b's' | b'c' => false,
            _ => !text.to_ascii_lowercase().contains(['n', 'i']),
        }
    }
}

/// C's `%e`: at least two digits of exponent, with a sign.
fn exponent(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, e)) => {
            let e: i32 = e.parse().unwrap_or(0);
            format!("{mantissa}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
        }
        None => text,
    }
}

/// C's `%a`: one digit before the point, and as many behind it as are needed, or as many as asked for.
fn hexadecimal(x: f64, precision: Option<usize>) -> String {
    let bits = x.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let (mut digits, e) = match bits >> 52 {
        0 => (fraction, if fraction == 0 { 0 } else { -1022 }),
        e => (fraction | 1 << 52, e as i64 - 1023),
    };
    if let Some(shown) = precision.filter(|&p| p < 13) {
        let dropped = 52 - 4 * shown;
        let (kept, rest, half) = (
            digits >> dropped,
            digits & ((1 << dropped) - 1),
            1 << (dropped - 1),
        );
        let up = rest > half || rest == half && kept & 1 == 1;
        digits = (kept + u64::from(up)) << dropped;
    }
    let behind = format!("{:013x}", digits & ((1 << 52) - 1));
    let behind = match precision {
        Some(p) if p < 13 => behind[..p].to_string(),
        Some(p) => format!("{behind:0<p$}"),
        None => behind.trim_end_matches('0').to_string(),
    };
    let point = if behind.is_empty() { "" } else { "." };
    format!("0x{}{point}{behind}p{e:+}", digits >> 52)
}

/// C's `%g`; `all`: with the zeros at the end.
fn general(x: f64, precision: usize, all: bool) -> String {
    let text = exponent(x, precision - 1);
    let e: i32 = text
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') && !all {
            s.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            s.to_string()
        }
    };
    if e < -4 || e >= precision as i32 {
        match text.split_once('e') {
            Some((mantissa, e)) => format!("{}e{e}", trim(mantissa)),
            None => text,
        }
    } else {
        let digits = (precision as i32 - 1 - e).max(0) as usize;
        trim(&format!("{x:.digits$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_c() {
        assert_eq!(exponent(12345.678, 3), "1.235e+04");
        assert_eq!(exponent(0.0, 2), "0.00e+00");
        assert_eq!(general(0.0001, 6, false), "0.0001");
        assert_eq!(general(1e-5, 6, false), "1e-05");
        assert_eq!(general(100000.0, 6, false), "100000");
        assert_eq!(general(1e6, 6, false), "1e+06");
        assert_eq!(general(2.5, 6, false), "2.5");
    }

    fn spec(text: &str) -> Spec {
        let mut spec = Spec::default();
        spec.parse(text.as_bytes());
        spec
    }

    fn padded(spec: &Spec, text: &str) -> String {
        let mut out = Vec::new();
        spec.pad(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_print_as_in_c() {
        let show = |text: &str, n: i64| {
            let spec = spec(text);
            let digits = match spec.conversion {
                b'd' => spec.signed(n as u64),
                _ => spec.unsigned(n as u64),
            };
            padded(&spec, &digits)
        };
        for (text, n, printed) in [
            ("5d", -42, "  -42"),
            ("05d", -42, "-0042"),
            ("-5d", 42, "42   "),
            ("+d", 42, "+42"),
            (".10d", -42, "-0000000042"),
            ("012.10d", 42, "  0000000042"),
            (".0d", 0, ""),
            ("d", 0xffff_fffe, "-2"),
            ("ld", -2, "-2"),
            ("hd", 0x1_8000, "-32768"),
            ("hhd", 0xff, "-1"),
            ("hu", 0x12_3456, "13398"),
            ("hhu", 0x12_34ff, "255"),
            ("u", -1, "4294967295"),
            ("#o", 8, "010"),
            ("#o", 0, "0"),
            ("#.0o", 0, "0"),
            ("#.4o", 8, "0010"),
            ("#x", 255, "0xff"),
            ("#x", 0, "0"),
            ("#06X", 255, "0X00FF"),
            ("#.4x", 255, "0x00ff"),
            ("hhx", -1, "ff"),
        ] {
            assert_eq!(show(text, n), printed, "%{text} of {n}");
        }
    }

    #[test]
    fn flags_of_floats_are_cs() {
        for (text, x, printed) in [
            ("a", 3.0, "0x1.8p+1"),
            ("A", -0.1, "-0X1.999999999999AP-4"),
            ("a", 0.0, "0x0p+0"),
            ("a", f64::from_bits(1), "0x0.0000000000001p-1022"),
            (".1a", 1.96875, "0x2.0p+0"),
            (".0a", 1.5, "0x2p+0"),
            (".15a", 1.0, "0x1.000000000000000p+0"),
            ("#.0a", 1.0, "0x1.p+0"),
            ("012a", 3.0, "0x00001.8p+1"),
            ("#g", 2.5, "2.50000"),
            ("#g", 1e6, "1.00000e+06"),
            ("#.1g", 2.0, "2."),
            ("#.0f", 2.0, "2."),
            ("#.0e", 2.0, "2.e+00"),
            ("g", -0.0, "-0"),
            ("F", f64::NEG_INFINITY, "-INF"),
            ("05f", f64::INFINITY, "  inf"),
            ("+.1f", 2.0, "+2.0"),
            ("07.1f", -2.0, "-0002.0"),
        ] {
            let spec = spec(text);
            assert_eq!(padded(&spec, &spec.float(x)), printed, "%{text} of {x}");
        }
    }
}
