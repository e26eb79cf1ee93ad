//! Runs that end badly keep what they found.

use crate::support::{Host, simulator};
use gsan_host::report::Outcome;
use gsan_host::{Arg, Error, Session, Wait};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_trap_ends_the_run_with_its_races() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let spec = h
        .spec("clash_and_die", h.default)
        .arg(Arg::Pointer(data.address));
    h.session.launch(&spec).unwrap();
    let error = h.session.synchronize(Wait::Device).unwrap_err();
    assert!(matches!(error, Error::Driver { .. }), "{error}");
    // Nothing else works, and everything says so.
    assert!(matches!(
        h.session.synchronize(Wait::Device),
        Err(Error::Ended)
    ));
    assert!(matches!(h.session.read(data.address, 4), Err(Error::Ended)));
    let report = h.report();
    assert_eq!(report.outcome, Outcome::Trap);
    assert!(
        report
            .message
            .as_deref()
            .is_some_and(|m| m.contains("clash_and_die")),
        "{:?}",
        report.message
    );
    assert!(!report.races.is_empty());
    assert_eq!(report.stats.checked_accesses, None);
}

#[test]
fn a_wild_access_names_the_users_address() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let spec = h.spec("wild", h.default).arg(Arg::Pointer(data.address));
    h.session.launch(&spec).unwrap();
    let report = h.report();
    assert_eq!(report.outcome, Outcome::Fault);
    let message = report.message.unwrap();
    let wanted = format!(
        "the shadow of 0x{:x}, in no buffer",
        data.address + (1 << 30)
    );
    assert!(
        message.contains(&wanted) || message.contains(&format!("{:x}", data.address + (1 << 30))),
        "{message}"
    );
}

#[test]
fn a_kernel_without_end_uses_up_its_budget() {
    let _turn = simulator(|c| c.step_budget = 200_000);
    let mut h = Host::new();
    let data = h.buffer("data");
    let spec = h
        .spec("clash_forever", h.default)
        .arg(Arg::Pointer(data.address));
    h.session.launch(&spec).unwrap();
    let report = h.report();
    assert!(
        matches!(report.outcome, Outcome::Budget | Outcome::Deadlock),
        "{:?}",
        report.outcome
    );
    assert!(!report.races.is_empty());
}

#[test]
fn the_watchdog_reports_what_a_hanging_run_has_found() {
    let _turn = simulator(|c| c.step_budget = 60_000_000);
    let (send, receive) = mpsc::channel();
    let builder = Session::builder().watchdog(Duration::from_millis(200), move |report| {
        send.send(report).unwrap()
    });
    let mut h = Host::with(builder.build().unwrap());
    let data = h.buffer("data");
    let spec = h
        .spec("clash_forever", h.default)
        .arg(Arg::Pointer(data.address));
    h.session.launch(&spec).unwrap();
    let _ = h.session.synchronize(Wait::Device);
    let report = receive.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(report.outcome, Outcome::Budget);
    assert!(!report.races.is_empty());
    assert_eq!(report.races[0].buffer.as_deref(), Some("data"));
}

#[test]
fn a_session_can_follow_one_that_died() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let spec = h
        .spec("clash_and_die", h.default)
        .arg(Arg::Pointer(data.address));
    h.session.launch(&spec).unwrap();
    assert_eq!(h.report().outcome, Outcome::Trap);
    gsan_sim::driver::reset();
    let mut h = Host::new();
    let data = h.buffer("data");
    h.put(data, 1, h.default);
    assert_eq!(h.races(), vec![]);
}
