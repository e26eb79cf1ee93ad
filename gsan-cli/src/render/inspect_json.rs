//! The detector's state as JSON, `schema_version` 1: field names are stable, fields may be added.

use super::inspect::{Inspected, Touched};
use super::json::{SideEntry, side};
use crate::names::Named;
use gsan_device::layout::{Counters, Epoch, GlobalState};
use gsan_host::inspection::{
    AccessView, BarrierView, BlockView, ReleaseView, TenantView, ThreadView, WarpClock, WarpView,
    WordView, in_block,
};
use gsan_host::report::{Report, Scope};
use serde::Serialize;
use serde_json::{Value, json};

const SCHEMA_VERSION: u32 = 1;

/// The state as a JSON document, with a newline at its end.
pub fn render(inspected: &Inspected, report: &Report) -> String {
    let words = inspected.words.iter().flat_map(|w| &w.words);
    let document = json!({
        "schema_version": SCHEMA_VERSION,
        "outcome": report.outcome.word(),
        "message": report.message,
        "seed": report.seed,
        "races": report.races.len(),
        "global": inspected.global.iter().map(|(s, c)| global(s, c)).collect::<Vec<_>>(),
        "words": words.map(|w| word(w, report)).collect::<Vec<_>>(),
        "threads": inspected.threads.iter().map(thread).collect::<Vec<_>>(),
        "touched": inspected.touched.iter().map(touched).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&document)
        .unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"));
    text.push('\n');
    text
}

fn global(s: &GlobalState, c: &Counters) -> Value {
    json!({
        "device": s.device,
        "layout_version": s.version,
        "num_devices": s.num_devices,
        "num_sms": s.num_sms,
        "slots_per_sm": s.slots_per_sm,
        "num_threads": s.num_threads,
        "clock_buffer_size": s.clock_buffer_size,
        "seed": s.seed,
        "real_base": hex(s.real_base),
        "real_size": s.real_size,
        "shadow_base": hex(s.shadow_base),
        "variables": s.num_ranges,
        "race_capacity": s.race_capacity,
        "counters": {
            "checked": c.checked,
            "unchecked": c.unchecked,
            "shared-slot": c.shared_slot,
            "slot-reuse": c.slot_reuse,
            "ring-wrap": c.ring_wrap,
            "saturated": c.saturated,
            "early-copy": c.early_copies,
            "unknown-map": c.unknown_maps,
            "unknown-multicast": c.unknown_multicasts,
            "dropped_records": c.dropped,
        },
    })
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn word(w: &WordView, report: &Report) -> Value {
    json!({
        "address": hex(w.address),
        "buffer": w.buffer,
        "offset": w.offset,
        "format": w.format.name(),
        "reads": w.reads,
        "dropped": w.dropped,
        "accesses": w.accesses.iter().map(|a| access(a, report)).collect::<Vec<_>>(),
        "release": w.release.as_ref().map(release),
    })
}

/// A side as in a report, and what only the cell knows.
#[derive(Serialize)]
struct AccessEntry {
    logical_thread: u32,
    epoch: Option<Epoch>,
    bytes: Vec<u32>,
    element_size: Option<u32>,
    non_coherent: bool,
    observed: bool,
    #[serde(flatten)]
    side: SideEntry,
}

fn access(a: &AccessView, report: &Report) -> AccessEntry {
    AccessEntry {
        logical_thread: a.thread,
        epoch: a.epoch,
        bytes: (0..4).filter(|b| a.bytes >> b & 1 != 0).collect(),
        element_size: a.element_size,
        non_coherent: a.non_coherent,
        observed: a.observed,
        side: side(&a.side, report),
    }
}

fn release(r: &ReleaseView) -> Value {
    json!({
        "logical_thread": r.thread,
        "token": r.token,
        "scope": (r.scope != Scope::None).then(|| r.scope.word()),
        "snapshot": r.snapshot.as_ref().map(|s| json!({
            "clock": clock(&s.clock),
            "warps": warps(&s.warps),
            "joined": s.joined,
        })),
    })
}

/// Entries in their order: `{ "thread": 3, "epoch": 9 }`.
fn clock(entries: &[(u32, Epoch)]) -> Vec<Value> {
    let entry = |(thread, epoch): &(u32, Epoch)| json!({ "thread": thread, "epoch": epoch });
    entries.iter().map(entry).collect()
}

fn warps(entries: &[WarpClock]) -> Vec<Value> {
    let entry = |w: &WarpClock| json!({ "thread": w.thread, "warp": w.warp, "epoch": w.epoch });
    entries.iter().map(entry).collect()
}

/// The warps of the latest tenant, and its barriers: only what they know is there.
fn block(b: &BlockView) -> Value {
    let known = |entries: &[(u32, Epoch)]| -> Vec<Value> {
        let entry = |(warp, epoch): &(u32, Epoch)| json!({ "warp": warp, "epoch": epoch });
        entries.iter().map(entry).collect()
    };
    let warp = |w: &WarpView| {
        json!({
            "warp": w.warp,
            "knows_block": w.all,
            "after_fence": w.after_fence,
            "reach": w.reach,
            "pairs": known(&w.pairs),
            "fence_token": w.fence_token,
        })
    };
    let barrier = |b: &BarrierView| {
        json!({
            "barrier": b.id,
            "closed": b.closed,
            "whole_block": b.whole_block,
            "knew": known(&b.knew),
        })
    };
    json!({
        "warps": b.warps.iter().map(warp).collect::<Vec<_>>(),
        "barriers": b.barriers.iter().map(barrier).collect::<Vec<_>>(),
    })
}

fn thread(t: &ThreadView) -> Value {
    let s = &t.state;
    json!({
        "id": t.id,
        "device": t.device,
        "sm": t.sm,
        "slot": t.slot,
        "epoch": s.epoch,
        "start_epoch": s.start_epoch,
        "users": s.users,
        "own_clock": s.clock_mode == 2,
        "clock": clock(&t.clock),
        "warps": warps(&t.warps),
        "intra_block": s.intra_block != 0,
        "in_block": in_block(s).map(|b| block(&b)),
        "snapshots": s.ring_head,
        "first_token": s.first_token,
        "fence_gpu": s.fence_gpu,
        "fence_sys": s.fence_sys,
        "tenants_so_far": s.tenants,
        "tenants": t.tenants.iter().map(tenant).collect::<Vec<_>>(),
    })
}

fn tenant(t: &TenantView) -> Value {
    json!({
        "start_epoch": t.start_epoch,
        "launch": t.launch,
        "kernel": t.kernel,
        "block": t.block,
        "shared": t.shared,
    })
}

fn touched(t: &Touched) -> Value {
    json!({ "buffer": t.name, "words": t.words, "touched": t.touched })
}
