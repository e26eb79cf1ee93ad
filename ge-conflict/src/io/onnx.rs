//! ONNX models: the structure. Attributes that GE's passes need come from a side file: JSON with `options` and `nodes`, an
//! object from a node's name to what the JSON form says of a node (`attrs`, `kernel_lib`, `inputs`, …).

use super::json::{apply_side, settle_order};
use super::{Loaded, ReadError};
use crate::ir::{Attr, Attrs};
use crate::ir::{
    Desc, Graph, GraphId, InRef, Input, Module, Node, NodeId, OutRef, Output, Parent, names,
};
use rustc_hash::FxHashMap;

/// How deep branches may nest.
const MAX_DEPTH: usize = 32;

/// Reads a model.
pub fn read(file: &str, content: &[u8], side: Option<(&str, &[u8])>) -> Result<Loaded, ReadError> {
    let fail = |at: usize, what: &str| ReadError {
        file: file.to_owned(),
        line: 1,
        column: at + 1,
        what: what.to_owned(),
    };
    let model = Message::parse(content, 0).map_err(|(at, what)| fail(at, what))?;
    let graph = model.bytes(7).ok_or_else(|| {
        fail(
            0,
            "expected an ONNX model with a graph (field 7), found none",
        )
    })?;
    let mut loaded = Loaded::default();
    let mut builder = Builder {
        module: Module::default(),
        notes: Vec::new(),
    };
    builder
        .graph(graph, "root", None, 0)
        .map_err(|(at, what)| fail(at, what))?;
    loaded.module = builder.module;
    loaded.notes = builder.notes;
    if let Some((name, text)) = side {
        apply_side(&mut loaded, name, text)?;
    } else {
        loaded.notes.push(format!(
            "{file}: ONNX knows nothing of memory; give a side file with the attributes (--attrs)"
        ));
    }
    loaded.defects.extend(loaded.module.validate());
    settle_order(&mut loaded.module);
    Ok(loaded)
}

type Fail = (usize, &'static str);

/// A message's fields in order.
struct Message<'a> {
    fields: Vec<(u64, Wire<'a>)>,
}

#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8], usize),
}

