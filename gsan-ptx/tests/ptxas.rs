//! The real assembler takes what the instrumenter writes. Without ptxas these tests say that they were skipped.

mod common;

use common::{STUB, kernel};
use gsan_ptx::{Instrumented, Options, RuntimeNeeds, instrument};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// `GSAN_PTXAS`, the path, or where this project's machines have it.
fn ptxas(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("GSAN_PTXAS").map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|p| p.join("ptxas"));
    let known = [
        PathBuf::from("/opt/cu130/nvidia/cu13/bin/ptxas"),
        PathBuf::from("/usr/local/cuda/bin/ptxas"),
    ];
    let found = named
        .into_iter()
        .chain(in_path)
        .chain(known)
        .find(|p| p.is_file());
    if found.is_none() {
        eprintln!(
            "SKIPPED {test}: no ptxas (set GSAN_PTXAS, or `pip install --no-deps nvidia-cuda-nvcc==13.0.88`)"
        );
    }
    found
}

/// Assembles under a limit of time and memory: a call in the wrong loop has made ptxas run away. The time is the processor's, so that
/// a busy machine fails no test; the wait has a limit too, for a process that hangs.
fn assemble(ptxas: &Path, name: &str, text: &str) -> Result<(), String> {
    let target = text
        .lines()
        .find_map(|l| l.strip_prefix(".target "))
        .unwrap();
    let target = target.split([',', ' ']).next().unwrap();
    // Tests of this process run beside each other, some with files of the same names.
    static FILES: AtomicU32 = AtomicU32::new(0);
    let n = FILES.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("gsan-ptx-{}-{n}-{name}", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let mut child = Command::new("sh")
        .arg("-c")
        .arg("ulimit -v 8000000; ulimit -t 150; exec \"$0\" -arch=\"$1\" \"$2\" -o /dev/null")
        .args([ptxas.as_os_str(), target.as_ref(), file.as_os_str()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let result = loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut message = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                std::io::Read::read_to_string(&mut stderr, &mut message).unwrap();
            }
            break if status.success() {
                Ok(())
            } else {
                Err(format!("{status}: {message}"))
            };
        }
        if started.elapsed() > Duration::from_secs(900) {
            child.kill().unwrap();
            child.wait().unwrap();
            break Err("no end after 15 minutes".to_string());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    std::fs::remove_file(&file).unwrap();
    result.map_err(|e| format!("{name}: {e}"))
}

/// Files that ptxas refuses as they are, and why.
const REFUSED: [(&str, &str); 2] = [("aranges", "Parsing error"), ("clang", "__usAtomicCAS'")];

fn check(ptxas: &Path, files: Vec<(String, String)>, runtime: &str) {
    let mut failures = Vec::new();
    for (path, text) in files {
        let name = path.rsplit(['/']).next().unwrap().to_string();
        // Triton 3.9 writes a version that is newer than this ptxas; nothing in these files needs it.
        let text = text.replace(".version 9.4", ".version 9.0");
        let result = instrument(&text, &Options::new(runtime, &path))
            .unwrap_or_else(|e| panic!("{path}: {e}"));
        let assembled = assemble(ptxas, &name, &result.text);
        let refused = REFUSED.iter().find(|(part, _)| {
            path.contains(part) && (*part != "clang" || name.contains("classic_atomics"))
        });
        match (assembled, refused) {
            (Ok(()), None) => {}
            (Err(message), Some((_, why))) if message.contains(why) => {}
            (Err(message), _) => failures.push(message),
            (Ok(()), Some(_)) => failures.push(format!(
                "{path} assembles: take it off the list of refused files"
            )),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_corpus_assembles_with_the_stub() {
    let Some(ptxas) = ptxas("the_corpus_assembles_with_the_stub") else {
        return;
    };
    match common::whole_corpus("the_corpus_assembles_with_the_stub") {
        Some(files) => check(&ptxas, files, STUB),
        None => check(&ptxas, common::selection(), STUB),
    }
}

/// The detector that is checked in; says so where there is none.
fn real_runtime(test: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gsan-device/ptx/runtime_wide.ptx");
    let runtime = std::fs::read_to_string(&path).ok();
    if runtime.is_none() {
        eprintln!("SKIPPED {test}: {} is not there", path.display());
    }
    runtime
}

/// With the runtime in the module, which ptxas then copies for each kernel.
#[test]
fn some_files_assemble_with_the_real_runtime() {
    let test = "some_files_assemble_with_the_real_runtime";
    let (Some(ptxas), Some(runtime)) = (ptxas(test), real_runtime(test)) else {
        return;
    };
    let mut files = common::selection();
    let wanted = ["rust_message.sm90.dwarf", "cuda_cub_scan", "gluon_ws"];
    files.retain(|(name, _)| wanted.iter().any(|w| name.contains(w)));
    assert_eq!(files.len(), wanted.len());
    check(&ptxas, files, &runtime);
}

/// With the runtime beside it: every file for its own target, and no kernel is left out.
#[test]
fn the_selection_links_with_the_real_runtime() {
    let test = "the_selection_links_with_the_real_runtime";
    let (Some(ptxas), Some(runtime)) = (ptxas(test), real_runtime(test)) else {
        return;
    };
    if !ptxas.with_file_name("nvlink").is_file() {
        eprintln!("SKIPPED {test}: no nvlink beside ptxas");
        return;
    }
    let mut failures = Vec::new();
    // `cargo xtask ptxas --corpus` does so with the whole corpus, for each target.
    for (path, text) in common::selection() {
        let text = text.replace(".version 9.4", ".version 9.0");
        let options = Options {
            apart: true,
            ..Options::new(&runtime, &path)
        };
        let result = instrument(&text, &options).unwrap();
        let kernels = result.entries.iter().filter(|e| e.defined);
        let checked = kernels.clone().filter(|e| e.hooks).count();
        if result.stats.sites() > 0 && checked == 0 {
            failures.push(format!("{path}: no kernel has hooks"));
        }
        // All that is said of it is that it has no effect.
        let about = result
            .unsupported
            .iter()
            .filter(|u| u.why.contains("setmaxnreg"));
        for line in about.filter(|u| !u.why.starts_with("setmaxnreg has no effect")) {
            failures.push(format!("{path}: {}", line.why));
        }
        let refused = REFUSED.iter().find(|(part, _)| {
            path.contains(part) && (*part != "clang" || path.contains("classic_atomics"))
        });
        match (link_apart(&ptxas, "corpus", &[result], &runtime), refused) {
            (Ok(said), None) => {
                // The runtime's own two are there.
                assert!(registers(&said).len() > 2, "{path}: {said}");
            }
            (Err(message), Some((_, why))) if message.contains(why) => {}
            (Err(message), None) => failures.push(format!("{path}: {message}")),
            (other, Some((_, why))) => failures.push(format!("{path}: not {why}: {other:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn odd_forms_assemble() {
    let Some(ptxas) = ptxas("odd_forms_assemble") else {
        return;
    };
    let ws = common::selection()
        .into_iter()
        .find(|(name, _)| name.contains("gluon_ws"))
        .unwrap()
        .1;
    // Accesses in the wait loop of a kernel with setmaxnreg: calls there made ptxas 13.0 run away once.
    let loads = "\twaitLoop:\n{ .reg .b32 zz; .reg .b64 zp; ld.param.b64 zp, [ws_gemm_param_0]; ld.acquire.gpu.global.b32 zz, [zp]; st.global.b32 [zp+4], zz; }\n";
    let ws_with_loads = ws.replace("\twaitLoop:\n", loads);
    assert_ne!(ws, ws_with_loads);
    let odd = kernel(
        "ld.param.u64 %rd1, [p]; setp.eq.u64 %p1, %rd1, 0;
         atom.global.cas.b128 %q0, [%rd1], %q1, %q2; atom.global.cas.b128 %q1, [%rd1], %q1, %q2;
         @%p1 atom.global.cas.b16 %h0, [%rd1], -1, 3; atom.cas.b64 %rd1, [%rd1], %rd1, 1;
         atom.global.cas.b32 _, [%rd1], 0, 1; atom.global.cas.b32 %f1, [%rd1], %f1, 0f3F800000;
         @!%p1 ld.acquire.sys.u32 %r1, [%rd1+-4]; ld.volatile.global.v2.u32 {%r1, _}, [%rd1]; st.mmio.relaxed.sys.global.u32 [%rd1], 1;
         cvt.u64.u32 %rd2, %dynamic_smem_size; @!%p1 mov .u32 /* a */ %r1, // now
         %dynamic_smem_size; st.u64 [%rd1], %rd2; red.release.gpu.global.add.u32 [%rd1], 1; fence.acq_rel.cluster; @%p1 membar.sys;
         { .reg .b64 %rd1; mov.u64 %rd1, 0; L: @%p1 ld.u8 %r1, [%rd1+(1<<4)]; @%p1 bra L; { @%p1 exit; } }
         cp.async.ca.shared.global [%r1], [%rd1], 16, %r2; cp.async.ca.shared.global [%r1], [%rd1], 16, !%p1;
         @%p1 cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1+16], 16, %r2, %rd2; discard.global.L2 [%rd1], 128;
         ld.global.u32 %r1, gv[3]; st.global.u32 gv[0], %r1; mov.u64 %rd3, gv[1]; st.global.u64 [n2], %rd3; mov.u64 %rd4, n1;
         @%p1 ret; ld.global.u32 %r1, [gv+4]; st.u32 [gv+8], %r1;",
    );
    let odd = odd.replace(".visible .entry", ".global .u32 gv[4]; .global .u64 n<4>;\n.visible .entry other { ret; }\n.visible .entry third() { TOP: bra TOP; }\n.visible .entry");
    let barriers = kernel(
        ".shared .b64 m; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; mov.u32 %r2, 64; mov.u32 %r3, m; setp.eq.u32 %p1, %r1, 0;
         bar.sync 0; barrier.sync %r1; @%p1 bar.cta.sync 1, %r2; @!%p1 barrier.cta.sync.aligned %r1, 64; bar.arrive 2, %r2;
         barrier.cta.arrive 3, 64; bar.red.popc.u32 %r1, %r1, %p1; bar.red.popc.u32 %r2, 1, %r2, !%p1;
         @!%p1 bar.red.and.pred %p1, 0, %p1; @%p1 barrier.cta.red.or.aligned.pred %p1, 1, 64, %p1;
         mapa.shared::cluster.u32 %r2, %r3, 1; st.release.cluster.shared::cluster.u32 [%r2], 1; @%p1 ld.acquire.cluster.shared::cluster.u32 %r1, [%r2];
         atom.acq_rel.cluster.shared::cluster.add.u32 %r1, [%r2], 1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
         mapa.u64 %rd3, %rd1, 1; @%p1 st.release.cluster.u32 [%rd3], 1; ld.acquire.cluster.u32 %r1, [%rd3]; @!%p1 atom.cas.b32 %r1, [%rd3], 0, 1;
         barrier.cluster.arrive; barrier.cluster.wait; @%p1 mbarrier.test_wait.shared.b64 %p1, [m], %rd1;
         W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;
         ld.volatile.shared.u32 %r1, [m]; @%p1 atom.shared.add.u32 %r1, [m], 1; red.shared.add.u32 [m], 1;
         cvta.shared.u64 %rd2, %rd1; ld.acquire.cta.u32 %r1, [%rd2]; st.u32 [m], 1; atom.add.u32 %r1, [m], 1; @%p1 griddepcontrol.wait; @!%p1 griddepcontrol.launch_dependents; ret;",
    );
    let asynchronous = kernel("ld.param.u64 %rd1, [p]; @%p1 st.async.mmio.release.sys.global.u32 [%rd1], 1; red.async.mmio.release.sys.global.add.u32 [%rd1], 1; ret;")
        .replace("sm_90a", "sm_100a");
    let copies = kernel(
        ".shared .align 128 .b8 t[256]; .shared .align 8 .b64 m[2]; ld.param.u64 %rd1, [p]; mov.u32 %r1, t; mov.u32 %r2, 64; mov.u32 %r3, m; mov.u64 %rd2, m;
         @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1+16], [%r1], %r2; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd1], [t], 64;
         cp.async.bulk.commit_group; @!%p1 cp.async.bulk.wait_group 1; cp.async.bulk.wait_group.read 0; cp.async.bulk.prefetch.L2.global [%rd1], 64;
         @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3+8];
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [t], [%rd1], 64, [m];
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], %r2, [%rd2], %h0;
         cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, -1}], [%r1]; cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd1, {4}], [t];
         cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2, 0, 1}], [%r3], {%h0, %h0};
         cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%rd1, {%r1, 0, 0}], [%r1];
         cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1, {%r1, %r2, 0, 1, 2}], [%r3], %rd1;
         W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W; @%p1 mbarrier.test_wait.shared.b64 %p1, [m+8], %rd1;
         mapa.shared::cluster.u32 %r2, %r3, 1; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [%r1], 64, [%r2]; ret;",
    );
    let multimem = kernel(
        "ld.param.u64 %rd1, [p]; @%p1 multimem.ld_reduce.acquire.sys.global.add.v2.f32 {%f1, %f2}, [%rd1+8]; multimem.st.weak.global.b32 [%rd1], %r1;
         multimem.ld_reduce.global.min.s32 %r1, [%rd1]; @!%p1 multimem.red.release.gpu.add.u64 [%rd1], %rd1; multimem.st.release.sys.global.f32 [%rd1], %f1; ret;",
    );
    check(
        &ptxas,
        vec![
            ("multimem.ptx".into(), multimem),
            ("copies.ptx".into(), copies),
            ("async.ptx".into(), asynchronous),
            ("odd.ptx".into(), odd),
            ("ws.ptx".into(), ws_with_loads),
            ("barriers.ptx".into(), barriers),
        ],
        STUB,
    );
}

