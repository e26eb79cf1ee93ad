//! CUDA C++ that checks itself: what real programs use beside the usual, compiled by nvcc 13 (`tests/data/features/*.cu`;
//! `nvcc -std=c++17 -arch=compute_90a -ptx`), with results worked out by hand. Each kernel counts in its first word the
//! checks that failed, leaves in the second the number of the first one, and counts all of them in the third.

mod common;

use common::{Bench, seeded};
use std::path::Path;

/// Runs `k(out, in)`, where `in` counts up, in several schedules.
#[track_caller]
fn check(file: &str, grid: u32, block: u32, cluster: u32) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/features")
        .join(format!("{file}.ptx"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    for seed in 0..4 {
        let mut b = Bench::with(seeded(seed), &text);
        let out = b.words(&[0; 4096]);
        let counting: Vec<u32> = (0..4096).collect();
        let numbers = b.words(&counting);
        b.start_together("k", grid, block, cluster, false, &[out, numbers]);
        b.finish().unwrap_or_else(|s| panic!("{file}: {s}"));
        let said = b.read(out, 3);
        assert_eq!(said[..2], [0, 0], "{file}, seed {seed}: {said:?}");
        assert!(said[2] >= grid * block, "{file}: {said:?}");
    }
}

#[test]
fn memory_on_the_stack_whose_size_is_known_late() {
    check("alloca.sm_90a", 2, 64, 1);
}

#[test]
fn floats_of_eight_six_and_four_bits() {
    check("fp8.sm_90a", 1, 64, 1);
    check("fp8.sm_100a", 1, 64, 1);
    check("fp4.sm_100a", 1, 64, 1);
}

#[test]
fn halves_and_bfloats_by_intrinsics() {
    check("half2.sm_90a", 1, 64, 1);
}

#[test]
fn cooperative_groups_partitions_reductions_and_scans() {
    check("warp.sm_90a", 1, 64, 1);
}

#[test]
fn integer_intrinsics() {
    check("dpx.sm_90a", 1, 64, 1);
}

#[test]
fn integers_of_128_bits() {
    check("u128.sm_90a", 1, 64, 1);
}

#[test]
fn virtual_functions_recursion_printing_the_heap_and_the_mathematical_library() {
    check("misc.sm_90a", 1, 64, 1);
}

#[test]
fn barriers_pipelines_latches_and_atomic_references() {
    check("barrier.sm_90a", 1, 64, 1);
}

#[test]
fn atomics_of_every_width() {
    check("atomics.sm_90a", 1, 64, 1);
}

#[test]
fn block_wide_algorithms_of_cub_and_containers_of_libcudacxx() {
    check("many.sm_90a", 1, 128, 1);
}

#[test]
fn clusters_and_distributed_shared_memory() {
    check("cluster.sm_90a", 8, 64, 4);
}

#[test]
fn asynchronous_stores_copies_and_barriers_by_cuda_ptx() {
    check("asyncp.sm_90a", 2, 64, 2);
}

#[test]
fn tensor_core_forms() {
    check("tc.sm_90a", 1, 32, 1);
    check("tc100.sm_120a", 1, 32, 1);
}

#[test]
fn arguments_without_a_fixed_number_structures_and_directed_roundings() {
    check("language.sm_90a", 2, 64, 1);
}
