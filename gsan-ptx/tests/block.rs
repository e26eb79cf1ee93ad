//! The hooks that follow the order of a block's threads, as they stand in the text.

mod common;

use common::{STUB, kernel};
use gsan_ptx::{Instrumented, Options, instrument};

/// An access, so that the kernel has something to check.
const ACCESS: &str = "ld.global.u32 %r8, [%rd8];\n";

fn run(text: &str) -> Instrumented {
    instrument(text, &Options::new(STUB, "t.ptx")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What becomes of one line in a kernel that accesses memory.
fn line(text: &str) -> String {
    let result = run(&kernel(&format!("{ACCESS}{text}\nret;")));
    result.text.lines().nth(7).unwrap().to_string()
}

fn hooks(text: &str) -> usize {
    ["barrier_before", "barrier_after", "block_sync"]
        .iter()
        .map(|hook| text.matches(&format!("call.uni __gsan_{hook}")).count())
        .sum()
}

#[test]
fn barriers_have_a_hook_before_and_one_behind() {
    let both = |text: &str, id: &str, count: &str| {
        assert_eq!(
            line(text),
            format!(
                "call.uni __gsan_barrier_before, (%gsan_s, {id}, {count}); {text} \
                 call.uni __gsan_barrier_after, (%gsan_s, {id}, {count}); "
            )
        );
    };
    both("bar.sync 0;", "0", "0");
    both("bar.cta.sync 3, 64;", "3", "64");
    both("barrier.sync %r1;", "%r1", "0");
    both("barrier.cta.sync.aligned %r1, %r2;", "%r1", "%r2");
    both("barrier.sync 0xf, 0x40;", "15", "64");
    both("bar.red.popc.u32 %r3, 1, %p1;", "1", "0");
    both("bar.red.and.pred %p2, %r1, 32, !%p1;", "%r1", "32");
    both(
        "barrier.cta.red.or.aligned.pred %p2, 2, %r2, %p1;",
        "2",
        "%r2",
    );
    for text in ["bar.arrive 1, 64;", "barrier.cta.arrive.aligned 1, 64;"] {
        assert_eq!(
            line(text),
            format!("call.uni __gsan_barrier_before, (%gsan_s, 1, 64); {text}")
        );
    }
    // A warp's barrier is none of the block's, and neither are votes and elections.
    for text in [
        "bar.warp.sync -1;",
        "vote.sync.ballot.b32 %r1, %p1, -1;",
        "elect.sync %r1|%p1, -1;",
        "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;",
    ] {
        assert_eq!(line(text), text);
    }
}

#[test]
fn guarded_barriers_have_guarded_hooks() {
    assert_eq!(
        line("@%p1 bar.sync 1, %r2;"),
        "@!%p1 bra $L__gsan_1; call.uni __gsan_barrier_before, (%gsan_s, 1, %r2); $L__gsan_1: @%p1 bar.sync 1, %r2; \
         @!%p1 bra $L__gsan_2; call.uni __gsan_barrier_after, (%gsan_s, 1, %r2); $L__gsan_2: "
    );
}

#[test]
fn what_a_barrier_overwrites_is_saved() {
    assert_eq!(
        line("bar.red.popc.u32 %r1, %r1, %r2, %p1;"),
        "mov.b32 %gsan_r, %r1; call.uni __gsan_barrier_before, (%gsan_s, %r1, %r2); bar.red.popc.u32 %r1, %r1, %r2, %p1; \
         call.uni __gsan_barrier_after, (%gsan_s, %gsan_r, %r2); "
    );
    assert_eq!(
        line("bar.red.popc.u32 %r2, 1, %r2, %p1;"),
        "mov.b32 %gsan_q, %r2; call.uni __gsan_barrier_before, (%gsan_s, 1, %r2); bar.red.popc.u32 %r2, 1, %r2, %p1; \
         call.uni __gsan_barrier_after, (%gsan_s, 1, %gsan_q); "
    );
    assert_eq!(
        line("@!%p1 bar.red.and.pred %p1, 0, %p2;"),
        "mov.pred %gsan_p, %p1; @%p1 bra $L__gsan_1; call.uni __gsan_barrier_before, (%gsan_s, 0, 0); $L__gsan_1: \
         @!%p1 bar.red.and.pred %p1, 0, %p2; \
         @%gsan_p bra $L__gsan_2; call.uni __gsan_barrier_after, (%gsan_s, 0, 0); $L__gsan_2: "
    );
}

#[test]
fn other_synchronisation_of_a_block_is_told_afterwards() {
    const HOOK: &str = " call.uni __gsan_block_sync, (%gsan_s); ";
    for text in [
        "ld.volatile.shared.u32 %r1, [%r2];",
        "ld.relaxed.cta.shared::cta.u32 %r1, [%r2];",
        "atom.shared.add.u32 %r1, [%r2], 1;",
        "atom.acq_rel.cta.shared::cta.cas.b32 %r1, [%r2], 0, 1;",
        "red.shared.or.b32 [%r2], 1;",
    ] {
        assert_eq!(line(text), format!("{text}{HOOK}"));
    }
    for text in [
        "ld.shared.u32 %r1, [%r2];",
        "ld.weak.shared.u32 %r1, [%r2];",
        "st.volatile.shared.u32 [%r2], 1;",
        "st.shared.u32 [%r2], 1;",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];",
        "mbarrier.init.shared.b64 [%r1], 1;",
        "cp.async.commit_group;",
    ] {
        assert_eq!(line(text), text);
    }
    assert_eq!(
        line("@%p1 atom.shared.add.u32 %r1, [%r2], 1;"),
        "@%p1 atom.shared.add.u32 %r1, [%r2], 1; \
         @!%p1 bra $L__gsan_1; call.uni __gsan_block_sync, (%gsan_s); $L__gsan_1: "
    );
}

#[test]
fn a_wait_on_an_mbarrier_counts_when_it_is_over() {
    let text = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;";
    assert_eq!(
        line(text),
        format!("{text} @!%p1 bra $L__gsan_1; call.uni __gsan_block_sync, (%gsan_s); $L__gsan_1: ")
    );
    // The guard may be what is written.
    let text = "@!%p1 mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2;";
    assert_eq!(
        line(text),
        format!(
            "mov.pred %gsan_p, %p1; {text} @%gsan_p bra $L__gsan_1; @!%p1 bra $L__gsan_2; \
             call.uni __gsan_block_sync, (%gsan_s); $L__gsan_2: $L__gsan_1: "
        )
    );
}

#[test]
fn shared_memory_behind_a_generic_address() {
    let with = |text: &str| line(&format!("cvta.shared.u64 %rd2, %rd3; {text}"));
    assert_eq!(hooks(&with("ld.volatile.u32 %r1, [%rd2];")), 1);
    assert_eq!(hooks(&with("atom.add.u32 %r1, [%rd2], 1;")), 1);
    assert_eq!(hooks(&with("ld.u32 %r1, [%rd2];")), 0);
    assert_eq!(hooks(&with("st.volatile.u32 [%rd2], 1;")), 0);
    // Where the address may be any, the runtime decides in the access's own hook.
    assert_eq!(hooks(&line("atom.add.u32 %r1, [%rd1], 1;")), 0);
}

#[test]
fn a_kernel_with_nothing_to_check_has_no_such_hook() {
    let text =
        "bar.sync 0; st.shared.u32 [%r1], 1; bar.sync 0; atom.shared.add.u32 %r1, [%r2], 1; ret;";
    let quiet = run(&kernel(text));
    assert_eq!(hooks(&quiet.text), 0);
    assert!(!quiet.text.contains("(%gsan_s), __gsan_state, ()"));
    assert_eq!((quiet.stats.barriers, quiet.stats.barrier_hooks), (2, 0));
    assert_eq!(quiet.stats.block_syncs, 0);
    assert_eq!(quiet.user_text(), kernel(text));

    let busy = run(&kernel(&format!("{text}\n{ACCESS}")));
    assert_eq!(hooks(&busy.text), 5);
    assert_eq!((busy.stats.barriers, busy.stats.barrier_hooks), (2, 2));
    assert_eq!(busy.stats.block_syncs, 1);
    assert!(busy.entries[0].intra_block);

    // Functions that nobody calls here, and that have barriers, may be called by anybody.
    let function =
        ".version 8.7\n.target sm_90\n.address_size 64\n.func f() { bar.sync 0; ret; }\n";
    let function = run(function);
    assert_eq!(hooks(&function.text), 2);
    assert!(function.text.contains(
        ".func f() { .reg .b64 %gsan_s; call.uni (%gsan_s), __gsan_state, (); call.uni __gsan_barrier_before"
    ));
}

#[test]
fn kernels_that_count_their_registers_have_none() {
    let wait = "mbarrier.try_wait.shared.b64 %p1, [%r1], %rd2; bar.sync 1, 128;";
    let text = kernel(&format!(
        "{ACCESS}{wait} setmaxnreg.dec.sync.aligned.u32 40; {wait} ret;"
    )) + &format!(".visible .entry other() {{ {ACCESS}{wait} ret; }}\n");
    let result = run(&text);
    assert_eq!(hooks(&result.text), 3, "the other kernel's");
    let flags: Vec<bool> = result.entries.iter().map(|e| e.intra_block).collect();
    assert_eq!(flags, [false, true]);
    let why: Vec<&str> = result.unsupported.iter().map(|u| u.why.as_str()).collect();
    assert_eq!(why.len(), 1, "{why:?}");
    assert!(why[0].contains("one block") && result.unsupported[0].partly);
    // Where the runtime is linked registers don't move, and everything is followed.
    let apart = Options {
        apart: true,
        ..Options::new(STUB, "t.ptx")
    };
    let linked = instrument(&text, &apart).unwrap();
    assert_eq!(hooks(&linked.text), 9);
    assert!(linked.entries.iter().all(|e| e.intra_block));
    // Which is said once for each.
    let twice = text.replacen(wait, "setmaxnreg.inc.sync.aligned.u32 200;", 1);
    for text in [&text, &twice] {
        let said = instrument(text, &apart).unwrap().unsupported;
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].partly && said[0].why.contains("setmaxnreg has no effect"));
    }

    // A comment changes nothing.
    let said = run(&kernel(&format!("// setmaxnreg\n{ACCESS}bar.sync 0; ret;")));
    assert!(said.entries[0].intra_block && hooks(&said.text) == 2);

    // In a function it concerns every kernel that might call it.
    let inner = ".func f() { { setmaxnreg.inc.sync.aligned.u32 200; } bar.sync 0; ret; }\n";
    let result = run(&(kernel(&format!("{ACCESS}bar.sync 0; ret;")) + inner));
    assert!(result.blind_function && !result.entries[0].intra_block);
    assert_eq!(hooks(&result.text), 2, "the kernel's");
    assert_eq!(result.unsupported.len(), 1);
    let result = instrument(
        &(kernel(&format!("{ACCESS}bar.sync 0; ret;")) + inner),
        &apart,
    );
    let result = result.unwrap();
    assert!(!result.blind_function && result.entries[0].intra_block);
}

