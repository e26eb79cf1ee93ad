//! Everything there is to know about one anchor: what it shares memory with, what they demand, which rules were tried, and
//! what the check does about it.

use crate::glossary;
use crate::ir::{GraphId, InRef, Module, NodeId, OutRef, names};
use crate::layout::attrs::{self, AnchorAttr, Mode};
use crate::layout::detect::Detector;
use crate::layout::symbols::{AnchorId, Space, Symbols};
use crate::layout::table::{Entry, absolute_words};
use crate::report::{Inserted, Report};
use crate::rw::{Classes, Verdict, verdict};
use crate::text::wrapped;
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
    /// The same in words.
    pub demands: Vec<&'static str>,
    /// What in the file says so, for each; empty: it needs no saying.
    pub because: Vec<String>,
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
    /// What it looks for.
    pub meaning: &'static str,
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
    /// Why no copy is made by this rule although the matrix asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overruled: Option<String>,
}

/// What a pass finds at this memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The pass.
    pub pass: &'static str,
    /// What is asked.
    pub question: &'static str,
    /// The conflicts.
    pub answers: Vec<String>,
}

/// The explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The graph.
    pub graph: String,
    /// The anchor.
    pub anchor: String,
    /// Its operator's type.
    pub operator: String,
    /// The anchor's attributes.
    pub attributes: Vec<&'static str>,
    /// The class's name: its first anchor in the order of names.
    pub symbol: String,
    /// The memory's name in the results of a check: the output that owns it.
    pub memory: String,
    /// What shares its memory, itself too.
    pub shares: Vec<Member>,
    /// Layout rules.
    pub rules: Vec<Tried>,
    /// Read-write rules on its edges.
    pub read_write: Vec<EdgeRule>,
    /// Pairs on this memory that no edge orders.
    pub unordered: Vec<String>,
    /// What passes without a section of their own find here.
    pub found: Vec<Found>,
    /// What the check does here.
    pub done: Vec<String>,
}

/// Explains `NODE.in.N` or `NODE.out.N`; `check` gives what the check does to the module.
pub fn anchor(
    module: &Module,
    only: Option<GraphId>,
    text: &str,
    check: impl FnOnce() -> Report,
) -> Result<Explanation, String> {
    let form = || format!("{text:?} is no input or output; write NODE.in.N or NODE.out.N");
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
    let name = |a: AnchorId| space.name(module, a);
    let list = |a: AnchorId| sets[a.0 as usize].iter();
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
            let (rule, meaning) = match t.entry {
                Entry::Free => ("always go together".to_owned(), ""),
                Entry::Absolute => (
                    "never go together".to_owned(),
                    absolute_words(t.attrs.0, t.attrs.1),
                ),
                Entry::Check(c) => (c.name().to_owned(), c.words()),
            };
            Tried {
                against: name(other),
                attributes,
                rule,
                meaning,
                isolate: t.found.into_iter().map(name).collect(),
            }
        })
        .collect();
    let shares: Vec<Member> = keyed
        .iter()
        .map(|(_, a)| Member {
            graph: module.graph(space.at(*a).graph).name.clone(),
            anchor: name(*a),
            attributes: list(*a).map(AnchorAttr::name).collect(),
            demands: list(*a).map(AnchorAttr::words).collect(),
            because: list(*a)
                .map(|attr| {
                    let at = space.at(*a);
                    let node = module.node(at.place());
                    crate::cause::demands(node, at.input, at.index as usize, attr)
                })
                .collect(),
        })
        .collect();
    let report = check();
    let same_memory = |graph: GraphId, out: OutRef| {
        space
            .output(module, graph, out)
            .is_some_and(|a| symbols.same(a, me))
    };
    let here = Here {
        module,
        report: &report,
        g,
    };
    let at = space.at(me);
    let owned = if input {
        module.graph(g).producer(at.in_ref())
    } else {
        Some(at.out_ref())
    };
    let memory = owned.map_or_else(|| name(me), |o| crate::story::memory_name(module, g, o));
    Ok(Explanation {
        graph: module.graph(g).name.clone(),
        anchor: name(me),
        operator: module.graph(g).node(id).ty.clone(),
        attributes: list(me).map(AnchorAttr::name).collect(),
        symbol: keyed.first().map(|k| k.0.clone()).unwrap_or_default(),
        rules,
        read_write: here.edges(id, index, input),
        unordered: unordered(module, root, same_memory),
        found: here.found(&shares, id),
        memory,
        done: here.done(&shares, id),
        shares,
    })
}

