//! The check of `soundness.rs` through loops: the repaired module is laid out flat with 0, 1, 2 and 3 rounds per loop (an
//! inner loop's number varies from round to round of the outer), and orders drawn at random are run on buffers that are worked
//! out from the whole module.

mod common;

use common::exempt::{Exemptions, IN_A_LOOP, LOOP_RESULT, SUBGRAPH_DATA, WRONG_GRAPH};
use common::flat::{Flat, Key, buffers, classes};
use common::simulation::{Run, Wrong};
use common::{Mix, Rng, module};
use ge_conflict::report::Report;
use ge_conflict::{Stage, cli, io};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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

struct Tally {
    orders: usize,
    reads: usize,
    rules: BTreeMap<&'static str, usize>,
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
    let graph = json!({ "graphs": [{ "name": "flat", "nodes": flat.nodes }] }).to_string();
    let loaded = io::json::read("flat.json", graph.as_bytes()).expect("it reads");
    assert!(loaded.defects.is_empty(), "{:?}\n{graph}", loaded.defects);
    let g = &loaded.module.graphs[0];
    let exempt = Exemptions::new(module, classes, report);
    let excuse = |w: &Wrong| exempt.rule(w);
    let mut run = Run::with(g, buffers(g, classes)).excusing(&excuse);
    run.sample(&mut Rng::new(seed), ORDERS);
    tally.orders += run.orders;
    tally.reads += run.reads;
    for r in run.excused.keys() {
        *tally.rules.entry(r).or_default() += 1;
    }
    run.wrong
}

fn tally() -> Tally {
    Tally {
        orders: 0,
        reads: 0,
        rules: BTreeMap::new(),
    }
}

fn module_json(module: &ge_conflict::ir::Module) -> Value {
    serde_json::from_str(&io::to_json(module)).expect("what is written is JSON")
}

#[test]
fn rounds_see_right_values() {
    let (mut graphs, mut t) = (0, tally());
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
            if let Some(w) = run(&value, &memory, &report, (branch, rounds, seed), &mut t) {
                wrong.push((seed, branch, rounds, w, text.len()));
                break;
            }
        }
    }
    // Each rule that is named here is needed, and no other is.
    let needed: BTreeSet<&str> = [IN_A_LOOP, LOOP_RESULT, SUBGRAPH_DATA, WRONG_GRAPH].into();
    assert_eq!(t.rules.keys().copied().collect::<BTreeSet<_>>(), needed);
    wrong.sort_by_key(|w| w.4);
    println!(
        "{graphs} graphs, {} orders, {} reads; layouts with a read excused: {:?}",
        t.orders, t.reads, t.rules
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
    for seed in 400_000..400_400 {
        let Some(text) = input(seed) else { continue };
        let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
        let value = module_json(&loaded.module);
        let memory = classes(&value);
        let none = Report::default();
        wrong += usize::from(
            (1..3).any(|r| run(&value, &memory, &none, (0, r, seed), &mut tally()).is_some()),
        );
    }
    assert!(wrong > 20, "only {wrong} graphs are wrong to begin with");
}
