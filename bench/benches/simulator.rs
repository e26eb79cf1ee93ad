//! How fast the simulator runs a tiled matrix product, un-instrumented and instrumented, in PTX instructions (of threads)
//! a second; and, from the two times, what detection costs there.

// The macros make public functions.
#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gsan_bench::measure::{Bench, Plan};
use gsan_bench::workload::{Sizes, Workload, all};
use gsan_host::Session;

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

fn fresh(instrument: bool) -> Bench {
    gsan_sim::driver::reset();
    gsan_sim::driver::configure(gsan_sim::Config::default());
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
    for (name, instrument) in [("matmul, plain", false), ("matmul, instrumented", true)] {
        let mut bench = fresh(instrument);
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
