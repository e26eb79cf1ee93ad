//! Copies by the bulk engine: boxes of tensors in every mode, reductions, multicasts.
//!
//! What the hardware asks for, and no document: the first coordinate, in bytes, is a multiple of 16; and no coordinate of a
//! store is negative. It answers with an illegal instruction. `refused` has one of each.

use super::windows;
use crate::kernel::{Kernel, Launch, Map};

/// All of them.
pub fn kernels() -> Vec<Kernel> {
    let mut out = Vec::new();
    loads(&mut out);
    stores(&mut out);
    bulk(&mut out);
    multicast(&mut out);
    refused(&mut out);
    windows::kernels(&mut out);
    out
}

pub(super) fn kernel(name: String, ptx: &str, launch: Launch) -> Kernel {
    Kernel {
        name,
        number: 0,
        ptx: format!(".version 8.6\n.target sm_90a\n.address_size 64\n{ptx}"),
        launch,
    }
}

/// Bytes of `CUtensorMapDataType`'s elements.
pub(super) fn size(ty: i32) -> u32 {
    match ty {
        0 => 1,
        1 | 6 | 9 => 2,
        4 | 5 | 8 => 8,
        _ => 4,
    }
}

pub(super) fn numbers(list: &[i32]) -> String {
    list.iter()
        .map(i32::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// What a box at a corner looks like in shared memory.
fn load(name: &str, map: Map, corner: &[i32]) -> Kernel {
    let steps = |i: usize| {
        if i == 0 {
            1
        } else {
            map.steps.get(i).copied().unwrap_or(1)
        }
    };
    let elements: u32 = map
        .boxes
        .iter()
        .enumerate()
        .map(|(i, n)| n.div_ceil(steps(i)))
        .product();
    let copy = format!(
        "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {{{}}}], [%r2];",
        map.extents.len(),
        numbers(corner)
    );
    load_by(name, map, &copy, elements)
}

/// What that copy leaves in shared memory, which is full of 0x5a before.
pub(super) fn load_by(name: &str, map: Map, copy: &str, elements: u32) -> Kernel {
    let bytes = elements * size(map.ty);
    let ptx = format!(
        ".extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {{
  .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 8 .b8 bar[8];
  mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [out]; mov.u32 %r1, s; mov.u32 %r2, bar;
  mov.u32 %r5, 0; mov.u32 %r6, 0x5a5a5a5a; mov.u32 %r7, %r1;
Z: st.shared.b32 [%r7], %r6; add.u32 %r7, %r7, 4; add.u32 %r5, %r5, 4; setp.lt.u32 %p1, %r5, 16384; @%p1 bra Z;
  mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {bytes};
  {copy}
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W; mov.u32 %r3, 0;
L: ld.shared.b32 %r4, [%r1]; st.global.b32 [%d2], %r4; add.u32 %r1, %r1, 4; add.u64 %d2, %d2, 4; add.u32 %r3, %r3, 4;
  setp.lt.u32 %p2, %r3, 16384; @%p2 bra L; ret;
}}\n"
    );
    let args = vec!["map=0".to_string(), "zero[16384]".to_string()];
    let mut launch = Launch::of_one_block(1, args);
    launch.shared = 16384;
    launch.map.push(map);
    kernel(format!("tensor load: {name}"), &ptx, launch)
}

pub(super) fn tensor_map(
    data: &str,
    ty: i32,
    extents: &[u64],
    strides: &[u64],
    boxes: &[u32],
) -> Map {
    Map {
        data: data.to_string(),
        ty,
        extents: extents.to_vec(),
        strides: strides.to_vec(),
        boxes: boxes.to_vec(),
        steps: Vec::new(),
        swizzle: 0,
        fill: 0,
        windows: None,
    }
}

