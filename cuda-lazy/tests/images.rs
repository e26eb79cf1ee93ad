//! Instructions on textures and surfaces, each on coordinates at random, against what an H200 made of them
//! (`images/h200.txt`). `GSAN_TEST_DEVICE=cuda GSAN_IMAGES=FILE` writes what a GPU finds, `GSAN_IMAGES_PTX=FOLDER` the programs, for
//! ptxas.

#[path = "images/case.rs"]
mod case;
#[path = "images/cases.rs"]
mod cases;
mod common;

use case::Case;
use common::Simulated;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

#[test]
fn images_are_what_an_h200_finds() {
    if let Some(folder) = std::env::var_os("GSAN_IMAGES_PTX") {
        return write_programs(Path::new(&folder));
    }
    if let Some(path) = std::env::var_os("GSAN_IMAGES") {
        let _sim = Simulated::new();
        return record(Path::new(&path));
    }
    let recorded: HashMap<&str, &str> = include_str!("images/h200.txt")
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .collect();
    let cases = cases::all();
    let mut wrong = String::new();
    assert_eq!(recorded.len(), cases.len(), "a case for each name");
    for case in &cases {
        let expected = recorded.get(case.name.as_str()).copied();
        let expected = expected.unwrap_or("nothing");
        // A fault is the end of a context.
        let _sim = Simulated::new();
        if let Err(why) = case.compare(expected, &case.run()) {
            let _ = writeln!(wrong, "{}: {why}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn write_programs(folder: &Path) {
    for (n, case) in cases::all().iter().enumerate() {
        let text = format!("// {}\n{}", case.name, case.ptx());
        std::fs::write(folder.join(format!("{n:03}.ptx")), text).expect("a folder");
    }
}

/// Goes on behind what is there, up to a kernel that ends badly: a GPU's driver is of no use to the process afterwards.
fn record(path: &Path) {
    let mut all = std::fs::read_to_string(path).unwrap_or_default();
    let done = all.lines().count();
    let cases: Vec<Case> = cases::all();
    for case in cases.iter().skip(done) {
        let found = case.run();
        let _ = writeln!(all, "{} = {found}", case.name);
        std::fs::write(path, &all).expect("a place to write to");
        if found.starts_with("kernel") {
            return;
        }
    }
}
