//! The compilers' corpus on the simulator: one line of `corpus.txt` for each of its kernels, with the set-up that it runs with
//! and the end that it must come to.
//!
//! ```text
//! cuda/special.sm90a.loc special | special | fault: wrong use of a barrier
//! ```
//!
//! The set-up is the entry of that name in `kernels.toml` (it may be written for the kernel in another module) or in
//! `corpus.toml`. `ends` is the only other end than a named fault: the kernel has run through, and the driver has no complaint.

use crate::kernel::{self, Entry, Kernel, List};
use crate::parent;
use crate::results::Outcome;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;

/// Folders of the corpus; what others hold no compiler's output is made of.
const FOLDERS: [&str; 5] = ["clang", "cuda", "rust", "triton", "triton39"];

/// A line of the table.
struct Line {
    module: String,
    kernel: String,
    setup: String,
    /// A part of the fault's text; none: it runs through.
    fault: Option<String>,
}

fn table(folder: &Path) -> Result<Vec<Line>> {
    let path = folder.join("corpus.txt");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let lines = text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|l| line(l).with_context(|| format!("`{l}`")))
        .collect()
}

fn line(text: &str) -> Result<Line> {
    let fields: Vec<&str> = text.split(" | ").map(str::trim).collect();
    let [what, setup, end] = fields[..] else {
        bail!("`MODULE KERNEL | SET-UP | END` is expected");
    };
    let (module, kernel) = what.split_once(' ').context("no kernel")?;
    let fault = match end.strip_prefix("fault: ") {
        _ if end == "ends" => None,
        Some(fault) => Some(fault.to_string()),
        None => bail!("it ends with `ends` or `fault: …`"),
    };
    Ok(Line {
        module: module.to_string(),
        kernel: kernel.trim().to_string(),
        setup: setup.to_string(),
        fault,
    })
}

/// The table's kernels, ready to be launched, in its order.
pub fn kernels(folder: &Path) -> Result<Vec<Kernel>> {
    let mut setups = kernel::entries(&folder.join("kernels.toml"))?;
    setups.extend(kernel::entries(&folder.join("corpus.toml"))?);
    let lines = table(folder)?.into_iter().enumerate();
    lines
        .map(|(number, line)| {
            let fits = |e: &&Entry| e.name == line.setup && e.launch.kernel == line.kernel;
            let entry = setups.iter().find(fits);
            let entry =
                entry.with_context(|| format!("no set-up `{}` of {}", line.setup, line.kernel))?;
            Ok(Kernel {
                name: format!("{} ({})", line.kernel, line.module),
                number,
                ptx: kernel::text(folder, &line.module)?,
                launch: entry.launch.clone(),
            })
        })
        .collect()
}

/// Runs them; whether each came to its end, and, with the corpus at hand, whether it has the same kernels.
pub fn check(folder: &Path, corpus: Option<&Path>) -> Result<bool> {
    let lines = table(folder)?;
    let mut good = true;
    let mut complain = |what: String| {
        println!("{what}");
        good = false;
    };
    let mut seen = BTreeSet::new();
    for l in &lines {
        if !seen.insert((l.module.clone(), l.kernel.clone())) {
            complain(format!("{} {}: two lines", l.module, l.kernel));
        }
    }
    match corpus {
        Some(corpus) => {
            let there = listed(corpus)?;
            for (module, kernel) in there.difference(&seen) {
                complain(format!(
                    "{module} {kernel}: a kernel of the corpus without a line"
                ));
            }
            for (module, kernel) in seen.difference(&there) {
                complain(format!(
                    "{module} {kernel}: a line, but no kernel of the corpus"
                ));
            }
            for module in seen
                .iter()
                .map(|(module, _)| module)
                .collect::<BTreeSet<_>>()
            {
                let of = |root: &Path| std::fs::read(root.join(format!("{module}.ptx"))).ok();
                if of(corpus) != of(&folder.join("ptx")) {
                    complain(format!(
                        "{module}: the copy at ptx is not the corpus's text"
                    ));
                }
            }
        }
        None => println!(
            "the corpus is not at hand: the copies at ptx are what runs, and new kernels would not be noticed"
        ),
    }
    let outcomes = parent::run(&kernels(folder)?, List::Corpus)?.kernels;
    let mut ran = 0;
    for (line, outcome) in lines.iter().zip(&outcomes) {
        match wrong(line, outcome) {
            None => ran += 1,
            Some(what) => complain(format!("{}: {what}", outcome.name)),
        }
    }
    println!(
        "{ran} of {} kernels of the corpus come to their end",
        lines.len()
    );
    Ok(good && ran == lines.len())
}

fn wrong(line: &Line, outcome: &Outcome) -> Option<String> {
    let ended = |what: &str| {
        Some(format!(
            "ended with {} ({}), not {what}",
            outcome.end, outcome.why
        ))
    };
    match &line.fault {
        None if outcome.end == "0" => None,
        None => ended("well"),
        Some(fault) if outcome.end != "0" && outcome.why.contains(fault) => None,
        Some(fault) => ended(fault),
    }
}

/// Module and kernel of every `.entry` in the corpus.
fn listed(corpus: &Path) -> Result<BTreeSet<(String, String)>> {
    let mut all = BTreeSet::new();
    for folder in FOLDERS {
        let path = corpus.join(folder);
        for file in std::fs::read_dir(&path).with_context(|| format!("{}", path.display()))? {
            let path = file?.path();
            if path.extension().is_none_or(|e| e != "ptx") {
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            let module = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            for entry in text.split(".entry").skip(1) {
                let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
                let entry = entry.trim_start();
                let name = entry.split(|c| !word(c)).next().unwrap_or_default();
                all.insert((format!("{folder}/{module}"), name.to_string()));
            }
        }
    }
    Ok(all)
}
