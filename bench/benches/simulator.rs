//! How fast the simulator runs a tiled matrix product, un-instrumented and instrumented, in PTX instructions (of threads)
//! a second; and, from the times, what detection costs there, and weak memory and the schedule by priorities.

// The macros make public functions.
#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gsan_bench::measure::{Bench, Plan};
use gsan_bench::workload::{Sizes, Workload, all};
use gsan_host::Session;
use gsan_sim::{Config, MemoryModel, Schedule};

const PLAN: Plan = Plan {
    device: 0,
    sizes: Sizes {
        words: 16 << 10,
        table: 1 << 10,
        matrix: 64,
        blocks: 8,
    },
    runs: 1,
};

fn fresh(instrument: bool, config: Config) -> Bench {
    gsan_sim::driver::reset();
    gsan_sim::driver::configure(config);
    let session = Session::builder().instrument(instrument).build().unwrap();
    Bench::new(session, &PLAN).unwrap()
}

fn once(bench: &mut Bench, workload: &Workload) {
    bench.launch(workload).unwrap();
    bench.wait().unwrap();
}

fn simulator(c: &mut Criterion) {
    let _ = cuda_lazy::select(cuda_lazy::Choice::Sim);
    let matmul = all(&PLAN.sizes)
        .into_iter()
        .find(|w| w.kernel == "matmul")
        .unwrap();
    let mut group = c.benchmark_group("simulator");
    group.sample_size(10);
    let with = |memory, schedule| {
        let mut config = Config::default();
        (config.memory, config.schedule) = (memory, schedule);
        config
    };
    let sequential = MemoryModel::Sequential;
    for (name, instrument, config) in [
        ("matmul, plain", false, Config::default()),
        ("matmul, instrumented", true, Config::default()),
        (
            "matmul, weak memory",
            false,
            with(MemoryModel::Weak, Schedule::Random),
        ),
        (
            "matmul, by priorities",
            false,
            with(sequential, Schedule::Priority),
        ),
    ] {
        let mut bench = fresh(instrument, config);
        let before = gsan_sim::driver::thread_steps();
        once(&mut bench, &matmul);
        group.throughput(Throughput::Elements(
            gsan_sim::driver::thread_steps() - before,
        ));
        group.bench_function(name, |b| b.iter(|| once(&mut bench, &matmul)));
    }
    group.finish();
}

criterion_group!(benches, simulator);
criterion_main!(benches);
