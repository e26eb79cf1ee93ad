//! Products of matrices, with elements small enough for exact sums: what is compared is where elements lie.

use super::{sparse, volta};
use crate::kernel::{Kernel, Launch};
use std::fmt::Write;

/// All of them.
pub fn kernels() -> Vec<Kernel> {
    let mut out = Vec::new();
    mma(&mut out);
    volta::kernels(&mut out);
    sparse::kernels(&mut out);
    wmma(&mut out);
    wgmma(&mut out);
    move_matrices(&mut out);
    out
}

pub(super) fn list(name: &str, count: usize) -> String {
    (0..count)
        .map(|i| format!("{name}{i}"))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn kernel(name: String, ptx: String, launch: Launch) -> Kernel {
    Kernel {
        name,
        number: 0,
        ptx: format!(".version 8.6\n.target sm_90a\n.address_size 64\n{ptx}"),
        launch,
    }
}

/// Bits of an element, and data that fill a register with whole numbers.
pub(super) fn element(ty: &str) -> (usize, &'static str) {
    match ty {
        "f64" => (64, "whole64"),
        "f32" | "tf32" => (32, "whole"),
        "s32" => (32, "u32"),
        "f16" => (16, "whole16"),
        "bf16" => (16, "wholeb16"),
        "e4m3" | "e5m2" => (8, "whole8"),
        "s8" | "u8" => (8, "u8"),
        "s4" | "u4" => (4, "u8"),
        _ => (1, "u8"),
    }
}

/// A buffer's word of `bytes` bytes.
pub(super) fn data(ty: &str, bytes: usize) -> String {
    let (bits, kind) = element(ty);
    // Elements smaller than a byte come in bytes.
    format!("{kind}[{}]", 8 * bytes / bits.max(8))
}

fn mma(out: &mut Vec<Kernel>) {
    let forms = [
        ("m16n8k8", "f32.f16.f16.f32", ""),
        ("m16n8k16", "f32.f16.f16.f32", ""),
        ("m16n8k8", "f16.f16.f16.f16", ""),
        ("m16n8k16", "f16.f16.f16.f16", ""),
        ("m16n8k8", "f32.bf16.bf16.f32", ""),
        ("m16n8k16", "f32.bf16.bf16.f32", ""),
        ("m16n8k4", "f32.tf32.tf32.f32", ""),
        ("m16n8k8", "f32.tf32.tf32.f32", ""),
        ("m16n8k32", "f32.e4m3.e5m2.f32", ""),
        ("m16n8k32", "f32.e5m2.e5m2.f32", ""),
        ("m16n8k16", "s32.s8.s8.s32", ""),
        ("m16n8k16", "s32.u8.s8.s32", ""),
        ("m16n8k32", "s32.s8.u8.s32", ""),
        ("m16n8k32", "s32.u8.u8.s32", "satfinite."),
        ("m8n8k16", "s32.s8.u8.s32", ""),
        ("m16n8k32", "s32.s4.u4.s32", ""),
        ("m16n8k64", "s32.u4.s4.s32", ""),
        ("m16n8k64", "s32.s4.s4.s32", "satfinite."),
        ("m8n8k32", "s32.u4.s4.s32", ""),
        ("m8n8k128", "s32.b1.b1.s32", ".and.popc"),
        ("m16n8k128", "s32.b1.b1.s32", ".xor.popc"),
        ("m16n8k256", "s32.b1.b1.s32", ".and.popc"),
        ("m8n8k128", "s32.b1.b1.s32", ".xor.popc"),
        ("m8n8k4", "f64.f64.f64.f64", ""),
        ("m16n8k4", "f64.f64.f64.f64", ""),
        ("m16n8k8", "f64.f64.f64.f64", ""),
        ("m16n8k16", "f64.f64.f64.f64", ""),
    ];
    for (shape, types, extra) in forms {
        let [td, ta, tb, tc] =
            <[&str; 4]>::try_from(types.split('.').collect::<Vec<_>>()).unwrap_or_default();
        let (m, rest) = shape[1..].split_once('n').unwrap_or_default();
        let (n, k) = rest.split_once('k').unwrap_or_default();
        let [m, n, k] = [m, n, k].map(|x| x.parse::<usize>().unwrap_or(0));
        let wide = ta == "f64";
        let (bits, size) = if wide { (64, 8) } else { (32, 4) };
        let registers = |elements: usize, ty: &str| elements * element(ty).0 / 32 / bits;
        let (ra, rb) = (registers(m * k, ta), registers(k * n, tb));
        let (rc, rd) = (registers(m * n, tc), registers(m * n, td));
        let op = match extra {
            "satfinite." => format!("mma.sync.aligned.{shape}.row.col.satfinite.{types}"),
            tail => format!("mma.sync.aligned.{shape}.row.col.{types}{tail}"),
        };
        let mut body = String::new();
        for (name, count, buffer) in [("a", ra, 2), ("b", rb, 3), ("c", rc, 4)] {
            let _ = writeln!(
                body,
                "mad.wide.u32 %d{buffer}, %r1, {}, %d{buffer};",
                size * count
            );
            for i in 0..count {
                let _ = writeln!(
                    body,
                    "ld.global.b{bits} %{name}{i}, [%d{buffer}+{}];",
                    size * i
                );
            }
        }
        let (d, a, b, c) = (
            list("%e", rd),
            list("%a", ra),
            list("%b", rb),
            list("%c", rc),
        );
        let _ = writeln!(body, "{op} {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};");
        let _ = writeln!(body, "mad.wide.u32 %d1, %r1, {}, %d1;", size * rd);
        for i in 0..rd {
            let _ = writeln!(body, "st.global.b{bits} [%d1+{}], %e{i};", size * i);
        }
        // Floats' accumulators have a type of their own.
        let sum = |ty: &str| match ty {
            "f32" | "f64" => format!(".{ty}"),
            _ => ".b32".to_string(),
        };
        let operand = if wide { ".f64" } else { ".b32" };
        let ptx = format!(
            ".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c) {{
  .reg .b64 %d<5>; .reg .b32 %r<2>; .reg {operand} %a<8>, %b<8>; .reg {} %c<8>; .reg {} %e<8>;
  ld.param.u64 %d1, [d]; ld.param.u64 %d2, [a]; ld.param.u64 %d3, [b]; ld.param.u64 %d4, [c]; mov.u32 %r1, %laneid;
{body}  ret;
}}\n",
            sum(tc),
            sum(td)
        );
        let args = vec![
            format!("zero[{}]", 32 * size * rd),
            data(ta, 32 * size * ra),
            data(tb, 32 * size * rb),
            data(tc, 32 * size * rc),
        ];
        out.push(kernel(op, ptx, Launch::of_one_block(32, args)));
    }
}

