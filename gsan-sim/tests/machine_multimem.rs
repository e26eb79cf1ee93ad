//! `multimem`: memory of two devices at one address.

mod common;

use common::Bench;
use gsan_sim::machine::memory::{Binding, GRANULARITY};
use gsan_sim::machine::{Access, Backing, FaultKind, Stop};
use gsan_sim::{Config, MemoryModel};

/// The multicast address, and the memory of each device.
struct Both {
    multicast: u64,
    own: [u64; 2],
}

fn bind(b: &mut Bench) -> Both {
    let memory = b.machine.memory_mut();
    let start = memory.reserve(3 * GRANULARITY, 0).unwrap();
    let own = [start + GRANULARITY, start + 2 * GRANULARITY];
    let mut bindings = Vec::new();
    for (device, address) in (0..).zip(own) {
        let backing = Backing::new(GRANULARITY).unwrap();
        memory
            .map(device, address, &backing, 0, GRANULARITY)
            .unwrap();
        memory
            .set_access(address, GRANULARITY, Access::ALL)
            .unwrap();
        bindings.push(Binding {
            device,
            at: 0,
            len: GRANULARITY,
            backing,
            offset: 0,
        });
    }
    memory
        .map_multicast(start, 0, GRANULARITY, &bindings)
        .unwrap();
    memory.set_access(start, GRANULARITY, Access::ALL).unwrap();
    Both {
        multicast: start,
        own,
    }
}

fn bench(memory: MemoryModel, body: &str) -> Bench {
    let mut config = Config::default();
    config.devices = 2;
    config.memory = memory;
    Bench::with(
        config,
        &format!(
            ".version 9.0\n.target sm_100a\n.address_size 64
             .visible .entry k(.param .u64 m, .param .u64 out) {{ .reg .b64 %d<8>; .reg .b32 %r<10>; .reg .b16 %h<10>;
               .reg .b8 %c<10>; .reg .f64 %e<4>; ld.param.u64 %d1, [m]; ld.param.u64 %d2, [out]; {body} ret; }}"
        ),
    )
}

fn words<const N: usize>(bytes: &[[u8; 4]; N]) -> Vec<u8> {
    bytes.concat()
}

fn run(b: &mut Bench, both: &Both, first: [&[u8]; 2]) -> (Vec<u8>, [Vec<u8>; 2]) {
    for (at, bytes) in both.own.iter().zip(first) {
        b.machine.memory_mut().write(*at, bytes).unwrap();
    }
    let out = b.buffer(&[0; 16]);
    assert_eq!(b.machine.unsupported(b.module), []);
    b.run("k", 1, 1, &[both.multicast, out]);
    let read = |at: u64| {
        let mut bytes = vec![0; 16];
        b.machine.memory().read(at, &mut bytes).unwrap();
        bytes
    };
    (read(out), both.own.map(read))
}

#[test]
fn loads_reduce_over_all_memory() {
    let halves = |a: u16, b: u16| (u32::from(a) | u32::from(b) << 16).to_le_bytes();
    for (text, store, first, wanted) in [
        (
            "multimem.ld_reduce.global.add.u32 %r1, [%d1];",
            "st.global.b32 [%d2], %r1;",
            [words(&[7u32.to_le_bytes()]), words(&[9u32.to_le_bytes()])],
            words(&[16u32.to_le_bytes()]),
        ),
        (
            "multimem.ld_reduce.weak.global.min.s32 %r1, [%d1];",
            "st.global.b32 [%d2], %r1;",
            [
                words(&[7i32.to_le_bytes()]),
                words(&[(-9i32).to_le_bytes()]),
            ],
            words(&[(-9i32).to_le_bytes()]),
        ),
        (
            "multimem.ld_reduce.acquire.sys.and.b64 %d3, [%d1];",
            "st.global.b64 [%d2], %d3;",
            [
                words(&[[15, 0, 0, 0], [6, 0, 0, 1]]),
                words(&[[6, 0, 0, 0], [3, 0, 0, 1]]),
            ],
            words(&[[6, 0, 0, 0], [2, 0, 0, 1]]),
        ),
        (
            "multimem.ld_reduce.relaxed.gpu.global.add.v4.f32 {%r1, %r2, %r3, %r4}, [%d1];",
            "st.global.v4.b32 [%d2], {%r1, %r2, %r3, %r4};",
            [
                words(&[1.5f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes)),
                words(&[1.0f32, 0.5, -3.0, 4.0].map(f32::to_le_bytes)),
            ],
            words(&[2.5f32, 2.5, 0.0, 8.0].map(f32::to_le_bytes)),
        ),
        (
            "multimem.ld_reduce.global.add.f64 %e1, [%d1];",
            "st.global.f64 [%d2], %e1;",
            [
                1.5f64.to_le_bytes().to_vec(),
                2.25f64.to_le_bytes().to_vec(),
            ],
            3.75f64.to_le_bytes().to_vec(),
        ),
        (
            // 1 + 2, 2 + 2 as f16.
            "multimem.ld_reduce.global.add.acc::f32.f16x2 %r1, [%d1];",
            "st.global.b32 [%d2], %r1;",
            [
                words(&[halves(0x3c00, 0x4000)]),
                words(&[halves(0x4000, 0x4000)]),
            ],
            words(&[halves(0x4200, 0x4400)]),
        ),
        (
            "multimem.ld_reduce.global.max.v2.bf16 {%h1, %h2}, [%d1];",
            "st.global.v2.b16 [%d2], {%h1, %h2};",
            [
                words(&[halves(0x3f80, 0xc000)]),
                words(&[halves(0x4000, 0xc080)]),
            ],
            words(&[halves(0x4000, 0xc000)]),
        ),
        (
            // 1 + 1, 2 + 2, 1 + 2, 0 + 0 as e4m3.
            "multimem.ld_reduce.global.add.acc::f16.e4m3x4 %r1, [%d1];",
            "st.global.b32 [%d2], %r1;",
            [
                words(&[[0x38, 0x40, 0x38, 0]]),
                words(&[[0x38, 0x40, 0x40, 0]]),
            ],
            words(&[[0x40, 0x48, 0x44, 0]]),
        ),
        (
            "multimem.ld_reduce.global.max.v4.e5m2 {%c1, %c2, %c3, %c4}, [%d1];",
            "st.global.v4.b8 [%d2], {%c1, %c2, %c3, %c4};",
            [
                words(&[[0x3c, 0, 0x40, 0xbc]]),
                words(&[[0x40, 0x3c, 0x3c, 0xc0]]),
            ],
            words(&[[0x40, 0x3c, 0x40, 0xbc]]),
        ),
    ] {
        for model in [MemoryModel::Sequential, MemoryModel::Weak] {
            let mut b = bench(model, &format!("{text} {store}"));
            let both = bind(&mut b);
            let (out, _) = run(&mut b, &both, [&first[0], &first[1]]);
            assert_eq!(out[..wanted.len()], wanted, "{text}");
        }
    }
}

