//! Running the program.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The repository's folder, where the program runs.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Exit code, standard output, standard error.
pub fn gsan<S: AsRef<OsStr>>(args: &[S]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gsan"))
        .args(args)
        .current_dir(repository())
        .env("GSAN_DEVICE", "sim")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output.status.code().expect("ended by a signal"), out, err)
}