fn wmma(out: &mut Vec<Kernel>) {
    let forms = [
        ("m16n16k16", [16, 16, 16], "f32.f16.f16.f32", [8, 8, 8]),
        ("m16n16k16", [16, 16, 16], "f16.f16.f16.f16", [8, 8, 4]),
        ("m8n32k16", [8, 32, 16], "f32.f16.f16.f32", [8, 8, 8]),
        ("m32n8k16", [32, 8, 16], "f32.f16.f16.f32", [8, 8, 8]),
        ("m16n16k16", [16, 16, 16], "f32.bf16.bf16.f32", [4, 4, 8]),
        ("m8n32k16", [8, 32, 16], "f32.bf16.bf16.f32", [2, 8, 8]),
        ("m16n16k8", [16, 16, 8], "f32.tf32.tf32.f32", [4, 4, 8]),
        ("m16n16k16", [16, 16, 16], "s32.s8.s8.s32", [2, 2, 8]),
        ("m32n8k16", [32, 8, 16], "s32.u8.u8.s32", [4, 1, 8]),
        ("m8n8k4", [8, 8, 4], "f64.f64.f64.f64", [1, 1, 2]),
    ];
    for (shape, [m, n, k], types, [ra, rb, rc]) in forms {
        for (la, lb, lc) in [("row", "col", "row"), ("col", "row", "col")] {
            let [td, ta, tb, _] =
                <[&str; 4]>::try_from(types.split('.').collect::<Vec<_>>()).unwrap_or_default();
            let wide = ta == "f64";
            let stride = |rows: usize, columns: usize, layout: &str| {
                16 + if layout == "row" { columns } else { rows }
            };
            let (sa, sb, sc) = (stride(m, k, la), stride(k, n, lb), stride(m, n, lc));
            let (a, b, c) = (list("%a", ra), list("%b", rb), list("%c", rc));
            let multiplied = if ta == "f16" {
                format!("{td}.{td}")
            } else {
                types.to_string()
            };
            let (operand, sum) = match (wide, td) {
                (true, _) => (".f64", ".f64"),
                (_, "f32") => (".b32", ".f32"),
                _ => (".b32", ".b32"),
            };
            let ptx = format!(
                ".visible .entry k(.param .u64 c, .param .u64 a, .param .u64 b) {{
  .reg .b64 %d<4>; .reg {operand} %a<8>, %b<8>; .reg {sum} %c<8>;
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];
  wmma.load.a.sync.aligned.{la}.{shape}.global.{ta} {{{a}}}, [%d1], {sa};
  wmma.load.b.sync.aligned.{lb}.{shape}.global.{tb} {{{b}}}, [%d2], {sb};
  wmma.load.c.sync.aligned.{lc}.{shape}.global.{td} {{{c}}}, [%d3], {sc};
  wmma.mma.sync.aligned.{la}.{lb}.{shape}.{multiplied} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
  wmma.store.d.sync.aligned.{lc}.{shape}.global.{td} [%d3], {{{c}}}, {sc}; ret;
}}\n"
            );
            // Lines times stride, whichever way they run; 64 lines are more than any has.
            let bytes = |ty: &str, stride: usize| data(ty, 64 * stride * element(ty).0 / 8);
            let args = vec![bytes(td, sc), bytes(ta, sa), bytes(tb, sb)];
            let name = format!("wmma.{la}.{lb}.{shape}.{types}");
            out.push(kernel(name, ptx, Launch::of_one_block(32, args)));
        }
    }
}

