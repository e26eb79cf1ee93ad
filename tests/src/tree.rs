//! Where things lie.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The root of what is tested: the repository, or a tree with PTX that another compiler made (`cargo xtask test` sets
/// `GSAN_TEST_TREE` then).
pub fn tree() -> PathBuf {
    std::env::var_os("GSAN_TEST_TREE").map_or_else(repository, PathBuf::from)
}

/// The folder of scenario files.
pub fn scenarios() -> PathBuf {
    tree().join("tests/scenarios")
}

/// The folder of kernels: `rust`, `cuda`, `ptx`.
pub fn kernels() -> PathBuf {
    tree().join("tests/kernels")
}
