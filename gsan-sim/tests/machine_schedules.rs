//! What schedules find: windows of one instruction between blocks, warps and lanes; and that several grids share the
//! machine.

mod common;

use common::{Bench, seeded};
use gsan_sim::Schedule;
use gsan_sim::machine::{GridId, RunEvent, Stop};

/// How often, over 64 seeds, two unsynchronised increments lose one.
fn lost(kernel: &str, grid: u32, block: u32) -> usize {
    lost_with(Schedule::Random, kernel, grid, block)
}

fn lost_with(schedule: Schedule, kernel: &str, grid: u32, block: u32) -> usize {
    (0..64)
        .filter(|&seed| {
            let mut config = seeded(seed);
            config.schedule = schedule;
            let mut b = Bench::with(config, kernel);
            let count = b.words(&[0]);
            b.run("k", grid, block, &[count]);
            match b.read(count, 1)[0] {
                1 => true,
                2 => false,
                n => panic!("{n} after two increments"),
            }
        })
        .count()
}

const BY_BLOCK: &str =
    ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];
  ld.global.u32 %r, [%d]; add.u32 %r, %r, 1; st.global.u32 [%d], %r; ret; }";

const BY_WARP: &str = ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r, %t; .reg .pred %q; ld.param.u64 %d, [p];
  mov.u32 %t, %tid.x; and.b32 %t, %t, 31; setp.ne.u32 %q, %t, 0; @%q ret;
  ld.global.u32 %r, [%d]; add.u32 %r, %r, 1; st.global.u32 [%d], %r; ret; }";

const ATOMIC: &str = ".visible .entry k(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p]; red.global.add.u32 [%d], 1; ret; }";

#[test]
fn a_window_of_one_instruction_is_hit_within_64_schedules_but_not_in_all() {
    let (blocks, warps) = (lost(BY_BLOCK, 2, 1), lost(BY_WARP, 1, 64));
    assert!((1..64).contains(&blocks), "{blocks}");
    assert!((1..64).contains(&warps), "{warps}");
    assert_eq!(lost(ATOMIC, 2, 1), 0);
}

#[test]
fn priorities_find_a_window_that_another_passes_through_in_its_whole_length() {
    for (grid, block, kernel) in [(2, 1, BY_BLOCK), (1, 64, BY_WARP)] {
        let seen = lost_with(Schedule::Priority, kernel, grid, block);
        assert!((4..64).contains(&seen), "{seen}");
    }
    assert_eq!(lost_with(Schedule::Priority, ATOMIC, 2, 1), 0);
}

/// A flag that is raised and taken back at once, behind a loop. A second block looks, and tells a third, which looks too.
const RELAY: &str =
    ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r, %i, %c; .reg .pred %q;
  ld.param.u64 %d, [p]; mov.u32 %c, %ctaid.x; mov.u32 %i, 0;
  N: red.global.add.u32 [%d+64], 1; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 50; @%q bra N;
  setp.eq.u32 %q, %c, 1; @%q bra A; setp.eq.u32 %q, %c, 2; @%q bra B;
  st.release.gpu.global.u32 [%d], 1; st.release.gpu.global.u32 [%d], 0; ret;
  A: ld.acquire.gpu.global.u32 %r, [%d]; st.release.gpu.global.u32 [%d+4], %r; ret;
  B: ld.acquire.gpu.global.u32 %r, [%d+4]; setp.eq.u32 %q, %r, 0; @%q ret;
  ld.acquire.gpu.global.u32 %r, [%d]; st.global.u32 [%d+8], %r; ret; }";

#[test]
fn priorities_let_several_pass_through_a_window_one_after_the_other() {
    let seen = (0..64).filter(|&seed| {
        let mut config = seeded(seed);
        config.schedule = Schedule::Priority;
        let mut b = Bench::with(config, RELAY);
        let words = b.words(&[0; 32]);
        b.run("k", 3, 1, &[words]);
        b.read(words, 3)[2] == 1
    });
    assert!((1..32).contains(&seen.count()));
}

