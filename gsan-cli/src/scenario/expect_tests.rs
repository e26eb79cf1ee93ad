use super::*;
use crate::render::samples::{clean_report, racy_report};
use crate::scenario::parse::parse;
use std::path::Path;

const HEAD: &str = "[[module]]\nptx = ''\n[[buffer]]\nname = 'data'\ntype = 'u32'\nlen = 4\n";

#[track_caller]
fn judge(expect: &str, runs: &[(Report, Vec<Values>)]) -> Vec<String> {
    let scenario = parse(Path::new("s.toml"), &format!("{HEAD}{expect}")).unwrap();
    let expect = scenario.expect.as_ref().unwrap();
    let mut judge = Judge::new(&scenario, expect, true);
    for (seed, (report, values)) in runs.iter().enumerate() {
        judge.add(seed as u64, report, values);
    }
    judge.differences()
}

fn runs(reports: impl IntoIterator<Item = Report>) -> Vec<(Report, Vec<Values>)> {
    reports.into_iter().map(|r| (r, vec![])).collect()
}

fn ended(outcome: Outcome, message: &str) -> Report {
    let mut report = clean_report();
    report.outcome = outcome;
    report.message = Some(message.into());
    report
}

#[test]
fn a_clean_run_meets_no_races() {
    assert!(judge("[expect]\nraces = []\n", &runs([clean_report()])).is_empty());
    assert!(judge("[expect]\n", &runs([clean_report()])).is_empty());
}

#[test]
fn a_race_that_nobody_expects_is_a_difference() {
    for expect in [
        "[expect]\nraces = []\n",
        "[expect]\n",
        "[[expect.race]]\nkind = 'WAW'\nmin_schedules = 0\n",
    ] {
        let differences = judge(
            expect,
            &runs([racy_report(), racy_report(), clean_report()]),
        );
        assert_eq!(
            differences,
            [
                "s.toml: not expected: a RAW race of class missing-acquire on `data`+16 in kernel _Z8consumerPjS_ at \
              handoff.cu:12 (first with seed 0, in 2 of 3 schedules)"
            ],
            "{expect}"
        );
    }
}

#[test]
fn each_field_of_an_entry_is_compared() {
    let holds = |fields: &str| {
        judge(
            &format!("[[expect.race]]\n{fields}\n"),
            &runs([racy_report()]),
        )
        .is_empty()
    };
    assert!(holds(""));
    for (good, bad) in [
        ("kind = 'RAW'", "kind = 'WAR'"),
        ("kind = ['WAR', 'RAW']", "kind = ['WAR', 'WAW']"),
        ("class = 'missing-acquire'", "class = 'race'"),
        ("class = ['race', 'missing-acquire']", "class = ['race']"),
        ("buffer = 'data'", "buffer = 'other'"),
        ("offset = 16", "offset = 0"),
        ("kernel = '_Z8consumerPjS_'", "kernel = 'producer'"),
        (
            "kernel = 'consumer(unsigned int*, unsigned int*)'",
            "kernel = 'consumer'",
        ),
        ("line = 12", "line = 13"),
    ] {
        assert!(holds(good), "{good}");
        assert!(!holds(bad), "{bad}");
    }
}

#[test]
fn a_prior_line_counts_where_it_is_kept() {
    let expect = "[[expect.race]]\nprior_line = 9\n";
    assert!(judge(expect, &runs([racy_report()])).is_empty());
    let mut report = racy_report();
    report.races[0].prior.site = report.races[0].current.site.clone();
    assert!(!judge(expect, &runs([report.clone()])).is_empty());
    assert!(judge("[[expect.race]]\nprior_line = 12\n", &runs([report])).is_empty());
}

#[test]
fn an_entry_must_show_often_enough() {
    let three = || runs([racy_report(), clean_report(), clean_report()]);
    let with_min = |n: u32| judge(&format!("[[expect.race]]\nmin_schedules = {n}\n"), &three());
    assert!(with_min(0).is_empty());
    assert!(with_min(1).is_empty());
    assert_eq!(
        with_min(2),
        ["s.toml:7: expected a race in at least 2 of 3 schedules; found in 1"]
    );
    // More than were run cannot be asked for.
    assert_eq!(
        with_min(16),
        ["s.toml:7: expected a race in at least 3 of 3 schedules; found in 1"]
    );
    assert_eq!(
        judge(
            "[[expect.race]]\nkind = ['RAW', 'WAR']\nbuffer = 'data'\nline = 3\n",
            &runs([clean_report()])
        ),
        [
            "s.toml:7: expected a RAW or WAR race on `data` at line 3 in at least 1 of 1 schedules; found in 0"
        ]
    );
    assert!(
        judge(
            "[[expect.race]]\nmin_schedules = 0\n",
            &runs([clean_report()])
        )
        .is_empty()
    );
}

