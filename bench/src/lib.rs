//! What gsan costs: the workloads of the benchmark program and of the criterion benches.
//!
//! * [`workload`]: the memory patterns that are timed, at any size.
//! * [`measure`]: times them, plain and instrumented, through gsan-host.
//! * [`table`]: prints what was measured.
//! * [`large_ptx`]: a PTX file of any size.

pub mod large_ptx;
pub mod measure;
pub mod table;
pub mod workload;
