//! The JSON report, `schema_version` 1: field names are stable, fields may be added.

use super::findings;
use crate::names::Named;
use gsan_host::report::{Instrumentation, LaunchInfo, Race, Report, Scope, Side, Site};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version that this program writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// A buffer's elements, from `--print`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Printed {
    /// The buffer.
    pub buffer: String,
    /// Its element type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The first elements, as text: no JSON number holds every u64 and every float.
    pub values: Vec<String>,
}

/// The report as a JSON document, with a newline at its end.
pub fn render(report: &Report, printed: &[Printed]) -> String {
    let document = Document::of(report, printed);
    let mut text = serde_json::to_string_pretty(&document)
        .unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"));
    text.push('\n');
    text
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Document {
    pub schema_version: u32,
    pub outcome: String,
    pub message: Option<String>,
    pub seed: Option<u64>,
    pub schedules: u32,
    pub device: Device,
    pub launches: Vec<Launch>,
    pub races: Vec<RaceEntry>,
    /// Findings of classes that are switched off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<RaceEntry>,
    /// Accesses behind a buffer's end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past_end: Vec<PastEndEntry>,
    pub stats: Stats,
    pub unsupported: Vec<Unsupported>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<Printed>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Device {
    /// `sim` or `cuda`
    pub kind: String,
    pub name: String,
    pub sms: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub id: u32,
    pub kernel: String,
    pub module: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub stream: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RaceEntry {
    pub kind: String,
    pub class: String,
    pub count: u64,
    /// In how many schedules; not in documents of other writers.
    pub schedules: Option<u32>,
    pub address: String,
    pub buffer: Option<String>,
    pub offset: Option<u64>,
    pub size: u32,
    /// What is missing, in a sentence.
    #[serde(default, skip_deserializing)]
    pub help: String,
    pub current: SideEntry,
    pub prior: SideEntry,
    /// The access that lacks its acquire or release order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FlagEntry {
    pub address: String,
    pub buffer: Option<String>,
    pub offset: Option<u64>,
    pub access: SideEntry,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SideEntry {
    pub launch: Option<u32>,
    pub kernel: Option<String>,
    pub block: Option<[u32; 3]>,
    pub thread: Option<[u32; 3]>,
    /// Of the thread in its block.
    #[serde(default, skip_deserializing)]
    pub warp: Option<u32>,
    pub access: Option<String>,
    pub order: Option<String>,
    pub scope: Option<String>,
    pub site: Option<SiteEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SiteEntry {
    pub file: String,
    pub line: u32,
    pub column: Option<u32>,
    pub ptx_line: u32,
    pub function: String,
    #[serde(default)]
    pub inlined_at: Vec<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called_from: Vec<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Place>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PastEndEntry {
    pub buffer: String,
    /// Bytes from its end.
    pub past: u64,
    pub words: u64,
    pub access: SideEntry,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stats {
    pub instrumented_sites: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrumentation: Option<InstrumentationEntry>,
    pub checked_accesses: Option<u64>,
    pub unchecked_accesses: Option<u64>,
    /// By class, so that a reader need not know every one.
    pub misses: Option<BTreeMap<String, u64>>,
    pub dropped_records: Option<u64>,
}

/// Places in the PTX.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InstrumentationEntry {
    pub barriers: u64,
    pub barrier_hooks: u64,
    pub block_syncs: u64,
    #[serde(default)]
    pub cluster_syncs: u64,
    pub left_out: LeftOut,
}

/// What cannot race.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LeftOut {
    pub shared: u64,
    pub local: u64,
    pub parameter: u64,
    pub constant: u64,
    /// The stack or shared memory by generic addresses.
    pub private_generic: u64,
    pub repeated: u64,
    #[serde(default)]
    pub non_coherent: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Unsupported {
    pub module: Option<String>,
    pub ptx_line: u32,
    pub text: String,
    pub why: String,
    /// Absent from reports of before: then it may be either.
    #[serde(default)]
    pub partly: bool,
}

impl Document {
    fn of(report: &Report, printed: &[Printed]) -> Document {
        let stats = &report.stats;
        Document {
            schema_version: SCHEMA_VERSION,
            outcome: report.outcome.word().into(),
            message: report.message.clone(),
            seed: report.seed,
            schedules: report.schedules,
            device: Device {
                kind: if report.device.simulated {
                    "sim"
                } else {
                    "cuda"
                }
                .into(),
                name: report.device.name.clone(),
                sms: report.device.sms,
            },
            launches: report.launches.iter().map(launch).collect(),
            races: report.races.iter().map(|r| race(r, report)).collect(),
            hidden: report.hidden.iter().map(|r| race(r, report)).collect(),
            past_end: report
                .past_end
                .iter()
                .map(|p| PastEndEntry {
                    buffer: p.buffer.clone(),
                    past: p.past,
                    words: p.words,
                    access: side(&p.access, report),
                })
                .collect(),
            stats: Stats {
                instrumented_sites: stats.instrumented_sites,
                instrumentation: stats.instrumentation.map(instrumentation),
                checked_accesses: stats.checked_accesses,
                unchecked_accesses: stats.unchecked_accesses,
                misses: stats.misses.map(|m| {
                    [
                        ("shared-slot", m.shared_slot),
                        ("slot-reuse", m.slot_reuse),
                        ("ring-wrap", m.ring_wrap),
                        ("saturated", m.saturated),
                        ("early-copy", m.early_copy),
                        ("unknown-map", m.unknown_map),
                        ("unknown-multicast", m.unknown_multicast),
                    ]
                    .map(|(name, n)| (name.to_string(), n))
                    .into()
                }),
                dropped_records: stats.dropped_records,
            },
            unsupported: report
                .unsupported
                .iter()
                .map(|u| Unsupported {
                    module: Some(u.module.clone()),
                    ptx_line: u.ptx_line,
                    text: u.text.clone(),
                    why: u.why.clone(),
                    partly: u.partly,
                })
                .collect(),
            printed: printed.to_vec(),
        }
    }
}

fn instrumentation(i: Instrumentation) -> InstrumentationEntry {
    InstrumentationEntry {
        barriers: i.barriers,
        barrier_hooks: i.barrier_hooks,
        block_syncs: i.block_syncs,
        cluster_syncs: i.cluster_syncs,
        left_out: LeftOut {
            shared: i.shared,
            local: i.local,
            parameter: i.param,
            constant: i.constant,
            private_generic: i.private_generic,
            repeated: i.repeated,
            non_coherent: i.non_coherent,
        },
    }
}

fn launch(l: &LaunchInfo) -> Launch {
    Launch {
        id: l.id,
        kernel: l.kernel.clone(),
        module: l.module.clone(),
        grid: l.grid,
        block: l.block,
        stream: l.stream.clone(),
    }
}

fn race(r: &Race, report: &Report) -> RaceEntry {
    RaceEntry {
        kind: r.kind.word().into(),
        class: r.class.word().into(),
        count: r.count,
        schedules: Some(r.schedules),
        address: format!("{:#x}", r.address),
        buffer: r.buffer.clone(),
        offset: r.offset,
        size: r.size,
        help: findings::advice(r, report),
        current: side(&r.current, report),
        prior: side(&r.prior, report),
        flag: r.flag.as_ref().map(|f| FlagEntry {
            address: format!("{:#x}", f.address),
            buffer: f.buffer.clone(),
            offset: f.offset,
            access: side(&f.access, report),
        }),
    }
}

pub(super) fn side(s: &Side, report: &Report) -> SideEntry {
    SideEntry {
        launch: s.launch,
        kernel: s.kernel.clone(),
        block: s.block,
        thread: s.thread,
        warp: findings::warp(s, report),
        access: s.access.map(|a| a.word().into()),
        order: s.order.map(|o| o.word().into()),
        scope: s
            .scope
            .filter(|s| *s != Scope::None)
            .map(|s| s.word().into()),
        site: s.site.as_ref().map(site),
    }
}

fn site(s: &Site) -> SiteEntry {
    let places = |all: &[(String, u32, u32)]| {
        let place = |(file, line, column): &(String, u32, u32)| Place {
            file: file.clone(),
            line: *line,
            column: *column,
        };
        all.iter().map(place).collect()
    };
    SiteEntry {
        file: s.file.clone(),
        line: s.line,
        column: s.column,
        ptx_line: s.ptx_line,
        function: s.function.clone(),
        inlined_at: places(&s.inlined_at),
        called_from: places(&s.called_from),
        near: places(&s.near),
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
