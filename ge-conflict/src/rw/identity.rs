//! Copies that were in the graph before: split where a consumer writes, removed where nobody needs them.

use super::class::{Classes, InClass, OutClass, Verdict, verdict};
use crate::ctx::Ctx;
use crate::ir::{GraphId, InRef, Kind, Module, NodeId, OutRef, Template};
use crate::report::{ConflictKind, Reason};

fn reason(rule: &str, source: String, sink: String, why: String) -> Reason {
    Reason::new(ConflictKind::ReadWrite, rule, (source, sink), why)
}

/// Each writing consumer gets a copy of its own; the readers go back to the source, unless the copy is what orders their
/// read before somebody's write.
pub(super) fn split(ctx: &mut Ctx<'_>, classes: &Classes, g: GraphId, id: NodeId) {
    let graph = ctx.module.graph(g);
    let out = OutRef { node: id, index: 0 };
    let consumers = graph.consumers(out).to_vec();
    let Some(source) = graph.producer(InRef { node: id, index: 0 }) else {
        return;
    };
    if consumers.len() < 2 || graph.node(id).outputs.len() != 1 {
        return;
    }
    let snapshot = has_other_writer(ctx.module, classes, g, source, id);
    let (before, after) = (
        graph.node(id).control_in.clone(),
        graph.node(id).control_out.clone(),
    );
    let (copy, origin) = (ctx.name(g, id), ctx.module.out_name(g, source));
    let kept = format!("the copy `{copy}`, which is split up, had this place in the order");
    for c in consumers {
        let sink = ctx.module.in_name(g, c);
        if matches!(
            classes.input(ctx.module, g, c),
            InClass::Writeable | InClass::ScopeWrite
        ) {
            let why = format!(
                "{sink} writes what it gets from `{copy}`, which is one copy of {origin} for several operators"
            );
            let reason = reason(
                "a copy that several operators use, and one of them writes, is split",
                origin.clone(),
                sink.clone(),
                why,
            )
            .repair(format!(
                "{sink} has a copy of {origin} that nobody else uses"
            ));
            let name = format!("{copy}_split");
            split_off(ctx, g, source, c, (id, &name), !after.is_empty(), &reason);
            let Some(new) = ctx.module.graph(g).producer(c).map(|p| p.node) else {
                continue;
            };
            for b in &before {
                ctx.add_control(g, *b, new, &kept);
            }
            for a in after.iter().filter(|a| **a != c.node) {
                ctx.add_control(g, new, *a, &kept);
            }
        } else if !snapshot {
            let why = format!("{sink} only reads, so it reads {origin} itself and needs no copy");
            let reason = reason(
                "readers of a split copy read its source",
                origin.clone(),
                sink,
                why,
            );
            ctx.relink(g, c, source, &reason);
            for b in &before {
                ctx.add_control(g, *b, c.node, &kept);
            }
            for a in &after {
                ctx.add_control(g, source.node, *a, &kept);
            }
        }
    }
    if ctx.module.graph(g).consumers(out).is_empty() {
        let why = format!("`{copy}` has no consumer left after the split");
        let reason = reason("remove an empty copy", origin, format!("{copy}.out.0"), why);
        ctx.remove(g, id, &reason);
    }
}

/// Puts a new copy of `source` before `c`. Where the old copy had to run before other nodes, the consumer's own incoming
/// control edges stay where they are: moved to the new copy, they could close a cycle.
fn split_off(
    ctx: &mut Ctx<'_>,
    g: GraphId,
    source: OutRef,
    c: InRef,
    (old, name): (NodeId, &str),
    ordered: bool,
    reason: &Reason,
) {
    let story = ctx.story(
        g,
        OutRef {
            node: old,
            index: 0,
        },
        Some(c),
        reason,
    );
    ctx.module.graph_mut(g).reconnect(source, c);
    let template = Template {
        name,
        ty: "Identity",
        attrs: &[],
    };
    if !ordered {
        if ctx.insert_before(g, &[c], &template, reason).is_some()
            && let Some(i) = ctx.report.inserted.last_mut()
        {
            // It is the old copy that others use, not the source.
            i.conflict.story = Some(story);
        }
        return;
    }
    let graph = ctx.module.graph_mut(g);
    let node = graph.copy_node(&template, &[source]);
    let id = graph.add(node);
    graph.move_before(id, c.node);
    graph.disconnect(c);
    graph.connect(source, InRef { node: id, index: 0 });
    graph.connect(OutRef { node: id, index: 0 }, c);
    let before = crate::report::Before {
        node: graph.node(c.node).name.clone(),
        input: c.index,
    };
    let before = Some(crate::report::OneOrMany::One(before));
    ctx.note_inserted(g, id, before, None, Some(story), reason);
}

