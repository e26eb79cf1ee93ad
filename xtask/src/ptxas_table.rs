//! `cargo xtask ptxas --corpus`: the corpus of compilers' PTX, as it is, and instrumented and linked with the runtime, through ptxas and
//! nvlink for every target that a file allows, with the registers of both.

use crate::parallel;
use crate::process::{self, Failure, Result, capture, cargo, files_in, root, target_dir};
use crate::ptxas;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Files that ptxas refuses before anybody touches them, and what it says.
const REFUSED: [(&str, &str); 2] = [
    ("aranges", "Parsing error"),
    ("clang/classic_atomics", "__usAtomicCAS"),
];

/// What ptxas says of a module: the most that one of the user's kernels takes.
#[derive(Clone, Copy, Default)]
struct Costs {
    registers: u32,
    spills: u32,
    stack: u32,
}

/// How much of the corpus.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it, where it is there: minutes.
    Whole,
    /// The files that are checked in.
    Selection,
}

/// Assembles the corpus, prints the table, and writes it to `out`.
pub fn run(extent: Extent, out: Option<&Path>) -> Result {
    let ptxas =
        ptxas::find().ok_or_else(|| Failure::new("no ptxas: `cargo xtask ptxas --fetch`"))?;
    let nvlink = ptxas.with_file_name("nvlink");
    if !nvlink.is_file() {
        let message = format!(
            "no nvlink beside {}: `cargo xtask ptxas --fetch` gets both",
            ptxas.display()
        );
        return Err(Failure::new(message));
    }
    let instrument = [
        "--quiet",
        "--package",
        "gsan-ptx",
        "--example",
        "instrument_file",
    ];
    process::run(cargo().arg("build").args(instrument))?;
    let (files, what) = corpus(extent);
    eprintln!("    {} files: {what}", files.len());
    let started = Instant::now();
    let tools = Tools {
        ptxas: &ptxas,
        nvlink: &nvlink,
        instrument: &target_dir().join("debug/examples/instrument_file"),
        scratch: &target_dir().join("instrumented/corpus"),
        runtimes: Mutex::default(),
    };
    let all = tools.check_all(&files);
    let sum = |of: fn(&Checked) -> usize| all.iter().map(of).sum::<usize>();
    let assembled = sum(|c| c.grown.len());
    let refused = sum(|c| c.refused);
    let mut grown: Vec<i64> = all.iter().flat_map(|c| c.grown.iter().copied()).collect();
    grown.sort_unstable();
    let median = grown.get(grown.len() / 2).copied().unwrap_or(0);
    let most = grown.last().copied().unwrap_or(0);
    let rows: String = all.iter().map(|c| c.rows.as_str()).collect();
    let version = capture(Command::new(&ptxas).arg("--version"))?;
    let version = version
        .lines()
        .find(|l| l.contains("release"))
        .unwrap_or("")
        .trim()
        .to_string();
    let table = format!(
        "# Registers, before and after\n\n\
         `cargo xtask ptxas --corpus`, {version}; {what}. Each file is assembled for every target among sm_80, sm_90a and\n\
         sm_100a that its own `.target` allows: as it is, and instrumented with the runtime beside it: each text for itself (`-c`), the runtime's with\n\
         as many registers as the blocks of the file's kernels leave (64 where one doesn't say how large they are), linked by nvlink; under limits of time and\n\
         memory. Figures are the largest of the file's kernels; spills are bytes of stores and loads together, linked those of the kernels alone; the stack is\n\
         that of the deepest calls.\n\n\
         {assembled} assemblies of {} files; registers grow by {median} in the median, by {most} at most.\n\n\
         | file | target | registers | | spills | stack |\n|---|---|---|---|---|---|\n{rows}",
        files.len(),
    );
    println!(
        "{table}\n{assembled} assemblies of {what} in {:.0} s, {refused} that ptxas refuses as they are",
        started.elapsed().as_secs_f64()
    );
    if let Some(out) = out {
        process::write(out, &table)?;
    }
    let failures: Vec<&str> = all
        .iter()
        .flat_map(|c| c.failures.iter().map(String::as_str))
        .collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(failures.join("\n")))
    }
}

