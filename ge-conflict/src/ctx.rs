//! What a pass works with: the module, and the record of what it does to it.

use crate::ir::{
    Attr, ControlMove, Cycle, GraphId, InRef, Module, Node, NodeId, OutRef, Template, names,
};
use crate::report::{
    After, Before, Conflict, ConflictKind, Control, Failure, Inserted, Mark, OneOrMany, Reason,
    Relinked, Removed, Report, Story, Warning,
};

/// Why a pass gave up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// The input makes no sense to the pass.
    #[error("{0}")]
    ParamInvalid(String),
    /// The graph lacks something that earlier stages should have put there.
    #[error("{0}")]
    Internal(String),
    /// The pass can't do its work on this graph.
    #[error("{0}")]
    Failed(String),
}

impl PassError {
    /// The code in results.
    pub fn code(&self) -> &'static str {
        match self {
            PassError::ParamInvalid(_) => "PARAM_INVALID",
            PassError::Internal(_) => "INTERNAL_ERROR",
            PassError::Failed(_) => "FAILED",
        }
    }
}

impl From<Cycle> for PassError {
    fn from(c: Cycle) -> PassError {
        PassError::Failed(format!(
            "graph {}: these nodes wait for each other: {}; break the cycle",
            c.graph,
            c.path()
        ))
    }
}

/// The module under work, the pass at work, the record.
pub struct Ctx<'m> {
    /// The module.
    pub module: &'m mut Module,
    /// The record.
    pub report: Report,
    /// The graph that was asked for; `None`: all.
    pub only: Option<GraphId>,
    /// The pass at work.
    pub pass: &'static str,
    /// The module as the pass found it, from the pass's first insertion on: conflicts are told of that, not of what repairs of
    /// other conflicts have made of it.
    found: Option<(&'static str, Box<Module>)>,
    /// The pair that lint warned of.
    pub unordered: Option<crate::lint::Unordered>,
}

/// Attributes of copies that must stay where they are.
pub(crate) const KEEP: &[(&str, Attr)] = &[
    (names::CANNOT_BE_DELETED, Attr::Bool(true)),
    (names::NO_NEED_FOLDING, Attr::Bool(false)),
];

