//! Layout conflicts: anchors that share memory must be able to want the same memory.
//!
//! For each static graph that stands on its own: control flow first ([`control`]), then all anchors that share memory are
//! gathered ([`symbols`]), marked with what they demand ([`attrs`]), compared pair by pair ([`detect`], with the pairs' table
//! in [`table`]), and those in the way get a copy each, in the order of their names.

pub mod attrs;
mod continuous;
pub mod control;
pub mod detect;
mod pair;
mod rows;
pub mod symbols;
pub mod table;

use crate::ctx::{Ctx, KEEP, PassError};
use crate::ir::{GraphId, Module, Template};
use crate::report::{ConflictKind, Reason};
use attrs::Mode;
use detect::{Detector, Finding};
use symbols::{AnchorId, Space, Symbols};

/// The pass's name in results.
pub const PASS: &str = "layout";

/// What the order of execution has to do with layout conflicts.
pub(crate) const NO_ORDER_HELPS: &str =
    "it does not matter here: this is about where memory lies, whichever operator runs first";

/// Every round that goes on has put a copy before an anchor that had none, so few are needed.
const MAX_ROUNDS: usize = 16;

/// Runs the pass on the graph asked for.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    let top = ctx.top()?;
    let tops = static_tops(ctx.module, top);
    if tops.is_empty() {
        return Ok(());
    }
    ctx.module.sort(top)?;
    for g in &tops {
        let plans = {
            let space = Space::new(ctx.module, *g);
            let symbols = Symbols::new(ctx.module, &space);
            control::plan(ctx.module, &space, &symbols)?
        };
        control::apply(ctx, plans);
    }
    ctx.module.sort(top)?;
    for g in tops {
        // Some rules spare an operator because all its inputs are one output; a copy put in for another rule can end that.
        for _ in 0..MAX_ROUNDS {
            let before = ctx.report.inserted.len();
            solve(ctx, g)?;
            if ctx.report.inserted.len() == before {
                break;
            }
            ctx.module.sort(top)?;
        }
    }
    Ok(())
}

/// The graphs whose memory is planned as a whole: the one asked for if it is static, else the static ones inside it that
/// are in no other static one.
pub fn static_tops(module: &Module, top: GraphId) -> Vec<GraphId> {
    if !module.graph(top).is_dynamic() {
        return vec![top];
    }
    let is_top = |g: &GraphId| {
        !module.graph(*g).is_dynamic()
            && module
                .parent_node(*g)
                .is_none_or(|(p, _)| module.graph(p.graph).is_dynamic())
    };
    module.family(top).into_iter().filter(is_top).collect()
}

/// What a graph's anchors are in conflict about, as it is.
pub fn find(module: &Module, g: GraphId) -> Result<(Space, Vec<Finding>), PassError> {
    let space = Space::new(module, g);
    let symbols = Symbols::new(module, &space);
    let mode = Mode::new(module, g);
    let sets = attrs::mark(module, &space, &symbols, mode);
    let (findings, _) = Detector::new(module, &space, &symbols, &sets, mode).run()?;
    Ok((space, findings))
}

