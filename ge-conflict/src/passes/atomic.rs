//! Atomic operators add to their outputs: somebody has to clear those first.

use crate::ctx::{Ctx, PassError};
use crate::ir::{Attr, Graph, GraphId, Kind, Node, NodeId, names};
use crate::report::{ConflictKind, Reason};
use crate::text::{and, quoted};
use rustc_hash::FxHashSet;

/// The pass's name in results.
pub const PASS: &str = "atomic";

/// Runs the pass on every graph of known shape.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    ctx.top()?;
    for g in ctx.targets() {
        if !ctx.module.graph(g).is_unknown() {
            graph(ctx, g);
        }
    }
    Ok(())
}

fn graph(ctx: &mut Ctx<'_>, g: GraphId) {
    let graph = ctx.module.graph(g);
    let atomic: Vec<NodeId> = graph
        .iter()
        .filter(|(_, n)| is_atomic(graph, n) && !n.attrs.flag(names::GENTASK_ATOMIC))
        // Who has its clearing operator already needs no second one.
        .filter(|(_, n)| !n.control_in.iter().any(|c| graph.node(*c).kind.is_clean()))
        .map(|(id, _)| id)
        .collect();
    if ctx.module.options.atomic_clean_policy == 1 {
        for id in atomic {
            let why =
                "by the option atomic_clean_policy each operator sets its memory to zero itself";
            ctx.mark(g, id, names::GENTASK_ATOMIC, Attr::Bool(true), why);
        }
        return;
    }
    let (alone, rest): (Vec<NodeId>, Vec<NodeId>) = atomic
        .iter()
        .copied()
        .partition(|id| cleans_itself(graph, *id));
    let looped = graph.first_of(Kind::LoopCond).is_some();
    let wanted: Vec<NodeId> = rest
        .into_iter()
        .filter(|id| !feeds_collectives_only(graph, *id, looped))
        .collect();
    let to_output = |id: &NodeId| {
        let n = graph.node(*id);
        !n.is_hccl()
            && n.outputs
                .iter()
                .flat_map(|o| &o.to)
                .any(|c| graph.node(c.node).kind == Kind::NetOutput)
    };
    let (own, shared): (Vec<NodeId>, Vec<NodeId>) =
        wanted.into_iter().partition(|id| looped || to_output(id));
    for id in alone {
        let why = "its output is a variable or goes to an operator without a task of its own: it sets its memory to zero itself";
        ctx.mark(g, id, names::GENTASK_ATOMIC, Attr::Bool(true), why);
    }
    for id in own {
        let name = ctx.name(g, id);
        let why = if looped {
            format!(
                "`{name}` adds to its output in every round of a loop, and the sums of the last round are still in it"
            )
        } else {
            format!(
                "`{name}` adds to an output of the graph, and the sums of the last run are still in it (this one gets a MemSet of its \
                 own, because the caller may choose its address)"
            )
        };
        let why = format!("{why} ({})", cause(ctx, g, id));
        clean(ctx, g, &[id], &format!("{name}_MemSet"), why);
    }
    if !shared.is_empty() {
        let names: Vec<String> = shared
            .iter()
            .take(4)
            .map(|id| format!("`{}` ({})", ctx.name(g, *id), cause(ctx, g, *id)))
            .collect();
        let why = format!(
            "{}{} {} to memory in which the sums of the last run still are",
            and(&names),
            match shared.len() - names.len() {
                0 => String::new(),
                more => format!(" ({more} more, too)"),
            },
            if shared.len() == 1 { "adds" } else { "add" }
        );
        clean(ctx, g, &shared, "MemSet", why);
    }
}

