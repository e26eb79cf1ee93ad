//! Modules and launches: what is refused, and how it is said.

use crate::support::{BYTES, Host, KERNELS, WORDS, simulator};
use gsan_host::report::{RaceClass, RaceKind};
use gsan_host::{Arg, Error, ErrorKind, LaunchSpec, Session};

#[test]
fn a_module_tells_its_kernels() {
    let _turn = simulator(|_| ());
    let h = Host::new();
    let kernels = h.session.kernels(h.module).unwrap();
    let get = kernels.iter().find(|k| k.name == "get").unwrap();
    let params: Vec<_> = get
        .params
        .iter()
        .map(|p| (p.name.as_str(), p.ty.as_str(), p.size))
        .collect();
    assert_eq!(
        params,
        [("p", "u64", 8), ("out", "u64", 8), ("n", "u32", 4)]
    );
    assert!(kernels.iter().all(|k| !k.name.starts_with("__gsan")));
}

#[test]
fn wrong_requests_are_input_errors_that_say_what_would_be_right() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let s = h.default;
    let good = h.spec("put", s).arg(Arg::Pointer(0)).arg(Arg::u32(0));
    let cases: Vec<(LaunchSpec, &str)> = vec![
        (h.spec("Put", s), "it has: put, get, clash"),
        (h.spec("put", s), "0 given, 2 expected"),
        (
            h.spec("put", s).arg(Arg::u32(1)).arg(Arg::u32(1)),
            "argument 1 has 4 bytes",
        ),
        (
            LaunchSpec {
                grid: [0, 1, 1],
                ..good.clone()
            },
            "grid x is 0",
        ),
        (
            LaunchSpec {
                block: [1024, 2, 1],
                ..good.clone()
            },
            "2048 threads",
        ),
        (
            LaunchSpec {
                dynamic_shared: 1 << 20,
                ..good.clone()
            },
            "1048576 bytes of shared memory",
        ),
        (
            LaunchSpec {
                cooperative: true,
                grid: [100_000, 1, 1],
                ..good.clone()
            },
            "fit on the device at once",
        ),
    ];
    for (spec, part) in cases {
        let error = h.session.launch(&spec).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
    // A refused launch leaves no trace.
    assert_eq!(h.report().launches, vec![]);
}

#[test]
fn text_that_is_no_ptx_is_refused_with_its_line() {
    let _turn = simulator(|_| ());
    let mut session = Session::builder().build().unwrap();
    let truncated = &KERNELS[..KERNELS.len() / 2];
    for bad in ["", "hello", truncated, "\u{0}\u{1}"] {
        let error = session.load_module("bad.ptx", bad).unwrap_err();
        assert!(error.to_string().starts_with("bad.ptx:"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Input);
    }
    session.load_module("good.ptx", KERNELS).unwrap();
}

#[test]
fn a_race_has_its_names() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let s = h.stream("side");
    h.clash(data, s);
    let report = h.report();
    assert_eq!(report.races.len(), 1, "{:?}", report.races);
    let race = &report.races[0];
    assert_eq!(
        (race.kind, race.address, race.size),
        (RaceKind::Waw, data.address, 4)
    );
    assert_eq!(
        (race.buffer.as_deref(), race.offset),
        (Some("data"), Some(0))
    );
    assert_eq!(race.current.kernel.as_deref(), Some("clash"));
    let site = race.current.site.as_ref().unwrap();
    let line = KERNELS.lines().nth(site.ptx_line as usize - 1).unwrap();
    assert!(
        line.contains("st.global.u32 [%rd1], %r2"),
        "line {}: {line}",
        site.ptx_line
    );
    assert_eq!(
        (site.file.as_str(), site.function.as_str()),
        ("kernels.ptx", "clash")
    );
    assert_eq!(report.launches[0].stream.as_deref(), Some("side"));
    assert_eq!(report.launches[0].module, "kernels.ptx");
    assert!(report.device.simulated && report.schedules == 1);
    assert!(report.stats.instrumented_sites > 5);
}

#[test]
fn module_variables_are_checked() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let bump = LaunchSpec::new(h.module, "bump", [4, 1, 1], [1, 1, 1], h.default);
    h.session.launch(&bump).unwrap();
    let (address, bytes) = h.session.variable(h.module, "counter", 0).unwrap().unwrap();
    assert_eq!(bytes, 4);
    assert!(h.session.read(address, bytes).is_ok());
    assert!(
        h.session
            .variable(h.module, "nothing", 0)
            .unwrap()
            .is_none()
    );
    let races = h.races();
    assert!(!races.is_empty());
    assert!(
        races.iter().all(|r| r.buffer.as_deref() == Some("counter")),
        "{races:?}"
    );
}

#[test]
fn the_kernel_sees_the_dynamic_size_that_was_asked_for() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    for size in [0, 1, 7, 128, 4096, 49_153, 232_448] {
        let spec = LaunchSpec {
            dynamic_shared: size,
            ..LaunchSpec::new(h.module, "dynamic_size", [1, 1, 1], [1, 1, 1], h.default)
        };
        h.session
            .launch(&spec.arg(Arg::Pointer(data.address)))
            .unwrap();
        assert_eq!(h.words(data)[0], size);
    }
    assert_eq!(h.races(), vec![]);
}

