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
    not_numbers(&mut out);
    out
}

/// NaNs of every kind, quiet and signalling: what becomes of their bits.
fn not_numbers(out: &mut Vec<Form>) {
    let singles = "words(2143289344*24,2139095041*24,-1*24,-4194303*24,2141192192*24,-8323073*24,2147483646*24,-6291456*24)";
    for op in [
        "abs",
        "neg",
        "cvt.ftz.f64",
        "cvt.f64",
        "cvt.rn.f16",
        "cvt.rz.bf16",
        "cvt.rn.relu.bf16",
        "cvt.rni.f32",
        "cvt.sat.f32",
        "cvt.rna.tf32",
        "cvt.rzi.s32",
        "cvt.rzi.s64",
        "sqrt.rn",
        "rcp.approx.ftz",
    ] {
        let to: &'static str = match op.rsplit('.').next() {
            Some("f64" | "s64") => "f64",
            Some("f16" | "bf16") => "f16",
            _ => "f32",
        };
        let name = format!("{op}.f32 of NaN");
        out.push(Form::with(name, format!("{op}.f32 D, A;"), to, &["f32"]).on_all(singles));
    }
    for op in ["add", "mul", "min", "max", "copysign"] {
        let name = format!("{op}.f32 of NaN");
        let form = Form::with(name, format!("{op}.f32 D, A, B;"), "f32", &["f32", "f32"]);
        out.push(form.on_all(singles));
        // Which of two NaNs wins is the compiler's choice.
        let name = format!("{op}.f64 of NaN");
        let body = format!(
            "and.b64 B, B, 0xffefffffffffffff; {{ .reg .b64 n; .reg .b32 lo, hi; mov.b64 {{lo, hi}}, A; or.b32 hi, hi, 0x7ff00000; or.b32 lo, lo, 1; mov.b64 n, {{lo, hi}}; {op}.f64 D, n, B; }}"
        );
        out.push(Form::with(name, body, "f64", &["f64", "f64"]));
        let name = format!("{op}.f64, then NaN");
        let body = format!(
            "and.b64 B, B, 0xffefffffffffffff; {{ .reg .b64 n; .reg .b32 lo, hi; mov.b64 {{lo, hi}}, A; or.b32 hi, hi, 0x7ff00000; or.b32 lo, lo, 1; mov.b64 n, {{lo, hi}}; {op}.f64 D, B, n; }}"
        );
        out.push(Form::with(name, body, "f64", &["f64", "f64"]));
    }
    for op in [
        "abs",
        "neg",
        "cvt.rn.f32",
        "cvt.rn.f16",
        "cvt.rni.f64",
        "sqrt.rn",
        "cvt.rzi.s64",
    ] {
        let to: &'static str = match op {
            "cvt.rn.f32" => "f32",
            "cvt.rn.f16" => "f16",
            _ => "f64",
        };
        let body = format!(
            "{{ .reg .b64 n; .reg .b32 lo, hi; mov.b64 {{lo, hi}}, A; or.b32 hi, hi, 0x7ff00000; or.b32 lo, lo, 1; mov.b64 n, {{lo, hi}}; {op}.f64 D, n; }}"
        );
        out.push(Form::with(format!("{op}.f64 of NaN"), body, to, &["f64"]));
    }
    let body = "and.b64 B, B, 0xffefffffffffffff; and.b64 C, C, 0xffefffffffffffff; { .reg .b64 n; .reg .b32 lo, hi; mov.b64 {lo, hi}, A; or.b32 hi, hi, 0x7ff00000; or.b32 lo, lo, 1; mov.b64 n, {lo, hi}; fma.rn.f64 D, n, B, C; }";
    out.push(Form::with(
        "fma.rn.f64 of NaN",
        body,
        "f64",
        &["f64", "f64", "f64"],
    ));
    let body = "and.b64 B, B, 0xffefffffffffffff; and.b64 C, C, 0xffefffffffffffff; { .reg .b64 n; .reg .b32 lo, hi; mov.b64 {lo, hi}, A; or.b32 hi, hi, 0x7ff00000; or.b32 lo, lo, 1; mov.b64 n, {lo, hi}; fma.rn.f64 D, B, C, n; }";
    out.push(Form::with(
        "fma.rn.f64, then NaN",
        body,
        "f64",
        &["f64", "f64", "f64"],
    ));
    for (ty, data) in [
        ("f16", "or.b16 A, A, 0x7c01;"),
        ("bf16", "or.b16 A, A, 0x7f81;"),
    ] {
        for op in ["abs", "neg", "cvt.f32", "cvt.f64", "ex2.approx.ftz"] {
            if (ty, op) == ("f16", "ex2.approx.ftz") {
                continue;
            }
            let to: &'static str = match op {
                "cvt.f32" => "f32",
                "cvt.f64" => "f64",
                _ => "f16",
            };
            let body = format!("{data} {op}.{ty} D, A;");
            out.push(Form::with(format!("{op}.{ty} of NaN"), body, to, &[ty]));
        }
        for op in [
            "add.rn",
            "min",
            "max.NaN",
            "min.xorsign.abs",
            "max.NaN.xorsign.abs",
        ] {
            let body = format!("{data} {op}.{ty} D, A, B;");
            out.push(Form::with(format!("{op}.{ty} of NaN"), body, ty, &[ty, ty]));
        }
    }
}

