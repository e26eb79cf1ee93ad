//! Files: what is read from each format, what bad files are told, and that no input makes a reader panic.

mod common;

use common::{Mix, Rng, module};
use ge_conflict::Stage;
use ge_conflict::cli;
use ge_conflict::io::{self, Loaded, ReadError};
use ge_conflict::ir::{Attr, GraphId, KernelLib};

fn read(name: &str, text: &str) -> Result<Loaded, ReadError> {
    io::read(name, text.as_bytes(), None)
}

const DUMP: &str = r#"
name: "model" version: 1
# a comment
graph {
  name: "root"
  input: "x:0"
  op { name: "x" type: "Data" id: 0 output_desc { name: "y" dtype: DT_FLOAT shape { dim: 4 dim: 4 } layout: "ND" size: 64 } }
  op { name: "v" type: "Variable" id: 1 output_desc { name: "y" } }
  op {
    name: "ar" type: "HcomAllReduce" id: 2 stream_id: 3
    input: "x:0" input: "" input: "v:-1"
    input_name: "a" input_name: "b"
    attr { key: "_input_mutable" value { b: true } }
    attr { key: "_ge_attr_op_kernel_lib_name" value { s: "ops_kernel_info_hccl" } }
    attr { key: "ints" value { list { i: 1 i: -2 val_type: VT_LIST_INT } } }
    attr { key: "nested" value { list_list_int { list_list_i { list_i: 1 list_i: 2 } list_list_i { list_i: 3 } } } }
    attr { key: "floats" value { list { f: 1.5 f: 2 } } }
    attr { key: "f" value { f: 1e-3 } }
    attr { key: "raw" value { bt: "\000\377" } }
    attr { key: "dt" value { dt: DT_INT32 } }
    attr { key: "fn" value { func { name: "g" } } }
    attr { key: "long" value { s: "one " 'two' } }
    input_desc < name: "a" dtype: DT_FLOAT shape { dim: [4, 4] } attr { key: "_parent_node_index" value { i: 1 } } >
    input_desc { }
    output_desc { name: "y" reuse_input: true reuse_input_index: 0 }
    output_i: [512, 1024]
    brand_new: 5
  }
  op { name: "call" type: "PartitionedCall" id: 3 input: "ar:0" input_desc { } output_desc { } subgraph_name: "sub" }
  op { name: "out" type: "NetOutput" id: 4 input: "call:0" }
}
graph {
  name: "sub"
  op { name: "d" type: "Data" attr { key: "_parent_node_index" value { i: 0 } } output_desc { } }
  op { name: "so" type: "NetOutput" input: "d:0" }
}
"#;

#[test]
fn a_text_dump_is_read_with_all_it_has() {
    let l = read("ge_proto_00000001_graph_1_Build.txt", DUMP).expect("it reads");
    assert!(l.defects.is_empty(), "{:?}", l.defects);
    assert_eq!(l.notes.len(), 1, "{:?}", l.notes);
    assert!(
        l.notes[0].contains("brand_new") && l.notes[0].contains(":27:5:"),
        "{}",
        l.notes[0]
    );
    let root = l.module.graph(GraphId(0));
    let ar = root.node(root.find("ar").expect("ar"));
    assert_eq!(
        (
            ar.inputs.len(),
            ar.outputs.len(),
            ar.control_in.len(),
            ar.stream
        ),
        (2, 1, 1, 3)
    );
    assert_eq!(ar.inputs[0].name, "a");
    assert_eq!(ar.kernel_lib, Some(KernelLib::Hccl));
    assert_eq!(ar.outputs[0].desc.reuse_input, Some(0));
    assert_eq!(ar.inputs[0].desc.dims(), [4, 4]);
    let get = |k: &str| ar.attrs.get(k).cloned();
    let ints = |l: &[i64]| Attr::List(l.iter().copied().map(Attr::Int).collect());
    assert_eq!(get("ints"), Some(ints(&[1, -2])));
    assert_eq!(
        get("nested"),
        Some(Attr::List(vec![ints(&[1, 2]), ints(&[3])]))
    );
    assert_eq!(
        get("floats"),
        Some(Attr::List(vec![Attr::Float(1.5), Attr::Float(2.0)]))
    );
    assert_eq!(get("raw"), Some(Attr::Bytes(vec![0, 255])));
    assert_eq!(get("long"), Some(Attr::Str("one two".into())));
    assert_eq!(get("output_i"), Some(ints(&[512, 1024])));
    assert!(matches!(get("fn"), Some(Attr::Other(_))));
    assert!(ar.extra.iter().any(|(k, v)| k == "brand_new" && *v == 5));
    let sub = l.module.graph(GraphId(1)).parent.expect("it hangs");
    assert_eq!(root.node(sub.node).name, "call");
    // The same through JSON.
    let json = io::to_json(&l.module);
    let again = read("again.json", &json).expect("JSON reads");
    assert_eq!(io::to_json(&again.module), json);
}

