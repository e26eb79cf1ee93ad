//! Tensor copies: boxes of tensors, with maps that the driver encodes.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::{FaultKind, Stop};

type Encode = unsafe extern "C" fn(
    *mut [u64; 16],
    u32,
    u32,
    u64,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    u32,
    u32,
    u32,
    u32,
) -> i32;

type EncodeWindows = unsafe extern "C" fn(
    *mut [u64; 16],
    u32,
    u32,
    u64,
    *const u64,
    *const u64,
    *const i32,
    *const i32,
    u32,
    u32,
    *const u32,
    u32,
    u32,
    u32,
    u32,
) -> i32;

/// A map of 32-bit floats for windows of four channels, and the answer.
fn encode_windows(
    address: u64,
    extents: &[u64],
    strides: &[u64],
    corners: [&[i32]; 2],
    pixels: u32,
) -> Result<[u64; 16], i32> {
    let function = gsan_sim::driver::symbol("cuTensorMapEncodeIm2col").unwrap();
    // SAFETY: it has that type.
    let function: EncodeWindows = unsafe { std::mem::transmute(function) };
    let mut map = [0; 16];
    let steps = vec![1; extents.len()];
    // SAFETY: the arrays have as many elements as the rank says, the corners two less.
    let answer = unsafe {
        function(
            &mut map,
            7,
            extents.len() as u32,
            address,
            extents.as_ptr(),
            strides.as_ptr(),
            corners[0].as_ptr(),
            corners[1].as_ptr(),
            4,
            pixels,
            steps.as_ptr(),
            0,
            0,
            0,
            0,
        )
    };
    if answer == 0 { Ok(map) } else { Err(answer) }
}

/// A map of 32-bit floats, and the answer.
fn encode(
    address: u64,
    extents: &[u64],
    strides: &[u64],
    boxes: &[u32],
    steps: &[u32],
    swizzle: u32,
    fill: u32,
) -> Result<[u64; 16], i32> {
    let function = gsan_sim::driver::symbol("cuTensorMapEncodeTiled").unwrap();
    // SAFETY: it has that type.
    let function: Encode = unsafe { std::mem::transmute(function) };
    let mut map = [0; 16];
    // SAFETY: the arrays have as many elements as the rank says.
    let answer = unsafe {
        function(
            &mut map,
            7,
            extents.len() as u32,
            address,
            extents.as_ptr(),
            strides.as_ptr(),
            boxes.as_ptr(),
            steps.as_ptr(),
            0,
            swizzle,
            0,
            fill,
        )
    };
    if answer == 0 { Ok(map) } else { Err(answer) }
}

fn floats(n: usize) -> Vec<u32> {
    (0..n).map(|i| (i as f32).to_bits()).collect()
}

/// A kernel of one thread that loads a box and copies `bytes` of shared memory out.
fn load_kernel(dimensions: usize, coordinates: &str, bytes: u32) -> String {
    format!(
        ".visible .entry k(.param .u64 map, .param .u64 out) {{
           .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 1024 .b8 s[16384]; .shared .align 8 .b8 bar[8];
           ld.param.u64 %d1, [map]; ld.param.u64 %d2, [out]; mov.u32 %r1, s; mov.u32 %r2, bar;
           mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
           mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {bytes};
           cp.async.bulk.tensor.{dimensions}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {{{coordinates}}}], [%r2];
         W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W; mov.u32 %r3, 0;
         L: ld.shared.b32 %r4, [%r1]; st.global.b32 [%d2], %r4; add.u32 %r1, %r1, 4; add.u64 %d2, %d2, 4; add.u32 %r3, %r3, 4;
           setp.lt.u32 %p2, %r3, {bytes}; @%p2 bra L; ret; }}"
    )
}

fn load(
    map: &[u64; 16],
    dimensions: usize,
    coordinates: &str,
    bytes: u32,
    b: &mut Bench,
) -> Vec<u32> {
    load_some(map, dimensions, coordinates, bytes, bytes, b)
}

