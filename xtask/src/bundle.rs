//! `cargo xtask gpu-bundle`: a folder to be copied to a machine with a GPU and run there. Nothing has to be installed on
//! it but NVIDIA's driver.

use crate::process::{self, Context, Failure, Result, cargo, copy, files_in, root, target_dir};
use std::fs;
use std::path::{Path, PathBuf};

const MAX_BYTES: u64 = 60 << 20;

/// Makes `gpu-bundle/`.
pub fn make() -> Result {
    let bundle = root().join("gpu-bundle");
    if bundle.exists() {
        fs::remove_dir_all(&bundle).about(bundle.display())?;
    }
    process::run(cargo().args([
        "build",
        "--release",
        "--quiet",
        "--package",
        "gsan-cli",
        "--bin",
        "gsan",
    ]))?;
    copy_program("gsan", &bundle)?;
    process::run(cargo().args([
        "build",
        "--release",
        "--quiet",
        "--package",
        "gsan-bench",
        "--bin",
        "gsan-bench",
    ]))?;
    copy_program("gsan-bench", &bundle)?;
    for file in inputs() {
        let name = file.strip_prefix(root()).unwrap_or(&file);
        copy(&file, &bundle.join(name))?;
    }
    let script = bundle.join("run.sh");
    process::write(&script, include_str!("bundle_run.sh"))?;
    set_executable(&script)?;
    let bytes = size_of(&bundle)?;
    if bytes > MAX_BYTES {
        return Err(Failure::new(format!(
            "gpu-bundle has {} MiB, more than {}",
            bytes >> 20,
            MAX_BYTES >> 20
        )));
    }
    println!(
        "gpu-bundle/: {:.1} MiB; on a machine with a GPU: gpu-bundle/run.sh",
        bytes as f64 / (1 << 20) as f64
    );
    Ok(())
}

/// Scenarios, PTX, and the sources that reports show, all at their places below the root.
fn inputs() -> Vec<PathBuf> {
    let tests = root().join("tests");
    let mut inputs = vec![tests.join("litmus.sh")];
    for folder in ["scenarios", "scenarios/litmus", "scenarios/parity"] {
        let on_a_gpu = files_in(&tests.join(folder), "toml").into_iter();
        inputs.extend(on_a_gpu.filter(|file| !is_for_the_simulator(file)));
    }
    for folder in [
        "kernels/rust/ptx",
        "kernels/cuda/ptx",
        "kernels/separate/ptx",
        "kernels/ptx",
        "real/ptx",
    ] {
        inputs.extend(files_in(&tests.join(folder), "ptx"));
    }
    inputs.extend(files_in(&tests.join("kernels/cuda"), "cu"));
    inputs.extend(files_in(&tests.join("kernels/separate"), "cu"));
    let crates = fs::read_dir(tests.join("kernels/rust"))
        .into_iter()
        .flatten()
        .flatten();
    inputs.extend(
        crates
            .map(|e| e.path().join("src/lib.rs"))
            .filter(|p| p.is_file()),
    );
    inputs
}

/// Multicast memory is never asked of a GPU: it can put one that is shared with others out of service. Byte masks need a later GPU
/// than an H200.
fn is_for_the_simulator(scenario: &Path) -> bool {
    let name = scenario.file_name().map(|n| n.to_string_lossy());
    name.is_some_and(|n| n.starts_with("multimem_") || n.starts_with("bulk_masked_"))
}

/// Without the debugging data, which is larger than the program.
fn copy_program(name: &str, bundle: &Path) -> Result {
    let from = target_dir().join("release").join(name);
    let to = bundle.join(name);
    copy(&from, &to)?;
    // Not everybody has binutils; then the bundle is larger.
    if let Err(failure) = process::run(std::process::Command::new("strip").arg(&to)) {
        eprintln!("xtask: not stripped: {failure}");
    }
    set_executable(&to)
}

#[cfg(unix)]
fn set_executable(path: &Path) -> Result {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).about(path.display())
}

#[cfg(not(unix))]
fn set_executable(_: &Path) -> Result {
    Ok(())
}

fn size_of(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).about(folder.display())? {
        let entry = entry.about(folder.display())?;
        let about = entry.metadata().about(entry.path().display())?;
        bytes += if about.is_dir() {
            size_of(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(bytes)
}
