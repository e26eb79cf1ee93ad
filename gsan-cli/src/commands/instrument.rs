//! `gsan instrument`

use crate::args::InstrumentArgs;
use crate::failure::{Failure, Result, exit};
use crate::render::{instrumentation, plural};
use crate::{input, output, ptx};
use gsan_host::report::Instrumentation;
use std::path::Path;

/// Writes the instrumented module.
pub fn run(args: &InstrumentArgs) -> Result<u8> {
    input::not_over("-o", &args.output, std::iter::once(&*args.input))?;
    if let Some(runtime) = &args.runtime {
        input::not_over("--runtime", runtime, std::iter::once(&*args.input))?;
        if *runtime == args.output {
            return Err(Failure::input(format_args!(
                "--runtime {}: the module goes there; give the runtime another name",
                runtime.display()
            )));
        }
    }
    let text = ptx::read(&args.input)?;
    let done = ptx::instrument(&args.input, &text, args.runtime.is_some())?;
    write(&args.output, &done.text)?;
    if let Some(path) = args.runtime.as_deref().filter(|_| !done.already_linked) {
        let runtime = done.needs.module(ptx::RUNTIME);
        let runtime = runtime.map_err(|e| Failure::input(ptx::one_line(&e.to_string())))?;
        write(path, &runtime)?;
        output::eprint(&format!(
            "link it with {}, compiled for at most {} registers (`ptxas -c --maxrregcount`, or CU_JIT_MAX_REGISTERS of that input alone)\n",
            path.display(),
            done.needs.registers()
        ));
    }
    for u in &done.unsupported {
        let partly = if u.partly {
            "only approximated"
        } else {
            "not checked"
        };
        output::warn(&format!(
            "{}:{}: {partly}: {} ({})",
            args.input.display(),
            u.ptx_line,
            u.text,
            u.why
        ));
    }
    if done.already_linked {
        output::warn(&format!(
            "{}: gsan's runtime is in it already; nothing was changed",
            args.input.display()
        ));
    }
    output::eprint(&format!(
        "{}, {} instrumented, {} not checked or only approximated\n",
        plural(done.entries.len() as u64, "kernel"),
        // The sites of kernels whose hooks were taken back have numbers all the same.
        plural(done.stats.sites(), "place"),
        done.unsupported.len()
    ));
    for line in instrumentation::lines(&Instrumentation::from(&done.stats)) {
        output::eprint(&format!("{line}\n"));
    }
    Ok(exit::CLEAN)
}

/// To a file or, for `-`, the standard output.
fn write(path: &Path, text: &str) -> Result<()> {
    if path == Path::new("-") {
        return output::raw(text);
    }
    std::fs::write(path, text)
        .map_err(|e| Failure::input(format_args!("cannot write {}: {e}", path.display())))
}
