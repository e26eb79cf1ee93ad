//! The simulated GPU as a `libcuda.so.1`: the driver's C functions, exported, for programs in any language that call the
//! driver API and know nothing of gsan.
//!
//! ```text
//! cargo build --release -p sim-libcuda
//! mkdir -p simulated && ln -sf "$PWD/target/release/libgsan_cuda.so" simulated/libcuda.so.1
//! LD_LIBRARY_PATH=simulated ./program
//! ```
//!
//! The functions are cuda-lazy's trampolines. A function that the simulator lacks answers `CUDA_ERROR_NOT_SUPPORTED`, one
//! that nobody knows is not found by `cuGetProcAddress`. `GSAN_SIM_…` in the environment set the GPU's shape, seed, memory
//! model and schedule (`gsan_sim::driver::default_config` lists them).

use cuda_lazy::{Choice, select};

/// Runs when the library is loaded: looking for a driver would find this very library.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn simulate() {
        // It cannot fail: the simulator is always there, and nothing has chosen before.
        let _ = select(Choice::Sim);
    }
    simulate
};
