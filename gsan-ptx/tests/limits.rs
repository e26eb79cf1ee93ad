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
            "addresses made in scopes of their own",
            kernel(&many(&|i| {
                format!("{{ .reg .b64 q{i}; cvta.shared.u64 q{i}, %rd1; st.u32 [q{i}], 1; }}\n")
            })),
        ),
        (
            "a chain of copies that ends in no address",
            kernel(&format!(
                ".reg .b64 z<{n}>; cvta.local.u64 %rd1, %rd2; {}",
                many(&|i| format!(
                    "mov.b64 z{}, z{i}; add.s64 %rd3, z{i}, %rd4; st.u32 [%rd3], 1;",
                    i + 1
                ))
            )),
        ),
        (
            "one sum after the other into one register",
            kernel(&many(&|i| {
                format!(
                    "cvta.local.u64 %rd{}, %rd1; mul.lo.u64 %rd4, %rd5, 8; add.u64 %rd6, %rd3, %rd4;",
                    i % 3
                )
            })),
        ),
        (
            "variables",
            format!("{head}{}", many(&|i| format!(".const .u32 v{i};\n")))
                + &kernel(&many(&|i| format!("ld.u32 %r1, [v{i}];\n")))[head.len()..],
        ),
        (
            "variables in scopes",
            kernel(&many(&|i| {
                format!("{{ .shared .u32 s{i}; st.u32 [s{i}], 1; }}\n")
            })),
        ),
        (
            "calls of what is not there",
            kernel(&many(&|i| format!("call.uni f{i}, ();"))),
        ),
        (
            "a chain of functions and kernels that allow no calls",
            format!("{head}.func f0() {{ membar.gl; ld.global.u32 %a, [%b]; ret; }}\n")
                + &many(&|i| format!(".func f{}() {{ bar.sync 0; call.uni f{i}, (); }}\n", i + 1))
                + &many(&|i| {
                    format!(
                        ".entry k{i}() .maxnreg 168 {{ call.uni f{i}, (); setmaxnreg.dec 40; }}\n"
                    )
                }),
        ),
        (
            "calls through registers",
            format!(
                "{head}{}",
                many(&|i| format!(".func f{i}() {{ bar.sync 0; call %rd1, (), P; }}\n"))
            ) + &many(&|i| {
                format!(".entry k{i}() {{ ld.global.u32 %a, [%b]; call %rd1, (), P; }}\n")
            }),
        ),
        (
            "other names of functions",
            format!(
                "{head}.func f() {{ ret; }}\n{}",
                many(&|i| format!(".alias a{i}, f;\n"))
            ) + &kernel(&many(&|i| format!("call.uni a{i}, ();")))[head.len()..],
        ),
        (
            "a table of jumps",
            kernel(&format!(
                "T: .branchtargets {}L; brx.idx %r1, T; {}L:",
                many(&|i| format!("L{i}, ")),
                many(&|i| format!("L{i}: ld.global.u32 %r1, [%rd1];\n"))
            )),
        ),
        (
            "sizes of shared memory",
            kernel(&"mov.u32 %r1, %dynamic_smem_size;\n".repeat(n)),
        ),
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
        if let Err(error) = result {
            eprintln!("{what}: {error}");
        }
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
