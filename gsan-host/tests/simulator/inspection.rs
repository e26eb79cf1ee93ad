//! Looking into the detector's state.

use crate::support::{BYTES, Host, KERNELS, WORDS, simulator};
use gsan_device::layout::{Access, LAYOUT_VERSION, Scope};
use gsan_host::inspection::WordView;
use gsan_host::{CellFormat, CellState, Error, MemoryKind, Session};

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
        assert_eq!((thread.state.thread_id(), thread.state.epoch), (id, 0));
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

fn described(h: &mut Host, address: u64, bytes: u64) -> Vec<WordView> {
    h.session.describe_words(address, bytes).unwrap().unwrap()
}

#[test]
fn words_are_described_with_launch_block_thread_and_line() {
    for format in [CellFormat::Wide, CellFormat::Reference] {
        let _turn = simulator(|_| ());
        let mut h = Host::with(Session::builder().cell(format).build().unwrap());
        let (data, out) = (h.buffer("data"), h.buffer("out"));
        h.put(data, 1, h.default);
        h.get(data, out, h.default);
        // From inside a word on: the word counts.
        let words = described(&mut h, data.address + 4 * 33 + 2, 8);
        let places: Vec<_> = words.iter().map(|w| w.offset).collect();
        assert_eq!(places, [Some(132), Some(136), Some(140)]);
        let word = &words[0];
        assert_eq!(
            (word.buffer.as_deref(), word.format, word.reads),
            (Some("data"), format, 1)
        );
        let [write, read] = &word.accesses[..] else {
            panic!("{word:?}");
        };
        // Word 33 is written by thread 1 of block 1, and read by the one that counts from the other end.
        for (access, what, launch, block, thread) in [
            (write, Access::Store, 0, 1, 1),
            (read, Access::Load, 1, 6, 30),
        ] {
            let side = &access.side;
            assert_eq!((side.access, side.launch), (Some(what), Some(launch)));
            assert_eq!(side.block, Some([block, 0, 0]));
            let state = h.session.thread_state(access.thread).unwrap().unwrap();
            assert!(access.epoch.unwrap() <= state.state.epoch);
            if format == CellFormat::Reference {
                assert_eq!((side.thread, &side.site), (None, &None));
                continue;
            }
            assert_eq!(side.thread, Some([thread, 0, 0]));
            let line = side.site.as_ref().unwrap().ptx_line as usize;
            let text = KERNELS.lines().nth(line - 1).unwrap();
            let instruction = ["ld.global", "st.global"][usize::from(what == Access::Store)];
            assert!(text.contains(instruction), "{text}");
        }
        assert!(matches!(
            h.session.describe_words(data.address, BYTES + 1),
            Err(Error::OutOfBounds { .. })
        ));
        assert!(h.races().is_empty());
    }
}

#[test]
fn module_variables_and_memory_without_shadow() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    assert_eq!(h.session.variables(h.module).unwrap(), ["counter"]);
    let (counter, bytes) = h.session.variable(h.module, "counter", 0).unwrap().unwrap();
    assert!(described(&mut h, counter, bytes)[0].is_empty());
    let spec = h.spec("bump", h.default);
    h.session.launch(&spec).unwrap();
    let word = &described(&mut h, counter, bytes)[0];
    assert_eq!(word.buffer.as_deref(), Some("counter"));
    assert!(
        word.accesses
            .iter()
            .any(|a| a.side.access == Some(Access::Store))
    );
    let pinned = h.session.alloc("p", 64, MemoryKind::Pinned, 0).unwrap();
    assert_eq!(h.session.describe_words(pinned.address, 4).unwrap(), None);
    let freed = h.buffer("freed");
    h.session.free(freed.address, None).unwrap();
    assert_eq!(h.session.shadow_cell(freed.address).unwrap(), None);
}

#[test]
fn a_thread_has_tenants_and_a_clock() {
    let _turn = simulator(|c| {
        c.sms = 2;
        c.blocks_per_sm = 1;
    });
    let session = Session::builder().slots_per_sm(Some(1)).build().unwrap();
    let mut h = Host::with(session);
    let data = h.buffer("data");
    h.put(data, 1, h.default);
    h.session
        .memset(data.address, 0, data.bytes, h.default)
        .unwrap();
    let thread = h.session.describe_thread(1).unwrap().unwrap();
    assert_eq!((thread.device, thread.sm, thread.slot), (0, 1, 0));
    assert_eq!(thread.state.tenants as usize, thread.tenants.len());
    assert!(thread.clock.contains(&(1, thread.state.epoch)));
    let both: Vec<_> = (0..2)
        .flat_map(|id| h.session.describe_thread(id).unwrap().unwrap().tenants)
        .collect();
    // Eight blocks and what the host did.
    let blocks = both.iter().filter(|t| t.launch == Some(0));
    let mut x: Vec<_> = blocks.map(|t| t.block.unwrap()[0]).collect();
    x.sort();
    assert_eq!(x, (0..8).collect::<Vec<_>>());
    assert!(
        both.iter()
            .any(|t| t.launch.is_none() && t.kernel.as_deref() == Some("memset"))
    );
    for thread in [0, 1] {
        let tenants = h.session.describe_thread(thread).unwrap().unwrap().tenants;
        assert!(tenants.is_sorted_by(|a, b| a.start_epoch > b.start_epoch));
    }
    assert_eq!(h.session.describe_thread(2).unwrap(), None);
}
