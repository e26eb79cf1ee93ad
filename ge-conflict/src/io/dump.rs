//! GE's text dump (`ge_proto_*.txt`): the graph model in protobuf's text form.
//!
//! Top level: `graph { … }`, the first of which is the root, and the model's own fields. What a pass has no use for is kept;
//! fields that the model is not known to have are kept and reported.

use super::json::{attach, settle_order};
use super::prototext::{self, Field, Value};
use super::{Loaded, ReadError};
use crate::ir::{
    Attr, Attrs, Defect, DefectCode, Desc, Extra, Graph, GraphId, InRef, Input, KernelLib, Node,
    NodeId, OutRef, Output, Parent, names,
};
use rustc_hash::FxHashSet;

/// Outputs that a node may be given because somebody reads them, though it describes none.
const MAX_IMPLIED_OUTPUTS: u32 = 4096;

/// Reads a dump.
pub fn read(file: &str, content: &[u8]) -> Result<Loaded, ReadError> {
    let fields = prototext::parse(file, content)?;
    let mut r = Reader {
        file,
        content,
        loaded: Loaded::default(),
        unknown: FxHashSet::default(),
    };
    let bare = !fields.iter().any(|f| f.name == "graph") && fields.iter().any(|f| f.name == "op");
    let mut subgraphs = Vec::new();
    if bare {
        // A single graph without the model around it.
        subgraphs.push(r.graph(&fields)?);
    } else {
        let mut attrs = Attrs::default();
        let mut extra = Extra::new();
        for f in &fields {
            match f.name {
                "graph" => {
                    let graph = r.message(f)?;
                    subgraphs.push(r.graph(graph)?);
                }
                "attr" => r.attr(f, &mut attrs)?,
                "name" | "version" | "custom_version" => keep(&mut extra, f),
                "ir_version" | "producer_name" => {
                    let what = "this is ONNX as text (ge_onnx_*.pbtxt), which is not read: give the ge_proto_*.txt of the same stage"
                        .to_owned();
                    return Err(prototext::error(file, content, f.at, what));
                }
                _ => r.keep_unknown("model", &mut extra, f),
            }
        }
        if subgraphs.is_empty() {
            return Err(prototext::error(
                file,
                content,
                0,
                "expected at least one \"graph {\" at the top level".into(),
            ));
        }
        r.loaded.module.attrs = attrs;
        r.loaded.module.extra = extra;
    }
    r.link(subgraphs);
    let mut loaded = r.loaded;
    if let Some(pairs) = loaded.module.attrs.str(names::REUSE_PAIRS) {
        loaded.module.options.output_reuse_pairs = pairs.to_owned();
    }
    loaded.defects.extend(loaded.module.validate());
    settle_order(&mut loaded.module);
    Ok(loaded)
}

struct Reader<'c> {
    file: &'c str,
    content: &'c [u8],
    loaded: Loaded,
    /// Fields that were reported already: once each is enough.
    unknown: FxHashSet<String>,
}

/// An operator's inputs, each with its place in the file, and its subgraphs' names.
type OpLinks = (Vec<(String, usize)>, Vec<String>);
type SubgraphNames = Vec<(NodeId, Vec<String>)>;

fn keep(extra: &mut Extra, f: &Field<'_>) {
    let v = f.value.to_json();
    match extra.iter_mut().find(|(k, _)| k == f.name) {
        None => extra.push((f.name.to_owned(), v)),
        Some((_, serde_json::Value::Array(a))) => a.push(v),
        Some((_, old)) => *old = serde_json::Value::Array(vec![old.take(), v]),
    }
}

