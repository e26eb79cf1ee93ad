//! `gsan report`

use crate::args::ReportArgs;
use crate::failure::{Failure, Result, exit};
use crate::output::Reporter;
use crate::render::json_read;

/// Prints a saved report.
pub fn run(args: &ReportArgs) -> Result<u8> {
    let file = args.file.display();
    let bytes = std::fs::read(&args.file)
        .map_err(|e| Failure::input(format_args!("cannot read {file}: {e}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::input(format_args!("{file}: not a JSON report: not text")))?;
    let (mut report, printed) = json_read::read(&text).map_err(|e| {
        // `line N: …` reads as a place.
        match e.strip_prefix("line ") {
            Some(rest) => Failure::input(format_args!("{file}:{rest}")),
            None => Failure::input(format_args!("{file}: {e}")),
        }
    })?;
    report.hide(&args.classes.no_class);
    let reporter = Reporter {
        format: args.format,
        out: args.out.clone(),
        beside: vec![args.file.clone()],
        inline: Vec::new(),
    };
    reporter.emit(&report, &printed)?;
    Ok(exit::CLEAN)
}
