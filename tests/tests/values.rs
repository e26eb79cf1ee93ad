//! Instrumentation changes no result: instrumented and plain runs leave the same values.

use gsan_tests::{Gsan, exit, kernels, scenario};
use std::collections::BTreeSet;

/// Whatever value a repaired scenario expects, it expects of the plain module too.
#[test]
fn plain_runs_of_the_repaired_scenarios_give_the_expected_values() {
    for (name, path) in scenario::all() {
        if !name.ends_with("_fixed") {
            continue;
        }
        let plain = Gsan::run(&path)
            .args(["--no-instrument", "--schedules", "2"])
            .finish();
        if name.starts_with("linked_") && !name.contains("_plain") {
            // The detector is a part of these modules; `linked_…_plain` are the same kernels without it.
            plain.refused(&["linked"]);
        } else {
            plain.expect(exit::CLEAN);
        }
    }
}

/// A kernel call: file, kernel, grid, block, arguments, buffers to compare.
type Call = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// Race-free kernels whose results depend on all of their inputs.
const CALLS: &[Call] = &[
    (
        "rust/ptx/stencil.ptx",
        "heat_fixed",
        "8",
        "64",
        &["buf:u32[512]=rand:1", "buf:u32[512]", "u32=512"],
        &["1"],
    ),
    (
        "rust/ptx/block_edge.ptx",
        "differences_fixed",
        "4",
        "96",
        &["buf:u32[384]=rand:2", "buf:u32[383]", "u32=384"],
        &["1"],
    ),
    (
        "rust/ptx/histogram.ptx",
        "histogram_fixed",
        "8",
        "32",
        &["buf:u32[1024]=rand:3", "u32=1024", "buf:u32[32]"],
        &["2"],
    ),
    (
        "rust/ptx/grid_barrier.ptx",
        "reverse_fixed",
        "4",
        "64",
        &["buf:u32[256]", "buf:u32[256]", "u32=256", "buf:u32[1]"],
        &["0", "1", "3"],
    ),
    (
        "rust/ptx/last_block.ptx",
        "sum_fixed",
        "8",
        "32",
        &[
            "buf:u32[800]=rand:4",
            "u32=800",
            "buf:u32[8]",
            "buf:u32[1]",
            "buf:u32[1]",
        ],
        &["2", "3", "4"],
    ),
    (
        "cuda/ptx/look_back.ptx",
        "scan_fixed",
        "6",
        "32",
        &[
            "buf:u32[192]=rand:5",
            "buf:u32[192]",
            "buf:u32[1]",
            "buf:u32[6]",
            "buf:u32[6]",
        ],
        &["1", "3", "4"],
    ),
    (
        "cuda/ptx/split_k.ptx",
        "split_k_fixed",
        "4",
        "8,8",
        &[
            "buf:f32[256]=rand:6",
            "buf:f32[256]=rand:7",
            "buf:f32[256]",
            "buf:u32[1]",
            "buf:f32[64]",
            "i32=32",
        ],
        &["2", "4"],
    ),
    (
        "cuda/ptx/compaction.ptx",
        "compact_fixed",
        "8",
        "32",
        &[
            "buf:u32[256]=rand:8",
            "buf:u32[256]",
            "buf:u32[1]",
            "i32=256",
        ],
        &["2"],
    ),
    (
        "ptx/streams.ptx",
        "consume",
        "4",
        "64",
        &["buf:u32[256]=rand:9", "buf:u32[256]"],
        &["1"],
    ),
];

fn printed(call: &Call, plain: bool, seed: &str) -> String {
    let (file, kernel, grid, block, args, compared) = *call;
    let report = format!(
        "{}/values_{kernel}_{plain}_{seed}",
        env!("CARGO_TARGET_TMPDIR")
    );
    // The report goes elsewhere, so that the printed buffers are all that is left.
    let mut run = Gsan::kernel(&kernels().join(file), kernel, grid, block)
        .args(["--seed", seed, "--out", &report]);
    run = args.iter().fold(run, |run, arg| run.args(["--arg", arg]));
    run = compared
        .iter()
        .fold(run, |run, arg| run.args(["--print", arg]));
    if plain {
        run = run.args(["--no-instrument"]);
    }
    run.finish().expect(exit::CLEAN).out
}

#[test]
fn instrumented_and_plain_runs_print_the_same_values() {
    for call in CALLS {
        let plain = printed(call, true, "0");
        assert!(
            plain.chars().any(|c| c.is_ascii_digit()),
            "{}: nothing was printed: {plain}",
            call.1
        );
        for seed in ["0", "7"] {
            assert_eq!(
                printed(call, false, seed),
                plain,
                "{} with seed {seed}",
                call.1
            );
        }
    }
}

#[test]
fn one_seed_is_one_run_and_other_seeds_are_others() {
    let report = |seed: &str| {
        let run = Gsan::run(&scenario::path("block_edge_racy")).args([
            "--schedules",
            "1",
            "--seed",
            seed,
            "--format",
            "json",
        ]);
        run.finish().out
    };
    assert_eq!(report("3"), report("3"));
    let seen: BTreeSet<String> = (0..6).map(|seed| report(&seed.to_string())).collect();
    assert!(seen.len() > 1, "six seeds gave one and the same report");
}
