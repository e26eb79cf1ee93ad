//! What a finding is and what is missing, in the sentences that text, JSON and SARIF share.

use super::demangle::demangle;
use super::text::clean;
use super::{describe_access, plural, triple};
use crate::names::Named;
use gsan_host::report::{Flag, PastEnd, Race, RaceClass, RaceKind, Report, Side};

/// Threads of a warp.
const WARP: u32 = 32;

/// What raced with what.
pub fn what(race: &Race) -> &'static str {
    match (race.class, race.kind) {
        // It may well be ordered: the cache that it goes through knows nothing of that.
        (RaceClass::StaleNc, _) => "non-coherent load of what was written while its launch ran",
        (RaceClass::MissingWait, _) => {
            "a kernel that may start before the one before it has ended, and never waits for it"
        }
        (_, RaceKind::Raw) => "read of what an unordered write wrote",
        (_, RaceKind::War) => "write to what an unordered read read",
        (_, RaceKind::Waw) => "two unordered writes",
    }
}

/// What the access did that found the race.
pub fn current_access(race: &Race) -> String {
    match race.class {
        RaceClass::StaleNc => "non-coherent load".to_string(),
        RaceClass::MissingWait => {
            let kernel = race.current.kernel.as_deref().unwrap_or("a kernel");
            format!("kernel {}", demangle(kernel))
        }
        _ => describe_access(&race.current),
    }
}

/// What is missing, in plain words.
pub fn advice(race: &Race, report: &Report) -> String {
    let halves = race.flag.as_ref().filter(|_| {
        let class = race.class;
        class == RaceClass::MissingAcquire || class == RaceClass::MissingRelease
    });
    if let Some(flag) = halves {
        return half(race.class, flag);
    }
    let general = match race.class {
        RaceClass::Race => {
            "nothing orders the two: no barrier, kernel boundary, event, or release/acquire pair lies between them"
        }
        RaceClass::ScopeTooNarrow => {
            "both sides synchronise, but a scope does not cover the other side: use .gpu between blocks of one device, .sys \
             between devices or with the host"
        }
        RaceClass::MissingAcquire => {
            "the release is there, the acquire is not: read the flag with an acquire load or atomic, or put a fence after a \
             relaxed one"
        }
        RaceClass::MissingRelease => {
            "the acquire is there, the release is not: write the flag with a release store or atomic, or put a fence before a \
             relaxed one"
        }
        RaceClass::MixedWidth => {
            "atomics of different width on one word do not exclude each other: use one width for it"
        }
        RaceClass::StaleNc => {
            "the read-only cache may hold the value from before the launch: ld.global.nc (__ldg, const __restrict__, &[T]) is \
             for memory that nothing writes while the kernel runs; load it without .nc"
        }
        RaceClass::IntraBlock => return intra_block(race, report),
        RaceClass::MissingWait => {
            "nothing that the kernel before did is ordered before this one, nor before what comes after both: call \
             cudaGridDependencySynchronize() (griddepcontrol.wait) before the first access that depends on it, or launch \
             without programmatic stream serialization"
        }
    };
    general.to_string()
}

/// A release without an acquire, or the other way round, where the access that lacks it is known.
fn half(class: RaceClass, flag: &Flag) -> String {
    let access = &flag.access;
    let who = match access.block {
        Some(block) => format!("block {}", triple(block)),
        None => "a block".into(),
    };
    let how = describe_access(access);
    let article = if how.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    let at = match &access.site {
        Some(site) => format!(" ({}:{})", clean(&site.file), site.line),
        None => String::new(),
    };
    let what = flag_place(flag);
    if class == RaceClass::MissingAcquire {
        format!(
            "{who} read the released flag {what} with {article} {how}{at}: no acquire follows; use an acquire load or atomic \
             there, or put a fence after it"
        )
    } else {
        format!(
            "{who} wrote the acquired flag {what} with {article} {how}{at}, which releases nothing: write it after the earlier \
             access, with a release store or atomic, or with a fence between the two"
        )
    }
}

