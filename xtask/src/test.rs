//! `cargo xtask test`: everything that decides whether the tree is good. It goes on after a failure, and says at the
//! end what passed, what failed, and what was not run and why.

use crate::process::{self, Failure, Result, cargo, root, target_dir};
use crate::ptx::{self, Checked};
use crate::toolchain::DeviceToolchain;
use crate::{examples, ptxas, ptxas_table};
use std::path::Path;
use std::time::{Duration, Instant};

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Full,
    /// Without what takes long and seldom fails: loom, the PTX rebuild, ptxas.
    Quick,
}

enum Outcome {
    Passed,
    Failed(Failure),
    NotRun(String),
}

struct Steps {
    done: Vec<(&'static str, Outcome, Duration)>,
}

impl Steps {
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<Outcome>) {
        eprintln!("\n==> {name}");
        let start = Instant::now();
        let outcome = work().unwrap_or_else(Outcome::Failed);
        if let Outcome::Failed(failure) = &outcome {
            eprintln!("{failure}");
        }
        self.done.push((name, outcome, start.elapsed()));
    }

    fn command(&mut self, name: &'static str, command: &mut std::process::Command) {
        self.step(name, || process::run(command).map(|()| Outcome::Passed));
    }

    fn finish(self) -> Result {
        println!("\nsummary");
        let mut failed = Vec::new();
        for (name, outcome, time) in &self.done {
            let seconds = time.as_secs_f64();
            match outcome {
                Outcome::Passed => println!("  passed   {seconds:6.1} s  {name}"),
                Outcome::NotRun(why) => println!("  NOT RUN            {name}: {why}"),
                Outcome::Failed(_) => {
                    println!("  FAILED   {seconds:6.1} s  {name}");
                    failed.push(*name);
                }
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(Failure::new(format!("failed: {}", failed.join(", "))))
        }
    }
}

/// Runs it all.
pub fn run(extent: Extent) -> Result {
    let mut steps = Steps { done: Vec::new() };
    steps.command("format", cargo().args(["fmt", "--all", "--check"]));
    let mut kernels = cargo();
    kernels.args([
        "fmt",
        "--all",
        "--check",
        "--manifest-path",
        "tests/kernels/rust/Cargo.toml",
    ]);
    steps.command("format of the test kernels", &mut kernels);
    steps.command(
        "clippy",
        cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]),
    );

    // Before the tests: where another compiler made the PTX, the tests use what this one makes of the sources.
    let mut rebuilt = None;
    steps.step("the checked-in PTX is what the sources say", || {
        if extent == Extent::Quick {
            return Ok(Outcome::NotRun("--quick".into()));
        }
        if DeviceToolchain::find().is_none() {
            let how = "no compiler for device code (`cargo xtask setup-device`); the checked-in PTX is what gets tested";
            return Ok(Outcome::NotRun(how.into()));
        }
        if let Checked::Rebuilt(folder) = ptx::check()? {
            add_the_rest(&folder)?;
            rebuilt = Some(folder);
            return Ok(Outcome::NotRun("this compiler is not the recorded one; what it makes gets tested instead".into()));
        }
        Ok(Outcome::Passed)
    });

    let mut tests = cargo();
    tests.args(["test", "--workspace", "--quiet", "--no-fail-fast"]);
    // gsan-cli's own tests have cargo build the program before any test runs; gsan-tests need not build it again.
    tests.env("GSAN_BIN", ptxas::program());
    if let Some(folder) = &rebuilt {
        tests.env("GSAN_RUNTIME_PTX", folder.join("gsan-device/ptx"));
        tests.env("GSAN_TEST_TREE", folder);
    }
    steps.command(
        "tests: units, properties, documentation, end-to-end scenarios on the simulator",
        &mut tests,
    );

    let mut docs = cargo();
    docs.args(["doc", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings");
    steps.command("documentation builds", &mut docs);

    steps.step("loom: the detector under all interleavings", || {
        if extent == Extent::Quick {
            return Ok(Outcome::NotRun("--quick".into()));
        }
        let mut loom = cargo();
        // Other flags, other folder: else each run of the one would rebuild the other.
        loom.env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", target_dir().join("loom"));
        process::run(loom.args([
            "test",
            "--package",
            "gsan-device",
            "--release",
            "--quiet",
            "--tests",
        ]))?;
        Ok(Outcome::Passed)
    });

    steps.step("the fuzz targets build", || fuzz_targets(extent));

    steps.step("a program for cudarc runs on the simulated libcuda", || {
        if extent == Extent::Quick {
            return Ok(Outcome::NotRun("--quick".into()));
        }
        let done = examples::cudarc()?;
        Ok(match done {
            Ok(()) => Outcome::Passed,
            Err(missing) => Outcome::NotRun(format!("cudarc cannot be had: {}", missing.0)),
        })
    });

    ptxas_steps(&mut steps, extent);

    steps.step("the scenarios on a GPU", || {
        let gpu = Path::new("/dev/nvidiactl").exists();
        let why = if gpu {
            "`cargo xtask gpu-bundle && gpu-bundle/run.sh` does"
        } else {
            "no GPU here"
        };
        Ok(Outcome::NotRun(why.into()))
    });
    steps.finish()
}

/// What NVIDIA's assembler says of the tree's PTX, and of the corpus where it is there.
fn ptxas_steps(steps: &mut Steps, extent: Extent) {
    let not_run = if extent == Extent::Quick {
        Some("--quick")
    } else if ptxas::find().is_none() {
        Some("no ptxas (`cargo xtask ptxas --fetch` gets it from PyPI)")
    } else {
        None
    };
    let mut step = |name, work: &dyn Fn() -> Result| {
        steps.step(name, || match not_run {
            Some(why) => Ok(Outcome::NotRun(why.into())),
            None => work().map(|()| Outcome::Passed),
        });
    };
    step(
        "ptxas takes all PTX, plain and instrumented, and that of scenarios",
        &|| ptxas::assemble_all(),
    );
    let name = if ptxas_table::whole_corpus().is_some() {
        "ptxas takes the whole corpus, instrumented"
    } else {
        "ptxas takes the corpus's checked-in selection, instrumented (../shared/corpus is not here)"
    };
    step(name, &|| ptxas_table::run(ptxas_table::Extent::Whole, None));
    if ptxas_table::whole_corpus().is_none() {
        steps.step("the whole corpus, by ptxas and by gsan-ptx's tests", || {
            let why = "../shared/corpus is not here; the selection in gsan-ptx/tests/data/corpus was taken in its place";
            Ok(Outcome::NotRun(why.into()))
        });
    }
}

/// Fuzzing itself needs a nightly compiler; that the targets still fit the crates does not.
fn fuzz_targets(extent: Extent) -> Result<Outcome> {
    if extent == Extent::Quick {
        return Ok(Outcome::NotRun("--quick".into()));
    }
    // libFuzzer is compiled on the way.
    if process::capture(std::process::Command::new("c++").arg("--version")).is_err() {
        return Ok(Outcome::NotRun("no C++ compiler".into()));
    }
    for folder in ["gsan-ptx/fuzz", "ge-conflict/fuzz"] {
        let manifest = format!("{folder}/Cargo.toml");
        let mut check = cargo();
        // A workspace of their own, so a lock file of their own; the folder for what is built would be theirs too.
        check.args(["check", "--quiet", "--locked", "--manifest-path", &manifest]);
        process::run(check.env("CARGO_TARGET_DIR", target_dir().join("fuzz")))?;
    }
    Ok(Outcome::Passed)
}

/// Completes a tree of rebuilt PTX by what is not rebuilt, so that the end-to-end tests can run in it.
fn add_the_rest(tree: &Path) -> Result {
    for folder in [
        "tests/scenarios",
        "tests/kernels/cuda/ptx",
        "tests/kernels/separate/ptx",
        "tests/kernels/ptx",
    ] {
        for ending in ["toml", "ptx"] {
            for file in process::files_in(&root().join(folder), ending) {
                let name = file.file_name().unwrap_or_default();
                process::copy(&file, &tree.join(folder).join(name))?;
            }
        }
    }
    Ok(())
}
