//! Making graphs' nodes, and changing what they do: the parameters as the API's structures have them.

use super::api::{In, Out, driver_api};
use super::codes::{Answer, Code};
use super::copy::Fill;
use super::graph::{Edge, EdgeData, NodeWork, edges};
use super::launch::Shape;
use super::queue::{HostFunction, Work};
use super::state::{Driver, Handle};
use super::transfer::{Copy3D, check_copy, check_fill};
use std::ffi::c_void;

/// `CUDA_KERNEL_NODE_PARAMS_v1`; the later forms only add to it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct KernelParams {
    function: Handle,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
    values: u64,
    extra: u64,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct KernelParams2 {
    common: KernelParams,
    kernel: Handle,
    context: Handle,
}

/// `CUDA_MEMSET_NODE_PARAMS_v1`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct FillParams {
    to: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

/// `CUDA_HOST_NODE_PARAMS_v1`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct HostParams {
    function: Option<extern "C" fn(*mut c_void)>,
    data: u64,
}

/// The head of `CUgraphNodeParams`; what follows depends on the kind.
#[derive(Clone, Copy)]
#[repr(C)]
struct ParamsHead {
    kind: u32,
    reserved: [u32; 3],
}

const _: () = assert!(
    size_of::<KernelParams>() == 56
        && size_of::<KernelParams2>() == 72
        && size_of::<FillParams>() == 40
        && size_of::<ParamsHead>() == 16
);

/// Whose work a node is, and what it does.
pub(super) type Task = (Handle, NodeWork);

/// `given`, or the current one if that is null.
fn context_or(current: Handle, given: Handle) -> Handle {
    if given == 0 { current } else { given }
}

impl Driver {
    pub(super) fn kernel_task(&mut self, current: Handle, params: &KernelParams) -> Answer<Task> {
        let shape = Shape::plain(params.grid, params.block, params.dynamic);
        let module = self.function(params.function)?.module;
        // The function says whose work it is, whatever is current.
        let context = self.module(module).map_or(current, |module| module.context);
        let values = In::from_address(params.values);
        let extra = In::from_address(params.extra);
        let launch = self.prepare_launch(context, params.function, &shape, &values, &extra)?;
        Ok((context, NodeWork::Kernel(launch)))
    }

    pub(super) fn kernel_task_2(
        &mut self,
        current: Handle,
        params: &KernelParams2,
    ) -> Answer<Task> {
        let mut common = params.common;
        if common.function == 0 {
            // A library's kernel has a function in the context.
            let context = context_or(current, params.context);
            common.function = self.function_of_kernel(context, params.kernel)?;
        }
        self.kernel_task(current, &common)
    }

    pub(super) fn copy_task(
        &mut self,
        current: Handle,
        params: &In<Copy3D>,
        context: Handle,
    ) -> Answer<Task> {
        let (copy, expect) = params.get()?.parse()?;
        if copy.width == 0 || copy.height == 0 || copy.depth == 0 {
            return Err(Code::INVALID_VALUE);
        }
        check_copy(self, &copy, expect)?;
        let context = context_or(current, context);
        Ok((context, NodeWork::Work(Work::Copy(copy))))
    }

    pub(super) fn fill_task(
        &mut self,
        current: Handle,
        params: &FillParams,
        context: Handle,
    ) -> Answer<Task> {
        if !matches!(params.element, 1 | 2 | 4) || params.width == 0 || params.height == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let fill = Fill {
            to: params.to,
            pattern: params.value.to_le_bytes()[..params.element as usize].to_vec(),
            count: params.width as u64,
            pitch: if params.height == 1 {
                0
            } else {
                params.pitch as u64
            },
            height: params.height as u64,
        };
        check_fill(self, &fill)?;
        let context = context_or(current, context);
        Ok((context, NodeWork::Work(Work::Fill(fill))))
    }

    /// Adds a node that does a task.
    fn add_task(&mut self, graph: Handle, task: Task, after: Vec<Edge>) -> Answer<Handle> {
        self.add_node(graph, task.0, task.1, after)
    }

    /// A node of the same kind does something else.
    fn set_task(&mut self, node: Handle, task: Task) -> Answer {
        let node = self.node_mut(node)?;
        if node.work.kind() != task.1.kind() {
            return Err(Code::INVALID_VALUE);
        }
        (node.context, node.work) = task;
        Ok(())
    }
}

pub(super) fn host_task(current: Handle, params: HostParams) -> Answer<Task> {
    let function = HostFunction::Plain(params.function.ok_or(Code::INVALID_VALUE)?);
    let data = params.data as usize;
    Ok((current, NodeWork::Work(Work::Host { function, data })))
}

