//! The hooks, as they stand in the text.

mod common;

use common::{STUB, kernel};
use gsan_ptx::ast::Space;
use gsan_ptx::hook::{Access, OpWord, Order, Scope};
use gsan_ptx::{InstrumentError, Instrumented, Options, instrument};

fn run(text: &str) -> Instrumented {
    instrument(text, &Options::new(STUB, "t.ptx")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The lines of a kernel's body after instrumentation, without the one that holds the prologue.
fn body(text: &str) -> String {
    let result = run(&kernel(text));
    let lines: Vec<&str> = result
        .text
        .lines()
        .skip(6)
        .take(text.lines().count())
        .collect();
    lines.join("\n")
}

/// The same of a kernel that has something to check on its last line.
fn checked(text: &str) -> String {
    body(&format!("{text}\nld.global.u32 %r8, [%rd8];"))
}

fn op(access: Access, size: u32, order: Order, scope: Scope) -> u32 {
    OpWord::new(access, size, order, scope).0
}

#[test]
fn weak_accesses_have_one_hook_before() {
    let load = op(Access::Load, 4, Order::Weak, Scope::None);
    assert_eq!(
        body("ld.global.u32 %r1, [%rd1];"),
        format!("call.uni __gsan_access, (%gsan_s, %rd1, {load}, 0); ld.global.u32 %r1, [%rd1];")
    );
    assert_eq!(
        body("ld.global.u32 %r1, [%rd1+-8]; // why"),
        format!(
            "add.s64 %gsan_a, %rd1, -8; call.uni __gsan_access, (%gsan_s, %gsan_a, {load}, 0); ld.global.u32 %r1, [%rd1+-8]; // why"
        )
    );
    let store = OpWord::new(Access::Store, 16, Order::Weak, Scope::None)
        .elements(2)
        .with(OpWord::GENERIC, true)
        .0;
    assert_eq!(
        body("st.v2.u64 [sym+16], {%rd1, %rd2};"),
        format!(
            "mov.u64 %gsan_a, sym; add.s64 %gsan_a, %gsan_a, 16; call.uni __gsan_access, (%gsan_s, %gsan_a, {store}, 0); st.v2.u64 [sym+16], {{%rd1, %rd2}};"
        )
    );
}

/// `.unified` says of a variable that it is in unified memory, nothing more.
#[test]
fn a_unified_address_is_like_any_other() {
    let plain = checked("ld.global.u32 %r1, [%rd1+4];");
    assert_eq!(
        checked("ld.global.u32 %r1, [%rd1+4].unified;"),
        plain.replacen("[%rd1+4];", "[%rd1+4].unified;", 1)
    );
    let hint = checked("ld.global.L2::cache_hint.u32 %r1, [%rd1].unified, %rd2;");
    assert!(hint.starts_with("call.uni __gsan_access"), "{hint}");
}

#[test]
fn guards_are_jumped_over_in_both_senses() {
    let load = op(Access::Load, 4, Order::Weak, Scope::None);
    assert_eq!(
        body("@%p1 ld.global.u32 %r1, [%rd1];"),
        format!(
            "@!%p1 bra $L__gsan_1; call.uni __gsan_access, (%gsan_s, %rd1, {load}, 0); $L__gsan_1: @%p1 ld.global.u32 %r1, [%rd1];"
        )
    );
    assert!(body("@!%p1 ld.global.u32 %r1, [%rd1];").starts_with("@%p1 bra $L__gsan_1; "));
}

#[test]
fn acquires_save_what_the_load_may_overwrite() {
    let load = op(Access::Load, 8, Order::Acquire, Scope::Gpu);
    assert_eq!(
        body("ld.acquire.gpu.global.u64 %rd1, [%rd1];"),
        format!(
            "mov.b64 %gsan_a, %rd1; call.uni (%gsan_c), __gsan_sync_before, (%gsan_s, %gsan_a, {load}, 0); \
             ld.acquire.gpu.global.u64 %rd1, [%rd1]; \
             call.uni __gsan_sync_after, (%gsan_s, %gsan_a, {load}, 0, %gsan_c, 1); "
        )
    );
}

#[test]
fn releases_and_reductions_have_no_hook_after() {
    for text in [
        "st.release.gpu.global.u32 [%rd1], %r1;",
        "red.global.add.u32 [%rd1], 1;",
        "st.volatile.u32 [%rd1], %r1;",
    ] {
        let body = body(text);
        assert!(
            body.contains("(%gsan_c), __gsan_sync_before, (%gsan_s, %rd1, "),
            "{body}"
        );
        assert!(
            !body.contains("sync_after") && body.ends_with(text),
            "{body}"
        );
    }
    // An atomic whose result nobody uses still has one.
    assert!(body("atom.global.add.u32 _, [%rd1], 1;").contains(", %gsan_c, 1);"));
}

#[test]
fn a_compare_and_swap_says_whether_it_wrote() {
    // The result goes to the register that held the comparand.
    let text = body("atom.global.cas.b32 %r2, [%rd1], %r2, %r3;");
    let save = text.find("mov.b32 %gsan_v32, %r2;").unwrap();
    let access = text.find("atom.global").unwrap();
    let compare = text
        .find("setp.eq.b32 %gsan_p, %r2, %gsan_v32; selp.b32 %gsan_r, 1, 0, %gsan_p;")
        .unwrap();
    let after = text.find("%gsan_c, %gsan_r);").unwrap();
    assert!(
        save < access && access < compare && compare < after,
        "{text}"
    );
    assert!(body("atom.global.cas.b16 %h1, [%rd1], -1, %h3;").contains("mov.b16 %gsan_v16, -1;"));
    assert!(
        body("atom.global.cas.b64 %rd2, [%rd1], 0d3FF0000000000000, 1;")
            .contains("mov.b64 %gsan_v64, 0d3FF0000000000000;")
    );
    let wide = body("atom.global.cas.b128 %q1, [%rd1], %q2, %q3;");
    assert!(
        wide.contains("mov.b128 {%gsan_v64, %gsan_w64}, %q2;")
            && wide.contains("mov.b128 {%gsan_x64, %gsan_y64}, %q1;")
    );

    let thrown_away = run(&kernel("atom.global.cas.b32 _, [%rd1], 0, 1;"));
    assert!(thrown_away.text.contains(", %gsan_c, 0);"));
    assert_eq!(thrown_away.sites.len(), 1);
    assert!(thrown_away.unsupported[0].partly && thrown_away.unsupported[0].ptx_line == 7);
}

#[test]
fn fences_exits_and_ends() {
    let fence = op(Access::Fence, 0, Order::Sc, Scope::Gpu);
    let body = |text: &str| {
        let lines = checked(text);
        lines.lines().next().unwrap().to_string()
    };
    assert_eq!(
        body("membar.gl;"),
        format!("call.uni __gsan_fence, (%gsan_s, {fence}); membar.gl;")
    );
    assert_eq!(body("fence.proxy.alias;"), "fence.proxy.alias;");
    assert_eq!(body("ret;"), "call.uni __gsan_exit, (); ret;");
    assert_eq!(
        body("@%p1 exit;"),
        "@!%p1 bra $L__gsan_1; call.uni __gsan_exit, (); $L__gsan_1: @%p1 exit;"
    );
    assert_eq!(body("trap;"), "trap;");
}

/// How often the exit hook stands before the closing brace.
fn hooks_at_the_end(text: &str) -> usize {
    let result = run(&kernel(&format!("ld.global.u32 %r9, [%rd9]; {text}")));
    result.text.matches("\ncall.uni __gsan_exit, (); }").count()
}

#[test]
fn the_closing_brace_is_an_exit_where_control_can_reach_it() {
    for falls in [
        "",
        "mov.u32 %r1, 1;",
        "@%p1 ret;",
        "ret; L:\n@%p1 bra L;",
        "@%p1 bra END; ret; END:",
        "{ mov.u32 %r1, 1; }",
        "@%p1 bra L; ret; L: { .reg .b32 x; }",
    ] {
        assert_eq!(hooks_at_the_end(falls), 1, "{falls}");
    }
    for stops in [
        "ret;",
        "exit;",
        "trap;",
        "L: bra L;",
        "ret; $L__func_end0:",
        "ret; .loc 1 2 3\n$L__tmp1:",
        "{ ret; }",
    ] {
        assert_eq!(hooks_at_the_end(stops), 0, "{stops}");
    }
}

#[test]
fn functions_fetch_the_state_and_keep_their_returns() {
    let text = ".version 8.7\n.target sm_90\n.address_size 64\n\
        .func plain() { ret; }\n.func hooked(.reg .b64 a) { ld.u32 %r1, [a]; @p ret; ret; }\n\
        .func leaves() { exit; }\n.visible .entry k() { call.uni hooked, (p); ret; }\n.extern .func f(.param .b32 x);\n.entry none { ret; }\n";
    let result = run(text);
    let line = |n: usize| result.text.lines().nth(n - 1).unwrap().to_string();
    assert!(line(4).ends_with(".func plain() { ret; }"), "{}", line(4));
    assert!(line(5).contains("{ .reg .b64 %gsan_s; call.uni (%gsan_s), __gsan_state, (); call.uni __gsan_access, (%gsan_s, a, "));
    assert!(line(5).ends_with("@p ret; ret; }") && !line(5).contains("exit"));
    assert!(line(6).contains("{ call.uni __gsan_exit, (); exit; }"));
    // A kernel that only calls what has hooks takes its slot, but asks for no state.
    assert!(
        line(7).contains("k(.param .u64 __gsan_launch) {")
            && line(7).contains("__gsan_block_enter, (%gsan_a)")
    );
    assert!(
        line(7).contains("bar.sync 0; call.uni hooked, (p); call.uni __gsan_exit, (); ret; }")
            && !line(7).contains("__gsan_state")
    );
    assert_eq!(line(8), ".extern .func f(.param .b32 x);");
    assert!(line(9).contains(".entry none(.param .u64 __gsan_launch) {"));
    assert_eq!(result.sites[0].function.as_ref(), "hooked");
}

#[test]
fn the_size_of_dynamic_shared_memory_is_put_right() {
    assert_eq!(
        body("mov.u32 %r1, %dynamic_smem_size;"),
        "mov.u32 %r1, %dynamic_smem_size; call.uni (%gsan_r), __gsan_dynamic_size, (); mov.u32 %r1, %gsan_r; "
    );
    assert!(
        body("cvt.u64.u32 %rd1,\n%dynamic_smem_size; // c")
            .ends_with("cvt.u64.u32 %rd1, %gsan_r;  // c")
    );
    let total = run(&kernel("mov.u32 %r1, %total_smem_size;"));
    assert!(total.unsupported[0].partly && total.stats.unsupported == 0);
}

#[test]
fn what_orders_blocks_without_a_hook_is_listed() {
    for text in [
        "barrier.cluster.arrive.release;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];",
        "griddepcontrol.wait;",
    ] {
        // With a runtime of before.
        let text = &format!("ld.global.u32 %r8, [%rd8]; {text}");
        let old = STUB
            .replace("__gsan_cluster", "old")
            .replace("__gsan_grid", "old");
        let result = instrument(&kernel(text), &Options::new(&old, "t")).unwrap();
        assert!(
            result.unsupported[0].partly && result.unsupported[0].why.contains("not followed"),
            "{text}"
        );
        let now = run(&kernel(text));
        assert!(now.unsupported.is_empty(), "{text}");
    }
    for text in [
        "bar.sync 0;",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];",
    ] {
        assert!(run(&kernel(text)).unsupported.is_empty(), "{text}");
    }
    // The wait orders what comes after the kernel too, so that a kernel with nothing else has its hooks.
    assert_eq!(
        body("@!%p1 griddepcontrol.wait;"),
        "@!%p1 griddepcontrol.wait; @%p1 bra $L__gsan_1; call.uni __gsan_grid_wait, (%gsan_s); $L__gsan_1: "
    );
    // To let the next kernel begin is no reason for hooks.
    let alone = run(&kernel("griddepcontrol.launch_dependents;"));
    assert!(!alone.text.contains("call.uni __gsan_launch_dependents"));
    assert_eq!(
        body("ld.u32 %r1, [%rd1]; @%p1 griddepcontrol.launch_dependents;"),
        "call.uni __gsan_access, (%gsan_s, %rd1, 2097156, 0); ld.u32 %r1, [%rd1]; \
         @!%p1 bra $L__gsan_1; call.uni __gsan_launch_dependents, (%gsan_s); $L__gsan_1: @%p1 griddepcontrol.launch_dependents;"
    );
    let text = kernel("ld.global.u32 %r8, [%rd8]; griddepcontrol.launch_dependents;");
    for old in ["__gsan_launch", "__gsan_grid"] {
        let old = STUB.replace(old, "old");
        let result = instrument(&text, &Options::new(&old, "t")).unwrap();
        assert!(result.unsupported[0].partly);
        assert!(!result.text.contains("call.uni __gsan_launch_dependents"));
    }
    let nested = run(&kernel("call.uni (%r1), cudaLaunchDeviceV2, (%rd1, %rd2);"));
    assert!(nested.unsupported[0].why.contains("launched by kernels"));
    let nested = run(&kernel(
        "call.uni (%rd1), __cudaCDP2GetParameterBufferV2, (%rd1);",
    ));
    assert!(nested.unsupported[0].why.contains("does not support"));
}

#[test]
fn a_hook_does_not_part_a_pragma_from_its_load() {
    let text =
        body(".pragma \"used_bytes_mask 0xfff\";\nld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];");
    assert!(text.starts_with("call.uni __gsan_access"), "{text}");
    assert!(
        text.ends_with(
            ".pragma \"used_bytes_mask 0xfff\";\nld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];"
        ),
        "{text}"
    );
    let tight = run(
        &(kernel(".loc 1 2 3.pragma \"used_bytes_mask 1\";ld.global.u8 %r1,[%rd1];")
            + ".file 1 \"f\"\n"),
    );
    assert!(
        tight.text.contains(".loc 1 2 3 call.uni __gsan_access"),
        "what is inserted does not run into the number"
    );
    // Another pragma belongs to no load.
    assert!(body(".pragma \"nounroll\";\nld.global.u32 %r1, [%rd1];").starts_with(".pragma"));
}

/// The hooks' addresses, sizes and elements' sizes in the text of one instruction.
fn pieces(text: &str) -> Vec<(String, u32, u32)> {
    let (mut found, mut address) = (Vec::new(), String::new());
    for part in body(text).split(';').map(str::trim) {
        if let Some(sum) = part.strip_prefix("add.s64 %gsan_a, ") {
            address = sum.replace(", ", "+");
        }
        let hook = ["__gsan_access", "(%gsan_c), __gsan_sync_before"]
            .iter()
            .find_map(|hook| part.split_once(&format!("{hook}, (%gsan_s, ")));
        if let Some((_, arguments)) = hook {
            let mut arguments = arguments.split(", ");
            let at = arguments.next().unwrap().replace("%gsan_a", &address);
            let op = OpWord(arguments.next().unwrap().parse().unwrap());
            found.push((at, op.size(), op.size() >> (op.0 >> 22 & 7)));
        }
    }
    found
}

#[test]
fn bytes_that_nobody_uses_are_not_checked() {
    let list = |of: &[(&str, u32, u32)]| -> Vec<(String, u32, u32)> {
        of.iter()
            .map(|(at, size, element)| (at.to_string(), *size, *element))
            .collect()
    };
    let load = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];";
    for (mask, expected) in [
        ("0xff", &[("%rd1", 8, 4)][..]),
        ("4095", &[("%rd1", 8, 4), ("%rd1+8", 4, 4)]),
        ("0xf00f", &[("%rd1", 4, 4), ("%rd1+12", 4, 4)]),
        ("0xff2", &[("%rd1+1", 1, 1), ("%rd1+4", 8, 4)]),
        ("0xffff", &[("%rd1", 16, 4)]),
        ("0xffffffff", &[("%rd1", 16, 4)]),
        ("what", &[("%rd1", 16, 4)]),
        ("0", &[]),
    ] {
        let text = format!(".pragma \"used_bytes_mask {mask}\"; {load}");
        assert_eq!(pieces(&text), list(expected), "{mask}");
    }
    // It belongs to a load, and to the next one only.
    let store = ".pragma \"used_bytes_mask 0xf\"; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};";
    assert_eq!(pieces(store), list(&[("%rd1", 16, 4)]));
    let next = format!(".pragma \"used_bytes_mask 0xf\"; {load} {load}");
    assert_eq!(pieces(&next), list(&[("%rd1", 4, 4), ("%rd1", 16, 4)]));
}