fn is_atomic(graph: &Graph, n: &Node) -> bool {
    if n.kind.is_clean() {
        return false;
    }
    let from_data = || (0..n.inputs.len()).any(|i| reads_data(graph, n, i));
    let lib = n.is_hccl()
        && match n.attrs.get(names::IS_ATOMIC) {
            Some(a) => a.is_true(),
            // The library says so of those that reduce.
            None => ["AllReduce", "ReduceScatter", "Reduce"]
                .iter()
                .any(|s| n.ty.ends_with(s)),
        };
    if lib && !from_data() {
        return true;
    }
    let listed = |name: &str| match n.attrs.get(name) {
        Some(Attr::List(l)) => !l.is_empty(),
        Some(Attr::Other(v)) => v.as_object().is_some_and(|o| !o.is_empty()),
        Some(_) => true,
        None => false,
    };
    LISTED.iter().any(|a| listed(a))
}

/// A copy of this run without which an operator would read the caller's memory itself, and so not count as adding up.
fn new_copy(ctx: &Ctx<'_>, g: GraphId, id: NodeId) -> Option<String> {
    let graph = ctx.module.graph(g);
    let n = graph.node(id);
    if LISTED.iter().any(|a| n.attrs.has(a)) {
        return None;
    }
    n.inputs.iter().find_map(|i| {
        let copy = graph.node(i.from?.node);
        let source = copy.inputs.first()?.from?;
        let new = ctx
            .report
            .inserted
            .iter()
            .any(|x| x.graph == graph.name && x.name == copy.name);
        (copy.kind.is_copy() && new && graph.node(source.node).kind.is_data())
            .then(|| copy.name.clone())
    })
}

const LISTED: [&str; 4] = [
    names::ATOMIC_OUT,
    names::ATOMIC_IN,
    names::ATOMIC_WORKSPACE,
    names::ATOMIC_WORKSPACE2,
];

/// What says that an operator adds to its output.
fn cause(ctx: &Ctx<'_>, g: GraphId, id: NodeId) -> String {
    let n = ctx.module.graph(g).node(id);
    if let Some(a) = LISTED.into_iter().find(|a| n.attrs.has(a)) {
        return format!("it has the attribute `{a}`");
    }
    let what = if n.attrs.has(names::IS_ATOMIC) {
        format!("it has the attribute `{}`", names::IS_ATOMIC)
    } else {
        format!(
            "it is {} of the library HCCL (\"kernel_lib\": \"hccl\")",
            crate::text::with_article(&n.ty)
        )
    };
    let data = match new_copy(ctx, g, id) {
        Some(copy) => format!("with the copy `{copy}` of a conflict above none is any more"),
        None => "none is".to_owned(),
    };
    format!(
        "{what}, and by a rule of GE such an operator counts as adding up unless an input of it is the caller's memory itself; {data}"
    )
}

/// The memory that an operator adds to, by anchor, as far as the file tells.
fn memory(n: &Node) -> Vec<String> {
    let numbers = |name: &str| n.attrs.ints(name).unwrap_or_default();
    let outs = numbers(names::ATOMIC_OUT);
    let ins = numbers(names::ATOMIC_IN);
    let mut list: Vec<String> = outs.iter().map(|k| format!("{}.out.{k}", n.name)).collect();
    list.extend(ins.iter().map(|k| format!("{}.in.{k}", n.name)));
    if [names::ATOMIC_WORKSPACE, names::ATOMIC_WORKSPACE2]
        .iter()
        .any(|a| n.attrs.has(a))
    {
        list.push(format!("working memory of `{}`", n.name));
    }
    if list.is_empty() && !n.outputs.is_empty() {
        list.extend((0..n.outputs.len().min(4)).map(|k| format!("{}.out.{k}", n.name)));
    }
    if list.is_empty() {
        list.push(format!("what `{}` adds to", n.name));
    }
    list
}

/// Inputs that are the operator's outputs, too, and who makes them.
fn in_place(n: &Node) -> Vec<(usize, usize, NodeId)> {
    (0..n.outputs.len())
        .filter_map(|o| {
            let k = n.ref_input_of(o)?;
            Some((o, k, n.inputs.get(k)?.from?.node))
        })
        .collect()
}

