//! Arithmetic on integers, bits and floats.

use super::form::Form;

const INTS: [&str; 6] = ["u16", "s16", "u32", "s32", "u64", "s64"];
const BITS: [&str; 3] = ["b16", "b32", "b64"];

fn wide(ty: &str) -> Option<&'static str> {
    Some(match ty {
        "u16" => "u32",
        "s16" => "s32",
        "u32" => "u64",
        "s32" => "s64",
        _ => return None,
    })
}

pub fn forms() -> Vec<Form> {
    let mut out = Vec::new();
    integers(&mut out);
    bits(&mut out);
    singles(&mut out);
    doubles(&mut out);
    halves(&mut out);
    comparisons(&mut out);
    atomics(&mut out);
    out
}

fn integers(out: &mut Vec<Form>) {
    for ty in INTS {
        for op in ["add", "sub", "mul.lo", "mul.hi", "min", "max"] {
            out.push(Form::new(format!("{op}.{ty}"), ty, &[ty, ty]));
        }
        for op in ["div", "rem"] {
            // Nothing is said of division by zero, nor of the least number by −1.
            let bits = &ty[1..];
            let guard = format!("or.b{bits} B, B, 1; and.b{bits} B, B, 0x7f;");
            let body = format!("{guard} {op}.{ty} D, A, B;");
            out.push(Form::with(format!("{op}.{ty}"), body, ty, &[ty, ty]));
        }
        for op in ["mad.lo", "mad.hi"] {
            if ty != "u16" && ty != "s16" || op == "mad.lo" {
                out.push(Form::new(format!("{op}.{ty}"), ty, &[ty, ty, ty]));
            }
        }
        if let Some(wide) = wide(ty) {
            out.push(Form::new(format!("mul.wide.{ty}"), wide, &[ty, ty]));
            out.push(Form::new(format!("mad.wide.{ty}"), wide, &[ty, ty, wide]));
        }
        out.push(Form::new(
            format!("sad.{ty}"),
            ty,
            &[
                ty,
                ty,
                if ty.starts_with('u') {
                    ty
                } else {
                    unsigned(ty)
                },
            ],
        ));
        if ty.starts_with('s') {
            out.push(Form::new(format!("abs.{ty}"), ty, &[ty]));
            out.push(Form::new(format!("neg.{ty}"), ty, &[ty]));
        }
    }
    for ty in ["u32", "s32"] {
        for op in ["mul24.lo", "mul24.hi"] {
            // Operands of 24 bits are the caller's duty.
            let shift = if ty == "u32" { "shr.u32" } else { "shr.s32" };
            let body = format!("{shift} A, A, 8; {shift} B, B, 8; {op}.{ty} D, A, B;");
            out.push(Form::with(format!("{op}.{ty}"), body, ty, &[ty, ty]));
        }
        let body = format!(
            "mov.b32 C, C; {{ .reg .b32 t; bfe.{ty} t, A, 0, 24; bfe.{ty} A, B, 0, 24; mad24.lo.{ty} D, t, A, C; }}"
        );
        out.push(Form::with(
            format!("mad24.lo.{ty}"),
            body,
            ty,
            &[ty, ty, ty],
        ));
    }
    out.push(Form::new("add.sat.s32", "s32", &["s32", "s32"]));
    out.push(Form::new("sub.sat.s32", "s32", &["s32", "s32"]));
    out.push(Form::new("mad.hi.sat.s32", "s32", &["s32", "s32", "s32"]));
    for op in ["min.relu.s32", "max.relu.s32"] {
        out.push(Form::new(op, "s32", &["s32", "s32"]));
    }
    for ty in ["u16x2", "s16x2"] {
        for op in ["add", "min", "max"] {
            out.push(Form::new(format!("{op}.{ty}"), ty, &[ty, ty]));
        }
    }
    for a in ["u32", "s32"] {
        for b in ["u32", "s32"] {
            out.push(Form::new(
                format!("dp4a.{a}.{b}"),
                "s32",
                &["b32", "b32", "b32"],
            ));
            for half in ["lo", "hi"] {
                let op = format!("dp2a.{half}.{a}.{b}");
                out.push(Form::new(op, "s32", &["b32", "b32", "b32"]));
            }
        }
    }
    let carry = [
        ("add.cc, addc", "add.cc.u32 D, A, B; addc.u32 D, B, C;"),
        ("sub.cc, subc", "sub.cc.u32 D, A, B; subc.u32 D, B, C;"),
        (
            "add.cc, addc.cc, addc",
            "add.cc.u32 D, A, B; addc.cc.u32 D, B, C; addc.u32 D, D, C;",
        ),
        (
            "mad.lo.cc, madc.hi",
            "mad.lo.cc.u32 D, A, B, C; madc.hi.u32 D, A, B, C;",
        ),
        (
            "mad.hi.cc, madc.lo.cc, addc",
            "mad.hi.cc.u32 D, A, B, C; madc.lo.cc.u32 D, D, B, C; addc.u32 D, D, 0;",
        ),
    ];
    for (name, body) in carry {
        out.push(Form::with(name, body, "u32", &["u32", "u32", "u32"]));
    }
    out.push(Form::with(
        "add.cc.u64, addc.u64",
        "add.cc.u64 D, A, B; addc.u64 D, B, C;",
        "u64",
        &["u64", "u64", "u64"],
    ));
}

