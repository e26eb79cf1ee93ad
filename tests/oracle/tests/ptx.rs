//! A fixed set of programs the whole way: PTX, instrumentation, session, simulated driver and machine.
//!
//! One test at a time: there is one simulated GPU in a process.

use gsan_oracle::campaign::Constructs;
use gsan_oracle::compare::Class;
use gsan_oracle::ptx::bundle::{self, Bundle, Kind};
use gsan_oracle::ptx::campaign::{Campaign, minimise, program};
use gsan_oracle::ptx::emit::{At, Module};
use gsan_oracle::setup::Format;
use std::sync::{Mutex, PoisonError};

static SIMULATOR: Mutex<()> = Mutex::new(());

/// Runs them and fails with the first failing one, made small.
#[track_caller]
fn run(
    format: Format,
    constructs: Constructs,
    seed: u64,
    programs: u64,
) -> gsan_oracle::campaign::Summary {
    let _alone = SIMULATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let campaign = Campaign {
        seed,
        programs,
        batch: 20,
        max_failures: 1,
        format,
        sc_order: None,
        constructs,
    };
    let summary = campaign.run(&|_| {});
    if let Some(case) = summary.cases.first() {
        let (program, schedule, failures) = minimise(case, format);
        panic!(
            "seed {}, session {schedule}:\n{program}{failures:#?}",
            case.seed
        );
    }
    assert_eq!(summary.programs, programs);
    summary
}

#[test]
fn the_wide_cell_agrees_with_the_oracle_the_whole_way() {
    let summary = run(Format::Wide, Constructs::Classic, 1_000_000, 120);
    let racy = summary.racy as f64 / summary.programs as f64;
    assert!((0.3..0.9).contains(&racy), "{racy} of the programs race");
    assert!(summary.racy_found as f64 > 0.8 * summary.racy as f64);
    assert!(summary.races[&Class::Found] > 100);
}

#[test]
fn the_reference_cell_agrees_with_the_oracle_the_whole_way() {
    run(Format::Reference, Constructs::Classic, 2_000_000, 60);
}

#[test]
fn the_wide_cell_agrees_on_copies_clusters_and_graphs_the_whole_way() {
    let summary = run(Format::Wide, Constructs::Wide, 1_000_000, 120);
    assert!(summary.races[&Class::Found] > 100);
}

#[test]
fn the_reference_cell_agrees_on_copies_clusters_and_graphs_the_whole_way() {
    run(Format::Reference, Constructs::Wide, 2_000_000, 60);
}

#[test]
fn every_operation_has_its_line() {
    let classic = (0..20).map(|s| program(s, Constructs::Classic));
    let wide = (0..20).map(|s| program(s, Constructs::Wide));
    // What a graph runs again has no text of its own.
    let programs: Vec<_> = (classic.chain(wide))
        .filter(|p| p.graphs.is_empty())
        .collect();
    let packed = Module::pack(&programs.iter().collect::<Vec<_>>(), Some(5));
    for (n, program) in programs.iter().enumerate() {
        let mut expected = Vec::new();
        for (thread, (.., ops)) in program.threads().enumerate() {
            expected.extend((0..ops.len()).map(|op| At {
                program: n,
                thread,
                op,
            }));
        }
        let mut found: Vec<At> = (packed.lines_of(n))
            .filter_map(|line| packed.at(line as u32))
            .collect();
        // What a thread does that gives up is there twice.
        found.sort_by_key(|at| (at.thread, at.op));
        found.dedup();
        assert_eq!(found, expected);
    }
    let lines = packed.text.lines().count() as u32;
    assert_eq!(packed.at(0), None);
    assert_eq!(packed.at(lines + 1), None);
}

/// A folder that goes when the test ends.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("gsan-oracle-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_bundle_is_judged_by_what_was_known_in_advance() {
    let folder = Folder::new("bundle");
    let bundle = Bundle {
        seed: 1,
        programs: 12,
        module: 6,
        schedules: 40,
        rounds: 2,
        constructs: Constructs::Classic,
    };
    let modules = bundle.choose(&|_| {});
    bundle.write(&folder.0, &modules).unwrap();
    assert_eq!(modules.iter().map(Vec::len).sum::<usize>(), 12);
    let clean = modules.iter().flatten().filter(|e| e.kind == Kind::Clean);
    assert_eq!(clean.count(), 6);
    let results = folder.0.join("results");
    std::fs::create_dir_all(&results).unwrap();
    let expectations = std::fs::read_to_string(folder.0.join("expectations.txt")).unwrap();
    // A report that names an access of every program, or of none.
    let report = |stem: &str, all: bool| {
        let lines = expectations.lines().filter(|l| l.starts_with(stem) && all);
        let races: Vec<String> = lines
            .map(|l| {
                let line = l.split(' ').nth(1).unwrap();
                format!(r#"{{"current": {{"site": {{"ptx_line": {line}}}}}}}"#)
            })
            .collect();
        let text = format!(
            r#"{{"outcome": "completed", "races": [{}]}}"#,
            races.join(",")
        );
        std::fs::write(results.join(format!("{stem}.json")), text).unwrap();
    };
    report("programs_00", false);
    let verdict = bundle::judge(&folder.0, &results).unwrap();
    assert_eq!(verdict.unread, ["programs_01"]);
    assert!(!verdict.is_good());
    report("programs_01", false);
    let verdict = bundle::judge(&folder.0, &results).unwrap();
    assert!(verdict.is_good(), "{verdict}");
    assert!(verdict.counts.values().all(|&(_, reported)| reported == 0));
    assert!(!verdict.missed.is_empty());
    report("programs_00", true);
    let verdict = bundle::judge(&folder.0, &results).unwrap();
    assert_eq!(verdict.false_alarms.len(), 3);
    assert!(!verdict.is_good());
    assert!(bundle::judge(&folder.0.join("nowhere"), &results).is_err());
}

#[test]
fn a_bundle_of_the_wider_kind_has_graphs_and_dependent_launches() {
    let folder = Folder::new("wide-bundle");
    let bundle = Bundle {
        seed: 1,
        programs: 16,
        module: 4,
        schedules: 20,
        rounds: 2,
        constructs: Constructs::Wide,
    };
    let modules = bundle.choose(&|_| {});
    bundle.write(&folder.0, &modules).unwrap();
    let text = |name: &str| std::fs::read_to_string(folder.0.join(name)).unwrap();
    let graphs = text("programs_01.toml");
    let launched = graphs.lines().filter(|l| *l == "graph = \"g0\"").count();
    let program = &modules[1][0].program;
    let steps = (0..program.host.len()).filter(|&s| !program.nodes(s).is_empty());
    // Twice, and each time as often as the program does.
    assert_eq!(launched, 2 * steps.count());
    assert!(graphs.contains("[[graph.node]]\nname = \"n0\"\nlaunch = \"all_k"));
    let repeated = |k: &usize| program.is_repeated(*k);
    let own = (0..program.kernels.len()).filter(|k| !repeated(k)).count();
    let ptx = text("programs_01.ptx");
    assert_eq!(ptx.matches(".visible .entry all_k").count(), own);
    assert!(text("programs_03.toml").contains("pdl = true"));
}
