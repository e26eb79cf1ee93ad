//! Edits. Each keeps both ends of every edge in step.
//!
//! The two ways to put a node into an edge have exact semantics for control edges, because later passes and the order of
//! execution depend on them:
//! * before an input: the consumer's incoming control edges move to the new node, except those from nodes that clear
//!   memory; the new node stands right before the consumer.
//! * after an output: the producer's outgoing control edges move to the new node, unless the producer is a switch; the
//!   new node stands right after the producer.

use super::{Attr, Desc, Graph, InRef, Input, Node, NodeId, OutRef, Output, names};
use rustc_hash::FxHashSet;

/// A control edge that an edit moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlMove {
    /// The edge as it was.
    pub old: (NodeId, NodeId),
    /// The edge as it is.
    pub new: (NodeId, NodeId),
}

/// What a new copy looks like.
#[derive(Clone, Debug)]
pub struct Template<'a> {
    /// Its name, made unique.
    pub name: &'a str,
    /// Its type.
    pub ty: &'a str,
    /// Attributes to set.
    pub attrs: &'a [(&'a str, Attr)],
}

impl Graph {
    /// Adds a node at the end. A name that is taken gets `_1`, `_2`, ….
    pub fn add(&mut self, mut node: Node) -> NodeId {
        node.name = self.unique(&node.name);
        self.add_as_is(node)
    }

    /// Adds a node under a name that may be taken (the reader's own check reports that).
    pub(crate) fn add_as_is(&mut self, mut node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        node.prev = self.tail;
        node.next = super::NONE;
        self.by_name.entry(node.name.clone()).or_insert(id);
        self.nodes.push(Some(Box::new(node)));
        match self.get_mut(NodeId(self.tail)) {
            Some(last) => last.next = id.0,
            None => self.head = id.0,
        }
        self.tail = id.0;
        self.live += 1;
        id
    }

