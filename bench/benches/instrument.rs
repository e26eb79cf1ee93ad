//! How fast a large PTX file is parsed and instrumented.

// The macros make public functions.
#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

fn instrument(c: &mut Criterion) {
    let text = gsan_bench::large_ptx::generate(10 << 20);
    let mut group = c.benchmark_group("ptx");
    group
        .throughput(Throughput::Bytes(text.len() as u64))
        .sample_size(10);
    group.bench_function("parse 10 MB", |b| {
        b.iter(|| gsan_ptx::parse(black_box(&text)).unwrap().items.len())
    });
    let options =
        gsan_ptx::Options::new(gsan_host::CellFormat::Wide.built_in_runtime(), "large.ptx");
    group.bench_function("instrument 10 MB", |b| {
        b.iter(|| {
            gsan_ptx::instrument(black_box(&text), &options)
                .unwrap()
                .text
                .len()
        })
    });
    group.finish();
}

criterion_group!(benches, instrument);
criterion_main!(benches);