/// A box of so many bytes that lies in more of them.
fn load_some(
    map: &[u64; 16],
    dimensions: usize,
    coordinates: &str,
    expected: u32,
    bytes: u32,
    b: &mut Bench,
) -> Vec<u32> {
    let map: Vec<u8> = map.iter().flat_map(|w| w.to_le_bytes()).collect();
    let map = b.buffer(&map);
    let out = b.words(&vec![9; bytes as usize / 4]);
    let ptx = format!(
        "{}{}",
        common::HEADER,
        load_kernel(dimensions, coordinates, bytes).replacen(
            &format!("[%r2], {bytes};"),
            &format!("[%r2], {expected};"),
            1
        )
    );
    b.module = b.machine.load_module(0, &ptx).unwrap();
    assert_eq!(b.machine.unsupported(b.module), []);
    b.run("k", 1, 1, &[map, out]);
    b.read(out, bytes as usize / 4)
}

#[test]
fn boxes_are_permuted_and_filled_up() {
    // 10 × 6 elements, rows of 12; boxes of 8 × 4, 32 bytes wide.
    for (swizzle, line) in [(0, 16u32), (1, 32), (2, 64), (3, 128)] {
        for (x, y) in [(0, 0), (-4, 1), (4, 4)] {
            let mut b = Bench::with(
                seeded(u64::from(swizzle)),
                ".visible .entry nothing() { ret; }",
            );
            let tensor = b.words(&floats(12 * 6));
            let map = encode(tensor, &[10, 6], &[48], &[8, 4], &[1, 1], swizzle, 0).unwrap();
            // A row takes a whole line of the permutation; the mbarrier hears of the box's bytes.
            let pitch = line.max(32);
            let found = load_some(&map, 2, &format!("{x}, {y}"), 128, 4 * pitch, &mut b);
            for (i, row) in (0..4).flat_map(|r| (0..8).map(move |i| (i, r))) {
                let (column, line_number) = (x + i, y + row);
                let inside = (0..10).contains(&column) && (0..6).contains(&line_number);
                let expected = if inside {
                    (12 * line_number + column) as f32
                } else {
                    0.0
                };
                // Byte address within a box that starts at a multiple of 1024.
                let at = pitch * row as u32 + 4 * i as u32;
                let at = at ^ (at >> 7 & (line / 16 - 1)) << 4;
                assert_eq!(
                    f32::from_bits(found[at as usize / 4]),
                    expected,
                    "{swizzle} ({x}, {y}): ({i}, {row})"
                );
            }
        }
    }
    // Eight rows of 128 bytes: the permutation shows.
    let mut b = Bench::new(".visible .entry nothing() { ret; }");
    let tensor = b.words(&floats(32 * 8));
    let map = encode(tensor, &[32, 8], &[128], &[32, 8], &[1, 1], 3, 0).unwrap();
    let found = load(&map, 2, "0, 0", 1024, &mut b);
    for row in 0..8usize {
        for column in 0..32 {
            let piece = (column / 4) ^ row;
            assert_eq!(
                f32::from_bits(found[32 * row + 4 * piece + column % 4]),
                (32 * row + column) as f32
            );
        }
    }
}

