//! Rows in words: which inputs or outputs have to lie one after the other, and where two rows contradict each other.

use super::detect::Finding;
use super::symbols::{Anchor, AnchorId, Space};
use super::table::Checker as C;
use crate::ir::{InRef, Module, OutRef, Place};
use crate::text::quoted;

/// Elements of a row that are named.
const SHOWN: usize = 8;

/// A row: what its elements are, by the name of the output that makes each.
struct Row {
    /// The operator.
    node: String,
    /// `inputs` or `outputs`.
    side: &'static str,
    list: Vec<String>,
    place: (Place, bool),
}

fn row(module: &Module, at: Anchor) -> Row {
    let graph = module.graph(at.graph);
    let node = graph.node(at.node);
    let (side, count) = if at.input {
        ("inputs", node.inputs.len())
    } else {
        ("outputs", node.outputs.len())
    };
    let list = (0..count as u32)
        .map(|index| {
            let node = at.node;
            let out = OutRef { node, index };
            match (at.input, graph.producer(InRef { node, index })) {
                (false, _) => module.out_name(at.graph, out),
                (true, Some(from)) => module.out_name(at.graph, from),
                (true, None) => "nothing".to_owned(),
            }
        })
        .collect();
    Row {
        node: quoted(&node.name),
        side,
        list,
        place: (at.place(), at.input),
    }
}

impl Row {
    fn told(&self) -> String {
        let mut list = self.list[..self.list.len().min(SHOWN)].to_vec();
        if self.list.len() > SHOWN {
            list.push("…".to_owned());
        }
        format!(
            "the {} of {} have to lie in this order: {}",
            self.side,
            self.node,
            list.join(", ")
        )
    }

    fn at(&self, index: Option<usize>) -> Option<&str> {
        self.list.get(index?).map(String::as_str)
    }
}

/// The rows of a pair, for the rules that compare rows, and where they contradict each other. `earlier`: what gets a copy
/// before this one.
pub(super) fn told(
    module: &Module,
    space: &Space,
    f: &Finding,
    earlier: &mut dyn Iterator<Item = &Finding>,
) -> String {
    if !matches!(
        f.checker,
        Some(C::CiCi | C::CoCi | C::NpciNpci | C::NpciNpco | C::CoCo | C::NpcoNpco)
    ) {
        return String::new();
    }
    let (a, b) = (space.at(f.between.0), space.at(f.between.1));
    let (one, two) = (row(module, a), row(module, b));
    let mut text = format!("; {}; {}", one.told(), two.told());
    let same_rows = |e: &&Finding| {
        let (x, y) = (space.at(e.between.0), space.at(e.between.1));
        let places = [(x.place(), x.input), (y.place(), y.input)];
        e.checker == f.checker && places.contains(&one.place) && places.contains(&two.place)
    };
    let before: Vec<AnchorId> = earlier.filter(same_rows).map(|e| e.anchor).collect();
    text += &match before.last() {
        Some(first) => second(module, space, (f, *first), &one, &two),
        // These rules ask for no contradiction: two rows with something in common are enough.
        None if matches!(f.checker, Some(C::CiCi | C::CoCo | C::NpcoNpco)) => apart(&one, &two),
        None => clash(&one, &two),
    };
    text
}

/// What two rows have in common that must have nothing in common.
fn apart(one: &Row, two: &Row) -> String {
    let common: Vec<String> = one
        .list
        .iter()
        .filter(|x| two.list.contains(x))
        .take(SHOWN)
        .cloned()
        .collect();
    if common.is_empty() {
        return INSIDE.to_owned();
    }
    format!(
        "; {} {} in both rows, and by this rule a row shares nothing with another, even with one that is the same",
        crate::text::and(&common),
        if common.len() == 1 { "is" } else { "are" }
    )
}

/// What is said of rows without a common element.
const INSIDE: &str = "; no element of one row is one of the other, so one row would have to lie inside an element of the other \
                      (operators in between hand the memory on)";

