//! A picture for Graphviz: conflicts red, what was put in green.

use crate::ir::{GraphId, Module};
use crate::report::Report;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// The module after the run, with what the run found.
pub fn picture(module: &Module, report: &Report) -> String {
    let mut s = String::from(
        "digraph module {\n  rankdir=TB; node [shape=box, fontname=\"sans-serif\"];\n  \
         label=\"red: in conflict; green: put in; arrows: data, output:input; dashed: control edges\";\n",
    );
    let inserted: FxHashSet<(&str, &str)> = report
        .inserted
        .iter()
        .map(|i| (i.graph.as_str(), i.name.as_str()))
        .collect();
    let mut conflicts: Vec<(&str, &str, &str, &str)> = Vec::new();
    for i in &report.inserted {
        let [a, b] = &i.conflict.anchors;
        conflicts.push((&i.graph, node_of(a), node_of(b), &i.conflict.rule));
    }
    for w in &report.warnings {
        let [a, b] = &w.conflict.anchors;
        conflicts.push((&w.graph, node_of(a), node_of(b), &w.conflict.rule));
    }
    let red: FxHashSet<(&str, &str)> = conflicts
        .iter()
        .flat_map(|c| [(c.0, c.1), (c.0, c.2)])
        .collect();
    for g in module.graph_ids() {
        let graph = module.graph(g);
        let parent = module
            .parent_node(g)
            .map(|(_, n)| format!(" (in {})", n.name))
            .unwrap_or_default();
        let _ = writeln!(
            s,
            "  subgraph cluster_{} {{\n    label={};",
            g.0,
            quote(&format!("{}{parent}", graph.name))
        );
        for (id, n) in graph.iter() {
            let at = (graph.name.as_str(), n.name.as_str());
            let style = if inserted.contains(&at) {
                ", style=filled, fillcolor=palegreen, color=darkgreen"
            } else if red.contains(&at) {
                ", style=filled, fillcolor=mistyrose, color=red"
            } else {
                ""
            };
            let _ = writeln!(
                s,
                "    {} [label={}{style}];",
                name(g, id.0),
                quote(&format!("{}\n{}", n.name, n.ty))
            );
        }
        s.push_str("  }\n");
    }
    for g in module.graph_ids() {
        for (id, n) in module.graph(g).iter() {
            for (k, i) in n.inputs.iter().enumerate() {
                if let Some(f) = i.from {
                    let _ = writeln!(
                        s,
                        "  {} -> {} [label=\"{}:{k}\"];",
                        name(g, f.node.0),
                        name(g, id.0),
                        f.index
                    );
                }
            }
            for c in &n.control_in {
                let _ = writeln!(
                    s,
                    "  {} -> {} [style=dashed, color=gray];",
                    name(g, c.0),
                    name(g, id.0)
                );
            }
        }
    }
    let places: FxHashMap<&str, GraphId> = module
        .graph_ids()
        .map(|g| (module.graph(g).name.as_str(), g))
        .collect();
    let mut drawn = FxHashSet::default();
    for (graph, a, b, rule) in conflicts {
        let Some(g) = places.get(graph) else { continue };
        // A loop or branch that is a side of a conflict stands in the graph around.
        let find = |n: &str| {
            let mut at = Some(*g);
            while let Some(g) = at {
                if let Some(id) = module.graph(g).find(n) {
                    return Some((g, id));
                }
                at = module.graph(g).parent.map(|p| p.graph);
            }
            None
        };
        if let (Some(x), Some(y)) = (find(a), find(b))
            && x != y
            && drawn.insert((x, y, rule))
        {
            let _ = writeln!(
                s,
                "  {} -> {} [color=red, style=bold, dir=none, constraint=false, label={}];",
                name(x.0, x.1.0),
                name(y.0, y.1.0),
                quote(rule)
            );
        }
    }
    s.push_str("}\n");
    s
}

fn name(g: GraphId, n: u32) -> String {
    format!("n{}_{n}", g.0)
}

/// The node of `node.in.0` or `node.out.0`.
fn node_of(anchor: &str) -> &str {
    let without = anchor.rsplit_once('.').map_or(anchor, |(a, _)| a);
    without
        .strip_suffix(".in")
        .or_else(|| without.strip_suffix(".out"))
        .unwrap_or(anchor)
}

fn quote(s: &str) -> String {
    format!(
        "\"{}\"",
        s.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}
