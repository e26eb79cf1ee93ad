//! Programs for a GPU, where no trace can be had: packed into a few modules and scenario files for `gsan run`, with what is
//! known of them in advance.
//!
//! Each program is run under many seeds of the interpreter. One that the oracle never calls racy must not be reported on
//! a GPU either; one that races under every seed should be. What lies between may or may not.
//!
//! A module's programs start alike: the same number of kernels, launched by the same steps of the host, so that their
//! kernels can be one ([`Module::pack`]). The scenario runs them several times, and zeroes their memory in between.

mod scenario;
mod shape;

use super::emit::Module;
use crate::campaign::Constructs;
use crate::compare::{Class, Reference, compare};
use crate::interpreter;
use crate::program::{Op, Program};
use crate::ptx::campaign;
use crate::setup::Format;
use shape::Shape;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::io;
use std::path::{Path, PathBuf};

/// What to pack.
#[derive(Clone, Copy, Debug)]
pub struct Bundle {
    /// Where to look for programs: this seed and the following.
    pub seed: u64,
    /// How many programs.
    pub programs: usize,
    /// Programs of a module.
    pub module: usize,
    /// Seeds under which each is tried.
    pub schedules: u64,
    /// How often the scenario runs them.
    pub rounds: usize,
    /// What the programs are made of.
    pub constructs: Constructs,
}

/// What is known of a program in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It races under no seed: nothing may be reported.
    Clean,
    /// It races under some seeds.
    Sometimes,
    /// It races under every seed, and the detector misses it under some.
    Always,
    /// It races under every seed, and under each the detector has found something.
    Sure,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Clean, Kind::Sometimes, Kind::Always, Kind::Sure];

    fn name(self) -> &'static str {
        match self {
            Kind::Clean => "clean",
            Kind::Sometimes => "sometimes",
            Kind::Always => "always",
            Kind::Sure => "sure",
        }
    }
}

/// A program and what is known of it.
pub struct Entry {
    /// Its seed.
    pub seed: u64,
    /// The program.
    pub program: Program,
    /// What to expect.
    pub kind: Kind,
    /// Its races over all seeds, by class.
    pub classes: BTreeMap<Class, u64>,
}

/// How often a wait tries again on a GPU, with 200 ns in between.
const PATIENCE: u32 = 2_000;

/// What says in the bundle what to expect.
const EXPECTATIONS: &str = "expectations.txt";

impl Bundle {
    /// Looks for programs: half of a module's are clean, and not more than a fifth lies between.
    pub fn choose(&self, progress: &dyn Fn(usize)) -> Vec<Vec<Entry>> {
        let reference = Reference::new(Format::Wide, false);
        let mut seed = self.seed;
        let mut left = self.programs;
        let mut modules = Vec::new();
        while left > 0 {
            let size = left.min(self.module.max(1));
            let shape = Shape::of(modules.len(), &mut seed, self.constructs);
            modules.push(self.choose_module(&shape, size, &mut seed, &reference));
            left -= size;
            progress(self.programs - left);
        }
        modules
    }