fn integers(out: &mut Vec<Form>) {
    for ty in ["u16", "s16"] {
        let op = format!("cvt.pack.sat.{ty}.s32");
        out.push(Form::new(op, "b32", &["s32", "s32"]));
    }
    for ty in ["u8", "s8", "u4", "s4", "u2", "s2"] {
        let op = format!("cvt.pack.sat.{ty}.s32.b32");
        out.push(Form::new(op, "b32", &["s32", "s32", "b32"]));
    }
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
        ("sub.cc, addc", "sub.cc.u32 D, A, B; addc.u32 D, B, C;"),
        ("add.cc, subc", "add.cc.u32 D, A, B; subc.u32 D, B, C;"),
        (
            "sub.cc, subc.cc, addc",
            "sub.cc.u32 D, A, B; subc.cc.u32 D, B, C; addc.u32 D, 0, 0;",
        ),
        (
            "sub.cc, madc.lo",
            "sub.cc.u32 D, A, B; madc.lo.u32 D, A, B, C;",
        ),
        (
            "mad.lo.cc, subc",
            "mad.lo.cc.u32 D, A, B, C; subc.u32 D, B, C;",
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
        // Position and length have eight bits; what more bits mean is not said.
        let body = format!("and.b32 B, B, 0xff; and.b32 C, C, 0xff; bfe.{ty} D, A, B, C;");
        out.push(Form::with(
            format!("bfe.{ty}"),
            body,
            ty,
            &[ty, "u32", "u32"],
        ));
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
    let body = "and.b32 B, B, 31; fns.b32 D, A, B, C;";
    out.push(Form::with("fns.b32", body, "b32", &["b32", "u32", "s32"]));
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
    flushed(out);
}

/// Products next to the least normal number: which of them count as tiny.
fn flushed(out: &mut Vec<Form>) {
    // 2^-126 times 1, 1 + 2^-23, 1 + 2^-22; times 1 − 2^-24, 1 − 2^-23, 1 − 2^-22.
    let data = "words(8388608*64,8388609*64,8388610*64)";
    for factor in ["0f3F7FFFFF", "0f3F7FFFFE", "0f3F7FFFFC"] {
        for round in ["rn", "rz", "rm", "rp"] {
            for (op, tail) in [("mul", ""), ("fma", ", 0f80000000")] {
                let name = format!("{op}.{round}.ftz.f32, the least normal times {factor}");
                let body = format!("{op}.{round}.ftz.f32 D, A, {factor}{tail};");
                out.push(Form::with(name, body, "f32", &["f32"]).on_all(data));
            }
        }
    }
    let data = "words(67109888*64,67175425*64,67240962*64)";
    for factor in [0x3bff, 0x3bfe, 0x3bfc] {
        let body = format!(
            "{{ .reg .b32 f; mov.b32 f, {}; mul.rn.ftz.f16x2 D, A, f; }}",
            factor << 16 | factor
        );
        let name = format!("mul.ftz.f16x2, the least normal times {factor:#x}");
        out.push(Form::with(name, body, "f16x2", &["f16x2"]).on_all(data));
    }
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
    for op in ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"] {
        out.push(Form::new(op, "f64", &["f64"]).close(rough));
    }
    out.push(Form::new("rsqrt.approx.f64", "f64", &["f64"]));
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
    // Global memory's adder knows no subnormals, shared memory's does.
    for op in ["atom.shared.add.f32 E,", "red.shared.add.f32"] {
        let body = format!(
            "{{ .reg .b32 q; .shared .align 4 .b8 sh[768]; mov.u32 q, sh; mad.lo.u32 q, %r1, 4, q; st.shared.b32 [q], A; {op} [q], B; ld.shared.b32 D, [q]; }}"
        );
        let name = op.trim_end_matches(" E,");
        out.push(Form::with(name, body, "f32", &["f32", "f32"]));
    }
    let body = "red.global.add.f32 [PA], B; mov.b32 D, 0;";
    out.push(Form::with("red.add.f32", body, "f32", &["f32", "f32"]));
    let body = "{ .reg .pred z; .reg .b32 o, x, y; and.b32 o, %r1, 1; setp.eq.u32 z, o, 0; mov.b32 D, 0; @z atom.global.v2.f32.add {x, y}, [PA], {B, A}; @z mov.b32 D, y; }";
    out.push(Form::with("atom.v2.f32.add", body, "f32", &["f32", "f32"]));
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
