//! What people see: text, JSON, picture and explanation of fixed cases. `UPDATE_GOLDEN=1` rewrites the files.

use ge_conflict::cli::{self, CheckOptions, LintOptions, OutputFormat, RunTimeOptions};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn compare(name: &str, got: &str) {
    let path = folder().join(name);
    if std::env::var("UPDATE_GOLDEN").is_ok() {
        std::fs::write(&path, got).expect("the golden file is written");
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        want == got,
        "{name} differs; UPDATE_GOLDEN=1 rewrites it\n--- expected\n{want}\n--- got\n{got}"
    );
}

/// A case's graph as a file of its own.
fn input(case: &str) -> PathBuf {
    let text = std::fs::read_to_string(folder().join("../cases").join(format!("{case}.json")))
        .expect("the case");
    let v: Value = serde_json::from_str(&text).expect("JSON");
    // Two tests use the same case at the same time: one must not read what the other has half written.
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!(
        "ge-conflict-{}-{n}-{case}.json",
        std::process::id()
    ));
    std::fs::write(&path, v["input"].to_string()).expect("a temporary file");
    path
}

#[test]
fn text_of_cases() {
    for (case, stage) in [
        ("H1", "all"),
        ("H2", "hccl"),
        ("R2", "rw"),
        ("R7", "rw"),
        ("UI1", "layout"),
        ("F15", "layout"),
        ("A10", "atomic"),
        ("P0", "inplace"),
        ("W5", "layout"),
        ("S9", "subgraph"),
    ] {
        let file = input(case);
        let out = cli::check(&CheckOptions {
            file: file.clone(),
            stage: Some(stage.into()),
            ..CheckOptions::default()
        });
        compare(
            &format!("{case}-{stage}.txt"),
            &format!("{}exit {}\n", out.stdout, out.exit),
        );
        let out = cli::check(&CheckOptions {
            file,
            stage: Some(stage.into()),
            format: OutputFormat::Json,
            ..CheckOptions::default()
        });
        compare(&format!("{case}-{stage}.json"), &out.stdout);
    }
}

#[test]
fn lint_in_words() {
    let out = cli::lint(&LintOptions {
        file: input("L5"),
        ..LintOptions::default()
    });
    assert_eq!(out.exit, 1);
    compare("L5-lint.txt", &out.stdout);
}

#[test]
fn an_anchor_explained() {
    let file = input("F15");
    for (anchor, name) in [("sw2.in.0", "F15-sw2-in.txt"), ("a.out.0", "F15-a-out.txt")] {
        let out = cli::check(&CheckOptions {
            file: file.clone(),
            explain: Some(anchor.into()),
            ..CheckOptions::default()
        });
        assert_eq!(out.exit, 0, "{}", out.stderr);
        compare(name, &out.stdout);
    }
    for bad in ["sw2", "sw2.in.9", "nobody.in.0", "sw2.in.x"] {
        let out = cli::check(&CheckOptions {
            file: file.clone(),
            explain: Some(bad.into()),
            ..CheckOptions::default()
        });
        assert_eq!(out.exit, 2, "{bad}");
        assert!(out.stderr.starts_with("error: "), "{}", out.stderr);
    }
}

#[test]
fn the_picture_and_the_repaired_file() {
    let (dot, fixed) = (
        std::env::temp_dir().join(format!("{}.dot", std::process::id())),
        std::env::temp_dir().join(format!("{}.json", std::process::id())),
    );
    let options = CheckOptions {
        file: input("H2"),
        stage: Some("hccl".into()),
        dot: Some(dot.clone()),
        write: Some(fixed.clone()),
        ..CheckOptions::default()
    };
    assert_eq!(cli::check(&options).exit, 1);
    compare(
        "H2-hccl.dot",
        &std::fs::read_to_string(dot).expect("the picture"),
    );
    compare(
        "H2-hccl-fixed.json",
        &std::fs::read_to_string(&fixed).expect("the module"),
    );
    let again = cli::check(&CheckOptions {
        file: fixed,
        stage: Some("hccl".into()),
        ..CheckOptions::default()
    });
    assert_eq!(again.exit, 0, "{}", again.stdout);
}

#[test]
fn bad_options_and_files_end_with_2() {
    let file = input("H2");
    for o in [
        CheckOptions {
            file: "/nowhere/at/all.json".into(),
            ..CheckOptions::default()
        },
        CheckOptions {
            file: file.clone(),
            stage: Some("nonsense".into()),
            ..CheckOptions::default()
        },
        CheckOptions {
            file: file.clone(),
            graph: Some("nonsense".into()),
            ..CheckOptions::default()
        },
        CheckOptions {
            file: file.clone(),
            write: Some("/nowhere/at/all.json".into()),
            ..CheckOptions::default()
        },
    ] {
        let out = cli::check(&o);
        assert_eq!(out.exit, 2, "{o:?}");
        assert!(out.stderr.contains("error: "), "{o:?}");
    }
}

#[test]
fn a_script_of_streams() {
    let path = std::env::temp_dir().join(format!("{}.script", std::process::id()));
    let text = "streams 2\nmalloc 0 64\naccess 0 0 1\nfree 0 0 # local\nfree 0 1\nsync 0 0 1\nmalloc 1 64\nreuse 0,0|1,2\naddresses 16,32 16,0,8\n";
    std::fs::write(&path, text).expect("a temporary file");
    let out = cli::run_time(&RunTimeOptions {
        files: vec![path],
        ..RunTimeOptions::default()
    });
    assert_eq!(out.exit, 1);
    compare("script.txt", &out.stdout);
}
