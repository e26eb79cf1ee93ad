//! The subcommands. Each returns the exit code.

pub mod demo;
pub mod doctor;
pub mod inspect;
pub mod instrument;
pub mod report;
pub mod run;
