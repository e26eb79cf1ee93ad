//! Collectives write their inputs: those that somebody still reads later get a copy.
//!
//! "Later" is decided by the topological ids, which is the order in which one stream runs the operators. A collective of which
//! some shared input was found harmless is marked, so that the read-write pass does not judge it again by other rules.

use crate::ctx::{Ctx, PassError};
use crate::ir::{
    Attr, Graph, GraphId, InRef, Input, Kind, Module, Node, NodeId, OutRef, Output, Template, names,
};
use crate::layout::symbols::alias_input;
use crate::report::{ConflictKind, Reason};
use crate::text::{and, with_article};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// The pass's name in results.
pub const PASS: &str = "hccl";
/// The pass for continuous inputs.
pub const CONTINUOUS: &str = "hccl-continuous";

/// Runs the pass on every graph.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    ctx.top()?;
    for g in ctx.targets() {
        if ctx.module.graph(g).len() < 2 {
            continue;
        }
        let mut fresh = FxHashSet::default();
        for id in ctx.module.graph(g).id_list() {
            if ctx
                .module
                .graph(g)
                .node(id)
                .attrs
                .flag(names::INPUT_MUTABLE)
            {
                collective(ctx, g, id, &mut fresh)?;
            }
        }
    }
    Ok(())
}

fn collective(
    ctx: &mut Ctx<'_>,
    g: GraphId,
    id: NodeId,
    fresh: &mut FxHashSet<NodeId>,
) -> Result<(), PassError> {
    for index in 0..ctx.module.graph(g).node(id).inputs.len() as u32 {
        let at = InRef { node: id, index };
        let graph = ctx.module.graph(g);
        let name = graph.node(id).name.clone();
        let Some(from) = graph.producer(at) else {
            return Err(PassError::ParamInvalid(format!(
                "graph {}, node `{name}`: its input {index} is written but comes from nowhere; connect it",
                graph.name
            )));
        };
        let source = graph.node(from.node);
        let (origin, sink) = (ctx.module.out_name(g, from), ctx.module.in_name(g, at));
        let cause = crate::cause::overwrites(graph.node(id), index as usize);
        let (rule, other, why) = if matches!(
            source.kind,
            Kind::Const | Kind::FileConstant | Kind::Variable
        ) {
            let why = format!(
                "`{name}` uses its input {index} as scratch space ({cause}): it may destroy what is in {origin} while it works, and its \
                 result is valid only in its outputs; but {origin} is {}, whose value must not be lost",
                with_article(&source.ty)
            );
            (
                "a collective writes a constant or variable".to_owned(),
                origin.clone(),
                why,
            )
        } else if let Some(late) = late_reader(ctx.module, g, from, at, fresh) {
            let reader = graph.node(late.node).name.clone();
            let order = match has_path(graph, id, late.node) {
                Some(true) => "runs later",
                Some(false) => {
                    "comes later in the file (no edge enforces it, but the device runs operators in this order unless edges demand another)"
                }
                None => "comes later in the file",
            };
            let why = format!(
                "`{name}` uses its input {index} ({origin}) as scratch space and may destroy what is in it ({cause}), and `{reader}`, \
                 which reads the same memory, {order}"
            );
            (
                format!("another reader of the same memory runs after `{name}` has overwritten it"),
                ctx.module.in_name(g, late),
                why,
            )
        } else if graph.consumers(from).len() < 2 {
            continue;
        } else {
            let why = format!(
                "every other reader of {origin} comes before `{name}` overwrites it, by their places in the file: no copy is needed, \
                 and the pass rw need not look at `{name}` again"
            );
            ctx.mark(g, id, names::SKIP_RW, Attr::Bool(true), &why);
            continue;
        };
        let reason = Reason::new(ConflictKind::HcclWrite, rule, (sink, other), why);
        let copy = format!("{name}_input_{index}_Identity");
        let attrs = [(names::NO_NEED_FOLDING, Attr::Bool(false))];
        if let Some(new) = ctx.insert_before(
            g,
            &[at],
            &Template {
                name: &copy,
                ty: "Identity",
                attrs: &attrs,
            },
            &reason,
        ) {
            fresh.insert(new);
            write_back(ctx, g, from, at);
        }
    }
    Ok(())
}

/// Whether edges lead from one node to the other; `None` if that takes too long to find out for a message.
fn has_path(graph: &Graph, from: NodeId, to: NodeId) -> Option<bool> {
    const MAX_VISITED: usize = 4096;
    let last = graph.node(to).id;
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut todo = vec![from];
    while let Some(n) = todo.pop() {
        for s in graph.successors(n) {
            if s == to {
                return Some(true);
            }
            // What comes after the goal in the order can't lead to it.
            let id = graph.node(s).id;
            if (id.is_none() || id < last) && seen.insert(s) {
                todo.push(s);
            }
        }
        if seen.len() > MAX_VISITED {
            return None;
        }
    }
    Some(false)
}

