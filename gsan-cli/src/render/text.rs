//! The report for people, in the manner of rustc and ThreadSanitizer.
//!
//! The text is always styled; whoever prints it strips the styles where there is no terminal.

use super::demangle::demangle;
use super::source::{Sources, with_caret};
use super::{describe_access, findings, instrumentation, plural, triple};
use crate::names::Named;
use anstyle::{AnsiColor, Style};
use gsan_host::report::{
    Flag, Misses, Outcome, Race, RaceClass, Report, Side, Site, UnsupportedInstruction,
};
use std::fmt::Write;

const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
const WARNING: Style = AnsiColor::BrightYellow.on_default().bold();
const GOOD: Style = AnsiColor::BrightGreen.on_default().bold();
pub(super) const FRAME: Style = AnsiColor::BrightBlue.on_default().bold();
pub(super) const BOLD: Style = Style::new().bold();

/// The whole report; `stats`: with what instrumentation did and left out.
pub fn render(report: &Report, sources: &Sources, stats: bool) -> String {
    let mut out = String::new();
    write_races(&mut out, report, sources);
    write_outcome(&mut out, report);
    write_hidden(&mut out, report);
    write_past_ends(&mut out, report, sources);
    write_unsupported(&mut out, report);
    write_stats(&mut out, report);
    if let Some(done) = report.stats.instrumentation.as_ref().filter(|_| stats) {
        for line in instrumentation::lines(done) {
            let _ = writeln!(out, "{line}");
        }
    }
    write_summary(&mut out, report);
    out
}

/// All findings, each with an empty line after it.
pub fn write_races(out: &mut String, report: &Report, sources: &Sources) {
    for group in groups(&report.races) {
        write_group(out, report, &group, sources);
    }
}

/// How many findings a reader sees: those of one place in the source count once.
pub fn places(report: &Report) -> usize {
    groups(&report.races).len()
}

/// Findings that a reader takes for one: the copies that a compiler made of one line when it unrolled a loop differ only in
/// the PTX line.
fn groups(races: &[Race]) -> Vec<Vec<&Race>> {
    fn source(site: Option<&Site>) -> Option<Site> {
        site.map(|s| Site {
            ptx_line: 0,
            ..s.clone()
        })
    }
    let same = |a: &Race, b: &Race| {
        a.kind == b.kind
            && a.class == b.class
            && a.buffer == b.buffer
            && a.current.site.is_some()
            && source(a.current.site.as_ref()) == source(b.current.site.as_ref())
            && source(a.prior.site.as_ref()) == source(b.prior.site.as_ref())
            && a.current.kernel == b.current.kernel
            && a.prior.kernel == b.prior.kernel
            && describe_access(&a.current) == describe_access(&b.current)
            && describe_access(&a.prior) == describe_access(&b.prior)
    };
    let mut groups: Vec<Vec<&Race>> = Vec::new();
    for race in races {
        match groups.iter_mut().find(|g| same(g[0], race)) {
            Some(group) => group.push(race),
            None => groups.push(vec![race]),
        }
    }
    groups
}

/// One finding, or several of one place in the source, of which the first stands for all.
fn write_group(out: &mut String, report: &Report, group: &[&Race], sources: &Sources) {
    let race = group[0];
    if race.class == RaceClass::MissingWait {
        return write_missing_wait(out, report, group, sources);
    }
    let _ = writeln!(
        out,
        "{ERROR}error[{}]{ERROR:#}{BOLD}: {} on {}: {}{BOLD:#}",
        race.kind.word(),
        class_title(race.class),
        place(race),
        findings::what(race),
    );
    let gutter = gutter_width(race);
    let current = race.current.site.as_ref();
    let label = format!(
        "{}{}",
        findings::current_access(race),
        by_whom(&race.current)
    );
    write_site(out, current, &label, gutter, sources, ERROR);
    let by_host = race.current.host_operation();
    match by_host {
        Some(what) => {
            let text = format!("access: {label} by the host's {}", clean(what));
            note(out, gutter, &text);
        }
        None if current.is_none() => {
            let text = format!("access: {label}, at a place that is not known");
            note(out, gutter, &text);
        }
        None => {}
    }
    let inside = race
        .buffer
        .as_ref()
        .map_or(String::new(), |_| format!(", {}", place(race)));
    let size = plural(race.size.into(), "byte");
    note(
        out,
        gutter,
        &format!("address: {:#x}{inside}, {size}", race.address),
    );
    if by_host.is_none() {
        note(out, gutter, &current_line(race, report));
    }
    note(out, gutter, &prior_line(&race.prior, report));
    write_site(
        out,
        race.prior.site.as_ref(),
        "the earlier access",
        gutter,
        sources,
        FRAME,
    );
    if let Some(flag) = &race.flag {
        write_flag(out, race.class, flag, gutter, sources);
    }
    note(out, gutter, &how_often(group, report));
    note(
        out,
        gutter,
        &format!("help: {}", findings::advice(race, report)),
    );
    out.push('\n');
}