/// What became of one file.
#[derive(Default)]
struct Checked {
    rows: String,
    failures: Vec<String>,
    /// By how many registers, for each target.
    grown: Vec<i64>,
    /// Targets for which ptxas refuses the file before anybody touches it.
    refused: usize,
}

struct Tools<'a> {
    ptxas: &'a Path,
    nvlink: &'a Path,
    instrument: &'a Path,
    scratch: &'a Path,
    /// What has been compiled of the runtime: many files need the same of it.
    runtimes: Mutex<HashMap<(String, String), Compiled>>,
}

/// An object, once somebody has made it.
type Compiled = Arc<OnceLock<Result<PathBuf>>>;

impl Tools<'_> {
    fn check_all(&self, files: &[PathBuf]) -> Vec<Checked> {
        parallel::map(files, |file| {
            let mut checked = Checked::default();
            if let Err(failure) = self.check(file, &mut checked) {
                checked
                    .failures
                    .push(format!("{}: {failure}", short_name(file)));
            }
            checked
        })
    }

    fn check(&self, file: &Path, into: &mut Checked) -> Result {
        let name = short_name(file);
        // Triton 3.9 writes the version of an assembler of its own; nothing in these files needs it.
        let text = process::read(file)?.replace(".version 9.4", ".version 9.0");
        let place = |what: &str| {
            let flat = name.replace('/', "-");
            self.scratch.join(format!("{flat}.{what}.ptx"))
        };
        let (before, after, beside) = (place("before"), place("after"), place("runtime"));
        process::write(&before, &text)?;
        let mut instrument = Command::new(self.instrument);
        instrument.arg(root().join("gsan-device/ptx/runtime_wide.ptx"));
        instrument.args([&before, &after]).arg("apart").arg(&beside);
        let registers = capture(&mut instrument)?;
        for arch in targets(&text) {
            let plain = self.assemble(&before, arch);
            let refused = REFUSED.iter().find(|(part, _)| name.contains(part));
            let plain = match (plain, refused) {
                (Ok(plain), None) => plain,
                (Err(message), Some((_, why))) if message.to_string().contains(why) => {
                    into.refused += 1;
                    let _ = writeln!(
                        into.rows,
                        "| {name} | {arch} | refused as it is: {why} | | | |"
                    );
                    continue;
                }
                (Ok(_), Some(_)) => {
                    let message =
                        format!("{name} assembles: take it off the list of refused files");
                    into.failures.push(message);
                    continue;
                }
                (Err(message), _) => {
                    into.failures
                        .push(format!("{name} for {arch}, as it is: {message}"));
                    continue;
                }
            };
            let hooked = match self.linked(&after, &beside, arch, registers.trim()) {
                Ok(hooked) => hooked,
                Err(message) => {
                    into.failures
                        .push(format!("{name} for {arch}, instrumented: {message}"));
                    continue;
                }
            };
            let grown = i64::from(hooked.registers) - i64::from(plain.registers);
            into.grown.push(grown);
            let _ = writeln!(
                into.rows,
                "| {name} | {arch} | {} → {} | {grown:+} | {} → {} | {} → {} |",
                plain.registers,
                hooked.registers,
                plain.spills,
                hooked.spills,
                plain.stack,
                hooked.stack,
            );
        }
        Ok(())
    }
}

