//! Several modules made one.

mod common;

use common::STUB;
use gsan_ptx::ast::Item;
use gsan_ptx::link::{LinkError, link};
use gsan_ptx::{Options, instrument, parse};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn both(a: &str, b: &str) -> Result<String, LinkError> {
    let (a, b) = (format!("{HEAD}{a}"), format!("{HEAD}{b}"));
    link(&[("a.ptx", &a), ("b.ptx", &b)])
}

/// Names of what the result defines, in order.
fn defined(text: &str) -> Vec<String> {
    let module = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let items = module.items.iter().filter_map(|item| match item {
        Item::Function(f) => f.body.as_ref().map(|_| f.name.to_string()),
        Item::Variable(v) => (v.linkage != Some("extern")).then(|| v.name.to_string()),
        _ => None,
    });
    items.collect()
}

#[test]
fn declarations_meet_their_definitions() {
    let linked = both(
        ".extern .func f(.param .b64 p);\n.extern .global .u32 n[4];\n.visible .entry k() { call.uni f, (1); st.global.u32 [n], 1; ret; }\n",
        ".visible .global .u32 n[4];\n.visible .func f(.param .b64 p) { ret; }\n",
    )
    .unwrap();
    assert_eq!(defined(&linked), ["k", "n", "f"]);
    assert!(!linked.contains(".extern .global"), "{linked}");
    assert_eq!(linked.matches(".version").count(), 1);
    assert_eq!(linked.matches(".address_size").count(), 1);
}

#[test]
fn private_names_stay_private() {
    let text = ".global .u32 n;\n.func f() { .reg .u32 %r; st.global.u32 [n], 1; ret; }\n";
    let a = format!("{text}.visible .entry a() {{ call.uni f, (); ret; }}\n");
    let b = format!(".func f();\n{text}.visible .entry b() {{ call.uni f, (); ret; }}\n");
    let linked = both(&a, &b).unwrap();
    assert_eq!(
        defined(&linked),
        ["n$part0", "f$part0", "a", "n$part1", "f$part1", "b"]
    );
    assert!(
        linked.contains("b() { call.uni f$part1, (); ret; }"),
        "{linked}"
    );
    assert!(linked.contains(".func f$part1();") && linked.contains("st.global.u32 [n$part1], 1;"));
    // A name that is taken by chance.
    let odd = format!("{a}.global .u32 f$part0;\n");
    assert!(defined(&both(&odd, &b).unwrap()).contains(&"f$part1".to_string()));
    // Private here and public there are two things.
    let linked = both(".global .u32 n;\n", ".visible .global .u32 n;\n").unwrap();
    assert_eq!(defined(&linked), ["n$part0", "n"]);
    // What only one module has keeps its name.
    let linked = both(".global .u32 n;\n", ".global .u32 m;\n").unwrap();
    assert_eq!(defined(&linked), ["n", "m"]);
}

#[test]
fn of_weak_definitions_one_stays() {
    let weak = ".weak .global .u32 w = 1;\n.weak .func f() { ret; }\n";
    assert_eq!(defined(&both(weak, weak).unwrap()), ["w", "f"]);
    let strong = ".visible .global .u32 w = 2;\n.visible .func f() { trap; ret; }\n";
    for linked in [both(weak, strong), both(strong, weak)] {
        let linked = linked.unwrap();
        assert_eq!(defined(&linked), ["w", "f"]);
        assert!(
            linked.contains("w = 2;") && linked.contains("trap;"),
            "{linked}"
        );
    }
    let error = both(strong, strong).unwrap_err();
    assert!(
        matches!(&error, LinkError::DefinedTwice { name, first, second } if name == "w" && first == "a.ptx" && second == "b.ptx"),
        "{error}"
    );
    let torn = both(".visible .global .u32 w;\n", ".weak .global .u32 x, w;\n").unwrap_err();
    assert!(
        matches!(&torn, LinkError::OneDeclaration { name, .. } if name == "x"),
        "{torn}"
    );
    let together = both(
        ".visible .global .u32 w, x;\n",
        ".weak .global .u32 x, w;\n",
    )
    .unwrap();
    assert_eq!(defined(&together), ["w", "x"]);
}

#[test]
fn files_are_told_apart_and_lines_keep_their_distance() {
    let a = ".file 1 \"a.cu\"\n.file 3 \"h.h\"\n.visible .entry a() {\n.loc 1 5 0\nret; }\n";
    let b = "// first\n.file 1 \"b.cu\"\n.visible .entry b() {\n.loc 1 7 0, function_name $x, inlined_at 1 9 1\nret; }\n.section .debug_str\n{\n$x: .b8 0\n}\n.global .u32 last;\n";
    let linked = both(a, b).unwrap();
    let module = parse(&linked).unwrap();
    let files: Vec<_> = module.files.iter().map(|f| (f.index, f.name)).collect();
    assert_eq!(files, [(1, "a.cu"), (3, "h.h"), (4, "b.cu")]);
    assert!(
        linked.contains(".loc 4 7 0, function_name $x, inlined_at 4 9 1"),
        "{linked}"
    );
    assert!(!linked.contains(".section"));
    let lines: Vec<&str> = linked.lines().collect();
    let first = HEAD.lines().count() + a.lines().count();
    for (n, line) in format!("{HEAD}{b}").lines().enumerate() {
        if line.contains(".entry") || line.contains("last") || line.contains("ret;") {
            assert_eq!(lines[first + n], line);
        }
    }
}

