//! `cargo xtask ptx`: device code in Rust → the PTX that is checked in.
//!
//! Checked-in PTX lets everyone build and test with stable Rust alone. It must be what the sources say: with the
//! compiler that is recorded beside it, a rebuild has to give the same bytes.

use crate::process::{self, Context, Failure, Result, root, target_dir};
use crate::toolchain::DeviceToolchain;
use std::fs;
use std::path::{Path, PathBuf};

const TARGET: &str = "nvptx64-nvidia-cuda";

/// `sm_70` is the oldest with PTX's memory model, and any later `.target` may include it; PTX 6.3 has `nanosleep`.
/// rustc's jump threading duplicates barriers, which is wrong where threads of one block would then wait at
/// different ones.
const RUSTFLAGS: &str =
    "-Ctarget-cpu=sm_70 -Ctarget-feature=+ptx63 -Zmir-enable-passes=-JumpThreading";

/// A crate that becomes one PTX file.
struct Unit {
    /// What `--only` calls it.
    name: String,
    /// The workspace that it is built in.
    workspace: PathBuf,
    /// Its package.
    package: String,
    /// Which of its features: kernels that link the detector in by hand have a build without it, the runtime one per
    /// cell format.
    features: &'static [&'static str],
    /// The file, from the root.
    output: PathBuf,
}

/// All of them.
fn units() -> Result<Vec<Unit>> {
    let runtime = root().join("gsan-device/runtime");
    let mut units = Vec::new();
    if runtime.join("Cargo.toml").is_file() {
        let formats: [(&str, &'static [&'static str]); 2] =
            [("wide", &[]), ("reference", &["--features", "reference"])];
        for (format, features) in formats {
            units.push(Unit {
                name: format!("runtime_{format}"),
                package: package_name(&runtime.join("Cargo.toml"))?,
                features,
                workspace: runtime.clone(),
                output: format!("gsan-device/ptx/runtime_{format}.ptx").into(),
            });
        }
    }
    let kernels = root().join("tests/kernels/rust");
    let mut folders: Vec<PathBuf> = fs::read_dir(&kernels)
        .about(kernels.display())?
        .flatten()
        .map(|e| e.path())
        .collect();
    folders.sort();
    for folder in folders {
        let manifest = folder.join("Cargo.toml");
        let Some(name) = folder.file_name().and_then(|n| n.to_str()) else {
            continue;
        };
        // `support` is what the kernels share; it has none of its own.
        if !manifest.is_file() || name == "support" {
            continue;
        }
        let ptx = Path::new("tests/kernels/rust/ptx");
        let package = package_name(&manifest)?;
        if process::read(&manifest)?.contains("\nsanitize = ") {
            units.push(Unit {
                name: format!("{name}_plain"),
                workspace: kernels.clone(),
                package: package.clone(),
                features: &["--no-default-features"],
                output: ptx.join(format!("{name}_plain.ptx")),
            });
        }
        units.push(Unit {
            name: name.to_string(),
            workspace: kernels.clone(),
            package,
            features: &[],
            output: ptx.join(format!("{name}.ptx")),
        });
    }
    Ok(units)
}

fn package_name(manifest: &Path) -> Result<String> {
    process::read(manifest)?
        .lines()
        .find_map(|line| {
            line.strip_prefix("name = \"")?
                .strip_suffix('"')
                .map(str::to_string)
        })
        .ok_or_else(|| Failure::new(format!("{}: no line `name = \"…\"`", manifest.display())))
}