/// Where the flag is.
pub fn flag_place(flag: &Flag) -> String {
    place(flag.buffer.as_deref(), flag.offset, flag.address)
}

/// A place in memory.
pub fn place(buffer: Option<&str>, offset: Option<u64>, address: u64) -> String {
    match (buffer, offset) {
        (Some(name), Some(offset)) => format!("`{}`+{offset}", clean(name)),
        (Some(name), None) => format!("`{}`", clean(name)),
        (None, _) => format!("address {address:#x} (in no known buffer)"),
    }
}

/// Two warps of one block; or a block's release that was acquired and does not speak for the warp that made the access.
fn intra_block(race: &Race, report: &Report) -> String {
    let (current, prior) = (&race.current, &race.prior);
    let blocks = current.block.zip(prior.block);
    let same = blocks.is_none_or(|(a, b)| a == b) && current.launch == prior.launch;
    let warps = warp(current, report).zip(warp(prior, report));
    match (same, warps, current.block) {
        (true, Some((a, b)), Some(block)) => format!(
            "warp {} and warp {} of block {}: no barrier between them (__syncthreads(), bar.sync, or a release and an acquire)",
            a.min(b),
            a.max(b),
            triple(block)
        ),
        (true, ..) => {
            "two warps of one block: no barrier between them (__syncthreads(), bar.sync, or a release and an acquire)".into()
        }
        (false, ..) => too_early(prior, report),
    }
}

fn too_early(prior: &Side, report: &Report) -> String {
    let block = prior
        .block
        .map_or("its block".to_string(), |b| format!("block {}", triple(b)));
    let (whose, which) = match (prior.thread, warp(prior, report)) {
        (Some(thread), Some(warp)) => (
            format!("thread {} (warp {warp})", triple(thread)),
            format!("warp {warp}"),
        ),
        _ => ("the earlier access".into(), "that warp".into()),
    };
    format!(
        "a release of {block} was acquired, but another of its warps made it, and {which} had not passed a barrier before: the \
         release does not cover {whose}; put __syncthreads() or bar.sync before the release"
    )
}

/// The side's warp in its block, if the launch's shape is known.
pub fn warp(side: &Side, report: &Report) -> Option<u32> {
    let [x, y, z] = side.thread?;
    let launch = report.launches.iter().find(|l| Some(l.id) == side.launch)?;
    let row = z.checked_mul(launch.block[1])?.checked_add(y)?;
    let linear = row.checked_mul(launch.block[0])?.checked_add(x)?;
    Some(linear / WARP)
}

/// A sentence on accesses behind a buffer's end.
pub fn past_end(p: &PastEnd) -> String {
    let words = if p.words > 1 {
        format!(" ({} there in all)", plural(p.words, "word"))
    } else {
        String::new()
    };
    let by = match (&p.access.kernel, p.access.block) {
        (Some(kernel), Some(block)) => {
            format!(" in {}, block {}", demangle(kernel), triple(block))
        }
        (Some(kernel), None) => format!(" in {}", demangle(kernel)),
        _ => String::new(),
    };
    format!(
        "{} {} past the end of '{}'{words}{by}: an index is too large",
        describe_access(&p.access),
        plural(p.past, "byte"),
        p.buffer
    )
}