#[test]
fn elements_without_a_name_are_not_accessed() {
    let odd = |first: &str, second: &str| format!("{{{first}, {second}, {first}, {second}}}");
    for (text, at) in [
        (
            format!("st.global.v4.b32 [%rd1], {};", odd("%r1", "_")),
            ["%rd1", "%rd1+8"],
        ),
        (
            format!("st.v4.b32 [%rd1], {};", odd("_", "%r1")),
            ["%rd1+4", "%rd1+12"],
        ),
        (
            format!("ld.global.nc.v4.b32 {}, [%rd1];", odd("_", "%r1")),
            ["%rd1+4", "%rd1+12"],
        ),
    ] {
        let found = pieces(&text);
        let expected = at.map(|at| (at.to_string(), 4, 4));
        assert_eq!(found, expected, "{text}");
    }
    let wide = pieces("ld.global.v4.b64 {_, %rd2, %rd3, _}, [%rd1];");
    assert_eq!(wide, [("%rd1+8".to_string(), 16, 8)]);
    let none = run(&kernel(
        "ld.global.v2.b64 {_, _}, [%rd1]; cp.async.ca.shared.global [%r1], [%rd1], 4, 0;",
    ));
    assert_eq!((none.stats.sites(), none.stats.empty), (0, 2));
    // A check of one element is none of its neighbour.
    let both = run(&kernel(
        "st.global.v2.b32 [%rd1], {%r1, _}; st.global.v2.b32 [%rd1], {_, %r1}; st.global.b32 [%rd1], %r1;",
    ));
    assert_eq!((both.stats.stores, both.stats.repeated), (2, 1));
}