impl<'m> Ctx<'m> {
    /// A fresh record for this module.
    pub fn new(module: &'m mut Module, only: Option<GraphId>) -> Ctx<'m> {
        Ctx {
            module,
            report: Report::default(),
            only,
            pass: "",
            found: None,
            unordered: None,
        }
    }

    /// The graphs that a per-graph pass visits.
    pub fn targets(&self) -> Vec<GraphId> {
        match self.only {
            Some(g) => vec![g],
            None => self.module.graph_ids().collect(),
        }
    }

    /// The graph that a whole-graph pass starts at.
    pub fn top(&self) -> Result<GraphId, PassError> {
        self.only.or(self.module.root()).ok_or_else(|| {
            PassError::ParamInvalid("the graph is null: give at least one graph".into())
        })
    }

    /// A name for messages.
    pub fn name(&self, g: GraphId, n: NodeId) -> String {
        self.module.graph(g).node(n).name.clone()
    }

    /// A graph's name for messages.
    pub fn graph_name(&self, g: GraphId) -> String {
        self.module.graph(g).name.clone()
    }

    fn note_moves(&mut self, g: GraphId, moves: &[ControlMove]) {
        for m in moves {
            let names = |c: &Ctx<'_>, (a, b): (NodeId, NodeId)| [c.name(g, a), c.name(g, b)];
            let [from, to] = names(self, m.new);
            let old = names(self, m.old);
            // Either end of the edge may have moved to the copy.
            let why = if old[0] == from {
                format!(
                    "`{}` had to wait for `{from}`, and so has the copy that `{}` is given",
                    old[1], old[1]
                )
            } else {
                format!(
                    "`{to}` had to wait for `{}`, and so for the copy of what `{}` gives",
                    old[0], old[0]
                )
            };
            let entry = Control {
                pass: self.pass,
                graph: self.graph_name(g),
                from,
                to,
                moved_from: Some(old),
                why,
            };
            self.report.control.push(entry);
        }
    }

    /// Puts a copy before inputs of one node.
    pub fn insert_before(
        &mut self,
        g: GraphId,
        inputs: &[InRef],
        template: &Template<'_>,
        reason: &Reason,
    ) -> Option<NodeId> {
        let source = inputs
            .first()
            .and_then(|i| self.module.graph(g).producer(*i));
        self.keep_found();
        let story = match &reason.told {
            Some(s) => Some((**s).clone()),
            None => source.map(|o| self.story(g, o, inputs.first().copied(), reason)),
        };
        let (id, moves) = self.module.graph_mut(g).insert_before(inputs, template)?;
        let before = inputs
            .iter()
            .map(|i| Before {
                node: self.name(g, i.node),
                input: i.index,
            })
            .collect();
        self.note_inserted(g, id, OneOrMany::from_list(before), None, story, reason);
        self.note_moves(g, &moves);
        self.keep_order(g, id, inputs);
        Some(id)
    }

    /// The copy must not read earlier than its consumer did: writers of the same output that ran before the consumer, because
    /// it uses what they lead to, run before the copy.
    fn keep_order(&mut self, g: GraphId, copy: NodeId, inputs: &[InRef]) {
        let Some(consumer) = inputs.first().map(|i| i.node) else {
            return;
        };
        let graph = self.module.graph(g);
        let mut writers: Vec<NodeId> = Vec::new();
        for from in graph.node(copy).inputs.iter().filter_map(|i| i.from) {
            for c in graph.consumers(from) {
                let writes = graph.node(c.node).ref_output_of(c.index as usize).is_some();
                if writes && c.node != consumer && !writers.contains(&c.node) {
                    writers.push(c.node);
                }
            }
        }
        if writers.is_empty() {
            return;
        }
        let oldest = writers.iter().filter_map(|w| graph.node(*w).id).min();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut todo = vec![consumer];
        while let Some(n) = todo.pop() {
            for p in graph.predecessors(n) {
                let old = graph.node(p).id.is_some() && graph.node(p).id < oldest;
                if p != copy && !old && seen.insert(p) {
                    todo.push(p);
                }
            }
        }
        for w in writers.into_iter().filter(|w| seen.contains(w)) {
            let why = format!(
                "`{}` runs after `{}` has written, so its copy is made after that, too",
                self.name(g, consumer),
                self.name(g, w)
            );
            self.add_control(g, w, copy, &why);
        }
    }

    /// Puts a copy after outputs, in front of all their consumers.
    pub fn insert_after(
        &mut self,
        g: GraphId,
        outputs: &[OutRef],
        template: &Template<'_>,
        reason: &Reason,
    ) -> Option<NodeId> {
        self.keep_found();
        let story = match &reason.told {
            Some(s) => Some((**s).clone()),
            None => outputs.first().map(|o| self.story(g, *o, None, reason)),
        };
        let (id, moves) = self.module.graph_mut(g).insert_after(outputs, template)?;
        let graph = self.module.graph(g);
        let after: Vec<After> = graph
            .node(id)
            .inputs
            .iter()
            .filter_map(|i| i.from)
            .map(|o| After {
                node: graph.node(o.node).name.clone(),
                output: o.index,
            })
            .collect();
        self.note_inserted(g, id, None, OneOrMany::from_list(after), story, reason);
        self.note_moves(g, &moves);
        Some(id)
    }

    /// Records a node that is already in the graph as inserted.
    pub fn note_inserted(
        &mut self,
        g: GraphId,
        id: NodeId,
        before: Option<OneOrMany<Before>>,
        after: Option<OneOrMany<After>>,
        story: Option<Story>,
        reason: &Reason,
    ) {
        let node = self.module.graph(g).node(id);
        let mut conflict = Conflict::with(reason, story);
        if reason.follows {
            conflict.part_of = self.report.inserted.last().map(|i| i.name.clone());
        }
        let entry = Inserted {
            pass: self.pass,
            graph: self.module.graph(g).name.clone(),
            name: node.name.clone(),
            ty: node.ty.clone(),
            before,
            after,
            attrs: node
                .attrs
                .0
                .iter()
                .map(|(k, v)| (k.to_owned(), crate::io::attr_json(v)))
                .collect(),
            why: reason.why.clone(),
            conflict,
        };
        self.report.inserted.push(entry);
    }

    fn keep_found(&mut self) {
        if self.found.as_ref().is_none_or(|f| f.0 != self.pass) {
            self.found = Some((self.pass, Box::new(self.module.clone())));
        }
    }

    /// The module as the pass found it, if what is asked for was there then.
    fn found(&self, g: GraphId, out: OutRef, focus: Option<InRef>) -> &Module {
        let same = |m: &Module| {
            let graph = m.graph(g);
            graph.get(out.node).is_some()
                && focus
                    .is_none_or(|f| graph.get(f.node).is_some() && graph.producer(f) == Some(out))
        };
        match &self.found {
            Some((pass, m)) if *pass == self.pass && same(m) => m,
            _ => self.module,
        }
    }

    /// Who uses the memory of `out`, before anything is changed.
    pub fn story(&self, g: GraphId, out: OutRef, focus: Option<InRef>, reason: &Reason) -> Story {
        let mut story = crate::story::tell(self.found(g, out, focus), g, out, focus, reason);
        if story.repair.is_empty() {
            let here = focus.map(|f| self.name(g, f.node));
            story.repair = match (reason.kind, here) {
                (ConflictKind::ReadWrite | ConflictKind::HcclWrite, Some(me)) => format!(
                    "then `{me}` works on the copy, and everybody else keeps {}",
                    self.module.out_name(g, out)
                ),
                _ => format!(
                    "the copy lies in memory of its own, so {} and {} are no longer one piece of memory",
                    reason.between.0, reason.between.1
                ),
            };
        }
        story
    }

    /// Adds a node that stands in no data edge.
    pub fn add_node(&mut self, g: GraphId, node: Node, story: Story, reason: &Reason) -> NodeId {
        let id = self.module.graph_mut(g).add(node);
        self.note_inserted(g, id, None, None, Some(story), reason);
        id
    }

    /// Adds a control edge.
    pub fn add_control(&mut self, g: GraphId, from: NodeId, to: NodeId, why: &str) {
        if self.module.graph_mut(g).add_control(from, to) {
            let (from, to) = (self.name(g, from), self.name(g, to));
            let graph = self.graph_name(g);
            self.report.control.push(Control {
                pass: self.pass,
                graph,
                from,
                to,
                moved_from: None,
                why: why.to_owned(),
            });
        }
    }

    /// Takes a node out.
    pub fn remove(&mut self, g: GraphId, id: NodeId, reason: &Reason) {
        let node = self.module.graph(g).node(id);
        let (name, ty) = (node.name.clone(), node.ty.clone());
        let graph = self.graph_name(g);
        let r = &mut self.report;
        let mine = r
            .inserted
            .iter()
            .position(|i| i.graph == graph && i.name == name);
        if let Some(at) = mine {
            // Put in and taken out in one run: nothing happened.
            r.inserted.remove(at);
            let out = format!("{name}:0");
            r.relinked
                .retain(|l| l.graph != graph || (l.old != out && l.new != out));
            r.control
                .retain(|c| c.graph != graph || (c.from != name && c.to != name));
        } else {
            let (pass, why) = (self.pass, reason.why.clone());
            r.removed.push(Removed {
                pass,
                graph,
                name,
                ty,
                why,
                conflict: reason.into(),
            });
        }
        self.module.graph_mut(g).remove(id);
    }

    /// Gives an input another producer.
    pub fn relink(&mut self, g: GraphId, to: InRef, from: OutRef, reason: &Reason) {
        let graph = self.module.graph(g);
        let text = |o: OutRef| format!("{}:{}", graph.node(o.node).name, o.index);
        let entry = Relinked {
            pass: self.pass,
            graph: graph.name.clone(),
            node: graph.node(to.node).name.clone(),
            input: to.index,
            old: graph.producer(to).map(text).unwrap_or_default(),
            new: text(from),
            why: reason.why.clone(),
            conflict: reason.into(),
        };
        self.report.relinked.push(entry);
        self.module.graph_mut(g).reconnect(from, to);
    }

    /// Sets a node's attribute.
    pub fn mark(&mut self, g: GraphId, id: NodeId, attr: &str, value: Attr, why: &str) {
        let json = crate::io::attr_json(&value);
        if self
            .module
            .graph_mut(g)
            .get_mut(id)
            .is_some_and(|n| n.attrs.set(attr, value))
        {
            self.note_mark(g, id, None, attr, json, why);
        }
    }

    /// Sets an output's attribute.
    pub fn mark_output(&mut self, g: GraphId, out: OutRef, attr: &str, value: Attr, why: &str) {
        let json = crate::io::attr_json(&value);
        let output = self
            .module
            .graph_mut(g)
            .get_mut(out.node)
            .and_then(|n| n.outputs.get_mut(out.index as usize));
        if output.is_some_and(|o| o.desc.attrs.set(attr, value)) {
            self.note_mark(g, out.node, Some(out.index), attr, json, why);
        }
    }

    /// Records a mark that is already set.
    pub fn note_mark(
        &mut self,
        g: GraphId,
        id: NodeId,
        output: Option<u32>,
        attr: &str,
        value: serde_json::Value,
        why: &str,
    ) {
        let (graph, node) = (self.graph_name(g), self.name(g, id));
        let mark = Mark {
            pass: self.pass,
            graph,
            node,
            output,
            attr: attr.to_owned(),
            value,
            why: why.to_owned(),
        };
        self.report.marks.push(mark);
    }

    /// Records a warning.
    pub fn warn(
        &mut self,
        code: &'static str,
        g: GraphId,
        nodes: Vec<String>,
        story: Option<Story>,
        reason: &Reason,
    ) {
        let warning = Warning {
            code,
            pass: self.pass,
            graph: self.graph_name(g),
            nodes,
            settled: false,
            others: Vec::new(),
            why: reason.why.clone(),
            kind: reason.kind.name(),
            hazard: reason.kind.hazard(),
            conflict: Conflict::with(reason, story),
        };
        self.report.warnings.push(warning);
    }

    /// Records an error.
    pub fn fail(&mut self, error: &PassError) {
        let pass = if self.pass.is_empty() {
            None
        } else {
            Some(self.pass)
        };
        self.report.errors.push(Failure {
            code: error.code(),
            pass,
            graph: None,
            node: None,
            why: error.to_string(),
        });
    }
}
