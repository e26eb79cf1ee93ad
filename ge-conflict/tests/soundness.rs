//! An independent check of what the pipeline leaves behind.
//!
//! [`orders_see_right_values`] runs every topological order of small random graphs (up to a bound per graph) on real
//! buffers, one per class of anchors that share memory, worked out here and not by the crate. A read is right if it finds
//! what its producer wrote, or what an operator made of it in place that runs before the reader. Left out, as documented:
//! * a pair that no edge orders: lint reports those of one output (`lint` is asked), and ARCHITECTURE.md names the ones that
//!   meet only through a chain of in-place operators;
//! * what is decided by the order of ids on a stream: a collective marked `_skip_rw_conflict` runs after its siblings with
//!   smaller ids, and so does an operator whose output takes over an input's memory.
//!
//! [`nothing_incompatible_shares_memory`] looks for attributes that can't share a class.

mod common;

use common::simulation::{Run, buffers};
use common::{Mix, Rng, module};
use ge_conflict::Stage;
use ge_conflict::cli;
use ge_conflict::io;
use ge_conflict::ir::{Graph, Kind, Module, NodeId, names};
use std::collections::{BTreeMap, BTreeSet};

fn pipeline(seed: u64, mix: Mix) -> Option<(String, Module)> {
    let text = module(&mut Rng::new(seed), mix).to_string();
    let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
    let (report, module) = cli::run(loaded, Stage::All, None);
    report.errors.is_empty().then_some((text, module))
}

#[test]
fn orders_see_right_values() {
    let mix = Mix {
        operators: 6,
        layout: false,
        subgraphs: false,
        loops: false,
    };
    let (mut graphs, mut orders, mut reads) = (0, 0, 0);
    for seed in 100_000..112_000 {
        let Some((text, module)) = pipeline(seed, mix) else {
            continue;
        };
        let mut run = Run::new(&module.graphs[0]);
        run.explore(&mut BTreeSet::new(), &mut BTreeMap::new());
        if let Some(w) = run.wrong {
            panic!("seed {seed}: {w}\n{text}\n{}", io::to_json(&module));
        }
        graphs += 1;
        orders += run.orders;
        reads += run.reads;
    }
    println!("{graphs} graphs, {orders} orders, {reads} reads");
    assert!(graphs >= 10_000, "only {graphs} graphs");
}

/// The same simulation must be able to fail: without the pipeline it finds wrong values.
#[test]
fn without_the_pipeline_values_are_wrong() {
    let mix = Mix {
        operators: 6,
        layout: false,
        subgraphs: false,
        loops: false,
    };
    let mut wrong = 0;
    for seed in 100_000..100_500 {
        let text = module(&mut Rng::new(seed), mix).to_string();
        let loaded = io::json::read("random.json", text.as_bytes()).expect("it reads");
        let mut run = Run::new(&loaded.module.graphs[0]);
        run.explore(&mut BTreeSet::new(), &mut BTreeMap::new());
        wrong += usize::from(run.wrong.is_some());
    }
    assert!(
        wrong > 20,
        "only {wrong} of 500 graphs are wrong to begin with"
    );
}

#[test]
fn nothing_incompatible_shares_memory() {
    let mix = Mix {
        operators: 8,
        layout: true,
        subgraphs: false,
        loops: false,
    };
    for seed in 200_000..204_000 {
        let Some((text, module)) = pipeline(seed, mix) else {
            continue;
        };
        let g = &module.graphs[0];
        let buffer = buffers(g);
        let mut members: BTreeMap<usize, Vec<(NodeId, bool, u32)>> = BTreeMap::new();
        for (k, b) in &buffer {
            members.entry(*b).or_default().push(*k);
        }
        for list in members.values_mut() {
            list.sort();
            for (n, a) in list.iter().enumerate() {
                for b in &list[n + 1..] {
                    if a.0 != b.0
                        && let Some(why) = clash(g, *a, *b).or_else(|| clash(g, *b, *a))
                    {
                        let name = |x: &(NodeId, bool, u32)| {
                            format!(
                                "{}.{}.{}",
                                g.node(x.0).name,
                                if x.1 { "in" } else { "out" },
                                x.2
                            )
                        };
                        panic!(
                            "seed {seed}: {} and {}: {why}\n{text}\n{}",
                            name(a),
                            name(b),
                            io::to_json(&module)
                        );
                    }
                }
            }
        }
    }
}

/// Pairs that can never share, worked out anew from the operators.
fn clash(g: &Graph, a: (NodeId, bool, u32), b: (NodeId, bool, u32)) -> Option<&'static str> {
    let (x, y) = (g.node(a.0), g.node(b.0));
    // Nobody reads an output without consumers: the rules leave it alone.
    if [a, b]
        .iter()
        .any(|x| !x.1 && g.node(x.0).outputs[x.2 as usize].to.is_empty())
    {
        return None;
    }
    let mem = |n: &ge_conflict::ir::Node, at: (NodeId, bool, u32)| {
        let d = if at.1 {
            &n.inputs[at.2 as usize].desc
        } else {
            &n.outputs[at.2 as usize].desc
        };
        d.mem_type
    };
    let (ma, mb) = (mem(x, a), mem(y, b));
    if ma.is_special() && mb.is_special() && ma != mb {
        return Some("two kinds of special memory");
    }
    let user_in = !a.1 && x.kind.is_data();
    let user_out = a.1 && x.kind == Kind::NetOutput;
    let fixed = !a.1 && (x.kind.is_const() || x.kind == Kind::Variable);
    if (user_in || user_out || fixed) && mb.is_special() {
        return Some("fixed memory and special memory");
    }
    if user_in && b.1 && y.kind == Kind::StreamSwitch {
        return Some("the user's input at a switch");
    }
    let out_run = |n: &ge_conflict::ir::Node, s| !b.1 && n.outputs.len() > 1 && n.attrs.flag(s);
    if user_out && (out_run(y, names::CO) || out_run(y, names::NPCO)) {
        return Some("the user's output in a run of outputs");
    }
    if fixed && b.1 && y.inputs.len() > 1 && y.attrs.flag(names::CI) {
        return Some("fixed memory in a run of inputs");
    }
    let in_run = |n: &ge_conflict::ir::Node, s| n.inputs.len() > 1 && n.attrs.flag(s);
    if a.1 && in_run(x, names::CI) && out_run(y, names::NPCO) {
        return Some("padded inputs and gapless outputs");
    }
    if a.1 && in_run(x, names::NPCI) && out_run(y, names::CO) {
        return Some("gapless inputs and padded outputs");
    }
    None
}
