//! Writes docs/unsupported.md: what is not checked, or only partly, in the whole corpus.
//! `cargo run -p gsan-ptx --example unsupported [CORPUS [OUT]]`, from the repository's root.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Forms, and where the corpus has them, by reason.
type Forms = BTreeMap<String, (u32, String)>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let corpus = args.next().unwrap_or("../shared/corpus".to_string());
    let out = args.next().unwrap_or("docs/unsupported.md".to_string());
    let runtime = include_str!("../tests/data/stub_runtime.ptx");
    let mut files = Vec::new();
    collect(Path::new(&corpus), &mut files)?;
    files.sort();
    let mut reasons: BTreeMap<(bool, String), Forms> = BTreeMap::new();
    let (mut sites, mut listed, mut left_out) = (0, 0, [0u64; 7]);
    let (mut barriers, mut syncs) = (0, 0);
    for path in &files {
        let text = std::fs::read_to_string(path)?;
        let name = path.strip_prefix(&corpus)?.display().to_string();
        // As the host has it.
        let options = gsan_ptx::Options {
            apart: true,
            ..gsan_ptx::Options::new(runtime, &name)
        };
        let done = gsan_ptx::instrument(&text, &options)?;
        sites += done.sites.len();
        let s = done.stats;
        barriers += s.barrier_hooks;
        syncs += s.block_syncs;
        for (sum, n) in left_out.iter_mut().zip([
            s.shared,
            s.local,
            s.param,
            s.constant,
            s.repeated,
            s.private_generic,
            s.instructions,
        ]) {
            *sum += n;
        }
        for u in &done.unsupported {
            listed += 1;
            let opcode = u
                .text
                .split_whitespace()
                .find(|w| !w.starts_with('@'))
                .unwrap_or("")
                .trim_end_matches(';');
            let forms = reasons.entry((u.partly, u.why.clone())).or_default();
            let form = forms
                .entry(opcode.to_string())
                .or_insert((0, format!("{name}:{}", u.ptx_line)));
            form.0 += 1;
        }
    }
    let [
        shared,
        local,
        param,
        constant,
        repeated,
        private,
        instructions,
    ] = left_out;
    let mut md = format!(
        "# What is not checked, or only approximated\n\n\
         Made by `cargo run -p gsan-ptx --example unsupported` from {} files of nvcc, Triton, rustc and clang;\n\
         `gsan-ptx/tests/unsupported.rs` fails where this page is out of date. A user sees the same lines, for their own module, on stderr\n\
         and in the report's `unsupported`.\n\n\
         {sites} accesses have hooks, and so have {barriers} barriers and {syncs} other synchronisations inside a block; {listed} instructions are listed below.\n\
         Of {instructions} instructions these are not checked and need not be:\n\
         {shared} in shared, {local} in local, {param} in parameter, {constant} in constant memory, {private} generic ones that are provably the\n\
         thread's own stack or the block's shared memory, and {repeated} that repeat a check of the same straight-line code.\n",
        files.len()
    );
    for (partly, title) in [(false, "Not checked"), (true, "Approximated")] {
        let _ = writeln!(md, "\n## {title}");
        for ((_, why), forms) in reasons.iter().filter(|(key, _)| key.0 == partly) {
            let _ = write!(
                md,
                "\n### {why}\n\n| form | how often | first |\n|---|---|---|\n"
            );
            for (form, (count, first)) in forms {
                let _ = writeln!(md, "| `{form}` | {count} | {first} |");
            }
        }
    }
    md.push_str(BEYOND);
    std::fs::write(&out, md)?;
    eprintln!("{out}: {listed} instructions of {} files", files.len());
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "ptx") {
            files.push(path);
        }
    }
    Ok(())
}

/// What the ISA has besides, and the corpus has not. `tests/unsupported.rs` holds the two tables to what is really listed.
const BEYOND: &str = "
## Beyond the corpus

These forms of PTX ISA 9.0 touch global memory, or may, and are listed as **not checked** wherever they occur:

| form | why |
|---|---|
| bulk copies with `.im2col::w`, `.im2col::w::128` or `.ignore_oob` | which bytes they touch is said in a way that is not followed (ptxas 13.0 takes the first for sm_100, the second for sm_100a, both with two offsets, and the third nowhere) |
| bulk copies whose size or coordinates are in other registers than 32-bit ones, whose offsets (`.im2col`) or byte mask (`.cp_mask`) in other than 16-bit ones, or whose map in another than a 64-bit one | what they touch is not understood |
| `cp.async` whose size is no constant, or whose amount is in an operand of another type than a 32-bit register or a predicate | how much it reads is unknown |
| `st.bulk` with a generic address | a bulk store; without a state space it may go anywhere |
| `multimem.cp.*` (PTX 9.1, which ptxas 13.0 doesn't take) | the copy engine writes to the memory of several devices |
| `tex`, `tld4`, `suld`, `sust`, `sured` | the address comes from a texture or surface |
| `wmma.load`, `wmma.store` with `.global` or a generic address | which thread accesses which element is not specified |
| `tensormap.replace`, `tensormap.cp_fenceproxy` with `.global` or a generic address | they change a tensor map, which nothing else reads as data |
| `.global` variables inside of a function | the host can't ask for their address |
| `cudaLaunchDevice…`, `__cudaCDP2…` (kernels and copies that kernels start) | the host makes the launch records |
| a call of `malloc`, `free` | memory of the device's heap has no shadow |
| a call of `vprintf` | what it reads of its arguments is not seen |
| a call of any other function that the module only declares | it is not there (modules that are linked by gsan are instrumented each) |
| an unknown instruction with an operand in brackets | it may be an access |

These are **approximated**: the access is checked, or the order followed, but not to the letter, and the line says in what:

| form | what is approximated |
|---|---|
| `atom.cas` whose result goes to `_` | whether it wrote: it is checked as one that did not |
| `st.async`, `red.async` with `.global` or a generic address, and no mbarrier (`.mmio.release`, sm_100) | they are carried out when issued |
| `bar`, `barrier` with operands that PTX does not have | races between threads of the block are not looked for, in the kernel or, from a function, in the module |
| reads of `%total_smem_size`, `%aggr_smem_size`; of `%dynamic_smem_size` by other instructions than `mov` and `cvt`, or as a part of a vector, or where a kernel can have no hooks | the number is larger under gsan |

Where the runtime is merged into the module, which `gsan instrument` without `--runtime` does, three more (`docs/instrumentation.md`): a kernel with a bound on its registers and `setmaxnreg`, with
all that it accesses and calls, is not checked, because ptxas assembles no calls in it; barriers in another kernel with `setmaxnreg`, and in modules that mention
clusters its waits for mbarriers, are not followed.

With a runtime from before the hooks for them, `barrier.cluster.*` and mbarriers at cluster scope are listed as approximated (findings between
blocks of one cluster may be wrong), and `griddepcontrol`, or its `launch_dependents`, too. With this one they are followed; a cluster counts as one place where its blocks release
and acquire, which can hide a race between them and makes none up.

A module with a vector of eight elements that are not of 32 bits (`ld.global.v8.u8`) is **refused**: PTX has no such form (`.v8` came with version 8.8, for 256 bits), no
compiler writes it, and ptxas 13.0, which takes it in every version, crashes on it where the kernel has calls (on `.v8.b16` everywhere).

No access to global memory and so not listed: `prefetch`, `prefetchu`, `applypriority`, `createpolicy` (hints), `ldmatrix`, `stmatrix`,
`mbarrier`, `clusterlaunchcontrol` (shared memory only), `mma`, `wgmma`, `tcgen05` (registers, shared and tensor memory).
";
