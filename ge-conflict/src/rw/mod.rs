//! Read-write conflicts: who reads and who writes what an operator produced.
//!
//! Every output gets a class (may it be written, is it shared), every input one (does its operator write, and who sees it);
//! a matrix says for each pair whether the consumer needs a copy of its own. Reads and writes that no edge orders are left
//! alone where the matrix says so: lint reports those.
//!
//! Blind spots, all of them the documented behaviour: nodes directly inside a While's subgraphs, a subgraph's Data as a
//! producer, and copies marked `_cannot_be_deleted` are not looked at; a consumer marked `_skip_rw_conflict` was judged by
//! the collectives' pass, by topological ids.

pub(crate) mod class;
mod identity;

pub use class::{Classes, InClass, OutClass, Verdict, verdict};
pub(crate) use class::{overwrites, result};

use crate::ctx::{Ctx, PassError};
use crate::ir::{Attr, GraphId, InRef, Kind, Module, NodeId, OutRef, Template, names};
use crate::report::{ConflictKind, Reason};
use crate::text::and;
use rustc_hash::FxHashSet;

/// The pass's name in results.
pub const PASS: &str = "rw";

/// Runs the pass on the graph asked for and everything inside it.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    let top = ctx.top()?;
    let family = ctx.module.family(top);
    mark_references(ctx, &family);
    // Taking a copy out or sending readers back to a source can turn a value into a shared or writeable one somewhere else:
    // it is looked at until nothing changes, so that a second run finds nothing to do.
    for _ in 0..MAX_ROUNDS {
        let before = changes(ctx);
        round(ctx, &family);
        if changes(ctx) == before {
            break;
        }
    }
    // What makes no sense is said once.
    let mut said = FxHashSet::default();
    ctx.report
        .warnings
        .retain(|w| w.pass != PASS || said.insert((w.graph.clone(), w.conflict.anchors.clone())));
    Ok(())
}

/// Each round that changes something takes out or splits a copy, so few are needed.
const MAX_ROUNDS: usize = 16;

fn changes(ctx: &Ctx<'_>) -> usize {
    ctx.report.inserted.len() + ctx.report.removed.len() + ctx.report.relinked.len()
}

fn round(ctx: &mut Ctx<'_>, family: &[GraphId]) {
    let mut classes = Classes::new(ctx.module, family);
    for g in family.iter().rev() {
        settle_subgraph(ctx, &mut classes, *g);
    }
    for g in family {
        if parent_kind(ctx.module, *g) == Some(Kind::While) {
            continue;
        }
        for id in ctx.module.graph(*g).id_list() {
            visit(ctx, &classes, *g, id);
        }
    }
}

/// Whether the module, as it is, has a read-write conflict or a combination that makes no sense.
pub fn has_conflict(module: &Module) -> bool {
    let Some(root) = module.root() else {
        return false;
    };
    let family = module.family(root);
    let mut classes = Classes::new(module, &family);
    for g in family.iter().rev() {
        classes.settle(module, *g);
    }
    family
        .iter()
        .filter(|g| parent_kind(module, **g) != Some(Kind::While))
        .any(|g| {
            let graph = module.graph(*g);
            graph.iter().any(|(id, n)| {
                (0..n.outputs.len() as u32).any(|index| {
                    let out = OutRef { node: id, index };
                    let class = classes.output(module, *g, out);
                    let spared = spared_edge(module, &classes, *g, out, class);
                    graph.consumers(out).iter().any(|c| {
                        if graph.node(c.node).attrs.flag(names::SKIP_RW) || spared == Some(*c) {
                            return false;
                        }
                        // Edges of a subgraph's own inputs are never split, so only nonsense counts there.
                        match verdict(class, classes.input(module, *g, *c)) {
                            Verdict::Nothing => false,
                            Verdict::Insert => !is_boundary(module, *g, n.kind),
                            Verdict::WrongGraph => true,
                        }
                    })
                })
            })
        })
}

/// Why the pass leaves an edge alone that the matrix asks a copy for, if it does.
pub(crate) fn leaves_alone(
    module: &Module,
    classes: &Classes,
    g: GraphId,
    out: OutRef,
    at: InRef,
) -> Option<String> {
    let graph = module.graph(g);
    let (source, sink) = (graph.node(out.node), graph.node(at.node));
    if parent_kind(module, g) == Some(Kind::While) {
        return Some("this pass does not look into the subgraphs of a loop".to_owned());
    }
    if is_boundary(module, g, source.kind) {
        return Some(format!(
            "`{}` stands for memory of the graph around, and this pass judges it there",
            source.name
        ));
    }
    if source.attrs.flag(names::CANNOT_BE_DELETED) && source.kind.is_identity_like() {
        return Some(format!(
            "`{}` is a copy that has to stay as it is",
            source.name
        ));
    }
    if sink.attrs.flag(names::SKIP_RW) {
        return Some(format!(
            "`{}` carries the attribute `{}`: the pass hccl has judged it",
            sink.name,
            names::SKIP_RW
        ));
    }
    let class = classes.output(module, g, out);
    (spared_edge(module, classes, g, out, class) == Some(at)).then(|| {
        format!(
            "nobody but `{}` uses the memory of {}, so its last input there may have the memory itself",
            sink.name,
            module.out_name(g, out)
        )
    })
}

