//! The compiler for device code: rustc with the library's source, so that `core` can be built for nvptx64.
//!
//! The workspace itself needs stable Rust only. Device code needs unstable features and `-Zbuild-std`: either
//! the distribution's rustc (`RUSTC_BOOTSTRAP=1`; Debian packages its library source) or rustup's nightly.

use crate::process::{self, Failure, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

const RUSTUP_WAY: &str = "\
    rustup toolchain install nightly --profile minimal
    rustup component add rust-src --toolchain nightly";

/// A compiler that can build device code.
#[derive(Debug)]
pub struct DeviceToolchain {
    pub rustc: PathBuf,
    pub cargo: PathBuf,
    /// `rustc 1.96.0 (…), LLVM 22.1.8`
    pub version: String,
    /// The source of `core`.
    pub library: PathBuf,
}

impl DeviceToolchain {
    /// Looks for one: `GSAN_DEVICE_RUSTC` and `GSAN_DEVICE_CARGO`, then the distribution's, then rustup's nightly.
    pub fn find() -> Option<DeviceToolchain> {
        let chosen =
            std::env::var_os("GSAN_DEVICE_RUSTC").zip(std::env::var_os("GSAN_DEVICE_CARGO"));
        if let Some((rustc, cargo)) = chosen {
            return DeviceToolchain::at(rustc.into(), cargo.into());
        }
        DeviceToolchain::at("/usr/bin/rustc".into(), "/usr/bin/cargo".into()).or_else(|| {
            let which = |tool| {
                let mut rustup = Command::new("rustup");
                let path = process::capture(rustup.args(["which", "--toolchain", "nightly", tool]))
                    .ok()?;
                Some(PathBuf::from(path.trim()))
            };
            DeviceToolchain::at(which("rustc")?, which("cargo")?)
        })
    }

    /// [`DeviceToolchain::find`], or what to do.
    pub fn require() -> Result<DeviceToolchain> {
        DeviceToolchain::find().ok_or_else(|| {
            Failure::new(format!(
                "no compiler for device code here: `cargo xtask setup-device` installs it on Debian; with rustup:\n{RUSTUP_WAY}"
            ))
        })
    }

    fn at(rustc: PathBuf, cargo: PathBuf) -> Option<DeviceToolchain> {
        if !cargo.is_file() || !rustc.is_file() {
            return None;
        }
        let verbose = process::capture(Command::new(&rustc).arg("-vV")).ok()?;
        let first = verbose.lines().next()?;
        let llvm = verbose
            .lines()
            .find_map(|l| l.strip_prefix("LLVM version: "))
            .unwrap_or("unknown");
        let sysroot = process::capture(Command::new(&rustc).args(["--print", "sysroot"])).ok()?;
        let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
        // Distributions have compilers that are too old (no `asm!` for nvptx64, other feature names).
        let recent = minor_version(first).is_some_and(|minor| minor >= 94);
        let version = format!("{first}, LLVM {llvm}");
        (recent && library.join("core/Cargo.toml").is_file()).then_some(DeviceToolchain {
            rustc,
            cargo,
            version,
            library,
        })
    }

    /// Its cargo, with nothing inherited from the cargo (and rustup) that runs this program.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(&self.cargo);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO") && name != "CARGO_HOME"
                || name.starts_with("RUST") && name != "RUSTUP_HOME"
            {
                command.env_remove(&*name);
            }
        }
        command
            .env("RUSTC", &self.rustc)
            .env("RUSTC_BOOTSTRAP", "1");
        if let Some(jobs) = std::env::var_os("CARGO_BUILD_JOBS") {
            command.env("CARGO_BUILD_JOBS", jobs);
        }
        command
    }
}

/// `rustc 1.96.0 (…)` → 96.
fn minor_version(line: &str) -> Option<u32> {
    line.split_whitespace()
        .nth(1)?
        .split('.')
        .nth(1)?
        .parse()
        .ok()
}

/// `cargo xtask setup-device`
pub fn setup() -> Result {
    if let Some(found) = DeviceToolchain::find() {
        println!(
            "already here: {} ({})",
            found.version,
            found.rustc.display()
        );
        return Ok(());
    }
    let debian = Path::new("/etc/debian_version").exists();
    let root = process::capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !(debian && root) {
        let packages = DEBIAN_PACKAGES.join(" ");
        println!(
            "Device code is compiled by rustc with its library source. Either, as root on Debian:\n    \
             apt-get install --no-install-recommends {packages}\nor with rustup, anywhere:\n{RUSTUP_WAY}"
        );
        return Ok(());
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-o", "Acquire::Retries=3", "-qq"]);
        apt
    };
    process::run(apt().arg("update"))?;
    process::run(
        apt()
            .args(["install", "-y", "--no-install-recommends"])
            .args(DEBIAN_PACKAGES),
    )?;
    let found = DeviceToolchain::require()?;
    println!("installed: {} ({})", found.version, found.rustc.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_line_is_understood() {
        assert_eq!(
            super::minor_version("rustc 1.96.0 (ac68faa20 2026-05-25)"),
            Some(96)
        );
        assert_eq!(
            super::minor_version("rustc 1.99.0-nightly (0 2026-09-01)"),
            Some(99)
        );
        assert_eq!(super::minor_version("gcc"), None);
    }
}
