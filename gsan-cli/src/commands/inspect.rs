//! `gsan inspect`

use super::run::{exit_code, files, inline, keep_inputs, scenario, time_limit};
use crate::args::{InspectArgs, InspectFormat, WordSpec};
use crate::device;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::output;
use crate::ptx::one_line;
use crate::render::inspect::{Inspected, Touched, WordsOf, text};
use crate::render::text::outcome_sentence;
use crate::render::{inspect_json, plural};
use crate::scenario::issue::Issuer;
use crate::scenario::run::{Finished, OnExpiry, Options, Prepared};
use gsan_host::Error;
use gsan_host::report::{Outcome, Report};
use std::sync::Arc;

/// Bytes of a buffer that are looked at in one go.
const CHUNK: u64 = 1 << 16;

/// Runs it once and looks.
pub fn run(args: &InspectArgs) -> Result<u8> {
    let scenario = scenario(&args.program)?;
    if let Some(after) = args.after.filter(|n| *n > scenario.steps.len()) {
        return Err(Failure::input(format_args!(
            "--after {after}: {} has {}",
            scenario.file.display(),
            plural(scenario.steps.len() as u64, "step")
        )));
    }
    keep_inputs(args.out.as_deref(), &scenario)?;
    let prepared = Prepared::read(&scenario)?;
    let chosen = device::choose(&args.device)?;
    let options = Options {
        device: chosen,
        seed: args.seed,
        schedules: 1,
        cell: args.cell.map(Into::into),
        sc_order: false,
        classes_off: Vec::new(),
        instrument: true,
        time_limit: time_limit(args.timeout, &scenario, chosen.simulated),
        budget: args.budget,
        print: Vec::new(),
        steps: args.after,
    };
    interrupt::catch();
    let on_expiry: OnExpiry = Arc::new(|finished: Finished| {
        let failure = gone(&finished.report);
        output::error(&failure.message);
        std::process::exit(i32::from(failure.code));
    });
    let mut seen = None;
    let report = prepared.inspect(&options, &on_expiry, &mut |issuer| {
        seen = Some(look(args, issuer));
    })?;
    let inspected = match seen {
        Some(Ok(inspected)) => inspected,
        _ if report.outcome != Outcome::Completed => return Err(gone(&report)),
        Some(Err(failure)) => return Err(failure),
        None => return Err(Failure::run("nothing was run")),
    };
    let rendered = match args.format {
        InspectFormat::Json => inspect_json::render(&inspected, &report),
        InspectFormat::Text if args.json => inspect_json::render(&inspected, &report),
        InspectFormat::Text => {
            let sources = output::sources(&files(&scenario), &inline(&scenario));
            text(&inspected, &report, &sources)
        }
    };
    output::to(args.out.as_deref(), &rendered)?;
    Ok(exit_code(&report))
}

/// The device's memory went with the run.
fn gone(report: &Report) -> Failure {
    let why = report.message.as_deref().unwrap_or("no more is known");
    Failure::run(format_args!(
        "{}: {}; the detector's state went with it: `gsan run` shows what was found, --after N stops before that step",
        outcome_sentence(report.outcome),
        one_line(why)
    ))
}

fn look(args: &InspectArgs, issuer: &mut Issuer<'_>) -> Result<Inspected> {
    let everything = args.words.is_empty() && args.threads.is_empty() && !args.global;
    let mut inspected = Inspected::default();
    if everything || args.global {
        for device in 0..issuer.devices() {
            let state = issuer.session().global_state(device).map_err(refused)?;
            let counters = issuer.session().counters(device).map_err(refused)?;
            inspected.global.extend(state.zip(counters));
        }
    }
    for spec in &args.words {
        inspected.words.push(words(spec, issuer)?);
    }
    for &id in &args.threads {
        let thread = issuer.session().describe_thread(id).map_err(refused)?;
        inspected.threads.push(thread.ok_or_else(|| {
            let state = issuer.session().global_state(0).ok().flatten();
            let last = state.map_or(0, |s| s.num_threads.saturating_sub(1));
            Failure::input(format_args!(
                "--thread {id}: there are logical threads 0 to {last}"
            ))
        })?);
    }
    if everything {
        overview(issuer, &mut inspected)?;
    }
    Ok(inspected)
}

/// Every thread that has been used, and how much of each buffer was touched.
fn overview(issuer: &mut Issuer<'_>, inspected: &mut Inspected) -> Result<()> {
    let mut id = 0;
    while let Some(thread) = issuer.session().describe_thread(id).map_err(refused)? {
        if thread.state.epoch != 0 {
            inspected.threads.push(thread);
        }
        id += 1;
    }
    for name in issuer.names() {
        let Some((address, bytes)) = issuer.memory(&name) else {
            continue;
        };
        let mut touched = Some(Touched {
            name,
            words: 0,
            touched: 0,
        });
        for start in (0..bytes).step_by(CHUNK as usize) {
            let size = CHUNK.min(bytes - start);
            let words = issuer
                .session()
                .describe_words(address + start, size)
                .map_err(refused)?;
            let Some((words, sum)) = words.zip(touched.as_mut()) else {
                touched = None;
                break;
            };
            sum.words += words.len() as u64;
            sum.touched += words.iter().filter(|w| !w.is_empty()).count() as u64;
        }
        inspected.touched.extend(touched);
    }
    Ok(())
}

fn words(spec: &WordSpec, issuer: &mut Issuer<'_>) -> Result<WordsOf> {
    let name = &spec.name;
    let Some((address, bytes)) = issuer.memory(name) else {
        return Err(Failure::input(format_args!(
            "--word {spec}: there is no such buffer or module variable now; there are: {}",
            issuer.names().join(", ")
        )));
    };
    let (first, end) = match (spec.offset, spec.end) {
        (None, _) => (0, bytes),
        (Some(offset), None) => (offset, offset.saturating_add(1)),
        (Some(offset), Some(end)) => (offset, end),
    };
    if end > bytes {
        return Err(Failure::input(format_args!(
            "--word {spec}: `{name}` has {bytes} bytes"
        )));
    }
    let mut all = Vec::new();
    let mut start = first;
    while start < end {
        // Chunks end where words do.
        let next = ((address + start + CHUNK) / CHUNK * CHUNK - address).min(end);
        let words = issuer
            .session()
            .describe_words(address + start, next - start)
            .map_err(refused)?;
        all.extend(words.ok_or_else(|| {
            Failure::input(format_args!(
                "--word {spec}: it has no shadow: only gsan's own device memory and module variables have"
            ))
        })?);
        start = next;
    }
    Ok(WordsOf {
        name: name.clone(),
        words: all,
    })
}

fn refused(error: Error) -> Failure {
    Failure::run(one_line(&error.to_string()))
}
