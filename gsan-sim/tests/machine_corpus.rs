//! The whole corpus of compilers' output loads, and what cannot be executed is known by name.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use gsan_sim::Config;
use gsan_sim::machine::Machine;

/// The corpus lies beside the repository; a checkout without it has nothing to test here.
fn corpus() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let root = if root.is_dir() {
        root
    } else {
        Path::new("/work/shared/corpus").to_path_buf()
    };
    let mut files = Vec::new();
    for folder in ["cuda", "rust", "triton", "triton39", "clang"] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "ptx") {
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                files.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Instructions that later work adds: tensor cores, tensor maps, textures.
const KNOWN: &[&str] = &[
    "wgmma",
    "mma",
    "ldmatrix",
    "stmatrix",
    "tcgen05",
    "cp.async.bulk.tensor",
    "cp.reduce",
    "tensormap",
    "tex",
    "suld",
    "sust",
    "wmma",
    "tld4",
];

#[test]
fn every_file_loads_and_only_known_instructions_are_missing() {
    let files = corpus();
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut failed = Vec::new();
    for (name, text) in &files {
        let mut machine = Machine::new(Config::default());
        match machine.load_module(0, text) {
            Ok(module) => {
                assert!(
                    !machine.functions(module).is_empty(),
                    "{name} has no kernel"
                );
                for (line, what) in machine.unsupported(module) {
                    let bare = what
                        .split_whitespace()
                        .find(|w| !w.starts_with('@'))
                        .unwrap_or_default()
                        .to_string();
                    missing
                        .entry(bare)
                        .or_default()
                        .push(format!("{name}:{line}"));
                }
            }
            // Its compiler left a function undefined: a driver refuses it too.
            Err(e)
                if name.starts_with("clang/classic_atomics")
                    && e.message.contains("__usAtomicCAS") => {}
            Err(e) => failed.push(format!("{name}: {e}")),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    let unknown: BTreeMap<_, _> = missing
        .iter()
        .filter(|(op, _)| !KNOWN.iter().any(|k| op.starts_with(k)))
        .map(|(op, v)| (op, &v[0]))
        .collect();
    for (op, places) in &missing {
        println!("{:5} {op} {}", places.len(), places[0]);
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}
