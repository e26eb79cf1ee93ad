//! The JSON form. Unknown keys are kept and reported; a key given twice, a wrong type or bad syntax is an error with its place.

use super::{Loaded, ReadError};
use crate::ir::{
    Attr, Attrs, Defect, DefectCode, Desc, Extra, Graph, GraphId, InRef, Input, KernelLib, MemType,
    Module, Node, NodeId, OutRef, Output, Parent,
};
use crate::text::count;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Reads a key: one of these, or any other.
struct Key(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Result<&'static str, String>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Result<&'static str, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key, one of {}", self.0.join(", "))
    }

    fn visit_str<E: de::Error>(self, s: &str) -> Result<Self::Value, E> {
        // Rust's keywords stand as raw identifiers in the list.
        Ok(self
            .0
            .iter()
            .find(|k| **k == s || k.strip_prefix("r#") == Some(s))
            .copied()
            .ok_or_else(|| s.to_owned()))
    }
}

/// A struct whose keys may all be absent and that keeps unknown ones.
macro_rules! lenient {
    ($name:ident, $what:literal { $($field:ident : $ty:ty),* $(,)? }) => {
        #[derive(Default)]
        struct $name<'de> { $($field: Option<$ty>,)* extra: Extra, text: PhantomData<&'de str> }

        impl<'de> de::Deserialize<'de> for $name<'de> {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl<'de> Visitor<'de> for V {
                    type Value = $name<'de>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("an object with ", $what))
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name<'de>, A::Error> {
                        let mut v = $name::default();
                        while let Some(key) = map.next_key_seed(Key(&[$(stringify!($field)),*]))? {
                            match key {
                                $(Ok(stringify!($field)) => {
                                    if v.$field.replace(map.next_value()?).is_some() {
                                        return Err(de::Error::duplicate_field(stringify!($field)));
                                    }
                                })*
                                Ok(_) => {}
                                Err(other) => v.extra.push((other, map.next_value::<Value>()?)),
                            }
                        }
                        Ok(v)
                    }
                }
                d.deserialize_map(V)
            }
        }
    };
}

lenient!(JModule, "options and graphs" { options: JOptions<'de>, graphs: Vec<JGraph<'de>>, attrs: Attrs });
lenient!(JOptions, "options" {
    feature_base_refreshable: Flag, static_memory_policy: Number, single_op: Flag, offline: Flag, heterogeneous: Flag,
    host_exec: Flag, atomic_clean_policy: Number, output_reuse_pairs: Option<String>,
});
lenient!(JGraph, "a graph" {
    name: String, parent: Option<JParent<'de>>, unknown_shape: bool, attrs: Attrs, nodes: Vec<JNode<'de>>,
});
lenient!(JSide, "options and nodes" { options: JOptions<'de>, nodes: BTreeMap<String, JSideNode<'de>> });
lenient!(JParent, "graph, node and index" { graph: String, node: String, index: u32 });
lenient!(JNode, "a node" {
    name: String, r#type: String, id: Option<i64>, stream: Option<i64>, attrs: Attrs, kernel_lib: Option<String>,
    refreshable: Option<bool>, inputs: Inputs<'de>, outputs: Outputs, control: Vec<Text<'de>>,
    subgraphs: Vec<Option<String>>,
});
lenient!(JSideNode, "a node" {
    name: String, r#type: String, id: Option<i64>, stream: Option<i64>, attrs: Attrs, kernel_lib: Option<String>,
    refreshable: Option<bool>, inputs: Vec<JInput<'de>>, outputs: Vec<JOutput<'de>>, control: Vec<Text<'de>>,
    subgraphs: Vec<Option<String>>,
});
lenient!(JInput, "an input" {
    from: Option<Text<'de>>, name: String, dtype: Dtype, shape: Shape, mem_type: Mem, reuse_input: Option<u32>, size: Option<i64>,
    offset: Option<i64>, attrs: Attrs,
});
lenient!(JOutput, "an output" {
    name: String, dtype: Dtype, shape: Shape, mem_type: Mem, reuse_input: Option<u32>, size: Option<i64>, offset: Option<i64>,
    attrs: Attrs,
});

