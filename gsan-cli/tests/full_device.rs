//! A result that can't be written is lost, and that must not look like success: every command that prints a result, with the
//! standard output on a device that is full.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn graph() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full.json");
    let text =
        r#"{"graphs":[{"name":"root","nodes":[{"name":"x","type":"Data","outputs":[{}]}]}]}"#;
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_full_device_is_an_error_for_every_command() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let graph = graph();
    let graph = graph.to_str().unwrap();
    for args in [
        &["--help"][..],
        &["--version"],
        &["doctor"],
        &["demo", "--list"],
        &["report", "gsan-cli/tests/data/handoff.json"],
        &[
            "report",
            "gsan-cli/tests/data/handoff.json",
            "--format",
            "json",
        ],
        &[
            "instrument",
            "tests/kernels/rust/ptx/flag_handoff.ptx",
            "-o",
            "-",
        ],
        &["run", "tests/scenarios/atomic_ref_fixed.toml"],
        &["graph", "check", graph],
        &["graph", "check", graph, "--format", "json"],
        &["graph", "check", graph, "--explain", "x.out.0"],
        &["graph", "lint", graph],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_gsan"))
            .args(args)
            .current_dir(repository())
            .env("GSAN_DEVICE", "sim")
            .stdin(Stdio::null())
            .stdout(full())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{args:?}: {err}");
        assert!(
            err.contains("error: cannot write to the standard output"),
            "{args:?}: {err}"
        );
        assert!(!err.contains("panicked"), "{args:?}: {err}");
    }
}
