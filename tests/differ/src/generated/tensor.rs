//! Copies by the bulk engine: boxes of tensors in every mode, reductions, multicasts.

use crate::kernel::{Kernel, Launch, Map};

/// All of them.
pub fn kernels() -> Vec<Kernel> {
    let mut out = Vec::new();
    loads(&mut out);
    stores(&mut out);
    bulk(&mut out);
    multicast(&mut out);
    out
}

fn kernel(name: String, ptx: &str, launch: Launch) -> Kernel {
    Kernel {
        name,
        number: 0,
        ptx: format!(".version 8.6\n.target sm_90a\n.address_size 64\n{ptx}"),
        launch,
    }
}

/// Bytes of `CUtensorMapDataType`'s elements.
fn size(ty: i32) -> u32 {
    match ty {
        0 => 1,
        1 | 6 | 9 => 2,
        4 | 5 | 8 => 8,
        _ => 4,
    }
}

fn numbers(list: &[i32]) -> String {
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
  cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {{{}}}], [%r2];
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W; mov.u32 %r3, 0;
L: ld.shared.b32 %r4, [%r1]; st.global.b32 [%d2], %r4; add.u32 %r1, %r1, 4; add.u64 %d2, %d2, 4; add.u32 %r3, %r3, 4;
  setp.lt.u32 %p2, %r3, 16384; @%p2 bra L; ret;
}}\n",
        map.extents.len(),
        numbers(corner)
    );
    let args = vec!["map=0".to_string(), "zero[16384]".to_string()];
    let mut launch = Launch::of_one_block(1, args);
    launch.shared = 16384;
    launch.map.push(map);
    kernel(format!("tensor load: {name}"), &ptx, launch)
}

fn map(data: &str, ty: i32, extents: &[u64], strides: &[u64], boxes: &[u32]) -> Map {
    Map {
        data: data.to_string(),
        ty,
        extents: extents.to_vec(),
        strides: strides.to_vec(),
        boxes: boxes.to_vec(),
        steps: Vec::new(),
        swizzle: 0,
        fill: 0,
    }
}

fn loads(out: &mut Vec<Kernel>) {
    for swizzle in 0..4 {
        let line = [64u32, 32, 64, 128][swizzle as usize];
        for (name, width) in [("whole lines", line), ("half lines", line / 2)] {
            for corner in [[0, 0], [-3, 5], [61, 30]] {
                let m = Map {
                    swizzle,
                    ..map("u16[4096]", 1, &[64, 40], &[160], &[width / 2, 16])
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
            let extents = [u64::from(width) + 3, 10];
            let m = Map {
                fill,
                ..map(data, ty, &extents, &[128], &[width, 8])
            };
            out.push(load(&format!("{name}, fill {fill}"), m, &[5, 6]));
        }
    }
    let data = "u32[8192]";
    out.push(load("1d", map(data, 2, &[1000], &[], &[64]), &[970]));
    out.push(load(
        "3d",
        map(data, 2, &[12, 7, 5], &[64, 512], &[8, 4, 3]),
        &[6, 5, 3],
    ));
    out.push(load(
        "4d",
        map(data, 2, &[8, 5, 4, 3], &[32, 192, 1024], &[8, 2, 3, 2]),
        &[-1, 4, -1, 2],
    ));
    let five = map(
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
            ..map(data, 2, &[12, 9, 8], &[64, 640], &[8, 7, 5])
        };
        out.push(load(&format!("steps {steps:?}"), m, &[2, 1, 2]));
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
            for corner in [[0, 0], [-2, 3], [3, 5]] {
                let each = size(ty);
                // Rows of 32 bytes, eight of them; the tensor has rows of 48.
                let width = 32 / each;
                let ptx = format!(
                    ".extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in) {{
  .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [in]; mov.u32 %r1, s; mov.u32 %r2, %tid.x;
  mad.wide.u32 %d3, %r2, 4, %d2; mad.lo.u32 %r3, %r2, 4, %r1; ld.global.b32 %r4, [%d3]; st.shared.b32 [%r3], %r4;
  fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %r2, 0; @%p1 bra E;
  {op} [%d1, {{{}}}], [%r1];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
E: ret;
}}\n",
                    numbers(&corner)
                );
                let bytes = |n: u32| format!("{kind}[{}]", n / each);
                let mut launch = Launch::of_one_block(64, vec!["map=0".to_string(), bytes(256)]);
                launch.shared = 1024;
                let extents = [u64::from(48 / each), 10];
                launch.map.push(Map {
                    swizzle,
                    ..map(&bytes(480), ty, &extents, &[48], &[width, 8])
                });
                let name = format!("tensor {name}: swizzle {swizzle}, at {}", numbers(&corner));
                out.push(kernel(name, &ptx, launch));
            }
        }
    }
}

fn bulk(out: &mut Vec<Kernel>) {
    for (op, kind) in [
        ("add.u32", "u32"),
        ("add.s32", "u32"),
        ("add.u64", "u64"),
        ("add.f32", "whole"),
        ("add.f64", "whole64"),
        ("add.noftz.f16", "whole16"),
        ("add.noftz.bf16", "wholeb16"),
        ("min.f16", "whole16"),
        ("max.bf16", "wholeb16"),
        ("min.s32", "u32"),
        ("max.u64", "u64"),
        ("min.s64", "u64"),
        ("inc.u32", "below.9"),
        ("dec.u32", "below.9"),
        ("and.b32", "u32"),
        ("or.b64", "u64"),
        ("xor.b32", "u32"),
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
        let name = format!("cp.reduce.async.bulk.{op}");
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
    launch.map.push(map("u32[40]", 2, &[40], &[], &[16]));
    out.push(kernel(
        "multicast and distributed shared memory".to_string(),
        ptx,
        launch,
    ));
}
