//! Products with a sparse first matrix, whose metadata are random (but valid).

use super::matrix::{data, element, kernel, list};
use crate::kernel::{Kernel, Launch};
use std::fmt::Write;

/// Two of four, in order; and one of two.
const PAIRS: [u32; 6] = [0x4, 0x8, 0xc, 0x9, 0xd, 0xe];
const SINGLES: [u32; 2] = [0x4, 0xe];

const FORMS: [(&str, &str, &[u32]); 18] = [
    ("m16n8k16", "f32.f16.f16.f32", &[0, 1, 2, 3]),
    ("m16n8k32", "f32.f16.f16.f32", &[0, 1]),
    ("m16n8k16", "f16.f16.f16.f16", &[1]),
    ("m16n8k32", "f16.f16.f16.f16", &[1]),
    ("m16n8k16", "f32.bf16.bf16.f32", &[0, 2]),
    ("m16n8k32", "f32.bf16.bf16.f32", &[1]),
    ("m16n8k8", "f32.tf32.tf32.f32", &[0, 1, 2, 3]),
    ("m16n8k16", "f32.tf32.tf32.f32", &[0, 1]),
    ("m16n8k32", "s32.s8.u8.s32", &[0, 1]),
    ("m16n8k32", "s32.u8.s8.s32", &[1]),
    ("m16n8k64", "s32.s8.s8.s32", &[0]),
    ("m16n8k64", "s32.u8.u8.s32", &[0]),
    ("m16n8k64", "s32.s4.u4.s32", &[0, 1]),
    ("m16n8k128", "s32.u4.s4.s32", &[0]),
    ("m16n8k128", "s32.s4.s4.s32", &[0]),
    ("m16n8k64", "f32.e4m3.e5m2.f32", &[0]),
    ("m16n8k64", "f32.e5m2.e5m2.f32", &[0]),
    ("m16n8k64", "f32.e4m3.e4m3.f32", &[0]),
];

/// All of them.
pub fn kernels(out: &mut Vec<Kernel>) {
    for (shape, types, selectors) in FORMS {
        for &selector in selectors {
            for ordered in ["", "::ordered_metadata"] {
                if !ordered.is_empty() && selector != selectors[0] {
                    continue;
                }
                out.push(product(shape, types, selector, ordered));
            }
        }
    }
}

fn product(shape: &str, types: &str, selector: u32, ordered: &str) -> Kernel {
    let [td, ta, tb, tc] =
        <[&str; 4]>::try_from(types.split('.').collect::<Vec<_>>()).unwrap_or_default();
    let k: usize = shape[6..].parse().unwrap_or(0);
    let registers = |elements: usize, ty: &str| elements * element(ty).0 / 32 / 32;
    let (ra, rb) = (registers(16 * k / 2, ta), registers(k * 8, tb));
    let (rc, rd) = (registers(128, tc), registers(128, td));
    let mut body = String::new();
    for (name, count, buffer) in [("a", ra, 2), ("b", rb, 3), ("c", rc, 4), ("m", 1, 5)] {
        let _ = writeln!(
            body,
            "mad.wide.u32 %d{buffer}, %r1, {}, %d{buffer};",
            4 * count
        );
        for i in 0..count {
            let _ = writeln!(body, "ld.global.b32 %{name}{i}, [%d{buffer}+{}];", 4 * i);
        }
    }
    let op = format!("mma.sp{ordered}.sync.aligned.{shape}.row.col.{types}");
    let (d, a, b, c) = (
        list("%e", rd),
        list("%a", ra),
        list("%b", rb),
        list("%c", rc),
    );
    let _ = writeln!(
        body,
        "{op} {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}, %m0, {selector};"
    );
    let _ = writeln!(body, "mad.wide.u32 %d1, %r1, {}, %d1;", 4 * rd);
    for i in 0..rd {
        let _ = writeln!(body, "st.global.b32 [%d1+{}], %e{i};", 4 * i);
    }
    let sum = |ty: &str| if ty == "f32" { "f32" } else { "b32" };
    let ptx = format!(
        ".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c, .param .u64 m) {{
  .reg .b64 %d<6>; .reg .b32 %r<2>, %m<1>; .reg .b32 %a<8>, %b<8>; .reg .{} %c<8>; .reg .{} %e<8>;
  ld.param.u64 %d1, [d]; ld.param.u64 %d2, [a]; ld.param.u64 %d3, [b]; ld.param.u64 %d4, [c]; ld.param.u64 %d5, [m];
  mov.u32 %r1, %laneid;
{body}  ret;
}}\n",
        sum(tc),
        sum(td)
    );
    let args = vec![
        format!("fill[{}]", 128 * rd),
        data(ta, 128 * ra),
        data(tb, 128 * rb),
        data(tc, 128 * rc),
        metadata(ta, 32),
    ];
    let name = format!("{op}, {selector}");
    kernel(name, ptx, Launch::of_one_block(32, args))
}

/// A word for each thread, of eight valid groups.
pub(super) fn metadata(ty: &str, threads: usize) -> String {
    let groups: &[u32] = if ty == "tf32" { &SINGLES } else { &PAIRS };
    let mut state = 12345u32;
    let words: Vec<String> = (0..threads)
        .map(|_| {
            let word = (0..8).fold(0, |word, i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                word | groups[(state >> 16) as usize % groups.len()] << (4 * i)
            });
            word.to_string()
        })
        .collect();
    format!("words({})", words.join(","))
}
