//! Graphs that can be launched: nodes in an order that their edges allow, put into the queue once per launch.

use super::api::{In, Out, driver_api};
use super::codes::{Answer, Code};
use super::graph::{Graph, NodeWork};
use super::graph_node::{
    FillParams, HostParams, KernelParams, KernelParams2, Task, any_task, host_task,
};
use super::queue::{OpId, Work};
use super::state::{Driver, Handle, Record};
use super::transfer::Copy3D;
use rand_core::RngCore;

/// An instance of a graph.
pub(super) struct Exec {
    nodes: Vec<ExecNode>,
    flags: u64,
    /// The end of its last launch: launches never overlap.
    last: Option<OpId>,
}

struct ExecNode {
    /// The node that it was made from.
    of: Handle,
    context: Handle,
    work: NodeWork,
    /// Places of those before it, and whether it can start beside them.
    after: Vec<(usize, bool)>,
    enabled: bool,
}

/// `CUgraphInstantiateFlags`, of which none changes anything here: free on launch, upload, device launch, node priorities.
const FLAGS: u64 = 0b1111;

/// A graph's nodes in an order that its edges allow.
fn order(graph: &Graph) -> Answer<Vec<usize>> {
    let places = graph.places();
    let mut waits_for: Vec<usize> = graph.nodes.iter().map(|n| n.after.len()).collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (place, node) in graph.nodes.iter().enumerate() {
        for edge in &node.after {
            followers[*places.get(&edge.from).ok_or(Code::INVALID_VALUE)?].push(place);
        }
    }
    let mut sorted: Vec<usize> = (0..waits_for.len())
        .filter(|&n| waits_for[n] == 0)
        .collect();
    let mut next = 0;
    while let Some(&place) = sorted.get(next) {
        next += 1;
        for &follower in &followers[place] {
            waits_for[follower] -= 1;
            if waits_for[follower] == 0 {
                sorted.push(follower);
            }
        }
    }
    // What is left waits for itself.
    if sorted.len() == graph.nodes.len() {
        Ok(sorted)
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// Adds a graph's nodes, and those of the graphs that are its nodes; `before` come before all of them.
fn flatten(
    driver: &Driver,
    graph: Handle,
    before: Option<usize>,
    nodes: &mut Vec<ExecNode>,
) -> Answer {
    let graph = driver.graph(graph)?;
    let places = graph.places();
    // Where each node's end is.
    let mut ends: Vec<usize> = vec![0; graph.nodes.len()];
    for place in order(graph)? {
        let node = &graph.nodes[place];
        let mut after: Vec<(usize, bool)> = Vec::new();
        for edge in &node.after {
            let from = *places.get(&edge.from).ok_or(Code::INVALID_VALUE)?;
            after.push((ends[from], edge.data.is_programmatic()));
        }
        if after.is_empty() {
            after.extend(before.map(|before| (before, false)));
        }
        let whole = |work| ExecNode {
            of: node.handle,
            context: node.context,
            work,
            after,
            enabled: true,
        };
        match &node.work {
            NodeWork::Child(child) => {
                nodes.push(whole(NodeWork::Work(Work::Join)));
                let first = nodes.len() - 1;
                flatten(driver, *child, Some(first), nodes)?;
                nodes.push(ExecNode {
                    of: node.handle,
                    context: node.context,
                    work: NodeWork::Work(Work::Join),
                    after: (first..nodes.len()).map(|place| (place, false)).collect(),
                    enabled: true,
                });
            }
            work => nodes.push(whole(work.clone())),
        }
        ends[place] = nodes.len() - 1;
    }
    Ok(())
}

impl Driver {
    fn exec(&mut self, exec: Handle) -> Answer<&mut Exec> {
        self.graphs.execs.get_mut(&exec).ok_or(Code::INVALID_VALUE)
    }

    fn instantiate(&mut self, graph: Handle, flags: u64) -> Answer<Handle> {
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let mut nodes = Vec::new();
        flatten(self, graph, None, &mut nodes)?;
        let exec = self.new_handle();
        self.graphs.execs.insert(
            exec,
            Exec {
                nodes,
                flags,
                last: None,
            },
        );
        Ok(exec)
    }

    /// Puts a copy of every node into the queue: after what is in the stream, and before what comes next there.
    fn launch_graph(&mut self, context: Handle, exec: Handle, stream: Handle) -> Answer {
        let own = self.stream(context, stream)?;
        if let Some((capture, own)) = self.capture_of(own).zip(own) {
            return self.capture_graph(capture, own, exec);
        }
        let last = self.exec(exec)?.last;
        let begin = self.submit(context, stream, Work::Join, last.as_slice())?;
        let nodes = std::mem::take(&mut self.exec(exec)?.nodes);
        let ends = self.queue_nodes(begin, &nodes);
        self.exec(exec)?.nodes = nodes;
        let end = self.submit(context, stream, Work::Join, &ends?)?;
        self.exec(exec)?.last = Some(end);
        Ok(())
    }

    /// Returns all that the end of the launch comes after.
    fn queue_nodes(&mut self, begin: OpId, nodes: &[ExecNode]) -> Answer<Vec<OpId>> {
        // What comes after each node waits for: its operation, and those that it started beside.
        let mut ends: Vec<Vec<OpId>> = Vec::with_capacity(nodes.len());
        for node in nodes {
            self.health(node.context)?;
            let mut before = vec![begin];
            let (mut beside, mut end) = (None, Vec::new());
            for &(from, programmatic) in &node.after {
                let kernel = ends[from].last().copied();
                let early = programmatic && nodes[from].enabled && node.enabled && beside.is_none();
                if early {
                    beside = kernel;
                    // That one's end is also this one's, for all that follow.
                    end.extend_from_slice(&ends[from]);
                } else {
                    before.extend_from_slice(&ends[from]);
                }
            }
            let (work, event) = self.work_of(node, beside, &mut before);
            let laziness = self.rng.next_u32() % 5;
            let op = self
                .queue
                .submit(node.context, work, laziness, before, beside);
            if let Some(event) = event
                && let Ok(event) = self.event(event)
            {
                event.captured = None;
                event.record = Some(Record {
                    op,
                    time: None,
                    kernel: None,
                });
            }
            end.push(op);
            ends.push(end);
        }
        Ok(ends.into_iter().flatten().collect())
    }

    /// A node's operation, and the event that it records.
    fn work_of(
        &mut self,
        node: &ExecNode,
        beside: Option<OpId>,
        before: &mut Vec<OpId>,
    ) -> (Work, Option<Handle>) {
        let work = match &node.work {
            _ if !node.enabled => Work::Join,
            NodeWork::Kernel(launch) => match beside {
                Some(on) => Work::Dependent(launch.desc.clone(), on),
                None => Work::Launch(launch.desc.clone()),
            },
            NodeWork::Work(work) => work.clone(),
            &NodeWork::Record(event) => return (Work::Record { event }, Some(event)),
            &NodeWork::Wait(event) => {
                let record = self.event(event).ok().and_then(|event| event.record);
                before.extend(record.map(|record| record.op));
                Work::Join
            }
            // There are none in an instance.
            NodeWork::Child(_) => Work::Join,
        };
        (work, None)
    }

    /// A launch in a captured stream: its nodes become the other graph's.
    fn capture_graph(&mut self, capture: Handle, stream: Handle, exec: Handle) -> Answer {
        let nodes = &self.exec(exec)?.nodes;
        let nodes: Vec<_> = nodes
            .iter()
            .map(|n| (n.context, n.work.clone(), n.after.clone()))
            .collect();
        let child = self.new_graph();
        let mut handles: Vec<Handle> = Vec::with_capacity(nodes.len());
        for (context, work, after) in nodes {
            let edge = |(from, programmatic): (usize, bool)| match programmatic {
                true => super::graph::Edge::programmatic(handles[from]),
                false => super::graph::Edge::full(handles[from]),
            };
            let after = after.into_iter().map(edge).collect();
            handles.push(self.add_node(child, context, work, after)?);
        }
        let embedded = self.embed(child);
        self.drop_graph(child);
        self.capture_work(capture, stream, NodeWork::Child(embedded?))
            .map(|_| ())
    }

    /// A node of an instance does something else.
    fn set_exec_task(&mut self, exec: Handle, node: Handle, task: Task) -> Answer {
        let mut nodes = self.exec(exec)?.nodes.iter_mut();
        let node = nodes.find(|n| n.of == node).ok_or(Code::INVALID_VALUE)?;
        if node.work.kind() != task.1.kind() {
            return Err(Code::INVALID_VALUE);
        }
        (node.context, node.work) = task;
        Ok(())
    }

    /// Lets an instance do what another graph of the same shape does; otherwise says which node differs.
    fn update(&mut self, exec: Handle, graph: Handle) -> Answer<Result<(), (u32, Handle)>> {
        const TOPOLOGY_CHANGED: u32 = 2;
        const NODE_TYPE_CHANGED: u32 = 3;
        let mut new = Vec::new();
        flatten(self, graph, None, &mut new)?;
        let old = &mut self.exec(exec)?.nodes;
        if old.len() != new.len() {
            return Ok(Err((TOPOLOGY_CHANGED, 0)));
        }
        for (old, new) in old.iter().zip(&new) {
            if old.after != new.after {
                return Ok(Err((TOPOLOGY_CHANGED, new.of)));
            }
            if old.work.kind() != new.work.kind() {
                return Ok(Err((NODE_TYPE_CHANGED, new.of)));
            }
        }
        for (old, new) in old.iter_mut().zip(new) {
            (old.context, old.work) = (new.context, new.work);
        }
        Ok(Ok(()))
    }
}

fn instantiate(driver: &mut Driver, exec: &Out<Handle>, graph: Handle, flags: u64) -> Answer {
    exec.require()?;
    exec.set(driver.instantiate(graph, flags)?)
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
struct InstantiateParams {
    flags: u64,
    stream: Handle,
    wrong_node: Handle,
    result: u32,
    pad: u32,
}

/// `CUgraphExecUpdateResultInfo`.
#[derive(Clone, Copy)]
#[repr(C)]
struct UpdateResult {
    result: u32,
    pad: u32,
    node: Handle,
    from: Handle,
}

macro_rules! set {
    ($s:ident, $exec:ident, $node:ident, |$driver:ident, $context:ident| $task:expr) => {{
        let ($driver, $context) = $s.healthy()?;
        let task = $task;
        $driver.set_exec_task($exec, $node, task)
    }};
}

driver_api! {
    fn cuGraphInstantiateWithFlags(s, exec: Out<Handle>, graph: Handle, flags: u64) {
        instantiate(s.driver()?, &exec, graph, flags)
    }
    fn cuGraphInstantiate_v2(
        s, exec: Out<Handle>, graph: Handle, node: Out<Handle>, log: Out<u8>, log_len: usize
    ) {
        node.set_if_wanted(0);
        if log_len > 0 {
            log.set_if_wanted(0);
        }
        instantiate(s.driver()?, &exec, graph, 0)
    }
    fn cuGraphInstantiateWithParams(s, exec: Out<Handle>, graph: Handle, params: Out<InstantiateParams>) {
        let given = In::<InstantiateParams>::from_address(params.address()).get()?;
        let answer = instantiate(s.driver()?, &exec, graph, given.flags);
        // 0 success, 2 the structure is wrong.
        let result = if answer.is_ok() { 0 } else { 2 };
        params.set(InstantiateParams { wrong_node: 0, result, ..given })?;
        answer
    }
    fn cuGraphExecGetFlags(s, exec: Handle, flags: Out<u64>) {
        flags.set(s.driver()?.exec(exec)?.flags)
    }
    fn cuGraphUpload(s, exec: Handle, stream: Handle) {
        let (driver, context) = s.healthy()?;
        driver.stream(context, stream)?;
        driver.exec(exec).map(|_| ())
    }
    fn cuGraphLaunch(s, exec: Handle, stream: Handle) {
        let (driver, context) = s.healthy()?;
        driver.exec(exec)?;
        driver.launch_graph(context, exec, stream)
    }
    fn cuGraphExecDestroy(s, exec: Handle) {
        // Launches that are under way go on.
        s.driver()?.graphs.execs.remove(&exec).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }
    fn cuGraphExecKernelNodeSetParams(s, exec: Handle, node: Handle, params: In<KernelParams>) {
        set!(s, exec, node, |driver, context| driver.kernel_task(context, &params.get()?)?)
    }
    fn cuGraphExecKernelNodeSetParams_v2(s, exec: Handle, node: Handle, params: In<KernelParams2>) {
        set!(s, exec, node, |driver, context| driver.kernel_task_2(context, &params.get()?)?)
    }
    fn cuGraphExecMemcpyNodeSetParams(s, exec: Handle, node: Handle, params: In<Copy3D>, of: Handle) {
        set!(s, exec, node, |driver, context| driver.copy_task(context, &params, of)?)
    }
    fn cuGraphExecMemsetNodeSetParams(s, exec: Handle, node: Handle, params: In<FillParams>, of: Handle) {
        set!(s, exec, node, |driver, context| driver.fill_task(context, &params.get()?, of)?)
    }
    fn cuGraphExecHostNodeSetParams(s, exec: Handle, node: Handle, params: In<HostParams>) {
        set!(s, exec, node, |_driver, context| host_task(context, params.get()?)?)
    }
    fn cuGraphExecEventRecordNodeSetEvent(s, exec: Handle, node: Handle, event: Handle) {
        set!(s, exec, node, |driver, context| { driver.event(event)?; (context, NodeWork::Record(event)) })
    }
    fn cuGraphExecEventWaitNodeSetEvent(s, exec: Handle, node: Handle, event: Handle) {
        set!(s, exec, node, |driver, context| { driver.event(event)?; (context, NodeWork::Wait(event)) })
    }
    fn cuGraphExecNodeSetParams(s, exec: Handle, node: Handle, params: u64) {
        set!(s, exec, node, |driver, context| any_task(driver, context, params)?)
    }
    fn cuGraphNodeSetEnabled(s, exec: Handle, node: Handle, enabled: u32) {
        let mut nodes = s.driver()?.exec(exec)?.nodes.iter_mut();
        let node = nodes.find(|n| n.of == node).ok_or(Code::INVALID_VALUE)?;
        // Kernels, copies and fills only.
        if node.work.kind() > 2 {
            return Err(Code::INVALID_VALUE);
        }
        node.enabled = enabled != 0;
        Ok(())
    }
    fn cuGraphNodeGetEnabled(s, exec: Handle, node: Handle, enabled: Out<u32>) {
        let mut nodes = s.driver()?.exec(exec)?.nodes.iter();
        let node = nodes.find(|n| n.of == node).ok_or(Code::INVALID_VALUE)?;
        enabled.set(node.enabled.into())
    }
    fn cuGraphExecUpdate(s, exec: Handle, graph: Handle, node: Out<Handle>, result: Out<u32>) {
        let (wrong, which) = s.driver()?.update(exec, graph)?.err().unwrap_or_default();
        node.set_if_wanted(which);
        result.set_if_wanted(wrong);
        if wrong == 0 { Ok(()) } else { Err(Code::GRAPH_EXEC_UPDATE_FAILURE) }
    }
    fn cuGraphExecUpdate_v2(s, exec: Handle, graph: Handle, result: Out<UpdateResult>) {
        let (wrong, node) = s.driver()?.update(exec, graph)?.err().unwrap_or_default();
        result.set_if_wanted(UpdateResult { result: wrong, pad: 0, node, from: 0 });
        if wrong == 0 { Ok(()) } else { Err(Code::GRAPH_EXEC_UPDATE_FAILURE) }
    }
}
