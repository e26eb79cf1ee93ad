//! The shadow cells' formats, and the build of the runtime that goes with each.

use crate::error::{Error, Result};
use gsan_device::layout::{ShadowCell, WORD, WideCell};
use std::borrow::Cow;
use std::path::PathBuf;

/// How much a word's shadow keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CellFormat {
    /// Four accesses with their bytes, thread and line, in 64 bytes.
    #[default]
    Wide,
    /// The classic GSan's four sampled readers and last writer, in 24 bytes: it can tell neither the bytes of a word nor
    /// the lines of earlier accesses apart.
    Reference,
}

impl CellFormat {
    /// Bytes of a cell; one covers [`WORD`] bytes of user memory.
    pub const fn cell_bytes(self) -> u64 {
        match self {
            CellFormat::Wide => size_of::<WideCell>() as u64,
            CellFormat::Reference => size_of::<ShadowCell>() as u64,
        }
    }

    /// Bytes of shadow per byte of user memory.
    pub(crate) const fn factor(self) -> u64 {
        self.cell_bytes() / WORD
    }

    /// Its name on the command line and in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            CellFormat::Wide => "wide",
            CellFormat::Reference => "reference",
        }
    }

    /// The runtime's PTX that this program carries.
    pub const fn built_in_runtime(self) -> &'static str {
        match self {
            CellFormat::Wide => include_str!("../../gsan-device/ptx/runtime_wide.ptx"),
            CellFormat::Reference => include_str!("../../gsan-device/ptx/runtime_reference.ptx"),
        }
    }

    /// The runtime that sessions append: the one that this program carries, or, from the folder that the environment variable
    /// `GSAN_RUNTIME_PTX` names, a freshly built one of the same file name.
    pub fn runtime(self) -> Result<Cow<'static, str>> {
        let Some(folder) = std::env::var_os(RUNTIME_VARIABLE).filter(|p| !p.is_empty()) else {
            return Ok(Cow::Borrowed(self.built_in_runtime()));
        };
        let path = PathBuf::from(folder).join(format!("runtime_{}.ptx", self.name()));
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(e) => Err(Error::Configuration(format!(
                "{RUNTIME_VARIABLE}: {} cannot be read: {e}; unset the variable to use the runtime of this program",
                path.display()
            ))),
        }
    }
}

/// A runtime whose devices share the shadow, and each other's clocks: what it does there reaches the whole system.
/// (One device has no use for that, and pays for it.)
pub(crate) fn for_several_devices(runtime: &str) -> String {
    runtime.replace(".gpu.", ".sys.").replace(".gpu;", ".sys;")
}

/// Names a folder with runtimes to use instead of the built-in ones, so that freshly built ones can be tested.
const RUNTIME_VARIABLE: &str = "GSAN_RUNTIME_PTX";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_devices_see_all_that_the_runtime_does() {
        for format in [CellFormat::Wide, CellFormat::Reference] {
            let one = format.built_in_runtime();
            let several = for_several_devices(one);
            // Nothing else of it changes, and no operation keeps the narrower scope.
            assert_eq!(several.len(), one.len());
            assert!(one.contains(".gpu.") && !several.contains(".gpu"));
        }
    }
}
