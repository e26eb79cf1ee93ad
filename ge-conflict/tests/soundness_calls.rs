//! The check of `soundness.rs` through calls and branches: the repaired module is laid out flat, once per choice of
//! branches, and every order is run on buffers that are worked out from the whole module.
//!
//! Left out, besides what `soundness.rs` names: loops (the read-write pass does not look into them by design), graphs that the
//! pass itself calls wrong (one memory written for own use in one branch and in place in another), and writes for own use
//! of a subgraph's input by an operator that is no collective.

mod common;

use common::simulation::{Anchor, Run};
use common::{Mix, Rng, module};
use ge_conflict::ir::Graph;
use ge_conflict::{Stage, cli, io};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An anchor of the module: graph, node, input or output, index.
type Key = (String, String, bool, u32);

fn text(v: &Value) -> String {
    v.as_str().unwrap_or_default().to_owned()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

fn split(from: &str) -> (String, u32) {
    let (node, index) = from.rsplit_once(':').expect("node:output");
    (node.to_owned(), index.parse().expect("an output's number"))
}

struct Flat<'a> {
    graphs: HashMap<String, &'a Value>,
    /// Which branch of every If or Case is taken.
    branch: usize,
    nodes: Vec<Value>,
    /// What an output of the module is in the flat graph: `node:output`.
    source: HashMap<(String, String), Value>,
}

