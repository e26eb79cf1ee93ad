//! A module laid out flat, once per choice of branches and rounds, and the memory of its inputs and outputs, worked out anew.

use super::simulation::Anchor;
use ge_conflict::ir::Graph;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An anchor of the module: graph, node, input or output, index.
pub type Key = (String, String, bool, u32);

pub fn text(v: &Value) -> String {
    v.as_str().unwrap_or_default().to_owned()
}

pub fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

pub fn split(from: &str) -> (String, u32) {
    let (node, index) = from.rsplit_once(':').expect("node:output");
    (node.to_owned(), index.parse().expect("an output's number"))
}

/// Graph and node of a flat node's name, `graph@instance/node`.
pub fn origin(name: &str) -> (&str, &str) {
    let (scope, node) = name.split_once('/').expect("scope/node");
    (scope.split_once('@').map_or(scope, |s| s.0), node)
}

pub struct Flat<'a> {
    graphs: HashMap<String, &'a Value>,
    /// Which branch of every If or Case is taken.
    branch: usize,
    /// How many rounds every While makes; an inner loop makes one less in every other round of the outer.
    rounds: usize,
    pub nodes: Vec<Value>,
    /// By scope and output: what it is in the flat graph, `node:output`.
    source: HashMap<(String, String), Value>,
    /// Begin and end of calls, by flat name.
    ends: BTreeSet<String>,
    scopes: usize,
}