/// Text that is only looked up: it stays in the file's content where it has no escapes.
struct Text<'de>(Cow<'de, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de> de::Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
        }
        d.deserialize_str(V)
    }
}

/// A node's inputs, each made at once: a second list of them, freed between two nodes, would cost as much as the reading.
#[derive(Default)]
struct Inputs<'de> {
    list: Vec<Input>,
    from: Vec<Option<Text<'de>>>,
}

/// A node's outputs, made at once.
#[derive(Default)]
struct Outputs(Vec<Output>);

macro_rules! list {
    ($ty:ty, $what:literal, $item:ty) => {
        impl<'de> de::Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl<'de> Visitor<'de> for V {
                    type Value = $ty;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<$ty, A::Error> {
                        let mut all = <$ty>::default();
                        while let Some(item) = seq.next_element::<$item>()? {
                            all.push(item);
                        }
                        all.fit();
                        Ok(all)
                    }
                }
                d.deserialize_seq(V)
            }
        }
    };
}

list!(Inputs<'de>, "a list of inputs", JInput<'de>);
list!(Outputs, "a list of outputs", JOutput<'de>);

impl<'de> Inputs<'de> {
    fn push(&mut self, i: JInput<'de>) {
        let desc = desc(
            i.dtype,
            i.shape,
            i.mem_type,
            i.reuse_input,
            (i.size, i.offset),
            i.attrs,
        );
        self.from.push(i.from.flatten());
        self.list.push(Input {
            name: i.name.unwrap_or_default(),
            from: None,
            desc,
            extra: i.extra,
        });
    }

    fn fit(&mut self) {
        self.list.shrink_to_fit();
    }
}

impl Outputs {
    fn push(&mut self, o: JOutput<'_>) {
        let desc = desc(
            o.dtype,
            o.shape,
            o.mem_type,
            o.reuse_input,
            (o.size, o.offset),
            o.attrs,
        );
        self.0.push(Output {
            name: o.name.unwrap_or_default(),
            to: Vec::new(),
            desc,
            extra: o.extra,
        });
    }

    fn fit(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// `true`, `1` or `"1"`.
struct Flag(bool);
/// A number, also as text or truth value.
struct Number(i64);
/// An element type.
struct Dtype(Cow<'static, str>);
/// Dimensions; null: not even the rank is known.
struct Shape(Box<[i64]>);
/// Memory: a name or the run time's number.
struct Mem(MemType);

macro_rules! scalar {
    ($ty:ident, $what:literal, $from:expr) => {
        impl<'de> de::Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl Visitor<'_> for V {
                    type Value = $ty;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_bool<E: de::Error>(self, v: bool) -> Result<$ty, E> {
                        self.make(Attr::Bool(v))
                    }
                    fn visit_i64<E: de::Error>(self, v: i64) -> Result<$ty, E> {
                        self.make(Attr::Int(v))
                    }
                    fn visit_u64<E: de::Error>(self, v: u64) -> Result<$ty, E> {
                        match i64::try_from(v) {
                            Ok(v) => self.make(Attr::Int(v)),
                            Err(_) => Err(E::invalid_value(de::Unexpected::Unsigned(v), &self)),
                        }
                    }
                    fn visit_str<E: de::Error>(self, v: &str) -> Result<$ty, E> {
                        self.make(Attr::Str(v.to_owned()))
                    }
                }
                impl V {
                    fn make<E: de::Error>(&self, v: Attr) -> Result<$ty, E> {
                        let make: fn(&Attr) -> Option<$ty> = $from;
                        make(&v)
                            .ok_or_else(|| E::custom(format!("expected {}, found {v:?}", $what)))
                    }
                }
                d.deserialize_any(V)
            }
        }
    };
}

scalar!(Flag, "true or false", |a| match a {
    Attr::Str(s) if !matches!(s.as_str(), "0" | "1" | "true" | "false" | "") => None,
    other => Some(Flag(other.is_true())),
});
scalar!(Number, "a number", |a| a.as_int().map(Number));
scalar!(
    Mem,
    "a memory type: \"hbm\", \"ddr\", \"p2p\", \"ts\" or a number",
    |a| match a {
        Attr::Str(s) => MemType::from_name(s).map(Mem),
        Attr::Int(i) => u32::try_from(*i).ok().map(|i| Mem(MemType(i))),
        _ => None,
    }
);
scalar!(Dtype, "an element type's name", |a| a
    .as_str()
    .map(|s| Dtype(Desc::dtype_from(s))));

impl<'de> de::Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Shape;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of dimensions, or null")
            }
            fn visit_unit<E>(self) -> Result<Shape, E> {
                // GE's mark for a rank that is not known.
                Ok(Shape([-2].into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
                // Few shapes have more dimensions than fit here: one allocation of the right size.
                let mut first = [0i64; 8];
                let mut n = 0;
                while let Some(d) = seq.next_element()? {
                    if n == first.len() {
                        let mut long = first.to_vec();
                        long.push(d);
                        while let Some(d) = seq.next_element()? {
                            long.push(d);
                        }
                        return Ok(Shape(long.into()));
                    }
                    first[n] = d;
                    n += 1;
                }
                Ok(Shape(first[..n].into()))
            }
        }
        d.deserialize_any(V)
    }
}

