//! In-place reuse: an output takes over an input's memory where nobody can notice.

use crate::ctx::{Ctx, PassError};
use crate::ir::{Attr, GraphId, InRef, Module, Node, NodeId, OutRef, names};
use crate::layout::attrs::{self, AttrSet, Mode};
use crate::layout::control;
use crate::layout::detect::Detector;
use crate::layout::symbols::{AnchorId, Space, Symbols};
use rustc_hash::FxHashSet;

/// The pass's name in results.
pub const PASS: &str = "inplace";

struct Candidate {
    graph: GraphId,
    node: NodeId,
    out: u32,
    input: u32,
}

/// Runs the pass on the graph asked for and everything inside it.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    let top = ctx.top()?;
    let space = Space::new(ctx.module, top);
    let mut symbols = Symbols::new(ctx.module, &space);
    let mode = Mode::new(ctx.module, top);
    let sets = attrs::mark(ctx.module, &space, &symbols, mode);
    let chosen = choose(ctx.module, &space, &mut symbols, &sets, mode)?;
    let mut set = Vec::new();
    for c in &chosen {
        let output = ctx
            .module
            .graph_mut(c.graph)
            .get_mut(c.node)
            .and_then(|n| n.outputs.get_mut(c.out as usize));
        if let Some(o) = output {
            set.push((c.graph, c.node, c.out, o.desc.reuse_input));
            o.desc.reuse_input = Some(c.input);
        }
    }
    // Reuse joins memory that control flow may have kept apart: then none of it stands.
    let clash = !chosen.is_empty() && {
        let joined = Symbols::new(ctx.module, &space);
        !control::plan(ctx.module, &space, &joined)?.is_empty()
    };
    if clash {
        for (g, node, out, before) in set {
            if let Some(o) = ctx
                .module
                .graph_mut(g)
                .get_mut(node)
                .and_then(|n| n.outputs.get_mut(out as usize))
            {
                o.desc.reuse_input = before;
            }
        }
        symbols = Symbols::new(ctx.module, &space);
    } else {
        for c in chosen {
            let why = format!(
                "the output may be written over input {}, which nobody needs any more",
                c.input
            );
            ctx.note_mark(
                c.graph,
                c.node,
                Some(c.out),
                "reuse_input",
                c.input.into(),
                &why,
            );
        }
    }
    ctx.report.symbols = list(ctx.module, &space, &symbols);
    Ok(())
}

fn list(module: &Module, space: &Space, symbols: &Symbols) -> Vec<Vec<String>> {
    let named = |c: u32| {
        let mut members = symbols.members(c).to_vec();
        members.sort();
        members
            .into_iter()
            .map(|a| space.key(module, a))
            .collect::<Vec<_>>()
    };
    let mut out: Vec<(AnchorId, Vec<String>)> = symbols
        .classes()
        .map(|c| {
            (
                *symbols.members(c).iter().min().unwrap_or(&AnchorId(0)),
                named(c),
            )
        })
        .collect();
    out.sort();
    out.into_iter().map(|o| o.1).collect()
}

/// The pairs that pass every filter; `symbols` is joined as they are chosen.
fn choose(
    module: &Module,
    space: &Space,
    symbols: &mut Symbols,
    sets: &[AttrSet],
    mode: Mode,
) -> Result<Vec<Candidate>, PassError> {
    let mut read_only: FxHashSet<u32> = FxHashSet::default();
    for g in &space.graphs {
        for (id, n) in module.graph(*g).iter() {
            if n.kind.is_data() || n.kind.is_const() || n.kind.is_var_like() {
                for o in 0..n.outputs.len() as u32 {
                    let out = space.output(module, *g, OutRef { node: id, index: o });
                    read_only.extend(out.map(|a| symbols.of(a)));
                }
            }
        }
    }
    let mut chosen = Vec::new();
    for g in &space.graphs {
        for (id, n) in module.graph(*g).iter() {
            let Some(ability) = n.attrs.get(names::INPLACE_ABILITY) else {
                continue;
            };
            let (mut inputs, mut outs) = (FxHashSet::default(), FxHashSet::default());
            for (out, input) in pairs(module, *g, n, ability)? {
                let (Ok(out), Ok(input)) = (u32::try_from(out), u32::try_from(input)) else {
                    continue;
                };
                if inputs.contains(&input) || outs.contains(&out) {
                    continue;
                }
                let at = Candidate {
                    graph: *g,
                    node: id,
                    out,
                    input,
                };
                if is_last_user(module, &at)
                    && fits(module, space, symbols, sets, mode, &read_only, &at)?
                {
                    let out_class = space
                        .output(
                            module,
                            *g,
                            OutRef {
                                node: id,
                                index: out,
                            },
                        )
                        .map(|a| symbols.of(a));
                    let in_class = space
                        .input(
                            *g,
                            InRef {
                                node: id,
                                index: input,
                            },
                        )
                        .map(|a| symbols.of(a));
                    if let (Some(o), Some(i)) = (out_class, in_class) {
                        let kept = symbols.merge(i, o);
                        if read_only.contains(&o) || read_only.contains(&i) {
                            read_only.insert(kept);
                        }
                    }
                    inputs.insert(input);
                    outs.insert(out);
                    chosen.push(at);
                }
            }
        }
    }
    Ok(chosen)
}

