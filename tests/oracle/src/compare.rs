//! The detector's findings against the oracle's races.
//!
//! A finding is right when it names two accesses that the oracle calls racing. A race that was not found belongs to a
//! [`Class`]: which one is computed, by weakening the oracle rule by rule to what the detector is documented to
//! approximate, by looking at what a cell could still know, and by running the same instructions again on a device without
//! a limit.

use crate::interpreter::{self, Run, Schedule};
use crate::oracle::{Model, Oracle};
use crate::program::{Program, Space};
use crate::setup::{Format, Setup};
use crate::trace::Finding;
use gsan_device::layout::RaceKind;
use std::collections::BTreeMap;
use std::fmt;

/// Why a race was not found, or in what sense a finding is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The pair was found.
    Found,
    /// The other pairs of an access that was found: one finding per access.
    OnePerAccess,
    /// Cluster scope counts as the device's.
    ClusterScope,
    /// A cluster's barrier, mbarriers and flags in shared memory are one place.
    ClusterPlace,
    /// Between a copy's issue and the wait for it, its own thread, or one that both know of: a copy is an access of who issues
    /// it and of who waits for it.
    CopyEnds,
    /// A copy counted as done when it was issued.
    EarlyCopy,
    /// A wait for small copies counts for all of its block's.
    SmallCopies,
    /// A reduction by the copy engine published what a fence of its thread did.
    CopyFence,
    /// Two threads of one block, which the reference cell can't tell apart.
    SameBlock,
    /// Two lanes of one warp.
    SameWarp,
    /// Two warps of one block: what is followed there is coarser than the memory model.
    IntraBlockApprox,
    /// Ordered if a block is one thread.
    BlockIdentity,
    /// Strong accesses of different width or place that share a word.
    MixedWidth,
    /// The release sequence went through an access whose scope is too narrow.
    ScopeChain,
    /// A strong store kept the release that it overwrote.
    KeptRelease,
    /// A compare-and-swap published its release, and failed.
    FailedCas,
    /// A write after a release fence counts as published by the fence.
    FenceEpoch,
    /// An acquire operation acquired what had been read elsewhere.
    AcquiredElsewhere,
    /// The thread had observed the word, or knows who had.
    Observed,
    /// In the reference cell a strong read counts as an observation, even if there was no write to observe yet.
    ReadCounts,
    /// Memory without shadow, whose accesses aren't checked.
    NoShadow,
    /// Synchronisation through memory without shadow: clocks there only grow, and are shared.
    ForeignClock,
    /// A further weak store of an epoch in which one has been checked already.
    Repeated,
    /// The cell keeps the last write only.
    LastWrite,
    /// The cell keeps each reader's last read only.
    LastRead,
    /// More readers (in the wide format: more different accesses) than the cell has places.
    ReaderSample,
    /// Of what an acquiring access conflicts with, one is kept until it has acquired; that one was ordered then.
    OneDeferred,
    /// A hook ran some time before or after its instruction.
    Window,
    /// A slot was reused or shared.
    Slot,
    /// A ring went round.
    RingWrap,
    /// An epoch at the format's end.
    Saturated,
    /// Nothing explains it.
    Unexplained,
}

/// In what sense a finding is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The two accesses race.
    Race,
    /// They race if the access runs when its hook did, before it acquired what it then read.
    AtTheHook,
    /// The access races, but not with whom the finding names.
    OtherPartner,
    /// Ordered by nothing but the order of two `fence.sc`s.
    ScFences,
    /// Ordered by way of a word that is itself raced on.
    AfterRace,
    /// Different bytes of one word.
    SubWord,
    /// Ordered: a false alarm.
    False,
}

/// What comparing one run gives.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Races by class.
    pub races: BTreeMap<Class, u64>,
    /// Findings by verdict.
    pub findings: BTreeMap<Verdict, u64>,
    /// What must not be, in words.
    pub failures: Vec<Failure>,
}

impl Outcome {
    /// Something else is wrong.
    pub fn fail(&mut self, text: &str) {
        self.failures.push(Failure {
            false_alarm: false,
            text: text.into(),
        });
    }
}

