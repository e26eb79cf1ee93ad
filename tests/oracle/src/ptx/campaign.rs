//! Many programs the whole way.

use super::emit::launchable;
use super::run::{self, Detector, Error};
use crate::campaign::{Case, Constructs, Kind, Summary, program_of};
use crate::compare::{Outcome, Reference, compare};
use crate::interpreter::Run;
use crate::program::Program;
use crate::setup::Format;
use crate::shrink;
use crate::trace::{Access, Item, Trace};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first program's seed; the others follow.
    pub seed: u64,
    /// How many.
    pub programs: u64,
    /// How many share a module and a session.
    pub batch: u64,
    /// End at this many failures.
    pub max_failures: usize,
    /// The cells.
    pub format: Format,
    /// Whether the detector follows the order of `fence.sc`s; `None`: in some batches.
    pub sc_order: Option<bool>,
    /// What the programs are made of.
    pub constructs: Constructs,
}

/// The program of a seed, as it can be launched.
pub fn program(seed: u64, constructs: Constructs) -> Program {
    launchable(&program_of(seed, Kind::of(seed, constructs)))
}

impl Campaign {
    /// Runs it. `progress` is told about every batch that is done.
    pub fn run(&self, progress: &dyn Fn(u64)) -> Summary {
        let judges = [false, true].map(|sc_order| {
            Judge::new(Detector {
                format: self.format,
                sc_order,
            })
        });
        let constructs = self.constructs;
        let mut summary = Summary::default();
        let mut at = 0;
        while at < self.programs && summary.cases.len() < self.max_failures {
            let seeds: Vec<u64> = (at..self.programs.min(at + self.batch.max(1)))
                .map(|i| self.seed.wrapping_add(i))
                .collect();
            at += seeds.len() as u64;
            let programs: Vec<Program> = (seeds.iter())
                .map(|&s| program(s, self.constructs))
                .collect();
            // A session follows the order of `fence.sc`s or does not.
            let sc_order = self
                .sc_order
                .unwrap_or(Kind::of(seeds[0], self.constructs).sc_order);
            let judge = &judges[usize::from(sc_order)];
            match run::run(&programs, judge.detector, seeds[0]) {
                Ok(runs) => {
                    for ((&seed, program), run) in seeds.iter().zip(&programs).zip(&runs) {
                        let kind = Kind {
                            sc_order,
                            ..Kind::of(seed, constructs)
                        };
                        summary.note(seed, kind, judge.outcome(program, run));
                    }
                }
                Err(error) => {
                    let case = culprit(&seeds, &programs, judge.detector, &error, constructs);
                    summary.cases.push(case);
                }
            }
            progress(seeds.len() as u64);
        }
        summary
    }
}

/// Which program of a batch could not be run.
fn culprit(
    seeds: &[u64],
    programs: &[Program],
    detector: Detector,
    error: &Error,
    constructs: Constructs,
) -> Case {
    let alone = seeds.iter().zip(programs).find_map(|(&seed, program)| {
        let one = std::slice::from_ref(program);
        let error = run::run(one, detector, seeds[0]).err()?;
        Some((seed, error.to_string()))
    });
    let (seed, text) = alone.unwrap_or((seeds[0], format!("in a batch only: {error}")));
    Case {
        seed,
        kind: Kind {
            sc_order: detector.sc_order,
            ..Kind::of(seed, constructs)
        },
        failures: vec![text],
        false_alarm: false,
    }
}

/// Judges runs.
pub struct Judge {
    detector: Detector,
    reference: Reference,
}

impl Judge {
    /// Lays out the devices that it explains misses on.
    pub fn new(detector: Detector) -> Judge {
        Judge {
            detector,
            reference: Reference::new(detector.format, detector.sc_order),
        }
    }

    /// What is right and wrong about a run's findings; also whether the interpreter does the same.
    pub fn outcome(&self, program: &Program, run: &Run) -> Outcome {
        let mut outcome = compare(program, self.reference.roomy(), run, &self.reference);
        let again = self.reference.replay(program, &run.schedule);
        let (its, mine) = (accesses(&again.trace), accesses(&run.trace));
        if its != mine {
            let n = its.iter().zip(&mine).take_while(|(a, b)| a == b).count();
            outcome.fail(&format!(
                "the interpreter, in the same order, does something else: {:?}, not {:?}",
                its.get(n),
                mine.get(n)
            ));
        }
        outcome
    }
}

fn accesses(trace: &Trace) -> Vec<Access> {
    (trace.items.iter())
        .filter_map(|item| match item {
            Item::Access(_, access) => Some(*access),
            _ => None,
        })
        .collect()
}

/// A failing program made small, the session's seed, and what is wrong with it.
pub fn minimise(case: &Case, format: Format) -> (Program, u64, Vec<String>) {
    let judge = Judge::new(Detector {
        format,
        sc_order: case.kind.sc_order,
    });
    let wrong = |program: &Program| {
        for seed in case.seed..case.seed + 60 {
            // A program that does not come to its end is of no use.
            let runs = run::run(std::slice::from_ref(program), judge.detector, seed).ok()?;
            let failures = judge.outcome(program, runs.first()?).failures;
            let failures: Vec<String> = (failures.iter())
                .filter(|f| f.false_alarm == case.false_alarm)
                .map(|f| f.to_string())
                .collect();
            if !failures.is_empty() {
                return Some((seed, failures));
            }
        }
        None
    };
    let program = program(case.seed, case.kind.constructs);
    if wrong(&program).is_none() {
        return (program, case.seed, case.failures.clone());
    }
    let small = shrink::shrink(program, |p| wrong(&launchable(p)).is_some());
    let small = launchable(&small);
    let (seed, failures) = wrong(&small).unwrap_or_default();
    (small, seed, failures)
}
