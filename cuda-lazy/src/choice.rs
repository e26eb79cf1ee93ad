//! Which driver answers: decided once, at the first call of any function or of [`backend`].

use crate::real::RealDriver;
use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Which driver to use. Without [`select`], the environment variable `GSAN_DEVICE` says it: `auto` (also if unset), `sim`
/// or `cuda` (anything after a `:` is left to others).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Choice {
    /// The real driver if it has a device, else the simulated one.
    #[default]
    Auto,
    /// The simulated driver.
    Sim,
    /// The real driver; without one every call answers `CUDA_ERROR_NO_DEVICE`.
    Cuda,
}

/// Which driver answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// The installed driver.
    Real {
        /// Where its library was found.
        path: String,
        /// Its CUDA version, as `cuDriverGetVersion` has it: 13000 is 13.0.
        version: i32,
    },
    /// gsan's simulated GPU.
    Simulated,
    /// None: [`Choice::Cuda`] was asked for and there is no driver or no device.
    Unavailable {
        /// What was tried and how it failed.
        reason: String,
    },
}

/// Why [`select`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The decision is made and can't be changed: handles of one driver mean nothing to another.
    #[error(
        "the driver was already chosen by an earlier CUDA call; call cuda_lazy::select before the first one"
    )]
    TooLate,
}

/// What the decision came to.
enum Driver {
    Real(RealDriver),
    Simulated {
        /// Why it is not the real one; none if the simulator was asked for.
        why: Option<String>,
    },
    Unavailable {
        reason: String,
    },
}

static SELECTED: Mutex<Option<Choice>> = Mutex::new(None);
static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Chooses the driver; wins over `GSAN_DEVICE`. The last call before the first CUDA call counts.
pub fn select(choice: Choice) -> Result<(), SelectError> {
    let mut selected = SELECTED.lock().unwrap_or_else(PoisonError::into_inner);
    if DRIVER.get().is_some() {
        return Err(SelectError::TooLate);
    }
    *selected = Some(choice);
    Ok(())
}

/// Which driver answers. Makes the decision if no call has done so yet.
pub fn backend() -> Backend {
    match driver() {
        Driver::Real(real) => Backend::Real {
            path: real.path().to_owned(),
            version: real.version(),
        },
        Driver::Simulated { .. } => Backend::Simulated,
        Driver::Unavailable { reason } => Backend::Unavailable {
            reason: reason.clone(),
        },
    }
}

/// Why no real driver is in use, if one was looked for.
pub fn why_not_real() -> Option<String> {
    match driver() {
        Driver::Real(_) => None,
        Driver::Simulated { why } => why.clone(),
        Driver::Unavailable { reason } => Some(reason.clone()),
    }
}

/// The simulator's last stop (trap, fault, deadlock, budget, something it can't do) in words; `None` on a real driver,
/// which keeps such things to itself, and while all goes well.
pub fn diagnosis() -> Option<crate::Diagnosis> {
    match DRIVER.get()? {
        Driver::Simulated { .. } => gsan_sim::driver::diagnosis(),
        _ => None,
    }
}

/// The address that calls of `name` go to. Never null.
pub(crate) fn target(name: &str) -> *const () {
    match driver() {
        Driver::Real(real) => real.symbol(name).unwrap_or(not_found as *const ()),
        Driver::Simulated { .. } => {
            gsan_sim::driver::symbol(name).unwrap_or(not_supported as *const ())
        }
        Driver::Unavailable { .. } => no_device as *const (),
    }
}

fn driver() -> &'static Driver {
    DRIVER.get_or_init(|| {
        // Held while deciding, so that a `select` at the same time either counts or is refused.
        let selected = SELECTED.lock().unwrap_or_else(PoisonError::into_inner);
        let choice = selected.or_else(|| from_environment(&std::env::var("GSAN_DEVICE").ok()?));
        match choice.unwrap_or_default() {
            Choice::Sim => Driver::Simulated { why: None },
            Choice::Auto => match RealDriver::open() {
                Ok(real) => Driver::Real(real),
                Err(error) => Driver::Simulated {
                    why: Some(error.to_string()),
                },
            },
            Choice::Cuda => match RealDriver::open() {
                Ok(real) => Driver::Real(real),
                Err(error) => Driver::Unavailable {
                    reason: error.to_string(),
                },
            },
        }
    })
}

/// An unknown word counts as unset: the program in front of this crate is the one to complain.
fn from_environment(value: &str) -> Option<Choice> {
    match value.split(':').next().unwrap_or_default() {
        word if word.eq_ignore_ascii_case("sim") => Some(Choice::Sim),
        word if word.eq_ignore_ascii_case("cuda") => Some(Choice::Cuda),
        word if word.eq_ignore_ascii_case("auto") => Some(Choice::Auto),
        _ => None,
    }
}

// The three answers below stand in for functions of any signature: they look at no argument, and every driver function
// returns a CUresult.

/// `CUDA_ERROR_NOT_SUPPORTED`: the simulated driver lacks this function.
extern "C" fn not_supported() -> c_int {
    801
}

/// `CUDA_ERROR_NOT_FOUND`: the installed driver lacks this function.
extern "C" fn not_found() -> c_int {
    500
}

/// `CUDA_ERROR_NO_DEVICE`.
extern "C" fn no_device() -> c_int {
    100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_a_choice() {
        assert_eq!(from_environment("sim"), Some(Choice::Sim));
        assert_eq!(from_environment("CUDA:1"), Some(Choice::Cuda));
        assert_eq!(from_environment("auto"), Some(Choice::Auto));
        assert_eq!(from_environment(""), None);
        assert_eq!(from_environment("gpu"), None);
    }
}
