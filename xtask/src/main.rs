//! Project tasks: `cargo xtask help` lists them. Nothing but the standard library, so that it builds in a second.

mod bench;
mod bundle;
mod examples;
mod inline_ptx;
mod parallel;
mod parity;
mod process;
mod ptx;
mod ptxas;
mod ptxas_table;
mod test;
mod toolchain;

use process::Failure;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask TASK

  test                   format, clippy, all tests, docs, loom, PTX, end-to-end scenarios
  test --quick           the same without loom and the PTX rebuild
  setup-device           install what compiles the device code (Debian, as root), or say how
  ptx                    rebuild the runtime's and the Rust test kernels' PTX
  ptx --check            rebuild them beside the checked-in ones and compare
  ptx --only NAME        rebuild one: `runtime` or a folder of tests/kernels/rust
  ptxas                  assemble all PTX, plain and instrumented, and scenarios' own PTX, with NVIDIA's ptxas
  ptxas --corpus [FILE]  assemble compilers' PTX instrumented, with registers and spills before and after, as `test` does
  ptxas --selection      the same for the files that are checked in, which is what `test` does without ../shared/corpus
  ptxas --fetch          get ptxas from PyPI, for this tree only
  bench [ARGS]           the criterion benches
  parity RESULTS         put a GPU's results (tests/litmus.sh --parity --results RESULTS) into docs/parity.md
  example-cudarc         build and run the example for cudarc on the simulated libcuda, as `test` does
  gpu-bundle             make gpu-bundle/, to be run on a machine with a GPU
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::run(test::Extent::Full),
        ["test", "--quick"] => test::run(test::Extent::Quick),
        ["setup-device"] => toolchain::setup(),
        ["ptx"] => ptx::rebuild(None),
        ["ptx", "--only", name] => ptx::rebuild(Some(name)),
        ["ptx", "--check"] => ptx::check().map(|_| ()),
        ["ptxas"] => ptxas::assemble_all(),
        ["ptxas", "--fetch"] => ptxas::fetch(),
        ["ptxas", "--selection"] => ptxas_table::run(ptxas_table::Extent::Selection, None),
        ["ptxas", "--corpus"] => ptxas_table::run(ptxas_table::Extent::Whole, None),
        ["ptxas", "--corpus", file] => {
            ptxas_table::run(ptxas_table::Extent::Whole, Some(file.as_ref()))
        }
        ["bench", rest @ ..] => bench::run(rest),
        ["parity", results] => parity::merge(results.as_ref()),
        ["gpu-bundle"] => bundle::make(),
        ["example-cudarc"] => examples::cudarc().and_then(|done| {
            done.map_err(|missing| Failure::new(format!("cudarc cannot be had: {}", missing.0)))
        }),
        ["help" | "--help" | "-h"] | [] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failure::new(format!(
            "unknown task `{}`\n\n{HELP}",
            other.join(" ")
        ))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
