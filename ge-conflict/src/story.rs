//! Who uses the memory that a conflict is about: the lines under a conflict in the text output.
//!
//! Worked out from the graph alone, by walking from one output to everything that is the same memory: through operators that
//! work in place, views, and into and out of subgraphs. The walk is bounded, because it is made for every insertion; what it
//! does not reach is only missing from a message.

use crate::cause;
use crate::ir::{Graph, GraphId, InRef, Kind, Module, Node, NodeId, OutRef};
use crate::layout::symbols::alias_input;
use crate::report::{Order, Reason, Story};
use crate::text::{and, quoted};
use rustc_hash::FxHashSet;

/// Outputs that one walk looks at.
const MAX_OUTPUTS: usize = 64;
/// Consumers of one output that a walk looks at.
const MAX_CONSUMERS: usize = 64;
/// Users that a message names.
const SHOWN: usize = 5;
/// Nodes that a search for a path visits.
const MAX_VISITED: usize = 4096;

/// What an operator does to memory that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reads,
    Updates,
    Overwrites,
    Loops,
    Returns,
    Shape,
    HandsOn,
}

impl Use {
    fn writes(self) -> bool {
        matches!(self, Use::Updates | Use::Overwrites | Use::Loops)
    }
}

/// An operator that uses the memory.
#[derive(Clone, Debug)]
struct User {
    graph: GraphId,
    at: InRef,
    what: Use,
    /// The output of this memory that it is given.
    via: (GraphId, OutRef),
    /// The operator of the graph in question by which it got the memory: itself, or the call that it is in.
    here: Option<NodeId>,
}

struct Users {
    /// The output that owns the memory.
    owner: (GraphId, OutRef),
    /// Others that do: several ways through a branch give one result.
    others: Vec<(GraphId, OutRef)>,
    all: Vec<User>,
    /// If a loop keeps its state there: the loop, and which of its inputs the state is.
    states: Vec<State>,
}

/// A loop and one of its inputs.
type State = (GraphId, NodeId, u32);

/// The story of memory `out`; `focus` is the input that is to be kept apart, or whose operator writes.
pub fn tell(
    module: &Module,
    g: GraphId,
    out: OutRef,
    focus: Option<InRef>,
    reason: &Reason,
) -> Story {
    let users = around(module, g, out, true);
    let teller = Teller {
        module,
        g,
        owner: users.owner,
        in_loop: !users.states.is_empty(),
    };
    let (mut belongs, mut writes) = (Vec::new(), Vec::new());
    for s in &users.states {
        belongs.push(teller.state(*s));
    }
    for o in std::iter::once(&users.owner).chain(&users.others) {
        match teller.owner(*o) {
            Owner::Belongs(text) => belongs.push(text),
            Owner::Makes(text) => writes.push(text),
            Owner::Loop => {}
        }
    }
    let mut reads = Vec::new();
    let (mut more_writes, mut more_reads) = (0, 0);
    for u in &users.all {
        let (list, more) = if u.what.writes() {
            (&mut writes, &mut more_writes)
        } else {
            (&mut reads, &mut more_reads)
        };
        if list.len() > SHOWN {
            *more += 1;
        } else {
            list.push(teller.user(u));
        }
    }
    for (list, more) in [(&mut writes, more_writes), (&mut reads, more_reads)] {
        if more > 0 {
            list.push(format!("and {more} more"));
        }
    }
    let order = match &reason.order {
        Order::Words(w) => w.clone(),
        Order::Edges => teller.order(&users, focus),
    };
    let name = module.out_name(users.owner.0, users.owner.1);
    let owner = format!("{name} in {}", module.graph(users.owner.0).name);
    let memory = if !users.states.is_empty() {
        teller.state_memory(&users.states)
    } else if users.owner == (g, out) {
        name
    } else {
        format!(
            "{name}{}; {} is the same memory, because the operators in between work in place or only hand it on",
            teller.in_graph(users.owner.0),
            module.out_name(g, out)
        )
    };
    Story {
        memory,
        belongs,
        writes,
        reads,
        order,
        repair: reason.repair.clone(),
        meaning: reason.meaning,
        notes: reason.notes.clone(),
        owner,
    }
}

