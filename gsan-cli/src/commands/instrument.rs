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
    let text = ptx::read(&args.input)?;
    let done = ptx::instrument(&args.input, &text)?;
    if args.output == Path::new("-") {
        output::raw(&done.text)?;
    } else {
        std::fs::write(&args.output, &done.text).map_err(|e| {
            Failure::input(format_args!("cannot write {}: {e}", args.output.display()))
        })?;
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
