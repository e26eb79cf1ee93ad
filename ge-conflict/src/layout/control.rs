//! Control flow: what If, Case and While hand out of their subgraphs must not share memory with what they took in.
//!
//! The plan is made for the whole graph at once, on one table of what shares memory, and then carried out: a copy put into
//! an inner branch does not change what is found in an outer one.

use super::symbols::{AnchorId, Space, Symbols};
use crate::ctx::{Ctx, KEEP, PassError};
use crate::ir::{GraphId, InRef, Kind, Module, Node, NodeId, OutRef, Place, Template, names};
use crate::report::{ConflictKind, Reason};
use rustc_hash::{FxHashMap, FxHashSet};

/// One copy to be put in.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The graph.
    pub graph: GraphId,
    /// Before these inputs of its NetOutput …
    pub before: Vec<InRef>,
    /// … or after these outputs of its Data.
    pub after: Vec<OutRef>,
    /// Why.
    pub reason: Reason,
}

/// All copies that a graph's control flow needs, in the order of insertion.
pub fn plan(module: &Module, space: &Space, symbols: &Symbols) -> Result<Vec<Plan>, PassError> {
    let mut plans = Vec::new();
    let mut facts = Facts {
        module,
        space,
        symbols,
        tainted: FxHashMap::default(),
    };
    for g in &space.graphs {
        for (id, n) in module.graph(*g).iter() {
            match n.kind {
                Kind::If => facts.branches(&mut plans, (*g, id), n, Some(2))?,
                Kind::Case => facts.branches(&mut plans, (*g, id), n, None)?,
                Kind::While => facts.body(&mut plans, (*g, id), n)?,
                _ => {}
            }
        }
    }
    Ok(plans)
}

/// Carries a plan out.
pub fn apply(ctx: &mut Ctx<'_>, plans: Vec<Plan>) {
    for p in plans {
        let template = |name| Template {
            name,
            ty: "Identity",
            attrs: KEEP,
        };
        if let Some(first) = p.before.first() {
            let name = format!(
                "{}_input_{}_Identity",
                ctx.name(p.graph, first.node),
                first.index
            );
            ctx.insert_before(p.graph, &p.before, &template(&name), &p.reason);
        } else if let Some(first) = p.after.first() {
            let name = format!(
                "{}_output_{}_Identity",
                ctx.name(p.graph, first.node),
                first.index
            );
            ctx.insert_after(p.graph, &p.after, &template(&name), &p.reason);
        }
    }
}

struct Facts<'a> {
    module: &'a Module,
    space: &'a Space,
    symbols: &'a Symbols,
    /// By class: what in it must not leave a branch.
    tainted: FxHashMap<u32, Taint>,
}

#[derive(Clone, Debug, Default)]
struct Taint {
    /// A constant or variable.
    fixed: Option<AnchorId>,
    /// Data, by graph.
    data: FxHashMap<GraphId, AnchorId>,
}

