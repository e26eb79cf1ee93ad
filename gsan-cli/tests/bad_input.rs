//! Wrong files, places and words of every kind: one error that says what is wrong, the right exit code, and nothing lost.
#![cfg(target_os = "linux")]

mod common;

use common::{gsan, repository};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PTX: &str = "tests/kernels/rust/ptx/flag_handoff.ptx";
const SAVED: &str = include_str!("data/handoff.json");

fn scratch(name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad_input");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name.as_ref());
    std::fs::write(&path, content).unwrap();
    path
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("bad_input")
        .join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A run of the racy handoff.
fn handoff(file: &Path, more: &[&str]) -> Vec<OsString> {
    let one = "--kernel handoff_racy --grid 2 --block 32 --arg buf:u32[32] --arg buf:u32[1] --arg buf:u32[1]";
    let words = one.split(' ').chain(more.iter().copied());
    [OsString::from("run"), file.into()]
        .into_iter()
        .chain(words.map(OsString::from))
        .collect()
}

/// Just one line begins with `error: `, and it has these words.
#[track_caller]
fn refused<S: AsRef<OsStr>>(args: &[S], part: &str) {
    let (code, out, err) = gsan(args);
    let errors: Vec<&str> = err.lines().filter(|l| l.starts_with("error: ")).collect();
    assert_eq!((code, errors.len()), (2, 1), "{err}");
    assert!(errors[0].contains(part), "{part}: {err}");
    assert_eq!(out, "");
}

#[test]
fn files_of_every_wrong_kind() {
    let dir = folder("dir.ptx");
    let empty = scratch("empty.ptx", "");
    let source = scratch("kernel.cu", "__global__ void k() {}\n");
    let graph = scratch("graph.json", "{\"graphs\": []}");
    let binary = scratch("binary.ptx", [0x7f, 0x80, 0, 1]);
    let missing = Path::new("no/such/file");
    for (file, part) in [
        (&*dir, "Is a directory"),
        (&empty, "the file is empty"),
        (&source, "compile the source with `nvcc -lineinfo -ptx`"),
        (&graph, "`gsan graph check` operator graphs"),
        (&binary, "not UTF-8 text"),
        (missing, "cannot read no/such/file: No such file"),
    ] {
        refused(&handoff(file, &[]), part);
        let instrument = [
            OsStr::new("instrument"),
            file.as_os_str(),
            "-o".as_ref(),
            "-".as_ref(),
        ];
        refused(&instrument, part);
    }
    for (file, part) in [
        (&*dir, "Is a directory"),
        (
            &empty,
            "empty.ptx:1:1: not a report of `gsan run --format json`: EOF",
        ),
        (&source, "kernel.cu:1:1: not a report"),
        (&graph, "it has no schema_version"),
        (&binary, "not text"),
        (missing, "cannot read no/such/file"),
    ] {
        refused(&[OsStr::new("report"), file.as_os_str()], part);
    }
    for command in ["check", "lint", "run-time"] {
        for (file, part) in [
            (&*dir, "Is a directory"),
            (&empty, "empty.ptx:1:1: "),
            (&source, "kernel.cu:1:"),
            (missing, "can't be read: No such file"),
        ] {
            refused(
                &[OsStr::new("graph"), command.as_ref(), file.as_os_str()],
                part,
            );
        }
    }
}

/// What is wrong with a module is shown in its line, also where that is no mistake of syntax.
#[test]
fn a_caret_under_what_is_wrong() {
    let head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n";
    let with = |from: &str, to: &str| format!("{head}}}\n").replacen(from, to, 1).into_bytes();
    let mut stray = with("ret;", "? ret;");
    let at = stray.iter().position(|b| *b == b'?').unwrap();
    stray[at] = 0xff;
    for (name, text, line, caret) in [
        ("cut.ptx", head.as_bytes().to_vec(), "7 | ", 4),
        ("narrow.ptx", with("64", "32"), "3 | .address_size 32", 4),
        ("old.ptx", with("sm_90", "sm_60"), "2 | .target sm_60", 12),
        ("stray.ptx", stray, "6 | \u{fffd} ret;", 4),
    ] {
        let file = scratch(name, text);
        let (code, _, err) = gsan(&[
            OsStr::new("instrument"),
            file.as_os_str(),
            "-o".as_ref(),
            "-".as_ref(),
        ]);
        let lines: Vec<&str> = err.lines().collect();
        assert_eq!((code, lines.len()), (2, 4), "{err}");
        assert_eq!((lines[2], lines[3].find('^')), (line, Some(caret)), "{err}");
    }
}

#[test]
fn content_that_never_ends_is_not_read_to_its_end() {
    let args = "--kernel k --grid 1 --block 1 --arg buf:u32[4]=@/dev/zero";
    let args: Vec<&str> = ["run", PTX].into_iter().chain(args.split(' ')).collect();
    refused(&args, "/dev/zero has more bytes than `arg0`");
}

#[test]
fn names_that_are_no_text() {
    let name = |end: &str| {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(end.bytes());
        OsString::from_vec(bytes)
    };
    // As a subcommand, and as the value of an option that is text.
    refused(&[name("")], "unrecognized subcommand");
    refused(
        &[
            OsString::from("run"),
            PTX.into(),
            "--kernel".into(),
            name(""),
        ],
        "invalid UTF-8",
    );
    let ptx = scratch(name(".ptx"), std::fs::read(repository().join(PTX)).unwrap());
    let (code, out, err) = gsan(&handoff(&ptx, &[]));
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("error[RAW]"), "{out}");
    let report = scratch(name(".json"), SAVED);
    let (code, _, err) = gsan(&[OsStr::new("report"), report.as_os_str()]);
    assert_eq!(code, 0, "{err}");
    let cut = scratch(name(".cut.json"), "{");
    refused(
        &[OsStr::new("report"), cut.as_os_str()],
        ":1:1: not a report",
    );
}

