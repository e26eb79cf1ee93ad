//! The simulator runs every kernel to its end.

use std::path::Path;
use std::process::Command;

fn differ(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gsan-differ"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("GSAN_DEVICE", "sim")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    (output.status.success(), format!("{said}\n{complained}"))
}

#[test]
fn every_kernel_runs_to_its_end() {
    let file = std::env::temp_dir().join(format!("gsan-differ-test-{}", std::process::id()));
    let (good, said) = differ(&["record", &file.to_string_lossy()]);
    assert!(good, "{said}");
    let text = std::fs::read_to_string(&file).expect("it is written");
    let _ = std::fs::remove_file(&file);
    let mut name = "";
    let mut ran = 0;
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("kernel", n)) => name = n,
            Some(("end", "0")) => ran += 1,
            // Rust's panics end in a trap.
            Some(("end", end)) => assert!(
                ["overflow", "out of range", "ends badly"]
                    .iter()
                    .any(|w| name.contains(w)),
                "{name} ended with {end}: {said}"
            ),
            _ => {}
        }
    }
    assert!(ran > 1400, "{ran} kernels\n{said}");
}