impl Tools<'_> {
    /// A whole program.
    fn assemble(&self, file: &Path, arch: &str) -> Result<Costs> {
        let arch = format!("-arch={arch}");
        let arguments = ["-v", &arch, "-o", "/dev/null"].map(OsStr::new);
        let said = limited(self.ptxas, &[&arguments[..], &[file.as_os_str()]].concat())?;
        Ok(costs(&said))
    }

    /// Compiles a part of a program.
    fn compile(&self, file: &Path, arch: &str, more: &[&str]) -> Result<(PathBuf, String)> {
        let object = file.with_extension(format!("{arch}.o"));
        let arch = format!("-arch={arch}");
        let mut arguments = ["-c", "-v", &arch, "-o"].map(OsStr::new).to_vec();
        arguments.extend([object.as_os_str(), file.as_os_str()]);
        arguments.extend(more.iter().map(OsStr::new));
        let said = limited(self.ptxas, &arguments)?;
        Ok((object, said))
    }

    /// An instrumented file with the runtime.
    fn linked(&self, after: &Path, beside: &Path, arch: &str, registers: &str) -> Result<Costs> {
        let (object, said) = self.compile(after, arch, &[])?;
        let key = (
            process::read(beside)?,
            format!("{arch}, {registers} registers"),
        );
        let runtime = {
            let mut known = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(key).or_default().clone()
        };
        let bound = ["-maxrregcount", registers];
        let runtime = runtime.get_or_init(|| Ok(self.compile(beside, arch, &bound)?.0));
        let runtime = runtime.as_ref().map_err(|e| Failure::new(e.to_string()))?;
        let arch = format!("-arch={arch}");
        let arguments = ["-v", &arch, "-o", "/dev/null"].map(OsStr::new);
        let objects = [object.as_os_str(), runtime.as_os_str()];
        let linked = limited(self.nvlink, &[&arguments[..], &objects].concat())?;
        Ok(Costs {
            spills: costs(&said).spills,
            ..linked_costs(&linked)
        })
    }
}

/// Where the whole corpus is, if it is there: beside the repository.
pub fn whole_corpus() -> Option<PathBuf> {
    Some(root().join("../shared/corpus")).filter(|folder| folder.is_dir())
}

/// The whole corpus where it is wanted and there, else the selection that is checked in.
fn corpus(extent: Extent) -> (Vec<PathBuf>, &'static str) {
    if let Some(whole) = whole_corpus().filter(|_| extent == Extent::Whole) {
        let mut files = Vec::new();
        for folder in ["clang", "cuda", "rejected", "rust", "triton", "triton39"] {
            files.extend(files_in(&whole.join(folder), "ptx"));
        }
        return (files, "the whole corpus");
    }
    let selection = root().join("gsan-ptx/tests/data/corpus");
    (
        files_in(&selection, "ptx"),
        "the selection in gsan-ptx/tests/data/corpus",
    )
}

/// `cuda/spinlock.sm90a.loc`; the selection's files are called `cuda_spinlock…`.
fn short_name(file: &Path) -> String {
    let stem = file
        .file_stem()
        .map(|s| s.to_string_lossy().to_string())
        .unwrap_or_default();
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .map(|s| s.to_string_lossy().to_string())
        .unwrap_or_default();
    match folder.as_str() {
        "corpus" => stem.replacen('_', "/", 1),
        folder => format!("{folder}/{stem}"),
    }
}

/// Those of the three that the module's own target allows: `sm_90a` and the like run nowhere else.
pub fn targets(text: &str) -> Vec<&'static str> {
    let target = text
        .lines()
        .find_map(|l| l.trim().strip_prefix(".target "))
        .and_then(|l| l.split([',', ' ']).find(|w| w.starts_with("sm_")))
        .unwrap_or("sm_80");
    let only = |arch| vec![arch];
    match target {
        "sm_90a" => only("sm_90a"),
        "sm_100a" => only("sm_100a"),
        _ => {
            let digits: String = target.chars().filter(char::is_ascii_digit).collect();
            let oldest: u32 = digits.parse().unwrap_or(80);
            [(80, "sm_80"), (90, "sm_90a"), (100, "sm_100a")]
                .into_iter()
                .filter(|(n, _)| *n >= oldest)
                .map(|(_, arch)| arch)
                .collect()
        }
    }
}

/// Runs one of NVIDIA's programs under limits; what it says.
fn limited(program: &Path, arguments: &[&OsStr]) -> Result<String> {
    let mut limited = Command::new("bash");
    limited.args(["-c", ptxas::LIMITS, "bash"]);
    let done = limited.arg(program).args(arguments).output();
    let done = done.map_err(|e| Failure::new(format!("bash can't be started: {e}")))?;
    // Figures and errors come on either.
    let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    if done.status.success() {
        return Ok(text.into_owned());
    }
    let lines: Vec<&str> = text.lines().take(8).collect();
    let message = format!("{}: {}", done.status, lines.join("\n"));
    Err(Failure::new(message))
}