#[test]
fn bad_files_are_told_where_and_what_was_expected() {
    let cases: &[(&str, &str, usize, usize, &str)] = &[
        (
            "a.json",
            "{ \"graphs\": [\n  { \"name\": 5 } ] }",
            2,
            13,
            "expected a string",
        ),
        ("a.json", "{ \"graphs\": [", 1, 13, "EOF"),
        ("a.json", "{}", 1, 1, "expected the key \"graphs\""),
        (
            "a.json",
            "{\"graphs\":[{\"name\":\"g\",\"name\":\"h\"}]}",
            1,
            0,
            "duplicate field",
        ),
        (
            "a.json",
            "{\"graphs\":[{\"name\":\"g\",\"nodes\":[{\"name\":\"n\",\"type\":\"T\",\"outputs\":[{\"mem_type\":\"x\"}]}]}]}",
            1,
            0,
            "memory type",
        ),
        (
            "d.txt",
            "graph {\n  name \"x\" }",
            2,
            8,
            "expected ':' or '{'",
        ),
        (
            "d.txt",
            "graph {\n  name: \"x",
            2,
            9,
            "expected the end of this text",
        ),
        (
            "d.txt",
            "graph { op { name: \"n\" } }",
            1,
            9,
            "expected a \"type\"",
        ),
        (
            "d.txt",
            "graph { op { name: \"n\" type: \"T\" id: abc } }",
            1,
            34,
            "expected a whole number",
        ),
        (
            "d.txt",
            "name: \"x\"",
            1,
            1,
            "expected at least one \"graph {\"",
        ),
        (
            "d.txt",
            "graph { name: \"g\" ",
            1,
            19,
            "expected a field's name or '}'",
        ),
        ("m.onnx", "\u{1}", 1, 2, "expected"),
    ];
    for (name, text, line, column, what) in cases {
        let e = read(name, text).expect_err(text);
        assert_eq!(e.line, *line, "{text}: {e}");
        assert!(*column == 0 || e.column == *column, "{text}: {e}");
        assert!(e.what.contains(what), "{text}: {e}");
        assert!(e.to_string().starts_with(&format!("{name}:{line}:")), "{e}");
    }
}

