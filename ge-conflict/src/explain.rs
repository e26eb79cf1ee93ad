//! Everything there is to know about one anchor: what it shares memory with, what they demand, which rules were tried.

use crate::ir::{GraphId, InRef, Module, OutRef};
use crate::layout::attrs::{self, Mode};
use crate::layout::detect::Detector;
use crate::layout::symbols::{AnchorId, Space, Symbols};
use crate::layout::table::Entry;
use crate::rw::{Classes, verdict};
use serde::Serialize;
use std::fmt;

/// An anchor of a class of shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The graph.
    pub graph: String,
    /// The anchor.
    pub anchor: String,
    /// Its attributes.
    pub attributes: Vec<&'static str>,
}

/// A rule that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The other anchor.
    pub against: String,
    /// Attribute of the anchor, attribute of the other.
    pub attributes: [&'static str; 2],
    /// The rule.
    pub rule: String,
    /// Anchors that need a copy by it.
    pub isolate: Vec<String>,
}

/// One edge as the read-write pass sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeRule {
    /// The producer.
    pub output: String,
    /// The consumer.
    pub input: String,
    /// Class of the output.
    pub output_class: String,
    /// Class of the input.
    pub input_class: String,
    /// What the matrix says.
    pub verdict: String,
}

/// The explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The graph.
    pub graph: String,
    /// The anchor.
    pub anchor: String,
    /// The anchor's attributes.
    pub attributes: Vec<&'static str>,
    /// The class's name: its first anchor in the order of names.
    pub symbol: String,
    /// What shares its memory, itself too.
    pub shares: Vec<Member>,
    /// Layout rules.
    pub rules: Vec<Tried>,
    /// Read-write rules on its edges.
    pub read_write: Vec<EdgeRule>,
}

/// Explains `NODE.in.N` or `NODE.out.N`.
pub fn anchor(module: &Module, only: Option<GraphId>, text: &str) -> Result<Explanation, String> {
    let form = || format!("{text:?} is no anchor; write NODE.in.N or NODE.out.N");
    let (rest, index) = text.rsplit_once('.').ok_or_else(form)?;
    let index: u32 = index.parse().map_err(|_| form())?;
    let (node, input) = match (rest.strip_suffix(".in"), rest.strip_suffix(".out")) {
        (Some(n), _) => (n, true),
        (_, Some(n)) => (n, false),
        _ => return Err(form()),
    };
    let graphs: Vec<GraphId> = only.map_or_else(|| module.graph_ids().collect(), |g| vec![g]);
    let (g, id) = graphs
        .into_iter()
        .find_map(|g| Some((g, module.graph(g).find(node)?)))
        .ok_or_else(|| format!("no node is called {node:?}"))?;
    // The graph whose memory is planned as a whole and that holds the node.
    let root = module
        .root()
        .ok_or_else(|| "the module has no graph".to_owned())?;
    let top = crate::layout::static_tops(module, root)
        .into_iter()
        .find(|t| module.family(*t).contains(&g))
        .unwrap_or(g);
    let space = Space::new(module, top);
    let symbols = Symbols::new(module, &space);
    let mode = Mode::new(module, top);
    let sets = attrs::mark(module, &space, &symbols, mode);
    let me = if input {
        space.input(g, InRef { node: id, index })
    } else {
        space.output(module, g, OutRef { node: id, index })
    };
    let me = me.ok_or_else(|| {
        format!(
            "{node} has no {} {index}",
            if input { "input" } else { "output" }
        )
    })?;
    let name = |a: AnchorId| {
        let at = space.at(a);
        if at.input {
            module.in_name(at.graph, at.in_ref())
        } else {
            module.out_name(at.graph, at.out_ref())
        }
    };
    let list = |a: AnchorId| {
        sets[a.0 as usize]
            .iter()
            .map(|x| x.name())
            .collect::<Vec<_>>()
    };
    let mut keyed: Vec<(String, AnchorId)> = symbols
        .members(symbols.of(me))
        .iter()
        .map(|a| (space.key(module, *a), *a))
        .collect();
    keyed.sort();
    let (_, trials) = Detector::new(module, &space, &symbols, &sets, mode)
        .trace(me)
        .run()
        .map_err(|e| e.to_string())?;
    let rules = trials
        .into_iter()
        .map(|t| {
            let (other, attributes) = if t.between.0 == me {
                (t.between.1, [t.attrs.0.name(), t.attrs.1.name()])
            } else {
                (t.between.0, [t.attrs.1.name(), t.attrs.0.name()])
            };
            let rule = match t.entry {
                Entry::Free => "always go together".to_owned(),
                Entry::Absolute => "never go together".to_owned(),
                Entry::Check(c) => c.name().to_owned(),
            };
            Tried {
                against: name(other),
                attributes,
                rule,
                isolate: t.found.into_iter().map(name).collect(),
            }
        })
        .collect();
    Ok(Explanation {
        graph: module.graph(g).name.clone(),
        anchor: name(me),
        attributes: list(me),
        symbol: keyed.first().map(|k| k.0.clone()).unwrap_or_default(),
        shares: keyed
            .iter()
            .map(|(_, a)| Member {
                graph: module.graph(space.at(*a).graph).name.clone(),
                anchor: name(*a),
                attributes: list(*a),
            })
            .collect(),
        rules,
        read_write: edges(module, g, id, index, input),
    })
}

