//! The fixed set: the same programs on every run.

use gsan_oracle::campaign::{Campaign, Constructs, Summary, minimise};
use gsan_oracle::compare::{Class, Reference};
use gsan_oracle::interpreter;
use gsan_oracle::program::Program;
use gsan_oracle::ptx::campaign::program;
use gsan_oracle::setup::Format;
use gsan_oracle::trace::Item;

fn run(format: Format, constructs: Constructs, seed: u64, programs: u64) -> Summary {
    Campaign {
        seed,
        programs,
        jobs: 1,
        without: None,
        max_failures: 3,
        format,
        only: None,
        sc_order: None,
        constructs,
    }
    .run(&|_| {})
}

/// Fails with the first failing program, made small.
#[track_caller]
fn assert_clean(summary: &Summary, format: Format) {
    if let Some(case) = summary.cases.first() {
        let (program, schedule, failures) = minimise(case, format, None);
        panic!(
            "seed {}, schedule {schedule}:\n{program}{failures:#?}",
            case.seed
        );
    }
}

/// Runs 5,000 programs.
#[track_caller]
fn agrees(format: Format, constructs: Constructs) -> Summary {
    let summary = run(format, constructs, 1_000_000, 5_000);
    assert_clean(&summary, format);
    assert_eq!(summary.programs, 5_000);
    summary
}

#[track_caller]
fn assert_some_race_and_most_are_found(summary: &Summary) {
    let racy = summary.racy as f64 / summary.programs as f64;
    assert!((0.3..0.8).contains(&racy), "{racy} of the programs race");
    assert!(summary.racy_found as f64 > 0.75 * summary.racy as f64);
}

#[track_caller]
fn assert_occur(summary: &Summary, classes: &[Class]) {
    for class in classes {
        assert!(
            summary.races.contains_key(class),
            "{class:?} did not occur:\n{summary}"
        );
    }
}

#[test]
fn the_reference_cell_agrees_with_the_oracle() {
    agrees(Format::Reference, Constructs::Classic);
}

#[test]
fn the_wide_cell_agrees_with_the_oracle() {
    agrees(Format::Wide, Constructs::Classic);
}

#[test]
fn the_reference_cell_agrees_with_the_oracle_on_copies_clusters_and_graphs() {
    agrees(Format::Reference, Constructs::Wide);
}

#[test]
fn the_wide_cell_agrees_with_the_oracle_on_copies_clusters_and_graphs() {
    let summary = agrees(Format::Wide, Constructs::Wide);
    assert_some_race_and_most_are_found(&summary);
    let classes = [
        Class::ClusterScope,
        Class::ClusterPlace,
        Class::CopyEnds,
        Class::SmallCopies,
    ];
    assert_occur(&summary, &classes);
}

#[test]
fn racy_and_race_free_programs_are_both_frequent_and_most_racy_ones_are_found() {
    let summary = run(Format::Wide, Constructs::Classic, 2_000_000, 2_000);
    assert_some_race_and_most_are_found(&summary);
}

#[test]
fn the_classes_of_misses_occur() {
    let summary = run(Format::Reference, Constructs::Classic, 3_000_000, 4_000);
    let classes = [
        Class::ClusterScope,
        Class::SameBlock,
        Class::BlockIdentity,
        Class::MixedWidth,
        Class::ScopeChain,
        Class::KeptRelease,
        Class::FenceEpoch,
        Class::Observed,
        Class::NoShadow,
        Class::LastWrite,
        Class::LastRead,
        Class::Window,
        Class::Slot,
        Class::Saturated,
    ];
    assert_occur(&summary, &classes);
}

/// Of a 64-bit atomic's two conflicts the one with a swap is kept, which failed and offered its release all the same.
#[test]
fn the_conflict_that_is_kept_may_be_ordered_by_an_approximation() {
    let summary = run(Format::Wide, Constructs::Classic, 61_021_959, 1);
    assert_clean(&summary, Format::Wide);
    assert_occur(&summary, &[Class::OneDeferred]);
}

/// A thread that hangs: the end of its copy is nobody's.
#[test]
fn a_copy_whose_thread_hangs_has_no_end() {
    use gsan_device::layout::{Order, Scope};
    use gsan_oracle::compare::compare;
    use gsan_oracle::program::{
        Access, AsyncCopy, Block, HostStep, Kernel, Kind, Op, Place, Space, Transfer,
    };
    let place = |offset, size| Place {
        space: Space::Checked,
        offset,
        size,
    };
    let access = |kind, order, scope, place| {
        Op::Access(Access {
            kind,
            order,
            scope,
            volatile: false,
            place,
            until: None,
        })
    };
    let (data, flag) = (place(96, 16), place(32, 4));
    let issuer = vec![
        Op::Copy(AsyncCopy {
            what: Transfer::Put(4),
            place: data,
            corner: None,
        }),
        access(Kind::Store(1), Order::Release, Scope::Gpu, flag),
        Op::Await {
            mbarrier: 0,
            phase: 0,
            scope: Scope::Cta,
        },
    ];
    let reader = vec![
        access(Kind::Load, Order::Acquire, Scope::Gpu, flag),
        access(Kind::Load, Order::Weak, Scope::None, place(100, 4)),
    ];
    let block = |ops, mbarriers| Block {
        threads: vec![ops],
        lanes: 1,
        mbarriers,
    };
    let program = Program {
        kernels: vec![Kernel {
            cluster: 1,
            blocks: vec![block(issuer, vec![1]), block(reader, Vec::new())],
            ..Kernel::default()
        }],
        host: vec![HostStep::Launch {
            kernel: 0,
            stream: 0,
        }],
        ..Program::default()
    };
    let reference = Reference::new(Format::Wide, false);
    let mut classes = std::collections::BTreeSet::new();
    for schedule in 0..200 {
        let run = interpreter::run(&program, reference.roomy(), schedule);
        let outcome = compare(&program, reference.roomy(), &run, &reference);
        assert_eq!(outcome.failures, [], "schedule {schedule}");
        classes.extend(outcome.races.into_keys());
    }
    assert!(classes.contains(&Class::CopyEnds), "{classes:?}");
}

/// Whether every thread of the kernels that are launched by themselves leaves.
fn ends(program: &Program, reference: &Reference, schedule: u64) -> bool {
    let run = interpreter::run_as(
        program,
        reference.roomy(),
        schedule,
        schedule.is_multiple_of(2),
    );
    let launched: Vec<usize> = (0..program.host.len())
        .filter_map(|step| program.kernel_of(step))
        .collect();
    let left: std::collections::BTreeSet<usize> = (run.trace.items.iter())
        .filter_map(|item| match item {
            Item::Leave(thread) => Some(*thread),
            _ => None,
        })
        .collect();
    (run.trace.threads.iter().enumerate())
        .all(|(t, info)| !launched.contains(&info.kernel) || left.contains(&t))
}

/// A GPU would hang.
#[test]
fn no_thread_waits_for_what_never_comes() {
    let reference = Reference::new(Format::Wide, false);
    for seed in 0..3_000 {
        let program = program(seed, Constructs::Wide);
        for schedule in 0..4 {
            assert!(
                ends(&program, &reference, schedule),
                "seed {seed}, schedule {schedule}:\n{program}"
            );
        }
    }
}
