//! Who has exited: blocks of a cluster whose shared memory is gone, and warps that no barrier can wait for any more.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::{FaultKind, Stop};
use gsan_sim::{ExitedWarps, MemoryModel};

/// Line of `{body}` in [`cluster`]'s text.
const BODY: u32 = 13;

/// Block 1 of a cluster leaves, block 0 waits until it must be gone and then does something with its shared memory: `%r6` is
/// the array there, `%r7` an mbarrier there, `%r1` and `%r2` the own ones. `stay` is what block 1's last thread does first.
fn cluster(stay: &str, body: &str) -> String {
    format!(
        ".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .b64 %d<4>; .reg .b32 %r<16>; .reg .pred %p<3>;
.shared .align 16 .b8 s[32]; .shared .align 8 .b8 bar[8];
ld.param.u64 %d1, [out]; mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %tid.x;
mov.u32 %r8, 5; mov.u32 %r9, 0; setp.eq.u32 %p1, %r4, 0; @%p1 mbarrier.init.shared.b64 [%r2], 1;
barrier.cluster.arrive; barrier.cluster.wait;
setp.eq.u32 %p1, %r3, 0; @%p1 bra WAIT; setp.lt.u32 %p1, %r4, 63; @%p1 exit; {stay} exit;
WAIT: nanosleep.u32 100; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 400; @%p1 bra WAIT;
setp.gt.u32 %p1, %r4, 0; @%p1 exit;
mapa.shared::cluster.u32 %r6, %r1, 1; mapa.shared::cluster.u32 %r7, %r2, 1; cvt.u64.u32 %d2, %r6; cvta.shared::cluster.u64 %d2, %d2;
{body}
exit; }}"
    )
}

fn run(seed: u64, weak: bool, ptx: &str) -> Result<Vec<u32>, Stop> {
    let mut config = seeded(seed);
    if weak {
        config.memory = MemoryModel::Weak;
    }
    let mut b = Bench::with(config, ptx);
    assert_eq!(b.machine.unsupported(b.module), []);
    let out = b.words(&[7; 64]);
    // More clusters than there is room for: the slot of a block that has gone is another's.
    b.start_together("k", 40, 64, 2, false, &[out]);
    b.finish()?;
    Ok(b.read(out, 64))
}

#[test]
fn shared_memory_of_a_block_that_has_exited_is_a_fault() {
    let bulk = "cp.async.bulk.shared::cluster";
    let uses = [
        "ld.shared::cluster.u32 %r10, [%r6];".to_string(),
        "ld.shared::cluster.v2.u32 {%r10, %r11}, [%r6];".into(),
        "ld.u32 %r10, [%d2];".into(),
        "st.shared::cluster.u32 [%r6], %r8;".into(),
        "st.shared::cluster.v4.u32 [%r6], {%r8, %r8, %r8, %r8};".into(),
        "st.u32 [%d2], %r8;".into(),
        "atom.shared::cluster.add.u32 %r10, [%r6], 1;".into(),
        "atom.shared::cluster.cas.b32 %r10, [%r6], 1, 2;".into(),
        "red.shared::cluster.add.u32 [%r6], 1;".into(),
        "atom.add.u32 %r10, [%d2], 1;".into(),
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];".into(),
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r7], 16;".into(),
        "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r7], 16;".into(),
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], %r8, [%r7];".into(),
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6], %r8, [%r7];".into(),
        format!("{bulk}.global.mbarrier::complete_tx::bytes [%r6], [%d1], 16, [%r7];"),
        format!("{bulk}.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r1], 16, [%r7];"),
        format!("mov.u16 %h1, 2; {bulk}.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], 16, [%r2], %h1;"),
    ];
    for body in uses {
        let text = cluster("", &body).replace(".reg .pred", ".reg .b16 %h<2>; .reg .pred");
        for (seed, weak) in [(0, false), (1, false), (2, true), (3, true)] {
            let stop = run(seed, weak, &text).expect_err(&body);
            let Stop::Fault {
                kind: FaultKind::ClusterBlockGone,
                site,
                ..
            } = &stop
            else {
                panic!("{body}: {stop}")
            };
            assert_eq!(site.ptx_line, BODY, "{body}: {stop}");
            assert_eq!(site.block[0] % 2, 0, "{stop}");
            let said = stop.to_string();
            assert!(
                said.contains("shared memory of a block that has exited")
                    && said.contains("block 1 of the cluster"),
                "{said}"
            );
        }
        // With one thread left, the block and its memory are there.
        let stays = "mov.u32 %r9, 0; L: nanosleep.u32 100; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 2000; @%p1 bra L;";
        let text = cluster(stays, &body).replace(".reg .pred", ".reg .b16 %h<2>; .reg .pred");
        run(0, false, &text).unwrap_or_else(|stop| panic!("{body}: {stop}"));
    }
}