#[test]
fn stores_and_reductions_reach_all_memory() {
    let number = |n: u32| n.to_le_bytes().to_vec();
    for (text, wanted) in [
        (
            "mov.b32 %r1, 5; multimem.st.release.sys.global.u32 [%d1], %r1;",
            [number(5), number(5)],
        ),
        (
            "mov.b32 %r1, 5; multimem.st.weak.global.b32 [%d1], %r1;",
            [number(5), number(5)],
        ),
        (
            "mov.b32 %r1, 5; multimem.red.add.u32 [%d1], %r1;",
            [number(15), number(25)],
        ),
        (
            "multimem.red.release.gpu.global.min.s32 [%d1], -3;",
            [-3i32, -3].map(|n| n.to_le_bytes().to_vec()),
        ),
        (
            "mov.b32 %r1, 16; multimem.red.relaxed.cta.global.or.b32 [%d1], %r1;",
            [number(26), number(20)],
        ),
    ] {
        let mut b = bench(MemoryModel::Sequential, text);
        let both = bind(&mut b);
        let (_, memory) = run(&mut b, &both, [&number(10), &number(20)]);
        assert_eq!(memory.map(|m| m[..4].to_vec()), wanted, "{text}");
    }
    let mut b = bench(
        MemoryModel::Weak,
        "mov.b32 %r1, 0f3F800000; multimem.red.global.add.v2.f32 [%d1], {%r1, %r1};",
    );
    let both = bind(&mut b);
    let first = words(&[1.5f32, 2.0].map(f32::to_le_bytes));
    let (_, memory) = run(&mut b, &both, [&first, &[]]);
    assert_eq!(memory[0][..8], words(&[2.5f32, 3.0].map(f32::to_le_bytes)));
    assert_eq!(memory[1][..8], words(&[1.0f32, 1.0].map(f32::to_le_bytes)));
}

#[test]
fn sums_of_many_threads_are_complete() {
    let mut b = bench(MemoryModel::Weak, "multimem.red.global.add.u32 [%d1], 1;");
    let both = bind(&mut b);
    let f = b.kernel("k");
    for device in [0, 1] {
        let mut params = [0; 16];
        params[..8].copy_from_slice(&both.multicast.to_le_bytes());
        b.machine
            .launch(gsan_sim::machine::LaunchDesc {
                device,
                function: f,
                grid: [4, 1, 1],
                block: [64, 1, 1],
                cluster: [1; 3],
                dynamic_shared: 0,
                user_dynamic: None,
                params: params.to_vec(),
                cooperative: false,
            })
            .unwrap();
    }
    b.finish().unwrap();
    for own in both.own {
        assert_eq!(b.read(own, 1), [512]);
    }
}

#[test]
fn each_kind_of_memory_has_its_instructions() {
    for (text, kind) in [
        ("ld.global.b32 %r1, [%d1];", FaultKind::Multicast),
        ("red.global.add.u32 [%d1], 1;", FaultKind::Multicast),
        ("multimem.st.global.u32 [%d2], %r1;", FaultKind::Multicast),
        (
            "multimem.st.global.u64 [%d1+4], %d2;",
            FaultKind::Misaligned,
        ),
    ] {
        let mut b = bench(MemoryModel::Sequential, text);
        let both = bind(&mut b);
        let own = both.own[0];
        let stop = b.try_run("k", 1, 1, &[both.multicast, own]).unwrap_err();
        assert!(
            matches!(stop, Stop::Fault { kind: k, .. } if k == kind),
            "{text}: {stop}"
        );
    }
    for wrong in [
        "multimem.red.global.add.b32 [%d1], %r1;",
        "multimem.red.global.min.f32 [%d1], %r1;",
        "multimem.red.global.add.e4m3x4 [%d1], %r1;",
        "multimem.st.global.f16 [%d1], %h1;",
        "multimem.ld_reduce.global.and.u32 %r1, [%d1];",
        "multimem.ld_reduce.global.u32 %r1, [%d1];",
        "multimem.st.global.u8 [%d1], %r1;",
    ] {
        let text = format!(
            ".version 9.0\n.target sm_100a\n.address_size 64
             .visible .entry k() {{ .reg .b64 %d<8>; .reg .b32 %r<10>; .reg .b16 %h<4>; {wrong} ret; }}"
        );
        let mut machine = gsan_sim::machine::Machine::new(Config::default());
        assert!(machine.load_module(0, &text).is_err(), "{wrong}");
    }
}