    /// Makes room for that many nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        self.by_name.reserve(nodes);
    }

    /// Whether no two nodes have one name.
    pub(crate) fn names_are_unique(&self) -> bool {
        self.by_name.len() == self.len()
    }

    /// The name itself if it is free, else with the first number that is.
    pub fn unique(&mut self, name: &str) -> String {
        if !self.by_name.contains_key(name) {
            return name.to_owned();
        }
        let mut n = self.suffixes.get(name).copied().unwrap_or(0);
        loop {
            n += 1;
            let candidate = format!("{name}_{n}");
            if !self.by_name.contains_key(&candidate) {
                self.suffixes.insert(name.to_owned(), n);
                return candidate;
            }
        }
    }

    fn unlink_order(&mut self, id: NodeId) {
        let Some((prev, next)) = self.get(id).map(|n| (n.prev, n.next)) else {
            return;
        };
        match self.get_mut(NodeId(prev)) {
            Some(p) => p.next = next,
            None => self.head = next,
        }
        match self.get_mut(NodeId(next)) {
            Some(n) => n.prev = prev,
            None => self.tail = prev,
        }
    }

    /// Puts `id` right before `before` in the order.
    pub fn move_before(&mut self, id: NodeId, before: NodeId) {
        if id == before {
            return;
        }
        self.unlink_order(id);
        let prev = self.get(before).map_or(super::NONE, |n| n.prev);
        self.link_order(id, prev, before.0);
    }

    /// Puts `id` right after `after` in the order.
    pub fn move_after(&mut self, id: NodeId, after: NodeId) {
        if id == after {
            return;
        }
        self.unlink_order(id);
        let next = self.get(after).map_or(super::NONE, |n| n.next);
        self.link_order(id, after.0, next);
    }

    /// Puts `id` first.
    pub fn move_first(&mut self, id: NodeId) {
        if self.head != id.0 {
            self.move_before(id, NodeId(self.head));
        }
    }

    fn link_order(&mut self, id: NodeId, prev: u32, next: u32) {
        if let Some(n) = self.get_mut(id) {
            n.prev = prev;
            n.next = next;
        }
        match self.get_mut(NodeId(prev)) {
            Some(p) => p.next = id.0,
            None => self.head = id.0,
        }
        match self.get_mut(NodeId(next)) {
            Some(n) => n.prev = id.0,
            None => self.tail = id.0,
        }
    }

    /// Replaces the order; `order` holds every live node once.
    pub(crate) fn set_order(&mut self, order: &[NodeId]) {
        self.head = order.first().map_or(super::NONE, |n| n.0);
        self.tail = order.last().map_or(super::NONE, |n| n.0);
        for (i, id) in order.iter().enumerate() {
            let prev = if i == 0 { super::NONE } else { order[i - 1].0 };
            let next = order.get(i + 1).map_or(super::NONE, |n| n.0);
            if let Some(n) = self.get_mut(*id) {
                n.prev = prev;
                n.next = next;
            }
        }
    }

    /// Connects an output to an input that has no producer.
    pub fn connect(&mut self, from: OutRef, to: InRef) {
        if let Some(i) = self
            .get_mut(to.node)
            .and_then(|n| n.inputs.get_mut(to.index as usize))
        {
            i.from = Some(from);
        }
        if let Some(o) = self
            .get_mut(from.node)
            .and_then(|n| n.outputs.get_mut(from.index as usize))
        {
            o.to.push(to);
        }
    }

    /// Gives an input another producer; among `from`'s consumers it comes last.
    pub fn reconnect(&mut self, from: OutRef, to: InRef) {
        self.disconnect(to);
        self.connect(from, to);
    }

    /// Takes an input's producer away.
    pub fn disconnect(&mut self, to: InRef) {
        let Some(i) = self
            .get_mut(to.node)
            .and_then(|n| n.inputs.get_mut(to.index as usize))
        else {
            return;
        };
        let Some(from) = i.from.take() else { return };
        if let Some(o) = self
            .get_mut(from.node)
            .and_then(|n| n.outputs.get_mut(from.index as usize))
        {
            o.to.retain(|c| *c != to);
        }
    }

    /// Adds a control edge unless it is there; says whether it was added.
    pub fn add_control(&mut self, from: NodeId, to: NodeId) -> bool {
        let (a, b) = (
            self.node(from).control_out.len(),
            self.node(to).control_in.len(),
        );
        let there = if a < b {
            self.node(from).control_out.contains(&to)
        } else {
            self.node(to).control_in.contains(&from)
        };
        if there || from == to || self.get(from).is_none() || self.get(to).is_none() {
            return false;
        }
        if let Some(n) = self.get_mut(from) {
            n.control_out.push(to);
        }
        if let Some(n) = self.get_mut(to) {
            n.control_in.push(from);
        }
        true
    }

    /// Removes a control edge.
    pub fn remove_control(&mut self, from: NodeId, to: NodeId) {
        if let Some(n) = self.get_mut(from) {
            n.control_out.retain(|c| *c != to);
        }
        if let Some(n) = self.get_mut(to) {
            n.control_in.retain(|c| *c != from);
        }
    }

    /// Removes a node with all its edges.
    pub fn remove(&mut self, id: NodeId) {
        let Some(node) = self.get(id) else { return };
        let (inputs, outputs) = (node.inputs.len(), node.outputs.len());
        let controls = (node.control_in.clone(), node.control_out.clone());
        for i in 0..inputs {
            self.disconnect(InRef {
                node: id,
                index: i as u32,
            });
        }
        for o in 0..outputs {
            for c in self
                .consumers(OutRef {
                    node: id,
                    index: o as u32,
                })
                .to_vec()
            {
                self.disconnect(c);
            }
        }
        for c in controls.0 {
            self.remove_control(c, id);
        }
        for c in controls.1 {
            self.remove_control(id, c);
        }
        self.unlink_order(id);
        let name = std::mem::take(&mut self.nodes[id.0 as usize]).map(|n| n.name);
        if let Some(name) = name
            && self.by_name.get(&name) == Some(&id)
        {
            self.by_name.remove(&name);
        }
        self.live -= 1;
    }

    /// Puts one copy before inputs of one node (as many inputs and outputs as there are `inputs`).
    pub fn insert_before(
        &mut self,
        inputs: &[InRef],
        template: &Template<'_>,
    ) -> Option<(NodeId, Vec<ControlMove>)> {
        let dst = inputs.first()?.node;
        let pairs: Vec<(OutRef, InRef)> = inputs
            .iter()
            .filter_map(|i| Some((self.producer(*i)?, *i)))
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let mut node = self.copy_node(template, &pairs.iter().map(|p| p.0).collect::<Vec<_>>());
        if let Some(l) = self.node(dst).attrs.get(names::BATCH_LABEL) {
            node.attrs.set(names::BATCH_LABEL, l.clone());
        }
        let id = self.add(node);
        self.move_before(id, dst);
        for (k, (from, to)) in pairs.iter().enumerate() {
            let k = k as u32;
            // The new edge takes the old one's place among the consumers: their order decides what passes do next.
            if let Some(o) = self
                .get_mut(from.node)
                .and_then(|n| n.outputs.get_mut(from.index as usize))
            {
                for c in o.to.iter_mut().filter(|c| *c == to) {
                    *c = InRef { node: id, index: k };
                }
            }
            if let Some(n) = self.get_mut(id) {
                n.inputs[k as usize].from = Some(*from);
            }
            if let Some(i) = self
                .get_mut(to.node)
                .and_then(|n| n.inputs.get_mut(to.index as usize))
            {
                i.from = None;
            }
            self.connect(OutRef { node: id, index: k }, *to);
        }
        let mut moves = Vec::new();
        for from in self.node(dst).control_in.clone() {
            if !self.node(from).kind.is_clean() {
                self.remove_control(from, dst);
                self.add_control(from, id);
                moves.push(ControlMove {
                    old: (from, dst),
                    new: (from, id),
                });
            }
        }
        Some((id, moves))
    }

    /// Puts one copy after outputs (one input and output for each), in front of all their consumers.
    pub fn insert_after(
        &mut self,
        outputs: &[OutRef],
        template: &Template<'_>,
    ) -> Option<(NodeId, Vec<ControlMove>)> {
        let outputs: Vec<OutRef> = outputs
            .iter()
            .copied()
            .filter(|o| !self.consumers(*o).is_empty())
            .collect();
        let last = *outputs.last()?;
        let mut node = self.copy_node(template, &outputs);
        if let Some(l) = self.node(last.node).attrs.get(names::BATCH_LABEL) {
            node.attrs.set(names::BATCH_LABEL, l.clone());
        }
        let id = self.add(node);
        self.move_after(id, last.node);
        for (k, from) in outputs.iter().enumerate() {
            let k = k as u32;
            for c in self.consumers(*from).to_vec() {
                self.reconnect(OutRef { node: id, index: k }, c);
            }
            self.connect(*from, InRef { node: id, index: k });
        }
        let mut moves = Vec::new();
        let mut seen = FxHashSet::default();
        for from in outputs.iter().map(|o| o.node).filter(|n| seen.insert(*n)) {
            if self.node(from).kind.keeps_control() {
                continue;
            }
            for to in self.node(from).control_out.clone() {
                if to == id {
                    continue;
                }
                self.remove_control(from, to);
                self.add_control(id, to);
                moves.push(ControlMove {
                    old: (from, to),
                    new: (id, to),
                });
            }
        }
        Some((id, moves))
    }

    /// A copy of these outputs, not yet connected: same tensors, ordinary memory, no reuse.
    pub(crate) fn copy_node(&self, template: &Template<'_>, of: &[OutRef]) -> Node {
        let mut node = Node::new(template.name, template.ty);
        node.stream = of.first().map_or(0, |o| self.node(o.node).stream);
        for (name, value) in template.attrs {
            node.attrs.set(name, value.clone());
        }
        for o in of {
            let desc = self
                .get(o.node)
                .and_then(|n| n.outputs.get(o.index as usize))
                .map(|x| plain(&x.desc));
            let desc = desc.unwrap_or_default();
            node.inputs.push(Input {
                name: String::new(),
                from: None,
                desc: desc.clone(),
                extra: Vec::new(),
            });
            node.outputs.push(Output {
                desc,
                ..Output::default()
            });
        }
        node
    }
}

/// A tensor's type and shape without anything that ties it to memory.
fn plain(desc: &Desc) -> Desc {
    Desc {
        dtype: desc.dtype.clone(),
        shape: desc.shape.clone(),
        size: desc.size,
        ..Desc::default()
    }
}
