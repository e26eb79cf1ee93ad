//! Whole kernels: divergence, barriers, calls, warps, faults, and that a seed fixes a run.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::{FaultKind, Stop};

#[test]
fn each_thread_writes_its_number() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 out) {
            .reg .b32 %r<5>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
            mad.lo.s32 %r4, %r1, %r2, %r3;
            mul.wide.u32 %rd2, %r4, 4;
            add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r4;
            ret;
        }",
    );
    let out = b.words(&[0; 96 * 5]);
    b.run("k", 5, 96, &[out]);
    assert_eq!(b.read(out, 480), (0..480).collect::<Vec<u32>>());
}

/// `out[tid] = body(%r1 = tid)` where the body leaves its result in %r0.
fn per_thread(seed: u64, declarations: &str, body: &str, threads: u32) -> Result<Vec<u32>, Stop> {
    let mut b = Bench::with(
        seeded(seed),
        &format!(
            "{declarations}
            .visible .entry k(.param .u64 out) {{
            .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<20>;
            ld.param.u64 %rd0, [out];
            mov.u32 %r1, %tid.x;
            {body}
            mul.wide.u32 %rd1, %r1, 4;
            add.s64 %rd1, %rd0, %rd1;
            st.global.u32 [%rd1], %r0;
            ret;
            }}"
        ),
    );
    let out = b.words(&vec![0; threads as usize]);
    b.try_run("k", 1, threads, &[out])?;
    Ok(b.read(out, threads as usize))
}

fn ok(declarations: &str, body: &str, threads: u32) -> Vec<u32> {
    let first = per_thread(0, declarations, body, threads).unwrap_or_else(|s| panic!("{s}"));
    for seed in 1..4 {
        assert_eq!(
            per_thread(seed, declarations, body, threads).unwrap(),
            first,
            "seed {seed}"
        );
    }
    first
}

#[test]
fn diverged_lanes_meet_again() {
    let r = ok(
        "",
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
         @%p1 bra EVEN;
         add.u32 %r0, %r1, 1000; bra.uni DONE;
         EVEN: add.u32 %r0, %r1, 2000;
         DONE: activemask.b32 %r3; setp.ne.u32 %p2, %r3, 0xffffffff; @%p2 mov.u32 %r0, 0;",
        64,
    );
    for (i, v) in r.iter().enumerate() {
        assert_eq!(*v, i as u32 + if i % 2 == 0 { 2000 } else { 1000 });
    }
}

#[test]
fn loops_with_different_trip_counts() {
    let r = ok(
        "",
        "mov.u32 %r0, 0; mov.u32 %r2, 0;
         L: setp.gt.u32 %p1, %r2, %r1; @%p1 bra E; add.u32 %r0, %r0, %r2; add.u32 %r2, %r2, 1; bra L;
         E:",
        40,
    );
    for (i, v) in r.iter().enumerate() {
        assert_eq!(*v as usize, i * (i + 1) / 2);
    }
}

#[test]
fn a_spin_lock_inside_one_warp_is_fair() {
    let lock = ".global .u32 lock; .global .u32 count;";
    let body = "SPIN: atom.global.cas.b32 %r2, [lock], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra SPIN;
         ld.volatile.global.u32 %r3, [count]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [count], %r3;
         st.volatile.global.u32 [lock], 0;
         mov.u32 %r0, %r3;";
    for seed in 0..4 {
        let mut r = per_thread(seed, lock, body, 128).unwrap_or_else(|s| panic!("{s}"));
        r.sort_unstable();
        assert_eq!(r, (1..=128).collect::<Vec<u32>>());
    }
}

#[test]
fn barriers_order_shared_memory() {
    let r = ok(
        ".shared .align 4 .b8 s[1024];",
        "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r3, %r2, %r3; st.shared.u32 [%r3], %r1;
         bar.sync 0;
         sub.u32 %r4, 255, %r1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r2, %r4; ld.shared.u32 %r0, [%r4];",
        256,
    );
    assert_eq!(r, (0..256).rev().collect::<Vec<u32>>());
}