/// `cargo xtask ptx [--only NAME]`
pub fn rebuild(only: Option<&str>) -> Result {
    let toolchain = DeviceToolchain::require()?;
    let mut units = units()?;
    if let Some(only) = only {
        let names: Vec<String> = units.iter().map(|u| u.name.clone()).collect();
        units.retain(|u| {
            u.name == only || u.name.starts_with(&format!("{only}_")) && only == "runtime"
        });
        if units.is_empty() {
            return Err(Failure::new(format!(
                "nothing is called `{only}`; there is: {}",
                names.join(", ")
            )));
        }
    }
    for unit in &units {
        let text = compile(&toolchain, unit, false)?;
        process::write(&root().join(&unit.output), text)?;
        println!("wrote {}", unit.output.display());
        process::write(&record_path(unit), record(&toolchain))?;
    }
    Ok(())
}

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
pub enum Checked {
    /// The same compiler, the same bytes.
    Same,
    /// Another compiler: this folder has the tree of rebuilt files (`gsan-device/ptx/…`), and they are to be tested.
    Rebuilt(PathBuf),
}

/// `cargo xtask ptx --check`
pub fn check() -> Result<Checked> {
    let toolchain = DeviceToolchain::require()?;
    let folder = target_dir().join("ptx-check");
    if folder.exists() {
        fs::remove_dir_all(&folder).about(folder.display())?;
    }
    let mut wrong = Vec::new();
    let mut foreign = 0;
    for unit in units()? {
        let text = compile(&toolchain, &unit, true)?;
        process::write(&folder.join(&unit.output), &text)?;
        let recorded = process::read(&record_path(&unit)).unwrap_or_default();
        if recorded != record(&toolchain) {
            foreign += 1;
        } else if process::read(&root().join(&unit.output)).ok().as_deref() != Some(&text) {
            wrong.push(unit.output.display().to_string());
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::new(format!(
            "not what the sources give with the recorded compiler: {}\nrun `cargo xtask ptx` and commit; the rebuilt ones are under {}",
            wrong.join(", "),
            folder.display()
        )));
    }
    if foreign > 0 {
        println!(
            "{foreign} PTX files were made by another compiler than {}; rebuilt under {}",
            toolchain.version,
            folder.display()
        );
        return Ok(Checked::Rebuilt(folder));
    }
    println!(
        "checked-in PTX is what {} makes of the sources",
        toolchain.version
    );
    Ok(Checked::Same)
}

fn record_path(unit: &Unit) -> PathBuf {
    root().join(&unit.output).with_file_name("TOOLCHAIN")
}

fn record(toolchain: &DeviceToolchain) -> String {
    format!(
        "{}\nRUSTC_BOOTSTRAP=1 RUSTFLAGS=\"{RUSTFLAGS}\" cargo rustc --release -Zbuild-std=core --target {TARGET} -- --emit=asm\n",
        toolchain.version
    )
}

/// The linked PTX of one crate; `locked` leaves its `Cargo.lock` as it is.
fn compile(toolchain: &DeviceToolchain, unit: &Unit, locked: bool) -> Result<String> {
    // One folder per compiler: cargo leaves the products of several in one, with names that don't tell them apart.
    let version: String = toolchain
        .version
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let target = target_dir()
        .join("device")
        .join(version.trim_end_matches('-'));
    let mut cargo = toolchain.cargo();
    // No path of this machine gets into the PTX: sources are named from the repository's root.
    let flags = [
        RUSTFLAGS.split(' ').collect::<Vec<_>>().join("\u{1f}"),
        format!("--remap-path-prefix={}/=", root().display()),
        format!(
            "--remap-path-prefix={}=library",
            toolchain.library.display()
        ),
    ];
    cargo
        .current_dir(&unit.workspace)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CARGO_TARGET_DIR", &target)
        .args(["rustc", "--release", "-Zbuild-std=core", "--target", TARGET])
        .args(["--package", &unit.package, "--lib"]);
    if locked {
        cargo.arg("--locked");
    }
    cargo.args(unit.features);
    // A file of its own per unit: where nothing has changed, cargo runs no compiler and the last one's is right.
    let file = target.join("ptx").join(format!("{}.s", unit.name));
    fs::create_dir_all(target.join("ptx")).about(target.display())?;
    eprintln!("    compiling {}", unit.name);
    // Captured: rustc warns for each crate that the target feature is unstable.
    process::capture(
        cargo
            .arg("--")
            .arg(format!("--emit=asm={}", file.display())),
    )?;
    let text = without_crate_hashes(&process::read(&file)?);
    let text = without_detector_lines(&text);
    if let Some(line) = text
        .lines()
        .find(|l| l.contains(&*root().to_string_lossy()))
    {
        return Err(Failure::new(format!(
            "{}: has a path of this machine in it: {}",
            unit.name,
            line.trim()
        )));
    }
    Ok(text)
}

