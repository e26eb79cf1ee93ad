//! docs/unsupported.md is what the instrumenter says of the corpus today.

mod common;

use common::STUB;
use gsan_ptx::{Options, instrument};
use std::collections::BTreeSet;
use std::path::Path;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/unsupported.md");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reasons and forms of some files.
fn listed(files: &[(String, String)]) -> (usize, BTreeSet<String>, BTreeSet<String>) {
    let (mut count, mut reasons, mut forms) = (0, BTreeSet::new(), BTreeSet::new());
    for (name, text) in files {
        for u in instrument(text, &Options::new(STUB, name))
            .unwrap()
            .unsupported
        {
            count += 1;
            reasons.insert(format!("### {}\n", u.why));
            let opcode = u.text.split_whitespace().find(|w| !w.starts_with('@'));
            forms.insert(format!("| `{}` |", opcode.unwrap().trim_end_matches(';')));
        }
    }
    (count, reasons, forms)
}

#[test]
fn the_selections_forms_are_on_the_page() {
    let page = page();
    let (count, reasons, forms) = listed(&common::selection());
    assert!(count > 10 && reasons.len() > 3, "{reasons:?}");
    for wanted in reasons.iter().chain(&forms) {
        assert!(
            page.contains(wanted.as_str()),
            "{wanted} is missing: run `cargo run -p gsan-ptx --example unsupported`"
        );
    }
}

#[test]
fn the_page_is_what_the_whole_corpus_gives() {
    let Some(files) = common::whole_corpus("the_page_is_what_the_whole_corpus_gives") else {
        return;
    };
    let page = page();
    let (count, reasons, forms) = listed(&files);
    let sentence = format!("{count} instructions are listed below");
    for wanted in reasons.iter().chain(&forms).chain([&sentence]) {
        assert!(
            page.contains(wanted.as_str()),
            "{wanted} is missing: run `cargo run -p gsan-ptx --example unsupported`"
        );
    }
    let headings = page.matches("\n### ").count();
    assert_eq!(headings, reasons.len(), "reasons that no longer occur");
}
