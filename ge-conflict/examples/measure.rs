//! Prints how much processor time the stages take (Linux: what the thread really got, so that a busy machine does not
//! distort it) and the peak of memory. `cargo run --release --example measure`

#[path = "../benches/generator.rs"]
mod generator;

use ge_conflict::{Ctx, Stage, io, passes};

/// Nanoseconds that this thread has been running.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|n| n.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}

fn peak() -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text
        .lines()
        .find(|l| l.starts_with("VmHWM"))
        .unwrap_or_default();
    line.trim_start_matches("VmHWM:").trim().to_owned()
}

fn main() {
    // With a number: only reads, that many times more, and prints the best.
    let repeats = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let repeats: usize = repeats.unwrap_or(0);
    println!("| operators | load | rw | layout | lint | rw + layout + lint | all | peak memory |");
    println!("|---|---|---|---|---|---|---|---|");
    for operators in [1_000, 10_000, 30_000, 100_000] {
        let text = generator::module(operators);
        let mut row = Vec::new();
        let start = cpu();
        let Ok(loaded) = io::json::read("graph.json", text.as_bytes()) else {
            return;
        };
        let mut best = cpu() - start;
        for _ in 0..repeats {
            let start = cpu();
            let again = io::json::read("graph.json", text.as_bytes());
            best = best.min(cpu() - start);
            drop(again);
        }
        row.push(best);
        if repeats > 0 {
            println!("| {operators} | {best:.3} s (best of {}) |", repeats + 1);
            continue;
        }
        let lists: [&[Stage]; 5] = [
            &[Stage::Rw],
            &[Stage::Layout],
            &[Stage::Lint],
            &[Stage::Rw, Stage::Layout, Stage::Lint],
            &[Stage::All],
        ];
        for list in lists {
            let mut module = loaded.module.clone();
            let mut ctx = Ctx::new(&mut module, None);
            let start = cpu();
            list.iter().for_each(|s| passes::run(&mut ctx, *s));
            row.push(cpu() - start);
        }
        let cells: Vec<String> = row.iter().map(|s| format!("{s:.3} s")).collect();
        println!("| {operators} | {} | {} |", cells.join(" | "), peak());
    }
}