/// Each piece of a strong access keeps what its hook before has returned.
#[test]
fn strong_vectors_with_elements_without_a_name() {
    let element = OpWord::new(Access::Load, 4, Order::Acquire, Scope::Gpu).0;
    assert_eq!(
        body("ld.acquire.gpu.global.v4.b32 {%r1, _, %r2, _}, [%rd1+4];"),
        format!(
            "add.s64 %gsan_a, %rd1, 4; call.uni (%gsan_c), __gsan_sync_before, (%gsan_s, %gsan_a, {element}, 0); \
             add.s64 %gsan_a, %rd1, 12; call.uni (%gsan_c1), __gsan_sync_before, (%gsan_s, %gsan_a, {element}, 0); \
             ld.acquire.gpu.global.v4.b32 {{%r1, _, %r2, _}}, [%rd1+4]; \
             add.s64 %gsan_a, %gsan_a, -8; call.uni __gsan_sync_after, (%gsan_s, %gsan_a, {element}, 0, %gsan_c, 1); \
             add.s64 %gsan_a, %gsan_a, 8; call.uni __gsan_sync_after, (%gsan_s, %gsan_a, {element}, 0, %gsan_c1, 1); "
        )
    );
    // Such a load may synchronise even if nobody looks at any of it.
    let unseen = body("ld.acquire.gpu.global.v2.b32 {_, _}, [%rd1];");
    assert!(unseen.contains("__gsan_sync_after"), "{unseen}");
}