#[test]
fn steps_and_more_dimensions() {
    let mut b = Bench::new(".visible .entry nothing() { ret; }");
    let tensor = b.words(&floats(4 * 5 * 3 * 2));
    let (extents, strides) = ([4, 5, 3, 2], [16, 80, 240]);
    let map = encode(
        tensor,
        &extents,
        &strides,
        &[4, 5, 2, 1],
        &[1, 2, 1, 1],
        0,
        1,
    )
    .unwrap();
    // Three of five rows (every second), two of three planes, the second of which is the last.
    let found = load(&map, 4, "0, 1, 2, 1", 4 * 3 * 2 * 4, &mut b);
    for (i, &bits) in found.iter().enumerate() {
        let (x, y, z) = (i % 4, 1 + i / 4 % 3 * 2, 2 + i / 12);
        if y < 5 && z < 3 {
            assert_eq!(f32::from_bits(bits), (x + 4 * y + 20 * z + 60) as f32);
        } else {
            assert!(f32::from_bits(bits).is_nan(), "{i}");
        }
    }
    // One dimension.
    let map = encode(tensor, &[100], &[], &[16], &[1], 0, 0).unwrap();
    let found = load(&map, 1, "88", 64, &mut b);
    let expected: Vec<u32> = (88..104)
        .map(|i| if i < 100 { (i as f32).to_bits() } else { 0 })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn stores_leave_alone_what_lies_outside_and_reductions_add() {
    let mut b = Bench::new(
        ".visible .entry k(.param .u64 map, .param .u64 out) {
           .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .pred %p<3>; .shared .align 1024 .b8 s[256];
           ld.param.u64 %d1, [map]; mov.u32 %r1, s; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r2, 4, %r1;
           cvt.rn.f32.u32 %f1, %r2; add.f32 %f1, %f1, 0f42C80000; st.shared.f32 [%r3], %f1;
           fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %r2, 0; @%p1 bra E;
           cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {0, 1}], [%r1];
           cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
           cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d1, {0, 2}], [%r1];
           cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
         E: ret; }",
    );
    assert_eq!(b.machine.unsupported(b.module), []);
    let tensor = b.words(&floats(4 * 4));
    let map = encode(tensor, &[4, 4], &[16], &[4, 3], &[1, 1], 0, 0).unwrap();
    let map: Vec<u8> = map.iter().flat_map(|w| w.to_le_bytes()).collect();
    let (map, out) = (b.buffer(&map), b.words(&[0]));
    b.run("k", 1, 12, &[map, out]);
    let mut expected: Vec<f32> = (0..16).map(|i| i as f32).collect();
    for row in 0..3i32 {
        for column in 0..4i32 {
            let value = (100 + 4 * row + column) as f32;
            expected[(4 * (row + 1) + column) as usize] = value;
        }
    }
    for row in 0..2 {
        (0..4)
            .for_each(|column| expected[4 * (row + 2) + column] += (100 + 4 * row + column) as f32);
    }
    let found: Vec<f32> = b.read(tensor, 16).into_iter().map(f32::from_bits).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_multicast_reaches_each_block_and_its_mbarrier() {
    for seed in 0..6 {
        let mut b = Bench::with(
            seeded(seed),
            ".visible .entry k(.param .u64 map, .param .u64 out) {
               .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b16 %h<2>; .reg .pred %p<3>; .shared .align 128 .b8 s[128]; .shared .align 8 .b8 bar[8];
               ld.param.u64 %d1, [map]; ld.param.u64 %d2, [out]; mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r5, %cluster_ctarank;
               mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
               mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;
               barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
               setp.ne.u32 %p1, %r5, 2; mov.u16 %h1, 13; @%p1 bra W;
               cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1, {4}], [%r2], %h1;
             W: setp.eq.u32 %p1, %r5, 1; @%p1 bra D; mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra W;
             D: mov.u32 %r3, %ctaid.x; mad.wide.u32 %d2, %r3, 4, %d2; ld.shared.b32 %r4, [%r1+8]; st.global.b32 [%d2], %r4;
               barrier.cluster.arrive; barrier.cluster.wait; ret; }",
        );
        assert_eq!(b.machine.unsupported(b.module), []);
        let tensor = b.words(&floats(40));
        let map = encode(tensor, &[40], &[], &[16], &[1], 0, 0).unwrap();
        let map: Vec<u8> = map.iter().flat_map(|w| w.to_le_bytes()).collect();
        let (map, out) = (b.buffer(&map), b.words(&[7; 4]));
        b.start_together("k", 4, 1, 4, false, &[map, out]);
        b.finish().unwrap();
        let six = 6f32.to_bits();
        assert_eq!(b.read(out, 4), [six, 0, six, six]);
    }
}

#[test]
fn bulk_reductions_and_masks() {
    let mut b = Bench::new(
        ".version 8.6\n.target sm_100\n.address_size 64
         .visible .entry k(.param .u64 out) {
           .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b16 %h<2>; .shared .align 16 .b8 s[32];
           ld.param.u64 %d1, [out]; mov.u32 %r1, s; mov.u32 %r2, 5; mov.u32 %r3, 0x01020304;
           st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2}; st.shared.v4.b32 [%r1+16], {%r3, %r3, %r3, %r3};
           cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%d1], [%r1], 16;
           cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r1], 32;
           mov.u16 %h1, 0x00f1;
           cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1+32], [%r1+16], 16, %h1;
           cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret; }",
    );
    assert_eq!(b.machine.unsupported(b.module), []);
    let out = b.words(&[1, 9, 4, 6, 0, 1, 2, 3, 7, 7, 7, 7]);
    b.run("k", 1, 1, &[out]);
    let n = 0x0102_0304;
    assert_eq!(
        b.read(out, 12),
        [10, 14, 10, 11, n, n + 1, n + 2, n + 3, 4, n, 7, 7]
    );
}

