//! What PTX leaves undefined and programs can run into: a named fault at its line, and next to each the right way, which is none.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::{FaultKind, Stop};
use gsan_sim::{ExitedWarps, MemoryModel, Schedule};

/// `body` is a kernel's text: `%d1` has the buffer, `%d3` the thread's word in it, `%r1` the thread's number, `%r2` an array
/// in shared memory, `%r3` an mbarrier, `%p1` the odd lanes, `%p2` the lower half of a warp, `%p3` thread 0, `%p4` warp 0.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6
.target sm_100a
.address_size 64
.const .align 16 .b32 c[4] = {{100, 101, 102, 103}};
.visible .entry k(.param .u64 out, .param .align 8 .b8 blob[64]) {{ .reg .b64 %d<9>; .reg .b32 %r<20>; .reg .pred %p<9>;
.shared .align 128 .b8 s[4096]; .shared .align 8 .b8 bar[16];
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2; mov.u32 %r2, s; mov.u32 %r3, bar;
and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 1; and.b32 %r5, %r1, 31; setp.lt.u32 %p2, %r5, 16;
setp.eq.u32 %p3, %r1, 0; setp.lt.u32 %p4, %r1, 32;
@%p3 mbarrier.init.shared.b64 [%r3], 1; bar.sync 15; mov.u32 %r9, 7;
{body}
st.global.u32 [%d3], %r9;
exit;
}}"
    )
}

/// Where a run is: a seed, weak memory, a schedule by priorities.
const WAYS: [(u64, bool, bool); 8] = [
    (0, false, false),
    (1, false, false),
    (2, false, false),
    (3, false, false),
    (4, true, false),
    (5, true, false),
    (6, false, true),
    (7, false, true),
];

/// Two blocks of two warps, which are a cluster.
fn run(body: &str, (seed, weak, priority): (u64, bool, bool)) -> Result<Vec<u32>, Stop> {
    let mut config = seeded(seed);
    config.step_budget = 1 << 20;
    if weak {
        config.memory = MemoryModel::Weak;
    }
    if priority {
        config.schedule = Schedule::Priority;
    }
    let mut b = Bench::with(config, &kernel(body));
    assert_eq!(b.machine.unsupported(b.module), [], "{body}");
    let out = b.words(&[9; 64]);
    b.start_together("k", 2, 64, 2, false, &[out, 0]);
    b.finish()?;
    Ok(b.read(out, 64))
}

/// `wrong` ends in that fault at a line that has `!` in a comment, and says `word`; `right` does not, and leaves that in the
/// buffer's first word.
struct Case {
    wrong: &'static str,
    kind: FaultKind,
    word: &'static str,
    right: &'static str,
    left: u32,
}

fn check(cases: &[Case]) {
    for case in cases {
        let text = kernel(case.wrong);
        let lines: Vec<u32> = (1..)
            .zip(text.lines())
            .filter(|(_, l)| l.contains("/*!*/"))
            .map(|(n, _)| n)
            .collect();
        for way in WAYS {
            let stop = match run(case.wrong, way) {
                Err(stop) => stop,
                Ok(out) => panic!("{}: {way:?}: {out:?}", case.wrong),
            };
            let Stop::Fault {
                kind, site, detail, ..
            } = &stop
            else {
                panic!("{}: {way:?}: {stop}", case.wrong)
            };
            assert_eq!(*kind, case.kind, "{}: {way:?}: {stop}", case.wrong);
            assert!(
                lines.contains(&site.ptx_line),
                "{}: {way:?}: {stop}",
                case.wrong
            );
            assert!(detail.contains(case.word), "{way:?}: {stop}");
            let out =
                run(case.right, way).unwrap_or_else(|s| panic!("{}: {way:?}: {s}", case.right));
            assert_eq!(out[0], case.left, "{}: {way:?}", case.right);
        }
    }
}

