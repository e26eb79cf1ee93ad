//! A kernel and its launch.

use crate::generated;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::Path;

/// A kernel, ready to be launched.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// What the results call it.
    pub name: String,
    /// Its place among all.
    pub number: usize,
    /// Its module's text.
    pub ptx: String,
    /// How it is launched.
    pub launch: Launch,
}

/// How a kernel is launched.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Its name in the module.
    pub kernel: String,
    /// Blocks.
    #[serde(default = "one")]
    pub grid: Vec<u32>,
    /// Threads per block.
    pub block: Vec<u32>,
    /// Blocks of a cluster.
    #[serde(default)]
    pub cluster: Vec<u32>,
    /// All blocks at once.
    #[serde(default)]
    pub cooperative: bool,
    /// Dynamic shared memory.
    #[serde(default)]
    pub shared: u32,
    /// Stack of a thread, where the default does not do.
    #[serde(default)]
    pub stack: u32,
    /// One word per parameter: see [`crate::data`].
    #[serde(default)]
    pub args: Vec<String>,
    /// Tensor maps that parameters name.
    #[serde(default)]
    pub map: Vec<Map>,
    /// Whether what it prints counts.
    #[serde(default)]
    pub prints: bool,
}

impl Launch {
    /// Of the kernel `k`, in one block.
    pub fn of_one_block(threads: u32, args: Vec<String>) -> Launch {
        Launch {
            kernel: "k".to_string(),
            grid: vec![1],
            block: vec![threads],
            cluster: Vec::new(),
            cooperative: false,
            shared: 0,
            stack: 0,
            args,
            map: Vec::new(),
            prints: false,
        }
    }
}

/// A tensor map.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// The tensor: a buffer's word.
    pub data: String,
    /// `CUtensorMapDataType`.
    pub ty: i32,
    /// Elements of each dimension.
    pub extents: Vec<u64>,
    /// Bytes between the elements of each dimension but the first.
    pub strides: Vec<u64>,
    /// Elements of a box.
    #[serde(rename = "box")]
    pub boxes: Vec<u32>,
    /// Every how many elements are taken; all ones without.
    #[serde(default)]
    pub steps: Vec<u32>,
    /// `CUtensorMapSwizzle`.
    #[serde(default)]
    pub swizzle: i32,
    /// `CUtensorMapFloatOOBfill`.
    #[serde(default)]
    pub fill: i32,
    /// Instead of a box: the windows of a convolution.
    #[serde(default)]
    pub windows: Option<Windows>,
}

/// What a map for `.im2col` has instead of a box.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// Where the window's first element may stand at least, in width, height, depth.
    pub lower: Vec<i32>,
    /// And how far it stays from the end.
    pub upper: Vec<i32>,
    /// Elements of a pixel.
    pub channels: u32,
    /// Pixels.
    pub pixels: u32,
}

fn one() -> Vec<u32> {
    vec![1]
}

#[derive(Deserialize)]
struct File {
    kernel: Vec<Entry>,
}

/// One launch of a kernel that several compilers' modules have.
#[derive(Deserialize)]
struct Entry {
    name: String,
    ptx: Vec<String>,
    #[serde(flatten)]
    launch: toml::Table,
}

/// Those of the list, then the generated ones.
pub fn all(folder: &Path) -> Result<Vec<Kernel>> {
    let path = folder.join("kernels.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let file: File = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
    let mut out = Vec::new();
    for entry in file.kernel {
        let launch: Launch = entry
            .launch
            .try_into()
            .with_context(|| entry.name.clone())?;
        for module in &entry.ptx {
            let path = folder.join("ptx").join(format!("{module}.ptx"));
            let ptx =
                std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
            out.push(Kernel {
                name: format!("{} ({module})", entry.name),
                number: 0,
                ptx: lowered(&ptx),
                launch: launch.clone(),
            });
        }
    }
    out.extend(generated::all());
    for (number, kernel) in out.iter_mut().enumerate() {
        kernel.number = number;
    }
    Ok(out)
}

/// A newer compiler's version number means nothing that a CUDA 13.0 driver does not know in these files.
fn lowered(ptx: &str) -> String {
    ptx.replacen(".version 9.4", ".version 9.0", 1)
}

/// Up to three numbers, the others 1.
pub fn dims(list: &[u32]) -> [u32; 3] {
    [0, 1, 2].map(|n| list.get(n).copied().unwrap_or(1))
}
