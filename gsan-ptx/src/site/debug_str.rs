//! Names in `.section .debug_str`: `.loc … function_name LABEL` points there.

use super::section::Section;
use std::collections::HashMap;
use std::sync::Arc;

/// Longer names are left out: a file could otherwise have a megabyte of name for each of its lines.
pub(super) const MAX_NAME: usize = 4096;

/// The strings of a module's `.debug_str` sections, read on first use.
pub(super) struct DebugStrings<'a> {
    sections: Vec<&'a str>,
    read: Option<Section<'a>>,
    known: HashMap<(&'a str, u64), Option<Arc<str>>>,
}

impl<'a> DebugStrings<'a> {
    pub(super) fn new(sections: Vec<&'a str>) -> DebugStrings<'a> {
        DebugStrings {
            sections,
            read: None,
            known: HashMap::new(),
        }
    }

    /// The string `offset` bytes behind `label`.
    pub(super) fn get(&mut self, label: &'a str, offset: u64) -> Option<Arc<str>> {
        if let Some(found) = self.known.get(&(label, offset)) {
            return found.clone();
        }
        let section = self
            .read
            .get_or_insert_with(|| Section::read(&self.sections));
        let found = (|| {
            let at = section
                .labels
                .get(label)?
                .checked_add(usize::try_from(offset).ok()?)?;
            string_at(&section.bytes, at)
        })();
        self.known.insert((label, offset), found.clone());
        found
    }
}

/// The text that a zero ends.
pub(super) fn string_at(bytes: &[u8], at: usize) -> Option<Arc<str>> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().take(MAX_NAME).position(|&b| b == 0)?;
    std::str::from_utf8(&rest[..end])
        .ok()
        .filter(|s| !s.is_empty())
        .map(Arc::from)
}