#[test]
fn blocks_without_room_in_shared_memory_are_checked_too() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let spec = LaunchSpec {
        dynamic_shared: 232_448,
        ..h.spec("clash", h.default).arg(Arg::Pointer(data.address))
    };
    h.session.launch(&spec).unwrap();
    assert_eq!(h.races().len(), 1);
}

#[test]
fn without_instrumentation_values_are_the_same_and_nothing_is_checked() {
    let _turn = simulator(|_| ());
    let mut h = Host::with(Session::builder().instrument(false).build().unwrap());
    let (data, out) = (h.buffer("data"), h.buffer("out"));
    h.put(data, 9, h.default);
    h.get(data, out, h.default);
    h.clash(data, h.default);
    assert_eq!(h.words(out), vec![9; WORDS as usize]);
    assert_eq!(h.session.shadow_cell(data.address).unwrap(), None);
    h.session.free(data.address, None).unwrap();
    let report = h.report();
    assert_eq!(
        (
            report.races.len(),
            report.stats.instrumented_sites,
            report.stats.checked_accesses
        ),
        (0, 0, None)
    );
    assert_eq!(report.launches.len(), 3);
}

#[test]
fn unchecked_sessions_use_any_amount_of_the_device() {
    let _turn = simulator(|c| c.memory_bytes = 64 << 20);
    let mut session = Session::builder().instrument(false).build().unwrap();
    let error = session
        .alloc("huge", 1 << 40, gsan_host::MemoryKind::Device, 0)
        .unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    session
        .alloc("fits", BYTES, gsan_host::MemoryKind::Device, 0)
        .unwrap();
}

#[test]
fn cooperative_clustered_and_dependent_launches_run() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let plain = h.spec("put", h.default).arg(Arg::Pointer(data.address));
    let kinds = [
        LaunchSpec {
            cooperative: true,
            ..plain.clone()
        },
        LaunchSpec {
            cluster: Some([2, 1, 1]),
            ..plain.clone()
        },
        LaunchSpec {
            pdl: true,
            ..plain.clone()
        },
    ];
    for (i, spec) in kinds.into_iter().enumerate() {
        h.session.launch(&spec.arg(Arg::u32(i as u32))).unwrap();
        assert_eq!(h.words(data), vec![i as u32; WORDS as usize]);
    }
    // The dependent one writes what the one before it wrote, and does not wait for it.
    let races = h.races();
    assert!(races.iter().any(|r| r.class == RaceClass::MissingWait));
    assert!(
        races.iter().all(|r| r.current.launch == Some(2)),
        "{races:?}"
    );
}

#[test]
fn a_module_linked_with_another_runtime_is_refused() {
    let _turn = simulator(|_| ());
    let mut session = Session::builder().build().unwrap();
    let linked = ".visible .global .align 8 .b8 __gsan_module[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 77};\n.visible .entry put";
    let text = KERNELS.replacen(".visible .entry put", linked, 1);
    let error = session.load_module("linked.ptx", &text).unwrap_err();
    assert!(
        matches!(error, Error::LayoutVersion { found: 77, .. }),
        "{error}"
    );
}

/// The reference cell's epochs have 16 bits, and each block takes one.
#[test]
fn epochs_that_run_out_end_nothing_and_raise_no_alarm() {
    const MANY: u32 = 66_000;
    let _turn = simulator(|c| {
        c.sms = 1;
        c.blocks_per_sm = 1;
    });
    let session = Session::builder()
        .cell(gsan_host::CellFormat::Reference)
        .slots_per_sm(Some(1))
        .build()
        .unwrap();
    let mut h = Host::with(session);
    let bytes = u64::from(MANY) * 4;
    let kind = gsan_host::MemoryKind::Device;
    let data = h.session.alloc("data", bytes, kind, 0).unwrap();
    let stream = h.default;
    for blocks in [MANY, 500] {
        let spec = LaunchSpec::new(h.module, "put", [blocks, 1, 1], [1, 1, 1], stream);
        // The second goes over the words that the last blocks of the first have written.
        let to = data.address + 4 * u64::from(MANY - blocks);
        let spec = spec.arg(Arg::Pointer(to)).arg(Arg::u32(blocks));
        h.session.launch(&spec).unwrap();
    }
    let report = h.report();
    assert_eq!(report.outcome, gsan_host::report::Outcome::Completed);
    assert_eq!(report.races, vec![]);
    assert!(report.stats.misses.unwrap().saturated > 0);
}

/// The stack of kernels that recurse or allocate on it has room for hooks; a program that asked for more keeps that.
#[test]
fn a_session_makes_room_for_the_hooks_on_the_stack() {
    use cust::sys::{CUlimit::CU_LIMIT_STACK_SIZE, cuCtxGetLimit, cuCtxSetLimit};
    let _turn = simulator(|_| {});
    let limit = || {
        let mut bytes = 0;
        // SAFETY: the session's context is current in this thread.
        let code = unsafe { cuCtxGetLimit(&mut bytes, CU_LIMIT_STACK_SIZE) };
        assert_eq!(code as u32, 0);
        bytes
    };
    let plain = Session::builder().instrument(false).build().unwrap();
    assert_eq!(limit(), 1024, "the driver's default");
    let checked = Session::builder().build().unwrap();
    assert_eq!(limit(), 3072);
    drop(checked);
    // SAFETY: as above.
    let set = unsafe { cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 9000) };
    assert_eq!(set as u32, 0);
    let _checked = Session::builder().build().unwrap();
    assert_eq!(limit(), 9000);
    drop(plain);
}
