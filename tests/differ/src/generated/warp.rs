//! What lanes of a warp tell each other.

use super::form::Form;

pub fn forms() -> Vec<Form> {
    let mut out = Vec::new();
    for mode in ["up", "down", "bfly", "idx"] {
        // Clamp and segments of 32, 16 and 8 lanes.
        for segment in [0u32, 16, 24] {
            let clamp = if mode == "up" { 0 } else { 31 };
            let c = segment << 8 | clamp;
            let body = format!("shfl.sync.{mode}.b32 D|P, A, B, {c}, -1; @P xor.b32 D, D, 1;");
            let name = format!("shfl.sync.{mode}.b32 {c:#x}");
            out.push(Form::with(name, body, "b32", &["b32", "u32"]));
        }
    }
    for (name, body) in [
        (
            "vote.sync.ballot",
            "setp.gt.s32 P, A, 0; vote.sync.ballot.b32 D, P, -1;",
        ),
        (
            "vote.sync.any",
            "setp.gt.s32 P, A, 0x7ffffff0; vote.sync.any.pred Q, P, -1; selp.u32 D, 1, 0, Q;",
        ),
        (
            "vote.sync.all",
            "setp.ne.s32 P, A, 7; vote.sync.all.pred Q, P, -1; selp.u32 D, 1, 0, Q;",
        ),
        (
            "vote.sync.uni",
            "setp.ne.s32 P, A, 7; vote.sync.uni.pred Q, P, -1; selp.u32 D, 1, 0, Q;",
        ),
        ("match.any.sync.b32", "match.any.sync.b32 D, A, -1;"),
        (
            "match.all.sync.b32",
            "and.b32 A, A, 0; match.all.sync.b32 D|P, A, -1; @P xor.b32 D, D, 1;",
        ),
        (
            "match.any.sync.b32, halves",
            "and.b32 B, A, 3; { .reg .b32 m; .reg .pred h; and.b32 m, %r1, 16; setp.ne.u32 h, m, 0; selp.b32 m, 0xffff0000, 0xffff, h; match.any.sync.b32 D, B, m; }",
        ),
        (
            "elect.sync",
            "elect.sync D|P, -1; selp.u32 E, 64, 0, P; or.b32 D, D, E;",
        ),
        (
            "activemask",
            "and.b32 B, A, 1; setp.eq.u32 P, B, 1; mov.b32 D, 0; bar.warp.sync -1; activemask.b32 D;",
        ),
    ] {
        out.push(Form::with(name, body, "b32", &["b32", "b32"]));
    }
    for (op, types) in [
        ("add", ["u32", "s32"]),
        ("min", ["u32", "s32"]),
        ("max", ["u32", "s32"]),
        ("and", ["b32", ""]),
        ("or", ["b32", ""]),
        ("xor", ["b32", ""]),
    ] {
        for ty in types.into_iter().filter(|t| !t.is_empty()) {
            // Otherwise nothing would be left of 32 random words.
            let some = if op == "and" {
                "or.b32 A, A, 0x50a0101;"
            } else {
                ""
            };
            let body = format!("{some} redux.sync.{op}.{ty} D, A, -1;");
            out.push(Form::with(
                format!("redux.sync.{op}.{ty}"),
                body,
                "b32",
                &["b32"],
            ));
        }
    }
    for op in ["popc.u32", "and.pred", "or.pred"] {
        if op.starts_with("popc") {
            let body = format!("setp.gt.s32 P, A, 0; barrier.red.{op} D, 1, 192, P;");
            out.push(Form::with(
                format!("barrier.red.{op}"),
                body,
                "b32",
                &["b32"],
            ));
            continue;
        }
        // Some of them, all of them, none of them.
        for (name, test) in [
            ("", "setp.ne.s32 P, A, 1;"),
            (", all", "setp.ne.s32 P, A, 0x13579bdf;"),
            (", none", "setp.eq.s32 P, A, 0x13579bdf;"),
        ] {
            let body = format!("{test} barrier.red.{op} Q, 1, 192, P; selp.u32 D, 1, 0, Q;");
            out.push(Form::with(
                format!("barrier.red.{op}{name}"),
                body,
                "b32",
                &["b32"],
            ));
        }
    }
    out
}
