//! `cargo xtask ptxas`: NVIDIA's assembler says whether a GPU's driver would take the PTX. It needs no GPU.

use crate::inline_ptx::{self, Inline};
use crate::parallel;
use crate::process::{self, Context, Failure, Result, capture, cargo, files_in, root, target_dir};
use crate::ptxas_table;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// PTX ISA 9.0, what a 580-series driver (CUDA 13.0) takes: a file that passes here loads there.
const PACKAGE: &str = "nvidia-cuda-nvcc==13.0.88";

/// ptxas has been seen to run away: 10 minutes, 12 GB. The time is the processor's, for machines that do other things too.
pub const LIMITS: &str = "ulimit -v 8000000; ulimit -t 120; exec timeout 1200 \"$@\"";

/// Parts of a program.
const SEPARATE: &str = "tests/kernels/separate/ptx";

fn fetch_folder() -> PathBuf {
    target_dir().join("ptxas")
}

/// `GSAN_PTXAS`, where `--fetch` puts it, or in the path.
pub fn find() -> Option<PathBuf> {
    let fetched = fetch_folder().join("nvidia/cu13/bin/ptxas");
    let in_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|p| std::env::split_paths(&p).collect::<Vec<_>>());
    std::env::var_os("GSAN_PTXAS")
        .map(PathBuf::from)
        .into_iter()
        .chain([fetched])
        .chain(in_path.map(|folder| folder.join("ptxas")))
        .find(|path| path.is_file())
}

/// Gets it from PyPI, below `target`.
pub fn fetch() -> Result {
    if let Some(found) = find() {
        println!("already here: {}", found.display());
        return Ok(());
    }
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
    ]);
    process::run(pip.arg(fetch_folder()).arg(PACKAGE))?;
    let found = find().ok_or_else(|| Failure::new(format!("{PACKAGE} brought no ptxas")))?;
    println!("fetched {}", found.display());
    Ok(())
}

/// Every checked-in PTX file, as it is and instrumented, and the texts of scenarios.
pub fn assemble_all() -> Result {
    process::run(cargo().args(["build", "--quiet", "--package", "gsan-cli"]))?;
    assemble_all_with(&program())
}

/// Where cargo leaves the program that instruments.
pub fn program() -> PathBuf {
    target_dir()
        .join("debug")
        .join(format!("gsan{}", std::env::consts::EXE_SUFFIX))
}

/// The same, with a program that is built already.
pub fn assemble_all_with(gsan: &Path) -> Result {
    let ptxas = find().ok_or_else(|| Failure::new("no ptxas: `cargo xtask ptxas --fetch`"))?;
    let jobs = jobs()?;
    let done = parallel::map(&jobs, |job| job.run(&ptxas, gsan));
    let failures: Vec<String> = done
        .into_iter()
        .filter_map(|done| done.err().map(|failure| failure.to_string()))
        .collect();
    if !failures.is_empty() {
        return Err(Failure::new(failures.join("\n")));
    }
    let count = |of: fn(&Job) -> bool| jobs.iter().filter(|job| of(job)).count();
    println!(
        "ptxas took {} files as they are, {} instrumented, and {} texts of scenarios",
        count(|job| matches!(
            job,
            Job::File {
                instrument: false,
                ..
            }
        )),
        count(|job| matches!(
            job,
            Job::File {
                instrument: true,
                ..
            }
        )),
        count(|job| matches!(job, Job::Inline(_))),
    );
    Ok(())
}

/// Something to assemble.
enum Job {
    /// A file, as it is or instrumented; with `part` it calls functions of others.
    File {
        path: PathBuf,
        part: bool,
        instrument: bool,
    },
    /// A scenario's own text, as it is: what instrumentation does to such texts the files show.
    Inline(Inline),
}

fn jobs() -> Result<Vec<Job>> {
    const RUNTIME: &str = "gsan-device/ptx";
    let mut jobs = Vec::new();
    for folder in [
        RUNTIME,
        "tests/kernels/rust/ptx",
        "tests/kernels/cuda/ptx",
        SEPARATE,
        "tests/kernels/ptx",
    ] {
        for path in files_in(&root().join(folder), "ptx") {
            for instrument in [true, false] {
                if !instrument || folder != RUNTIME {
                    jobs.push(Job::File {
                        path: path.clone(),
                        part: folder == SEPARATE,
                        instrument,
                    });
                }
            }
        }
    }
    jobs.extend(inline_ptx::all()?.into_iter().map(Job::Inline));
    Ok(jobs)
}

impl Job {
    fn run(&self, ptxas: &Path, gsan: &Path) -> Result {
        let scratch = |name: &str| target_dir().join("instrumented").join(name);
        match self {
            Job::File {
                path,
                part,
                instrument: false,
            } => assemble(ptxas, path, *part),
            Job::File { path, .. } => {
                let name = path.strip_prefix(root()).unwrap_or(path).to_string_lossy();
                let out = scratch(&name.replace('/', "-"));
                process::write(&out, "")?;
                let mut instrument = Command::new(gsan);
                instrument.arg("instrument").arg(path).arg("-o").arg(&out);
                // To be linked with the runtime, as it is when gsan runs it: merged, kernels with `setmaxnreg` would have no hooks. The
                // runtime itself is one of the files, and `ptxas --corpus` links.
                let beside = out.with_extension("runtime.ptx");
                instrument.arg("--runtime").arg(beside);
                capture(&mut instrument)?;
                assemble(ptxas, &out, true)
            }
            Job::Inline(inline) => {
                let name = inline.place.replace(['/', ':'], "-");
                let file = scratch(&format!("{name}.ptx"));
                process::write(&file, &inline.text)?;
                let part = inline.text.contains(".extern .func");
                let about = |failure| Failure::new(format!("{}: {failure}", inline.place));
                assemble(ptxas, &file, part).map_err(about)
            }
        }
    }
}

/// For the oldest target that the text allows. Whole programs, or with `part` files that call functions of others.
fn assemble(ptxas: &Path, file: &Path, part: bool) -> Result {
    let text = fs::read_to_string(file).about(file.display())?;
    let arch = ptxas_table::targets(&text).first().copied();
    let mut limited = Command::new("bash");
    limited
        .args(["-c", LIMITS, "bash"])
        .arg(ptxas)
        .arg(format!("-arch={}", arch.unwrap_or("sm_80")))
        .args(part.then_some("-c"))
        .arg(file)
        .args(["-o", "/dev/null"]);
    capture(&mut limited).map(|_| ())
}
