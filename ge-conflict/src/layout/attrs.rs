//! The 14 attributes of anchors.

use super::symbols::{AnchorId, Space, Symbols, alias_input};
use crate::ir::{GraphId, KernelLib, Kind, Module, Node, OutRef, Place, names};
use rustc_hash::FxHashMap;
use std::fmt;

/// What an anchor demands of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AnchorAttr {
    /// The user's input buffer.
    UserIn,
    /// The user's output buffer.
    UserOut,
    /// A constant or variable: the address is fixed and the content not to be touched.
    Immutable,
    /// The operator's input address can't be changed after loading.
    UnrefreshIn,
    /// The operator's output address can't be changed after loading.
    UnrefreshOut,
    /// All inputs one after the other, each padded.
    Ci,
    /// All outputs one after the other, each padded.
    Co,
    /// All inputs one after the other without a gap.
    Npci,
    /// All outputs one after the other without a gap.
    Npco,
    /// Special memory.
    RtsIn,
    /// Special memory.
    RtsOut,
    /// The output is its own input or a named variable.
    Reference,
    /// Nothing special.
    NormalIn,
    /// Nothing special.
    NormalOut,
}

impl AnchorAttr {
    /// How many there are.
    pub const COUNT: usize = 14;
    /// All of them.
    pub const ALL: [AnchorAttr; Self::COUNT] = [
        AnchorAttr::UserIn,
        AnchorAttr::UserOut,
        AnchorAttr::Immutable,
        AnchorAttr::UnrefreshIn,
        AnchorAttr::UnrefreshOut,
        AnchorAttr::Ci,
        AnchorAttr::Co,
        AnchorAttr::Npci,
        AnchorAttr::Npco,
        AnchorAttr::RtsIn,
        AnchorAttr::RtsOut,
        AnchorAttr::Reference,
        AnchorAttr::NormalIn,
        AnchorAttr::NormalOut,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            AnchorAttr::UserIn => "a buffer of the caller, at an address that the caller chooses",
            AnchorAttr::UserOut => {
                "a buffer of the caller for a result, at an address that the caller chooses"
            }
            AnchorAttr::Immutable => {
                "the memory of a constant or variable, which has a fixed place"
            }
            AnchorAttr::UnrefreshIn => {
                "an input of an operator whose addresses can't be changed once it is loaded"
            }
            AnchorAttr::UnrefreshOut => {
                "an output of an operator whose addresses can't be changed once it is loaded"
            }
            AnchorAttr::Ci => "one of several inputs that must lie one after the other in memory",
            AnchorAttr::Co => "one of several outputs that must lie one after the other in memory",
            AnchorAttr::Npci => {
                "one of several inputs that must lie one after the other in memory without a gap"
            }
            AnchorAttr::Npco => {
                "one of several outputs that must lie one after the other in memory without a gap"
            }
            AnchorAttr::RtsIn => "an input that must lie in special memory",
            AnchorAttr::RtsOut => "an output that must lie in special memory",
            AnchorAttr::Reference => {
                "an output that is the operator's own input, updated in place, or a named variable"
            }
            AnchorAttr::NormalIn => "an ordinary input, which can lie anywhere",
            AnchorAttr::NormalOut => "an ordinary output, which can lie anywhere",
        }
    }

    /// The design's name.
    pub fn name(self) -> &'static str {
        match self {
            AnchorAttr::UserIn => "USER_MEMORY_INPUT",
            AnchorAttr::UserOut => "USER_MEMORY_OUTPUT",
            AnchorAttr::Immutable => "IMMUTABLE_ADDRESS_OUTPUT",
            AnchorAttr::UnrefreshIn => "UNSUPPORTED_ADDRESS_REFRESH_OPERATOR_INPUT",
            AnchorAttr::UnrefreshOut => "UNSUPPORTED_ADDRESS_REFRESH_OPERATOR_OUTPUT",
            AnchorAttr::Ci => "CONTINUOUS_INPUT",
            AnchorAttr::Co => "CONTINUOUS_OUTPUT",
            AnchorAttr::Npci => "NOPADDING_CONTINUOUS_INPUT",
            AnchorAttr::Npco => "NOPADDING_CONTINUOUS_OUTPUT",
            AnchorAttr::RtsIn => "RTS_SPECIAL_TYPE_INPUT",
            AnchorAttr::RtsOut => "RTS_SPECIAL_TYPE_OUTPUT",
            AnchorAttr::Reference => "REFERENCE_OUTPUT",
            AnchorAttr::NormalIn => "NORMAL_INPUT",
            AnchorAttr::NormalOut => "NORMAL_OUTPUT",
        }
    }
}

impl fmt::Display for AnchorAttr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of attributes, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct AttrSet(pub u16);

impl AttrSet {
    /// Both ordinary kinds.
    pub const NORMAL: AttrSet =
        AttrSet(1 << AnchorAttr::NormalIn as u16 | 1 << AnchorAttr::NormalOut as u16);

    /// Adds one.
    pub fn add(&mut self, a: AnchorAttr) {
        self.0 |= 1 << a as u16;
    }

    /// Whether it is in.
    pub fn has(self, a: AnchorAttr) -> bool {
        self.0 & 1 << a as u16 != 0
    }

    /// Whether any of these is in.
    pub fn any(self, other: AttrSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The attributes.
    pub fn iter(self) -> impl Iterator<Item = AnchorAttr> {
        AnchorAttr::ALL.into_iter().filter(move |a| self.has(*a))
    }
}

/// What the graph under work allows.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Addresses of this graph's feature map can be refreshed.
    pub fm_refreshable: bool,
    /// Physical memory is mapped anew: an operator with a baked-in address blocks that.
    pub physical: bool,
    /// The root is static.
    pub root_static: bool,
    /// A user's input may be split without padding.
    pub user_in_npco: bool,
}

