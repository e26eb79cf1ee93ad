//! A result in words, for readers who don't know GE: what is in conflict, who writes and who reads the memory, what edges say
//! of their order, what was put in and why that helps. A glossary explains the words that an output used.

use crate::glossary;
use crate::report::{Conflict, Failure, Inserted, OneOrMany, Report, Warning};
use std::fmt::Write;

/// Columns of an output.
const WIDTH: usize = 110;
/// Where the text after a line's label begins.
const INDENT: usize = 13;

/// A number of things: `1 input`, `2 inputs`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A word with its article: `a Const`, `an If`.
pub fn with_article(word: &str) -> String {
    let vowel = word.starts_with(|c: char| "aeioAEIO".contains(c));
    format!("{} {word}", if vowel { "an" } else { "a" })
}

/// A name in quotes, so that it can't be taken for a word of the sentence.
pub fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// `a`, `a and b`, `a, b and c`.
pub fn and(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// A paragraph behind a label, broken between words; later lines begin at `indent`.
pub fn wrapped(label: &str, text: &str, indent: usize) -> String {
    let mut s = label.to_owned();
    let mut column = label.chars().count();
    let mut first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !first && column + 1 + length > WIDTH {
            s += "\n";
            s += &" ".repeat(indent);
            column = indent;
        } else if !first {
            s.push(' ');
            column += 1;
        }
        s += word;
        column += length;
        first = false;
    }
    s.push('\n');
    s
}

/// One line of a conflict: a label and what it says.
pub(crate) fn line(s: &mut String, label: &str, text: &str) {
    if !text.is_empty() {
        *s += &wrapped(
            &format!("  {label:<width$}", width = INDENT - 2),
            text,
            INDENT,
        );
    }
}

fn lines(s: &mut String, label: &str, list: &[String]) {
    for (n, text) in list.iter().enumerate() {
        line(s, if n == 0 { label } else { "" }, text);
    }
}

/// What a result is the result of.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    /// The file that the repaired graph went to.
    pub written: Option<&'a str>,
    /// Only lint ran.
    pub lint: bool,
}

impl View<'_> {
    /// Whether what passes did stands in a file now, so that it is more than a proposal.
    fn is_done(self) -> bool {
        self.written.is_some()
    }

    /// `is`, or `would be`.
    fn is(self) -> &'static str {
        if self.is_done() { "is" } else { "would be" }
    }
}

/// The whole result.
pub fn report(r: &Report, view: View<'_>) -> String {
    let mut s = String::new();
    for e in &r.errors {
        failure(&mut s, e);
    }
    if !r.errors.is_empty() && !r.inserted.is_empty() {
        s += &wrapped(
            "",
            "Because of this, no repaired graph is given out. The following had been found before:",
            0,
        );
        s.push('\n');
    }
    let numbers = numbers(r);
    for w in &r.warnings {
        warning(&mut s, r, w, &numbers);
    }
    for (i, n) in r.inserted.iter().zip(&numbers) {
        inserted(&mut s, *n, i, view);
    }
    changes(&mut s, r, view);
    if !s.is_empty() && !s.ends_with("\n\n") {
        s.push('\n');
    }
    let words = glossary::of(&s);
    if !words.is_empty() {
        s += &words;
        s.push('\n');
    }
    summary(&mut s, r, view);
    s
}

/// The conflict that each insertion belongs to, counted from 1.
fn numbers(r: &Report) -> Vec<usize> {
    let mut n = 0;
    r.inserted
        .iter()
        .map(|i| {
            n += usize::from(i.conflict.part_of.is_none());
            n
        })
        .collect()
}

fn failure(s: &mut String, e: &Failure) {
    let place = e.pass.map(|p| format!(" in pass {p}")).unwrap_or_default();
    *s += &wrapped(&format!("error {}{place}: ", e.code), &e.why, INDENT);
    s.push('\n');
}

