//! Many programs, many schedules, on devices of several shapes.

use crate::compare::{Class, Outcome, Reference, Verdict, compare};
use crate::generate::{self, Widths};
use crate::interpreter;
use crate::program::Program;
use crate::random::Random;
use crate::setup::{Format, Setup};
use crate::shrink;
use gsan_device::mutants::{self, Edge};
use std::collections::BTreeMap;
use std::fmt;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first program's seed; the others follow.
    pub seed: u64,
    /// How many.
    pub programs: u64,
    /// Threads to run them on.
    pub jobs: usize,
    /// An edge that the detector does without.
    pub without: Option<Edge>,
    /// End at this many failures.
    pub max_failures: usize,
    /// The cells.
    pub format: Format,
    /// Run only this kind, if given.
    pub only: Option<Kind>,
    /// Whether the detector follows the order of `fence.sc`s; `None`: for some programs.
    pub sc_order: Option<bool>,
    /// What the programs are made of.
    pub constructs: Constructs,
}

/// What programs are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Constructs {
    /// Accesses, fences, barriers, streams and events.
    #[default]
    Classic,
    /// Clusters, mbarriers, asynchronous copies and graphs as well.
    Wide,
}

/// What is varied from one program to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Widths of the accesses.
    pub widths: Width,
    /// The device.
    pub device: DeviceKind,
    /// Whether the detector follows the order of `fence.sc`s.
    pub sc_order: bool,
    /// What the program is made of.
    pub constructs: Constructs,
}

/// [`Widths`], in an order for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// Words.
    Words,
    /// Down to bytes.
    Any,
}

/// A device's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A slot per block.
    Roomy,
    /// Tiny rings.
    SmallRing,
    /// Few slots.
    Reused,
    /// Fewer slots than blocks.
    Crowded,
    /// Epochs at the reference format's end.
    Aged,
    /// Epochs beyond it.
    Old,
}

impl Kind {
    /// What the program of a seed is run as.
    pub fn of(seed: u64, constructs: Constructs) -> Kind {
        let mut random = Random::new(seed ^ 0x5eed);
        let device = match random.below(20) {
            0..=8 => DeviceKind::Roomy,
            9..=11 => DeviceKind::SmallRing,
            12..=15 => DeviceKind::Reused,
            16..=18 => DeviceKind::Crowded,
            _ if random.chance(70) => DeviceKind::Aged,
            _ => DeviceKind::Old,
        };
        let widths = if random.chance(70) {
            Width::Words
        } else {
            Width::Any
        };
        Kind {
            widths,
            device,
            sc_order: random.chance(40),
            constructs,
        }
    }
}

/// The devices of one thread, laid out once.
pub struct Bench {
    setups: Vec<Setup>,
    reference: [Reference; 2],
}

impl Bench {
    /// Lays them out.
    pub fn new(format: Format) -> Bench {
        let make = [
            Setup::roomy,
            Setup::small_ring,
            Setup::reused,
            Setup::crowded,
            Setup::aged,
            Setup::old,
        ];
        let plain = make.iter().map(|make| make(format));
        let sc_order = make.iter().map(|make| make(format).with_sc_order());
        Bench {
            setups: plain.chain(sc_order).collect(),
            reference: [false, true].map(|sc_order| Reference::new(format, sc_order)),
        }
    }

    /// Runs a program under one schedule and compares.
    pub fn check(&self, program: &Program, kind: Kind, schedule: u64) -> Outcome {
        let half = self.setups.len() / 2 * usize::from(kind.sc_order);
        let setup = &self.setups[half + kind.device as usize];
        let run = interpreter::run_as(program, setup, schedule, !schedule.is_multiple_of(5));
        let reference = &self.reference[usize::from(kind.sc_order)];
        compare(program, setup, &run, reference)
    }
}

/// A failing program.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its seed.
    pub seed: u64,
    /// What it was run as.
    pub kind: Kind,
    /// What is wrong.
    pub failures: Vec<String>,
    /// Whether one of them is a false alarm.
    pub false_alarm: bool,
}

/// What came of it all.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Programs run.
    pub programs: u64,
    /// Programs with a race under their schedule.
    pub racy: u64,
    /// Racy programs with at least one finding.
    pub racy_found: u64,
    /// Accesses and fences are not counted, findings are: by verdict.
    pub findings: BTreeMap<Verdict, u64>,
    /// Races by class.
    pub races: BTreeMap<Class, u64>,
    /// What failed.
    pub cases: Vec<Case>,
}

