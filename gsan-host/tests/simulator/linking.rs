//! Several PTX modules linked into one program.

use crate::support::{KERNELS, simulator};
use gsan_host::report::Report;
use gsan_host::{Arg, Error, ErrorKind, LaunchSpec, MemoryKind, Session, Wait};

const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// `k(p)` has every thread call `add`, which another module defines, and writes its own word after it.
const CALLER: &str = "
.extern .func add(.param .b64 p);
.extern .global .align 4 .u32 total;
.global .align 4 .u32 mine;
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    { .param .b64 q; st.param.b64 [q], %rd1; call.uni add, (q); }
    ld.global.u32 %r1, [total+4];
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3+64], %r1;
    ret;
}
";

/// Adds one to the word and to `total`, as ADD says.
const CALLEE: &str = "
.visible .global .align 4 .u32 total[2] = {0, 7};
.global .align 4 .u32 mine;
.visible .func add(.param .b64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [p];
    red.global.add.u32 [total], 1;
    ADD
    ret;
}
";

const ATOMIC: &str = "atom.global.add.u32 %r1, [%rd1], 1;";
const RACY: &str = "ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;";

/// Runs the two with 4 blocks of one thread: the report, and what is in `total` and in the buffer.
fn run(add: &str, checked: bool) -> (Report, u32, Vec<u32>) {
    let mut session = Session::builder().instrument(checked).build().unwrap();
    let caller = format!("{HEAD}{CALLER}");
    let callee = format!("{HEAD}{}", CALLEE.replace("ADD", add));
    let parts = [("caller.ptx", caller.as_str()), ("callee.ptx", &callee)];
    let module = session.load_linked("program", &parts).unwrap();
    let kernels = session.kernels(module).unwrap();
    assert_eq!(kernels.len(), 1);
    let stream = session.default_stream(0).unwrap();
    let data = session.alloc("data", 128, MemoryKind::Device, 0).unwrap();
    let spec = LaunchSpec::new(module, "k", [4, 1, 1], [1, 1, 1], stream);
    session
        .launch(&spec.arg(Arg::Pointer(data.address)))
        .unwrap();
    session.synchronize(Wait::Device).unwrap();
    let words = |bytes: Vec<u8>| -> Vec<u32> {
        let words = bytes.chunks_exact(4);
        words
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
            .collect()
    };
    let (address, bytes) = session.variable(module, "total", 0).unwrap().unwrap();
    let total = words(session.contents(address, bytes).unwrap());
    assert_eq!((bytes, total[1]), (8, 7));
    let data = words(session.contents(data.address, 128).unwrap());
    (session.finish().unwrap(), total[0], data)
}

#[test]
fn a_race_in_another_module_is_told_in_that_modules_lines() {
    let _turn = simulator(|_| ());
    let (report, total, _) = run(RACY, true);
    assert_eq!(total, 4);
    assert!(!report.races.is_empty());
    for race in &report.races {
        assert_eq!(
            (race.buffer.as_deref(), race.offset),
            (Some("data"), Some(0))
        );
        assert_eq!(race.current.kernel.as_deref(), Some("k"));
        let site = race.current.site.as_ref().unwrap();
        assert_eq!(
            (site.file.as_str(), site.function.as_str()),
            ("callee.ptx", "add")
        );
        let before = CALLEE.lines().position(|l| l.contains("ADD")).unwrap();
        let line = HEAD.lines().count() + before + 1;
        assert_eq!(site.ptx_line as usize, line);
    }
    assert_eq!(report.launches[0].module, "program");
    assert!(report.unsupported.is_empty(), "{:?}", report.unsupported);
}

#[test]
fn a_clean_program_computes_what_the_plain_one_does() {
    let _turn = simulator(|_| ());
    let (report, total, data) = run(ATOMIC, true);
    assert!(report.races.is_empty(), "{:?}", report.races);
    assert_eq!((total, data[0], &data[16..20]), (4, 4, &[7; 4][..]));
    assert_eq!(report.stats.instrumented_sites, 4);
    assert_eq!(report.stats.unchecked_accesses, Some(0));
    let (plain, plain_total, plain_data) = run(ATOMIC, false);
    assert_eq!((plain_total, plain_data), (total, data));
    assert_eq!(plain.stats.checked_accesses, None);
}

#[test]
fn what_can_not_be_linked_is_an_input_error() {
    let _turn = simulator(|_| ());
    let mut session = Session::builder().build().unwrap();
    let error = session
        .load_linked("program", &[("a.ptx", KERNELS), ("b.ptx", KERNELS)])
        .unwrap_err();
    assert!(matches!(&error, Error::Load { module, .. } if module == "program"));
    let text = error.to_string();
    assert!(
        text.contains("a.ptx") && text.contains("b.ptx") && text.contains("defined"),
        "{text}"
    );
    assert_eq!(error.kind(), ErrorKind::Input);
    let bad = session.load_linked("program", &[("a.ptx", KERNELS), ("b.ptx", "what")]);
    assert!(bad.unwrap_err().to_string().starts_with("b.ptx:1:"));
    session.load_linked("fine", &[("a.ptx", KERNELS)]).unwrap();
}