impl<'a> Flat<'a> {
    pub fn new(module: &'a Value, branch: usize, rounds: usize) -> Flat<'a> {
        let graphs = list(&module["graphs"]).iter();
        let mut flat = Flat {
            graphs: graphs.map(|g| (text(&g["name"]), g)).collect(),
            branch,
            rounds,
            nodes: Vec::new(),
            source: HashMap::new(),
            ends: BTreeSet::new(),
            scopes: 0,
        };
        let root = text(&module["graphs"][0]["name"]);
        flat.lay_out(&root, None);
        flat
    }

    fn resolve(&self, scope: &str, from: &Value) -> Value {
        let key = (scope.to_owned(), text(from));
        self.source.get(&key).cloned().unwrap_or(Value::Null)
    }

    fn push(&mut self, name: &str, ty: &str, control: impl Into<Value>) {
        let id = self.nodes.len();
        self.nodes
            .push(json!({ "name": name, "type": ty, "control": control.into(), "id": id }));
    }

    /// Lays out a graph; a subgraph is given its inputs and what it begins after. Returns its results by the parent's output.
    fn lay_out(&mut self, name: &str, given: Option<(&[Value], &str)>) -> BTreeMap<u64, Value> {
        let graph = self.graphs[name];
        let scope = format!("{name}@{}", self.scopes);
        self.scopes += 1;
        let begin = given.map(|g| g.1);
        let mut results = BTreeMap::new();
        for n in list(&graph["nodes"]) {
            let (node, ty) = (text(&n["name"]), text(&n["type"]));
            if let Some((inputs, _)) = given {
                if ty == "Data" {
                    let k = n["attrs"]["_parent_node_index"].as_u64().unwrap_or(0) as usize;
                    self.source
                        .insert((scope.clone(), format!("{node}:0")), inputs[k].clone());
                    continue;
                }
                if ty == "NetOutput" {
                    for (k, i) in list(&n["inputs"]).iter().enumerate() {
                        let to = i["attrs"]["_parent_node_index"]
                            .as_u64()
                            .unwrap_or(k as u64);
                        results.insert(to, self.resolve(&scope, &i["from"]));
                    }
                    continue;
                }
            }
            // What an operator waits for: all of a call, and the beginning of the call that it is in.
            let mut control: BTreeSet<String> = list(&n["control"])
                .iter()
                .map(|c| self.waits_for(&scope, &text(c), begin))
                .collect();
            control.extend(begin.map(str::to_owned));
            for i in list(&n["inputs"]).iter().filter(|i| i["from"].is_string()) {
                let (from, _) = split(&text(&i["from"]));
                let end = format!("{scope}/{from}/end");
                if self.ends.contains(&end) {
                    control.insert(end);
                }
            }
            let flat = format!("{scope}/{node}");
            let inputs: Vec<Value> = list(&n["inputs"])
                .iter()
                .map(|i| self.resolve(&scope, &i["from"]))
                .collect();
            let below: Vec<String> = list(&n["subgraphs"]).iter().map(text).collect();
            if below.is_empty() {
                self.operator(n, &scope, &flat, inputs, control);
                continue;
            }
            // A call waits for the producers of its inputs, too.
            control.extend(inputs.iter().filter_map(|i| Some(split(i.as_str()?).0)));
            let first = self.nodes.len();
            self.push(&format!("{flat}/begin"), "Begin", json!(control));
            let begin = format!("{flat}/begin");
            let out = if ty == "While" {
                self.rounds(&below, inputs, begin)
            } else {
                let taken = &below[self.branch % below.len()];
                self.lay_out(taken, Some((&inputs, &begin)))
            };
            for (o, from) in out {
                self.source
                    .insert((scope.clone(), format!("{node}:{o}")), from);
            }
            let inside: Vec<Value> = self.nodes[first..]
                .iter()
                .map(|n| n["name"].clone())
                .collect();
            let end = format!("{flat}/end");
            self.push(&end, "End", inside);
            self.ends.insert(end);
        }
        results
    }

    fn operator(
        &mut self,
        n: &Value,
        scope: &str,
        flat: &str,
        inputs: Vec<Value>,
        control: BTreeSet<String>,
    ) {
        let mut copy = n.clone();
        for (k, i) in inputs.into_iter().enumerate() {
            copy["inputs"][k]["from"] = i;
        }
        for o in 0..list(&n["outputs"]).len() {
            let from = format!("{}:{o}", text(&n["name"]));
            self.source
                .insert((scope.to_owned(), from), format!("{flat}:{o}").into());
        }
        copy["name"] = flat.into();
        copy["control"] = json!(control);
        copy["id"] = self.nodes.len().into();
        self.nodes.push(copy);
    }

    /// Condition, body, condition, … one after the other; the condition has the last word.
    fn rounds(
        &mut self,
        below: &[String],
        mut state: Vec<Value>,
        mut begin: String,
    ) -> BTreeMap<u64, Value> {
        let rounds = self.rounds;
        for round in 0..=rounds {
            // An inner loop's rounds vary.
            self.rounds = rounds.saturating_sub(round % 2);
            let last = self.nodes.len();
            let test = self.lay_out(&below[0], Some((&state, &begin)));
            // The loop itself reads what its condition says.
            let cond = self.graphs[&below[0]];
            let scope = format!("{}@{}", below[0], self.scopes);
            self.scopes += 1;
            let sink = list(&cond["nodes"])
                .iter()
                .find(|n| n["type"] == "NetOutput");
            if let (Some(sink), Some(value)) = (sink, test.get(&0)) {
                let mut reader = sink.clone();
                reader["inputs"][0]["from"] = value.clone();
                let flat = format!("{scope}/{}", text(&sink["name"]));
                let wait = BTreeSet::from([begin.clone()]);
                self.operator(&reader, &scope, &flat, vec![value.clone()], wait);
            }
            begin = self.after(last, &begin, &scope);
            if round == rounds {
                break;
            }
            let last = self.nodes.len();
            let results = self.lay_out(&below[1], Some((&state, &begin)));
            for (k, v) in results {
                if let Some(s) = state.get_mut(k as usize) {
                    *s = v;
                }
            }
            begin = self.after(last, &begin, &scope);
        }
        self.rounds = rounds;
        (0..).zip(state).collect()
    }

    /// A node that runs when everything since `first` has run.
    fn after(&mut self, first: usize, begin: &str, scope: &str) -> String {
        let mut inside: Vec<Value> = self.nodes[first..]
            .iter()
            .map(|n| n["name"].clone())
            .collect();
        inside.push(begin.into());
        let name = format!("{scope}/done{}", self.nodes.len());
        self.push(&name, "End", inside);
        name
    }

    fn waits_for(&self, scope: &str, node: &str, begin: Option<&str>) -> String {
        let flat = format!("{scope}/{node}");
        let end = format!("{flat}/end");
        if self.ends.contains(&end) {
            return end;
        }
        // A subgraph's Data is there from the beginning.
        if self.nodes.iter().any(|n| n["name"] == flat.as_str()) {
            flat
        } else {
            begin.unwrap_or_default().to_owned()
        }
    }
}

fn is_loop(graphs: &[Value], parent: &Value) -> bool {
    graphs
        .iter()
        .filter(|g| g["name"] == parent["graph"])
        .flat_map(|g| list(&g["nodes"]))
        .any(|n| n["name"] == parent["node"] && n["type"] == "While")
}

/// Classes of anchors that share memory in the whole module.
pub fn classes(module: &Value) -> HashMap<Key, usize> {
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
                // What a loop's condition gives is no output of the loop.
                let condition = parent["index"] == 0 && is_loop(graphs, parent);
                if n["type"] == "NetOutput" && !parent.is_null() && !condition {
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
                    // A loop's rounds work in the memory of its inputs.
                    let state = n["type"] == "While" && o == k;
                    if state || named || view || reuse || (flag("_output_reuse_input") && k == 0) {
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

pub fn buffers(g: &Graph, classes: &HashMap<Key, usize>) -> HashMap<Anchor, usize> {
    let mut of = HashMap::new();
    for (id, n) in g.iter() {
        let (graph, node) = origin(&n.name);
        let mut put = |input: bool, k: u32| {
            let key = (graph.to_owned(), node.to_owned(), input, k);
            of.insert((id, input, k), classes[&key]);
        };
        (0..n.inputs.len()).for_each(|k| put(true, k as u32));
        (0..n.outputs.len()).for_each(|k| put(false, k as u32));
    }
    of
}
