//! Stream capture: streams whose work does not run, but becomes nodes of a graph.
//!
//! A capture begins with a stream. Others join by waiting for an event that was recorded in a stream of the capture, and
//! must have come back in the same way when it ends. What would wait for work that does not run is refused, and the capture
//! is of no use from then on, as on a GPU.
//!
//! Memory that is allocated in a captured stream is allocated once, when the call is made, and stays.

use super::api::{In, Out, driver_api};
use super::codes::{Answer, Code};
use super::graph::{Edge, EdgeData, NodeWork, edges};
use super::launch::Launch;
use super::queue::{OpId, Work};
use super::state::{Driver, Handle};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::thread::ThreadId;

/// `CU_STREAM_CAPTURE_MODE_*`: what other threads, or this one, may do meanwhile.
const GLOBAL: u32 = 0;
const RELAXED: u32 = 2;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`: the event is a node, and not part of the capture.
pub(super) const EXTERNAL: u32 = 1;
/// What stands for an operation where there is none: it counts as done.
pub(super) const NO_OP: OpId = 0;

thread_local! {
    /// What this thread is held to while there are captures.
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

/// A graph in the making.
pub(super) struct Capture {
    graph: Handle,
    /// The graph is the caller's, and stays whatever happens.
    to_graph: bool,
    origin: Handle,
    mode: u32,
    thread: ThreadId,
    /// Whether the graph will be one.
    valid: bool,
    /// What a captured stream's next node comes after.
    ends: BTreeMap<Handle, Vec<Edge>>,
    /// The nodes so far.
    added: Vec<Handle>,
    /// What callers have been shown: it stays until they ask again.
    shown: (Vec<Handle>, Vec<EdgeData>),
}

impl Driver {
    /// The capture that a stream takes part in.
    pub(super) fn capture_of(&self, stream: Option<Handle>) -> Option<Handle> {
        let stream = stream?;
        let mut captures = self.graphs.captures.iter();
        captures
            .find(|(_, capture)| capture.ends.contains_key(&stream))
            .map(|(&handle, _)| handle)
    }

    /// Whether a stream's work becomes nodes.
    pub(super) fn is_captured(&mut self, context: Handle, stream: Handle) -> Answer<bool> {
        let stream = self.stream(context, stream)?;
        Ok(self.capture_of(stream).is_some())
    }

    /// Whether a graph grows by a capture.
    pub(super) fn captures_into(&self, graph: Handle) -> bool {
        self.graphs.captures.values().any(|c| c.graph == graph)
    }

    fn capture_mut(&mut self, capture: Handle) -> Answer<&mut Capture> {
        let capture = self.graphs.captures.get_mut(&capture);
        capture.ok_or(Code::STREAM_CAPTURE_INVALIDATED)
    }

    fn valid_capture(&mut self, capture: Handle) -> Answer<&mut Capture> {
        let capture = self.capture_mut(capture)?;
        if capture.valid {
            Ok(capture)
        } else {
            Err(Code::STREAM_CAPTURE_INVALIDATED)
        }
    }

    /// Makes a capture useless, and says why.
    fn spoil(&mut self, capture: Handle, why: Code) -> Code {
        if let Some(capture) = self.graphs.captures.get_mut(&capture) {
            capture.valid = false;
        }
        why
    }

    /// Refuses to wait for a stream, or to ask about it, whose work does not run.
    pub(super) fn refuse_captured(&mut self, context: Handle, stream: Option<Handle>) -> Answer {
        match self.capture_of(stream) {
            Some(capture) => Err(self.spoil(capture, Code::STREAM_CAPTURE_UNSUPPORTED)),
            None if stream.is_none() => self.refuse_legacy(context),
            None => Ok(()),
        }
    }

    /// Refuses to wait for an event that was recorded in a capture, or to ask about it. Once its capture is over or of no
    /// use, such an event is an invalid value.
    pub(super) fn refuse_captured_event(&mut self, event: Handle) -> Answer {
        let Some((capture, _)) = self.event(event)?.captured else {
            return Ok(());
        };
        match self.graphs.captures.get(&capture) {
            Some(known) if known.valid => Err(self.spoil(capture, Code::CAPTURED_EVENT)),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Refuses to use the legacy default stream while a stream that it waits for is being captured.
    pub(super) fn refuse_legacy(&mut self, context: Handle) -> Answer {
        self.refuse_beside(context, false, Code::STREAM_CAPTURE_IMPLICIT)
    }

    /// Refuses to wait for a context while streams of it are being captured.
    pub(super) fn refuse_context(&mut self, context: Handle) -> Answer {
        self.refuse_beside(context, true, Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    fn refuse_beside(&mut self, context: Handle, non_blocking: bool, why: Code) -> Answer {
        let mut refused = false;
        for capture in self.graphs.captures.values_mut() {
            let concerned = capture.ends.keys().any(|stream| {
                let stream = self.streams.get(stream);
                stream.is_some_and(|s| s.context == context && (non_blocking || s.is_blocking()))
            });
            if concerned {
                capture.valid = false;
                refused = true;
            }
        }
        if refused { Err(why) } else { Ok(()) }
    }

    /// Refuses what a capture forbids its own thread, or all of them: calls that may wait for work of any stream.
    pub(super) fn refuse_unsafe(&mut self) -> Answer {
        let (own, mode) = (std::thread::current().id(), MODE.get());
        let mut refused = false;
        for capture in self.graphs.captures.values_mut() {
            let concerned = if capture.thread == own {
                capture.mode != RELAXED && mode != RELAXED
            } else {
                capture.mode == GLOBAL && mode == GLOBAL
            };
            if concerned {
                capture.valid = false;
                refused = true;
            }
        }
        if refused {
            Err(Code::STREAM_CAPTURE_UNSUPPORTED)
        } else {
            Ok(())
        }
    }

    /// Makes a node of what a captured stream is given.
    pub(super) fn capture_work(
        &mut self,
        capture: Handle,
        stream: Handle,
        work: NodeWork,
    ) -> Answer<Handle> {
        let context = self
            .streams
            .get(&stream)
            .ok_or(Code::INVALID_HANDLE)?
            .context;
        let known = self.valid_capture(capture)?;
        let graph = known.graph;
        let mut after = known.ends.get(&stream).cloned().unwrap_or_default();
        if !matches!(work, NodeWork::Kernel(_)) {
            // Only kernels can start beside the one before.
            for edge in &mut after {
                *edge = Edge::full(edge.from);
            }
        }
        let node = self.add_node(graph, context, work, after)?;
        let known = self.capture_mut(capture)?;
        known.added.push(node);
        known.ends.insert(stream, vec![Edge::full(node)]);
        Ok(node)
    }

    /// A kernel in a captured stream. `events` are those that are recorded when it lets its dependents start.
    pub(super) fn capture_launch(
        &mut self,
        capture: Handle,
        stream: Handle,
        launch: Launch,
        programmatic: bool,
        events: &[Handle],
    ) -> Answer {
        let end = self.valid_capture(capture)?.ends.get(&stream).cloned();
        if programmatic
            && let Some([edge]) = end.as_deref()
            && matches!(self.node(edge.from)?.work, NodeWork::Kernel(_))
        {
            let edge = Edge::programmatic(edge.from);
            self.capture_mut(capture)?.ends.insert(stream, vec![edge]);
        }
        let node = self.capture_work(capture, stream, NodeWork::Kernel(launch))?;
        for &event in events {
            self.event(event)?.captured = Some((capture, vec![Edge::programmatic(node)]));
        }
        Ok(())
    }

    /// An event is recorded in a captured stream.
    pub(super) fn capture_record(
        &mut self,
        capture: Handle,
        stream: Handle,
        event: Handle,
        flags: u32,
    ) -> Answer {
        if flags & EXTERNAL != 0 {
            return self
                .capture_work(capture, stream, NodeWork::Record(event))
                .map(|_| ());
        }
        let end = self.valid_capture(capture)?.ends.get(&stream).cloned();
        self.event(event)?.captured = Some((capture, end.unwrap_or_default()));
        Ok(())
    }

    /// A stream waits for an event, and one of the two is captured: whether that is so, and dealt with.
    pub(super) fn capture_wait(
        &mut self,
        context: Handle,
        stream: Option<Handle>,
        event: Handle,
        flags: u32,
    ) -> Answer<bool> {
        let own = self.capture_of(stream);
        let known = self.event(event)?;
        let recorded = known.record.is_some();
        let captured = known.captured.clone();
        match (own, captured) {
            (Some(own), _) if flags & EXTERNAL != 0 => {
                let stream = stream.ok_or(Code::INVALID_HANDLE)?;
                self.capture_work(own, stream, NodeWork::Wait(event))?;
            }
            (None, Some((capture, nodes))) => {
                let known = self.graphs.captures.get(&capture);
                if !known.is_some_and(|capture| capture.valid) {
                    return Err(Code::INVALID_VALUE);
                }
                let Some(stream) = stream else {
                    self.refuse_legacy(context)?;
                    return Err(self.spoil(capture, Code::STREAM_CAPTURE_IMPLICIT));
                };
                self.valid_capture(capture)?.ends.insert(stream, nodes);
            }
            (Some(own), Some((capture, nodes))) if own == capture => {
                let ends = &mut self.valid_capture(own)?.ends;
                let end = ends.entry(stream.ok_or(Code::INVALID_HANDLE)?).or_default();
                for edge in nodes {
                    match end.iter_mut().find(|known| known.from == edge.from) {
                        // The whole kernel before is more than its letting go.
                        Some(known) if known.data.is_programmatic() => *known = edge,
                        Some(_) => {}
                        None => end.push(edge),
                    }
                }
            }
            (Some(own), Some((other, _))) if self.graphs.captures.contains_key(&other) => {
                self.spoil(other, Code::STREAM_CAPTURE_MERGE);
                return Err(self.spoil(own, Code::STREAM_CAPTURE_MERGE));
            }
            (Some(own), Some(_)) => return Err(self.spoil(own, Code::STREAM_CAPTURE_ISOLATION)),
            (Some(own), None) if recorded => {
                return Err(self.spoil(own, Code::STREAM_CAPTURE_ISOLATION));
            }
            // An event that was never recorded holds nobody up.
            (Some(_), None) => {}
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    /// The captures whose first stream is gone are over.
    pub(super) fn drop_orphaned_captures(&mut self) {
        let streams = &self.streams;
        let orphaned = |(&handle, capture): (&Handle, &Capture)| {
            (!streams.contains_key(&capture.origin)).then_some(handle)
        };
        let gone: Vec<Handle> = self.graphs.captures.iter().filter_map(orphaned).collect();
        for capture in gone {
            if let Some(Capture {
                graph,
                to_graph: false,
                ..
            }) = self.graphs.captures.remove(&capture)
            {
                self.drop_graph(graph);
            }
        }
    }

    fn begin_capture(
        &mut self,
        context: Handle,
        stream: Handle,
        mode: u32,
        to: Option<(Handle, Vec<Edge>)>,
    ) -> Answer {
        if mode > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        let origin = self.stream(context, stream)?;
        let origin = origin.ok_or(Code::STREAM_CAPTURE_UNSUPPORTED)?;
        if self.capture_of(Some(origin)).is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let to_graph = to.is_some();
        let (graph, end) = match to {
            Some((graph, after)) => {
                let known = self.graph(graph)?;
                if !after.iter().all(|edge| known.node(edge.from).is_some()) {
                    return Err(Code::INVALID_VALUE);
                }
                (graph, after)
            }
            None => (self.new_graph(), Vec::new()),
        };
        let capture = self.new_handle();
        self.graphs.captures.insert(
            capture,
            Capture {
                graph,
                to_graph,
                origin,
                mode,
                thread: std::thread::current().id(),
                valid: true,
                ends: BTreeMap::from([(origin, end)]),
                added: Vec::new(),
                shown: (Vec::new(), Vec::new()),
            },
        );
        Ok(())
    }

    fn end_capture(&mut self, context: Handle, stream: Handle) -> Answer<Handle> {
        let stream = self.stream(context, stream)?;
        let handle = self.capture_of(stream).ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.capture_mut(handle)?;
        if Some(capture.origin) != stream {
            return Err(self.spoil(handle, Code::STREAM_CAPTURE_UNMATCHED));
        }
        if capture.mode != RELAXED && capture.thread != std::thread::current().id() {
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        let Some(capture) = self.graphs.captures.remove(&handle) else {
            return Err(Code::ILLEGAL_STATE);
        };
        let answer = if !capture.valid {
            Err(Code::STREAM_CAPTURE_INVALIDATED)
        } else if !self.has_come_back(&capture)? {
            Err(Code::STREAM_CAPTURE_UNJOINED)
        } else {
            Ok(capture.graph)
        };
        if answer.is_err() && !capture.to_graph {
            self.drop_graph(capture.graph);
        }
        answer
    }

    /// Whether the first stream comes after all nodes of a capture.
    fn has_come_back(&self, capture: &Capture) -> Answer<bool> {
        let graph = self.graph(capture.graph)?;
        let places = graph.places();
        let mut seen = vec![false; graph.nodes.len()];
        let end = capture.ends.get(&capture.origin);
        let mut left: Vec<Handle> = end.into_iter().flatten().map(|e| e.from).collect();
        while let Some(node) = left.pop() {
            let Some(&place) = places.get(&node) else {
                continue;
            };
            if !std::mem::replace(&mut seen[place], true) {
                left.extend(graph.nodes[place].after.iter().map(|e| e.from));
            }
        }
        let is_seen = |node: &Handle| places.get(node).is_none_or(|&place| seen[place]);
        Ok(capture.added.iter().all(is_seen))
    }

    /// 0 not captured, 1 captured, 2 captured to no use.
    fn capture_status(&mut self, context: Handle, stream: Handle) -> Answer<(u32, Option<Handle>)> {
        let stream = self.stream(context, stream)?;
        let capture = self.capture_of(stream);
        if stream.is_none() {
            // As with any use of that stream, but asking harms nobody.
            let blocking = self.graphs.captures.values().flat_map(|c| c.ends.keys());
            let mut blocking = blocking.filter_map(|stream| self.streams.get(stream));
            if blocking.any(|s| s.context == context && s.is_blocking()) {
                return Err(Code::STREAM_CAPTURE_IMPLICIT);
            }
        }
        Ok(match capture {
            Some(handle) if self.capture_mut(handle)?.valid => (1, Some(handle)),
            Some(_) => (2, None),
            None => (0, None),
        })
    }
}

/// Where a caller wants to be told about a capture.
struct Info {
    status: Out<u32>,
    id: Out<u64>,
    graph: Out<Handle>,
    nodes: Out<*const Handle>,
    data: Out<*const EdgeData>,
    count: Out<usize>,
}

fn info(driver: &mut Driver, context: Handle, stream: Handle, info: &Info) -> Answer {
    info.status.require()?;
    let (status, handle) = driver.capture_status(context, stream)?;
    info.status.set(status)?;
    let Some(handle) = handle else {
        return Ok(());
    };
    let stream = driver.stream(context, stream)?;
    let capture = driver.capture_mut(handle)?;
    let end = stream.and_then(|stream| capture.ends.get(&stream));
    let end = end.map(Vec::as_slice).unwrap_or_default();
    capture.shown = end.iter().map(|edge| (edge.from, edge.data)).unzip();
    info.id.set_if_wanted(handle);
    info.graph.set_if_wanted(capture.graph);
    info.nodes.set_if_wanted(capture.shown.0.as_ptr());
    info.data.set_if_wanted(capture.shown.1.as_ptr());
    info.count.set_if_wanted(capture.shown.0.len());
    Ok(())
}

fn update(
    driver: &mut Driver,
    context: Handle,
    stream: Handle,
    new: Vec<Edge>,
    flags: u32,
) -> Answer {
    let stream = driver.stream(context, stream)?;
    let handle = driver.capture_of(stream).ok_or(Code::ILLEGAL_STATE)?;
    let graph = driver.valid_capture(handle)?.graph;
    let known = driver.graph(graph)?;
    if flags > 1 || !new.iter().all(|edge| known.node(edge.from).is_some()) {
        return Err(Code::INVALID_VALUE);
    }
    let ends = &mut driver.capture_mut(handle)?.ends;
    let end = ends.entry(stream.ok_or(Code::INVALID_HANDLE)?).or_default();
    // 0 adds, 1 replaces.
    if flags == 1 {
        end.clear();
    }
    for edge in new {
        end.retain(|known| known.from != edge.from);
        end.push(edge);
    }
    Ok(())
}

driver_api! {
    fn cuStreamBeginCapture_v2(s, stream: Handle, mode: u32) {
        let (driver, context) = s.healthy()?;
        driver.begin_capture(context, stream, mode, None)
    }
    fn cuStreamBeginCaptureToGraph(
        s, stream: Handle, graph: Handle, nodes: In<Handle>, data: In<EdgeData>, count: usize, mode: u32
    ) {
        let (driver, context) = s.healthy()?;
        let after = edges(&nodes, &data, count)?;
        driver.begin_capture(context, stream, mode, Some((graph, after)))
    }
    fn cuStreamEndCapture(s, stream: Handle, graph: Out<Handle>) {
        graph.require()?;
        graph.set(0)?;
        let (driver, context) = s.healthy()?;
        graph.set(driver.end_capture(context, stream)?)
    }
    fn cuStreamIsCapturing(s, stream: Handle, status: Out<u32>) {
        status.require()?;
        let (driver, context) = s.healthy()?;
        status.set(driver.capture_status(context, stream)?.0)
    }
    fn cuStreamGetCaptureInfo(s, stream: Handle, status: Out<u32>, id: Out<u64>) {
        let (driver, context) = s.healthy()?;
        let (graph, nodes) = (Out::from_address(0), Out::from_address(0));
        let (data, count) = (Out::from_address(0), Out::from_address(0));
        info(driver, context, stream, &Info { status, id, graph, nodes, data, count })
    }
    fn cuStreamGetCaptureInfo_v2(
        s, stream: Handle, status: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<*const Handle>, count: Out<usize>
    ) {
        let (driver, context) = s.healthy()?;
        let data = Out::from_address(0);
        info(driver, context, stream, &Info { status, id, graph, nodes, data, count })
    }
    fn cuStreamGetCaptureInfo_v3(
        s, stream: Handle, status: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<*const Handle>,
        data: Out<*const EdgeData>, count: Out<usize>
    ) {
        let (driver, context) = s.healthy()?;
        info(driver, context, stream, &Info { status, id, graph, nodes, data, count })
    }
    fn cuStreamUpdateCaptureDependencies(s, stream: Handle, nodes: In<Handle>, count: usize, flags: u32) {
        let (driver, context) = s.healthy()?;
        let new = edges(&nodes, &In::from_address(0), count)?;
        update(driver, context, stream, new, flags)
    }
    fn cuStreamUpdateCaptureDependencies_v2(
        s, stream: Handle, nodes: In<Handle>, data: In<EdgeData>, count: usize, flags: u32
    ) {
        let (driver, context) = s.healthy()?;
        let new = edges(&nodes, &data, count)?;
        update(driver, context, stream, new, flags)
    }
    fn cuThreadExchangeStreamCaptureMode(_s, mode: Out<u32>) {
        let new = In::<u32>::from_address(mode.address()).get()?;
        if new > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        mode.set(MODE.replace(new))
    }
}

/// What a captured stream is given as an operation's work.
pub(super) fn node_work(work: Work) -> NodeWork {
    match work {
        // Replays would free it again and again; see above.
        Work::Free { .. } => NodeWork::Work(Work::Join),
        work => NodeWork::Work(work),
    }
}
