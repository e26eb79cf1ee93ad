//! Copies and fills are accesses: each finds its race, and each way of ordering it keeps it silent.

use crate::support::{BYTES, Host, WORDS, simulator};
use gsan_host::report::{Race, RaceKind};
use gsan_host::{Buffer, MemoryKind, Session, StreamFlags, StreamId, Wait};

type Operation = fn(&mut Session, Buffer, Buffer, StreamId);

/// Each with its name, whether it writes `data`, and the operation on `data` (and `other`) in a stream.
const OPERATIONS: [(&str, bool, Operation); 4] = [
    ("memset", true, |s, data, _, stream| {
        s.memset(data.address, 1, BYTES, stream).unwrap();
    }),
    ("copy", false, |s, data, other, stream| {
        s.copy(other.address, data.address, BYTES, stream).unwrap();
    }),
    ("copy", true, |s, data, other, stream| {
        s.copy(data.address, other.address, BYTES, stream).unwrap();
    }),
    ("read back", false, |s, data, _, stream| {
        s.read_async(data.address, BYTES, stream).unwrap();
    }),
];

fn parts(h: &mut Host) -> (Buffer, Buffer, StreamId, StreamId) {
    let (data, other) = (h.buffer("data"), h.buffer("other"));
    let streams =
        ["a", "b"].map(|name| h.session.stream(name, StreamFlags::NonBlocking, 0).unwrap());
    (data, other, streams[0], streams[1])
}

/// The host's operation is one side, and only `data` is raced on.
fn is_about(races: &[Race], what: &str) {
    assert!(!races.is_empty(), "{what}");
    for race in races {
        assert_eq!(race.buffer.as_deref(), Some("data"), "{race:?}");
        let sides = [&race.current, &race.prior];
        let hosts: Vec<_> = sides.iter().filter_map(|s| s.host_operation()).collect();
        assert_eq!(hosts, [what], "{race:?}");
    }
}

#[test]
fn an_operation_races_with_a_kernel_of_another_stream() {
    for (what, writes, operation) in OPERATIONS {
        for host_first in [false, true] {
            let _turn = simulator(|_| ());
            let mut h = Host::new();
            let (data, other, a, b) = parts(&mut h);
            if host_first {
                operation(&mut h.session, data, other, b);
            }
            h.put(data, 7, a);
            if !host_first {
                operation(&mut h.session, data, other, b);
            }
            let races = h.races();
            is_about(&races, what);
            if writes {
                assert!(races.iter().all(|r| r.kind == RaceKind::Waw), "{races:?}");
            }
        }
    }
}

#[test]
fn an_operation_races_with_another() {
    for (what, writes, operation) in OPERATIONS {
        let _turn = simulator(|_| ());
        let mut h = Host::new();
        let (data, other, a, b) = parts(&mut h);
        h.session.memset(data.address, 0, BYTES, a).unwrap();
        operation(&mut h.session, data, other, b);
        let races = h.races();
        assert!(!races.is_empty(), "{what}");
        for race in races {
            assert!(race.current.host_operation().is_some());
            assert!(race.prior.host_operation().is_some());
            assert_eq!(race.kind == RaceKind::Waw, writes);
        }
    }
}

#[test]
fn ordered_operations_are_silent() {
    for seed in 0..4 {
        for (what, _, operation) in OPERATIONS {
            for way in 0..4 {
                let _turn = simulator(|c| c.seed = seed);
                let mut h = Host::new();
                let (data, other, a, b) = parts(&mut h);
                h.put(data, 7, a);
                let mut stream = b;
                match way {
                    0 => stream = a,
                    1 => {
                        let e = h.session.event("e", 0).unwrap();
                        h.session.record(e, a).unwrap();
                        h.session.wait(b, e).unwrap();
                    }
                    2 => h.session.synchronize(Wait::Stream(a)).unwrap(),
                    _ => h.session.synchronize(Wait::Device).unwrap(),
                }
                operation(&mut h.session, data, other, stream);
                // And what comes after it is ordered too.
                h.put(data, 8, stream);
                assert_eq!(h.races(), vec![], "{what} ordered by way {way}");
            }
        }
    }
}

