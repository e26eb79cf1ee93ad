//! The subcommands as a user meets them: exit codes, the form of results, files written.

use ge_conflict::cli::{self, CheckOptions, LintOptions, Outcome, OutputFormat, RunTimeOptions};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A folder of this test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ge-conflict-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    /// A case's graph.
    fn case(&self, name: &str) -> PathBuf {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
        let text = std::fs::read_to_string(cases.join(format!("{name}.json"))).expect("the case");
        let case: Value = serde_json::from_str(&text).expect("the case is JSON");
        self.file(&format!("{name}.json"), &case["input"].to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn check(file: &Path, stage: &str) -> CheckOptions {
    CheckOptions {
        file: file.to_owned(),
        stage: Some(stage.to_owned()),
        format: OutputFormat::Json,
        ..CheckOptions::default()
    }
}

fn json(o: &Outcome) -> Value {
    serde_json::from_str(&o.stdout).unwrap_or_else(|e| panic!("{e}: {:?}", o.stdout))
}

#[test]
fn exit_codes() {
    let f = Folder::new("exit");
    for (case, stage, exit) in [
        ("FR3", "layout", 0),
        ("H3", "hccl", 0), // A mark alone.
        ("H2", "hccl", 1),
        ("L5", "lint", 1),
        ("H6b", "hccl", 2),
        ("H6a", "layout", 2),
    ] {
        let out = cli::check(&check(&f.case(case), stage));
        assert_eq!(out.exit, exit, "{case}: {}", out.stdout);
        let v = json(&out);
        assert_eq!(v["schema_version"], 1);
        for key in ["inserted", "marks", "warnings", "errors", "graphs"] {
            assert!(v[key].is_array(), "{case}: {key}");
        }
    }
    let lint = LintOptions {
        file: f.case("L5"),
        ..LintOptions::default()
    };
    let out = cli::lint(&lint);
    assert_eq!(out.exit, 1);
    assert!(out.stdout.contains("W18888"), "{}", out.stdout);
}

#[test]
fn bad_input_says_where_in_both_forms() {
    let f = Folder::new("bad");
    let wrong = "{ \"graphs\": [\n {\"name\": \"root\", \"nodes\": [ {\"name\": 5} ] } ] }";
    for (name, content, place) in [
        ("wrong.json", wrong, "wrong.json:2:39: "),
        ("empty.json", "", "empty.json:1:1: "),
        (
            "cut.txt",
            "graph {\n op { name: \"a\" typ\n",
            "cut.txt:3:1: ",
        ),
    ] {
        let mut o = check(&f.file(name, content), "all");
        let out = cli::check(&o);
        assert_eq!(out.exit, 2);
        assert!(out.stderr.contains(place), "{}", out.stderr);
        let v = json(&out);
        assert_eq!(v["errors"][0]["code"], "BAD_INPUT");
        assert!(
            v["errors"][0]["why"]
                .as_str()
                .is_some_and(|w| w.contains(place))
        );
        o.format = OutputFormat::Text;
        let out = cli::check(&o);
        assert_eq!((out.exit, out.stdout.as_str()), (2, ""));
        assert!(out.stderr.contains(place), "{}", out.stderr);
    }
    let missing = f.0.join("missing.json");
    assert_eq!(
        json(&cli::check(&check(&missing, "all")))["errors"][0]["code"],
        "BAD_INPUT"
    );
    let good = f.case("H2");
    assert_eq!(cli::check(&check(&good, "nonsense")).exit, 2);
    let mut o = check(&good, "hccl");
    o.graph = Some("nowhere".into());
    assert_eq!(cli::check(&o).exit, 2);
}

#[test]
fn what_is_written_needs_nothing_more() {
    let f = Folder::new("write");
    let (fixed, dot) = (f.0.join("fixed.json"), f.0.join("out.dot"));
    let mut o = check(&f.case("H2"), "hccl");
    o.write = Some(fixed.clone());
    o.dot = Some(dot.clone());
    let out = cli::check(&o);
    let name = json(&out)["inserted"][0]["name"]
        .as_str()
        .map(str::to_owned);
    let name = name.expect("something is inserted");
    let picture = std::fs::read_to_string(&dot).expect("the picture");
    assert!(
        picture.contains(&name) && picture.contains("palegreen"),
        "{picture}"
    );
    let text = std::fs::read_to_string(&fixed).expect("the repaired module");
    assert!(text.contains(&name));
    assert_eq!(cli::check(&check(&fixed, "hccl")).exit, 0);

    // Also if nothing changed, but not after an error.
    let same = f.0.join("same.json");
    let mut o = check(&f.case("FR3"), "layout");
    o.write = Some(same.clone());
    assert_eq!(cli::check(&o).exit, 0);
    assert!(same.exists());
    let none = f.0.join("none.json");
    let mut o = check(&f.case("H6b"), "hccl");
    o.write = Some(none.clone());
    assert_eq!(cli::check(&o).exit, 2);
    assert!(!none.exists());
}

#[test]
fn an_anchor_is_explained() {
    let f = Folder::new("explain");
    let mut o = check(&f.case("IM4a"), "layout");
    o.format = OutputFormat::Text;
    o.explain = Some("concat.in.0".into());
    let out = cli::check(&o);
    assert_eq!(out.exit, 0);
    for part in [
        "one piece of memory",
        "one piece of memory, c.out.0 (GE's own name for it: c_out_0)",
        "CONTINUOUS_INPUT",
        "c.out.0",
        "IMMUTABLE_ADDRESS_OUTPUT",
    ] {
        assert!(out.stdout.contains(part), "{part}: {}", out.stdout);
    }
    for wrong in ["concat.in.9", "nobody.in.0", "junk"] {
        o.explain = Some(wrong.into());
        assert_eq!(cli::check(&o).exit, 2, "{wrong}");
    }
}

#[test]
fn one_graph_alone() {
    let f = Folder::new("graph");
    let mut o = check(&f.case("A9"), "atomic");
    o.graph = Some("sub".into());
    let v = json(&cli::check(&o));
    let inserted = v["inserted"].as_array().expect("a list");
    assert!(inserted.iter().all(|i| i["graph"] == "sub"), "{v}");
    assert_eq!(inserted.len(), 1);
}

#[test]
fn a_run_time_script_that_is_none() {
    let f = Folder::new("script");
    let files = vec![f.file("s.txt", "what is this\n")];
    let out = cli::run_time(&RunTimeOptions {
        files,
        format: OutputFormat::Json,
    });
    assert_eq!(out.exit, 2);
    assert!(out.stderr.contains("s.txt:1:"), "{}", out.stderr);
}

/// A module of one graph; `nodes` in JSON.
fn module(nodes: &str) -> String {
    format!("{{\"graphs\":[{{\"name\":\"root\",\"nodes\":[{nodes}]}}]}}")
}

#[test]
fn a_reused_input_that_is_not_there_ends_with_2() {
    let f = Folder::new("reuse");
    let graph = |k: usize| {
        module(&format!(
            "{{\"name\":\"x\",\"type\":\"Data\",\"outputs\":[{{}}]}},\
             {{\"name\":\"r\",\"type\":\"Relu\",\"inputs\":[{{\"from\":\"x:0\"}}],\"outputs\":[{{\"reuse_input\":{k}}}]}}"
        ))
    };
    let good = cli::check(&check(&f.file("good.json", &graph(0)), "layout"));
    assert_ne!(good.exit, 2, "{}", good.stdout);
    let bad = cli::check(&check(&f.file("bad.json", &graph(1)), "layout"));
    assert_eq!(bad.exit, 2);
    let v = json(&bad);
    assert_eq!(v["errors"][0]["code"], "BAD_REUSE_INPUT");
    let why = v["errors"][0]["why"].as_str().expect("a text");
    assert!(
        why.contains("output 0 of `r` reuses input 1") && why.ends_with("remove reuse_input"),
        "{why}"
    );
    assert!(why.contains("`r` has 1 input:"), "{why}");
}

#[test]
fn an_unknown_element_type_is_noted_once() {
    let f = Folder::new("dtype");
    let nodes = "{\"name\":\"x\",\"type\":\"Data\",\"outputs\":[{\"dtype\":\"flaot32\"}]},\
         {\"name\":\"r\",\"type\":\"Relu\",\"inputs\":[{\"from\":\"x:0\"}],\"outputs\":[{\"dtype\":\"flaot32\"}]}";
    let out = cli::check(&check(&f.file("typo.json", &module(nodes)), "layout"));
    assert_ne!(out.exit, 2, "{}", out.stdout);
    assert_eq!(out.stderr.matches("flaot32").count(), 1, "{}", out.stderr);
    assert!(out.stderr.contains("output 0 of x"), "{}", out.stderr);
}

#[test]
fn an_explanation_of_a_broken_graph_is_its_errors() {
    let f = Folder::new("cycle");
    let nodes = "{\"name\":\"upd\",\"type\":\"Relu\",\"inputs\":[{\"from\":\"g:0\"}],\"outputs\":[{}]},\
         {\"name\":\"g\",\"type\":\"Relu\",\"inputs\":[{\"from\":\"upd:0\"}],\"outputs\":[{}]}";
    let mut o = check(&f.file("cycle.json", &module(nodes)), "layout");
    o.explain = Some("g.in.0".into());
    o.format = OutputFormat::Text;
    let out = cli::check(&o);
    assert_eq!(out.exit, 2);
    let whole = ["upd -> g -> upd", "g -> upd -> g"];
    assert!(
        whole.iter().any(|w| out.stdout.contains(w)),
        "{}",
        out.stdout
    );
    o.format = OutputFormat::Json;
    assert_eq!(json(&cli::check(&o))["errors"][0]["code"], "CYCLE");
}

#[test]
fn the_warning_says_whether_the_pipeline_repairs_its_pair() {
    let f = Folder::new("repaired");
    // `upd` writes x in place; `late` reads x and no edge orders the two.
    let nodes = |mutable: bool| {
        module(&format!(
            "{{\"name\":\"x\",\"type\":\"Relu\",\"outputs\":[{{}}]}},\
             {{\"name\":\"upd\",\"type\":\"Work\",\"attrs\":{{\"_input_mutable\":{mutable},\"reference\":true}},\
             \"inputs\":[{{\"from\":\"x:0\",\"name\":\"v\"}}],\"outputs\":[{{\"name\":\"v\"}}]}},\
             {{\"name\":\"late\",\"type\":\"Relu\",\"inputs\":[{{\"from\":\"x:0\"}}],\"outputs\":[{{}}]}}"
        ))
    };
    let file = f.file("r.json", &nodes(true));
    let v = json(&cli::check(&check(&file, "all")));
    let why = v["warnings"][0]["why"].as_str().unwrap_or_default();
    let repair = v["warnings"][0]["conflict"]["story"]["repair"].as_str();
    assert!(
        repair.is_some_and(|r| r.contains("no pair without an order is left")),
        "{v}"
    );
    assert!(
        why.ends_with("`upd` writes the new copy `upd_input_0_Identity`"),
        "{v}"
    );
    let late = v["inserted"][0]["why"].as_str().unwrap_or_default();
    assert!(late.contains("no edge enforces it"), "{v}");
    // Lint alone repairs nothing, and an order that an edge enforces is called one.
    let v = json(&cli::check(&check(&file, "lint")));
    let why = v["warnings"][0]["why"].as_str().unwrap_or_default();
    assert!(!why.contains("settle"), "{v}");
    let ordered = nodes(true).replace(
        "\"name\":\"late\"",
        "\"control\":[\"upd\"],\"name\":\"late\"",
    );
    let v = json(&cli::check(&check(&f.file("o.json", &ordered), "all")));
    assert_eq!(v["warnings"].as_array().map(Vec::len), Some(0), "{v}");
    let late = v["inserted"][0]["why"].as_str().unwrap_or_default();
    assert!(late.contains("runs later"), "{v}");
}
