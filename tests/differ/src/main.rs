//! `gsan-differ record FILE [NAME…]`: runs each kernel on the device and writes what it computed.
//! `gsan-differ compare FILE [NAME…]`: runs each kernel and compares with what is written there. Those that `different.txt` lists
//! must differ, with the reasons that it gives; all others must not.
//!
//! `gsan-differ shrink WHOLE FILE`: what is checked in, from what `record` wrote with `GSAN_DIFFER_WHOLE=1` (every byte of
//! every buffer, which tells more when something differs; compare it with `GSAN_DIFFER_WHOLE=1` too).
//! `gsan-differ corpus [CORPUS]`: runs every kernel of `corpus.txt`, each to the end that is written there; with the folder of the
//! corpus, whose kernels must have a line each. `gsan-differ list`, `gsan-differ ptx FOLDER`: their names; the texts of those that are made up, for ptxas.
//!
//! The kernels are those of `kernels.toml` (compilers' output, at `ptx/`) and those that `generated` makes up: one for each
//! form of an instruction. The folder is the current one, or `GSAN_DIFFER`. `GSAN_DEVICE=sim` takes the simulator.
//!
//! The kernels run in a child process, which is started again behind a kernel that ends badly: a GPU's context does not
//! survive that. What kernels print is the child's output.

mod child;
mod compare;
mod corpus;
mod data;
mod device;
mod generated;
mod kernel;
mod parent;
mod results;

use anyhow::{Context, Result, bail};
use kernel::List;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(3)
        }
    }
}

fn run() -> Result<bool> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let folder = std::env::var_os("GSAN_DIFFER").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let kernels = || kernel::all(&folder);
    match words[..] {
        ["child", list, out, first, last] => {
            let kernels = List::kernels(list, &folder)?;
            child::run(&kernels, Path::new(out), first.parse()?, last.parse()?)
        }
        ["corpus"] => corpus::check(&folder, None),
        ["corpus", at] => corpus::check(&folder, Some(Path::new(at))),
        ["list"] => {
            for k in kernels()? {
                println!("{}", k.name);
            }
            Ok(true)
        }
        ["ptx", folder] => {
            for k in kernels()?.iter().filter(|k| k.launch.kernel == "k") {
                let path = Path::new(folder).join(format!("{:04}.ptx", k.number));
                std::fs::write(path, format!("// {}\n{}", k.name, k.ptx))?;
            }
            Ok(true)
        }
        ["shrink", from, to] => {
            let text = std::fs::read_to_string(from).context(from.to_string())?;
            let whole = results::read(&text).context(from.to_string())?;
            let less = compare::shrink(&kernels()?, whole);
            std::fs::write(to, results::write(&less)).context(to.to_string())?;
            Ok(true)
        }
        ["record", file, ref names @ ..] => {
            let kernels = chosen(kernels()?, names);
            let results = parent::run(&kernels, List::Differ)?;
            std::fs::write(file, results::write(&results)).context(file.to_string())?;
            let ended = results.kernels.iter().filter(|k| k.end == "0").count();
            println!(
                "{} kernels, of which {ended} ended well, in {file}",
                results.kernels.len()
            );
            Ok(true)
        }
        ["compare", file, ref names @ ..] => {
            let text = std::fs::read_to_string(file).context(file.to_string())?;
            let expected = results::read(&text).context(file.to_string())?;
            let kernels = chosen(kernels()?, names);
            let path = folder.join("different.txt");
            let list =
                std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
            let found = parent::run(&kernels, List::Differ)?;
            Ok(compare::report(
                &kernels,
                &compare::known(&list),
                &expected,
                &found,
            ))
        }
        _ => bail!(
            "usage: gsan-differ record|compare FILE [NAME…], gsan-differ corpus [CORPUS], gsan-differ list, gsan-differ ptx FOLDER"
        ),
    }
}

/// The kernels with one of the names in theirs, numbered as before.
fn chosen(kernels: Vec<kernel::Kernel>, names: &[&str]) -> Vec<kernel::Kernel> {
    let wanted = |k: &kernel::Kernel| names.is_empty() || names.iter().any(|n| k.name.contains(n));
    kernels.into_iter().filter(wanted).collect()
}
