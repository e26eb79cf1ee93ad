//! Damaged files: whatever happens to a real module's text, parser and instrumenter answer, and what they accept holds.

mod common;

use common::{Random, STUB};
use gsan_ptx::link::link;
use gsan_ptx::{Options, instrument, parse, parse_bytes};

/// Accepts or refuses; what is accepted after instrumentation must parse again.
fn try_both(text: &str) -> bool {
    match instrument(text, &Options::new(STUB, "mutant")) {
        Ok(result) => {
            assert!(result.text.lines().count() >= text.lines().count());
            assert!(result.user_text() == text, "more than insertions:\n{text}");
            if let Err(error) = parse(&result.text) {
                panic!(
                    "the instrumented mutant does not parse: {}\n{}",
                    error.render("out", &result.text),
                    text
                );
            }
            // Linked with itself it clashes; where weak definitions give way to each other, it parses again.
            let weak = text.replace(".visible", ".weak");
            for (first, second) in [(text, text), (&weak, &weak), (text, &weak)] {
                match link(&[("one", first), ("two", second)]) {
                    Ok(linked) => assert!(parse(&linked).is_ok(), "{linked}"),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// Small files, so that many mutants fit in a second or two.
fn seeds() -> Vec<(String, String)> {
    common::selection()
        .into_iter()
        .filter(|(_, text)| text.len() < 20_000)
        .collect()
}

#[test]
fn a_truncated_file_is_an_error() {
    for (name, text) in seeds() {
        let end = text.rfind('}').unwrap();
        let mut at = text.find('{').unwrap() + 1;
        while at < end {
            if text.is_char_boundary(at) {
                let cut = &text[..at];
                // Between two functions the rest is a module of its own: only there may it be accepted.
                let opened = cut.matches('{').count() - cut.matches('}').count();
                match parse(cut) {
                    Ok(_) => assert_eq!(opened, 0, "{name} cut at {at} was accepted"),
                    Err(error) => {
                        assert!(error.line <= cut.lines().count() + 1 && error.offset <= cut.len())
                    }
                }
            }
            at += 1 + at % 37;
        }
    }
}

#[test]
fn mutants_of_bytes() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0, 0);
    for (_, text) in seeds() {
        for _ in 0..60 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(5) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes.insert(at, random.next() as u8),
                    2 => bytes[at] = b"{}[](),;:@!%._\"/*\n0f-+|<>"[random.below(25)],
                    3 => bytes[at] = random.next() as u8,
                    _ => {
                        let to = (at + random.below(200)).min(bytes.len());
                        drop(bytes.drain(at..to));
                    }
                }
            }
            if parse_bytes(&bytes).is_err() {
                refused += 1;
            }
            if let Ok(text) = std::str::from_utf8(&bytes) {
                accepted += usize::from(try_both(text));
            }
        }
    }
    // Both must happen, or the mutants test nothing.
    assert!(
        accepted > 100 && refused > 100,
        "{accepted} accepted, {refused} refused"
    );
}

#[test]
fn mutants_of_lines() {
    let mut random = Random(42);
    let mut accepted = 0;
    for (_, text) in seeds() {
        let lines: Vec<&str> = text.lines().collect();
        for _ in 0..30 {
            let mut lines = lines.clone();
            for _ in 0..=random.below(6) {
                let (a, b) = (random.below(lines.len()), random.below(lines.len()));
                match random.below(3) {
                    0 => lines.swap(a, b),
                    1 => drop(lines.remove(a)),
                    _ => lines.insert(a, lines[b]),
                }
            }
            accepted += usize::from(try_both(&lines.join("\n")));
        }
    }
    assert!(accepted > 100, "{accepted}");
}
