//! `gsan demo`

use crate::args::DemoArgs;
use crate::demo::{PAIRS, Pair};
use crate::device;
use crate::failure::{Failure, Result, exit};
use crate::interrupt;
use crate::output;
use crate::progress;
use crate::render::text;
use crate::scenario::run::{Finished, OnExpiry, Options, Prepared};
use anstyle::{AnsiColor, Style};
use gsan_host::report::{Outcome, Report};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

const TITLE: Style = AnsiColor::BrightCyan.on_default().bold();
const GOOD: Style = AnsiColor::BrightGreen.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();

/// A pair takes seconds on the simulator and less on a GPU.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Runs the pairs.
pub fn run(args: &DemoArgs) -> Result<u8> {
    let wanted = |p: &&Pair| {
        args.only
            .as_ref()
            .is_none_or(|name| p.name.contains(name.as_str()))
    };
    let pairs: Vec<&Pair> = PAIRS.iter().filter(wanted).collect();
    if pairs.is_empty() {
        let names = PAIRS.map(|p| p.name).join(", ");
        let only = args.only.as_deref().unwrap_or_default();
        return Err(Failure::input(format_args!(
            "--only {only}: there is no such pair; there are: {names}"
        )));
    }
    if args.list {
        list(&pairs)?;
        return Ok(exit::CLEAN);
    }
    let options = Options {
        device: device::choose(&args.device)?,
        seed: args.seed,
        schedules: args.schedules,
        cell: None,
        sc_order: false,
        classes_off: Vec::new(),
        instrument: true,
        time_limit: TIME_LIMIT,
        budget: None,
        print: Vec::new(),
        steps: None,
    };
    interrupt::catch();
    let mut tally = Tally::default();
    for pair in pairs {
        one_pair(pair, &options, &mut tally)?;
    }
    summary(&tally)?;
    Ok(tally.code())
}

fn list(pairs: &[&Pair]) -> Result<()> {
    let mut text = String::new();
    for pair in pairs {
        let _ = writeln!(
            text,
            "{:<14} {:<9} {}",
            pair.name, pair.language, pair.about
        );
    }
    output::print(&text)
}

#[derive(Default)]
struct Tally {
    pairs: u32,
    as_expected: u32,
    failed: bool,
    device: String,
}

impl Tally {
    fn code(&self) -> u8 {
        if self.failed {
            exit::RUN
        } else if self.as_expected == self.pairs {
            exit::CLEAN
        } else {
            exit::RACE
        }
    }
}

fn one_pair(pair: &Pair, options: &Options, tally: &mut Tally) -> Result<()> {
    output::print(&format!(
        "{TITLE}── {} ({}) ──{TITLE:#} {}\n\n",
        pair.name, pair.language, pair.about
    ))?;
    let racy = one_twin(pair, true, options)?;
    show_races(pair, &racy.report)?;
    let found = verdict(&racy, true, options.schedules)?;
    let fixed = one_twin(pair, false, options)?;
    if !fixed.report.races.is_empty() {
        show_races(pair, &fixed.report)?;
    }
    let silent = verdict(&fixed, false, options.schedules)?;
    tally.pairs += 1;
    tally.as_expected += u32::from(found && silent);
    tally.failed |= [&racy, &fixed]
        .iter()
        .any(|f| f.report.outcome != Outcome::Completed);
    let device = &fixed.report.device;
    let kind = if device.simulated { "simulated" } else { "GPU" };
    tally.device = format!("{} ({kind}, {} SMs)", text::clean(&device.name), device.sms);
    Ok(())
}

fn one_twin(pair: &Pair, racy: bool, options: &Options) -> Result<Finished> {
    let scenario = pair.scenario(racy)?;
    let prepared = Prepared::read(&scenario)?;
    let progress = progress::schedules(&scenario.name, options.schedules);
    let done = prepared.run(options, &on_expiry(), &mut |n| {
        progress.set_position(u64::from(n))
    });
    progress.finish_and_clear();
    done
}

fn on_expiry() -> OnExpiry {
    Arc::new(|finished: Finished| {
        let report = finished.report;
        let why = report
            .message
            .as_deref()
            .unwrap_or("the device does not answer");
        let message = format!("{why}; {} races were found until then", report.races.len());
        output::error(&message);
        std::process::exit(i32::from(exit::RUN));
    })
}

fn show_races(pair: &Pair, report: &Report) -> Result<()> {
    let mut text = String::new();
    text::write_races(&mut text, report, &pair.sources());
    output::print(&text)
}

/// Says whether a twin behaved as it should.
fn verdict(done: &Finished, racy: bool, schedules: u32) -> Result<bool> {
    let report = &done.report;
    let differences = done.differences.as_deref().unwrap_or(&[]);
    let good = differences.is_empty();
    let runs = if report.device.simulated {
        "schedules"
    } else {
        "runs"
    };
    let mut text = String::new();
    let what = if racy {
        "racy kernel:    "
    } else {
        "repaired kernel:"
    };
    let (style, found) = match (racy, text::places(report)) {
        (true, 0) => (BAD, "nothing found".to_string()),
        (true, 1) => (GOOD, "1 race found".to_string()),
        (true, n) => (GOOD, format!("{n} races found")),
        (false, 0) => (GOOD, "silent".to_string()),
        (false, n) => (BAD, format!("{n} races reported")),
    };
    let style = if good { style } else { BAD };
    let _ = write!(text, "{what} {style}{found}{style:#} in {schedules} {runs}");
    if let Some(checked) = report.stats.checked_accesses {
        let _ = write!(text, ", {checked} accesses checked");
    }
    text.push('\n');
    if report.outcome != Outcome::Completed {
        let why = report.message.as_deref().unwrap_or("no more is known");
        let _ = writeln!(
            text,
            "  {}: {}",
            text::outcome_sentence(report.outcome),
            crate::ptx::one_line(why)
        );
    }
    for difference in differences {
        let _ = writeln!(text, "  {}", text::clean(difference));
    }
    if !racy {
        text.push('\n');
    }
    output::print(&text)?;
    Ok(good)
}

fn summary(tally: &Tally) -> Result<()> {
    let style = if tally.code() == exit::CLEAN {
        GOOD
    } else {
        BAD
    };
    output::print(&format!(
        "{style}{} of {} pairs as expected{style:#}: the race found in the racy kernel, its repaired twin silent; on {}\n",
        tally.as_expected, tally.pairs, tally.device
    ))
}
