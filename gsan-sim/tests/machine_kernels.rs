//! Kernels of the corpus whose outcome is clear: compilers' output, run over several schedules.

mod common;

use std::path::Path;

use common::{Bench, seeded};
use gsan_sim::machine::{LaunchDesc, RunEvent, Stop};

/// A file of `tests/data`: PTX that real compilers made.
fn corpus(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn floats(b: &Bench, va: u64, n: usize) -> Vec<f32> {
    b.read(va, n).into_iter().map(f32::from_bits).collect()
}

fn over_seeds(file: &str, test: impl Fn(&mut Bench)) {
    let text = corpus(file);
    for seed in 0..6 {
        test(&mut Bench::with(seeded(seed), &text));
    }
}

#[test]
fn last_block_reduction() {
    for arch in ["sm80", "sm90a"] {
        over_seeds(&format!("cuda/reduce_last_block.{arch}.loc.ptx"), |b| {
            let n = 5000u32;
            let input: Vec<u32> = (0..n).map(|i| ((i % 7) as f32).to_bits()).collect();
            let (input, part, out) = (b.words(&input), b.words(&[0; 12]), b.words(&[0]));
            for _ in 0..2 {
                b.run(
                    "reduce_last_block",
                    12,
                    256,
                    &[input, part, out, u64::from(n)],
                );
                let sum: u32 = (0..n).map(|i| i % 7).sum();
                assert_eq!(floats(b, out, 1), [sum as f32]);
            }
        });
    }
}

#[test]
fn spin_locks_and_tickets() {
    over_seeds("cuda/spinlock.sm90a.loc.ptx", |b| {
        let (lock, count) = (b.words(&[0]), b.words(&[0]));
        b.run("spin", 20, 64, &[lock, count]);
        assert_eq!(b.read(count, 1), [20]);
        let (global, _) = b.machine.global(b.module, "gcount").unwrap();
        assert_eq!(b.read(global, 1), [20]);
        let count = b.words(&[0]);
        b.run("spin_block", 1, 96, &[count]);
        assert_eq!(b.read(count, 1), [96]);
        let (next, serving, count) = (b.words(&[0]), b.words(&[0]), b.words(&[0]));
        b.run("ticket", 16, 32, &[next, serving, count]);
        assert_eq!(b.read(count, 1), [16]);
        let (lock, count) = (b.words(&[0]), b.words(&[0, 0]));
        b.run("spin_sys", 4, 32, &[lock, count]);
        assert_eq!(b.read(count, 1), [128]);
    });
}

#[test]
fn messages_locks_and_barriers_in_rust() {
    for file in [
        "rust/message.sm90.loc.ptx",
        "rust/message.sm90.noloc.ptx",
        "rust/message.sm90.dwarf.ptx",
    ] {
        over_seeds(file, |b| {
            let (data, flag, out) = (b.words(&[0]), b.words(&[0]), b.words(&[0]));
            b.run("mp", 2, 32, &[data, flag, out]);
            assert_eq!(b.read(out, 1), [42]);
            let (s, o) = (b.words(&[0; 5]), b.words(&[0; 2]));
            b.run("spin", 16, 32, &[s, o]);
            assert_eq!(b.read(s, 5)[1..].iter().sum::<u32>() + b.read(s, 1)[0], 16);
            let (part, count, out) = (b.words(&[0; 9]), b.words(&[0]), b.words(&[0]));
            b.run("last_block", 9, 32, &[part, count, out, 9]);
            assert_eq!(floats(b, out, 1), [36.0]);
        });
    }
}

#[test]
fn a_spin_on_a_flag_that_nobody_sets_names_its_line() {
    let text = corpus("rust/message.sm90.loc.ptx");
    let mut config = seeded(1);
    config.step_budget = 100_000;
    let mut b = Bench::with(config, &text);
    let (flag, out) = (b.words(&[0]), b.words(&[0]));
    let stop = b.try_run("volatile_spin", 3, 64, &[flag, out]).unwrap_err();
    assert!(
        matches!(&stop, Stop::Budget { description } if description.contains("volatile_spin") && description.contains(".rs:")),
        "{stop}"
    );
}

#[test]
fn vector_sums_of_triton() {
    over_seeds("triton/vector_add_nodiv.sm90.loc.ptx", |b| {
        let f = b.machine.functions(b.module)[0];
        let info = b.machine.function_info(f).unwrap().clone();
        let n = 1000u32;
        let x: Vec<u32> = (0..n).map(|i| (i as f32).to_bits()).collect();
        let (x, y) = (b.words(&x), b.words(&vec![2f32.to_bits(); n as usize]));
        let out = b.words(&vec![0; n as usize]);
        let mut params = vec![0; info.param_bytes as usize];
        for (&(offset, size), value) in info.params.iter().zip([x, y, out, u64::from(n), 0, 0]) {
            params[offset as usize..(offset + size) as usize]
                .copy_from_slice(&value.to_le_bytes()[..size as usize]);
        }
        let threads = info.max_threads;
        b.machine
            .launch(LaunchDesc {
                device: 0,
                function: f,
                grid: [n.div_ceil(64), 1, 1],
                block: [threads, 1, 1],
                cluster: [1; 3],
                dynamic_shared: 0,
                user_dynamic: None,
                params,
                cooperative: false,
            })
            .unwrap();
        b.finish().unwrap();
        let expected: Vec<f32> = (0..n).map(|i| i as f32 + 2.0).collect();
        assert_eq!(floats(b, out, n as usize), expected);
    });
}

#[test]
fn block_scan_of_cub() {
    let text = corpus("cuda/cub_scan.sm90a.loc.ptx");
    // Every kernel of the file starts and ends, whatever it computes on zeros.
    let mut b = Bench::with(seeded(0), &text);
    for f in b.machine.functions(b.module) {
        let info = b.machine.function_info(f).unwrap().clone();
        let memory = b.buffer(&vec![0; 1 << 20]);
        let mut params = vec![0; info.param_bytes as usize];
        for &(offset, size) in info.params.iter().filter(|p| p.1 == 8) {
            params[offset as usize..(offset + size) as usize]
                .copy_from_slice(&memory.to_le_bytes());
        }
        let launch = LaunchDesc {
            device: 0,
            function: f,
            grid: [1, 1, 1],
            block: info
                .required_block
                .unwrap_or([info.max_threads.min(128), 1, 1]),
            cluster: [1; 3],
            dynamic_shared: 0,
            user_dynamic: None,
            params,
            cooperative: false,
        };
        b.machine.launch(launch).unwrap();
        match b.machine.run(3_000_000) {
            RunEvent::Completed(_) => {}
            RunEvent::Stopped(
                stop @ (Stop::Trap { .. } | Stop::Unsupported { .. } | Stop::Deadlock { .. }),
            ) => {
                panic!("{}: {stop}", info.name)
            }
            // Addresses made of zeros may be wild, and a flag that nobody sets may be waited for.
            _ => b.machine.abort(),
        }
    }
}

/// A virtual call, a table of functions, recursion, a structure by value, pointers to local and shared memory.
#[test]
fn calls_of_every_kind() {
    let ptx = include_str!("../../gsan-ptx/tests/data/corpus/cuda_calls_switch.sm90a.loc.ptx");
    let mut b = common::Bench::new(ptx);
    let (table, _) = b.machine.global(b.module, "_ZTV1A").unwrap();
    let mut x = vec![0u32; 128];
    x[0] = 10;
    (64..72).for_each(|i| x[i] = i as u32);
    let x = b.words(&x);
    let structure = b.words(&[1; 14]);
    let methods = (table + 16).to_le_bytes();
    let object: Vec<u8> = methods
        .into_iter()
        .chain([5, 0, 0, 0, 0, 0, 0, 0])
        .collect();
    let object = b.buffer(&object);
    b.run("calls", 1, 1, &[x, structure, object, 64]);
    // leaf 12, rec 1, table 1, f 5, shared 12, local 11.
    assert_eq!(b.read(x, 1), [42]);
    assert_eq!(b.read(structure, 2), [7, 1]);
}
