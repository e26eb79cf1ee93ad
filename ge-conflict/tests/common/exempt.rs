//! What the specification leaves alone: each rule by its name, as narrow as it can be told from one wrong read.

use super::flat::{Key, list, origin, split, text};
use super::simulation::Wrong;
use ge_conflict::report::Report;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Section 5: subgraphs' Data are skipped as producers. Reader and writer meet inside one subgraph (or the reader reads what the
/// subgraph hands out), on the memory of one of its inputs, and the writer writes it for its own use: in that subgraph, or in a call in it.
pub const SUBGRAPH_DATA: &str = "rw skips a subgraph's Data as a producer";
/// Section 5: nodes inside While subgraphs are skipped. Reader and writer meet inside one subgraph of a loop, and the writer
/// writes for its own use.
pub const IN_A_LOOP: &str = "rw skips the nodes inside a loop";
/// Section 5: a While's output is SoftRead, however many consumers it has. Reader and writer meet on a loop's result, and the
/// writer writes it for its own use.
pub const LOOP_RESULT: &str = "rw takes a loop's result for memory of one operator";
/// Section 5: any Invalid means wrong graph, no insertion. The writer is in the call that the warning names.
pub const WRONG_GRAPH: &str = "rw calls the graph wrong";

pub struct Exemptions<'a> {
    graphs: HashMap<String, &'a Value>,
    classes: &'a HashMap<Key, usize>,
    report: &'a Report,
}

impl<'a> Exemptions<'a> {
    pub fn new(
        module: &'a Value,
        classes: &'a HashMap<Key, usize>,
        report: &'a Report,
    ) -> Exemptions<'a> {
        let graphs = list(&module["graphs"]).iter();
        Exemptions {
            graphs: graphs.map(|g| (text(&g["name"]), g)).collect(),
            classes,
            report,
        }
    }

    /// The rule by which a wrong read is left alone.
    pub fn rule(&self, w: &Wrong) -> Option<&'static str> {
        let (graph, node) = origin(w.culprit.as_deref()?);
        let (reader_graph, reader) = origin(&w.reader);
        if self.is_called_wrong(graph, node) {
            return Some(WRONG_GRAPH);
        }
        let key = (reader_graph.to_owned(), reader.to_owned(), true, w.input);
        let class = *self.classes.get(&key)?;
        let (graph, node) = if w.scratch {
            (graph.to_owned(), node.to_owned())
        } else {
            self.loop_of(graph, class)?
        };
        let (graph, node) = (graph.as_str(), node.as_str());
        let collective = self.node(graph, node)?["attrs"]["_input_mutable"] == true;
        let around = self.around(reader_graph);
        for g in self.around(graph) {
            let parent = &self.graphs[&g]["parent"];
            // A collective and its siblings are the business of the collectives' pass, which looks into every graph.
            if collective && g == graph {
                continue;
            }
            // The writer, or the call in `g` that it is in.
            let here = self.within(&g, graph, node);
            if self.leads_up(&g, &here, class, "While") {
                return Some(LOOP_RESULT);
            }
            if parent.is_null() {
                continue;
            }
            let (above, call) = (text(&parent["graph"]), text(&parent["node"]));
            let call_node = self.node(&above, &call)?;
            let inside = around.contains(&g);
            if call_node["type"] == "While" {
                if inside {
                    return Some(IN_A_LOOP);
                }
                continue;
            }
            // Readers outside meet it in what the subgraph hands out.
            let result = |o: usize| (above.clone(), call.clone(), false, o as u32);
            let handed_out = (0..list(&call_node["outputs"]).len())
                .any(|o| self.classes.get(&result(o)) == Some(&class));
            if (inside || handed_out) && self.leads_up(&g, &here, class, "Data") {
                return Some(SUBGRAPH_DATA);
            }
        }
        None
    }

    /// The innermost loop around a graph that keeps its state in memory of this class: it writes it for its own use.
    fn loop_of(&self, graph: &str, class: usize) -> Option<(String, String)> {
        self.around(graph).into_iter().find_map(|g| {
            let parent = &self.graphs[&g]["parent"];
            let (above, node) = (text(&parent["graph"]), text(&parent["node"]));
            let n = self.node(&above, &node).filter(|n| n["type"] == "While")?;
            let at = |k: usize| (above.clone(), node.clone(), true, k as u32);
            (0..list(&n["inputs"]).len())
                .any(|k| self.classes.get(&at(k)) == Some(&class))
                .then_some((above, node))
        })
    }

    /// The node of graph `g` that is `node`, or in which it lies.
    fn within(&self, g: &str, graph: &str, node: &str) -> String {
        let (mut graph, mut node) = (graph.to_owned(), node.to_owned());
        while graph != g {
            let parent = &self.graphs[&graph]["parent"];
            (graph, node) = (text(&parent["graph"]), text(&parent["node"]));
        }
        node
    }

    /// Whether the memory of this class that a node is given comes from a node of type `ty` of its graph, through operators
    /// that hand it on.
    fn leads_up(&self, graph: &str, node: &str, class: usize, ty: &str) -> bool {
        let (mut todo, mut seen) = (vec![node.to_owned()], HashSet::new());
        while let Some(n) = todo.pop() {
            let Some(v) = self.node(graph, &n) else {
                continue;
            };
            for (k, i) in list(&v["inputs"]).iter().enumerate() {
                let key = (graph.to_owned(), n.clone(), true, k as u32);
                let Some(from) = i["from"]
                    .as_str()
                    .filter(|_| self.classes.get(&key) == Some(&class))
                else {
                    continue;
                };
                let up = split(from).0;
                if self.node(graph, &up).is_some_and(|u| u["type"] == ty) {
                    return true;
                }
                if seen.insert(up.clone()) {
                    todo.push(up);
                }
            }
        }
        false
    }

    fn node(&self, graph: &str, node: &str) -> Option<&'a Value> {
        let nodes = list(&self.graphs.get(graph)?["nodes"]).iter();
        nodes.into_iter().find(|n| n["name"] == node)
    }

    /// A graph and those that it lies in.
    fn around(&self, graph: &str) -> Vec<String> {
        let mut all = vec![graph.to_owned()];
        while let Some(g) = all.last().and_then(|g| self.graphs.get(g))
            && !g["parent"].is_null()
        {
            all.push(text(&g["parent"]["graph"]));
        }
        all
    }

    /// Whether a node is, or lies in, the consumer that a warning calls wrong.
    fn is_called_wrong(&self, graph: &str, node: &str) -> bool {
        let warnings = self.report.warnings.iter();
        warnings.filter(|w| w.code == "RW_WRONG_GRAPH").any(|w| {
            let (mut graph, mut node) = (graph.to_owned(), node.to_owned());
            loop {
                if w.graph == graph && w.nodes.last() == Some(&node) {
                    return true;
                }
                let parent = self.graphs.get(&graph).map(|g| &g["parent"]);
                let Some(parent) = parent.filter(|p| !p.is_null()) else {
                    return false;
                };
                (graph, node) = (text(&parent["graph"]), text(&parent["node"]));
            }
        })
    }
}
