//! The hooks of accesses to multicast memory.

mod common;

use common::{STUB, flat, kernel};
use gsan_ptx::ast::Statement;
use gsan_ptx::hook::{Access, OpWord, Order, Scope};
use gsan_ptx::memory_op::{Effect, classify};
use gsan_ptx::{Options, instrument, parse};

/// The access, its order, scope, bytes and elements.
fn is(instruction: &str) -> (Access, Order, Scope, u32, u32) {
    let text = kernel(instruction);
    let module = parse(&text).unwrap_or_else(|e| panic!("{}", e.render("t", &text)));
    for statement in flat(&module) {
        if let Statement::Instruction(i) = statement {
            let Effect::Access(op) = classify(i) else {
                panic!("{instruction}")
            };
            assert!(op.multicast);
            return (op.access, op.order, op.scope, op.size, op.elements);
        }
    }
    panic!("{instruction}")
}

#[test]
fn what_is_said_and_what_is_not() {
    use Access::*;
    use Order::*;
    for (instruction, expected) in [
        (
            "multimem.ld_reduce.global.add.f32 %f1, [%rd1];",
            (Load, Weak, Scope::None, 4, 1),
        ),
        (
            "multimem.ld_reduce.weak.global.and.b64 %rd2, [%rd1];",
            (Load, Weak, Scope::None, 8, 1),
        ),
        (
            "multimem.ld_reduce.acquire.gpu.global.add.acc::f32.v4.f16x2 {%r1, %r2, %r3, %r4}, [%rd1];",
            (Load, Acquire, Scope::Sys, 16, 8),
        ),
        (
            "multimem.ld_reduce.relaxed.sys.global.min.v4.e5m2 {%rs1, %rs2, %rs3, %rs4}, [%rd1];",
            (Load, Relaxed, Scope::Sys, 4, 4),
        ),
        (
            "multimem.ld_reduce.global.max.v2.e4m3x4 {%r1, %r2}, [%rd1];",
            (Load, Weak, Scope::None, 8, 8),
        ),
        (
            "multimem.st.global.v8.bf16 [%rd1], {%rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7, %rs8};",
            (Store, Weak, Scope::None, 16, 8),
        ),
        (
            "multimem.st.release.cta.u32 [%rd1], %r1;",
            (Store, Release, Scope::Sys, 4, 1),
        ),
        (
            "multimem.red.global.add.f64 [%rd1], %fd1;",
            (Rmw, Relaxed, Scope::Sys, 8, 1),
        ),
        (
            "multimem.red.release.gpu.global.or.b32 [%rd1], %r1;",
            (Rmw, Release, Scope::Sys, 4, 1),
        ),
    ] {
        assert_eq!(is(instruction), expected, "{instruction}");
    }
}

/// What becomes of one line in a kernel.
fn line(text: &str) -> String {
    let text = kernel(&format!("\n{text}\nret;"));
    let result = instrument(&text, &Options::new(STUB, "t.ptx")).unwrap();
    assert_eq!(result.unsupported, []);
    result.text.lines().nth(7).unwrap().to_string()
}

#[test]
fn where_the_hooks_stand() {
    let word = |access, size, order, scope| OpWord::new(access, size, order, scope).0;
    let store = "multimem.st.global.u32 [%rd1+4], %r1;";
    assert_eq!(
        line(store),
        format!(
            "add.s64 %gsan_a, %rd1, 4; call.uni (%gsan_c), __gsan_multimem, (%gsan_s, %gsan_a, {}, 0); {store}",
            word(Access::Store, 4, Order::Weak, Scope::None)
        )
    );
    let load = "@%p1 multimem.ld_reduce.acquire.sys.global.add.u64 %rd1, [%rd1];";
    let op = word(Access::Load, 8, Order::Acquire, Scope::Sys);
    assert_eq!(
        line(load),
        format!(
            "@!%p1 bra $L__gsan_1; mov.b64 %gsan_a, %rd1; call.uni (%gsan_c), __gsan_multimem, (%gsan_s, %gsan_a, {op}, 0); $L__gsan_1: \
             {load} @!%p1 bra $L__gsan_2; call.uni __gsan_multimem_after, (%gsan_s, %gsan_a, {op}, 0, %gsan_c); $L__gsan_2: "
        )
    );
    // A check of another access is none of this one, and the other way round.
    let twice = line(
        "ld.global.u32 %r1, [%rd1]; multimem.ld_reduce.global.add.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1];",
    );
    assert_eq!(twice.matches("__gsan_multimem,").count(), 1);
    assert_eq!(twice.matches("__gsan_access,").count(), 1);
    // Only what is used.
    let half = line("multimem.ld_reduce.relaxed.sys.global.add.v2.f32 {%f1, _}, [%rd1];");
    let op = word(Access::Load, 4, Order::Relaxed, Scope::Sys);
    assert_eq!(half.matches(&format!("%gsan_a, {op}, 0")).count(), 2);
}

#[test]
fn a_runtime_without_the_hooks_says_so() {
    let old = STUB.replace("__gsan_multimem", "__gsan_other");
    let text = kernel("multimem.red.release.sys.global.add.f32 [%rd1], %f1;");
    let done = instrument(&text, &Options::new(&old, "t")).unwrap();
    assert!(!done.unsupported[0].partly);
    assert!(done.unsupported[0].why.contains("release or acquire"));
}
