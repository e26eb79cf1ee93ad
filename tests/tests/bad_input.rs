//! Input that is wrong, and kernels that end badly: one clear line, the right exit code, and nothing lost of what was
//! found before.

use gsan_tests::{Finished, Gsan, exit, kernels, scenario, scenarios};
use std::fs;
use std::path::{Path, PathBuf};

/// A file of this test's own.
fn scratch(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad_input");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn streams() -> PathBuf {
    kernels().join("ptx/streams.ptx")
}

fn endings(kernel: &str) -> Gsan {
    Gsan::kernel(&kernels().join("ptx/endings.ptx"), kernel, "2", "1")
}

/// `produce` takes a buffer and a u32.
fn produce(args: &[&str]) -> Finished {
    let run = Gsan::kernel(&streams(), "produce", "2", "32");
    args.iter()
        .fold(run, |run, arg| run.args(["--arg", arg]))
        .finish()
}

#[test]
fn the_same_call_with_nothing_wrong_is_accepted() {
    produce(&["buf:u32[64]", "u32=5"]).expect(exit::CLEAN);
}

#[test]
fn a_file_that_is_not_there() {
    Gsan::kernel(Path::new("no/such.ptx"), "k", "1", "1")
        .finish()
        .refused(&["no/such.ptx"]);
    Gsan::run(Path::new("no/such.toml"))
        .finish()
        .refused(&["no/such.toml"]);
}

#[test]
fn a_folder_in_place_of_a_file() {
    Gsan::kernel(&kernels(), "k", "1", "1")
        .finish()
        .refused(&["kernels"]);
}

#[test]
fn an_empty_file() {
    let empty = scratch("empty.ptx", "");
    Gsan::kernel(&empty, "k", "1", "1")
        .finish()
        .refused(&["empty.ptx"]);
}