pub(crate) fn parent_kind(module: &Module, g: GraphId) -> Option<Kind> {
    module.parent_node(g).map(|(_, n)| n.kind)
}

/// A subgraph's Data or NetOutput.
fn is_boundary(module: &Module, g: GraphId, kind: Kind) -> bool {
    module.graph(g).parent.is_some() && (kind.is_data() || kind == Kind::NetOutput)
}

/// Operators that update an input in place say so by an output of the same name.
fn mark_references(ctx: &mut Ctx<'_>, family: &[GraphId]) {
    for g in family {
        let graph = ctx.module.graph(*g);
        let found: Vec<NodeId> = graph
            .iter()
            .filter(|(_, n)| {
                !n.attrs.has(names::REFERENCE)
                    && (0..n.outputs.len()).any(|o| n.ref_input_of(o).is_some())
            })
            .map(|(id, _)| id)
            .collect();
        for id in found {
            ctx.mark(
                *g,
                id,
                names::REFERENCE,
                Attr::Bool(true),
                "an input and an output of this operator have the same name, which means that it updates that input in place",
            );
        }
    }
}

/// Classes of a subgraph's inputs; a written value that leaves a branch gets a copy.
fn settle_subgraph(ctx: &mut Ctx<'_>, classes: &mut Classes, g: GraphId) {
    classes.settle(ctx.module, g);
    let Some(kind) = parent_kind(ctx.module, g) else {
        return;
    };
    // A called graph is dissolved into its caller: there the writer and its readers meet, and no copy is needed.
    if matches!(kind, Kind::While | Kind::PartitionedCall) {
        return;
    }
    let Some(out) = ctx.module.graph(g).first_of(Kind::NetOutput) else {
        return;
    };
    for index in 0..ctx.module.graph(g).node(out).inputs.len() as u32 {
        let at = InRef { node: out, index };
        let Some(from) = ctx.module.graph(g).producer(at) else {
            continue;
        };
        if classes.output(ctx.module, g, from) != OutClass::Writeable {
            continue;
        }
        let (source, sink) = (ctx.module.out_name(g, from), ctx.module.in_name(g, at));
        let parent = ctx
            .module
            .parent_node(g)
            .map(|(_, n)| n.name.clone())
            .unwrap_or_default();
        let why = format!(
            "{source} is memory that operators may write in place, and it leaves graph {} through {sink} as a result of `{parent}`: \
             whoever uses the result of `{parent}` would see later writes to {source}, and the other way round (the rule looks at \
             no particular writer: every such result of a branch gets a copy, as a precaution)",
            ctx.graph_name(g)
        );
        let reason = Reason::new(
            ConflictKind::ReadWrite,
            "a written value leaves a branch",
            (source.clone(), sink),
            why,
        )
        .order(format!(
            "nothing inside graph {} can order its operators against those around `{parent}` that use the result",
            ctx.graph_name(g)
        ))
        .repair(format!(
            "the result is a copy of what {source} holds at that moment, and {source} itself stays inside"
        ));
        let name = format!("{}_input_{index}_Identity", ctx.name(g, out));
        ctx.insert_before(
            g,
            &[at],
            &Template {
                name: &name,
                ty: "Identity",
                attrs: &[],
            },
            &reason,
        );
    }
}

fn visit(ctx: &mut Ctx<'_>, classes: &Classes, g: GraphId, id: NodeId) {
    let Some(node) = ctx.module.graph(g).get(id) else {
        return;
    };
    let boundary = is_boundary(ctx.module, g, node.kind);
    let kept = node.attrs.flag(names::CANNOT_BE_DELETED);
    let like_identity = node.kind.is_identity_like();
    if like_identity && !boundary && !kept {
        identity::split(ctx, classes, g, id);
        identity::remove_useless(ctx, classes, g, id);
        if ctx.module.graph(g).get(id).is_none() {
            return;
        }
    }
    for index in 0..ctx.module.graph(g).node(id).outputs.len() as u32 {
        isolate(
            ctx,
            classes,
            g,
            OutRef { node: id, index },
            !boundary && !kept,
        );
    }
}

