//! A simulated GPU: a PTX machine (`machine`) with the CUDA driver API in front of it (`driver`).
//!
//! The machine knows nothing of streams, the driver nothing of instructions. Work runs when the host waits, queries or
//! reads; the same seed gives the same run, bit for bit.

pub mod config;
pub mod driver;
pub mod machine;

pub use config::{Config, ExitedWarps, MemoryModel, Schedule};