fn unsigned(ty: &str) -> &'static str {
    match ty {
        "s16" => "u16",
        "s32" => "u32",
        _ => "u64",
    }
}

fn bits(out: &mut Vec<Form>) {
    for ty in BITS {
        for op in ["and", "or", "xor"] {
            out.push(Form::new(format!("{op}.{ty}"), ty, &[ty, ty]));
        }
        for op in ["not", "cnot"] {
            out.push(Form::new(format!("{op}.{ty}"), ty, &[ty]));
        }
        out.push(Form::new(format!("shl.{ty}"), ty, &[ty, "u32"]));
    }
    for ty in INTS {
        out.push(Form::new(format!("shr.{ty}"), ty, &[ty, "u32"]));
    }
    for ty in ["b32", "b64"] {
        out.push(Form::new(format!("popc.{ty}"), "u32", &[ty]));
        out.push(Form::new(format!("clz.{ty}"), "u32", &[ty]));
        out.push(Form::new(format!("brev.{ty}"), ty, &[ty]));
        let body = format!(
            "and.b32 C, C, 0xff; {{ .reg .b32 n; shr.u32 n, C, 3; bfi.{ty} D, A, B, C, n; }}"
        );
        out.push(Form::with(format!("bfi.{ty}"), body, ty, &[ty, ty, "u32"]));
    }
    for ty in ["u32", "s32", "u64", "s64"] {
        out.push(Form::new(format!("bfind.{ty}"), "u32", &[ty]));
        out.push(Form::new(format!("bfind.shiftamt.{ty}"), "u32", &[ty]));
        out.push(Form::new(format!("bfe.{ty}"), ty, &[ty, "u32", "u32"]));
    }
    for side in ["l", "r"] {
        for mode in ["wrap", "clamp"] {
            let op = format!("shf.{side}.{mode}.b32");
            out.push(Form::new(op, "b32", &["b32", "b32", "b32"]));
        }
    }
    for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
        out.push(Form::new(
            format!("prmt.b32{mode}"),
            "b32",
            &["b32", "b32", "b32"],
        ));
    }
    for table in ["0x96", "0xe8", "0xca", "0x1b"] {
        let body = format!("lop3.b32 D, A, B, C, {table};");
        out.push(Form::with(
            format!("lop3.b32 {table}"),
            body,
            "b32",
            &["b32", "b32", "b32"],
        ));
    }
    for mode in ["wrap", "clamp"] {
        for ty in ["u32", "s32"] {
            out.push(Form::new(format!("szext.{mode}.{ty}"), ty, &[ty, "u32"]));
        }
        out.push(Form::new(
            format!("bmsk.{mode}.b32"),
            "b32",
            &["u32", "u32"],
        ));
    }
    out.push(Form::new("fns.b32", "b32", &["b32", "u32", "s32"]));
    for ty in ["u32", "s64", "f32"] {
        out.push(Form::new(format!("slct.{ty}.s32"), ty, &[ty, ty, "s32"]));
        out.push(Form::new(format!("slct.{ty}.f32"), ty, &[ty, ty, "f32"]));
    }
}

/// What the documentation promises of `approx`, with room.
const APPROX: &str = "~f32:4e-7:1e-37";