/// What lint would say of this memory, all of it.
fn unordered(
    module: &Module,
    root: GraphId,
    here: impl Fn(GraphId, OutRef) -> bool,
) -> Vec<String> {
    crate::lint::find(module, root, false)
        .pairs
        .into_iter()
        .filter(|u| here(u.graph, u.out))
        .map(|u| {
            format!(
                "{} writes {} in place and {} {} it, and no chain of data or control edges makes one run before the other \
                 (graph {}); `gsan graph lint` says what to do",
                module.in_name(u.graph, u.writer),
                module.out_name(u.graph, u.out),
                module.in_name(u.graph, u.other),
                if u.both_write { "writes" } else { "reads" },
                module.graph(u.graph).name
            )
        })
        .collect()
}

/// What the check did around one node.
struct Here<'a> {
    module: &'a Module,
    report: &'a Report,
    g: GraphId,
}

impl Here<'_> {
    /// Whether something was put in at an anchor of this memory.
    fn touches(&self, i: &Inserted, shares: &[Member], node: &str) -> bool {
        let member = |anchor: String| {
            shares
                .iter()
                .any(|m| m.graph == i.graph && m.anchor == anchor)
        };
        let before = i.before.iter().flat_map(|b| b.as_slice());
        let after = i.after.iter().flat_map(|a| a.as_slice());
        before
            .map(|b| format!("{}.in.{}", b.node, b.input))
            .chain(after.map(|a| format!("{}.out.{}", a.node, a.output)))
            .any(member)
            || (i.before.is_none() && i.after.is_none() && self.beside(i, node))
    }

    /// What the passes find here that have no section of their own; those that find nothing are left out.
    fn found(&self, shares: &[Member], id: NodeId) -> Vec<Found> {
        use crate::passes::{addr, atomic, hccl, subgraph};
        let node = &self.module.graph(self.g).node(id).name;
        let questions = [
            (
                hccl::PASS,
                "Does a collective overwrite it while others still need it?",
            ),
            (
                hccl::CONTINUOUS,
                "Can it lie where a row of inputs, or other devices, need it?",
            ),
            (
                atomic::PASS,
                "Is what operators add up there set to zero first?",
            ),
            (
                subgraph::PASS,
                "Do subgraphs, or the rounds of a loop, disturb each other there?",
            ),
            (crate::layout::PASS, LAYOUT),
            (crate::rw::PASS, RW),
            (
                addr::PASS,
                "Can its operators follow when the caller's buffer has another address?",
            ),
        ];
        questions
            .into_iter()
            .filter_map(|(pass, question)| {
                let here = |i: &&Inserted| i.pass == pass && self.touches(i, shares, node);
                let answers: Vec<String> = self
                    .report
                    .inserted
                    .iter()
                    .filter(here)
                    .map(|i| {
                        format!(
                            "conflict between {} and {}: {}; `{}` would be put in{}",
                            i.conflict.anchors[0],
                            i.conflict.anchors[1],
                            i.conflict.title,
                            i.name,
                            crate::text::place(i)
                        )
                    })
                    .collect();
                (!answers.is_empty()).then_some(Found {
                    pass,
                    question,
                    answers,
                })
            })
            .collect()
    }

    /// Nodes put in next to an anchor of this memory, marks on the node, errors.
    fn done(&self, shares: &[Member], id: NodeId) -> Vec<String> {
        let node = &self.module.graph(self.g).node(id).name;
        let graph = &self.module.graph(self.g).name;
        let r = self.report;
        let mut said: Vec<String> = r
            .errors
            .iter()
            .map(|e| format!("the check ends with the error {}: {}", e.code, e.why))
            .collect();
        for i in r.inserted.iter().filter(|i| self.touches(i, shares, node)) {
            said.push(format!(
                "pass {} would put `{}` ({}) in{}, because {}",
                i.pass,
                i.name,
                i.ty,
                crate::text::place(i),
                i.why
            ));
        }
        for x in r
            .removed
            .iter()
            .filter(|x| x.graph == *graph && x.name == *node)
        {
            said.push(format!(
                "pass {} would take `{}` out, because {}",
                x.pass, x.name, x.why
            ));
        }
        for m in r
            .marks
            .iter()
            .filter(|m| m.graph == *graph && m.node == *node)
        {
            said.push(format!(
                "pass {} would set the attribute `{}` to {}, because {}",
                m.pass, m.attr, m.value, m.why
            ));
        }
        for w in &r.warnings {
            let here = |a: &String| shares.iter().any(|m| m.graph == w.graph && m.anchor == *a);
            if (w.graph == *graph && w.nodes.contains(node)) || w.conflict.anchors.iter().any(here)
            {
                said.push(format!("pass {} warns ({}): {}", w.pass, w.code, w.why));
            }
        }
        said
    }

    /// Whether an operator beside the data edges is there for this node.
    fn beside(&self, i: &Inserted, node: &str) -> bool {
        let of = format!("{node}.");
        i.graph == self.module.graph(self.g).name
            && i.conflict.anchors.iter().any(|a| a.starts_with(&of))
    }

    fn edges(&self, id: NodeId, index: u32, input: bool) -> Vec<EdgeRule> {
        let (module, g) = (self.module, self.g);
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
                let verdict = verdict(oc, ic);
                let said = match verdict {
                    Verdict::Nothing => "no copy",
                    Verdict::Insert => "the consumer needs a copy",
                    Verdict::WrongGraph => "the graph makes no sense here",
                };
                let overruled = (verdict == Verdict::Insert)
                    .then(|| {
                        crate::rw::leaves_alone(module, &classes, g, o, i)
                            .or_else(|| self.judged_before(i))
                    })
                    .flatten();
                EdgeRule {
                    output: module.out_name(g, o),
                    input: module.in_name(g, i),
                    output_class: oc.to_string(),
                    input_class: ic.to_string(),
                    verdict: said.to_owned(),
                    overruled,
                }
            })
            .collect()
    }

    /// What an earlier pass did about this input.
    fn judged_before(&self, at: InRef) -> Option<String> {
        let graph = self.module.graph(self.g);
        let node = &graph.node(at.node).name;
        let copy = self.report.inserted.iter().find(|i| {
            let before = i.before.as_ref().map_or(&[][..], |b| b.as_slice());
            i.pass != crate::rw::PASS
                && i.graph == graph.name
                && before
                    .iter()
                    .any(|b| b.node == *node && b.input == at.index)
        });
        if let Some(c) = copy {
            return Some(format!(
                "pass {}, which comes first, would have put the copy `{}` in",
                c.pass, c.name
            ));
        }
        let marks = &self.report.marks;
        let mark = marks
            .iter()
            .find(|m| m.graph == graph.name && m.node == *node && m.attr == names::SKIP_RW)?;
        Some(format!(
            "pass {}, which comes first, has judged `{node}`: {}",
            mark.pass, mark.why
        ))
    }
}

