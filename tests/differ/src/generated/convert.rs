//! `cvt` between all types.

use super::form::Form;

const INTS: [&str; 8] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];

/// The type of a register that holds it.
fn held(ty: &'static str) -> &'static str {
    match ty {
        "u8" => "u16",
        "s8" => "s16",
        other => other,
    }
}

fn width(ty: &str) -> u32 {
    match ty {
        "bf16" => 16,
        _ => ty[1..].parse().unwrap_or(0),
    }
}

pub fn forms() -> Vec<Form> {
    let mut out = Vec::new();
    let mut push = |name: String, to: &'static str, from: &'static str| {
        out.push(Form::new(name, held(to), &[held(from)]));
    };
    for from in INTS {
        for to in INTS {
            push(format!("cvt.{to}.{from}"), to, from);
            // Only where something can be out of range.
            let signed = |ty: &str| ty.starts_with('s');
            let fits = match (signed(from), signed(to)) {
                (false, true) => width(from) < width(to),
                (true, false) => false,
                _ => width(from) <= width(to),
            };
            if !fits {
                push(format!("cvt.sat.{to}.{from}"), to, from);
            }
        }
        for to in FLOATS {
            if to == "bf16" && width(from) == 8 {
                continue;
            }
            for round in ["rn", "rz", "rm", "rp"] {
                push(format!("cvt.{round}.{to}.{from}"), to, from);
            }
        }
    }
    for from in FLOATS {
        for to in INTS {
            if from == "bf16" && width(to) == 8 {
                continue;
            }
            for round in ["rni", "rzi", "rmi", "rpi"] {
                push(format!("cvt.{round}.{to}.{from}"), to, from);
            }
        }
        for to in FLOATS {
            if from == to {
                if from != "bf16" {
                    for round in ["rni", "rzi", "rmi", "rpi"] {
                        push(format!("cvt.{round}.{to}.{from}"), to, from);
                    }
                }
            } else if width(from) > width(to) && !(from == "f64" && to == "bf16") {
                let modes: &[&str] = if to == "f32" || from == "f64" || to == "f16" {
                    &["rn", "rz", "rm", "rp"]
                } else {
                    &["rn", "rz", "rn.relu"]
                };
                for round in modes {
                    // From f32 to f16 only these two.
                    if !(from == "f32" && to == "f16" && matches!(*round, "rm" | "rp")) {
                        push(format!("cvt.{round}.{to}.{from}"), to, from);
                    }
                }
            } else if width(from) < width(to) {
                push(format!("cvt.{to}.{from}"), to, from);
            }
        }
    }
    push("cvt.rna.tf32.f32".to_string(), "b32", "f32");
    push("cvt.rn.satfinite.f16.f32".to_string(), "f16", "f32");
    push("cvt.ftz.f64.f32".to_string(), "f64", "f32");
    push("cvt.rn.ftz.f16.f32".to_string(), "f16", "f32");
    push("cvt.sat.f32.f32".to_string(), "f32", "f32");
    push("cvt.rni.ftz.f32.f32".to_string(), "f32", "f32");
    for to in ["f16x2", "bf16x2"] {
        for mode in ["rn", "rz", "rn.relu"] {
            out.push(Form::new(
                format!("cvt.{mode}.{to}.f32"),
                to,
                &["f32", "f32"],
            ));
        }
    }
    for to in ["e4m3x2", "e5m2x2"] {
        for mode in ["rn.satfinite", "rn.satfinite.relu"] {
            out.push(Form::new(
                format!("cvt.{mode}.{to}.f32"),
                to,
                &["f32", "f32"],
            ));
            out.push(Form::new(format!("cvt.{mode}.{to}.f16x2"), to, &["f16x2"]));
        }
        out.push(Form::new(format!("cvt.rn.f16x2.{to}"), "f16x2", &[to]));
        out.push(Form::new(format!("cvt.rn.relu.f16x2.{to}"), "f16x2", &[to]));
    }
    out
}