#[test]
fn lanes_of_a_warp_at_different_aligned_barriers() {
    check(&[
        Case {
            wrong: "@%p2 bra A;\nbar.sync 0; /*!*/\nbra J;\nA: bar.sync 0; /*!*/\nJ:",
            kind: FaultKind::DivergentBarrier,
            word: "come to this barrier and lanes",
            // Per thread, as `barrier` without `.aligned` is.
            right: "@%p2 bra A;\nbarrier.sync 0;\nbra J;\nA: barrier.sync 0;\nJ:",
            left: 7,
        },
        Case {
            wrong: "@%p4 bra J;\n@%p2 bra A;\nbarrier.sync 1, 32; /*!*/\nbra J;\nA: barrier.sync 2, 32; /*!*/\nJ:",
            kind: FaultKind::Barrier,
            word: "wait at another one",
            // Different warps may.
            right: "@%p4 bra A;\nbar.sync 1, 32;\nbra J;\nA: bar.sync 2, 32;\nJ:",
            left: 7,
        },
        Case {
            wrong: "@!%p4 bra W;\n@%p2 bra A;\nbar.arrive 1, 64; /*!*/\nbra J;\nA: bar.arrive 1, 64; /*!*/\nbra J; W: bar.sync 1, 64; J:",
            kind: FaultKind::DivergentBarrier,
            word: "of warp 0",
            right: "@!%p4 bra W;\nbar.arrive 1, 64; bra J; W: bar.sync 1, 64; J:",
            left: 7,
        },
    ]);
}

#[test]
fn lanes_that_go_past_an_aligned_barrier_at_which_others_wait() {
    check(&[
        Case {
            wrong: "@!%p1 bra J;\nbar.sync 0; /*!*/\nJ:",
            kind: FaultKind::DivergentBarrier,
            word: "wait here, and lanes",
            right: "@!%p1 bra J;\nbarrier.sync 0;\nJ:",
            left: 7,
        },
        Case {
            wrong: "@%p1 bar.sync 0; /*!*/",
            kind: FaultKind::DivergentBarrier,
            word: "move it out of the branch",
            // All lanes of each warp take the branch, one after the other.
            right: "@%p1 add.u32 %r9, %r9, 1; setp.ge.u32 %p5, %r1, 100; @%p5 bra J;\nbar.sync 0;\nJ:",
            left: 7,
        },
        Case {
            wrong: "setp.ge.u32 %p5, %r1, 40; @%p5 bra J;\nbar.sync 0; /*!*/\nJ:",
            kind: FaultKind::DivergentBarrier,
            word: "of warp 1",
            // Whoever has returned is missed by nobody.
            right: "setp.ge.u32 %p5, %r1, 40; @!%p5 bra G; st.global.u32 [%d3], %r1; exit;\nG: bar.sync 0;",
            left: 7,
        },
        Case {
            wrong: "mov.u32 %r6, 0;\nL: setp.ge.u32 %p5, %r6, %r5; @%p5 bra J;\nbar.sync 0; /*!*/\nadd.u32 %r6, %r6, 1; bra L;\nJ:",
            kind: FaultKind::DivergentBarrier,
            word: "lanes 0x1 have gone past",
            right: "mov.u32 %r6, 0;\nL: setp.ge.u32 %p5, %r6, 20; @%p5 bra J;\nbar.sync 0;\nadd.u32 %r6, %r6, 1; bra L;\nJ:",
            left: 7,
        },
        Case {
            wrong: "{ .reg .b32 %q<2>; mov.u32 %q1, 0; @!%p1 bra J;\nbar.red.popc.u32 %q1, 0, %p2; /*!*/\nJ: mov.u32 %r9, %q1; }",
            kind: FaultKind::DivergentBarrier,
            word: "PTX line",
            right: "bar.red.popc.u32 %r9, 0, %p2;",
            left: 32,
        },
    ]);
}

