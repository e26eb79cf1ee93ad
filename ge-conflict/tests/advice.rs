//! What the text tells people to do by hand works: the edges that lint's warnings ask for settle them, whichever way is chosen,
//! and copies put in by hand under the names and with the attributes that are told leave nothing to repair.

use ge_conflict::cli::{self, CheckOptions};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

fn cases() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut all: Vec<(String, Value)> = std::fs::read_dir(folder)
        .expect("the cases")
        .map(|e| {
            let path = e.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a case");
            let case: Value = serde_json::from_str(&text).expect("JSON");
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, case["input"].clone())
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn check(name: &str, input: &Value, stage: &str) -> Value {
    // Several tests check the same case at the same time.
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let file: PathBuf = std::env::temp_dir().join(format!(
        "ge-advice-{}-{number}-{name}.json",
        std::process::id()
    ));
    std::fs::write(&file, input.to_string()).expect("a temporary file");
    let out = cli::check(&CheckOptions {
        file: file.clone(),
        stage: Some(stage.into()),
        format: cli::OutputFormat::Json,
        ..CheckOptions::default()
    });
    let _ = std::fs::remove_file(file);
    serde_json::from_str(&out.stdout).expect("JSON")
}

fn graph<'a>(input: &'a mut Value, name: &Value) -> &'a mut Vec<Value> {
    input["graphs"]
        .as_array_mut()
        .expect("graphs")
        .iter_mut()
        .find(|g| g["name"] == *name)
        .expect("the graph")["nodes"]
        .as_array_mut()
        .expect("nodes")
}

/// `add "control": [LIST] to `NODE`` in an advice, the `n`th time.
fn edge(advice: &str, n: usize) -> Option<(Vec<Value>, String)> {
    let rest = advice.split("add \"control\": ").nth(n + 1)?;
    let (list, rest) = rest.split_once(" to `")?;
    let list = serde_json::from_str(list).expect("a list of names");
    Some((list, rest.split('`').next()?.to_owned()))
}

#[test]
fn the_edges_that_lint_asks_for_settle_its_warnings() {
    let mut settled = [0, 0];
    for (name, input) in cases() {
        for choice in [0, 1] {
            let mut input = input.clone();
            for round in 0.. {
                let v = check(&name, &input, "lint");
                let Some(w) = v["warnings"].get(0) else {
                    settled[choice] += usize::from(round > 0);
                    break;
                };
                assert!(round < 20, "{name}: never settled: {w}");
                let advice = w["conflict"]["story"]["repair"]
                    .as_str()
                    .expect("an advice");
                let (list, node) = edge(advice, choice).expect("an edge to add");
                let nodes = graph(&mut input, &w["graph"]);
                let node = nodes
                    .iter_mut()
                    .find(|n| n["name"] == *node)
                    .expect("the node");
                if !node["control"].is_array() {
                    node["control"] = json!([]);
                }
                node["control"].as_array_mut().expect("a list").extend(list);
            }
        }
    }
    assert!(settled.iter().all(|n| *n >= 8), "{settled:?}");
}

/// Puts one copy of a result in; false if it is none that can be put in by hand without more.
fn put_in(input: &mut Value, i: &Value) -> bool {
    let list = |v: &Value| match v {
        Value::Null => Vec::new(),
        Value::Array(l) => l.clone(),
        one => vec![one.clone()],
    };
    let (before, after) = (list(&i["before"]), list(&i["after"]));
    let nodes = graph(input, &i["graph"]);
    let mut copy = json!({ "name": i["name"], "type": i["type"], "inputs": [], "outputs": [] });
    if i["attrs"].is_object() {
        copy["attrs"] = i["attrs"].clone();
    }
    let name = i["name"].as_str().expect("a name").to_owned();
    let mut places = Vec::new();
    for (k, b) in before.iter().enumerate() {
        let Some(at) = nodes.iter().position(|n| n["name"] == b["node"]) else {
            return false;
        };
        let index = b["input"].as_u64().expect("an index") as usize;
        let from = nodes[at]["inputs"][index]["from"].take();
        nodes[at]["inputs"][index]["from"] = json!(format!("{name}:{k}"));
        copy["inputs"]
            .as_array_mut()
            .expect("a list")
            .push(json!({ "from": from }));
        copy["outputs"]
            .as_array_mut()
            .expect("a list")
            .push(json!({}));
        places.push(at);
    }
    for (k, a) in after.iter().enumerate() {
        let Some(at) = nodes.iter().position(|n| n["name"] == a["node"]) else {
            return false;
        };
        let from = format!("{}:{}", a["node"].as_str().expect("a name"), a["output"]);
        for n in nodes.iter_mut() {
            for x in n["inputs"].as_array_mut().into_iter().flatten() {
                if x["from"] == *from {
                    x["from"] = json!(format!("{name}:{k}"));
                }
            }
        }
        copy["inputs"]
            .as_array_mut()
            .expect("a list")
            .push(json!({ "from": from }));
        copy["outputs"]
            .as_array_mut()
            .expect("a list")
            .push(json!({}));
        places.push(at + 1);
    }
    let Some(at) = places.into_iter().max() else {
        return false;
    };
    nodes.insert(at, copy);
    true
}

