//! Lint: writers and readers of one output that no edge puts in order.
//!
//! Needs no matrix of all pairs: the writers of an output must form a chain, so it is enough to compare each with the next,
//! and each reader with the writers before and after it. What is left over after looking for direct edges is answered for
//! 64 writers at a time by one sweep over the part of the order that lies between them (`reach`). Only where something is
//! missing in that chain, all pairs of the output are looked at, for the list to be complete (up to a limit, and then it
//! says so).

mod reach;

use crate::ctx::{Ctx, PassError};
use crate::ir::{GraphId, InRef, Kind, Module, NodeId, OutRef, names};
use crate::layout::symbols::alias_input;
use crate::report::{ConflictKind, Reason};
use reach::Order;
use rustc_hash::FxHashSet;

/// The pass's name in results.
pub const PASS: &str = "lint";
/// The warning's code.
pub const CODE: &str = "W18888";

/// Two operators on one memory that may run in either order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unordered {
    /// The graph.
    pub graph: GraphId,
    /// The output.
    pub out: OutRef,
    /// The writer.
    pub writer: InRef,
    /// The other: a reader, or a second writer.
    pub other: InRef,
    /// Whether the other writes too.
    pub both_write: bool,
}

/// Warns of the first unordered pair; with one, the module does not pass.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    let top = ctx.top()?;
    if ctx.module.graph(top).parent.is_some() {
        return Err(PassError::Failed(format!(
            "graph {} is a subgraph; lint looks at a root graph and everything inside it",
            ctx.graph_name(top)
        )));
    }
    for g in ctx.module.family(top) {
        ctx.module.graph(g).topological()?;
    }
    if find(ctx.module, top, true).pairs.is_empty() {
        return Ok(());
    }
    let Found {
        mut pairs,
        complete,
    } = find(ctx.module, top, false);
    // Two inputs of one operator are one matter.
    let mut seen = FxHashSet::default();
    pairs.retain(|p| seen.insert((p.graph, p.out, p.writer.node, p.other.node)));
    let mut pairs = pairs.into_iter();
    let Some(u) = pairs.next() else { return Ok(()) };
    let (count, mut others) = (pairs.len(), Vec::new());
    others.extend(pairs.take(SHOWN).map(|p| short(ctx.module, &p)));
    let more = count - others.len();
    if !complete {
        others.push(format!(
            "and at least {more} more: there are too many to look at them all, so check again once these are settled"
        ));
    } else if more > 0 {
        others.push(format!("and {more} more"));
    }
    let (graph, m) = (ctx.module.graph(u.graph), &*ctx.module);
    let (writer, other) = (graph.node(u.writer.node), graph.node(u.other.node));
    let nodes = vec![writer.name.clone(), other.name.clone()];
    let source = m.out_name(u.graph, u.out);
    let (verb, result) = if u.both_write {
        ("writes it, too", "which value stays")
    } else {
        ("reads it", "which value it sees")
    };
    let cause = crate::cause::updates(writer, u.writer.index as usize);
    let cause = if cause.is_empty() {
        "inside it, an operator does that".to_owned()
    } else {
        cause
    };
    let why = format!(
        "`{}` writes {source} in place ({cause}), and `{}` {verb}; no data or control edge makes one run before the other, so {result} \
         is left to chance",
        writer.name, other.name
    );
    let reason = Reason::new(
        ConflictKind::ReadWrite,
        "a write and another use of one memory need an order",
        (m.in_name(u.graph, u.writer), m.in_name(u.graph, u.other)),
        why,
    )
    .title("an operator writes memory that another uses, too, and nothing says which of the two runs first")
    .repair(advice(m, &u, others.is_empty()));
    let story = ctx.story(u.graph, u.out, Some(u.writer), &reason);
    ctx.warn(CODE, u.graph, nodes, Some(story), &reason);
    if let Some(w) = ctx.report.warnings.last_mut() {
        w.others = others;
    }
    ctx.unordered = Some(u);
    Ok(())
}

/// Further pairs that a warning names.
const SHOWN: usize = 10;

/// A pair in a few words.
fn short(module: &Module, u: &Unordered) -> String {
    let graph = module.graph(u.graph);
    format!(
        "`{}` writes {} and `{}` {} it (both operators are in graph {})",
        graph.node(u.writer.node).name,
        crate::story::memory_name(module, u.graph, u.out),
        graph.node(u.other.node).name,
        if u.both_write { "writes" } else { "reads" },
        graph.name
    )
}