/// Reads what `-v` says: blocks that begin with the kernel's name. The functions that a kernel calls (the runtime's among them)
/// follow within its block, with spills of their own; registers and stack of the whole are in the kernel's line.
fn costs(text: &str) -> Costs {
    let mut most = Costs::default();
    let mut kernel: Option<Costs> = None;
    let number = |part: &str| -> u32 {
        let digits: String = part.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    for line in text.lines() {
        if line.contains("Compiling entry function") {
            most = most.max(kernel.take());
            // The runtime has kernels of its own.
            kernel = Some(Costs::default()).filter(|_| !line.contains("'__gsan_"));
            continue;
        }
        let Some(costs) = &mut kernel else { continue };
        if line.contains("bytes stack frame") {
            let parts: Vec<u32> = line.split(',').map(number).collect();
            if let [stack, stores, loads] = parts[..] {
                costs.stack = costs.stack.max(stack);
                costs.spills += stores + loads;
            }
        } else if let Some((_, rest)) = line.split_once("Used ") {
            costs.registers = rest.split(' ').next().map_or(0, number);
            let stack = line
                .split(',')
                .find(|part| part.contains("cumulative stack size"));
            costs.stack = costs.stack.max(stack.map_or(0, number));
        }
    }
    most.max(kernel)
}

/// Reads what a linker's `-v` says of the kernels: registers and stack with all that they call.
fn linked_costs(text: &str) -> Costs {
    let kernels = text.split("Function properties for '").skip(1);
    let users = kernels.filter(|rest| !rest.starts_with("__gsan_"));
    let number = |rest: &str, unit: &str| -> u32 {
        let before = rest.split(unit).next().unwrap_or_default();
        let word = before.rsplit(' ').next().unwrap_or_default();
        word.parse().unwrap_or(0)
    };
    users.fold(Costs::default(), |most, rest| {
        most.max(Some(Costs {
            registers: number(rest, " registers"),
            stack: number(rest, " stack"),
            spills: 0,
        }))
    })
}

impl Costs {
    /// The larger of each figure.
    fn max(self, other: Option<Costs>) -> Costs {
        let other = other.unwrap_or_default();
        Costs {
            registers: self.registers.max(other.registers),
            spills: self.spills.max(other.spills),
            stack: self.stack.max(other.stack),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_functions_count_with_it_and_the_runtimes_kernels_do_not() {
        let text = "
ptxas info    : 88 bytes gmem
ptxas info    : Compiling entry function '__gsan_touch' for 'sm_90a'
ptxas info    : Function properties for __gsan_touch
    900 bytes stack frame, 900 bytes spill stores, 900 bytes spill loads
ptxas info    : Used 98 registers, used 1 barriers, 900 bytes cumulative stack size
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    24 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 128 registers, used 2 barriers, 72 bytes cumulative stack size
ptxas info    : Function properties for __gsan_access
    48 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Function properties for __gsan_exit
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'small' for 'sm_90a'
ptxas info    : Function properties for small
    8 bytes stack frame, 40 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 130 registers, used 0 barriers
";
        let costs = costs(text);
        assert_eq!((costs.registers, costs.spills, costs.stack), (130, 48, 72));
        assert_eq!(super::costs("").registers, 0);
    }

    #[test]
    fn a_linker_says_what_kernels_take_with_all_that_they_call() {
        let text = "
nvlink info    : 104 bytes gmem
nvlink info    : Function properties for 'k':
nvlink info    : used 64 registers, used 1 barriers, 648 stack, 1088 bytes smem, 568 bytes cmem[0], 0 bytes lmem
nvlink info    : Function properties for 'second':
nvlink info    : used 40 registers, used 1 barriers, 700 stack, 0 bytes smem, 560 bytes cmem[0], 0 bytes lmem
nvlink info    : Function properties for '__gsan_touch':
nvlink info    : used 126 registers, used 1 barriers, 900 stack, 0 bytes smem, 560 bytes cmem[0], 0 bytes lmem
";
        let costs = linked_costs(text);
        assert_eq!((costs.registers, costs.stack), (64, 700));
        assert_eq!(linked_costs("").registers, 0);
    }
}