/// A false alarm or an unexplained miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which of the two.
    pub false_alarm: bool,
    /// The two accesses.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let what = if self.false_alarm {
            "false alarm"
        } else {
            "unexplained miss"
        };
        write!(f, "{what}: {}", self.text)
    }
}

/// Devices to explain misses on.
pub struct Reference {
    roomy: Setup,
}

impl Reference {
    /// They are laid out once.
    pub fn new(format: Format, sc_order: bool) -> Reference {
        let roomy = Setup::roomy(format);
        Reference {
            roomy: if sc_order {
                roomy.with_sc_order()
            } else {
                roomy
            },
        }
    }

    /// A slot per block, a ring that never goes round.
    pub fn roomy(&self) -> &Setup {
        &self.roomy
    }

    /// The same instructions in the same order, with their hooks beside them.
    pub fn replay(&self, program: &Program, schedule: &Schedule) -> Run {
        interpreter::replay(program, &self.roomy, schedule, true)
    }
}

/// Weakens one rule.
type Weaken = fn(&mut Model);

/// The weakened rules, in the order in which they are tried; each adds to those before.
const STEPS: [(Class, Weaken); 16] = [
    (Class::ClusterScope, |m| m.cluster_is_device = true),
    (Class::CopyEnds, |m| m.copy_ends = true),
    (Class::EarlyCopy, |m| m.early_copies = true),
    (Class::SmallCopies, |m| m.any_small_wait = true),
    (Class::CopyFence, |m| m.copy_fences = true),
    (Class::ClusterPlace, |m| m.cluster_place = true),
    (Class::BlockIdentity, |m| m.blocks = true),
    (Class::MixedWidth, |m| m.any_width = true),
    (Class::ScopeChain, |m| m.any_chain = true),
    (Class::KeptRelease, |m| m.kept_release = true),
    (Class::FailedCas, |m| m.failed_cas = true),
    (Class::ForeignClock, |m| m.hashed_foreign = true),
    (Class::FenceEpoch, |m| m.fence_epoch = true),
    (Class::AcquiredElsewhere, |m| m.any_pending = true),
    (Class::Observed, |m| m.observed_word = true),
    (Class::ReadCounts, |m| m.any_read_observes = true),
];

/// As many of them concern copies, the first ones.
const COPY_STEPS: usize = 5;

/// Compares a run's findings with the oracle's races.
pub fn compare(program: &Program, setup: &Setup, run: &Run, reference: &Reference) -> Outcome {
    let ptx = Oracle::new(&run.trace, Model::PTX);
    let mut outcome = Outcome::default();
    let by_id: BTreeMap<usize, usize> = (ptx.events.iter().enumerate())
        .map(|(i, e)| (e.id, i))
        .collect();
    let mut found = vec![false; ptx.events.len()];
    let (mut no_sc, mut distrustful) = (None, None);
    for finding in &run.findings {
        let current: Vec<usize> = (finding.current.iter())
            .filter_map(|id| by_id.get(id).copied())
            .collect();
        current.iter().for_each(|&c| found[c] = true);
        let no_sc = no_sc.get_or_insert_with(|| {
            // Where the detector follows it, it is no excuse.
            let sc_fences = setup.shape.sc_order;
            Oracle::new(
                &run.trace,
                Model {
                    sc_fences,
                    ..Model::PTX
                },
            )
        });
        let mut verdict = judge(run, &ptx, no_sc, finding, &current);
        if verdict > Verdict::OtherPartner && other_partner(&ptx, finding, &current) {
            verdict = Verdict::OtherPartner;
        }
        if verdict == Verdict::False {
            let distrustful = distrustful
                .get_or_insert_with(|| ptx.without_raced(&run.trace, setup.shape.sc_order));
            if judge(run, distrustful, distrustful, finding, &current) != Verdict::False {
                verdict = Verdict::AfterRace;
            }
        }
        *outcome.findings.entry(verdict).or_default() += 1;
        if verdict == Verdict::False {
            outcome.failures.push(Failure {
                false_alarm: true,
                text: describe_finding(run, &ptx, finding, &current),
            });
        }
    }
    let mut explain = Explain {
        program,
        setup,
        run,
        reference,
        ptx: &ptx,
        weaker: Vec::new(),
        replays: BTreeMap::new(),
    };
    for (x, y) in ptx.pairs() {
        let class = if found[x] || found[y] {
            let exact = run.findings.iter().any(|f| {
                let may_be = |e: usize| f.current.contains(&ptx.events[e].id);
                may_be(y) && names(run, &ptx, f, x, y) || may_be(x) && names(run, &ptx, f, y, x)
            });
            if exact {
                Class::Found
            } else {
                Class::OnePerAccess
            }
        } else {
            explain.class(x, y)
        };
        *outcome.races.entry(class).or_default() += 1;
        if class == Class::Unexplained {
            outcome.failures.push(Failure {
                false_alarm: false,
                text: describe_pair(run, &ptx, x, y),
            });
        }
    }
    outcome
}

