//! Files to modules and back. Readers never panic, whatever they are given.

pub mod dump;
pub mod json;
mod json_write;
pub mod onnx;
pub mod prototext;
mod strangers;

pub(crate) use json_write::attr as attr_json;
pub use json_write::to_json;

use crate::ir::{Defect, Module};
use rustc_hash::FxHashSet;

/// A file that can't be read: where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}")]
#[non_exhaustive]
pub struct ReadError {
    /// The file's name.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1 (of a binary file: the byte's offset plus 1).
    pub column: usize,
    /// What was expected, and what was found.
    pub what: String,
}

/// What a file held.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The graphs.
    pub module: Module,
    /// Defects of the graphs: the module is fit for no pass when there are any.
    pub defects: Vec<Defect>,
    /// What was not understood but kept.
    pub notes: Vec<String>,
}

/// A file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// This project's own.
    Json,
    /// GE's text dump.
    Dump,
    /// ONNX.
    Onnx,
}

impl Format {
    /// By name first, else by what the content looks like.
    pub fn guess(file: &str, content: &[u8]) -> Format {
        let lower = file.to_ascii_lowercase();
        if lower.ends_with(".json") {
            return Format::Json;
        }
        if lower.ends_with(".onnx") {
            return Format::Onnx;
        }
        match content.iter().find(|b| !b.is_ascii_whitespace()) {
            Some(b'{') => Format::Json,
            Some(b) if b.is_ascii_alphabetic() || *b == b'#' => Format::Dump,
            _ if lower.ends_with(".txt") => Format::Dump,
            _ => Format::Onnx,
        }
    }
}

/// Reads a file's content. `side` is the attributes' file that may come with an `.onnx`: its name and content.
pub fn read(file: &str, content: &[u8], side: Option<(&str, &[u8])>) -> Result<Loaded, ReadError> {
    // Some editors begin a text with a byte order mark.
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    strangers::refuse(file, content)?;
    let format = Format::guess(file, content);
    let read = match format {
        Format::Json => json::read(file, content),
        Format::Dump => dump::read(file, content),
        Format::Onnx => onnx::read(file, content, side),
    };
    let mut loaded = read.map_err(|e| strangers::hint(e, format, content))?;
    note_dtypes(&mut loaded);
    Ok(loaded)
}

/// Notes each element type that is not known once, where it occurs first: tensors of it have no known size.
fn note_dtypes(loaded: &mut Loaded) {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    for g in &loaded.module.graphs {
        for (_, n) in g.iter() {
            let inputs = n.inputs.iter().map(|i| &i.desc).enumerate();
            let outputs = n.outputs.iter().map(|o| &o.desc).enumerate();
            // Outputs first: inputs mostly repeat what their producer says.
            let all = outputs
                .map(|d| ("output", d))
                .chain(inputs.map(|d| ("input", d)));
            for (what, (index, desc)) in all {
                if !desc.has_known_dtype() && seen.insert(&desc.dtype) {
                    loaded.notes.push(format!(
                        "graph {}: {what} {index} of {}: the element type {:?} is not known: kept, but sizes in bytes can't be \
                         told from it",
                        g.name, n.name, desc.dtype
                    ));
                }
            }
        }
    }
}
