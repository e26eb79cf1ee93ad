//! The kernels that `gsan demo` runs: pairs out of `tests/`, with their sources, inside the program.

use crate::failure::{Failure, Result};
use crate::render::source::Sources;
use crate::scenario::model::{ModuleSource, Scenario};
use crate::scenario::parse;
use std::path::Path;

/// A racy kernel and its repaired twin.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// A short name.
    pub name: &'static str,
    /// The language of its source.
    pub language: &'static str,
    /// What is wrong with the racy one, and what the other does about it.
    pub about: &'static str,
    racy: &'static str,
    fixed: &'static str,
    ptx: &'static str,
    source_name: &'static str,
    source: &'static str,
}

macro_rules! pair {
    (rust $name:literal, $about:literal) => {
        Pair {
            name: $name,
            language: "Rust",
            about: $about,
            racy: include_str!(concat!("../../tests/scenarios/", $name, "_racy.toml")),
            fixed: include_str!(concat!("../../tests/scenarios/", $name, "_fixed.toml")),
            ptx: include_str!(concat!("../../tests/kernels/rust/ptx/", $name, ".ptx")),
            source_name: concat!("tests/kernels/rust/", $name, "/src/lib.rs"),
            source: include_str!(concat!("../../tests/kernels/rust/", $name, "/src/lib.rs")),
        }
    };
    (cuda $name:literal, $about:literal) => {
        Pair {
            name: $name,
            language: "CUDA C++",
            about: $about,
            racy: include_str!(concat!("../../tests/scenarios/", $name, "_racy.toml")),
            fixed: include_str!(concat!("../../tests/scenarios/", $name, "_fixed.toml")),
            ptx: include_str!(concat!("../../tests/kernels/cuda/ptx/", $name, ".ptx")),
            source_name: concat!("tests/kernels/cuda/", $name, ".cu"),
            source: include_str!(concat!("../../tests/kernels/cuda/", $name, ".cu")),
        }
    };
}

/// The pairs, in the order in which they run.
pub const PAIRS: [Pair; 6] = [
    pair!(rust "flag_handoff", "a block waits for a flag without acquiring what the flag announces"),
    pair!(rust "last_block", "the last block adds up partial sums that nothing ordered before its turn"),
    pair!(rust "histogram", "blocks count into shared bins with plain additions"),
    pair!(rust "grid_barrier", "a barrier over the grid that counts, but orders nothing"),
    pair!(rust "spin_lock", "a lock whose holder does not see what the one before it wrote"),
    pair!(cuda "compaction", "blocks reserve places in an output with a plain counter"),
];

impl Pair {
    /// One of the twins, ready to run: its module is the bundled one.
    pub fn scenario(&self, racy: bool) -> Result<Scenario> {
        let text = if racy { self.racy } else { self.fixed };
        let file = format!(
            "(bundled) {}_{}.toml",
            self.name,
            if racy { "racy" } else { "fixed" }
        );
        let mut scenario = parse::parse(Path::new(&file), text)?;
        for module in &mut scenario.modules {
            match &module.source {
                ModuleSource::File(path) if path.file_stem().is_some_and(|s| s == self.name) => {
                    module.name = format!("{}.ptx", self.name);
                    module.source = ModuleSource::Inline(self.ptx.to_string());
                }
                _ => {
                    return Err(Failure::input(format_args!(
                        "{file}: a module that is not bundled"
                    )));
                }
            }
        }
        Ok(scenario)
    }

    /// Finds the lines of its source wherever the program runs.
    pub fn sources(&self) -> Sources {
        Sources::new().bundled(self.source_name, self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_complete() {
        for pair in PAIRS {
            for racy in [true, false] {
                let scenario = pair.scenario(racy).unwrap();
                let expect = scenario.expect.as_ref().unwrap();
                assert_eq!(expect.races.is_empty(), !racy, "{}", pair.name);
                assert!(!scenario.steps.is_empty());
            }
        }
    }

    #[test]
    fn the_source_is_what_the_ptx_names() {
        for pair in PAIRS {
            assert!(pair.ptx.contains(pair.source_name), "{}", pair.name);
            let expect = pair.scenario(true).unwrap().expect.unwrap();
            for race in expect.races {
                let line = pair
                    .sources()
                    .line(pair.source_name, race.source_lines.as_ref().unwrap()[0]);
                assert!(line.is_some_and(|l| !l.trim().is_empty()), "{}", pair.name);
            }
        }
    }
}
