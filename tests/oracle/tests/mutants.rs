//! A detector without one of its edges must not pass.

use gsan_device::mutants::Edge;
use gsan_oracle::campaign::{Bench, Campaign, Case, Constructs, program_of, schedule_of};
use gsan_oracle::removed::{self, Part};
use gsan_oracle::setup::Format;

/// The reference cell tells no warps apart.
const OF_WARPS: [Edge; 6] = [
    Edge::BarrierArrive,
    Edge::BarrierLeave,
    Edge::OwnBlock,
    Edge::OwnPart,
    Edge::PartialMerge,
    Edge::BlockSync,
];

/// Those that only the wider kind of programs needs.
const OF_WIDE_PROGRAMS: [Edge; 11] = [
    Edge::GridWait,
    Edge::Handover,
    Edge::EarlyTrigger,
    Edge::ClusterRelease,
    Edge::ClusterAcquire,
    Edge::CopyWait,
    Edge::CopyGroups,
    Edge::CopyExit,
    Edge::CopyBarrier,
    Edge::CopyAhead,
    Edge::CopyLanded,
];

/// The first program that notices the missing edge, and that the whole detector passes.
fn killer(edge: Edge, format: Format, constructs: Constructs) -> Option<Case> {
    if format == Format::Reference && OF_WARPS.contains(&edge) {
        return None;
    }
    let cases = campaign(Some(edge), format, constructs).run(&|_| {}).cases;
    first_that_passes_otherwise(cases, format)
}

fn campaign(without: Option<Edge>, format: Format, constructs: Constructs) -> Campaign {
    Campaign {
        seed: 5_000_000,
        programs: 20_000,
        jobs: 1,
        without,
        max_failures: 3,
        format,
        only: None,
        sc_order: None,
        constructs,
    }
}

fn first_that_passes_otherwise(cases: Vec<Case>, format: Format) -> Option<Case> {
    let whole = Bench::new(format);
    cases.into_iter().find(|case| {
        let program = program_of(case.seed, case.kind);
        let outcome = whole.check(&program, case.kind, schedule_of(case.seed));
        outcome.failures.is_empty()
    })
}

#[test]
fn every_removed_edge_is_noticed() {
    let mut alive = Vec::new();
    println!("| edge | reference cell | wide cell |\n|---|---|---|");
    for edge in Edge::ALL {
        let kind = if OF_WIDE_PROGRAMS.contains(&edge) {
            Constructs::Wide
        } else {
            Constructs::Classic
        };
        let by = [Format::Reference, Format::Wide].map(|f| killer(edge, f, kind));
        let cell = |case: &Option<Case>| match case {
            None => "—".to_string(),
            Some(c) if c.false_alarm => format!("false alarm, program {}", c.seed - 5_000_000),
            Some(c) => format!("unexplained miss, program {}", c.seed - 5_000_000),
        };
        println!("| {edge:?} | {} | {} |", cell(&by[0]), cell(&by[1]));
        if by.iter().all(Option::is_none) {
            alive.push(edge);
        }
    }
    // What a slot's next tenant may know of the last one counts as the class `slot`; gsan-device's own test
    // `a_slots_next_tenant_does_not_inherit_the_last_ones_epochs` holds that edge.
    // An acquiring access that is not checked again is judged as if it had run at its hook: tests/atomics.rs holds that one.
    // No program has multicast memory: tests/multicast.rs holds that one.
    let by_unit_tests = [Edge::AcquiringAccess, Edge::StartEpoch, Edge::Multicast];
    alive.retain(|e| !by_unit_tests.contains(e));
    assert_eq!(alive, [], "nobody noticed that these edges were missing");
}

/// What the host and instrumented code do for the detector.
#[test]
fn every_removed_part_of_the_interpreter_is_noticed() {
    let mut alive = Vec::new();
    for part in Part::ALL {
        removed::remove(Some(part));
        // A campaign's own thread would not know of it.
        let bench = Bench::new(Format::Wide);
        let seeds = 5_000_000..5_020_000;
        let mut failing = seeds.filter_map(|seed| {
            let kind = gsan_oracle::campaign::Kind::of(seed, Constructs::Wide);
            let program = program_of(seed, kind);
            removed::remove(Some(part));
            let outcome = bench.check(&program, kind, schedule_of(seed));
            removed::remove(None);
            let fails = !outcome.failures.is_empty();
            (fails
                && bench
                    .check(&program, kind, schedule_of(seed))
                    .failures
                    .is_empty())
            .then(|| (seed - 5_000_000, outcome.failures[0].false_alarm))
        });
        match failing.next() {
            Some((program, true)) => println!("{part:?}: false alarm, program {program}"),
            Some((program, false)) => println!("{part:?}: unexplained miss, program {program}"),
            None => alive.push(part),
        }
    }
    removed::remove(None);
    assert_eq!(alive, [], "nobody noticed that these were missing");
}
