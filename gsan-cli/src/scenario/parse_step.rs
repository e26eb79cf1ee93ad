//! `[[step]]` entries.

use super::{Resolver, listed};
use crate::element::{ElementType, Init, Number};
use crate::failure::Result;
use crate::scenario::model::*;
use crate::scenario::raw;
use std::ops::Range;
use toml::Spanned;

/// Adds the steps to the scenario.
pub(super) fn resolve(r: &mut Resolver<'_>, raw: Vec<Spanned<raw::Step>>) -> Result<()> {
    let mut live = vec![true; r.scenario.buffers.len()];
    for step in raw {
        let span = step.span();
        let raw = step.into_inner();
        let kind = Kind::of(r, &raw, &span)?;
        kind.check_keys(r, &raw)?;
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
}

impl Kind {
    const ALL: [(&'static str, Kind); 9] = [
        ("launch", Kind::Launch),
        ("record", Kind::Record),
        ("wait", Kind::Wait),
        ("synchronize", Kind::Synchronize),
        ("memset", Kind::Memset),
        ("copy", Kind::Copy),
        ("read_back", Kind::ReadBack),
        ("free", Kind::Free),
        ("allocate", Kind::Allocate),
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
        if self == Kind::Synchronize {
            misplaced.push(("stream", span(&raw.stream)));
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
                    let message = format!("no earlier step records an event `{}`", name.get_ref());
                    r.place.error(&name.span(), message)
                })?;
            Action::Wait { event }
        }
        Kind::Synchronize => Action::Synchronize(sync_target(r, &named(&raw.synchronize))?),
        Kind::Memset => {
            let buffer = r.find_buffer(&named(&raw.memset))?;
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
            buffer: r.find_buffer(&named(&raw.read_back))?,
        },
        Kind::Free => {
            let name = named(&raw.free);
            let buffer = r.find_buffer(&name)?;
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
            let buffer = r.find_buffer(&name)?;
            if std::mem::replace(&mut live[buffer], true) {
                let message = format!("`{}` is allocated already; `free` it first", name.get_ref());
                return Err(r.place.error(&name.span(), message));
            }
            Action::Allocate { buffer }
        }
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
    let from = r.buffer_ref(raw.from.get_ref(), &raw.from.span())?;
    let to = r.buffer_ref(raw.to.get_ref(), &raw.to.span())?;
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
             elements ({ u32 = [1, 2] }, { u32 = \"iota\", len = 64 })",
        )
    };
    match raw.get_ref() {
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
