//! `gsan-real KERNELS.toml [NAME…]`: runs each kernel of the list plain and instrumented on the same data, compares every
//! buffer bit by bit, and prints how much longer the instrumented one took on the device.
//!
//! `GSAN_DEVICE=sim` takes the simulated device; a kernel's `[kernel.sim]` says what is smaller there, and
//! `sim = false` that it has instructions which the simulator lacks.

mod data;
mod list;

use anyhow::{Context, Result, bail};
use cuda_lazy::Backend;
use data::Data;
use gsan_host::report::{Outcome, Report};
use gsan_host::{Arg, Buffer, LaunchSpec, MemoryKind, Session, Wait};
use list::{Kernel, Shape};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(3)
        }
    }
}

fn run() -> Result<bool> {
    let mut words = std::env::args().skip(1);
    let list = words
        .next()
        .context("usage: gsan-real KERNELS.toml [NAME…]")?;
    let names: Vec<String> = words.collect();
    let kernels = list::read(Path::new(&list))?;
    let simulated = match cuda_lazy::backend() {
        Backend::Real { .. } => false,
        Backend::Simulated => true,
        Backend::Unavailable { reason } => bail!("no device: {reason}"),
        _ => bail!("an unknown kind of driver"),
    };
    println!(
        "| kernel | grid × block | bytes compared | results | races | plain ms | instrumented ms | slowdown | checked accesses |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut good = true;
    for kernel in kernels {
        if !names.is_empty() && !names.iter().any(|n| kernel.name.contains(n.as_str())) {
            continue;
        }
        let Some(shape) = kernel.shape(simulated) else {
            println!(
                "| {} | | | not run on the simulator: {} | | | | | |",
                kernel.name, kernel.why
            );
            continue;
        };
        match compare(&kernel, &shape, simulated) {
            Ok(row) => {
                println!("{}", row.text);
                good &= row.good;
            }
            Err(error) => {
                println!("| {} | | | FAILED: {error:#} | | | | | |", kernel.name);
                good = false;
            }
        }
    }
    Ok(good)
}

struct Row {
    text: String,
    good: bool,
}

/// What one session saw.
struct Seen {
    buffers: Vec<Vec<u8>>,
    milliseconds: f64,
    report: Report,
}

fn compare(kernel: &Kernel, shape: &Shape, simulated: bool) -> Result<Row> {
    let plain = session(kernel, shape, simulated, false).context("plain")?;
    let checked = session(kernel, shape, simulated, true).context("instrumented")?;
    let bytes: usize = plain.buffers.iter().map(Vec::len).sum();
    let different: usize = plain
        .buffers
        .iter()
        .zip(&checked.buffers)
        .map(|(a, b)| a.iter().zip(b).filter(|(a, b)| a != b).count())
        .sum();
    let unchanged = plain
        .buffers
        .iter()
        .zip(shape.data()?)
        .all(|(after, before)| *after == before.bytes());
    let races = &checked.report.races;
    let found = match races.first() {
        None => "none".to_string(),
        Some(race) => {
            let site = race.current.site.as_ref();
            let at = site.map_or("?".to_string(), |s| format!("{}:{}", s.file, s.line));
            let at = at.rsplit('/').next().unwrap_or(&at).to_string();
            format!("{}: {:?} at {at}", races.len(), race.kind)
        }
    };
    let results = match (different, unchanged) {
        (0, false) => "equal".to_string(),
        (0, true) => "NOTHING WRITTEN".to_string(),
        (n, _) => format!("{n} BYTES DIFFER"),
    };
    let ended =
        plain.report.outcome == Outcome::Completed && checked.report.outcome == Outcome::Completed;
    let good = different == 0 && !unchanged && ended && races.is_empty() != kernel.races;
    let checked_accesses = checked
        .report
        .stats
        .checked_accesses
        .map_or("?".to_string(), |n| n.to_string());
    let text = format!(
        "| {} | {} × {} | {bytes} | {results}{} | {found} | {:.4} | {:.4} | {:.1} | {checked_accesses} |",
        kernel.name,
        product(shape.grid),
        product(shape.block),
        if ended { "" } else { ", ENDED BADLY" },
        plain.milliseconds,
        checked.milliseconds,
        checked.milliseconds / plain.milliseconds,
    );
    for end in [&plain.report, &checked.report] {
        if let Some(message) = &end.message {
            eprintln!("{}: {message}", kernel.name);
        }
    }
    Ok(Row { text, good })
}

fn product(dims: [u32; 3]) -> u64 {
    dims.iter().map(|d| u64::from(*d)).product()
}

fn session(kernel: &Kernel, shape: &Shape, simulated: bool, instrument: bool) -> Result<Seen> {
    let text = std::fs::read_to_string(&kernel.ptx)
        .with_context(|| format!("{}", kernel.ptx.display()))?;
    let mut session = Session::builder()
        .devices(&[0])
        .instrument(instrument)
        .build()?;
    let module = session.load_module(&kernel.ptx.display().to_string(), &text)?;
    let stream = session.default_stream(0)?;
    let mut spec = LaunchSpec::new(module, &kernel.kernel, shape.grid, shape.block, stream);
    spec.dynamic_shared = shape.shared;
    let mut buffers: Vec<(Buffer, Data)> = Vec::new();
    for (n, arg) in shape.args.iter().enumerate() {
        spec = match Data::scalar(arg)? {
            Some(bytes) => spec.arg(Arg::Scalar(bytes)),
            None => {
                let data = Data::parse(arg)?;
                let name = format!("arg{n}");
                let buffer =
                    session.alloc(&name, data.bytes().len() as u64, MemoryKind::Device, 0)?;
                spec = spec.arg(Arg::Pointer(buffer.address));
                buffers.push((buffer, data));
                spec
            }
        };
    }
    let start = session.event("start", 0)?;
    let end = session.event("end", 0)?;
    // The first launch warms up, and its results are compared. Each begins with the same data.
    let mut times = Vec::new();
    let mut after = Vec::new();
    for n in 0..if simulated { 1 } else { 21 } {
        for (buffer, data) in &buffers {
            session.initialise(buffer, data.bytes())?;
        }
        session.record(start, stream)?;
        session.launch(&spec)?;
        session.record(end, stream)?;
        session.synchronize(Wait::Event(end))?;
        times.push(f64::from(session.elapsed_ms(start, end)?));
        if n == 0 {
            for (buffer, data) in &buffers {
                after.push(session.contents(buffer.address, data.bytes().len() as u64)?);
            }
        }
    }
    if times.len() > 1 {
        times.remove(0);
    }
    times.sort_by(f64::total_cmp);
    Ok(Seen {
        buffers: after,
        milliseconds: times[times.len() / 2],
        report: session.finish()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole list, as far as the simulator has the instructions.
    #[test]
    fn every_kernel_gives_the_same_bytes_on_the_simulator() {
        cuda_lazy::select(cuda_lazy::Choice::Sim).expect("the simulator is always there");
        let kernels = list::read(Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/kernels.toml"
        )));
        let mut ran = 0;
        for kernel in kernels.expect("the list is well-formed") {
            let Some(shape) = kernel.shape(true) else {
                continue;
            };
            let row = compare(&kernel, &shape, true).expect("it runs");
            assert!(row.good, "{}", row.text);
            ran += 1;
        }
        assert_eq!(ran, 17);
    }
}
