//! From race records to findings.
//!
//! Records lie in page-locked host memory and can be read at any time, by any thread, whatever becomes of the context.
//! Exact counts are in device memory and need a living one.

use crate::catalogue::{Catalogue, HostOperation};
use crate::driver::PinnedMemory;
use crate::report::{
    Access, Flag, LaunchInfo, Misses, Race, RaceClass, RaceKind, Scope, Side, Site, Stats,
};
use gsan_device::layout::{Counters, RaceKey, RaceRecord, RaceSide, WORD};
use std::sync::atomic::{AtomicU32, Ordering};

/// `RaceRecord::state` of a complete record.
const COMPLETE: u32 = 2;
const WORDS: usize = size_of::<RaceRecord>() / 4;

/// The records of one device, for reading.
pub(crate) struct RecordView {
    words: *const AtomicU32,
    records: usize,
}

// SAFETY: the memory is only read, through atomics; whoever makes a view keeps the memory alive (`RecordView::new`).
unsafe impl Send for RecordView {}

impl RecordView {
    /// A view of a device's records.
    ///
    /// # Safety
    /// The memory outlives the view.
    pub(crate) unsafe fn new(memory: &PinnedMemory) -> RecordView {
        let records = memory.bytes as usize / size_of::<RaceRecord>();
        RecordView {
            words: memory.host().cast_const().cast(),
            records,
        }
    }

    /// The complete records with their index.
    pub(crate) fn complete(&self) -> Vec<(usize, RaceRecord)> {
        (0..self.records)
            .filter_map(|i| Some((i, self.read(i)?)))
            .collect()
    }

    fn read(&self, index: usize) -> Option<RaceRecord> {
        // SAFETY: `index < records`, so the words lie in the memory, which lives (see `new`) and is page-aligned.
        let words = unsafe { std::slice::from_raw_parts(self.words.add(index * WORDS), WORDS) };
        // The state is the first word, written last.
        if words[0].load(Ordering::Acquire) != COMPLETE {
            return None;
        }
        let mut copy = [0u32; WORDS];
        for (to, from) in copy.iter_mut().zip(words) {
            *to = from.load(Ordering::Relaxed);
        }
        Some(bytemuck::pod_read_unaligned(bytemuck::bytes_of(&copy)))
    }
}

/// Turns a device's records into findings. `keys` are the exact counts, if they could be read.
pub(crate) fn findings(
    records: &[(usize, RaceRecord)],
    keys: Option<&[RaceKey]>,
    names: &Catalogue,
) -> Vec<Race> {
    records
        .iter()
        .filter_map(|(index, record)| finding(record, keys.and_then(|k| k.get(*index)), names))
        .collect()
}

fn finding(record: &RaceRecord, key: Option<&RaceKey>, names: &Catalogue) -> Option<Race> {
    let current = &record.current;
    let launch = knows(current, RaceSide::LAUNCH).then_some(current.launch_id);
    let memory = names.memory_at(record.address, launch);
    let size = if knows(current, RaceSide::OP) {
        current.op.size()
    } else {
        WORD as u32
    };
    Some(Race {
        kind: kind(record.kind)?,
        class: class(record.class)?,
        count: u64::from(key.map_or(0, |k| k.count).max(record.count).max(1)),
        schedules: 1,
        address: record.address,
        buffer: memory.map(|(name, _)| name.to_string()),
        offset: memory.map(|(_, offset)| offset),
        size,
        current: side(current, names),
        prior: side(&record.prior, names),
        flag: flag(record, names),
    })
}

fn flag(record: &RaceRecord, names: &Catalogue) -> Option<Flag> {
    if record.flag.known == 0 {
        return None;
    }
    let access = side(&record.flag, names);
    let memory = names.memory_at(record.flag_address, access.launch);
    Some(Flag {
        address: record.flag_address,
        buffer: memory.map(|(name, _)| name.to_string()),
        offset: memory.map(|(_, offset)| offset),
        access,
    })
}

fn knows(side: &RaceSide, what: u32) -> bool {
    side.known & what != 0
}

/// A side in words.
pub(crate) fn side(side: &RaceSide, names: &Catalogue) -> Side {
    let launch = knows(side, RaceSide::LAUNCH).then_some(side.launch_id);
    if let Some((operation, launches)) = launch.and_then(HostOperation::of_id)
        && launches as usize <= names.launches.len()
    {
        // Which of the touching kernel's blocks and threads it was means nothing to the user.
        return Side {
            launch: None,
            kernel: Some(operation.word().to_string()),
            block: None,
            thread: None,
            access: Some(side.op.access()),
            order: Some(side.op.order()),
            scope: None,
            site: None,
        };
    }
    let info = launch.and_then(|id| names.launches.get(id as usize));
    let scope = side.op.scope();
    let (access, order) = if side.op.is_attempt() {
        (Access::Cas, None)
    } else {
        (side.op.access(), Some(side.op.order()))
    };
    Side {
        launch,
        kernel: info.map(|l| l.kernel.clone()),
        block: knows(side, RaceSide::BLOCK).then_some(side.block),
        thread: thread(side, info),
        access: Some(access),
        order,
        scope: (scope != Scope::None).then_some(scope),
        site: site(side, info.map(|l| l.kernel.as_str()), names),
    }
}

