//! From a scenario file's text to a [`Scenario`]: names resolved, every mistake reported with its line.

use super::model::*;
use super::raw;
use crate::element::{ElementType, Init, Number};
use crate::failure::{Failure, Result};
use crate::input;
use crate::names::Named;
use gsan_host::CellFormat;
use gsan_host::report::RaceClass;
use gsan_sim::{ExitedWarps, MemoryModel, Schedule};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::Spanned;

#[path = "parse_expect.rs"]
mod expectations;
#[path = "parse_graph.rs"]
mod graphs;
#[path = "parse_multicast.rs"]
mod multicasts;
#[path = "parse_step.rs"]
mod steps;
#[path = "parse_tensor.rs"]
mod tensors;

/// Reads and checks a scenario file.
pub fn load(file: &Path) -> Result<Scenario> {
    let bytes = input::read(file)?;
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        let good = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
        let place = Places { file, text: good };
        let end = good.len()..good.len();
        Failure {
            excerpt: String::new(),
            ..place.error(&end, "not UTF-8 text; a scenario is a TOML file")
        }
    })?;
    // Some editors begin a file with a byte order mark.
    parse(file, text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Checks a scenario's text; `file` names it in messages and anchors relative paths.
pub fn parse(file: &Path, text: &str) -> Result<Scenario> {
    let place = Places { file, text };
    let raw: raw::Scenario = toml::from_str(text).map_err(|e| {
        let message = e.message().lines().collect::<Vec<_>>().join("; ");
        match e.span() {
            Some(span) => place.error(&span, message),
            None => Failure::input(format_args!("{}: {message}", file.display())),
        }
    })?;
    Resolver {
        place,
        scenario: empty(file),
    }
    .resolve(raw)
}

fn empty(file: &Path) -> Scenario {
    Scenario {
        name: file
            .file_stem()
            .map_or_else(|| "scenario".into(), |s| s.to_string_lossy().into_owned()),
        file: file.to_path_buf(),
        device: DeviceShape::default(),
        classes_off: Vec::new(),
        timeout: None,
        modules: Vec::new(),
        buffers: Vec::new(),
        streams: Vec::new(),
        events: Vec::new(),
        graphs: Vec::new(),
        steps: Vec::new(),
        expect: None,
    }
}

/// Turns byte ranges into lines.
struct Places<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Places<'_> {
    fn line(&self, span: &Range<usize>) -> u32 {
        let start = span.start.min(self.text.len());
        1 + self.text.as_bytes()[..start]
            .iter()
            .filter(|b| **b == b'\n')
            .count() as u32
    }

    fn error(&self, span: &Range<usize>, message: impl Display) -> Failure {
        let start = span.start.min(self.text.len());
        let before = &self.text.as_bytes()[..start];
        let column = start
            - before
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |n| n + 1)
            + 1;
        let place = (self.line(span) as usize, column);
        Failure::at(self.file, self.text, place, message)
    }

    /// The line on which a string of several lines begins; 0 where it is not written as it is.
    fn first_line_of(&self, text: &Spanned<String>) -> u32 {
        let written = self.text.get(text.span()).unwrap_or_default();
        let Some(inside) = ["'''", "\"\"\""]
            .iter()
            .find_map(|q| written.strip_prefix(q))
        else {
            return 0;
        };
        // A line break right behind the quotes is none of the text.
        let inside = inside.strip_prefix('\r').unwrap_or(inside);
        let inside = inside.strip_prefix('\n').unwrap_or(inside);
        if !inside.starts_with(text.get_ref().as_str()) {
            return 0;
        }
        let start = text.span().end - inside.len();
        self.line(&(start..start))
    }

    fn parsed<T: FromStr<Err = String>>(&self, text: &Spanned<String>) -> Result<T> {
        text.get_ref()
            .parse()
            .map_err(|e| self.error(&text.span(), e))
    }
}

struct Resolver<'a> {
    place: Places<'a>,
    scenario: Scenario,
}