/// What else changes, one paragraph each.
fn changes(s: &mut String, r: &Report, view: View<'_>) {
    let is = view.is();
    for x in &r.removed {
        let text = format!(
            "`{}` ({}) {is} taken out (graph {}, pass {}), because {}",
            x.name, x.ty, x.graph, x.pass, x.why
        );
        *s += &wrapped("removed: ", &text, INDENT);
    }
    for x in &r.relinked {
        let text = format!(
            "{}.in.{} {is} given output {} instead of {} (graph {}, pass {}), because {}",
            x.node, x.input, x.new, x.old, x.graph, x.pass, x.why
        );
        *s += &wrapped("relinked: ", &text, INDENT);
    }
    for x in &r.control {
        let moved = x
            .moved_from
            .as_ref()
            .map(|[a, b]| {
                if *a == x.from {
                    format!(" (an edge that leads to `{b}` in the file)")
                } else {
                    format!(" (an edge that comes from `{a}` in the file)")
                }
            })
            .unwrap_or_default();
        let text = format!(
            "a control edge {} `{}` run before `{}`{moved} (graph {}, pass {}), because {}",
            if view.is_done() {
                "makes"
            } else {
                "would make"
            },
            x.from,
            x.to,
            x.graph,
            x.pass,
            x.why
        );
        *s += &wrapped("order: ", &text, INDENT);
    }
    for m in &r.marks {
        let place = m
            .output
            .map(|o| format!("{}.out.{o}", m.node))
            .unwrap_or_else(|| quoted(&m.node));
        let text = format!(
            "attribute `{}` of {place} {is} set to {} (graph {}, pass {}), because {}",
            m.attr, m.value, m.graph, m.pass, m.why
        );
        *s += &wrapped("mark: ", &text, INDENT);
    }
}

/// Whether there is nothing but copies to take out.
fn changes_only(r: &Report) -> bool {
    let simpler = !r.removed.is_empty() || !r.relinked.is_empty();
    simpler && r.errors.is_empty() && r.inserted.is_empty()
}

fn summary(s: &mut String, r: &Report, view: View<'_>) {
    let conflicts = r.conflicts();
    let _ = writeln!(
        s,
        "{}, {}, {}",
        count(r.errors.len(), "error"),
        count(r.warnings.len(), "warning"),
        count(conflicts, "conflict"),
    );
    let item = |s: &mut String, text: &str| *s += &wrapped("  ", text, 4);
    let failed = !r.errors.is_empty();
    if failed {
        item(
            s,
            "because of the errors nothing is repaired, and nothing is written, with --write neither",
        );
    }
    if conflicts > 0 {
        let (all, verb) = match (conflicts, failed || !view.is_done()) {
            (1, true) => ("the conflict".to_owned(), "would be repaired"),
            (2, true) => ("both conflicts".to_owned(), "would be repaired"),
            (2, false) => ("both conflicts".to_owned(), "are repaired"),
            (n, true) => (format!("all {n} conflicts"), "would be repaired"),
            (1, false) => ("the conflict".to_owned(), "is repaired"),
            (n, false) => (format!("all {n} conflicts"), "are repaired"),
        };
        let note = if failed || view.is_done() {
            ""
        } else {
            " (nothing was written; --write FIXED.json writes the repaired graph)"
        };
        let operators = count(r.inserted.len(), "inserted operator");
        item(s, &format!("{all} {verb} by {operators}{note}"));
        let careful = r.inserted.iter().filter(|i| i.conflict.precaution).count();
        if careful > 0 {
            let them = if careful == 1 {
                "is only a precaution"
            } else {
                "are only precautions"
            };
            item(
                s,
                &format!(
                    "{careful} of {conflicts} {them}: the rule asks for it, but nobody was found whom it would disturb"
                ),
            );
        }
    } else if changes_only(r) && !view.is_done() {
        item(
            s,
            "there is no conflict, but something to simplify (nothing was written; --write FIXED.json writes the simpler graph)",
        );
    }
    let open = r.warnings.iter().filter(|w| !w.settled).count();
    if open > 0 {
        let text = match open {
            1 => "1 warning is for you to settle: no repair is made for it",
            _ => "the warnings are for you to settle: no repair is made for them",
        };
        item(s, text);
    }
    if let Some(path) = view.written {
        item(
            s,
            &format!("the repaired graph is in {path}; the file that was read is as it was"),
        );
    }
    if view.lint {
        item(
            s,
            "lint looks only for missing orders of in-place writes; `gsan graph check` looks for conflicts",
        );
    }
    let graphs: Vec<String> = r
        .graphs
        .iter()
        .map(|g| format!("{} ({})", g.name, count(g.nodes, "operator")))
        .collect();
    if !graphs.is_empty() {
        let with = if r.inserted.is_empty() && r.removed.is_empty() {
            "graphs"
        } else if failed {
            "graphs, with what had been inserted before the error"
        } else {
            "graphs, with the repairs"
        };
        item(s, &format!("{with}: {}", shorten(graphs)));
    }
    if !r.marks.is_empty() {
        let text = format!(
            "{} {} set for later steps of GE: that is no conflict",
            count(r.marks.len(), "attribute"),
            if view.is_done() {
                if r.marks.len() == 1 { "is" } else { "are" }
            } else {
                "would be"
            }
        );
        item(s, &text);
    }
    let nothing = if changes_only(r) {
        "there are no conflicts and no warnings"
    } else if view.lint {
        "no in-place write without an order was found"
    } else {
        "there is nothing to repair and nothing to warn of"
    };
    let meaning = match r.exit_code() {
        0 => nothing,
        1 => match (conflicts > 0, !r.warnings.is_empty()) {
            (true, true) => "there are conflicts and warnings",
            (true, false) if view.is_done() => "there were conflicts, and they are repaired",
            (true, false) => "there are conflicts",
            _ => "there are warnings",
        },
        _ => "there are errors",
    };
    let _ = writeln!(s, "exit code {}: {meaning}", r.exit_code());
}

