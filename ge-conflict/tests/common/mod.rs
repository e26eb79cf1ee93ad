//! Random graphs for the property tests.
#![allow(dead_code)]

pub mod exempt;
pub mod flat;
pub mod layout;
pub mod simulation;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

/// A seeded source of choices.
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n.max(1) as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// What random graphs contain.
#[derive(Clone, Copy)]
pub struct Mix {
    pub operators: usize,
    pub layout: bool,
    pub subgraphs: bool,
    /// Most subgraphs are loops.
    pub loops: bool,
}

struct GraphBuilder {
    name: String,
    nodes: Vec<Value>,
    /// `node:output` that may be read.
    values: Vec<String>,
}

impl GraphBuilder {
    fn push(&mut self, node: Value, outs: usize) {
        let name = node["name"].as_str().unwrap_or_default().to_owned();
        self.values.extend((0..outs).map(|o| format!("{name}:{o}")));
        self.nodes.push(node);
    }

    fn value(&self, r: &mut Rng) -> String {
        r.pick(&self.values).clone()
    }
}

/// A module with a root graph and, if wanted, some subgraphs.
pub fn module(r: &mut Rng, mix: Mix) -> Value {
    let mut graphs = Vec::new();
    let n = 3 + r.below(mix.operators);
    graph(r, mix, "root", None, 0, n, &mut graphs);
    graphs.sort_by_key(|g: &Value| g["name"] != "root");
    let options = if mix.layout {
        json!({ "feature_base_refreshable": r.chance(30), "static_memory_policy": if r.chance(20) { 4 } else { 0 },
                "single_op": r.chance(10), "offline": r.chance(10), "host_exec": r.chance(20) })
    } else {
        json!({})
    };
    json!({ "options": options, "graphs": graphs })
}

fn graph(
    r: &mut Rng,
    mix: Mix,
    name: &str,
    parent: Option<(Value, usize, usize)>,
    depth: usize,
    n: usize,
    out: &mut Vec<Value>,
) {
    let mut b = GraphBuilder {
        name: name.to_owned(),
        nodes: Vec::new(),
        values: Vec::new(),
    };
    let (inputs, outputs) = parent.as_ref().map_or((0, 0), |p| (p.1, p.2));
    if parent.is_some() {
        for k in 0..inputs {
            let node = json!({ "name": format!("{name}_d{k}"), "type": "Data", "attrs": { "_parent_node_index": k },
                               "outputs": [{ "name": "y" }] });
            b.push(node, 1);
        }
    } else {
        for k in 0..1 + r.below(2) {
            let ty = *r.pick(&["Data", "Data", "Const", "Variable", "RefData", "Make"]);
            b.push(
                json!({ "name": format!("{name}_s{k}"), "type": ty, "outputs": [{ "name": "y" }] }),
                1,
            );
        }
    }
    for k in 0..n {
        operator(r, mix, &mut b, k, depth, out);
    }
    let count = if parent.is_some() {
        outputs
    } else {
        1 + r.below(2)
    };
    let sinks: Vec<Value> = (0..count)
        .map(|k| json!({ "from": b.value(r), "name": format!("x{k}") }))
        .collect();
    b.nodes
        .push(json!({ "name": format!("{name}_out"), "type": "NetOutput", "inputs": sinks }));
    let parent = parent.map_or(Value::Null, |p| p.0);
    out.push(json!({ "name": b.name, "parent": parent, "nodes": b.nodes }));
}

