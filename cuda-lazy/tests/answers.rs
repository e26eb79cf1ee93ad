//! The simulated driver answers as an H200's did: the same calls, compared line by line with what was recorded there.

#[path = "common/answers.rs"]
mod calls;
#[path = "common/captures.rs"]
mod captures;
mod common;

use common::Simulated;

const RECORDED: &str = include_str!("answers.h200.txt");
const CAPTURES: &str = include_str!("captures.h200.txt");

/// Runs calls on a fresh simulated driver without a current context.
fn on_the_simulator(calls: impl FnOnce() -> String) -> String {
    let mut sim = Simulated::new();
    sim.context = None;
    // SAFETY: no pointers.
    let _ = unsafe { cust_raw::cuCtxSetCurrent(std::ptr::null_mut()) };
    calls()
}

#[test]
fn answers_are_those_of_a_gpu() {
    let mut ours = on_the_simulator(calls::answers);
    for (kernel, argument) in calls::FAILURES {
        ours += &on_the_simulator(|| calls::after(kernel, argument));
    }
    compare(RECORDED, &ours);
}

#[test]
fn calls_during_captures_are_answered_as_by_a_gpu() {
    compare(CAPTURES, &on_the_simulator(captures::captures));
}

fn compare(theirs: &str, ours: &str) {
    let theirs: Vec<&str> = theirs
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let ours: Vec<&str> = ours.lines().collect();
    let differences: Vec<String> = theirs
        .iter()
        .zip(&ours)
        .filter(|(theirs, ours)| theirs != ours)
        .map(|(theirs, ours)| format!("GPU: {theirs}    simulator: {ours}"))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(theirs.len(), ours.len());
}