/// If the reader of a pair only hands the memory on: who reads it behind, and who of them runs after the writer anyway.
fn behind(module: &Module, u: &Unordered) -> (Vec<String>, Vec<String>) {
    const SEEN: usize = 64;
    let graph = module.graph(u.graph);
    let (mut readers, mut late) = (Vec::new(), Vec::new());
    let (mut todo, mut seen) = (vec![u.other], FxHashSet::default());
    while let Some(at) = todo.pop() {
        if !seen.insert(at) || seen.len() > SEEN {
            continue;
        }
        let n = graph.node(at.node);
        let mut view = false;
        for o in 0..n.outputs.len() {
            if alias_input(n, o) == Some(at.index as usize) && n.ref_input_of(o).is_none() {
                view = true;
                let index = o as u32;
                let node = at.node;
                todo.extend(graph.consumers(OutRef { node, index }));
            }
        }
        if !view && at != u.other && !readers.contains(&n.name) {
            readers.push(n.name.clone());
            if crate::story::runs_before(graph, u.writer.node, at.node) {
                late.push(n.name.clone());
            }
        }
    }
    readers.sort();
    late.sort();
    (readers, late)
}

/// Which edge to add, for either choice.
fn advice(module: &Module, u: &Unordered, only: bool) -> String {
    let graph = module.graph(u.graph);
    let (w, o) = (
        &graph.node(u.writer.node).name,
        &graph.node(u.other.node).name,
    );
    let mut text = if u.both_write {
        format!(
            "nothing is changed: decide. If the value of `{o}` is to stay in the end, let `{o}` run after `{w}` (in the JSON form: add \
             \"control\": [\"{w}\"] to `{o}`); if the value of `{w}` is to stay, the other way round (add \"control\": [\"{o}\"] to \
             `{w}`)"
        )
    } else {
        let (readers, late) = behind(module, u);
        let old = if readers.is_empty() {
            format!("the other way round (add \"control\": [\"{o}\"] to `{w}`)")
        } else if late.is_empty() {
            let mut list = vec![o.clone()];
            list.extend(readers.iter().cloned());
            format!(
                "the other way round (add \"control\": {} to `{w}`: `{o}` only hands the memory on, and {} read{} it)",
                serde_json::Value::from(list)
                    .to_string()
                    .replace("\",\"", "\", \""),
                and_quoted(&readers),
                if readers.len() == 1 { "s" } else { "" }
            )
        } else {
            format!(
                "an order alone does not do, for `{o}` only hands the memory on, and {}, which read{} it, must run after `{w}` anyway: \
                 put an Identity with the attribute `_cannot_be_deleted`: true before `{o}` and let that run before `{w}`",
                and_quoted(&late),
                if late.len() == 1 { "s" } else { "" }
            )
        };
        format!(
            "nothing is changed: decide. If `{o}` must see the NEW value, let it run after `{w}` (in the JSON form: add \"control\": \
             [\"{w}\"] to `{o}`); if it must see the OLD value, {old}"
        )
    };
    fn and_quoted(list: &[String]) -> String {
        crate::text::and(
            &list
                .iter()
                .map(|n| crate::text::quoted(n))
                .collect::<Vec<_>>(),
        )
    }
    let around = |n: &crate::ir::Node| !n.subgraphs.is_empty();
    let outer: Vec<String> = [u.writer.node, u.other.node]
        .into_iter()
        .map(|n| graph.node(n))
        .filter(|n| around(n))
        .map(|n| crate::text::quoted(&n.name))
        .collect();
    if !outer.is_empty() {
        text += &format!(
            "; the edge belongs in graph {}, on {} itself, not on an operator inside",
            graph.name,
            crate::text::and(&outer)
        );
    }
    // Whoever reads inside a call reads what there is when the call runs.
    for (me, partner) in [(u.writer.node, u.other.node), (u.other.node, u.writer.node)] {
        let readers = crate::story::readers_inside(module, u.graph, u.out, me);
        if u.both_write && !readers.is_empty() {
            text += &format!(
                "; {}, inside `{me}`, read{} the memory, too, and can see what `{partner}` wrote only if `{me}` runs after `{partner}`",
                and_quoted(&readers),
                if readers.len() == 1 { "s" } else { "" },
                me = graph.node(me).name,
                partner = graph.node(partner).name,
            );
        }
    }
    if !only {
        text += "; the further pairs need a decision each";
    }
    text
}

