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
    /// How many bytes of the text go. 0 everywhere but at the version number and a byte order mark.
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

    /// How many there are: the number of the next one.
    pub(super) fn count(&self) -> usize {
        self.edits.len()
    }

    /// Takes insertions back, by their numbers.
    pub(super) fn remove(&mut self, edits: Range<usize>) {
        for edit in &mut self.edits[edits] {
            edit.piece = 0..0;
        }
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

    /// The text with everything done, and `appended` behind it; and where the result is not the user's text.
    pub(super) fn apply(mut self, text: &str, appended: &str) -> (String, Vec<Change>) {
        // Stable, and almost sorted already.
        self.edits.sort_by_key(|e| e.at);
        let mut out = String::with_capacity(text.len() + self.pieces.len() + appended.len() + 1);
        let mut changes: Vec<Change> = Vec::with_capacity(self.edits.len() + 1);
        let mut at = 0;
        let nothing = |e: &&Edit| e.removes == 0 && e.piece.is_empty();
        for edit in self.edits.iter().filter(|e| !nothing(e)) {
            out.push_str(&text[at..edit.at]);
            let from = out.len();
            let piece = &self.pieces[edit.piece.clone()];
            // `.loc 1 2 3.pragma "…"` is legal: what goes between must not run into the number.
            let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
            if piece.as_bytes().first().is_some_and(word) && out.as_bytes().last().is_some_and(word)
            {
                out.push(' ');
            }
            out.push_str(piece);
            at = edit.at + edit.removes;
            match changes.last_mut() {
                // Hooks that touch are one piece of text.
                Some(last) if last.inserted.end == from && edit.removes == 0 => {
                    last.inserted.end = out.len();
                }
                _ => changes.push(Change {
                    inserted: from..out.len(),
                    removed: text[edit.at..at].into(),
                }),
            }
        }
        out.push_str(&text[at..]);
        if !appended.is_empty() {
            let from = out.len();
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(appended);
            changes.push(Change {
                inserted: from..out.len(),
                removed: "".into(),
            });
        }
        (out, changes)
    }
}

/// A piece of the result that is not the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where it stands in the result.
    pub inserted: Range<usize>,
    /// What stood there before: empty everywhere but at a raised version number and a byte order mark.
    pub removed: Box<str>,
}

/// The user's text, from the result and its changes.
pub(super) fn undo(result: &str, changes: &[Change]) -> String {
    let mut out = String::with_capacity(result.len());
    let mut at = 0;
    for change in changes {
        out.push_str(&result[at..change.inserted.start]);
        out.push_str(&change.removed);
        at = change.inserted.end;
    }
    out.push_str(&result[at..]);
    out
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
        let from = edits.pieces.len();
        edits.pieces.push('z');
        let taken_back = edits.count();
        edits.insert_since(3, from);
        edits.remove(taken_back..edits.count());
        // Words are kept apart.
        let (text, changes) = edits.apply(";;;;", "tail\n");
        assert_eq!(text, "0;R a b;xyz c;\ntail\n");
        assert_eq!(undo(&text, &changes), ";;;;");
    }

    #[test]
    fn without_edits_nothing_changes() {
        let apply = |text, appended| Edits::new().apply(text, appended).0;
        assert_eq!(apply("é\n", ""), "é\n");
        assert_eq!(apply("", ""), "");
        // A comment on the last line must not swallow what is appended.
        assert_eq!(apply("ret; // end", "x"), "ret; // end\nx");
    }
}
