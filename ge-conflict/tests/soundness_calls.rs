//! The check of `soundness.rs` through calls and branches: the repaired module is laid out flat, once per choice of
//! branches, and every order is run on buffers that are worked out from the whole module.
//!
//! Loops have a check of their own (`soundness_loops.rs`). What the specification leaves alone is excused read by read, each by
//! the name of its rule (`common/exempt.rs`).

mod common;

use common::exempt::{Exemptions, SUBGRAPH_DATA, WRONG_GRAPH};
use common::flat::{Flat, buffers, classes};
use common::simulation::{Run, Wrong};
use common::{Mix, Rng, module};
use ge_conflict::report::Report;
use ge_conflict::{Stage, cli, io};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Runs all orders of one choice of branches; counts what rules excuse.
fn run(
    module: &Value,
    report: &Report,
    branch: usize,
    rules: &mut BTreeMap<&'static str, usize>,
) -> (usize, usize, Option<String>) {
    let classes = classes(module);
    let flat = Flat::new(module, branch, 0);
    let graph = json!({ "graphs": [{ "name": "flat", "nodes": flat.nodes }] }).to_string();
    let loaded = io::json::read("flat.json", graph.as_bytes()).expect("it reads");
    assert!(loaded.defects.is_empty(), "{:?}\n{graph}", loaded.defects);
    let g = &loaded.module.graphs[0];
    let exempt = Exemptions::new(module, &classes, report);
    let excuse = |w: &Wrong| exempt.rule(w);
    let mut run = Run::with(g, buffers(g, &classes)).excusing(&excuse);
    run.explore(&mut BTreeSet::new(), &mut BTreeMap::new());
    for r in run.excused.keys() {
        *rules.entry(r).or_default() += 1;
    }
    (run.orders, run.reads, run.wrong)
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

fn module_json(module: &ge_conflict::ir::Module) -> Value {
    serde_json::from_str(&io::to_json(module)).expect("what is written is JSON")
}

#[test]
fn orders_see_right_values_through_calls() {
    let (mut graphs, mut orders, mut reads) = (0, 0, 0);
    let mut rules = BTreeMap::new();
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
            let (o, r, w) = run(&value, &report, branch, &mut rules);
            orders += o;
            reads += r;
            if let Some(w) = w {
                wrong.push((seed, branch, w, text.len()));
                break;
            }
        }
    }
    // Each rule that is named here is needed, and no other is.
    let needed: BTreeSet<&str> = [SUBGRAPH_DATA, WRONG_GRAPH].into();
    assert_eq!(rules.keys().copied().collect::<BTreeSet<_>>(), needed);
    wrong.sort_by_key(|w| w.3);
    println!(
        "{graphs} graphs, {orders} orders, {reads} reads; layouts with a read excused: {rules:?}"
    );
    assert!(graphs >= 2_000, "only {graphs} graphs");
    assert!(
        wrong.is_empty(),
        "{} of {graphs}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
}

/// The check must be able to fail.
#[test]
fn without_the_pipeline_values_are_wrong() {
    let mut wrong = 0;
    for seed in 300_000..302_000 {
        let Some(text) = input(seed) else { continue };
        let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
        let value = module_json(&loaded.module);
        wrong += usize::from((0..2).any(|b| {
            run(&value, &Report::default(), b, &mut BTreeMap::new())
                .2
                .is_some()
        }));
    }
    assert!(wrong > 20, "only {wrong} graphs are wrong to begin with");
}