impl Mode {
    /// For the graph `top`.
    pub fn new(module: &Module, top: GraphId) -> Mode {
        let o = &module.options;
        let root = module.root().map(|r| module.graph(r));
        let root_dynamic = root.is_some_and(|g| g.is_dynamic());
        let single = o.single_op || root.is_some_and(|g| g.attrs.flag(names::SINGLE_OP));
        Mode {
            fm_refreshable: o.feature_base_refreshable
                || (root_dynamic && !module.graph(top).is_dynamic()),
            physical: o.static_memory_policy == 4,
            root_static: !root_dynamic,
            user_in_npco: !(o.offline || single || o.heterogeneous),
        }
    }
}

/// An operator whose addresses are fixed once it is loaded.
fn is_unrefreshable(node: &Node, mode: Mode) -> bool {
    if node.kind.is_address_switch() {
        return true;
    }
    match (&node.kernel_lib, node.refreshable) {
        (Some(KernelLib::Hccl), Some(false)) => !mode.fm_refreshable,
        (_, Some(false)) | (Some(KernelLib::Custom), None) => true,
        _ => false,
    }
}

/// Attributes of every anchor.
pub fn mark(module: &Module, space: &Space, symbols: &Symbols, mode: Mode) -> Vec<AttrSet> {
    let top = space.graphs[0];
    let mut sets = vec![AttrSet::default(); space.len()];
    let named = nodes_by_name(module, space);
    let mut at = 0;
    for g in &space.graphs {
        for (_, n) in module.graph(*g).iter() {
            let (ins, outs) = (n.inputs.len(), n.outputs.len());
            let fixed = is_unrefreshable(n, mode);
            let special_lists = n.attrs.has(names::IN_MEM_TYPE) || n.attrs.has(names::OUT_MEM_TYPE);
            let has = |name: &str, count: usize| count > 1 && n.attrs.flag(name);
            let (ci, npci) = (has(names::CI, ins), has(names::NPCI, ins));
            let (co, npco) = (has(names::CO, outs), has(names::NPCO, outs));
            for i in 0..ins {
                let set = &mut sets[at + i];
                let special = if special_lists {
                    n.input_mem(i)
                } else {
                    n.inputs[i].desc.mem_type
                }
                .is_special();
                let marks = [
                    (*g == top && n.kind == Kind::NetOutput, AnchorAttr::UserOut),
                    (fixed, AnchorAttr::UnrefreshIn),
                    (npci, AnchorAttr::Npci),
                    (ci, AnchorAttr::Ci),
                    (special, AnchorAttr::RtsIn),
                ];
                marks.into_iter().filter(|m| m.0).for_each(|m| set.add(m.1));
                if set.0 == 0 {
                    set.add(AnchorAttr::NormalIn);
                }
            }
            for o in 0..outs {
                let set = &mut sets[at + ins + o];
                let special = if special_lists {
                    n.output_mem(o)
                } else {
                    n.outputs[o].desc.mem_type
                }
                .is_special();
                let user = *g == top && n.kind.is_data();
                let me = AnchorId((at + ins + o) as u32);
                let marks = [
                    (user, AnchorAttr::UserIn),
                    (
                        n.kind.is_const() || n.kind == Kind::Variable,
                        AnchorAttr::Immutable,
                    ),
                    (fixed, AnchorAttr::UnrefreshOut),
                    (npco, AnchorAttr::Npco),
                    (co, AnchorAttr::Co),
                    (
                        !user && refers(module, space, symbols, &named, n, o, me),
                        AnchorAttr::Reference,
                    ),
                    (special, AnchorAttr::RtsOut),
                ];
                marks.into_iter().filter(|m| m.0).for_each(|m| set.add(m.1));
                if set.0 == 0 {
                    set.add(AnchorAttr::NormalOut);
                }
            }
            at += ins + outs;
        }
    }
    sets
}

/// Nodes that some output names as its variable. Built only from names that occur: large graphs have few of them.
fn nodes_by_name(module: &Module, space: &Space) -> FxHashMap<String, Place> {
    let mut map = FxHashMap::default();
    for g in &space.graphs {
        for (_, n) in module.graph(*g).iter() {
            for name in n
                .outputs
                .iter()
                .filter_map(|o| o.desc.attrs.str(names::REF_VAR))
            {
                if map.contains_key(name) {
                    continue;
                }
                let found = space
                    .graphs
                    .iter()
                    .find_map(|g| Some((*g, module.graph(*g).find(name)?)));
                if let Some(p) = found {
                    map.insert(name.to_owned(), p);
                }
            }
        }
    }
    map
}

fn refers(
    module: &Module,
    space: &Space,
    symbols: &Symbols,
    named: &FxHashMap<String, Place>,
    n: &Node,
    o: usize,
    me: AnchorId,
) -> bool {
    let by_name = n.outputs[o]
        .desc
        .attrs
        .str(names::REF_VAR)
        .and_then(|v| named.get(v))
        .is_some_and(|(g, var)| {
            let var = space.output(
                module,
                *g,
                OutRef {
                    node: *var,
                    index: 0,
                },
            );
            var.is_some_and(|v| v != me && symbols.same(v, me))
        });
    let own = n.kind != Kind::Reshape
        && (n.attrs.flag(names::REFERENCE) || n.outputs[o].desc.reuse_input.is_some())
        && alias_input(n, o).is_some();
    by_name || own
}