/// With the GPU's rule a warp counts when the first of its lanes have come.
#[test]
fn lanes_may_go_past_where_the_gpus_rule_is_asked_for() {
    let body = kernel("@!%p1 bra J; bar.sync 0; J:");
    for seed in 0..8 {
        let mut config = seeded(seed);
        config.exited_warps = ExitedWarps::Arrive;
        let mut b = Bench::with(config, &body);
        let out = b.words(&[9; 64]);
        b.start_together("k", 2, 64, 2, false, &[out, 0]);
        b.finish().unwrap_or_else(|s| panic!("{s}"));
        assert_eq!(b.read(out, 64), [7; 64]);
    }
}

/// Lanes that come to one barrier at different times are no fault, however long it takes and whatever they do before.
#[test]
fn lanes_that_come_to_an_aligned_barrier_one_after_the_other() {
    let bodies = [
        // A different number of turns before each barrier of a loop, with stores.
        "mov.u32 %r6, 0;
L: mov.u32 %r7, %r5;
M: st.global.u32 [%d3], %r7; st.shared.u32 [%r2], %r7; sub.u32 %r7, %r7, 1; setp.gt.s32 %p5, %r7, 0; @%p5 bra M;
bar.sync 0; add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, 5; @%p5 bra L;",
        // Both sides of a branch, far apart.
        "@%p1 bra A; st.global.u32 [%d3], %r1; bra J; A: mov.u32 %r7, 300;
M: sub.u32 %r7, %r7, 1; setp.gt.s32 %p5, %r7, 0; st.global.u32 [%d3], %r7; @%p5 bra M; J: bar.sync 0; st.global.u32 [%d3], %r1; bar.sync 0;",
        // Some lanes arrive, and wait at the next one, long before the others arrive.
        "setp.lt.u32 %p6, %r1, 32; mov.u32 %r7, 0; @%p2 mov.u32 %r7, 300; @!%p6 bra W;
M: sub.u32 %r7, %r7, 1; setp.gt.s32 %p5, %r7, 0; st.global.u32 [%d3], %r7; @%p5 bra M; bar.arrive 3, 64; bar.sync 4, 64; bra J;
W: bar.sync 3, 64; bar.sync 4, 64; J:",
        // The same with the cluster's, whose wait some pass before the others come to it.
        "barrier.cluster.arrive.aligned; mov.u32 %r7, 0; @%p2 mov.u32 %r7, 300;
M: sub.u32 %r7, %r7, 1; setp.gt.s32 %p5, %r7, 0; st.global.u32 [%d3], %r7; @%p5 bra M; barrier.cluster.wait.aligned; bar.sync 0;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        // A lock within the warp.
        "M: atom.shared.cas.b32 %r7, [%r2], 0, 1; setp.ne.u32 %p5, %r7, 0; @%p5 bra M; st.global.u32 [%d3], %r1; atom.shared.exch.b32 %r7, [%r2], 0;
bar.sync 0;",
    ];
    for body in bodies {
        for seed in 0..24 {
            let out = run(body, (seed, seed % 4 == 1, seed % 4 == 3));
            assert_eq!(out.unwrap_or_else(|s| panic!("{body}: {seed}: {s}"))[0], 7);
        }
    }
}