#[test]
fn one_race_may_match_several_entries() {
    assert!(
        judge(
            "[[expect.race]]\nkind = 'RAW'\n[[expect.race]]\nbuffer = 'data'\n",
            &runs([racy_report()])
        )
        .is_empty()
    );
}

#[test]
fn outcomes() {
    let trap = "[expect]\noutcome = 'trap'\n";
    assert!(judge(trap, &runs([ended(Outcome::Trap, "x")])).is_empty());
    // A schedule may decide whether it traps.
    assert!(judge(trap, &runs([clean_report(), ended(Outcome::Trap, "x")])).is_empty());
    assert_eq!(
        judge(trap, &runs([clean_report(), clean_report()])),
        ["s.toml: outcome trap was expected, but all 2 schedules completed"]
    );
    assert_eq!(
        judge(trap, &runs([ended(Outcome::Fault, "bad")])),
        ["s.toml: outcome trap was expected, but it ended with outcome fault: bad (seed 0)"]
    );
    assert_eq!(
        judge(
            "[expect]\n",
            &runs([clean_report(), ended(Outcome::Deadlock, "d")])
        ),
        [
            "s.toml: outcome completed was expected, but it ended with outcome deadlock: d (seed 1, one of 2 schedules)"
        ]
    );
}

#[test]
fn messages() {
    let expect = "[expect]\noutcome = 'trap'\nmessage = 'line 7'\n";
    assert!(judge(expect, &runs([ended(Outcome::Trap, "trap in k, line 7")])).is_empty());
    assert_eq!(
        judge(expect, &runs([ended(Outcome::Trap, "trap in k")])),
        ["s.toml: the message was expected to contain `line 7`; it is `trap in k`"]
    );
}

#[test]
fn values_are_a_prefix() {
    let expect = "[expect]\n[[expect.value]]\nbuffer = 'data'\nvalues = [1, 2]\n";
    let run = |values: Values| vec![(clean_report(), vec![values])];
    let ints = |v: &[i128]| Ok(v.iter().map(|i| Number::Int(*i)).collect());
    assert!(judge(expect, &run(ints(&[1, 2]))).is_empty());
    assert!(judge(expect, &run(ints(&[1, 2, 9]))).is_empty());
    assert_eq!(
        judge(expect, &run(ints(&[1, 3]))),
        ["s.toml:8: `data`[1] is 3, expected 2 (seed 0)"]
    );
    assert_eq!(
        judge(expect, &run(ints(&[0, 3]))),
        ["s.toml:8: `data`[0] is 0, expected 1 (and 1 more elements differ) (seed 0)"]
    );
    assert_eq!(
        judge(expect, &run(Err("it was freed".into()))),
        ["s.toml:8: `data` could not be compared: it was freed (seed 0)"]
    );
}

#[test]
fn an_uninstrumented_run_is_not_asked_for_races() {
    let scenario = parse(
        Path::new("s.toml"),
        &format!("{HEAD}[[expect.race]]\nkind = 'RAW'\n"),
    )
    .unwrap();
    let mut judge = Judge::new(&scenario, scenario.expect.as_ref().unwrap(), false);
    judge.add(0, &clean_report(), &[]);
    assert!(judge.differences().is_empty());
}

#[test]
fn a_deadlock_on_a_gpu_ends_like_an_endless_loop() {
    let on = |simulated: bool| {
        let mut report = ended(Outcome::Budget, "the host has waited");
        report.device.simulated = simulated;
        judge("[expect]\noutcome = 'deadlock'\n", &runs([report]))
    };
    assert!(on(false).is_empty());
    assert_eq!(on(true).len(), 1);
}

#[test]
fn values_of_a_dead_context_are_not_compared() {
    let expect = "[expect]\noutcome = 'trap'\n[[expect.value]]\nbuffer = 'data'\nvalues = [1, 2]\n";
    let run = |values: Values| judge(expect, &[(ended(Outcome::Trap, "x"), vec![values])]);
    assert!(run(Err("the run has ended".into())).is_empty());
    assert_eq!(run(Ok(vec![Number::Int(1), Number::Int(3)])).len(), 1);
}

#[test]
fn a_line_may_be_one_of_several() {
    let expect = "[[expect.race]]\nline = [9, 12]\n";
    for (line, allowed) in [(9, true), (12, true), (10, false)] {
        let mut report = racy_report();
        report.races.truncate(1);
        report.races[0].current.site.as_mut().unwrap().line = line;
        let found = judge(expect, &runs([report]));
        assert_eq!(found.is_empty(), allowed, "{found:?}");
    }
}
