//! The tree, and the errors.

mod common;

use common::{flat, kernel};
use gsan_ptx::ast::*;
use gsan_ptx::parse::{MAX_NESTING, parse, parse_bytes};
use proptest::prelude::*;

fn instruction(text: &str) -> Instruction<'static> {
    let text: &'static str = Box::leak(kernel(text).into_boxed_str());
    let module = parse(text).unwrap_or_else(|e| panic!("{}", e.render("t", text)));
    let found = flat(&module).into_iter().find_map(|s| match s {
        Statement::Instruction(i) => Some((**i).clone()),
        _ => None,
    });
    found.expect("an instruction")
}

fn operands(text: &str) -> Vec<Operand<'static>> {
    instruction(text).operands
}

fn address(base: Option<&'static str>, offset: i64, text: &'static str) -> Operand<'static> {
    Operand::Address(Address { base, offset, text })
}

#[test]
fn every_file_of_the_corpus_parses() {
    for (name, text) in common::selection()
        .into_iter()
        .chain(common::whole_corpus("parser").unwrap_or_default())
    {
        let module = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&name, &text)));
        assert!(
            module.version.is_some() && !module.target.is_empty(),
            "{name}"
        );
        assert_eq!(
            text[module.version_span.clone()].split('.').count(),
            2,
            "{name}"
        );
        let functions = module
            .items
            .iter()
            .filter(|i| matches!(i, Item::Function(_)))
            .count();
        assert!(functions > 0, "{name}");
        for statement in flat(&module) {
            match statement {
                Statement::Unknown { span } => {
                    panic!("{name}: unknown statement {}", &text[span.clone()])
                }
                Statement::Instruction(i) => {
                    let raw = i.operands.iter().any(|o| matches!(o, Operand::Raw(_)));
                    assert!(
                        !raw,
                        "{name}: operand not understood in {}",
                        &text[i.span.clone()]
                    );
                    assert!(text[i.span.clone()].ends_with(';'));
                    assert!(text[i.span.clone()].contains(i.opcode));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn operands_of_all_forms() {
    use Operand::*;
    assert_eq!(
        operands("add.s32 %r1, %r2, -7;"),
        [Name("%r1"), Name("%r2"), Int(-7)]
    );
    assert_eq!(
        operands("mov.u32 %r1, %tid.x;"),
        [Name("%r1"), Name("%tid.x")]
    );
    assert_eq!(
        operands("mov.u64 %r1, 0xFFFFFFFFFFFFFFFFU;"),
        [Name("%r1"), Int(u64::MAX.into())]
    );
    assert_eq!(operands("mov.u64 %r1, 0b101; "), [Name("%r1"), Int(5)]);
    assert_eq!(operands("mov.u64 %r1, 017;"), [Name("%r1"), Int(15)]);
    assert_eq!(
        operands("mov.f32 %f1, 0f3F800000;"),
        [Name("%f1"), F32(0x3f80_0000)]
    );
    assert_eq!(
        operands("mov.f32 %f1, -0f3F800000;"),
        [Name("%f1"), F32(0xbf80_0000)]
    );
    assert_eq!(
        operands("mov.f64 %f1, 1.5;"),
        [Name("%f1"), F64(1.5f64.to_bits())]
    );
    assert_eq!(
        operands("mov.f64 %f1, 1e3;"),
        [Name("%f1"), F64(1e3f64.to_bits())]
    );
    assert_eq!(
        operands("mov.u32 %r1, (1+2)*4 - 6/2;"),
        [Name("%r1"), Int(9)]
    );
    assert_eq!(
        operands("mov.u32 %r1, WARP_SZ;"),
        [Name("%r1"), Name("WARP_SZ")]
    );
    assert_eq!(
        operands("mov.u64 %rd1, sym+4;"),
        [Name("%rd1"), NameOffset("sym", 4)]
    );
    assert_eq!(
        operands("ld.global.u32 %r1, [%rd1];"),
        [Name("%r1"), address(Some("%rd1"), 0, "%rd1")]
    );
    assert_eq!(
        operands("ld.global.u32 %r1, [%rd1+-8];"),
        [Name("%r1"), address(Some("%rd1"), -8, "%rd1+-8")]
    );
    assert_eq!(
        operands("ld.u32 %r1, [ %rd7 + 0 ];"),
        [Name("%r1"), address(Some("%rd7"), 0, "%rd7 + 0")]
    );
    assert_eq!(
        operands("ld.u32 %r1, [%rd1+(4*2)];"),
        [Name("%r1"), address(Some("%rd1"), 8, "%rd1+(4*2)")]
    );
    assert_eq!(
        operands("ld.u32 %r1, [sym+16];"),
        [Name("%r1"), address(Some("sym"), 16, "sym+16")]
    );
    assert_eq!(
        operands("ld.u32 %r1, [64];"),
        [Name("%r1"), address(None, 64, "64")]
    );
    assert_eq!(
        operands("ld.v2.u32 {%r1, _}, [%rd1];")[0],
        Vector(vec![Name("%r1"), Sink])
    );
    assert_eq!(
        operands("setp.eq.and.s32 %p1|%p2, %r1, %r2, !%p3;")[0],
        Pair(Name("%p1").into(), Name("%p2").into())
    );
    assert_eq!(
        operands("setp.eq.and.s32 %p1|%p2, %r1, %r2, !%p3;")[3],
        Not(Name("%p3").into())
    );
    assert_eq!(
        operands("cp.x [%r1], [%rd1, {%r2, %r3}], [%r4];")[1],
        Tensor(vec![Name("%rd1"), Vector(vec![Name("%r2"), Name("%r3")])])
    );
    assert_eq!(
        operands("call (ret0), %rd5, (p0, 4), proto;"),
        [
            List(vec![Name("ret0")]),
            Name("%rd5"),
            List(vec![Name("p0"), Int(4)]),
            Name("proto")
        ]
    );
    assert_eq!(operands("call.uni f, ();"), [Name("f"), List(vec![])]);
    // Array elements: kept as they stand, so that nobody takes them for something else.
    assert_eq!(
        operands("ld.global.u32 %r1, tab[3];"),
        [Name("%r1"), Raw("tab[3]")]
    );
    assert_eq!(
        operands("ld.global.u32 %r1, [tab[3]];"),
        [Name("%r1"), Raw("[tab[3]]")]
    );
}

#[test]
fn modifiers_keep_their_order_and_their_colons() {
    let i = instruction(
        "@!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
    );
    assert_eq!(
        i.guard,
        Some(Guard {
            negated: true,
            register: "%p1"
        })
    );
    assert_eq!(i.opcode, "cp");
    assert_eq!(
        i.modifiers,
        [
            "async",
            "bulk",
            "tensor",
            "2d",
            "shared::cluster",
            "global",
            "mbarrier::complete_tx::bytes"
        ]
    );
    assert!(i.has("2d") && !i.has("3d"));
    assert_eq!(
        instruction("add .s32\n/* c */ %r1, // d\n %r2, 1;").full_name(),
        "add.s32"
    );
}

#[test]
fn declarations() {
    let text = ".version 8.7\n.target sm_90a, debug\n.address_size 64\n\
        .global .align 8 .u64 table[2] = {generic(a)+8, f0};\n\
        .const .align 4 .b8 grid[2][3] = {{1, 2, 3}, {4}};\n\
        .visible .global .attribute(.managed) .align 4 .f32 x = 1.5, y = 0f3F800000;\n\
        .global .b8 masked[2] = {0xFF(a), 0xFF00(a+4)};\n\
        .extern .shared .align 16 .b8 smem[];\n\
        .weak .func (.param .b32 r) f(.reg .u32 n) .noreturn ;\n\
        .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24])\n\
        .maxntid 256, 1, 1 .minnctapersm 2 .pragma \"x\";\n{ ret; }\n\
        .entry bare .reqntid 32 { ret; }\n.file 1 \"dir\" \"a.cu\"\n.file 2 \"b.cu\", 123, 456\n.alias f, g;\n";
    let module = parse(text).unwrap();
    assert_eq!(module.version, Some((8, 7)));
    assert_eq!(module.target, ["sm_90a", "debug"]);
    assert_eq!(module.files.len(), 2);
    assert_eq!(
        (module.files[0].directory, module.files[0].name),
        (Some("dir"), "a.cu")
    );
    assert_eq!(
        (module.files[1].directory, module.files[1].name),
        (None, "b.cu")
    );
    let variables: Vec<&Variable> = module
        .items
        .iter()
        .filter_map(|i| match i {
            Item::Variable(v) => Some(v),
            _ => None,
        })
        .collect();
    let init = |n: usize| variables[n].init.as_ref().unwrap();
    assert!(matches!(
        init(0)[0],
        Init::Symbol {
            name: "a",
            offset: 8,
            generic: true,
            mask: None
        }
    ));
    assert!(matches!(
        init(0)[1],
        Init::Symbol {
            name: "f0",
            offset: 0,
            generic: false,
            mask: None
        }
    ));
    // The full row is merged, the short one stays a row.
    assert!(
        matches!(&init(1)[..], [Init::Int(1), Init::Int(2), Init::Int(3), Init::Nested(row)] if row.len() == 1)
    );
    assert!(
        variables[2].managed && variables[2].name == "x" && variables[2].linkage == Some("visible")
    );
    assert!(matches!(init(2)[0], Init::Float(f) if f == 1.5));
    assert!(variables[3].name == "y" && matches!(init(3)[0], Init::Int(0x3f80_0000)));
    assert!(matches!(
        init(4)[1],
        Init::Symbol {
            name: "a",
            offset: 4,
            mask: Some(0xff00),
            ..
        }
    ));
    assert_eq!(
        (variables[5].space, variables[5].dims.as_slice()),
        (Space::Shared, [None].as_slice())
    );
    let functions: Vec<&Function> = module
        .items
        .iter()
        .filter_map(|i| match i {
            Item::Function(f) => Some(f),
            _ => None,
        })
        .collect();
    assert!(
        functions[0].body.is_none()
            && functions[0].attributes[0].name == "noreturn"
            && !functions[0].entry
    );
    assert_eq!(functions[0].params[0].space, Space::Reg);
    let k = functions[1];
    assert_eq!(k.params[0].ptr, Some((Some(Space::Global), Some(16))));
    assert_eq!(
        (k.params[1].align, k.params[1].dims.as_slice()),
        (Some(8), [Some(24)].as_slice())
    );
    assert_eq!(k.attributes[0].values, [256, 1, 1]);
    assert_eq!(&text[k.params_end.unwrap()..][..1], ")");
    let body = k.body.as_ref().unwrap();
    assert_eq!(
        (
            &text[body.start - 1..body.start],
            &text[body.end..=body.end]
        ),
        ("{", "}")
    );
    assert_eq!(functions[2].params_end, None);
    assert_eq!(
        &text[functions[2].name_end - 4..functions[2].name_end],
        "bare"
    );
    assert!(
        module
            .items
            .iter()
            .any(|i| matches!(i, Item::Other { name: ".alias", .. }))
    );
}

#[test]
fn statements_of_all_kinds() {
    let text = kernel(
        ".loc 1 7\n 3, function_name $L__i+4, inlined_at 2 8 9\n.pragma \"nounroll\";\n.shared .align 4 .b8 t[16];\n\
         L: { .reg .b32 a, b<4>; M: bra L; } ts: .branchtargets L, N; pr: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn; N:",
    );
    let module = parse(&text).unwrap();
    let list = flat(&module);
    assert!(list.iter().any(|s| matches!(
        s,
        Statement::Loc(Loc {
            file: 1,
            line: 7,
            column: 3,
            function_name: Some(("$L__i", 4)),
            inlined_at: Some((2, 8, 9)),
            ..
        })
    )));
    assert!(list.iter().any(|s| matches!(
        s,
        Statement::Pragma {
            text: "nounroll",
            ..
        }
    )));
    assert!(
        list.iter().any(
            |s| matches!(s, Statement::Variable(v) if v.name == "t" && v.space == Space::Shared)
        )
    );
    assert!(list.iter().any(|s| matches!(s, Statement::Registers { ty: "b32", names, .. } if *names == [("a", None), ("b", Some(4))])));
    assert!(list.iter().any(
        |s| matches!(s, Statement::Targets { name: "ts", targets, .. } if *targets == ["L", "N"])
    ));
    assert!(list.iter().any(|s| matches!(s, Statement::CallPrototype { name: "pr", returns, params, .. } if returns.len() == 1 && params.len() == 1)));
    assert_eq!(
        list.iter()
            .filter(|s| matches!(s, Statement::Label { .. }))
            .count(),
        3
    );
}

/// What is wrong, where, and the words that must be in the message.
#[track_caller]
fn fails(text: &str, line: usize, words: &str) {
    let error = parse(text).expect_err("it must not parse");
    assert!(error.message.contains(words), "{error}");
    assert_eq!(error.line, line, "{error}");
    let shown = error.render("f.ptx", text);
    assert!(
        shown.contains(&format!("f.ptx:{line}:{}", error.column)),
        "{shown}"
    );
}

#[test]
fn errors_say_what_and_where() {
    let head = ".version 8.7\n.target sm_90\n.address_size 64\n";
    fails("", 1, "empty");
    fails("// nothing\n", 1, "empty");
    fails("hello world", 1, "begins a PTX file");
    fails(".target sm_90\n", 1, "no `.version`");
    fails(".version x\n", 1, "version number");
    fails(
        &format!("{head}.entry k() {{\n ret;\n"),
        6,
        "`}` for the `{` of line 4 is missing",
    );
    fails(
        &format!("{head}.entry k() {{\n add.s32 %r1, %r2"),
        5,
        "truncated",
    );
    fails(
        &format!("{head}.entry k() {{\n add.s32 %r1, %r2\n ret;\n}}"),
        5,
        "expected `;`",
    );
    fails(
        &format!("{head}.entry k(\n .param .u64 a"),
        5,
        "parameter list",
    );
    fails(&format!("{head}.entry k() {{ }} }}"), 4, "closes nothing");
    fails(
        &format!("{head}.entry k() {{ /* never\n"),
        4,
        "never closed",
    );
    fails(&format!("{head}.file 1 \"open\n"), 4, "not closed");
    fails(&format!("{head}.global .u32 x[y];"), 4, "array size");
    fails(&format!("{head}.global .u32 x = {{1, 2"), 4, "truncated");
    fails(&format!("{head}.section .debug_str {{ .b8 1"), 4, "opens");
    fails(&format!("{head}\u{1}\u{2}"), 4, "expected a directive");
}

#[test]
fn the_caret_stands_under_the_place() {
    let text = ".version 8.7\n.target sm_90\n.entry k() { add.s32 %r1, é; ? }\n";
    let error = parse(text).unwrap_err();
    let shown = error.render("k.ptx", text);
    let lines: Vec<&str> = shown.lines().collect();
    let caret = lines[4].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[3].chars().nth(caret), Some('?'), "{shown}");
    // A file that is cut off ends behind its last line break.
    let text = ".version 8.7\n.target sm_90\n.entry k() {\nret;\n";
    let shown = parse(text).unwrap_err().render("k.ptx", text);
    assert!(shown.ends_with("\n5 | \n  | ^\n"), "{shown}");
}

#[test]
fn bytes_that_are_no_text() {
    let error = parse_bytes(b".version 8.7\n.target \xff\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 9));
    assert!(error.message.contains("UTF-8"));
    assert!(
        parse_bytes(b"\x7fELF\x02\x01\xff")
            .unwrap_err()
            .message
            .contains("cuobjdump")
    );
    assert!(
        parse_bytes(b".version 8.7\n.target sm_90\n\0").is_ok(),
        "a NUL at the end is how drivers take it"
    );
    assert!(parse_bytes(b"").is_err() && parse_bytes(b"\0\0").is_err());
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let nested =
        |open: &str, close: &str, n: usize| format!("{}{}", open.repeat(n), close.repeat(n));
    assert!(parse(&kernel(&nested("{", "}", MAX_NESTING - 2))).is_ok());
    for n in [MAX_NESTING + 2, 1_000, 1_000_000] {
        assert!(parse(&kernel(&nested("{", "}", n))).is_err());
        assert!(parse(&kernel(&format!("mov.b32 {}, 1;", nested("{a,", "b}", n)))).is_err());
        assert!(parse(&kernel(&format!("ld.u32 %r1, {};", nested("[", "]", n)))).is_err());
        assert!(
            parse(&format!(
                ".version 8.7\n.global .u32 x[] = {};",
                nested("{", "}", n)
            ))
            .is_err()
        );
        // Constant expressions fall back to text.
        assert!(
            parse(&kernel(&format!(
                "mov.u32 %r1, {};",
                nested("(1+", "2)", n)
            )))
            .is_ok()
        );
        assert!(parse(&kernel(&format!("mov.u32 %r1, {}1;", "-".repeat(n)))).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_crash_the_parser(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = parse_bytes(&bytes) {
            error.render("x", &String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn no_words_crash_the_parser(words in proptest::collection::vec(prop_oneof![
        Just("ld"), Just(".global"), Just(".reg"), Just(".b32"), Just("%r"), Just("<"), Just("4"), Just(">"), Just(";"), Just(","),
        Just("["), Just("]"), Just("{"), Just("}"), Just("("), Just(")"), Just("@"), Just("!"), Just("|"), Just("+"), Just("-"),
        Just(":"), Just("="), Just("?"), Just(".loc"), Just(".entry"), Just(".func"), Just(".file"), Just("\"s\""), Just(".param"),
        Just("call"), Just("_"), Just(".section"), Just(".version"), Just("8.7"), Just(".branchtargets"), Just(".callprototype"),
        Just(".align"), Just(".pragma"), Just("1.5"), Just("\n"), Just("WARP_SZ"), Just("generic"), Just("/*"), Just(".attribute"),
    ], 0..60), inside in any::<bool>()) {
        let text = words.join(" ");
        let text = if inside { kernel(&text) } else { format!(".version 8.7\n{text}") };
        if let Err(error) = parse(&text) {
            error.render("x", &text);
        }
    }

    #[test]
    fn constant_expressions_are_c(a in -50i64..50, b in 1i64..9, c in 0i64..20) {
        let text = format!("mov.s64 %rd1, {a} + {b} * ({c} - {a}) / {b} % 7 << 2 | {c} & 3 ^ {b};");
        let expected = ((a + b * (c - a) / b % 7) << 2) | ((c & 3) ^ b);
        // C has & before ^ before |.
        prop_assert_eq!(operands(&text)[1].clone(), Operand::Int(expected.into()));
    }
}
