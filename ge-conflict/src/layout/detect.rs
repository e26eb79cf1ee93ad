//! Finds the anchors that need a copy.
//!
//! Per class of anchors that share memory, every pair of anchors is looked at whose attributes don't always go together
//! (ordinary anchors only meet operators with fixed addresses, so that classes of thousands of ordinary anchors cost
//! nothing). What a pair finds goes into one set; nothing is changed while looking. An anchor that is already in the set
//! counts as isolated for the two rules that compare whole lists of anchors: otherwise one copy too many would be found.

use super::attrs::{AnchorAttr, AttrSet, Mode};
use super::symbols::{Anchor, AnchorId, Space, Symbols};
use super::table::{Checker, Entry, entry, rivals};
use super::{continuous, pair};
use crate::ctx::PassError;
use crate::ir::{Module, Node, names};
use rustc_hash::FxHashMap;

/// An anchor that needs a copy, and the pair that showed it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The anchor.
    pub anchor: AnchorId,
    /// The pair.
    pub between: (AnchorId, AnchorId),
    /// The attributes of the pair.
    pub attrs: (AnchorAttr, AnchorAttr),
    /// The checker; `None`: they never go together.
    pub checker: Option<Checker>,
}

/// One rule tried on a pair, for `--explain`.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The pair.
    pub between: (AnchorId, AnchorId),
    /// Its attributes.
    pub attrs: (AnchorAttr, AnchorAttr),
    /// What the table says.
    pub entry: Entry,
    /// What came of it.
    pub found: Vec<AnchorId>,
}

/// Looks at one graph and everything inside it.
pub struct Detector<'a> {
    /// The module.
    pub module: &'a Module,
    /// Its anchors.
    pub space: &'a Space,
    /// What shares memory.
    pub symbols: &'a Symbols,
    /// Attributes by anchor.
    pub sets: &'a [AttrSet],
    /// What is allowed.
    pub mode: Mode,
    found: FxHashMap<AnchorId, usize>,
    findings: Vec<Finding>,
    /// Checkers that have looked at the class at hand.
    done: u32,
    pub(super) lists: continuous::Lists,
    trace: Option<(AnchorId, Vec<Trial>)>,
    /// The list at hand is not one class but several taken together.
    merged: bool,
}

