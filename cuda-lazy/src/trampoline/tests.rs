use super::*;
use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::AtomicUsize;

/// A table of its own for the probe below, so that the test decides where calls go.
static PROBE_TABLE: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];
static RESOLVED: AtomicUsize = AtomicUsize::new(0);

/// Takes more arguments of both kinds than there are registers.
type Wide = extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    f32,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
) -> u64;

#[rustfmt::skip]
extern "C" fn wide(
    a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64, i: u64, j: u64,
    k: f32, l: f64, m: f64, n: f64, o: f64, p: f64, q: f64, r: f64, s: f64, t: f64,
) -> u64 {
    let integers = [a, b, c, d, e, f, g, h, i, j];
    let floats = [f64::from(k), l, m, n, o, p, q, r, s, t];
    let whole = integers.iter().zip(1..).map(|(value, place)| value * place).sum::<u64>();
    whole * 1_000_000 + floats.iter().zip(1..).map(|(value, place)| value * f64::from(place)).sum::<f64>() as u64
}

/// Uses every argument register for something else, as a real resolution does.
extern "C" fn resolve_probe(index: u32) -> *const () {
    assert_eq!(index, 1);
    RESOLVED.fetch_add(1, Ordering::Relaxed);
    let noise: Vec<f64> = (0..64).map(|n| f64::from(n).sqrt()).collect();
    assert!(format!("{noise:?}").len() > 64);
    let target = wide as *const ();
    PROBE_TABLE[1].store(target.cast_mut(), Ordering::Release);
    target
}

#[unsafe(naked)]
extern "C" fn probe_slow() {
    naked_asm!(slow!(), resolve = sym resolve_probe)
}

#[unsafe(naked)]
extern "C" fn probe() {
    naked_asm!(
        entry!(),
        table = sym PROBE_TABLE,
        offset = const size_of::<AtomicPtr<()>>(),
        index = const 1u32,
        slow = sym probe_slow,
    )
}

#[test]
#[rustfmt::skip]
fn every_argument_survives_the_first_call() {
    // SAFETY: the probe jumps to `wide`, which has this signature.
    let probe = unsafe { core::mem::transmute::<*const (), Wide>(probe as *const ()) };
    let call = |f: Wide| f(
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
        11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0,
    );
    let expected = call(wide);
    let results: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| call(probe))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results, [expected; 8]);
    let resolved = RESOLVED.load(Ordering::Relaxed);
    assert!((1..=8).contains(&resolved), "{resolved}");
    assert_eq!(call(probe), expected);
    assert_eq!(RESOLVED.load(Ordering::Relaxed), resolved, "later calls go through the table");
}

#[test]
fn names_are_those_of_cust_raw_and_no_other_twice() {
    let distinct: HashSet<&str> = NAMES.into_iter().collect();
    assert_eq!(distinct.len(), NAMES.len());

    let sources = sources_of("cust_raw");
    let source = sources
        .iter()
        .find(|path| path.ends_with("cuda.rs"))
        .expect("cuda.rs");
    let source = std::fs::read_to_string(source).expect("cust_raw's source");
    let declared: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("pub fn cu"))
        .map(|rest| rest.split('(').next().unwrap_or(rest))
        .collect();
    let ours: Vec<&str> = NAMES[..OF_CUST_RAW].iter().map(|name| &name[2..]).collect();
    assert_eq!(declared.len(), 353);
    assert_eq!(ours, declared);
}

/// The sources that a crate which this test is linked to was compiled from: the compiler lists them.
fn sources_of(name: &str) -> Vec<std::path::PathBuf> {
    let test = std::env::current_exe().expect("a path");
    let lists = std::fs::read_dir(test.parent().expect("a folder"))
        .expect("readable")
        .flatten();
    let list = lists
        .filter(|list| {
            let file = list.file_name().to_string_lossy().into_owned();
            file.starts_with(&format!("{name}-")) && file.ends_with(".d")
        })
        .find_map(|list| std::fs::read_to_string(list.path()).ok())
        .expect("the list of sources beside this test");
    let words = list.split_whitespace().filter(|word| word.ends_with(".rs"));
    let mut sources: Vec<_> = words.map(std::path::PathBuf::from).collect();
    sources.dedup();
    sources
}

