//! What stands in a `.section`: numbers, and references to labels.

use std::collections::HashMap;

/// Bytes, with the labels that name places among them and the references that stand in them.
#[derive(Default)]
pub(super) struct Section<'a> {
    pub(super) bytes: Vec<u8>,
    pub(super) labels: HashMap<&'a str, usize>,
    /// Where a label's address, or its offset in a section, stands instead of a number: zeros in `bytes`. In order.
    pub(super) references: Vec<(usize, &'a str)>,
}

impl<'a> Section<'a> {
    /// Reads lines `label:`, `.b8 n,n,…`, `.b64 label+n`; anything else is passed over.
    pub(super) fn read(texts: &[&'a str]) -> Section<'a> {
        let mut section = Section::default();
        for line in texts.iter().flat_map(|s| s.lines()) {
            section.line(line);
        }
        section
    }

    fn line(&mut self, line: &'a str) {
        // By far the most frequent lines: `.b8 100`.
        if let Some(byte) = line.strip_prefix(".b8 ").and_then(|n| n.parse::<u8>().ok()) {
            self.bytes.push(byte);
            return;
        }
        let mut line = line.split("//").next().unwrap_or("").trim();
        if let Some((label, rest)) = line.split_once(':') {
            self.labels.insert(label.trim(), self.bytes.len());
            line = rest.trim();
        }
        let Some((width, values)) = [(1, ".b8"), (2, ".b16"), (4, ".b32"), (8, ".b64")]
            .iter()
            .find_map(|(width, word)| Some((*width, line.strip_prefix(word)?)))
        else {
            return;
        };
        for value in values.split(',').map(str::trim) {
            let number = match value.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16).ok(),
                None => value.parse::<i128>().ok(),
            };
            if number.is_none() {
                let name = value.split(['+', '-']).next().unwrap_or(value).trim();
                self.references.push((self.bytes.len(), name));
            }
            let bytes = (number.unwrap_or(0) as u64).to_le_bytes();
            self.bytes.extend(&bytes[..width]);
        }
    }

    /// What a reference at this place names.
    pub(super) fn reference(&self, at: usize) -> Option<&'a str> {
        let found = self.references.binary_search_by_key(&at, |r| r.0).ok()?;
        Some(self.references[found].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_labels_and_references() {
        let section = Section::read(&[
            "{\n$L__a:\n.b8 1\n.b8 2,3 // x\n.b32 -1\nL2: .b64 $L__f+4\n.b16 0x102\n}",
        ]);
        assert_eq!(section.bytes[..7], [1, 2, 3, 255, 255, 255, 255]);
        assert_eq!(section.bytes[15..], [2, 1]);
        assert_eq!((section.labels["$L__a"], section.labels["L2"]), (0, 7));
        assert_eq!(section.reference(7), Some("$L__f"));
        assert_eq!(section.reference(8), None);
    }
}
