//! `clusterlaunchcontrol`: blocks that take over the work of those that have not started.

mod common;

use common::{Bench, seeded};
use gsan_sim::MemoryModel;
use gsan_sim::machine::{FaultKind, Stop};

/// A persistent kernel as CUTLASS and the CUDA guide have it: each turn asks for the next cluster's index while it works, and
/// counts in `out[its block's number]`, and in `out[1000 + the worker's number]`.
fn ptx(cluster: u32, all: &str, answer: &str) -> String {
    format!(
        ".version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .b64 %d<6>; .reg .b32 %r<24>; .reg .pred %p<4>; .reg .b128 %q<2>;
  .shared .align 16 .b8 answer[32]; .shared .align 8 .b64 bar;
  ld.param.u64 %d1, [out]; mov.u32 %r1, {answer}; mov.u32 %r2, bar; mov.u32 %r3, %tid.x; mov.u32 %r4, %cluster_ctarank; mov.u32 %r5, 0;
  mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %nctaid.x; mad.lo.u32 %r9, %r7, %r8, %r6; mul.wide.u32 %d2, %r9, 4; add.u64 %d2, %d1, %d2;
  setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive; barrier.cluster.wait; setp.eq.and.u32 %p2, %r4, 0, %p1;
TURN:
  @%p1 mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r2], 16;
  barrier.cluster.arrive; barrier.cluster.wait;
  @%p2 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{all}.b128 [%r1], [%r2];
  mad.lo.u32 %r9, %r7, %r8, %r6; mul.wide.u32 %d3, %r9, 4; add.u64 %d3, %d1, %d3;
  @%p1 red.global.add.u32 [%d3], 1; @%p1 red.global.add.u32 [%d2+4000], 1;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], %r5; @!%p3 bra WAIT;
  xor.b32 %r5, %r5, 1; ld.shared.b128 %q1, [%r1];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1; @!%p3 bra DONE;
  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r6, %r7, %r10, %r11}}, %q1;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r12, %q1; clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r13, %q1;
  setp.ne.u32 %p3, %r6, %r12; @%p3 trap; setp.ne.u32 %p3, %r7, %r13; @%p3 trap;
  rem.u32 %r14, %r4, {cluster}; add.u32 %r6, %r6, %r14; bar.sync 0; bra TURN;
DONE: barrier.cluster.arrive; barrier.cluster.wait; ret; }}"
    )
}

fn run(seed: u64, weak: bool, ptx: &str, cluster: u32) -> Result<Vec<u32>, Stop> {
    let mut config = seeded(seed);
    if weak {
        config.memory = MemoryModel::Weak;
    }
    let mut b = Bench::with(config, ptx);
    assert_eq!(b.machine.unsupported(b.module), []);
    let out = b.words(&[0; 2000]);
    let f = b.kernel("k");
    let launch = gsan_sim::machine::LaunchDesc {
        device: 0,
        function: f,
        grid: [20, 5, 1],
        block: [64, 1, 1],
        cluster: [cluster, 1, 1],
        dynamic_shared: 0,
        user_dynamic: None,
        params: out.to_le_bytes().to_vec(),
        cooperative: false,
    };
    b.machine.launch(launch).unwrap();
    b.finish()?;
    Ok(b.read(out, 2000))
}

#[test]
fn every_block_of_the_grid_is_worked_on_once() {
    for (cluster, all) in [(1, ""), (2, ".multicast::cluster::all")] {
        for seed in 0..6 {
            let out = run(seed, seed % 2 == 1, &ptx(cluster, all, "answer"), cluster).unwrap();
            assert!(out[..100].iter().all(|&n| n == 1), "{out:?}");
            // 4 multiprocessors hold 8 blocks each: the others never started.
            let workers = out[1000..1100].iter().filter(|&&n| n > 0).count();
            assert!((32..100).contains(&workers), "{workers} workers");
            assert_eq!(out[1000..1100].iter().sum::<u32>(), 100);
        }
    }
}

#[test]
fn an_answer_lies_at_a_multiple_of_16() {
    let stop = run(0, false, &ptx(1, "", "answer+8"), 1).unwrap_err();
    assert!(
        matches!(&stop, Stop::Fault { kind: FaultKind::Misaligned, site, .. } if site.ptx_line == 13),
        "{stop}"
    );
}
