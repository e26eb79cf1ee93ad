//! The `gsan` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gsan_cli::main())
}