fn edges(
    module: &Module,
    g: GraphId,
    id: crate::ir::NodeId,
    index: u32,
    input: bool,
) -> Vec<EdgeRule> {
    let Some(root) = module.root() else {
        return Vec::new();
    };
    let family = module.family(root);
    let mut classes = Classes::new(module, &family);
    for s in family.iter().rev() {
        classes.settle(module, *s);
    }
    let graph = module.graph(g);
    let pairs: Vec<(OutRef, InRef)> = if input {
        let at = InRef { node: id, index };
        graph.producer(at).map(|o| (o, at)).into_iter().collect()
    } else {
        let out = OutRef { node: id, index };
        graph.consumers(out).iter().map(|c| (out, *c)).collect()
    };
    pairs
        .into_iter()
        .map(|(o, i)| {
            let (oc, ic) = (classes.output(module, g, o), classes.input(module, g, i));
            let said = match verdict(oc, ic) {
                crate::rw::Verdict::Nothing => "no copy",
                crate::rw::Verdict::Insert => "the consumer needs a copy",
                crate::rw::Verdict::WrongGraph => "the graph makes no sense here",
            };
            EdgeRule {
                output: module.out_name(g, o),
                input: module.in_name(g, i),
                output_class: oc.to_string(),
                input_class: ic.to_string(),
                verdict: said.to_owned(),
            }
        })
        .collect()
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (graph {})", self.anchor, self.graph)?;
        writeln!(f, "  attributes  {}", self.attributes.join(", "))?;
        writeln!(f, "  symbol      {}", self.symbol)?;
        writeln!(f, "  shares memory with")?;
        for m in &self.shares {
            writeln!(
                f,
                "    {} (graph {}): {}",
                m.anchor,
                m.graph,
                m.attributes.join(", ")
            )?;
        }
        writeln!(f, "  layout rules tried")?;
        for t in &self.rules {
            let result = if t.isolate.is_empty() {
                "no conflict".to_owned()
            } else {
                format!("isolate {}", t.isolate.join(", "))
            };
            writeln!(
                f,
                "    against {}: {} x {}: {}: {result}",
                t.against, t.attributes[0], t.attributes[1], t.rule
            )?;
        }
        if self.rules.is_empty() {
            writeln!(
                f,
                "    none: nothing it shares memory with demands anything that could clash"
            )?;
        }
        writeln!(f, "  read-write rules")?;
        for e in &self.read_write {
            writeln!(
                f,
                "    {} ({}) -> {} ({}): {}",
                e.output, e.output_class, e.input, e.input_class, e.verdict
            )?;
        }
        if self.read_write.is_empty() {
            writeln!(f, "    none: it has no edge")?;
        }
        Ok(())
    }
}
