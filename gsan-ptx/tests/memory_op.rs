//! Classification, instruction by instruction.

mod common;

use common::{flat, kernel};
use gsan_ptx::ast::{Space, Statement};
use gsan_ptx::hook::{Access, OpWord, Order, Scope};
use gsan_ptx::memory_op::{BulkGroup, Effect, Remote, classify};
use gsan_ptx::parse;

/// What `classify` says of a one-instruction body, in a form that can be compared.
#[derive(Debug, PartialEq)]
enum Is {
    Nothing,
    Access(Access, u32, Order, Scope, &'static str),
    Fence(Order, Scope),
    Barrier,
    Private(Space),
    Copy(Access, u32, Order, &'static str),
    Group(BulkGroup),
    Unsupported,
}

fn is(instruction: &str) -> Is {
    let text = kernel(instruction);
    let module = parse(&text).unwrap_or_else(|e| panic!("{}", e.render("t", &text)));
    let found = flat(&module).into_iter().find_map(|s| match s {
        Statement::Instruction(i) => Some(i),
        _ => None,
    });
    match classify(found.unwrap()) {
        Effect::None => Is::Nothing,
        Effect::Fence(order, scope) => Is::Fence(order, scope),
        Effect::Barrier => Is::Barrier,
        Effect::Private(space) => Is::Private(space),
        Effect::CopyGroup(group) => Is::Group(group),
        Effect::Copy(copy) => {
            assert_eq!(copy.barrier.is_some(), copy.access == Access::Load);
            let place = match copy.remote {
                Remote::Range(..) if copy.mask.is_some() => "masked",
                Remote::Range(..) => "range",
                Remote::Windows { offsets: [], .. } => "pixels",
                Remote::Windows { .. } => "windows",
                Remote::Box { rows: true, .. } => "rows",
                Remote::Box { .. } => "box",
            };
            let word = copy.op_word();
            Is::Copy(word.access(), word.size(), word.order(), place)
        }
        Effect::Unsupported(why) => {
            assert!(!why.is_empty());
            Is::Unsupported
        }
        Effect::Access(op) => {
            let word = op.op_word();
            assert_eq!(
                (word.access(), word.size(), word.order(), word.scope()),
                (op.access, op.size, op.order, op.scope)
            );
            assert_eq!(
                op.returns,
                instruction.contains("ld") || instruction.contains("atom")
            );
            assert_eq!(op.comparand.is_some(), op.access == Access::Cas);
            let bits = match (
                word.has(OpWord::VOLATILE),
                word.has(OpWord::NON_COHERENT),
                word.has(OpWord::GENERIC),
            ) {
                (false, false, false) => "",
                (true, false, false) => "volatile",
                (true, false, true) => "volatile generic",
                (false, true, false) => "nc",
                (false, true, true) => "nc generic",
                (false, false, true) => "generic",
                _ => "odd",
            };
            Is::Access(op.access, op.size, op.order, op.scope, bits)
        }
    }
}

#[track_caller]
fn check(cases: &[(&str, Is)]) {
    for (instruction, expected) in cases {
        assert_eq!(is(instruction), *expected, "{instruction}");
    }
}

#[test]
fn loads_and_stores() {
    use Access::*;
    use Order::*;
    check(&[
        (
            "ld.global.u32 %r1, [%rd1];",
            Is::Access(Load, 4, Weak, Scope::None, ""),
        ),
        (
            "ld.u32.global %r1, [%rd1];",
            Is::Access(Load, 4, Weak, Scope::None, ""),
        ),
        (
            "ld.weak.global.u8 %r1, [%rd1];",
            Is::Access(Load, 1, Weak, Scope::None, ""),
        ),
        (
            "ld.u64 %rd1, [%rd1+8];",
            Is::Access(Load, 8, Weak, Scope::None, "generic"),
        ),
        (
            "ld.global.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];",
            Is::Access(Load, 32, Weak, Scope::None, ""),
        ),
        (
            "ld.global.v8.b32 {%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1}, [%rd1];",
            Is::Access(Load, 32, Weak, Scope::None, ""),
        ),
        (
            "ld.global.v2.f16 {%h1, %h2}, [%rd1];",
            Is::Access(Load, 4, Weak, Scope::None, ""),
        ),
        (
            "ld.global.b128 %q1, [%rd1];",
            Is::Access(Load, 16, Weak, Scope::None, ""),
        ),
        (
            "@%p1 ld.global.b32 { %r26 }, [ %rd7 + 0 ];",
            Is::Access(Load, 4, Weak, Scope::None, ""),
        ),
        (
            "ld.global.L1::evict_last.L2::cache_hint.b32 %r1, [%rd1], %rd2;",
            Is::Access(Load, 4, Weak, Scope::None, ""),
        ),
        (
            "ld.global.cv.u32 %r1, [%rd1];",
            Is::Access(Load, 4, Weak, Scope::None, ""),
        ),
        (
            "ld.global.nc.v2.u32 {%r1, %r2}, [%rd1];",
            Is::Access(Load, 8, Weak, Scope::None, "nc"),
        ),
        (
            "ld.global.nc.L1::no_allocate.L2::256B.f32 %f1, [%rd1];",
            Is::Access(Load, 4, Weak, Scope::None, "nc"),
        ),
        (
            "ldu.global.f32 %f1, [%rd1];",
            Is::Access(Load, 4, Weak, Scope::None, "nc"),
        ),
        (
            "ldu.f32 %f1, [%rd1];",
            Is::Access(Load, 4, Weak, Scope::None, "nc generic"),
        ),
        (
            "ld.volatile.global.u32 %r1, [%rd1];",
            Is::Access(Load, 4, Relaxed, Scope::Sys, "volatile"),
        ),
        (
            "ld.volatile.u32 %r1, [%rd1];",
            Is::Access(Load, 4, Relaxed, Scope::Sys, "volatile generic"),
        ),
        (
            "ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];",
            Is::Access(Load, 4, Relaxed, Scope::Sys, ""),
        ),
        (
            "ld.acquire.gpu.global.u32 %r1, [%rd1];",
            Is::Access(Load, 4, Acquire, Scope::Gpu, ""),
        ),
        (
            "ld.global.gpu.acquire.b64 %rd1, [%rd1];",
            Is::Access(Load, 8, Acquire, Scope::Gpu, ""),
        ),
        (
            "ld.relaxed.cluster.global.u16 %h1, [%rd1];",
            Is::Access(Load, 2, Relaxed, Scope::Cluster, ""),
        ),
        (
            "ld.acquire.cta.u32 %r1, [%rd1];",
            Is::Access(Load, 4, Acquire, Scope::Cta, "generic"),
        ),
        (
            "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};",
            Is::Access(Store, 16, Weak, Scope::None, ""),
        ),
        (
            "st.release.sys.u32 [%rd1], %r1;",
            Is::Access(Store, 4, Release, Scope::Sys, "generic"),
        ),
        (
            "st.volatile.global.u8 [%rd1], %r1;",
            Is::Access(Store, 1, Relaxed, Scope::Sys, "volatile"),
        ),
        (
            "st.global.relaxed.gpu.v2.u32 [%rd1], {%r1, %r2};",
            Is::Access(Store, 8, Relaxed, Scope::Gpu, ""),
        ),
        ("ld.shared.u32 %r1, [%r2];", Is::Private(Space::Shared)),
        (
            "ld.volatile.shared::cta.u32 %r1, [%r2];",
            Is::Private(Space::Shared),
        ),
        (
            "st.shared::cluster.u32 [%r2], %r1;",
            Is::Private(Space::SharedCluster),
        ),
        ("ld.local.u32 %r1, [%rd2];", Is::Private(Space::Local)),
        ("ld.param.u64 %rd1, [p];", Is::Private(Space::Param)),
        ("ld.param::entry.u64 %rd1, [p];", Is::Private(Space::Param)),
        ("ld.const.u32 %r1, [c+4];", Is::Private(Space::Const)),
        // Forms that are not understood are listed, not guessed at.
        ("ld.global.u32 %r1, tab[3];", Is::Unsupported),
        ("ld.global.u32 %r1, %rd1;", Is::Unsupported),
        ("ld.global %r1, [%rd1];", Is::Unsupported),
        ("st.global.u32 [%rd1, {%r1}], %r1;", Is::Unsupported),
    ]);
}

#[test]
fn atomics() {
    use Access::*;
    use Order::*;
    check(&[
        (
            "atom.global.add.u32 %r1, [%rd1], 1;",
            Is::Access(Rmw, 4, Relaxed, Scope::Gpu, ""),
        ),
        (
            "atom.sys.add.u64 %rd1, [%rd1], 1;",
            Is::Access(Rmw, 8, Relaxed, Scope::Sys, "generic"),
        ),
        (
            "atom.global.gpu.acq_rel.add.s32 %r1, [%rd1], %r2;",
            Is::Access(Rmw, 4, AcqRel, Scope::Gpu, ""),
        ),
        (
            "atom.add.acq_rel.gpu.s32 %r1, [%rd1], %r2;",
            Is::Access(Rmw, 4, AcqRel, Scope::Gpu, "generic"),
        ),
        (
            "atom.global.cta.acquire.exch.b32 %r1, [%rd1], %r2;",
            Is::Access(Rmw, 4, Acquire, Scope::Cta, ""),
        ),
        (
            "atom.global.acquire.gpu.cas.b32 %r1, [%rd1], %r2, %r3;",
            Is::Access(Cas, 4, Acquire, Scope::Gpu, ""),
        ),
        (
            "atom.cas.b128.relaxed.gpu.global %q1, [%rd1], %q2, %q3;",
            Is::Access(Cas, 16, Relaxed, Scope::Gpu, ""),
        ),
        (
            "atom.exch.b128.release.sys.global %q1, [%rd1], %q2;",
            Is::Access(Rmw, 16, Release, Scope::Sys, ""),
        ),
        (
            "atom.global.cas.b16 %h1, [%rd1], %h2, 3;",
            Is::Access(Cas, 2, Relaxed, Scope::Gpu, ""),
        ),
        (
            "atom.global.gpu.relaxed.add.noftz.v8.f16 {%h1,%h1,%h1,%h1,%h1,%h1,%h1,%h1}, [%rd1], {%h1,%h1,%h1,%h1,%h1,%h1,%h1,%h1};",
            Is::Access(Rmw, 16, Relaxed, Scope::Gpu, ""),
        ),
        (
            "atom.global.add.noftz.f16x2 %r1, [%rd1], %r2;",
            Is::Access(Rmw, 4, Relaxed, Scope::Gpu, ""),
        ),
        (
            "red.global.add.u32 [%rd1], 1;",
            Is::Access(Rmw, 4, Relaxed, Scope::Gpu, ""),
        ),
        (
            "red.global.gpu.release.add.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};",
            Is::Access(Rmw, 16, Release, Scope::Gpu, ""),
        ),
        (
            "red.sys.max.s64 [%rd1], %rd2;",
            Is::Access(Rmw, 8, Relaxed, Scope::Sys, "generic"),
        ),
        (
            "atom.shared.add.u32 %r1, [%r2], 1;",
            Is::Private(Space::Shared),
        ),
        (
            "atom.shared::cluster.add.u32 %r1, [%r2], 1;",
            Is::Private(Space::SharedCluster),
        ),
        (
            "atom.global.cas.b32 %r1, [%rd1], {%r2}, %r3;",
            Is::Unsupported,
        ),
        ("atom.global.add.what %r1, [%rd1], 1;", Is::Unsupported),
    ]);
}

#[test]
fn fences_and_barriers() {
    use Order::*;
    check(&[
        ("fence.sc.gpu;", Is::Fence(Sc, Scope::Gpu)),
        ("fence.acq_rel.cta;", Is::Fence(AcqRel, Scope::Cta)),
        ("fence.acquire.sys;", Is::Fence(Acquire, Scope::Sys)),
        ("fence.release.cluster;", Is::Fence(Release, Scope::Cluster)),
        ("membar.cta;", Is::Fence(Sc, Scope::Cta)),
        ("membar.gl;", Is::Fence(Sc, Scope::Gpu)),
        ("membar.sys;", Is::Fence(Sc, Scope::Sys)),
        ("fence.proxy.async.shared::cta;", Is::Nothing),
        ("fence.proxy.alias;", Is::Nothing),
        ("membar.proxy.alias;", Is::Nothing),
        (
            "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;",
            Is::Nothing,
        ),
        ("fence.mbarrier_init.release.cluster;", Is::Nothing),
        (
            "fence.acquire.sync_restrict::shared::cluster.cluster;",
            Is::Nothing,
        ),
        ("bar.sync 0;", Is::Barrier),
        ("bar.red.popc.u32 %r1, 0, %p1;", Is::Barrier),
        ("barrier.sync.aligned 1, 64;", Is::Barrier),
        ("barrier.cluster.arrive.release;", Is::Barrier),
        ("bar.warp.sync 0xffffffff;", Is::Nothing),
    ]);
}

#[test]
fn bulk_copies() {
    use Access::*;
    use Order::*;
    check(&[
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];",
            Is::Copy(Load, 16, Weak, "range"),
        ),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r1], [%rd1], 64, [%r3+8], %rs1, %rd2;",
            Is::Copy(Load, 16, Weak, "range"),
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd1], [%r1], %r2, %rd3;",
            Is::Copy(Store, 16, Weak, "range"),
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd1], [%r1], %r2;",
            Is::Copy(Rmw, 2, Relaxed, "range"),
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];",
            Is::Copy(Store, 16, Weak, "box"),
        ),
        (
            "cp.async.bulk.tensor.5d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, 0, 0, 0, -1}], [%r3];",
            Is::Copy(Load, 16, Weak, "box"),
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2, %r3, %r4, %r5}], [%r3];",
            Is::Copy(Load, 16, Weak, "rows"),
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {%r1, %r2, %r3, %r4, %r5}], [%r3];",
            Is::Copy(Store, 16, Weak, "rows"),
        ),
        (
            "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd1, {%r1}], [%r2];",
            Is::Copy(Rmw, 16, Relaxed, "box"),
        ),
        ("cp.async.wait_group 2;", Is::Group(BulkGroup::Landed)),
        ("cp.async.wait_all;", Is::Group(BulkGroup::Landed)),
        ("cp.async.bulk.commit_group;", Is::Group(BulkGroup::Commit)),
        ("cp.async.bulk.wait_group 3;", Is::Group(BulkGroup::Wait(3))),
    ]);
}

