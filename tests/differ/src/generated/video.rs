//! Video instructions: sums, differences, extremes of bytes and halves.

use super::form::Form;

const TYPES: [&str; 2] = ["u32", "s32"];

pub fn forms() -> Vec<Form> {
    let mut out = Vec::new();
    scalar(&mut out);
    mixed(&mut out);
    packed(&mut out);
    out
}

/// Types that differ, with each second operation, saturated and not, on whole words.
fn mixed(out: &mut Vec<Form>) {
    let three: &[&'static str] = &["b32", "b32", "b32"];
    let mut add = |op: String, d: &str, operands: &str| {
        let name = format!("{op} D{d}, {operands}");
        let body = format!("{op} D{d}, {operands};");
        out.push(Form::with(name, body, "b32", three));
    };
    let types = ["s32.u32.u32", "u32.s32.s32", "s32.s32.u32", "u32.u32.s32"];
    for op in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
        for types in types {
            for (tail, part) in [
                (".min", ""),
                (".max", ""),
                (".sat.min", ""),
                (".sat.max", ""),
                (".sat", ".b3"),
                (".sat", ".h0"),
                (".sat", ".h1"),
                ("", ".h1"),
            ] {
                add(format!("{op}.{types}{tail}"), part, "A, B, C");
            }
        }
    }
    for op in ["vshl", "vshr"] {
        for types in ["s32.u32.u32", "u32.s32.u32"] {
            for (tail, part) in [
                (".sat.clamp.max", ""),
                (".wrap.min", ""),
                (".clamp.max", ""),
                (".sat.wrap", ".b1"),
                (".sat.clamp", ".h1"),
            ] {
                add(format!("{op}.{types}{tail}"), part, "A, B.b0, C");
            }
        }
    }
    for types in ["s32.u32.u32", "u32.s32.u32"] {
        for tail in ["", ".sat", ".shr7", ".sat.shr15"] {
            add(format!("vmad.{types}{tail}"), "", "A, B, C");
            add(format!("vmad.{types}{tail}"), "", "A, B.h1, -C");
            add(format!("vmad.{types}{tail}"), "", "-A, B, C");
        }
        for tail in [".po.sat", ".po.shr7"] {
            add(format!("vmad.{types}{tail}"), "", "A, B, C");
        }
    }
    for types in ["s32.u32", "u32.s32", "u32.u32"] {
        for (tail, part) in [(".min", ""), (".max", ""), ("", ".h1"), ("", ".b2")] {
            add(format!("vset.{types}.lt{tail}"), part, "A, B, C");
        }
    }
}