#[test]
fn priorities_let_those_go_on_that_others_wait_for() {
    // Each block waits for the one behind it, by polling, by a lock, and in a function.
    let code = ".global .u32 turn; .global .u32 lock;
      .func (.reg .u32 %v) look() { ld.acquire.gpu.global.u32 %v, [turn]; ret; }
      .visible .entry k() { .reg .b32 %r, %c, %n, %one; .reg .pred %p; mov.u32 %c, %ctaid.x; mov.u32 %n, %nctaid.x; sub.u32 %n, %n, 1; sub.u32 %n, %n, %c;
      mov.u32 %one, 1;
      W: call (%r), look, (); setp.ne.u32 %p, %r, %n; @%p bra W;
      L: atom.acquire.gpu.global.cas.b32 %r, [lock], 0, 1; setp.ne.u32 %p, %r, 0; @%p bra L;
      st.release.gpu.global.u32 [lock], 0; red.release.gpu.global.add.u32 [turn], 1; ret; }";
    for seed in 0..16 {
        let mut config = seeded(seed);
        config.schedule = Schedule::Priority;
        config.step_budget = 2_000_000;
        let mut b = Bench::with(config, code);
        b.start("k", [8, 1, 1], [1, 1, 1], 0, &[]);
        b.finish().unwrap();
    }
}