impl<'de> de::Deserialize<'de> for Attrs {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Attrs(de::Deserialize::deserialize(d)?))
    }
}

impl<'de> de::Deserialize<'de> for Attr {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Attr;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an attribute's value")
            }
            fn visit_bool<E>(self, v: bool) -> Result<Attr, E> {
                Ok(Attr::Bool(v))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Attr, E> {
                Ok(Attr::Int(v))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Attr, E> {
                Ok(i64::try_from(v).map_or_else(|_| Attr::Other(v.into()), Attr::Int))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Attr, E> {
                Ok(Attr::Float(v))
            }
            fn visit_str<E>(self, v: &str) -> Result<Attr, E> {
                Ok(Attr::Str(v.to_owned()))
            }
            fn visit_string<E>(self, v: String) -> Result<Attr, E> {
                Ok(Attr::Str(v))
            }
            fn visit_unit<E>(self) -> Result<Attr, E> {
                Ok(Attr::Other(Value::Null))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Attr, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Ok(Attr::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Attr, A::Error> {
                let v = Value::deserialize(de::value::MapAccessDeserializer::new(map))?;
                let hex = v
                    .as_object()
                    .filter(|o| o.len() == 1)
                    .and_then(|o| o.get("bytes"))
                    .and_then(Value::as_str);
                Ok(hex
                    .and_then(from_hex)
                    .map_or_else(|| Attr::Other(v.clone()), Attr::Bytes))
            }
        }
        use serde::Deserialize;
        d.deserialize_any(V)
    }
}

fn from_hex(s: &str) -> Option<Vec<u8>> {
    if !s.len().is_multiple_of(2) || !s.is_ascii() {
        return None;
    }
    (0..s.len() / 2)
        .map(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).ok())
        .collect()
}

/// Reads the JSON form.
pub fn read(file: &str, content: &[u8]) -> Result<Loaded, ReadError> {
    build(file, parse(file, content)?)
}

fn parse<'de, T: de::Deserialize<'de>>(file: &str, content: &'de [u8]) -> Result<T, ReadError> {
    // Text that is known to be UTF-8 is not checked string by string.
    let parsed = match std::str::from_utf8(content) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(content),
    };
    parsed.map_err(|e| {
        let text = e.to_string();
        // serde_json repeats the place at the end of its message.
        let what = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(w, _)| w)
            .to_owned();
        let mut lines = content.split(|b| *b == b'\n');
        let line = lines.nth(e.line().max(1) - 1).unwrap_or_default();
        // Characters, not bytes: what an editor counts. At the very start serde_json says column 0.
        let before = &line[..line.len().min(e.column().saturating_sub(1))];
        ReadError {
            file: file.to_owned(),
            line: e.line().max(1),
            column: before.iter().filter(|b| **b & 0xc0 != 0x80).count() + 1,
            what,
        }
    })
}