#[test]
fn what_was_found_is_not_lost_with_its_file() {
    let ptx = repository().join(PTX);
    for (out, why) in [
        ("/no/such/folder/r.txt", "No such file"),
        ("/dev/full", "No space left"),
        ("/", "Is a directory"),
    ] {
        for format in ["text", "json"] {
            let (code, shown, err) = gsan(&handoff(&ptx, &["--out", out, "--format", format]));
            assert_eq!(code, 2, "{err}");
            let said = format!("error: cannot write {out}: {why}");
            assert!(
                err.contains(&said) && err.contains("; the standard output has it instead\n"),
                "{err}"
            );
            assert!(shown.contains("RAW"), "{shown}");
        }
    }
    // Nor with the standard output.
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gsan"))
        .args(handoff(&ptx, &[]))
        .env("GSAN_DEVICE", "sim")
        .stdin(Stdio::null())
        .stdout(full)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err.contains("error[RAW]") && err.contains("error: cannot write"),
        "{err}"
    );
}

#[test]
fn an_output_does_not_take_the_inputs_place() {
    let text = std::fs::read_to_string(repository().join(PTX)).unwrap();
    let ptx = scratch("kept.ptx", &text);
    let path = ptx.to_str().unwrap();
    let part = "that is the input; give the output another name";
    refused(&["instrument", path, "-o", path], part);
    refused(&handoff(&ptx, &["--out", path]), part);
    let content = scratch("kept.bin", [1; 4]);
    let content_path = content.to_str().unwrap();
    let arg = format!("buf:u32[1]=@{content_path}");
    let call = [
        "run", path, "--kernel", "k", "--grid", "1", "--block", "1", "--arg", &arg,
    ];
    refused(&[&call[..], &["--out", content_path]].concat(), part);
    let report = scratch("kept.json", SAVED);
    let report_path = report.to_str().unwrap();
    refused(&["report", report_path, "--out", report_path], part);
    assert_eq!(std::fs::read_to_string(&ptx).unwrap(), text);
    assert_eq!(std::fs::read_to_string(&report).unwrap(), SAVED);
    assert_eq!(std::fs::read(&content).unwrap(), [1; 4]);
}

#[test]
fn options_that_contradict_each_other() {
    let ptx = repository().join(PTX);
    for other in [
        &["--stats"][..],
        &["--cell", "wide"],
        &["--sc-order"],
        &["--no-class", "race"],
    ] {
        let more = [&["--no-instrument"], other].concat();
        refused(&handoff(&ptx, &more), "cannot be used with");
    }
}
