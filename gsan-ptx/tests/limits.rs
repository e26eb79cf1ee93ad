//! Time grows with the text and not with its square, whatever the text. Each case is a megabyte or more: something
//! quadratic would take minutes, so the limit need not be tight.

mod common;

use common::{STUB, kernel};
use gsan_ptx::{Options, instrument};
use std::time::{Duration, Instant};

#[test]
fn hostile_texts_take_linear_time() {
    let n = 100_000;
    let many = |piece: &dyn Fn(usize) -> String| (0..n).map(piece).collect::<String>();
    let head = ".version 8.7\n.target sm_90\n.address_size 64\n";
    let cases: Vec<(&str, String)> = vec![
        (
            "names that are nearly reserved",
            kernel(&"x_gsan_".repeat(n)),
        ),
        (
            "nested brackets",
            kernel(&format!("ld.u32 %r1, {};", "[".repeat(n))),
        ),
        (
            "open parentheses",
            kernel(&format!("mov.u32 %r1, {}", "(".repeat(n))),
        ),
        (
            "signs",
            kernel(&format!("mov.u32 %r1, {}1;", "- ".repeat(n))),
        ),
        (
            "a long sum",
            kernel(&format!("mov.u32 %r1, 1{};", "+1".repeat(n))),
        ),
        (
            "one long line of accesses",
            kernel(&"@%p1 ld.acquire.gpu.u32 %r1,[%rd1+4];".repeat(n)),
        ),
        (
            "labels at the end",
            kernel(&many(&|i| format!("bra L{i}; L{i}:"))),
        ),
        (
            "registers declared one by one",
            kernel(&many(&|i| format!(".reg .b64 a{i}; ld.u32 %r1, [a{i}];"))),
        ),
        (
            "chains of inlined calls",
            kernel(&many(&|i| {
                format!(
                    ".loc 1 {} 1, function_name x, inlined_at 1 {i} 1\nld.u32 %r1, [%rd1];\n",
                    i + 1
                )
            })) + ".file 1 \"f\"\n",
        ),
        (
            "a string without an end",
            kernel(&many(&|i| {
                format!(".loc 1 1 1, function_name L{i}, inlined_at 1 2 1\nld.u32 %r1, [%rd1];\n")
            })) + ".file 1 \"f\"\n.section .debug_str {\n"
                + &many(&|i| format!("L{i}:\n.b8 65\n"))
                + "}\n",
        ),
        (
            "unsupported instructions",
            kernel(&"odd [%rd1];\n".repeat(n)),
        ),
        (
            "kernels",
            format!(
                "{head}{}",
                many(&|i| format!(".entry k{i}() {{ setmaxnreg.inc 8; ret; }}\n"))
            ),
        ),
        (
            "an initialiser",
            format!("{head}.global .u32 x[] = {{{}1}};", "{1},".repeat(n)),
        ),
        (
            "files",
            format!("{head}{}", many(&|i| format!(".file {i} \"f{i}\"\n"))),
        ),
        (
            "sections that are never closed",
            format!("{head}{}", ".section .debug_x {".repeat(n)),
        ),
        ("comments that are never closed", kernel(&"/* ".repeat(n))),
        ("quotes", kernel(&"\"\n".repeat(n))),
        (
            "vectors that fit no rule",
            kernel(&format!("x {};", "{a b {c d} e}, ".repeat(n) + "f")),
        ),
    ];
    for (what, text) in cases {
        let started = Instant::now();
        let result = instrument(&text, &Options::new(STUB, "t"));
        let took = started.elapsed();
        assert!(
            took < Duration::from_secs(20),
            "{what}: {took:?} for {} bytes",
            text.len()
        );
        drop(result);
    }
}

#[test]
fn a_large_module_is_quick_and_right() {
    let text = common::selection()
        .into_iter()
        .find(|(n, _)| n.contains("cub_scan"))
        .unwrap()
        .1;
    let functions =
        &text[text.find(".visible .entry").unwrap()..text.find(".section").unwrap_or(text.len())];
    let head = &text[..text.find(".visible .entry").unwrap()];
    let tail = &text
        [text.find("\t.file").unwrap_or(text.len())..text.find("\t.section").unwrap_or(text.len())];
    let copies = 20;
    let large = format!("{head}{}{tail}", functions.repeat(copies));
    let one = instrument(&text, &Options::new(STUB, "t")).unwrap();
    let started = Instant::now();
    let many = instrument(&large, &Options::new(STUB, "t")).unwrap();
    let took = started.elapsed();
    eprintln!("{:.1} MB in {took:?}", large.len() as f64 / 1e6);
    assert_eq!(many.sites.len(), copies * one.sites.len());
    assert_eq!(many.entries.len(), copies * one.entries.len());
    assert!(took < Duration::from_secs(20));
}
