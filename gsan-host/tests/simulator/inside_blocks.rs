//! Which kernels are looked at from inside: what the instrumenter says of a kernel reaches the detector.

use crate::support::simulator;
use gsan_host::report::{Outcome, RaceClass, Report};
use gsan_host::{Arg, LaunchSpec, MemoryKind, Session};

/// Two warps of a block write the same word: the second one after `BETWEEN`.
const KERNEL: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .pred %p<4>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    setp.eq.u32 %p2, %r1, 32;
    @%p1 st.global.u32 [%rd1], %r1;
    BETWEEN
    @%p2 st.global.u32 [%rd1], %r1;
    ret;
}
";

fn run(between: &str, more: &str, off: &[RaceClass]) -> Report {
    let mut session = Session::builder().classes_off(off).build().unwrap();
    let text = KERNEL.replace("BETWEEN", between) + more;
    let module = session.load_module("k.ptx", &text).unwrap();
    let stream = session.default_stream(0).unwrap();
    let data = session.alloc("data", 64, MemoryKind::Device, 0).unwrap();
    let spec = LaunchSpec::new(module, "k", [1, 1, 1], [64, 1, 1], stream);
    session
        .launch(&spec.arg(Arg::Pointer(data.address)))
        .unwrap();
    session.finish().unwrap()
}

#[test]
fn barriers_decide() {
    let _turn = simulator(|_| ());
    assert_eq!(run("", "", &[]).races.len(), 1);
    assert!(run("bar.sync 0;", "", &[]).races.is_empty());
    assert!(
        run("barrier.cta.red.popc.u32 %r2, 1, 64, %p1;", "", &[])
            .races
            .is_empty()
    );
}

/// A kernel that moves registers between its warps is followed like any other: linked with the runtime, its calls cost it none.
#[test]
fn warp_specialised_kernels_are_followed() {
    let _turn = simulator(|_| ());
    let registers = "setmaxnreg.dec.sync.aligned.u32 40;";
    let function = format!(".func f() {{ {registers} ret; }}\n");
    for (between, more, races) in [
        (registers, "", true),
        ("setmaxnreg.dec.sync.aligned.u32 40; bar.sync 0;", "", false),
        ("", function.as_str(), true),
        ("bar.sync 0;", function.as_str(), false),
    ] {
        let report = run(between, more, &[]);
        assert_eq!(!report.races.is_empty(), races, "{between}{more}");
        // That the registers don't move is all there is to say.
        let said: Vec<&str> = report.unsupported.iter().map(|u| &*u.why).collect();
        assert!(
            said.len() == 1 && said[0].contains("setmaxnreg has no effect"),
            "{said:?}"
        );
    }
}

#[test]
fn where_barriers_have_no_hooks_a_block_is_one_thread() {
    let _turn = simulator(|_| ());
    // A barrier that nobody understands, in a function that the kernel might call.
    let report = run("", ".func f() { bar.what 0; ret; }\n", &[]);
    assert!(report.races.is_empty());
    let note = "threads of one block";
    let told = report.unsupported.iter().any(|u| u.why.contains(note));
    assert!(told, "{:?}", report.unsupported);
    let report = run("", "", &[RaceClass::IntraBlock]);
    assert!(report.races.is_empty() && report.unsupported.is_empty());
}

/// Behind the block's arrays lie the detector's words: an index that is one too large is a fault all the same, as it is without
/// the detector.
#[test]
fn an_index_behind_the_blocks_arrays_is_a_fault() {
    let _turn = simulator(|_| ());
    for (declaration, dynamic) in [
        (".shared .align 4 .b8 s[256];", 0),
        (".shared .align 4 .b8 s[64];", 192),
        (".shared .align 4 .b8 s[4];", 252),
    ] {
        for (index, outcome) in [(252, Outcome::Completed), (256, Outcome::Fault)] {
            let body = format!("{declaration} st.shared.u32 [s+{index}], %r1; bar.sync 0;");
            let text = KERNEL.replace("BETWEEN", &body);
            let mut session = Session::builder().build().unwrap();
            let module = session.load_module("k.ptx", &text).unwrap();
            let stream = session.default_stream(0).unwrap();
            let data = session.alloc("data", 64, MemoryKind::Device, 0).unwrap();
            let mut spec = LaunchSpec::new(module, "k", [1, 1, 1], [64, 1, 1], stream);
            spec.dynamic_shared = dynamic;
            session
                .launch(&spec.arg(Arg::Pointer(data.address)))
                .unwrap();
            let report = session.finish().unwrap();
            assert_eq!(report.outcome, outcome, "{declaration} {index}");
            if outcome == Outcome::Fault {
                let message = report.message.unwrap();
                assert!(
                    message.contains("outside the block's shared memory"),
                    "{message}"
                );
            }
        }
    }
}
