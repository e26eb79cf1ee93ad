//! `gsan inspect` and classes that are switched off, from outside, on the simulator.

mod common;

use common::gsan;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn scratch(name: &str, text: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inspection");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const HANDOFF: &str = "tests/scenarios/flag_handoff_racy.toml";

fn inspect(more: &[&str]) -> Value {
    let mut args = vec!["inspect", HANDOFF, "--json"];
    args.extend(more);
    let (code, out, err) = gsan(&args);
    assert_eq!(code, 1, "the handoff races: {err}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// Access, x of the block, and the thread.
fn sides(word: &Value) -> Vec<(&Value, &Value, &Value)> {
    let accesses = word["accesses"].as_array().unwrap().iter();
    accesses
        .map(|a| (&a["access"], &a["block"][0], &a["thread"]))
        .collect()
}

#[test]
fn a_word_shows_who_wrote_and_who_read_it() {
    let value = inspect(&["--word", "data+4", "--word", "flag"]);
    let word = &value["words"][0];
    assert_eq!(
        (&word["buffer"], &word["offset"], &word["format"]),
        (&json!("data"), &json!(4), &json!("wide"))
    );
    assert_eq!(
        sides(word),
        [
            (&json!("store"), &json!(0), &json!([1, 0, 0])),
            (&json!("load"), &json!(1), &json!([0, 0, 0]))
        ]
    );
    let write = &word["accesses"][0];
    assert_eq!(write["site"]["line"], 11);
    // The flag's release can be acquired, by nobody here: the read is relaxed.
    let release = &value["words"][1]["release"];
    assert_eq!(release["scope"], "sys");
    assert_eq!(release["logical_thread"], write["logical_thread"]);
    let clock = release["snapshot"]["clock"].as_array().unwrap();
    assert_eq!(clock[0]["thread"], write["logical_thread"]);
    assert_eq!(value["threads"], json!([]));
}

#[test]
fn the_reference_cell_is_decoded_too() {
    let value = inspect(&["--word", "data+4", "--cell", "reference"]);
    let word = &value["words"][0];
    assert_eq!(word["format"], "reference");
    assert_eq!(
        sides(word),
        [
            (&json!("store"), &json!(0), &Value::Null),
            (&json!("load"), &json!(1), &Value::Null)
        ]
    );
}

#[test]
fn threads_have_clocks_and_tenants() {
    let all = inspect(&[]);
    let used = all["threads"].as_array().unwrap();
    assert_eq!(used.len(), 2, "two blocks ran");
    let id = used[1]["id"].as_u64().unwrap().to_string();
    let one = inspect(&["--thread", &id]);
    assert_eq!(one["threads"][0], used[1]);
    assert_eq!(used[1]["tenants"][0]["kernel"], "handoff_racy");
    let own = json!({ "thread": used[1]["id"], "epoch": used[1]["epoch"] });
    assert!(
        used[1]["clock"].as_array().unwrap().contains(&own),
        "{used:?}"
    );
    assert_eq!(all["global"][0]["num_threads"], 32);
    assert_eq!(
        all["touched"][0],
        json!({ "buffer": "data", "words": 32, "touched": 32 })
    );
    assert_eq!(one["global"], json!([]));
}

#[test]
fn text_says_the_same() {
    let (code, out, err) = gsan(&["inspect", HANDOFF, "--word", "data+0..8", "--global"]);
    assert_eq!(code, 1, "{err}");
    for part in [
        "logical threads   32 = 1 device × 4 SMs × 8 slots",
        "`data`+0 (0x",
        "* weak store, bytes 0-3, logical thread 0 at epoch 1",
        "by thread (1,0,0) of block (0,0,0) of `handoff_racy`, launch 0",
        "at tests/kernels/rust/flag_handoff/src/lib.rs:11:9, PTX line ",
        "| *data.add(thread()) = thread() as u32 + 1;",
        "races found at 1 place in 1 launch",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn a_scenario_can_be_stopped_before_its_end() {
    let touched = |after: &str| {
        let scenario = "tests/scenarios/streams_memset_same.toml";
        let (code, out, err) = gsan(&["inspect", scenario, "--after", after, "--json"]);
        assert_eq!(code, 0, "{err}");
        let value: Value = serde_json::from_str(&out).unwrap();
        let buffers = value["touched"].as_array().unwrap().iter();
        buffers.map(|t| t["touched"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(touched("0"), 0);
    assert!(touched("1") > 0);
}

#[test]
fn wrong_places_are_refused_with_what_there_is() {
    for (more, part) in [
        (&["--word", "dta"][..], "there are: data, flag, sum"),
        (&["--word", "data+128"], "`data` has 128 bytes"),
        (
            &["--word", "data+4..129"],
            "--word data+4..129: `data` has 128 bytes",
        ),
        (&["--thread", "32"], "there are logical threads 0 to 31"),
        (&["--after", "2"], "has 1 step"),
        (&["--word", "data+x"], "`x` is not a number"),
    ] {
        let mut args = vec!["inspect", HANDOFF];
        args.extend(more);
        let (code, out, err) = gsan(&args);
        assert_eq!((code, out.as_str()), (2, ""), "{more:?}: {err}");
        assert!(
            err.starts_with("error: ") && err.contains(part),
            "{more:?}: {err}"
        );
    }
    let (code, out, err) = gsan(&["inspect", "tests/scenarios/ending_trap.toml"]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(err.contains("the detector's state went with it"), "{err}");
}

/// Warp 1 reads what warp 0 stores.
const WARPS: &str = "
[[module]]
ptx = '''
.version 7.0
.target sm_70
.address_size 64
.visible .entry warps(.param .u64 p) {
    .reg .pred %q;
    .reg .b32 %t, %v;
    .reg .b64 %p;
    ld.param.u64 %p, [p];
    mov.u32 %t, %tid.x;
    setp.ne.u32 %q, %t, 0;
    @!%q st.global.u32 [%p], 1;
    // BARRIER
    setp.ne.u32 %q, %t, 32;
    @!%q ld.global.u32 %v, [%p];
    ret;
}
'''
[[buffer]]
name = 'data'
type = 'u32'
len = 1
[[step]]
launch = 'warps'
grid = [1]
block = [64]
args = ['data']
";

#[test]
fn warps_of_a_block_without_a_barrier_are_named() {
    let racy = scratch("warps.toml", WARPS);
    let (code, out, err) = gsan(&["run", racy.to_str().unwrap(), "--schedules", "4"]);
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("data race (intra-block) on `data`+0"), "{out}");
    let help = "help: warp 0 and warp 1 of block (0,0,0): no barrier between them";
    assert!(out.contains(help), "{out}");
    // The module's text is in the scenario.
    assert!(
        out.contains("|     @!%q ld.global.u32 %v, [%p];\n"),
        "{out}"
    );
    let fixed = WARPS.replace("// BARRIER", "bar.sync 0;");
    let fixed = scratch("warps_fixed.toml", &fixed);
    let (code, out, err) = gsan(&["run", fixed.to_str().unwrap(), "--schedules", "4"]);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn what_the_warps_of_a_block_know_of_each_other_is_shown() {
    let text = WARPS.replace("// BARRIER", "bar.sync 1, 64;");
    let file = scratch("warps_known.toml", &text);
    let call = ["inspect", file.to_str().unwrap(), "--thread", "0"];
    let (code, out, err) = gsan(&[&call[..], &["--json"]].concat());
    assert_eq!(code, 0, "{out}{err}");
    let value: Value = serde_json::from_str(&out).unwrap();
    let block = &value["threads"][0]["in_block"];
    // Both warps met at barrier 1, and each knows what the other had done until then.
    let barrier = &block["barriers"][0];
    assert_eq!(barrier["barrier"], 1, "{out}");
    assert!(barrier["closed"].is_number() && barrier["whole_block"].is_null());
    for (at, other) in [(0, 1), (1, 0)] {
        let pairs = block["warps"][at]["pairs"].as_array().unwrap();
        let known = pairs.iter().find(|p| p["warp"] == other).unwrap();
        assert!(known["epoch"].as_u64() >= value["threads"][0]["start_epoch"].as_u64());
    }
    let (_, out, _) = gsan(&call);
    assert!(
        out.contains("  warp 1 knows of single warps 0:") && out.contains("  barrier 1: the last"),
        "{out}"
    );
}

#[test]
fn without_the_class_a_block_is_one_thread() {
    let racy = scratch("warps_off.toml", WARPS);
    let device = |class: &str| format!("[device]\nclasses_off = ['{class}']\n{WARPS}");
    let off = scratch("warps_off_there.toml", &device("intra-block"));
    for args in [
        &["run", racy.to_str().unwrap(), "--no-class", "intra-block"][..],
        &["run", off.to_str().unwrap()],
    ] {
        let (code, out, err) = gsan(args);
        assert_eq!(code, 0, "{out}{err}");
        assert!(
            out.contains("no race found") && !out.contains("hidden"),
            "{out}"
        );
    }
    let wrong = scratch("warps_wrong.toml", &device("warps"));
    let (code, _, err) = gsan(&["run", wrong.to_str().unwrap()]);
    let part = "warps_wrong.toml:2:16: there is no class `warps`";
    assert!(code == 2 && err.contains(part), "{err}");
}

#[test]
fn hidden_findings_are_counted_and_do_not_decide_the_exit_code() {
    let run = |more: &[&str]| {
        let ptx = "tests/kernels/rust/ptx/flag_handoff.ptx";
        let mut args = vec!["run", ptx, "--kernel", "handoff_racy"];
        args.extend(["--grid", "2", "--block", "32", "--arg", "buf:u32[32]"]);
        args.extend(["--arg", "buf:u32[1]", "--arg", "buf:u32[1]"]);
        args.extend(more);
        gsan(&args)
    };
    let off = [
        "--no-class",
        "race,missing-acquire",
        "--no-class",
        "stale-nc",
    ];
    let (code, out, err) = run(&off);
    assert_eq!(code, 0, "{out}{err}");
    let note = "note: 8 findings of class missing-acquire hidden by --no-class";
    assert!(out.contains(note) && out.contains("no race found"), "{out}");
    let json = |more: &[&str]| {
        let mut args = vec!["--format", "json"];
        args.extend(more);
        let (code, out, err) = run(&args);
        let value: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {err}"));
        (code, value, out)
    };
    let (code, hidden, _) = json(&["--no-class", "missing-acquire"]);
    assert_eq!((code, &hidden["races"]), (0, &json!([])));
    assert_eq!(hidden["hidden"].as_array().unwrap().len(), 8);
    let (code, shown, text) = json(&[]);
    assert_eq!((code, &shown["races"]), (1, &hidden["hidden"]));
    // A saved report can leave them out later.
    let saved = scratch("shown.json", &text);
    let saved = saved.to_str().unwrap();
    let (code, out, err) = gsan(&["report", saved, "--no-class", "missing-acquire"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with(note), "{out}");
}
