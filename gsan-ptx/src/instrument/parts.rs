//! The runtime's text, taken apart: a module gets what its hooks call, directly or through others, and nothing else.
//!
//! A function or variable is needed if a needed one names it, in whatever place: a call, an address that is taken, an initialiser. So a
//! call through a pointer finds its function too. What is needed in any case: the kernels, which the host launches; the variable that
//! the host fills in; and directives that no one can name.

use crate::ast::{Item, Module, ParseError};
use crate::hook::{Hooks, names};
use crate::parse::parse;
use crate::tokens::{Kind, Tokens, one_line};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// A runtime, read.
pub(super) struct Parts {
    /// The text that it was.
    source: Box<str>,
    /// `.version`.
    pub(super) version: (u32, u32),
    /// The number of the oldest target that can take it, 70 for `sm_70`.
    pub(super) target: u32,
    /// The text without its header, its files and lines, its comments and its debugging sections.
    text: String,
    parts: Vec<Part>,
    /// The parts that declare or define a name.
    named: HashMap<Box<str>, Vec<usize>>,
}

/// A directive at module level, with what follows it up to the next one.
#[derive(Default)]
struct Part {
    /// Where it ends in the text; it begins where the one before it ends.
    end: usize,
    /// What it declares: a line may declare several variables.
    names: Vec<Box<str>>,
    /// Needed in any case.
    always: bool,
    /// A function's declaration, on one line: PTX wants it before the first call.
    prototype: Option<String>,
    /// The parts that it names.
    uses: Vec<usize>,
}

/// How many runtimes are remembered: there is one for each format of cells.
const REMEMBERED: usize = 2;

static LAST: Mutex<Vec<Arc<Parts>>> = Mutex::new(Vec::new());

impl Parts {
    /// Of a runtime that was read lately, what is remembered: modules are many and runtimes few.
    pub(super) fn of(runtime: &str) -> Result<Arc<Parts>, ParseError> {
        let known = |list: &Vec<Arc<Parts>>| list.iter().find(|p| *p.source == *runtime).cloned();
        // What a panicking thread leaves is whole: the list changes in one step.
        let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known(&last()) {
            return Ok(found);
        }
        let parts = Arc::new(Parts::read(runtime)?);
        let mut list = last();
        list.insert(0, parts.clone());
        list.truncate(REMEMBERED);
        Ok(parts)
    }

    fn read(source: &str) -> Result<Parts, ParseError> {
        let module = parse(source)?;
        let (starts, mut parts) = directives(&module, source);
        let mut named: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        for (at, part) in parts.iter().enumerate() {
            for name in &part.names {
                named.entry(name.clone()).or_default().push(at);
            }
        }
        let mut text = String::with_capacity(source.len());
        let mut at = 0;
        for (start, kind, word) in kept(&module, source) {
            while starts.get(at + 1).is_some_and(|&next| next <= start) {
                parts[at].end = text.len();
                at += 1;
            }
            if kind == Kind::Ident
                && let Some(used) = named.get(word)
            {
                parts[at].uses.extend(used);
            }
            text.push_str(word);
        }
        for part in &mut parts[at..] {
            part.end = text.len();
        }
        for part in &mut parts {
            part.uses.sort_unstable();
            part.uses.dedup();
        }
        Ok(Parts {
            source: source.into(),
            version: module.version.unwrap_or_default(),
            target: module
                .target
                .first()
                .and_then(|t| super::target_number(t))
                .unwrap_or(0),
            text,
            parts,
            named,
        })
    }

    /// Whether it defines a function of that name.
    pub(super) fn defines(&self, function: &str) -> bool {
        let parts = self.named.get(function).into_iter().flatten();
        parts.copied().any(|at| self.parts[at].prototype.is_some())
    }

    /// Declarations of these functions.
    pub(super) fn prototypes(&self, calls: Hooks) -> String {
        let called = |p: &&Part| p.names.iter().any(|name| calls.contains(name));
        let prototypes = self.parts.iter().filter(called);
        prototypes.filter_map(|p| p.prototype.as_deref()).collect()
    }

