//! Tensor copies that gather the windows of a convolution: `.im2col`.

use super::tensor::{load_by, numbers, size, store_by, tensor_map};
use crate::kernel::{Kernel, Map, Windows};

struct Case {
    name: &'static str,
    /// Channels, width, height, depth, images.
    extents: &'static [u64],
    lower: &'static [i32],
    upper: &'static [i32],
    channels: u32,
    pixels: u32,
    steps: &'static [u32],
    corner: &'static [i32],
    offsets: &'static [u32],
}

const CASES: [Case; 9] = [
    Case {
        name: "one row",
        extents: &[8, 10, 3],
        lower: &[0],
        upper: &[0],
        channels: 8,
        pixels: 6,
        steps: &[1, 1, 1],
        corner: &[0, 2, 1],
        offsets: &[0],
    },
    Case {
        name: "to the next image",
        extents: &[8, 10, 3],
        lower: &[-1],
        upper: &[-1],
        channels: 4,
        pixels: 16,
        steps: &[1, 1, 1],
        corner: &[4, 5, 0],
        offsets: &[2],
    },
    Case {
        name: "padding all around",
        extents: &[8, 6, 5, 3],
        lower: &[-1, -1],
        upper: &[-1, -1],
        channels: 8,
        pixels: 40,
        steps: &[1, 1, 1, 1],
        corner: &[0, -1, -1, 0],
        offsets: &[1, 2],
    },
    Case {
        name: "from the middle",
        extents: &[8, 6, 5, 3],
        lower: &[-1, 0],
        upper: &[-2, -1],
        channels: 4,
        pixels: 24,
        steps: &[1, 1, 1, 1],
        corner: &[4, 2, 2, 1],
        offsets: &[0, 1],
    },
    Case {
        name: "every second pixel",
        extents: &[8, 9, 7, 2],
        lower: &[-1, -1],
        upper: &[-1, -1],
        channels: 8,
        pixels: 24,
        steps: &[1, 2, 2, 1],
        corner: &[0, -1, -1, 0],
        offsets: &[2, 0],
    },
    Case {
        name: "every second pixel of an even number",
        extents: &[8, 8, 6, 2],
        lower: &[-1, -1],
        upper: &[-1, -1],
        channels: 8,
        pixels: 24,
        steps: &[1, 2, 2, 1],
        corner: &[0, 1, 1, 0],
        offsets: &[0, 2],
    },
    Case {
        name: "past the last image",
        extents: &[8, 6, 5, 2],
        lower: &[0, 0],
        upper: &[-2, -2],
        channels: 8,
        pixels: 32,
        steps: &[1, 1, 1, 1],
        corner: &[0, 1, 1, 1],
        offsets: &[1, 1],
    },
    Case {
        name: "more channels than there are",
        extents: &[8, 6, 5, 2],
        lower: &[0, 0],
        upper: &[-2, -2],
        channels: 8,
        pixels: 16,
        steps: &[1, 1, 1, 1],
        corner: &[4, 0, 0, 0],
        offsets: &[0, 0],
    },
    Case {
        name: "volumes",
        extents: &[4, 5, 4, 3, 2],
        lower: &[-1, -1, -1],
        upper: &[-1, -1, -1],
        channels: 4,
        pixels: 48,
        steps: &[1, 1, 1, 1, 1],
        corner: &[0, 0, 1, -1, 0],
        offsets: &[1, 2, 0],
    },
];

/// All of them.
pub(super) fn kernels(out: &mut Vec<Kernel>) {
    for case in &CASES {
        for swizzle in 0..if case.name == "padding all around" {
            4
        } else {
            1
        } {
            let mut m = map(case, 2, "u32[4096]");
            m.swizzle = swizzle;
            let tail = if swizzle > 0 {
                format!(", swizzle {swizzle}")
            } else {
                String::new()
            };
            let name = format!("windows, {}{tail}", case.name);
            out.push(load(&name, m, case));
        }
    }
    // Half of eight channels is no multiple of sixteen bytes: all of them.
    let case = Case {
        channels: 8,
        corner: &[0, 2, 2, 1],
        ..CASES[3]
    };
    let halves = Map {
        fill: 1,
        ..map(&case, 6, "f16[4096]")
    };
    out.push(load("windows, filled with NaN", halves, &case));
    for (name, op) in [
        ("store", "cp.async.bulk.tensor.3d.global.shared::cta"),
        (
            "add",
            "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add",
        ),
    ] {
        let m = map(&CASES[0], 2, "u32[4096]");
        let copy = format!(
            "{op}.im2col_no_offs.bulk_group [%d1, {{{}}}], [%r1];",
            numbers(CASES[0].corner)
        );
        let name = format!("tensor {name}: windows");
        out.push(store_by(name, m, &copy, "u32[256]".to_string()));
    }
}

fn map(case: &Case, ty: i32, data: &str) -> Map {
    let mut strides = Vec::new();
    // A pixel has a gap behind it, and so has a row.
    let mut stride = case.extents[0] * u64::from(size(ty)) + 16;
    for extent in &case.extents[1..] {
        strides.push(stride);
        stride = stride * extent + 32;
    }
    Map {
        steps: case.steps.to_vec(),
        windows: Some(Windows {
            lower: case.lower.to_vec(),
            upper: case.upper.to_vec(),
            channels: case.channels,
            pixels: case.pixels,
        }),
        ..tensor_map(data, ty, case.extents, &strides, &[])
    }
}

fn load(name: &str, map: Map, case: &Case) -> Kernel {
    let offsets: Vec<i32> = case.offsets.iter().map(|&o| o as i32).collect();
    let copy = format!(
        "cp.async.bulk.tensor.{}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%d1, {{{}}}], [%r2], {{{}}};",
        case.extents.len(),
        numbers(case.corner),
        numbers(&offsets)
    );
    load_by(name, map, &copy, case.channels * case.pixels)
}
