//! Reports made by hand, for the tests of the renderers.

use gsan_host::report::*;

/// Nothing known beyond what must be.
pub fn unknown_side() -> Side {
    Side {
        launch: None,
        kernel: None,
        block: None,
        thread: None,
        access: None,
        order: None,
        scope: None,
        site: None,
    }
}

/// A clean run of one launch.
pub fn clean_report() -> Report {
    Report {
        outcome: Outcome::Completed,
        message: None,
        seed: Some(7),
        schedules: 1,
        device: DeviceInfo {
            simulated: true,
            name: "simulated GPU".into(),
            sms: 4,
        },
        launches: vec![LaunchInfo {
            id: 0,
            kernel: "producer".into(),
            module: "handoff.ptx".into(),
            grid: [1, 1, 1],
            block: [32, 1, 1],
            stream: Some("s0".into()),
        }],
        races: vec![],
        hidden: vec![],
        past_end: vec![],
        stats: Stats {
            instrumented_sites: 12,
            instrumentation: Some(Instrumentation {
                barriers: 2,
                barrier_hooks: 1,
                shared: 3,
                repeated: 4,
                cluster_syncs: 5,
                non_coherent: 6,
                ..Instrumentation::default()
            }),
            checked_accesses: Some(4096),
            unchecked_accesses: Some(0),
            misses: Some(Misses::default()),
            dropped_records: Some(0),
        },
        unsupported: vec![],
    }
}

/// The flag handoff of the specification's example, in three of sixteen schedules.
pub fn racy_report() -> Report {
    let mut report = clean_report();
    report.schedules = 16;
    report.launches.push(LaunchInfo {
        id: 1,
        kernel: "_Z8consumerPjS_".into(),
        module: "handoff.ptx".into(),
        grid: [2, 1, 1],
        block: [32, 1, 1],
        stream: None,
    });
    report.races.push(Race {
        kind: RaceKind::Raw,
        class: RaceClass::MissingAcquire,
        count: 31,
        schedules: 3,
        address: 0x7f00_0000_0010,
        buffer: Some("data".into()),
        offset: Some(16),
        size: 4,
        current: Side {
            launch: Some(1),
            kernel: Some("_Z8consumerPjS_".into()),
            block: Some([1, 0, 0]),
            thread: Some([3, 0, 0]),
            access: Some(Access::Load),
            order: Some(Order::Weak),
            scope: None,
            site: Some(Site {
                file: "handoff.cu".into(),
                line: 12,
                column: Some(13),
                ptx_line: 88,
                function: "_Z8consumerPjS_".into(),
                inlined_at: vec![("handoff.cu".into(), 30, 5)],
                called_from: Vec::new(),
                near: Vec::new(),
            }),
        },
        prior: Side {
            launch: Some(0),
            kernel: Some("producer".into()),
            access: Some(Access::Store),
            order: Some(Order::Weak),
            ..unknown_side()
        },
        flag: None,
    });
    report
}

/// The same, its flag known.
pub fn racy_report_with_flag() -> Report {
    let mut report = racy_report();
    let race = &mut report.races[0];
    let mut access = race.current.clone();
    (access.order, access.scope) = (Some(Order::Relaxed), Some(Scope::Gpu));
    if let Some(site) = &mut access.site {
        (site.line, site.ptx_line) = (11, 80);
        site.inlined_at.clear();
    }
    race.flag = Some(Flag {
        address: 0x7f00_0000_0100,
        buffer: Some("flag".into()),
        offset: Some(0),
        access,
    });
    report
}

/// A clean run with an index that is too large.
pub fn past_end_report() -> Report {
    let mut report = clean_report();
    let side = racy_report().races.remove(0).current;
    report.past_end.push(PastEnd {
        buffer: "data".into(),
        past: 4,
        words: 3,
        access: side,
    });
    report
}

/// A fault, hardly anything known, unsupported instructions and misses: what the renderers must say in plain words.
pub fn broken_report() -> Report {
    let mut report = clean_report();
    report.outcome = Outcome::Fault;
    report.message =
        Some("fault at address 0x0: no memory there; in kernel producer, PTX line 9".into());
    report.seed = None;
    report.device = DeviceInfo {
        simulated: false,
        name: "NVIDIA H200".into(),
        sms: 132,
    };
    report.races.push(Race {
        kind: RaceKind::Waw,
        class: RaceClass::Race,
        count: 1,
        schedules: 1,
        address: 0xdead_beef,
        buffer: None,
        offset: None,
        size: 1,
        current: unknown_side(),
        prior: unknown_side(),
        flag: None,
    });
    report.stats = Stats {
        instrumented_sites: 1,
        instrumentation: None,
        checked_accesses: None,
        unchecked_accesses: None,
        misses: Some(Misses {
            shared_slot: 2,
            slot_reuse: 0,
            ring_wrap: 5,
            saturated: 0,
            early_copy: 0,
            unknown_map: 0,
            unknown_multicast: 0,
        }),
        dropped_records: Some(1),
    };
    report.unsupported.push(UnsupportedInstruction {
        module: "handoff.ptx".into(),
        ptx_line: 40,
        text: "cp.async.ca.shared.global [%r1], [%rd2], 16;".into(),
        why: "asynchronous copies are not checked yet".into(),
        partly: false,
    });
    report.unsupported.push(UnsupportedInstruction {
        module: "handoff.ptx".into(),
        ptx_line: 41,
        text: "setmaxnreg.dec.sync.aligned.u32 40;".into(),
        why: "barriers inside a block are not followed".into(),
        partly: true,
    });
    report
}
