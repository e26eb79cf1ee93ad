//! Subgraphs and their surroundings: copies where both would work in one memory.

use crate::ctx::{Ctx, KEEP, PassError};
use crate::ir::{Graph, GraphId, InRef, Kind, Module, NodeId, OutRef, Template, names};
use crate::layout::NO_ORDER_HELPS;
use crate::layout::symbols::alias_input;
use crate::report::{ConflictKind, Reason};
use crate::text::{and, quoted};
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
                    // Told of the graph before any copy.
                    let condition = while_condition(ctx, g, id);
                    while_inputs(ctx, g, id);
                    while_body(ctx, g, id)?;
                    if let Some((cond, inputs, reason)) = condition {
                        after(ctx, cond, &inputs, &reason);
                    }
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
        "edges order the operators inside a round, but every round of `{name}` uses the same memory again, and no edge orders \
         the end of one round against what still uses it"
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
             one after the other in memory (attribute `{}` of `{}`)",
            ctx.graph_name(g),
            continuous_attr(ctx.module.graph(g), reader.node),
            ctx.name(g, reader.node)
        );
        let reason = reason("a subgraph's input in a row of inputs", a, b.clone(), why)
            .title("memory from outside of a subgraph would have to be part of a row")
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
            "the loop `{0}` keeps its state in the memory of its input {index} and rewrites it in every round, but {b} is a \
             constant, which must keep its value",
            ctx.name(p.graph, p.node)
        );
        let reason = reason("a constant enters a loop", a, b.clone(), why)
            .title("a loop would overwrite a constant")
            .repair(format!(
                "the loop `{}` keeps its state in the copy, and {b} keeps its value",
                ctx.name(p.graph, p.node)
            ));
        before(ctx, p.graph, &[at], &reason);
    }
}

fn continuous_attr(graph: &Graph, id: NodeId) -> &'static str {
    if graph.node(id).attrs.flag(names::CI) {
        names::CI
    } else {
        names::NPCI
    }
}

/// A consumer that needs a run of inputs, also behind operators that pass their input on.
fn continuous_reader(graph: &Graph, out: OutRef) -> Option<InRef> {
    find_reader(graph, out, |c| {
        let attrs = &graph.node(c.node).attrs;
        attrs.flag(names::CI) || attrs.flag(names::NPCI)
    })
}

