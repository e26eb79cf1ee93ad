//! Compares the weak memory mode with a GPU:
//!
//!     cargo run --release -p gsan-sim --example weak_gpu -- write DIR
//!
//! writes the litmus tests that a GPU can run as `DIR/litmus.ptx` and `DIR/litmus.txt` for `bench/kernels/litmus.cu`, and
//!
//!     cargo run --release -p gsan-sim --example weak_gpu -- compare FILE [RUNS]
//!
//! looks for each outcome that the GPU has shown (`FILE`, what that program has printed) in as many runs of the simulator, and prints
//! a table in Markdown. Exit code 1: the simulator has not shown one of them, or PTX forbids one.

#[allow(dead_code)]
#[path = "../tests/weak/litmus.rs"]
mod litmus;

use gsan_sim::MemoryModel;
use litmus::{HEADER, Litmus, Outcome, Runner, Where, all};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", dir] => write(Path::new(dir)).map(|()| true),
        ["compare", file] => compare(Path::new(file), 100_000),
        ["compare", file, runs] => match runs.parse() {
            Ok(runs) => compare(Path::new(file), runs),
            Err(e) => Err(format!("how many runs? {runs}: {e}")),
        },
        _ => Err("write DIR, or compare FILE [RUNS]".to_string()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

/// Whether a GPU can run it as [`Runner::Gpu`]: threads may miss each other there, so none may wait for another.
fn runs_on_gpu(test: &Litmus) -> bool {
    !test
        .roles
        .iter()
        .any(|role| role.contains("bar.") || role.contains("barrier."))
}

fn write(dir: &Path) -> Result<(), String> {
    let (mut ptx, mut list) = (HEADER.to_string(), String::new());
    for (i, test) in all().filter(|t| runs_on_gpu(t)).enumerate() {
        ptx += &test.kernel(&format!("k{i}"), Runner::Gpu);
        let place = match test.place {
            Where::Grid => "grid",
            Where::Block => "block",
            Where::Cluster => "cluster",
        };
        list += &format!("{} {place} {}\n", test.roles.len(), test.name);
    }
    for (name, text) in [("litmus.ptx", ptx), ("litmus.txt", list)] {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// What a GPU has shown of one program: runs, and how often each outcome.
type Shown = (u64, BTreeMap<Outcome, u64>);

/// Reads `= RUNS NAME`, then `COUNT r0 … r7 x y z` for each outcome.
fn read(text: &str) -> Result<BTreeMap<&str, Shown>, String> {
    let mut all: BTreeMap<&str, Shown> = BTreeMap::new();
    let mut name = "";
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let bad = || format!("`{line}`: expected `= RUNS NAME` or `COUNT` and 11 values");
        if let Some(head) = line.strip_prefix("= ") {
            let (runs, of) = head.split_once(' ').ok_or_else(bad)?;
            name = of;
            all.entry(name).or_default().0 = runs.parse().map_err(|_| bad())?;
            continue;
        }
        let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|_| bad())?;
        let [count, ref values @ ..] = numbers[..] else {
            return Err(bad());
        };
        let values: Vec<u32> = values.iter().map(|&v| v as u32).collect();
        let outcome = Outcome::try_from(values).map_err(|_| bad())?;
        all.entry(name).or_default().1.insert(outcome, count);
    }
    Ok(all)
}

fn compare(file: &Path, runs: u32) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let shown = read(&text)?;
    println!(
        "| program | asks | PTX | GPU | of | outcomes GPU | simulator | not by the simulator |"
    );
    println!("|---|---|---|---:|---:|---:|---:|---|");
    let (mut good, mut compared) = (true, 0);
    for test in all() {
        let Some((of, outcomes)) = shown.get(test.name) else {
            continue;
        };
        compared += 1;
        good &= row(test, *of, outcomes, runs);
    }
    println!("\n{compared} programs.");
    Ok(good && compared == shown.len())
}

/// One program; whether all is well.
fn row(test: &Litmus, of: u64, gpu: &BTreeMap<Outcome, u64>, runs: u32) -> bool {
    let (mut simulated, mut seed) = (BTreeSet::new(), 0);
    let lacks = |s: &BTreeSet<Outcome>| gpu.keys().any(|o| !s.contains(o));
    while seed < u64::from(runs.div_ceil(litmus::EACH)) && (seed < 16 || lacks(&simulated)) {
        test.outcomes(litmus::EACH, seed, MemoryModel::Weak, |o| {
            simulated.insert(*o);
        });
        seed += 1;
    }
    let asked: u64 = gpu
        .iter()
        .filter(|(o, _)| (test.seen)(o))
        .map(|(_, n)| n)
        .sum();
    let missing: Vec<String> = gpu
        .iter()
        .filter(|(o, _)| !simulated.contains(*o))
        .map(|(o, n)| format!("{o:?} ({n})"))
        .collect();
    println!(
        "| {} | {} | {} | {asked} | {of} | {} | {} | {} |",
        test.name,
        test.asks,
        if test.allowed {
            "allows"
        } else {
            "**forbids**"
        },
        gpu.len(),
        simulated.len(),
        missing.join(", ")
    );
    missing.is_empty() && (test.allowed || asked == 0)
}
