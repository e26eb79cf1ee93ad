//! PTX that stands in scenarios, `ptx = '''…'''`.

use crate::process::{self, Context, Result, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A text, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Inline {
    pub text: String,
    /// The first scenario that has it, from the root, and the text's line there.
    pub place: String,
}

/// All of the tests' scenarios, each text once: many scenarios differ in their launches alone.
pub fn all() -> Result<Vec<Inline>> {
    let mut found = BTreeMap::new();
    for file in scenarios(&root().join("tests"))? {
        let name = file.strip_prefix(root()).unwrap_or(&file).display();
        for (line, text) in texts(&process::read(&file)?) {
            found
                .entry(text.to_string())
                .or_insert_with(|| format!("{name}:{line}"));
        }
    }
    let inline = found
        .into_iter()
        .map(|(text, place)| Inline { text, place });
    Ok(inline.collect())
}

/// The TOML files in a folder and the folders in it, sorted, without what is built there.
fn scenarios(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = process::files_in(folder, "toml");
    let entries = fs::read_dir(folder).about(folder.display())?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    folders.retain(|path| path.is_dir() && path.file_name().is_some_and(|name| name != "target"));
    folders.sort();
    for folder in folders {
        found.extend(scenarios(&folder)?);
    }
    Ok(found)
}

/// The texts of a scenario, with the lines on which they begin.
fn texts(scenario: &str) -> Vec<(usize, &str)> {
    const QUOTES: &str = "'''";
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = scenario[at..].find(QUOTES).map(|n| at + n + QUOTES.len()) {
        let end = scenario[start..]
            .find(QUOTES)
            .map_or(scenario.len(), |n| start + n);
        let before = scenario[..start - QUOTES.len()].trim_end();
        let key = before.strip_suffix('=').map(str::trim_end);
        let is_ptx = key.is_some_and(|key| {
            key.strip_suffix("ptx")
                .is_some_and(|rest| rest.is_empty() || rest.ends_with(['\n', ' ', '\t']))
        });
        if is_ptx {
            // TOML leaves out a line end behind the quotes.
            let text = &scenario[start..end];
            let text = text.strip_prefix('\n').unwrap_or(text);
            let line = 1 + scenario[..end - text.len()].matches('\n').count();
            found.push((line, text));
        }
        at = (end + QUOTES.len()).min(scenario.len());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_their_key() {
        let scenario = "name = '''not ptx = '''\n[[module]]\nptx = '''\n.version 8.0\n'''\nother_ptx = '''no'''\n\
                        [[module]]\n  ptx  =  '''x'''\nptx = 'short'\nptx='''open";
        assert_eq!(
            texts(scenario),
            [(4, ".version 8.0\n"), (8, "x"), (10, "open")]
        );
        assert!(texts("").is_empty());
    }

    #[test]
    fn the_litmus_tests_have_some() {
        let all = all().unwrap();
        assert!(all.len() > 100, "{}", all.len());
        assert!(all.iter().any(|i| i.place.contains("litmus")));
        assert!(all.iter().all(|i| i.text.contains(".version")));
    }
}