/// The first that is `wanted` among the consumers of an output, and of the outputs of operators that pass their input on.
fn find_reader(graph: &Graph, out: OutRef, wanted: impl Fn(InRef) -> bool) -> Option<InRef> {
    let (mut todo, mut seen) = (vec![out], FxHashSet::default());
    while let Some(at) = todo.pop() {
        for c in graph.consumers(at) {
            if wanted(*c) {
                return Some(*c);
            }
            let n = graph.node(c.node);
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
    let parent_name = parent.name.clone();
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
                "set to zero before each run by its own graph (attribute `atomic_output_index`), which can't do that to memory outside",
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
            "{b} leaves graph {} as its result {a}, but it is {what} (by rule, whoever uses the result of `{}`: a precaution if nobody \
             writes it)",
            ctx.graph_name(g),
            parent_name,
        );
        let order = format!(
            "edges inside graph {} order nothing against the operators around `{}` that use the result",
            ctx.graph_name(g),
            ctx.name(p.graph, p.node)
        );
        let reason = reason(rule, a, b.clone(), why)
            .title("a subgraph would give out memory that it, or the graph around, still needs")
            .order(order)
            .repair(format!(
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
            "the loop `{name}` keeps its state in the memory of its input {index} ({b}) and rewrites it in every round, and \
             {reader} uses the same memory"
        );
        let reason = reason("a loop's input is shared", a, reader, why)
            .title("a loop would overwrite a value that others use")
            .repair(format!(
                "the loop `{name}` keeps its state in the copy, and everybody else has {b}"
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
            "graph {graph}, node `{name}`: the loop has no body (subgraph 1); add it"
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
            "graph {} is the body of `{name}` and has {} NetOutput nodes; it needs exactly one",
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
    let outer = ctx.graph_name(g);
    let what = LoopBody {
        module: ctx.module,
        body,
        out,
    };
    let (clash, disturbed) = what.clash(&inputs);
    let careful = |r: Reason| {
        if disturbed {
            r
        } else {
            r.precaution("all rounds of a loop work in one piece of memory, which by rule is parted from their own")
        }
    };
    // If both are precautions, that is said already.
    let second = if disturbed {
        what.second_copy(&inputs, &results)
    } else {
        String::new()
    };
    // Both are told of the graph before any copy.
    let told_inputs = inputs.first().map(|first| {
        let a = ctx.module.out_name(body, *first);
        let k = parent_input(ctx.module, body, first.node);
        let why = format!(
            "graph {gname} is the body of the loop `{name}`, one round of it, and {a} is the loop's state {k}: one piece of memory for all \
             rounds; {}",
            clash
        );
        let reason = reason("a loop body's inputs", a, format!("{name}.in.{k}"), why)
            .title("a round of a loop would overwrite the loop's state while the state is still needed")
            .graphs(&gname, &outer)
            .order(between_rounds(&name))
            .repair("the round works on copies of its inputs, and the state is left alone until the round's end");
        let story = ctx.story(body, *first, None, &reason);
        careful(reason.told(story))
    });
    let told_results = results.first().map(|first| {
        let a = ctx.module.in_name(body, *first);
        let k = ctx
            .module
            .graph(body)
            .node(first.node)
            .parent_output(first.index as usize);
        let from = ctx.module.graph(body).producer(*first);
        let made = from.map(|o| ctx.module.out_name(body, o)).unwrap_or_default();
        let why = format!(
            "graph {gname} is the body of the loop `{name}`, one round of it: its result {a} ({made}) is the next round's state {k}, in \
             the memory of this round's state; {}{}",
            clash,
            second
        );
        let reason = reason("a loop body's results", a, format!("{name}.out.{k}"), why)
            .title("a round of a loop would write the next round's state before it has ended")
            .graphs(&gname, &outer)
            .order(between_rounds(&name))
            .repair("the round puts its results into memory of its own, and they are copied to the loop's state at the round's end");
        match from {
            Some(o) => {
                let story = ctx.story(body, o, Some(*first), &reason);
                careful(reason.told(story))
            }
            None => careful(reason),
        }
    });
    // The copy after the inputs may stand before the results now: that one is not enough if both ends share it.
    if let Some(reason) = told_inputs {
        after(ctx, body, &inputs, &reason);
    }
    if let Some(reason) = told_results {
        before(ctx, body, &results, &reason);
    }
    Ok(())
}

/// A loop's body, for messages.
struct LoopBody<'a> {
    module: &'a Module,
    body: GraphId,
    out: NodeId,
}

impl LoopBody<'_> {
    /// Who would write the next round's state over the state that somebody still reads; false: nobody, so it is a precaution.
    fn clash(&self, inputs: &[OutRef]) -> (String, bool) {
        const RULE: &str = "by rule every loop's body gets both copies";
        let told = |text: String| (text, true);
        let graph = self.module.graph(self.body);
        for data in inputs {
            let Some(index) = graph.node(data.node).parent_index() else {
                continue;
            };
            let from = u32::try_from(index)
                .ok()
                .and_then(|k| crate::rw::result(self.module, self.body, k));
            let Some(from) = from.filter(|o| o.node != data.node) else {
                continue;
            };
            let made = self.module.out_name(self.body, from);
            let state = self.module.out_name(self.body, *data);
            let mut elsewhere = graph.consumers(*data).iter().filter(|c| c.node == self.out);
            if let Some(c) =
                elsewhere.find(|c| graph.node(self.out).parent_output(c.index as usize) != index)
            {
                return told(format!(
                    "without a copy, {state} would be handed on as state {}, while state {index} itself becomes {made}: whichever is \
                     written first, the other value would be lost; {RULE}",
                    graph.node(self.out).parent_output(c.index as usize)
                ));
            }
            // Whoever writes the result's memory first, and whoever reads the state's, through operators that hand memory on.
            let readers = self.users(*data);
            let writers = reverse_chain(graph, from)
                .into_iter()
                .map(|o| o.node)
                .filter(|n| !graph.node(*n).kind.is_data());
            let updated = reverse_chain(graph, from).contains(data);
            for w in writers {
                let writer = &graph.node(w).name;
                let own = readers.iter().find(|r| r.node == w).filter(|_| !updated);
                if let Some(same) = own {
                    return told(format!(
                        "without a copy, `{writer}` would write its output (the next round's state, {made}) into the very memory that its \
                         input {} reads ({state}); {RULE}",
                        same.index
                    ));
                }
                let mut late = readers.iter().filter(|r| r.node != w);
                if let Some(r) = late.find(|r| !crate::story::runs_before(graph, r.node, w)) {
                    let reader = &graph.node(r.node).name;
                    return told(format!(
                        "without a copy, `{writer}` would write its output (the next round's state, {made}) into the memory from which \
                         `{reader}` reads this round's ({state}), and no edge makes `{reader}` run before `{writer}`; {RULE}"
                    ));
                }
            }
        }
        let text = format!(
            "no operator was found here that would read the state after the next one is written, so this is a precaution: {RULE}"
        );
        (text, false)
    }

    /// What the copy of the results is for, if the inputs get one, too: needed in this graph, or a precaution.
    fn second_copy(&self, inputs: &[OutRef], results: &[InRef]) -> String {
        if inputs.is_empty() {
            return String::new();
        }
        let graph = self.module.graph(self.body);
        let sink = graph.node(self.out);
        for at in results {
            let Some(from) = graph.producer(*at) else {
                continue;
            };
            let k = sink.parent_output(at.index as usize);
            let result = self.module.in_name(self.body, *at);
            for o in reverse_chain(graph, from) {
                let node = graph.node(o.node);
                if node.kind.is_data() && node.parent_index() != Some(k) {
                    return format!(
                        "; the copy of the round's inputs (the conflict before) is not enough in this graph: the copied value of `{}` would be {result}, \
                         so making the copy would itself write state {k}, which the same copy reads; a second copy, of the results, parts the \
                         two",
                        node.name
                    );
                }
                let late = inputs
                    .iter()
                    .any(|d| d.node == o.node || crate::story::runs_before(graph, d.node, o.node));
                if !late {
                    return format!(
                        "; the copy of the round's inputs (the conflict before) is not enough in this graph: no edge makes `{}`, which makes \
                         {result}, run after that copy, so it could write state {k} before that is copied; a second copy, of the results, is \
                         only made at the round's end",
                        node.name
                    );
                }
            }
        }
        "; but once the round's inputs are copied (the conflict before), this second copy, of the results, is only a precaution in this graph: \
         edges make all that writes a result run after the inputs are copied"
            .to_owned()
    }

    /// Inputs that read this memory, through operators that hand it on, without the body's results.
    fn users(&self, from: OutRef) -> Vec<InRef> {
        let graph = self.module.graph(self.body);
        let (mut todo, mut seen) = (vec![from], FxHashSet::default());
        let mut users = Vec::new();
        while let Some(at) = todo.pop() {
            for c in graph.consumers(at).iter().filter(|c| c.node != self.out) {
                let n = graph.node(c.node);
                let mut view = false;
                for o in 0..n.outputs.len() {
                    let next = OutRef {
                        node: c.node,
                        index: o as u32,
                    };
                    if alias_input(n, o) == Some(c.index as usize) {
                        view |= n.ref_input_of(o).is_none();
                        if seen.insert(next) {
                            todo.push(next);
                        }
                    }
                }
                if !view {
                    users.push(*c);
                }
            }
        }
        users
    }
}

/// A loop of unknown shapes: what the condition reads must not be what the body writes. And a condition that uses the loop's
/// state as scratch space must not do so to the state itself, which the body gets next (the observed implementation leaves
/// that alone: its read-write pass looks into no loop, and its other rules only look at the body).
fn while_condition(
    ctx: &Ctx<'_>,
    g: GraphId,
    id: NodeId,
) -> Option<(GraphId, Vec<OutRef>, Reason)> {
    let node = ctx.module.graph(g).node(id);
    let unknown = node.inputs.iter().any(|i| i.desc.is_unknown())
        || node.outputs.iter().any(|o| o.desc.is_unknown());
    let cond = node.subgraphs.first().copied().flatten()?;
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
    let first = *inputs.first()?;
    let a = ctx.module.out_name(cond, first);
    let k = parent_input(ctx.module, cond, first.node);
    let reason = if dynamic {
        let why = format!(
            "the shapes of the loop `{name}` are only known at run time, so its state may move to other memory from round to round, \
             and {a}, which the loop's condition reads, is that state (by rule; a precaution if the sizes stay the same)"
        );
        reason(
            "a dynamic loop's condition",
            a,
            format!("{name}.in.{k}"),
            why,
        )
        .title("a loop's state may move while the loop's condition reads it")
        .graphs(&ctx.graph_name(cond), &ctx.graph_name(g))
        .order(between_rounds(&name))
        .repair("the condition reads a copy, which stays where it is")
    } else {
        let outer = ctx.graph_name(g);
        let inside = ctx.graph_name(cond);
        let culprits = culprits(ctx.module, cond, first);
        let node = ctx.module.graph(g).node(id);
        let body = node.subgraphs.get(1).copied().flatten();
        let readers = body
            .map(|b| readers_of(ctx.module, b, k))
            .unwrap_or_default();
        let needed = match readers.as_slice() {
            [] => "the body is given that state next".to_owned(),
            list => format!(
                "the body is given that state next: {} {} it there",
                and(list),
                if list.len() == 1 { "takes" } else { "take" }
            ),
        };
        let why = format!(
            "graph {inside} is the condition of the loop `{name}`, and {a} is the loop's state {k}: {culprits} uses it as scratch \
                 space and may destroy it, and {needed}"
        );
        let rule = "a loop's condition overwrites the loop's state";
        reason(rule, a, format!("{name}.in.{k}"), why)
                .title("a loop's condition would destroy the state that the loop's body needs next")
                .graphs(&inside, &outer)
                .order("the condition always runs before the body, and what it leaves overwritten is what the body is given")
                .repair("the condition works on a copy, and the state stays as it is")
    };
    let story = ctx.story(cond, first, None, &reason);
    let reason = reason.told(story);
    Some((cond, inputs, reason))
}

/// Operators of a loop's condition that use its state as scratch space, as far as they take it in directly.
fn culprits(module: &Module, cond: GraphId, from: OutRef) -> String {
    let graph = module.graph(cond);
    let named: Vec<String> = graph
        .consumers(from)
        .iter()
        .map(|c| (graph.node(c.node), c.index as usize))
        .filter(|(n, k)| n.kind == Kind::While || crate::rw::overwrites(n, *k))
        .map(|(n, k)| format!("`{}` ({})", n.name, crate::cause::overwrites(n, k)))
        .take(4)
        .collect();
    if named.is_empty() {
        "an operator behind it, or in a graph that it is handed to,".to_owned()
    } else {
        and(&named)
    }
}

/// Operators of a loop's body that take the loop's state in.
fn readers_of(module: &Module, body: GraphId, k: i64) -> Vec<String> {
    let graph = module.graph(body);
    let data = graph
        .iter()
        .find(|(_, n)| n.kind.is_data() && n.parent_index() == Some(k));
    let Some((node, _)) = data else {
        return Vec::new();
    };
    let mut names: Vec<String> = Vec::new();
    for c in graph.consumers(OutRef { node, index: 0 }) {
        let name = quoted(&graph.node(c.node).name);
        if names.len() < 4 && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// How deep calls inside calls are looked into.
const MAX_NESTING: usize = 8;

/// Whether somebody uses this memory as scratch space: here, behind operators that hand it on, or in a call.
fn overwritten(module: &Module, g: GraphId, from: OutRef, nesting: usize) -> bool {
    let graph = module.graph(g);
    let inside = |s: GraphId, index: u32| {
        let nodes = module.graph(s).iter();
        let mut data =
            nodes.filter(|(_, d)| d.kind.is_data() && d.parent_index() == Some(i64::from(index)));
        data.any(|(node, _)| overwritten(module, s, OutRef { node, index: 0 }, nesting - 1))
    };
    find_reader(graph, from, |c| {
        let n = graph.node(c.node);
        n.kind == Kind::While
            || crate::rw::overwrites(n, c.index as usize)
            || nesting > 0 && n.subgraphs.iter().flatten().any(|s| inside(*s, c.index))
    })
    .is_some()
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
                "graph {} is one way through `{parent}`, and `{}` gives it more than one result, whose places may depend on each \
                 other; but each result of `{parent}` has a place of its own, the same for all ways",
                ctx.graph_name(sub),
                ctx.name(sub, from.node)
            );
            let rule = "one operator gives several results of a branch";
            let reason = reason(rule, a, b, why)
                .title("results of a branch would have to lie where one operator puts them")
                .order(NO_ORDER_HELPS)
                .repair(
                    "the second result and later ones are copies, each with a place of its own",
                );
            before(ctx, sub, &[at], &reason);
        }
    }
}