/// A reader that runs after the collective and needs the value that the collective overwrites.
///
/// The memory is more than the one output: operators that work in place or only change the view pass it on, and so do calls
/// and branches in which such operators lead from an input to a result. Their consumers count too, upwards and downwards
/// (the observed implementation only looks at the output itself). The direct siblings come first.
fn late_reader(
    module: &Module,
    g: GraphId,
    from: OutRef,
    at: InRef,
    fresh: &FxHashSet<NodeId>,
) -> Option<InRef> {
    let graph = module.graph(g);
    let own = graph.node(at.node).id;
    let mut todo = VecDeque::from([from]);
    let mut seen: FxHashSet<OutRef> = [from].into_iter().collect();
    while let Some(out) = todo.pop_front() {
        for s in graph.consumers(out) {
            let n = graph.node(s.node);
            if s.node == at.node || fresh.contains(&s.node) {
                continue;
            }
            if n.id > own && !reads_shape_only(graph, s.node) {
                return Some(*s);
            }
            for o in 0..n.outputs.len() {
                let next = OutRef {
                    node: s.node,
                    index: o as u32,
                };
                if !seen.contains(&next)
                    && passed_on(module, g, next, MAX_NESTING).contains(&s.index)
                {
                    seen.insert(next);
                    todo.push_back(next);
                }
            }
        }
        for index in passed_on(module, g, out, MAX_NESTING) {
            let up = graph.producer(InRef {
                node: out.node,
                index,
            });
            todo.extend(up.filter(|u| seen.insert(*u)));
        }
    }
    None
}

/// How deep calls inside calls are looked into.
const MAX_NESTING: usize = 8;

/// The inputs whose memory an output is.
fn passed_on(module: &Module, g: GraphId, out: OutRef, nesting: usize) -> Vec<u32> {
    let n = module.graph(g).node(out.node);
    let index = out.index as usize;
    if n.subgraphs.is_empty() {
        let input = n.ref_input_of(index).or_else(|| alias_input(n, index));
        return input.map(|i| i as u32).into_iter().collect();
    }
    let mut inputs = Vec::new();
    if n.kind == Kind::While {
        inputs.push(out.index);
    }
    if nesting > 0 {
        for (place, sub) in n.subgraphs.iter().enumerate() {
            if let Some(sub) = sub.filter(|_| n.kind != Kind::While || place > 0) {
                handed_out(module, sub, index, nesting - 1, &mut inputs);
            }
        }
    }
    inputs.sort_unstable();
    inputs.dedup();
    inputs.retain(|i| (*i as usize) < n.inputs.len());
    inputs
}

/// Adds the inputs of a subgraph's parent whose memory the subgraph hands out as the parent's output `out`.
fn handed_out(module: &Module, sub: GraphId, out: usize, nesting: usize, inputs: &mut Vec<u32>) {
    let graph = module.graph(sub);
    let Some((sink, n)) = graph.iter().find(|(_, n)| n.kind == Kind::NetOutput) else {
        return;
    };
    let results = (0..n.inputs.len()).filter(|k| n.parent_output(*k) == out as i64);
    let mut todo: Vec<OutRef> = results
        .filter_map(|k| {
            graph.producer(InRef {
                node: sink,
                index: k as u32,
            })
        })
        .collect();
    let mut seen: FxHashSet<OutRef> = todo.iter().copied().collect();
    while let Some(at) = todo.pop() {
        let n = graph.node(at.node);
        if n.kind.is_data() {
            inputs.extend(n.parent_index().and_then(|i| u32::try_from(i).ok()));
            continue;
        }
        for index in passed_on(module, sub, at, nesting) {
            let up = graph.producer(InRef {
                node: at.node,
                index,
            });
            todo.extend(up.filter(|u| seen.insert(*u)));
        }
    }
}

fn reads_shape_only(graph: &Graph, id: NodeId) -> bool {
    let shape = |id: NodeId| matches!(graph.node(id).kind, Kind::Shape | Kind::Rank);
    let n = graph.node(id);
    shape(id)
        || (n.kind == Kind::Reshape && n.outputs.iter().flat_map(|o| &o.to).all(|c| shape(c.node)))
}

