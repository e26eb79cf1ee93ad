//! Weak memory: what PTX allows shows, what it forbids does not, and nothing changes for who did not ask for it.

mod common;
#[path = "weak/litmus.rs"]
mod litmus;

use common::{Bench, seeded};
use gsan_sim::MemoryModel::{Sequential, Weak};
use gsan_sim::machine::{FaultKind, LaunchDesc, RunEvent, Stop};
use litmus::{EACH, all};

#[test]
fn what_is_allowed_shows_and_what_is_forbidden_does_not() {
    let mut wrong = Vec::new();
    for test in all() {
        // What is allowed may need some time to show.
        let most = if test.allowed { 64 } else { 8 };
        let (mut seen, mut runs) = (0, 0);
        for seed in 0..most {
            let (more, of) = test.run(EACH, seed, Weak);
            (seen, runs) = (seen + more, runs + of);
            if seen > 0 {
                break;
            }
        }
        if (seen > 0) != test.allowed {
            wrong.push(format!(
                "{}: {} seen {seen} times in {runs}",
                test.name, test.asks
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn by_default_memory_is_sequentially_consistent() {
    for test in all().filter(|t| {
        t.name.starts_with("SB")
            || t.name.starts_with("MP, weak")
            || t.name.starts_with("LB")
            || t.name.starts_with("IRIW")
    }) {
        assert_eq!(test.run(EACH, 1, Sequential).0, 0, "{}", test.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let test = all().next().unwrap();
    let one = test.run(EACH, 7, Weak);
    assert_eq!(one, test.run(EACH, 7, Weak));
    assert!((0..8).any(|seed| test.run(EACH, seed, Weak) != one));
}

fn weak(seed: u64, body: &str) -> Bench {
    let mut config = seeded(seed);
    config.memory = Weak;
    let registers = ".reg .pred %p; .reg .b32 %r<9>, %t; .reg .b64 %x, %y, %z, %d;";
    Bench::with(
        config,
        &format!(
            ".visible .entry k(.param .u64 words) {{\n{registers}\nmov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4;\n\
             ld.param.u64 %x, [words]; add.u64 %x, %x, %d; add.u64 %y, %x, 128; add.u64 %z, %y, 128;\n{body}\nret; }}"
        ),
    )
}

#[test]
fn what_is_put_off_takes_its_operands_along() {
    // Of the upper half, even lanes store pairs.
    let body = "setp.lt.u32 %p, %t, 16; add.u32 %r1, %t, 10; mov.u32 %r2, 3; and.b32 %r4, %t, 1;\n\
                @%p atom.relaxed.gpu.cas.b32 %r3, [%x], 0, %r1;\n\
                @%p mov.u32 %r4, 1; setp.eq.u32 %p, %r4, 0;\n\
                @%p st.v2.u32 [%x], {%r1, %r1};\n\
                red.relaxed.gpu.add.u32 [%z], %r2;\n\
                mov.u32 %r1, 99; not.pred %p, %p; mov.u32 %r2, 50; mov.u64 %d, %x; mov.u64 %x, 0; mov.u64 %z, %y;\n\
                st.u32 [%y], %r2; st.u32 [%y], %r1;\n\
                mov.u32 %r1, 1; red.relaxed.gpu.add.u32 [%y], %r1; mov.u32 %r1, 7;";
    for seed in 0..128 {
        let mut b = weak(seed, body);
        let words = b.words(&[0; 96]);
        b.run("k", 1, 32, &[words]);
        let want: Vec<u32> = (0..32)
            .map(|t| 10 + if t < 16 { t } else { t & !1 })
            .chain([100; 32])
            .chain([3; 32])
            .collect();
        assert_eq!(b.read(words, 96), want, "seed {seed}");
    }
}

#[test]
fn an_atomic_that_fails_is_named_although_it_might_wait() {
    for (address, kind) in [
        ("64", FaultKind::OutOfBounds),
        ("%x+2", FaultKind::Misaligned),
    ] {
        for (seed, access) in (0..32).flat_map(|seed| {
            [
                "atom.relaxed.gpu.add.u32 %r1, [A], 1;",
                "st.u32 [A], 1;",
                "ld.u32 %r1, [A];",
            ]
            .map(|access| (seed, access))
        }) {
            let access = access.replace('A', "%d");
            let at = match address.split_once('+') {
                Some((base, offset)) => format!("add.u64 %d, {base}, {offset};"),
                None => format!("mov.u64 %d, {address};"),
            };
            let mut b = weak(
                seed,
                &format!("{at}\n{access}\nst.u32 [%y], 1;\nst.u32 [%z], 1;"),
            );
            let words = b.words(&[0; 96]);
            match b.try_run("k", 1, 32, &[words]) {
                Err(Stop::Fault {
                    kind: found, site, ..
                }) => {
                    assert_eq!((found, site.ptx_line), (kind, 9), "{access}");
                }
                other => panic!("{access}: {other:?}"),
            }
        }
    }
}

/// What a dependent grid reads, in some schedule, of a word that the grid before has written.
fn dependent_grid_reads(fence: &str) -> std::collections::BTreeSet<u32> {
    let ptx = format!(
        ".visible .entry first(.param .u64 words) {{ .reg .b64 %x; .reg .b32 %r<3>; .reg .pred %p; ld.param.u64 %x, [words];\n\
         st.relaxed.gpu.u32 [%x], 1; {fence} griddepcontrol.launch_dependents; mov.u32 %r1, 0;\n\
         L: add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 500; @%p bra L; ret; }}\n\
         .visible .entry next(.param .u64 words) {{ .reg .b64 %x; .reg .b32 %r<3>; ld.param.u64 %x, [words];\n\
         ld.relaxed.gpu.u32 %r1, [%x]; st.u32 [%x+64], %r1; ret; }}"
    );
    let run = |seed| {
        let mut config = seeded(seed);
        config.memory = Weak;
        let mut b = Bench::with(config, &ptx);
        let words = b.words(&[0; 32]);
        let launch = |b: &Bench, name| LaunchDesc {
            device: 0,
            function: b.kernel(name),
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            dynamic_shared: 0,
            user_dynamic: None,
            params: words.to_le_bytes().to_vec(),
            cooperative: false,
        };
        let (first, next) = (launch(&b, "first"), launch(&b, "next"));
        let id = b.machine.launch(first).unwrap();
        assert!(!b.machine.watch_release(id));
        let mut begun = false;
        loop {
            match b.machine.run(1 << 40) {
                RunEvent::Idle => break b.read(words, 32)[16],
                RunEvent::Stopped(stop) => panic!("{stop}"),
                _ if !begun && b.machine.take_released() == [id] => {
                    begun = true;
                    b.machine.launch_dependent(next.clone(), id).unwrap();
                }
                _ => {}
            }
        }
    };
    (0..64).map(run).collect()
}

#[test]
fn a_dependent_grid_sees_what_was_fenced_before_it_was_let_begin() {
    assert_eq!(dependent_grid_reads("fence.acq_rel.gpu;"), [1].into());
    assert_eq!(dependent_grid_reads(""), [0, 1].into());
    assert_eq!(dependent_grid_reads("fence.acq_rel.cta;"), [0, 1].into());
}