fn singles(out: &mut Vec<Form>) {
    for round in ["rn", "rz", "rm", "rp"] {
        for ftz in ["", ".ftz"] {
            for op in ["add", "sub", "mul"] {
                let op = format!("{op}.{round}{ftz}.f32");
                out.push(Form::new(op, "f32", &["f32", "f32"]));
            }
            out.push(Form::new(
                format!("fma.{round}{ftz}.f32"),
                "f32",
                &["f32", "f32", "f32"],
            ));
            out.push(Form::new(
                format!("div.{round}{ftz}.f32"),
                "f32",
                &["f32", "f32"],
            ));
            out.push(Form::new(format!("rcp.{round}{ftz}.f32"), "f32", &["f32"]));
            out.push(Form::new(format!("sqrt.{round}{ftz}.f32"), "f32", &["f32"]));
        }
    }
    for op in ["add.sat", "sub.ftz.sat", "mul.sat"] {
        out.push(Form::new(format!("{op}.f32"), "f32", &["f32", "f32"]));
    }
    out.push(Form::new("fma.rn.sat.f32", "f32", &["f32", "f32", "f32"]));
    for op in ["abs", "neg", "abs.ftz", "neg.ftz"] {
        out.push(Form::new(format!("{op}.f32"), "f32", &["f32"]));
    }
    for op in ["min", "max"] {
        for tail in [
            "",
            ".ftz",
            ".NaN",
            ".ftz.NaN",
            ".xorsign.abs",
            ".NaN.xorsign.abs",
        ] {
            out.push(Form::new(format!("{op}{tail}.f32"), "f32", &["f32", "f32"]));
        }
    }
    out.push(Form::new("copysign.f32", "f32", &["f32", "f32"]));
    for ftz in ["", ".ftz"] {
        for op in ["rcp.approx", "sqrt.approx", "rsqrt.approx", "ex2.approx"] {
            out.push(Form::new(format!("{op}{ftz}.f32"), "f32", &["f32"]).close(APPROX));
        }
        let lg2 = Form::new(format!("lg2.approx{ftz}.f32"), "f32", &["f32"]);
        out.push(lg2.close("~f32:1e-6:3e-7"));
        for op in ["div.full", "div.approx"] {
            let form = Form::new(format!("{op}{ftz}.f32"), "f32", &["f32", "f32"]);
            out.push(form.close(APPROX));
        }
        for op in ["sin.approx", "cos.approx"] {
            let form = Form::new(format!("{op}{ftz}.f32"), "f32", &["f32"]).on("sf32");
            out.push(form.close("~f32:0:6e-7"));
        }
    }
    out.push(Form::new("tanh.approx.f32", "f32", &["f32"]).close("~f32:1e-3:1e-6"));
}

fn doubles(out: &mut Vec<Form>) {
    for round in ["rn", "rz", "rm", "rp"] {
        for op in ["add", "sub", "mul", "div"] {
            out.push(Form::new(
                format!("{op}.{round}.f64"),
                "f64",
                &["f64", "f64"],
            ));
        }
        out.push(Form::new(
            format!("fma.{round}.f64"),
            "f64",
            &["f64", "f64", "f64"],
        ));
        for op in ["rcp", "sqrt"] {
            out.push(Form::new(format!("{op}.{round}.f64"), "f64", &["f64"]));
        }
    }
    for op in ["abs", "neg"] {
        out.push(Form::new(format!("{op}.f64"), "f64", &["f64"]));
    }
    for op in ["min", "max", "copysign"] {
        out.push(Form::new(format!("{op}.f64"), "f64", &["f64", "f64"]));
    }
    let rough = "~f64:2e-6:1e-300";
    for op in [
        "rcp.approx.ftz.f64",
        "rsqrt.approx.ftz.f64",
        "rsqrt.approx.f64",
    ] {
        out.push(Form::new(op, "f64", &["f64"]).close(rough));
    }
}

fn halves(out: &mut Vec<Form>) {
    for ty in ["f16", "f16x2", "bf16", "bf16x2"] {
        let brain = ty.starts_with('b');
        for op in ["add", "sub", "mul"] {
            out.push(Form::new(format!("{op}.rn.{ty}"), ty, &[ty, ty]));
            if !brain {
                out.push(Form::new(format!("{op}.ftz.{ty}"), ty, &[ty, ty]));
                out.push(Form::new(format!("{op}.sat.{ty}"), ty, &[ty, ty]));
            }
        }
        let mut tails = vec!["", ".relu"];
        if !brain {
            tails.extend([".ftz", ".sat", ".ftz.relu"]);
        }
        for tail in tails {
            out.push(Form::new(format!("fma.rn{tail}.{ty}"), ty, &[ty, ty, ty]));
        }
        for op in ["neg", "abs"] {
            out.push(Form::new(format!("{op}.{ty}"), ty, &[ty]));
        }
        for op in ["min", "max"] {
            for tail in ["", ".NaN", ".NaN.xorsign.abs", ".xorsign.abs"] {
                out.push(Form::new(format!("{op}{tail}.{ty}"), ty, &[ty, ty]));
            }
        }
        let close = match (brain, ty.len()) {
            (false, _) => "~f16:2e-3:1e-7",
            (true, _) => "~bf16:8e-3:1e-38",
        };
        let ex2 = if brain {
            "ex2.approx.ftz"
        } else {
            "ex2.approx"
        };
        out.push(Form::new(format!("{ex2}.{ty}"), ty, &[ty]).close(close));
        out.push(Form::new(format!("tanh.approx.{ty}"), ty, &[ty]).close(close));
    }
}

