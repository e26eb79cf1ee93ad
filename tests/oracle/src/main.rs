//! `gsan-oracle`: holds the detector against the oracle on as many random programs as you like.

use clap::Parser;
use gsan_device::mutants::Edge;
use gsan_oracle::campaign::{Campaign, Kind, minimise, program_of, schedule_of};
use gsan_oracle::interpreter::Format;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Random programs on the detector's host instance, judged by an independent happens-before oracle.
#[derive(Parser)]
struct Args {
    /// How many programs to run.
    #[arg(long, default_value_t = 10_000)]
    programs: u64,
    /// Seed of the first program.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Stop after this many failing programs.
    #[arg(long, default_value_t = 10)]
    max_failures: usize,
    /// Make this many failing programs small and print them.
    #[arg(long, default_value_t = 3)]
    shrink: usize,
    /// The shadow cells: the classic ones instead of the wide ones.
    #[arg(long)]
    reference: bool,
    /// Print the program of the seed and leave.
    #[arg(long)]
    print: bool,
    /// Remove an edge from the detector (a name such as AcquireMerge): the run should fail.
    #[arg(long)]
    without: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let without = match &args.without {
        None => None,
        Some(name) => {
            let edge = Edge::ALL.into_iter().find(|e| format!("{e:?}") == *name);
            if edge.is_none() {
                eprintln!("no edge is called {name}; there are: {:?}", Edge::ALL);
                return ExitCode::from(2);
            }
            edge
        }
    };
    if args.print {
        let kind = Kind::of(args.seed);
        print!("{kind:?}\n{}", program_of(args.seed, kind));
        println!("schedule {}", schedule_of(args.seed));
        return ExitCode::SUCCESS;
    }
    let format = if args.reference {
        Format::Reference
    } else {
        Format::Wide
    };
    let started = Instant::now();
    let done = AtomicU64::new(0);
    let summary = Campaign {
        seed: args.seed,
        programs: args.programs,
        jobs: args.jobs,
        without,
        max_failures: args.max_failures,
        format,
        only: None,
    }
    .run(&|n| {
        let before = done.fetch_add(n, Ordering::Relaxed);
        if before / 10_000 != (before + n) / 10_000 {
            eprintln!(
                "{} programs in {:.0} s",
                before + n,
                started.elapsed().as_secs_f64()
            );
        }
    });
    println!("{summary}");
    println!("{:.1} s", started.elapsed().as_secs_f64());
    for (i, case) in summary.cases.iter().enumerate() {
        println!("\nseed {} ({:?}) fails:", case.seed, case.kind);
        case.failures.iter().for_each(|f| println!("  {f}"));
        if i < args.shrink {
            let (small, schedule, failures) = minimise(case, format, without);
            println!("made small (schedule {schedule}):\n{small}");
            failures.iter().for_each(|f| println!("  {f}"));
        }
    }
    if summary.cases.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
