//! What differs, in words.

use crate::data::{self, Argument, Rule};
use crate::kernel::Kernel;
use crate::results::{Contents, Outcome, Results};
use std::collections::BTreeSet;

/// The names in a list of kernels that are known to differ: a line each, below a comment (`#`) that says why.
pub fn known(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().map(str::trim_end);
    lines
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .collect()
}

/// Prints what differs; whether those kernels do that are known to, and no others.
pub fn report(
    kernels: &[Kernel],
    known: &BTreeSet<&str>,
    expected: &Results,
    found: &Results,
) -> bool {
    let (mut equal, mut as_known, mut other, mut unknown) = (0, 0, 0, 0);
    for (kernel, now) in kernels.iter().zip(&found.kernels) {
        let is_known = known.contains(now.name.as_str());
        let Some(before) = expected.kernels.iter().find(|k| k.name == now.name) else {
            if is_known {
                as_known += 1;
                continue;
            }
            println!("{}: not among the expected results", now.name);
            unknown += 1;
            continue;
        };
        let differences = differences(kernel, before, now);
        if is_known && differences.is_empty() {
            println!(
                "{}: agrees, and is in the list of those that do not",
                now.name
            );
            other += 1;
        } else if is_known {
            as_known += 1;
        } else if differences.is_empty() {
            equal += 1;
        } else {
            other += 1;
            for d in differences {
                println!("{}: {d}", now.name);
            }
        }
    }
    println!(
        "{equal} kernels agree with {}, {as_known} are known not to, {other} differ, {unknown} have no expected results",
        expected.device
    );
    other == 0 && unknown == 0
}

/// Results as they are checked in, from whole ones.
pub fn shrink(kernels: &[Kernel], mut results: Results) -> Results {
    results
        .kernels
        .retain(|o| kernels.iter().any(|k| k.name == o.name));
    for outcome in &mut results.kernels {
        let kernel = kernels.iter().find(|k| k.name == outcome.name);
        let buffers = kernel.map_or_else(Vec::new, buffers);
        for b in &mut outcome.buffers {
            let (before, rule) = match buffers.get(b.number) {
                Some((before, rule)) => (&before[..], *rule),
                None => (&[][..], Rule::Exact),
            };
            let unchanged = b.values == before;
            *b = Contents::of(b.number, &b.values, rule, false);
            if unchanged {
                b.values.clear();
            }
        }
    }
    results
}

/// What each buffer of a kernel holds at first, and its rule; tensors of maps last.
fn buffers(kernel: &Kernel) -> Vec<(Vec<u8>, Rule)> {
    let words = kernel.launch.args.iter();
    let words = words.chain(kernel.launch.map.iter().map(|m| &m.data));
    words
        .filter_map(|word| match data::parse(word) {
            Ok(Argument::Buffer(bytes, rule)) => Some((bytes, rule)),
            Ok(Argument::Symbol { .. }) => Some((Vec::new(), Rule::Ignored)),
            _ => None,
        })
        .collect()
}

fn differences(kernel: &Kernel, before: &Outcome, now: &Outcome) -> Vec<String> {
    let mut out = Vec::new();
    if before.end != now.end {
        out.push(format!("ended with {}, not {}", now.end, before.end));
        return out;
    }
    if kernel.launch.prints && sorted(&before.print) != sorted(&now.print) {
        out.push(format!("printed {:?}, not {:?}", now.print, before.print));
    }
    if before.buffers.len() != now.buffers.len() {
        out.push("another number of buffers".to_string());
    }
    let buffers = buffers(kernel);
    for (a, b) in before.buffers.iter().zip(&now.buffers) {
        let rule = buffers.get(a.number).map_or(Rule::Exact, |b| b.1);
        if (a.number, a.len) != (b.number, b.len) {
            out.push(format!("buffer {}: another length", a.number));
        } else if let Some(what) = differs(a, b, rule) {
            out.push(format!("buffer {}: {what}", a.number));
        }
    }
    out
}

/// Threads print in any order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn differs(a: &Contents, b: &Contents, rule: Rule) -> Option<String> {
    if a.digest == b.digest {
        return None;
    }
    if a.values.is_empty() {
        return Some("has changed".to_string());
    }
    let pieces = || {
        let size = a.piece;
        a.values.chunks(size).zip(b.values.chunks(size)).enumerate()
    };
    match rule {
        Rule::Ignored => None,
        Rule::Exact => {
            let mut wrong = pieces().filter(|(_, (x, y))| x != y);
            Some(match wrong.next() {
                Some((n, (x, y))) => format!(
                    "{} instead of {} at byte {} (and {} others of {} pieces looked at)",
                    data::to_hex(y),
                    data::to_hex(x),
                    a.offset(n),
                    wrong.count(),
                    a.values.len() / a.piece
                ),
                None => "differs, but not in what is looked at closely".to_string(),
            })
        }
        Rule::Close {
            float,
            relative,
            absolute,
        } => {
            let mut worst: Option<(f64, String)> = None;
            let mut count = 0;
            for (n, (x, y)) in pieces() {
                let (x, y) = (float.value(x), float.value(y));
                if x == y || (x.is_nan() && y.is_nan()) {
                    continue;
                }
                let error = (x - y).abs();
                let allowed = relative * x.abs() + absolute;
                // A NaN on one side only compares false.
                if error <= allowed {
                    continue;
                }
                count += 1;
                let badness = error / allowed;
                if !worst.as_ref().is_some_and(|(w, _)| *w >= badness) {
                    let text = format!("{y:e} instead of {x:e} at byte {}", a.offset(n));
                    worst = Some((badness, text));
                }
            }
            worst.map(|(_, text)| format!("{text}, the worst of {count}"))
        }
    }
}
