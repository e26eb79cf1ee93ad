//! The checkers that compare whole lists: operators whose inputs or outputs must lie one after the other.

use super::attrs::AnchorAttr;
use super::detect::Detector;
use super::symbols::{Anchor, AnchorId, alias_input};
use super::table::Checker;
use crate::ir::{InRef, Kind, OutRef, Place};
use rustc_hash::{FxHashMap, FxHashSet};

/// Element of a list: `None` is something that nothing equals (unconnected, or isolated already).
type List = Vec<Option<AnchorId>>;

/// Comparisons already made, as long as nothing new was found since.
#[derive(Debug, Default)]
pub(super) struct Lists {
    verdicts: FxHashMap<(Place, Place), (usize, bool)>,
}

/// A checker that looks at the whole class; returns the anchors to isolate.
pub(super) fn per_symbol(d: &Detector<'_>, c: Checker, members: &[AnchorId]) -> Vec<AnchorId> {
    match c {
        Checker::CiCi => shared_or_chained_inputs(d, members),
        Checker::CoCo => feeding_outputs(d, members, &[AnchorAttr::Co, AnchorAttr::Npco]),
        Checker::NpcoNpco => feeding_outputs(d, members, &[AnchorAttr::Npco]),
        Checker::NpciNpci => overlapping_inputs(d, members),
        _ => Vec::new(),
    }
}

fn is_continuous_input(d: &Detector<'_>, a: AnchorId) -> bool {
    d.set(a).has(AnchorAttr::Ci) || d.set(a).has(AnchorAttr::Npci)
}

/// Continuous consumers of an output, as anchors, in the order of the consumers.
fn consumers_with(d: &Detector<'_>, out: Anchor, attr: impl Fn(AnchorId) -> bool) -> Vec<AnchorId> {
    let consumers = d.module.graph(out.graph).consumers(out.out_ref());
    consumers
        .iter()
        .filter_map(|c| d.space.input(out.graph, *c))
        .filter(|a| attr(*a))
        .collect()
}

/// Rule 1: one output in two continuous runs, or a continuous run that is part of another.
fn shared_or_chained_inputs(d: &Detector<'_>, members: &[AnchorId]) -> Vec<AnchorId> {
    let mut found = Vec::new();
    for a in members {
        let at = d.space.at(*a);
        if !at.input {
            found.extend(
                consumers_with(d, at, |c| is_continuous_input(d, c))
                    .into_iter()
                    .skip(1),
            );
        } else if is_continuous_input(d, *a)
            && let Some(from) = d.module.graph(at.graph).producer(at.in_ref())
        {
            let upstream = d.module.graph(at.graph).node(from.node).inputs.len() as u32;
            let chained = (0..upstream)
                .filter_map(|index| {
                    d.space.input(
                        at.graph,
                        InRef {
                            node: from.node,
                            index,
                        },
                    )
                })
                .any(|i| is_continuous_input(d, i) && d.shares(i, members));
            if chained {
                found.push(*a);
            }
        }
    }
    found
}

/// Rules 3 and 17: a continuous operator's output feeds another one that passes it on.
fn feeding_outputs(d: &Detector<'_>, members: &[AnchorId], attrs: &[AnchorAttr]) -> Vec<AnchorId> {
    let continuous = |a: AnchorId| attrs.iter().any(|x| d.set(a).has(*x));
    let mut downstream: FxHashSet<Place> = FxHashSet::default();
    for a in members {
        let at = d.space.at(*a);
        if !at.input && continuous(*a) {
            downstream.insert(at.place());
        }
    }
    let feeds = |a: AnchorId| {
        let at = d.space.at(a);
        let consumers = d.module.graph(at.graph).consumers(at.out_ref());
        !at.input
            && continuous(a)
            && consumers
                .iter()
                .any(|c| downstream.contains(&(at.graph, c.node)))
    };
    members.iter().copied().filter(|a| feeds(*a)).collect()
}