/// The thread's index; some formats keep only its linear one.
fn thread(side: &RaceSide, launch: Option<&LaunchInfo>) -> Option<[u32; 3]> {
    if knows(side, RaceSide::THREAD) {
        return Some(side.thread);
    }
    let [x, y, _] = launch
        .filter(|_| knows(side, RaceSide::LINEAR_THREAD))?
        .block;
    let linear = side.thread[0];
    let row = linear.checked_div(x)?;
    Some([linear % x, row.checked_rem(y)?, row / y])
}

fn site(side: &RaceSide, kernel: Option<&str>, names: &Catalogue) -> Option<Site> {
    if !knows(side, RaceSide::SITE) {
        return None;
    }
    if !knows(side, RaceSide::LINKED_SITE) {
        return names.site(side.module_id, side.site).cloned();
    }
    // A hand-linked module tells line and column. The file is that of the kernel, which is right where the accesses are
    // written in the same file; the PTX itself would be wrong for certain.
    let module = names.modules.get(side.module_id as usize)?;
    let file = kernel.and_then(|k| module.linked_files.get(k));
    Some(Site {
        file: file.map_or_else(|| format!("<source of {}>", module.name), String::clone),
        line: side.site >> 10,
        column: Some(side.site & 0x3ff).filter(|&c| c != 0),
        ptx_line: 0,
        function: kernel.unwrap_or_default().to_string(),
        inlined_at: Vec::new(),
        called_from: Vec::new(),
        near: Vec::new(),
    })
}

fn kind(raw: u32) -> Option<RaceKind> {
    [RaceKind::Raw, RaceKind::War, RaceKind::Waw]
        .into_iter()
        .find(|&k| k as u32 == raw)
}

fn class(raw: u32) -> Option<RaceClass> {
    use RaceClass::*;
    [
        Race,
        ScopeTooNarrow,
        MissingAcquire,
        MissingRelease,
        MixedWidth,
        StaleNc,
        IntraBlock,
    ]
    .into_iter()
    .find(|&c| c as u32 == raw)
}