/// A sentence for each class of which findings are hidden.
pub fn hidden(report: &Report) -> Vec<String> {
    let of = |class: RaceClass| report.hidden.iter().filter(move |r| r.class == class);
    let sentence = |(word, class): &(&str, RaceClass)| {
        let found = of(*class).count() as u64;
        let times = of(*class).fold(0u64, |n, r| n.saturating_add(r.count));
        (found > 0).then(|| {
            format!(
                "{} of class {word} hidden by --no-class or classes_off (found {})",
                plural(found, "finding"),
                plural(times, "time")
            )
        })
    };
    RaceClass::TABLE.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::{clean_report, racy_report, racy_report_with_flag};
    use std::collections::HashSet;

    /// Between two threads of blocks of 64 × 2 threads.
    fn intra(current: ([u32; 3], u32), prior: ([u32; 3], u32)) -> (Race, Report) {
        let mut report = racy_report();
        let mut race = report.races.remove(0);
        race.class = RaceClass::IntraBlock;
        report.launches[1].block = [64, 2, 1];
        for (side, (thread, x)) in [(&mut race.current, current), (&mut race.prior, prior)] {
            side.launch = Some(1);
            side.block = Some([x, 0, 0]);
            side.thread = Some(thread);
        }
        (race, report)
    }

    #[test]
    fn every_class_has_advice_of_its_own() {
        let report = racy_report();
        let mut race = report.races[0].clone();
        let mut seen = HashSet::new();
        for (_, class) in RaceClass::TABLE {
            race.class = *class;
            assert!(seen.insert(advice(&race, &report)), "{class:?}");
        }
    }

    #[test]
    fn the_half_that_lacks_its_order_is_named_with_its_place() {
        let mut report = racy_report_with_flag();
        assert_eq!(
            advice(&report.races[0], &report),
            "block (1,0,0) read the released flag `flag`+0 with a relaxed.gpu load (handoff.cu:11): no acquire follows; use an \
             acquire load or atomic there, or put a fence after it"
        );
        let race = &mut report.races[0];
        race.class = RaceClass::MissingRelease;
        let flag = race.flag.as_mut().unwrap();
        flag.buffer = None;
        flag.access.site = None;
        flag.access.access = Some(gsan_host::report::Access::Rmw);
        assert_eq!(
            advice(&report.races[0], &report),
            "block (1,0,0) wrote the acquired flag address 0x7f0000000100 (in no known buffer) with a relaxed.gpu atomic \
             read-modify-write, which releases nothing: write it after the earlier access, with a release store or atomic, or \
             with a fence between the two"
        );
    }

    #[test]
    fn warps_of_one_block_lack_a_barrier() {
        let (race, report) = intra(([0, 1, 0], 3), ([63, 0, 0], 3));
        let text = advice(&race, &report);
        assert!(
            text.starts_with("warp 1 and warp 2 of block (3,0,0): no barrier between them"),
            "{text}"
        );
    }

    #[test]
    fn a_release_that_was_too_early_names_the_warp_that_it_does_not_cover() {
        let (race, report) = intra(([0, 0, 0], 1), ([32, 0, 0], 0));
        let text = advice(&race, &report);
        for part in [
            "a release of block (0,0,0) was acquired",
            "warp 1 had not passed a barrier",
            "thread (32,0,0) (warp 1)",
            "before the release",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let (mut race, report) = intra(([0, 0, 0], 1), ([32, 0, 0], 1));
        race.prior.thread = None;
        race.prior.block = None;
        let text = advice(&race, &report);
        assert!(text.starts_with("two warps of one block"), "{text}");
        (race.prior.block, race.current.block) = (Some([2, 0, 0]), Some([1, 0, 0]));
        assert!(advice(&race, &report).contains("does not cover the earlier access"));
        race.current.launch = Some(77);
        assert_eq!(warp(&race.current, &report), None);
        race.current.launch = Some(1);
        race.current.thread = Some([u32::MAX; 3]);
        assert_eq!(warp(&race.current, &report), None);
    }

    #[test]
    fn hidden_findings_are_counted_by_class() {
        let mut report = racy_report();
        assert_eq!(hidden(&report), [""; 0]);
        let mut other = report.races[0].clone();
        other.current.site = None;
        report.races.push(other);
        report.hide(&[RaceClass::MissingAcquire, RaceClass::Race]);
        assert!(report.races.is_empty());
        assert_eq!(
            hidden(&report),
            [
                "2 findings of class missing-acquire hidden by --no-class or classes_off (found 62 times)"
            ]
        );
        assert_eq!(hidden(&clean_report()), [""; 0]);
    }
}
