//! The hooks of bulk copies, as they stand in the text.

mod common;

use common::{STUB, kernel};
use gsan_ptx::hook::{Access, OpWord, Order, Scope};
use gsan_ptx::{Instrumented, Options, instrument};

const STORE: &str = "cp.async.bulk.global.shared::cta.bulk_group [%rd1+16], [%r1], %r2;";
const LOAD: &str =
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r3+8];";

fn run(text: &str) -> Instrumented {
    instrument(text, &Options::new(STUB, "t.ptx")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What becomes of one line in a kernel.
fn line(text: &str) -> String {
    let result = run(&kernel(&format!("\n{text}\nret;")));
    result.text.lines().nth(7).unwrap().to_string()
}

fn word(access: Access) -> u32 {
    OpWord::new(access, 16, Order::Weak, Scope::None).0
}

#[test]
fn stores_and_their_groups() {
    assert_eq!(
        line(STORE),
        format!(
            "add.s64 %gsan_a, %rd1, 16; call.uni __gsan_copy, (%gsan_s, %gsan_a, {}, 0, %r2, 0); {STORE}",
            word(Access::Store)
        )
    );
    let guarded = line(&format!("@!%p1 {STORE}"));
    assert!(
        guarded.starts_with("@%p1 bra $L__gsan_1; add.s64"),
        "{guarded}"
    );
    let after = |text: &str| {
        line(&format!("{STORE} {text}"))
            .split_once(text)
            .unwrap()
            .1
            .to_string()
    };
    assert_eq!(
        after("cp.async.bulk.commit_group;"),
        " call.uni __gsan_copy_commit, (%gsan_s); "
    );
    assert_eq!(
        after("cp.async.bulk.wait_group 3;"),
        " call.uni __gsan_copy_wait, (%gsan_s, 3); "
    );
    // The tile may be written again; nobody knows of the copy's end.
    assert_eq!(after("cp.async.bulk.wait_group.read 0;"), "");
    assert_eq!(after("cp.async.commit_group;"), "");
}

#[test]
fn a_reduction_is_relaxed() {
    let text = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 128;";
    let op = OpWord::new(Access::Rmw, 4, Order::Relaxed, Scope::Gpu).0;
    assert_eq!(
        line(text),
        format!("call.uni __gsan_copy, (%gsan_s, %rd1, {op}, 0, 128, 0); {text}")
    );
}

#[test]
fn boxes_go_by_their_map_and_coordinates() {
    let text = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, -3}], [%r2];";
    assert_eq!(
        line(text),
        format!(
            "call.uni __gsan_copy_tensor, (%gsan_s, %rd1, {}, 0, 0, 0, %r1, -3, 0, 0, 0); {text}",
            word(Access::Store)
        )
    );
    let rows = line(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {%r1, %r2, %r3, %r4, %r5}], [%r6];",
    );
    assert!(
        rows.contains(", 0, 256, 0, %r1, %r2, %r3, %r4, %r5); "),
        "{rows}"
    );
}

#[test]
fn a_load_names_the_phase_that_it_completes() {
    let own = line(LOAD);
    assert!(
        own.starts_with(
            "cvt.u64.u32 %gsan_a, %r3; add.s64 %gsan_a, %gsan_a, 8; mbarrier.test_wait.parity"
        ),
        "{own}"
    );
    assert!(
        own.contains("(%gsan_s, %rd1, 16, 0, 64, %gsan_r); cp.async"),
        "{own}"
    );
    // Another block's is not known: it is found out, where it can be.
    let far = line(&LOAD.replace("cta.global", "cluster.global"));
    assert!(
        far.contains("isspacep.shared::cta %gsan_p, %gsan_a; @!%gsan_p bra $L__gsan_1;"),
        "{far}"
    );
    assert!(
        far.contains(", 64, %gsan_r); call.uni __gsan_cluster_release, (%gsan_s); cp.async"),
        "{far}"
    );
    let many = line(
        &LOAD
            .replace("cta.global", "cluster.global")
            .replace("bytes [", "bytes.multicast::cluster [")
            .replace("8];", "8], %h1;"),
    );
    assert!(
        many.contains(", 64, 0); call.uni __gsan_cluster_release"),
        "{many}"
    );
}

#[test]
fn waits_name_the_phase_that_they_were_for() {
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;";
    let after = line(&format!("{LOAD} {wait}"))
        .split_once(wait)
        .unwrap()
        .1
        .to_string();
    assert!(after.starts_with(" @!%p1 bra $L__gsan_"), "{after}");
    assert!(after.contains("and.b32 %gsan_r, %r2, 1; "), "{after}");
    assert!(
        after.contains(
            "call.uni __gsan_copy_waited, (%gsan_s, %gsan_r); call.uni __gsan_block_sync"
        ),
        "{after}"
    );
    // A state says nothing of the parity.
    let any = line(&format!("{LOAD} mbarrier.test_wait.b64 %p1, [%rd1], %rd2;"));
    assert!(
        any.contains("cvta.to.shared.u64 %gsan_a, %gsan_a; mov.b32 %gsan_r, 0; "),
        "{any}"
    );
    assert!(any.contains("or.b32 %gsan_r, %gsan_r, 6; "), "{any}");
    // Without bulk copies there is nothing to name.
    let none = line(&format!("ld.global.u32 %r8, [%rd8]; {wait}"));
    assert!(!none.contains("copy_waited"), "{none}");
}

