//! What passes did and found, in the form of the JSON result.

use serde::Serialize;
use serde_json::Value;

/// The classes of conflict, each with its hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConflictKind {
    /// One output is read by one operator and written by another.
    ReadWrite,
    /// Anchors that share memory have attributes that can't be met together.
    Layout,
    /// A subgraph and its surroundings share an address that they must not share.
    SubgraphIsolation,
    /// A collective writes its input.
    HcclWrite,
    /// An atomic operator adds to memory that nobody cleared.
    Atomic,
    /// Branches map one output to different inputs.
    BranchMapping,
    /// A stream takes memory back that another one still uses.
    StreamLifecycle,
}

impl ConflictKind {
    /// What it is, for readers who don't know the names.
    pub fn words(self) -> &'static str {
        match self {
            ConflictKind::ReadWrite => "an operator overwrites memory that others use, too",
            ConflictKind::Layout => {
                "operators share a piece of memory that can't be as all of them need it"
            }
            ConflictKind::SubgraphIsolation => {
                "two sides use one piece of memory, but each needs its own"
            }
            ConflictKind::HcclWrite => {
                "a collective operator overwrites an input that is not its own memory"
            }
            ConflictKind::Atomic => "an operator adds to memory that nobody has set to zero",
            ConflictKind::BranchMapping => {
                "the ways of a branch give one result from different inputs"
            }
            ConflictKind::StreamLifecycle => {
                "a stream takes memory back that another one still uses"
            }
        }
    }

    /// The hazard, for readers who don't know the names.
    pub fn danger(self) -> &'static str {
        match self {
            ConflictKind::ReadWrite | ConflictKind::HcclWrite => {
                "wrong numbers, without any error message"
            }
            ConflictKind::Layout => {
                "the program stops with an error when it runs, or uses a wrong address"
            }
            ConflictKind::SubgraphIsolation => "values are overwritten while they are still needed",
            ConflictKind::Atomic => "wrong sums: those of earlier runs are still in them",
            ConflictKind::BranchMapping => "a result is read at a wrong address",
            ConflictKind::StreamLifecycle => "memory is handed out again while it is still in use",
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            ConflictKind::ReadWrite => "Semantic read write conflict",
            ConflictKind::Layout => "Memory layout conflict",
            ConflictKind::SubgraphIsolation => "Subgraph address isolation conflict",
            ConflictKind::HcclWrite => "HCCL local write conflict",
            ConflictKind::Atomic => "Atomic operation conflict",
            ConflictKind::BranchMapping => "Conditional branch input-output mapping conflict",
            ConflictKind::StreamLifecycle => "Multi-stream memory lifecycle conflict",
        }
    }

    /// What happens if nothing is done.
    pub fn hazard(self) -> &'static str {
        match self {
            ConflictKind::ReadWrite | ConflictKind::HcclWrite => "High (accuracy error)",
            ConflictKind::Layout => "High (runtime exception)",
            ConflictKind::SubgraphIsolation => "High (data overwrite)",
            ConflictKind::Atomic => "High (accumulation error)",
            ConflictKind::BranchMapping => "High (address error)",
            ConflictKind::StreamLifecycle => "High (data corruption)",
        }
    }
}

/// Why something was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The class of conflict.
    pub kind: ConflictKind,
    /// The rule that asked for it.
    pub rule: String,
    /// The two anchors in conflict.
    pub between: (String, String),
    /// In words.
    pub why: String,
    /// What the order of execution has to do with it.
    pub order: Order,
    /// Why what was done helps; empty: what a copy does is clear enough.
    pub repair: String,
    /// The rule in words, if it has a name only.
    pub meaning: &'static str,
    /// What the conflict is, where it can be said better than by its class; empty: as the class says.
    pub title: &'static str,
    /// The graphs of the two anchors, where one is not in the graph at hand.
    pub graphs: [String; 2],
    /// What else helps to understand it, a sentence each.
    pub notes: Vec<String>,
    /// It is only needed because of what was put in right before it.
    pub follows: bool,
    /// Nobody was found whom it would disturb: the rule asks for it all the same.
    pub precaution: bool,
    /// Who uses the memory, if that was worked out before anything was changed.
    pub told: Option<Box<Story>>,
}

/// What the order of execution has to do with a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The edges between the two sides tell.
    Edges,
    /// In words.
    Words(String),
}

