//! Functions of libraries that were not inlined: their callers' lines.

use gsan_ptx::site::callers;
use gsan_ptx::{Options, instrument};

const RUNTIME: &str = include_str!("data/stub_runtime.ptx");

/// As nvcc writes it with `-G`: `atomicAdd`, a function of a header, around another.
const MODULE: &str = "\
.version 8.0
.target sm_80
.address_size 64
.func inner(.param .b64 p)
{
  .reg .b64 %p; .reg .b32 %r;
  .loc 2 20 3
  ld.param.u64 %p, [p];
  atom.add.u32 %r, [%p], 1;
  ret;
}
.func atomicAdd(.param .b64 p)
{
  .reg .b64 %p;
  .loc 2 30 3
  ld.param.u64 %p, [p];
  { .param .b64 q; st.param.b64 [q], %p; call.uni inner, (q); }
  ret;
}
.visible .entry one(.param .u64 p)
{
  .reg .b64 %p;
  ld.param.u64 %p, [p];
  .loc 1 7 5
  { .param .b64 q; st.param.b64 [q], %p; call.uni atomicAdd, (q); }
  // MORE
  ret;
}
.file 1 \"user.cu\"
.file 2 \"cuda/include/sm_60_atomic_functions.hpp\"
";

#[track_caller]
fn check(text: &str, expected: Option<&[u32]>) {
    let done = instrument(text, &Options::new(RUNTIME, "m.ptx")).unwrap();
    let site = done
        .sites
        .iter()
        .position(|s| &*s.function == "inner")
        .unwrap();
    assert!(done.sites[site].user_place().is_none_or(|p| p.is_library()));
    let found = callers(text, &done.sites);
    let lines = found
        .get(&site)
        .map(|all| all.iter().map(|p| p[0].line).collect::<Vec<_>>());
    assert_eq!(lines.as_deref(), expected, "{found:?}");
}

#[test]
fn the_only_call_is_found_through_the_librarys_own() {
    check(MODULE, Some(&[7]));
}

#[test]
fn functions_without_lines_are_taken_for_a_librarys() {
    check(&MODULE.replace("  .loc 2 20 3\n", ""), Some(&[7]));
    check(
        &MODULE
            .replace("  .loc 2 20 3\n", "")
            .replace("  .loc 2 30 3\n", ""),
        Some(&[7]),
    );
    // Nor is there anything to say where nothing has lines.
    let none: Vec<&str> = MODULE.lines().filter(|l| !l.contains(".loc")).collect();
    check(&none.join("\n"), None);
}

#[test]
fn every_call_is_listed_once() {
    let again = ".loc 1 9 5\n { .param .b64 q; call.uni atomicAdd, (q); } .loc 1 7 5\n { .param .b64 q; call.uni atomicAdd, (q); }";
    check(&MODULE.replace("// MORE", again), Some(&[7, 9]));
    // And where there are more than anybody reads, none.
    let many: String = (10..40)
        .map(|n| format!(".loc 1 {n} 5\n {{ .param .b64 q; call.uni atomicAdd, (q); }}\n"))
        .collect();
    check(&MODULE.replace("// MORE", &many), None);
}

#[test]
fn where_there_may_be_other_callers_nothing_is_said() {
    check(&MODULE.replace("// MORE", "mov.u64 %p, atomicAdd;"), None);
    let table = ".global .u64 table[1] = {atomicAdd};\n.visible .entry one";
    check(&MODULE.replace(".visible .entry one", table), None);
}

#[test]
fn recursion_ends() {
    let more = "call.uni inner, (q); }";
    let text = MODULE.replacen(
        "  ret;\n}\n.func atomicAdd",
        "  { .param .b64 q; call.uni atomicAdd, (q); }\n  ret;\n}\n.func atomicAdd",
        1,
    );
    // A function must be declared before it is called.
    let text = text.replacen(
        ".func inner",
        ".func atomicAdd(.param .b64 p);\n.func inner",
        1,
    );
    assert!(text.contains(more));
    check(&text, Some(&[7]));
}
