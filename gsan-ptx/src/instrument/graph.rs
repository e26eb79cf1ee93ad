//! Which functions keep their hooks, once the whole module has been read.
//!
//! A kernel needs hooks if something is checked in it or in a function that it may call; otherwise nothing can race, and it gets
//! none. A function keeps its hooks if such a kernel may call it: what it does for order matters then. And where a function with
//! hooks may be called by another kernel, that kernel needs its own, because hooks look for the state that a kernel's entry makes.
//!
//! **Kernels without calls.** ptxas assembles a call only where the warp has as many registers as any place of the kernel
//! (docs/instrumentation.md has the experiments). A kernel with a bound on its registers whose `setmaxnreg` goes beyond or below it
//! can have no hooks, and neither can the functions that it may call. With [`super::Options::apart`] there are none of that kind.
//!
//! Everything is linear in functions and calls.

use super::externs;
use super::registers_bound::Change;
use std::collections::HashMap;

/// A function with a body.
pub(super) struct Node<'m> {
    pub(super) name: &'m str,
    pub(super) entry: bool,
    /// It has hooks that check an access, or that its result depends on.
    pub(super) checks: bool,
    /// It has hooks.
    pub(super) hooks: bool,
    pub(super) change: Change,
    /// A kernel's bound on its registers.
    pub(super) bound: Option<u64>,
    /// Names of the functions that it calls.
    pub(super) calls: Vec<&'m str>,
    /// It calls through a register.
    pub(super) indirect: bool,
}

/// What becomes of the functions, by their index.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) keep: Vec<bool>,
    /// Kernels with something to check that can have no hooks.
    pub(super) blind: Vec<usize>,
    /// Functions without hooks, because one of those kernels may call them, that others call too.
    pub(super) silenced: Vec<usize>,
    /// Such a kernel that calls functions of other modules, which do have hooks.
    pub(super) unlinkable: Option<usize>,
}

