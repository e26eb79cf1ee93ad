//! Functions that the system provides: `vprintf`, `__assertfail`, `malloc`, `free`.

use super::data::{read_local, write_local};
use super::{Exec, Failed, Halt};
use crate::machine::ir::{Builtin, BuiltinCall, Space};
use crate::machine::state::Warp;
use crate::machine::stop::FaultKind;

/// Longest string that is read from the device.
const STRING: u64 = 1 << 16;
/// What the machine keeps of its kernels' output until the host takes it.
const OUTPUT: usize = 1 << 20;

impl Exec<'_> {
    pub(super) fn builtin(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        call: &BuiltinCall,
    ) -> Result<(), Failed> {
        for lane in 0..32 {
            if mask >> lane & 1 == 0 {
                continue;
            }
            let value = self.one(warp, call, lane).map_err(|h| (h, lane as u32))?;
            if let Some(&(offset, size)) = call.rets.first() {
                let at = u64::from(warp.groups[warp.current].frame.local + offset);
                write_local(warp, at, size.min(8) as u8, value, lane);
            }
        }
        Ok(())
    }

    fn one(&mut self, warp: &Warp, call: &BuiltinCall, lane: usize) -> Result<u64, Halt> {
        let frame = warp.groups[warp.current].frame;
        let arg = |n: usize| {
            call.args.get(n).map_or(0, |&(offset, size)| {
                read_local(
                    warp,
                    u64::from(frame.local + offset),
                    size.min(8) as u8,
                    lane,
                )
            })
        };
        match call.which {
            Builtin::Vprintf => {
                let format = self.string(warp, arg(0), lane)?;
                let text = self.format(warp, &format, arg(1), lane)?;
                if self.output.len() < OUTPUT {
                    self.output.extend_from_slice(&text);
                }
                Ok(text.len() as u64)
            }
            Builtin::AssertFail => {
                let text = |exec: &mut Self, n: usize| {
                    exec.string(warp, arg(n), lane)
                        .map(|s| String::from_utf8_lossy(&s).into_owned())
                };
                let (what, file, function) = (text(self, 0)?, text(self, 1)?, text(self, 3)?);
                Err(Halt::Assert(format!(
                    "{file}:{}: {function}: {what}",
                    arg(2) as u32
                )))
            }
            Builtin::Malloc => Ok(self.malloc(arg(0))),
            Builtin::Free => {
                let address = arg(0);
                if address == 0 {
                    return Ok(0);
                }
                match self.heap.blocks.remove(&address) {
                    Some(size) => {
                        self.heap.used -= size;
                        self.memory.free_internal(address);
                        Ok(0)
                    }
                    None => Err(Halt::Fault {
                        kind: FaultKind::OutOfBounds,
                        address,
                        detail: "free of something that malloc did not return".to_string(),
                    }),
                }
            }
        }
    }

    fn malloc(&mut self, size: u64) -> u64 {
        let cost = size.max(16);
        if cost > self.config.heap_bytes.saturating_sub(self.heap.used) {
            return 0;
        }
        match self.memory.allocate_internal(self.block.device, size) {
            Some(address) => {
                self.heap.used += cost;
                self.heap.blocks.insert(address, cost);
                address
            }
            None => 0,
        }
    }

    fn string(&mut self, warp: &Warp, address: u64, lane: usize) -> Result<Vec<u8>, Halt> {
        let mut out = Vec::new();
        for i in 0..STRING {
            let byte =
                self.load_lane(warp, Space::Generic, address.wrapping_add(i), 1, lane)? as u8;
            if byte == 0 {
                break;
            }
            out.push(byte);
        }
        Ok(out)
    }

    /// C's `printf`: the arguments lie one after the other, each aligned to its size.
    fn format(
        &mut self,
        warp: &Warp,
        format: &[u8],
        args: u64,
        lane: usize,
    ) -> Result<Vec<u8>, Halt> {
        let mut out = Vec::new();
        let mut at = args;
        let mut rest = format;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte != b'%' {
                out.push(byte);
                continue;
            }
            let mut spec = Spec::default();
            rest = spec.parse(rest);
            if spec.conversion == b'%' {
                out.push(b'%');
                continue;
            }
            let mut next = |exec: &mut Self, bytes: u64| {
                at = at.next_multiple_of(bytes);
                let value = exec.load_lane(warp, Space::Generic, at, bytes as u8, lane);
                at += bytes;
                value
            };
            if spec.star_width {
                spec.width = (next(self, 4)? as i32).clamp(-4096, 4096);
            }
            if spec.star_precision {
                spec.precision = usize::try_from(next(self, 4)? as i32)
                    .ok()
                    .map(|p| p.min(4096));
            }
            let wide = if spec.long { 8 } else { 4 };
            let text = match spec.conversion {
                b'd' | b'i' => {
                    let raw = next(self, wide)?;
                    spec.signed(if wide == 8 {
                        raw as i64
                    } else {
                        i64::from(raw as i32)
                    })
                }
                b'u' => next(self, wide)?.to_string(),
                b'x' => format!(
                    "{}{:x}",
                    if spec.alternate { "0x" } else { "" },
                    next(self, wide)?
                ),
                b'X' => format!(
                    "{}{:X}",
                    if spec.alternate { "0X" } else { "" },
                    next(self, wide)?
                ),
                b'o' => format!("{:o}", next(self, wide)?),
                b'p' => format!("{:#x}", next(self, 8)?),
                b'c' => char::from(next(self, 4)? as u8).to_string(),
                b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' => {
                    spec.float(f64::from_bits(next(self, 8)?))
                }
                b's' => {
                    let address = next(self, 8)?;
                    let s = self.string(warp, address, lane)?;
                    let s = &s[..s.len().min(spec.precision.unwrap_or(usize::MAX))];
                    String::from_utf8_lossy(s).into_owned()
                }
                other => format!("%{}", char::from(other)),
            };
            spec.pad(&text, &mut out);
        }
        Ok(out)
    }
}

