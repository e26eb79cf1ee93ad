//! Graphs like those that compilers really see, of any size: transformer blocks with collectives, branches and loops,
//! weights that an optimizer updates in place, a cache that every block updates (one symbol with an anchor or more per block),
//! a mask that every block reads.

use std::fmt::Write;

struct Text {
    nodes: String,
    graphs: String,
    count: usize,
}

impl Text {
    fn node(&mut self, name: &str, ty: &str, inputs: &[&str], outputs: usize, more: &str) {
        let s = &mut self.nodes;
        if !s.is_empty() {
            s.push_str(",\n");
        }
        let _ = write!(s, "{{\"name\":\"{name}\",\"type\":\"{ty}\",\"inputs\":[");
        for (k, i) in inputs.iter().enumerate() {
            let (from, name) = i
                .split_once('@')
                .map_or_else(|| (*i, format!("x{k}")), |(f, n)| (f, n.to_owned()));
            let colon = if from.contains(':') { "" } else { ":0" };
            let comma = if k == 0 { "" } else { "," };
            let _ = write!(
                s,
                "{comma}{{\"from\":\"{from}{colon}\",\"name\":\"{name}\",\"shape\":[8,128]}}"
            );
        }
        s.push_str("],\"outputs\":[");
        for k in 0..outputs {
            let name = if inputs.first().is_some_and(|i| i.ends_with("@ref")) && k == 0 {
                "ref".into()
            } else {
                format!("y{k}")
            };
            let comma = if k == 0 { "" } else { "," };
            let _ = write!(s, "{comma}{{\"name\":\"{name}\",\"shape\":[8,128]}}");
        }
        let _ = write!(s, "]{more}}}");
        self.count += 1;
    }

    /// A subgraph that reads its parent's inputs.
    fn subgraph(&mut self, name: &str, node: &str, index: usize, inputs: usize, swap: bool) {
        let mut t = Text {
            nodes: String::new(),
            graphs: String::new(),
            count: 0,
        };
        for k in 0..inputs {
            t.node(
                &format!("{name}_d{k}"),
                "Data",
                &[],
                1,
                &format!(",\"attrs\":{{\"_parent_node_index\":{k}}}"),
            );
        }
        let last = format!("{name}_d{}", inputs - 1);
        t.node(&format!("{name}_op"), "Mul", &[&last, &last], 1, "");
        let op = format!("{name}_op");
        let outs: Vec<&str> = if swap { vec![&last, &op] } else { vec![&op] };
        t.node(&format!("{name}_out"), "NetOutput", &outs, 0, "");
        let _ = write!(
            self.graphs,
            ",\n{{\"name\":\"{name}\",\"parent\":{{\"graph\":\"root\",\"node\":\"{node}\",\"index\":{index}}},\"nodes\":[{}]}}",
            t.nodes
        );
        self.count += t.count;
    }
}

/// A module with about `operators` operators, as JSON.
pub fn module(operators: usize) -> String {
    const REF: &str = ",\"attrs\":{\"reference\":true}";
    let mut t = Text {
        nodes: String::new(),
        graphs: String::new(),
        count: 0,
    };
    t.node("x", "Data", &[], 1, "");
    t.node("mask", "Const", &[], 1, "");
    t.node("cache", "RefData", &[], 1, "");
    t.node("lr", "Const", &[], 1, "");
    let (mut h, mut cache) = ("x".to_owned(), "cache".to_owned());
    let mut weights = Vec::new();
    let mut b = 0;
    while t.count < operators {
        let n = |s: &str| format!("b{b}_{s}");
        for w in ["wq", "wk", "wo", "wf"] {
            t.node(&n(w), "Variable", &[], 1, "");
            weights.push((n(w), n("ffn")));
        }
        t.node(&n("ln"), "LayerNorm", &[&h], 1, "");
        t.node(&n("q"), "MatMul", &[&n("ln"), &n("wq")], 1, "");
        t.node(&n("k"), "MatMul", &[&n("ln"), &n("wk")], 1, "");
        t.node(
            &n("upd"),
            "ScatterUpdate",
            &[&format!("{cache}@ref"), &n("k")],
            1,
            REF,
        );
        t.node(&n("read"), "Gather", &[&n("upd"), &n("q")], 1, "");
        t.node(&n("score"), "BatchMatMul", &[&n("q"), &n("read")], 1, "");
        t.node(&n("masked"), "Add", &[&n("score"), "mask"], 1, "");
        t.node(
            &n("soft"),
            "Softmax",
            &[&n("masked")],
            1,
            ",\"attrs\":{\"_output_inplace_ability\":[[0,0]]}",
        );
        t.node(&n("o"), "MatMul", &[&n("soft"), &n("wo")], 1, "");
        t.node(
            &n("allreduce"),
            "HcomAllReduce",
            &[&n("o")],
            1,
            ",\"kernel_lib\":\"hccl\",\"attrs\":{\"_input_mutable\":true,\"is_atomic_node\":false}",
        );
        t.node(&n("res"), "Add", &[&n("allreduce"), &h], 1, "");
        t.node(
            &n("split"),
            "PhonySplit",
            &[&n("res")],
            2,
            ",\"attrs\":{\"_no_padding_continuous_output\":true,\"_output_reuse_input\":true}",
        );
        t.node(&n("g0"), "Gelu", &[&format!("{}:0", n("split"))], 1, "");
        t.node(&n("g1"), "Gelu", &[&format!("{}:1", n("split"))], 1, "");
        t.node(
            &n("cat"),
            "PhonyConcat",
            &[&n("g0"), &n("g1")],
            1,
            ",\"attrs\":{\"_no_padding_continuous_input\":true,\"_output_reuse_input\":true}",
        );
        t.node(&n("ffn"), "MatMul", &[&n("cat"), &n("wf")], 1, "");
        h = n("ffn");
        cache = n("upd");
        if b % 5 == 0 {
            t.node(&n("if"), "If", &["lr", &h], 1, "");
            t.subgraph(&n("then"), &n("if"), 0, 2, false);
            t.subgraph(&n("else"), &n("if"), 1, 2, false);
            h = n("if");
        }
        if b % 10 == 3 {
            t.node(&n("while"), "While", &[&h, &n("g0")], 2, "");
            t.subgraph(&n("cond"), &n("while"), 0, 2, false);
            t.subgraph(&n("body"), &n("while"), 1, 2, true);
            h = n("while");
        }
        if b % 4 == 0 {
            t.node(&n("both"), "HcomAllReduce", &[&h, &n("res")], 2,
                   ",\"kernel_lib\":\"hccl\",\"attrs\":{\"_input_mutable\":true,\"continuous_input\":true,\"is_atomic_node\":false}");
            h = n("both");
        }
        if b % 8 == 0 {
            t.node(&n("sw"), "StreamSwitch", &[&h], 0, "");
        }
        b += 1;
        // The optimizer's share: it updates the weights of finished blocks in place.
        if b % 16 == 0 {
            for (w, reader) in weights.drain(..) {
                t.node(
                    &format!("{w}_step"),
                    "ApplyMomentum",
                    &[&format!("{w}@ref"), "lr"],
                    1,
                    &format!("{REF},\"control\":[\"{reader}\"]"),
                );
            }
        }
    }
    t.node("out", "NetOutput", &[&h], 0, "");
    format!(
        "{{\"options\":{{}},\"graphs\":[{{\"name\":\"root\",\"parent\":null,\"nodes\":[\n{}]}}{}]}}",
        t.nodes, t.graphs
    )
}
