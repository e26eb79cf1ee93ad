//! Of the runtime a module gets what its hooks call, directly or through others: no less, and no more.

mod common;

use common::{STUB, kernel};
use gsan_ptx::ast::Item;
use gsan_ptx::hook::names;
use gsan_ptx::tokens::{Kind, Tokens};
use gsan_ptx::{Options, instrument, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn real_runtimes() -> Vec<String> {
    let names = ["runtime_wide.ptx", "runtime_reference.ptx"];
    let read = |name| std::fs::read_to_string(repository().join("gsan-device/ptx").join(name));
    names.iter().map(|name| read(name).unwrap()).collect()
}

/// The corpus, the tests' kernels, and the texts that stand in scenarios.
fn modules() -> Vec<(String, String)> {
    let mut all = common::selection();
    all.extend(common::whole_corpus("needed").unwrap_or_default());
    for (path, text) in common::files_below(&repository().join("tests"), &["ptx", "toml"]) {
        if path.ends_with(".ptx") {
            all.push((path, text));
            continue;
        }
        let inline = text.split("ptx = '''").skip(1);
        let inline = inline.filter_map(|rest| rest.split_once("'''"));
        all.extend(inline.map(|(ptx, _)| (path.clone(), ptx.trim_start().to_string())));
    }
    let mut seen = BTreeSet::new();
    // Some of them are wrong on purpose.
    all.retain(|(_, text)| seen.insert(text.clone()) && parse(text).is_ok());
    all
}

/// What each function and variable of a text names, by the text's words alone, and which are defined there.
type Graph = (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>);

fn graph(text: &str) -> Graph {
    let module = parse(text).unwrap();
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut defined = BTreeSet::new();
    for item in &module.items {
        let (name, span, whole) = match item {
            Item::Function(f) => (f.name, f.span.clone(), f.body.is_some()),
            Item::Variable(v) => (v.name, v.span.clone(), v.linkage != Some("extern")),
            _ => continue,
        };
        let tokens = Tokens::new(&text[span]);
        let idents = (0..tokens.len()).filter(|&i| tokens.kind(i) == Kind::Ident);
        let used = words.entry(name.to_string()).or_default();
        used.extend(idents.map(|i| tokens.text(i).to_string()));
        if whole {
            defined.insert(name.to_string());
        }
    }
    (words, defined)
}

/// What is left of the runtime in a result, with what is wrong about it.
fn check(name: &str, user: &str, runtime: &(String, Graph), part: bool) -> usize {
    let (runtime, (all, _)) = runtime;
    let options = Options {
        part,
        ..Options::new(runtime, name)
    };
    // Modules that are linked with the runtime, and those that no runtime fits.
    let Ok(result) = instrument(user, &options) else {
        return 0;
    };
    if result.already_linked {
        assert!(result.text == user && result.needs.calls.names().count() == 0);
        return 0;
    }
    let (words, defined) = graph(&result.text);
    let users: BTreeSet<String> = graph(user).0.into_keys().collect();
    let calls: BTreeSet<&str> = users
        .iter()
        .flat_map(|user| &words[user])
        .filter(|word| word.starts_with(names::PREFIX) && *word != names::LAUNCH)
        .map(String::as_str)
        .collect();
    assert_eq!(calls, result.needs.calls.names().collect(), "{name}");
    let is_kernel = |name: &str| runtime.contains(&format!(".entry {name}"));
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut waiting: Vec<&str> = calls.into_iter().collect();
    waiting.push(names::MODULE);
    waiting.extend(
        all.keys()
            .map(String::as_str)
            .filter(|name| is_kernel(name)),
    );
    while let Some(name) = waiting.pop() {
        if all.contains_key(name) && reached.insert(name) {
            waiting.extend(all[name].iter().map(String::as_str));
        }
    }
    for needed in &reached {
        assert!(defined.contains(*needed), "{name}: `{needed}` is missing");
    }
    for left in words.keys().filter(|word| !users.contains(*word)) {
        assert!(
            reached.contains(left.as_str()),
            "{name}: nobody needs `{left}`"
        );
    }
    reached.len()
}

#[test]
fn a_module_gets_what_it_calls_and_nothing_else() {
    let runtimes = real_runtimes().into_iter().map(|text| {
        let graph = graph(&text);
        (text, graph)
    });
    let runtimes: Vec<_> = runtimes.collect();
    let modules = modules();
    let mut sizes = BTreeSet::new();
    for (n, (name, text)) in modules.iter().enumerate() {
        // Every module with one of the runtimes, in one of the ways; the stand-in's graph has next to no edges.
        sizes.insert(check(name, text, &runtimes[n % 2], n % 4 > 1));
    }
    assert!(modules.len() >= 60, "{}", modules.len());
    assert!(sizes.len() >= 8, "{sizes:?}");
}

#[test]
fn what_is_not_called_is_not_there() {
    let text = |body: &str| {
        let module = kernel(body);
        let result = instrument(&module, &Options::new(&real_runtimes()[0], "t.ptx")).unwrap();
        (result.text, result.needs.calls)
    };
    // Nothing to check: only what the host needs.
    let (nothing, calls) = text("ret;");
    assert_eq!(calls.names().count(), 0);
    for needed in [names::MODULE, "__gsan_join_rows", "__gsan_touch"] {
        assert!(nothing.contains(needed), "{needed}");
    }
    assert!(!nothing.contains(names::BLOCK_ENTER) && !nothing.contains(names::ACCESS));
    let (plain, _) = text("ld.global.u32 %r1, [%rd1]; ret;");
    let (strong, _) = text("ld.acquire.gpu.global.u32 %r1, [%rd1]; ret;");
    let (copy, _) = text(
        "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64; cp.async.bulk.commit_group; ret;",
    );
    for (text, has, has_not) in [
        (&plain, names::ACCESS, names::SYNC_BEFORE),
        (&strong, names::SYNC_AFTER, names::FENCE),
        (&copy, names::COPY_LEAVE, names::COPY_TENSOR),
    ] {
        assert!(text.contains(has) && !text.contains(has_not), "{has}");
    }
    assert!(nothing.len() < plain.len() && plain.len() < strong.len());
}

/// The hooks of a function that loses them are not called.
#[test]
fn what_only_a_function_without_hooks_would_call_is_not_there() {
    let bound =
        kernel("setmaxnreg.dec.sync.aligned.u32 24; ld.acquire.gpu.global.u32 %r1, [%rd1]; ret;")
            .replace("(.param .u64 p)", "(.param .u64 p) .maxnreg 168");
    let result = instrument(&bound, &Options::new(STUB, "t.ptx")).unwrap();
    assert!(!result.entries[0].hooks);
    assert_eq!(result.needs.calls.names().count(), 0);
    assert!(!result.text.contains(names::SYNC_BEFORE));
}