#[test]
fn a_map_made_on_the_device_works() {
    let mut b = Bench::new(
        ".version 8.3\n.target sm_90a\n.address_size 64
         .visible .entry make(.param .u64 map, .param .u64 tensor) {
           .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<2>; .shared .align 128 .b8 m[128];
           ld.param.u64 %d1, [map]; ld.param.u64 %d2, [tensor]; mov.u32 %r1, m; mov.u32 %r2, %tid.x; mov.u32 %r3, 0;
           mad.lo.u32 %r4, %r2, 4, %r1; st.shared.b32 [%r4], %r3; bar.warp.sync -1; setp.ne.u32 %p1, %r2, 0; mov.u64 %d3, 48;
           @%p1 bra J;
           tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %d2;
           tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1;
           tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 0, 8;
           tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 1, 2;
           tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 0, 10;
           tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 1, 6;
           tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 0, %d3;
           tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 0, 1;
           tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 1, 1;
           tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 7;
           tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1], 0;
           tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 0;
           tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 0;
         J: bar.warp.sync -1;
           tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1], 128; ret; }",
    );
    assert_eq!(b.machine.unsupported(b.module), []);
    let tensor = b.words(&floats(12 * 6));
    let map = b.words(&[1; 32]);
    b.run("make", 1, 32, &[map, tensor]);
    let expected = encode(tensor, &[10, 6], &[48], &[8, 2], &[1, 1], 0, 0).unwrap();
    assert_eq!(b.read64(map, 16), expected);
}

#[test]
fn wrong_maps_are_refused_and_fault() {
    // Address, stride, box width, and a row that is wider than the swizzle.
    assert_eq!(encode(8, &[16], &[], &[16], &[1], 0, 0), Err(1));
    assert_eq!(encode(16, &[16, 2], &[8], &[16, 2], &[1, 1], 0, 0), Err(1));
    assert_eq!(encode(16, &[16], &[], &[3], &[1], 0, 0), Err(1));
    assert_eq!(encode(16, &[16], &[], &[16], &[1], 1, 0), Err(1));
    assert_eq!(encode(16, &[16], &[], &[16], &[9], 0, 0), Err(1));
    assert_eq!(encode(16, &[0], &[], &[16], &[1], 0, 0), Err(1));
    let mut b = Bench::new(&load_kernel(2, "0, 0", 64));
    let tensor = b.words(&floats(64));
    let map = encode(tensor, &[64], &[], &[16], &[1], 0, 0).unwrap();
    let map: Vec<u8> = map.iter().flat_map(|w| w.to_le_bytes()).collect();
    let (map, out) = (b.buffer(&map), b.words(&[0; 16]));
    let stop = b.try_run("k", 1, 1, &[map, out]).unwrap_err();
    assert!(stop.to_string().contains("2 coordinates"), "{stop}");
    let mut b = Bench::new(&load_kernel(1, "0", 64));
    let out = b.words(&[0; 64]);
    let stop = b.try_run("k", 1, 1, &[out + 16, out]).unwrap_err();
    assert!(
        matches!(
            stop,
            Stop::Fault {
                kind: FaultKind::Misaligned,
                ..
            }
        ),
        "{stop}"
    );
}