#[test]
fn barriers_with_counts_pair_producers_and_consumers() {
    let r = ok(
        ".shared .u32 box;",
        "mov.u32 %r0, 0; setp.lt.u32 %p1, %r1, 32; @%p1 bra PRODUCE;
         bar.sync 3, 64; ld.shared.u32 %r0, [box]; bra.uni DONE;
         PRODUCE: st.shared.u32 [box], 99; bar.arrive 3, 64;
         DONE:",
        64,
    );
    assert!(r[..32].iter().all(|&v| v == 0) && r[32..].iter().all(|&v| v == 99));
}

#[test]
fn barrier_reductions_count_and_combine() {
    let r = ok(
        "",
        "setp.lt.u32 %p1, %r1, 10; bar.red.popc.u32 %r0, 1, %p1;
         bar.red.and.pred %p2, 2, %p1; bar.red.or.pred %p3, 2, %p1;
         @%p2 add.u32 %r0, %r0, 100; @%p3 add.u32 %r0, %r0, 1000;",
        96,
    );
    assert!(r.iter().all(|&v| v == 1010));
}

#[test]
fn a_barrier_that_half_the_block_skips_in_an_endless_wait_is_a_deadlock() {
    let stop = per_thread(0, "", "mov.u32 %r0, 0; setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1; bra.uni B; A: bar.sync 2; B:", 64)
        .unwrap_err();
    let Stop::Deadlock { description, .. } = &stop else {
        panic!("{stop}")
    };
    assert!(description.contains("barrier 1 (32 of 64"), "{description}");
    assert!(description.contains("barrier 2 (32 of 64"), "{description}");
    assert!(description.contains("kernel k"), "{description}");
}

#[test]
fn an_endless_loop_uses_up_the_budget() {
    let mut config = seeded(0);
    config.step_budget = 10_000;
    let mut b = Bench::with(config, ".visible .entry spin() { L: bra L; }");
    let stop = b.try_run("spin", 1, 32, &[]).unwrap_err();
    assert!(
        matches!(&stop, Stop::Budget { description } if description.contains("kernel spin") && description.contains("PTX line 4")),
        "{stop}"
    );
    // The machine can still be used.
    assert!(b.finish().is_ok());
}

#[test]
fn wild_accesses_are_faults_with_their_place() {
    let cases = [
        (
            "mov.u64 %rd2, 0; ld.global.u32 %r0, [%rd2];",
            FaultKind::OutOfBounds,
            0,
        ),
        (
            "mov.u64 %rd2, 0xdeadbeef00; st.u32 [%rd2], %r1;",
            FaultKind::OutOfBounds,
            0x00de_adbe_ef00,
        ),
        (
            "add.s64 %rd2, %rd0, 2; ld.global.u32 %r0, [%rd2];",
            FaultKind::Misaligned,
            u64::MAX,
        ),
        (
            "mov.u32 %r2, 0x100000; st.shared.u32 [%r2], %r1;",
            FaultKind::SharedOutOfBounds,
            0x10_0000,
        ),
        (
            "mov.u32 %r2, 0; ld.shared.u32 %r0, [%r2];",
            FaultKind::SharedOutOfBounds,
            0,
        ),
        (
            "mov.u32 %r2, 0x8000000; ld.local.u32 %r0, [%r2];",
            FaultKind::LocalOutOfBounds,
            0x800_0000,
        ),
        ("bar.sync 16;", FaultKind::Barrier, 0),
        (
            "ld.global.u32 %r0, [%rd0+128];",
            FaultKind::OutOfBounds,
            u64::MAX,
        ),
        (
            "mov.u64 %rd2, c; st.global.u32 [%rd2], %r1;",
            FaultKind::ReadOnly,
            u64::MAX,
        ),
        (
            "mov.u64 %rd2, 12345; call %rd2, (), P;",
            FaultKind::BadTarget,
            12345,
        ),
    ];
    for (body, kind, at) in cases {
        let stop = per_thread(
            0,
            ".const .u32 c = 5;",
            &format!("P: .callprototype _ ();\n{body}"),
            32,
        )
        .unwrap_err();
        let Stop::Fault {
            kind: k,
            address,
            site,
            ..
        } = &stop
        else {
            panic!("{body}: {stop}")
        };
        assert_eq!(*k, kind, "{body}: {stop}");
        assert!(at == u64::MAX || *address == at, "{body}: {stop}");
        assert_eq!(
            (site.kernel.as_str(), site.block, site.thread),
            ("k", [0; 3], [0; 3]),
            "{stop}"
        );
        assert!(site.ptx_line > 4, "{stop}");
    }
}

