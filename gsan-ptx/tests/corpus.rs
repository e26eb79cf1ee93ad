//! Instrumentation over real files: what may change, and that nothing is skipped.

mod common;

use common::{STUB, flat};
use gsan_ptx::ast::{Item, Module, Statement};
use gsan_ptx::hook::{Access, Order};
use gsan_ptx::instrument::{EntryInfo, Unsupported};
use gsan_ptx::{Instrumented, Options, instrument, parse};

fn files() -> Vec<(String, String)> {
    common::selection()
        .into_iter()
        .chain(common::whole_corpus("corpus").unwrap_or_default())
        .collect()
}

/// How much of something there is at least, in the selection alone and where the whole corpus is there too: a test that finds less
/// has seen nothing.
fn least<const N: usize>(selection: [u64; N], with_corpus: [u64; N]) -> [u64; N] {
    if common::has_whole_corpus() {
        with_corpus
    } else {
        selection
    }
}

fn run(name: &str, text: &str) -> Instrumented {
    instrument(text, &Options::new(STUB, name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The user's text as it stands in the result, rebuilt by dropping what names gsan: independent of how it was inserted.
fn statements_without_hooks<'a>(module: &Module<'a>, text: &'a str) -> Vec<&'a str> {
    let ours = |text: &str| text.contains("gsan_");
    let mut out = Vec::new();
    for statement in flat(module) {
        let span = match statement {
            Statement::Instruction(i) => i.span.clone(),
            Statement::Label { span, .. }
            | Statement::Registers { span, .. }
            | Statement::Pragma { span, .. }
            | Statement::Targets { span, .. }
            | Statement::CallPrototype { span, .. }
            | Statement::Unknown { span } => span.clone(),
            Statement::Variable(v) => v.span.clone(),
            Statement::Loc(l) => l.span.clone(),
            Statement::Block { .. } => continue,
        };
        if !ours(&text[span.clone()]) {
            out.push(&text[span]);
        }
    }
    out
}

#[test]
fn the_users_statements_stay_on_their_lines() {
    for (name, text) in files() {
        let result = run(&name, &text);
        assert!(result.user_text() == text, "{name}");
        let lines: Vec<&str> = text.lines().collect();
        for (n, (before, after)) in lines.iter().zip(result.text.lines()).enumerate() {
            if before.starts_with(".version") {
                continue;
            }
            // Every byte is still there, in order.
            let mut rest = after.bytes();
            assert!(
                before.bytes().all(|b| rest.any(|a| a == b)),
                "{name}:{}: {before:?} became {after:?}",
                n + 1
            );
            if !after.contains("gsan_") {
                assert_eq!(*before, after, "{name}:{}", n + 1);
            }
        }

        // The user's part of the result, parsed again: the same statements in the same order.
        let module = parse(&text).unwrap();
        let user_part: usize = result
            .text
            .split_inclusive('\n')
            .take(lines.len())
            .map(str::len)
            .sum();
        let part = &result.text[..user_part];
        let again = parse(part).unwrap_or_else(|e| panic!("{}", e.render(&name, part)));
        let mut users = statements_without_hooks(&module, &text);
        let mut kept = statements_without_hooks(&again, part);
        // The entry's own barrier is the one statement that does not name gsan, and the conversion back to the user's
        // register after a read of the shared memory's size names it.
        let barrier = |list: &mut Vec<&str>| list.retain(|s| *s != "bar.sync 0;");
        barrier(&mut users);
        barrier(&mut kept);
        assert_eq!(users, kept, "{name}");
        assert_eq!(
            module.items.len() + result.needs.calls.names().count(),
            again.items.len(),
            "{name}: the prototypes are added, nothing else"
        );
    }
}

/// What the text itself says, without the parser: an opcode at the start of a statement and a state space.
fn naive_count(text: &str) -> (usize, usize) {
    let (mut hooked, mut others) = (0, 0);
    let code: String = text
        .lines()
        .map(|l| l.split("//").next().unwrap())
        .collect::<Vec<_>>()
        .join("\n");
    // Two colons belong to a word, one ends a label.
    let code = code.replace("::", "$$");
    for statement in code.split([';', '{', '}', '\n', ':']) {
        let mut words = statement.split_whitespace();
        let mut word = words.next().unwrap_or("");
        if word.starts_with('@') {
            word = words.next().unwrap_or("");
        }
        let parts: Vec<&str> = word.split('.').collect();
        let private = parts
            .iter()
            .any(|p| p.starts_with("shared") || matches!(*p, "local" | "param" | "const"));
        match parts[0] {
            "ld" | "st" | "atom" | "red" if !private && parts.len() > 1 => hooked += 1,
            "cp" if parts.contains(&"global") => hooked += 1,
            "wmma" if parts.contains(&"global") => others += 1,
            "tex" | "tld4" | "suld" | "sust" | "sured" => others += 1,
            _ => {}
        }
    }
    (hooked, others)
}

/// The file's kernel bounds its registers and changes them.
fn blind(result: &Instrumented) -> bool {
    let listed = |u: &Unsupported| u.text.starts_with(".entry");
    result.unsupported.iter().any(listed)
}

#[test]
fn nothing_that_touches_global_memory_is_skipped() {
    // Accesses, those among them that are repeated or private, and what is listed.
    let mut found = [0u64; 4];
    for (name, text) in files() {
        let result = run(&name, &text);
        let (hooked, others) = naive_count(&text);
        let stats = result.stats;
        if blind(&result) {
            // A kernel that can have no hooks is listed as a whole.
            assert_eq!(
                (stats.sites(), stats.unsupported),
                (0, hooked as u64),
                "{name}"
            );
            continue;
        }
        let left_out = stats.repeated + stats.private_generic + stats.empty;
        assert_eq!(
            result.sites.len() as u64 + left_out,
            hooked as u64,
            "{name}"
        );
        assert_eq!(stats.sites(), result.sites.len() as u64, "{name}");
        // Calls of functions that are elsewhere are no accesses themselves.
        let access = |u: &&Unsupported| !u.partly && !u.text.starts_with("call");
        let unchecked = result.unsupported.iter().filter(access).count();
        assert_eq!(unchecked, others, "{name}: {:#?}", result.unsupported);
        assert_eq!(result.stats.unsupported, others as u64, "{name}");
        let counts = [
            hooked as u64,
            stats.repeated,
            stats.private_generic,
            others as u64,
        ];
        found.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    let least = least([600, 0, 2, 2], [800, 2, 51, 6]);
    assert!(
        found.iter().zip(least).all(|(n, least)| *n >= least),
        "{found:?} where {least:?} are the least: the corpus is not what it was"
    );
}

/// In modules without `setmaxnreg` every barrier of the block has its hooks on its line, unless nothing in the kernel is
/// checked, and every wait and strong shared access has its own.
#[test]
fn barriers_and_waits_have_their_hooks() {
    let mut found = [0u64; 2];
    for (name, text) in files() {
        let result = run(&name, &text);
        assert_eq!(
            result
                .entries
                .iter()
                .filter(|e| e.hooks)
                .all(|e| e.intra_block),
            !text.contains("setmaxnreg.") || result.entries.iter().all(|e| !e.hooks),
            "{name}"
        );
        if result.sites.is_empty() || result.entries.len() > 1 || text.contains("setmaxnreg.") {
            continue;
        }
        for (n, (user, after)) in text.lines().zip(result.text.lines()).enumerate() {
            let code = user.split("//").next().unwrap();
            let opcode = |o: &str| code.split([' ', '\t', ';', '{']).any(|w| w.starts_with(o));
            let block = ["bar.sync", "barrier.sync", "barrier.cta.sync", "bar.red"];
            let waits = block.iter().any(|b| opcode(b));
            let done = [
                "mbarrier.try_wait",
                "mbarrier.test_wait",
                "atom.shared",
                "red.shared",
            ]
            .iter()
            .any(|b| opcode(b))
                || opcode("ld.volatile.shared")
                || opcode("barrier.cluster.wait");
            // The entry's own barrier stands on the line of the opening brace.
            let hook = |name: &str| after.contains(&format!("call.uni __gsan_{name}, (%gsan_s"));
            let at = format!("{name}:{}: {after}", n + 1);
            assert_eq!(hook("barrier_after"), waits, "{at}");
            assert_eq!(
                hook("barrier_before"),
                waits || opcode("bar.arrive") || opcode("barrier.cta.arrive"),
                "{at}"
            );
            if done {
                assert!(hook("block_sync") || hook("cluster_acquire"), "{at}");
            }
            found[0] += u64::from(waits);
            found[1] += u64::from(done);
        }
    }
    let least = least([60, 2], [120, 5]);
    assert!(
        found.iter().zip(least).all(|(n, least)| *n >= least),
        "{found:?} where {least:?} are the least"
    );
}

#[test]
fn every_site_has_its_hooks_under_its_number() {
    for (name, text) in files() {
        let result = run(&name, &text);
        if blind(&result) {
            continue;
        }
        for (n, site) in result.sites.iter().enumerate() {
            let line = result.text.lines().nth(site.ptx_line as usize - 1).unwrap();
            let user = text.lines().nth(site.ptx_line as usize - 1).unwrap();
            let opcode = user[site.ptx_column as usize - 1..]
                .split(';')
                .next()
                .unwrap();
            let arguments = |hook: &str| {
                let call = line
                    .match_indices(hook)
                    .map(|(at, _)| &line[at..])
                    .find(|c| {
                        let list = c.split_once("(%gsan_s, ").map_or("", |(_, l)| l);
                        let numbers: Vec<&str> = list.split([',', ')']).map(str::trim).collect();
                        let op = numbers.get(1).copied().unwrap_or_default();
                        // The size of some copies is known at run time only.
                        (op == site.op.0.to_string()
                            || op == "%gsan_r" && opcode.contains("cp.async"))
                            && numbers.get(2) == Some(&n.to_string().as_str())
                    });
                call.is_some()
            };
            // A load's hook stands before the pragma that belongs to it, on another line.
            let pragma = text
                .lines()
                .nth((site.ptx_line as usize).saturating_sub(2))
                .unwrap()
                .contains("used_bytes_mask");
            let weak = site.op.order() == Order::Weak;
            if opcode.contains("async.bulk") {
                assert!(arguments("__gsan_copy"), "{name}:{}: {line}", site.ptx_line);
            } else if !pragma {
                assert_eq!(
                    arguments("__gsan_access"),
                    weak,
                    "{name}:{}: {line}",
                    site.ptx_line
                );
                assert_eq!(
                    arguments("__gsan_sync_before"),
                    !weak,
                    "{name}:{}: {line}",
                    site.ptx_line
                );
            }
            let returns = opcode.contains("ld.") || opcode.contains("atom");
            assert_eq!(
                arguments("__gsan_sync_after"),
                !weak && returns,
                "{name}:{}: {line}",
                site.ptx_line
            );
            assert_eq!(
                site.op.access() == Access::Cas,
                opcode.contains(".cas"),
                "{name}:{}",
                site.ptx_line
            );
        }
    }
}

#[test]
fn kernels_get_one_parameter_more_and_their_exits_are_seen() {
    for (name, text) in files() {
        let result = run(&name, &text);
        let (before, after) = (parse(&text).unwrap(), parse(&result.text).unwrap());
        let entries = |module: &Module<'_>| -> Vec<(String, usize)> {
            let found = module.items.iter().filter_map(|i| match i {
                Item::Function(f) if f.entry => Some((f.name.to_string(), f.params.len())),
                _ => None,
            });
            found.collect()
        };
        let expected: Vec<_> = entries(&before)
            .into_iter()
            .map(|(n, params)| (n, params + 1))
            .collect();
        assert_eq!(entries(&after), expected, "{name}");
        assert_eq!(result.entries.len(), expected.len());
        for entry in &result.entries {
            assert_eq!(
                entry.params.len() + 1,
                expected.iter().find(|e| e.0 == entry.name).unwrap().1,
                "{name}"
            );
            assert!(
                entry.params.iter().all(|p| p.size > 0 && p.align > 0),
                "{name}"
            );
        }
        // An exit hook per `ret` of an entry and per `exit`, at least.
        let mut stops = 0;
        for item in &before.items {
            let Item::Function(f) = item else { continue };
            let Some(body) = &f.body else { continue };
            let single = Module {
                items: vec![item.clone()],
                ..Module::default()
            };
            let hooks = |e: &EntryInfo| e.name == f.name && !e.hooks;
            if f.entry && result.entries.iter().any(hooks) {
                continue;
            }
            let found = flat(&single).into_iter().filter(|s| match s {
                Statement::Instruction(i) => i.opcode == "exit" || (f.entry && i.opcode == "ret"),
                _ => false,
            });
            stops += found.count();
            assert!(body.end > body.start);
        }
        let user_part: Vec<&str> = result.text.lines().take(text.lines().count()).collect();
        assert!(
            user_part.join("\n").matches("call.uni __gsan_exit").count() >= stops,
            "{name}"
        );
    }
}

#[test]
fn source_lines_are_known_where_the_module_has_them() {
    for (name, text) in files() {
        let result = run(&name, &text);
        let lines: Vec<&str> = text.lines().collect();
        for site in &result.sites {
            // The last `.loc` before it, searched upwards to the function's beginning; line 0 is the compiler's own code.
            let above = lines[..site.ptx_line as usize - 1].iter().rev();
            let mut above = above.take_while(|l| !l.starts_with('.'));
            let loc = above.find(|l| l.split_whitespace().next() == Some(".loc"));
            let line = loc.map_or("0", |l| l.split_whitespace().nth(2).unwrap());
            let known = line != "0" || loc.is_some_and(|l| l.contains("inlined_at"));
            assert_eq!(!site.places.is_empty(), known, "{name}:{}", site.ptx_line);
            if line != "0" {
                assert_eq!(
                    site.places[0].line.to_string(),
                    line,
                    "{name}:{}",
                    site.ptx_line
                );
            }
            assert!(
                site.places.iter().all(|p| p.line > 0 && !p.file.is_empty()),
                "{name}:{}",
                site.ptx_line
            );
        }
    }
}

#[test]
fn instrumented_modules_are_recognised() {
    for (name, text) in common::selection() {
        let once = run(&name, &text);
        assert!(!once.already_linked);
        let twice = run(&name, &once.text);
        assert!(
            twice.already_linked && twice.text == once.text && twice.sites.is_empty(),
            "{name}"
        );
    }
}
