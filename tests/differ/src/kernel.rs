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
    kernel: Vec<Listed>,
}

/// As it stands in the file.
#[derive(Deserialize)]
struct Listed {
    name: String,
    #[serde(default)]
    ptx: Vec<String>,
    #[serde(flatten)]
    launch: toml::Table,
}

/// One launch of a kernel that several compilers' modules have.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The modules.
    pub ptx: Vec<String>,
    /// The launch.
    pub launch: Launch,
}

/// Which kernels run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Those whose results a GPU has computed, too.
    Differ,
    /// The corpus.
    Corpus,
}

impl List {
    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            List::Differ => "differ",
            List::Corpus => "corpus",
        }
    }

    /// The kernels of the list of that name.
    pub fn kernels(word: &str, folder: &Path) -> Result<Vec<Kernel>> {
        match word {
            "corpus" => crate::corpus::kernels(folder),
            _ => all(folder),
        }
    }
}

/// The entries of a file.
pub fn entries(path: &Path) -> Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let file: File = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
    let entries = file.kernel.into_iter().map(|listed| {
        let launch = listed.launch.try_into();
        Ok(Entry {
            launch: launch.with_context(|| listed.name.clone())?,
            name: listed.name,
            ptx: listed.ptx,
        })
    });
    entries.collect()
}

/// A compiler's module, as a driver takes it. `features/…` are gsan-sim's own tests in CUDA C++.
pub fn text(folder: &Path, module: &str) -> Result<String> {
    let path = match module.strip_prefix("features/") {
        Some(name) => {
            // Beside the folder that a link leads to.
            let ptx = folder.join("ptx");
            let ptx = ptx
                .canonicalize()
                .with_context(|| format!("{}", ptx.display()))?;
            ptx.join("../../../gsan-sim/tests/data/features")
                .join(format!("{name}.ptx"))
        }
        None => folder.join("ptx").join(format!("{module}.ptx")),
    };
    let ptx = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    Ok(defined(lowered(&ptx)))
}

/// Those of the list, then the generated ones.
pub fn all(folder: &Path) -> Result<Vec<Kernel>> {
    let mut out = Vec::new();
    for entry in entries(&folder.join("kernels.toml"))? {
        for module in &entry.ptx {
            out.push(Kernel {
                name: format!("{} ({module})", entry.name),
                number: 0,
                ptx: text(folder, module)?,
                launch: entry.launch.clone(),
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

/// Clang leaves this function of CUDA's headers undefined, and no driver loads its module: as the header has it.
const UNDEFINED: &str = "\
.extern .func  (.param .b32 func_retval0) __usAtomicCAS
(
\t.param .b64 __usAtomicCAS_param_0,
\t.param .b32 __usAtomicCAS_param_1,
\t.param .b32 __usAtomicCAS_param_2
)
;
";
const DEFINED: &str = "\
.func  (.param .b32 func_retval0) __usAtomicCAS
(
\t.param .b64 __usAtomicCAS_param_0,
\t.param .b32 __usAtomicCAS_param_1,
\t.param .b32 __usAtomicCAS_param_2
)
{ .reg .b16 %h<3>; .reg .b32 %r<3>; .reg .b64 %d; ld.param.u64 %d, [__usAtomicCAS_param_0];
ld.param.u32 %r1, [__usAtomicCAS_param_1]; ld.param.u32 %r2, [__usAtomicCAS_param_2]; cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2;
atom.cas.b16 %h0, [%d], %h1, %h2; cvt.u32.u16 %r0, %h0; st.param.b32 [func_retval0], %r0; ret; }
";

fn defined(ptx: String) -> String {
    ptx.replacen(UNDEFINED, DEFINED, 1)
}

/// Up to three numbers, the others 1.
pub fn dims(list: &[u32]) -> [u32; 3] {
    [0, 1, 2].map(|n| list.get(n).copied().unwrap_or(1))
}
