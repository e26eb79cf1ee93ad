//! `gsan report`

use crate::args::ReportArgs;
use crate::failure::{Failure, Result, exit};
use crate::input;
use crate::output::Reporter;
use crate::render::json_read;

const NO_REPORT: &str = "not a report of `gsan run --format json`";

/// Prints a saved report.
pub fn run(args: &ReportArgs) -> Result<u8> {
    let file = args.file.display();
    if let Some(out) = &args.out {
        input::not_over("--out", out, std::iter::once(&*args.file))?;
    }
    let text = String::from_utf8(input::read(&args.file)?)
        .map_err(|_| Failure::input(format_args!("{file}: {NO_REPORT}: not text")))?;
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut report, printed) = json_read::read(text).map_err(|e| match e.place {
        Some(place) => Failure::at(
            &args.file,
            text,
            place,
            format_args!("{NO_REPORT}: {}", e.what),
        ),
        None => Failure::input(format_args!("{file}: {}", e.what)),
    })?;
    report.hide(&args.classes.no_class);
    let reporter = Reporter {
        format: args.format,
        out: args.out.clone(),
        stats: args.stats,
        beside: vec![args.file.clone()],
        inline: Vec::new(),
    };
    reporter.emit(&report, &printed)?;
    Ok(exit::CLEAN)
}
