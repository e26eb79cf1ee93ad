//! The `gsan` program: command line, scenarios, and the report as text, JSON and SARIF.

pub mod args;
pub mod element;
pub mod failure;
pub mod names;
pub mod render;
pub mod scenario;
