//! Which hooks are left out: in random straight-line code, none whose check was not made before.

mod common;

use common::{STUB, kernel};
use gsan_ptx::{Instrumented, Options, instrument};
use proptest::prelude::*;
use std::collections::HashMap;

fn run(body: &str) -> Instrumented {
    let text = kernel(body);
    instrument(&text, &Options::new(STUB, "t")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The lines of `body`, from 0, that got a hook.
fn hooked(body: &str) -> Vec<usize> {
    // The body begins on line 7.
    run(body)
        .sites
        .iter()
        .map(|s| s.ptx_line as usize - 7)
        .collect()
}

#[test]
fn the_rules_one_by_one() {
    let load = "ld.global.u32 %r1, [%rd1];";
    let store = "st.global.u32 [%rd1], %r1;";
    for (what, body, expected) in [
        ("read, read", format!("{load}\n{load}"), vec![0]),
        ("write, write", format!("{store}\n{store}"), vec![0]),
        ("write, read", format!("{store}\n{load}"), vec![0]),
        ("read, write", format!("{load}\n{store}"), vec![0, 1]),
        (
            "read, write, read, write",
            format!("{load}\n{store}\n{load}\n{store}"),
            vec![0, 1],
        ),
        (
            "a part",
            "ld.global.v2.u32 {%r1, %r2}, [%rd1+8];\nld.global.u8 %r1, [%rd1+15];".into(),
            vec![0],
        ),
        (
            "a longer one",
            "ld.global.v2.u32 {%r1, %r2}, [%rd1+8];\nld.global.u64 %rd2, [%rd1+12];".into(),
            vec![0, 1],
        ),
        (
            "another base",
            format!("{load}\nld.global.u32 %r1, [%rd2];"),
            vec![0, 1],
        ),
        (
            "a generic one",
            format!("{load}\nld.u32 %r1, [%rd1];"),
            vec![0, 1],
        ),
        (
            "a stale one",
            format!("{store}\nld.global.nc.u32 %r1, [%rd1];"),
            vec![0, 1],
        ),
        (
            "no hook behind a stale one",
            format!("ld.global.nc.u32 %r1, [%rd1];\n{load}"),
            vec![0, 1],
        ),
        (
            "the base changes",
            format!("{load}\nadd.s64 %rd1, %rd1, 4;\n{load}"),
            vec![0, 2],
        ),
        (
            "the load changes its base",
            "ld.global.u64 %rd1, [%rd1];\nld.global.u64 %rd1, [%rd1];".into(),
            vec![0, 1],
        ),
        (
            "a vector changes the base",
            format!("{load}\nmov.b128 {{%rd2, %rd1}}, %q1;\n{load}"),
            vec![0, 2],
        ),
        (
            "a call in between",
            format!("{load}\ncall.uni f, ();\n{load}"),
            vec![0, 2],
        ),
        ("a fence", format!("{load}\nmembar.gl;\n{load}"), vec![0, 2]),
        (
            "a barrier",
            format!("{load}\nbar.sync 0;\n{load}"),
            vec![0, 2],
        ),
        (
            "a barrier of the warp",
            format!("{load}\nbar.warp.sync -1;\n{load}"),
            vec![0, 2],
        ),
        (
            "a shuffle",
            format!("{load}\nshfl.sync.idx.b32 %r3, %r4, 0, 31, -1;\n{load}"),
            vec![0, 2],
        ),
        ("a label", format!("{load}\nL: {load}"), vec![0, 1]),
        (
            "a branch",
            format!("{load}\n@%p1 bra L;\n{load} L:"),
            vec![0, 2],
        ),
        (
            "a strong access",
            format!("{load}\nld.acquire.gpu.global.u32 %r2, [%rd3];\n{load}"),
            vec![0, 1, 2],
        ),
        (
            "a strong access to shared memory",
            format!("{load}\nld.volatile.shared.u32 %r2, [%r3];\n{load}"),
            vec![0, 2],
        ),
        (
            "an atomic in shared memory",
            format!("{load}\natom.shared.add.u32 %r2, [%r3], 1;\n{load}"),
            vec![0, 2],
        ),
        (
            "plain accesses to shared memory",
            format!("{load}\nst.shared.u32 [%r3], %r2;\n{load}"),
            vec![0],
        ),
        (
            "an unknown instruction",
            format!("{load}\nfrobnicate %r5;\n{load}"),
            vec![0, 2],
        ),
        (
            "a scope",
            format!("{load}\n{{ {load} }}\n{load}"),
            vec![0, 1, 2],
        ),
        (
            "strong ones are never left out",
            "red.global.add.u32 [%rd1], 1;\nred.global.add.u32 [%rd1], 1;".into(),
            vec![0, 1],
        ),
        (
            "guarded behind unguarded",
            format!("{load}\n@%p1 {load}"),
            vec![0],
        ),
        (
            "unguarded behind guarded",
            format!("@%p1 {load}\n{load}"),
            vec![0, 1],
        ),
        (
            "the same guard",
            format!("@%p1 {load}\n@%p1 {load}"),
            vec![0],
        ),
        (
            "the other sense",
            format!("@%p1 {load}\n@!%p1 {load}"),
            vec![0, 1],
        ),
        (
            "another predicate",
            format!("@%p1 {load}\n@%p2 {load}"),
            vec![0, 1],
        ),
        (
            "the predicate changes",
            format!("@%p1 {load}\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 {load}"),
            vec![0, 2],
        ),
        (
            "a pair changes the predicate",
            format!("@%p1 {load}\nsetp.eq.u32 %p2|%p1, %r1, 0;\n@%p1 {load}"),
            vec![0, 2],
        ),
        (
            "a copy in between",
            format!("{load}\ncp.async.ca.shared.global [%r1], [%rd1], 4;\n{load}"),
            vec![0, 1],
        ),
        (
            "a variable",
            "ld.global.u32 %r1, [v+4];\nld.global.u16 %h1, [v+6];".into(),
            vec![0],
        ),
    ] {
        assert_eq!(hooked(&body), expected, "{what}:\n{body}");
    }
}

#[test]
fn addresses_that_are_no_global_memory() {
    let local = ".local .b8 depot[64];\nmov.u64 %rd1, depot;\ncvta.local.u64 %rd2, %rd1;\n";
    for (what, body, expected) in [
        ("the address itself", "st.u32 [%rd2+4], %r1;", 0),
        ("a copy", "mov.u64 %rd3, %rd2;\nst.u32 [%rd3], %r1;", 0),
        (
            "a number added",
            "add.s64 %rd3, %rd2, 8;\nld.u32 %r1, [%rd3+4];",
            0,
        ),
        (
            "an index added",
            "mul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd3, %rd2, %rd4;\nld.u32 %r1, [%rd3];",
            0,
        ),
        (
            "something unknown added",
            "ld.param.u64 %rd4, [p];\nadd.s64 %rd3, %rd2, %rd4;\nld.u32 %r1, [%rd3];",
            1,
        ),
        (
            "a loop",
            "mov.u64 %rd3, %rd2;\nL: st.u32 [%rd3], %r1; add.s64 %rd3, %rd3, 4; @%p1 bra L;",
            0,
        ),
        (
            "once another pointer",
            "mov.u64 %rd3, %rd2; @%p1 ld.param.u64 %rd3, [p];\nst.u32 [%rd3], %r1;",
            1,
        ),
        (
            "one of two",
            "ld.param.u64 %rd4, [p]; selp.b64 %rd3, %rd2, %rd4, %p1;\nst.u32 [%rd3], %r1;",
            1,
        ),
        (
            "both of two",
            "cvta.shared.u64 %rd4, %rd1; selp.b64 %rd3, %rd2, %rd4, %p1;\nst.u32 [%rd3], %r1;",
            0,
        ),
        ("an atomic", "atom.add.u32 %r1, [%rd2], 1;", 0),
        (
            "declared anew inside",
            "{ .reg .b64 %rd2; ld.param.u64 %rd2, [p]; st.u32 [%rd2], %r1; }",
            1,
        ),
        (
            "a function's result",
            "call.uni (%rd3), f, (%rd2);\nst.u32 [%rd3], %r1;",
            1,
        ),
        (
            "memory of the cluster",
            "cvta.shared::cluster.u64 %rd4, %rd1;\nst.u32 [%rd4], %r1;",
            1,
        ),
        (
            "global memory said so",
            "cvta.global.u64 %rd4, %rd1;\nst.u32 [%rd4], %r1;",
            1,
        ),
        ("no assignment at all", "st.u32 [%rd7], %r1;", 1),
    ] {
        let result = run(&format!("{local}{body}"));
        assert_eq!(result.sites.len(), expected, "{what}:\n{body}");
        assert_eq!(result.stats.private_generic, 1 - expected as u64, "{what}");
    }
}

/// One line of random code.
#[derive(Debug, Clone)]
enum Line {
    Access {
        write: bool,
        base: u8,
        offset: u8,
        size: u8,
        guard: Option<(u8, bool)>,
        stale: bool,
    },
    Base(u8),
    Predicate(u8),
    Other(&'static str),
    Sync(&'static str),
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![
        12 => (any::<bool>(), 0..2u8, 0..6u8, 0..4u8, prop::option::of((0..2u8, any::<bool>())), prop::bool::weighted(0.1))
            .prop_map(|(write, base, offset, size, guard, stale)| Line::Access { write, base, offset, size, guard, stale: stale && !write }),
        1 => (0..2u8).prop_map(Line::Base),
        1 => (0..2u8).prop_map(Line::Predicate),
        2 => prop::sample::select(vec!["add.u32 %r4, %r5, 1;", "st.shared.u32 [%r6], %r4;", "ld.shared.u32 %r4, [%r6];"]).prop_map(Line::Other),
        1 => prop::sample::select(vec!["bar.sync 0;", "membar.gl;", "L:", "@%p3 bra END;", "call.uni f, ();", "ld.acquire.gpu.global.u32 %r4, [%rd7];"]).prop_map(Line::Sync),
    ]
}

impl Line {
    fn text(&self, n: usize) -> String {
        match self {
            Line::Access {
                write,
                base,
                offset,
                size,
                guard,
                stale,
            } => {
                let guard = guard.map_or(String::new(), |(p, not)| {
                    format!("@{}%p{p} ", if not { "!" } else { "" })
                });
                let ty = ["u8", "u16", "u32", "u64"][*size as usize];
                let register = ["%h1", "%h2", "%r1", "%rd5"][*size as usize];
                let address = format!("[%rd{base}+{}]", u32::from(*offset) * 2);
                let nc = if *stale { ".nc" } else { "" };
                match write {
                    true => format!("{guard}st.global.{ty} {address}, {register};"),
                    false => format!("{guard}ld.global{nc}.{ty} {register}, {address};"),
                }
            }
            Line::Base(n) => format!("add.s64 %rd{n}, %rd{n}, %rd6;"),
            Line::Predicate(n) => format!("setp.eq.u32 %p{n}, %r4, 0;"),
            Line::Other(text) => text.to_string(),
            Line::Sync("L:") => format!("L{n}:"),
            Line::Sync(text) => text.to_string(),
        }
    }
}

/// A byte of memory as straight-line code names it, who touches it (everybody, or those for whom a predicate's value
/// holds), and whether through the non-coherent cache.
type Key = (u8, usize, u32, Option<(u8, usize, bool)>, bool);

/// What is checked, byte by byte, in each stretch without synchronisation: true for a write. `keep` says which lines count.
fn checked(lines: &[Line], keep: impl Fn(usize) -> bool) -> HashMap<(usize, Key), bool> {
    let (mut stretch, mut bases, mut predicates) = (0, [0usize; 2], [0usize; 2]);
    let mut found: HashMap<(usize, Key), bool> = HashMap::new();
    for (n, line) in lines.iter().enumerate() {
        match line {
            Line::Access {
                write,
                base,
                offset,
                size,
                guard,
                stale,
            } if keep(n) => {
                let from = u32::from(*offset) * 2;
                let guard = guard.map(|(p, not)| (p, predicates[p as usize], not));
                for byte in from..from + (1 << size) {
                    let key = (*base, bases[*base as usize], byte, guard, *stale);
                    *found.entry((stretch, key)).or_default() |= write;
                }
            }
            Line::Base(b) => bases[*b as usize] += 1,
            Line::Predicate(p) => predicates[*p as usize] += 1,
            Line::Sync(_) => stretch += 1,
            _ => {}
        }
    }
    found
}

/// Whether a check of `key` is among those `made`: the same one, or one by all threads.
fn is_made(made: &HashMap<(usize, Key), bool>, stretch: usize, key: Key, write: bool) -> bool {
    let (base, version, byte, guard, stale) = key;
    [guard, None].into_iter().any(|guard| {
        made.get(&(stretch, (base, version, byte, guard, stale)))
            .is_some_and(|w| *w >= write)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_checked_per_stretch_is_what_is_accessed(lines in prop::collection::vec(line(), 1..60)) {
        let body: Vec<String> = lines.iter().enumerate().map(|(n, l)| l.text(n)).collect();
        let body = body.join("\n") + "\nEND: ret;";
        let result = run(&body);
        let hooked = hooked(&body);
        let accessed = checked(&lines, |_| true);
        let made = checked(&lines, |n| hooked.contains(&n));
        for ((stretch, key), write) in &accessed {
            prop_assert!(is_made(&made, *stretch, *key, *write), "{key:?} of stretch {stretch} is not checked:\n{body}");
        }
        for check in &made {
            prop_assert!(accessed.contains_key(check.0), "{check:?} is checked though nobody accesses it");
        }
        let accesses = lines.iter().filter(|l| matches!(l, Line::Access { .. })).count() as u64;
        let strong = lines.iter().filter(|l| matches!(l, Line::Sync(t) if t.starts_with("ld."))).count() as u64;
        prop_assert_eq!(result.stats.sites() + result.stats.repeated, accesses + strong);
        // And the check comes first: an access that is left out finds all of its bytes checked by lines before it.
        for (n, line) in lines.iter().enumerate() {
            if !matches!(line, Line::Access { .. }) || hooked.contains(&n) {
                continue;
            }
            let before = checked(&lines[..n], |m| hooked.contains(&m));
            let only = checked(&lines[..=n], |m| m == n);
            for ((stretch, key), write) in &only {
                prop_assert!(is_made(&before, *stretch, *key, *write), "line {n} is left out too early:\n{body}");
            }
        }
    }
}

#[test]
fn random_code_has_something_to_leave_out() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut left_out = 0;
    for _ in 0..50 {
        let lines = prop::collection::vec(line(), 60)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let body: Vec<String> = lines.iter().enumerate().map(|(n, l)| l.text(n)).collect();
        left_out += run(&(body.join("\n") + "\nEND: ret;")).stats.repeated;
    }
    assert!(left_out > 200, "{left_out}");
}
