//! Subgraphs and their surroundings: copies where both would work in one memory.

use crate::ctx::{Ctx, KEEP, PassError};
use crate::ir::{Graph, GraphId, InRef, Kind, Module, NodeId, OutRef, Template, names};
use crate::layout::NO_ORDER_HELPS;
use crate::layout::symbols::alias_input;
use crate::report::{ConflictKind, Reason};
use rustc_hash::FxHashSet;

/// The pass's name in results.
pub const PASS: &str = "subgraph";

/// Runs the pass on every graph.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    ctx.top()?;
    for g in ctx.targets() {
        let is_sub = ctx.module.graph(g).parent.is_some();
        for id in ctx.module.graph(g).id_list() {
            match ctx.module.graph(g).node(id).kind {
                k if k.is_data() && is_sub => data(ctx, g, id),
                Kind::NetOutput if is_sub => net_output(ctx, g, id),
                Kind::While => {
                    while_inputs(ctx, g, id);
                    while_body(ctx, g, id)?;
                    while_condition(ctx, g, id);
                }
                Kind::If | Kind::Case => branches(ctx, g, id),
                _ => {}
            }
        }
    }
    Ok(())
}

fn reason(rule: &str, a: String, b: String, why: String) -> Reason {
    Reason::new(ConflictKind::SubgraphIsolation, rule, (a, b), why)
}

/// What the order of execution has to do with a loop's memory.
fn between_rounds(name: &str) -> String {
    format!(
        "edges order the operators inside a round, but every round of {name} uses the same memory again, and no edge orders the \
         end of one round against what still uses it"
    )
}

/// Which input of its parent a subgraph's Data stands for.
fn parent_input(module: &Module, g: GraphId, data: NodeId) -> i64 {
    module.graph(g).node(data).parent_index().unwrap_or(0)
}

fn before(ctx: &mut Ctx<'_>, g: GraphId, inputs: &[InRef], reason: &Reason) {
    let Some(first) = inputs.first() else { return };
    let name = format!("{}_input_{}_Identity", ctx.name(g, first.node), first.index);
    ctx.insert_before(
        g,
        inputs,
        &Template {
            name: &name,
            ty: "Identity",
            attrs: KEEP,
        },
        reason,
    );
}

fn after(ctx: &mut Ctx<'_>, g: GraphId, outputs: &[OutRef], reason: &Reason) {
    let Some(first) = outputs.first() else { return };
    let name = format!(
        "{}_output_{}_Identity",
        ctx.name(g, first.node),
        first.index
    );
    ctx.insert_after(
        g,
        outputs,
        &Template {
            name: &name,
            ty: "Identity",
            attrs: KEEP,
        },
        reason,
    );
}

/// A copy that this pass (or layout) put in: it already keeps both sides apart.
fn is_guard(graph: &Graph, id: NodeId) -> bool {
    let n = graph.node(id);
    n.kind.is_copy() && n.attrs.flag(names::CANNOT_BE_DELETED)
}

fn data(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    let out = OutRef { node: id, index: 0 };
    if let Some(reader) = continuous_reader(ctx.module.graph(g), out) {
        let (a, b) = (ctx.module.out_name(g, out), ctx.module.in_name(g, reader));
        let why = format!(
            "{a} is memory from outside of graph {}, which has its place already, but {b} is one of several inputs that must lie \
             one after the other in memory",
            ctx.graph_name(g)
        );
        let reason = reason("a subgraph's input in a row of inputs", a, b.clone(), why)
            .order(NO_ORDER_HELPS)
            .repair(format!("the copy lies where {b} needs it"));
        after(ctx, g, &[out], &reason);
    }
    // A loop would overwrite a constant that it is given.
    let Some((p, parent)) = ctx.module.parent_node(g) else {
        return;
    };
    if parent.kind != Kind::While {
        return;
    }
    let Some(index) = ctx
        .module
        .graph(g)
        .node(id)
        .parent_index()
        .and_then(|i| u32::try_from(i).ok())
    else {
        return;
    };
    let at = InRef {
        node: p.node,
        index,
    };
    let Some((source_graph, source)) = real_source(ctx.module, p.graph, at) else {
        return;
    };
    let origin = ctx.module.graph(source_graph).node(source.node);
    if origin.kind.is_const() {
        let (a, b) = (
            ctx.module.in_name(p.graph, at),
            ctx.module.out_name(source_graph, source),
        );
        let why = format!(
            "the loop {0} keeps its state in the memory of its input {index} and rewrites it in every round, but {b} is a \
             constant, which must keep its value",
            ctx.name(p.graph, p.node)
        );
        let reason = reason("a constant enters a loop", a, b.clone(), why).repair(format!(
            "the loop {} keeps its state in the copy, and {b} keeps its value",
            ctx.name(p.graph, p.node)
        ));
        before(ctx, p.graph, &[at], &reason);
    }
}

