//! The installed driver.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::c_int;

/// The driver's library has this name everywhere: it comes with the kernel driver, not with a toolkit.
const LIBRARY: &str = "libcuda.so.1";

/// Why the installed driver can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RealDriverError {
    #[error("no NVIDIA driver: {0}; install the driver, or use GSAN_DEVICE=sim")]
    NotInstalled(libloading::Error),
    #[error("{LIBRARY} lacks {0}; it is no CUDA driver")]
    NotADriver(&'static str),
    #[error("the NVIDIA driver answers {code} to {call}; see nvidia-smi, or use GSAN_DEVICE=sim")]
    Refused { call: &'static str, code: c_int },
    #[error(
        "the NVIDIA driver has no device; see nvidia-smi and CUDA_VISIBLE_DEVICES, or use GSAN_DEVICE=sim"
    )]
    NoDevice,
}

/// An initialised driver with at least one device.
pub(crate) struct RealDriver {
    /// Lives as long as the process: trampolines jump into it.
    library: Library,
    path: String,
    version: i32,
}

impl RealDriver {
    /// Loads and initialises it.
    pub(crate) fn open() -> Result<RealDriver, RealDriverError> {
        // SAFETY: the library's constructors are the vendor's; a program linked to it would run them likewise.
        let library = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_LOCAL) }
            .map_err(RealDriverError::NotInstalled)?;
        let mut driver = RealDriver {
            library,
            path: String::new(),
            version: 0,
        };
        driver.path = loaded_path().unwrap_or_else(|| LIBRARY.to_owned());

        let init: extern "C" fn(u32) -> c_int = driver.function("cuInit")?;
        check("cuInit", init(0))?;
        let get_count: extern "C" fn(&mut c_int) -> c_int = driver.function("cuDeviceGetCount")?;
        let mut devices = 0;
        check("cuDeviceGetCount", get_count(&mut devices))?;
        if devices < 1 {
            return Err(RealDriverError::NoDevice);
        }
        let get_version: extern "C" fn(&mut c_int) -> c_int =
            driver.function("cuDriverGetVersion")?;
        check("cuDriverGetVersion", get_version(&mut driver.version))?;
        Ok(driver)
    }

    /// The function's address, under exactly this name.
    pub(crate) fn symbol(&self, name: &str) -> Option<*const ()> {
        // SAFETY: only the address is taken; nothing is called or read through it here.
        let symbol = unsafe { self.library.get::<*const ()>(name.as_bytes()) }.ok()?;
        let address = symbol.into_raw() as *const ();
        (!address.is_null()).then_some(address)
    }

    /// Where the library was found.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// As `cuDriverGetVersion` answers.
    pub(crate) fn version(&self) -> i32 {
        self.version
    }

    /// One of the few functions that the decision itself needs, as a pointer of its type `F`.
    fn function<F: Copy>(&self, name: &'static str) -> Result<F, RealDriverError> {
        const { assert!(size_of::<F>() == size_of::<*const ()>()) };
        let address = self.symbol(name).ok_or(RealDriverError::NotADriver(name))?;
        // SAFETY: F is a function pointer of the documented signature at each of the three uses above, the address is
        // that function's and not null.
        Ok(unsafe { core::mem::transmute_copy::<*const (), F>(&address) })
    }
}

fn check(call: &'static str, code: c_int) -> Result<(), RealDriverError> {
    match code {
        0 => Ok(()),
        100 => Err(RealDriverError::NoDevice),
        code => Err(RealDriverError::Refused { call, code }),
    }
}

/// The file behind the name, from the process's own map.
fn loaded_path() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("/libcuda.so"))?;
    Some(line[line.find('/')?..].to_owned())
}
