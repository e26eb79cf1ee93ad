//! What must hold for the kernels and scenarios as a set, whatever the program does with them.

use gsan_tests::{kernels, repository, scenario, scenarios};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn ptx_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["rust/ptx", "cuda/ptx", "ptx"] {
        let folder = kernels().join(folder);
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        found.extend(
            entries
                .flatten()
                .map(|e| e.path())
                .filter(|p| p.extension().is_some_and(|e| e == "ptx")),
        );
    }
    found
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default()
        .to_string()
}

#[test]
fn every_compiled_kernel_has_a_racy_scenario_and_a_repaired_one() {
    // Those right under `ptx` are hand-written, for scenarios of other kinds.
    for file in ptx_files()
        .iter()
        .filter(|f| f.parent() != Some(&kernels().join("ptx")))
    {
        for kind in ["_racy", "_fixed"] {
            let uses = |(name, path): &(String, PathBuf)| {
                name.ends_with(kind) && modules(path).any(|m| m == file.canonicalize().unwrap())
            };
            assert!(
                scenario::all().iter().any(uses),
                "no scenario …{kind} has {}",
                file.display(),
            );
        }
    }
}

/// The files of a scenario's modules that are there.
fn modules(scenario: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = scenarios();
    let read = scenario::read(scenario);
    let modules = read.get("module").and_then(|m| m.as_array());
    let modules = modules.cloned().unwrap_or_default().into_iter();
    modules.filter_map(move |module| {
        folder
            .join(module.get("path")?.as_str()?)
            .canonicalize()
            .ok()
    })
}

#[test]
fn a_racy_scenario_expects_a_race_and_a_repaired_one_none_but_values() {
    for (name, path) in scenario::all() {
        let scenario = scenario::read(&path);
        let expect = scenario
            .get("expect")
            .unwrap_or_else(|| panic!("{name}: no [expect]"));
        let races = expect
            .get("race")
            .and_then(|r| r.as_array())
            .map_or(0, Vec::len);
        let schedules = expect
            .get("schedules")
            .and_then(|s| s.as_integer())
            .unwrap_or(0);
        if name.ends_with("_racy") {
            let certain =
                |r: &toml::Value| r.get("min_schedules").and_then(|m| m.as_integer()) != Some(0);
            let must_show = expect
                .get("race")
                .and_then(|r| r.as_array())
                .is_some_and(|r| r.iter().any(certain));
            assert!(
                must_show && schedules >= 16,
                "{name} would pass without a race, or with too few schedules"
            );
        }
        if name.ends_with("_fixed") {
            assert!(
                races == 0 && expect.get("races").is_some(),
                "{name} expects races, or any"
            );
            assert!(
                expect.get("value").is_some() && schedules >= 16,
                "{name} checks no values, or too few schedules"
            );
        }
    }
}

#[test]
fn each_racy_scenario_or_its_companion_names_lines() {
    for (name, path) in scenario::all()
        .into_iter()
        .filter(|(n, _)| n.ends_with("_racy"))
    {
        let names_lines = |path: &Path| {
            let expect = scenario::read(path)["expect"].clone();
            expect["race"]
                .as_array()
                .unwrap()
                .iter()
                .any(|r| r.get("line").is_some())
        };
        let companion = scenario::path(&format!("{name}_lines"));
        // Whichever comes second in a window of one instruction has the race.
        let window = name.starts_with("window_");
        // Unrolled loops and wrappers have other lines in a plain build of a linked kernel.
        let known = window
            || name.contains("_plain")
            || names_lines(&path)
            || companion.is_file() && names_lines(&companion);
        assert!(known, "{name} accepts a race at any line");
    }
}