#[test]
fn registers_are_looked_up_by_scope() {
    let text =
        body("{ .reg .b32 %rd1; ld.global.u32 %r1, [%rd1+4]; } ld.global.u32 %r1, [%rd1+4];");
    assert!(
        text.contains("cvt.u64.u32 %gsan_a, %rd1; add.s64 %gsan_a, %gsan_a, 4;"),
        "{text}"
    );
    assert!(text.contains("} add.s64 %gsan_a, %rd1, 4;"), "{text}");
    let numbered = body(
        ".reg .b32 x1<3>; .reg .b64 x<3>; ld.u8 %r1, [x12]; ld.u8 %r1, [x2]; ld.u8 %r1, [x3];",
    );
    assert!(
        numbered.contains("cvt.u64.u32 %gsan_a, x12;") && numbered.contains("(%gsan_s, x2,"),
        "{numbered}"
    );
    assert!(numbered.contains("mov.u64 %gsan_a, x3;"), "{numbered}");
}

#[test]
fn versions_targets_and_names() {
    let old = run(&kernel("ret;")
        .replace("8.7", "6.0")
        .replace("sm_90a", "sm_70"));
    assert!(
        old.text.starts_with(".version 6.4\n.target sm_70\n"),
        "the runtime's version is taken"
    );
    let new = run(&kernel("ret;"));
    assert!(
        new.text.starts_with(".version 8.7\n.target sm_90a\n"),
        "the user's version stays"
    );
    let error = |text: &str| instrument(text, &Options::new(STUB, "t")).unwrap_err();
    assert!(matches!(
        error(&kernel("ret;").replace("sm_90a", "sm_61")),
        InstrumentError::Target {
            needs: 70,
            place: (2, 9),
            ..
        }
    ));
    assert!(matches!(
        error(&kernel("ret;").replace("address_size 64", "address_size 32")),
        InstrumentError::AddressSize {
            bits: 32,
            place: (3, 1)
        }
    ));
    for name in ["__gsan_x", "%gsan_s", "$L__gsan_1"] {
        let InstrumentError::ReservedName { line, .. } =
            error(&kernel(&format!("ret;\n mov.u32 {name}, 1;")))
        else {
            panic!("{name} was accepted")
        };
        assert_eq!(line, 8);
    }
    assert!(
        instrument(
            &kernel("// %gsan_s is said here only\n mov.u32 my_gsan_x, 1;"),
            &Options::new(STUB, "t")
        )
        .is_ok()
    );
    // Of eight elements PTX has only those of 32 bits, in any memory.
    let eight = |form: &str| {
        kernel(&format!(
            "\n{form} {{%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1}}, [%rd1]; ret;"
        ))
    };
    for form in [
        "ld.global.v8.u8",
        "ld.relaxed.gpu.global.v8.b16",
        "ld.shared.v8.s8",
    ] {
        let said = error(&eight(form));
        assert!(
            matches!(&said, InstrumentError::Vector { place: (8, 1), text } if text.starts_with(form)),
            "{said}"
        );
    }
    assert!(instrument(&eight("ld.global.v8.b32"), &Options::new(STUB, "t")).is_ok());
    assert!(matches!(error("nonsense"), InstrumentError::Parse(_)));
    let broken = instrument(&kernel("ret;"), &Options::new(".version 8", "t")).unwrap_err();
    assert!(broken.to_string().contains("xtask ptx"), "{broken}");
}

