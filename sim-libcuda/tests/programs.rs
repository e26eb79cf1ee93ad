//! Programs in C that know only the driver API, on the simulated GPU.

use gsan_cuda as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the library under the names that linkers and loaders look for.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap();
    let at = [built, built.parent().unwrap()]
        .map(|folder| folder.join("libgsan_cuda.so"))
        .into_iter()
        .find(|file| file.exists())
        .expect("cargo builds the library before its tests");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        let _ = std::fs::remove_file(folder.join(name));
        std::os::unix::fs::symlink(&at, folder.join(name)).unwrap();
    }
    folder
}

fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// Builds an example against the library, runs it, and returns what it says.
fn example(name: &str) -> String {
    let folder = library(name);
    let program = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples-c/{name}.c"));
    run(Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .arg("-L")
        .arg(&folder)
        .arg("-lcuda"));
    let output = run(Command::new(&program).env("LD_LIBRARY_PATH", &folder));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_c_program_linked_with_libcuda_runs() {
    let text = example("scale");
    let expected = "1000 elements scaled by 2.5 on gsan";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_c_program_captures_a_graph_and_replays_it() {
    let text = example("graph");
    let expected = "5 launches of a graph of 6 nodes on gsan";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn functions_are_found_by_name_and_those_that_nobody_knows_are_not() {
    let folder = library("found");
    let source = folder.join("found.c");
    let text = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        int main(void) {
            void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
            if (!cuda) { puts(dlerror()); return 1; }
            int (*init)(unsigned) = dlsym(cuda, "cuInit");
            int (*find)(const char *, void **, int, unsigned long long, int *) = dlsym(cuda, "cuGetProcAddress_v2");
            int (*lacking)(void *) = dlsym(cuda, "cuDestroyExternalMemory");
            if (!init || !find || !lacking || init(0)) return 2;
            void *f = 0; int status = 9;
            if (find("cuMemAlloc", &f, 12000, 0, &status) || !f || status != 0) return 3;
            if (find("cuNoSuchFunction", &f, 12000, 0, &status) != 0 && status == 0) return 4;
            if (f != 0 || status != 1) return 5;
            printf("%d\n", lacking(0));
            return 0;
        }"#;
    std::fs::write(&source, text).unwrap();
    let program = folder.join("found");
    run(Command::new("cc")
        .arg("-o")
        .args([&program, &source])
        .arg("-ldl"));
    let output = run(Command::new(&program).env("LD_LIBRARY_PATH", &folder));
    let answer = String::from_utf8_lossy(&output.stdout);
    // CUDA_ERROR_NOT_SUPPORTED
    assert_eq!(answer.trim(), "801");
}