/// The name of the memory that an output is part of: the output that owns it.
pub fn memory_name(module: &Module, g: GraphId, out: OutRef) -> String {
    let users = users(module, g, out);
    let teller = Teller {
        module,
        g,
        owner: users.owner,
        in_loop: !users.states.is_empty(),
    };
    if users.states.is_empty() {
        let name = module.out_name(users.owner.0, users.owner.1);
        name + &teller.in_graph(users.owner.0)
    } else {
        teller.state_name(&users.states)
    }
}

/// Somebody who still needs what is in a memory when an operator overwrites it.
pub(crate) struct Victim {
    /// The operator's name, quoted.
    pub name: String,
    /// Edges make it run later; else no edge says which runs first.
    pub later: bool,
}

/// Who needs what `me` overwrites: users of the memory that no edge makes run before it.
pub(crate) fn victims(module: &Module, g: GraphId, out: OutRef, me: InRef) -> Vec<Victim> {
    let graph = module.graph(g);
    let mut list: Vec<Victim> = Vec::new();
    let mut seen = FxHashSet::default();
    for u in &users(module, g, out).all {
        if matches!(u.what, Use::Shape | Use::HandsOn) || !seen.insert((u.graph, u.at.node)) {
            continue;
        }
        let here = u.here.filter(|o| graph.get(*o).is_some());
        if here == Some(me.node) || seen.len() > 4 * SHOWN {
            continue;
        }
        let order = here.and_then(|o| relation(graph, me.node, o));
        if order != Some(false) && list.len() < SHOWN {
            list.push(Victim {
                name: quoted(&module.graph(u.graph).node(u.at.node).name),
                later: order == Some(true),
            });
        }
    }
    list
}

/// Operators in graphs inside `me` that read the memory.
pub(crate) fn readers_inside(module: &Module, g: GraphId, out: OutRef, me: NodeId) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for u in &users(module, g, out).all {
        if u.graph == g || u.here != Some(me) || u.what != Use::Reads || names.len() >= SHOWN {
            continue;
        }
        let name = &module.graph(u.graph).node(u.at.node).name;
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// A story without a walk: for what is not about one output's memory.
pub fn plain(memory: String, writes: Vec<String>, reason: &Reason) -> Story {
    let order = match &reason.order {
        Order::Words(w) => w.clone(),
        Order::Edges => String::new(),
    };
    Story {
        owner: memory.clone(),
        memory,
        belongs: Vec::new(),
        writes,
        reads: Vec::new(),
        order,
        repair: reason.repair.clone(),
        meaning: reason.meaning,
        notes: reason.notes.clone(),
    }
}

fn users(module: &Module, g: GraphId, out: OutRef) -> Users {
    around(module, g, out, false)
}

/// `outside`: with those who use a loop's memory before and after the loop runs.
fn around(module: &Module, g: GraphId, out: OutRef, outside: bool) -> Users {
    let mut walk = Walk {
        module,
        g,
        outside,
        todo: vec![(g, out, None, true)],
        seen: [(g, out)].into_iter().collect(),
        all: Vec::new(),
        states: Vec::new(),
    };
    let mut owners = Vec::new();
    let mut next = 0;
    while next < walk.todo.len() && next < MAX_OUTPUTS {
        let (g, out, here, up) = walk.todo[next];
        next += 1;
        if up && !walk.up(g, out, here) {
            owners.push((g, out));
        }
        walk.down(g, out, here);
    }
    walk.states.sort_unstable();
    if outside {
        // Of the loop itself all is said by its states.
        let states = &walk.states;
        walk.all.retain(|u| {
            u.what != Use::Loops || !states.contains(&(u.graph, u.at.node, u.at.index))
        });
    }
    let owner = owners.first().copied().unwrap_or((g, out));
    Users {
        owner,
        others: owners.into_iter().skip(1).take(SHOWN).collect(),
        all: walk.all,
        states: walk.states,
    }
}

/// An output, the operator of the graph in question by which it was reached, and whether its owner is still to be found.
type Place = (GraphId, OutRef, Option<NodeId>, bool);

struct Walk<'a> {
    module: &'a Module,
    g: GraphId,
    outside: bool,
    todo: Vec<Place>,
    seen: FxHashSet<(GraphId, OutRef)>,
    all: Vec<User>,
    states: Vec<State>,
}

