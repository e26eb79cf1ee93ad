//! What asynchronous copies do once they are carried out (`late.rs`), and mbarriers.

use super::{Exec, Failed, Flow, Halt, predicate, set_predicate, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{AtomicOp, CopyOp, Mbarrier, MbarrierOp, NONE, Space};
use crate::machine::state::{State, Warp};
use crate::machine::stop::FaultKind;
use crate::machine::ty::Ty;

/// Longest copy of one instruction.
const LONGEST: u64 = 1 << 20;

impl Exec<'_> {
    pub(super) fn copy(&mut self, warp: &mut Warp, mask: u32, op: &CopyOp) -> Result<(), Failed> {
        let frame = warp.groups[warp.current].frame;
        let to = self.addresses(warp, frame, op.to.1);
        let from = self.addresses(warp, frame, op.from.1);
        let sizes = *self.row(warp, frame, op.size);
        let reads = if op.source_size == NONE {
            sizes
        } else {
            *self.row(warp, frame, op.source_size)
        };
        let ignore = predicate(warp, frame, op.ignore);
        let barriers = op
            .barrier
            .map(|(space, addr)| (space, self.addresses(warp, frame, addr)));
        lanes!(mask, l, {
            let at = |h: Halt| (h, l as u32);
            let size = sizes[l] & 0xffff_ffff;
            let align = if op.bulk { 16 } else { size.max(1) };
            if size > LONGEST
                || (op.bulk && !size.is_multiple_of(16))
                || (!op.bulk && !matches!(size, 4 | 8 | 16))
            {
                return Err(at(Halt::illegal(format!("copy of {size} bytes"))));
            }
            for address in [to[l], from[l]] {
                if address % align != 0 {
                    return Err(at(Halt::fault(FaultKind::Misaligned, address)));
                }
            }
            if !op.bulk && op.source_size != NONE && reads[l] & 0xffff_ffff > size {
                let detail = format!(
                    "cp.async of {size} bytes that reads {}: src-size is at most cp-size",
                    reads[l] & 0xffff_ffff
                );
                return Err(at(Halt::illegal(detail)));
            }
            let have = if ignore >> l & 1 == 1 {
                0
            } else {
                reads[l].min(size)
            };
            let blocks = self.blocks(warp, op.blocks, l);
            for to in self.targets(to[l], blocks) {
                if let Some((reduction, ty)) = op.reduce {
                    self.reduce_bytes(warp, op, [to, from[l]], size, (reduction, ty), l)
                } else {
                    self.copy_bytes(warp, op, [to, from[l]], [size, have], l)
                }
                .map_err(at)?;
            }
            if let Some((space, addresses)) = &barriers {
                for barrier in self.targets(addresses[l], blocks) {
                    self.transact(warp, *space, barrier, -(size as i64), l)
                        .map_err(at)?;
                }
            }
        });
        Ok(())
    }

    /// Copies `size` bytes, of which `have` are read; the others are zero.
    fn copy_bytes(
        &mut self,
        warp: &mut Warp,
        op: &CopyOp,
        [to, from]: [u64; 2],
        [size, have]: [u64; 2],
        l: usize,
    ) -> Result<(), Halt> {
        let frame = warp.groups[warp.current].frame;
        let written = match op.bytes {
            NONE => u64::MAX,
            s => self.row(warp, frame, s)[l],
        };
        for i in (0..size).step_by(4) {
            let mut word = 0;
            let n = have.saturating_sub(i).min(4);
            if n == 4 {
                word = self.load_lane(warp, op.from.0, from + i, 4, l)?;
            } else {
                for b in 0..n {
                    word |= self.load_lane(warp, op.from.0, from + i + b, 1, l)? << (8 * b);
                }
            }
            if op.bytes == NONE {
                self.store_lane(warp, op.to.0, to + i, 4, word, l)?;
                continue;
            }
            for b in (0..4).filter(|b| written >> ((i + b) % 16) & 1 == 1) {
                let byte = word >> (8 * b) & 0xff;
                self.store_lane(warp, op.to.0, to + i + b, 1, byte, l)?;
            }
        }
        Ok(())
    }

    /// `cp.reduce.async.bulk`.
    fn reduce_bytes(
        &mut self,
        warp: &mut Warp,
        op: &CopyOp,
        [to, from]: [u64; 2],
        size: u64,
        (reduction, ty): (AtomicOp, Ty),
        l: usize,
    ) -> Result<(), Halt> {
        let bytes = ty.bytes() as u8;
        for i in (0..size).step_by(usize::from(bytes)) {
            let value = self.load_lane(warp, op.from.0, from + i, bytes, l)?;
            let old = self.load_lane(warp, op.to.0, to + i, bytes, l)?;
            let new = super::atomic::apply(reduction, ty, old, value, 0);
            self.store_lane(warp, op.to.0, to + i, bytes, new, l)?;
        }
        Ok(())
    }

    /// One arrival at an mbarrier.
    pub(super) fn arrive_once(
        &mut self,
        warp: &mut Warp,
        space: Space,
        address: u64,
        l: usize,
    ) -> Result<(), Halt> {
        let mut b = self.load_barrier(warp, space, address, l)?;
        if b.pending == 0 {
            return Err(Halt::of(
                FaultKind::Mbarrier,
                address,
                "an arrival at an mbarrier that waits for none",
            ));
        }
        b.pending -= 1;
        b.advance();
        self.store_lane(warp, space, address, 8, b.pack(), l)
    }

    /// Changes an mbarrier's transaction count.
    pub(super) fn transact(
        &mut self,
        warp: &mut Warp,
        space: Space,
        address: u64,
        change: i64,
        l: usize,
    ) -> Result<(), Halt> {
        let mut b = self.load_barrier(warp, space, address, l)?;
        b.expect(change, address)?;
        b.advance();
        self.store_lane(warp, space, address, 8, b.pack(), l)
    }

    fn load_barrier(
        &mut self,
        warp: &Warp,
        space: Space,
        address: u64,
        l: usize,
    ) -> Result<Bits, Halt> {
        if !address.is_multiple_of(8) {
            return Err(Halt::fault(FaultKind::Misaligned, address));
        }
        if let Some(weak) = self.weak.as_deref_mut() {
            weak.be_mbarrier();
        }
        let bits = self.load_lane(warp, space, address, 8, l)?;
        Bits::unpack(bits).ok_or_else(|| Halt::Fault {
            kind: FaultKind::Mbarrier,
            address,
            detail: "no mbarrier has been initialised there".to_string(),
        })
    }

    pub(super) fn mbarrier(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: &Mbarrier,
    ) -> Result<Flow, Failed> {
        let frame = warp.groups[warp.current].frame;
        let (a, tx) = (*self.row(warp, frame, op.a), *self.row(warp, frame, op.tx));
        if op.op == MbarrierOp::PendingCount {
            let out = a.map(|s| Bits::unpack(s).map_or(0, |b| u64::from(b.pending)));
            write(warp, frame, op.d, &out, mask);
            return Ok(Flow::Next);
        }
        let addresses = self.addresses(warp, frame, op.addr);
        let mut out = [0; 32];
        let mut holds = 0;
        lanes!(mask, l, {
            let at = |h: Halt| (h, l as u32);
            let address = addresses[l];
            if op.op == MbarrierOp::Init {
                let count = a[l] as u32;
                if !address.is_multiple_of(8) {
                    return Err(at(Halt::fault(FaultKind::Misaligned, address)));
                }
                if count == 0 || count > Bits::MOST {
                    let detail = format!("an mbarrier for {count} threads");
                    return Err(at(Halt::of(FaultKind::Mbarrier, address, detail)));
                }
                let b = Bits {
                    phase: false,
                    expected: count,
                    pending: count,
                    tx: 0,
                };
                self.store_lane(warp, op.space, address, 8, b.pack(), l)
                    .map_err(at)?;
                continue;
            }
            let mut b = self.load_barrier(warp, op.space, address, l).map_err(at)?;
            out[l] = b.pack();
            match op.op {
                MbarrierOp::Inval => {
                    self.store_lane(warp, op.space, address, 8, 0, l)
                        .map_err(at)?;
                    continue;
                }
                MbarrierOp::Arrive {
                    expect,
                    drop,
                    complete,
                } => {
                    let n = a[l] as u32;
                    if n == 0 || n > b.pending {
                        let pending = b.pending;
                        let detail =
                            format!("{n} arrivals at an mbarrier that waits for {pending}");
                        return Err(at(Halt::of(FaultKind::Mbarrier, address, detail)));
                    }
                    if expect {
                        b.expect(tx[l] as i64 & 0xffff_ffff, address).map_err(at)?;
                    }
                    if drop {
                        b.expected -= n.min(b.expected);
                    }
                    b.pending -= n;
                    if !complete && b.is_complete() {
                        let detail = "an arrival with .noComplete that completes the phase: leave the last one to an arrival without it";
                        return Err(at(Halt::of(FaultKind::Mbarrier, address, detail)));
                    }
                }
                MbarrierOp::ArriveForCopies => {
                    if b.pending == Bits::MOST {
                        let detail = "cp.async.mbarrier.arrive adds an arrival to the most that an mbarrier can wait for (2^20 - 1): use .noinc";
                        return Err(at(Halt::of(FaultKind::Mbarrier, address, detail)));
                    }
                    continue;
                }
                MbarrierOp::ExpectTx => {
                    b.expect(tx[l] as i64 & 0xffff_ffff, address).map_err(at)?;
                }
                MbarrierOp::CompleteTx => {
                    b.expect(-(tx[l] as i64 & 0xffff_ffff), address)
                        .map_err(at)?;
                }
                MbarrierOp::Test { parity, .. } => {
                    let asked = if parity {
                        a[l] & 1 == 1
                    } else {
                        Bits::unpack(a[l]).is_some_and(|s| s.phase)
                    };
                    holds |= u32::from(b.phase != asked) << l;
                    continue;
                }
                MbarrierOp::Init | MbarrierOp::PendingCount => {}
            }
            b.advance();
            self.store_lane(warp, op.space, address, 8, b.pack(), l)
                .map_err(at)?;
        });
        write(warp, frame, op.d, &out, mask);
        set_predicate(warp, frame, op.p, holds, mask);
        // A waiter that is too early lets others go first.
        if matches!(op.op, MbarrierOp::Test { wait: true, .. })
            && holds != mask
            && warp.groups.iter().any(|g| g.state == State::Ready)
        {
            return Ok(self.yield_turn(warp));
        }
        Ok(Flow::Next)
    }
}