#[test]
fn the_hosts_own_accesses_wait_for_blocking_streams_only() {
    for (flags, races) in [
        (StreamFlags::Blocking, false),
        (StreamFlags::PerThreadDefault, false),
        (StreamFlags::LegacyDefault, false),
        (StreamFlags::NonBlocking, true),
    ] {
        for write in [false, true] {
            let _turn = simulator(|_| ());
            let mut h = Host::new();
            let data = h.buffer("data");
            let s = h.session.stream("s", flags, 0).unwrap();
            h.put(data, 7, s);
            if write {
                h.session.write(data.address, &[0; 64]).unwrap();
            } else {
                h.session.read(data.address, BYTES).unwrap();
            }
            let found = h.races();
            assert_eq!(!found.is_empty(), races, "{flags:?}");
            if races {
                is_about(&found, if write { "write" } else { "read back" });
            }
        }
    }
}

#[test]
fn what_the_host_has_read_is_ordered_before_what_it_issues() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (data, _, a, _) = parts(&mut h);
    h.session.read(data.address, BYTES).unwrap();
    h.put(data, 7, a);
    h.session.synchronize(Wait::Stream(a)).unwrap();
    h.session.write(data.address, &[0; 8]).unwrap();
    h.put(data, 8, a);
    assert_eq!(h.races(), vec![]);
}

#[test]
fn odd_parts_are_checked_to_the_byte() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (data, _, a, b) = parts(&mut h);
    // `put` writes all words; only the part of the fill can race, a word at a time.
    h.session.memset(data.address + 5, 0, 9, b).unwrap();
    h.put(data, 7, a);
    let races = h.races();
    is_about(&races, "memset");
    for race in races {
        let offset = race.offset.unwrap();
        assert!((4..16).contains(&offset), "{offset}");
    }
}

#[test]
fn giving_a_buffer_its_content_and_looking_at_results_costs_no_accesses() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (data, _, a, _) = parts(&mut h);
    h.session.initialise(&data, &[1, 0, 0, 0]).unwrap();
    assert_eq!(h.words(data)[..2], [1, 0]);
    h.session.initialise_part(data.address + 4, &[2]).unwrap();
    assert_eq!(h.words(data)[..2], [1, 2]);
    h.put(data, 7, a);
    assert_eq!(h.words(data), vec![7; WORDS as usize]);
    let report = h.report();
    assert_eq!(report.races, vec![]);
    assert_eq!(report.stats.checked_accesses, Some(u64::from(WORDS)));
}

#[test]
fn memory_without_shadow_and_sessions_that_check_nothing_are_left_alone() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (_, _, a, _) = parts(&mut h);
    for kind in [MemoryKind::Pinned, MemoryKind::Managed, MemoryKind::Foreign] {
        let buffer = h.session.alloc("b", BYTES, kind, 0).unwrap();
        h.session.memset(buffer.address, 1, BYTES, a).unwrap();
    }
    let report = h.report();
    assert_eq!(report.stats.checked_accesses, Some(0));
    assert_eq!(report.stats.unchecked_accesses, Some(0));

    let session = Session::builder().instrument(false).build().unwrap();
    let mut h = Host::with(session);
    let (data, other, a, b) = parts(&mut h);
    for (_, _, operation) in OPERATIONS {
        operation(&mut h.session, data, other, a);
        operation(&mut h.session, data, other, b);
    }
    assert_eq!(h.races(), vec![]);
}

#[test]
fn a_session_without_modules_checks_its_copies() {
    let _turn = simulator(|_| ());
    let mut session = Session::builder().build().unwrap();
    let data = session.alloc("data", BYTES, MemoryKind::Device, 0).unwrap();
    for name in ["a", "b"] {
        let s = session.stream(name, StreamFlags::NonBlocking, 0).unwrap();
        session.memset(data.address, 0, BYTES, s).unwrap();
    }
    let report = session.finish().unwrap();
    is_about_two_fills(&report.races);
}

fn is_about_two_fills(races: &[Race]) {
    assert!(!races.is_empty());
    for race in races {
        assert_eq!(race.prior.host_operation(), Some("memset"));
        assert_eq!(race.current.host_operation(), Some("memset"));
        assert_eq!((race.current.block, race.current.thread), (None, None));
    }
}

#[test]
fn module_variables_are_checked_too() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (_, _, a, b) = parts(&mut h);
    let (address, bytes) = h.session.variable(h.module, "counter", 0).unwrap().unwrap();
    h.session.memset(address, 0, bytes, a).unwrap();
    h.session.memset(address, 0, bytes, b).unwrap();
    is_about_two_fills(&h.races());
}