fn loads(out: &mut Vec<Kernel>) {
    for swizzle in 0..4 {
        let line = [64u32, 32, 64, 128][swizzle as usize];
        for (name, width) in [("whole lines", line), ("half lines", line / 2)] {
            for corner in [[0, 0], [-8, 5], [56, 30]] {
                let m = Map {
                    swizzle,
                    ..tensor_map("u16[4096]", 1, &[64, 40], &[160], &[width / 2, 16])
                };
                let name = format!("swizzle {swizzle}, {name}, at {}", numbers(&corner));
                out.push(load(&name, m, &corner));
            }
        }
    }
    for (name, ty, data) in [
        ("u8", 0, "u8[4096]"),
        ("u32", 2, "u32[1024]"),
        ("u64", 4, "u64[512]"),
        ("f16", 6, "f16[2048]"),
        ("f32", 7, "edgef32[1024]"),
        ("f64", 8, "f64[512]"),
        ("bf16", 9, "f16[2048]"),
        ("f32, flushed", 10, "edgef32[1024]"),
        ("tf32", 11, "edgef32[1024]"),
        ("tf32, flushed", 12, "edgef32[1024]"),
    ] {
        for fill in if ty >= 6 { 0..2 } else { 0..1 } {
            let width = 64 / size(ty);
            let extents = [u64::from(width) + 1, 10];
            let m = Map {
                fill,
                ..tensor_map(data, ty, &extents, &[128], &[width, 8])
            };
            let piece = 16 / size(ty) as i32;
            out.push(load(&format!("{name}, fill {fill}"), m, &[piece, 6]));
        }
    }
    // Halfway between two tf32, subnormals, NaNs, infinities.
    let edges = "words(1065357312,1065365504,1065373696,-1082122240,1,-2147483647,8388607,8384512,8392704,2143289344,2139095041,-4194303,2139095040,-8388608,2139094016,2139095039,2139090944,4096,4097,8192,12288,-2147479552,0,-2147483648,1065353217,1065357313,1065361408,1065361409,1199570944,-8193,-1,2147483647)";
    for (name, ty) in [
        ("f32", 7),
        ("f32, flushed", 10),
        ("tf32", 11),
        ("tf32, flushed", 12),
    ] {
        let m = tensor_map(edges, ty, &[32, 1], &[128], &[32, 1]);
        out.push(load(&format!("{name}, edges"), m, &[0, 0]));
    }
    let data = "u32[8192]";
    out.push(load("1d", tensor_map(data, 2, &[1000], &[], &[64]), &[968]));
    out.push(load(
        "3d",
        tensor_map(data, 2, &[12, 7, 5], &[64, 512], &[8, 4, 3]),
        &[4, 5, 3],
    ));
    out.push(load(
        "4d",
        tensor_map(data, 2, &[8, 5, 4, 3], &[32, 192, 1024], &[8, 2, 3, 2]),
        &[-4, 4, -1, 2],
    ));
    let five = tensor_map(
        data,
        2,
        &[4, 5, 4, 3, 2],
        &[16, 96, 512, 2048],
        &[4, 3, 2, 2, 2],
    );
    out.push(load("5d", five, &[0, 3, 3, 1, 1]));
    for steps in [[1, 2, 1], [1, 1, 3], [2, 3, 2]] {
        let m = Map {
            steps: steps.to_vec(),
            ..tensor_map(data, 2, &[12, 9, 8], &[64, 640], &[8, 7, 5])
        };
        out.push(load(&format!("steps {steps:?}"), m, &[4, 1, 2]));
    }
}

/// A box of whole numbers in shared memory goes to a tensor.
fn stores(out: &mut Vec<Kernel>) {
    let forms = [
        (
            "store",
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
            6,
            "whole16",
        ),
        (
            "add f16",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            6,
            "whole16",
        ),
        (
            "add bf16",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            9,
            "wholeb16",
        ),
        (
            "add f32",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            7,
            "whole",
        ),
        (
            "min f16",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group",
            6,
            "whole16",
        ),
        (
            "add f32, edges",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            7,
            "edgef32",
        ),
        (
            "add f32, flushed, edges",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            10,
            "edgef32",
        ),
        (
            "add f16, edges",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            6,
            "edgef16",
        ),
        (
            "min f16, edges",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group",
            6,
            "edgef16",
        ),
        (
            "max bf16, edges",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group",
            9,
            "edgebf16",
        ),
        (
            "add f64, edges",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            8,
            "edgef64",
        ),
        (
            "max s32",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group",
            3,
            "u32",
        ),
        (
            "max u32",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group",
            2,
            "u32",
        ),
        (
            "inc u32",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.tile.bulk_group",
            2,
            "below.9",
        ),
        (
            "xor u32",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile.bulk_group",
            2,
            "u32",
        ),
        (
            "add u64",
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
            4,
            "u64",
        ),
    ];
    for (name, op, ty, kind) in forms {
        for swizzle in 0..if name == "store" { 4 } else { 1 } {
            let each = size(ty);
            // Inside, and over the right and the lower edge.
            for corner in [[0, 0], [32 / each as i32, 5]] {
                // Rows of 32 bytes, eight of them; the tensor has rows of 48.
                let width = 32 / each;
                let bytes = |n: u32| format!("{kind}[{}]", n / each);
                let extents = [u64::from(48 / each), 10];
                let m = Map {
                    swizzle,
                    ..tensor_map(&bytes(480), ty, &extents, &[48], &[width, 8])
                };
                let at = numbers(&corner);
                let copy = format!("{op} [%d1, {{{at}}}], [%r1];");
                let name = format!("tensor {name}: swizzle {swizzle}, at {at}");
                out.push(store_by(name, m, &copy, bytes(1024)));
            }
        }
    }
}

