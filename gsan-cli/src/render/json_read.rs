//! Reads a JSON report back.

use super::json::{
    Document, FlagEntry, InstrumentationEntry, Launch, PastEndEntry, Place, Printed, RaceEntry,
    SCHEMA_VERSION, SideEntry, SiteEntry, Unsupported,
};
use crate::names::Named;
use gsan_host::report::*;
use std::collections::BTreeMap;

/// Why a text is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NoReport {
    /// Line and column, from 1; `None` where it is not about one place.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub what: String,
}

impl From<String> for NoReport {
    fn from(what: String) -> NoReport {
        NoReport { place: None, what }
    }
}

/// The report in a JSON document and what `--print` showed.
///
/// # Errors
/// Where the text is no such document.
pub fn read(text: &str) -> Result<(Report, Vec<Printed>), NoReport> {
    // First the version alone: another one may have other fields.
    let version: Version = serde_json::from_str(text).map_err(syntax)?;
    match version.schema_version {
        Some(SCHEMA_VERSION) => {}
        Some(other) => {
            let what = format!("schema_version {other}; this program reads {SCHEMA_VERSION}");
            return Err(what.into());
        }
        None => {
            let what = "not a gsan report: it has no schema_version".to_string();
            return Err(what.into());
        }
    }
    let document: Document = serde_json::from_str(text).map_err(syntax)?;
    Ok(report(document)?)
}

#[derive(serde::Deserialize)]
struct Version {
    schema_version: Option<u32>,
}

fn syntax(e: serde_json::Error) -> NoReport {
    let text = e.to_string();
    // serde_json repeats the place at the end of its message.
    let what = text.rsplit_once(" at line ").map_or(&*text, |(w, _)| w);
    NoReport {
        // At the very start it says column 0.
        place: Some((e.line().max(1), e.column().max(1))),
        what: what.to_string(),
    }
}

fn report(d: Document) -> Result<(Report, Vec<Printed>), String> {
    let simulated = match d.device.kind.as_str() {
        "sim" => true,
        "cuda" => false,
        other => return Err(format!("device kind `{other}` is neither sim nor cuda")),
    };
    let races = d.races.into_iter().map(race).collect::<Result<_, _>>()?;
    let hidden = d.hidden.into_iter().map(race).collect::<Result<_, _>>()?;
    let past_end = d
        .past_end
        .into_iter()
        .map(past_end)
        .collect::<Result<_, _>>()?;
    let report = Report {
        outcome: word("outcome", &d.outcome)?,
        message: d.message,
        seed: d.seed,
        schedules: d.schedules,
        device: DeviceInfo {
            simulated,
            name: d.device.name,
            sms: d.device.sms,
        },
        launches: d.launches.into_iter().map(launch).collect(),
        races,
        hidden,
        past_end,
        stats: Stats {
            instrumented_sites: d.stats.instrumented_sites,
            instrumentation: d.stats.instrumentation.map(instrumentation),
            checked_accesses: d.stats.checked_accesses,
            unchecked_accesses: d.stats.unchecked_accesses,
            misses: d.stats.misses.map(misses),
            dropped_records: d.stats.dropped_records,
        },
        unsupported: d.unsupported.into_iter().map(unsupported).collect(),
    };
    Ok((report, d.printed))
}

fn word<T: Named>(field: &str, word: &str) -> Result<T, String> {
    T::from_word(word)
        .ok_or_else(|| format!("`{word}` is not known as {field}; there are {}", T::words()))
}

fn optional<T: Named>(field: &str, value: Option<String>) -> Result<Option<T>, String> {
    value.map(|w| word(field, &w)).transpose()
}

fn instrumentation(i: InstrumentationEntry) -> Instrumentation {
    Instrumentation {
        barriers: i.barriers,
        barrier_hooks: i.barrier_hooks,
        block_syncs: i.block_syncs,
        cluster_syncs: i.cluster_syncs,
        shared: i.left_out.shared,
        local: i.left_out.local,
        param: i.left_out.parameter,
        constant: i.left_out.constant,
        private_generic: i.left_out.private_generic,
        repeated: i.left_out.repeated,
        non_coherent: i.left_out.non_coherent,
    }
}

fn misses(by_class: BTreeMap<String, u64>) -> Misses {
    let of = |class: &str| by_class.get(class).copied().unwrap_or(0);
    Misses {
        shared_slot: of("shared-slot"),
        slot_reuse: of("slot-reuse"),
        ring_wrap: of("ring-wrap"),
        saturated: of("saturated"),
        early_copy: of("early-copy"),
        unknown_map: of("unknown-map"),
        unknown_multicast: of("unknown-multicast"),
    }
}

fn launch(l: Launch) -> LaunchInfo {
    LaunchInfo {
        id: l.id,
        kernel: l.kernel,
        module: l.module,
        grid: l.grid,
        block: l.block,
        stream: l.stream,
    }
}

fn race(r: RaceEntry) -> Result<Race, String> {
    Ok(Race {
        kind: word("kind", &r.kind)?,
        class: word("class", &r.class)?,
        count: r.count,
        schedules: r.schedules.unwrap_or(1),
        address: address(&r.address)?,
        buffer: r.buffer,
        offset: r.offset,
        size: r.size,
        current: side(r.current)?,
        prior: side(r.prior)?,
        flag: r.flag.map(flag).transpose()?,
    })
}

fn flag(f: FlagEntry) -> Result<Flag, String> {
    Ok(Flag {
        address: address(&f.address)?,
        buffer: f.buffer,
        offset: f.offset,
        access: side(f.access)?,
    })
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or("");
    u64::from_str_radix(digits, 16).map_err(|_| format!("`{text}` is not an address (0x…)"))
}

fn past_end(p: PastEndEntry) -> Result<PastEnd, String> {
    Ok(PastEnd {
        buffer: p.buffer,
        past: p.past,
        words: p.words,
        access: side(p.access)?,
    })
}

fn side(s: SideEntry) -> Result<Side, String> {
    Ok(Side {
        launch: s.launch,
        kernel: s.kernel,
        block: s.block,
        thread: s.thread,
        access: optional("access", s.access)?,
        order: optional("order", s.order)?,
        scope: optional("scope", s.scope)?,
        site: s.site.map(site),
    })
}

fn site(s: SiteEntry) -> Site {
    let places = |all: Vec<Place>| {
        let place = |p: Place| (p.file, p.line, p.column);
        all.into_iter().map(place).collect()
    };
    Site {
        file: s.file,
        line: s.line,
        column: s.column,
        ptx_line: s.ptx_line,
        function: s.function,
        inlined_at: places(s.inlined_at),
        called_from: places(s.called_from),
        near: places(s.near),
    }
}

fn unsupported(u: Unsupported) -> UnsupportedInstruction {
    UnsupportedInstruction {
        module: u.module.unwrap_or_default(),
        ptx_line: u.ptx_line,
        text: u.text,
        why: u.why,
        partly: u.partly,
    }
}
