//! The command line.

use crate::names::Named;
use crate::scenario::one_kernel::{ArgSpec, Dims, PrintSpec};
use clap::{Args, Parser, Subcommand, ValueEnum};
use gsan_host::report::RaceClass;
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;

/// Finds data races in GPU global memory.
#[derive(Debug, Parser)]
#[command(
    name = "gsan",
    version,
    max_term_width = 110,
    arg_required_else_help = true
)]
#[command(after_help = "\
Examples:
  gsan demo                                     bundled racy kernels and their repaired twins
  gsan run k.ptx --kernel scale --grid 64 --block 256 --arg buf:f32[16384]=iota --arg f32=2
  gsan run handoff.toml --schedules 64          a scenario file, 64 schedules
  gsan inspect handoff.toml --word flag+0       what the shadow keeps of a word
  gsan doctor                                   what this machine has

Exit codes: 0 no race, 1 a race, 2 bad usage or input, 3 the run itself failed.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run bundled racy kernels and their repaired twins, and show the reports.
    Demo(DemoArgs),
    /// Run a kernel, or a scenario file, and report races.
    Run(Box<RunArgs>),
    /// Run a kernel, or a scenario file, and print what the detector knows afterwards: shadow, threads, global state.
    Inspect(Box<InspectArgs>),
    /// Write the instrumented PTX of a module.
    Instrument(InstrumentArgs),
    /// Print a saved JSON report.
    Report(ReportArgs),
    /// Show what this machine has: driver, GPUs, tool-chains, versions.
    Doctor(DoctorArgs),
    /// Check an operator graph for memory conflicts.
    Graph(crate::graph::GraphArgs),
}

/// `gsan demo`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gsan demo
  gsan demo --device sim --schedules 32
  gsan demo --list
  gsan demo --only histogram

Exit code: 0 if each racy kernel was found racy and each repaired one silent, 1 if not, 3 if a run failed.")]
pub struct DemoArgs {
    /// Where to run.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// How many schedules (on a GPU: repetitions) per kernel.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub schedules: u32,
    /// First schedule seed of the simulator.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Only the pairs whose name contains this.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// List the pairs and stop.
    #[arg(long)]
    pub list: bool,
}

/// `gsan run`
#[derive(Debug, Args)]
#[command(after_help = "\
Argument specs (one --arg per kernel parameter, in order):
  u32=5  i32=-1  u64=0x10  f32=1.5  f64=2e3       a number; types: u8 u16 u32 u64 i8 i16 i32 i64 f32 f64
  buf:TYPE[LEN]                                   a zeroed buffer of LEN elements
  buf:TYPE[LEN]=zero | =iota | =fill:V | =rand:SEED | =@FILE
The buffers are called arg0, arg1, … after their places in the parameter list.

Examples:
  gsan run k.ptx --kernel scale --grid 64 --block 256 --arg 'buf:f32[16384]=iota' --arg f32=2 --print 0:8
  gsan run k.ptx --kernel reduce --grid 4 --block 32,4 --shared 1024 --schedules 16 --format json --out r.json \\
      --arg 'buf:u32[4096]=rand:1' --arg 'buf:u32[1]'
  gsan run main.ptx queue.ptx --kernel fill --grid 8 --block 32 --arg 'buf:u32[8]'     two modules, linked
  gsan run handoff.toml --device sim --seed 7

Exit codes: 0 no race, 1 a race (with [expect]: something differs from it), 2 bad usage or input,
3 the run itself failed (trap, fault, deadlock, budget or time limit, driver error).")]
pub struct RunArgs {
    /// What to run.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Afterwards print that buffer's first N elements (all without N): an argument's number from 0, or a buffer's name.
    #[arg(long, value_name = "ARG[:N]")]
    pub print: Vec<PrintSpec>,
    /// Where to run.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// First schedule seed of the simulator.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How many schedules to try (on a GPU: repetitions), from the seed on; their findings are merged. Default: 1, or what the
    /// scenario's `[expect]` says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub schedules: Option<u32>,
    /// What the shadow keeps per word. Default: wide, or what the scenario says.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub cell: Option<CellArg>,
    /// Each fence.sc (and membar) synchronises with the next one, as PTX has it. Without it two of them order accesses as in
    /// C++: only through a value that one side wrote and the other read.
    #[arg(long)]
    pub sc_order: bool,
    /// Which findings are not reported.
    #[command(flatten)]
    pub classes: ClassArgs,
    /// How the report is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
    /// Where the report goes; without it, to the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// In the text, say what instrumentation did inside blocks and which accesses it left out because they cannot race. (JSON
    /// always says it.)
    #[arg(long)]
    pub stats: bool,
    /// Run the module as it is and check nothing: to compare results and time.
    #[arg(long, conflicts_with_all = ["cell", "sc_order", "no_class", "stats"])]
    pub no_instrument: bool,
    /// Give up, print what was found and exit with 3 when the program has to wait longer than this for the device. Default: 60
    /// on a GPU, or what the scenario says; 300 on the simulator, which has its step budget.
    #[arg(long, alias = "time-limit", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub timeout: Option<u64>,
    /// The simulator's step budget: PTX instructions over all threads of one schedule.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget: Option<u64>,
}