impl Reason {
    /// A reason whose order of execution the edges tell.
    pub fn new(
        kind: ConflictKind,
        rule: impl Into<String>,
        between: (String, String),
        why: impl Into<String>,
    ) -> Reason {
        Reason {
            kind,
            rule: rule.into(),
            between,
            why: why.into(),
            order: Order::Edges,
            repair: String::new(),
            meaning: "",
            title: "",
            graphs: Default::default(),
            notes: Vec::new(),
            follows: false,
            precaution: false,
            told: None,
        }
    }

    /// Says what the conflict is, better than its class does.
    #[must_use]
    pub fn title(mut self, words: &'static str) -> Reason {
        self.title = words;
        self
    }

    /// Says in which graphs the two anchors are.
    #[must_use]
    pub fn graphs(mut self, first: &str, second: &str) -> Reason {
        self.graphs = [first.to_owned(), second.to_owned()];
        self
    }

    /// Adds a sentence that helps to understand it.
    #[must_use]
    pub fn note(mut self, words: impl Into<String>) -> Reason {
        self.notes.push(words.into());
        self
    }

    /// Says that it is the second part of the repair before it.
    #[must_use]
    pub fn follows(mut self) -> Reason {
        self.follows = true;
        self
    }

    /// Says that nobody was found whom it would disturb; the title says the same.
    #[must_use]
    pub fn precaution(mut self, title: &'static str) -> Reason {
        self.precaution = true;
        self.title = title;
        self
    }

    /// Brings the story along, worked out before anything was changed.
    #[must_use]
    pub fn told(mut self, story: Story) -> Reason {
        self.told = Some(Box::new(story));
        self
    }

    /// Says what the order has to do with it.
    #[must_use]
    pub fn order(mut self, words: impl Into<String>) -> Reason {
        self.order = Order::Words(words.into());
        self
    }

    /// Says why the repair helps.
    #[must_use]
    pub fn repair(mut self, words: impl Into<String>) -> Reason {
        self.repair = words.into();
        self
    }

    /// Says what the rule means.
    #[must_use]
    pub fn meaning(mut self, words: &'static str) -> Reason {
        self.meaning = words;
        self
    }
}

/// Who uses the memory that a conflict is about, worked out from the graph as it was when the conflict was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Story {
    /// Which memory it is.
    pub memory: String,
    /// Whose it is, if it is not just an operator's output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub belongs: Vec<String>,
    /// Who writes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Who reads it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// What the order of execution has to do with it.
    pub order: String,
    /// Why the repair helps, or what the user should do.
    pub repair: String,
    /// The rule in words.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub meaning: &'static str,
    /// What else helps to understand it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The memory's name: the anchor that owns it, with its graph.
    #[serde(skip)]
    pub owner: String,
}

/// A conflict in the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// [`ConflictKind::name`].
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// [`ConflictKind::hazard`].
    pub hazard: &'static str,
    /// The rule.
    pub rule: String,
    /// Both anchors.
    pub anchors: [String; 2],
    /// The graphs of the anchors, where one is not in the entry's graph.
    #[serde(skip_serializing_if = "no_names")]
    pub graphs: [String; 2],
    /// What it is, for readers who don't know the names.
    pub title: &'static str,
    /// Nobody was found whom it would disturb.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub precaution: bool,
    /// The inserted operator whose repair this completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Who uses the memory; only where something was put in or warned of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<Story>,
    /// The class itself.
    #[serde(skip)]
    pub class: ConflictKind,
}

fn no_names(names: &[String; 2]) -> bool {
    names.iter().all(String::is_empty)
}

impl Conflict {
    /// With what is known of the memory.
    pub fn with(r: &Reason, story: Option<Story>) -> Conflict {
        Conflict {
            story,
            ..Conflict::from(r)
        }
    }
}

impl From<&Reason> for Conflict {
    fn from(r: &Reason) -> Conflict {
        let anchors = [r.between.0.clone(), r.between.1.clone()];
        Conflict {
            kind: r.kind.name(),
            hazard: r.kind.hazard(),
            rule: r.rule.clone(),
            anchors,
            graphs: r.graphs.clone(),
            title: if r.title.is_empty() {
                r.kind.words()
            } else {
                r.title
            },
            precaution: r.precaution,
            part_of: None,
            story: None,
            class: r.kind,
        }
    }
}

/// An input of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Before {
    /// The node.
    pub node: String,
    /// Which input.
    pub input: u32,
}

/// An output of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct After {
    /// The node.
    pub node: String,
    /// Which output.
    pub output: u32,
}