impl<'a> Detector<'a> {
    /// A detector that has found nothing yet.
    pub fn new(
        module: &'a Module,
        space: &'a Space,
        symbols: &'a Symbols,
        sets: &'a [AttrSet],
        mode: Mode,
    ) -> Detector<'a> {
        let lists = continuous::Lists::default();
        let (found, findings) = (FxHashMap::default(), Vec::new());
        Detector {
            module,
            space,
            symbols,
            sets,
            mode,
            found,
            findings,
            done: 0,
            lists,
            trace: None,
            merged: false,
        }
    }

    /// Keeps a record of every rule that is tried on this anchor.
    pub fn trace(mut self, anchor: AnchorId) -> Self {
        self.trace = Some((anchor, Vec::new()));
        self
    }

    /// Looks at every class, in the order of their first anchors' names.
    pub fn run(mut self) -> Result<(Vec<Finding>, Vec<Trial>), PassError> {
        let mut keyed = Vec::new();
        for class in self.symbols.classes() {
            let members = self.symbols.members(class);
            if members.len() < 2 || members.iter().all(|a| !self.is_special(*a)) {
                continue;
            }
            // The classes' order is that of their names; inside a class the order of execution counts.
            let key = members
                .iter()
                .map(|a| self.space.key(self.module, *a))
                .min()
                .unwrap_or_default();
            keyed.push((key, self.ordered(members)));
        }
        keyed.sort();
        for (_, members) in keyed {
            self.class(&members)?;
        }
        Ok((self.findings, self.trace.map(|t| t.1).unwrap_or_default()))
    }

    /// Looks at a list of anchors as if they shared memory.
    pub fn check_list(&mut self, members: &[AnchorId]) -> Result<bool, PassError> {
        let before = self.findings.len();
        let list = self.ordered(members);
        self.merged = true;
        self.class(&list)?;
        self.merged = false;
        Ok(self.findings.len() > before)
    }

    /// By topological id, which counts through all graphs; an operator's inputs before its outputs.
    fn ordered(&self, members: &[AnchorId]) -> Vec<AnchorId> {
        let mut list: Vec<(Option<i64>, AnchorId)> = members
            .iter()
            .map(|a| (self.node(self.space.at(*a)).id, *a))
            .collect();
        list.sort_unstable();
        list.into_iter().map(|l| l.1).collect()
    }

    pub(super) fn is_special(&self, a: AnchorId) -> bool {
        self.sets[a.0 as usize].0 & !AttrSet::NORMAL.0 != 0
    }

    fn class(&mut self, members: &[AnchorId]) -> Result<(), PassError> {
        self.done = 0;
        // Anchors with the same attributes form a group; most pairs of groups can be dismissed as a whole.
        let mut groups: Vec<(AttrSet, Vec<u32>)> = Vec::new();
        for (at, a) in members.iter().enumerate() {
            let set = self.sets[a.0 as usize];
            match groups.iter_mut().find(|g| g.0 == set) {
                Some(g) => g.1.push(at as u32),
                None => groups.push((set, vec![at as u32])),
            }
        }
        for i in 0..groups.len() {
            for j in i..groups.len() {
                let (a, b) = (groups[i].0, groups[j].0);
                if rivals(a).any(b) {
                    self.group_pair(members, &groups[i], &groups[j], i == j)?;
                }
            }
        }
        Ok(())
    }

    fn group_pair(
        &mut self,
        members: &[AnchorId],
        one: &(AttrSet, Vec<u32>),
        two: &(AttrSet, Vec<u32>),
        same: bool,
    ) -> Result<(), PassError> {
        // Beside an ordinary anchor the fixed one is always the one to be isolated: once is enough.
        let ordinary = |s: AttrSet| s.0 & !AttrSet::NORMAL.0 == 0;
        let once = self.trace.is_none() && (ordinary(one.0) || ordinary(two.0));
        let special_first = ordinary(two.0);
        let (outer, inner) = if special_first || !once {
            (one, two)
        } else {
            (two, one)
        };
        for (n, i) in outer.1.iter().enumerate() {
            let rest = if same {
                &inner.1[n + 1..]
            } else {
                &inner.1[..]
            };
            for j in rest {
                // The one that runs first is the pair's first.
                let (a, b) = (members[*i.min(j) as usize], members[*i.max(j) as usize]);
                if self.skips(a, b) {
                    continue;
                }
                self.pair(members, a, b)?;
                if once {
                    break;
                }
            }
            if self.trace.is_none() && self.exhausted(one.0, two.0) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether all that two sets of attributes can ask has been answered for the class.
    fn exhausted(&self, one: AttrSet, two: AttrSet) -> bool {
        one.iter().all(|a| {
            two.iter().all(|b| match entry(a, b) {
                Entry::Free => true,
                Entry::Absolute => false,
                Entry::Check(c) => c.per_symbol() && self.done & 1 << c as u32 != 0,
            })
        })
    }

    fn skips(&self, a: AnchorId, b: AnchorId) -> bool {
        let (x, y) = (self.space.at(a), self.space.at(b));
        if x.place() == y.place() {
            return true;
        }
        if x.input || y.input {
            return false;
        }
        let names = |from: Anchor, to: Anchor| {
            let var = self.node(from).outputs[from.index as usize]
                .desc
                .attrs
                .str(names::REF_VAR);
            var.is_some_and(|v| v == self.node(to).name)
        };
        let co = |id: AnchorId| self.sets[id.0 as usize].has(AnchorAttr::Co);
        (names(x, y) || names(y, x)) && !co(a) && !co(b)
    }

    fn pair(&mut self, members: &[AnchorId], a: AnchorId, b: AnchorId) -> Result<(), PassError> {
        for x in self.sets[a.0 as usize].iter() {
            for y in self.sets[b.0 as usize].iter() {
                let e = entry(x, y);
                let found = match e {
                    Entry::Free => Vec::new(),
                    Entry::Absolute => vec![pair::absolute(self, a, b)?],
                    Entry::Check(c) if c.per_symbol() => {
                        if self.done & 1 << c as u32 != 0 && self.trace.is_none() {
                            continue;
                        }
                        self.done |= 1 << c as u32;
                        continuous::per_symbol(self, c, members)
                    }
                    Entry::Check(Checker::CoCi) => {
                        continuous::out_and_in(self, a, b).into_iter().collect()
                    }
                    Entry::Check(c) => pair::check(self, c, members, (a, x), (b, y))
                        .into_iter()
                        .collect(),
                };
                if let Some((anchor, trials)) = &mut self.trace
                    && (*anchor == a || *anchor == b)
                {
                    trials.push(Trial {
                        between: (a, b),
                        attrs: (x, y),
                        entry: e,
                        found: found.clone(),
                    });
                }
                let checker = if let Entry::Check(c) = e {
                    Some(c)
                } else {
                    None
                };
                for anchor in found {
                    self.found.entry(anchor).or_insert_with(|| {
                        self.findings.push(Finding {
                            anchor,
                            between: (a, b),
                            attrs: (x, y),
                            checker,
                        });
                        self.findings.len() - 1
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether an anchor is in the class at hand.
    pub(super) fn shares(&self, a: AnchorId, members: &[AnchorId]) -> bool {
        members.first().is_some_and(|m| self.symbols.same(a, *m))
            || (self.merged && members.contains(&a))
    }

    pub(super) fn is_found(&self, a: AnchorId) -> bool {
        self.found.contains_key(&a)
    }

    /// How many anchors were found so far.
    pub(super) fn count(&self) -> usize {
        self.findings.len()
    }

    pub(super) fn node(&self, a: Anchor) -> &'a Node {
        self.module.node(a.place())
    }

    pub(super) fn set(&self, a: AnchorId) -> AttrSet {
        self.sets[a.0 as usize]
    }
}