#[test]
fn one_warp_at_several_barriers_and_kinds() {
    check(&[
        Case {
            wrong: "barrier.sync %r4, 32; /*!*/",
            kind: FaultKind::Barrier,
            word: "name another barrier",
            right: "shr.u32 %r6, %r1, 5; barrier.sync %r6, 32; add.u32 %r6, %r6, 3; bar.sync %r6, 32;",
            left: 7,
        },
        Case {
            wrong: "@!%p4 bra A;\nbar.red.popc.u32 %r9, 1, 64, %p1; /*!*/\nbra J;\nA: bar.sync 1, 64; /*!*/\nJ:",
            kind: FaultKind::Barrier,
            word: "by barrier.red",
            right: "@!%p4 bra A;\nbar.red.popc.u32 %r9, 1, 64, %p1;\nbra J;\nA: bar.red.popc.u32 %r9, 1, 64, %p1;\nJ: bar.sync 1, 64;",
            left: 32,
        },
        Case {
            wrong: "@!%p4 bra A;\nbar.red.popc.u32 %r9, 1, 64, %p1; /*!*/\nbra J;\nA: bar.red.and.pred %p5, 1, 64, %p1; /*!*/\nJ:",
            kind: FaultKind::Barrier,
            word: "another reduction",
            right: "bar.red.and.pred %p5, 1, 64, %p1; bar.red.popc.u32 %r9, 1, 64, %p1;",
            left: 32,
        },
        Case {
            wrong: "@!%p4 bra A;\nbar.arrive 1, 64; /*!*/\nbra J;\nA: bar.red.or.pred %p5, 1, 64, %p1; /*!*/\nJ:",
            kind: FaultKind::Barrier,
            word: "use one kind",
            right: "@!%p4 bra A;\nbar.arrive 1, 64;\nbra J;\nA: bar.sync 1, 64;\nJ:",
            left: 7,
        },
    ]);
}

#[test]
fn the_clusters_barrier_out_of_turn() {
    check(&[
        Case {
            wrong: "barrier.cluster.arrive;\nbarrier.cluster.arrive; /*!*/\nbarrier.cluster.wait;",
            kind: FaultKind::Barrier,
            word: "put barrier.cluster.wait between",
            right: "barrier.cluster.arrive; barrier.cluster.wait; barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;",
            left: 7,
        },
        Case {
            wrong: "barrier.cluster.wait; /*!*/",
            kind: FaultKind::Barrier,
            word: "barrier.cluster.arrive comes first",
            right: "@%p1 bra A; barrier.cluster.arrive; bra J; A: barrier.cluster.arrive; J: barrier.cluster.wait;",
            left: 7,
        },
        Case {
            wrong: "barrier.cluster.arrive; barrier.cluster.wait;\nbarrier.cluster.wait; /*!*/",
            kind: FaultKind::Barrier,
            word: "without having arrived",
            // Who has arrived may leave.
            right: "barrier.cluster.arrive; st.global.u32 [%d3], %r9; @%p1 exit; barrier.cluster.wait;",
            left: 7,
        },
        Case {
            wrong: "@!%p1 bra J; barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned; /*!*/\nJ:",
            kind: FaultKind::DivergentBarrier,
            word: "have gone past",
            right: "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;",
            left: 7,
        },
        Case {
            wrong: "barrier.cluster.arrive; @%p2 bra A;\nbarrier.cluster.wait.aligned; /*!*/\nbra J; A: barrier.cluster.wait.aligned; /*!*/\nJ:",
            kind: FaultKind::DivergentBarrier,
            word: "without .aligned",
            right: "barrier.cluster.arrive; @%p2 bra A; barrier.cluster.wait; bra J; A: barrier.cluster.wait; J:",
            left: 7,
        },
    ]);
}

