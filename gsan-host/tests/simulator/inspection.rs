//! Looking into the detector's state.

use crate::support::{BYTES, Host, WORDS, simulator};
use gsan_device::layout::{LAYOUT_VERSION, Scope};
use gsan_host::{CellState, Error, Session};

#[test]
fn the_global_state_is_what_was_asked_for() {
    let _turn = simulator(|c| c.sms = 3);
    let mut session = Session::builder()
        .slots_per_sm(Some(2))
        .clock_buffer_size(Some(17))
        .seed(12345)
        .build()
        .unwrap();
    let state = session.global_state(0).unwrap().unwrap();
    assert_eq!(
        (
            state.version,
            state.num_sms,
            state.slots_per_sm,
            state.num_threads
        ),
        (LAYOUT_VERSION, 3, 2, 6)
    );
    assert_eq!(
        (
            state.clock_buffer_size,
            state.seed,
            state.device,
            state.num_devices
        ),
        (17, 12345, 0, 1)
    );
    assert_eq!(state.shadow_base, state.real_base + state.real_size);
    assert!(matches!(
        session.global_state(1),
        Err(Error::NoSuchDevice { .. })
    ));
    for id in 0..6 {
        let thread = session.thread_state(id).unwrap().unwrap();
        assert_eq!((thread.state.thread_id, thread.state.epoch), (id, 0));
        assert_eq!(thread.clock, vec![0; 6]);
    }
    assert_eq!(session.thread_state(6).unwrap(), None);
}

#[test]
fn a_store_leaves_its_clock_and_a_load_its_own() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (data, out) = (h.buffer("data"), h.buffer("out"));
    assert!(
        wide(&mut h, data.address)
            .records
            .iter()
            .all(|r| r.is_empty())
    );
    h.put(data, 1, h.default);
    for word in [0, u64::from(WORDS) - 1] {
        let cell = wide(&mut h, data.address + 4 * word);
        let write = cell.records[0];
        assert!(write.writes() && write.mask() == 15 && write.op().scope() == Scope::None);
        assert!(cell.sync.is_empty() && cell.num_reads == 0 && cell.state == 0);
        assert!(cell.records[1..].iter().all(|r| r.is_empty()));
        let writer = h.session.thread_state(write.thread()).unwrap().unwrap();
        assert!(writer.state.epoch >= write.epoch());
        // What the kernel did is in its stream's clock.
        let known = h.session.stream_clock(h.default).unwrap();
        assert!(known[write.thread() as usize] >= write.epoch());
    }
    h.get(data, out, h.default);
    let cell = wide(&mut h, data.address);
    assert_eq!(cell.num_reads, 1);
    assert!(cell.records[0].writes() && !cell.records[1].is_empty() && !cell.records[1].writes());
    assert_eq!(h.session.shadow_cell(16).unwrap(), None);
    let counters = h.session.counters(0).unwrap().unwrap();
    assert_eq!(
        (counters.checked, counters.unchecked),
        (3 * u64::from(WORDS), 0)
    );
    assert_eq!(BYTES, 4 * u64::from(WORDS));
}

fn wide(h: &mut Host, address: u64) -> gsan_device::layout::WideCell {
    match h.session.shadow_cell(address).unwrap().unwrap() {
        CellState::Wide(cell) => cell,
        other => panic!("not the default format: {other:?}"),
    }
}
