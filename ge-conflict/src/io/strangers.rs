//! Files that are no graphs: said in words, not as a complaint about their first byte.

use super::{Format, ReadError};

/// What is read at all.
const READ: &str = "a graph is read from JSON (an object with \"graphs\"), from GE's text dump (ge_proto_*.txt) or from .onnx";

/// Beginnings of files that people have lying about.
const KNOWN: &[(&[u8], &str)] = &[
    (b"\x7fELF", "a program or library"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x1f\x8b", "compressed (gzip): unpack it first"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed (zstd): unpack it first"),
    (b"%PDF", "a PDF document"),
    (b"GGUF", "a GGUF model, which has no operator graph in it"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (b"<", "HTML or XML"),
    (b"[package]", "a TOML file"),
    (b"[workspace]", "a TOML file"),
];

/// Refuses what certainly is no graph.
pub(super) fn refuse(file: &str, content: &[u8]) -> Result<(), ReadError> {
    let error = |what: String| ReadError {
        file: file.to_owned(),
        line: 1,
        column: 1,
        what,
    };
    let text = content.trim_ascii_start();
    let known = KNOWN
        .iter()
        .find(|(magic, _)| content.starts_with(magic) || text.starts_with(magic));
    if let Some((_, what)) = known {
        return Err(error(format!("this is {what}; {READ}")));
    }
    // The first lines of PTX are comments and then this.
    let ptx = text.starts_with(b"//") || text.starts_with(b".version");
    if ptx {
        let what = "this looks like PTX, which `gsan instrument` and `gsan run` take";
        return Err(error(format!("{what}; {READ}")));
    }
    if text.is_empty() {
        return Err(error(format!(
            "expected a graph, found an empty file; {READ}"
        )));
    }
    Ok(())
}

/// Says as what a file was read, where nothing in it looks like a graph.
pub(super) fn hint(mut e: ReadError, format: Format, content: &[u8]) -> ReadError {
    let (landmark, name): (&[u8], &str) = match format {
        Format::Json => (b"\"graphs\"", "JSON"),
        Format::Dump => (b"graph", "GE's text dump"),
        Format::Onnx => (b"ge:", "ONNX"),
    };
    if !content.windows(landmark.len()).any(|w| w == landmark) {
        e.what += &format!(" (the file was read as {name}; {READ})");
    }
    e
}