impl<'a> Message<'a> {
    fn parse(data: &'a [u8], base: usize) -> Result<Message<'a>, Fail> {
        let mut fields = Vec::new();
        let mut at = 0;
        while at < data.len() {
            let key = varint(data, &mut at, base)?;
            let value = match key & 7 {
                0 => Wire::Number(varint(data, &mut at, base)?),
                kind @ (1 | 5) => {
                    let width = if kind == 1 { 8 } else { 4 };
                    let raw = data
                        .get(at..at + width)
                        .ok_or((base + at, "expected a fixed-size number, found the end"))?;
                    at += width;
                    Wire::Number(raw.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
                }
                2 => {
                    let len = usize::try_from(varint(data, &mut at, base)?).unwrap_or(usize::MAX);
                    let end = at.checked_add(len).filter(|e| *e <= data.len());
                    let end = end.ok_or((
                        base + at,
                        "expected as many bytes as the length says, found the end",
                    ))?;
                    let w = Wire::Bytes(&data[at..end], base + at);
                    at = end;
                    w
                }
                _ => {
                    return Err((
                        base + at,
                        "expected a protobuf field: is this an ONNX file?",
                    ));
                }
            };
            fields.push((key >> 3, value));
        }
        Ok(Message { fields })
    }

    fn all(&self, field: u64) -> impl Iterator<Item = (&'a [u8], usize)> + '_ {
        self.fields.iter().filter_map(move |(f, w)| match w {
            Wire::Bytes(b, at) if *f == field => Some((*b, *at)),
            _ => None,
        })
    }

    fn bytes(&self, field: u64) -> Option<(&'a [u8], usize)> {
        self.all(field).next()
    }

    fn text(&self, field: u64) -> String {
        self.bytes(field)
            .map(|(b, _)| String::from_utf8_lossy(b).into_owned())
            .unwrap_or_default()
    }

    fn texts(&self, field: u64) -> Vec<String> {
        self.all(field)
            .map(|(b, _)| String::from_utf8_lossy(b).into_owned())
            .collect()
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.fields.iter().find_map(|(f, w)| match w {
            Wire::Number(n) if *f == field => Some(*n),
            _ => None,
        })
    }

    /// Repeated numbers, packed or not.
    fn numbers(&self, field: u64) -> Result<Vec<i64>, Fail> {
        let mut out = Vec::new();
        for (_, w) in self.fields.iter().filter(|(f, _)| *f == field) {
            match w {
                Wire::Number(n) => out.push(*n as i64),
                Wire::Bytes(b, base) => {
                    let mut at = 0;
                    while at < b.len() {
                        out.push(varint(b, &mut at, *base)? as i64);
                    }
                }
            }
        }
        Ok(out)
    }
}

fn varint(data: &[u8], at: &mut usize, base: usize) -> Result<u64, Fail> {
    let mut v = 0u64;
    for shift in (0..70).step_by(7) {
        let b = *data
            .get(*at)
            .ok_or((base + *at, "expected a number, found the end"))?;
        *at += 1;
        v |= u64::from(b & 0x7f).checked_shl(shift).unwrap_or(0);
        if b & 0x80 == 0 {
            return Ok(v);
        }
    }
    Err((base + *at, "expected a number of at most ten bytes"))
}

struct Builder {
    module: Module,
    notes: Vec<String>,
}

/// Values by name: who makes them.
type Values = FxHashMap<String, OutRef>;

impl Builder {
    /// Builds a graph and its branches; returns the outer values that it uses, by the index of its own inputs.
    fn graph(
        &mut self,
        (data, base): (&[u8], usize),
        fallback: &str,
        parent: Option<Parent>,
        depth: usize,
    ) -> Result<Vec<String>, Fail> {
        if depth > MAX_DEPTH {
            return Err((base, "expected branches that nest at most 32 deep"));
        }
        let m = Message::parse(data, base)?;
        let me = GraphId(self.module.graphs.len() as u32);
        let name = Some(m.text(2)).filter(|n| !n.is_empty() && self.module.find_graph(n).is_none());
        let mut graph = Graph::new(
            name.unwrap_or_else(|| format!("{fallback}_{}", me.0).replace("root_0", "root")),
        );
        graph.parent = parent;
        let mut values = Values::default();
        let mut captured = Vec::new();
        for (bytes, at) in m.all(5) {
            let t = Message::parse(bytes, at)?;
            let mut n = Node::new(t.text(8), "Const");
            let desc = Desc {
                dtype: dtype(t.number(2)),
                shape: Some(t.numbers(1)?.into()),
                ..Desc::default()
            };
            n.outputs.push(Output {
                name: "y".into(),
                desc,
                ..Output::default()
            });
            let name = n.name.clone();
            values.insert(
                name,
                OutRef {
                    node: graph.add(n),
                    index: 0,
                },
            );
        }
        for (bytes, at) in m.all(11) {
            let (name, desc) = value_info(bytes, at)?;
            values.entry(name.clone()).or_insert_with(|| OutRef {
                node: add_data(&mut graph, &name, desc, None),
                index: 0,
            });
        }
        self.module.graphs.push(graph);
        for (position, (bytes, at)) in m.all(1).enumerate() {
            self.node(me, (bytes, at), position, &mut values, &mut captured, depth)?;
        }
        let mut out = Node::new("NetOutput", "NetOutput");
        let mut wanted = Vec::new();
        for (bytes, at) in m.all(12) {
            let (name, desc) = value_info(bytes, at)?;
            out.inputs.push(Input {
                name: name.clone(),
                desc,
                ..Input::default()
            });
            wanted.push(name);
        }
        let id = self.module.graph_mut(me).add(out);
        for (k, name) in wanted.into_iter().enumerate() {
            self.connect(
                me,
                &name,
                InRef {
                    node: id,
                    index: k as u32,
                },
                &mut values,
                &mut captured,
            );
        }
        Ok(captured)
    }

    fn node(
        &mut self,
        me: GraphId,
        (bytes, at): (&[u8], usize),
        position: usize,
        values: &mut Values,
        captured: &mut Vec<String>,
        depth: usize,
    ) -> Result<(), Fail> {
        let m = Message::parse(bytes, at)?;
        let ty = m.text(4);
        let name = Some(m.text(3))
            .filter(|n| !n.is_empty())
            .unwrap_or_else(|| format!("{ty}_{position}"));
        let mut n = Node::new(name, ty);
        let (inputs, outputs) = (m.texts(1), m.texts(2));
        n.inputs = inputs
            .iter()
            .map(|i| Input {
                name: i.clone(),
                ..Input::default()
            })
            .collect();
        n.outputs = outputs.iter().map(|_| Output::default()).collect();
        n.attrs = Attrs::default();
        let mut branches = Vec::new();
        for (bytes, at) in m.all(5) {
            let a = Message::parse(bytes, at)?;
            let key = a.text(1);
            match a.bytes(6) {
                Some(g) => branches.push((key, g)),
                None => {
                    let value = match (a.number(3), a.bytes(4)) {
                        (Some(i), _) => Attr::Int(i as i64),
                        (_, Some((s, _))) => Attr::Str(String::from_utf8_lossy(s).into_owned()),
                        _ => Attr::List(a.numbers(8)?.into_iter().map(Attr::Int).collect()),
                    };
                    n.attrs.set(&key, value);
                }
            }
        }
        let is_if = n.ty == "If";
        let id = self.module.graph_mut(me).add(n);
        for (k, i) in inputs.iter().enumerate().filter(|(_, i)| !i.is_empty()) {
            self.connect(
                me,
                i,
                InRef {
                    node: id,
                    index: k as u32,
                },
                values,
                captured,
            );
        }
        for (k, o) in outputs.into_iter().enumerate() {
            values.insert(
                o,
                OutRef {
                    node: id,
                    index: k as u32,
                },
            );
        }
        for (key, g) in branches {
            let index = match key.as_str() {
                "then_branch" if is_if => 0,
                "else_branch" if is_if => 1,
                _ => {
                    self.notes.push(format!(
                        "node {}: its graph {key:?} is left out: only If is understood",
                        self.module.node((me, id)).name
                    ));
                    continue;
                }
            };
            let child = GraphId(self.module.graphs.len() as u32);
            let parent = Parent {
                graph: me,
                node: id,
                index,
            };
            let outer = self.graph(g, &key, Some(parent), depth + 1)?;
            if let Some(n) = self.module.graph_mut(me).get_mut(id) {
                let slots = n.subgraphs.len().max(index as usize + 1);
                n.subgraphs.resize(slots, None);
                n.subgraphs[index as usize] = Some(child);
            }
            self.pass_in(me, id, child, outer, values, captured);
        }
        Ok(())
    }

    /// What a branch takes from outside becomes an input of its node.
    fn pass_in(
        &mut self,
        me: GraphId,
        id: NodeId,
        child: GraphId,
        outer: Vec<String>,
        values: &mut Values,
        captured: &mut Vec<String>,
    ) {
        for name in outer {
            let known = self
                .module
                .node((me, id))
                .inputs
                .iter()
                .skip(1)
                .position(|i| i.name == name);
            let index = match known {
                Some(k) => k + 1,
                None => {
                    let input = Input {
                        name: name.clone(),
                        ..Input::default()
                    };
                    let Some(n) = self.module.graph_mut(me).get_mut(id) else {
                        return;
                    };
                    n.inputs.push(input);
                    let k = n.inputs.len() - 1;
                    self.connect(
                        me,
                        &name,
                        InRef {
                            node: id,
                            index: k as u32,
                        },
                        values,
                        captured,
                    );
                    k
                }
            };
            let data = self.module.graph(child).find(&format!("{name}_outer"));
            if let Some(d) = data.and_then(|d| self.module.graph_mut(child).get_mut(d)) {
                d.attrs.set(names::PARENT_INDEX, Attr::Int(index as i64));
            }
        }
    }

    /// Connects a value by name; one that nobody here makes comes from outside.
    fn connect(
        &mut self,
        me: GraphId,
        name: &str,
        to: InRef,
        values: &mut Values,
        captured: &mut Vec<String>,
    ) {
        if name.is_empty() {
            return;
        }
        let graph = self.module.graph_mut(me);
        let from = *values.entry(name.to_owned()).or_insert_with(|| {
            captured.push(name.to_owned());
            OutRef {
                node: add_data(graph, &format!("{name}_outer"), Desc::default(), Some(-1)),
                index: 0,
            }
        });
        self.module.graph_mut(me).connect(from, to);
    }
}

fn add_data(graph: &mut Graph, name: &str, desc: Desc, parent: Option<i64>) -> NodeId {
    let mut n = Node::new(name, "Data");
    n.outputs.push(Output {
        name: "y".into(),
        desc,
        ..Output::default()
    });
    if let Some(p) = parent.filter(|_| graph.parent.is_some()) {
        n.attrs.set(names::PARENT_INDEX, Attr::Int(p));
    }
    graph.add(n)
}

/// Name and tensor of a ValueInfoProto.
fn value_info(bytes: &[u8], at: usize) -> Result<(String, Desc), Fail> {
    let m = Message::parse(bytes, at)?;
    let mut desc = Desc::default();
    if let Some((t, at)) = m.bytes(2)
        && let Some((tensor, at)) = Message::parse(t, at)?.bytes(1)
    {
        let tensor = Message::parse(tensor, at)?;
        desc.dtype = dtype(tensor.number(1));
        if let Some((shape, at)) = tensor.bytes(2) {
            let mut dims = Vec::new();
            for (d, at) in Message::parse(shape, at)?.all(1) {
                // A dimension without a value has a name: it is not known.
                dims.push(Message::parse(d, at)?.number(1).map_or(-1, |v| v as i64));
            }
            desc.shape = Some(dims.into());
        }
    }
    Ok((m.text(1), desc))
}

fn dtype(code: Option<u64>) -> std::borrow::Cow<'static, str> {
    std::borrow::Cow::Borrowed(match code {
        Some(2) => "uint8",
        Some(3) => "int8",
        Some(4) => "uint16",
        Some(5) => "int16",
        Some(6) => "int32",
        Some(7) => "int64",
        Some(9) => "bool",
        Some(10) => "float16",
        Some(11) => "float64",
        Some(12) => "uint32",
        Some(13) => "uint64",
        Some(14) => "complex64",
        Some(15) => "complex128",
        Some(16) => "bfloat16",
        None | Some(0 | 1) => "float32",
        Some(other) => return format!("onnx element type {other}").into(),
    })
}