/// The access that lacks its acquire or release order.
fn write_flag(out: &mut String, class: RaceClass, flag: &Flag, gutter: usize, sources: &Sources) {
    let access = &flag.access;
    let line = match &access.site {
        Some(site) if site.ptx_line > 0 => format!(", PTX line {}", site.ptx_line),
        _ => String::new(),
    };
    let what = format!(
        "flag: {}, {}{}{line}",
        findings::flag_place(flag),
        describe_access(access),
        by_whom(access),
    );
    note(out, gutter, &what);
    let label = if class == RaceClass::MissingAcquire {
        "the flag is read here, without acquire order"
    } else {
        "the flag is written here, without release order"
    };
    write_site(out, access.site.as_ref(), label, gutter, sources, FRAME);
}

/// A launch that never waits for the one before: no access, no address.
fn write_missing_wait(out: &mut String, report: &Report, group: &[&Race], sources: &Sources) {
    let race = group[0];
    let _ = writeln!(
        out,
        "{ERROR}error{ERROR:#}{BOLD}: {}: {}{BOLD:#}",
        class_title(race.class),
        findings::what(race),
    );
    let gutter = gutter_width(race);
    let site = race.current.site.as_ref();
    let label = findings::current_access(race);
    write_site(out, site, &label, gutter, sources, ERROR);
    note(out, gutter, &current_line(race, report));
    let before = launch_words(&race.prior, report);
    note(out, gutter, &format!("kernel before: {before}"));
    note(out, gutter, &how_often(group, report));
    let advice = findings::advice(race, report);
    note(out, gutter, &format!("help: {advice}"));
    out.push('\n');
}

/// Lines of the widest line number, so that all `|` of a finding stand in one column.
fn gutter_width(race: &Race) -> usize {
    let line = |s: &Side| s.site.as_ref().map_or(0, |s| s.line);
    let flag = race.flag.as_ref().map_or(0, |f| line(&f.access));
    let widest = line(&race.current).max(line(&race.prior)).max(flag);
    widest.to_string().len()
}

fn write_site(
    out: &mut String,
    site: Option<&Site>,
    label: &str,
    gutter: usize,
    sources: &Sources,
    style: Style,
) {
    let Some(site) = site else { return };
    let pad = " ".repeat(gutter);
    let column = site.column.map_or(String::new(), |c| format!(":{c}"));
    let _ = writeln!(
        out,
        "{pad}{FRAME}-->{FRAME:#} {}:{}{column}",
        clean(&site.file),
        site.line
    );
    match sources.line(&site.file, site.line) {
        Some(line) => {
            let (line, caret) = with_caret(&line, site.column);
            let _ = writeln!(out, "{pad} {FRAME}|{FRAME:#}");
            let _ = writeln!(out, "{FRAME}{:>gutter$} |{FRAME:#} {line}", site.line);
            match caret {
                Some((start, length)) => {
                    let (space, mark) = (" ".repeat(start), "^".repeat(length));
                    let _ = writeln!(
                        out,
                        "{pad} {FRAME}|{FRAME:#} {space}{style}{mark} {label}{style:#}"
                    );
                }
                None => {
                    let _ = writeln!(out, "{pad} {FRAME}|{FRAME:#} {style}{label}{style:#}");
                }
            }
            let _ = writeln!(out, "{pad} {FRAME}|{FRAME:#}");
        }
        None => note(
            out,
            gutter,
            &format!("access: {label} (the source file was not found)"),
        ),
    }
    for (file, line, column) in &site.inlined_at {
        note(
            out,
            gutter,
            &format!("inlined at {}:{line}:{column}", clean(file)),
        );
    }
    for line in [called_from(site), near(site)].into_iter().flatten() {
        note(out, gutter, &line);
    }
}

