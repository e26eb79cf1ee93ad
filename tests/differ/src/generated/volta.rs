//! Volta's products of matrices: four at once, each by four of the first lanes and four of the last.

use super::matrix::{data, kernel, list};
use crate::kernel::{Kernel, Launch};

/// Each layout of A and B, each type of sums.
pub(super) fn kernels(out: &mut Vec<Kernel>) {
    for layouts in ["row.row", "row.col", "col.row", "col.col"] {
        for [td, tc] in [["f32", "f32"], ["f32", "f16"], ["f16", "f16"]] {
            let count = |ty: &str| if ty == "f32" { 8 } else { 4 };
            let (rc, rd) = (count(tc), count(td));
            let (sc, sd) = (list("%c", rc), list("%e", rd));
            let op = format!("mma.sync.aligned.m8n8k4.{layouts}.{td}.f16.f16.{tc}");
            let mut body = String::new();
            for i in 0..rc {
                body += &format!("  ld.global.b32 %c{i}, [%d4+{}];\n", 4 * i);
            }
            body += &format!("  {op} {{{sd}}}, {{%a0, %a1}}, {{%b0, %b1}}, {{{sc}}};\n");
            for i in 0..rd {
                body += &format!("  st.global.b32 [%d1+{}], %e{i};\n", 4 * i);
            }
            let sum = |ty: &str| if ty == "f32" { ".f32" } else { ".b32" };
            let ptx = format!(
                ".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c) {{
  .reg .b64 %d<5>; .reg .b32 %r<2>, %a<2>, %b<2>; .reg {} %c<8>; .reg {} %e<8>;
  ld.param.u64 %d1, [d]; ld.param.u64 %d2, [a]; ld.param.u64 %d3, [b]; ld.param.u64 %d4, [c]; mov.u32 %r1, %laneid;
  mad.wide.u32 %d2, %r1, 8, %d2; ld.global.v2.b32 {{%a0, %a1}}, [%d2];
  mad.wide.u32 %d3, %r1, 8, %d3; ld.global.v2.b32 {{%b0, %b1}}, [%d3];
  mad.wide.u32 %d4, %r1, {}, %d4; mad.wide.u32 %d1, %r1, {}, %d1;
{body}  ret;
}}\n",
                sum(tc),
                sum(td),
                4 * rc,
                4 * rd
            );
            let args = vec![
                format!("zero[{}]", 128 * rd),
                data("f16", 256),
                data("f16", 256),
                data(tc, 128 * rc),
            ];
            out.push(kernel(op, ptx, Launch::of_one_block(32, args)));
        }
    }
}
