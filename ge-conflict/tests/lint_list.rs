//! Lint's list of unordered pairs is complete: compared with a matrix of all pairs on small random graphs.

use ge_conflict::{Ctx, Stage, io, lint, passes};
use serde_json::{Value, json};

/// A small generator of numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// A variable with users, some of which write it, and control edges between some of them.
fn star(dice: &mut Dice) -> (Value, Vec<bool>, Vec<Vec<bool>>) {
    let n = 2 + dice.below(6) as usize;
    let writes: Vec<bool> = (0..n).map(|_| dice.below(2) == 0).collect();
    let mut before = vec![vec![false; n]; n];
    let mut nodes =
        vec![json!({ "name": "v", "type": "Variable", "inputs": [], "outputs": [{"name": "y0"}] })];
    for k in 0..n {
        let control: Vec<usize> = (0..k).filter(|_| dice.below(4) == 0).collect();
        for c in &control {
            before[*c][k] = true;
            for row in before.iter_mut().take(*c) {
                row[k] |= row[*c];
            }
        }
        let names: Vec<String> = control.iter().map(|c| format!("u{c}")).collect();
        let out = if writes[k] { "x0" } else { "y0" };
        nodes.push(json!({
            "name": format!("u{k}"), "type": "Op", "control": names, "inputs": [{"from": "v:0", "name": "x0"}],
            "outputs": [{"name": out}],
        }));
    }
    let graph = json!({ "name": "root", "parent": null, "nodes": nodes });
    (json!({ "graphs": [graph] }), writes, before)
}

#[test]
fn every_unordered_pair_is_listed() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let (mut some, mut beyond) = (0, 0);
    for round in 0..2_000 {
        let (input, writes, before) = star(&mut dice);
        let text = input.to_string();
        let loaded = io::json::read("star.json", text.as_bytes()).expect("it reads");
        let mut module = loaded.module;
        let top = module.family(ge_conflict::ir::GraphId(0))[0];
        let mut want = Vec::new();
        for a in 0..writes.len() {
            for b in a + 1..writes.len() {
                if (writes[a] || writes[b]) && !before[a][b] {
                    want.push((format!("u{a}"), format!("u{b}")));
                }
            }
        }
        let found = lint::find(&module, top, false);
        assert!(found.complete);
        let mut got: Vec<(String, String)> = found
            .pairs
            .iter()
            .map(|p| {
                let name = |id| module.graph(top).node(id).name.clone();
                let (a, b) = (name(p.writer.node), name(p.other.node));
                if a < b { (a, b) } else { (b, a) }
            })
            .collect();
        got.sort();
        assert_eq!(got, want, "round {round}: {text}");
        let first = lint::find(&module, top, true).pairs;
        assert_eq!(first.len(), want.len().min(1));
        some += usize::from(!want.is_empty());
        beyond += usize::from(want.len() > 1);
        let mut ctx = Ctx::new(&mut module, None);
        passes::run(&mut ctx, Stage::Lint);
        let listed = ctx.report.warnings.first().map_or(0, |w| {
            assert!(w.others.len() <= 11, "{:?}", w.others);
            1 + w.others.iter().filter(|o| o.starts_with('`')).count()
        });
        assert_eq!(listed, want.len().min(11), "round {round}: {text}");
    }
    assert!(some > 500 && beyond > 500, "{some} {beyond}");
}

/// Very many pairs: it takes no matrix of them, and the list says that it is not complete.
#[test]
fn a_list_that_is_too_long_says_so() {
    let mut nodes =
        vec![json!({ "name": "v", "type": "Variable", "inputs": [], "outputs": [{"name": "y0"}] })];
    for k in 0..3_000 {
        nodes.push(json!({
            "name": format!("u{k}"), "type": "Op", "inputs": [{"from": "v:0", "name": "x0"}], "outputs": [{"name": "x0"}],
        }));
    }
    let text =
        json!({ "graphs": [{ "name": "root", "parent": null, "nodes": nodes }] }).to_string();
    let mut module = io::json::read("star.json", text.as_bytes())
        .expect("it reads")
        .module;
    let mut ctx = Ctx::new(&mut module, None);
    passes::run(&mut ctx, Stage::Lint);
    let w = &ctx.report.warnings[0];
    let last = w.others.last().expect("others");
    assert!(
        last.starts_with("and at least ") && last.contains("check again"),
        "{last}"
    );
}