/// Adds what a side file says of nodes that are there; names that are not there are reported.
pub(super) fn apply_side(loaded: &mut Loaded, file: &str, content: &[u8]) -> Result<(), ReadError> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let side: JSide<'_> = parse(file, content)?;
    set_options(loaded, side.options.unwrap_or_default());
    note_extra(&mut loaded.notes, file, &side.extra);
    for (name, j) in side.nodes.unwrap_or_default() {
        let found = loaded
            .module
            .graph_ids()
            .find_map(|g| Some((g, loaded.module.graph(g).find(&name)?)));
        let Some(n) = found.and_then(|(g, id)| loaded.module.graph_mut(g).get_mut(id)) else {
            loaded
                .notes
                .push(format!("{file}: the model has no node {name:?}"));
            continue;
        };
        if let Some(ty) = j.r#type {
            n.kind = crate::ir::Kind::of(&ty);
            n.ty = ty;
        }
        n.attrs.0.extend(j.attrs.unwrap_or_default().0);
        n.kernel_lib = j
            .kernel_lib
            .flatten()
            .map(kernel_lib)
            .or(n.kernel_lib.take());
        n.refreshable = j.refreshable.flatten().or(n.refreshable);
        n.stream = j.stream.flatten().unwrap_or(n.stream);
        for (x, j) in n.inputs.iter_mut().zip(j.inputs.unwrap_or_default()) {
            x.name = j.name.unwrap_or(std::mem::take(&mut x.name));
            merge_desc(
                &mut x.desc,
                (j.dtype, j.shape, j.mem_type, j.reuse_input, j.attrs),
            );
        }
        for (x, j) in n.outputs.iter_mut().zip(j.outputs.unwrap_or_default()) {
            x.name = j.name.unwrap_or(std::mem::take(&mut x.name));
            merge_desc(
                &mut x.desc,
                (j.dtype, j.shape, j.mem_type, j.reuse_input, j.attrs),
            );
        }
        note_extra(&mut loaded.notes, &format!("{file}, node {name}"), &j.extra);
    }
    Ok(())
}

type DescParts = (
    Option<Dtype>,
    Option<Shape>,
    Option<Mem>,
    Option<Option<u32>>,
    Option<Attrs>,
);

fn merge_desc(d: &mut Desc, (dtype, shape, mem, reuse, attrs): DescParts) {
    if let Some(t) = dtype {
        d.dtype = t.0;
    }
    if let Some(s) = shape {
        d.shape = Some(s.0);
    }
    if let Some(m) = mem {
        d.mem_type = m.0;
    }
    if let Some(r) = reuse {
        d.reuse_input = r;
    }
    d.attrs.0.extend(attrs.unwrap_or_default().0);
}

fn build(file: &str, j: JModule<'_>) -> Result<Loaded, ReadError> {
    let missing = |what: String| ReadError {
        file: file.to_owned(),
        line: 1,
        column: 1,
        what,
    };
    let mut loaded = Loaded::default();
    set_options(&mut loaded, j.options.unwrap_or_default());
    note_extra(&mut loaded.notes, "the file", &j.extra);
    loaded.module.extra = j.extra;
    loaded.module.attrs = j.attrs.unwrap_or_default();
    let graphs = j
        .graphs
        .ok_or_else(|| missing("expected the key \"graphs\" at the top level".into()))?;

    let mut links = Vec::with_capacity(graphs.len());
    for (i, g) in graphs.into_iter().enumerate() {
        let name = g
            .name
            .ok_or_else(|| missing(format!("expected the key \"name\" in graphs[{i}]")))?;
        let mut graph = Graph::new(name);
        graph.unknown_shape = g.unknown_shape.unwrap_or(false);
        graph.attrs = g.attrs.unwrap_or_default();
        note_extra(
            &mut loaded.notes,
            &format!("graph {}", graph.name),
            &g.extra,
        );
        graph.extra = g.extra;
        let nodes = g.nodes.unwrap_or_default();
        let subgraphs = add_nodes(&mut graph, nodes, &mut loaded, &missing)?;
        links.push((g.parent.flatten(), subgraphs));
        loaded.module.graphs.push(graph);
    }
    link_graphs(&mut loaded, links);
    loaded.defects.extend(loaded.module.validate());
    settle_order(&mut loaded.module);
    Ok(loaded)
}

