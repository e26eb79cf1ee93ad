//! Every kernel of the compilers' corpus runs on the simulator, to the end that `corpus.txt` says.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn corpus(home: &Path, at: Option<&Path>) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gsan-differ"))
        .arg("corpus")
        .args(at)
        .env("GSAN_DIFFER", home)
        .env("GSAN_DEVICE", "sim")
        .env_remove("GSAN_SIM_EXITED_WARPS")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    (output.status.success(), format!("{said}\n{complained}"))
}

/// The corpus beside the repository. Its files are checked in at `ptx`, too, so that the kernels run without it.
fn beside() -> Option<std::path::PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    path.is_dir().then_some(path)
}

#[test]
fn every_kernel_of_the_corpus_runs_to_its_end() {
    let start = Instant::now();
    let (good, said) = corpus(Path::new(env!("CARGO_MANIFEST_DIR")), beside().as_deref());
    assert!(good, "{said}");
    assert!(said.contains("189 of 189 kernels"), "{said}");
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "it took {:?}",
        start.elapsed()
    );
}

/// What the table is worth: a kernel without a line, a line without a kernel, and another end than the one that is written
/// down are noticed.
#[test]
fn the_table_is_exact() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("gsan-differ-corpus-{}", std::process::id()));
    let tree = folder.join("corpus");
    std::fs::create_dir_all(&tree).expect("a folder");
    for name in ["kernels.toml", "corpus.toml"] {
        std::os::unix::fs::symlink(home.join(name), folder.join(name)).expect("a link");
    }
    for language in ["clang", "cuda", "rust", "triton", "triton39"] {
        std::fs::create_dir_all(tree.join(language)).expect("a folder");
    }
    let module = "cuda/special.sm90a.loc";
    let file = format!("{module}.ptx");
    std::fs::copy(home.join("ptx").join(&file), tree.join(&file)).expect("a copy");
    std::os::unix::fs::symlink(&tree, folder.join("ptx")).expect("a link");
    let check = |lines: &[String]| {
        std::fs::write(folder.join("corpus.txt"), lines.join("\n")).expect("written");
        corpus(&folder, Some(&tree))
    };
    let maxreg = format!("{module} maxreg | maxreg | ends");
    let special = format!("{module} special | special | fault: wrong use of a barrier");
    let other = format!("{module} third | special | ends");
    let well = format!("{module} special | special | ends");
    let checks = [
        (vec![maxreg.clone(), special.clone()], true, "2 of 2"),
        (
            vec![maxreg.clone()],
            false,
            "special: a kernel of the corpus without a line",
        ),
        (vec![maxreg.clone(), well], false, "not well"),
        (
            vec![maxreg.clone(), special.clone(), special.clone()],
            false,
            "two lines",
        ),
        (vec![maxreg, special, other], false, "third"),
    ];
    let found: Vec<_> = checks.iter().map(|(lines, ..)| check(lines)).collect();
    let _ = std::fs::remove_dir_all(&folder);
    for ((lines, good, word), (was_good, said)) in checks.iter().zip(found) {
        assert_eq!(was_good, *good, "{lines:?}: {said}");
        assert!(said.contains(word), "{lines:?}: {said}");
    }
}