/// Rule 15: two gapless runs overlap in a way that no single run can hold.
fn overlapping_inputs(d: &Detector<'_>, members: &[AnchorId]) -> Vec<AnchorId> {
    let npci = |a: AnchorId| d.set(a).has(AnchorAttr::Npci);
    let mut nodes: Vec<Place> = Vec::new();
    let mut seen = FxHashSet::default();
    for a in members.iter().filter(|a| npci(**a)) {
        let place = d.space.at(*a).place();
        if seen.insert(place) {
            nodes.push(place);
        }
    }
    let mut lists: Vec<List> = nodes.iter().map(|p| direct_producers(d, *p)).collect();
    // Equal lists go together, so one of each is enough (unless it holds something that equals nothing).
    let mut distinct = FxHashSet::default();
    lists.retain(|l| distinct.insert(l.clone()) || l.contains(&None));
    let clash =
        (0..lists.len()).any(|i| (i + 1..lists.len()).any(|j| !gapless_fit(&lists[i], &lists[j])));
    if !clash {
        return Vec::new();
    }
    members
        .iter()
        .map(|a| d.space.at(*a))
        .filter(|at| !at.input)
        .flat_map(|at| consumers_with(d, at, npci).into_iter().skip(1))
        .collect()
}

fn gapless_fit(a: &List, b: &List) -> bool {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let set: FxHashSet<AnchorId> = long.iter().flatten().copied().collect();
    let common = short.iter().flatten().any(|x| set.contains(x));
    !common || is_run(long, short)
}

/// Whether `short` stands in `long` as one piece.
fn is_run(long: &List, short: &List) -> bool {
    !short.is_empty()
        && short.iter().all(Option::is_some)
        && long.windows(short.len()).any(|w| w == short.as_slice())
}

/// What the inputs of an operator come from directly.
fn direct_producers(d: &Detector<'_>, (g, node): Place) -> List {
    let n = d.module.node((g, node));
    n.inputs
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let me = d.space.input(
                g,
                InRef {
                    node,
                    index: i as u32,
                },
            )?;
            let from = d.space.output(d.module, g, x.from?)?;
            (!d.is_found(me) && !d.is_found(from)).then_some(from)
        })
        .collect()
}

/// Rule 2: the outputs of one operator against the inputs of another.
pub(super) fn out_and_in(d: &mut Detector<'_>, a: AnchorId, b: AnchorId) -> Option<AnchorId> {
    if d.is_found(a) || d.is_found(b) {
        return None;
    }
    let (x, y) = (d.space.at(a), d.space.at(b));
    let (out, input) = if d.set(a).has(AnchorAttr::Co) && !x.input {
        (x, y)
    } else {
        (y, x)
    };
    let key = (out.place(), input.place());
    let now = d.count();
    let conflict = match d.lists.verdicts.get(&key) {
        Some((then, verdict)) if *then == now => *verdict,
        _ => {
            let verdict = out_in_conflict(d, out, input);
            d.lists.verdicts.insert(key, (now, verdict));
            verdict
        }
    };
    conflict.then_some(a)
}

fn out_in_conflict(d: &Detector<'_>, out: Anchor, input: Anchor) -> bool {
    let (g, node) = out.place();
    let outs: List = (0..d.node(out).outputs.len() as u32)
        .map(|index| {
            d.space
                .output(d.module, g, OutRef { node, index })
                .filter(|a| !d.is_found(*a))
        })
        .collect();
    let mut cut = false;
    let ins: List = (0..d.node(input).inputs.len() as u32)
        .map(|index| {
            match real_producer(
                d,
                Some(out.place()),
                (
                    input.graph,
                    InRef {
                        node: input.node,
                        index,
                    },
                ),
            ) {
                Real::From(a) => Some(a),
                Real::Cut => {
                    cut = true;
                    None
                }
                Real::Unknown => None,
            }
        })
        .collect();
    let set: FxHashSet<AnchorId> = outs.iter().flatten().copied().collect();
    if !ins.iter().flatten().any(|i| set.contains(i)) {
        // They share memory, yet no output was met on the way: unless a copy will part them, that is a conflict.
        return !cut;
    }
    !(outs == ins
        || is_run(&outs, &ins)
        || is_run(&ins, &outs)
        || is_aligned(&outs, &ins)
        || is_aligned(&ins, &outs))
}