fn set_options(loaded: &mut Loaded, o: JOptions<'_>) {
    let options = &mut loaded.module.options;
    options.feature_base_refreshable = o.feature_base_refreshable.is_some_and(|f| f.0);
    options.static_memory_policy = o.static_memory_policy.map_or(0, |n| n.0);
    options.single_op = o.single_op.is_some_and(|f| f.0);
    options.offline = o.offline.is_some_and(|f| f.0);
    options.heterogeneous = o.heterogeneous.is_some_and(|f| f.0);
    options.host_exec = o.host_exec.is_some_and(|f| f.0);
    options.atomic_clean_policy = o.atomic_clean_policy.map_or(0, |n| n.0);
    options.output_reuse_pairs = o.output_reuse_pairs.flatten().unwrap_or_default();
    note_extra(&mut loaded.notes, "options", &o.extra);
    options.extra = o.extra;
}

fn note_extra(notes: &mut Vec<String>, whose: &str, extra: &Extra) {
    for (k, _) in extra {
        notes.push(format!(
            "{whose}: the key {k:?} is not known: kept, but it has no effect"
        ));
    }
}

type SubgraphNames = Vec<(NodeId, Vec<Option<String>>)>;

fn add_nodes(
    graph: &mut Graph,
    nodes: Vec<JNode<'_>>,
    loaded: &mut Loaded,
    missing: &dyn Fn(String) -> ReadError,
) -> Result<SubgraphNames, ReadError> {
    let mut subgraphs = Vec::new();
    let mut froms: Vec<Vec<Option<Text<'_>>>> = Vec::with_capacity(nodes.len());
    graph.reserve(nodes.len());
    let mut controls = Vec::with_capacity(nodes.len());
    for (position, j) in nodes.into_iter().enumerate() {
        let at = |key: &str| {
            missing(format!(
                "expected the key {key:?} in node {position} of graph {}",
                graph.name
            ))
        };
        let mut n = Node::new(
            j.name.ok_or_else(|| at("name"))?,
            j.r#type.ok_or_else(|| at("type"))?,
        );
        n.id = Some(j.id.flatten().unwrap_or(position as i64));
        n.stream = j.stream.flatten().unwrap_or(0);
        n.attrs = j.attrs.unwrap_or_default();
        n.kernel_lib = j.kernel_lib.flatten().map(kernel_lib);
        n.refreshable = j.refreshable.flatten();
        if !j.extra.is_empty() {
            note_extra(
                &mut loaded.notes,
                &format!("graph {}, node {}", graph.name, n.name),
                &j.extra,
            );
        }
        n.extra = j.extra;
        let Inputs { list, from } = j.inputs.unwrap_or_default();
        n.inputs = list;
        n.outputs = j.outputs.unwrap_or_default().0;
        let inputs = n.inputs.iter().map(|i| &i.extra).enumerate();
        let outputs = n.outputs.iter().map(|o| &o.extra).enumerate();
        let inputs = inputs.map(|(k, extra)| ("input", k, extra));
        let outputs = outputs.map(|(k, extra)| ("output", k, extra));
        for (side, k, extra) in inputs.chain(outputs).filter(|(_, _, e)| !e.is_empty()) {
            let whose = format!("graph {}, node {}, {side} {k}", graph.name, n.name);
            note_extra(&mut loaded.notes, &whose, extra);
        }
        froms.push(from);
        controls.push(j.control.unwrap_or_default());
        let names = j.subgraphs.unwrap_or_default();
        let id = graph.add_as_is(n);
        if !names.is_empty() {
            subgraphs.push((id, names));
        }
    }
    connect(graph, froms, controls, &mut loaded.defects);
    Ok(subgraphs)
}

