//! Merging the reports of several runs of one program.
//!
//! Runs differ in addresses, blocks and threads, so a finding is the same when kind, class, buffer and both places in
//! the source are the same; the first one's details stay.

use crate::report::{Misses, Outcome, Race, RaceClass, RaceKind, Report, Side, Site};

/// What makes two findings of different runs the same.
#[derive(PartialEq)]
struct Identity<'a> {
    kind: RaceKind,
    class: RaceClass,
    buffer: Option<&'a str>,
    current: Place<'a>,
    prior: Place<'a>,
}

/// Where one side is: its site, or as much as is known of it.
#[derive(PartialEq)]
struct Place<'a> {
    site: Option<&'a Site>,
    kernel: Option<&'a str>,
}

fn place(side: &Side) -> Place<'_> {
    Place {
        site: side.site.as_ref(),
        kernel: side.kernel.as_deref(),
    }
}

fn identity(race: &Race) -> Identity<'_> {
    Identity {
        kind: race.kind,
        class: race.class,
        buffer: race.buffer.as_deref(),
        current: place(&race.current),
        prior: place(&race.prior),
    }
}

/// Folds findings of one report that have the same identity, as happens where the device tells more apart than a reader
/// wants to see; `schedules` stays the larger one.
pub(crate) fn fold(races: Vec<Race>) -> Vec<Race> {
    let mut folded: Vec<Race> = Vec::new();
    for race in races {
        match folded.iter_mut().find(|r| identity(r) == identity(&race)) {
            Some(known) => known.count = known.count.saturating_add(race.count),
            None => folded.push(race),
        }
    }
    folded
}

/// Adds `other` to `report`.
pub(crate) fn merge(report: &mut Report, other: Report) {
    for race in fold(other.races) {
        match report
            .races
            .iter_mut()
            .find(|r| identity(r) == identity(&race))
        {
            Some(known) => {
                known.count = known.count.saturating_add(race.count);
                known.schedules = known.schedules.saturating_add(race.schedules);
            }
            None => report.races.push(race),
        }
    }
    if severity(other.outcome) > severity(report.outcome) {
        report.outcome = other.outcome;
        report.message = other.message;
    }
    report.schedules = report.schedules.saturating_add(other.schedules);
    if other.launches.len() > report.launches.len() {
        // A run that ended early knows fewer launches; ids mean the same in both.
        report.launches = other.launches;
    }
    let (a, b) = (&mut report.stats, other.stats);
    a.instrumented_sites = a.instrumented_sites.max(b.instrumented_sites);
    a.checked_accesses = add(a.checked_accesses, b.checked_accesses);
    a.unchecked_accesses = add(a.unchecked_accesses, b.unchecked_accesses);
    a.dropped_records = add(a.dropped_records, b.dropped_records);
    a.misses = match (a.misses, b.misses) {
        (Some(x), Some(y)) => Some(Misses {
            shared_slot: x.shared_slot.saturating_add(y.shared_slot),
            slot_reuse: x.slot_reuse.saturating_add(y.slot_reuse),
            ring_wrap: x.ring_wrap.saturating_add(y.ring_wrap),
            saturated: x.saturated.saturating_add(y.saturated),
        }),
        (x, y) => x.or(y),
    };
    for unsupported in other.unsupported {
        if !report.unsupported.contains(&unsupported) {
            report.unsupported.push(unsupported);
        }
    }
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(x), Some(y)) => Some(x.saturating_add(y)),
        (x, y) => x.or(y),
    }
}

/// How bad an outcome is: the worst of several runs is the merged one's.
fn severity(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Completed => 0,
        Outcome::Budget => 1,
        Outcome::Deadlock => 2,
        Outcome::Trap => 3,
        Outcome::Fault => 4,
        Outcome::Error => 5,
    }
}
