//! Functions that the system provides: `vprintf`, `__assertfail`, `malloc`, `free`.

use super::data::{read_local, write_local};
use super::printf::Spec;
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
                if arg(0) == 0 {
                    return Ok(u64::from(u32::MAX));
                }
                let format = self.string(warp, arg(0), lane)?;
                let (text, arguments) = self.format(warp, &format, arg(1), lane)?;
                if self.output.len() < OUTPUT {
                    self.output.extend_from_slice(&text);
                }
                Ok(arguments)
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

    /// C's `printf`: the arguments lie one after the other, each aligned to its size. The text, and how many arguments were
    /// read: that, and not the text's length, is what the device's `printf` returns.
    fn format(
        &mut self,
        warp: &Warp,
        format: &[u8],
        args: u64,
        lane: usize,
    ) -> Result<(Vec<u8>, u64), Halt> {
        let mut out = Vec::new();
        let mut count = 0;
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
                count += 1;
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
                b'd' | b'i' => spec.signed(next(self, wide)?),
                b'u' | b'x' | b'X' | b'o' => spec.unsigned(next(self, wide)?),
                b'p' => format!("{:#x}", next(self, 8)?),
                b'c' => char::from(next(self, 4)? as u8).to_string(),
                b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
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
        Ok((out, count))
    }
}