impl Walk<'_> {
    fn go(&mut self, g: GraphId, out: OutRef, here: Option<NodeId>) {
        if self.seen.insert((g, out)) {
            self.todo.push((g, out, here, true));
        }
    }

    /// To what holds a part of this memory, but is more than that.
    fn go_down(&mut self, g: GraphId, out: OutRef, here: Option<NodeId>) {
        if self.seen.insert((g, out)) {
            self.todo.push((g, out, here, false));
        }
    }

    /// A loop's condition and all rounds of its body work in the memory of the loop's state.
    fn state(&mut self, (g, id, index): State) {
        if self.states.contains(&(g, id, index)) || self.states.len() >= SHOWN {
            return;
        }
        self.states.push((g, id, index));
        let module = self.module;
        if self.outside {
            self.go_down(g, OutRef { node: id, index }, None);
            if let Some(from) = module.graph(g).producer(InRef { node: id, index }) {
                self.go(g, from, None);
            }
        }
        let subgraphs = &module.graph(g).node(id).subgraphs;
        for (place, s) in subgraphs.iter().enumerate() {
            let Some(s) = *s else { continue };
            let inner = module
                .graph(s)
                .iter()
                .find(|(_, n)| n.kind.is_data() && n.parent_index() == Some(i64::from(index)));
            if let Some((node, _)) = inner {
                self.go(s, OutRef { node, index: 0 }, None);
            }
            if place > 0
                && let Some(from) = crate::rw::result(module, s, index)
            {
                self.go(s, from, None);
            }
        }
    }

    /// To the output whose memory this one is; false if it owns its memory.
    fn up(&mut self, g: GraphId, out: OutRef, here: Option<NodeId>) -> bool {
        let graph = self.module.graph(g);
        let node = graph.node(out.node);
        if node.kind.is_data()
            && let Some((p, parent)) = self.module.parent_node(g)
        {
            let index = node.parent_index().and_then(|i| usize::try_from(i).ok());
            let from = index.and_then(|i| parent.inputs.get(i)?.from);
            // A loop's rounds work in the loop's own memory.
            if parent.kind == Kind::While {
                if let Some(index) = index.and_then(|i| u32::try_from(i).ok()) {
                    self.state((p.graph, p.node, index));
                }
                return false;
            }
            if let Some(from) = from {
                self.go(p.graph, from, self.outer(p.graph, p.node, here));
                return true;
            }
            return false;
        }
        if !node.subgraphs.is_empty() && node.kind != Kind::While {
            let mut found = false;
            for s in node.subgraphs.iter().flatten() {
                if let Some(from) = crate::rw::result(self.module, *s, out.index) {
                    let here = if g == self.g { Some(out.node) } else { here };
                    self.go(*s, from, here);
                    found = true;
                }
            }
            return found;
        }
        let input = passed(node, out.index as usize);
        let from = input.and_then(|i| node.inputs.get(i)?.from);
        if let Some(from) = from {
            self.go(g, from, here);
        }
        from.is_some()
    }

    fn outer(&self, g: GraphId, node: NodeId, here: Option<NodeId>) -> Option<NodeId> {
        if g == self.g { Some(node) } else { here }
    }

    fn down(&mut self, g: GraphId, out: OutRef, here: Option<NodeId>) {
        let module = self.module;
        let graph = module.graph(g);
        for c in graph.consumers(out).iter().take(MAX_CONSUMERS) {
            let node = graph.node(c.node);
            let here = if g == self.g { Some(c.node) } else { here };
            let add = |what| User {
                graph: g,
                at: *c,
                what,
                via: (g, out),
                here,
            };
            if node.kind == Kind::While {
                self.all.push(add(Use::Loops));
                continue;
            }
            if !node.subgraphs.is_empty() {
                for s in node.subgraphs.iter().flatten() {
                    let inner = module.graph(*s).iter().find(|(_, n)| {
                        n.kind.is_data() && n.parent_index() == Some(i64::from(c.index))
                    });
                    if let Some((node, _)) = inner {
                        self.go(*s, OutRef { node, index: 0 }, here);
                    }
                }
                continue;
            }
            if node.kind == Kind::NetOutput
                && let Some(p) = graph.parent
            {
                let index = node.parent_output(c.index as usize);
                if let Ok(index) = u32::try_from(index)
                    && module.graph(p.graph).node(p.node).kind != Kind::While
                {
                    let node = p.node;
                    let here = self.outer(p.graph, node, here);
                    self.go(p.graph, OutRef { node, index }, here);
                } else {
                    self.all.push(add(Use::Returns));
                    // The second subgraph of a loop is its body.
                    if p.index > 0
                        && let Ok(index) = u32::try_from(index)
                    {
                        self.state((p.graph, p.node, index));
                    }
                }
                continue;
            }
            let mut hands_on = false;
            for o in 0..node.outputs.len() {
                let own = passed(node, o) == Some(c.index as usize);
                // A concatenation that moves nothing holds the bytes of all its inputs.
                let part = !own && joins_all(node);
                if own || part {
                    hands_on = true;
                    let index = o as u32;
                    let node = c.node;
                    self.go_down(g, OutRef { node, index }, here);
                }
            }
            let what = use_of(node, c.index as usize);
            // A view does nothing itself: who reads the view does.
            let view = what == Use::Reads && hands_on;
            self.all.push(add(if view { Use::HandsOn } else { what }));
        }
    }
}