fn kernel_lib(name: String) -> KernelLib {
    match name.as_str() {
        "hccl" => KernelLib::Hccl,
        "custom" => KernelLib::Custom,
        _ => KernelLib::Named(name),
    }
}

fn desc(
    dtype: Option<Dtype>,
    shape: Option<Shape>,
    mem: Option<Mem>,
    reuse: Option<Option<u32>>,
    (size, offset): (Option<Option<i64>>, Option<Option<i64>>),
    attrs: Option<Attrs>,
) -> Desc {
    Desc {
        dtype: dtype.map_or(Cow::Borrowed("float32"), |d| d.0),
        shape: shape.map(|s| s.0),
        size: size.flatten(),
        offset: offset.flatten(),
        mem_type: mem.map_or(MemType::HBM, |m| m.0),
        reuse_input: reuse.flatten(),
        attrs: attrs.unwrap_or_default(),
    }
}

/// Draws the edges; an edge to nowhere is a defect.
pub(super) fn connect<S: AsRef<str>>(
    graph: &mut Graph,
    froms: Vec<Vec<Option<S>>>,
    controls: Vec<Vec<S>>,
    defects: &mut Vec<Defect>,
) {
    let dangling = |graph: &Graph, node: NodeId, why: String| {
        let name = graph.node(node).name.clone();
        let why = format!("graph {}, node {name}: {why}", graph.name);
        Defect {
            code: DefectCode::DanglingEdge,
            graph: graph.name.clone(),
            node: Some(name),
            why,
        }
    };
    for (i, from) in froms.into_iter().enumerate() {
        let node = NodeId(i as u32);
        for (k, source) in from.into_iter().enumerate() {
            let Some(source) = source.as_ref().map(AsRef::as_ref) else {
                continue;
            };
            match endpoint(graph, source) {
                Ok(out) => graph.connect(
                    out,
                    InRef {
                        node,
                        index: k as u32,
                    },
                ),
                Err(why) => defects.push(dangling(
                    graph,
                    node,
                    format!("input {k} comes from {source:?}, {why}"),
                )),
            }
        }
    }
    for (i, names) in controls.into_iter().enumerate() {
        let node = NodeId(i as u32);
        for name in &names {
            let name = name.as_ref();
            match graph.find(name) {
                Some(from) if from == node => {
                    defects.push(dangling(graph, node, "it waits for itself".into()));
                }
                Some(from) => {
                    graph.add_control(from, node);
                }
                None => defects.push(dangling(
                    graph,
                    node,
                    format!("it waits for {name:?}, which is not in this graph"),
                )),
            }
        }
    }
}

fn endpoint(graph: &Graph, text: &str) -> Result<OutRef, String> {
    let Some((name, index)) = text.rsplit_once(':') else {
        return Err("where \"node:output\" was expected".into());
    };
    let index: u32 = index
        .parse()
        .map_err(|_| format!("but {index:?} is no output's number"))?;
    let node = graph
        .find(name)
        .ok_or_else(|| format!("but no node of this graph is called {name:?}"))?;
    let has = graph.node(node).outputs.len();
    if index as usize >= has {
        return Err(format!("but {name} has {}", count(has, "output")));
    }
    Ok(OutRef { node, index })
}

