//! What the tests of this folder share: the simulated driver, fresh, for one test at a time.

#![allow(dead_code)]

use cust::context::Context;
use cust::device::Device;
use gsan_sim::Config;
use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A fresh simulated driver with a context on its first device. Others wait until this is dropped.
pub struct Simulated {
    pub context: Option<Context>,
    _alone: MutexGuard<'static, ()>,
}

impl Simulated {
    pub fn new() -> Simulated {
        Simulated::with(Config::default())
    }

    pub fn with(config: Config) -> Simulated {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // The first test chooses; later ones find the choice made, and it is the same. A test's answers can be had from a GPU,
        // too, for comparison: `GSAN_TEST_DEVICE=cuda`.
        let gpu = std::env::var_os("GSAN_TEST_DEVICE").is_some_and(|device| device == "cuda");
        let _ = cuda_lazy::select(match gpu {
            true => cuda_lazy::Choice::Cuda,
            false => cuda_lazy::Choice::Sim,
        });
        let simulated = cuda_lazy::backend() == cuda_lazy::Backend::Simulated;
        assert_ne!(simulated, gpu);
        gsan_sim::driver::reset();
        gsan_sim::driver::configure(config);
        cust::init(cust::CudaFlags::empty()).expect("cuInit");
        let context = Context::new(Device::get_device(0).expect("a device")).expect("a context");
        Simulated {
            context: Some(context),
            _alone: alone,
        }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.context = None;
        gsan_sim::driver::reset();
    }
}

/// A configuration with some seed.
pub fn seeded(seed: u64) -> Config {
    let mut config = Config::default();
    config.seed = seed;
    config
}

/// The number of a raw answer.
pub fn code(result: cust_raw::CUresult) -> i32 {
    result as i32
}
