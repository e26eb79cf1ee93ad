//! Asynchronous stores and reductions, bulk stores, the system's part of shared memory, aliases, `redux` of floats, and what
//! the machine lacks by name.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::{FaultKind, Stop};

#[test]
fn asynchronous_stores_complete_their_transactions() {
    for seed in 0..8 {
        let mut b = Bench::with(
            seeded(seed),
            ".version 8.1\n.target sm_90\n.address_size 64
             .visible .entry k(.param .u64 out) {
               .reg .b64 %d<4>; .reg .b32 %r<12>; .reg .pred %p<3>; .shared .align 16 .b8 s[32]; .shared .align 8 .b8 bar[8];
               ld.param.u64 %d1, [out]; mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, 7;
               st.shared.v4.b32 [%r1], {%r4, %r4, %r4, %r4}; st.shared.v4.b32 [%r1+16], {%r4, %r4, %r4, %r4};
               mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 24;
               barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
               xor.b32 %r5, %r3, 1; mapa.shared::cluster.u32 %r6, %r1, %r5; mapa.shared::cluster.u32 %r7, %r2, %r5;
               add.u32 %r8, %r3, 100; add.u32 %r9, %r3, 200; add.u32 %r10, %r3, 300; add.u32 %r11, %r3, 400;
               st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], {%r8, %r9, %r10, %r11}, [%r7];
               red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6+16], %r8, [%r7];
               red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r6+20], %r9, [%r7];
             W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;
               mad.wide.u32 %d1, %r3, 24, %d1; ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r1]; st.global.v2.b32 [%d1], {%r4, %r5};
               st.global.v2.b32 [%d1+8], {%r6, %r7}; ld.shared.v2.b32 {%r4, %r5}, [%r1+16]; st.global.v2.b32 [%d1+16], {%r4, %r5};
               barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret; }",
        );
        assert_eq!(b.machine.unsupported(b.module), []);
        let out = b.words(&[0; 12]);
        b.start_together("k", 2, 1, 2, false, &[out]);
        b.finish().unwrap();
        assert_eq!(
            b.read(out, 12),
            [101, 201, 301, 401, 108, 201, 100, 200, 300, 400, 107, 200]
        );
    }
}

#[test]
fn bulk_stores_write_zeros() {
    let ptx = |size: u32| {
        format!(
            ".version 8.6\n.target sm_100\n.address_size 64
             .visible .entry k(.param .u64 out) {{ .reg .b64 %d<4>; .reg .b32 %r<9>; .shared .align 8 .b8 s[24];
               ld.param.u64 %d1, [out]; mov.u32 %r1, s; mov.u32 %r2, 5; mov.u64 %d2, {size};
               st.shared.v2.b32 [%r1], {{%r2, %r2}}; st.shared.v2.b32 [%r1+8], {{%r2, %r2}}; st.shared.v2.b32 [%r1+16], {{%r2, %r2}};
               st.bulk.weak.shared::cta [%r1+8], %d2, 0;
               ld.shared.v2.b32 {{%r3, %r4}}, [%r1]; ld.shared.v2.b32 {{%r5, %r6}}, [%r1+16];
               st.global.v4.b32 [%d1], {{%r3, %r4, %r5, %r6}}; ret; }}"
        )
    };
    let mut b = Bench::new(&ptx(16));
    let out = b.words(&[9; 4]);
    b.run("k", 1, 1, &[out]);
    assert_eq!(b.read(out, 4), [5, 5, 0, 0]);
    for (size, kind) in [
        (12, FaultKind::IllegalInstruction),
        (24, FaultKind::SharedOutOfBounds),
    ] {
        let mut b = Bench::new(&ptx(size));
        let out = b.words(&[9; 4]);
        let stop = b.try_run("k", 1, 1, &[out]).unwrap_err();
        assert!(
            matches!(stop, Stop::Fault { kind: k, .. } if k == kind),
            "{stop}"
        );
    }
}