/// A matrix in shared memory.
#[derive(Clone, Copy)]
struct Layout {
    /// 0, 128, 64, 32 bytes of swizzle.
    mode: u64,
    transposed: bool,
    start: u64,
    leading: u64,
    stride: u64,
    base: u64,
}

impl Layout {
    fn bits(&self) -> u64 {
        self.start >> 4
            | self.leading >> 4 << 16
            | self.stride >> 4 << 32
            | self.base << 49
            | self.mode << 62
    }

    /// For `extent` elements of `size` bytes along M or N.
    fn new(mode: u64, transposed: bool, start: u64, extent: u64, size: u64) -> Layout {
        let line = [16, 128, 64, 32][mode as usize];
        let (leading, stride) = match (mode, transposed) {
            (0, false) => (128, 256),
            // The leading stride does not count.
            (_, false) => (16, 8 * line),
            (0, true) => (128 * (extent * size).div_ceil(16), 128),
            (_, true) => (8 * line, 8 * line * (extent * size).div_ceil(line)),
        };
        Layout {
            mode,
            transposed,
            start,
            leading,
            stride,
            base: 0,
        }
    }
}

struct Group {
    types: &'static str,
    n: u64,
    a: Option<Layout>,
    b: Layout,
    tail: String,
    note: &'static str,
    /// A sparsity selector.
    sparse: Option<u32>,
}

