//! What the tests need to know of a scenario file.

use std::path::{Path, PathBuf};

/// Every scenario, by name.
///
/// # Panics
/// When the folder can't be read.
pub fn all() -> Vec<(String, PathBuf)> {
    let folder = super::scenarios();
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut found: Vec<(String, PathBuf)> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .filter_map(|p| Some((p.file_stem()?.to_str()?.to_string(), p)))
        .collect();
    found.sort();
    found
}

/// The file of one.
pub fn path(name: &str) -> PathBuf {
    super::scenarios().join(format!("{name}.toml"))
}

/// Its text, parsed.
///
/// # Panics
/// When it is no TOML.
pub fn read(path: &Path) -> toml::Table {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
