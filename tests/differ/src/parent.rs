//! Starts children until all kernels have run.

use crate::kernel::{Kernel, List};
use crate::results::{self, Outcome, Results};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What no kernel of the list takes, the loading of its module included.
const LONGEST: Duration = Duration::from_secs(20);
/// What a child prints before a kernel's own output.
pub const MARK: &str = "@@ kernel ";

/// Runs the kernels (whose numbers are in order).
pub fn run(kernels: &[Kernel], list: List) -> Result<Results> {
    let folder = std::env::temp_dir().join(format!("gsan-differ-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    let done = run_in(kernels, list, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn run_in(kernels: &[Kernel], list: List, folder: &Path) -> Result<Results> {
    let mut results = Results::default();
    let mut next = 0;
    let mut attempt = 0;
    while let Some(first) = kernels.get(next) {
        // A run of consecutive numbers.
        let mut end = next + 1;
        while end < kernels.len() && kernels[end].number == kernels[end - 1].number + 1 {
            end += 1;
        }
        let (out, print) = (folder.join("results"), folder.join("printed"));
        let _ = std::fs::remove_file(&out);
        let last = kernels[end - 1].number;
        let ended = start(list, &out, &print, [first.number, last])?;
        let text = std::fs::read_to_string(&out).unwrap_or_default();
        let mut part = results::read(&text)?;
        printed(&mut part.kernels, &print);
        if part.device.is_empty() && part.kernels.is_empty() {
            attempt += 1;
            if attempt > 1 {
                bail!("the device cannot be used: see the messages above");
            }
            continue;
        }
        results.device = part.device;
        next += part.kernels.len();
        results.kernels.extend(part.kernels);
        if !ended && next < end {
            // The kernel behind the last that has results ended the child.
            results.kernels.push(Outcome {
                name: kernels[next].name.clone(),
                end: "timeout".to_string(),
                ..Outcome::default()
            });
            next += 1;
        }
    }
    Ok(results)
}

/// Whether the child came to an end by itself.
fn start(list: List, out: &Path, print: &PathBuf, numbers: [usize; 2]) -> Result<bool> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.args(["child", list.word()]).arg(out);
    command.args(numbers.map(|n| n.to_string()));
    if list == List::Differ {
        // What is compared is what GPUs do, where PTX says nothing, too.
        command.env("GSAN_SIM_EXITED_WARPS", "arrive");
    }
    command.stdin(Stdio::null()).stdout(File::create(print)?);
    let mut child = command.spawn()?;
    let size = || std::fs::metadata(out).map_or(0, |m| m.len());
    let (mut seen, mut since) = (size(), Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().is_some_and(|code| code <= 1));
        }
        if size() != seen {
            (seen, since) = (size(), Instant::now());
        }
        if since.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Gives each kernel what it printed.
fn printed(kernels: &mut [Outcome], print: &Path) {
    let bytes = std::fs::read(print).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    for part in text.split(MARK).skip(1) {
        if let Some((name, rest)) = part.split_once('\n')
            && let Some(kernel) = kernels.iter_mut().find(|k| k.name == name)
        {
            kernel.print = rest.to_string();
        }
    }
}
