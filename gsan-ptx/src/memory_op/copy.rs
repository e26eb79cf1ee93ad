//! Asynchronous copies: `cp.async`, and what the copy engine does (`cp.async.bulk`, `cp.reduce.async.bulk`, `.tensor`).

use super::{Effect, ODD_ADDRESS, ODD_OPERANDS, address, plain, size};
use crate::ast::{Address, Instruction, Operand, Space};
use crate::hook::{Access, OpWord, Order, Scope};

/// How much of its source a `cp.async` reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AsyncCopy<'i, 'a> {
    /// All that [`MemoryOp::size`](super::MemoryOp::size) says.
    Whole,
    /// What this operand says: a number is how many bytes are read (the rest of the destination becomes zero), a
    /// predicate that is true says that nothing is.
    Part(&'i Operand<'a>),
}

/// A bulk copy from or to global memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BulkCopy<'i, 'a> {
    /// What it does there: [`Access::Load`], [`Access::Store`], [`Access::Rmw`].
    pub access: Access,
    /// Bytes of an element of a reduction of a range; else 16.
    pub size: u32,
    /// Where.
    pub remote: Remote<'i, 'a>,
    /// The mbarrier that a read completes on.
    pub barrier: Option<&'i Address<'a>>,
    /// The copy's shared memory, or the mbarrier, may be another block's.
    pub cluster: bool,
    /// It goes to several blocks.
    pub multicast: bool,
    /// Which bytes of every 16 it writes, a bit each, where that is said.
    pub mask: Option<&'i Operand<'a>>,
}

/// The global memory of a bulk copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Remote<'i, 'a> {
    /// So many bytes from an address on.
    Range(&'i Address<'a>, &'i Operand<'a>),
    /// Through a tensor map.
    Box {
        /// The map's generic address.
        map: &'i Operand<'a>,
        /// The box's first element; with `rows` the first column and the numbers of four rows.
        corner: &'i [Operand<'a>],
        /// Gathered or scattered rows.
        rows: bool,
    },
    /// Pixels of windows, through a tensor map.
    Windows {
        /// The map's generic address.
        map: &'i Operand<'a>,
        /// The first pixel's window.
        corner: &'i [Operand<'a>],
        /// The pixels' place in their windows; none where it is their first one.
        offsets: &'i [Operand<'a>],
    },
}

/// `cp.async.bulk.commit_group`, `cp.async.bulk.wait_group`, `cp.async.wait_group`, `cp.async.wait_all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkGroup {
    /// What was issued since the last one is a group.
    Commit,
    /// All groups but so many of the youngest are carried out. (`.read`, after which only the copies' sources are free, is nothing.)
    Wait(u32),
    /// Some `cp.async`s are carried out, or whoever waits for an mbarrier will know that they are.
    Landed,
}

impl BulkCopy<'_, '_> {
    /// The hooks' word for it: a reduction is a relaxed operation at the device's scope, everything else is weak.
    pub fn op_word(&self) -> OpWord {
        match self.access {
            Access::Rmw => OpWord::new(Access::Rmw, self.size, Order::Relaxed, Scope::Gpu),
            access => OpWord::new(access, self.size, Order::Weak, Scope::None),
        }
    }
}

/// Everything whose opcode is `cp`.
pub(super) fn copy<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    let has = |m| instruction.has(m);
    if has("commit_group") || has("wait_group") || has("wait_all") {
        return group(instruction);
    }
    // A hint: no value is read.
    if has("prefetch") {
        return Effect::None;
    }
    if !has("bulk") {
        // Signals a barrier in shared memory when earlier copies are done.
        if has("mbarrier") {
            return Effect::Private(Space::Shared);
        }
        return copy_async(instruction);
    }
    if !has("global") && has("shared::cluster") && has("shared::cta") {
        return Effect::Private(Space::SharedCluster);
    }
    match bulk(instruction) {
        Ok(copy) => Effect::Copy(copy),
        Err(why) => Effect::Unsupported(why),
    }
}

fn group<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    let has = |m| instruction.has(m);
    match &instruction.operands[..] {
        _ if !has("bulk") && has("commit_group") => Effect::None,
        _ if !has("bulk") => Effect::CopyGroup(BulkGroup::Landed),
        _ if has("read") => Effect::None,
        [] if has("commit_group") => Effect::CopyGroup(BulkGroup::Commit),
        [Operand::Int(n)] if has("wait_group") => {
            Effect::CopyGroup(BulkGroup::Wait(u32::try_from(*n).unwrap_or(0)))
        }
        // In doubt all are carried out: what is recorded too early is never reported wrongly.
        _ => Effect::CopyGroup(BulkGroup::Wait(0)),
    }
}