#[test]
fn a_block_that_waits_at_the_clusters_barrier_is_there() {
    // Those that have exited count as arrived at the cluster's barrier, as PTX has it; the block's last thread holds it up.
    let ptx = cluster(
        "barrier.cluster.arrive; barrier.cluster.wait;",
        "ld.shared::cluster.u32 %r10, [%r6]; st.global.u32 [%d1], %r10; barrier.cluster.arrive; barrier.cluster.wait;",
    );
    for seed in 0..4 {
        assert_eq!(run(seed, seed % 2 == 1, &ptx).unwrap()[0], 0, "seed {seed}");
    }
}

/// 128 threads: those from `stay` on exit before the barrier, the others write behind it.
fn early(seed: u64, rule: ExitedWarps, stay: u32, barrier: &str) -> Result<usize, Stop> {
    let mut config = seeded(seed);
    config.exited_warps = rule;
    let mut b = Bench::with(
        config,
        &format!(
            ".visible .entry k(.param .u64 out) {{ .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<3>;
             ld.param.u64 %d0, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 7; setp.ge.u32 %p1, %r1, {stay};
             @%p1 exit;
             {barrier}
             mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r2; exit; }}"
        ),
    );
    let out = b.words(&[0; 128]);
    b.try_run("k", 2, 128, &[out])?;
    Ok(b.read(out, 128).iter().filter(|&&v| v == 7).count())
}

#[test]
fn single_threads_of_each_warp_may_have_exited() {
    for seed in 0..4 {
        assert_eq!(
            early(seed, ExitedWarps::Fault, 97, "bar.sync 0;").unwrap(),
            97
        );
    }
}

#[test]
fn a_barrier_that_exited_warps_cannot_reach_is_a_fault() {
    let barriers = [
        "bar.sync 0;",
        "barrier.sync 2;",
        "barrier.sync.aligned 1;",
        "bar.red.popc.u32 %r3, 3, %p1;",
    ];
    for barrier in barriers {
        let cases = [
            (96, "warp 3 of 4 has exited"),
            (40, "warps 2-3 of 4 have exited"),
            (1, "warps 1-3 of 4 have exited"),
        ];
        for (stay, who) in cases {
            for seed in 0..4 {
                let stop = early(seed, ExitedWarps::Fault, stay, barrier).expect_err(barrier);
                let Stop::Fault {
                    kind: FaultKind::ExitedWarps,
                    site,
                    detail,
                    ..
                } = &stop
                else {
                    panic!("{barrier}: {stop}")
                };
                assert_eq!(site.ptx_line, 7, "{stop}");
                assert!(site.thread[0] < stay, "{stop}");
                assert!(detail.contains(who), "{stop}");
                // The text says how to go on.
                assert!(
                    detail.contains("--exited-warps arrive")
                        && detail.contains("GSAN_SIM_EXITED_WARPS"),
                    "{stop}"
                );
            }
        }
    }
}

#[test]
fn exited_warps_may_count_as_arrived() {
    for stay in [96, 40, 1] {
        for seed in 0..4 {
            let wrote = early(seed, ExitedWarps::Arrive, stay, "bar.sync 0;").unwrap();
            assert_eq!(wrote, stay as usize);
        }
    }
}

#[test]
fn a_count_that_exited_warps_would_have_to_fill_is_a_deadlock_that_names_them() {
    for rule in [ExitedWarps::Fault, ExitedWarps::Arrive] {
        let stop = early(0, rule, 32, "bar.sync 0, 64;").unwrap_err();
        let Stop::Deadlock { description, .. } = &stop else {
            panic!("{stop}")
        };
        assert!(
            description.contains(
                "(32 of 64 threads have arrived; warps 1-3 of 4 have exited), PTX line 7"
            ),
            "{description}"
        );
    }
}
