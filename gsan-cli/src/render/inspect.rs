//! The detector's state for people.

use super::demangle::demangle;
use super::source::Sources;
use super::text::{BOLD, FRAME, called_from, clean, near, write_summary};
use super::{describe_access, plural, triple};
use crate::names::Named;
use gsan_device::layout::{Counters, Epoch, GlobalState};
use gsan_host::inspection::{
    AccessView, BlockView, ReleaseView, TenantView, ThreadView, WarpClock, WordView, in_block,
};
use gsan_host::report::{Report, Scope};
use std::fmt::Write;

/// What `gsan inspect` was asked for.
#[derive(Debug, Clone, Default)]
pub struct Inspected {
    /// By device.
    pub global: Vec<(GlobalState, Counters)>,
    /// By `--word`.
    pub words: Vec<WordsOf>,
    /// By `--thread`, or all that were used.
    pub threads: Vec<ThreadView>,
    /// How much of each buffer was touched; only where nothing was asked for.
    pub touched: Vec<Touched>,
}

/// The words that a `--word` names.
#[derive(Debug, Clone)]
pub struct WordsOf {
    /// The buffer.
    pub name: String,
    /// In order.
    pub words: Vec<WordView>,
}

/// How much of a buffer was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The buffer.
    pub name: String,
    /// Words that it has.
    pub words: u64,
    /// Those with something in their cells.
    pub touched: u64,
}

/// All of it, and the last line of the report.
pub fn text(inspected: &Inspected, report: &Report, sources: &Sources) -> String {
    let mut out = String::new();
    for (state, counters) in &inspected.global {
        write_global(&mut out, state, counters);
    }
    for words in &inspected.words {
        write_words(&mut out, words, report, sources);
    }
    if inspected.touched.is_empty() {
        for thread in &inspected.threads {
            write_thread(&mut out, thread);
        }
    } else {
        write_overview(&mut out, inspected);
    }
    write_summary(&mut out, report);
    out
}

fn write_global(out: &mut String, s: &GlobalState, c: &Counters) {
    let _ = writeln!(
        out,
        "{BOLD}device {}{BOLD:#} (layout {})",
        s.device, s.version
    );
    let mut line = |what: &str, text: String| {
        let _ = writeln!(out, "  {what:<17} {text}");
    };
    line(
        "logical threads",
        format!(
            "{} = {} × {} × {}",
            s.num_threads,
            plural(s.num_devices.into(), "device"),
            plural(s.num_sms.into(), "SM"),
            plural(s.slots_per_sm.into(), "slot")
        ),
    );
    line("snapshots", format!("{} per thread", s.clock_buffer_size));
    line("sampling seed", s.seed.to_string());
    line("user memory", range(s.real_base, s.real_size));
    line("shadow", format!("from {:#x}", s.shadow_base));
    line("variables", format!("{} with shadow", s.num_ranges));
    line(
        "releases outside",
        format!("{} hashed cells", u64::from(s.sync_mask) + 1),
    );
    line("findings", format!("room for {}", s.race_capacity));
    line(
        "accesses",
        format!("{} checked, {} without shadow", c.checked, c.unchecked),
    );
    line(
        "approximations",
        format!(
            "shared-slot {}, slot-reuse {}, ring-wrap {}, saturated {}, early-copy {}, unknown-map {}, unknown-multicast {}, dropped records {}",
            c.shared_slot,
            c.slot_reuse,
            c.ring_wrap,
            c.saturated,
            c.early_copies,
            c.unknown_maps,
            c.unknown_multicasts,
            c.dropped
        ),
    );
    out.push('\n');
}

fn range(base: u64, size: u64) -> String {
    format!("{base:#x} to {:#x}", base.saturating_add(size))
}

/// Runs of words that nobody touched are one line.
fn write_words(out: &mut String, of: &WordsOf, report: &Report, sources: &Sources) {
    let mut rest = &of.words[..];
    while let Some(first) = rest.first() {
        let empty = rest.iter().take_while(|w| w.is_empty()).count();
        if empty == 0 {
            write_word(out, first, report, sources);
            rest = &rest[1..];
            continue;
        }
        let last = &rest[empty - 1];
        let until = if empty > 1 {
            format!(" to {}", place(last, &of.name))
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "{BOLD}{}{until}{BOLD:#}: nothing recorded ({})\n",
            place(first, &of.name),
            plural(empty as u64, "word")
        );
        rest = &rest[empty..];
    }
}

/// The word's own place: a range may begin inside a word.
fn place(word: &WordView, name: &str) -> String {
    let name = word.buffer.as_deref().unwrap_or(name);
    let offset = word.offset.unwrap_or(0);
    format!("`{}`+{offset}", clean(name))
}