#[test]
fn the_chain_of_inlined_calls() {
    let text = kernel(
        ".loc 1 10 5\n.loc 2 20 6, function_name $L__i0, inlined_at 1 10 5\n.loc 3 30 7, function_name $L__i0+2, inlined_at 2 20 6\n\
         ld.global.u32 %r1, [%rd1];\n.loc 1 11 1\nld.global.u32 %r1, [%rd1+4];\n\
         .loc 2 20 6, function_name $L__i0, inlined_at 1 99 1\nld.global.u32 %r1, [%rd1+8];\n.loc 1 0 0\nld.global.u32 %r1, [%rd1+12];",
    ) + ".file 1 \"/w\" \"a.cu\"\n.file 2 \"lib/cuda/include/x.h\"\n.file 3 \"/rustc/library/core/src/ptr.rs\"\n\
         .section .debug_str\n{\n$L__i0:\n.b8 102,111,111,0\n}\n";
    let sites = run(&text).sites;
    let shown = |n: usize| -> Vec<String> {
        let place = |p: &gsan_ptx::Place| {
            format!(
                "{}:{}:{} {}",
                p.file,
                p.line,
                p.column,
                p.function.as_deref().unwrap_or("-")
            )
        };
        sites[n].places.iter().map(place).collect()
    };
    assert_eq!(
        shown(0),
        [
            "/rustc/library/core/src/ptr.rs:30:7 o",
            "lib/cuda/include/x.h:20:6 foo",
            "/w/a.cu:10:5 -"
        ]
    );
    assert_eq!(
        sites[0].user_place().unwrap().line,
        10,
        "libraries are passed over"
    );
    assert_eq!(sites[0].user_places().len(), 1);
    assert_eq!(shown(1), ["/w/a.cu:11:1 -"]);
    assert_eq!(
        shown(2),
        ["lib/cuda/include/x.h:20:6 foo", "/w/a.cu:99:1 -"],
        "the latest statement about a place counts"
    );
    assert!(
        shown(3).is_empty() && sites[3].user_place().is_none(),
        "line 0 is no line"
    );
    assert_eq!((sites[0].ptx_line, sites[0].ptx_column), (10, 1));
}

