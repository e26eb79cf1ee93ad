//! What the host's calls order: each way with its racy twin.

use crate::support::{BYTES, Host, WORDS, simulator};
use gsan_host::report::{Outcome, RaceKind};
use gsan_host::{Arg, MemoryKind, Session, StreamFlags, Wait};

#[test]
fn launches_on_one_stream_are_ordered() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (data, out) = (h.buffer("data"), h.buffer("out"));
    h.put(data, 7, h.default);
    h.get(data, out, h.default);
    assert_eq!(h.words(out), vec![7; WORDS as usize]);
    assert_eq!(h.races(), vec![]);
}

#[test]
fn order_passes_through_launches_in_between() {
    for seed in 0..8 {
        let _turn = simulator(|c| c.seed = seed);
        let mut h = Host::new();
        let (data, other, out) = (h.buffer("data"), h.buffer("other"), h.buffer("out"));
        let (a, b) = (h.stream("a"), h.stream("b"));
        let e = h.session.event("e", 0).unwrap();
        h.put(data, 7, a);
        // One block, which touches nothing of `data`, carries the order on.
        let one = gsan_host::LaunchSpec::new(h.module, "put", [1, 1, 1], [1, 1, 1], a);
        h.session
            .launch(&one.arg(Arg::Pointer(other.address)).arg(Arg::u32(1)))
            .unwrap();
        h.session.record(e, a).unwrap();
        h.session.wait(b, e).unwrap();
        let one = gsan_host::LaunchSpec::new(h.module, "put", [1, 1, 1], [1, 1, 1], b);
        h.session
            .launch(&one.arg(Arg::Pointer(other.address)).arg(Arg::u32(2)))
            .unwrap();
        h.get(data, out, b);
        assert_eq!(h.races(), vec![]);
    }
}

#[test]
fn launches_on_two_streams_race() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (data, out) = (h.buffer("data"), h.buffer("out"));
    let (a, b) = (h.stream("a"), h.stream("b"));
    h.put(data, 7, a);
    h.get(data, out, b);
    let races = h.races();
    assert!(!races.is_empty());
    for race in &races {
        assert_eq!(race.buffer.as_deref(), Some("data"));
        assert!(
            matches!(race.kind, RaceKind::Raw | RaceKind::War),
            "{race:?}"
        );
    }
}

#[test]
fn an_event_orders_two_streams_and_only_what_it_recorded() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (data, other, out) = (h.buffer("data"), h.buffer("other"), h.buffer("out"));
    let (a, b) = (h.stream("a"), h.stream("b"));
    let e = h.session.event("e", 0).unwrap();
    h.put(data, 7, a);
    h.session.record(e, a).unwrap();
    h.put(other, 8, a);
    h.session.wait(b, e).unwrap();
    h.get(data, out, b);
    let report = h.session.report_so_far();
    assert_eq!(report.outcome, Outcome::Completed);
    h.get(other, out, b);
    let races = h.races();
    assert!(!races.is_empty(), "the second put came after the record");
    assert!(
        races.iter().all(|r| r.buffer.as_deref() == Some("other")),
        "{races:?}"
    );
}

#[test]
fn several_streams_join_in_one() {
    for seed in 0..8 {
        join_three(seed);
    }
}

fn join_three(seed: u64) {
    let _turn = simulator(|c| c.seed = seed);
    let mut h = Host::new();
    let sources: Vec<_> = (0..3).map(|i| h.buffer(&format!("source {i}"))).collect();
    let out = h.buffer("out");
    let last = h.stream("last");
    for (i, &source) in sources.iter().enumerate() {
        let stream = h.stream(&format!("s{i}"));
        let e = h.session.event("", 0).unwrap();
        h.put(source, i as u32, stream);
        h.session.record(e, stream).unwrap();
        h.session.wait(last, e).unwrap();
    }
    for &source in &sources {
        h.get(source, out, last);
    }
    assert_eq!(h.words(out), vec![2; WORDS as usize]);
    assert_eq!(h.races(), vec![]);
}

#[test]
fn what_the_host_waited_for_is_ordered_before_what_it_issues() {
    for wait in 0..4 {
        let _turn = simulator(|_| ());
        let mut h = Host::new();
        let (data, out) = (h.buffer("data"), h.buffer("out"));
        let (a, b) = (
            h.stream("a"),
            h.session.stream("b", StreamFlags::NonBlocking, 0).unwrap(),
        );
        let e = h.session.event("e", 0).unwrap();
        h.put(data, 7, a);
        h.session.record(e, a).unwrap();
        match wait {
            0 => h.session.synchronize(Wait::Stream(a)).unwrap(),
            1 => h.session.synchronize(Wait::Event(e)).unwrap(),
            2 => h.session.synchronize(Wait::Device).unwrap(),
            // Waiting for another stream is no help.
            _ => h.session.synchronize(Wait::Stream(b)).unwrap(),
        }
        h.get(data, out, b);
        let races = h.races();
        assert_eq!(races.is_empty(), wait < 3, "way {wait}: {races:?}");
    }
}

