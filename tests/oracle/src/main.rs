//! `gsan-oracle`: holds the detector against the oracle on as many random programs as you like.

use clap::Parser;
use gsan_device::mutants::Edge;
use gsan_oracle::campaign::{Campaign, Constructs, Kind, minimise, program_of, schedule_of};
use gsan_oracle::campaign::{Case, Summary};
use gsan_oracle::program::Program;
use gsan_oracle::ptx::{self, bundle::Bundle};
use gsan_oracle::setup::Format;
use std::path::{Path, PathBuf};
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
    /// Whether the detector follows the order of `fence.sc`s; if not said, for two programs in five.
    #[arg(long)]
    sc_order: Option<bool>,
    /// What the programs are made of.
    #[arg(long, value_enum, default_value_t)]
    kind: Kinds,
    /// The whole way: as PTX, instrumented, on the simulator.
    #[arg(long)]
    ptx: bool,
    /// With --ptx: how many programs share a module and a session.
    #[arg(long, default_value_t = 20)]
    batch: u64,
    /// Write programs for a GPU to this folder: PTX, scenario files for `gsan run`, and what to expect.
    #[arg(long, value_name = "FOLDER")]
    gpu_bundle: Option<PathBuf>,
    /// With --gpu-bundle: how many schedules of the interpreter say what to expect of a program.
    #[arg(long, default_value_t = 400)]
    schedules: u64,
    /// With --gpu-bundle: how many programs share a module.
    #[arg(long, default_value_t = 125)]
    module: usize,
    /// With --gpu-bundle: how often the programs run.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Hold what FOLDER/run.sh left in FOLDER/results against what was to be expected.
    #[arg(long, value_name = "FOLDER")]
    gpu_judge: Option<PathBuf>,
    /// With --gpu-judge: the reports are in this folder.
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Print the program of the seed (with --ptx: as PTX, too) and leave.
    #[arg(long)]
    print: bool,
    /// Remove an edge from the detector (a name such as AcquireMerge): the run should fail.
    #[arg(long)]
    without: Option<String>,
}

/// [`Constructs`], as an argument.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Kinds {
    /// Accesses, fences, barriers, streams and events.
    #[default]
    Classic,
    /// Clusters, mbarriers, asynchronous copies and graphs as well.
    Wide,
}

impl Args {
    fn constructs(&self) -> Constructs {
        match self.kind {
            Kinds::Classic => Constructs::Classic,
            Kinds::Wide => Constructs::Wide,
        }
    }
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
    if let Some(folder) = &args.gpu_bundle {
        return bundle(&args, folder);
    }
    if let Some(folder) = &args.gpu_judge {
        let results = args.results.clone();
        return judge(folder, &results.unwrap_or_else(|| folder.join("results")));
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
            sc_order: args.sc_order,
            constructs: args.constructs(),
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
            sc_order: args.sc_order,
            constructs: args.constructs(),
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
    explain(&summary, args.shrink, small);
    if summary.cases.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints what failed, and the first of it made small.
fn explain(summary: &Summary, shrink: usize, small: impl Fn(&Case) -> (Program, u64, Vec<String>)) {
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
        let program = ptx::campaign::program(args.seed, args.constructs());
        let mut module = ptx::emit::Module::new(1, None);
        module.add(&program);
        print!("{program}\n{}", module.text);
        return;
    }
    let kind = Kind::of(args.seed, args.constructs());
    print!("{kind:?}\n{}", program_of(args.seed, kind));
    println!("schedule {}", schedule_of(args.seed));
}

fn bundle(args: &Args, folder: &Path) -> ExitCode {
    let bundle = Bundle {
        seed: args.seed,
        programs: args.programs as usize,
        module: args.module,
        schedules: args.schedules,
        rounds: args.rounds,
        constructs: args.constructs(),
    };
    let modules = bundle.choose(&|n| eprintln!("{n} programs"));
    if let Err(error) = bundle.write(folder, &modules) {
        eprintln!("cannot write {}: {error}", folder.display());
        return ExitCode::from(2);
    }
    for kind in ptx::bundle::Kind::ALL {
        let count = modules.iter().flatten().filter(|e| e.kind == kind).count();
        println!("{kind:?}: {count}");
    }
    ExitCode::SUCCESS
}

fn judge(folder: &Path, results: &Path) -> ExitCode {
    match ptx::bundle::judge(folder, results) {
        Ok(verdict) => {
            print!("{verdict}");
            ExitCode::from(u8::from(!verdict.is_good()))
        }
        Err(error) => {
            eprintln!("cannot read {}: {error}", folder.display());
            ExitCode::from(2)
        }
    }
}