/// Whether its output is all its inputs, one after the other, without a copy.
fn joins_all(node: &Node) -> bool {
    use crate::ir::names;
    node.attrs.flag(names::NPCI) && node.outputs.len() == 1 && alias_input(node, 0) == Some(0)
}

/// The input whose memory an output is.
fn passed(node: &Node, out: usize) -> Option<usize> {
    node.ref_input_of(out).or_else(|| alias_input(node, out))
}

fn use_of(node: &Node, index: usize) -> Use {
    match node.kind {
        Kind::NetOutput => return Use::Returns,
        Kind::Shape | Kind::Rank => return Use::Shape,
        _ => {}
    }
    if crate::rw::overwrites(node, index) {
        Use::Overwrites
    } else if node.ref_output_of(index).is_some() || (node.kind == Kind::RefSwitch && index == 0) {
        Use::Updates
    } else {
        Use::Reads
    }
}

struct Teller<'a> {
    module: &'a Module,
    g: GraphId,
    owner: (GraphId, OutRef),
    in_loop: bool,
}

/// What there is to say of an output that owns the memory.
enum Owner {
    /// The memory is there for it: a variable, a constant, the caller's.
    Belongs(String),
    /// Its operator makes it.
    Makes(String),
    /// A loop's state, of which all is said already.
    Loop,
}