/// Adds a device's tallies, or says that they are not known.
pub(crate) fn add_counters(stats: &mut Stats, counters: Option<&Counters>, first: bool) {
    let add = |total: &mut Option<u64>, more: Option<u64>| {
        let before = if first { Some(0) } else { *total };
        *total = before.zip(more).map(|(a, b)| a.saturating_add(b));
    };
    add(&mut stats.checked_accesses, counters.map(|c| c.checked));
    add(&mut stats.unchecked_accesses, counters.map(|c| c.unchecked));
    add(&mut stats.dropped_records, counters.map(|c| c.dropped));
    let before = if first {
        Some(Misses::default())
    } else {
        stats.misses
    };
    stats.misses = before.zip(counters).map(|(a, c)| Misses {
        shared_slot: a.shared_slot.saturating_add(c.shared_slot),
        slot_reuse: a.slot_reuse.saturating_add(c.slot_reuse),
        ring_wrap: a.ring_wrap.saturating_add(c.ring_wrap),
        saturated: a.saturated.saturating_add(c.saturated),
        early_copy: a.early_copy.saturating_add(c.early_copies),
        unknown_map: a.unknown_map.saturating_add(c.unknown_maps),
        unknown_multicast: a.unknown_multicast.saturating_add(c.unknown_multicasts),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::ModuleNames;
    use crate::report::Order;
    use bytemuck::Zeroable;
    use gsan_device::layout::Op;

    fn names() -> Catalogue {
        let mut names = Catalogue::default();
        let site = |line| Site {
            file: "a.cu".into(),
            line,
            column: Some(3),
            ptx_line: 70 + line,
            function: "k".into(),
            inlined_at: vec![],
            called_from: Vec::new(),
            near: Vec::new(),
        };
        names.modules.push(ModuleNames {
            name: "a.ptx".into(),
            sites: vec![site(1), site(2)],
            ..Default::default()
        });
        names.add_memory("data", 0x1000, 64);
        names.launches.push(LaunchInfo {
            id: 0,
            kernel: "k".into(),
            module: "a.ptx".into(),
            grid: [2, 1, 1],
            block: [32, 1, 1],
            stream: None,
        });
        names
    }

    fn record() -> RaceRecord {
        RaceRecord {
            state: COMPLETE,
            kind: RaceKind::Raw as u32,
            count: 2,
            class: RaceClass::Race as u32,
            address: 0x1008,
            current: RaceSide {
                block: [1, 0, 0],
                thread: [5, 0, 0],
                site: 1,
                op: Op::new(Access::Load, 8, Order::Acquire, Scope::Gpu),
                known: RaceSide::LAUNCH
                    | RaceSide::BLOCK
                    | RaceSide::THREAD
                    | RaceSide::SITE
                    | RaceSide::OP,
                ..RaceSide::zeroed()
            },
            prior: RaceSide {
                op: Op::new(Access::Store, 0, Order::Weak, Scope::None),
                ..RaceSide::zeroed()
            },
            ..RaceRecord::zeroed()
        }
    }

    #[test]
    fn a_record_becomes_a_finding_with_names() {
        let names = names();
        let keys = [RaceKey {
            key: 9,
            count: 31,
            reserved: 0,
        }];
        let races = findings(&[(0, record())], Some(&keys), &names);
        let race = &races[0];
        assert_eq!(
            (race.kind, race.class, race.count, race.size),
            (RaceKind::Raw, RaceClass::Race, 31, 8)
        );
        assert_eq!(
            (race.buffer.as_deref(), race.offset),
            (Some("data"), Some(8))
        );
        assert_eq!(race.current.site.as_ref().map(|s| s.line), Some(2));
        assert_eq!(race.current.kernel.as_deref(), Some("k"));
        assert_eq!(race.current.scope, Some(Scope::Gpu));
        assert_eq!(race.prior.access, Some(Access::Store));
        assert_eq!(
            (race.prior.launch, race.prior.block, &race.prior.site),
            (None, None, &None)
        );
        assert_eq!(race.prior.scope, None);
        // Without the context the record's own count is what is known.
        assert_eq!(findings(&[(0, record())], None, &names)[0].count, 2);
    }

    #[test]
    fn an_operation_of_the_host_is_a_side_without_launch_and_place() {
        let mut record = record();
        record.prior.known = RaceSide::LAUNCH | RaceSide::BLOCK;
        record.prior.launch_id = HostOperation::Memset.id(1);
        let race = &findings(&[(0, record)], None, &names())[0];
        let prior = &race.prior;
        assert_eq!(prior.kernel.as_deref(), Some("memset"));
        assert_eq!(
            (prior.launch, prior.block, &prior.site),
            (None, None, &None)
        );
        assert_eq!(race.current.kernel.as_deref(), Some("k"));
    }

    #[test]
    fn a_linear_thread_is_unfolded_by_the_launchs_block() {
        let mut names = names();
        names.launches[0].block = [4, 3, 2];
        let mut prior = record().current;
        prior.known = RaceSide::LAUNCH | RaceSide::LINEAR_THREAD;
        for (linear, thread) in [(0, [0, 0, 0]), (5, [1, 1, 0]), (23, [3, 2, 1])] {
            prior.thread = [linear, 0, 0];
            assert_eq!(side(&prior, &names).thread, Some(thread));
        }
        names.launches[0].block = [0; 3];
        assert_eq!(side(&prior, &names).thread, None);
    }

    #[test]
    fn damaged_records_never_break_the_report() {
        let names = names();
        for (kind, class) in [(0, 0), (4, 0), (1, 7), (u32::MAX, u32::MAX)] {
            assert!(
                findings(
                    &[(
                        0,
                        RaceRecord {
                            kind,
                            class,
                            ..record()
                        }
                    )],
                    None,
                    &names
                )
                .is_empty()
            );
        }
        let mut wild = record();
        wild.current.site = u32::MAX;
        wild.current.module_id = u32::MAX;
        wild.current.launch_id = u32::MAX;
        wild.address = u64::MAX;
        let race = &findings(&[(usize::MAX, wild)], Some(&[]), &names)[0];
        assert!(
            race.buffer.is_none() && race.current.site.is_none() && race.current.kernel.is_none()
        );
    }

    #[test]
    fn hand_linked_sites_are_lines_and_columns() {
        let mut names = names();
        let mut linked = record();
        linked.current.known |= RaceSide::LINKED_SITE;
        linked.current.site = 123 << 10 | 17;
        let found = |names: &Catalogue| findings(&[(0, linked)], None, names).remove(0);
        let site = found(&names).current.site.unwrap();
        assert_eq!(site.file, "<source of a.ptx>");
        let files = [("k".to_string(), "src/lib.rs".to_string())];
        names.modules[0].linked_files = files.into();
        let site = found(&names).current.site.unwrap();
        assert_eq!(site.file, "src/lib.rs");
        assert_eq!(
            (site.line, site.column, site.function.as_str()),
            (123, Some(17), "k")
        );
    }

    #[test]
    fn tallies_of_devices_are_added_and_one_unknown_makes_all_unknown() {
        let c = Counters {
            checked: 5,
            unchecked: 1,
            ring_wrap: 2,
            ..Counters::zeroed()
        };
        let mut stats = Stats::default();
        add_counters(&mut stats, Some(&c), true);
        add_counters(&mut stats, Some(&c), false);
        assert_eq!(
            (stats.checked_accesses, stats.misses.map(|m| m.ring_wrap)),
            (Some(10), Some(4))
        );
        add_counters(&mut stats, None, false);
        assert_eq!((stats.checked_accesses, stats.misses), (None, None));
    }
}
