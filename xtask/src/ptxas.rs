//! `cargo xtask ptxas`: NVIDIA's assembler says whether a GPU's driver would take the PTX. It needs no GPU.

use crate::process::{self, Context, Failure, Result, capture, cargo, files_in, root, target_dir};
use crate::ptxas_table;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// PTX ISA 9.0, what a 580-series driver (CUDA 13.0) takes: a file that passes here loads there.
const PACKAGE: &str = "nvidia-cuda-nvcc==13.0.88";

/// ptxas has been seen to run away: 10 minutes, 12 GB.
pub const LIMITS: &str = "ulimit -v 8000000; exec timeout 120 \"$@\"";

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

/// Every checked-in PTX file, as it is and instrumented.
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
    let scratch = target_dir().join("instrumented");
    let mut failures = Vec::new();
    let mut assembled = 0;
    for folder in [
        "gsan-device/ptx",
        "tests/kernels/rust/ptx",
        "tests/kernels/cuda/ptx",
        SEPARATE,
        "tests/kernels/ptx",
    ] {
        for file in files_in(&root().join(folder), "ptx") {
            let mut check = |file: &Path| match assemble(&ptxas, file, folder == SEPARATE) {
                Ok(()) => assembled += 1,
                Err(failure) => failures.push(failure.to_string()),
            };
            check(&file);
            if folder == "gsan-device/ptx" {
                continue;
            }
            let out = scratch
                .join(folder.replace('/', "-"))
                .join(file.file_name().unwrap_or_default());
            process::write(&out, "")?;
            match capture(
                Command::new(gsan)
                    .arg("instrument")
                    .arg(&file)
                    .arg("-o")
                    .arg(&out),
            ) {
                Ok(_) => check(&out),
                Err(failure) => failures.push(failure.to_string()),
            }
        }
    }
    if !failures.is_empty() {
        return Err(Failure::new(failures.join("\n")));
    }
    println!("ptxas took {assembled} files");
    Ok(())
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