/// `part`: functions may be called from other modules, and theirs from here. `aliases`: names may stand for other functions. `apart`:
/// the runtime is linked, so that ptxas takes calls everywhere.
pub(super) fn decide(nodes: &[Node<'_>], part: bool, aliases: bool, apart: bool) -> Verdict {
    let n = nodes.len();
    let all = || 0..n;
    let graph = Graph::new(nodes, part, aliases);
    let some =
        |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> { all().filter(|&i| wanted(i)).collect() };

    let changed = graph.up(some(&|i| !nodes[i].entry && nodes[i].change.any));
    let blind = |i: usize| match nodes[i].bound {
        Some(bound) if nodes[i].entry && !apart => changed[i] || nodes[i].change.leaves(bound),
        _ => false,
    };
    let blind: Vec<bool> = all().map(blind).collect();
    let tainted = graph.down(some(&|i| blind[i]));
    let silent = |i: usize| blind[i] || tainted[i];
    let wanted = |i: usize| nodes[i].checks || graph.leaves_module[i];
    let checked = graph.up(some(&wanted));
    let away = graph.up(some(&|i| graph.leaves_module[i]));
    let needed = graph.up(some(&|i| wanted(i) && !silent(i)));
    let called = graph.down(some(&|i| nodes[i].entry));
    let others = graph.down(some(&|i| nodes[i].entry && !blind[i]));

    // From the kernels that need hooks down to the functions that have some, and from those up to their other kernels.
    let mut below = vec![false; n + 1];
    let mut above = vec![false; n + 1];
    let root = |i: usize| match nodes[i].entry {
        true => needed[i] && !blind[i],
        // Whoever calls it is not known here.
        false => part || !called[i],
    };
    let mut waiting = some(&root);
    waiting.iter().for_each(|&i| below[i] = true);
    while let Some(i) = waiting.pop() {
        for &next in &graph.callees[i] {
            if !std::mem::replace(&mut below[next], true) {
                waiting.push(next);
            }
        }
        if i < n && nodes[i].hooks && !silent(i) && !above[i] {
            above[i] = true;
            let mut climbing = vec![i];
            while let Some(at) = climbing.pop() {
                for &caller in &graph.callers[at] {
                    if std::mem::replace(&mut above[caller], true) {
                        continue;
                    }
                    climbing.push(caller);
                    if caller < n && nodes[caller].entry && !blind[caller] && !below[caller] {
                        below[caller] = true;
                        waiting.push(caller);
                    }
                }
            }
        }
    }
    Verdict {
        keep: all().map(|i| below[i] && !silent(i)).collect(),
        blind: some(&|i| blind[i] && checked[i]),
        silenced: some(&|i| {
            tainted[i] && nodes[i].hooks && (part || others[i] && (nodes[i].checks || below[i]))
        }),
        unlinkable: all().find(|&i| blind[i] && away[i]),
    }
}

struct Graph {
    callees: Vec<Vec<usize>>,
    callers: Vec<Vec<usize>>,
    /// It may call what is in another module, where functions have hooks too.
    leaves_module: Vec<bool>,
}

impl Graph {
    /// Behind the functions stands one more node: "any function", which is what a call through a register may reach.
    fn new(nodes: &[Node<'_>], part: bool, aliases: bool) -> Graph {
        let n = nodes.len();
        let mut by_name = HashMap::with_capacity(n);
        for (i, node) in nodes.iter().enumerate().filter(|(_, node)| !node.entry) {
            by_name.entry(node.name).or_insert(i);
        }
        let mut callees = vec![Vec::new(); n + 1];
        let mut leaves_module = vec![false; n];
        callees[n].extend((0..n).filter(|&i| !nodes[i].entry));
        for (i, node) in nodes.iter().enumerate() {
            let mut any = node.indirect;
            for name in &node.calls {
                match by_name.get(name) {
                    Some(&callee) => callees[i].push(callee),
                    // The driver's functions have no hooks and call none.
                    None if externs::of_the_driver(name).is_some() => {}
                    None => {
                        leaves_module[i] |= part;
                        any |= aliases;
                    }
                }
            }
            if any {
                leaves_module[i] |= part;
                callees[i].push(n);
            }
        }
        let mut callers = vec![Vec::new(); n + 1];
        for (i, list) in callees.iter().enumerate() {
            for &callee in list {
                callers[callee].push(i);
            }
        }
        Graph {
            callees,
            callers,
            leaves_module,
        }
    }

    /// These and all that they may call.
    fn down(&self, from: Vec<usize>) -> Vec<bool> {
        reach(from, &self.callees)
    }

    /// These and all that may call them.
    fn up(&self, from: Vec<usize>) -> Vec<bool> {
        reach(from, &self.callers)
    }
}

fn reach(mut waiting: Vec<usize>, edges: &[Vec<usize>]) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    waiting.iter().for_each(|&i| reached[i] = true);
    while let Some(i) = waiting.pop() {
        for &next in &edges[i] {
            if !std::mem::replace(&mut reached[next], true) {
                waiting.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node<'m>(name: &'m str, calls: &[&'m str]) -> Node<'m> {
        Node {
            name,
            entry: name.starts_with('k'),
            checks: name.contains('!'),
            hooks: !name.contains('0'),
            change: Change::default(),
            bound: None,
            calls: calls.to_vec(),
            indirect: false,
        }
    }

    fn kept<'m>(nodes: &[Node<'m>], part: bool) -> Vec<&'m str> {
        let verdict = decide(nodes, part, false, false);
        let kept = nodes.iter().zip(verdict.keep).filter(|(_, keep)| *keep);
        kept.map(|(node, _)| node.name).collect()
    }

    #[test]
    fn a_kernel_is_kept_for_what_its_functions_check() {
        let nodes = [
            node("f!", &[]),
            node("g", &["f!"]),
            node("k1", &["g"]),
            node("k2", &["h"]),
            node("h", &[]),
            node("k!", &[]),
        ];
        assert_eq!(kept(&nodes, false), ["f!", "g", "k1", "k!"]);
        // Functions that others may call keep theirs, and so do kernels that call what is elsewhere.
        assert_eq!(kept(&nodes, true), ["f!", "g", "k1", "k2", "h", "k!"]);
        assert_eq!(kept(&[node("k", &["elsewhere"])], true), ["k"]);
        assert!(kept(&[node("k", &["vprintf", "malloc"])], true).is_empty());
        assert!(kept(&[node("k", &["elsewhere"])], false).is_empty());
        // Nobody in the module calls it.
        assert_eq!(kept(&[node("f", &[]), node("k", &[])], false), ["f"]);
    }

    #[test]
    fn a_function_with_hooks_wants_them_of_all_its_kernels() {
        let nodes = [
            node("f", &[]),
            node("k!", &["f"]),
            node("k2", &["f", "g"]),
            node("g", &[]),
            node("k3", &["g"]),
            node("k4", &["h0"]),
            node("h0", &[]),
        ];
        assert_eq!(kept(&nodes, false), ["f", "k!", "k2", "g", "k3"]);
        // Without hooks of its own it brings none upon others.
        let nodes = [node("f0", &[]), node("k!", &["f0"]), node("k2", &["f0"])];
        assert_eq!(kept(&nodes, false), ["f0", "k!"]);
    }

    #[test]
    fn a_call_through_a_register_may_reach_any_function() {
        let indirect = |name| Node {
            indirect: true,
            ..node(name, &[])
        };
        let nodes = [node("f!", &[]), indirect("k1"), node("k2", &[])];
        assert_eq!(kept(&nodes, false), ["f!", "k1"]);
        assert_eq!(kept(&[indirect("k1")], true), ["k1"]);
        assert!(
            decide(
                &[node("f!", &[]), node("k", &["alias"])],
                false,
                true,
                false
            )
            .keep[1]
        );
    }

    #[test]
    fn kernels_that_can_have_no_calls_silence_their_functions() {
        let bounded = |name, calls: &[&'static str]| Node {
            bound: Some(168),
            change: Change {
                any: true,
                below: true,
                most: 232,
            },
            ..node(name, calls)
        };
        let nodes = [
            node("f!", &[]),
            bounded("k1", &["f!"]),
            node("k2!", &["f!"]),
            bounded("k3", &["g0"]),
            node("g0", &[]),
        ];
        let verdict = decide(&nodes, false, false, false);
        assert_eq!(kept(&nodes, false), ["k2!"]);
        assert_eq!((verdict.blind, verdict.silenced), (vec![1], vec![0]));
        // Linked with the runtime, all have theirs.
        let apart = decide(&nodes, false, false, true);
        assert!(apart.blind.is_empty() && apart.silenced.is_empty());
        // `k3` and what it calls have nothing to check.
        assert_eq!(apart.keep, [true, true, true, false, false]);
        // Also where that leaves such a kernel with nothing to check.
        let alone = [node("f!", &[]), bounded("k1", &["f!"]), node("k2", &["f!"])];
        let verdict = decide(&alone, false, false, false);
        assert_eq!((verdict.keep, verdict.silenced), (vec![false; 3], vec![0]));
        assert!(decide(&alone[..2], false, false, false).silenced.is_empty());
        // What a function changes concerns the kernels with a bound that may call it.
        let mut nodes = [bounded("f", &[]), node("k!", &["f"]), node("k2!", &["f"])];
        nodes[1].bound = Some(100);
        let verdict = decide(&nodes, false, false, false);
        assert_eq!(verdict.blind, [1]);
        assert!(verdict.keep[2] && !verdict.keep[0]);
        assert_eq!(
            decide(&[bounded("k", &["away"])], true, false, false).unlinkable,
            Some(0)
        );
        assert_eq!(
            decide(&[bounded("k!", &[])], true, false, false).unlinkable,
            None
        );
    }
}