#[test]
fn counts_that_an_mbarrier_cannot_hold() {
    const OVER: &str = "2^20 - 1";
    check(&[
        Case {
            wrong: "@!%p3 bra J;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r3], 1048576; /*!*/\nJ:",
            kind: FaultKind::Mbarrier,
            word: OVER,
            right: "@!%p3 bra J;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r3], 1048575;\nJ:",
            left: 7,
        },
        Case {
            wrong: "@!%p3 bra J;\nmbarrier.expect_tx.relaxed.cta.shared.b64 [%r3], 1048575;
mbarrier.expect_tx.relaxed.cta.shared.b64 [%r3], 1; /*!*/\nJ:",
            kind: FaultKind::Mbarrier,
            word: "comes to 1048576",
            right: "@!%p3 bra J;\nmbarrier.expect_tx.relaxed.cta.shared.b64 [%r3], 1048575;
mbarrier.complete_tx.relaxed.cta.shared.b64 [%r3], 1; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r3], 1;\nJ:",
            left: 7,
        },
        Case {
            wrong: "@!%p3 bra J;\nmbarrier.complete_tx.relaxed.cta.shared.b64 [%r3], 1048575;
mbarrier.complete_tx.relaxed.cta.shared.b64 [%r3], 1; /*!*/\nJ:",
            kind: FaultKind::Mbarrier,
            word: "comes to -1048576",
            right: "@!%p3 bra J;\nmbarrier.complete_tx.relaxed.cta.shared.b64 [%r3], 1048575;
mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 1048575; mbarrier.test_wait.parity.shared.b64 %p5, [%r3], 0; selp.u32 %r9, 1, 0, %p5;\nJ:",
            left: 1,
        },
        Case {
            wrong: "@!%p3 bra J;\nmbarrier.arrive.noComplete.shared.b64 %d4, [%r3], 1; /*!*/\nJ:",
            kind: FaultKind::Mbarrier,
            word: "noComplete",
            right: "@!%p3 bra J;\nmbarrier.inval.shared.b64 [%r3]; mbarrier.init.shared.b64 [%r3], 2; mbarrier.arrive.noComplete.shared.b64 %d4, [%r3], 1;\nJ:",
            left: 7,
        },
        Case {
            wrong: "@!%p3 bra J;\nmbarrier.inval.shared.b64 [%r3]; mbarrier.init.shared.b64 [%r3], 1048575;
cp.async.mbarrier.arrive.shared.b64 [%r3]; /*!*/\nJ:",
            kind: FaultKind::Mbarrier,
            word: "use .noinc",
            right: "@!%p3 bra J;\ncp.async.mbarrier.arrive.shared.b64 [%r3]; cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];
mbarrier.test_wait.parity.shared.b64 %p5, [%r3], 0; selp.u32 %r9, 1, 0, %p5;\nJ:",
            left: 1,
        },
        Case {
            wrong: "@!%p3 bra J;\ncp.async.mbarrier.arrive.shared.b64 [%r3+8]; /*!*/\nJ:",
            kind: FaultKind::Mbarrier,
            word: "no mbarrier has been initialised",
            right: "@!%p3 bra J;\ncp.async.mbarrier.arrive.shared.b64 [%r3];\nJ:",
            left: 7,
        },
    ]);
}

#[test]
fn copies_that_read_more_than_they_write() {
    check(&[Case {
        wrong: "mov.u32 %r6, 8;\ncp.async.ca.shared.global [%r2], [%d1], 4, %r6; /*!*/",
        kind: FaultKind::IllegalInstruction,
        word: "src-size is at most cp-size",
        right: "mov.u32 %r6, 0; cp.async.ca.shared.global [%r2], [%d1], 4, %r6; mov.u32 %r6, 4; cp.async.ca.shared.global [%r2], [%d1], 4, %r6;",
        left: 7,
    }]);
}

