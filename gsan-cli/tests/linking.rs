//! Programs of several PTX modules.

use std::path::Path;
use std::process::{Command, Stdio};

const KERNEL: &str = "tests/kernels/separate/ptx/kernel.ptx";
const QUEUE: &str = "tests/kernels/separate/ptx/queue.ptx";

/// Exit code, standard output, standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_gsan"))
        .arg("run")
        .args(args)
        .args(["--device", "sim"])
        .current_dir(repository)
        .env_remove("GSAN_DEVICE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (
        done.status.code().expect("ended by a signal"),
        text(&done.stdout),
        text(&done.stderr),
    )
}

fn fill<'a>(kernel: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "--grid",
        "8",
        "--block",
        "32",
        "--arg",
        "buf:u32[8]",
        "--kernel",
    ];
    [&[KERNEL, QUEUE], &fixed[..], &[kernel], more].concat()
}

#[test]
fn several_files_are_one_program() {
    let (code, out, err) = run(&fill("fill_racy", &[]));
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("tests/kernels/separate/queue.cu:9")
            && out.contains("in push_racy(unsigned int)"),
        "{out}"
    );
    let (code, out, err) = run(&fill("fill_fixed", &["--print", "0", "--schedules", "4"]));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("arg0 = [1, 1, 1, 1, 1, 1, 1, 1]"), "{out}");
    let (code, out, err) = run(&fill("fill_racy", &["--no-instrument", "--print", "0"]));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("arg0 = [1, 1, 1, 1, 1, 1, 1, 1]"), "{out}");
    let (_, out, _) = run(&fill("fill_racy", &["--format", "json"]));
    assert!(
        out.contains("\"module\": \"kernel.ptx+queue.ptx\""),
        "{out}"
    );
}

/// Calls what is in no module.
const INCOMPLETE: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.extern .func helper(.param .b64 p);\n\
    .visible .entry k(.param .u64 p) {\n.reg .b64 %p;\nld.param.u64 %p, [p];\ncall.uni helper, (%p);\nret;\n}\n";

#[test]
fn a_function_that_is_in_no_module_is_named_with_what_to_do() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("incomplete.ptx");
    std::fs::write(&file, INCOMPLETE).unwrap();
    let file = file.to_str().unwrap();
    let call = "--kernel k --grid 1 --block 1 --arg buf:u32[1]";
    let call: Vec<&str> = [file].into_iter().chain(call.split(' ')).collect();
    let (code, _, err) = run(&call);
    assert_eq!(code, 2, "{err}");
    for part in [
        "incomplete.ptx:8:1: ",
        "`helper` is called but not defined",
        ": give the module that defines it too, as a further file or in the scenario's `link`\n",
        "8 | call.uni helper, (%p);\n",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn what_is_wrong_with_one_of_them_names_it() {
    let common = [
        "--kernel",
        "fill_racy",
        "--grid",
        "1",
        "--block",
        "1",
        "--arg",
        "buf:u32[8]",
    ];
    let refused = |files: &[&str], parts: &[&str]| {
        let (code, out, err) = run(&[files, &common[..]].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        for part in parts {
            assert!(err.contains(part), "{part}: {err}");
        }
    };
    refused(&[KERNEL, "no-such.ptx"], &["no-such.ptx"]);
    refused(&[KERNEL, "README.md"], &["README.md:"]);
    refused(&[KERNEL, QUEUE, QUEUE], &["queue.ptx", "defined in"]);
    let (code, _, err) = run(&["tests/scenarios/separate_racy.toml", QUEUE]);
    assert_eq!(code, 2);
    assert!(err.contains("separate_racy.toml: a second file"), "{err}");
}