impl Resolver<'_> {
    fn resolve(mut self, raw: raw::Scenario) -> Result<Scenario> {
        if let Some(name) = raw.name {
            self.scenario.name = name;
        }
        self.device(&raw.device)?;
        for module in raw.module {
            self.module(module)?;
        }
        for buffer in raw.buffer {
            self.buffer(buffer)?;
        }
        for stream in raw.stream {
            self.stream(stream)?;
        }
        graphs::resolve(&mut self, raw.graph)?;
        steps::resolve(&mut self, raw.step)?;
        if let Some(expect) = raw.expect {
            self.scenario.expect = Some(expectations::resolve(&self, expect)?);
        }
        Ok(self.scenario)
    }

    fn device(&mut self, raw: &raw::Device) -> Result<()> {
        let positive = |name: &str, value: &Option<Spanned<u32>>, most: u32| match value {
            Some(v) if *v.get_ref() == 0 => Err(self
                .place
                .error(&v.span(), format_args!("`{name}` must be at least 1"))),
            Some(v) if *v.get_ref() > most => Err(self
                .place
                .error(&v.span(), format_args!("`{name}` must be at most {most}"))),
            Some(v) => Ok(Some(*v.get_ref())),
            None => Ok(None),
        };
        let one_of = |name: &str, value: &Option<Spanned<String>>, words: [&str; 2]| match value {
            Some(v) if v.get_ref() == words[0] => Ok(Some(false)),
            Some(v) if v.get_ref() == words[1] => Ok(Some(true)),
            Some(v) => Err(self.place.error(
                &v.span(),
                format_args!("`{name}` is \"{}\" or \"{}\"", words[0], words[1]),
            )),
            None => Ok(None),
        };
        let shape = DeviceShape {
            sms: positive("sms", &raw.sms, 4096)?,
            devices: positive("devices", &raw.devices, 64)?,
            blocks_per_sm: positive("blocks_per_sm", &raw.blocks_per_sm, 64)?,
            slots_per_sm: positive("slots_per_sm", &raw.slots_per_sm, 32)?,
            clock_buffer_size: positive("clock_buffer_size", &raw.clock_buffer_size, 1 << 20)?,
            sc_order: raw.sc_order,
            memory: one_of("memory", &raw.memory, ["sc", "weak"])?.map(|weak| match weak {
                true => MemoryModel::Weak,
                false => MemoryModel::Sequential,
            }),
            schedule: one_of("schedule", &raw.schedule, ["random", "priority"])?.map(|p| match p {
                true => Schedule::Priority,
                false => Schedule::Random,
            }),
            exited_warps: one_of("exited_warps", &raw.exited_warps, ["fault", "arrive"])?.map(
                |a| match a {
                    true => ExitedWarps::Arrive,
                    false => ExitedWarps::Fault,
                },
            ),
            cell: match &raw.cell {
                Some(name) => Some(match name.get_ref().as_str() {
                    "wide" => CellFormat::Wide,
                    "reference" => CellFormat::Reference,
                    _ => {
                        return Err(self
                            .place
                            .error(&name.span(), "`cell` is \"wide\" or \"reference\""));
                    }
                }),
                None => None,
            },
        };
        self.scenario.device = shape;
        for word in &raw.classes_off {
            let class = RaceClass::from_word(word.get_ref()).ok_or_else(|| {
                let message = format!(
                    "there is no class `{}`; there are: {}",
                    word.get_ref(),
                    RaceClass::words()
                );
                self.place.error(&word.span(), message)
            })?;
            self.scenario.classes_off.push(class);
        }
        self.scenario.timeout = positive("timeout", &raw.timeout, 1 << 20)?;
        Ok(())
    }

    fn module(&mut self, raw: Spanned<raw::Module>) -> Result<()> {
        let span = raw.span();
        let raw = raw.into_inner();
        let mut text_line = 0;
        let source = match (raw.path, raw.ptx) {
            (Some(path), None) => ModuleSource::File(self.beside(path.get_ref())),
            (None, Some(text)) => {
                text_line = self.place.first_line_of(&text);
                ModuleSource::Inline(text.into_inner())
            }
            (None, None) => return Err(self.place.error(&span, "a module needs `path` or `ptx`")),
            (Some(path), Some(_)) => {
                return Err(self.place.error(
                    &path.span(),
                    "a module has either `path` or `ptx`, not both",
                ));
            }
        };
        let name = match raw.name {
            Some(name) => {
                if self
                    .scenario
                    .modules
                    .iter()
                    .any(|m| m.name == *name.get_ref())
                {
                    let message = format!("there is a module `{}` already", name.get_ref());
                    return Err(self.place.error(&name.span(), message));
                }
                name.into_inner()
            }
            None => format!("module{}", self.scenario.modules.len()),
        };
        let line = self.place.line(&span);
        let link = raw.link.iter().map(|path| self.beside(path)).collect();
        self.scenario.modules.push(Module {
            name,
            source,
            link,
            line,
            text_line,
        });
        Ok(())
    }

    fn buffer(&mut self, raw: Spanned<raw::Buffer>) -> Result<()> {
        let span = raw.span();
        let line = self.place.line(&span);
        let raw = raw.into_inner();
        let name = raw.name.get_ref().clone();
        if self.scenario.buffers.iter().any(|b| b.name == name) {
            return Err(self.place.error(
                &raw.name.span(),
                format_args!("there is a buffer `{name}` already"),
            ));
        }
        if name.is_empty() || name.contains(['+', ':']) {
            let message = "a buffer's name is not empty and has no `+` or `:` (they are used as in `data+16`)";
            return Err(self.place.error(&raw.name.span(), message));
        }
        let ty: ElementType = self.place.parsed(&raw.ty)?;
        let len = *raw.len.get_ref();
        check_length(len, ty).map_err(|e| self.place.error(&raw.len.span(), e))?;
        let init = match &raw.init {
            None => Init::Zero,
            Some(text) => match self.place.parsed::<Init>(text)? {
                Init::File(path) => Init::File(self.beside(path)),
                init => {
                    init.check(ty)
                        .map_err(|e| self.place.error(&text.span(), e))?;
                    init
                }
            },
        };
        let device = self.device_number(&raw.device)?;
        let buffer = Buffer {
            name,
            ty,
            len,
            init,
            device,
            memory: raw.memory,
            devices: Vec::new(),
            line,
        };
        multicasts::declare(self, buffer, &raw.devices, &span)
    }

    fn stream(&mut self, raw: Spanned<raw::Stream>) -> Result<()> {
        let raw = raw.into_inner();
        let name = raw.name.get_ref().clone();
        if self.scenario.streams.iter().any(|s| s.name == name) {
            return Err(self.place.error(
                &raw.name.span(),
                format_args!("there is a stream `{name}` already"),
            ));
        }
        let device = self.device_number(&raw.device)?;
        self.scenario.streams.push(Stream {
            name,
            flags: raw.flags,
            device,
        });
        Ok(())
    }

    fn device_number(&self, raw: &Option<Spanned<u32>>) -> Result<u32> {
        let Some(number) = raw else { return Ok(0) };
        let devices = self.scenario.device.devices.unwrap_or(1);
        if *number.get_ref() >= devices {
            let message = format!(
                "there is no device {}: [device] has devices = {devices}, numbered from 0",
                number.get_ref()
            );
            return Err(self.place.error(&number.span(), message));
        }
        Ok(*number.get_ref())
    }

    /// A path of the file, relative to the file.
    fn beside(&self, path: impl AsRef<Path>) -> PathBuf {
        self.place.file.parent().unwrap_or(Path::new("")).join(path)
    }

    fn find_buffer(&self, name: &Spanned<String>) -> Result<usize> {
        self.buffer_named(name.get_ref())
            .ok_or_else(|| self.no_buffer(name.get_ref(), &name.span()))
    }

    /// The same of one that has memory of its own.
    fn find_memory(&self, name: &Spanned<String>) -> Result<usize> {
        let buffer = self.find_buffer(name)?;
        multicasts::has_memory(self, buffer, &name.span())
    }

    /// `name` or `name+BYTES` of such a one.
    fn memory_ref(&self, text: &str, span: &Range<usize>) -> Result<BufferRef> {
        let at = self.buffer_ref(text, span)?;
        multicasts::has_memory(self, at.buffer, span)?;
        Ok(at)
    }

    fn buffer_named(&self, name: &str) -> Option<usize> {
        self.scenario.buffers.iter().position(|b| b.name == name)
    }

    fn no_buffer(&self, name: &str, span: &Range<usize>) -> Failure {
        let known = listed(self.scenario.buffers.iter().map(|b| b.name.as_str()));
        self.place
            .error(span, format_args!("there is no buffer `{name}`; {known}"))
    }

    /// `name` or `name+BYTES`, within the buffer.
    fn buffer_ref(&self, text: &str, span: &Range<usize>) -> Result<BufferRef> {
        let (name, offset) = match text.split_once('+') {
            None => (text, 0),
            Some((name, offset)) => match offset.trim().parse() {
                Ok(Number::Int(n)) if u64::try_from(n).is_ok() => (name.trim_end(), n as u64),
                _ => {
                    return Err(self
                        .place
                        .error(span, format_args!("`{offset}` is not a byte offset")));
                }
            },
        };
        let buffer = self
            .buffer_named(name)
            .ok_or_else(|| self.no_buffer(name, span))?;
        let bytes = self.scenario.buffers[buffer].bytes();
        if offset > bytes {
            return Err(self.place.error(
                span,
                format_args!("`{text}` lies outside the buffer's {bytes} bytes"),
            ));
        }
        Ok(BufferRef { buffer, offset })
    }

    /// The stream of that name, made on first use.
    fn use_stream(&mut self, name: &str) -> usize {
        let streams = &mut self.scenario.streams;
        streams
            .iter()
            .position(|s| s.name == name)
            .unwrap_or_else(|| {
                streams.push(Stream {
                    name: name.to_string(),
                    flags: StreamFlags::Blocking,
                    device: 0,
                });
                streams.len() - 1
            })
    }
}

/// Whether a buffer of that many elements can exist at all.
pub fn check_length(len: u64, ty: ElementType) -> std::result::Result<(), String> {
    if len == 0 {
        return Err("a buffer needs at least one element".into());
    }
    match len.checked_mul(ty.size() as u64) {
        Some(bytes) if bytes < 1 << 56 => Ok(()),
        _ => Err(format!(
            "{len} elements of {ty} are more than any device has"
        )),
    }
}

/// `there are: a, b`
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "there is none".into()
    } else {
        format!("there are: {}", names.join(", "))
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