/// Kernels with `setmaxnreg`: with a bound on its registers ptxas takes no call (C7600), so there may be none.
#[test]
fn warp_specialised_kernels_assemble() {
    let Some(ptxas) = ptxas("warp_specialised_kernels_assemble") else {
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gsan-device/ptx/runtime_wide.ptx");
    let Ok(runtime) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED warp_specialised_kernels_assemble: no runtime");
        return;
    };
    let mut module = ".version 8.7\n.target sm_90a\n.address_size 64\n\
         .func f(.reg .b64 a) { .reg .b32 x; ld.global.u32 x, [a]; bar.sync 1, 128; st.global.u32 [a], x; ret; }\n"
        .to_string();
    let access = "ld.acquire.gpu.global.u32 %r2, [%rd1]; st.global.u32 [%rd1+4], %r2; atom.global.add.u32 %r2, [%rd1], 1;";
    let plain = "st.shared.u32 [%r1], %r1;";
    let directives = [
        "",
        ".maxnreg 168",
        ".maxnreg 256",
        ".maxntid 384 .minnctapersm 1",
    ];
    let mut kernels = 0;
    for directives in directives {
        for (inc, dec) in [(168, 0), (232, 40)] {
            for (producer, consumer) in [
                (access, plain),
                (plain, access),
                ("call.uni f, (%rd1);", plain),
            ] {
                let change = |what: &str, n: u32| match n {
                    0 => String::new(),
                    n => format!("setmaxnreg.{what}.sync.aligned.u32 {n};"),
                };
                module += &format!(
                    ".visible .entry k{kernels}(.param .u64 p) {directives} {{ .reg .b64 %rd<2>; .reg .b32 %r<3>; .reg .pred %p<2>;\n\
                     ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 128; @%p1 bra P; {} {consumer} bra E;\n\
                     P: {} {producer} E: ret; }}\n",
                    change("inc", inc),
                    change("dec", dec)
                );
                kernels += 1;
            }
        }
    }
    let result = instrument(&module, &Options::new(&runtime, "ws.ptx")).unwrap();
    let hooks = result.entries.iter().filter(|e| e.hooks).count();
    let listed = |line: &str| result.unsupported.iter().any(|u| u.text == line);
    // What the function does is listed once, for all that call it.
    assert!(listed(".func f"));
    for (i, entry) in result.entries.iter().enumerate() {
        assert!(
            entry.hooks || i % 3 == 2 || listed(&format!(".entry {}", entry.name)),
            "{entry:?}"
        );
    }
    assert!(hooks >= 8 && hooks < kernels, "{hooks} of {kernels}");
    assemble(&ptxas, "ws-all.ptx", &result.text).unwrap();
    // With the runtime beside it every kernel has hooks, and the linker takes them: the runtime has no more registers than the
    // narrowest of them.
    let apart = Options {
        apart: true,
        ..Options::new(&runtime, "ws.ptx")
    };
    let linked = instrument(&module, &apart).unwrap();
    assert!(linked.entries.iter().all(|e| e.hooks));
    // Some of them do not say how many threads they have.
    assert_eq!(linked.needs.registers(), 64);
    let said: Vec<&str> = linked.unsupported.iter().map(|u| &*u.why).collect();
    assert!(
        said.len() == 1 && said[0].starts_with("setmaxnreg has no effect"),
        "once for the module: {said:?}"
    );
    if ptxas.with_file_name("nvlink").is_file() {
        link_apart(&ptxas, "ws", &[linked], &runtime).unwrap();
    }
    // The rule is not too careful: with hooks in such a kernel ptxas fails.
    let bound = module
        .replace(".maxntid 384 ", ".maxntid 384 /*")
        .replace(".minnctapersm 1 {", ".minnctapersm 1 */ {");
    let result = instrument(&bound, &Options::new(&runtime, "ws.ptx")).unwrap();
    let hooked = result
        .text
        .replace(".maxntid 384 /*", ".maxntid 384 ")
        .replace(".minnctapersm 1 */ {", ".minnctapersm 1 {");
    let refused = assemble(&ptxas, "ws-hooked.ptx", &hooked).unwrap_err();
    assert!(refused.contains("C7600"), "{refused}");
}