#[test]
fn whoever_leaves_may_have_copies_under_way() {
    let text = kernel(&format!("{STORE} @%p1 exit; ret;"));
    let result = run(&text);
    let leave = "call.uni __gsan_copy_leave, (%gsan_s); call.uni __gsan_exit, ();";
    assert_eq!(result.text.matches(leave).count(), 2);
    assert_eq!(result.user_text(), text);
    let plain = run(&kernel("ld.global.u32 %r8, [%rd8]; ret;"));
    assert!(!plain.text.contains("call.uni __gsan_copy_leave"));
}

#[test]
fn small_copies_are_read_ahead_of_their_time() {
    let text = "cp.async.ca.shared.global [%r1], [%rd1], 8;";
    let op =
        OpWord::new(Access::Load, 8, Order::Weak, Scope::None).with(OpWord::ASYNCHRONOUS, true);
    assert_eq!(
        line(text),
        format!(
            "call.uni __gsan_access, (%gsan_s, %rd1, {}, 0); {text}",
            op.0
        )
    );
    for wait in ["cp.async.wait_group 1;", "cp.async.wait_all;"] {
        assert_eq!(
            line(&format!("{text} {wait}")).split_once(wait).unwrap().1,
            " call.uni __gsan_copy_landed, (%gsan_s); "
        );
    }
    // Who waits at the mbarrier may go on before this thread does.
    let arrive = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];";
    let arrived = line(&format!("{text} {arrive}"));
    let (before, after) = arrived.split_once(arrive).unwrap();
    assert!(
        before.ends_with("8; call.uni __gsan_copy_landed, (%gsan_s); "),
        "{before}"
    );
    assert_eq!(after, "");
    let result = run(&kernel(&format!("{text} ret;")));
    assert!(
        result
            .text
            .contains("call.uni __gsan_copy_landed, (%gsan_s); call.uni __gsan_exit")
    );
    assert!(!result.text.contains("call.uni __gsan_copy_leave"));
}

#[test]
fn what_is_not_understood_is_listed() {
    for text in [
        STORE.replace("%r2", "%rd2"),
        STORE.replace("%r2", "%r1+4"),
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%r1, {%r1}], [%r2];".into(),
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%rd1}], [%r2];".into(),
    ] {
        let result = run(&kernel(&format!("{text} ld.global.u32 %r8, [%rd8]; ret;")));
        assert_eq!(
            (result.sites.len(), result.unsupported.len()),
            (1, 1),
            "{text}"
        );
        assert_eq!(result.stats.unsupported, 1);
    }
}

#[test]
fn a_runtime_without_these_hooks_lists_the_copies() {
    let old = STUB.replace("__gsan_copy", "__gsan_other");
    let text = kernel(&format!("{STORE} {LOAD} cp.async.bulk.commit_group; ret;"));
    let result = instrument(&text, &Options::new(&old, "t.ptx")).unwrap();
    assert_eq!((result.sites.len(), result.unsupported.len()), (0, 2));
}

#[test]
fn windows_and_masks() {
    let op = |access| word(access);
    let load = "cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2, -1, 3}], [%r3], {%h0, %h1};";
    let hook = line(load);
    let call = format!(
        "mov.b16 %gsan_v16, 0; mov.b64 %gsan_c, {{%h0, %h1, %gsan_v16, %gsan_v16}}; call.uni __gsan_copy_windows, (%gsan_s, %rd1, {}, 0, \
         %gsan_c, ",
        op(Access::Load)
    );
    assert!(hook.contains(&call), "{hook}");
    assert!(hook.contains(", %r1, %r2, -1, 3, 0); "), "{hook}");
    let store = "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%rd1, {%r1, 0, 0}], [%r1];";
    let hook = line(store);
    assert!(
        hook.contains("%gsan_c, {%gsan_v16, %gsan_v16, %gsan_v16, %gsan_v16}"),
        "{hook}"
    );
    assert!(hook.contains(&format!(
        "{}, 0, %gsan_c, 0, %r1, 0, 0, 0, 0)",
        op(Access::Store)
    )));
    let masked = "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], %r2, %h0;";
    assert_eq!(
        line(masked),
        format!(
            "cvt.u32.u16 %gsan_r, %h0; call.uni __gsan_copy_masked, (%gsan_s, %rd1, {}, 0, %r2, %gsan_r); {masked}",
            op(Access::Store)
        )
    );
}
