//! The hooks that follow the order of a cluster's blocks, as they stand in the text.

mod common;

use common::{STUB, kernel};
use gsan_ptx::{Instrumented, Options, instrument};

const ACCESS: &str = "ld.global.u32 %r8, [%rd8];\n";
const ARRIVE: &str = "call.uni __gsan_cluster_arrive, (%gsan_s); ";
const RELEASE: &str = "call.uni __gsan_cluster_release, (%gsan_s); ";
const ACQUIRE: &str = " call.uni __gsan_cluster_acquire, (%gsan_s); ";

fn run(text: &str) -> Instrumented {
    instrument(text, &Options::new(STUB, "t.ptx")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What becomes of one line in a kernel that has something to check, and may run in clusters.
fn line(text: &str) -> String {
    let result = run(&kernel(&format!(
        "mapa.u64 %rd1, %rd2, %r1; {ACCESS}{text}\nret;"
    )));
    result.text.lines().nth(7).unwrap().to_string()
}

#[test]
fn the_clusters_barrier() {
    for text in [
        "barrier.cluster.arrive;",
        "barrier.cluster.arrive.release.aligned;",
    ] {
        assert_eq!(line(text), format!("{ARRIVE}{text}"));
    }
    for text in [
        "barrier.cluster.wait;",
        "barrier.cluster.wait.acquire.aligned;",
    ] {
        assert_eq!(line(text), format!("{text}{ACQUIRE}"));
    }
    // A relaxed arrival releases what a fence before it has.
    let relaxed = "barrier.cluster.arrive.relaxed;";
    assert_eq!(line(relaxed), relaxed);
    assert_eq!(
        line(&format!("fence.acq_rel.cta; {relaxed}"))
            .matches(ARRIVE)
            .count(),
        0
    );
    // In a loop the fence may stand behind it.
    let round = line(&format!("{relaxed} fence.acq_rel.cluster;"));
    assert!(round.starts_with(&format!("{ARRIVE}{relaxed}")), "{round}");
    for other in ["fence.mbarrier_init.release.cluster;", "fence.proxy.async;"] {
        let unfenced = line(&format!("{other} {relaxed}"));
        assert!(!unfenced.contains(ARRIVE), "{unfenced}");
    }
    for fence in ["fence.acq_rel.cluster;", "membar.gl;", "call.uni f, ();"] {
        let fenced = line(&format!("{fence} {relaxed}"));
        assert!(fenced.ends_with(&format!("{ARRIVE}{relaxed}")), "{fenced}");
    }
    assert_eq!(
        line("@%p1 barrier.cluster.arrive;"),
        format!("@!%p1 bra $L__gsan_1; {ARRIVE}$L__gsan_1: @%p1 barrier.cluster.arrive;")
    );
}

/// The newest target that the module names decides, not what its comments say.
#[test]
fn whether_a_module_may_have_clusters() {
    let barrier = "barrier.cluster.arrive; barrier.cluster.wait;";
    let module = kernel(&format!("{ACCESS}{barrier}"));
    let followed = |text: &str| run(text).text.contains("call.uni __gsan_cluster_arrive");
    assert!(followed(&module));
    assert!(followed(&format!(
        "// from code for .target sm_80\n{module}"
    )));
    assert!(followed(
        &module.replace("sm_90a", "sm_80\n.target sm_90a, debug")
    ));
    // A hook for clusters does not assemble for an older one.
    let old = module
        .replace("sm_90a", "sm_80")
        .replace(barrier, "ld.acquire.gpu.u32 %r1, [%rd1];");
    let old = run(&format!(
        "// also built for .target sm_90, with ::cluster\n{old}"
    ));
    assert!(!old.text.contains("isspacep.shared::cluster"));
}

#[test]
fn flags_and_mbarriers_in_shared_memory() {
    for text in [
        "st.release.cluster.shared::cluster.u32 [%r1], 1;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];",
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r1], 8;",
        "mbarrier.arrive.b64 %rd1, [%rd2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], 1, [%r3];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2], 1, [%r3];",
    ] {
        assert_eq!(line(text), format!("{RELEASE}{text}"));
    }
    for text in [
        "ld.acquire.cluster.shared::cluster.u32 %r1, [%r2];",
        "ld.acquire.cluster.shared::cta.u32 %r1, [%r2];",
        "ld.relaxed.gpu.shared.u32 %r1, [%r2];",
    ] {
        assert_eq!(line(text), format!("{text}{ACQUIRE}"));
    }
    let atom = "atom.acq_rel.cluster.shared::cluster.add.u32 %r1, [%r2], 1;";
    assert_eq!(line(atom), format!("{RELEASE}{atom}{ACQUIRE}"));
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;";
    assert_eq!(
        line(wait),
        format!("{wait} @!%p1 bra $L__gsan_1;{ACQUIRE}$L__gsan_1: ")
    );
    // What is relaxed releases behind a fence only.
    for text in [
        "st.volatile.shared::cluster.u32 [%r1], 1;",
        "st.relaxed.cluster.shared::cluster.u32 [%r1], 1;",
        "red.relaxed.cluster.shared::cluster.add.u32 [%r1], 1;",
        "red.shared::cluster.add.u32 [%r1], 1;",
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1];",
    ] {
        assert!(!line(text).contains("__gsan_cluster"), "{}", line(text));
        assert!(
            line(&format!("{text} fence.acq_rel.cluster;"))
                .starts_with(&format!("{RELEASE}{text}")),
            "in a loop the fence stands before it, too"
        );
        let near = format!("fence.acq_rel.cta; {text}");
        assert!(!line(&near).contains(RELEASE), "a fence of the block alone");
    }
    let relaxed = "atom.shared::cluster.add.u32 %r1, [%r2], 1;";
    assert_eq!(line(relaxed), format!("{relaxed}{ACQUIRE}"));
    // What is the block's own affair.
    const SYNC: &str = " call.uni __gsan_block_sync, (%gsan_s); ";
    let own = "atom.acq_rel.cta.shared.add.u32 %r1, [%r2], 1;";
    assert_eq!(line(own), format!("{own}{SYNC}"));
    for text in [
        "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];",
        "st.shared::cluster.u32 [%r1], 1;",
        "st.release.cta.shared::cta.u32 [%r1], 1;",
        "ld.shared::cluster.u32 %r1, [%r2];",
    ] {
        assert_eq!(line(text), text);
    }
}

