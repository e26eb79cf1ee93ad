//! Why the program ends early: one line for the user, the place in their file, and an exit code.

use gsan_ptx::excerpt::excerpt;
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
    /// The line of the input that is meant, with a caret; empty where there is none.
    pub excerpt: String,
}

impl Failure {
    /// Bad usage or input.
    pub fn input(message: impl Display) -> Failure {
        Failure {
            code: exit::INPUT,
            message: message.to_string(),
            excerpt: String::new(),
        }
    }

    /// Bad input at a place of a file's text: `FILE:LINE:COLUMN: …`, then the line with a caret. The column, from 1, is in bytes.
    pub fn at(file: &Path, text: &str, (line, column): (usize, usize), what: impl Display) -> Self {
        Failure {
            excerpt: excerpt(text, line, column),
            ..Failure::input(format_args!("{}:{line}:{column}: {what}", file.display()))
        }
    }

    /// The run failed.
    pub fn run(message: impl Display) -> Failure {
        Failure {
            code: exit::RUN,
            message: message.to_string(),
            excerpt: String::new(),
        }
    }
}

/// What most functions here return.
pub type Result<T> = std::result::Result<T, Failure>;
