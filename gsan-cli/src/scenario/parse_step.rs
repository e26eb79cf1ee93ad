//! `[[step]]` entries.

use super::{Resolver, graphs, listed, multicasts};
use crate::element::{ElementType, Init, Number};
use crate::failure::Result;
use crate::scenario::model::*;
use crate::scenario::raw;
use std::ops::Range;
use toml::Spanned;

/// Adds the steps to the scenario.
pub(super) fn resolve(r: &mut Resolver<'_>, raw: Vec<Spanned<raw::Step>>) -> Result<()> {
    let mut live = vec![true; r.scenario.buffers.len()];
    // A step may wait for an event that is recorded only later: that orders nothing.
    for record in raw.iter().filter_map(|s| s.get_ref().record.as_ref()) {
        let name = record.get_ref();
        if !r.scenario.events.contains(name) {
            r.scenario.events.push(name.clone());
        }
    }
    for step in raw {
        let span = step.span();
        let raw = step.into_inner();
        let kind = Kind::of(r, &raw, &span)?;
        kind.check_keys(r, &raw)?;
        if kind == Kind::Empty {
            let message = "`empty` is for a node of a graph";
            return Err(r.place.error(&span, message));
        }
        let in_graph = raw.name.as_ref().map(|n| ("name", n.span()));
        let after = raw.after.iter().flatten().next();
        if let Some((key, at)) = in_graph.or(after.map(|a| ("after", a.span()))) {
            let message = format!("`{key}` is for a node of a graph; steps are issued in order");
            return Err(r.place.error(&at, message));
        }
        let stream = match &raw.stream {
            Some(name) if name.get_ref().is_empty() => {
                return Err(r.place.error(&name.span(), "a stream's name is not empty"));
            }
            Some(name) => Some(r.use_stream(name.get_ref())),
            None => None,
        };
        let action = action(r, kind, &raw, &span, &mut live)?;
        // The line of the key that says what the step does, not of the `[[step]]` above it.
        let line = kind
            .place(&raw)
            .map_or_else(|| r.place.line(&span), |s| r.place.line(&s));
        r.scenario.steps.push(Step {
            line,
            stream,
            action,
        });
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Launch,
    Record,
    Wait,
    Synchronize,
    Memset,
    Copy,
    ReadBack,
    Free,
    Allocate,
    Query,
    Forget,
    Graph,
    Capture,
    EndCapture,
    Empty,
}

impl Kind {
    const ALL: [(&'static str, Kind); 15] = [
        ("launch", Kind::Launch),
        ("record", Kind::Record),
        ("wait", Kind::Wait),
        ("synchronize", Kind::Synchronize),
        ("memset", Kind::Memset),
        ("copy", Kind::Copy),
        ("read_back", Kind::ReadBack),
        ("free", Kind::Free),
        ("allocate", Kind::Allocate),
        ("query", Kind::Query),
        ("forget", Kind::Forget),
        ("graph", Kind::Graph),
        ("capture", Kind::Capture),
        ("end_capture", Kind::EndCapture),
        ("empty", Kind::Empty),
    ];

    fn name(self) -> &'static str {
        Kind::ALL
            .iter()
            .find(|(_, k)| *k == self)
            .map_or("", |(n, _)| n)
    }

    /// Where the step's own key has its value.
    fn place(self, raw: &raw::Step) -> Option<Range<usize>> {
        let text = |v: &Option<Spanned<String>>| v.as_ref().map(Spanned::span);
        match self {
            Kind::Launch => text(&raw.launch),
            Kind::Record => text(&raw.record),
            Kind::Wait => text(&raw.wait),
            Kind::Synchronize => text(&raw.synchronize),
            Kind::Memset => text(&raw.memset),
            Kind::Copy => raw.copy.as_ref().map(Spanned::span),
            Kind::ReadBack => text(&raw.read_back),
            Kind::Free => text(&raw.free),
            Kind::Allocate => text(&raw.allocate),
            Kind::Query => text(&raw.query),
            Kind::Forget => text(&raw.forget),
            Kind::Graph => text(&raw.graph),
            Kind::Capture => text(&raw.capture),
            Kind::EndCapture => text(&raw.end_capture),
            Kind::Empty => raw.empty.as_ref().map(Spanned::span),
        }
    }

    /// The one thing that a step does.
    fn of(r: &Resolver<'_>, raw: &raw::Step, span: &Range<usize>) -> Result<Kind> {
        let mut there = Kind::ALL.iter().filter(|(_, k)| k.place(raw).is_some());
        let Some((first, kind)) = there.next() else {
            let names = Kind::ALL.map(|(n, _)| n).join(", ");
            return Err(r.place.error(
                span,
                format_args!("this step does nothing: it needs one of {names}"),
            ));
        };
        if let Some((second, other)) = there.next() {
            let at = other.place(raw).unwrap_or(span.clone());
            return Err(r.place.error(
                &at,
                format_args!("one step does one thing: `{first}` or `{second}`, not both"),
            ));
        }
        Ok(*kind)
    }

    /// Refuses keys that mean nothing for this kind of step.
    fn check_keys(self, r: &Resolver<'_>, raw: &raw::Step) -> Result<()> {
        fn span<T>(v: &Option<Spanned<T>>) -> Option<Range<usize>> {
            v.as_ref().map(Spanned::span)
        }
        let launch_keys = [
            ("module", span(&raw.module)),
            ("grid", span(&raw.grid)),
            ("block", span(&raw.block)),
            ("cluster", span(&raw.cluster)),
            ("shared", span(&raw.shared)),
            ("cooperative", span(&raw.cooperative)),
            ("pdl", span(&raw.pdl)),
            ("args", span(&raw.args)),
        ];
        let mut misplaced = Vec::new();
        if self != Kind::Launch {
            misplaced.extend(launch_keys);
        }
        if self != Kind::Memset {
            misplaced.push(("value", span(&raw.value)));
        }
        if matches!(
            self,
            Kind::Synchronize | Kind::Query | Kind::EndCapture | Kind::Empty
        ) {
            misplaced.push(("stream", span(&raw.stream)));
        }
        if self != Kind::Forget {
            misplaced.push(("bytes", span(&raw.bytes)));
        }
        if self == Kind::Allocate {
            misplaced.push(("stream", span(&raw.stream)));
        }
        match misplaced
            .into_iter()
            .find_map(|(name, span)| span.map(|s| (name, s)))
        {
            Some((name, span)) => Err(r.place.error(
                &span,
                format_args!("`{name}` means nothing in a `{}` step", self.name()),
            )),
            None => Ok(()),
        }
    }
}

/// What a node of a graph does, and where that stands.
pub(super) fn node_action(
    r: &mut Resolver<'_>,
    raw: &raw::Step,
    span: &Range<usize>,
) -> Result<(Action, u32)> {
    let kind = Kind::of(r, raw, span)?;
    kind.check_keys(r, raw)?;
    let at = kind.place(raw).unwrap_or(span.clone());
    let in_graphs = [
        Kind::Launch,
        Kind::Memset,
        Kind::Copy,
        Kind::Graph,
        Kind::Empty,
    ];
    if !in_graphs.contains(&kind) {
        let message = format!(
            "`{}` is no node of a graph: those are launch, memset, copy, graph and empty",
            kind.name()
        );
        return Err(r.place.error(&at, message));
    }
    if let Some(stream) = &raw.stream {
        let message = "a node has no stream: its edges (`after`) order it";
        return Err(r.place.error(&stream.span(), message));
    }
    let action = action(r, kind, raw, span, &mut [])?;
    Ok((action, r.place.line(&at)))
}

fn action(
    r: &mut Resolver<'_>,
    kind: Kind,
    raw: &raw::Step,
    span: &Range<usize>,
    live: &mut [bool],
) -> Result<Action> {
    // `Kind::of` has seen that the value is there.
    let named = |v: &Option<Spanned<String>>| {
        v.clone()
            .unwrap_or_else(|| Spanned::new(span.clone(), String::new()))
    };
    Ok(match kind {
        Kind::Launch => Action::Launch(launch(r, raw, &named(&raw.launch))?),
        Kind::Record => {
            let name = named(&raw.record).into_inner();
            let events = &mut r.scenario.events;
            let event = events.iter().position(|e| *e == name).unwrap_or_else(|| {
                events.push(name);
                events.len() - 1
            });
            Action::Record { event }
        }
        Kind::Wait => {
            let name = named(&raw.wait);
            let event = r
                .scenario
                .events
                .iter()
                .position(|e| e == name.get_ref())
                .ok_or_else(|| {
                    let message = format!("no step records an event `{}`", name.get_ref());
                    r.place.error(&name.span(), message)
                })?;
            Action::Wait { event }
        }
        Kind::Synchronize => Action::Synchronize(sync_target(r, &named(&raw.synchronize))?),
        Kind::Memset => {
            let buffer = r.find_memory(&named(&raw.memset))?;
            let value = match &raw.value {
                None => 0,
                Some(v) => match v.get_ref() {
                    toml::Value::Integer(i) if (-128..256).contains(i) => *i as u8,
                    _ => {
                        return Err(r
                            .place
                            .error(&v.span(), "`value` is one byte: 0 to 255, or -128 to 127"));
                    }
                },
            };
            Action::Memset { buffer, value }
        }
        Kind::Copy => copy(r, raw, span)?,
        Kind::ReadBack => Action::ReadBack {
            buffer: r.find_memory(&named(&raw.read_back))?,
        },
        Kind::Free => {
            let name = named(&raw.free);
            let buffer = multicasts::is_whole(r, r.find_buffer(&name)?, &name)?;
            if !std::mem::replace(&mut live[buffer], false) {
                return Err(r.place.error(
                    &name.span(),
                    format_args!("`{}` was freed before", name.get_ref()),
                ));
            }
            Action::Free { buffer }
        }
        Kind::Allocate => {
            let name = named(&raw.allocate);
            let buffer = multicasts::is_whole(r, r.find_buffer(&name)?, &name)?;
            if std::mem::replace(&mut live[buffer], true) {
                let message = format!("`{}` is allocated already; `free` it first", name.get_ref());
                return Err(r.place.error(&name.span(), message));
            }
            Action::Allocate { buffer }
        }
        Kind::Query => Action::Query(sync_target(r, &named(&raw.query))?),
        Kind::Forget => {
            let name = named(&raw.forget);
            let at = r.memory_ref(name.get_ref(), &name.span())?;
            let room = r.scenario.buffers[at.buffer].bytes() - at.offset;
            let bytes = raw.bytes.as_ref().map_or(room, |b| *b.get_ref());
            if bytes > room {
                let message = format!(
                    "{bytes} bytes are more than `{}` has ({room})",
                    name.get_ref()
                );
                let span = raw.bytes.as_ref().map_or(name.span(), Spanned::span);
                return Err(r.place.error(&span, message));
            }
            Action::Forget { at, bytes }
        }
        Kind::Graph => Action::LaunchGraph {
            graph: graphs::find(r, &named(&raw.graph))?,
        },
        Kind::Capture => {
            let name = named(&raw.capture);
            let graph = Graph {
                name: graphs::new_name(r, &name)?,
                nodes: Vec::new(),
                captured: true,
                line: r.place.line(&name.span()),
            };
            r.scenario.graphs.push(graph);
            Action::Capture {
                graph: r.scenario.graphs.len() - 1,
            }
        }
        Kind::EndCapture => Action::EndCapture {
            graph: graphs::find(r, &named(&raw.end_capture))?,
        },
        Kind::Empty => Action::Empty,
    })
}

fn sync_target(r: &Resolver<'_>, name: &Spanned<String>) -> Result<SyncTarget> {
    let wanted = name.get_ref();
    if let Some(event) = r.scenario.events.iter().position(|e| e == wanted) {
        return Ok(SyncTarget::Event(event));
    }
    if let Some(stream) = r.scenario.streams.iter().position(|s| s.name == *wanted) {
        return Ok(SyncTarget::Stream(stream));
    }
    if wanted == "device" {
        return Ok(SyncTarget::Device);
    }
    let streams = listed(r.scenario.streams.iter().map(|s| s.name.as_str()));
    let message = format!(
        "`{wanted}` is neither `device`, nor an event recorded before, nor a stream used before ({streams})"
    );
    Err(r.place.error(&name.span(), message))
}

fn copy(r: &Resolver<'_>, raw: &raw::Step, span: &Range<usize>) -> Result<Action> {
    let Some(copy) = &raw.copy else {
        return Err(r.place.error(span, "`copy` needs { from, to, bytes }"));
    };
    let raw = copy.get_ref();
    let from = r.memory_ref(raw.from.get_ref(), &raw.from.span())?;
    let to = r.memory_ref(raw.to.get_ref(), &raw.to.span())?;
    let room = |at: BufferRef| r.scenario.buffers[at.buffer].bytes() - at.offset;
    let bytes = match &raw.bytes {
        Some(b) => *b.get_ref(),
        None => room(from).min(room(to)),
    };
    for (at, text) in [(from, &raw.from), (to, &raw.to)] {
        if bytes > room(at) {
            let at_span = raw.bytes.as_ref().map_or(text.span(), Spanned::span);
            let message = format!(
                "{bytes} bytes are more than `{}` has ({})",
                text.get_ref(),
                room(at)
            );
            return Err(r.place.error(&at_span, message));
        }
    }
    Ok(Action::Copy { from, to, bytes })
}

fn launch(r: &Resolver<'_>, raw: &raw::Step, kernel: &Spanned<String>) -> Result<Launch> {
    let module = match &raw.module {
        Some(name) => {
            let known = &r.scenario.modules;
            known
                .iter()
                .position(|m| m.name == *name.get_ref())
                .ok_or_else(|| {
                    let known = listed(known.iter().map(|m| m.name.as_str()));
                    r.place.error(
                        &name.span(),
                        format_args!("there is no module `{}`; {known}", name.get_ref()),
                    )
                })?
        }
        None => match r.scenario.modules.len() {
            1 => 0,
            0 => {
                return Err(r
                    .place
                    .error(&kernel.span(), "there is no [[module]] to launch from"));
            }
            _ => {
                return Err(r.place.error(
                    &kernel.span(),
                    "there are several modules: say which with `module`",
                ));
            }
        },
    };
    let required = |name: &str, value: &Option<Spanned<raw::Dims>>| match value {
        Some(v) => dims(r, name, v),
        None => Err(r
            .place
            .error(&kernel.span(), format_args!("a launch needs `{name}`"))),
    };
    let grid = required("grid", &raw.grid)?;
    let block = required("block", &raw.block)?;
    let cluster = raw
        .cluster
        .as_ref()
        .map(|v| dims(r, "cluster", v))
        .transpose()?;
    let mut args = Vec::new();
    for arg in raw.args.iter().flat_map(|a| a.get_ref()) {
        args.push(argument(r, arg)?);
    }
    let flag = |v: &Option<Spanned<bool>>| v.as_ref().is_some_and(|v| *v.get_ref());
    Ok(Launch {
        kernel: kernel.get_ref().clone(),
        module,
        grid,
        block,
        cluster,
        shared: raw.shared.as_ref().map_or(0, |v| *v.get_ref()),
        cooperative: flag(&raw.cooperative),
        pdl: flag(&raw.pdl),
        args,
    })
}

fn dims(r: &Resolver<'_>, name: &str, raw: &Spanned<raw::Dims>) -> Result<[u32; 3]> {
    let given = raw.get_ref();
    if given.is_empty() || given.len() > 3 || given.contains(&0) {
        let message =
            format!("`{name}` is one to three numbers of at least 1, as in [4] or [4, 2]");
        return Err(r.place.error(&raw.span(), message));
    }
    let mut dims = [1; 3];
    dims[..given.len()].copy_from_slice(given);
    Ok(dims)
}

/// `"data"`, `"data+16"` or `{ u32 = 5 }`.
fn argument(r: &Resolver<'_>, raw: &Spanned<toml::Value>) -> Result<Arg> {
    let span = raw.span();
    let wrong = || {
        r.place.error(
            &span,
            "an argument is a buffer (\"data\", \"data+16\"), a typed number ({ u32 = 5 }), or for an array or structure its \
             elements ({ u32 = [1, 2] }, { u32 = \"iota\", len = 64 }), or a tensor map ({ tensor = \"data\", extents = [8, 8], box = [4, 4] })",
        )
    };
    match raw.get_ref() {
        toml::Value::Table(table) if table.contains_key("tensor") => {
            super::tensors::tensor(r, table, &span).map(Arg::Tensor)
        }
        toml::Value::String(text) => Ok(Arg::Buffer(r.buffer_ref(text, &span)?)),
        toml::Value::Table(table) => {
            let len = table.get("len");
            let mut entries = table.iter().filter(|(key, _)| *key != "len");
            let (Some((ty, value)), None) = (entries.next(), entries.next()) else {
                return Err(wrong());
            };
            let here = |e: String| r.place.error(&span, e);
            let ty: ElementType = ty.parse().map_err(here)?;
            let bytes = match (value, len) {
                (toml::Value::Array(elements), None) if !elements.is_empty() => {
                    let mut bytes = Vec::new();
                    for element in elements {
                        let number = number(element).ok_or_else(wrong)?;
                        bytes.extend(ty.encode(number).map_err(here)?);
                    }
                    bytes
                }
                (toml::Value::String(init), Some(len)) => {
                    filled(ty, init, len).map_err(here)?.ok_or_else(wrong)?
                }
                (_, None) => ty.encode(number(value).ok_or_else(wrong)?).map_err(here)?,
                _ => return Err(wrong()),
            };
            Ok(Arg::Scalar { ty, bytes })
        }
        _ => Err(wrong()),
    }
}

/// Kernels have no more bytes of parameters.
const MAX_PARAMETER: usize = 32_764;

/// The elements of an array parameter as a buffer's are given; `None` where `len` is no number of elements that can be.
fn filled(
    ty: ElementType,
    init: &str,
    len: &toml::Value,
) -> std::result::Result<Option<Vec<u8>>, String> {
    let len = len.as_integer().and_then(|n| usize::try_from(n).ok());
    let Some(len) = len.filter(|n| (1..=MAX_PARAMETER / ty.size()).contains(n)) else {
        return Ok(None);
    };
    let init: Init = init.parse()?;
    if matches!(init, Init::File(_)) {
        return Err("an argument's elements don't come from a file".into());
    }
    init.check(ty)?;
    let mut bytes = vec![0; len * ty.size()];
    init.write(ty, 0, &mut bytes);
    Ok(Some(bytes))
}

/// A TOML number; strings too, for what TOML's 64-bit integers do not hold.
pub(super) fn number(value: &toml::Value) -> Option<Number> {
    match value {
        toml::Value::Integer(i) => Some(Number::Int(i128::from(*i))),
        toml::Value::Float(f) => Some(Number::Float(*f)),
        toml::Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
