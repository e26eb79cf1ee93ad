//! Branches that map one output to different inputs: at run time the address of the result depends on the way taken.

use crate::ir::{GraphId, Kind, Module, NodeId};
use std::collections::BTreeSet;

/// What a branch hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Something it computes.
    Computed,
    /// Its own input, by the parent's number.
    Input(i64),
}

/// An output that every way must hand out through an operator of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Which output.
    pub output: u32,
    /// What the ways hand out, each once.
    pub sources: Vec<Source>,
}

/// The conflicting outputs of an If or Case, in ascending order; one operator per way then passes all of them through.
pub fn conflicts(module: &Module, g: GraphId, node: NodeId) -> Vec<Conflict> {
    let n = module.graph(g).node(node);
    if !matches!(n.kind, Kind::If | Kind::Case) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for output in 0..n.outputs.len() as u32 {
        let sources: BTreeSet<Source> = n
            .subgraphs
            .iter()
            .flatten()
            .filter_map(|s| source(module, *s, output))
            .collect();
        if sources.len() > 1 {
            found.push(Conflict {
                output,
                sources: sources.into_iter().collect(),
            });
        }
    }
    found
}

fn source(module: &Module, s: GraphId, output: u32) -> Option<Source> {
    let from = crate::rw::result(module, s, output)?;
    let n = module.graph(s).node(from.node);
    Some(match n.parent_index() {
        Some(i) if n.kind.is_data() => Source::Input(i),
        _ => Source::Computed,
    })
}