#[test]
fn a_trap_names_its_thread() {
    let stop = per_thread(0, "", "setp.eq.u32 %p1, %r1, 37; @%p1 trap;", 64).unwrap_err();
    assert!(
        matches!(&stop, Stop::Trap { site } if site.thread == [37, 0, 0]),
        "{stop}"
    );
}

const FIB: &str = ".func (.param .u32 out) fib(.param .u32 n) {
    .reg .pred %p; .reg .u32 %n, %a, %b, %m;
    ld.param.u32 %n, [n];
    setp.lt.u32 %p, %n, 2;
    @%p bra SMALL;
    { .param .u32 r; .param .u32 x; sub.u32 %m, %n, 1; st.param.u32 [x], %m; call (r), fib, (x); ld.param.u32 %a, [r]; }
    { .param .u32 r; .param .u32 x; sub.u32 %m, %n, 2; st.param.u32 [x], %m; call (r), fib, (x); ld.param.u32 %b, [r]; }
    add.u32 %a, %a, %b; st.param.u32 [out], %a; ret;
    SMALL: st.param.u32 [out], %n; ret;
  }
  .func (.reg .u32 out) twice(.reg .u32 n) { add.u32 out, n, n; ret; }
  .func forever() { call forever; ret; }
  .global .u64 table[2] = { fib, twice };";

#[test]
fn calls_recurse_and_go_through_pointers() {
    let r = ok(
        FIB,
        "and.b32 %r2, %r1, 15; { .param .u32 x; .param .u32 r; st.param.u32 [x], %r2; call (r), fib, (x); ld.param.u32 %r0, [r]; }",
        64,
    );
    let fib = |n: u32| (0..n).fold((0u32, 1u32), |(a, b), _| (b, a + b)).0;
    for (i, v) in r.iter().enumerate() {
        assert_eq!(*v, fib(i as u32 % 16));
    }
    let r = ok(FIB, "call (%r0), twice, (%r1);", 32);
    assert_eq!(r[21], 42);
    // Lanes call different functions.
    let r = ok(
        FIB,
        "P: .callprototype (.param .u32 _) _ (.param .u32 _);
         and.b32 %r2, %r1, 1; mul.wide.u32 %rd2, %r2, 8; mov.u64 %rd3, table; add.s64 %rd3, %rd3, %rd2; ld.global.u64 %rd4, [%rd3];
         and.b32 %r3, %r1, 7; { .param .u32 x; .param .u32 r; st.param.u32 [x], %r3; call (r), %rd4, (x), P; ld.param.u32 %r0, [r]; }
         activemask.b32 %r5;",
        32,
    );
    for (i, v) in r.iter().enumerate() {
        let n = i as u32 % 8;
        assert_eq!(*v, if i % 2 == 0 { fib(n) } else { 2 * n });
    }
}

#[test]
fn endless_recursion_overflows_the_stack() {
    let stop = per_thread(0, FIB, "mov.u32 %r0, 0; call forever;", 32).unwrap_err();
    assert!(
        matches!(&stop, Stop::Fault { kind: FaultKind::StackOverflow, site, .. } if site.function == "forever"),
        "{stop}"
    );
}

