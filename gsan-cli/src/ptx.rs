//! PTX files: reading them, and saying where they are wrong.

use crate::failure::{Failure, Result};
use crate::input;
use gsan_ptx::{InstrumentError, Instrumented, Options, ParseError};
use std::path::Path;

/// The runtime that `gsan instrument` appends, or writes beside the module.
pub const RUNTIME: &str = gsan_host::CellFormat::Wide.built_in_runtime();

/// A file's text. Whether it is PTX shows when it is instrumented or loaded: large files are parsed once.
pub fn read(path: &Path) -> Result<String> {
    let mut bytes = input::read(path)?;
    let text = gsan_ptx::parse::text_of(&bytes).map_err(|e| {
        // One bad byte in a text is best seen in its line; a binary file has none.
        let shown = match bytes.starts_with(b"\x7fELF") {
            true => "".into(),
            false => String::from_utf8_lossy(&bytes),
        };
        syntax(path, &shown, &e)
    })?;
    if text.is_empty() {
        return Ok(String::new());
    }
    // The text without what stands before and behind it, in the memory that the bytes have.
    let start = text.as_ptr() as usize - bytes.as_ptr() as usize;
    bytes.truncate(start + text.len());
    bytes.drain(..start);
    String::from_utf8(bytes)
        .map_err(|e| Failure::input(format_args!("{}: not text: {e}", path.display())))
}

/// Instruments a file's text; with `apart` without the runtime in it.
pub fn instrument(path: &Path, text: &str, apart: bool) -> Result<Instrumented> {
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let options = Options {
        apart,
        ..Options::new(RUNTIME, &name)
    };
    gsan_ptx::instrument(text, &options).map_err(|e| match e {
        InstrumentError::Parse(e) => syntax(path, text, &e),
        InstrumentError::ReservedName { line, name } => {
            let found = text.lines().nth(line.saturating_sub(1));
            let column = found.and_then(|l| l.find(&name)).map_or(1, |at| at + 1);
            let what = format_args!(
                "the name `{name}` is reserved for gsan: rename it, or give the module as it was compiled"
            );
            Failure::at(path, text, (line, column), what)
        }
        other => {
            let message = one_line(&other.to_string());
            match other.place() {
                Some(place) => Failure::at(path, text, place, message),
                None => Failure::input(format_args!("{}: {message}", path.display())),
            }
        }
    })
}

/// A mistake in a file's PTX.
pub fn syntax(path: &Path, text: &str, e: &ParseError) -> Failure {
    let hint = not_ptx(path).map_or(String::new(), |what| format!(" ({what})"));
    let what = format!("{}{hint}", one_line(&e.message));
    Failure::at(path, text, (e.line, e.column), what)
}

/// What to do with a file whose name says that it is none of PTX.
fn not_ptx(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "cu" | "cuh" | "cpp" | "cc" | "c" => {
            "gsan takes PTX: compile the source with `nvcc -lineinfo -ptx`"
        }
        "rs" => "gsan takes PTX: compile the source for nvptx64-nvidia-cuda with `--emit asm`",
        "py" => "gsan takes PTX: Triton leaves it in its cache, and as `compiled.asm[\"ptx\"]`",
        "cubin" | "fatbin" | "o" | "so" => {
            "gsan takes PTX: `cuobjdump -ptx` shows what is in a binary"
        }
        "json" => "`gsan report` takes saved reports, `gsan graph check` operator graphs",
        _ => return None,
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