#[test]
fn addresses_of_another_state_space() {
    let wrong = FaultKind::WrongSpace;
    check(&[
        Case {
            wrong: "ld.const.u32 %r9, [%d1]; /*!*/",
            kind: wrong,
            word: "use ld.global",
            right: "mov.u64 %d4, c; ld.const.u32 %r9, [%d4+4];",
            left: 101,
        },
        Case {
            wrong: "mov.u64 %d4, c;\nld.const.v2.u32 {%r9, %r10}, [%d4+65536]; /*!*/",
            kind: wrong,
            word: "no constant",
            right: "mov.u64 %d4, c; cvta.const.u64 %d4, %d4; ld.v2.u32 {%r10, %r9}, [%d4+8];",
            left: 103,
        },
        Case {
            wrong: "cvt.u64.u32 %d4, %r2; cvta.shared.u64 %d4, %d4;\nld.global.u32 %r9, [%d4]; /*!*/",
            kind: wrong,
            word: "generic address of shared memory",
            right: "st.shared.u32 [%r2], 5; cvt.u64.u32 %d4, %r2; cvta.shared.u64 %d4, %d4; ld.u32 %r9, [%d4];",
            left: 5,
        },
        Case {
            wrong: "cvt.u64.u32 %d4, %r2; cvta.shared.u64 %d4, %d4;\nst.global.u32 [%d4], %r9; /*!*/",
            kind: wrong,
            word: ".shared behind cvta.to.shared",
            right: "cvt.u64.u32 %d4, %r2; cvta.shared.u64 %d4, %d4; cvta.to.shared.u64 %d4, %d4; st.shared.u32 [%d4], 6; ld.shared.u32 %r9, [%r2];",
            left: 6,
        },
        Case {
            wrong: "cvt.u64.u32 %d4, %r2; cvta.shared.u64 %d4, %d4;\nst.shared.u32 [%d4], %r9; /*!*/",
            kind: wrong,
            word: "cvta.to.shared for a generic address",
            right: "st.shared.u32 [%r2], 5; ld.shared.u32 %r9, [%r2];",
            left: 5,
        },
        Case {
            wrong: "mov.u32 %r6, %cluster_ctarank; xor.b32 %r6, %r6, 1; mapa.shared::cluster.u32 %r6, %r2, %r6;
ld.shared::cta.u32 %r9, [%r6]; /*!*/",
            kind: wrong,
            word: "use .shared::cluster",
            right: "st.shared.u32 [%r2], 5; mov.u32 %r6, %cluster_ctarank; mapa.shared::cluster.u32 %r6, %r2, %r6; ld.shared::cta.u32 %r9, [%r6];",
            left: 5,
        },
        // An index below the array is none of these.
        Case {
            wrong: "sub.u32 %r6, %r2, 2048;\nst.shared.u32 [%r6], %r9; /*!*/",
            kind: FaultKind::SharedOutOfBounds,
            word: "",
            right: "st.shared.u32 [%r2], %r9;",
            left: 7,
        },
        Case {
            wrong: "mov.b64 %d4, blob; cvta.param.u64 %d4, %d4;\nst.u32 [%d4], %r1; /*!*/",
            kind: FaultKind::ReadOnly,
            word: "",
            right: "mov.b64 %d4, blob; cvta.param.u64 %d4, %d4; ld.u32 %r9, [%d4+4];",
            left: 0,
        },
    ]);
}

#[test]
fn lanes_outside_of_their_own_mask() {
    let (kind, word) = (FaultKind::IllegalInstruction, "must be in its own mask");
    let pairs = [
        (
            "shfl.sync.idx.b32 %r10, %r1, 3, 31, 0xffff; /*!*/",
            "shfl.sync.idx.b32 %r10, %r1, 3, 31, -1;",
        ),
        (
            "vote.sync.ballot.b32 %r10, %p1, 0xffff; /*!*/",
            "vote.sync.ballot.b32 %r10, %p1, -1;",
        ),
        (
            "match.any.sync.b32 %r10, %r1, 0xffff; /*!*/",
            "match.any.sync.b32 %r10, %r1, -1;",
        ),
        (
            "redux.sync.add.u32 %r10, %r1, 0xffff; /*!*/",
            "redux.sync.add.u32 %r10, %r1, -1;",
        ),
        ("elect.sync _|%p5, 0xffff; /*!*/", "elect.sync _|%p5, -1;"),
    ];
    let cases = pairs.map(|(wrong, right)| Case {
        wrong,
        kind,
        word,
        right,
        left: 7,
    });
    check(&cases);
}

#[test]
fn tensor_memory_that_nobody_gives_back() {
    let kind = FaultKind::IllegalInstruction;
    check(&[
        Case {
            wrong: "@%p4 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 64; st.global.u32 [%d3], %r9;\nexit; /*!*/",
            kind,
            word: "tcgen05.dealloc comes before",
            right: "@!%p4 bra J; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 64; ld.shared.u32 %r6, [%r2];
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64; J:",
            left: 7,
        },
        Case {
            wrong: "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 64; /*!*/",
            kind,
            word: "allocate everything before it",
            right: "",
            left: 7,
        },
    ]);
}
