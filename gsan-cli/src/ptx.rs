//! PTX files: reading them, and saying where they are wrong.

use crate::failure::{Failure, Result};
use gsan_ptx::{InstrumentError, Instrumented, Options};
use std::path::Path;

/// The runtime that `gsan instrument` appends.
pub const RUNTIME: &str = gsan_host::CellFormat::Wide.built_in_runtime();

/// A file's text, parsed once so that a mistake is told with its place.
pub fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::input(format_args!("cannot read {}: {e}", path.display())))?;
    let syntax = |e: gsan_ptx::ParseError| Failure::at(path, e.line as u32, one_line(&e.message));
    let text = gsan_ptx::parse::text_of(&bytes).map_err(syntax)?;
    gsan_ptx::parse(text).map_err(syntax)?;
    Ok(text.to_string())
}

/// Instruments a file's text.
pub fn instrument(path: &Path, text: &str) -> Result<Instrumented> {
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    gsan_ptx::instrument(text, &Options::new(RUNTIME, &name)).map_err(|e| match e {
        InstrumentError::Parse(e) => Failure::at(path, e.line as u32, one_line(&e.message)),
        InstrumentError::ReservedName { line, name } => Failure::at(
            path,
            line as u32,
            format_args!("the name `{name}` is reserved for gsan: rename it, or give the module as it was compiled"),
        ),
        other => Failure::input(format_args!("{}: {}", path.display(), one_line(&other.to_string()))),
    })
}

/// Messages are one line each.
pub fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}
