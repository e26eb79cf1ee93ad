//! How fast the detector checks accesses, on its host instance: one thread, no contention.

// The macros make public functions.
#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gsan_device::clock::State;
use gsan_device::host::{Device, Host, Shape};
use gsan_device::layout::{Access, Op, Order, Scope};
use gsan_device::wide::Wide;
use gsan_device::{block, detector};
use std::hint::black_box;

/// Words that each pattern goes over: many, so that the few releases of a pattern leave epochs free for a whole run.
const WORDS: u64 = 1 << 16;

fn device() -> Device {
    Device::new(Shape {
        num_sms: 16,
        clock_buffer_size: 64,
        real_size: 4 * (WORDS + 4),
        ..Shape::default()
    })
}

/// A block of one thread on a multiprocessor of its own.
fn enter(device: &Device, launch: u64, number: u32) -> State<Host> {
    let host = device.thread(1, number, number, 0, 1);
    block::enter(host, launch);
    State::at(host, block::state(host))
}

fn sweep(device: &Device, me: State<Host>, access: Access, size: u32) {
    let op = Op::new(access, size, Order::Weak, Scope::None);
    for offset in (0..4 * WORDS).step_by(size as usize) {
        detector::access::<Wide, _>(me, black_box(device.real() + offset), op, 1);
    }
}

/// A strong access at a word behind those of the sweeps.
fn strong(device: &Device, me: State<Host>, access: Access, order: Order) {
    let op = Op::new(access, 4, order, Scope::Gpu);
    let addr = device.real() + 4 * WORDS;
    let context = detector::strong_before::<Wide, _>(me, addr, op, 2);
    if access != Access::Store {
        detector::strong_after::<Wide, _>(me, addr, op, 2, context, true);
    }
}

fn checks(c: &mut Criterion) {
    let mut group = c.benchmark_group("detector");
    group.throughput(Throughput::Elements(WORDS));
    for (name, access) in [
        ("load, own word", Access::Load),
        ("store, own word", Access::Store),
    ] {
        let device = device();
        let me = enter(&device, device.launch(0, 0, 1), 0);
        sweep(&device, me, Access::Store, 4);
        group.bench_function(name, |b| b.iter(|| sweep(&device, me, access, 4)));
        assert!(device.races().is_empty());
    }
    {
        let device = device();
        let launch = device.launch(0, 0, 1);
        let readers: Vec<_> = (0..8).map(|n| enter(&device, launch, n)).collect();
        let mut turn = 0;
        group.bench_function("load, word with eight readers", |b| {
            b.iter(|| {
                turn += 1;
                sweep(&device, readers[turn % readers.len()], Access::Load, 4);
            });
        });
        assert!(device.races().is_empty());
    }
    {
        let device = device();
        let launch = device.launch(0, 0, 1);
        let (a, b) = (enter(&device, launch, 0), enter(&device, launch, 1));
        let mut turn = 0u32;
        group.bench_function("store, word of another block that released it", |bench| {
            bench.iter(|| {
                turn += 1;
                let me = if turn.is_multiple_of(2) { a } else { b };
                strong(&device, me, Access::Load, Order::Acquire);
                sweep(&device, me, Access::Store, 4);
                strong(&device, me, Access::Store, Order::Release);
            });
        });
        assert!(device.races().is_empty());
    }
    group.throughput(Throughput::Elements(WORDS / 4));
    {
        let device = device();
        let me = enter(&device, device.launch(0, 0, 1), 0);
        group.bench_function("load of 16 bytes", |b| {
            b.iter(|| sweep(&device, me, Access::Load, 16))
        });
    }
    group.throughput(Throughput::Elements(1024));
    {
        let device = device();
        let me = enter(&device, device.launch(0, 0, 1), 0);
        group.bench_function("relaxed atomic add", |b| {
            b.iter(|| (0..1024).for_each(|_| strong(&device, me, Access::Rmw, Order::Relaxed)));
        });
    }
    group.finish();
}

criterion_group!(benches, checks);
criterion_main!(benches);
