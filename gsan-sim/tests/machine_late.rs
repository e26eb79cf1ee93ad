//! Asynchronous copies are carried out between their issue and the moment when somebody may know of their end: a kernel that
//! does not wait sees what was there before, in some schedules.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::{FaultKind, Stop};
use gsan_sim::{Config, MemoryModel, Schedule};
use std::collections::BTreeSet;

const SEEDS: u64 = 48;

fn configs(seed: u64) -> [Config; 3] {
    let mut all = [(); 3].map(|()| seeded(seed));
    all[1].memory = MemoryModel::Weak;
    all[2].schedule = Schedule::Priority;
    all
}

/// Thread t of one warp has written 1 to its word `b` of shared memory, and copies word t (of value t + 100) of `in` over it.
fn warp(body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .pred %p, %q;\n.reg .b32 %r<9>, %t, %b, %c, %m, %one;\n\
         .reg .b64 %i, %o, %d, %s;\n.shared .align 16 .b8 words[512];\n.shared .align 8 .b64 bar;\n\
         mov.u32 %t, %tid.x; mov.u32 %one, 1; mov.u32 %b, words; shl.b32 %c, %t, 2; add.u32 %b, %b, %c;\n\
         ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mul.wide.u32 %d, %t, 4; add.u64 %s, %i, %d; add.u64 %o, %o, %d;\n\
         st.shared.u32 [%b], 1; st.shared.u32 [%b+128], 1;\n\
         {body}\nst.global.u32 [%o], %r0; ret;\n}}\n"
    )
}

/// What all seeds of all modes leave in the first words of `out`, after the words of `in` that the copy writes.
fn all(body: &str, words: usize) -> BTreeSet<Vec<u32>> {
    let ptx = warp(body);
    let mut seen = BTreeSet::new();
    for config in (0..SEEDS).flat_map(configs) {
        let mut b = Bench::with(config, &ptx);
        let input: Vec<u32> = (0..256).map(|i| i + 100).collect();
        let (input, out) = (b.words(&input), b.words(&[7; 256]));
        b.run("k", 1, 32, &[input, out]);
        seen.insert(b.read(out, words));
    }
    seen
}

fn is(values: &[u32]) -> BTreeSet<Vec<u32>> {
    values.iter().map(|&v| vec![v]).collect()
}

#[test]
fn who_does_not_wait_for_a_small_copy_sees_what_was_there() {
    let copy = "cp.async.ca.shared.global [%b], [%s], 4; cp.async.commit_group;";
    let load = "ld.shared.u32 %r0, [%b];";
    assert_eq!(all(&format!("{copy} {load}"), 1), is(&[1, 100]));
    for wait in ["cp.async.wait_group 0;", "cp.async.wait_all;"] {
        let seen = all(&format!("{copy} {wait} {load}"), 32);
        assert_eq!(seen, BTreeSet::from([(100..132).collect()]), "{wait}");
    }
    // A group that may be pending, and a copy that belongs to none yet.
    assert_eq!(
        all(&format!("{copy} cp.async.wait_group 1; {load}"), 1),
        is(&[1, 100])
    );
    let open = "cp.async.ca.shared.global [%b], [%s], 4; cp.async.wait_group 0;";
    assert_eq!(all(&format!("{open} {load}"), 1), is(&[1, 100]));
    // Groups of the other kind are others.
    assert_eq!(
        all(&format!("{copy} cp.async.bulk.wait_group 0; {load}"), 1),
        is(&[1, 100])
    );
}

#[test]
fn the_older_of_two_groups_is_complete_when_one_may_be_pending() {
    let copies = "cp.async.ca.shared.global [%b], [%s], 4; cp.async.commit_group;\n\
                  cp.async.ca.shared.global [%b+128], [%s+128], 4; cp.async.commit_group;\n\
                  cp.async.wait_group 1; ld.shared.u32 %r0, [%b]; ld.shared.u32 %r1, [%b+128]; shl.b32 %r1, %r1, 16; or.b32 %r0, %r0, %r1;";
    assert_eq!(all(copies, 1), is(&[100 | 1 << 16, 100 | 132 << 16]));
}