/// A consumer that needs a run of inputs, also behind operators that pass their input on.
fn continuous_reader(graph: &Graph, out: OutRef) -> Option<InRef> {
    let mut todo = vec![out];
    let mut seen = FxHashSet::default();
    while let Some(at) = todo.pop() {
        for c in graph.consumers(at) {
            let n = graph.node(c.node);
            if n.attrs.flag(names::CI) || n.attrs.flag(names::NPCI) {
                return Some(*c);
            }
            for o in 0..n.outputs.len() {
                let next = OutRef {
                    node: c.node,
                    index: o as u32,
                };
                if alias_input(n, o) == Some(c.index as usize) && seen.insert(next) {
                    todo.push(next);
                }
            }
        }
    }
    None
}

/// What an input gets, seen through called graphs in both directions.
fn real_source(module: &Module, g: GraphId, at: InRef) -> Option<(GraphId, OutRef)> {
    let (mut g, mut at) = (g, at);
    for _ in 0..4096 {
        let mut from = module.graph(g).producer(at)?;
        while let node = module.graph(g).node(from.node)
            && node.kind == Kind::PartitionedCall
            && let Some(s) = node.subgraphs.iter().flatten().next().copied()
            && let Some(inner) = crate::rw::result(module, s, from.index)
        {
            (g, from) = (s, inner);
        }
        let node = module.graph(g).node(from.node);
        match module.parent_node(g) {
            Some((p, parent)) if node.kind.is_data() && parent.kind == Kind::PartitionedCall => {
                let index = u32::try_from(node.parent_index()?).ok()?;
                (g, at) = (
                    p.graph,
                    InRef {
                        node: p.node,
                        index,
                    },
                );
            }
            _ => return Some((g, from)),
        }
    }
    None
}

/// The outputs whose memory an output's is, itself first.
fn reverse_chain(graph: &Graph, from: OutRef) -> Vec<OutRef> {
    let mut chain = vec![from];
    let mut at = from;
    for _ in 0..=graph.len() {
        let up = alias_input(graph.node(at.node), at.index as usize).and_then(|i| {
            graph.producer(InRef {
                node: at.node,
                index: i as u32,
            })
        });
        let Some(up) = up else { break };
        chain.push(up);
        at = up;
    }
    chain
}

fn net_output(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    let Some((p, parent)) = ctx.module.parent_node(g) else {
        return;
    };
    let parent_known = !ctx.module.graph(p.graph).is_unknown();
    let in_while = parent.kind == Kind::While;
    let known = !ctx.module.graph(g).is_unknown();
    for index in 0..ctx.module.graph(g).node(id).inputs.len() as u32 {
        let at = InRef { node: id, index };
        let graph = ctx.module.graph(g);
        let Some(from) = graph.producer(at) else {
            continue;
        };
        let source = graph.node(from.node);
        let dynamic = graph.node(id).inputs[index as usize].desc.is_unknown()
            || source
                .outputs
                .get(from.index as usize)
                .is_some_and(|o| o.desc.is_unknown());
        let atomic = source
            .attrs
            .ints(names::ATOMIC_OUT)
            .is_some_and(|l| l.contains(&i64::from(from.index)));
        let runs = || {
            reverse_chain(graph, from).iter().any(|o| {
                let n = graph.node(o.node);
                n.attrs.flag(names::CO) || n.attrs.flag(names::NPCO)
            })
        };
        let (rule, what) = if source.kind.is_const() && parent_known {
            (
                "a constant leaves a subgraph",
                "a constant, which an operator that works on the result could overwrite",
            )
        } else if atomic {
            (
                "an atomic result leaves a subgraph",
                "set to zero before each run by its own graph, which can't do that to memory outside",
            )
        } else if runs() {
            (
                "part of a row of outputs leaves a subgraph",
                "one of several outputs that must lie one after the other in memory, so it can't lie where the result belongs",
            )
        } else if source.kind.is_data() && !in_while {
            (
                "a subgraph's input is its result",
                "the subgraph's own input, which the graph around may still need when the result is worked on",
            )
        } else if source.kind == Kind::While && known && dynamic {
            (
                "a loop's result of unknown size leaves a subgraph",
                "a loop's result whose size is only known at run time",
            )
        } else {
            continue;
        };
        let (a, b) = (ctx.module.in_name(g, at), ctx.module.out_name(g, from));
        let why = format!(
            "{b} leaves graph {} as its result {a}, but it is {what}",
            ctx.graph_name(g)
        );
        let order = format!(
            "edges inside graph {} order nothing against the operators around {} that use the result",
            ctx.graph_name(g),
            ctx.name(p.graph, p.node)
        );
        let reason = reason(rule, a, b.clone(), why).order(order).repair(format!(
            "the result is a copy in memory of its own, and {b} stays inside"
        ));
        before(ctx, g, &[at], &reason);
    }
}

