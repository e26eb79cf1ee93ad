//! `cargo xtask bench`

use crate::process::{self, Result, cargo};

/// Runs the criterion benches; what follows goes to them.
pub fn run(rest: &[&str]) -> Result {
    process::run(
        cargo()
            .args(["bench", "--package", "gsan-bench"])
            .args(rest),
    )
}