#[test]
fn copies_in_flight_take_their_operands_along() {
    // What the registers hold later does not matter; bytes that are not read become zero; lanes are apart.
    let body = "mov.u32 %r2, 2; setp.lt.u32 %p, %t, 16; setp.eq.u32 %q, %t, 3;\n\
                @%p cp.async.ca.shared.global [%b], [%s], 4, %r2;\n\
                @!%p cp.async.ca.shared.global [%b], [%s], 4;\n\
                mov.u32 %r2, 0; mov.u32 %c, %b; mov.u32 %b, 0; mov.u64 %s, 0; not.pred %p, %p; cp.async.commit_group;\n\
                @%q exit; @%q mov.u32 %c, 0; cp.async.wait_group 0; ld.shared.u32 %r0, [%c];";
    let mut want: Vec<u32> = (100..132).collect();
    want[3] = 7;
    assert_eq!(all(body, 32), BTreeSet::from([want]));
    let ignored = "setp.eq.u32 %p, %t, 0; cp.async.ca.shared.global [%b], [%s], 4, %p; setp.ne.u32 %p, %t, 0;\n\
                   cp.async.wait_all; ld.shared.u32 %r0, [%b];";
    let mut want: Vec<u32> = (100..132).collect();
    want[0] = 0;
    assert_eq!(all(ignored, 32), BTreeSet::from([want]));
}

#[test]
fn an_arrival_behind_small_copies_comes_after_them() {
    let body = "mov.u32 %m, bar; setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%m], 32; bar.sync 0;\n\
                cp.async.ca.shared.global [%b], [%s], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%m];\n\
                WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%m], 0; @!%p bra WAIT;\n\
                xor.b32 %b, %b, 4; ld.shared.u32 %r0, [%b];";
    let want = (0..32).map(|t| 100 + (t ^ 1)).collect();
    assert_eq!(all(body, 32), BTreeSet::from([want]));
}

/// Thread 0 copies 128 bytes to shared memory; all read them.
fn bulk(wait: &str) -> String {
    format!(
        "mov.u32 %m, bar; setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%m], 1; bar.sync 0; mov.u32 %c, words;\n\
         @%p mbarrier.arrive.expect_tx.shared.b64 _, [%m], 128;\n\
         @%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%c], [%i], 128, [%m];\n\
         {wait} ld.shared.u32 %r0, [%b];"
    )
}

#[test]
fn who_does_not_wait_at_the_mbarrier_sees_what_was_there() {
    let seen = all(&bulk(""), 1);
    assert_eq!(seen, is(&[1, 100]));
    let wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%m], 0; @!%q bra WAIT;";
    let seen = all(&bulk(wait), 32);
    assert_eq!(seen, BTreeSet::from([(100..132).collect()]));
}

#[test]
fn a_source_that_is_overwritten_too_early_is_copied_as_it_is_then() {
    let store = |wait: &str| {
        format!(
            "setp.eq.u32 %p, %t, 0; mov.u32 %c, words; bar.warp.sync -1; ld.param.u64 %d, [out]; add.u64 %d, %d, 512;\n\
             @%p cp.async.bulk.global.shared::cta.bulk_group [%d], [%c], 128; @%p cp.async.bulk.commit_group;\n\
             {wait} st.shared.u32 [%b], 9; mov.u32 %r0, 0;"
        )
    };
    let last = |body: &str| -> BTreeSet<u32> { all(body, 129).iter().map(|w| w[128]).collect() };
    assert_eq!(last(&store("")), BTreeSet::from([1, 9]));
    for wait in [
        "cp.async.bulk.wait_group.read 0;",
        "cp.async.bulk.wait_group 0;",
    ] {
        assert_eq!(last(&store(wait)), BTreeSet::from([1]), "{wait}");
    }
}

#[test]
fn a_copy_that_fails_in_flight_is_named() {
    let ptx = warp(
        "mov.u64 %s, 64;\ncp.async.ca.shared.global [%b], [%s], 4;\nmov.u32 %r0, 0;\nadd.u32 %r0, %r0, 1;",
    );
    let line = 4 + ptx.lines().position(|l| l.contains("cp.async")).unwrap() as u32;
    for seed in 0..8 {
        let mut b = Bench::with(seeded(seed), &ptx);
        let out = b.words(&[0; 32]);
        match b.try_run("k", 1, 32, &[out, out]) {
            Err(Stop::Fault { kind, site, .. }) => {
                assert_eq!((kind, site.ptx_line), (FaultKind::OutOfBounds, line));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let ptx = warp(
        "cp.async.ca.shared.global [%b], [%s], 4; cp.async.commit_group; ld.shared.u32 %r0, [%b];",
    );
    let run = |seed| {
        let mut b = Bench::with(seeded(seed), &ptx);
        let input: Vec<u32> = (0..256).collect();
        let (input, out) = (b.words(&input), b.words(&[7; 256]));
        b.run("k", 4, 32, &[input, out]);
        (b.machine.steps(), b.read(out, 32))
    };
    for seed in 0..8 {
        assert_eq!(run(seed), run(seed));
    }
}
