//! `gsan graph` from outside, on every case of ge-conflict: exit codes as ge-graph-format.md says, both forms of the result,
//! the repaired file, the picture, and an explanation.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

struct Case {
    name: String,
    file: PathBuf,
    stage: String,
    graph: Option<String>,
    expect: Value,
}

fn scratch() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("graph");
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Every case, its graph in a file of its own. The files are written once: tests run side by side.
fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(written_cases)
}

fn written_cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ge-conflict/tests/cases");
    let mut all: Vec<Case> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let case: Value =
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let file = scratch().join(format!("{name}.json"));
            std::fs::write(&file, case["input"].to_string()).unwrap();
            Case {
                name,
                file,
                stage: case["stage"].as_str().unwrap().to_owned(),
                graph: case["graph"].as_str().map(str::to_owned),
                expect: case["expect"].clone(),
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(all.len() >= 250, "only {} cases", all.len());
    all
}

fn gsan(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_gsan"))
        .arg("graph")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("ended by a signal")
}

/// The exit code that a result asks for.
fn due(result: &Value) -> i32 {
    let some = |key: &str| result[key].as_array().is_some_and(|l| !l.is_empty());
    match (some("errors"), some("inserted") || some("warnings")) {
        (true, _) => 2,
        (_, true) => 1,
        _ => 0,
    }
}

fn check<'a>(case: &'a Case, stage: &'a str, more: &[&'a str]) -> Output {
    let mut args = vec!["check", case.file.to_str().unwrap(), "--stage", stage];
    if let Some(g) = case.graph.as_deref().filter(|_| stage == case.stage) {
        args.extend(["--graph", g]);
    }
    args.extend(more);
    gsan(&args)
}

fn codes(result: &Value, key: &str) -> Vec<String> {
    let list = result[key].as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|e| e["code"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn exit_codes_follow_the_result() {
    for case in cases() {
        for stage in [case.stage.as_str(), "all"] {
            let json = check(case, stage, &["--format", "json"]);
            let result: Value = serde_json::from_str(&text(&json))
                .unwrap_or_else(|e| panic!("{} {stage}: {e}", case.name));
            assert_eq!(result["schema_version"], 1, "{}", case.name);
            assert_eq!(code(&json), due(&result), "{} {stage}", case.name);
            let words = check(case, stage, &[]);
            assert_eq!(code(&words), code(&json), "{} {stage} as text", case.name);
            for key in ["errors", "warnings"] {
                for c in codes(&result, key) {
                    assert!(text(&words).contains(&c), "{} {stage}: {c}", case.name);
                }
            }
            if stage != case.stage {
                continue;
            }
            if let Some(exit) = case.expect["exit"].as_i64() {
                assert_eq!(i64::from(code(&json)), exit, "{}", case.name);
            }
            if let Some(count) = case.expect["count"].as_u64() {
                let inserted = result["inserted"].as_array().map_or(0, Vec::len);
                assert_eq!(inserted as u64, count, "{}", case.name);
            }
        }
    }
}

#[test]
fn lint_is_the_stage_lint() {
    for case in cases() {
        let lint = gsan(&["lint", case.file.to_str().unwrap(), "--format", "json"]);
        let stage = gsan(&[
            "check",
            case.file.to_str().unwrap(),
            "--stage",
            "lint",
            "--format",
            "json",
        ]);
        assert_eq!(text(&lint), text(&stage), "{}", case.name);
        let result: Value = serde_json::from_str(&text(&lint)).unwrap();
        assert_eq!(code(&lint), due(&result), "{}", case.name);
    }
}

/// What is written needs nothing more, and nothing is written after an error.
#[test]
fn repaired_files_and_pictures() {
    for case in cases() {
        let (fixed, dot) = (
            scratch().join(format!("{}.fixed.json", case.name)),
            scratch().join(format!("{}.dot", case.name)),
        );
        let _ = std::fs::remove_file(&fixed);
        let more = [
            "--write",
            fixed.to_str().unwrap(),
            "--dot",
            dot.to_str().unwrap(),
        ];
        let first = code(&check(case, "all", &more));
        let picture = std::fs::read_to_string(&dot).unwrap();
        let (open, close) = (picture.matches('{').count(), picture.matches('}').count());
        assert!(
            picture.starts_with("digraph ") && open == close,
            "{}: {picture}",
            case.name
        );
        assert_eq!(fixed.exists(), first != 2, "{}", case.name);
        if first == 2 {
            continue;
        }
        let again = gsan(&["check", fixed.to_str().unwrap(), "--format", "json"]);
        let result: Value = serde_json::from_str(&text(&again)).unwrap();
        let inserted = result["inserted"].as_array().map_or(0, Vec::len);
        assert_eq!(
            (inserted, codes(&result, "errors")),
            (0, vec![]),
            "{}",
            case.name
        );
    }
}

/// The first input with a producer of each root graph is explained, in both forms.
#[test]
fn anchors_are_explained() {
    let mut explained = 0;
    for case in cases() {
        let input: Value =
            serde_json::from_str(&std::fs::read_to_string(&case.file).unwrap()).unwrap();
        let nodes = input["graphs"][0]["nodes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let anchor = nodes.iter().find_map(|n| {
            let k = n["inputs"]
                .as_array()?
                .iter()
                .position(|i| i["from"].is_string())?;
            Some(format!("{}.in.{k}", n["name"].as_str()?))
        });
        let Some(anchor) = anchor else { continue };
        let words = gsan(&["check", case.file.to_str().unwrap(), "--explain", &anchor]);
        match code(&words) {
            0 => {
                explained += 1;
                assert!(
                    text(&words).starts_with(&anchor),
                    "{}: {}",
                    case.name,
                    text(&words)
                );
            }
            // A graph with defects: its errors are the answer.
            c => assert_eq!(c, 2, "{}", case.name),
        }
    }
    assert!(explained > 200, "only {explained}");
}