#[test]
fn a_chain_that_bites_its_tail_ends() {
    let text = kernel(
        ".loc 1 1 1, function_name $x, inlined_at 1 2 2\n.loc 1 2 2, function_name $x, inlined_at 1 1 1\nld.global.u32 %r1, [%rd1];",
    ) + ".file 1 \"a.cu\"\n";
    assert!(run(&text).sites[0].places.len() <= 64);
}

#[test]
fn entries_parameters_and_variables() {
    let text = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .global .align 16 .b8 buf[4][8];\n\
        .global .attribute(.managed) .u64 m;\n.extern .global .u32 far[];\n.const .f64 c[3];\n.global .v4 .f32 v[] = {1.0, 2.0};\n.shared .b8 s[4];\n\
        .entry a(.param .u64 .ptr .global .align 8 p, .param .align 8 .b8 q[24], .param .u8 r) .reqntid 32, 4\n.maxnreg 64\n{ setmaxnreg.inc.sync.aligned.u32 64; ld.global.u8 %r1, [m]; ret; }\n\
        .entry b() .maxntid 16, 16, 2 .reqnctapercluster 2 { ret; }\n";
    let result = run(text);
    let a = &result.entries[0];
    assert_eq!(
        (a.required_threads, a.max_registers, a.changes_registers),
        (Some([32, 4, 1]), Some(64), true)
    );
    let params: Vec<_> = a
        .params
        .iter()
        .map(|p| (p.name.as_str(), p.size, p.align, p.pointer))
        .collect();
    assert_eq!(
        params,
        [("p", 8, 8, true), ("q", 24, 8, false), ("r", 1, 1, false)]
    );
    assert!(result.unsupported[0].partly && result.unsupported[0].why.contains("setmaxnreg"));
    let b = &result.entries[1];
    assert_eq!(
        (b.max_threads, b.required_cluster, b.changes_registers),
        (Some(512), Some([2, 1, 1]), false)
    );
    let globals: Vec<_> = result
        .globals
        .iter()
        .map(|g| (g.name.as_str(), g.size, g.align, g.space))
        .collect();
    assert_eq!(
        globals,
        [
            ("buf", 32, 16, Space::Global),
            ("m", 8, 8, Space::Global),
            ("far", 0, 4, Space::Global),
            ("c", 24, 8, Space::Const),
            ("v", 32, 16, Space::Global),
        ]
    );
    // A kernel that is declared before it is defined is one.
    let declared = run(&text.replace(
        ".entry b()",
        ".entry b();\n.entry c();\n.entry c();\n.entry b()",
    ));
    let named: Vec<_> = declared
        .entries
        .iter()
        .map(|e| (e.name.as_str(), e.defined))
        .collect();
    assert_eq!(named, [("a", true), ("c", false), ("b", true)]);
    assert!(result.globals[1].managed && result.globals[2].linkage.as_deref() == Some("extern"));
}