/// A broadcast meant to change its variable: with a copy in between, an Assign has to bring the result back.
pub(super) fn write_back(ctx: &mut Ctx<'_>, g: GraphId, var: OutRef, at: InRef) {
    let graph = ctx.module.graph(g);
    let hccl = graph.node(at.node);
    let source = graph.node(var.node);
    if hccl.kind != Kind::Broadcast
        || !source.kind.is_var_like()
        || hccl.outputs.len() <= at.index as usize
    {
        return;
    }
    if graph
        .consumers(var)
        .iter()
        .any(|c| graph.node(c.node).kind == Kind::Assign && c.index == 0)
    {
        return;
    }
    let result = OutRef {
        node: at.node,
        index: at.index,
    };
    let (origin, value) = (ctx.module.out_name(g, var), ctx.module.out_name(g, result));
    let readers: Vec<NodeId> = graph.consumers(result).iter().map(|c| c.node).collect();
    let after = hccl.control_out.clone();
    let mut assign = Node::new(
        format!("{}_output_{}_Assign", hccl.name, at.index),
        "Assign",
    );
    assign.stream = hccl.stream;
    assign.attrs.set(names::REFERENCE, Attr::Bool(true));
    let desc = source.outputs[var.index as usize].desc.clone();
    let desc = crate::ir::Desc {
        attrs: Default::default(),
        reuse_input: None,
        ..desc
    };
    for name in ["ref", "value"] {
        assign.inputs.push(Input {
            name: name.into(),
            desc: desc.clone(),
            ..Input::default()
        });
    }
    assign.outputs.push(Output {
        name: "ref".into(),
        desc,
        ..Output::default()
    });
    let (name, variable) = (hccl.name.clone(), source.name.clone());
    let reason = Reason::new(
        ConflictKind::HcclWrite,
        "a broadcast's result goes back to its variable",
        (value.clone(), origin.clone()),
        format!(
            "`{name}` was meant to change `{variable}`, but with the copy before it, it works on that: its result has to be written \
             back into `{variable}`"
        ),
    )
    .title("the result of a collective has to reach its variable")
    .follows()
    .order(format!(
        "control edges make `{name}` run first, then the Assign, then whoever uses the result"
    ))
    .repair(format!("the Assign writes {value} into `{variable}`"));
    let writes = vec![format!("`{name}` makes the new value, in {value}")];
    let mut story = crate::story::plain(origin.clone(), writes, &reason);
    story.belongs = vec![format!("`{variable}`, which keeps its value between runs")];
    let id = ctx.add_node(g, assign, story, &reason);
    let graph = ctx.module.graph_mut(g);
    graph.connect(var, InRef { node: id, index: 0 });
    graph.connect(result, InRef { node: id, index: 1 });
    graph.move_after(id, at.node);
    for to in readers.into_iter().chain(after) {
        ctx.add_control(
            g,
            id,
            to,
            &format!("whoever waits for `{name}` must run after its result has been written into `{variable}`"),
        );
    }
}

/// Runs the pass for continuous inputs on every graph.
pub fn run_continuous(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = CONTINUOUS;
    ctx.top()?;
    for g in ctx.targets() {
        for id in ctx.module.graph(g).id_list() {
            continuous(ctx, g, id)?;
        }
    }
    Ok(())
}

fn continuous(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) -> Result<(), PassError> {
    let node = ctx.module.graph(g).node(id);
    let needs_run = node.attrs.flag(names::CI);
    for index in 0..node.inputs.len() as u32 {
        let graph = ctx.module.graph(g);
        let node = graph.node(id);
        let p2p = node.input_mem(index as usize) == crate::ir::MemType::P2P;
        if !needs_run && !p2p {
            continue;
        }
        let at = InRef { node: id, index };
        let name = &node.name;
        let Some(from) = graph.producer(at) else {
            return Err(PassError::Internal(format!(
                "graph {}, node `{name}`: its input {index} needs special memory but comes from nowhere; connect it",
                graph.name
            )));
        };
        let source = graph.node(from.node);
        let (origin, sink) = (ctx.module.out_name(g, from), ctx.module.in_name(g, at));
        let fixed = source.kind.is_const() || source.kind.is_data() || source.kind.is_var_like();
        let users = || {
            graph
                .consumers(from)
                .iter()
                .filter(|c| graph.node(c.node).attrs.flag(names::CI))
                .count()
        };
        let (rule, why) = if fixed && needs_run {
            (
                "a row of inputs can't take in memory that has its own place",
                format!(
                    "the inputs of `{name}` must lie one after the other in memory (attribute `{}`), but {origin} is {} with a place \
                     of its own",
                    names::CI,
                    with_article(&source.ty)
                ),
            )
        } else if fixed {
            (
                "memory that other devices reach can't be memory that has its own place",
                format!(
                    "input {index} of `{name}` must lie in memory that other devices reach (it is marked p2p), but {origin} is {} with a place of \
                      its own",
                    with_article(&source.ty)
                ),
            )
        } else if needs_run && users() > 1 {
            (
                "one output in several rows of inputs",
                format!(
                    "{origin} is given to several operators whose inputs must lie one after the other in memory (attribute `{}`): \
                     {}; and it can't lie in two rows",
                    names::CI,
                    and(&graph
                        .consumers(from)
                        .iter()
                        .map(|c| graph.node(c.node))
                        .filter(|n| n.attrs.flag(names::CI))
                        .map(|n| crate::text::quoted(&n.name))
                        .take(4)
                        .collect::<Vec<_>>())
                ),
            )
        } else {
            continue;
        };
        let reason = Reason::new(
            ConflictKind::Layout,
            rule,
            (sink.clone(), origin.clone()),
            why,
        )
        .title(rule)
        .order(crate::layout::NO_ORDER_HELPS)
        .repair(format!(
            "the copy lies where {sink} needs it, and {origin} stays where it is"
        ));
        let copy = format!("{name}_input_{index}_Identity");
        let attrs = [(names::CANNOT_BE_DELETED, Attr::Bool(true))];
        let template = Template {
            name: &copy,
            ty: "Identity",
            attrs: &attrs,
        };
        if ctx.insert_before(g, &[at], &template, &reason).is_some() {
            write_back(ctx, g, from, at);
        }
    }
    Ok(())
}
