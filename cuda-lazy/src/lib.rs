//! The CUDA driver API without a CUDA at build time, or even at run time.
//!
//! This crate defines the `cu*` symbols that cust (through cust_raw) links to. At the first call each one finds its
//! target: in the installed driver, `libcuda.so.1`, if that has a device; otherwise in [`gsan_sim`]'s simulated driver. So
//! one binary runs with and without a GPU. `GSAN_DEVICE=sim|cuda|auto` or [`select`] override the choice.
//!
//! # Linking
//! A crate that uses cust depends on this one and says `use cuda_lazy as _;` (cargo drops a dependency that no source
//! names). cust_raw also wants `-lcuda`: `stub/lib64/libcuda.a` is an empty archive of that name, found through
//! `CUDA_LIBRARY_PATH` in `.cargo/config.toml`. A real `libcuda.so` that the linker finds first does no harm either: this
//! crate depends on cust_raw, so its symbols come first on the linker's command line, nothing is left for the library to
//! resolve, and `--as-needed` drops it (`tests/linking.rs`).
//!
//! # Functions that a driver lacks
//! answer `CUDA_ERROR_NOT_SUPPORTED` (simulated) or `CUDA_ERROR_NOT_FOUND` (installed driver) instead of ending the process.

mod choice;
pub mod ext;
mod functions;
mod real;
mod trampoline;

pub use choice::{Backend, Choice, SelectError, backend, diagnosis, select, why_not_real};
pub use gsan_sim::driver::{Diagnosis, StopKind};

// Only the order on the linker's command line comes of it; see above.
use cust_raw as _;
