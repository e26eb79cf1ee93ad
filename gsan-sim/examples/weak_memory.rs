//! Runs the litmus tests of weak memory many times and prints a table in Markdown:
//!
//!     cargo run --release -p gsan-sim --example weak_memory -- 100000 > bench/results/weak-memory.md
//!
//! Exit code 1: something forbidden was seen, or something allowed was not.

#[path = "../tests/weak/litmus.rs"]
mod litmus;

use gsan_sim::MemoryModel;
use litmus::{Where, all};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let instances = match std::env::args().nth(1).map(|n| n.parse()) {
        None => 100_000,
        Some(Ok(n)) => n,
        Some(Err(e)) => {
            eprintln!("how many runs of each? {e}");
            return ExitCode::from(2);
        }
    };
    let started = Instant::now();
    println!("# Weak memory: what was seen\n");
    println!(
        "`cargo run --release -p gsan-sim --example weak_memory -- {instances}`, the programs are in `gsan-sim/tests/weak/litmus.rs`.\n\
         Runs of each: at least {instances}, seeds from 0 on. `sc`: the same without `--memory weak`, a tenth as often.\n"
    );
    println!("| program | threads | asks | PTX | seen | runs | sc |");
    println!("|---|---|---|---|---:|---:|---:|");
    let (mut wrong, mut forbidden) = (0, 0);
    for test in all() {
        let (seen, runs) = test.run(instances, 0, MemoryModel::Weak);
        let (sequential, _) = test.run(instances / 10, 0, MemoryModel::Sequential);
        let (place, ptx) = (
            match test.place {
                Where::Grid => "blocks",
                Where::Block => "warps of a block",
                Where::Cluster => "blocks of a cluster",
            },
            if test.allowed {
                "allows"
            } else {
                "**forbids**"
            },
        );
        println!(
            "| {} | {} {place} | {} | {ptx} | {seen} | {runs} | {sequential} |",
            test.name,
            test.roles.len(),
            test.asks
        );
        wrong += u32::from((seen > 0) != test.allowed);
        forbidden += u32::from(!test.allowed);
    }
    println!(
        "\n{} programs, {forbidden} of them ask for something forbidden; {wrong} not as they should be. {:.0} s.",
        all().count(),
        started.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(wrong > 0))
}