fn comparisons(out: &mut Vec<Form>) {
    let ordered = ["eq", "ne", "lt", "le", "gt", "ge"];
    let floats = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];
    let select = |op: String, ty: &'static str| {
        Form::with(
            op.clone(),
            format!("{op} P, A, B; selp.u32 D, 1, 0, P;"),
            "u32",
            &[ty, ty],
        )
    };
    for ty in ["u16", "s16", "u32", "s32", "u64", "s64"] {
        for op in ordered {
            out.push(select(format!("setp.{op}.{ty}"), ty));
        }
    }
    for ty in ["u32", "u64"] {
        for op in ["lo", "ls", "hi", "hs"] {
            out.push(select(format!("setp.{op}.{ty}"), ty));
        }
    }
    for ty in ["f32", "f64", "f16", "bf16"] {
        for op in ordered.iter().chain(&floats) {
            out.push(select(format!("setp.{op}.{ty}"), ty));
        }
    }
    for op in ["lt", "equ"] {
        out.push(select(format!("setp.{op}.ftz.f32"), "f32"));
        let body = format!(
            "setp.{op}.f16x2 P|Q, A, B; selp.u32 D, 1, 0, P; selp.u32 E, 2, 0, Q; or.b32 D, D, E;"
        );
        out.push(Form::with(
            format!("setp.{op}.f16x2"),
            body,
            "u32",
            &["f16x2", "f16x2"],
        ));
        out.push(Form::new(
            format!("set.{op}.u32.f32"),
            "u32",
            &["f32", "f32"],
        ));
        out.push(Form::new(
            format!("set.{op}.f32.f32"),
            "f32",
            &["f32", "f32"],
        ));
        out.push(Form::new(
            format!("set.{op}.f16x2.f16x2"),
            "f16x2",
            &["f16x2", "f16x2"],
        ));
    }
    out.push(Form::new("set.lt.f32.s32", "f32", &["s32", "s32"]));
    for combine in ["and", "or", "xor"] {
        let body = format!(
            "setp.gt.s32 Q, C, 0; setp.lt.{combine}.s32 P|Q, A, B, Q; selp.u32 D, 1, 0, P; selp.u32 E, 2, 0, Q; or.b32 D, D, E;"
        );
        out.push(Form::with(
            format!("setp.lt.{combine}.s32"),
            body,
            "u32",
            &["s32", "s32", "s32"],
        ));
    }
    for ty in ["f32", "f64"] {
        for op in [
            "finite",
            "infinite",
            "number",
            "notanumber",
            "normal",
            "subnormal",
        ] {
            let body = format!("testp.{op}.{ty} P, A; selp.u32 D, 1, 0, P;");
            out.push(Form::with(format!("testp.{op}.{ty}"), body, "u32", &[ty]));
        }
    }
}

/// Each thread on an element of its own.
fn atomics(out: &mut Vec<Form>) {
    let forms: [(&str, &[&'static str]); 8] = [
        ("add", &["u32", "s32", "u64", "f32", "f64"]),
        ("min", &["u32", "s32", "u64", "s64"]),
        ("max", &["u32", "s32", "u64", "s64"]),
        ("inc", &["u32"]),
        ("dec", &["u32"]),
        ("and", &["b32", "b64"]),
        ("xor", &["b32", "b64"]),
        ("exch", &["b32", "b64"]),
    ];
    for (op, types) in forms {
        for &ty in types {
            let body = format!("atom.global.{op}.{ty} D, [PA], B;");
            out.push(Form::with(format!("atom.{op}.{ty}"), body, ty, &[ty, ty]));
        }
    }
    for ty in ["f16", "f16x2", "bf16", "bf16x2"] {
        let body = format!("atom.global.add.noftz.{ty} D, [PA], B;");
        out.push(Form::with(
            format!("atom.add.noftz.{ty}"),
            body,
            ty,
            &[ty, ty],
        ));
    }
    for ty in ["b16", "b32", "b64"] {
        // Half of them find what they expect.
        let bits = &ty[1..];
        let body = format!(
            "setp.lt.u32 P, %r1, 96; selp.b{bits} E, A, B, P; atom.global.cas.{ty} D, [PA], E, C;"
        );
        if ty == "b16" {
            // There is no `selp.b16` of that name in older versions: a move under a guard does it.
            let body = "setp.lt.u32 P, %r1, 96; mov.b16 E, B; @P mov.b16 E, A; atom.global.cas.b16 D, [PA], E, C;";
            out.push(Form::with("atom.cas.b16", body, ty, &[ty, ty, ty]));
        } else {
            out.push(Form::with(
                format!("atom.cas.{ty}"),
                body,
                ty,
                &[ty, ty, ty],
            ));
        }
    }
}
