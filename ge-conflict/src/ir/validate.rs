//! What must hold of a graph before any pass looks at it.

use super::{GraphId, Module, names};
use crate::text::count;
use rustc_hash::FxHashSet;

/// Kind of defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DefectCode {
    /// An edge names a node or output that is not there.
    DanglingEdge,
    /// Nodes wait for each other outside a loop.
    Cycle,
    /// Two nodes of a graph, or two graphs, have one name.
    DuplicateName,
    /// A subgraph's Data or NetOutput names an input or output that its parent lacks.
    BadParentIndex,
    /// An output reuses an input that its node lacks.
    BadReuseInput,
    /// A graph's parent, or a node's subgraph, is not there, or they disagree.
    BadParent,
}

impl DefectCode {
    /// The code in results.
    pub fn as_str(self) -> &'static str {
        match self {
            DefectCode::DanglingEdge => "DANGLING_EDGE",
            DefectCode::Cycle => "CYCLE",
            DefectCode::DuplicateName => "DUPLICATE_NAME",
            DefectCode::BadParentIndex => "BAD_PARENT_INDEX",
            DefectCode::BadReuseInput => "BAD_REUSE_INPUT",
            DefectCode::BadParent => "BAD_PARENT",
        }
    }
}

/// One thing that is wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// What kind.
    pub code: DefectCode,
    /// The graph.
    pub graph: String,
    /// The node, if one is to blame.
    pub node: Option<String>,
    /// In words.
    pub why: String,
}

impl Module {
    /// All defects, in the order of graphs and nodes. Edges to nodes that do not exist can't be expressed in a [`Module`]:
    /// the readers report those.
    pub fn validate(&self) -> Vec<Defect> {
        let mut out = Vec::new();
        let mut graphs = FxHashSet::default();
        for (i, g) in self.graphs.iter().enumerate() {
            if !graphs.insert(&g.name) {
                out.push(Defect {
                    code: DefectCode::DuplicateName,
                    graph: g.name.clone(),
                    node: None,
                    why: format!("two graphs are called {}: give each its own name", g.name),
                });
            }
            self.check_names(GraphId(i as u32), &mut out);
            self.check_parent(GraphId(i as u32), &mut out);
            self.check_reuse(GraphId(i as u32), &mut out);
            // Ids that are a topological order prove that there is no cycle.
            if !g.ids_are_topological()
                && let Err(c) = g.topological()
            {
                out.push(Defect {
                    code: DefectCode::Cycle,
                    graph: g.name.clone(),
                    node: c.nodes.first().cloned(),
                    why: format!(
                        "graph {}: these nodes wait for each other: {}",
                        g.name,
                        c.path()
                    ),
                });
            }
        }
        out
    }

    fn check_names(&self, id: GraphId, out: &mut Vec<Defect>) {
        let g = self.graph(id);
        if g.names_are_unique() {
            return;
        }
        for (node, n) in g.iter() {
            if g.find(&n.name) != Some(node) {
                out.push(Defect {
                    code: DefectCode::DuplicateName,
                    graph: g.name.clone(),
                    node: Some(n.name.clone()),
                    why: format!("graph {}: two nodes are called `{}`", g.name, n.name),
                });
            }
        }
    }

    fn check_reuse(&self, id: GraphId, out: &mut Vec<Defect>) {
        let g = self.graph(id);
        for (_, n) in g.iter() {
            for (o, output) in n.outputs.iter().enumerate() {
                let Some(k) = output
                    .desc
                    .reuse_input
                    .filter(|k| *k as usize >= n.inputs.len())
                else {
                    continue;
                };
                out.push(Defect {
                    code: DefectCode::BadReuseInput,
                    graph: g.name.clone(),
                    node: Some(n.name.clone()),
                    why: format!(
                        "graph {}: output {o} of `{}` reuses input {k} (reuse_input), but `{}` has {}: correct or remove reuse_input",
                        g.name, n.name, n.name, count(n.inputs.len(), "input")
                    ),
                });
            }
        }
    }

    fn check_parent(&self, id: GraphId, out: &mut Vec<Defect>) {
        let g = self.graph(id);
        let Some((p, parent)) = self.parent_node(id) else {
            return;
        };
        // A chain of parents that never reaches a root would send every walk round in circles.
        let mut at = g.parent;
        for _ in 0..=self.graphs.len() {
            match at {
                None => break,
                Some(p) => at = self.graph(p.graph).parent,
            }
        }
        if at.is_some() {
            out.push(Defect {
                code: DefectCode::BadParent,
                graph: g.name.clone(),
                node: Some(parent.name.clone()),
                why: format!(
                    "graph {}: its chain of parents never reaches a root graph",
                    g.name
                ),
            });
            return;
        }
        let bad = |node: &str, why: String| Defect {
            code: DefectCode::BadParentIndex,
            graph: g.name.clone(),
            node: Some(node.to_owned()),
            why,
        };
        for (_, n) in g.iter() {
            if n.kind.is_data()
                && let Some(i) = n.parent_index()
                && (i < 0 || i >= parent.inputs.len() as i64)
            {
                let has = count(parent.inputs.len(), "input");
                out.push(bad(
                    &n.name,
                    format!(
                        "graph {}: `{}` has {} {i}, but its parent `{}` has {has}",
                        g.name,
                        n.name,
                        names::PARENT_INDEX,
                        parent.name
                    ),
                ));
            }
            if n.kind == super::Kind::NetOutput
                && !(parent.kind == super::Kind::While && p.index == 0)
            {
                for k in 0..n.inputs.len() {
                    let given = n.inputs[k].desc.attrs.int(names::PARENT_INDEX);
                    if let Some(o) = given.filter(|o| *o < 0 || *o >= parent.outputs.len() as i64) {
                        let has = count(parent.outputs.len(), "output");
                        out.push(bad(&n.name, format!(
                            "graph {}: input {k} of `{}` stands for output {o}, but its parent `{}` has {has}",
                            g.name, n.name, parent.name)));
                    }
                }
            }
        }
    }
}