/// Takes the copy out if it has one consumer and source and consumer get along without it.
pub(super) fn remove_useless(ctx: &mut Ctx<'_>, classes: &Classes, g: GraphId, id: NodeId) {
    let graph = ctx.module.graph(g);
    let Some(node) = graph.get(id) else { return };
    let Some(source) = graph.producer(InRef { node: id, index: 0 }) else {
        return;
    };
    if node.outputs.len() != 1 || node.inputs.len() != 1 {
        return;
    }
    let (before, after) = (node.control_in.clone(), node.control_out.clone());
    let copy = node.name.clone();
    let origin = ctx.module.out_name(g, source);
    match graph.consumers(OutRef { node: id, index: 0 }) {
        [] if after.is_empty() => {
            let reason = reason(
                "remove a useless copy",
                origin,
                format!("{copy}.out.0"),
                format!("nobody uses `{copy}`"),
            );
            ctx.remove(g, id, &reason);
        }
        &[c] => {
            let at_subgraph = |n: NodeId| {
                let n = graph.node(n);
                !n.subgraphs.is_empty() || super::is_boundary(ctx.module, g, n.kind)
            };
            if graph.node(c.node).kind == Kind::StreamMerge
                || at_subgraph(c.node)
                || at_subgraph(source.node)
            {
                return;
            }
            let (class, input) = (
                classes.output(ctx.module, g, source),
                classes.input(ctx.module, g, c),
            );
            // Without the copy a writing consumer would write memory that others hold.
            let exposes = input != InClass::ReadOnly && class != OutClass::SoftRead;
            if verdict(class, input) != Verdict::Nothing
                || exposes
                || has_other_writer(ctx.module, classes, g, source, id)
            {
                return;
            }
            let sink = ctx.module.in_name(g, c);
            let why = format!(
                "{sink} may read {origin} itself: nobody else writes that memory (an Identity with the attribute `_cannot_be_deleted`: true would stay)"
            );
            let reason = reason("remove a useless copy", origin, sink, why);
            ctx.relink(g, c, source, &reason);
            for b in before {
                ctx.add_control(
                    g,
                    b,
                    c.node,
                    &format!("the removed copy `{copy}` had to wait for this, too"),
                );
            }
            for a in after {
                ctx.add_control(
                    g,
                    source.node,
                    a,
                    &format!("this had to wait for the removed copy `{copy}`, too"),
                );
            }
            ctx.remove(g, id, &reason);
        }
        _ => {}
    }
}

/// Whether anybody but `except` writes the memory behind `source`: then the copy may be a snapshot taken before the write.
fn has_other_writer(
    module: &Module,
    classes: &Classes,
    g: GraphId,
    source: OutRef,
    except: NodeId,
) -> bool {
    let graph = module.graph(g);
    let writes = |at: OutRef, skip: NodeId| {
        graph
            .consumers(at)
            .iter()
            .any(|c| c.node != skip && classes.input(module, g, *c) != InClass::ReadOnly)
    };
    let (mut at, mut skip) = (source, except);
    for _ in 0..=graph.len() {
        if writes(at, skip) {
            return true;
        }
        let node = graph.node(at.node);
        if node.kind.is_data() && graph.parent.is_some() {
            return classes.output(module, g, at) == OutClass::Writeable;
        }
        let Some(input) = node.ref_input_of(at.index as usize) else {
            return false;
        };
        let Some(up) = graph.producer(InRef {
            node: at.node,
            index: input as u32,
        }) else {
            return false;
        };
        (at, skip) = (up, at.node);
    }
    true
}
