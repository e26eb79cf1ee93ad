//! The list of kernels.

use crate::data::Data;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A kernel and how it is launched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// What the table calls it.
    pub name: String,
    /// Its module, relative to the list.
    pub ptx: PathBuf,
    /// Its name in the module.
    pub kernel: String,
    /// Blocks.
    pub grid: Vec<u32>,
    /// Threads per block.
    pub block: Vec<u32>,
    /// Dynamic shared memory.
    #[serde(default)]
    pub shared: u32,
    /// One word per parameter: see [`Data`].
    pub args: Vec<String>,
    /// It is expected to be racy.
    #[serde(default)]
    pub races: bool,
    /// What is different on the simulator.
    #[serde(default)]
    pub sim: Sim,
    /// Why it does not run there.
    #[serde(default)]
    pub why: String,
}

/// What is different on the simulator.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Sim {
    /// `false`: it can't run it.
    Runs(bool),
    /// A smaller launch.
    Smaller {
        /// Blocks.
        grid: Option<Vec<u32>>,
        /// The arguments.
        args: Option<Vec<String>>,
    },
}

impl Default for Sim {
    fn default() -> Sim {
        Sim::Runs(true)
    }
}

/// A launch.
pub struct Shape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared: u32,
    /// The arguments.
    pub args: Vec<String>,
}

impl Shape {
    /// The buffers' contents.
    pub fn data(&self) -> Result<Vec<Data>> {
        let mut list = Vec::new();
        for arg in &self.args {
            if Data::scalar(arg)?.is_none() {
                list.push(Data::parse(arg)?);
            }
        }
        Ok(list)
    }
}

impl Kernel {
    /// How it is launched on this device; `None` if it can't be.
    pub fn shape(&self, simulated: bool) -> Option<Shape> {
        let (mut grid, mut args) = (&self.grid, &self.args);
        if simulated {
            match &self.sim {
                Sim::Runs(false) => return None,
                Sim::Runs(true) => {}
                Sim::Smaller { grid: g, args: a } => {
                    grid = g.as_ref().unwrap_or(grid);
                    args = a.as_ref().unwrap_or(args);
                }
            }
        }
        Some(Shape {
            grid: dims(grid),
            block: dims(&self.block),
            shared: self.shared,
            args: args.clone(),
        })
    }
}

fn dims(list: &[u32]) -> [u32; 3] {
    let at = |n: usize| list.get(n).copied().unwrap_or(1);
    [at(0), at(1), at(2)]
}

#[derive(Deserialize)]
struct File {
    kernel: Vec<Kernel>,
}

/// Reads the list.
pub fn read(path: &Path) -> Result<Vec<Kernel>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let mut file: File = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    for kernel in &mut file.kernel {
        kernel.ptx = folder.join(&kernel.ptx);
    }
    Ok(file.kernel)
}