/// Questions with sections of their own: those tell of the anchor itself, and then of the rest of its memory.
const LAYOUT: &str = "Do the demands on it go together?";
const RW: &str = "May its operators read and write as they do?";

/// Members and rules that the text shows.
const SHOWN: usize = 200;

impl Explanation {
    /// Conflicts about this memory, but not about the anchor itself.
    fn elsewhere(&self, s: &mut String, question: &str) {
        for f in self.found.iter().filter(|f| f.question == question) {
            for a in &f.answers {
                *s += &wrapped(
                    "  ",
                    &format!("but elsewhere in this memory there is a {a}"),
                    6,
                );
            }
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = format!(
            "{} (graph {}, an operator of type {})\n",
            self.anchor, self.graph, self.operator
        );
        let head = |s: &mut String, text: &str| *s += &format!("\n{text}\n");
        let item = |s: &mut String, text: &str| *s += &wrapped("  ", text, 6);
        s.push('\n');
        s += &wrapped(
            "",
            &format!(
                "These are one piece of memory, {} (GE's own name for it: {}), and this is what each demands of it:",
                self.memory, self.symbol
            ),
            0,
        );
        for m in self.shares.iter().take(SHOWN) {
            let demands: Vec<String> = m
                .demands
                .iter()
                .zip(&m.attributes)
                .zip(&m.because)
                .map(|((words, name), because)| {
                    if because.is_empty() {
                        format!("{words} [{name}]")
                    } else {
                        format!("{words} ({because}) [{name}]")
                    }
                })
                .collect();
            let graph = if m.graph == self.graph {
                String::new()
            } else {
                format!(" (graph {})", m.graph)
            };
            item(
                &mut s,
                &format!("{}{graph}: {}", m.anchor, demands.join("; and ")),
            );
        }
        if self.shares.len() > SHOWN {
            item(
                &mut s,
                &format!(
                    "and {} more (--format json has all)",
                    self.shares.len() - SHOWN
                ),
            );
        }
        head(
            &mut s,
            &format!(
                "Do the demands on {} go together with those of the others? (pass layout)",
                self.anchor
            ),
        );
        for t in self.rules.iter().take(SHOWN) {
            let result = if t.isolate.is_empty() {
                "yes".to_owned()
            } else {
                format!("NO, {} needs a copy", crate::text::and(&t.isolate))
            };
            let rule = if t.meaning.is_empty() {
                format!("these {}", t.rule)
            } else {
                format!("the rule: {} [GE's own name for it: {}]", t.meaning, t.rule)
            };
            item(
                &mut s,
                &format!(
                    "{} with {} [{} with {}]: {result}; {rule}",
                    self.anchor, t.against, t.attributes[0], t.attributes[1]
                ),
            );
        }
        if self.rules.len() > SHOWN {
            item(
                &mut s,
                &format!(
                    "and {} more (--format json has all)",
                    self.rules.len() - SHOWN
                ),
            );
        }
        if self.rules.is_empty() {
            item(
                &mut s,
                "yes: each of the demands goes together with every other, whatever the rest of the graph is like",
            );
        }
        if self.rules.iter().all(|t| t.isolate.is_empty()) {
            self.elsewhere(&mut s, LAYOUT);
        }
        let own = |f: &&Found| ![LAYOUT, RW].contains(&f.question);
        for f in self.found.iter().filter(own) {
            head(&mut s, &format!("{} (pass {})", f.question, f.pass));
            for a in &f.answers {
                item(&mut s, a);
            }
        }
        head(
            &mut s,
            "May its operators read and write as they do? (pass rw)",
        );
        for e in self.read_write.iter().take(SHOWN) {
            let result = match (e.verdict.as_str(), &e.overruled) {
                ("no copy", _) => "that goes together".to_owned(),
                (v, None) => v.replace("the consumer", &e.input),
                (v, Some(why)) => format!(
                    "by itself, {}; but the pass does not make one, because {why}",
                    v.replace("the consumer", &e.input)
                ),
            };
            item(
                &mut s,
                &format!(
                    "{} is {}, and the operator of {} {}: {result}",
                    e.output, e.output_class, e.input, e.input_class
                ),
            );
        }
        if self.read_write.is_empty() {
            item(&mut s, "nothing is connected to it");
        }
        let asks = |e: &EdgeRule| e.verdict != "no copy" && e.overruled.is_none();
        if !self.read_write.iter().any(asks) {
            self.elsewhere(&mut s, RW);
        }
        head(
            &mut s,
            "Do edges order those who write this memory in place and its other users? (pass lint)",
        );
        for u in self.unordered.iter().take(SHOWN) {
            item(&mut s, &format!("no: {u}"));
        }
        if self.unordered.is_empty() {
            item(
                &mut s,
                "yes, as far as this pass looks: wherever an operator writes an output in place, edges order it and every other operator \
                 that takes in the same output (scratch space, and the rounds of a loop, are the business of other passes)",
            );
        }
        head(&mut s, "What the check would do here:");
        for d in &self.done {
            item(&mut s, d);
        }
        if self.done.is_empty() {
            item(&mut s, "nothing");
        }
        let words = glossary::of(&s);
        if !words.is_empty() {
            s += &format!("\n{words}");
        }
        f.write_str(&s)
    }
}