/// The declared `[output, input]` pairs.
fn pairs(
    module: &Module,
    g: GraphId,
    n: &Node,
    ability: &Attr,
) -> Result<Vec<(i64, i64)>, PassError> {
    let bad = || {
        PassError::Failed(format!(
            "graph {}, node `{}`: {} must be a list of [output, input] pairs",
            module.graph(g).name,
            n.name,
            names::INPLACE_ABILITY
        ))
    };
    let list = ability.as_list().ok_or_else(bad)?;
    list.iter()
        .map(|p| match p.as_list().ok_or_else(bad)? {
            [Attr::Int(o), Attr::Int(i)] => Ok((*o, *i)),
            _ => Err(bad()),
        })
        .collect()
}

/// Whether nobody uses the input after this operator.
fn is_last_user(module: &Module, c: &Candidate) -> bool {
    let graph = module.graph(c.graph);
    let me = graph.node(c.node);
    let Some(from) = graph.producer(InRef {
        node: c.node,
        index: c.input,
    }) else {
        return false;
    };
    graph.consumers(from).iter().all(|x| {
        if x.node == c.node {
            // The same memory as another input of this operator would be overwritten while that one is read.
            return x.index == c.input;
        }
        let other = graph.node(x.node);
        other.id < me.id
            && (other.stream == me.stream || other.stream == -1 || me.stream == -1)
            && !other.attrs.flag(names::REFERENCE)
    }) && !me.attrs.flag(names::REFERENCE)
}

fn fits(
    module: &Module,
    space: &Space,
    symbols: &Symbols,
    sets: &[AttrSet],
    mode: Mode,
    read_only: &FxHashSet<u32>,
    c: &Candidate,
) -> Result<bool, PassError> {
    let n = module.graph(c.graph).node(c.node);
    let (Some(input), Some(output)) = (
        n.inputs.get(c.input as usize),
        n.outputs.get(c.out as usize),
    ) else {
        return Ok(false);
    };
    let same_size = input.desc.bytes().is_some() && input.desc.bytes() == output.desc.bytes();
    let (Some(i), Some(o)) = (
        space.input(
            c.graph,
            InRef {
                node: c.node,
                index: c.input,
            },
        ),
        space.output(
            module,
            c.graph,
            OutRef {
                node: c.node,
                index: c.out,
            },
        ),
    ) else {
        return Ok(false);
    };
    let tied = n.attrs.flag(names::CO)
        || n.attrs.flag(names::NPCO)
        || output.desc.attrs.has(names::REF_VAR);
    if !same_size || read_only.contains(&symbols.of(i)) || tied || symbols.same(i, o) {
        return Ok(false);
    }
    // The memory may have users besides the producer's own consumers, behind operators that pass it on.
    let used_later = symbols
        .members(symbols.of(i))
        .iter()
        .map(|a| space.at(*a))
        .any(|at| {
            at.input
                && at.graph == c.graph
                && (at.node != c.node || at.index != c.input)
                && module.node(at.place()).id >= n.id
        });
    if used_later {
        return Ok(false);
    }
    let mut joined = symbols.members(symbols.of(i)).to_vec();
    joined.extend(symbols.members(symbols.of(o)));
    let mut detector = Detector::new(module, space, symbols, sets, mode);
    Ok(!detector.check_list(&joined)?)
}