/// Where two rows contradict each other, at the first element that they have in common and that has different neighbours.
fn clash(one: &Row, two: &Row) -> String {
    let common = || {
        one.list
            .iter()
            .enumerate()
            .filter_map(|(i, x)| Some((i, two.list.iter().position(|y| y == x)?, x)))
    };
    for (i, j, x) in common() {
        if let (Some(p), Some(q)) = (one.at(Some(i + 1)), two.at(Some(j + 1)))
            && p != q
        {
            return format!(
                "; {} needs {q} right behind {x}, but {} puts {p} there",
                two.node, one.node
            );
        }
    }
    for (i, j, x) in common() {
        if let (Some(p), Some(q)) = (one.at(i.checked_sub(1)), two.at(j.checked_sub(1)))
            && p != q
        {
            return format!(
                "; {} needs {q} right before {x}, but {} puts {p} there",
                two.node, one.node
            );
        }
    }
    for pair in two.list.windows(2) {
        let place = |x: &String| one.list.iter().position(|y| y == x);
        if let (Some(i), Some(k)) = (place(&pair[0]), place(&pair[1]))
            && k != i + 1
        {
            let where_it_is = if k < i { "before it" } else { "further behind" };
            return format!(
                "; {} needs {} right behind {}, but in the row of {} it lies {where_it_is}",
                two.node, pair[1], pair[0], one.node
            );
        }
    }
    if common().next().is_some() {
        let mut elements = one.list.iter().chain(&two.list);
        if elements.any(|x| {
            [one, two]
                .iter()
                .any(|r| r.list.iter().filter(|y| *y == x).count() > 1)
        }) {
            return "; and a row that holds one thing twice needs two places for it".to_owned();
        }
        return "; they have elements in common, but neither row is a part of the other".to_owned();
    }
    INSIDE.to_owned()
}

/// Why the copy that an earlier conflict asks for does not part the rows here.
fn second(
    module: &Module,
    space: &Space,
    (f, first): (&Finding, AnchorId),
    one: &Row,
    two: &Row,
) -> String {
    let name = |a: AnchorId| space.name(module, a);
    let at = space.at(f.anchor);
    let (mine, other) = if (at.place(), at.input) == two.place {
        (two, one)
    } else {
        (one, two)
    };
    let k = at.index as usize;
    let first_name = name(first);
    let lead = format!(
        "; the copy at {first_name} (the conflict before) is not enough: it takes only {first_name} out of this contradiction"
    );
    let Some(x) = mine.at(Some(k)) else {
        return lead;
    };
    let Some(i) = other.list.iter().position(|y| y == x) else {
        return lead;
    };
    if matches!(f.checker, Some(C::CiCi | C::CoCo | C::NpcoNpco)) {
        return format!("{lead}; {x} is still in both rows");
    }
    let start = space.at(first);
    let taken = (start.place(), start.input) == mine.place;
    let before = k
        .checked_sub(1)
        .filter(|b| taken && *b == start.index as usize);
    if !at.input {
        // The copy of an output is an element of the row of inputs.
        return match (
            i.checked_sub(1).and_then(|b| other.at(Some(b))),
            mine.at(k.checked_sub(1)),
        ) {
            (Some(b), Some(p)) if b == first_name && taken => format!(
                "{lead}; {} would need {x} right behind that copy, but {} makes it right behind {p}",
                other.node, mine.node
            ),
            _ => format!("{lead}; {x} is still in both rows, and its neighbours in them differ"),
        };
    }
    match (before, other.at(i.checked_sub(1))) {
        (Some(_), Some(p)) => format!(
            "{lead}; {x} would have to lie right behind that copy for {}, but {} needs it right behind {p}",
            mine.node, other.node
        ),
        _ => format!("{lead}; {x} is still in both rows, and its neighbours in them differ"),
    }
}