/// Functions that cust calls and the simulated driver does not have: memory of other APIs, views of textures.
const NOT_SIMULATED: [&str; 4] = [
    "cuDestroyExternalMemory",
    "cuExternalMemoryGetMappedBuffer",
    "cuImportExternalMemory",
    "cuTexObjectGetResourceViewDesc",
];

#[test]
fn the_simulated_driver_has_what_cust_calls() {
    let mut called: HashSet<&str> = HashSet::new();
    for source in sources_of("cust") {
        let text = std::fs::read_to_string(&source).expect("cust's source");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        called.extend(words.filter_map(|word| NAMES.into_iter().find(|name| *name == word)));
    }
    assert!(called.len() > 60, "{}", called.len());
    let lacking: HashSet<&str> = called
        .into_iter()
        .filter(|name| gsan_sim::driver::symbol(name).is_none())
        .collect();
    assert_eq!(lacking, HashSet::from(NOT_SIMULATED));
}

/// Every function with nothing but zeros: before and after initialisation, with and without a context. An answer is all
/// that is asked for.
#[test]
fn no_function_minds_null() {
    type Zeros = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> i32;
    // SAFETY: integers and pointers are passed alike, and more than a function takes does no harm. None of the simulator's
    // takes a floating-point argument.
    let callable = |at: *const ()| unsafe { core::mem::transmute::<*const (), Zeros>(at) };
    let functions: Vec<(&str, Zeros)> = NAMES
        .iter()
        .filter_map(|name| Some((*name, callable(gsan_sim::driver::symbol(name)?))))
        .collect();
    assert!(functions.len() > 150, "{}", functions.len());
    let call_all = || {
        for (name, function) in &functions {
            let code = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            assert!((0..=999).contains(&code) && code != 999, "{name}: {code}");
        }
    };
    gsan_sim::driver::reset();
    call_all();
    let with = |name: &str| {
        functions
            .iter()
            .find(|(known, _)| *known == name)
            .expect(name)
            .1
    };
    let mut context = 0u64;
    let at = &raw mut context as u64;
    assert_eq!(with("cuInit")(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0);
    assert_eq!(
        with("cuDevicePrimaryCtxRetain")(at, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        0
    );
    for (name, function) in &functions {
        assert_eq!(
            with("cuCtxSetCurrent")(context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            0
        );
        let code = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        assert!((0..=999).contains(&code) && code != 999, "{name}: {code}");
        if *name == "cuDevicePrimaryCtxRelease_v2" {
            assert_eq!(
                with("cuDevicePrimaryCtxRetain")(at, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
                0
            );
        }
    }
    gsan_sim::driver::reset();
}

/// What the cross tools that a test needs are called, and where they come from.
const CROSS_TOOLS: [(&str, &str); 3] = [
    ("aarch64-linux-gnu-as", "binutils-aarch64-linux-gnu"),
    ("aarch64-linux-gnu-ld", "binutils-aarch64-linux-gnu"),
    ("qemu-aarch64", "qemu-user"),
];

/// Whether a tool is there; says loudly if not.
fn have(tool: &str) -> bool {
    let found = Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        let package = CROSS_TOOLS
            .iter()
            .find(|(name, _)| *name == tool)
            .map_or("?", |(_, package)| package);
        // Straight to the terminal: the test harness keeps a passing test's output to itself.
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr().lock(),
            "\nNOT TESTED: the aarch64 trampolines: {tool} is missing; apt-get install {package}\n"
        );
    }
    found
}

/// Assembles the aarch64 trampolines with two probes around them and runs the result under qemu.
#[test]
fn aarch64_trampolines_assemble_and_keep_every_argument() {
    if !have("aarch64-linux-gnu-as") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("cuda-lazy-aarch64-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (source, object, program) = (folder.join("t.s"), folder.join("t.o"), folder.join("t"));
    std::fs::write(&source, aarch64_program()).expect("written");
    let run = |command: &mut Command| {
        let output = command.output().expect("the tool runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{command:?}: {:?}\n{text}",
            output.status
        );
    };
    run(Command::new("aarch64-linux-gnu-as")
        .arg(&source)
        .arg("-o")
        .arg(&object));
    if have("aarch64-linux-gnu-ld") && have("qemu-aarch64") {
        run(Command::new("aarch64-linux-gnu-ld")
            .arg(&object)
            .arg("-o")
            .arg(&program));
        run(Command::new("qemu-aarch64").arg(&program));
    }
    let _ = std::fs::remove_dir_all(&folder);
}

/// A program without a library: calls through the trampoline twice, with every argument register and a stack argument
/// filled; the target exits with 1 if one differs. Exit status 0: both calls arrived, the second without resolving.
fn aarch64_program() -> String {
    use std::fmt::Write;
    let entry = aarch64::entry!()
        .replace("{table}", "table")
        .replace("{offset}", "8")
        .replace("{index}", "77")
        .replace("{slow}", "slow");
    let slow = aarch64::slow!().replace("{resolve}", "resolve");
    let mut s = String::from(".text\n.globl _start\n_start:\n    mov x20, #0\n    mov x21, #0\n");
    for _ in 0..2 {
        s.push_str("    sub sp, sp, #16\n    mov x9, #999\n    str x9, [sp]\n");
        for n in 0..=8 {
            writeln!(s, "    mov x{n}, #{}", 100 + n).unwrap();
        }
        for n in 0..8 {
            writeln!(
                s,
                "    mov x9, #{0}\n    fmov d{n}, x9\n    mov v{n}.d[1], x9",
                200 + n
            )
            .unwrap();
        }
        s.push_str("    bl entry\n    add sp, sp, #16\n    cmp x0, #55\n    b.ne bad\n");
    }
    // Two calls arrived, one was resolved.
    s.push_str("    cmp x20, #2\n    b.ne bad\n    cmp x21, #1\n    b.ne bad\n    mov x0, #0\n    b leave\n");
    s.push_str("bad:\n    mov x0, #1\nleave:\n    mov x8, #93\n    svc #0\n");
    s.push_str("target:\n    add x20, x20, #1\n");
    for n in 0..=8 {
        writeln!(s, "    cmp x{n}, #{}\n    b.ne bad", 100 + n).unwrap();
    }
    for n in 0..8 {
        for half in 0..2 {
            writeln!(
                s,
                "    mov x9, v{n}.d[{half}]\n    cmp x9, #{}\n    b.ne bad",
                200 + n
            )
            .unwrap();
        }
    }
    s.push_str("    ldr x9, [sp]\n    cmp x9, #999\n    b.ne bad\n    mov x0, #55\n    ret\n");
    s.push_str("resolve:\n    add x21, x21, #1\n    cmp w0, #77\n    b.ne bad\n    mov x9, sp\n    tst x9, #15\n    b.ne bad\n");
    s.push_str("    adrp x9, table+8\n    add x9, x9, :lo12:table+8\n    adr x10, target\n    stlr x10, [x9]\n");
    for n in 1..18 {
        writeln!(s, "    mov x{n}, #-1").unwrap();
    }
    for n in 0..8 {
        writeln!(s, "    movi v{n}.2d, #0").unwrap();
    }
    s.push_str("    adr x0, target\n    ret\n");
    write!(
        s,
        "entry:{entry}\nslow:{slow}\n.data\n.balign 8\ntable: .quad 0, 0\n"
    )
    .unwrap();
    s
}
