//! Arithmetic on floats of two widths.

mod common;

use common::Bench;

/// Of sm_100: the same as widening first.
#[test]
fn sums_of_floats_of_two_widths() {
    let narrow = [("f16", 0x3c01u16, 0xc200u16), ("bf16", 0x3f81, 0xc040)];
    for (ty, a, b) in narrow {
        for (op, three) in [
            ("add.rn", false),
            ("sub.rz.sat", false),
            ("fma.rp", true),
            ("add", false),
        ] {
            let operands = if three {
                ["%h1, %h2, %f3", "%f1, %f2, %f3"]
            } else {
                ["%h1, %f3", "%f1, %f3"]
            };
            let mut bench = Bench::new(&format!(
                ".version 8.6\n.target sm_100\n.address_size 64
                 .visible .entry k(.param .u64 out) {{ .reg .b64 %d1; .reg .b16 %h<3>; .reg .f32 %f<6>;
                   ld.param.u64 %d1, [out]; mov.b16 %h1, {a}; mov.b16 %h2, {b}; mov.f32 %f3, 0f3F8CCCCD;
                   cvt.f32.{ty} %f1, %h1; cvt.f32.{ty} %f2, %h2;
                   {op}.f32.{ty} %f4, {}; {}.f32 %f5, {}; st.global.v2.f32 [%d1], {{%f4, %f5}}; ret; }}",
                operands[0],
                if op == "add" { "add.rn" } else { op },
                operands[1],
            ));
            assert_eq!(bench.machine.unsupported(bench.module), [], "{op}.{ty}");
            let out = bench.words(&[0; 2]);
            bench.run("k", 1, 1, &[out]);
            let r = bench.read(out, 2);
            assert_eq!(r[0], r[1], "{op}.{ty}");
            assert_ne!(r[0], 0x3f8c_cccd, "{op}.{ty}");
        }
    }
}