/// Compiles texts as parts of a program, each with options of its own, and links them; says what the linker said.
fn link(ptxas: &Path, name: &str, texts: &[(&str, &[&str])]) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("gsan-ptx-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |program: &Path, args: &[&str]| {
        let limits = "ulimit -v 8000000; ulimit -t 60; exec timeout 600 \"$0\" \"$@\"";
        let out = Command::new("sh")
            .args(["-c", limits])
            .arg(program)
            .args(args)
            .current_dir(&folder)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stderr).to_string()
            + &String::from_utf8_lossy(&out.stdout);
        match out.status.success() {
            true => Ok(text),
            false => Err(format!("{name}: {text}")),
        }
    };
    let target = texts[0].0.split_once(".target ").unwrap().1;
    let arch = format!("-arch={}", target.split([',', ' ', '\n']).next().unwrap());
    let mut inputs = vec![arch.clone()];
    let mut result = Ok(String::new());
    for (n, (text, options)) in texts.iter().enumerate() {
        let (ptx, object) = (format!("{n}.ptx"), format!("{n}.o"));
        std::fs::write(folder.join(&ptx), text).unwrap();
        let compile = ["-c", &arch, &ptx, "-o", &object];
        result = result.and_then(|_| run(ptxas, &[&compile, *options].concat()));
        inputs.push(object);
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let nvlink = ptxas.with_file_name("nvlink");
    let result =
        result.and_then(|_| run(&nvlink, &[&["-v", "-o", "out.cubin"], &*inputs].concat()));
    std::fs::remove_dir_all(&folder).unwrap();
    result
}