    fn choose_module(
        &self,
        shape: &Shape,
        size: usize,
        seed: &mut u64,
        reference: &Reference,
    ) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        while entries.len() < size {
            *seed = seed.wrapping_add(1);
            let Some(program) = shape.apply(campaign::program(*seed, self.constructs)) else {
                continue;
            };
            let clean = counts.get(&Kind::Clean).copied().unwrap_or(0);
            let racy_room = entries.len() - clean < size / 2;
            let Some((kind, classes)) = self.classify(&program, reference, racy_room) else {
                continue;
            };
            let count = counts.entry(kind).or_default();
            let room = match kind {
                Kind::Clean => clean < size.div_ceil(2),
                Kind::Sometimes => *count < size / 5,
                Kind::Always | Kind::Sure => true,
            };
            // Racy ones are the frequent ones: the clean ones get their half.
            if room && (kind == Kind::Clean || racy_room) {
                *count += 1;
                entries.push(Entry {
                    seed: *seed,
                    program,
                    kind,
                    classes,
                });
            }
        }
        entries
    }

    /// What to expect of a program; none if it races, unless `racy_too`.
    fn classify(
        &self,
        program: &Program,
        reference: &Reference,
        racy_too: bool,
    ) -> Option<(Kind, BTreeMap<Class, u64>)> {
        let impatient = without_patience(program);
        let mut classes: BTreeMap<Class, u64> = BTreeMap::new();
        let (mut racy, mut found) = (0, 0);
        for schedule in 0..self.schedules {
            let program = if schedule % 16 == 15 {
                &impatient
            } else {
                program
            };
            let polite = schedule % 2 == 0;
            let run = interpreter::run_as(program, reference.roomy(), schedule, polite);
            let outcome = compare(program, reference.roomy(), &run, reference);
            let finds = !outcome.findings.is_empty();
            // What only the order of `fence.sc`s orders is no race, and is reported all the same.
            racy += u64::from(finds || !outcome.races.is_empty());
            found += u64::from(finds);
            for (class, count) in outcome.races {
                *classes.entry(class).or_default() += count;
            }
            if racy > 0 && !racy_too {
                return None;
            }
            if racy > 0 && racy <= schedule {
                return Some((Kind::Sometimes, classes));
            }
        }
        let kind = match (racy, found) {
            (0, _) => Kind::Clean,
            (_, f) if f == self.schedules => Kind::Sure,
            _ => Kind::Always,
        };
        Some((kind, classes))
    }

    /// Writes the bundle.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write(&self, folder: &Path, modules: &[Vec<Entry>]) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut expectations = String::from("# module first-line last-line seed kind classes\n");
        for (m, entries) in modules.iter().enumerate() {
            let stem = format!("programs_{m:02}");
            let programs: Vec<&Program> = entries.iter().map(|e| &e.program).collect();
            let module = Module::pack(&programs, Some(PATIENCE));
            std::fs::write(folder.join(format!("{stem}.ptx")), &module.text)?;
            let scenario = self.scenario(&stem, entries, &module);
            std::fs::write(folder.join(format!("{stem}.toml")), scenario)?;
            for (n, entry) in entries.iter().enumerate() {
                let (first, last) = (module.lines_of(n).min(), module.lines_of(n).max());
                let classes: Vec<String> = entry.classes.keys().map(|c| format!("{c:?}")).collect();
                let _ = writeln!(
                    expectations,
                    "{stem} {} {} {} {} {}",
                    first.unwrap_or(0),
                    last.unwrap_or(0),
                    entry.seed,
                    entry.kind.name(),
                    classes.join(",")
                );
            }
        }
        std::fs::write(folder.join(EXPECTATIONS), expectations)?;
        let script = folder.join("run.sh");
        std::fs::write(&script, include_str!("bundle_run.sh"))?;
        set_executable(&script)
    }

    /// The scenario file of a module.
    fn scenario(&self, stem: &str, entries: &[Entry], module: &Module) -> String {
        let mut text = format!("name = \"random programs: {stem}\"\n\n");
        let _ = writeln!(text, "[[module]]\nname = \"m\"\npath = \"{stem}.ptx\"\n");
        scenario::write(&mut text, entries, self.rounds.max(1));
        text.push_str("[expect]\nschedules = 1\n");
        let racy = |e: &(usize, &Entry)| e.1.kind != Kind::Clean;
        if !entries.iter().enumerate().any(|e| racy(&e)) {
            text.push_str("races = []\n");
        }
        for (n, _) in entries.iter().enumerate().filter(racy) {
            for line in module.lines_of(n) {
                let _ = writeln!(text, "[[expect.race]]\nline = {line}\nmin_schedules = 0");
            }
        }
        text
    }
}

#[cfg(unix)]
fn set_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn set_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The program whose waits give up at once.
fn without_patience(program: &Program) -> Program {
    let mut program = program.clone();
    let blocks = program.kernels.iter_mut().flat_map(|k| &mut k.blocks);
    for op in blocks.flat_map(|b| &mut b.threads).flatten() {
        if let Op::Access(access) = op
            && let Some(until) = &mut access.until
        {
            until.retries = 0;
        }
    }
    program
}

