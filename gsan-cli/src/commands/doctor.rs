//! `gsan doctor`

use crate::args::DoctorArgs;
use crate::failure::{Result, exit};
use crate::output;
use cuda_lazy::Backend;
use cust::device::{Device, DeviceAttribute};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Shows what there is.
pub fn run(_: &DoctorArgs) -> Result<u8> {
    let mut text = String::new();
    line(
        &mut text,
        "gsan",
        &format!(
            "{}, {}-{}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS
        ),
    );
    line(&mut text, "runtime PTX", &runtime());
    driver(&mut text);
    simulator(&mut text);
    toolchain(&mut text);
    output::print(&text)?;
    Ok(exit::CLEAN)
}

fn line(text: &mut String, what: &str, found: &str) {
    let _ = writeln!(
        text,
        "{0}{what:<22}{0:#} {found}",
        anstyle::Style::new().bold()
    );
}

fn runtime() -> String {
    match gsan_ptx::parse(crate::ptx::RUNTIME) {
        Ok(module) => {
            let (major, minor) = module.version.unwrap_or_default();
            format!(
                "built in; PTX {major}.{minor}, {}, layout {}",
                module.target.first().unwrap_or(&"no target"),
                gsan_device::layout::LAYOUT_VERSION
            )
        }
        Err(e) => format!(
            "damaged, line {}: {}; rebuild it with `cargo xtask ptx`",
            e.line, e.message
        ),
    }
}

/// The installed driver and its GPUs. Asked for as `--device auto` would.
fn driver(text: &mut String) {
    match cuda_lazy::backend() {
        Backend::Real { path, version } => {
            line(
                text,
                "driver",
                &format!("{path}, CUDA {}.{}", version / 1000, version % 1000 / 10),
            );
            gpus(text);
        }
        _ => {
            let why = cuda_lazy::why_not_real()
                .unwrap_or_else(|| "not looked for: GSAN_DEVICE says sim".into());
            line(
                text,
                "driver",
                &format!("none ({})", crate::ptx::one_line(&why)),
            );
            line(text, "GPU", "none; `--device auto` means the simulated GPU");
        }
    }
}

fn gpus(text: &mut String) {
    let count = match cust::init(cust::CudaFlags::empty()).and_then(|()| Device::num_devices()) {
        Ok(count) => count,
        Err(e) => return line(text, "GPU", &format!("the driver does not start: {e}")),
    };
    for number in 0..count {
        let what = describe_gpu(number).unwrap_or_else(|e| format!("cannot be used: {e}"));
        line(text, &format!("GPU {number}"), &what);
    }
}

fn describe_gpu(number: u32) -> cust::error::CudaResult<String> {
    let device = Device::get_device(number)?;
    let major = device.get_attribute(DeviceAttribute::ComputeCapabilityMajor)?;
    let minor = device.get_attribute(DeviceAttribute::ComputeCapabilityMinor)?;
    let sms = device.get_attribute(DeviceAttribute::MultiprocessorCount)?;
    let gib = device.total_memory()? as f64 / f64::from(1 << 30);
    Ok(format!(
        "{}, sm_{major}{minor}, {sms} SMs, {gib:.1} GiB",
        device.name()?
    ))
}

fn simulator(text: &mut String) {
    let c = gsan_sim::Config::default();
    line(
        text,
        "simulated GPU",
        &format!(
            "always there: {} SMs of {} blocks, {} GiB",
            c.sms,
            c.blocks_per_sm,
            c.memory_bytes >> 30
        ),
    );
}

/// What rebuilds the runtime and the example kernels; nobody else needs it.
fn toolchain(text: &mut String) {
    let rustc = ["/usr/bin/rustc", "rustc"].into_iter().find_map(|program| {
        let version = first_line(program, &["--version"])?;
        let sysroot = first_line(program, &["--print", "sysroot"])?;
        let has_source = Path::new(&sysroot)
            .join("lib/rustlib/src/rust/library/core")
            .is_dir();
        has_source.then(|| format!("{version} ({program}, with library source)"))
    });
    let missing = || {
        "none with the library source; `cargo xtask setup-device` installs one (only to rebuild PTX)".to_string()
    };
    line(text, "device tool-chain", &rustc.unwrap_or_else(missing));
    for tool in ["ptxas", "nvcc"] {
        let found = find(tool).map(|path| {
            let release = Command::new(&path)
                .arg("--version")
                .stdin(Stdio::null())
                .output()
                .ok();
            let version = release.and_then(|o| {
                let said = String::from_utf8_lossy(&o.stdout).into_owned();
                said.lines()
                    .find(|l| l.contains("release"))
                    .map(str::to_string)
            });
            format!(
                "{} ({})",
                path.display(),
                version.as_deref().unwrap_or("version not known")
            )
        });
        line(
            text,
            tool,
            &found.unwrap_or_else(|| "not found (only tests and rebuilds use it)".into()),
        );
    }
}

fn first_line(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or("").to_string())
}

/// In `PATH` and where CUDA puts it.
fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("CUDA_HOME").map(|h| Path::new(&h).join("bin"));
    let usual = [
        "/usr/local/cuda/bin",
        "/opt/cuda/bin",
        "/opt/cu130/nvidia/cu13/bin",
    ]
    .map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(home)
        .chain(usual)
        .map(|d| d.join(tool))
        .find(|p| p.is_file())
}
