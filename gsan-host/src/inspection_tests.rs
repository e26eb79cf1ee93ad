use super::*;
use crate::catalogue::ModuleNames;
use crate::report::{LaunchInfo, Site};
use std::convert::Infallible;

/// Thread 3 with two tenants and one snapshot.
struct Fake {
    tenants: Vec<Tenant>,
    snapshot: Snapshot,
    head: u32,
}

impl State for Fake {
    type Error = Infallible;

    fn tenants(&mut self, thread: u32) -> Result<Vec<Tenant>, Infallible> {
        Ok(if thread == 3 {
            self.tenants.clone()
        } else {
            Vec::new()
        })
    }

    fn snapshot(
        &mut self,
        thread: u32,
        _: u32,
    ) -> Result<Option<(Snapshot, Vec<Epoch>)>, Infallible> {
        Ok((thread == 3).then(|| (self.snapshot, vec![0, 5, 0, 9])))
    }

    fn newest_token(&mut self, _: u32) -> Result<u32, Infallible> {
        Ok(self.head)
    }
}

fn tenancy(start_epoch: Epoch, launch_id: u32, x: u32) -> Tenant {
    Tenant {
        start_epoch,
        launch_id,
        block: [x, 0, 0],
        ..Tenant::default()
    }
}

fn fake() -> Fake {
    Fake {
        tenants: vec![tenancy(7, 1, 5), tenancy(2, 0, 4)],
        snapshot: Snapshot {
            token: 0x2_0001,
            epoch: 8,
            event: ScalarClock::access(0, 3, Scope::Gpu),
            joined: 0,
            partials: Default::default(),
        },
        head: 0x2_0005,
    }
}

fn names() -> Catalogue {
    let mut names = Catalogue::default();
    names.add_memory("data", 0x1000, 64);
    names.modules.push(ModuleNames {
        name: "a.ptx".into(),
        sites: vec![Site {
            file: "a.cu".into(),
            line: 12,
            column: None,
            ptx_line: 80,
            function: "k".into(),
            inlined_at: vec![],
            called_from: Vec::new(),
            near: Vec::new(),
        }],
        ..Default::default()
    });
    for id in 0..2 {
        names.launches.push(LaunchInfo {
            id,
            kernel: format!("k{id}"),
            module: "a.ptx".into(),
            grid: [8, 1, 1],
            block: [8, 8, 1],
            stream: None,
        });
    }
    names
}

fn record(epoch: Epoch, thread: u32, site: u32) -> WideRecord {
    let op = Op::new(Access::Store, 2, Order::Release, Scope::Gpu);
    WideRecord::new(epoch, thread, 10, 0b1100, op, site)
}

fn described(cell: WideCell) -> WordView {
    wide(0x1008, &cell, &mut fake(), &names()).unwrap()
}

#[test]
fn a_wide_record_gets_launch_block_thread_and_line_of_its_time() {
    let mut cell = WideCell::default();
    cell.records[0] = record(6, 3, 0);
    cell.records[2] = record(7, 3, 0);
    cell.num_reads = 4;
    cell.state = (WideCell::DROPPED >> 16) as u16;
    let word = described(cell);
    assert_eq!(
        (word.buffer.as_deref(), word.offset, word.reads),
        (Some("data"), Some(8), 4)
    );
    assert!(word.dropped && word.release.is_none() && !word.is_empty());
    let [first, second] = &word.accesses[..] else {
        panic!("{word:?}");
    };
    assert_eq!((first.thread, first.epoch), (3, Some(6)));
    assert_eq!((first.bytes, first.element_size), (0b1100, Some(2)));
    let side = &first.side;
    assert_eq!((side.launch, side.kernel.as_deref()), (Some(0), Some("k0")));
    assert_eq!(
        (side.block, side.thread),
        (Some([4, 0, 0]), Some([2, 1, 0]))
    );
    assert_eq!(side.site.as_ref().map(|s| s.line), Some(12));
    assert_eq!(
        (side.order, side.scope),
        (Some(Order::Release), Some(Scope::Gpu))
    );
    assert_eq!(second.side.launch, Some(1));
    assert_eq!(second.side.block, Some([5, 0, 0]));
}

#[test]
fn what_the_history_has_forgotten_is_not_guessed() {
    let mut cell = WideCell::default();
    // Before the oldest tenant; and of a thread that has none.
    cell.records[0] = record(1, 3, 0);
    cell.records[1] = record(9, 2, 0);
    for access in described(cell).accesses {
        let side = access.side;
        assert_eq!((side.launch, side.block, side.thread), (None, None, None));
        assert!(side.site.is_none() && side.access == Some(Access::Store));
    }
    let mut state = fake();
    state.tenants[0].shared = 1;
    let mut cell = WideCell::default();
    cell.records[0] = record(8, 3, 0);
    let word = wide(0x1008, &cell, &mut state, &names()).unwrap();
    assert_eq!(word.accesses[0].side.block, None);
}

#[test]
fn an_operation_of_the_host_is_named() {
    let mut state = fake();
    state.tenants[0] = tenancy(7, HostOperation::Memset.id(1), 0);
    let mut cell = WideCell::default();
    cell.records[0] = record(7, 3, u32::MAX);
    let word = wide(0x1000, &cell, &mut state, &names()).unwrap();
    assert_eq!(word.accesses[0].side.host_operation(), Some("memset"));
    let view = tenant(&state.tenants[0], &names());
    assert_eq!(
        (view.launch, view.kernel.as_deref(), view.block),
        (None, Some("memset"), None)
    );
}