/// Whether a finding of the current access can mean this pair.
fn names(run: &Run, oracle: &Oracle, finding: &Finding, prior: usize, current: usize) -> bool {
    let of = |e: usize| run.trace.threads[oracle.events[e].access.thread];
    let (thread, prior_is) = (of(prior), finding.prior);
    // The reference cell knows slots, not threads; a thread that is known is known exactly.
    fits(oracle, finding, prior, current)
        && prior_is.kernel.is_none_or(|k| k == thread.kernel)
        && prior_is.block.is_none_or(|b| b == thread.block)
        // A copy's end is the access of whoever of the block has waited for it.
        && (prior_is.linear.is_none_or(|l| l == thread.linear)
            || oracle.events[prior].access.copy.is_some())
}

/// Whether one of the accesses races in the way that the finding says, with whomever.
fn other_partner(ptx: &Oracle, finding: &Finding, current: &[usize]) -> bool {
    current.iter().any(|&current| {
        (0..ptx.events.len()).any(|prior| {
            let (x, y) = (prior.min(current), prior.max(current));
            prior != current && fits(ptx, finding, prior, current) && ptx.races(x, y)
        })
    })
}

/// Whether a finding's kind can mean this pair.
fn fits(oracle: &Oracle, finding: &Finding, prior: usize, current: usize) -> bool {
    let (p, c) = (&oracle.events[prior].access, &oracle.events[current].access);
    match finding.kind {
        RaceKind::Raw => p.writes && c.reads,
        RaceKind::War => p.reads && c.writes,
        RaceKind::Waw => p.writes && c.writes,
    }
}

fn judge(run: &Run, ptx: &Oracle, no_sc: &Oracle, finding: &Finding, current: &[usize]) -> Verdict {
    let pairs = (current.iter()).flat_map(|&c| (0..ptx.events.len()).map(move |prior| (prior, c)));
    let named = pairs.filter(|&(p, c)| p != c && names(run, ptx, finding, p, c));
    named
        .map(|(prior, current)| verdict(ptx, no_sc, prior.min(current), prior.max(current)))
        .min()
        .unwrap_or(Verdict::False)
}

/// In what sense a finding of this pair is right.
fn verdict(ptx: &Oracle, no_sc: &Oracle, x: usize, y: usize) -> Verdict {
    if ptx.races(x, y) {
        Verdict::Race
    } else if ptx.conflict(x, y) && !ptx.ordered_before_acquiring(x, y) {
        Verdict::AtTheHook
    } else if no_sc.conflict(x, y)
        && (!no_sc.ordered(x, y) || !no_sc.ordered_before_acquiring(x, y))
    {
        Verdict::ScFences
    } else if sub_word(ptx, x, y) {
        Verdict::SubWord
    } else {
        Verdict::False
    }
}

/// Different bytes of one word, which would race if they were the same.
fn sub_word(oracle: &Oracle, x: usize, y: usize) -> bool {
    let (a, b) = (&oracle.events[x].access, &oracle.events[y].access);
    !a.place.overlaps(b.place)
        && a.place.shares_word(b.place)
        && !oracle.ordered_before_acquiring(x, y)
}

struct Explain<'a> {
    program: &'a Program,
    setup: &'a Setup,
    run: &'a Run,
    reference: &'a Reference,
    ptx: &'a Oracle,
    weaker: Vec<Oracle>,
    /// Accesses that were found in another run of the same instructions.
    replays: BTreeMap<u8, Vec<(usize, usize)>>,
}

