//! Grid barriers, clusters, mbarriers and asynchronous copies, as nvcc compiles them.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::{FaultKind, LaunchError, Stop};

const CLUSTER: &str = include_str!("ptx/cluster.ptx");
const PIPELINE: &str = include_str!("ptx/pipeline.ptx");

#[test]
fn cooperative_groups_find_their_grids_barrier() {
    for seed in 0..8 {
        let mut b = Bench::with(seeded(seed), CLUSTER);
        let input: Vec<u32> = (0..3000).collect();
        let (input, part, out) = (b.words(&input), b.words(&[0; 12]), b.words(&[0; 13]));
        b.start_together("grid_sum", 12, 64, 1, true, &[input, part, out, 3000]);
        b.finish().unwrap();
        let r = b.read(out, 13);
        assert!(r[..12].iter().all(|&s| s == 2999 * 1500), "{r:?}");
        assert_eq!(r[12], 1);
    }
    // Without a cooperative launch there is no workspace: the library traps.
    let mut b = Bench::new(CLUSTER);
    let m = b.words(&[0; 16]);
    b.start_together("grid_sum", 2, 32, 1, false, &[m, m, m, 0]);
    assert!(matches!(b.finish(), Err(Stop::Trap { .. })));
}

#[test]
fn a_cooperative_grid_must_fit() {
    let mut b = Bench::new(CLUSTER);
    let f = b.kernel("grid_sum");
    let launch = gsan_sim::machine::LaunchDesc {
        device: 0,
        function: f,
        grid: [33, 1, 1],
        block: [32, 1, 1],
        cluster: [1; 3],
        dynamic_shared: 0,
        user_dynamic: None,
        params: vec![0; 28],
        cooperative: true,
    };
    assert_eq!(
        b.machine.launch(launch),
        Err(LaunchError::CooperativeTooLarge {
            blocks: 33,
            room: 32
        })
    );
}

#[test]
fn blocks_of_a_cluster_read_each_others_shared_memory() {
    for seed in 0..8 {
        let mut b = Bench::with(seeded(seed), CLUSTER);
        let out = b.words(&[0; 8 * 32]);
        b.start_together("ring", 8, 32, 4, false, &[out]);
        b.finish().unwrap();
        for (i, v) in b.read(out, 256).into_iter().enumerate() {
            let (block, lane) = (i / 32, i % 32);
            assert_eq!(
                v as usize,
                (block % 4 + 1) % 4 * 100 + 31 - lane,
                "block {block}, lane {lane}"
            );
        }
    }
}

#[test]
fn tiles_and_coalesced_groups() {
    let mut b = Bench::new(CLUSTER);
    let out = b.words(&[0; 64]);
    b.run("tiles", 1, 32, &[out]);
    let r = b.read(out, 48);
    assert_eq!(&r[..4], &[28, 92, 156, 220]);
    assert!(
        (0..32)
            .step_by(3)
            .enumerate()
            .all(|(rank, t)| r[16 + t] as usize == 1100 + rank)
    );
}

#[test]
fn mbarriers_hand_a_buffer_over() {
    for seed in 0..16 {
        let mut b = Bench::with(seeded(seed), PIPELINE);
        let input: Vec<u32> = (0..320).map(|i| i * i).collect();
        let (inp, out) = (b.words(&input), b.words(&[0; 32]));
        b.run("handoff", 1, 64, &[inp, out, 10]);
        let expected: Vec<u32> = (0..32)
            .map(|l| (0..10).map(|r| input[r * 32 + 31 - l]).sum())
            .collect();
        assert_eq!(b.read(out, 32), expected);
    }
}

#[test]
fn a_bulk_copy_completes_its_transactions() {
    let mut b = Bench::new(PIPELINE);
    let input: Vec<u32> = (0..256).map(|i| i * 3).collect();
    let (inp, out) = (b.words(&input), b.words(&[0; 256]));
    b.run("bulk", 1, 64, &[inp, out]);
    let expected: Vec<u32> = input.iter().rev().copied().collect();
    assert_eq!(b.read(out, 256), expected);
}

#[test]
fn small_asynchronous_copies_fill_up_with_zeros() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 in, .param .u64 out) { .reg .b64 %d<5>; .reg .b32 %r<9>; .shared .align 16 .b8 s[64];
          ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, s;
          cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.ca.shared.global [%r1+16], [%d1+16], 16, 8;
          cp.async.commit_group; cp.async.wait_group 0;
          ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1]; st.global.v4.u32 [%d2], {%r2, %r3, %r4, %r5};
          ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+16]; st.global.v4.u32 [%d2+16], {%r2, %r3, %r4, %r5}; ret; }",
    );
    let (inp, out) = (b.words(&[1, 2, 3, 4, 5, 6, 7, 8]), b.words(&[9; 8]));
    b.run("k", 1, 1, &[inp, out]);
    assert_eq!(b.read(out, 8), [1, 2, 3, 4, 5, 6, 0, 0]);
}

#[test]
fn wrong_use_of_an_mbarrier_is_a_fault() {
    for (body, word) in [
        ("mbarrier.arrive.shared.b64 %d1, [s];", "no mbarrier"),
        ("mbarrier.init.shared.b64 [s], 0;", "for 0 threads"),
        (
            "mbarrier.init.shared.b64 [s], 1; mbarrier.arrive.shared.b64 _, [s], 2;",
            "2 arrivals",
        ),
    ] {
        let mut b = Bench::new(&format!(
            ".visible .entry k() {{ .reg .b64 %d<5>; .shared .align 8 .b8 s[8]; {body} ret; }}"
        ));
        let stop = b.try_run("k", 1, 1, &[]).unwrap_err();
        let Stop::Fault {
            kind: FaultKind::Mbarrier,
            detail,
            ..
        } = &stop
        else {
            panic!("{stop}")
        };
        assert!(detail.contains(word), "{stop}");
    }
}