#[test]
fn a_barrier_that_is_not_understood_ends_it() {
    for text in [
        "bar.sync 0, 1, 2;",
        "bar.sync [%r1];",
        "bar.what 0;",
        "bar.red.and.pred %p1;",
    ] {
        let result = run(&kernel(&format!("{ACCESS}{text} ret;")));
        assert!(!result.entries[0].intra_block, "{text}");
        assert!(result.unsupported[0].why.contains("barrier"), "{text}");
    }
    let result = run(&(kernel(ACCESS) + ".func f() { bar.what 0; ret; }\n"));
    assert!(!result.entries[0].intra_block);
}

#[test]
fn off_or_without_a_runtime_that_has_them_nothing_of_it_is_there() {
    let text = kernel(&format!(
        "{ACCESS}bar.sync 0; atom.shared.add.u32 %r1, [%r2], 1; bar.odd; setmaxnreg.dec.sync.aligned.u32 40; ret;"
    ));
    let off = Options {
        intra_block: false,
        ..Options::new(STUB, "t")
    };
    let older = STUB
        .replace("__gsan_barrier_", "old_")
        .replace("__gsan_block_sync", "old");
    for options in [off, Options::new(&older, "t")] {
        let result = instrument(&text, &options).unwrap();
        let user = result.text.split("\n.visible .global").next().unwrap();
        assert!(!user.contains("__gsan_barrier") && !user.contains("__gsan_block_sync"));
        assert!(!result.entries[0].intra_block);
        assert_eq!(result.stats.barrier_hooks + result.stats.block_syncs, 0);
        assert!(result.unsupported.is_empty());
    }
    // Some of them are no use.
    let part = STUB.replace("__gsan_barrier_after", "old");
    let error = instrument(&text, &Options::new(&part, "t")).unwrap_err();
    assert!(
        error.to_string().contains("__gsan_barrier_after"),
        "{error}"
    );
}

#[test]
fn a_module_that_is_linked_already_says_nothing_of_its_barriers() {
    let once = run(&kernel(&format!("{ACCESS}bar.sync 0; ret;")));
    assert!(once.entries[0].intra_block);
    let twice = run(&once.text);
    assert!(twice.already_linked && !twice.entries[0].intra_block);
}