/// What came of a bundle's run, by what was known in advance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Per kind: programs, and how many of them were reported.
    pub counts: BTreeMap<Kind, (usize, usize)>,
    /// Seeds of clean programs that were reported, with what the report says.
    pub false_alarms: Vec<(u64, String)>,
    /// Racy programs that were not reported, by the classes of their races.
    pub missed: BTreeMap<String, usize>,
    /// Scenarios without a usable report.
    pub unread: Vec<String>,
}

impl Verdict {
    /// Whether nothing clean was reported and everything was run.
    pub fn is_good(&self) -> bool {
        self.false_alarms.is_empty() && self.unread.is_empty() && !self.counts.is_empty()
    }
}

/// Holds the JSON reports in `results` (one per scenario, of its name) against the bundle's expectations.
///
/// # Errors
/// There are no expectations to be read.
pub fn judge(folder: &Path, results: &Path) -> io::Result<Verdict> {
    let expectations = std::fs::read_to_string(folder.join(EXPECTATIONS))?;
    let mut verdict = Verdict::default();
    let mut reports: BTreeMap<String, Option<BTreeMap<u64, String>>> = BTreeMap::new();
    for line in expectations.lines().filter(|l| !l.starts_with('#')) {
        let mut fields = line.split_whitespace();
        let mut next = || fields.next().unwrap_or_default();
        let stem = next();
        let (first, last) = (next().parse::<u64>(), next().parse::<u64>());
        let (seed, kind, classes) = (next().parse::<u64>(), next(), next());
        let kind = Kind::ALL.into_iter().find(|k| k.name() == kind);
        let (Ok(first), Ok(last), Ok(seed), Some(kind)) = (first, last, seed, kind) else {
            continue;
        };
        let report = reports
            .entry(stem.to_string())
            .or_insert_with(|| reported(&results.join(format!("{stem}.json"))));
        let Some(report) = report else {
            if !verdict.unread.iter().any(|u| u == stem) {
                verdict.unread.push(stem.to_string());
            }
            continue;
        };
        let what = (first <= last)
            .then(|| report.range(first..=last).next())
            .flatten();
        let counts = verdict.counts.entry(kind).or_default();
        counts.0 += 1;
        counts.1 += usize::from(what.is_some());
        match (kind, what) {
            (Kind::Clean, Some((_, what))) => {
                verdict.false_alarms.push((seed, format!("{stem}: {what}")));
            }
            (Kind::Always | Kind::Sure, None) => {
                *verdict.missed.entry(classes.to_string()).or_default() += 1;
            }
            _ => {}
        }
    }
    Ok(verdict)
}

/// The lines in which a report has found something, with what it says of it; none if it is no report of a run that came
/// to its end.
fn reported(path: &PathBuf) -> Option<BTreeMap<u64, String>> {
    let text = std::fs::read_to_string(path).ok()?;
    let report: serde_json::Value = serde_json::from_str(&text).ok()?;
    if report.get("outcome")?.as_str()? != "completed" {
        return None;
    }
    let races = report.get("races")?.as_array()?.iter();
    let lines = races.filter_map(|race| {
        let line = race.get("current")?.get("site")?.get("ptx_line")?;
        Some((line.as_u64()?, race.to_string()))
    });
    Some(lines.collect())
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "| known in advance | programs | reported |\n|---|---|---|"
        )?;
        for (kind, (programs, reported)) in &self.counts {
            writeln!(f, "| {} | {programs} | {reported} |", kind.name())?;
        }
        if !self.missed.is_empty() {
            writeln!(
                f,
                "\n| racy under every seed, not reported: classes | programs |\n|---|---|"
            )?;
            for (classes, count) in &self.missed {
                writeln!(f, "| {classes} | {count} |")?;
            }
        }
        for (seed, what) in &self.false_alarms {
            writeln!(f, "\nFALSE ALARM, seed {seed}: {what}")?;
        }
        for stem in &self.unread {
            writeln!(f, "\n{stem}: no report of a run that came to its end")?;
        }
        Ok(())
    }
}
