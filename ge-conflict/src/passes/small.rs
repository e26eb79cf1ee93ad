//! The passes that only set marks: in-place support, fixed addresses, offsets of inputs and outputs.

use crate::ctx::{Ctx, PassError};
use crate::ir::{Attr, GraphId, Kind, Node, NodeId, OutRef, names};

/// Marks which input an operator could work in.
pub const INPLACE_SUPPORT: &str = "inplace-support";
/// Marks outputs whose address must not change.
pub const MARK_SAME_ADDR: &str = "mark-same-addr";
/// Sets offsets for zero-copy inputs and outputs.
pub const OFFSET: &str = "offset";

/// One output, and an input like it that nobody else uses: the first such input is marked.
pub fn inplace_support(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = INPLACE_SUPPORT;
    ctx.top()?;
    for g in ctx.targets() {
        let graph = ctx.module.graph(g);
        let mut found = Vec::new();
        for (id, n) in graph.iter().filter(|(_, n)| n.outputs.len() == 1) {
            let out = &n.outputs[0].desc;
            let fits = n.inputs.iter().position(|i| {
                let Some(from) = i.from else { return false };
                let k = graph.node(from.node).kind;
                !(k.is_data() || k.is_const() || k.is_var_like())
                    && graph.consumers(from).len() == 1
                    && i.desc.dtype == out.dtype
                    && i.desc.dims() == out.dims()
            });
            if let Some(i) = fits {
                found.push((OutRef { node: id, index: 0 }, i as i64));
            }
        }
        for (out, i) in found {
            let why = "same type and shape, and nobody else uses the input: the output may be written over it";
            ctx.mark_output(g, out, names::INPLACE_SUPPORT, Attr::Int(i), why);
        }
    }
    Ok(())
}

/// Outputs that a switch reads keep their address.
pub fn mark_same_addr(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = MARK_SAME_ADDR;
    ctx.top()?;
    for g in ctx.targets() {
        let graph = ctx.module.graph(g);
        if graph.is_unknown() {
            continue;
        }
        let mut found = Vec::new();
        for (_, n) in graph.iter().filter(|(_, n)| n.kind.is_address_switch()) {
            for from in n.inputs.iter().filter_map(|i| i.from) {
                let name = graph
                    .node(from.node)
                    .output_name(from.index as usize)
                    .into_owned();
                found.push((from, name, n.name.clone()));
            }
        }
        for (from, name, switch) in found {
            let why = format!("`{switch}` has the address of this output baked in");
            ctx.mark(g, from.node, names::FIXED_ADDR, Attr::Str(name), &why);
            ctx.mark(
                g,
                from.node,
                names::FIXED_ADDR_INDEX,
                Attr::Int(i64::from(from.index)),
                &why,
            );
        }
    }
    Ok(())
}

/// Where several tensors lie in one user buffer, their place in it.
pub fn offset(ctx: &mut Ctx<'_>) -> Result<(), PassError> {
    ctx.pass = OFFSET;
    ctx.top()?;
    for g in ctx.targets() {
        let ffts = ctx
            .module
            .parent_node(g)
            .is_some_and(|(_, p)| p.attrs.has(names::FFTS_SUBGRAPH));
        if ffts {
            continue;
        }
        for id in ctx.module.graph(g).id_list() {
            offsets_to_data(ctx, g, id);
            offsets_to_output(ctx, g, id)?;
        }
    }
    Ok(())
}

fn input_offset(n: &Node, i: usize) -> Option<i64> {
    let listed = n
        .attrs
        .ints(names::INPUT_OFFSETS)
        .and_then(|l| l.get(i).copied());
    listed.or_else(|| n.inputs.get(i).and_then(|x| x.desc.offset))
}

fn output_offsets(n: &Node) -> Vec<i64> {
    match n.attrs.ints(names::OUTPUT_OFFSETS) {
        Some(l) => l,
        None => n
            .outputs
            .iter()
            .map(|o| o.desc.offset.unwrap_or(0))
            .collect(),
    }
}