#[test]
fn a_binary_file() {
    let noise: Vec<u8> = (0..5000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let binary = scratch("binary.ptx", noise);
    Gsan::kernel(&binary, "k", "1", "1")
        .finish()
        .refused(&["binary.ptx"]);
    let cubin = scratch(
        "elf.ptx",
        b"\x7fELF\x02\x01\x013\x07\0\0\0\0\0\0\0\x02\0\xbe\0",
    );
    Gsan::kernel(&cubin, "k", "1", "1")
        .finish()
        .refused(&["elf.ptx"]);
}

#[test]
fn a_file_cut_off_inside_a_statement_names_the_line() {
    let text = fs::read_to_string(streams()).unwrap();
    let cut = text.find("mad.lo.u32").unwrap() + 14;
    let line = text[..cut].lines().count();
    let path = scratch("cut.ptx", &text[..cut]);
    Gsan::kernel(&path, "produce", "2", "32")
        .args(["--arg", "buf:u32[64]", "--arg", "u32=5"])
        .finish()
        .refused(&[&format!("cut.ptx:{line}")]);
}

#[test]
fn a_file_cut_off_anywhere_is_refused_or_understood_but_never_crashes() {
    for file in [
        "ptx/streams.ptx",
        "rust/ptx/bfs.ptx",
        "cuda/ptx/grid_sync.ptx",
    ] {
        let text = fs::read(kernels().join(file)).unwrap();
        let out = scratch("cut_out.ptx", "");
        for part in 1..12 {
            // An odd stride, so that the cuts fall into every kind of place.
            let cut = text.len() * part / 12 + part * 7 % 11;
            let path = scratch("cut_anywhere.ptx", &text[..cut.min(text.len())]);
            let done = Gsan::new([
                "instrument".as_ref(),
                path.as_os_str(),
                "-o".as_ref(),
                out.as_os_str(),
            ])
            .finish();
            assert!(
                done.code == exit::CLEAN || done.code == exit::INPUT,
                "cut after {cut} bytes:\n{done}"
            );
        }
    }
}

#[test]
fn an_unknown_kernel_is_told_with_those_that_there_are() {
    Gsan::kernel(&streams(), "consumer", "1", "1")
        .finish()
        .refused(&["streams.ptx", "consumer", "consume", "produce"]);
}

#[test]
fn a_wrong_argument_list() {
    produce(&["buf:u32[64]"]).refused(&["produce"]);
    produce(&["buf:u32[64]", "u32=5", "u32=6"]).refused(&["produce"]);
    produce(&["buf:u32[64]", "u64=5"]).refused(&["produce"]);
    produce(&["buf:u32[64]", "buf:u32[1]"]).refused(&["produce"]);
    produce(&["u32=5", "buf:u32[64]"]).refused(&["produce"]);
}

#[test]
fn arguments_that_are_none() {
    for arg in [
        "u32=x",
        "u32=-1",
        "u8=300",
        "v32=1",
        "buf:u32[",
        "buf:u32[0x]",
        "buf:u32[4]=what",
        "buf:u32[4]=@no/such.bin",
        "",
    ] {
        let done = Gsan::kernel(&streams(), "produce", "1", "1")
            .args(["--arg", arg, "--arg", "u32=1"])
            .finish();
        assert!(done.code == exit::INPUT, "`{arg}` was taken:\n{done}");
        assert!(
            arg.is_empty() || done.err.contains(arg) || done.err.contains("no/such.bin"),
            "`{arg}` is not named:\n{done}"
        );
    }
}

#[test]
fn launch_shapes_that_no_device_takes() {
    for (grid, block) in [
        ("0", "1"),
        ("1", "0"),
        ("1", "1025"),
        ("1", "1,1,65"),
        ("1,70000", "1"),
        ("1,2,3,4", "1"),
        ("", "1"),
        ("-1", "1"),
    ] {
        let grid = format!("--grid={grid}");
        let done = Gsan::run(&streams())
            .args([
                "--kernel",
                "produce",
                &grid,
                "--block",
                block,
                "--arg",
                "buf:u32[64]",
                "--arg",
                "u32=1",
            ])
            .finish();
        assert!(
            done.code == exit::INPUT || done.code == exit::RUN,
            "{grid} --block {block} was taken:\n{done}"
        );
    }
}

#[test]
fn a_buffer_larger_than_the_device() {
    for len in [
        "40000000000000",
        "4611686018427387904",
        "99999999999999999999",
    ] {
        let done = produce(&[&format!("buf:u32[{len}]"), "u32=1"]);
        assert!(done.code == exit::INPUT || done.code == exit::RUN, "{done}");
        assert!(
            done.err.lines().filter(|l| l.contains("error")).count() <= 1,
            "one line was to say it:\n{done}"
        );
        assert!(!done.err.is_empty(), "{done}");
    }
}

/// Checks a run in the one-kernel form that found a race and then failed.
fn failed_after_a_race(run: Gsan, outcome: &str, words: &[&str]) {
    let done = run.args(["--format", "json"]).finish().expect(exit::RUN);
    let report = done.json();
    assert_eq!(report["outcome"], outcome, "{done}");
    let message = report["message"].as_str().unwrap_or_default();
    for word in words {
        assert!(
            message.contains(word),
            "the message was to say `{word}`:\n{done}"
        );
    }
    let races = report["races"].as_array().unwrap();
    assert!(
        races
            .iter()
            .any(|r| r["kind"] == "WAW" && r["buffer"] == "arg0"),
        "the race before the end is lost:\n{done}"
    );
}

#[test]
fn a_trap() {
    let run = endings("trap_after_race").args(["--arg", "buf:u32[32]", "--arg", "buf:u32[1]"]);
    failed_after_a_race(run, "trap", &["trap_after_race"]);
}

#[test]
fn address_zero() {
    let run = endings("null_after_race").args(["--arg", "buf:u32[32]", "--arg", "buf:u32[1]"]);
    failed_after_a_race(run, "fault", &["null_after_race", "0x0"]);
}

/// Line and address of the user's store, not of anything that was inserted; both where the address still lies among
/// the memory that gsan reserves (4 GiB on) and where it does not (100 TiB on).
#[test]
fn off_the_buffer() {
    let text = fs::read_to_string(kernels().join("ptx/endings.ptx")).unwrap();
    let kernel = text.find("off_the_end").unwrap();
    let line = text[..kernel + text[kernel..].find("st.global").unwrap()]
        .lines()
        .count();
    for gigabytes in ["u64=4", "u64=102400"] {
        let run = endings("off_the_end").args([
            "--arg",
            "buf:u32[32]",
            "--arg",
            gigabytes,
            "--format",
            "json",
        ]);
        let done = run.finish().expect(exit::RUN);
        let report = done.json();
        assert_eq!(report["outcome"], "fault", "{done}");
        let message = report["message"].as_str().unwrap_or_default();
        assert!(message.contains("off_the_end"), "{done}");
        assert!(
            message.contains(&format!("PTX line {line},")),
            "line {line}:\n{done}"
        );
    }
}

#[test]
fn a_cooperative_grid_that_does_not_fit_is_refused_before_it_hangs() {
    let text = moved("grid_sync_fixed").replace("grid = [4]", "grid = [100000]");
    Gsan::run(&scratch("cooperative.toml", text))
        .finish()
        .refused(&["normalise_fixed", "100000", "at most"]);
}

#[test]
fn barriers_that_do_not_meet() {
    let run = Gsan::kernel(
        &kernels().join("ptx/endings.ptx"),
        "barrier_mismatch",
        "2",
        "64",
    )
    .args(["--arg", "buf:u32[32]"]);
    failed_after_a_race(run, "deadlock", &["barrier_mismatch"]);
}

#[test]
fn an_endless_loop() {
    let run = endings("waits_for_ever").args([
        "--arg",
        "buf:u32[32]",
        "--arg",
        "buf:u32[1]",
        "--arg",
        "buf:u32[1]",
        "--budget",
        "200000",
    ]);
    failed_after_a_race(run, "budget", &["waits_for_ever"]);
}

#[test]
fn the_text_report_of_a_failed_run_has_the_race_too() {
    let done = endings("trap_after_race")
        .args(["--arg", "buf:u32[32]", "--arg", "buf:u32[1]"])
        .finish()
        .expect(exit::RUN);
    assert!(
        done.out.contains("WAW") && done.out.contains("trap"),
        "{done}"
    );
}

#[test]
fn a_report_that_cannot_be_written() {
    let done = Gsan::kernel(&streams(), "produce", "2", "32")
        .args([
            "--arg",
            "buf:u32[64]",
            "--arg",
            "u32=5",
            "--out",
            "/no/such/folder/report.txt",
        ])
        .finish();
    assert!(done.code == exit::INPUT || done.code == exit::RUN, "{done}");
    assert!(done.err.contains("/no/such/folder/report.txt"), "{done}");
}

#[test]
fn scenarios_that_are_wrong_name_the_line() {
    let module = format!(
        "[[module]]\nname = \"m\"\npath = \"{}\"\n",
        streams().display()
    );
    let buffer = "[[buffer]]\nname = \"data\"\ntype = \"u32\"\nlen = 64\n";
    let launch = "[[step]]\nlaunch = \"produce\"\ngrid = [2]\nblock = [32]\nargs = [\"data\", { u32 = 1 }]\n";
    let base = format!("name = \"n\"\n{module}{buffer}{launch}");
    Gsan::run(&scratch("right.toml", &base))
        .finish()
        .expect(exit::CLEAN);
    let cases = [
        (
            "not_toml",
            base.replace("name = \"n\"", "name = = n"),
            "not_toml.toml:1",
        ),
        (
            "unknown_key",
            base.replace("len = 64", "len = 64\nlenght = 3"),
            "lenght",
        ),
        (
            "unknown_buffer",
            base.replace("[\"data\"", "[\"date\""),
            "date",
        ),
        (
            "unknown_kernel",
            base.replace("\"produce\"", "\"reproduce\""),
            "reproduce",
        ),
        ("unknown_type", base.replace("\"u32\"", "\"u33\""), "u33"),
        (
            "no_module_file",
            base.replace("streams.ptx", "rivers.ptx"),
            "rivers.ptx",
        ),
        (
            "unknown_event",
            format!("{base}[[step]]\nwait = \"never\"\n"),
            "never",
        ),
        (
            "negative_length",
            base.replace("len = 64", "len = -64"),
            "negative_length.toml",
        ),
        (
            "nothing_in_a_step",
            format!("{base}[[step]]\nstream = \"s\"\n"),
            "nothing_in_a_step.toml",
        ),
        (
            "unknown_kind",
            format!("{base}[expect]\n[[expect.race]]\nkind = \"RWR\"\n"),
            "RWR",
        ),
        (
            "unknown_outcome",
            format!("{base}[expect]\noutcome = \"well\"\n"),
            "well",
        ),
    ];
    for (name, text, part) in cases {
        let path = scratch(&format!("{name}.toml"), text);
        Gsan::run(&path).finish().refused(&[part]);
    }
}

/// What a scenario's text becomes when it is moved out of its folder.
fn moved(name: &str) -> String {
    let text = fs::read_to_string(scenario::path(name)).unwrap();
    text.replace(
        "path = \"../",
        &format!("path = \"{}/", scenarios().parent().unwrap().display()),
    )
}

#[test]
fn an_expectation_that_does_not_hold_is_exit_code_1_and_said() {
    let (racy, fixed) = (moved("missing_atomic_racy"), moved("missing_atomic_fixed"));
    let expect = racy.find("[[expect.race]]").unwrap();
    let cases = [
        (
            "race_not_expected",
            format!("{}races = []\n", &racy[..expect]),
            "RAW",
        ),
        (
            "race_elsewhere",
            racy.replace("buffer = \"count\"\nkernel", "buffer = \"values\"\nkernel"),
            "values",
        ),
        (
            "race_on_another_line",
            racy.replace("\nline = ", "\nline = 9"),
            "line",
        ),
        (
            "race_not_found",
            fixed.replace("races = []", "[[expect.race]]\nkind = \"RAW\""),
            "RAW",
        ),
        (
            "another_value",
            fixed.replace("values = [128]", "values = [129]"),
            "129",
        ),
        (
            "another_outcome",
            fixed.replace("races = []", "races = []\noutcome = \"trap\""),
            "trap",
        ),
    ];
    for (name, text, part) in cases {
        let path = scratch(&format!("{name}.toml"), text);
        let done = Gsan::run(&path).finish().expect(exit::RACE);
        assert!(
            done.out.contains(part) || done.err.contains(part),
            "{name}: `{part}` is not said:\n{done}"
        );
    }
}