/// Gives each consumer that must not write the shared output a copy of its own.
fn isolate(ctx: &mut Ctx<'_>, classes: &Classes, g: GraphId, out: OutRef, may_insert: bool) {
    if ctx.module.graph(g).consumers(out).is_empty() {
        return;
    }
    let class = classes.output(ctx.module, g, out);
    let spared = spared_edge(ctx.module, classes, g, out, class);
    let consumers = ctx.module.graph(g).consumers(out).to_vec();
    for c in consumers {
        let input = classes.input(ctx.module, g, c);
        match verdict(class, input) {
            Verdict::Nothing => {}
            Verdict::WrongGraph => warn_nonsense(ctx, g, out, c, class, input),
            Verdict::Insert => {
                let judged = ctx.module.graph(g).node(c.node).attrs.flag(names::SKIP_RW);
                if may_insert && !judged && spared != Some(c) {
                    insert(ctx, classes, g, (out, class), (c, input));
                }
            }
        }
    }
}

fn insert(
    ctx: &mut Ctx<'_>,
    classes: &Classes,
    g: GraphId,
    (out, class): (OutRef, OutClass),
    (to, input): (InRef, InClass),
) {
    let graph = ctx.module.graph(g);
    let (source, sink) = (ctx.module.out_name(g, out), ctx.module.in_name(g, to));
    let node = graph.node(to.node);
    let writer = &node.name;
    let index = to.index;
    let written = match input {
        InClass::ScopeWrite => format!(
            "uses its input {index} ({source}) as scratch space and may destroy what is in it ({})",
            crate::cause::overwrites(node, index as usize)
        ),
        _ => format!(
            "writes its input {index} ({source}) in place ({})",
            crate::cause::updates(node, index as usize)
        ),
    };
    let victims = crate::story::victims(ctx.module, g, out, to);
    let owner = owner_kind(ctx.module, g, out);
    let mut reasons: Vec<String> = Vec::new();
    reasons.extend(match owner {
        Some(Kind::Const | Kind::FileConstant) => Some(format!(
            "{source} is a constant, which must stay as it is for the next run"
        )),
        Some(Kind::Variable) => {
            Some("the memory is a variable's, which keeps its value for the next run".to_owned())
        }
        Some(Kind::RefData) => {
            Some("the caller finds whatever is in that memory after the run".to_owned())
        }
        _ => None,
    });
    for (later, what) in [
        (true, "the same memory later"),
        (false, "the same memory, and no edge makes it run before"),
    ] {
        let names: Vec<String> = victims
            .iter()
            .filter(|v| v.later == later)
            .map(|v| v.name.clone())
            .collect();
        let (verb, what) = match names.len() {
            0 => continue,
            1 => ("uses", what.to_owned()),
            _ => ("use", what.replace("it run", "them run")),
        };
        reasons.push(format!("{} {verb} {what}", and(&names)));
    }
    let careful = reasons.is_empty();
    let why = if careful {
        let whose = match owner {
            Some(k) if k.is_data() => "it is memory of the caller or of the graph around",
            _ => "operators may still update it in place",
        };
        format!(
            "`{writer}` {written}; nobody was found who uses that memory afterwards, so the copy is a precaution: by the rule below, \
             memory is only overwritten for an operator's own use if nobody else has a part in it, and {whose}"
        )
    } else {
        format!("`{writer}` {written}, and {}", reasons.join("; and "))
    };
    let mut reason = Reason::new(
        ConflictKind::ReadWrite,
        format!("{class} is used by an operator that {input}"),
        (source, sink),
        why,
    );
    if careful {
        reason = reason.precaution("an operator overwrites memory in which others may have a part");
    }
    reason.notes.extend(spared_twin(ctx.module, classes, g, to));
    let name = format!("{writer}_input_{}_Identity", to.index);
    ctx.insert_before(
        g,
        &[to],
        &Template {
            name: &name,
            ty: "Identity",
            attrs: &[],
        },
        &reason,
    );
}

/// What kind of operator owns an output's memory, if it can be told by going up.
fn owner_kind(module: &Module, g: GraphId, out: OutRef) -> Option<Kind> {
    let graph = module.graph(g);
    let mut at = out;
    for _ in 0..=graph.len() {
        let node = graph.node(at.node);
        let up = node
            .ref_input_of(at.index as usize)
            .or_else(|| crate::layout::symbols::alias_input(node, at.index as usize));
        let Some(from) = up.and_then(|i| node.inputs.get(i)?.from) else {
            return Some(node.kind);
        };
        at = from;
    }
    None
}

