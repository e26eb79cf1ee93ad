//! The scenarios in folders of their own, `litmus` and `parity`, behave as their `[expect]` says. Their names are many and
//! made by generators, so they are found on disk; each test takes a part, that they share the machine.

use gsan_tests::{Gsan, exit, scenarios};
use std::path::PathBuf;

const PARTS: usize = 4;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = scenarios().join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    found.sort();
    found
}

/// Every `PARTS`th file, from `part` on. All are run, then the ones that differ are shown.
fn part(folder: &str, part: usize) {
    let mut wrong = Vec::new();
    for file in files(folder).iter().skip(part).step_by(PARTS) {
        let done = Gsan::run(file).finish();
        if done.code != exit::CLEAN {
            wrong.push(done.to_string());
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn litmus_1() {
    part("litmus", 0);
}

#[test]
fn litmus_2() {
    part("litmus", 1);
}

#[test]
fn litmus_3() {
    part("litmus", 2);
}

#[test]
fn litmus_4() {
    part("litmus", 3);
}

#[test]
fn parity_1() {
    part("parity", 0);
}

#[test]
fn parity_2() {
    part("parity", 1);
}

#[test]
fn parity_3() {
    part("parity", 2);
}

#[test]
fn parity_4() {
    part("parity", 3);
}

#[test]
fn the_folders_are_not_empty() {
    assert!(files("litmus").len() > 100);
    assert!(files("parity").len() > 20);
}

/// A racy litmus test says so in its name, and only such a one expects a race.
#[test]
fn the_name_says_whether_it_is_racy() {
    for file in files("litmus") {
        let racy = file.to_string_lossy().ends_with("_racy.toml");
        let races = gsan_tests::scenario::read(&file)
            .get("expect")
            .and_then(|e| e.get("race"))
            .is_some();
        assert_eq!(racy, races, "{}", file.display());
    }
}
