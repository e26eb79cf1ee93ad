//! Why the program ends early: one line for the user and an exit code.

use std::fmt::Display;
use std::path::Path;

/// Exit codes, as the command line's specification fixes them.
pub mod exit {
    /// No race; with `[expect]`: everything holds.
    pub const CLEAN: u8 = 0;
    /// A race; with `[expect]`: something differs.
    pub const RACE: u8 = 1;
    /// Bad usage or input.
    pub const INPUT: u8 = 2;
    /// The run itself failed.
    pub const RUN: u8 = 3;
}

/// An error on its way to `main`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// One line, without `error:`.
    pub message: String,
}

impl Failure {
    /// Bad usage or input.
    pub fn input(message: impl Display) -> Failure {
        Failure {
            code: exit::INPUT,
            message: message.to_string(),
        }
    }

    /// Bad input at a line of a file.
    pub fn at(file: &Path, line: u32, message: impl Display) -> Failure {
        Failure::input(format_args!("{}:{line}: {message}", file.display()))
    }

    /// The run failed.
    pub fn run(message: impl Display) -> Failure {
        Failure {
            code: exit::RUN,
            message: message.to_string(),
        }
    }
}

/// What most functions here return.
pub type Result<T> = std::result::Result<T, Failure>;
