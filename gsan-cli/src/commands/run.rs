//! `gsan run`

use crate::args::{Format, ProgramArgs, RunArgs};
use crate::device;
use crate::element::Init;
use crate::failure::{Failure, Result, exit};
use crate::input;
use crate::interrupt;
use crate::output::{self, Reporter};
use crate::progress;
use crate::scenario::model::{ModuleSource, Scenario};
use crate::scenario::one_kernel::OneKernel;
use crate::scenario::parse;
use crate::scenario::run::{Finished, OnExpiry, Options, Prepared};
use gsan_host::report::{Outcome, Report};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Schedules of a scenario with `[expect]` that does not say how many.
const EXPECT_SCHEDULES: u32 = 8;

/// How long one wait of the host may take where nobody says. The simulator ends kernels by its step budget long before, so
/// there it only is the last resort, on a machine that is busy with other things.
const GPU_TIME_LIMIT: u64 = 60;
const SIMULATOR_TIME_LIMIT: u64 = 300;

/// Runs it.
pub fn run(args: &RunArgs) -> Result<u8> {
    let scenario = scenario(&args.program)?;
    let print = args
        .print
        .iter()
        .map(|p| Ok((p.find(&scenario)?, p.count)))
        .collect::<Result<_>>()?;
    keep_inputs(args.out.as_deref(), &scenario)?;
    let prepared = Prepared::read(&scenario)?;
    let expected = scenario
        .expect
        .as_ref()
        .map(|e| e.schedules.unwrap_or(EXPECT_SCHEDULES));
    let chosen = device::choose(&args.device)?;
    let options = Options {
        device: chosen,
        seed: args.seed,
        schedules: args.schedules.or(expected).unwrap_or(1),
        cell: args.cell.map(Into::into),
        sc_order: args.sc_order,
        classes_off: args.classes.no_class.clone(),
        instrument: !args.no_instrument,
        time_limit: time_limit(args.timeout, &scenario, chosen.simulated),
        budget: args.budget,
        print,
        steps: None,
    };
    let reporter = reporter(args, &scenario);
    interrupt::catch();
    let progress = progress::schedules(&scenario.name, options.schedules);
    let on_expiry = on_expiry(reporter.clone(), scenario.clone());
    let finished = prepared.run(&options, &on_expiry, &mut |n| {
        progress.set_position(u64::from(n))
    })?;
    progress.finish_and_clear();
    let mut printed = Vec::new();
    for result in &finished.printed {
        match result {
            Ok(p) => printed.push(p.clone()),
            Err(why) => output::warn(why),
        }
    }
    reporter.emit(&finished.report, &printed)?;
    // Otherwise an expected race would look like a failure.
    let holds = finished.differences.as_ref().is_some_and(Vec::is_empty);
    if holds && reporter.format == Format::Text && reporter.out.is_none() {
        output::print("as expected: everything under [expect] holds\n")?;
    }
    Ok(code(&scenario, &finished))
}

/// The scenario, in either form.
pub fn scenario(args: &ProgramArgs) -> Result<Scenario> {
    let one = OneKernel {
        kernel: args.kernel.as_deref(),
        grid: args.grid,
        block: args.block,
        cluster: args.cluster,
        shared: args.shared,
        args: &args.args,
        link: &args.link,
    };
    if !args
        .file
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("toml"))
    {
        return one.scenario(&args.file);
    }
    match one.any() {
        None => parse::load(&args.file),
        Some(option) => Err(Failure::input(format_args!(
            "{}: {option} belongs to the one-kernel form; a scenario says such things itself",
            args.file.display()
        ))),
    }
}

fn reporter(args: &RunArgs, scenario: &Scenario) -> Reporter {
    Reporter {
        format: args.format,
        out: args.out.clone(),
        stats: args.stats,
        beside: files(scenario),
        inline: inline(scenario),
    }
}

/// The files beside which sources are looked for.
pub fn files(scenario: &Scenario) -> Vec<PathBuf> {
    let modules = scenario.modules.iter().flat_map(|m| {
        let own = match &m.source {
            ModuleSource::File(path) => Some(path.clone()),
            ModuleSource::Inline(_) => None,
        };
        own.into_iter().chain(m.link.iter().cloned())
    });
    std::iter::once(scenario.file.clone())
        .chain(modules)
        .collect()
}

/// Refuses an `--out` that is one of the files that are run.
pub fn keep_inputs(out: Option<&Path>, scenario: &Scenario) -> Result<()> {
    match out {
        Some(out) => {
            let contents = scenario.buffers.iter().filter_map(|b| match &b.init {
                Init::File(path) => Some(path.clone()),
                _ => None,
            });
            let all: Vec<PathBuf> = files(scenario).into_iter().chain(contents).collect();
            input::not_over("--out", out, all.iter().map(PathBuf::as_path))
        }
        None => Ok(()),
    }
}

/// Reports what there is and ends the process.
fn on_expiry(reporter: Reporter, scenario: Scenario) -> OnExpiry {
    Arc::new(move |mut finished: Finished| {
        let interrupted = interrupt::happened();
        let report = &mut finished.report;
        report.outcome = Outcome::Budget;
        let why = report
            .message
            .take()
            .unwrap_or_else(|| "the device does not answer".into());
        let hint = if interrupted {
            ""
        } else {
            " (--timeout SECONDS waits longer)"
        };
        report.message = Some(format!("{why}{hint}"));
        if let Err(failure) = reporter.emit(&finished.report, &[]) {
            output::error(&failure.message);
        }
        let code = match interrupted {
            true => exit::RUN,
            false => code(&scenario, &finished),
        };
        std::process::exit(i32::from(code));
    })
}

/// The modules that stand in the scenario itself, as reports call them.
pub fn inline(scenario: &Scenario) -> Vec<(String, String)> {
    let texts = scenario.modules.iter().filter_map(|m| match &m.source {
        ModuleSource::File(_) => None,
        ModuleSource::Inline(text) => Some((m.name.clone(), text.clone())),
    });
    texts.collect()
}

/// How long one wait may take.
pub fn time_limit(asked: Option<u64>, scenario: &Scenario, simulated: bool) -> Duration {
    let seconds = match (asked, simulated) {
        (Some(asked), _) => asked,
        (None, true) => SIMULATOR_TIME_LIMIT,
        (None, false) => scenario.timeout.map_or(GPU_TIME_LIMIT, u64::from),
    };
    Duration::from_secs(seconds)
}

fn code(scenario: &Scenario, finished: &Finished) -> u8 {
    let report = &finished.report;
    if let Some(differences) = &finished.differences {
        for difference in differences {
            output::error(difference);
        }
        let expected = scenario
            .expect
            .as_ref()
            .map_or(Outcome::Completed, |e| e.outcome);
        // A driver that refuses its work says nothing about the program, unless just that was expected.
        return if report.outcome == Outcome::Error && expected != Outcome::Error {
            exit::RUN
        } else if differences.is_empty() {
            exit::CLEAN
        } else {
            exit::RACE
        };
    }
    exit_code(report)
}

/// The exit code of a report on which nothing was expected.
pub fn exit_code(report: &Report) -> u8 {
    if report.outcome != Outcome::Completed {
        exit::RUN
    } else if report.races.is_empty() {
        exit::CLEAN
    } else {
        exit::RACE
    }
}