/// Says in the warning that the later passes have repaired its pair, if they have.
///
/// They have if a copy stands before the pair's writer and neither operator is in an unordered pair any more.
pub fn note_repair(ctx: &mut Ctx<'_>) {
    let (Some(u), Ok(top)) = (ctx.unordered.take(), ctx.top()) else {
        return;
    };
    let Some(writer) = ctx.module.graph(u.graph).get(u.writer.node) else {
        return;
    };
    let (writer, graph) = (writer.name.clone(), ctx.graph_name(u.graph));
    let copy = ctx.report.inserted.iter().find(|i| {
        let before = i.before.as_ref().map_or(&[][..], |b| b.as_slice());
        i.graph == graph
            && before
                .iter()
                .any(|b| b.node == writer && b.input == u.writer.index)
    });
    let Some(copy) = copy.map(|i| i.name.clone()) else {
        return;
    };
    let nodes = [u.writer.node, u.other.node];
    let still = |p: &Unordered| {
        p.graph == u.graph && (nodes.contains(&p.writer.node) || nodes.contains(&p.other.node))
    };
    let Found {
        pairs: left,
        complete,
    } = find(ctx.module, top, false);
    if left.iter().any(still) {
        return;
    }
    let count = left.len();
    if let Some(w) = ctx.report.warnings.iter_mut().find(|w| w.code == CODE) {
        let done =
            format!("the repairs below settle this pair: `{writer}` writes the new copy `{copy}`");
        w.why += &format!("; {done}");
        w.settled = true;
        if let Some(s) = &mut w.conflict.story {
            s.repair = match count {
                0 => format!("{done}; with them, no pair without an order is left"),
                1 => format!(
                    "{done}; 1 pair without an order is left: `gsan graph lint` on the repaired graph shows it"
                ),
                n => format!(
                    "{done}; {}{n} pairs without an order are left: `gsan graph lint` on the repaired graph shows them",
                    if complete { "" } else { "at least " }
                ),
            };
        }
    }
}

/// What was found.
pub struct Found {
    /// The pairs, the root's first.
    pub pairs: Vec<Unordered>,
    /// Whether these are all; if there are very many, only the first ones are looked for.
    pub complete: bool,
}

/// The unordered pairs of a graph and everything inside it; at most one if `first` is set.
pub fn find(module: &Module, top: GraphId, first: bool) -> Found {
    let family = module.family(top);
    let writes = writing_inputs(module, &family);
    let mut found = Found {
        pairs: Vec::new(),
        complete: true,
    };
    for g in family {
        graph(module, g, &writes, first, &mut found);
        if first && !found.pairs.is_empty() {
            found.pairs.truncate(1);
            break;
        }
    }
    found
}

type Inputs = FxHashSet<(GraphId, InRef)>;

fn is_ignored(module: &Module, g: GraphId, at: InRef) -> bool {
    let n = module.graph(g).node(at.node);
    n.kind == Kind::Cmo || n.attrs.str(names::ORIGINAL_TYPE) == Some("Cmo")
}

/// Inputs that are written: by name, and those of nodes whose subgraph hands them straight to a writer.
fn writing_inputs(module: &Module, family: &[GraphId]) -> Inputs {
    let mut writes = Inputs::default();
    for g in family.iter().rev() {
        let graph = module.graph(*g);
        let parent = graph.parent;
        for (id, n) in graph.iter() {
            for (i, x) in n.inputs.iter().enumerate() {
                let at = InRef {
                    node: id,
                    index: i as u32,
                };
                if n.ref_output_of(i).is_some() && !is_ignored(module, *g, at) {
                    writes.insert((*g, at));
                }
                if !writes.contains(&(*g, at)) {
                    continue;
                }
                let (Some(p), Some(from)) = (parent, x.from) else {
                    continue;
                };
                let source = graph.node(from.node);
                if source.kind.is_data()
                    && let Some(index) = source.parent_index().and_then(|i| u32::try_from(i).ok())
                {
                    writes.insert((
                        p.graph,
                        InRef {
                            node: p.node,
                            index,
                        },
                    ));
                }
            }
        }
    }
    writes
}

/// A question: does the first run before the second?
struct Query {
    pair: Unordered,
    from: NodeId,
    to: NodeId,
}

/// Pairs of one graph that are looked at beyond the chain of writers.
const BEYOND: usize = 4096;