fn solve(ctx: &mut Ctx<'_>, g: GraphId) -> Result<(), PassError> {
    let (space, findings) = find(ctx.module, g)?;
    let mut ordered: Vec<(String, Finding)> = findings
        .into_iter()
        .map(|f| (space.key(ctx.module, f.anchor), f))
        .collect();
    ordered.sort_by(|a, b| (&a.0, a.1.anchor).cmp(&(&b.0, b.1.anchor)));
    // Only what had its copy when the pair was found: copies of this round are what the findings ask for.
    let had: Vec<bool> = ordered
        .iter()
        .map(|(_, f)| has_copy(ctx.module, &space, f.anchor))
        .collect();
    // In the words of the graph as it is before any of them.
    let mut reasons: Vec<Reason> = Vec::new();
    for (n, (_, f)) in ordered.iter().enumerate() {
        let earlier = ordered[..n].iter().map(|(_, e)| e);
        let reason = explain(ctx.module, &space, f, &mut earlier.into_iter());
        let at = space.at(f.anchor);
        let story = if at.input {
            let from = ctx.module.graph(at.graph).producer(at.in_ref());
            from.map(|o| ctx.story(at.graph, o, Some(at.in_ref()), &reason))
        } else {
            Some(ctx.story(at.graph, at.out_ref(), None, &reason))
        };
        reasons.push(match story {
            Some(s) => reason.told(s),
            None => reason,
        });
    }
    for (((_, mut f), had_copy), mut reason) in ordered.into_iter().zip(had).zip(reasons) {
        if had_copy {
            // The pair was found although its anchor has its copy: that one does not part them (an operator passes the
            // memory on behind it), so another place must.
            match other_place(ctx.module, &space, &f) {
                Some(anchor) => {
                    f.anchor = anchor;
                    reason.told = None;
                }
                None => continue,
            }
        }
        let at = space.at(f.anchor);
        let name = ctx.name(at.graph, at.node);
        let side = if at.input { "input" } else { "output" };
        let name = format!("{name}_{side}_{}_Identity", at.index);
        let template = Template {
            name: &name,
            ty: "Identity",
            attrs: KEEP,
        };
        if at.input && !control::spares_input(ctx.module, at.graph, at.in_ref()) {
            ctx.insert_before(at.graph, &[at.in_ref()], &template, &reason);
        } else if !at.input && !control::spares_output(ctx.module, at.graph, at.out_ref()) {
            ctx.insert_after(at.graph, &[at.out_ref()], &template, &reason);
        }
    }
    Ok(())
}

/// Whether the copy that an anchor would get is there already.
fn has_copy(module: &Module, space: &Space, a: AnchorId) -> bool {
    let at = space.at(a);
    let graph = module.graph(at.graph);
    if at.input {
        return graph
            .producer(at.in_ref())
            .is_some_and(|p| graph.node(p.node).kind.is_copy() && graph.consumers(p).len() == 1);
    }
    matches!(graph.consumers(at.out_ref()), [only] if graph.node(only.node).kind.is_copy())
}

/// Where else a pair can be parted: before the input that one of its outputs is, or before one that is itself an input.
/// Pairs with the copy itself need nothing.
fn other_place(module: &Module, space: &Space, f: &Finding) -> Option<AnchorId> {
    let pair = [f.between.0, f.between.1];
    if pair
        .iter()
        .any(|a| module.node(space.at(*a).place()).kind.is_copy())
    {
        return None;
    }
    let own_input = |a: AnchorId| {
        let at = space.at(a);
        if at.input {
            return Some(a);
        }
        let input = symbols::alias_input(module.node(at.place()), at.index as usize)?;
        space.input(
            at.graph,
            crate::ir::InRef {
                node: at.node,
                index: input as u32,
            },
        )
    };
    let first = own_input(f.anchor);
    first
        .into_iter()
        .chain(pair.into_iter().filter_map(own_input))
        .find(|a| !has_copy(module, space, *a))
}

