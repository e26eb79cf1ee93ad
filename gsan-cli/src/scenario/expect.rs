//! Compares what came out with what was expected.
//!
//! * Every reported race must match some `[[expect.race]]`, in every schedule.
//! * Every entry must be matched in at least `min_schedules` schedules (never more than were run; 0: it need not show).
//! * `completed`: every schedule completes. Another outcome: each schedule ends in it or completes, and at least one ends
//!   in it, since a schedule may decide whether a kernel traps.
//! * On a GPU a deadlock cannot be told from an endless loop, for both are ended by the watchdog: an expected `deadlock` is
//!   met by `budget` there.
//! * Values hold in every schedule that completes, or whose memory can still be read.

use super::model::{Expect, ExpectedRace, Scenario};
use crate::element::Number;
use crate::names::Named;
use crate::render::demangle::demangle;
use gsan_host::report::{Outcome, Race, Report};
use std::fmt::Write;

/// The first elements of an expected buffer after a run, or why they could not be read.
pub type Values = Result<Vec<Number>, String>;

/// Collects differences over the schedules. It owns what it compares with: the watchdog's thread judges too.
pub struct Judge {
    scenario: Scenario,
    expect: Expect,
    races_count: bool,
    schedules: u32,
    /// Per entry: in how many schedules it was matched.
    matched: Vec<u32>,
    /// Races that match no entry: what, the first seed, in how many schedules.
    unexpected: Vec<(String, u64, u32)>,
    /// Ends that were not expected: what, the first seed, in how many schedules.
    endings: Vec<(String, u64, u32)>,
    ended_as_expected: u32,
    messages: Vec<String>,
    /// Wrong values, likewise.
    values: Vec<(String, u64, u32)>,
}

