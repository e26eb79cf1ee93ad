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
        let options = Options {
            apart: true,
            ..Options::new(STUB, name)
        };
        for u in instrument(text, &options).unwrap().unsupported {
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
    assert!(count > 3 && reasons.len() >= 3, "{reasons:?}");
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

/// What the page says of forms that the corpus has not: the form's row is there, and the instruction is listed as the table says.
#[test]
fn forms_beyond_the_corpus_are_listed_as_the_page_says() {
    let page = page();
    let at = |title: &str| page.find(title).unwrap_or_else(|| panic!("{title}"));
    let (not_checked, approximated) = (at("as **not checked**"), at("These are **approximated**"));
    let forms = [
        (
            "bulk copies with `.im2col::w`",
            "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2, %r3}], [%r3], {%rs1};",
        ),
        (
            "bulk copies whose size",
            "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %rd2;",
        ),
        (
            "`cp.async` whose size is no constant",
            "cp.async.ca.shared.global [%r1], [%rd1], %r2;",
        ),
        (
            "or whose amount is in an operand",
            "cp.async.ca.shared.global [%r1], [%rd1], 16, %rd2;",
        ),
        (
            "`st.bulk` with a generic address",
            "st.bulk.weak [%rd1], %rd2, 0;",
        ),
        (
            "`multimem.cp.*`",
            "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;",
        ),
        ("`sust`", "sust.b.1d.b32.trap [%rd1, {%r2}], %r1;"),
        (
            "`wmma.store`",
            "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd1], {%f1}, %r2;",
        ),
        (
            "`tensormap.replace`",
            "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;",
        ),
        ("`.global` variables inside", ".global .u32 inner;"),
        (
            "`cudaLaunchDevice…`",
            "call.uni (%r1), cudaLaunchDeviceV2, (%rd1, %rd2);",
        ),
        ("a call of `malloc`", "call.uni (%rd1), malloc, (%rd2);"),
        (
            "a call of `vprintf`",
            "call.uni (%r1), vprintf, (%rd1, %rd2);",
        ),
        (
            "a call of any other function",
            "call.uni elsewhere, (%rd1);",
        ),
        ("an unknown instruction with", "frobnicate.b32 %r1, [%rd1];"),
        (
            "`atom.cas` whose result goes to `_`",
            "atom.global.cas.b32 _, [%rd1], 0, 1;",
        ),
        (
            "`red.async` with `.global`",
            "red.async.mmio.release.sys.global.add.u32 [%rd1], %r1;",
        ),
        ("`barrier` with operands that", "bar.sync 0, 1, 2;"),
        (
            "reads of `%total_smem_size`",
            "mov.u32 %r1, %total_smem_size;",
        ),
        (
            "as a part of a vector",
            "mov.b64 %rd1, {%dynamic_smem_size, %r1};",
        ),
    ];
    for (row, text) in forms {
        let row = page[not_checked..]
            .find(row)
            .unwrap_or_else(|| panic!("{row}"))
            + not_checked;
        let body = format!("ld.global.u32 %r8, [%rd8];\n{text}");
        let done = instrument(&common::kernel(&body), &Options::new(STUB, "t")).unwrap();
        assert!(!done.unsupported.is_empty(), "{text}");
        for listed in &done.unsupported {
            assert_eq!(listed.partly, row > approximated, "{text}: {}", listed.why);
        }
    }
    // What the page says is followed is not listed.
    for text in [
        "barrier.cluster.arrive; barrier.cluster.wait;",
        "mbarrier.test_wait.acquire.cluster.shared::cta.b64 %p1, [%r1], %rd2;",
        "griddepcontrol.wait; griddepcontrol.launch_dependents;",
        "multimem.red.release.sys.global.add.f32 [%rd1], %f1;",
    ] {
        let body = format!("ld.global.u32 %r8, [%rd8];\n{text}");
        let done = instrument(&common::kernel(&body), &Options::new(STUB, "t")).unwrap();
        assert!(done.unsupported.is_empty(), "{text}");
    }
}