/// A kibibyte of that in shared memory, then the copy.
pub(super) fn store_by(name: String, map: Map, copy: &str, from: String) -> Kernel {
    let ptx = format!(
        ".extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in) {{
  .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [in]; mov.u32 %r1, s; mov.u32 %r2, %tid.x;
  mad.wide.u32 %d3, %r2, 4, %d2; mad.lo.u32 %r3, %r2, 4, %r1; ld.global.b32 %r4, [%d3]; st.shared.b32 [%r3], %r4;
  fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %r2, 0; @%p1 bra E;
  {copy}
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
E: ret;
}}\n"
    );
    let mut launch = Launch::of_one_block(256, vec!["map=0".to_string(), from]);
    launch.shared = 1024;
    launch.map.push(map);
    kernel(name, &ptx, launch)
}

/// Copies that the hardware does not make.
fn refused(out: &mut Vec<Kernel>) {
    let line = || tensor_map("u32[8192]", 2, &[1000], &[], &[64]);
    let load = |coordinates: &str, to: &str| {
        let copy = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes";
        format!("add.u32 %r8, %r1, {to}; {copy} [%r8], [%d1, {{{coordinates}}}], [%r2];")
    };
    for (name, copy) in [
        ("from a corner off 16 bytes", load("970", "0")),
        ("from a negative corner off 16 bytes", load("-1", "0")),
        ("to a multiple of 64", load("0", "64")),
        ("to a multiple of 16", load("0", "16")),
        (
            "another number of dimensions",
            load("0, 0", "0").replace("1d", "2d"),
        ),
    ] {
        out.push(load_by(&format!("refused, {name}"), line(), &copy, 64));
    }
    // The permutation goes by the address, not by the box.
    let swizzled = Map {
        swizzle: 3,
        ..tensor_map("u16[4096]", 1, &[64, 40], &[160], &[64, 16])
    };
    let copy = load("0, 0", "384").replace("1d", "2d");
    out.push(load_by(
        "swizzle 3, to a multiple of 128",
        swizzled,
        &copy,
        1024,
    ));
    let store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
    let add = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group";
    for (name, op, corner) in [
        ("off 16 bytes", store, [3, 5]),
        ("off 16 bytes, added", add, [3, 5]),
        ("left of the first column", store, [-4, 5]),
        ("left of the first column, added", add, [-4, 5]),
        ("above the first row", store, [4, -2]),
        ("above the first row, added", add, [4, -2]),
    ] {
        let m = tensor_map("u32[120]", 2, &[12, 10], &[48], &[8, 8]);
        let copy = format!("{op} [%d1, {{{}}}], [%r1];", numbers(&corner));
        let name = format!("tensor store: {name}");
        out.push(store_by(name, m, &copy, "u32[256]".to_string()));
    }
}