#[test]
fn counts() {
    let stats = run(&kernel(
        "ld.global.u32 %r1, [%rd1]; @%p1 st.u32 [%rd1], %r1; atom.add.u32 %r1, [%rd1], 1; atom.global.cas.b32 %r1, [%rd1], 0, 1;\n\
         ld.shared.u32 %r1, [%r2]; st.local.u32 [%r2], 1; ld.const.u32 %r1, [c]; ld.param.u64 %rd1, [p]; bar.sync 0; membar.gl;\n\
         cp.async.ca.shared.global [%r1], [%rd1], 16; suld.b.1d.b32.trap %r1, [%rd1, {%r1}];\n\
         ld.global.u32 %r1, [%rd1+4]; ld.global.u16 %r1, [%rd1+6]; cvta.shared.u64 %rd2, %rd3; st.u32 [%rd2+4], %r1; ret;",
    ))
    .stats;
    assert_eq!(
        (
            stats.loads,
            stats.stores,
            stats.rmws,
            stats.compare_and_swaps
        ),
        (3, 1, 1, 1)
    );
    assert_eq!(
        (
            stats.strong,
            stats.generic,
            stats.predicated,
            stats.fences,
            stats.barriers
        ),
        (2, 2, 1, 1, 1)
    );
    assert_eq!(
        (
            stats.shared,
            stats.local,
            stats.constant,
            stats.param,
            stats.unsupported
        ),
        (1, 1, 1, 1, 1)
    );
    assert_eq!((stats.repeated, stats.private_generic), (1, 1));
    assert_eq!((stats.instructions, stats.sites()), (17, 6));
    // An mbarrier's operations are no accesses to shared memory.
    let barriers = run(&kernel(
        "mbarrier.init.shared.b64 [%r1], 1; cp.async.mbarrier.arrive.shared.b64 [%r1]; ld.shared.u32 %r1, [%r2];",
    ));
    assert_eq!(barriers.stats.shared, 1);
}

#[test]
fn hand_linked_modules_stay_as_they_are() {
    let text = format!(
        "{STUB}\n.visible .entry mine(.param .u64 data, .param .u64 launch)\n{{\n ret;\n}}\n"
    );
    let result = run(&text);
    assert!(result.already_linked && result.text == text && result.sites.is_empty());
    assert_eq!(result.entries[0].params.len(), 2);
    // A module that only declares the runtime's variable has not got it.
    let declared = kernel("ret;").replacen(
        ".visible .entry",
        ".extern .global .align 8 .b8 __gsan_module[24];\n.visible .entry",
        1,
    );
    assert!(matches!(
        instrument(&declared, &Options::new(STUB, "t")),
        Err(InstrumentError::ReservedName { line: 4, .. })
    ));
}

#[test]
fn a_copy_is_a_read_of_what_it_reads() {
    // Carried out later.
    let load = |size| op(Access::Load, size, Order::Weak, Scope::None) | OpWord::ASYNCHRONOUS;
    let copy = |rest: &str| {
        body(&format!(
            "cp.async.ca.shared.global [%r1], [%rd1+4], {rest};"
        ))
    };
    let hook = |text: String| text.split("cp.async").next().unwrap().to_string();
    let whole = |size| {
        format!(
            "add.s64 %gsan_a, %rd1, 4; call.uni __gsan_access, (%gsan_s, %gsan_a, {}, 0); ",
            load(size)
        )
    };
    assert_eq!(hook(copy("16")), whole(16));
    assert_eq!(hook(copy("8, 4")), whole(4));
    assert_eq!(hook(copy("8, 12")), whole(8));
    assert_eq!(hook(copy("8, 0")), "");
    let some = hook(copy("16, %r2"));
    assert_eq!(
        some,
        format!(
            "add.s64 %gsan_a, %rd1, 4; min.u32 %gsan_r, %r2, 16; setp.eq.u32 %gsan_p, %gsan_r, 0; @%gsan_p bra $L__gsan_1; \
             or.b32 %gsan_r, %gsan_r, {}; call.uni __gsan_access, (%gsan_s, %gsan_a, %gsan_r, 0); $L__gsan_1: ",
            load(0)
        )
    );
    assert!(hook(copy("16, %p2")).contains("@%p2 bra $L__gsan_1; call.uni __gsan_access"));
    assert!(hook(copy("16, !%p2")).contains("@!%p2 bra $L__gsan_1; call.uni __gsan_access"));
    let hinted = |rest: &str| {
        hook(body(&format!(
            "cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1+4], 16{rest}, %rd2;"
        )))
    };
    assert_eq!(hinted(""), whole(16));
    assert_eq!(hinted(", %r2"), some);
    // A register that no declaration explains.
    let odd = run(&kernel(
        "cp.async.ca.shared.global [%r1], [%rd1], 16, what;",
    ));
    assert!(odd.sites.is_empty() && odd.unsupported.len() == 1);
    let guarded = body("@%p1 cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;");
    assert!(
        guarded.starts_with("@!%p1 bra $L__gsan_1; min.u32"),
        "{guarded}"
    );
}

