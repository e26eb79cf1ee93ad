//! Programs that know nothing of gsan, built and run as they are on the simulated GPU's `libcuda`. (Those in C need no packages:
//! they are tests of sim-libcuda.)

use crate::process::{self, Context, Failure, Result, cargo, target_dir};
use std::path::PathBuf;

const CUDARC: &str = "sim-libcuda/examples-cudarc/Cargo.toml";

/// Why the example cannot be built here: its packages cannot be had.
pub struct Missing(pub String);

/// The example for cudarc: builds, runs, and computes what it should. It has a workspace and a lock file of its own.
pub fn cudarc() -> Result<std::result::Result<(), Missing>> {
    let mut fetch = cargo();
    fetch.args(["fetch", "--locked", "--manifest-path", CUDARC]);
    if let Err(failure) = process::capture(&mut fetch) {
        let why = failure.to_string();
        let last = why.lines().rev().find(|l| !l.trim().is_empty());
        return Ok(Err(Missing(last.unwrap_or_default().trim().to_string())));
    }
    process::run(cargo().args(["build", "--quiet", "--package", "sim-libcuda"]))?;
    let libraries = linked()?;
    let built = target_dir().join("examples-cudarc");
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--manifest-path", CUDARC]);
    process::run(build.env("CARGO_TARGET_DIR", &built))?;
    let mut program = std::process::Command::new(built.join("debug/cudarc-scale"));
    let said = process::capture(program.env("LD_LIBRARY_PATH", &libraries))?;
    print!("{said}");
    if said.contains("elements scaled by") && said.contains(" on gsan simulated GPU") {
        Ok(Ok(()))
    } else {
        Err(Failure::new(format!(
            "the example for cudarc ran elsewhere, or did something else: {said}"
        )))
    }
}

/// A folder with the simulated driver under the names that loaders look for.
fn linked() -> Result<PathBuf> {
    let library = target_dir().join("debug/libgsan_cuda.so");
    let folder = target_dir().join("simulated-libcuda");
    std::fs::create_dir_all(&folder).about(folder.display())?;
    for name in ["libcuda.so", "libcuda.so.1"] {
        let link = folder.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, &link).about(link.display())?;
    }
    Ok(folder)
}
