//! Broken modules and broken programs: a clear answer, never a panic.

mod common;

use gsan_sim::machine::{LaunchDesc, Machine, RunEvent};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Texts with some of everything.
const SEEDS: &[&str] = &[
    include_str!("ptx/cluster.ptx"),
    include_str!("ptx/pipeline.ptx"),
    include_str!("../examples/matmul.ptx"),
    include_str!("ptx/mixture.ptx"),
];

/// Words that are put where others were.
const WORDS: &[&str] = &[
    "b8",
    "u16",
    "s32",
    "b64",
    "b128",
    "f16x2",
    "f32",
    "f64",
    "pred",
    "v2",
    "v4",
    "v8",
    "global",
    "shared",
    "local",
    "param",
    "cas",
    "add",
    "exch",
    "wide",
    "hi",
    "cc",
    "sync",
    "cluster",
    "0",
    "1",
    "-1",
    "16",
    "0xffffffffffffffff",
    "1000000000",
    "%r1",
    "%rd1",
    "%p1",
    "%tid.x",
    "%clock64",
    "_",
    "[%rd1]",
    "[%r1+8]",
    "{%r1, %r2}",
    "ld",
    "st",
    "mov",
    "bra",
    "call",
    "ret",
    "exit",
    "bar",
    "mbarrier",
    "setp",
    "cvt",
    ".reg .b128 %q<4>;",
    "atom",
    "%q1",
    "shfl",
    "bfe",
    "brx",
    "mad",
];

fn mutate(text: &str, rng: &mut Xoshiro256PlusPlus) -> String {
    // Tokens, roughly: words and single characters.
    let mut tokens: Vec<String> = Vec::new();
    for c in text.chars() {
        let word = c.is_alphanumeric() || "_$%".contains(c);
        match tokens.last_mut() {
            Some(last)
                if word
                    && last
                        .chars()
                        .all(|c| c.is_alphanumeric() || "_$%".contains(c)) =>
            {
                last.push(c)
            }
            _ => tokens.push(c.to_string()),
        }
    }
    let below = |rng: &mut Xoshiro256PlusPlus, n: usize| rng.next_u32() as usize % n.max(1);
    for _ in 0..1 + below(rng, 4) {
        let at = below(rng, tokens.len());
        match below(rng, 5) {
            0 => {
                tokens.remove(at);
            }
            1 => tokens.insert(at, WORDS[below(rng, WORDS.len())].to_string()),
            2 => {
                let other = below(rng, tokens.len());
                tokens.swap(at, other);
            }
            3 => {
                let copy = tokens[below(rng, tokens.len())].clone();
                tokens[at] = copy;
            }
            _ => tokens[at] = WORDS[below(rng, WORDS.len())].to_string(),
        }
    }
    tokens.concat()
}

#[test]
fn the_mixture_itself_runs_to_its_end() {
    let mut b = common::Bench::new(SEEDS[3]);
    assert!(
        b.machine.unsupported(b.module).is_empty(),
        "{:?}",
        b.machine.unsupported(b.module)
    );
    let out = b.words(&[0]);
    b.start_together("mix", 4, 64, 2, false, &[out, 64, 0]);
    b.finish().unwrap_or_else(|s| panic!("{s}"));
}

#[test]
fn mutated_programs_never_panic() {
    let rounds = std::env::var("FUZZ_ROUNDS")
        .ok()
        .and_then(|r| r.parse().ok())
        .unwrap_or(300);
    let first = std::env::var("FUZZ_FIRST")
        .ok()
        .and_then(|r| r.parse().ok())
        .unwrap_or(0);
    let (mut loaded, mut ran) = (0, 0);
    for round in first..first + rounds {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(round);
        let text = mutate(SEEDS[round as usize % SEEDS.len()], &mut rng);
        let mut config = common::seeded(round);
        config.step_budget = 20_000;
        config.heap_bytes = 1 << 16;
        let mut machine = Machine::new(config);
        let Ok(module) = machine.load_module(0, &text) else {
            continue;
        };
        loaded += 1;
        for f in machine.functions(module) {
            let info = machine.function_info(f).unwrap().clone();
            let buffer = machine.memory_mut().allocate(0, 1 << 16).unwrap();
            let mut params = vec![0; info.param_bytes as usize];
            for &(offset, size) in &info.params {
                let value = if size == 8 { buffer } else { 64 };
                let n = size.min(8) as usize;
                params[offset as usize..offset as usize + n]
                    .copy_from_slice(&u64::to_le_bytes(value)[..n]);
            }
            let launch = LaunchDesc {
                device: 0,
                function: f,
                grid: [4, 1, 1],
                block: info
                    .required_block
                    .unwrap_or([info.max_threads.min(64), 1, 1]),
                cluster: [2, 1, 1],
                dynamic_shared: 512,
                user_dynamic: None,
                params,
                cooperative: true,
            };
            if machine.launch(launch).is_err() {
                continue;
            }
            if let RunEvent::Stopped(stop) = machine.run(20_000) {
                assert!(!stop.to_string().is_empty());
            }
            machine.abort();
            ran += 1;
        }
    }
    println!("{loaded} loaded, {ran} kernels ran");
    assert!(ran > 0 || rounds < 50);
}