fn explain(
    module: &Module,
    space: &Space,
    f: &Finding,
    earlier: &mut dyn Iterator<Item = &Finding>,
) -> Reason {
    let name = |a| space.name(module, a);
    let (one, two) = f.between;
    let (a, b) = (name(one), name(two));
    let rule = match f.checker {
        Some(c) => c.name().to_owned(),
        None => format!("{} and {} never go together", f.attrs.0, f.attrs.1),
    };
    let (x, y) = (f.attrs.0.words(), f.attrs.1.words());
    let cause = |anchor, attr| {
        let at = space.at(anchor);
        crate::cause::demands(module.node(at.place()), at.input, at.index as usize, attr)
    };
    let (p, q) = (cause(one, f.attrs.0), cause(two, f.attrs.1));
    let with = |words: &str, cause: &str| {
        if cause.is_empty() {
            words.to_owned()
        } else {
            format!("{words} ({cause})")
        }
    };
    let mut why = if x == y {
        let causes: Vec<String> = [p, q].into_iter().filter(|c| !c.is_empty()).collect();
        let each = with(x, &crate::text::and(&causes));
        format!("{a} and {b} are one piece of memory, and each is {each}")
    } else {
        format!(
            "{a} and {b} are one piece of memory, but {a} is {}, and {b} is {}",
            with(x, &p),
            with(y, &q)
        )
    };
    why += &rows::told(module, space, f, earlier);
    use table::Checker as C;
    if matches!(
        f.checker,
        Some(
            C::UnrefreshIn
                | C::UnrefreshOut
                | C::UserOutUnrefreshIn
                | C::UserOutUnrefreshOut
                | C::UserInUnrefreshOut
        )
    ) {
        why += &moves(module, space.graphs.first().copied());
    }
    let (meaning, title) = match f.checker {
        Some(c) => (c.words(), c.title()),
        None => (
            table::absolute_words(f.attrs.0, f.attrs.1),
            table::absolute_title(f.attrs.0, f.attrs.1),
        ),
    };
    let graph = |a| module.graph(space.at(a).graph).name.as_str();
    let mut reason = Reason::new(ConflictKind::Layout, rule, (a.clone(), b.clone()), why)
        .title(title)
        .order(NO_ORDER_HELPS)
        .meaning(meaning);
    let place = graph(f.anchor);
    if graph(one) != place || graph(two) != place {
        reason = reason.graphs(graph(one), graph(two));
    }
    let special = |x| matches!(x, attrs::AnchorAttr::RtsIn | attrs::AnchorAttr::RtsOut);
    if special(f.attrs.0) || special(f.attrs.1) {
        reason = reason.repair(special_repair(module, space, f, (&a, &b)));
    }
    reason
}

/// What makes addresses change.
fn moves(module: &Module, top: Option<GraphId>) -> String {
    let Some(mode) = top.map(|g| Mode::new(module, g)) else {
        return String::new();
    };
    let o = &module.options;
    if o.feature_base_refreshable {
        "; addresses of this graph may change between runs (option \"feature_base_refreshable\": true)".to_owned()
    } else if mode.fm_refreshable {
        "; addresses of this graph may change between runs (the shapes of the root graph are only known at run time)".to_owned()
    } else if mode.physical {
        "; memory may be put elsewhere between runs (option \"static_memory_policy\": 4)".to_owned()
    } else {
        String::new()
    }
}

/// Why a copy helps where kinds of memory differ: which kind it gets, and what decides that.
fn special_repair(module: &Module, space: &Space, f: &Finding, names: (&str, &str)) -> String {
    let mem = |a: AnchorId| {
        let at = space.at(a);
        let (node, k) = (module.node(at.place()), at.index as usize);
        if at.input {
            node.input_mem(k)
        } else {
            node.output_mem(k)
        }
    };
    // Before an input, the copy is what its operator works on; behind an output, it is what everybody else has.
    let ((one, two), (a, b)) = (f.between, names);
    let own = |x: AnchorId| space.at(x).place() == space.at(f.anchor).place();
    let side = |x: AnchorId| own(x) == space.at(f.anchor).input;
    let sides = [(one, a), (two, b)].into_iter().filter(|x| side(x.0));
    let special = sides.clone().find(|x| mem(x.0).is_special());
    let (behind, name) = special
        .or(sides.clone().next_back())
        .unwrap_or((f.anchor, a));
    let kind = mem(behind);
    let kind = if kind.is_special() {
        format!(
            "{} memory, like {name}, which is the same piece of memory as the copy then",
            kind.word()
        )
    } else {
        "ordinary device memory".to_owned()
    };
    format!(
        "the copy lies in memory of its own, so {a} and {b} are no longer one piece of memory; nothing need be said of its kind: memory \
         is of the kind that one of its users is marked with, so the copy lies in {kind}"
    )
}
