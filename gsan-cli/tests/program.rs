//! The program from outside: help, saved reports, instrumenting, what it says about wrong input.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn gsan(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gsan"));
    command
        .args(args)
        .current_dir(repository())
        .env_remove("GSAN_DEVICE")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

struct Done {
    code: i32,
    out: String,
    err: String,
}

fn done(output: Output) -> Done {
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    let done = Done {
        code: output.status.code().expect("ended by a signal"),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    assert!(!done.err.contains("panicked"), "{}", done.err);
    done
}

fn finish(args: &[&str]) -> Done {
    done(gsan(args).output().unwrap())
}

/// One line, `error: …`, that names the part; under it at most the line that is meant, with a caret.
#[track_caller]
fn refused(args: &[&str], part: &str) {
    let got = finish(args);
    assert_eq!(got.code, 2, "{args:?}: {}", got.err);
    let (first, excerpt) = got.err.split_once('\n').unwrap();
    assert!(
        first.starts_with("error: ") && first.contains(part),
        "{args:?} ({part}): {}",
        got.err
    );
    let excerpt: Vec<&str> = excerpt.lines().collect();
    let caret = |line: &&str| line.trim_start().starts_with('|') && line.ends_with('^');
    assert!(
        excerpt.is_empty() || excerpt.len() == 3 && caret(&excerpt[2]),
        "{args:?}: {}",
        got.err
    );
    assert_eq!(got.out, "");
}

/// As [`refused`]: the first line is `error: PATH:PLACE: …`, and the caret stands under the first `marked` of its line.
#[track_caller]
fn refused_at(args: &[&str], path: &Path, place: &str, marked: &str) {
    let got = finish(args);
    refused(args, &format!("error: {}:{place}: ", path.display()));
    let lines: Vec<&str> = got.err.lines().collect();
    let [_, _, line, caret] = lines[..] else {
        panic!("{args:?}: no excerpt in {}", got.err);
    };
    let number = place.split(':').next().unwrap();
    assert!(line.starts_with(&format!("{number} | ")), "{}", got.err);
    let at = caret.chars().position(|c| c == '^').unwrap();
    let rest: String = line.chars().skip(at).collect();
    assert!(rest.starts_with(marked), "{args:?}: {}", got.err);
}

fn scratch(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

const SAVED: &str = include_str!("data/handoff.json");
const SAVED_AS_TEXT: &str = include_str!("data/handoff.txt");
const PTX: &str = "tests/kernels/rust/ptx/flag_handoff.ptx";

#[test]
fn help_is_there_for_everything() {
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["demo", "-h"],
        &["report", "--help"],
        &["doctor", "--help"],
    ] {
        let got = finish(args);
        assert_eq!((got.code, got.err.as_str()), (0, ""));
        assert!(got.out.contains("Usage: gsan"), "{}", got.out);
    }
    let got = finish(&["--version"]);
    assert_eq!(
        (got.code, got.out.trim()),
        (0, concat!("gsan ", env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn bad_usage_is_exit_code_2() {
    for args in [
        &[][..],
        &["dmeo"],
        &["run"],
        &["run", "x.ptx", "--frobnicate"],
        &["run", "x.ptx", "--format", "xml"],
        &["run", "x.ptx", "--device", "tpu"],
        &["run", "x.ptx", "--seed", "-1"],
        &["run", "x.ptx", "--schedules", "0"],
        &["run", "x.ptx", "--grid", "0"],
        &["run", "x.ptx", "--arg", "u32=x"],
        &["instrument", "x.ptx"],
    ] {
        let got = finish(args);
        assert_eq!(got.code, 2, "{args:?}: {}", got.err);
        assert!(!got.err.is_empty() && got.out.is_empty(), "{args:?}");
        // Without any argument there is the help; everything else is one line and a hint.
        let lines: Vec<&str> = got.err.lines().collect();
        let [error, hint] = lines[..] else {
            assert!(args.is_empty(), "{args:?}: {}", got.err);
            continue;
        };
        assert!(error.starts_with("error: "), "{error}");
        assert!(
            hint.starts_with("hint: `gsan") && hint.contains("--help`"),
            "{hint}"
        );
    }
}

#[test]
fn a_scenario_in_which_nothing_happens_is_refused() {
    let refused_with = |text: &str| {
        let toml = scratch("nothing.toml", text);
        refused(
            &["run", toml.to_str().unwrap()],
            "there is nothing to check",
        );
    };
    let buffer = "[[buffer]]\nname = 'b'\ntype = 'u32'\nlen = 4\n";
    refused_with("name = 'x'\n");
    refused_with(&format!(
        "{buffer}[[step]]\nsynchronize = 'device'\n[expect]\nraces = []\n"
    ));
    // Host operations alone can race.
    let text = format!("{buffer}[[step]]\nmemset = 'b'\nvalue = 1\n");
    let toml = scratch("memset.toml", text);
    let got = finish(&["run", toml.to_str().unwrap(), "--device", "sim"]);
    assert_eq!(got.code, 0, "{}", got.err);
}

#[test]
fn a_saved_report_prints_as_text() {
    let path = scratch("report.json", SAVED);
    let got = finish(&["report", path.to_str().unwrap()]);
    assert_eq!((got.code, got.err.as_str()), (0, ""));
    assert_eq!(got.out, SAVED_AS_TEXT);
}

#[test]
fn a_saved_report_survives_the_way_through_json() {
    let path = scratch("again.json", SAVED);
    let got = finish(&["report", path.to_str().unwrap(), "--format", "json"]);
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&got.out), value(SAVED));
    let out = scratch("out.sarif", "");
    let got = finish(&[
        "report",
        path.to_str().unwrap(),
        "--format",
        "sarif",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!((got.code, got.out.as_str()), (0, ""));
    let sarif = value(&std::fs::read_to_string(out).unwrap());
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 1);
}

#[test]
fn no_colours_in_pipes_and_files() {
    let path = scratch("colour.json", SAVED);
    let got = finish(&["report", path.to_str().unwrap()]);
    assert!(!got.out.contains('\u{1b}'));
    let got = done(
        gsan(&["report", path.to_str().unwrap()])
            .env("CLICOLOR_FORCE", "1")
            .output()
            .unwrap(),
    );
    assert!(got.out.contains('\u{1b}'));
    let got = done(gsan(&["report", "no.json"]).output().unwrap());
    assert!(!got.err.contains('\u{1b}'));
}

#[test]
fn a_report_that_is_none_is_refused_with_its_line() {
    let check = |name: &str, text: &str, part: &str| {
        refused(&["report", scratch(name, text).to_str().unwrap()], part);
    };
    check("cut.json", &SAVED[..SAVED.len() / 2], "cut.json:");
    check(
        "empty.json",
        "",
        "empty.json:1:1: not a report of `gsan run --format json`: EOF",
    );
    check("other.json", "{}", "other.json: not a gsan report");
    check(
        "later.json",
        &SAVED.replacen(": 1", ": 99", 1),
        "schema_version 99",
    );
    let binary = scratch("binary.json", b"\xff\xfe\0");
    refused(&["report", binary.to_str().unwrap()], "binary.json");
    refused(&["report", "no/such.json"], "no/such.json");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let path = scratch("pipe.json", SAVED);
    for args in [
        &["report", path.to_str().unwrap()][..],
        &["run", "--help"],
        &["demo", "--list"],
    ] {
        let mut child = gsan(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert!(
            child.wait().unwrap().code().is_some(),
            "{args:?} ended by a signal"
        );
        assert!(!err.contains("panicked"), "{err}");
    }
}

#[test]
fn the_two_forms_of_run_are_not_mixed() {
    let toml = scratch("s.toml", "name = 'x'\n");
    refused(
        &["run", toml.to_str().unwrap(), "--kernel", "k"],
        "--kernel belongs to the one-kernel form",
    );
    refused(&["run", PTX], "--kernel");
    refused(&["run", PTX, "--kernel", "k", "--grid", "1"], "--block");
}

#[test]
fn wrong_files_are_named_with_their_line() {
    refused(&["run", "no/such.toml"], "no/such.toml");
    let toml = scratch("key.toml", "name = 'x'\nsms = 3\n");
    refused(
        &["run", toml.to_str().unwrap()],
        "key.toml:2:1: unknown field `sms`",
    );
    let call = |file: &Path, part: &str| {
        refused(
            &[
                "run",
                file.to_str().unwrap(),
                "--kernel",
                "k",
                "--grid",
                "1",
                "--block",
                "1",
            ],
            part,
        );
    };
    call(Path::new("no/such.ptx"), "no/such.ptx");
    call(
        &scratch("elf.ptx", b"\x7fELF\x02\x01\x01\0\0"),
        "elf.ptx:1:1: ",
    );
    call(
        &scratch(
            "noise.ptx",
            "\n\n.version 8.0\n.target sm_80\n.entry k( {\n",
        ),
        "noise.ptx:",
    );
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

#[test]
fn a_mistake_in_a_file_is_shown_with_its_column_and_a_caret() {
    let one = ["--kernel", "k", "--grid", "1", "--block", "1"];
    let with = |first: &[&'static str], file: &Path, more: &[&'static str]| {
        let file = file.to_str().unwrap().to_string().leak();
        [first, &[&*file], more].concat()
    };
    let ptx = scratch(
        "caret.ptx",
        format!("{HEAD}.entry k() {{\n  add.s32 %r1, é, ;\n}}\n"),
    );
    for args in [
        with(&["instrument"], &ptx, &["-o", "-"]),
        with(&["run"], &ptx, &one),
        with(&["run"], &ptx, &[&one[..], &["--no-instrument"]].concat()),
        with(&["inspect"], &ptx, &one),
    ] {
        refused_at(&args, &ptx, "5:20", ";");
    }
    // What only the compiler sees.
    let short = scratch(
        "short.ptx",
        format!("{HEAD}.entry k() {{\n\n  add.s32;\n}}\n"),
    );
    refused_at(&with(&["run"], &short, &one), &short, "6:3", "add.s32");
    let reserved = scratch(
        "reserved.ptx",
        format!("{HEAD}.entry k() {{\n .reg .b32 %gsan_x;\n}}\n"),
    );
    refused_at(
        &with(&["instrument"], &reserved, &["-o", "-"]),
        &reserved,
        "5:12",
        "%gsan_x",
    );

    let toml = scratch("caret.toml", "name = 'é'\n[device]\n  sms = 'x'\n");
    refused_at(&with(&["run"], &toml, &[]), &toml, "3:9", "'x'");
    let cut = scratch("cut.toml", "name = 'x\n");
    refused_at(&with(&["run"], &cut, &[]), &cut, "1:10", "");
    let json = scratch("caret.json", "{\"schema_version\": 1, }\n");
    refused_at(&with(&["report"], &json, &[]), &json, "1:23", "}");
    let graph = scratch("caret_graph.json", "{\"graphs\": [\n{\"nodes\": 3} ] }");
    refused_at(&with(&["graph", "check"], &graph, &[]), &graph, "2:11", "3");
    let script = scratch("caret.txt", "# é\nfrob 1\n");
    refused_at(
        &with(&["graph", "run-time"], &script, &[]),
        &script,
        "2:1",
        "frob",
    );
}

#[test]
fn a_mistake_in_inline_ptx_is_shown_at_its_line_of_the_scenario() {
    let text = |quote: &str, body: &str| {
        format!(
            "[[module]]\nptx = {quote}\n{HEAD}.entry k() {{\n{body}\n}}\n{quote}\n[[step]]\nlaunch = 'k'\ngrid = [1]\n\
             block = [1]\nargs = []\n"
        )
    };
    for (quote, body, place, marked) in [
        ("'''", " add.s32 %r1, %r2, ;", "7:20", ";"),
        ("\"\"\"", " add.s32 %r1, %r2, ;", "7:20", ";"),
        ("'''", " add.s32;", "7:2", "add"),
    ] {
        let toml = scratch("inline.toml", text(quote, body));
        refused_at(
            &["run", toml.to_str().unwrap(), "--device", "sim"],
            &toml,
            place,
            marked,
        );
    }
    // With escapes the text is not the file's: its own line is named.
    let toml = scratch("escaped.toml", text("\"\"\"", "\\tadd.s32 %r1, ;"));
    refused(
        &["run", toml.to_str().unwrap()],
        "escaped.toml:1: module `module0`, line 5:15: expected an operand",
    );
}

#[test]
fn a_byte_order_mark_is_no_mistake() {
    let mark = "\u{feff}";
    let report = scratch("bom.json", format!("{mark}{SAVED}"));
    let got = finish(&["report", report.to_str().unwrap()]);
    assert_eq!((got.code, got.err.as_str()), (0, ""));
    let toml = scratch(
        "bom.toml",
        format!(
            "{mark}[[buffer]]\nname = 'b'\ntype = 'u32'\nlen = 4\n[[step]]\nmemset = 'b'\nvalue = 1\n"
        ),
    );
    let got = finish(&["run", toml.to_str().unwrap(), "--device", "sim"]);
    assert_eq!(got.code, 0, "{}", got.err);
    let graph = scratch(
        "bom_graph.json",
        format!("{mark}{{\"graphs\": [{{\"name\": \"root\", \"nodes\": []}}]}}"),
    );
    let got = finish(&["graph", "check", graph.to_str().unwrap()]);
    assert_eq!(got.code, 0, "{}", got.err);
}

#[test]
fn print_names_a_buffer() {
    let call = [
        "run", PTX, "--kernel", "k", "--grid", "1", "--block", "1", "--arg", "u32=1", "--print",
    ];
    let with = |what: &'static str| call.into_iter().chain([what]).collect::<Vec<_>>();
    refused(&with("0"), "argument 0 is not a buffer");
    refused(&with("4"), "numbered from 0");
    refused(&with("data"), "no such buffer");
}

#[test]
fn instrumented_modules_have_the_hooks_and_the_users_text() {
    let out = scratch("out.ptx", "");
    let got = finish(&["instrument", PTX, "-o", out.to_str().unwrap()]);
    assert_eq!(got.code, 0, "{}", got.err);
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.contains("__gsan_access") && text.contains(".param .u64 __gsan_launch"));
    let to_stdout = finish(&["instrument", PTX, "-o", "-"]);
    assert_eq!(to_stdout.out, text);
    // What `gsan run` has linked: the module declares what it calls, and a second file defines it.
    let (module, runtime) = (scratch("apart.ptx", ""), scratch("runtime.ptx", ""));
    let (to, beside) = (module.to_str().unwrap(), runtime.to_str().unwrap());
    let got = finish(&["instrument", PTX, "-o", to, "--runtime", beside]);
    assert_eq!(got.code, 0, "{}", got.err);
    assert!(got.err.contains("at most 64 registers"), "{}", got.err);
    let read = |path| std::fs::read_to_string(path).unwrap();
    assert!(read(to).contains(".extern .func __gsan_access(") && read(to).len() < text.len() / 10);
    assert!(read(beside).contains(".visible .func __gsan_access("));
    for (other, part) in [(PTX, "that is the input"), (to, "another name")] {
        refused(&["instrument", PTX, "-o", to, "--runtime", other], part);
    }
    refused(&["instrument", "no/such.ptx", "-o", "x"], "no/such.ptx");
    refused(
        &["instrument", PTX, "-o", "/no/such/folder/x.ptx"],
        "/no/such/folder/x.ptx",
    );
    let cut = scratch(
        "cut.ptx",
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n  ld.global.u32 %r1, [",
    );
    refused(
        &["instrument", cut.to_str().unwrap(), "-o", "-"],
        "cut.ptx:",
    );
}

#[test]
fn doctor_says_what_there_is() {
    let got = done(
        gsan(&["doctor"])
            .env("GSAN_DEVICE", "sim")
            .output()
            .unwrap(),
    );
    assert_eq!((got.code, got.err.as_str()), (0, ""));
    for part in [
        "gsan",
        "runtime PTX",
        "driver",
        "simulated GPU",
        "ptxas",
        "device tool-chain",
    ] {
        assert!(got.out.contains(part), "{part}: {}", got.out);
    }
}

#[test]
fn the_demo_lists_its_pairs() {
    let got = finish(&["demo", "--list"]);
    assert_eq!(got.code, 0);
    assert!(
        got.out.lines().count() >= 5 && got.out.contains("flag_handoff"),
        "{}",
        got.out
    );
    refused(&["demo", "--only", "nothing"], "flag_handoff");
}

/// The flag handoff of the test kernels, on the simulator.
fn handoff(kernel: &str, more: &[&str]) -> Done {
    let args = [
        "--arg",
        "buf:u32[32]",
        "--arg",
        "buf:u32[1]",
        "--arg",
        "buf:u32[1]",
        "--device",
        "sim",
    ];
    let mut call = vec![
        "run", PTX, "--kernel", kernel, "--grid", "2", "--block", "32",
    ];
    call.extend(args);
    call.extend(more);
    finish(&call)
}

#[test]
fn a_race_is_exit_code_1_and_its_repaired_twin_0() {
    let got = handoff("handoff_racy", &[]);
    assert_eq!(got.code, 1, "{}", got.err);
    for part in [
        "error[RAW]",
        "src/lib.rs:",
        "^",
        "`arg0`+0",
        "by thread (0,0,0) of block (1,0,0)",
        "earlier access",
    ] {
        assert!(got.out.contains(part), "{part}: {}", got.out);
    }
    let got = handoff("handoff_fixed", &["--schedules", "4"]);
    assert_eq!(got.code, 0, "{}", got.out);
    assert!(got.out.contains("no race found"), "{}", got.out);
}

#[test]
fn one_seed_is_one_run_and_schedules_add_up() {
    let json = |more: &[&str]| {
        let more: Vec<_> = ["--format", "json"].iter().chain(more).copied().collect();
        let got = handoff("handoff_racy", &more);
        serde_json::from_str::<serde_json::Value>(&got.out)
            .unwrap_or_else(|e| panic!("{e}: {}{}", got.out, got.err))
    };
    let first = json(&["--seed", "3"]);
    assert_eq!(first, json(&["--seed", "3"]));
    assert_eq!(
        (&first["seed"], &first["schedules"]),
        (&serde_json::json!(3), &serde_json::json!(1))
    );
    let both = json(&["--seed", "3", "--schedules", "2"]);
    assert_eq!(both["schedules"], 2);
    let checked = |v: &serde_json::Value| v["stats"]["checked_accesses"].as_u64().unwrap();
    assert_eq!(
        checked(&both),
        checked(&first) + checked(&json(&["--seed", "4"]))
    );
}

#[test]
fn printing_and_formats_do_not_mix_up_the_streams() {
    let got = handoff("handoff_fixed", &["--print", "2", "--print", "arg0:3"]);
    assert!(
        got.out.contains("\narg2 = [528]\narg0 = [1, 2, 3]\n"),
        "{}",
        got.out
    );
    let got = handoff("handoff_fixed", &["--print", "2", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&got.out).unwrap();
    assert_eq!(value["printed"][0]["values"], serde_json::json!(["528"]));
    assert!(got.err.contains("arg2 = [528]"), "{}", got.err);
    let out = scratch("handoff.sarif", "");
    let path = out.to_str().unwrap();
    let got = handoff(
        "handoff_fixed",
        &["--print", "2", "--format", "sarif", "--out", path],
    );
    assert_eq!(got.out, "arg2 = [528]\n");
    let sarif: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
}

/// A kernel that can have no hooks has no instrumented places, and what is only approximated is not called unchecked.
#[test]
fn what_is_not_checked_and_what_is_approximated() {
    let module = |attributes: &str, body: &str| {
        format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {attributes}\n{{\n\
             .reg .b64 %a; .reg .b32 %r;\nld.param.u64 %a, [p];\n{body}\nret;\n}}\n"
        )
    };
    let load = "ld.global.u32 %r, [%a];";
    let bounded = module(
        ".maxnreg 168",
        &format!("{load} {load} setmaxnreg.dec.sync.aligned.u32 40;"),
    );
    let bounded = scratch("bounded.ptx", bounded);
    let got = finish(&["instrument", bounded.to_str().unwrap(), "-o", "/dev/null"]);
    assert!(
        got.err
            .contains("1 kernel, 0 places instrumented, 1 not checked")
            && got.err.contains(" 0 repeated checks"),
        "{}",
        got.err
    );

    let thrown_away = scratch(
        "thrown.ptx",
        module("", "atom.global.cas.b32 _, [%a], 0, 1;"),
    );
    let place = thrown_away.to_str().unwrap();
    let args = "--kernel k --grid 1 --block 1 --arg buf:u32[1] --device sim";
    let run: Vec<&str> = ["run", place].into_iter().chain(args.split(' ')).collect();
    for args in [&run[..], &["instrument", place, "-o", "/dev/null"]] {
        let got = finish(args);
        assert_eq!(got.code, 0, "{}", got.err);
        assert!(
            got.err.contains("thrown.ptx:8: only approximated: atom")
                && !got.err.contains("8: not checked"),
            "{}",
            got.err
        );
    }
}

#[test]
fn what_was_left_out_is_said_on_demand_and_always_in_json() {
    let got = handoff("handoff_fixed", &[]);
    assert!(!got.out.contains("left out"), "{}", got.out);
    let got = handoff("handoff_fixed", &["--stats"]);
    assert!(
        got.out.contains("inside blocks: hooks at 2 of 2 barriers"),
        "{}",
        got.out
    );
    assert!(got.out.contains("left out: "), "{}", got.out);
    let instrument = finish(&["instrument", PTX, "-o", "/dev/null"]);
    let line = |text: &str| {
        let found = text.lines().find(|l| l.starts_with("left out: "));
        found.unwrap_or_default().to_string()
    };
    assert_eq!(line(&got.out), line(&instrument.err));

    let got = handoff("handoff_fixed", &["--format", "json", "--schedules", "2"]);
    let value: serde_json::Value = serde_json::from_str(&got.out).unwrap();
    let left = &value["stats"]["instrumentation"]["left_out"];
    let said = line(&instrument.err);
    for (key, words) in [
        ("parameter", " to parameter"),
        ("repeated", " repeated check"),
    ] {
        let number = left[key].as_u64().unwrap();
        assert!(said.contains(&format!(" {number}{words}")), "{said} {left}");
    }
    let saved = scratch("stats.json", &got.out);
    let got = finish(&["report", saved.to_str().unwrap(), "--stats"]);
    assert_eq!(line(&got.out), said);
    let got = handoff("handoff_racy", &["--no-instrument", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&got.out).unwrap();
    assert!(value["stats"]["instrumentation"].is_null());
}

#[test]
fn an_uninstrumented_run_finds_nothing_and_gives_the_same_values() {
    let got = handoff("handoff_racy", &["--no-instrument", "--print", "2"]);
    assert_eq!(got.code, 0, "{}", got.out);
    assert!(got.out.contains("arg2 = [528]"), "{}", got.out);
}

const SPIN: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry spin(.param .u64 p) {\n.reg .b64 %a;\n\
    .reg .b32 %r;\n.reg .pred %q;\nld.param.u64 %a, [p];\nL:\nld.volatile.global.u32 %r, [%a];\nsetp.eq.u32 %q, %r, 0;\n\
    @%q bra L;\nret;\n}\n";

#[test]
fn what_never_ends_is_reported_within_its_limits() {
    let ptx = scratch("spin.ptx", SPIN);
    let call = |more: &[&str]| {
        let mut args = vec![
            "run",
            ptx.to_str().unwrap(),
            "--kernel",
            "spin",
            "--grid",
            "1",
            "--block",
            "1",
        ];
        args.extend(["--arg", "buf:u32[1]", "--device", "sim", "--format", "json"]);
        args.extend(more);
        let got = finish(&args);
        assert_eq!(got.code, 3, "{}", got.err);
        assert_eq!(
            got.err.lines().filter(|l| l.starts_with("error: ")).count(),
            1,
            "{}",
            got.err
        );
        serde_json::from_str::<serde_json::Value>(&got.out).unwrap()
    };
    let steps = call(&["--budget", "10000"]);
    assert_eq!(steps["outcome"], "budget");
    assert!(
        steps["message"].as_str().unwrap().contains("spin"),
        "{steps}"
    );
    let time = call(&["--timeout", "1", "--budget", "1000000000000"]);
    assert_eq!(time["outcome"], "budget");
    assert!(
        time["message"].as_str().unwrap().contains("--timeout"),
        "{time}"
    );
}

#[test]
fn the_demo_shows_a_race_and_a_silent_twin_from_any_directory() {
    let output = gsan(&[
        "demo",
        "--device",
        "sim",
        "--only",
        "flag_handoff",
        "--schedules",
        "2",
    ])
    .current_dir("/")
    .output();
    let got = done(output.unwrap());
    assert_eq!(got.code, 0, "{}{}", got.out, got.err);
    for part in [
        "error[RAW]",
        "*data.add(i)",
        "^",
        "silent",
        "1 of 1 pairs as expected",
    ] {
        assert!(got.out.contains(part), "{part}: {}", got.out);
    }
}

#[test]
fn expectations_decide_the_exit_code_of_a_scenario() {
    let text = std::fs::read_to_string(repository().join("tests/scenarios/flag_handoff_racy.toml"))
        .unwrap();
    let ptx = repository().join(PTX);
    let text = text.replace(
        "../kernels/rust/ptx/flag_handoff.ptx",
        ptx.to_str().unwrap(),
    );
    let run = |name: &str, text: &str| {
        finish(&[
            "run",
            scratch(name, text).to_str().unwrap(),
            "--device",
            "sim",
            "--schedules",
            "2",
        ])
    };
    let got = run("holds.toml", &text);
    assert_eq!(got.code, 0, "{}", got.err);
    assert!(
        got.out
            .ends_with("as expected: everything under [expect] holds\n"),
        "{}",
        got.out
    );
    let cut = text.find("[expect]").unwrap();
    assert_eq!(run("none.toml", &text[..cut]).code, 1);
    let got = run(
        "differs.toml",
        &format!("{}[expect]\nraces = []\n", &text[..cut]),
    );
    assert_eq!(got.code, 1);
    assert!(
        got.err
            .contains("differs.toml: not expected: a RAW race of class missing-acquire on `data`"),
        "{}",
        got.err
    );
    let got = run(
        "value.toml",
        &format!("{text}\n[[expect.value]]\nbuffer = 'sum'\nvalues = [529]\n"),
    );
    assert_eq!(got.code, 1);
    assert!(
        got.err.contains("`sum`[0] is 528, expected 529"),
        "{}",
        got.err
    );
}

#[cfg(unix)]
#[test]
fn an_interrupt_prints_what_was_found() {
    let ptx = scratch("interrupted.ptx", SPIN);
    let mut command = gsan(&[
        "run",
        ptx.to_str().unwrap(),
        "--kernel",
        "spin",
        "--grid",
        "1",
        "--block",
        "1",
    ]);
    command.args([
        "--arg",
        "buf:u32[1]",
        "--device",
        "sim",
        "--format",
        "json",
        "--budget",
        "1000000000000",
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let got = done(child.wait_with_output().unwrap());
    assert_eq!(got.code, 3, "{}", got.err);
    let report: serde_json::Value = serde_json::from_str(&got.out).unwrap();
    assert_eq!(
        (&report["outcome"], &report["message"]),
        (&"budget".into(), &"interrupted".into())
    );
}

/// Warps that return before a `__syncthreads()`: a fault that names the way out, and the way out.
#[test]
fn warps_that_have_exited_at_a_barrier() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("early_return.ptx");
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .pred %p; .reg .b32 %r;\n\
                mov.u32 %r, %tid.x; setp.ge.u32 %p, %r, 32; @%p exit;\nbar.sync 0;\nret; }\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let run = |more: &[&str]| {
        let mut args = vec![
            "run", file, "--kernel", "k", "--grid", "1", "--block", "64", "--device", "sim",
        ];
        args.extend(more);
        finish(&args)
    };
    let fault = run(&[]);
    assert_eq!(fault.code, 3, "{}", fault.err);
    for part in [
        "warp 1 of 2 has exited",
        "PTX line 7",
        "--exited-warps arrive",
    ] {
        assert!(fault.err.contains(part), "{part}: {}", fault.err);
    }
    assert_eq!(run(&["--exited-warps", "arrive"]).code, 0);
    assert_eq!(run(&["--exited-warps", "fault"]).code, 3);
    let by_environment = gsan(&[
        "run", file, "--kernel", "k", "--grid", "1", "--block", "64", "--device", "sim",
    ])
    .env("GSAN_SIM_EXITED_WARPS", "arrive")
    .output()
    .unwrap();
    assert_eq!(done(by_environment).code, 0);
}
