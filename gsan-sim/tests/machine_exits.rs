//! Who has exited: blocks of a cluster whose shared memory is gone, and warps that no barrier can wait for any more.

mod common;

use common::{Bench, seeded};
use gsan_sim::MemoryModel;
use gsan_sim::machine::{FaultKind, Stop};

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
mapa.shared::cluster.u32 %r6, %r1, 1; mapa.shared::cluster.u32 %r7, %r2, 1; cvta.shared::cluster.u64 %d2, %r6;
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
