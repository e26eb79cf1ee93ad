//! Times kernels plain and instrumented, on a GPU or on the simulator, and prints the slowdowns.

use clap::Parser;
use cuda_lazy::{Backend, Choice};
use gsan_bench::measure::{Plan, measure};
use gsan_bench::table;
use gsan_bench::workload::Sizes;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Times copies, a table read, a random gather and a tiled matrix product, plain and instrumented, in one run.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Examples:
  gsan-bench                              a GPU if there is one, else the simulator at small sizes
  gsan-bench --device cuda:1 --runs 20 --out bench/results/today.md
  gsan-bench --device sim --words 65536 --matrix 128"
)]
struct Args {
    /// auto, sim, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Timed launches per kernel.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Words of the input and of the output, a power of two.
    #[arg(long)]
    words: Option<u64>,
    /// Words of the table, a power of two.
    #[arg(long)]
    table: Option<u64>,
    /// Rows of the matrices, a multiple of 16.
    #[arg(long)]
    matrix: Option<u32>,
    /// Blocks of 256 threads.
    #[arg(long)]
    blocks: Option<u32>,
    /// Where the table goes too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

/// The exit code of a failure, as gsan's: 2 input, 3 run.
type Failure = (u8, String);

fn run(args: &Args) -> Result<(), Failure> {
    let device = choose(&args.device)?;
    let (simulated, driver) = match cuda_lazy::backend() {
        Backend::Real { version, .. } => (
            false,
            format!("CUDA driver {}.{}", version / 1000, version % 1000 / 10),
        ),
        Backend::Simulated => (true, "simulated driver".to_string()),
        Backend::Unavailable { reason } => {
            return Err((3, format!("no GPU can be used: {reason}")));
        }
        _ => return Err((3, "an unknown kind of driver".to_string())),
    };
    let known = gsan_host::list_devices().map_err(|e| (3, e.to_string()))?;
    let sms = known.get(device as usize).map_or(1, |d| d.sms);
    let mut sizes = if simulated {
        Sizes::simulator()
    } else {
        Sizes::gpu(sms)
    };
    sizes.words = args.words.unwrap_or(sizes.words);
    sizes.table = args.table.unwrap_or(sizes.table.min(sizes.words));
    sizes.matrix = args.matrix.unwrap_or(sizes.matrix);
    sizes.blocks = args.blocks.unwrap_or(sizes.blocks);
    sizes.check().map_err(|e| (2, e))?;
    let runs = args.runs.unwrap_or(if simulated { 3 } else { 11 });
    let measured = measure(&Plan {
        device,
        sizes,
        runs,
    })
    .map_err(|e| (3, e.to_string()))?;
    let text = table::render(&measured, &sizes, runs, &driver);
    // A closed pipe is no error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if let Some(path) = &args.out {
        std::fs::write(path, &text)
            .map_err(|e| (2, format!("cannot write {}: {e}", path.display())))?;
    }
    Ok(())
}

/// Chooses the driver; returns the device's number.
fn choose(device: &str) -> Result<u32, Failure> {
    let (choice, number) = match device.split_once(':').unwrap_or((device, "0")) {
        // GSAN_DEVICE may say what auto means.
        ("auto", "0") => return Ok(0),
        ("sim", "0") => (Choice::Sim, Some(0)),
        ("cuda", n) => (Choice::Cuda, n.parse().ok()),
        _ => (Choice::Auto, None),
    };
    let number = number.ok_or_else(|| {
        (
            2,
            format!("--device {device}: it is auto, sim, cuda or cuda:N"),
        )
    })?;
    cuda_lazy::select(choice).map_err(|e| (3, e.to_string()))?;
    Ok(number)
}