#[test]
fn copies_put_in_by_hand_leave_nothing_to_repair() {
    let mut repaired = 0;
    for (name, input) in cases() {
        let ids = input.to_string().contains("\"id\":");
        let v = check(&name, &input, "all");
        let inserted = v["inserted"].as_array().expect("a list");
        let copies = inserted.iter().all(|i| i["type"] == "Identity");
        let more = ["removed", "relinked", "control"]
            .iter()
            .any(|k| v[k].is_array());
        let errors = v["errors"].as_array().is_some_and(|e| !e.is_empty());
        if inserted.is_empty() || !copies || more || errors || ids {
            continue;
        }
        let mut input = input.clone();
        if !inserted.iter().all(|i| put_in(&mut input, i)) {
            continue;
        }
        let again = check(&name, &input, "all");
        assert_eq!(again["inserted"], json!([]), "{name}: {input}");
        assert_eq!(again["errors"], json!([]), "{name}: {input}");
        assert!(again["removed"].is_null(), "{name}: {}", again["removed"]);
        repaired += 1;
    }
    assert!(repaired >= 60, "only {repaired} cases");
}

#[test]
fn an_explanation_agrees_with_the_check() {
    let mut asked = 0;
    for (name, input) in cases() {
        let v = check(&name, &input, "all");
        if v["errors"].as_array().is_some_and(|e| !e.is_empty()) {
            continue;
        }
        let graphs = input["graphs"].as_array().expect("graphs");
        for i in v["inserted"].as_array().expect("a list") {
            let side = |key: &str, word: &str, number: &str| {
                let at = match &i[key] {
                    Value::Array(l) => l[0].clone(),
                    one => one.clone(),
                };
                let node = at["node"].as_str()?.to_owned();
                // What stands at another inserted operator is no anchor of the file.
                let known = |g: &Value| {
                    g["name"] == i["graph"]
                        && g["nodes"]
                            .as_array()
                            .into_iter()
                            .flatten()
                            .any(|n| n["name"] == *node)
                };
                graphs
                    .iter()
                    .any(known)
                    .then(|| format!("{node}.{word}.{}", at[number]))
            };
            let anchor = side("before", "in", "input").or_else(|| side("after", "out", "output"));
            let Some(anchor) = anchor else { continue };
            let file =
                std::env::temp_dir().join(format!("ge-explain-{}-{name}.json", std::process::id()));
            std::fs::write(&file, input.to_string()).expect("a temporary file");
            let out = cli::check(&CheckOptions {
                file: file.clone(),
                graph: None,
                explain: Some(anchor.clone()),
                ..CheckOptions::default()
            });
            let _ = std::fs::remove_file(file);
            // Lines are broken between any two words.
            let text: Vec<&str> = out.stdout.split_whitespace().collect();
            let text = text.join(" ");
            let sections = text
                .split("What the check would do")
                .next()
                .unwrap_or_default();
            let told = [
                "NO, ",
                "conflict between",
                ": needs a copy",
                " needs a copy ",
            ];
            assert!(
                told.iter().any(|t| sections.contains(t)),
                "{name}, {anchor}: {}\n{}",
                i["pass"],
                out.stdout
            );
            asked += 1;
        }
    }
    assert!(asked >= 150, "only {asked}");
}