#[test]
fn indexed_branches() {
    let r = ok(
        "",
        "T: .branchtargets A, B, C;
         rem.u32 %r2, %r1, 3; brx.idx %r2, T;
         A: mov.u32 %r0, 10; bra.uni E; B: mov.u32 %r0, 20; bra.uni E; C: mov.u32 %r0, 30; E:",
        33,
    );
    assert!(r.iter().enumerate().all(|(i, &v)| v == [10, 20, 30][i % 3]));
    let stop = per_thread(
        0,
        "",
        "T: .branchtargets A; brx.idx %r1, T; A: mov.u32 %r0, 1;",
        32,
    )
    .unwrap_err();
    assert!(
        matches!(
            stop,
            Stop::Fault {
                kind: FaultKind::BadTarget,
                ..
            }
        ),
        "{stop}"
    );
}

#[test]
fn lanes_exchange_values() {
    let r = ok("", "shfl.sync.bfly.b32 %r0|%p1, %r1, 1, 31, -1;", 32);
    assert!(r.iter().enumerate().all(|(i, &v)| v as usize == i ^ 1));
    let r = ok(
        "",
        "shfl.sync.down.b32 %r0|%p1, %r1, 4, 31, -1; @!%p1 mov.u32 %r0, 77;",
        32,
    );
    assert!(
        r.iter()
            .enumerate()
            .all(|(i, &v)| v as usize == if i < 28 { i + 4 } else { 77 })
    );
    let r = ok(
        "",
        "shfl.sync.up.b32 %r0|%p1, %r1, 1, 0, -1; @!%p1 mov.u32 %r0, 77;",
        32,
    );
    assert!(
        r.iter()
            .enumerate()
            .all(|(i, &v)| v as usize == if i > 0 { i - 1 } else { 77 })
    );
    // Segments of eight lanes.
    let r = ok("", "shfl.sync.idx.b32 %r0, %r1, 3, 0x181f, -1;", 32);
    assert!(
        r.iter()
            .enumerate()
            .all(|(i, &v)| v as usize == i / 8 * 8 + 3)
    );
    let r = ok(
        "",
        "setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r0, %p1, -1;",
        32,
    );
    assert!(r.iter().all(|&v| v == 0x1f));
    let r = ok(
        "",
        "shr.u32 %r2, %r1, 2; match.any.sync.b32 %r0, %r2, -1;",
        32,
    );
    assert!(r.iter().enumerate().all(|(i, &v)| v == 0xf << (i / 4 * 4)));
    let r = ok("", "redux.sync.add.s32 %r0, %r1, -1;", 32);
    assert!(r.iter().all(|&v| v == 496));
    let r = ok(
        "",
        "mov.u32 %r0, 0; elect.sync _|%p1, -1; @%p1 mov.u32 %r0, 1;",
        64,
    );
    assert!(
        r.iter()
            .enumerate()
            .all(|(i, &v)| v == u32::from(i % 32 == 0))
    );
}

#[test]
fn an_exchange_waits_for_lanes_on_another_way() {
    let r = ok(
        "",
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra SLOW; bra.uni J;
         SLOW: mov.u32 %r5, 0; L: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 900; @%p2 bra L;
         J: shfl.sync.idx.b32 %r0, %r1, 0, 31, -1; add.u32 %r0, %r0, 5;",
        32,
    );
    assert!(r.iter().all(|&v| v == 5));
}

#[test]
fn local_memory_and_generic_addresses() {
    let r = ok(
        ".shared .align 8 .b8 s[256];",
        ".local .align 8 .b8 depot[64];
         cvta.local.u64 %rd2, depot; st.u32 [%rd2+8], %r1; st.u8 [%rd2+9], 1; ld.local.u32 %r0, [depot+8];
         isspacep.local %p1, %rd2; @!%p1 mov.u32 %r0, 0; isspacep.global %p2, %rd2; @%p2 mov.u32 %r0, 0;
         cvta.shared.u64 %rd3, s; isspacep.shared %p3, %rd3; @!%p3 mov.u32 %r0, 0;
         isspacep.global %p4, %rd0; @!%p4 mov.u32 %r0, 0;
         st.v2.u32 [%rd3+16], {%r0, %r0}; cvta.to.shared.u64 %rd4, %rd3; ld.shared.u32 %r0, [%rd4+20];",
        1,
    );
    assert_eq!(r[0], 0x100);
    let r = ok(
        "",
        ".local .align 16 .b8 d[32]; st.local.v4.u32 [d+16], {%r1, 1, 2, %r1}; ld.local.v2.u32 {%r2, %r0}, [d+24]; add.u32 %r0, %r0, %r2;",
        32,
    );
    assert!(r.iter().enumerate().all(|(i, &v)| v as usize == i + 2));
}

