//! `gsan-oracle`: holds the detector against the oracle on as many random programs as you like.

use clap::Parser;
use gsan_device::mutants::Edge;
use gsan_oracle::campaign::{Campaign, Kind, minimise, program_of, schedule_of};
use gsan_oracle::campaign::{Case, Summary};
use gsan_oracle::interpreter::Format;
use gsan_oracle::program::Program;
use gsan_oracle::ptx;
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
    /// The whole way: as PTX, instrumented, on the simulator.
    #[arg(long)]
    ptx: bool,
    /// With --ptx: how many programs share a module and a session.
    #[arg(long, default_value_t = 20)]
    batch: u64,
    /// Print the program of the seed (with --ptx: as PTX, too) and leave.
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
    if args.ptx && (without.is_some() || args.jobs > 1) {
        eprintln!(
            "--ptx runs the compiled detector, whole, in one thread: neither --without nor --jobs"
        );
        return ExitCode::from(2);
    }
    if args.print {
        print(&args);
        return ExitCode::SUCCESS;
    }
    let format = if args.reference {
        Format::Reference
    } else {
        Format::Wide
    };
    let started = Instant::now();
    let done = AtomicU64::new(0);
    let every = if args.ptx { 200 } else { 10_000 };
    let progress = |n: u64| {
        let before = done.fetch_add(n, Ordering::Relaxed);
        if before / every != (before + n) / every {
            let seconds = started.elapsed().as_secs_f64();
            eprintln!("{} programs in {seconds:.0} s", before + n);
        }
    };
    let summary = if args.ptx {
        ptx::campaign::Campaign {
            seed: args.seed,
            programs: args.programs,
            batch: args.batch,
            max_failures: args.max_failures,
            format,
        }
        .run(&progress)
    } else {
        Campaign {
            seed: args.seed,
            programs: args.programs,
            jobs: args.jobs,
            without,
            max_failures: args.max_failures,
            format,
            only: None,
        }
        .run(&progress)
    };
    println!("{summary}");
    println!("{:.1} s", started.elapsed().as_secs_f64());
    let small = |case: &Case| {
        if args.ptx {
            ptx::campaign::minimise(case, format)
        } else {
            minimise(case, format, without)
        }
    };
    explain(&summary, args.shrink, &small);
    if summary.cases.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints what failed, and the first of it made small.
fn explain(summary: &Summary, shrink: usize, small: &dyn Fn(&Case) -> (Program, u64, Vec<String>)) {
    for (i, case) in summary.cases.iter().enumerate() {
        println!("\nseed {} ({:?}) fails:", case.seed, case.kind);
        case.failures.iter().for_each(|f| println!("  {f}"));
        if i < shrink {
            let (small, schedule, failures) = small(case);
            println!("made small (schedule {schedule}):\n{small}");
            failures.iter().for_each(|f| println!("  {f}"));
        }
    }
}

fn print(args: &Args) {
    if args.ptx {
        let program = ptx::campaign::program(args.seed);
        let mut module = ptx::emit::Module::new(1, None);
        module.add(&program);
        print!("{program}\n{}", module.text);
        return;
    }
    let kind = Kind::of(args.seed);
    print!("{kind:?}\n{}", program_of(args.seed, kind));
    println!("schedule {}", schedule_of(args.seed));
}
