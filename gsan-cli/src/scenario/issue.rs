//! Issues a scenario's steps to a session, in order, as a host program would.

use super::expect::Values;
use super::model::*;
use super::run::Prepared;
use crate::element::{Init, Number};
use crate::ptx::one_line;
use crate::render::json::Printed;
use gsan_host::report::Report;
use gsan_host::{
    self as host, EventId, LaunchSpec, MemoryKind, ModuleId, ReadId, Session, StreamId, Wait,
};

/// Bytes of initial content made at a time.
const CHUNK: u64 = 8 << 20;

/// An error with the scenario's line where it came up.
pub type Located<T> = Result<T, (u32, host::Error)>;

/// A session with a scenario's things in it.
pub struct Issuer<'a> {
    prepared: &'a Prepared<'a>,
    session: Session,
    modules: Vec<ModuleId>,
    /// By buffer; a freed one keeps its last address, so that a use after the free is what the kernel sees.
    buffers: Vec<Option<host::Buffer>>,
    live: Vec<bool>,
    streams: Vec<StreamId>,
    events: Vec<Option<EventId>>,
    reads: Vec<ReadId>,
    /// How many steps are issued.
    steps: usize,
}

impl<'a> Issuer<'a> {
    /// Nothing is issued yet.
    pub fn new(prepared: &'a Prepared<'a>, session: Session, steps: Option<usize>) -> Issuer<'a> {
        let scenario = prepared.scenario;
        Issuer {
            prepared,
            session,
            modules: Vec::new(),
            buffers: vec![None; scenario.buffers.len()],
            live: vec![false; scenario.buffers.len()],
            streams: Vec::new(),
            events: vec![None; scenario.events.len()],
            reads: Vec::new(),
            steps: steps.unwrap_or(scenario.steps.len()),
        }
    }

    /// Loads, allocates, issues every step and waits for all of it.
    pub fn everything(&mut self) -> Located<()> {
        let scenario = self.prepared.scenario;
        for (module, texts) in scenario.modules.iter().zip(&self.prepared.modules) {
            let names: Vec<&str> = texts.iter().map(|t| t.name.as_str()).collect();
            let texts: Vec<(&str, &str)> = texts
                .iter()
                .map(|t| (t.name.as_str(), t.text.as_str()))
                .collect();
            let id = self
                .session
                .load_linked(&names.join("+"), &texts)
                .map_err(|e| (module.line, e))?;
            self.modules.push(id);
        }
        for (index, buffer) in scenario.buffers.iter().enumerate() {
            self.allocate(index).map_err(|e| (buffer.line, e))?;
        }
        self.session.synchronize(Wait::Device).map_err(|e| (0, e))?;
        for stream in &scenario.streams {
            let id = self
                .session
                .stream(&stream.name, stream_flags(stream.flags), stream.device);
            self.streams.push(id.map_err(|e| (0, e))?);
        }
        for step in scenario.steps.iter().take(self.steps) {
            self.step(step).map_err(|e| (step.line, e))?;
        }
        for read in std::mem::take(&mut self.reads) {
            self.session.take_read(read).map_err(|e| (0, e))?;
        }
        self.session.synchronize(Wait::Device).map_err(|e| (0, e))
    }

    fn step(&mut self, step: &Step) -> host::Result<()> {
        match &step.action {
            Action::Launch(launch) => {
                let stream = self.stream(step)?;
                let args = launch
                    .args
                    .iter()
                    .map(|a| self.argument(a))
                    .collect::<host::Result<_>>()?;
                self.session.launch(&LaunchSpec {
                    module: self.modules[launch.module],
                    kernel: launch.kernel.clone(),
                    grid: launch.grid,
                    block: launch.block,
                    cluster: launch.cluster,
                    dynamic_shared: launch.shared,
                    cooperative: launch.cooperative,
                    pdl: launch.pdl,
                    stream,
                    args,
                })?;
                Ok(())
            }
            Action::Record { event } => {
                let stream = self.stream(step)?;
                let id = match self.events[*event] {
                    Some(id) => id,
                    None => {
                        let name = &self.prepared.scenario.events[*event];
                        let id = self.session.event(name, self.device_of(step))?;
                        *self.events[*event].insert(id)
                    }
                };
                self.session.record(id, stream)
            }
            Action::Wait { event } => {
                let stream = self.stream(step)?;
                match self.events[*event] {
                    Some(id) => self.session.wait(stream, id),
                    // The parser has seen an earlier step that records it.
                    None => Ok(()),
                }
            }
            Action::Synchronize(target) => {
                let what = match target {
                    SyncTarget::Device => Wait::Device,
                    SyncTarget::Stream(stream) => Wait::Stream(self.streams[*stream]),
                    SyncTarget::Event(event) => match self.events[*event] {
                        Some(id) => Wait::Event(id),
                        None => return Ok(()),
                    },
                };
                self.session.synchronize(what)
            }
            Action::Memset { buffer, value } => {
                let stream = self.stream(step)?;
                let at = self.address(*buffer)?;
                self.session.memset(at.address, *value, at.bytes, stream)
            }
            Action::Copy { from, to, bytes } => {
                let stream = self.stream(step)?;
                let source = self.address(from.buffer)?.address + from.offset;
                let target = self.address(to.buffer)?.address + to.offset;
                self.session.copy(target, source, *bytes, stream)
            }
            Action::ReadBack { buffer } => {
                let at = self.address(*buffer)?;
                if step.stream.is_some() {
                    let stream = self.stream(step)?;
                    let read = self.session.read_async(at.address, at.bytes, stream)?;
                    self.reads.push(read);
                    Ok(())
                } else {
                    self.session.read(at.address, at.bytes).map(|_| ())
                }
            }
            Action::Free { buffer } => {
                let at = self.address(*buffer)?;
                let stream = step.stream.map(|s| self.streams[s]);
                self.session.free(at.address, stream)?;
                self.live[*buffer] = false;
                Ok(())
            }
            Action::Allocate { buffer } => self.allocate(*buffer),
        }
    }

    /// Allocates a buffer and gives it its initial content.
    fn allocate(&mut self, index: usize) -> host::Result<()> {
        let wanted = &self.prepared.scenario.buffers[index];
        let kind = match wanted.memory {
            Memory::Device => MemoryKind::Device,
            Memory::Pinned => MemoryKind::Pinned,
            Memory::Managed => MemoryKind::Managed,
            Memory::Foreign => MemoryKind::Foreign,
        };
        let got = self
            .session
            .alloc(&wanted.name, wanted.bytes(), kind, wanted.device)?;
        self.buffers[index] = Some(got);
        self.live[index] = true;
        if matches!(wanted.init, Init::Zero | Init::File(_)) {
            let content = self.prepared.files.get(&index);
            return self
                .session
                .initialise(&got, content.map_or(&[], Vec::as_slice));
        }
        let mut done = 0;
        let size = wanted.ty.size() as u64;
        let mut chunk = Vec::new();
        while done < wanted.bytes() {
            chunk.resize(CHUNK.min(wanted.bytes() - done) as usize, 0);
            wanted.init.write(wanted.ty, done / size, &mut chunk);
            self.session.initialise_part(got.address + done, &chunk)?;
            done += chunk.len() as u64;
        }
        Ok(())
    }

    fn argument(&self, arg: &Arg) -> host::Result<host::Arg> {
        Ok(match arg {
            Arg::Buffer(at) => host::Arg::Pointer(self.address(at.buffer)?.address + at.offset),
            Arg::Scalar { bytes, .. } => host::Arg::Scalar(bytes.clone()),
        })
    }

    fn address(&self, buffer: usize) -> host::Result<host::Buffer> {
        self.buffers[buffer].ok_or(host::Error::Ended)
    }

    fn device_of(&self, step: &Step) -> u32 {
        step.stream
            .map_or(0, |s| self.prepared.scenario.streams[s].device)
    }

    fn stream(&mut self, step: &Step) -> host::Result<StreamId> {
        match step.stream {
            Some(stream) => Ok(self.streams[stream]),
            None => self.session.default_stream(0),
        }
    }

    /// The first elements of a buffer after everything.
    pub fn elements(&mut self, buffer: usize, count: u64) -> Values {
        let shape = &self.prepared.scenario.buffers[buffer];
        let Some(at) = self.buffers[buffer] else {
            return Err("it was never allocated".into());
        };
        if !self.live[buffer] {
            return Err("it was freed".into());
        }
        let size = shape.ty.size();
        let bytes = count.min(shape.len) * size as u64;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let data = self
            .session
            .contents(at.address, bytes)
            .map_err(|e| match e {
                host::Error::Ended => "the run failed before".to_string(),
                e => one_line(&e.to_string()),
            })?;
        Ok(data
            .chunks_exact(size)
            .map(|c| shape.ty.decode(c))
            .collect::<Vec<Number>>())
    }

    /// The same as text, for `--print`.
    pub fn printed(&mut self, buffer: usize, count: Option<u64>) -> Result<Printed, String> {
        let shape = &self.prepared.scenario.buffers[buffer];
        let values = self
            .elements(buffer, count.unwrap_or(shape.len))
            .map_err(|why| format!("--print: `{}` cannot be read: {why}", shape.name))?;
        let values = values.iter().map(|v| shape.ty.show(*v)).collect();
        Ok(Printed {
            buffer: shape.name.clone(),
            ty: shape.ty.to_string(),
            values,
        })
    }

    /// The session, to look into.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// How many devices it has.
    pub fn devices(&self) -> u32 {
        self.prepared.scenario.device.devices.unwrap_or(1)
    }

    /// Names of live buffers, then of module variables.
    pub fn names(&self) -> Vec<String> {
        let buffers = self.prepared.scenario.buffers.iter().zip(&self.live);
        let mut names: Vec<String> = buffers
            .filter(|(_, live)| **live)
            .map(|(b, _)| b.name.clone())
            .collect();
        let variables = self
            .modules
            .iter()
            .filter_map(|m| self.session.variables(*m).ok());
        names.extend(variables.flatten().cloned());
        names
    }

    /// Address and bytes of a live buffer, or of a module's variable, of that name.
    pub fn memory(&self, name: &str) -> Option<(u64, u64)> {
        let buffers = &self.prepared.scenario.buffers;
        let buffer = buffers.iter().position(|b| b.name == name);
        if let Some(index) = buffer {
            let at = self.buffers[index].filter(|_| self.live[index])?;
            return Some((at.address, at.bytes));
        }
        let variable = |module: &ModuleId| self.session.variable(*module, name, 0).ok()?;
        self.modules.iter().find_map(variable)
    }

    /// The report.
    pub fn finish(self) -> host::Result<Report> {
        self.session.finish()
    }
}

fn stream_flags(flags: StreamFlags) -> host::StreamFlags {
    match flags {
        StreamFlags::Blocking => host::StreamFlags::Blocking,
        StreamFlags::NonBlocking => host::StreamFlags::NonBlocking,
        StreamFlags::LegacyDefault => host::StreamFlags::LegacyDefault,
        StreamFlags::PerThreadDefault => host::StreamFlags::PerThreadDefault,
    }
}
