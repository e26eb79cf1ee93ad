//! Writes a module in the JSON form: one line per node, defaults left out.

use crate::ir::{
    Attr, Attrs, Desc, Extra, Graph, KernelLib, MemType, Module, Node, NodeId, OutRef,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The module as JSON text; reading it again gives an equal module.
pub fn to_json(module: &Module) -> String {
    let mut out = String::new();
    let o = &module.options;
    let mut options = json!({
        "feature_base_refreshable": o.feature_base_refreshable, "static_memory_policy": o.static_memory_policy,
        "single_op": o.single_op, "offline": o.offline, "heterogeneous": o.heterogeneous, "host_exec": o.host_exec,
        "atomic_clean_policy": o.atomic_clean_policy, "output_reuse_pairs": o.output_reuse_pairs,
    });
    if let Some(m) = options.as_object_mut() {
        extra(m, &o.extra);
    }
    let _ = write!(out, "{{ \"options\": {options},\n  \"graphs\": [");
    for (i, g) in module.graphs.iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        graph(&mut out, module, g);
    }
    out.push_str(" ]");
    if !module.attrs.is_empty() {
        let _ = write!(out, ",\n  \"attrs\": {}", attrs(&module.attrs));
    }
    for (k, v) in &module.extra {
        let _ = write!(out, ",\n  {}: {v}", Value::from(k.as_str()));
    }
    out.push_str(" }\n");
    out
}

fn graph(out: &mut String, module: &Module, g: &Graph) {
    let parent = g.parent.map_or(Value::Null, |p| {
        json!({ "graph": module.graph(p.graph).name, "node": module.node((p.graph, p.node)).name, "index": p.index })
    });
    let _ = write!(
        out,
        "    {{ \"name\": {}, \"parent\": {parent}, \"unknown_shape\": {}, \"attrs\": {},",
        Value::from(g.name.as_str()),
        g.unknown_shape,
        attrs(&g.attrs)
    );
    for (k, v) in &g.extra {
        let _ = write!(out, " {}: {v},", Value::from(k.as_str()));
    }
    out.push_str("\n      \"nodes\": [");
    for (i, id) in g.ids().enumerate() {
        out.push_str(if i == 0 { "\n        " } else { ",\n        " });
        let _ = write!(out, "{}", Value::Object(node(module, g, id)));
    }
    out.push_str(" ] }");
}

fn node(module: &Module, g: &Graph, id: NodeId) -> Map<String, Value> {
    let n: &Node = g.node(id);
    let mut m = Map::new();
    m.insert("name".into(), n.name.as_str().into());
    m.insert("type".into(), n.ty.as_str().into());
    if let Some(i) = n.id {
        m.insert("id".into(), i.into());
    }
    if n.stream != 0 {
        m.insert("stream".into(), n.stream.into());
    }
    if !n.attrs.is_empty() {
        m.insert("attrs".into(), attrs(&n.attrs));
    }
    match &n.kernel_lib {
        Some(KernelLib::Hccl) => drop(m.insert("kernel_lib".into(), "hccl".into())),
        Some(KernelLib::Custom) => drop(m.insert("kernel_lib".into(), "custom".into())),
        Some(KernelLib::Named(s)) => drop(m.insert("kernel_lib".into(), s.as_str().into())),
        None => {}
    }
    if let Some(r) = n.refreshable {
        m.insert("refreshable".into(), r.into());
    }
    let source = |o: OutRef| format!("{}:{}", g.node(o.node).name, o.index);
    let inputs: Vec<Value> = n
        .inputs
        .iter()
        .map(|i| {
            let mut m = Map::new();
            m.insert(
                "from".into(),
                i.from.map_or(Value::Null, |f| source(f).into()),
            );
            tensor(&mut m, &i.name, &i.desc, &i.extra);
            Value::Object(m)
        })
        .collect();
    let outputs: Vec<Value> = n
        .outputs
        .iter()
        .map(|o| {
            let mut m = Map::new();
            tensor(&mut m, &o.name, &o.desc, &o.extra);
            Value::Object(m)
        })
        .collect();
    m.insert("inputs".into(), inputs.into());
    m.insert("outputs".into(), outputs.into());
    if !n.control_in.is_empty() {
        let c: Vec<Value> = n
            .control_in
            .iter()
            .map(|c| g.node(*c).name.as_str().into())
            .collect();
        m.insert("control".into(), c.into());
    }
    if !n.subgraphs.is_empty() {
        let s: Vec<Value> = n
            .subgraphs
            .iter()
            .map(|s| s.map_or(Value::Null, |s| module.graph(s).name.as_str().into()))
            .collect();
        m.insert("subgraphs".into(), s.into());
    }
    extra(&mut m, &n.extra);
    m
}

fn tensor(m: &mut Map<String, Value>, name: &str, d: &Desc, more: &Extra) {
    if !name.is_empty() {
        m.insert("name".into(), name.into());
    }
    let plain = Desc::default();
    if d.dtype != plain.dtype {
        m.insert("dtype".into(), d.dtype.as_ref().into());
    }
    if let Some(s) = &d.shape {
        m.insert("shape".into(), s.to_vec().into());
    }
    if d.mem_type != MemType::HBM {
        m.insert(
            "mem_type".into(),
            d.mem_type
                .name()
                .map_or_else(|| d.mem_type.0.into(), Value::from),
        );
    }
    if let Some(r) = d.reuse_input {
        m.insert("reuse_input".into(), r.into());
    }
    if let Some(s) = d.size {
        m.insert("size".into(), s.into());
    }
    if let Some(s) = d.offset {
        m.insert("offset".into(), s.into());
    }
    if !d.attrs.is_empty() {
        m.insert("attrs".into(), attrs(&d.attrs));
    }
    extra(m, more);
}

fn extra(m: &mut Map<String, Value>, more: &Extra) {
    for (k, v) in more {
        m.insert(k.clone(), v.clone());
    }
}

fn attrs(a: &Attrs) -> Value {
    Value::Object(a.0.iter().map(|(k, v)| (k.clone(), attr(v))).collect())
}

/// An attribute's value as JSON.
pub(crate) fn attr(a: &Attr) -> Value {
    match a {
        Attr::Bool(b) => (*b).into(),
        Attr::Int(i) => (*i).into(),
        // JSON has no infinities; they are written as text rather than lost.
        Attr::Float(f) if !f.is_finite() => f.to_string().into(),
        Attr::Float(f) => (*f).into(),
        Attr::Str(s) => s.as_str().into(),
        Attr::Bytes(b) => {
            json!({ "bytes": b.iter().map(|b| format!("{b:02x}")).collect::<String>() })
        }
        Attr::List(l) => l.iter().map(attr).collect(),
        Attr::Other(v) => v.clone(),
    }
}
