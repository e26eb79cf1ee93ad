//! Weak memory: what PTX allows shows, what it forbids does not, and nothing changes for who did not ask for it.

#[path = "weak/litmus.rs"]
mod litmus;

use gsan_sim::MemoryModel::{Sequential, Weak};
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
