//! The detector's compiled runtime loads, every instruction of it.

mod common;

use common::Bench;

#[test]
fn the_runtime_appended_to_a_kernel_has_no_instruction_that_the_machine_lacks() {
    for format in ["wide", "reference"] {
        all_of(format);
    }
}

fn all_of(format: &str) {
    let path = format!(
        "{}/../gsan-device/ptx/runtime_{format}.ptx",
        env!("CARGO_MANIFEST_DIR")
    );
    let runtime = std::fs::read_to_string(path).unwrap();
    let body: String = runtime
        .lines()
        .filter(|l| {
            !l.starts_with(".version")
                && !l.starts_with(".target")
                && !l.starts_with(".address_size")
        })
        .map(|l| format!("{l}\n"))
        .collect();
    let mut b = Bench::new(&format!("{body}\n.visible .entry k() {{ ret; }}"));
    assert!(
        b.machine.unsupported(b.module).is_empty(),
        "{:?}",
        b.machine.unsupported(b.module)
    );
    b.run("k", 1, 32, &[]);
}