impl<'a> Flat<'a> {
    fn new(module: &'a Value, branch: usize) -> Flat<'a> {
        let graphs = list(&module["graphs"]).iter();
        Flat {
            graphs: graphs.map(|g| (text(&g["name"]), g)).collect(),
            branch,
            nodes: Vec::new(),
            source: HashMap::new(),
        }
    }

    fn resolve(&self, graph: &str, from: &Value) -> Value {
        let key = (graph.to_owned(), text(from));
        self.source.get(&key).cloned().unwrap_or(Value::Null)
    }

    /// Lays out a graph; `call` is the operator that it hangs under. Returns its results by the parent's output.
    fn lay_out(&mut self, name: &str, call: Option<(&str, &Value)>) -> BTreeMap<u64, Value> {
        let graph = self.graphs[name];
        let begin = call.map(|(g, n)| format!("{g}/{}", text(&n["name"])));
        let mut results = BTreeMap::new();
        for n in list(&graph["nodes"]) {
            let (node, ty) = (text(&n["name"]), text(&n["type"]));
            if let Some((outer, parent)) = call {
                if ty == "Data" {
                    let k = n["attrs"]["_parent_node_index"].as_u64().unwrap_or(0) as usize;
                    let from = self.resolve(outer, &parent["inputs"][k]["from"]);
                    self.source
                        .insert((name.to_owned(), format!("{node}:0")), from);
                    continue;
                }
                if ty == "NetOutput" {
                    for (k, i) in list(&n["inputs"]).iter().enumerate() {
                        let to = i["attrs"]["_parent_node_index"]
                            .as_u64()
                            .unwrap_or(k as u64);
                        results.insert(to, self.resolve(name, &i["from"]));
                    }
                    continue;
                }
            }
            // What an operator waits for: all of a call, and the beginning of the call that it is in.
            let mut control: BTreeSet<String> = list(&n["control"])
                .iter()
                .map(|c| self.waits_for(name, &text(c), begin.as_deref()))
                .collect();
            control.extend(begin.clone());
            for i in list(&n["inputs"]).iter().filter(|i| i["from"].is_string()) {
                let (from, _) = split(&text(&i["from"]));
                if self.is_call(name, &from) {
                    control.insert(format!("{name}/{from}/end"));
                }
            }
            let flat = format!("{name}/{node}");
            let below: Vec<String> = list(&n["subgraphs"]).iter().map(text).collect();
            if below.is_empty() {
                let mut copy = n.clone();
                for (k, i) in list(&n["inputs"]).iter().enumerate() {
                    copy["inputs"][k]["from"] = self.resolve(name, &i["from"]);
                }
                for o in 0..list(&n["outputs"]).len() {
                    let from = format!("{node}:{o}");
                    self.source
                        .insert((name.to_owned(), from), format!("{flat}:{o}").into());
                }
                copy["name"] = flat.into();
                copy["control"] = json!(control);
                copy["id"] = self.nodes.len().into();
                self.nodes.push(copy);
                continue;
            }
            // A call waits for the producers of its inputs, too.
            for i in list(&n["inputs"]) {
                if let Some(from) = self.resolve(name, &i["from"]).as_str() {
                    control.insert(split(from).0);
                }
            }
            let id = self.nodes.len();
            self.nodes
                .push(json!({ "name": flat, "type": "Begin", "control": control, "id": id }));
            let taken = &below[self.branch % below.len()];
            let out = self.lay_out(taken, Some((name, n)));
            for (o, from) in out {
                self.source
                    .insert((name.to_owned(), format!("{node}:{o}")), from);
            }
            let inside: Vec<Value> = self.nodes[id..].iter().map(|n| n["name"].clone()).collect();
            let end = json!({ "name": format!("{flat}/end"), "type": "End", "control": inside, "id": self.nodes.len() });
            self.nodes.push(end);
        }
        results
    }

    fn is_call(&self, graph: &str, node: &str) -> bool {
        let end = format!("{graph}/{node}/end");
        self.nodes.iter().any(|n| n["name"] == end.as_str())
    }

    fn waits_for(&self, graph: &str, node: &str, begin: Option<&str>) -> String {
        let flat = format!("{graph}/{node}");
        if self.is_call(graph, node) {
            return flat + "/end";
        }
        // A subgraph's Data is there from the beginning.
        if self.nodes.iter().any(|n| n["name"] == flat.as_str()) {
            flat
        } else {
            begin.unwrap_or_default().to_owned()
        }
    }
}

/// Classes of anchors that share memory in the whole module.
fn classes(module: &Value) -> HashMap<Key, usize> {
    let mut links: Vec<(Key, Key)> = Vec::new();
    let mut of: BTreeMap<Key, usize> = BTreeMap::new();
    let graphs = list(&module["graphs"]);
    for g in graphs {
        let graph = text(&g["name"]);
        let parent = &g["parent"];
        for n in list(&g["nodes"]) {
            let at = |input: bool, k: u32| (graph.clone(), text(&n["name"]), input, k);
            let above =
                |input: bool, k: u32| (text(&parent["graph"]), text(&parent["node"]), input, k);
            let (inputs, outputs) = (list(&n["inputs"]), list(&n["outputs"]));
            for o in 0..outputs.len() as u32 {
                of.insert(at(false, o), of.len());
            }
            for (k, i) in inputs.iter().enumerate() {
                let k = k as u32;
                of.insert(at(true, k), of.len());
                if let Some(from) = i["from"].as_str() {
                    let (node, o) = split(from);
                    links.push((at(true, k), (graph.clone(), node, false, o)));
                }
                if n["type"] == "NetOutput" && !parent.is_null() {
                    let to = i["attrs"]["_parent_node_index"]
                        .as_u64()
                        .map_or(k, |t| t as u32);
                    links.push((at(true, k), above(false, to)));
                }
                for (o, out) in outputs.iter().enumerate() {
                    let o = o as u32;
                    let flag = |name: &str| n["attrs"][name] == true;
                    let named = flag("reference") && i["name"] == out["name"];
                    let view = n["type"] == "Reshape" && o == 0 && k == 0;
                    let reuse = out["reuse_input"] == k;
                    if named || view || reuse || (flag("_output_reuse_input") && k == 0) {
                        links.push((at(true, k), at(false, o)));
                    }
                }
            }
            if n["type"] == "Data" && !parent.is_null() {
                let k = n["attrs"]["_parent_node_index"].as_u64().unwrap_or(0) as u32;
                links.push((at(false, 0), above(true, k)));
            }
        }
    }
    loop {
        let mut changed = false;
        for (a, b) in &links {
            let low = of[a].min(of[b]);
            for k in [a, b] {
                changed |= of[k] != low;
                of.insert(k.clone(), low);
            }
        }
        if !changed {
            return of.into_iter().collect();
        }
    }
}

fn buffers(g: &Graph, classes: &HashMap<Key, usize>) -> HashMap<Anchor, usize> {
    let mut of = HashMap::new();
    for (id, n) in g.iter() {
        let (graph, node) = n.name.split_once('/').expect("graph/node");
        let mut put = |input: bool, k: u32| {
            let key = (graph.to_owned(), node.to_owned(), input, k);
            of.insert((id, input, k), classes[&key]);
        };
        (0..n.inputs.len()).for_each(|k| put(true, k as u32));
        (0..n.outputs.len()).for_each(|k| put(false, k as u32));
    }
    of
}

/// Runs all orders of one choice of branches.
fn run(module: &Value, branch: usize) -> (usize, usize, Option<String>) {
    let classes = classes(module);
    let mut flat = Flat::new(module, branch);
    let root = text(&module["graphs"][0]["name"]);
    flat.lay_out(&root, None);
    let graph = json!({ "graphs": [{ "name": "flat", "nodes": flat.nodes }] }).to_string();
    let loaded = io::json::read("flat.json", graph.as_bytes()).expect("it reads");
    assert!(loaded.defects.is_empty(), "{:?}\n{graph}", loaded.defects);
    let g = &loaded.module.graphs[0];
    let mut run = Run::with(g, buffers(g, &classes));
    run.explore(&mut BTreeSet::new(), &mut BTreeMap::new());
    (run.orders, run.reads, run.wrong)
}

const MIX: Mix = Mix {
    operators: 4,
    layout: false,
    subgraphs: true,
};

fn input(seed: u64) -> Option<String> {
    let text = module(&mut Rng::new(seed), MIX).to_string();
    let calls = ["\"If\"", "\"Case\"", "\"PartitionedCall\""];
    (!text.contains("\"While\"") && calls.iter().any(|c| text.contains(c))).then_some(text)
}

/// Whether an operator inside a subgraph, or a call in it, writes an input of that subgraph for its own use: by design the
/// read-write pass does not look at a subgraph's Data as a producer.
fn writes_its_graph_s_input(module: &Value) -> bool {
    let own_use = |n: &Value| {
        let size = n["attrs"]["_special_input_size"].as_i64();
        size.is_some_and(|s| s > 0) || n["attrs"]["_input_mutable"] == true
    };
    let below = &list(&module["graphs"])[1..];
    let any_own_use = below.iter().flat_map(|g| list(&g["nodes"])).any(own_use);
    below.iter().any(|g| {
        let nodes = list(&g["nodes"]);
        // The graph's inputs, and what passes their memory on.
        let mut from: BTreeSet<String> = BTreeSet::new();
        for n in nodes {
            let passes = n["attrs"]["reference"] == true || n["type"] == "Reshape";
            if n["type"] == "Data" || (passes && reads(n, &from)) {
                from.insert(text(&n["name"]));
            }
        }
        let special = |n: &Value| n["attrs"]["_special_input_size"].as_i64().is_some();
        let call = |n: &Value| !list(&n["subgraphs"]).is_empty() && any_own_use;
        nodes
            .iter()
            .any(|n| (special(n) || call(n)) && reads(n, &from))
    })
}

fn reads(n: &Value, from: &BTreeSet<String>) -> bool {
    let mut inputs = list(&n["inputs"]).iter().filter_map(|i| i["from"].as_str());
    inputs.any(|f| from.contains(&split(f).0))
}

fn module_json(module: &ge_conflict::ir::Module) -> Value {
    serde_json::from_str(&io::to_json(module)).expect("what is written is JSON")
}

#[test]
fn orders_see_right_values_through_calls() {
    let (mut graphs, mut orders, mut reads, mut by_design) = (0, 0, 0, 0);
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
            let (o, r, w) = run(&value, branch);
            orders += o;
            reads += r;
            if let Some(w) = w {
                let told = report.warnings.iter().any(|w| w.code == "RW_WRONG_GRAPH");
                if told || writes_its_graph_s_input(&value) {
                    by_design += 1;
                    break;
                }
                wrong.push((seed, branch, w, text.len()));
                break;
            }
        }
    }
    wrong.sort_by_key(|w| w.3);
    println!("{graphs} graphs, {orders} orders, {reads} reads, {by_design} wrong by design");
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
        wrong += usize::from((0..2).any(|b| run(&value, b).2.is_some()));
    }
    assert!(wrong > 20, "only {wrong} graphs are wrong to begin with");
}