#[test]
fn generic_addresses_may_be_another_blocks_shared_memory() {
    let store = line("st.release.cluster.u32 [%rd1], 1;");
    assert!(
        store.starts_with(&format!(
            "isspacep.shared::cluster %gsan_p, %rd1; @!%gsan_p bra $L__gsan_1; {RELEASE}$L__gsan_1: call.uni (%gsan_c), __gsan_sync_before"
        )),
        "{store}"
    );
    let load = line("ld.acquire.cluster.u32 %r1, [%rd1];");
    assert!(!load.contains("release, (%gsan_s)"));
    assert!(
        load.ends_with(&format!("isspacep.shared::cluster %gsan_p, %gsan_a; @!%gsan_p bra $L__gsan_1;{ACQUIRE}$L__gsan_1: ")),
        "{load}"
    );
    for text in [
        "ld.acquire.cta.u32 %r1, [%rd1];",
        "ld.acquire.gpu.global.u32 %r1, [%rd1];",
        "ld.u32 %r1, [%rd1];",
    ] {
        assert!(!line(text).contains("cluster"), "{text}");
    }
    let own = line("cvta.shared.u64 %rd2, %rd3; atom.add.release.cluster.u32 %r1, [%rd2], 1;");
    assert!(
        own.contains(&format!("{RELEASE}atom.add")) && own.ends_with(ACQUIRE),
        "{own}"
    );
}

#[test]
fn modules_without_clusters_have_none() {
    let text = kernel(&format!(
        "{ACCESS}atom.shared.add.u32 %r1, [%r2], 1; mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2; ret;"
    ));
    let user = |text: &str| {
        let result = run(text);
        assert_eq!(result.stats.cluster_syncs, 0);
        result.text
            [result.text.find(".entry").unwrap()..result.text.find(".visible .global").unwrap()]
            .to_string()
    };
    assert!(!user(&text).contains("__gsan_cluster"));
    // Before sm_90 there are none, whatever a comment says.
    assert!(
        !user(
            &text
                .replace("sm_90a", "sm_80")
                .replace("ret;", "ret; // .cluster")
        )
        .contains("__gsan_cluster")
    );
    // The order of blocks is followed where that within a block is not.
    let text = kernel(&format!(
        "{ACCESS}bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait; ret;"
    ));
    let off = Options {
        intra_block: false,
        ..Options::new(STUB, "t")
    };
    let result = instrument(&text, &off).unwrap();
    assert!(result.text.contains(ARRIVE) && result.text.contains(ACQUIRE));
    assert!(!result.text.contains("call.uni __gsan_barrier") && result.unsupported.is_empty());
}

#[test]
fn kernels_that_count_their_registers_say_what_they_do_not_follow() {
    let text = kernel(&format!(
        "{ACCESS}W: mbarrier.try_wait.shared::cta.b64 %p1, [%r1], %rd2; @!%p1 bra W; mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2;\n\
         barrier.cluster.arrive; barrier.cluster.wait; setmaxnreg.dec.sync.aligned.u32 40; ret;"
    ));
    let result = run(&text);
    assert!(result.text.contains(ARRIVE) && result.text.matches(ACQUIRE).count() == 1);
    let said = result
        .unsupported
        .iter()
        .filter(|u| u.why.contains("another block's arrival"));
    assert_eq!(said.count(), 1);
    assert!(result.unsupported.iter().all(|u| u.partly));
}
