//! A repaired module laid out flat, and run.

use super::exempt::Exemptions;
use super::flat::{Flat, Key, buffers};
use super::simulation::{Run, Wrong};
use ge_conflict::io;
use ge_conflict::report::Report;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

pub fn module_json(module: &ge_conflict::ir::Module) -> Value {
    serde_json::from_str(&io::to_json(module)).expect("what is written is JSON")
}

/// What came of the layouts so far.
#[derive(Default)]
pub struct Tally {
    pub orders: usize,
    pub reads: usize,
    /// In how many layouts each rule excused a read.
    pub rules: BTreeMap<&'static str, usize>,
}

/// Runs one layout, in the orders that `explore` takes; what is wrong, if something is.
pub fn run(
    (module, flat): (&Value, Flat<'_>),
    classes: &HashMap<Key, usize>,
    report: &Report,
    tally: &mut Tally,
    explore: impl FnOnce(&mut Run<'_>),
) -> Option<String> {
    let graph = json!({ "graphs": [{ "name": "flat", "nodes": flat.nodes }] }).to_string();
    let loaded = io::json::read("flat.json", graph.as_bytes()).expect("it reads");
    assert!(loaded.defects.is_empty(), "{:?}\n{graph}", loaded.defects);
    let g = &loaded.module.graphs[0];
    let exempt = Exemptions::new(module, classes, report);
    let excuse = |w: &Wrong| exempt.rule(w);
    let mut run = Run::with(g, buffers(g, classes)).excusing(&excuse);
    explore(&mut run);
    tally.orders += run.orders;
    tally.reads += run.reads;
    for r in run.excused.keys() {
        *tally.rules.entry(r).or_default() += 1;
    }
    run.wrong
}

/// Nothing may be wrong, and just these rules are needed. `wrong` comes with the length of each graph's text: the shortest are
/// shown.
pub fn judge<W: Debug>(graphs: usize, t: &Tally, needed: &[&str], mut wrong: Vec<(usize, W)>) {
    wrong.sort_by_key(|w| w.0);
    println!(
        "{graphs} graphs, {} orders, {} reads; layouts with a read excused: {:?}",
        t.orders, t.reads, t.rules
    );
    let mut needed = needed.to_vec();
    needed.sort();
    assert_eq!(t.rules.keys().copied().collect::<Vec<_>>(), needed);
    assert!(graphs >= 2_000, "only {graphs} graphs");
    assert!(
        wrong.is_empty(),
        "{} of {graphs}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
}