/// `cp.async`: a weak read of its source.
fn copy_async<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    let operand = |n: usize| instruction.operands.get(n);
    let size = match operand(2) {
        Some(Operand::Int(size)) if matches!(size, 4 | 8 | 16) => *size as u32,
        _ => return Effect::Unsupported(ODD_OPERANDS),
    };
    let Some(address) = address(operand(1)) else {
        return Effect::Unsupported(ODD_ADDRESS);
    };
    // The last one is the cache's, if there is one.
    let hint = instruction.modifiers.contains(&"L2::cache_hint");
    let copy = match instruction.operands[3..].split_at_checked(usize::from(hint)) {
        Some(([], [])) | Some(([_], [])) => AsyncCopy::Whole,
        Some(([], [part])) => AsyncCopy::Part(part),
        Some(([part], [_])) => AsyncCopy::Part(part),
        _ => return Effect::Unsupported(ODD_OPERANDS),
    };
    plain(Access::Load, size, address, Some(copy))
}

/// The operands are, in this order: destination, source, (of ranges) size, mbarrier, (of windows) offsets, the blocks of a multicast, cache
/// policy, byte mask.
fn bulk<'i, 'a>(instruction: &'i Instruction<'a>) -> Result<BulkCopy<'i, 'a>, &'static str> {
    let has = |m| instruction.has(m);
    let odd =
        |w: &&str| w.starts_with("im2col::") || *w == "ignore_oob" || w.starts_with("override");
    if instruction.modifiers.iter().any(odd) {
        return Err("bulk copies with im2col::w, with .ignore_oob and the like are not checked");
    }
    let windows = has("im2col") || has("im2col_no_offs");
    // The state space that is named first is where the copy goes.
    let spaces = ["global", "shared::cta", "shared::cluster"];
    let load = instruction
        .modifiers
        .iter()
        .find(|m| spaces.contains(m))
        .is_some_and(|m| *m != "global");
    let tensor = has("tensor");
    let reduce = instruction.has("reduce");
    let size = match size(instruction) {
        Some((bytes, elements)) if reduce && !tensor => bytes / elements.max(1),
        None if reduce && !tensor => return Err(ODD_OPERANDS),
        _ => 16,
    };
    if !has("global") || (load && reduce) || !matches!(size, 1 | 2 | 4 | 8 | 16) {
        return Err(ODD_OPERANDS);
    }
    let operands = &instruction.operands;
    let place = operands.get(usize::from(load)).ok_or(ODD_OPERANDS)?;
    let (mut remote, mut next) = match (place, operands.get(2)) {
        (Operand::Tensor(parts), _) if tensor => {
            let [map, Operand::Vector(corner)] = &parts[..] else {
                return Err(ODD_OPERANDS);
            };
            let rows = has("tile::gather4") || has("tile::scatter4");
            if corner.is_empty() || corner.len() > 5 || (rows && corner.len() != 5) {
                return Err(ODD_OPERANDS);
            }
            let remote = match windows {
                true => Remote::Windows {
                    map,
                    corner,
                    offsets: &[],
                },
                false => Remote::Box { map, corner, rows },
            };
            (remote, 2)
        }
        (Operand::Address(address), Some(bytes)) if !tensor => (Remote::Range(address, bytes), 3),
        _ => return Err(ODD_ADDRESS),
    };
    let barrier = match operands.get(next) {
        Some(Operand::Address(barrier)) if load => Some(barrier),
        _ if load => return Err(ODD_OPERANDS),
        _ => None,
    };
    next += usize::from(load);
    if let (Remote::Windows { offsets, .. }, true) = (&mut remote, load) {
        match operands.get(next) {
            Some(Operand::Vector(list)) if list.len() <= 3 => *offsets = list,
            _ => return Err(ODD_OPERANDS),
        }
        next += 1;
    }
    let multicast = has("multicast::cluster");
    next += usize::from(multicast) + usize::from(has("L2::cache_hint"));
    let mask = match has("cp_mask") {
        true if load || reduce || tensor => return Err(ODD_OPERANDS),
        true => Some(operands.get(next).ok_or(ODD_OPERANDS)?),
        false => None,
    };
    if operands.len() != next + usize::from(mask.is_some()) {
        return Err(ODD_OPERANDS);
    }
    Ok(BulkCopy {
        access: match (load, reduce) {
            (true, _) => Access::Load,
            (_, true) => Access::Rmw,
            _ => Access::Store,
        },
        size,
        remote,
        barrier,
        cluster: load && (multicast || has("shared::cluster")),
        multicast,
        mask,
    })
}
