//! A result in words, for readers who don't know GE.

use crate::report::{Inserted, OneOrMany, Report, Warning};
use std::fmt::Write;

/// A number of things: `1 input`, `2 inputs`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A word with its article: `a Const`, `an If`.
pub fn with_article(word: &str) -> String {
    let vowel = word.starts_with(|c: char| "aeioAEIO".contains(c));
    format!("{} {word}", if vowel { "an" } else { "a" })
}

/// The whole result.
pub fn report(r: &Report) -> String {
    let mut s = String::new();
    for e in &r.errors {
        let place = e.pass.map(|p| format!(" in pass {p}")).unwrap_or_default();
        let _ = writeln!(s, "error {}{place}: {}\n", e.code, e.why);
    }
    for w in &r.warnings {
        warning(&mut s, w);
    }
    for (n, i) in r.inserted.iter().enumerate() {
        inserted(&mut s, n + 1, i);
    }
    for x in &r.removed {
        let _ = writeln!(
            s,
            "removed: {} {} (graph {}, pass {}): {}",
            x.ty, x.name, x.graph, x.pass, x.why
        );
    }
    for x in &r.relinked {
        let _ = writeln!(
            s,
            "relinked: input {} of {} (graph {}, pass {}) now comes from {} instead of {}: {}",
            x.input, x.node, x.graph, x.pass, x.new, x.old, x.why
        );
    }
    for x in &r.control {
        let moved = x
            .moved_from
            .as_ref()
            .map(|[a, b]| format!(" (was {a} before {b})"))
            .unwrap_or_default();
        let _ = writeln!(
            s,
            "order: {} runs before {}{moved} (graph {}, pass {}): {}",
            x.from, x.to, x.graph, x.pass, x.why
        );
    }
    for m in &r.marks {
        let place = m
            .output
            .map(|o| format!("output {o} of {}", m.node))
            .unwrap_or_else(|| m.node.clone());
        let _ = writeln!(
            s,
            "mark: {} = {} on {place} (graph {}, pass {}): {}",
            m.attr, m.value, m.graph, m.pass, m.why
        );
    }
    if !r.symbols.is_empty() {
        let shared = r.symbols.iter().filter(|l| l.len() > 1).count();
        let _ = writeln!(
            s,
            "memory: {} places, {shared} of them shared by several anchors",
            r.symbols.len()
        );
    }
    if !s.is_empty() && !s.ends_with("\n\n") {
        s.push('\n');
    }
    summary(&mut s, r);
    s
}

fn summary(s: &mut String, r: &Report) {
    let graphs: Vec<String> = r
        .graphs
        .iter()
        .map(|g| format!("{} ({} nodes)", g.name, g.nodes))
        .collect();
    let count =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let _ = writeln!(
        s,
        "{}, {}, {}{}",
        count(r.errors.len(), "error", "errors"),
        count(r.warnings.len(), "warning", "warnings"),
        count(r.inserted.len(), "operator inserted", "operators inserted"),
        if graphs.is_empty() {
            String::new()
        } else {
            format!("; graphs: {}", shorten(graphs))
        },
    );
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
    let _ = writeln!(s, "warning {}: {}", w.code, w.kind);
    let _ = writeln!(s, "  hazard    {}", w.hazard);
    if !w.nodes.is_empty() {
        let _ = writeln!(
            s,
            "  between   {} (graph {})",
            w.nodes.join(" and "),
            w.graph
        );
    }
    let _ = writeln!(s, "  why       {}", w.why);
    let _ = writeln!(s, "  rule      {} (pass {})\n", w.conflict.rule, w.pass);
}

fn inserted(s: &mut String, n: usize, i: &Inserted) {
    let [a, b] = &i.conflict.anchors;
    let _ = writeln!(s, "conflict {n}: {}", i.conflict.kind);
    let _ = writeln!(s, "  hazard    {}", i.conflict.hazard);
    let _ = writeln!(s, "  between   {a} and {b} (graph {})", i.graph);
    let _ = writeln!(s, "  why       {}", i.why);
    let _ = writeln!(s, "  rule      {} (pass {})", i.conflict.rule, i.pass);
    let what = if i.ty == "Identity" {
        "Identity = a copy".to_owned()
    } else {
        format!("type {}", i.ty)
    };
    let _ = writeln!(s, "  repair    new node {} ({what}) {}\n", i.name, place(i));
}

fn place(i: &Inserted) -> String {
    fn list<T>(l: &OneOrMany<T>, one: impl Fn(&T) -> String) -> String {
        shorten(l.as_slice().iter().map(one).collect())
    }
    match (&i.before, &i.after) {
        (Some(b), _) => format!(
            "before {}",
            list(b, |x| format!("input {} of {}", x.input, x.node))
        ),
        (_, Some(a)) => format!(
            "after {}",
            list(a, |x| format!("output {} of {}", x.output, x.node))
        ),
        _ => "beside the data edges, ordered by control edges".to_owned(),
    }
}