/// Why another input of the same operator, which is overwritten just as well, gets no copy.
fn spared_twin(module: &Module, classes: &Classes, g: GraphId, to: InRef) -> Option<String> {
    let graph = module.graph(g);
    let node = graph.node(to.node);
    (0..node.inputs.len() as u32)
        .map(|index| InRef {
            node: to.node,
            index,
        })
        .filter(|at| *at != to && classes.input(module, g, *at) == classes.input(module, g, to))
        .find_map(|at| {
            let out = graph.producer(at)?;
            let class = classes.output(module, g, out);
            let source = module.out_name(g, out);
            let why = match verdict(class, InClass::ScopeWrite) {
                Verdict::Nothing => {
                    format!("{source} is {class}, and no operator that works in place lies between")
                }
                Verdict::Insert => leaves_alone(module, classes, g, out, at)?,
                Verdict::WrongGraph => return None,
            };
            Some(format!(
                "input {} of `{}` is overwritten just the same, but gets no copy: {why}",
                at.index, node.name
            ))
        })
}

fn warn_nonsense(
    ctx: &mut Ctx<'_>,
    g: GraphId,
    out: OutRef,
    to: InRef,
    class: OutClass,
    input: InClass,
) {
    let (source, sink) = (ctx.module.out_name(g, out), ctx.module.in_name(g, to));
    let why = if class == OutClass::Invalid {
        format!(
            "{source} stands for an input that the graph's parent lacks: whether {sink} may write that memory can't be told, because {} of {} names no input",
            crate::text::quoted(names::PARENT_INDEX),
            crate::text::quoted(&ctx.name(g, out.node))
        )
    } else {
        format!(
            "inside `{}` one operator uses {sink} as scratch space and another writes it in place: no copy can serve both",
            ctx.name(g, to.node)
        )
    };
    let nodes = vec![ctx.name(g, out.node), ctx.name(g, to.node)];
    let rule = format!("{class} is used by an operator that {input}");
    let advice = if class == OutClass::Invalid {
        format!("nothing is changed: correct `{}`", names::PARENT_INDEX)
    } else {
        "nothing is changed: give one of the two operators its own input".to_owned()
    };
    let reason = Reason::new(ConflictKind::ReadWrite, rule, (source, sink), why)
        .title("the graph contradicts itself about who may write a piece of memory")
        .order("it does not matter here: the graph makes no sense in any order")
        .repair(advice);
    let story = ctx.story(g, out, Some(to), &reason);
    ctx.warn("RW_WRONG_GRAPH", g, nodes, Some(story), &reason);
}

/// The last of several edges into one operator that writes all of them needs no copy, if nobody else holds the memory.
///
/// A copy in front of that operator counts as one of its edges: a second run must find what the first one left.
fn spared_edge(
    module: &Module,
    classes: &Classes,
    g: GraphId,
    out: OutRef,
    class: OutClass,
) -> Option<InRef> {
    let alone = match class {
        // A view's memory has users besides the view's own; a called graph's result may be used inside it.
        OutClass::ReadOnly => {
            let node = module.graph(g).node(out.node);
            let view = crate::layout::symbols::alias_input(node, out.index as usize).is_some();
            node.kind != Kind::PartitionedCall && (!view || unshared_chain(module, g, out))
        }
        OutClass::Writeable => unshared_chain(module, g, out),
        _ => false,
    };
    if !alone {
        return None;
    }
    let graph = module.graph(g);
    let mut owner = None;
    let mut last = None;
    for c in graph.consumers(out) {
        let (edge, direct) = match graph.node(c.node) {
            n if n.kind.is_identity_like() => {
                match (
                    graph.consumers(OutRef {
                        node: c.node,
                        index: 0,
                    }),
                    n.outputs.len(),
                ) {
                    ([only], 1) => (*only, false),
                    _ => (*c, true),
                }
            }
            _ => (*c, true),
        };
        if *owner.get_or_insert(edge.node) != edge.node
            || classes.input(module, g, edge) != InClass::ScopeWrite
        {
            return None;
        }
        if direct {
            last = Some(*c);
        }
    }
    last
}

/// Whether memory that may be written has one user all the way up to a graph's input or a producer that made it anew.
fn unshared_chain(module: &Module, g: GraphId, out: OutRef) -> bool {
    let graph = module.graph(g);
    let mut at = out;
    // The graph has no cycles, so the walk ends; the bound only covers broken input.
    for _ in 0..=graph.len() {
        let node = graph.node(at.node);
        match node.kind {
            Kind::Data | Kind::AippData | Kind::AnnData => return graph.parent.is_none(),
            k if k.is_var_like() || k.is_const() => return false,
            _ => {}
        }
        let up = node.ref_input_of(at.index as usize);
        let Some(input) =
            up.or_else(|| crate::layout::symbols::alias_input(node, at.index as usize))
        else {
            // A call's output may be memory of its caller's.
            return node.subgraphs.is_empty() && node.kind != Kind::RefSwitch;
        };
        let Some(from) = graph.producer(InRef {
            node: at.node,
            index: input as u32,
        }) else {
            return false;
        };
        if graph.consumers(from).len() != 1 {
            return false;
        }
        at = from;
    }
    false
}