/// The first few.
fn shorten(mut list: Vec<String>) -> String {
    const SHOWN: usize = 8;
    let more = list.len().saturating_sub(SHOWN);
    list.truncate(SHOWN);
    let text = list.join(", ");
    if more > 0 {
        format!("{text} and {more} more")
    } else {
        text
    }
}

fn warning(s: &mut String, r: &Report, w: &Warning, numbers: &[usize]) {
    *s += &wrapped(&format!("warning {}: ", w.code), w.conflict.title, INDENT);
    facts(s, &w.conflict, &w.graph, &w.why);
    if let Some(story) = &w.conflict.story {
        line(s, if w.settled { "repair" } else { "to do" }, &story.repair);
    }
    lines(s, "and also", &w.others);
    if let Some(story) = &w.conflict.story {
        for (i, n) in r.inserted.iter().zip(numbers) {
            let same = i
                .conflict
                .story
                .as_ref()
                .is_some_and(|t| t.owner == story.owner);
            if same && !w.settled && i.conflict.part_of.is_none() {
                line(
                    s,
                    "compare",
                    &format!(
                        "conflict {n} is about the same memory, but another matter: its repair does not settle this warning; check again once \
                         the order is settled, for the conflict may look different then{}",
                        moved_edges(w, i)
                    ),
                );
            }
        }
    }
    rule(s, &w.conflict, w.pass);
}

/// If a copy comes before an operator that the advice gives an edge to: what becomes of that edge.
fn moved_edges(w: &Warning, i: &Inserted) -> String {
    let before = i.before.as_ref().map_or(&[][..], |b| b.as_slice());
    let Some(b) = before
        .iter()
        .find(|b| i.graph == w.graph && w.nodes.contains(&b.node))
    else {
        return String::new();
    };
    let (copy, node) = (&i.name, &b.node);
    format!(
        "; and the copy `{copy}` uses the memory in place of `{node}` then: --write moves the edges of \"control\" of `{node}` to the copy, \
         but a copy put in by hand must have them in its own \"control\""
    )
}