impl Reader<'_> {
    fn fail(&self, f: &Field<'_>, expected: &str) -> ReadError {
        prototext::error(
            self.file,
            self.content,
            f.at,
            format!("expected {expected} in the field {:?}", f.name),
        )
    }

    fn keep_unknown(&mut self, of: &str, extra: &mut Extra, f: &Field<'_>) {
        keep(extra, f);
        if self.unknown.insert(format!("{of}.{}", f.name)) {
            let (line, column) = {
                let e = prototext::error(self.file, self.content, f.at, String::new());
                (e.line, e.column)
            };
            let name = f.name;
            let note = format!(
                "{}:{line}:{column}: the field {name:?} of a {of} is not known: kept, but it has no effect",
                self.file
            );
            self.loaded.notes.push(note);
        }
    }

    fn message<'f, 'a>(&self, f: &'f Field<'a>) -> Result<&'f [Field<'a>], ReadError> {
        f.value
            .fields()
            .ok_or_else(|| self.fail(f, "a message in braces"))
    }

    fn text(&self, f: &Field<'_>) -> Result<String, ReadError> {
        f.value
            .text()
            .map(|t| t.into_owned())
            .ok_or_else(|| self.fail(f, "text"))
    }

    fn int(&self, f: &Field<'_>) -> Result<i64, ReadError> {
        f.value.int().ok_or_else(|| self.fail(f, "a whole number"))
    }

    fn graph(&mut self, fields: &[Field<'_>]) -> Result<SubgraphNames, ReadError> {
        let mut graph = Graph::new("");
        let mut ops: Vec<OpLinks> = Vec::new();
        for f in fields {
            match f.name {
                "name" => graph.name = self.text(f)?,
                "attr" => self.attr(f, &mut graph.attrs)?,
                "op" => {
                    let (node, inputs, subs) = self.op(f)?;
                    graph.add_as_is(node);
                    ops.push((inputs, subs));
                }
                "input" | "output" => keep(&mut graph.extra, f),
                _ => {
                    let mut extra = std::mem::take(&mut graph.extra);
                    self.keep_unknown("graph", &mut extra, f);
                    graph.extra = extra;
                }
            }
        }
        if graph.name.is_empty() {
            graph.name = format!("graph_{}", self.loaded.module.graphs.len());
        }
        graph.unknown_shape = graph.attrs.flag("_graph_unknown_flag");
        let mut subgraphs = Vec::new();
        for (i, (inputs, subs)) in ops.into_iter().enumerate() {
            let id = NodeId(i as u32);
            if !subs.is_empty() {
                subgraphs.push((id, subs));
            }
            self.connect(&mut graph, id, inputs);
        }
        self.loaded.module.graphs.push(graph);
        Ok(subgraphs)
    }

    /// Draws an operator's edges: `"src:0"`, `"src:-1"` for control, `""` for nothing.
    fn connect(&mut self, graph: &mut Graph, id: NodeId, inputs: Vec<(String, usize)>) {
        let mut index = 0;
        for (text, at) in inputs {
            let (name, out) = text.rsplit_once(':').unwrap_or((&text, ""));
            let dangling = |graph: &Graph, what: &str| {
                let node = graph.node(id).name.clone();
                let (line, column) = {
                    let e = prototext::error(self.file, self.content, at, String::new());
                    (e.line, e.column)
                };
                let why = format!(
                    "{}:{line}:{column}: graph {}, node {node}: input {text:?}: {what}",
                    self.file, graph.name
                );
                Defect {
                    code: DefectCode::DanglingEdge,
                    graph: graph.name.clone(),
                    node: Some(node),
                    why,
                }
            };
            if text.is_empty() {
                index += 1;
                continue;
            }
            let source = graph.find(name);
            match (source, out.parse::<i64>()) {
                (Some(from), Ok(-1)) => {
                    if from == id {
                        self.loaded
                            .defects
                            .push(dangling(graph, "it waits for itself"));
                    }
                    graph.add_control(from, id);
                    continue;
                }
                (Some(from), Ok(o)) if o >= 0 && o < i64::from(MAX_IMPLIED_OUTPUTS) => {
                    let has = graph.node(from).outputs.len();
                    if let Some(n) = graph.get_mut(from)
                        && o as usize >= has
                    {
                        n.outputs.resize(o as usize + 1, Output::default());
                    }
                    graph.connect(
                        OutRef {
                            node: from,
                            index: o as u32,
                        },
                        InRef { node: id, index },
                    );
                }
                (None, Ok(_)) => {
                    let defect = dangling(graph, "no node of this graph has that name");
                    self.loaded.defects.push(defect);
                }
                _ => {
                    let defect = dangling(graph, "expected \"node:output\"");
                    self.loaded.defects.push(defect);
                }
            }
            index += 1;
        }
    }

    #[allow(clippy::type_complexity)]
    fn op(
        &mut self,
        f: &Field<'_>,
    ) -> Result<(Node, Vec<(String, usize)>, Vec<String>), ReadError> {
        let fields = self.message(f)?;
        let get = |name: &str| fields.iter().find(|f| f.name == name);
        let name = get("name").ok_or_else(|| self.fail(f, "a \"name\""))?;
        let ty = get("type").ok_or_else(|| self.fail(f, "a \"type\""))?;
        let mut n = Node::new(self.text(name)?, self.text(ty)?);
        let (mut inputs, mut subs, mut input_names) = (Vec::new(), Vec::new(), Vec::new());
        let (mut in_off, mut out_off) = (Vec::new(), Vec::new());
        for f in fields {
            match f.name {
                "name" | "type" => {}
                "input" => inputs.push((self.text(f)?, f.at)),
                "attr" => {
                    let mut attrs = std::mem::take(&mut n.attrs);
                    self.attr(f, &mut attrs)?;
                    n.attrs = attrs;
                }
                "id" => n.id = Some(self.int(f)?),
                "stream_id" => n.stream = self.int(f)?,
                "input_name" => input_names.push(self.text(f)?),
                "input_i" => in_off.push(Attr::Int(self.int(f)?)),
                "output_i" => out_off.push(Attr::Int(self.int(f)?)),
                "input_desc" => {
                    let (name, desc, extra) = self.desc(f)?;
                    n.inputs.push(Input {
                        name,
                        from: None,
                        desc,
                        extra,
                    });
                }
                "output_desc" => {
                    let (name, desc, extra) = self.desc(f)?;
                    n.outputs.push(Output {
                        name,
                        to: Vec::new(),
                        desc,
                        extra,
                    });
                }
                "subgraph_name" => subs.push(self.text(f)?),
                "has_out_attr" | "src_name" | "src_index" | "dst_name" | "dst_index"
                | "workspace" | "workspace_bytes" | "is_input_const" => keep(&mut n.extra, f),
                _ => {
                    let mut extra = std::mem::take(&mut n.extra);
                    self.keep_unknown("op", &mut extra, f);
                    n.extra = extra;
                }
            }
        }
        let data = inputs.iter().filter(|(t, _)| !t.ends_with(":-1")).count();
        if n.inputs.len() < data {
            n.inputs.resize(data, Input::default());
        }
        for (i, name) in n.inputs.iter_mut().zip(input_names) {
            if i.name.is_empty() {
                i.name = name;
            }
        }
        if !in_off.is_empty() {
            n.attrs.set(names::INPUT_OFFSETS, Attr::List(in_off));
        }
        if !out_off.is_empty() {
            n.attrs.set(names::OUTPUT_OFFSETS, Attr::List(out_off));
        }
        n.kernel_lib = n
            .attrs
            .str("_ge_attr_op_kernel_lib_name")
            .or(n.attrs.str("_kernel_lib_name"))
            .map(|l| match l.to_ascii_lowercase() {
                l if l.contains("hccl") => KernelLib::Hccl,
                l if l.contains("custom") => KernelLib::Custom,
                _ => KernelLib::Named(l.to_owned()),
            });
        Ok((n, inputs, subs))
    }

    fn desc(&mut self, f: &Field<'_>) -> Result<(String, Desc, Extra), ReadError> {
        let mut desc = Desc::default();
        let (mut name, mut extra) = (String::new(), Extra::new());
        let (mut reuses, mut index) = (false, None);
        for f in self.message(f)? {
            match f.name {
                "name" => name = self.text(f)?,
                "dtype" => desc.dtype = Desc::dtype_from(&self.text(f)?),
                "shape" => {
                    let mut dims = Vec::new();
                    for d in self.message(f)? {
                        match d.name {
                            "dim" => dims.push(self.int(d)?),
                            _ => self.keep_unknown("shape", &mut extra, d),
                        }
                    }
                    desc.shape = Some(dims.into());
                }
                "size" | "weight_size" => {
                    desc.size = Some(self.int(f)?)
                        .filter(|s| *s > 0 && f.name == "size")
                        .or(desc.size)
                }
                "reuse_input" => {
                    reuses = f
                        .value
                        .bool()
                        .ok_or_else(|| self.fail(f, "true or false"))?
                }
                "reuse_input_index" => index = Some(self.int(f)?),
                "attr" => {
                    let mut attrs = std::mem::take(&mut desc.attrs);
                    self.attr(f, &mut attrs)?;
                    desc.attrs = attrs;
                }
                "layout" | "has_out_attr" | "real_dim_cnt" | "data_offset" | "cmps_size"
                | "cmps_tab" | "cmps_tab_offset" | "device_type" | "input_tensor"
                | "output_tensor" => keep(&mut extra, f),
                _ => self.keep_unknown("tensor descriptor", &mut extra, f),
            }
        }
        if reuses {
            desc.reuse_input = Some(index.and_then(|i| u32::try_from(i).ok()).unwrap_or(0));
        }
        Ok((name, desc, extra))
    }

    /// `attr { key: "k" value { … } }`
    fn attr(&mut self, f: &Field<'_>, attrs: &mut Attrs) -> Result<(), ReadError> {
        let (mut key, mut value) = (None, Attr::Other(serde_json::Value::Null));
        for x in self.message(f)? {
            match x.name {
                "key" => key = Some(self.text(x)?),
                "value" => value = self.attr_value(x)?,
                _ => {
                    return Err(self.fail(
                        x,
                        "only \"key\" and \"value\" in an attribute, but not this",
                    ));
                }
            }
        }
        let key = key.ok_or_else(|| self.fail(f, "a \"key\""))?;
        attrs.set(&key, value);
        Ok(())
    }

    fn attr_value(&mut self, f: &Field<'_>) -> Result<Attr, ReadError> {
        let fields = self.message(f)?;
        let Some(x) = fields.first() else {
            return Ok(Attr::Other(serde_json::json!({})));
        };
        if x.name == "list" {
            return self.list(x);
        }
        self.scalar(x)
    }

    fn scalar(&mut self, x: &Field<'_>) -> Result<Attr, ReadError> {
        Ok(match x.name {
            "s" | "expression" => match &x.value {
                Value::Text(b) => match std::str::from_utf8(b) {
                    Ok(s) => Attr::Str(s.to_owned()),
                    Err(_) => Attr::Bytes(b.to_vec()),
                },
                _ => return Err(self.fail(x, "quoted text")),
            },
            "bt" => match &x.value {
                Value::Text(b) => Attr::Bytes(b.to_vec()),
                _ => return Err(self.fail(x, "quoted bytes")),
            },
            "i" => Attr::Int(self.int(x)?),
            "f" => Attr::Float(x.value.float().ok_or_else(|| self.fail(x, "a number"))?),
            "b" => Attr::Bool(
                x.value
                    .bool()
                    .ok_or_else(|| self.fail(x, "true or false"))?,
            ),
            "dt" => x.value.int().map_or_else(
                || Attr::Str(x.value.text().unwrap_or_default().into_owned()),
                Attr::Int,
            ),
            "list_list_int" | "list_list_float" => {
                let mut lists = Vec::new();
                for l in self.message(x)? {
                    let items = self.message(l)?;
                    lists.push(Attr::List(
                        items
                            .iter()
                            .map(|i| match (x.name, i.value.int(), i.value.float()) {
                                ("list_list_int", Some(v), _) => Ok(Attr::Int(v)),
                                ("list_list_float", _, Some(v)) => Ok(Attr::Float(v)),
                                _ => Err(self.fail(i, "a number")),
                            })
                            .collect::<Result<_, _>>()?,
                    ));
                }
                Attr::List(lists)
            }
            "func" | "td" | "t" | "g" | "na" => {
                Attr::Other(serde_json::json!({ x.name: x.value.to_json() }))
            }
            _ => {
                let mut kept = Extra::new();
                self.keep_unknown("attribute value", &mut kept, x);
                Attr::Other(serde_json::json!({ x.name: x.value.to_json() }))
            }
        })
    }

    fn list(&mut self, f: &Field<'_>) -> Result<Attr, ReadError> {
        let mut items = Vec::new();
        for x in self.message(f)? {
            if x.name != "val_type" {
                items.push(self.scalar(x)?);
            }
        }
        Ok(Attr::List(items))
    }

    /// Hangs the graphs under the operators that name them.
    fn link(&mut self, subgraphs: Vec<SubgraphNames>) {
        for (g, nodes) in subgraphs.into_iter().enumerate() {
            let graph = GraphId(g as u32);
            for (node, names) in nodes {
                for (index, name) in names.into_iter().enumerate().filter(|(_, n)| !n.is_empty()) {
                    match self.loaded.module.find_graph(&name) {
                        Some(child) if child != graph => {
                            let place = Parent {
                                graph,
                                node,
                                index: index as u32,
                            };
                            attach(
                                &mut self.loaded.module,
                                child,
                                place,
                                &mut self.loaded.defects,
                            );
                        }
                        _ => {
                            let of = &self.loaded.module.node((graph, node)).name;
                            let note = format!(
                                "node {of}: its subgraph {name:?} is not in the dump: left out"
                            );
                            self.loaded.notes.push(note);
                        }
                    }
                }
            }
        }
    }
}
