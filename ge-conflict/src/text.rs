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

/// The whole result; `written` is the file that the repaired graph went to.
pub fn report(r: &Report, written: Option<&str>) -> String {
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
    for w in &r.warnings {
        warning(&mut s, w);
    }
    for (n, i) in r.inserted.iter().enumerate() {
        inserted(&mut s, n + 1, i, !r.errors.is_empty());
    }
    changes(&mut s, r);
    if !r.symbols.is_empty() && r.errors.is_empty() {
        memory(&mut s, &r.symbols);
    }
    if !s.is_empty() && !s.ends_with("\n\n") {
        s.push('\n');
    }
    let words = glossary::of(&s);
    if !words.is_empty() {
        s += &words;
        s.push('\n');
    }
    summary(&mut s, r, written);
    s
}

fn failure(s: &mut String, e: &Failure) {
    let place = e.pass.map(|p| format!(" in pass {p}")).unwrap_or_default();
    *s += &wrapped(&format!("error {}{place}: ", e.code), &e.why, INDENT);
    s.push('\n');
}

/// What else was changed, one paragraph each.
fn changes(s: &mut String, r: &Report) {
    for x in &r.removed {
        let label = format!("removed: {} {} ", x.ty, x.name);
        let text = format!("(graph {}, pass {}), because {}", x.graph, x.pass, x.why);
        *s += &wrapped(&label, &text, INDENT);
    }
    for x in &r.relinked {
        let label = format!("relinked: {}.in.{} ", x.node, x.input);
        let text = format!(
            "comes from output {} instead of {} (graph {}, pass {}), because {}",
            x.new, x.old, x.graph, x.pass, x.why
        );
        *s += &wrapped(&label, &text, INDENT);
    }
    for x in &r.control {
        let moved = x
            .moved_from
            .as_ref()
            .map(|[a, b]| {
                if *a == x.from {
                    format!(" (it led to {b} until now)")
                } else {
                    format!(" (it came from {a} until now)")
                }
            })
            .unwrap_or_default();
        let text = format!(
            "a control edge makes {} run before {}{moved} (graph {}, pass {}), because {}",
            x.from, x.to, x.graph, x.pass, x.why
        );
        *s += &wrapped("order: ", &text, INDENT);
    }
    for m in &r.marks {
        let place = m
            .output
            .map(|o| format!("{}.out.{o}", m.node))
            .unwrap_or_else(|| m.node.clone());
        let text = format!(
            "attribute {} of {place} is set to {} (graph {}, pass {}), because {}",
            m.attr, m.value, m.graph, m.pass, m.why
        );
        *s += &wrapped("mark: ", &text, INDENT);
    }
}

fn memory(s: &mut String, symbols: &[Vec<String>]) {
    let all: usize = symbols.iter().map(Vec::len).sum();
    let shared = symbols.iter().filter(|l| l.len() > 1).count();
    let text = format!(
        "all inputs and outputs of the operators ({all}) lie in {} after this; {shared} of them {} by more than one \
         input or output",
        count(symbols.len(), "piece") + " of memory",
        if shared == 1 { "is used" } else { "are used" }
    );
    *s += &wrapped("memory: ", &text, INDENT);
}

fn summary(s: &mut String, r: &Report, written: Option<&str>) {
    let graphs: Vec<String> = r
        .graphs
        .iter()
        .map(|g| format!("{} ({})", g.name, count(g.nodes, "operator")))
        .collect();
    let _ = writeln!(
        s,
        "{}, {}, {} {}{}",
        count(r.errors.len(), "error"),
        count(r.warnings.len(), "warning"),
        count(r.inserted.len(), "operator"),
        if r.errors.is_empty() || r.inserted.is_empty() {
            "inserted"
        } else {
            "that would have been inserted"
        },
        if graphs.is_empty() {
            String::new()
        } else {
            format!("; graphs: {}", shorten(graphs))
        },
    );
    let changed = !(r.inserted.is_empty() && r.removed.is_empty() && r.relinked.is_empty());
    if !changed && r.errors.is_empty() && r.warnings.is_empty() {
        s.push_str("nothing to repair and nothing to warn of\n");
    }
    if let Some(path) = written {
        let _ = writeln!(s, "the repaired graph is in {path}");
    } else if changed && r.errors.is_empty() {
        let _ = writeln!(
            s,
            "the file that was read is as it was; --write FIXED.json writes the repaired graph"
        );
    }
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

fn warning(s: &mut String, w: &Warning) {
    *s += &wrapped(
        &format!("warning {}: ", w.code),
        &format!("{} ({})", w.conflict.class.words(), w.kind),
        INDENT,
    );
    facts(s, &w.conflict, &w.graph, &w.why);
    if let Some(story) = &w.conflict.story {
        line(s, "repair", &story.repair);
    }
    rule(s, &w.conflict, w.pass);
}

fn inserted(s: &mut String, n: usize, i: &Inserted, failed: bool) {
    *s += &wrapped(
        &format!("conflict {n}: "),
        &format!("{} ({})", i.conflict.class.words(), i.conflict.kind),
        INDENT,
    );
    facts(s, &i.conflict, &i.graph, &i.why);
    let what = match i.ty.as_str() {
        "Identity" => "a copy (an operator Identity)".to_owned(),
        ty => format!("an operator {ty}"),
    };
    let mut repair = format!(
        "{what}, called {}, {}{}",
        i.name,
        if failed {
            "would be put in"
        } else {
            "is put in"
        },
        place(i)
    );
    if let Some(story) = &i.conflict.story
        && !story.repair.is_empty()
    {
        repair += &format!(": {}", story.repair);
    }
    line(s, "repair", &repair);
    rule(s, &i.conflict, i.pass);
}

fn facts(s: &mut String, c: &Conflict, graph: &str, why: &str) {
    line(
        s,
        "danger",
        &format!("{} [hazard: {}]", c.class.danger(), c.hazard),
    );
    let [a, b] = &c.anchors;
    if !a.is_empty() {
        line(s, "between", &format!("{a} and {b} (graph {graph})"));
    }
    line(s, "why", why);
    if let Some(story) = &c.story {
        line(s, "memory", &story.memory);
        lines(s, "written by", &story.writes);
        lines(s, "used by", &story.reads);
        line(s, "order", &story.order);
    }
}

fn rule(s: &mut String, c: &Conflict, pass: &str) {
    let meaning = c.story.as_ref().map_or("", |s| s.meaning);
    let text = if meaning.is_empty() {
        format!("{} (pass {pass})", c.rule)
    } else {
        format!("{meaning} ({}, pass {pass})", c.rule)
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
