//! How long the main stages take on graphs of 10³ to 10⁵ operators.

#![allow(missing_docs)]

mod generator;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ge_conflict::{Ctx, Stage, io, passes};

fn load(text: &str) -> io::Loaded {
    match io::json::read("bench.json", text.as_bytes()) {
        Ok(l) => l,
        Err(e) => panic!("the generator's graph does not read: {e}"),
    }
}

fn stages(c: &mut Criterion) {
    let mut group = c.benchmark_group("graphs");
    group.sample_size(10);
    for operators in [1_000, 10_000, 30_000, 100_000] {
        let text = generator::module(operators);
        group.throughput(Throughput::Elements(operators as u64));
        group.bench_with_input(BenchmarkId::new("load", operators), &text, |b, t| {
            b.iter(|| load(t))
        });
        let module = load(&text).module;
        let stages: [(&str, &[Stage]); 5] = [
            ("rw", &[Stage::Rw]),
            ("layout", &[Stage::Layout]),
            ("lint", &[Stage::Lint]),
            ("rw+layout+lint", &[Stage::Rw, Stage::Layout, Stage::Lint]),
            ("all", &[Stage::All]),
        ];
        for (name, list) in stages {
            group.bench_with_input(BenchmarkId::new(name, operators), &module, |b, m| {
                b.iter_batched(
                    || m.clone(),
                    |mut m| {
                        let mut ctx = Ctx::new(&mut m, None);
                        list.iter().for_each(|s| passes::run(&mut ctx, *s));
                        assert!(ctx.report.errors.is_empty());
                        (ctx.report.inserted.len(), m)
                    },
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
