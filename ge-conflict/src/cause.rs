//! What in the file makes this crate believe what it says of an operator: the attribute, type or name that decides.

use crate::ir::{KernelLib, Kind, Node, names};
use crate::layout::attrs::AnchorAttr;
use crate::text::with_article;

/// What makes an operator use its input `k` as scratch space.
pub(crate) fn overwrites(node: &Node, k: usize) -> String {
    if node.kind == Kind::While {
        return "it is a loop, which rewrites its inputs in every round".to_owned();
    }
    let own = node
        .inputs
        .get(k)
        .and_then(|i| i.desc.attrs.int(names::SPECIAL_INPUT));
    match own.or_else(|| node.attrs.int(names::SPECIAL_INPUT)) {
        Some(size) if size > 0 => {
            let place = if own.is_some() { "the input" } else { "it" };
            format!(
                "{place} has the attribute `{}`: {size}",
                names::SPECIAL_INPUT
            )
        }
        _ => format!("it has the attribute `{}`: true", names::INPUT_MUTABLE),
    }
}

/// What makes an operator update its input `k` in place.
pub(crate) fn updates(node: &Node, k: usize) -> String {
    if node.kind == Kind::RefSwitch {
        return "it is a RefSwitch, whose outputs are its input".to_owned();
    }
    let Some(o) = node.ref_output_of(k) else {
        return String::new();
    };
    let (input, output) = (&node.inputs[k].name, &node.outputs[o].name);
    if input.is_empty() || output.is_empty() {
        return match node.kind {
            Kind::Assign => format!("it is {}, which writes its input 0", with_article(&node.ty)),
            _ => format!(
                "it has the attribute `{}`: true, and its inputs and outputs have no names: output {o} is input {k}",
                names::REFERENCE
            ),
        };
    }
    format!("its input {k} and its output {o} have the same name, `{input}`")
}

/// What makes the output of an operator the memory of its input `k`.
pub(crate) fn passes_on(node: &Node, out: usize) -> String {
    if node.kind == Kind::Reshape {
        return "it is a Reshape, which only shows its input in another shape".to_owned();
    }
    if let Some(k) = node.ref_input_of(out) {
        return updates(node, k);
    }
    match node.outputs.get(out).and_then(|o| o.desc.reuse_input) {
        Some(k) => format!("its output {out} has \"reuse_input\": {k}"),
        None if node.attrs.has(names::OUTPUT_REUSE_INPUT) => {
            format!("it has the attribute `{}`: true", names::OUTPUT_REUSE_INPUT)
        }
        None => format!("it is {}, which moves nothing", with_article(&node.ty)),
    }
}

/// What makes an input (or output) of an operator demand that of its memory; empty: nothing special is demanded.
pub(crate) fn demands(node: &Node, input: bool, k: usize, attr: AnchorAttr) -> String {
    let flag = |name: &str| format!("attribute `{name}` of `{}`", node.name);
    let ty = || format!("`{}` is {}", node.name, with_article(&node.ty));
    match attr {
        AnchorAttr::UserIn | AnchorAttr::UserOut => {
            format!("{} of the graph that the caller runs", ty())
        }
        AnchorAttr::Immutable => ty(),
        AnchorAttr::UnrefreshIn | AnchorAttr::UnrefreshOut => {
            if node.kind.is_address_switch() {
                ty()
            } else if node.refreshable == Some(false) {
                format!("`{}` has \"refreshable\": false", node.name)
            } else if node.kernel_lib == Some(KernelLib::Custom) {
                format!(
                    "`{}` has \"kernel_lib\": \"custom\" and no \"refreshable\": true",
                    node.name
                )
            } else {
                String::new()
            }
        }
        AnchorAttr::Ci => flag(names::CI),
        AnchorAttr::Co => flag(names::CO),
        AnchorAttr::Npci => flag(names::NPCI),
        AnchorAttr::Npco => flag(names::NPCO),
        AnchorAttr::RtsIn | AnchorAttr::RtsOut => special(node, input, k),
        AnchorAttr::Reference => passes_on(node, k),
        AnchorAttr::NormalIn | AnchorAttr::NormalOut => String::new(),
    }
}

/// Which kind of special memory, and what says so.
fn special(node: &Node, input: bool, k: usize) -> String {
    let (list, word, mem) = if input {
        (names::IN_MEM_TYPE, "input", node.input_mem(k).word())
    } else {
        (names::OUT_MEM_TYPE, "output", node.output_mem(k).word())
    };
    if node.attrs.has(list) {
        format!("attribute `{list}` of `{}` says {mem} memory", node.name)
    } else {
        format!("{word} {k} of `{}` has \"mem_type\": \"{mem}\"", node.name)
    }
}