#[test]
fn defects_name_graph_and_node() {
    let node = |s: &str| format!("{{\"graphs\":[{{\"name\":\"g\",\"nodes\":[{s}]}}]}}");
    for (text, code, who) in [
        (node(r#"{"name":"n","type":"T","inputs":[{"from":"m:0"}]}"#), "DANGLING_EDGE", "n"),
        (node(r#"{"name":"m","type":"T"},{"name":"n","type":"T","inputs":[{"from":"m:0"}]}"#), "DANGLING_EDGE", "n"),
        (node(r#"{"name":"n","type":"T","control":["m"]}"#), "DANGLING_EDGE", "n"),
        (node(r#"{"name":"n","type":"T"},{"name":"n","type":"T"}"#), "DUPLICATE_NAME", "n"),
        (node(r#"{"name":"a","type":"T","control":["b"]},{"name":"b","type":"T","control":["a"]}"#), "CYCLE", "a"),
        (r#"{"graphs":[{"name":"g","nodes":[{"name":"c","type":"PartitionedCall","inputs":[]}]},
            {"name":"s","parent":{"graph":"g","node":"c","index":0},"nodes":[
             {"name":"n","type":"Data","attrs":{"_parent_node_index":3},"outputs":[{}]}]}]}"#.to_owned(), "BAD_PARENT_INDEX", "n"),
        (r#"{"graphs":[{"name":"g","nodes":[]},{"name":"s","parent":{"graph":"g","node":"n","index":0},"nodes":[]}]}"#.to_owned(), "BAD_PARENT", "n"),
    ] {
        let (report, _) = cli::run(read("a.json", &text).expect("it reads"), Stage::All, None);
        let e = report.errors.first().unwrap_or_else(|| panic!("{text}: no error"));
        assert_eq!((e.code, report.exit_code()), (code, 2), "{text}");
        assert!(e.node.as_deref().is_none_or(|n| n == who || who == "a"), "{e:?}");
        assert!(e.why.contains("graph "), "{e:?}");
    }
    // An old-style loop has a cycle and is fine.
    let text = node(
        r#"{"name":"m","type":"Merge","inputs":[{"from":null},{"from":"n:0"}],"outputs":[{}]},
                       {"name":"n","type":"NextIteration","inputs":[{"from":"m:0"}],"outputs":[{}]}"#,
    );
    assert!(read("a.json", &text).expect("it reads").defects.is_empty());
}

#[test]
fn unknown_keys_are_kept_and_reported() {
    let text = r#"{"graphs":[{"name":"g","hue":1,"nodes":[{"name":"n","type":"T","skip_rw":true,"outputs":[{"colour":"red"}]}]}],"by":"me"}"#;
    let l = read("a.json", text).expect("it reads");
    assert_eq!(l.notes.len(), 4, "{:?}", l.notes);
    let out = io::to_json(&l.module);
    for k in ["\"hue\"", "\"skip_rw\"", "\"colour\"", "\"by\""] {
        assert!(out.contains(k), "{k} is lost: {out}");
    }
}

/// `len`-prefixed field of a protobuf message.
fn field(n: u8, content: &[u8]) -> Vec<u8> {
    let mut v = vec![n << 3 | 2];
    let mut len = content.len();
    while len >= 0x80 {
        v.push(len as u8 | 0x80);
        len >>= 7;
    }
    v.push(len as u8);
    v.extend_from_slice(content);
    v
}

fn onnx() -> Vec<u8> {
    let value = |n: &str| field(1, n.as_bytes());
    let node = |ty: &str, name: &str, ins: &[&str], outs: &[&str], more: Vec<u8>| {
        let mut v = Vec::new();
        ins.iter().for_each(|i| v.extend(field(1, i.as_bytes())));
        outs.iter().for_each(|o| v.extend(field(2, o.as_bytes())));
        v.extend(field(3, name.as_bytes()));
        v.extend(field(4, ty.as_bytes()));
        v.extend(more);
        field(1, &v)
    };
    let branch = |name: &str| {
        let mut g = node("Relu", &format!("{name}_relu"), &["r"], &["o"], Vec::new());
        g.extend(field(2, name.as_bytes()));
        g.extend(field(12, &value("o")));
        g
    };
    let attr = |key: &str, g: Vec<u8>| field(5, &[field(1, key.as_bytes()), field(6, &g)].concat());
    let branches = [
        attr("then_branch", branch("then")),
        attr("else_branch", branch("else")),
    ]
    .concat();
    let mut g = [
        field(2, b"main"),
        field(11, &value("x")),
        field(11, &value("p")),
    ]
    .concat();
    g.extend(field(5, &field(8, b"w")));
    g.extend(node("Add", "add", &["x", "w"], &["r"], Vec::new()));
    g.extend(node("If", "if0", &["p"], &["y"], branches));
    g.extend(field(12, &value("y")));
    field(7, &g)
}

#[test]
fn an_onnx_model_gives_its_structure_and_takes_attributes_from_a_side_file() {
    let side = br#"{ "options": {"offline": true}, "nodes": { "add": { "attrs": {"continuous_input": true}, "kernel_lib": "hccl" }, "gone": {} } }"#;
    let l = io::read("m.onnx", &onnx(), Some(("side.json", side))).expect("it reads");
    assert!(l.defects.is_empty(), "{:?}", l.defects);
    assert!(l.notes.iter().any(|n| n.contains("gone")), "{:?}", l.notes);
    assert_eq!(l.module.graphs.len(), 3);
    let g = l.module.graph(GraphId(0));
    let add = g.node(g.find("add").expect("add"));
    assert!(add.attrs.flag("continuous_input") && add.is_hccl() && l.module.options.offline);
    let i = g.node(g.find("if0").expect("if0"));
    assert_eq!(
        (i.inputs.len(), i.subgraphs.len()),
        (2, 2),
        "the branches' outer value is an input"
    );
    let t = l.module.graph(GraphId(1));
    let d = t.node(t.find("r_outer").expect("the outer value"));
    assert_eq!(d.parent_index(), Some(1));
}

/// Whatever the bytes: an answer, no panic; and what reads goes through every pass without one.
fn survives(name: &str, bytes: &[u8]) {
    if let Ok(l) = io::read(name, bytes, Some(("side.json", b"{}"))) {
        let (report, module) = cli::run(l, Stage::All, None);
        let _ = (
            cli::to_json(&report),
            ge_conflict::text::report(&report, Default::default()),
            ge_conflict::dot::picture(&module, &report),
        );
        let _ = io::to_json(&module);
    }
}

fn mutate(r: &mut Rng, seed: &[u8]) -> Vec<u8> {
    let mut b = seed.to_vec();
    for _ in 0..1 + r.below(4) {
        let at = r.below(b.len());
        match r.below(6) {
            0 => b[at] = r.below(256) as u8,
            1 => b.truncate(at),
            2 => drop(b.drain(at..(at + r.below(20)).min(b.len()))),
            3 => b.insert(at, *r.pick(b"{}[]<>:,\"\\0-1e\n")),
            4 => {
                let from = r.below(b.len());
                let piece = b[from..(from + r.below(60)).min(b.len())].to_vec();
                b.splice(at..at, piece);
            }
            _ => {
                // Numbers are where the traps are.
                if let Some(d) = b.iter().skip(at).position(u8::is_ascii_digit) {
                    let n = *r.pick(&["-1", "0", "4294967295", "99999999999999999999", "7"]);
                    b.splice(at + d..at + d + 1, n.bytes());
                }
            }
        }
        if b.is_empty() {
            break;
        }
    }
    b
}

#[test]
fn random_bytes_never_panic() {
    let mut r = Rng::new(1);
    for _ in 0..4000 {
        let bytes: Vec<u8> = (0..r.below(80)).map(|_| r.below(256) as u8).collect();
        for name in ["a.json", "a.txt", "a.onnx", "a"] {
            survives(name, &bytes);
        }
        let _ = ge_conflict::runtime::script::run("s", &String::from_utf8_lossy(&bytes));
        let _ = ge_conflict::runtime::reuse::parse(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn mutated_files_never_panic() {
    let mut r = Rng::new(2);
    let model = onnx();
    for k in 0..3000 {
        survives("a.txt", &mutate(&mut r, DUMP.as_bytes()));
        survives("a.onnx", &mutate(&mut r, &model));
        let text = module(
            &mut Rng::new(k),
            Mix {
                operators: 6,
                layout: true,
                subgraphs: true,
                loops: false,
            },
        )
        .to_string();
        survives("a.json", &mutate(&mut r, text.as_bytes()));
        let script = "streams 3\nmalloc 0 64\naccess 0 0 1\nfree 0 0\nsync 0 0 1\nevent 0 1\nreuse 0,0\naddresses 1 1\n";
        let _ = ge_conflict::runtime::script::run(
            "s",
            &String::from_utf8_lossy(&mutate(&mut r, script.as_bytes())),
        );
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let e = read("d.txt", &"graph { ".repeat(100_000)).expect_err("too deep");
    assert!(e.what.contains("nest deeper"), "{e}");
    assert!(read("a.json", &"[".repeat(100_000)).is_err());
    let mut deep = Vec::new();
    for _ in 0..200 {
        deep = field(7, &deep);
    }
    survives("m.onnx", &deep);
}

#[test]
fn a_large_dump_is_read() {
    let mut text = String::from("graph { name: \"root\"\n");
    let mut k = 0;
    while text.len() < 10_000_000 {
        let input = if k == 0 {
            String::new()
        } else {
            format!("input: \"op_{}:0\"", k - 1)
        };
        text += &format!(
            "op {{ name: \"op_{k}\" type: \"Relu\" id: {k} {input}\n  attr {{ key: \"a\" value {{ list {{ i: 1 i: 2 i: 3 }} }} }}\n  \
             attr {{ key: \"_note\" value {{ s: \"{}\" }} }}\n  input_desc {{ dtype: DT_FLOAT shape {{ dim: 8 dim: 128 }} }} \
             output_desc {{ dtype: DT_FLOAT shape {{ dim: 8 dim: 128 }} size: 4096 }} }}\n",
            "x".repeat(200)
        );
        k += 1;
    }
    text.push('}');
    let start = std::time::Instant::now();
    let l = read("ge_proto_00000001.txt", &text).expect("it reads");
    println!(
        "{} bytes, {k} operators: {:.2} s",
        text.len(),
        start.elapsed().as_secs_f64()
    );
    assert_eq!(l.module.graph(GraphId(0)).len(), k);
    assert!(l.defects.is_empty() && l.notes.is_empty());
}
