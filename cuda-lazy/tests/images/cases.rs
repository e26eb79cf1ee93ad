//! The instructions, the images that they read and write, and the coordinates.

use super::case::{Case, Edge, Format, Shape};

const CUBE: u32 = 4;
const LAYERED: u32 = 1;
const SURFACE: u32 = 2;
const GATHER: u32 = 8;

/// All of them.
pub fn all() -> Vec<Case> {
    let mut out = Vec::new();
    cubes(&mut out);
    mipmaps(&mut out);
    offsets(&mut out);
    reductions(&mut out);
    formatted(&mut out);
    queries(&mut out);
    filters(&mut out);
    light(&mut out);
    out
}

/// Pseudo-random bits.
pub fn bits(i: u32) -> u32 {
    let mut x = i.wrapping_add(1).wrapping_mul(0x9e37_79b9);
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// From `low` to `high`.
fn between(i: u32, low: f32, high: f32) -> u32 {
    (low + (high - low) * (bits(i) >> 8) as f32 / (1 << 24) as f32).to_bits()
}

/// Directions: random ones, and along axes, edges and corners.
fn directions(i: u32) -> [u32; 8] {
    let special = |n: u32| [0.0f32, 1.0, -1.0, 0.5][n as usize % 4].to_bits();
    let mut out = [0; 8];
    for n in 0..3 {
        out[n as usize] = match i {
            0..40 => between(8 * i + n, -2.0, 2.0),
            _ => special(bits(8 * i + n)),
        };
    }
    if out[..3].iter().all(|&w| w == 0) {
        out[0] = 1f32.to_bits();
    }
    // A level of detail, and a layer.
    out[3] = between(8 * i + 3, -0.5, 3.5);
    out[4] = bits(8 * i + 4) % 4;
    out
}

fn cubes(out: &mut Vec<Case>) {
    let cube = Shape::new(Format::F32, 1, [8, 8, 6], CUBE);
    let layered = Shape::new(Format::F32, 1, [8, 8, 18], CUBE | LAYERED);
    let point = "tex.cube.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1, F2, F2}];";
    let level = "tex.level.cube.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1, F2, F2}], F3;";
    let layer = "tex.acube.v4.f32.f32 {O0, O1, O2, O3}, [T, {R4, F0, F1, F2}];";
    let layer_level = "tex.level.acube.v4.f32.f32 {O0, O1, O2, O3}, [T, {R4, F0, F1, F2}], F3;";
    let case = |name: &str, shape: &Shape, body: &str| Case::new(name, *shape, body, directions);
    out.push(case("cube", &cube, point));
    out.push(case("cube linear", &cube, point).linear());
    out.push(case("cube seamless", &cube, point).linear().flags(0x40));
    out.push(case("acube", &layered, layer));
    out.push(case("acube linear", &layered, layer).linear());
    out.push(case("acube seamless", &layered, layer).linear().flags(0x40));
    out.push(case("cube level", &cube.levels(4), level));
    out.push(
        case("cube level linear", &cube.levels(4), level)
            .linear()
            .mixed(),
    );
    out.push(case("cube plain, mipmapped", &cube.levels(4), point).mixed());
    out.push(
        case("acube level mixed", &layered.levels(4), layer_level)
            .linear()
            .mixed(),
    );
    let gather = "tld4.r.cube.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1, F2, F2}];";
    let gathers = Shape::new(Format::F32, 1, [8, 8, 6], CUBE | GATHER);
    out.push(case("cube gather", &gathers, gather).outputs(4));
    out.push(
        case("cube gather seamless", &gathers, gather)
            .outputs(4)
            .flags(0x40),
    );
    for (name, shape, flags) in [
        ("cube gather, no flag", cube, 0),
        ("cube gather seamless, no flag", cube, 0x40),
    ] {
        out.push(case(name, &shape, gather).outputs(4).flags(flags));
    }
    let gather = "tld4.r.acube.v4.f32.f32 {O0, O1, O2, O3}, [T, {R4, F0, F1, F2}];";
    let gathers = Shape::new(Format::F32, 1, [8, 8, 18], CUBE | LAYERED | GATHER);
    out.push(case("acube gather", &gathers, gather).outputs(4));
    out.push(case("acube gather, no flag", &layered, gather).outputs(4));
}

/// Three coordinates, a level, four derivatives.
fn points(i: u32) -> [u32; 8] {
    let mut out = [0; 8];
    for n in 0..3 {
        out[n as usize] = between(8 * i + n, -0.4, 1.4);
    }
    out[3] = match i {
        0..16 => ((i as f32 - 3.0) / 2.0).to_bits(),
        16..24 => ((i as f32 - 15.5) / 3.0).to_bits(),
        _ => between(8 * i + 3, -1.0, 6.0),
    };
    for n in 4..8 {
        // From a hundredth of the image to the whole of it.
        let scale = 2f32.powi(-(bits(9 * i + n) as i32 & 7));
        out[n as usize] = (f32::from_bits(between(8 * i + n, -1.0, 1.0)) * scale).to_bits();
    }
    out
}

/// The same with a layer's number in the fourth word.
fn layers(i: u32) -> [u32; 8] {
    let mut out = points(i);
    out[4] = bits(i) % 5;
    out
}

fn mipmaps(out: &mut Vec<Case>) {
    let plane = Shape::new(Format::F32, 1, [32, 16, 0], 0).levels(6);
    let level = "tex.level.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}], F3;";
    let case = |name: &str, shape: &Shape, body: &str| Case::new(name, *shape, body, points);
    for (linear, mixed) in [(false, false), (false, true), (true, false), (true, true)] {
        let with = |mut case: Case| {
            if linear {
                case = case.linear();
            }
            if mixed {
                case = case.mixed();
            }
            case
        };
        let name = |what: &str| format!("{what}, linear {linear}, mixed {mixed}");
        out.push(with(case(&name("level 2d"), &plane, level)));
        let grad = "tex.grad.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}], {F4, F5}, {F6, F7};";
        out.push(with(case(&name("grad 2d"), &plane, grad)));
    }
    out.push(
        case("level 2d, clamped levels", &plane, level)
            .linear()
            .mixed()
            .clamped(0.75, 2.5),
    );
    out.push(
        case("level 2d, a bias", &plane, level)
            .linear()
            .mixed()
            .bias(0.625),
    );
    let wraps = case("level 2d, wraps", &plane, level).linear().mixed();
    out.push(wraps.edge(Edge::Wrap));
    let mirror = case("level 2d, mirrors", &plane, level).linear().mixed();
    out.push(mirror.edge(Edge::Mirror));
    let border = case("level 2d, border", &plane, level).linear().mixed();
    out.push(border.edge(Edge::Border));
    out.push(
        case("level 2d, no whole levels", &plane, level)
            .mixed()
            .clamped(1.25, 1.25),
    );
    let plain = "tex.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}];";
    out.push(case("plain 2d, mipmapped", &plane, plain).mixed());
    out.push(
        case("plain 2d, mipmapped, a bias", &plane, plain)
            .mixed()
            .bias(1.5),
    );
    let whole = "tex.level.2d.v4.f32.s32 {O0, O1, O2, O3}, [T, {R4, R4}], R3;";
    let texels = |i: u32| [0, 0, 0, i % 8, i / 8 % 8, 0, 0, 0];
    out.push(Case::new("level 2d, whole", plane, whole, texels).absolute());
    let line = Shape::new(Format::F32, 1, [32, 0, 0], 0).levels(6);
    let level = "tex.level.1d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0}], F3;";
    out.push(case("level 1d", &line, level).linear().mixed());
    let grad = "tex.grad.1d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0}], {F4}, {F5};";
    out.push(case("grad 1d", &line, grad).linear().mixed());
    let solid = Shape::new(Format::F32, 1, [8, 8, 8], 0).levels(4);
    let level = "tex.level.3d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1, F2, F2}], F3;";
    out.push(case("level 3d", &solid, level).linear().mixed());
    let grad = "tex.grad.3d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1, F2, F2}], {F4, F5, F6, F6}, {F7, F6, F5, F5};";
    out.push(case("grad 3d", &solid, grad).linear().mixed().near(5.0));
    let sheets = Shape::new(Format::F32, 1, [16, 16, 4], LAYERED).levels(5);
    let level = "tex.level.a2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {R4, F0, F1, F1}], F3;";
    out.push(
        Case::new("level a2d", sheets, level, layers)
            .linear()
            .mixed(),
    );
    let grad =
        "tex.grad.a2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {R4, F0, F1, F1}], {F5, F6}, {F6, F7};";
    out.push(Case::new("grad a2d", sheets, grad, layers).linear().mixed());
    let rows = Shape::new(Format::F32, 1, [16, 0, 4], LAYERED).levels(5);
    let level = "tex.level.a1d.v4.f32.f32 {O0, O1, O2, O3}, [T, {R4, F0}], F3;";
    out.push(Case::new("level a1d", rows, level, layers).linear().mixed());
    // What is no mipmap has one level.
    let flat = Shape::new(Format::F32, 1, [32, 16, 0], 0);
    let level = "tex.level.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}], F3;";
    out.push(case("level 2d, no mipmap", &flat, level).linear().mixed());
    let bytes = Shape::new(Format::U8, 4, [16, 16, 0], 0).levels(5);
    out.push(
        case("level 2d, bytes", &bytes, level)
            .linear()
            .mixed()
            .outputs(4),
    );
    out.push(
        case("level 2d, sRGB", &bytes, level)
            .linear()
            .mixed()
            .outputs(4)
            .flags(0x10),
    );
    let point = "tex.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}];";
    let bytes = Shape::new(Format::U8, 4, [16, 16, 0], 0);
    out.push(case("2d, sRGB", &bytes, point).outputs(4).flags(0x10));
    out.push(case("2d, bytes, linear", &bytes, point).linear().outputs(4));
    let halves = Shape::new(Format::F16, 2, [16, 16, 0], 0);
    out.push(
        case("2d, halves, linear", &halves, point)
            .linear()
            .outputs(2),
    );
    let integers = "tex.2d.v4.u32.f32 {O0, O1, O2, O3}, [T, {F0, F1}];";
    let words = Shape::new(Format::U32, 1, [16, 16, 0], 0);
    out.push(case("2d, filtered words", &words, integers).linear());
    out.push(
        case("2d, filtered bytes", &bytes, integers)
            .linear()
            .outputs(4)
            .flags(1),
    );
}

fn offsets(out: &mut Vec<Case>) {
    let plane = Shape::new(Format::F32, 1, [16, 16, 0], GATHER);
    let offset = |i: u32| {
        let mut out = points(i);
        out[4] = bits(i) % 16;
        out[5] = bits(i + 99) % 16;
        for n in [4, 5] {
            out[n] = out[n].wrapping_sub(8);
        }
        out
    };
    let case = |name: &str, shape: &Shape, body: &str| Case::new(name, *shape, body, offset);
    let body = "tex.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}], {R4, R5};";
    out.push(case("2d with an offset", &plane, body));
    out.push(case("2d with an offset, linear", &plane, body).linear());
    let wraps = case("2d with an offset, wraps", &plane, body);
    out.push(wraps.edge(Edge::Wrap));
    let body = "tld4.r.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}], {R4, R5};";
    out.push(case("gather with an offset", &plane, body).outputs(4));
    let body = "tex.level.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}], F3, {R4, R5};";
    out.push(
        case(
            "level 2d with an offset",
            &plane.without(GATHER).levels(5),
            body,
        )
        .linear()
        .mixed(),
    );
}

/// Columns in bytes, rows; a word to add; some outside.
fn places(i: u32) -> [u32; 8] {
    let inside = i < 48;
    let x = if inside {
        bits(2 * i) % 8
    } else {
        bits(2 * i) % 16
    };
    let y = if inside {
        bits(2 * i + 1) % 4
    } else {
        bits(2 * i + 1) % 8
    };
    let x = if inside { x } else { x.wrapping_sub(4) };
    [
        x,
        y.wrapping_sub(u32::from(!inside)),
        i % 3,
        bits(3 * i),
        bits(5 * i),
        0,
        x.wrapping_mul(4),
        x.wrapping_mul(8),
    ]
}

fn reductions(out: &mut Vec<Case>) {
    let plane = Shape::new(Format::U32, 1, [8, 4, 0], SURFACE);
    for (op, ty) in [
        ("add", "u32"),
        ("min", "u32"),
        ("max", "u32"),
        ("min", "s32"),
        ("max", "s32"),
        ("and", "b32"),
        ("or", "b32"),
    ] {
        for mode in ["clamp", "zero"] {
            let body = format!("sured.b.{op}.2d.{ty}.{mode} [S, {{R6, R1}}], R3;");
            out.push(
                Case::new(format!("sured.b.{op}.2d.{ty}.{mode}"), plane, body, places).surface(),
            );
        }
    }
    for op in ["add", "min", "max", "or"] {
        let body = format!("sured.p.{op}.2d.b32.zero [S, {{R0, R1}}], R3;");
        let name = format!("sured.p.{op}.2d.b32.zero");
        out.push(Case::new(name, plane, body, places).surface());
    }
    let wide = Shape::new(Format::U32, 2, [8, 4, 0], SURFACE);
    for (op, ty) in [
        ("add", "u64"),
        ("min", "u64"),
        ("max", "s64"),
        ("max", "u64"),
    ] {
        let body = format!(
            ".reg .b64 w; mov.b64 w, {{R3, R4}}; sured.b.{op}.2d.{ty}.zero [S, {{R7, R1}}], w;"
        );
        out.push(Case::new(format!("sured.b.{op}.2d.{ty}.zero"), wide, body, places).surface());
    }
    let line = Shape::new(Format::U32, 1, [8, 0, 0], SURFACE);
    let body = "sured.b.add.1d.u32.clamp [S, {R6}], R3;";
    out.push(Case::new("sured.b.add.1d.u32.clamp", line, body, places).surface());
    let solid = Shape::new(Format::U32, 1, [8, 4, 3], SURFACE);
    let body = "sured.b.add.3d.u32.zero [S, {R6, R1, R2, R2}], R3;";
    out.push(Case::new("sured.b.add.3d.u32.zero", solid, body, places).surface());
    // Into a cube's face.
    let cube = Shape::new(Format::U32, 1, [8, 8, 6], SURFACE | CUBE);
    let body = "sust.b.a2d.b32.zero [S, {R2, R6, R1, R1}], R3;";
    out.push(Case::new("sust.b into a cube", cube, body, one_each).surface());
}

/// Places of their own: stores by many threads to one would have any order.
fn one_each(i: u32) -> [u32; 8] {
    let inside = i < 32;
    let (x, y) = if inside {
        (i % 8, i / 8)
    } else {
        (8 + i % 4, i % 8)
    };
    let float = |n: u32| match i % 4 {
        0 => between(n, -2.0, 2.0),
        1 => between(n, 0.0, 1.0),
        2 => between(n, -300.0, 70000.0),
        _ => [f32::NAN, f32::INFINITY, -0.0, 1e-6][n as usize % 4].to_bits(),
    };
    let value = |n: u32| {
        if i % 8 < 6 {
            float(9 * i + n)
        } else {
            bits(9 * i + n)
        }
    };
    [x, y, i % 5, value(0), value(1), value(2), 4 * x, value(3)]
}

fn formatted(out: &mut Vec<Case>) {
    for format in [
        Format::U8,
        Format::S8,
        Format::U16,
        Format::S16,
        Format::U32,
        Format::S32,
        Format::F16,
        Format::F32,
    ] {
        for channels in [1, 2, 4] {
            let plane = Shape::new(format, channels, [8, 4, 0], SURFACE);
            for (vector, list) in [("", "R3"), (".v2", "{R3, R4}"), (".v4", "{R3, R4, R5, R7}")] {
                // All widths on the widest, else only its own.
                let own = [".", ".v2", "", ".v4"][channels as usize - 1] == vector
                    || channels == 1 && vector.is_empty();
                if !own && format != Format::U8 && format != Format::F32 {
                    continue;
                }
                let body = format!("sust.p.2d{vector}.b32.zero [S, {{R0, R1}}], {list};");
                let name = format!("sust.p{vector} {format:?} x {channels}");
                out.push(Case::new(name, plane, body, one_each).surface());
            }
        }
    }
    let plane = Shape::new(Format::U16, 2, [8, 4, 0], SURFACE);
    let line = Shape::new(Format::S8, 1, [8, 0, 0], SURFACE);
    let solid = Shape::new(Format::F16, 4, [8, 4, 3], SURFACE);
    for (name, shape, body) in [
        (
            "sust.p, clamped",
            plane,
            "sust.p.2d.v2.b32.clamp [S, {R0, R1}], {R3, R4}; ",
        ),
        ("sust.p.1d", line, "sust.p.1d.b32.zero [S, {R0}], R3;"),
        (
            "sust.p.3d",
            solid,
            "sust.p.3d.v4.b32.zero [S, {R0, R1, R2, R2}], {R3, R4, R5, R7};",
        ),
    ] {
        // The first rows only: what is clamped falls together.
        let first = |i: u32| {
            if i < 8 {
                one_each(i)
            } else {
                [99, 99, 99, 7, 7, 7, 99, 7]
            }
        };
        out.push(Case::new(name, shape, body, first).surface());
    }
}

/// Of the other questions an H200's driver compiles none.
fn queries(out: &mut Vec<Case>) {
    let plane = Shape::new(Format::U16, 2, [32, 16, 0], 0).levels(6);
    let none = |i: u32| [i, 0, 0, 0, 0, 0, 0, 0];
    for (name, shape, body) in [
        (
            "txq.width, height",
            plane,
            "txq.width.b32 O0, [T]; txq.height.b32 O1, [T];",
        ),
        (
            "txq.level.width",
            plane,
            "txq.level.width.b32 O0, [T], R0; txq.level.height.b32 O1, [T], R0;",
        ),
        (
            "istypep",
            plane,
            ".reg .pred p; istypep.texref p, T; selp.b32 O0, 1, 0, p; istypep.surfref p, T; selp.b32 O1, 1, 0, p; istypep.samplerref p, T; selp.b32 O2, 1, 0, p;",
        ),
    ] {
        out.push(Case::new(name, shape, body, none).outputs(4));
    }
    let surface = Shape::new(Format::U16, 2, [32, 16, 0], SURFACE);
    let body = ".reg .pred p; istypep.texref p, S; selp.b32 O0, 1, 0, p; istypep.surfref p, S; selp.b32 O1, 1, 0, p;";
    out.push(Case::new("istypep of a surface", surface, body, none).surface());
    let body = "suq.width.b32 O0, [S]; suq.height.b32 O1, [S];";
    out.push(Case::new("suq.width, height", surface, body, none).surface());
    let whole = "txq.width.b32 O0, [T]; txq.height.b32 O1, [T]; txq.depth.b32 O2, [T];";
    for (name, shape) in [
        (
            "txq.depth of a cube",
            Shape::new(Format::F32, 1, [8, 8, 6], CUBE),
        ),
        (
            "txq.depth of cubes",
            Shape::new(Format::F32, 1, [8, 8, 18], CUBE | LAYERED),
        ),
        (
            "txq.depth of a solid",
            Shape::new(Format::F32, 1, [8, 4, 5], 0),
        ),
        (
            "txq.depth of layers",
            Shape::new(Format::F32, 1, [8, 4, 5], LAYERED),
        ),
        (
            "txq.depth of a plane",
            Shape::new(Format::F32, 1, [8, 4, 0], 0),
        ),
    ] {
        out.push(Case::new(name, shape, whole, none).outputs(4));
    }
}

/// Every byte as sRGB, at a texel's centre.
fn light(out: &mut Vec<Case>) {
    let body = "tex.2d.v4.f32.s32 {O0, O1, O2, O3}, [T, {R0, R1}];";
    for part in 0..4 {
        let inputs: fn(u32) -> [u32; 8] = match part {
            0 => |i| [i % 16, i / 16, 0, 0, 0, 0, 0, 0],
            1 => |i| [i % 16, i / 16 + 4, 0, 0, 0, 0, 0, 0],
            2 => |i| [i % 16, i / 16 + 8, 0, 0, 0, 0, 0, 0],
            _ => |i| [i % 16, i / 16 + 12, 0, 0, 0, 0, 0, 0],
        };
        let bytes = Shape::new(Format::U8, 4, [16, 16, 0], 0).counting();
        let case = Case::new(format!("sRGB bytes, part {part}"), bytes, body, inputs);
        out.push(case.absolute().flags(0x10));
    }
}

/// Filters of each format, as fractions and as integers; floats that are no whole numbers.
fn filters(out: &mut Vec<Case>) {
    let point = "tex.2d.v4.f32.f32 {O0, O1, O2, O3}, [T, {F0, F1}];";
    let integers = "tex.2d.v4.s32.f32 {O0, O1, O2, O3}, [T, {F0, F1}];";
    for format in [Format::U8, Format::S8, Format::U16, Format::S16] {
        let shape = Shape::new(format, 2, [16, 16, 0], 0);
        let name = format!("fractions of {format:?}");
        let fractions = Case::new(name, shape, point, points).linear().outputs(2);
        // Of signed bytes the last of 16 bits.
        let steps = if format == Format::S8 { 0.01 } else { 0.0 };
        out.push(fractions.near(steps));
        let name = format!("integers of {format:?}");
        out.push(
            Case::new(name, shape, integers, points)
                .linear()
                .outputs(2)
                .flags(1),
        );
        let name = format!("a border of {format:?}");
        let border = Case::new(name, shape, point, points).linear().outputs(4);
        out.push(border.edge(Edge::Border).near(steps));
    }
    let words = Shape::new(Format::S32, 1, [16, 16, 0], 0);
    out.push(Case::new("integers of S32", words, integers, points).linear());
    let fine = Shape::new(Format::F32, 1, [16, 16, 0], 0).fine();
    let fine = Case::new("floats of all sizes", fine, point, points);
    out.push(fine.linear().near(1e-6));
    let bytes = Shape::new(Format::U8, 4, [16, 16, 0], 0);
    let integer_levels = "tex.level.2d.v4.u32.f32 {O0, O1, O2, O3}, [T, {F0, F1}], F3;";
    let levels = Case::new(
        "integers, levels mixed",
        bytes.levels(5),
        integer_levels,
        points,
    );
    out.push(levels.linear().mixed().flags(1).outputs(4));
}