/// `called from a.cu:7:5 or a.cu:9:5`, of a library's function that was not inlined.
pub(super) fn called_from(site: &Site) -> Option<String> {
    Some(format!("called from {}", one_of(&site.called_from, "or")?))
}

/// `near a.rs:7:5 and a.rs:9:5`, of what was inlined from a library by who knows whom.
pub(super) fn near(site: &Site) -> Option<String> {
    let places = one_of(&site.near, "and")?;
    Some(format!(
        "near {places} (the compiler did not record the call)"
    ))
}

fn one_of(places: &[(String, u32, u32)], word: &str) -> Option<String> {
    let (last, others) = places.split_last()?;
    let place = |(file, line, column): &(String, u32, u32)| {
        let column = if *column > 0 {
            format!(":{column}")
        } else {
            String::new()
        };
        format!("{}:{line}{column}", clean(file))
    };
    let others: Vec<String> = others.iter().map(place).collect();
    Some(match others.is_empty() {
        true => place(last),
        false => format!("{} {word} {}", others.join(", "), place(last)),
    })
}

fn note(out: &mut String, gutter: usize, text: &str) {
    let pad = " ".repeat(gutter);
    let (title, rest) = text
        .split_once(": ")
        .filter(|(t, _)| !t.contains(' ') || *t == "earlier access")
        .unwrap_or(("", text));
    if title.is_empty() {
        let _ = writeln!(out, "{pad} {FRAME}={FRAME:#} {rest}");
    } else {
        let _ = writeln!(out, "{pad} {FRAME}={FRAME:#} {BOLD}{title}{BOLD:#}: {rest}");
    }
}

fn class_title(class: RaceClass) -> String {
    match class {
        RaceClass::Race => "data race".into(),
        RaceClass::MissingWait => "missing wait".into(),
        class => format!("data race ({})", class.word()),
    }
}

/// `` `data`+16 ``, or the address where no buffer is known.
pub(super) fn place(race: &Race) -> String {
    findings::place(race.buffer.as_deref(), race.offset, race.address)
}

/// ` by thread (0,0,0) of block (1,0,0)`
fn by_whom(side: &Side) -> String {
    match (side.thread, side.block) {
        (Some(t), Some(b)) => format!(" by thread {} of block {}", triple(t), triple(b)),
        (Some(t), None) => format!(" by thread {} of a block that is not known", triple(t)),
        (None, Some(b)) => format!(" by block {}", triple(b)),
        (None, None) => String::new(),
    }
}

fn current_line(race: &Race, report: &Report) -> String {
    let side = &race.current;
    let mut text = format!("kernel: {}", launch_words(side, report));
    if let Some(site) = &side.site {
        let kernel = side.kernel.as_deref().unwrap_or("");
        if site.function != kernel && !site.function.is_empty() {
            let _ = write!(text, ", in {}", clean(&demangle(&site.function)));
        }
        if site.ptx_line > 0 {
            let _ = write!(text, ", PTX line {}", site.ptx_line);
        }
    }
    text
}

/// `` `consumer`, launch 1 in stream s0 ``
fn launch_words(side: &Side, report: &Report) -> String {
    let launch = side
        .launch
        .and_then(|id| report.launches.iter().find(|l| l.id == id));
    let kernel = side.kernel.as_deref().or(launch.map(|l| l.kernel.as_str()));
    let mut text = kernel.map_or("not known".into(), |k| format!("`{}`", clean(&demangle(k))));
    if let Some(id) = side.launch {
        let _ = write!(text, ", launch {id}");
        if let Some(stream) = launch.and_then(|l| l.stream.as_deref()) {
            let _ = write!(text, " in stream {}", clean(stream));
        }
    }
    text
}

fn prior_line(side: &Side, report: &Report) -> String {
    let mut text = format!("earlier access: {}", describe_access(side));
    if let Some(what) = side.host_operation() {
        let _ = write!(text, " by the host's {}", clean(what));
        return text;
    }
    if side.kernel.is_some() || side.launch.is_some() {
        let _ = write!(text, " in {}", launch_words(side, report));
    } else {
        text.push_str(", its kernel is not known");
    }
    text.push_str(&by_whom(side));
    match &side.site {
        Some(site) if site.ptx_line > 0 => {
            let _ = write!(text, ", PTX line {}", site.ptx_line);
        }
        Some(site) if site.line > 0 => {}
        _ => text.push_str("; its line is not known"),
    }
    text
}

