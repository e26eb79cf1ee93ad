//! Tokens are lossless, whatever the text.

mod common;

use gsan_ptx::tokens::{Kind, Tokens, one_line};
use proptest::prelude::*;

fn check_lossless(text: &str) {
    let tokens = Tokens::new(text);
    let mut joined = String::new();
    for i in 0..tokens.len() {
        assert!(!tokens.text(i).is_empty(), "token {i} is empty");
        joined.push_str(tokens.text(i));
    }
    assert_eq!(joined, text);
}

fn kinds(text: &str) -> Vec<(Kind, &str)> {
    let tokens = Tokens::new(text);
    (0..tokens.len())
        .filter(|&i| tokens.kind(i) != Kind::Space)
        .map(|i| (tokens.kind(i), tokens.text(i)))
        .collect()
}

#[test]
fn the_corpus_is_kept() {
    for (_, text) in common::selection() {
        check_lossless(&text);
    }
    for (_, text) in common::whole_corpus("the_corpus_is_kept").unwrap_or_default() {
        check_lossless(&text);
        let tokens = Tokens::new(&text);
        let odd: Vec<_> = (0..tokens.len())
            .filter(|&i| tokens.kind(i) == Kind::Unknown)
            .collect();
        // LLVM writes `$L__sec_end0-$L__func_begin0`, all of which are tokens; nothing else is unknown either.
        assert!(
            odd.is_empty(),
            "{:?}",
            odd.iter().map(|&i| tokens.text(i)).collect::<Vec<_>>()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_kept(text in any::<String>()) {
        check_lossless(&text);
    }

    #[test]
    fn anything_like_ptx_is_kept(parts in proptest::collection::vec(prop_oneof![
        Just("ld"), Just(".global"), Just(".2d"), Just("::"), Just("."), Just("0f3F"), Just("0x"), Just("1e+"), Just("1."),
        Just("\""), Just("\\"), Just("/*"), Just("*/"), Just("//"), Just("\n"), Just("#"), Just("%"), Just("$"), Just("é"),
        Just("["), Just("]"), Just("{"), Just("}"), Just("<"), Just(";"), Just("@!"), Just("\r\n"), Just("\u{0}"), Just(" "),
    ], 0..40)) {
        check_lossless(&parts.concat());
    }

    #[test]
    fn one_line_is_one_line_and_says_the_same(text in "[a-z0-9.,;/* \n\"]{0,60}") {
        let line = one_line(&text);
        let words = |text: &str| -> Vec<String> {
            let tokens = Tokens::new(text);
            (0..tokens.len()).filter(|&i| !tokens.kind(i).is_trivia()).map(|i| tokens.text(i).to_string()).collect()
        };
        // What is never closed takes whatever follows: there the two may differ.
        let tokens = Tokens::new(&text);
        let unclosed = |i: usize| matches!(tokens.kind(i), Kind::UnclosedComment | Kind::UnclosedString);
        if !(0..tokens.len()).any(unclosed) {
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(words(&line), words(&text));
        }
    }
}

#[test]
fn words_that_are_easily_split_wrongly() {
    use Kind::*;
    let cases: &[(&str, &[(Kind, &str)])] = &[
        (
            "tcgen05.alloc.cta_group::1.sync.aligned",
            &[
                (Ident, "tcgen05"),
                (DotWord, ".alloc"),
                (DotWord, ".cta_group::1"),
                (DotWord, ".sync"),
                (DotWord, ".aligned"),
            ],
        ),
        (
            "cp.2d.L2::256B",
            &[(Ident, "cp"), (DotWord, ".2d"), (DotWord, ".L2::256B")],
        ),
        (
            ".mbarrier::complete_tx::bytes",
            &[(DotWord, ".mbarrier::complete_tx::bytes")],
        ),
        (".128x256b", &[(DotWord, ".128x256b")]),
        ("0f3F800000", &[(Number, "0f3F800000")]),
        ("0d3FF0000000000000", &[(Number, "0d3FF0000000000000")]),
        (
            "1.5e-3,12U",
            &[(Number, "1.5e-3"), (Comma, ","), (Number, "12U")],
        ),
        (
            "[%rd1+-8]",
            &[
                (LBracket, "["),
                (Ident, "%rd1"),
                (Plus, "+"),
                (Minus, "-"),
                (Number, "8"),
                (RBracket, "]"),
            ],
        ),
        ("0x1e+4", &[(Number, "0x1e"), (Plus, "+"), (Number, "4")]),
        ("$L__BB0_1:", &[(Ident, "$L__BB0_1"), (Colon, ":")]),
        ("%tid.x", &[(Ident, "%tid"), (DotWord, ".x")]),
        (
            "%r<24>",
            &[(Ident, "%r"), (Lt, "<"), (Number, "24"), (Gt, ">")],
        ),
        ("@!p", &[(At, "@"), (Bang, "!"), (Ident, "p")]),
        ("a % b", &[(Ident, "a"), (Percent, "%"), (Ident, "b")]),
        ("\"a\\\"b\"", &[(String, "\"a\\\"b\"")]),
        ("\"open", &[(UnclosedString, "\"open")]),
        ("/* open", &[(UnclosedComment, "/* open")]),
        (
            "a/**/b",
            &[(Ident, "a"), (BlockComment, "/**/"), (Ident, "b")],
        ),
        ("é", &[(Unknown, "é")]),
        (".", &[(Unknown, ".")]),
    ];
    for (text, expected) in cases {
        assert_eq!(kinds(text), *expected, "{text}");
    }
}