    /// What a text needs that calls these functions. `taken` are the names of the user's module: the runtime's own helpers make way
    /// for them.
    pub(super) fn needed(&self, calls: Hooks, taken: &HashSet<&str>) -> String {
        let needed = self.reach(calls);
        let chosen = || (0..self.parts.len()).filter(|&at| needed[at]);
        let size = chosen().map(|at| self.slice(at).len()).sum();
        let mut out = String::with_capacity(size);
        let names = chosen().flat_map(|at| self.parts[at].names.iter());
        let clashes: HashSet<&str> = names
            .map(|name| &**name)
            .filter(|name| !name.starts_with(names::PREFIX) && taken.contains(name))
            .collect();
        for at in chosen() {
            match clashes.is_empty() {
                true => out.push_str(self.slice(at)),
                false => renamed(self.slice(at), &clashes, &mut out),
            }
        }
        out
    }

    fn slice(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.parts[before].end);
        &self.text[start..self.parts[at].end]
    }

    /// Which parts are needed.
    fn reach(&self, calls: Hooks) -> Vec<bool> {
        let called = calls.names().filter_map(|name| self.named.get(name));
        let always = (0..self.parts.len()).filter(|&at| self.parts[at].always);
        let mut waiting: Vec<usize> = called.flatten().copied().chain(always).collect();
        let mut needed = vec![false; self.parts.len()];
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut needed[at], true) {
                waiting.extend(&self.parts[at].uses);
            }
        }
        needed
    }
}

/// The parts, and where each begins in the source. Before the first one stands what belongs to none.
fn directives(module: &Module<'_>, source: &str) -> (Vec<usize>, Vec<Part>) {
    let mut starts = vec![0];
    let mut parts = vec![Part {
        always: true,
        ..Part::default()
    }];
    for item in &module.items {
        let (start, name, always) = match item {
            Item::Function(f) => (f.span.start, Some(f.name), f.entry),
            Item::Variable(v) => (v.span.start, Some(v.name), v.name == names::MODULE),
            Item::Other { span, .. } => (span.start, None, true),
            // They go.
            Item::Section { .. } => continue,
        };
        // Variables that are declared together stay together.
        if starts.last() != Some(&start) || parts.len() == 1 {
            starts.push(start);
            parts.push(Part::default());
        }
        let last = parts.len() - 1;
        let part = &mut parts[last];
        part.names.extend(name.map(Box::from));
        part.always |= always;
        if let Item::Function(f) = item
            && let (false, Some(body)) = (f.entry, &f.body)
        {
            let head = source[f.span.start..body.start].trim_end_matches('{');
            part.prototype = Some(one_line(head) + "; ");
        }
    }
    (starts, parts)
}

/// The tokens that stay, with where they begin: without `.version/.target/.address_size`, `.file/.loc` (ptxas refuses a second
/// `.file 1`), comments and sections.
fn kept<'t>(module: &Module<'_>, source: &'t str) -> Vec<(usize, Kind, &'t str)> {
    let sections = module.items.iter().filter_map(|item| match item {
        Item::Section { span, .. } => Some(span.clone()),
        _ => None,
    });
    let mut sections = sections.peekable();
    let tokens = Tokens::new(source);
    let mut out = Vec::with_capacity(tokens.len());
    let mut i = 0;
    while i < tokens.len() {
        let (start, kind, word) = (tokens.start(i), tokens.kind(i), tokens.text(i));
        if let Some(section) = sections.next_if(|s| s.start <= start) {
            while i < tokens.len() && tokens.start(i) < section.end {
                i += 1;
            }
            continue;
        }
        match (kind, word) {
            (Kind::DotWord, ".version" | ".target" | ".address_size" | ".file" | ".loc") => {
                // They are line-oriented: the line's end ends them.
                while i < tokens.len()
                    && !(tokens.kind(i) == Kind::Space && tokens.text(i).contains('\n'))
                {
                    i += 1;
                }
                continue;
            }
            (Kind::LineComment | Kind::BlockComment | Kind::HashLine, _) => {}
            _ => out.push((start, kind, word)),
        }
        i += 1;
    }
    out
}

