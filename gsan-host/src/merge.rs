//! Merging the reports of several runs of one program.
//!
//! Runs differ in addresses, blocks and threads, so a finding is the same when kind, class, buffer and both places in
//! the source are the same; the first one's details stay.

use crate::report::{Misses, Outcome, PastEnd, Race, RaceClass, RaceKind, Report, Side, Site};

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
    add_races(&mut report.races, other.races);
    add_races(&mut report.hidden, other.hidden);
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
    // The runs are of the same modules.
    a.instrumentation = a.instrumentation.or(b.instrumentation);
    a.checked_accesses = add(a.checked_accesses, b.checked_accesses);
    a.unchecked_accesses = add(a.unchecked_accesses, b.unchecked_accesses);
    a.dropped_records = add(a.dropped_records, b.dropped_records);
    a.misses = match (a.misses, b.misses) {
        (Some(x), Some(y)) => Some(Misses {
            shared_slot: x.shared_slot.saturating_add(y.shared_slot),
            slot_reuse: x.slot_reuse.saturating_add(y.slot_reuse),
            ring_wrap: x.ring_wrap.saturating_add(y.ring_wrap),
            saturated: x.saturated.saturating_add(y.saturated),
            early_copy: x.early_copy.saturating_add(y.early_copy),
            unknown_map: x.unknown_map.saturating_add(y.unknown_map),
            unknown_multicast: x.unknown_multicast.saturating_add(y.unknown_multicast),
        }),
        (x, y) => x.or(y),
    };
    for past in other.past_end {
        let same =
            |p: &&mut PastEnd| p.buffer == past.buffer && place(&p.access) == place(&past.access);
        match report.past_end.iter_mut().find(same) {
            Some(known) => {
                known.words = known.words.max(past.words);
                known.past = known.past.min(past.past);
            }
            None => report.past_end.push(past),
        }
    }
    for unsupported in other.unsupported {
        if !report.unsupported.contains(&unsupported) {
            report.unsupported.push(unsupported);
        }
    }
}