/// What to run, in both forms.
#[derive(Debug, Args)]
pub struct ProgramArgs {
    /// A PTX module, or a scenario (a name that ends in .toml).
    #[arg(value_name = "FILE.ptx|SCENARIO.toml")]
    pub file: PathBuf,
    /// Further PTX modules, to be linked with the first into one program.
    #[arg(value_name = "FILE.ptx")]
    pub link: Vec<PathBuf>,
    /// The kernel to launch.
    #[arg(long, value_name = "NAME", help_heading = "One kernel")]
    pub kernel: Option<String>,
    /// Blocks.
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "One kernel")]
    pub grid: Option<Dims>,
    /// Threads per block.
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "One kernel")]
    pub block: Option<Dims>,
    /// A kernel argument (see below); once per parameter, in order.
    #[arg(
        long = "arg",
        value_name = "SPEC",
        allow_hyphen_values = true,
        help_heading = "One kernel"
    )]
    pub args: Vec<ArgSpec>,
    /// Dynamic shared memory, bytes.
    #[arg(long, value_name = "BYTES", help_heading = "One kernel")]
    pub shared: Option<u32>,
    /// Blocks per cluster.
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "One kernel")]
    pub cluster: Option<Dims>,
}

/// Report classes that are switched off.
#[derive(Debug, Args, Clone, Default)]
pub struct ClassArgs {
    /// Leave out findings of this class: race, scope-too-narrow, missing-acquire, missing-release, mixed-width, stale-nc,
    /// intra-block or missing-wait. Several times, or a list with commas. They are counted, and the exit code is as without them. Without
    /// intra-block a run does not instrument barriers either, without stale-nc no non-coherent loads.
    #[arg(long = "no-class", value_name = "CLASS", value_delimiter = ',', value_parser = class)]
    pub no_class: Vec<RaceClass>,
}

fn class(word: &str) -> Result<RaceClass, String> {
    RaceClass::from_word(word.trim())
        .ok_or_else(|| format!("there is no such class; there are: {}", RaceClass::words()))
}

/// A shadow cell's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CellArg {
    /// Four accesses with bytes, thread and line: 64 bytes per word
    Wide,
    /// The classic GSan's sampled readers and last writer: 24 bytes per word
    Reference,
}

impl From<CellArg> for gsan_host::CellFormat {
    fn from(arg: CellArg) -> Self {
        match arg {
            CellArg::Wide => gsan_host::CellFormat::Wide,
            CellArg::Reference => gsan_host::CellFormat::Reference,
        }
    }
}

/// `gsan inspect`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gsan inspect handoff.toml                     every thread, and how much of each buffer was touched
  gsan inspect handoff.toml --word flag --word data+0..16 --thread 5
  gsan inspect handoff.toml --after 1 --word data+0 --json
  gsan inspect k.ptx --kernel scale --grid 64 --block 256 --arg buf:f32[16384]=iota --arg f32=2 --word arg0+0

The program runs once, under one schedule. Looking orders nothing: the state is read when all work has ended.

Exit codes: those of `gsan run` without [expect]: 0 no race, 1 a race, 2 bad usage or input, 3 the run itself failed.")]
pub struct InspectArgs {
    /// What to run.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// A word, or the words that lie in the bytes from OFFSET to before END, of a buffer or a module's variable; all of it
    /// without an offset. May be given several times.
    #[arg(long = "word", value_name = "BUFFER[+OFFSET[..END]]")]
    pub words: Vec<WordSpec>,
    /// A logical thread, by its index in a clock. May be given several times.
    #[arg(long = "thread", value_name = "ID")]
    pub threads: Vec<u32>,
    /// Each device's global state and counters.
    #[arg(long)]
    pub global: bool,
    /// Stop after the scenario's first N steps.
    #[arg(long, value_name = "N")]
    pub after: Option<usize>,
    /// Where to run.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The schedule seed of the simulator.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// What the shadow keeps per word. Default: wide, or what the scenario says.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub cell: Option<CellArg>,
    /// How the state is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = InspectFormat::Text)]
    pub format: InspectFormat,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Where the state goes; without it, to the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Give up when the program has to wait longer than this for the device; as in `gsan run`.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub timeout: Option<u64>,
    /// The simulator's step budget: PTX instructions over all threads.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget: Option<u64>,
}

