//! Buffers and their shadow.

use crate::support::{BYTES, Host, WORDS, simulator};
use gsan_host::report::PastEnd;
use gsan_host::{Buffer, CellFormat, Error, ErrorKind, MemoryKind, Session, StreamFlags};

#[test]
fn wrong_frees_are_told_and_change_nothing() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    for wrong in [data.address + 4, data.address - 4, 0, u64::MAX] {
        assert!(
            matches!(h.session.free(wrong, None), Err(Error::NotABuffer { .. })),
            "{wrong:#x}"
        );
    }
    let inside = h
        .session
        .free(data.address + 4, None)
        .unwrap_err()
        .to_string();
    assert!(inside.contains("inside `data`"), "{inside}");
    let variable = h
        .session
        .variable(h.module, "counter", 0)
        .unwrap()
        .unwrap()
        .0;
    assert!(h.session.free(variable, None).is_err());
    h.session.free(data.address, None).unwrap();
    let twice = h.session.free(data.address, None).unwrap_err();
    assert!(twice.to_string().contains("freed before"), "{twice}");
    assert_eq!(twice.kind(), ErrorKind::Input);
}

#[test]
fn reused_memory_starts_with_a_clean_shadow() {
    for (seed, bytes) in (0..16).flat_map(|seed| [(seed, BYTES), (seed, 4 << 20)]) {
        let _turn = simulator(|c| c.seed = seed);
        let mut h = Host::new();
        // Keeps the granule that small buffers share, with what is in its shadow.
        h.buffer("keeper");
        let (a, b) = (
            h.stream("a"),
            h.session.stream("b", StreamFlags::NonBlocking, 0).unwrap(),
        );
        let first = h
            .session
            .alloc("first", bytes, MemoryKind::Device, 0)
            .unwrap();
        h.put(first, 1, a);
        // Ordered after the work on `a`; `b` is ordered with nothing.
        h.session.free(first.address, Some(a)).unwrap();
        let second = h
            .session
            .alloc("second", bytes, MemoryKind::Device, 0)
            .unwrap();
        assert_eq!(second.address, first.address);
        h.put(second, 2, b);
        assert_eq!(h.races(), vec![]);
    }
}

#[test]
fn many_small_buffers_share_memory_without_sharing_cells() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let buffers: Vec<_> = (0..64)
        .map(|i| {
            h.session
                .alloc(&format!("b{i}"), 4 + i, MemoryKind::Device, 0)
                .unwrap()
        })
        .collect();
    let mut addresses: Vec<u64> = buffers.iter().map(|b| b.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 64);
    assert!(addresses.iter().all(|a| a.is_multiple_of(256)));
    assert!(
        addresses[63] - addresses[0] < 2 << 20,
        "one granule holds them all"
    );
    for b in buffers {
        h.session.free(b.address, None).unwrap();
    }
}

#[test]
fn a_buffer_larger_than_the_device_is_refused_with_the_numbers() {
    let _turn = simulator(|c| c.memory_bytes = 1 << 30);
    let mut h = Host::new();
    for bytes in [512 << 20, 1 << 40, 1 << 60, u64::MAX] {
        let error = h
            .session
            .alloc("huge", bytes, MemoryKind::Device, 0)
            .unwrap_err();
        assert!(matches!(error, Error::BufferTooLarge { .. }), "{error}");
        assert!(error.to_string().contains("shadow"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Input);
    }
    // Nothing is lost: the session goes on.
    let data = h.buffer("data");
    h.put(data, 3, h.default);
    assert_eq!(h.words(data), vec![3; WORDS as usize]);
    assert_eq!(h.races(), vec![]);
}

#[test]
fn an_empty_buffer_is_refused() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    for kind in [
        MemoryKind::Device,
        MemoryKind::Pinned,
        MemoryKind::Managed,
        MemoryKind::Foreign,
    ] {
        assert!(matches!(
            h.session.alloc("none", 0, kind, 0),
            Err(Error::EmptyBuffer)
        ));
    }
}

#[test]
fn memory_of_every_kind_is_written_by_kernels_and_read_by_the_host() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    for kind in [
        MemoryKind::Device,
        MemoryKind::Pinned,
        MemoryKind::Managed,
        MemoryKind::Foreign,
    ] {
        let buffer = h.session.alloc("b", BYTES, kind, 0).unwrap();
        h.put(buffer, 5, h.default);
        assert_eq!(h.words(buffer), vec![5; WORDS as usize], "{kind:?}");
        h.session.write(buffer.address, &[1, 0, 0, 0]).unwrap();
        assert_eq!(h.words(buffer)[..2], [1, 5], "{kind:?}");
        h.session.free(buffer.address, None).unwrap();
    }
    let report = h.report();
    assert_eq!(report.races, vec![]);
    // Three of the four kinds are not shadowed, and the report says how much that was.
    assert_eq!(report.stats.unchecked_accesses, Some(3 * u64::from(WORDS)));
    // The host's write is one more.
    assert_eq!(report.stats.checked_accesses, Some(u64::from(WORDS) + 1));
}

#[test]
fn copies_and_fills_are_done_in_the_stream() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let (from, to) = (h.buffer("from"), h.buffer("to"));
    let s = h.stream("s");
    h.session.memset(from.address, 1, BYTES, s).unwrap();
    h.session.copy(to.address, from.address, BYTES, s).unwrap();
    let read = h.session.read_async(to.address, 8, s).unwrap();
    h.session.memset(to.address, 0, BYTES, s).unwrap();
    assert_eq!(h.session.take_read(read).unwrap(), vec![1; 8]);
    assert!(matches!(h.session.take_read(read), Err(Error::UnknownRead)));
    assert_eq!(h.words(to), vec![0; WORDS as usize]);
}

