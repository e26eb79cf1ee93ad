//! A conflict of an access that acquires: kept between its two hooks in one word, and dropped if what it acquires orders it.

use super::contents::Contents;
use super::{RECORDS, prior_of};
use crate::cell::{Conflict, Current, Prior, kind_of};
use crate::layout::{Access, Op, Order, RaceClass, Scope};

/// Set in a compare-and-swap's context when it has offered a release.
pub const OFFERED: u64 = 1 << 63;
/// The deferred conflict is one whether or not a compare-and-swap writes.
pub const SURE: u64 = 1 << 62;
/// What the deferred conflict is with is a write.
const WROTE: u64 = 1 << 61;
/// Where the deferred conflict's class stands.
const CLASS: u32 = 58;

/// Whether the first context's conflict is the better one to keep until the access has acquired: it is one for certain, with
/// another block (whose own warps a strong read orders at once), or with what the same thread did later.
pub fn outlasts(one: u64, other: u64) -> bool {
    let intra = |context: u64| context >> CLASS & 7 == RaceClass::IntraBlock as u64;
    let thread = |context: u64| context >> 32 & 0xffff;
    if one as u32 == 0 || other as u32 == 0 {
        other as u32 == 0
    } else if (one ^ other) & SURE != 0 {
        one & SURE != 0
    } else if intra(one) != intra(other) {
        intra(other)
    } else {
        thread(one) == thread(other) && one as u32 > other as u32
    }
}

/// A race that an access may turn out to have: the other side's epoch (bits 0–31), thread (32–47) and linear index (48–57),
/// between the two hooks.
pub fn bits(conflict: Conflict) -> u64 {
    let wrote = if conflict.prior.op.access() == Access::Load {
        0
    } else {
        WROTE
    };
    wrote
        | (conflict.class as u64 & 7) << CLASS
        | (conflict.prior.linear.unwrap_or(0) as u64 & 0x3ff) << 48
        | (conflict.prior.thread as u64 & 0xffff) << 32
        | conflict.prior.epoch as u64
}

/// The conflict that [`bits`] names.
pub fn conflict(cell: &Contents, context: u64, access: Current) -> Option<Conflict> {
    let epoch = context as u32;
    if epoch == 0 {
        return None;
    }
    let thread = (context >> 32) as u32 & 0xffff;
    let linear = (context >> 48) as u32 & 0x3ff;
    let class = match context >> CLASS & 7 {
        1 => RaceClass::ScopeTooNarrow,
        2 => RaceClass::MissingAcquire,
        3 => RaceClass::MissingRelease,
        4 => RaceClass::MixedWidth,
        6 => RaceClass::IntraBlock,
        _ => RaceClass::Race,
    };
    let did = if context & WROTE != 0 {
        Access::Store
    } else {
        Access::Load
    };
    let mut prior = Prior {
        thread,
        epoch,
        op: Op::new(did, 0, Order::Weak, Scope::None),
        site: None,
        linear: Some(linear),
    };
    // Its record has more, if it is still there.
    let mut slot = 0;
    while slot < RECORDS {
        let record = cell.record(slot);
        if (record.thread(), record.epoch(), record.linear()) == (thread, epoch, linear)
            && record.mask() & access.mask != 0
            && record.writes() == (did == Access::Store)
        {
            prior = prior_of(record);
        }
        slot += 1;
    }
    Some(Conflict {
        kind: kind_of(prior.op, access.op),
        class,
        prior,
        byte: access.mask.trailing_zeros() & 3,
    })
}