/// Level-1 and unified buffers are on-chip: what lies there is not the user's.
fn is_on_chip(mem: i64) -> bool {
    const L1: i64 = 0x1;
    const UB: i64 = 0x3;
    mem == L1 || mem == UB
}

fn offsets_to_data(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) {
    let graph = ctx.module.graph(g);
    let n = graph.node(id);
    let types = n.attrs.ints(names::IN_MEM_TYPE);
    let mut found = Vec::new();
    for (i, x) in n.inputs.iter().enumerate() {
        let Some(from) = x.from else { continue };
        let source = graph.node(from.node);
        if !source.kind.is_data() {
            continue;
        }
        let off_chip = types
            .as_ref()
            .and_then(|t| t.get(i))
            .is_some_and(|t| !is_on_chip(*t));
        if !off_chip && !n.attrs.flag(names::CI) {
            continue;
        }
        let basic = output_offsets(source)
            .get(from.index as usize)
            .copied()
            .unwrap_or(0);
        match input_offset(n, i) {
            Some(own) if own != basic => found.push((from.node, basic, own - basic)),
            _ => {}
        }
    }
    let name = n.name.clone();
    for (data, basic, relative) in found {
        let why = format!("{name} reads this input at another place than where it begins");
        append(ctx, g, data, &[basic], &[relative], &why);
    }
}

/// Adds to both lists, unless the pair is there already.
fn append(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId, basic: &[i64], relative: &[i64], why: &str) {
    let n = ctx.module.graph(g).node(id);
    let mut lists =
        [names::BASIC_OFFSET, names::RELATIVE_OFFSET].map(|a| n.attrs.ints(a).unwrap_or_default());
    for (b, r) in basic.iter().zip(relative) {
        if lists[0].iter().zip(&lists[1]).any(|p| p == (b, r)) {
            continue;
        }
        lists[0].push(*b);
        lists[1].push(*r);
    }
    let list = |l: &[i64]| Attr::List(l.iter().copied().map(Attr::Int).collect());
    ctx.mark(g, id, names::BASIC_OFFSET, list(&lists[0]), why);
    ctx.mark(g, id, names::RELATIVE_OFFSET, list(&lists[1]), why);
}

fn offsets_to_output(ctx: &mut Ctx<'_>, g: GraphId, id: NodeId) -> Result<(), PassError> {
    let graph = ctx.module.graph(g);
    let n = graph.node(id);
    let Some(sink) = n
        .outputs
        .iter()
        .flat_map(|o| &o.to)
        .map(|c| c.node)
        .find(|c| graph.node(*c).kind == Kind::NetOutput)
    else {
        return Ok(());
    };
    let offsets = output_offsets(n);
    let name = n.name.clone();
    let fused =
        n.attrs.flag(names::CI) || n.attrs.flag(names::NPCI) || n.attrs.has(names::BUFFER_FUSION);
    if n.attrs.flag(names::NO_TASK) && fused {
        let &[basic] = offsets.as_slice() else {
            return Err(PassError::ParamInvalid(format!(
                "graph {}, node `{name}`: a concatenation without a task has exactly one output offset, this one has {}",
                graph.name,
                offsets.len()
            )));
        };
        let relative: Vec<i64> = n
            .inputs
            .iter()
            .filter_map(|i| i.from)
            .map(|f| {
                output_offsets(graph.node(f.node))
                    .get(f.index as usize)
                    .copied()
                    .unwrap_or(0)
                    - basic
            })
            .collect();
        let why = format!("the inputs of `{name}` are written straight into this output");
        append_all(ctx, g, sink, basic, &relative, &why);
    } else if n.attrs.flag(names::CO) && !offsets.is_empty() {
        let basic = offsets[0];
        let relative: Vec<i64> = offsets.iter().map(|o| o - basic).collect();
        let why = format!("the outputs of {name} lie in one run that starts in this output");
        append_all(ctx, g, sink, basic, &relative, &why);
    }
    Ok(())
}

fn append_all(
    ctx: &mut Ctx<'_>,
    g: GraphId,
    sink: NodeId,
    basic: i64,
    relative: &[i64],
    why: &str,
) {
    append(ctx, g, sink, &vec![basic; relative.len()], relative, why);
}