fn link_graphs(loaded: &mut Loaded, links: Vec<(Option<JParent<'_>>, SubgraphNames)>) {
    let bad = |graph: &str, node: Option<&str>, why: String| Defect {
        code: DefectCode::BadParent,
        graph: graph.to_owned(),
        node: node.map(str::to_owned),
        why,
    };
    for (i, (parent, _)) in links.iter().enumerate() {
        let Some(p) = parent else { continue };
        let me = GraphId(i as u32);
        let name = loaded.module.graph(me).name.clone();
        let (pg, pn) = (
            p.graph.clone().unwrap_or_default(),
            p.node.clone().unwrap_or_default(),
        );
        let Some(graph) = loaded.module.find_graph(&pg) else {
            loaded.defects.push(bad(
                &name,
                None,
                format!("graph {name}: its parent graph {pg:?} is not in the file"),
            ));
            continue;
        };
        let Some(node) = loaded.module.graph(graph).find(&pn) else {
            let why = format!("graph {name}: its parent node {pn:?} is not in graph {pg}");
            loaded.defects.push(bad(&name, Some(&pn), why));
            continue;
        };
        let named = links[graph.0 as usize]
            .1
            .iter()
            .find(|(n, _)| *n == node)
            .map(|(_, names)| names);
        let index = match p.index {
            Some(i) => i,
            // Without an index the node's own list decides, else the next free place.
            None => match named.and_then(|n| n.iter().position(|s| s.as_deref() == Some(&name))) {
                Some(i) => i as u32,
                None => loaded.module.node((graph, node)).subgraphs.len() as u32,
            },
        };
        if index > 4096 {
            let why = format!("graph {name}: subgraph number {index} of {pn} is out of range");
            loaded.defects.push(bad(&name, Some(&pn), why));
            continue;
        }
        attach(
            &mut loaded.module,
            me,
            Parent { graph, node, index },
            &mut loaded.defects,
        );
    }
    for (i, (_, subgraphs)) in links.into_iter().enumerate() {
        let owner = GraphId(i as u32);
        for (node, names) in subgraphs {
            for (index, name) in names.into_iter().enumerate() {
                let Some(name) = name.filter(|n| !n.is_empty()) else {
                    continue;
                };
                let Some(child) = loaded.module.find_graph(&name) else {
                    let (g, n) = (
                        loaded.module.graph(owner).name.clone(),
                        loaded.module.node((owner, node)).name.clone(),
                    );
                    let why =
                        format!("graph {g}, node {n}: its subgraph {name:?} is not in the file");
                    loaded.defects.push(bad(&g, Some(&n), why));
                    continue;
                };
                let place = Parent {
                    graph: owner,
                    node,
                    index: index as u32,
                };
                attach(&mut loaded.module, child, place, &mut loaded.defects);
            }
        }
    }
}

/// Hangs `child` under its parent, unless it hangs elsewhere or the place is taken.
pub(super) fn attach(
    module: &mut Module,
    child: GraphId,
    place: Parent,
    defects: &mut Vec<Defect>,
) {
    let slot = module
        .node((place.graph, place.node))
        .subgraphs
        .get(place.index as usize)
        .copied()
        .flatten();
    let there = module.graph(child).parent;
    if there == Some(place) && slot == Some(child) {
        return;
    }
    let node = module.node((place.graph, place.node)).name.clone();
    let name = module.graph(child).name.clone();
    if there.is_some() || slot.is_some() || child.0 == 0 {
        let why = if child.0 == 0 {
            format!("graph {name} is the root, but node {node} has it as a subgraph")
        } else if there.is_some() {
            format!("graph {name} is a subgraph twice: look at node {node}")
        } else {
            format!(
                "graph {name}: subgraph {} of node {node} is taken by another graph",
                place.index
            )
        };
        defects.push(Defect {
            code: DefectCode::BadParent,
            graph: name,
            node: Some(node),
            why,
        });
        return;
    }
    module.graph_mut(child).parent = Some(place);
    if let Some(n) = module.graph_mut(place.graph).get_mut(place.node) {
        let index = place.index as usize;
        if n.subgraphs.len() <= index {
            n.subgraphs.resize(index + 1, None);
        }
        n.subgraphs[index] = Some(child);
    }
}

/// Brings the nodes into the order of their ids if that is a topological order, else sorts and numbers them anew.
pub(super) fn settle_order(module: &mut Module) {
    for g in &mut module.graphs {
        if g.ids_are_topological() {
            let mut order = g.id_list();
            if order.is_sorted_by_key(|id| g.node(*id).id) {
                continue;
            }
            order.sort_by_key(|id| g.node(*id).id);
            g.set_order(&order);
        } else {
            // A cycle was reported as a defect; then no pass runs.
            let _ = g.sort();
        }
    }
}