impl Explain<'_> {
    fn class(&mut self, x: usize, y: usize) -> Class {
        let (a, b) = (self.ptx.events[x].access, self.ptx.events[y].access);
        let threads = &self.run.trace.threads;
        let (s, t) = (threads[a.thread], threads[b.thread]);
        let copies = a.copy.is_some() || b.copy.is_some();
        if copies && s.global_block == t.global_block && a.place.space != Space::Foreign {
            for (i, (class, _)) in STEPS[..COPY_STEPS].iter().enumerate() {
                if !self.weaker(i).races(x, y) {
                    return *class;
                }
            }
        }
        if s.global_block == t.global_block {
            return match self.setup.format {
                Format::Reference => Class::SameBlock,
                Format::Wide if s.warp() == t.warp() => Class::SameWarp,
                Format::Wide if a.place.space == Space::Foreign => Class::NoShadow,
                Format::Wide => self.limits(x, y).unwrap_or(Class::IntraBlockApprox),
            };
        }
        if a.place.space == Space::Foreign {
            return Class::NoShadow;
        }
        for (i, (class, _)) in STEPS.iter().enumerate() {
            if !self.weaker(i).races(x, y) {
                return *class;
            }
        }
        if let Some(class) = self.limits(x, y) {
            return class;
        }
        if self.one_deferred(y) {
            return Class::OneDeferred;
        }
        // A copy is looked at when it is issued and when it is over, and the other access may lie in between.
        let (mut earlier, mut later) = (x, y);
        if self.ptx.looked_at(y).0 < self.ptx.looked_at(x).0 {
            (earlier, later) = (y, x);
        }
        match self.history(earlier, later) {
            Class::Unexplained if copies => self.history(later, earlier),
            class => class,
        }
    }

    /// The same instructions, without what the hooks' distance and the device's limits add.
    fn limits(&mut self, x: usize, y: usize) -> Option<Class> {
        if self.found_again(0, x, y) {
            Some(Class::Window)
        } else if self.found_again(1, x, y) {
            let wrapped = self.run.counters.ring_wrap > 0 && self.setup.roomy;
            Some(match self.setup.age {
                0 if wrapped => Class::RingWrap,
                0 => Class::Slot,
                _ => Class::Saturated,
            })
        } else {
            None
        }
    }

    fn weaker(&mut self, step: usize) -> &Oracle {
        while self.weaker.len() <= step {
            let wide = self.setup.format == Format::Wide;
            let mut model = Model {
                weak_keeps: wide,
                any_read_observes: wide,
                early_reads: !wide,
                early_reductions: !wide,
                ..Model::PTX
            };
            for (_, weaken) in &STEPS[..=self.weaker.len()] {
                weaken(&mut model);
            }
            self.weaker.push(Oracle::new(&self.run.trace, model));
        }
        &self.weaker[step]
    }

    /// Whether a replay found either access.
    fn found_again(&mut self, which: u8, x: usize, y: usize) -> bool {
        let found = self.replays.entry(which).or_insert_with(|| {
            let setup = if which == 0 {
                self.setup
            } else {
                &self.reference.roomy
            };
            let run = interpreter::replay(self.program, setup, &self.run.schedule, true);
            let ids: BTreeMap<usize, (usize, usize)> = run
                .trace
                .items
                .iter()
                .filter_map(|i| match i {
                    crate::trace::Item::Access(id, _) => Some(*id),
                    _ => None,
                })
                .enumerate()
                .map(|(n, id)| (id, (n, n)))
                .collect();
            (run.findings.iter())
                .flat_map(|f| &f.current)
                .filter_map(|id| ids.get(id).copied())
                .collect()
        });
        found.iter().any(|&(n, _)| n == x || n == y)
    }

    /// Whether an acquiring access conflicts with something that only what it acquires orders before it: by the memory model, or as the
    /// detector approximates it.
    fn one_deferred(&mut self, y: usize) -> bool {
        self.weaker(STEPS.len() - 1);
        let models = [Some(self.ptx), self.weaker.last()];
        let access = self.ptx.events[y].access;
        // A compare-and-swap may conflict with a read, had it written.
        let may_write = access.writes || access.attempt;
        let conflicts = |z: usize| {
            let prior = self.ptx.events[z].access;
            prior.place.overlaps(access.place)
                && (may_write || prior.writes)
                && models
                    .iter()
                    .flatten()
                    .any(|model| !model.ordered_before_acquiring(z, y) && model.ordered(z, y))
        };
        access.order.acquires() && access.reads && (0..y).any(conflicts)
    }

    /// What the word's cell no longer knew.
    fn history(&self, x: usize, y: usize) -> Class {
        let events = &self.ptx.events;
        let span = |e: usize| self.ptx.looked_at(e);
        let (from, to) = (span(x).0.min(span(y).0), span(x).1.max(span(y).1));
        let (a, b) = (events[x].access, events[y].access);
        let block = |e: usize| self.run.trace.threads[events[e].access.thread].global_block;
        let shared = |e: usize| {
            let p = events[e].access.place;
            p.shares_word(a.place) && p.shares_word(b.place)
        };
        let inside = |e: usize| span(e).1 > from && span(e).0 < to;
        let between = || (0..events.len()).filter(|&e| e != x && e != y && inside(e) && shared(e));
        let written = a.writes && between().any(|e| events[e].access.writes);
        let read = a.reads && between().any(|e| events[e].access.reads && block(e) == block(x));
        let mut readers: Vec<usize> = (0..=x.max(y))
            .filter(|&e| shared(e) && events[e].access.reads)
            .map(block)
            .collect();
        readers.sort_unstable();
        readers.dedup();
        let sampled = match self.setup.format {
            Format::Reference => readers.len() > 4,
            Format::Wide => {
                let mut kept: Vec<_> = (0..=x.max(y))
                    .filter(|&e| shared(e))
                    .map(|e| {
                        let thread = events[e].access.thread;
                        (
                            block(e),
                            self.run.trace.threads[thread].warp(),
                            events[e].access.writes,
                            events[e].access.scope,
                            events[e].access.place,
                        )
                    })
                    .collect();
                kept.sort_unstable();
                kept.dedup();
                kept.len() > 4
            }
        };
        // Where an observer was dropped, nobody can tell any more, and what is strong counts as observed.
        if sampled && (self.setup.format == Format::Wide || a.is_strong()) {
            return Class::ReaderSample;
        }
        let repeated = b.writes
            && !b.is_strong()
            && between().any(|e| {
                let c = events[e].access;
                // The reference cell has one clock for the whole word.
                let again = match self.setup.format {
                    Format::Reference => !self.ptx.ordered(x, e),
                    Format::Wide => self.ptx.races(x, e),
                };
                c.writes && block(e) == block(y) && again
            });
        if repeated {
            return Class::Repeated;
        }
        let write_hidden = !a.writes || written;
        let read_hidden = !a.reads || !b.writes || read || sampled;
        match (write_hidden, read_hidden) {
            (true, true) if written => Class::LastWrite,
            (true, true) if read => Class::LastRead,
            (true, true) => Class::ReaderSample,
            _ => Class::Unexplained,
        }
    }
}

fn describe_access(run: &Run, oracle: &Oracle, e: usize) -> String {
    let event = &oracle.events[e];
    let t = run.trace.threads[event.access.thread];
    format!(
        "#{e} kernel {} block {} thread {} op {}{} ({:?} {:?}{}{} {})",
        t.kernel,
        t.block,
        t.thread,
        event.access.index,
        event.access.copy.map_or("", |_| ", a copy"),
        event.access.order,
        event.access.scope,
        if event.access.reads { " reads" } else { "" },
        if event.access.writes { " writes" } else { "" },
        event.access.place,
    )
}

fn describe_pair(run: &Run, oracle: &Oracle, x: usize, y: usize) -> String {
    format!(
        "{} and {}",
        describe_access(run, oracle, x),
        describe_access(run, oracle, y)
    )
}

fn describe_finding(run: &Run, oracle: &Oracle, finding: &Finding, current: &[usize]) -> String {
    let who: Vec<String> = (current.iter())
        .map(|&e| describe_access(run, oracle, e))
        .collect();
    format!(
        "{:?} class {:?} at {}, prior: {:?}",
        finding.kind,
        finding.class,
        who.join(" or "),
        finding.prior,
    )
}