/// The value of `gsan inspect --format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The value of `--word`: `BUFFER[+OFFSET[..END]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordSpec {
    /// A buffer's or variable's name.
    pub name: String,
    /// First byte; the whole buffer without it.
    pub offset: Option<u64>,
    /// The byte behind the last; one word without it.
    pub end: Option<u64>,
}

impl FromStr for WordSpec {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let parsed = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            parsed.map_err(|_| format!("`{text}` is not a number of bytes"))
        };
        let (name, range) = match s.split_once('+') {
            Some((name, range)) => (name, Some(range)),
            None => (s, None),
        };
        if name.is_empty() {
            return Err("it is BUFFER, BUFFER+OFFSET or BUFFER+OFFSET..END".into());
        }
        let (offset, end) = match range.map(|r| r.split_once("..").unwrap_or((r, ""))) {
            None => (None, None),
            Some((offset, "")) if !s.ends_with("..") => (Some(number(offset)?), None),
            Some((offset, end)) => (Some(number(offset)?), Some(number(end)?)),
        };
        if let (Some(offset), Some(end)) = (offset, end)
            && end <= offset
        {
            return Err(format!(
                "`{s}` is empty: END is the byte behind the last one"
            ));
        }
        Ok(WordSpec {
            name: name.into(),
            offset,
            end,
        })
    }
}

impl Display for WordSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if let Some(offset) = self.offset {
            write!(f, "+{offset}")?;
        }
        match self.end {
            Some(end) => write!(f, "..{end}"),
            None => Ok(()),
        }
    }
}

/// `gsan instrument`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gsan instrument kernel.ptx -o kernel.gsan.ptx
  gsan instrument kernel.ptx -o -               to the standard output
  gsan instrument kernel.ptx -o kernel.gsan.ptx --runtime runtime.ptx
                                                the two that gsan run has the driver link

The output holds the module with its hooks and, without --runtime, gsan's runtime. Every kernel has one more parameter at the end:
`.param .u64 __gsan_launch`. Memory instructions that are not checked are listed on the standard error.")]
pub struct InstrumentArgs {
    /// The module.
    #[arg(value_name = "IN.ptx")]
    pub input: PathBuf,
    /// Where the instrumented module goes; `-` is the standard output.
    #[arg(short, long, value_name = "OUT.ptx")]
    pub output: PathBuf,
    /// Where what the module needs of the runtime goes, to be compiled for itself and linked with the module: that is what gsan run
    /// does. Without it the module holds it, and kernels that change their registers under a bound (setmaxnreg) get no hooks.
    #[arg(long, value_name = "RUNTIME.ptx")]
    pub runtime: Option<PathBuf>,
}

/// `gsan report`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gsan run k.ptx … --format json --out r.json; gsan report r.json
  gsan report r.json --format sarif --out r.sarif
  gsan report r.json --no-class stale-nc

Exit code: 0, whatever the report says; 2 if FILE is not a report.")]
pub struct ReportArgs {
    /// A report that `--format json` wrote.
    #[arg(value_name = "FILE.json")]
    pub file: PathBuf,
    /// Which findings are not reported.
    #[command(flatten)]
    pub classes: ClassArgs,
    /// How the report is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
    /// Where the report goes; without it, to the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// In the text, say what instrumentation did inside blocks and which accesses it left out because they cannot race. (JSON
    /// always says it.)
    #[arg(long)]
    pub stats: bool,
}

/// `gsan doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  gsan doctor

Exit code: 0; what is missing is no error: without a GPU everything runs on the simulated one.")]
pub struct DoctorArgs {}

