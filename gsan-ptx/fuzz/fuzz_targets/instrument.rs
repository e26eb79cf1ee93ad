//! Any bytes: tokens cover them, the parser answers, and what is instrumented is the user's text with insertions that
//! parses again. `fuzz/README.md` says how to run it.
#![no_main]

use gsan_ptx::ast::Item;
use gsan_ptx::tokens::Tokens;
use gsan_ptx::{Options, instrument, parse, parse_bytes};
use libfuzzer_sys::fuzz_target;

const RUNTIME: &str = include_str!("../../tests/data/stub_runtime.ptx");

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_bytes(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let tokens = Tokens::new(text);
    let mut end = 0;
    for i in 0..tokens.len() {
        assert_eq!(tokens.start(i), end);
        end = tokens.end(i);
    }
    assert_eq!(end, text.len());

    // The length picks the options.
    let options = Options {
        intra_block: bytes.len() % 8 != 1,
        part: bytes.len() % 8 == 2,
        stale_nc: bytes.len() % 8 != 3,
        apart: bytes.len() % 8 > 5,
        ..Options::new(RUNTIME, "fuzz")
    };
    match instrument(text, &options) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(result) => {
            assert!(result.user_text() == text, "more than insertions");
            let again = parse(&result.text).unwrap();
            // What is called is there: in the text, or in what is linked with it.
            let apart = result.needs.module(RUNTIME).unwrap();
            let runtime = if options.apart && !result.already_linked {
                parse(&apart).unwrap()
            } else {
                again
            };
            for hook in result.needs.calls.names() {
                let defines =
                    |i: &Item| matches!(i, Item::Function(f) if f.name == hook && f.body.is_some());
                assert!(runtime.items.iter().any(defines), "{hook}");
            }
            if options.apart {
                return;
            }
            // Instrumented text is recognised and left alone.
            let twice = instrument(&result.text, &Options::new(RUNTIME, "fuzz")).unwrap();
            assert!(twice.already_linked && twice.text == result.text);
        }
    }
});