impl Judge {
    /// Nothing has run yet. Without `races_count` (an un-instrumented run finds none) races are not compared.
    pub fn new(scenario: &Scenario, expect: &Expect, races_count: bool) -> Judge {
        Judge {
            scenario: scenario.clone(),
            expect: expect.clone(),
            races_count,
            schedules: 0,
            matched: vec![0; expect.races.len()],
            unexpected: Vec::new(),
            endings: Vec::new(),
            ended_as_expected: 0,
            messages: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a schedule; `values` has one entry per `[[expect.value]]`.
    pub fn add(&mut self, seed: u64, report: &Report, values: &[Values]) {
        self.schedules += 1;
        self.add_outcome(seed, report);
        if self.races_count {
            self.add_races(seed, report);
        }
        let dead = report.outcome != Outcome::Completed;
        for (expected, got) in self.expect.values.iter().zip(values) {
            if dead && got.is_err() {
                continue;
            }
            if let Some(difference) = value_difference(&self.scenario, expected, got) {
                note(&mut self.values, difference, seed);
            }
        }
    }

    fn add_outcome(&mut self, seed: u64, report: &Report) {
        let message = report.message.clone().unwrap_or_default();
        let hangs = self.expect.outcome == Outcome::Deadlock
            && report.outcome == Outcome::Budget
            && !report.device.simulated;
        if report.outcome == self.expect.outcome || hangs {
            self.ended_as_expected += 1;
            self.messages.push(message);
        } else if report.outcome != Outcome::Completed {
            let text = format!("it ended with outcome {}: {message}", report.outcome.word());
            note(&mut self.endings, text, seed);
        }
    }

    fn add_races(&mut self, seed: u64, report: &Report) {
        let mut matched = vec![false; self.expect.races.len()];
        for race in &report.races {
            let mut any = false;
            for (entry, hit) in self.expect.races.iter().zip(&mut matched) {
                if matches(entry, race) {
                    *hit = true;
                    any = true;
                }
            }
            if !any {
                note(&mut self.unexpected, describe_race(race), seed);
            }
        }
        for (count, hit) in self.matched.iter_mut().zip(matched) {
            *count += u32::from(hit);
        }
    }

    /// One sentence per difference, with its place in the scenario; empty if everything holds.
    pub fn differences(&self) -> Vec<String> {
        let file = self.scenario.file.display();
        let mut all = Vec::new();
        for (text, seed, count) in &self.endings {
            let wanted = self.expect.outcome.word();
            all.push(format!(
                "{file}: outcome {wanted} was expected, but {text}{}",
                self.when(*seed, *count)
            ));
        }
        if self.ended_as_expected == 0 && self.endings.is_empty() {
            let wanted = self.expect.outcome.word();
            all.push(format!(
                "{file}: outcome {wanted} was expected, but {} completed",
                self.every_run()
            ));
        }
        if let Some(part) = &self.expect.message
            && self.ended_as_expected > 0
            && !self.messages.iter().any(|m| m.contains(part.as_str()))
        {
            let got = self.messages.first().map_or("", String::as_str);
            all.push(format!(
                "{file}: the message was expected to contain `{part}`; it is `{got}`"
            ));
        }
        for (race, seed, count) in &self.unexpected {
            all.push(format!(
                "{file}: not expected: {race}{}",
                self.when(*seed, *count)
            ));
        }
        if self.races_count {
            for (entry, found) in self.expect.races.iter().zip(&self.matched) {
                let needed = entry.min_schedules.min(self.schedules);
                if *found < needed {
                    all.push(format!(
                        "{file}:{}: expected {} in at least {needed} of {} schedules; found in {found}",
                        entry.line,
                        describe_entry(entry),
                        self.schedules
                    ));
                }
            }
        }
        for (text, seed, count) in &self.values {
            all.push(format!("{text}{}", self.when(*seed, *count)));
        }
        all
    }

    fn every_run(&self) -> String {
        if self.schedules == 1 {
            "it".into()
        } else {
            format!("all {} schedules", self.schedules)
        }
    }

    fn when(&self, seed: u64, count: u32) -> String {
        match (self.schedules, count) {
            (1, _) => format!(" (seed {seed})"),
            (n, 1) => format!(" (seed {seed}, one of {n} schedules)"),
            (n, count) => format!(" (first with seed {seed}, in {count} of {n} schedules)"),
        }
    }
}

/// Adds a difference, or counts it if it was there before. Many schedules must not fill the screen.
fn note(list: &mut Vec<(String, u64, u32)>, text: String, seed: u64) {
    const KEPT: usize = 50;
    if let Some((_, _, count)) = list.iter_mut().find(|(t, ..)| *t == text) {
        *count += 1;
    } else if list.len() < KEPT {
        list.push((text, seed, 1));
    }
}

/// Whether a race is one that the entry allows.
pub fn matches(entry: &ExpectedRace, race: &Race) -> bool {
    fn allows<T: PartialEq>(wanted: &Option<T>, got: Option<&T>) -> bool {
        wanted.as_ref().is_none_or(|w| got == Some(w))
    }
    let current_line = race.current.site.as_ref().map(|s| s.line);
    let kernel = race.current.kernel.as_deref();
    entry.kinds.as_ref().is_none_or(|k| k.contains(&race.kind))
        && entry.classes.as_ref().is_none_or(|c| c.contains(&race.class))
        && allows(&entry.buffer, race.buffer.as_ref())
        && allows(&entry.offset, race.offset.as_ref())
        && entry.kernel.as_ref().is_none_or(|w| kernel.is_some_and(|k| k == w || demangle(k) == *w))
        && entry.source_lines.as_ref().is_none_or(|l| current_line.is_some_and(|n| l.contains(&n)))
        // Only where the cell format keeps it.
        && race.prior.site.as_ref().is_none_or(|s| allows(&entry.prior_line, Some(&s.line)))
}

fn describe_entry(entry: &ExpectedRace) -> String {
    let mut text = String::from("a");
    let alternatives = |words: Vec<&str>| words.join(" or ");
    if let Some(kinds) = &entry.kinds {
        let _ = write!(
            text,
            " {}",
            alternatives(kinds.iter().map(|k| k.word()).collect())
        );
    }
    text.push_str(" race");
    if let Some(classes) = &entry.classes {
        let _ = write!(
            text,
            " of class {}",
            alternatives(classes.iter().map(|c| c.word()).collect())
        );
    }
    if let Some(buffer) = &entry.buffer {
        let _ = write!(text, " on `{buffer}`");
    }
    if let Some(offset) = entry.offset {
        let _ = write!(text, " at offset {offset}");
    }
    if let Some(kernel) = &entry.kernel {
        let _ = write!(text, " in kernel {kernel}");
    }
    if let Some(lines) = &entry.source_lines {
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        let _ = write!(text, " at line {}", lines.join(" or "));
    }
    if let Some(line) = entry.prior_line {
        let _ = write!(text, " (earlier access at line {line})");
    }
    text
}

/// Addresses and threads differ between schedules: they are left out, so that equal findings are told once.
fn describe_race(race: &Race) -> String {
    let mut text = format!("a {} race of class {}", race.kind.word(), race.class.word());
    match (&race.buffer, race.offset) {
        (Some(buffer), Some(offset)) => {
            let _ = write!(text, " on `{buffer}`+{offset}");
        }
        (Some(buffer), None) => {
            let _ = write!(text, " on `{buffer}`");
        }
        _ => text.push_str(" in no known buffer"),
    }
    if let Some(kernel) = &race.current.kernel {
        let _ = write!(text, " in kernel {kernel}");
    }
    if let Some(site) = &race.current.site {
        let _ = write!(text, " at {}:{}", site.file, site.line);
    }
    text
}

fn value_difference(
    scenario: &Scenario,
    expected: &super::model::ExpectedValue,
    got: &Values,
) -> Option<String> {
    let buffer = &scenario.buffers[expected.buffer];
    let place = format!("{}:{}", scenario.file.display(), expected.line);
    match got {
        Err(why) => Some(format!(
            "{place}: `{}` could not be compared: {why}",
            buffer.name
        )),
        Ok(values) => {
            let wrong = expected
                .values
                .iter()
                .zip(values)
                .filter(|(e, g)| e != g)
                .count();
            let at = expected
                .values
                .iter()
                .zip(values)
                .position(|(e, g)| e != g)?;
            let more = if wrong > 1 {
                format!(" (and {} more elements differ)", wrong - 1)
            } else {
                String::new()
            };
            Some(format!(
                "{place}: `{}`[{at}] is {}, expected {}{more}",
                buffer.name,
                buffer.ty.show(values[at]),
                buffer.ty.show(expected.values[at]),
            ))
        }
    }
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
