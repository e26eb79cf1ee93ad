//! A program that depends on cuda-lazy needs no libcuda at load time, even where the linker could find a real one.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries that a program asks the loader for (`DT_NEEDED`), read from the file itself.
fn needed(program: &Path) -> Vec<String> {
    let file = std::fs::read(program).expect("readable");
    let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap()) as usize;
    let long = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    assert_eq!(file[..5], *b"\x7fELF\x02", "64-bit ELF");
    let headers: Vec<usize> = (0..half(56))
        .map(|index| long(32) + index * half(54))
        .collect();
    let kind = |header: usize| u32::from_le_bytes(file[header..header + 4].try_into().unwrap());
    let dynamic = *headers
        .iter()
        .find(|&&header| kind(header) == 2)
        .expect("PT_DYNAMIC");
    let (start, len) = (long(dynamic + 8), long(dynamic + 32));
    let entries: Vec<(usize, usize)> = (start..start + len)
        .step_by(16)
        .map(|at| (long(at), long(at + 8)))
        .take_while(|entry| entry.0 != 0)
        .collect();
    let strings = entries
        .iter()
        .find(|entry| entry.0 == 5)
        .expect("DT_STRTAB")
        .1;
    // The table's address, as a place in the file.
    let load = headers
        .iter()
        .filter(|&&header| kind(header) == 1)
        .find(|&&header| {
            (long(header + 16)..long(header + 16) + long(header + 32)).contains(&strings)
        })
        .expect("a segment with the strings");
    let table = strings - long(load + 16) + long(load + 8);
    entries
        .iter()
        .filter(|entry| entry.0 == 1)
        .map(|entry| {
            let text = &file[table + entry.1..];
            String::from_utf8_lossy(text.split(|&byte| byte == 0).next().unwrap_or_default())
                .into_owned()
        })
        .collect()
}

#[test]
fn this_program_needs_no_libcuda() {
    let _sim = common::Simulated::new();
    let needed = needed(&std::env::current_exe().unwrap());
    assert!(
        needed.iter().any(|library| library.starts_with("libc.so")),
        "{needed:?}"
    );
    assert!(
        !needed.iter().any(|library| library.contains("cuda")),
        "{needed:?}"
    );
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("cuda-lazy-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rustc() -> Command {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    // Where rust-toolchain.toml holds.
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

/// The newest build of this crate beside this test: the one that the test itself was linked to.
fn library() -> (PathBuf, PathBuf) {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().to_owned();
    let library = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .filter(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            name.starts_with("libcuda_lazy-") && name.ends_with(".rlib")
        })
        .max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok())
        .expect("libcuda_lazy");
    (library.path(), folder)
}

/// Whether a linker is there that the compiler can be told to use.
fn linker_exists(name: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(name).exists())
}