#[test]
fn accesses_beyond_a_buffer_are_refused() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let end = data.address + BYTES;
    assert!(matches!(
        h.session.read(end, 1),
        Err(Error::OutOfBounds { .. })
    ));
    assert!(matches!(
        h.session.read(data.address, BYTES + 1),
        Err(Error::OutOfBounds { .. })
    ));
    assert!(matches!(
        h.session.write(end - 1, &[0, 0]),
        Err(Error::OutOfBounds { .. })
    ));
    assert!(matches!(
        h.session.memset(data.address, 0, u64::MAX, h.default),
        Err(Error::OutOfBounds { .. })
    ));
    assert!(matches!(
        h.session.copy(data.address, 16, 4, h.default),
        Err(Error::OutOfBounds { .. })
    ));
    h.session.read(end - 1, 1).unwrap();
}

#[test]
fn sessions_follow_each_other_in_one_process() {
    let _turn = simulator(|_| ());
    for _ in 0..3 {
        let mut h = Host::new();
        let data = h.buffer("data");
        h.clash(data, h.default);
        assert!(!h.races().is_empty());
    }
    assert!(
        Session::builder()
            .devices(&[7])
            .build()
            .is_err_and(|e| e.to_string().contains("no device 7"))
    );
    assert!(
        Session::builder()
            .devices(&[0, 0])
            .build()
            .is_err_and(|e| e.to_string().contains("twice"))
    );
    assert!(Session::builder().devices(&[]).build().is_err());
    let devices = gsan_host::list_devices().unwrap();
    assert!(devices.len() == 1 && devices[0].simulated);
}

/// `put` with one block more than the buffer has room for: most of what it writes there is nobody's.
fn past_the_end(format: CellFormat, bytes: u64) -> Vec<PastEnd> {
    let _turn = simulator(|_| ());
    let mut h = Host::with(Session::builder().cell(format).build().unwrap());
    let short = h
        .session
        .alloc("short", bytes, MemoryKind::Device, 0)
        .unwrap();
    let whole = h.buffer("whole");
    h.put(short, 1, h.default);
    h.put(whole, 2, h.default);
    let report = h.report();
    assert!(report.races.is_empty(), "{:?}", report.races);
    report.past_end
}

#[test]
fn accesses_past_a_buffers_end_are_told() {
    let found = past_the_end(CellFormat::Wide, BYTES - 40);
    let [past] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (past.buffer.as_str(), past.past, past.words),
        ("short", 0, 10)
    );
    let side = &past.access;
    assert_eq!(
        (side.kernel.as_deref(), side.block),
        (Some("put"), Some([7, 0, 0]))
    );
    assert_eq!(side.thread, Some([22, 0, 0]));
    assert!(side.site.is_some());
    let coarse = past_the_end(CellFormat::Reference, BYTES - 40);
    assert_eq!(coarse.len(), 1);
    assert_eq!((coarse[0].words, &coarse[0].access.site), (10, &None));
}

#[test]
fn what_stays_in_the_buffer_is_not_told() {
    for format in [CellFormat::Wide, CellFormat::Reference] {
        assert_eq!(past_the_end(format, BYTES), []);
        assert_eq!(past_the_end(format, BYTES + 8), []);
        // The last word is the buffer's in part.
        assert_eq!(past_the_end(format, BYTES - 3), []);
    }
}

#[test]
fn a_power_of_two_has_a_guard_behind_it_and_a_large_buffer_its_mapping() {
    let one_more = |bytes: u64| {
        let _turn = simulator(|_| ());
        let mut h = Host::new();
        let buffer = h.session.alloc("b", bytes, MemoryKind::Device, 0).unwrap();
        let next = h.buffer("next");
        let at = Buffer {
            address: buffer.address + bytes - BYTES + 4,
            ..buffer
        };
        h.put(at, 1, h.default);
        let found = h.report().past_end;
        assert!(next.address != buffer.address + bytes);
        found.iter().map(|p| (p.past, p.words)).collect::<Vec<_>>()
    };
    assert_eq!(one_more(2 * BYTES), [(0, 1)]);
    assert_eq!(one_more((1 << 20) + 4096), [(0, 1)]);
}

/// A caching allocator hands a block out again that it has never given back.
#[test]
fn what_is_forgotten_starts_clean() {
    for forget in [true, false] {
        let _turn = simulator(|c| c.seed = 4);
        let mut h = Host::new();
        let data = h.buffer("data");
        let (a, b) = (h.stream("a"), h.stream("b"));
        h.put(data, 1, a);
        // The old owner has ended; that the allocator knows it is not told.
        h.words(data);
        if forget {
            h.session.forget(data.address, data.bytes, b).unwrap();
        }
        h.put(data, 2, b);
        assert_eq!(h.races().is_empty(), forget);
    }
}

#[test]
fn a_part_may_be_forgotten_and_only_it_is() {
    let _turn = simulator(|c| c.seed = 4);
    let mut h = Host::new();
    let data = h.buffer("data");
    let (a, b) = (h.stream("a"), h.stream("b"));
    h.put(data, 1, a);
    h.words(data);
    h.session
        .forget(data.address + 8, data.bytes - 8, b)
        .unwrap();
    h.put(data, 2, b);
    let races = h.races();
    assert!(!races.is_empty());
    assert!(races.iter().all(|r| r.offset < Some(8)), "{races:?}");
    let mut h = Host::new();
    let data = h.buffer("data");
    let s = h.default;
    assert!(h.session.forget(data.address + 8, data.bytes, s).is_err());
    assert!(h.session.forget(data.address, 0, s).is_ok());
}
