//! Issues a scenario's steps to a session, in order, as a host program would.

use super::expect::Values;
use super::model::*;
use super::run::Prepared;
use crate::element::{Init, Number};
use crate::ptx::one_line;
use crate::render::json::Printed;
use gsan_host::report::Report;
use gsan_host::{
    self as host, Capture, EventId, Graph, GraphId, LaunchSpec, MemoryKind, ModuleId, NodeWork,
    ReadId, Session, StreamId, Wait,
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
    /// By graph: ready to launch; made when it is needed, since its addresses must be known.
    graphs: Vec<Option<GraphId>>,
    /// Captures under way, with their graph.
    captures: Vec<(usize, Capture)>,
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
            graphs: vec![None; scenario.graphs.len()],
            captures: Vec::new(),
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
        if self.captured(step)? {
            return Ok(());
        }
        match &step.action {
            Action::Launch(launch) => {
                let stream = self.stream(step)?;
                let spec = self.launch_spec(launch, stream)?;
                self.session.launch(&spec).map(|_| ())
            }
            Action::Record { event } => {
                let stream = self.stream(step)?;
                let id = self.event(*event, step)?;
                self.session.record(id, stream)
            }
            Action::Wait { event } => {
                let stream = self.stream(step)?;
                let id = self.event(*event, step)?;
                self.session.wait(stream, id)
            }
            Action::Synchronize(target) => {
                let what = self.waited_for(*target, step)?;
                self.session.synchronize(what)
            }
            Action::Query(target) => {
                let what = self.waited_for(*target, step)?;
                while !self.session.query(what)? {}
                Ok(())
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
                let parts = self.prepared.scenario.buffers[*buffer].devices.len();
                self.live[*buffer..=*buffer + parts].fill(false);
                Ok(())
            }
            Action::Allocate { buffer } => self.allocate(*buffer),
            Action::Forget { at, bytes } => {
                let stream = self.stream(step)?;
                let address = self.address(at.buffer)?.address + at.offset;
                self.session.forget(address, *bytes, stream)
            }
            Action::LaunchGraph { graph } => {
                let stream = self.stream(step)?;
                let id = match self.graphs[*graph] {
                    Some(id) => id,
                    None if self.prepared.scenario.graphs[*graph].captured => {
                        let name = &self.prepared.scenario.graphs[*graph].name;
                        let message = format!("the capture of `{name}` has not ended");
                        return Err(host::Error::Graph(message));
                    }
                    None => {
                        let built = self.build(*graph)?;
                        self.make(*graph, built, self.device_of(step))?
                    }
                };
                self.session.launch_graph(id, stream)
            }
            Action::Capture { graph } => {
                let stream = self.stream(step)?;
                self.captures.push((*graph, Capture::begin(stream)));
                Ok(())
            }
            Action::EndCapture { graph } => {
                let Some(place) = self.captures.iter().position(|(g, _)| g == graph) else {
                    let name = &self.prepared.scenario.graphs[*graph].name;
                    let message = format!("`{name}` is not being captured");
                    return Err(host::Error::Graph(message));
                };
                let (_, capture) = self.captures.swap_remove(place);
                let captured = capture.end()?;
                self.make(*graph, captured, self.device_of(step))
                    .map(|_| ())
            }
            Action::Empty => Ok(()),
        }
    }

    fn launch_spec(&mut self, launch: &Launch, stream: StreamId) -> host::Result<LaunchSpec> {
        let args = launch.args.iter().map(|a| self.argument(a));
        let args = args.collect::<host::Result<_>>()?;
        Ok(LaunchSpec {
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
        })
    }

    /// The event, made on first use: a wait for one that is recorded later finds nothing in it.
    fn event(&mut self, event: usize, step: &Step) -> host::Result<EventId> {
        if let Some(id) = self.events[event] {
            return Ok(id);
        }
        let name = &self.prepared.scenario.events[event];
        let id = self.session.event(name, self.device_of(step))?;
        Ok(*self.events[event].insert(id))
    }

    fn waited_for(&mut self, target: SyncTarget, step: &Step) -> host::Result<Wait> {
        Ok(match target {
            SyncTarget::Device => Wait::Device,
            SyncTarget::Stream(stream) => Wait::Stream(self.streams[stream]),
            SyncTarget::Event(event) => Wait::Event(self.event(event, step)?),
        })
    }

    /// What a node does; none for another graph.
    fn work(&mut self, action: &Action, stream: StreamId) -> host::Result<Option<NodeWork>> {
        Ok(Some(match action {
            Action::Launch(launch) => NodeWork::Launch(self.launch_spec(launch, stream)?),
            Action::Memset { buffer, value } => {
                let at = self.address(*buffer)?;
                NodeWork::Memset {
                    address: at.address,
                    value: *value,
                    bytes: at.bytes,
                }
            }
            Action::Copy { from, to, bytes } => NodeWork::Copy {
                to: self.address(to.buffer)?.address + to.offset,
                from: self.address(from.buffer)?.address + from.offset,
                bytes: *bytes,
            },
            Action::Empty => NodeWork::Empty,
            _ => return Ok(None),
        }))
    }

    /// A graph that is written out.
    fn build(&mut self, index: usize) -> host::Result<Graph> {
        let scenario = self.prepared.scenario;
        let stream = self.session.default_stream(0)?;
        let mut graph = Graph::new();
        let mut ids = Vec::new();
        for node in &scenario.graphs[index].nodes {
            let after: Vec<_> = node.after.iter().map(|&n| ids[n]).collect();
            let id = match (self.work(&node.action, stream)?, &node.action) {
                (Some(work), _) => graph.add(work, &after)?,
                (None, Action::LaunchGraph { graph: child }) => {
                    let child = self.build(*child)?;
                    graph.add_child(&child, &after)?
                }
                (None, _) => graph.add(NodeWork::Empty, &after)?,
            };
            ids.push(id);
        }
        Ok(graph)
    }

    fn make(&mut self, index: usize, graph: Graph, device: u32) -> host::Result<GraphId> {
        let name = &self.prepared.scenario.graphs[index].name;
        let id = self.session.graph(name, graph, device)?;
        Ok(*self.graphs[index].insert(id))
    }

    /// Whether a capture has taken the step.
    fn captured(&mut self, step: &Step) -> host::Result<bool> {
        if self.captures.is_empty() {
            return Ok(false);
        }
        let stream = self.stream(step)?;
        if let Action::Wait { event } = &step.action {
            let event = self.event(*event, step)?;
            for (_, capture) in &mut self.captures {
                if capture.wait(stream, event)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let Some(place) = self.captures.iter().position(|(_, c)| c.takes(stream)) else {
            return Ok(false);
        };
        if let Action::Record { event } = &step.action {
            let event = self.event(*event, step)?;
            self.captures[place].1.record(event, stream)?;
            return Ok(true);
        }
        match (self.work(&step.action, stream)?, &step.action) {
            (Some(work), _) => self.captures[place].1.issue(stream, work).map(|_| true),
            (None, Action::EndCapture { .. } | Action::Query(_) | Action::Allocate { .. }) => Ok(false),
            (None, Action::Synchronize(SyncTarget::Device | SyncTarget::Event(_))) => Ok(false),
            (None, Action::Synchronize(SyncTarget::Stream(s))) if !self.captures[place].1.takes(self.streams[*s]) => Ok(false),
            (None, _) => Err(host::Error::Graph(
                "the stream is being captured: only launches, memsets, copies, records and waits can be".into(),
            )),
        }
    }

    /// Allocates a buffer.
    fn allocate(&mut self, index: usize) -> host::Result<()> {
        let wanted = &self.prepared.scenario.buffers[index];
        let kind = match wanted.memory {
            Memory::Multicast => return self.allocate_multicast(index),
            // It came with the whole.
            Memory::Part => return Ok(()),
            Memory::Device => MemoryKind::Device,
            Memory::Pinned => MemoryKind::Pinned,
            Memory::Managed => MemoryKind::Managed,
            Memory::Foreign => MemoryKind::Foreign,
        };
        let got = self
            .session
            .alloc(&wanted.name, wanted.bytes(), kind, wanted.device)?;
        self.fill(index, got)
    }

    /// A multicast buffer, with its parts, which stand behind it.
    fn allocate_multicast(&mut self, index: usize) -> host::Result<()> {
        let wanted = &self.prepared.scenario.buffers[index];
        let got = self
            .session
            .alloc_multicast(&wanted.name, wanted.bytes(), &wanted.devices)?;
        self.buffers[index] = Some(host::Buffer {
            address: got.address,
            bytes: got.bytes,
            kind: MemoryKind::Device,
            device: wanted.device,
        });
        self.live[index] = true;
        for (part, buffer) in (index + 1..).zip(got.parts) {
            self.fill(part, buffer)?;
        }
        Ok(())
    }

    /// Its initial content.
    fn fill(&mut self, index: usize, got: host::Buffer) -> host::Result<()> {
        let wanted = &self.prepared.scenario.buffers[index];
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

    fn argument(&mut self, arg: &Arg) -> host::Result<host::Arg> {
        Ok(match arg {
            Arg::Buffer(at) => host::Arg::Pointer(self.address(at.buffer)?.address + at.offset),
            Arg::Scalar { bytes, .. } => host::Arg::Scalar(bytes.clone()),
            Arg::Tensor(tensor) => {
                let address = self.address(tensor.at.buffer)?.address + tensor.at.offset;
                self.session.tensor_map(address, &tensor.spec)?
            }
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
