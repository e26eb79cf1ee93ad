//! Parses the named PTX files and says how long each takes: `cargo run --release -p gsan-ptx --example parse_files -- X.ptx`.
use std::time::Instant;

fn main() {
    let mut failed = false;
    for name in std::env::args().skip(1) {
        let bytes = match std::fs::read(&name) {
            Ok(bytes) => bytes,
            Err(e) => {
                eprintln!("{name}: {e}");
                failed = true;
                continue;
            }
        };
        let start = Instant::now();
        match gsan_ptx::parse_bytes(&bytes) {
            Ok(module) => {
                let seconds = start.elapsed().as_secs_f64();
                println!(
                    "{name}: {} items, {:.1} MB/s",
                    module.items.len(),
                    bytes.len() as f64 / 1e6 / seconds
                );
            }
            Err(e) => {
                eprint!("{}", e.render(&name, &String::from_utf8_lossy(&bytes)));
                failed = true;
            }
        }
    }
    std::process::exit(i32::from(failed));
}
