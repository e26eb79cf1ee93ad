//! Cases as data: one file each in `tests/cases/`, a graph with what a stage must do to it.
//!
//! `expect` may hold: `exit`; `isolated`: all inputs (`node.k`, in a subgraph `graph/node.k`) that have an inserted node
//! directly before them; `count`: inserted nodes; `copies`: inserted nodes that copy; `nodes`: sizes of graphs; `marks`: all marks, or `marked`: some; `errors`,
//! `warnings`: codes; `from`: producers afterwards; `control`: control edges that exist afterwards; `types`: of what was
//! inserted; `symbols`: number of symbols; `anchors`: of anchors in them; `controls_out`: of the inserted node;
//! `unchanged`: the module is as before. Whatever it says, a second run must insert nothing.

use ge_conflict::Stage;
use ge_conflict::cli;
use ge_conflict::io;
use ge_conflict::ir::{GraphId, InRef, Module};
use ge_conflict::report::Report;
use ge_conflict::rw;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn load(input: &Value) -> io::Loaded {
    io::json::read("case.json", input.to_string().as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

/// Inputs with a node directly before them that was not there.
fn isolated(module: &Module, report: &Report) -> BTreeSet<String> {
    let new: BTreeSet<(&str, &str)> = report
        .inserted
        .iter()
        .filter(|i| !matches!(i.ty.as_str(), "Assign" | "MemSet" | "AtomicAddrClean"))
        .map(|i| (i.graph.as_str(), i.name.as_str()))
        .collect();
    let mut out = BTreeSet::new();
    for g in module.graph_ids() {
        let graph = module.graph(g);
        for (id, n) in graph.iter() {
            if new.contains(&(graph.name.as_str(), n.name.as_str())) {
                continue;
            }
            for k in 0..n.inputs.len() as u32 {
                let from = graph.producer(InRef { node: id, index: k });
                let from = from.map(|f| graph.node(f.node).name.as_str());
                if from.is_some_and(|f| new.contains(&(graph.name.as_str(), f))) {
                    let prefix = if g.0 == 0 {
                        String::new()
                    } else {
                        format!("{}/", graph.name)
                    };
                    out.insert(format!("{prefix}{}.{k}", n.name));
                }
            }
        }
    }
    out
}

fn find(module: &Module, path: &str) -> (GraphId, ge_conflict::ir::NodeId, u32) {
    let (graph, rest) = path
        .split_once('/')
        .map_or((None, path), |(g, r)| (Some(g), r));
    let g = graph.map_or(GraphId(0), |g| {
        module
            .find_graph(g)
            .unwrap_or_else(|| panic!("no graph {g}"))
    });
    let (node, index) = rest.rsplit_once('.').unwrap_or((rest, "0"));
    let id = module
        .graph(g)
        .find(node)
        .unwrap_or_else(|| panic!("no node {node}"));
    (g, id, index.parse().unwrap_or(0))
}

fn strings(v: &Value) -> BTreeSet<String> {
    v.as_array()
        .into_iter()
        .flatten()
        .map(|s| s.as_str().unwrap_or_default().to_owned())
        .collect()
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let case: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let (input, expect) = (&case["input"], &case["expect"]);
    let stage =
        Stage::from_name(case["stage"].as_str().unwrap_or_default()).ok_or("unknown stage")?;
    let loaded = load(input);
    let only = case["graph"]
        .as_str()
        .map(|g| loaded.module.find_graph(g).expect("--graph names a graph"));
    let before = io::to_json(&loaded.module);
    let conflict_before = rw::has_conflict(&loaded.module);
    let (report, module) = cli::run(loaded, stage, only);
    let json: Value = serde_json::from_str(&cli::to_json(&report)).map_err(|e| e.to_string())?;
    let mut wrong = Vec::new();
    let mut same = |what: &str, want: String, got: String| {
        if want != got {
            wrong.push(format!("{what}: expected {want}, got {got}"));
        }
    };
    for (key, want) in expect.as_object().into_iter().flatten() {
        match key.as_str() {
            "exit" => same(key, want.to_string(), report.exit_code().to_string()),
            "isolated" => same(
                key,
                format!("{:?}", strings(want)),
                format!("{:?}", isolated(&module, &report)),
            ),
            "count" => same(key, want.to_string(), report.inserted.len().to_string()),
            "copies" => {
                let n = report
                    .inserted
                    .iter()
                    .filter(|i| i.ty == "Identity")
                    .count();
                same(key, want.to_string(), n.to_string());
            }
            "types" => {
                let got: Vec<&str> = report.inserted.iter().map(|i| i.ty.as_str()).collect();
                same(key, want.to_string(), serde_json::json!(got).to_string());
            }
            "nodes" => {
                for (g, n) in want.as_object().into_iter().flatten() {
                    let id = module.find_graph(g).ok_or("no such graph")?;
                    same(key, n.to_string(), module.graph(id).len().to_string());
                }
            }
            "marks" | "marked" => {
                let set = |v: &Value| -> BTreeMap<String, String> {
                    v.as_array()
                        .into_iter()
                        .flatten()
                        .map(|m| {
                            (
                                format!("{}/{}", m["node"], m["attr"]),
                                m["value"].to_string(),
                            )
                        })
                        .collect()
                };
                let (want, mut got) = (set(want), set(&json["marks"]));
                if key == "marked" {
                    got.retain(|k, _| want.contains_key(k));
                }
                same(key, format!("{want:?}"), format!("{got:?}"));
            }
            "errors" | "warnings" => {
                let got: Vec<&str> = json[key]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|e| e["code"].as_str())
                    .collect();
                same(key, want.to_string(), serde_json::json!(got).to_string());
            }
            "from" => {
                for (at, source) in want.as_object().into_iter().flatten() {
                    let (g, node, index) = find(&module, at);
                    let got = module.graph(g).producer(InRef { node, index });
                    let got =
                        got.map(|o| format!("{}:{}", module.graph(g).node(o.node).name, o.index));
                    same(
                        at,
                        source.as_str().unwrap_or_default().to_owned(),
                        got.unwrap_or_default(),
                    );
                }
            }
            "control" => {
                for e in want.as_array().into_iter().flatten() {
                    let (from, to) = (
                        e[0].as_str().unwrap_or_default(),
                        e[1].as_str().unwrap_or_default(),
                    );
                    let (g, b, index) = match to.strip_prefix("before ") {
                        Some(t) => find(&module, t),
                        None => find(&module, to),
                    };
                    let graph = module.graph(g);
                    let b = if to.starts_with("before ") {
                        graph
                            .producer(InRef { node: b, index })
                            .map_or(b, |o| o.node)
                    } else {
                        b
                    };
                    let there = graph
                        .node(b)
                        .control_in
                        .iter()
                        .any(|c| graph.node(*c).name == from);
                    same(
                        &format!("control {from} => {to}"),
                        "true".into(),
                        there.to_string(),
                    );
                }
            }
            "symbols" => same(key, want.to_string(), report.symbols.len().to_string()),
            "anchors" => same(
                key,
                want.to_string(),
                report
                    .symbols
                    .iter()
                    .map(Vec::len)
                    .sum::<usize>()
                    .to_string(),
            ),
            "controls_out" => {
                let got: Vec<usize> = report
                    .inserted
                    .iter()
                    .map(|i| {
                        let g = module.find_graph(&i.graph).expect("its graph");
                        let id = module.graph(g).find(&i.name).expect("it is there");
                        module.graph(g).node(id).control_out.len()
                    })
                    .collect();
                same(key, want.to_string(), serde_json::json!(got).to_string());
            }
            "attr" => {
                for (at, want) in want.as_object().into_iter().flatten() {
                    let (node, name) = at.split_once('@').ok_or("attr: node@name")?;
                    let (g, id, _) = find(&module, node);
                    let got = module.graph(g).node(id).attrs.get(name);
                    let text = serde_json::from_str::<Value>(&io::to_json(&module))
                        .map_err(|e| e.to_string())?;
                    let got = got.and_then(|_| {
                        let nodes = text["graphs"][g.0 as usize]["nodes"].as_array()?;
                        let n = nodes
                            .iter()
                            .find(|n| n["name"] == module.graph(g).node(id).name.as_str())?;
                        Some(n["attrs"][name].clone())
                    });
                    same(at, want.to_string(), got.unwrap_or(Value::Null).to_string());
                }
            }
            "conflict" => same(key, want.to_string(), conflict_before.to_string()),
            "unchanged" => same(key, before.clone(), io::to_json(&module)),
            other => return Err(format!("unknown expectation {other}")),
        }
    }
    if report.errors.is_empty() {
        let written = io::to_json(&module);
        let again = io::json::read("again.json", written.as_bytes()).map_err(|e| e.to_string())?;
        if !again.defects.is_empty() && stage != Stage::Rw {
            return Err(format!("the result has defects: {:?}", again.defects));
        }
        let only = case["graph"]
            .as_str()
            .and_then(|g| again.module.find_graph(g));
        let (second, _) = cli::run(again, stage, only);
        if !second.inserted.is_empty() {
            wrong.push(format!("a second run inserts {:#?}", second.inserted));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n  ") + &format!("\n  got {}", cli::to_json(&report)))
    }
}

#[test]
fn every_case_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("tests/cases")
        .map(|f| f.expect("a file").path())
        .collect();
    files.sort();
    assert!(
        files.len() >= 250,
        "only {} cases: were some lost?",
        files.len()
    );
    let only = std::env::var("CASE").ok();
    let mut failed = Vec::new();
    for f in &files {
        let name = f
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if only.as_ref().is_some_and(|o| !name.starts_with(o.as_str())) {
            continue;
        }
        if let Err(e) = check(f) {
            failed.push(format!("{name}:\n  {e}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} cases fail\n{}",
        failed.len(),
        files.len(),
        failed.join("\n")
    );
}