/// The pixels of a window's place, with zeros around the image.
#[test]
fn windows_are_gathered() {
    let mut b = Bench::new(".visible .entry nothing() { ret; }");
    // Two images of 3 × 2 pixels of four channels.
    let tensor = b.words(&floats(4 * 3 * 2 * 2));
    let corners: [&[i32]; 2] = [&[-1, -1], &[-1, -1]];
    let map = encode_windows(tensor, &[4, 3, 2, 2], &[16, 48, 96], corners, 12).unwrap();
    let map: Vec<u8> = map.iter().flat_map(|w| w.to_le_bytes()).collect();
    let bytes = 12 * 16;
    let kernel = load_kernel(4, "0, -1, -1, 0", bytes)
        .replace("global.mbarrier", "global.im2col.mbarrier")
        .replace("[%r2];\n         W:", "[%r2], {1, 2};\n         W:");
    b.module = b
        .machine
        .load_module(0, &format!("{}{kernel}", common::HEADER))
        .unwrap();
    assert_eq!(b.machine.unsupported(b.module), []);
    let (map, out) = (b.buffer(&map), b.words(&vec![9; bytes as usize / 4]));
    b.run("k", 1, 1, &[map, out]);
    let found = b.read(out, bytes as usize / 4);
    let mut expected = Vec::new();
    // Of 3 × 2 places the middle column of the lower row of the window; two images.
    for (n, y, x) in (0..2).flat_map(|n| (0..2).flat_map(move |y| (0..3).map(move |x| (n, y, x)))) {
        let inside = y + 1 < 2;
        for c in 0..4 {
            let at = 4 * (x + 3 * (y + 1) + 6 * n) + c;
            expected.push(if inside { (at as f32).to_bits() } else { 0 });
        }
    }
    assert_eq!(found, expected);
    let empty: [&[i32]; 2] = [&[0, 0], &[0, 200]];
    assert_eq!(
        encode_windows(tensor, &[4, 3, 2, 2], &[16, 48, 96], empty, 12),
        Err(1)
    );
}

/// As an H200 answers.
#[test]
fn corners_off_sixteen_bytes_and_stores_before_the_tensor_are_faults() {
    let mut b = Bench::new(&load_kernel(1, "1", 64));
    let tensor = b.words(&floats(64));
    let map = |n: &[u64], s: &[u64], x: &[u32]| encode(tensor, n, s, x, &[1, 1], 0, 0).unwrap();
    let bytes = |map: [u64; 16]| {
        map.iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let (line, plane) = (
        b.buffer(&bytes(map(&[64], &[], &[16]))),
        b.buffer(&bytes(map(&[8, 8], &[32], &[8, 2]))),
    );
    let out = b.words(&[0; 16]);
    let stop = b.try_run("k", 1, 1, &[line, out]).unwrap_err();
    assert!(stop.to_string().contains("no multiple of 16"), "{stop}");
    for corner in ["-4, 0", "0, -1"] {
        let text = format!(
            "{}.visible .entry k(.param .u64 map) {{
               .reg .b64 %d<3>; .reg .b32 %r<3>; .shared .align 128 .b8 s[64];
               ld.param.u64 %d1, [map]; mov.u32 %r1, s;
               cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {{{corner}}}], [%r1]; ret; }}",
            common::HEADER
        );
        b.module = b.machine.load_module(0, &text).unwrap();
        let stop = b.try_run("k", 1, 1, &[plane]).unwrap_err();
        assert!(stop.to_string().contains("cannot be negative"), "{stop}");
    }
}

#[test]
fn a_load_in_flight_takes_its_coordinates_along() {
    let kernel = load_kernel(2, "%r5, %r6", 128)
        .replace(
            "mbarrier.init",
            "mov.b32 %r5, 0; mov.b32 %r6, 3; st.shared.b32 [%r1], 77; mbarrier.init",
        )
        .replace("W: mbarrier", "mov.b32 %r6, 0; mov.b64 %d1, 0; W: mbarrier");
    let first = |kernel: &str| -> std::collections::BTreeSet<u32> {
        let run = |seed| {
            let mut b = Bench::with(seeded(seed), kernel);
            let tensor = b.words(&floats(32 * 8));
            let map = encode(tensor, &[32, 8], &[128], &[32, 1], &[1, 1], 0, 0).unwrap();
            let map: Vec<u8> = map.iter().flat_map(|w| w.to_le_bytes()).collect();
            let (map, out) = (b.buffer(&map), b.words(&[9; 32]));
            b.run("k", 1, 1, &[map, out]);
            b.read(out, 1)[0]
        };
        (0..32).map(run).collect()
    };
    assert_eq!(first(&kernel), [96f32.to_bits()].into());
    // Who does not wait sees what was there, in some schedules.
    let early = kernel.replace("@!%p1 bra W;", "");
    assert_eq!(first(&early), [77, 96f32.to_bits()].into());
}