/// Links modules with the runtime that they need.
fn link_apart(
    ptxas: &Path,
    name: &str,
    modules: &[Instrumented],
    runtime: &str,
) -> Result<String, String> {
    let mut needs = RuntimeNeeds::default();
    modules.iter().for_each(|m| needs.add(&m.needs));
    let runtime = needs.module(runtime).unwrap();
    let registers = needs.registers().to_string();
    let options = ["-maxrregcount", &registers];
    let mut texts: Vec<(&str, &[&str])> = modules.iter().map(|m| (&*m.text, &[][..])).collect();
    texts.push((&runtime, &options));
    link(ptxas, name, &texts)
}

/// The registers that a linker says each kernel has.
fn registers(said: &str) -> Vec<(&str, u32)> {
    let kernels = said.split("Function properties for '").skip(1);
    kernels
        .map(|rest| {
            let (name, rest) = rest.split_once('\'').unwrap();
            let number = rest.split_once("used ").unwrap().1.split(' ').next();
            (name, number.unwrap().parse().unwrap())
        })
        .collect()
}

/// Two modules, each instrumented by itself, linked into one program: one copy of the runtime serves both.
#[test]
fn separately_compiled_modules_link() {
    let Some(ptxas) = ptxas("separately_compiled_modules_link") else {
        return;
    };
    if !ptxas.with_file_name("nvlink").is_file() {
        eprintln!("SKIPPED separately_compiled_modules_link: no nvlink beside ptxas");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gsan-device/ptx/runtime_wide.ptx");
    let runtime = std::fs::read_to_string(&path).unwrap_or_else(|_| STUB.to_string());
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let caller = format!(
        "{head}.extern .func helper(.param .b64 p);\n.extern .global .u32 counter[4];\n.weak .global .u32 shared_word;\n\
         .visible .entry k(.param .u64 p)\n{{ .reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];\n\
         {{ .param .b64 q; st.param.b64 [q], %rd1; call.uni helper, (q); }} st.global.u32 [counter+4], %r1; st.global.u32 [shared_word], %r1; ret; }}\n\
         .visible .entry narrow(.param .u64 p) .maxnreg 32\n{{ .reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ret; }}\n"
    );
    let callee = format!(
        "{head}.visible .global .u32 counter[4];\n.weak .global .u32 shared_word;\n.weak .func twice() {{ ret; }}\n\
         .visible .func helper(.param .b64 p)\n{{ .reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1, [p];\n\
         atom.global.add.u32 %r1, [counter], 1; membar.gl; st.global.u32 [%rd1], %r1; ret; }}\n"
    );
    let instrumented = |caller: &str, part, apart| {
        let mut first_site = 0;
        [caller, &callee].map(|text| {
            let options = Options {
                part,
                apart,
                first_site,
                ..Options::new(&runtime, "part")
            };
            let result = instrument(text, &options).unwrap();
            first_site += result.sites.len() as u32;
            result
        })
    };
    let linked = |modules: &[Instrumented]| {
        let texts: Vec<_> = modules.iter().map(|m| (&*m.text, &[][..])).collect();
        link(&ptxas, "parts", &texts)
    };
    let wide = caller.replace(".maxnreg 32", "");
    linked(&instrumented(&wide, true, false)).unwrap();
    // As whole programs the two runtimes collide: that is what `part` is for.
    let message = linked(&instrumented(&wide, false, false)).unwrap_err();
    assert!(message.contains("__gsan_"), "{message}");
    // One runtime beside them. The bound on its registers is the kernels' own, and follows theirs.
    for (caller, most) in [(&wide, 64), (&caller, 32)] {
        let modules = instrumented(caller, true, true);
        let said = link_apart(&ptxas, "apart", &modules, &runtime).unwrap();
        let registers = registers(&said);
        for kernel in ["k", "narrow"] {
            let (_, number) = registers.iter().find(|(name, _)| *name == kernel).unwrap();
            assert!((16..=most).contains(number), "{said}");
        }
    }
}