/// A task out of `CUgraphNodeParams`.
pub(super) fn any_task(driver: &mut Driver, current: Handle, params: u64) -> Answer<Task> {
    let ParamsHead { kind, .. } = In::from_address(params).get()?;
    let body = params + size_of::<ParamsHead>() as u64;
    let word = |index: usize| In::<u64>::from_address(body).at(index);
    match kind {
        0 => driver.kernel_task_2(current, &In::from_address(body).get()?),
        // Flags, the context, the copy.
        1 => {
            let context = word(1)?;
            driver.copy_task(current, &In::from_address(body + 16), context)
        }
        2 => {
            let context = word(size_of::<FillParams>() / 8)?;
            driver.fill_task(current, &In::from_address(body).get()?, context)
        }
        3 => host_task(current, In::from_address(body).get()?),
        4 => Ok((current, NodeWork::Child(driver.embed(word(0)?)?))),
        5 => Ok((current, NodeWork::Work(Work::Join))),
        6 | 7 => {
            let event = word(0)?;
            driver.event(event)?;
            let work = if kind == 6 {
                NodeWork::Wait(event)
            } else {
                NodeWork::Record(event)
            };
            Ok((current, work))
        }
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// What a kernel node's structure says of it; the parameters stay until the node is changed.
fn kernel_params(driver: &mut Driver, node: Handle) -> Answer<KernelParams> {
    let NodeWork::Kernel(launch) = &mut driver.node_mut(node)?.work else {
        return Err(Code::INVALID_VALUE);
    };
    Ok(KernelParams {
        function: launch.function,
        grid: launch.desc.grid,
        block: launch.desc.block,
        dynamic: launch.desc.dynamic_shared,
        values: launch.values.addresses(&launch.desc.params),
        extra: 0,
    })
}

fn node_event(driver: &Driver, node: Handle, kind: u32) -> Answer<Handle> {
    match driver.node(node)?.work {
        NodeWork::Wait(event) if kind == 6 => Ok(event),
        NodeWork::Record(event) if kind == 7 => Ok(event),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Attributes of kernel nodes that say something here.
mod attribute {
    pub(super) const COOPERATIVE: u32 = 2;
    pub(super) const CLUSTER: u32 = 4;
}

fn set_attribute(driver: &mut Driver, node: Handle, id: u32, value: &In<u32>) -> Answer {
    let NodeWork::Kernel(launch) = &mut driver.node_mut(node)?.work else {
        return Err(Code::INVALID_VALUE);
    };
    match id {
        attribute::COOPERATIVE => launch.desc.cooperative = value.get()? != 0,
        attribute::CLUSTER => launch.desc.cluster = [value.at(0)?, value.at(1)?, value.at(2)?],
        // Hints.
        _ => {}
    }
    Ok(())
}

fn get_attribute(driver: &Driver, node: Handle, id: u32, value: &Out<u32>) -> Answer {
    let NodeWork::Kernel(launch) = &driver.node(node)?.work else {
        return Err(Code::INVALID_VALUE);
    };
    match id {
        attribute::COOPERATIVE => value.set(launch.desc.cooperative.into()),
        attribute::CLUSTER => {
            let mut cluster = launch.desc.cluster.into_iter().enumerate();
            cluster.try_for_each(|(i, n)| value.at(i).set(n))
        }
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// Adds a node with whole edges; the task is made with the driver and the current context.
macro_rules! add {
    ($s:ident, $out:ident, $graph:ident, $after:ident, $count:ident, |$driver:ident, $context:ident| $task:expr) => {{
        $out.require()?;
        let after = edges(&$after, &In::from_address(0), $count)?;
        let ($driver, $context) = $s.healthy()?;
        $driver.graph($graph)?;
        let task = $task;
        $out.set($driver.add_task($graph, task, after)?)
    }};
}

macro_rules! set {
    ($s:ident, $node:ident, |$driver:ident, $context:ident| $task:expr) => {{
        let ($driver, $context) = $s.healthy()?;
        let task = $task;
        $driver.set_task($node, task)
    }};
}

driver_api! {
    fn cuGraphAddKernelNode(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams>
    ) {
        add!(s, node, graph, after, count, |driver, context| driver.kernel_task(context, &params.get()?)?)
    }
    fn cuGraphAddKernelNode_v2(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams2>
    ) {
        add!(s, node, graph, after, count, |driver, context| driver.kernel_task_2(context, &params.get()?)?)
    }
    fn cuGraphKernelNodeGetParams(s, node: Handle, params: Out<KernelParams>) {
        params.set(kernel_params(s.driver()?, node)?)
    }
    fn cuGraphKernelNodeGetParams_v2(s, node: Handle, params: Out<KernelParams2>) {
        params.set(KernelParams2 { common: kernel_params(s.driver()?, node)?, kernel: 0, context: 0 })
    }
    fn cuGraphKernelNodeSetParams(s, node: Handle, params: In<KernelParams>) {
        set!(s, node, |driver, context| driver.kernel_task(context, &params.get()?)?)
    }
    fn cuGraphKernelNodeSetParams_v2(s, node: Handle, params: In<KernelParams2>) {
        set!(s, node, |driver, context| driver.kernel_task_2(context, &params.get()?)?)
    }
    fn cuGraphKernelNodeSetAttribute(s, node: Handle, id: u32, value: In<u32>) {
        set_attribute(s.driver()?, node, id, &value)
    }
    fn cuGraphKernelNodeGetAttribute(s, node: Handle, id: u32, value: Out<u32>) {
        get_attribute(s.driver()?, node, id, &value)
    }
    fn cuGraphAddMemcpyNode(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Copy3D>, of: Handle
    ) {
        add!(s, node, graph, after, count, |driver, context| driver.copy_task(context, &params, of)?)
    }
    fn cuGraphMemcpyNodeSetParams(s, node: Handle, params: In<Copy3D>) {
        set!(s, node, |driver, context| driver.copy_task(context, &params, 0)?)
    }
    fn cuGraphAddMemsetNode(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<FillParams>, of: Handle
    ) {
        add!(s, node, graph, after, count, |driver, context| driver.fill_task(context, &params.get()?, of)?)
    }
    fn cuGraphMemsetNodeSetParams(s, node: Handle, params: In<FillParams>) {
        set!(s, node, |driver, context| driver.fill_task(context, &params.get()?, 0)?)
    }
    fn cuGraphAddHostNode(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<HostParams>
    ) {
        add!(s, node, graph, after, count, |_driver, context| host_task(context, params.get()?)?)
    }
    fn cuGraphHostNodeSetParams(s, node: Handle, params: In<HostParams>) {
        set!(s, node, |_driver, context| host_task(context, params.get()?)?)
    }
    fn cuGraphAddChildGraphNode(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, child: Handle
    ) {
        add!(s, node, graph, after, count, |driver, context| (context, NodeWork::Child(driver.embed(child)?)))
    }
    fn cuGraphChildGraphNodeGetGraph(s, node: Handle, graph: Out<Handle>) {
        match s.driver()?.node(node)?.work {
            NodeWork::Child(child) => graph.set(child),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn cuGraphAddEmptyNode(s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add!(s, node, graph, after, count, |_driver, context| (context, NodeWork::Work(Work::Join)))
    }
    fn cuGraphAddEventRecordNode(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle
    ) {
        add!(s, node, graph, after, count, |driver, context| {
            driver.event(event)?;
            (context, NodeWork::Record(event))
        })
    }
    fn cuGraphAddEventWaitNode(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle
    ) {
        add!(s, node, graph, after, count, |driver, context| {
            driver.event(event)?;
            (context, NodeWork::Wait(event))
        })
    }
    fn cuGraphEventRecordNodeGetEvent(s, node: Handle, event: Out<Handle>) {
        event.set(node_event(s.driver()?, node, 7)?)
    }
    fn cuGraphEventWaitNodeGetEvent(s, node: Handle, event: Out<Handle>) {
        event.set(node_event(s.driver()?, node, 6)?)
    }
    fn cuGraphEventRecordNodeSetEvent(s, node: Handle, event: Handle) {
        set!(s, node, |driver, context| { driver.event(event)?; (context, NodeWork::Record(event)) })
    }
    fn cuGraphEventWaitNodeSetEvent(s, node: Handle, event: Handle) {
        set!(s, node, |driver, context| { driver.event(event)?; (context, NodeWork::Wait(event)) })
    }
    fn cuGraphAddNode(s, node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: u64) {
        add!(s, node, graph, after, count, |driver, context| any_task(driver, context, params)?)
    }
    fn cuGraphAddNode_v2(
        s, node: Out<Handle>, graph: Handle, after: In<Handle>, data: In<EdgeData>, count: usize, params: u64
    ) {
        node.require()?;
        let after = edges(&after, &data, count)?;
        let (driver, context) = s.healthy()?;
        driver.graph(graph)?;
        let task = any_task(driver, context, params)?;
        node.set(driver.add_task(graph, task, after)?)
    }
    fn cuGraphNodeSetParams(s, node: Handle, params: u64) {
        set!(s, node, |driver, context| any_task(driver, context, params)?)
    }
    fn cuGraphNodeGetType(s, node: Handle, kind: Out<u32>) {
        kind.set(s.driver()?.node(node)?.work.kind())
    }
}