fn wgmma(out: &mut Vec<Kernel>) {
    const B: u64 = 32 << 10;
    let mut groups = Vec::new();
    let plain = |size: u64| if size == 2 { ", 1, 1, 0, 0" } else { ", 1, 1" };
    for (types, size) in [
        ("f32.f16.f16", 2),
        ("f32.bf16.bf16", 2),
        ("f16.f16.f16", 2),
        ("f32.tf32.tf32", 4),
        ("f32.e5m2.e5m2", 1),
        ("f32.e4m3.e5m2", 1),
        ("s32.s8.s8", 0),
        ("s32.u8.s8", 0),
        ("s32.u8.u8", 0),
    ] {
        let bytes = size.max(1);
        for mode in 0..4 {
            for n in [8, 64, 128] {
                groups.push(Group {
                    types,
                    n,
                    a: Some(Layout::new(mode, false, 0, 64, bytes)),
                    b: Layout::new(mode, false, B, n, bytes),
                    tail: if size == 0 {
                        String::new()
                    } else {
                        plain(size).to_string()
                    },
                    note: "",
                    sparse: None,
                });
            }
        }
        // A sparse, in shared memory and in registers.
        for selector in 0..if bytes == 1 { 1 } else { 2 } {
            for a in [Some(Layout::new(1, false, 0, 64, bytes)), None] {
                let tail = match (size, a) {
                    (0, _) => "",
                    (2, Some(_)) => ", 1, 1, 0, 0",
                    (2, None) => ", 1, 1, 0",
                    _ => ", 1, 1",
                };
                groups.push(Group {
                    types,
                    n: 16,
                    a,
                    b: Layout::new(1, false, B, 16, bytes),
                    tail: tail.to_string(),
                    note: ["", ", selector 1"][selector as usize],
                    sparse: Some(selector),
                });
            }
        }
        // A in registers.
        groups.push(Group {
            types,
            n: 32,
            a: None,
            b: Layout::new(1, false, B, 32, bytes),
            tail: match size {
                0 => "",
                2 => ", 1, 1, 0",
                _ => ", 1, 1",
            }
            .to_string(),
            note: ", A in registers",
            sparse: None,
        });
    }
    for types in ["f32.f16.f16", "f32.bf16.bf16"] {
        for mode in 0..4 {
            for (ta, tb) in [(true, false), (false, true), (true, true)] {
                for n in [64, 256] {
                    groups.push(Group {
                        types,
                        n,
                        a: Some(Layout::new(mode, ta, 0, 64, 2)),
                        b: Layout::new(mode, tb, B, n, 2),
                        tail: format!(", 1, -1, {}, {}", u8::from(ta), u8::from(tb)),
                        note: ", transposed",
                        sparse: None,
                    });
                }
            }
        }
    }
    // Further into the atom, as loops over K go; a pattern that begins elsewhere; a leading stride that must not count.
    for (offset, base, leading, note) in [
        (32, 0, 16, ", at byte 32"),
        (96, 0, 16, ", at byte 96"),
        (1024, 0, 4096, ", another leading stride"),
        (256, 2, 16, ", from line 2"),
    ] {
        let layout = |start: u64| Layout {
            start: start + offset,
            base,
            leading,
            ..Layout::new(1, false, 0, 64, 2)
        };
        groups.push(Group {
            types: "f32.f16.f16",
            n: 64,
            a: Some(layout(0)),
            b: layout(B),
            tail: ", -1, 1, 0, 0".to_string(),
            note,
            sparse: None,
        });
    }
    out.extend(groups.iter().map(group));
}

