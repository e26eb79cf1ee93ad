//! How fast the machine is: thread instructions per second on a tiled matrix product and on divergent code.

use std::time::Instant;

use gsan_sim::Config;
use gsan_sim::machine::{LaunchDesc, Machine, RunEvent};

const MATMUL: &str = include_str!("matmul.ptx");

fn main() {
    let n = 128u32;
    let mut machine = Machine::new(Config::default());
    let module = machine.load_module(0, MATMUL).expect("the example loads");
    let bytes = u64::from(n * n * 4);
    let [a, b, c] = [0; 3].map(|_| machine.memory_mut().allocate(0, bytes).expect("memory"));
    let ones: Vec<u8> = (0..n * n).flat_map(|_| 1f32.to_le_bytes()).collect();
    machine
        .memory_mut()
        .write(a, &ones)
        .expect("allocated above");
    machine
        .memory_mut()
        .write(b, &ones)
        .expect("allocated above");
    let function = machine
        .function(module, "matmul")
        .expect("the example has it");
    let mut params = Vec::new();
    for p in [a, b, c] {
        params.extend(p.to_le_bytes());
    }
    params.extend(n.to_le_bytes());
    let start = Instant::now();
    let (steps, threads) = (machine.steps(), machine.thread_steps());
    for _ in 0..4 {
        let launch = LaunchDesc {
            device: 0,
            function,
            grid: [n / 16, n / 16, 1],
            block: [16, 16, 1],
            cluster: [1; 3],
            dynamic_shared: 0,
            user_dynamic: None,
            params: params.clone(),
            cooperative: false,
        };
        machine.launch(launch).expect("valid");
        loop {
            match machine.run(u64::MAX) {
                RunEvent::Idle => break,
                RunEvent::Stopped(stop) => panic!("{stop}"),
                _ => {}
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut out = vec![0; 4];
    machine.memory().read(c, &mut out).expect("allocated above");
    println!(
        "c[0] = {}",
        f32::from_le_bytes([out[0], out[1], out[2], out[3]])
    );
    println!(
        "{:.1} M warp instructions/s, {:.1} M thread instructions/s",
        (machine.steps() - steps) as f64 / seconds / 1e6,
        (machine.thread_steps() - threads) as f64 / seconds / 1e6
    );
}