#[test]
fn what_touches_global_memory_and_is_not_checked() {
    for instruction in [
        "cp.async.ca.shared.global [%r1], [%rd1], %r2;",
        "cp.async.ca.shared.global [%r1], [%rd1], 8, 4, %rd2;",
        "discard.global.L2 [%rd1];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2;",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1], [%rd1], %r2, %r4, %r5, [%r3];",
        "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1];",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], %r2;",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1], [%r3];",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2, %r3}], [%r3];",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2, %r3}], [%r3], {%rs1};",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2}], [%r3];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add [%rd1], [%r1], %r2;",
        "st.async.release.sys.global [%rd1], %r1;",
        "st.bulk.weak [%rd1], %rd2, 0;",
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;",
        "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], %r2;",
        "multimem.st.global.q7 [%rd1], %f1;",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
        "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
        "suld.b.1d.b32.trap %r1, [%rd1, {%r2}];",
        "sust.b.1d.b32.trap [%rd1, {%r2}], %r1;",
        "sured.b.add.1d.u32.trap [%rd1, {%r2}], %r1;",
        "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;",
        "tensormap.cp_fenceproxy.global.x [%rd1], [%rd2], 128;",
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1], %r2;",
        "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd1], {%f1}, %r2;",
        "ldnew.global.u32 %r1, [%rd1];",
        "frobnicate.b32 {%r1, %r2}, [%rd1, {%r3}];",
        "frobnicate.b32 %r1, tab[3];",
    ] {
        assert_eq!(is(instruction), Is::Unsupported, "{instruction}");
    }
}