#[test]
fn a_release_shows_its_clock_while_the_ring_has_it() {
    let cell = |token| WideCell {
        sync: SyncClock::new(token, 3, Scope::Sys),
        ..WideCell::default()
    };
    let release = described(cell(0x2_0001)).release.unwrap();
    assert_eq!(
        (release.thread, release.token, release.scope),
        (3, 0x2_0001, Scope::Sys)
    );
    let snapshot = release.snapshot.unwrap();
    assert_eq!(
        (snapshot.clock, snapshot.joined),
        (vec![(1, 5), (3, 9)], false)
    );
    assert_eq!(described(cell(7)).release.unwrap().snapshot, None);
    let mut state = fake();
    state.snapshot.partials[0] = PartialClock::new(3, 2, 11);
    let word = wide(0x1008, &cell(0x2_0001), &mut state, &names()).unwrap();
    let one = WarpClock {
        thread: 3,
        warp: 2,
        epoch: 11,
    };
    assert_eq!(word.release.unwrap().snapshot.unwrap().warps, [one]);
}

#[test]
fn a_reference_cell_has_a_writer_and_readers() {
    let mut cell = ShadowCell {
        write: ScalarClock::release(0x2_0001, 3, Scope::Gpu),
        num_reads: 2,
        ..ShadowCell::default()
    };
    cell.reads[1] = ScalarClock(ScalarClock::access(3, 3, Scope::None).0 | ScalarClock::OBSERVED);
    let word = reference(0x1000, &cell, &mut fake(), &names()).unwrap();
    let [write, read] = &word.accesses[..] else {
        panic!("{word:?}");
    };
    // The token's upper half comes from the ring's head, the epoch from the snapshot.
    assert_eq!(word.release.as_ref().map(|r| r.token), Some(0x2_0001));
    assert_eq!((write.epoch, write.side.launch), (Some(8), Some(1)));
    assert_eq!(
        (write.side.order, write.side.scope),
        (None, Some(Scope::Gpu))
    );
    assert_eq!((read.epoch, read.side.launch), (Some(3), Some(0)));
    assert_eq!(
        (read.side.access, read.side.order),
        (Some(Access::Load), Some(Order::Weak))
    );
    assert!(read.observed && !write.observed && read.element_size.is_none());
    assert_eq!(read.side.thread, None);

    let mut state = fake();
    state.snapshot.epoch = 0;
    let offer = reference(0x1000, &cell, &mut state, &names()).unwrap();
    assert_eq!(offer.accesses.len(), 1, "an offer names no write");
    state.snapshot.token = 1;
    let lost = reference(0x1000, &cell, &mut state, &names()).unwrap();
    assert_eq!((lost.accesses[0].thread, lost.accesses[0].epoch), (3, None));
    assert_eq!(lost.release.unwrap().snapshot, None);
}

#[test]
fn an_empty_cell_is_empty_in_both_formats() {
    assert!(described(WideCell::default()).is_empty());
    let word = reference(0x9000, &ShadowCell::default(), &mut fake(), &names()).unwrap();
    assert!(word.is_empty() && word.buffer.is_none());
}

#[test]
fn the_history_is_read_from_the_latest_on() {
    let ring: Vec<Tenant> = (0..4).map(|n| tenancy(10 + n, n, 0)).collect();
    let starts = |count| -> Vec<Epoch> {
        in_order(&ring, count)
            .iter()
            .map(|t| t.start_epoch)
            .collect()
    };
    assert_eq!(starts(0), []);
    assert_eq!(starts(2), [11, 10]);
    // Five tenancies: the fifth is at place 0, the oldest kept at place 1.
    assert_eq!(starts(5), [10, 13, 12, 11]);
    assert_eq!(in_order(&[], 3), []);
}

proptest::proptest! {
    /// Damaged shadow is shown as it is; nothing in it can break the tool.
    #[test]
    fn any_bits_are_decoded(wide_bits: [u32; 16], scalar_bits: [u32; 6], tenant_bits: [[u32; 7]; 3], head: u32) {
        let mut state = fake();
        state.head = head;
        state.tenants = tenant_bits.iter().map(|t| bytemuck::cast(*t)).collect();
        let names = names();
        let cell: WideCell = bytemuck::pod_read_unaligned(bytemuck::bytes_of(&wide_bits));
        let word = wide(0x1000, &cell, &mut state, &names).unwrap();
        let kept = cell.records.iter().filter(|r| !r.is_empty()).count();
        proptest::prop_assert_eq!(word.accesses.len(), kept);
        let cell: ShadowCell = bytemuck::pod_read_unaligned(bytemuck::bytes_of(&scalar_bits));
        let word = reference(u64::MAX, &cell, &mut state, &names).unwrap();
        proptest::prop_assert!(word.accesses.len() <= 5 && word.buffer.is_none());
        for t in &state.tenants {
            let view = tenant(t, &names);
            proptest::prop_assert_eq!(view.shared, t.shared != 0);
        }
    }
}