impl Facts<'_> {
    fn missing(&self, (g, id): Place, index: usize) -> PassError {
        let node = self.module.node((g, id));
        PassError::Failed(format!(
            "graph {}, node `{}`: its subgraph {index} is missing; {} needs it",
            self.module.graph(g).name,
            node.name,
            crate::text::with_article(&node.ty)
        ))
    }

    fn branches(
        &mut self,
        plans: &mut Vec<Plan>,
        at: Place,
        n: &Node,
        count: Option<usize>,
    ) -> Result<(), PassError> {
        let count = count.unwrap_or(n.subgraphs.len()).max(1);
        for index in 0..count {
            let Some(sub) = n.subgraphs.get(index).copied().flatten() else {
                return Err(self.missing(at, index));
            };
            self.branch(plans, sub, n);
        }
        Ok(())
    }

    fn branch(&mut self, plans: &mut Vec<Plan>, sub: GraphId, parent: &Node) {
        let Some(out) = self.module.graph(sub).first_of(Kind::NetOutput) else {
            return;
        };
        let mut earlier: FxHashMap<u32, u32> = FxHashMap::default();
        let mut before = Vec::new();
        let mut first = None;
        for index in 0..self.module.graph(sub).node(out).inputs.len() as u32 {
            let at = InRef { node: out, index };
            let Some(me) = self.space.input(sub, at) else {
                continue;
            };
            if self.module.graph(sub).producer(at).is_none() {
                continue;
            }
            let class = self.symbols.of(me);
            let other = match self.taint(class, sub) {
                Some(other) => Some((
                    other,
                    "what a branch hands out is the memory of its input, a constant or a variable",
                )),
                None => match earlier.get(&class) {
                    Some(k) => {
                        let twin = self.space.input(
                            sub,
                            InRef {
                                node: out,
                                index: *k,
                            },
                        );
                        twin.map(|t| (t, "a branch hands out one memory twice"))
                    }
                    None => None,
                },
            };
            earlier.entry(class).or_insert(index);
            if let Some((other, rule)) = other
                && !spares_input(self.module, sub, at)
            {
                first.get_or_insert((other, me, rule));
                before.push(at);
            }
        }
        let Some((other, me, rule)) = first else {
            return;
        };
        let (this, that) = (self.anchor_name(me), self.anchor_name(other));
        let why = format!(
            "graph {} is one way through `{parent}`, and its result {this} is the memory of {that}; but the results of all ways \
             through `{parent}` lie in one place, so writing a result there would overwrite {that}",
            self.module.graph(sub).name,
            parent = parent.name
        );
        plans.push(Plan {
            graph: sub,
            before,
            after: Vec::new(),
            reason: reason(rule, this, that.clone(), why)
                .title("a result of a branch would have to lie where another value is kept")
                .graphs(&self.graph_name(me), &self.graph_name(other))
                .order(format!(
                    "it does not matter here: only one way through `{}` runs, but the place of the result is the same for all of them",
                    parent.name
                ))
                .repair(format!(
                    "the result goes to the common place as a copy, and {that} keeps its value"
                )),
        });
    }

    /// What in this class must not leave a branch of graph `sub`.
    fn taint(&mut self, class: u32, sub: GraphId) -> Option<AnchorId> {
        let (module, space) = (self.module, self.space);
        let taint = self.tainted.entry(class).or_insert_with(|| {
            let mut t = Taint::default();
            for a in self.symbols.members(class) {
                let at = space.at(*a);
                if at.input {
                    continue;
                }
                let n = module.node(at.place());
                let refers = n.outputs[at.index as usize].desc.attrs.has(names::REF_VAR)
                    || n.attrs.has(names::REF_VAR);
                if n.kind.is_const() || n.kind.is_var_like() || refers {
                    t.fixed.get_or_insert(*a);
                }
                if n.kind.is_data() {
                    t.data.entry(at.graph).or_insert(*a);
                }
            }
            t
        });
        taint.data.get(&sub).copied().or(taint.fixed)
    }

    fn body(&mut self, plans: &mut Vec<Plan>, at: Place, n: &Node) -> Result<(), PassError> {
        let Some(body) = n.subgraphs.get(1).copied().flatten() else {
            return Err(self.missing(at, 1));
        };
        let graph = self.module.graph(body);
        let Some(out) = graph.first_of(Kind::NetOutput) else {
            return Err(PassError::Failed(format!(
                "graph {} is the body of `{}` and has no NetOutput: add one",
                graph.name, n.name
            )));
        };
        let sink = graph.node(out);
        let mut bypass: FxHashSet<OutRef> = FxHashSet::default();
        let mut moved = Vec::new();
        let mut first_data = None;
        for (id, d) in graph.iter().filter(|(_, d)| d.kind.is_data()) {
            first_data.get_or_insert(d.consumers());
            let from = OutRef { node: id, index: 0 };
            if let [only] = graph.consumers(from)
                && only.node == out
            {
                if d.parent_index() == Some(sink.parent_output(only.index as usize)) {
                    bypass.insert(from);
                } else {
                    moved.push((from, *only));
                }
            }
        }
        let needed = sink.inputs.len() != 1
            || first_data.is_some_and(|c| c != 1)
            || self.symbol_count(body) == 2
            || self.feeds_continuous(body, out);
        let parent = &n.name;
        if needed {
            let before: Vec<InRef> = (0..sink.inputs.len() as u32)
                .map(|index| InRef { node: out, index })
                .filter(|i| graph.producer(*i).is_some_and(|p| !bypass.contains(&p)))
                .filter(|i| !spares_input(self.module, body, *i))
                .collect();
            if let Some(first) = before.first() {
                let source = graph
                    .producer(*first)
                    .map(|p| self.module.out_name(body, p))
                    .unwrap_or_default();
                let sink = self.module.in_name(body, *first);
                let why = format!(
                    "graph {} is the body of the loop `{parent}`: its result {sink} ({source}) is the next round's input, so it lies in the \
                     memory that this round may still read (by rule, whether or not somebody still reads it)",
                    graph.name
                );
                let reason = reason(
                    "a loop's results must not overwrite its inputs",
                    source,
                    sink,
                    why,
                )
                .order(format!(
                    "all operators of a round use the same memory again in the next round of `{parent}`: edges order operators \
                     inside a round, not the results of one round against the inputs of the next"
                ))
                .title("a round of a loop would write the next round's state while this round may still read it")
                .repair("the round works in memory of its own, and its results are copied to the loop's memory at its end");
                plans.push(Plan {
                    graph: body,
                    before,
                    after: Vec::new(),
                    reason,
                });
            }
        }
        if let Some((from, to)) = moved.first() {
            let (source, sink) = (
                self.module.out_name(body, *from),
                self.module.in_name(body, *to),
            );
            let why = format!(
                "graph {} is the body of the loop `{parent}`: its input {source} is the next round's input at another place, {sink}: to \
                 hand it on, the memory of that other place is overwritten",
                graph.name
            );
            let after = moved.iter().map(|m| m.0).collect();
            let reason = reason("a loop's input changes its place", source, sink, why)
                .title("a loop would overwrite one part of its state with another that is still needed")
                .order(format!(
                    "it does not matter here: the inputs of `{parent}` change places at once, between two rounds"
                ))
                .repair("the inputs are copied first, so that one can be overwritten while the copy of the other is still there");
            plans.push(Plan {
                graph: body,
                before: Vec::new(),
                after,
                reason,
            });
        }
        Ok(())
    }

    /// Classes in the body alone: what its loop joins from outside does not count.
    fn symbol_count(&self, body: GraphId) -> usize {
        let space = Space::new(self.module, body);
        Symbols::new(self.module, &space).len()
    }

    fn feeds_continuous(&self, body: GraphId, out: NodeId) -> bool {
        let inputs = self.module.graph(body).node(out).inputs.len() as u32;
        (0..inputs)
            .filter_map(|index| self.space.input(body, InRef { node: out, index }))
            .any(|me| {
                self.symbols
                    .members(self.symbols.of(me))
                    .iter()
                    .map(|a| self.space.at(*a))
                    .filter(|a| a.input)
                    .any(|a| {
                        let n = self.module.node(a.place());
                        n.inputs.len() > 1 && (n.attrs.flag(names::CI) || n.attrs.flag(names::NPCI))
                    })
            })
    }

    fn graph_name(&self, a: AnchorId) -> String {
        self.module.graph(self.space.at(a).graph).name.clone()
    }

    fn anchor_name(&self, a: AnchorId) -> String {
        self.space.name(self.module, a)
    }
}