fn write_word(out: &mut String, word: &WordView, report: &Report, sources: &Sources) {
    let _ = writeln!(
        out,
        "{BOLD}{}{BOLD:#} ({:#x}, {} cell): {} counted{}",
        place(word, ""),
        word.address,
        word.format.name(),
        plural(word.reads.into(), "read"),
        if word.dropped {
            "; an access was dropped for want of room"
        } else {
            ""
        }
    );
    for access in &word.accesses {
        write_access(out, access, report, sources);
    }
    if let Some(release) = &word.release {
        write_release(out, release);
    }
    out.push('\n');
}

fn write_access(out: &mut String, a: &AccessView, report: &Report, sources: &Sources) {
    let mut text = match a.element_size {
        Some(_) => describe_access(&a.side),
        // The format tells neither loads from atomics, nor stores.
        None => coarse(a),
    };
    if a.non_coherent {
        text.push_str(" (non-coherent)");
    }
    let _ = write!(text, ", {}", bytes(a.bytes));
    let epoch = a
        .epoch
        .map_or("epoch forgotten".to_string(), |e| format!("epoch {e}"));
    let _ = write!(text, ", logical thread {} at {epoch}", a.thread);
    if a.observed {
        text.push_str(", observed");
    }
    let _ = writeln!(out, "  {FRAME}*{FRAME:#} {text}");
    let _ = writeln!(out, "    by {}", by(a, report));
    let Some(site) = &a.side.site else { return };
    let column = site.column.map_or(String::new(), |c| format!(":{c}"));
    let ptx = match site.ptx_line {
        0 => String::new(),
        n => format!(", PTX line {n}"),
    };
    let _ = writeln!(
        out,
        "    at {}:{}{column}{ptx}",
        clean(&site.file),
        site.line
    );
    if let Some(line) = sources.line(&site.file, site.line) {
        let _ = writeln!(out, "       {FRAME}|{FRAME:#} {}", line.trim());
    }
    for (file, line, column) in &site.inlined_at {
        let _ = writeln!(out, "    inlined at {}:{line}:{column}", clean(file));
    }
    for line in [called_from(site), near(site)].into_iter().flatten() {
        let _ = writeln!(out, "    {line}");
    }
}

/// As much of an access as the reference cell keeps.
fn coarse(a: &AccessView) -> String {
    use gsan_host::report::Access;
    let what = if a.side.access == Some(Access::Load) {
        "read"
    } else {
        "write"
    };
    match a.side.scope {
        Some(scope) => format!("strong {what} at .{}", scope.word()),
        None => format!("weak {what}"),
    }
}

/// `byte 1`, `bytes 0-3`
fn bytes(mask: u8) -> String {
    let touched: Vec<u32> = (0..4).filter(|b| mask >> b & 1 != 0).collect();
    match touched[..] {
        [] => "no byte".into(),
        [one] => format!("byte {one}"),
        [first, .., last] if last - first + 1 == touched.len() as u32 => {
            format!("bytes {first}-{last}")
        }
        _ => {
            let each: Vec<_> = touched.iter().map(u32::to_string).collect();
            format!("bytes {}", each.join(","))
        }
    }
}

fn by(a: &AccessView, report: &Report) -> String {
    let side = &a.side;
    if let Some(what) = side.host_operation() {
        return format!("the host's {}", clean(what));
    }
    let mut text = match (side.thread, side.block) {
        (Some(t), Some(b)) => format!("thread {} of block {}", triple(t), triple(b)),
        (None, Some(b)) => format!("block {}", triple(b)),
        _ => return "a block that is not known any more".into(),
    };
    if let Some(kernel) = &side.kernel {
        let _ = write!(text, " of `{}`", clean(&demangle(kernel)));
    }
    if let Some(id) = side.launch {
        let _ = write!(text, ", launch {id}");
        let stream = report.launches.iter().find(|l| l.id == id);
        if let Some(stream) = stream.and_then(|l| l.stream.as_deref()) {
            let _ = write!(text, " in stream {}", clean(stream));
        }
    }
    text
}

fn write_release(out: &mut String, r: &ReleaseView) {
    let scope = match r.scope {
        Scope::None => String::new(),
        scope => format!(" at .{}", scope.word()),
    };
    let _ = writeln!(
        out,
        "  {FRAME}*{FRAME:#} to acquire{scope}: token {} of logical thread {}",
        r.token, r.thread
    );
    match &r.snapshot {
        Some(snapshot) => {
            let joined = if snapshot.joined {
                "; clocks of other releases were joined in"
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "    its clock: {}{}{joined}",
                clock(&snapshot.clock),
                warps(&snapshot.warps)
            );
        }
        None => {
            let _ = writeln!(
                out,
                "    its snapshot was overwritten: an acquire takes all that the thread knows now"
            );
        }
    }
}

/// `0:5, 3:9`
fn clock(entries: &[(u32, Epoch)]) -> String {
    if entries.is_empty() {
        return "nothing".into();
    }
    let each: Vec<_> = entries.iter().map(|(t, e)| format!("{t}:{e}")).collect();
    each.join(", ")
}

