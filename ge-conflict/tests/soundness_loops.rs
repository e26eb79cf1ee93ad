//! The check of `soundness.rs` through loops: the repaired module is laid out flat with 0, 1, 2 and 3 rounds per loop (an
//! inner loop's number varies from round to round of the outer), and orders drawn at random are run on buffers that are worked
//! out from the whole module.

mod common;

use common::exempt::{IN_A_LOOP, LOOP_RESULT, SUBGRAPH_DATA, WRONG_GRAPH};
use common::flat::{Flat, Key, classes};
use common::layout::{self, Tally, judge, module_json};
use common::{Mix, Rng, module};
use ge_conflict::report::Report;
use ge_conflict::{Stage, cli, io};
use serde_json::Value;
use std::collections::HashMap;

const MIX: Mix = Mix {
    operators: 3,
    layout: false,
    subgraphs: true,
    loops: true,
};
/// Orders per layout.
const ORDERS: usize = 8;
/// Larger layouts are left out.
const MAX_NODES: usize = 200;

fn input(seed: u64) -> Option<String> {
    let text = module(&mut Rng::new(seed), MIX).to_string();
    text.contains("\"While\"").then_some(text)
}

/// Runs one layout; what is wrong, if something is.
fn run(
    module: &Value,
    classes: &HashMap<Key, usize>,
    report: &Report,
    (branch, rounds, seed): (usize, usize, u64),
    tally: &mut Tally,
) -> Option<String> {
    let flat = Flat::new(module, branch, rounds);
    if flat.nodes.len() > MAX_NODES {
        return None;
    }
    layout::run((module, flat), classes, report, tally, |run| {
        run.sample(&mut Rng::new(seed), ORDERS);
    })
}

#[test]
fn rounds_see_right_values() {
    let (mut graphs, mut tally) = (0, Tally::default());
    let mut wrong = Vec::new();
    for seed in 400_000..406_000 {
        let Some(text) = input(seed) else { continue };
        let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
        let (report, module) = cli::run(loaded, Stage::All, None);
        if !report.errors.is_empty() {
            continue;
        }
        let value = module_json(&module);
        let memory = classes(&value);
        graphs += 1;
        for (branch, rounds) in [(0, 0), (1, 1), (0, 2), (1, 3)] {
            if let Some(w) = run(&value, &memory, &report, (branch, rounds, seed), &mut tally) {
                wrong.push((text.len(), (seed, branch, rounds, w)));
                break;
            }
        }
    }
    let needed = [IN_A_LOOP, LOOP_RESULT, SUBGRAPH_DATA, WRONG_GRAPH];
    judge(graphs, &tally, &needed, wrong);
}

/// The check must be able to fail.
#[test]
fn without_the_pipeline_values_are_wrong() {
    let mut wrong = 0;
    for seed in 400_000..400_400 {
        let Some(text) = input(seed) else { continue };
        let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
        let value = module_json(&loaded.module);
        let memory = classes(&value);
        let none = Report::default();
        wrong +=
            usize::from((1..3).any(|r| {
                run(&value, &memory, &none, (0, r, seed), &mut Tally::default()).is_some()
            }));
    }
    assert!(wrong > 20, "only {wrong} graphs are wrong to begin with");
}