/// Whether an input is the user's. A copy that a later pass of an earlier run put in between does not change that: otherwise
/// the operator would be found atomic the second time.
fn reads_data(graph: &Graph, n: &Node, index: usize) -> bool {
    let (mut n, mut index) = (n, index);
    for _ in 0..=graph.len() {
        let Some(from) = n.inputs.get(index).and_then(|i| i.from) else {
            return false;
        };
        let source = graph.node(from.node);
        if source.kind.is_data() {
            return true;
        }
        let own_name = || {
            source
                .name
                .strip_prefix(n.name.as_str())
                .is_some_and(|s| s.starts_with("_input_"))
        };
        // Those of the collectives' pass were there the first time too; they have this one attribute and not the other.
        let late = source.attrs.flag(names::CANNOT_BE_DELETED)
            || (own_name() && !source.attrs.has(names::NO_NEED_FOLDING));
        if !source.kind.is_copy() || !late {
            return false;
        }
        (n, index) = (source, from.index as usize);
    }
    false
}

fn cleans_itself(graph: &Graph, id: NodeId) -> bool {
    let n = graph.node(id);
    let refers = n.outputs.iter().any(|o| o.desc.attrs.has(names::REF_VAR));
    refers
        || n.outputs
            .iter()
            .flat_map(|o| &o.to)
            .any(|c| graph.node(c.node).attrs.flag(names::NO_TASK))
}

/// What goes only into collectives that are atomic themselves is cleared with them.
fn feeds_collectives_only(graph: &Graph, id: NodeId, looped: bool) -> bool {
    let n = graph.node(id);
    if n.is_hccl() {
        return false;
    }
    let atomic_outs = n.attrs.ints(names::ATOMIC_OUT);
    let outs: Vec<usize> = match (looped, atomic_outs) {
        (true, Some(l)) => l
            .into_iter()
            .filter_map(|o| usize::try_from(o).ok())
            .collect(),
        _ => (0..n.outputs.len()).collect(),
    };
    !outs.is_empty()
        && outs.iter().all(|o| {
            n.outputs.get(*o).is_some_and(|o| {
                !o.to.is_empty()
                    && o.to.iter().all(|c| {
                        let c = graph.node(c.node);
                        c.is_hccl() && is_atomic(graph, c)
                    })
            })
        })
}

/// Notes on memory that is an input as well: then somebody writes it anew in every run.
fn shared_with_input(graph: &Graph, atomic: &[NodeId]) -> Vec<String> {
    atomic
        .iter()
        .take(6)
        .map(|id| graph.node(*id))
        .flat_map(|n| in_place(n).into_iter().map(move |x| (n, x)))
        .filter(|(_, (_, _, from))| {
            let kind = graph.node(*from).kind;
            !(kind.is_data() || kind.is_const() || kind.is_var_like())
        })
        .map(|(n, (o, k, from))| {
            format!(
                "{me}.out.{o} is {me}.in.{k}, updated in place, which `{}` makes first; the rule sets it to zero without looking at that, \
                 and `{}` writes after it",
                graph.node(from).name,
                graph.node(from).name,
                me = n.name
            )
        })
        .collect()
}

