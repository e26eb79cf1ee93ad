//! Large graphs: the generator's graphs are clean and the stages stay near-linear (a coarse bound: the benches measure).

#[path = "../benches/generator.rs"]
mod generator;

use ge_conflict::{Ctx, Stage, io, passes};
use std::time::Instant;

fn seconds(operators: usize) -> f64 {
    let text = generator::module(operators);
    let loaded = io::json::read("large.json", text.as_bytes()).expect("it reads");
    assert!(
        loaded.defects.is_empty() && loaded.notes.is_empty(),
        "{:?}",
        loaded.defects.first()
    );
    let mut module = loaded.module;
    let start = Instant::now();
    let mut ctx = Ctx::new(&mut module, None);
    for stage in [Stage::Rw, Stage::Layout, Stage::Lint] {
        passes::run(&mut ctx, stage);
    }
    assert!(ctx.report.errors.is_empty(), "{:?}", ctx.report.errors);
    assert!(!ctx.report.inserted.is_empty());
    start.elapsed().as_secs_f64()
}

#[test]
fn time_grows_with_the_graph_and_not_with_its_square() {
    let (small, large) = (seconds(2_000), seconds(20_000));
    println!("2,000: {small:.3} s, 20,000: {large:.3} s");
    // Ten times as many operators; a square would be a hundred times.
    assert!(
        large < 40.0 * small.max(0.005),
        "2,000 take {small:.3} s, 20,000 take {large:.3} s"
    );
}