impl Summary {
    /// Adds what came of a program.
    pub fn note(&mut self, seed: u64, kind: Kind, outcome: Outcome) {
        self.programs += 1;
        if !outcome.races.is_empty() {
            self.racy += 1;
            self.racy_found += u64::from(!outcome.findings.is_empty());
        }
        for (k, v) in outcome.findings {
            *self.findings.entry(k).or_default() += v;
        }
        for (k, v) in outcome.races {
            *self.races.entry(k).or_default() += v;
        }
        if !outcome.failures.is_empty() {
            self.cases.push(Case {
                seed,
                kind,
                false_alarm: outcome.failures.iter().any(|f| f.false_alarm),
                failures: outcome.failures.iter().map(|f| f.to_string()).collect(),
            });
        }
    }

    fn add(&mut self, other: Summary) {
        self.programs += other.programs;
        self.racy += other.racy;
        self.racy_found += other.racy_found;
        for (k, v) in other.findings {
            *self.findings.entry(k).or_default() += v;
        }
        for (k, v) in other.races {
            *self.races.entry(k).or_default() += v;
        }
        self.cases.extend(other.cases);
    }
}

/// The schedule that a program is run under.
pub fn schedule_of(seed: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xabcd
}

/// The program of a seed.
pub fn program_of(seed: u64, kind: Kind) -> Program {
    let widths = match kind.widths {
        Width::Words => Widths::Words,
        Width::Any => Widths::Any,
    };
    match kind.constructs {
        Constructs::Classic => generate::program(seed, widths),
        Constructs::Wide => generate::wide::program(seed, widths),
    }
}

impl Campaign {
    /// Runs it. `progress` is told about every program that is done.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Summary {
        let jobs = self.jobs.max(1) as u64;
        let mut summary = Summary::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs)
                .map(|job| scope.spawn(move || self.work(job, jobs, progress)))
                .collect();
            for worker in workers {
                if let Ok(part) = worker.join() {
                    summary.add(part);
                }
            }
        });
        summary.cases.sort_by_key(|c| c.seed);
        summary
    }

    fn work(&self, job: u64, jobs: u64, progress: &(dyn Fn(u64) + Sync)) -> Summary {
        mutants::remove(self.without);
        let bench = Bench::new(self.format);
        let mut summary = Summary::default();
        let mut i = job;
        while i < self.programs && summary.cases.len() < self.max_failures {
            let seed = self.seed.wrapping_add(i);
            i += jobs;
            let kind = self.only.unwrap_or(Kind::of(seed, self.constructs));
            let kind = Kind {
                sc_order: self.sc_order.unwrap_or(kind.sc_order),
                ..kind
            };
            let program = program_of(seed, kind);
            let outcome = bench.check(&program, kind, schedule_of(seed));
            summary.note(seed, kind, outcome);
            progress(1);
        }
        mutants::remove(None);
        summary
    }
}

/// A failing program made small, with the schedule under which it fails, and what is wrong with it.
pub fn minimise(case: &Case, format: Format, without: Option<Edge>) -> (Program, u64, Vec<String>) {
    mutants::remove(without);
    let bench = Bench::new(format);
    let wrong = |program: &Program| {
        // A smaller program needs another schedule: try its own first, then some more.
        let schedules = std::iter::once(schedule_of(case.seed)).chain(0..40);
        schedules.into_iter().find_map(|schedule| {
            let outcome = bench.check(program, case.kind, schedule);
            let failures: Vec<String> = (outcome.failures.iter())
                .filter(|f| f.false_alarm == case.false_alarm)
                .map(|f| f.to_string())
                .collect();
            (!failures.is_empty()).then_some((schedule, failures))
        })
    };
    let small = shrink::shrink(program_of(case.seed, case.kind), |p| wrong(p).is_some());
    let (schedule, failures) = wrong(&small).unwrap_or_default();
    mutants::remove(None);
    (small, schedule, failures)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "| | |\n|---|---|")?;
        writeln!(f, "| programs | {} |", self.programs)?;
        writeln!(f, "| with a race under their schedule | {} |", self.racy)?;
        writeln!(f, "| of these with a finding | {} |", self.racy_found)?;
        writeln!(f, "\n| finding | count |\n|---|---|")?;
        for (verdict, count) in &self.findings {
            writeln!(f, "| {verdict:?} | {count} |")?;
        }
        let total: u64 = self.races.values().sum();
        writeln!(f, "\n| racing pair | count | of all |\n|---|---|---|")?;
        for (class, count) in &self.races {
            let share = 100.0 * *count as f64 / total.max(1) as f64;
            writeln!(f, "| {class:?} | {count} | {share:.2} % |")?;
        }
        Ok(())
    }
}