/// A piece of the runtime with other names for these.
fn renamed(text: &str, names: &HashSet<&str>, out: &mut String) {
    let tokens = Tokens::new(text);
    for i in 0..tokens.len() {
        let word = tokens.text(i);
        if tokens.kind(i) == Kind::Ident && names.contains(word) {
            out.push_str(names::PREFIX);
        }
        out.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// A comment.
.version 6.4
.target sm_70
.address_size 64
\t.file\t1 \"x.rs\"
.func (.param .b32 r) /* forward */ helper(.param .b64 a)
;
.func unused;
.global .u32 own, other;
.visible .global .align 8 .b8 __gsan_module[24];
.global .u64 table[2] = {pointed, 0};
.visible .func __gsan_access(.param .b64 s)
{
\t.reg .b64 %rd<2>; .reg .b32 %r;
\t.loc\t1 7 2
\tmov.b64 %rd1, own;
\tcall.uni (%r), helper, (%rd1);
\tret;
}
.visible .func __gsan_fence() { .reg .b64 %rd; ld.global.b64 %rd, [table]; call %rd, (), p; ret; }
.func pointed() { ret; }
.func unused() { ret; }
.func (.param .b32 r) helper(.param .b64 a) { ret; }
.visible .entry __gsan_touch() { call.uni touched; ret; }
.func touched { ret; }
.section .debug_str {
$L__unused: .b8 1
}
";

    fn needed(calls: &[&str], taken: &[&str]) -> String {
        let mut set = Hooks::default();
        calls.iter().for_each(|name| set.insert(name));
        let taken = taken.iter().copied().collect();
        Parts::of(TEXT).unwrap().needed(set, &taken)
    }

    /// The functions and variables that a text declares or defines.
    fn names(text: &str) -> Vec<String> {
        let whole = format!(".version 6.4\n.target sm_70\n.address_size 64\n{text}");
        let items = parse(&whole).unwrap().items.into_iter();
        items
            .map(|item| match item {
                Item::Function(f) => f.name.to_string(),
                Item::Variable(v) => v.name.to_string(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn what_is_called_comes_with_all_that_it_names() {
        let always = ["__gsan_module", "__gsan_touch", "touched"];
        assert_eq!(names(&needed(&[], &[])), always);
        assert_eq!(
            names(&needed(&[names::ACCESS], &[])),
            [
                "helper",
                "own",
                "other",
                "__gsan_module",
                "__gsan_access",
                "helper",
                "__gsan_touch",
                "touched"
            ]
        );
        // A function that is called through a pointer.
        assert_eq!(
            names(&needed(&[names::FENCE], &[])),
            [
                "__gsan_module",
                "table",
                "__gsan_fence",
                "pointed",
                "__gsan_touch",
                "touched"
            ]
        );
    }

    #[test]
    fn header_comments_lines_and_sections_go() {
        let text = needed(&[names::ACCESS, names::FENCE], &[]);
        for gone in [
            ".version", ".target", ".address", ".file", ".loc", "//", "/*", "debug", "$L__",
        ] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        let parts = Parts::of(TEXT).unwrap();
        assert_eq!((parts.version, parts.target), ((6, 4), 70));
        assert!(parts.defines(names::ACCESS) && !parts.defines(names::EXIT));
        assert_eq!(
            parts.prototypes(Hooks::all()),
            ".visible .func __gsan_access(.param .b64 s); .visible .func __gsan_fence(); "
        );
    }

    #[test]
    fn helpers_make_way_for_the_users_names() {
        let text = needed(&[names::ACCESS], &["helper", "__gsan_access", "table"]);
        assert_eq!(text.matches("__gsan_helper").count(), 3, "{text}");
        assert!(!text.contains(" helper") && !text.contains("__gsan___gsan"));
    }

    #[test]
    fn of_a_damaged_runtime_nothing_is_remembered() {
        for _ in 0..2 {
            assert!(Parts::of(".version 6.4\n.func {").is_err());
        }
    }
}