/// `; of warp 2 of 3 alone: 11`
fn warps(entries: &[WarpClock]) -> String {
    let one = |w: &WarpClock| {
        format!(
            "; of warp {} of {} alone up to {}",
            w.warp, w.thread, w.epoch
        )
    };
    entries.iter().map(one).collect()
}

/// What the warps of the latest tenant know of each other, and its barriers.
fn write_block(out: &mut String, block: &BlockView) {
    if block.warps.is_empty() {
        let _ = writeln!(out, "  its warps know nothing of each other yet");
    }
    for w in &block.warps {
        let mut known = Vec::new();
        if let Some(epoch) = w.all {
            known.push(format!("all of its block's others up to {epoch}"));
        }
        if let Some(epoch) = w.after_fence {
            known.push(format!("up to {epoch} once an acquire fence follows"));
        }
        if !w.pairs.is_empty() {
            known.push(format!("of single warps {}", clock(&w.pairs)));
        }
        if let Some(epoch) = w.reach {
            known.push(format!("some of them up to {epoch}"));
        }
        if known.is_empty() {
            known.push("nothing of the others".into());
        }
        let fence = w.fence_token.map_or(String::new(), |t| {
            format!("; its last release fence is in token {t}")
        });
        let _ = writeln!(out, "  warp {} knows {}{fence}", w.warp, known.join(", "));
    }
    for b in &block.barriers {
        let mut text = Vec::new();
        if let Some(epoch) = b.closed {
            text.push(format!("the last arrival closed epoch {epoch}"));
        }
        if let Some(epoch) = b.whole_block.filter(|e| Some(*e) != b.closed) {
            text.push(format!("the last of the whole block {epoch}"));
        }
        if !b.knew.is_empty() {
            let knew = clock(&b.knew);
            text.push(format!("who arrived with a count knew of warps {knew}"));
        }
        let _ = writeln!(out, "  barrier {}: {}", b.id, text.join("; "));
    }
}

fn write_thread(out: &mut String, t: &ThreadView) {
    let s = &t.state;
    let _ = writeln!(
        out,
        "{BOLD}logical thread {}{BOLD:#} (device {}, SM {}, slot {}): epoch {}, {}",
        t.id,
        t.device,
        t.sm,
        t.slot,
        s.epoch,
        match t.tenants.len() {
            0 if s.epoch == 0 => "never used".to_string(),
            _ => format!("its latest tenant's began at {}", s.start_epoch),
        }
    );
    let mode = if s.clock_mode == 2 {
        "its own"
    } else {
        "what its launch inherited"
    };
    let _ = writeln!(
        out,
        "  clock ({mode}): {}{}",
        clock(&t.clock),
        warps(&t.warps)
    );
    if let Some(block) = in_block(s) {
        write_block(out, &block);
    }
    let _ = writeln!(
        out,
        "  {} published; release fences closed epoch {} (.gpu), {} (.sys); {} blocks in it now",
        plural(s.ring_head.into(), "snapshot"),
        s.fence_gpu,
        s.fence_sys,
        s.users
    );
    for tenant in &t.tenants {
        let _ = writeln!(out, "  from epoch {}: {}", tenant.start_epoch, who(tenant));
    }
    let forgotten = u64::from(s.tenants).saturating_sub(t.tenants.len() as u64);
    if forgotten > 0 {
        let _ = writeln!(
            out,
            "  and {} before that are forgotten",
            plural(forgotten, "tenant")
        );
    }
    out.push('\n');
}

fn who(t: &TenantView) -> String {
    if t.shared {
        return "several blocks at once".into();
    }
    let kernel = t.kernel.as_deref().map(|k| clean(&demangle(k)));
    match (t.block, t.launch) {
        (Some(block), Some(launch)) => format!(
            "block {} of {}launch {launch}",
            triple(block),
            kernel.map_or(String::new(), |k| format!("`{k}`, "))
        ),
        _ => format!("the host's {}", kernel.unwrap_or_default()),
    }
}

fn write_overview(out: &mut String, inspected: &Inspected) {
    const SHOWN: usize = 64;
    for t in inspected.threads.iter().take(SHOWN) {
        let latest = t
            .tenants
            .first()
            .map_or(String::new(), |t| format!("; the latest {}", who(t)));
        let _ = writeln!(
            out,
            "logical thread {} (SM {}, slot {}): epoch {}, {}{latest}",
            t.id,
            t.sm,
            t.slot,
            t.state.epoch,
            plural(t.state.tenants.into(), "tenant"),
        );
    }
    if let Some(more) = inspected.threads.len().checked_sub(SHOWN + 1) {
        let _ = writeln!(out, "and {}", plural(more as u64 + 1, "more thread"));
    }
    out.push('\n');
    for t in &inspected.touched {
        let _ = writeln!(
            out,
            "`{}`: {} of {} touched",
            clean(&t.name),
            t.touched,
            plural(t.words, "word")
        );
    }
    out.push('\n');
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