fn while_inputs(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    for index in 0..ctx.module.graph(g).node(id).inputs.len() as u32 {
        let at = InRef { node: id, index };
        let graph = ctx.module.graph(g);
        let Some(from) = graph.producer(at) else {
            continue;
        };
        if graph.node(from.node).kind.is_var_like() || graph.consumers(from).len() < 2 {
            continue;
        }
        let other = graph.consumers(from).iter().find(|c| **c != at).copied();
        let name = ctx.name(g, id);
        let (a, b) = (ctx.module.in_name(g, at), ctx.module.out_name(g, from));
        let reader = other.map(|o| ctx.module.in_name(g, o)).unwrap_or_default();
        let why = format!(
            "the loop {name} keeps its state in the memory of its input {index} ({b}) and rewrites it in every round, and \
             {reader} uses the same memory"
        );
        let reason = reason("a loop's input is shared", a, reader, why).repair(format!(
            "the loop {name} keeps its state in the copy, and everybody else has {b}"
        ));
        before(ctx, g, &[at], &reason);
    }
}

fn while_body(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) -> Result<(), PassError> {
    let node = ctx.module.graph(g).node(id);
    let name = node.name.clone();
    let Some(body) = node.subgraphs.get(1).copied().flatten() else {
        let graph = &ctx.module.graph(g).name;
        return Err(PassError::Failed(format!(
            "graph {graph}, node {name}: the loop has no body (subgraph 1); add it"
        )));
    };
    let graph = ctx.module.graph(body);
    if graph.is_unknown() {
        return Ok(());
    }
    let outs: Vec<NodeId> = graph
        .iter()
        .filter(|(_, n)| n.kind == Kind::NetOutput)
        .map(|(id, _)| id)
        .collect();
    let &[out] = outs.as_slice() else {
        return Err(PassError::Failed(format!(
            "graph {} is the body of {name} and has {} NetOutput nodes; it needs exactly one",
            graph.name,
            outs.len()
        )));
    };
    let sink = graph.node(out);
    let mut bypass = FxHashSet::default();
    let mut inputs = Vec::new();
    for (d, n) in graph.iter().filter(|(_, n)| n.kind.is_data()) {
        let from = OutRef { node: d, index: 0 };
        match graph.consumers(from) {
            [] => {}
            [c] if c.node == out
                && n.parent_index() == Some(sink.parent_output(c.index as usize)) =>
            {
                bypass.insert(*c);
            }
            [c] if is_guard(graph, c.node) => {}
            _ => inputs.push(from),
        }
    }
    let results: Vec<InRef> = (0..sink.inputs.len() as u32)
        .map(|index| InRef { node: out, index })
        .filter(|i| !bypass.contains(i))
        .filter(|i| {
            graph
                .producer(*i)
                .is_some_and(|p| !(is_guard(graph, p.node) && graph.consumers(p).len() == 1))
        })
        .collect();
    let gname = graph.name.clone();
    if let Some(first) = inputs.first() {
        let a = ctx.module.out_name(body, *first);
        let k = parent_input(ctx.module, body, first.node);
        let why = format!(
            "graph {gname} is the body of the loop {name}, one round of it: {a} is the memory in which {name} keeps its state \
             between rounds, and the end of a round overwrites it for the next one while operators of the round may still work there"
        );
        let reason = reason("a loop body's inputs", a, format!("{name}.in.{k}"), why)
            .order(between_rounds(&name))
            .repair("the round works on copies of its inputs, and the state is left alone until the round's end");
        after(ctx, body, &inputs, &reason);
    }
    if let Some(first) = results.first() {
        // The copy after the inputs may stand before the results now: that one is not enough if both ends share it.
        let a = ctx.module.in_name(body, *first);
        let k = ctx
            .module
            .graph(body)
            .node(first.node)
            .parent_output(first.index as usize);
        let why = format!(
            "graph {gname} is the body of the loop {name}, one round of it: the result {a} is the next round's input, in the \
             memory where {name} keeps its state, and it must not be written there before the round has done with the old state"
        );
        let reason = reason("a loop body's results", a, format!("{name}.out.{k}"), why)
            .order(between_rounds(&name))
            .repair("the round puts its results into memory of its own, and they are copied to the loop's state at the round's end");
        before(ctx, body, &results, &reason);
    }
    Ok(())
}