#[test]
fn the_legacy_default_stream_is_ordered_with_blocking_streams_only() {
    for (flags, racy) in [
        (StreamFlags::Blocking, false),
        (StreamFlags::PerThreadDefault, false),
        (StreamFlags::NonBlocking, true),
    ] {
        for legacy_first in [true, false] {
            let _turn = simulator(|_| ());
            let mut h = Host::new();
            let (data, out) = (h.buffer("data"), h.buffer("out"));
            let other = h.session.stream("other", flags, 0).unwrap();
            let (first, second) = if legacy_first {
                (h.default, other)
            } else {
                (other, h.default)
            };
            h.put(data, 7, first);
            h.get(data, out, second);
            let races = h.races();
            assert_eq!(
                !races.is_empty(),
                racy,
                "{flags:?}, legacy first: {legacy_first}: {races:?}"
            );
        }
    }
}

#[test]
fn an_event_orders_two_devices() {
    for ordered in [true, false] {
        let _turn = simulator(|c| c.devices = 2);
        let session = Session::builder().devices(&[0, 1]).build().unwrap();
        let mut h = Host::with(session);
        let data = h.buffer("data");
        let out = h
            .session
            .alloc("out", BYTES, MemoryKind::Device, 1)
            .unwrap();
        let far = h.session.stream("far", StreamFlags::Blocking, 1).unwrap();
        let e = h.session.event("e", 0).unwrap();
        let near = h.default;
        h.put(data, 7, near);
        h.session.record(e, near).unwrap();
        if ordered {
            h.session.wait(far, e).unwrap();
        }
        h.get(data, out, far);
        if ordered {
            h.session.synchronize(Wait::Device).unwrap();
            assert_eq!(h.words(out), vec![7; WORDS as usize]);
        }
        let races = h.races();
        assert_eq!(races.is_empty(), ordered, "{races:?}");
    }
}

#[test]
fn thousands_of_launches_without_waiting_stay_ordered() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    for i in 0..3000 {
        let spec = gsan_host::LaunchSpec::new(h.module, "put", [2, 1, 1], [1, 1, 1], h.default)
            .arg(Arg::Pointer(data.address))
            .arg(Arg::u32(i));
        h.session.launch(&spec).unwrap();
    }
    assert_eq!(h.words(data)[..2], [2999, 2999]);
    assert_eq!(h.races(), vec![]);
}

#[test]
fn a_query_that_says_yes_orders_what_comes_later_on_any_stream() {
    for seed in 0..8 {
        for what in 0..3 {
            let _turn = simulator(|c| c.seed = seed);
            let mut h = Host::new();
            let (data, out) = (h.buffer("data"), h.buffer("out"));
            let a = h.session.stream("a", StreamFlags::NonBlocking, 0).unwrap();
            let b = h.session.stream("b", StreamFlags::NonBlocking, 0).unwrap();
            let e = h.session.event("e", 0).unwrap();
            h.put(data, 7, a);
            h.session.record(e, a).unwrap();
            let what = [Wait::Stream(a), Wait::Event(e), Wait::Device][what];
            while !h.session.query(what).unwrap() {}
            h.get(data, out, b);
            assert_eq!(h.words(out), vec![7; WORDS as usize]);
            assert_eq!(h.races(), vec![], "{what:?}");
        }
    }
}

#[test]
fn a_query_that_says_no_orders_nothing() {
    let mut said_no = 0;
    for seed in 0..8 {
        let _turn = simulator(|c| c.seed = seed);
        let mut h = Host::new();
        let data = h.buffer("data");
        let a = h.session.stream("a", StreamFlags::NonBlocking, 0).unwrap();
        let b = h.session.stream("b", StreamFlags::NonBlocking, 0).unwrap();
        for i in 0..4 {
            h.put(data, i, a);
        }
        let yes = h.session.query(Wait::Stream(a)).unwrap();
        said_no += u32::from(!yes);
        h.put(data, 9, b);
        assert_eq!(h.races().is_empty(), yes);
    }
    assert!(said_no > 0);
}
