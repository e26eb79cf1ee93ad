//! The text of asynchronous copies, mbarriers and clusters' barriers.
//!
//! All kernels have the same shared memory: mbarriers first, then 128 bytes for each copy of a kernel: boxes are aligned to so many.

use crate::boxes::Corner;
use crate::program::{
    Arrival, AsyncCopy, Kernel, MBARRIERS, Mbarrier, Mechanism, Op, Place, Transfer,
};
use gsan_device::layout::Scope;
use std::fmt::Write;

/// The shared memory.
pub(super) const SHARED: &str = "shared_bytes";
/// Where the copies' part begins.
const SLOTS_AT: usize = 128;
/// Bytes for each copy.
const SLOT: usize = 128;
/// Copies of a kernel, at most.
const SLOTS: usize = 96;

/// The declaration of the shared memory.
pub(super) fn declaration() -> String {
    format!(
        ".shared .align 128 .b8 {SHARED}[{}];",
        SLOTS_AT + SLOT * SLOTS
    )
}

/// Initialises a kernel's mbarriers, before any of its threads goes on; nothing if it has none. `%b` is the block, `%t` the thread.
pub(super) fn initialisation(kernel: &Kernel) -> Vec<String> {
    let mut lines = Vec::new();
    for (b, block) in kernel.blocks.iter().enumerate() {
        for (i, count) in block.mbarriers.iter().enumerate() {
            let address = mbarrier(i, None);
            lines.push(format!(
                "setp.eq.u32 %p, %b, {b}; setp.eq.and.u32 %p, %t, 0, %p; {address} @%p mbarrier.init.shared::cta.b64 [%c], {count};"
            ));
        }
    }
    if !lines.is_empty() {
        lines.push("fence.mbarrier_init.release.cluster;".to_string());
        lines.push(match kernel.cluster {
            0 | 1 => "bar.sync 0;".to_string(),
            _ => "barrier.cluster.arrive; barrier.cluster.wait;".to_string(),
        });
    }
    lines
}

/// `%c` becomes the shared address of a block's mbarrier.
fn mbarrier(index: usize, rank: Option<usize>) -> String {
    let offset = 8 * (index % MBARRIERS);
    let far = far("%c", rank);
    format!("mov.u32 %c, {SHARED}; add.u32 %c, %c, {offset};{far}")
}

/// `%a` becomes the shared address of a copy's memory.
fn slot(number: usize, rank: Option<usize>) -> String {
    let offset = SLOTS_AT + SLOT * (number % SLOTS);
    let far = far("%a", rank);
    format!("mov.u32 %a, {SHARED}; add.u32 %a, %a, {offset};{far}")
}

/// Makes it the address of another block's.
fn far(register: &str, rank: Option<usize>) -> String {
    let mapped = |rank| format!(" mapa.shared::cluster.u32 {register}, {register}, {rank};");
    rank.map_or_else(String::new, mapped)
}

/// The lines of an operation of a program, of which the last is the operation itself; `number` is that of a copy in its kernel, `address`
/// says where something in global memory is.
pub(super) fn lines(
    op: &Op,
    guard: &str,
    (program, number): (usize, usize),
    address: impl Fn(Place) -> String,
) -> Vec<String> {
    match op {
        Op::Copy(copy) => {
            let at = match copy.corner {
                // The programs' tensors are one, with a dimension more.
                Some(Corner { x, y }) => format!("[%h, {{{x}, {y}, {program}}}]"),
                None => address(copy.place),
            };
            copy_lines(copy, guard, number, &at)
        }
        Op::Commit(of) => vec![format!("{guard}cp.async{}.commit_group;", bulk(*of))],
        Op::WaitGroup { of, but, read } => {
            let read = if *read && *of == Mechanism::Bulk {
                ".read"
            } else {
                ""
            };
            vec![format!(
                "{guard}cp.async{}.wait_group{read} {but};",
                bulk(*of)
            )]
        }
        Op::Arrive(arrival) => arrive(arrival, guard),
        Op::ClusterArrive { relaxed } => {
            let relaxed = if *relaxed { ".relaxed" } else { "" };
            vec![format!("barrier.cluster.arrive{relaxed};")]
        }
        Op::ClusterWait => vec!["barrier.cluster.wait;".to_string()],
        Op::ArriveBehindCopies {
            mbarrier: index,
            counted,
        } => {
            let counted = if *counted { ".noinc" } else { "" };
            vec![
                mbarrier(*index, None),
                format!("{guard}cp.async.mbarrier.arrive{counted}.shared::cta.b64 [%c];"),
            ]
        }
        Op::LaunchDependents => vec!["griddepcontrol.launch_dependents;".to_string()],
        Op::GridWait => vec!["griddepcontrol.wait;".to_string()],
        Op::Await {
            mbarrier: index,
            phase,
            scope,
        } => {
            let scope = scope_of(*scope);
            vec![
                mbarrier(*index, None),
                format!(
                    "{guard}mbarrier.try_wait.parity.acquire{scope}.shared::cta.b64 %g, [%c], {};",
                    phase & 1
                ),
            ]
        }
        Op::Access(_) | Op::Fence { .. } | Op::Barrier(_) => Vec::new(),
    }
}

