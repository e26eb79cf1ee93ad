//! The passes for particular operators, and the pipeline of all.

pub mod addr;
pub mod atomic;
pub mod hccl;
mod pipeline;
pub mod small;
pub mod subgraph;

pub use pipeline::{Stage, run};
