//! The check of `soundness.rs` through calls and branches: the repaired module is laid out flat, once per choice of
//! branches, and every order is run on buffers that are worked out from the whole module.
//!
//! Loops have a check of their own (`soundness_loops.rs`). What the specification leaves alone is excused read by read, each by
//! the name of its rule (`common/exempt.rs`).

mod common;

use common::exempt::{SUBGRAPH_DATA, WRONG_GRAPH};
use common::flat::{Flat, classes};
use common::layout::{self, Tally, judge, module_json};
use common::{Mix, Rng, module};
use ge_conflict::report::Report;
use ge_conflict::{Stage, cli, io};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Runs all orders of one choice of branches.
fn run(module: &Value, report: &Report, branch: usize, tally: &mut Tally) -> Option<String> {
    let flat = Flat::new(module, branch, 0);
    layout::run((module, flat), &classes(module), report, tally, |run| {
        run.explore(&mut BTreeSet::new(), &mut BTreeMap::new());
    })
}

const MIX: Mix = Mix {
    operators: 4,
    layout: false,
    subgraphs: true,
    loops: false,
};

fn input(seed: u64) -> Option<String> {
    let text = module(&mut Rng::new(seed), MIX).to_string();
    let calls = ["\"If\"", "\"Case\"", "\"PartitionedCall\""];
    (!text.contains("\"While\"") && calls.iter().any(|c| text.contains(c))).then_some(text)
}

#[test]
fn orders_see_right_values_through_calls() {
    let (mut graphs, mut tally) = (0, Tally::default());
    let mut wrong = Vec::new();
    for seed in 300_000..312_000 {
        let Some(text) = input(seed) else { continue };
        let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
        let (report, module) = cli::run(loaded, Stage::All, None);
        if !report.errors.is_empty() {
            continue;
        }
        let value = module_json(&module);
        graphs += 1;
        for branch in 0..2 {
            if let Some(w) = run(&value, &report, branch, &mut tally) {
                wrong.push((text.len(), (seed, branch, w)));
                break;
            }
        }
    }
    judge(graphs, &tally, &[SUBGRAPH_DATA, WRONG_GRAPH], wrong);
}

/// The check must be able to fail.
#[test]
fn without_the_pipeline_values_are_wrong() {
    let mut wrong = 0;
    for seed in 300_000..302_000 {
        let Some(text) = input(seed) else { continue };
        let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
        let value = module_json(&loaded.module);
        let none = Report::default();
        wrong +=
            usize::from((0..2).any(|b| run(&value, &none, b, &mut Tally::default()).is_some()));
    }
    assert!(wrong > 20, "only {wrong} graphs are wrong to begin with");
}