#[test]
fn a_real_libcuda_on_the_search_path_does_not_win() {
    let folder = Folder::new("linking");
    let path = |name: &str| folder.0.join(name);
    // A libcuda that says 4711 to all it is asked.
    std::fs::write(
        path("real.rs"),
        "#[unsafe(no_mangle)] pub extern \"C\" fn cuInit(_: u32) -> i32 { 4711 }
         #[unsafe(no_mangle)] pub extern \"C\" fn cuCtxSynchronize() -> i32 { 4711 }",
    )
    .unwrap();
    let real = folder.0.join("real");
    std::fs::create_dir(&real).unwrap();
    run(rustc()
        .args(["--crate-type", "cdylib", "--edition", "2024", "-o"])
        .arg(real.join("libcuda.so"))
        .arg(path("real.rs")));

    std::fs::write(
        path("program.rs"),
        "use cuda_lazy as _;
         unsafe extern \"C\" { fn cuInit(flags: u32) -> i32; fn cuCtxSynchronize() -> i32; }
         fn main() { println!(\"{} {}\", unsafe { cuInit(0) }, unsafe { cuCtxSynchronize() }) }",
    )
    .unwrap();
    let (library, dependencies) = library();
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("stub/lib64");
    let linkers = [
        ("the default linker", None),
        ("ld.bfd", Some("-fuse-ld=bfd")),
    ];
    for (linker, argument) in linkers {
        if argument.is_some() && !linker_exists(linker) {
            eprintln!("NOT TESTED: {linker} is missing");
            continue;
        }
        for optimisation in ["0", "3"] {
            let program = path(&format!("program{optimisation}"));
            let mut command = rustc();
            command.args([
                "--edition",
                "2024",
                "-C",
                &format!("opt-level={optimisation}"),
            ]);
            command
                .arg("--extern")
                .arg(format!("cuda_lazy={}", library.display()));
            command
                .arg("-L")
                .arg(format!("dependency={}", dependencies.display()));
            // The real one comes first in every way there is.
            command.arg("-L").arg(format!("native={}", real.display()));
            command.arg("-L").arg(format!("native={}", stub.display()));
            command.env("LIBRARY_PATH", &real);
            if let Some(argument) = argument {
                command.args([
                    "-C",
                    "link-self-contained=-linker",
                    "-Z",
                    "unstable-options",
                ]);
                command.args(["-C", &format!("link-arg={argument}")]);
                command.env("RUSTC_BOOTSTRAP", "1");
            }
            command.arg("-o").arg(&program).arg(path("program.rs"));
            run(&mut command);
            let needed = needed(&program);
            assert!(
                !needed.iter().any(|library| library.contains("cuda")),
                "{linker}: {needed:?}"
            );
            let mut program = Command::new(&program);
            program
                .env("GSAN_DEVICE", "sim")
                .env("LD_LIBRARY_PATH", &real);
            // Initialised; no context is current.
            assert_eq!(
                run(&mut program).trim(),
                "0 201",
                "{linker}, -O{optimisation}"
            );
        }
    }
}

/// What the environment chooses; each in a process of its own, since the choice is made once.
#[test]
fn the_environment_chooses() {
    let folder = Folder::new("choice");
    let (source, program) = (folder.0.join("program.rs"), folder.0.join("program"));
    std::fs::write(
        &source,
        "unsafe extern \"C\" { fn cuInit(flags: u32) -> i32; }
         fn main() {
             let code = unsafe { cuInit(0) };
             let backend = match cuda_lazy::backend() {
                 cuda_lazy::Backend::Simulated => \"simulated\",
                 cuda_lazy::Backend::Real { .. } => \"real\",
                 _ => \"unavailable\",
             };
             let late = cuda_lazy::select(cuda_lazy::Choice::Sim).is_err();
             println!(\"{code} {backend} {} {late}\", cuda_lazy::why_not_real().is_some());
         }",
    )
    .unwrap();
    let (library, dependencies) = library();
    run(rustc()
        .args([
            "--edition",
            "2024",
            "--extern",
            &format!("cuda_lazy={}", library.display()),
        ])
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg("-L")
        .arg(format!("native={}/stub/lib64", env!("CARGO_MANIFEST_DIR")))
        .arg("-o")
        .arg(&program)
        .arg(&source));
    let with = |choice: &str| {
        run(Command::new(&program).env("GSAN_DEVICE", choice))
            .trim()
            .to_owned()
    };
    assert_eq!(with("sim"), "0 simulated false true");
    let (auto, cuda) = (with("auto"), with("cuda:0"));
    if auto == "0 real false true" {
        assert_eq!(cuda, auto);
    } else {
        // No GPU here.
        assert_eq!(auto, "0 simulated true true");
        assert_eq!(cuda, "100 unavailable true true");
    }
}

/// A stand-in for the installed driver that has three functions and knows one device, or none.
#[test]
fn an_installed_driver_is_used_if_it_has_a_device() {
    let folder = Folder::new("installed");
    let (source, program) = (folder.0.join("program.rs"), folder.0.join("program"));
    std::fs::write(
        &source,
        "unsafe extern \"C\" { fn cuDriverGetVersion(version: *mut i32) -> i32; fn cuCtxSynchronize() -> i32; }
         fn main() {
             let mut version = 0;
             let code = unsafe { cuDriverGetVersion(&mut version) };
             println!(\"{code} {version} {}\", unsafe { cuCtxSynchronize() });
             match cuda_lazy::backend() {
                 cuda_lazy::Backend::Real { path, version } => println!(\"{path} {version}\"),
                 other => println!(\"{other:?} {}\", cuda_lazy::why_not_real().unwrap_or_default()),
             }
         }",
    )
    .unwrap();
    let (library, dependencies) = library();
    run(rustc()
        .args([
            "--edition",
            "2024",
            "--extern",
            &format!("cuda_lazy={}", library.display()),
        ])
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg("-L")
        .arg(format!("native={}/stub/lib64", env!("CARGO_MANIFEST_DIR")))
        .arg("-o")
        .arg(&program)
        .arg(&source));
    let with = |init: i32, devices: i32, rest: &str| {
        let text = format!(
            "#[unsafe(no_mangle)] pub extern \"C\" fn cuInit(_: u32) -> i32 {{ {init} }}
             #[unsafe(no_mangle)] pub extern \"C\" fn cuDeviceGetCount(n: &mut i32) -> i32 {{ *n = {devices}; 0 }}
             {rest}"
        );
        std::fs::write(folder.0.join("driver.rs"), text).unwrap();
        let driver = folder.0.join("libcuda.so.1");
        run(rustc()
            .args(["--crate-type", "cdylib", "--edition", "2024", "-o"])
            .arg(&driver)
            .arg(folder.0.join("driver.rs")));
        let mut command = Command::new(&program);
        command
            .env("LD_LIBRARY_PATH", &folder.0)
            .env("GSAN_DEVICE", "auto");
        (run(&mut command), driver)
    };
    let version = "#[unsafe(no_mangle)] pub extern \"C\" fn cuDriverGetVersion(n: &mut i32) -> i32 { *n = 12_034; 0 }";
    let (said, driver) = with(0, 1, version);
    // The second function is one that it lacks.
    assert_eq!(said, format!("0 12034 500\n{} 12034\n", driver.display()));
    let simulated = "0 13000 3\nSimulated ";
    for (init, devices, rest, why) in [
        (0, 0, version, "no device"),
        (100, 1, version, "no device"),
        (803, 1, version, "803"),
        (0, 1, "", "cuDriverGetVersion"),
    ] {
        let (said, _) = with(init, devices, rest);
        assert!(said.starts_with(simulated) && said.contains(why), "{said}");
    }
}