#[test]
fn kernel_parameters_have_addresses() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 out, .param .align 8 .b8 s[32], .param .u8 x) {
            .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;
            ld.param.u64 %rd1, [out]; ld.param.u8 %r1, [x]; mov.b64 %rd2, s; ld.param.u32 %r2, [%rd2+8];
            cvta.param.u64 %rd3, %rd2; ld.u32 %r3, [%rd3+16]; ld.param.v2.u32 {%r4, %r5}, [s+24];
            isspacep.param %p, %rd3; selp.u32 %r6, 1, 0, %p;
            st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r5}; st.global.u32 [%rd1+16], %r6; ret; }",
    );
    let out = b.words(&[0; 8]);
    let f = b.kernel("k");
    let info = b.machine.function_info(f).unwrap().clone();
    assert_eq!(info.params, [(0, 8), (8, 32), (40, 1)]);
    let mut params = out.to_le_bytes().to_vec();
    params.extend((0..8u32).flat_map(|i| (i * 11).to_le_bytes()));
    params.push(200);
    let launch = gsan_sim::machine::LaunchDesc {
        device: 0,
        function: f,
        grid: [1; 3],
        block: [1; 3],
        cluster: [1; 3],
        dynamic_shared: 0,
        user_dynamic: None,
        params,
        cooperative: false,
    };
    b.machine.launch(launch).unwrap();
    b.finish().unwrap();
    assert_eq!(b.read(out, 5), [200, 22, 44, 77, 1]);
}

#[test]
fn shared_memory_sizes_are_those_of_the_hardware() {
    let mut b = Bench::new(
        ".shared .align 4 .b8 s[20]; .extern .shared .align 16 .b8 dyn[];
         .visible .entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [out]; mov.u32 %r1, %dynamic_smem_size; mov.u32 %r2, %total_smem_size; mov.u32 %r3, %aggr_smem_size;
            mov.u32 %r4, s; mov.u32 %r5, dyn; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.u32 [%rd1+16], %r5;
            st.shared.u32 [dyn+96], %r1; ret; }
         .visible .entry lone(.param .u64 out) { .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1, [out];
            mov.u32 %r1, dyn; mov.u32 %r2, %total_smem_size; st.global.v2.u32 [%rd1], {%r1, %r2}; ret; }",
    );
    let out = b.words(&[0; 5]);
    b.start("k", [1; 3], [1; 3], 100, &[out]);
    b.finish().unwrap();
    assert_eq!(b.read(out, 5), [100, 256, 1024 + 32 + 100, 1024, 1024 + 32]);
    b.start("lone", [1; 3], [1; 3], 129, &[out]);
    b.finish().unwrap();
    assert_eq!(b.read(out, 2), [1024, 256]);
}

#[test]
fn a_seed_fixes_the_run_and_other_seeds_give_other_runs() {
    // The order in which blocks take tickets shows the schedule.
    let run = |seed: u64| {
        let mut b = Bench::with(
            seeded(seed),
            ".global .u32 ticket;
             .visible .entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %rd<5>;
             ld.param.u64 %rd1, [out]; atom.global.add.u32 %r1, [ticket], 1; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;
             mad.lo.u32 %r2, %r2, 64, %r3; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r2; ret; }",
        );
        let out = b.words(&[0; 64 * 40]);
        b.run("k", 40, 64, &[out]);
        (b.read(out, 64 * 40), b.machine.steps())
    };
    let runs: Vec<_> = (0..6).map(run).collect();
    assert_eq!(run(3), runs[3]);
    assert!((1..6).any(|i| runs[i].0 != runs[0].0));
    let mut sorted = runs[5].0.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..64 * 40).collect::<Vec<u32>>());
}

