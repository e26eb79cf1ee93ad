//! The runtime's text, made ready to stand behind a user's module.

use super::{InstrumentError, Options, target_number};
use crate::ast::{Item, Module};
use crate::hook::names;
use crate::parse::parse;
use crate::tokens::{Kind, Tokens, one_line};
use std::collections::HashSet;

/// What is taken from the runtime.
pub(super) struct Runtime {
    /// `.version`.
    pub(super) version: (u32, u32),
    /// The number of the oldest target that can take it, 70 for `sm_70`.
    pub(super) target: u32,
    /// Declarations of the hooks, on one line: PTX wants them before the first call.
    pub(super) prototypes: String,
    /// The text without its header, its files and lines and its debugging sections.
    pub(super) text: String,
}

impl Runtime {
    /// Reads the options' runtime. `taken` are the names of the user's module: the runtime's own helpers make way for them.
    /// In a part of a program what other modules see is weak: it may be defined in them as well.
    pub(super) fn prepare(
        options: &Options<'_>,
        taken: &HashSet<&str>,
    ) -> Result<Runtime, InstrumentError> {
        let (text, weak) = (options.runtime, options.part);
        let module = parse(text).map_err(InstrumentError::RuntimeSyntax)?;
        let missing = |name: &&str| {
            !module
                .items
                .iter()
                .any(|i| matches!(i, Item::Function(f) if f.name == *name))
        };
        let mut called = names::FUNCTIONS.to_vec();
        if options.block_hooks() {
            called.extend(names::INTRA_BLOCK);
        }
        if options.cluster_hooks() {
            called.extend(names::CLUSTER);
        }
        if options.copy_hooks() {
            called.extend(names::COPIES);
        }
        if options.grid_wait() {
            called.push(names::GRID_WAIT);
        }
        if let Some(name) = called.iter().find(|n| missing(n)) {
            return Err(InstrumentError::Runtime(format!(
                "it does not define `{name}`"
            )));
        }
        let version = module.version.unwrap_or_default();
        let target = module
            .target
            .first()
            .and_then(|t| target_number(t))
            .unwrap_or(0);
        Ok(Runtime {
            version,
            target,
            prototypes: linkage(prototypes(&module, text, &called), weak),
            text: linkage(stripped(&module, text, taken), weak),
        })
    }
}

fn linkage(text: String, weak: bool) -> String {
    if weak {
        text.replace(".visible", ".weak")
    } else {
        text
    }
}

/// `.visible .func (.param .b64 r) name(…);` for each hook that may be called, blanks and comments pressed together.
fn prototypes(module: &Module<'_>, text: &str, called: &[&str]) -> String {
    let mut out = String::new();
    for item in &module.items {
        let Item::Function(function) = item else {
            continue;
        };
        let Some(body) = &function.body else { continue };
        if !called.contains(&function.name) {
            continue;
        }
        let head = text[function.span.start..body.start].trim_end_matches('{');
        out.push_str(&one_line(head));
        out.push_str("; ");
    }
    out
}

/// The runtime without `.version/.target/.address_size`, `.file/.loc` (ptxas refuses a second `.file 1`) and sections.
fn stripped(module: &Module<'_>, text: &str, taken: &HashSet<&str>) -> String {
    let own = module.items.iter().filter_map(|item| match item {
        Item::Function(f) => Some(f.name),
        Item::Variable(v) => Some(v.name),
        _ => None,
    });
    let clashes: HashSet<&str> = own
        .filter(|n| !n.starts_with(names::PREFIX) && taken.contains(n))
        .collect();
    let sections: Vec<_> = module
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Section { span, .. } => Some(span.clone()),
            _ => None,
        })
        .collect();
    let mut sections = sections.into_iter().peekable();
    let mut out = String::with_capacity(text.len());
    let tokens = Tokens::new(text);
    let mut i = 0;
    while i < tokens.len() {
        let start = tokens.start(i);
        if let Some(section) = sections.next_if(|s| s.start <= start) {
            while i < tokens.len() && tokens.start(i) < section.end {
                i += 1;
            }
            continue;
        }
        let word = tokens.text(i);
        match tokens.kind(i) {
            Kind::DotWord
                if matches!(
                    word,
                    ".version" | ".target" | ".address_size" | ".file" | ".loc"
                ) =>
            {
                // They are line-oriented: the line's end ends them.
                while i < tokens.len()
                    && !(tokens.kind(i) == Kind::Space && tokens.text(i).contains('\n'))
                {
                    i += 1;
                }
                continue;
            }
            Kind::Ident if clashes.contains(word) => {
                out.push_str(names::PREFIX);
                out.push_str(word);
            }
            Kind::LineComment | Kind::BlockComment | Kind::HashLine => {}
            _ => out.push_str(word),
        }
        i += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUB: &str = include_str!("../../tests/data/stub_runtime.ptx");

    #[test]
    fn header_files_and_sections_go_and_the_rest_stays() {
        let text = format!("{STUB}\n.section .debug_str {{\n$L__x:\n.b8 1\n}}\n");
        let runtime = Runtime::prepare(&Options::new(&text, ""), &HashSet::new()).unwrap();
        for gone in [
            ".version",
            ".target",
            ".address_size",
            ".file",
            ".loc",
            "debug_str",
            "$L__x",
            "//",
        ] {
            assert!(!runtime.text.contains(gone), "{gone}");
        }
        assert_eq!(runtime.version, (6, 4));
        assert_eq!(runtime.target, 70);
        let whole = format!(
            ".version 6.4\n.target sm_70\n.address_size 64\n{}",
            runtime.text
        );
        assert_eq!(
            parse(&whole).unwrap().items.len(),
            parse(STUB).unwrap().items.len()
        );
        assert_eq!(
            runtime.prototypes.matches(".func").count(),
            names::FUNCTIONS.len()
                + names::INTRA_BLOCK.len()
                + names::CLUSTER.len()
                + names::COPIES.len()
                + 1
        );
        let off = Options {
            intra_block: false,
            ..Options::new(&text, "")
        };
        let without = Runtime::prepare(&off, &HashSet::new()).unwrap();
        assert!(
            !without.prototypes.contains("barrier") && !without.prototypes.contains("block_sync(")
        );
        assert!(without.prototypes.contains("cluster_acquire("));
        assert!(!runtime.prototypes.contains('\n'));
    }

    #[test]
    fn the_runtimes_helpers_make_way_for_the_users_names() {
        let taken = HashSet::from(["stub_counter", "__gsan_access"]);
        let runtime = Runtime::prepare(&Options::new(STUB, ""), &taken).unwrap();
        assert!(runtime.text.contains("__gsan_stub_counter"));
        assert!(!runtime.text.contains(" stub_counter"));
        assert!(!runtime.text.contains("__gsan___gsan_access"));
    }

    #[test]
    fn a_runtime_without_a_hook_is_refused() {
        let text = STUB.replace("__gsan_fence", "other");
        let error = Runtime::prepare(&Options::new(&text, ""), &HashSet::new())
            .err()
            .unwrap();
        assert!(error.to_string().contains("__gsan_fence"), "{error}");
    }
}