/// Whether the modules ran as they are. (Where a context died, the counters can't be read either.)
fn unchecked(report: &Report) -> bool {
    report.outcome == Outcome::Completed && report.stats.checked_accesses.is_none()
}

fn how_often(group: &[&Race], report: &Report) -> String {
    let count = group.iter().fold(0u64, |n, r| n.saturating_add(r.count));
    let schedules = group.iter().map(|r| r.schedules).max().unwrap_or(0);
    let mut text = format!("found {}", plural(count, "time"));
    if report.schedules > 1 {
        let runs = if report.device.simulated {
            "schedules"
        } else {
            "runs"
        };
        let _ = write!(text, ", in {schedules} of {} {runs}", report.schedules);
    }
    let current = ptx_lines(group.iter().map(|r| &r.current));
    if current.len() > 1 {
        let _ = write!(
            text,
            ", at {} instructions of this line (PTX lines {})",
            current.len(),
            current.join(", ")
        );
    }
    let prior = ptx_lines(group.iter().map(|r| &r.prior));
    if prior.len() > 1 {
        let _ = write!(
            text,
            ", against {} instructions of the earlier line (PTX lines {})",
            prior.len(),
            prior.join(", ")
        );
    }
    text
}

/// The different lines in the PTX, in the order given.
fn ptx_lines<'a>(sides: impl Iterator<Item = &'a Side>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for site in sides.filter_map(|s| s.site.as_ref()) {
        let line = site.ptx_line.to_string();
        if site.ptx_line > 0 && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn write_outcome(out: &mut String, report: &Report) {
    if report.outcome == Outcome::Completed {
        return;
    }
    let message = report.message.as_deref().unwrap_or("no more is known");
    let _ = writeln!(
        out,
        "{ERROR}error{ERROR:#}{BOLD}: {}{BOLD:#}",
        outcome_sentence(report.outcome)
    );
    for line in message.lines() {
        let _ = writeln!(out, "  {FRAME}={FRAME:#} {}", clean(line));
    }
    out.push('\n');
}

/// How the run ended, as a sentence.
pub fn outcome_sentence(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "the run completed",
        Outcome::Trap => "the run ended in a trap",
        Outcome::Fault => "the run ended in a memory fault",
        Outcome::Deadlock => "the run ended in a deadlock",
        Outcome::Budget => "the run used up its step budget or its time",
        _ => "the run ended in an error",
    }
}

fn write_past_ends(out: &mut String, report: &Report, sources: &Sources) {
    for past in &report.past_end {
        let sentence = clean(&findings::past_end(past));
        let _ = writeln!(out, "{WARNING}warning{WARNING:#}{BOLD}: {sentence}{BOLD:#}");
        let site = past.access.site.as_ref();
        let gutter = site.map_or(0, |s| s.line).to_string().len();
        write_site(out, site, "past the end", gutter, sources, WARNING);
        out.push('\n');
    }
}

fn write_hidden(out: &mut String, report: &Report) {
    for sentence in findings::hidden(report) {
        let _ = writeln!(out, "{FRAME}note{FRAME:#}: {sentence}");
    }
}

fn write_unsupported(out: &mut String, report: &Report) {
    let (partly, not): (Vec<_>, Vec<_>) = report.unsupported.iter().partition(|u| u.partly);
    write_listed(out, &not, "not checked");
    write_listed(out, &partly, "only approximated");
}

fn write_listed(out: &mut String, all: &[&UnsupportedInstruction], how: &str) {
    const SHOWN: usize = 20;
    if all.is_empty() {
        return;
    }
    let verb = if all.len() == 1 { "is" } else { "are" };
    let what = plural(all.len() as u64, "instruction");
    let _ = writeln!(
        out,
        "{WARNING}warning{WARNING:#}{BOLD}: {what} {verb} {how}{BOLD:#}"
    );
    for item in all.iter().take(SHOWN) {
        let text: String = clean(item.text.trim()).chars().take(100).collect();
        let _ = writeln!(
            out,
            "  {FRAME}-->{FRAME:#} {}:{}: {text}",
            clean(&item.module),
            item.ptx_line
        );
        let _ = writeln!(out, "      {}", clean(&item.why));
    }
    if all.len() > SHOWN {
        let _ = writeln!(
            out,
            "  and {} more (all of them with --format json)",
            all.len() - SHOWN
        );
    }
    out.push('\n');
}

