//! Insertions into a text, collected in any order and applied in one pass.

use std::ops::Range;

/// Pieces of text to insert, and ranges to replace.
pub(super) struct Edits {
    /// What is inserted, one piece after the other: an edit owns a range of it.
    pub(super) pieces: String,
    edits: Vec<Edit>,
}

struct Edit {
    /// Where in the text.
    at: usize,
    /// How many bytes of the text go. 0 everywhere but at the version number.
    removes: usize,
    /// What comes, in `pieces`.
    piece: Range<usize>,
}

impl Edits {
    pub(super) fn new() -> Edits {
        Edits {
            pieces: String::new(),
            edits: Vec::new(),
        }
    }

    /// Inserts at `at` what has been pushed to `pieces` since `from`. Of two insertions at one place the one that was
    /// made first comes first.
    pub(super) fn insert_since(&mut self, at: usize, from: usize) {
        self.edits.push(Edit {
            at,
            removes: 0,
            piece: from..self.pieces.len(),
        });
    }

    /// Inserts a text.
    pub(super) fn insert(&mut self, at: usize, text: &str) {
        let from = self.pieces.len();
        self.pieces.push_str(text);
        self.insert_since(at, from);
    }

    /// Replaces a range.
    pub(super) fn replace(&mut self, range: Range<usize>, text: &str) {
        let from = self.pieces.len();
        self.pieces.push_str(text);
        self.edits.push(Edit {
            at: range.start,
            removes: range.len(),
            piece: from..self.pieces.len(),
        });
    }

    /// Keeps a place in the order for [`Edits::fill`].
    pub(super) fn reserve(&mut self, at: usize) -> usize {
        self.edits.push(Edit {
            at,
            removes: 0,
            piece: 0..0,
        });
        self.edits.len() - 1
    }

    /// Gives a reserved place what has been pushed to `pieces` since `from`.
    pub(super) fn fill(&mut self, reserved: usize, from: usize) {
        self.edits[reserved].piece = from..self.pieces.len();
    }

    /// The text with everything done, and `appended` behind it.
    pub(super) fn apply(mut self, text: &str, appended: &str) -> String {
        // Stable, and almost sorted already.
        self.edits.sort_by_key(|e| e.at);
        let mut out = String::with_capacity(text.len() + self.pieces.len() + appended.len() + 1);
        let mut at = 0;
        for edit in &self.edits {
            out.push_str(&text[at..edit.at]);
            let piece = &self.pieces[edit.piece.clone()];
            // `.loc 1 2 3.pragma "…"` is legal: what goes between must not run into the number.
            let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
            if piece.as_bytes().first().is_some_and(word) && out.as_bytes().last().is_some_and(word)
            {
                out.push(' ');
            }
            out.push_str(piece);
            at = edit.at + edit.removes;
        }
        out.push_str(&text[at..]);
        if !appended.is_empty() {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(appended);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insertions_at_one_place_keep_the_order_in_which_they_were_made() {
        let mut edits = Edits::new();
        let reserved = edits.reserve(1);
        edits.insert(3, "c");
        edits.insert(1, "a");
        edits.insert(1, "b");
        edits.insert(0, "0");
        let from = edits.pieces.len();
        edits.pieces.push('R');
        edits.fill(reserved, from);
        edits.replace(2..3, "xyz");
        // Words are kept apart.
        assert_eq!(edits.apply(";;;;", "tail\n"), "0;R a b;xyz c;\ntail\n");
    }

    #[test]
    fn without_edits_nothing_changes() {
        assert_eq!(Edits::new().apply("é\n", ""), "é\n");
        assert_eq!(Edits::new().apply("", ""), "");
        // A comment on the last line must not swallow what is appended.
        assert_eq!(Edits::new().apply("ret; // end", "x"), "ret; // end\nx");
    }
}
