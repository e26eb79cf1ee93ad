//! The whole corpus of compilers' output loads, and what cannot be executed is known by name.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use gsan_sim::Config;
use gsan_sim::machine::{LaunchDesc, Machine, RunEvent, Stop};

/// The corpus beside the repository; where there is none, the part of it that is checked in.
fn corpus() -> Vec<(String, String)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = ["../../shared/corpus", "../gsan-ptx/tests/data/corpus"]
        .iter()
        .map(|folder| here.join(folder))
        .find(|folder| folder.is_dir())
        .expect("the selection is in the repository");
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

/// Instructions that the machine lacks.
const KNOWN: &[&str] = &[];

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

/// Whatever the arguments are, a kernel ends in a named way, and never in a panic. Tensor instructions aside, compilers'
/// output on plausible arguments has no instruction that the machine lacks.
#[test]
fn every_kernel_runs_and_ends_in_a_named_way() {
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    for (name, text) in corpus() {
        let mut machine = Machine::new(Config::default());
        let Ok(module) = machine.load_module(0, &text) else {
            continue;
        };
        for f in machine.functions(module) {
            let info = machine.function_info(f).unwrap().clone();
            let buffer = machine.memory_mut().allocate(0, 1 << 20).unwrap();
            let mut params = vec![0; info.param_bytes as usize];
            for &(offset, size) in &info.params {
                let value = if size == 8 { buffer } else { 64 };
                let n = size.min(8) as usize;
                params[offset as usize..offset as usize + n]
                    .copy_from_slice(&value.to_le_bytes()[..n]);
            }
            let launch = LaunchDesc {
                device: 0,
                function: f,
                grid: [4, 1, 1],
                block: info
                    .required_block
                    .unwrap_or([info.max_threads.min(128), 1, 1]),
                cluster: [1; 3],
                dynamic_shared: 64 << 10,
                user_dynamic: None,
                params,
                cooperative: true,
            };
            machine
                .launch(launch)
                .unwrap_or_else(|e| panic!("{name}, {}: {e}", info.name));
            let outcome = match machine.run(200_000) {
                RunEvent::Completed(_) => "completed".to_string(),
                RunEvent::Stopped(stop) => {
                    let text = stop.to_string();
                    assert!(!text.is_empty());
                    match stop {
                        Stop::Unsupported { what, .. } => {
                            assert!(KNOWN.iter().any(|k| what.contains(k)), "{name}: {what}");
                            "unsupported".to_string()
                        }
                        Stop::Fault { kind, .. } => format!("fault: {kind}"),
                        Stop::Deadlock { .. } => format!("deadlock in {name}, {}", info.name),
                        other => format!("{other:?}")
                            .split_whitespace()
                            .next()
                            .unwrap_or_default()
                            .to_string(),
                    }
                }
                _ => {
                    machine.abort();
                    "still running".to_string()
                }
            };
            if std::env::var_os("VERBOSE").is_some() {
                println!("{name} {}: {outcome}", info.name);
            }
            *outcomes.entry(outcome).or_default() += 1;
        }
    }
    println!("{outcomes:#?}");
    assert!(
        outcomes["completed"] * 5 > outcomes.values().sum::<u32>() * 2,
        "{outcomes:#?}"
    );
}