/// Whether `short` starts in `long` at their first common element, they stay equal until one ends, and nothing is shared
/// besides.
fn is_aligned(long: &List, short: &List) -> bool {
    let Some(Some(head)) = short.first() else {
        return false;
    };
    let Some(at) = long.iter().position(|x| *x == Some(*head)) else {
        return false;
    };
    let run = (long.len() - at).min(short.len());
    if long[at..at + run] != short[..run] || long[at..at + run].contains(&None) {
        return false;
    }
    let inside: FxHashSet<AnchorId> = short[..run].iter().flatten().copied().collect();
    let (longer, shorter): (FxHashSet<_>, FxHashSet<_>) = (
        long.iter().flatten().copied().collect(),
        short.iter().flatten().copied().collect(),
    );
    let outside = |list: &[Option<AnchorId>], other: &FxHashSet<AnchorId>| {
        list.iter()
            .flatten()
            .any(|x| other.contains(x) || inside.contains(x))
    };
    !outside(&long[..at], &shorter)
        && !outside(&long[at + run..], &shorter)
        && !outside(&short[run..], &longer)
}

/// Whether all inputs of the anchor's operator are one and the same output.
pub(super) fn one_source(d: &Detector<'_>, a: AnchorId) -> bool {
    let at = d.space.at(a);
    let mut sources = (0..d.node(at).inputs.len() as u32).map(|index| {
        match real_producer(
            d,
            None,
            (
                at.graph,
                InRef {
                    node: at.node,
                    index,
                },
            ),
        ) {
            Real::From(a) => Some(a),
            _ => None,
        }
    });
    let Some(Some(first)) = sources.next() else {
        return false;
    };
    sources.all(|s| s == Some(first))
}

enum Real {
    From(AnchorId),
    /// An anchor on the way will be isolated.
    Cut,
    Unknown,
}

/// The output that really makes what an input gets: through operators that pass their input on, out of subgraphs to the
/// parent's input, into called graphs to their result. Stops at the outputs of `stop`.
fn real_producer(
    d: &Detector<'_>,
    stop: Option<Place>,
    start: (crate::ir::GraphId, InRef),
) -> Real {
    let (mut g, mut at) = start;
    // Each step goes to an earlier node or another graph; the bound covers broken input.
    for _ in 0..4096 {
        let Some(me) = d.space.input(g, at) else {
            return Real::Unknown;
        };
        if d.is_found(me) {
            return Real::Cut;
        }
        let Some(mut from) = d.module.graph(g).producer(at) else {
            return Real::Unknown;
        };
        // Into called graphs, as deep as it goes.
        let end = loop {
            let Some(out) = d.space.output(d.module, g, from) else {
                return Real::Unknown;
            };
            if d.is_found(out) {
                return Real::Cut;
            }
            let node = d.module.graph(g).node(from.node);
            if stop == Some((g, from.node)) {
                return Real::From(out);
            }
            let called = (node.kind == Kind::PartitionedCall)
                .then(|| node.subgraphs.iter().flatten().next())
                .flatten();
            match called.and_then(|s| Some((*s, crate::rw::result(d.module, *s, from.index)?))) {
                Some((s, inner)) => (g, from) = (s, inner),
                None => break out,
            }
        };
        let node = d.module.graph(g).node(from.node);
        if node.kind.is_data()
            && g != d.space.graphs[0]
            && let Some((p, _)) = d.module.parent_node(g)
            && let Some(index) = node.parent_index().and_then(|i| u32::try_from(i).ok())
        {
            (g, at) = (
                p.graph,
                InRef {
                    node: p.node,
                    index,
                },
            );
            continue;
        }
        match alias_input(node, from.index as usize) {
            Some(i) => {
                at = InRef {
                    node: from.node,
                    index: i as u32,
                }
            }
            None => return Real::From(end),
        }
    }
    Real::Unknown
}
