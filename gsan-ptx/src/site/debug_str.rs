//! Names in `.section .debug_str`: `.loc … function_name LABEL` points there.

use std::collections::HashMap;
use std::sync::Arc;

/// Longer names are left out: a file could otherwise have a megabyte of name for each of its lines.
const MAX_NAME: usize = 4096;

/// The strings of a module's `.debug_str` sections, read on first use.
pub(super) struct DebugStrings<'a> {
    sections: Vec<&'a str>,
    /// All bytes in order, and where each label stands.
    read: Option<(Vec<u8>, HashMap<&'a str, usize>)>,
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
        let (bytes, labels) = self.read.get_or_insert_with(|| read(&self.sections));
        let found = (|| {
            let at = labels
                .get(label)?
                .checked_add(usize::try_from(offset).ok()?)?;
            let rest = bytes.get(at..)?;
            let end = rest.iter().take(MAX_NAME).position(|&b| b == 0)?;
            std::str::from_utf8(&rest[..end])
                .ok()
                .filter(|s| !s.is_empty())
                .map(Arc::from)
        })();
        self.known.insert((label, offset), found.clone());
        found
    }
}

/// Lines are `label:` or `.b8 n,n,…`; anything else is passed over.
fn read<'a>(sections: &[&'a str]) -> (Vec<u8>, HashMap<&'a str, usize>) {
    let (mut bytes, mut labels) = (Vec::new(), HashMap::new());
    for line in sections.iter().flat_map(|s| s.lines()) {
        let mut line = line.split("//").next().unwrap_or("").trim();
        if let Some((label, rest)) = line.split_once(':') {
            labels.insert(label.trim(), bytes.len());
            line = rest.trim();
        }
        if let Some(numbers) = line.strip_prefix(".b8") {
            bytes.extend(
                numbers
                    .split(',')
                    .filter_map(|n| n.trim().parse::<i16>().ok())
                    .map(|n| n as u8),
            );
        }
    }
    (bytes, labels)
}