/// They are carried out later, but what they release is what was before them.
#[test]
fn asynchronous_stores_to_global_memory_release() {
    use Order::*;
    let found = |access, size, scope| Is::Access(access, size, Release, scope, "");
    for (instruction, expected) in [
        (
            "st.async.mmio.release.sys.global.u32 [%rd1], %r1;",
            found(Access::Store, 4, Scope::Sys),
        ),
        (
            "st.async.release.global.b64 [%rd1], %rd2;",
            found(Access::Store, 8, Scope::Sys),
        ),
        (
            "red.async.mmio.release.sys.global.add.u32 [%rd1], %r1;",
            found(Access::Rmw, 4, Scope::Sys),
        ),
        (
            "red.async.release.gpu.global.add.u64 [%rd1], %rd2;",
            found(Access::Rmw, 8, Scope::Gpu),
        ),
        // Without a space the address is generic; one that completes on an mbarrier goes to shared memory.
        (
            "st.async.mmio.release.sys.u32 [%rd1], %r1;",
            Is::Access(Access::Store, 4, Release, Scope::Sys, "generic"),
        ),
        (
            "red.async.mmio.release.sys.add.u64 [%rd1], %rd2;",
            Is::Access(Access::Rmw, 8, Release, Scope::Sys, "generic"),
        ),
        (
            "st.async.weak.mbarrier::complete_tx::bytes.v2.u32 [%rd1], {%r1, %r2}, [%rd2];",
            Is::Private(Space::SharedCluster),
        ),
        (
            "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%rd1], %r1, [%rd2];",
            Is::Private(Space::SharedCluster),
        ),
    ] {
        assert_eq!(is(instruction), expected, "{instruction}");
    }
    let text = common::kernel("red.async.mmio.release.sys.global.add.u32 [%rd1], %r1;");
    let done = gsan_ptx::instrument(&text, &gsan_ptx::Options::new(common::STUB, "t")).unwrap();
    assert_eq!((done.sites.len(), done.stats.strong), (1, 1));
    assert!(done.text.contains("__gsan_sync_before") && done.unsupported[0].partly);
}

