//! `[[graph]]` entries.

use super::{Resolver, listed, steps};
use crate::failure::Result;
use crate::scenario::model::*;
use crate::scenario::raw;
use std::ops::Range;
use toml::Spanned;

/// Adds the graphs to the scenario.
pub(super) fn resolve(r: &mut Resolver<'_>, raw: Vec<Spanned<raw::Graph>>) -> Result<()> {
    for graph in raw {
        let line = r.place.line(&graph.span());
        let raw = graph.into_inner();
        let name = new_name(r, &raw.name)?;
        let mut nodes: Vec<Node> = Vec::new();
        for node in raw.node {
            let span = node.span();
            let node = resolve_node(r, &nodes, &node.into_inner(), &span)?;
            nodes.push(node);
        }
        r.scenario.graphs.push(Graph {
            name,
            nodes,
            captured: false,
            line,
        });
    }
    Ok(())
}

/// A graph's name that no other has.
pub(super) fn new_name(r: &Resolver<'_>, name: &Spanned<String>) -> Result<String> {
    let known = name.get_ref();
    if known.is_empty() || r.scenario.graphs.iter().any(|g| g.name == *known) {
        let message = format!("a graph's name is not empty, and no other has it: `{known}`");
        return Err(r.place.error(&name.span(), message));
    }
    Ok(known.clone())
}

/// The graph of that name.
pub(super) fn find(r: &Resolver<'_>, name: &Spanned<String>) -> Result<usize> {
    let graphs = &r.scenario.graphs;
    graphs
        .iter()
        .position(|g| g.name == *name.get_ref())
        .ok_or_else(|| {
            let known = listed(graphs.iter().map(|g| g.name.as_str()));
            let message = format!("there is no graph `{}` here; {known}", name.get_ref());
            r.place.error(&name.span(), message)
        })
}

fn resolve_node(
    r: &mut Resolver<'_>,
    nodes: &[Node],
    raw: &raw::Step,
    span: &Range<usize>,
) -> Result<Node> {
    let mut after = Vec::new();
    for name in raw.after.iter().flatten() {
        let position = nodes.iter().position(|n| n.name == *name.get_ref());
        let Some(index) = position else {
            let known = listed(nodes.iter().map(|n| n.name.as_str()));
            let message = format!("no earlier node is called `{}`; {known}", name.get_ref());
            return Err(r.place.error(&name.span(), message));
        };
        after.push(index);
    }
    let (action, line) = steps::node_action(r, raw, span)?;
    let kernel = |n: &usize| matches!(nodes[*n].action, Action::Launch(_));
    if let Action::Launch(Launch { pdl: true, .. }) = &action
        && (after.len() != 1 || !after.iter().all(kernel))
    {
        let at = raw.pdl.as_ref().map_or(span.clone(), Spanned::span);
        let message =
            "with `pdl` a node comes after one other (`after = [NODE]`), which launches a kernel";
        return Err(r.place.error(&at, message));
    }
    let name = match &raw.name {
        Some(name) if nodes.iter().any(|n| n.name == *name.get_ref()) => {
            let message = format!("there is a node `{}` already", name.get_ref());
            return Err(r.place.error(&name.span(), message));
        }
        Some(name) => name.get_ref().clone(),
        None => format!("#{}", nodes.len()),
    };
    Ok(Node {
        name,
        after,
        action,
        line,
    })
}