fn operator(
    r: &mut Rng,
    mix: Mix,
    b: &mut GraphBuilder,
    k: usize,
    depth: usize,
    out: &mut Vec<Value>,
) {
    let name = format!("{}_n{k}", b.name);
    if mix.subgraphs && depth < 2 && r.chance(if mix.loops { 30 } else { 15 }) {
        return control_flow(r, mix, b, &name, depth, out);
    }
    let mut ins = 1 + r.below(2);
    let mut outs = 1 + usize::from(r.chance(20));
    let mut node = json!({ "name": name, "type": "Op" });
    let mut attrs = serde_json::Map::new();
    let mut same_name = false;
    match r.below(if mix.layout { 13 } else { 8 }) {
        0 | 1 => {}
        2 => {
            node["type"] = (*r.pick(&["Assign", "ApplyX"])).into();
            (ins, outs, same_name) = (2, 1, true);
            attrs.insert("reference".into(), true.into());
        }
        3 | 4 => {
            node["type"] = "HcomAllReduce".into();
            node["kernel_lib"] = "hccl".into();
            attrs.insert("_input_mutable".into(), true.into());
            attrs.insert("is_atomic_node".into(), r.chance(20).into());
            outs = ins;
        }
        5 => {
            node["type"] = (*r.pick(&["Identity", "ReadVariableOp", "Reshape"])).into();
            (ins, outs) = (1, 1);
        }
        6 => {
            attrs.insert("_special_input_size".into(), 32.into());
        }
        7 => {
            attrs.insert("atomic_output_index".into(), json!([0]));
            attrs.insert("_output_inplace_ability".into(), json!([[0, 0]]));
        }
        8 => node["type"] = "StreamSwitch".into(),
        9 => {
            ins = 2 + r.below(2);
            attrs.insert(
                (*r.pick(&["continuous_input", "_no_padding_continuous_input"])).into(),
                true.into(),
            );
            outs = 1;
        }
        10 => {
            outs = 2 + r.below(2);
            attrs.insert(
                (*r.pick(&["continuous_output", "_no_padding_continuous_output"])).into(),
                true.into(),
            );
            ins = 1;
            same_name = r.chance(40);
        }
        11 => {
            node["kernel_lib"] = (*r.pick(&["hccl", "custom"])).into();
            node["refreshable"] = false.into();
        }
        _ => {
            let concat = r.chance(50);
            node["type"] = (if concat { "PhonyConcat" } else { "PhonySplit" }).into();
            (ins, outs) = if concat { (2, 1) } else { (1, 2) };
            let attr = if concat {
                "_no_padding_continuous_input"
            } else {
                "_no_padding_continuous_output"
            };
            attrs.insert(attr.into(), true.into());
            attrs.insert("_output_reuse_input".into(), true.into());
        }
    }
    if same_name {
        attrs.insert("reference".into(), true.into());
    }
    let memory = |r: &mut Rng| {
        if mix.layout && r.chance(8) {
            *r.pick(&["p2p", "ts"])
        } else {
            "hbm"
        }
    };
    let inputs: Vec<Value> = (0..ins)
        .map(|i| {
            let n = if same_name && i == 0 {
                "ref".to_owned()
            } else {
                format!("x{i}")
            };
            json!({ "from": b.value(r), "name": n, "mem_type": memory(r) })
        })
        .collect();
    let outputs: Vec<Value> = (0..outs)
        .map(|o| json!({ "name": if same_name && o == 0 { "ref".to_owned() } else { format!("y{o}") }, "mem_type": memory(r) }))
        .collect();
    node["inputs"] = inputs.into();
    node["outputs"] = outputs.into();
    node["attrs"] = attrs.into();
    if r.chance(35) && !b.nodes.is_empty() {
        let before = r.pick(&b.nodes)["name"].clone();
        node["control"] = json!([before]);
    }
    b.push(node, outs);
}

fn control_flow(
    r: &mut Rng,
    mix: Mix,
    b: &mut GraphBuilder,
    name: &str,
    depth: usize,
    out: &mut Vec<Value>,
) {
    let ty = if mix.loops {
        *r.pick(&["While", "While", "While", "If", "PartitionedCall"])
    } else {
        *r.pick(&["If", "Case", "While", "PartitionedCall"])
    };
    let ins = 1 + r.below(2);
    let outs = if ty == "While" { ins } else { 1 + r.below(2) };
    let count = match ty {
        "PartitionedCall" => 1,
        _ => 2,
    };
    let inputs: Vec<Value> = (0..ins)
        .map(|i| json!({ "from": b.value(r), "name": format!("x{i}") }))
        .collect();
    let outputs: Vec<Value> = (0..outs)
        .map(|o| json!({ "name": format!("y{o}") }))
        .collect();
    for s in 0..count {
        let parent = json!({ "graph": b.name, "node": name, "index": s });
        let results = if ty == "While" && s == 0 { 1 } else { outs };
        let n = r.below(3);
        graph(
            r,
            mix,
            &format!("{name}_g{s}"),
            Some((parent, ins, results)),
            depth + 1,
            n,
            out,
        );
    }
    b.push(
        json!({ "name": name, "type": ty, "inputs": inputs, "outputs": outputs }),
        outs,
    );
}