#[test]
fn printf_malloc_and_assert() {
    let decl = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
      .extern .func (.param .b64 r) malloc(.param .b64 n); .extern .func free(.param .b64 p);
      .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
      .global .align 1 .b8 fmt[20] = {116, 61, 37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 115, 10, 0};
      .global .align 1 .b8 str[4] = {97, 98, 99};";
    let mut b = Bench::new(&format!(
        "{decl} .visible .entry k(.param .u64 bad) {{ .reg .b64 %rd<9>; .reg .b32 %r<5>; .reg .pred %p;
          .local .align 8 .b8 args[24];
          mov.u32 %r1, %tid.x; st.local.u32 [args], %r1; st.local.u64 [args+8], 0d3FF8000000000000; cvta.global.u64 %rd1, str; st.local.u64 [args+16], %rd1;
          cvta.global.u64 %rd2, fmt; cvta.local.u64 %rd3, args;
          {{ .param .b64 p0; .param .b64 p1; .param .b32 r; st.param.b64 [p0], %rd2; st.param.b64 [p1], %rd3; call.uni (r), vprintf, (p0, p1); ld.param.b32 %r2, [r]; }}
          // It returns how many arguments there were; without a format, -1.
          setp.ne.s32 %p, %r2, 3; @%p trap;
          {{ .param .b64 p0; .param .b64 p1; .param .b32 r; st.param.b64 [p0], 0; st.param.b64 [p1], 0; call.uni (r), vprintf, (p0, p1); ld.param.b32 %r2, [r]; }}
          setp.ne.s32 %p, %r2, -1; @%p trap;
          {{ .param .b64 p0; .param .b64 r; st.param.b64 [p0], 100; call.uni (r), malloc, (p0); ld.param.b64 %rd4, [r]; }}
          st.u32 [%rd4+96], 1;
          {{ .param .b64 p0; st.param.b64 [p0], %rd4; call.uni free, (p0); }}
          ld.param.u64 %rd5, [bad]; setp.eq.u64 %p, %rd5, 0; @%p ret;
          {{ .param .b64 p0; .param .b32 p2; st.param.b64 [p0], %rd1; st.param.b32 [p2], 42; call.uni __assertfail, (p0, p0, p2, p0, p0); }}
          ret; }}"
    ));
    b.run("k", 1, 2, &[0]);
    assert_eq!(
        String::from_utf8(b.machine.take_output()).unwrap(),
        "t=0  1.50 abc\nt=1  1.50 abc\n"
    );
    let stop = b.try_run("k", 1, 1, &[1]).unwrap_err();
    assert!(
        matches!(&stop, Stop::Assert { message, .. } if message == "abc:42: abc: abc"),
        "{stop}"
    );
}

#[test]
fn undefined_names_are_load_errors_with_their_line() {
    let mut machine = gsan_sim::machine::Machine::new(seeded(0));
    for (body, word) in [
        ("mov.u32 %nope, 1;", "%nope"),
        ("bra NOWHERE;", "NOWHERE"),
        ("call missing;", "missing"),
        (".reg .b32 %r; ld.global.u32 %r, [unknown];", "unknown"),
    ] {
        let text = format!("{}.entry k() {{\n{body}\nret; }}", common::HEADER);
        let e = machine.load_module(0, &text).unwrap_err();
        assert!(e.line == 5 && e.message.contains(word), "{e}");
    }
    let e = machine.load_module(0, "not ptx at all").unwrap_err();
    assert!(!e.message.is_empty());
}

#[test]
fn an_instruction_that_is_lacking_stops_only_who_executes_it() {
    let mut b = Bench::new(
        ".visible .entry k() { .reg .pred %p; setp.eq.u32 %p, 1, 2; @%p frobnicate.u32 ; ret; }",
    );
    assert_eq!(b.machine.unsupported(b.module).len(), 1);
    b.run("k", 1, 32, &[]);
    let mut b = Bench::new(".visible .entry k() { frobnicate.u32 ; ret; }");
    let stop = b.try_run("k", 1, 32, &[]).unwrap_err();
    assert!(
        matches!(&stop, Stop::Unsupported { what, .. } if what.contains("frobnicate")),
        "{stop}"
    );
}