fn scalar(out: &mut Vec<Form>) {
    let three: &[&'static str] = &["b32", "b32", "b32"];
    for op in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
        for (d, a, b) in [
            ("s32", "s32", "s32"),
            ("u32", "u32", "u32"),
            ("s32", "u32", "s32"),
            ("u32", "s32", "u32"),
        ] {
            for (parts, [pa, pb]) in [
                ("", ["", ""]),
                (" b0, b3", [".b0", ".b3"]),
                (" h1, h0", [".h1", ".h0"]),
                (" h0", [".h0", ""]),
            ] {
                for sat in ["", ".sat"] {
                    let name = format!("{op}.{d}.{a}.{b}{sat}{parts}");
                    let body = format!("{op}.{d}.{a}.{b}{sat} D, A{pa}, B{pb};");
                    out.push(Form::with(name, body, "b32", &three[..2]));
                }
            }
        }
        // A second operation, and results that are merged.
        for (tail, part) in [
            (".add", ""),
            (".min", ""),
            (".max", ""),
            ("", ".b2"),
            ("", ".h1"),
            (".sat", ".b1"),
        ] {
            for ty in TYPES {
                let (sat, second) = match tail {
                    ".sat" => (".sat", ""),
                    other => ("", other),
                };
                let name = format!("{op}.{ty}.{ty}.{ty}{tail} D{part}");
                let body = format!("{op}.{ty}.{ty}.{ty}{sat}{second} D{part}, A.h0, B.b1, C;");
                out.push(Form::with(name, body, "b32", three));
            }
        }
    }
    for op in ["vshl", "vshr"] {
        for ty in TYPES {
            for mode in ["clamp", "wrap"] {
                for sat in ["", ".sat"] {
                    let name = format!("{op}.{ty}.{ty}.u32{sat}.{mode}");
                    let body = format!("{op}.{ty}.{ty}.u32{sat}.{mode} D, A, B.b0;");
                    out.push(Form::with(name, body, "b32", &three[..2]));
                }
                let name = format!("{op}.{ty}.{ty}.u32.{mode}.add");
                let body = format!("{op}.{ty}.{ty}.u32.{mode}.add D, A.h1, B.b0, C;");
                out.push(Form::with(name, body, "b32", three));
            }
        }
    }
    for (ty, a, b) in [
        ("u32", "u32", "u32"),
        ("s32", "s32", "s32"),
        ("s32", "u32", "s32"),
    ] {
        for tail in ["", ".sat", ".shr7", ".shr15", ".sat.shr7"] {
            for parts in [["", ""], [".h0", ".h1"], [".b3", ".b1"]] {
                let [pa, pb] = parts;
                let name = format!("vmad.{ty}.{a}.{b}{tail} A{pa}, B{pb}");
                let body = format!("vmad.{ty}.{a}.{b}{tail} D, A{pa}, B{pb}, C;");
                out.push(Form::with(name, body, "b32", three));
            }
        }
    }
    let body = "vmad.u32.u32.u32.po D, A.h0, B.h1, C;";
    out.push(Form::with("vmad.u32.u32.u32.po", body, "b32", three));
    for compare in ["eq", "ne", "lt", "le", "gt", "ge"] {
        for ty in TYPES {
            let name = format!("vset.{ty}.{ty}.{compare}");
            let body = format!("vset.{ty}.{ty}.{compare} D, A, B.h1;");
            out.push(Form::with(name, body, "b32", &three[..2]));
        }
    }
    let body = "vset.u32.s32.lt.add D, A, B.b0, C;";
    out.push(Form::with("vset.u32.s32.lt.add", body, "b32", three));
}

fn packed(out: &mut Vec<Form>) {
    let three: &[&'static str] = &["b32", "b32", "b32"];
    for n in ["2", "4"] {
        for op in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"] {
            for (d, a, b) in [
                ("u32", "u32", "u32"),
                ("s32", "s32", "s32"),
                ("s32", "u32", "s32"),
            ] {
                for tail in ["", ".sat", ".add"] {
                    if op == "vavrg" && tail == ".sat" {
                        continue;
                    }
                    let name = format!("{op}{n}.{d}.{a}.{b}{tail}");
                    let body = format!("{op}{n}.{d}.{a}.{b}{tail} D, A, B, C;");
                    out.push(Form::with(name, body, "b32", three));
                }
            }
        }
        for compare in ["eq", "ne", "lt", "le", "gt", "ge"] {
            for ty in TYPES {
                for tail in ["", ".add"] {
                    let name = format!("vset{n}.{ty}.{ty}.{compare}{tail}");
                    let body = format!("vset{n}.{ty}.{ty}.{compare}{tail} D, A, B, C;");
                    out.push(Form::with(name, body, "b32", three));
                }
            }
        }
    }
    for (name, op) in [
        (
            "vadd2, a mask and crossed halves",
            "vadd2.u32.u32.u32.sat D.h0, A.h32, B.h01, C;",
        ),
        (
            "vadd4, a mask and crossed bytes",
            "vadd4.s32.s32.s32 D.b20, A.b7415, B.b3210, C;",
        ),
    ] {
        out.push(Form::with(name, op, "b32", three));
    }
}