#[test]
fn grids_run_beside_each_other() {
    // The first waits for what the second writes.
    let code = ".global .u32 flag;
      .visible .entry wait() { .reg .b32 %r; .reg .pred %p; L: ld.acquire.gpu.global.u32 %r, [flag]; setp.eq.u32 %p, %r, 0; @%p bra L; ret; }
      .visible .entry set() { st.release.gpu.global.u32 [flag], 1; ret; }";
    for seed in 0..8 {
        let mut b = Bench::with(seeded(seed), code);
        let first = b.start("wait", [8, 1, 1], [64, 1, 1], 0, &[]);
        assert_eq!(b.machine.run(10_000), RunEvent::Yield);
        let second = b.start("set", [1, 1, 1], [32, 1, 1], 0, &[]);
        assert!(b.machine.is_running(first) && b.machine.is_running(second));
        let mut done: Vec<GridId> = Vec::new();
        loop {
            match b.machine.run(1 << 30) {
                RunEvent::Completed(grid) => done.push(grid),
                RunEvent::Idle => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(done, [second, first]);
    }
}

#[test]
fn blocks_that_never_fit_beside_a_waiting_grid_use_up_the_budget_and_say_who_waits() {
    // All room is taken by blocks that wait for a block that has no room.
    let code = ".global .u32 count;
      .visible .entry all() { .reg .b32 %r, %n; .reg .pred %p; red.global.add.u32 [count], 1; mov.u32 %n, %nctaid.x;
      L: ld.volatile.global.u32 %r, [count]; setp.lt.u32 %p, %r, %n; @%p bra L; ret; }";
    let mut config = seeded(0);
    config.step_budget = 200_000;
    let mut b = Bench::with(config, code);
    let stop = b.try_run("all", 33, 1, &[]).unwrap_err();
    let Stop::Budget { description } = &stop else {
        panic!("{stop}")
    };
    assert!(
        description.contains("kernel all") && description.contains("32 threads"),
        "{description}"
    );
    b.run("all", 31, 1, &[]);
}

#[test]
fn ten_thousand_small_launches() {
    let mut b = Bench::new(ATOMIC);
    let count = b.words(&[0]);
    for _ in 0..10_000 {
        b.run("k", 1, 32, &[count]);
    }
    assert_eq!(b.read(count, 1), [320_000]);
}

#[test]
fn many_blocks_take_turns_on_few_multiprocessors() {
    let mut b = Bench::new(ATOMIC);
    let count = b.words(&[0]);
    b.run("k", 20_000, 32, &[count]);
    assert_eq!(b.read(count, 1), [640_000]);
}

#[test]
fn a_warp_that_arrives_in_parts_counts_once() {
    // Lanes 1 to 31 of two warps arrive and exit; the second one's lane 0 stores last what the third waits for.
    let ptx = "
        .visible .entry k(.param .u64 p) {
        .reg .b64 %a; .reg .b32 %t, %i, %r; .reg .pred %p;
        ld.param.u64 %a, [p];
        mov.u32 %t, %tid.x;
        setp.ge.u32 %p, %t, 64;
        @%p bra waits;
        and.b32 %i, %t, 31;
        setp.ne.u32 %p, %i, 0;
        @%p bra arrives;
        mad.lo.u32 %i, %t, 20, 50;
        again: sub.u32 %i, %i, 1; setp.ne.u32 %p, %i, 0; @%p bra again;
        shr.u32 %r, %t, 5; mul.lo.u32 %r, %r, 7; st.global.u32 [%a], %r;
        arrives: bar.arrive 1, 96;
        exit;
        waits: bar.sync 1, 96;
        ld.global.u32 %r, [%a];
        st.global.u32 [%a+4], %r;
        exit;
        }";
    for seed in 0..32 {
        let mut config = seeded(seed);
        config.preempt.turn = 10;
        let mut b = Bench::with(config, ptx);
        let words = b.words(&[0; 2]);
        b.start("k", [1, 1, 1], [96, 1, 1], 0, &[words]);
        b.finish().unwrap();
        assert_eq!(b.read(words, 2), [7, 7], "seed {seed}");
    }
}

/// All lanes of one block look for the flag under a lock, over and over; the block that raises it wants the lock too.
#[test]
fn priorities_do_not_starve_whom_the_lanes_of_a_warp_wait_for() {
    let code = ".global .u32 lock; .global .u32 flag;
      .visible .entry k() { .reg .b32 %r, %c; .reg .pred %p, %q; mov.u32 %c, %ctaid.x; setp.eq.u32 %q, %c, 0;
      L: atom.acquire.gpu.global.cas.b32 %r, [lock], 0, 1; setp.eq.u32 %p, %r, 0; @%p bra IN; nanosleep.u32 40; bra L;
      IN: @%q st.global.u32 [flag], 1; ld.global.u32 %r, [flag]; st.release.gpu.global.u32 [lock], 0;
      setp.eq.u32 %p, %r, 0; @%p bra L; ret; }";
    for seed in 0..32 {
        let mut config = seeded(seed);
        config.schedule = Schedule::Priority;
        config.step_budget = 1_000_000;
        let mut b = Bench::with(config, code);
        b.start("k", [2, 1, 1], [32, 1, 1], 0, &[]);
        b.finish().unwrap();
    }
}

/// What a hook in a loop reads and writes changes all the time; the loop waits all the same.
#[test]
fn priorities_see_that_a_loop_with_a_hook_in_it_waits() {
    let code = ".global .u32 turn; .global .u32 seen;
      .func __gsan_hook() { .reg .b32 %r; atom.global.add.u32 %r, [seen], 1; st.global.u32 [seen], %r; ret; }
      .visible .entry k() { .reg .b32 %r, %c, %n; .reg .pred %p; mov.u32 %c, %ctaid.x; mov.u32 %n, %nctaid.x; sub.u32 %n, %n, 1; sub.u32 %n, %n, %c;
      W: call __gsan_hook, (); ld.acquire.gpu.global.u32 %r, [turn]; setp.ne.u32 %p, %r, %n; @%p bra W;
      red.release.gpu.global.add.u32 [turn], 1; ret; }";
    for seed in 0..16 {
        let mut config = seeded(seed);
        config.schedule = Schedule::Priority;
        config.step_budget = 100_000;
        let mut b = Bench::with(config, code);
        b.start("k", [8, 1, 1], [1, 1, 1], 0, &[]);
        b.finish().unwrap();
    }
}

/// The window comes after more instructions than a warp may otherwise run while others stand still.
#[test]
fn priorities_let_a_warp_that_writes_go_on_for_long() {
    let code =
        ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r, %i, %c; .reg .pred %q;
      ld.param.u64 %d, [p]; mov.u32 %c, %ctaid.x; mov.u32 %i, 0; setp.eq.u32 %q, %c, 1; @%q bra B;
      N: red.global.add.u32 [%d+64], 1; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 600000; @%q bra N;
      st.release.gpu.global.u32 [%d], 1; st.release.gpu.global.u32 [%d], 0; ret;
      B: ld.acquire.gpu.global.u32 %r, [%d]; st.global.u32 [%d+8], %r; ret; }";
    let found = (0..64).any(|seed| {
        let mut config = seeded(seed);
        config.schedule = Schedule::Priority;
        let mut b = Bench::with(config, code);
        let words = b.words(&[0; 32]);
        b.run("k", 2, 1, &[words]);
        b.read(words, 3)[2] == 1
    });
    assert!(found);
}
