//! Typed attributes of graphs, nodes and tensors.

use std::collections::BTreeMap;

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Str(String),
    /// Raw bytes; in JSON `{"bytes": "<hex>"}`.
    Bytes(Vec<u8>),
    /// A list; lists of lists are lists whose items are lists.
    List(Vec<Attr>),
    /// Something structured that no pass looks at (a tensor, a function, a whole graph), kept as it was read.
    Other(serde_json::Value),
}

impl Attr {
    /// The number, also of a truth value and of text that is a number (options come in all three forms).
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Attr::Int(i) => Some(*i),
            Attr::Bool(b) => Some(i64::from(*b)),
            Attr::Str(s) => s.trim().parse().ok(),
            Attr::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => Some(*f as i64),
            _ => None,
        }
    }

    /// The text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attr::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&[Attr]> {
        match self {
            Attr::List(l) => Some(l),
            _ => None,
        }
    }

    /// Whether it is true: `true`, a number other than 0, `"1"` or `"true"`.
    pub fn is_true(&self) -> bool {
        match self {
            Attr::Bool(b) => *b,
            Attr::Int(i) => *i != 0,
            Attr::Str(s) => s == "1" || s.eq_ignore_ascii_case("true"),
            _ => false,
        }
    }
}

/// Attributes by name, in the order of the names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attrs(pub BTreeMap<String, Attr>);

impl Attrs {
    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Attr> {
        // Most nodes have none: this keeps the common case free of comparisons.
        if self.0.is_empty() {
            None
        } else {
            self.0.get(name)
        }
    }

    /// Whether there is one of that name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether it is there and true.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(Attr::is_true)
    }

    /// The number of that name.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Attr::as_int)
    }

    /// The text of that name.
    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Attr::as_str)
    }

    /// The numbers of a list; a lone number counts as a list of one.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.get(name)? {
            Attr::List(l) => Some(l.iter().filter_map(Attr::as_int).collect()),
            other => other.as_int().map(|i| vec![i]),
        }
    }

    /// Sets a value; returns whether that changed anything.
    pub fn set(&mut self, name: &str, value: Attr) -> bool {
        if self.get(name) == Some(&value) {
            return false;
        }
        self.0.insert(name.to_owned(), value);
        true
    }

    /// Removes a value.
    pub fn remove(&mut self, name: &str) -> Option<Attr> {
        self.0.remove(name)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// GE's attribute names, as far as passes read or write them.
pub mod names {
    #![allow(missing_docs)]
    pub const INPUT_MUTABLE: &str = "_input_mutable";
    pub const SKIP_RW: &str = "_skip_rw_conflict";
    pub const CI: &str = "continuous_input";
    pub const CO: &str = "continuous_output";
    pub const NPCI: &str = "_no_padding_continuous_input";
    pub const NPCO: &str = "_no_padding_continuous_output";
    pub const OUTPUT_REUSE_INPUT: &str = "_output_reuse_input";
    pub const REFERENCE: &str = "reference";
    pub const REF_VAR: &str = "ref_var_src_var_name";
    pub const INPLACE_SUPPORT: &str = "_inplace_support_input_index";
    pub const INPLACE_ABILITY: &str = "_output_inplace_ability";
    pub const CANNOT_BE_DELETED: &str = "_cannot_be_deleted";
    pub const NO_NEED_FOLDING: &str = "no_need_constant_folding";
    pub const FIXED_ADDR: &str = "_alloc_fixed_addr";
    pub const FIXED_ADDR_INDEX: &str = "_alloc_fixed_addr_index";
    pub const IN_MEM_TYPE: &str = "_input_memory_type";
    pub const OUT_MEM_TYPE: &str = "_output_memory_type";
    pub const PARENT_INDEX: &str = "_parent_node_index";
    pub const ATOMIC_IN: &str = "atomic_input_index";
    pub const ATOMIC_OUT: &str = "atomic_output_index";
    pub const ATOMIC_WORKSPACE: &str = "sub_node_workspace_info";
    pub const ATOMIC_WORKSPACE2: &str = "atomic_workspace_info";
    pub const IS_ATOMIC: &str = "is_atomic_node";
    pub const GENTASK_ATOMIC: &str = "need_gentask_atomic";
    pub const SPECIAL_INPUT: &str = "_special_input_size";
    pub const DYNAMIC_PARTITIONED: &str = "_dynamic_shape_partitioned";
    pub const IS_UNKNOWN_SHAPE: &str = "_is_unknown_shape";
    pub const NO_TASK: &str = "_no_task";
    pub const STREAM_LABEL: &str = "_stream_label";
    pub const BATCH_LABEL: &str = "_batch_label";
    pub const SINGLE_OP: &str = "_single_op_scene";
    pub const TO_DATA: &str = "_is_connected_to_data";
    pub const TO_NETOUTPUT: &str = "_is_connected_to_netoutput";
    pub const BASIC_OFFSET: &str = "_zero_copy_basic_offset";
    pub const RELATIVE_OFFSET: &str = "_zero_copy_relative_offset";
    pub const FFTS_SUBGRAPH: &str = "_ffts_plus_sub_graph";
    pub const BUFFER_FUSION: &str = "_buffer_fusion";
    pub const ORIGINAL_TYPE: &str = "original_type";
    pub const INPUT_OFFSETS: &str = "input_i";
    pub const OUTPUT_OFFSETS: &str = "output_i";
    pub const REUSE_PAIRS: &str = "output_reuse_input_mem_indexes";
}