fn bulk(of: Mechanism) -> &'static str {
    match of {
        Mechanism::Small => "",
        Mechanism::Bulk => ".bulk",
    }
}

fn scope_of(scope: Scope) -> &'static str {
    match scope {
        Scope::None | Scope::Cta => ".cta",
        _ => ".cluster",
    }
}

fn arrive(arrival: &Arrival, guard: &str) -> Vec<String> {
    let Arrival {
        at,
        bytes,
        relaxed,
        scope,
    } = *arrival;
    let order = if relaxed { ".relaxed" } else { ".release" };
    // Another block's mbarrier has no state to return.
    let (space, result) = match at.rank {
        None => ("shared::cta", "%x"),
        Some(_) => ("shared::cluster", "_"),
    };
    let scope = scope_of(scope);
    let (expect, bytes) = match bytes {
        0 => ("", String::new()),
        n => (".expect_tx", format!(", {n}")),
    };
    vec![
        mbarrier(at.index, at.rank),
        format!("{guard}mbarrier.arrive{expect}{order}{scope}.{space}.b64 {result}, [%c]{bytes};"),
    ]
}

fn copy_lines(copy: &AsyncCopy, guard: &str, number: usize, address: &str) -> Vec<String> {
    let bytes = copy.bytes();
    // A box has its size from its map.
    let (form, size) = match copy.corner {
        Some(_) => (".tensor.3d", String::new()),
        None => ("", format!(", {bytes}")),
    };
    let source = |value: u32| {
        let mut text = slot(number, None);
        for word in 0..bytes / 4 {
            let _ = write!(text, " {guard}st.shared.u32 [%a+{}], {value};", 4 * word);
        }
        format!("{text} {guard}fence.proxy.async.shared::cta;")
    };
    let tile = if copy.corner.is_some() { ".tile" } else { "" };
    match copy.what {
        Transfer::Small => vec![
            slot(number, None),
            format!("{guard}cp.async.ca.shared.global [%a], {address}{size};"),
        ],
        Transfer::Fetch(Mbarrier { rank, index }) => vec![
            slot(number, rank),
            mbarrier(index, rank),
            format!(
                "{guard}cp.async.bulk{form}.shared::cluster.global{tile}.mbarrier::complete_tx::bytes [%a], {address}{size}, [%c];"
            ),
        ],
        Transfer::Multicast { index, blocks } => vec![
            slot(number, None),
            format!("{} mov.b16 %k, {blocks};", mbarrier(index, None)),
            format!(
                "{guard}cp.async.bulk{form}.shared::cluster.global{tile}.mbarrier::complete_tx::bytes.multicast::cluster [%a], {address}{size}, [%c], %k;"
            ),
        ],
        Transfer::Put(value) => vec![
            source(value),
            format!(
                "{guard}cp.async.bulk{form}.global.shared::cta{tile}.bulk_group {address}, [%a]{size};"
            ),
        ],
        Transfer::Reduce(value) => {
            // A tensor's elements have a type already.
            let (add, tile) = match copy.corner {
                Some(_) => ("", ".add.tile"),
                None => (".add.u32", ""),
            };
            vec![
                source(value),
                format!(
                    "{guard}cp.reduce.async.bulk{form}.global.shared::cta{tile}.bulk_group{add} {address}, [%a]{size};"
                ),
            ]
        }
    }
}
