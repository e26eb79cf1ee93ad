//! Whole kernels.

mod common;

use common::Bench;

#[test]
fn each_thread_writes_its_number() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 out) {
            .reg .b32 %r<5>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
            mad.lo.s32 %r4, %r1, %r2, %r3;
            mul.wide.u32 %rd2, %r4, 4;
            add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r4;
            ret;
        }",
    );
    let out = b.words(&[0; 96 * 5]);
    b.run("k", 5, 96, &[out]);
    assert_eq!(b.read(out, 480), (0..480).collect::<Vec<u32>>());
}