/// An mbarrier's 64 bits.
///
/// | bits | field |
/// |---|---|
/// | 0–19 | pending arrivals |
/// | 20–39 | expected arrivals |
/// | 40–61 | transaction count, signed |
/// | 62 | phase |
/// | 63 | it is one |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bits {
    phase: bool,
    expected: u32,
    pending: u32,
    tx: i64,
}

impl Bits {
    const MOST: u32 = (1 << 20) - 1;

    fn pack(self) -> u64 {
        u64::from(self.pending & Self::MOST)
            | u64::from(self.expected & Self::MOST) << 20
            | (self.tx as u64 & 0x3f_ffff) << 40
            | u64::from(self.phase) << 62
            | 1 << 63
    }

    fn unpack(bits: u64) -> Option<Bits> {
        (bits >> 63 == 1).then_some(Bits {
            pending: bits as u32 & Self::MOST,
            expected: (bits >> 20) as u32 & Self::MOST,
            tx: ((bits >> 40) << 42) as i64 >> 42,
            phase: bits >> 62 & 1 == 1,
        })
    }

    /// Adds to the transaction count.
    fn expect(&mut self, bytes: i64, address: u64) -> Result<(), Halt> {
        self.tx += bytes;
        if self.tx.unsigned_abs() > u64::from(Self::MOST) {
            let detail = format!(
                "its transaction count comes to {}: at most 2^20 - 1 bytes may be expected and not complete, or complete before they \
                 are expected",
                self.tx
            );
            return Err(Halt::of(FaultKind::Mbarrier, address, detail));
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.pending == 0 && self.tx == 0
    }

    /// Ends the phase when nothing is pending.
    fn advance(&mut self) {
        if self.is_complete() {
            self.phase = !self.phase;
            self.pending = self.expected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_do_not_overlap() {
        for phase in [false, true] {
            for tx in [0, 1, -1, 0x1f_ffff, -0x20_0000] {
                for pending in [0, 1, Bits::MOST] {
                    let b = Bits {
                        phase,
                        expected: Bits::MOST - pending,
                        pending,
                        tx,
                    };
                    assert_eq!(Bits::unpack(b.pack()), Some(b));
                }
            }
        }
        assert_eq!(Bits::unpack(0), None);
    }
}