#[test]
fn the_newest_version_counts() {
    let text = |version: &str| format!(".version {version}\n.target sm_80\n.address_size 64\n");
    let (old, new) = (text("7.0"), text("8.10"));
    for parts in [
        [("o", &old[..]), ("n", &new[..])],
        [("n", &new[..]), ("o", &old[..])],
    ] {
        let linked = link(&parts).unwrap();
        assert_eq!(parse(&linked).unwrap().version, Some((8, 10)), "{linked}");
    }
    let error = link(&[("o", &old), ("bad.ptx", "what")]).unwrap_err();
    assert!(error.to_string().starts_with("bad.ptx: line 1"), "{error}");
}

#[test]
fn one_module_stays_what_it_is() {
    for (name, text) in common::selection() {
        let linked = link(&[(&name, &text)]).unwrap();
        let (before, after) = (parse(&text).unwrap(), parse(&linked).unwrap());
        let kept = before
            .items
            .iter()
            .filter(|i| !matches!(i, Item::Section { .. }))
            .count();
        assert_eq!(after.items.len(), kept, "{name}");
        assert_eq!(
            common::flat(&before).len(),
            common::flat(&after).len(),
            "{name}"
        );
    }
}

#[test]
fn instrumented_parts_share_one_runtime() {
    let a = format!(
        "{HEAD}.extern .func f(.param .b64 p);\n.visible .entry k(.param .u64 p)\n{{ .reg .b64 %a; ld.param.u64 %a, [p]; ld.global.u32 _, [%a]; call.uni f, (%a); ret; }}\n"
    );
    let b = format!(
        "{HEAD}.visible .func f(.param .b64 p)\n{{ .reg .b64 %a; ld.param.u64 %a, [p]; st.global.u32 [%a], 1; bar.sync 0; ret; }}\n"
    );
    let part = |text: &str, first_site| {
        let options = Options {
            part: true,
            first_site,
            ..Options::new(STUB, "part")
        };
        instrument(text, &options).unwrap()
    };
    let (a, b) = (part(&a, 0), part(&b, 1));
    let linked = link(&[("a", &a.text), ("b", &b.text)]).unwrap();
    let names = defined(&linked);
    for name in [
        "k",
        "f",
        "__gsan_module",
        "__gsan_access",
        "__gsan_barrier_after",
    ] {
        assert_eq!(
            names.iter().filter(|n| *n == name).count(),
            1,
            "{name}: {names:?}"
        );
    }
    assert!(linked.contains(", 0); ld.global") && linked.contains(", 1); st.global"));
}

/// The runtime as an input of its own: the modules only declare what they call, and one runtime has what all of them need.
#[test]
fn a_runtime_that_is_apart_serves_all_parts() {
    let a = format!(
        "{HEAD}.visible .entry k(.param .u64 p)\n{{ .reg .b64 %a; ld.param.u64 %a, [p]; ld.global.u32 _, [%a]; ret; }}\n"
    );
    let b = format!(
        "{HEAD}.visible .func f(.param .b64 p)\n{{ .reg .b64 %a; ld.param.u64 %a, [p]; st.global.u32 [%a], 1; bar.sync 0; ret; }}\n"
    );
    let apart = |text: &str| {
        let options = Options {
            part: true,
            apart: true,
            ..Options::new(STUB, "part")
        };
        instrument(text, &options).unwrap()
    };
    let (a, b) = (apart(&a), apart(&b));
    let prototypes = ".extern .func __gsan_block_enter(";
    assert!(a.text.contains(prototypes) && !a.text.contains(".weak"));
    // Nothing stands behind the user's text, and the version is the user's.
    assert!(a.text.ends_with("ret; }\n") && a.text.starts_with(HEAD.split('\n').next().unwrap()));
    let mut needs = a.needs.clone();
    needs.add(&b.needs);
    assert_eq!((needs.version, needs.target.as_str()), ((8, 0), "sm_80"));
    let runtime = needs.module(STUB).unwrap();
    assert!(runtime.contains(".target sm_80\n"));
    let linked = link(&[("a", &a.text), ("b", &b.text), ("gsan", &runtime)]).unwrap();
    let names = defined(&linked);
    for name in ["k", "f", "__gsan_module", "__gsan_access", "__gsan_exit"] {
        assert_eq!(names.iter().filter(|n| *n == name).count(), 1, "{name}");
    }
    assert!(names.contains(&"__gsan_barrier_after".to_string()));
    assert!(
        !a.needs
            .module(STUB)
            .unwrap()
            .contains("__gsan_barrier_after")
    );
    // Of the words behind `.target` the one that is a target.
    let odd = HEAD.replace("sm_80", "texmode_independent, sm_80, debug")
        + ".visible .entry k() { ret; }\n";
    assert_eq!(apart(&odd).needs.target, "sm_80");
    // What no module calls needs nothing but what the host does.
    let nothing = gsan_ptx::RuntimeNeeds::default().module(STUB).unwrap();
    assert!(nothing.contains("__gsan_module") && !nothing.contains("__gsan_access"));
    assert!(
        needs
            .module(&STUB.replace("__gsan_access", "other"))
            .is_err()
    );
}