fn bulk(out: &mut Vec<Kernel>) {
    for (name, op, kind) in [
        ("add.f32, edges", "add.f32", "edgef32"),
        ("add.f64, edges", "add.f64", "edgef64"),
        ("add.noftz.f16, edges", "add.noftz.f16", "edgef16"),
        ("add.u32", "add.u32", "u32"),
        ("add.s32", "add.s32", "u32"),
        ("add.u64", "add.u64", "u64"),
        ("add.f32", "add.f32", "whole"),
        ("add.f64", "add.f64", "whole64"),
        ("add.noftz.f16", "add.noftz.f16", "whole16"),
        ("add.noftz.bf16", "add.noftz.bf16", "wholeb16"),
        ("min.f16", "min.f16", "whole16"),
        ("max.bf16", "max.bf16", "wholeb16"),
        ("min.s32", "min.s32", "u32"),
        ("max.u64", "max.u64", "u64"),
        ("min.s64", "min.s64", "u64"),
        ("inc.u32", "inc.u32", "below.9"),
        ("dec.u32", "dec.u32", "below.9"),
        ("and.b32", "and.b32", "u32"),
        ("or.b64", "or.b64", "u64"),
        ("xor.b32", "xor.b32", "u32"),
    ] {
        let ptx = format!(
            ".visible .entry k(.param .u64 out, .param .u64 in) {{
  .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 16 .b8 s[256];
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; mov.u32 %r1, s; mov.u32 %r2, %tid.x;
  mad.wide.u32 %d3, %r2, 4, %d2; mad.lo.u32 %r3, %r2, 4, %r1; ld.global.b32 %r4, [%d3]; st.shared.b32 [%r3], %r4;
  fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %r2, 0; @%p1 bra E;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%d1], [%r1], 256;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
E: ret;
}}\n"
        );
        let each = match op.rsplit('.').next() {
            Some("u64" | "s64" | "b64" | "f64") => 8,
            Some("f16" | "bf16") => 2,
            _ => 4,
        };
        let args = vec![
            format!("{kind}[{}]", 264 / each),
            format!("{kind}[{}]", 256 / each),
        ];
        let name = format!("cp.reduce.async.bulk.{name}");
        out.push(kernel(name, &ptx, Launch::of_one_block(64, args)));
    }
}

/// Blocks 0, 2 and 3 of a cluster of four get what block 2 loads; block 1 tells them its rank through their memory.
fn multicast(out: &mut Vec<Kernel>) {
    let ptx = ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {
  .reg .b64 %d<9>; .reg .b32 %r<12>; .reg .b16 %h<2>; .reg .pred %p<3>;
  .shared .align 128 .b8 s[128]; .shared .align 8 .b8 bar[8]; .shared .align 16 .b8 word[16];
  mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [out]; mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r5, %cluster_ctarank;
  mov.u32 %r8, word; mov.u32 %r9, 0; st.shared.v4.b32 [%r8], {%r9, %r9, %r9, %r9}; st.shared.b32 [%r1+8], %r9;
  mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  setp.ne.u32 %p1, %r5, 2; mov.u16 %h1, 13; @%p1 bra S;
  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1, {4}], [%r2], %h1;
S: mapa.shared::cluster.u32 %r6, %r8, 0; mad.lo.u32 %r6, %r5, 4, %r6; add.u32 %r7, %r5, 100; st.shared::cluster.b32 [%r6], %r7;
  mapa.shared::cluster.u32 %r6, %r8, 3; atom.shared::cluster.add.u32 %r7, [%r6+12], %r5;
W: setp.eq.u32 %p1, %r5, 1; @%p1 bra D; mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra W;
D: barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  mov.u32 %r3, %ctaid.x; mad.wide.u32 %d2, %r3, 32, %d2; ld.shared.b32 %r4, [%r1+8]; st.global.b32 [%d2], %r4;
  getctarank.shared::cluster.u32 %r4, %r6; st.global.b32 [%d2+4], %r4;
  ld.shared.v4.b32 {%r4, %r6, %r7, %r9}, [%r8]; st.global.v4.b32 [%d2+16], {%r4, %r6, %r7, %r9};
  mov.u32 %r4, %cluster_nctarank; mov.u32 %r6, %clusterid.x; mov.u32 %r7, %nclusterid.x; mov.u32 %r9, %cluster_ctaid.x;
  shl.b32 %r4, %r4, 8; or.b32 %r4, %r4, %r6; shl.b32 %r4, %r4, 8; or.b32 %r4, %r4, %r7; shl.b32 %r4, %r4, 8; or.b32 %r4, %r4, %r9;
  st.global.b32 [%d2+8], %r4; mov.u32 %r4, %cluster_nctaid.x; st.global.b32 [%d2+12], %r4;
  barrier.cluster.arrive; barrier.cluster.wait; ret;
}\n";
    let mut launch = Launch::of_one_block(1, vec!["map=0".to_string(), "zero[256]".to_string()]);
    launch.grid = vec![8];
    launch.cluster = vec![4];
    launch.map.push(tensor_map("u32[40]", 2, &[40], &[], &[16]));
    out.push(kernel(
        "multicast and distributed shared memory".to_string(),
        ptx,
        launch,
    ));
}