/// A loop of unknown shapes: what the condition reads must not be what the body writes. And a condition that uses the loop's
/// state as scratch space must not do so to the state itself, which the body gets next (the observed implementation leaves
/// that alone: its read-write pass looks into no loop, and its other rules only look at the body).
fn while_condition(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    let node = ctx.module.graph(g).node(id);
    let unknown = node.inputs.iter().any(|i| i.desc.is_unknown())
        || node.outputs.iter().any(|o| o.desc.is_unknown());
    let Some(cond) = node.subgraphs.first().copied().flatten() else {
        return;
    };
    let dynamic =
        unknown || ctx.module.graph(g).is_unknown() || ctx.module.graph(cond).is_unknown();
    let name = node.name.clone();
    let graph = ctx.module.graph(cond);
    let inputs: Vec<OutRef> = graph
        .iter()
        .filter(|(_, n)| n.kind.is_data())
        .map(|(d, _)| OutRef { node: d, index: 0 })
        .filter(|o| match graph.consumers(*o) {
            [] => false,
            [c] => !is_guard(graph, c.node),
            _ => true,
        })
        .filter(|o| dynamic || overwritten(ctx.module, cond, *o, MAX_NESTING))
        .collect();
    if let Some(first) = inputs.first() {
        let a = ctx.module.out_name(cond, *first);
        if !dynamic {
            let k = parent_input(ctx.module, cond, first.node);
            let why = format!(
                "graph {} is the condition of the loop {name}: {a} is the memory in which {name} keeps its state, and an operator of \
                 the condition uses it as scratch space, though the body needs the state next",
                ctx.graph_name(cond)
            );
            let rule = "a loop's condition overwrites the loop's state";
            let reason = reason(rule, a, format!("{name}.in.{k}"), why)
                .order("the condition always runs before the body, and what it leaves overwritten is what the body is given")
                .repair("the condition works on a copy, and the state stays as it is");
            after(ctx, cond, &inputs, &reason);
            return;
        }
        let why = format!(
            "the shapes of the loop {name} are only known at run time, so its state may move to other memory from round to round, \
             and {a}, which the loop's condition reads, is that state"
        );
        let k = parent_input(ctx.module, cond, first.node);
        let reason = reason(
            "a dynamic loop's condition",
            a,
            format!("{name}.in.{k}"),
            why,
        )
        .order(between_rounds(&name))
        .repair("the condition reads a copy, which stays where it is");
        after(ctx, cond, &inputs, &reason);
    }
}

/// How deep calls inside calls are looked into.
const MAX_NESTING: usize = 8;

/// Whether somebody uses this memory as scratch space: here, behind operators that hand it on, or in a call.
fn overwritten(module: &Module, g: GraphId, from: OutRef, nesting: usize) -> bool {
    let graph = module.graph(g);
    let (mut todo, mut seen) = (vec![from], FxHashSet::default());
    while let Some(at) = todo.pop() {
        for c in graph.consumers(at) {
            let n = graph.node(c.node);
            if n.kind == Kind::While || crate::rw::overwrites(n, c.index as usize) {
                return true;
            }
            let inner = n.subgraphs.iter().flatten().filter(|_| nesting > 0);
            for s in inner.copied() {
                let data = module.graph(s).iter().filter(|(_, d)| {
                    d.kind.is_data() && d.parent_index() == Some(i64::from(c.index))
                });
                for (node, _) in data {
                    if overwritten(module, s, OutRef { node, index: 0 }, nesting - 1) {
                        return true;
                    }
                }
            }
            for o in 0..n.outputs.len() {
                let next = OutRef {
                    node: c.node,
                    index: o as u32,
                };
                if alias_input(n, o) == Some(c.index as usize) && seen.insert(next) {
                    todo.push(next);
                }
            }
        }
    }
    false
}

fn branches(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    if ctx.module.graph(g).is_unknown() {
        return;
    }
    let node = ctx.module.graph(g).node(id);
    let parent = node.name.clone();
    for sub in node.subgraphs.iter().flatten().copied().collect::<Vec<_>>() {
        let Some(out) = ctx.module.graph(sub).first_of(Kind::NetOutput) else {
            continue;
        };
        let mut seen = FxHashSet::default();
        for index in 0..ctx.module.graph(sub).node(out).inputs.len() as u32 {
            let at = InRef { node: out, index };
            let Some(from) = ctx.module.graph(sub).producer(at) else {
                continue;
            };
            // A copy made for this pass has one output per result: those are apart already.
            if seen.insert(from.node) || is_guard(ctx.module.graph(sub), from.node) {
                continue;
            }
            let (a, b) = (ctx.module.in_name(sub, at), ctx.module.out_name(sub, from));
            let why = format!(
                "graph {} is one way through {parent}, and {} gives it more than one result, whose places may depend on each \
                 other; but each result of {parent} has a place of its own, the same for all ways",
                ctx.graph_name(sub),
                ctx.name(sub, from.node)
            );
            let rule = "one operator gives several results of a branch";
            let reason = reason(rule, a, b, why).order(NO_ORDER_HELPS).repair(
                "the second result and later ones are copies, each with a place of its own",
            );
            before(ctx, sub, &[at], &reason);
        }
    }
}