/// Where the detector is linked into a kernel, its code counts as the line of the access that it checks; and a comment
/// more in the detector changes no kernel's PTX.
fn without_detector_lines(text: &str) -> String {
    let detector: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(".file"))
        .filter(|file| file.contains("\"gsan-device/"))
        .filter_map(|file| file.split_whitespace().next())
        .collect();
    let is_detectors = |line: &str| {
        let index = line
            .trim_start()
            .strip_prefix(".loc")
            .and_then(|l| l.split_whitespace().next());
        index.is_some_and(|i| detector.contains(&i))
    };
    text.split_inclusive('\n')
        .filter(|line| !is_detectors(line))
        .collect()
}

/// Mangled names hold a hash of each crate that depends on the folder in which it was built. No two crates here share
/// a name, so the names do without: `_RNvCsagmnAkPFeda_3foo3bar` becomes `_RNvCs_3foo3bar`.
fn without_crate_hashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_R") {
        // To the end of the symbol; `_R` may stand inside: `switch_$_table_$__RNv…`.
        let (head, tail) = rest.split_at(at);
        let length = tail.find(|c| !is_symbol(c)).unwrap_or(tail.len());
        let (symbol, after) = tail.split_at(length);
        out.push_str(head);
        push_without_hashes(&mut out, symbol);
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_symbol(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

fn push_without_hashes(out: &mut String, symbol: &str) {
    let mut rest = symbol;
    while let Some(at) = rest.find("Cs") {
        let (head, tail) = rest.split_at(at + 2);
        let hash = tail
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(tail.len());
        // Base 62, and long: anything else is a part of a name.
        let is_hash = hash >= 8 && tail[hash..].starts_with('_');
        out.push_str(head);
        rest = if is_hash { &tail[hash..] } else { tail };
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::{without_crate_hashes, without_detector_lines};

    #[test]
    fn lines_of_the_detector_go() {
        let files = "\t.file\t1 \"gsan-device/src/a.rs\"\n\t.file\t11 \"tests/k.rs\"";
        let text = format!("\t.loc\t11 5 1\n\t.loc\t1 7 2\n\tret;\n{files}");
        assert_eq!(
            without_detector_lines(&text),
            format!("\t.loc\t11 5 1\n\tret;\n{files}")
        );
        assert_eq!(without_detector_lines("ret;"), "ret;");
    }

    #[test]
    fn crate_hashes_go_and_nothing_else() {
        let text = "call.uni _RINvNtCsagmnAkPFeda_11gsan_device9reference4readNtCsbdBQHPAmLGS_12gsan_runtime, (%rd1);";
        let want = "call.uni _RINvNtCs_11gsan_device9reference4readNtCs_12gsan_runtime, (%rd1);";
        assert_eq!(without_crate_hashes(text), want);
        assert_eq!(
            without_crate_hashes("switch_$_table_$__RNvCsagmnAkPFeda_3foo[16]"),
            "switch_$_table_$__RNvCs_3foo[16]"
        );
        for same in [
            "",
            "_R",
            "mov.u32 CsagmnAkPFeda_x, 1;",
            "_RNv3CsIt_4x",
            "st [_Rest], Cs;",
        ] {
            assert_eq!(without_crate_hashes(same), same);
        }
    }
}