#[test]
fn discarded_memory_is_written() {
    let store = op(Access::Store, 128, Order::Weak, Scope::None);
    assert!(body("discard.global.L2 [%rd1], 128;").starts_with(&format!(
        "call.uni __gsan_access, (%gsan_s, %rd1, {store}, 0); discard"
    )));
}

#[test]
fn kernels_with_many_parameters() {
    let with = |bytes: u32, version: &str| {
        let text = format!(
            ".version {version}\n.target sm_90\n.address_size 64\n.entry k(.param .align 4 .b8 p[{bytes}])\n{{ ret; }}\n"
        );
        instrument(&text, &Options::new(STUB, "t"))
    };
    let version = |bytes, version| {
        with(bytes, version)
            .unwrap()
            .text
            .lines()
            .next()
            .unwrap()
            .to_string()
    };
    assert_eq!(version(4088, "7.0"), ".version 7.0");
    // The hidden one no longer fits into 4 KB: later versions allow more.
    assert_eq!(version(4096, "7.0"), ".version 8.1");
    assert_eq!(version(4092, "7.0"), ".version 8.1", "alignment counts");
    assert_eq!(version(4096, "8.7"), ".version 8.7");
    assert_eq!(version(32748, "8.7"), ".version 8.7");
    let error = with(32764, "8.7").unwrap_err();
    assert!(
        matches!(&error, InstrumentError::Parameters { bytes: 32764, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("32752 are the most"), "{error}");
    assert!(with(32752, "8.7").is_ok() && with(32756, "8.7").is_err());
    assert!(
        with(4_000_000_000, "8.7").is_ok(),
        "ptxas says what is wrong with that"
    );
}

#[test]
fn parts_of_a_program_have_a_weak_runtime_and_their_own_numbers() {
    let text = kernel("ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1; ret;");
    let options = Options {
        part: true,
        first_site: 40,
        ..Options::new(STUB, "t")
    };
    let result = instrument(&text, &options).unwrap();
    assert!(
        !result
            .text
            .replace(".visible .entry", "")
            .contains(".visible")
    );
    assert!(
        result.text.contains(".weak .func __gsan_access")
            && result
                .text
                .contains(".weak .global .align 8 .b8 __gsan_module")
    );
    assert!(result.text.contains(", 40); ld.global") && result.text.contains(", 41); st.global"));
    assert_eq!(result.sites.len(), 2);
}

#[test]
fn elements_of_arrays_and_numbered_variables() {
    let text = kernel(
        "ld.global.u32 %r1, a[3];\nst.global.u32 a[0], %r1;\nmov.u64 %rd1, a[2];\nld.global.u32 %r1, [n1+4];\nld.global.u32 %r1, [n3];\nret;",
    )
    .replace(".visible .entry", ".global .u32 a[8]; .global .u64 n<4>;\n.visible .entry");
    let result = run(&text);
    assert!(result.unsupported.is_empty(), "{:?}", result.unsupported);
    let load = op(Access::Load, 4, Order::Weak, Scope::None);
    assert!(result.text.contains(&format!(
        "mov.u64 %gsan_a, a; add.s64 %gsan_a, %gsan_a, 12; call.uni __gsan_access, (%gsan_s, %gsan_a, {load}, 0); ld.global.u32 %r1, a[3];"
    )), "{}", result.text);
    assert!(
        result
            .text
            .contains("mov.u64 %gsan_a, n1; add.s64 %gsan_a, %gsan_a, 4;")
    );
    // Those that are named, and only those.
    let names: Vec<_> = result
        .globals
        .iter()
        .map(|g| (g.name.as_str(), g.size))
        .collect();
    assert_eq!(names, [("a", 32), ("n1", 8), ("n3", 8)]);
    // Two arrays of one name and different elements: which is meant is not guessed.
    let twice = run(&kernel(
        ".shared .u32 x[4]; { .global .u8 x[4]; ld.global.u32 %r1, x[1]; } ret;",
    ));
    assert!(twice.sites.is_empty() && twice.stats.unsupported == 1);
}
