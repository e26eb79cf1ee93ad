//! The command line.

use crate::scenario::one_kernel::{ArgSpec, Dims, PrintSpec};
use clap::{Args, Parser, Subcommand, ValueEnum};
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
  gsan run handoff.toml --device sim --seed 7

Exit codes: 0 no race, 1 a race (with [expect]: something differs from it), 2 bad usage or input,
3 the run itself failed (trap, fault, deadlock, budget or time limit, driver error).")]
pub struct RunArgs {
    /// A PTX module, or a scenario (a name that ends in .toml).
    #[arg(value_name = "FILE.ptx|SCENARIO.toml")]
    pub file: PathBuf,
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
    /// How the report is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
    /// Where the report goes; without it, to the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Run the module as it is and check nothing: to compare results and time.
    #[arg(long)]
    pub no_instrument: bool,
    /// Give up, print what was found and exit with 3 when the program has to wait longer than this for the device. Default: 60
    /// on a GPU, or what the scenario says; 300 on the simulator, which has its step budget.
    #[arg(long, alias = "time-limit", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub timeout: Option<u64>,
    /// The simulator's step budget: PTX instructions over all threads of one schedule.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget: Option<u64>,
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

/// `gsan instrument`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gsan instrument kernel.ptx -o kernel.gsan.ptx
  gsan instrument kernel.ptx -o -               to the standard output

The output holds the module with its hooks and gsan's runtime. Every kernel has one more parameter at the end:
`.param .u64 __gsan_launch`. Memory instructions that are not checked are listed on the standard error.")]
pub struct InstrumentArgs {
    /// The module.
    #[arg(value_name = "IN.ptx")]
    pub input: PathBuf,
    /// Where the instrumented module goes; `-` is the standard output.
    #[arg(short, long, value_name = "OUT.ptx")]
    pub output: PathBuf,
}

/// `gsan report`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gsan run k.ptx … --format json --out r.json; gsan report r.json
  gsan report r.json --format sarif --out r.sarif

Exit code: 0, whatever the report says; 2 if FILE is not a report.")]
pub struct ReportArgs {
    /// A report that `--format json` wrote.
    #[arg(value_name = "FILE.json")]
    pub file: PathBuf,
    /// How the report is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
    /// Where the report goes; without it, to the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
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
