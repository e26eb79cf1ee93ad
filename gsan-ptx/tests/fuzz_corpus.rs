//! The fuzz target's properties over a fixed set of inputs: `tests/data/fuzz` (what fuzzing found, and what it grew from),
//! every selected module, and cuts of both.

mod common;

use common::STUB;
use gsan_ptx::ast::Item;
use gsan_ptx::tokens::Tokens;
use gsan_ptx::{Options, instrument, parse, parse_bytes};
use std::path::Path;

/// As `fuzz/fuzz_targets/instrument.rs`.
fn check(name: &str, bytes: &[u8]) {
    let _ = parse_bytes(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let tokens = Tokens::new(text);
    let joined: String = (0..tokens.len()).map(|i| tokens.text(i)).collect();
    assert!(joined == text, "{name}: tokens");
    let plain = Options::new(STUB, name);
    let part = Options {
        part: true,
        ..plain
    };
    let off = Options {
        intra_block: false,
        stale_nc: false,
        ..plain
    };
    let apart = Options {
        apart: true,
        ..plain
    };
    for options in [plain, part, off, apart] {
        match instrument(text, &options) {
            Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
            Ok(result) => {
                assert!(result.user_text() == text, "{name}: more than insertions");
                let again = parse(&result.text).unwrap_or_else(|e| panic!("{name}: {e}"));
                let beside = result.needs.module(STUB).unwrap();
                let runtime = match options.apart && !result.already_linked {
                    true => parse(&beside).unwrap(),
                    false => again,
                };
                for hook in result.needs.calls.names() {
                    let defines = |i: &Item<'_>| matches!(i, Item::Function(f) if f.name == hook && f.body.is_some());
                    assert!(runtime.items.iter().any(defines), "{name}: {hook}");
                }
                if options.apart {
                    continue;
                }
                let twice = instrument(&result.text, &plain).unwrap();
                assert!(
                    twice.already_linked && twice.text == result.text,
                    "{name}: again"
                );
            }
        }
    }
}

#[test]
fn fixed_inputs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz");
    let mut inputs: Vec<(String, Vec<u8>)> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 5, "{} is incomplete", folder.display());
    inputs.extend(
        common::selection()
            .into_iter()
            .map(|(name, text)| (name, text.into_bytes())),
    );
    for (name, bytes) in &inputs {
        check(name, bytes);
        // Cuts, from the front and from the back.
        for n in 1..12 {
            let at = bytes.len() * n / 12;
            check(name, &bytes[..at]);
            check(name, &bytes[at..]);
        }
    }
}