fn add_races(races: &mut Vec<Race>, more: Vec<Race>) {
    for race in fold(more) {
        match races.iter_mut().find(|r| identity(r) == identity(&race)) {
            Some(known) => {
                known.count = known.count.saturating_add(race.count);
                known.schedules = known.schedules.saturating_add(race.schedules);
            }
            None => races.push(race),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Access, DeviceInfo, LaunchInfo, Order, Stats, UnsupportedInstruction};

    fn side(line: Option<u32>) -> Side {
        Side {
            launch: Some(0),
            kernel: Some("k".into()),
            block: None,
            thread: None,
            access: Some(Access::Load),
            order: Some(Order::Weak),
            scope: None,
            site: line.map(|line| Site {
                file: "a.cu".into(),
                line,
                column: None,
                ptx_line: line,
                function: "k".into(),
                inlined_at: vec![],
                called_from: Vec::new(),
                near: Vec::new(),
            }),
        }
    }

    fn race(line: u32, offset: u64) -> Race {
        Race {
            kind: RaceKind::Raw,
            class: RaceClass::Race,
            count: 3,
            schedules: 1,
            address: 4096 + offset,
            buffer: Some("data".into()),
            offset: Some(offset),
            size: 4,
            current: side(Some(line)),
            prior: side(None),
            flag: None,
        }
    }

    fn report(races: Vec<Race>) -> Report {
        Report {
            outcome: Outcome::Completed,
            message: None,
            seed: Some(1),
            schedules: 1,
            device: DeviceInfo {
                simulated: true,
                name: "sim".into(),
                sms: 4,
            },
            launches: vec![],
            races,
            hidden: vec![],
            past_end: vec![],
            stats: Stats {
                checked_accesses: Some(10),
                misses: Some(Misses::default()),
                ..Stats::default()
            },
            unsupported: vec![],
        }
    }

    #[test]
    fn the_same_place_is_one_finding_wherever_in_the_buffer() {
        let mut merged = report(vec![race(1, 0)]);
        merged.merge(report(vec![race(1, 8), race(2, 0)]));
        merged.merge(report(vec![race(2, 4)]));
        let found: Vec<_> = merged
            .races
            .iter()
            .map(|r| (r.offset, r.count, r.schedules))
            .collect();
        assert_eq!(found, [(Some(0), 6, 2), (Some(0), 6, 2)]);
        assert_eq!(
            (merged.schedules, merged.seed, merged.stats.checked_accesses),
            (3, Some(1), Some(30))
        );
    }

    #[test]
    fn two_findings_of_one_run_count_as_one_schedule() {
        let mut merged = report(vec![race(1, 0)]);
        merged.merge(report(vec![race(1, 4), race(1, 8)]));
        assert_eq!((merged.races[0].count, merged.races[0].schedules), (9, 2));
    }

    #[test]
    fn whatever_tells_findings_apart_keeps_them_apart() {
        let base = race(1, 0);
        let others = [
            Race {
                kind: RaceKind::War,
                ..base.clone()
            },
            Race {
                class: RaceClass::MissingAcquire,
                ..base.clone()
            },
            Race {
                buffer: None,
                ..base.clone()
            },
            Race {
                current: side(Some(2)),
                ..base.clone()
            },
            Race {
                prior: side(Some(2)),
                ..base.clone()
            },
        ];
        for other in others {
            let mut merged = report(vec![base.clone()]);
            merged.merge(report(vec![other]));
            assert_eq!(merged.races.len(), 2);
        }
    }

    #[test]
    fn hidden_findings_are_merged_like_others() {
        let other_class = Race {
            class: RaceClass::StaleNc,
            ..race(1, 0)
        };
        let run = || {
            let mut run = report(vec![race(1, 0), other_class.clone(), race(2, 0)]);
            run.hide(&[RaceClass::StaleNc, RaceClass::MixedWidth]);
            run
        };
        let mut merged = run();
        merged.merge(run());
        assert_eq!(merged.races.len(), 2);
        let hidden: Vec<_> = merged.hidden.iter().map(|r| (r.class, r.count)).collect();
        assert_eq!(hidden, [(RaceClass::StaleNc, 6)]);
        assert_eq!(merged.hidden[0].schedules, 2);
        merged.hide(&[]);
        assert_eq!((merged.races.len(), merged.hidden.len()), (2, 1));
    }

    #[test]
    fn an_access_past_the_end_is_one_in_all_runs() {
        let run = |line, past, words| {
            let mut run = report(vec![]);
            run.past_end.push(PastEnd {
                buffer: "data".into(),
                past,
                words,
                access: side(Some(line)),
            });
            run
        };
        let mut merged = run(1, 8, 1);
        merged.merge(run(1, 4, 3));
        merged.merge(run(2, 0, 1));
        let found: Vec<_> = merged.past_end.iter().map(|p| (p.past, p.words)).collect();
        assert_eq!(found, [(4, 3), (0, 1)]);
    }

    #[test]
    fn the_worst_end_wins_and_nothing_is_lost() {
        let launch = LaunchInfo {
            id: 0,
            kernel: "k".into(),
            module: "m".into(),
            grid: [1; 3],
            block: [1; 3],
            stream: None,
        };
        let odd = UnsupportedInstruction {
            module: "m".into(),
            ptx_line: 3,
            text: "x".into(),
            why: "y".into(),
            partly: false,
        };
        let mut trapped = report(vec![race(1, 0)]);
        trapped.outcome = Outcome::Trap;
        trapped.message = Some("trap in k".into());
        trapped.launches = vec![launch];
        trapped.unsupported = vec![odd];
        trapped.stats = Stats::default();
        let mut merged = report(vec![]);
        merged.merge(trapped.clone());
        merged.merge(report(vec![]));
        merged.merge(trapped);
        assert_eq!(
            (merged.outcome, merged.message.as_deref()),
            (Outcome::Trap, Some("trap in k"))
        );
        assert_eq!(
            (
                merged.launches.len(),
                merged.unsupported.len(),
                merged.races[0].schedules
            ),
            (1, 1, 2)
        );
        assert_eq!(merged.stats.checked_accesses, Some(20));
    }
}