impl Teller<'_> {
    /// `` `relu` (Relu)``, or `` `relu` (Relu in graph then, inside `if0`)``.
    fn operator(&self, g: GraphId, id: NodeId) -> String {
        let node = self.module.graph(g).node(id);
        if g == self.g {
            return format!("`{}` ({})", node.name, node.ty);
        }
        let graph = &self.module.graph(g).name;
        match self.module.parent_node(g) {
            Some((_, p)) => format!(
                "`{}` ({} in graph {graph}, inside `{}`)",
                node.name, node.ty, p.name
            ),
            None => format!("`{}` ({} in graph {graph})", node.name, node.ty),
        }
    }

    /// ` (graph then)` for another graph than the one at hand.
    fn in_graph(&self, g: GraphId) -> String {
        if g == self.g {
            String::new()
        } else {
            format!(" (graph {})", self.module.graph(g).name)
        }
    }

    /// ``state 0 of the loop `w` ``
    fn state_name(&self, states: &[State]) -> String {
        let names: Vec<String> = states
            .iter()
            .map(|(g, id, k)| {
                let name = &self.module.graph(*g).node(*id).name;
                format!("state {k} of the loop `{name}`")
            })
            .collect();
        and(&names)
    }

    /// The same with all that is this memory.
    fn state_memory(&self, states: &[State]) -> String {
        let module = self.module;
        let mut parts = Vec::new();
        for (g, id, k) in states {
            let node = module.graph(*g).node(*id);
            let name = &node.name;
            parts.push(format!(
                "{name}.in.{k} and {name}.out.{k} in graph {}",
                module.graph(*g).name
            ));
            for s in node.subgraphs.iter().flatten() {
                let graph = module.graph(*s);
                let inner = graph
                    .iter()
                    .find(|(_, n)| n.kind.is_data() && n.parent_index() == Some(i64::from(*k)));
                if let Some((_, d)) = inner {
                    parts.push(format!("{}.out.0 in graph {}", d.name, graph.name));
                }
            }
        }
        let kind = if states.len() > 1 {
            "one piece of memory as the file stands, because the body hands the one on as the other (with the copies they are apart)"
        } else {
            "one piece of memory for all rounds"
        };
        format!("{}, {kind}: {}", self.state_name(states), and(&parts))
    }

    fn state(&self, (g, id, k): State) -> String {
        format!(
            "{}, a loop that keeps its state {k} there; the end of each round overwrites it with the next round's",
            self.operator(g, id)
        )
    }

    fn owner(&self, (g, out): (GraphId, OutRef)) -> Owner {
        let node = self.module.graph(g).node(out.node);
        let who = self.operator(g, out.node);
        let root = self.module.graph(g).parent.is_none();
        let k = out.index;
        Owner::Belongs(match node.kind {
            Kind::RefData if root => format!(
                "{who}: memory of the caller, who fills it before the run and finds changes in it afterwards"
            ),
            kind if kind.is_data() && root => {
                format!("{who}: memory of the caller, who fills it before the run")
            }
            kind if kind.is_data() => match self.loop_around(g) {
                Some(_) => return Owner::Loop,
                None => format!("{who}: what the graph around hands in"),
            },
            kind if kind.is_const() => format!("{who}: a constant, written once before all runs"),
            Kind::Variable => format!("{who}: a variable, which keeps its value between runs"),
            Kind::While => format!("{who}: the loop's result {k}"),
            _ if self.in_loop && self.starts_loop(g, out) => {
                return Owner::Makes(format!(
                    "{who} makes the state of the first round, as its output {k}"
                ));
            }
            _ if self.in_loop => {
                return Owner::Makes(format!(
                    "{who} makes the next round's state, as its output {k}"
                ));
            }
            _ => return Owner::Makes(format!("{who} makes it, as its output {k}")),
        })
    }

    /// Whether a loop is given this output: its state before the first round.
    fn starts_loop(&self, g: GraphId, out: OutRef) -> bool {
        let graph = self.module.graph(g);
        let mut consumers = graph.consumers(out).iter().take(MAX_CONSUMERS);
        consumers.any(|c| graph.node(c.node).kind == Kind::While)
    }

    /// The loop whose subgraph this is.
    fn loop_around(&self, g: GraphId) -> Option<&str> {
        let (_, parent) = self.module.parent_node(g)?;
        (parent.kind == Kind::While).then_some(parent.name.as_str())
    }

    fn user(&self, u: &User) -> String {
        let who = self.operator(u.graph, u.at.node);
        let k = u.at.index;
        let node = self.module.graph(u.graph).node(u.at.node);
        let via = if u.via == self.owner
            || self.module.graph(u.via.0).node(u.via.1.node).kind.is_data()
            || self.in_loop
        {
            String::new()
        } else {
            let maker = self.module.graph(u.via.0).node(u.via.1.node);
            format!(
                " (as {}, {})",
                self.module.out_name(u.via.0, u.via.1),
                if joins_all(maker) {
                    "of which it is a part"
                } else {
                    "which is the same memory"
                }
            )
        };
        match u.what {
            Use::Reads => format!("{who} reads it, as its input {k}{via}"),
            Use::Updates => format!(
                "{who} updates it in place, through its input {k}{via}: {}",
                cause::updates(node, k as usize)
            ),
            Use::Overwrites => format!(
                "{who} overwrites it as scratch space, through its input {k}{via}: {}",
                cause::overwrites(node, k as usize)
            ),
            Use::Loops => format!(
                "{who} keeps its state there (input {k}){via} and rewrites it in every round"
            ),
            Use::Returns => match self.loop_around(u.graph) {
                Some(name) => {
                    format!("{who} hands it out, as result {k}{via}, to the loop `{name}`")
                }
                None => format!("{who} hands it out, as result {k}{via}"),
            },
            Use::HandsOn => format!(
                "{who} takes it in as its input {k}{via} and hands the same memory on as its output"
            ),
            Use::Shape => format!("{who} reads only its shape, as its input {k}{via}"),
        }
    }

    /// What edges say of the operator in focus and the others.
    fn order(&self, users: &Users, focus: Option<InRef>) -> String {
        let graph = self.module.graph(self.g);
        let Some(focus) = focus else {
            return String::new();
        };
        let me = quoted(&graph.node(focus.node).name);
        let (mut after, mut before, mut loose, mut outside) = (vec![], vec![], vec![], vec![]);
        let mut seen = FxHashSet::default();
        for u in &users.all {
            if matches!(u.what, Use::Shape | Use::HandsOn) {
                continue;
            }
            let Some(other) = u.here.filter(|o| graph.get(*o).is_some()) else {
                if seen.insert((u.graph, u.at.node)) {
                    outside.push(quoted(&self.module.graph(u.graph).node(u.at.node).name));
                }
                continue;
            };
            if other == focus.node || !seen.insert((self.g, other)) || seen.len() > SHOWN {
                continue;
            }
            let name = quoted(&graph.node(other).name);
            match relation(graph, focus.node, other) {
                Some(true) => after.push(name),
                Some(false) => before.push(name),
                None => loose.push(name),
            }
        }
        let mut said = Vec::new();
        if !loose.is_empty() {
            let them = match loose.as_slice() {
                [one] => one.clone(),
                more => format!("any of {}", and(more)),
            };
            said.push(format!(
                "not guaranteed between {me} and {them}: no chain of data or control edges leads from one to the other, so either \
                 may run first"
            ));
        }
        if !after.is_empty() {
            said.push(format!("edges make {} run after {me}", and(&after)));
        }
        if !before.is_empty() {
            said.push(format!("edges make {} run before {me}", and(&before)));
        }
        if !outside.is_empty() {
            let more = outside.len().saturating_sub(2);
            outside.truncate(2);
            if more > 0 {
                outside.push(format!("{more} more"));
            }
            said.push(format!(
                "{} use{} the memory outside of graph {}, whose edges say nothing of their order",
                and(&outside),
                if outside.len() == 1 { "s" } else { "" },
                graph.name
            ));
        }
        let owner = self.module.graph(users.owner.0).node(users.owner.1.node);
        if owner.kind.is_const() {
            let helps = format!(
                "no order of the operators helps, because the next run needs the constant, too; {me} would leave it overwritten"
            );
            said.insert(0, helps);
        }
        if said.is_empty() {
            return format!("nobody else in this graph uses the memory, but it is not {me}'s own");
        }
        said.join("; ")
    }
}

/// Some(true): edges make `other` run after `me`; Some(false): before; None: neither (or too far to find out).
fn relation(graph: &Graph, me: NodeId, other: NodeId) -> Option<bool> {
    if leads(graph, me, other) {
        Some(true)
    } else if leads(graph, other, me) {
        Some(false)
    } else {
        None
    }
}

/// Whether edges make one operator run before another (or that takes too long to find out for a message: then no).
pub(crate) fn runs_before(graph: &Graph, first: NodeId, then: NodeId) -> bool {
    leads(graph, first, then)
}

fn leads(graph: &Graph, from: NodeId, to: NodeId) -> bool {
    let last = graph.node(to).id;
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut todo = vec![from];
    while let Some(n) = todo.pop() {
        for s in graph.successors(n) {
            if s == to {
                return true;
            }
            // What comes after the goal in the order can't lead to it.
            let id = graph.node(s).id;
            if (id.is_none() || last.is_none() || id < last) && seen.insert(s) {
                todo.push(s);
            }
        }
        if seen.len() > MAX_VISITED {
            return false;
        }
    }
    false
}
