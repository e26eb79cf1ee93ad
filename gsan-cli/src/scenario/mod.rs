//! Scenarios: what to run and what must come of it.
//!
//! `gsan run KERNEL.ptx …` and `gsan run SCENARIO.toml` both become a [`model::Scenario`]; one path runs it.

pub mod expect;
pub mod issue;
pub mod model;
pub mod one_kernel;
pub mod parse;
mod raw;
pub mod run;