fn inserted(s: &mut String, n: usize, i: &Inserted, view: View<'_>) {
    let label = match i.conflict.part_of {
        None => format!("conflict {n}: "),
        Some(_) => format!("second part of the repair of conflict {n}: "),
    };
    *s += &wrapped(&label, i.conflict.title, INDENT);
    facts(s, &i.conflict, &i.graph, &i.why);
    let what = match i.ty.as_str() {
        "Identity" => "a copy (an operator Identity)".to_owned(),
        ty => format!("an operator {ty}"),
    };
    let mut repair = format!(
        "{what}, called `{}`, {} put in{}",
        i.name,
        view.is(),
        place(i)
    );
    if let Some(story) = &i.conflict.story
        && !story.repair.is_empty()
    {
        repair += &format!(": {}", story.repair);
    }
    let places = i.before.as_ref().map_or(0, |b| b.as_slice().len())
        + i.after.as_ref().map_or(0, |a| a.as_slice().len());
    if places > 1 {
        repair += &format!(
            "; it is one operator with {places} inputs and {places} outputs, one of each for each place just named, in that order: output 0 is \
             the copy of input 0, and so on"
        );
    }
    line(s, "repair", &repair);
    if !view.is_done() {
        line(s, "by hand", &by_hand(i));
    }
    rule(s, &i.conflict, i.pass);
}

/// How to put it in without `--write`: what matters is the name and the attributes.
fn by_hand(i: &Inserted) -> String {
    let name = |s: &str| serde_json::Value::from(s).to_string();
    let mut text = format!(
        "or put it in by hand: \"name\": {}, \"type\": {}",
        name(&i.name),
        name(&i.ty)
    );
    if !i.attrs.is_empty() {
        text += &format!(
            ", \"attrs\": {}",
            serde_json::Value::Object(i.attrs.clone())
                .to_string()
                .replace("\":", "\": ")
                .replace(",\"", ", \"")
        );
    }
    if i.before.is_none() && i.after.is_none() {
        text +=
            " (and the edges that are told of here and under \"order\" below; --write is simpler)";
    } else {
        text += if i.attrs.is_empty() {
            " (under another name, a later run may take it for something else)"
        } else {
            " (without these attributes a later run may take it out again, or find other conflicts)"
        };
    }
    text
}

fn facts(s: &mut String, c: &Conflict, graph: &str, why: &str) {
    let found = if c.precaution {
        "none was found here: this is a precaution; what the rule is against: "
    } else {
        ""
    };
    line(
        s,
        "danger",
        &format!(
            "{found}{} [hazard: {}; GE's own name for it: {}]",
            c.class.danger(),
            c.hazard,
            c.kind
        ),
    );
    let [a, b] = &c.anchors;
    if !a.is_empty() {
        let [p, q] = &c.graphs;
        let text = if p.is_empty() || p == q {
            format!(
                "{a} and {b} (graph {})",
                if p.is_empty() { graph } else { p }
            )
        } else {
            format!("{a} (graph {p}) and {b} (graph {q})")
        };
        line(s, "between", &text);
    }
    line(s, "why", why);
    if let Some(story) = &c.story {
        line(s, "memory", &story.memory);
        lines(s, "belongs to", &story.belongs);
        lines(s, "written by", &story.writes);
        lines(s, "used by", &story.reads);
        line(s, "order", &story.order);
        lines(s, "compare", &story.notes);
    }
}

fn rule(s: &mut String, c: &Conflict, pass: &str) {
    let meaning = c.story.as_ref().map_or("", |s| s.meaning);
    let text = if meaning.is_empty() {
        format!("{} (pass {pass})", c.rule)
    } else {
        format!("{meaning} (GE's own name for it: {}; pass {pass})", c.rule)
    };
    line(s, "rule", &text);
    s.push('\n');
}

pub(crate) fn place(i: &Inserted) -> String {
    fn list<T>(l: &OneOrMany<T>, one: impl Fn(&T) -> String) -> String {
        shorten(l.as_slice().iter().map(one).collect())
    }
    match (&i.before, &i.after) {
        (Some(b), _) => format!(
            " before {}",
            list(b, |x| format!("{}.in.{}", x.node, x.input))
        ),
        (_, Some(a)) => format!(
            " after {}",
            list(a, |x| format!("{}.out.{}", x.node, x.output))
        ),
        _ => String::new(),
    }
}