/// One conversion of a format string.
#[derive(Default)]
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: i32,
    precision: Option<usize>,
    star_width: bool,
    star_precision: bool,
    long: bool,
    conversion: u8,
}

impl Spec {
    fn parse<'f>(&mut self, mut rest: &'f [u8]) -> &'f [u8] {
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
                b'h' | b'L' => {}
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

    fn signed(&self, n: i64) -> String {
        self.sign(n.to_string())
    }

    fn float(&self, x: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        if !x.is_finite() {
            let text = if x.is_nan() {
                "nan"
            } else if x > 0.0 {
                "inf"
            } else {
                "-inf"
            };
            return self.sign(text.to_string());
        }
        let text = match self.conversion {
            b'e' | b'E' => exponent(x, precision),
            b'g' | b'G' => general(x, precision.max(1)),
            _ => format!("{x:.precision$}"),
        };
        self.sign(if self.conversion.is_ascii_uppercase() {
            text.to_uppercase()
        } else {
            text
        })
    }

    fn pad(&self, text: &str, out: &mut Vec<u8>) {
        let width = self.width.unsigned_abs() as usize;
        let missing = width.saturating_sub(text.chars().count());
        if self.left || self.width < 0 {
            out.extend_from_slice(text.as_bytes());
            out.resize(out.len() + missing, b' ');
        } else if self.zero && !matches!(self.conversion, b's' | b'c') {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+', ' '])));
            out.extend_from_slice(sign.as_bytes());
            out.resize(out.len() + missing, b'0');
            out.extend_from_slice(digits.as_bytes());
        } else {
            out.resize(out.len() + missing, b' ');
            out.extend_from_slice(text.as_bytes());
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

/// C's `%g`.
fn general(x: f64, precision: usize) -> String {
    let text = exponent(x, precision - 1);
    let e: i32 = text
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') {
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
        assert_eq!(general(0.0001, 6), "0.0001");
        assert_eq!(general(1e-5, 6), "1e-05");
        assert_eq!(general(100000.0, 6), "100000");
        assert_eq!(general(1e6, 6), "1e+06");
        assert_eq!(general(2.5, 6), "2.5");
    }

    #[test]
    fn widths_and_flags() {
        let show = |spec: &str, n: i64| {
            let mut s = Spec::default();
            s.parse(spec.as_bytes());
            let mut out = Vec::new();
            s.pad(&s.signed(n), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(show("5d", -42), "  -42");
        assert_eq!(show("05d", -42), "-0042");
        assert_eq!(show("-5d", 42), "42   ");
        assert_eq!(show("+d", 42), "+42");
    }
}
