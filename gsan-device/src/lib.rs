//! gsan's device side: the detector, and the layout that device and host share.
//!
//! `no_std`, no allocation, no panic path. The algorithm is generic over [`machine::Machine`]; the runtime that is
//! appended to instrumented PTX (`gsan-device/runtime`) is its nvptx instance behind the hooks' names, and the host
//! instance runs it in tests and benches.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]
#![cfg_attr(
    all(target_arch = "nvptx64", feature = "sanitize"),
    feature(stdarch_nvptx)
)]

#[cfg(any(test, feature = "host"))]
extern crate std;

pub mod layout;

pub mod block;
pub mod cell;
pub mod clock;
pub mod cluster;
pub mod copies;
pub mod dependent;
pub mod detector;
pub mod halves;
pub mod machine;
pub mod multicast;
pub mod mutants;
pub mod reference;
pub mod report;
pub mod row;
pub mod sampling;
pub mod tensor;
pub mod warps;
pub mod wide;

#[cfg(any(test, feature = "host"))]
pub mod host;
#[cfg(target_arch = "nvptx64")]
pub mod link;
#[cfg(all(target_arch = "nvptx64", feature = "sanitize"))]
pub mod nvptx;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