fn graph(module: &Module, g: GraphId, writes: &Inputs, first: bool, found: &mut Found) {
    let graph = module.graph(g);
    let mut order: Option<Order> = None;
    let mut queries: Vec<Query> = Vec::new();
    for (id, n) in graph.iter() {
        for index in 0..n.outputs.len() as u32 {
            let out = OutRef { node: id, index };
            let consumers = graph.consumers(out);
            if consumers.len() < 2 || !consumers.iter().any(|c| writes.contains(&(g, *c))) {
                continue;
            }
            let order = match &mut order {
                Some(o) => o,
                none => match Order::new(graph) {
                    Some(o) => none.insert(o),
                    None => return,
                },
            };
            Users::of(module, g, out, writes, order).chain(&mut queries);
        }
    }
    let Some(order) = order else { return };
    let before = found.pairs.len();
    found.pairs.extend(unreached(graph, &order, queries));
    if first || found.pairs.len() == before {
        return;
    }
    let mut seen: FxHashSet<(OutRef, InRef, InRef)> = FxHashSet::default();
    let mut outs: Vec<OutRef> = Vec::new();
    for p in &found.pairs[before..] {
        seen.insert((p.out, p.writer, p.other));
        if outs.last() != Some(&p.out) {
            outs.push(p.out);
        }
    }
    let mut queries = Vec::new();
    for out in outs {
        if !Users::of(module, g, out, writes, &order).all(&mut queries) {
            found.complete = false;
            break;
        }
    }
    let more = unreached(graph, &order, queries);
    found
        .pairs
        .extend(more.filter(|p| seen.insert((p.out, p.writer, p.other))));
}

/// The pairs whose question is answered with no.
fn unreached(
    graph: &crate::ir::Graph,
    order: &Order,
    queries: Vec<Query>,
) -> impl Iterator<Item = Unordered> {
    let pairs: Vec<(NodeId, NodeId)> = queries.iter().map(|q| (q.from, q.to)).collect();
    let reached = order.all(graph, &pairs);
    queries
        .into_iter()
        .zip(reached)
        .filter_map(|(q, ok)| (!ok).then_some(q.pair))
}

/// Who uses an output, by place in the order.
struct Users {
    graph: GraphId,
    out: OutRef,
    writers: Vec<(u32, InRef)>,
    readers: Vec<(u32, InRef)>,
}

impl Users {
    fn of(module: &Module, g: GraphId, out: OutRef, writes: &Inputs, order: &Order) -> Users {
        let mut writers: Vec<(u32, InRef)> = Vec::new();
        let mut readers: Vec<(u32, InRef)> = Vec::new();
        for c in module.graph(g).consumers(out) {
            let list = if writes.contains(&(g, *c)) {
                &mut writers
            } else if is_ignored(module, g, *c) {
                continue;
            } else {
                &mut readers
            };
            list.push((order.rank(c.node), *c));
        }
        writers.sort();
        writers.dedup_by_key(|w| w.0);
        // Who writes, too, is a writer.
        readers.retain(|r| writers.binary_search_by_key(&r.0, |w| w.0).is_err());
        Users {
            graph: g,
            out,
            writers,
            readers,
        }
    }

    fn ask(&self, from: InRef, to: InRef, writer: InRef, other: InRef, both_write: bool) -> Query {
        Query {
            pair: Unordered {
                graph: self.graph,
                out: self.out,
                writer,
                other,
                both_write,
            },
            from: from.node,
            to: to.node,
        }
    }

    fn write_read(&self, w: (u32, InRef), r: (u32, InRef)) -> Query {
        if w.0 < r.0 {
            self.ask(w.1, r.1, w.1, r.1, false)
        } else {
            self.ask(r.1, w.1, w.1, r.1, false)
        }
    }

    /// What decides whether anything is missing: neighbours only.
    fn chain(&self, queries: &mut Vec<Query>) {
        for w in self.writers.windows(2) {
            queries.push(self.ask(w[0].1, w[1].1, w[0].1, w[1].1, true));
        }
        for r in &self.readers {
            // The nearest writers decide: if the chain holds, the others are in order with those.
            let after = self.writers.partition_point(|w| w.0 < r.0);
            let near = [after.checked_sub(1), Some(after)];
            for w in near.into_iter().flatten() {
                if let Some(w) = self.writers.get(w) {
                    queries.push(self.write_read(*w, *r));
                }
            }
        }
    }

    /// Every pair; false if there are too many.
    fn all(&self, queries: &mut Vec<Query>) -> bool {
        for (i, w) in self.writers.iter().enumerate() {
            for v in &self.writers[i + 1..] {
                queries.push(self.ask(w.1, v.1, w.1, v.1, true));
            }
            for r in &self.readers {
                queries.push(self.write_read(*w, *r));
            }
            if queries.len() > BEYOND {
                return false;
            }
        }
        true
    }
}