#[test]
fn what_can_not_race() {
    for instruction in [
        "add.s32 %r1, %r2, %r3;",
        "cvta.to.global.u64 %rd1, %rd2;",
        "isspacep.global %p1, %rd1;",
        "prefetch.global.L2 [%rd1];",
        "prefetchu.L1 [%rd1];",
        "prefetch.tensormap [%rd1];",
        "applypriority.global.L2::evict_normal [%rd1], 128;",
        "createpolicy.range.global.L2::evict_last.b64 %rd1, [%rd2], 64, 128;",
        "cp.async.commit_group;",
        "cp.async.bulk.wait_group.read 0;",
        "cp.async.bulk.prefetch.L2.global [%rd1], %r1;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1}, {%r1}, {%r2}, {%f2};",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];",
        "call.uni (%r1), f, (%r2);",
        "mov.u64 %rd1, tab[2];",
        "mapa.shared::cluster.u32 %r1, %r2, 0;",
    ] {
        assert_eq!(is(instruction), Is::Nothing, "{instruction}");
    }
    for instruction in [
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];",
        "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r1], {%r1, %r2, %r3, %r4}, [%r5];",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], %r3, [%r4];",
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1}, [%r2], %r3;",
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd1], 1;",
    ] {
        assert!(
            matches!(
                is(instruction),
                Is::Private(Space::Shared | Space::SharedCluster)
            ),
            "{instruction}"
        );
    }
}

#[test]
fn the_order_of_modifiers_does_not_matter() {
    // Every order of the modifiers of one instruction, by Heap's algorithm.
    fn orders(words: &mut [&'static str], n: usize, found: &mut Vec<String>) {
        if n <= 1 {
            found.push(words.join("."));
            return;
        }
        for i in 0..n {
            orders(words, n - 1, found);
            words.swap(if n.is_multiple_of(2) { i } else { 0 }, n - 1);
        }
    }
    let mut found = Vec::new();
    orders(
        &mut ["global", "acquire", "sys", "cas", "b64"],
        5,
        &mut found,
    );
    assert_eq!(found.len(), 120);
    for modifiers in found {
        let expected = Is::Access(Access::Cas, 8, Order::Acquire, Scope::Sys, "");
        assert_eq!(
            is(&format!("atom.{modifiers} %rd1, [%rd2], 0, 1;")),
            expected,
            "{modifiers}"
        );
    }
}
