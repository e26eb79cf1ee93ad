//! Finds the source lines that a report names.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Larger files are not source code; a report may name anything.
const MAX_BYTES: u64 = 64 << 20;

/// Where source files are looked for.
#[derive(Debug, Default)]
pub struct Sources {
    dirs: Vec<PathBuf>,
    bundled: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    cache: RefCell<HashMap<String, Option<Vec<String>>>>,
}

impl Sources {
    /// Looks in the current directory only.
    pub fn new() -> Sources {
        Sources::default()
    }

    /// Looks beside `file` too.
    pub fn beside(mut self, file: &Path) -> Sources {
        let dir = file.parent().unwrap_or(Path::new("")).to_path_buf();
        if !self.dirs.contains(&dir) {
            self.dirs.push(dir);
        }
        self
    }

    /// Knows this text under any path that ends in `name`, wherever the program runs.
    pub fn bundled(
        mut self,
        name: impl Into<Cow<'static, str>>,
        text: impl Into<Cow<'static, str>>,
    ) -> Sources {
        self.bundled.push((name.into(), text.into()));
        self
    }

    /// The line, from 1, without its line end; control characters are blanked, tabs become four spaces.
    pub fn line(&self, file: &str, line: u32) -> Option<String> {
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let mut cache = self.cache.borrow_mut();
        let lines = cache
            .entry(file.to_string())
            .or_insert_with(|| self.find(file));
        lines.as_ref()?.get(index).cloned()
    }

    fn find(&self, file: &str) -> Option<Vec<String>> {
        let path = Path::new(file);
        if let Some((_, text)) = self
            .bundled
            .iter()
            .find(|(name, _)| path.ends_with(name.as_ref()))
        {
            return Some(split(text));
        }
        let name = path.file_name()?;
        // As it stands, relative to each directory, and last the bare name there: compilers record the build's path.
        let here = [path.to_path_buf()];
        let relative = self.dirs.iter().map(|d| d.join(path));
        let bare = self.dirs.iter().map(|d| d.join(name));
        let text = here
            .into_iter()
            .chain(relative)
            .chain(bare)
            .find_map(|p| read(&p))?;
        Some(split(&text))
    }
}

fn read(path: &Path) -> Option<String> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return None;
    }
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

fn split(text: &str) -> Vec<String> {
    text.lines().map(str::to_string).collect()
}

/// A source line ready for the terminal and the caret line under it.
pub fn with_caret(line: &str, column: Option<u32>) -> (String, Option<(usize, usize)>) {
    let mut shown = String::new();
    let mut start = None;
    let mut length = 0;
    let mut in_word = false;
    for (at, c) in line.char_indices() {
        // Compilers count columns in bytes, from 1.
        if column.is_some_and(|col| col as usize == at + 1) {
            start = Some(shown.chars().count());
            length = 1;
            in_word = is_word(c);
        } else if in_word {
            in_word = is_word(c);
            length += usize::from(in_word);
        }
        match c {
            '\t' => shown.push_str("    "),
            c if c.is_control() => shown.push(' '),
            c => shown.push(c),
        }
    }
    let shown = shown.trim_end().to_string();
    // Without a column, or with one past the line's end, the whole statement is marked.
    let caret = start.map(|s| (s, length)).or_else(|| {
        let indent = shown.chars().take_while(|c| *c == ' ').count();
        let width = shown.chars().count() - indent;
        (width > 0).then_some((indent, width))
    });
    (shown, caret)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_covers_a_word_or_one_character_or_the_line() {
        assert_eq!(
            with_caret("  data[i] = 1;", Some(3)),
            ("  data[i] = 1;".into(), Some((2, 4)))
        );
        assert_eq!(
            with_caret("\tx = *p;\r", Some(6)),
            ("    x = *p;".into(), Some((8, 1)))
        );
        assert_eq!(
            with_caret("  a = b;  ", None),
            ("  a = b;".into(), Some((2, 6)))
        );
        assert_eq!(with_caret("ab", Some(9)), ("ab".into(), Some((0, 2))));
        assert_eq!(with_caret("", Some(1)), (String::new(), None));
        assert_eq!(with_caret("é = x", Some(6)), ("é = x".into(), Some((4, 1))));
        assert_eq!(with_caret("\u{1b}[31mred", None).0, " [31mred");
    }

    #[test]
    fn bundled_files_are_found_under_any_directory() {
        let sources = Sources::new().bundled("src/lib.rs", "one\ntwo\n");
        assert_eq!(
            sources
                .line("tests/kernels/rust/x/src/lib.rs", 2)
                .as_deref(),
            Some("two")
        );
        assert_eq!(sources.line("src/lib.rs", 1).as_deref(), Some("one"));
        assert_eq!(sources.line("src/lib.rs", 3), None);
        assert_eq!(sources.line("src/lib.rs", 0), None);
        assert_eq!(sources.line("xsrc/lib.rs/no", 1), None);
    }

    #[test]
    fn directories_are_searched_by_path_and_by_name() {
        let dir = std::env::temp_dir().join(format!("gsan-source-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        std::fs::write(dir.join("sub/a.cu"), "first\n").unwrap();
        std::fs::write(dir.join("b.cu"), "second\n").unwrap();
        let sources = Sources::new().beside(&dir.join("x.ptx"));
        assert_eq!(sources.line("sub/a.cu", 1).as_deref(), Some("first"));
        assert_eq!(
            sources.line("/build/elsewhere/b.cu", 1).as_deref(),
            Some("second")
        );
        assert_eq!(sources.line("/dev/zero", 1), None);
        assert_eq!(sources.line("", 1), None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