/// Which device.
#[derive(Debug, Args, Clone)]
pub struct DeviceArgs {
    /// auto (a GPU if there is one, else the simulator), sim, cuda or cuda:N.
    #[arg(long = "device", value_name = "DEVICE", default_value = "auto")]
    pub device: DeviceChoice,
    /// The simulator's memory: sc (everybody sees every store at once) or weak (stores become visible late and loads are
    /// satisfied early, within what PTX allows; by the seed). Default: sc, or what the scenario says.
    #[arg(long, value_enum, value_name = "MODEL")]
    pub memory: Option<MemoryArg>,
    /// The simulator's schedules: random (short turns, with equal odds) or priority (few preemptions: who stands still does so
    /// for long). Default: random, or what the scenario says.
    #[arg(long, value_enum, value_name = "KIND")]
    pub schedule: Option<ScheduleArg>,
    /// What the simulator does at a barrier for the whole block of which whole warps have exited: fault, or arrive (they count as
    /// arrived, as on NVIDIA's GPUs). Default: fault, or what the scenario says.
    #[arg(long, value_enum, value_name = "RULE")]
    pub exited_warps: Option<ExitedWarpsArg>,
}

/// The value of `--exited-warps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExitedWarpsArg {
    /// The barrier is a fault.
    Fault,
    /// They count as arrived.
    Arrive,
}

impl From<ExitedWarpsArg> for gsan_sim::ExitedWarps {
    fn from(arg: ExitedWarpsArg) -> Self {
        match arg {
            ExitedWarpsArg::Fault => gsan_sim::ExitedWarps::Fault,
            ExitedWarpsArg::Arrive => gsan_sim::ExitedWarps::Arrive,
        }
    }
}

/// The value of `--memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MemoryArg {
    /// Sequentially consistent.
    Sc,
    /// As weak as PTX allows, nearly.
    Weak,
}

impl From<MemoryArg> for gsan_sim::MemoryModel {
    fn from(arg: MemoryArg) -> Self {
        match arg {
            MemoryArg::Sc => gsan_sim::MemoryModel::Sequential,
            MemoryArg::Weak => gsan_sim::MemoryModel::Weak,
        }
    }
}

/// The value of `--schedule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScheduleArg {
    /// Any warp may be next.
    Random,
    /// The warp with the highest priority is next.
    Priority,
}

impl From<ScheduleArg> for gsan_sim::Schedule {
    fn from(arg: ScheduleArg) -> Self {
        match arg {
            ScheduleArg::Random => gsan_sim::Schedule::Random,
            ScheduleArg::Priority => gsan_sim::Schedule::Priority,
        }
    }
}

/// The value of `--device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if there is one, else the simulator.
    Auto,
    /// The simulator.
    Sim,
    /// The GPU with this number.
    Cuda(u32),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "auto" => Ok(DeviceChoice::Auto),
            "sim" => Ok(DeviceChoice::Sim),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            _ => s
                .strip_prefix("cuda:")
                .filter(|n| n.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|n| n.parse().ok())
                .map(DeviceChoice::Cuda)
                .ok_or_else(|| "it is auto, sim, cuda or cuda:N".to_string()),
        }
    }
}

/// The value of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; `gsan report` reads it.
    Json,
    /// SARIF 2.1.0, for code-scanning services.
    Sarif,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_has_help_and_an_example() {
        for sub in Cli::command().get_subcommands_mut() {
            let help = sub.render_long_help().to_string();
            assert!(help.contains("Example"), "{}", sub.get_name());
            assert!(
                help.contains(&format!("gsan {}", sub.get_name())),
                "{}",
                sub.get_name()
            );
        }
    }

    #[test]
    fn words_are_a_buffer_with_an_offset_or_a_range() {
        let spec = |name: &str, offset, end| {
            Ok(WordSpec {
                name: name.into(),
                offset,
                end,
            })
        };
        assert_eq!("data".parse(), spec("data", None, None));
        assert_eq!("data+8".parse(), spec("data", Some(8), None));
        assert_eq!("d..x+0x10..32".parse(), spec("d..x", Some(16), Some(32)));
        for good in ["data", "data+8", "data+8..16"] {
            assert_eq!(good.parse::<WordSpec>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "+4",
            "data+",
            "data+x",
            "data+4..",
            "data+4..4",
            "data+4..2",
            "data+-1",
            "data+..8",
        ] {
            assert!(bad.parse::<WordSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn devices() {
        assert_eq!("auto".parse(), Ok(DeviceChoice::Auto));
        assert_eq!("sim".parse(), Ok(DeviceChoice::Sim));
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
        for bad in [
            "",
            "gpu",
            "cuda:",
            "cuda:x",
            "cuda:-1",
            "cuda:+1",
            "cuda:99999999999",
        ] {
            assert!(bad.parse::<DeviceChoice>().is_err(), "{bad}");
        }
    }
}
