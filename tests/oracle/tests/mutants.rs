//! A detector without one of its edges must not pass.

use gsan_device::mutants::Edge;
use gsan_oracle::campaign::{Bench, Campaign, Case, Constructs, program_of, schedule_of};
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
const OF_WIDE_PROGRAMS: [Edge; 8] = [
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
    let campaign = Campaign {
        seed: 5_000_000,
        programs: 20_000,
        jobs: 1,
        without: Some(edge),
        max_failures: 3,
        format,
        only: None,
        sc_order: None,
        constructs,
    };
    let whole = Bench::new(format);
    campaign.run(&|_| {}).cases.into_iter().find(|case| {
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
    // Its programs have no dependent launches: gsan-device's tests/cluster.rs holds that edge.
    // An acquiring access that is not checked again is judged as if it had run at its hook: tests/atomics.rs holds that one.
    let by_unit_tests = [Edge::AcquiringAccess, Edge::StartEpoch, Edge::GridWait];
    alive.retain(|e| !by_unit_tests.contains(e));
    assert_eq!(alive, [], "nobody noticed that these edges were missing");
}