fn clean(ctx: &mut Ctx<'_>, g: GraphId, atomic: &[NodeId], name: &str, why: String) {
    let first = ctx.name(g, atomic[0]);
    let names: Vec<String> = atomic
        .iter()
        .take(6)
        .map(|id| quoted(&ctx.name(g, *id)))
        .collect();
    let more = atomic.len().saturating_sub(names.len());
    let reason = Reason::new(
        ConflictKind::Atomic,
        "memory that operators add to is set to zero before each run",
        (
            format!("{first}.out"),
            match names.get(1..).unwrap_or_default() {
                [] => format!("{first}.out of the run before"),
                rest => format!(
                    "{first}.out of the run before, and the same for {}{}",
                    and(rest),
                    if more > 0 { format!(" and {more} more") } else { String::new() }
                ),
            },
        ),
        why,
    )
    .order("it does not matter here: whatever runs first in the next run finds the sums of the run before")
    .repair(format!(
        "`{name}` sets the memory to zero before {} {}; control edges make it run first, and they say as well whose memory it is: \
         `{name}` has no inputs, outputs or attributes",
        and(&names),
        if atomic.len() == 1 { "runs" } else { "run" }
    ));
    let reason = shared_with_input(ctx.module.graph(g), atomic)
        .into_iter()
        .fold(reason, Reason::note);
    let reason = match atomic.iter().find_map(|id| Some((*id, new_copy(ctx, g, *id)?))) {
        Some((id, copy)) => reason.note(format!(
            "in the file, `{me}` reads the caller's memory itself, and then it does not count as adding up; with the copy `{copy}` of a \
             conflict above it does, so for `{me}` this comes with that repair",
            me = ctx.name(g, id)
        )),
        None => reason,
    };
    let writes = atomic
        .iter()
        .take(6)
        .map(|id| {
            let n = ctx.module.graph(g).node(*id);
            format!("`{}` ({}) adds to {}", n.name, n.ty, and(&memory(n)))
        })
        .chain((more > 0).then(|| format!("and {more} more")))
        .collect();
    let mut places: Vec<String> = atomic
        .iter()
        .take(6)
        .flat_map(|id| memory(ctx.module.graph(g).node(*id)))
        .collect();
    if more > 0 {
        places.push(format!("that of {more} more"));
    }
    let story = crate::story::plain(and(&places), writes, &reason);
    let mut node = Node::new(name, "MemSet");
    node.stream = ctx.module.graph(g).node(atomic[0]).stream;
    let id = ctx.add_node(g, node, story, &reason);
    let name = ctx.name(g, id);
    ctx.module.graph_mut(g).move_first(id);
    let graph = ctx.module.graph(g);
    let mut targets = Vec::new();
    let mut seen = FxHashSet::default();
    let mut add = |n: NodeId, why: String| {
        if seen.insert(n) {
            targets.push((n, why));
        }
    };
    for a in atomic {
        let n = graph.node(*a);
        add(
            *a,
            format!(
                "`{}` adds to memory that `{name}` sets to zero ({})",
                n.name,
                and(&memory(n))
            ),
        );
        if n.is_hccl() {
            for f in n.inputs.iter().filter_map(|i| i.from) {
                let k = graph.node(f.node).kind;
                if !(k.is_data() || k.is_const() || k.is_var_like()) {
                    let source = &graph.node(f.node).name;
                    let shared = in_place(n).into_iter().find(|x| x.2 == f.node);
                    let why = match shared {
                        Some((o, k, _)) => format!(
                            "`{source}` makes {me}.in.{k}, which is the same memory as {me}.out.{o}: `{name}` must not set it to zero \
                             after that",
                            me = n.name
                        ),
                        None => format!(
                            "`{source}` makes an input of the collective `{}`: by a rule of GE that, too, comes after `{name}`",
                            n.name
                        ),
                    };
                    add(f.node, why);
                }
            }
        }
    }
    for (_, n) in graph
        .iter()
        .filter(|(_, n)| (n.kind.is_data() || n.kind.is_var_like()) && n.inputs.is_empty())
    {
        let readers = n
            .outputs
            .iter()
            .flat_map(|o| &o.to)
            .map(|c| c.node)
            .chain(n.control_out.iter().copied());
        for r in readers.filter(|r| graph.node(*r).kind != Kind::NetOutput) {
            let why = format!(
                "`{}` is among the first operators to run, and `{name}` runs before everything",
                graph.node(r).name
            );
            add(r, why);
        }
    }
    for (to, why) in targets {
        ctx.add_control(g, id, to, &why);
    }
}