#[test]
fn each_expected_line_touches_memory_in_the_source() {
    for (name, path) in scenario::all()
        .into_iter()
        .filter(|(n, _)| n.ends_with("_racy") || n.ends_with("_racy_lines"))
    {
        if scenario::read(&path)["module"][0].get("ptx").is_some() {
            continue;
        }
        let module = scenario::read(&path)["module"][0]
            .get("path")
            .and_then(|p| p.as_str())
            .map(PathBuf::from)
            .unwrap_or_default();
        let folder = if module.starts_with("../kernels/separate") {
            "separate"
        } else if module.starts_with("../kernels/ptx") {
            "ptx"
        } else if module.starts_with("../kernels/cuda") {
            "cuda"
        } else {
            "rust"
        };
        let source = repository().join("tests/kernels").join(folder);
        let source = match folder {
            "cuda" => source.join(format!("{}.cu", stem(&module))),
            // Written by hand, it is its own source.
            "ptx" => source.join(format!("{}.ptx", stem(&module))),
            // The races are in what the kernels' module is linked with.
            "separate" => source.join("queue.cu"),
            // `NAME_plain` is another build of NAME.
            _ => source
                .join(stem(&module).replace("_plain", ""))
                .join("src/lib.rs"),
        };
        let text =
            fs::read_to_string(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
        let expect = scenario::read(&path)["expect"].clone();
        for race in expect["race"].as_array().unwrap() {
            let lines = match race.get("line") {
                Some(toml::Value::Array(several)) => several.clone(),
                one => one.cloned().into_iter().collect(),
            };
            for line in lines.iter().filter_map(|l| l.as_integer()) {
                let there = text.lines().nth(line as usize - 1).unwrap_or_default();
                let touches = ["*", "[", "asm!", "load(", "store(", "\"l\"("]
                    .iter()
                    .any(|t| there.contains(t));
                assert!(
                    touches,
                    "{name} expects a race at {}:{line}: `{there}`",
                    source.display()
                );
            }
        }
    }
}

#[test]
fn compiled_ptx_names_its_sources_from_the_root_and_needs_no_function_from_elsewhere() {
    let known = [
        "library/",
        "cuda/include/",
        "tests/kernels/",
        "gsan-device/",
        // Of the corpus: its sources are not here.
        "src/triton/",
        "site-packages/",
    ];
    for file in ptx_files() {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix(".file") {
                let name = rest.split('"').nth(1).unwrap_or_default();
                assert!(
                    known.iter().any(|k| name.starts_with(k)),
                    "{}: {line}",
                    file.display()
                );
                if name.starts_with("tests/") {
                    assert!(
                        repository().join(name).is_file(),
                        "{}: {name} is not there",
                        file.display()
                    );
                }
            }
            assert!(
                !line.starts_with(".extern .func"),
                "{}: {line}",
                file.display()
            );
        }
    }
}

#[test]
fn there_are_enough_pairs_and_each_kind_of_synchronisation_has_one() {
    let names: BTreeSet<String> = scenario::all().into_iter().map(|(n, _)| n).collect();
    let of = |folder: &str| {
        let is_here = |f: &PathBuf| f.parent() == Some(&kernels().join(folder));
        ptx_files().iter().filter(|f| is_here(f)).count()
    };
    assert!(of("rust/ptx") >= 10 && of("cuda/ptx") >= 6);
    for needed in [
        "module_static",
        "module_counter",
        "grid_sync",
        "pinned_mailbox",
        "dropped_ordering",
    ] {
        assert!(names.contains(&format!("{needed}_fixed")), "{needed}");
    }
}

#[test]
fn the_wrappers_for_linking_by_hand_cost_nothing_when_they_are_off() {
    let read = |name: &str| fs::read_to_string(kernels().join("rust/ptx").join(name)).unwrap();
    let plain = read("linked_sum_plain.ptx");
    for word in ["__gsan", "call", ".shared", "bar."] {
        assert!(!plain.contains(word), "`{word}` in the plain build");
    }
    let count = |word: &str| plain.matches(word).count();
    // One per kernel, with the ordering that rustc's own atomics lose.
    assert_eq!(
        (
            count("atom."),
            count("atom.add.acq_rel.gpu"),
            count("atom.add.relaxed.gpu")
        ),
        (2, 1, 1)
    );
    assert!(read("linked_sum.ptx").contains("__gsan_module"));
}
