//! The simulator against what an H200 computed: the same values, but for those kernels that `different.txt` names.

use std::path::Path;
use std::process::Command;

fn differ(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gsan-differ"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("GSAN_DEVICE", "sim")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    (output.status.success(), format!("{said}\n{complained}"))
}

#[test]
fn every_kernel_agrees_with_an_h200_but_for_those_that_are_known_not_to() {
    let (good, said) = differ(&["compare", "results.h200.txt"]);
    assert!(good, "{said}");
    let agree = said.lines().find_map(|l| {
        l.split_once(" kernels agree with NVIDIA H200")?
            .0
            .parse::<u32>()
            .ok()
    });
    assert!(agree > Some(2000), "{said}");
}

/// What the comparison is worth: a list that leaves one out, or names one that agrees, fails.
#[test]
fn the_list_of_those_that_differ_is_exact() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("gsan-differ-list-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["kernels.toml", "ptx"] {
        std::os::unix::fs::symlink(home.join(name), folder.join(name)).expect("a link");
    }
    let list = std::fs::read_to_string(home.join("different.txt")).expect("the list");
    let results = home.join("results.h200.txt");
    let compare = |list: &str, only: &str| {
        std::fs::write(folder.join("different.txt"), list).expect("written");
        let output = Command::new(env!("CARGO_BIN_EXE_gsan-differ"))
            .arg("compare")
            .arg(&results)
            .arg(only)
            .env("GSAN_DIFFER", &folder)
            .env("GSAN_DEVICE", "sim")
            .output()
            .expect("the program starts");
        output.status.success()
    };
    let known = "ends badly: barrier number 16";
    assert!(list.contains(known));
    let passes = [
        compare(&list, known),
        compare(&list.replace(known, ""), known),
        compare(&format!("{list}\nadd.u32\n"), "add.u32"),
        compare(&list, "add.u32"),
    ];
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(passes, [true, false, false, true]);
}