fn write_stats(out: &mut String, report: &Report) {
    let stats = &report.stats;
    let sites = plural(stats.instrumented_sites, "instrumented place");
    match (stats.checked_accesses, stats.unchecked_accesses) {
        (Some(checked), unchecked) => {
            let _ = write!(out, "{} checked at {sites}", plural_access(checked));
            if let Some(n) = unchecked.filter(|n| *n > 0) {
                let _ = write!(
                    out,
                    "; {} to memory without shadow not checked",
                    plural_access(n)
                );
            }
            out.push('\n');
        }
        (None, _) if unchecked(report) => {}
        (None, _) => {
            let _ = writeln!(
                out,
                "{sites}; how many accesses were checked could not be read"
            );
        }
    }
    if let Some(n) = stats.dropped_records.filter(|n| *n > 0) {
        let _ = writeln!(
            out,
            "{WARNING}warning{WARNING:#}: {} had no room for a record: more places race than are listed",
            plural(n, "finding")
        );
    }
    if let Some(misses) = &stats.misses {
        write_misses(out, misses);
    }
}

fn plural_access(n: u64) -> String {
    if n == 1 {
        "1 access".into()
    } else {
        format!("{n} accesses")
    }
}

fn write_misses(out: &mut String, m: &Misses) {
    let classes = [
        (
            "shared-slot",
            m.shared_slot,
            "blocks that shared a logical thread with another",
        ),
        (
            "slot-reuse",
            m.slot_reuse,
            "imports that also covered earlier blocks of the slot",
        ),
        (
            "ring-wrap",
            m.ring_wrap,
            "acquires of a release whose snapshot was overwritten",
        ),
        (
            "saturated",
            m.saturated,
            "checks against an epoch past the format's end",
        ),
        (
            "early-copy",
            m.early_copy,
            "bulk copies that were taken to be carried out when issued, because too many were under way",
        ),
        (
            "unknown-map",
            m.unknown_map,
            "bulk copies through a tensor map that gsan did not see made: not checked",
        ),
        (
            "unknown-multicast",
            m.unknown_multicast,
            "multimem accesses to multicast memory that gsan did not see bound: not checked",
        ),
    ];
    if classes.iter().all(|(_, n, _)| *n == 0) {
        return;
    }
    let _ = writeln!(
        out,
        "{FRAME}note{FRAME:#}: approximations that may have hidden a race:"
    );
    for (name, n, what) in classes.into_iter().filter(|(_, n, _)| *n > 0) {
        let _ = writeln!(out, "  {name}: {n} {what}");
    }
}

/// The last line: what was found, and where.
pub fn write_summary(out: &mut String, report: &Report) {
    let kind = if report.device.simulated {
        "simulated"
    } else {
        "GPU"
    };
    let mut place = format!(
        "on {} ({kind}, {} SMs)",
        clean(&report.device.name),
        report.device.sms
    );
    match (report.seed, report.schedules) {
        (Some(first), n) if n > 1 => {
            let _ = write!(
                place,
                ", {n} schedules, seeds {first} to {}",
                first.wrapping_add(u64::from(n) - 1)
            );
        }
        (Some(seed), _) => {
            let _ = write!(place, ", seed {seed}");
        }
        (None, n) if n > 1 => {
            let _ = write!(place, ", {n} runs");
        }
        (None, _) => {}
    }
    let launches = plural(report.launches.len() as u64, "launch").replace("launchs", "launches");
    let (style, found) = match report.races.len() {
        0 if unchecked(report) => (WARNING, "not checked for races".to_string()),
        0 if report.outcome == Outcome::Completed => (GOOD, "no race found".to_string()),
        0 => (WARNING, "no race found until then".to_string()),
        n => {
            let places = places(report);
            let at = if places < n {
                format!(" at {}", plural(places as u64, "place"))
            } else {
                String::new()
            };
            (ERROR, format!("{} found{at}", plural(n as u64, "race")))
        }
    };
    let _ = writeln!(out, "{style}{found}{style:#} in {launches} {place}");
}

/// Text from outside, without what would disturb a terminal.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