fn group(g: &Group) -> Kernel {
    let types: Vec<&str> = g.types.split('.').collect();
    let (td, ta) = (types[0], types[1]);
    let (twice, sp) = g.sparse.map_or((1, ""), |_| (2, ".sp"));
    let k = twice * 256 / element(ta).0;
    let count = g.n as usize / if td == "f16" { 4 } else { 2 };
    let sum = if td == "f32" { ".f32" } else { ".b32" };
    let d = list("%e", count);
    let a = if g.a.is_some() {
        "%d3".to_string()
    } else {
        format!("{{{}}}", list("%a", 4))
    };
    let mut store = String::new();
    for i in 0..count {
        let _ = writeln!(store, "st.global.b32 [%d2+{}], %e{i};", 4 * i);
    }
    let op = format!(
        "wgmma.mma_async{sp}.sync.aligned.m64n{}k{k}.{}",
        g.n, g.types
    );
    let tail = &g.tail;
    let (parameter, load, which) = match g.sparse {
        None => ("", "", String::new()),
        Some(selector) => (
            ", .param .u64 metadata",
            "ld.param.u64 %d7, [metadata]; mad.wide.u32 %d7, %i1, 4, %d7; ld.global.b32 %a4, [%d7];",
            format!(", %a4, {selector}"),
        ),
    };
    // First without, then with what is there.
    let ptx = format!(
        ".extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .u64 image, .param .u64 out, .param .u64 da, .param .u64 db{parameter}) {{
  .reg .b64 %d<9>; .reg .b32 %i<9>, %a<5>; .reg {sum} %e<{count}>; .reg .pred %p<3>;
  ld.param.u64 %d1, [image]; ld.param.u64 %d2, [out]; ld.param.u64 %d3, [da]; ld.param.u64 %d4, [db];
  mov.u32 %i1, %tid.x; mov.u32 %i2, s; mul.lo.u32 %i3, %i1, 4; cvt.u64.u32 %d6, %i3; add.u64 %d1, %d1, %d6;
  ld.global.b32 %a0, [%d1]; ld.global.b32 %a1, [%d1+512]; ld.global.b32 %a2, [%d1+1024]; ld.global.b32 %a3, [%d1+1536];
  add.u32 %i4, %i2, %i3; mov.u32 %i5, 0;
L: ld.global.b32 %i6, [%d1]; st.shared.b32 [%i4], %i6; add.u64 %d1, %d1, 512; add.u32 %i4, %i4, 512;
  add.u32 %i5, %i5, 512; setp.lt.u32 %p1, %i5, 65536; @%p1 bra L;
  {load} fence.proxy.async.shared::cta; bar.sync 0;
  shr.u32 %i2, %i2, 4; cvt.u64.u32 %d6, %i2; add.u64 %d3, %d3, %d6; add.u64 %d4, %d4, %d6;
  setp.ne.u32 %p2, 0, 0;
  wgmma.fence.sync.aligned;
  {op} {{{d}}}, {a}, %d4{which}, %p2{tail};
  setp.eq.u32 %p2, 0, 0;
  {op} {{{d}}}, {a}, %d4{which}, %p2{tail};
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  mad.wide.u32 %d2, %i1, {}, %d2;
  {store}  ret;
}}\n",
        4 * count
    );
    let mut args = vec![
        data(ta, 65536),
        format!("zero[{}]", 128 * 4 * count),
        format!("u64={}", g.a.map_or(0, |a| a.bits())),
        format!("u64={}", g.b.bits()),
    ];
    if g.sparse.is_some() {
        args.push(sparse::metadata(ta, 128));
    }
    let mut launch = Launch::of_one_block(128, args);
    launch.shared = 65536;
    let letters = |l: &Layout| {
        format!(
            "{}{}",
            ["none", "128B", "64B", "32B"][l.mode as usize],
            if l.transposed { "T" } else { "" }
        )
    };
    let layouts = g.a.as_ref().map_or(String::new(), |a| letters(a) + " x ") + &letters(&g.b);
    kernel(format!("{op}{} {layouts}", g.note), ptx, launch)
}

fn move_matrices(out: &mut Vec<Kernel>) {
    for count in [1, 2, 4] {
        for trans in ["", ".trans"] {
            let r = list("%a", count);
            let ptx = format!(
                ".visible .entry k(.param .u64 out, .param .u64 in) {{
  .reg .b64 %d<4>; .reg .b32 %r<9>, %a<4>; .reg .pred %p<1>; .shared .align 16 .b8 s[1024];
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; mov.u32 %r1, %laneid; mov.u32 %r2, s;
  mad.wide.u32 %d3, %r1, 16, %d2; mad.lo.u32 %r3, %r1, 16, %r2;
  ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d3]; st.shared.v4.b32 [%r3], {{%r4, %r5, %r6, %r7}}; bar.sync 0;
  mov.b32 %a1, 0; mov.b32 %a2, 0; mov.b32 %a3, 0;
  ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{r}}}, [%r3];
  mad.wide.u32 %d3, %r1, 16, %d1; st.global.v4.b32 [%d3], {{%a0, %a1, %a2, %a3}};
  stmatrix.sync.aligned.m8n8.x{count}.shared.b16 [%r3+512], {{{r}}}; bar.sync 0;
  ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r3+512];
  setp.ge.u32 %p0, %r1, {lanes}; @%p0 bra E;
  st.global.v4.b32 [%d3+512], {{%r4, %r5, %r6, %r7}};
E: ret;
}}\n",
                lanes = 8 * count,
            );
            let args = vec!["zero[1024]".to_string(), "u32[128]".to_string()];
            let name = format!("ldmatrix.x{count}{trans}, stmatrix.x{count}");
            out.push(kernel(name, ptx, Launch::of_one_block(32, args)));
        }
    }
}