/// One as itself, several as an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One.
    One(T),
    /// Several.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// From a list; `None` for an empty one.
    pub fn from_list(mut list: Vec<T>) -> Option<OneOrMany<T>> {
        match list.len() {
            0 => None,
            1 => list.pop().map(OneOrMany::One),
            _ => Some(OneOrMany::Many(list)),
        }
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMany::One(t) => std::slice::from_ref(t),
            OneOrMany::Many(l) => l,
        }
    }
}

/// A node that a pass put in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inserted {
    /// The pass.
    pub pass: &'static str,
    /// The graph.
    pub graph: String,
    /// The new node's name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The inputs that it stands before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<OneOrMany<Before>>,
    /// The outputs that it stands after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<OneOrMany<After>>,
    /// Its attributes, which another node in its place needs as well.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub attrs: serde_json::Map<String, Value>,
    /// In words.
    pub why: String,
    /// The conflict.
    pub conflict: Conflict,
}

/// An attribute that a pass set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// The pass.
    pub pass: &'static str,
    /// The graph.
    pub graph: String,
    /// The node.
    pub node: String,
    /// Which output, if it is an output's attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u32>,
    /// The attribute.
    pub attr: String,
    /// Its value.
    pub value: Value,
    /// In words.
    pub why: String,
}

/// Something the user should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The code.
    pub code: &'static str,
    /// The pass.
    pub pass: &'static str,
    /// The graph.
    pub graph: String,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The repairs settle it.
    #[serde(skip)]
    pub settled: bool,
    /// Further pairs of the kind, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// In words.
    pub why: String,
    /// [`ConflictKind::name`].
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// [`ConflictKind::hazard`].
    pub hazard: &'static str,
    /// The conflict.
    pub conflict: Conflict,
}

/// Something that ended the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The code.
    pub code: &'static str,
    /// The pass, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<&'static str>,
    /// The graph, if one is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// The node, if one is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// In words.
    pub why: String,
}

/// A node that a pass took out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The pass.
    pub pass: &'static str,
    /// The graph.
    pub graph: String,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// In words.
    pub why: String,
    /// The conflict.
    pub conflict: Conflict,
}

/// An input that a pass gave another producer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Relinked {
    /// The pass.
    pub pass: &'static str,
    /// The graph.
    pub graph: String,
    /// The node.
    pub node: String,
    /// Which input.
    pub input: u32,
    /// The producer before, `node:output`.
    pub old: String,
    /// The producer now.
    pub new: String,
    /// In words.
    pub why: String,
    /// The conflict.
    pub conflict: Conflict,
}

/// A control edge that a pass added or moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Control {
    /// The pass.
    pub pass: &'static str,
    /// The graph.
    pub graph: String,
    /// Runs first.
    pub from: String,
    /// Runs after it.
    pub to: String,
    /// The edge that it was, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<[String; 2]>,
    /// In words.
    pub why: String,
}

/// A graph and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphSize {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: usize,
}

/// Everything that a run did and found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// 1.
    pub schema_version: u32,
    /// Nodes put in, in order.
    pub inserted: Vec<Inserted>,
    /// Attributes set.
    pub marks: Vec<Mark>,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// Errors.
    pub errors: Vec<Failure>,
    /// Nodes taken out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Removed>,
    /// Inputs with another producer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relinked: Vec<Relinked>,
    /// Control edges.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Control>,
    /// Anchors that share memory, after in-place reuse.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<Vec<String>>,
    /// The graphs as they are afterwards.
    pub graphs: Vec<GraphSize>,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            schema_version: 1,
            inserted: Vec::new(),
            marks: Vec::new(),
            warnings: Vec::new(),
            errors: Vec::new(),
            removed: Vec::new(),
            relinked: Vec::new(),
            control: Vec::new(),
            symbols: Vec::new(),
            graphs: Vec::new(),
        }
    }
}

impl Report {
    /// How many conflicts would be repaired: what only completes another repair does not count.
    pub fn conflicts(&self) -> usize {
        let own = |i: &&Inserted| i.conflict.part_of.is_none();
        self.inserted.iter().filter(own).count()
    }

    /// 2 with errors, 1 with insertions or warnings, else 0.
    pub fn exit_code(&self) -> u8 {
        if !self.errors.is_empty() {
            2
        } else if !self.inserted.is_empty() || !self.warnings.is_empty() {
            1
        } else {
            0
        }
    }
}