#[test]
fn the_systems_shared_memory_is_there_for_those_who_ask() {
    let body = |ask: &str| {
        format!(
            ".visible .entry k(.param .u64 out) {{ .reg .b64 %d<4>; .reg .b32 %r<9>; .shared .align 4 .b8 s[4];
               ld.param.u64 %d1, [out]; mov.u32 %r5, s; mov.u32 %r3, 77; st.shared.b32 [%r5], %r3; {ask}
               ld.shared.b32 %r2, [%r1]; st.global.b32 [%d1], %r2; mov.u32 %r4, 88; st.shared.b32 [%r1], %r4;
               ld.shared.b32 %r2, [%r1]; st.global.b32 [%d1+4], %r2; ld.shared.b32 %r2, [%r5]; st.global.b32 [%d1+8], %r2;
               mov.u32 %r2, %total_smem_size; st.global.b32 [%d1+12], %r2; ret; }}"
        )
    };
    let mut b = Bench::new(&body("mov.u32 %r1, %reserved_smem_offset_1;"));
    assert_eq!(b.machine.unsupported(b.module), []);
    let out = b.words(&[9; 4]);
    b.run("k", 1, 1, &[out]);
    assert_eq!(b.read(out, 4), [0, 88, 77, 128]);
    // Who does not ask has nothing to look for there.
    let mut b = Bench::new(&body("mov.u32 %r1, 512;"));
    let out = b.words(&[9; 4]);
    let stop = b.try_run("k", 1, 1, &[out]).unwrap_err();
    assert!(
        matches!(
            stop,
            Stop::Fault {
                kind: FaultKind::SharedOutOfBounds,
                ..
            }
        ),
        "{stop}"
    );
}

#[test]
fn an_alias_is_the_function() {
    let mut b = Bench::new(
        ".func (.reg .b32 r) one(.reg .b32 x) { add.u32 r, x, 1; ret; }
         .func (.reg .b32 r) other(.reg .b32 x); .alias other, one;
         .visible .entry k(.param .u64 out) { .reg .b64 %d<4>; .reg .b32 %r<4>;
           ld.param.u64 %d1, [out]; mov.u32 %r1, 41; call (%r2), other, (%r1); st.global.b32 [%d1], %r2; ret; }",
    );
    let out = b.words(&[0]);
    b.run("k", 1, 1, &[out]);
    assert_eq!(b.read(out, 1), [42]);
}

#[test]
fn redux_of_floats() {
    let run = |op: &str, values: [f32; 32]| {
        let mut b = Bench::new(&format!(
            ".version 8.6\n.target sm_100a\n.address_size 64
             .visible .entry k(.param .u64 v) {{ .reg .b64 %d<4>; .reg .b32 %r<4>; ld.param.u64 %d1, [v]; mov.u32 %r1, %laneid;
               mad.wide.u32 %d1, %r1, 4, %d1; ld.global.b32 %r2, [%d1]; redux.sync.{op}.f32 %r2, %r2, -1; st.global.b32 [%d1], %r2; ret; }}"
        ));
        assert_eq!(b.machine.unsupported(b.module), []);
        let v = b.words(&values.map(f32::to_bits));
        b.run("k", 1, 32, &[v]);
        let all = b.read(v, 32);
        assert!(all.iter().all(|x| *x == all[0]));
        f32::from_bits(all[0])
    };
    let mut values = [0.0f32; 32];
    (0..32).for_each(|i| values[i] = (i as f32 - 20.0) * if i % 2 == 0 { 1.0 } else { -0.5 });
    assert_eq!(run("min", values), -20.0);
    assert_eq!(run("max", values), 10.0);
    assert_eq!(run("max.abs", values), 20.0);
    values[3] = f32::NAN;
    assert_eq!(run("min", values), -20.0);
    assert!(run("max.NaN", values).is_nan());
    assert!(run("min", [f32::NAN; 32]).is_nan());
}

#[test]
fn what_is_missing_has_a_name() {
    for (body, word) in [
        (
            "multimem.cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], %r2;",
            "multimem copies",
        ),
        (
            "tex.2dms.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%d1, {%r1, %r2, %r3, %r4}];",
            "several samples",
        ),
        (
            "tex.cube.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%d1, {%r1, %r2, %r3, %r4}], %r2;",
            "a depth to compare with",
        ),
        (
            "suld.p.1d.v4.b32.trap {%r1, %r2, %r3, %r4}, [%d1, {%r1}];",
            "surfaces",
        ),
        ("cvt.rs.f16x2.f32 %r1, %r2, %r3, %r4;", "cvt.rs"),
    ] {
        let mut b = Bench::new(&format!(
            ".visible .entry k() {{ .reg .b64 %d<4>; .reg .b32 %r<5>; {body} ret; }}"
        ));
        let stop = b.try_run("k", 1, 1, &[]).unwrap_err();
        let Stop::Unsupported { what, site } = &stop else {
            panic!("{stop}")
        };
        assert!(what.contains(word), "{stop}");
        assert_eq!(site.ptx_line, 4);
    }
}
