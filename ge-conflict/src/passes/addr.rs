//! Zero copy: where the user's buffer would reach an operator that can't follow its address, the address is handed on.

use crate::ctx::{Ctx, PassError};
use crate::ir::{Attr, GraphId, InRef, Kind, NodeId, Template, names};
use crate::report::{ConflictKind, Reason};

/// The pass's name in results.
pub const PASS: &str = "addr";

/// Runs the pass on every graph of known shape.
pub fn run(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = PASS;
    ctx.top()?;
    for g in ctx.targets() {
        if ctx.module.graph(g).is_unknown() {
            continue;
        }
        for id in ctx.module.graph(g).id_list() {
            let n = ctx.module.graph(g).node(id);
            match n.kind {
                Kind::StreamMerge => stream_merge(ctx, g, id)?,
                Kind::NetOutput if ctx.module.graph(g).parent.is_none() => net_output(ctx, g, id),
                _ if n.is_hccl() && !ctx.module.options.feature_base_refreshable => {
                    collective(ctx, g, id)
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Why handing an address on helps.
const FOLLOWS: &str = "the new operator passes the buffer's address on in each run, so that the caller may change the buffer";

fn hand_on(ctx: &mut Ctx<'_>, g: GraphId, at: InRef, rule: &str, why: String, repair: &str) {
    let graph = ctx.module.graph(g);
    let Some(from) = graph.producer(at) else {
        return;
    };
    let node = graph.node(at.node);
    let mut attrs = Vec::new();
    for label in [names::STREAM_LABEL, "_rts_label_node"] {
        if let Some(v) = node.attrs.get(label) {
            attrs.push((label, v.clone()));
        }
    }
    // The new operator is the one that touches the user's input now.
    let moves_flag = node.attrs.flag(names::TO_DATA);
    if moves_flag {
        attrs.push((names::TO_DATA, Attr::Bool(true)));
    }
    let name = format!("{}_input_{}_MemcpyAddrAsync", node.name, at.index);
    let between = (ctx.module.in_name(g, at), ctx.module.out_name(g, from));
    let reason = Reason::new(ConflictKind::SubgraphIsolation, rule, between, why)
        .title("a buffer of the caller, or a constant, can't be used where it lies")
        .order(if repair == FOLLOWS {
            "it does not matter here: what may change is the buffer's address, between runs"
        } else {
            crate::layout::NO_ORDER_HELPS
        })
        .repair(repair);
    let template = Template {
        name: &name,
        ty: "MemcpyAddrAsync",
        attrs: &attrs,
    };
    if ctx.insert_before(g, &[at], &template, &reason).is_some()
        && moves_flag
        && let Some(n) = ctx.module.graph_mut(g).get_mut(at.node)
    {
        n.attrs.remove(names::TO_DATA);
    }
}

fn stream_merge(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) -> Result<(), PassError> {
    for index in 0..ctx.module.graph(g).node(id).inputs.len() as u32 {
        let at = InRef { node: id, index };
        if let Some((place, to)) = user_data(ctx, g, at)? {
            let name = ctx.name(g, id);
            let why = format!(
                "`{name}` joins streams, and its input {index} is the caller's buffer, which may lie elsewhere in each run"
            );
            hand_on(
                ctx,
                place,
                to,
                "the caller's input reaches an operator that joins streams",
                why,
                FOLLOWS,
            );
        }
    }
    Ok(())
}

/// If an input is the user's buffer: where to put the operator that hands its address on.
fn user_data(ctx: &Ctx<'_>, g: GraphId, at: InRef) -> Result<Option<(GraphId, InRef)>, PassError> {
    let module = &*ctx.module;
    let Some(from) = module.graph(g).producer(at) else {
        return Ok(None);
    };
    let first = module.graph(g).node(from.node);
    if !first.kind.is_data() {
        return Ok(None);
    }
    let (mut graph, mut here, mut data) = (g, at, from.node);
    for _ in 0..4096 {
        let node = module.graph(graph).node(data);
        let Some((p, parent)) = module.parent_node(graph) else {
            return Ok(Some((g, at)));
        };
        let index = node
            .parent_index()
            .and_then(|i| u32::try_from(i).ok())
            .ok_or_else(|| {
                PassError::Internal(format!(
                    "graph {}, node `{}`: a subgraph's Data needs {} to say which input of {} it is",
                    module.graph(graph).name,
                    node.name,
                    names::PARENT_INDEX,
                    parent.name
                ))
            })?;
        if parent.kind == Kind::PartitionedCall && !module.graph(graph).is_unknown() {
            let named = node.attrs.has(names::REF_VAR)
                || node
                    .outputs
                    .iter()
                    .any(|o| o.desc.attrs.has(names::REF_VAR));
            if !named {
                return Ok(Some((graph, here)));
            }
        }
        (graph, here) = (
            p.graph,
            InRef {
                node: p.node,
                index,
            },
        );
        // Through control flow that hands the same input on.
        loop {
            let Some(up) = module.graph(graph).producer(here) else {
                return Ok(None);
            };
            let source = module.graph(graph).node(up.node);
            match source.kind {
                k if k.is_data() => {
                    data = up.node;
                    break;
                }
                k if k.is_control() => {
                    here = InRef {
                        node: up.node,
                        index,
                    }
                }
                _ => return Ok(None),
            }
        }
    }
    Ok(None)
}

fn net_output(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    for index in 0..ctx.module.graph(g).node(id).inputs.len() as u32 {
        let at = InRef { node: id, index };
        let graph = ctx.module.graph(g);
        let Some(from) = graph.producer(at) else {
            continue;
        };
        let source = graph.node(from.node);
        let empty = source
            .outputs
            .get(from.index as usize)
            .is_some_and(|o| o.desc.is_empty_tensor())
            || graph.node(id).inputs[index as usize].desc.is_empty_tensor();
        if empty {
            continue;
        }
        let o = &ctx.module.options;
        let single = o.single_op || graph.attrs.flag(names::SINGLE_OP);
        let (rule, what) = if source.kind.is_const() {
            ("a constant is an output of the graph", "a constant")
        } else if source.kind.is_data() && (o.heterogeneous || o.offline || single) {
            ("an input is an output of the graph", "the caller's input")
        } else {
            continue;
        };
        let why = format!(
            "output {index} of the graph is {what} ({}), which lies elsewhere than the caller's buffer for that result",
            ctx.module.out_name(g, from)
        );
        let repair = "the new operator brings the value to the caller's buffer";
        hand_on(ctx, g, at, rule, why, repair);
    }
}

fn collective(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    for index in 0..ctx.module.graph(g).node(id).inputs.len() as u32 {
        let at = InRef { node: id, index };
        let graph = ctx.module.graph(g);
        let Some(from) = graph.producer(at) else {
            continue;
        };
        if graph.node(from.node).kind == Kind::RefData {
            let why = format!(
                "`{}` can't change its addresses once it is loaded (it has \"kernel_lib\": \"hccl\", and the option feature_base_refreshable is \
                 off), but {} is a buffer of the caller, who may pass another one",
                ctx.name(g, id),
                ctx.module.out_name(g, from)
            );
            let rule = "an operator that exchanges data between devices reads the caller's buffer";
            hand_on(ctx, g, at, rule, why, FOLLOWS);
        }
    }
}