fn reason(rule: &str, a: String, b: String, why: String) -> Reason {
    Reason::new(ConflictKind::SubgraphIsolation, rule, (a, b), why)
}

/// Whether no copy is put before this input: its shape is not known, or one of its own is there.
pub(super) fn spares_input(module: &Module, g: GraphId, at: InRef) -> bool {
    let graph = module.graph(g);
    let Some(from) = graph.producer(at) else {
        return true;
    };
    let producer = graph.node(from.node);
    graph
        .node(at.node)
        .inputs
        .get(at.index as usize)
        .is_some_and(|i| i.desc.is_unknown())
        || producer
            .outputs
            .get(from.index as usize)
            .is_some_and(|o| o.desc.is_unknown())
        || (producer.kind.is_copy() && graph.consumers(from).len() == 1)
}

/// Whether no copy is put after this output: nobody reads it, its shape is not known, or its only reader is a copy.
pub(super) fn spares_output(module: &Module, g: GraphId, at: OutRef) -> bool {
    let graph = module.graph(g);
    let unknown = graph
        .node(at.node)
        .outputs
        .get(at.index as usize)
        .is_some_and(|o| o.desc.is_unknown());
    match graph.consumers(at) {
        [] => true,
        [only] => unknown || graph.node(only.node).kind.is_copy(),
        _ => unknown,
    }
}
